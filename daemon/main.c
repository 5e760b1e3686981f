/*
 * wafertierd: options, signals, the loop.
 *
 * Exit codes: 0 stopped by a signal; 1 failed at run time; 2 wrong options or configuration.
 */
#include "daemon/daemon.h"
#include "wafertier/version.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_CONFIG "/etc/wafertier/wafertierd.conf"

enum { EXIT_USAGE = 2 };
enum action { RUN, CHECK, PRINT };

struct args {
    const char *config;
    enum action action;
};

static const char help[] =
    "Usage: wafertierd [OPTION]...\n"
    "Moves shards of wafer images between storage tiers as they are read.\n\n"
    "  -c, --config FILE    configuration (default " DEFAULT_CONFIG ")\n"
    "      --check-config   check the configuration and exit\n"
    "      --print-config   print the configuration with all options explained, and exit;\n"
    "                       without --config: the defaults\n"
    "      --version        print the version and exit\n"
    "  -h, --help           print this and exit\n\n"
    "SIGHUP reloads the configuration, SIGTERM and SIGINT stop the daemon.\n"
    "Exit status: 0 stopped, 1 failed, 2 wrong options or configuration.\n";

/* -1: go on; else the exit code. */
static int parse_args(int argc, char **argv, struct args *args) {
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'}, {"check-config", no_argument, NULL, 'k'},
        {"print-config", no_argument, NULL, 'p'}, {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},         {0},
    };
    for (int c; (c = getopt_long(argc, argv, "c:h", options, NULL)) != -1;) {
        switch (c) {
        case 'c':
            args->config = optarg;
            break;
        case 'k':
            args->action = CHECK;
            break;
        case 'p':
            args->action = PRINT;
            break;
        case 'v':
            puts("wafertierd " WAFERTIER_VERSION_STRING);
            return 0;
        case 'h':
            fputs(help, stdout);
            return 0;
        default:
            fputs("Try 'wafertierd --help'.\n", stderr);
            return EXIT_USAGE;
        }
    }
    if (optind == argc)
        return -1;
    fprintf(stderr, "wafertierd: '%s' is no option; try 'wafertierd --help'\n", argv[optind]);
    return EXIT_USAGE;
}

struct signals {
    uv_signal_t term, interrupt, hangup;
    struct wt_daemon *d;
};

static void on_signal(uv_signal_t *handle, int number) {
    struct signals *s = handle->data;
    struct wt_err err;
    if (number == SIGHUP)
        wt_daemon_reload(s->d, NULL, &err); /* it logs what came of it */
    else
        wt_daemon_stop(s->d);
}

/* They do not keep the loop alive: it ends when the daemon has nothing left. */
static void watch_signals(uv_loop_t *loop, struct signals *s) {
    struct {
        uv_signal_t *handle;
        int number;
    } list[] = {{&s->term, SIGTERM}, {&s->interrupt, SIGINT}, {&s->hangup, SIGHUP}};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        uv_signal_init(loop, list[i].handle);
        list[i].handle->data = s;
        uv_signal_start(list[i].handle, on_signal, list[i].number);
        uv_unref((uv_handle_t *)list[i].handle);
    }
    signal(SIGPIPE, SIG_IGN);
}

/* Who asks twice (timeout(1) does) must not end by the signal what is ending by itself. */
static void ignore_signals(struct signals *s) {
    uv_signal_t *handle[] = {&s->term, &s->interrupt, &s->hangup};
    const int number[] = {SIGTERM, SIGINT, SIGHUP};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof handle / sizeof handle[0]; i++)
        sigaddset(&set, number[i]);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* closing a handle brings the default back */
    for (size_t i = 0; i < sizeof handle / sizeof handle[0]; i++) {
        uv_close((uv_handle_t *)handle[i], NULL);
        signal(number[i], SIG_IGN);
    }
}

static int finish_loop(uv_loop_t *loop, struct signals *s, struct wt_daemon *d) {
    if (d->hurried)
        return d->failed;
    ignore_signals(s);
    uv_run(loop, UV_RUN_DEFAULT);
    wt_daemon_free(d);
    uv_loop_close(loop);
    return d->failed;
}

static int serve(const char *path, const struct wt_daemon_conf *conf) {
    uv_loop_t loop;
    struct wt_daemon *d = calloc(1, sizeof *d);
    struct signals signals = {.d = d};
    struct wt_log log = {
        .fn = wt_log_stderr, .arg = (void *)(uintptr_t) "wafertierd", .level = WT_LOG_INFO};
    struct wt_err err = {0};
    if (!d || uv_loop_init(&loop) < 0) {
        free(d);
        fputs("wafertierd: out of memory\n", stderr);
        return EXIT_FAILURE;
    }
    watch_signals(&loop, &signals);
    if (wt_daemon_start(d, &loop, path, conf, &log, &err) < 0)
        wt_log(&log, WT_LOG_ERROR, "%s", err.text);
    uv_run(&loop, UV_RUN_DEFAULT);
    int failed = finish_loop(&loop, &signals, d);
    if (d->hurried)
        _Exit(failed ? EXIT_FAILURE : EXIT_SUCCESS);
    free(d);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    struct args args = {0};
    int rc = parse_args(argc, argv, &args);
    if (rc >= 0)
        return rc;
    if (args.action == PRINT && !args.config) {
        wt_conf_print(&wt_daemon_conf_table, NULL, stdout);
        return EXIT_SUCCESS;
    }
    const char *path = args.config ? args.config : DEFAULT_CONFIG;
    struct wt_daemon_conf *conf = calloc(1, sizeof *conf);
    struct wt_err err = {0};
    if (!conf || wt_daemon_conf_load(path, conf, &err) < 0) {
        fprintf(stderr, "wafertierd: %s\n", conf ? err.text : "out of memory");
        free(conf);
        return EXIT_USAGE;
    }
    rc = EXIT_SUCCESS;
    if (args.action == PRINT)
        wt_conf_print(&wt_daemon_conf_table, conf, stdout);
    else if (args.action == CHECK)
        printf("%s is fine (tiers: %zu)\n", path, conf->n_tiers);
    else
        rc = serve(path, conf);
    free(conf);
    return rc;
}
