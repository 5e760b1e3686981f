/* Snapshot and journal of the catalog; see state.h. */
#include "daemon/state.h"

#include "core/mem.h"
#include "daemon/state_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { JOURNALS_MAX = 4096 };

void state_warn_once(struct wt_state *s, const struct wt_err *err) {
    if (!s->warned)
        wt_log(s->log, WT_LOG_WARN,
               "%s: %s; after a restart the daemon will have to look for its copies", s->folder,
               err->text);
    s->warned = true;
}

/* NAME.damaged-1, -2, ...: kept for people, never read again. */
static void set_aside(struct wt_state *s, const char *name, const struct wt_err *err) {
    char aside[128];
    for (unsigned i = 1; i < 1000; i++) {
        snprintf(aside, sizeof aside, "%.64s.damaged-%u", name, i);
        if (faccessat(s->dir, aside, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            break;
    }
    if (renameat(s->dir, name, s->dir, aside) < 0)
        snprintf(aside, sizeof aside, "(it cannot be renamed)");
    s->damaged++;
    wt_log(s->log, WT_LOG_WARN, "%s/%s %s; set aside as %s, the daemon goes on without it",
           s->folder, name, err->text, aside);
}

/* ---- open ---- */

static int load_snapshot(struct wt_state *s, uint64_t *sequence) {
    uint8_t *data;
    size_t len;
    struct wt_err err = {0};
    int rc = wt_state_read(s->dir, "snapshot", &data, &len, &err);
    if (rc == WT_EMISSING)
        return 0;
    if (rc == 0) {
        rc = wt_state_snapshot_decode(data, len, s->tier, s->n_tiers, &s->pending, sequence, &err);
        free(data);
    }
    if (rc == WT_ENOMEM)
        return rc;
    if (rc < 0)
        set_aside(s, "snapshot", &err);
    return 0;
}

static int load_journal(struct wt_state *s, uint64_t sequence) {
    char name[64];
    uint8_t *data;
    size_t len;
    struct wt_err err = {0};
    snprintf(name, sizeof name, "journal-%" PRIu64, sequence);
    int rc = wt_state_read(s->dir, name, &data, &len, &err);
    if (rc == 0) {
        rc = wt_state_journal_decode(data, len, s->tier, s->n_tiers, &s->pending, &err);
        free(data);
    }
    if (rc == WT_ENOMEM)
        return rc;
    if (rc < 0)
        set_aside(s, name, &err);
    return 0;
}

static int by_number(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* Sequences of the journals that lie there, ascending. */
static int find_journals(const struct wt_state *s, uint64_t found[JOURNALS_MAX], size_t *n,
                         struct wt_err *err) {
    int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return wt_err_sys(err, errno, "%s: cannot be listed", s->folder);
    }
    *n = 0;
    for (struct dirent *e; (e = readdir(dir)) && *n < JOURNALS_MAX;) {
        char *end;
        if (strncmp(e->d_name, "journal-", 8) != 0 || e->d_name[8] < '0' || e->d_name[8] > '9')
            continue;
        uint64_t sequence = strtoull(e->d_name + 8, &end, 10);
        if (*end == '\0')
            found[(*n)++] = sequence;
    }
    closedir(dir);
    qsort(found, *n, sizeof *found, by_number);
    return 0;
}

void state_remove_journals(struct wt_state *s, uint64_t before) {
    uint64_t *found = malloc(JOURNALS_MAX * sizeof *found);
    size_t n = 0;
    if (!found || find_journals(s, found, &n, NULL) < 0)
        n = 0;
    for (size_t i = 0; i < n && found[i] < before; i++) {
        char name[64];
        snprintf(name, sizeof name, "journal-%" PRIu64, found[i]);
        unlinkat(s->dir, name, 0);
    }
    free(found);
}

/* Ends the journal and begins the next. */
int state_next_journal(struct wt_state *s, struct wt_err *err) {
    char name[64];
    struct wt_bytes head = {0};
    snprintf(name, sizeof name, "journal-%" PRIu64, s->sequence + 1);
    int fd = openat(s->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
                    0640);
    if (fd < 0)
        return wt_err_sys(err, errno, "%s/%s: cannot be created", s->folder, name);
    int rc = wt_state_head_encode(&head, "WTJRNL1\n", s->tier, s->n_tiers, s->sequence + 1, 0);
    if (rc == 0) {
        uint8_t sum[8];
        wt_put64(sum, wt_hash64(head.data, head.len));
        rc = wt_bytes_add(&head, sum, sizeof sum);
    }
    if (rc < 0)
        wt_err_set(err, rc, "%s/%s: out of memory", s->folder, name);
    else if (write(fd, head.data, head.len) != (ssize_t)head.len)
        rc = wt_err_sys(err, errno, "%s/%s: cannot be written", s->folder, name);
    wt_bytes_free(&head);
    if (rc < 0) {
        close(fd);
        unlinkat(s->dir, name, 0);
        return rc;
    }
    if (s->journal >= 0)
        close(s->journal);
    s->journal = fd;
    s->sequence++;
    return 0;
}

static int load(struct wt_state *s, struct wt_err *err) {
    uint64_t *found = malloc(JOURNALS_MAX * sizeof *found);
    uint64_t first = 0;
    size_t n = 0;
    if (!found)
        return wt_err_set(err, WT_ENOMEM, "%s: out of memory", s->folder);
    int rc = load_snapshot(s, &first);
    if (rc < 0)
        wt_err_set(err, rc, "%s/snapshot: out of memory", s->folder);
    else
        rc = find_journals(s, found, &n, err);
    s->sequence = first;
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (found[i] < first)
            continue;
        rc = load_journal(s, found[i]);
        s->sequence = found[i];
    }
    free(found);
    return rc < 0 ? rc : state_next_journal(s, err);
}

int wt_state_open(const char *folder, const struct wt_tier_opts *tier, uint32_t n_tiers,
                  const struct wt_log *log, struct wt_state **out, struct wt_err *err) {
    if (mkdir(folder, 0750) < 0 && errno != EEXIST)
        return wt_err_sys(err, errno, "state_folder %s: cannot be made", folder);
    struct wt_state *s = wt_calloc(1, sizeof *s);
    if (!s)
        return wt_err_set(err, WT_ENOMEM, "state_folder %s: out of memory", folder);
    snprintf(s->folder, sizeof s->folder, "%s", folder);
    s->log = log;
    s->journal = -1;
    s->n_tiers = n_tiers;
    memcpy(s->tier, tier, n_tiers * sizeof *tier);
    s->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = s->dir < 0 ? wt_err_sys(err, errno, "state_folder %s: cannot be opened", folder)
                        : load(s, err);
    if (rc < 0) {
        wt_state_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

void wt_state_free(struct wt_state *s) {
    if (!s)
        return;
    if (s->journal >= 0)
        close(s->journal);
    if (s->dir >= 0)
        close(s->dir);
    wt_state_sets_free(&s->pending);
    state_save_free(s);
    free(s);
}

uint64_t wt_state_damaged(const struct wt_state *s) {
    return s->damaged;
}

/* ---- to and from the catalog ---- */

const char *wt_state_pending(const struct wt_state *s, size_t i) {
    return i < s->pending.n ? s->pending.set[i].name : NULL;
}

struct fill {
    struct wt_catalog_set *set;
    const struct wt_clock *clock;
    uint32_t n_tiers;
};

static void fill_rec(const struct fill *f, const struct wt_state_rec *r) {
    struct wt_shard_rec rec;
    if (r->shard >= f->set->d.m.shards)
        return;
    wt_catalog_rec(f->set, r->shard, &rec);
    if (rec.hash.lo != r->hash) /* of another generation */
        return;
    struct wt_shard_state *e = &f->set->shard[r->shard];
    uint32_t since = wt_clock_past(f->clock, r->since);
    if (r->kind == WT_STATE_LOSE) {
        wt_set_lose(f->set, r->shard, r->tiers);
    } else if (r->kind == WT_STATE_HOLD) {
        wt_set_hold(f->set, r->shard, r->tiers, since);
    } else {
        e->heat = r->heat;
        e->heated = wt_clock_past(f->clock, r->heated);
        wt_set_keep(f->set, r->shard, r->pin & (uint8_t)~1u, e->want);
        for (uint32_t t = 1; t < f->n_tiers; t++)
            if (r->tiers & (1u << t))
                wt_set_hold(f->set, r->shard, t, since);
    }
}

static const struct wt_state_set *find_pending(const struct wt_state *s, const char *name) {
    for (size_t i = 0; i < s->pending.n; i++)
        if (strcmp(s->pending.set[i].name, name) == 0)
            return &s->pending.set[i];
    return NULL;
}

void wt_state_fill(const struct wt_state *s, const struct wt_clock *clock,
                   struct wt_catalog_set *set) {
    const struct wt_state_set *known = find_pending(s, set->d.m.name);
    struct fill f = {.set = set, .clock = clock, .n_tiers = s->n_tiers};
    for (size_t k = 0; known && k < known->n; k++)
        fill_rec(&f, &known->rec[k]);
}

void *wt_state_forget(struct wt_state *s, const char *name) {
    const struct wt_state_set *known = find_pending(s, name);
    if (!known)
        return NULL;
    size_t i = (size_t)(known - s->pending.set);
    void *rec = known->rec;
    s->pending.set[i] = s->pending.set[--s->pending.n];
    s->shape++;
    return rec;
}

void wt_state_note(struct wt_state *s, const struct wt_catalog_set *set, uint64_t shard,
                   uint32_t tier, bool held) {
    uint8_t change[WT_STATE_CHANGE];
    struct wt_shard_rec rec;
    wt_catalog_rec(set, shard, &rec);
    struct wt_state_rec r = {.shard = shard,
                             .hash = rec.hash.lo,
                             .since = set->shard[shard].since,
                             .kind = held ? WT_STATE_HOLD : WT_STATE_LOSE,
                             .tiers = (uint8_t)tier};
    wt_state_change_encode(set->d.m.name, &r, change);
    if (write(s->journal, change, sizeof change) == (ssize_t)sizeof change)
        return;
    struct wt_err err = {0};
    wt_err_sys(&err, errno, "the journal cannot be written");
    state_warn_once(s, &err);
}
