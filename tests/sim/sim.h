/*
 * The simulator: daemons, jobs and storage on one virtual clock, in one thread, from one seed.
 *
 * What is real: all of daemon/ but the HTTP server, the core of tiers/ (queues, deadlines, breaker,
 * cost), core/, and the state files in a folder. What is simulated: libuv (loop.c), the servers
 * behind the tiers (store.c) and the way to them (backend.c), the HTTP server (control.c: a call
 * goes straight to its route), and the process (host.c: it can be killed, frozen and cut off).
 *
 * Happy path: sim_run makes a world from a seed, lets trouble come for a while, then none, and asks
 * after each step whether what must hold does (check.c). Every choice comes from the seed, so a
 * seed replays exactly; `hash` sums up all that happened, for a test of that. Failures: the first
 * broken rule ends the run; `broken` says which, and the last lines of the log tell how.
 */
#ifndef WT_TEST_SIM_H
#define WT_TEST_SIM_H

#include "core/sum.h"
#include "daemon/daemon.h"
#include "tiers/backend.h"

enum {
    SIM_TIERS = 3,
    SIM_HOSTS = 2,
    SIM_JOBS = 3,
    SIM_GENERATIONS = 8,
    SIM_LINES = 400, /* of the log that are kept */
    SIM_LINE = 200,
};
#define SIM_MS UINT64_C(1000000)
#define SIM_S  UINT64_C(1000000000)

struct sim_world;
struct sim_process;

/* ---- world.c: time, chance, events ---- */

struct sim_event {
    uint64_t at_ns, order;
    void (*run)(struct sim_world *w, void *arg);
    void *arg;
};

uint64_t sim_random(struct sim_world *w);
uint64_t sim_below(struct sim_world *w, uint64_t n);
uint64_t sim_between(struct sim_world *w, uint64_t low, uint64_t high); /* both can be */
bool sim_chance(struct sim_world *w, uint64_t per_mille);
void sim_at(struct sim_world *w, uint64_t after_ns, void (*run)(struct sim_world *w, void *arg),
            void *arg);
/* What happened becomes part of the hash. */
void sim_note(struct sim_world *w, const void *data, size_t len);
void sim_say(struct sim_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A rule is broken: the first one counts. */
void sim_break(struct sim_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- loop.c: libuv on the virtual clock ---- */

struct sim_letter { /* something that the loop finds when it polls */
    struct sim_letter *next;
    void (*open)(void *arg);
    void *arg;
};

struct sim_loop {
    uv_loop_t uv; /* first; uv.data leads back here */
    struct sim_process *process;
    uint64_t ms;
    uint64_t order; /* of timers that are started */
    uv_handle_t **handle;
    size_t n_handles, cap_handles;
    struct sim_letter *first, **last;
    unsigned works; /* between uv_queue_work and its end */
};

void sim_loop_init(struct sim_loop *l, struct sim_process *p);
void sim_loop_free(struct sim_loop *l);
void sim_loop_post(struct sim_loop *l, void (*open)(void *arg), void *arg);
/* When it has something to do; UINT64_MAX: nothing. */
uint64_t sim_loop_due_ns(const struct sim_loop *l);
/* One turn: what came in, what closed, timers, idle, prepare. */
void sim_loop_turn(struct sim_loop *l);
bool sim_loop_over(const struct sim_loop *l);

/* ---- store.c: a server ---- */

struct sim_blob {
    unsigned refs;
    size_t size;
    uint8_t *data;
};

struct sim_object {
    char key[WT_KEY_SIZE];
    uint64_t hash;
    struct sim_blob *blob;
    bool told; /* its commit was answered: it survives a restart */
    int64_t mtime;
};

struct sim_store {
    struct sim_world *w;
    uint32_t tier;
    struct sim_object *object;
    size_t n, cap;
    uint64_t used, reserved, foreign; /* bytes: published, of open puts, of others */
    uint64_t capacity;                /* 0: unlimited */
    uint64_t cut_off; /* bytes that damaged copies lack: dropped, they are taken for whole */
    uint64_t late;    /* bytes that came from who had lost the lock, since the last USAGE */
    uint64_t epoch;   /* grows with each restart */
    uint64_t latency_ns;
    uint64_t down_until, hang_until, slow_until;
    uint64_t faults; /* per mille of the requests that fail */
    bool is_volatile;
    char owner[128]; /* of the lock */
    unsigned owner_pid;
    uint64_t lock_until;
};

struct sim_blob *sim_blob_new(size_t size);
struct sim_blob *sim_blob_ref(struct sim_blob *b);
void sim_blob_unref(struct sim_blob *b);

struct sim_object *sim_store_find(const struct sim_store *s, const char *key);
/* Takes a reference. Replaces. */
void sim_store_set(struct sim_store *s, const char *key, struct sim_blob *b, bool told);
void sim_store_delete(struct sim_store *s, struct sim_object *o);
/* Open puts are lost, commits that nobody was told of may be; memory loses everything. */
void sim_store_restart(struct sim_store *s);
/* Bits turn, or the end is missing. */
void sim_store_damage(struct sim_store *s, struct sim_object *o);
void sim_store_free(struct sim_store *s);

/* ---- backend.c: from a tier to its store ---- */

/* The process died: what it has in flight ends; what was sent may arrive or not. */
void sim_backend_abandon(struct sim_process *p);
/* It waits for the outcome of something that cannot be taken back: a commit, an abort, a removal.
 */
bool sim_backend_owes(const struct sim_process *p);

/* ---- data.c: data sets, as packed into the cold store ---- */

struct sim_shard {
    char key[WT_OBJECT_NAME];
    uint64_t key_hash;
    struct wt_hash hash;
    struct sim_blob *blob;
    bool harmed;         /* the simulator itself spoiled its cold copy */
    unsigned checked_by; /* the process that has seen its cold copy since it last changed it */
    uint8_t seen_bad;    /* tiers in which a daemon met a damaged copy */
};

struct sim_set { /* a generation */
    struct wt_dataset d;
    size_t *shard; /* [d.m.shards] index in w->shard */
};

void sim_pack(struct sim_world *w, uint64_t generation);
struct sim_shard *sim_shard_of(struct sim_world *w, const char *key);
bool sim_whole(const struct sim_shard *s, const struct sim_object *o);
void sim_data_free(struct sim_world *w);

/* ---- control.c: calls ---- */

struct sim_answer {
    unsigned status;
    json_t *body;
};
/* `answered` is called once, also when the daemon stops (503) or dies (0); then `arg` is the
 * caller's again. Takes body over. */
void sim_call(struct sim_process *p, const char *method, const char *path, json_t *body,
              void (*answered)(void *arg, const struct sim_answer *a), void *arg);
void sim_control_lost(struct sim_process *p);

/* ---- host.c: machines and the daemons on them ---- */

struct sim_process {
    struct sim_process *next; /* all that still have something to do */
    struct sim_world *w;
    struct sim_host *host; /* NULL: dead, its loop runs out */
    unsigned pid;
    bool stopping, cut; /* cut: no way to the cold store */
    bool out_of_time;   /* it was frozen while it stopped, or died then */
    uint64_t frozen_until, stop_by;
    struct sim_loop loop;
    struct wt_daemon d;
    struct wt_control *control;
    struct sim_op *ops; /* in flight */
    struct wt_log log;
};

struct sim_host {
    struct sim_world *w;
    unsigned number, deaths;
    char folder[160], conf[192], state[192];
    struct sim_process *process; /* NULL: none runs */
    bool over;                   /* none starts any more */
};

void sim_host_init(struct sim_world *w, unsigned number);
void sim_host_start(struct sim_host *h);
/* power: what was not synced is lost too. */
void sim_host_kill(struct sim_host *h, bool power);
void sim_host_stop(struct sim_host *h);
void sim_host_freeze(struct sim_host *h, uint64_t for_ns);
void sim_process_turn(struct sim_process *p);
uint64_t sim_process_due_ns(const struct sim_process *p);
/* The process whose code runs now; NULL between turns. */
struct sim_process *sim_running(void);
void sim_hosts_free(struct sim_world *w);
/* The daemon that holds the lock; NULL: none does. */
struct sim_process *sim_active(struct sim_world *w);

/* ---- readers.c: jobs ---- */

struct sim_job {
    struct sim_world *w;
    unsigned number;
    bool on, waits; /* for an answer */
    char id[WT_JOB_ID];
    enum { SIM_JOB_PLAN, SIM_JOB_ZIPF, SIM_JOB_LIAR } kind;
    struct sim_set *set;
    struct wt_plan plan;
    uint64_t epoch, step, seed;
    uint64_t reads, hits;
    json_t *rows;
};
void sim_jobs_start(struct sim_world *w);
void sim_jobs_stop(struct sim_world *w);
void sim_jobs_free(struct sim_world *w);

/* ---- trouble.c, check.c ---- */

void sim_trouble_start(struct sim_world *w);
void sim_trouble_end(struct sim_world *w);

/* A daemon's request has its effect on a store. */
void sim_check_commit(struct sim_process *p, struct sim_store *s, const char *key,
                      const struct sim_blob *b);
void sim_check_remove(struct sim_process *p, struct sim_store *s, const struct sim_object *o);
/* It is handed over: may this daemon change anything now? */
void sim_check_submit(struct sim_process *p, const struct sim_store *s, const struct wt_req *req);
void sim_check_stat(struct sim_process *p, const struct sim_store *s, const char *key,
                    const struct wt_req *req);
void sim_check_turn(struct sim_process *p);
/* It stops without waiting any longer for its tiers: may it? */
void sim_check_leave(struct sim_process *p);
void sim_check_end(struct sim_world *w);

/* ---- the world ---- */

struct sim_world {
    uint64_t seed, chance, now_ns, order, hash, steps;
    struct sim_event *event; /* a heap */
    size_t n_events, cap_events;
    struct sim_store store[SIM_TIERS];
    struct wt_tier_opts tier[SIM_TIERS];
    struct sim_host host[SIM_HOSTS];
    struct sim_process *processes;
    unsigned pids;
    struct sim_shard *shard;
    size_t n_shards, cap_shards;
    struct sim_set set[SIM_GENERATIONS];
    size_t n_sets;
    struct sim_job job[SIM_JOBS];
    unsigned n_jobs, n_hosts;
    uint64_t shard_size, shards_begin;
    char folder[128], options[512], timeout[16]; /* of the configuration */
    bool trouble;                                /* it may come */
    bool jobs_over;                              /* they read no more */
    uint64_t pause_ns;                           /* between two troubles, at most */
    uint64_t changes;                            /* of tiers, before the rest at the end */
    uint64_t crash_at; /* order of the event at which a daemon is killed; 0: none */
    struct sim_counts {
        uint64_t kills, freezes, cuts, restarts, damages, commits, removes, moves, reads, hits;
        uint64_t takeovers, by_hand, left;
    } count;
    char broken[512];
    char line[SIM_LINES][SIM_LINE];
    uint64_t n_lines;
    bool loud;
};

/* false: a rule was broken, see w->broken. The caller frees. */
bool sim_run(struct sim_world *w, uint64_t seed, const char *folder, bool loud);
void sim_free(struct sim_world *w);
/* Until nothing is left to do. */
void sim_run_out(struct sim_world *w);

#endif
