/* Encoding and checking of saved positions; see state.h. A blob is untrusted: every length is
 * checked before it is used. */
#include "libloader/state.h"

#include "core/bytes.h"

#include <stdlib.h>
#include <string.h>

enum { STATE_VERSION = 1, HEAD = 16, FIXED = 8 + 16 + 8 * 5 + 4 * 5, SUM = 8 };
static const char magic[8] = "WLSTATE";

static uint8_t *put64(uint8_t *p, uint64_t v) {
    wt_put64(p, v);
    return p + 8;
}

static uint8_t *put32(uint8_t *p, uint32_t v) {
    wt_put32(p, v);
    return p + 4;
}

int wt_state_encode(const struct wt_state *s, void *buf, size_t size, size_t *len,
                    struct wt_err *err) {
    size_t name = strlen(s->dataset);
    size_t total = HEAD + 4 + name + FIXED + SUM;
    if (size < total)
        return wt_err_set(err, WT_ERANGE, "a state takes %zu bytes, the buffer has %zu", total,
                          size);
    uint8_t *p = buf;
    memcpy(p, magic, sizeof magic);
    p = put32(p + sizeof magic, STATE_VERSION);
    p = put32(p, (uint32_t)total);
    p = put32(p, (uint32_t)name);
    memcpy(p, s->dataset, name);
    p = put64(p + name, s->generation);
    p = put64(p, s->idx.hi);
    p = put64(p, s->idx.lo);
    const uint64_t wide[] = {s->seed, s->epoch, s->done, s->samples, s->block};
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        p = put64(p, wide[i]);
    const uint32_t narrow[] = {s->lanes, s->window, s->tail, s->mode, s->plan_version};
    for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++)
        p = put32(p, narrow[i]);
    put64(p, wt_hash64(buf, total - SUM));
    *len = total;
    return 0;
}

static int check_frame(const uint8_t *p, size_t len, struct wt_err *err) {
    if (len < HEAD + 4 + FIXED + SUM || memcmp(p, magic, sizeof magic) != 0)
        return wt_err_set(err, WT_ECORRUPT, "these %zu bytes are no saved state", len);
    if (wt_get32(p + 8) != STATE_VERSION)
        return wt_err_set(err, WT_ECORRUPT, "the state has version %u, this library reads %d",
                          wt_get32(p + 8), STATE_VERSION);
    if (wt_get32(p + 12) != len)
        return wt_err_set(err, WT_ECORRUPT, "the state is %zu bytes long and says %u", len,
                          wt_get32(p + 12));
    if (wt_get64(p + len - SUM) != wt_hash64(p, len - SUM))
        return wt_err_set(err, WT_ECORRUPT, "the state is damaged (wrong checksum)");
    uint32_t name = wt_get32(p + HEAD);
    if (name >= WT_DATASET_NAME || HEAD + 4 + (size_t)name + FIXED + SUM != len)
        return wt_err_set(err, WT_ECORRUPT, "the state's data set name has a wrong length (%u)",
                          name);
    return 0;
}

int wt_state_decode(const void *buf, size_t len, struct wt_state *s, struct wt_err *err) {
    const uint8_t *p = buf;
    int rc = check_frame(p, len, err);
    if (rc)
        return rc;
    uint32_t name = wt_get32(p + HEAD);
    struct wt_state out = {.generation = 0};
    p += HEAD + 4;
    memcpy(out.dataset, p, name);
    if (wt_dataset_name_check(out.dataset, NULL) < 0 || strlen(out.dataset) != name)
        return wt_err_set(err, WT_ECORRUPT, "the state names no data set");
    p += name;
    out.generation = wt_get64(p);
    out.idx = (struct wt_hash){wt_get64(p + 8), wt_get64(p + 16)};
    p += 24;
    uint64_t *const wide[] = {&out.seed, &out.epoch, &out.done, &out.samples, &out.block};
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++, p += 8)
        *wide[i] = wt_get64(p);
    uint32_t *const narrow[] = {&out.lanes, &out.window, &out.tail, &out.mode, &out.plan_version};
    for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++, p += 4)
        *narrow[i] = wt_get32(p);
    *s = out;
    return 0;
}

static int differs(const char *what, uint64_t saved, uint64_t mine, struct wt_err *err) {
    if (saved == mine)
        return 0;
    return wt_err_set(err, WT_EINVAL, "the state was saved with %s %llu, this loader has %llu",
                      what, (unsigned long long)saved, (unsigned long long)mine);
}

int wt_state_match(const struct wt_state *saved, const struct wt_state *mine, struct wt_err *err) {
    if (strcmp(saved->dataset, mine->dataset) != 0)
        return wt_err_set(err, WT_EINVAL,
                          "the state was saved with dataset '%s', this loader has '%s'",
                          saved->dataset, mine->dataset);
    int rc = differs("generation", saved->generation, mine->generation, err);
    if (!rc && !wt_hash_equal(saved->idx, mine->idx))
        rc = wt_err_set(err, WT_EINVAL,
                        "the state was saved with other contents (shards.idx) of data set '%s'",
                        mine->dataset);
    if (!rc)
        rc = differs("plan version", saved->plan_version, mine->plan_version, err);
    if (!rc)
        rc = differs("samples", saved->samples, mine->samples, err);
    if (!rc)
        rc = differs("seed", saved->seed, mine->seed, err);
    if (!rc)
        rc = differs("mode", saved->mode, mine->mode, err);
    if (!rc)
        rc = differs("tail", saved->tail, mine->tail, err);
    if (!rc && mine->block)
        rc = differs("block", saved->block, mine->block, err);
    if (!rc && mine->lanes)
        rc = differs("lanes", saved->lanes, mine->lanes, err);
    if (!rc && mine->window)
        rc = differs("window", saved->window, mine->window, err);
    return rc;
}

/* A chain, which needs no memory. */
struct wt_hash wt_state_idx(const struct wt_manifest *m) {
    struct wt_hash hash = {0, 0};
    for (uint32_t i = 0; i < m->n_parts; i++) {
        const struct wt_hash link[2] = {hash, m->part[i].hash};
        hash = wt_hash(link, sizeof link);
    }
    return hash;
}
