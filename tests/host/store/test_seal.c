/* A log at rest under keys: nothing of it can be read from the file, every key has its say, and a wrong
 * one says whose it is. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/rng.h"
#include "host/store/private.h"

#define KEY_A "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF"
#define KEY_B "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
#define PLAIN "a secret that stands in every record"

struct place {
    char folder[64], log[100], keys[100];
    struct store_keys *loaded;
    struct store *store;
};

static void write_keys(const struct place *place, const char *text)
{
    FILE *file = fopen(place->keys, "w");
    assert_non_null(file);
    assert_int_equal(fchmod(fileno(file), 0600), 0);
    fputs(text, file);
    fclose(file);
}

/* `keys` NULL: none. */
static int open_with(struct place *place, const char *keys, struct error *error)
{
    place->loaded = NULL;
    place->store = NULL;
    if (keys) {
        write_keys(place, keys);
        int rc = store_keys_load(place->keys, &place->loaded, error);
        if (rc < 0)
            return rc;
    }
    return store_open(place->log, &(struct store_options){.keys = place->loaded}, &place->store, error);
}

static void close_it(struct place *place)
{
    store_close(place->store);
    store_keys_free(place->loaded);
}

static void must_open(struct place *place, const char *keys)
{
    struct error error;
    if (open_with(place, keys, &error) < 0)
        fail_msg("%s", error.text);
}

static void must_not_open(struct place *place, const char *keys, int code, const char *why)
{
    struct error error = {0};
    assert_int_equal(open_with(place, keys, &error), code);
    if (!strstr(error.text, why))
        fail_msg("no \"%s\" in: %s", why, error.text);
    close_it(place);
}

static void append(struct place *place, int count)
{
    for (int i = 0; i < count; i++) {
        struct store_record record = {store_last_seq(place->store) + 1, 1000 + i, STR(PLAIN)};
        struct error error;
        if (store_append(place->store, &record, 1, &error) < 0)
            fail_msg("%s", error.text);
    }
}

static void check_all(struct place *place, uint64_t count)
{
    struct store_cursor *cursor;
    struct store_record record;
    struct error error;
    uint64_t seen = 0;
    assert_int_equal(store_read(place->store, 1, &cursor, &error), 0);
    int rc;
    while ((rc = store_next(cursor, &record, &error)) > 0) {
        seen++;
        assert_true(str_is(record.bytes, PLAIN));
    }
    if (rc < 0)
        fail_msg("%s", error.text);
    assert_int_equal(seen, count);
    store_cursor_free(cursor);
}

static void save(struct place *place, struct str bytes)
{
    struct error error;
    if (store_snapshot_save(place->store, store_last_seq(place->store), 5, bytes, &error) < 0)
        fail_msg("%s", error.text);
}

static bool file_has(const struct place *place, const char *text)
{
    FILE *file = fopen(place->log, "rb");
    struct buf bytes BUF_CLEANUP = {0};
    char chunk[65536];
    size_t got;
    assert_non_null(file);
    while ((got = fread(chunk, 1, sizeof chunk, file)) > 0)
        buf_add(&bytes, chunk, got);
    fclose(file);
    return memmem(bytes.data, bytes.len, text, strlen(text)) != NULL;
}

static void nothing_can_be_read_without_the_key(void **state)
{
    struct place *place = *state;
    must_open(place, KEY_A "\n");
    append(place, 50);
    save(place, STR(PLAIN));
    append(place, 5);
    check_all(place, 55);
    close_it(place);
    assert_false(file_has(place, PLAIN));
    must_not_open(place, NULL, ERROR_DENIED, "--encryption-key-file");
    must_not_open(place, KEY_B, ERROR_DENIED, "keys");
    must_open(place, "# a comment\n\n" KEY_A);
    check_all(place, 55);
    struct store_snapshot snapshot = {0};
    struct error error;
    assert_int_equal(store_snapshot_load(place->store, UINT64_MAX, &snapshot, &error), 0);
    assert_true(str_is(buf_str(&snapshot.bytes), PLAIN) && snapshot.skipped == 0);
    buf_done(&snapshot.bytes);
    struct store_verify_result result;
    assert_int_equal(store_verify(place->store, NULL, NULL, &result, &error), 0);
    close_it(place);
}

/* A log in the clear goes on under a key, and one key after the other. */
static void keys_change(void **state)
{
    struct place *place = *state;
    must_open(place, NULL);
    append(place, 3);
    close_it(place);
    assert_true(file_has(place, PLAIN));
    must_open(place, KEY_A);
    append(place, 3);
    close_it(place);
    must_open(place, KEY_B "\n" KEY_A "\n");
    append(place, 3);
    check_all(place, 9);
    close_it(place);
    must_not_open(place, KEY_A, ERROR_DENIED, "is encrypted with key");
    must_not_open(place, KEY_B, ERROR_DENIED, "record 4 is encrypted");
    must_open(place, KEY_A "\n" KEY_B);
    check_all(place, 9);
    close_it(place);
}

/* Many chunks, packed hardly at all. */
static void large_snapshots(void **state)
{
    struct place *place = *state;
    struct rng rng;
    struct buf bytes BUF_CLEANUP = {0};
    struct store_snapshot snapshot = {0};
    struct error error;
    rng_seed(&rng, 3);
    while (bytes.len < 3 * STORE_CHUNK_BYTES + 77) {
        uint64_t word = rng_next(&rng);
        buf_add(&bytes, &word, sizeof word);
    }
    must_open(place, KEY_A);
    append(place, 1);
    save(place, buf_str(&bytes));
    close_it(place);
    must_open(place, KEY_B "\n" KEY_A);
    assert_int_equal(store_snapshot_load(place->store, UINT64_MAX, &snapshot, &error), 0);
    assert_true(str_equal(buf_str(&snapshot.bytes), buf_str(&bytes)));
    buf_done(&snapshot.bytes);
    close_it(place);
}

/* Sealed bytes are of one place: in another's they do not open, whatever its checksum says. */
static void bytes_keep_their_place(void **state)
{
    struct place *place = *state;
    struct buf sealed BUF_CLEANUP = {0}, plain BUF_CLEANUP = {0};
    struct error error;
    struct str back;
    must_open(place, KEY_A);
    struct store_seal_place here = {STORE_SEAL_RECORD, 7, 99};
    const struct store_seal_place others[] = {
        {STORE_SEAL_RECORD, 8, 99}, {STORE_SEAL_RECORD, 7, 98}, {STORE_SEAL_CHUNK, 7, 99}};
    struct str bytes = store_seal(place->loaded, &here, STR(PLAIN), &sealed);
    assert_int_equal(bytes.len, sizeof PLAIN - 1 + STORE_SEAL_BYTES);
    assert_int_equal(store_unseal(place->loaded, &here, bytes, &plain, &back, &error), 0);
    assert_true(str_is(back, PLAIN));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(store_unseal(place->loaded, &others[i], bytes, &plain, &back, &error),
                         ERROR_CORRUPT);
    for (size_t i = 12; i < bytes.len; i++) {
        sealed.data[i] ^= 1;
        assert_int_equal(store_unseal(place->loaded, &here, bytes, &plain, &back, &error), ERROR_CORRUPT);
        sealed.data[i] ^= 1;
    }
    bytes = store_seal(place->loaded, &here, STR(""), &sealed);
    assert_int_equal(store_unseal(place->loaded, &here, bytes, &plain, &back, &error), 0);
    assert_int_equal(back.len, 0);
    close_it(place);
}

static void mistakes_in_the_key_file(void **state)
{
    struct place *place = *state;
    struct store_keys *keys;
    struct error error;
    must_not_open(place, "", ERROR_INVALID, "no key");
    must_not_open(place, KEY_A "\nnonsense\n", ERROR_INVALID, ":2: a key is 64 hexadecimal digits");
    must_not_open(place, KEY_A "0", ERROR_INVALID, ":1:");
    write_keys(place, KEY_A);
    assert_int_equal(chmod(place->keys, 0640), 0);
    assert_int_equal(store_keys_load(place->keys, &keys, &error), ERROR_DENIED);
    assert_non_null(strstr(error.text, "chmod 600"));
    assert_true(store_keys_load("/nonexistent/keys", &keys, &error) < 0);
}

static int setup(void **state)
{
    struct place *place = mem_alloc(sizeof *place);
    snprintf(place->folder, sizeof place->folder, "/tmp/phalanx-seal-XXXXXX");
    CHECK(mkdtemp(place->folder));
    snprintf(place->log, sizeof place->log, "%s/log.db", place->folder);
    snprintf(place->keys, sizeof place->keys, "%s/keys", place->folder);
    *state = place;
    return 0;
}

static int teardown(void **state)
{
    struct place *place = *state;
    static const char *const names[] = {"log.db", "log.db-wal", "log.db-shm", "log.db-lock", "keys"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[140];
        snprintf(path, sizeof path, "%s/%s", place->folder, names[i]);
        unlink(path);
    }
    rmdir(place->folder);
    mem_free(place);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_can_be_read_without_the_key, setup, teardown),
        cmocka_unit_test_setup_teardown(keys_change, setup, teardown),
        cmocka_unit_test_setup_teardown(large_snapshots, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_keep_their_place, setup, teardown),
        cmocka_unit_test_setup_teardown(mistakes_in_the_key_file, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
