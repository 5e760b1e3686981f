/*
 * The terminal of a full-screen program: another screen than the shell's, no echo, keys as they are
 * typed; and everything as it was before, however the program ends.
 *
 * Happy path: open -> show, show... -> close. Signals that would end, stop or resize the program
 * are blocked and read from a descriptor, so that close runs in any case; only SIGKILL and a crash
 * of the program itself leave the terminal as it is (`reset` helps). Failures: no terminal: an
 * error. A terminal that goes away ends the program like SIGHUP.
 */
#ifndef WT_TOOLS_TOP_TERM_H
#define WT_TOOLS_TOP_TERM_H

#include "tools/top/page.h"

#include "core/err.h"

#include <signal.h>
#include <termios.h>

enum wt_term_event {
    WT_TERM_NOTHING,
    WT_TERM_KEY,
    WT_TERM_RESIZED,
    WT_TERM_ENDED /* a signal, or the terminal went away */
};

struct wt_term {
    int signals; /* signalfd */
    sigset_t mask;
    struct termios before;
    bool shown; /* our screen is on */
    bool utf8;
    struct wt_page last; /* what stands there */
    struct wt_bytes out;
};
/* Blocks the signals, also for threads that are started later. */
int wt_term_open(struct wt_term *t, struct wt_err *err);
void wt_term_close(struct wt_term *t);
void wt_term_size(unsigned *columns, unsigned *rows);
/* Writes the lines that differ from what stands there. WT_ESYSTEM: the terminal is gone. */
int wt_term_show(struct wt_term *t, struct wt_page *f);
/* Waits for a key, a signal, or `fd` (-1: none) to become readable; *key is set with a key. */
enum wt_term_event wt_term_wait(struct wt_term *t, int fd, int timeout_ms, char *key);

#endif
