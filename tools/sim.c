/* `wafertier sim`: the daemon's policy on a virtual clock, beside the optimum. */
#include "core/bytes.h"
#include "tools/sim/result.h"
#include "tools/verb.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sim_args {
    uint64_t jobs, shards, epochs, seed, shard_size, prefetch, epoch_ms, react_ms;
    const char *cache, *bandwidth, *trace;
    int sizes, offset, format;
    bool json;
};

enum { FORMAT_TEXT, FORMAT_ORACLE };
#define AT(member) .offset = offsetof(struct sim_args, member)

static const struct wt_arg args[] = {
    {.name = "jobs",
     .letter = 'j',
     .type = WT_ARG_COUNT,
     AT(jobs),
     .value = "N",
     .min = 1,
     .max = WT_HORIZON_JOBS,
     .help = "jobs that read all shards in orders of their own (1)"},
    {.name = "shards",
     .letter = 'n',
     .type = WT_ARG_COUNT,
     AT(shards),
     .value = "N",
     .min = 1,
     .max = 100000000,
     .help = "shards of the data set (1000)"},
    {.name = "epochs",
     .letter = 'e',
     .type = WT_ARG_COUNT,
     AT(epochs),
     .value = "N",
     .min = 1,
     .max = 100000,
     .help = "epochs of each job (12)"},
    {.name = "cache",
     .letter = 'c',
     .type = WT_ARG_TEXT,
     AT(cache),
     .value = "PART,...",
     .help = "capacity of each tier above cold, from the lowest, as part of all bytes (0.25)"},
    {.name = "sizes",
     .type = WT_ARG_CHOICE,
     AT(sizes),
     .value = "even|lognormal",
     .help = "sizes of shards (even); lognormal: sigma 0.5"},
    {.name = "shard-size",
     .type = WT_ARG_SIZE,
     AT(shard_size),
     .value = "SIZE",
     .min = 1,
     .max = UINT64_C(1) << 40,
     .help = "size of a shard (64MiB); lognormal: its median"},
    {.name = "offset",
     .type = WT_ARG_CHOICE,
     AT(offset),
     .value = "random|none",
     .help = "when jobs begin: at random within the time of an epoch (random), or together"},
    {.name = "seed",
     .letter = 's',
     .type = WT_ARG_COUNT,
     AT(seed),
     .value = "N",
     .help = "of orders, sizes and begins (1): the same seed gives the same figures"},
    {.name = "bandwidth",
     .letter = 'b',
     .type = WT_ARG_TEXT,
     AT(bandwidth),
     .value = "RATE,...",
     .help =
         "of each tier from cold on: free, SIZE a second, or 2x: so many times what the optimum "
         "needs of cold (free)"},
    {.name = "epoch-time",
     .type = WT_ARG_TIME,
     AT(epoch_ms),
     .value = "TIME",
     .min = 1000,
     .max = UINT64_C(1) << 40,
     .help = "time in which a job that never waits reads all (1h)"},
    {.name = "prefetch",
     .type = WT_ARG_COUNT,
     AT(prefetch),
     .value = "N",
     .min = 1,
     .max = 1024,
     .help = "reads that a job begins before it needs them (1; 4 with limited bandwidth)"},
    {.name = "react",
     .type = WT_ARG_TIME,
     AT(react_ms),
     .value = "TIME",
     .help = "time that passes until a decision takes effect (0s)"},
    {.name = "trace",
     .letter = 't',
     .type = WT_ARG_TEXT,
     AT(trace),
     .value = "FILE",
     .help = "instead of jobs: requests from a file, of which nothing is known before"},
    {.name = "format",
     .type = WT_ARG_CHOICE,
     AT(format),
     .value = "text|oracle",
     .help = "text: time, object and size a line; oracle: records of 24 bytes {u32 time, u64 "
             "object, u32 size, i64 next} (text)"},
    {.name = "json", .type = WT_ARG_FLAG, AT(json), .help = "print JSON"},
};

/* ---- lists of the command line ---- */

static int parse_cache(const char *text, uint64_t bytes, struct wt_world_conf *c,
                       struct wt_err *err) {
    const char *p = text;
    c->n_tiers = 1;
    for (;;) {
        char *end;
        double part = isdigit((unsigned char)*p) || *p == '.' ? strtod(p, &end) : NAN;
        if (!(part >= 0 && part <= 1) || (*end && *end != ',') || c->n_tiers == WT_POLICY_TIERS)
            return wt_err_set(err, WT_EINVAL,
                              "--cache %s: give 1 to %d parts between 0 and 1, like 0.2,0.05", text,
                              WT_POLICY_TIERS - 1);
        c->capacity[c->n_tiers++] = (uint64_t)llround(part * (double)bytes);
        if (!*end)
            return 0;
        p = end + 1;
    }
}

/* need: what the optimum takes of cold, bytes a second. */
static int parse_rate(const char *word, double need, double *rate, struct wt_err *err) {
    char *end;
    uint64_t size;
    double times = strtod(word, &end);
    *rate = 0;
    if (strcmp(word, "free") == 0)
        return 0;
    if (end != word && strcmp(end, "x") == 0 && times > 0 && times < 1e9)
        *rate = times * (need > 1 ? need : 1);
    else if (wt_size_parse(word, &size, NULL) == 0 && size > 0)
        *rate = (double)size;
    else
        return wt_err_set(err, WT_EINVAL, "--bandwidth %s: must be free, a size or like 2x", word);
    return 0;
}

static int parse_bandwidth(const char *text, double need, struct wt_world_conf *c,
                           struct wt_err *err) {
    char word[32];
    for (uint32_t t = 0; *text; t++) {
        size_t len = strcspn(text, ",");
        if (t == c->n_tiers || len >= sizeof word)
            return wt_err_set(err, WT_EINVAL, "--bandwidth: give at most %u rates, for cold first",
                              c->n_tiers);
        memcpy(word, text, len);
        word[len] = '\0';
        int rc = parse_rate(word, need, &c->bandwidth[t], err);
        if (rc < 0)
            return rc;
        text += len + (text[len] == ',');
    }
    return 0;
}

/* ---- a simulation ---- */

/* What the daemon uses by default, but that a tier may be filled to the last byte: the optimum that
 * it is held against may, too. */
static struct wt_world_conf usual(const struct sim_args *a) {
    return (struct wt_world_conf){.react = (double)a->react_ms / 1000,
                                  .policy = {.cold_below = 0.01,
                                             .hot_above = 0.1,
                                             .percentile = 0.95,
                                             .high = 1,
                                             .low = 1,
                                             .beat = 1.1,
                                             .margin = 1}};
}

static uint64_t cache_of(const struct wt_world_conf *c) {
    uint64_t sum = 0;
    for (uint32_t t = 1; t < c->n_tiers; t++)
        sum += c->capacity[t];
    return sum;
}

static struct wt_requests requests_of(const struct wt_sim_load *load) {
    return (struct wt_requests){.object = load->object,
                                .n = load->n,
                                .size = load->size,
                                .objects = load->objects,
                                .from = load->from};
}

static struct wt_sim_mix mix_of(const struct sim_args *a) {
    bool busy = a->bandwidth && strncmp(a->bandwidth, "free", 4) != 0;
    return (struct wt_sim_mix){.jobs = (uint32_t)a->jobs,
                               .shards = (uint32_t)a->shards,
                               .epochs = a->epochs,
                               .seed = a->seed,
                               .mean = a->shard_size,
                               .sizes = a->sizes,
                               .offset = a->offset,
                               .prefetch = a->prefetch ? (uint32_t)a->prefetch
                                           : busy      ? 4
                                                       : 1,
                               .epoch_s = (double)a->epoch_ms / 1000};
}

static int compare(const struct wt_sim_load *load, struct wt_sim_result *r, struct wt_err *err) {
    struct wt_requests q = requests_of(load);
    int rc = 0;
    for (int p = 0; p < WT_OFFLINE_COUNT && rc == 0; p++)
        rc = wt_offline_run((enum wt_offline_policy)p, &q, r->cache, &r->other[p], err);
    return rc;
}

static int simulate_jobs(const struct sim_args *a, struct wt_world_conf *conf,
                         struct wt_sim_load *load, struct wt_sim_result *r, struct wt_err *err) {
    struct wt_sim_mix mix = mix_of(a);
    struct wt_world w = {0};
    struct wt_offline best = {0};
    int rc = wt_sim_mix_sizes(&mix, load, err);
    if (rc == 0)
        rc = parse_cache(a->cache, load->bytes, conf, err);
    if (rc == 0)
        rc = wt_sim_mix_requests(&mix, load, err);
    r->seconds = wt_sim_mix_seconds(&mix, load);
    struct wt_requests q = requests_of(load);
    if (rc == 0 && strchr(a->bandwidth, 'x'))
        rc = wt_offline_run(WT_BOUND, &q, cache_of(conf), &best, err);
    if (rc == 0)
        rc = parse_bandwidth(a->bandwidth, (double)(best.bytes - best.hit_bytes) / r->seconds, conf,
                             err);
    if (rc == 0)
        rc = wt_world_init(&w, conf, load->size, load->objects, err);
    if (rc == 0)
        rc = wt_sim_run_mix(&mix, &w, load, err);
    r->count = w.count;
    if (w.foresight)
        wt_foresight_stats(w.foresight, &r->foresight);
    r->jobs = mix.jobs;
    r->churns = true;
    r->epochs = (double)(load->n - load->from) / load->objects;
    wt_world_free(&w);
    return rc;
}

static int simulate_trace(const struct sim_args *a, struct wt_world_conf *conf,
                          struct wt_sim_load *load, struct wt_sim_result *r, struct wt_err *err) {
    struct wt_world w = {0};
    int rc = wt_sim_load_trace(a->trace, a->format == FORMAT_ORACLE, load, err);
    if (rc == 0)
        rc = parse_cache(a->cache, load->bytes, conf, err);
    if (rc == 0)
        rc = wt_world_init(&w, conf, load->size, load->objects, err);
    if (rc == 0)
        rc = wt_sim_run_trace(&w, load, err);
    r->count = w.count;
    wt_world_free(&w);
    return rc;
}

static int simulate(const struct sim_args *a, struct wt_err *err) {
    struct wt_world_conf conf = usual(a);
    struct wt_sim_load load = {0};
    struct wt_sim_result r = {0};
    int rc = a->trace ? simulate_trace(a, &conf, &load, &r, err)
                      : simulate_jobs(a, &conf, &load, &r, err);
    r.cache = cache_of(&conf);
    r.n_tiers = conf.n_tiers;
    r.bandwidth = conf.bandwidth[0];
    r.bytes = load.bytes;
    r.shards = load.objects;
    r.requests = load.n;
    if (rc == 0)
        rc = compare(&load, &r, err);
    if (rc == 0 && a->json)
        rc = wt_sim_print_json(&r, stdout, err);
    else if (rc == 0)
        wt_sim_print(&r, stdout);
    wt_sim_load_free(&load);
    return rc;
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct sim_args a = {.jobs = 1,
                         .shards = 1000,
                         .epochs = 12,
                         .seed = 1,
                         .shard_size = 64 << 20,
                         .epoch_ms = 3600000,
                         .cache = "0.25",
                         .bandwidth = "free"};
    struct wt_operands operands;
    struct wt_err err = {0};
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (operands.n)
        return wt_verb_usage(verb, "it takes options only");
    int rc = simulate(&a, &err);
    if (rc == WT_EINVAL)
        return wt_verb_usage(verb, "%s", err.text);
    return rc < 0 ? wt_verb_fail(verb, &err) : WT_EXIT_OK;
}

const struct wt_verb wt_verb_sim = {
    .name = "sim",
    .summary = "the daemon's policy on a virtual clock, beside the optimum",
    .operands = "",
    .about =
        "Runs the policy of wafertierd over jobs of known order, or over a trace, with a clock "
        "and tiers that are simulated, and prints what leaves the cold tier, by readers and "
        "by copies together, beside the offline optimum, LRU, LFU and a fixed set on the same "
        "requests. The first quarter of the requests warms up and is not counted.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
