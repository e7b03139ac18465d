/* store.h - the embedded store: the controller's log, its snapshots and a few small keys, in one SQLite file.
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
 *   - What is read is what was written: a flipped bit anywhere in the file is either without effect or is
 *     reported as ERROR_CORRUPT with table and sequence number. A damaged record is never returned, nor one
 *     behind it.
 *   - A full disk costs nothing that was acknowledged, and the same append succeeds once space is back.
 *
 * The format of the file, and why it is correct, is in docs/formats/store.md. An operator may read the file
 * with the sqlite3 shell while the controller runs (read-only); a reader that stays in a transaction delays
 * clean-up, no more.
 *
 * Beside FILE stand FILE-wal and FILE-shm (SQLite's) and FILE-lock, which names the process that has the
 * store open and the newest acknowledged record, so that a log that lost its end (a deleted or damaged
 * FILE-wal, an older copy put in place) is noticed. Local file systems only: no NFS.
 *
 * Threading: one thread at a time per store. Calls block for the disk; nothing runs in the background.
 *
 * Errors, all calls:  ERROR_NO_SPACE  disk full: nothing changed, try again later;  ERROR_IO  the operating
 * system failed a write or a sync: what is durable is unknown, so every later write fails too until the store
 * is opened anew; ERROR_CORRUPT  with the place (table, sequence number) in the message.
 * ERROR_DENIED  what is to be read is encrypted, and options.keys does not have its key.
 * ERROR_UNAVAILABLE  another program (an operator's shell in a write transaction) held the file for a second:
 * try again.
 */
#ifndef PHX_HOST_STORE_STORE_H
#define PHX_HOST_STORE_STORE_H

#include "base/error.h"
#include "base/str.h"

enum {
    STORE_RECORD_BYTES_MAX = 16 << 20,  /* one record */
    STORE_SNAPSHOT_BYTES_MAX = 1 << 30, /* one snapshot, uncompressed */
    STORE_META_KEY_MAX = 64,            /* bytes */
    STORE_META_VALUE_MAX = 64 << 10,    /* bytes */
    STORE_META_KEYS_MAX = 256,          /* keys in one store */
};

struct store;

/* Keys that records and snapshots are encrypted with (AES-256-GCM). The file has one key a line, 64
 * hexadecimal digits; the first seals what is written, all of them open what is read. So a key is changed
 * by putting a new one before it, and the old one goes when nothing is left that it sealed. Empty lines
 * and those that begin with '#' are skipped. ERROR_IO, ERROR_INVALID with FILE:LINE; ERROR_DENIED: others
 * than the owner may read it. */
struct store_keys;
int store_keys_load(const char *path, struct store_keys **ret_keys, struct error *error);
void store_keys_free(struct store_keys *keys); /* NULL is fine */

/* A zeroed struct means: the defaults. */
struct store_options {
    const char
        *vfs;       /* name of a registered SQLite VFS (tests inject faults through one); NULL: the default */
    bool read_only; /* no lock taken, nothing written, writing calls fail with ERROR_DENIED; the file must
                       exist. For `log show` and `log verify`, also beside a running controller. The end of
                       the log is then not verified on open, so that a damaged log can be looked at. */
    bool accept_loss; /* open although FILE-lock knows of acknowledged records that the log no longer has */
    uint32_t snapshots_keep; /* newest snapshots to keep, 1 … 16; 0: 3 */
    uint32_t tail_records;   /* records at the end of the log that are verified on open; 0: 1024 */
    uint32_t wal_bytes;      /* size at which FILE-wal is folded into FILE; 0: 4 MiB */
    const struct store_keys *keys; /* must outlive the store; NULL: nothing is encrypted, and nothing that is
                                      can be read */
    uint64_t bytes_max; /* size of FILE + FILE-wal above which store_trim gives up the age limit; 0: none */
};

/* Opens `path`, creating it when absent (its folder must exist). Cheap: schema, small tables and the newest
 * tail_records records are verified, and a WAL left by a crash is recovered. `options` may be NULL.
 * ERROR_UNSUPPORTED: written by a newer version. ERROR_CONFLICT: another process has it open (the message
 * names its pid). ERROR_CORRUPT: see above; FILE and FILE-wal are left as they were found. ERROR_INVALID:
 * another program's database. ERROR_NOT_FOUND: read_only and absent. */
int store_open(const char *path, const struct store_options *options, struct store **ret_store,
               struct error *error);
/* Folds the WAL into the file and releases the lock. NULL is fine. All cursors and writers must be freed
 * before. */
void store_close(struct store *store);

/* --- the log --- */

struct store_record {
    uint64_t seq;     /* 1 … INT64_MAX */
    int64_t stamp_ns; /* since 1970, set by the appender; not necessarily rising */
    struct str bytes; /* opaque; may be empty */
};

/* Appends all of the records or none, durable on return. CHECKed: records[0].seq == store_last_seq() + 1, and
 * each next one is one more. count 0 does nothing. ERROR_LIMIT: a record above STORE_RECORD_BYTES_MAX. */
int store_append(struct store *store, const struct store_record *records, size_t count, struct error *error);

uint64_t store_last_seq(const struct store *store); /* 0: nothing was ever appended */
uint64_t
store_first_seq(const struct store *store); /* oldest record still there; last + 1 when there is none */

/* Lets an empty log begin behind record `seq`, whose checksum was `crc`: for the copy of a log that was
 * trimmed. ERROR_EXISTS: it is not empty. Durable with the next append. */
int store_begin_behind(struct store *store, uint64_t seq, uint32_t crc, struct error *error);

/* Reads records from `from_seq` to the end, in order. Every record's checksum is verified, chained with its
 * predecessor's, so that a missing or moved record is found too. Records appended meanwhile may or may not be
 * seen. ERROR_NOT_FOUND: from_seq is below store_first_seq() (trimmed) or above store_last_seq() + 1. */
struct store_cursor;
int store_read(struct store *store, uint64_t from_seq, struct store_cursor **ret_cursor, struct error *error);
/* 1: *ret_record is the next one (its bytes live until the next call on this cursor). 0: the end was reached,
 * whole. Negative: error; the cursor then gives the same error again. */
int store_next(struct store_cursor *cursor, struct store_record *ret_record, struct error *error);
void store_cursor_free(struct store_cursor *cursor); /* NULL is fine */

/* --- snapshots --- */

/* Saves the state after record `seq` (<= store_last_seq(), above the newest snapshot's seq, else
 * ERROR_INVALID), compressed with zstd. It becomes visible, durable and a reason to trim only when whole.
 * Older snapshots beyond snapshots_keep disappear at the same moment. */
int store_snapshot_save(struct store *store, uint64_t seq, int64_t stamp_ns, struct str bytes,
                        struct error *error);

/* The same in steps of a few milliseconds each (512 KiB of input), for a loop that must not stall. Appends
 * may go on between steps. `bytes` must stay valid and unchanged until the writer is freed. One writer at a
 * time (CHECKed). Freeing an unfinished writer abandons the snapshot. */
struct store_snapshot_writer;
int store_snapshot_begin(struct store *store, uint64_t seq, int64_t stamp_ns, struct str bytes,
                         struct store_snapshot_writer **ret_writer, struct error *error);
/* 1: call again. 0: the snapshot is saved and durable. Negative: error; after ERROR_NO_SPACE call again
 * later. */
int store_snapshot_step(struct store_snapshot_writer *writer, struct error *error);
void store_snapshot_writer_free(struct store_snapshot_writer *writer); /* NULL is fine */

struct store_snapshot {
    uint64_t seq;
    int64_t stamp_ns;
    struct buf bytes;                  /* the caller's: buf_done() */
    uint32_t skipped;                  /* newer snapshots that were damaged and passed over */
    char skipped_text[ERROR_TEXT_MAX]; /* the mistake of the newest skipped one; "" when skipped is 0 */
};
/* The newest valid snapshot with seq <= max_seq. *ret_snapshot is untouched on failure.
 * ERROR_NOT_FOUND: there is none and the log still begins at record 1, so that replay can start from nothing.
 * ERROR_CORRUPT: there is none, but the records before store_first_seq() are gone. */
int store_snapshot_load(struct store *store, uint64_t max_seq, struct store_snapshot *ret_snapshot,
                        struct error *error);

/* --- clean-up --- */

/* Does a slice (about a millisecond) of clean-up: deletes records that lie behind the oldest kept snapshot
 * and have stamp_ns < keep_after_ns (all behind that snapshot while the file is above bytes_max), left-overs
 * of snapshots, and gives free pages back to the file system. 1: there is more to do, call again on a later
 * turn of the loop. 0: done. */
int store_trim(struct store *store, int64_t keep_after_ns, struct error *error);

/* --- small keys (cluster id, epoch, …) --- */

/* Replaces *ret_value's content. ERROR_NOT_FOUND: no such key. */
int store_meta_get(struct store *store, struct str key, struct buf *ret_value, struct error *error);
/* Durable on return. ERROR_LIMIT: key, value or number of keys too large. */
int store_meta_set(struct store *store, struct str key, struct str value, struct error *error);

/* --- inspection --- */

/* A problem that verification found. `table`: "log", "snapshot", "snapshot_chunk", "meta", "state" or "file"
 * (SQLite's own check). */
struct store_problem {
    const char *table;
    uint64_t seq; /* record or snapshot; 0: none in particular */
    const char *text;
};
typedef void store_report(void *context, const struct store_problem *problem);

struct store_verify_result {
    uint64_t records, snapshots, problems;
};
/* Checks every record, snapshot and key, and runs SQLite's integrity check. Each problem goes to `report`
 * (NULL allowed). 0: clean. ERROR_CORRUPT: problems were found (the first is in *error); *ret_result is then
 * set as well. Time grows with the file: a few seconds a GB. */
int store_verify(struct store *store, store_report *report, void *context,
                 struct store_verify_result *ret_result, struct error *error);

struct store_stats {
    uint64_t first_seq, last_seq;
    uint64_t file_bytes, wal_bytes, free_bytes; /* FILE; FILE-wal in use; unused pages inside FILE */
    uint64_t bytes_max;                         /* as set; 0: none */
    bool over;                                  /* file + wal - free > bytes_max: say so to the operator */
    uint32_t snapshots;
    bool restored; /* it may lack its newest part: it was opened without the FILE-lock that knows its end, as
                    * a backup is, or in spite of what that says (accept_loss) */
    uint64_t snapshot_seq; /* newest; 0: none */
    int64_t snapshot_stamp_ns;
    uint64_t snapshot_bytes; /* compressed size of the newest */
    uint64_t appended_records, appended_bytes, commits, checkpoints, full_errors; /* since it was opened */
};
int store_stats(struct store *store, struct store_stats *ret_stats, struct error *error);

#endif
