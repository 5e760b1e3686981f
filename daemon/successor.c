/* One step after the other; see successor.h. */
#include "daemon/successor.h"

#include <stdlib.h>
#include <string.h>

static void end(struct wt_successor *s, int rc, const struct wt_err *err) {
    struct wt_err why = *err;
    free(s->text);
    free(s->next);
    s->text = s->next = NULL;
    s->busy = false;
    s->done(s, rc, &why);
}

static bool may(void *arg) {
    struct wt_successor *s = arg;
    return s->may(s->arg);
}

/* Between two steps: goes it on? */
static int go_on(const struct wt_successor *s, int rc, struct wt_err *err) {
    return rc == 0 && s->canceled ? wt_err_set(err, WT_ECANCELED, "%s: canceled", s->key) : rc;
}

static void start(struct wt_successor *s, const char *key,
                  void (*done)(void *arg, int rc, const struct wt_err *err)) {
    s->object = (struct wt_whole){
        .tier = s->cold, .key = key, .most = WT_MANIFEST_MAX, .may = may, .done = done, .arg = s};
}

static void on_published(void *arg, int rc, const struct wt_err *err) {
    end(arg, rc, err);
}

/* Nobody may have published in the meantime. */
static int check(struct wt_successor *s, const char *text, size_t len, struct wt_err *err) {
    if (wt_hash_equal(wt_hash(text, len), s->manifest))
        return 0;
    return wt_err_set(err, WT_ECHANGED, "%s: another manifest has come meanwhile", s->key);
}

static void on_read_again(void *arg, int rc, const struct wt_err *err) {
    struct wt_successor *s = arg;
    struct wt_err why = *err;
    if (rc == 0) {
        rc = check(s, s->object.text, s->object.len, &why);
        free(s->object.text);
    }
    if (rc < 0) {
        end(s, rc, &why);
        return;
    }
    start(s, s->key, on_published);
    wt_whole_write(&s->object, s->next, strlen(s->next));
}

static void on_retired(void *arg, int rc, const struct wt_err *err) {
    struct wt_successor *s = arg;
    struct wt_err why = *err;
    rc = go_on(s, rc, &why);
    if (rc < 0) {
        end(s, rc, &why);
        return;
    }
    start(s, s->key, on_read_again);
    wt_whole_read(&s->object);
}

static void on_read(void *arg, int rc, const struct wt_err *err) {
    struct wt_successor *s = arg;
    struct wt_err why = *err;
    size_t len = s->object.len;
    if (rc == 0) {
        s->text = s->object.text;
        rc = check(s, s->text, len, &why);
    }
    if (rc == 0) {
        s->next = wt_manifest_flushed(s->text, len, s->now_s, &why);
        rc = s->next ? 0 : why.code;
    }
    if (rc < 0) {
        end(s, rc, &why);
        return;
    }
    start(s, s->retired, on_retired);
    wt_whole_write(&s->object, s->text, len);
}

void wt_successor_start(struct wt_successor *s) {
    s->busy = true;
    s->canceled = false;
    s->text = s->next = NULL;
    wt_manifest_name(s->name, s->key);
    wt_retired_name(s->name, s->generation, s->retired);
    start(s, s->key, on_read);
    wt_whole_read(&s->object);
}

void wt_successor_cancel(struct wt_successor *s) {
    s->canceled = true;
    if (s->busy)
        wt_whole_cancel(&s->object);
}
