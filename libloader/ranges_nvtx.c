/* Ranges by NVTX 3, which is headers alone: a profiler hooks itself in by NVTX_INJECTION64_PATH.
 * See ranges.h. */
#include "libloader/ranges.h"

#include <nvtx3/nvToolsExt.h>

void wt_range_begin(const char *name) {
    nvtxRangePushA(name);
}

void wt_range_end(void) {
    nvtxRangePop();
}
