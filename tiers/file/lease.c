/*
 * Leases: what makes a mapping of a file safe.
 *
 * A file that is truncated under a mapping kills the process that reads there (SIGBUS), and one
 * that is written in place changes what was verified already. A read lease (fcntl(2), F_SETLEASE)
 * keeps both away: whoever opens the file to write, or truncates it, waits in the kernel until the
 * lease is given back, or /proc/sys/fs/lease-break-time (45 s) is over. Until then its holder turns
 * the mapping into a copy (maps.c). Failures: a lease is had only for one's own files (or with
 * CAP_LEASE) that nobody has open to write; without one an object is not mapped.
 */
#include "tiers/file/file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { LEAST_BREAK_S = 5 };

bool file_leases_possible(void) {
    FILE *f = fopen("/proc/sys/fs/lease-break-time", "re");
    int seconds = -1;
    bool read = f && fscanf(f, "%d", &seconds) == 1;
    if (f)
        fclose(f);
    return read && (seconds == 0 || seconds >= LEAST_BREAK_S); /* 0: it waits for ever */
}

/* A lease's breaking sends a signal to its holder. A library must not, so there is no receiver; the
 * one that could slip through before that is set is ignored by default, and may come unasked for
 * where it is not. */
bool file_lease_take(int fd) {
    if (fcntl(fd, F_SETSIG, SIGURG) < 0 || fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
        return false;
    if (fcntl(fd, F_SETOWN, 0) == 0)
        return true;
    file_lease_end(fd);
    return false;
}

bool file_lease_breaks(int fd) {
    return fcntl(fd, F_GETLEASE) != F_RDLCK;
}

/* Closing would not do: the mapping, and children of a fork, hold the open file too. */
void file_lease_end(int fd) {
    fcntl(fd, F_SETLEASE, F_UNLCK);
}
