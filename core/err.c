/* The error table and the bounded message; see err.h. */
#include "core/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct err_row {
    int code;
    enum wt_blame blame;
    const char *name;
    const char *text;
};

static const struct err_row rows[] = {
#define X(name, value, blame, text) {WT_E##name, WT_BLAME_##blame, #name, text},
    WT_ERR_MAP(X)
#undef X
};

static const struct err_row *find_row(int code) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code == code)
            return &rows[i];
    return NULL;
}

const char *wt_err_name(int code) {
    const struct err_row *row = find_row(code);
    return row ? row->name : code == 0 ? "OK" : "UNKNOWN";
}

const char *wt_err_text(int code) {
    const struct err_row *row = find_row(code);
    return row ? row->text : code == 0 ? "no error" : "unknown error";
}

enum wt_blame wt_err_blame(int code) {
    const struct err_row *row = find_row(code);
    return row ? row->blame : code == 0 ? WT_BLAME_NONE : WT_BLAME_CALLER;
}

static void mark_cut(char *text) {
    memcpy(text + WT_ERR_TEXT - 4, "...", 4);
}

static void set_text(struct wt_err *err, const char *fmt, va_list args) {
    int n = vsnprintf(err->text, sizeof err->text, fmt, args);
    if (n < 0)
        err->text[0] = '\0';
    else if ((size_t)n >= sizeof err->text)
        mark_cut(err->text);
}

int wt_err_set(struct wt_err *err, int code, const char *fmt, ...) {
    if (!err)
        return code;
    va_list args;
    va_start(args, fmt);
    err->code = code;
    err->sys = 0;
    set_text(err, fmt, args);
    va_end(args);
    return code;
}

static int code_of_errno(int errno_value) {
    switch (errno_value) {
    case ENOENT:
        return WT_EMISSING;
    case EEXIST:
        return WT_EEXISTS;
    case ENOSPC:
    case EDQUOT:
        return WT_EFULL;
    case EACCES:
    case EPERM:
    case EROFS:
        return WT_EDENIED;
    case ENOTCONN:
    case ESTALE:
    case EHOSTDOWN:
    case ENXIO:
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
        return WT_EDOWN;
    case ETIMEDOUT:
        return WT_ETIMEDOUT;
    case ENOMEM:
        return WT_ENOMEM;
    case EIO:
        return WT_EIO;
    case EINVAL:
        return WT_EINVAL;
    default:
        return WT_ESYSTEM;
    }
}

int wt_err_sys(struct wt_err *err, int errno_value, const char *fmt, ...) {
    int code = code_of_errno(errno_value);
    if (!err)
        return code;
    va_list args;
    va_start(args, fmt);
    err->code = code;
    err->sys = errno_value;
    set_text(err, fmt, args);
    va_end(args);
    char why[128];
    /* The GNU strerror_r returns the text, which need not be in the buffer. */
    const char *text = strerror_r(errno_value, why, sizeof why);
    size_t have = strlen(err->text);
    int n = snprintf(err->text + have, sizeof err->text - have, ": %s", text);
    if (n > 0 && (size_t)n >= sizeof err->text - have)
        mark_cut(err->text);
    return code;
}

int wt_err_wrap(struct wt_err *err, const char *fmt, ...) {
    if (!err || err->code == 0)
        return 0;
    char inner[WT_ERR_TEXT];
    memcpy(inner, err->text, sizeof inner);
    va_list args;
    va_start(args, fmt);
    set_text(err, fmt, args);
    va_end(args);
    size_t have = strlen(err->text);
    int n = snprintf(err->text + have, sizeof err->text - have, ": %s", inner);
    if (n > 0 && (size_t)n >= sizeof err->text - have)
        mark_cut(err->text);
    return err->code;
}
