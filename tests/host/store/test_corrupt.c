/* Damage anywhere in the files: harmless or reported with ERROR_CORRUPT, never a wrong record, snapshot or
 * key, and never fewer records than were acknowledged. */
#include "host/store/sample.h"
#include "host/store/fault_vfs.h"

enum { IMAGE_FILES = 4, TRIALS = 1000, STATE_BYTES = 20000 };

/* The files as a crash (with a WAL) or a clean close left them. */
struct image {
    struct fault_inode files[IMAGE_FILES];
    int len;
    struct buf lock;
    uint64_t first, last;
};

static struct {
    char folder[64], path[96], lock_path[128];
    struct image crashed, closed;
} test;

static const struct store_options options = {.vfs = "fault", .snapshots_keep = 2, .tail_records = 50};

static void take(struct image *image, uint64_t first, uint64_t last)
{
    image->len = 0;
    for (int i = 0; i < fault.inodes_len; i++) {
        if (!fault.inodes[i].linked)
            continue;
        CHECK(image->len < IMAGE_FILES);
        struct fault_inode *file = &image->files[image->len++];
        *file = fault.inodes[i];
        file->bytes = (struct buf){0};
        buf_add_str(&file->bytes, buf_str(&fault.inodes[i].bytes));
    }
    sample_file_get(test.lock_path, &image->lock);
    image->first = first;
    image->last = last;
}

static void put(const struct image *image)
{
    fault_format();
    for (int i = 0; i < image->len; i++) {
        fault.inodes[i] = image->files[i];
        fault.inodes[i].bytes = (struct buf){0};
        buf_add_str(&fault.inodes[i].bytes, buf_str(&image->files[i].bytes));
    }
    fault.inodes_len = image->len;
    sample_file_put(test.lock_path, buf_str(&image->lock));
}

static void free_image(struct image *image)
{
    for (int i = 0; i < image->len; i++)
        buf_done(&image->files[i].bytes);
    buf_done(&image->lock);
}

static void save(struct store *store)
{
    struct buf state BUF_CLEANUP = {0};
    uint64_t seq = store_last_seq(store);
    assert_int_equal(
        store_snapshot_save(store, seq, STAMP_NS(seq), sample_state(&state, seq, STATE_BYTES), NULL), 0);
}

static void build(void)
{
    struct store *store;
    struct store_options roomy = options;
    roomy.wal_bytes = 64 << 20;
    fault_format();
    (void)unlink(test.lock_path);
    assert_int_equal(store_open(test.path, &options, &store, NULL), 0);
    assert_int_equal(store_meta_set(store, STR("cluster"), STR("mini"), NULL), 0);
    for (int i = 0; i < 60; i++)
        assert_int_equal(sample_append(store, 5, 0, NULL), 0);
    for (int i = 0; i < 3; i++) {
        save(store);
        assert_int_equal(sample_append(store, 20, 0, NULL), 0);
    }
    while (store_trim(store, STAMP_NS(100), NULL) > 0)
        ;
    store_close(store);
    assert_int_equal(store_open(test.path, &roomy, &store, NULL), 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(sample_append(store, 3, 0, NULL), 0);
    save(store);
    assert_int_equal(store_meta_set(store, STR("epoch"), STR("7"), NULL), 0);
    assert_int_equal(sample_append(store, 3, 0, NULL), 0);
    take(&test.crashed, store_first_seq(store), store_last_seq(store));
    store_close(store);
    take(&test.closed, test.crashed.first, test.crashed.last);
}

/* One random damage to one of the files. Damaging FILE-shm is no case: it is thrown away by whoever opens
 * first. */
static void damage(struct rng *rng)
{
    struct buf *bytes;
    do {
        bytes = &fault.inodes[rng_below(rng, (uint64_t)fault.inodes_len)].bytes;
    } while (bytes->len == 0);
    size_t at = rng_below(rng, bytes->len);
    if (rng_chance(rng, 150000)) /* the header and the roots are small, yet matter most */
        at = rng_below(rng, bytes->len < 100 ? bytes->len : 100);
    switch (rng_below(rng, 6)) {
    case 0: /* a run of zeros, as of a sector never written */
        at -= at % FAULT_SECTOR;
        memset(bytes->data + at, 0, bytes->len - at < FAULT_SECTOR ? bytes->len - at : FAULT_SECTOR);
        break;
    case 1: { /* a page in the place of another */
        size_t pages = bytes->len / 4096;
        if (pages >= 2)
            memmove(bytes->data + 4096 * rng_below(rng, pages), bytes->data + 4096 * rng_below(rng, pages),
                    4096);
        break;
    }
    case 2:
        bytes->data[at] = (char)(rng_next(rng) >> 56);
        break;
    case 3: /* the end cut off */
        bytes->len = at;
        break;
    default:
        bytes->data[at] = (char)(bytes->data[at] ^ (1 << rng_below(rng, 8)));
    }
}

static void assert_state(struct store *store, uint64_t trial)
{
    struct store_snapshot loaded = {0};
    struct buf want BUF_CLEANUP = {0};
    struct error error;
    int rc = store_snapshot_load(store, UINT64_MAX, &loaded, &error);
    if (rc < 0) {
        assert_true(rc == ERROR_CORRUPT || rc == ERROR_NOT_FOUND);
        if (rc == ERROR_NOT_FOUND)
            assert_int_equal(store_first_seq(store), 1);
        return;
    }
    assert_int_equal(loaded.bytes.len, STATE_BYTES);
    sample_state(&want, loaded.seq, STATE_BYTES);
    assert_memory_equal(loaded.bytes.data, want.data, STATE_BYTES);
    assert_int_equal(loaded.stamp_ns, STAMP_NS(loaded.seq));
    assert_true(loaded.seq + 1 >= store_first_seq(store));
    buf_done(&loaded.bytes);
}

static void assert_keys(struct store *store)
{
    static const char *const keys[][2] = {{"cluster", "mini"}, {"epoch", "7"}};
    struct buf value BUF_CLEANUP = {0};
    for (size_t i = 0; i < 2; i++) {
        int rc = store_meta_get(store, str_from(keys[i][0]), &value, NULL);
        assert_true(rc == 0 || rc == ERROR_CORRUPT);
        if (rc == 0)
            assert_string_equal(value.data, keys[i][1]);
    }
}

/* Opens, reads everything, goes on, opens again. Returns whether the damage was reported at any stage. */
static bool examine(const struct image *image, uint64_t trial)
{
    struct store *store;
    struct error error;
    uint64_t read;
    bool reported = false;
    for (int round = 0; round < 2; round++) {
        int rc = store_open(test.path, &options, &store, &error);
        if (rc < 0) {
            if (rc != ERROR_CORRUPT)
                fail_msg("trial %llu: %s: %s", (unsigned long long)trial, error_name(rc), error.text);
            return true;
        }
        uint64_t last = store_last_seq(store);
        if (last < image->last)
            fail_msg("trial %llu: only %llu records", (unsigned long long)trial, (unsigned long long)last);
        rc = sample_read(store, store_first_seq(store), NULL, &read, &error);
        if (rc < 0 ? rc != ERROR_CORRUPT : read != last)
            fail_msg("trial %llu: reading gave %s after record %llu", (unsigned long long)trial,
                     error_name(rc), (unsigned long long)read);
        reported = reported || rc < 0;
        assert_state(store, trial);
        assert_keys(store);
        rc = sample_append(store, 4, 0, &error);
        if (rc < 0 && rc != ERROR_CORRUPT)
            fail_msg("trial %llu: appending: %s: %s", (unsigned long long)trial, error_name(rc), error.text);
        reported = reported || rc < 0;
        store_close(store);
    }
    return reported;
}

static void damage_anywhere(struct image *image, uint64_t seed)
{
    uint64_t reported = 0;
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        struct rng rng;
        rng_seed(&rng, seed + trial);
        put(image);
        damage(&rng);
        reported += examine(image, trial);
    }
    print_message("%d damages, %d reported, the others harmless\n", (int)TRIALS, (int)reported);
    assert_true(reported > TRIALS / 4);
}

static void after_a_close(void **state)
{
    damage_anywhere(&test.closed, 1000000);
}

static void after_a_crash(void **state)
{
    damage_anywhere(&test.crashed, 2000000);
}

/* A whole, older state of the file is no less a loss. */
static void lost_end(void **state)
{
    struct store *store;
    struct error error;
    put(&test.crashed);
    for (int i = 0; i < fault.inodes_len; i++)
        if (strstr(fault.inodes[i].name, "-wal"))
            fault.inodes[i].linked = false;
    assert_int_equal(store_open(test.path, &options, &store, &error), ERROR_CORRUPT);
    assert_non_null(strstr(error.text, "were acknowledged"));
    struct store_options accept = options;
    accept.accept_loss = true;
    assert_int_equal(store_open(test.path, &accept, &store, &error), 0);
    assert_true(store_last_seq(store) < test.crashed.last);
    assert_int_equal(sample_append(store, 3, 0, &error), 0);
    store_close(store);
    assert_int_equal(store_open(test.path, &options, &store, &error), 0);
    store_close(store);
}

static void count_problem(void *context, const struct store_problem *problem)
{
    assert_non_null(problem->table);
    assert_true(strlen(problem->text) > 0);
    ++*(int *)context;
}

/* A bit of a record's own bytes: found by reading and by verifying, at the record, with the rest still
 * verified. */
static void verify_names_the_place(void **state)
{
    struct buf bytes BUF_CLEANUP = {0};
    struct store *store;
    struct error error;
    int found = 0;
    for (uint64_t seq = test.closed.first; seq < test.closed.first + 40; seq++) {
        struct str record = sample_bytes(&bytes, seq, 0);
        put(&test.closed);
        struct buf *file = &fault.inodes[0].bytes;
        char *at = record.len >= 16 ? memmem(file->data, file->len, record.data, record.len) : NULL;
        if (!at)
            continue;
        found++;
        at[record.len / 2] ^= 4;
        assert_int_equal(store_open(test.path, &options, &store, &error), 0);
        uint64_t last;
        assert_int_equal(sample_read(store, store_first_seq(store), NULL, &last, &error), ERROR_CORRUPT);
        assert_int_equal(last, seq - 1);
        char name[64];
        (void)snprintf(name, sizeof name, "table log: record %d:", (int)seq);
        assert_non_null(strstr(error.text, name));
        struct store_verify_result result;
        int problems = 0;
        assert_int_equal(store_verify(store, count_problem, &problems, &result, &error), ERROR_CORRUPT);
        assert_int_equal(result.problems, 1);
        assert_int_equal(problems, 1);
        assert_int_equal(result.records, test.closed.last - test.closed.first + 1);
        assert_non_null(strstr(error.text, name));
        store_close(store);
    }
    assert_true(found > 10);
}

/* The newest snapshot is damaged: the older one is taken, and that is said. Then that one, too. */
static void snapshot_falls_back(void **state)
{
    struct store *store;
    struct error error;
    struct store_stats stats;
    put(&test.closed);
    assert_int_equal(store_open(test.path, &options, &store, &error), 0);
    assert_int_equal(store_stats(store, &stats, NULL), 0);
    assert_int_equal(stats.snapshots, 2);
    struct store_snapshot newest = {0}, older = {0}, none = {0};
    assert_int_equal(store_snapshot_load(store, UINT64_MAX, &newest, &error), 0);
    assert_int_equal(newest.skipped, 0);
    assert_int_equal(store_snapshot_load(store, newest.seq - 1, &older, &error), 0);
    assert_true(older.seq < newest.seq && older.skipped == 0);
    store_close(store);

    sqlite3 *db;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sqlite3_open_v2(test.path, &db, SQLITE_OPEN_READWRITE, "fault"), SQLITE_OK);
        assert_int_equal(
            sqlite3_exec(db,
                         "UPDATE snapshot_chunk SET bytes = zeroblob(100) WHERE id = (SELECT max(id) FROM"
                         " snapshot_chunk WHERE bytes != zeroblob(100))",
                         NULL, NULL, NULL),
            SQLITE_OK);
        (void)sqlite3_close(db);
        assert_int_equal(store_open(test.path, &options, &store, &error), 0);
        struct store_snapshot loaded = {0};
        int rc = store_snapshot_load(store, UINT64_MAX, i == 0 ? &loaded : &none, &error);
        if (i == 0) {
            assert_int_equal(rc, 0);
            assert_int_equal(loaded.seq, older.seq);
            assert_int_equal(loaded.skipped, 1);
            assert_non_null(strstr(loaded.skipped_text, "snapshot_chunk"));
            assert_int_equal(loaded.bytes.len, older.bytes.len);
            assert_memory_equal(loaded.bytes.data, older.bytes.data, older.bytes.len);
            buf_done(&loaded.bytes);
        } else { /* the log does not begin at record 1, so there is no way to the state */
            assert_int_equal(rc, ERROR_CORRUPT);
            assert_null(none.bytes.data);
        }
        store_close(store);
    }
    buf_done(&newest.bytes);
    buf_done(&older.bytes);
}

static int set_up(void **state)
{
    fault_register();
    sample_folder(test.folder);
    sample_path(test.path, test.folder);
    (void)snprintf(test.lock_path, sizeof test.lock_path, "%s-lock", test.path);
    build();
    return 0;
}

static int tear_down(void **state)
{
    fault_format();
    vec_done(&fault.trace);
    free_image(&test.crashed);
    free_image(&test.closed);
    sample_folder_remove(test.folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_a_close),
        cmocka_unit_test(after_a_crash),
        cmocka_unit_test(lost_end),
        cmocka_unit_test(verify_names_the_place),
        cmocka_unit_test(snapshot_falls_back),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
