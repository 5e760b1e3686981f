/*
 * What the listener for other hosts needs: a TCP socket, certificate and key, a token. Nothing
 * here does TLS; the HTTP server does.
 *
 * Failures name the file or address and what to do: a token that everybody can read is refused.
 */
#ifndef WT_DAEMON_REMOTE_H
#define WT_DAEMON_REMOTE_H

#include "core/err.h"
#include "core/sum.h"

#include <stdbool.h>

enum { WT_TOKEN_MIN = 16, WT_TOKEN_MAX = 256 };

/* The first line of the file: WT_TOKEN_MIN printable bytes or more. */
int wt_token_read(const char *path, char token[WT_TOKEN_MAX], struct wt_err *err);
/* header: of Authorization, may be NULL. Takes as long whatever is wrong. */
bool wt_token_matches(const char *token, const char *header);

struct wt_pem {
    char *cert, *key;
};
int wt_pem_read(const char *cert_file, const char *key_file, struct wt_pem *pem,
                struct wt_err *err);
struct wt_hash wt_pem_hash(const struct wt_pem *pem);
void wt_pem_free(struct wt_pem *pem); /* wipes the key */

/* "HOST:PORT", "[::1]:7443", ":7443" (every address). */
int wt_listen_tcp(const char *address, int *fd, struct wt_err *err);

#endif
