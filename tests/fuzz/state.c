/*
 * Fuzz: the daemon's snapshot and journal. The first byte chooses which, and whether sums are put
 * right first. What is remembered can be written again as a snapshot that says the same.
 */
#include "daemon/state_file.h"

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIERS = 3, SET_HEAD = WT_DATASET_NAME + 8 };

static void name_tiers(struct wt_tier_opts tier[TIERS]) {
    static const char *const names[TIERS] = {"cold", "warm", "hot"};
    for (size_t i = 0; i < TIERS; i++)
        snprintf(tier[i].name, sizeof tier[i].name, "%s", names[i]);
}

static void fix_snapshot(uint8_t *data, size_t size) {
    if (size >= 8)
        wt_put64(data + size - 8, wt_hash64(data, size - 8));
}

static void fix_journal(uint8_t *data, size_t size) {
    if (size < WT_STATE_HEAD + 8)
        return;
    wt_put64(data + WT_STATE_HEAD, wt_hash64(data, WT_STATE_HEAD));
    for (size_t at = WT_STATE_HEAD + 8; size - at >= WT_STATE_CHANGE; at += WT_STATE_CHANGE)
        wt_put32(data + at + WT_STATE_CHANGE - 4, wt_crc32c(0, data + at, WT_STATE_CHANGE - 4));
}

static void put_set(struct wt_bytes *out, const struct wt_state_set *set) {
    uint8_t head[SET_HEAD] = {0}, rec[WT_STATE_RECORD];
    FUZZ_CHECK(strlen(set->name) < WT_DATASET_NAME);
    memcpy(head, set->name, strlen(set->name));
    wt_put64(head + WT_DATASET_NAME, set->n);
    FUZZ_CHECK(wt_bytes_add(out, head, sizeof head) == 0);
    for (size_t i = 0; i < set->n; i++) {
        wt_state_rec_encode(&set->rec[i], rec);
        FUZZ_CHECK(wt_bytes_add(out, rec, sizeof rec) == 0);
    }
}

/* The same sets as a snapshot, in the daemon's own tiers. */
static void put_snapshot(struct wt_bytes *out, const struct wt_state_sets *sets,
                         const struct wt_tier_opts *tier, uint64_t sequence) {
    uint8_t sum[8];
    FUZZ_CHECK(wt_state_head_encode(out, "WTSNAP1\n", tier, TIERS, sequence, sets->n) == 0);
    for (size_t i = 0; i < sets->n; i++)
        put_set(out, &sets->set[i]);
    wt_put64(sum, wt_hash64(out->data, out->len));
    FUZZ_CHECK(wt_bytes_add(out, sum, sizeof sum) == 0);
}

static void write_back(const struct wt_state_sets *sets, const struct wt_tier_opts *tier) {
    struct wt_bytes once = {0}, twice = {0};
    struct wt_state_sets back = {0};
    struct wt_err err = {0};
    uint64_t sequence = 0;
    put_snapshot(&once, sets, tier, 7);
    FUZZ_CHECK(wt_state_snapshot_decode(once.data, once.len, tier, TIERS, &back, &sequence, &err) ==
               0);
    FUZZ_CHECK(sequence == 7);
    for (size_t i = 0, n = 0; i < sets->n; i++) /* a set without records is forgotten */
        if (sets->set[i].n)
            FUZZ_CHECK(n < back.n && back.set[n++].n <= sets->set[i].n);
    put_snapshot(&twice, &back, tier, 7);
    FUZZ_CHECK(twice.len <= once.len);
    wt_bytes_free(&once);
    wt_bytes_free(&twice);
    wt_state_sets_free(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    uint8_t *file = fuzz_copy(data + 1, size - 1);
    bool journal = data[0] & 1, put_right = data[0] & 2;
    struct wt_tier_opts *tier = fuzz_alloc(TIERS * sizeof *tier);
    struct wt_state_sets sets = {0};
    struct wt_err err = {0};
    uint64_t sequence = 0;
    name_tiers(tier);
    if (put_right)
        (journal ? fix_journal : fix_snapshot)(file, size - 1);
    int rc = journal
                 ? wt_state_journal_decode(file, size - 1, tier, TIERS, &sets, &err)
                 : wt_state_snapshot_decode(file, size - 1, tier, TIERS, &sets, &sequence, &err);
    FUZZ_CHECK(rc == 0 || (rc == WT_ECORRUPT && err.text[0]));
    if (rc < 0 && !journal)
        FUZZ_CHECK(sets.n == 0);
    write_back(&sets, tier);
    wt_state_sets_free(&sets);
    free(tier);
    free(file);
    return 0;
}
