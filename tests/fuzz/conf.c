/*
 * Fuzz: configuration files. The first byte chooses the daemon's or the loader's table. What is
 * accepted, printed and parsed again, prints the same text; each refusal says why. The text is also
 * tried as a size and as a time.
 */
#include "core/conf.h"

#include "core/bytes.h"
#include "daemon/config.h"
#include "tiers/conf.h"

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *print(const struct wt_conf_table *table, const void *target) {
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    FUZZ_CHECK(out);
    wt_conf_print(table, target, out);
    FUZZ_CHECK(fclose(out) == 0);
    return text;
}

static void parse(const struct wt_conf_table *table, const char *text, size_t size) {
    void *target = fuzz_alloc(size), *again = fuzz_alloc(size);
    struct wt_err err = {0};
    int rc = wt_conf_parse(table, "fuzz.conf", text, target, &err);
    FUZZ_CHECK(rc == 0 || (rc == err.code && err.text[0]));
    if (rc == 0) {
        char *once = print(table, target);
        rc = wt_conf_parse(table, "printed.conf", once, again, &err);
        if (rc < 0)
            fprintf(stderr, "%s\n%s\n", err.text, once);
        FUZZ_CHECK(rc == 0);
        char *twice = print(table, again);
        FUZZ_CHECK(strcmp(once, twice) == 0);
        FUZZ_CHECK(wt_conf_frozen(table, target, again, &err) == 0);
        free(once);
        free(twice);
    }
    if (rc == 0 && table == &wt_daemon_conf_table) {
        rc = wt_daemon_conf_check(target, &err);
        FUZZ_CHECK(rc == 0 || (rc == err.code && err.text[0]));
    }
    free(target);
    free(again);
}

static void try_units(const char *text) {
    uint64_t bytes = 0, ms = 0;
    char out[WT_SIZE_TEXT];
    struct wt_err err = {0};
    if (wt_size_parse(text, &bytes, &err) == 0)
        FUZZ_CHECK(wt_size_format(bytes, out) == out && out[0]);
    if (wt_time_parse(text, &ms, &err) == 0)
        FUZZ_CHECK(ms < UINT64_C(1) << 53);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    char *text = fuzz_alloc(size);
    memcpy(text, data + 1, size - 1);
    if (data[0] & 1)
        parse(&wt_daemon_conf_table, text, sizeof(struct wt_daemon_conf));
    else
        parse(&wt_client_conf_table, text, sizeof(struct wt_client_conf));
    try_units(text);
    free(text);
    return 0;
}
