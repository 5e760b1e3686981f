/* Fuzz: manifest.json. What is accepted, written by us and read again, is the same text. */
#include "core/dataset.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct wt_manifest m, back;
    struct wt_err err = {0};
    int rc = wt_manifest_parse((const char *)data, size, &m, &err);
    if (rc < 0) {
        FUZZ_CHECK(rc == err.code && err.text[0] && (rc == WT_ECORRUPT || rc == WT_EUNSUPPORTED));
        return 0;
    }
    char *text = wt_manifest_format(&m);
    FUZZ_CHECK(text);
    rc = wt_manifest_parse(text, strlen(text), &back, &err);
    FUZZ_CHECK(rc == 0);
    char *again = wt_manifest_format(&back);
    FUZZ_CHECK(again && strcmp(text, again) == 0);
    wt_manifest_free(&m);
    wt_manifest_free(&back);
    free(text);
    free(again);
    return 0;
}
