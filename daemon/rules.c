/*
 * Pins and quotas in force; see rules.h. The file is written by a worker of the loop, one at a
 * time; who asks meanwhile waits for the next write.
 */
#include "daemon/rules.h"

#include "core/mem.h"
#include "daemon/rules_file.h"
#include "daemon/state_file.h"
#include "daemon/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct saver {
    struct saver *next;
    wt_rules_done done;
    void *arg;
};

enum { SLICE = 16384 /* shards: a millisecond */, COLD_MAX = 4 << 20 };

struct wt_rules {
    struct wt_rules_opts o;
    struct wt_rule_list list;
    uv_timer_t timer; /* gives shards their pins */
    struct wt_whole cold;
    bool unread; /* the cold tier's are not known */
    bool inheriting;
    char unread_why[WT_ERR_TEXT];
    bool told; /* ... and somebody was told */
    bool push; /* ours are later, or the cold tier has none: it is to get them */
    int dir;
    uv_work_t work;
    bool writing;
    char *text;
    size_t len;
    int rc;
    struct wt_err err;
    struct saver *now, *later; /* who waits for this write, and for the next */
    void (*stopped)(void *arg);
    void *stopped_arg;
};

/* ---- open ---- */

static void set_aside(struct wt_rules *r, const struct wt_err *err) {
    char aside[64];
    for (unsigned i = 1; i < 1000; i++) {
        snprintf(aside, sizeof aside, WT_RULES_NAME ".damaged-%u", i);
        if (faccessat(r->dir, aside, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            break;
    }
    if (renameat(r->dir, WT_RULES_NAME, r->dir, aside) < 0)
        snprintf(aside, sizeof aside, "(it cannot be renamed)");
    wt_log(r->o.log, WT_LOG_WARN,
           "%s/" WT_RULES_NAME " %s; set aside as %s: no pins and no quotas are in force",
           r->o.folder, err->text, aside);
}

/* Into *list, which is empty on failure. */
static int load(struct wt_rules *r, struct wt_rule_list *list, struct wt_err *err) {
    uint8_t *data;
    size_t len, dropped = 0;
    struct wt_err why = {0};
    *list = (struct wt_rule_list){0};
    int rc = wt_state_read(r->dir, WT_RULES_NAME, &data, &len, &why);
    if (rc == WT_EMISSING)
        return 0;
    if (rc == 0) {
        rc = wt_rules_parse((const char *)data, len, r->o.tier, r->o.n_tiers, list, &dropped, &why);
        free(data);
    }
    if (rc == WT_ENOMEM)
        return wt_err_set(err, rc, "%s/" WT_RULES_NAME ": out of memory", r->o.folder);
    if (rc < 0)
        set_aside(r, &why);
    if (dropped)
        wt_log(r->o.log, WT_LOG_WARN, "%zu pins and quotas are of tiers that are no more: dropped",
               dropped);
    return 0;
}

static bool may_write(void *arg) {
    const struct wt_rules *r = arg;
    return r->o.may(r->o.arg);
}

int wt_rules_open(const struct wt_rules_opts *opts, struct wt_rules **out, struct wt_err *err) {
    struct wt_rules *r = wt_calloc(1, sizeof *r);
    if (!r)
        return wt_err_set(err, WT_ENOMEM, "pins and quotas: out of memory");
    r->o = *opts;
    r->work.data = r;
    r->unread = true;
    r->cold = (struct wt_whole){.tier = opts->cold,
                                .key = WT_RULES_KEY,
                                .most = COLD_MAX,
                                .may = opts->may ? may_write : NULL,
                                .arg = r};
    r->dir = open(opts->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = r->dir < 0 ? wt_err_sys(err, errno, "state_folder %s: cannot be opened", opts->folder)
                        : load(r, &r->list, err);
    if (rc < 0) {
        wt_rules_free(r);
        return rc;
    }
    uv_timer_init(opts->loop, &r->timer);
    r->timer.data = r;
    *out = r;
    return 0;
}

void wt_rules_free(struct wt_rules *r) {
    if (!r)
        return;
    wt_rule_list_free(&r->list);
    if (r->dir >= 0)
        close(r->dir);
    free(r->text);
    free(r);
}

/* ---- applying ---- */

static bool same_selector(const struct wt_selector *a, const struct wt_selector *b) {
    return strcmp(a->dataset, b->dataset) == 0 && strcmp(a->lot, b->lot) == 0 &&
           strcmp(a->wafer, b->wafer) == 0;
}

/* Is b the same as a, or a part of it? */
static bool within(const struct wt_selector *a, const struct wt_selector *b) {
    return strcmp(a->dataset, b->dataset) == 0 && (!a->lot[0] || strcmp(a->lot, b->lot) == 0) &&
           (!a->wafer[0] || strcmp(a->wafer, b->wafer) == 0);
}

static struct wt_pin *find_pin(struct wt_rules *r, const struct wt_selector *s, uint32_t tier) {
    for (size_t i = 0; i < r->list.n_pins; i++)
        if (r->list.pin[i]->tier == tier && same_selector(&r->list.pin[i]->selector, s))
            return r->list.pin[i];
    return NULL;
}

/* The tiers of shards [first, first + n) by the pins; false: some pin is not known yet. */
static bool pins_of(const struct wt_rules *r, const struct wt_catalog_set *set, uint64_t first,
                    uint64_t n, uint8_t *mask) {
    bool all_known = true;
    memset(mask, 0, n);
    for (size_t i = 0; i < r->list.n_pins; i++) {
        const struct wt_pin *p = r->list.pin[i];
        if (strcmp(p->selector.dataset, set->d.m.name) != 0)
            continue;
        all_known = all_known && p->known;
        for (uint64_t s = first - 1; wt_selection_next(&p->selection, &s) && s < first + n;)
            mask[s - first] |= (uint8_t)(1u << p->tier);
    }
    return all_known;
}

/* While some pin is not known yet, what a snapshot remembered is added to, not taken away. */
static void refresh_slice(struct wt_rules *r, struct wt_catalog_set *set) {
    uint8_t mask[SLICE];
    uint64_t first = set->pins_at, left = set->d.m.shards - first;
    uint64_t n = left < SLICE ? left : SLICE;
    bool all_known = pins_of(r, set, first, n, mask);
    for (uint64_t s = first; s < first + n; s++) {
        uint8_t pin = all_known ? mask[s - first] : mask[s - first] | set->shard[s].pin;
        wt_catalog_keep(r->o.catalog, set, s, pin, set->shard[s].want);
    }
    set->pins_at += n;
    if (set->pins_at < set->d.m.shards)
        return;
    set->pins_due = false;
    r->o.changed(r->o.arg);
}

static void on_timer(uv_timer_t *timer) {
    struct wt_rules *r = timer->data;
    struct wt_catalog *c = r->o.catalog;
    size_t i = 0;
    while (i < c->n_sets && !(c->set[i]->pins_due && !c->set[i]->retired))
        i++;
    if (i == c->n_sets)
        return;
    refresh_slice(r, c->set[i]);
    uv_timer_start(&r->timer, on_timer, 1, 0);
}

/* Gives each shard of the set the tiers that its pins say: some at once, the rest of many soon. */
static void refresh(struct wt_rules *r, struct wt_catalog_set *set) {
    set->pins_at = 0;
    set->pins_due = true;
    refresh_slice(r, set);
    if (set->pins_due)
        uv_timer_start(&r->timer, on_timer, 1, 0);
}

struct question { /* asked of the places */
    struct wt_rules *r;
    struct wt_selector selector;
    uint32_t tier;
};

static void on_selected(void *arg, int rc, const struct wt_err *err, struct wt_catalog_set *set,
                        struct wt_selection *selection) {
    struct question *q = arg;
    struct wt_rules *r = q->r;
    struct wt_pin *p = find_pin(r, &q->selector, q->tier);
    if (rc < 0 && rc != WT_EMISSING && rc != WT_ECANCELED)
        wt_log(r->o.log, WT_LOG_WARN, "a pin cannot be applied yet: %s", err->text);
    if (p && rc == 0) {
        wt_selection_free(&p->selection);
        p->selection = *selection;
        p->known = true;
    } else if (selection) {
        wt_selection_free(selection);
    }
    if (p && rc == WT_EMISSING) { /* this generation has no such lot or wafer */
        wt_selection_free(&p->selection);
        p->known = true;
        set = wt_catalog_find(r->o.catalog, q->selector.dataset, 0);
    }
    if (p && p->known && set)
        refresh(r, set);
    free(q);
}

static void ask(struct wt_rules *r, const struct wt_pin *p) {
    struct question *q = wt_calloc(1, sizeof *q);
    if (!q)
        return; /* asked again by retry */
    *q = (struct question){.r = r, .selector = p->selector, .tier = p->tier};
    wt_places_select(r->o.places, &q->selector, on_selected, q);
}

void wt_rules_apply(struct wt_rules *r, struct wt_catalog_set *set) {
    const char *name = set->d.m.name;
    for (size_t i = 0; i < r->list.n_quotas; i++)
        if (strcmp(r->list.quota[i].dataset, name) == 0)
            wt_catalog_quota(set, r->list.quota[i].tier, r->list.quota[i].bytes);
    for (size_t i = 0; i < r->list.n_pins; i++)
        if (strcmp(r->list.pin[i]->selector.dataset, name) == 0)
            r->list.pin[i]->known = false;
    for (size_t i = 0; i < r->list.n_pins; i++)
        if (strcmp(r->list.pin[i]->selector.dataset, name) == 0)
            ask(r, r->list.pin[i]);
}

static void apply_all(struct wt_rules *r) {
    for (size_t i = 0; i < r->o.catalog->n_sets; i++) {
        struct wt_catalog_set *set = r->o.catalog->set[i];
        for (uint32_t t = 1; t < r->o.n_tiers && !set->retired; t++)
            wt_catalog_quota(set, t, UINT64_MAX);
        if (set->retired)
            continue;
        refresh(r, set); /* none is known yet: nothing is taken away */
        wt_rules_apply(r, set);
    }
}

static void write_next(struct wt_rules *r);

/* What the cold tier has, where that is later than what we have. */
static void take_cold(struct wt_rules *r) {
    struct wt_rule_list list;
    struct wt_err why = {0};
    size_t dropped = 0;
    int rc =
        wt_rules_parse(r->cold.text, r->cold.len, r->o.tier, r->o.n_tiers, &list, &dropped, &why);
    free(r->cold.text);
    if (rc < 0) {
        wt_log(r->o.log, WT_LOG_WARN,
               "%s in tier %s %s: the pins and quotas of %s/" WT_RULES_NAME " are in force",
               WT_RULES_KEY, wt_tier_name(r->o.cold), why.text, r->o.folder);
        return;
    }
    r->push = list.change < r->list.change;
    if (r->push) {
        wt_rule_list_free(&list);
        return;
    }
    if (list.change > r->list.change)
        wt_log(r->o.log, WT_LOG_INFO, "%zu pins and %zu quotas are taken over from tier %s",
               list.n_pins, list.n_quotas, wt_tier_name(r->o.cold));
    wt_rule_list_free(&r->list);
    r->list = list;
    apply_all(r);
}

static void on_cold_read(void *arg, int rc, const struct wt_err *err) {
    struct wt_rules *r = arg;
    if (rc == 0)
        take_cold(r);
    else if (rc == WT_EMISSING)
        r->push = r->list.n_pins + r->list.n_quotas > 0;
    r->unread = rc < 0 && rc != WT_EMISSING;
    if (r->unread && rc != WT_ECANCELED && !r->told) {
        wt_log(r->o.log, WT_LOG_WARN,
               "pins and quotas cannot be read from the cold tier, tried again later: %s",
               err->text);
        r->told = true;
    }
    snprintf(r->unread_why, sizeof r->unread_why, "%s", r->unread ? err->text : "");
    if (r->inheriting && !r->stopped)
        r->o.inherited(r->o.arg);
    r->inheriting = false;
    write_next(r);
}

static void read_cold(struct wt_rules *r) {
    if (r->cold.busy || r->writing || r->stopped)
        return; /* a write's end comes back here */
    r->cold.done = on_cold_read;
    wt_whole_read(&r->cold);
}

void wt_rules_inherit(struct wt_rules *r) {
    r->unread = r->inheriting = true;
    r->told = false;
    snprintf(r->unread_why, sizeof r->unread_why, "they are just being read");
    read_cold(r);
}

int wt_rules_may_change(const struct wt_rules *r, struct wt_err *err) {
    if (!r->unread)
        return 0;
    return wt_err_set(err, WT_EBUSY,
                      "pins and quotas cannot be changed before those in the cold tier were read: "
                      "%s; try again",
                      r->unread_why);
}

void wt_rules_retry(struct wt_rules *r) {
    if (r->unread)
        read_cold(r);
    for (size_t i = 0; i < r->list.n_pins; i++)
        if (!r->list.pin[i]->known &&
            wt_catalog_find(r->o.catalog, r->list.pin[i]->selector.dataset, 0))
            ask(r, r->list.pin[i]);
}

/* ---- changes ---- */

static void refresh_named(struct wt_rules *r, const char *dataset) {
    struct wt_catalog_set *set = wt_catalog_find(r->o.catalog, dataset, 0);
    if (set)
        refresh(r, set);
}

const struct wt_pin *wt_rules_pin(struct wt_rules *r, const struct wt_selector *selector,
                                  uint32_t tier, uint64_t time, struct wt_selection *selection,
                                  struct wt_err *err) {
    struct wt_pin *p = find_pin(r, selector, tier);
    if (!p && r->list.n_pins >= WT_RULES_MAX) {
        wt_err_set(err, WT_EBUSY, "there are %d pins, the most there can be; unpin some",
                   WT_RULES_MAX);
        return NULL;
    }
    if (!p) {
        p = wt_rule_list_add_pin(&r->list);
        if (!p) {
            wt_err_set(err, WT_ENOMEM, "no memory for a pin");
            return NULL;
        }
        p->selector = *selector;
        p->tier = tier;
        p->time = time;
    }
    wt_selection_free(&p->selection);
    p->selection = *selection;
    *selection = (struct wt_selection){0};
    p->known = true;
    refresh_named(r, selector->dataset);
    return p;
}

size_t wt_rules_unpin(struct wt_rules *r, const struct wt_selector *selector, uint8_t tiers) {
    size_t kept = 0, removed = 0;
    for (size_t i = 0; i < r->list.n_pins; i++) {
        struct wt_pin *p = r->list.pin[i];
        if ((tiers & (1u << p->tier)) && within(selector, &p->selector)) {
            wt_selection_free(&p->selection);
            free(p);
            removed++;
        } else {
            r->list.pin[kept++] = p;
        }
    }
    r->list.n_pins = kept;
    if (removed)
        refresh_named(r, selector->dataset);
    return removed;
}

int wt_rules_quota(struct wt_rules *r, const char *dataset, uint32_t tier, uint64_t bytes,
                   struct wt_err *err) {
    struct wt_rule_list *l = &r->list;
    size_t i = 0;
    while (i < l->n_quotas &&
           (l->quota[i].tier != tier || strcmp(l->quota[i].dataset, dataset) != 0))
        i++;
    struct wt_quota q = {.tier = tier, .bytes = bytes};
    snprintf(q.dataset, sizeof q.dataset, "%s", dataset);
    if (i == l->n_quotas && bytes != UINT64_MAX) {
        if (l->n_quotas >= WT_RULES_MAX)
            return wt_err_set(err, WT_EBUSY, "there are %d quotas, the most there can be",
                              WT_RULES_MAX);
        if (wt_rule_list_add_quota(l, &q) < 0)
            return wt_err_set(err, WT_ENOMEM, "no memory for a quota");
    } else if (i < l->n_quotas && bytes != UINT64_MAX) {
        l->quota[i] = q;
    } else if (i < l->n_quotas) {
        l->quota[i] = l->quota[--l->n_quotas];
    }
    struct wt_catalog_set *set = wt_catalog_find(r->o.catalog, dataset, 0);
    if (set)
        wt_catalog_quota(set, tier, bytes);
    r->o.changed(r->o.arg);
    return 0;
}

size_t wt_rules_pins(const struct wt_rules *r, const struct wt_pin *const **list) {
    *list = (const struct wt_pin *const *)r->list.pin;
    return r->list.n_pins;
}

size_t wt_rules_quotas(const struct wt_rules *r, const struct wt_quota **list) {
    *list = r->list.quota;
    return r->list.n_quotas;
}

/* ---- saving ---- */

static void answer(struct saver *list, int rc, const struct wt_err *err) {
    while (list) {
        struct saver *s = list;
        list = s->next;
        s->done(s->arg, rc, err);
        free(s);
    }
}

static void work(uv_work_t *w) {
    struct wt_rules *r = w->data;
    r->err = (struct wt_err){0};
    r->rc = wt_state_write(r->dir, WT_RULES_NAME, r->text, r->len, &r->err);
}

static void written(struct wt_rules *r) {
    struct saver *list = r->now;
    r->writing = false;
    r->now = NULL;
    answer(list, r->rc, &r->err);
    if (r->inheriting)
        read_cold(r);
    else
        write_next(r);
}

static void on_cold_written(void *arg, int rc, const struct wt_err *err) {
    struct wt_rules *r = arg;
    r->rc = rc;
    r->err = *err;
    if (rc < 0)
        wt_err_wrap(&r->err, "it holds until this daemon stops, but another one that takes over "
                             "does not know it");
    written(r);
}

static void worked(uv_work_t *w, int status) {
    struct wt_rules *r = w->data;
    if (status < 0 && r->rc == 0)
        r->rc = wt_err_set(&r->err, WT_ECANCELED, "canceled");
    if (r->rc == 0) {
        r->cold.done = on_cold_written;
        wt_whole_write(&r->cold, r->text, r->len);
        return;
    }
    wt_err_wrap(&r->err, "it holds until the daemon stops, but is not kept: %s/" WT_RULES_NAME,
                r->o.folder);
    written(r);
}

static void on_closed(uv_handle_t *h) {
    struct wt_rules *r = h->data;
    r->stopped(r->stopped_arg); /* may free r */
}

static void write_next(struct wt_rules *r) {
    if (!r->writing && !r->cold.busy && (r->later || r->push) && !r->stopped) {
        struct wt_err err;
        struct saver *list = r->later;
        r->later = NULL;
        r->push = false;
        r->list.change++;
        free(r->text);
        r->text = wt_rules_format(&r->list, r->o.tier, &r->len);
        r->now = list;
        r->writing = r->text && uv_queue_work(r->o.loop, &r->work, work, worked) == 0;
        if (!r->writing) {
            r->now = NULL;
            answer(list,
                   wt_err_set(&err, WT_ENOMEM, "no memory to write %s/" WT_RULES_NAME, r->o.folder),
                   &err);
        }
    }
    if (!r->writing && !r->cold.busy && r->stopped && !uv_is_closing((uv_handle_t *)&r->timer))
        uv_close((uv_handle_t *)&r->timer, on_closed);
}

void wt_rules_save(struct wt_rules *r, wt_rules_done done, void *arg) {
    struct wt_err err;
    struct saver *s = wt_calloc(1, sizeof *s);
    if (!s) {
        done(arg, wt_err_set(&err, WT_ENOMEM, "no memory to write the rules"), &err);
        return;
    }
    *s = (struct saver){.next = r->later, .done = done, .arg = arg};
    r->later = s;
    write_next(r);
}

void wt_rules_stop(struct wt_rules *r, void (*stopped)(void *arg), void *arg) {
    r->stopped = stopped;
    r->stopped_arg = arg;
    r->inheriting = false;
    wt_whole_cancel(&r->cold);
    write_next(r);
}
