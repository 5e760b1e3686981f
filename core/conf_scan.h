/*
 * A look over a configuration's text before libconfuse parses it, for what that does not see: a
 * section or comment that never ends, a backslash outside quotes, and whole unknown sections where
 * a table ignores them.
 */
#ifndef WT_CORE_CONF_SCAN_H
#define WT_CORE_CONF_SCAN_H

#include "core/conf.h"

/* `text` (len bytes) is changed in place: with table->ignore_unknown, unknown sections become
 * blanks, lines keep their numbers. 0 or WT_EINVAL with name and line. */
int wt_conf_scan(const struct wt_conf_table *table, const char *name, char *text, size_t len,
                 struct wt_err *err);

#endif
