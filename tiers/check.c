/*
 * Checks of a request's arguments, before a backend sees it: one table says what each op needs.
 * A request that fails here is the caller's mistake and is refused at once.
 */
#include "tiers/internal.h"

#include <string.h>

enum { NEED_KEY = 1, NEED_PREFIX = 2, NEED_PUT = 4, NEED_OWNER = 8 };

struct op_row {
    const char *name;
    unsigned needs;
};

static const struct op_row rows[WT_OP_COUNT] = {
    [WT_OP_STAT] = {"stat", NEED_KEY},
    [WT_OP_GET] = {"get", NEED_KEY},
    [WT_OP_MAP] = {"map", NEED_KEY},
    [WT_OP_PUT_OPEN] = {"put open", NEED_KEY},
    [WT_OP_PUT_WRITE] = {"put write", NEED_PUT},
    [WT_OP_PUT_COMMIT] = {"put commit", NEED_PUT},
    [WT_OP_PUT_ABORT] = {"put abort", NEED_PUT},
    [WT_OP_REMOVE] = {"remove", NEED_KEY},
    [WT_OP_LIST] = {"list", NEED_PREFIX},
    [WT_OP_USAGE] = {"usage", 0},
    [WT_OP_PROBE] = {"probe", 0},
    [WT_OP_LOCK] = {"lock", NEED_KEY | NEED_OWNER},
    [WT_OP_UNLOCK] = {"unlock", NEED_KEY | NEED_OWNER},
};

const char *wt_op_name(enum wt_op op) {
    return op >= 0 && op < WT_OP_COUNT ? rows[op].name : "unknown op";
}

static bool good_char(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (c && strchr("._=+%~@-", c));
}

/* One part of a key; `open_end`: the last part of a prefix, which may be empty. */
static const char *part_fault(const char *part, size_t len, bool open_end) {
    if (len == 0)
        return open_end ? NULL : "has an empty part";
    if (len <= 2 && strspn(part, ".") >= len)
        return open_end ? NULL : "has a part that is \".\" or \"..\"";
    for (size_t i = 0; i < len; i++)
        if (!good_char(part[i]))
            return "has a character outside [A-Za-z0-9._=+%~@-/]";
    return NULL;
}

static int check_text(const char *key, bool prefix, struct wt_err *err) {
    size_t len = key ? strnlen(key, WT_KEY_SIZE) : 0;
    if (!key)
        return wt_err_set(err, WT_EINVAL, "no key is given");
    if (len == WT_KEY_SIZE)
        return wt_err_set(err, WT_EINVAL, "key \"%.40s...\" is longer than %d bytes", key,
                          WT_KEY_SIZE - 1);
    for (const char *part = key;; part++) {
        size_t n = strcspn(part, "/");
        const char *fault = part_fault(part, n, prefix && part[n] == '\0');
        if (fault)
            return wt_err_set(err, WT_EINVAL, "key \"%s\" %s", key, fault);
        part += n;
        if (*part == '\0')
            return 0;
    }
}

int wt_key_check(const char *key, struct wt_err *err) {
    return check_text(key, false, err);
}

static int check_put(struct wt_tier *tier, const struct wt_req *req, struct wt_err *err) {
    const struct wt_put *put = req->put;
    if (!put)
        return wt_err_set(err, WT_EINVAL, "no put is given");
    if (put->tier != tier)
        return wt_err_set(err, WT_EINVAL, "the put belongs to another tier");
    if (req->op != WT_OP_PUT_WRITE) {
        if (put->busy)
            return wt_err_set(err, WT_EINVAL, "%s: %u writes are still in flight", put->key,
                              put->busy);
        return 0;
    }
    uint64_t left = req->off < put->size ? put->size - req->off : 0;
    uint64_t want = left < WT_PART ? left : WT_PART;
    if (req->off % WT_PART || req->len == 0 || req->len != want)
        return wt_err_set(err, WT_EINVAL,
                          "%s: a write of %zu bytes at %llu is not a part of %llu bytes", put->key,
                          req->len, (unsigned long long)req->off, (unsigned long long)put->size);
    if (!req->src)
        return wt_err_set(err, WT_EINVAL, "%s: no source is given", put->key);
    if (put->parts[req->off / WT_PART])
        return wt_err_set(err, WT_EINVAL, "%s: the part at %llu is written already", put->key,
                          (unsigned long long)req->off);
    return 0;
}

static int check_get(const struct wt_req *req, struct wt_err *err) {
    if (req->len && !req->buf)
        return wt_err_set(err, WT_EINVAL, "no buffer is given");
    if (req->off > INT64_MAX || req->len > INT64_MAX - req->off)
        return wt_err_set(err, WT_EINVAL, "range %llu + %zu is out of bounds",
                          (unsigned long long)req->off, req->len);
    return 0;
}

static int check_fields(struct wt_tier *tier, const struct wt_req *req, struct wt_err *err) {
    unsigned needs = rows[req->op].needs;
    int rc = 0;
    if (needs & (NEED_KEY | NEED_PREFIX))
        rc = check_text(req->key, (needs & NEED_PREFIX) != 0, err);
    if (rc == 0 && (needs & NEED_PUT))
        rc = check_put(tier, req, err);
    if (rc == 0 && (needs & NEED_OWNER) &&
        (!req->owner || !*req->owner || strlen(req->owner) > 100))
        rc = wt_err_set(err, WT_EINVAL, "a lock needs an owner of 1 to 100 bytes");
    if (rc == 0 && req->op == WT_OP_LOCK && req->ttl_ms == 0)
        rc = wt_err_set(err, WT_EINVAL, "a lock needs a time to live");
    if (rc == 0 && req->op == WT_OP_GET)
        rc = check_get(req, err);
    if (rc == 0 && req->op == WT_OP_LIST && !req->on_entry)
        rc = wt_err_set(err, WT_EINVAL, "a list needs on_entry");
    if (rc == 0 && !req->done)
        rc = wt_err_set(err, WT_EINVAL, "no done callback is given");
    return rc;
}

int tier_check_request(struct wt_tier *tier, struct wt_req *req) {
    if (req->op < 0 || req->op >= WT_OP_COUNT)
        return wt_err_set(&req->err, WT_EINVAL, "unknown op %d", (int)req->op);
    if (tier->closing)
        return wt_err_set(&req->err, WT_ECANCELED, "the tier is closing");
    if (!tier->backend->op[req->op] || (req->op == WT_OP_MAP && !(tier->caps & WT_CAP_MAP)))
        return wt_err_set(&req->err, WT_EUNSUPPORTED, "%s: this tier cannot do it",
                          rows[req->op].name);
    int rc = check_fields(tier, req, &req->err);
    if (rc < 0)
        return rc;
    /* What ends a put gives room back: it is never refused. */
    bool ends = req->op == WT_OP_PUT_COMMIT || req->op == WT_OP_PUT_ABORT;
    if (!ends && tier->out.queued.count >= WT_QUEUE_MAX)
        return wt_err_set(&req->err, WT_EBUSY, "%u requests are waiting already",
                          tier->out.queued.count);
    return 0;
}

uint64_t tier_request_bytes(const struct wt_req *req) {
    switch (req->op) {
    case WT_OP_GET:
    case WT_OP_PUT_WRITE:
        return req->len;
    case WT_OP_PUT_COMMIT:
        return req->put->size; /* it makes them durable */
    default:
        return 0;
    }
}
