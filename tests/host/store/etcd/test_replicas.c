/* Controllers register in a real etcd, and the leases of silent ones end. */
#include "host/store/etcd/internal.h"
#include "host/store/etcd/members.h"

static struct members members;

static void look(struct etcd_log *log, struct etcd_replicas *ret)
{
    struct error error;
    if (etcd_log_replicas(log, ret, &error) < 0)
        fail_msg("%s", error.text);
}

static void replicas_announce_what_they_read(void **state)
{
    struct etcd_replica mine = {.reads = 3, .level = 2, .version = "0.2.0", .who = "127.0.0.1:7070"};
    struct etcd_replicas seen;
    struct etcd_lease *lease, *silent;
    struct etcd_log *log;
    struct error error;
    members_fresh(&members);
    assert_int_equal(etcd_log_open(&members.options, &log, &error), 0);
    look(log, &seen);
    assert_int_equal(seen.count + seen.silent, 0);
    assert_int_equal(etcd_lease_new(&members.options, &lease, &error), 0);
    look(log, &seen);
    assert_true(seen.count == 0 && seen.silent == 1);
    assert_int_equal(etcd_log_announce(log, lease, &mine, &error), 0);
    mine.level = 3;
    assert_int_equal(etcd_log_announce(log, lease, &mine, &error), 0);
    look(log, &seen);
    assert_true(seen.count == 1 && seen.silent == 0);
    assert_true(seen.items[0].reads == 3 && seen.items[0].level == 3);
    assert_string_equal(seen.items[0].version, "0.2.0");
    assert_string_equal(seen.items[0].who, "127.0.0.1:7070");
    assert_int_equal(etcd_lease_new(&members.options, &silent, &error), 0);
    look(log, &seen);
    assert_true(seen.count == 1 && seen.silent == 1);
    etcd_lease_end(silent);
    etcd_lease_end(lease);
    look(log, &seen);
    assert_int_equal(seen.count + seen.silent, 0); /* an announcement ends with its lease */
    etcd_log_close(log);
}

static void announcements_that_cannot_be_read(void **state)
{
    static const char *const bad[] = {"", "phalanx-replica-1", "phalanx-replica-1 1 1 5 0.2.0 a:1",
                                      "phalanx-replica-2 1 1 0 0.2.0 a:1", "phalanx-replica-1 1 1 0.2.0 "};
    struct etcd_replica replica = {.reads = 1, .level = 1, .version = "0.2.0", .who = "a:1"}, again;
    struct buf line = {0};
    etcd_replica_write(&replica, &line);
    assert_true(etcd_replica_read(buf_str(&line), &again));
    for (size_t len = 0; len < line.len; len++)
        if (etcd_replica_read((struct str){line.data, len}, &again))
            assert_true(again.reads == 1 && strncmp(again.who, "a:1", strlen(again.who)) == 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(etcd_replica_read(str_from(bad[i]), &again));
    buf_done(&line);
}

int main(void)
{
    members_need();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(announcements_that_cannot_be_read),
        cmocka_unit_test(replicas_announce_what_they_read),
    };
    members_start(&members, 1, NULL);
    members.options.lease_s = 120;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    members_stop(&members);
    return failed;
}
