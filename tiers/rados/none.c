/* rados: URLs in a build without librados: they are refused, and the message says what to do. */
#include "tiers/rados/rados.h"

static int refuse(struct wt_tier *tier, const char *url, struct wt_err *err) {
    (void)tier, (void)url;
    return wt_err_set(
        err, WT_EUNSUPPORTED,
        "rados: this build has no librados: install librados-dev and build again with "
        "-DWT_RADOS=ON");
}

const struct wt_backend wt_backend_rados = {
    .scheme = "rados",
    .help = "rados://POOL (not in this build)",
    .open = refuse,
};
