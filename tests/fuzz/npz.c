/* Fuzz: npz files through the reader of `wafertier pack`: arrays found, labels loaded, images
 * streamed. */
#include "fuzz.h"
#include "read_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_read_images(&wt_reader_npz, data, size);
    return 0;
}
