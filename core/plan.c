/*
 * The plan: blocks, lanes, windows, ranks, all in closed form; see plan.h.
 *
 * Happy path: wt_plan_init checks the options and fills in defaults; wt_plan_epoch derives an
 * epoch's keys; every question is then arithmetic. The only irregular thing is the short last
 * block: where the permutation puts it (short_at) all later stream positions move by its shortfall.
 * Failure modes: options that cannot work are refused in wt_plan_init; afterwards nothing can fail.
 */
#include "core/plan.h"

#include <string.h>

enum { LANES_MAX = 32768, WINDOW_DEFAULT_MAX = 8, LANES_DEFAULT_MAX = 16 };
#define SAMPLES_MAX  (UINT64_C(1) << 48)
#define WINDOW_BYTES (UINT64_C(1) << 30)

/* ---- the permutation ---- */

/* The finaliser of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", OOPSLA 2014). */
static uint64_t mix(uint64_t x) {
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint32_t bits_for(uint64_t n) {
    return n <= 1 ? 0 : 64 - (uint32_t)__builtin_clzll(n - 1);
}

struct wt_perm wt_perm_make(uint64_t n, uint64_t k0, uint64_t k1, uint64_t k2) {
    struct wt_perm p = {.n = n, .bits = bits_for(n)};
    /* Small halves mix little in a round: few values need more rounds to look like a shuffle (the
     * tests measure it). */
    p.rounds = p.bits <= 4 ? 16 : p.bits <= 8 ? 10 : p.bits < 16 ? 8 : 4;
    uint64_t s = mix(k0 + UINT64_C(0x9e3779b97f4a7c15));
    s = mix(s ^ mix(k1 + UINT64_C(0xd1b54a32d192ed03)));
    s = mix(s ^ mix(k2 + UINT64_C(0x8cb92ba72f3d8dd7)));
    for (size_t i = 0; i < 4; i++) {
        s += UINT64_C(0x9e3779b97f4a7c15);
        p.key[i] = mix(s);
    }
    return p;
}

/* One round's mask for the half that changes: a 64 x 64 -> 128 bit product folded (as wyhash does),
 * of which every bit depends on all of `half` and key. */
static uint64_t round_mask(const struct wt_perm *p, uint32_t round, uint64_t half) {
    uint64_t x = (half + round) * UINT64_C(0x9e3779b97f4a7c15) ^ p->key[round & 3];
    unsigned __int128 product = (unsigned __int128)x * (x ^ UINT64_C(0xd6e8feb86659fd93));
    return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

/* The value is (high, low) with `low` of bits/2 bits; even rounds change high, odd rounds low. */
static uint64_t forward(const struct wt_perm *p, uint64_t x) {
    uint32_t low_bits = p->bits / 2;
    uint64_t low_mask = (UINT64_C(1) << low_bits) - 1;
    uint64_t high_mask = (UINT64_C(1) << (p->bits - low_bits)) - 1;
    uint64_t low = x & low_mask, high = x >> low_bits;
    for (uint32_t r = 0; r < p->rounds; r += 2) {
        high ^= round_mask(p, r, low) & high_mask;
        low ^= round_mask(p, r + 1, high) & low_mask;
    }
    return high << low_bits | low;
}

static uint64_t backward(const struct wt_perm *p, uint64_t x) {
    uint32_t low_bits = p->bits / 2;
    uint64_t low_mask = (UINT64_C(1) << low_bits) - 1;
    uint64_t high_mask = (UINT64_C(1) << (p->bits - low_bits)) - 1;
    uint64_t low = x & low_mask, high = x >> low_bits;
    for (uint32_t r = p->rounds; r > 0; r -= 2) {
        low ^= round_mask(p, r - 1, high) & low_mask;
        high ^= round_mask(p, r - 2, low) & high_mask;
    }
    return high << low_bits | low;
}

uint64_t wt_perm_at(const struct wt_perm *p, uint64_t i) {
    if (p->bits == 0)
        return i;
    do {
        i = forward(p, i);
    } while (i >= p->n);
    return i;
}

uint64_t wt_perm_inverse(const struct wt_perm *p, uint64_t v) {
    if (p->bits == 0)
        return v;
    do {
        v = backward(p, v);
    } while (v >= p->n);
    return v;
}

/* One walk's step for all of them first: steps of different values overlap in the processor, which
 * a walk's branch in between would prevent. */
void wt_perm_inverses(const struct wt_perm *p, uint64_t first, size_t n, uint64_t *out) {
    for (size_t i = 0; i < n; i++)
        out[i] = p->bits == 0 ? first + i : backward(p, first + i);
    for (size_t i = 0; i < n; i++)
        while (out[i] >= p->n)
            out[i] = backward(p, out[i]);
}

/* ---- options ---- */

static uint64_t min64(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t max64(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t ceil_div(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}

static uint32_t default_lanes(uint64_t batch, uint64_t blocks) {
    uint64_t most = max64(1, min64(LANES_DEFAULT_MAX, blocks / 4));
    while (batch % most != 0)
        most--;
    return (uint32_t)most;
}

static uint32_t default_window(const struct wt_plan *plan) {
    uint64_t fits = 4;
    if (plan->o.block_bytes) {
        uint64_t per_block = plan->o.block_bytes;
        fits = per_block >= WINDOW_BYTES ? 1 : WINDOW_BYTES / per_block / plan->o.lanes;
    }
    uint64_t half_lane = plan->blocks / plan->o.lanes / 2;
    return (uint32_t)max64(1, min64(min64(fits, WINDOW_DEFAULT_MAX), half_lane));
}

static int check(const struct wt_plan_opts *o, struct wt_err *err) {
    if (o->samples == 0 || o->samples > SAMPLES_MAX)
        return wt_err_set(err, WT_EINVAL, "a plan needs 1 to 2^48 samples, not %llu",
                          (unsigned long long)o->samples);
    if (o->batch == 0 || o->batch > SAMPLES_MAX)
        return wt_err_set(err, WT_EINVAL, "batch must be at least 1");
    if (o->block > SAMPLES_MAX)
        return wt_err_set(err, WT_EINVAL, "block %llu is too large", (unsigned long long)o->block);
    if (o->mode == WT_PLAN_TRAIN && o->lanes > LANES_MAX)
        return wt_err_set(err, WT_EINVAL, "at most %d lanes, not %u", LANES_MAX, o->lanes);
    if (o->mode == WT_PLAN_TRAIN && o->lanes && o->batch % o->lanes != 0)
        return wt_err_set(err, WT_EINVAL, "lanes %u does not divide batch %llu", o->lanes,
                          (unsigned long long)o->batch);
    return 0;
}

static uint64_t count_steps(const struct wt_plan *plan) {
    uint64_t n = plan->o.samples, lanes = plan->o.lanes;
    if (plan->o.tail == WT_TAIL_PAD)
        return ceil_div(ceil_div(n, lanes), plan->lane_batch);
    return n / lanes / plan->lane_batch;
}

int wt_plan_init(struct wt_plan *plan, const struct wt_plan_opts *opts, struct wt_err *err) {
    int rc = check(opts, err);
    if (rc < 0)
        return rc;
    struct wt_plan p = {.o = *opts};
    p.o.block = min64(p.o.block ? p.o.block : 256, p.o.samples);
    p.blocks = ceil_div(p.o.samples, p.o.block);
    if (p.o.mode == WT_PLAN_EVAL) {
        p.o.lanes = 1;
        p.o.tail = WT_TAIL_PAD;
    } else if (p.o.lanes == 0) {
        p.o.lanes = default_lanes(p.o.batch, p.blocks);
    }
    if (p.o.window == 0)
        p.o.window = default_window(&p);
    p.lane_batch = p.o.batch / p.o.lanes;
    p.steps = count_steps(&p);
    if (p.steps == 0)
        return wt_err_set(err, WT_EINVAL,
                          "batch %llu is more than the %llu samples give (%u lanes, tail drop): "
                          "choose a smaller batch or tail pad",
                          (unsigned long long)p.o.batch, (unsigned long long)p.o.samples,
                          p.o.lanes);
    *plan = p;
    return 0;
}

/* ---- an epoch ---- */

enum { KEY_BLOCKS = 1, KEY_WINDOW = 2 };

static struct wt_perm identity(uint64_t n) {
    return (struct wt_perm){.n = n};
}

static uint64_t short_size(const struct wt_plan *plan) {
    return plan->o.samples - (plan->blocks - 1) * plan->o.block;
}

struct wt_epoch wt_plan_epoch(const struct wt_plan *plan, uint64_t epoch) {
    struct wt_epoch e = {.plan = plan, .epoch = epoch, .short_at = plan->blocks};
    e.blocks = plan->o.mode == WT_PLAN_EVAL
                   ? identity(plan->blocks)
                   : wt_perm_make(plan->blocks, plan->o.seed, epoch, KEY_BLOCKS);
    if (short_size(plan) != plan->o.block)
        e.short_at = wt_perm_inverse(&e.blocks, plan->blocks - 1);
    return e;
}

uint64_t wt_epoch_block(const struct wt_epoch *e, uint64_t i) {
    return wt_perm_at(&e->blocks, i);
}

uint64_t wt_epoch_when(const struct wt_epoch *e, uint64_t block) {
    return wt_perm_inverse(&e->blocks, block);
}

uint64_t wt_epoch_offset(const struct wt_epoch *e, uint64_t i) {
    uint64_t full = i * e->plan->o.block;
    return i > e->short_at ? full - (e->plan->o.block - short_size(e->plan)) : full;
}

uint64_t wt_epoch_index(const struct wt_epoch *e, uint64_t pos) {
    uint64_t block = e->plan->o.block, before = e->short_at * block;
    if (pos < before)
        return pos / block;
    if (pos < before + short_size(e->plan))
        return e->short_at;
    return (pos + block - short_size(e->plan)) / block;
}

/* ---- lanes ---- */

uint64_t wt_plan_lane_start(const struct wt_plan *plan, uint32_t lane) {
    /* floor(lane N / L) without overflow: N <= 2^48, lane <= 2^15. */
    return plan->o.samples * lane / plan->o.lanes;
}

struct lane {
    uint64_t start, end;  /* stream positions */
    uint64_t first, last; /* stream indices of its blocks, inclusive */
};

static bool lane_of(const struct wt_epoch *e, uint32_t number, struct lane *lane) {
    lane->start = wt_plan_lane_start(e->plan, number);
    lane->end = wt_plan_lane_start(e->plan, number + 1);
    if (lane->start == lane->end)
        return false;
    lane->first = wt_epoch_index(e, lane->start);
    lane->last = wt_epoch_index(e, lane->end - 1);
    return true;
}

uint64_t wt_epoch_pieces(const struct wt_epoch *e, uint32_t lane) {
    struct lane l;
    return lane_of(e, lane, &l) ? l.last - l.first + 1 : 0;
}

struct wt_piece wt_epoch_piece(const struct wt_epoch *e, uint32_t lane, uint64_t j) {
    struct lane l;
    if (!lane_of(e, lane, &l))
        return (struct wt_piece){0};
    uint64_t i = l.first + j;
    uint64_t begin = wt_epoch_offset(e, i), end = wt_epoch_offset(e, i + 1);
    uint64_t lo = max64(l.start, begin), hi = min64(l.end, end);
    return (struct wt_piece){
        .stream = i,
        .first = wt_epoch_block(e, i) * e->plan->o.block + (lo - begin),
        .count = hi - lo,
        .lane_pos = lo - l.start,
    };
}

/* ---- windows ---- */

static uint64_t window_shift(const struct wt_plan *plan, uint32_t lane) {
    return (uint64_t)lane * plan->o.window / plan->o.lanes;
}

uint64_t wt_epoch_windows(const struct wt_epoch *e, uint32_t lane) {
    uint64_t pieces = wt_epoch_pieces(e, lane);
    return pieces ? ceil_div(pieces + window_shift(e->plan, lane), e->plan->o.window) : 0;
}

/* Stream position where piece j of the lane begins; j may be = pieces. */
static uint64_t piece_start(const struct wt_epoch *e, const struct lane *l, uint64_t j) {
    return min64(l->end, max64(l->start, wt_epoch_offset(e, l->first + j)));
}

struct wt_window wt_epoch_window(const struct wt_epoch *e, uint32_t lane, uint64_t w) {
    struct lane l;
    if (!lane_of(e, lane, &l))
        return (struct wt_window){0};
    uint64_t shift = window_shift(e->plan, lane), k = e->plan->o.window;
    uint64_t from = w * k > shift ? w * k - shift : 0;
    uint64_t to = min64(l.last - l.first + 1, (w + 1) * k - shift);
    uint64_t begin = piece_start(e, &l, from), end = piece_start(e, &l, to);
    struct wt_window win = {.number = w,
                            .piece_first = from,
                            .n_pieces = to - from,
                            .pos = begin - l.start,
                            .count = end - begin};
    win.perm = e->plan->o.mode == WT_PLAN_EVAL
                   ? identity(win.count)
                   : wt_perm_make(win.count, e->plan->o.seed, e->epoch,
                                  (w * LANES_MAX + lane) * 4 + KEY_WINDOW);
    return win;
}

uint64_t wt_epoch_window_of(const struct wt_epoch *e, uint32_t lane, uint64_t pos) {
    struct lane l;
    if (!lane_of(e, lane, &l))
        return 0;
    uint64_t j = wt_epoch_index(e, l.start + pos) - l.first;
    return (j + window_shift(e->plan, lane)) / e->plan->o.window;
}

uint64_t wt_epoch_sample(const struct wt_epoch *e, uint32_t lane, uint64_t pos) {
    struct wt_window win = wt_epoch_window(e, lane, wt_epoch_window_of(e, lane, pos));
    uint64_t at = wt_plan_lane_start(e->plan, lane) + wt_window_source(&win, pos);
    uint64_t i = wt_epoch_index(e, at);
    return wt_epoch_block(e, i) * e->plan->o.block + (at - wt_epoch_offset(e, i));
}
