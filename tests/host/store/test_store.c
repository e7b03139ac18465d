/* The store on real files: what goes in comes out, one owner at a time, bounded size, whole snapshots,
 * readers beside the writer, death of the process at any moment. */
#include "host/store/sample.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

struct place {
    char folder[64], path[96];
};

static int set_up(void **state)
{
    struct place *place = test_calloc(1, sizeof *place);
    sample_folder(place->folder);
    sample_path(place->path, place->folder);
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    sample_folder_remove(place->folder);
    test_free(place);
    return 0;
}

static struct store *open_with(const struct place *place, const struct store_options *options)
{
    struct store *store = NULL;
    struct error error;
    if (store_open(place->path, options, &store, &error) < 0)
        fail_msg("%s", error.text);
    return store;
}

static void save(struct store *store, size_t len)
{
    struct buf state BUF_CLEANUP = {0};
    struct error error;
    uint64_t seq = store_last_seq(store);
    struct str bytes = sample_state(&state, seq, len);
    if (store_snapshot_save(store, seq, STAMP_NS(seq), bytes, &error) < 0)
        fail_msg("%s", error.text);
}

static void assert_snapshot(struct store *store, uint64_t max_seq, uint64_t seq, size_t len)
{
    struct store_snapshot loaded = {0};
    struct buf want BUF_CLEANUP = {0};
    assert_int_equal(store_snapshot_load(store, max_seq, &loaded, NULL), 0);
    assert_int_equal(loaded.seq, seq);
    assert_int_equal(loaded.stamp_ns, STAMP_NS(seq));
    assert_int_equal(loaded.skipped, 0);
    assert_string_equal(loaded.skipped_text, "");
    struct str bytes = sample_state(&want, seq, len);
    assert_int_equal(loaded.bytes.len, bytes.len);
    assert_true(bytes.len == 0 || memcmp(loaded.bytes.data, bytes.data, bytes.len) == 0);
    buf_done(&loaded.bytes);
}

/* --- the log --- */

static void round_trip(void **state)
{
    struct store *store = open_with(*state, NULL);
    struct error error;
    struct rng rng;
    rng_seed(&rng, 7);
    uint64_t read;
    assert_int_equal(store_last_seq(store), 0);
    assert_int_equal(store_first_seq(store), 1);
    assert_int_equal(sample_read(store, 1, NULL, &read, &error), 0);
    assert_int_equal(store_append(store, NULL, 0, &error), 0);
    uint64_t last = 0;
    for (int i = 0; i < 120; i++) {
        size_t count = 1 + rng_below(&rng, 60);
        assert_int_equal(sample_append(store, count, 0, &error), 0);
        last += count;
        assert_int_equal(store_last_seq(store), last);
        uint64_t from = 1 + rng_below(&rng, last + 1);
        assert_int_equal(sample_read(store, from, NULL, &read, &error), 0);
        assert_int_equal(read, last);
        if (rng_below(&rng, 10) == 0) {
            store_close(store);
            store = open_with(*state, NULL);
            assert_int_equal(store_last_seq(store), last);
        }
    }
    assert_int_equal(sample_read(store, 0, NULL, &read, &error), ERROR_NOT_FOUND);
    assert_int_equal(sample_read(store, last + 2, NULL, &read, &error), ERROR_NOT_FOUND);
    struct store_verify_result result;
    assert_int_equal(store_verify(store, NULL, NULL, &result, &error), 0);
    assert_int_equal(result.records, last);
    store_close(store);
}

static bool is_restored(const struct place *place, size_t appended)
{
    struct store *store = open_with(place, NULL);
    struct store_stats stats;
    struct error error;
    assert_int_equal(store_stats(store, &stats, &error), 0);
    assert_int_equal(sample_append(store, appended, 0, &error), 0);
    store_close(store);
    return stats.restored;
}

/* A backup has no FILE-lock, which knows the end of the log. */
static void a_copy_may_lack_the_newest_part(void **state)
{
    const struct place *place = *state;
    char lock[128];
    snprintf(lock, sizeof lock, "%s-lock", place->path);
    assert_false(is_restored(place, 3)); /* new */
    assert_false(is_restored(place, 0));
    assert_int_equal(unlink(lock), 0);
    assert_true(is_restored(place, 0)); /* who opened it has died before its first record */
    assert_true(is_restored(place, 1));
    assert_false(is_restored(place, 1));
}

static void sizes_of_records(void **state)
{
    struct store *store = open_with(*state, NULL);
    struct error error;
    struct buf big BUF_CLEANUP = {0};
    sample_state(&big, 3, STORE_RECORD_BYTES_MAX + 1);
    struct store_record records[] = {
        {1, INT64_MIN, {NULL, 0}}, {2, INT64_MAX, STR("\0\0")}, {3, -1, {big.data, STORE_RECORD_BYTES_MAX}}};
    assert_int_equal(store_append(store, records, 3, &error), 0);
    struct store_record beyond[] = {{4, 0, STR("small")}, {5, 0, buf_str(&big)}};
    assert_int_equal(store_append(store, beyond, 2, &error), ERROR_LIMIT);
    assert_int_equal(store_last_seq(store), 3);
    struct store_cursor *cursor;
    struct store_record record;
    assert_int_equal(store_read(store, 1, &cursor, &error), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(store_next(cursor, &record, &error), 1);
        assert_int_equal(record.stamp_ns, records[i].stamp_ns);
        assert_true(str_equal(record.bytes, records[i].bytes));
    }
    assert_int_equal(store_next(cursor, &record, &error), 0);
    store_cursor_free(cursor);
    store_close(store);
}

/* --- one owner --- */

/* A child that opens the store, says so (or what stands against it) and appends until it is killed; one byte
 * of `report` for every acknowledged record. */
static pid_t start_owner(const struct place *place, int *ret_report)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct store *store;
        if (store_open(place->path, &(struct store_options){.wal_bytes = 32 << 10}, &store, NULL) < 0)
            _exit(3);
        (void)!write(ends[1], "o", 1);
        while (sample_append(store, 1, 0, NULL) == 0)
            if (write(ends[1], "a", 1) != 1)
                break;
        _exit(4);
    }
    close(ends[1]);
    *ret_report = ends[0];
    return pid;
}

static void one_owner(void **state)
{
    const struct place *place = *state;
    struct store *store = open_with(place, NULL), *second;
    struct error error;
    assert_int_equal(store_open(place->path, NULL, &second, &error),
                     ERROR_CONFLICT); /* not even in one process */
    store_close(store);
    int report;
    char byte;
    pid_t pid = start_owner(place, &report);
    assert_int_equal(read(report, &byte, 1), 1);
    assert_int_equal(store_open(place->path, NULL, &second, &error), ERROR_CONFLICT);
    char name[32], other[160];
    (void)snprintf(name, sizeof name, "process %d ", (int)pid);
    assert_non_null(strstr(error.text, name));
    (void)snprintf(other, sizeof other, "%s/link", place->folder); /* by another name it is the same file */
    assert_int_equal(symlink(place->path, other), 0);
    assert_int_equal(store_open(other, NULL, &second, &error), ERROR_CONFLICT);
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(report);
    store = open_with(place, NULL);
    store_close(store);
}

/* kill -9 at any moment loses nothing that was acknowledged. */
static void killed(void **state)
{
    uint64_t acked = 0, read_to;
    struct rng rng;
    rng_seed(&rng, 11);
    for (int life = 0; life < 15; life++) {
        int report;
        pid_t pid = start_owner(*state, &report);
        uint64_t wanted = rng_below(&rng, 60);
        char bytes[64];
        ssize_t len = 0;
        for (uint64_t got = 0; got < wanted && (len = read(report, bytes, 1)) == 1; got++)
            acked += bytes[0] == 'a';
        (void)kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        while ((len = read(report, bytes, sizeof bytes)) > 0) /* what it had said before it died */
            for (ssize_t i = 0; i < len; i++)
                acked += bytes[i] == 'a';
        close(report);
        struct store *store = open_with(*state, NULL);
        struct error error;
        assert_in_range(store_last_seq(store), acked, acked + 1);
        assert_int_equal(sample_read(store, 1, NULL, &read_to, &error), 0);
        acked = store_last_seq(store);
        store_close(store);
    }
}

/* --- what else may lie at the path --- */

static void run_sql(const struct place *place, const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(place->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void newer_version(void **state)
{
    struct store *store = open_with(*state, NULL);
    struct error error;
    store_close(store);
    run_sql(*state, "PRAGMA user_version=2");
    assert_int_equal(store_open(((struct place *)*state)->path, NULL, &store, &error), ERROR_CORRUPT);
    run_sql(*state, "UPDATE state SET version=2");
    assert_int_equal(store_open(((struct place *)*state)->path, NULL, &store, &error), ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "format 2"));
}

static void foreign_files(void **state)
{
    const struct place *place = *state;
    struct store *store;
    struct error error;
    assert_int_equal(store_open(place->path, &(struct store_options){.read_only = true}, &store, &error),
                     ERROR_NOT_FOUND);
    run_sql(place, "CREATE TABLE mail(text)");
    assert_int_equal(store_open(place->path, NULL, &store, &error), ERROR_INVALID);
    sample_file_put(place->path,
                    STR("Dear diary, this is a text of some length, and no database at all, as anyone"
                        " can see who looks at it. It goes on for a while to have more than a header."));
    assert_int_equal(store_open(place->path, NULL, &store, &error), ERROR_CORRUPT);
    assert_non_null(strstr(error.text, place->path));
    assert_int_equal(store_open("/nonexistent/folder/log.db", NULL, &store, &error), ERROR_IO);
    assert_int_equal(store_open(place->folder, NULL, &store, &error), ERROR_IO);
    sample_file_put(place->path, STR("")); /* creation cut short */
    char lock[128];
    (void)snprintf(lock, sizeof lock, "%s-lock", place->path);
    (void)unlink(lock);
    store = open_with(place, NULL);
    store_close(store);
}

/* --- readers beside the writer --- */

static void reader_beside(void **state)
{
    const struct place *place = *state;
    struct store_options reading = {.read_only = true};
    struct store *writer =
        open_with(place, &(struct store_options){.snapshots_keep = 1, .wal_bytes = 64 << 10});
    struct error error;
    uint64_t read;
    assert_int_equal(sample_append(writer, 100, 0, &error), 0);
    struct store *reader = open_with(place, &reading);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(sample_append(writer, 100, 0, &error), 0);
        struct store_cursor *cursor;
        struct store_record record;
        uint64_t from = store_first_seq(writer);
        assert_int_equal(store_read(reader, from, &cursor, &error), 0);
        assert_int_equal(store_next(cursor, &record, &error), 1);
        assert_int_equal(sample_append(writer, 10, 0, &error), 0);
        save(writer, 5000);
        while (store_trim(writer, INT64_MAX, &error) > 0)
            ;
        int rc; /* the reader's view stays, although the records are gone by now */
        while ((rc = store_next(cursor, &record, &error)) > 0)
            ;
        assert_int_equal(rc, 0);
        assert_int_equal(record.seq, store_last_seq(writer) - 10);
        store_cursor_free(cursor);
        assert_snapshot(reader, UINT64_MAX, store_last_seq(writer), 5000);
        struct store_verify_result result;
        assert_int_equal(store_verify(reader, NULL, NULL, &result, &error), 0);
    }
    assert_int_equal(sample_read(reader, 1, NULL, &read, &error), ERROR_NOT_FOUND);
    assert_int_equal(store_meta_set(reader, STR("a"), STR("b"), &error), ERROR_DENIED);
    assert_int_equal(store_trim(reader, 0, &error), ERROR_DENIED);
    store_close(reader);
    store_close(writer);
}

/* --- snapshots --- */

static void snapshots(void **state)
{
    struct store *store = open_with(*state, NULL);
    struct error error;
    struct store_snapshot loaded = {0};
    static const size_t sizes[] = {0, 1, 70000, 3 << 20, 9 << 20, 12345};
    assert_int_equal(store_snapshot_load(store, UINT64_MAX, &loaded, &error), ERROR_NOT_FOUND);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(sample_append(store, 10, 0, &error), 0);
        save(store, sizes[i]);
        assert_snapshot(store, UINT64_MAX, 10 * (i + 1), sizes[i]);
        if (i > 0)
            assert_snapshot(store, 10 * (i + 1) - 1, 10 * i, sizes[i - 1]);
    }
    assert_int_equal(store_snapshot_save(store, 60, 0, STR("again"), &error), ERROR_INVALID);
    assert_int_equal(store_snapshot_save(store, 61, 0, STR("future"), &error), ERROR_INVALID);
    assert_int_equal(store_snapshot_load(store, 39, &loaded, &error), ERROR_NOT_FOUND); /* three are kept */
    struct store_stats stats;
    assert_int_equal(store_stats(store, &stats, &error), 0);
    assert_int_equal(stats.snapshots, 3);
    assert_int_equal(stats.snapshot_seq, 60);
    store_close(store);
    store = open_with(*state, NULL);
    assert_snapshot(store, UINT64_MAX, 60, 12345);
    store_close(store);
}

/* Steps between appends: invisible until whole, the view of its own moment, and an abandoned one leaves
 * nothing. */
static void snapshot_in_steps(void **state)
{
    struct store *store = open_with(*state, NULL);
    struct error error;
    struct buf bytes BUF_CLEANUP = {0};
    struct store_snapshot_writer *writer;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sample_append(store, 10, 0, &error), 0);
        uint64_t seq = store_last_seq(store);
        sample_state(&bytes, seq, 5 << 20);
        assert_int_equal(store_snapshot_begin(store, seq, STAMP_NS(seq), buf_str(&bytes), &writer, &error),
                         0);
        int rc, steps = 0;
        while ((rc = store_snapshot_step(writer, &error)) > 0) {
            struct store_stats stats;
            assert_int_equal(sample_append(store, 2, 0, &error), 0);
            assert_true(store_trim(store, 0, &error) >= 0);
            assert_int_equal(store_stats(store, &stats, &error), 0);
            assert_int_equal(stats.snapshots, i == 2 ? 1 : 0);
            if (++steps == 4 && i == 0)
                break;
        }
        store_snapshot_writer_free(writer);
        if (i == 0)
            continue; /* abandoned */
        assert_int_equal(rc, 0);
        assert_true(steps > 5);
        assert_snapshot(store, UINT64_MAX, seq, 5 << 20);
    }
    while (store_trim(store, 0, &error) > 0)
        ;
    store_close(store);
    sqlite3 *db;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open(((struct place *)*state)->path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT (SELECT count(*) FROM snapshot_chunk) - (SELECT sum(chunks) FROM"
                           " snapshot), (SELECT max(length(bytes)) FROM snapshot_chunk)",
                           -1, &statement, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int64(statement, 0), 0);
    assert_true(sqlite3_column_int64(statement, 1) <= 1 << 20);
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close(db);
}

/* --- size --- */

static void trim_bounds_the_size(void **state)
{
    const struct place *place = *state;
    struct store_options options = {.wal_bytes = 256 << 10, .bytes_max = 3 << 20, .snapshots_keep = 2};
    struct store *store = open_with(place, &options);
    struct error error;
    struct store_stats stats;
    uint64_t largest = 0, read;
    for (int i = 0; i < 150; i++) {
        for (int j = 0; j < 2; j++) {
            assert_int_equal(sample_append(store, 200, 0, &error), 0);
            assert_true(store_trim(store, 0, &error) >= 0);
        }
        if (i % 3 == 0)
            save(store, 100000);
        while (store_trim(store, 0, &error) > 0) /* nothing is old enough, but the limit rules */
            ;
        struct stat file, wal;
        char wal_path[128];
        (void)snprintf(wal_path, sizeof wal_path, "%s-wal", place->path);
        assert_int_equal(stat(place->path, &file), 0);
        assert_int_equal(stat(wal_path, &wal), 0);
        uint64_t size = (uint64_t)file.st_size + (uint64_t)wal.st_size;
        largest = size > largest ? size : largest;
    }
    print_message("60,000 records: at most %d KiB\n", (int)(largest >> 10));
    assert_true(largest < (3 << 20) + (1 << 20)); /* what comes in between two snapshots is beyond trimming */
    assert_int_equal(sample_read(store, store_first_seq(store), NULL, &read, &error), 0);
    assert_int_equal(store_stats(store, &stats, &error), 0);
    assert_false(stats.over);
    struct store_verify_result result;
    assert_int_equal(store_verify(store, NULL, NULL, &result, &error), 0);
    store_close(store);
}

/* Records stay for the set time, and never go before a snapshot covers them. */
static void trim_keeps(void **state)
{
    struct store *store = open_with(*state, &(struct store_options){.snapshots_keep = 2, .bytes_max = 1});
    struct error error;
    struct store_stats stats;
    assert_int_equal(sample_append(store, 500, 0, &error), 0);
    assert_int_equal(store_trim(store, INT64_MAX, &error), 0);
    assert_int_equal(store_first_seq(store), 1);
    assert_int_equal(store_stats(store, &stats, &error), 0);
    assert_true(stats.over);
    store_close(store);
    store = open_with(*state, &(struct store_options){.snapshots_keep = 2});
    save(store, 1000);
    assert_int_equal(sample_append(store, 500, 0, &error), 0);
    save(store, 1000);
    while (store_trim(store, STAMP_NS(301), &error) > 0)
        ;
    assert_int_equal(store_first_seq(store), 301);
    while (store_trim(store, INT64_MAX, &error) > 0)
        ;
    assert_int_equal(store_first_seq(store), 501); /* the older snapshot may still be needed */
    assert_int_equal(sample_append(store, 1, 0, &error), 0);
    save(store, 1000);
    struct store_cursor *cursor; /* nor is anything taken from under a reader */
    assert_int_equal(store_read(store, 501, &cursor, &error), 0);
    while (store_trim(store, INT64_MAX, &error) > 0)
        ;
    assert_int_equal(store_first_seq(store), 501);
    store_cursor_free(cursor);
    while (store_trim(store, INT64_MAX, &error) > 0)
        ;
    assert_int_equal(store_first_seq(store), 1001);
    store_close(store);
    store = open_with(*state, NULL);
    assert_int_equal(store_first_seq(store), 1001);
    assert_int_equal(store_last_seq(store), 1001);
    store_close(store);
}

/* --- keys --- */

static void keys(void **state)
{
    struct store *store = open_with(*state, NULL);
    struct error error;
    struct buf value BUF_CLEANUP = {0}, big BUF_CLEANUP = {0};
    sample_state(&big, 1, STORE_META_VALUE_MAX + 1);
    char name[32];
    for (int i = 0; i < STORE_META_KEYS_MAX; i++) {
        (void)snprintf(name, sizeof name, "key-%d", i * 7919 % 1000);
        assert_int_equal(store_meta_set(store, str_from(name), str_from(name), &error), 0);
    }
    assert_int_equal(store_meta_set(store, STR("one more"), STR("x"), &error), ERROR_LIMIT);
    assert_int_equal(store_meta_set(store, STR("key-0"), STR(""), &error), 0);
    assert_int_equal(store_meta_set(store, STR(""), STR("x"), &error), ERROR_LIMIT);
    assert_int_equal(store_meta_set(store, STR("key-0"), buf_str(&big), &error), ERROR_LIMIT);
    assert_int_equal(
        store_meta_set(store, STR("key-919"), (struct str){big.data, STORE_META_VALUE_MAX}, &error), 0);
    store_close(store);
    store = open_with(*state, NULL);
    for (int i = 0; i < STORE_META_KEYS_MAX; i++) {
        (void)snprintf(name, sizeof name, "key-%d", i * 7919 % 1000);
        assert_int_equal(store_meta_get(store, str_from(name), &value, &error), 0);
        if (i == 0)
            assert_int_equal(value.len, 0);
        else if (strcmp(name, "key-919") == 0)
            assert_int_equal(value.len, STORE_META_VALUE_MAX);
        else
            assert_string_equal(value.data, name);
    }
    assert_int_equal(store_meta_get(store, STR("none"), &value, &error), ERROR_NOT_FOUND);
    store_close(store);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(round_trip),
        CASE(a_copy_may_lack_the_newest_part),
        CASE(sizes_of_records),
        CASE(one_owner),
        CASE(killed),
        CASE(newer_version),
        CASE(foreign_files),
        CASE(reader_beside),
        CASE(snapshots),
        CASE(snapshot_in_steps),
        CASE(trim_bounds_the_size),
        CASE(trim_keeps),
        CASE(keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
