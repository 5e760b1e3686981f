/* Findings, and the report for people; see doctor.h. */
#include "core/bytes.h"
#include "tools/doctor/doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum { WIDTH = 110 };

const char *wt_doctor_fault_name(enum wt_doctor_fault fault) {
    static const char *const names[] = {
#define X(id, name) [WT_DOCTOR_##id] = name,
        WT_DOCTOR_FAULTS(X)
#undef X
    };
    return names[fault];
}

void wt_doctor_find(struct wt_doctor *d, enum wt_doctor_level level, enum wt_doctor_fault fault,
                    const char *where, const char *scheme, const char *fmt, ...) {
    d->n_wrong += level == WT_DOCTOR_WRONG;
    if (d->n_findings == WT_DOCTOR_FINDINGS)
        return;
    struct wt_doctor_finding *f = &d->finding[d->n_findings++];
    *f = (struct wt_doctor_finding){
        .level = level, .fault = fault, .advice = wt_doctor_advice(fault, scheme)};
    snprintf(f->where, sizeof f->where, "%s", where);
    va_list args;
    va_start(args, fmt);
    vsnprintf(f->what, sizeof f->what, fmt, args);
    va_end(args);
}

static const char *step_text(enum wt_doctor_step step) {
    static const char *const texts[] = {"-", "ok", "WRONG"};
    return texts[step];
}

static void print_rate(FILE *out, double rate) {
    if (rate > 0)
        fprintf(out, " %9.0f", rate / 1e6);
    else
        fprintf(out, " %9s", "-");
}

static void print_tier(const struct wt_doctor_tier *t, FILE *out) {
    char used[WT_SIZE_TEXT] = "-", capacity[WT_SIZE_TEXT] = "-";
    if (t->usage_known)
        wt_size_format(t->used, used);
    if (t->usage_known && t->capacity)
        wt_size_format(t->capacity, capacity);
    fprintf(out, "%-10s %-6s %-6s %-6s %-6s", t->opts->name, step_text(t->reach),
            t->opts->read_only ? "no" : step_text(t->write), step_text(t->read),
            step_text(t->remove));
    if (t->reads)
        fprintf(out, " %9.0f %9.0f", t->median_us, t->p99_us);
    else
        fprintf(out, " %9s %9s", "-", "-");
    print_rate(out, t->write_rate);
    print_rate(out, t->read_rate);
    fprintf(out, " %11s %11s\n", used, capacity);
}

static void print_facts(const struct wt_doctor_tier *t, FILE *out) {
    fprintf(out, "%-10s %s", t->opts->name, t->url);
    if (t->is_file && t->place.kind[0])
        fprintf(out, " (%s)", t->place.kind);
    for (size_t i = 0; i < t->n_facts; i++) {
        const struct wt_doctor_fact *f = &t->fact[i];
        fprintf(out, "%s%s%s%s %s", i || t->url[0] ? ", " : "", f->where, f->where[0] ? " " : "",
                f->name, f->value);
    }
    fputc('\n', out);
}

static void print_host(const struct wt_doctor *d, FILE *out) {
    char memory[WT_SIZE_TEXT], available[WT_SIZE_TEXT];
    fprintf(out, "%-10s %s\n", "daemon", d->daemon);
    if (d->user[0])
        fprintf(out, "%-10s %s\n", "looked as", d->user);
    fprintf(out, "%-10s memory %s, available %s; open files %" PRIu64 "; clock %s\n", "host",
            wt_size_format(d->host.memory, memory), wt_size_format(d->host.memory_free, available),
            d->host.open_files, d->host.clock_synchronised ? "synchronised" : "not synchronised");
}

/* Words after `first`, each line but the first indented as far. */
static void print_wrapped(const char *first, const char *text, FILE *out) {
    int indent = (int)strlen(first), at = fprintf(out, "%s", first);
    while (*text) {
        int word = (int)strcspn(text, " ");
        if (at > indent && at + word >= WIDTH)
            at = fprintf(out, "\n%*s", indent, "") - 1;
        at += fprintf(out, "%.*s%s", word, text, text[word] ? " " : "");
        text += word + (text[word] == ' ');
    }
    fputc('\n', out);
}

static void print_finding(const struct wt_doctor_finding *f, FILE *out) {
    fprintf(out, "\n%s %s: %s\n", f->level == WT_DOCTOR_WRONG ? "WRONG" : "note ", f->where,
            wt_doctor_fault_name(f->fault));
    print_wrapped("      ", f->what, out);
    print_wrapped("   -> ", f->advice, out);
}

void wt_doctor_print(const struct wt_doctor *d, FILE *out) {
    fprintf(out, "%-10s %-6s %-6s %-6s %-6s %9s %9s %9s %9s %11s %11s\n", "tier", "reach", "write",
            "read", "remove", "median us", "p99 us", "put MB/s", "get MB/s", "used", "capacity");
    for (size_t i = 0; i < d->n_tiers; i++)
        print_tier(&d->tier[i], out);
    fputc('\n', out);
    for (size_t i = 0; i < d->n_tiers; i++)
        print_facts(&d->tier[i], out);
    print_host(d, out);
    for (int level = WT_DOCTOR_WRONG; level >= WT_DOCTOR_NOTE; level--)
        for (size_t i = 0; i < d->n_findings; i++)
            if ((int)d->finding[i].level == level)
                print_finding(&d->finding[i], out);
    if (d->n_wrong)
        fprintf(out, "\n%zu thing%s wrong\n", d->n_wrong, d->n_wrong == 1 ? " is" : "s are");
    else
        fprintf(out, "\nall is well\n");
}
