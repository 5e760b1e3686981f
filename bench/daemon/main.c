/*
 * The daemon with as many shards as it is made for: its start, its memory, idle, and with jobs.
 *
 *     bench_daemon WAFERTIERD /FOLDER [SHARDS [JOBS [SECONDS]]]     10 million, 50, 60
 *
 * FOLDER takes 100 bytes a shard and a file for a quarter of them, and is left empty; SECONDS 0
 * only fills it, and a full one is used as it is, and kept.
 *
 * Happy path: a data set and a state are made (made.h), wafertierd is started on them; a client
 * asks for statistics, shards, jobs and metrics all the while, but in the idle phase. Phases: the
 * start, until all shards are known; until all copies have been looked up; idle; jobs that report
 * (jobs.h); the stop. Limits are those of the design. The page cache is warm, as after a restart of
 * the daemon alone. Failures end the program with their reason, and the daemon with it.
 */
#include "../measure.h"
#include "core/http.h"
#include "jobs.h"
#include "made.h"
#include "times.h"

#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GIVE_UP_S = 900, TIMEOUT_MS = 60000, RECORD = 64 };

struct bench {
    struct made made;
    char address[256];
    unsigned jobs, seconds;
    pid_t daemon;
    struct wt_http *http;
};

/* ---- the client that asks all the while ---- */

static const char *const paths[] = {"/v1/stats", "/v1/shards?dataset=wafers",
                                    "/v1/jobs",  "/v1/shards?dataset=wafers&tier=warm&limit=100",
                                    "/metrics",  "/v1/shards?dataset=wafers&prefix=00000012",
                                    "/v1/moves", "/v1/tiers",
                                    "/healthz"};
enum { PATHS = sizeof paths / sizeof paths[0] };

struct asker {
    struct bench *b;
    pthread_t thread;
    atomic_bool stop;
    struct times times;
    double worst[PATHS];
};

static void ask(struct asker *a, struct wt_http *http, unsigned i) {
    char *reply = NULL;
    size_t len;
    long status;
    struct wt_err err = {0};
    double start = times_now();
    int rc = wt_http_call(http, "GET", paths[i], NULL, TIMEOUT_MS, &status, &reply, &len, &err);
    double took = times_now() - start;
    free(reply);
    if (rc < 0)
        bench_die("GET %s: %s", paths[i], err.text);
    times_add(&a->times, took);
    a->worst[i] = took > a->worst[i] ? took : a->worst[i];
}

static void *asking(void *arg) {
    struct asker *a = arg;
    struct wt_http *http;
    struct wt_err err = {0};
    if (wt_http_new(a->b->address, &http, &err) < 0)
        bench_die("%s", err.text);
    for (unsigned i = 0; !atomic_load(&a->stop); i = (i + 1) % PATHS) {
        ask(a, http, i);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    wt_http_free(http);
    return NULL;
}

static void ask_start(struct asker *a, struct bench *b) {
    *a = (struct asker){.b = b};
    if (pthread_create(&a->thread, NULL, asking, a) != 0)
        bench_die("no thread to ask from");
}

static void ask_stop(struct asker *a, const char *phase) {
    char name[64];
    unsigned worst = 0;
    atomic_store(&a->stop, true);
    pthread_join(a->thread, NULL);
    double p99 = times_part(&a->times, 0.99) * 1e3;
    for (unsigned i = 1; i < PATHS; i++)
        worst = a->worst[i] > a->worst[worst] ? i : worst;
    snprintf(name, sizeof name, "answers, %s", phase);
    printf("%-34s p50 %.2f ms, p99 %.2f ms (limit 10 ms, ratio %.2f), max %.1f ms (%s), n %zu\n",
           name, times_part(&a->times, 0.5) * 1e3, p99, p99 / 10, times_part(&a->times, 1) * 1e3,
           paths[worst], a->times.n);
    times_free(&a->times);
}

/* ---- the daemon ---- */

static void start_daemon(struct bench *b, const char *program) {
    char conf[300];
    snprintf(conf, sizeof conf, "%s/conf", b->made.folder);
    b->daemon = fork();
    if (b->daemon == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(program, program, "--config", conf, (char *)NULL);
        _exit(127);
    }
    if (b->daemon < 0)
        bench_die("%s cannot be started", program);
}

static json_t *stats(struct bench *b) {
    char *reply = NULL;
    size_t len;
    long status;
    struct wt_err err = {0};
    if (!b->http && wt_http_new(b->address, &b->http, &err) < 0)
        bench_die("%s", err.text);
    int rc =
        wt_http_call(b->http, "GET", "/v1/stats", NULL, TIMEOUT_MS, &status, &reply, &len, &err);
    json_t *root = rc == 0 ? json_loads(reply, 0, NULL) : NULL;
    free(reply);
    return root;
}

static double number(const json_t *o, const char *a, const char *b) {
    const json_t *v = json_object_get(o, a);
    return json_number_value(b ? json_object_get(v, b) : v);
}

static bool answers(const struct bench *b, const json_t *s) {
    (void)b;
    return s;
}

static bool all_known(const struct bench *b, const json_t *s) {
    return number(s, "shards", NULL) >= (double)b->made.shards;
}

static bool all_looked_up(const struct bench *b, const json_t *s) {
    (void)b;
    return json_is_false(json_object_get(json_object_get(s, "reconcile"), "busy")) &&
           number(s, "policy_passes", NULL) > 0;
}

/* Seconds until `what` is so. */
static double wait_for(struct bench *b, bool (*what)(const struct bench *b, const json_t *s),
                       double since) {
    for (bool done = false; !done;) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        json_t *s = stats(b);
        done = s && what(b, s);
        json_decref(s);
        if (times_now() - since > GIVE_UP_S || waitpid(b->daemon, NULL, WNOHANG) != 0)
            bench_die("the daemon is not there yet, or any more");
    }
    return times_now() - since;
}

static void loop_line(struct bench *b, const char *phase) {
    json_t *s = stats(b);
    const json_t *loop = json_object_get(s, "loop");
    printf("%-34s p99 %.2f ms, max %.1f ms (%.1f of CPU time), over 5 ms %.0f of %.0f\n", phase,
           number(loop, "p99_us", NULL) / 1e3, number(loop, "max_us", NULL) / 1e3,
           number(loop, "max_cpu_us", NULL) / 1e3, number(loop, "over_5ms", NULL),
           number(loop, "count", NULL));
    json_decref(s);
}

/* ---- what the kernel says of it ---- */

static double status_kib(pid_t pid, const char *field) {
    char path[64], line[256];
    double kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    size_t len = strlen(field);
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, field, len) == 0 && line[len] == ':')
            kib = strtod(line + len + 1, NULL);
    if (f)
        fclose(f);
    return kib;
}

static double cpu_s(pid_t pid) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    const char *at = strrchr(text, ')');
    unsigned long user = 0, system = 0;
    if (!at ||
        sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        bench_die("%s cannot be read", path);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* Beside shards.idx, which the daemon has in memory whole. */
static void memory_line(const struct bench *b, const char *what, const char *field) {
    double n = (double)b->made.shards;
    double bytes = (status_kib(b->daemon, field) * 1024 - n * RECORD) / n;
    printf("%-34s %8.1f B a shard, limit 96, ratio %.2f\n", what, bytes, bytes / 96);
}

/* ---- phases ---- */

static void start_phase(struct bench *b, const char *program) {
    struct asker a;
    double began = times_now();
    start_daemon(b, program);
    wait_for(b, answers, began);
    ask_start(&a, b);
    double known = wait_for(b, all_known, began);
    printf("%-34s %8.2f s, limit 30, ratio %.2f\n", "start, until all shards are known", known,
           known / 30);
    memory_line(b, "memory, peak of the start", "VmHWM");
    double looked = wait_for(b, all_looked_up, began);
    printf("%-34s %8.2f s\n", "... until all copies are looked up", looked);
    ask_stop(&a, "start and reconciliation");
    loop_line(b, "turns of the loop so far");
}

static void idle_phase(struct bench *b) {
    sleep(b->seconds); /* snapshot and passes that the start led to */
    memory_line(b, "memory, steady", "VmRSS");
    double cpu = cpu_s(b->daemon);
    sleep(b->seconds);
    double used = (cpu_s(b->daemon) - cpu) / b->seconds * 100;
    printf("%-34s %8.3f %% of a core, limit 0.1, ratio %.2f\n", "idle", used, used / 0.1);
}

static void jobs_phase(struct bench *b) {
    struct asker a;
    struct jobs_result r;
    json_t *s = stats(b);
    double passes = number(s, "policy_passes", NULL), cpu = cpu_s(b->daemon);
    json_decref(s);
    ask_start(&a, b);
    double began = times_now();
    struct jobs *jobs = jobs_start(b->address, b->made.shards, b->jobs);
    sleep(b->seconds);
    double wall = times_now() - began, used = cpu_s(b->daemon) - cpu;
    s = stats(b);
    passes = number(s, "policy_passes", NULL) - passes;
    printf("%-34s %8.1f s, limit 20, ratio %.2f (rest included)\n", "a pass over all shards",
           wall / (passes > 0 ? passes : 1), wall / (passes > 0 ? passes : 1) / 20);
    json_decref(s);
    memory_line(b, "memory, with jobs", "VmRSS");
    jobs_stop(jobs, &r);
    printf("%-34s %8.1f %% of a core\n", "CPU time, with jobs", used / wall * 100);
    printf("%-34s %" PRIu64 " reports, %" PRIu64
           " reads; answers p50 %.2f, p99 %.2f, max %.1f ms\n",
           "jobs", r.reports, r.reads, r.p50_ms, r.p99_ms, r.max_ms);
    ask_stop(&a, "jobs");
    loop_line(b, "turns of the loop, all");
    memory_line(b, "memory, peak of all", "VmHWM");
}

static void stop_phase(struct bench *b) {
    int status = 0;
    double began = times_now();
    wt_http_free(b->http);
    kill(b->daemon, SIGTERM);
    waitpid(b->daemon, &status, 0);
    printf("%-34s %8.2f s%s\n", "stop", times_now() - began, status ? ", not clean" : "");
}

int main(int argc, char **argv) {
    static struct bench b = {.made.shards = 10000000, .jobs = 50, .seconds = 60};
    if (argc < 3 || argc > 6 || argv[2][0] != '/' || strlen(argv[2]) >= sizeof b.made.folder)
        bench_die("usage: %s WAFERTIERD /FOLDER [SHARDS [JOBS [SECONDS]]]", argv[0]);
    if (argc > 3)
        b.made.shards = strtoull(argv[3], NULL, 10);
    if (argc > 4)
        b.jobs = (unsigned)strtoul(argv[4], NULL, 10);
    if (argc > 5)
        b.seconds = (unsigned)strtoul(argv[5], NULL, 10);
    snprintf(b.made.folder, sizeof b.made.folder, "%s", argv[2]);
    snprintf(b.address, sizeof b.address, "unix:%s/sock", b.made.folder);
    setvbuf(stdout, NULL, _IOLBF, 0);
    bool kept = made_is_there(&b.made) || b.seconds == 0;
    if (!made_is_there(&b.made))
        made_make(&b.made);
    if (b.seconds == 0)
        return 0;
    printf("%" PRIu64 " shards, %u jobs\n", b.made.shards, b.jobs);
    start_phase(&b, argv[1]);
    idle_phase(&b);
    if (b.jobs)
        jobs_phase(&b);
    stop_phase(&b);
    if (!kept)
        made_remove(&b.made);
    return 0;
}
