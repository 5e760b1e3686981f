/*
 * What the fuzz targets share. Each tests/fuzz/<name>.c has one LLVMFuzzerTestOneInput; libFuzzer
 * drives it where the build has WT_FUZZ, else replay.c runs it over the corpus as an ordinary test.
 *
 * Happy path: bytes in, no matter which, and the target returns 0.
 * Failures: a sanitizer's report, a hang, or FUZZ_CHECK, which says what did not hold and aborts.
 */
#ifndef WT_TESTS_FUZZ_H
#define WT_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NOLINTNEXTLINE: the name is libFuzzer's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Also where assert() is compiled out. */
#define FUZZ_CHECK(what) ((what) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #what))
_Noreturn void fuzz_fail(const char *file, int line, const char *what);

/* A copy that ends where the input ends, so that a sanitizer sees each byte too far. free(). */
void *fuzz_copy(const void *data, size_t size);
/* calloc that cannot fail. */
void *fuzz_alloc(size_t size);

enum { FUZZ_PATH = 32 };
/* A file in memory with these bytes, for code that takes a path; close the descriptor that it
 * returns. */
int fuzz_file(const void *data, size_t size, char path[FUZZ_PATH]);

/* A temporary folder, removed with all in it when the process ends in an orderly way. */
const char *fuzz_folder(void);

#endif
