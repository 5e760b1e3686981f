/* Checks of keys, fields, labels and shapes; see shard_check.h. wt_key_escape makes legal key
 * parts. */
#include "core/shard_check.h"

#include "core/json.h"
#include "core/shard_format.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static bool key_char(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("_-+=%~@", c));
}

static bool escaped_here(const char *text, size_t i) {
    /* WebDataset skips members whose folder begins with two underscores. */
    if (i == 0 && text[0] == '_' && text[1] == '_')
        return true;
    return text[i] == '%' || !key_char(text[i]);
}

int wt_key_escape(const char *text, char *out, size_t size) {
    char part[WT_KEY_MAX];
    size_t n = 0;
    for (size_t i = 0; text[i]; i++) {
        bool escape = escaped_here(text, i);
        if (n + (escape ? 3 : 1) >= sizeof part)
            return WT_EINVAL;
        if (escape)
            n += (size_t)snprintf(part + n, sizeof part - n, "%%%02X", (unsigned char)text[i]);
        else
            part[n++] = text[i];
    }
    if (n == 0 || n >= size)
        return WT_EINVAL;
    memcpy(out, part, n);
    out[n] = '\0';
    return 0;
}

static const char *key_fault(const char *key) {
    if (!key || key[0] == '\0')
        return "a key is empty";
    if (strnlen(key, WT_KEY_MAX) == WT_KEY_MAX)
        return "longer than 91 bytes";
    if (strncmp(key, "__", 2) == 0)
        return "begins with '__', which WebDataset skips";
    char before = '/';
    for (const char *p = key; *p; before = *p++) {
        if (*p == '/' && before == '/')
            return "has an empty part";
        if (*p != '/' && !key_char(*p))
            return "has a byte outside A-Z a-z 0-9 _ - + = % ~ @ / (escape it)";
    }
    return before == '/' ? "ends in '/'" : NULL;
}

bool wt_field_name_legal(const char *name) {
    size_t n = strnlen(name, WT_FIELD_NAME);
    if (n == WT_FIELD_NAME)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!(name[i] >= 'a' && name[i] <= 'z') && !(name[i] >= '0' && name[i] <= '9') &&
            name[i] != '_')
            return false;
    return true;
}

static const char *label_fault(const struct wt_sample_in *s, const struct wt_shard_opts *opts) {
    if (s->multihot && opts->n_multihot == 0)
        return "a multi-hot label in a data set of single labels";
    if (opts->n_multihot == 0)
        return s->label < WT_UNLABELLED || s->label >= WT_MAX_CLASSES ? "a label out of range"
                                                                      : NULL;
    for (uint32_t i = 0; s->multihot && i < opts->n_multihot; i++)
        if (s->multihot[i] > 1)
            return "a multi-hot label with a value that is neither 0 nor 1";
    return NULL;
}

/* 0, WT_EINVAL (*fault says why) or WT_ENOMEM. */
static int check_json(const char *text, const char **fault) {
    if (!text)
        return 0;
    json_t *value = NULL;
    int rc = wt_json_load(text, strlen(text), 0, &value, NULL);
    bool is_object = json_is_object(value);
    json_decref(value);
    if (rc == WT_ENOMEM || is_object)
        return rc;
    *fault = "its json is no JSON object";
    return WT_EINVAL;
}

static const char *tensor_fault(const struct wt_tensor *t, size_t key_len) {
    uint64_t bytes;
    if (!t->name || !wt_field_name_legal(t->name))
        return "a field name that is not [a-z0-9_], or longer than 31 bytes";
    size_t name_len = strlen(t->name);
    if (key_len + (name_len ? 1 + name_len : 0) + strlen(".npy") >= WT_TAR_NAME_WRITE)
        return "key and field name together do not fit in 99 bytes";
    if (!wt_shape_bytes(&t->shape, &bytes) || bytes > WT_SHARD_MAX_DECODED)
        return "a tensor of no known type, or too large";
    if (wt_row_bytes(&t->shape, bytes) > WT_MAX_ROW)
        return "a tensor with rows of more than 1 GiB";
    return bytes && !t->data ? "a tensor without data" : NULL;
}

static const char *tensors_fault(const struct wt_sample_in *s) {
    if (s->n_tensors == 0)
        return "no tensor";
    if (s->n_tensors > WT_MAX_FIELDS)
        return "more than 16 tensors";
    for (size_t i = 0; i < s->n_tensors; i++) {
        const char *fault = tensor_fault(&s->tensors[i], strlen(s->key));
        if (fault)
            return fault;
        for (size_t k = 0; k < i; k++)
            if (strcmp(s->tensors[i].name, s->tensors[k].name) == 0)
                return "the same field twice";
    }
    return NULL;
}

int wt_sample_check(const struct wt_sample_in *sample, const struct wt_shard_opts *opts,
                    struct wt_err *err) {
    const char *fault = key_fault(sample->key);
    if (!fault)
        fault = label_fault(sample, opts);
    if (!fault)
        fault = tensors_fault(sample);
    int rc = fault ? WT_EINVAL : check_json(sample->json, &fault);
    if (rc == WT_ENOMEM)
        return wt_err_set(err, rc, "sample '%.100s': no memory to check its json", sample->key);
    if (rc == 0)
        return 0;
    return wt_err_set(err, WT_EINVAL, "sample '%.100s': %s", sample->key ? sample->key : "", fault);
}
