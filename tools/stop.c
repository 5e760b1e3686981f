/* Interrupts by signalfd(2); see stop.h. */
#include "tools/stop.h"

#include <errno.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

int wt_stop_open(struct wt_stop *stop, struct wt_err *err) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    int sys = pthread_sigmask(SIG_BLOCK, &set, &stop->before);
    if (sys)
        return wt_err_sys(err, sys, "signals cannot be blocked");
    stop->seen = false;
    stop->fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (stop->fd < 0)
        return wt_err_sys(err, errno, "signals cannot be watched");
    return 0;
}

bool wt_stop_asked(void *arg) {
    struct wt_stop *stop = arg;
    struct signalfd_siginfo info;
    if (!stop->seen && read(stop->fd, &info, sizeof info) == (ssize_t)sizeof info)
        stop->seen = true;
    return stop->seen;
}

void wt_stop_close(struct wt_stop *stop) {
    if (stop->fd < 0)
        return;
    close(stop->fd);
    stop->fd = -1;
    pthread_sigmask(SIG_SETMASK, &stop->before, NULL);
}
