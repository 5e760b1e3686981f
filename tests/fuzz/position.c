/* Fuzz: a loader's saved position. As it is, and with its length and sum put right; what is
 * accepted encodes back to the same bytes. */
#include "libloader/state.h"

#include "core/bytes.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { AT_LENGTH = 12, SUM = 8 };

static void decode(const uint8_t *blob, size_t size) {
    struct wt_state s;
    struct wt_err err = {0};
    int rc = wt_state_decode(blob, size, &s, &err);
    FUZZ_CHECK(rc == 0 || (rc == WT_ECORRUPT && err.code == rc && err.text[0]));
    if (rc < 0)
        return;
    uint8_t back[1024];
    size_t len = 0;
    FUZZ_CHECK(strlen(s.dataset) < WT_DATASET_NAME);
    FUZZ_CHECK(wt_state_encode(&s, back, sizeof back, &len, &err) == 0);
    FUZZ_CHECK(len == size && memcmp(back, blob, len) == 0);
    FUZZ_CHECK(wt_state_match(&s, &s, &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *blob = fuzz_copy(data, size);
    decode(blob, size);
    if (size >= AT_LENGTH + 4 + SUM && size <= UINT32_MAX) {
        wt_put32(blob + AT_LENGTH, (uint32_t)size);
        wt_put64(blob + size - SUM, wt_hash64(blob, size - SUM));
        decode(blob, size);
    }
    free(blob);
    return 0;
}
