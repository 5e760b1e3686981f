/* Encoding and decoding for the OSD's "lock" class; see lock_wire.h. Lengths are checked before
 * use. */
#include "tiers/rados/lock_wire.h"

#include <string.h>

enum { EXCLUSIVE = 1, MAY_RENEW = 1 };

/* ---- out ---- */

struct writer {
    struct wt_bytes *out;
    size_t length_at;
    int rc;
};

static void put(struct writer *w, const void *data, size_t len) {
    if (w->rc == 0)
        w->rc = wt_bytes_add(w->out, data, len);
}

static void put8(struct writer *w, uint8_t v) {
    put(w, &v, 1);
}

static void put32(struct writer *w, uint32_t v) {
    uint8_t b[4];
    wt_put32(b, v);
    put(w, b, sizeof b);
}

static void put64(struct writer *w, uint64_t v) {
    uint8_t b[8];
    wt_put64(b, v);
    put(w, b, sizeof b);
}

static void put_text(struct writer *w, const char *text) {
    size_t len = strlen(text);
    put32(w, (uint32_t)len);
    put(w, text, len);
}

static struct writer begin(struct wt_bytes *out) {
    struct writer w = {.out = out};
    put8(&w, 1);
    put8(&w, 1);
    w.length_at = out->len;
    put32(&w, 0);
    put_text(&w, RADOS_LOCK_NAME);
    return w;
}

static int end(struct writer *w) {
    if (w->rc == 0)
        wt_put32(w->out->data + w->length_at, (uint32_t)(w->out->len - w->length_at - 4));
    return w->rc;
}

int rados_lock_args(struct wt_bytes *out, const char *owner, uint64_t ttl_ms) {
    struct writer w = begin(out);
    uint64_t seconds = ttl_ms / 1000;
    put8(&w, EXCLUSIVE);
    put_text(&w, owner);
    put_text(&w, ""); /* tag */
    put_text(&w, ""); /* description */
    put32(&w, seconds < UINT32_MAX / 4 ? (uint32_t)seconds : UINT32_MAX / 4);
    put32(&w, (uint32_t)(ttl_ms % 1000) * 1000000);
    put8(&w, MAY_RENEW);
    return end(&w);
}

int rados_unlock_args(struct wt_bytes *out, const char *owner) {
    struct writer w = begin(out);
    put_text(&w, owner);
    return end(&w);
}

int rados_break_args(struct wt_bytes *out, const struct rados_locker *locker) {
    struct writer w = begin(out);
    put8(&w, locker->entity_type);
    put64(&w, locker->entity);
    put_text(&w, locker->owner);
    return end(&w);
}

int rados_lock_info_args(struct wt_bytes *out) {
    struct writer w = begin(out);
    return end(&w);
}

/* ---- in ---- */

struct reader {
    const uint8_t *at, *end;
    bool bad;
};

static const uint8_t *take(struct reader *r, size_t len) {
    if (r->bad || (size_t)(r->end - r->at) < len) {
        r->bad = true;
        return NULL;
    }
    r->at += len;
    return r->at - len;
}

static uint32_t take32(struct reader *r) {
    const uint8_t *p = take(r, 4);
    return p ? wt_get32(p) : 0;
}

/* The inside of a structure; r goes on behind it. */
static struct reader take_struct(struct reader *r) {
    take(r, 2);
    uint32_t len = take32(r);
    const uint8_t *p = take(r, len);
    return p ? (struct reader){p, p + len, false} : (struct reader){NULL, NULL, true};
}

static void take_text(struct reader *r, char *out, size_t size) {
    uint32_t len = take32(r);
    const uint8_t *p = take(r, len);
    size_t n = len < size - 1 ? len : size - 1;
    if (p)
        memcpy(out, p, n);
    out[p ? n : 0] = '\0';
}

int rados_lock_info(const void *bytes, size_t len, struct rados_locker *locker, bool *held) {
    struct reader all = {bytes, (const uint8_t *)bytes + len, false};
    struct reader reply = take_struct(&all);
    struct rados_locker l = {0};
    uint32_t n = take32(&reply);
    if (n > 0) {
        struct reader id = take_struct(&reply);
        const uint8_t *entity = take(&id, 9);
        if (entity) {
            l.entity_type = entity[0];
            l.entity = wt_get64(entity + 1);
        }
        take_text(&id, l.owner, sizeof l.owner);
        struct reader info = take_struct(&reply);
        l.expires = take32(&info);
        if (id.bad || info.bad)
            return WT_ECORRUPT;
    }
    if (reply.bad)
        return WT_ECORRUPT;
    *held = n > 0;
    *locker = l;
    return 0;
}
