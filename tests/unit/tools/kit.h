/* What the tests of tools/ share: a folder of their own, and files made byte by byte. */
#ifndef WT_TEST_TOOLS_KIT_H
#define WT_TEST_TOOLS_KIT_H

#include "core/bytes.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

struct kit {
    char dir[256];
    char path[16][600]; /* kit_path goes round in these */
    unsigned next;
};
/* cmocka setup and teardown: *state is the kit, its folder is made and removed. */
int kit_setup(void **state);
int kit_teardown(void **state);
const char *kit_path(struct kit *k, const char *name);
/* Folders on the way are made. */
const char *kit_write(struct kit *k, const char *name, const void *data, size_t len);
const char *kit_text(struct kit *k, const char *name, const char *text);

/* An npy file: header of version 1 around the dict's text, then the elements. */
void kit_npy(struct wt_bytes *out, const char *descr, bool fortran, const char *shape,
             const void *data, size_t len);

/* A zip archive, member by member. */
struct kit_member {
    const char *name;
    const void *data;
    size_t len;
    bool deflate, zip64, descriptor;
    bool bad_crc;
    uint64_t claim; /* declared size instead of the real one; 0: the real one */
    uint16_t flags, method_override;
};
void kit_zip(struct wt_bytes *out, const struct kit_member *members, size_t n, bool end64);

#endif
