/* Leases and names of processes: written, read back, refused when damaged, over when they are. */
#include "core/lease.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct wt_lease example(enum wt_lease_kind kind) {
    struct wt_lease lease;
    wt_lease_init(&lease, kind, "wafers", 7, "job \xff\n7", 600);
    return lease;
}

static void records_come_back(void **state) {
    (void)state;
    for (int kind = WT_LEASE_JOB; kind <= WT_LEASE_GC; kind++) {
        struct wt_lease lease = example((enum wt_lease_kind)kind), back;
        size_t len;
        char *text = wt_lease_format(&lease, &len);
        assert_non_null(text);
        assert_true(len < WT_LEASE_MAX);
        assert_int_equal(wt_lease_parse(text, len, &back, NULL), 0);
        assert_int_equal(back.kind, kind);
        assert_string_equal(back.dataset, "wafers");
        assert_string_equal(back.holder, "job ??7");
        assert_int_equal(back.generation, 7);
        assert_int_equal(back.id, lease.id);
        assert_int_equal(back.life_s, 600);
        assert_int_equal(back.expires_s, lease.expires_s);
        assert_int_equal(back.process.pid, getpid());
        assert_int_equal(back.process.place, lease.process.place);
        free(text);
    }
}

static void keys(void **state) {
    (void)state;
    struct wt_lease a = example(WT_LEASE_JOB), b = example(WT_LEASE_JOB);
    char key[WT_LEASE_KEY], other[WT_LEASE_KEY], name[WT_DATASET_NAME];
    wt_lease_key(&a, key);
    wt_lease_key(&b, other);
    assert_string_not_equal(key, other);
    assert_int_equal(strncmp(key, ".wafertier.leases/wafers/7-", 27), 0);
    assert_int_equal(wt_lease_key_parse(key, name), 0);
    assert_string_equal(name, "wafers");
    wt_lease_gc_key("wafers", key);
    assert_string_equal(key, ".wafertier.leases/wafers/gc");
    static const char *const wrong[] = {"",
                                        ".wafertier.leases",
                                        ".wafertier.leases/",
                                        ".wafertier.leases/wafers",
                                        ".wafertier.leases/wafers/",
                                        ".wafertier.leases/wafers/a/b",
                                        ".wafertier.leases/../a",
                                        ".wafertier.leasesX/wafers/a",
                                        "wafers/manifest.json"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_true(wt_lease_key_parse(wrong[i], name) < 0);
}

static void damaged_records_are_refused(void **state) {
    (void)state;
    struct wt_lease lease = example(WT_LEASE_PACK), out = {.id = 99};
    size_t len;
    char *text = wt_lease_format(&lease, &len);
    assert_non_null(text);
    for (size_t cut = 0; cut + 1 < len; cut++) {
        char *part = malloc(cut + 1); /* its end is watched by the sanitizers */
        memcpy(part, text, cut);
        assert_true(wt_lease_parse(part, cut, &out, NULL) < 0);
        free(part);
    }
    static const struct {
        const char *from, *to;
    } edits[] = {{"wafertier-lease", "wafertier-other"},
                 {"\"version\":1", "\"version\":2"},
                 {"\"pack\"", "\"park\""},
                 {"\"wafers\"", "\"../ers\""},
                 {"\"life\":600", "\"life\":-60"},
                 {"\"generation\":7", "\"generation\":\"7\""},
                 {"\"expires\":", "\"expired\":"}};
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        char edited[1024];
        char *at = strstr(text, edits[i].from);
        assert_non_null(at);
        int n = snprintf(edited, sizeof edited, "%.*s%s%s", (int)(at - text), text, edits[i].to,
                         at + strlen(edits[i].from));
        struct wt_err err = {0};
        assert_int_equal(wt_lease_parse(edited, (size_t)n, &out, &err), WT_EFORMAT);
        assert_true(strlen(err.text) > 0);
    }
    char *huge = calloc(1, WT_LEASE_MAX + 1);
    assert_int_equal(wt_lease_parse(huge, WT_LEASE_MAX + 1, &out, NULL), WT_EFORMAT);
    free(huge);
    assert_int_equal(out.id, 99);
    free(text);
}

static void lives_end(void **state) {
    (void)state;
    struct wt_lease lease = example(WT_LEASE_JOB);
    lease.expires_s = 10000;
    lease.process.place ^= 1; /* elsewhere: only its time tells */
    assert_true(wt_lease_live(&lease, 0, 9000));
    assert_true(wt_lease_live(&lease, 0, 10000 + 60)); /* clocks differ */
    assert_false(wt_lease_live(&lease, 0, 10000 + 61));
    assert_true(wt_lease_live(&lease, 11000, 11500)); /* its holder's clock is behind */
    assert_false(wt_lease_live(&lease, 11000, 11000 + 600 + 61));
    lease.expires_s = 11000 + 10 * 86400; /* or far ahead */
    assert_false(wt_lease_live(&lease, 11000, 11000 + 600 + 61));
    lease.expires_s = 10000;
    lease.process = wt_process_self();
    assert_true(wt_lease_live(&lease, 0, 9000));
    assert_false(wt_lease_live(&lease, 0, 20000)); /* alive, but it did not renew */
    lease.expires_s = UINT64_MAX / 2;
    assert_true(wt_lease_live(&lease, 0, 20000));
}

static void processes(void **state) {
    (void)state;
    struct wt_process self = wt_process_self(), back = {0};
    char text[WT_PROCESS_TEXT + 8];
    assert_int_equal(self.pid, getpid());
    assert_true(self.place != 0);
    assert_int_equal(wt_process_look(&self), WT_PROCESS_ALIVE);
    wt_process_format(&self, text);
    strcat(text, "-rest");
    const char *rest = wt_process_parse(text, &back);
    assert_string_equal(rest, "-rest");
    assert_int_equal(back.pid, self.pid);
    assert_int_equal(back.place, self.place);
    static const char *const wrong[] = {"",
                                        "x",
                                        "0123456789abcdef",
                                        "0123456789abcdef-",
                                        "0123456789abcde-1",
                                        "0123456789ABCDEF-1",
                                        "0123456789abcdef0-1",
                                        "0123456789abcdef-12345678901"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_null(wt_process_parse(wrong[i], &back));
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    struct wt_process child = {.place = self.place, .pid = pid}, elsewhere = {self.place ^ 1, pid},
                      init = {self.place, 1}, nowhere = {0, pid}, nobody = {self.place, 0};
    assert_int_equal(wt_process_look(&child), WT_PROCESS_DEAD);
    assert_int_equal(wt_process_look(&elsewhere), WT_PROCESS_UNKNOWN);
    assert_int_equal(wt_process_look(&nowhere), WT_PROCESS_UNKNOWN);
    assert_int_equal(wt_process_look(&nobody), WT_PROCESS_UNKNOWN);
    assert_int_equal(wt_process_look(&init), WT_PROCESS_ALIVE);
    struct wt_lease lease = example(WT_LEASE_JOB);
    lease.process = child;
    assert_false(wt_lease_live(&lease, 0, lease.expires_s - 100)); /* killed: at once */
}

static void names_of_parts(void **state) {
    (void)state;
    char name[WT_OBJECT_NAME], dataset[WT_DATASET_NAME];
    struct wt_hash hash = {0x0123456789abcdef, 0xfedcba9876543210}, back;
    uint64_t generation;
    wt_idx_name("wafers", hash, name);
    assert_int_equal(wt_idx_name_parse(name, dataset, &back), 0);
    assert_string_equal(dataset, "wafers");
    assert_true(wt_hash_equal(hash, back));
    name[strlen(name) - 1] = 'y';
    assert_true(wt_idx_name_parse(name, dataset, &back) < 0);
    wt_retired_name("wafers", 12, name);
    assert_string_equal(name, "wafers/retired/12.json");
    assert_int_equal(wt_retired_name_parse(name, dataset, &generation), 0);
    assert_int_equal(generation, 12);
    static const char *const wrong[] = {"wafers/retired/012.json",
                                        "wafers/retired/.json",
                                        "wafers/retired/1.jsonx",
                                        "wafers/retired/-1.json",
                                        "Wafers/retired/1.json",
                                        "retired/1.json",
                                        "wafers/manifest.json",
                                        "1.json",
                                        "wafers/retired/99999999999999999999.json"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_true(wt_retired_name_parse(wrong[i], dataset, &generation) < 0);
        assert_true(wt_idx_name_parse(wrong[i], dataset, &back) < 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back),
        cmocka_unit_test(keys),
        cmocka_unit_test(damaged_records_are_refused),
        cmocka_unit_test(lives_end),
        cmocka_unit_test(processes),
        cmocka_unit_test(names_of_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
