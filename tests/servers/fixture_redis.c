/*
 * Fixtures for the contract suite on Redis: TCP, TLS, a Unix socket, a cluster. WT_TEST_REDIS names
 * the folder of running servers (tests/servers/redis start), WT_TEST_SERVERS the folder of the
 * scripts.
 */
#include "tests/contract/contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void script(const char *verb, const char *args) {
    char command[1024];
    snprintf(command, sizeof command, "'%s/redis' %s '%s' %s >/dev/null", getenv("WT_TEST_SERVERS"),
             verb, getenv("WT_TEST_REDIS"), args);
    if (system(command) != 0)
        fail_msg("failed: %s", command);
}

static bool make_with(const char *file, const char *form, struct wt_tier_opts *opts) {
    const char *folder = getenv("WT_TEST_REDIS");
    char path[600];
    snprintf(path, sizeof path, "%s/url", folder ? folder : "");
    FILE *f = folder && getenv("WT_TEST_SERVERS") ? fopen(path, "r") : NULL;
    char url[400];
    if (!f || !fgets(url, sizeof url, f)) {
        print_message("SKIPPED: no Redis runs: WT_TEST_REDIS is not the folder of one\n");
        return false;
    }
    fclose(f);
    url[strcspn(url, "\n")] = '\0';
    snprintf(path, sizeof path, "%s/%s", folder, file);
    snprintf(opts->url, sizeof opts->url, form, *file ? path : url);
    script("flush", "");
    return true;
}

static bool make_url(struct wt_tier_opts *opts, void **out) {
    *out = NULL;
    return make_with("", "%.400s", opts);
}

static bool make_unix(struct wt_tier_opts *opts, void **out) {
    *out = NULL;
    return make_with("socket", "redis+unix://%.400s?connections=1&depth=3", opts);
}

/* What it holds comes back with it: as after a restart with persistence. */
static void away(void *place) {
    (void)place;
    script("cli", "save");
    script("kill", "");
}

static void back(void *place) {
    (void)place;
    script("up", "");
}

static void drop(void *place) {
    (void)place;
}

enum { CAPS = WT_CAP_WRITE | WT_CAP_VOLATILE, TRACELESS = 64 << 10 };

static const struct contract_fixture single = {"single", make_url, NULL,     NULL,
                                               drop,     CAPS,     TRACELESS};
static const struct contract_fixture local = {"unix", make_unix, away, back, drop, CAPS, TRACELESS};
static const struct contract_fixture tls = {"tls", make_url, NULL, NULL, drop, CAPS, TRACELESS};
static const struct contract_fixture cluster = {"cluster", make_url, NULL,     NULL,
                                                drop,      CAPS,     TRACELESS};
static const struct contract_fixture acl = {"acl", make_url, NULL, NULL, drop, CAPS, TRACELESS};

const struct contract_fixture *const contract_fixtures[] = {&single,  &local, &tls,
                                                            &cluster, &acl,   NULL};
