/* wafertierd.conf: checks between options, and that the files that are shipped are right and
 * complete. */
#include "daemon/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tiers/backend.h"
#include "tiers/conf.h"

#include <cmocka.h>

#define TIERS "tier cold { url = \"file:///c\" }\n"

static int parse(const char *text, struct wt_daemon_conf *conf, struct wt_err *err) {
    int rc = wt_conf_parse(&wt_daemon_conf_table, "x.conf", text, conf, err);
    return rc < 0 ? rc : wt_daemon_conf_check(conf, err);
}

static void defaults(void **state) {
    (void)state;
    struct wt_daemon_conf c;
    struct wt_err err = {0};
    if (parse(TIERS, &c, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(c.socket_path, "/run/wafertier/control.sock");
    assert_int_equal(c.mode, 0660);
    assert_int_equal(c.log_level, WT_LOG_INFO);
    assert_int_equal(c.mover.moves, 4);
    assert_int_equal(c.mover.bytes, 64 << 20);
    assert_int_equal(c.policy.min_stay, 60);
    assert_true(c.policy.cold_below > 0.009 && c.policy.hot_above < 0.11);
}

static void wrong_ones(void **state) {
    (void)state;
    static const struct {
        const char *text, *want;
    } bad[] = {
        {"", "no tier is given"},
        {TIERS "state_folder = relative", "absolute"},
        {TIERS "log_level = loud", "'loud'"},
        {TIERS "control = \"/run/x.sock\"", "unix:"},
        {TIERS "control = \"unix:relative\"", "absolute"},
        {TIERS "control_mode = 0999", "octal"},
        {TIERS "policy { low = 0.96 }", "must not be above high"},
        {TIERS "policy { cold_below = 0.5 }", "must not be above hot_above"},
        {TIERS "mover { moves = 9 }", "bytes_in_flight of at least 72MiB"},
        {TIERS "mover { backoff = 2min }", "backoff_max"},
        {TIERS "tier warm { url = \"file:///c\" }", "same url"},
        {TIERS "tier warm { }", "'url' must be given"},
        {TIERS "listen { address = \":1\" }", "'cert_file' must be an absolute path"},
        {TIERS "listen { address = \":1\" cert_file = \"/c\" key_file = \"/k\" }", "'token_file'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct wt_daemon_conf c;
        struct wt_err err = {0};
        assert_int_equal(parse(bad[i].text, &c, &err), WT_EINVAL);
        if (!strstr(err.text, bad[i].want))
            fail_msg("'%s' lacks '%s'", err.text, bad[i].want);
    }
}

static char *slurp(const char *path) {
    FILE *f = fopen(path, "re");
    char *text = calloc(1, 1 << 17);
    assert_non_null(f);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 17) - 1, f) > 0);
    fclose(f);
    return text;
}

static void shipped_files(void **state) {
    (void)state;
    struct wt_daemon_conf c;
    struct wt_err err = {0};
    static const char *const files[] = {WT_SOURCE_DIR "/config/wafertierd.conf",
                                        WT_SOURCE_DIR "/config/local.conf"};
    for (int i = 0; i < 2; i++) {
        if (wt_daemon_conf_load(files[i], &c, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(c.n_tiers, 3);
        struct wt_client_conf client;
        if (wt_client_conf_load(files[i], &client, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(client.n_tiers, 3);
        assert_string_equal(client.control, c.control);
        for (int t = 0; t < 3; t++)
            assert_string_equal(client.tier[t].url, c.tier[t].url);
    }
    struct wt_client_conf client;
    if (wt_client_conf_load(WT_SOURCE_DIR "/config/loader.conf", &client, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(client.n_tiers, 3);
    assert_true(client.tier[0].read_only);
}

/* The commented sample has every option, with the help and the default of the table. */
static void the_sample_is_complete(void **state) {
    (void)state;
    char *text = slurp(WT_SOURCE_DIR "/config/wafertierd.conf");
    struct wt_daemon_conf c, back;
    struct wt_err err = {0};
    assert_int_equal(wt_daemon_conf_load(WT_SOURCE_DIR "/config/wafertierd.conf", &c, &err), 0);
    char *printed = NULL;
    size_t len;
    FILE *out = open_memstream(&printed, &len);
    wt_conf_print(&wt_daemon_conf_table, &c, out);
    fclose(out);
    const char *body = strchr(printed, '\n'); /* without the title */
    if (!strstr(text, body))
        fail_msg("config/wafertierd.conf does not end as --print-config prints it");
    assert_int_equal(parse(printed, &back, &err), 0);
    assert_int_equal(wt_conf_frozen(&wt_daemon_conf_table, &c, &back, &err), 0);
    for (size_t i = 0; i < wt_daemon_conf_table.n_opts; i++)
        assert_non_null(strstr(text, wt_daemon_conf_table.opts[i].name));
    free(printed);
    free(text);
}

/* Both samples name each form of a tier's URL that a backend takes. */
static void samples_tell_every_url(void **state) {
    (void)state;
    char *loader = slurp(WT_SOURCE_DIR "/config/loader.conf");
    const char *help = NULL;
    for (size_t i = 0; i < wt_daemon_conf_table.n_opts; i++)
        if (strcmp(wt_daemon_conf_table.opts[i].name, "url") == 0)
            help = wt_daemon_conf_table.opts[i].help;
    assert_non_null(help);
    for (size_t i = 0; wt_backends[i]; i++) {
        char form[200];
        snprintf(form, sizeof form, "%.*s", (int)strcspn(wt_backends[i]->help, " "),
                 wt_backends[i]->help);
        if (!strstr(help, form))
            fail_msg("the help of option url lacks '%s'", form);
        if (!strstr(loader, form))
            fail_msg("config/loader.conf lacks '%s'", form);
    }
    free(loader);
}

/* scripts move the embedded default by replacing the three roots. */
static void local_paths_have_known_roots(void **state) {
    (void)state;
    char *text = slurp(WT_SOURCE_DIR "/config/local.conf");
    for (char *at = text; (at = strpbrk(at, "\"")); at++) {
        char *path = strchr(at, '/');
        char *end = strchr(at + 1, '"');
        assert_non_null(end);
        if (path && path < end) {
            while (path[1] == '/')
                path++;
            bool known = strncmp(path, "/var/lib/wafertier/", 19) == 0 ||
                         strncmp(path, "/run/wafertier/", 15) == 0 ||
                         strncmp(path, "/dev/shm/wafertier", 18) == 0;
            if (!known)
                fail_msg("a path of local.conf begins elsewhere: %.40s", path);
        }
        at = end;
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(defaults),
                                       cmocka_unit_test(wrong_ones),
                                       cmocka_unit_test(shipped_files),
                                       cmocka_unit_test(the_sample_is_complete),
                                       cmocka_unit_test(samples_tell_every_url),
                                       cmocka_unit_test(local_paths_have_known_roots)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
