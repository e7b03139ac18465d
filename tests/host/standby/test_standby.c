/* Standbys on a real etcd: one of two leads, the other follows, and takes over when the first hands over; the
 * first follows on, and takes over in its turn. A log that is not the one that was applied ends all that. */
#include "host/store/etcd/members.h"

#include "core/log/record.h"
#include "host/patience.h"
#include "host/standby/internal.h"

static struct members members;

struct bed {
    uv_loop_t loop;
    struct patience patience;
    struct standby *standby;
};

static char lost_why[ERROR_TEXT_MAX]; /* empty: no leader has lost the lead */

static void on_lost(const char *why)
{
    snprintf(lost_why, sizeof lost_why, "%s", why);
}

static void bed_open(struct bed *bed)
{
    struct standby_options options = {.etcd = members.options, .api_address = "127.0.0.1", .lost = on_lost};
    struct error error;
    lost_why[0] = 0;
    assert_int_equal(uv_loop_init(&bed->loop), 0);
    if (standby_new(&bed->loop, &options, &bed->standby, &error) < 0)
        fail_msg("%s", error.text);
}

static void bed_close(struct bed *bed)
{
    standby_close(bed->standby);
    uv_run(&bed->loop, UV_RUN_DEFAULT);
    standby_free(bed->standby);
    assert_int_equal(uv_loop_close(&bed->loop), 0);
}

static void the_first_leads(void **state)
{
    struct bed first = {0}, second = {0};
    bed_open(&first);
    uv_run(&first.loop, UV_RUN_DEFAULT); /* until it leads */
    assert_true(standby_leads(first.standby));
    bed_open(&second);
    for (int i = 0; i < 100; i++)
        uv_run(&second.loop, UV_RUN_NOWAIT);
    assert_false(standby_leads(second.standby));
    const struct controller_shared *shared = standby_shared(first.standby);
    assert_true(shared->leads_until_ns(shared->context) > 0);
    shared->hands_over(shared->context);
    shared->resign(shared->context);
    assert_false(standby_leads(first.standby));
    uv_run(&second.loop, UV_RUN_DEFAULT);
    assert_true(standby_leads(second.standby));
    standby_follow_on(first.standby); /* what it knows is the log's state: nothing is read again */
    for (int i = 0; i < 100; i++)
        uv_run(&first.loop, UV_RUN_NOWAIT);
    assert_false(standby_leads(first.standby));
    shared = standby_shared(second.standby);
    shared->hands_over(shared->context);
    shared->resign(shared->context);
    uv_run(&first.loop, UV_RUN_DEFAULT);
    assert_true(standby_leads(first.standby));
    assert_string_equal(lost_why, "");
    standby_leave(second.standby); /* its clients are none: the loop ends */
    uv_run(&second.loop, UV_RUN_DEFAULT);
    assert_false(standby_leads(second.standby));
    bed_close(&first);
    bed_close(&second);
}

/* Puts the leader key as a take-over by the only announced replica does, under its lease. */
static void lead_in_its_name(struct etcd_client *client)
{
    const char *prefix = members.options.prefix;
    struct etcd_txn txn ETCD_TXN_CLEANUP = {0};
    struct arena arena ARENA_CLEANUP = {0};
    struct etcd_key leader = etcd_key_of(prefix, ETCD_LEADER, 0, 0);
    struct etcd_key from = etcd_key_of(prefix, ETCD_REPLICA, 0, 0), to = etcd_key_end(prefix, ETCD_REPLICA);
    struct etcd_replica replica;
    struct etcd_pair pair;
    struct doc *reply;
    struct error error;
    int64_t until_ns = etcd_mono_ns() + 60 * NS_PER_SECOND;
    assert_int_equal(etcd_range(client, etcd_key_str(&from), etcd_key_str(&to), 0, false, false, until_ns,
                                &arena, &reply, &error),
                     0);
    assert_int_equal(etcd_pair_at(reply, 0, &arena, &pair, &error), 1);
    assert_true(etcd_replica_read(pair.value, &replica));
    etcd_txn_begin(&txn);
    etcd_txn_then(&txn);
    etcd_txn_put(&txn, etcd_key_str(&leader), str_from(replica.who), pair.lease);
    if (etcd_txn_run(&txn, client, until_ns, &arena, &reply, NULL, &error) < 0)
        fail_msg("%s", error.text);
}

/* A take-over goes through and its answer is lost: the standby finds its own key, and leads. */
static void a_take_over_without_an_answer(void **state)
{
    struct bed bed = {0};
    struct etcd_log *log;
    struct etcd_lease *lease;
    struct etcd_client *client;
    struct etcd_replicas replicas = {0};
    struct error error;
    members_fresh(&members);
    assert_int_equal(etcd_log_open(&members.options, &log, &error), 0);
    assert_int_equal(etcd_lease_new(&members.options, &lease, &error), 0);
    assert_int_equal(etcd_log_lead(log, lease, STR("another one"), NULL, &error), 1);
    bed_open(&bed);
    patience_init(&bed.patience, &bed.loop);
    PATIENT_UNTIL(&bed.patience, etcd_log_replicas(log, &replicas, &error) == 0 && replicas.count == 1);
    assert_false(standby_leads(bed.standby));
    assert_int_equal(etcd_client_new(&members.options, &client, &error), 0);
    lead_in_its_name(client);
    PATIENT_UNTIL(&bed.patience, standby_leads(bed.standby));
    etcd_client_free(client);
    etcd_log_close(log);
    etcd_lease_end(lease);
    patience_done(&bed.patience);
    bed_close(&bed);
}

/* --- another log -------------------------------------------------------------------------------------- */

/* Appends `count` records that say that time has passed, the first of them at `stamp_ns`. */
static void append_ticks(const struct log_store *store, size_t count, int64_t stamp_ns)
{
    struct event tick = {.kind = EVENT_TICK};
    struct buf bytes BUF_CLEANUP = {0};
    struct error error;
    record_encode(&bytes, &tick);
    for (size_t i = 0; i < count; i++) {
        struct store_record record = {store->ends(store->context).last + 1, stamp_ns + (int64_t)i,
                                      buf_str(&bytes)};
        if (store->append(store->context, &record, 1, &error) < 0)
            fail_msg("%s", error.text);
    }
}

/* Begins a log, or begins it anew: it has `count` records, and nobody leads. */
static void write_log(size_t count, int64_t stamp_ns)
{
    struct etcd_log *log;
    struct etcd_lease *lease;
    struct error error;
    members_wipe(&members);
    assert_int_equal(etcd_log_open(&members.options, &log, &error), 0);
    assert_int_equal(etcd_lease_new(&members.options, &lease, &error), 0);
    assert_int_equal(etcd_log_lead(log, lease, STR("a writer"), NULL, &error), 1);
    struct log_store store = etcd_log_store(log);
    append_ticks(&store, count, stamp_ns);
    etcd_log_close(log);
    etcd_lease_end(lease);
}

/* Etcd is put back to a backup, and the log grows past what the standby has applied: it neither follows nor
 * leads, and says why. */
static void another_history_ends_a_standby(void **state)
{
    struct bed bed = {0};
    struct error error;
    members_fresh(&members);
    write_log(4, 1000);
    bed_open(&bed);
    patience_init(&bed.patience, &bed.loop);
    write_log(6, 2000);
    PATIENT_UNTIL(&bed.patience, standby_failed(bed.standby, &error) < 0);
    assert_int_equal(error.code, ERROR_CORRUPT);
    assert_non_null(strstr(error.text, "following the log in etcd behind record 4: record 4 in etcd has"));
    assert_non_null(strstr(error.text, "another history"));
    assert_false(standby_leads(bed.standby));
    patience_done(&bed.patience);
    bed_close(&bed);
}

/* A rewritten log under a leader, which finds another head than its own before it appends again. */
static void another_history_ends_a_leadership(void **state)
{
    struct bed bed = {0};
    struct buf text BUF_CLEANUP = {0};
    members_fresh(&members);
    bed_open(&bed);
    uv_run(&bed.loop, UV_RUN_DEFAULT);
    assert_true(standby_leads(bed.standby));
    append_ticks(&standby_shared(bed.standby)->log, 2, 1000);
    patience_init(&bed.patience, &bed.loop);
    standby_on_step_down(bed.standby, NULL, NULL);
    etcd_head_write(&(struct etcd_head){.last_seq = 2, .last_crc = 77}, &text);
    members_put_well(&members, etcd_key_of(members.options.prefix, ETCD_HEAD, 0, 0), buf_str(&text));
    PATIENT_UNTIL(&bed.patience, lost_why[0]);
    assert_non_null(strstr(lost_why, "record 2 in etcd has the checksum 0000004d"));
    patience_done(&bed.patience);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_leads),
        cmocka_unit_test(a_take_over_without_an_answer),
        cmocka_unit_test(another_history_ends_a_standby),
        cmocka_unit_test(another_history_ends_a_leadership),
    };
    members_need();
    members_start(&members, 1, NULL);
    members.options.lease_s = 120;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    members_stop(&members);
    return failed;
}
