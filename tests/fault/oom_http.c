/* Out of memory in the client of the control socket, libcurl included: an error, and the next call
 * works. */
#include "core/http.h"
#include "oom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 3000, CALL_MS = 10000 };

struct server {
    char folder[64], path[80];
    pid_t pid;
};

static void serve(int listener) {
    static const char answer[] =
        "HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\n{\"id\":\"j1\"}";
    char request[4096];
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd >= 0 && recv(fd, request, sizeof request, 0) > 0)
            send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL);
        close(fd);
    }
}

static int start(void **state) {
    static struct server s;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const char *tmp = getenv("TMPDIR");
    snprintf(s.folder, sizeof s.folder, "%s/wt-oom-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
    assert_non_null(mkdtemp(s.folder));
    snprintf(s.path, sizeof s.path, "%s/sock", s.folder);
    strcpy(at.sun_path, s.path);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 8), 0);
    s.pid = fork();
    assert_true(s.pid >= 0);
    if (s.pid == 0) {
        alarm(300); /* should the test die */
        serve(listener);
    }
    close(listener);
    *state = &s;
    return 0;
}

static int stop(void **state) {
    struct server *s = *state;
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    unlink(s->path);
    rmdir(s->folder);
    return 0;
}

static int call(void *arg, struct wt_err *err) {
    const struct server *s = arg;
    char address[100];
    struct wt_http *http = NULL;
    char *reply = NULL;
    size_t len = 0;
    long status = 0;
    snprintf(address, sizeof address, "unix:%s", s->path);
    int rc = wt_http_new(address, &http, err);
    if (rc == 0)
        rc = wt_http_call(http, "POST", "/v1/jobs", "{\"name\":\"x\"}", CALL_MS, &status, &reply,
                          &len, err);
    if (rc == 0) {
        assert_int_equal(status, 200);
        assert_int_equal(len, 11);
        assert_string_equal(reply, "{\"id\":\"j1\"}");
    }
    free(reply);
    wt_http_free(http);
    return rc;
}

static void calls(void **state) {
    assert_true(oom_each(&(struct oom_case){
                    .name = "call the daemon", .run = call, .arg = *state, .most = MOST}) > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(calls, start, stop)};
    oom_init();
    alarm(300);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
