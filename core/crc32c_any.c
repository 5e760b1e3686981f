/* crc32c where there is no better way than the tables; see sum.h. Built instead of crc32c_x86.c. */
#include "core/crc32c.h"
#include "core/sum.h"

uint32_t wt_crc32c(uint32_t crc, const void *data, size_t len) {
    return wt_crc32c_portable(crc, data, len);
}

uint32_t wt_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t len) {
    return wt_crc32c_pieces(crc, dst, src, len);
}
