/*
 * What figures and facts mean. Nothing is asked here.
 *
 * A note is worth knowing and may be meant; what is wrong is not meant by anybody who wants the
 * tiers to do their work.
 */
#include "core/bytes.h"
#include "tools/doctor/doctor.h"

#include <stdlib.h>
#include <string.h>

enum { CLOCK_OFF_MS = 2000, COMPARED_BYTES = 1 << 20 };
/* Above `even` a tier is not faster than the one below, above `slower` it is plainly slower:
 * figures of one run swing. */
static const double even = 1.1, slower = 2.0;

/* ---- a server's settings ---- */

static void judge_maxmemory(struct wt_doctor *d, const struct wt_doctor_tier *t,
                            const struct wt_doctor_fact *f) {
    if (strcmp(f->value, "0") == 0)
        wt_doctor_find(d, WT_DOCTOR_WRONG, WT_DOCTOR_MAXMEMORY, t->opts->name, NULL,
                       "Redis%s%s has no maxmemory: it grows until the kernel kills it",
                       f->where[0] ? " " : "", f->where);
}

static void judge_policy(struct wt_doctor *d, const struct wt_doctor_tier *t,
                         const struct wt_doctor_fact *f) {
    if (strcmp(f->value, "noeviction") != 0)
        wt_doctor_find(d, WT_DOCTOR_WRONG, WT_DOCTOR_EVICTS, t->opts->name, NULL,
                       "Redis%s%s has maxmemory-policy %s: parts of objects will vanish",
                       f->where[0] ? " " : "", f->where, f->value);
}

static void judge_aof(struct wt_doctor *d, const struct wt_doctor_tier *t,
                      const struct wt_doctor_fact *f) {
    if (strcmp(f->value, "0") != 0)
        wt_doctor_find(d, WT_DOCTOR_NOTE, WT_DOCTOR_PERSISTS, t->opts->name, NULL,
                       "Redis%s%s writes all that it gets to a disk", f->where[0] ? " " : "",
                       f->where);
}

static void judge_clock(struct wt_doctor *d, const struct wt_doctor_tier *t,
                        const struct wt_doctor_fact *f) {
    long off = strtol(f->value, NULL, 10);
    double seconds = (double)(off < 0 ? -off : off) / 1000;
    if (seconds > d->host.clock_off_s)
        d->host.clock_off_s = seconds;
    if (seconds * 1000 > CLOCK_OFF_MS)
        wt_doctor_find(d, WT_DOCTOR_WRONG, WT_DOCTOR_CLOCK, t->opts->name, NULL,
                       "the server's clock is %.1f s %s this machine's", seconds,
                       off < 0 ? "behind" : "ahead of");
}

static void judge_facts(struct wt_doctor *d, const struct wt_doctor_tier *t) {
    static const struct {
        const char *name;
        void (*judge)(struct wt_doctor *d, const struct wt_doctor_tier *t,
                      const struct wt_doctor_fact *f);
    } judges[] = {{"maxmemory", judge_maxmemory},
                  {"maxmemory_policy", judge_policy},
                  {"aof_enabled", judge_aof},
                  {"clock_ms", judge_clock}};
    for (size_t i = 0; i < t->n_facts; i++)
        for (size_t k = 0; k < sizeof judges / sizeof judges[0]; k++)
            if (strcmp(t->fact[i].name, judges[k].name) == 0)
                judges[k].judge(d, t, &t->fact[i]);
}

/* ---- room ---- */

static void judge_capacity(struct wt_doctor *d, const struct wt_doctor_tier *t) {
    uint64_t asked = t->opts->capacity, there = t->capacity;
    char a[WT_SIZE_TEXT], b[WT_SIZE_TEXT];
    if (!asked || !t->usage_known)
        return;
    if (t->is_file)
        there = t->place.available < UINT64_MAX - t->used ? t->used + t->place.available : 0;
    if (there == 0 || there >= asked)
        return;
    wt_doctor_find(d, WT_DOCTOR_NOTE, WT_DOCTOR_CAPACITY, t->opts->name, NULL,
                   "capacity = %s, but there is room for %s only", wt_size_format(asked, a),
                   wt_size_format(there, b));
}

void wt_judge_tier(struct wt_doctor *d, const struct wt_doctor_tier *t) {
    judge_facts(d, t);
    judge_capacity(d, t);
}

/* ---- which tier is faster ---- */

static double cost_us(const struct wt_doctor_tier *t) {
    return t->median_us + COMPARED_BYTES / t->read_rate * 1e6;
}

/* Two folders of one disk are as fast as each other. */
static bool same_device(const struct wt_doctor_tier *a, const struct wt_doctor_tier *b) {
    return a->is_file && b->is_file && a->place.device == b->place.device;
}

static bool measured(const struct wt_doctor_tier *t) {
    return t->reads && t->read_rate > 0;
}

static void compare(struct wt_doctor *d, const struct wt_doctor_tier *below,
                    const struct wt_doctor_tier *above) {
    double ratio = cost_us(above) / cost_us(below);
    bool same = same_device(below, above);
    if (same)
        wt_doctor_find(d, WT_DOCTOR_NOTE, WT_DOCTOR_SAME_DEVICE, above->opts->name, NULL,
                       "it lies in the same file system as %s: a copy there is no faster",
                       below->opts->name);
    if (same || ratio < even)
        return;
    wt_doctor_find(
        d, ratio < slower ? WT_DOCTOR_NOTE : WT_DOCTOR_WRONG, WT_DOCTOR_NOT_FASTER,
        above->opts->name, NULL,
        "it is not faster than %s: 1 MiB takes %.2f ms here (%.0f us + 1 MiB at %.0f MB/s), "
        "%.2f ms there (%.0f us, %.0f MB/s)",
        below->opts->name, cost_us(above) / 1e3, above->median_us, above->read_rate / 1e6,
        cost_us(below) / 1e3, below->median_us, below->read_rate / 1e6);
}

/* Each with the next one below that could be measured. */
void wt_judge_order(struct wt_doctor *d) {
    const struct wt_doctor_tier *below = NULL;
    for (size_t i = 0; i < d->n_tiers; i++) {
        const struct wt_doctor_tier *t = &d->tier[i];
        if (!measured(t))
            continue;
        if (below)
            compare(d, below, t);
        below = t;
    }
}
