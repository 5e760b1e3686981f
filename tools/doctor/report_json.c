/* The report for programs: names as in doctor.h, bytes, microseconds, bytes a second. */
#include "tools/doctor/doctor.h"

#include "core/json.h"

static json_t *step_json(enum wt_doctor_step step) {
    return step == WT_DOCTOR_SKIPPED ? json_null() : json_boolean(step == WT_DOCTOR_GOOD);
}

static json_t *number(uint64_t n) {
    return json_integer((json_int_t)n);
}

static json_t *facts_json(const struct wt_doctor_tier *t) {
    json_t *list = json_array();
    for (size_t i = 0; i < t->n_facts; i++) {
        const struct wt_doctor_fact *f = &t->fact[i];
        wt_json_push(&list, json_pack("{s:o, s:o, s:o}", "server", wt_json_string(f->where), "name",
                                      wt_json_string(f->name), "value", wt_json_string(f->value)));
    }
    return list;
}

static json_t *place_json(const struct wt_doctor_tier *t) {
    if (!t->is_file)
        return json_null();
    return json_pack("{s:o, s:o, s:b, s:b, s:o, s:o}", "path", wt_json_string(t->place.path),
                     "kind", wt_json_string(t->place.kind), "writable", t->place.writable,
                     "mounted_read_only", t->place.mount_read_only, "total", number(t->place.total),
                     "available",
                     t->place.available == UINT64_MAX ? json_null() : number(t->place.available));
}

static json_t *tier_json(const struct wt_doctor_tier *t) {
    return json_pack("{s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:i, s:f, s:f, s:o, "
                     "s:o, s:o}",
                     "name", wt_json_string(t->opts->name), "url", wt_json_string(t->url),
                     "read_only", t->opts->read_only, "reach", step_json(t->reach), "write",
                     step_json(t->write), "read", step_json(t->read), "remove",
                     step_json(t->remove), "used", t->usage_known ? number(t->used) : json_null(),
                     "capacity", t->usage_known ? number(t->capacity) : json_null(), "median_us",
                     t->median_us, "p99_us", t->p99_us, "reads", (int)t->reads, "write_rate",
                     t->write_rate, "read_rate", t->read_rate, "probe_bytes",
                     number(t->probe_bytes), "place", place_json(t), "facts", facts_json(t));
}

static json_t *finding_json(const struct wt_doctor_finding *f) {
    return json_pack("{s:s, s:s, s:o, s:o, s:s}", "level",
                     f->level == WT_DOCTOR_WRONG ? "wrong" : "note", "fault",
                     wt_doctor_fault_name(f->fault), "where", wt_json_string(f->where), "what",
                     wt_json_string(f->what), "advice", f->advice);
}

json_t *wt_doctor_json(const struct wt_doctor *d) {
    json_t *tiers = json_array(), *findings = json_array();
    for (size_t i = 0; i < d->n_tiers; i++)
        wt_json_push(&tiers, tier_json(&d->tier[i]));
    for (size_t i = 0; i < d->n_findings; i++)
        wt_json_push(&findings, finding_json(&d->finding[i]));
    return json_pack("{s:b, s:i, s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o, s:b, s:f}}", "ok",
                     d->n_wrong == 0, "wrong", (int)d->n_wrong, "findings", findings, "tiers",
                     tiers, "daemon", wt_json_string(d->daemon), "user", wt_json_string(d->user),
                     "host", "memory", number(d->host.memory), "memory_available",
                     number(d->host.memory_free), "open_files", number(d->host.open_files),
                     "clock_synchronised", d->host.clock_synchronised, "clock_off_s",
                     d->host.clock_off_s);
}
