/*
 * A thread that asks the daemon again and again, so that a daemon that answers slowly or not at all
 * never holds the keys or the screen.
 *
 * Happy path: each round asks for statistics, jobs and moves, and leaves them in the mailbox; a
 * descriptor becomes readable. Failures: the round's error is in the mailbox instead; the next
 * round tries again.
 */
#ifndef WT_TOOLS_TOP_WATCH_H
#define WT_TOOLS_TOP_WATCH_H

#include "tools/daemon.h"

struct wt_top_answer {
    json_t *stats, *jobs, *moves; /* NULL where it failed */
    double at;                    /* monotonic seconds */
    char error[WT_ERR_TEXT];      /* "": none */
};
void wt_top_answer_free(struct wt_top_answer *a);
/* One round, here and now. */
int wt_top_ask(struct wt_daemon_link *link, struct wt_top_answer *a, struct wt_err *err);

struct wt_top_watch;
/* Takes the link over. */
int wt_top_watch_start(struct wt_daemon_link *link, uint64_t interval_ms, struct wt_top_watch **out,
                       struct wt_err *err);
int wt_top_watch_fd(const struct wt_top_watch *w);
/* True: *a was filled with the newest answer. */
bool wt_top_watch_take(struct wt_top_watch *w, struct wt_top_answer *a);
void wt_top_watch_stop(struct wt_top_watch *w);

#endif
