/* blocks.h - writes and reads large data in blocks, by several threads, and computes its checksum on the way,
 * while each piece is still in the processor's cache.
 *
 * Writing bypasses the kernel's page cache if the file system allows it (O_DIRECT): the disk is busy from the
 * first block on, nothing is copied twice, and a state of many gigabytes does not push everything else out of
 * memory. Otherwise the same blocks go through the cache.
 *
 * Threads live as long as a call and block all signals. No state; any thread.
 */
#ifndef PHX_JOB_CHECKPOINT_BLOCKS_H
#define PHX_JOB_CHECKPOINT_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define BLOCKS_HEAD  64        /* bytes in front of the data, which the caller fills in later */
#define BLOCKS_SMALL (1 << 20) /* shorter data is not worth threads */

/* Writes BLOCKS_HEAD zero bytes and `len` bytes of data (`parts`, one after the other) to an empty file.
 * `direct` means that the file was opened with O_DIRECT; then the file ends at a multiple of 4096, and the
 * caller truncates it. ret_first receives the first 4096 bytes, which the caller writes again with the head
 * filled in. Returns 0 or errno. */
#define BLOCKS_ALIGN 4096
int blocks_write(int fd, bool direct, const struct iovec *parts, size_t count, size_t len, uint32_t *ret_crc,
                 uint8_t ret_first[BLOCKS_ALIGN]);

/* Writes a complete file of `len` bytes, header included, without a copy or a checksum. `whole` begins at a
 * page, and its last page must be readable to the end. Otherwise as blocks_write. */
int blocks_write_whole(int fd, bool direct, const uint8_t *whole, size_t len);

/* Reads `len` bytes that begin at BLOCKS_HEAD into `buf`; NULL: only computes the checksum. Returns 0, errno,
 * or -1 if the file is shorter. */
int blocks_read(int fd, uint8_t *buf, size_t len, uint32_t *ret_crc);

#endif
