/*
 * How far a long piece of work is: a bar with rate and time left on a terminal, a plain line every
 * few seconds elsewhere. On stderr.
 */
#ifndef WT_TOOLS_PROGRESS_H
#define WT_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct wt_progress {
    const char *what; /* "pack" */
    const char *unit; /* "samples" */
    FILE *out;        /* NULL: silent */
    bool terminal;
    bool line;          /* a bar stands on the terminal's last line */
    uint64_t total;     /* units; 0: unknown */
    double start, last; /* seconds */
};
void wt_progress_start(struct wt_progress *p, const char *what, const char *unit, uint64_t total,
                       bool quiet);
/* Cheap: prints at most ten times a second, or once in three seconds. */
void wt_progress_at(struct wt_progress *p, uint64_t done, uint64_t bytes);
/* Wipes the bar, so that something else can be printed. */
void wt_progress_clear(struct wt_progress *p);
double wt_progress_seconds(const struct wt_progress *p);
double wt_now(void); /* monotonic seconds */

#endif
