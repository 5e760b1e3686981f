/*
 * A whole daemon inside a test's process, on the test's thread: three file: tiers in a temporary
 * folder and one small data set, "wafers".
 *
 * Happy path: start, then calls of the control protocol over its real socket; the loop runs while a
 * call waits. Failures of the start end the process: the test cannot be made.
 */
#ifndef WT_TESTS_FUZZ_SMALL_DAEMON_H
#define WT_TESTS_FUZZ_SMALL_DAEMON_H

#include "core/bytes.h"
#include "daemon/daemon.h"

struct small_link { /* the client's end of a connection, on the daemon's loop */
    uv_poll_t poll;
    int fd;
    const uint8_t *out;
    size_t left;
    char *in;
    size_t len;
    bool ended, closed;
};

struct small_daemon {
    uv_loop_t loop;
    struct wt_daemon d;
    uv_timer_t alarm;
    bool rang;
    char conf[320];
    struct wt_bytes request;
    char *answer;
    struct small_link link;
};

void small_daemon_start(struct small_daemon *s);
/* Orderly: nothing is left of it. */
void small_daemon_stop(struct small_daemon *s);
/* A job on "wafers", registered by hand; the only one afterwards. Its id. */
const char *small_daemon_job(struct small_daemon *s);
/* Runs the loop until *flag, or until ms have passed; *flag then. */
bool small_daemon_run(struct small_daemon *s, const bool *flag, unsigned ms);

struct small_answer {
    const char *text; /* all that came, NUL-terminated; good until the next exchange */
    size_t len;
    long status;      /* 0: nothing that looks like HTTP */
    const char *body; /* in text, or NULL */
    bool ended;       /* the daemon closed the connection; else the time was over */
};
/* Makes a whole request ready; "$" in the path stands for the job's id. */
void small_daemon_prepare(struct small_daemon *s, const char *method, const char *path,
                          const void *body, size_t len);
/* Any bytes instead. */
void small_daemon_raw(struct small_daemon *s, const void *bytes, size_t len);
/* Sends what is ready and reads until the daemon closes, or until ms have passed. Allocates nothing
 * itself. */
void small_daemon_exchange(struct small_daemon *s, unsigned ms, struct small_answer *a);

#endif
