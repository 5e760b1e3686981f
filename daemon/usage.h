/*
 * How full a tier is: what it last said, with what moves did to it since.
 *
 * Happy path: usage_ask when the tier is asked, usage_take when it answers. Its figure holds what
 * was done before the question, and nothing that was begun after the answer; what was done, or is
 * being done, in between may be in it or not. So there are two sums: `most` takes all of that
 * for still there (nothing comes in beyond the capacity), `doubt` is the part of it that is gone
 * by our own account (nothing is removed twice). The account is what was known before, corrected to
 * what the figure allows; without a change in between it is the figure. Failures: none; a tier that
 * says nothing leaves the account as it was.
 */
#ifndef WT_DAEMON_USAGE_H
#define WT_DAEMON_USAGE_H

#include <stdbool.h>
#include <stdint.h>

/* What moves did to a tier since the start, and are doing to it now. Bytes. */
struct wt_moved {
    int64_t net;                   /* came, less what went */
    uint64_t gone;                 /* went */
    uint64_t committing, removing; /* by requests that have not been answered yet */
};

struct wt_usage {
    bool known; /* it has said it once */
    uint64_t most, doubt;
    int64_t net_at; /* net, when the figure was taken */
    int64_t net_asked;
    uint64_t gone_asked;
};

void wt_usage_ask(struct wt_usage *u, const struct wt_moved *now);
/* said: the tier's figure. catalog: what is known to be in it, where nothing better is. */
void wt_usage_take(struct wt_usage *u, const struct wt_moved *now, uint64_t said, uint64_t catalog);
/* The most that may be in the tier; not less than what the catalog knows to be there. */
uint64_t wt_usage_most(const struct wt_usage *u, int64_t net, uint64_t catalog);
/* How much of it is gone already, by our own account. */
uint64_t wt_usage_doubt(const struct wt_usage *u, int64_t net, uint64_t catalog);

#endif
