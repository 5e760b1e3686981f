/*
 * Writes the seed corpora: FOLDER/<target>/<name>, each made by our own writers where there is one,
 * by hand where there is none.
 *
 * Happy path: `fuzz_seed FOLDER` makes the folders and files anew. Failures: any end it with a
 * message.
 */
#include "core/bytes.h"
#include "core/dataset.h"
#include "core/shard_format.h"
#include "daemon/config.h"
#include "daemon/state_file.h"
#include "libloader/state.h"
#include "tiers/conf.h"

#include "fuzz.h"
#include "seed_files.h"
#include "shard_use.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *root;

void seed_put(const char *target, const char *name, int first, const void *data, size_t len) {
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", root, target);
    FUZZ_CHECK(mkdir(path, 0755) == 0 || errno == EEXIST);
    snprintf(path, sizeof path, "%s/%s/%s", root, target, name);
    FILE *f = fopen(path, "wbe");
    FUZZ_CHECK(f);
    if (first >= 0)
        fputc(first, f);
    FUZZ_CHECK(fwrite(data, 1, len, f) == len && fclose(f) == 0);
}

void seed_text(const char *target, const char *name, int first, const char *text) {
    seed_put(target, name, first, text, strlen(text));
}

/* ---- shards ---- */

static void seed_shards(void) {
    static const char *const names[] = {"tar", "zst"};
    for (int i = 0; i < 2; i++) {
        struct wt_shard_out out;
        fuzz_make_shard(i ? WT_CODEC_ZSTD : WT_CODEC_TAR, &out);
        seed_put("shard", names[i], i, out.data, (size_t)out.size);
        if (i == 0) {
            seed_put("tar", "shard", 0, out.data, (size_t)out.size);
            const uint8_t *payload = out.data + out.index_off + WT_TAR_BLOCK;
            seed_put("index", "valid", -1, payload,
                     (size_t)(out.size - out.index_off) - WT_TAR_BLOCK - WT_TAR_END);
        } else {
            const uint8_t *foot = out.data + out.size - WT_SEEK_FOOT;
            uint32_t n = wt_get32(foot);
            seed_put("seek", "valid", -1, foot - (size_t)n * WT_SEEK_ENTRY,
                     (size_t)(n - 1) * WT_SEEK_ENTRY);
            seed_put("seek", "end", -1, out.data + out.index_off,
                     (size_t)(out.size - out.index_off));
        }
        wt_shard_out_free(&out);
    }
}

static void add_member(struct wt_bytes *b, const char *name, char type, const char *data) {
    uint8_t h[WT_TAR_BLOCK];
    size_t len = strlen(data);
    wt_tar_header(h, name, len);
    h[156] = (uint8_t)type;
    FUZZ_CHECK(wt_bytes_add(b, h, sizeof h) == 0 && wt_bytes_add(b, data, len) == 0);
    FUZZ_CHECK(wt_bytes_zeros(b, (size_t)wt_tar_pad(len)) == 0);
}

/* Sums are put right by the target: the first byte says so. */
static void seed_tars(void) {
    struct wt_bytes b = {0};
    add_member(&b, "pax", 'x', "18 path=long/name\n12 size=0003\n");
    add_member(&b, "short", '0', "abc");
    add_member(&b, "././@LongLink", 'L', "a/very/long/name/of/a/file");
    add_member(&b, "cut", '0', "data");
    add_member(&b, "folder/", '5', "");
    FUZZ_CHECK(wt_bytes_zeros(&b, WT_TAR_END) == 0);
    seed_put("tar", "extended", 1, b.data, b.len);
    memcpy(b.data + 124, "\x80\0\0\0\0\0\0\0\0\0\0\x1f", 12);
    seed_put("tar", "base256", 1, b.data, b.len);
    memcpy(b.data + 124, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12);
    seed_put("tar", "negative", 1, b.data, b.len);
    wt_bytes_free(&b);
}

/* ---- data sets ---- */

static struct wt_shard_rec record(uint64_t first, uint32_t samples) {
    return (struct wt_shard_rec){.hash = {first + 1, samples},
                                 .size = 8192 * (uint64_t)samples,
                                 .index_off = 4096,
                                 .tar_size = 8192 * (uint64_t)samples,
                                 .first = first,
                                 .samples = samples};
}

static void seed_dataset(void) {
    uint8_t idx[2 + 3 * WT_IDX_RECORD] = {1, 1};
    uint64_t first = 0;
    for (uint32_t i = 0; i < 3; i++) {
        struct wt_shard_rec r = record(first, i + 1);
        wt_shard_rec_encode(&r, idx + 2 + (size_t)i * WT_IDX_RECORD);
        first += r.samples;
    }
    seed_put("idx", "valid", -1, idx, sizeof idx);
    char none[] = "none", edge[] = "Edge-Ring", *classes[] = {none, edge};
    uint64_t count[] = {4, 1};
    struct wt_idx_part part = {.hash = wt_hash(idx + 2, sizeof idx - 2), .records = 3};
    struct wt_manifest m = {.name = "wm-811k",
                            .generation = 3,
                            .created = 1700000000,
                            .shards = 3,
                            .samples = 6,
                            .stored_bytes = 6 * 8192,
                            .tar_bytes = 6 * 8192,
                            .pixel_bytes = 6 * 2704,
                            .labelled = 5,
                            .lots = 1,
                            .wafers = 2,
                            .label_kind = WT_LABEL_CLASS,
                            .classes = classes,
                            .n_classes = 2,
                            .class_count = count,
                            .n_fields = 2,
                            .part = &part,
                            .n_parts = 1,
                            .field = {{.name = "", .shape = {WT_DTYPE_U8, 2, {52, 52}}},
                                      {.name = "mask", .shape = {WT_DTYPE_NONE, UINT32_MAX, {0}}}}};
    char *text = wt_manifest_format(&m);
    FUZZ_CHECK(text);
    seed_text("manifest", "valid", -1, text);
    free(text);
    seed_text("manifest", "version", -1, "{\"format\":\"wafertier-dataset\",\"version\":2}");
}

/* ---- configurations ---- */

static void seed_printed(const struct wt_conf_table *table, const char *name, int first) {
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    FUZZ_CHECK(out);
    wt_conf_print(table, NULL, out);
    fputs("tier \"cold\" { url = \"file:///srv/cold\" capacity = \"1TiB\" }\n", out);
    FUZZ_CHECK(fclose(out) == 0);
    seed_put("conf", name, first, text, len);
    free(text);
}

static void seed_confs(void) {
    seed_printed(&wt_daemon_conf_table, "daemon", 1);
    seed_printed(&wt_client_conf_table, "loader", 0);
    seed_text("conf", "foreign", 0,
              "mover { moves = 2 }\ncontrol = \"unix:/a\" # x\n/* y */ tier 'b' { url = 'c' }\n");
    seed_text("conf", "list", 1, "a = {1, 2}\ntier \"x\" { url += \"${HOME}\\n\" }\n");
    seed_text("conf", "size", 0, "1.5GiB");
    seed_text("conf", "time", 0, "5min");
}

/* ---- what is kept ---- */

static void seed_states(void) {
    struct wt_state s = {.dataset = "wm-811k",
                         .generation = 3,
                         .seed = 7,
                         .epoch = 2,
                         .done = 640,
                         .samples = 811457,
                         .block = 256,
                         .lanes = 8,
                         .window = 4,
                         .plan_version = 1};
    uint8_t blob[1024], rec[WT_STATE_RECORD], change[WT_STATE_CHANGE],
        set[WT_DATASET_NAME + 8] = "wm-811k", sum[8];
    size_t len;
    FUZZ_CHECK(wt_state_encode(&s, blob, sizeof blob, &len, NULL) == 0);
    seed_put("position", "valid", -1, blob, len);
    struct wt_tier_opts *tier = fuzz_alloc(3 * sizeof *tier);
    static const char *const names[] = {"cold", "hot", "gone"};
    for (int i = 0; i < 3; i++)
        snprintf(tier[i].name, sizeof tier[i].name, "%s", names[i]);
    struct wt_state_rec r = {.shard = 5,
                             .hash = 77,
                             .heat = 1.5f,
                             .heated = 9,
                             .since = 8,
                             .kind = WT_STATE_ENTRY,
                             .tiers = 7};
    struct wt_bytes b = {0};
    wt_state_rec_encode(&r, rec);
    wt_put64(set + WT_DATASET_NAME, 1);
    FUZZ_CHECK(wt_state_head_encode(&b, "WTSNAP1\n", tier, 3, 4, 1) == 0);
    FUZZ_CHECK(wt_bytes_add(&b, set, sizeof set) == 0 && wt_bytes_add(&b, rec, sizeof rec) == 0);
    FUZZ_CHECK(wt_bytes_zeros(&b, 8) == 0);
    seed_put("state", "snapshot", 2, b.data, b.len);
    b.len = 0;
    FUZZ_CHECK(wt_state_head_encode(&b, "WTJRNL1\n", tier, 3, 4, 0) == 0);
    wt_put64(sum, wt_hash64(b.data, b.len));
    FUZZ_CHECK(wt_bytes_add(&b, sum, sizeof sum) == 0);
    for (uint8_t kind = WT_STATE_HOLD; kind <= WT_STATE_LOSE; kind++) {
        r = (struct wt_state_rec){.shard = kind, .hash = 78, .kind = kind, .tiers = 1};
        wt_state_change_encode("wm-811k", &r, change);
        FUZZ_CHECK(wt_bytes_add(&b, change, sizeof change) == 0);
    }
    seed_put("state", "journal", 3, b.data, b.len);
    wt_bytes_free(&b);
    free(tier);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("usage: fuzz_seed FOLDER\n", stderr);
        return 2;
    }
    root = argv[1];
    FUZZ_CHECK(mkdir(root, 0755) == 0 || errno == EEXIST);
    seed_shards();
    seed_tars();
    seed_dataset();
    seed_confs();
    seed_states();
    seed_images();
    seed_control();
    return 0;
}
