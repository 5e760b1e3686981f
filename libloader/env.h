/* Rank and world from the environment that launchers set. */
#ifndef WT_LOADER_ENV_H
#define WT_LOADER_ENV_H

#include "core/err.h"

/* *rank and *world: -1 asks the environment (RANK/WORLD_SIZE, OMPI_COMM_WORLD_*, PMI_*, SLURM_*:
 * the first complete pair), else they are checked. Alone: 0 of 1. Values that make no sense are
 * WT_EINVAL naming the variable. */
int wt_env_ranks(int *rank, int *world, struct wt_err *err);

#endif
