/* A cluster whose servers die and whose slots move. */
#include "redis_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBJECTS = 12 };

static void open_and_fill(struct kit *k) {
    char url[400], key[20];
    kit_url(k, url, sizeof url);
    kit_open(k, url);
    for (int i = 0; i < OBJECTS; i++) {
        snprintf(key, sizeof key, "o%d", i);
        assert_int_equal(kit_put(k, key, KIT_OBJECT), 0);
    }
}

static void spreads(struct kit *k) {
    open_and_fill(k);
    for (int n = 0; n < 3; n++) {
        char args[50], text[100];
        snprintf(args, sizeof args, "%d dbsize", n);
        kit_ask(k, args, text, sizeof text);
        assert_true(atoi(text) >= OBJECTS * 3 / 6); /* 36 chunks and 12 headers over three */
    }
    char key[20];
    for (int i = 0; i < OBJECTS; i++) {
        snprintf(key, sizeof key, "o%d", i);
        assert_int_equal(kit_get(k, key, KIT_OBJECT, NULL), 0);
    }
    struct wt_req usage = {.op = WT_OP_USAGE};
    assert_int_equal(kit_do(k, &usage), 0);
    assert_int_equal(usage.used, (uint64_t)OBJECTS * KIT_OBJECT);
}

static void node_killed(struct kit *k) {
    char key[20];
    unsigned ok = 0, down = 0;
    open_and_fill(k);
    kit_script(k, "kill", "2");
    for (int i = 0; i < OBJECTS; i++) {
        snprintf(key, sizeof key, "o%d", i);
        int rc = kit_get(k, key, KIT_OBJECT, NULL);
        assert_true(rc == 0 || rc == WT_EDOWN);
        ok += rc == 0;
        down += rc == WT_EDOWN;
    }
    assert_true(down > 0);
    print_message("%u of %d objects could still be read\n", ok, OBJECTS);
    kit_script(k, "up", "2");
    kit_until_down(k, false);
    /* It came back empty: its objects are missing or damaged, which says so; the others are whole.
     */
    unsigned whole = 0;
    for (int i = 0; i < OBJECTS; i++) {
        snprintf(key, sizeof key, "o%d", i);
        int rc = WT_EDOWN;
        for (int n = 0; n < 100 && rc == WT_EDOWN; n++) {
            rc = kit_get(k, key, KIT_OBJECT, NULL);
            kit_sleep(k, 50);
        }
        assert_true(rc == 0 || rc == WT_EMISSING || rc == WT_ECORRUPT);
        whole += rc == 0;
        if (rc != 0) {
            kit_remove(k, key);
            assert_int_equal(kit_put(k, key, KIT_OBJECT), 0);
            assert_int_equal(kit_get(k, key, KIT_OBJECT, NULL), 0);
        }
    }
    assert_true(whole < OBJECTS);
}

static void all_killed(struct kit *k) {
    struct wt_err err;
    open_and_fill(k);
    kit_script(k, "kill", "");
    kit_until_down(k, true);
    assert_int_equal(kit_get(k, "o1", KIT_OBJECT, &err), WT_EDOWN);
    kit_script(k, "up", "");
    kit_until_down(k, false);
    int rc = WT_EDOWN;
    for (int n = 0; n < 100 && rc != 0; n++) {
        rc = kit_put(k, "new", KIT_OBJECT);
        kit_sleep(k, 50);
    }
    assert_int_equal(rc, 0);
    assert_int_equal(kit_get(k, "new", KIT_OBJECT, NULL), 0);
}

struct moving {
    struct kit *k;
    char name[200], id[3][64];
    int slot, from, to;
};

static void cluster(struct moving *m, int node, const char *format, const char *id) {
    char rest[200], args[300];
    snprintf(rest, sizeof rest, format, m->slot, id);
    snprintf(args, sizeof args, "%d cluster %s", node, rest);
    kit_script(m->k, "cli", args);
}

/* Which server has the first chunk of o3. */
static void find_chunk(struct kit *k, struct moving *m) {
    char args[300], text[100];
    m->k = k;
    m->from = -1;
    for (int n = 0; n < 3; n++) {
        snprintf(args, sizeof args, "%d --raw keys 'wt:[0-9a-f]*:0:o3'", n);
        kit_ask(k, args, text, sizeof text);
        if (text[0]) {
            m->from = n;
            snprintf(m->name, sizeof m->name, "%s", text);
        }
        snprintf(args, sizeof args, "%d cluster myid", n);
        kit_ask(k, args, m->id[n], sizeof m->id[n]);
    }
    assert_true(m->from >= 0);
    m->to = (m->from + 1) % 3;
    snprintf(args, sizeof args, "cluster keyslot '%s'", m->name);
    kit_ask(k, args, text, sizeof text);
    m->slot = atoi(text);
}

static void slot_moved(struct kit *k) {
    struct moving m;
    char args[500];
    open_and_fill(k);
    find_chunk(k, &m);
    assert_int_equal(kit_get(k, "o3", KIT_OBJECT, NULL), 0);
    cluster(&m, m.to, "setslot %d importing %s", m.id[m.from]);
    cluster(&m, m.from, "setslot %d migrating %s", m.id[m.to]);
    assert_int_equal(kit_get(k, "o3", KIT_OBJECT, NULL), 0); /* still there */
    snprintf(args, sizeof args, "%d migrate 127.0.0.1 %u '%s' 0 5000", m.from, kit_port(k, m.to),
             m.name);
    kit_script(k, "cli", args);
    for (int i = 0; i < 5; i++)
        assert_int_equal(kit_get(k, "o3", KIT_OBJECT, NULL), 0); /* ASK */
    cluster(&m, m.to, "setslot %d node %s", m.id[m.to]);
    cluster(&m, m.from, "setslot %d node %s", m.id[m.to]);
    for (int i = 0; i < 5; i++)
        assert_int_equal(kit_get(k, "o3", KIT_OBJECT, NULL), 0); /* MOVED, then known */
    assert_int_equal(kit_remove(k, "o3"), 0);
    assert_int_equal(kit_put(k, "o3", KIT_OBJECT), 0);
    assert_int_equal(kit_get(k, "o3", KIT_OBJECT, NULL), 0);
}

/* The same as slot_moved, under readers that never pause. The loop runs while the servers are
 * told. */
static void step_under_readers(struct moving *m, int node, const char *format, const char *id) {
    char rest[200], args[300];
    snprintf(rest, sizeof rest, format, m->slot, id);
    snprintf(args, sizeof args, "%d cluster %s", node, rest);
    kit_script_later(m->k, "cli", args);
    kit_sleep(m->k, 300);
}

static void slot_moved_under_readers(struct kit *k) {
    struct moving m;
    char args[500], text[100];
    open_and_fill(k);
    find_chunk(k, &m);
    struct kit_reading *r = kit_reading_start(k, "o3");
    kit_sleep(k, 200);
    step_under_readers(&m, m.to, "setslot %d importing %s", m.id[m.from]);
    step_under_readers(&m, m.from, "setslot %d migrating %s", m.id[m.to]);
    snprintf(args, sizeof args, "%d migrate 127.0.0.1 %u '%s' 0 5000", m.from, kit_port(k, m.to),
             m.name);
    kit_script_later(k, "cli", args);
    kit_sleep(k, 300);
    unsigned asked = r->ok;
    kit_sleep(k, 200);
    assert_true(r->ok > asked); /* through ASK */
    step_under_readers(&m, m.to, "setslot %d node %s", m.id[m.to]);
    step_under_readers(&m, m.from, "setslot %d node %s", m.id[m.to]);
    unsigned moved = r->ok;
    kit_sleep(k, 200);
    assert_true(r->ok > moved);
    assert_int_equal(r->failed, 0);
    kit_reading_stop(k, r);
    snprintf(args, sizeof args, "%d exists '%s'", m.to, m.name);
    kit_ask(k, args, text, sizeof text);
    assert_string_equal(text, "1"); /* it did move */
}

/* A cluster that wants all of its slots says CLUSTERDOWN while one of its servers is away. */
static void cluster_down(struct kit *k) {
    char args[100];
    struct wt_err err = {0};
    open_and_fill(k);
    for (int n = 0; n < 3; n++) {
        snprintf(args, sizeof args, "%d config set cluster-require-full-coverage yes", n);
        kit_script(k, "cli", args);
    }
    kit_script(k, "kill", "2");
    bool told = false;
    uint64_t begin = uv_hrtime();
    for (int i = 0; !told && uv_hrtime() - begin < UINT64_C(20000000000); i++) {
        char key[20];
        snprintf(key, sizeof key, "o%d", i % OBJECTS);
        int rc = kit_get(k, key, KIT_OBJECT, &err);
        assert_true(rc == 0 || rc == WT_EDOWN || rc == WT_ETIMEDOUT);
        told = strstr(err.text, "cluster") != NULL;
        kit_sleep(k, 50);
    }
    assert_true(told);
    kit_script(k, "up", "2");
    kit_until_down(k, false);
    int rc = WT_EDOWN;
    for (int n = 0; n < 200 && rc != 0; n++) {
        rc = kit_put(k, "new", KIT_OBJECT);
        kit_sleep(k, 50);
    }
    assert_int_equal(rc, 0);
    assert_int_equal(kit_get(k, "new", KIT_OBJECT, NULL), 0);
}

static void cluster_by_single_url(struct kit *k) {
    char url[100], key[20];
    struct wt_err err;
    snprintf(url, sizeof url, "redis://127.0.0.1:%u", kit_port(k, 0));
    kit_open(k, url);
    bool told = false;
    for (int i = 0; i < 10; i++) {
        snprintf(key, sizeof key, "o%d", i);
        int rc = kit_get(k, key, 10, &err);
        assert_true(rc == WT_EMISSING || rc == WT_EDOWN);
        told |= strstr(err.text, "write redis+cluster://") != NULL;
    }
    assert_true(told);
}

const struct kit_test kit_cluster_tests[] = {
    {"spreads over the servers", spreads},
    {"a server killed, and back", node_killed},
    {"all killed, and back", all_killed},
    {"a slot moved between reads", slot_moved},
    {"a slot moved while reading", slot_moved_under_readers},
    {"a cluster that is down as a whole", cluster_down},
    {"a cluster's node named as a single server", cluster_by_single_url},
    {NULL, NULL},
};
