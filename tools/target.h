/*
 * The tier that a verb reads or writes, by --to/--from URL or by a configuration, and blocking
 * access to the data sets in it.
 */
#ifndef WT_TOOLS_TARGET_H
#define WT_TOOLS_TARGET_H

#include "core/dataset.h"
#include "tiers/conf.h"
#include "tiers/sync.h"

#include <stdbool.h>

struct wt_target_opts {
    const char *url;    /* "file:///srv/cold", or a path */
    const char *config; /* both NULL: $WAFERTIER_CONFIG, else the installed configuration */
    const char *tier;   /* of the configuration; NULL: the first, which is the cold one */
    bool read_only;
};

struct wt_target {
    struct wt_sync *sync;
    struct wt_tier *tier;
    struct wt_tier *leases;     /* where loaders keep theirs when that is not `tier`, else NULL */
    struct wt_tier_opts opts;   /* as opened: for further threads */
    char control[256];          /* the daemon's socket, "" for none */
    struct wt_target_opts from; /* as given: for further tiers */
    char home[WT_HOME_NAME];    /* of the data set read last: where what cold lacks may be, or "" */
    struct wt_tier *home_tier;  /* that tier, once it was needed */
};
/* The configuration that `given`, $WAFERTIER_CONFIG or the installation names. */
int wt_target_config(const char *given, struct wt_client_conf *conf, struct wt_err *err);
int wt_target_open(const struct wt_target_opts *opts, struct wt_target *target, struct wt_err *err);
/* Opens the tiers after the first of the same configuration beside it, on the same thread: *n of
 * them. None with a URL. */
int wt_target_open_rest(const struct wt_target_opts *opts, struct wt_target *target,
                        struct wt_tier *rest[WT_TIERS_MAX], size_t *n, struct wt_err *err);
/* Opens the place for leases: `url`, or what the same configuration names; it may name none. */
int wt_target_open_leases(const struct wt_target_opts *opts, const char *url,
                          struct wt_target *target, struct wt_err *err);
/* One more connection to the same tier, for another thread. */
int wt_target_clone(const struct wt_target *from, struct wt_target *target, struct wt_err *err);
void wt_target_close(struct wt_target *target);

/* The data set's newest generation: manifest and shards.idx, checked. */
int wt_target_dataset(struct wt_target *t, const char *name, struct wt_dataset *d,
                      struct wt_err *err);
/* A generation by the name of its manifest (a retired one). */
int wt_target_generation(struct wt_target *t, const char *name, const char *manifest,
                         struct wt_dataset *d, struct wt_err *err);
/* The manifest alone; free with wt_manifest_free. */
int wt_target_manifest(struct wt_target *t, const char *name, struct wt_manifest *m,
                       struct wt_err *err);

struct wt_shard_blob { /* a shard, or its tail, in memory */
    char name[WT_OBJECT_NAME];
    struct wt_shard_rec rec;
    struct wt_shard_index index;
    uint8_t *data; /* whole object, or its tail */
    size_t len;
};
/* Reads only the tail and parses the index. */
int wt_target_index(struct wt_target *t, const struct wt_dataset *d, uint64_t shard,
                    struct wt_shard_blob *blob, struct wt_err *err);
/* Opens a tier of the same configuration by its name, on the same thread. *opts: as configured. */
int wt_target_named(struct wt_target *t, const char *name, struct wt_tier **tier,
                    struct wt_tier_opts *opts, struct wt_err *err);
/* The tier where data set `m` was landed. WT_EINVAL: it cannot be told from what was given. */
int wt_target_home(struct wt_target *t, struct wt_err *err);
/* Reads an object whole, out of the home when the tier lacks it. */
int wt_target_read(struct wt_target *t, const char *name, uint64_t max, uint8_t **data, size_t *len,
                   struct wt_err *err);
/* The same of a part: [off, off + len) of an object into *data (free()). */
int wt_target_range(struct wt_target *t, const char *name, uint64_t off, size_t len, uint8_t **data,
                    struct wt_err *err);
void wt_shard_blob_free(struct wt_shard_blob *blob);

/* Options that verbs share. */
#define WT_TARGET_ARGS(struct_type, member, url_name)                                              \
    {.name = url_name,                                                                             \
     .letter = 'u',                                                                                \
     .type = WT_ARG_TEXT,                                                                          \
     .offset = offsetof(struct_type, member.url),                                                  \
     .value = "URL",                                                                               \
     .help = "the tier, file:///PATH or a path"},                                                  \
        {.name = "config",                                                                         \
         .letter = 'c',                                                                            \
         .type = WT_ARG_TEXT,                                                                      \
         .offset = offsetof(struct_type, member.config),                                           \
         .value = "FILE",                                                                          \
         .help = "take the tiers from this configuration; without it and without a URL: "          \
                 "$WAFERTIER_CONFIG, else the "                                                    \
                 "installed one"},                                                                 \
    {                                                                                              \
        .name = "tier", .letter = 't', .type = WT_ARG_TEXT,                                        \
        .offset = offsetof(struct_type, member.tier), .value = "NAME",                             \
        .help = "which tier of the configuration; without it the first, the cold one"              \
    }

#endif
