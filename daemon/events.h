/*
 * What happens in the daemon, as lines of JSON: the last EVENTS_KEPT in a ring, and any number of
 * readers that follow.
 *
 * Happy path: add formats a line and wakes the readers; a reader's read gives the lines it has not
 * seen. Failures: a reader that is so slow that lines it has not seen are overwritten gets a last
 * line that says so; without memory an event is lost, and its number is missing.
 */
#ifndef WT_DAEMON_EVENTS_H
#define WT_DAEMON_EVENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

enum { WT_EVENTS_KEPT = 4096, WT_EVENTS_NEW = -1 };

struct wt_events;
struct wt_events *wt_events_new(uv_loop_t *loop);
/* Takes `fields` over (an object; NULL: no memory). */
void wt_events_add(struct wt_events *e, const char *kind, json_t *fields);

struct wt_events_reader;
/* since: the number of the last event it knows, WT_EVENTS_NEW: those from now on. wake: there is
 * something to read. NULL: out of memory. */
struct wt_events_reader *wt_events_follow(struct wt_events *e, int64_t since);
void wt_events_on_news(struct wt_events_reader *r, void (*wake)(void *arg), void *arg);
/* 0: nothing now; -1: it is over. */
ssize_t wt_events_read(void *reader, char *buf, size_t size);
void wt_events_leave(void *reader);

/* The readers get a last line with this text; `stopped` is called on the loop. Free when all have
 * left. */
void wt_events_stop(struct wt_events *e, const char *text, void (*stopped)(void *arg), void *arg);
void wt_events_free(struct wt_events *e);

#endif
