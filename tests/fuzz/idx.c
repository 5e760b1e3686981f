/*
 * Fuzz: shards.idx. The input is records of 64 bytes, cut in up to three parts by the first two
 * bytes; sums, ordinals and the manifest's totals are put right where the record makes sense, as a
 * writer's would be.
 */
#include "core/dataset.h"

#include "core/bytes.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS = 3, RECORDS_MAX = 512, AT_FIRST = 40, AT_SUM = WT_IDX_RECORD - 4 };

static void check_record(const uint8_t *in, const struct wt_shard_rec *rec) {
    uint8_t out[WT_IDX_RECORD];
    FUZZ_CHECK(rec->samples > 0 && rec->index_off < rec->size);
    wt_shard_rec_encode(rec, out);
    FUZZ_CHECK(memcmp(in, out, sizeof out) == 0);
    char name[WT_OBJECT_NAME], dataset[WT_DATASET_NAME];
    uint64_t number;
    struct wt_hash hash;
    wt_shard_name("data.set_1-x", rec->first, rec, name);
    FUZZ_CHECK(wt_shard_name_parse(name, dataset, &number, &hash) == 0);
    FUZZ_CHECK(number == rec->first && wt_hash_equal(hash, rec->hash) &&
               strcmp(dataset, "data.set_1-x") == 0);
}

/* Puts ordinals and sums right, adds up what the manifest must say. */
static void fix(uint8_t *rec, size_t n, struct wt_manifest *m) {
    for (size_t i = 0; i < n; i++, rec += WT_IDX_RECORD) {
        struct wt_shard_rec r;
        wt_put64(rec + AT_FIRST, m->samples);
        wt_put32(rec + AT_SUM, wt_crc32c(0, rec, AT_SUM));
        if (wt_shard_rec_decode(rec, &r) < 0)
            continue;
        check_record(rec, &r);
        m->samples += r.samples;
        m->stored_bytes += r.size;
        m->tar_bytes += r.tar_size;
    }
}

static void use(const struct wt_dataset *d) {
    for (uint64_t s = 0; s < d->m.shards; s++) {
        struct wt_shard_rec rec;
        wt_dataset_rec(d, s, &rec);
        FUZZ_CHECK(rec.first == d->cum[s] && d->cum[s + 1] - d->cum[s] == rec.samples);
        FUZZ_CHECK(wt_dataset_find(d, rec.first) == s &&
                   wt_dataset_find(d, d->cum[s + 1] - 1) == s);
    }
}

static void build(uint8_t *rec, size_t n, size_t cut1, size_t cut2) {
    struct wt_manifest m = {.name = "fuzz", .generation = 1, .shards = n, .n_parts = PARTS};
    m.part = fuzz_alloc(PARTS * sizeof *m.part);
    fix(rec, n, &m);
    const size_t at[PARTS + 1] = {0, cut1, cut2, n};
    const void *parts[PARTS];
    size_t lens[PARTS];
    for (size_t i = 0; i < PARTS; i++) {
        lens[i] = (at[i + 1] - at[i]) * WT_IDX_RECORD;
        parts[i] = rec + at[i] * WT_IDX_RECORD;
        m.part[i] = (struct wt_idx_part){.hash = wt_hash(parts[i], lens[i]),
                                         .records = (uint32_t)(at[i + 1] - at[i])};
    }
    struct wt_dataset d = {0};
    struct wt_err err = {0};
    int rc = wt_dataset_build(&m, parts, lens, &d, &err);
    FUZZ_CHECK(rc == 0 || (rc == WT_ECORRUPT && err.text[0]));
    if (rc == 0)
        use(&d);
    wt_dataset_free(&d);
    wt_manifest_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    size_t n = (size - 2) / WT_IDX_RECORD;
    if (n == 0 || n > RECORDS_MAX)
        return 0;
    struct wt_shard_rec as_it_is;
    for (size_t i = 0; i < n; i++)
        if (wt_shard_rec_decode(data + 2 + i * WT_IDX_RECORD, &as_it_is) == 0)
            check_record(data + 2 + i * WT_IDX_RECORD, &as_it_is);
    size_t cut1 = data[0] % (n + 1), cut2 = cut1 + data[1] % (n + 1 - cut1);
    uint8_t *rec = fuzz_copy(data + 2, n * WT_IDX_RECORD);
    build(rec, n, cut1, cut2);
    free(rec);
    return 0;
}
