/* One suite for every log behind the port of log_store.h: SQLite on a disk that tests can fill and cut the
 * power of, and real etcd processes. A case that holds for one of them only stands in a test program of its
 * own. */
#include "host/store/etcd/members.h"
#include "host/store/fault_vfs.h"

struct bed {
    bool on_etcd, whole; /* whole: the case went well, so nothing of the log is in use any more */
    void (*test)(void **state);
    struct log_store log;
    /* SQLite */
    char folder[64], path[96];
    /* etcd */
    struct members *members;
    struct etcd_log *etcd;
    struct etcd_lease *lease;
};

static struct members members;

/* --- the beds ----------------------------------------------------------------------------------------- */

static void bed_open(struct bed *bed)
{
    struct error error = {0};
    int rc;
    if (bed->on_etcd) {
        rc = etcd_log_open(&bed->members->options, &bed->etcd, &error);
        if (rc == 0)
            rc = etcd_lease_new(&bed->members->options, &bed->lease, &error);
        if (rc == 0)
            rc = etcd_log_lead(bed->etcd, bed->lease, STR("bed"), NULL, &error);
        if (rc == 1)
            bed->log = etcd_log_store(bed->etcd);
    } else {
        struct store *store;
        struct store_options options = {.vfs = "fault"};
        rc = store_open(bed->path, &options, &store, &error);
        if (rc == 0)
            bed->log = log_store_sqlite(store);
    }
    if (rc < 0)
        fail_msg("%s", error.text);
    assert_int_equal(rc, bed->on_etcd);
}

static void bed_close(struct bed *bed)
{
    bed->log.close(bed->log.context);
    etcd_lease_end(bed->lease);
    bed->lease = NULL;
}

static void bed_reopen(struct bed *bed)
{
    bed_close(bed);
    bed_open(bed);
}

/* The process dies, and so does the computer that the log is on; what was acknowledged has to be there. */
static void bed_crash(struct bed *bed, uint64_t seed)
{
    bed_close(bed);
    if (bed->on_etcd) {
        for (int i = 0; i < bed->members->count; i++)
            members_kill(bed->members, i);
        for (int i = 0; i < bed->members->count; i++)
            members_start_one(bed->members, i);
        members_wait(bed->members);
    } else {
        fault_power_loss(fault.trace.len, seed);
    }
    bed_open(bed);
}

static int set_up(void **state, bool on_etcd)
{
    struct bed *bed = test_calloc(1, sizeof *bed);
    bed->on_etcd = on_etcd;
    bed->members = &members;
    if (on_etcd) {
        members_fresh(&members);
    } else {
        sample_folder(bed->folder);
        sample_path(bed->path, bed->folder);
        fault_format();
        fault.tracing = true;
    }
    bed_open(bed);
    *state = bed;
    return 0;
}

struct bed_case {
    bool on_etcd;
    void (*test)(void **state);
};

static int set_up_case(void **state)
{
    const struct bed_case *its = *state;
    int rc = set_up(state, its->on_etcd);
    ((struct bed *)*state)->test = its->test;
    return rc;
}

static void run_case(void **state)
{
    struct bed *bed = *state;
    bed->test(state);
    bed->whole = true;
}

static int tear_down(void **state)
{
    struct bed *bed = *state;
    if (!bed->whole)
        return 0; /* a cursor may be open */
    bed_close(bed);
    if (!bed->on_etcd) {
        fault.tracing = false;
        fault_trace_clear();
        sample_folder_remove(bed->folder);
    }
    test_free(bed);
    return 0;
}

/* --- what the cases do -------------------------------------------------------------------------------- */

/* Renews the lease where there is one: no thread does that here. */
static void bed_live(struct bed *bed)
{
    struct error error;
    if (bed->lease && etcd_lease_renew(bed->lease, &error) < 0)
        fail_msg("%s", error.text);
}

static int append(struct bed *bed, size_t count, struct error *error)
{
    enum { MOST = 512 };
    struct store_record records[MOST] = {0};
    struct buf bytes[MOST] = {0};
    uint64_t last = bed->log.ends(bed->log.context).last;
    CHECK(count <= MOST);
    bed_live(bed);
    for (size_t i = 0; i < count; i++) {
        uint64_t seq = last + 1 + i;
        records[i] = (struct store_record){seq, STAMP_NS(seq), sample_bytes(&bytes[i], seq, 0)};
    }
    int rc = bed->log.append(bed->log.context, records, count, error);
    for (size_t i = 0; i < count; i++)
        buf_done(&bytes[i]);
    return rc;
}

static void append_well(struct bed *bed, size_t count)
{
    struct error error;
    if (append(bed, count, &error) < 0)
        fail_msg("%s", error.text);
}

static void assert_reads(struct log_store *log, uint64_t from, uint64_t last)
{
    struct buf want BUF_CLEANUP = {0};
    struct error error;
    struct store_record record;
    void *cursor;
    int rc = log->read(log->context, from, &cursor, &error);
    if (rc < 0)
        fail_msg("%s", error.text);
    uint64_t seq = from;
    for (; (rc = log->next(cursor, &record, &error)) > 0; seq++) {
        struct str bytes = sample_bytes(&want, seq, 0);
        assert_int_equal(record.seq, seq);
        assert_int_equal(record.stamp_ns, STAMP_NS(seq));
        assert_true(str_equal(record.bytes, bytes));
    }
    if (rc < 0)
        fail_msg("%s", error.text);
    assert_int_equal(seq, last + 1);
    log->cursor_free(cursor);
}

static int save_snapshot(struct bed *bed, uint64_t seq, size_t len, struct error *error)
{
    struct buf state BUF_CLEANUP = {0};
    void *writer;
    int rc = bed->log.snapshot_begin(bed->log.context, seq, STAMP_NS(seq), sample_state(&state, seq, len),
                                     &writer, error);
    if (rc < 0)
        return rc;
    do {
        bed_live(bed);
        rc = bed->log.snapshot_step(writer, error);
    } while (rc > 0);
    bed->log.snapshot_free(writer);
    return rc;
}

static void save_well(struct bed *bed, uint64_t seq, size_t len)
{
    struct error error;
    if (save_snapshot(bed, seq, len, &error) < 0)
        fail_msg("%s", error.text);
}

static void assert_loads(struct bed *bed, uint64_t most, uint64_t seq, size_t len)
{
    struct store_snapshot loaded = {0};
    struct buf want BUF_CLEANUP = {0};
    struct error error;
    if (bed->log.snapshot_load(bed->log.context, most, &loaded, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(loaded.seq, seq);
    assert_int_equal(loaded.stamp_ns, STAMP_NS(seq));
    assert_int_equal(loaded.skipped, 0);
    assert_true(str_equal(buf_str(&loaded.bytes), sample_state(&want, seq, len)));
    buf_done(&loaded.bytes);
}

static void trim_all(struct bed *bed, int64_t keep_after_ns)
{
    struct error error;
    int rc;
    do {
        bed_live(bed);
        rc = bed->log.trim(bed->log.context, keep_after_ns, &error);
    } while (rc > 0);
    if (rc < 0)
        fail_msg("%s", error.text);
}

static void assert_clean(struct bed *bed, uint64_t records, uint64_t snapshots)
{
    struct store_verify_result result;
    struct error error;
    if (bed->log.verify(bed->log.context, NULL, NULL, &result, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(result.records, records);
    assert_int_equal(result.snapshots, snapshots);
    assert_int_equal(result.problems, 0);
}

/* --- the cases ---------------------------------------------------------------------------------------- */

static void records_come_back(void **state)
{
    struct bed *bed = *state;
    struct rng rng;
    struct error error;
    uint64_t last = 0;
    rng_seed(&rng, 11);
    assert_int_equal(bed->log.ends(bed->log.context).last, 0);
    assert_reads(&bed->log, 1, 0);
    assert_int_equal(bed->log.append(bed->log.context, NULL, 0, &error), 0);
    for (int i = 0; i < 40; i++) {
        size_t count = 1 + rng_below(&rng, 60);
        append_well(bed, count);
        last += count;
        struct log_ends ends = bed->log.ends(bed->log.context);
        assert_int_equal(ends.last, last);
        assert_int_equal(ends.base, 0);
        assert_reads(&bed->log, 1 + rng_below(&rng, last + 1), last);
        if (rng_below(&rng, 8) == 0)
            bed_reopen(bed);
    }
    void *cursor;
    assert_int_equal(bed->log.read(bed->log.context, 0, &cursor, &error), ERROR_NOT_FOUND);
    assert_int_equal(bed->log.read(bed->log.context, last + 2, &cursor, &error), ERROR_NOT_FOUND);
    assert_clean(bed, last, 0);
}

static void records_of_any_size(void **state)
{
    struct bed *bed = *state;
    struct error error;
    struct buf big BUF_CLEANUP = {0};
    sample_state(&big, 3, STORE_RECORD_BYTES_MAX + 1);
    struct store_record records[] = {
        {1, INT64_MIN, {NULL, 0}}, {2, INT64_MAX, STR("\0\0")}, {3, -1, {big.data, STORE_RECORD_BYTES_MAX}}};
    bed_live(bed);
    assert_int_equal(bed->log.append(bed->log.context, records, 3, &error), 0);
    struct store_record beyond[] = {{4, 0, STR("small")}, {5, 0, buf_str(&big)}};
    assert_int_equal(bed->log.append(bed->log.context, beyond, 2, &error), ERROR_LIMIT);
    assert_int_equal(bed->log.ends(bed->log.context).last, 3);
    bed_live(bed);
    assert_int_equal(bed->log.append(bed->log.context, beyond, 1, &error), 0);
    bed_reopen(bed);
    void *cursor;
    struct store_record record;
    if (bed->log.read(bed->log.context, 1, &cursor, &error) < 0)
        fail_msg("%s", error.text);
    for (int i = 0; i < 4; i++) {
        const struct store_record *want = i < 3 ? &records[i] : &beyond[0];
        assert_int_equal(bed->log.next(cursor, &record, &error), 1);
        assert_int_equal(record.stamp_ns, want->stamp_ns);
        assert_true(str_equal(record.bytes, want->bytes));
    }
    assert_int_equal(bed->log.next(cursor, &record, &error), 0);
    bed->log.cursor_free(cursor);
    assert_clean(bed, 4, 0);
}

static void snapshots_come_back(void **state)
{
    struct bed *bed = *state;
    struct error error;
    struct store_snapshot none;
    append_well(bed, 100);
    assert_int_equal(bed->log.snapshot_load(bed->log.context, UINT64_MAX, &none, &error), ERROR_NOT_FOUND);
    save_well(bed, 10, 0);
    assert_loads(bed, UINT64_MAX, 10, 0);
    save_well(bed, 55, 3 << 20);
    assert_int_equal(save_snapshot(bed, 55, 10, &error), ERROR_INVALID);
    assert_int_equal(save_snapshot(bed, 30, 10, &error), ERROR_INVALID);
    assert_int_equal(save_snapshot(bed, 101, 10, &error), ERROR_INVALID);
    save_well(bed, 100, 200000);
    assert_loads(bed, 54, 10, 0);
    assert_loads(bed, 99, 55, 3 << 20);
    bed_reopen(bed);
    assert_loads(bed, UINT64_MAX, 100, 200000);
    append_well(bed, 10);
    save_well(bed, 105, 500); /* of three that are kept the oldest goes */
    struct store_stats stats;
    assert_int_equal(bed->log.stats(bed->log.context, &stats, &error), 0);
    assert_int_equal(stats.snapshots, 3);
    assert_int_equal(stats.snapshot_seq, 105);
    assert_int_equal(bed->log.snapshot_load(bed->log.context, 54, &none, &error), ERROR_NOT_FOUND);
    assert_clean(bed, 110, 3);
}

static void half_a_snapshot_is_none(void **state)
{
    struct bed *bed = *state;
    struct error error;
    struct store_snapshot none;
    struct buf bytes BUF_CLEANUP = {0};
    void *writer;
    append_well(bed, 50);
    sample_state(&bytes, 50, 4 << 20);
    assert_int_equal(
        bed->log.snapshot_begin(bed->log.context, 50, STAMP_NS(50), buf_str(&bytes), &writer, &error), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(bed->log.snapshot_step(writer, &error), 1);
    append_well(bed, 1); /* the log goes on meanwhile */
    bed->log.snapshot_free(writer);
    assert_int_equal(bed->log.snapshot_load(bed->log.context, UINT64_MAX, &none, &error), ERROR_NOT_FOUND);
    bed_reopen(bed);
    assert_int_equal(bed->log.snapshot_load(bed->log.context, UINT64_MAX, &none, &error), ERROR_NOT_FOUND);
    trim_all(bed, 0);
    save_well(bed, 50, 4 << 20);
    assert_loads(bed, UINT64_MAX, 50, 4 << 20);
    assert_clean(bed, 51, 1);
}

static void trimmed_behind_the_oldest_snapshot(void **state)
{
    struct bed *bed = *state;
    struct error error;
    for (int i = 0; i < 30; i++)
        append_well(bed, 20);
    trim_all(bed, INT64_MAX);
    assert_int_equal(bed->log.ends(bed->log.context).base, 0); /* nothing else has the records' state */
    save_well(bed, 300, 1000);
    save_well(bed, 500, 1000);
    trim_all(bed, STAMP_NS(101));
    struct log_ends ends = bed->log.ends(bed->log.context);
    assert_int_equal(ends.base, 100); /* younger records are kept */
    trim_all(bed, INT64_MAX);
    ends = bed->log.ends(bed->log.context);
    assert_int_equal(ends.base, 300);
    bed_reopen(bed);
    void *cursor;
    assert_int_equal(bed->log.read(bed->log.context, 300, &cursor, &error), ERROR_NOT_FOUND);
    assert_reads(&bed->log, 301, 600);
    assert_reads(&bed->log, 333, 600);
    assert_loads(bed, UINT64_MAX, 500, 1000);
    append_well(bed, 5);
    assert_reads(&bed->log, 301, 605);
    assert_clean(bed, 305, 2);
}

static void acknowledged_survives(void **state)
{
    struct bed *bed = *state;
    struct rng rng;
    rng_seed(&rng, 3);
    uint64_t last = 0;
    for (uint64_t round = 1; round <= 4; round++) {
        for (int i = 0; i < 5; i++) {
            size_t count = 1 + rng_below(&rng, 30);
            append_well(bed, count);
            last += count;
        }
        save_well(bed, last, 100000);
        append_well(bed, 3);
        last += 3;
        bed_crash(bed, round);
        assert_int_equal(bed->log.ends(bed->log.context).last, last);
        assert_reads(&bed->log, 1, last);
        assert_loads(bed, UINT64_MAX, last - 3, 100000);
    }
}

/* Lets a log be copied from one kind to the other and back, after it was trimmed. */
static void copies_are_the_same(void **state)
{
    struct bed *bed = *state, *other;
    struct error error;
    struct log_ends ends;
    void *kept;
    for (int i = 0; i < 20; i++)
        append_well(bed, 30);
    save_well(bed, 210, 70000);
    trim_all(bed, INT64_MAX);
    append_well(bed, 30);
    assert_int_equal(set_up(&kept, !bed->on_etcd), 0);
    other = kept;
    bed_live(other);
    if (log_store_copy(&bed->log, &other->log, &ends, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(ends.base, 210);
    assert_int_equal(ends.last, 630);
    struct log_ends there = other->log.ends(other->log.context);
    assert_int_equal(there.base, ends.base);
    assert_int_equal(there.last, ends.last);
    assert_int_equal(there.last_crc, ends.last_crc); /* of all records before it, too */
    assert_int_equal(log_store_copy(&bed->log, &other->log, &ends, &error), ERROR_EXISTS);
    bed_reopen(other);
    assert_reads(&other->log, 211, 630);
    assert_loads(other, UINT64_MAX, 210, 70000);
    append_well(other, 10);
    assert_reads(&other->log, 211, 640);
    assert_clean(other, 430, 1);
    other->whole = true;
    tear_down(&kept);
}

int main(void)
{
#define CASE(test)                                                                                           \
    {"sqlite: " #test, run_case, set_up_case, tear_down, &(struct bed_case){false, test}},                   \
    {                                                                                                        \
        "etcd: " #test, run_case, set_up_case, tear_down, &(struct bed_case)                                 \
        {                                                                                                    \
            true, test                                                                                       \
        }                                                                                                    \
    }
    const struct CMUnitTest tests[] = {
        CASE(records_come_back),       CASE(records_of_any_size),   CASE(snapshots_come_back),
        CASE(half_a_snapshot_is_none), CASE(acknowledged_survives), CASE(trimmed_behind_the_oldest_snapshot),
        CASE(copies_are_the_same),
    };
    members_need();
    fault_register();
    members_start(&members, 1, NULL);
    members.options.lease_s = 120; /* no case is about time */
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    members_stop(&members);
    return failed;
}
