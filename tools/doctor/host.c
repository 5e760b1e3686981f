/*
 * This machine: memory for the tiers that lie in it, open files, the clock that leases and locks go
 * by.
 */
#include "core/bytes.h"
#include "tools/doctor/doctor.h"

#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <time.h>

enum { OPEN_FILES_MIN = 1024, YEAR_2025 = 1735689600 };

/* "MemAvailable:   12345 kB" */
static void read_meminfo(struct wt_host *h) {
    char line[128];
    uint64_t kib;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "MemTotal: %" SCNu64, &kib) == 1)
            h->memory = kib << 10;
        else if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
            h->memory_free = kib << 10;
    }
    if (f)
        fclose(f);
}

/* Tiers of one tmpfs are in the same memory: what all of them may still grow by. */
static void judge_memory(struct wt_doctor *d) {
    uint64_t growth = 0;
    const char *name = NULL;
    char a[WT_SIZE_TEXT], b[WT_SIZE_TEXT];
    for (size_t i = 0; i < d->n_tiers; i++) {
        const struct wt_doctor_tier *t = &d->tier[i];
        if (t->place.state != WT_PLACE_FOLDER || !t->place.tmpfs || !t->writes)
            continue;
        uint64_t more = t->place.available, left = t->opts->capacity;
        left = left > t->used ? left - t->used : 0;
        growth += t->opts->capacity && left < more ? left : more;
        name = t->opts->name;
    }
    if (name && d->host.memory_free && growth > d->host.memory_free)
        wt_doctor_find(d, WT_DOCTOR_WRONG, WT_DOCTOR_MEMORY, name, NULL,
                       "tiers in memory may grow by %s, but only %s of memory are available",
                       wt_size_format(growth, a), wt_size_format(d->host.memory_free, b));
}

static void judge_files(struct wt_doctor *d) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    d->host.open_files = limit.rlim_cur;
    if (limit.rlim_cur < OPEN_FILES_MIN)
        wt_doctor_find(d, WT_DOCTOR_WRONG, WT_DOCTOR_OPEN_FILES, "host", NULL,
                       "a process may open %" PRIu64 " files only", d->host.open_files);
}

static void judge_clock(struct wt_doctor *d) {
    struct timex t = {0};
    int state = adjtimex(&t);
    d->host.clock_synchronised = state >= 0 && state != TIME_ERROR && !(t.status & STA_UNSYNC);
    if (time(NULL) < YEAR_2025)
        wt_doctor_find(d, WT_DOCTOR_WRONG, WT_DOCTOR_CLOCK, "host", NULL,
                       "the clock stands before the year 2025");
    else if (!d->host.clock_synchronised)
        wt_doctor_find(d, WT_DOCTOR_NOTE, WT_DOCTOR_CLOCK, "host", NULL,
                       "nothing keeps the clock right, as far as the kernel knows");
}

void wt_doctor_host(struct wt_doctor *d) {
    read_meminfo(&d->host);
    judge_memory(d);
    judge_files(d);
    judge_clock(d);
}
