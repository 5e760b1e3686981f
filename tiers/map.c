/* A held mapping of an object: what a backend made, released once, on any thread. */
#include "tiers/backend.h"

#include <stdlib.h>

struct wt_map {
    struct wt_map_view view;
    void (*release)(void *arg);
    void *arg;
};

struct wt_map *wt_map_new(const void *data, size_t size, void (*release)(void *arg), void *arg) {
    struct wt_map *map = malloc(sizeof *map);
    if (map)
        *map = (struct wt_map){.view = {data, size}, .release = release, .arg = arg};
    return map;
}

struct wt_map_view wt_map_view(const struct wt_map *map) {
    return map->view;
}

void wt_map_release(struct wt_map *map) {
    if (!map)
        return;
    map->release(map->arg);
    free(map);
}
