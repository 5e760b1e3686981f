/* Between the files of crc32c. */
#ifndef WT_CORE_CRC32C_H
#define WT_CORE_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* wt_crc32c_copy for any processor. */
uint32_t wt_crc32c_pieces(uint32_t crc, void *dst, const void *src, size_t len);

/* The widest path, where the processor has it (x86-64 alone). */
bool wt_crc32c_fold_usable(size_t len);
/* Continues *crc over the whole 64-byte lines of src, copied to dst unless that is NULL; gives how
 * many bytes that were. Only when usable. */
size_t wt_crc32c_fold(uint32_t *crc, const void *src, void *dst, size_t len);

#endif
