/*
 * A job that consumes batches at a steady pace, as training does, and tells where its bytes came
 * from: "epoch N cold BYTES all BYTES" for each epoch.
 *
 *     paced CONFIG DATASET SEED EPOCHS BATCH MILLISECONDS-A-BATCH [LANES WINDOW]
 *
 * Without lanes and window it reads one shard after the other.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <wafertier/loader.h>

static void rest(uint64_t ms) {
    struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

struct bytes {
    uint64_t cold, all;
};

static struct bytes bytes_of(wl_loader *l) {
    wl_stats s = {.size = sizeof s};
    struct bytes b = {0};
    wl_get_stats(l, &s);
    for (size_t i = 0; i < s.tiers; i++) {
        b.all += s.tier[i].bytes;
        b.cold += i == 0 ? s.tier[i].bytes : 0;
    }
    return b;
}

int main(int argc, char **argv) {
    if (argc != 7 && argc != 9)
        return 2;
    wl_options o = WL_OPTIONS_INIT;
    o.config = argv[1];
    o.dataset = argv[2];
    o.seed = strtoull(argv[3], NULL, 10);
    o.epochs = strtoull(argv[4], NULL, 10);
    o.batch = strtoull(argv[5], NULL, 10);
    o.lanes = argc == 9 ? (uint32_t)strtoul(argv[7], NULL, 10) : 1;
    o.window = argc == 9 ? (uint32_t)strtoul(argv[8], NULL, 10) : 1;
    uint64_t ms = strtoull(argv[6], NULL, 10);
    wl_loader *l = NULL;
    wl_batch *batch;
    struct bytes before = {0};
    uint64_t epoch = 0;
    int rc = wl_open(NULL, &o, &l);
    while (rc == 0 || rc == WL_END_OF_EPOCH) {
        rc = wl_next(l, NULL, WL_FOREVER, &batch);
        if (rc == 0) {
            rest(ms);
            wl_batch_release(batch, NULL);
        } else if (rc == WL_END_OF_EPOCH) {
            struct bytes now = bytes_of(l);
            printf("epoch %" PRIu64 " cold %" PRIu64 " all %" PRIu64 "\n", epoch++,
                   now.cold - before.cold, now.all - before.all);
            fflush(stdout);
            before = now;
        }
    }
    if (rc < 0)
        fprintf(stderr, "paced: %s\n", wl_last_error(l)->message);
    wl_close(l);
    return rc < 0;
}
