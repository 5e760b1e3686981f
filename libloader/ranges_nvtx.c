/* Ranges by NVTX 3, which is headers alone: a profiler hooks itself in by NVTX_INJECTION64_PATH.
 * See ranges.h. */
#include "libloader/ranges.h"

#include <nvtx3/nvToolsExt.h>
#include <pthread.h>

/* NVTX would do it at the first range, with other threads already reading what it writes. */
static void initialise(void) {
    nvtxInitialize(NULL);
}

void wt_ranges_open(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, initialise);
}

void wt_range_begin(const char *name) {
    nvtxRangePushA(name);
}

void wt_range_end(void) {
    nvtxRangePop();
}
