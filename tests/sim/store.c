/* Objects on a server, and what happens to them; see sim.h. Without memory the test ends. */
#include "sim.h"

#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_blob *sim_blob_new(size_t size) {
    struct sim_blob *b = calloc(1, sizeof *b);
    uint8_t *data = malloc(size ? size : 1);
    if (!b || !data)
        abort();
    *b = (struct sim_blob){.refs = 1, .size = size, .data = data};
    return b;
}

struct sim_blob *sim_blob_ref(struct sim_blob *b) {
    b->refs++;
    return b;
}

void sim_blob_unref(struct sim_blob *b) {
    if (!b || --b->refs)
        return;
    free(b->data);
    free(b);
}

struct sim_object *sim_store_find(const struct sim_store *s, const char *key) {
    uint64_t hash = wt_hash64(key, strlen(key));
    for (size_t i = 0; i < s->n; i++)
        if (s->object[i].hash == hash && strcmp(s->object[i].key, key) == 0)
            return &s->object[i];
    return NULL;
}

void sim_store_delete(struct sim_store *s, struct sim_object *o) {
    s->used -= o->blob->size;
    sim_blob_unref(o->blob);
    *o = s->object[--s->n];
}

void sim_store_set(struct sim_store *s, const char *key, struct sim_blob *b, bool told) {
    struct sim_object *old = sim_store_find(s, key);
    if (old)
        sim_store_delete(s, old);
    if (wt_grow(&s->object, &s->cap, s->n + 1, sizeof *s->object) < 0)
        abort();
    struct sim_object *o = &s->object[s->n++];
    *o = (struct sim_object){.hash = wt_hash64(key, strlen(key)), .blob = b, .told = told};
    snprintf(o->key, sizeof o->key, "%s", key);
    o->mtime = (int64_t)(s->w->now_ns / SIM_S);
    s->used += b->size;
}

void sim_store_restart(struct sim_store *s) {
    s->epoch++;
    s->reserved = 0;
    for (size_t i = s->n; i-- > 0;)
        if (s->is_volatile || (!s->object[i].told && sim_chance(s->w, 500)))
            sim_store_delete(s, &s->object[i]);
    s->w->count.restarts++;
}

void sim_store_damage(struct sim_store *s, struct sim_object *o) {
    struct sim_blob *old = o->blob;
    bool cut = old->size > 1 && sim_chance(s->w, 300);
    struct sim_blob *b =
        sim_blob_new(cut ? old->size - 1 - sim_below(s->w, old->size - 1) : old->size);
    memcpy(b->data, old->data, b->size);
    if (!cut && b->size)
        b->data[sim_below(s->w, b->size)] ^= (uint8_t)(1u << sim_below(s->w, 8));
    s->used -= old->size - b->size;
    s->cut_off += old->size - b->size;
    o->blob = b;
    sim_blob_unref(old);
    s->w->count.damages++;
}

void sim_store_free(struct sim_store *s) {
    while (s->n)
        sim_store_delete(s, &s->object[0]);
    free(s->object);
}
