/*
 * What each filter does: throttle's rate, delay's times, fault's errors, flipped bits, short reads
 * and hangs; and how their text is read. That they keep the tier's contract is tests/contract's.
 */
#include "kit.h"

#include "tiers/conf.h"
#include "tiers/filter/filter.h"
#include "tiers/sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct place {
    char folder[256];
    struct wt_sync *sync;
};

static int setup(void **state) {
    struct place *p = calloc(1, sizeof *p);
    kit_make_folder(p->folder);
    assert_int_equal(wt_sync_new(NULL, &p->sync, NULL), 0);
    *state = p;
    return 0;
}

static int teardown(void **state) {
    struct place *p = *state;
    wt_sync_free(p->sync);
    kit_remove_folder(p->folder);
    free(p);
    return 0;
}

static struct wt_tier *open_with(struct place *p, const char *filter) {
    struct wt_tier_opts opts = {.name = "t", .depth = 8};
    snprintf(opts.url, sizeof opts.url, "file://%s/t", p->folder);
    snprintf(opts.filter, sizeof opts.filter, "%s", filter);
    struct wt_tier *tier;
    struct wt_err err = {0};
    if (wt_sync_open(p->sync, &opts, &tier, &err) < 0)
        fail_msg("%s", err.text);
    return tier;
}

static void put(struct place *p, struct wt_tier *tier, const char *key, size_t len) {
    uint8_t *data = calloc(1, len + 1);
    struct wt_err err = {0};
    if (wt_sync_write(p->sync, tier, key, data, len, 0, &err) < 0)
        fail_msg("%s", err.text);
    free(data);
}

static int get(struct place *p, struct wt_tier *tier, uint8_t *buf, size_t len, size_t *got) {
    struct wt_req req = {.op = WT_OP_GET, .key = "k", .buf = buf, .len = len};
    int rc = wt_sync_do(p->sync, tier, &req);
    *got = req.got;
    return rc;
}

static double seconds_since(uint64_t begin) {
    return (double)(uv_hrtime() - begin) / 1e9;
}

/* ---- throttle ---- */

enum { OBJECT = 1 << 20 };

static void throttled_reads(void **state) {
    struct place *p = *state;
    struct wt_tier *tier = open_with(p, "throttle read=10MiB burst=1MiB");
    put(p, tier, "k", OBJECT); /* writes are free */
    uint8_t *buf = malloc(OBJECT);
    size_t got;
    uint64_t begin = uv_hrtime();
    assert_int_equal(get(p, tier, buf, OBJECT, &got), 0); /* within the burst */
    double first = seconds_since(begin);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(get(p, tier, buf, OBJECT, &got), 0);
        assert_int_equal(got, OBJECT);
    }
    double all = seconds_since(begin);
    assert_true(all >= 0.49); /* 6 MiB less the burst */
    assert_true(all < 3);
    assert_true(first < all / 2);
    /* The tier's cost knows. */
    struct wt_tier *slow = open_with(p, "throttle read=10MiB burst=1KiB");
    assert_int_equal(get(p, slow, buf, OBJECT, &got), 0);
    assert_true(wt_tier_cost(slow, 10 << 20) > 500000);
    /* Only bytes that there are count, not those that are asked for. */
    put(p, tier, "small", 100);
    uint8_t *room = malloc(WT_PART);
    begin = uv_hrtime();
    for (int i = 0; i < 20; i++) {
        struct wt_req req = {.op = WT_OP_GET, .key = "small", .buf = room, .len = WT_PART};
        assert_int_equal(wt_sync_do(p->sync, tier, &req), 0);
    }
    assert_true(seconds_since(begin) < 2);
    free(room);
    free(buf);
}

static void throttled_writes(void **state) {
    struct place *p = *state;
    struct wt_tier *tier = open_with(p, "throttle write=20MiB burst=64KiB");
    uint64_t begin = uv_hrtime();
    put(p, tier, "k", 10 << 20);
    assert_true(seconds_since(begin) >= 0.48);
    begin = uv_hrtime();
    uint8_t *buf = malloc(10 << 20);
    size_t got;
    assert_int_equal(get(p, tier, buf, 10 << 20, &got), 0);
    assert_true(seconds_since(begin) < 0.4);
    free(buf);
}

struct flight {
    struct wt_req req;
    bool done;
};

static void landed(struct wt_req *req) {
    ((struct flight *)req)->done = true;
}

/* On a loop of its own: requests side by side share the line; a canceled one gives it back. */
static void throttle_and_cancel(void **state) {
    struct place *p = *state;
    uv_loop_t loop;
    uv_loop_init(&loop);
    put(p, open_with(p, ""), "k", OBJECT);
    struct wt_tier_opts opts = {.name = "t", .filter = "throttle read=1MiB burst=1KiB"};
    snprintf(opts.url, sizeof opts.url, "file://%s/t", p->folder);
    struct wt_tier *tier;
    assert_int_equal(wt_tier_open(&loop, &opts, NULL, &tier, NULL), 0);
    struct flight f[4] = {0};
    uint8_t *buf = malloc(4 * (size_t)OBJECT);
    for (int i = 0; i < 4; i++) {
        f[i].req = (struct wt_req){.op = WT_OP_GET,
                                   .key = "k",
                                   .buf = buf + (size_t)i * OBJECT,
                                   .len = i < 3 ? OBJECT : OBJECT / 4,
                                   .done = landed};
        if (i < 3)
            assert_int_equal(wt_tier_submit(tier, &f[i].req), 0);
    }
    kit_run(&loop, 200);
    assert_false(f[0].done || f[1].done || f[2].done);
    uint64_t begin = uv_hrtime();
    for (int i = 0; i < 3; i++)
        wt_tier_cancel(&f[i].req);
    assert_false(f[0].done);
    assert_true(kit_until(&loop, &f[0].done, 100));
    assert_true(kit_until(&loop, &f[2].done, 100));
    assert_int_equal(f[1].req.rc, WT_ECANCELED);
    assert_int_equal(wt_tier_submit(tier, &f[3].req), 0);
    assert_true(kit_until(&loop, &f[3].done, 3000));
    assert_int_equal(f[3].req.rc, 0);
    double waited = seconds_since(begin);
    assert_true(waited > 0.2 && waited < 1.5); /* not after the three that were canceled */
    bool closed = false;
    wt_tier_close(tier, NULL, NULL);
    kit_until(&loop, &closed, 50);
    assert_int_equal(uv_loop_close(&loop), 0);
    free(buf);
}

/* ---- delay ---- */

static void delays(void **state) {
    struct place *p = *state;
    struct wt_tier *tier = open_with(p, "delay read=30ms..60ms stat=100ms seed=3");
    put(p, tier, "k", 100);
    uint8_t buf[100];
    size_t got;
    double times[8], least = 1, most = 0;
    for (int i = 0; i < 8; i++) {
        uint64_t begin = uv_hrtime();
        assert_int_equal(get(p, tier, buf, sizeof buf, &got), 0);
        times[i] = seconds_since(begin);
        least = times[i] < least ? times[i] : least;
        most = times[i] > most ? times[i] : most;
    }
    assert_true(least >= 0.03);
    assert_true(most - least > 0.001); /* drawn, not fixed */
    uint64_t begin = uv_hrtime();
    assert_int_equal(wt_sync_stat(p->sync, tier, "k", &(uint64_t){0}, NULL), 0);
    assert_true(seconds_since(begin) >= 0.1);
    /* It ends at its deadline, not when its delay is over. */
    struct wt_req req = {.op = WT_OP_STAT, .key = "k", .timeout_ms = 20};
    begin = uv_hrtime();
    assert_int_equal(wt_sync_do(p->sync, tier, &req), WT_ETIMEDOUT);
    assert_true(seconds_since(begin) < 0.095);
}

/* ---- fault ---- */

static void errors_by_count(void **state) {
    struct place *p = *state;
    struct wt_tier *tier = open_with(p, "fault read=MISSING:every3 stat=DENIED:first2");
    put(p, tier, "k", 100);
    uint8_t buf[100];
    size_t got;
    for (int i = 1; i <= 9; i++)
        assert_int_equal(get(p, tier, buf, sizeof buf, &got), i % 3 ? 0 : WT_EMISSING);
    for (int i = 1; i <= 4; i++)
        assert_int_equal(wt_sync_stat(p->sync, tier, "k", &(uint64_t){0}, NULL),
                         i > 2 ? 0 : WT_EDENIED);
    assert_int_equal(wt_tier_caps(tier) & WT_CAP_MAP, 0);
}

static unsigned failures(struct place *p, const char *filter, uint64_t *pattern) {
    struct wt_tier *tier = open_with(p, filter);
    uint8_t buf[10];
    size_t got;
    unsigned failed = 0;
    *pattern = 0;
    for (int i = 0; i < 300; i++) {
        int rc = get(p, tier, buf, sizeof buf, &got);
        assert_true(rc == 0 || rc == WT_ECHANGED);
        failed += rc != 0;
        *pattern = *pattern * 3 + (rc != 0);
    }
    return failed;
}

static void errors_by_chance(void **state) {
    struct place *p = *state;
    put(p, open_with(p, ""), "k", 10);
    uint64_t a, b, c;
    unsigned n = failures(p, "fault read=CHANGED:0.1 seed=7", &a);
    assert_true(n > 10 && n < 60);
    assert_int_equal(failures(p, "fault seed=7 read=CHANGED:0.1", &b), n);
    failures(p, "fault read=CHANGED:0.1 seed=8", &c);
    assert_true(a == b);
    assert_true(a != c);
}

static void breaker_opens(void **state) {
    struct place *p = *state;
    struct wt_tier *tier = open_with(p, "fault read=IO:first3");
    put(p, tier, "k", 10);
    uint8_t buf[10];
    size_t got;
    for (int i = 0; i < 3; i++)
        assert_int_equal(get(p, tier, buf, sizeof buf, &got), WT_EIO);
    assert_true(wt_tier_is_down(tier));
    assert_int_equal(get(p, tier, buf, sizeof buf, &got), WT_EDOWN);
}

static unsigned bits_between(const uint8_t *buf, size_t len) {
    unsigned bits = 0;
    for (size_t i = 0; i < len; i++)
        bits += (unsigned)__builtin_popcount(buf[i]);
    return bits;
}

static void silent_faults(void **state) {
    struct place *p = *state;
    struct wt_tier *tier = open_with(p, "fault read=CORRUPT:every2 read=SHORT:every2");
    put(p, tier, "k", 4000); /* zeros */
    uint8_t buf[4000];
    size_t got;
    unsigned flipped = 0, cut = 0;
    for (int i = 0; i < 12; i++) {
        memset(buf, 0, sizeof buf);
        assert_int_equal(get(p, tier, buf, sizeof buf, &got), 0);
        unsigned bits = bits_between(buf, got);
        assert_true(bits <= 1);
        flipped += bits;
        cut += got < sizeof buf;
    }
    assert_int_equal(flipped, 6); /* one bit each */
    assert_int_equal(cut, 3);     /* the second rule is asked where the first did not hit */
}

static void hanging(void **state) {
    struct place *p = *state;
    struct wt_tier *tier = open_with(p, "fault read=HANG:first1");
    put(p, tier, "k", 10);
    uint8_t buf[10] = {0};
    struct wt_req req = {.op = WT_OP_GET, .key = "k", .buf = buf, .len = 10, .timeout_ms = 50};
    uint64_t begin = uv_hrtime();
    assert_int_equal(wt_sync_do(p->sync, tier, &req), WT_ETIMEDOUT);
    double took = seconds_since(begin);
    assert_true(took >= 0.05 && took < 2);
    size_t got;
    assert_int_equal(get(p, tier, buf, 10, &got), 0);
}

static int count_entry(void *arg, const struct wt_entry *entry) {
    (void)entry;
    ++*(unsigned *)arg;
    return 0;
}

/* What a failed put leaves: nothing, whichever of its steps failed. */
static void failing_puts(void **state) {
    struct place *p = *state;
    static const char *const filters[] = {"fault open=FULL", "fault write=IO", "fault commit=FULL",
                                          "fault commit=HANG", "fault write=IO abort=IO"};
    static const int codes[] = {WT_EFULL, WT_EIO, WT_EFULL, WT_ETIMEDOUT, WT_EIO};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        struct wt_tier_opts opts = {.name = "t", .timeout_ms = 200};
        snprintf(opts.url, sizeof opts.url, "file://%s/t", p->folder);
        snprintf(opts.filter, sizeof opts.filter, "%s", filters[i]);
        struct wt_sync *sync;
        struct wt_tier *tier;
        struct wt_err err = {0};
        assert_int_equal(wt_sync_new(NULL, &sync, NULL), 0);
        assert_int_equal(wt_sync_open(sync, &opts, &tier, NULL), 0);
        uint8_t data[100] = {1};
        assert_int_equal(wt_sync_write(sync, tier, "k", data, sizeof data, 0, &err), codes[i]);
        assert_non_null(strstr(err.text, codes[i] == WT_ETIMEDOUT ? "put commit" : "k: "));
        wt_sync_free(sync);
        unsigned entries = 0;
        assert_int_equal(
            wt_sync_list(p->sync, open_with(p, ""), "", 0, count_entry, &entries, NULL), 0);
        assert_int_equal(entries, 0);
    }
}

/* ---- their text ---- */

static void bad_text(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"throtle rate=1MiB", "'throttle'"},
        {"nothing", "fault, delay, throttle"},
        {"delay raed=2ms", "'read'"},
        {"delay read=2parsec", "read=2parsec"},
        {"delay read=5ms..2ms", "ends before"},
        {"delay read=2h", "hour"},
        {"delay read", "NAME=VALUE"},
        {"delay =1", "NAME=VALUE"},
        {"delay seed=-1", "whole number"},
        {"throttle", "needs rate"},
        {"throttle rate=0", "more than 0"},
        {"throttle burst=1MiB", "needs rate"},
        {"throttle rate=fast", "rate"},
        {"fault read=TIMEOUT", "'TIMEDOUT'"},
        {"fault read=OOPS", "as IO"},
        {"fault read=IO:2", "probability"},
        {"fault read=IO:-0.5", "probability"},
        {"fault read=IO:nan", "probability"},
        {"fault read=IO:every0", "probability"},
        {"fault read=IO:first", "probability"},
        {"fault read=IO:every-3", "probability"},
        {"fault write=CORRUPT", "read alone"},
        {"fault stat=SHORT:1", "read alone"},
        {"delay read=1ms; fault x=IO", "filter fault"},
        {"delay;delay;delay;delay;delay;delay;delay;delay;delay", "more than"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wt_filters *none = NULL;
        struct wt_err err = {0};
        assert_int_equal(wt_filters_parse(rows[i].text, &none, &err), WT_EINVAL);
        if (!strstr(err.text, rows[i].says))
            fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].text, err.text, rows[i].says);
        assert_null(none);
        assert_int_equal(wt_filters_parse(rows[i].text, &none, NULL), WT_EINVAL);
    }
    struct wt_filters *chain = NULL;
    assert_int_equal(wt_filters_parse(" ; ;; ", &chain, NULL), 0);
    assert_null(chain);
    char longest[400];
    memset(longest, 'x', sizeof longest);
    longest[399] = '\0';
    assert_int_equal(wt_filters_parse(longest, &chain, NULL), WT_EINVAL);
}

static void in_a_configuration(void **state) {
    struct place *p = *state;
    char path[400], url[300];
    snprintf(path, sizeof path, "%s/loader.conf", p->folder);
    FILE *f = fopen(path, "w");
    fprintf(f,
            "tier \"cold\" { url = \"file://%s/t\"\n filter = \"delay read=1ms; fault "
            "raed=IO\" }\n",
            p->folder);
    fclose(f);
    struct wt_client_conf conf;
    struct wt_err err = {0};
    assert_int_equal(wt_client_conf_load(path, &conf, &err), 0);
    assert_string_equal(conf.tier[0].filter, "delay read=1ms; fault raed=IO");
    struct wt_tier *tier;
    assert_int_equal(wt_sync_open(p->sync, &conf.tier[0], &tier, &err), WT_EINVAL);
    snprintf(url, sizeof url, "tier cold: filter fault: unknown parameter 'raed'");
    assert_non_null(strstr(err.text, url));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(throttled_reads), T(throttled_writes), T(throttle_and_cancel),
        T(delays),          T(errors_by_count),  T(errors_by_chance),
        T(breaker_opens),   T(silent_faults),    T(hanging),
        T(failing_puts),    T(bad_text),         T(in_a_configuration),
    };
#undef T
    return cmocka_run_group_tests_name("filters", tests, NULL, NULL);
}
