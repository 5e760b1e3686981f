/*
 * Fixtures for the contract suite that need a Ceph: rados: in a namespace of its own for each
 * place, and file: on a ceph-fuse mount. WT_TEST_CEPH names the folder of the running cluster
 * (tests/servers/ceph start), WT_TEST_SERVERS the folder of the scripts.
 */
#include "tests/contract/contract.h"

#include <ftw.h>
#include <rados/librados.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct place {
    char nspace[64];
    char conf[300];
};

static bool cluster(char *conf, size_t size) {
    const char *folder = getenv("WT_TEST_CEPH");
    snprintf(conf, size, "%s/ceph.conf", folder ? folder : "");
    if (folder && access(conf, R_OK) == 0)
        return true;
    print_message("SKIPPED: no Ceph runs: WT_TEST_CEPH is not the folder of one\n");
    return false;
}

static bool make_rados(struct wt_tier_opts *opts, void **out) {
    static unsigned n;
    struct place *p = calloc(1, sizeof *p);
    if (!cluster(p->conf, sizeof p->conf)) {
        free(p);
        return false;
    }
    snprintf(p->nspace, sizeof p->nspace, "contract %d-%u", (int)getpid(), n++);
    snprintf(opts->url, sizeof opts->url, "rados://wafers-cold/contract%%20%d-%u?conf=%s",
             (int)getpid(), n - 1, p->conf);
    *out = p;
    return true;
}

/* Nothing may be left but what the tests put: its name says which namespace it was in. */
static void drop_rados(void *place) {
    struct place *p = place;
    rados_t ceph;
    rados_ioctx_t io;
    rados_list_ctx_t list;
    const char *name;
    assert_int_equal(rados_create(&ceph, "admin"), 0);
    assert_int_equal(rados_conf_read_file(ceph, p->conf), 0);
    assert_int_equal(rados_connect(ceph), 0);
    assert_int_equal(rados_ioctx_create(ceph, "wafers-cold", &io), 0);
    rados_ioctx_set_namespace(io, p->nspace);
    assert_int_equal(rados_nobjects_list_open(io, &list), 0);
    while (rados_nobjects_list_next(list, &name, NULL, NULL) == 0)
        rados_remove(io, name);
    rados_nobjects_list_close(list);
    rados_ioctx_destroy(io);
    rados_shutdown(ceph);
    free(p);
}

/* ---- file: on ceph-fuse, one mount for all places ---- */

struct mounted {
    char mount[300], root[340];
};

static bool make_mounted(struct wt_tier_opts *opts, void **out) {
    static unsigned n;
    const char *mount = getenv("WT_TEST_CEPHFS");
    if (!mount || access(mount, W_OK) != 0) {
        print_message("SKIPPED: no CephFS is mounted: WT_TEST_CEPHFS is not the folder of one\n");
        return false;
    }
    struct mounted *p = calloc(1, sizeof *p);
    snprintf(p->mount, sizeof p->mount, "%s", mount);
    snprintf(p->root, sizeof p->root, "%s/contract-%d-%u", mount, (int)getpid(), n++);
    snprintf(opts->url, sizeof opts->url, "file://%s", p->root);
    *out = p;
    return true;
}

static void script(const char *arguments) {
    char command[1000];
    const char *scripts = getenv("WT_TEST_SERVERS");
    snprintf(command, sizeof command, "timeout 60 '%s/cephfs' %s",
             scripts ? scripts : "tests/servers", arguments);
    assert_int_equal(system(command), 0);
}

/* ceph-fuse dies: whatever is open there gives ENOTCONN until it is mounted anew. */
static void away(void *place) {
    const struct mounted *p = place;
    char command[700];
    snprintf(command, sizeof command, "kill '%s'", p->mount);
    script(command);
}

static void back(void *place) {
    const struct mounted *p = place;
    char command[700];
    snprintf(command, sizeof command, "umount '%s'", p->mount);
    script(command);
    snprintf(command, sizeof command, "mount '%s' '%s'", getenv("WT_TEST_CEPH"), p->mount);
    script(command);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void drop_mounted(void *place) {
    struct mounted *p = place;
    nftw(p->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(p);
}

static const struct contract_fixture rados = {
    "rados", make_rados, NULL, NULL, drop_rados, WT_CAP_WRITE | WT_CAP_LOCK, 64 << 10,
};
static const struct contract_fixture cephfs = {
    "cephfs", make_mounted, away, back, drop_mounted, WT_CAP_WRITE | WT_CAP_LOCK, 0,
};

const struct contract_fixture *const contract_fixtures[] = {&rados, &cephfs, NULL};
