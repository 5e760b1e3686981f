/* Time, chance and the course of a run; see sim.h. Without memory the test ends. */
#include "sim.h"

#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CALM_S = 60,
    DRAIN_S = 120,
    REST_S = 120,
    TROUBLE_MIN_S = 30,
    TROUBLE_MAX_S = 120,
    STEPS_MAX = 3000000
};

uint64_t sim_random(struct sim_world *w) {
    uint64_t x = (w->chance += UINT64_C(0x9E3779B97F4A7C15));
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

uint64_t sim_below(struct sim_world *w, uint64_t n) {
    return sim_random(w) % n;
}

uint64_t sim_between(struct sim_world *w, uint64_t low, uint64_t high) {
    return low + sim_below(w, high - low + 1);
}

bool sim_chance(struct sim_world *w, uint64_t per_mille) {
    return sim_below(w, 1000) < per_mille;
}

void sim_note(struct sim_world *w, const void *data, size_t len) {
    uint64_t part[3] = {w->hash, w->now_ns, wt_hash64(data, len)};
    w->hash = wt_hash64(part, sizeof part);
}

static void say(struct sim_world *w, const char *fmt, va_list args) {
    char *line = w->line[w->n_lines++ % SIM_LINES];
    int n = snprintf(line, SIM_LINE, "%10.4f ", (double)w->now_ns / (double)SIM_S);
    vsnprintf(line + n, SIM_LINE - (size_t)n, fmt, args);
    if (w->loud)
        printf("%s\n", line);
}

void sim_say(struct sim_world *w, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    say(w, fmt, args);
    va_end(args);
}

void sim_break(struct sim_world *w, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    if (!w->broken[0]) {
        vsnprintf(w->broken, sizeof w->broken, fmt, args);
        sim_say(w, "BROKEN: %s", w->broken);
    }
    va_end(args);
}

/* ---- events ---- */

static bool sooner(const struct sim_event *a, const struct sim_event *b) {
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap(struct sim_event *a, struct sim_event *b) {
    struct sim_event t = *a;
    *a = *b;
    *b = t;
}

void sim_at(struct sim_world *w, uint64_t after_ns, void (*run)(struct sim_world *w, void *arg),
            void *arg) {
    if (wt_grow(&w->event, &w->cap_events, w->n_events + 1, sizeof *w->event) < 0)
        abort();
    size_t i = w->n_events++;
    w->event[i] = (struct sim_event){w->now_ns + after_ns, ++w->order, run, arg};
    for (; i > 0 && sooner(&w->event[i], &w->event[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&w->event[i], &w->event[(i - 1) / 2]);
}

static struct sim_event next_event(struct sim_world *w) {
    struct sim_event first = w->event[0];
    w->event[0] = w->event[--w->n_events];
    for (size_t i = 0, down; (down = 2 * i + 1) < w->n_events; i = down) {
        if (down + 1 < w->n_events && sooner(&w->event[down + 1], &w->event[down]))
            down++;
        if (!sooner(&w->event[down], &w->event[i]))
            break;
        swap(&w->event[i], &w->event[down]);
    }
    return first;
}

/* ---- one step ---- */

/* A daemon dies between any two events: where was drawn before. */
static void maybe_kill(struct sim_world *w) {
    if (!w->trouble || !w->crash_at || w->steps < w->crash_at)
        return;
    struct sim_process *p = sim_active(w);
    w->crash_at = w->steps + sim_between(w, 1, 4000);
    if (p)
        sim_host_kill(p->host, sim_chance(w, 300));
}

static void step(struct sim_world *w) {
    struct sim_process *p = NULL;
    uint64_t due = w->n_events ? w->event[0].at_ns : UINT64_MAX;
    for (struct sim_process *q = w->processes; q; q = q->next) {
        uint64_t at = sim_process_due_ns(q);
        if (at < due) {
            due = at;
            p = q;
        }
    }
    if (due == UINT64_MAX) {
        sim_break(w, "nothing is left to happen");
        return;
    }
    if (due > w->now_ns)
        w->now_ns = due;
    w->steps++;
    if (p) {
        sim_process_turn(p);
    } else {
        struct sim_event e = next_event(w);
        e.run(w, e.arg);
    }
    maybe_kill(w);
}

static void run_for(struct sim_world *w, uint64_t ns) {
    uint64_t end = w->now_ns + ns;
    while (w->now_ns < end && !w->broken[0]) {
        step(w);
        if (w->steps > STEPS_MAX)
            sim_break(w, "it does not come to an end");
    }
}

/* ---- a run ---- */

/* A tier holds from less than one shard to more than all of them. */
static void make_stores(struct sim_world *w, uint64_t bytes) {
    static const char *const names[SIM_TIERS] = {"cold", "warm", "hot"};
    static const uint64_t latency[SIM_TIERS] = {8 * SIM_MS, 2 * SIM_MS, SIM_MS / 4};
    for (uint32_t t = 0; t < SIM_TIERS; t++) {
        struct sim_store *s = &w->store[t];
        *s = (struct sim_store){.w = w,
                                .tier = t,
                                .latency_ns = latency[t],
                                .is_volatile = t == SIM_TIERS - 1,
                                .faults = sim_below(w, 4) ? sim_below(w, 30) : 0};
        snprintf(w->tier[t].name, sizeof w->tier[t].name, "%s", names[t]);
        snprintf(w->tier[t].url, sizeof w->tier[t].url, "sim:%u", t);
        if (t == 0)
            continue;
        uint64_t capacity = w->shard_size / 2 + sim_below(w, bytes * 3 / 2);
        w->tier[t].capacity = capacity;
        /* Half of the servers have more room than they may use; others refuse at the limit. */
        s->capacity = sim_chance(w, 500) ? capacity : capacity * 2;
    }
}

static void make_options(struct sim_world *w) {
    snprintf(w->timeout, sizeof w->timeout, "%ums", (unsigned)sim_between(w, 300, 4000));
    snprintf(w->options, sizeof w->options,
             "lock_ttl = %us\ntick = %ums\njob_expiry = %us\nsnapshot_interval = %us\n"
             "policy { half_life = %us min_stay = %us margin = %u }\n"
             "mover { moves = %u bytes_in_flight = 16MiB queue = %u retries = %u backoff = %ums "
             "backoff_max = 5s }\n"
             "scrub { rate = %uKiB every = %us }\n",
             (unsigned)sim_between(w, 2, 15), (unsigned)sim_between(w, 200, 2000),
             (unsigned)sim_between(w, 5, 20), (unsigned)sim_between(w, 1, 20),
             (unsigned)sim_between(w, 10, 600), (unsigned)sim_below(w, 10),
             (unsigned)sim_below(w, 2), (unsigned)sim_between(w, 1, 2),
             (unsigned)sim_between(w, 1, 50), (unsigned)sim_below(w, 6),
             (unsigned)sim_between(w, 10, 1000),
             (unsigned)(w->shard_size > WT_PART ? 4096 : sim_between(w, 100, 1000)),
             (unsigned)sim_between(w, 5, 60));
}

static void make_world(struct sim_world *w, uint64_t seed, const char *folder, bool loud) {
    *w = (struct sim_world){.seed = seed, .chance = seed, .loud = loud, .now_ns = SIM_S};
    snprintf(w->folder, sizeof w->folder, "%s", folder);
    w->shard_size = sim_chance(w, 20) ? WT_PART + 12345 : UINT64_C(1) << sim_between(w, 10, 14);
    w->shards_begin = w->shard_size > WT_PART ? 3 : sim_between(w, 1, 40);
    make_stores(w, w->shards_begin * w->shard_size);
    make_options(w);
    w->n_jobs = (unsigned)sim_between(w, 1, SIM_JOBS);
    w->n_hosts = (unsigned)sim_between(w, 1, SIM_HOSTS);
    sim_pack(w, 1);
    for (unsigned i = 0; i < w->n_hosts; i++) {
        sim_host_init(w, i);
        sim_host_start(&w->host[i]);
    }
}

bool sim_run(struct sim_world *w, uint64_t seed, const char *folder, bool loud) {
    make_world(w, seed, folder, loud);
    sim_jobs_start(w);
    sim_trouble_start(w);
    run_for(w, sim_between(w, TROUBLE_MIN_S, TROUBLE_MAX_S) * SIM_S);
    sim_trouble_end(w);
    run_for(w, CALM_S * SIM_S);
    sim_jobs_stop(w);
    run_for(w, DRAIN_S * SIM_S);
    w->changes = w->count.commits + w->count.removes;
    run_for(w, REST_S * SIM_S);
    if (!w->broken[0])
        sim_check_end(w);
    return w->broken[0] == '\0';
}

void sim_run_out(struct sim_world *w) {
    while (w->processes || w->n_events)
        step(w);
}

void sim_free(struct sim_world *w) {
    w->jobs_over = true;
    sim_trouble_end(w);
    sim_jobs_free(w);
    sim_hosts_free(w);
    for (uint32_t t = 0; t < SIM_TIERS; t++)
        sim_store_free(&w->store[t]);
    sim_data_free(w);
    free(w->event);
}
