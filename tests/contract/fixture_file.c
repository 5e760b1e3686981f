/* Fixtures of the file: backend: a folder on disk, on tmpfs, on disk as if it were a network mount,
 * and under each filter, with parameters that do no harm. */
#include "contract.h"

#include <dirent.h>
#include <ftw.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

struct place {
    char base[256]; /* a temporary folder; the tier is base/root */
    char root[300];
    char hidden[300];
};

static bool make_under(const char *folder, const char *params, struct wt_tier_opts *opts,
                       void **out) {
    if (access(folder, W_OK) < 0) {
        print_message("SKIPPED: %s cannot be written\n", folder);
        return false;
    }
    struct place *p = calloc(1, sizeof *p);
    snprintf(p->base, sizeof p->base, "%s/wt contract-XXXXXX", folder);
    if (!mkdtemp(p->base))
        fail_msg("no temporary folder in %s", folder);
    snprintf(p->root, sizeof p->root, "%s/root", p->base);
    snprintf(p->hidden, sizeof p->hidden, "%s/hidden", p->base);
    /* The blank shows that the URL is decoded. */
    const char *blank = strrchr(p->base, ' ');
    snprintf(opts->url, sizeof opts->url, "file://%.*s%%20%s/root%s", (int)(blank - p->base),
             p->base, blank + 1, params);
    *out = p;
    return true;
}

/* A folder that is not in memory: /tmp often is. */
static const char *disk_folder(void) {
    const char *folders[] = {getenv("TMPDIR"), "/tmp", "/var/tmp"};
    struct statfs fs;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        if (folders[i] && *folders[i] == '/' && statfs(folders[i], &fs) == 0 &&
            fs.f_type != TMPFS_MAGIC)
            return folders[i];
    return "/var/tmp";
}

static bool make_disk(struct wt_tier_opts *opts, void **out) {
    return make_under(disk_folder(), "", opts, out);
}

static bool make_bounce(struct wt_tier_opts *opts, void **out) {
    return make_under(disk_folder(), "?bounce=1", opts, out);
}

static bool make_tmpfs(struct wt_tier_opts *opts, void **out) {
    return make_under("/dev/shm", "", opts, out);
}

static bool make_filtered(const char *filter, struct wt_tier_opts *opts, void **out) {
    snprintf(opts->filter, sizeof opts->filter, "%s", filter);
    return make_under(disk_folder(), "", opts, out);
}

static bool make_throttle(struct wt_tier_opts *opts, void **out) {
    return make_filtered("throttle rate=100GiB burst=1MiB", opts, out);
}

static bool make_delay(struct wt_tier_opts *opts, void **out) {
    return make_filtered("delay read=0..1ms write=0..1ms open=0..1ms commit=1ms list=1ms lock=1ms "
                         "unlock=1ms remove=1ms probe=1ms stat=0..1ms usage=1ms abort=1ms",
                         opts, out);
}

static bool make_fault(struct wt_tier_opts *opts, void **out) {
    return make_filtered("fault read=IO:0 write=FULL:every1000000000 commit=TIMEDOUT:0", opts, out);
}

/* On tmpfs: what could be mapped must not be. */
static bool make_stack(struct wt_tier_opts *opts, void **out) {
    snprintf(opts->filter, sizeof opts->filter,
             "throttle rate=20GiB; delay read=0..1ms commit=2ms; fault read=HANG:0; throttle "
             "write=20GiB");
    return make_under("/dev/shm", "", opts, out);
}

/* The folder itself must go: a tier that holds a descriptor on it would not notice a new name. */
static void away(void *place) {
    struct place *p = place;
    DIR *dir = opendir(p->root);
    if (!dir || mkdir(p->hidden, 0755) < 0)
        fail_msg("cannot hide %s", p->root);
    struct dirent *entry;
    while ((entry = readdir(dir))) {
        char from[600], to[600];
        snprintf(from, sizeof from, "%s/%s", p->root, entry->d_name);
        snprintf(to, sizeof to, "%s/%s", p->hidden, entry->d_name);
        if (entry->d_name[0] != '.' || strlen(entry->d_name) > 2)
            assert_int_equal(rename(from, to), 0);
    }
    closedir(dir);
    assert_int_equal(rmdir(p->root), 0);
}

static void back(void *place) {
    struct place *p = place;
    if (rename(p->hidden, p->root) < 0)
        fail_msg("cannot bring %s back", p->root);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void drop(void *place) {
    struct place *p = place;
    nftw(p->base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(p);
}

static const struct contract_fixture disk = {
    .name = "file",
    .make = make_disk,
    .away = away,
    .back = back,
    .drop = drop,
    .caps = WT_CAP_WRITE | WT_CAP_LOCK,
};
static const struct contract_fixture bounce = {
    .name = "file-bounce",
    .make = make_bounce,
    .away = away,
    .back = back,
    .drop = drop,
    .caps = WT_CAP_WRITE | WT_CAP_LOCK,
};
static const struct contract_fixture tmpfs = {
    .name = "file-tmpfs",
    .make = make_tmpfs,
    .away = away,
    .back = back,
    .drop = drop,
    .caps = WT_CAP_WRITE | WT_CAP_LOCK | WT_CAP_MAP | WT_CAP_VOLATILE,
};

static const struct contract_fixture throttle = {
    .name = "file-throttle",
    .make = make_throttle,
    .away = away,
    .back = back,
    .drop = drop,
    .caps = WT_CAP_WRITE | WT_CAP_LOCK,
};
static const struct contract_fixture delay = {
    .name = "file-delay",
    .make = make_delay,
    .away = away,
    .back = back,
    .drop = drop,
    .caps = WT_CAP_WRITE | WT_CAP_LOCK,
};
static const struct contract_fixture fault = {
    .name = "file-fault",
    .make = make_fault,
    .away = away,
    .back = back,
    .drop = drop,
    .caps = WT_CAP_WRITE | WT_CAP_LOCK,
};
static const struct contract_fixture stack = {
    .name = "file-stack",
    .make = make_stack,
    .away = away,
    .back = back,
    .drop = drop,
    .caps = WT_CAP_WRITE | WT_CAP_LOCK,
};

const struct contract_fixture *const contract_fixtures[] = {
    &disk, &bounce, &tmpfs, &throttle, &delay, &fault, &stack, NULL,
};
