/* Traces: read, and replayed against the frequency policy; see run.h. */
#include "core/bytes.h"
#include "core/mem.h"
#include "daemon/heat.h"
#include "tools/sim/run.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD = 24, LINE = 4096, FIRST_CAP = 1024, PASS_MIN = 1000, PASS_PART = 20 };

struct names { /* object names to numbers: open addressing */
    uint64_t *key;
    uint32_t *number; /* + 1; 0: free */
    size_t cap;
};

struct loader {
    struct wt_sim_load *load;
    struct names names;
    const char *path;
    double first; /* time */
};

void wt_sim_load_free(struct wt_sim_load *load) {
    free(load->size);
    free(load->object);
    free(load->time);
    *load = (struct wt_sim_load){0};
}

/* ---- names ---- */

static size_t slot_of(const struct names *n, uint64_t key) {
    size_t i = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (n->cap - 1);
    while (n->number[i] && n->key[i] != key)
        i = (i + 1) & (n->cap - 1);
    return i;
}

static int names_grow(struct names *n) {
    struct names more = {.cap = n->cap ? n->cap * 2 : FIRST_CAP};
    more.key = wt_calloc(more.cap, sizeof *more.key);
    more.number = wt_calloc(more.cap, sizeof *more.number);
    if (!more.key || !more.number) {
        free(more.key);
        free(more.number);
        return WT_ENOMEM;
    }
    for (size_t i = 0; i < n->cap; i++) {
        if (!n->number[i])
            continue;
        size_t at = slot_of(&more, n->key[i]);
        more.key[at] = n->key[i];
        more.number[at] = n->number[i];
    }
    free(n->key);
    free(n->number);
    *n = more;
    return 0;
}

static int add(struct loader *l, double time, uint64_t key, uint64_t size, struct wt_err *err) {
    struct wt_sim_load *o = l->load;
    if (o->n >= UINT32_MAX - 1)
        return wt_err_set(err, WT_ERANGE, "%s has more than 2^32 requests: cut it", l->path);
    if ((o->objects + UINT64_C(1)) * 2 > l->names.cap && names_grow(&l->names) < 0)
        return wt_err_set(err, WT_ENOMEM, "%s: out of memory", l->path);
    size_t slot = slot_of(&l->names, key);
    size = size ? size : 1;
    if (!l->names.number[slot]) {
        if (wt_grow(&o->size, &o->size_cap, (size_t)o->objects + 1, sizeof *o->size) < 0)
            return wt_err_set(err, WT_ENOMEM, "%s: out of memory", l->path);
        if (size > INT64_MAX - o->bytes)
            return wt_err_set(err, WT_ERANGE, "%s: the objects have more than 2^63 bytes", l->path);
        o->size[o->objects] = size;
        o->bytes += size;
        l->names.key[slot] = key;
        l->names.number[slot] = ++o->objects;
    }
    if (wt_grow(&o->object, &o->cap, o->n + 1, sizeof *o->object) < 0 ||
        wt_grow(&o->time, &o->time_cap, o->n + 1, sizeof *o->time) < 0)
        return wt_err_set(err, WT_ENOMEM, "%s: out of memory", l->path);
    if (o->n == 0)
        l->first = time;
    time -= l->first;
    if (o->n && time < o->time[o->n - 1])
        return wt_err_set(err, WT_EFORMAT, "%s: request %llu is earlier than the one before it",
                          l->path, (unsigned long long)o->n + 1);
    o->object[o->n] = l->names.number[slot] - 1;
    o->time[o->n++] = time;
    return 0;
}

/* ---- files ---- */

static uint64_t name_key(const char *name, size_t len) { /* FNV-1a */
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)name[i]) * UINT64_C(0x100000001b3);
    return h;
}

static int parse_line(struct loader *l, const char *line, uint64_t number, struct wt_err *err) {
    char *end, *last;
    const char *p = line + strspn(line, " \t\r\n");
    if (!*p || *p == '#')
        return 0;
    errno = 0;
    double time = strtod(p, &end);
    const char *name = end + strspn(end, " \t,");
    size_t len = strcspn(name, " \t,\r\n");
    const char *digits = name + len + strspn(name + len, " \t,");
    unsigned long long size = strtoull(digits, &last, 10);
    if (end == p || name == end || len == 0 || !isdigit((unsigned char)*digits) || errno ||
        last[strspn(last, " \t\r\n")] || !(time >= 0 && time < 4e9))
        return wt_err_set(
            err, WT_EFORMAT,
            "%s line %llu: a line is: time (seconds, 0 to 4e9), object, size in bytes", l->path,
            (unsigned long long)number);
    return add(l, time, name_key(name, len), size, err);
}

static int read_text(struct loader *l, FILE *in, struct wt_err *err) {
    char line[LINE];
    uint64_t number = 0;
    int rc = 0;
    while (rc == 0 && fgets(line, sizeof line, in)) {
        number++;
        if (strlen(line) == sizeof line - 1 && line[sizeof line - 2] != '\n')
            return wt_err_set(err, WT_EFORMAT, "%s line %llu has more than %d bytes", l->path,
                              (unsigned long long)number, LINE - 2);
        rc = parse_line(l, line, number, err);
    }
    return rc;
}

static int read_binary(struct loader *l, FILE *in, struct wt_err *err) {
    uint8_t r[RECORD];
    size_t got;
    int rc = 0;
    while (rc == 0 && (got = fread(r, 1, sizeof r, in)) > 0) {
        if (got < sizeof r)
            return wt_err_set(err, WT_EFORMAT, "%s is cut: record %llu has %zu of %d bytes",
                              l->path, (unsigned long long)l->load->n + 1, got, RECORD);
        rc = add(l, wt_get32(r), wt_get64(r + 4), wt_get32(r + 12), err);
    }
    return rc;
}

int wt_sim_load_trace(const char *path, bool binary, struct wt_sim_load *load, struct wt_err *err) {
    struct loader l = {.load = load, .path = path};
    FILE *in = fopen(path, "rb");
    if (!in)
        return wt_err_sys(err, errno, "%s", path);
    int rc = binary ? read_binary(&l, in, err) : read_text(&l, in, err);
    if (rc == 0 && ferror(in))
        rc = wt_err_sys(err, EIO, "reading %s", path);
    if (rc == 0 && load->n == 0)
        rc = wt_err_set(err, WT_EFORMAT, "%s has no requests", path);
    load->from = load->n / 4;
    fclose(in);
    free(l.names.key);
    free(l.names.number);
    return rc;
}

/* ---- replay ---- */

int wt_sim_run_trace(struct wt_world *w, const struct wt_sim_load *load, struct wt_err *err) {
    (void)err;
    uint64_t each = load->objects / PASS_PART > PASS_MIN ? load->objects / PASS_PART : PASS_MIN;
    uint64_t bytes = 0;
    each = each < load->n / 100 + 1 ? each : load->n / 100 + 1;
    for (uint64_t i = 0; i < load->n; i++) {
        double now = load->time[i] + 1;
        if (i % each == 0 && i) {
            w->half_life = wt_heat_half_life(0, load->bytes, (double)bytes / now);
            wt_world_pass(w, now);
        }
        if (i == load->from)
            w->count = (struct wt_world_count){0};
        wt_world_read(w, load->object[i], now);
        bytes += load->size[load->object[i]];
    }
    return 0;
}
