/* A FUSE server of the smallest kind; see fuse_kit.h and linux/fuse.h. */
#include "fuse_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOT = 1, FOLDER = 2, OBJECT = 3, BUFFER = 1 << 20, HELD_MAX = 64 };

struct held {
    uint64_t unique, off;
    uint32_t size;
};

struct fuse_kit {
    char path[256];
    int fd;
    pthread_t thread;
    pthread_mutex_t lock;
    bool mute, hang_reads, hang_all, stop, dead;
    int fail;
    struct held held[HELD_MAX];
    size_t n_held;
    char *buffer, *reply;
};

static void answer(struct fuse_kit *k, uint64_t unique, int error, const void *data, size_t len) {
    struct fuse_out_header *out = (struct fuse_out_header *)k->reply;
    *out = (struct fuse_out_header){(uint32_t)(sizeof *out + len), error, unique};
    if (len)
        memcpy(out + 1, data, len);
    if (write(k->fd, out, out->len) < 0 && errno != ENOENT) /* its caller is gone */
        k->stop = true;
}

static struct fuse_attr attr_of(uint64_t node) {
    struct fuse_attr a = {.ino = node, .nlink = 1, .blksize = 4096};
    a.mode = node == OBJECT ? S_IFREG | 0644 : S_IFDIR | 0755;
    a.size = node == OBJECT ? FUSE_KIT_SIZE : 0;
    return a;
}

static void lookup(struct fuse_kit *k, const struct fuse_in_header *in) {
    const char *name = (const char *)(in + 1);
    uint64_t node = 0;
    if (in->nodeid == ROOT && strcmp(name, "tier") == 0)
        node = FOLDER;
    else if (in->nodeid == FOLDER && strcmp(name, "object") == 0)
        node = OBJECT;
    struct fuse_entry_out out = {.nodeid = node, .generation = 1, .attr = attr_of(node)};
    answer(k, in->unique, node ? 0 : -ENOENT, &out, node ? sizeof out : 0);
}

static void answer_read(struct fuse_kit *k, uint64_t unique, uint64_t off, uint32_t size) {
    static char data[BUFFER];
    size_t n = 0;
    for (; n < size && n < sizeof data && off + n < FUSE_KIT_SIZE; n++)
        data[n] = (char)((off + n) * 7);
    answer(k, unique, 0, data, n);
}

static void read_or_hold(struct fuse_kit *k, const struct fuse_in_header *in) {
    const struct fuse_read_in *r = (const void *)(in + 1);
    if (k->hang_reads && k->n_held < HELD_MAX)
        k->held[k->n_held++] = (struct held){in->unique, r->offset, r->size};
    else
        answer_read(k, in->unique, r->offset, r->size);
}

static void init(struct fuse_kit *k, const struct fuse_in_header *in) {
    const struct fuse_init_in *i = (const void *)(in + 1);
    struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
                                .minor = FUSE_KERNEL_MINOR_VERSION,
                                .max_readahead = i->max_readahead,
                                .max_write = 4096};
    answer(k, in->unique, 0, &out, sizeof out);
}

static bool may_fail(uint32_t opcode) {
    return opcode == FUSE_LOOKUP || opcode == FUSE_GETATTR || opcode == FUSE_OPEN ||
           opcode == FUSE_OPENDIR || opcode == FUSE_READ || opcode == FUSE_STATFS;
}

static void serve(struct fuse_kit *k, const struct fuse_in_header *in) {
    struct fuse_attr_out attr = {.attr = attr_of(in->nodeid)};
    struct fuse_open_out open_out = {.open_flags = FOPEN_DIRECT_IO};
    struct fuse_statfs_out fs = {.st = {.blocks = 1000,
                                        .bfree = 900,
                                        .bavail = 900,
                                        .bsize = 4096,
                                        .frsize = 4096,
                                        .namelen = 255}};
    if (k->fail && may_fail(in->opcode)) {
        answer(k, in->unique, -k->fail, NULL, 0);
        return;
    }
    switch (in->opcode) {
    case FUSE_INIT:
        init(k, in);
        break;
    case FUSE_LOOKUP:
        lookup(k, in);
        break;
    case FUSE_GETATTR:
        answer(k, in->unique, 0, &attr, sizeof attr);
        break;
    case FUSE_OPEN:
    case FUSE_OPENDIR:
        answer(k, in->unique, 0, &open_out, sizeof open_out);
        break;
    case FUSE_READ:
        read_or_hold(k, in);
        break;
    case FUSE_STATFS:
        answer(k, in->unique, 0, &fs, sizeof fs);
        break;
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
    case FUSE_FLUSH:
        answer(k, in->unique, 0, NULL, 0);
        break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        break; /* no answer is wanted */
    default:
        answer(k, in->unique, -ENOSYS, NULL, 0);
    }
}

static void release_held(struct fuse_kit *k) {
    if (k->hang_reads)
        return;
    for (size_t i = 0; i < k->n_held; i++)
        answer_read(k, k->held[i].unique, k->held[i].off, k->held[i].size);
    k->n_held = 0;
}

static void *run(void *arg) {
    struct fuse_kit *k = arg;
    for (;;) {
        pthread_mutex_lock(&k->lock);
        bool stop = k->stop, quiet = k->mute || k->hang_all;
        if (!stop)
            release_held(k);
        pthread_mutex_unlock(&k->lock);
        if (stop)
            return NULL;
        struct pollfd p = {.fd = quiet ? -1 : k->fd, .events = POLLIN};
        if (poll(&p, 1, 5) <= 0)
            continue;
        ssize_t n = read(k->fd, k->buffer, BUFFER);
        if (n < (ssize_t)sizeof(struct fuse_in_header))
            continue;
        pthread_mutex_lock(&k->lock);
        serve(k, (const struct fuse_in_header *)k->buffer);
        pthread_mutex_unlock(&k->lock);
    }
}

struct fuse_kit *fuse_kit_mount(const char *path, bool mute, const char **why) {
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        *why = "there is no /dev/fuse for this user";
        return NULL;
    }
    char options[100];
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
    if (mount("wt-test", path, "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
        close(fd);
        *why = "this user may not mount";
        return NULL;
    }
    struct fuse_kit *k = calloc(1, sizeof *k);
    snprintf(k->path, sizeof k->path, "%s", path);
    k->fd = fd;
    k->mute = mute;
    k->buffer = malloc(BUFFER);
    k->reply = malloc(BUFFER + 4096);
    pthread_mutex_init(&k->lock, NULL);
    pthread_create(&k->thread, NULL, run, k);
    return k;
}

void fuse_kit_hang(struct fuse_kit *k, bool reads, bool all) {
    pthread_mutex_lock(&k->lock);
    k->hang_reads = reads;
    k->hang_all = all;
    pthread_mutex_unlock(&k->lock);
}

void fuse_kit_fail(struct fuse_kit *k, int error) {
    pthread_mutex_lock(&k->lock);
    k->fail = error;
    pthread_mutex_unlock(&k->lock);
}

void fuse_kit_kill(struct fuse_kit *k) {
    if (k->dead)
        return;
    k->dead = true;
    pthread_mutex_lock(&k->lock);
    k->stop = true;
    pthread_mutex_unlock(&k->lock);
    pthread_join(k->thread, NULL);
    close(k->fd);
}

void fuse_kit_unmount(struct fuse_kit *k) {
    if (!k)
        return;
    fuse_kit_kill(k);
    umount2(k->path, MNT_DETACH);
    pthread_mutex_destroy(&k->lock);
    free(k->buffer);
    free(k->reply);
    free(k);
}
