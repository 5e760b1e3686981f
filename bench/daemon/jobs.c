/* Jobs that report; see jobs.h. */
#include "jobs.h"

#include "../measure.h"
#include "core/bytes.h"
#include "core/http.h"
#include "core/mem.h"
#include "daemon/policy/future.h"
#include "made.h"
#include "times.h"

#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { EPOCH_S = 36000, ROWS = 900, TIMEOUT_MS = 60000, NEXT = 64 };

struct job {
    char id[64];
    struct wt_future future;
    struct wt_future_at at;
    uint64_t shard, x; /* the next use */
    double began;
};

struct jobs {
    struct wt_http *http;
    struct job *job;
    unsigned n;
    uint64_t *cum, shards;
    struct times times;
    struct jobs_result result;
    pthread_t thread;
    atomic_bool stop;
};

static json_t *call(struct jobs *js, const char *method, const char *path, json_t *body) {
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL, *reply = NULL;
    long status = 0;
    size_t len = 0;
    struct wt_err err = {0};
    json_decref(body);
    int rc = wt_http_call(js->http, method, path, text, TIMEOUT_MS, &status, &reply, &len, &err);
    free(text);
    if (rc < 0 || status != 200)
        bench_die("%s %s: status %ld, %s", method, path, status, rc < 0 ? err.text : reply);
    json_t *root = json_loads(reply, 0, NULL);
    free(reply);
    return root;
}

static void join(struct jobs *js, struct job *j, unsigned number) {
    struct wt_plan_opts o = {.samples = js->shards * MADE_SAMPLES,
                             .seed = number + 1,
                             .batch = 1024,
                             .block = MADE_SAMPLES};
    struct wt_plan plan;
    struct wt_err err;
    char name[32];
    if (wt_plan_init(&plan, &o, &err) < 0)
        bench_die("%s", err.text);
    wt_future_init(&j->future, &plan, js->cum, js->shards, 0,
                   (uint64_t)plan.o.window * plan.o.block);
    wt_future_step(&j->future, &j->at, &j->shard, &j->x);
    snprintf(name, sizeof name, "bench-%u", number);
    json_t *reply = call(js, "POST", "/v1/jobs",
                         json_pack("{s:s, s:s, s:I, s:[s, s], s:{s:i, s:I, s:i, s:i}}", "name",
                                   name, "dataset", "wafers", "seed", (json_int_t)o.seed, "tiers",
                                   "cold", "warm", "plan", "version", WT_PLAN_VERSION, "samples",
                                   (json_int_t)o.samples, "batch", 1024, "block", MADE_SAMPLES));
    const char *id = json_string_value(json_object_get(reply, "id"));
    snprintf(j->id, sizeof j->id, "%s", id ? id : "");
    json_decref(reply);
    j->began = times_now();
}

/* What it read since the last report, up to place x. */
static json_t *reads_to(struct jobs *js, struct job *j, uint64_t x) {
    json_t *list = json_array();
    while (j->x <= x && json_array_size(list) < ROWS) {
        json_array_append_new(list, json_pack("[I, s, i, i]", (json_int_t)j->shard,
                                              j->shard % MADE_WARM ? "cold" : "warm", 1, 64 << 20));
        if (!wt_future_step(&j->future, &j->at, &j->shard, &j->x))
            break;
        js->result.reads++;
    }
    return list;
}

static void report(struct jobs *js, struct job *j) {
    char path[128];
    double part = (times_now() - j->began) / EPOCH_S;
    uint64_t x = (uint64_t)(part * (double)j->future.span);
    json_t *next = json_array();
    for (int i = 0; i < NEXT; i++)
        json_array_append_new(
            next, json_integer((json_int_t)((j->shard + (unsigned)i) % j->future.shards)));
    snprintf(path, sizeof path, "/v1/jobs/%s/progress", j->id);
    json_t *body = json_pack("{s:i, s:I, s:o, s:o}", "epoch", 0, "step",
                             (json_int_t)(x / j->future.plan.lane_batch), "reads",
                             reads_to(js, j, x), "next", next);
    double start = times_now();
    json_decref(call(js, "POST", path, body));
    times_add(&js->times, times_now() - start);
    js->result.reports++;
}

static void *run(void *arg) {
    struct jobs *js = arg;
    struct timespec pause = {.tv_nsec = 1000000000 / (long)js->n};
    for (unsigned i = 0; !atomic_load(&js->stop); i++) {
        double start = times_now();
        report(js, &js->job[i % js->n]);
        double left = (double)pause.tv_nsec / 1e9 - (times_now() - start);
        if (left > 0)
            nanosleep(&(struct timespec){.tv_nsec = (long)(left * 1e9)}, NULL);
    }
    return NULL;
}

struct jobs *jobs_start(const char *address, uint64_t shards, unsigned n) {
    struct jobs *js = wt_calloc(1, sizeof *js);
    struct wt_err err = {0};
    if (js) {
        js->job = wt_calloc(n, sizeof *js->job);
        js->cum = wt_calloc(shards + 1, sizeof *js->cum);
    }
    if (!js || !js->job || !js->cum || wt_http_new(address, &js->http, &err) < 0)
        bench_die("jobs cannot be made: %s", err.text);
    for (uint64_t i = 0; i <= shards; i++)
        js->cum[i] = i * MADE_SAMPLES;
    js->n = n;
    js->shards = shards;
    for (unsigned i = 0; i < n; i++)
        join(js, &js->job[i], i);
    if (pthread_create(&js->thread, NULL, run, js) != 0)
        bench_die("no thread for the jobs");
    return js;
}

void jobs_stop(struct jobs *js, struct jobs_result *out) {
    char path[128];
    atomic_store(&js->stop, true);
    pthread_join(js->thread, NULL);
    for (unsigned i = 0; i < js->n; i++) {
        snprintf(path, sizeof path, "/v1/jobs/%s", js->job[i].id);
        json_decref(call(js, "DELETE", path, NULL));
    }
    *out = js->result;
    out->p50_ms = times_part(&js->times, 0.5) * 1e3;
    out->p99_ms = times_part(&js->times, 0.99) * 1e3;
    out->max_ms = times_part(&js->times, 1) * 1e3;
    times_free(&js->times);
    wt_http_free(js->http);
    free(js->cum);
    free(js->job);
    free(js);
}
