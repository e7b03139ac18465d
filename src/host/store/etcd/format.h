/* format.h - encodes what the log on etcd writes: keys, the head, groups of records, rows of snapshots.
 *
 * docs/formats/etcd.md specifies the format. All functions are pure: bytes in, bytes out. A reader's bytes
 * come from the network, so every length is checked, and lines are used only if their checksum is correct.
 *
 * Thread-safe: the functions keep no state.
 */
#ifndef PHX_HOST_STORE_ETCD_FORMAT_H
#define PHX_HOST_STORE_ETCD_FORMAT_H

#include "host/store/etcd/etcd.h"

enum {
    ETCD_PART_BYTES = 1 << 20, /* size of one value: etcd takes requests up to 1.5 MiB by default */
    ETCD_PARTS_MAX = 0xffff,
    ETCD_KEY_MAX = 256, /* bytes of a key, its prefix included */
    ETCD_GROUP_HEAD_BYTES = 32,
    ETCD_RECORD_HEAD_BYTES = 16,
    ETCD_ROW_MAX = 256, /* largest head, and largest row of a snapshot, in bytes */
};

/* --- keys --------------------------------------------------------------------------------------------- */

/* Kinds of keys, in their order below the prefix. */
enum etcd_key_kind {
    ETCD_HEAD,
    ETCD_LEADER,
    ETCD_REPLICA,
    ETCD_STEP_DOWN,
    ETCD_CONTROL,
    ETCD_GROUP,
    ETCD_ROW,
    ETCD_CHUNK
};

struct etcd_key {
    char text[ETCD_KEY_MAX];
    size_t len;
};
/* Returns the key of a kind. `seq` is the first record of a GROUP, the snapshot of a ROW or CHUNK, the lease
 * of a REPLICA. `part` is the index of a GROUP's part or of a CHUNK. CONTROL is the range that holds HEAD,
 * LEADER, REPLICA and STEP_DOWN. CHECKs that the prefix fits. */
struct etcd_key etcd_key_of(const char *prefix, enum etcd_key_kind kind, uint64_t seq, uint32_t part);
/* Returns the end of the range of all keys of a kind, which is not in the range itself. */
struct etcd_key etcd_key_end(const char *prefix, enum etcd_key_kind kind);
/* Returns the end of the range of one group's or snapshot's keys: the first key of `seq` + 1. */
struct etcd_key etcd_key_behind(const char *prefix, enum etcd_key_kind kind, uint64_t seq);
/* Reads `seq` and `part` from a key of GROUP, ROW or CHUNK. Returns false if it is not a key of that kind. */
bool etcd_key_read(struct str key, const char *prefix, enum etcd_key_kind kind, uint64_t *ret_seq,
                   uint32_t *ret_part);
static inline struct str etcd_key_str(const struct etcd_key *key)
{
    return (struct str){key->text, key->len};
}

/* --- replicas ----------------------------------------------------------------------------------------- */

/* Appends a replica's announcement: "phalanx-replica-1 READS LEVEL CHECK VERSION WHO". CHECK is the checksum
 * of all that precedes it. CHECKs that version and name contain no space. */
void etcd_replica_write(const struct etcd_replica *replica, struct buf *out);
/* Returns false if the announcement is damaged, or of another version of the format. */
bool etcd_replica_read(struct str text, struct etcd_replica *ret_replica);

/* --- the head ----------------------------------------------------------------------------------------- */

/* Where the log ends and begins. All zero: nothing was ever appended. */
struct etcd_head {
    uint64_t last_seq, base_seq; /* the newest record; the record after which the log begins */
    uint32_t last_crc, base_crc;
    bool restored; /* the log is a copy that may lack the newest part, and nothing was appended since */
};
void etcd_head_write(const struct etcd_head *head, struct buf *out); /* appends */
bool etcd_head_read(struct str text, struct etcd_head *ret_head);    /* false: damaged */

/* --- groups of records -------------------------------------------------------------------------------- */

struct etcd_group {
    uint64_t first_seq, bytes; /* of the whole group, this header included */
    uint32_t count, previous_crc;
    struct str rest; /* the records that were not read yet */
};
/* Begins a group of `count` records in an empty buffer. Add the records in order with etcd_group_add(); then
 * etcd_group_end() writes the group's length. */
void etcd_group_begin(struct buf *out, uint64_t first_seq, uint32_t count, uint32_t previous_crc);
void etcd_group_add(struct buf *out, int64_t stamp_ns, struct str bytes, uint32_t crc);
void etcd_group_end(struct buf *out);
/* Reads the header from a group's first part or from the whole group. `rest` is set to the bytes after the
 * header. Returns false if the header is malformed. */
bool etcd_group_open(struct str bytes, struct etcd_group *ret_group);
/* Takes the next record of a whole group; *ret_bytes points into the group. The caller counts `seq` and
 * checks the checksum. Returns false if the record is cut short or too large. */
bool etcd_group_next(struct etcd_group *group, int64_t *ret_stamp_ns, struct str *ret_bytes,
                     uint32_t *ret_crc);

/* --- rows of snapshots -------------------------------------------------------------------------------- */

struct etcd_row {
    uint64_t seq;
    int64_t stamp_ns;
    uint32_t log_crc;                 /* checksum of record `seq` */
    uint64_t raw_bytes, packed_bytes; /* uncompressed; in the chunks, encrypted if there is a key */
    uint32_t chunks, packed_crc;      /* number of chunks; checksum that chains them */
};
void etcd_row_write(const struct etcd_row *row, struct buf *out); /* appends */
bool etcd_row_read(struct str text, struct etcd_row *ret_row);    /* false: damaged */

#endif
