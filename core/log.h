/*
 * Logging goes through a sink that its owner hands down: no globals, no printing in libraries.
 * Only the first function to decide an error logs it.
 */
#ifndef WT_CORE_LOG_H
#define WT_CORE_LOG_H

enum wt_log_level { WT_LOG_ERROR, WT_LOG_WARN, WT_LOG_INFO, WT_LOG_DEBUG };

/* `line` has no newline and lives for the call only. May be called from any thread that uses the
 * log. */
typedef void (*wt_log_fn)(void *arg, enum wt_log_level level, const char *line);

struct wt_log {
    wt_log_fn fn; /* NULL: silent */
    void *arg;
    enum wt_log_level level; /* lines above it are dropped */
};

/* `log` may be NULL (silent). Lines over 1000 bytes are cut. */
void wt_log(const struct wt_log *log, enum wt_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A sink for programs: "<level>line" on stderr where the journal reads it (JOURNAL_STREAM is set:
 * sd-daemon(3) prefixes), "wafertierd: warning: line" elsewhere. arg: the program's name, const
 * char *. */
void wt_log_stderr(void *arg, enum wt_log_level level, const char *line);

/* "error", "warn", "info", "debug" -> level; WT_EINVAL for all else. */
int wt_log_level_parse(const char *text, enum wt_log_level *level);
const char *wt_log_level_name(enum wt_log_level level);

#endif
