/* internal.h - declarations shared by the files of the log on etcd; nothing outside this folder may include
 * them. */
#ifndef PHX_HOST_STORE_ETCD_INTERNAL_H
#define PHX_HOST_STORE_ETCD_INTERNAL_H

#include "base/vec.h"
#include "host/store/etcd/client.h"
#include "host/store/seal.h"

enum { ETCD_ENDPOINTS_MAX = 16, ETCD_SNAPSHOTS_MAX = 64 };

struct etcd_log {
    struct etcd_options options; /* defaults filled in */
    struct etcd_client *client;
    int64_t patience_ns; /* how long a read that begins now waits for an answer */
    struct etcd_head head;
    int64_t head_mod; /* the head's mod revision; 0: the key does not exist */
    /* The newest record that was read or appended here, or after which reading began; 0: none. */
    uint64_t known_seq;
    uint32_t known_crc;
    /* Used while this log leads. */
    int64_t term;   /* mod revision of our leader key; 0: we do not lead */
    int64_t fenced; /* the leadership that was lost, or may have been; 0: none */
    struct etcd_lease *lease;
    struct etcd_writer *writer;           /* the open snapshot writer; NULL: none */
    bool left_overs;                      /* chunks that belong to no snapshot may exist */
    uint32_t left_parts;                  /* parts of refused groups after the head: at most so many */
    bool unsure;                          /* an attempt of the current append was not answered */
    int64_t revision;                     /* of etcd's store at our last write */
    int64_t compact_revision, compact_ns; /* what is compacted next, and when (monotonic) */
    bool said_denied;                     /* it was reported that etcd does not let us compact */
    uint32_t cursors;
    uint64_t appended_records, appended_bytes, commits, full_errors;
};

/* --- client.c --- */
/* Splits a list of URLs into `list`, which has ETCD_ENDPOINTS_MAX places. The caller frees the strings with
 * mem_free(), also after a failure. */
int etcd_endpoints_read(const char *text, char **list, size_t *ret_count, struct error *error);
struct curl_slist;
/* Sets the options that all our requests share, TLS among them, on a CURL handle. */
void etcd_curl_common(void *curl, const struct etcd_options *options);
/* Returns the headers of a request, with `token` unless it is empty. The caller frees the list. */
struct curl_slist *etcd_headers(struct str token);
/* Obtains a token for the options' user from the member at index `member`, and appends it to *ret_token.
 * Appends nothing if the options have no user. */
int etcd_client_log_in(struct etcd_client *client, size_t member, struct buf *ret_token, struct error *error);

/* --- reply.c --- */
/* Sets `error` to what a member's refusal means, and returns the code (client.h, "Errors of calls"). */
int etcd_refusal(const struct doc *reply, const char *member, struct error *error);

/* --- log.c --- */
void etcd_options_fill(struct etcd_options *options); /* replaces zero members by the defaults */
int64_t etcd_deadline(const struct etcd_log *log);    /* of a read that begins now (CLOCK_MONOTONIC) */
/* Checks a record against the known one (known_seq). ERROR_CORRUPT: same number, different checksum. */
int etcd_prove(const struct etcd_log *log, uint64_t seq, uint32_t crc, struct error *error);
/* Makes the record the known one, unless a newer record is known. */
void etcd_know(struct etcd_log *log, uint64_t seq, uint32_t crc);
/* Takes the head from a range's answer. ERROR_CORRUPT: the head is missing, damaged, older than ours, or
 * contradicts the known record. */
int etcd_take_head(struct etcd_log *log, const struct doc *range, struct arena *arena, struct error *error);

/* --- append.c --- */
int etcd_log_append(struct etcd_log *log, const struct store_record *records, size_t count,
                    struct error *error);
/* Begins a transaction whose comparison holds while we lead. More comparisons may follow. */
void etcd_txn_lead(struct etcd_txn *txn, const struct etcd_log *log);
/* Ends such a transaction and sends it, again and again, until it is answered or our lease may have ended.
 * Sets *ret_held to whether the comparisons held; if not, *ret_reply has the answers of the etcd_txn_else()
 * operations. ERROR_FENCED: our lease has ended, or it is unknown whether an attempt was carried out. */
int etcd_txn_lead_run(struct etcd_txn *txn, struct etcd_log *log, struct arena *arena, struct doc **ret_reply,
                      bool *ret_held, struct error *error);
/* Begins a transaction that holds while we lead and the head is unchanged. Operations follow; to replace the
 * head, end with etcd_put_head(). */
void etcd_txn_head(struct etcd_txn *txn, const struct etcd_log *log);
/* Adds the new head to such a transaction and runs it. ERROR_FENCED as above, or another controller leads. */
int etcd_put_head(struct etcd_log *log, struct etcd_txn *txn, const struct etcd_head *head,
                  struct error *error);
/* Records that we no longer lead, and returns ERROR_FENCED with the reason. */
int etcd_fenced(struct etcd_log *log, struct error *error, const char *why);

/* --- log.c: the cursor --- */
struct etcd_cursor;
int etcd_read(struct etcd_log *log, uint64_t from_seq, struct etcd_cursor **ret_cursor, struct error *error);
int etcd_next(struct etcd_cursor *cursor, struct store_record *ret_record, struct error *error);
void etcd_cursor_free(struct etcd_cursor *cursor);
uint32_t etcd_cursor_crc(const struct etcd_cursor *cursor);    /* of the record that was read last */
bool etcd_cursor_ends_group(const struct etcd_cursor *cursor); /* whether that record was its group's last */
/* Finds the checksum of one record: in the head, or by reading the record's group. */
int etcd_record_crc(struct etcd_log *log, uint64_t seq, uint32_t *ret_crc, struct error *error);

/* --- snapshot.c --- */
struct etcd_rows {
    struct etcd_row items[ETCD_SNAPSHOTS_MAX]; /* newest first */
    size_t len;
};
/* Reads the rows of snapshots, without those that are damaged. */
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
/* Reads the sizes of etcd's data, in use and on disk; both 0 if etcd shows them to root only (3.5.28 to
 * 3.5.30). */
int etcd_data_bytes(struct etcd_log *log, uint64_t *ret_used, uint64_t *ret_file, struct error *error);

#endif
