/* Bytes of snapshot and journal; see state_file.h and the layout in state.h. */
#include "daemon/state_file.h"

#include "core/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 1, SET_HEAD = WT_DATASET_NAME + 8 };
#define FILE_LIMIT (UINT64_C(8) << 30)

void wt_state_sets_free(struct wt_state_sets *sets) {
    for (size_t i = 0; i < sets->n; i++)
        free(sets->set[i].rec);
    free(sets->set);
    *sets = (struct wt_state_sets){0};
}

static struct wt_state_set *set_of(struct wt_state_sets *sets, const char *name) {
    for (size_t i = 0; i < sets->n; i++)
        if (strcmp(sets->set[i].name, name) == 0)
            return &sets->set[i];
    if (wt_grow(&sets->set, &sets->cap, sets->n + 1, sizeof *sets->set) < 0)
        return NULL;
    struct wt_state_set *s = &sets->set[sets->n++];
    *s = (struct wt_state_set){0};
    snprintf(s->name, sizeof s->name, "%s", name);
    return s;
}

int wt_state_sets_add(struct wt_state_sets *sets, const char *name,
                      const struct wt_state_rec *rec) {
    struct wt_state_set *s = set_of(sets, name);
    if (!s || wt_grow(&s->rec, &s->cap, s->n + 1, sizeof *s->rec) < 0)
        return WT_ENOMEM;
    s->rec[s->n++] = *rec;
    return 0;
}

void wt_state_rec_encode(const struct wt_state_rec *rec, uint8_t out[WT_STATE_RECORD]) {
    wt_put64(out, rec->shard);
    wt_put64(out + 8, rec->hash);
    memcpy(out + 16, &rec->heat, 4);
    wt_put32(out + 20, rec->heated);
    wt_put32(out + 24, rec->since);
    out[28] = rec->kind;
    out[29] = rec->tiers;
    out[30] = rec->pin;
    out[31] = 0;
}

static struct wt_state_rec decode_rec(const uint8_t *in) {
    struct wt_state_rec r = {.shard = wt_get64(in),
                             .hash = wt_get64(in + 8),
                             .heated = wt_get32(in + 20),
                             .since = wt_get32(in + 24),
                             .kind = in[28],
                             .tiers = in[29],
                             .pin = in[30]};
    memcpy(&r.heat, in + 16, 4);
    if (!(r.heat >= 0 && r.heat < 1e9f)) /* also what is no number */
        r.heat = 0;
    return r;
}

int wt_state_head_encode(struct wt_bytes *out, const char *magic, const struct wt_tier_opts *tier,
                         uint32_t n_tiers, uint64_t sequence, uint64_t sets) {
    uint8_t head[WT_STATE_HEAD] = {0};
    memcpy(head, magic, 8);
    wt_put32(head + 8, VERSION);
    wt_put32(head + 12, n_tiers);
    wt_put64(head + 16, sequence);
    wt_put64(head + 24, sets);
    for (uint32_t t = 0; t < n_tiers; t++)
        memcpy(head + 32 + (size_t)t * 64, tier[t].name, strnlen(tier[t].name, 63));
    return wt_bytes_add(out, head, sizeof head);
}

void wt_state_change_encode(const char *name, const struct wt_state_rec *rec,
                            uint8_t out[WT_STATE_CHANGE]) {
    memset(out, 0, WT_STATE_CHANGE);
    memcpy(out, name, strnlen(name, WT_DATASET_NAME - 1));
    wt_state_rec_encode(rec, out + WT_DATASET_NAME);
    wt_put32(out + WT_STATE_CHANGE - 4, wt_crc32c(0, out, WT_STATE_CHANGE - 4));
}

struct tier_map { /* tier number in the file -> today's, or -1 */
    int to[WT_TIERS_MAX];
};

static int decode_head(const uint8_t *data, size_t len, const char *magic,
                       const struct wt_tier_opts *tier, uint32_t n_tiers, struct tier_map *map,
                       struct wt_err *err) {
    if (len < WT_STATE_HEAD || memcmp(data, magic, 8) != 0)
        return wt_err_set(err, WT_ECORRUPT, "is no such file");
    uint32_t version = wt_get32(data + 8), n = wt_get32(data + 12);
    if (version != VERSION)
        return wt_err_set(err, WT_ECORRUPT, "has version %u, this daemon reads %d", version,
                          VERSION);
    if (n > WT_TIERS_MAX)
        return wt_err_set(err, WT_ECORRUPT, "names %u tiers", n);
    for (uint32_t f = 0; f < WT_TIERS_MAX; f++) {
        const char *name = (const char *)data + 32 + (size_t)f * 64;
        map->to[f] = -1;
        for (uint32_t t = 0; f < n && t < n_tiers; t++)
            if (strncmp(name, tier[t].name, 64) == 0)
                map->to[f] = (int)t;
    }
    return 0;
}

static uint8_t map_mask(const struct tier_map *map, uint8_t mask) {
    uint8_t out = 0;
    for (uint32_t f = 0; f < WT_TIERS_MAX; f++)
        if ((mask & (1u << f)) && map->to[f] >= 0)
            out |= (uint8_t)(1u << map->to[f]);
    return out;
}

/* false: it speaks of a tier that is no more. */
static bool map_rec(const struct tier_map *map, struct wt_state_rec *r) {
    if (r->kind == WT_STATE_ENTRY) {
        r->tiers = map_mask(map, r->tiers);
        r->pin = map_mask(map, r->pin);
        return true;
    }
    if ((r->kind != WT_STATE_HOLD && r->kind != WT_STATE_LOSE) || r->tiers >= WT_TIERS_MAX ||
        map->to[r->tiers] < 0)
        return false;
    r->tiers = (uint8_t)map->to[r->tiers];
    return true;
}

static int decode_set(const uint8_t *data, size_t len, size_t *at, const struct tier_map *map,
                      struct wt_state_sets *sets, struct wt_err *err) {
    if (len - *at < SET_HEAD)
        return wt_err_set(err, WT_ECORRUPT, "ends in the middle");
    const char *name = (const char *)data + *at;
    uint64_t n = wt_get64(data + *at + WT_DATASET_NAME);
    *at += SET_HEAD;
    if (memchr(name, '\0', WT_DATASET_NAME) == NULL || n > (len - *at) / WT_STATE_RECORD)
        return wt_err_set(err, WT_ECORRUPT, "has a data set of impossible size");
    for (uint64_t i = 0; i < n; i++, *at += WT_STATE_RECORD) {
        struct wt_state_rec r = decode_rec(data + *at);
        if (map_rec(map, &r) && wt_state_sets_add(sets, name, &r) < 0)
            return wt_err_set(err, WT_ENOMEM, "out of memory");
    }
    return 0;
}

int wt_state_snapshot_decode(const uint8_t *data, size_t len, const struct wt_tier_opts *tier,
                             uint32_t n_tiers, struct wt_state_sets *sets, uint64_t *sequence,
                             struct wt_err *err) {
    struct tier_map map;
    if (len < 8 || wt_hash64(data, len - 8) != wt_get64(data + len - 8))
        return wt_err_set(err, WT_ECORRUPT, "has a wrong sum");
    size_t end = len - 8, at = WT_STATE_HEAD;
    int rc = decode_head(data, end, "WTSNAP1\n", tier, n_tiers, &map, err);
    struct wt_state_sets read = {0};
    uint64_t n = rc == 0 ? wt_get64(data + 24) : 0;
    for (uint64_t i = 0; i < n && rc == 0; i++)
        rc = decode_set(data, end, &at, &map, &read, err);
    if (rc == 0 && at != end)
        rc = wt_err_set(err, WT_ECORRUPT, "has %zu bytes too many", end - at);
    if (rc < 0) {
        wt_state_sets_free(&read);
        return rc;
    }
    wt_state_sets_free(sets);
    *sets = read;
    *sequence = wt_get64(data + 16);
    return 0;
}

int wt_state_journal_decode(const uint8_t *data, size_t len, const struct wt_tier_opts *tier,
                            uint32_t n_tiers, struct wt_state_sets *sets, struct wt_err *err) {
    struct tier_map map;
    if (len < WT_STATE_HEAD + 8) /* a crash between creating it and its first write */
        return len == 0 ? 0 : wt_err_set(err, WT_ECORRUPT, "ends in its head");
    if (wt_hash64(data, WT_STATE_HEAD) != wt_get64(data + WT_STATE_HEAD))
        return wt_err_set(err, WT_ECORRUPT, "has a wrong sum in its head");
    int rc = decode_head(data, len, "WTJRNL1\n", tier, n_tiers, &map, err);
    if (rc < 0)
        return rc;
    for (size_t at = WT_STATE_HEAD + 8; len - at >= WT_STATE_CHANGE; at += WT_STATE_CHANGE) {
        const uint8_t *c = data + at;
        if (wt_crc32c(0, c, WT_STATE_CHANGE - 4) != wt_get32(c + WT_STATE_CHANGE - 4) ||
            c[WT_DATASET_NAME - 1])
            return wt_err_set(err, WT_ECORRUPT, "has a wrong sum at byte %zu", at);
        struct wt_state_rec r = decode_rec(c + WT_DATASET_NAME);
        if (map_rec(&map, &r) && wt_state_sets_add(sets, (const char *)c, &r) < 0)
            return wt_err_set(err, WT_ENOMEM, "out of memory");
    }
    return 0;
}

static int read_fd(int fd, uint8_t *data, size_t len, struct wt_err *err) {
    for (size_t have = 0; have < len;) {
        ssize_t n = read(fd, data + have, len - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return wt_err_sys(err, n < 0 ? errno : EIO, "cannot be read");
        have += (size_t)n;
    }
    return 0;
}

int wt_state_read(int folder, const char *name, uint8_t **data, size_t *len, struct wt_err *err) {
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return wt_err_sys(err, errno, "cannot be opened");
    struct stat st;
    int rc = fstat(fd, &st) < 0 ? wt_err_sys(err, errno, "cannot be read") : 0;
    if (rc == 0 && (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > FILE_LIMIT))
        rc = wt_err_set(err, WT_ECORRUPT, "is no file of a sensible size");
    uint8_t *read_data = rc == 0 ? malloc((size_t)st.st_size + 1) : NULL;
    if (rc == 0 && !read_data)
        rc = wt_err_set(err, WT_ENOMEM, "no memory for %lld bytes", (long long)st.st_size);
    if (rc == 0)
        rc = read_fd(fd, read_data, (size_t)st.st_size, err);
    close(fd);
    if (rc < 0) {
        free(read_data);
        return rc;
    }
    *data = read_data;
    *len = (size_t)st.st_size;
    return 0;
}

/* ---- beside, then renamed ---- */

static void beside_of(const char *name, char out[64]) {
    snprintf(out, 64, "%.50s.new", name);
}

int wt_state_write_begin(int folder, const char *name, int *fd, struct wt_err *err) {
    char beside[64];
    beside_of(name, beside);
    *fd = openat(folder, beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
    return *fd < 0 ? wt_err_sys(err, errno, "%s cannot be created", beside) : 0;
}

int wt_state_write_more(int fd, const void *data, size_t len, struct wt_err *err) {
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, (const uint8_t *)data + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return wt_err_sys(err, errno, "cannot be written");
        done += (size_t)n;
    }
    return 0;
}

int wt_state_write_end(int folder, const char *name, int fd, struct wt_err *err) {
    char beside[64];
    beside_of(name, beside);
    int rc = fsync(fd) < 0 ? wt_err_sys(err, errno, "cannot be synced") : 0;
    if (close(fd) < 0 && rc == 0)
        rc = wt_err_sys(err, errno, "cannot be written");
    if (rc == 0 && renameat(folder, beside, folder, name) < 0)
        rc = wt_err_sys(err, errno, "cannot be renamed");
    if (rc == 0 && fsync(folder) < 0)
        rc = wt_err_sys(err, errno, "the folder cannot be synced");
    if (rc < 0)
        unlinkat(folder, beside, 0);
    return rc;
}

void wt_state_write_abandon(int folder, const char *name, int fd) {
    char beside[64];
    beside_of(name, beside);
    close(fd);
    unlinkat(folder, beside, 0);
}

int wt_state_write(int folder, const char *name, const void *data, size_t len, struct wt_err *err) {
    int fd;
    int rc = wt_state_write_begin(folder, name, &fd, err);
    if (rc < 0)
        return rc;
    rc = wt_state_write_more(fd, data, len, err);
    if (rc < 0) {
        wt_state_write_abandon(folder, name, fd);
        return rc;
    }
    return wt_state_write_end(folder, name, fd, err);
}
