/* format.h - what the log on etcd writes: keys, the head, groups of records, rows of snapshots.
 *
 * The format is specified in docs/formats/etcd.md. All functions here are pure: bytes in, bytes out. A
 * reader's bytes come from the network, so every length is checked, and nothing is believed before its
 * checksum was right.
 *
 * Thread-safe: nothing here keeps state.
 */
#ifndef PHX_HOST_STORE_ETCD_FORMAT_H
#define PHX_HOST_STORE_ETCD_FORMAT_H

#include "host/store/etcd/etcd.h"

enum {
    ETCD_PART_BYTES = 1 << 20, /* of one value: etcd takes requests up to 1.5 MiB by default */
    ETCD_PARTS_MAX = 0xffff,
    ETCD_KEY_MAX = 256, /* bytes of a key, its prefix included */
    ETCD_GROUP_HEAD_BYTES = 32,
    ETCD_RECORD_HEAD_BYTES = 16,
    ETCD_ROW_MAX = 256, /* bytes of the head, and of a snapshot's row */
};

/* --- keys --------------------------------------------------------------------------------------------- */

/* Kinds of keys, in the order in which they are stored below the prefix. */
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
/* The key of a kind. `seq`: the first record of a GROUP, the snapshot of a ROW or CHUNK; `part`: of a GROUP,
 * or the number of a CHUNK. `seq` of a REPLICA is its
 * lease. CONTROL is the range that HEAD, LEADER, REPLICA and STEP_DOWN are in. CHECKed: the prefix
 * fits. */
struct etcd_key etcd_key_of(const char *prefix, enum etcd_key_kind kind, uint64_t seq, uint32_t part);
/* The end of the range of all keys of that kind, which is not in it. */
struct etcd_key etcd_key_end(const char *prefix, enum etcd_key_kind kind);
/* The end of the range of the keys of one group or snapshot. */
struct etcd_key etcd_key_behind(const char *prefix, enum etcd_key_kind kind, uint64_t seq);
/* Reads seq and part back from a key of GROUP, ROW or CHUNK; false: it is none. */
bool etcd_key_read(struct str key, const char *prefix, enum etcd_key_kind kind, uint64_t *ret_seq,
                   uint32_t *ret_part);
static inline struct str etcd_key_str(const struct etcd_key *key)
{
    return (struct str){key->text, key->len};
}

/* --- replicas ----------------------------------------------------------------------------------------- */

/* The announcement of a replica: "phalanx-replica-1 READS LEVEL CHECK VERSION WHO"; CHECK is of READS and
 * LEVEL. CHECKed: version and who have no space in them. */
void etcd_replica_write(const struct etcd_replica *replica, struct buf *out);
/* False: it is damaged, or of another version. */
bool etcd_replica_read(struct str text, struct etcd_replica *ret_replica);

/* --- the head ----------------------------------------------------------------------------------------- */

/* The first and the last record of the log. Zero: nothing was ever appended. */
struct etcd_head {
    uint64_t last_seq, base_seq; /* the newest record; the record behind which the log begins */
    uint32_t last_crc, base_crc;
    bool restored; /* from a copy, which may lack the newest part: nothing was appended since */
};
void etcd_head_write(const struct etcd_head *head, struct buf *out); /* appends */
bool etcd_head_read(struct str text, struct etcd_head *ret_head);    /* false: damaged */

/* --- groups of records -------------------------------------------------------------------------------- */

struct etcd_group {
    uint64_t first_seq, bytes; /* of the whole group, this header included */
    uint32_t count, previous_crc;
    struct str rest; /* the records that were not read yet */
};
/* Begins a group of `count` records in an empty buffer; etcd_group_add() takes them in order, and
 * etcd_group_end() writes the group's length. */
void etcd_group_begin(struct buf *out, uint64_t first_seq, uint32_t count, uint32_t previous_crc);
void etcd_group_add(struct buf *out, int64_t stamp_ns, struct str bytes, uint32_t crc);
void etcd_group_end(struct buf *out);
/* Reads the header from a group's first part, or from all of it; false: it is none. `rest` is what of the
 * records is there. */
bool etcd_group_open(struct str bytes, struct etcd_group *ret_group);
/* Takes the next record of a group that is whole; `seq` is the caller's to know. False: it is cut short. */
bool etcd_group_next(struct etcd_group *group, int64_t *ret_stamp_ns, struct str *ret_bytes,
                     uint32_t *ret_crc);

/* --- rows of snapshots -------------------------------------------------------------------------------- */

struct etcd_row {
    uint64_t seq;
    int64_t stamp_ns;
    uint32_t log_crc;                 /* checksum of record `seq` */
    uint64_t raw_bytes, packed_bytes; /* unpacked; in the chunks, sealed where there is a key */
    uint32_t chunks, packed_crc;      /* packed_crc chains the chunks */
};
void etcd_row_write(const struct etcd_row *row, struct buf *out); /* appends */
bool etcd_row_read(struct str text, struct etcd_row *ret_row);    /* false: damaged */

#endif
