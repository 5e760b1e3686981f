/*
 * Leases: small records in the cold tier that say who still needs what. `wafertier gc` keeps what
 * a live one holds.
 *
 *   .wafertier.leases/<dataset>/<generation>-<id>   a job reads this generation (libwaferloader)
 *   .wafertier.leases/<dataset>/pack-<id>           a pack writes this data set
 *   .wafertier.leases/<dataset>/gc                  gc removes from it: a pack waits for the end
 *
 * Happy path: written by its holder, written anew at a third of its life, removed at the end.
 * Failures: a holder that was killed leaves the record. It is dead when its time is over, or at
 * once where its process can be looked at. A record that cannot be understood counts as a live one
 * for a day.
 */
#ifndef WT_CORE_LEASE_H
#define WT_CORE_LEASE_H

#include "core/dataset.h"
#include "core/process.h"

#define WT_LEASE_FOLDER ".wafertier.leases"

enum { WT_LEASE_KEY = 192, WT_LEASE_MAX = 4096 };

enum wt_lease_kind { WT_LEASE_JOB, WT_LEASE_PACK, WT_LEASE_GC };

struct wt_lease {
    enum wt_lease_kind kind;
    char dataset[WT_DATASET_NAME];
    uint64_t generation; /* JOB */
    uint64_t id;         /* tells its holder's leases from all others */
    uint64_t life_s;
    uint64_t expires_s; /* since 1970 */
    char holder[128];   /* for people: the job's name, or the host */
    struct wt_process process;
};

/* Kind, data set, generation and holder (cut when long) from the caller; the rest is filled in. */
void wt_lease_init(struct wt_lease *lease, enum wt_lease_kind kind, const char *dataset,
                   uint64_t generation, const char *holder, uint64_t life_s);
void wt_lease_key(const struct wt_lease *lease, char out[WT_LEASE_KEY]);
/* ".wafertier.leases/<dataset>/", or that of gc's lease. */
void wt_lease_prefix(const char *dataset, char out[WT_LEASE_KEY]);
void wt_lease_gc_key(const char *dataset, char out[WT_LEASE_KEY]);
/* The data set of a lease's key; WT_EINVAL: it is no key of a lease. */
int wt_lease_key_parse(const char *key, char dataset[WT_DATASET_NAME]);

/* The record with its expiry set to now + life; free(). NULL: no memory. */
char *wt_lease_format(struct wt_lease *lease, size_t *len);
int wt_lease_parse(const char *text, size_t len, struct wt_lease *lease, struct wt_err *err);

/* Does it hold at `now_s`? `written_s`: when the tier says it was written (0: not known), so that
 * a holder's clock that is behind does not end it early. */
bool wt_lease_live(const struct wt_lease *lease, uint64_t written_s, uint64_t now_s);

#endif
