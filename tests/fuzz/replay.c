/*
 * A plain main for a fuzz target: runs it over every file of the named files and folders, whole and
 * cut short, so that each compiler and sanitizer of an ordinary test run sees the corpus.
 *
 * Happy path: each input runs; the number of them is printed. Failures: the target aborts, with the
 * input's name printed before; no input at all is an error, since a replay of nothing proves
 * nothing.
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CUTS = 8, INPUT_MAX = 1 << 20 };

static void run_cut(const uint8_t *data, size_t size) {
    uint8_t *exact = fuzz_copy(data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static void run_file(const char *path) {
    FILE *f = fopen(path, "rbe");
    FUZZ_CHECK(f);
    uint8_t *data = fuzz_alloc(INPUT_MAX);
    size_t size = fread(data, 1, INPUT_MAX, f);
    fclose(f);
    fprintf(stderr, "%s: %zu bytes\n", path, size);
    for (size_t cut = CUTS; cut > 0; cut--)
        run_cut(data, size * cut / CUTS);
    free(data);
}

static unsigned run_path(const char *path) {
    struct stat st;
    if (stat(path, &st) < 0)
        return 0;
    if (S_ISREG(st.st_mode)) {
        run_file(path);
        return 1;
    }
    DIR *dir = opendir(path);
    FUZZ_CHECK(dir);
    unsigned n = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        char below[1024];
        snprintf(below, sizeof below, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.')
            n += run_path(below);
    }
    closedir(dir);
    return n;
}

int main(int argc, char **argv) {
    unsigned n = 0;
    for (int i = 1; i < argc; i++)
        n += run_path(argv[i]);
    run_cut(NULL, 0);
    printf("%u inputs\n", n);
    return n ? EXIT_SUCCESS : EXIT_FAILURE;
}
