/* What systemd is told (sd_notify): ready, reloading, stopping, status, and the watchdog. All of it
 * does nothing outside of systemd. */
#ifndef WT_DAEMON_NOTIFY_H
#define WT_DAEMON_NOTIFY_H

#include <stdint.h>

void wt_notify_ready(void);
void wt_notify_reloading(void);
void wt_notify_stopping(void);
void wt_notify_alive(void);
void wt_notify_status(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* How often wt_notify_alive is to be called, in ms; 0: never. */
uint64_t wt_notify_interval(void);

#endif
