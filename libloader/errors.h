/*
 * Errors at the public border: codes of core/err.h become wl_result, the message is kept, shard and
 * key are added.
 */
#ifndef WT_LOADER_ERRORS_H
#define WT_LOADER_ERRORS_H

#include "core/err.h"

#include <wafertier/loader.h>

/* This thread's last error, for calls that have no loader. */
wl_error *wt_error_thread(void);
/* Fills *e (all else in it cleared); returns code. e may be NULL. */
int wt_error_set(wl_error *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same from an inner error; returns its wl_result. */
int wt_error_from(wl_error *e, const struct wt_err *err);
/* WT_E... -> wl_result. */
int wt_error_code(int wt_code);

#endif
