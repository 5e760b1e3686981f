/*
 * sim_daemon [--seeds N] [--from SEED] [--seed SEED] [--twice] [--all] [--expect-broken]
 *
 * Runs N seeds (500) and says what happened in them. A broken rule ends with the seed, the rule and
 * the last lines of the log, and exit code 1; --seed replays one, with all that it says. --twice
 * runs each seed twice and compares; --all goes on after a broken one. --expect-broken: a bug is
 * planted, and some seed must find it.
 */
#include "sim.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
    uint64_t from, seeds;
    bool one, all, twice, expect_broken;
    char folder[64];
};

static void add_counts(struct sim_counts *sum, const struct sim_counts *c) {
    sum->kills += c->kills;
    sum->freezes += c->freezes;
    sum->cuts += c->cuts;
    sum->restarts += c->restarts;
    sum->damages += c->damages;
    sum->commits += c->commits;
    sum->removes += c->removes;
    sum->moves += c->moves;
    sum->reads += c->reads;
    sum->hits += c->hits;
    sum->takeovers += c->takeovers;
    sum->by_hand += c->by_hand;
    sum->left += c->left;
}

static void print_log(const struct sim_world *w) {
    uint64_t first = w->n_lines > 60 ? w->n_lines - 60 : 0;
    for (uint64_t i = first; i < w->n_lines && !w->loud; i++)
        printf("%s\n", w->line[i % SIM_LINES]);
}

static bool run_seed(const struct options *o, uint64_t seed, struct sim_counts *sum,
                     uint64_t *hash) {
    struct sim_world *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    bool good = sim_run(w, seed, o->folder, o->one);
    if (!good && !o->expect_broken && !o->all)
        print_log(w);
    if (!good)
        printf("seed %" PRIu64 " after %" PRIu64 " steps: %s\n", seed, w->steps, w->broken);
    add_counts(sum, &w->count);
    *hash = w->hash;
    sim_free(w);
    free(w);
    return good;
}

static bool run_twice(const struct options *o, uint64_t seed, struct sim_counts *sum) {
    uint64_t a, b;
    bool good = run_seed(o, seed, sum, &a);
    if (!o->twice || !good)
        return good;
    good = run_seed(o, seed, sum, &b);
    if (good && a != b)
        printf("seed %" PRIu64 " does not replay\n", seed);
    return good && a == b;
}

static bool parse(int argc, char **argv, struct options *o) {
    static const struct option names[] = {{"seeds", required_argument, NULL, 'n'},
                                          {"from", required_argument, NULL, 'f'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"twice", no_argument, NULL, '2'},
                                          {"all", no_argument, NULL, 'a'},
                                          {"expect-broken", no_argument, NULL, 'b'},
                                          {0}};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (c) {
        case 'n':
            o->seeds = strtoull(optarg, NULL, 10);
            break;
        case 'f':
            o->from = strtoull(optarg, NULL, 10);
            break;
        case 's':
            o->from = strtoull(optarg, NULL, 10);
            o->seeds = 1;
            o->one = true;
            break;
        case '2':
            o->twice = true;
            break;
        case 'a':
            o->all = true;
            break;
        case 'b':
            o->expect_broken = true;
            break;
        default:
            return false;
        }
    }
    return optind == argc;
}

int main(int argc, char **argv) {
    struct options o = {.from = 1, .seeds = 500};
    struct sim_counts sum = {0};
    if (!parse(argc, argv, &o)) {
        fprintf(stderr,
                "usage: %s [--seeds N] [--from SEED] [--seed SEED] [--twice] [--all] "
                "[--expect-broken]\n",
                argv[0]);
        return 2;
    }
    snprintf(o.folder, sizeof o.folder, "%s/wt-sim-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(o.folder)) {
        perror(o.folder);
        return 2;
    }
    uint64_t seed = o.from;
    bool good = true;
    for (; seed - o.from < o.seeds && (good || o.all); seed++)
        good = run_twice(&o, seed, &sum) && good;
    rmdir(o.folder);
    printf("%" PRIu64 " seeds: %" PRIu64 " kills, %" PRIu64 " left, %" PRIu64 " freezes, %" PRIu64
           " cuts, %" PRIu64 " takeovers, %" PRIu64 " requests by hand, %" PRIu64
           " restarts of stores, %" PRIu64 " damaged copies, %" PRIu64 " commits, %" PRIu64
           " removes, %" PRIu64 " reads, %" PRIu64 " hits\n",
           seed - o.from, sum.kills, sum.left, sum.freezes, sum.cuts, sum.takeovers, sum.by_hand,
           sum.restarts, sum.damages, sum.commits, sum.removes, sum.reads, sum.hits);
    if (o.expect_broken)
        printf(good ? "the planted bug was not found\n" : "the planted bug was found\n");
    return good == o.expect_broken;
}
