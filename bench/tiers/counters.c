/* Asks the servers; see counters.h. A server that does not answer ends the benchmark. */
#include "bench/tiers/counters.h"

#include "bench/measure.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ANSWER_MAX = 4 << 20 };

static int connect_to(const char *path) {
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct timeval wait = {.tv_sec = 20};
    snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (fd < 0 || connect(fd, (struct sockaddr *)&un, sizeof un) < 0)
        bench_die("no server at %s", path);
    return fd;
}

static void read_all(int fd, const char *path, char *to, size_t len) {
    while (len) {
        ssize_t n = recv(fd, to, len, 0);
        if (n <= 0)
            bench_die("%s: no whole answer", path);
        to += n;
        len -= (size_t)n;
    }
}

/* The command and a NUL; the answer is its length (big-endian) and JSON. */
uint64_t bench_osd_counter(const char *admin_socket, const char *name) {
    static const char command[] = "{\"prefix\": \"perf dump\", \"logger\": \"osd\"}";
    int fd = connect_to(admin_socket);
    uint32_t len;
    if (write(fd, command, sizeof command) != sizeof command)
        bench_die("%s: no command can be sent", admin_socket);
    read_all(fd, admin_socket, (char *)&len, sizeof len);
    len = ntohl(len);
    char *text = len < ANSWER_MAX ? malloc(len) : NULL;
    if (!text)
        bench_die("%s: an answer of %u bytes", admin_socket, len);
    read_all(fd, admin_socket, text, len);
    close(fd);
    json_t *root = json_loadb(text, len, 0, NULL);
    const json_t *value = json_object_get(json_object_get(root, "osd"), name);
    if (!json_is_integer(value))
        bench_die("%s: no counter osd.%s", admin_socket, name);
    uint64_t n = (uint64_t)json_integer_value(value);
    json_decref(root);
    free(text);
    return n;
}

uint64_t bench_redis_counter(const char *socket, const char *name) {
    static const char command[] = "INFO\r\nQUIT\r\n";
    static char text[64 << 10];
    char line[64];
    size_t have = 0;
    int fd = connect_to(socket);
    if (write(fd, command, sizeof command - 1) != sizeof command - 1)
        bench_die("%s: no command can be sent", socket);
    for (ssize_t n;
         have + 1 < sizeof text && (n = recv(fd, text + have, sizeof text - 1 - have, 0)) > 0;)
        have += (size_t)n;
    close(fd);
    text[have] = '\0';
    snprintf(line, sizeof line, "\n%s:", name);
    const char *at = strstr(text, line);
    if (!at)
        bench_die("%s: no counter %s", socket, name);
    return strtoull(at + strlen(line), NULL, 10);
}

bool bench_bytes_agree(const char *what, double ours, double server) {
    double ratio = ours > 0 ? server / ours : 0;
    bool well = ratio > 0.98 && ratio < 1.02;
    printf("%-14s bytes: ours %.0f, the server counted %.0f: ratio %.4f within 2%%: %s\n", what,
           ours, server, ratio, well ? "yes" : "NO");
    return well;
}
