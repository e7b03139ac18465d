/* Power loss at every point of several histories: what is reopened is whole, holds every acknowledged record
 * and at most the group that was under way, and can be gone on with (and lose power again while it recovers).
 * */
#include "host/store/sample.h"
#include "host/store/fault_vfs.h"

enum { SEQ_MAX = 4096, HISTORIES = 4, LOCK_BYTES = 128 };

/* Records that had been promised when the trace had `ops` operations. */
struct promise {
    size_t ops;
    uint64_t acked, under_way; /* last record acknowledged; last one of the group being appended */
    uint64_t snapshot;
    int64_t meta, meta_under_way;
    char lock[LOCK_BYTES]; /* FILE-lock's content */
    size_t lock_len;
};

static struct {
    char folder[64], path[96], lock_path[128];
    struct store *store;
    struct rng rng;
    VEC(struct promise) promises;
    struct promise now;
    uint8_t salts[SEQ_MAX];
} test;

static const struct store_options options = {.vfs = "fault", .wal_bytes = 24 * 4096, .snapshots_keep = 2};

static void promise(void)
{
    struct buf lock BUF_CLEANUP = {0};
    sample_file_get(test.lock_path, &lock);
    CHECK(lock.len <= LOCK_BYTES);
    if (lock.len > 0)
        memcpy(test.now.lock, lock.data, lock.len);
    test.now.lock_len = lock.len;
    test.now.ops = fault.trace.len;
    vec_push(&test.promises, test.now);
}

static void append(uint8_t salt)
{
    struct error error;
    size_t count = 1 + rng_below(&test.rng, 6);
    test.now.acked = store_last_seq(test.store);
    test.now.under_way = test.now.acked + count;
    CHECK(test.now.under_way < SEQ_MAX);
    for (uint64_t seq = test.now.acked + 1; seq <= test.now.under_way; seq++)
        test.salts[seq] = salt;
    promise();
    assert_int_equal(sample_append(test.store, count, salt, &error), 0);
    test.now.acked = test.now.under_way;
    promise();
}

static void set_meta(void)
{
    struct error error;
    char text[32];
    test.now.meta_under_way = test.now.meta + 1;
    promise();
    int len = snprintf(text, sizeof text, "%d", (int)test.now.meta_under_way);
    assert_int_equal(store_meta_set(test.store, STR("epoch"), (struct str){text, (size_t)len}, &error), 0);
    test.now.meta = test.now.meta_under_way;
    promise();
}

static void snapshot(void)
{
    struct buf bytes BUF_CLEANUP = {0};
    uint64_t seq = store_last_seq(test.store);
    struct store_stats stats;
    assert_int_equal(store_stats(test.store, &stats, NULL), 0);
    if (seq == stats.snapshot_seq)
        return;
    struct str state = sample_state(&bytes, seq, 3000 + rng_below(&test.rng, 30000));
    assert_int_equal(store_snapshot_save(test.store, seq, STAMP_NS(seq), state, NULL), 0);
    test.now.snapshot = seq;
    promise();
}

static void work(size_t steps, uint8_t salt)
{
    struct error error;
    for (size_t i = 0; i < steps; i++) {
        switch (rng_below(&test.rng, 12)) {
        case 0:
            set_meta();
            break;
        case 1:
            snapshot();
            break;
        case 2:
        case 3:
            assert_true(store_trim(test.store, STAMP_NS(rng_below(&test.rng, store_last_seq(test.store) + 1)),
                                   &error) >= 0);
            break;
        case 4:
            store_close(test.store);
            assert_int_equal(store_open(test.path, &options, &test.store, &error), 0);
            break;
        default:
            append(salt);
        }
    }
}

/* The newest promise that had been given when the trace had `ops` operations. */
static const struct promise *promise_at(size_t ops)
{
    const struct promise *found = &test.promises.items[0];
    for (size_t i = 0; i < test.promises.len && test.promises.items[i].ops <= ops; i++)
        found = &test.promises.items[i];
    return found;
}

static void assert_snapshot(const struct promise *held)
{
    struct store_snapshot loaded = {0};
    struct buf want BUF_CLEANUP = {0};
    struct error error;
    int rc = store_snapshot_load(test.store, UINT64_MAX, &loaded, &error);
    if (rc == ERROR_NOT_FOUND) {
        assert_int_equal(held->snapshot, 0);
        assert_int_equal(store_first_seq(test.store), 1);
        return;
    }
    assert_int_equal(rc, 0);
    assert_int_equal(loaded.skipped, 0);
    assert_true(loaded.seq >= held->snapshot && loaded.seq + 1 >= store_first_seq(test.store));
    sample_state(&want, loaded.seq, loaded.bytes.len);
    assert_memory_equal(loaded.bytes.data, want.data, want.len);
    buf_done(&loaded.bytes);
}

static void assert_meta(const struct promise *held)
{
    struct buf value BUF_CLEANUP = {0};
    int rc = store_meta_get(test.store, STR("epoch"), &value, NULL);
    assert_true(rc == 0 || (rc == ERROR_NOT_FOUND && held->meta == 0));
    int64_t number = rc == 0 ? strtoll(value.data, NULL, 10) : 0;
    assert_true(number == held->meta || number == held->meta_under_way);
}

/* Restarts the machine after the first `ops` operations of the trace and opens the store. */
static void restart(size_t ops, uint64_t seed)
{
    const struct promise *held = promise_at(ops);
    struct error error;
    fault_power_loss(ops, seed);
    size_t lock_len = held->lock_len; /* never synced, so it may also be torn or absent */
    if (seed % 5 == 0)
        (void)unlink(test.lock_path);
    else
        sample_file_put(test.lock_path, (struct str){held->lock, seed % 7 == 0 ? lock_len / 2 : lock_len});
    int rc = store_open(test.path, &options, &test.store, &error);
    if (rc < 0)
        fail_msg("opening after power loss at operation %zu, seed %llu: %s", ops, (unsigned long long)seed,
                 error.text);
    uint64_t last = store_last_seq(test.store), read;
    if (last != held->acked && last != held->under_way)
        fail_msg("operation %zu: %llu records, acknowledged %llu, under way to %llu", ops,
                 (unsigned long long)last, (unsigned long long)held->acked,
                 (unsigned long long)held->under_way);
    rc = sample_read(test.store, store_first_seq(test.store), test.salts, &read, &error);
    if (rc < 0)
        fail_msg("reading after power loss at operation %zu, seed %llu: %s", ops, (unsigned long long)seed,
                 error.text);
    assert_int_equal(read, last);
    assert_snapshot(held);
    assert_meta(held);
    struct store_verify_result result;
    if (seed % 4 == 0)
        assert_int_equal(store_verify(test.store, NULL, NULL, &result, &error), 0);
    test.now = *held;
    test.now.acked = test.now.under_way = last;
}

static void begin_history(uint64_t seed)
{
    fault_format();
    fault_trace_clear();
    vec_clear(&test.promises);
    memset(test.salts, 0, sizeof test.salts);
    test.now = (struct promise){0};
    rng_seed(&test.rng, seed);
    (void)unlink(test.lock_path);
    fault.tracing = true;
    promise();
}

/* Goes on after a restart, and every fourth time loses power once more, while it recovers or soon after. The
 * trace then begins with the files as they were found. */
static void go_on(size_t ops, uint64_t seed)
{
    static const uint8_t salt = 1;
    struct rng kept = test.rng;
    rng_seed(&test.rng, seed);
    work(2, salt);
    store_close(test.store);
    test.store = NULL;
    test.rng = kept;
}

static void every_point(void **state)
{
    uint64_t points = 0;
    for (uint64_t history = 0; history < HISTORIES; history++) {
        begin_history(history);
        assert_int_equal(store_open(test.path, &options, &test.store, NULL), 0);
        promise();
        work(80, 0);
        store_close(test.store);
        fault.tracing = false;
        uint8_t salts[SEQ_MAX];
        memcpy(salts, test.salts, sizeof salts);
        size_t promises = test.promises.len;
        for (size_t ops = 0; ops <= fault.trace.len; ops++, points++) {
            restart(ops, history * 1000003 + ops);
            go_on(ops, ops);
            memcpy(test.salts, salts, sizeof salts);
            test.promises.len = promises;
        }
    }
    print_message("power was lost at %llu points\n", (unsigned long long)points);
    assert_true(points >= 2000);
}

/* The disk's content becomes the beginning of a new trace. */
static void trace_from_here(void)
{
    fault_trace_clear();
    fault.tracing = true;
    for (int i = 0; i < fault.inodes_len; i++) {
        struct fault_inode *inode = &fault.inodes[i];
        fault_note((struct fault_op){.kind = FAULT_CREATE, .inode = i, .len = strlen(inode->name) + 1},
                   inode->name);
        fault_note((struct fault_op){.kind = FAULT_WRITE, .inode = i, .len = inode->bytes.len},
                   inode->bytes.len ? inode->bytes.data : "");
        fault_note((struct fault_op){.kind = FAULT_SYNC, .inode = i}, NULL);
        if (!inode->linked)
            fault_note((struct fault_op){.kind = FAULT_REMOVE, .inode = i, .durable = true}, NULL);
    }
}

/* Power is lost again and again: at a random point of the work, of the recovery, of the recovery from that.
 * */
static void many_times(void **state)
{
    for (uint64_t history = 100; history < 104; history++) {
        begin_history(history);
        assert_int_equal(store_open(test.path, &options, &test.store, NULL), 0);
        promise();
        for (uint8_t life = 0; life < 60; life++) {
            work(rng_below(&test.rng, 8), life);
            size_t floor = life == 0 ? 0 : test.promises.items[0].ops;
            size_t ops = floor + rng_below(&test.rng, fault.trace.len - floor + 1);
            if (rng_chance(&test.rng, 300000))
                ops = fault.trace.len;
            fault.tracing = false;
            /* the old connection belongs to a machine that is gone: closing it must change nothing */
            store_close(test.store);
            struct promise held = *promise_at(ops);
            fault_power_loss(ops, history * 7919 + life);
            sample_file_put(test.lock_path, (struct str){held.lock, held.lock_len});
            trace_from_here();
            vec_clear(&test.promises);
            test.now = held;
            promise();
            struct error error;
            if (store_open(test.path, &options, &test.store, &error) < 0)
                fail_msg("history %d, life %d: %s", (int)history, (int)life, error.text);
            uint64_t last = store_last_seq(test.store), read;
            assert_true(last == held.acked || last == held.under_way);
            assert_int_equal(sample_read(test.store, store_first_seq(test.store), test.salts, &read, &error),
                             0);
            assert_int_equal(read, last);
            assert_snapshot(&held);
            assert_meta(&held);
            struct buf value BUF_CLEANUP = {0};
            test.now.acked = test.now.under_way = last;
            if (store_meta_get(test.store, STR("epoch"), &value, NULL) == 0)
                test.now.meta = test.now.meta_under_way = strtoll(value.data, NULL, 10);
            promise();
        }
        store_close(test.store);
    }
}

static int set_up(void **state)
{
    fault_register();
    sample_folder(test.folder);
    sample_path(test.path, test.folder);
    (void)snprintf(test.lock_path, sizeof test.lock_path, "%s-lock", test.path);
    return 0;
}

static int tear_down(void **state)
{
    fault_format();
    fault_trace_clear();
    vec_done(&fault.trace);
    vec_done(&test.promises);
    sample_folder_remove(test.folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_point),
        cmocka_unit_test(many_times),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
