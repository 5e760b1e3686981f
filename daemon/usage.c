/* What a tier said and what moved since; see usage.h. */
#include "daemon/usage.h"

static uint64_t add(uint64_t a, uint64_t b) {
    return a < UINT64_MAX - b ? a + b : UINT64_MAX;
}

static uint64_t less(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

static uint64_t moved(uint64_t from, int64_t by) {
    return by < 0 ? less(from, (uint64_t)-by) : add(from, (uint64_t)by);
}

void wt_usage_ask(struct wt_usage *u, const struct wt_moved *now) {
    u->net_asked = now->net;
    u->gone_asked = now->gone;
}

static uint64_t account(const struct wt_usage *u, int64_t net, uint64_t catalog) {
    uint64_t own = u->known ? moved(less(u->most, u->doubt), net - u->net_at) : 0;
    return own > catalog ? own : catalog;
}

void wt_usage_take(struct wt_usage *u, const struct wt_moved *now, uint64_t said,
                   uint64_t catalog) {
    uint64_t left = now->gone - u->gone_asked;
    uint64_t came = (uint64_t)(now->net - u->net_asked) + left;
    uint64_t most = add(said, came + now->removing);
    uint64_t least = less(said, left + now->committing);
    uint64_t own = account(u, now->net, catalog);
    own = own < least ? least : own > most ? most : own;
    *u = (struct wt_usage){.known = true,
                           .most = most,
                           .doubt = most - own,
                           .net_at = now->net,
                           .net_asked = u->net_asked,
                           .gone_asked = u->gone_asked};
}

uint64_t wt_usage_most(const struct wt_usage *u, int64_t net, uint64_t catalog) {
    uint64_t most = u->known ? moved(u->most, net - u->net_at) : 0;
    return most > catalog ? most : catalog;
}

uint64_t wt_usage_doubt(const struct wt_usage *u, int64_t net, uint64_t catalog) {
    return less(wt_usage_most(u, net, catalog), account(u, net, catalog));
}
