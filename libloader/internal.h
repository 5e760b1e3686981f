/*
 * The loader inside: how plan, storage and batches hang together.
 *
 *   track   one lane as far as this rank needs it; walks the lane's windows
 *   unit    one window of a track in memory (or, in ranged mode, one step's rows), made of chunks
 *   chunk   consecutive samples of one shard: what is fetched, decoded, checked
 *   fetch   one chunk on its way from a tier
 *   slot    a batch being staged, ready, or held (ring.h)
 *
 * One lock, the ring's, guards tracks, units, chunk states and slots. wt_pump, called with it
 * whenever something changed, does what has become possible: gives idle units their next window,
 * starts fetches, starts staging. Everything else is driven by it:
 *
 *   pump -> fetch (I/O thread) -> decode (crew) -> chunk ready -> pump -> stage (crew) -> slot
 * ready -> wl_next
 *
 * Memory of a chunk: WAITING: the pump's; MOVING: its fetch's; READY, FAILED: read-only until its
 * unit's last step was staged. Failure modes: a chunk that cannot be had leaves an error in its
 * unit; the batch that needs it carries the error to wl_next, where it is sticky. Batches before it
 * are still given.
 */
#ifndef WT_LOADER_INTERNAL_H
#define WT_LOADER_INTERNAL_H

#include "core/dataset.h"
#include "core/plan.h"
#include "libloader/buffers.h"
#include "libloader/context.h"
#include "libloader/errors.h"
#include "libloader/keeper.h"
#include "libloader/moves.h"
#include "libloader/residency.h"
#include "libloader/ring.h"
#include "libloader/stats.h"

enum wt_chunk_state { WT_CHUNK_WAITING, WT_CHUNK_MOVING, WT_CHUNK_READY, WT_CHUNK_FAILED };

struct wt_unit;

struct wt_chunk {
    enum wt_chunk_state state;
    struct wt_unit *unit;
    uint64_t shard;
    struct wt_shard_rec rec;
    uint32_t first, count; /* samples of the shard */
    uint64_t
        at; /* lane position (ranged: ordinal) of the first one: chunks of a unit ascend by it */
    /* when READY: */
    struct wt_kept *kept;  /* its mapping, or NULL */
    struct wt_buffer *buf; /* its bytes, or NULL when they are the mapping's */
    const uint8_t *data;   /* tar bytes from tar_off on */
    uint64_t tar_off;
    const struct wt_shard_index
        *index;                /* NULL: the cold copy's index is damaged, all samples are bad */
    struct wt_shard_index own; /* where index points, unless it is the mapping's */
    void *slice;               /* memory of `own` when it was cut down to this chunk's samples */
    uint32_t index_first;      /* number in *index of sample `first` */
    int field[WT_MAX_FIELDS];  /* of each delivered field in *index, or -1 */
    uint32_t shape[WT_MAX_FIELDS]; /* its expected shape's number in *index */
    bool one_sum;                  /* a sample of the first field has one crc32c (plain tar) */
    _Atomic uint8_t *bad;          /* [count], NULL: all are good */
};

/* A sample as staging wants it: one cache line, in the order of delivery. What a row needs is
 * spread over the index's arrays and so over many pages, and a page that the processor has no
 * translation for costs more than the copy of a small image. */
enum { WT_RECORD_KEY = 28 };
struct wt_record {
    const uint8_t
        *src; /* the first field; NULL: the sample is bad, or not what the manifest says */
    const struct wt_chunk *chunk;
    uint64_t id;
    int32_t label;
    uint32_t sample;         /* of the chunk */
    uint32_t sum;            /* when chunk->one_sum */
    char key[WT_RECORD_KEY]; /* padded with NULs; "": too long, see the index */
};

enum wt_unit_state { WT_UNIT_IDLE, WT_UNIT_LOADING, WT_UNIT_READY };

struct wt_unit {
    enum wt_unit_state state;
    struct wt_epoch e;
    struct wt_window w;  /* window mode */
    uint64_t pos, count; /* lane positions that it serves */
    uint64_t first_step, last_step, steps_left;
    struct wt_chunk *chunk;
    size_t n_chunks, cap, started, pending;
    struct wt_record *record; /* [count] of lane positions from pos on; NULL in ranged mode */
    uint64_t since_ns;        /* when it was given its window */
    uint64_t need;            /* when it is first needed: smaller is sooner */
    wl_error err;             /* code < 0: a chunk failed */
};

struct wt_track {
    uint32_t lane;
    uint64_t a, b;        /* this rank has offsets [a, b) of the lane's share of a batch */
    uint64_t row;         /* the row of offset a */
    uint64_t samples;     /* of the lane */
    bool done;            /* no window is left */
    bool fresh;           /* next is to be found from next_step */
    uint64_t epoch, next; /* window (ranged: step) that an idle unit gets */
    uint64_t next_step;
    unsigned n_units;
    struct wt_unit *unit;
};

struct wt_field {             /* a delivered tensor of the data set */
    char name[WT_FIELD_NAME]; /* as stored: "" is the image */
    struct wt_shape shape;
    size_t bytes;
};

struct wt_cursor { /* a place in the sequence of batches */
    uint64_t epoch, step, seq;
};

struct wt_fetch;
struct wt_reporter;
struct wt_tenancy;

struct wl_loader {
    struct wl_context *ctx;
    wl_options o;
    char *dataset, *job; /* copies of the options' texts */
    struct wt_dataset ds;
    unsigned home; /* tier whose copies are the truth where cold has none; 0: cold */
    struct wt_plan plan;
    struct wt_plan_opts asked; /* before defaults: what a state may fill in */
    struct wt_field field[WT_MAX_FIELDS];
    size_t n_fields;
    size_t at_label, at_valid, at_id, at_size, at_multihot; /* numbers of these tensors */
    int size_field; /* whose height and width `size` gives, or -1 */
    uint64_t first_row, rows;
    bool ranged;
    uint64_t ring_bytes;
    _Atomic uint64_t reserved; /* bytes taken from the context's budget */
    struct wt_buffers buffers;
    struct wt_residency residency;
    struct wt_moves moves;

    struct wt_ring *ring; /* its mutex guards what follows */
    struct wt_track *track;
    size_t n_tracks;
    struct wt_unit *units;    /* of all tracks */
    struct wt_mem records;    /* of all units */
    struct wt_fetch *fetches; /* [n_fetches] */
    struct wt_fetch **idle_fetch;
    unsigned n_fetches, n_idle;
    struct wt_post cancel;
    unsigned busy;     /* fetches, stagings and cancels under way: stop waits for them */
    bool stage_failed; /* a batch with an error was staged: nothing after it */
    uint64_t base_epoch, base_off; /* after a resume with another batch: that epoch's steps begin
                                      here in each lane */
    uint64_t newest_epoch;         /* that a unit was given */
    struct wt_cursor stage, consume;
    struct wl_batch **by_seq; /* [slots]: seq % slots -> batch */
    struct wl_batch *into;    /* held by wl_next_into */
    bool started;             /* wl_next was called */
    bool ended;               /* all epochs are done */
    int failed;               /* sticky code */
    wl_error last;
    uint64_t bad_epoch, bad_count;
    double stalled[WT_BLAMES]; /* decayed time that wl_next waited for each */
    _Atomic bool stopping, aborted;

    struct wt_meter meter;
    uint64_t opened_ns;
    struct wt_reporter *reporter;
    struct wt_quarantine *quarantine;
    struct wt_tenancy *tenancy;
};

static inline void wt_lock(struct wl_loader *l) {
    pthread_mutex_lock(&l->ring->mutex);
}
static inline void wt_unlock(struct wl_loader *l) {
    pthread_mutex_unlock(&l->ring->mutex);
}

/* ---- sched.c ---- */

/* Steps of an epoch, and where a step begins in each lane. */
uint64_t wt_loader_steps(const struct wl_loader *l, uint64_t epoch);
uint64_t wt_loader_step_pos(const struct wl_loader *l, uint64_t epoch, uint64_t step);
/* Does what has become possible. Mutex held. */
void wt_pump(struct wl_loader *l);
/* Builds tracks, units and fetches for l->plan and l->ranged; starts at the cursor. */
int wt_engine_start(struct wl_loader *l, uint64_t epoch, uint64_t done, struct wt_err *err);
/* Ends all that is under way and frees what start built. Batches that were not given yet are
 * dropped. */
void wt_engine_stop(struct wl_loader *l);
/* Ring callback. */
void wt_loader_freed(void *loader);

/* ---- unit.c ---- */

/* Gives an idle unit the track's next window; false when there is none (for now nothing else can be
 * wrong: WT_ENOMEM is left in the unit's err). Mutex held. */
bool wt_unit_next(struct wl_loader *l, struct wt_track *t, struct wt_unit *u);
void wt_unit_release(struct wl_loader *l, struct wt_unit *u); /* -> IDLE; gives back its memory */
void wt_unit_free(struct wt_unit *u);
/* The chunk and its sample (0 .. count-1) that lane position pos delivers. */
struct wt_chunk *wt_unit_locate(const struct wl_loader *l, const struct wt_unit *u, uint32_t lane,
                                uint64_t pos, uint32_t *sample);
void wt_chunk_release(struct wl_loader *l, struct wt_chunk *c);

/* ---- fetch.c ---- */

int wt_fetches_new(struct wl_loader *l, unsigned n, struct wt_err *err);
void wt_fetches_free(struct wl_loader *l);
void wt_fetch_start(struct wl_loader *l,
                    struct wt_chunk *c);       /* an idle fetch must be there. Mutex held */
void wt_fetch_cancel_all(struct wl_loader *l); /* mutex held */
/* Tier that a moving chunk is asked from, -1: none now. Mutex held; for the stall report. */
int wt_fetch_tier(const struct wl_loader *l, const struct wt_chunk *c, bool *decoding);
uint64_t wt_fetch_decoding(const struct wl_loader *l); /* how many are being decoded. Mutex held */

/* ---- record.c ---- */

void wt_record_fill(const struct wl_loader *l, const struct wt_chunk *c, uint32_t sample,
                    struct wt_record *out);
/* The records of all of a chunk's samples; nothing in ranged mode. It was bound, or has no index.
 */
void wt_chunk_records(const struct wl_loader *l, const struct wt_chunk *c);
/* The place of a field in the tar, or NULL where it is not what the manifest says. */
const struct wt_field_ref *wt_chunk_ref(const struct wl_loader *l, const struct wt_chunk *c,
                                        uint32_t sample, size_t field);

/* ---- stage.c ---- */

int wt_stage_new(struct wl_loader *l, struct wt_err *err); /* one for each slot */
void wt_stage_free(struct wl_loader *l);
void wt_stage_start(struct wl_loader *l, struct wl_batch *b); /* its units are READY. Mutex held */

/* ---- memory.c ---- */

/* Chooses windows or ranged reads by what the context's budget has left, and reserves it. */
int wt_memory_reserve(struct wl_loader *l, uint64_t ring_bytes, struct wt_err *err);
void wt_memory_release(struct wl_loader *l);
unsigned wt_memory_units(const struct wl_loader *l);  /* for each track */
uint64_t wt_memory_window(const struct wl_loader *l); /* samples that a window has at most */
unsigned wt_memory_fetches(const struct wl_loader *l);

#endif
