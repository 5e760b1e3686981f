/* Fuzz: png files through the reader of `wafertier pack`, as they are and with the sums of all
 * chunks put right. */
#include "fuzz.h"
#include "read_image.h"

#include <stdlib.h>
#include <zlib.h>

enum { SIGNATURE = 8, AROUND = 12 };

static uint32_t get_be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void fix_sums(uint8_t *png, size_t size) {
    for (size_t at = SIGNATURE; at < size && size - at >= AROUND;) {
        size_t len = get_be32(png + at);
        if (len > size - at - AROUND)
            return;
        uint32_t sum = (uint32_t)crc32(0, png + at + 4, (uInt)len + 4);
        for (int i = 0; i < 4; i++)
            png[at + 8 + len + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
        at += AROUND + len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *png = fuzz_copy(data, size);
    fuzz_read_images(&wt_reader_png, png, size);
    fix_sums(png, size);
    fuzz_read_images(&wt_reader_png, png, size);
    free(png);
    return 0;
}
