/*
 * manifest.json: reading, checking and writing it by jansson; see dataset.h and
 * docs/shard-format.md.
 *
 * Happy path: text -> JSON -> each member by its type and range -> lists -> totals that must agree.
 * Failures: WT_ECORRUPT names the member and what is wrong with it; a manifest of another format
 * version is WT_EUNSUPPORTED; everything allocated is freed.
 */
#include "core/dataset.h"

#include "core/json.h"
#include "core/mem.h"
#include "core/shard_check.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MANIFEST_FORMAT "wafertier-dataset"

enum { CLASS_NAME_MAX = 255, MAX_LOTS = 1 << 30 };
static const uint64_t max_count = UINT64_C(1) << 62;

static const char *const label_kinds[] = {"none", "class", "multihot"};

static int bad(struct wt_err *err, const char *member, const char *what) {
    return wt_err_set(err, WT_ECORRUPT, "manifest: '%s' %s", member, what);
}

static int get_count(const json_t *o, const char *name, uint64_t max, uint64_t *value,
                     struct wt_err *err) {
    const json_t *v = json_object_get(o, name);
    if (!json_is_integer(v))
        return bad(err, name, v ? "is no integer" : "is missing");
    json_int_t n = json_integer_value(v);
    if (n < 0 || (uint64_t)n > max)
        return bad(err, name, "is out of range");
    *value = (uint64_t)n;
    return 0;
}

static int get_count32(const json_t *o, const char *name, uint64_t max, uint32_t *value,
                       struct wt_err *err) {
    uint64_t wide = 0;
    int rc = get_count(o, name, max, &wide, err);
    if (rc == 0)
        *value = (uint32_t)wide;
    return rc;
}

/* The text of a member, without NUL inside (jansson refuses those by default). */
static int get_text(const json_t *o, const char *name, const char **text, struct wt_err *err) {
    const json_t *v = json_object_get(o, name);
    if (!json_is_string(v))
        return bad(err, name, v ? "is no string" : "is missing");
    *text = json_string_value(v);
    return 0;
}

static int get_array(const json_t *o, const char *name, size_t max, const json_t **array,
                     struct wt_err *err) {
    const json_t *v = json_object_get(o, name);
    if (!json_is_array(v))
        return bad(err, name, v ? "is no array" : "is missing");
    if (json_array_size(v) > max)
        return bad(err, name, "has too many elements");
    *array = v;
    return 0;
}

/* ---- lists ---- */

static bool class_name_legal(const char *name) {
    size_t len = strlen(name);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 127)
            return false;
    return len > 0 && len <= CLASS_NAME_MAX;
}

static int get_class(const json_t *o, struct wt_manifest *m, json_t *names, struct wt_err *err) {
    const char *name = "";
    int rc = get_text(o, "name", &name, err);
    if (rc == 0)
        rc = get_count(o, "samples", max_count, &m->class_count[m->n_classes], err);
    if (rc < 0)
        return rc;
    if (!class_name_legal(name))
        return bad(err, "classes", "has a name that is empty, too long or not printable");
    if (json_object_get(names, name))
        return bad(err, "classes", "has the same name twice");
    char *copy = strdup(name);
    if (!copy || json_object_set(names, name, json_true()) < 0) {
        free(copy);
        return wt_err_set(err, WT_ENOMEM, "no memory for the manifest");
    }
    m->classes[m->n_classes++] = copy;
    return 0;
}

static int get_classes(const json_t *root, struct wt_manifest *m, struct wt_err *err) {
    const json_t *array = NULL;
    int rc = get_array(root, "classes", WT_MAX_CLASSES, &array, err);
    if (rc < 0)
        return rc;
    size_t n = json_array_size(array);
    json_t *names = json_object();
    m->classes = wt_calloc(n, sizeof *m->classes);
    m->class_count = wt_calloc(n, sizeof *m->class_count);
    if (!m->classes || !m->class_count || !names)
        rc = wt_err_set(err, WT_ENOMEM, "no memory for the manifest");
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = get_class(json_array_get(array, i), m, names, err);
    json_decref(names);
    return rc;
}

static int get_shape(const json_t *o, struct wt_shape *shape, struct wt_err *err) {
    const json_t *dims = json_object_get(o, "shape");
    if (json_is_null(dims)) {
        shape->ndim = UINT32_MAX;
        return 0;
    }
    if (!json_is_array(dims) || json_array_size(dims) > WT_MAX_NDIM)
        return bad(err, "fields", "has a shape that is neither null nor a list of sizes");
    shape->ndim = (uint32_t)json_array_size(dims);
    for (uint32_t i = 0; i < shape->ndim; i++) {
        const json_t *v = json_array_get(dims, i);
        json_int_t dim = json_integer_value(v);
        if (!json_is_integer(v) || dim < 0 || dim > UINT32_MAX)
            return bad(err, "fields", "has a shape with an impossible size");
        shape->dim[i] = (uint32_t)dim;
    }
    uint64_t bytes;
    if (!wt_shape_bytes(shape, &bytes) || bytes > WT_SHARD_MAX_DECODED)
        return bad(err, "fields", "has a shape without a dtype, or one that is too large");
    return 0;
}

static int get_field(const json_t *o, struct wt_manifest *m, struct wt_err *err) {
    struct wt_field_info *f = &m->field[m->n_fields];
    const char *name = "", *dtype = "";
    int rc = get_text(o, "name", &name, err);
    if (rc == 0)
        rc = get_text(o, "dtype", &dtype, err);
    if (rc < 0)
        return rc;
    if (!wt_field_name_legal(name))
        return bad(err, "fields", "has an illegal name");
    for (uint32_t i = 0; i < m->n_fields; i++)
        if (strcmp(m->field[i].name, name) == 0)
            return bad(err, "fields", "has the same name twice");
    memcpy(f->name, name, strlen(name) + 1);
    f->shape.dtype = wt_dtype_parse(dtype);
    if (f->shape.dtype == WT_DTYPE_NONE && strcmp(dtype, "mixed") != 0)
        return bad(err, "fields", "has an unknown dtype");
    rc = get_shape(o, &f->shape, err);
    if (rc == 0)
        m->n_fields++;
    return rc;
}

static int get_fields(const json_t *root, struct wt_manifest *m, struct wt_err *err) {
    const json_t *array = NULL;
    int rc = get_array(root, "fields", WT_MAX_FIELDS, &array, err);
    for (size_t i = 0; rc == 0 && i < json_array_size(array); i++)
        rc = get_field(json_array_get(array, i), m, err);
    return rc;
}

static int get_part(const json_t *o, struct wt_idx_part *part, struct wt_err *err) {
    const char *hex = "";
    int rc = get_text(o, "hash", &hex, err);
    if (rc == 0)
        rc = get_count32(o, "shards", WT_IDX_PART, &part->records, err);
    if (rc == 0 && part->records == 0)
        rc = bad(err, "index", "has an empty part");
    if (rc == 0 && wt_hash_parse(hex, &part->hash) < 0)
        rc = bad(err, "index", "has a hash that is not 32 hex digits");
    return rc;
}

static int get_parts(const json_t *root, struct wt_manifest *m, struct wt_err *err) {
    const json_t *array = NULL;
    int rc = get_array(root, "index", UINT32_MAX, &array, err);
    if (rc < 0)
        return rc;
    m->part = wt_calloc(json_array_size(array), sizeof *m->part);
    if (!m->part)
        return wt_err_set(err, WT_ENOMEM, "no memory for the manifest");
    for (size_t i = 0; rc == 0 && i < json_array_size(array); i++) {
        rc = get_part(json_array_get(array, i), &m->part[i], err);
        m->n_parts++;
    }
    return rc;
}

/* ---- the whole ---- */

static int check_version(const json_t *root, struct wt_err *err) {
    const char *format = "";
    uint64_t version = 0;
    int rc = get_text(root, "format", &format, err);
    if (rc == 0 && strcmp(format, MANIFEST_FORMAT) != 0)
        rc = bad(err, "format", "is not '" MANIFEST_FORMAT "'");
    if (rc == 0)
        rc = get_count(root, "version", max_count, &version, err);
    if (rc == 0 && version != WT_MANIFEST_VERSION)
        rc = wt_err_set(err, WT_EUNSUPPORTED,
                        "manifest of format version %llu, this program reads %d",
                        (unsigned long long)version, WT_MANIFEST_VERSION);
    return rc;
}

static int get_numbers(const json_t *root, struct wt_manifest *m, struct wt_err *err) {
    const struct {
        const char *name;
        uint64_t *value;
    } counts[] = {
        {"generation", &m->generation},
        {"created", &m->created},
        {"shards", &m->shards},
        {"samples", &m->samples},
        {"stored_bytes", &m->stored_bytes},
        {"tar_bytes", &m->tar_bytes},
        {"pixel_bytes", &m->pixel_bytes},
        {"labelled", &m->labelled},
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof counts / sizeof counts[0]; i++)
        rc = get_count(root, counts[i].name, max_count, counts[i].value, err);
    if (rc == 0)
        rc = get_count32(root, "lots", MAX_LOTS, &m->lots, err);
    if (rc == 0)
        rc = get_count32(root, "wafers", MAX_LOTS, &m->wafers, err);
    return rc;
}

static int get_head(const json_t *root, struct wt_manifest *m, struct wt_err *err) {
    const char *name = "", *kind = "";
    int rc = get_text(root, "name", &name, err);
    if (rc == 0 && wt_dataset_name_check(name, NULL) < 0)
        rc = bad(err, "name", "is no name of a data set");
    if (rc == 0)
        rc = get_text(root, "labels", &kind, err);
    if (rc < 0)
        return rc;
    memcpy(m->name, name, strlen(name) + 1);
    for (int i = 0; i < 3; i++) {
        if (strcmp(kind, label_kinds[i]) == 0) {
            m->label_kind = (enum wt_label_kind)i;
            return 0;
        }
    }
    return bad(err, "labels", "is not none, class or multihot");
}

/* A tier's name as configurations have it; not there: cold. */
static int get_home(const json_t *root, struct wt_manifest *m, struct wt_err *err) {
    const char *home = "";
    if (!json_object_get(root, "home"))
        return 0;
    int rc = get_text(root, "home", &home, err);
    if (rc == 0 && (!class_name_legal(home) || strlen(home) >= sizeof m->home))
        rc = bad(err, "home", "is no name of a tier");
    if (rc == 0)
        memcpy(m->home, home, strlen(home) + 1);
    return rc;
}

static int check_labels(const struct wt_manifest *m, struct wt_err *err) {
    uint64_t sum = 0;
    if (m->labelled > m->samples)
        return bad(err, "labelled", "is more than there are samples");
    if (m->label_kind == WT_LABEL_NONE && (m->labelled || m->n_classes))
        return bad(err, "labels", "is none, but there are classes");
    for (uint32_t i = 0; i < m->n_classes; i++) {
        if (m->class_count[i] > m->labelled)
            return bad(err, "classes", "has more samples than are labelled");
        sum += m->class_count[i]; /* at most 2^16 x samples, and samples < 2^46 by check_totals */
    }
    if (m->label_kind == WT_LABEL_CLASS && sum != m->labelled)
        return bad(err, "classes", "does not add up to 'labelled'");
    return 0;
}

static int check_totals(const struct wt_manifest *m, struct wt_err *err) {
    uint64_t shards = 0;
    for (uint32_t i = 0; i < m->n_parts; i++)
        shards += m->part[i].records;
    if (shards != m->shards)
        return bad(err, "index", "does not add up to 'shards'");
    if (m->shards == 0 || m->samples < m->shards)
        return bad(err, "samples", "does not fit the number of shards");
    if (m->samples > m->tar_bytes / 1024 || m->pixel_bytes > m->tar_bytes)
        return bad(err, "tar_bytes", "is less than its samples need");
    if (m->samples > UINT64_C(1) << 46)
        return bad(err, "samples", "is out of range");
    if (m->generation == 0)
        return bad(err, "generation", "is 0");
    if (m->n_fields == 0)
        return bad(err, "fields", "is empty");
    return check_labels(m, err);
}

static int read_all(const json_t *root, struct wt_manifest *m, struct wt_err *err) {
    int rc = check_version(root, err);
    if (rc == 0)
        rc = get_head(root, m, err);
    if (rc == 0)
        rc = get_home(root, m, err);
    if (rc == 0)
        rc = get_numbers(root, m, err);
    if (rc == 0)
        rc = get_classes(root, m, err);
    if (rc == 0)
        rc = get_fields(root, m, err);
    if (rc == 0)
        rc = get_parts(root, m, err);
    return rc == 0 ? check_totals(m, err) : rc;
}

int wt_manifest_parse(const char *text, size_t len, struct wt_manifest *m, struct wt_err *err) {
    if (len > WT_MANIFEST_MAX)
        return wt_err_set(err, WT_ECORRUPT, "manifest of %zu bytes, the limit is %d", len,
                          WT_MANIFEST_MAX);
    json_t *root = NULL;
    struct wt_err why = {0};
    int rc = wt_json_load(text, len, JSON_REJECT_DUPLICATES, &root, &why);
    if (rc < 0)
        return wt_err_set(err, rc == WT_ENOMEM ? rc : WT_ECORRUPT, "manifest: %s", why.text);
    struct wt_manifest read = {0};
    rc = json_is_object(root) ? read_all(root, &read, err)
                              : wt_err_set(err, WT_ECORRUPT, "manifest is no JSON object");
    json_decref(root);
    if (rc < 0) {
        wt_manifest_free(&read);
        return rc;
    }
    *m = read;
    return 0;
}

void wt_manifest_free(struct wt_manifest *m) {
    for (uint32_t i = 0; i < m->n_classes; i++)
        free(m->classes[i]);
    free(m->classes);
    free(m->class_count);
    free(m->part);
    *m = (struct wt_manifest){0};
}

/* ---- writing ---- */

static json_t *put_classes(const struct wt_manifest *m) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < m->n_classes; i++)
        wt_json_push(&array, json_pack("{s:s, s:I}", "name", m->classes[i], "samples",
                                       (json_int_t)m->class_count[i]));
    return array;
}

static json_t *put_shape(const struct wt_shape *s) {
    if (s->ndim == UINT32_MAX)
        return json_null();
    json_t *dims = json_array();
    for (uint32_t i = 0; i < s->ndim; i++)
        wt_json_push(&dims, json_integer(s->dim[i]));
    return dims;
}

static json_t *put_fields(const struct wt_manifest *m) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < m->n_fields; i++) {
        const struct wt_field_info *f = &m->field[i];
        const char *dtype =
            f->shape.dtype == WT_DTYPE_NONE ? "mixed" : wt_dtype_name(f->shape.dtype);
        wt_json_push(&array, json_pack("{s:s, s:s, s:o}", "name", f->name, "dtype", dtype, "shape",
                                       put_shape(&f->shape)));
    }
    return array;
}

static json_t *put_parts(const struct wt_manifest *m) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < m->n_parts; i++) {
        char hex[WT_HASH_HEX];
        wt_hash_hex(m->part[i].hash, hex);
        wt_json_push(
            &array, json_pack("{s:s, s:I}", "hash", hex, "shards", (json_int_t)m->part[i].records));
    }
    return array;
}

char *wt_manifest_format(const struct wt_manifest *m) {
    json_t *root = json_pack(
        "{s:s, s:i, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:o}",
        "format", MANIFEST_FORMAT, "version", WT_MANIFEST_VERSION, "name", m->name, "generation",
        (json_int_t)m->generation, "created", (json_int_t)m->created, "shards",
        (json_int_t)m->shards, "samples", (json_int_t)m->samples, "stored_bytes",
        (json_int_t)m->stored_bytes, "tar_bytes", (json_int_t)m->tar_bytes, "pixel_bytes",
        (json_int_t)m->pixel_bytes, "labelled", (json_int_t)m->labelled, "lots",
        (json_int_t)m->lots, "wafers", (json_int_t)m->wafers, "labels", label_kinds[m->label_kind],
        "classes", put_classes(m), "fields", put_fields(m), "index", put_parts(m));
    if (!root)
        return NULL;
    if (m->home[0])
        wt_json_put(&root, "home", json_string(m->home));
    size_t len;
    char *text = wt_json_dump(root, JSON_INDENT(2), &len);
    json_decref(root);
    return text;
}
