/* Talking to wafertierd, for verbs that can do without it. */
#ifndef WT_TOOLS_DAEMON_H
#define WT_TOOLS_DAEMON_H

#include "tools/verb.h"

/* Tells the daemon that a data set was written; control "": there is none. A failure is a note on
 * stderr. */
void wt_daemon_announce(const struct wt_verb *verb, const char *control, const char *dataset);
/* GET: *reply is the body of a 200 (free()). Other answers are errors with the daemon's own words.
 */
int wt_daemon_get(const char *control, const char *path, char **reply, struct wt_err *err);

#endif
