/* Host memory: the first row of the table, and the choice between rows; see accel.h. */
#include "libloader/accel/accel.h"

#include <string.h>

static void host_copy(void *dst, const void *src, size_t size, void *stream) {
    (void)stream;
    memcpy(dst, src, size);
}

const struct wt_accel wt_accel_host = {
    .name = "host",
    .alloc = wt_mem_map,
    .free = wt_mem_unmap,
    .copy = host_copy,
    .device = -1,
};

int wt_accel_choose(wl_accel wanted, const struct wt_log *log, const struct wt_accel **out,
                    struct wt_err *err) {
    if (wanted == WL_ACCEL_CUDA)
        return wt_err_set(
            err, WT_EUNSUPPORTED,
            "option 'accel' is cuda: this build delivers into host memory alone; use accel=host");
    if (wanted == WL_ACCEL_AUTO)
        wt_log(log, WT_LOG_INFO, "loader: batches lie in host memory");
    *out = &wt_accel_host;
    return 0;
}
