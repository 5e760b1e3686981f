/*
 * The contract of tiers/tier.h as tests: one suite, run over every fixture (a backend in one
 * setting).
 *
 * A fixture makes an empty place and says its options; `away` and `back` take the place away and
 * bring it back. Each test gets a fresh place, loop and tier. Every wait is bounded: a request that
 * does not complete fails its test.
 */
#ifndef WT_TESTS_CONTRACT_H
#define WT_TESTS_CONTRACT_H

#include "tiers/tier.h"

/* cmocka needs these before it. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct contract_fixture {
    const char *name;
    /* Fills opts->url (and more) for a fresh, empty place; *place is its handle. false: not on this
     * machine; it has said why. */
    bool (*make)(struct wt_tier_opts *opts, void **place);
    void (*away)(void *place);
    void (*back)(void *place);
    void (*drop)(void *place);
    unsigned caps;    /* that the tier must have */
    size_t traceless; /* puts up to this size leave no trace before their commit */
};

struct contract { /* a test's state */
    const struct contract_fixture *fixture;
    void *place;
    struct wt_tier_opts opts;
    uv_loop_t loop;
    struct wt_tier *tier;
    bool closed;
};

extern const struct contract_fixture *const contract_fixtures[]; /* NULL-terminated */

enum { CONTRACT_WAIT_MS = 20000 };

/* ---- harness ---- */
int contract_setup(void **state);
int contract_teardown(void **state);
/* Opens and closes c->tier with c->opts. */
void contract_open(struct contract *c);
void contract_close(struct contract *c);
/* Runs the loop until *flag, or fails after CONTRACT_WAIT_MS. */
void contract_until(struct contract *c, const bool *flag);
void contract_until_count(struct contract *c, const unsigned *count, unsigned want);

/* A done() that sets the bool at req->arg. */
void contract_flag(struct wt_req *req);
/* Submits, waits, gives rc; req->done and arg are the harness's. */
int contract_do(struct contract *c, struct wt_req *req);
int contract_put(struct contract *c, const char *key, const void *data, size_t len, unsigned flags);
struct wt_put *contract_put_open(struct contract *c, const char *key, uint64_t size,
                                 unsigned flags);
int contract_put_write(struct contract *c, struct wt_put *put, const void *data, size_t len);
int contract_put_end(struct contract *c, struct wt_put *put, enum wt_op op);
/* Reads into buf; rc, *got. */
int contract_get(struct contract *c, const char *key, uint64_t off, void *buf, size_t len,
                 size_t *got);
int contract_stat(struct contract *c, const char *key, uint64_t *size);
/* Bytes that depend on seed and place. */
void contract_fill(uint8_t *data, size_t len, unsigned seed);

/* ---- the tests, by topic ---- */
struct contract_tests {
    const char *name;
    void (*run)(struct contract *c);
};
extern const struct contract_tests contract_read_tests[], contract_write_tests[],
    contract_flow_tests[], contract_other_tests[]; /* end in a row without name */

#endif
