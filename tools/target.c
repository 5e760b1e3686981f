/* Opening a tier and reading data sets from it; see target.h. */
#include "tools/target.h"

#include "core/mem.h"
#include "tiers/conf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const installed[] = {"/etc/wafertier/wafertierd.conf",
                                        "/etc/wafertier/loader.conf"};

/* "/srv/cold" and "cold" are meant as files; everything else has a scheme. */
static int url_of(const char *text, char *out, size_t size, struct wt_err *err) {
    char path[512];
    if (strstr(text, "://"))
        return (size_t)snprintf(out, size, "%s", text) < size
                   ? 0
                   : wt_err_set(err, WT_EINVAL, "%s: is too long", text);
    if (text[0] == '/')
        snprintf(path, sizeof path, "%s", "");
    else if (!getcwd(path, sizeof path))
        return wt_err_sys(err, errno, "the working folder cannot be named");
    int n = snprintf(out, size, "file://%s%s", path, path[0] ? "/" : "");
    for (const char *p = text; *p && n >= 0 && (size_t)n < size; p++)
        n += snprintf(out + n, size - (size_t)n,
                      *p == '%' || *p == '?' || *p == '#' || *p == ' ' ? "%%%02X" : "%c",
                      (unsigned char)*p);
    return n >= 0 && (size_t)n < size ? 0 : wt_err_set(err, WT_EINVAL, "%s: is too long", text);
}

static const char *find_config(const char *given) {
    if (given)
        return given;
    const char *env = getenv("WAFERTIER_CONFIG");
    if (env && env[0])
        return env;
    for (size_t i = 0; i < sizeof installed / sizeof installed[0]; i++)
        if (access(installed[i], R_OK) == 0)
            return installed[i];
    return NULL;
}

int wt_target_config(const char *given, struct wt_client_conf *conf, struct wt_err *err) {
    const char *path = find_config(given);
    if (!path)
        return wt_err_set(err, WT_EINVAL,
                          "which configuration? Give --config FILE, or set WAFERTIER_CONFIG");
    return wt_client_conf_load(path, conf, err);
}

static int from_config(const struct wt_target_opts *opts, struct wt_target *t, struct wt_err *err) {
    const char *path = find_config(opts->config);
    if (!path)
        return wt_err_set(err, WT_EINVAL,
                          "which tier? Give a URL, or --config FILE, or set WAFERTIER_CONFIG");
    struct wt_client_conf *conf = wt_calloc(1, sizeof *conf);
    if (!conf)
        return wt_err_set(err, WT_ENOMEM, "no memory for the configuration");
    int rc = wt_client_conf_load(path, conf, err);
    size_t i = 0;
    if (rc == 0) {
        while (opts->tier && i < conf->n_tiers && strcmp(conf->tier[i].name, opts->tier) != 0)
            i++;
        if (i >= conf->n_tiers)
            rc = wt_err_set(err, WT_EINVAL, "%s: has no tier '%s'", path,
                            opts->tier ? opts->tier : "");
    }
    if (rc == 0) {
        t->opts = conf->tier[i];
        snprintf(t->control, sizeof t->control, "%s", conf->control);
    }
    free(conf);
    return rc;
}

static int open_tier(struct wt_target *t, struct wt_err *err) {
    int rc = wt_sync_new(NULL, &t->sync, err);
    if (rc == 0)
        rc = wt_sync_open(t->sync, &t->opts, &t->tier, err);
    if (rc < 0)
        wt_target_close(t);
    return rc;
}

int wt_target_open(const struct wt_target_opts *opts, struct wt_target *target,
                   struct wt_err *err) {
    struct wt_target t = {0};
    int rc;
    if (opts->url) {
        snprintf(t.opts.name, sizeof t.opts.name, "cold");
        rc = url_of(opts->url, t.opts.url, sizeof t.opts.url, err);
    } else {
        rc = from_config(opts, &t, err);
    }
    if (rc < 0)
        return rc;
    t.opts.read_only |= opts->read_only;
    t.from = *opts;
    rc = open_tier(&t, err);
    if (rc == 0)
        *target = t;
    return rc;
}

int wt_target_open_rest(const struct wt_target_opts *opts, struct wt_target *target,
                        struct wt_tier *rest[WT_TIERS_MAX], size_t *n, struct wt_err *err) {
    *n = 0;
    if (opts->url)
        return 0;
    struct wt_client_conf *conf = wt_calloc(1, sizeof *conf);
    if (!conf)
        return wt_err_set(err, WT_ENOMEM, "no memory for the configuration");
    int rc = wt_client_conf_load(find_config(opts->config), conf, err);
    for (size_t i = 1; rc == 0 && i < conf->n_tiers; i++) {
        conf->tier[i].read_only |= opts->read_only;
        rc = wt_sync_open(target->sync, &conf->tier[i], &rest[*n], err);
        *n += rc == 0;
    }
    free(conf);
    return rc;
}

int wt_target_open_leases(const struct wt_target_opts *opts, const char *url,
                          struct wt_target *target, struct wt_err *err) {
    struct wt_client_conf *conf = wt_calloc(1, sizeof *conf);
    struct wt_tier_opts place;
    int rc = conf ? 0 : wt_err_set(err, WT_ENOMEM, "no memory for the configuration");
    if (rc == 0 && !opts->url)
        rc = wt_client_conf_load(find_config(opts->config), conf, err);
    if (rc == 0 && url)
        rc = url_of(url, conf->leases, sizeof conf->leases, err);
    if (rc == 0 && wt_client_conf_leases(conf, &place)) {
        place.read_only = opts->read_only;
        rc = wt_sync_open(target->sync, &place, &target->leases, err);
    }
    free(conf);
    return rc;
}

int wt_target_clone(const struct wt_target *from, struct wt_target *target, struct wt_err *err) {
    struct wt_target t = {.opts = from->opts, .from = from->from};
    memcpy(t.home, from->home, sizeof t.home);
    int rc = open_tier(&t, err);
    if (rc == 0)
        *target = t;
    return rc;
}

void wt_target_close(struct wt_target *target) {
    if (target->sync)
        wt_sync_free(target->sync);
    target->sync = NULL;
    target->tier = target->home_tier = NULL;
}

/* ---- other tiers ---- */

static int find_named(const struct wt_target *t, const char *name, struct wt_tier_opts *opts,
                      struct wt_err *err) {
    const char *path = find_config(t->from.config);
    struct wt_client_conf *conf = wt_calloc(1, sizeof *conf);
    if (!conf)
        return wt_err_set(err, WT_ENOMEM, "no memory for the configuration");
    int rc = path ? wt_client_conf_load(path, conf, err)
                  : wt_err_set(err, WT_EINVAL, "no configuration names tier '%s'", name);
    size_t i = 0;
    while (rc == 0 && i < conf->n_tiers && strcmp(conf->tier[i].name, name) != 0)
        i++;
    if (rc == 0 && i == conf->n_tiers)
        rc = wt_err_set(err, WT_EINVAL, "%s: has no tier '%s'", path, name);
    else if (rc == 0 && i == 0)
        rc = wt_err_set(err, WT_EINVAL, "%s: tier '%s' is the cold one", path, name);
    if (rc == 0)
        *opts = conf->tier[i];
    free(conf);
    return rc;
}

int wt_target_named(struct wt_target *t, const char *name, struct wt_tier **tier,
                    struct wt_tier_opts *opts, struct wt_err *err) {
    int rc = t->from.url ? wt_err_set(err, WT_EINVAL,
                                      "tier '%s' is one of a configuration: give --config FILE "
                                      "instead of a URL",
                                      name)
                         : find_named(t, name, opts, err);
    if (rc < 0)
        return rc;
    opts->read_only |= t->from.read_only;
    return wt_sync_open(t->sync, opts, tier, err);
}

int wt_target_home(struct wt_target *t, struct wt_err *err) {
    struct wt_tier_opts opts;
    if (t->home_tier && strcmp(wt_tier_name(t->home_tier), t->home) == 0)
        return 0;
    int rc = wt_target_named(t, t->home, &t->home_tier, &opts, err);
    return rc < 0 ? wt_err_wrap(err,
                                "the data set was landed in tier '%s' and is not flushed to "
                                "cold yet",
                                t->home)
                  : rc;
}

/* Is the missing object in the data set's home, perhaps? */
static bool at_home(struct wt_target *t, int rc, struct wt_err *err) {
    if (rc != WT_EMISSING || !t->home[0] || wt_target_home(t, err) < 0)
        return false;
    if (err) /* what was missing there is no error */
        *err = (struct wt_err){0};
    return true;
}

int wt_target_read(struct wt_target *t, const char *name, uint64_t max, uint8_t **data, size_t *len,
                   struct wt_err *err) {
    int rc = wt_sync_read(t->sync, t->tier, name, max, data, len, err);
    if (at_home(t, rc, err))
        rc = wt_sync_read(t->sync, t->home_tier, name, max, data, len, err);
    return rc;
}

static int read_manifest(struct wt_target *t, const char *key, struct wt_manifest *m,
                         struct wt_err *err) {
    uint8_t *text = NULL;
    size_t len = 0;
    int rc = wt_sync_read(t->sync, t->tier, key, WT_MANIFEST_MAX, &text, &len, err);
    if (rc == 0 && (rc = wt_manifest_parse((const char *)text, len, m, err)) < 0)
        wt_err_wrap(err, "%s", key);
    free(text);
    return rc;
}

int wt_target_manifest(struct wt_target *t, const char *name, struct wt_manifest *m,
                       struct wt_err *err) {
    char key[WT_OBJECT_NAME];
    int rc = wt_dataset_name_check(name, err);
    if (rc < 0)
        return rc;
    wt_manifest_name(name, key);
    return read_manifest(t, key, m, err);
}

/* parts[i] gets the bytes of part i. */
static int read_parts(struct wt_target *t, const char *name, const struct wt_manifest *m,
                      uint8_t **parts, size_t *lens, struct wt_err *err) {
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < m->n_parts; i++) {
        char key[WT_OBJECT_NAME];
        wt_idx_name(name, m->part[i].hash, key);
        rc = wt_sync_read(t->sync, t->tier, key, (uint64_t)WT_IDX_PART * WT_IDX_RECORD, &parts[i],
                          &lens[i], err);
    }
    return rc;
}

int wt_target_dataset(struct wt_target *t, const char *name, struct wt_dataset *d,
                      struct wt_err *err) {
    char key[WT_OBJECT_NAME];
    int rc = wt_dataset_name_check(name, err);
    if (rc < 0)
        return rc;
    wt_manifest_name(name, key);
    return wt_target_generation(t, name, key, d, err);
}

int wt_target_generation(struct wt_target *t, const char *name, const char *manifest,
                         struct wt_dataset *d, struct wt_err *err) {
    struct wt_manifest m = {0};
    int rc = read_manifest(t, manifest, &m, err);
    if (rc < 0)
        return rc;
    uint32_t n = m.n_parts;
    uint8_t **parts = wt_calloc(n, sizeof *parts);
    size_t *lens = wt_calloc(n, sizeof *lens);
    if (!parts || !lens)
        rc = wt_err_set(err, WT_ENOMEM, "%s: no memory for its index", name);
    if (rc == 0)
        rc = read_parts(t, name, &m, parts, lens, err);
    if (rc == 0)
        rc = wt_dataset_build(&m, (const void *const *)parts, lens, d, err);
    if (rc == 0)
        memcpy(t->home, d->m.home, sizeof t->home);
    for (uint32_t i = 0; parts && i < n; i++)
        free(parts[i]);
    free(parts);
    free(lens);
    wt_manifest_free(&m);
    return rc;
}

int wt_target_range(struct wt_target *t, const char *name, uint64_t off, size_t len, uint8_t **data,
                    struct wt_err *err) {
    uint8_t *buf = malloc(len ? len : 1);
    if (!buf)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory for %zu bytes", name, len);
    struct wt_req req = {.op = WT_OP_GET, .key = name, .off = off, .buf = buf, .len = len};
    int rc = wt_sync_do(t->sync, t->tier, &req);
    if (at_home(t, rc, &req.err)) {
        req = (struct wt_req){.op = WT_OP_GET, .key = name, .off = off, .buf = buf, .len = len};
        rc = wt_sync_do(t->sync, t->home_tier, &req);
    }
    if (rc < 0 && err)
        *err = req.err;
    else if (rc == 0 && req.got != len)
        rc = wt_err_set(err, WT_ECORRUPT, "%s: is cut: %zu of %zu bytes at %llu are there", name,
                        req.got, len, (unsigned long long)off);
    if (rc < 0)
        free(buf);
    else
        *data = buf;
    return rc;
}

int wt_target_index(struct wt_target *t, const struct wt_dataset *d, uint64_t shard,
                    struct wt_shard_blob *blob, struct wt_err *err) {
    struct wt_shard_blob b = {0};
    wt_dataset_rec(d, shard, &b.rec);
    wt_shard_name(d->m.name, shard, &b.rec, b.name);
    b.len = (size_t)(b.rec.size - b.rec.index_off);
    int rc = wt_target_range(t, b.name, b.rec.index_off, b.len, &b.data, err);
    if (rc == 0 && (rc = wt_shard_index_parse(b.data, b.len, b.rec.index_off, b.rec.size,
                                              b.rec.codec, &b.index, err)) < 0) {
        wt_err_wrap(err, "%s", b.name);
        free(b.data);
    }
    if (rc == 0)
        *blob = b;
    return rc;
}

void wt_shard_blob_free(struct wt_shard_blob *blob) {
    wt_shard_index_free(&blob->index);
    free(blob->data);
    *blob = (struct wt_shard_blob){0};
}
