/* The table of verbs, in the order of `wafertier help`. */
#include "tools/verb.h"

static const struct wt_verb *const verbs[] = {
    &wt_verb_pack,   &wt_verb_gen,      &wt_verb_verify, &wt_verb_ls,         &wt_verb_cat,
    &wt_verb_flush,  &wt_verb_gc,       &wt_verb_fsck,   &wt_verb_stats,      &wt_verb_top,
    &wt_verb_jobs,   &wt_verb_moves,    &wt_verb_shards, &wt_verb_events,     &wt_verb_pin,
    &wt_verb_unpin,  &wt_verb_warm,     &wt_verb_evict,  &wt_verb_quota,      &wt_verb_reload,
    &wt_verb_doctor, &wt_verb_loadtest, &wt_verb_sim,    &wt_verb_completion,
};

const struct wt_verb *const *wt_verbs(size_t *n) {
    *n = sizeof verbs / sizeof verbs[0];
    return verbs;
}
