/*
 * Replies: what an error means, where a redirect leads, figures of INFO, and a hiredis reader with
 * bounds. Messages say what to do. A server's own text is repeated, cut and cleaned, but never that
 * of AUTH (hello.c), which may repeat the password.
 */
#include "tiers/redis/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 120, ELEMENTS_MAX = 1 << 20 };

struct verdict_row {
    const char *word; /* the error begins with it */
    enum rds_verdict verdict;
    int code;
    const char *advice;
};

static const struct verdict_row rows[] = {
    {"MOVED ", RDS_MOVED, WT_EDOWN, "the slot has moved too often"},
    {"ASK ", RDS_ASK, WT_EDOWN, "the slot is being moved"},
    {"LOADING", RDS_PASSES, WT_EDOWN,
     "Redis is loading its data set; wait, or switch persistence off"},
    {"CLUSTERDOWN", RDS_PASSES, WT_EDOWN,
     "the cluster lacks a server; bring it back, or set cluster-require-full-coverage no"},
    {"MASTERDOWN", RDS_PASSES, WT_EDOWN, "this replica has lost its primary"},
    {"TRYAGAIN", RDS_PASSES, WT_EDOWN, "a slot is being moved"},
    {"BUSY", RDS_PASSES, WT_EDOWN, "Redis runs a script"},
    {"OOM", RDS_FINAL, WT_EFULL, "Redis is at its maxmemory"},
    {"NOAUTH", RDS_FINAL, WT_EDENIED, "Redis wants a password: give one in the url"},
    {"WRONGPASS", RDS_FINAL, WT_EDENIED, "Redis refused user or password: check them"},
    {"NOPERM", RDS_FINAL, WT_EDENIED,
     "this user lacks a right: see the ACL rules in the operations page"},
    {"DENIED", RDS_FINAL, WT_EDENIED, "Redis runs in protected mode: set a password or bind"},
    {"READONLY", RDS_FINAL, WT_EDENIED, "this server is a read-only replica: name the primary"},
    {"MISCONF", RDS_FINAL, WT_EIO, "Redis cannot write its snapshot: switch persistence off"},
    {"NOREPLICAS", RDS_PASSES, WT_EDOWN, "Redis lacks replicas (min-replicas-to-write)"},
    {"WRONGTYPE", RDS_FINAL, WT_ECORRUPT, "the value is not a string: something else wrote it"},
    {"ERR max number of clients", RDS_FINAL, WT_EDOWN,
     "Redis has no room for more clients: raise maxclients"},
    {"", RDS_FINAL, WT_EIO, "Redis refused the command"},
};

/* Cut, and without anything that a log does not like. */
static void clean(char out[TEXT_MAX], const char *text, size_t len) {
    size_t n = len < TEXT_MAX - 1 ? len : TEXT_MAX - 1;
    for (size_t i = 0; i < n; i++)
        out[i] = text[i] >= ' ' && text[i] < 127 ? text[i] : ' ';
    out[n] = '\0';
}

enum rds_verdict rds_reply_judge(const char *text, size_t len, struct wt_err *err) {
    for (size_t i = 0;; i++) {
        size_t n = strlen(rows[i].word);
        if (len < n || memcmp(text, rows[i].word, n) != 0)
            continue;
        char shown[TEXT_MAX];
        clean(shown, text, len);
        wt_err_set(err, rows[i].code, "%s (%s)", rows[i].advice, shown);
        return rows[i].verdict;
    }
}

int rds_reply_redirect(const char *text, uint16_t *slot, struct rds_addr *to) {
    const char *p = strchr(text, ' ');
    if (!p)
        return WT_EIO;
    char *end;
    unsigned long number = strtoul(p + 1, &end, 10);
    const char *colon = strrchr(text, ':');
    if (*end != ' ' || number >= RDS_SLOTS || !colon || colon < end + 1)
        return WT_EIO;
    unsigned long port = strtoul(colon + 1, NULL, 10);
    size_t len = (size_t)(colon - end - 1);
    if (port == 0 || port > 65535 || len >= sizeof to->host)
        return WT_EIO;
    memcpy(to->host, end + 1, len);
    to->host[len] = '\0'; /* empty: the host that answered */
    to->port = (uint16_t)port;
    *slot = (uint16_t)number;
    return 0;
}

/* ---- a reader with bounds ---- */

/* hiredis reserves memory for as many elements as a server announces. */
static void *bounded_array(const redisReadTask *task, int elements) {
    const redisReplyObjectFunctions *fn = task->privdata;
    return elements > ELEMENTS_MAX ? NULL : fn->createArray(task, elements);
}

redisReader *rds_reader_new(redisReplyObjectFunctions *fn) {
    redisReader *reader = redisReaderCreate();
    if (!reader)
        return NULL;
    *fn = *reader->fn;
    fn->createArray = bounded_array;
    reader->privdata = reader->fn;
    reader->fn = fn;
    return reader;
}

/* ---- INFO ---- */

static const char *find_field(const char *info, const char *name) {
    size_t len = strlen(name);
    for (const char *line = info; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, len) == 0 && line[len] == ':')
            return line + len + 1;
    }
    return NULL;
}

bool rds_info_number(const char *info, const char *name, uint64_t *value) {
    const char *at = find_field(info, name);
    if (!at || *at < '0' || *at > '9')
        return false;
    *value = strtoull(at, NULL, 10);
    return true;
}

bool rds_info_text(const char *info, const char *name, char *out, size_t size) {
    const char *at = find_field(info, name);
    size_t len = at ? strcspn(at, "\r\n") : 0;
    if (!at || len >= size)
        return false;
    memcpy(out, at, len);
    out[len] = '\0';
    return true;
}
