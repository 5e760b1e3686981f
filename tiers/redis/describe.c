/*
 * What the servers tell of themselves, for people: versions and the settings that matter. Noted
 * from the INFO that USAGE asks for; a server that refuses INFO has no facts.
 */
#include "tiers/redis/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static void text_of(const char *info, const char *name, char *out, size_t size) {
    if (!rds_info_text(info, name, out, size))
        out[0] = '\0';
}

void rds_about_note(struct rds_about *about, const char *info) {
    struct timespec now;
    uint64_t theirs_us = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    *about = (struct rds_about){.known = true};
    text_of(info, "redis_version", about->version, sizeof about->version);
    text_of(info, "maxmemory_policy", about->policy, sizeof about->policy);
    text_of(info, "aof_enabled", about->aof, sizeof about->aof);
    rds_info_number(info, "used_memory", &about->used);
    rds_info_number(info, "maxmemory", &about->max);
    if (rds_info_number(info, "server_time_usec", &theirs_us))
        about->clock_ms = (int64_t)(theirs_us / 1000) -
                          ((int64_t)now.tv_sec * 1000 + (int64_t)now.tv_nsec / 1000000);
}

static void tell(const struct rds_about *about, const char *where, wt_fact_fn fact, void *arg) {
    char text[64];
    snprintf(text, sizeof text, "Redis %s", about->version);
    fact(arg, where, "server", text);
    fact(arg, where, "maxmemory_policy", about->policy);
    fact(arg, where, "aof_enabled", about->aof);
    snprintf(text, sizeof text, "%" PRIu64, about->max);
    fact(arg, where, "maxmemory", text);
    snprintf(text, sizeof text, "%" PRIu64, about->used);
    fact(arg, where, "used_memory", text);
    snprintf(text, sizeof text, "%" PRId64, about->clock_ms);
    fact(arg, where, "clock_ms", text);
}

void rds_describe(struct wt_tier *tier, wt_fact_fn fact, void *arg) {
    const struct rds *r = wt_backend_state(tier);
    for (uint32_t i = 0; i < r->n_nodes; i++)
        if (r->node[i]->about.known)
            tell(&r->node[i]->about, r->url.cluster ? r->node[i]->name : "", fact, arg);
}
