/* Names of data sets in a tier; see sets.h. */
#include "tools/sets.h"

#include "core/mem.h"

#include <stdlib.h>
#include <string.h>

static int take_folder(void *arg, const struct wt_entry *entry) {
    struct wt_set_names *names = arg;
    size_t len = strlen(entry->key);
    if (len < 2 || entry->key[len - 1] != '/' || len > WT_DATASET_NAME)
        return 0;
    char *name = strndup(entry->key, len - 1);
    if (!name || wt_dataset_name_check(name, NULL) < 0) {
        free(name);
        return 0;
    }
    if (wt_grow(&names->name, &names->cap, names->n + 1, sizeof *names->name) < 0) {
        free(name);
        return WT_ENOMEM;
    }
    names->name[names->n++] = name;
    return 0;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int wt_set_names_list(struct wt_target *t, struct wt_set_names *names, struct wt_err *err) {
    int rc = wt_sync_list(t->sync, t->tier, "", WT_LIST_SHALLOW, take_folder, names, err);
    if (rc == 0 && names->n)
        qsort(names->name, names->n, sizeof *names->name, by_bytes);
    return rc;
}

void wt_set_names_free(struct wt_set_names *names) {
    for (size_t i = 0; i < names->n; i++)
        free(names->name[i]);
    free(names->name);
    *names = (struct wt_set_names){0};
}
