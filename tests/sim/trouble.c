/*
 * What may go wrong, at times and places drawn from the seed; see sim.h. It ends at a time: then
 * everything works, and what was promised must be kept.
 */
#include "sim.h"

#include <stdio.h>
#include <string.h>

static uint64_t some_time(struct sim_world *w) {
    return sim_between(w, 10, 200) * 100 * SIM_MS; /* 1 to 20 s */
}

static struct sim_store *some_store(struct sim_world *w) {
    return &w->store[sim_below(w, SIM_TIERS)];
}

static struct sim_host *some_host(struct sim_world *w) {
    struct sim_process *p = sim_active(w);
    return p && sim_chance(w, 700) ? p->host : &w->host[sim_below(w, w->n_hosts)];
}

static void go_down(struct sim_world *w) {
    struct sim_store *s = some_store(w);
    s->down_until = w->now_ns + some_time(w);
    sim_say(w, "%s refuses for a while", w->tier[s->tier].name);
}

static void hang(struct sim_world *w) {
    struct sim_store *s = some_store(w);
    s->hang_until = w->now_ns + some_time(w);
    sim_say(w, "%s hangs for a while", w->tier[s->tier].name);
}

static void be_slow(struct sim_world *w) {
    struct sim_store *s = some_store(w);
    s->slow_until = w->now_ns + some_time(w);
    sim_say(w, "%s is slow for a while", w->tier[s->tier].name);
}

static void restart(struct sim_world *w) {
    struct sim_store *s = some_store(w);
    sim_say(w, "%s restarts", w->tier[s->tier].name);
    sim_store_restart(s);
}

static struct sim_object *some_copy(struct sim_world *w, struct sim_store **at) {
    struct sim_store *s = &w->store[sim_between(w, 1, SIM_TIERS - 1)];
    *at = s;
    return s->n ? &s->object[sim_below(w, s->n)] : NULL;
}

static void damage(struct sim_world *w) {
    struct sim_store *s;
    struct sim_object *o = some_copy(w, &s);
    if (!o)
        return;
    sim_say(w, "%s rots in %s", o->key, w->tier[s->tier].name);
    sim_store_damage(s, o);
}

static void lose(struct sim_world *w) {
    struct sim_store *s;
    struct sim_object *o = some_copy(w, &s);
    if (!o)
        return;
    sim_say(w, "%s is gone from %s", o->key, w->tier[s->tier].name);
    sim_store_delete(s, o);
}

/* The worst: the daemon must then keep what is left above. */
static void harm_cold(struct sim_world *w) {
    struct sim_shard *shard = &w->shard[sim_below(w, w->n_shards)];
    struct sim_object *o = sim_store_find(&w->store[0], shard->key);
    if (!o || shard->harmed || !sim_chance(w, 300))
        return;
    shard->harmed = true;
    shard->checked_by = 0;
    if (sim_chance(w, 500)) {
        sim_say(w, "%s is gone from cold", shard->key);
        sim_store_delete(&w->store[0], o);
    } else {
        sim_say(w, "%s rots in cold", shard->key);
        sim_store_damage(&w->store[0], o);
    }
}

static void fill(struct sim_world *w) {
    uint32_t t = (uint32_t)sim_between(w, 1, SIM_TIERS - 1);
    w->store[t].foreign = sim_chance(w, 500) ? sim_below(w, w->tier[t].capacity + 1) : 0;
    sim_say(w, "others have %llu bytes in %s", (unsigned long long)w->store[t].foreign,
            w->tier[t].name);
}

static void stop_host(struct sim_world *w) {
    sim_host_stop(some_host(w));
}

static void kill_host(struct sim_world *w) {
    sim_host_kill(some_host(w), sim_chance(w, 300));
}

static void freeze_host(struct sim_world *w) {
    sim_host_freeze(some_host(w), some_time(w));
}

static void mend(struct sim_world *w, void *arg) {
    struct sim_host *h = arg;
    (void)w;
    if (h->process)
        h->process->cut = false;
}

static void cut_host(struct sim_world *w) {
    struct sim_host *h = some_host(w);
    if (!h->process || h->process->cut)
        return;
    sim_say(w, "%u is cut off from cold", h->process->pid);
    w->count.cuts++;
    h->process->cut = true;
    sim_at(w, some_time(w), mend, h);
}

static void pack(struct sim_world *w) {
    if (w->n_sets < SIM_GENERATIONS)
        sim_pack(w, w->n_sets + 1);
}

/* A capacity is another one from the next start on. */
static void resize(struct sim_world *w) {
    uint32_t t = (uint32_t)sim_between(w, 1, SIM_TIERS - 1);
    uint64_t most = w->store[t].capacity;
    w->tier[t].capacity = 1 + sim_below(w, most);
    sim_say(w, "capacity of %s will be %llu", w->tier[t].name,
            (unsigned long long)w->tier[t].capacity);
    stop_host(w);
}

static void on_answer(void *arg, const struct sim_answer *a) {
    struct sim_world *w = arg;
    w->count.by_hand += a->status == 200;
}

/* Somebody steers by hand; refused where it does not fit. */
static void steer(struct sim_world *w) {
    static const char *const paths[] = {"/v1/warm", "/v1/evict", "/v1/pin", "/v1/unpin",
                                        "/v1/quota"};
    struct sim_process *p = sim_active(w);
    const char *path = paths[sim_below(w, sizeof paths / sizeof paths[0])];
    uint32_t t = (uint32_t)sim_between(w, 1, SIM_TIERS - 1);
    if (!p)
        return;
    json_t *body = json_pack("{s:s, s:s}", "dataset", "wafers", "tier", w->tier[t].name);
    if (strcmp(path, "/v1/quota") == 0)
        json_object_set_new(body, "bytes",
                            json_integer((json_int_t)sim_below(w, w->tier[t].capacity + 1)));
    if (strcmp(path, "/v1/warm") == 0 || strcmp(path, "/v1/evict") == 0)
        json_object_set_new(body, "patience_s", json_integer((json_int_t)sim_between(w, 5, 60)));
    sim_say(w, "by hand: %s in %s", path, w->tier[t].name);
    sim_call(p, "POST", path, body, on_answer, w);
}

static void on_trouble(struct sim_world *w, void *arg) {
    static void (*const kinds[])(struct sim_world * w) = {
        go_down,   hang,      be_slow,     restart,  damage, damage, lose,  harm_cold, fill,
        stop_host, kill_host, freeze_host, cut_host, pack,   steer,  steer, resize,    go_down};
    (void)arg;
    if (!w->trouble)
        return;
    kinds[sim_below(w, sizeof kinds / sizeof kinds[0])](w);
    sim_at(w, sim_below(w, w->pause_ns), on_trouble, NULL);
}

void sim_trouble_start(struct sim_world *w) {
    w->trouble = true;
    w->pause_ns = sim_between(w, 1, 20) * SIM_S;
    if (sim_chance(w, 600))
        w->crash_at = sim_between(w, 100, 5000);
    if (!sim_chance(w, 100)) /* else nothing happens: what works must work */
        sim_at(w, sim_below(w, w->pause_ns), on_trouble, NULL);
}

void sim_trouble_end(struct sim_world *w) {
    sim_say(w, "the trouble is over");
    w->trouble = false;
    for (uint32_t t = 0; t < SIM_TIERS; t++) {
        struct sim_store *s = &w->store[t];
        s->down_until = s->hang_until = s->slow_until = s->faults = s->foreign = 0;
    }
    for (unsigned i = 0; i < w->n_hosts; i++)
        if (w->host[i].process)
            w->host[i].process->frozen_until = 0;
}
