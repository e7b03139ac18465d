/* store.h - the embedded store: a controller's log, its snapshots and a few small keys, in one SQLite file.
 *
 * The log is a sequence of records numbered 1, 2, 3 …; every record is opaque bytes with a time stamp. The
 * controller appends a group of events, waits until they are durable, and only then lets their effects leave.
 * Its state is the newest snapshot plus the records after it:
 *
 *     struct store *store;
 *     if (store_open(path, &(struct store_options){0}, &store, error) < 0)
 *         return error_wrap(error, "opening the log");
 *     struct store_snapshot snapshot = {0}; // no snapshot: seq 0, no bytes
 *     int rc = store_snapshot_load(store, UINT64_MAX, &snapshot, error);
 *     if (rc < 0 && rc != ERROR_NOT_FOUND) …
 *     core_load(core, snapshot.bytes);
 *     struct store_cursor *cursor;
 *     rc = store_read(store, snapshot.seq + 1, &cursor, error);
 *     while ((rc = store_next(cursor, &record, error)) > 0) core_step(core, record.bytes …);
 *     store_cursor_free(cursor);
 *
 * Promises, each held by a test (tests/host/store/):
 *   - store_append returned 0: the records survive power loss at any later moment.
 *   - After power loss at any moment the log is a prefix of what was appended, with every acknowledged record
 *     in it.
 *   - Reads return what was written: a flipped bit anywhere in the file either has no effect or is reported
 *     as ERROR_CORRUPT with table and sequence number. A damaged record is never returned, nor is any record
 *     after it.
 *   - A full disk loses nothing that was acknowledged, and the same append succeeds once there is space
 *     again.
 *
 * The format of the file, and why it is correct, is in docs/formats/store.md. An operator may read the file
 * with the sqlite3 shell while the controller runs (read-only). A reader that stays in a transaction only
 * delays clean-up.
 *
 * Next to FILE are FILE-wal and FILE-shm (SQLite's) and FILE-lock. FILE-lock names the process that has the
 * store open, and the newest acknowledged record. From it, opening detects a log that has lost its end: a
 * deleted or damaged FILE-wal, or an older copy of FILE. Use local file systems only, not NFS.
 *
 * Threading: one thread at a time per store. Calls block on the disk; nothing runs in the background.
 *
 * Errors of all calls:
 *     ERROR_NO_SPACE     the disk is full: nothing has changed, try again later
 *     ERROR_IO           the operating system failed a write or a sync: what is durable is unknown, and every
 *                        later write fails until the store is opened again
 *     ERROR_CORRUPT      the file is damaged: the message has the table and the sequence number
 *     ERROR_DENIED       the bytes to read are encrypted, and options.keys lacks their key
 *     ERROR_UNAVAILABLE  another program (an operator's shell in a write transaction) has held the file for a
 *                        second: try again
 */
#ifndef PHX_HOST_STORE_STORE_H
#define PHX_HOST_STORE_STORE_H

#include "base/error.h"
#include "base/str.h"

enum {
    STORE_RECORD_BYTES_MAX = 48 << 20,  /* one record: more than the largest message of an agent */
    STORE_SNAPSHOT_BYTES_MAX = 1 << 30, /* one snapshot, uncompressed */
    STORE_META_KEY_MAX = 64,            /* bytes */
    STORE_META_VALUE_MAX = 64 << 10,    /* bytes */
    STORE_META_KEYS_MAX = 256,          /* keys in one store */
};

struct store;

/* Keys that encrypt records and snapshots (AES-256-GCM). The file has one key per line, 64 hexadecimal
 * digits, and up to 16 keys; empty lines and lines that begin with '#' are skipped. The first key encrypts
 * what is written; all keys decrypt what is read. To change the key, insert a new first line, and remove the
 * old one when nothing that it encrypted is left. */
struct store_keys;
/* Reads a key file. ERROR_INVALID, ERROR_LIMIT: the content is wrong, at FILE:LINE where one line is at
 * fault. ERROR_DENIED: users other than the owner may read the file. Other errors: the file cannot be
 * opened. */
int store_keys_load(const char *path, struct store_keys **ret_keys, struct error *error);
void store_keys_free(struct store_keys *keys); /* NULL is fine */

/* A zeroed struct gives the defaults. */
struct store_options {
    const char
        *vfs;       /* name of a registered SQLite VFS (tests inject faults through one); NULL: the default */
    bool read_only; /* take no lock, write nothing, fail writing calls with ERROR_DENIED; the file must exist.
                       For `log show` and `log verify`, also while a controller runs. Opening then does not
                       verify the end of the log, so that a damaged log can be inspected. */
    bool accept_loss;        /* open although the log lacks records that FILE-lock knows as acknowledged */
    uint32_t snapshots_keep; /* newest snapshots to keep, 1 … 16; 0: 3 */
    uint32_t tail_records;   /* records at the end of the log that are verified on open; 0: 1024 */
    uint32_t wal_bytes;      /* size at which FILE-wal is folded into FILE; 0: 4 MiB */
    const struct store_keys *keys; /* must outlive the store; NULL: nothing is encrypted, and encrypted bytes
                                      cannot be read */
    uint64_t bytes_max; /* size of FILE + FILE-wal above which store_trim ignores the age limit; 0: none */
};

/* Opens `path`, creating the file if it is absent (its folder must exist). Verifies the schema, the small
 * tables and the newest tail_records records only, so opening is cheap; recovers a WAL left by a crash.
 * `options` is copied and may be NULL. ERROR_UNSUPPORTED: a newer version wrote the file. ERROR_CONFLICT:
 * another process has it open (the message names its pid). ERROR_CORRUPT: see above; FILE and FILE-wal are
 * unchanged. ERROR_INVALID: the file is another program's database. ERROR_NOT_FOUND: read_only is set, and
 * there is no file. */
int store_open(const char *path, const struct store_options *options, struct store **ret_store,
               struct error *error);
/* Folds the WAL into the file and releases the lock. Free all cursors and writers first. NULL is fine. */
void store_close(struct store *store);

/* --- the log --- */

struct store_record {
    uint64_t seq;     /* 1 … INT64_MAX */
    int64_t stamp_ns; /* since 1970, set by the appender; may go backwards */
    struct str bytes; /* opaque; may be empty */
};

/* Appends all records or none; they are durable on return. CHECKs that records[0].seq is store_last_seq() + 1
 * and that the numbers have no gap. Does nothing if `count` is 0. ERROR_LIMIT: a record is larger than
 * STORE_RECORD_BYTES_MAX. */
int store_append(struct store *store, const struct store_record *records, size_t count, struct error *error);

/* Returns the number of the newest record, 0 if nothing was ever appended. */
uint64_t store_last_seq(const struct store *store);
/* Returns the number of the oldest record that the log holds, last + 1 if it holds none. */
uint64_t store_first_seq(const struct store *store);

/* Makes an empty log begin after record `seq`, whose checksum was `crc`: for a copy of a log that was
 * trimmed. Becomes durable with the next append. ERROR_EXISTS: the log is not empty. */
int store_begin_behind(struct store *store, uint64_t seq, uint32_t crc, struct error *error);

/* Opens a cursor that reads the records from `from_seq` to the end, in order. Each record's checksum is
 * chained with its predecessor's, so the cursor also detects a missing or moved record. Records appended
 * while it is open may or may not be read. ERROR_NOT_FOUND: from_seq is below store_first_seq() (trimmed) or
 * above store_last_seq() + 1. */
struct store_cursor;
int store_read(struct store *store, uint64_t from_seq, struct store_cursor **ret_cursor, struct error *error);
/* Returns 1 and sets *ret_record to the next record, whose bytes live until the next call on this cursor.
 * Returns 0 after the last record. Returns an error otherwise, and the same error on every later call. */
int store_next(struct store_cursor *cursor, struct store_record *ret_record, struct error *error);
void store_cursor_free(struct store_cursor *cursor); /* NULL is fine */

/* --- snapshots --- */

/* Saves the state after record `seq`, compressed with zstd. The snapshot becomes visible and durable, and
 * allows trimming, once it is complete; older snapshots beyond snapshots_keep disappear at the same moment.
 * ERROR_INVALID: `seq` is above store_last_seq(), is below the log's beginning, or is not above the newest
 * snapshot's. ERROR_LIMIT: `bytes` exceeds STORE_SNAPSHOT_BYTES_MAX. */
int store_snapshot_save(struct store *store, uint64_t seq, int64_t stamp_ns, struct str bytes,
                        struct error *error);

/* Begins to save a snapshot, as store_snapshot_save() does, in steps of a few milliseconds each (512 KiB of
 * input), for a loop that must not stall. Records may be appended between steps. `bytes` must stay valid and
 * unchanged until the writer is freed. CHECKs that no other writer is open. Freeing an unfinished writer
 * abandons the snapshot. */
struct store_snapshot_writer;
int store_snapshot_begin(struct store *store, uint64_t seq, int64_t stamp_ns, struct str bytes,
                         struct store_snapshot_writer **ret_writer, struct error *error);
/* Returns 1 if more steps follow, 0 once the snapshot is durable. After ERROR_NO_SPACE the same step may be
 * tried again later. */
int store_snapshot_step(struct store_snapshot_writer *writer, struct error *error);
void store_snapshot_writer_free(struct store_snapshot_writer *writer); /* NULL is fine */

struct store_snapshot {
    uint64_t seq;
    int64_t stamp_ns;
    struct buf bytes;                  /* the caller's: buf_done() */
    uint32_t skipped;                  /* newer snapshots that were skipped because they are damaged */
    char skipped_text[ERROR_TEXT_MAX]; /* what is wrong with the newest skipped one; "" if skipped is 0 */
};
/* Loads the newest valid snapshot with seq <= max_seq. *ret_snapshot is unchanged on failure.
 * ERROR_NOT_FOUND: there is none, and the log still begins at record 1, so that replay can start from an
 * empty state. ERROR_CORRUPT: there is none, and the records before store_first_seq() were trimmed. */
int store_snapshot_load(struct store *store, uint64_t max_seq, struct store_snapshot *ret_snapshot,
                        struct error *error);

/* --- clean-up --- */

/* Does one slice (about a millisecond) of clean-up. Deletes the oldest records, as far as the oldest kept
 * snapshot covers them and their stamp_ns is below keep_after_ns; while the file is above bytes_max, the age
 * does not count. Deletes no record while a cursor is open. Also deletes chunks of abandoned snapshots, and
 * gives free pages back to the file system. Returns 1 if there is more to do (call again on a later turn of
 * the loop), 0 if not. */
int store_trim(struct store *store, int64_t keep_after_ns, struct error *error);

/* --- small keys (cluster id, epoch, …) --- */

/* Replaces *ret_value's content by the key's value. ERROR_NOT_FOUND: there is no such key. */
int store_meta_get(struct store *store, struct str key, struct buf *ret_value, struct error *error);
/* Sets a key, durable on return. ERROR_LIMIT: the key is empty or not UTF-8, or the key, the value or the
 * number of keys is too large. */
int store_meta_set(struct store *store, struct str key, struct str value, struct error *error);

/* --- inspection --- */

/* A problem found by store_verify(). `table` is "log", "snapshot", "snapshot_chunk", "meta", "state" or
 * "file" (SQLite's own check). */
struct store_problem {
    const char *table;
    uint64_t seq; /* record or snapshot; 0: none in particular */
    const char *text;
};
typedef void store_report(void *context, const struct store_problem *problem);

struct store_verify_result {
    uint64_t records, snapshots, problems;
};
/* Checks every record, snapshot and key, and runs SQLite's integrity check. Passes each problem to `report`
 * (may be NULL). Returns 0 if there is none. ERROR_CORRUPT: there are problems, the first of them in *error;
 * *ret_result is set then as well. Takes a few seconds per GB. */
int store_verify(struct store *store, store_report *report, void *context,
                 struct store_verify_result *ret_result, struct error *error);

struct store_stats {
    uint64_t first_seq, last_seq;
    uint64_t file_bytes, wal_bytes, free_bytes; /* FILE; FILE-wal in use; unused pages inside FILE */
    uint64_t bytes_max;                         /* as set; 0: none */
    bool over;                                  /* the data exceed bytes_max: report it to the operator */
    uint32_t snapshots;
    bool restored; /* the log may lack its newest part: it was opened without the FILE-lock that knows its
                    * end, as a backup is, or with accept_loss */
    uint64_t snapshot_seq; /* newest; 0: none */
    int64_t snapshot_stamp_ns;
    uint64_t snapshot_bytes; /* compressed size of the newest */
    uint64_t appended_records, appended_bytes, commits, checkpoints, full_errors; /* since it was opened */
};
int store_stats(struct store *store, struct store_stats *ret_stats, struct error *error);

#endif
