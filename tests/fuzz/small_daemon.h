/*
 * A whole daemon inside a test's process, on the test's thread: three file: tiers in a temporary
 * folder and one small data set, "wafers".
 *
 * Happy path: start, then calls of the control protocol over its real socket; the loop runs while a
 * call waits. Failures of the start end the process: the test cannot be made.
 */
#ifndef WT_TESTS_FUZZ_SMALL_DAEMON_H
#define WT_TESTS_FUZZ_SMALL_DAEMON_H

#include "daemon/daemon.h"

struct small_daemon {
    uv_loop_t loop;
    struct wt_daemon d;
    uv_timer_t alarm;
    bool rang;
    char conf[320];
};

void small_daemon_start(struct small_daemon *s);
/* Orderly: nothing is left of it. */
void small_daemon_stop(struct small_daemon *s);
/* A job on "wafers", registered by hand; the only one afterwards. Its id. */
const char *small_daemon_job(struct small_daemon *s);
/* Runs the loop until *flag, or until ms have passed; *flag then. */
bool small_daemon_run(struct small_daemon *s, const bool *flag, unsigned ms);

struct small_answer {
    char *text; /* all that came, NUL-terminated; free() */
    size_t len;
    long status;      /* 0: nothing that looks like HTTP */
    const char *body; /* in text, or NULL */
};
/* Sends the bytes and reads until the daemon closes, or until ms have passed. */
void small_daemon_send(struct small_daemon *s, const void *bytes, size_t len, unsigned ms,
                       struct small_answer *a);
/* A whole request; "$" in the path stands for the job's id. */
void small_daemon_call(struct small_daemon *s, const char *method, const char *path,
                       const void *body, size_t len, struct small_answer *a);

#endif
