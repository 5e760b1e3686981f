/*
 * Fuzz: the tar reader. The first byte chooses whether sums of headers are put right first, which
 * lets the fuzzer behind them. What is read must lie inside, in order, without overlap; a header of
 * ours with the same name and size reads back.
 */
#include "core/tar.h"

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT_SUM = 148, AT_MAGIC = 257, SIZE_BACK = 4096 };

static void fix_sums(uint8_t *tar, size_t size) {
    for (size_t at = 0; size - at >= WT_TAR_BLOCK; at += WT_TAR_BLOCK) {
        uint8_t *h = tar + at;
        unsigned sum = 0;
        if (memcmp(h + AT_MAGIC, "ustar", 5) != 0)
            continue;
        memset(h + AT_SUM, ' ', 8);
        for (int i = 0; i < WT_TAR_BLOCK; i++)
            sum += h[i];
        snprintf((char *)h + AT_SUM, 8, "%06o", sum);
    }
}

static void write_back(const struct wt_tar_entry *e) {
    if (strlen(e->name) >= WT_TAR_NAME_WRITE || e->size > SIZE_BACK || e->type != '0')
        return;
    size_t len = (size_t)(WT_TAR_BLOCK + e->size + wt_tar_pad(e->size)) + WT_TAR_END;
    uint8_t *tar = fuzz_alloc(len);
    wt_tar_header(tar, e->name, e->size);
    struct wt_tar_iter *it = fuzz_alloc(sizeof *it);
    struct wt_tar_entry back;
    wt_tar_iter_init(it, tar, len);
    FUZZ_CHECK(wt_tar_next(it, &back, NULL) == 1);
    FUZZ_CHECK(strcmp(back.name, e->name) == 0 && back.size == e->size && back.type == '0');
    FUZZ_CHECK(back.data_off == WT_TAR_BLOCK);
    FUZZ_CHECK(wt_tar_next(it, &back, NULL) == 0);
    free(it);
    free(tar);
}

static void walk(const uint8_t *tar, size_t size) {
    struct wt_tar_iter *it = fuzz_alloc(sizeof *it);
    struct wt_tar_entry e;
    struct wt_err err = {0};
    uint64_t before = 0;
    int rc;
    wt_tar_iter_init(it, tar, size);
    while ((rc = wt_tar_next(it, &e, &err)) == 1) {
        FUZZ_CHECK(e.header_off == before && e.data_off >= e.header_off + WT_TAR_BLOCK);
        FUZZ_CHECK(e.data_off <= size && e.size <= size - e.data_off);
        FUZZ_CHECK(e.name[0] && strlen(e.name) < WT_TAR_NAME);
        before = e.data_off + e.size + wt_tar_pad(e.size);
        FUZZ_CHECK(it->pos == before);
        write_back(&e);
    }
    FUZZ_CHECK(rc == 0 || (rc < 0 && rc == err.code && err.text[0]));
    free(it);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    uint8_t *tar = fuzz_copy(data + 1, size - 1);
    if (data[0] & 1)
        fix_sums(tar, size - 1);
    walk(tar, size - 1);
    free(tar);
    return 0;
}
