/* seal.h - checksums and encryption of records and snapshots, the same wherever a log is kept: SQLite
 * (host/store) and etcd (host/store/etcd). The rules are in docs/formats/store.md.
 *
 * Thread-safety: keys are only read once they are loaded; the functions keep no other state.
 */
#ifndef PHX_HOST_STORE_SEAL_H
#define PHX_HOST_STORE_SEAL_H

#include "host/store/store.h"

/* --- checksums ---------------------------------------------------------------------------------------- */

void store_put_u32(uint8_t *at, uint32_t value); /* little-endian */
void store_put_u64(uint8_t *at, uint64_t value);
/* The checksum of a record, as it is stored, chained with that of the record before it. */
uint32_t store_record_crc(uint32_t previous, uint64_t seq, int64_t stamp_ns, struct str bytes);
uint32_t store_chunk_crc_first(uint64_t seq); /* what the chain of one snapshot's chunks starts with */

/* --- encryption --------------------------------------------------------------------------------------- */

enum { STORE_SEAL_BYTES = 40 }; /* that sealing adds */
/* The place of sealed bytes: a record's seq and stamp_ns, or a chunk's snapshot and its number in that. */
enum store_seal_kind { STORE_SEAL_RECORD = 1, STORE_SEAL_CHUNK = 2 };
struct store_seal_place {
    enum store_seal_kind kind;
    uint64_t a, b;
};
/* Returns the bytes to store: `plain` itself when `keys` is NULL, otherwise `out`, which is cleared first. */
struct str store_seal(const struct store_keys *keys, const struct store_seal_place *place, struct str plain,
                      struct buf *out);
/* The reverse; bytes that were never sealed stay as they are. ERROR_DENIED: no key for it, by the key file's
 * name; ERROR_CORRUPT. */
int store_unseal(const struct store_keys *keys, const struct store_seal_place *place, struct str stored,
                 struct buf *out, struct str *ret_plain, struct error *error);

#endif
