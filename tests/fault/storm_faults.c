/*
 * The faults of the storm. Each begins, lasts as long as the sequence says, and ends; at most one
 * at a time is on Ceph and one on Redis. What they do to copies, they do to copies of shards; a
 * cold object is damaged only while a whole copy of it lies on warm, and put right afterwards:
 * nobody survives the loss of the last copy.
 */
#include "storm.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Ceph: its daemons ---- */

static void daemon_kill(struct storm *s, const struct storm_fault *f) {
    (void)s;
    fault_daemon("kill", f->what);
}

static void daemon_up(struct storm *s, const struct storm_fault *f) {
    (void)s;
    fault_daemon("up", f->what);
}

static void daemon_stop(struct storm *s, const struct storm_fault *f) {
    (void)s;
    fault_signal(f->what, SIGSTOP);
}

static void daemon_continue(struct storm *s, const struct storm_fault *f) {
    (void)s;
    fault_signal(f->what, SIGCONT);
}

/* ---- Ceph: the mount ---- */

static void fuse(const struct storm *s, const char *verb, const char *first) {
    storm_shell("'%s/cephfs' %s %s '%s'", getenv("WT_TEST_SERVERS"), verb, first, s->mount_dir);
}

static void fuse_kill(struct storm *s, const struct storm_fault *f) {
    (void)f;
    fuse(s, "kill", "");
}

static void fuse_mount(struct storm *s, const struct storm_fault *f) {
    (void)f;
    fuse(s, "umount", "");
    fuse(s, "mount", getenv("WT_TEST_CEPH"));
}

/* No program can be started meanwhile: a new one closes the files of this process, and closing a
 * file of a mount that hangs hangs as well. */
static void fuse_stop(struct storm *s, const struct storm_fault *f) {
    char path[200];
    int pid = 0;
    (void)f;
    snprintf(path, sizeof path, "%s.ceph-fuse.pid", s->mount_dir);
    FILE *file = fopen(path, "re");
    if (!file || fscanf(file, "%d", &pid) != 1 || pid <= 1)
        fail_msg("no process in %s", path);
    fclose(file);
    s->fuse_stopped = pid;
    assert_int_equal(kill(pid, SIGSTOP), 0);
}

static void fuse_continue(struct storm *s, const struct storm_fault *f) {
    (void)f;
    kill(s->fuse_stopped, SIGCONT);
    s->fuse_stopped = 0;
}

/* ---- Ceph: quotas ---- */

static void set_quota(struct storm *s, const struct storm_fault *f, unsigned bytes) {
    fault_mon(&s->ceph, NULL,
              "{\"prefix\":\"osd pool set-quota\",\"pool\":\"%s\",\"field\":\"max_bytes\","
              "\"val\":\"%u\"}",
              f->what ? f->what : s->ceph.pool, bytes);
}

static void quota_reach(struct storm *s, const struct storm_fault *f) {
    set_quota(s, f, 1);
}

static void quota_lift(struct storm *s, const struct storm_fault *f) {
    set_quota(s, f, 0);
}

/* ---- Ceph: copies damaged by hand ---- */

/* A command on $f, some shard's copy on warm, where there is one that is not empty. $n is a place
 * in it. The daemon may remove it in the very moment: nothing is made then. */
static void warm_damage(struct storm *s, const struct storm_fault *f) {
    storm_shell("n=%llu\n"
                "f=$(find '%s/" STORM_SET "/shards' -type f | sort |"
                " awk -v n=$n '{ a[NR] = $0 } END { if (NR) print a[n %% NR + 1] }')\n"
                "size=$(stat -c %%s \"$f\" 2>/dev/null) && [ \"$size\" -gt 0 ] || exit 0\n"
                "n=$((n %% size))\n"
                "%s",
                (unsigned long long)storm_random(s, 1000000), s->warm, f->what);
}

/* A shard that has a whole copy on warm: its own, or one that is put there now. Not one whose copy
 * is damaged: the daemon may be about to drop that. */
static void shard_on_warm(struct storm *s, char key[STORM_KEY]) {
    static const char script[] =
        "cd '%s'; w='%s'; n=%llu; keys=($(find " STORM_SET "/shards -type f | sort))\n"
        "for i in ${!keys[@]}; do\n"
        "  key=${keys[(n + i) %% ${#keys[@]}]}\n"
        "  if [ ! -e $w/$key ]; then\n"
        "    mkdir -p $w/${key%%/*}\n"
        "    until cp $key $w.part 2>/dev/null; do sleep 0.2; done # a quota that was just lifted\n"
        "    mv $w.part $w/$key\n"
        "  fi\n"
        "  if cmp -s $key $w/$key; then echo $key >'%s/key'; exit 0; fi\n"
        "done\n"
        "exit 1";
    char path[200];
    storm_shell(script, s->plain, s->warm, (unsigned long long)storm_random(s, 1000000),
                s->kit->root);
    snprintf(path, sizeof path, "%s/key", s->kit->root);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%299s", key), 1);
    fclose(f);
}

static void flip_bit(struct storm *s) {
    size_t at = (size_t)storm_random(s, s->saved_len);
    char changed = (char)(s->saved[at] ^ 1 << storm_random(s, 8));
    assert_int_equal(rados_write(s->ceph.io, s->object, &changed, 1, at), 0);
}

static void cold_damage(struct storm *s, const struct storm_fault *f) {
    uint64_t size;
    time_t when;
    shard_on_warm(s, s->key);
    fault_part(&s->ceph, s->key, s->object);
    assert_int_equal(rados_stat(s->ceph.io, s->object, &size, &when), 0);
    s->saved = malloc(size);
    assert_non_null(s->saved);
    s->saved_len = size;
    assert_int_equal(rados_read(s->ceph.io, s->object, s->saved, size, 0), (int)size);
    if (strcmp(f->what, "cut") == 0)
        assert_int_equal(rados_trunc(s->ceph.io, s->object, storm_random(s, size)), 0);
    else if (strcmp(f->what, "flip") == 0)
        flip_bit(s);
    else
        assert_int_equal(rados_remove(s->ceph.io, s->object), 0);
}

static void cold_restore(struct storm *s, const struct storm_fault *f) {
    (void)f;
    assert_int_equal(rados_write_full(s->ceph.io, s->object, s->saved, s->saved_len), 0);
    free(s->saved);
    s->saved = NULL;
}

/* ---- Redis ---- */

static void redis_kill(struct storm *s, const struct storm_fault *f) {
    (void)f;
    storm_redis(s, "kill", "");
}

static void redis_up(struct storm *s, const struct storm_fault *f) {
    (void)f;
    storm_redis(s, "up", "");
}

static void redis_stop(struct storm *s, const struct storm_fault *f) {
    (void)f;
    storm_shell("kill -STOP $('%s/redis' pid '%s')", getenv("WT_TEST_SERVERS"), s->redis);
}

static void redis_continue(struct storm *s, const struct storm_fault *f) {
    (void)f;
    storm_shell("kill -CONT $('%s/redis' pid '%s')", getenv("WT_TEST_SERVERS"), s->redis);
}

/* Its data set is saved, and loading it again takes two seconds. */
static void redis_load(struct storm *s, const struct storm_fault *f) {
    (void)f;
    storm_redis(s, "cli", "save");
    storm_redis(s, "kill", "");
    storm_shell("cp '%s/conf0' '%s/conf0.before'\n"
                "printf 'key-load-delay 40000\\nloading-process-events-interval-bytes 1024\\n' "
                ">>'%s/conf0'\n"
                "('%s/redis' up '%s' >/dev/null 2>&1 &)",
                s->redis, s->redis, s->redis, getenv("WT_TEST_SERVERS"), s->redis);
}

static void redis_loaded(struct storm *s, const struct storm_fault *f) {
    (void)f;
    storm_shell("until '%s/redis' cli '%s' ping 2>/dev/null | grep -q PONG; do sleep 0.05; done\n"
                "mv '%s/conf0.before' '%s/conf0'; rm -f '%s/data0/dump.rdb'",
                getenv("WT_TEST_SERVERS"), s->redis, s->redis, s->redis, s->redis);
}

/* `what` and, to end it, `undo`: commands of Redis. */
static void redis_command(struct storm *s, const struct storm_fault *f) {
    storm_redis(s, "cli", f->what);
}

static void redis_undo(struct storm *s, const struct storm_fault *f) {
    storm_redis(s, "cli", f->undo);
}

/* What a connection was allowed once it keeps until it is closed. */
static void redis_lock_out(struct storm *s, const struct storm_fault *f) {
    storm_redis(s, "cli", f->what);
    storm_redis(s, "cli", "client kill type normal");
}

/* Lua on n, the name of some chunk, and v, its value; r is some number. */
static void hot_damage(struct storm *s, const struct storm_fault *f) {
    char args[700];
    snprintf(args, sizeof args,
             "eval \"local k = redis.call('keys', 'wt:[0-9a-f]*:[0-9]*:*') "
             "if #k == 0 then return end table.sort(k) local r = %llu local n = k[r %% #k + 1] "
             "local v = redis.call('get', n) if not v or #v == 0 then return end %s\" 0",
             (unsigned long long)storm_random(s, 1000000), f->what);
    storm_redis(s, "cli", args);
}

/* ---- the way to Redis ---- */

static void proxy_begin(struct storm *s, const struct storm_fault *f) {
    uint64_t value =
        f->number == PROXY_CUT ? 1 + storm_random(s, 3000000) : 5 + storm_random(s, 200);
    proxy_set(s->proxy, (enum proxy_mode)f->number, value);
}

static void proxy_end(struct storm *s, const struct storm_fault *f) {
    (void)f;
    proxy_set(s->proxy, PROXY_PASS, 0);
}

/* ---- all of them ---- */

#define CEPH(name_, begin_, end_, what_)                                                           \
    { .name = name_, .group = STORM_CEPH, .begin = begin_, .end = end_, .what = what_ }
#define REDIS(name_, begin_, end_, what_, undo_)                                                   \
    {                                                                                              \
        .name = name_, .group = STORM_REDIS, .begin = begin_, .end = end_, .what = what_,          \
        .undo = undo_                                                                              \
    }
#define PROXY(name_, mode_)                                                                        \
    { .name = name_, .group = STORM_REDIS, .begin = proxy_begin, .end = proxy_end, .number = mode_ }

const struct storm_fault storm_faults[] = {
    CEPH("OSD killed", daemon_kill, daemon_up, "osd.0"),
    CEPH("OSD stopped", daemon_stop, daemon_continue, "osd.0"),
    CEPH("mon killed", daemon_kill, daemon_up, "mon.a"),
    CEPH("MDS killed", daemon_kill, daemon_up, "mds.a"),
    CEPH("ceph-fuse killed", fuse_kill, fuse_mount, NULL),
    {.name = "ceph-fuse stopped",
     .group = STORM_CEPH,
     .begin = fuse_stop,
     .end = fuse_continue,
     .alone = true},
    CEPH("cold pool at its quota", quota_reach, quota_lift, NULL),
    CEPH("pool of CephFS at its quota", quota_reach, quota_lift, "cephfs_data"),
    CEPH("a warm copy truncated", warm_damage, NULL, "truncate -c -s $n \"$f\""),
    CEPH("a bit of a warm copy flipped", warm_damage, NULL,
         "{ b=$(od -An -tu1 -j$n -N1 \"$f\")\n"
         "printf \"\\\\x$(printf %02x $((b ^ 4)))\" | dd of=\"$f\" bs=1 seek=$n "
         "conv=notrunc,nocreat status=none; } || [ ! -e \"$f\" ]"),
    CEPH("a warm copy removed", warm_damage, NULL, "rm -f \"$f\""),
    CEPH("a cold object truncated", cold_damage, cold_restore, "cut"),
    CEPH("a bit of a cold object flipped", cold_damage, cold_restore, "flip"),
    CEPH("a cold object removed", cold_damage, cold_restore, "remove"),
    REDIS("Redis killed, restarted empty", redis_kill, redis_up, NULL, NULL),
    REDIS("Redis stopped", redis_stop, redis_continue, NULL, NULL),
    REDIS("Redis loading", redis_load, redis_loaded, NULL, NULL),
    REDIS("Redis out of memory", redis_command, redis_undo, "config set maxmemory 3mb",
          "config set maxmemory 256mb"),
    REDIS("FLUSHALL", redis_command, NULL, "flushall", NULL),
    REDIS("password changed", redis_lock_out, redis_undo, "acl setuser daemon resetpass '>else'",
          "acl setuser daemon resetpass '>daemon-secret'"),
    REDIS("rights withdrawn", redis_command, redis_undo, "acl setuser daemon -get -getrange -set",
          "acl setuser daemon +get +getrange +set"),
    REDIS("a value truncated", hot_damage, NULL, "redis.call('set', n, v:sub(1, r))", NULL),
    REDIS("a bit of a value flipped", hot_damage, NULL,
          "local i = r % #v redis.call('setrange', n, i, string.char(bit.bxor(v:byte(i + 1), 4)))",
          NULL),
    REDIS("a value replaced", hot_damage, NULL, "redis.call('set', n, 'not what was here')", NULL),
    REDIS("a value removed", hot_damage, NULL, "redis.call('del', n)", NULL),
    PROXY("connections cut", PROXY_CUT),
    PROXY("answers delayed", PROXY_DELAY),
    PROXY("answers dribble", PROXY_DRIBBLE),
    PROXY("no answers", PROXY_MUTE),
    PROXY("connections refused", PROXY_REFUSE),
};
const size_t storm_n_faults = sizeof storm_faults / sizeof storm_faults[0];
