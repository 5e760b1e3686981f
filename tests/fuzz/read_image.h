/* Reads a file of images as `wafertier pack` does, with small limits. */
#ifndef WT_TESTS_FUZZ_READ_IMAGE_H
#define WT_TESTS_FUZZ_READ_IMAGE_H

#include "tools/ingest/reader.h"

void fuzz_read_images(const struct wt_reader_ops *ops, const uint8_t *data, size_t size);

#endif
