/*
 * Parses redis URLs; see url.h. Happy path: scheme, authority (or path), database, parameters, then
 * the password's source. Failures: WT_EINVAL with the part that is wrong. What stands before an '@'
 * is never printed: it may hold the password.
 */
#include "tiers/redis/url.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct scheme_row {
    const char *prefix;
    bool tls, cluster, local;
};

static const struct scheme_row schemes[] = {
    {"redis://", false, false, false},
    {"rediss://", true, false, false},
    {"redis+unix://", false, false, true},
    {"redis+cluster://", false, true, false},
};

static int hex_value(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Percent-decodes [from, end) into out[size]. `what` stands for the value in messages. */
static int decode(const char *from, const char *end, char *out, size_t size, const char *what,
                  struct wt_err *err) {
    size_t n = 0;
    while (from < end) {
        char c = *from++;
        if (c == '%') {
            int hi = end - from >= 2 ? hex_value(from[0]) : -1;
            int lo = hi >= 0 ? hex_value(from[1]) : -1;
            if (lo < 0 || (hi == 0 && lo == 0))
                return wt_err_set(err, WT_EINVAL, "%s has a bad %%-escape", what);
            c = (char)(hi * 16 + lo);
            from += 2;
        }
        if (n + 1 >= size)
            return wt_err_set(err, WT_EINVAL, "%s is longer than %zu bytes", what, size - 1);
        out[n++] = c;
    }
    out[n] = '\0';
    return 0;
}

static int parse_number(const char *from, const char *end, uint32_t min, uint32_t max,
                        const char *what, uint32_t *out, struct wt_err *err) {
    uint32_t v = 0;
    bool good = from < end && end - from <= 9;
    for (const char *p = from; good && p < end; p++) {
        good = *p >= '0' && *p <= '9';
        v = v * 10 + (uint32_t)(*p - '0');
    }
    if (!good || v < min || v > max)
        return wt_err_set(err, WT_EINVAL, "%s must be a number from %u to %u", what, min, max);
    *out = v;
    return 0;
}

/* "host", "host:port", "[v6]:port" */
static int parse_addr(const char *from, const char *end, struct rds_addr *addr,
                      struct wt_err *err) {
    const char *host_end = end, *port = NULL;
    if (from < end && *from == '[') {
        const char *close = memchr(from, ']', (size_t)(end - from));
        if (!close || (close + 1 < end && close[1] != ':'))
            return wt_err_set(err, WT_EINVAL, "an IPv6 address is written [ADDRESS]:PORT");
        from++;
        host_end = close;
        if (close + 1 < end)
            port = close + 2;
    } else {
        const char *colon = memchr(from, ':', (size_t)(end - from));
        if (colon) {
            host_end = colon;
            port = colon + 1;
        }
    }
    uint32_t number = RDS_DEFAULT_PORT;
    if (port) {
        int rc = parse_number(port, end, 1, 65535, "the port", &number, err);
        if (rc < 0)
            return rc;
    }
    if (host_end == from)
        return wt_err_set(err, WT_EINVAL, "the host is missing");
    addr->port = (uint16_t)number;
    return decode(from, host_end, addr->host, sizeof addr->host, "the host", err);
}

static int parse_hosts(const char *from, const char *end, struct rds_url *u, struct wt_err *err) {
    for (;;) {
        const char *comma = memchr(from, ',', (size_t)(end - from));
        const char *stop = comma ? comma : end;
        if (comma && !u->cluster)
            return wt_err_set(err, WT_EINVAL,
                              "one host only; several are for redis+cluster://HOST,HOST");
        if (u->n_seeds == RDS_SEEDS_MAX)
            return wt_err_set(err, WT_EINVAL, "more than %d hosts", RDS_SEEDS_MAX);
        int rc = parse_addr(from, stop, &u->seed[u->n_seeds], err);
        if (rc < 0)
            return rc;
        u->n_seeds++;
        if (!comma)
            return 0;
        from = comma + 1;
    }
}

/* "user:password@host:port/db" up to `end` */
static int parse_authority(const char *from, const char *end, struct rds_url *u,
                           struct wt_err *err) {
    const char *slash = memchr(from, '/', (size_t)(end - from));
    const char *host_end = slash ? slash : end;
    const char *at = memrchr(from, '@', (size_t)(host_end - from));
    int rc = 0;
    if (at) {
        const char *colon = memchr(from, ':', (size_t)(at - from));
        rc = decode(from, colon ? colon : at, u->user, sizeof u->user, "the user", err);
        if (rc == 0 && colon)
            rc = decode(colon + 1, at, u->password, sizeof u->password, "the password", err);
        from = at + 1;
    }
    if (rc == 0)
        rc = parse_hosts(from, host_end, u, err);
    if (rc == 0 && slash && slash + 1 < end)
        rc = parse_number(slash + 1, end, 0, 65535, "the database", &u->db, err);
    return rc;
}

static int parse_path(const char *from, const char *end, struct rds_url *u, struct wt_err *err) {
    if (from == end || *from != '/')
        return wt_err_set(err, WT_EINVAL, "write redis+unix:///PATH with an absolute path");
    u->n_seeds = 1;
    u->seed[0].port = 0;
    return decode(from, end, u->seed[0].host, 108, "the socket's path", err);
}

static int read_password_file(const char *path, struct rds_url *u, struct wt_err *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        wt_err_sys(err, errno, "cannot read password_file %s", path);
        return err ? (err->code = WT_EINVAL) : WT_EINVAL;
    }
    ssize_t n = read(fd, u->password, sizeof u->password);
    close(fd);
    if (n < 0 || (size_t)n >= sizeof u->password)
        return wt_err_set(err, WT_EINVAL, "password_file %s cannot be read, or is over %zu bytes",
                          path, sizeof u->password - 1);
    u->password[n] = '\0';
    u->password[strcspn(u->password, "\r\n")] = '\0';
    if (!u->password[0])
        return wt_err_set(err, WT_EINVAL, "password_file %s is empty", path);
    return 0;
}

static int read_password_env(const char *name, struct rds_url *u, struct wt_err *err) {
    const char *value = getenv(name);
    if (!value || !*value)
        return wt_err_set(err, WT_EINVAL, "password_env: the variable %s is not set", name);
    if (strlen(value) >= sizeof u->password)
        return wt_err_set(err, WT_EINVAL, "password_env: %s is over %zu bytes", name,
                          sizeof u->password - 1);
    snprintf(u->password, sizeof u->password, "%s", value);
    return 0;
}

enum param_type { PARAM_NUMBER, PARAM_BOOL, PARAM_TEXT, PARAM_PW_FILE, PARAM_PW_ENV };

struct param_row {
    const char *name;
    enum param_type type;
    size_t offset, size;
    uint32_t min, max;
};

#define AT(field) offsetof(struct rds_url, field), sizeof(((struct rds_url *)0)->field)
static const struct param_row params[] = {
    {"user", PARAM_TEXT, AT(user), 0, 0},
    {"password_file", PARAM_PW_FILE, AT(password), 0, 0},
    {"password_env", PARAM_PW_ENV, AT(password), 0, 0},
    {"db", PARAM_NUMBER, AT(db), 0, 65535},
    {"connections", PARAM_NUMBER, AT(connections), 1, RDS_CONNS_MAX},
    {"depth", PARAM_NUMBER, AT(depth), 1, RDS_DEPTH_MAX},
    {"verify", PARAM_BOOL, AT(verify), 0, 1},
    {"tls_verify", PARAM_BOOL, AT(tls_verify), 0, 1},
    {"tls", PARAM_BOOL, AT(tls), 0, 1},
    {"cacert", PARAM_TEXT, AT(cacert), 0, 0},
    {"cert", PARAM_TEXT, AT(cert), 0, 0},
    {"key", PARAM_TEXT, AT(key), 0, 0},
};
#undef AT

static int set_param(const struct param_row *row, const char *from, const char *end,
                     struct rds_url *u, struct wt_err *err) {
    char text[RDS_FILE_SIZE];
    uint32_t number = 0;
    char *field = (char *)u + row->offset;
    int rc;
    switch (row->type) {
    case PARAM_TEXT:
        return decode(from, end, field, row->size, row->name, err);
    case PARAM_PW_FILE:
    case PARAM_PW_ENV:
        rc = decode(from, end, text, sizeof text, row->name, err);
        if (rc < 0)
            return rc;
        return row->type == PARAM_PW_FILE ? read_password_file(text, u, err)
                                          : read_password_env(text, u, err);
    default:
        rc = parse_number(from, end, row->min, row->max, row->name, &number, err);
        if (rc == 0 && row->type == PARAM_BOOL)
            *(bool *)field = number != 0;
        else if (rc == 0)
            memcpy(field, &number, sizeof number);
        return rc;
    }
}

/* Shown only where it looks like a name: a '?' that belongs to a password gets here too. */
static int unknown_param(const char *name, size_t len, struct wt_err *err) {
    bool plain = len < 40 && strspn(name, "abcdefghijklmnopqrstuvwxyz_") >= len;
    return wt_err_set(err, WT_EINVAL,
                      "unknown or empty parameter%s%.*s; there are user, password_file, "
                      "password_env, db, connections, depth, verify, cacert, cert, key, "
                      "tls_verify, tls",
                      plain ? " " : "", plain ? (int)len : 0, name);
}

static int parse_params(const char *from, struct rds_url *u, struct wt_err *err) {
    while (from && *from) {
        size_t len = strcspn(from, "&");
        const char *end = from + len;
        const char *eq = memchr(from, '=', len);
        size_t name_len = eq ? (size_t)(eq - from) : len;
        const struct param_row *row = NULL;
        for (size_t i = 0; i < sizeof params / sizeof params[0]; i++)
            if (strlen(params[i].name) == name_len && memcmp(from, params[i].name, name_len) == 0)
                row = &params[i];
        if (!row || !eq)
            return unknown_param(from, name_len, err);
        int rc = set_param(row, eq + 1, end, u, err);
        if (rc < 0)
            return rc;
        from = *end ? end + 1 : NULL;
    }
    return 0;
}

static int check_sense(const struct scheme_row *s, const struct rds_url *u, struct wt_err *err) {
    if (u->cluster && u->db)
        return wt_err_set(err, WT_EINVAL, "a cluster has database 0 only");
    if (u->tls && s->local)
        return wt_err_set(err, WT_EINVAL, "tls is not for Unix sockets");
    if (u->tls && !s->tls && !s->cluster)
        return wt_err_set(err, WT_EINVAL, "for TLS write rediss://");
    if (!u->tls && (u->cacert[0] || u->cert[0] || u->key[0] || !u->tls_verify))
        return wt_err_set(err, WT_EINVAL,
                          "cacert, cert, key and tls_verify are for TLS: write rediss://, or "
                          "redis+cluster://...?tls=1");
    if (!u->cert[0] != !u->key[0])
        return wt_err_set(err, WT_EINVAL, "cert and key belong together");
    if (u->user[0] && !u->password[0])
        return wt_err_set(err, WT_EINVAL,
                          "a user without a password: add one, password_file or password_env");
    return 0;
}

static void make_shown(const struct scheme_row *s, struct rds_url *u) {
    size_t used = (size_t)snprintf(u->shown, sizeof u->shown, "%s%.64s%s", s->prefix, u->user,
                                   u->user[0] ? "@" : "");
    for (size_t i = 0; i < u->n_seeds && used < sizeof u->shown; i++) {
        const struct rds_addr *a = &u->seed[i];
        bool v6 = a->port && strchr(a->host, ':');
        used += (size_t)snprintf(u->shown + used, sizeof u->shown - used, "%s%s%s%s", i ? "," : "",
                                 v6 ? "[" : "", a->host, v6 ? "]" : "");
        if (a->port && used < sizeof u->shown)
            used += (size_t)snprintf(u->shown + used, sizeof u->shown - used, ":%u", a->port);
    }
    if (u->db && used < sizeof u->shown)
        snprintf(u->shown + used, sizeof u->shown - used, "%s%u", s->local ? "?db=" : "/", u->db);
}

int rds_url_parse(const char *url, struct rds_url *out, struct wt_err *err) {
    const struct scheme_row *s = NULL;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (strncmp(url, schemes[i].prefix, strlen(schemes[i].prefix)) == 0)
            s = &schemes[i];
    if (!s)
        return wt_err_set(err, WT_EINVAL,
                          "not a redis url; write redis://HOST:PORT, "
                          "rediss://HOST:PORT, redis+unix:///PATH or "
                          "redis+cluster://HOST:PORT,HOST:PORT");
    struct rds_url u = {
        .tls = s->tls,
        .cluster = s->cluster,
        .connections = 2,
        .depth = 2,
        .tls_verify = true,
    };
    const char *from = url + strlen(s->prefix);
    const char *end = from + strcspn(from, "?");
    int rc = s->local ? parse_path(from, end, &u, err) : parse_authority(from, end, &u, err);
    if (rc == 0)
        rc = parse_params(*end ? end + 1 : NULL, &u, err);
    if (rc == 0)
        rc = check_sense(s, &u, err);
    if (rc == 0) {
        make_shown(s, &u);
        *out = u;
    }
    explicit_bzero(u.password, sizeof u.password);
    return rc < 0 ? (wt_err_wrap(err, "redis url"), rc) : 0;
}
