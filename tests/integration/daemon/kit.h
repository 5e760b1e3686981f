/*
 * What the daemon's integration tests share: a folder with three file: tiers, data sets written
 * into the cold one, the real wafertierd as a child process, and HTTP over its socket. Every wait
 * is bounded; every helper fails the test by itself.
 */
#ifndef WT_TEST_DAEMON_KIT_H
#define WT_TEST_DAEMON_KIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct kit {
    char root[64], hot[64];
    char conf[128], log[128], sock[96];
    char extra[512]; /* further options of the configuration, before its tiers */
    const char *hot_capacity, *warm_capacity; /* "8MiB"; NULL: none */
    const char *tier_extra;                   /* further options of each tier, or NULL */
    pid_t pid;
};

int kit_setup(void **state);    /* *state: a struct kit with folders made */
int kit_teardown(void **state); /* stops the daemon, removes all */

/* Writes data set `name` of `shards` shards, each of `samples` 64x64 u8 images of noise, as
 * generation `generation` into tier folder cold. The content depends on `salt` and the shard's
 * number; shards below `keep` do not depend on the salt. Returns the size of a shard. */
uint64_t kit_pack(struct kit *k, const char *name, uint64_t shards, uint32_t samples,
                  uint64_t generation, unsigned salt, uint64_t keep);

/* Pixel values of sample `i` of a shard that kit_pack writes: SIDE * SIDE bytes. */
enum { KIT_SIDE = 64 };
void kit_image(uint64_t shard, uint32_t i, unsigned salt, uint8_t *out);

void kit_write_conf(struct kit *k);
void kit_start(struct kit *k); /* until /healthz answers */
pid_t kit_spawn(struct kit *k, const char *log, const char *const *args); /* without waiting */
void kit_wait_status(struct kit *k, const char *status, unsigned ms);     /* of /healthz */
int kit_stop(struct kit *k, int sig, unsigned ms); /* exit status; fails when it takes longer */
int kit_wait_exit(pid_t pid, unsigned ms);         /* exit status, or 256 + signal */
bool kit_log_has(const char *path, const char *text);

/* One request; *status its HTTP status, NULL: it must be 200. The answer as JSON, to be released.
 */
json_t *kit_call(struct kit *k, const char *method, const char *path, const char *body,
                 int *status);
/* Sends raw bytes and reads what comes until the end or `ms`. Returns the length; buf gets a NUL.
 */
size_t kit_raw(struct kit *k, const void *data, size_t len, char *buf, size_t size, unsigned ms);
int kit_connect(struct kit *k);
int kit_connect_now(struct kit *k); /* -1 instead of waiting for room in the queue */
/* An integer inside of `o`: "moves.done", "tiers.2.shards". */
int64_t kit_int(json_t *o, const char *path);
/* Asks GET `path` until the integer at `where` is at least `least`. */
void kit_until(struct kit *k, const char *path, const char *where, int64_t least, unsigned ms);
void kit_sleep(unsigned ms);
uint64_t kit_now(void); /* ms */

/* Registers, answers the id (static until the next call). */
const char *kit_register(struct kit *k, const char *dataset);
/* Reports one whole read of shards [first, first + n) at `tier`. */
json_t *kit_report(struct kit *k, const char *id, unsigned epoch, uint64_t first, uint64_t n,
                   const char *tier, uint64_t bytes);

/* How many files are below folder/dataset/shards, and are all of them equal to those of cold? */
uint64_t kit_count(const char *folder, const char *dataset);
uint64_t kit_count_equal(struct kit *k, const char *folder, const char *dataset);

/* A command of the shell; one that fails fails the test. */
void kit_shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The number that it prints first. */
uint64_t kit_number(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A number from the environment. */
uint64_t kit_setting(const char *name, uint64_t otherwise);

#endif
