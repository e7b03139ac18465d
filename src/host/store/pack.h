/* pack.h - compresses and uncompresses the bytes of a snapshot, portion by portion (zstd). Used for both
 * logs: SQLite (host/store) and etcd (host/store/etcd).
 *
 * Threading: a packer or unpacker belongs to one thread at a time.
 */
#ifndef PHX_HOST_STORE_PACK_H
#define PHX_HOST_STORE_PACK_H

#include "base/str.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

struct store_packer {
    struct str input; /* bytes that are not compressed yet; the caller's */
    struct ZSTD_CCtx_s *context;
    struct buf packed; /* compressed bytes; the caller drops those that it has written */
    bool all;          /* `input` is compressed to its end */
};
/* `bytes` must outlive the packer. */
void store_packer_begin(struct store_packer *packer, struct str bytes);
/* Compresses one more portion of at most 512 KiB. CHECKs that `all` is not set yet. */
void store_packer_step(struct store_packer *packer);
void store_packer_done(struct store_packer *packer);

struct store_unpacker {
    struct ZSTD_DCtx_s *context;
    struct buf *out;
    uint64_t raw_bytes; /* size that the snapshot's row states; no more is written */
    bool whole;         /* the frame's end was reached */
};
/* Empties `out` and reserves space for `raw_bytes` and a terminating NUL. `out` must outlive the unpacker. */
void store_unpacker_begin(struct store_unpacker *unpacker, struct buf *out, uint64_t raw_bytes);
/* Uncompresses the next bytes. Returns NULL, or a static text that says what is wrong with them. */
const char *store_unpacker_step(struct store_unpacker *unpacker, struct str bytes);
/* Frees the unpacker's memory. Returns whether `out` holds all `raw_bytes`; if so, a NUL follows them. */
bool store_unpacker_done(struct store_unpacker *unpacker);

#endif
