/*
 * The URL of a Redis tier, taken apart. Pure but for password_file and password_env, which are read
 * here.
 */
#ifndef WT_TIERS_REDIS_URL_H
#define WT_TIERS_REDIS_URL_H

#include "core/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RDS_HOST_SIZE = 256,
    RDS_SEEDS_MAX = 16,
    RDS_SECRET_SIZE = 512,
    RDS_FILE_SIZE = 256,
    RDS_CONNS_MAX = 32,
    RDS_DEPTH_MAX = 64,
    RDS_DEFAULT_PORT = 6379,
};

struct rds_addr {
    char host[RDS_HOST_SIZE]; /* name, address, or the path of a Unix socket */
    uint16_t port;            /* 0: a Unix socket */
};

struct rds_url {
    bool tls, cluster;
    struct rds_addr seed[RDS_SEEDS_MAX];
    size_t n_seeds;
    char user[RDS_HOST_SIZE];       /* "": the default user */
    char password[RDS_SECRET_SIZE]; /* "": none */
    uint32_t db, connections, depth;
    bool verify;     /* crc32c of whole chunks */
    bool tls_verify; /* the server's certificate */
    char cacert[RDS_FILE_SIZE], cert[RDS_FILE_SIZE], key[RDS_FILE_SIZE];
    char shown[512]; /* the URL without secrets and parameters */
};

/* 0, or WT_EINVAL; messages never contain the password. *out is untouched on failure. */
int rds_url_parse(const char *url, struct rds_url *out, struct wt_err *err);

#endif
