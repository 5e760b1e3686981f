/*
 * The screen of top; see draw.h. From the top: what the whole does, a line for each tier with its
 * bar, moves, jobs with what stalls them. Moves and jobs share what the height leaves; what does
 * not fit is counted.
 */
#include "tools/top/draw.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void wt_top_screen_take(struct wt_top_screen *s, struct wt_top_answer *a) {
    if (!a->stats) {
        snprintf(s->error, sizeof s->error, "%s", a->error);
        wt_top_answer_free(a);
        return;
    }
    wt_top_answer_free(&s->before);
    s->before = s->now;
    s->now = *a;
    s->error[0] = '\0';
    *a = (struct wt_top_answer){0};
}

void wt_top_screen_free(struct wt_top_screen *s) {
    wt_top_answer_free(&s->now);
    wt_top_answer_free(&s->before);
}

/* ---- rates ---- */

/* A counter's growth a second between two objects; 0 when there is no earlier one, or it was
 * counted anew (the daemon was restarted). */
static double rate(const struct wt_top_screen *s, const json_t *now, const json_t *before,
                   const char *path) {
    double took = s->now.at - s->before.at;
    double grown = wt_view_real(now, path) - wt_view_real(before, path);
    return before && took > 0 && grown > 0 ? grown / took : 0;
}

/* The object of the same name in an earlier list. */
static const json_t *same(const json_t *list, const char *key, const json_t *o) {
    const json_t *other;
    size_t i;
    json_array_foreach(list, i, other) {
        if (strcmp(wt_view_text(other, key), wt_view_text(o, key)) == 0)
            return other;
    }
    return NULL;
}

static const char *rate_text(double bytes, char out[WT_SIZE_TEXT + 2]) {
    wt_size_format(bytes < 1e18 ? (uint64_t)bytes : UINT64_MAX, out);
    return strcat(out, "/s");
}

static double percent(double part, double all) {
    return all > 0 ? 100 * part / all : 0;
}

/* ---- the whole ---- */

static void draw_state(const struct wt_top_screen *s, struct wt_page *f) {
    char span[WT_SPAN_TEXT], clock[16] = "", version[WT_PAGE_TEXT];
    const json_t *stats = s->now.stats;
    time_t now = time(NULL);
    struct tm tm;
    if (localtime_r(&now, &tm))
        strftime(clock, sizeof clock, "%T", &tm);
    wt_page_clean(f, wt_view_text(stats, "version"), 8, version);
    wt_page_line(f,
                 WT_MARK_HEAD "wafertierd %s  %s  up %s  jobs %" PRIu64 "  data sets %" PRIu64
                              "  shards %" PRIu64 "  %s%s ",
                 version, wt_view_true(stats, "active") ? "active" : "STANDS BY",
                 wt_view_span(wt_view_real(stats, "uptime_s"), span), wt_view_count(stats, "jobs"),
                 wt_view_count(stats, "datasets"), wt_view_count(stats, "shards"), clock,
                 s->paused ? "  PAUSED" : "");
}

static void draw_reads(const struct wt_top_screen *s, struct wt_page *f) {
    char read[WT_SIZE_TEXT + 2], cold[WT_SIZE_TEXT + 2], copied[WT_SIZE_TEXT + 2];
    const json_t *now = s->now.stats, *before = s->before.stats;
    const json_t *tier = json_array_get(wt_view(now, "tiers"), 0);
    const json_t *tier_before = json_array_get(wt_view(before, "tiers"), 0);
    double reads = rate(s, now, before, "reads.total"), hits = rate(s, now, before, "reads.hits");
    double copies = rate(s, now, before, "moves.from_cold");
    wt_page_line(f, "jobs read %.0f ranges/s, %s, %.1f%% above cold (%.1f%% since the start)",
                 reads, rate_text(rate(s, now, before, "reads.bytes"), read), percent(hits, reads),
                 percent(wt_view_real(now, "reads.hits"), wt_view_real(now, "reads.total")));
    wt_page_line(f,
                 "out of cold %s, of it copies %s   by hand: pins %" PRIu64 "  quotas %" PRIu64
                 "  requests %" PRIu64,
                 rate_text(rate(s, tier, tier_before, "reported.bytes") + copies, cold),
                 rate_text(copies, copied), wt_view_count(now, "pins"),
                 wt_view_count(now, "quotas"), wt_view_count(now, "requests"));
}

/* ---- tiers ---- */

enum { TIER_FIXED = 89, BAR_LEAST = 8, BAR_MOST = 60 };

static void draw_tier(const struct wt_top_screen *s, struct wt_page *f, const json_t *t,
                      unsigned bar_columns) {
    char name[WT_PAGE_TEXT], bar[WT_PAGE_TEXT], used[WT_SIZE_TEXT], all[WT_SIZE_TEXT] = "-";
    char jobs[WT_SIZE_TEXT + 2], in[WT_SIZE_TEXT + 2], part_text[16] = "";
    const json_t *before = same(wt_view(s->before.stats, "tiers"), "name", t);
    double capacity = wt_view_real(t, "capacity"), part = wt_view_real(t, "used");
    bool down = wt_view_true(t, "down"), full = wt_view_true(t, "full");
    if (capacity > 0) {
        wt_view_size(t, "capacity", all);
        snprintf(part_text, sizeof part_text, "%.0f%%", percent(part, capacity));
    }
    wt_page_line(f, "%s%s %-5s%s %s %4s %10s of %-10s %8" PRIu64 " %11s %11s %7.1f ms",
                 down   ? WT_MARK_BAD
                 : full ? WT_MARK_WARN
                        : "",
                 wt_page_clean(f, wt_view_text(t, "name"), 8, name),
                 down   ? "DOWN"
                 : full ? "full"
                        : "up",
                 down || full ? WT_MARK_OFF : "",
                 wt_page_bar(f, capacity > 0 ? part / capacity : 0, bar_columns, bar), part_text,
                 wt_view_size(t, "used", used), all, wt_view_count(t, "shards"),
                 rate_text(rate(s, t, before, "reported.bytes"), jobs),
                 rate_text(rate(s, t, before, "bytes_written"), in),
                 wt_view_real(t, "latency_us") / 1000);
}

static void draw_tiers(const struct wt_top_screen *s, struct wt_page *f) {
    const json_t *tiers = wt_view(s->now.stats, "tiers"), *t;
    unsigned columns = f->columns > TIER_FIXED + BAR_LEAST ? f->columns - TIER_FIXED : BAR_LEAST;
    size_t i;
    columns = columns < BAR_MOST ? columns : BAR_MOST;
    wt_page_line(f, WT_MARK_BOLD "%-8s %-5s %-*s %4s %10s    %-10s %8s %11s %11s %10s", "TIER",
                 "STATE", (int)columns, "USED", "", "", "CAPACITY", "SHARDS", "READ", "WRITTEN",
                 "LATENCY");
    json_array_foreach(tiers, i, t) {
        draw_tier(s, f, t, columns);
        const char *error = wt_view_text(t, "last_error");
        char text[WT_PAGE_TEXT];
        if (wt_view_true(t, "down") && error[0])
            wt_page_line(f, WT_MARK_BAD "  %s",
                         wt_page_clean(f, error, f->columns > 2 ? f->columns - 2 : 0, text));
    }
}

/* ---- moves ---- */

/* A move under way has a bar; one that has ended tells how. */
static void draw_move(struct wt_page *f, const json_t *m, bool running) {
    char set[WT_PAGE_TEXT], from[WT_PAGE_TEXT], to[WT_PAGE_TEXT], end[WT_PAGE_TEXT];
    char size[WT_SIZE_TEXT], span[WT_SPAN_TEXT], bar[WT_PAGE_TEXT];
    const char *target = wt_view_text(m, "to"), *why = wt_view_text(m, "text");
    double all = wt_view_real(m, "size"), part = all > 0 ? wt_view_real(m, "done") / all : 0;
    if (running)
        snprintf(end, sizeof end, "%s %4.0f%%", wt_page_bar(f, part, 16, bar), 100 * part);
    else
        wt_page_clean(f, why[0] ? why : "done", 60, end);
    wt_page_line(f, "%s  %s %8" PRIu64 "  %s %s %s %10s %8s  %s", running ? "" : WT_MARK_DIM,
                 wt_page_clean(f, wt_view_text(m, "dataset"), 16, set), wt_view_count(m, "shard"),
                 wt_page_clean(f, wt_view_text(m, target[0] ? "from" : "drop"), 8, from),
                 !target[0] ? "x"
                 : f->utf8  ? "→"
                            : ">",
                 wt_page_clean(f, target, 8, to), wt_view_size(m, "size", size),
                 wt_view_span(wt_view_real(m, "ms") / 1000, span), end);
}

/* At most `lines` with the title: those that run, then those that ended last. */
static void draw_moves(const struct wt_top_screen *s, struct wt_page *f, size_t lines) {
    const json_t *stats = s->now.stats, *before = s->before.stats;
    const json_t *running = wt_view(s->now.moves, "running");
    const json_t *recent = wt_view(s->now.moves, "recent");
    uint64_t aside = wt_view_count(s->now.moves, "set_aside_count");
    char bytes[WT_SIZE_TEXT + 2];
    wt_page_line(f,
                 WT_MARK_BOLD "MOVES" WT_MARK_OFF "  %" PRIu64 " running, %" PRIu64
                              " queued, %" PRIu64 " waiting, %s%" PRIu64 " set aside%s; %" PRIu64
                              " done (%.1f/s, %s), %" PRIu64 " failed",
                 wt_view_count(stats, "moves.running"), wt_view_count(stats, "moves.queued"),
                 wt_view_count(stats, "moves.waiting"), aside ? WT_MARK_WARN : "", aside,
                 aside ? WT_MARK_OFF : "", wt_view_count(stats, "moves.done"),
                 rate(s, stats, before, "moves.done"),
                 rate_text(rate(s, stats, before, "moves.bytes"), bytes),
                 wt_view_count(stats, "moves.failed"));
    size_t n = json_array_size(running), i = 0;
    for (size_t line = 1; line < lines && i < n; line++, i++)
        draw_move(f, json_array_get(running, i), true);
    n = json_array_size(recent);
    for (size_t line = 1 + i, k = 0; line < lines && k < n; line++, k++)
        draw_move(f, json_array_get(recent, k), false);
}

/* ---- jobs ---- */

static void draw_job(const struct wt_top_screen *s, struct wt_page *f, const json_t *j) {
    char name[WT_PAGE_TEXT], set[WT_PAGE_TEXT], order[WT_PAGE_TEXT], blame[WT_PAGE_TEXT];
    char bytes[WT_SIZE_TEXT + 2], ratio[16] = "-", guilty[200];
    const json_t *before = same(wt_view(s->before.jobs, "jobs"), "id", j);
    double stalled = 100 * rate(s, j, before, "stall_s");
    const char *tier = wt_view_text(j, "blame_tier");
    if (wt_view_real(j, "cold_ratio") > 0)
        snprintf(ratio, sizeof ratio, "%.2f", wt_view_real(j, "cold_ratio"));
    snprintf(guilty, sizeof guilty, "%.60s%s%.60s", wt_view_text(j, "blame"), tier[0] ? ": " : "",
             tier);
    wt_page_line(f, "%s %s %5" PRIu64 " %8" PRIu64 " %11s %6.1f%% %6s %s %s%6.1f%% %s%s",
                 wt_page_clean(f, wt_view_text(j, "name"), 16, name),
                 wt_page_clean(f, wt_view_text(j, "dataset"), 14, set), wt_view_count(j, "epoch"),
                 wt_view_count(j, "step"), rate_text(rate(s, j, before, "bytes"), bytes),
                 percent(wt_view_real(j, "hits"), wt_view_real(j, "reads")), ratio,
                 wt_page_clean(f, wt_view_text(j, "order"), 8, order),
                 stalled >= 10  ? WT_MARK_BAD
                 : stalled >= 1 ? WT_MARK_WARN
                                : "",
                 stalled < 100 ? stalled : 100, wt_page_clean(f, guilty, 20, blame),
                 stalled >= 1 ? WT_MARK_OFF : "");
}

static void draw_jobs(const struct wt_top_screen *s, struct wt_page *f) {
    const json_t *jobs = wt_view(s->now.jobs, "jobs"), *j;
    size_t n = json_array_size(jobs), i;
    wt_page_line(f, WT_MARK_BOLD "%-16s %-14s %5s %8s %11s %7s %6s %-8s %7s %s", "JOB", "DATA SET",
                 "EPOCH", "STEP", "READ", "ABOVE", "COLD", "ORDER", "STALLED", "FOR");
    if (n == 0)
        wt_page_line(f, WT_MARK_DIM "no job reports");
    json_array_foreach(jobs, i, j) {
        if (wt_page_left(f) > 1 || (wt_page_left(f) == 1 && i + 1 == n))
            draw_job(s, f, j);
        else
            break;
    }
    if (i < n)
        wt_page_line(f, WT_MARK_DIM "and %zu more", n - i);
}

/* ---- all of it ---- */

/* What jobs leave, but half of the lines at least. */
static size_t lines_of_moves(const struct wt_top_screen *s, const struct wt_page *f) {
    size_t left = wt_page_left(f), jobs = json_array_size(wt_view(s->now.jobs, "jobs"));
    size_t wanted = 3 + (jobs ? jobs : 1); /* blank, title, jobs, one to spare */
    return left > 2 * wanted ? left - wanted : left / 2;
}

static void draw_body(const struct wt_top_screen *s, struct wt_page *f) {
    char text[WT_PAGE_TEXT];
    if (s->error[0])
        wt_page_line(f, WT_MARK_BAD "trying again: %s",
                     wt_page_clean(f, s->error, f->columns < 200 ? f->columns : 200, text));
    if (!s->now.stats) {
        if (!s->error[0])
            wt_page_line(f, "asking the daemon...");
        return;
    }
    draw_state(s, f);
    draw_reads(s, f);
    wt_page_line(f, "%s", "");
    draw_tiers(s, f);
    wt_page_line(f, "%s", "");
    draw_moves(s, f, lines_of_moves(s, f));
    wt_page_line(f, "%s", "");
    draw_jobs(s, f);
}

/* The last line is kept for how to leave. */
void wt_top_draw(const struct wt_top_screen *s, struct wt_page *f) {
    f->rows -= f->rows > 0;
    draw_body(s, f);
    while (wt_page_left(f) > 0)
        wt_page_line(f, "%s", "");
    f->rows++;
    wt_page_line(f, WT_MARK_DIM "q quits, space %s", s->paused ? "goes on" : "pauses");
}
