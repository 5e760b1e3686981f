/*
 * Names of processes that outlive them: on a temporary, in a lease. Whoever finds one later can
 * tell whether its owner is gone, where it ran here.
 *
 * A process number means something in one place only: a boot of a machine, and a pid namespace of
 * it. Seen from any other place, nothing is known of the process.
 */
#ifndef WT_CORE_PROCESS_H
#define WT_CORE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

struct wt_process {
    uint64_t place; /* 0: cannot be told */
    int64_t pid;
};

enum wt_process_state { WT_PROCESS_UNKNOWN, WT_PROCESS_ALIVE, WT_PROCESS_DEAD };

enum { WT_PROCESS_TEXT = 40 };

struct wt_process wt_process_self(void);
/* ALIVE may be another process that got the same number since. */
enum wt_process_state wt_process_look(const struct wt_process *p);

/* "0123456789abcdef-4711" */
void wt_process_format(const struct wt_process *p, char out[WT_PROCESS_TEXT]);
/* Reads that at the beginning of `text`; what follows, or NULL when it is no such thing. */
const char *wt_process_parse(const char *text, struct wt_process *p);

#endif
