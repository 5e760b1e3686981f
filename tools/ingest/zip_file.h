/* What zip.c (the directory) and zip_stream.c (the members) share. */
#ifndef WT_TOOLS_INGEST_ZIP_FILE_H
#define WT_TOOLS_INGEST_ZIP_FILE_H

#include "tools/ingest/zip.h"

struct wt_zip {
    int fd;
    uint64_t size;
    struct wt_zip_entry *entry;
    size_t count;
    char *names;
    char path[]; /* for messages */
};

/* All of [off, off + len), or an error that names the archive. */
int wt_zip_pread(const struct wt_zip *zip, void *buf, size_t len, uint64_t off, struct wt_err *err);

#endif
