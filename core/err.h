/*
 * Errors: one table of negative codes, and a bounded message that grows on the way up.
 *
 * A function that can fail returns 0 or a negative WT_E... code and, where it takes a `struct
 * wt_err *`, leaves there what happened. The function that decides an error sets it (wt_err_set);
 * callers put their context in front (wt_err_wrap). A NULL `struct wt_err *` is allowed everywhere.
 * Outputs are untouched on failure.
 */
#ifndef WT_CORE_ERR_H
#define WT_CORE_ERR_H

/* What an error broke: it decides who reacts. OBJECT: take the next copy, ask for a repair.
 * TIER: count it against the tier, take the next tier. CALLER: hand it up. */
enum wt_blame { WT_BLAME_NONE, WT_BLAME_OBJECT, WT_BLAME_TIER, WT_BLAME_CALLER };

/* name, value, blame, text */
#define WT_ERR_MAP(X)                                                                              \
    X(MISSING, -1, OBJECT, "no such object")                                                       \
    X(CORRUPT, -2, OBJECT, "damaged data")                                                         \
    X(CHANGED, -3, OBJECT, "object changed while it was read")                                     \
    X(EXISTS, -4, OBJECT, "object exists already")                                                 \
    X(DOWN, -20, TIER, "tier is down")                                                             \
    X(FULL, -21, TIER, "tier is full")                                                             \
    X(TIMEDOUT, -22, TIER, "deadline passed")                                                      \
    X(IO, -23, TIER, "input/output error")                                                         \
    X(DENIED, -24, TIER, "permission denied")                                                      \
    X(LOCKED, -25, TIER, "held by another owner")                                                  \
    X(INVAL, -40, CALLER, "invalid argument")                                                      \
    X(NOMEM, -41, CALLER, "out of memory")                                                         \
    X(CANCELED, -42, CALLER, "canceled")                                                           \
    X(UNSUPPORTED, -43, CALLER, "not supported")                                                   \
    X(RANGE, -44, CALLER, "out of range")                                                          \
    X(BUSY, -45, CALLER, "too many requests in flight")                                            \
    X(FORMAT, -46, CALLER, "unknown or unreadable format")                                         \
    X(SYSTEM, -47, CALLER, "system call failed")

enum {
#define X(name, value, blame, text) WT_E##name = (value),
    WT_ERR_MAP(X)
#undef X
};

#define WT_ERR_TEXT 400

struct wt_err {
    int code;               /* 0 or WT_E... */
    int sys;                /* errno, or 0 */
    char text[WT_ERR_TEXT]; /* one line, no newline; cut with "..." when it does not fit */
};

/* "CORRUPT"; "UNKNOWN" for a number that is no code. */
const char *wt_err_name(int code);
/* "damaged data". */
const char *wt_err_text(int code);
enum wt_blame wt_err_blame(int code);

/* Sets code and message; returns code, so `return wt_err_set(err, WT_EINVAL, "...")` works. */
int wt_err_set(struct wt_err *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same from errno: the code that fits errno_value, its text appended. ENOENT: MISSING; EEXIST:
 * EXISTS; ENOSPC, EDQUOT: FULL; EACCES, EPERM, EROFS: DENIED; ENOTCONN, ESTALE, EHOSTDOWN, ENXIO:
 * DOWN; ETIMEDOUT: TIMEDOUT; ENOMEM: NOMEM; EIO: IO; EINVAL: INVAL; all else SYSTEM. */
int wt_err_sys(struct wt_err *err, int errno_value, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts "context: " in front of the message; returns err's code (0 when err is NULL or empty). */
int wt_err_wrap(struct wt_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
