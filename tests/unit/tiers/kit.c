/* Helpers of the unit tests; see kit.h. */
#include "kit.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

bool kit_until(uv_loop_t *loop, const bool *flag, unsigned ms) {
    uint64_t end = uv_hrtime() + (uint64_t)ms * 1000000;
    while (!*flag && uv_hrtime() < end) {
        uv_run(loop, UV_RUN_NOWAIT);
        if (!*flag)
            uv_sleep(1);
    }
    return *flag;
}

void kit_run(uv_loop_t *loop, unsigned ms) {
    bool never = false;
    kit_until(loop, &never, ms);
}

void kit_make_folder(char path[256]) {
    const char *base = getenv("TMPDIR");
    snprintf(path, 256, "%s/wt-tiers-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(path))
        fail_msg("no temporary folder %s", path);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void kit_remove_folder(const char *path) {
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
