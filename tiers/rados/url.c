/* Reads a rados: URL; see url.h for its form. Everything that is not understood is refused. */
#include "tiers/rados/url.h"

#include "tiers/url.h"

#include <string.h>

static int copy(char *out, size_t size, const char *text, const char *what, struct wt_err *err) {
    size_t len = strlen(text);
    if (len == 0 || len >= size)
        return wt_err_set(err, WT_EINVAL, "the %s in a rados: URL has 1 to %zu characters", what,
                          size - 1);
    memcpy(out, text, len + 1);
    return 0;
}

struct option {
    const char *name;
    char *out;
    size_t size;
};

static int set_option(const struct option *options, const struct wt_url_param *param,
                      struct wt_err *err) {
    for (const struct option *o = options; o->name; o++)
        if (strcmp(o->name, param->name) == 0)
            return copy(o->out, o->size, param->value, o->name, err);
    return wt_err_set(err, WT_EINVAL,
                      "the URL has an option \"%s\"; a rados: URL takes conf=FILE, id=NAME, "
                      "cluster=NAME and keyring=FILE",
                      param->name);
}

int rados_url_parse(const char *text, struct rados_url *url, struct wt_err *err) {
    struct wt_url parsed;
    struct rados_url u = {.id = "admin", .cluster = "ceph"};
    const struct option options[] = {{"conf", u.conf, sizeof u.conf},
                                     {"id", u.id, sizeof u.id},
                                     {"cluster", u.cluster, sizeof u.cluster},
                                     {"keyring", u.keyring, sizeof u.keyring},
                                     {NULL, NULL, 0}};
    int rc = wt_url_parse(text, &parsed, err);
    if (rc == 0)
        rc = copy(u.pool, sizeof u.pool, parsed.authority, "pool", err);
    if (rc == 0 && strpbrk(u.pool, "%@:"))
        rc = wt_err_set(err, WT_EINVAL, "a pool in a URL has none of %%, @ and :");
    if (rc == 0 && parsed.path[0] && parsed.path[1])
        rc = copy(u.nspace, sizeof u.nspace, parsed.path + 1, "namespace", err);
    /* A leading \001 means "all namespaces" to librados. */
    if (rc == 0 && u.nspace[0] && (unsigned char)u.nspace[0] < ' ')
        rc = wt_err_set(err, WT_EINVAL, "the namespace begins with a control character");
    for (size_t i = 0; i < parsed.n_params && rc == 0; i++)
        rc = set_option(options, &parsed.param[i], err);
    if (rc == 0)
        *url = u;
    return rc;
}
