/*
 * MAP: the whole object in memory, on tmpfs alone, where its pages are memory already.
 *
 * Mappings are kept by (device, inode, size) while anybody holds them, so that mapping an object
 * again costs an open and no page faults. An inode's number is not used again while its mapping
 * lives. Objects are published by rename and never truncated; a file that someone truncates under a
 * mapping kills the reader (SIGBUS), which is why no other file system is mapped.
 */
#include "tiers/file/file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct file_mapping {
    struct file_root *root;
    dev_t dev;
    ino_t ino;
    void *data; /* NULL: an empty object */
    size_t size;
    unsigned refs; /* under root->lock */
    struct file_mapping *next;
};

static void mapping_free(struct file_mapping *m) {
    if (m->data)
        munmap(m->data, m->size);
    file_root_unref(m->root);
    free(m);
}

/* wt_map's release: any thread. */
static void release(void *arg) {
    struct file_mapping *m = arg;
    struct file_root *root = m->root;
    pthread_mutex_lock(&root->lock);
    bool last = --m->refs == 0;
    if (last) {
        struct file_mapping **at = &root->mappings;
        while (*at != m)
            at = &(*at)->next;
        *at = m->next;
    }
    pthread_mutex_unlock(&root->lock);
    if (last)
        mapping_free(m);
}

/* With the lock. */
static struct file_mapping *find(struct file_root *root, const struct stat *st) {
    struct file_mapping *m = root->mappings;
    while (m && !(m->ino == st->st_ino && m->dev == st->st_dev && m->size == (size_t)st->st_size))
        m = m->next;
    if (m)
        m->refs++;
    return m;
}

static struct file_mapping *find_kept(struct file_root *root, const struct stat *st) {
    pthread_mutex_lock(&root->lock);
    struct file_mapping *m = find(root, st);
    pthread_mutex_unlock(&root->lock);
    return m;
}

/* Another worker may have mapped the same meanwhile: then its mapping is taken. */
static struct file_mapping *keep(struct file_mapping *m, const struct stat *st) {
    struct file_root *root = m->root;
    pthread_mutex_lock(&root->lock);
    struct file_mapping *other = find(root, st);
    if (!other) {
        m->next = root->mappings;
        root->mappings = m;
    }
    pthread_mutex_unlock(&root->lock);
    if (!other)
        return m;
    mapping_free(m);
    return other;
}

static struct file_mapping *make(struct file_job *job, int fd, const struct stat *st) {
    struct file_mapping *m = calloc(1, sizeof *m);
    if (!m) {
        wt_err_set(&job->err, WT_ENOMEM, "out of memory for a mapping");
        return NULL;
    }
    *m = (struct file_mapping){.root = file_root_ref(job->root),
                               .dev = st->st_dev,
                               .ino = st->st_ino,
                               .size = (size_t)st->st_size,
                               .refs = 1};
    if (m->size == 0)
        return m;
    void *data = mmap(NULL, m->size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (data == MAP_FAILED) {
        wt_err_sys(&job->err, errno, "map");
        mapping_free(m);
        return NULL;
    }
    m->data = data;
    return m;
}

int file_run_map(struct file_job *job, const struct file_dir *dir) {
    struct stat st;
    int fd;
    int rc = file_open_object(job, dir, &st, &fd);
    if (rc < 0)
        return rc;
    struct file_mapping *m = find_kept(job->root, &st);
    if (!m && (m = make(job, fd, &st)))
        m = keep(m, &st);
    close(fd);
    if (!m)
        return job->err.code;
    job->map = wt_map_new(m->data ? m->data : "", m->size, release, m);
    if (!job->map) {
        release(m);
        return wt_err_set(&job->err, WT_ENOMEM, "out of memory for a mapping");
    }
    return 0;
}
