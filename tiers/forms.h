/*
 * The forms of tier URLs, one line a backend: for its `help`, for the help of the option `url`, and
 * so for the sample configurations, which a test compares with them.
 */
#ifndef WT_TIERS_FORMS_H
#define WT_TIERS_FORMS_H

#define WT_FORM_FILE          "file:///PATH[?bounce=1][&map=safe|always|never][&mount=required]"
#define WT_FORM_RADOS         "rados://POOL[/NAMESPACE][?conf=FILE&id=NAME&cluster=NAME&keyring=FILE]"
#define WT_FORM_REDIS         "redis://[USER:PASSWORD@]HOST[:PORT][/DB]"
#define WT_FORM_REDISS        "rediss://[USER:PASSWORD@]HOST[:PORT][/DB]"
#define WT_FORM_REDIS_UNIX    "redis+unix:///PATH[?db=N]"
#define WT_FORM_REDIS_CLUSTER "redis+cluster://HOST:PORT,HOST:PORT,..."

#define WT_FORM_HELP                                                                               \
    "where the tier is: " WT_FORM_FILE " (a folder: a disk, CephFS, memory), " WT_FORM_RADOS       \
    " (a Ceph pool), " WT_FORM_REDIS ", " WT_FORM_REDISS " (TLS), " WT_FORM_REDIS_UNIX             \
    ", " WT_FORM_REDIS_CLUSTER " (a cluster). For Redis also user=NAME, password_file=FILE, "      \
    "password_env=NAME, connections=, cacert= and more; see docs/operations-ceph.md and "          \
    "docs/operations-redis.md"

#endif
