/* Files below a folder, by fts(3); see walk.h. */
#include "tools/ingest/walk.h"

#include "core/mem.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int add_path(struct wt_walk *walk, const char *path, struct wt_err *err) {
    char *copy = strdup(path);
    if (!copy || wt_grow(&walk->path, &walk->cap, walk->n + 1, sizeof *walk->path) < 0) {
        free(copy);
        return wt_err_set(err, WT_ENOMEM, "%s: no memory for the list of files", path);
    }
    walk->path[walk->n++] = copy;
    return 0;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int visit(FTS *fts, FTSENT *e, struct wt_walk *walk, struct wt_err *err) {
    if (e->fts_level > 0 && e->fts_name[0] == '.') {
        fts_set(fts, e, FTS_SKIP);
        return 0;
    }
    switch (e->fts_info) {
    case FTS_F:
    case FTS_SLNONE: /* a link to nowhere: opening it says so */
        return add_path(walk, e->fts_path, err);
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        return wt_err_sys(err, e->fts_errno, "%s: cannot be read", e->fts_path);
    default: /* folders, loops, sockets */
        return 0;
    }
}

static int walk_folder(char *root, struct wt_walk *walk, struct wt_err *err) {
    char *roots[] = {root, NULL};
    FTS *fts = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    if (!fts)
        return wt_err_sys(err, errno, "%s: cannot be read", root);
    int rc = 0;
    FTSENT *e;
    errno = 0;
    while (rc == 0 && (e = fts_read(fts)) != NULL) {
        rc = visit(fts, e, walk, err);
        errno = 0;
    }
    if (rc == 0 && errno != 0)
        rc = wt_err_sys(err, errno, "%s: cannot be read", root);
    fts_close(fts);
    return rc;
}

int wt_walk_input(const char *input, struct wt_walk *walk, struct wt_err *err) {
    struct stat st;
    if (stat(input, &st) < 0)
        return wt_err_sys(err, errno, "%s: cannot be read", input);
    char *root = strdup(input);
    if (!root)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory", input);
    size_t len = strlen(root);
    while (len > 1 && root[len - 1] == '/')
        root[--len] = '\0';
    struct wt_walk w = {0};
    int rc;
    if (S_ISDIR(st.st_mode)) {
        w.root = len + (root[len - 1] != '/');
        rc = walk_folder(root, &w, err);
        if (w.n)
            qsort(w.path, w.n, sizeof *w.path, by_bytes);
    } else {
        const char *slash = strrchr(root, '/');
        w.root = slash ? (size_t)(slash + 1 - root) : 0;
        rc = add_path(&w, root, err);
    }
    free(root);
    if (rc < 0)
        wt_walk_free(&w);
    else
        *walk = w;
    return rc;
}

void wt_walk_free(struct wt_walk *walk) {
    for (size_t i = 0; i < walk->n; i++)
        free(walk->path[i]);
    free(walk->path);
    *walk = (struct wt_walk){0};
}
