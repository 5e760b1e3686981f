/*
 * The walk over a namespace; see walk.h.
 *
 * Happy path: names are gathered in batches; the heads that a batch needs are read together (one
 * read op each: fixed part and time of change); then its entries go out. A part whose head is
 * missing, or is that of another put, goes out as unpublished. Objects that vanish during the walk
 * are passed over. Failures: no answer within OP_TIMEOUT_S ends the walk. Objects that are not ours
 * (no head at all) are passed over: a namespace may be shared.
 */
#include "tiers/rados/walk.h"

#include "tiers/rados/conn.h"
#include "tiers/rados/head.h"
#include "tiers/rados/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OP_TIMEOUT_S = 5, BATCH = 64 };

struct item {
    char name[RADOS_OID_SIZE];
    enum rados_name kind;
    uint64_t token; /* of a part */
    char head_name[WT_KEY_SIZE];
    /* what is read */
    rados_completion_t done;
    rados_read_op_t op;
    char head[RADOS_HEAD_FIXED];
    size_t got;
    uint64_t size; /* of the RADOS object */
    time_t mtime;
    int rc;
};

struct walker {
    const struct rados_walk *walk;
    struct rados_conn *conn;
    struct rados_names folders;
    size_t folder; /* shallow: length of the folder's name with its '/' */
    size_t n;
    struct item item[BATCH];
    struct wt_err *err;
};

static bool shallow(const struct walker *w) {
    return (w->walk->flags & WT_LIST_SHALLOW) != 0;
}

/* ---- reading ---- */

/* A part's own size and time are asked from the part, whether it is published from the head: two
 * reads. */
static int submit(struct walker *w, struct item *it, const char *oid, bool want_head) {
    it->rc = -ENOMEM;
    it->got = 0;
    it->op = rados_create_read_op();
    if (!it->op || rados_aio_create_completion2(NULL, NULL, &it->done) < 0) {
        it->done = NULL;
        return -ENOMEM;
    }
    rados_read_op_stat(it->op, &it->size, &it->mtime, NULL);
    if (want_head)
        rados_read_op_read(it->op, 0, sizeof it->head, it->head, &it->got, NULL);
    return rados_aio_read_op_operate(it->op, w->conn->io, it->done, oid, 0);
}

static void collect(struct item *it, int submitted) {
    it->rc = submitted;
    if (submitted == 0) {
        rados_aio_wait_for_complete(it->done);
        it->rc = rados_aio_get_return_value(it->done);
    }
    if (it->done)
        rados_aio_release(it->done);
    if (it->op)
        rados_release_read_op(it->op);
    it->done = NULL;
    it->op = NULL;
}

static int read_all(struct walker *w, bool heads) {
    int submitted[BATCH], rc = 0;
    for (size_t i = 0; i < w->n; i++)
        submitted[i] =
            submit(w, &w->item[i], heads ? w->item[i].head_name : w->item[i].name, heads);
    for (size_t i = 0; i < w->n; i++) {
        collect(&w->item[i], submitted[i]);
        if (w->item[i].rc < 0 && w->item[i].rc != -ENOENT)
            rc = w->item[i].rc;
    }
    return rc < 0 ? rados_error(w->err, rc, "reading what was listed") : 0;
}

/* ---- telling ---- */

static int tell_head(struct walker *w, const struct item *it) {
    struct rados_head head = {0};
    int rc = it->rc < 0 ? WT_EMISSING : rados_head_peek(it->head, it->got, &head, NULL);
    if (rc == WT_EMISSING || it->got < 8 || memcmp(it->head, "\x89WTHEAD\n", 8) != 0)
        return 0; /* vanished, or not ours */
    struct wt_entry entry = {.key = it->name, .size = head.size, .mtime = it->mtime};
    return w->walk->each(w->walk->arg, &entry);
}

static bool is_published(const struct item *it) {
    struct rados_head head;
    return it->rc >= 0 && rados_head_peek(it->head, it->got, &head, NULL) == 0 &&
           head.token == it->token;
}

static int tell_part(struct walker *w, const struct item *it) {
    if (it->rc < 0)
        return 0;
    struct wt_entry entry = {
        .key = it->name, .size = it->size, .mtime = it->mtime, .unpublished = true};
    return w->walk->each(w->walk->arg, &entry);
}

/* Keeps the parts without a head in w->item, tells the rest. */
static int tell_heads(struct walker *w) {
    size_t orphans = 0;
    int rc = 0;
    for (size_t i = 0; i < w->n && rc == 0; i++) {
        const struct item *it = &w->item[i];
        if (it->kind == RADOS_NAME_HEAD)
            rc = tell_head(w, it);
        else if (!is_published(it))
            w->item[orphans++] = *it;
    }
    w->n = orphans;
    return rc;
}

static int flush(struct walker *w) {
    int rc = w->n ? read_all(w, true) : 0;
    if (rc == 0)
        rc = tell_heads(w);
    if (rc == 0 && w->n)
        rc = read_all(w, false);
    for (size_t i = 0; i < w->n && rc == 0; i++)
        rc = tell_part(w, &w->item[i]);
    w->n = 0;
    return rc;
}

/* ---- gathering ---- */

static int tell_folder(struct walker *w, const char *name, size_t len) {
    char key[WT_KEY_SIZE];
    int fresh = rados_names_add(&w->folders, name, len);
    if (fresh < 0)
        return wt_err_set(w->err, fresh, "its sub-folders are too many to list");
    if (fresh == 0 || len >= sizeof key)
        return 0;
    memcpy(key, name, len);
    key[len] = '\0';
    struct wt_entry entry = {.key = key};
    return w->walk->each(w->walk->arg, &entry);
}

static int gather(struct walker *w, const char *name) {
    size_t len = strlen(name), key_len = len;
    uint64_t token = 0;
    enum rados_name kind = rados_name_kind(name, &key_len, &token);
    if (strncmp(name, w->walk->prefix, shallow(w) ? w->folder : strlen(w->walk->prefix)) != 0)
        return 0;
    if (kind == RADOS_NAME_LOCK || len >= RADOS_OID_SIZE || key_len >= WT_KEY_SIZE)
        return 0;
    const char *slash = shallow(w) ? memchr(name + w->folder, '/', key_len - w->folder) : NULL;
    if (slash)
        return kind == RADOS_NAME_HEAD ? tell_folder(w, name, (size_t)(slash - name) + 1) : 0;
    if (kind == RADOS_NAME_PART && shallow(w))
        return 0;
    struct item *it = &w->item[w->n++];
    memcpy(it->name, name, len + 1);
    memcpy(it->head_name, name, key_len);
    it->head_name[key_len] = '\0';
    it->kind = kind;
    it->token = token;
    return w->n == BATCH ? flush(w) : 0;
}

static int walk_list(struct walker *w, rados_list_ctx_t list) {
    int rc = 0;
    while (rc == 0) {
        const char *name;
        int next = rados_nobjects_list_next(list, &name, NULL, NULL);
        if (next == -ENOENT)
            return flush(w);
        if (next < 0)
            return rados_error(w->err, next, "listing the pool");
        rc = w->walk->stopped(w->walk->arg) ? WT_ECANCELED : gather(w, name);
    }
    return rc;
}

static int walk_pool(struct walker *w) {
    rados_list_ctx_t list;
    int rc = rados_nobjects_list_open(w->conn->io, &list);
    if (rc < 0)
        return rados_error(w->err, rc, "listing the pool");
    rc = walk_list(w, list);
    rados_nobjects_list_close(list);
    return rc;
}

int rados_walk(const struct rados_walk *walk, struct wt_err *err) {
    struct walker *w = calloc(1, sizeof *w);
    if (!w)
        return wt_err_set(err, WT_ENOMEM, "out of memory for a list");
    struct rados_walk own = *walk;
    size_t len = strlen(own.prefix);
    /* A folder's name goes with or without its '/'. */
    if ((own.flags & WT_LIST_SHALLOW) && len && own.prefix[len - 1] != '/' &&
        len + 1 < sizeof own.prefix)
        memcpy(own.prefix + len, "/", 2);
    w->walk = &own;
    w->folder = strlen(own.prefix);
    w->err = err;
    int rc = rados_conn_open(&own.url, OP_TIMEOUT_S, &w->conn, err);
    if (rc == 0)
        rc = walk_pool(w);
    rados_conn_unref(w->conn);
    rados_names_free(&w->folders);
    free(w);
    return rc;
}
