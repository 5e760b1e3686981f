/*
 * wl_stats_json: the statistics of wl_get_stats as one JSON object, for logs and dashboards, and
 * the first bad samples. The names are those of the struct. Fails when the buffer is too small (the
 * length that would do is told) and without memory; then the buffer is untouched.
 */
#include "core/json.h"
#include "libloader/internal.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static json_t *stage_json(const wl_stage_stats *s, double stall_s) {
    return json_pack("{s:f, s:f, s:I, s:f}", "busy_s", s->busy_s, "wait_s", s->wait_s, "queue",
                     (json_int_t)s->queue, "stall_s", stall_s);
}

/* What the consumer holds up is no stage's queue: deliver's stall is the consumer's. */
static json_t *stages_json(const wl_stats *s) {
    json_t *stages = json_object();
    wt_json_put(&stages, "fetch", stage_json(&s->fetch, s->stall_fetch_s));
    wt_json_put(&stages, "decode", stage_json(&s->decode, s->stall_decode_s));
    wt_json_put(&stages, "stage", stage_json(&s->stage, s->stall_stage_s));
    wt_json_put(&stages, "deliver", stage_json(&s->deliver, s->stall_consumer_s));
    return stages;
}

static json_t *tiers_json(const wl_stats *s) {
    json_t *tiers = json_array();
    for (size_t i = 0; i < s->tiers; i++) {
        const wl_tier_stats *t = &s->tier[i];
        json_t *name = wt_json_string(t->name);
        wt_json_push(&tiers,
                     name ? json_pack("{s:o, s:I, s:I, s:I, s:I, s:b, s:f}", "name", name, "reads",
                                      (json_int_t)t->reads, "bytes", (json_int_t)t->bytes, "misses",
                                      (json_int_t)t->misses, "failures", (json_int_t)t->failures,
                                      "down", t->down, "stall_s", s->tier_stall_s[i])
                          : NULL);
    }
    return tiers;
}

static json_t *bad_json(const wl_loader *l) {
    enum { SHOWN = 16 };
    wl_bad_sample bad[SHOWN];
    size_t n = wl_quarantine(l, bad, SHOWN);
    json_t *list = json_array();
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        json_t *key = wt_json_string(bad[i].key);
        wt_json_push(&list, key ? json_pack("{s:s, s:o, s:I, s:I}", "shard", bad[i].shard, "key",
                                            key, "epoch", (json_int_t)bad[i].epoch, "times",
                                            (json_int_t)bad[i].times)
                                : NULL);
    }
    return list;
}

static json_t *stats_json(const wl_stats *s) {
    json_t *root = json_pack(
        "{s:I, s:I, s:I, s:f, s:f, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "batches",
        (json_int_t)s->batches, "samples", (json_int_t)s->samples, "bytes", (json_int_t)s->bytes,
        "elapsed_s", s->elapsed_s, "stall_s", s->stall_s, "blame", s->blame, "blame_tier",
        s->blame_tier, "bad_samples", (json_int_t)s->bad_samples, "retries", (json_int_t)s->retries,
        "joins", (json_int_t)s->joins, "waits", (json_int_t)s->waits, "waits_met",
        (json_int_t)s->waits_met, "memory", (json_int_t)s->memory);
    wt_json_put(&root, "stages", stages_json(s));
    wt_json_put(&root, "tiers", tiers_json(s));
    return root;
}

int wl_stats_json(const wl_loader *l, char *buf, size_t size, size_t *len) {
    wl_stats s = {.size = sizeof s};
    int rc = wl_get_stats(l, &s);
    if (rc)
        return rc;
    json_t *root = stats_json(&s);
    wt_json_put(&root, "quarantine", bad_json(l));
    size_t need = 0;
    char *text = root ? wt_json_dump(root, JSON_COMPACT | JSON_REAL_PRECISION(9), &need) : NULL;
    json_decref(root);
    if (!text)
        return wt_error_set(wt_error_thread(), WL_ERROR_MEMORY, "out of memory for statistics");
    text[--need] = 0; /* the newline */
    if (len)
        *len = need;
    if (buf && need < size)
        memcpy(buf, text, need + 1);
    else
        rc = wt_error_set(wt_error_thread(), WL_ERROR_INVALID,
                          "wl_stats_json: the text has %zu bytes, the buffer %zu", need + 1,
                          buf ? size : 0);
    free(text);
    return rc;
}
