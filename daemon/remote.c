/* Token, certificate and socket; see remote.h. */
#include "daemon/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BACKLOG = 128, FILE_MAX = 1 << 20 };

/* A small file as text, with a NUL; free(). Secret: nobody else may read it. */
static int read_file(const char *path, bool secret, char **text, struct wt_err *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        int no = errno;
        if (fd >= 0)
            close(fd);
        return wt_err_sys(err, no, "%s cannot be read", path);
    }
    char *data = NULL;
    int rc = 0;
    if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
        rc = wt_err_set(err, WT_EINVAL, "%s is no file of a sensible size", path);
    else if (secret && (st.st_mode & 0007))
        rc = wt_err_set(err, WT_EINVAL, "%s can be read by everybody; chmod 640 it", path);
    else if (!(data = calloc(1, (size_t)st.st_size + 1)))
        rc = wt_err_set(err, WT_ENOMEM, "%s: out of memory", path);
    else if (read(fd, data, (size_t)st.st_size) != st.st_size)
        rc = wt_err_set(err, WT_ESYSTEM, "%s cannot be read", path);
    close(fd);
    if (rc < 0)
        free(data);
    else
        *text = data;
    return rc;
}

int wt_token_read(const char *path, char token[WT_TOKEN_MAX], struct wt_err *err) {
    char *text;
    int rc = read_file(path, true, &text, err);
    if (rc < 0)
        return rc;
    size_t len = strcspn(text, "\r\n"), plain = 0;
    while (plain < len && text[plain] > ' ' && text[plain] < 127)
        plain++;
    if (plain != len || len < WT_TOKEN_MIN || len >= WT_TOKEN_MAX)
        rc = wt_err_set(err, WT_EINVAL,
                        "token_file %s: its first line must have %d to %d printable letters, no "
                        "spaces; make one with: openssl rand -hex 32",
                        path, WT_TOKEN_MIN, WT_TOKEN_MAX - 1);
    if (rc == 0) {
        memcpy(token, text, len);
        token[len] = '\0';
    }
    explicit_bzero(text, strlen(text));
    free(text);
    return rc;
}

bool wt_token_matches(const char *token, const char *header) {
    static const char scheme[] = "Bearer ";
    size_t skip = sizeof scheme - 1;
    if (!header || strncasecmp(header, scheme, skip) != 0)
        return false;
    char given[WT_TOKEN_MAX] = "", wanted[WT_TOKEN_MAX] = "";
    size_t len = strlen(header + skip);
    unsigned differ = len >= sizeof given;
    memcpy(given, header + skip, differ ? 0 : len);
    memcpy(wanted, token, strlen(token));
    for (size_t i = 0; i < sizeof given; i++)
        differ |= (unsigned)(given[i] ^ wanted[i]);
    return differ == 0;
}

int wt_pem_read(const char *cert_file, const char *key_file, struct wt_pem *pem,
                struct wt_err *err) {
    struct wt_pem read = {0};
    int rc = read_file(cert_file, false, &read.cert, err);
    if (rc < 0)
        wt_err_wrap(err, "cert_file");
    if (rc == 0) {
        rc = read_file(key_file, true, &read.key, err);
        if (rc < 0)
            wt_err_wrap(err, "key_file");
    }
    if (rc < 0) {
        wt_pem_free(&read);
        return rc;
    }
    *pem = read;
    return 0;
}

struct wt_hash wt_pem_hash(const struct wt_pem *pem) {
    struct wt_hash a = wt_hash(pem->cert, strlen(pem->cert));
    struct wt_hash b = wt_hash(pem->key, strlen(pem->key));
    return (struct wt_hash){.hi = a.hi ^ (b.hi << 1 | b.hi >> 63), .lo = a.lo ^ b.hi ^ b.lo};
}

void wt_pem_free(struct wt_pem *pem) {
    if (pem->key)
        explicit_bzero(pem->key, strlen(pem->key));
    free(pem->key);
    free(pem->cert);
    *pem = (struct wt_pem){0};
}

static int split(const char *address, char host[256], const char **port, struct wt_err *err) {
    const char *colon = strrchr(address, ':');
    size_t len = colon ? (size_t)(colon - address) : 0;
    const char *from = address;
    if (len >= 2 && address[0] == '[' && address[len - 1] == ']') {
        from++;
        len -= 2;
    }
    if (!colon || !colon[1] || len >= 256)
        return wt_err_set(err, WT_EINVAL, "address '%s' must be HOST:PORT, as 0.0.0.0:7443",
                          address);
    memcpy(host, from, len);
    host[len] = '\0';
    *port = colon + 1;
    return 0;
}

static int listen_on(const struct addrinfo *a, int *out) {
    int on = 1;
    int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        int no = errno;
        close(fd);
        return no;
    }
    *out = fd;
    return 0;
}

int wt_listen_tcp(const char *address, int *fd, struct wt_err *err) {
    char host[256];
    const char *port = NULL;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list;
    int rc = split(address, host, &port, err);
    if (rc < 0)
        return rc;
    int no = getaddrinfo(host[0] ? host : NULL, port, &hints, &list);
    if (no)
        return wt_err_set(err, WT_EINVAL, "address '%s': %s", address, gai_strerror(no));
    no = EADDRNOTAVAIL;
    for (const struct addrinfo *a = list; a && no; a = a->ai_next)
        no = listen_on(a, fd);
    freeaddrinfo(list);
    return no ? wt_err_sys(err, no, "address '%s' cannot be listened on", address) : 0;
}
