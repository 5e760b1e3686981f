/* Open-addressed tables; see names.h. */
#include "tools/ingest/names.h"

#include "core/mem.h"
#include "core/sum.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_text(const char *text) {
    return wt_hash64(text, strlen(text));
}

const char *wt_names_get(const struct wt_names *names, uint32_t number) {
    return (const char *)names->text.data + names->off[number];
}

static size_t find_slot(const struct wt_names *names, const char *text) {
    size_t i = hash_text(text) & (names->slots - 1);
    while (names->slot[i] && strcmp(wt_names_get(names, names->slot[i] - 1), text) != 0)
        i = (i + 1) & (names->slots - 1);
    return i;
}

static int grow_slots(struct wt_names *names) {
    if (names->slots && names->n < names->slots / 2)
        return 0;
    struct wt_names wider = *names;
    wider.slots = names->slots ? names->slots * 2 : 64;
    wider.slot = wt_calloc(wider.slots, sizeof *wider.slot);
    if (!wider.slot)
        return WT_ENOMEM;
    for (uint32_t i = 0; i < names->n; i++)
        wider.slot[find_slot(&wider, wt_names_get(names, i))] = i + 1;
    free(names->slot);
    *names = wider;
    return 0;
}

int wt_names_add(struct wt_names *names, const char *text, uint32_t *number) {
    if (grow_slots(names) < 0)
        return WT_ENOMEM;
    size_t at = find_slot(names, text);
    if (!names->slot[at]) {
        size_t off = names->text.len;
        if (names->n >= WT_NAME_NONE - 1 ||
            wt_grow(&names->off, &names->off_cap, names->n + 1, sizeof *names->off) < 0 ||
            wt_bytes_add(&names->text, text, strlen(text) + 1) < 0)
            return WT_ENOMEM;
        names->off[names->n++] = off;
        names->slot[at] = names->n;
    }
    *number = names->slot[at] - 1;
    return 0;
}

uint32_t wt_names_find(const struct wt_names *names, const char *text) {
    if (!names->slots)
        return WT_NAME_NONE;
    uint32_t found = names->slot[find_slot(names, text)];
    return found ? found - 1 : WT_NAME_NONE;
}

void wt_names_free(struct wt_names *names) {
    wt_bytes_free(&names->text);
    free(names->off);
    free(names->slot);
    *names = (struct wt_names){0};
}

/* Ids are hashes already. */
static size_t id_slot(const struct wt_idmap *map, uint64_t id) {
    size_t i = (size_t)(id & (map->slots - 1));
    while (map->slot[i].value && map->slot[i].id != id)
        i = (i + 1) & (map->slots - 1);
    return i;
}

static int grow_ids(struct wt_idmap *map) {
    if (map->slots && map->n < map->slots / 2)
        return 0;
    struct wt_idmap wider = {.slots = map->slots ? map->slots * 2 : 64, .n = map->n};
    wider.slot = wt_calloc(wider.slots, sizeof *wider.slot);
    if (!wider.slot)
        return WT_ENOMEM;
    for (size_t i = 0; i < map->slots; i++)
        if (map->slot[i].value)
            wider.slot[id_slot(&wider, map->slot[i].id)] = map->slot[i];
    free(map->slot);
    *map = wider;
    return 0;
}

int wt_idmap_add(struct wt_idmap *map, uint64_t id, uint64_t value, uint64_t *old) {
    if (grow_ids(map) < 0)
        return WT_ENOMEM;
    struct wt_idmap_slot *slot = &map->slot[id_slot(map, id)];
    if (slot->value) {
        *old = slot->value - 1;
        return 1;
    }
    *slot = (struct wt_idmap_slot){.id = id, .value = value + 1};
    map->n++;
    return 0;
}

void wt_idmap_free(struct wt_idmap *map) {
    free(map->slot);
    *map = (struct wt_idmap){0};
}
