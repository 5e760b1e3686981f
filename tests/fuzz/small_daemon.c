/* See small_daemon.h. */
#include "small_daemon.h"

#include "core/mem.h"
#include "tools/publish.h"

#include "fuzz.h"
#include "shard_use.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { START_MS = 20000, CALL_MS = 10000, ANSWER_MAX = 1 << 20 };

/* ---- the data set ---- */

static void publish(const char *root) {
    char url[300], class_name[] = "scratch", *classes[] = {class_name};
    struct wt_target target = {0};
    struct wt_err err = {0};
    struct wt_publish p = {0};
    snprintf(url, sizeof url, "%s/cold", root);
    FUZZ_CHECK(wt_target_open(&(struct wt_target_opts){.url = url}, &target, &err) == 0);
    FUZZ_CHECK(wt_publish_begin(&p, &target, "wafers", false, &err) == 0);
    for (int i = 0; i < 2; i++) {
        struct wt_shard_out out;
        enum wt_codec codec = i ? WT_CODEC_ZSTD : WT_CODEC_TAR;
        fuzz_make_shard(codec, &out);
        FUZZ_CHECK(wt_publish_shard(&p, codec, &out, &err) == 0);
        wt_shard_out_free(&out);
    }
    uint64_t count[] = {0};
    struct wt_manifest m = {.label_kind = WT_LABEL_MULTIHOT,
                            .lots = 1,
                            .wafers = 2,
                            .labelled = 4,
                            .n_fields = 1,
                            .classes = classes,
                            .n_classes = 1,
                            .class_count = count,
                            .field = {{.name = "", .shape = {WT_DTYPE_U16, 2, {3, 4}}}}};
    if (wt_publish_commit(&p, &m, &err) < 0)
        fprintf(stderr, "%s\n", err.text);
    FUZZ_CHECK(err.code == 0);
    free(m.part);
    wt_publish_end(&p);
    wt_target_close(&target);
}

/* ---- start and stop ---- */

static void configure(struct small_daemon *s, const char *root, struct wt_daemon_conf *conf) {
    static const char *const folders[] = {"cold", "warm", "hot"};
    char text[2000], path[300];
    struct wt_err err = {0};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        FUZZ_CHECK(mkdir(path, 0755) == 0 || errno == EEXIST);
    }
    snprintf(text, sizeof text,
             "state_folder = \"%s/state\"\ncontrol = \"unix:%s/sock\"\ntick = \"100ms\"\n"
             "tier \"cold\" { url = \"file://%s/cold\" }\n"
             "tier \"warm\" { url = \"file://%s/warm\" }\n"
             "tier \"hot\" { url = \"file://%s/hot\" }\n",
             root, root, root, root, root);
    snprintf(s->conf, sizeof s->conf, "%s/daemon.conf", root);
    FILE *f = fopen(s->conf, "we");
    FUZZ_CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
    if (wt_daemon_conf_load(s->conf, conf, &err) < 0)
        fprintf(stderr, "%s\n", err.text);
    FUZZ_CHECK(err.code == 0);
}

static void on_alarm(uv_timer_t *timer) {
    struct small_daemon *s = timer->data;
    s->rang = true;
}

bool small_daemon_run(struct small_daemon *s, const bool *flag, unsigned ms) {
    s->rang = false;
    uv_update_time(&s->loop);
    uv_timer_start(&s->alarm, on_alarm, ms, 0);
    while (!*flag && !s->rang)
        uv_run(&s->loop, UV_RUN_ONCE);
    uv_timer_stop(&s->alarm);
    return *flag;
}

void small_daemon_start(struct small_daemon *s) {
    const char *root = fuzz_folder();
    struct wt_log silent = {0};
    struct wt_err err = {0};
    struct wt_daemon_conf *conf = fuzz_alloc(sizeof *conf);
    signal(SIGPIPE, SIG_IGN);
    configure(s, root, conf);
    publish(root);
    FUZZ_CHECK(uv_loop_init(&s->loop) == 0);
    uv_timer_init(&s->loop, &s->alarm);
    s->alarm.data = s;
    if (wt_daemon_start(&s->d, &s->loop, s->conf, conf, &silent, &err) < 0)
        fprintf(stderr, "%s\n", err.text);
    FUZZ_CHECK(err.code == 0);
    free(conf);
    s->answer = fuzz_alloc(ANSWER_MAX + 1);
    const bool never = false;
    for (int i = 0; i < START_MS / 20 && !(wt_daemon_active(&s->d) && s->d.catalog.n_sets); i++)
        small_daemon_run(s, &never, 20);
    FUZZ_CHECK(wt_daemon_active(&s->d) && s->d.catalog.n_sets == 1);
}

void small_daemon_stop(struct small_daemon *s) {
    wt_daemon_stop(&s->d);
    uv_close((uv_handle_t *)&s->alarm, NULL);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    FUZZ_CHECK(!s->d.hurried);
    wt_daemon_free(&s->d);
    FUZZ_CHECK(uv_loop_close(&s->loop) == 0);
    wt_bytes_free(&s->request);
    free(s->answer);
}

const char *small_daemon_job(struct small_daemon *s) {
    struct wt_job_opts opts = {
        .name = "by hand", .tier = {"cold", "warm", "own"}, .n_tiers = 3, .world = 1};
    struct wt_job *job;
    while (wt_jobs_first(s->d.jobs))
        wt_jobs_remove(s->d.jobs, wt_jobs_first(s->d.jobs));
    struct wt_catalog_set *set = wt_catalog_find(&s->d.catalog, "wafers", 0);
    FUZZ_CHECK(set);
    FUZZ_CHECK(wt_jobs_add(s->d.jobs, &opts, set, wt_daemon_now_ms(&s->d), &job, NULL) == 0);
    return job->id;
}

/* ---- calls ---- */

static void on_link(uv_poll_t *poll, int status, int events) {
    struct small_link *l = poll->data;
    ssize_t n;
    (void)status;
    if ((events & UV_WRITABLE) && l->left) {
        n = send(l->fd, l->out, l->left, MSG_NOSIGNAL);
        l->out += n > 0 ? n : 0;
        l->left = n > 0 ? l->left - (size_t)n : n < 0 && errno == EAGAIN ? l->left : 0;
        if (!l->left)
            uv_poll_start(poll, UV_READABLE, on_link);
    }
    while ((n = recv(l->fd, l->in + l->len, ANSWER_MAX - l->len, 0)) > 0)
        l->len += (size_t)n;
    l->ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static void on_closed(uv_handle_t *h) {
    ((struct small_link *)h->data)->closed = true;
}

static void parse(struct small_answer *a) {
    if (a->len < 13 || strncmp(a->text, "HTTP/1.1 ", 9) != 0)
        return;
    a->status = strtol(a->text + 9, NULL, 10);
    const char *end = strstr(a->text, "\r\n\r\n");
    a->body = end ? end + 4 : NULL;
}

/* Connects; what is ready to be sent stands in s->request. */
static void open_link(struct small_daemon *s) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct small_link *l = &s->link;
    *l = (struct small_link){.in = s->answer, .out = s->request.data, .left = s->request.len};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", s->d.conf.socket_path);
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FUZZ_CHECK(l->fd >= 0 && connect(l->fd, (struct sockaddr *)&at, sizeof at) == 0);
    FUZZ_CHECK(fcntl(l->fd, F_SETFL, O_NONBLOCK) == 0);
    FUZZ_CHECK(uv_poll_init(&s->loop, &l->poll, l->fd) == 0);
    l->poll.data = l;
}

static void put(struct wt_bytes *b, const void *data, size_t len) {
    FUZZ_CHECK(wt_bytes_add(b, data, len) == 0);
}

void small_daemon_raw(struct small_daemon *s, const void *bytes, size_t len) {
    s->request.len = 0;
    put(&s->request, bytes, len);
    open_link(s);
}

void small_daemon_prepare(struct small_daemon *s, const char *method, const char *path,
                          const void *body, size_t len) {
    struct wt_bytes *b = &s->request;
    const struct wt_job *job = wt_jobs_first(s->d.jobs);
    char rest[120];
    b->len = 0;
    put(b, method, strlen(method));
    put(b, " ", 1);
    for (; *path; path++)
        if (*path == '$' && job)
            put(b, job->id, strlen(job->id));
        else
            put(b, path, 1);
    snprintf(rest, sizeof rest,
             " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n", len);
    put(b, rest, strlen(rest));
    put(b, body, len);
    open_link(s);
}

void small_daemon_exchange(struct small_daemon *s, unsigned ms, struct small_answer *a) {
    struct small_link *l = &s->link;
    uv_poll_start(&l->poll, UV_READABLE | UV_WRITABLE, on_link);
    small_daemon_run(s, &l->ended, ms);
    uv_close((uv_handle_t *)&l->poll, on_closed);
    FUZZ_CHECK(small_daemon_run(s, &l->closed, CALL_MS));
    close(l->fd);
    l->in[l->len] = '\0';
    *a = (struct small_answer){.text = l->in, .len = l->len, .ended = l->ended};
    parse(a);
}
