/* Counting what is stored, which a configured capacity needs; list.c also has the op LIST. */
#ifndef WT_TIERS_RADOS_LIST_H
#define WT_TIERS_RADOS_LIST_H

#include "tiers/rados/internal.h"

/* then(call, 0) when client->stored counts what lay there before; else with the code in
 * call->req->err. At once, or later. */
void rados_need_count(struct rados_call *call, void (*then)(struct rados_call *call, int rc));

#endif
