/* internal.h - shared by the files of the log on etcd; nothing outside this folder may include it. */
#ifndef PHX_HOST_STORE_ETCD_INTERNAL_H
#define PHX_HOST_STORE_ETCD_INTERNAL_H

#include "base/vec.h"
#include "host/store/etcd/client.h"
#include "host/store/seal.h"

enum { ETCD_ENDPOINTS_MAX = 16, ETCD_SNAPSHOTS_MAX = 64 };

struct etcd_log {
    struct etcd_options options; /* defaults filled in */
    struct etcd_client *client;
    int64_t patience_ns; /* of a read that begins now */
    struct etcd_head head;
    int64_t head_mod; /* its mod revision; 0: the key does not exist */
    /* the newest record that was read or appended here, or behind which reading began; 0: none was */
    uint64_t known_seq;
    uint32_t known_crc;
    /* while it leads */
    int64_t term;   /* mod revision of our leader key; 0: we do not lead */
    int64_t fenced; /* the leadership that was lost, or may have been; 0: none */
    struct etcd_lease *lease;
    struct etcd_writer *writer;           /* the snapshot under way */
    bool left_overs;                      /* chunks that belong to no snapshot may exist */
    uint32_t left_parts;                  /* of groups behind the head that were refused: so many at most */
    bool unsure;                          /* an attempt of the append under way was not answered */
    int64_t revision;                     /* of the store at our last write */
    int64_t compact_revision, compact_ns; /* what is compacted next, and when (monotonic) */
    bool said_denied;                     /* that it may not compact */
    uint32_t cursors;
    uint64_t appended_records, appended_bytes, commits, full_errors;
};

/* --- client.c --- */
/* Takes a list of URLs apart; the strings are the caller's to mem_free(), also after a failure. */
int etcd_endpoints_read(const char *text, char **list, size_t *ret_count, struct error *error);
struct curl_slist;
void etcd_curl_common(void *curl, const struct etcd_options *options);
struct curl_slist *etcd_headers(struct str token);
/* Appends a token of the options' user, from that member of the list; nothing where no user was given. */
int etcd_client_log_in(struct etcd_client *client, size_t member, struct buf *ret_token, struct error *error);

/* --- reply.c --- */
int etcd_refusal(const struct doc *reply, const char *member, struct error *error);

/* --- log.c --- */
void etcd_options_fill(struct etcd_options *options); /* with the defaults */
int64_t etcd_deadline(const struct etcd_log *log);    /* of a read that begins now */
/* ERROR_CORRUPT: `seq` is the known record, and had another checksum then. */
int etcd_prove(const struct etcd_log *log, uint64_t seq, uint32_t crc, struct error *error);
/* Keeps the record as the known one, unless a newer one is known. */
void etcd_know(struct etcd_log *log, uint64_t seq, uint32_t crc);
/* Takes the head from the answer of a range or transaction; ERROR_CORRUPT. */
int etcd_take_head(struct etcd_log *log, const struct doc *range, struct arena *arena, struct error *error);

/* --- append.c --- */
int etcd_log_append(struct etcd_log *log, const struct store_record *records, size_t count,
                    struct error *error);
/* Begins a transaction that holds while we lead. */
void etcd_txn_lead(struct etcd_txn *txn, const struct etcd_log *log);
/* Runs it until our lease may have ended. ERROR_FENCED: it has, or another one leads; `reply` has the second
 * list's answers when *ret_held is false. */
int etcd_txn_lead_run(struct etcd_txn *txn, struct etcd_log *log, struct arena *arena, struct doc **ret_reply,
                      bool *ret_held, struct error *error);
/* The same, while the head is the one that we know; operations follow, the last by etcd_put_head(). */
void etcd_txn_head(struct etcd_txn *txn, const struct etcd_log *log);
int etcd_put_head(struct etcd_log *log, struct etcd_txn *txn, const struct etcd_head *head,
                  struct error *error);
int etcd_fenced(struct etcd_log *log, struct error *error, const char *why); /* we lead no more */

/* --- log.c: the cursor --- */
struct etcd_cursor;
int etcd_read(struct etcd_log *log, uint64_t from_seq, struct etcd_cursor **ret_cursor, struct error *error);
int etcd_next(struct etcd_cursor *cursor, struct store_record *ret_record, struct error *error);
void etcd_cursor_free(struct etcd_cursor *cursor);
uint32_t etcd_cursor_crc(const struct etcd_cursor *cursor);    /* of the record that was read last */
bool etcd_cursor_ends_group(const struct etcd_cursor *cursor); /* that record was its group's last */
/* The checksum of one record: of the base, the last one, or read from its group. */
int etcd_record_crc(struct etcd_log *log, uint64_t seq, uint32_t *ret_crc, struct error *error);

/* --- snapshot.c --- */
struct etcd_rows {
    struct etcd_row items[ETCD_SNAPSHOTS_MAX]; /* newest first */
    size_t len;
};
int etcd_rows_read(struct etcd_log *log, struct etcd_rows *ret_rows, struct error *error);
int etcd_snapshot_begin(struct etcd_log *log, uint64_t seq, int64_t stamp_ns, struct str bytes,
                        struct etcd_writer **ret_writer, struct error *error);
int etcd_snapshot_step(struct etcd_writer *writer, struct error *error);
void etcd_writer_free(struct etcd_writer *writer);
int etcd_snapshot_unpack(struct etcd_log *log, const struct etcd_row *row, struct buf *out,
                         struct error *error);
int etcd_snapshot_load(struct etcd_log *log, uint64_t max_seq, struct store_snapshot *ret_snapshot,
                       struct error *error);

/* --- trim.c --- */
int etcd_log_trim(struct etcd_log *log, int64_t keep_after_ns, struct error *error);
/* The sizes of etcd's data; 0 where etcd tells them to root alone (3.5.28 to 3.5.30). */
int etcd_data_bytes(struct etcd_log *log, uint64_t *ret_used, uint64_t *ret_file, struct error *error);

#endif
