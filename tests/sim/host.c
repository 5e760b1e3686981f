/*
 * A machine with a state folder, and the daemon on it.
 *
 * Happy path: the daemon is started as main does it, its loop is turned when it is due, it stops
 * and is freed. A kill cuts it off from the world (its requests arrive or not, nobody hears it) and
 * lets its loop run out, so that its memory is freed; what lies in its folder is left to the next
 * one: all of it after SIGKILL, less what was not synced after a loss of power. A frozen one misses
 * its time, and reads its letters first when it goes on, as a process stopped in epoll_wait does.
 * One that stops without its tiers is gone like a killed one.
 */
#include "sim.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STOP_S = 7, DAMAGE_PER_MILLE = 100, FILE_MAX = 1 << 20 };

/* getpid has no argument. */
static struct sim_process *the_running;

struct sim_process *sim_running(void) {
    return the_running;
}

static void say_log(void *arg, enum wt_log_level level, const char *line) {
    struct sim_process *p = arg;
    if (p->host) /* what a dead one says nobody hears */
        sim_say(p->w, "%u %s: %s", p->pid, wt_log_level_name(level), line);
}

struct sim_process *sim_active(struct sim_world *w) {
    for (unsigned i = 0; i < w->n_hosts; i++) {
        struct sim_process *p = w->host[i].process;
        if (p && !p->stopping && wt_daemon_active(&p->d))
            return p;
    }
    return NULL;
}

/* ---- start ---- */

static void write_conf(struct sim_host *h) {
    const struct sim_world *w = h->w;
    FILE *f = fopen(h->conf, "we");
    if (!f)
        abort();
    fprintf(f, "state_folder = \"%s\"\ncontrol = \"unix:%s/sock\"\n%s", h->state, h->folder,
            w->options);
    for (uint32_t t = 0; t < SIM_TIERS; t++)
        fprintf(f, "tier %s { url = \"%s\" capacity = \"%llu\" timeout = %s }\n", w->tier[t].name,
                w->tier[t].url, (unsigned long long)w->tier[t].capacity, w->timeout);
    if (fclose(f) != 0)
        abort();
}

void sim_host_init(struct sim_world *w, unsigned number) {
    struct sim_host *h = &w->host[number];
    *h = (struct sim_host){.w = w, .number = number};
    char folder[sizeof h->folder];
    snprintf(folder, sizeof folder, "%s/h%u", w->folder, number);
    snprintf(h->folder, sizeof h->folder, "%s", folder);
    snprintf(h->conf, sizeof h->conf, "%s/conf", folder);
    snprintf(h->state, sizeof h->state, "%s/state", folder);
    if (mkdir(folder, 0755) < 0)
        abort();
}

void sim_host_start(struct sim_host *h) {
    struct sim_world *w = h->w;
    struct sim_process *p = calloc(1, sizeof *p);
    struct wt_daemon_conf conf;
    struct wt_err err = {0};
    if (!p)
        abort();
    p->w = w;
    p->host = h;
    p->pid = ++w->pids;
    p->log = (struct wt_log){.fn = say_log, .arg = p, .level = WT_LOG_INFO};
    sim_loop_init(&p->loop, p);
    p->next = w->processes;
    w->processes = p;
    h->process = p;
    the_running = p;
    write_conf(h);
    if (wt_daemon_conf_load(h->conf, &conf, &err) < 0 ||
        wt_daemon_start(&p->d, &p->loop.uv, h->conf, &conf, &p->log, &err) < 0)
        sim_break(w, "a daemon does not start: %s", err.text);
    the_running = NULL;
    sim_say(w, "%u starts on host %u", p->pid, h->number);
}

static void start_again(struct sim_world *w, void *arg) {
    struct sim_host *h = arg;
    (void)w;
    if (!h->process && !h->over)
        sim_host_start(h);
}

static void start_soon(struct sim_host *h) {
    sim_at(h->w, sim_between(h->w, SIM_MS, 5 * SIM_S), start_again, h);
}

/* ---- death ---- */

/* Appended and never synced: any part of its end may be missing, or be zeros. */
static void lose_tail(struct sim_world *w, uint8_t *data, size_t *len) {
    size_t keep = (size_t)sim_below(w, *len + 1);
    if (sim_chance(w, 200))
        memset(data + keep, 0, *len - keep);
    else
        *len = keep;
}

static void inherit_file(struct sim_host *h, const char *from, const char *name, bool power) {
    char path[512];
    snprintf(path, sizeof path, "%.300s/%.63s", from, name);
    FILE *f = fopen(path, "re");
    uint8_t *data = malloc(FILE_MAX);
    if (!f || !data)
        abort();
    size_t len = fread(data, 1, FILE_MAX, f);
    fclose(f);
    if (power && strncmp(name, "journal-", 8) == 0)
        lose_tail(h->w, data, &len);
    if (power && len && sim_chance(h->w, DAMAGE_PER_MILLE))
        data[sim_below(h->w, len)] ^= 0x10;
    snprintf(path, sizeof path, "%.300s/%.63s", h->state, name);
    f = fopen(path, "we");
    if (!f || fwrite(data, 1, len, f) != len || fclose(f) != 0)
        abort();
    free(data);
}

static int by_name(const void *a, const void *b) {
    return strcmp(a, b);
}

/* The dead daemon goes on in the renamed folder until its memory is freed. In the order of the
 * names: what a folder lists first is not ours to know. */
static void inherit_folder(struct sim_host *h, bool power) {
    char dead[256], name[64][64];
    size_t n = 0;
    snprintf(dead, sizeof dead, "%s/dead-%u", h->folder, ++h->deaths);
    if (rename(h->state, dead) < 0)
        return; /* it had not made it yet */
    if (mkdir(h->state, 0750) < 0)
        abort();
    if (sim_chance(h->w, 50)) {
        sim_say(h->w, "host %u has lost its state folder", h->number);
        return;
    }
    DIR *dir = opendir(dead);
    if (!dir)
        abort();
    for (struct dirent *e; (e = readdir(dir)) && n < 64;)
        if (e->d_name[0] != '.')
            snprintf(name[n++], 64, "%.63s", e->d_name);
    closedir(dir);
    qsort(name, n, sizeof name[0], by_name);
    for (size_t i = 0; i < n; i++)
        inherit_file(h, dead, name[i], power);
}

static void die(struct sim_host *h, bool power) {
    struct sim_process *p = h->process;
    inherit_folder(h, power);
    p->host = NULL;
    p->out_of_time = p->stopping;
    p->frozen_until = 0;
    p->cut = false;
    h->process = NULL;
    the_running = p;
    uv_update_time(&p->loop.uv);
    sim_control_lost(p);
    sim_backend_abandon(p);
    wt_daemon_stop(&p->d);
    the_running = NULL;
    p->stopping = true;
    start_soon(h);
}

void sim_host_kill(struct sim_host *h, bool power) {
    if (!h->process)
        return;
    sim_say(h->w, "%u is killed%s", h->process->pid, power ? " by a loss of power" : "");
    h->w->count.kills++;
    die(h, power);
}

/* It stopped its loop and is gone, with requests in flight. */
static void leave(struct sim_process *p) {
    sim_say(p->w, "%u leaves", p->pid);
    sim_check_leave(p);
    die(p->host, false);
}

static void on_term(void *arg) {
    struct sim_process *p = arg;
    wt_daemon_stop(&p->d);
}

void sim_host_stop(struct sim_host *h) {
    struct sim_process *p = h->process;
    if (!p || p->stopping)
        return;
    sim_say(h->w, "%u is asked to stop", p->pid);
    p->stopping = true;
    uint64_t begins = p->frozen_until > h->w->now_ns ? p->frozen_until : h->w->now_ns;
    p->stop_by = begins + STOP_S * SIM_S;
    sim_loop_post(&p->loop, on_term, p);
}

void sim_host_freeze(struct sim_host *h, uint64_t for_ns) {
    if (!h->process)
        return;
    struct sim_process *p = h->process;
    sim_say(h->w, "%u is frozen for %.1f s", p->pid, (double)for_ns / (double)SIM_S);
    h->w->count.freezes++;
    p->frozen_until = h->w->now_ns + for_ns;
    /* It has no time left when it goes on. */
    p->out_of_time = p->out_of_time || p->stopping;
    p->stop_by += for_ns;
}

/* ---- turns ---- */

static void bury(struct sim_process *p) {
    struct sim_world *w = p->w;
    struct sim_process **at = &w->processes;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    if (p->d.hurried && !p->out_of_time)
        sim_break(w, "%u, which is dead, does not run out", p->pid);
    p->d.hurried = false; /* here nothing is in flight any more, and all can be freed */
    wt_daemon_free(&p->d);
    sim_loop_free(&p->loop);
    if (p->host) {
        sim_say(w, "%u has stopped", p->pid);
        p->host->process = NULL;
        start_soon(p->host);
    }
    free(p);
}

uint64_t sim_process_due_ns(const struct sim_process *p) {
    if (sim_loop_over(&p->loop))
        return p->ops ? UINT64_MAX : 0;
    uint64_t due = sim_loop_due_ns(&p->loop);
    return due < p->frozen_until ? p->frozen_until : due;
}

void sim_process_turn(struct sim_process *p) {
    if (sim_loop_over(&p->loop)) {
        bury(p);
        return;
    }
    p->w->now_ns += 10000; /* a turn takes its time */
    the_running = p;
    sim_loop_turn(&p->loop);
    the_running = NULL;
    if (p->d.failed)
        sim_break(p->w, "%u gave up", p->pid);
    if (!p->host)
        return;
    if (p->stopping && p->w->now_ns > p->stop_by)
        sim_break(p->w, "%u does not stop", p->pid);
    sim_check_turn(p);
    if (p->d.hurried)
        leave(p);
}

/* ---- the end of a run ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* Whatever was broken, everything that runs is run out, so that nothing leaks. */
void sim_hosts_free(struct sim_world *w) {
    for (unsigned i = 0; i < w->n_hosts; i++) {
        sim_host_kill(&w->host[i], false);
        w->host[i].over = true;
    }
    sim_run_out(w);
    for (unsigned i = 0; i < w->n_hosts; i++)
        nftw(w->host[i].folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
