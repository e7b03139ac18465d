/* crc32c.h - CRC-32C (Castagnoli, RFC 3720 appendix B.4), for frames and files: by carry-less multiplication
 * where the processor has it, else eight bytes a step by tables. Any thread may call these functions. */
#ifndef PHX_BASE_CRC32C_H
#define PHX_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(uint32_t crc, const void *data, size_t len); /* start with 0; chains */
/* The portable path, for tests and comparisons. */
uint32_t crc32c_by_table(uint32_t crc, const void *data, size_t len);
/* As crc32c, and copies the bytes in the same pass. The copies bypass the processor's cache, so do not use it
 * for bytes that are read again at once. */
uint32_t crc32c_copy(uint32_t crc, void *to, const void *data, size_t len);

/* Returns the CRC of the concatenation of two parts: `first` is the CRC of the first, `second` that of the
 * following `len` bytes. Both were computed from 0, perhaps by different threads. */
uint32_t crc32c_join(uint32_t first, uint32_t second, size_t len);

#endif
