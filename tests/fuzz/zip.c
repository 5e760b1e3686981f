/* Fuzz: zip archives: the directory, then every member streamed in uneven pieces, a bounded part of
 * each. */
#include "tools/ingest/zip.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEMBERS_MAX = 64, PIECE = 4096, MEMBER_MAX = 1 << 20 };

static void stream(const struct wt_zip *zip, const struct wt_zip_entry *e) {
    struct wt_zip_stream *s = NULL;
    struct wt_err err = {0};
    if (wt_zip_stream_open(zip, e, &s, &err) < 0) {
        FUZZ_CHECK(err.code < 0 && err.text[0]);
        return;
    }
    uint8_t *piece = fuzz_alloc(PIECE);
    uint64_t left = e->size < MEMBER_MAX ? e->size : MEMBER_MAX;
    int rc = 0;
    for (size_t len = 1; rc == 0 && left > 0; left -= len, len = len * 3 % PIECE + 1) {
        if (len > left)
            len = (size_t)left;
        rc = wt_zip_stream_read(s, piece, len, &err);
    }
    if (rc == 0 && e->size <= MEMBER_MAX) /* nothing is left to give */
        FUZZ_CHECK(wt_zip_stream_read(s, piece, 1, &err) == WT_ECORRUPT);
    wt_zip_stream_close(s);
    free(piece);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[FUZZ_PATH];
    struct wt_zip *zip = NULL;
    struct wt_err err = {0};
    int fd = fuzz_file(data, size, path);
    if (wt_zip_open(path, &zip, &err) < 0) {
        FUZZ_CHECK(err.code < 0 && err.text[0]);
        close(fd);
        return 0;
    }
    for (size_t i = 0; i < wt_zip_count(zip) && i < MEMBERS_MAX; i++) {
        const struct wt_zip_entry *e = wt_zip_entry(zip, i);
        const struct wt_zip_entry *found = wt_zip_find(zip, e->name);
        FUZZ_CHECK(found && strcmp(found->name, e->name) == 0);
        stream(zip, e);
    }
    wt_zip_close(zip);
    close(fd);
    return 0;
}
