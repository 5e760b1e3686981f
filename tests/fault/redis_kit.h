/*
 * What the Redis fault tests share: servers of their own (tests/servers/redis), a tier on a loop
 * with every wait bounded, objects whose bytes are known, and the log.
 *
 * WT_TEST_SERVERS names the folder of the scripts. A request that has not completed a second after
 * its deadline fails its test.
 */
#ifndef WT_TESTS_FAULT_REDIS_KIT_H
#define WT_TESTS_FAULT_REDIS_KIT_H

#include "tests/servers/proxy.h"
#include "tiers/tier.h"

/* cmocka needs these before it. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { KIT_READERS = 8, KIT_DEADLINE_MS = 3000, KIT_OBJECT = 3 * 1000 * 1000 + 7 };

struct kit {
    char dir[64]; /* of the servers */
    const char *kind;
    uv_loop_t loop;
    struct wt_tier_opts opts;
    struct wt_tier *tier; /* NULL: not open */
    struct wt_log log;
    char lines[64 << 10]; /* of the log, one after the other */
    struct proxy *proxy;
    bool failed; /* the test has not come to its end */
};

/* Servers of that kind, without a tier. */
struct kit *kit_start(const char *kind);
void kit_stop(struct kit *k);
/* "verb DIR args" of the script; fails the test when that fails. */
void kit_script(const struct kit *k, const char *verb, const char *args);
/* The same in the background: it may take long. */
void kit_script_later(const struct kit *k, const char *verb, const char *args);
/* What redis-cli prints, without the newline. */
void kit_ask(const struct kit *k, const char *args, char *out, size_t size);
uint16_t kit_port(const struct kit *k, int n);
void kit_url(const struct kit *k, char *out, size_t size); /* DIR/url */

void kit_open(struct kit *k, const char *url);
void kit_close(struct kit *k);
/* Submits with KIT_DEADLINE_MS (where req has none), waits, checks that it ended in time; rc. */
int kit_do(struct kit *k, struct wt_req *req);
void kit_sleep(struct kit *k, unsigned ms); /* the loop runs */
/* Until the tier is (not) down, or fails after 15 s. */
void kit_until_down(struct kit *k, bool down);

void kit_fill(uint8_t *data, size_t len, const char *key);
int kit_put(struct kit *k, const char *key, size_t len);
/* Reads the whole object; checks its bytes where rc is 0. */
int kit_get(struct kit *k, const char *key, size_t len, struct wt_err *err);
int kit_stat(struct kit *k, const char *key);
int kit_remove(struct kit *k, const char *key);

/* Readers that go on and on; what they get must be right or a proper error. */
struct kit_reading {
    struct kit *k;
    struct wt_req req[KIT_READERS];
    uint8_t *buf[KIT_READERS], *want;
    unsigned ok, failed, busy;
    unsigned seen[64]; /* by -rc */
    bool stop, bad;
};
/* key: of KIT_OBJECT bytes, put before; it must live as long. They run while the loop does. */
struct kit_reading *kit_reading_start(struct kit *k, const char *key);
/* Ends them, and checks what they got. */
void kit_reading_stop(struct kit *k, struct kit_reading *r);

/* The tests, by topic: each fills a NULL-terminated table. */
struct kit_test {
    const char *name;
    void (*run)(struct kit *k);
};
struct kit_group {
    const char *name, *kind; /* of servers */
    const struct kit_test *tests;
};
extern const struct kit_test kit_server_tests[], kit_rights_tests[], kit_memory_tests[],
    kit_data_tests[], kit_proxy_tests[], kit_cluster_tests[], kit_hostile_tests[];

#endif
