/* Formatting of log lines and the stderr sink; see log.h. */
#include "core/log.h"

#include "core/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void wt_log(const struct wt_log *log, enum wt_log_level level, const char *fmt, ...) {
    if (!log || !log->fn || level > log->level)
        return;
    char line[1000];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (n >= 0)
        log->fn(log->arg, level, line);
}

void wt_log_stderr(void *arg, enum wt_log_level level, const char *line) {
    static const int priority[] = {3, 4, 6, 7}; /* syslog(3): err, warning, info, debug */
    if (getenv("JOURNAL_STREAM"))
        fprintf(stderr, "<%d>%s\n", priority[level], line);
    else
        fprintf(stderr, "%s: %s: %s\n", (const char *)arg, level_names[level], line);
}

int wt_log_level_parse(const char *text, enum wt_log_level *level) {
    for (size_t i = 0; i < sizeof level_names / sizeof level_names[0]; i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *level = (enum wt_log_level)i;
            return 0;
        }
    }
    return WT_EINVAL;
}

const char *wt_log_level_name(enum wt_log_level level) {
    return level_names[level];
}
