/*
 * A file system that hangs on demand: the kernel's FUSE protocol spoken by a thread of the test, no
 * library. It has one folder, tier/, with one object, "object", of FUSE_KIT_SIZE bytes, byte i = i
 * * 7.
 */
#ifndef WT_TESTS_TIERS_FUSE_KIT_H
#define WT_TESTS_TIERS_FUSE_KIT_H

#include <stdbool.h>
#include <stdint.h>

enum { FUSE_KIT_SIZE = 4 << 20 };

struct fuse_kit;

/* NULL: not on this machine (no root, no /dev/fuse); *why says so. `mute`: it answers nothing at
 * all, not even its mount. */
struct fuse_kit *fuse_kit_mount(const char *path, bool mute, const char **why);
/* While it is set, reads of the object's data wait (`all`: every request does). */
void fuse_kit_hang(struct fuse_kit *k, bool reads, bool all);
/* Until it is 0, every request for a file or folder fails with this errno. */
void fuse_kit_fail(struct fuse_kit *k, int error);
/* The server dies: every call on the mount fails. */
void fuse_kit_kill(struct fuse_kit *k);
void fuse_kit_unmount(struct fuse_kit *k);

#endif
