/* Shards, index and manifest into a tier; see publish.h. */
#include "tools/publish.h"

#include "core/mem.h"
#include "tools/sets.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LEASE_S = 3600, GC_WAIT_MS = 60000, GC_POLL_MS = 100 };

/* ---- begin ---- */

/* What gc removes now might be what we are about to find and keep. */
static int wait_for_gc(struct wt_publish *p, struct wt_err *err) {
    char key[WT_LEASE_KEY];
    struct wt_lease gc;
    wt_lease_gc_key(p->name, key);
    for (int waited = 0;; waited += GC_POLL_MS) {
        int rc = wt_lease_look(p->target, p->target->tier, key, 0, &gc, err);
        if (rc <= 0)
            return rc;
        if (waited >= GC_WAIT_MS)
            return wt_err_set(err, WT_ELOCKED,
                              "%s is at work on data set '%s'; try again when it has ended",
                              gc.holder, p->name);
        nanosleep(&(struct timespec){.tv_nsec = GC_POLL_MS * 1000000L}, NULL);
    }
}

static int hold_name(struct wt_publish *p, struct wt_err *err) {
    char host[64] = "localhost", holder[100];
    struct wt_lease lease;
    gethostname(host, sizeof host - 1);
    snprintf(holder, sizeof holder, "pack %ld on %s", (long)getpid(), host);
    wt_lease_init(&lease, WT_LEASE_PACK, p->name, 0, holder, LEASE_S);
    int rc = wt_hold_take(&p->hold, p->target, &lease, err);
    return rc < 0 ? rc : wait_for_gc(p, err);
}

/* Which generation will it be? */
static int find_generation(struct wt_publish *p, struct wt_err *err) {
    struct wt_err why = {0};
    struct wt_manifest m = {0};
    int rc = wt_target_manifest(p->target, p->name, &m, &why);
    if (rc == WT_EMISSING)
        return 0;
    if (rc < 0) {
        if (err)
            *err = why;
        return rc;
    }
    p->generation = m.generation + 1;
    if (m.home[0] && p->replace)
        rc = wt_err_set(
            err, WT_EEXISTS,
            "data set '%s' was landed in tier '%s' and is not flushed to cold yet: wait, "
            "or run 'wafertier flush %s', then replace it",
            p->name, m.home, p->name);
    wt_manifest_free(&m);
    if (rc < 0)
        return rc;
    if (!p->replace)
        return wt_err_set(err, WT_EEXISTS,
                          "data set '%s' exists in %s; choose another --dataset, or --replace it",
                          p->name, wt_tier_url(p->target->tier));
    return 0;
}

int wt_publish_begin(struct wt_publish *p, struct wt_target *target, const char *name, bool replace,
                     struct wt_err *err) {
    *p = (struct wt_publish){.target = target, .replace = replace, .generation = 1};
    int rc = wt_dataset_name_check(name, err);
    if (rc < 0)
        return rc;
    snprintf(p->name, sizeof p->name, "%s", name);
    rc = find_generation(p, err);
    if (rc == 0)
        rc = hold_name(p, err);
    return rc;
}

/* ---- objects ---- */

static int note_name(const struct wt_publish *p, struct wt_bytes *list, const struct wt_tier *tier,
                     const char *name, struct wt_err *err) {
    char where = p->land && tier == p->land ? 'l' : 'c';
    return wt_bytes_add(list, &where, 1) < 0 || wt_bytes_add(list, name, strlen(name) + 1) < 0
               ? wt_err_set(err, WT_ENOMEM, "no memory for object names")
               : 0;
}

/* Is the object there, of this size? Its name carries its content hash. */
static int check_size(struct wt_publish *p, struct wt_tier *tier, const char *name, uint64_t size,
                      struct wt_err *err) {
    uint64_t have = 0;
    int rc = wt_sync_stat(p->target->sync, tier, name, &have, err);
    if (rc == 0 && have != size)
        rc = wt_err_set(err, WT_ECORRUPT,
                        "%s: is there with %" PRIu64 " bytes instead of %" PRIu64 "; remove it",
                        name, have, size);
    return rc;
}

/* An immutable object: put, or found as it has to be. */
static int put_once(struct wt_publish *p, struct wt_tier *tier, const char *name, const void *data,
                    size_t len, struct wt_err *err) {
    struct wt_err why = {0};
    /* Noted before it is put: should the put fail half-way, undo tries to remove it. */
    size_t before = p->put.len;
    int rc = note_name(p, &p->put, tier, name, err);
    if (rc < 0)
        return rc;
    rc = wt_sync_write(p->target->sync, tier, name, data, len, 0, &why);
    if (rc == 0)
        return 0;
    if (rc == WT_EEXISTS) {
        p->put.len = before;
        rc = check_size(p, tier, name, len, err);
        if (rc == 0)
            rc = note_name(p, &p->kept, tier, name, err);
        return rc;
    }
    if (err)
        *err = why;
    return rc;
}

/* ---- landing ---- */

/* Bytes of data sets that are at home in the tier. */
static int sum_landed(struct wt_publish *p, uint64_t *bytes, struct wt_err *err) {
    struct wt_set_names names = {0};
    int rc = wt_set_names_list(p->target, &names, err);
    *bytes = 0;
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        struct wt_manifest m = {0};
        rc = wt_target_manifest(p->target, names.name[i], &m, err);
        if (rc == WT_EMISSING)
            rc = 0; /* a folder of something else, or a pack at work */
        else if (rc == 0 && strcmp(m.home, wt_tier_name(p->land)) == 0)
            *bytes += m.stored_bytes;
        wt_manifest_free(&m);
    }
    wt_set_names_free(&names);
    return rc;
}

static int check_cap(struct wt_publish *p, uint64_t more, struct wt_err *err) {
    char all[WT_SIZE_TEXT], most[WT_SIZE_TEXT];
    uint64_t sum = p->landed + p->stored_bytes + more;
    if (sum <= p->land_max)
        return 0;
    return wt_err_set(
        err, WT_EFULL,
        "tier '%s' would hold %s that are not in cold yet, its land_max is %s: wait for "
        "the flush, pack without --land, or raise it",
        wt_tier_name(p->land), wt_size_format(sum, all), wt_size_format(p->land_max, most));
}

int wt_publish_land(struct wt_publish *p, struct wt_tier *tier, uint64_t max, struct wt_err *err) {
    p->land = tier;
    p->land_max = max;
    int rc = sum_landed(p, &p->landed, err);
    return rc < 0 ? rc : check_cap(p, 0, err);
}

/* Others may have landed something since. */
static int check_landed(struct wt_publish *p, struct wt_err *err) {
    int rc = p->land ? sum_landed(p, &p->landed, err) : 0;
    return rc == 0 && p->land ? check_cap(p, 0, err) : rc;
}

/* Where the shard goes: what an older generation has in cold need not be landed. */
static struct wt_tier *place_of(struct wt_publish *p, const char *name, uint64_t size) {
    if (!p->land || (p->generation > 1 && check_size(p, p->target->tier, name, size, NULL) == 0))
        return p->target->tier;
    return p->land;
}

int wt_publish_shard(struct wt_publish *p, enum wt_codec codec, const struct wt_shard_out *shard,
                     struct wt_err *err) {
    struct wt_shard_rec rec = {.hash = shard->hash,
                               .size = shard->size,
                               .tar_size = shard->tar_size,
                               .index_off = shard->index_off,
                               .first = p->samples,
                               .samples = shard->samples,
                               .codec = codec};
    char name[WT_OBJECT_NAME];
    uint8_t encoded[WT_IDX_RECORD];
    wt_hold_keep(&p->hold);
    wt_shard_name(p->name, p->shards, &rec, name);
    int rc = p->land ? check_cap(p, shard->size, err) : 0;
    if (rc == 0)
        rc = put_once(p, place_of(p, name, shard->size), name, shard->data, shard->size, err);
    if (rc < 0)
        return rc;
    wt_shard_rec_encode(&rec, encoded);
    if (wt_bytes_add(&p->idx, encoded, sizeof encoded) < 0)
        return wt_err_set(err, WT_ENOMEM, "no memory for the shard index");
    p->shards++;
    p->samples += shard->samples;
    p->stored_bytes += shard->size;
    p->tar_bytes += shard->tar_size;
    p->pixel_bytes += shard->pixel_bytes;
    return 0;
}

static int put_parts(struct wt_publish *p, struct wt_manifest *m, struct wt_err *err) {
    m->n_parts = (uint32_t)((p->shards + WT_IDX_PART - 1) / WT_IDX_PART);
    m->part = wt_calloc(m->n_parts, sizeof *m->part);
    if (!m->part)
        return wt_err_set(err, WT_ENOMEM, "no memory for the shard index");
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < m->n_parts; i++) {
        uint64_t first = (uint64_t)i * WT_IDX_PART;
        uint64_t n = p->shards - first < WT_IDX_PART ? p->shards - first : WT_IDX_PART;
        const uint8_t *data = p->idx.data + first * WT_IDX_RECORD;
        char name[WT_OBJECT_NAME];
        m->part[i] =
            (struct wt_idx_part){.hash = wt_hash(data, n * WT_IDX_RECORD), .records = (uint32_t)n};
        wt_idx_name(p->name, m->part[i].hash, name);
        rc = put_once(p, p->target->tier, name, data, n * WT_IDX_RECORD, err);
    }
    return rc;
}

static struct wt_tier *tier_of(const struct wt_publish *p, const char *noted) {
    return noted[0] == 'l' ? p->land : p->target->tier;
}

static int check_all(struct wt_publish *p, const struct wt_bytes *names, struct wt_err *err) {
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < names->len; at += strlen((char *)names->data + at) + 1) {
        const char *noted = (char *)names->data + at;
        uint64_t size;
        rc = wt_sync_stat(p->target->sync, tier_of(p, noted), noted + 1, &size, err);
    }
    return rc;
}

/* What another run had put may have been taken back by it since; and where our lease was over for
 * a while, gc may have removed what we put. */
static int check_kept(struct wt_publish *p, struct wt_err *err) {
    wt_hold_keep(&p->hold);
    int rc = check_all(p, &p->kept, err);
    if (rc < 0)
        wt_err_wrap(err, "another pack of this data set took back a shard; run it again");
    if (rc == 0 && p->hold.lapsed && (rc = check_all(p, &p->put, err)) < 0)
        wt_err_wrap(err, "a shard went while the tier was away and the lease could not be renewed; "
                         "run it again");
    return rc;
}

/* The manifest that is about to be replaced stays readable for gc, and for people. */
static int retire_old(struct wt_publish *p, struct wt_err *err) {
    char name[WT_OBJECT_NAME], kept[WT_OBJECT_NAME];
    uint8_t *text = NULL;
    size_t len = 0;
    if (p->generation == 1)
        return 0;
    wt_manifest_name(p->name, name);
    wt_retired_name(p->name, p->generation - 1, kept);
    int rc =
        wt_sync_read(p->target->sync, p->target->tier, name, WT_MANIFEST_MAX, &text, &len, err);
    if (rc == 0)
        rc = note_name(p, &p->put, p->target->tier, kept, err);
    if (rc == 0)
        rc = wt_sync_write(p->target->sync, p->target->tier, kept, text, len, WT_PUT_REPLACE, err);
    free(text);
    return rc;
}

/* Nobody may have published in the meantime. */
static int check_generation(struct wt_publish *p, struct wt_err *err) {
    struct wt_manifest now = {0};
    struct wt_err why = {0};
    int rc = wt_target_manifest(p->target, p->name, &now, &why);
    uint64_t found = rc == 0 ? now.generation : 0;
    wt_manifest_free(&now);
    if (rc < 0 && rc != WT_EMISSING) {
        if (err)
            *err = why;
        return rc;
    }
    if (found + 1 != p->generation)
        return wt_err_set(
            err, WT_EEXISTS,
            "data set '%s' was written by another run in the meantime (generation %" PRIu64 ")",
            p->name, found);
    return 0;
}

/* A put that failed may have been seen through nevertheless (a deadline at the wrong moment). 1: it
 * is published, 0: it is not, negative: nobody knows. */
static int is_published(struct wt_publish *p, const char *text, size_t len) {
    char name[WT_OBJECT_NAME];
    uint8_t *data = NULL;
    size_t got = 0;
    wt_manifest_name(p->name, name);
    int rc =
        wt_sync_read(p->target->sync, p->target->tier, name, WT_MANIFEST_MAX, &data, &got, NULL);
    bool same = rc == 0 && got == len && memcmp(data, text, len) == 0;
    free(data);
    return rc < 0 && rc != WT_EMISSING ? rc : same;
}

/* Takes the text over. */
static int put_manifest(struct wt_publish *p, char *text, struct wt_err *err) {
    char name[WT_OBJECT_NAME];
    if (!text)
        return wt_err_set(err, WT_ENOMEM, "no memory for the manifest");
    /* What readers would refuse is not published. */
    struct wt_manifest check = {0};
    size_t len = strlen(text);
    int rc = wt_manifest_parse(text, len, &check, err);
    wt_manifest_free(&check);
    if (rc < 0) {
        free(text);
        return rc;
    }
    wt_manifest_name(p->name, name);
    unsigned flags = p->generation > 1 ? WT_PUT_REPLACE : 0;
    struct wt_err why = {0};
    rc = wt_sync_write(p->target->sync, p->target->tier, name, text, len, flags, &why);
    int published = rc < 0 ? is_published(p, text, len) : 1;
    if (published > 0)
        rc = 0;
    if (published < 0) { /* what it may name must not be taken back */
        p->put.len = 0;
        wt_err_wrap(&why, "whether '%s' is published is not known, look with 'wafertier ls' later",
                    p->name);
    }
    if (rc < 0 && err)
        *err = why;
    free(text);
    return rc;
}

int wt_publish_commit(struct wt_publish *p, struct wt_manifest *m, struct wt_err *err) {
    snprintf(m->name, sizeof m->name, "%s", p->name);
    m->generation = p->generation;
    m->created = (uint64_t)time(NULL);
    m->shards = p->shards;
    m->samples = p->samples;
    m->stored_bytes = p->stored_bytes;
    m->tar_bytes = p->tar_bytes;
    m->pixel_bytes = p->pixel_bytes;
    if (p->land)
        snprintf(m->home, sizeof m->home, "%s", wt_tier_name(p->land));
    int rc = p->shards == 0 ? wt_err_set(err, WT_EMISSING, "no sample is left to pack")
                            : put_parts(p, m, err);
    if (rc == 0)
        rc = check_kept(p, err);
    if (rc == 0)
        rc = check_landed(p, err);
    if (rc == 0)
        rc = check_generation(p, err);
    if (rc == 0)
        rc = retire_old(p, err);
    return rc == 0 ? put_manifest(p, wt_manifest_format(m), err) : rc;
}

int wt_publish_resume(struct wt_publish *p, struct wt_target *target, const char *name,
                      uint64_t generation, struct wt_err *err) {
    *p = (struct wt_publish){.target = target, .replace = true, .generation = generation + 1};
    snprintf(p->name, sizeof p->name, "%s", name);
    return hold_name(p, err);
}

int wt_publish_flushed(struct wt_publish *p, struct wt_err *err) {
    char name[WT_OBJECT_NAME];
    uint8_t *text = NULL;
    size_t len = 0;
    wt_manifest_name(p->name, name);
    int rc = retire_old(p, err);
    if (rc == 0)
        rc =
            wt_sync_read(p->target->sync, p->target->tier, name, WT_MANIFEST_MAX, &text, &len, err);
    char *next = rc == 0 ? wt_manifest_flushed((char *)text, len, (uint64_t)time(NULL), err) : NULL;
    free(text);
    if (rc == 0 && !next)
        return err->code;
    if (rc == 0 && (rc = check_generation(p, err)) < 0)
        free(next);
    return rc == 0 ? put_manifest(p, next, err) : rc;
}

uint64_t wt_publish_undo(struct wt_publish *p, uint64_t *removed) {
    uint64_t failed = 0;
    *removed = 0;
    for (size_t at = 0; at < p->put.len; at += strlen((char *)p->put.data + at) + 1) {
        const char *noted = (char *)p->put.data + at;
        int rc = wt_sync_remove(p->target->sync, tier_of(p, noted), noted + 1, NULL);
        *removed += rc == 0;
        failed += rc < 0 && rc != WT_EMISSING;
    }
    p->put.len = 0;
    return failed;
}

void wt_publish_end(struct wt_publish *p) {
    wt_hold_drop(&p->hold);
    wt_bytes_free(&p->idx);
    wt_bytes_free(&p->put);
    wt_bytes_free(&p->kept);
}
