/*
 * One tier, step by step.
 *
 * Happy path: its place (file:), open, PROBE, USAGE, facts, then a small probe object for latency
 * and a larger one for throughput, both written, read, compared, removed. A tier that is read_only
 * is read only: some object that lies in it. Failures: a step that fails is a finding; without a
 * place or an answer nothing more is asked; without a right to write, or room, it is still read.
 */
#include "core/bytes.h"
#include "core/dataset.h"
#include "core/process.h"
#include "tiers/url.h"
#include "tools/doctor/doctor.h"

#include <inttypes.h>
#include <string.h>

enum {
    SMALL_MIN = 64 << 10,
    SMALL_MAX = 1 << 20,
    PAGE = 4096,
    ROOM_PART = 4,     /* a probe takes so much of the room at most */
    WRITE_SECONDS = 4, /* and is as large as can be written in so long */
    PASSES = 6,
    READ_SECONDS = 2,
    LOOKED_AT = 2000, /* entries, for something to read */
    ROUNDS = 4096,
    PLACE_MS = 3000,
};

static enum wt_doctor_fault fault_of(int rc) {
    switch (rc) {
    case WT_EDENIED:
        return WT_DOCTOR_DENIED;
    case WT_EFULL:
        return WT_DOCTOR_FULL;
    case WT_ECORRUPT:
    case WT_ECHANGED:
        return WT_DOCTOR_CORRUPT;
    case WT_EDOWN:
    case WT_ETIMEDOUT:
        return WT_DOCTOR_UNREACHABLE;
    default:
        return WT_DOCTOR_FAILS;
    }
}

static void scheme_of(const struct wt_tier_opts *opts, char out[16]) {
    snprintf(out, 16, "%.*s", (int)strcspn(opts->url, ":"), opts->url);
}

static void wrong(struct wt_doctor *d, const struct wt_doctor_tier *t, enum wt_doctor_fault fault,
                  const char *step, const struct wt_err *err) {
    char scheme[16];
    scheme_of(t->opts, scheme);
    wt_doctor_find(d, WT_DOCTOR_WRONG, fault, t->opts->name, scheme, "%s: %s", step, err->text);
}

/* ---- the place of a file: tier ---- */

/* A local folder stands where something should be mounted. */
static bool lacks_mount(const struct wt_url *url, const struct wt_place *place) {
    for (size_t i = 0; i < url->n_params; i++)
        if (strcmp(url->param[i].name, "mount") == 0)
            return place->state == WT_PLACE_FOLDER && place->on_root;
    return false;
}

static bool look_at_place(struct wt_doctor *d, struct wt_doctor_tier *t) {
    static const struct {
        enum wt_doctor_fault fault;
        const char *text;
    } says[] = {
        [WT_PLACE_MISSING] = {WT_DOCTOR_FOLDER_MISSING, "is not there"},
        [WT_PLACE_NO_FOLDER] = {WT_DOCTOR_FOLDER_MISSING, "is not a folder"},
        [WT_PLACE_NO_SEARCH] = {WT_DOCTOR_DENIED, "cannot be entered by this user"},
        [WT_PLACE_DEAD] = {WT_DOCTOR_MOUNT_DEAD, "is a mount that nobody serves"},
        [WT_PLACE_HANGS] = {WT_DOCTOR_MOUNT_HANGS, "does not answer"},
    };
    struct wt_url url;
    size_t len;
    if (wt_url_parse(t->opts->url, &url, NULL) < 0)
        return true; /* opening it says what is wrong */
    for (len = strlen(url.path); len > 1 && url.path[len - 1] == '/';)
        url.path[--len] = '\0';
    wt_place_look(url.path, PLACE_MS, &t->place);
    if (lacks_mount(&url, &t->place)) {
        t->reach = WT_DOCTOR_BAD;
        wt_doctor_find(d, WT_DOCTOR_WRONG, WT_DOCTOR_MOUNT_MISSING, t->opts->name, "file",
                       "%s lies on the root file system, and its url says mount=required",
                       url.path);
        return false;
    }
    if (t->place.state == WT_PLACE_FOLDER)
        return true;
    t->reach = WT_DOCTOR_BAD;
    wt_doctor_find(d, WT_DOCTOR_WRONG, says[t->place.state].fault, t->opts->name, "file",
                   "%s %s%s%s", url.path, says[t->place.state].text, t->place.sys ? ": " : "",
                   t->place.sys ? strerror(t->place.sys) : "");
    return false;
}

/* ---- questions ---- */

static bool reach(struct wt_doctor *d, struct wt_doctor_tier *t, struct wt_tier *tier) {
    struct wt_req req = {.op = WT_OP_PROBE};
    int rc = wt_doctor_do(d, tier, &req);
    t->reach = rc < 0 ? WT_DOCTOR_BAD : WT_DOCTOR_GOOD;
    if (rc == 0)
        return true;
    struct wt_tier_stats stats;
    wt_tier_stats(tier, &stats);
    if (rc == WT_EDOWN && stats.last_error[0]) /* why it is down says more */
        wt_err_set(&req.err, rc, "%s", stats.last_error);
    wrong(d, t, rc == WT_EDENIED ? WT_DOCTOR_DENIED : WT_DOCTOR_UNREACHABLE, "cannot be reached",
          &req.err);
    return false;
}

static void take_usage(struct wt_doctor *d, struct wt_doctor_tier *t, struct wt_tier *tier) {
    struct wt_req req = {.op = WT_OP_USAGE};
    int rc = wt_doctor_do(d, tier, &req);
    t->usage_known = rc == 0;
    t->used = req.used;
    t->capacity = req.capacity;
    if (rc < 0)
        wt_doctor_find(d, WT_DOCTOR_NOTE, WT_DOCTOR_NO_USAGE, t->opts->name, NULL, "%s",
                       req.err.text);
}

static void add_fact(void *arg, const char *where, const char *name, const char *value) {
    struct wt_doctor_tier *t = arg;
    if (t->n_facts == WT_DOCTOR_FACTS || !value[0])
        return;
    struct wt_doctor_fact *f = &t->fact[t->n_facts++];
    snprintf(f->where, sizeof f->where, "%s", where);
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(f->value, sizeof f->value, "%s", value);
}

const char *wt_doctor_fact(const struct wt_doctor_tier *t, const char *name) {
    for (size_t i = 0; i < t->n_facts; i++)
        if (strcmp(t->fact[i].name, name) == 0)
            return t->fact[i].value;
    return NULL;
}

static uint64_t room_of(const struct wt_doctor_tier *t) {
    uint64_t room = UINT64_MAX;
    if (t->usage_known && t->capacity)
        room = t->capacity > t->used ? t->capacity - t->used : 0;
    return t->is_file && t->place.available < room ? t->place.available : room;
}

/* ---- reading ---- */

static void compared(struct wt_doctor *d, struct wt_doctor_tier *t, const struct wt_flow *f) {
    if (f->wrong_at == UINT64_MAX || t->read == WT_DOCTOR_BAD)
        return;
    struct wt_err err;
    t->read = WT_DOCTOR_BAD;
    wt_err_set(&err, WT_ECORRUPT, "%s: byte %" PRIu64 " is not what was written", f->key,
               f->wrong_at);
    wrong(d, t, WT_DOCTOR_CORRUPT, "read", &err);
}

static bool read_failed(struct wt_doctor *d, struct wt_doctor_tier *t, int rc,
                        const struct wt_err *err) {
    if (rc < 0 && t->read != WT_DOCTOR_BAD)
        wrong(d, t, fault_of(rc), "read", err);
    t->read = rc < 0 ? WT_DOCTOR_BAD : t->read;
    return rc < 0;
}

static void forget(const struct wt_doctor_tier *t, const char *key) {
    if (t->is_file && !t->place.tmpfs)
        wt_place_forget(&t->place, key, PLACE_MS);
}

static void measure_latency(struct wt_doctor *d, struct wt_doctor_tier *t, struct wt_tier *tier,
                            struct wt_flow *f) {
    struct wt_err err = {0};
    forget(t, f->key);
    if (read_failed(d, t, wt_flow_latency(d, tier, f, t, &err), &err))
        return;
    compared(d, t, f);
}

/* The best of some passes: what else runs here only makes it slower. */
static void measure_reading(struct wt_doctor *d, struct wt_doctor_tier *t, struct wt_tier *tier,
                            struct wt_flow *f) {
    struct wt_err err = {0};
    double best = 0, spent = 0;
    if (t->read == WT_DOCTOR_SKIPPED)
        t->read = WT_DOCTOR_GOOD;
    for (int i = 0; i < PASSES && spent < READ_SECONDS && !wt_doctor_stopped(d); i++) {
        f->moved = 0;
        forget(t, f->key);
        if (read_failed(d, t, wt_flow_read(d, tier, f, &err), &err))
            return;
        compared(d, t, f);
        spent += f->seconds;
        double rate = f->seconds > 0 ? (double)f->moved / f->seconds : 0;
        best = rate > best ? rate : best;
    }
    t->read_rate = best;
}

static void measure(struct wt_doctor *d, struct wt_doctor_tier *t, struct wt_tier *tier,
                    struct wt_flow *f) {
    measure_reading(d, t, tier, f);
    if (t->read == WT_DOCTOR_GOOD)
        measure_latency(d, t, tier, f);
}

struct search {
    struct wt_req req; /* first */
    char key[WT_KEY_SIZE];
    uint64_t size;
    unsigned seen;
};

static int look_at_entry(struct wt_req *req, const struct wt_entry *entry) {
    struct search *s = (struct search *)req;
    if (!entry->unpublished && entry->key[0] != '.' && entry->size > s->size) {
        snprintf(s->key, sizeof s->key, "%s", entry->key);
        s->size = entry->size;
    }
    return s->size >= SMALL_MAX || ++s->seen == LOOKED_AT;
}

/* A loader's user need not be able to list: then what was found in a tier below may lie here too.
 */
static int find_known(struct wt_doctor *d, struct wt_tier *tier, struct search *s,
                      struct wt_err *err) {
    const char *key = d->known[0] ? d->known : d->key;
    struct wt_req req = {.op = WT_OP_STAT, .key = key};
    int rc = wt_doctor_do(d, tier, &req);
    *err = req.err;
    if (rc == 0) {
        snprintf(s->key, sizeof s->key, "%s", key);
        s->size = req.size;
    }
    return rc == WT_EMISSING ? 0 : rc;
}

/* size 0: nothing was found. */
static int find_object(struct wt_doctor *d, struct wt_tier *tier, struct search *s,
                       struct wt_err *err) {
    s->req = (struct wt_req){.op = WT_OP_LIST, .key = "", .on_entry = look_at_entry};
    int rc = wt_doctor_do(d, tier, &s->req);
    *err = s->req.err;
    if (rc == WT_EDENIED)
        rc = find_known(d, tier, s, err);
    if (s->size)
        snprintf(d->known, sizeof d->known, "%s", s->key);
    return s->size ? 0 : rc;
}

/* What lies there anyhow. */
static void read_something(struct wt_doctor *d, struct wt_doctor_tier *t, struct wt_tier *tier) {
    struct search s = {.size = 0};
    struct wt_err err = {0};
    if (read_failed(d, t, find_object(d, tier, &s, &err), &err))
        return;
    if (s.size == 0) {
        wt_doctor_find(d, WT_DOCTOR_NOTE, WT_DOCTOR_NOTHING_TO_READ, t->opts->name, NULL,
                       "nothing to read was found in it: reading could not be tried");
        return;
    }
    uint64_t rounds = d->size / s.size;
    struct wt_flow f = {.key = s.key,
                        .size = s.size,
                        .rounds = (unsigned)(rounds < 1        ? 1
                                             : rounds < ROUNDS ? rounds
                                                               : ROUNDS)};
    measure(d, t, tier, &f);
}

/* ---- writing ---- */

static bool write_probe(struct wt_doctor *d, struct wt_doctor_tier *t, struct wt_tier *tier,
                        struct wt_flow *f) {
    struct wt_err err = {0};
    int rc = wt_flow_write(d, tier, f, &err);
    if (rc == WT_ECANCELED)
        return false;
    t->write = rc < 0 ? WT_DOCTOR_BAD : WT_DOCTOR_GOOD;
    if (rc < 0) {
        wrong(d, t, fault_of(rc), "write", &err);
        return false;
    }
    t->probe_bytes = f->size;
    t->write_rate = f->seconds > 0 ? (double)f->size / f->seconds : 0;
    return true;
}

static void remove_probe(struct wt_doctor *d, struct wt_doctor_tier *t, struct wt_tier *tier,
                         const char *key) {
    struct wt_req req = {.op = WT_OP_REMOVE, .key = key};
    int rc = wt_doctor_do(d, tier, &req);
    if (t->remove != WT_DOCTOR_BAD)
        t->remove = rc < 0 ? WT_DOCTOR_BAD : WT_DOCTOR_GOOD;
    if (rc < 0)
        wrong(d, t, WT_DOCTOR_LEFT_OVER, "remove", &req.err);
}

/* How large, by what there is room and time for. */
static uint64_t large_size(const struct wt_doctor *d, const struct wt_doctor_tier *t) {
    uint64_t size = d->size, room = room_of(t) / ROOM_PART;
    double soon = t->write_rate * WRITE_SECONDS;
    if (size > room)
        size = room;
    if ((double)size > soon)
        size = (uint64_t)soon;
    return size / PAGE * PAGE;
}

static void try_large(struct wt_doctor *d, struct wt_doctor_tier *t, struct wt_tier *tier,
                      uint64_t small) {
    char key[WT_KEY_SIZE + 8];
    struct wt_flow f = {.key = key, .size = large_size(d, t), .rounds = 1, .compare = true};
    snprintf(key, sizeof key, "%s-large", d->key);
    if (f.size <= small || wt_doctor_stopped(d) || !write_probe(d, t, tier, &f))
        return;
    measure(d, t, tier, &f);
    remove_probe(d, t, tier, key);
}

static void try_probes(struct wt_doctor *d, struct wt_doctor_tier *t, struct wt_tier *tier) {
    uint64_t room = room_of(t) / ROOM_PART, small = room < SMALL_MAX ? room : SMALL_MAX;
    if (small > d->size)
        small = d->size;
    small = small < SMALL_MIN ? SMALL_MIN : small / PAGE * PAGE;
    struct wt_flow f = {.key = d->key, .size = small, .rounds = 1, .compare = true};
    if (!write_probe(d, t, tier, &f)) {
        if (t->write == WT_DOCTOR_BAD && !wt_tier_is_down(tier))
            read_something(d, t, tier);
        return;
    }
    measure(d, t, tier, &f);
    if (t->read == WT_DOCTOR_GOOD)
        try_large(d, t, tier, small);
    remove_probe(d, t, tier, d->key);
}

/* ---- all of it ---- */

static void look_inside(struct wt_doctor *d, struct wt_doctor_tier *t, struct wt_tier *tier) {
    size_t wrong_before = d->n_wrong;
    struct wt_tier_stats before, after;
    if (!reach(d, t, tier))
        return;
    wt_tier_stats(tier, &before);
    take_usage(d, t, tier);
    wt_tier_describe(tier, add_fact, t);
    if (t == d->tier)
        wt_doctor_lock(d, tier);
    if (t->writes)
        try_probes(d, t, tier);
    else
        read_something(d, t, tier);
    wt_tier_stats(tier, &after);
    if (after.down_count > before.down_count && d->n_wrong == wrong_before)
        wt_doctor_find(d, WT_DOCTOR_WRONG, WT_DOCTOR_UNSTABLE, t->opts->name, NULL,
                       "went down while it was looked at: %s", after.last_error);
    wt_judge_tier(d, t);
}

static void on_closed(void *arg) {
    *(bool *)arg = true;
}

void wt_doctor_tier(struct wt_doctor *d, struct wt_doctor_tier *t) {
    struct wt_tier_opts opts = *t->opts;
    struct wt_tier *tier;
    struct wt_err err = {0};
    bool closed = false;
    t->is_file = strncmp(opts.url, "file:", 5) == 0;
    t->writes = !opts.read_only;
    if (t->is_file && !look_at_place(d, t))
        return;
    if (opts.timeout_ms == 0 || opts.timeout_ms > d->timeout_ms)
        opts.timeout_ms = d->timeout_ms;
    if (wt_tier_open(&d->loop, &opts, NULL, &tier, &err) < 0) {
        t->reach = WT_DOCTOR_BAD;
        wrong(d, t, WT_DOCTOR_BAD_TIER, "cannot be opened", &err);
        return;
    }
    snprintf(t->url, sizeof t->url, "%s", wt_tier_url(tier));
    look_inside(d, t, tier);
    wt_tier_close(tier, on_closed, &closed);
    while (!closed)
        uv_run(&d->loop, UV_RUN_ONCE);
}
