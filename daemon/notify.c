/* sd_notify; see notify.h. */
#include "daemon/notify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <systemd/sd-daemon.h>
#include <time.h>

void wt_notify_ready(void) {
    sd_notify(0, "READY=1");
}

void wt_notify_reloading(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
               (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
}

void wt_notify_stopping(void) {
    sd_notify(0, "STOPPING=1");
}

void wt_notify_alive(void) {
    sd_notify(0, "WATCHDOG=1");
}

void wt_notify_status(const char *fmt, ...) {
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    sd_notifyf(0, "STATUS=%s", text);
}

uint64_t wt_notify_interval(void) {
    uint64_t us = 0;
    return sd_watchdog_enabled(0, &us) > 0 ? us / 2000 : 0;
}
