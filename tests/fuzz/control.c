/*
 * Fuzz: the control protocol, over the real socket of a real daemon. The first byte chooses: the
 * input as the raw bytes of a connection, or "METHOD PATH" and, after a line's end, the body of a
 * well-formed request. Every such request gets an answer, in JSON, never one of 500.
 */
#include "fuzz.h"
#include "small_daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 512, RAW_MS = 20, CALL_MS = 10000 };

static struct small_daemon daemon_here;

static void check_answer(const struct small_answer *a) {
    json_error_t why;
    FUZZ_CHECK(a->status >= 200 && a->status < 600 && a->status != 500);
    FUZZ_CHECK(a->body);
    json_t *json = json_loads(a->body, 0, &why);
    bool metrics = strncmp(a->body, "# HELP", 6) == 0;
    if (!metrics && a->status != 400 && a->status != 414 &&
        a->status != 431) /* those may be MHD's own */
        FUZZ_CHECK(json_is_object(json));
    if (json_is_object(json) && a->status >= 400)
        FUZZ_CHECK(json_is_string(json_object_get(json, "error")) &&
                   json_is_string(json_object_get(json, "code")));
    json_decref(json);
}

/* A request line holds no blanks or controls but where they belong; HEAD has no body to check. */
static bool is_request(const char *line, const char **path) {
    *path = strchr(line, ' ');
    if (!*path || (*path)[1] != '/' || *path == line || strncmp(line, "HEAD ", 5) == 0 ||
        strncmp(line, "CONNECT ", 8) == 0)
        return false;
    for (const char *p = line; *p; p++)
        if ((unsigned char)*p < '!' && p != *path)
            return false;
    return true;
}

static void call(const uint8_t *data, size_t size) {
    char line[LINE_BYTES];
    const uint8_t *end = memchr(data, '\n', size);
    size_t len = end ? (size_t)(end - data) : size;
    const char *path;
    if (len >= sizeof line || memchr(data, '\0', len))
        return;
    memcpy(line, data, len);
    line[len] = '\0';
    if (!is_request(line, &path))
        return;
    if (strstr(path, "/events")) /* a stream does not end */
        return;
    line[path - line] = '\0';
    struct small_answer a;
    small_daemon_prepare(&daemon_here, line, path + 1, end ? end + 1 : data,
                         end ? size - len - 1 : 0);
    small_daemon_exchange(&daemon_here, CALL_MS, &a);
    FUZZ_CHECK(a.ended);
    check_answer(&a);
}

static void raw(const uint8_t *data, size_t size) {
    struct small_answer a;
    small_daemon_raw(&daemon_here, data, size);
    small_daemon_exchange(&daemon_here, RAW_MS, &a);
    FUZZ_CHECK(a.status != 500);
}

static void stop(void) {
    small_daemon_stop(&daemon_here);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!daemon_here.conf[0]) {
        small_daemon_start(&daemon_here);
        atexit(stop); /* before the folder goes: handlers run in reverse order */
    }
    if (size == 0)
        return 0;
    small_daemon_job(&daemon_here);
    if (data[0] & 1)
        raw(data + 1, size - 1);
    else
        call(data + 1, size - 1);
    return 0;
}
