/* pack.h - the bytes of a snapshot, compressed and uncompressed portion by portion (zstd), the same wherever
 * a log is kept: SQLite (host/store) and etcd (host/store/etcd).
 *
 * Threading: a packer or unpacker belongs to one thread at a time.
 */
#ifndef PHX_HOST_STORE_PACK_H
#define PHX_HOST_STORE_PACK_H

#include "base/str.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

struct store_packer {
    struct str input; /* bytes that are not compressed yet; the owner's */
    struct ZSTD_CCtx_s *context;
    struct buf packed; /* compressed; the caller drops what it has written */
    bool all;          /* `input` is compressed to its end */
};
/* `bytes` must outlive the packer. */
void store_packer_begin(struct store_packer *packer, struct str bytes);
/* Compresses one more portion of at most 512 KiB; not to be called when all is packed. */
void store_packer_step(struct store_packer *packer);
void store_packer_done(struct store_packer *packer);

struct store_unpacker {
    struct ZSTD_DCtx_s *context;
    struct buf *out;
    uint64_t raw_bytes; /* that the snapshot's row promises; no more is written */
    bool whole;         /* the frame's end was reached */
};
/* Empties `out` and reserves room for `raw_bytes` and a NUL behind them. */
void store_unpacker_begin(struct store_unpacker *unpacker, struct buf *out, uint64_t raw_bytes);
/* Uncompresses the next bytes. Returns NULL, or what is wrong with them. */
const char *store_unpacker_step(struct store_unpacker *unpacker, struct str bytes);
/* Frees what the unpacker holds, and returns whether `out` has all that was promised; then a NUL is behind
 * it. */
bool store_unpacker_done(struct store_unpacker *unpacker);

#endif
