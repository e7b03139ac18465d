/* crc.h - CRC-32C (Castagnoli, RFC 3720 appendix B.4): by the processor's own instruction where it has one,
 * in three lanes at a time; else eight bytes a step by tables. The library stands alone, so it has its own.
 * Any thread. */
#ifndef PHX_JOB_CRC_H
#define PHX_JOB_CRC_H

#include <stddef.h>
#include <stdint.h>

uint32_t job_crc32c(uint32_t crc, const void *data, size_t len); /* start with 0; chains */
/* The same while it copies them, in one pass over memory. Not for bytes that are read again at once: they go
 * past the processor's cache. */
uint32_t job_crc32c_copy(uint32_t crc, void *to, const void *data, size_t len);

/* Returns the CRC of the concatenation of two parts: `first` is the CRC of the first, `second` that of the
 * `len` bytes behind it. Both were summed from 0, perhaps by different threads. */
uint32_t job_crc32c_join(uint32_t first, uint32_t second, size_t len);

#endif
