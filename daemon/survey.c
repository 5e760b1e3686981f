/* Names of wafers and runs of shards; see survey.h. */
#include "daemon/survey.h"

#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = 1 << 26 };

struct run { /* shards [first, end) hold samples of the wafer */
    uint32_t wafer;
    uint64_t first, end;
};

struct wafer {
    char *name;  /* "lot/wafer" */
    size_t last; /* its latest run + 1; 0: none */
};

struct wt_survey {
    struct wafer *wafer; /* in the order in which they came */
    uint32_t *sorted;    /* their numbers, by name */
    size_t n, cap, sorted_cap;
    struct run *run;
    size_t n_runs, run_cap;
};

struct wt_survey *wt_survey_new(void) {
    return wt_calloc(1, sizeof(struct wt_survey));
}

void wt_survey_free(struct wt_survey *s) {
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        free(s->wafer[i].name);
    free(s->wafer);
    free(s->sorted);
    free(s->run);
    free(s);
}

/* Where `name` stands in the order, or would stand. */
static size_t place_of(const struct wt_survey *s, const char *name) {
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(s->wafer[s->sorted[mid]].name, name) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int wafer_of(struct wt_survey *s, const char *name, uint32_t *number) {
    size_t at = place_of(s, name);
    if (at < s->n && strcmp(s->wafer[s->sorted[at]].name, name) == 0) {
        *number = s->sorted[at];
        return 0;
    }
    if (wt_grow(&s->wafer, &s->cap, s->n + 1, sizeof *s->wafer) < 0 ||
        wt_grow(&s->sorted, &s->sorted_cap, s->n + 1, sizeof *s->sorted) < 0)
        return WT_ENOMEM;
    char *copy = strdup(name);
    if (!copy)
        return WT_ENOMEM;
    memmove(s->sorted + at + 1, s->sorted + at, (s->n - at) * sizeof *s->sorted);
    *number = s->sorted[at] = (uint32_t)s->n;
    s->wafer[s->n++] = (struct wafer){.name = copy};
    return 0;
}

static int add_run(struct wt_survey *s, uint32_t wafer, uint64_t shard) {
    struct wafer *w = &s->wafer[wafer];
    struct run *last = w->last ? &s->run[w->last - 1] : NULL;
    if (last && shard < last->end) /* more samples of it in the same shard */
        return 0;
    if (last && shard == last->end) {
        last->end++;
        return 0;
    }
    if (s->n_runs >= RUNS_MAX)
        return WT_ERANGE;
    if (wt_grow(&s->run, &s->run_cap, s->n_runs + 1, sizeof *s->run) < 0)
        return WT_ENOMEM;
    s->run[s->n_runs++] = (struct run){.wafer = wafer, .first = shard, .end = shard + 1};
    w->last = s->n_runs;
    return 0;
}

int wt_survey_add(struct wt_survey *s, uint64_t shard, const struct wt_shard_index *index) {
    char last[WT_KEY_MAX] = "";
    uint32_t number = 0;
    int rc = 0;
    for (uint32_t i = 0; i < index->samples && rc == 0; i++) {
        const char *key = wt_shard_key(index, i), *slash = strchr(key, '/');
        const char *second = slash ? strchr(slash + 1, '/') : NULL;
        size_t len = second ? (size_t)(second - key) : 0;
        if (len == 0 || len >= sizeof last)
            continue; /* no writer makes such a key */
        if (strncmp(last, key, len) == 0 && last[len] == '\0')
            continue;
        memcpy(last, key, len);
        last[len] = '\0';
        rc = wafer_of(s, last, &number);
        if (rc == 0)
            rc = add_run(s, number, shard);
    }
    return rc;
}

/* ---- asking ---- */

void wt_selection_free(struct wt_selection *s) {
    free(s->range);
    *s = (struct wt_selection){0};
}

int wt_selection_add(struct wt_selection *out, uint64_t first, uint64_t end) {
    if (wt_grow(&out->range, &out->cap, out->n + 1, sizeof *out->range) < 0)
        return WT_ENOMEM;
    out->range[out->n++] = (struct wt_shard_range){.first = first, .end = end};
    return 0;
}

bool wt_selection_has(const struct wt_selection *s, uint64_t shard) {
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (s->range[mid].end <= shard)
            low = mid + 1;
        else
            high = mid;
    }
    return low < s->n && s->range[low].first <= shard;
}

bool wt_selection_next(const struct wt_selection *s, uint64_t *shard) {
    uint64_t want = *shard + 1; /* UINT64_MAX wraps to the first */
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (s->range[mid].end <= want)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == s->n)
        return false;
    *shard = want > s->range[low].first ? want : s->range[low].first;
    return true;
}

static int by_first(const void *a, const void *b) {
    const struct wt_shard_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Ascending, and one range where several overlap or touch. */
static void tidy(struct wt_selection *out) {
    size_t kept = 0;
    if (out->n)
        qsort(out->range, out->n, sizeof *out->range, by_first);
    for (size_t i = 0; i < out->n; i++) {
        struct wt_shard_range r = out->range[i];
        if (kept && r.first <= out->range[kept - 1].end) {
            uint64_t *end = &out->range[kept - 1].end;
            *end = r.end > *end ? r.end : *end;
        } else {
            out->range[kept++] = r;
        }
    }
    out->n = kept;
}

static int find(const struct wt_survey *s, const char *lot, const char *wafer,
                struct wt_selection *out) {
    char wanted[2 * WT_KEY_MAX];
    snprintf(wanted, sizeof wanted, "%s/%s", lot, wafer);
    size_t len = strlen(wanted);
    bool *in = wt_calloc(s->n, sizeof *in);
    if (!in)
        return WT_ENOMEM;
    size_t found = 0;
    for (size_t i = place_of(s, wanted); i < s->n; i++) {
        const char *name = s->wafer[s->sorted[i]].name;
        if (strncmp(name, wanted, len) != 0 || (wafer[0] && name[len]))
            break;
        in[s->sorted[i]] = true;
        found++;
    }
    int rc = found ? 0 : WT_EMISSING;
    for (size_t i = 0; i < s->n_runs && rc == 0; i++)
        if (in[s->run[i].wafer])
            rc = wt_selection_add(out, s->run[i].first, s->run[i].end);
    free(in);
    tidy(out);
    return rc;
}

int wt_survey_find(const struct wt_survey *s, const char *lot, const char *wafer,
                   struct wt_selection *out) {
    char lot_key[WT_KEY_MAX], wafer_key[WT_KEY_MAX] = "";
    int rc = find(s, lot, wafer, out);
    if (rc != WT_EMISSING || wt_key_escape(lot, lot_key, sizeof lot_key) < 0 ||
        (wafer[0] && wt_key_escape(wafer, wafer_key, sizeof wafer_key) < 0))
        return rc;
    return find(s, lot_key, wafer_key, out);
}
