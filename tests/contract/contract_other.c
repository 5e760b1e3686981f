/* LIST, LOCK and UNLOCK, PROBE, capabilities. */
#include "contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- list ---- */

struct names {
    size_t n, unpublished;
    char name[4000][64];
    uint64_t size;
};

static int gather(struct wt_req *req, const struct wt_entry *entry) {
    struct names *names = req->buf; /* LIST has no use for it */
    assert_true(names->n < 4000);
    snprintf(names->name[names->n++], 64, "%s", entry->key);
    names->unpublished += entry->unpublished;
    names->size += entry->size;
    return 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp(a, b);
}

static struct names *list(struct contract *c, const char *prefix, unsigned flags) {
    struct names *names = calloc(1, sizeof *names);
    struct wt_req req = {
        .op = WT_OP_LIST, .key = prefix, .flags = flags, .on_entry = gather, .buf = names};
    assert_int_equal(contract_do(c, &req), 0);
    qsort(names->name, names->n, 64, by_name);
    return names;
}

static void list_is(struct contract *c, const char *prefix, unsigned flags, const char *want) {
    struct names *names = list(c, prefix, flags);
    char text[1000] = "";
    for (size_t i = 0; i < names->n; i++) {
        strcat(text, names->name[i]);
        strcat(text, " ");
    }
    assert_string_equal(text, want);
    free(names);
}

static void listing(struct contract *c) {
    static const char *const keys[] = {"wafers/manifest.json",     "wafers/shards/0000/a.tar",
                                       "wafers/shards/0000/b.tar", "wafers/shards/0001/c.tar",
                                       "wafers2/manifest.json",    "top"};
    list_is(c, "", 0, "");
    list_is(c, "", WT_LIST_SHALLOW, "");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_int_equal(contract_put(c, keys[i], "12345", 5, 0), 0);
    list_is(c, "", 0,
            "top wafers/manifest.json wafers/shards/0000/a.tar wafers/shards/0000/b.tar "
            "wafers/shards/0001/c.tar wafers2/manifest.json ");
    list_is(c, "wafers", 0,
            "wafers/manifest.json wafers/shards/0000/a.tar wafers/shards/0000/b.tar "
            "wafers/shards/0001/c.tar wafers2/manifest.json ");
    list_is(c, "wafers/", 0,
            "wafers/manifest.json wafers/shards/0000/a.tar wafers/shards/0000/b.tar "
            "wafers/shards/0001/c.tar ");
    list_is(c, "wafers/shards/000", 0,
            "wafers/shards/0000/a.tar wafers/shards/0000/b.tar wafers/shards/0001/c.tar ");
    list_is(c, "wafers/shards/0000/b", 0, "wafers/shards/0000/b.tar ");
    list_is(c, "to", 0, "top ");
    list_is(c, "none/x", 0, "");
    list_is(c, "", WT_LIST_SHALLOW, "top wafers/ wafers2/ ");
    list_is(c, "wafers", WT_LIST_SHALLOW, "wafers/manifest.json wafers/shards/ ");
    list_is(c, "wafers/", WT_LIST_SHALLOW, "wafers/manifest.json wafers/shards/ ");
    list_is(c, "none", WT_LIST_SHALLOW, "");
    struct names *names = list(c, "", 0);
    assert_int_equal(names->size, 30);
    assert_int_equal(names->unpublished, 0);
    free(names);
}

static void long_list(struct contract *c) {
    char key[64];
    for (int i = 0; i < 1500; i++) {
        snprintf(key, sizeof key, "many/%02d/object-%05d", i % 20, i);
        assert_int_equal(contract_put(c, key, "", 0, 0), 0);
    }
    struct names *names = list(c, "many/", 0);
    assert_int_equal(names->n, 1500);
    for (size_t i = 1; i < names->n; i++)
        assert_string_not_equal(names->name[i], names->name[i - 1]);
    free(names);
}

static int keep_time(struct wt_req *req, const struct wt_entry *entry) {
    *(int64_t *)req->buf = entry->mtime;
    return 0;
}

static void unpublished(struct contract *c) {
    size_t len = c->fixture->traceless + 10;
    uint8_t *data = calloc(1, len);
    struct wt_put *put = contract_put_open(c, "x/y", len, 0);
    assert_int_equal(contract_put_write(c, put, data, len), 0);
    struct names *names = list(c, "", 0);
    assert_int_equal(names->n, 1);
    assert_int_equal(names->unpublished, 1);
    /* What gc does with an orphan. */
    struct wt_req del = {.op = WT_OP_REMOVE, .key = names->name[0]};
    assert_int_equal(contract_do(c, &del), 0);
    free(names);
    assert_true(contract_put_end(c, put, WT_OP_PUT_COMMIT) < 0);
    assert_int_equal(contract_stat(c, "x/y", NULL), WT_EMISSING);
    list_is(c, "", 0, "");
    assert_int_equal(contract_put(c, "x/y", data, len, 0), 0);
    free(data);
    int64_t mtime = 0;
    struct wt_req req = {.op = WT_OP_LIST, .key = "x", .on_entry = keep_time, .buf = &mtime};
    assert_int_equal(contract_do(c, &req), 0);
    assert_true(llabs((long long)(time(NULL) - mtime)) < 100);
}

static int stop_at_third(struct wt_req *req, const struct wt_entry *entry) {
    (void)entry;
    return ++req->size == 3 ? 42 : 0;
}

static int cancel_at_third(struct wt_req *req, const struct wt_entry *entry) {
    (void)entry;
    if (++req->size == 3)
        wt_tier_cancel(req);
    return 0;
}

static void list_ended_by_caller(struct contract *c) {
    char key[64];
    for (int i = 0; i < 30; i++) {
        snprintf(key, sizeof key, "f%d/o", i);
        assert_int_equal(contract_put(c, key, "", 0, 0), 0);
    }
    struct wt_req req = {.op = WT_OP_LIST, .key = "", .on_entry = stop_at_third};
    assert_int_equal(contract_do(c, &req), 42);
    assert_int_equal(req.size, 3);
    struct wt_req off = {.op = WT_OP_LIST, .key = "", .on_entry = cancel_at_third};
    assert_int_equal(contract_do(c, &off), WT_ECANCELED);
    assert_int_equal(off.size, 3);
}

/* ---- locks ---- */

static int lock(struct contract *c, struct wt_tier *tier, const char *owner, enum wt_op op,
                struct wt_err *err) {
    struct wt_req req = {.op = op, .key = ".daemon.lock", .owner = owner, .ttl_ms = 60000};
    struct wt_tier *own = c->tier;
    c->tier = tier;
    int rc = contract_do(c, &req);
    c->tier = own;
    *err = req.err;
    return rc;
}

static void locking(struct contract *c) {
    struct wt_err err;
    struct wt_tier *other;
    if (!(wt_tier_caps(c->tier) & WT_CAP_LOCK))
        skip();
    assert_int_equal(wt_tier_open(&c->loop, &c->opts, NULL, &other, &err), 0);
    assert_int_equal(lock(c, c->tier, "one", WT_OP_UNLOCK, &err), WT_EMISSING);
    assert_int_equal(lock(c, c->tier, "one", WT_OP_LOCK, &err), 0);
    assert_int_equal(lock(c, c->tier, "one", WT_OP_LOCK, &err), 0); /* renewed */
    assert_int_equal(lock(c, other, "two", WT_OP_LOCK, &err), WT_ELOCKED);
    assert_non_null(strstr(err.text, "one")); /* names the holder */
    assert_int_equal(lock(c, c->tier, "three", WT_OP_LOCK, &err), WT_ELOCKED);
    assert_int_equal(lock(c, c->tier, "three", WT_OP_UNLOCK, &err), WT_ELOCKED);
    assert_int_equal(lock(c, c->tier, "one", WT_OP_UNLOCK, &err), 0);
    assert_int_equal(lock(c, other, "two", WT_OP_LOCK, &err), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(lock(c, c->tier, "one", WT_OP_LOCK, &err), WT_ELOCKED);
    assert_false(wt_tier_is_down(c->tier));
    /* A tier that closes lets go. */
    struct wt_tier *own = c->tier;
    c->tier = other;
    contract_close(c);
    c->tier = own;
    assert_int_equal(lock(c, c->tier, "one", WT_OP_LOCK, &err), 0);
}

static void probing(struct contract *c) {
    struct wt_req req = {.op = WT_OP_PROBE};
    assert_int_equal(contract_do(c, &req), 0);
    assert_int_equal(wt_tier_caps(c->tier) & c->fixture->caps, c->fixture->caps);
    assert_string_equal(wt_tier_name(c->tier), "subject");
    assert_true(strlen(wt_tier_url(c->tier)) > 0);
}

const struct contract_tests contract_other_tests[] = {
    {"list", listing},
    {"a long list", long_list},
    {"temporaries are listed as unpublished", unpublished},
    {"a list ended by its caller", list_ended_by_caller},
    {"lock", locking},
    {"probe and capabilities", probing},
    {NULL, NULL},
};
