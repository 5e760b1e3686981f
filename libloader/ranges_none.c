/* Ranges without NVTX; see ranges.h. */
#include "libloader/ranges.h"

void wt_ranges_open(void) {
}

void wt_range_begin(const char *name) {
    (void)name;
}

void wt_range_end(void) {
}
