/* DATASET[/LOT[/WAFER]]; see select.h. */
#include "tools/select.h"

#include "core/dataset.h"
#include "tools/daemon.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct selection {
    char dataset[WT_DATASET_NAME], lot[WT_KEY_MAX], wafer[WT_KEY_MAX];
};

/* One part of it; *text moves behind the slash after it. */
static int take(const char **text, char *out, size_t size, const char *what, struct wt_err *err) {
    size_t n = strcspn(*text, "/");
    if (n == 0 || n >= size)
        return wt_err_set(err, WT_EINVAL, "the name of the %s is %s", what,
                          n == 0 ? "missing" : "too long");
    memcpy(out, *text, n);
    out[n] = '\0';
    *text += n + ((*text)[n] == '/');
    return 0;
}

static int parse(const char *operand, struct selection *s, struct wt_err *err) {
    const char *at = operand;
    *s = (struct selection){0};
    int rc = take(&at, s->dataset, sizeof s->dataset, "data set", err);
    if (rc == 0)
        rc = wt_dataset_name_check(s->dataset, err);
    if (rc == 0 && strchr(operand, '/'))
        rc = take(&at, s->lot, sizeof s->lot, "lot", err);
    if (rc == 0 && s->lot[0] && operand[strlen(s->dataset) + 1 + strlen(s->lot)] == '/')
        rc = take(&at, s->wafer, sizeof s->wafer, "wafer", err);
    if (rc == 0 && at[0])
        rc = wt_err_set(err, WT_EINVAL, "it goes on after the wafer");
    if (rc < 0)
        wt_err_wrap(err, "'%.100s' is no DATASET[/LOT[/WAFER]]", operand);
    return rc;
}

json_t *wt_select_json(const char *operand, const char *tier, struct wt_err *err) {
    struct selection s;
    if (parse(operand, &s, err) < 0)
        return NULL;
    json_t *o =
        json_pack("{s:s, s:s*, s:s*, s:s*}", "dataset", s.dataset, "lot", s.lot[0] ? s.lot : NULL,
                  "wafer", s.wafer[0] ? s.wafer : NULL, "tier", tier);
    if (!o)
        wt_err_set(err, WT_EINVAL, "'%.100s' and its tier must be UTF-8", operand);
    return o;
}

const char *wt_select_text(const json_t *o, char out[WT_SELECT_TEXT]) {
    const char *lot = wt_view_text(o, "lot"), *wafer = wt_view_text(o, "wafer");
    snprintf(out, WT_SELECT_TEXT, "%s%s%s%s%s", wt_view_text(o, "dataset"), lot[0] ? "/" : "", lot,
             wafer[0] ? "/" : "", wafer);
    return out;
}

int wt_select_param(char *out, size_t size, const char *name, const char *value,
                    struct wt_err *err) {
    size_t at = strlen(out);
    int n = snprintf(out + at, size - at, "%s%s=", at ? "&" : "", name);
    for (const char *p = value; n >= 0 && at + (size_t)n < size && *p; p++) {
        unsigned char c = (unsigned char)*p;
        at += (size_t)n;
        n = snprintf(out + at, size - at, isalnum(c) || strchr("-_.~", c) ? "%c" : "%%%02X", c);
    }
    return n >= 0 && at + (size_t)n < size ? 0 : wt_err_set(err, WT_ERANGE, "%s is too long", name);
}

int wt_select_query(const char *operand, char *out, size_t size, struct wt_err *err) {
    struct selection s;
    out[0] = '\0';
    int rc = parse(operand, &s, err);
    if (rc == 0)
        rc = wt_select_param(out, size, "dataset", s.dataset, err);
    if (rc == 0 && s.lot[0])
        rc = wt_select_param(out, size, "lot", s.lot, err);
    if (rc == 0 && s.wafer[0])
        rc = wt_select_param(out, size, "wafer", s.wafer, err);
    return rc;
}
