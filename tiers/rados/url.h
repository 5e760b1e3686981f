/*
 * rados://POOL[/NAMESPACE][?conf=FILE&id=NAME&cluster=NAME&keyring=FILE]
 *
 * Namespace and options are percent-decoded. What is not given is librados' own default:
 * /etc/ceph/CLUSTER.conf (or CEPH_CONF), client.admin, cluster "ceph". No secret ever stands in the
 * URL.
 */
#ifndef WT_TIERS_RADOS_URL_H
#define WT_TIERS_RADOS_URL_H

#include "core/err.h"

enum { RADOS_NAME_SIZE = 128, RADOS_PATH_SIZE = 400 };

struct rados_url {
    char pool[RADOS_NAME_SIZE];
    char nspace[RADOS_NAME_SIZE];  /* "": the default one */
    char id[RADOS_NAME_SIZE];      /* "admin": client.admin */
    char cluster[RADOS_NAME_SIZE]; /* "ceph" */
    char conf[RADOS_PATH_SIZE];    /* "": where librados looks by itself */
    char keyring[RADOS_PATH_SIZE]; /* "": what the configuration says */
};

/* 0, or WT_EINVAL with what is wrong with it. */
int rados_url_parse(const char *text, struct rados_url *url, struct wt_err *err);

#endif
