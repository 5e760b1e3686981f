/*
 * How fast a tier is, and whether it gives back what was put.
 *
 * Happy path: the pattern is written as one object by parts, several in flight, and read back the
 * same way into buffers that were touched before; each byte is compared. Small reads go one by one.
 * Failures: the first error ends the sending; what is in flight is waited for, since it holds a
 * buffer. Reading stops by itself after some seconds, with what it has measured until then.
 */
#include "core/mem.h"
#include "tools/doctor/doctor.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHIFTS = 64 << 10, /* parts differ by a shift, so that two that are mixed up are seen */
    SHIFT = 64,
    PATTERN = WT_PART + SHIFTS,
    SMALL = 4096,
    MAX_READS = 256,
};
static const uint64_t longest_ns = UINT64_C(6000000000); /* of one measurement */

int wt_flow_memory(struct wt_doctor *d, struct wt_err *err) {
    uint64_t x = uv_hrtime() | 1;
    d->pattern = malloc(PATTERN);
    bool good = d->pattern != NULL;
    for (size_t i = 0; i < WT_DOCTOR_FLIGHT; i++) {
        d->buffer[i] = malloc(WT_PART);
        good = good && d->buffer[i];
        if (good) /* a first touch would be measured otherwise */
            memset(d->buffer[i], 0xA5, WT_PART);
    }
    if (!good)
        return wt_err_set(err, WT_ENOMEM, "no memory for buffers of %d MiB",
                          (PATTERN + WT_DOCTOR_FLIGHT * WT_PART) >> 20);
    for (size_t i = 0; i < PATTERN; i += sizeof x) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(d->pattern + i, &x, sizeof x);
    }
    return 0;
}

void wt_flow_free(struct wt_doctor *d) {
    free(d->pattern);
    for (size_t i = 0; i < WT_DOCTOR_FLIGHT; i++)
        free(d->buffer[i]);
}

/* What stands at `off` of the probe; `len` bytes from there do not cross a part's end. */
static const uint8_t *expected(const struct wt_doctor *d, uint64_t off) {
    return d->pattern + off % WT_PART + off / WT_PART * SHIFT % SHIFTS;
}

static uint64_t first_wrong(const struct wt_doctor *d, const uint8_t *got, uint64_t off,
                            size_t len) {
    const uint8_t *want = expected(d, off);
    if (memcmp(got, want, len) == 0)
        return UINT64_MAX;
    size_t i = 0;
    while (got[i] == want[i])
        i++;
    return off + i;
}

static void on_done(struct wt_req *req) {
    *(bool *)req->arg = true;
}

int wt_doctor_do(struct wt_doctor *d, struct wt_tier *tier, struct wt_req *req) {
    bool done = false;
    req->done = on_done;
    req->arg = &done;
    int rc = wt_tier_submit(tier, req);
    if (rc < 0)
        return rc;
    while (!done)
        uv_run(&d->loop, UV_RUN_ONCE);
    return req->rc;
}

/* ---- large transfers ---- */

struct run {
    struct wt_doctor *d;
    struct wt_tier *tier;
    struct wt_flow *f;
    struct wt_put *put; /* NULL: reads */
    uint64_t next, end; /* counts on over all rounds */
    uint64_t start_ns;
    unsigned in_flight;
    int rc;
    struct wt_err err;
    struct wt_req req[WT_DOCTOR_FLIGHT];
};

static void fail(struct run *r, int rc, const struct wt_err *err) {
    if (r->rc == 0) {
        r->rc = rc;
        r->err = *err;
    }
}

static void check_read(struct run *r, struct wt_req *req) {
    struct wt_flow *f = r->f;
    if (req->got != req->len) {
        struct wt_err err;
        wt_err_set(&err, WT_ECORRUPT, "%s: %zu of %zu bytes came", f->key, req->got, req->len);
        fail(r, WT_ECORRUPT, &err);
        return;
    }
    uint64_t wrong = f->compare ? first_wrong(r->d, req->buf, req->off, req->len) : UINT64_MAX;
    if (wrong < f->wrong_at)
        f->wrong_at = wrong;
}

static bool over(const struct run *r) {
    return r->rc < 0 || r->next == r->end || wt_doctor_stopped(r->d) ||
           (!r->put && uv_hrtime() - r->start_ns > longest_ns);
}

static void send_next(struct run *r, size_t slot);

static void on_part(struct wt_req *req) {
    struct run *r = req->arg;
    r->in_flight--;
    if (req->rc < 0)
        fail(r, req->rc, &req->err);
    else if (req->op == WT_OP_GET)
        check_read(r, req);
    r->f->moved += req->rc == 0 ? req->len : 0;
    send_next(r, (size_t)(req - r->req));
}

static void send_next(struct run *r, size_t slot) {
    struct wt_req *req = &r->req[slot];
    if (over(r))
        return;
    uint64_t off = r->next % r->f->size, left = r->f->size - off;
    *req = (struct wt_req){.op = r->put ? WT_OP_PUT_WRITE : WT_OP_GET,
                           .key = r->f->key,
                           .put = r->put,
                           .off = off,
                           .len = left < WT_PART ? (size_t)left : WT_PART,
                           .src = expected(r->d, off),
                           .buf = r->d->buffer[slot],
                           .done = on_part,
                           .arg = r};
    int rc = wt_tier_submit(r->tier, req);
    if (rc < 0) {
        fail(r, rc, &req->err);
        return;
    }
    r->next += req->len;
    r->in_flight++;
}

static void run_parts(struct run *r) {
    r->start_ns = uv_hrtime();
    for (size_t i = 0; i < WT_DOCTOR_FLIGHT; i++)
        send_next(r, i);
    while (r->in_flight)
        uv_run(&r->d->loop, UV_RUN_ONCE);
}

static void stop_clock(struct run *r) {
    r->f->seconds = (double)(uv_hrtime() - r->start_ns) / 1e9;
}

static int end_put(struct run *r, enum wt_op op) {
    struct wt_req req = {.op = op, .put = r->put};
    int rc = wt_doctor_do(r->d, r->tier, &req);
    if (rc < 0)
        fail(r, rc, &req.err);
    return r->rc;
}

int wt_flow_write(struct wt_doctor *d, struct wt_tier *tier, struct wt_flow *f,
                  struct wt_err *err) {
    struct run r = {.d = d, .tier = tier, .f = f, .end = f->size};
    struct wt_req open = {.op = WT_OP_PUT_OPEN, .key = f->key, .size = f->size};
    int rc = wt_doctor_do(d, tier, &open);
    if (rc < 0) {
        *err = open.err;
        return rc;
    }
    r.put = open.put;
    run_parts(&r);
    if (r.rc == 0 && r.next < r.end)
        r.rc = wt_err_set(&r.err, WT_ECANCELED, "interrupted");
    end_put(&r, r.rc == 0 ? WT_OP_PUT_COMMIT : WT_OP_PUT_ABORT);
    stop_clock(&r);
    *err = r.err;
    return r.rc;
}

int wt_flow_read(struct wt_doctor *d, struct wt_tier *tier, struct wt_flow *f, struct wt_err *err) {
    struct run r = {.d = d, .tier = tier, .f = f, .end = f->size * f->rounds};
    f->wrong_at = UINT64_MAX;
    run_parts(&r);
    stop_clock(&r);
    *err = r.err;
    return r.rc;
}

/* ---- small reads ---- */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static int read_small(struct wt_doctor *d, struct wt_tier *tier, struct wt_flow *f, uint64_t off,
                      size_t len, struct wt_err *err) {
    struct wt_req req = {
        .op = WT_OP_GET, .key = f->key, .off = off, .buf = d->buffer[0], .len = len};
    int rc = wt_doctor_do(d, tier, &req);
    if (rc < 0) {
        *err = req.err;
        return rc;
    }
    if (req.got != len)
        return wt_err_set(err, WT_ECORRUPT, "%s: %zu of %zu bytes came", f->key, req.got, len);
    uint64_t wrong = f->compare ? first_wrong(d, d->buffer[0], off, len) : UINT64_MAX;
    if (wrong < f->wrong_at)
        f->wrong_at = wrong;
    return 0;
}

int wt_flow_latency(struct wt_doctor *d, struct wt_tier *tier, struct wt_flow *f,
                    struct wt_doctor_tier *t, struct wt_err *err) {
    double us[MAX_READS];
    uint64_t start = uv_hrtime(), places = f->size / SMALL, at = start;
    uint32_t n = 0;
    f->wrong_at = UINT64_MAX;
    while (n < MAX_READS && uv_hrtime() - start < longest_ns / 2 && !wt_doctor_stopped(d)) {
        at = at * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint64_t off = places ? (at >> 33) % places * SMALL : 0;
        size_t len = f->size - off < SMALL ? (size_t)(f->size - off) : SMALL;
        uint64_t before = uv_hrtime();
        int rc = read_small(d, tier, f, off, len, err);
        if (rc < 0)
            return rc;
        us[n++] = (double)(uv_hrtime() - before) / 1e3;
    }
    if (n == 0)
        return 0;
    qsort(us, n, sizeof us[0], by_value);
    t->reads = n;
    t->median_us = us[n / 2];
    t->p99_us = us[n * 99 / 100];
    return 0;
}
