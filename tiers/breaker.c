/* The circuit breaker's transitions; see breaker.h for the picture. */
#include "tiers/breaker.h"

#include "core/err.h"

bool wt_breaker_counts(int rc) {
    return rc == WT_EDOWN || rc == WT_ETIMEDOUT || rc == WT_EIO;
}

/* Any answer about an object, or a refusal, proves that the tier is there. What the caller broke or
 * canceled proves nothing. */
static bool proves_alive(int rc) {
    if (rc >= 0)
        return true;
    enum wt_blame blame = wt_err_blame(rc);
    return blame == WT_BLAME_OBJECT || (blame == WT_BLAME_TIER && !wt_breaker_counts(rc));
}

enum wt_breaker_event wt_breaker_trip(struct wt_breaker *b) {
    if (b->open)
        return WT_BREAKER_STAYS;
    b->open = true;
    return WT_BREAKER_OPENS;
}

enum wt_breaker_event wt_breaker_result(struct wt_breaker *b, int rc, bool probe) {
    if (wt_breaker_counts(rc)) {
        if (b->failures < WT_BREAKER_FAILURES)
            b->failures++;
        return b->failures == WT_BREAKER_FAILURES ? wt_breaker_trip(b) : WT_BREAKER_STAYS;
    }
    if (!proves_alive(rc))
        return WT_BREAKER_STAYS;
    b->failures = 0;
    if (!probe)
        b->backoff_ms = 0;
    if (!b->open)
        return WT_BREAKER_STAYS;
    b->open = false;
    return WT_BREAKER_CLOSES;
}

uint32_t wt_breaker_backoff(struct wt_breaker *b) {
    uint32_t wait = b->backoff_ms ? b->backoff_ms : WT_BREAKER_BACKOFF_MS;
    b->backoff_ms = wait < WT_BREAKER_BACKOFF_MAX_MS / 2 ? wait * 2 : WT_BREAKER_BACKOFF_MAX_MS;
    return wait;
}
