/* The public error struct and its names; see errors.h. Nothing here fails: a message that is too
 * long is cut. */
#include "libloader/errors.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

wl_error *wt_error_thread(void) {
    static _Thread_local wl_error last;
    return &last;
}

int wt_error_set(wl_error *e, int code, const char *fmt, ...) {
    if (!e)
        return code;
    char text[sizeof e->message];
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(text, sizeof text, fmt, args) < 0)
        text[0] = '\0';
    va_end(args);
    memset(e, 0, sizeof *e);
    e->code = (wl_result)code;
    memcpy(e->message, text, sizeof text);
    return code;
}

int wt_error_code(int wt_code) {
    switch (wt_code) {
    case 0:
        return WL_OK;
    case WT_EMISSING:
        return WL_ERROR_NOT_FOUND;
    case WT_ECORRUPT:
    case WT_ECHANGED:
        return WL_ERROR_CORRUPT;
    case WT_EDOWN:
    case WT_EFULL:
    case WT_ETIMEDOUT:
    case WT_EIO:
    case WT_EDENIED:
    case WT_ELOCKED:
    case WT_EBUSY:
        return WL_ERROR_STORAGE;
    case WT_ENOMEM:
        return WL_ERROR_MEMORY;
    case WT_ECANCELED:
        return WL_ERROR_ABORTED;
    case WT_EUNSUPPORTED:
        return WL_ERROR_UNSUPPORTED;
    case WT_ESYSTEM:
        return WL_ERROR_SYSTEM;
    default:
        return WL_ERROR_INVALID;
    }
}

int wt_error_from(wl_error *e, const struct wt_err *err) {
    int code = wt_error_set(e, wt_error_code(err->code), "%s", err->text);
    if (e)
        e->sys = err->sys;
    return code;
}

const char *wl_result_name(int result) {
    switch ((wl_result)result) {
    case WL_OK:
        return "WL_OK";
    case WL_END_OF_EPOCH:
        return "WL_END_OF_EPOCH";
    case WL_END:
        return "WL_END";
    case WL_NOT_READY:
        return "WL_NOT_READY";
    case WL_ERROR_INVALID:
        return "WL_ERROR_INVALID";
    case WL_ERROR_MEMORY:
        return "WL_ERROR_MEMORY";
    case WL_ERROR_NOT_FOUND:
        return "WL_ERROR_NOT_FOUND";
    case WL_ERROR_CORRUPT:
        return "WL_ERROR_CORRUPT";
    case WL_ERROR_STORAGE:
        return "WL_ERROR_STORAGE";
    case WL_ERROR_ABORTED:
        return "WL_ERROR_ABORTED";
    case WL_ERROR_EXHAUSTED:
        return "WL_ERROR_EXHAUSTED";
    case WL_ERROR_STATE:
        return "WL_ERROR_STATE";
    case WL_ERROR_UNSUPPORTED:
        return "WL_ERROR_UNSUPPORTED";
    case WL_ERROR_DEVICE:
        return "WL_ERROR_DEVICE";
    case WL_ERROR_SYSTEM:
        return "WL_ERROR_SYSTEM";
    }
    return "unknown result";
}

const char *wl_version(void) {
    return WAFERTIER_VERSION_STRING;
}
