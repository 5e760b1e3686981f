/*
 * `wafertier doctor`: looks at every tier, the daemon and this machine, and says what is wrong and
 * what to do about it.
 *
 *   place.c     what lies at the path of a file: tier, asked on a thread that may hang
 *   tier.c      one tier, step by step: reach, usage, facts, write, read, compare, remove
 *   measure.c   latency of small reads, throughput of large transfers, every byte compared
 *   judge.c     what the figures and facts mean: capacity, settings of a server, a higher tier that
 *               is not the faster one
 *   control.c   the daemon behind its socket, its lock in the cold tier
 *   user.c      as whom to look
 *   host.c      memory, open files, clock
 *   report.c    findings, the table;   report_json.c   the same for programs
 *   advice.c    what to do
 *
 * Happy path: tiers are looked at one after the other, so that they do not disturb each other's
 * figures; then the rest. Failures are findings, never the end: only a configuration that cannot be
 * read is. Each request has its deadline, a loop of them a time of its own; a probe object is
 * removed also after a failure or Ctrl-C (what a SIGKILL leaves is gc's).
 */
#ifndef WT_TOOLS_DOCTOR_DOCTOR_H
#define WT_TOOLS_DOCTOR_DOCTOR_H

#include "tiers/conf.h"
#include "tools/stop.h"

#include <jansson.h>
#include <stdio.h>
#include <sys/types.h>

/* What can be found: name in JSON and in the report. */
#define WT_DOCTOR_FAULTS(X)                                                                        \
    X(BAD_TIER, "bad-tier")               /* its options or URL are refused */                     \
    X(FOLDER_MISSING, "folder-missing")   /* file: nothing at its path */                          \
    X(MOUNT_MISSING, "mount-missing")     /* file: mount=required, and none is there */            \
    X(MOUNT_DEAD, "mount-dead")           /* file: nobody serves the mount */                      \
    X(MOUNT_HANGS, "mount-hangs")         /* file: no answer in time */                            \
    X(UNREACHABLE, "unreachable")         /* no server, or it does not let us in */                \
    X(DENIED, "denied")                   /* rights */                                             \
    X(FULL, "full")                       /* no room for the probe */                              \
    X(CORRUPT, "corrupt")                 /* not the bytes that were written */                    \
    X(FAILS, "fails")                     /* any other error of a request */                       \
    X(UNSTABLE, "unstable")               /* went down meanwhile */                                \
    X(LEFT_OVER, "left-over")             /* the probe could not be removed */                     \
    X(NOTHING_TO_READ, "nothing-to-read") /* read_only and empty */                                \
    X(NO_USAGE, "no-usage")               /* it does not tell how full it is */                    \
    X(CAPACITY, "capacity")               /* more than there is room for */                        \
    X(MAXMEMORY, "redis-maxmemory")       /* Redis has no limit */                                 \
    X(EVICTS, "redis-evicts")             /* Redis deletes by itself */                            \
    X(PERSISTS, "redis-persists")         /* Redis writes what nobody needs */                     \
    X(NOT_FASTER, "not-faster")           /* slower than the tier below */                         \
    X(SAME_DEVICE, "same-device")         /* of the tier below */                                  \
    X(DAEMON_DOWN, "daemon-down")         /* nobody answers on the socket */                       \
    X(DAEMON_DENIED, "daemon-denied")     /* the socket's rights */                                \
    X(DAEMON_DEGRADED, "daemon-degraded") /* it sees tiers down */                                 \
    X(DAEMON_STANDBY, "daemon-standby")   /* another one holds the lock */                         \
    X(LOCK_HELD, "lock-held")             /* and no daemon runs here */                            \
    X(MEMORY, "memory")                                                                            \
    X(OPEN_FILES, "open-files")                                                                    \
    X(CLOCK, "clock")

enum wt_doctor_fault {
#define X(id, name) WT_DOCTOR_##id,
    WT_DOCTOR_FAULTS(X)
#undef X
};

enum wt_doctor_level { WT_DOCTOR_NOTE, WT_DOCTOR_WRONG };

struct wt_doctor_finding {
    enum wt_doctor_level level;
    enum wt_doctor_fault fault;
    char where[64]; /* a tier, "daemon" or "host" */
    char what[WT_ERR_TEXT];
    const char *advice;
};

enum wt_place_state {
    WT_PLACE_FOLDER,
    WT_PLACE_MISSING,
    WT_PLACE_NO_FOLDER,
    WT_PLACE_NO_SEARCH,
    WT_PLACE_DEAD,
    WT_PLACE_HANGS
};

struct wt_place { /* of a file: tier */
    enum wt_place_state state;
    char path[512];
    char kind[64]; /* "ext4", "tmpfs", "fuse.ceph-fuse"; "" unknown */
    bool tmpfs, writable, mount_read_only;
    bool on_root;              /* on the file system of "/" */
    uint64_t total, available; /* bytes of the file system; UINT64_MAX: it cannot tell */
    int sys;                   /* errno of DEAD */
    dev_t device;
    uid_t owner;
    gid_t group;
};

enum wt_doctor_step { WT_DOCTOR_SKIPPED, WT_DOCTOR_GOOD, WT_DOCTOR_BAD };

enum { WT_DOCTOR_FACTS = 64 };

struct wt_doctor_fact {
    char where[64], name[24], value[96];
};

struct wt_doctor_tier {
    const struct wt_tier_opts *opts; /* as configured */
    char url[512];                   /* without secrets; "" where it could not be opened */
    bool is_file, writes, locks;
    struct wt_place place;
    enum wt_doctor_step reach, write, read, remove;
    bool usage_known;
    uint64_t used, capacity; /* capacity 0: unlimited */
    double median_us, p99_us;
    uint32_t reads;               /* behind these two; 0: not measured */
    double write_rate, read_rate; /* bytes a second; 0: not measured */
    uint64_t probe_bytes;         /* of the larger probe */
    struct wt_doctor_fact fact[WT_DOCTOR_FACTS];
    size_t n_facts;
};

enum { WT_DOCTOR_FINDINGS = 128, WT_DOCTOR_FLIGHT = 4 };

struct wt_doctor {
    /* options */
    uint64_t size;       /* of the large probe, at most */
    uint64_t timeout_ms; /* longest base of a request's deadline */
    struct wt_client_conf conf;
    char user[64]; /* that it became; "": the one it was */
    struct wt_stop *stop;

    uv_loop_t loop;
    uint8_t *pattern;                  /* what is written */
    uint8_t *buffer[WT_DOCTOR_FLIGHT]; /* what is read */
    char key[WT_KEY_SIZE];             /* of the probe */
    char known[WT_KEY_SIZE];           /* something that lies in a tier; "": nothing was seen */

    /* results */
    struct wt_doctor_tier tier[WT_TIERS_MAX];
    size_t n_tiers;
    struct wt_doctor_finding finding[WT_DOCTOR_FINDINGS];
    size_t n_findings, n_wrong;
    bool daemon_answers;
    char daemon[128]; /* a word or two about it, for the report */
    struct wt_host {
        uint64_t memory, memory_free, open_files;
        double clock_off_s; /* largest difference to a server's clock */
        bool clock_synchronised;
    } host;
};

/* Runs all of it. 0, also when something is wrong; WT_ECANCELED after Ctrl-C. */
int wt_doctor_run(struct wt_doctor *d, struct wt_err *err);
void wt_doctor_print(const struct wt_doctor *d, FILE *out);
json_t *wt_doctor_json(const struct wt_doctor *d); /* NULL: no memory */

/* Before anything else runs: becomes `user`; NULL: the owner of the tiers, where this is root. */
int wt_doctor_become(struct wt_doctor *d, const char *user, struct wt_err *err);

/* ---- the parts ---- */

bool wt_doctor_stopped(struct wt_doctor *d);
/* `scheme` chooses the advice; NULL: the one for all. */
void wt_doctor_find(struct wt_doctor *d, enum wt_doctor_level level, enum wt_doctor_fault fault,
                    const char *where, const char *scheme, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
const char *wt_doctor_advice(enum wt_doctor_fault fault, const char *scheme);
const char *wt_doctor_fault_name(enum wt_doctor_fault fault);
const char *wt_doctor_fact(const struct wt_doctor_tier *t, const char *name); /* the first; NULL */

/* Asks for at most timeout_ms; afterwards the asking thread is left behind. */
void wt_place_look(const char *path, unsigned timeout_ms, struct wt_place *out);
/* Lets the page cache go of an object: what is measured then is the storage. */
void wt_place_forget(const struct wt_place *place, const char *key, unsigned timeout_ms);

void wt_doctor_tier(struct wt_doctor *d, struct wt_doctor_tier *t);

/* Submits and runs the loop until it is done; rc, req->err. */
int wt_doctor_do(struct wt_doctor *d, struct wt_tier *tier, struct wt_req *req);
struct wt_flow { /* a large transfer */
    const char *key;
    uint64_t size;
    unsigned rounds; /* the object is read so often: 1 or more */
    bool compare;    /* with the pattern */
    /* results */
    uint64_t moved;
    double seconds;
    uint64_t wrong_at; /* first byte that differs; UINT64_MAX: none */
};
/* The pattern as a new object: whole, or nothing and an error. */
int wt_flow_write(struct wt_doctor *d, struct wt_tier *tier, struct wt_flow *f, struct wt_err *err);
/* Reads it; ends early, without an error, after some seconds or Ctrl-C. */
int wt_flow_read(struct wt_doctor *d, struct wt_tier *tier, struct wt_flow *f, struct wt_err *err);
/* Small reads one by one all over the object: median, p99, how many. */
int wt_flow_latency(struct wt_doctor *d, struct wt_tier *tier, struct wt_flow *f,
                    struct wt_doctor_tier *t, struct wt_err *err);
int wt_flow_memory(struct wt_doctor *d, struct wt_err *err); /* pattern and buffers */
void wt_flow_free(struct wt_doctor *d);

void wt_judge_tier(struct wt_doctor *d, const struct wt_doctor_tier *t);
void wt_judge_order(struct wt_doctor *d);
void wt_doctor_control(struct wt_doctor *d);
/* Is the daemon's lock free? Asked in the cold tier where no daemon answers. */
void wt_doctor_lock(struct wt_doctor *d, struct wt_tier *cold);
void wt_doctor_host(struct wt_doctor *d);

#endif
