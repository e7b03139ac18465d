/* private.h - declarations shared by the store's files; nothing outside src/host/store may include it.
 *
 * db.c: SQLite calls and their errors. lock.c: FILE-lock. schema.c: tables, the state row. open.c: opening
 * and closing. log.c: append and read. snapshot_save.c, snapshot_load.c. trim.c. meta.c. verify.c. seal.h:
 * checksums and encryption. docs/formats/store.md specifies the file's format. */
#ifndef PHX_HOST_STORE_PRIVATE_H
#define PHX_HOST_STORE_PRIVATE_H

#include <sqlite3.h>
#include "host/store/seal.h"

enum {
    STORE_VERSION = 1,
    STORE_APPLICATION_ID = 0x50684c78, /* "PhLx" in SQLite's header: identifies the file to us and file(1) */
    STORE_PAGE_BYTES =
        4096, /* bench/store.c: the fastest for small groups, as fast as 16 KiB for large ones */
    STORE_CHUNK_BYTES = 256 << 10, /* one row of a packed snapshot; also what one slice of clean-up frees */
    STORE_SNAPSHOT_ROWS_MAX = 64,
};

enum store_statement {
    STMT_BEGIN_READ,
    STMT_BEGIN_WRITE,
    STMT_COMMIT,
    STMT_ROLLBACK,
    STMT_LOG_INSERT,
    STMT_LOG_CRC,
    STMT_LOG_LAST,
    STMT_LOG_FIRST,
    STMT_LOG_LIST,
    STMT_LOG_DELETE,
    STMT_STATE_GET,
    STMT_STATE_SET,
    STMT_META_GET,
    STMT_META_SET,
    STMT_META_ALL,
    STMT_SNAPSHOT_ALL,
    STMT_SNAPSHOT_INSERT,
    STMT_SNAPSHOT_DELETE,
    STMT_CHUNK_GET,
    STMT_CHUNK_INSERT,
    STMT_CHUNK_LAST,
    STMT_CHUNK_ORPHAN,
    STMT_CHUNK_DELETE,
    STMT_COUNT,
};

/* The one row of table `state`. It must change in the same transaction as the tables that it describes. */
struct store_state {
    uint64_t base_seq; /* the log begins after this record */
    uint32_t base_crc; /* that record's checksum; the chain starts with it (0 for base_seq 0) */
    uint32_t meta_crc; /* over all rows of `meta` */
};

struct store_lock {
    int fd; /* -1: none (read_only) */
    char path[4096];
    bool has_head; /* the file held a readable head when it was opened */
    uint64_t head_seq;
    uint32_t head_crc;
};

struct store {
    sqlite3 *db;
    sqlite3_stmt *statements[STMT_COUNT];
    struct store_options options; /* defaults filled in */
    struct store_lock lock;
    struct store_state state;
    uint64_t last_seq;
    bool restored; /* store.h, struct store_stats */
    uint32_t last_crc;
    bool broken;          /* a write or sync failed: the durable contents are unknown */
    bool in_write;        /* between store_db_begin and commit / rollback */
    bool maybe_orphans;   /* chunks without a snapshot may exist */
    bool synchronous_low; /* the current commit need not be synced */
    uint32_t read_depth;  /* read transactions of a read_only store */
    uint32_t cursors;
    struct store_snapshot_writer *writer; /* the open one; NULL: none */
    int wal_frames;                       /* length of the WAL after the last commit */
    bool wal_folded;                      /* all its frames have been copied into the file */
    uint64_t appended_records, appended_bytes, commits, checkpoints, full_errors;
};

/* --- db.c --- */
int store_db_prepare(struct store *store, struct error *error); /* prepares all statements */
void store_db_finalize(struct store *store);
int store_db_exec(struct store *store, const char *sql, struct error *error);
/* Runs a query or pragma and sets *ret_value to the integer in its first row. */
int store_db_number(struct store *store, const char *sql, int64_t *ret_value, struct error *error);
/* Returns a prepared statement, reset and without bindings. */
sqlite3_stmt *store_db_get(struct store *store, enum store_statement which);
/* Sets `error` from SQLite's result code; `what` names the failed operation. Returns our error code. */
int store_db_error(struct store *store, int sqlite_code, const char *what, struct error *error);
/* Begins a write transaction. Fails with ERROR_DENIED on a read_only store, with ERROR_IO on a broken one.
 * `durable`: the commit is synced. A commit that is not becomes durable with the next one that is: order is
 * kept, so no later record survives the loss of an earlier one. */
int store_db_begin(struct store *store, bool durable, struct error *error);
/* Commits the write transaction. On failure the transaction is rolled back. */
int store_db_commit(struct store *store, const char *what, struct error *error);
/* Rolls back after `sqlite_code` and sets `error`; ERROR_IO marks the store as broken. */
int store_db_abort(struct store *store, int sqlite_code, const char *what, struct error *error);
void store_db_rollback(struct store *store);
/* Runs a statement that gives no row. Returns SQLite's result code, SQLITE_DONE on success. */
int store_db_run(sqlite3_stmt *statement);
/* Copies the WAL into the file if it has at least `frames` frames. Reports no failure: a full disk is tried
 * again later, and a failed sync marks the store as broken. */
void store_db_fold(struct store *store, int frames);
/* Begins a read transaction, one view for several reads, on a read_only store; does nothing on others. Calls
 * may be nested; each needs a store_db_read_end(). */
int store_db_read_begin(struct store *store, struct error *error);
void store_db_read_end(struct store *store);

/* --- lock.c --- */
/* Locks FILE-lock, writes our pid and reads the head. ERROR_CONFLICT: another process holds the lock. */
int store_lock_take(struct store_lock *lock, const char *path, struct error *error);
/* Reads the head without taking the lock. */
int store_lock_peek(struct store_lock *lock, const char *path, struct error *error);
/* Writes the head, the newest acknowledged record. */
void store_lock_head(struct store_lock *lock, uint64_t seq, uint32_t crc);
void store_lock_release(struct store_lock *lock);

/* --- schema.c --- */
int store_schema_create(struct store *store, struct error *error);
int store_schema_verify(struct store *store, struct error *error);
int store_state_load(struct store *store, struct store_state *ret_state, struct error *error);
/* Writes the state row inside a write transaction. Returns SQLite's result code, SQLITE_DONE on success. */
int store_state_save(struct store *store, const struct store_state *state);

/* --- log.c --- */
/* Calls store_db_read_begin(). On a read_only store also reloads where the log begins and ends: a controller
 * may have appended or trimmed records since the store was opened. End with store_db_read_end(). */
int store_view_begin(struct store *store, struct error *error);
/* Finds last_seq and last_crc, and verifies the newest `records` records. */
int store_log_load(struct store *store, uint32_t records, struct error *error);
/* Reads the stored checksum of a record, or of the base. ERROR_CORRUPT: the log lacks the record. */
int store_log_crc(struct store *store, uint64_t seq, uint32_t *ret_crc, struct error *error);

/* --- meta.c --- */
int store_meta_verify(struct store *store, store_report *report, void *context, struct error *error);

/* --- snapshot_load.c --- */
struct store_snapshot_row {
    uint64_t seq;
    int64_t stamp_ns;
    uint32_t log_crc; /* checksum of record `seq` */
    uint64_t raw_bytes, packed_bytes, first_chunk, chunks;
    uint32_t packed_crc; /* checksum of the last chunk, which chains all */
    uint32_t crc;        /* as stored */
    bool valid;          /* crc is correct, and the numbers are within their limits */
};
struct store_snapshot_rows {
    struct store_snapshot_row items[STORE_SNAPSHOT_ROWS_MAX]; /* newest first, damaged ones too */
    size_t len;
};
uint32_t store_snapshot_row_crc(const struct store_snapshot_row *row);
int store_snapshot_rows(struct store *store, struct store_snapshot_rows *ret_rows, struct error *error);
/* Reads, verifies and unpacks one snapshot into `out`. ERROR_CORRUPT names the place of the damage. */
int store_snapshot_unpack(struct store *store, const struct store_snapshot_row *row, struct buf *out,
                          struct error *error);

/* --- trim.c --- */
struct store_size {
    uint64_t pages, free_pages;
};
int store_size(struct store *store, struct store_size *ret_size, struct error *error);
bool store_size_over(const struct store *store, const struct store_size *size); /* above bytes_max */

/* --- snapshot_save.c --- */
uint64_t store_snapshot_writer_first_chunk(const struct store_snapshot_writer *writer);

#endif
