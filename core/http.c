/*
 * A blocking HTTP client over a Unix socket, or TLS, by libcurl; see http.h.
 *
 * Happy path: one easy handle, kept alive, driven through a multi handle, whose poll another thread
 * can wake: that is how wt_http_abort works without waiting for curl's own rhythm. Failures: nobody
 * listens, no right to the socket, no answer in time, an answer over 64 MiB; each with the address
 * in its message.
 */
#include "core/http.h"

#include "core/bytes.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLY_MAX = 64 << 20, POLL_MS = 1000 };

struct wt_http {
    CURL *easy;
    CURLM *multi;
    struct curl_slist *headers;
    atomic_bool aborted;
    char socket[108];        /* "": by TCP and TLS, to */
    char base[256], ca[256]; /* "https://HOST:PORT"; "": the system's authorities */
    char shown[256];         /* the address, for messages */
    char error[CURL_ERROR_SIZE];
};

struct reply {
    struct wt_bytes bytes; /* of a call */
    bool too_long;
    CURL *easy;
    int (*piece)(void *arg, const char *data, size_t len); /* of a stream, else NULL */
    void *arg;
    int ended; /* what `piece` said */
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static bool succeeded(CURL *easy) {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status <= 299;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg) {
    struct reply *r = arg;
    if (r->piece && succeeded(r->easy)) {
        r->ended = r->piece(r->arg, data, n);
        return r->ended == 0 ? n : 0;
    }
    if (n > REPLY_MAX - r->bytes.len) {
        r->too_long = true;
        return 0;
    }
    (void)size; /* always 1 */
    return wt_bytes_add(&r->bytes, data, n) == 0 ? n : 0;
}

/* The first line of the file, as a header. */
static int read_token(const char *path, char header[512], struct wt_err *err) {
    char line[256] = "";
    FILE *f = fopen(path, "re");
    if (!f)
        return wt_err_sys(err, errno, "control_token_file %s cannot be read", path);
    bool got = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    line[strcspn(line, "\r\n")] = '\0';
    if (!got || !line[0])
        return wt_err_set(err, WT_EINVAL, "control_token_file %s holds no token", path);
    snprintf(header, 512, "Authorization: Bearer %s", line);
    explicit_bzero(line, sizeof line);
    return 0;
}

static int add_header(struct wt_http *h, const char *line) {
    struct curl_slist *more = curl_slist_append(h->headers, line);
    if (!more)
        return WT_ENOMEM;
    h->headers = more;
    return 0;
}

static int set_up(struct wt_http *h, const char *token) {
    h->easy = curl_easy_init();
    h->multi = curl_multi_init();
    if (!h->easy || !h->multi || add_header(h, "Content-Type: application/json") < 0 ||
        add_header(h, "Expect:") < 0) /* no "100-continue", which would cost a round trip */
        return WT_ENOMEM;
    return token[0] ? add_header(h, token) : 0;
}

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static int take_address(struct wt_http *h, const struct wt_http_where *w, char token[512],
                        struct wt_err *err) {
    const char *address = w->address;
    snprintf(h->shown, sizeof h->shown, "%s", address);
    if (begins(address, "unix:/")) {
        if (strlen(address + 5) >= sizeof h->socket)
            return wt_err_set(err, WT_EINVAL,
                              "control address \"%.200s\": the path is longer than 107", address);
        snprintf(h->socket, sizeof h->socket, "%s", address + 5);
        return 0;
    }
    if (!begins(address, "https://") || !address[8] || strpbrk(address + 8, "/?#@ "))
        return wt_err_set(err, WT_EINVAL,
                          "control address \"%.200s\" is neither unix:/PATH nor https://HOST:PORT",
                          address);
    if (strlen(address) >= sizeof h->base || (w->ca && strlen(w->ca) >= sizeof h->ca))
        return wt_err_set(err, WT_EINVAL, "control address \"%.200s\" is too long", address);
    if (!w->token_file || !w->token_file[0])
        return wt_err_set(err, WT_EINVAL, "control address \"%s\" needs a control_token_file",
                          address);
    snprintf(h->base, sizeof h->base, "%s", address);
    snprintf(h->ca, sizeof h->ca, "%s", w->ca ? w->ca : "");
    return read_token(w->token_file, token, err);
}

int wt_http_open(const struct wt_http_where *where, struct wt_http **out, struct wt_err *err) {
    char token[512] = "";
    struct wt_http *h = calloc(1, sizeof *h);
    if (!h)
        return wt_err_set(err, WT_ENOMEM, "out of memory");
    int rc = take_address(h, where, token, err);
    if (rc == 0) {
        pthread_once(&curl_once, init_curl);
        if (set_up(h, token) < 0)
            rc = wt_err_set(err, WT_ENOMEM, "out of memory");
    }
    explicit_bzero(token, sizeof token);
    if (rc < 0) {
        wt_http_free(h);
        return rc;
    }
    *out = h;
    return 0;
}

int wt_http_new(const char *address, struct wt_http **out, struct wt_err *err) {
    return wt_http_open(&(struct wt_http_where){.address = address}, out, err);
}

void wt_http_free(struct wt_http *h) {
    if (!h)
        return;
    curl_easy_cleanup(h->easy);
    if (h->multi)
        curl_multi_cleanup(h->multi);
    curl_slist_free_all(h->headers);
    free(h);
}

void wt_http_abort(struct wt_http *h) {
    atomic_store(&h->aborted, true);
    curl_multi_wakeup(h->multi);
}

/* url: of the socket, "http://localhost/..."; by TCP the same path at the other host. */
static int set_place(struct wt_http *h, const char *url) {
    if (!h->base[0])
        return curl_easy_setopt(h->easy, CURLOPT_URL, url) == CURLE_OK &&
                       curl_easy_setopt(h->easy, CURLOPT_UNIX_SOCKET_PATH, h->socket) == CURLE_OK
                   ? 0
                   : WT_ENOMEM;
    char *full = NULL;
    int n = asprintf(&full, "%s%s", h->base, url + strlen("http://localhost"));
    bool ok = n > 0 && curl_easy_setopt(h->easy, CURLOPT_URL, full) == CURLE_OK &&
              (!h->ca[0] || curl_easy_setopt(h->easy, CURLOPT_CAINFO, h->ca) == CURLE_OK);
    if (n > 0)
        free(full);
    return ok ? 0 : WT_ENOMEM;
}

/* Everything is set for each call: a handle remembers the last one. The connection stays. Texts are
 * copied, and without them it would call somebody else: WT_ENOMEM. */
static int prepare(struct wt_http *h, const char *method, const char *url, const char *body,
                   unsigned timeout_ms, struct reply *reply) {
    CURL *c = h->easy;
    curl_easy_reset(c);
    if (set_place(h, url) < 0 || curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, method) != CURLE_OK ||
        curl_easy_setopt(c, CURLOPT_PROXY, "") != CURLE_OK) /* whatever the environment says */
        return WT_ENOMEM;
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, h->headers);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, h->error);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, reply);
    if (body || strcmp(method, "POST") == 0) {
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(body ? strlen(body) : 0));
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, body ? body : "");
    }
    h->error[0] = '\0';
    return 0;
}

static CURLcode result_of(struct wt_http *h) {
    int left;
    CURLMsg *msg;
    while ((msg = curl_multi_info_read(h->multi, &left)))
        if (msg->msg == CURLMSG_DONE)
            return msg->data.result;
    return CURLE_ABORTED_BY_CALLBACK;
}

static CURLcode drive(struct wt_http *h) {
    if (curl_multi_add_handle(h->multi, h->easy) != CURLM_OK)
        return CURLE_OUT_OF_MEMORY;
    int running = 1;
    CURLMcode rc = CURLM_OK;
    while (running && rc == CURLM_OK && !atomic_load(&h->aborted)) {
        rc = curl_multi_perform(h->multi, &running);
        if (rc == CURLM_OK && running)
            rc = curl_multi_poll(h->multi, NULL, 0, POLL_MS, NULL);
    }
    CURLcode result = running ? CURLE_ABORTED_BY_CALLBACK : result_of(h);
    curl_multi_remove_handle(h->multi, h->easy);
    return result;
}

static int explain(struct wt_http *h, CURLcode result, const struct reply *reply,
                   struct wt_err *err) {
    long sys = 0;
    curl_easy_getinfo(h->easy, CURLINFO_OS_ERRNO, &sys);
    if (reply->ended)
        return wt_err_set(err, reply->ended, "%s: %s", h->shown, wt_err_text(reply->ended));
    if (atomic_load(&h->aborted))
        return wt_err_set(err, WT_ECANCELED, "%s: canceled", h->shown);
    if (reply->too_long)
        return wt_err_set(err, WT_ERANGE, "%s: the answer is longer than %d bytes", h->shown,
                          REPLY_MAX);
    switch (result) {
    case CURLE_COULDNT_CONNECT:
        if (sys == EACCES || sys == EPERM)
            return wt_err_set(err, WT_EDENIED, "%s: permission denied; is this user in its group?",
                              h->shown);
        return wt_err_set(err, WT_EDOWN, "%s: nobody listens; is wafertierd running?", h->shown);
    case CURLE_PEER_FAILED_VERIFICATION:
        return wt_err_set(err, WT_EDENIED,
                          "%s: its certificate is not to be trusted (%s); is control_ca right?",
                          h->shown, h->error[0] ? h->error : curl_easy_strerror(result));
    case CURLE_OPERATION_TIMEDOUT:
        return wt_err_set(err, WT_ETIMEDOUT, "%s: no answer in time", h->shown);
    case CURLE_OUT_OF_MEMORY:
    case CURLE_WRITE_ERROR:
        return wt_err_set(err, WT_ENOMEM, "%s: out of memory", h->shown);
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
        return wt_err_set(err, WT_EDOWN, "%s: the connection broke (%s)", h->shown,
                          curl_easy_strerror(result));
    default:
        return wt_err_set(err, WT_EFORMAT, "%s: %s", h->shown,
                          h->error[0] ? h->error : curl_easy_strerror(result));
    }
}

static int perform(struct wt_http *h, long *status, struct reply *reply, struct wt_err *err) {
    CURLcode result = drive(h);
    if (result != CURLE_OK)
        return explain(h, result, reply, err);
    curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, status);
    /* NUL-terminated, also when it is empty. */
    return wt_bytes_add(&reply->bytes, "", 1) < 0 ? wt_err_set(err, WT_ENOMEM, "out of memory") : 0;
}

static int url_of(const char *path, char **out, struct wt_err *err) {
    if (path[0] != '/')
        return wt_err_set(err, WT_EINVAL, "path \"%s\" does not begin with '/'", path);
    size_t size = strlen(path) + sizeof "http://localhost";
    char *url = malloc(size);
    if (!url)
        return wt_err_set(err, WT_ENOMEM, "out of memory");
    snprintf(url, size, "http://localhost%s", path);
    *out = url;
    return 0;
}

int wt_http_call(struct wt_http *h, const char *method, const char *path, const char *body,
                 unsigned timeout_ms, long *status, char **reply, size_t *reply_len,
                 struct wt_err *err) {
    struct reply r = {0};
    long got = 0;
    char *url;
    int rc = url_of(path, &url, err);
    if (rc < 0)
        return rc;
    rc = prepare(h, method, url, body, timeout_ms ? timeout_ms : 1, &r);
    rc = rc < 0 ? wt_err_set(err, rc, "out of memory") : perform(h, &got, &r, err);
    free(url);
    if (rc < 0) {
        wt_bytes_free(&r.bytes);
        return rc;
    }
    *status = got;
    *reply = (char *)r.bytes.data;
    if (reply_len)
        *reply_len = r.bytes.len - 1;
    return 0;
}

int wt_http_stream(struct wt_http *h, const char *path, unsigned silence_ms,
                   int (*piece)(void *arg, const char *data, size_t len), void *arg, long *status,
                   char **refusal, struct wt_err *err) {
    struct reply r = {.easy = h->easy, .piece = piece, .arg = arg};
    char *url;
    int rc = url_of(path, &url, err);
    if (rc < 0)
        return rc;
    rc = prepare(h, "GET", url, NULL, 0, &r); /* 0: no limit for the whole */
    if (rc == 0) {
        curl_easy_setopt(h->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)silence_ms);
        curl_easy_setopt(h->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(h->easy, CURLOPT_LOW_SPEED_TIME, (long)(silence_ms + 999) / 1000);
        rc = perform(h, status, &r, err);
    } else {
        wt_err_set(err, rc, "out of memory");
    }
    free(url);
    *refusal = rc == 0 && !succeeded(h->easy) ? (char *)r.bytes.data : NULL;
    if (!*refusal)
        wt_bytes_free(&r.bytes);
    return rc;
}
