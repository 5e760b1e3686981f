/*
 * bench/loader: the loader against the limits of the machine under it.
 *
 *   bench_loader FOLDER DATASET MODE [-t threads] [-b batch] [-s slots] [-p pairs] [-e epochs] [-v]
 *
 *   gather   epochs of a plain tar data set against memcpy of the same rows in the same order
 *   decode   epochs of a .tar.zst data set against ZSTD_decompressDCtx of the same frames, as
 *            `zstd -b` decodes them
 *   cached   the same, where the limit's output stays in the processor's cache
 *   run      epochs of the loader alone, to be profiled
 *   gap      the time between the last batch of an epoch and the first of the next, in steps, for
 *            the consumer of `paced`; and, without a goal, for one that only takes
 *   paced    a consumer that works for 1.25 steps on each batch: how much of its time it waits
 *
 * FOLDER: a file tier (bench/run makes them on tmpfs). -v: verify_every_read. -p 10: pairs, epochs.
 * Method: pairs of one epoch (or -e of them) each, ours and the limit, their order alternating from
 * pair to pair. Printed: median of the pairs' ratios with its 95% interval, the ratio of CPU times,
 * page faults and cycles a sample. Before anything is measured, one epoch is compared row by row
 * with the data set.
 */
#include "bench/loader/limit.h"
#include "bench/loader/ours.h"
#include "bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAIRS_MAX = 1000 };

struct bench {
    struct bench_meter meter;
    struct set set;
    struct ours_opts opts;
    const char *mode;
    unsigned pairs, epochs;
    char what[96];
};

/* ---- pairs ---- */

struct side { /* of each pair */
    struct bench_use use[PAIRS_MAX];
};

static double median_of(const struct side *s, unsigned n, double (*get)(const struct bench_use *)) {
    double x[PAIRS_MAX];
    for (unsigned i = 0; i < n; i++)
        x[i] = get(&s->use[i]);
    return bench_middle(x, n).median;
}

static double get_wall(const struct bench_use *u) {
    return u->wall;
}
static double get_cpu(const struct bench_use *u) {
    return u->cpu;
}
static double get_faults(const struct bench_use *u) {
    return u->faults;
}
static double get_cycles(const struct bench_use *u) {
    return u->cycles;
}

static void print_side(const char *name, const struct side *s, unsigned n, double samples) {
    printf("    %-6s %10.0f samples/s  %8.4f us cpu  %7.4f faults  %9.0f cycles a sample\n", name,
           samples / median_of(s, n, get_wall), median_of(s, n, get_cpu) / samples * 1e6,
           median_of(s, n, get_faults) / samples, median_of(s, n, get_cycles) / samples);
}

static struct bench_middle ratio(const struct side *limit, const struct side *ours, unsigned n,
                                 double (*get)(const struct bench_use *)) {
    double x[PAIRS_MAX];
    for (unsigned i = 0; i < n; i++)
        x[i] = get(&limit->use[i]) / get(&ours->use[i]);
    return bench_middle(x, n);
}

static const char *verdict(bool reached) {
    return reached ? "reached" : "MISSED";
}

static void print_pairs(const struct bench *b, const struct side *ours, const struct side *limit,
                        double samples, double goal) {
    struct bench_middle wall = ratio(limit, ours, b->pairs, get_wall),
                        cpu = ratio(limit, ours, b->pairs, get_cpu);
    printf("%s %s%s, %u thread%s, batch %llu: ratio %.3f [%.3f, %.3f], of cpu times %.3f [%.3f, "
           "%.3f], goal >= %.2f: %s\n",
           b->what, b->mode, b->opts.verify ? " with every sum" : "", b->opts.threads,
           b->opts.threads > 1 ? "s" : "", (unsigned long long)b->opts.batch, wall.median, wall.low,
           wall.high, cpu.median, cpu.low, cpu.high, goal, verdict(wall.high >= goal));
    print_side("ours", ours, b->pairs, samples);
    print_side("limit", limit, b->pairs, samples);
}

static void run_limit(struct limit *l, const char *mode) {
    if (strcmp(mode, "decode") == 0)
        limit_decode(l);
    else if (strcmp(mode, "cached") == 0)
        limit_decode_cached(l);
    else
        limit_gather(l);
}

static void run_pairs(struct bench *b) {
    static struct side ours, limit;
    struct ours o;
    ours_open(&o, &b->set, &b->opts);
    ours_check_epoch(&o);
    struct limit *l = limit_new(&b->set, b->opts.threads, b->opts.slots, o.info.rank_batch);
    uint64_t n = o.info.steps * o.info.rank_batch;
    for (unsigned i = 0; i < b->pairs; i++) {
        for (unsigned half = 0; half < 2; half++) {
            bool first = (half + i) % 2 == 0;
            uint64_t *order = set_order(&o.info, o.seed, o.epoch);
            limit_prepare(l, order, n);
            free(order);
            struct bench_use began = bench_now(&b->meter);
            for (unsigned e = 0; e < b->epochs; e++) {
                if (first)
                    ours_epoch(&o);
                else
                    run_limit(l, b->mode);
            }
            (first ? &ours : &limit)->use[i] = bench_since(&b->meter, &began);
        }
    }
    limit_free(l);
    ours_close(&o);
    print_pairs(b, &ours, &limit, (double)n * b->epochs,
                strcmp(b->mode, "gather") != 0 ? 0.90
                : b->opts.verify               ? 0.50
                                               : 0.80);
}

static void run_alone(struct bench *b) {
    static struct side ours;
    struct ours o;
    ours_open(&o, &b->set, &b->opts);
    ours_epoch(&o);
    for (unsigned i = 0; i < b->pairs; i++) {
        struct bench_use began = bench_now(&b->meter);
        ours_epoch(&o);
        ours.use[i] = bench_since(&b->meter, &began);
    }
    printf("%s, %u threads, batch %llu\n", b->what, b->opts.threads,
           (unsigned long long)b->opts.batch);
    print_side("ours", &ours, b->pairs, (double)(o.info.steps * o.info.rank_batch));
    ours_close(&o);
}

/* ---- the consumer's side ---- */

static double median_step(const double *at, uint64_t steps) {
    double *x = calloc(steps, sizeof *x);
    if (!x)
        bench_die("out of memory");
    for (uint64_t i = 1; i < steps; i++)
        x[i - 1] = at[i] - at[i - 1];
    double m = bench_middle(x, steps - 1).median;
    free(x);
    return m;
}

/* The best rate: seconds for each step of an epoch that nothing holds up. */
static double best_step(struct bench *b, struct ours *o) {
    struct bench_use began = bench_now(&b->meter);
    ours_epoch(o);
    return bench_since(&b->meter, &began).wall / (double)o->info.steps;
}

/* A consumer that works for `work` seconds on each batch. Steps are compared with the mean of the
 * two epochs at whose border the gap is: with several threads batches come in clusters, and their
 * median would be the time within one. */
static void measure_gap(struct bench *b, struct ours *o, double work, const char *consumer) {
    double gap[PAIRS_MAX], worst = 0;
    double *at[2] = {calloc(o->info.steps, sizeof(double)), calloc(o->info.steps, sizeof(double))};
    if (!at[0] || !at[1] || o->info.steps < 2)
        bench_die("out of memory, or an epoch of one step");
    uint64_t last = o->info.steps - 1;
    ours_consume(o, at[0], work);
    for (unsigned i = 0; i < b->pairs; i++) {
        double *before = at[i % 2], *after = at[1 - i % 2];
        ours_consume(o, after, work);
        double step = ((before[last] - before[0]) + (after[last] - after[0])) / (double)(2 * last);
        gap[i] = (after[0] - before[last]) / step;
        worst = gap[i] > worst ? gap[i] : worst;
    }
    struct bench_middle m = bench_middle(gap, b->pairs);
    printf("%s gap, %s, %u threads, batch %llu: %.2f steps [%.2f, %.2f], worst %.2f of %u%s%s (a "
           "step: %.0f us, median %.0f us)\n",
           b->what, consumer, b->opts.threads, (unsigned long long)b->opts.batch, m.median, m.low,
           m.high, worst, b->pairs, work > 0 ? "; goal <= 1.2: " : "",
           work > 0 ? verdict(m.low <= 1.2) : "", (at[0][last] - at[0][0]) / (double)last * 1e6,
           median_step(at[0], o->info.steps) * 1e6);
    free(at[0]);
    free(at[1]);
}

static void run_gap(struct bench *b) {
    struct ours o;
    ours_open(&o, &b->set, &b->opts);
    ours_check_epoch(&o);
    measure_gap(b, &o, best_step(b, &o) / 0.8, "at 80% of the best rate");
    measure_gap(b, &o, 0, "flat out");
    ours_close(&o);
}

static void run_paced(struct bench *b) {
    struct ours o;
    double stalled[PAIRS_MAX];
    ours_open(&o, &b->set, &b->opts);
    ours_check_epoch(&o);
    for (unsigned i = 0; i < b->pairs; i++) {
        double step = best_step(b, &o);
        struct bench_use began = bench_now(&b->meter);
        double waited = ours_consume(&o, NULL, step / 0.8);
        stalled[i] = waited / bench_since(&b->meter, &began).wall;
    }
    struct bench_middle m = bench_middle(stalled, b->pairs);
    printf(
        "%s paced at 80%% of the best rate, %u threads, batch %llu: waits %.2f%% [%.2f, %.2f] of "
        "its time; goal < 1%%: %s\n",
        b->what, b->opts.threads, (unsigned long long)b->opts.batch, m.median * 100, m.low * 100,
        m.high * 100, verdict(m.low < 0.01));
    ours_close(&o);
}

/* ---- the command line ---- */

static void name_set(struct bench *b) {
    const struct wt_shape *s = &b->set.ds.m.field[0].shape;
    char shape[64];
    wt_shape_format(s, shape, sizeof shape);
    snprintf(b->what, sizeof b->what, "%s%s", shape,
             b->set.shard[0].rec.codec == WT_CODEC_ZSTD ? " .tar.zst" : " .tar");
}

static unsigned number(const char *text, unsigned most) {
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (end == text || *end || n == 0 || n > most)
        bench_die("'%s': a number from 1 to %u is wanted", text, most);
    return (unsigned)n;
}

static void parse(struct bench *b, int argc, char **argv) {
    b->opts = (struct ours_opts){.threads = 1, .slots = 4, .batch = 64};
    b->pairs = 10;
    b->epochs = 1;
    for (int c; (c = getopt(argc, argv, "t:b:s:p:e:v")) != -1;) {
        switch (c) {
        case 't':
            b->opts.threads = number(optarg, 64);
            break;
        case 'b':
            b->opts.batch = number(optarg, 1 << 24);
            break;
        case 's':
            b->opts.slots = number(optarg, 1024);
            break;
        case 'p':
            b->pairs = number(optarg, PAIRS_MAX);
            break;
        case 'e':
            b->epochs = number(optarg, 1000);
            break;
        case 'v':
            b->opts.verify = 1;
            break;
        default:
            exit(2);
        }
    }
    if (argc - optind != 3)
        bench_die("bench_loader FOLDER DATASET gather|decode|cached|run|gap|paced [options]");
    b->opts.folder = argv[optind];
    b->opts.dataset = argv[optind + 1];
    b->mode = argv[optind + 2];
}

int main(int argc, char **argv) {
    static struct bench b;
    setvbuf(stdout, NULL, _IOLBF, 0);
    parse(&b, argc, argv);
    bench_meter_open(&b.meter);
    set_open(&b.set, b.opts.folder, b.opts.dataset);
    name_set(&b);
    static const struct {
        const char *name;
        void (*run)(struct bench *b);
    } mode[] = {{"gather", run_pairs}, {"decode", run_pairs}, {"cached", run_pairs},
                {"run", run_alone},    {"gap", run_gap},      {"paced", run_paced}};
    size_t n = 0;
    while (n < sizeof mode / sizeof mode[0] && strcmp(b.mode, mode[n].name) != 0)
        n++;
    if (n == sizeof mode / sizeof mode[0])
        bench_die("mode '%s' is none of gather, decode, cached, run, gap, paced", b.mode);
    mode[n].run(&b);
    set_close(&b.set);
    return 0;
}
