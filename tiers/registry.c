/* The backends that are built in: one explicit table. A new backend adds its line. */
#include "tiers/backend.h"
#include "tiers/file/file.h"
#include "tiers/rados/rados.h"
#include "tiers/redis/redis.h"

const struct wt_backend *const wt_backends[] = {
    &wt_backend_file,
    &wt_backend_rados,
    &wt_backend_redis,
    &wt_backend_rediss,
    &wt_backend_redis_unix,
    &wt_backend_redis_cluster,
    NULL,
};
