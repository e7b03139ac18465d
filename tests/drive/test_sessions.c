/* Agents' sessions: which one counts, who is answered, and what their ends prove. */
#include "drive/stand_in.h"
#include "drive/world.h"

static void test_first_message(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_beat(&w, 1);
    STORY(&w, "send 1 refused; close 1; ");
    assert_string_equal(w.refusal, "say hello first");
    world_hello(&w, 2, "stranger");
    STORY(&w, "send 2 refused; close 2; ");
    world_tether(&w, 3, "m-1", 1);
    world_beat(&w, 3);
    STORY(&w, "send 3 refused; close 3; ");
    assert_string_equal(w.refusal, "a tether says nothing");
    driver_closed(w.driver, 9, true, "of nobody"); /* not heard of */
    driver_closed(w.driver, 2, true, "was refused");
    STORY(&w, "");
    world_done(&w);
}

static void say_version(struct world *w, drive_session session, enum from_agent_kind kind, uint32_t version)
{
    struct from_agent message = {.kind = kind,
                                 .hello = {.version = version,
                                           .machine = STR("m-1"),
                                           .incarnation = 1,
                                           .connection = session,
                                           .chips = 4,
                                           .software = STR("test")}};
    driver_message(w->driver, session, &message);
    driver_turn(w->driver);
}

static void test_agents_of_other_releases(void **state)
{
    struct world w;
    world_init(&w, NULL);
    say_version(&w, 1, FROM_AGENT_HELLO, WIRE_VERSION + 1);
    assert_int_equal(driver_session(w.driver, 0), 1);
    say_version(&w, 2, FROM_AGENT_HELLO, WIRE_VERSION - 1);
    assert_int_equal(driver_session(w.driver, 0), 2);
    buf_clear(&w.story);
    say_version(&w, 3, FROM_AGENT_TETHER, WIRE_VERSION + 1);
    STORY(&w, "");
    say_version(&w, 4, FROM_AGENT_HELLO, WIRE_VERSION + 2);
    STORY(&w, "send 4 refused; close 4; ");
    assert_non_null(strstr(w.refusal, "version 3 of the wire, this controller version 1"));
    say_version(&w, 5, FROM_AGENT_TETHER, UINT32_MAX);
    STORY(&w, "send 5 refused; close 5; ");
    assert_int_equal(driver_session(w.driver, 0), 2); /* neither took the machine's place */
    world_done(&w);
}

static void test_nothing_is_sent_before_the_welcome(void **state)
{
    struct world w;
    world_init(&w, NULL);
    w.log_says = APPEND_LATER;
    world_hello(&w, 1, "m-1");
    driver_turn(w.driver);
    assert_int_equal(driver_session(w.driver, 0), 0);
    world_beat(&w, 1);
    STORY(&w, "append 1; send 1 beat; ");
    world_appended(&w, APPEND_DONE);
    STORY(&w, "step hello; send 1 welcome; ");
    assert_int_equal(driver_session(w.driver, 0), 1);
    world_done(&w);
}

/* Such a machine may run another cluster's tasks. Nothing of it reaches the log, or is taken for this
 * cluster's machine of that name. */
static void test_machines_of_another_cluster_are_refused(void **state)
{
    struct world w;
    world_init(&w, NULL);
    w.cluster = 0xabcdef;
    world_hello(&w, 1, "m-1");
    world_tether(&w, 2, "m-1", 1);
    driver_turn(w.driver);
    STORY(&w, "send 1 refused; close 1; send 2 refused; close 2; ");
    assert_non_null(strstr(w.refusal, "machine m-1 belongs to cluster 0000000000abcdef, and this"));
    assert_int_equal(w.driver->machines[0].evidence.tethers, 0);
    assert_true(w.told_cluster != 0 && w.told_cluster != 4711); /* no more than a hash of the identity */
    w.cluster = w.told_cluster;
    world_tether(&w, 3, "m-1", 2);
    world_hello(&w, 4, "m-1");
    driver_turn(w.driver);
    STORY(&w, "append 1; step hello; send 4 welcome; ");
    assert_int_equal(w.told_cluster, core_identity(w.core));
    assert_int_equal(w.driver->machines[0].evidence.tethers, 1);
    world_done(&w);
}

/* An agent that comes again and again while the log takes nothing leaves one Hello. */
static void test_hello_takes_the_place_of_a_queued_one(void **state)
{
    struct world w;
    world_init(&w, NULL);
    w.log_says = ERROR_NO_SPACE;
    for (drive_session session = 1; session <= 5; session++) {
        world_hello(&w, session, "m-1");
        driver_turn(w.driver);
    }
    assert_int_equal(w.driver->queue.len, 1);
    buf_clear(&w.story);
    w.log_says = APPEND_DONE;
    w.mono_ns += DRIVE_RETRY_NS;
    driver_turn(w.driver);
    STORY(&w, "append 1; log takes; step hello; send 5 welcome; ");
    world_done(&w);
}

/* A Hello that is being appended stays in the log, but its session is not welcomed. */
static void test_hello_while_one_is_appended(void **state)
{
    struct world w;
    world_init(&w, NULL);
    w.log_says = APPEND_LATER;
    world_hello(&w, 1, "m-1");
    driver_turn(w.driver);
    world_hello(&w, 2, "m-1");
    STORY(&w, "append 1; over m-1; close 1; ");
    world_appended(&w, APPEND_DONE);
    STORY(&w, "step hello; ");
    assert_int_equal(driver_session(w.driver, 0), 0);
    driver_turn(w.driver);
    world_appended(&w, APPEND_DONE);
    STORY(&w, "append 1; step hello; send 2 welcome; ");
    world_done(&w);
}

static void test_late_hello_is_refused(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_join(&w, 5, "m-1");
    world_hello(&w, 4, "m-1"); /* the connection before, held up on the way */
    STORY(&w, "send 4 refused; close 4; ");
    assert_int_equal(driver_session(w.driver, 0), 5);
    world_done(&w);
}

static void test_closed_session_is_not_answered(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_join(&w, 1, "m-1");
    w.log_says = APPEND_LATER;
    world_report(&w, 1, 1, REPORT_STARTED, 99);
    driver_turn(w.driver);
    world_report(&w, 1, 2, REPORT_STARTED, 99);
    driver_closed(w.driver, 1, true, "EOF");
    world_appended(&w, APPEND_DONE);
    driver_turn(w.driver);
    world_appended(&w, APPEND_DONE);
    STORY(&w, "append 1; over m-1; step reports; append 2; step reports; step gone; ");
    world_done(&w);
}

/* The agent alone died: AWAY once, however often it comes and goes. */
static void test_away_is_said_once(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_tether(&w, 11, "m-1", 1);
    world_join(&w, 1, "m-1");
    driver_closed(w.driver, 1, true, "EOF");
    driver_turn(w.driver);
    STORY(&w, "over m-1; append 1; step away; ");
    assert_int_equal(world_state(&w, 0), MACHINE_AWAY);
    w.log_says = ERROR_NO_SPACE;
    world_hello(&w, 2, "m-1"); /* waits for the log */
    driver_closed(w.driver, 2, true, "EOF");
    driver_turn(w.driver);
    STORY(&w, "over m-1; append 2; log refuses; "); /* its Hello would make it ready: AWAY is news again */
    w.log_says = APPEND_DONE;
    w.mono_ns += DRIVE_RETRY_NS;
    driver_turn(w.driver);
    STORY(&w, "append 2; log takes; step hello; step away; ");
    world_done(&w);
}

static void test_gone_by_evidence(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_tether(&w, 11, "m-1", 1);
    world_join(&w, 1, "m-1");
    world_pass(&w, 100);
    world_create(&w, 77, "train", 1);
    driver_turn(w.driver);
    buf_clear(&w.story);
    driver_closed(w.driver, 11, true, "EOF");
    driver_closed(w.driver, 1, true, "RST");
    driver_turn(w.driver);
    STORY(&w, "over m-1; append 1; step gone; ");
    assert_int_equal(world_state(&w, 0), MACHINE_LOST);
    assert_true(sessions_deadline(w.driver) == INT64_MAX); /* no lease is waited for */
    world_done(&w);
}

static void test_silence(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_join(&w, 1, "m-1");
    for (int i = 0; i < 10; i++) {
        world_pass(&w, 1000);
        world_beat(&w, 1);
    }
    assert_int_equal(world_state(&w, 0), MACHINE_READY);
    world_pass(&w, LEASE_MS);
    assert_int_equal(world_state(&w, 0), MACHINE_READY); /* the controller waits a tenth longer */
    buf_clear(&w.story);
    world_pass(&w, LEASE_MS / 10 + 200);
    STORY(&w, "over m-1; close 1; append 1; step silent; ");
    assert_int_equal(world_state(&w, 0), MACHINE_LOST);
    world_done(&w);
}

/* Messages that came while the host was busy are handed over before they count as missed. */
static void test_busy_host_misses_no_heartbeat(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_join(&w, 1, "m-1");
    w.mono_ns += 4 * NS_PER_SECOND; /* of which the host did not listen: a long turn */
    driver_timers(w.driver);        /* by when it last listened, nothing is overdue */
    world_beat(&w, 1);
    w.driver->listens = false;
    driver_turn(w.driver);
    world_listen(&w);
    driver_timers(w.driver);
    driver_turn(w.driver);
    STORY(&w, "");
    assert_int_equal(world_state(&w, 0), MACHINE_READY);
    world_done(&w);
}

/* The host stood still for a lease: as if it had been started anew, ahead of all that waits. */
static void test_host_that_stood_still(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_join(&w, 1, "m-1");
    world_join(&w, 2, "m-2");
    uint64_t epoch = core_epoch(w.core);
    (void)driver_wait(w.driver, w.mono_ns + 100 * NS_PER_MS);
    w.mono_ns += 4 * NS_PER_SECOND;
    w.wall_ns += 4 * NS_PER_SECOND;
    world_report(&w, 1, 1, REPORT_STARTED, 99);
    driver_turn(w.driver);
    STORY(&w, "over m-1; close 1; over m-2; close 2; append 2; step boot; step reports; ");
    assert_int_equal(core_epoch(w.core), epoch + 4000);
    assert_int_equal(world_state(&w, 0), MACHINE_AWAY);
    driver_turn(w.driver); /* once */
    STORY(&w, "");
    world_done(&w);
}

/* A Hello that is on its way into the log comes ahead of the boot, so its agent has to say it again; one
 * that waits comes after it. */
static void test_stood_still_while_a_hello_is_appended(void **state)
{
    struct world w;
    world_init(&w, NULL);
    w.log_says = APPEND_LATER;
    world_hello(&w, 1, "m-1");
    driver_turn(w.driver);
    world_hello(&w, 2, "m-2");
    (void)driver_wait(w.driver, w.mono_ns + 100 * NS_PER_MS);
    w.mono_ns += 4 * NS_PER_SECOND;
    w.wall_ns += 4 * NS_PER_SECOND;
    driver_turn(w.driver);
    STORY(&w, "append 1; over m-1; close 1; ");
    w.log_says = APPEND_DONE;
    world_appended(&w, APPEND_DONE);
    driver_turn(w.driver);
    STORY(&w, "step hello; append 2; step boot; step hello; send 2 welcome; ");
    assert_int_equal(world_state(&w, 0), MACHINE_AWAY);
    assert_int_equal(world_state(&w, 1), MACHINE_READY);
    world_join(&w, 3, "m-1");
    assert_int_equal(world_state(&w, 0), MACHINE_READY);
    world_done(&w);
}

/* Twice while the log takes nothing: one boot, or their epochs would not follow each other. */
static void test_stood_still_with_a_full_disk(void **state)
{
    struct world w;
    world_init(&w, NULL);
    uint64_t epoch = core_epoch(w.core);
    size_t length = w.log.len;
    w.log_says = ERROR_NO_SPACE;
    for (int i = 0; i < 2; i++) {
        (void)driver_wait(w.driver, w.mono_ns + 100 * NS_PER_MS);
        w.mono_ns += 4 * NS_PER_SECOND;
        driver_turn(w.driver);
    }
    assert_int_equal(w.driver->queue.len, 1);
    w.log_says = APPEND_LATER;
    w.mono_ns += DRIVE_RETRY_NS;
    driver_turn(w.driver); /* the boot is being appended */
    (void)driver_wait(w.driver, w.mono_ns + 100 * NS_PER_MS);
    w.mono_ns += 4 * NS_PER_SECOND;
    driver_turn(w.driver);
    world_appended(&w, APPEND_DONE);
    driver_turn(w.driver);
    world_appended(&w, APPEND_DONE);
    assert_int_equal(w.log.len, length + 2);
    assert_true(core_epoch(w.core) > epoch + 1);
    world_done(&w);
}

/* More is said than there is room for: it is not acknowledged, and asked for again. */
static void test_missed_news(void **state)
{
    struct world w;
    world_init(&w, &(struct driver_options){.queue_bytes_max = 3000});
    world_join(&w, 1, "m-1");
    w.log_says = ERROR_NO_SPACE;
    unsigned kept = 0;
    for (unsigned i = 1; i <= 100; i++) {
        world_report(&w, 1, i, REPORT_STARTED, 99);
        kept += !w.driver->machines[0].missed_news;
    }
    assert_true(kept > 0 && kept < 100);
    assert_int_equal(w.driver->queue.len, kept);
    assert_int_equal(w.driver->missing_news, 1);
    world_hello(&w, 2, "m-2"); /* no room for a Hello either: it comes again */
    driver_turn(w.driver);
    assert_non_null(strstr(w.story.data, "close 2; append "));
    buf_clear(&w.story);
    driver_timers(w.driver);
    STORY(&w, "");
    w.log_says = APPEND_DONE;
    w.mono_ns += DRIVE_RETRY_NS;
    driver_turn(w.driver);
    buf_clear(&w.story);
    driver_timers(w.driver); /* there is room: the agent shall say everything again */
    STORY(&w, "over m-1; close 1; ");
    assert_int_equal(w.driver->missing_news, 0);
    world_done(&w);
}

/* --- rank tables ------------------------------------------------------------------------------ */

static void test_rank_table_is_sent_once_a_session(void **state)
{
    enum { TASKS = 20 };
    struct world w;
    char name[16];
    world_init(&w, NULL);
    for (unsigned i = 1; i <= TASKS; i++) {
        snprintf(name, sizeof name, "m-%u", i);
        world_join(&w, i, name);
    }
    world_create(&w, 77, "train", TASKS);
    driver_turn(w.driver);
    struct buf expected BUF_CLEANUP = {0};
    buf_printf(&expected, "append 1; step write; reply 77 201; ");
    for (unsigned i = 1; i <= TASKS; i++)
        buf_printf(&expected, "send %u rank table; send %u start; ", i, i);
    STORY(&w, expected.data);
    for (unsigned i = 1; i <= TASKS; i++)
        world_report(&w, i, 1, REPORT_STARTED, w.started[i]);
    driver_turn(w.driver);
    buf_clear(&w.story);
    /* Another session knows nothing: the agent says that it runs nothing, and is told again. */
    world_hello(&w, 41, "m-1");
    driver_turn(w.driver);
    assert_non_null(strstr(w.story.data, "step hello; send 41 welcome; "));
    world_done(&w);
}

/* --- a stand-in answers heartbeats ------------------------------------------------------------ */

static bool stands_in(struct world *w, drive_session session, struct from_controller *ret_ack)
{
    struct from_agent message = {.kind = FROM_AGENT_HEARTBEAT, .heartbeat = {.sent_ns = w->mono_ns}};
    return driver_stand_in(w->driver, session, &message, ret_ack);
}

static void test_stand_in_answers_for_current_sessions(void **state)
{
    struct world w;
    struct from_controller ack;
    world_init(&w, NULL);
    assert_false(stands_in(&w, 1, &ack)); /* nobody has said hello */
    world_hello(&w, 1, "m-1");
    assert_false(stands_in(&w, 1, &ack)); /* no welcome yet */
    driver_turn(w.driver);
    world_tether(&w, 2, "m-1", 1);
    world_listen(&w);
    assert_false(stands_in(&w, 2, &ack));
    struct from_agent steps = {.kind = FROM_AGENT_STEPS};
    assert_false(driver_stand_in(w.driver, 1, &steps, &ack));
    assert_true(stands_in(&w, 1, &ack));
    assert_true(ack.kind == FROM_CONTROLLER_HEARTBEAT_ACK && ack.sent_ns == w.mono_ns);
    assert_true(ack.grant.left_ns == 0 && ack.grant.number == driver_evidence(w.driver, 0)->grant);
    STORY(&w, "");             /* it changes nothing */
    world_hello(&w, 3, "m-1"); /* takes the place of session 1 */
    assert_false(stands_in(&w, 1, &ack));
    world_done(&w);
}

/* The verdict comes first: what was silent for too long is not answered any more, before anything else
 * starts. */
static void test_stand_in_does_not_answer_the_lost(void **state)
{
    struct world w;
    struct from_controller ack;
    world_init(&w, NULL);
    world_join(&w, 1, "m-1");
    world_pass(&w, LEASE_MS); /* not yet the span */
    assert_true(stands_in(&w, 1, &ack));
    w.mono_ns += LEASE_MS / 5 * NS_PER_MS;
    (void)driver_wait(w.driver, INT64_MAX);
    buf_clear(&w.story);
    driver_timers(w.driver);
    STORY(&w, "over m-1; close 1; "); /* the event of its silence is queued, and in no log yet */
    assert_false(stands_in(&w, 1, &ack));
    driver_turn(w.driver);
    world_done(&w);
}

static void test_attended_host_did_not_stand_still(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_join(&w, 1, "m-1");
    w.mono_ns += 10 * LEASE_MS * NS_PER_MS;
    driver_attended(w.driver, 10 * LEASE_MS * NS_PER_MS - 200 * NS_PER_MS);
    world_beat(&w, 1); /* what the stand-in has kept */
    driver_turn(w.driver);
    assert_int_equal(driver_stats(w.driver)->pauses, 0);
    world_listen(&w);
    driver_timers(w.driver);
    driver_turn(w.driver);
    assert_int_equal(world_state(&w, 0), MACHINE_READY);
    world_listen(&w); /* what was attended before counts for nothing afterwards */
    w.mono_ns += 10 * LEASE_MS * NS_PER_MS;
    driver_turn(w.driver);
    assert_int_equal(driver_stats(w.driver)->pauses, 1);
    world_done(&w);
}

static void test_when_a_stand_in_answers(void **state)
{
    struct stand_in_clock clock = {.limit_ns = 10 * NS_PER_SECOND};
    int64_t at_ns = 5 * NS_PER_SECOND;
    assert_false(stand_in_due(&clock, at_ns)); /* the host waits */
    stand_in_busy(&clock, at_ns);
    assert_false(stand_in_due(&clock, at_ns + STAND_IN_LATE_NS - 1));
    stand_in_busy(&clock, at_ns + 1); /* busy all the while */
    assert_true(stand_in_due(&clock, at_ns + STAND_IN_LATE_NS));
    at_ns += STAND_IN_LATE_NS;
    stand_in_round(&clock, at_ns);
    assert_false(stand_in_due(&clock, at_ns));
    for (int i = 0; i < 10; i++) {
        at_ns += STAND_IN_PERIOD_NS;
        assert_true(stand_in_due(&clock, at_ns));
        stand_in_round(&clock, at_ns);
    }
    at_ns += 2 * NS_PER_SECOND; /* stopped meanwhile: attended by nobody */
    stand_in_round(&clock, at_ns);
    at_ns += STAND_IN_PERIOD_NS;
    stand_in_round(&clock, at_ns);
    assert_true(clock.attended_ns == 11 * STAND_IN_PERIOD_NS);
    assert_false(stand_in_due(&clock, clock.busy_ns + 10 * NS_PER_SECOND)); /* dead for good? */
    assert_false(stand_in_due(&clock, clock.busy_ns + 100 * NS_PER_SECOND));
    assert_true(stand_in_turn(&clock) == 11 * STAND_IN_PERIOD_NS);
    assert_true(stand_in_turn(&clock) == 0);
    assert_false(stand_in_due(&clock, at_ns + NS_PER_SECOND));
    stand_in_busy(&clock, at_ns);
    assert_true(stand_in_due(&clock, at_ns + NS_PER_SECOND));
}

/* A log that was restored may not know of tasks, so the end of a connection does not prove them dead. */
static void test_gone_of_a_restored_log(void **state)
{
    struct world w;
    world_init(&w, NULL);
    struct driver_ports ports = world_ports(&w);
    driver_free(w.driver);
    w.driver = driver_new(&(struct driver_options){.version = STR("test"), .restored = true}, &ports, w.core);
    driver_start(w.driver, 4712, world_secret, STR(CLUSTER));
    driver_turn(w.driver);
    world_join(&w, 1, "m-1");
    assert_true(core_is_hearing(w.core));
    driver_closed(w.driver, 1, true, "EOF");
    driver_turn(w.driver);
    STORY(&w, "over m-1; append 1; step away; ");
    world_done(&w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_message),
        cmocka_unit_test(test_agents_of_other_releases),
        cmocka_unit_test(test_nothing_is_sent_before_the_welcome),
        cmocka_unit_test(test_machines_of_another_cluster_are_refused),
        cmocka_unit_test(test_hello_takes_the_place_of_a_queued_one),
        cmocka_unit_test(test_hello_while_one_is_appended),
        cmocka_unit_test(test_late_hello_is_refused),
        cmocka_unit_test(test_closed_session_is_not_answered),
        cmocka_unit_test(test_away_is_said_once),
        cmocka_unit_test(test_gone_by_evidence),
        cmocka_unit_test(test_gone_of_a_restored_log),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_busy_host_misses_no_heartbeat),
        cmocka_unit_test(test_host_that_stood_still),
        cmocka_unit_test(test_stood_still_while_a_hello_is_appended),
        cmocka_unit_test(test_stood_still_with_a_full_disk),
        cmocka_unit_test(test_missed_news),
        cmocka_unit_test(test_rank_table_is_sent_once_a_session),
        cmocka_unit_test(test_stand_in_answers_for_current_sessions),
        cmocka_unit_test(test_stand_in_does_not_answer_the_lost),
        cmocka_unit_test(test_attended_host_did_not_stand_still),
        cmocka_unit_test(test_when_a_stand_in_answers),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
