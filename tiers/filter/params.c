/* The text of filters, cut into words; see params.h. Failures name the word. */
#include "tiers/filter/params.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int add_param(struct wt_filter_params *out, char *word, struct wt_err *err) {
    char *equals = strchr(word, '=');
    if (!equals || equals == word || !equals[1])
        return wt_err_set(err, WT_EINVAL, "filter %s: '%s' is not NAME=VALUE", out->filter, word);
    if (out->n == WT_FILTER_PARAMS)
        return wt_err_set(err, WT_EINVAL, "filter %s: more than %d parameters", out->filter,
                          WT_FILTER_PARAMS);
    *equals = '\0';
    out->param[out->n++] = (struct wt_filter_param){word, equals + 1};
    return 0;
}

int wt_filter_params_next(const char **text, struct wt_filter_params *out, struct wt_err *err) {
    const char *begin = *text + strspn(*text, " \t\n;");
    size_t len = strcspn(begin, ";");
    if (len == 0)
        return 0;
    if (len >= sizeof out->text)
        return wt_err_set(err, WT_EINVAL, "a filter's text is longer than %zu bytes",
                          sizeof out->text - 1);
    *out = (struct wt_filter_params){0};
    memcpy(out->text, begin, len);
    *text = begin + len;
    char *rest;
    out->filter = strtok_r(out->text, " \t\n", &rest);
    for (char *word; (word = strtok_r(NULL, " \t\n", &rest));) {
        int rc = add_param(out, word, err);
        if (rc < 0)
            return rc;
    }
    return 1;
}

enum wt_op wt_filter_op(const char *name) {
    static const struct {
        const char *name;
        enum wt_op op;
    } rows[] = {
        {"read", WT_OP_GET},      {"write", WT_OP_PUT_WRITE},   {"stat", WT_OP_STAT},
        {"open", WT_OP_PUT_OPEN}, {"commit", WT_OP_PUT_COMMIT}, {"abort", WT_OP_PUT_ABORT},
        {"remove", WT_OP_REMOVE}, {"list", WT_OP_LIST},         {"usage", WT_OP_USAGE},
        {"probe", WT_OP_PROBE},   {"lock", WT_OP_LOCK},         {"unlock", WT_OP_UNLOCK},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(name, rows[i].name) == 0)
            return rows[i].op;
    return WT_OP_COUNT;
}

int wt_filter_number(const struct wt_filter_param *p, uint64_t *out, struct wt_err *err) {
    char *end;
    errno = 0;
    unsigned long long v = strtoull(p->value, &end, 10);
    if (*p->value < '0' || *p->value > '9' || *end || errno)
        return wt_err_set(err, WT_EINVAL, "%s=%s is not a whole number", p->name, p->value);
    *out = v;
    return 0;
}

/* splitmix64's mixer, over the three. */
uint64_t wt_filter_random(uint64_t seed, uint64_t stream, uint64_t count) {
    uint64_t x =
        seed + stream * UINT64_C(0xd1342543de82ef95) + (count + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}
