/* A suite for every log behind the port of log_store.h: SQLite on a disk that tests can fill, slow down,
 * let fail and cut the power of, and real etcd processes, with a way to them that tests can hold and break. A
 * case that holds for one of them only stands in a test program of its own. */
#include "host/store/etcd/proxy.h"
#include "host/store/fault_vfs.h"

/* The things that a case needs beside a log. */
enum bed_kind {
    BED_PLAIN,
    BED_SMALL,  /* it can be filled */
    BED_GATED,  /* appends can be held, and their answers lost */
    BED_SHARED, /* another process may have it open too */
};

struct bed {
    bool on_etcd, whole; /* whole: the case went well, so nothing of the log is in use any more */
    enum bed_kind kind;
    void (*test)(void **state);
    struct log_store log;
    bool clock_jumps; /* records' stamps do */
    /* SQLite */
    char folder[64], path[96];
    struct gate gate;
    /* etcd */
    struct members *members, small;
    struct proxy proxy;
    struct etcd_options options;
    int64_t filled; /* the revision at which the quota was used up */
    struct etcd_log *etcd;
    struct etcd_lease *lease;
};

static struct members members;

/* --- the beds ----------------------------------------------------------------------------------------- */

/* Takes the lead from whoever has it. */
static int lead(struct bed *bed, struct error *error)
{
    struct etcd_seen seen;
    int rc = etcd_lease_new(&bed->options, &bed->lease, error);
    if (rc == 0)
        rc = etcd_log_refresh(bed->etcd, &seen, error);
    if (rc == 0)
        rc = etcd_log_lead(bed->etcd, bed->lease, STR("bed"), &seen, error);
    return rc;
}

/* Opens the log to write to it. Negative: somebody else has it, and it stays closed. */
static int bed_try_open(struct bed *bed, struct error *error)
{
    if (bed->on_etcd) {
        int rc = etcd_log_open(&bed->options, &bed->etcd, error);
        if (rc < 0)
            return rc;
        bed->log = etcd_log_store(bed->etcd);
        return lead(bed, error);
    }
    struct store *store;
    struct store_options options = {.vfs = bed->kind == BED_SHARED ? NULL : "fault"};
    int rc = store_open(bed->path, &options, &store, error);
    if (rc == 0)
        bed->log = log_store_sqlite(store);
    return rc;
}

static void bed_open(struct bed *bed)
{
    struct error error = {0};
    int rc = bed_try_open(bed, &error);
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

static void set_up_etcd(struct bed *bed)
{
    bed->members = &members;
    if (bed->kind == BED_SMALL) {
        members_start(&bed->small, 1, "16777216");
        bed->small.options.lease_s = members.options.lease_s;
        bed->members = &bed->small;
    }
    members_fresh(bed->members);
    bed->options = bed->members->options;
    if (bed->kind == BED_GATED) {
        proxy_start(&bed->proxy, bed->members->client_ports[0]);
        bed->options.endpoints = bed->proxy.endpoint;
    }
}

static void set_up_sqlite(struct bed *bed)
{
    sample_folder(bed->folder);
    sample_path(bed->path, bed->folder);
    bed->gate = GATE_OPEN;
    fault_format();
    fault.tracing = true;
    fault.gate = bed->kind == BED_GATED ? &bed->gate : NULL;
}

static int set_up(void **state, bool on_etcd, enum bed_kind kind)
{
    struct bed *bed = test_calloc(1, sizeof *bed);
    bed->on_etcd = on_etcd;
    bed->kind = kind;
    if (on_etcd)
        set_up_etcd(bed);
    else
        set_up_sqlite(bed);
    bed_open(bed);
    *state = bed;
    return 0;
}

struct bed_case {
    bool on_etcd;
    enum bed_kind kind;
    void (*test)(void **state);
};

static int set_up_case(void **state)
{
    const struct bed_case *its = *state;
    int rc = set_up(state, its->on_etcd, its->kind);
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
        fault.gate = NULL;
        fault_trace_clear();
        sample_folder_remove(bed->folder);
    }
    if (bed->on_etcd && bed->kind == BED_GATED)
        proxy_stop(&bed->proxy);
    if (bed->on_etcd && bed->kind == BED_SMALL)
        members_stop(&bed->small);
    test_free(bed);
    return 0;
}

/* --- faults ------------------------------------------------------------------------------------------- */

/* Uses up all space but a little. */
static void bed_fill(struct bed *bed)
{
    if (bed->on_etcd)
        bed->filled = members_fill(bed->members);
    else
        fault.room = 2000;
}

static void bed_make_room(struct bed *bed)
{
    if (bed->on_etcd)
        members_make_room(bed->members, bed->filled);
    else
        fault.room = -1;
}

/* Appends are held on their way to the disk, or to etcd. */
static void bed_hold(struct bed *bed)
{
    gate_shut(bed->on_etcd ? &bed->proxy.gate : &bed->gate);
}

/* Waits until an append is held; on etcd also until it has been sent once more. */
static void bed_wait_held(struct bed *bed)
{
    gate_wait(bed->on_etcd ? &bed->proxy.gate : &bed->gate, bed->on_etcd ? 2 : 1);
}

static void bed_release(struct bed *bed)
{
    gate_open(bed->on_etcd ? &bed->proxy.gate : &bed->gate);
}

/* The outcome of the next append is not told: its sync fails, or the connection to etcd ends. */
static void bed_lose_answer(struct bed *bed)
{
    if (bed->on_etcd)
        proxy_lose_answer(&bed->proxy, false);
    else
        fault.sync_at = 0;
}

/* Opens the same log to read it. */
static struct log_store bed_follow(struct bed *bed)
{
    struct etcd_log *etcd;
    struct store *store;
    struct error error;
    int rc = bed->on_etcd ? etcd_log_open(&bed->options, &etcd, &error)
                          : store_open(bed->path, &(struct store_options){.read_only = true}, &store, &error);
    if (rc < 0)
        fail_msg("%s", error.text);
    return bed->on_etcd ? etcd_log_store(etcd) : log_store_sqlite(store);
}

/* --- what the cases do -------------------------------------------------------------------------------- */

/* Renews the lease where there is one: no thread does that here. */
static void bed_live(struct bed *bed)
{
    struct error error;
    if (bed->lease && etcd_lease_renew(bed->lease, &error) < 0)
        fail_msg("%s", error.text);
}

static int64_t stamp_of(const struct bed *bed, uint64_t seq)
{
    int64_t stamp_ns = STAMP_NS(seq);
    if (!bed->clock_jumps)
        return stamp_ns;
    return seq % 50 < 20 ? stamp_ns - 3600 * NS_PER_SECOND : seq % 7 == 0 ? -stamp_ns : stamp_ns;
}

/* Asserts nothing, so that any thread may append. */
static int append_now(struct bed *bed, size_t count, struct error *error)
{
    enum { MOST = 512 };
    struct store_record records[MOST] = {0};
    struct buf bytes[MOST] = {0};
    uint64_t last = bed->log.ends(bed->log.context).last;
    CHECK(count <= MOST);
    for (size_t i = 0; i < count; i++) {
        uint64_t seq = last + 1 + i;
        records[i] = (struct store_record){seq, stamp_of(bed, seq), sample_bytes(&bytes[i], seq, 0)};
    }
    int rc = bed->log.append(bed->log.context, records, count, error);
    for (size_t i = 0; i < count; i++)
        buf_done(&bytes[i]);
    return rc;
}

static int append(struct bed *bed, size_t count, struct error *error)
{
    bed_live(bed);
    return append_now(bed, count, error);
}

static void append_well(struct bed *bed, size_t count)
{
    struct error error;
    if (append(bed, count, &error) < 0)
        fail_msg("%s", error.text);
}

static void assert_reads(struct bed *bed, uint64_t from, uint64_t last)
{
    struct buf want BUF_CLEANUP = {0};
    struct error error;
    struct store_record record;
    const struct log_store *log = &bed->log;
    void *cursor;
    int rc = log->read(log->context, from, &cursor, &error);
    if (rc < 0)
        fail_msg("%s", error.text);
    uint64_t seq = from;
    for (; (rc = log->next(cursor, &record, &error)) > 0; seq++) {
        struct str bytes = sample_bytes(&want, seq, 0);
        assert_int_equal(record.seq, seq);
        assert_int_equal(record.stamp_ns, stamp_of(bed, seq));
        assert_true(str_equal(record.bytes, bytes));
    }
    if (rc < 0)
        fail_msg("%s", error.text);
    assert_int_equal(seq, last + 1);
    log->cursor_free(cursor);
}

static int save_snapshot_now(struct bed *bed, uint64_t seq, size_t len, struct error *error)
{
    struct buf state BUF_CLEANUP = {0};
    void *writer;
    int rc = bed->log.snapshot_begin(bed->log.context, seq, stamp_of(bed, seq),
                                     sample_state(&state, seq, len), &writer, error);
    if (rc < 0)
        return rc;
    do
        rc = bed->log.snapshot_step(writer, error);
    while (rc > 0);
    bed->log.snapshot_free(writer);
    return rc;
}

static int save_snapshot(struct bed *bed, uint64_t seq, size_t len, struct error *error)
{
    bed_live(bed);
    return save_snapshot_now(bed, seq, len, error);
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
    assert_int_equal(loaded.stamp_ns, stamp_of(bed, seq));
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
    assert_reads(bed, 1, 0);
    assert_int_equal(bed->log.append(bed->log.context, NULL, 0, &error), 0);
    for (int i = 0; i < 40; i++) {
        size_t count = 1 + rng_below(&rng, 60);
        append_well(bed, count);
        last += count;
        struct log_ends ends = bed->log.ends(bed->log.context);
        assert_int_equal(ends.last, last);
        assert_int_equal(ends.base, 0);
        assert_reads(bed, 1 + rng_below(&rng, last + 1), last);
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
    assert_reads(bed, 301, 600);
    assert_reads(bed, 333, 600);
    assert_loads(bed, UINT64_MAX, 500, 1000);
    append_well(bed, 5);
    assert_reads(bed, 301, 605);
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
        assert_reads(bed, 1, last);
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
    assert_int_equal(set_up(&kept, !bed->on_etcd, BED_PLAIN), 0);
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
    assert_reads(other, 211, 630);
    assert_loads(other, UINT64_MAX, 210, 70000);
    append_well(other, 10);
    assert_reads(other, 211, 640);
    assert_clean(other, 430, 1);
    other->whole = true;
    tear_down(&kept);
}

/* --- cases with faults -------------------------------------------------------------------------------- */

/* Appends and snapshots are refused while there is no space, reading goes on, and nothing has changed. */
static void full(void **state)
{
    struct bed *bed = *state;
    struct error error;
    struct store_stats stats;
    append_well(bed, 40);
    save_well(bed, 30, 5000);
    for (int round = 0; round < 2; round++) {
        uint64_t last = bed->log.ends(bed->log.context).last;
        struct log_ends before = bed->log.ends(bed->log.context);
        bed_fill(bed);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(append(bed, 50, &error), ERROR_NO_SPACE);
            assert_non_null(strstr(error.text, bed->on_etcd ? "NOSPACE" : "full"));
            assert_int_equal(save_snapshot(bed, last, 20000, &error), ERROR_NO_SPACE);
            struct log_ends ends = bed->log.ends(bed->log.context);
            assert_true(ends.last == before.last && ends.last_crc == before.last_crc);
            assert_reads(bed, 1, last);
            assert_loads(bed, UINT64_MAX, round == 0 ? 30 : 40, round == 0 ? 5000 : 20000);
        }
        assert_int_equal(bed->log.stats(bed->log.context, &stats, &error), 0);
        assert_true(stats.full_errors >= 2);
        bed_make_room(bed);
        append_well(bed, 50);
        save_well(bed, last, 20000);
        assert_reads(bed, 1, last + 50);
    }
    bed_reopen(bed);
    assert_reads(bed, 1, 140);
    assert_clean(bed, 140, 3);
}

struct held_append {
    struct bed *bed;
    atomic_bool answered;
    int rc;
    struct error error;
};

static void *append_held(void *context)
{
    struct held_append *held = context;
    held->rc = append_now(held->bed, 7, &held->error);
    atomic_store(&held->answered, true);
    return NULL;
}

/* An append is not answered before it is durable; then it is there once, however often it was tried. */
static void slow(void **state)
{
    struct bed *bed = *state;
    for (uint64_t round = 1; round <= 3; round++) {
        struct held_append held = {.bed = bed};
        pthread_t thread;
        append_well(bed, 3);
        bed_live(bed);
        bed_hold(bed);
        assert_int_equal(pthread_create(&thread, NULL, append_held, &held), 0);
        bed_wait_held(bed);
        assert_false(atomic_load(&held.answered));
        bed_release(bed);
        pthread_join(thread, NULL);
        if (held.rc < 0)
            fail_msg("%s", held.error.text);
        assert_int_equal(bed->log.ends(bed->log.context).last, 10 * round);
        assert_reads(bed, 1, 10 * round);
    }
    bed_reopen(bed);
    assert_clean(bed, 30, 0);
}

/* The outcome of an append stays unknown. The append is there once, or it was said to have failed: then
 * nothing is appended until the log is opened anew, and it is there once or not at all. */
static void lost_answer(void **state)
{
    struct bed *bed = *state;
    struct error error;
    uint64_t last = 0;
    for (int round = 0; round < 4; round++) {
        append_well(bed, 3);
        last += 3;
        bed_lose_answer(bed);
        int rc = append(bed, 5, &error);
        assert_int_equal(rc, bed->on_etcd ? 0 : ERROR_IO);
        assert_int_equal(bed->log.ends(bed->log.context).last, rc == 0 ? last + 5 : last);
        if (rc < 0)
            assert_int_equal(append(bed, 1, &error), ERROR_IO);
        bed_reopen(bed);
        uint64_t there = bed->log.ends(bed->log.context).last;
        assert_true(there == last + 5 || (rc < 0 && there == last));
        last = there;
        assert_reads(bed, 1, last);
    }
    append_well(bed, 2);
    assert_reads(bed, 1, last + 2);
    assert_clean(bed, last + 2, 0);
}

/* Two processes believe that they write the log: one of them does, and the other's appends change nothing. */
static void two_writers(void **state)
{
    struct bed *bed = *state, *rival = test_calloc(1, sizeof *rival);
    struct error error;
    append_well(bed, 5);
    *rival = *bed;
    rival->lease = NULL;
    int rc = bed_try_open(rival, &error);
    struct bed *writer = bed;
    if (rc < 0) {
        assert_int_equal(rc, ERROR_CONFLICT);
    } else {
        writer = rival;
        struct log_ends before = bed->log.ends(bed->log.context);
        for (int i = 0; i < 2; i++) { /* its lease has been revoked, too */
            assert_int_equal(append_now(bed, 4, &error), ERROR_FENCED);
            assert_int_equal(save_snapshot_now(bed, 5, 100, &error), ERROR_FENCED);
            assert_int_equal(bed->log.trim(bed->log.context, INT64_MAX, &error), ERROR_FENCED);
        }
        assert_int_equal(bed->log.ends(bed->log.context).last, before.last);
    }
    append_well(writer, 3);
    assert_reads(writer, 1, 8);
    if (writer == rival) {
        assert_int_equal(append_now(bed, 4, &error), ERROR_FENCED);
        bed_close(rival);
    }
    bed_reopen(bed); /* leads after the rival */
    assert_reads(bed, 1, 8);
    append_well(bed, 2);
    assert_reads(bed, 1, 10);
    assert_clean(bed, 10, 0);
    test_free(rival);
}

/* The log is trimmed, and etcd compacted, under a reader that is slow: it reads all that was there when it
 * began, or is told that it came too late, and goes on from the snapshot. */
static void trimmed_under_a_slow_reader(void **state)
{
    struct bed *bed = *state;
    struct store_record record;
    struct store_snapshot snapshot = {0};
    struct buf want BUF_CLEANUP = {0};
    struct error error;
    void *cursor;
    for (int i = 0; i < 40; i++)
        append_well(bed, 20);
    struct log_store reader = bed_follow(bed);
    assert_int_equal(reader.read(reader.context, 1, &cursor, &error), 0);
    assert_int_equal(reader.next(cursor, &record, &error), 1);
    save_well(bed, 700, 1000);
    trim_all(bed, INT64_MAX);
    assert_int_equal(bed->log.ends(bed->log.context).base, 700);
    append_well(bed, 10);
    int rc;
    uint64_t seq = 1;
    while ((rc = reader.next(cursor, &record, &error)) > 0) {
        assert_int_equal(record.seq, ++seq);
        assert_true(str_equal(record.bytes, sample_bytes(&want, seq, 0)));
    }
    if (rc < 0)
        assert_int_equal(rc, ERROR_NOT_FOUND);
    else
        assert_int_equal(seq, 800);
    reader.cursor_free(cursor);
    reader.close(reader.context);
    reader = bed_follow(bed);
    assert_int_equal(reader.read(reader.context, 1, &cursor, &error), ERROR_NOT_FOUND);
    assert_int_equal(reader.snapshot_load(reader.context, UINT64_MAX, &snapshot, &error), 0);
    assert_int_equal(snapshot.seq, 700);
    buf_done(&snapshot.bytes);
    assert_int_equal(reader.read(reader.context, 701, &cursor, &error), 0);
    for (seq = 701; (rc = reader.next(cursor, &record, &error)) > 0; seq++)
        assert_int_equal(record.seq, seq);
    assert_int_equal(rc, 0);
    assert_int_equal(seq, 811);
    reader.cursor_free(cursor);
    reader.close(reader.context);
}

/* Trims, and returns the record behind which the log begins: the one before the first that is young enough,
 * or where groups go whole the last of the group before. */
static uint64_t trim_to(struct bed *bed, int64_t keep_after_ns, uint64_t young)
{
    trim_all(bed, keep_after_ns);
    uint64_t base = bed->log.ends(bed->log.context).base;
    assert_true(base < young && base + 10 >= young);
    return base;
}

/* The clock is set back, and forward again: stamps come back as they were given, numbers alone are the order,
 * and trimming stops at the first record that is young enough, though older ones stand behind it. */
static void clock_jumps(void **state)
{
    struct bed *bed = *state;
    bed->clock_jumps = true;
    for (int i = 0; i < 30; i++)
        append_well(bed, 10);
    save_well(bed, 205, 1000);
    save_well(bed, 249, 1000);
    save_well(bed, 260, 1000);
    assert_true(stamp_of(bed, 205) < stamp_of(bed, 249) && stamp_of(bed, 260) < stamp_of(bed, 249));
    assert_reads(bed, 1, 300);
    (void)trim_to(bed, STAMP_NS(40), 40);
    uint64_t base = trim_to(bed, STAMP_NS(160), 170); /* an hour was lost before that one */
    bed_reopen(bed);
    assert_int_equal(bed->log.ends(bed->log.context).base, base);
    assert_reads(bed, base + 1, 300);
    assert_loads(bed, UINT64_MAX, 260, 1000);
    assert_loads(bed, 259, 249, 1000);
    assert_loads(bed, 248, 205, 1000);
    append_well(bed, 10);
    assert_reads(bed, base + 1, 310);
    assert_clean(bed, 310 - base, 3);
}

int main(void)
{
#define CASE(kind, test)                                                                                     \
    {"sqlite: " #test, run_case, set_up_case, tear_down, &(struct bed_case){false, kind, test}},             \
    {                                                                                                        \
        "etcd: " #test, run_case, set_up_case, tear_down, &(struct bed_case)                                 \
        {                                                                                                    \
            true, kind, test                                                                                 \
        }                                                                                                    \
    }
    const struct CMUnitTest tests[] = {
        CASE(BED_PLAIN, records_come_back),
        CASE(BED_PLAIN, records_of_any_size),
        CASE(BED_PLAIN, snapshots_come_back),
        CASE(BED_PLAIN, half_a_snapshot_is_none),
        CASE(BED_PLAIN, acknowledged_survives),
        CASE(BED_PLAIN, trimmed_behind_the_oldest_snapshot),
        CASE(BED_PLAIN, copies_are_the_same),
        CASE(BED_SMALL, full),
        CASE(BED_GATED, slow),
        CASE(BED_GATED, lost_answer),
        CASE(BED_PLAIN, two_writers),
        CASE(BED_SHARED, trimmed_under_a_slow_reader),
        CASE(BED_PLAIN, clock_jumps),
    };
    members_need();
    fault_register();
    members_start(&members, 1, NULL);
    members.options.lease_s = 120; /* no case is about leases */
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    members_stop(&members);
    return failed;
}
