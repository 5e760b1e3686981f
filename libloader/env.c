/* Which rank this process is: options first, then the names that torchrun, mpirun and Slurm use.
 * See env.h. */
#include "libloader/env.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

struct pair {
    const char *rank, *world;
};

static const struct pair pairs[] = {
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
};

static int number(const char *name, const char *text, int min, int *out, struct wt_err *err) {
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (errno || end == text || *end || v < min || v > INT_MAX)
        return wt_err_set(err, WT_EINVAL,
                          "environment variable %s is '%s': a number from %d on is wanted", name,
                          text, min);
    *out = (int)v;
    return 0;
}

static int check(int rank, int world, const char *source, struct wt_err *err) {
    if (world < 1 || rank < 0 || rank >= world)
        return wt_err_set(err, WT_EINVAL,
                          "rank %d of world %d (%s): rank must be from 0 to world - 1", rank, world,
                          source);
    return 0;
}

int wt_env_ranks(int *rank, int *world, struct wt_err *err) {
    if ((*rank < 0) != (*world < 0))
        return wt_err_set(err, WT_EINVAL,
                          "give both rank and world, or neither (rank %d, world %d)", *rank,
                          *world);
    if (*rank >= 0)
        return check(*rank, *world, "options", err);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const char *r = getenv(pairs[i].rank), *w = getenv(pairs[i].world);
        if (!r || !w)
            continue;
        int rv, wv;
        int rc = number(pairs[i].rank, r, 0, &rv, err);
        if (!rc)
            rc = number(pairs[i].world, w, 1, &wv, err);
        if (!rc)
            rc = check(rv, wv, pairs[i].rank, err);
        if (rc)
            return rc;
        *rank = rv;
        *world = wv;
        return 0;
    }
    *rank = 0;
    *world = 1;
    return 0;
}
