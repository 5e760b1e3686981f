/* Keys, records and life of leases; see lease.h. */
#include "core/lease.h"

#include "core/json.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum { FORMAT_VERSION = 1, SKEW_S = 60, AHEAD_S = 86400 };

static const char *const kinds[] = {
    [WT_LEASE_JOB] = "job", [WT_LEASE_PACK] = "pack", [WT_LEASE_GC] = "gc"};

static uint64_t now_s(void) {
    time_t now = time(NULL);
    return now > 0 ? (uint64_t)now : 0;
}

/* What JSON and a terminal take: printable ASCII. */
static void copy_holder(char *out, size_t size, const char *text) {
    size_t n = 0;
    for (; text[n] && n + 1 < size; n++)
        out[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
    out[n] = '\0';
}

void wt_lease_init(struct wt_lease *lease, enum wt_lease_kind kind, const char *dataset,
                   uint64_t generation, const char *holder, uint64_t life_s) {
    struct timespec t;
    *lease = (struct wt_lease){.kind = kind,
                               .generation = generation,
                               .life_s = life_s,
                               .expires_s = now_s() + life_s,
                               .process = wt_process_self()};
    snprintf(lease->dataset, sizeof lease->dataset, "%s", dataset);
    copy_holder(lease->holder, sizeof lease->holder, holder);
    if (getrandom(&lease->id, sizeof lease->id, GRND_NONBLOCK) == sizeof lease->id)
        return;
    clock_gettime(CLOCK_MONOTONIC, &t);
    lease->id = (uint64_t)t.tv_nsec ^ (uint64_t)t.tv_sec << 30 ^ (uint64_t)lease->process.pid << 40;
}

void wt_lease_prefix(const char *dataset, char out[WT_LEASE_KEY]) {
    snprintf(out, WT_LEASE_KEY, WT_LEASE_FOLDER "/%s/", dataset);
}

void wt_lease_gc_key(const char *dataset, char out[WT_LEASE_KEY]) {
    snprintf(out, WT_LEASE_KEY, WT_LEASE_FOLDER "/%s/gc", dataset);
}

void wt_lease_key(const struct wt_lease *lease, char out[WT_LEASE_KEY]) {
    if (lease->kind == WT_LEASE_GC)
        wt_lease_gc_key(lease->dataset, out);
    else if (lease->kind == WT_LEASE_PACK)
        snprintf(out, WT_LEASE_KEY, WT_LEASE_FOLDER "/%s/pack-%016" PRIx64, lease->dataset,
                 lease->id);
    else
        snprintf(out, WT_LEASE_KEY, WT_LEASE_FOLDER "/%s/%" PRIu64 "-%016" PRIx64, lease->dataset,
                 lease->generation, lease->id);
}

int wt_lease_key_parse(const char *key, char dataset[WT_DATASET_NAME]) {
    size_t n = strlen(WT_LEASE_FOLDER);
    if (strncmp(key, WT_LEASE_FOLDER, n) != 0 || key[n] != '/')
        return WT_EINVAL;
    const char *name = key + n + 1, *slash = strchr(name, '/');
    if (!slash || slash - name >= WT_DATASET_NAME || !slash[1] || strchr(slash + 1, '/'))
        return WT_EINVAL;
    char set[WT_DATASET_NAME];
    snprintf(set, sizeof set, "%.*s", (int)(slash - name), name);
    if (wt_dataset_name_check(set, NULL) < 0)
        return WT_EINVAL;
    memcpy(dataset, set, sizeof set);
    return 0;
}

/* ---- records ---- */

char *wt_lease_format(struct wt_lease *lease, size_t *len) {
    char process[WT_PROCESS_TEXT], id[20];
    lease->expires_s = now_s() + lease->life_s;
    wt_process_format(&lease->process, process);
    snprintf(id, sizeof id, "%016" PRIx64, lease->id);
    json_t *o = json_pack(
        "{s:s, s:i, s:s, s:s, s:I, s:s, s:I, s:I, s:s, s:s}", "format", "wafertier-lease",
        "version", FORMAT_VERSION, "kind", kinds[lease->kind], "dataset", lease->dataset,
        "generation", (json_int_t)lease->generation, "id", id, "life", (json_int_t)lease->life_s,
        "expires", (json_int_t)lease->expires_s, "holder", lease->holder, "process", process);
    char *text = o ? wt_json_dump(o, JSON_COMPACT, len) : NULL;
    json_decref(o);
    return text;
}

static bool take_kind(const char *text, enum wt_lease_kind *kind) {
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i], text) != 0)
            continue;
        *kind = (enum wt_lease_kind)i;
        return true;
    }
    return false;
}

static bool take(const json_t *o, struct wt_lease *lease) {
    const char *format, *kind, *dataset, *holder, *process, *id;
    json_int_t generation, life, expires;
    int version;
    if (json_unpack((json_t *)(uintptr_t)o, "{s:s, s:i, s:s, s:s, s:I, s:s, s:I, s:I, s:s, s:s}",
                    "format", &format, "version", &version, "kind", &kind, "dataset", &dataset,
                    "generation", &generation, "id", &id, "life", &life, "expires", &expires,
                    "holder", &holder, "process", &process) < 0)
        return false;
    if (strcmp(format, "wafertier-lease") != 0 || version != FORMAT_VERSION || generation < 0 ||
        life < 0 || life > INT32_MAX || expires < 0 || wt_dataset_name_check(dataset, NULL) < 0 ||
        !take_kind(kind, &lease->kind) || strlen(id) != 16 || strspn(id, "0123456789abcdef") != 16)
        return false;
    const char *end = wt_process_parse(process, &lease->process);
    if (!end || *end)
        return false;
    snprintf(lease->dataset, sizeof lease->dataset, "%s", dataset);
    copy_holder(lease->holder, sizeof lease->holder, holder);
    lease->generation = (uint64_t)generation;
    lease->id = strtoull(id, NULL, 16);
    lease->life_s = (uint64_t)life;
    lease->expires_s = (uint64_t)expires;
    return true;
}

int wt_lease_parse(const char *text, size_t len, struct wt_lease *lease, struct wt_err *err) {
    struct wt_lease l = {0};
    json_t *o = NULL;
    int rc = len > WT_LEASE_MAX ? wt_err_set(err, WT_EFORMAT, "more than %d bytes", WT_LEASE_MAX)
                                : wt_json_load(text, len, JSON_REJECT_DUPLICATES, &o, err);
    if (rc == 0 && !take(o, &l))
        rc = wt_err_set(err, WT_EFORMAT, "no lease that this version understands");
    json_decref(o);
    if (rc == 0)
        *lease = l;
    return rc;
}

bool wt_lease_live(const struct wt_lease *lease, uint64_t written_s, uint64_t now) {
    if (wt_process_look(&lease->process) == WT_PROCESS_DEAD)
        return false;
    uint64_t by_tier = written_s ? written_s + lease->life_s : 0;
    uint64_t until = by_tier > lease->expires_s ? by_tier : lease->expires_s;
    if (by_tier && until - by_tier > AHEAD_S) /* its holder's clock was far ahead */
        until = by_tier;
    return now <= until || now - until <= SKEW_S;
}
