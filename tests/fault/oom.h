/*
 * Out of memory at the n-th allocation: the test's executables are linked with --wrap for every
 * function in oom_functions.txt, so the calls that our own code makes come through here; jansson
 * and curl allocate through their hooks. What libuv, libmicrohttpd and libconfuse allocate for
 * themselves is out of reach: docs/out-of-memory.md says what they do.
 *
 * Happy path: oom_each runs a function with its first allocation failing, then its second..., until
 * it ends without one having failed. Failures: a function that claims success though its result is
 * wrong, calls its data damaged, leaks descriptors, or memory (where the build has LeakSanitizer).
 */
#ifndef WT_TESTS_FAULT_OOM_H
#define WT_TESTS_FAULT_OOM_H

#include "core/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Once, before anything else allocates. */
void oom_init(void);
/* The n-th allocation from now fails, once; 0: none does. Any thread's counts. */
void oom_arm(uint64_t n);
/* Nothing fails any more. Has something? */
bool oom_disarm(void);
uint64_t oom_seen(void);      /* allocations since oom_arm */
const char *oom_failed(void); /* the function that failed, "" for none */

/* run: 0 and a right result (checked by itself), or an error. */
struct oom_case {
    const char *name;
    int (*run)(void *arg, struct wt_err *err);
    void (*after)(void *arg, int rc); /* looks at what is left, nothing fails in it; NULL: none */
    void *arg;
    uint64_t most; /* allocations that it may make; more is a hang */
};
/* Returns how many allocations were failed. */
uint64_t oom_each(const struct oom_case *c);
/* Open descriptors of this process. */
unsigned oom_descriptors(void);
/* Fails the test when memory has been lost so far, where the build can tell. */
void oom_check_leaks(void);

#endif
