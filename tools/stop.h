/*
 * Ctrl-C without a handler: SIGINT, SIGTERM and SIGHUP are blocked in the whole process (so before
 * any thread is started) and read from a signalfd when a long piece of work asks.
 */
#ifndef WT_TOOLS_STOP_H
#define WT_TOOLS_STOP_H

#include "core/err.h"

#include <signal.h>
#include <stdbool.h>

struct wt_stop {
    int fd;
    bool seen;
    sigset_t before;
};
int wt_stop_open(struct wt_stop *stop, struct wt_err *err);
/* Has one come? One thread at a time. arg: struct wt_stop *. */
bool wt_stop_asked(void *arg);
void wt_stop_close(struct wt_stop *stop);

#endif
