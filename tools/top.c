/*
 * `wafertier top`: the whole picture, live, on a full screen.
 *
 * Happy path: a thread asks the daemon, the screen follows; q ends it. Failures: the daemon goes
 * away: the screen says so and goes on trying; a signal or a lost terminal ends it, with the
 * terminal as it was.
 */
#include "tools/daemon.h"
#include "tools/top/draw.h"
#include "tools/top/term.h"

#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct top_args {
    struct wt_daemon_opts daemon;
    uint64_t interval_ms;
    const char *size;
    bool once;
};

static const struct wt_arg args[] = {
    WT_DAEMON_ARGS(struct top_args, daemon),
    {.name = "interval",
     .letter = 'i',
     .type = WT_ARG_TIME,
     .offset = offsetof(struct top_args, interval_ms),
     .value = "TIME",
     .min = 100,
     .max = 3600000,
     .help = "between two looks (1s)"},
    {.name = "once",
     .letter = '1',
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct top_args, once),
     .help = "print one screen as text, after one interval, and end"},
    {.name = "size",
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct top_args, size),
     .value = "COLUMNSxROWS",
     .help = "with --once: how large it is (the terminal's, else 80x24)"},
};

static bool utf8_locale(void) {
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* ---- one screen as text ---- */

static int parse_size(const char *text, unsigned *columns, unsigned *rows) {
    char rest;
    wt_term_size(columns, rows);
    if (!text)
        return 0;
    return sscanf(text, "%4ux%4u%c", columns, rows, &rest) == 2 && *columns >= 20 &&
                   *columns <= WT_PAGE_COLUMNS_MAX && *rows >= 5 && *rows <= WT_PAGE_ROWS_MAX
               ? 0
               : WT_EINVAL;
}

static void print_page(const struct wt_page *f) {
    struct wt_bytes line = {0};
    for (unsigned row = 0; row < f->n; row++) {
        line.len = 0;
        if (wt_page_encode(wt_page_at(f, row), false, &line) == 0) {
            while (line.len && line.data[line.len - 1] == ' ')
                line.len--;
            printf("%.*s\n", (int)line.len, line.len ? (const char *)line.data : "");
        }
    }
    wt_bytes_free(&line);
}

static int once(const struct top_args *a, struct wt_daemon_link *link, unsigned columns,
                unsigned rows, struct wt_err *err) {
    struct wt_top_screen screen = {0};
    struct wt_page page = {0};
    struct wt_top_answer answer;
    int rc = wt_top_ask(link, &answer, err);
    if (rc == 0) {
        wt_top_screen_take(&screen, &answer);
        nanosleep(&(struct timespec){.tv_sec = (time_t)(a->interval_ms / 1000),
                                     .tv_nsec = (long)(a->interval_ms % 1000) * 1000000},
                  NULL);
        rc = wt_top_ask(link, &answer, err);
    }
    if (rc == 0) {
        wt_top_screen_take(&screen, &answer);
        wt_page_begin(&page, columns, rows, utf8_locale());
        wt_top_draw(&screen, &page);
        print_page(&page);
    }
    wt_page_free(&page);
    wt_top_screen_free(&screen);
    return rc;
}

/* ---- the full screen ---- */

static int show(struct wt_term *term, const struct wt_top_screen *screen, struct wt_page *page) {
    unsigned columns, rows;
    wt_term_size(&columns, &rows);
    wt_page_begin(page, columns, rows, term->utf8);
    wt_top_draw(screen, page);
    return wt_term_show(term, page);
}

/* 0: by a key; WT_ECANCELED: by a signal or a lost terminal. */
static int live(struct wt_term *term, struct wt_top_watch *watch, struct wt_top_screen *screen,
                struct wt_page *page) {
    struct wt_top_answer answer;
    int rc = show(term, screen, page);
    while (rc == 0) {
        char key = 0;
        enum wt_term_event event = wt_term_wait(term, wt_top_watch_fd(watch), 60000, &key);
        if (event == WT_TERM_ENDED)
            return WT_ECANCELED;
        if (event == WT_TERM_KEY && (key == 'q' || key == 'Q'))
            return 0;
        if (event == WT_TERM_KEY && key == ' ')
            screen->paused = !screen->paused;
        bool newer = wt_top_watch_take(watch, &answer);
        if (newer && screen->paused)
            wt_top_answer_free(&answer);
        else if (newer)
            wt_top_screen_take(screen, &answer);
        if (newer || event != WT_TERM_NOTHING)
            rc = show(term, screen, page);
    }
    return WT_ECANCELED;
}

static int full_screen(const struct top_args *a, struct wt_daemon_link *link, struct wt_err *err) {
    struct wt_top_screen screen = {0};
    struct wt_page page = {0};
    struct wt_top_watch *watch;
    struct wt_term term;
    int rc = wt_term_open(&term, err);
    if (rc < 0)
        return rc;
    rc = wt_top_watch_start(link, a->interval_ms, &watch, err);
    if (rc == 0) {
        rc = live(&term, watch, &screen, &page);
        wt_top_watch_stop(watch);
    }
    wt_term_close(&term);
    if (rc == WT_ECANCELED)
        wt_err_set(err, rc, "interrupted");
    wt_page_free(&page);
    wt_top_screen_free(&screen);
    return rc;
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct top_args a = {.interval_ms = 1000};
    struct wt_operands operands;
    struct wt_daemon_link link;
    struct wt_err err = {0};
    unsigned columns, rows;
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (operands.n)
        return wt_verb_usage(verb, "it takes options only");
    if (parse_size(a.size, &columns, &rows) < 0)
        return wt_verb_usage(verb, "--size '%s': give it like 100x30 (20x5 to %dx%d)", a.size,
                             WT_PAGE_COLUMNS_MAX, WT_PAGE_ROWS_MAX);
    setlocale(LC_CTYPE, "");
    int rc = wt_daemon_open(&a.daemon, &link, &err);
    if (rc == 0)
        rc = a.once ? once(&a, &link, columns, rows, &err) : full_screen(&a, &link, &err);
    wt_daemon_close(&link);
    if (rc == WT_ECANCELED)
        return WT_EXIT_INTERRUPTED;
    return rc < 0 ? wt_daemon_fail(verb, &link, &err) : WT_EXIT_OK;
}

const struct wt_verb wt_verb_top = {
    .name = "top",
    .summary = "the whole picture, live, on a full screen",
    .operands = "",
    .about =
        "Tiers with how full they are, what jobs read from them and what copies write to them; "
        "moves "
        "under way; jobs with their rate, the part of reads above cold, the bytes that left cold "
        "for "
        "them as a multiple of the least possible (COLD), the part of the last interval that they "
        "stalled, and the stage and tier that they waited for most. q ends it, space pauses. When "
        "the daemon goes away it says so and waits for it.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
