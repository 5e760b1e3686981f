/* The table of formats; see reader.h. */
#include "tools/ingest/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const struct wt_reader_ops *const readers[] = {&wt_reader_npy, &wt_reader_npz,
                                                      &wt_reader_png};
enum { N_READERS = sizeof readers / sizeof readers[0], HEAD = 16 };

static bool ends_with(const char *path, const char *extension) {
    size_t n = strlen(path), e = strlen(extension);
    return n > e && path[n - e - 1] != '/' && strcasecmp(path + n - e, extension) == 0;
}

const struct wt_reader_ops *wt_reader_by_name(const char *path) {
    for (size_t i = 0; i < N_READERS; i++)
        for (const char *const *e = readers[i]->extensions; *e; e++)
            if (ends_with(path, *e))
                return readers[i];
    return NULL;
}

static int read_head(const char *path, uint8_t head[HEAD], size_t *len, struct wt_err *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return wt_err_sys(err, errno, "%s: cannot be opened", path);
    ssize_t n = read(fd, head, HEAD);
    int sys = errno;
    close(fd);
    if (n < 0)
        return wt_err_sys(err, sys, "%s: cannot be read", path);
    *len = (size_t)n;
    return 0;
}

int wt_reader_find(const char *path, const struct wt_reader_ops **ops, struct wt_err *err) {
    uint8_t head[HEAD];
    size_t len = 0;
    int rc = read_head(path, head, &len, err);
    if (rc < 0)
        return rc;
    const struct wt_reader_ops *named = wt_reader_by_name(path);
    for (size_t i = 0; i < N_READERS; i++) {
        if ((named && named != readers[i]) || !readers[i]->magic(head, len))
            continue;
        *ops = readers[i];
        return 0;
    }
    if (len == 0)
        return wt_err_set(err, WT_EFORMAT, "%s: is empty", path);
    if (named)
        return wt_err_set(err, WT_EFORMAT, "%s: is not a %s file, whatever its name says", path,
                          named->name);
    return wt_err_set(err, WT_EFORMAT, "%s: unknown format; known are .npy, .npz and .png", path);
}
