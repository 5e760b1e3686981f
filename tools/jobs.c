/* `wafertier jobs`: who reads what, how far it is, and what it waits for. */
#include "tools/daemon.h"

#include <inttypes.h>

static double part_of(double part, double all) {
    return all > 0 ? 100 * part / all : 0;
}

static void show_job(const json_t *j) {
    char read[WT_SIZE_TEXT], need[WT_SIZE_TEXT];
    double stalled = part_of(wt_view_real(j, "stall_s"), wt_view_real(j, "running_s"));
    const char *tier = wt_view_text(j, "blame_tier");
    printf("%-16s %-16.16s %-12s %6" PRIu64 " %8" PRIu64 " %10s %6.1f%% ", wt_view_text(j, "id"),
           wt_view_text(j, "name"), wt_view_text(j, "dataset"), wt_view_count(j, "epoch"),
           wt_view_count(j, "step"), wt_view_size(j, "bytes", read),
           part_of(wt_view_real(j, "hits"), wt_view_real(j, "reads")));
    if (wt_view_real(j, "cold_ratio") > 0)
        printf("%6.2f ", wt_view_real(j, "cold_ratio"));
    else
        printf("%6s ", "-");
    printf("%9s/s %-8s %6.1f%% %s%s%s\n", wt_view_size(j, "predicted.cold_bandwidth", need),
           wt_view_text(j, "order"), stalled, wt_view_text(j, "blame"), tier[0] ? ": " : "", tier);
}

static void show(const json_t *reply) {
    const json_t *list = wt_view(reply, "jobs"), *job;
    size_t i;
    if (json_array_size(list) == 0) {
        puts("no job reports");
        return;
    }
    printf("%-16s %-16s %-12s %6s %8s %10s %7s %6s %11s %-8s %7s %s\n", "job", "name", "data set",
           "epoch", "step", "read", "above", "cold", "cold need", "order", "stalled", "for");
    json_array_foreach(list, i, job) show_job(job);
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    return wt_daemon_show(verb, argc, argv, "GET", "/v1/jobs", show);
}

const struct wt_verb wt_verb_jobs = {
    .name = "jobs",
    .summary = "the jobs that read, and what they wait for",
    .operands = "",
    .about =
        "A line for each job that reports to the daemon: where it is, how much it read and which "
        "part of that above cold; 'cold', the bytes that left the cold tier for it, as a multiple "
        "of the least that any placement could have reached (1.00 is perfect); 'cold need', bytes "
        "a second that all jobs need of cold; 'order', whether the daemon knows what it reads "
        "next; which part of its time it stalled, and the stage and tier that it waited for most.",
    .args = wt_daemon_show_args,
    .n_args = WT_DAEMON_SHOW_ARGS,
    .run = run,
};
