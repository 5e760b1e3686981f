/*
 * fault: requests fail, as often as is asked for.
 *
 *   fault read=IO:0.01 read=CORRUPT:every100 commit=FULL:first3 probe=HANG seed=7
 *
 * OP=KIND[:WHEN]. KIND is an error's name (it ends with that error and the backend never sees it),
 * HANG (no answer until its deadline), and of reads CORRUPT (one bit of what was read is flipped,
 * silently) and SHORT (fewer bytes than there are). WHEN is a probability, everyN, firstN, or
 * nothing: always. Several rules for one op are asked in their order, the first that hits counts.
 * The same seed and order of requests give the same faults. Failures: bad text.
 */
#include "tiers/filter/filter.h"

#include "core/conf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum fault_kind { FAULT_ERROR, FAULT_HANG, FAULT_CORRUPT, FAULT_SHORT };
enum fault_when { WHEN_ALWAYS, WHEN_CHANCE, WHEN_EVERY, WHEN_FIRST };

struct rule {
    enum wt_op op;
    enum fault_kind kind;
    int code; /* of FAULT_ERROR */
    enum fault_when when;
    double chance;
    uint64_t n;
    uint64_t count; /* requests that it was asked about */
};

struct fault {
    struct rule rule[WT_FILTER_PARAMS];
    size_t n;
    uint64_t seed;
};

/* ---- from text ---- */

#define NAME(name, value, blame, text) #name,
static const char *const kinds[] = {WT_ERR_MAP(NAME) "HANG", "SHORT"};
#undef NAME
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static int error_code(const char *name) {
#define CODE(e, value, blame, text)                                                                \
    if (strcmp(name, #e) == 0)                                                                     \
        return value;
    WT_ERR_MAP(CODE)
#undef CODE
    return 0;
}

static int parse_kind(struct rule *r, const char *name, struct wt_err *err) {
    r->code = error_code(name);
    if (strcmp(name, "HANG") == 0)
        r->kind = FAULT_HANG;
    else if (strcmp(name, "SHORT") == 0)
        r->kind = FAULT_SHORT;
    else if (r->code == WT_ECORRUPT)
        r->kind = FAULT_CORRUPT;
    else if (r->code == 0) {
        const char *nearest = wt_nearest(name, kinds, KINDS);
        return wt_err_set(err, WT_EINVAL, "unknown fault '%.60s'%s%s%s", name,
                          nearest ? "; did you mean '" : "", nearest ? nearest : "",
                          nearest ? "'?" : "; as IO, TIMEDOUT, MISSING, FULL, HANG");
    }
    if (r->op != WT_OP_GET && (r->kind == FAULT_SHORT || r->kind == FAULT_CORRUPT))
        return wt_err_set(err, WT_EINVAL, "%s is a fault of read alone", name);
    return 0;
}

static int parse_when(struct rule *r, const char *text, struct wt_err *err) {
    char *end;
    errno = 0;
    bool every = strncmp(text, "every", 5) == 0, first = strncmp(text, "first", 5) == 0;
    if (every || first) {
        r->when = every ? WHEN_EVERY : WHEN_FIRST;
        r->n = strtoull(text + 5, &end, 10);
        if (text[5] >= '0' && text[5] <= '9' && !*end && !errno && r->n)
            return 0;
    } else {
        r->when = WHEN_CHANCE;
        r->chance = strtod(text, &end);
        if (end != text && !*end && r->chance >= 0 && r->chance <= 1)
            return 0;
    }
    return wt_err_set(err, WT_EINVAL, "'%.60s' is not a probability (0..1), everyN or firstN",
                      text);
}

static int parse_rule(struct rule *out, const struct wt_filter_param *p, struct wt_err *err) {
    struct rule r = {.op = wt_filter_op(p->name)};
    char kind[WT_FILTER_TEXT];
    snprintf(kind, sizeof kind, "%s", p->value);
    char *colon = strchr(kind, ':');
    if (colon)
        *colon = '\0';
    int rc = parse_kind(&r, kind, err);
    if (rc == 0 && colon)
        rc = parse_when(&r, colon + 1, err);
    if (rc < 0)
        return wt_err_wrap(err, "%s=%s", p->name, p->value);
    *out = r;
    return 0;
}

static int fault_open(const struct wt_filter_params *params, void **state, struct wt_err *err) {
    struct fault *f = calloc(1, sizeof *f);
    if (!f)
        return wt_err_set(err, WT_ENOMEM, "out of memory");
    int rc = 0;
    for (size_t i = 0; i < params->n && rc == 0; i++) {
        const struct wt_filter_param *p = &params->param[i];
        rc = strcmp(p->name, "seed") == 0 ? wt_filter_number(p, &f->seed, err)
                                          : parse_rule(&f->rule[f->n++], p, err);
    }
    if (rc < 0)
        free(f);
    else
        *state = f;
    return rc;
}

/* ---- at work ---- */

static uint64_t draw(const struct fault *f, const struct rule *r, uint64_t stream) {
    return wt_filter_random(f->seed, (uint64_t)(r - f->rule) * 2 + stream, r->count);
}

static bool hits(const struct fault *f, struct rule *r) {
    r->count++;
    switch (r->when) {
    case WHEN_CHANCE:
        return (double)(draw(f, r, 0) >> 11) * 0x1p-53 < r->chance;
    case WHEN_EVERY:
        return r->count % r->n == 0;
    case WHEN_FIRST:
        return r->count <= r->n;
    default:
        return true;
    }
}

/* The first rule for this op, of those that act before (or after) the backend, that hits. */
static struct rule *hit(struct fault *f, enum wt_op op, bool after) {
    for (size_t i = 0; i < f->n; i++) {
        struct rule *r = &f->rule[i];
        bool acts_after = r->kind == FAULT_CORRUPT || r->kind == FAULT_SHORT;
        if (r->op == op && acts_after == after && hits(f, r))
            return r;
    }
    return NULL;
}

static enum wt_verdict fault_down(void *state, struct wt_req *req) {
    const struct rule *r = hit(state, req->op, false);
    if (!r)
        return WT_PASS;
    if (r->kind == FAULT_HANG) {
        req->held_ns = UINT64_MAX;
        return WT_HOLD;
    }
    req->rc = wt_err_set(&req->err, r->code, "%s (made by the fault filter)", wt_err_text(r->code));
    return WT_END;
}

static enum wt_verdict fault_up(void *state, struct wt_req *req) {
    struct fault *f = state;
    if (req->op != WT_OP_GET || req->rc != 0 || req->got == 0)
        return WT_PASS;
    const struct rule *r = hit(f, req->op, true);
    if (!r)
        return WT_PASS;
    uint64_t random = draw(f, r, 1);
    if (r->kind == FAULT_SHORT)
        req->got = (size_t)(random % req->got);
    else
        ((uint8_t *)req->buf)[random / 8 % req->got] ^= (uint8_t)(1u << (random % 8));
    return WT_PASS;
}

static const char *const names[] = {WT_FILTER_OP_NAMES, "seed", NULL};

const struct wt_filter_ops wt_filter_fault = {
    .name = "fault",
    .params = names,
    .open = fault_open,
    .close = free,
    .down = fault_down,
    .up = fault_up,
};
