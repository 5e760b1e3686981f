/* Progress for people; see progress.h. */
#include "tools/progress.h"

#include "core/bytes.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 24 };
static const double redraw_s = 0.1, plain_s = 3;

double wt_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void wt_progress_start(struct wt_progress *p, const char *what, const char *unit, uint64_t total,
                       bool quiet) {
    *p = (struct wt_progress){
        .what = what, .unit = unit, .total = total, .out = quiet ? NULL : stderr};
    p->terminal = isatty(STDERR_FILENO) == 1;
    p->start = p->last = wt_now();
}

double wt_progress_seconds(const struct wt_progress *p) {
    return wt_now() - p->start;
}

/* "1:02:03", "2:03". */
static void format_time(double seconds, char *out, size_t size) {
    uint64_t s = seconds > 0 ? (uint64_t)(seconds + 0.5) : 0;
    if (s >= 3600)
        snprintf(out, size, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, size, "%" PRIu64 ":%02" PRIu64, s / 60, s % 60);
}

static void print_bar(FILE *out, double part) {
    char bar[BAR + 1];
    size_t full = (size_t)(part * BAR);
    memset(bar, '.', BAR);
    memset(bar, '#', full > BAR ? BAR : full);
    bar[BAR] = '\0';
    fprintf(out, "[%s] ", bar);
}

void wt_progress_at(struct wt_progress *p, uint64_t done, uint64_t bytes) {
    double now = wt_now();
    if (!p->out || now - p->last < (p->terminal ? redraw_s : plain_s))
        return;
    p->last = now;
    double took = now - p->start, part = p->total ? (double)done / (double)p->total : 0;
    char rate[WT_SIZE_TEXT], left[32] = "?";
    wt_size_format((uint64_t)((double)bytes / took), rate);
    if (part > 0)
        format_time(took / part - took, left, sizeof left);
    fprintf(p->out, p->terminal ? "\r%s: " : "%s: ", p->what);
    if (p->terminal)
        print_bar(p->out, part);
    fprintf(p->out, "%" PRIu64 "/%" PRIu64 " %s, %.0f%%, %s/s, %s left%s", done, p->total, p->unit,
            part * 100, rate, left, p->terminal ? "\033[K" : "\n");
    fflush(p->out);
    p->line = p->terminal;
}

void wt_progress_clear(struct wt_progress *p) {
    if (!p->line)
        return;
    fprintf(p->out, "\r\033[K");
    fflush(p->out);
    p->line = false;
}
