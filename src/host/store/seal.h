/* seal.h - checksums and encryption of records and snapshots. Used for both logs: SQLite (host/store) and
 * etcd (host/store/etcd). docs/formats/store.md has the rules.
 *
 * Thread-safety: keys are only read once they are loaded; the functions keep no other state.
 */
#ifndef PHX_HOST_STORE_SEAL_H
#define PHX_HOST_STORE_SEAL_H

#include "host/store/store.h"

/* --- checksums ---------------------------------------------------------------------------------------- */

void store_put_u32(uint8_t *at, uint32_t value); /* little-endian */
void store_put_u64(uint8_t *at, uint64_t value);
/* Returns the checksum of a record, chained with that of the record before it (`previous`). `bytes` are the
 * stored bytes, encrypted if there is a key. */
uint32_t store_record_crc(uint32_t previous, uint64_t seq, int64_t stamp_ns, struct str bytes);
/* Returns the value with which the checksum chain of a snapshot's chunks starts. */
uint32_t store_chunk_crc_first(uint64_t seq);

/* --- encryption --------------------------------------------------------------------------------------- */

enum { STORE_SEAL_BYTES = 40 }; /* bytes that encryption adds */
enum store_seal_kind { STORE_SEAL_RECORD = 1, STORE_SEAL_CHUNK = 2 };
/* The place of encrypted bytes, which they are bound to. `a` and `b` are a record's seq and stamp_ns, or a
 * chunk's snapshot and its index in the snapshot. */
struct store_seal_place {
    enum store_seal_kind kind;
    uint64_t a, b;
};
/* Returns the bytes to store: `plain` itself if `keys` is NULL; otherwise the encrypted bytes in `out`, which
 * is cleared first. */
struct str store_seal(const struct store_keys *keys, const struct store_seal_place *place, struct str plain,
                      struct buf *out);
/* Decrypts stored bytes into `out`, or sets *ret_plain to `stored` if the bytes were never encrypted.
 * ERROR_DENIED: `keys` lacks the key; the message names the key file. ERROR_CORRUPT: the bytes were changed,
 * or belong to another place. */
int store_unseal(const struct store_keys *keys, const struct store_seal_place *place, struct str stored,
                 struct buf *out, struct str *ret_plain, struct error *error);

#endif
