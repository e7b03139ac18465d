/* The log on three etcd members that die, stand still and come back, under leaders that come and go: one
 * history, nothing acknowledged lost, and nothing written by a controller that leads no more. */
#include "host/store/etcd/proxy.h"
#include "host/store/etcd/side.h"

static int set_up(void **state)
{
    members_fresh(&members);
    return 0;
}

/* --- leaders ------------------------------------------------------------------------------------------ */

static void one_leads(void **state)
{
    struct side a = {0}, b = {0};
    struct error error;
    uint8_t salts[64] = {0};
    side_open(&a);
    side_open(&b);
    assert_int_equal(side_append(&a, 1, 0, &error), ERROR_FENCED); /* nobody does yet */
    assert_int_equal(side_lead(&a, false), 1);
    assert_int_equal(side_lead(&b, false), 0);
    append_well(&a, 3, 1);
    assert_int_equal(side_lead(&b, true), 1);
    assert_int_equal(b.store.ends(b.log).last, 3);
    assert_int_equal(side_append(&a, 2, 1, &error), ERROR_FENCED);
    assert_int_equal(etcd_log_term(a.log), 0);
    assert_int_equal(etcd_lease_renew(a.lease, &error), ERROR_FENCED); /* it was revoked */
    assert_int_equal(etcd_lease_until_ns(a.lease), 0);
    append_well(&b, 4, 2);
    memset(salts, 1, 4);
    memset(salts + 4, 2, 4);
    assert_int_equal(side_read(&a, 1, salts), 7);
    struct etcd_seen seen;
    assert_int_equal(etcd_log_refresh(a.log, &seen, &error), 0);
    assert_string_equal(seen.who, "a side");
    assert_int_equal(seen.leader_term, etcd_log_term(b.log));
    side_close(&a);
    side_close(&b);
}

/* The old leader's transaction reaches etcd after the new one's take-over, and after its appends. */
static void late_append_changes_nothing(void **state)
{
    struct side a = {0}, b = {0};
    struct error error;
    uint8_t salts[64] = {0};
    side_open(&a);
    side_open(&b);
    assert_int_equal(side_lead(&a, false), 1);
    append_well(&a, 3, 1);
    int64_t term = etcd_log_term(a.log), until_ns;
    struct etcd_lease *lease = NULL;
    assert_int_equal(side_lead(&b, true), 1);
    assert_int_equal(etcd_lease_new(&members.options, &lease, &error), 0); /* it still believes to lead */
    a.log->term = term;
    a.log->lease = lease;
    until_ns = etcd_lease_until_ns(lease);
    assert_true(until_ns > 0);
    assert_int_equal(side_append(&a, 2, 1, &error), ERROR_FENCED);
    append_well(&b, 1, 2);
    a.log->term = term;
    assert_int_equal(side_append(&a, 2, 1, &error), ERROR_FENCED);
    memset(salts, 1, 4);
    salts[4] = 2;
    assert_int_equal(side_read(&a, 1, salts), 4);
    side_close(&a);
    side_close(&b);
    etcd_lease_end(lease);
}

/* A controller that takes over from a leader dies before it has the key: the leader, which lives, learns of
 * it all the same. */
static void a_replaced_leader_learns_first(void **state)
{
    struct side a = {0}, b = {0};
    struct etcd_seen seen;
    struct error error;
    char body[64];
    side_open(&a);
    side_open(&b);
    assert_int_equal(side_lead(&a, false), 1);
    side_lease(&b);
    snprintf(body, sizeof body, "{\"ID\":\"%lld\"}", (long long)etcd_lease_id(b.lease));
    members_call(&members, "/v3/lease/revoke", body); /* so its key cannot be put */
    assert_int_equal(etcd_log_refresh(b.log, &seen, &error), 0);
    assert_true(etcd_log_lead(b.log, b.lease, STR("b"), &seen, &error) < 0);
    assert_int_equal(etcd_lease_renew(a.lease, &error), ERROR_FENCED);
    assert_int_equal(etcd_log_refresh(b.log, &seen, &error), 0);
    assert_int_equal(seen.leader_term, 0);
    side_close(&a);
    side_close(&b);
}

static void hand_over(void **state)
{
    struct side a = {0}, b = {0};
    struct etcd_seen seen;
    struct error error;
    side_open(&a);
    side_open(&b);
    assert_int_equal(etcd_log_ask_step_down(b.log, &seen, &error), ERROR_NOT_FOUND);
    assert_int_equal(side_lead(&a, false), 1);
    append_well(&a, 2, 0);
    assert_int_equal(etcd_log_ask_step_down(b.log, &seen, &error), 0);
    assert_int_equal(etcd_log_refresh(b.log, &seen, &error), 0);
    assert_int_equal(seen.step_down_term, etcd_log_term(a.log));
    assert_int_equal(etcd_log_resign(a.log, NULL, &error), 0);
    assert_int_equal(side_append(&a, 1, 0, &error), ERROR_FENCED);
    assert_int_equal(etcd_log_refresh(b.log, &seen, &error), 0);
    assert_int_equal(seen.leader_term, 0);
    assert_int_equal(side_lead(&b, false), 1);
    assert_int_equal(etcd_log_refresh(b.log, &seen, &error), 0);
    assert_int_equal(seen.step_down_term, 0); /* it was for another leadership */
    append_well(&b, 1, 0);
    side_close(&a);
    side_close(&b);
}

/* Announces the side, and returns its announcement as the others see it. */
static struct etcd_replica side_announce(struct side *side, const char *who)
{
    struct etcd_replica replica = {.version = "1"};
    struct etcd_replicas found;
    struct error error;
    side_lease(side);
    snprintf(replica.who, sizeof replica.who, "%s", who);
    assert_int_equal(etcd_log_announce(side->log, side->lease, &replica, &error), 0);
    assert_int_equal(etcd_log_replicas(side->log, &found, &error), 0);
    for (size_t i = 0; i < found.count; i++)
        if (strcmp(found.items[i].who, who) == 0)
            return found.items[i];
    fail_msg("%s is not announced", who);
    return replica;
}

/* `a` leads and has appended two records, `b` is announced, `c` is there. Returns the announcement. */
static struct etcd_replica lead_with_successor(struct side *a, struct side *b, struct side *c)
{
    side_open(a);
    side_open(b);
    side_open(c);
    assert_int_equal(side_lead(a, false), 1);
    append_well(a, 2, 0);
    return side_announce(b, "b");
}

/* The leader names its successor, which finds the lead in its hands. */
static void hand_over_to_another(void **state)
{
    struct side a = {0}, b = {0}, c = {0};
    struct etcd_seen seen;
    struct error error;
    uint8_t salts[64] = {0};
    struct etcd_replica successor = lead_with_successor(&a, &b, &c);
    members_put_well(&members, etcd_key_of(members.options.prefix, ETCD_GROUP, 3, 1),
                     STR("a part that nobody finished"));
    assert_int_equal(etcd_log_resign(a.log, &successor, &error), 0);
    assert_int_equal(side_append(&a, 1, 0, &error), ERROR_FENCED);
    assert_int_equal(side_lead(&c, false), 0); /* it is not free */
    assert_int_equal(etcd_log_refresh(b.log, &seen, &error), 0);
    assert_int_equal(seen.leader_lease, etcd_lease_id(b.lease));
    assert_string_equal(seen.who, "b");
    assert_int_equal(etcd_log_lead(b.log, b.lease, STR("b"), &seen, &error), 1);
    assert_int_equal(etcd_log_term(b.log), seen.leader_term);
    append_well(&b, 1, 0);
    assert_int_equal(side_read(&c, 1, salts), 3);
    side_close(&a);
    side_close(&b);
    side_close(&c);
}

/* The lease of the one that was to follow has ended: whoever asks next takes the lead. */
static void hand_over_to_one_that_is_gone(void **state)
{
    struct side a = {0}, b = {0}, c = {0};
    struct error error;
    struct etcd_replica successor = lead_with_successor(&a, &b, &c);
    side_close(&b);
    assert_int_equal(etcd_log_resign(a.log, &successor, &error), 0);
    assert_int_equal(side_lead(&c, false), 1);
    append_well(&c, 1, 0);
    side_close(&a);
    side_close(&c);
}

static void leadership_ends_with_its_lease(void **state)
{
    struct side a = {0}, b = {0};
    struct etcd_options options = members.options;
    struct etcd_watch *watch;
    struct etcd_seen seen;
    struct error error;
    options.lease_s = 1;
    side_open(&a);
    side_open(&b);
    assert_int_equal(etcd_lease_new(&options, &a.lease, &error), 0);
    assert_true(etcd_lease_until_ns(a.lease) < etcd_mono_ns() + etcd_lease_length_ns(a.lease));
    assert_int_equal(side_lead(&a, false), 1);
    assert_int_equal(etcd_log_watch(&members.options, &watch, &error), 0);
    do { /* nobody renews it */
        assert_true(etcd_watch_wait(watch, etcd_mono_ns() + 60 * NS_PER_SECOND) >= 0);
        assert_int_equal(etcd_log_refresh(b.log, &seen, &error), 0);
    } while (seen.leader_term);
    assert_true(etcd_mono_ns() > etcd_lease_until_ns(a.lease)); /* its owner knew before */
    assert_int_equal(side_append(&a, 1, 0, &error), ERROR_FENCED);
    assert_int_equal(etcd_lease_renew(a.lease, &error), ERROR_FENCED);
    assert_int_equal(side_lead(&b, false), 1);
    etcd_watch_free(watch);
    side_close(&a);
    side_close(&b);
}

/* --- torn, restored ------------------------------------------------------------------------------------ */

/* A leader dies between the parts of a group: the next one writes another group in that place. */
static void torn_group_is_dropped(void **state)
{
    struct side a = {0}, b = {0};
    uint8_t salts[64] = {0};
    const char *prefix = members.options.prefix;
    side_open(&a);
    assert_int_equal(side_lead(&a, false), 1);
    append_well(&a, 3, 1);
    members_put_well(&members, etcd_key_of(prefix, ETCD_GROUP, 4, 0),
                     STR("PhxGrp1\0 a part of a larger group"));
    members_put_well(&members, etcd_key_of(prefix, ETCD_GROUP, 4, 1), STR("and another"));
    memset(salts, 1, 4);
    assert_int_equal(side_read(&a, 1, salts), 3);
    side_open(&b);
    assert_int_equal(side_lead(&b, true), 1);
    append_well(&b, 2, 2);
    salts[4] = salts[5] = 2;
    assert_int_equal(side_read(&a, 1, salts), 5);
    side_close(&a);
    side_close(&b);
}

/* A controller whose lease still runs takes the lead again that it has lost: it is another leadership, under
 * which nothing of the one before comes late, and what that left behind the log's end is gone. */
static void a_fenced_leader_leads_anew(void **state)
{
    struct side a = {0};
    struct error error;
    struct store_verify_result result;
    side_open(&a);
    assert_int_equal(side_lead(&a, false), 1);
    append_well(&a, 2, 0);
    int64_t term = etcd_log_term(a.log);
    members_put_well(&members, etcd_key_of(members.options.prefix, ETCD_GROUP, 3, 1),
                     STR("of a group that was never finished"));
    assert_int_equal(etcd_fenced(a.log, &error, "an append was not answered"), ERROR_FENCED);
    assert_int_equal(side_lead(&a, true), 1);
    assert_true(etcd_log_term(a.log) != term);
    append_well(&a, 1, 0);
    append_well(&a, 1, 0);
    if (a.store.verify(a.log, NULL, NULL, &result, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(result.records, 4);
    side_close(&a);
}

/* A controller takes over with an old view of the log: it removes nothing that was appended since. */
static void a_take_over_removes_no_record(void **state)
{
    struct side a = {0}, b = {0};
    struct error error;
    uint8_t salts[64] = {0};
    side_open(&a);
    assert_int_equal(side_lead(&a, false), 1);
    append_well(&a, 2, 0);
    side_open(&b);
    side_lease(&b);
    append_well(&a, 3, 0);
    assert_int_equal(etcd_log_resign(a.log, NULL, &error), 0);
    assert_int_equal(etcd_log_lead(b.log, b.lease, STR("b"), NULL, &error), 1);
    assert_int_equal(side_read(&b, 1, salts), 5);
    append_well(&b, 1, 0);
    side_close(&a);
    side_close(&b);
}

static bool is_restored(struct side *side)
{
    struct store_stats stats;
    struct error error;
    if (side->store.stats(side->log, &stats, &error) < 0)
        fail_msg("%s", error.text);
    return stats.restored;
}

/* A log that was copied from a backup is known as such until a leader appends. */
static void a_restored_log_says_so(void **state)
{
    struct side copier = {0}, next = {0};
    struct error error;
    members.options.restores = true;
    side_open(&copier);
    members.options.restores = false;
    assert_int_equal(side_lead(&copier, false), 1);
    append_well(&copier, 2, 0);
    append_well(&copier, 1, 0);
    assert_int_equal(etcd_log_resign(copier.log, NULL, &error), 0);
    side_close(&copier);
    side_open(&next);
    assert_int_equal(side_lead(&next, false), 1);
    assert_true(is_restored(&next));
    append_well(&next, 1, 0);
    assert_false(is_restored(&next));
    side_close(&next);
}

/* --- members ------------------------------------------------------------------------------------------ */

/* Members are killed and stopped, one at a time, while a leader appends. */
static void members_come_and_go(void **state)
{
    enum { KILL_LEADER, STOP_LEADER, KILL_FOLLOWER, WAYS };
    struct side a = {0}, b = {0};
    uint8_t salts[64] = {0};
    uint64_t last = 0;
    side_open(&a);
    side_open(&b);
    assert_int_equal(side_lead(&a, false), 1);
    for (int way = 0; way < WAYS; way++) {
        int leader = members_leader(&members), victim = way == KILL_FOLLOWER ? (leader + 1) % 3 : leader;
        if (way == STOP_LEADER)
            kill(members.pids[victim], SIGSTOP);
        else
            members_kill(&members, victim);
        append_well(&a, 3, 0);
        append_well(&a, 3, 0);
        last += 6;
        assert_int_equal(side_read(&b, 1, salts), last);
        if (way == STOP_LEADER)
            kill(members.pids[victim], SIGCONT);
        else
            members_start_one(&members, victim);
    }
    append_well(&a, 1, 0);
    assert_int_equal(side_read(&b, 1, salts), last + 1);
    side_close(&a);
    side_close(&b);
}

/* Without a majority the lease ends before an answer comes: the append is in the log or not, whole. */
static void majority_lost(void **state)
{
    struct side a = {0}, b = {0};
    struct etcd_options options = members.options;
    struct error error;
    uint8_t salts[64] = {0};
    options.lease_s = 2;
    side_open(&a);
    assert_int_equal(etcd_lease_new(&options, &a.lease, &error), 0);
    assert_int_equal(side_lead(&a, false), 1);
    append_well(&a, 3, 0);
    members_kill(&members, 0);
    members_kill(&members, 1);
    int rc = side_append(&a, 2, 0, &error);
    assert_int_equal(rc, ERROR_FENCED);
    assert_true(etcd_mono_ns() >= etcd_lease_until_ns(a.lease));
    members_start_one(&members, 0);
    members_start_one(&members, 1);
    members_wait(&members);
    side_open(&b);
    assert_int_equal(side_lead(&b, true), 1); /* until here the append may still be carried out */
    uint64_t last = side_read(&b, 1, salts);
    assert_true(last == 3 || last == 5);
    append_well(&b, 2, 0);
    assert_int_equal(side_read(&b, 1, salts), last + 2);
    side_close(&a);
    side_close(&b);
}

/* --- followers ---------------------------------------------------------------------------------------- */

static void watch_wakes(void **state)
{
    struct side a = {0};
    struct etcd_watch *watch;
    struct error error;
    int64_t far_ns = etcd_mono_ns() + 300 * NS_PER_SECOND;
    side_open(&a);
    assert_int_equal(etcd_log_watch(&members.options, &watch, &error), 0);
    assert_int_equal(etcd_watch_wait(watch, far_ns), 1); /* it is set up */
    assert_int_equal(side_lead(&a, false), 1);
    assert_int_equal(etcd_watch_wait(watch, far_ns), 1);
    append_well(&a, 1, 0);
    assert_int_equal(etcd_watch_wait(watch, far_ns), 1);
    for (int i = 0; i < 3; i++) { /* wherever it is connected */
        members_kill(&members, i);
        members_start_one(&members, i);
        members_wait(&members);
    }
    assert_int_equal(etcd_watch_wait(watch, far_ns), 1); /* it has been set up again */
    etcd_watch_wake(watch);
    while (etcd_watch_wait(watch, far_ns) == 1)
        etcd_watch_wake(watch);
    etcd_watch_free(watch);
    side_close(&a);
}

/* A member that takes the connection and says nothing: the wait goes on to its end, though libcurl wakes up
 * in between for timers of its own. */
static void watch_waits_for_a_silent_member(void **state)
{
    int fd;
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", members_port(&fd));
    assert_int_equal(listen(fd, 8), 0);
    struct etcd_options options = {.endpoints = endpoint};
    struct etcd_watch *watch;
    struct error error;
    assert_int_equal(etcd_log_watch(&options, &watch, &error), 0);
    int64_t until_ns = etcd_mono_ns() + 1500 * NS_PER_MS; /* the limit of a connection is one second */
    assert_int_equal(etcd_watch_wait(watch, until_ns), 0);
    assert_true(etcd_mono_ns() >= until_ns);
    etcd_watch_wake(watch); /* from before the wait, too */
    assert_int_equal(etcd_watch_wait(watch, until_ns + 300 * NS_PER_SECOND), 0);
    assert_true(etcd_mono_ns() < until_ns + 300 * NS_PER_SECOND);
    etcd_watch_free(watch);
    close(fd);
}

/* --- a full etcd -------------------------------------------------------------------------------------- */

/* Records of a mebibyte each; the group needs a part for each of them and one more. */
static int append_large(struct side *side, size_t count, struct error *error)
{
    enum { LARGE_MAX = 30 };
    struct store_record records[LARGE_MAX];
    struct buf bytes[LARGE_MAX] = {0};
    uint64_t last = side->store.ends(side->log).last;
    CHECK(count <= LARGE_MAX);
    for (size_t i = 0; i < count; i++)
        records[i] = (struct store_record){last + 1 + i, STAMP_NS(last + 1 + i),
                                           sample_state(&bytes[i], last + 1 + i, 1 << 20)};
    int rc = side->store.append(side->log, records, count, error);
    for (size_t i = 0; i < count; i++)
        buf_done(&bytes[i]);
    return rc;
}

/* etcd refuses a later part of a group. The next append in that place is smaller: the refused group's earlier
 * parts are gone, and the log reads on. */
static void parts_of_a_refused_group(void **state)
{
    struct members small, kept = members;
    struct side a = {0};
    struct error error;
    struct store_verify_result result;
    struct buf value BUF_CLEANUP = {0};
    members_start(&small, 1, "33554432");
    small.options.lease_s = 120;
    small.options.prefix = members.options.prefix;
    members = small; /* of which the sides are */
    sample_state(&value, 1, 1 << 20);
    for (int i = 0; i < 8; i++)
        members_put_well(&members, (struct etcd_key){.text = "/other", .len = 6}, buf_str(&value));
    side_open(&a);
    assert_int_equal(side_lead(&a, false), 1);
    append_well(&a, 2, 0);
    int rc = append_large(&a, 30, &error); /* with the others it is too much */
    assert_true(a.log->left_parts > 1);
    if (a.log->unsure) /* on a slow computer a part was sent twice: one of them could come late */
        assert_int_equal(rc, ERROR_FENCED);
    else
        assert_int_equal(rc, ERROR_NO_SPACE);
    uint64_t last = a.store.ends(a.log).last;
    members_make_room(&members, a.log->revision);
    if (rc == ERROR_FENCED)
        assert_int_equal(side_lead(&a, true), 1);
    append_well(&a, 1, 0);
    append_well(&a, 1, 0);
    assert_int_equal(a.log->left_parts, 0);
    if (a.store.verify(a.log, NULL, NULL, &result, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(result.records, last + 2);
    side_close(&a);
    small = members;
    members = kept;
    members_stop(&small);
}

struct late_append {
    struct side *side;
    int rc;
    struct error error;
};

static void *append_three(void *context)
{
    struct late_append *late = context;
    late->rc = side_append(late->side, 3, 0, &late->error);
    return NULL;
}

/* An append goes through, its answer is lost, and etcd refuses it when it is sent again: no refusal. */
static void a_refusal_behind_a_lost_answer(void **state)
{
    static const uint8_t salts[8] = {0};
    struct members small, kept = members;
    struct side a = {0};
    struct late_append late = {.side = &a};
    struct proxy proxy;
    pthread_t thread;
    members_start(&small, 1, NULL);
    proxy_start(&proxy, small.client_ports[0]);
    members.options.endpoints = proxy.endpoint; /* the side's */
    side_open(&a);
    assert_int_equal(side_lead(&a, false), 1);
    append_well(&a, 2, 0);
    proxy_lose_answer(&proxy, true);
    assert_int_equal(pthread_create(&thread, NULL, append_three, &late), 0);
    gate_wait(&proxy.gate, 1); /* it is sent again */
    members_alarm(&small, "ACTIVATE");
    gate_open(&proxy.gate);
    pthread_join(thread, NULL);
    assert_int_equal(late.rc, ERROR_FENCED);
    members_alarm(&small, "DEACTIVATE");
    assert_int_equal(side_lead(&a, true), 1);
    assert_int_equal(side_read(&a, 1, salts), 5);
    side_close(&a);
    proxy_stop(&proxy);
    members = kept;
    members_stop(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_leads, set_up),
        cmocka_unit_test_setup(a_restored_log_says_so, set_up),
        cmocka_unit_test_setup(late_append_changes_nothing, set_up),
        cmocka_unit_test_setup(a_fenced_leader_leads_anew, set_up),
        cmocka_unit_test_setup(a_replaced_leader_learns_first, set_up),
        cmocka_unit_test_setup(hand_over, set_up),
        cmocka_unit_test_setup(hand_over_to_another, set_up),
        cmocka_unit_test_setup(hand_over_to_one_that_is_gone, set_up),
        cmocka_unit_test_setup(leadership_ends_with_its_lease, set_up),
        cmocka_unit_test_setup(torn_group_is_dropped, set_up),
        cmocka_unit_test_setup(a_take_over_removes_no_record, set_up),
        cmocka_unit_test_setup(members_come_and_go, set_up),
        cmocka_unit_test_setup(majority_lost, set_up),
        cmocka_unit_test_setup(watch_wakes, set_up),
        cmocka_unit_test(watch_waits_for_a_silent_member),
        cmocka_unit_test_setup(parts_of_a_refused_group, set_up),
        cmocka_unit_test_setup(a_refusal_behind_a_lost_answer, set_up),
    };
    members_need();
    members_start(&members, 3, NULL);
    members.options.lease_s = 120; /* unless a case is about leases */
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    members_stop(&members);
    return failed;
}
