/*
 * As whom to look: rights are those of the user who will work with the tiers, and what root makes
 * first in a folder (the temporaries', the lock) its owner could not use.
 *
 * Happy path: --user, or for root the owner of the first file: tier that has one; the process
 * becomes that user for good. Anybody else stays who he is.
 */
#include "tools/doctor/doctor.h"

#include "tiers/url.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

enum { OWNER_MS = 3000 };

static int become(struct wt_doctor *d, const char *name, uid_t user, gid_t group,
                  struct wt_err *err) {
    int rc = name ? initgroups(name, group) : setgroups(0, NULL);
    if (rc < 0 || setresgid(group, group, group) < 0 || setresuid(user, user, user) < 0)
        return wt_err_sys(err, errno, "to look as user %s takes root", name ? name : "given");
    if (name)
        snprintf(d->user, sizeof d->user, "%s", name);
    else
        snprintf(d->user, sizeof d->user, "%ld", (long)user);
    return 0;
}

static bool owner_of_tiers(const struct wt_doctor *d, struct wt_place *place) {
    for (size_t i = 0; i < d->conf.n_tiers; i++) {
        struct wt_url url;
        const char *text = d->conf.tier[i].url;
        if (strncmp(text, "file:", 5) != 0 || wt_url_parse(text, &url, NULL) < 0)
            continue;
        wt_place_look(url.path, OWNER_MS, place);
        if (place->state == WT_PLACE_FOLDER && place->owner != 0)
            return true;
    }
    return false;
}

int wt_doctor_become(struct wt_doctor *d, const char *user, struct wt_err *err) {
    struct wt_place place;
    const struct passwd *who;
    if (user) {
        who = getpwnam(user);
        if (!who)
            return wt_err_set(err, WT_EINVAL, "--user %s: there is no such user", user);
        if (who->pw_uid == geteuid())
            return 0;
        return become(d, who->pw_name, who->pw_uid, who->pw_gid, err);
    }
    if (geteuid() != 0 || !owner_of_tiers(d, &place))
        return 0;
    who = getpwuid(place.owner);
    return become(d, who ? who->pw_name : NULL, place.owner, who ? who->pw_gid : place.group, err);
}
