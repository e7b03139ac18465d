/* A disk that is full or fails: nothing acknowledged is lost, nothing half-written is seen, and a full disk
 * needs no more than space to go on. */
#include "host/store/sample.h"
#include "host/store/fault_vfs.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

static struct {
    char folder[64], path[96], lock_path[128];
} test;

static const struct store_options options = {.vfs = "fault", .wal_bytes = 24 * 4096, .snapshots_keep = 2};

static struct store *fresh(void)
{
    struct store *store;
    struct error error;
    fault_format();
    (void)unlink(test.lock_path);
    assert_int_equal(store_open(test.path, &options, &store, &error), 0);
    return store;
}

static void assert_whole(struct store *store, uint64_t last)
{
    struct store_verify_result result;
    struct error error;
    uint64_t read;
    assert_int_equal(store_last_seq(store), last);
    assert_int_equal(sample_read(store, store_first_seq(store), NULL, &read, &error), 0);
    assert_int_equal(read, last);
    assert_int_equal(store_verify(store, NULL, NULL, &result, &error), 0);
}

static int save_snapshot(struct store *store, struct error *error)
{
    struct buf state = {0};
    uint64_t seq = store_last_seq(store);
    struct store_stats stats;
    int rc = store_stats(store, &stats, error);
    if (rc == 0 && stats.snapshot_seq != seq)
        rc = store_snapshot_save(store, seq, STAMP_NS(seq), sample_state(&state, seq, 20000), error);
    buf_done(&state);
    return rc;
}

/* One random call; its code. */
static int call(struct store *store, struct rng *rng, struct error *error)
{
    switch (rng_below(rng, 8)) {
    case 0:
        return save_snapshot(store, error);
    case 1:
        return store_trim(store, STAMP_NS(store_last_seq(store)), error);
    case 2:
        return store_meta_set(store, STR("epoch"), STR("12"), error);
    default:
        return sample_append(store, 1 + rng_below(rng, 8), 0, error);
    }
}

static void full_disk(void **state)
{
    struct error error;
    uint64_t refused = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        struct store *store = fresh();
        for (int round = 0; round < 3; round++) {
            fault.room = (int64_t)rng_below(&rng, 250000);
            uint64_t last = store_last_seq(store);
            int rc = 0;
            for (int i = 0; i < 200 && rc >= 0; i++) {
                last = store_last_seq(store);
                rc = call(store, &rng, &error);
            }
            if (rc < 0) {
                refused++;
                assert_int_equal(rc, ERROR_NO_SPACE);
                assert_non_null(strstr(error.text, "full"));
                assert_int_equal(store_last_seq(store), last);
                rc = sample_append(store, 3, 0, &error);
                assert_true(rc == ERROR_NO_SPACE || rc == 0); /* a smaller one may still fit */
                last = store_last_seq(store);
                assert_whole(store, last); /* reading goes on meanwhile */
            }
            if (rng_chance(&rng, 300000)) { /* the controller is restarted while the disk is full */
                last = store_last_seq(store);
                store_close(store);
                rc = store_open(test.path, &options, &store, &error);
                if (rc == ERROR_NO_SPACE) {
                    fault.room = -1;
                    rc = store_open(test.path, &options, &store, &error);
                }
                assert_int_equal(rc, 0);
                assert_int_equal(store_last_seq(store), last);
            }
            fault.room = -1;
            last = store_last_seq(store);
            assert_int_equal(sample_append(store, 5, 0, &error), 0);
            assert_whole(store, last + 5);
        }
        store_close(store);
    }
    assert_true(refused > 400);
}

/* A writer that met a full disk goes on where it was. */
static void snapshot_waits_for_space(void **state)
{
    struct error error;
    struct store *store = fresh();
    struct buf bytes BUF_CLEANUP = {0};
    struct store_snapshot_writer *writer;
    assert_int_equal(sample_append(store, 5, 0, &error), 0);
    struct str content = sample_state(&bytes, 5, 3 << 20);
    assert_int_equal(store_snapshot_begin(store, 5, STAMP_NS(5), content, &writer, &error), 0);
    fault.room = 700000;
    int rc;
    while ((rc = store_snapshot_step(writer, &error)) > 0)
        ;
    assert_int_equal(rc, ERROR_NO_SPACE);
    assert_int_equal(store_snapshot_step(writer, &error), ERROR_NO_SPACE);
    fault.room = -1;
    while ((rc = store_snapshot_step(writer, &error)) > 0)
        ;
    assert_int_equal(rc, 0);
    store_snapshot_writer_free(writer);
    struct store_snapshot loaded = {0};
    assert_int_equal(store_snapshot_load(store, 5, &loaded, &error), 0);
    assert_int_equal(loaded.bytes.len, content.len);
    assert_memory_equal(loaded.bytes.data, content.data, content.len);
    buf_done(&loaded.bytes);
    store_close(store);
}

/* A write or a sync that fails for another reason: the store says so, refuses every later write, and what it
 * holds when it is opened anew is the acknowledged records, with or without the group whose fate was unknown.
 * */
static void failing_disk(void **state)
{
    struct error error;
    uint64_t broken = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        struct store *store = fresh();
        if (rng_chance(&rng, 500000))
            fault.sync_at = (int64_t)rng_below(&rng, 40);
        else
            fault.write_at = (int64_t)rng_below(&rng, 200);
        int rc = 0;
        uint64_t acked = 0;
        for (int i = 0; i < 60 && rc >= 0; i++) {
            rc = call(store, &rng, &error);
            acked = store_last_seq(store);
        }
        if (rc < 0) {
            broken++;
            assert_int_equal(rc, ERROR_IO);
            assert_int_equal(sample_append(store, 1, 0, &error), ERROR_IO);
            assert_non_null(strstr(error.text, "anew"));
            assert_int_equal(store_meta_set(store, STR("a"), STR("b"), &error), ERROR_IO);
        }
        store_close(store);
        fault.sync_at = fault.write_at = -1;
        assert_int_equal(store_open(test.path, &options, &store, &error), 0);
        uint64_t last = store_last_seq(store);
        assert_true(last >= acked && last <= acked + 8);
        assert_whole(store, last);
        assert_int_equal(sample_append(store, 2, 0, &error), 0);
        store_close(store);
    }
    assert_true(broken > 200);
}

/* --- a real file system of 1 MiB --- */

static int fill_and_free(const char *folder)
{
    char path[96], filler[96];
    struct store *store;
    struct error error;
    struct store_options real = {.wal_bytes = 128 << 10};
    sample_path(path, folder);
    (void)snprintf(filler, sizeof filler, "%s/filler", folder);
    struct buf block BUF_CLEANUP = {0};
    sample_file_put(filler, sample_state(&block, 1, 256 << 10));
    assert_int_equal(store_open(path, &real, &store, &error), 0);
    for (int round = 0; round < 2; round++) {
        int rc = 0;
        for (int i = 0; i < 10000 && rc == 0; i++)
            rc = sample_append(store, 20, 0, &error);
        assert_int_equal(rc, ERROR_NO_SPACE);
        assert_whole(store, store_last_seq(store));
        if (round == 0)
            (void)unlink(filler);
        else
            assert_int_equal(mount("none", folder, "tmpfs", MS_REMOUNT, "size=8m"), 0);
        assert_int_equal(sample_append(store, 20, 0, &error), 0);
    }
    uint64_t last = store_last_seq(store);
    store_close(store);
    assert_int_equal(store_open(path, &real, &store, &error), 0);
    assert_whole(store, last);
    store_close(store);
    return 0;
}

static void real_full_disk(void **state)
{
    char folder[64];
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        print_message("mounting a file system takes root\n");
        skip();
    }
    sample_folder(folder);
    assert_int_equal(mount("none", folder, "tmpfs", 0, "size=1m"), 0);
    (void)fill_and_free(folder);
    assert_int_equal(umount(folder), 0);
    (void)rmdir(folder);
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
    vec_done(&fault.trace);
    sample_folder_remove(test.folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_disk),
        cmocka_unit_test(snapshot_waits_for_space),
        cmocka_unit_test(failing_disk),
        cmocka_unit_test(real_full_disk),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
