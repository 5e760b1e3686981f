/*
 * Checks of a sample before a writer takes it in, so that a refused sample leaves the writer as it
 * was.
 */
#ifndef WT_CORE_SHARD_CHECK_H
#define WT_CORE_SHARD_CHECK_H

#include "core/shard.h"

/* 0, WT_ENOMEM, or WT_EINVAL with a message that names the key and what is wrong with it. */
int wt_sample_check(const struct wt_sample_in *sample, const struct wt_shard_opts *opts,
                    struct wt_err *err);
/* Lower-case letters, digits and '_' only, shorter than WT_FIELD_NAME; "" is the image. */
bool wt_field_name_legal(const char *name);

#endif
