/* A reader knows the history that it has read: what does not go on from there, as in an etcd that was put
 * back to a backup and has grown since, or what is damaged, is refused. */
#include "host/store/etcd/side.h"

enum { READ = 6 }; /* records that a reader has when the log is written anew */

static int set_up(void **state)
{
    members_fresh(&members);
    return 0;
}

/* Begins the log anew, as if what is in it had been lost: `count` other records, in groups of `size`. */
static void write_anew(size_t count, size_t size, struct side *writer)
{
    members_wipe(&members);
    side_open(writer);
    assert_int_equal(side_lead(writer, false), 1);
    for (size_t i = 0; i < count; i += size)
        append_well(writer, size < count - i ? size : count - i, 9);
}

/* `follower` has read a log of READ records, which `writer` has written. */
static void write_and_read(struct side *writer, struct side *follower)
{
    static const uint8_t salts[READ + 1] = {0};
    side_open(writer);
    side_open(follower);
    assert_int_equal(side_lead(writer, false), 1);
    for (int i = 0; i < READ / 2; i++)
        append_well(writer, 2, 0);
    assert_int_equal(side_read(follower, 1, salts), READ);
}

/* Looks at the log's end, and reads on from behind record READ. */
static int read_on(struct side *side, struct error *error)
{
    struct etcd_seen seen;
    void *cursor;
    struct store_record record;
    if (etcd_log_refresh(side->log, &seen, error) < 0)
        fail_msg("%s", error->text);
    int rc = side->store.read(side->log, READ + 1, &cursor, error);
    if (rc < 0)
        return rc;
    while ((rc = side->store.next(cursor, &record, error)) > 0)
        assert_true(record.seq > READ);
    side->store.cursor_free(cursor);
    return rc;
}

/* The message has the number of the record and both checksums. */
static void assert_names(const struct error *error, uint64_t seq, uint32_t here, uint32_t there)
{
    char want[64];
    snprintf(want, sizeof want, "record %llu in etcd has the checksum %08x", (unsigned long long)seq, there);
    assert_non_null(strstr(error->text, want));
    snprintf(want, sizeof want, "here it had %08x", here);
    assert_non_null(strstr(error->text, want));
}

static uint32_t crc_of(struct side *side, uint64_t seq)
{
    struct error error;
    uint32_t crc;
    if (etcd_record_crc(side->log, seq, &crc, &error) < 0)
        fail_msg("%s", error.text);
    return crc;
}

/* Read from the middle, where a group of the other history begins, or where none does. */
static void another_history_is_refused(void **state)
{
    static const size_t sizes[] = {2, 4, 10};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct side a = {0}, b = {0}, c = {0};
        struct error error;
        members_fresh(&members);
        write_and_read(&a, &b);
        write_anew(10, sizes[i], &c);
        assert_int_equal(read_on(&b, &error), ERROR_CORRUPT);
        assert_names(&error, READ, a.store.ends(a.log).last_crc, crc_of(&c, READ));
        assert_int_equal(read_on(&b, &error), ERROR_CORRUPT); /* as often as it tries */
        assert_int_equal(read_on(&a, &error), ERROR_CORRUPT); /* a writer knows what it has written */
        assert_names(&error, READ, b.log->known_crc, crc_of(&c, READ));
        side_close(&a);
        side_close(&b);
        side_close(&c);
    }
}

/* Where nothing is behind the last record that is known, the head alone tells: nobody takes the lead. */
static void another_history_of_the_same_length(void **state)
{
    struct side a = {0}, b = {0}, c = {0};
    struct etcd_seen seen;
    struct error error;
    write_and_read(&a, &b);
    side_lease(&b);
    write_anew(READ, 3, &c);
    assert_int_equal(etcd_log_refresh(b.log, &seen, &error), ERROR_CORRUPT);
    assert_names(&error, READ, a.store.ends(a.log).last_crc, c.store.ends(c.log).last_crc);
    assert_int_equal(etcd_log_resign(c.log, NULL, &error), 0);
    assert_int_equal(etcd_log_lead(b.log, b.lease, STR("b"), NULL, &error), ERROR_CORRUPT);
    assert_int_equal(etcd_log_refresh(c.log, &seen, &error), 0);
    assert_int_equal(seen.leader_term, 0);
    side_close(&a);
    side_close(&b);
    side_close(&c);
}

/* A reader whose state is a snapshot behind the last record has read none of them, and yet knows that one. */
static void a_reader_from_the_end_knows_it(void **state)
{
    struct side a = {0}, b = {0}, c = {0}, d = {0};
    struct error error;
    write_and_read(&a, &b);
    side_open(&d);
    assert_int_equal(read_on(&d, &error), 0);
    write_anew(10, 4, &c);
    assert_int_equal(read_on(&d, &error), ERROR_CORRUPT);
    assert_names(&error, READ, a.store.ends(a.log).last_crc, crc_of(&c, READ));
    side_close(&a);
    side_close(&b);
    side_close(&c);
    side_close(&d);
}

/* A log with the same records in etcd again, as from a backup that lacks nothing: the follower goes on. */
static void the_same_history_is_taken(void **state)
{
    static const uint8_t salts[16] = {0};
    struct side a = {0}, b = {0}, c = {0};
    write_and_read(&a, &b);
    members_wipe(&members);
    side_open(&c);
    assert_int_equal(side_lead(&c, false), 1);
    append_well(&c, 5, 0);
    append_well(&c, 5, 0);
    assert_int_equal(side_read(&b, READ + 1, salts), 10);
    side_close(&a);
    side_close(&b);
    side_close(&c);
}

/* --- damage ------------------------------------------------------------------------------------------- */

/* The records are whole, and the head names another last one. */
static void the_last_record_is_the_heads(void **state)
{
    struct side a = {0}, b = {0};
    struct error error;
    struct store_record record;
    struct store_verify_result result;
    struct buf text BUF_CLEANUP = {0};
    void *cursor;
    write_and_read(&a, &b);
    side_close(&b);
    struct etcd_head head = a.log->head;
    char want[64];
    snprintf(want, sizeof want, "record 6 has the checksum %08x, but its head says %08x", head.last_crc,
             head.last_crc ^ 1);
    head.last_crc ^= 1;
    etcd_head_write(&head, &text);
    members_put_well(&members, etcd_key_of(members.options.prefix, ETCD_HEAD, 0, 0), buf_str(&text));
    side_open(&b);
    assert_int_equal(b.store.read(b.log, 1, &cursor, &error), 0);
    for (int i = 1; i < READ; i++)
        assert_int_equal(b.store.next(cursor, &record, &error), 1);
    assert_int_equal(b.store.next(cursor, &record, &error), ERROR_CORRUPT);
    assert_non_null(strstr(error.text, want));
    b.store.cursor_free(cursor);
    assert_int_equal(b.store.verify(b.log, NULL, NULL, &result, &error), ERROR_CORRUPT);
    assert_int_equal(result.records, READ - 1);
    side_close(&a);
    side_close(&b);
}

static void damage_is_reported(void **state)
{
    struct side a = {0};
    struct error error;
    struct store_verify_result result;
    struct store_record record;
    struct buf group BUF_CLEANUP = {0}, head BUF_CLEANUP = {0};
    const char *prefix = members.options.prefix;
    void *cursor;
    side_open(&a);
    assert_int_equal(side_lead(&a, false), 1);
    for (int i = 0; i < 3; i++)
        append_well(&a, 2, 0);
    assert_int_equal(a.store.verify(a.log, NULL, NULL, &result, &error), 0);
    assert_int_equal(result.records, 6);
    etcd_group_begin(&group, 3, 2, 77); /* a whole group that follows another one */
    etcd_group_add(&group, 1, STR("x"), 1);
    etcd_group_add(&group, 2, STR("y"), 2);
    etcd_group_end(&group);
    members_put_well(&members, etcd_key_of(prefix, ETCD_GROUP, 3, 0), buf_str(&group));
    assert_int_equal(a.store.read(a.log, 1, &cursor, &error), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(a.store.next(cursor, &record, &error), 1);
    assert_int_equal(a.store.next(cursor, &record, &error), ERROR_CORRUPT);
    assert_non_null(strstr(error.text, "record 3"));
    assert_int_equal(a.store.next(cursor, &record, &error), ERROR_CORRUPT);
    a.store.cursor_free(cursor);
    assert_int_equal(a.store.verify(a.log, NULL, NULL, &result, &error), ERROR_CORRUPT);
    struct etcd_seen seen;
    etcd_head_write(&(struct etcd_head){.last_seq = 2}, &head);
    members_put_well(&members, etcd_key_of(prefix, ETCD_HEAD, 0, 0), buf_str(&head)); /* an older head */
    assert_int_equal(etcd_log_refresh(a.log, &seen, &error), ERROR_CORRUPT);
    members_put_well(&members, etcd_key_of(prefix, ETCD_HEAD, 0, 0), STR("phalanx-log-1 6 1 0 0 1"));
    assert_int_equal(etcd_log_refresh(a.log, &seen, &error), ERROR_CORRUPT);
    side_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_history_is_refused),
        cmocka_unit_test_setup(another_history_of_the_same_length, set_up),
        cmocka_unit_test_setup(a_reader_from_the_end_knows_it, set_up),
        cmocka_unit_test_setup(the_same_history_is_taken, set_up),
        cmocka_unit_test_setup(the_last_record_is_the_heads, set_up),
        cmocka_unit_test_setup(damage_is_reported, set_up),
    };
    members_need();
    members_start(&members, 1, NULL);
    members.options.lease_s = 120;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    members_stop(&members);
    return failed;
}
