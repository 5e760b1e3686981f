/*
 * See process.h.
 *
 * The place is a hash of the kernel's boot id and the name of our pid namespace, both from /proc.
 * Failures: no /proc: the place is 0, and nobody is ever taken for dead.
 */
#include "core/process.h"

#include "core/sum.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t this_place(void) {
    char text[160];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t boot = fd >= 0 ? read(fd, text, 80) : -1;
    if (fd >= 0)
        close(fd);
    if (boot <= 0)
        return 0;
    ssize_t space = readlink("/proc/self/ns/pid", text + boot, sizeof text - (size_t)boot);
    if (space <= 0)
        return 0;
    return wt_hash64(text, (size_t)(boot + space));
}

struct wt_process wt_process_self(void) {
    return (struct wt_process){.place = this_place(), .pid = getpid()};
}

enum wt_process_state wt_process_look(const struct wt_process *p) {
    if (p->place == 0 || p->pid <= 0 || p->pid > INT32_MAX || p->place != this_place())
        return WT_PROCESS_UNKNOWN;
    if (kill((pid_t)p->pid, 0) == 0 || errno != ESRCH)
        return WT_PROCESS_ALIVE;
    return WT_PROCESS_DEAD;
}

void wt_process_format(const struct wt_process *p, char out[WT_PROCESS_TEXT]) {
    snprintf(out, WT_PROCESS_TEXT, "%016" PRIx64 "-%" PRId64, p->place, p->pid);
}

const char *wt_process_parse(const char *text, struct wt_process *p) {
    char hex[17];
    if (strspn(text, "0123456789abcdef") != 16 || text[16] != '-')
        return NULL;
    snprintf(hex, sizeof hex, "%.16s", text);
    size_t digits = strspn(text + 17, "0123456789");
    if (digits == 0 || digits > 10)
        return NULL;
    p->place = strtoull(hex, NULL, 16);
    p->pid = strtoll(text + 17, NULL, 10);
    return text + 17 + digits;
}
