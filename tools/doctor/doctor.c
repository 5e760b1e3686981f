/* The steps of doctor, in their order; see doctor.h. */
#include "tools/doctor/doctor.h"

#include "core/dataset.h"
#include "core/process.h"

bool wt_doctor_stopped(struct wt_doctor *d) {
    return wt_stop_asked(d->stop);
}

static void name_probe(struct wt_doctor *d) {
    struct wt_process self = wt_process_self();
    char process[WT_PROCESS_TEXT];
    wt_process_format(&self, process);
    snprintf(d->key, sizeof d->key, "%s%s-%08llx", WT_DOCTOR_PREFIX, process,
             (unsigned long long)(uv_hrtime() & UINT32_MAX));
}

static int look_at_all(struct wt_doctor *d, struct wt_err *err) {
    wt_doctor_control(d);
    d->n_tiers = d->conf.n_tiers;
    for (size_t i = 0; i < d->n_tiers; i++)
        d->tier[i].opts = &d->conf.tier[i];
    for (size_t i = 0; i < d->n_tiers; i++) {
        wt_doctor_tier(d, &d->tier[i]);
        if (wt_doctor_stopped(d))
            return wt_err_set(err, WT_ECANCELED, "interrupted");
    }
    wt_judge_order(d);
    wt_doctor_host(d);
    return 0;
}

int wt_doctor_run(struct wt_doctor *d, struct wt_err *err) {
    int rc = uv_loop_init(&d->loop);
    if (rc < 0)
        return wt_err_sys(err, -rc, "an event loop cannot be made");
    name_probe(d);
    rc = wt_flow_memory(d, err);
    if (rc == 0)
        rc = look_at_all(d, err);
    wt_flow_free(d);
    uv_run(&d->loop, UV_RUN_DEFAULT);
    uv_loop_close(&d->loop);
    return rc;
}
