/* The table of verbs, in the order of `wafertier help`. */
#include "tools/verb.h"

static const struct wt_verb *const verbs[] = {
    &wt_verb_pack, &wt_verb_gen,   &wt_verb_verify, &wt_verb_ls,  &wt_verb_cat,
    &wt_verb_gc,   &wt_verb_stats, &wt_verb_doctor, &wt_verb_sim,
};

const struct wt_verb *const *wt_verbs(size_t *n) {
    *n = sizeof verbs / sizeof verbs[0];
    return verbs;
}
