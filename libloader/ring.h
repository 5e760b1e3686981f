/*
 * The ring: a fixed number of batch slots, allocated once, with the lock that guards a whole
 * loader.
 *
 *   FREE -> STAGING (wt_ring_take) -> READY (wt_ring_publish) -> HELD (wt_ring_deliver) -> FREE
 * (its last reference goes)
 *
 * It is reference-counted: the loader has one reference, each held batch and each DLPack tensor
 * another, so a batch stays readable after wl_close. `freed` tells the owner, under the lock, that
 * a slot came back; after wt_ring_disown nobody is told. Failure modes: only allocation can fail,
 * and only in wt_ring_new.
 */
#ifndef WT_LOADER_RING_H
#define WT_LOADER_RING_H

#include "core/mem.h"
#include "libloader/accel/accel.h"
#include "libloader/state.h"

#include <wafertier/loader.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { WT_RING_TENSORS = WT_MAX_FIELDS + 5, WT_RING_KEY = 96 };

struct wt_tensor_spec {
    char name[WT_FIELD_NAME];
    wl_dtype dtype;
    int ndim; /* of a row: without the batch dimension */
    int64_t dim[WL_MAX_NDIM];
};

enum wt_slot_state { WT_SLOT_FREE, WT_SLOT_STAGING, WT_SLOT_READY, WT_SLOT_HELD };

struct wt_ring;

struct wt_wanted { /* what the order has in a row whose sample was bad */
    uint64_t row;
    char key[WT_RING_KEY];
};

struct wl_batch {
    struct wt_ring *ring;
    int index;
    enum wt_slot_state state;
    unsigned refs; /* HELD: the consumer's and DLPack's */
    uint64_t seq, epoch, step;
    uint64_t done; /* samples of each lane given after this batch, for wl_batch_state */
    uint64_t rows, valid, n_bad;
    uint64_t ready_ns;
    uint64_t err_row; /* of the first row that failed */
    wl_error err;     /* code < 0: the batch cannot be given */
    size_t n_tensors;
    wl_tensor *tensor;
    size_t *row_bytes;        /* of each tensor */
    char (*key)[WT_RING_KEY]; /* [rows] */
    struct wt_wanted *wanted; /* of substituted rows */
    size_t n_wanted, cap_wanted;
    struct wt_stage *stage; /* the owner's, for staging */
};

struct wt_ring {
    pthread_mutex_t mutex;
    pthread_cond_t cond; /* on CLOCK_MONOTONIC: any change of slots or loader */
    unsigned waiting;    /* threads in wt_ring_wait */
    _Atomic unsigned refs;
    unsigned n_slots;
    uint64_t rows;
    struct wl_batch *slot;
    const struct wt_accel *accel;
    struct wt_mem mem;  /* tensors of all slots */
    struct wt_mem host; /* keys */
    struct wt_tensor_spec *spec;
    wl_tensor *tensors;
    size_t *row_bytes;
    size_t n_tensors;
    void (*freed)(void *owner);
    void *owner;
    struct wt_state base; /* epoch and done are the batch's */
};

/* Bytes that a ring of this layout takes; UINT64_MAX when that overflows. */
uint64_t wt_ring_bytes(const struct wt_tensor_spec *spec, size_t n_spec, uint64_t rows,
                       unsigned slots);
int wt_ring_new(const struct wt_tensor_spec *spec, size_t n_spec, uint64_t rows, unsigned slots,
                const struct wt_accel *accel, struct wt_ring **out, struct wt_err *err);

/* All below but unref and wait: with the mutex held. */
struct wl_batch *
wt_ring_take(struct wt_ring *r);          /* a FREE slot, now STAGING; NULL when there is none */
void wt_ring_publish(struct wl_batch *b); /* the waiting are not told: that is the caller's */
void wt_ring_deliver(struct wl_batch *b);
void wt_ring_drop(struct wl_batch *b); /* STAGING or READY -> FREE, nobody is told */
unsigned wt_ring_count(const struct wt_ring *r, enum wt_slot_state state);
void wt_ring_hold(struct wl_batch *b); /* one more reference on a HELD slot */

void wt_ring_release(struct wl_batch *b); /* takes the mutex; may free the ring */
/* Gives the mutex up, then wakes those who wait: they would run into it. */
void wt_ring_unlock_wake(struct wt_ring *r);
void wt_ring_disown(struct wt_ring *r); /* takes the mutex: drops the owner and its reference */
/* Waits on cond until `deadline_ns` (monotonic; UINT64_MAX: for ever); false when it passed. Mutex
 * held. */
bool wt_ring_wait(struct wt_ring *r, uint64_t deadline_ns);
uint64_t wt_now_ns(void);

#endif
