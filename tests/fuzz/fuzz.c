/* See fuzz.h. */
#include "fuzz.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void fuzz_fail(const char *file, int line, const char *what) {
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    abort();
}

void *fuzz_alloc(size_t size) {
    void *p = calloc(1, size ? size : 1);
    FUZZ_CHECK(p);
    return p;
}

void *fuzz_copy(const void *data, size_t size) {
    void *p = malloc(size ? size : 1);
    FUZZ_CHECK(p);
    if (size)
        memcpy(p, data, size);
    return p;
}

int fuzz_file(const void *data, size_t size, char path[FUZZ_PATH]) {
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0);
    FUZZ_CHECK(write(fd, data, size) == (ssize_t)size);
    snprintf(path, FUZZ_PATH, "/proc/self/fd/%d", fd);
    return fd;
}

static char folder[256];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static void remove_folder(void) {
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_folder(void) {
    if (folder[0])
        return folder;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/wt-fuzz-XXXXXX", tmp ? tmp : "/tmp");
    FUZZ_CHECK(mkdtemp(folder));
    atexit(remove_folder);
    return folder;
}
