/*
 * libwaferloader: streams batches of wafer images to a training loop, deterministic, resumable,
 * sharded over ranks.
 *
 *     wl_options o = WL_OPTIONS_INIT;
 *     o.config = "loader.conf"; o.dataset = "wafers"; o.batch = 64; o.epochs = 3;
 *     wl_loader *l;  wl_batch *b;
 *     if (wl_open(NULL, &o, &l) < 0) fail(wl_last_error(NULL)->message);
 *     int rc;
 *     while ((rc = wl_next(l, NULL, WL_FOREVER, &b)) >= 0) {
 *         if (rc == WL_END_OF_EPOCH) continue;      // the next call begins the next epoch
 *         if (rc == WL_END) break;                  // all epochs are done
 *         const wl_tensor *image = wl_batch_tensor(b, "image");   // [B, H, W]
 *         ...
 *         wl_batch_release(b, NULL);
 *     }
 *     wl_close(l);
 *
 * Rules that hold for every function:
 *
 * - Results: 0 is success, positive a state (WL_END_OF_EPOCH...), negative an error; wl_last_error
 *   tells the rest.
 * - Threads, stated for each function: "any thread" may run beside all others on the same object;
 *   "consumer" is one thread at a time for each loader.
 * - Waiting: whatever waits takes a timeout in milliseconds, WL_FOREVER for none; wl_abort ends
 *   every wait.
 * - Silence: the library never prints, exits, forks or touches signals; a context's log callback
 *   gets its messages.
 * - Streams: `stream` is a cudaStream_t where batches lie in device memory, ignored (pass NULL) on
 *   the host.
 * - NULL: destroying NULL is fine everywhere.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef WAFERTIER_LOADER_H
#define WAFERTIER_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include <wafertier/version.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WL_API __attribute__((visibility("default")))
#else
#define WL_API
#endif

typedef struct wl_context wl_context; /* what loaders share: tiers, memory, log */
typedef struct wl_loader wl_loader;
typedef struct wl_batch wl_batch;

typedef enum wl_result {
    WL_OK = 0,
    WL_END_OF_EPOCH = 1, /* no batch: an epoch ended; the next wl_next goes on with the next one */
    WL_END = 2,          /* no batch: all epochs are done */
    WL_NOT_READY = 3,    /* no batch within the timeout; try again */

    WL_ERROR_INVALID =
        -1, /* an argument or option; the message names it and the nearest that would do */
    WL_ERROR_MEMORY =
        -2, /* memory, or the budget is too small: the message says how much is needed */
    WL_ERROR_NOT_FOUND = -3, /* data set, shard or configuration */
    WL_ERROR_CORRUPT = -4,   /* damaged in its cold copy */
    WL_ERROR_STORAGE = -5,   /* no tier that holds the data answers */
    WL_ERROR_ABORTED = -6,   /* wl_abort was called */
    WL_ERROR_EXHAUSTED = -7, /* the caller holds every slot: release a batch */
    WL_ERROR_STATE = -8, /* a saved state does not fit this loader; the message names the field */
    WL_ERROR_UNSUPPORTED = -9, /* not in this build, or not on this machine */
    WL_ERROR_DEVICE = -10,     /* CUDA; see wl_error.cuda */
    WL_ERROR_SYSTEM = -11      /* a system call; see wl_error.sys */
} wl_result;

#define WL_FOREVER (-1)

/* Element types; the numbers never change. */
typedef enum wl_dtype {
    WL_BOOL = 1,
    WL_U8,
    WL_I8,
    WL_U16,
    WL_I16,
    WL_U32,
    WL_I32,
    WL_U64,
    WL_I64,
    WL_F16,
    WL_F32,
    WL_F64,
    WL_C64,
    WL_C128
} wl_dtype;
WL_API size_t wl_dtype_size(wl_dtype dtype);      /* bytes of an element; any thread */
WL_API const char *wl_dtype_name(wl_dtype dtype); /* "u8", "f32"; static; any thread */

/* ---- errors ---- */

typedef struct wl_error {
    wl_result code;
    char message[512]; /* one line: what, where, what to do */
    char shard[192];   /* object name, or "" */
    char key[96];      /* sample, or "" */
    uint64_t offset;   /* in the object */
    int sys;           /* errno or 0 */
    int cuda;          /* cudaError_t or 0 */
} wl_error;

/* The last error of this loader (l given: as its consumer saw it), or of this thread's last failed
 * wl_open, wl_context_open or other call without a loader (l NULL). Never NULL. Valid until the
 * next failing call on the same loader or thread. Any thread. */
WL_API const wl_error *wl_last_error(const wl_loader *l);
WL_API const char *wl_result_name(int result); /* "WL_OK"; static; any thread */
WL_API const char *wl_version(void);           /* static; any thread */

/* ---- context ---- */

/* level 0 error, 1 warning, 2 info, 3 debug; called from any of the library's threads */
typedef void (*wl_log_fn)(void *arg, int level, const char *line);

typedef struct wl_context_options {
    size_t size;        /* sizeof(wl_context_options): set by the initialiser */
    const char *config; /* path of a loader.conf or wafertierd.conf; NULL: $WAFERTIER_CONFIG, else
                           /etc/wafertier/loader.conf */
    uint64_t memory; /* budget in bytes over all loaders of the context: windows, slots, indices; 0:
                        a quarter of the machine's memory */
    int threads;     /* decode threads, 0: the processors this process may use, at most 16 */
    wl_log_fn log;   /* NULL: silent */
    void *log_arg;
    int log_level; /* most verbose level wanted; the initialiser sets 1 */
} wl_context_options;
#define WL_CONTEXT_OPTIONS_INIT                                                                    \
    { sizeof(wl_context_options), NULL, 0, 0, NULL, NULL, 1 }

/* Opens the tiers and starts the threads. A tier that is away is no error. options NULL: all
 * defaults. Any thread. */
WL_API int wl_context_open(const wl_context_options *options, wl_context **out);
/* Drops the caller's reference: the context goes when its last loader has. Any thread. */
WL_API void wl_context_close(wl_context *ctx);

/* ---- options ---- */

typedef enum wl_tail { WL_TAIL_DROP = 0, WL_TAIL_PAD = 1 } wl_tail;
typedef enum wl_mode { WL_MODE_TRAIN = 0, WL_MODE_EVAL = 1 } wl_mode;
typedef enum wl_accel { WL_ACCEL_AUTO = 0, WL_ACCEL_HOST = 1, WL_ACCEL_CUDA = 2 } wl_accel;
typedef enum wl_bad { WL_BAD_FAIL = 0, WL_BAD_SUBSTITUTE = 1, WL_BAD_MASK = 2 } wl_bad;

typedef struct wl_options {
    size_t size;         /* sizeof(wl_options): set by the initialiser */
    const char *config;  /* as in wl_context_options; used when wl_open gets no context */
    const char *dataset; /* name; required */
    uint64_t generation; /* 0: the newest when the loader opens; it stays on that one */
    uint64_t batch;      /* samples of the global batch over all ranks; required */
    uint64_t epochs;     /* 0: without end */
    uint64_t seed;
    int rank, world; /* -1: from the environment (RANK/WORLD_SIZE of torchrun, OMPI_COMM_WORLD_*,
                        PMI_*, SLURM_PROCID/SLURM_NTASKS), else 0 of 1 */
    wl_mode mode;    /* WL_MODE_EVAL: manifest order, every sample exactly once */
    wl_tail tail; /* train: drop the incomplete last batch, or pad it with zeroes (valid = 0); eval
                     always pads */
    uint64_t block;  /* samples that stay together on disk, 0: a typical shard's */
    uint32_t lanes;  /* 0: chosen from batch and data set; set it to a multiple of the largest world
                        you mean to use */
    uint32_t window; /* blocks of a lane that are shuffled together, 0: chosen */
    uint32_t slots;  /* batches in flight (ring), 0: 4; at least 2 */
    int threads;     /* for a context of its own: decode threads */
    uint64_t memory; /* for a context of its own: budget */
    wl_accel accel;  /* where batches lie; AUTO: CUDA where there is a device, host else (one log
                        message) */
    int device;      /* CUDA device, -1: LOCAL_RANK or the current one */
    const char *fields; /* comma-separated tensors to deliver, NULL: all of the data set; "image" is
                           the unnamed one */
    wl_bad bad; /* what to do with a sample that is damaged in its cold copy or cannot be decoded */
    uint64_t bad_max; /* for SUBSTITUTE and MASK: more bad samples than this in an epoch are an
                         error; 0: 1% of the samples */
    const char *job;  /* name shown by the daemon, NULL: host-pid */
    int timeout_ms; /* a tier that is away is waited for as long, then WL_ERROR_STORAGE; 0: 60000 */
    wl_log_fn log;  /* for a context of its own */
    void *log_arg;
    int verify_every_read; /* 1: sums of plain tars are checked again on every batch, not once for
                              each time bytes enter memory; a .tar.zst is checked whenever it is
                              decoded, which is then */
} wl_options;
#define WL_OPTIONS_INIT                                                                            \
    {                                                                                              \
        sizeof(wl_options), NULL, NULL, 0, 0, 1, 0, -1, -1, WL_MODE_TRAIN, WL_TAIL_DROP, 0, 0, 0,  \
            0, 0, 0, WL_ACCEL_AUTO, -1, NULL, WL_BAD_FAIL, 0, NULL, 0, NULL, NULL, 0               \
    }

/* Sets one option by name ("batch", "256"; "tail", "pad"): for command lines and bindings. Unknown
 * names are WL_ERROR_INVALID and the message has the nearest one. Text values are kept by
 * reference. Any thread. */
WL_API int wl_options_set(wl_options *options, const char *name, const char *value);
/* For bindings, which have no initialiser: options with every default, as large as this library's
 * struct; free with wl_options_free (NULL is fine; texts that were set are the caller's). NULL
 * without memory. Any thread. */
WL_API wl_options *wl_options_new(void);
WL_API void wl_options_free(wl_options *options);

/* ---- loader ---- */

/* Reads the data set's manifest, reserves all memory (batches are allocated at once, windows when
 * they are first filled; both are kept and reused), starts to prefetch. ctx NULL: a context of its
 * own from options. A cold tier that is away is waited for until timeout_ms. Any thread. */
WL_API int wl_open(wl_context *ctx, const wl_options *options, wl_loader **out);
/* Ends the loader: wakes all waits, drops what is in flight. Batches still held stay readable until
 * they are released (the ring is reference-counted). Any thread, once; not beside wl_next. */
WL_API void wl_close(wl_loader *l);
/* Every wait on this loader, now and later, ends with WL_ERROR_ABORTED within 100 ms. Any thread,
 * also from a signal-handling thread. */
WL_API void wl_abort(wl_loader *l);

/* Gives the next batch of this rank. Orders `stream` after the batch's copy (device batches).
 * timeout in ms, 0: only if ready. Errors are sticky but for WL_ERROR_EXHAUSTED. Consumer. */
WL_API int wl_next(wl_loader *l, void *stream, int timeout_ms, wl_batch **out);
/* The same into tensors of the caller: n destinations, each contiguous, of the batch's dtype, shape
 * and place. Returns when (host) or after stream order (device) they are filled; no batch is held;
 * the labels and ids of *info (may be NULL) are valid until the next call. Consumer. */
typedef struct wl_destination {
    const char *field;
    void *data;
    size_t bytes;
} wl_destination;
WL_API int wl_next_into(wl_loader *l, void *stream, int timeout_ms, const wl_destination *dst,
                        size_t n, wl_batch **info);
/* The caller's work with the batch that it enqueued on `stream` so far comes before the slot's
 * reuse. A batch is released once. Any thread. */
WL_API void wl_batch_release(wl_batch *b, void *stream);
/* A further stream uses the batch: it is ordered after the copy, and release waits for it as well.
 * Any thread. */
WL_API int wl_batch_use(wl_batch *b, void *stream);

/* ---- batches: valid from wl_next to wl_batch_release; read-only functions, any thread ---- */

#define WL_MAX_NDIM 8
typedef struct wl_tensor {
    const char *name; /* "image", "mask", ... or one of those below */
    void *data;       /* contiguous, C order */
    wl_dtype dtype;
    int ndim;
    int64_t shape[WL_MAX_NDIM];
    int64_t stride[WL_MAX_NDIM]; /* in elements */
    int device;                  /* -1: host memory, else the CUDA device */
} wl_tensor;
/* By name; NULL when the batch has none. Always there, on the host: `label` i32 [B] (class, -1
 * unlabelled; of a multi-hot data set: 0 or -1), `valid` u8 [B] (0: padding or masked), `sample_id`
 * u64 [B], `size` i32 [B,2] (height, width as stored); multi-hot data sets: `multihot` u8 [B,C]. */
WL_API const wl_tensor *wl_batch_tensor(const wl_batch *b, const char *name);
WL_API size_t wl_batch_tensors(const wl_batch *b);
WL_API const wl_tensor *wl_batch_tensor_at(const wl_batch *b, size_t i);
WL_API uint64_t wl_batch_size(const wl_batch *b); /* rows of this rank, valid or not */
WL_API uint64_t wl_batch_step(const wl_batch *b); /* 0, 1, ... in the epoch */
WL_API uint64_t wl_batch_epoch(const wl_batch *b);
WL_API int wl_batch_slot(
    const wl_batch *b); /* 0 .. slots-1: its addresses are the same each time, for CUDA graphs */
WL_API const char *wl_batch_key(const wl_batch *b,
                                uint64_t row); /* "<lot>/<wafer>/<sample>", "" for padding */

/* The key that the order has in this row. It differs from wl_batch_key only where the sample was
 * bad and another was substituted. */
WL_API const char *wl_batch_wanted_key(const wl_batch *b, uint64_t row);

/* A DLPack tensor (dlpack.h 1.x, DLManagedTensorVersioned*, as void*): shares the batch's memory
 * and holds its own reference, so that it stays valid after wl_batch_release and wl_close; its
 * deleter may run on any thread. NULL on error. */
WL_API void *wl_batch_dlpack(wl_batch *b, const char *name, void *stream);
/* The same as a DLManagedTensor* of DLPack before 1.0, for frameworks that ask for no version
 * (numpy 1, torch 1). */
WL_API void *wl_batch_dlpack_unversioned(wl_batch *b, const char *name, void *stream);

/* ---- what the data set is; valid until wl_close; any thread ---- */

typedef struct wl_info {
    const char *dataset;
    uint64_t generation, samples, shards, stored_bytes;
    uint64_t steps;      /* of an epoch, the same on every rank */
    uint64_t rank_batch; /* rows of this rank's batches */
    uint32_t lanes, window;
    uint64_t block;
    int rank, world;
    uint32_t classes;
    int multihot;
    uint64_t memory; /* bytes that this loader allocated */
    int ranged;      /* 1: windows did not fit the budget and samples are read one by one */
} wl_info;
WL_API void wl_get_info(const wl_loader *l, wl_info *info);
WL_API const char *wl_class_name(const wl_loader *l, uint32_t c); /* NULL when out of range */

/* ---- state: resume at the very next sample ---- */

#define WL_STATE_MAX 1024
/* Writes the position after the last batch that wl_next gave (at most WL_STATE_MAX bytes); *len
 * gets the length. Consumer. */
WL_API int wl_state_save(const wl_loader *l, void *buf, size_t size, size_t *len);
/* The position after batch b. Any thread. */
WL_API int wl_batch_state(const wl_batch *b, void *buf, size_t size, size_t *len);
/* Goes on from a saved position: before the first wl_next only. Ranks, threads and tiers may
 * differ; the batch too, where the lanes divide it. Consumer. */
WL_API int wl_state_load(wl_loader *l, const void *buf, size_t len);

/* ---- bad samples ---- */

/* A sample that was found damaged in its cold copy. What the copies in other tiers lack is read
 * from the cold one and is no bad sample. */
typedef struct wl_bad_sample {
    char shard[192]; /* object name */
    char key[96];    /* "": the shard's index is damaged, and with it all its samples */
    uint64_t epoch;  /* in which it was met first */
    uint64_t times;  /* in how many rows */
} wl_bad_sample;
/* Those that this rank has met since it was opened, in the order in which they were met: copies at
 * most n, gives how many there are; at most 256 are kept, wl_stats.bad_samples counts all. Where
 * rank 0 met them the daemon shows them too (GET /v1/jobs). Any thread. */
WL_API size_t wl_quarantine(const wl_loader *l, wl_bad_sample *list, size_t n);

/* ---- statistics ---- */

#define WL_MAX_TIERS 8
typedef struct wl_tier_stats {
    char name[64];
    uint64_t reads, bytes;     /* ranges finished at this tier, and their stored bytes */
    uint64_t misses, failures; /* not there; there but damaged or away */
    int down;
} wl_tier_stats;
typedef struct wl_stage_stats {
    double busy_s, wait_s; /* summed over its work: being done; standing in line before it (deliver:
                              batches that waited for the consumer) */
    uint64_t queue;        /* what stands before it now */
} wl_stage_stats;
typedef struct wl_stats {
    size_t size;                      /* set by the caller to sizeof(wl_stats) */
    uint64_t batches, samples, bytes; /* delivered: batches, valid rows, bytes of their tensors */
    double stall_s;                   /* the consumer waited in wl_next */
    double elapsed_s;                 /* since wl_open */
    wl_stage_stats fetch, decode, stage, deliver;
    const char *blame;   /* stage that the last stalls waited for: "fetch", "decode", "stage",
                            "consumer"; static */
    char blame_tier[64]; /* for fetch: the tier */
    size_t tiers;
    wl_tier_stats tier[WL_MAX_TIERS]; /* cold first */
    uint64_t bad_samples, retries;
    uint64_t joins; /* reads served by a mapping that was kept */
    uint64_t memory;
    /* stall_s by what was waited for; of fetch, tier_stall_s by the tier that was read from */
    double stall_fetch_s, stall_decode_s, stall_stage_s, stall_consumer_s;
    double tier_stall_s[WL_MAX_TIERS];
    uint64_t waits;     /* reads that waited for a copy under way, which should have ended sooner */
    uint64_t waits_met; /* of these, served by that copy */
} wl_stats;
WL_API int wl_get_stats(const wl_loader *l, wl_stats *stats); /* any thread */
/* The same as one JSON object: the fields above by their names, stages and tiers as objects, tiers
 * cold first. Writes at most size bytes with the ending zero; *len (may be NULL) gets the length of
 * the whole. WL_ERROR_INVALID when it does not fit (16 KiB always do). Any thread. */
WL_API int wl_stats_json(const wl_loader *l, char *buf, size_t size, size_t *len);

#ifdef __cplusplus
}
#endif

#endif
