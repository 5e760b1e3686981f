/* A job's uses of shards, forward and by the inverse; see future.h. */
#include "daemon/policy/future.h"

#include <string.h>

/* A shard of so many blocks is read all the time: its uses are taken as evenly spread. */
enum { BLOCKS_MAX = 8 };

static bool few_lanes(const struct wt_future *f) {
    return f->plan.o.lanes <= WT_FUTURE_LANES;
}

static const struct wt_future_epoch *epoch_of(struct wt_future *f, uint64_t epoch) {
    struct wt_future_epoch *c = &f->cache[epoch % WT_FUTURE_EPOCHS];
    if (c->e.plan && c->e.epoch == epoch)
        return c;
    c->e = wt_plan_epoch(&f->plan, epoch);
    for (uint32_t lane = 0; few_lanes(f) && lane < f->plan.o.lanes; lane++)
        if (f->start[lane] < f->plan.o.samples)
            c->first[lane] = wt_epoch_index(&c->e, f->start[lane]);
    return c;
}

void wt_future_init(struct wt_future *f, const struct wt_plan *plan, const uint64_t *cum,
                    uint64_t shards, uint64_t epochs, uint64_t ahead) {
    memset(f, 0, sizeof *f);
    f->plan = *plan;
    f->cum = cum;
    f->shards = shards;
    f->epochs = epochs;
    f->span = plan->steps * plan->lane_batch;
    f->ahead = ahead;
    f->lanes_a_sample = (double)plan->o.lanes / (double)plan->o.samples;
    for (uint32_t lane = 0; few_lanes(f) && lane <= plan->o.lanes; lane++)
        f->start[lane] = wt_plan_lane_start(plan, lane);
}

/* ---- by the inverse ---- */

static uint64_t start_of(const struct wt_future *f, uint32_t lane) {
    return few_lanes(f) ? f->start[lane] : wt_plan_lane_start(&f->plan, lane);
}

/* Lane position at which the window begins that holds block i of the stream, in a lane. */
static uint64_t window_begin(const struct wt_future *f, const struct wt_future_epoch *c,
                             uint32_t lane, uint64_t i) {
    const struct wt_plan *p = &f->plan;
    uint64_t start = start_of(f, lane), k = p->o.window;
    uint64_t first = few_lanes(f) ? c->first[lane] : wt_epoch_index(&c->e, start);
    uint64_t shift = (uint64_t)lane * k / p->o.lanes, ahead = i - first + shift;
    uint64_t grid = ahead - (k == 1 ? 0 : ahead % k);
    uint64_t begin = wt_epoch_offset(&c->e, first + (grid > shift ? grid - shift : 0));
    return begin > start ? begin - start : 0;
}

static uint32_t lane_at(const struct wt_future *f, uint64_t pos) {
    uint32_t lane = (uint32_t)((double)pos * f->lanes_a_sample); /* off by one at most */
    lane = lane < f->plan.o.lanes ? lane : f->plan.o.lanes - 1;
    if (start_of(f, lane) > pos)
        return lane - 1;
    return start_of(f, lane + 1) <= pos ? lane + 1 : lane;
}

static void earlier(uint64_t *best, uint64_t x, uint64_t from) {
    if (x >= from && x < *best)
        *best = x;
}

/* `first` to `last`: samples of one block. */
static uint64_t next_of_samples(struct wt_future *f, uint64_t epoch, uint64_t first, uint64_t last,
                                uint64_t from) {
    const struct wt_future_epoch *c = epoch_of(f, epoch);
    const struct wt_epoch *e = &c->e;
    uint64_t block = f->plan.o.block, b = first / block, own = b * block, i = wt_epoch_when(e, b);
    uint64_t base = epoch * f->span, begin = wt_epoch_offset(e, i), best = WT_FUTURE_NEVER;
    if (f->plan.o.lanes == 1 && f->plan.o.window == 1) {
        if (begin < f->span)
            earlier(&best, base + begin, from);
        return best;
    }
    uint32_t lane = lane_at(f, begin + (first - own));
    uint32_t end = lane_at(f, begin + (last - own));
    for (; lane <= end; lane++) { /* the end of a lane may cut a block */
        uint64_t pos = window_begin(f, c, lane, i);
        if (pos < f->span)
            earlier(&best, base + pos, from);
    }
    return best;
}

uint64_t wt_future_next(struct wt_future *f, uint64_t shard, uint64_t from) {
    uint64_t begin = f->cum[shard], end = f->cum[shard + 1], block = f->plan.o.block;
    if (begin == end)
        return WT_FUTURE_NEVER;
    uint64_t first = begin / block, last = (end - 1) / block;
    uint64_t epoch = from / f->span, best = WT_FUTURE_NEVER;
    if (last - first >= BLOCKS_MAX) {
        uint64_t x = from + f->span / (last - first + 1);
        return f->epochs && x / f->span >= f->epochs ? WT_FUTURE_NEVER : x;
    }
    for (uint64_t e = epoch; e < epoch + 3 && best == WT_FUTURE_NEVER; e++) {
        if (f->epochs && e >= f->epochs)
            break;
        for (uint64_t b = first; b <= last; b++) {
            uint64_t low = b > first ? b * block : begin;
            uint64_t high = b < last ? (b + 1) * block : end;
            earlier(&best, next_of_samples(f, e, low, high - 1, from), from);
        }
    }
    return best;
}

double wt_future_part(const struct wt_future *f, uint64_t shard) {
    uint64_t samples = f->cum[shard + 1] - f->cum[shard], block = f->plan.o.block;
    return samples <= block ? 1 : (double)block / (double)samples;
}

uint64_t wt_future_place(const struct wt_future *f, uint64_t epoch, uint64_t step) {
    uint64_t done = step < f->plan.steps ? step : f->plan.steps;
    return epoch * f->span + done * f->plan.lane_batch + f->ahead;
}

/* ---- forward ---- */

static uint64_t find(const struct wt_future *f, uint64_t sample) {
    uint64_t low = 0, high = f->shards;
    while (high - low > 1) {
        uint64_t mid = low + (high - low) / 2;
        if (f->cum[mid] <= sample)
            low = mid;
        else
            high = mid;
    }
    return low;
}

static void load_window(struct wt_future *f, struct wt_future_at *at) {
    const struct wt_epoch *e = &epoch_of(f, at->epoch)->e;
    uint32_t lane = f->plan.o.lanes - 1 - at->turn;
    at->loaded = true;
    at->piece = at->pieces = 0;
    if (at->window >= wt_epoch_windows(e, lane))
        return;
    struct wt_window w = wt_epoch_window(e, lane, at->window);
    if (w.pos >= f->span)
        return;
    at->any = true;
    at->first = w.piece_first;
    at->pieces = w.n_pieces;
    at->x = at->epoch * f->span + w.pos;
}

static void load_piece(struct wt_future *f, struct wt_future_at *at) {
    struct wt_piece p = wt_epoch_piece(&epoch_of(f, at->epoch)->e, f->plan.o.lanes - 1 - at->turn,
                                       at->first + at->piece++);
    at->shard = find(f, p.first);
    at->end = at->shard + 1;
    while (at->end < f->shards && f->cum[at->end] < p.first + p.count)
        at->end++;
}

static void next_window(struct wt_future *f, struct wt_future_at *at) {
    at->loaded = false;
    if (++at->turn < f->plan.o.lanes)
        return;
    at->turn = 0;
    at->window++;
    if (!at->any) { /* no lane had one: the epoch is over */
        at->epoch++;
        at->window = 0;
    }
    at->any = false;
}

bool wt_future_step(struct wt_future *f, struct wt_future_at *at, uint64_t *shard, uint64_t *x) {
    while (!f->epochs || at->epoch < f->epochs) {
        if (at->shard < at->end) {
            *shard = at->shard++;
            *x = at->x;
            return true;
        }
        if (!at->loaded)
            load_window(f, at);
        else if (at->piece < at->pieces)
            load_piece(f, at);
        else
            next_window(f, at);
    }
    return false;
}

void wt_future_seek(struct wt_future *f, struct wt_future_at *at, uint64_t x) {
    uint64_t pos = x % f->span, lane = wt_plan_lane_samples(&f->plan, 0);
    *at = (struct wt_future_at){.epoch = x / f->span, .any = true};
    if (lane)
        at->window = wt_epoch_window_of(&epoch_of(f, at->epoch)->e, 0, pos < lane ? pos : lane - 1);
}
