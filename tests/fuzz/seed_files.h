/* Between the two files of fuzz_seed. */
#ifndef WT_TESTS_FUZZ_SEED_FILES_H
#define WT_TESTS_FUZZ_SEED_FILES_H

#include <stddef.h>

/* One seed; first: a byte in front of the data, -1: none. */
void seed_put(const char *target, const char *name, int first, const void *data, size_t len);
void seed_text(const char *target, const char *name, int first, const char *text);

void seed_images(void);  /* npy, zip, npz, png, csv */
void seed_control(void); /* requests */

#endif
