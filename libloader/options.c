/*
 * Options come in as a struct with its size in front, so that programs built against an older
 * header keep working: what they lack is the default. One table of names serves wl_options_set.
 * Failures: WT_EINVAL, naming the option and what would do.
 */
#include "libloader/options.h"

#include "core/bytes.h"
#include "core/conf.h"
#include "core/mem.h"
#include "libloader/errors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum kind { KIND_TEXT, KIND_U64, KIND_U32, KIND_INT, KIND_SIZE, KIND_ENUM };

struct choice {
    const char *name;
    int value;
};

struct row {
    const char *name;
    enum kind kind;
    size_t offset;
    const struct choice *choices; /* ENUM; ends in a NULL name */
};

static const struct choice modes[] = {{"train", WL_MODE_TRAIN}, {"eval", WL_MODE_EVAL}, {NULL, 0}};
static const struct choice tails[] = {{"drop", WL_TAIL_DROP}, {"pad", WL_TAIL_PAD}, {NULL, 0}};
static const struct choice accels[] = {
    {"auto", WL_ACCEL_AUTO}, {"host", WL_ACCEL_HOST}, {"cuda", WL_ACCEL_CUDA}, {NULL, 0}};
static const struct choice bads[] = {
    {"fail", WL_BAD_FAIL}, {"substitute", WL_BAD_SUBSTITUTE}, {"mask", WL_BAD_MASK}, {NULL, 0}};

#define ROW(field, kind, choices)                                                                  \
    { #field, kind, offsetof(wl_options, field), choices }
static const struct row rows[] = {
    ROW(config, KIND_TEXT, NULL),    ROW(dataset, KIND_TEXT, NULL),
    ROW(generation, KIND_U64, NULL), ROW(batch, KIND_U64, NULL),
    ROW(epochs, KIND_U64, NULL),     ROW(seed, KIND_U64, NULL),
    ROW(rank, KIND_INT, NULL),       ROW(world, KIND_INT, NULL),
    ROW(mode, KIND_ENUM, modes),     ROW(tail, KIND_ENUM, tails),
    ROW(block, KIND_U64, NULL),      ROW(lanes, KIND_U32, NULL),
    ROW(window, KIND_U32, NULL),     ROW(slots, KIND_U32, NULL),
    ROW(threads, KIND_INT, NULL),    ROW(memory, KIND_SIZE, NULL),
    ROW(accel, KIND_ENUM, accels),   ROW(device, KIND_INT, NULL),
    ROW(fields, KIND_TEXT, NULL),    ROW(bad, KIND_ENUM, bads),
    ROW(bad_max, KIND_U64, NULL),    ROW(job, KIND_TEXT, NULL),
    ROW(timeout_ms, KIND_INT, NULL), ROW(verify_every_read, KIND_INT, NULL),
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

static int unknown_name(const char *name) {
    const char *names[N_ROWS];
    for (size_t i = 0; i < N_ROWS; i++)
        names[i] = rows[i].name;
    const char *near = wt_nearest(name, names, N_ROWS);
    return wt_error_set(wt_error_thread(), WL_ERROR_INVALID, "unknown option '%s'%s%s%s", name,
                        near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int bad_value(const char *name, const char *value, const char *wanted) {
    return wt_error_set(wt_error_thread(), WL_ERROR_INVALID, "option '%s' is '%s': %s is wanted",
                        name, value, wanted);
}

static int set_number(const struct row *row, char *at, const char *value) {
    char *end;
    errno = 0;
    if (row->kind == KIND_INT) {
        long v = strtol(value, &end, 10);
        if (errno || end == value || *end || v < -1 || v > INT32_MAX)
            return bad_value(row->name, value, "a whole number from -1 on");
        int n = (int)v;
        memcpy(at, &n, sizeof n);
        return WL_OK;
    }
    unsigned long long v = strtoull(value, &end, 10);
    if (errno || end == value || *end || strchr(value, '-') ||
        (row->kind == KIND_U32 && v > UINT32_MAX))
        return bad_value(row->name, value, "a whole number from 0 on");
    if (row->kind == KIND_U32) {
        uint32_t n = (uint32_t)v;
        memcpy(at, &n, sizeof n);
    } else {
        uint64_t n = v;
        memcpy(at, &n, sizeof n);
    }
    return WL_OK;
}

static int set_enum(const struct row *row, char *at, const char *value) {
    char wanted[64] = "";
    for (const struct choice *c = row->choices; c->name; c++) {
        if (strcmp(c->name, value) == 0) {
            memcpy(at, &c->value, sizeof c->value);
            return WL_OK;
        }
        if (wanted[0])
            strcat(wanted, " or ");
        strcat(wanted, c->name);
    }
    return bad_value(row->name, value, wanted);
}

static size_t row_size(enum kind kind) {
    switch (kind) {
    case KIND_TEXT:
        return sizeof(char *);
    case KIND_U64:
    case KIND_SIZE:
        return sizeof(uint64_t);
    case KIND_U32:
    case KIND_INT:
    case KIND_ENUM:
        break;
    }
    return sizeof(uint32_t);
}

wl_options *wl_options_new(void) {
    wl_options *options = wt_calloc(1, sizeof *options);
    if (options)
        *options = (wl_options)WL_OPTIONS_INIT;
    return options;
}

void wl_options_free(wl_options *options) {
    free(options);
}

int wl_options_set(wl_options *options, const char *name, const char *value) {
    if (!options || !name || !value)
        return wt_error_set(wt_error_thread(), WL_ERROR_INVALID,
                            "wl_options_set: options, name and value are needed");
    const struct row *row = NULL;
    for (size_t i = 0; i < N_ROWS && !row; i++)
        if (strcmp(rows[i].name, name) == 0)
            row = &rows[i];
    if (!row)
        return unknown_name(name);
    if (row->offset + row_size(row->kind) > options->size)
        return wt_error_set(wt_error_thread(), WL_ERROR_INVALID,
                            "option '%s' is newer than this program's wl_options: build it anew "
                            "with the header of this library (%s)",
                            name, WAFERTIER_VERSION_STRING);
    char *at = (char *)options + row->offset;
    struct wt_err err = {0};
    uint64_t bytes;
    switch (row->kind) {
    case KIND_TEXT:
        memcpy(at, &value, sizeof value);
        return WL_OK;
    case KIND_ENUM:
        return set_enum(row, at, value);
    case KIND_SIZE:
        if (wt_size_parse(value, &bytes, &err) < 0)
            return bad_value(name, value, "a size such as 4GiB");
        memcpy(at, &bytes, sizeof bytes);
        return WL_OK;
    case KIND_U64:
    case KIND_U32:
    case KIND_INT:
        break;
    }
    return set_number(row, at, value);
}

/* A newer program may hand a longer struct: fine as long as what we do not know is zero. */
static int take_sized(void *out, size_t out_size, const void *in, size_t in_size, size_t least,
                      const char *what, struct wt_err *err) {
    if (in_size < least || in_size > (size_t)64 << 10)
        return wt_err_set(err, WT_EINVAL, "%s has size %zu: initialise it with its _INIT macro",
                          what, in_size);
    const char *bytes = in;
    for (size_t i = out_size; i < in_size; i++)
        if (bytes[i])
            return wt_err_set(err, WT_EUNSUPPORTED,
                              "%s sets an option that this library (%s) does not know", what,
                              WAFERTIER_VERSION_STRING);
    memcpy(out, in, in_size < out_size ? in_size : out_size);
    return 0;
}

static int check_enum(const char *name, int value, const struct choice *choices,
                      struct wt_err *err) {
    for (const struct choice *c = choices; c->name; c++)
        if (c->value == value)
            return 0;
    return wt_err_set(err, WT_EINVAL, "option '%s' has the value %d, which means nothing", name,
                      value);
}

static int check_range(const char *name, uint64_t value, uint64_t min, uint64_t max,
                       struct wt_err *err) {
    if (value < min || value > max)
        return wt_err_set(err, WT_EINVAL, "option '%s' is %llu: from %llu to %llu is allowed", name,
                          (unsigned long long)value, (unsigned long long)min,
                          (unsigned long long)max);
    return 0;
}

static int check_options(const wl_options *o, struct wt_err *err) {
    if (!o->dataset || !o->dataset[0])
        return wt_err_set(err, WT_EINVAL, "option 'dataset' is required: the name of a data set");
    if (o->batch == 0)
        return wt_err_set(err, WT_EINVAL,
                          "option 'batch' is required: samples of the global batch");
    int rc = check_enum("mode", (int)o->mode, modes, err);
    if (!rc)
        rc = check_enum("tail", (int)o->tail, tails, err);
    if (!rc)
        rc = check_enum("accel", (int)o->accel, accels, err);
    if (!rc)
        rc = check_enum("bad", (int)o->bad, bads, err);
    if (!rc)
        rc = check_range("batch", o->batch, 1, UINT64_C(1) << 32, err);
    if (!rc && o->slots)
        rc = check_range("slots", o->slots, 2, 1024, err);
    if (!rc && o->timeout_ms < 0)
        rc = wt_err_set(err, WT_EINVAL,
                        "option 'timeout_ms' is %d: 0 (the default) or more is wanted",
                        o->timeout_ms);
    if (!rc && (o->threads < 0 || o->threads > 256))
        rc = wt_err_set(err, WT_EINVAL, "option 'threads' is %d: from 0 (chosen) to 256 is allowed",
                        o->threads);
    return rc;
}

int wt_options_take(const wl_options *in, wl_options *out, struct wt_err *err) {
    wl_options full = WL_OPTIONS_INIT;
    if (!in)
        return wt_err_set(err, WT_EINVAL, "options are needed: at least dataset and batch");
    int rc = take_sized(&full, sizeof full, in, in->size, offsetof(wl_options, epochs),
                        "wl_options", err);
    if (!rc)
        rc = check_options(&full, err);
    if (rc)
        return rc;
    full.size = sizeof full;
    if (!full.slots)
        full.slots = 4;
    if (!full.timeout_ms)
        full.timeout_ms = 60000;
    *out = full;
    return 0;
}

int wt_context_options_take(const wl_context_options *in, wl_context_options *out,
                            struct wt_err *err) {
    wl_context_options full = WL_CONTEXT_OPTIONS_INIT;
    int rc = in ? take_sized(&full, sizeof full, in, in->size, offsetof(wl_context_options, memory),
                             "wl_context_options", err)
                : 0;
    if (!rc && (full.threads < 0 || full.threads > 256))
        rc = wt_err_set(err, WT_EINVAL, "option 'threads' is %d: from 0 (chosen) to 256 is allowed",
                        full.threads);
    if (rc)
        return rc;
    full.size = sizeof full;
    *out = full;
    return 0;
}
