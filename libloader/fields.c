/*
 * Which tensors a batch has: the data set's fields (those that the options name), then label,
 * valid, sample_id, size and, in a multi-hot data set, multihot. A batch is one block of memory a
 * tensor, so a field must have one shape.
 */
#include "libloader/open.h"

#include <stdlib.h>
#include <string.h>

static const char *shown(const char *stored) {
    return stored[0] ? stored : "image";
}

/* Is `name` in the comma-separated list? NULL: everything is. */
static bool listed(const char *list, const char *name) {
    if (!list)
        return true;
    size_t n = strlen(name);
    for (const char *at = list; *at;) {
        size_t len = strcspn(at, ",");
        if (len == n && memcmp(at, name, n) == 0)
            return true;
        at += len + (at[len] == ',');
    }
    return false;
}

static int check_list(const struct wl_loader *l, struct wt_err *err) {
    for (const char *at = l->o.fields; at && *at;) {
        size_t len = strcspn(at, ",");
        bool found = false;
        for (uint32_t i = 0; i < l->ds.m.n_fields && !found; i++) {
            const char *name = shown(l->ds.m.field[i].name);
            found = strlen(name) == len && memcmp(name, at, len) == 0;
        }
        if (!found)
            return wt_err_set(
                err, WT_EINVAL,
                "option 'fields' names '%.*s', which data set '%s' does not have (it has %s%s)",
                (int)len, at, l->dataset, l->ds.m.n_fields ? shown(l->ds.m.field[0].name) : "none",
                l->ds.m.n_fields > 1 ? " and others" : "");
        at += len + (at[len] == ',');
    }
    return 0;
}

static void add_spec(struct wt_tensor_spec *spec, size_t *n, const char *name, wl_dtype dtype,
                     int ndim, int64_t dim) {
    struct wt_tensor_spec *s = &spec[(*n)++];
    *s = (struct wt_tensor_spec){.dtype = dtype, .ndim = ndim, .dim = {dim}};
    strcpy(s->name, name);
}

static int add_field(struct wl_loader *l, const struct wt_field_info *info,
                     struct wt_tensor_spec *spec, size_t *n, struct wt_err *err) {
    uint64_t bytes;
    if (info->shape.ndim == UINT32_MAX)
        return wt_err_set(err, WT_EUNSUPPORTED,
                          "data set '%s': the shapes of field '%s' differ between samples (of type "
                          "%s), and a batch needs one: leave it out "
                          "with 'fields'",
                          l->dataset, shown(info->name), wt_dtype_name(info->shape.dtype));
    if (info->shape.ndim >= WL_MAX_NDIM || !wt_shape_bytes(&info->shape, &bytes))
        return wt_err_set(err, WT_EUNSUPPORTED,
                          "data set '%s': field '%s' has %u dimensions, a batch takes %d",
                          l->dataset, shown(info->name), info->shape.ndim, WL_MAX_NDIM - 1);
    struct wt_field *f = &l->field[l->n_fields++];
    *f = (struct wt_field){.shape = info->shape, .bytes = (size_t)bytes};
    strcpy(f->name, info->name);
    struct wt_tensor_spec *s = &spec[(*n)++];
    *s = (struct wt_tensor_spec){.dtype = (wl_dtype)info->shape.dtype,
                                 .ndim = (int)info->shape.ndim};
    strcpy(s->name, shown(info->name));
    for (uint32_t i = 0; i < info->shape.ndim; i++)
        s->dim[i] = info->shape.dim[i];
    if (!info->name[0] || l->size_field < 0)
        l->size_field = (int)l->n_fields - 1;
    return 0;
}

int wt_loader_fields(struct wl_loader *l, struct wt_tensor_spec spec[WT_RING_TENSORS], size_t *n,
                     struct wt_err *err) {
    *n = 0;
    l->size_field = -1;
    int rc = check_list(l, err);
    for (uint32_t i = 0; i < l->ds.m.n_fields && !rc; i++)
        if (listed(l->o.fields, shown(l->ds.m.field[i].name)))
            rc = add_field(l, &l->ds.m.field[i], spec, n, err);
    if (rc)
        return rc;
    l->at_label = *n;
    add_spec(spec, n, "label", WL_I32, 0, 0);
    l->at_valid = *n;
    add_spec(spec, n, "valid", WL_U8, 0, 0);
    l->at_id = *n;
    add_spec(spec, n, "sample_id", WL_U64, 0, 0);
    l->at_size = *n;
    add_spec(spec, n, "size", WL_I32, 1, 2);
    l->at_multihot = SIZE_MAX;
    if (l->ds.m.label_kind == WT_LABEL_MULTIHOT) {
        l->at_multihot = *n;
        add_spec(spec, n, "multihot", WL_U8, 1, l->ds.m.n_classes);
    }
    return 0;
}
