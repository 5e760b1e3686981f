/*
 * Configuration files: every option stands in one table with type, default, range, unit and help
 * text. The table drives the parser (libconfuse), --print-config, the commented sample files and
 * the man page, so they cannot disagree.
 *
 *   tier "cold" { url = "file:///srv/cold" }        a titled section, may repeat
 *   log_level = "info"                              top level
 */
#ifndef WT_CORE_CONF_H
#define WT_CORE_CONF_H

#include "core/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* BOOL: bool; INT: int64_t; REAL: double; SIZE: uint64_t bytes ("64MiB"); TIME: uint64_t
 * milliseconds ("500ms", "10s", "5min", "2h", "7d"); TEXT: char[size], cut never: too long is an
 * error. */
enum wt_conf_type {
    WT_CONF_BOOL,
    WT_CONF_INT,
    WT_CONF_REAL,
    WT_CONF_SIZE,
    WT_CONF_TIME,
    WT_CONF_TEXT
};

struct wt_conf_opt {
    const char *section; /* NULL: top level. All options of one section stand together. A section
                            that the table's `sections` lacks is a plain one, `mover { ... }`: it
                            stands once and its offsets are in the target */
    const char *name;
    enum wt_conf_type type;
    size_t offset;    /* in the target struct (of the section's element, for a titled section) */
    size_t size;      /* TEXT: of the array */
    const char *def;  /* as one would write it; NULL: must be given */
    double min, max;  /* INT, REAL, SIZE (bytes), TIME (ms): inclusive; min = max = 0: any */
    const char *unit; /* for people: "bytes", "ms", "shards", "" */
    const char *help; /* one sentence or two */
    bool reloadable;  /* SIGHUP may change it */
};

struct wt_conf_section { /* a titled section that repeats, in file order */
    const char *name;
    size_t array;   /* offset of the element array in the target */
    size_t count;   /* offset of its size_t count */
    size_t element; /* size of an element */
    size_t max;     /* elements the array has room for */
    size_t title;   /* offset in the element of a char[64] for the title */
    const char *help;
};

struct wt_conf_table {
    const char *what; /* "wafertierd.conf" */
    const struct wt_conf_opt *opts;
    size_t n_opts;
    const struct wt_conf_section *sections;
    size_t n_sections;
    bool ignore_unknown; /* skip options and sections not in the table (a loader reads a daemon's
                            file) */
};

/* Fills *target (every option, and the whole array of each section) with defaults and the file's
 * values. Untouched on failure. Any thread. Errors name file, line, option, what was given and what
 * is allowed; an unknown option is refused with the nearest name.
 */
int wt_conf_load(const struct wt_conf_table *table, const char *path, void *target,
                 struct wt_err *err);
/* The same from text (`name` stands for the file in errors). */
int wt_conf_parse(const struct wt_conf_table *table, const char *name, const char *text,
                  void *target, struct wt_err *err);
/* A commented file: every option with help, unit, range, default; values from *target, or the
 * defaults where target is NULL. It parses back. */
void wt_conf_print(const struct wt_conf_table *table, const void *target, FILE *out);
/* Names of options that differ between a and b and are not reloadable, comma-separated; 0 when
 * there are none, WT_EINVAL else. */
int wt_conf_frozen(const struct wt_conf_table *table, const void *a, const void *b,
                   struct wt_err *err);

/* Names, as "policy.high", of the reloadable options that differ. */
typedef void (*wt_conf_name_fn)(void *arg, const char *name);
void wt_conf_changed(const struct wt_conf_table *table, const void *a, const void *b,
                     wt_conf_name_fn each, void *arg);

/* "500ms", "10s", "5min", "2h", "7d", a plain number is seconds. */
int wt_time_parse(const char *text, uint64_t *ms, struct wt_err *err);
/* The nearest of `names` to `word` by edit distance (<= 1 + len/3), or NULL. */
const char *wt_nearest(const char *word, const char *const *names, size_t n);

#endif
