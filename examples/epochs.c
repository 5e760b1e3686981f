/*
 * Reads a data set for some epochs and tells for each: samples, their pixel sum, rates, and which
 * tier the bytes came from.
 *
 *     epochs CONFIG DATASET [BATCH] [EPOCHS] [COMMAND]
 *
 * Each epoch runs in a loader of its own that resumes from the saved state of the one before, and
 * COMMAND is run by the shell in between: the demo waits there until the daemon has moved what it
 * wants to move, so that what an epoch reads is not mixed with what the epoch before prefetched for
 * it. The pixel sum and the count of distinct samples show that every image came, once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wafertier/loader.h>

struct tally {
    uint64_t samples, pixels;
    uint64_t *id; /* [room] of the samples so far */
    uint64_t room;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t sum_row(const wl_tensor *image, uint64_t row, uint64_t per_row) {
    uint64_t sum = 0;
    if (image->dtype == WL_U8) {
        const uint8_t *p = (const uint8_t *)image->data + row * per_row;
        for (uint64_t i = 0; i < per_row; i++)
            sum += p[i];
    } else if (image->dtype == WL_U16) {
        const uint16_t *p = (const uint16_t *)image->data + row * per_row;
        for (uint64_t i = 0; i < per_row; i++)
            sum += p[i];
    }
    return sum;
}

static void add_batch(struct tally *t, const wl_batch *b) {
    const wl_tensor *image = wl_batch_tensor(b, "image");
    const uint8_t *valid = wl_batch_tensor(b, "valid")->data;
    const uint64_t *id = wl_batch_tensor(b, "sample_id")->data;
    uint64_t per_row = (uint64_t)image->stride[0];
    for (uint64_t i = 0; i < wl_batch_size(b); i++) {
        if (!valid[i])
            continue;
        t->pixels += sum_row(image, i, per_row);
        if (t->samples < t->room)
            t->id[t->samples] = id[i];
        t->samples++;
    }
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t distinct(struct tally *t) {
    uint64_t n = t->samples < t->room ? t->samples : t->room, count = n > 0;
    qsort(t->id, n, sizeof t->id[0], by_value);
    for (uint64_t i = 1; i < n; i++)
        count += t->id[i] != t->id[i - 1];
    return count;
}

/* One epoch; 0 when it ended as it should. */
static int read_epoch(wl_loader *l, struct tally *t) {
    wl_batch *b;
    int rc;
    while ((rc = wl_next(l, NULL, WL_FOREVER, &b)) == WL_OK) {
        add_batch(t, b);
        wl_batch_release(b, NULL);
    }
    if (rc < 0)
        fprintf(stderr, "epochs: %s\n", wl_last_error(l)->message);
    return rc < 0 ? rc : 0;
}

static void print_row(uint64_t epoch, struct tally *t, double seconds, const wl_stats *s) {
    printf("%5" PRIu64 "  %8" PRIu64 "  %8" PRIu64 "  %12" PRIu64 "  %10.0f  %7.1f  %6.1f%%",
           epoch + 1, t->samples, distinct(t), t->pixels, (double)t->samples / seconds,
           (double)s->bytes / seconds / 1e6, 100 * s->stall_s / seconds);
    for (size_t i = 0; i < s->tiers; i++)
        printf("  %7" PRIu64 " %8.2f", s->tier[i].reads, (double)s->tier[i].bytes / 1e6);
    printf("\n");
    fflush(stdout);
}

static void print_head(const wl_stats *s) {
    printf("%5s  %8s  %8s  %12s  %10s  %7s  %7s", "epoch", "samples", "distinct", "pixel sum",
           "samples/s", "MB/s", "stall");
    for (size_t i = 0; i < s->tiers; i++)
        printf("  %7s reads/MB", s->tier[i].name);
    printf("\n");
}

struct state {
    unsigned char bytes[WL_STATE_MAX];
    size_t len;
};

/* Opens where the last epoch ended, reads one epoch, saves where it ended. */
static int run_epoch(wl_options *o, uint64_t epoch, struct state *state) {
    wl_loader *l = NULL;
    o->epochs = epoch + 1; /* nothing of the next one is prefetched */
    double start = now();
    int rc = wl_open(NULL, o, &l);
    if (rc == 0 && state->len)
        rc = wl_state_load(l, state->bytes, state->len);
    if (rc < 0) {
        fprintf(stderr, "epochs: %s\n", wl_last_error(l)->message);
        wl_close(l);
        return rc;
    }
    wl_info info;
    wl_get_info(l, &info);
    wl_stats s = {.size = sizeof s};
    struct tally t = {.room = info.samples, .id = malloc((info.samples + 1) * sizeof(uint64_t))};
    rc = t.id ? read_epoch(l, &t) : WL_ERROR_MEMORY;
    wl_get_stats(l, &s);
    if (epoch == 0)
        print_head(&s);
    if (rc == 0)
        print_row(epoch, &t, now() - start, &s);
    if (rc == 0)
        rc = wl_state_save(l, state->bytes, sizeof state->bytes, &state->len);
    free(t.id);
    wl_close(l);
    return rc;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: epochs CONFIG DATASET [BATCH] [EPOCHS] [COMMAND]\n");
        return 2;
    }
    wl_options o = WL_OPTIONS_INIT;
    o.config = argv[1];
    o.dataset = argv[2];
    o.batch = argc > 3 ? strtoull(argv[3], NULL, 10) : 64;
    o.tail = WL_TAIL_PAD;
    uint64_t epochs = argc > 4 ? strtoull(argv[4], NULL, 10) : 3;
    struct state state = {.len = 0};
    int rc = 0;
    for (uint64_t epoch = 0; epoch < epochs && rc == 0; epoch++) {
        rc = run_epoch(&o, epoch, &state);
        if (rc == 0 && argc > 5 && epoch + 1 < epochs && system(argv[5]) != 0)
            fprintf(stderr, "epochs: '%s' failed\n", argv[5]);
    }
    return rc == 0 ? 0 : 1;
}
