/* gc: what is an orphan and what is not, who is waited for, and what happens when it is cut short.
 */
#include "kit.h"

#include "tools/gc/gc.h"
#include "tools/gen/gen.h"
#include "tools/packer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DAY = 86400, WEEK = 7 * DAY };

struct place {
    struct kit *k;
    struct wt_target target;
    struct wt_tier *warm;
};

static void open_place(struct kit *k, struct place *p) {
    struct wt_err err = {0};
    struct wt_tier_opts warm = {.name = "warm"};
    char root[300];
    *p = (struct place){.k = k};
    snprintf(root, sizeof root, "%s/cold", k->dir);
    if (wt_target_open(&(struct wt_target_opts){.url = root}, &p->target, &err) < 0)
        fail_msg("%s", err.text);
    snprintf(warm.url, sizeof warm.url, "file://%s/warm", k->dir);
    if (wt_sync_open(p->target.sync, &warm, &p->warm, &err) < 0)
        fail_msg("%s", err.text);
}

static void close_place(struct place *p) {
    wt_target_close(&p->target);
}

/* Another seed gives another content. */
static int try_pack(struct place *p, uint64_t seed, struct wt_manifest *m, struct wt_err *err) {
    const struct wt_gen_opts o = {.kind = WT_GEN_MAP,
                                  .height = 40,
                                  .width = 40,
                                  .dtype = WT_DTYPE_U8,
                                  .samples = 200,
                                  .seed = seed,
                                  .lots = 1,
                                  .wafers = 1};
    const struct wt_pack_opts opts = {
        .dataset = "d", .threads = 1, .shard_size = 64 << 10, .replace = true};
    struct wt_gen *gen;
    assert_int_equal(wt_gen_open(&o, &gen, err), 0);
    int rc = wt_pack_run(wt_gen_source(gen), &p->target, &opts, m, err);
    wt_gen_close(gen);
    return rc;
}

/* Its number of shards. */
static uint64_t pack(struct place *p, uint64_t seed) {
    struct wt_manifest m = {0};
    struct wt_err err = {0};
    if (try_pack(p, seed, &m, &err) < 0)
        fail_msg("%s", err.text);
    uint64_t shards = m.shards;
    wt_manifest_free(&m);
    return shards;
}

static struct wt_gc_opts now_at_once(void) {
    return (struct wt_gc_opts){.grace_s = 0, .young_s = 0};
}

/* How many orphans there are; *out (may be NULL) gets the counts. */
static uint64_t run_gc(struct place *p, struct wt_gc_opts o, struct wt_gc *out) {
    struct wt_gc gc = {.o = o, .cold = &p->target, .n_tiers = 2};
    struct wt_err err = {0};
    gc.tier[0] = p->target.tier;
    gc.tier[1] = p->warm;
    int rc = wt_gc_run(&gc, true, &err);
    if (rc < 0 && rc != WT_ECANCELED)
        fail_msg("%s", err.text);
    uint64_t n = gc.n_objects;
    assert_int_equal(gc.failed, 0);
    wt_gc_free(&gc);
    if (out)
        *out = gc;
    return n;
}

static uint64_t dry(struct place *p, struct wt_gc_opts o) {
    o.dry_run = true;
    return run_gc(p, o, NULL);
}

static uint64_t files(struct place *p, const char *folder) {
    char command[700];
    unsigned long long n = 0;
    snprintf(command, sizeof command, "find '%s/%s' -type f 2>/dev/null | wc -l", p->k->dir,
             folder);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%llu", &n), 1);
    pclose(f);
    return n;
}

static void shell(struct place *p, const char *command) {
    char text[900];
    snprintf(text, sizeof text, "cd '%s' && %s", p->k->dir, command);
    assert_int_equal(system(text), 0);
}

static void put_lease(struct place *p, struct wt_lease *lease, const char *name) {
    char path[300];
    size_t len;
    char *text = wt_lease_format(lease, &len);
    assert_non_null(text);
    snprintf(path, sizeof path, "cold/.wafertier.leases/d/%s", name);
    kit_write(p->k, path, text, len);
    free(text);
}

static struct wt_lease lease_of(enum wt_lease_kind kind, uint64_t generation) {
    struct wt_lease lease;
    wt_lease_init(&lease, kind, "d", generation, "test", 600);
    return lease;
}

/* ---- what is an orphan ---- */

static void what_is_named_or_foreign_stays(void **state) {
    struct place p;
    open_place(*state, &p);
    pack(&p, 1);
    kit_text(p.k, "cold/README", "hello");
    kit_text(p.k, "cold/d/notes.txt", "mine");
    kit_text(p.k, "cold/d/shards/0000/00000000-short.tar", "mine");
    kit_text(p.k, "cold/d/idx/xyz.idx", "mine");
    kit_text(p.k, "cold/other/thing/1.json", "mine");
    kit_text(p.k, "cold/.wafertier.lock", "");
    shell(&p, "mkdir -p warm && cp -r cold/d warm/");
    uint64_t before = files(&p, ".");
    assert_int_equal(run_gc(&p, now_at_once(), NULL), 0);
    assert_int_equal(files(&p, "."), before);
    assert_true(before > 10);
    close_place(&p);
}

static void unnamed_ones_go_when_they_are_old(void **state) {
    struct place p;
    struct wt_gc gc;
    open_place(*state, &p);
    uint64_t shards = pack(&p, 1);
    shell(&p, "mv cold/d/manifest.json saved");
    assert_int_equal(dry(&p, (struct wt_gc_opts){.grace_s = WEEK, .young_s = DAY}), 0);
    shell(&p, "find cold -name '00000001-*' -exec touch -d '2 days ago' {} +");
    assert_int_equal(dry(&p, (struct wt_gc_opts){.grace_s = WEEK, .young_s = DAY}), 1);
    assert_int_equal(files(&p, "cold/d"), shards + 1);
    assert_int_equal(run_gc(&p, now_at_once(), &gc), shards + 1);
    assert_int_equal(gc.found[0][WT_GC_UNNAMED].objects, shards + 1);
    assert_int_equal(gc.removed[0].objects, shards + 1);
    assert_int_equal(gc.removed[0].bytes, gc.found[0][WT_GC_UNNAMED].bytes);
    assert_int_equal(files(&p, "cold"), 0);
    close_place(&p);
}

static void temporaries_go_when_their_owner_is_gone(void **state) {
    struct place p;
    struct wt_process self = wt_process_self(), dead = self, elsewhere = self;
    char text[WT_PROCESS_TEXT], path[200];
    open_place(*state, &p);
    pack(&p, 1);
    dead.pid = fork();
    if (dead.pid == 0)
        _exit(0);
    assert_int_equal(waitpid((pid_t)dead.pid, NULL, 0), dead.pid);
    elsewhere.place ^= 1;
    const struct wt_process owner[] = {self, dead, elsewhere};
    for (int i = 0; i < 6; i++) {
        wt_process_format(&owner[i % 3], text);
        snprintf(path, sizeof path, "%s/.wafertier.tmp/%s-0123456789abcdef-%d",
                 i < 3 ? "cold" : "warm", text, i);
        kit_text(p.k, path, "half");
    }
    struct wt_gc_opts usual = {.grace_s = WEEK, .young_s = DAY};
    assert_int_equal(dry(&p, usual), 2);
    shell(&p, "find . -path '*wafertier.tmp/*' -exec touch -d '2 days ago' {} +");
    assert_int_equal(dry(&p, usual), 4); /* of another machine, and old */
    assert_int_equal(run_gc(&p, usual, NULL), 4);
    assert_int_equal(files(&p, "cold/.wafertier.tmp"), 1); /* ours: this process lives */
    assert_int_equal(files(&p, "warm/.wafertier.tmp"), 1);
    close_place(&p);
}

static void copies_go_when_cold_has_them_no_more(void **state) {
    struct place p;
    struct wt_gc gc;
    open_place(*state, &p);
    uint64_t shards = pack(&p, 1);
    shell(&p, "mkdir -p warm/d && cp -r cold/d/shards warm/d/ && cp -r warm/d warm/gone");
    assert_int_equal(dry(&p, (struct wt_gc_opts){.grace_s = WEEK, .young_s = DAY}), 0);
    assert_int_equal(run_gc(&p, now_at_once(), &gc), shards);
    assert_int_equal(gc.found[1][WT_GC_COPY].objects, shards);
    assert_int_equal(files(&p, "warm/gone"), 0);
    assert_int_equal(files(&p, "warm/d"), shards);
    /* An empty cold tier is rather one that is not mounted. */
    shell(&p, "mv cold/d away");
    assert_int_equal(run_gc(&p, now_at_once(), NULL), 0);
    assert_int_equal(files(&p, "warm/d"), shards);
    close_place(&p);
}

/* ---- replaced generations ---- */

static void replaced_generations_stay_for_the_grace_time(void **state) {
    struct place p;
    struct wt_gc gc;
    open_place(*state, &p);
    uint64_t old = pack(&p, 1), shards = pack(&p, 2);
    shell(&p, "mkdir -p warm/d && cp -r cold/d/shards warm/d/");
    assert_int_equal(files(&p, "cold/d/shards"), old + shards);
    assert_int_equal(run_gc(&p, (struct wt_gc_opts){.grace_s = WEEK, .young_s = 0}, NULL), 0);
    struct wt_lease lease = lease_of(WT_LEASE_JOB, 1);
    put_lease(&p, &lease, "1-00");
    assert_int_equal(run_gc(&p, now_at_once(), NULL), 0);
    lease = lease_of(WT_LEASE_JOB, 2); /* of the current one: no matter */
    put_lease(&p, &lease, "1-00");
    assert_int_equal(run_gc(&p, now_at_once(), &gc), 2 * old + 2);
    assert_int_equal(gc.found[0][WT_GC_RETIRED].objects, old + 2);
    assert_int_equal(gc.found[1][WT_GC_RETIRED].objects, old);
    assert_int_equal(files(&p, "cold/d/shards"), shards);
    assert_int_equal(files(&p, "cold/d/retired"), 0);
    assert_int_equal(files(&p, "warm"), shards);
    close_place(&p);
}

/* Loaders that may not write to cold keep their leases elsewhere: those count too, and go there. */
static void leases_kept_elsewhere_count(void **state) {
    struct place p;
    struct wt_gc gc;
    struct wt_err err = {0};
    char root[300];
    open_place(*state, &p);
    uint64_t old = pack(&p, 1);
    pack(&p, 2);
    struct wt_lease lease = lease_of(WT_LEASE_JOB, 1);
    put_lease(&p, &lease, "1-00");
    shell(&p, "mkdir -p elsewhere && mv cold/.wafertier.leases elsewhere/");
    snprintf(root, sizeof root, "%s/elsewhere", p.k->dir);
    if (wt_target_open_leases(&(struct wt_target_opts){.url = "unused"}, root, &p.target, &err) < 0)
        fail_msg("%s", err.text);
    assert_non_null(p.target.leases);
    assert_int_equal(run_gc(&p, now_at_once(), NULL), 0);
    lease.process.pid = 0x7ffffff0; /* it was killed: no such process */
    put_lease(&p, &lease, "1-00");
    shell(&p, "mv cold/.wafertier.leases/d/1-00 elsewhere/.wafertier.leases/d/");
    assert_int_equal(run_gc(&p, now_at_once(), &gc), old + 2 + 1);
    assert_int_equal(gc.found[2][WT_GC_LEASE].objects, 1);
    assert_int_equal(gc.removed[2].objects, 1);
    assert_int_equal(files(&p, "elsewhere/.wafertier.leases"), 0);
    close_place(&p);
}

static bool stop_after(void *arg) {
    return --*(int *)arg < 0;
}

/* Cut short after each removal in turn; then what is left is still known, and goes. */
static void an_interrupted_gc_is_taken_up(void **state) {
    struct place p;
    open_place(*state, &p);
    pack(&p, 1);
    uint64_t shards = pack(&p, 2);
    uint64_t before = files(&p, "cold/d"), left = before;
    for (int calls = 0; calls < 200 && left > shards + 2; calls++) {
        int n = calls;
        struct wt_gc_opts o = now_at_once();
        o.stopped = stop_after;
        o.stopped_arg = &n;
        run_gc(&p, o, NULL);
        left = files(&p, "cold/d");
        assert_true(left <= before);
        assert_int_equal(files(&p, "cold/.wafertier.leases"), 0);
    }
    assert_int_equal(left, shards + 2);
    /* Killed between the index and the manifest of a retired generation. */
    pack(&p, 3);
    shell(&p, "rm $(ls -t cold/d/idx/* | tail -1)");
    run_gc(&p, now_at_once(), NULL);
    assert_int_equal(files(&p, "cold/d/retired"), 0);
    close_place(&p);
}

/* ---- who is waited for ---- */

static void a_pack_at_work_is_left_alone(void **state) {
    struct place p;
    open_place(*state, &p);
    uint64_t shards = pack(&p, 1);
    shell(&p, "rm cold/d/manifest.json");
    struct wt_lease lease = lease_of(WT_LEASE_PACK, 0);
    put_lease(&p, &lease, "pack-00");
    assert_int_equal(run_gc(&p, now_at_once(), NULL), 0);
    kit_text(p.k, "cold/.wafertier.leases/d/pack-00", "{ what?"); /* nobody knows: it counts */
    assert_int_equal(run_gc(&p, now_at_once(), NULL), 0);
    assert_int_equal(files(&p, "cold/d"), shards + 1);
    lease.life_s = 0; /* its process lives elsewhere, perhaps; its time is over */
    lease.process.place ^= 1;
    put_lease(&p, &lease, "pack-00");
    shell(&p, "sed -i 's/\"expires\":[0-9]*/\"expires\":1/' cold/.wafertier.leases/d/pack-00 && "
              "touch -d '1 hour ago' cold/.wafertier.leases/d/pack-00");
    assert_int_equal(run_gc(&p, now_at_once(), NULL), shards + 2);
    assert_int_equal(files(&p, "cold"), 0);
    close_place(&p);
}

static void another_gc_is_left_alone(void **state) {
    struct place p;
    struct wt_gc gc;
    open_place(*state, &p);
    uint64_t shards = pack(&p, 1);
    shell(&p, "rm cold/d/manifest.json");
    struct wt_lease lease = lease_of(WT_LEASE_GC, 0);
    put_lease(&p, &lease, "gc");
    assert_int_equal(run_gc(&p, now_at_once(), &gc), shards + 1);
    assert_int_equal(gc.removed[0].objects, 0);
    assert_int_equal(gc.troubles, 1);
    assert_int_equal(files(&p, "cold/d"), shards + 1);
    lease.process.pid = 0x7ffffff0; /* it was killed: no such process */
    put_lease(&p, &lease, "gc");
    run_gc(&p, now_at_once(), &gc);
    assert_int_equal(gc.troubles, 0);
    assert_int_equal(files(&p, "cold"), 0);
    close_place(&p);
}

struct republish {
    struct place *p;
    int calls;
};

static bool publish_late(void *arg) {
    struct republish *r = arg;
    if (--r->calls == 0)
        shell(r->p, "mv saved cold/d/manifest.json");
    return false;
}

/* What is published between the scan and the sweep is no orphan any more. */
static void what_was_published_meanwhile_stays(void **state) {
    struct place p;
    open_place(*state, &p);
    uint64_t shards = pack(&p, 1);
    shell(&p, "mv cold/d/manifest.json saved");
    struct republish r = {&p, (int)shards};
    struct wt_gc_opts o = now_at_once();
    o.stopped = publish_late;
    o.stopped_arg = &r;
    assert_int_equal(run_gc(&p, o, NULL), shards + 1);
    assert_int_equal(files(&p, "cold/d"), shards + 2);
    assert_int_equal(run_gc(&p, now_at_once(), NULL), 0);
    close_place(&p);
}

/* A live gc makes a pack wait; one that was killed does not. */
static void a_pack_goes_on_after_a_dead_gc(void **state) {
    struct place p;
    open_place(*state, &p);
    struct wt_lease lease = lease_of(WT_LEASE_GC, 0);
    lease.process.pid = 0x7ffffff0;
    put_lease(&p, &lease, "gc");
    time_t began = time(NULL);
    pack(&p, 1);
    assert_true(time(NULL) - began < 30);
    assert_int_equal(run_gc(&p, now_at_once(), NULL), 1); /* that lease */
    assert_int_equal(files(&p, "cold/.wafertier.leases"), 0);
    close_place(&p);
}

/* ---- what is not understood ---- */

static void a_damaged_data_set_is_left_alone(void **state) {
    static const char *const damage[] = {
        "echo '{' >cold/d/manifest.json",
        "f=$(ls cold/d/idx/*); mv $f saved-idx",
        "f=$(ls cold/d/idx/*); printf x | dd of=$f bs=1 conv=notrunc status=none",
        "echo '{' >cold/d/retired/1.json",
    };
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        struct place p;
        struct wt_gc gc;
        open_place(*state, &p);
        pack(&p, 1);
        if (i == 3)
            pack(&p, 2);
        shell(&p, damage[i]);
        shell(&p, "mkdir -p warm/d && cp -r cold/d/shards warm/d/");
        uint64_t before = files(&p, ".");
        assert_int_equal(run_gc(&p, now_at_once(), &gc), 0);
        assert_int_equal(gc.troubles, 1);
        assert_int_equal(files(&p, "."), before);
        close_place(&p);
        shell(&p, "rm -rf cold warm saved-idx");
    }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        T(what_is_named_or_foreign_stays),
        T(unnamed_ones_go_when_they_are_old),
        T(temporaries_go_when_their_owner_is_gone),
        T(copies_go_when_cold_has_them_no_more),
        T(replaced_generations_stay_for_the_grace_time),
        T(leases_kept_elsewhere_count),
        T(an_interrupted_gc_is_taken_up),
        T(a_pack_at_work_is_left_alone),
        T(another_gc_is_left_alone),
        T(what_was_published_meanwhile_stays),
        T(a_pack_goes_on_after_a_dead_gc),
        T(a_damaged_data_set_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
