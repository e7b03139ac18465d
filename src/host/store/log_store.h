/* log_store.h - the port to a controller's log: kept in SQLite (store.h) or in etcd (etcd/etcd.h).
 *
 * A log_store is a table of functions with a context. The contract of each function is that of the function
 * of the same name in store.h. One test suite holds every implementation to it
 * (tests/host/store/etcd/test_conformance.c):
 *   - an append is all or nothing and durable on return, and numbers have no gap;
 *   - reads return what was written, in order, or ERROR_CORRUPT;
 *   - a snapshot exists complete or not at all, and only records that the oldest kept one covers are trimmed;
 *   - ERROR_NO_SPACE changes nothing, and the same append succeeds once there is space.
 * Where several controllers share a log, append, begin_behind, snapshots and trim may also return
 * ERROR_FENCED: another controller leads.
 *
 * Threading: one thread at a time; calls block.
 */
#ifndef PHX_HOST_STORE_LOG_STORE_H
#define PHX_HOST_STORE_LOG_STORE_H

#include "host/store/store.h"

/* Where a log begins and ends; `last` is `base` while the log holds no record. */
struct log_ends {
    uint64_t base, last; /* the log holds the records after `base`, up to and including `last` */
    uint32_t base_crc, last_crc;
};

struct log_store {
    void *context;
    int (*append)(void *context, const struct store_record *records, size_t count, struct error *error);
    struct log_ends (*ends)(void *context);
    int (*begin_behind)(void *context, uint64_t seq, uint32_t crc, struct error *error);
    int (*read)(void *context, uint64_t from_seq, void **ret_cursor, struct error *error);
    int (*next)(void *cursor, struct store_record *ret_record, struct error *error);
    void (*cursor_free)(void *cursor); /* NULL is fine */
    int (*snapshot_begin)(void *context, uint64_t seq, int64_t stamp_ns, struct str bytes, void **ret_writer,
                          struct error *error);
    int (*snapshot_step)(void *writer, struct error *error);
    void (*snapshot_free)(void *writer); /* NULL is fine */
    int (*snapshot_load)(void *context, uint64_t max_seq, struct store_snapshot *ret_snapshot,
                         struct error *error);
    int (*trim)(void *context, int64_t keep_after_ns, struct error *error);
    int (*verify)(void *context, store_report *report, void *report_context,
                  struct store_verify_result *ret_result, struct error *error);
    int (*stats)(void *context, struct store_stats *ret_stats, struct error *error);
    void (*close)(void *context);
};

/* Returns the port to an open SQLite store. The port's close() closes the store. */
struct log_store log_store_sqlite(struct store *store);

/* Copies all records of `from` and its newest snapshot into the empty log `to`. Numbers and stamps are kept,
 * so the state and its digest are the same. Records appended to `from` during the copy are left out. Sets
 * *ret_ends to what was copied. ERROR_EXISTS: `to` is not empty. After any other failure `to` may hold a
 * part. */
int log_store_copy(const struct log_store *from, const struct log_store *to, struct log_ends *ret_ends,
                   struct error *error);

#endif
