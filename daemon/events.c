/* The ring and its readers; see events.h. */
#include "daemon/events.h"

#include "core/json.h"
#include "core/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { ALIVE_MS = 10000 };

struct wt_events_reader {
    struct wt_events *e;
    struct wt_events_reader *next, **prev;
    uint64_t seen;   /* number of the last event it was given */
    bool begun;      /* it has read something */
    bool alive, end; /* a line that is not in the ring is due; its last line was made */
    char *line;      /* being given out */
    size_t len, at;
    void (*wake)(void *arg);
    void *arg;
};

struct wt_events {
    uv_timer_t timer; /* runs while there are readers */
    struct line {
        char *text;
        size_t len;
    } line[WT_EVENTS_KEPT]; /* event n at (n - 1) % WT_EVENTS_KEPT */
    uint64_t last;          /* number of the latest event */
    struct wt_events_reader *first;
    const char *end_text; /* the daemon stops */
    bool closed;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

struct wt_events *wt_events_new(uv_loop_t *loop) {
    struct wt_events *e = wt_calloc(1, sizeof *e);
    if (!e)
        return NULL;
    uv_timer_init(loop, &e->timer);
    e->timer.data = e;
    return e;
}

static double now(void) {
    struct timeval t;
    gettimeofday(&t, NULL);
    return (double)t.tv_sec + (double)(t.tv_usec / 1000) / 1000;
}

/* A line of its own; id 0: none. Takes fields over. */
static char *make_line(uint64_t id, const char *kind, json_t *fields, size_t *len) {
    json_t *o = json_object();
    if (o && id)
        json_object_set_new(o, "id", json_integer((json_int_t)id));
    bool ok = o && fields && json_object_set_new(o, "time", json_real(now())) == 0 &&
              json_object_set_new(o, "kind", json_string(kind)) == 0 &&
              json_object_update(o, fields) == 0;
    char *text = ok ? wt_json_dump(o, JSON_COMPACT, len) : NULL;
    json_decref(o);
    json_decref(fields);
    return text;
}

static void wake_all(struct wt_events *e) {
    for (struct wt_events_reader *r = e->first; r; r = r->next)
        if (r->wake)
            r->wake(r->arg);
}

void wt_events_add(struct wt_events *e, const char *kind, json_t *fields) {
    struct line *l = &e->line[e->last++ % WT_EVENTS_KEPT];
    free(l->text);
    l->text = make_line(e->last, kind, fields, &l->len);
    wake_all(e);
}

/* ---- readers ---- */

static void on_timer(uv_timer_t *timer) {
    struct wt_events *e = timer->data;
    for (struct wt_events_reader *r = e->first; r; r = r->next)
        r->alive = true;
    wake_all(e);
}

struct wt_events_reader *wt_events_follow(struct wt_events *e, int64_t since) {
    struct wt_events_reader *r = e->end_text ? NULL : wt_calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->e = e;
    r->seen = since < 0 || (uint64_t)since > e->last ? e->last : (uint64_t)since;
    r->next = e->first;
    r->prev = &e->first;
    if (e->first)
        e->first->prev = &r->next;
    e->first = r;
    if (!uv_is_active((uv_handle_t *)&e->timer))
        uv_timer_start(&e->timer, on_timer, ALIVE_MS, ALIVE_MS);
    return r;
}

void wt_events_on_news(struct wt_events_reader *r, void (*wake)(void *arg), void *arg) {
    r->wake = wake;
    r->arg = arg;
}

void wt_events_leave(void *reader) {
    struct wt_events_reader *r = reader;
    struct wt_events *e = r->e;
    *r->prev = r->next;
    if (r->next)
        r->next->prev = r->prev;
    if (!e->first && !e->closed)
        uv_timer_stop(&e->timer);
    free(r->line);
    free(r);
}

static void take(struct wt_events_reader *r, char *line, size_t len) {
    free(r->line);
    r->line = line;
    r->len = line ? len : 0;
    r->at = 0;
}

static void take_last(struct wt_events_reader *r, const char *text) {
    size_t len = 0;
    char *line = make_line(0, "end", json_pack("{s:s}", "text", text), &len);
    take(r, line, len);
    r->end = true;
}

/* Some events behind `seen` are overwritten. At the start that is told, later it ends the stream.
 */
static void fell_behind(struct wt_events_reader *r, uint64_t oldest) {
    if (r->begun) {
        take_last(r, "this reader is too slow: events were lost to it; connect again with ?since=");
        return;
    }
    size_t len = 0;
    char *line = make_line(0, "lost",
                           json_pack("{s:I}", "events", (json_int_t)(oldest - 1 - r->seen)), &len);
    take(r, line, len);
    r->seen = oldest - 1;
}

static void copy_event(struct wt_events_reader *r) {
    const struct line *l = &r->e->line[r->seen++ % WT_EVENTS_KEPT];
    char *copy = l->text ? malloc(l->len) : NULL;
    if (copy)
        memcpy(copy, l->text, l->len);
    take(r, copy, l->len);
}

/* Makes the next line; false: there is none now. */
static bool next_line(struct wt_events_reader *r) {
    const struct wt_events *e = r->e;
    uint64_t oldest = e->last > WT_EVENTS_KEPT ? e->last - WT_EVENTS_KEPT + 1 : 1;
    if (r->seen + 1 < oldest)
        fell_behind(r, oldest);
    else if (r->seen < e->last)
        copy_event(r);
    else if (e->end_text)
        take_last(r, e->end_text);
    else if (r->alive) {
        size_t len = 0;
        char *line = make_line(0, "alive", json_object(), &len);
        take(r, line, len);
    } else
        return false;
    r->alive = false;
    r->begun = true;
    return true;
}

ssize_t wt_events_read(void *reader, char *buf, size_t size) {
    struct wt_events_reader *r = reader;
    size_t have = 0;
    while (have < size) {
        if (r->at == r->len && (r->end || !next_line(r)))
            break;
        size_t n = r->len - r->at < size - have ? r->len - r->at : size - have;
        if (n)
            memcpy(buf + have, r->line + r->at, n);
        r->at += n;
        have += n;
    }
    return have ? (ssize_t)have : r->end ? -1 : 0;
}

/* ---- end ---- */

static void on_closed(uv_handle_t *h) {
    struct wt_events *e = h->data;
    e->stopped(e->stopped_arg);
}

void wt_events_stop(struct wt_events *e, const char *text, void (*stopped)(void *arg), void *arg) {
    e->end_text = text;
    e->stopped = stopped;
    e->stopped_arg = arg;
    e->closed = true;
    uv_close((uv_handle_t *)&e->timer, on_closed);
    wake_all(e);
}

void wt_events_free(struct wt_events *e) {
    if (!e)
        return;
    for (size_t i = 0; i < WT_EVENTS_KEPT; i++)
        free(e->line[i].text);
    free(e);
}
