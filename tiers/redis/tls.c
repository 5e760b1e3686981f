/*
 * TLS by OpenSSL on a socket that does not block. Happy path: handshake, then reads straight into
 * the caller's memory. Failures: a certificate that does not verify names the reason and what to
 * set. Our own BIO sends with MSG_NOSIGNAL: a library must not raise SIGPIPE, nor touch its
 * handler.
 */
#include "tiers/redis/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { READ_AHEAD = 64 << 10 };

struct rds_tls_ctx {
    SSL_CTX *ssl;
    BIO_METHOD *bio;
};

struct rds_tls {
    SSL *ssl;
    int fd;
    bool wants_write;
};

/* ---- the socket ---- */

static int bio_read(BIO *bio, char *buf, int len) {
    struct rds_tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t n = recv(tls->fd, buf, (size_t)len, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    return (int)n;
}

static int bio_write(BIO *bio, const char *buf, int len) {
    struct rds_tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t n = send(tls->fd, buf, (size_t)len, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)n;
}

static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr) {
    (void)bio;
    (void)num;
    (void)ptr;
    return cmd == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *bio) {
    BIO_set_init(bio, 1);
    return 1;
}

/* ---- context ---- */

static int openssl_error(struct wt_err *err, int code, const char *what, const char *path) {
    char text[160] = "unknown reason";
    unsigned long e = ERR_peek_last_error();
    if (e)
        ERR_error_string_n(e, text, sizeof text);
    ERR_clear_error();
    return wt_err_set(err, code, "%s%s%s: %s", what, *path ? " " : "", path, text);
}

static int load_trust(SSL_CTX *ssl, const struct rds_url *url, struct wt_err *err) {
    if (!url->cacert[0])
        return SSL_CTX_set_default_verify_paths(ssl) == 1
                   ? 0
                   : openssl_error(err, WT_EINVAL, "cannot load the system's certificates", "");
    struct stat st;
    bool folder = stat(url->cacert, &st) == 0 && S_ISDIR(st.st_mode);
    int ok = SSL_CTX_load_verify_locations(ssl, folder ? NULL : url->cacert,
                                           folder ? url->cacert : NULL);
    return ok == 1 ? 0 : openssl_error(err, WT_EINVAL, "cannot load cacert", url->cacert);
}

static int load_identity(SSL_CTX *ssl, const struct rds_url *url, struct wt_err *err) {
    if (!url->cert[0])
        return 0;
    if (SSL_CTX_use_certificate_chain_file(ssl, url->cert) != 1)
        return openssl_error(err, WT_EINVAL, "cannot load cert", url->cert);
    if (SSL_CTX_use_PrivateKey_file(ssl, url->key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(ssl) != 1)
        return openssl_error(err, WT_EINVAL, "cannot load key, or it does not fit cert:", url->key);
    return 0;
}

static BIO_METHOD *new_method(void) {
    BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "wafertier socket");
    if (!m)
        return NULL;
    BIO_meth_set_read(m, bio_read);
    BIO_meth_set_write(m, bio_write);
    BIO_meth_set_ctrl(m, bio_ctrl);
    BIO_meth_set_create(m, bio_create);
    return m;
}

int rds_tls_ctx_new(const struct rds_url *url, struct rds_tls_ctx **out, struct wt_err *err) {
    struct rds_tls_ctx *ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return wt_err_set(err, WT_ENOMEM, "out of memory for TLS");
    ctx->ssl = SSL_CTX_new(TLS_client_method());
    ctx->bio = new_method();
    int rc = ctx->ssl && ctx->bio ? 0 : openssl_error(err, WT_ENOMEM, "cannot start TLS", "");
    if (rc == 0) {
        SSL_CTX_set_min_proto_version(ctx->ssl, TLS1_2_VERSION);
        SSL_CTX_set_mode(ctx->ssl,
                         SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        SSL_CTX_set_verify(ctx->ssl, url->tls_verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
        SSL_CTX_set_read_ahead(ctx->ssl, 1);
        SSL_CTX_set_default_read_buffer_len(ctx->ssl, READ_AHEAD);
        rc = load_trust(ctx->ssl, url, err);
    }
    if (rc == 0)
        rc = load_identity(ctx->ssl, url, err);
    if (rc < 0) {
        rds_tls_ctx_free(ctx);
        return rc;
    }
    *out = ctx;
    return 0;
}

void rds_tls_ctx_free(struct rds_tls_ctx *ctx) {
    if (!ctx)
        return;
    SSL_CTX_free(ctx->ssl);
    BIO_meth_free(ctx->bio);
    free(ctx);
}

/* ---- a connection ---- */

static bool expect_host(SSL *ssl, const char *host) {
    struct in6_addr any;
    if (inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

struct rds_tls *rds_tls_new(struct rds_tls_ctx *ctx, int fd, const char *host) {
    struct rds_tls *tls = calloc(1, sizeof *tls);
    if (!tls)
        return NULL;
    tls->fd = fd;
    tls->ssl = SSL_new(ctx->ssl);
    BIO *bio = tls->ssl ? BIO_new(ctx->bio) : NULL;
    if (!bio || !expect_host(tls->ssl, host)) {
        BIO_free(bio);
        rds_tls_free(tls);
        return NULL;
    }
    BIO_set_data(bio, tls);
    SSL_set_bio(tls->ssl, bio, bio);
    SSL_set_connect_state(tls->ssl);
    return tls;
}

void rds_tls_free(struct rds_tls *tls) {
    if (!tls)
        return;
    SSL_free(tls->ssl);
    free(tls);
}

static int handshake_error(struct rds_tls *tls, int sys, struct wt_err *err) {
    long verdict = SSL_get_verify_result(tls->ssl);
    if (verdict != X509_V_OK && SSL_get_verify_mode(tls->ssl) != SSL_VERIFY_NONE) {
        ERR_clear_error();
        return wt_err_set(err, WT_EDENIED,
                          "the server's certificate is not accepted: %s; set cacert to the CA that "
                          "signed it, and use the name that stands in it",
                          X509_verify_cert_error_string(verdict));
    }
    if (ERR_peek_last_error())
        return openssl_error(err, WT_EDENIED, "TLS handshake failed", "");
    if (sys)
        return wt_err_sys(err, sys, "TLS handshake failed");
    return wt_err_set(err, WT_EDOWN,
                      "the server ended the TLS handshake (does its port speak TLS?)");
}

int rds_tls_handshake(struct rds_tls *tls, struct wt_err *err) {
    ERR_clear_error();
    errno = 0;
    int rc = SSL_do_handshake(tls->ssl);
    int sys = errno;
    if (rc == 1) {
        tls->wants_write = false;
        return 1;
    }
    int why = SSL_get_error(tls->ssl, rc);
    tls->wants_write = why == SSL_ERROR_WANT_WRITE;
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        return 0;
    return handshake_error(tls, sys, err);
}

static ssize_t result_of(struct rds_tls *tls, int ok, size_t n, int sys) {
    tls->wants_write = false;
    if (ok == 1)
        return (ssize_t)n;
    int why = SSL_get_error(tls->ssl, ok);
    ERR_clear_error();
    switch (why) {
    case SSL_ERROR_WANT_READ:
        return -EAGAIN;
    case SSL_ERROR_WANT_WRITE:
        tls->wants_write = true;
        return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        return sys ? -sys : 0;
    default:
        return -EPROTO;
    }
}

ssize_t rds_tls_read(struct rds_tls *tls, void *buf, size_t len) {
    size_t n = 0;
    ERR_clear_error();
    errno = 0;
    int ok = SSL_read_ex(tls->ssl, buf, len, &n);
    return result_of(tls, ok, n, errno);
}

ssize_t rds_tls_write(struct rds_tls *tls, const void *buf, size_t len) {
    size_t n = 0;
    ERR_clear_error();
    errno = 0;
    int ok = SSL_write_ex(tls->ssl, buf, len, &n);
    return result_of(tls, ok, n, errno);
}

bool rds_tls_wants_write(const struct rds_tls *tls) {
    return tls->wants_write;
}
