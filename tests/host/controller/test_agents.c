/* The controller and its agents: who is welcome, who is told what, and what broken connections prove. */
#include "host/controller/world.h"

#include <poll.h>

/* --- who is welcome --------------------------------------------------------------------------- */

static void test_agent_is_welcomed_and_beats(void **state)
{
    struct world w;
    time_t before = time(NULL);
    world_init(&w);
    struct fake *agent = fake_new(&w, "m-1");
    agent->beats = false;
    fake_join(agent);
    assert_true(agent->epoch >= (uint64_t)before * 1000);
    assert_int_equal(world_state(&w, "m-1"), MACHINE_READY);
    fake_beat(agent, 12345);
    RUN_UNTIL(&w, agent->acks == 1);
    assert_true(agent->ack_sent_ns == 12345);
    world_done(&w);
}

static void expect_refusal(struct world *w, struct fake *fake, const char *why)
{
    RUN_UNTIL(w, fake->closes > 0);
    assert_non_null(strstr(fake->refused, why));
    assert_int_equal(fake->welcomes, 0);
}

static void test_strangers_are_refused(void **state)
{
    struct world w;
    world_init(&w);
    struct fake *unknown = fake_new(&w, "m-99"), *newer = fake_new(&w, "m-1"), *rude = fake_new(&w, "m-2");
    struct fake *tether = fake_new(&w, "m-98");
    uint64_t seq = core_seq(w.controller->core);
    fake_hello(unknown);
    expect_refusal(&w, unknown, "not in the cluster file");
    newer->conn = fake_dial(newer);
    fake_say(newer, newer->conn, FROM_AGENT_HELLO, WIRE_VERSION + 2);
    expect_refusal(&w, newer, "not neighbours");
    rude->conn = fake_dial(rude);
    fake_beat(rude, 1);
    expect_refusal(&w, rude, "hello first");
    tether->tether = fake_dial(tether);
    fake_say(tether, tether->tether, FROM_AGENT_TETHER, WIRE_VERSION);
    expect_refusal(&w, tether, "not in the cluster file");
    assert_true(core_seq(w.controller->core) == seq); /* nothing of it reached the log */
    world_done(&w);
}

static void test_agent_of_the_next_release_is_welcome(void **state)
{
    struct world w;
    world_init(&w);
    struct fake *newer = fake_new(&w, "m-1");
    newer->conn = fake_dial(newer);
    fake_say(newer, newer->conn, FROM_AGENT_HELLO, WIRE_VERSION + 1);
    RUN_UNTIL(&w, newer->welcomes == 1);
    assert_int_equal(world_state(&w, "m-1"), MACHINE_READY);
    world_done(&w);
}

static void test_second_hello_ends_the_connection(void **state)
{
    struct world w;
    world_init(&w);
    struct fake *agent = fake_new(&w, "m-1");
    agent->beats = false;
    fake_join(agent);
    fake_say(agent, agent->conn, FROM_AGENT_HELLO, WIRE_VERSION);
    RUN_UNTIL(&w, !agent->conn);
    assert_string_equal(agent->refused, "one hello a connection");
    RUN_UNTIL(&w, world_state(&w, "m-1") == MACHINE_AWAY); /* it proves nothing */
    /* Two in one packet, the first not applied yet; and one for another machine. */
    struct fake *hasty = fake_new(&w, "m-2");
    hasty->conn = fake_dial(hasty);
    fake_say(hasty, hasty->conn, FROM_AGENT_HELLO, WIRE_VERSION);
    snprintf(hasty->name, sizeof(hasty->name), "m-3");
    fake_say(hasty, hasty->conn, FROM_AGENT_HELLO, WIRE_VERSION);
    RUN_UNTIL(&w, !hasty->conn);
    assert_int_equal(world_state(&w, "m-3"), MACHINE_UNSEEN);
    fake_hello(agent);
    RUN_UNTIL(&w, agent->welcomes == 2);
    assert_int_equal(world_state(&w, "m-1"), MACHINE_READY);
    world_done(&w);
}

static void test_tether_says_nothing_else(void **state)
{
    struct world w;
    world_init(&w);
    struct fake *agent = fake_new(&w, "m-1");
    fake_join(agent);
    fake_say(agent, agent->tether, FROM_AGENT_HELLO, WIRE_VERSION);
    RUN_UNTIL(&w, !agent->tether);
    assert_int_equal(fake_sessions(agent)->evidence.tethers, 0);
    assert_true(fake_sessions(agent)->evidence.tether_blind);
    assert_int_equal(world_state(&w, "m-1"), MACHINE_READY);
    world_done(&w);
}

static void test_newest_connection_wins(void **state)
{
    struct world w;
    world_init_hasty(&w);
    struct fake *first = fake_new(&w, "m-1"), *second = fake_new(&w, "m-1"), *older = fake_new(&w, "m-1");
    fake_join(first);
    second->incarnation = 2;
    fake_hello(second);
    RUN_UNTIL(&w, second->welcomes == 1 && !first->conn);
    assert_int_equal(world_state(&w, "m-1"), MACHINE_READY);
    older->incarnation = 1; /* does not push out the one that was started later */
    fake_hello(older);
    expect_refusal(&w, older, "later connection");
    fake_beat(second, 7);
    RUN_UNTIL(&w, second->acks > 0);
    /* Once that one is gone for a lease it may come: the machine's clock may have been set back. */
    fake_cut(second, &second->conn, false);
    RUN_UNTIL(&w, world_state(&w, "m-1") != MACHINE_READY);
    world_wait(&w, 2 * LEASE_MS);
    fake_hello(older);
    RUN_UNTIL(&w, older->welcomes == 1);
    world_done(&w);
}

static void test_silent_strangers_are_closed(void **state)
{
    struct world w;
    world_init(&w);
    struct fake *agent = fake_new(&w, "m-1");
    agent->beats = false;
    agent->conn = fake_dial(agent);
    RUN_UNTIL(&w, !list_empty(&w.controller->strangers));
    container_of(w.controller->strangers.next, struct peer, node)->opened_ns -=
        11 * NS_PER_SECOND; /* time passes */
    RUN_UNTIL(&w, !agent->conn);
    assert_true(list_empty(&w.controller->strangers));
    world_done(&w);
}

/* --- tasks ------------------------------------------------------------------------------------ */

static void test_start_stop_forget(void **state)
{
    struct world w;
    struct fake *agents[3];
    world_init(&w);
    world_train(&w, agents);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fake_count(agents[i], FROM_CONTROLLER_START), 1);
    assert_int_equal(world_http(&w, "DELETE", JOBSETS "/train", ""), 200);
    for (int i = 0; i < 3; i++) {
        RUN_UNTIL(&w, fake_count(agents[i], FROM_CONTROLLER_FORGET) == 1);
        assert_int_equal(fake_count(agents[i], FROM_CONTROLLER_STOP), 1);
        RUN_UNTIL(&w, agents[i]->acked == 2);
    }
    assert_int_equal(world_http(&w, "GET", JOBSETS "/train", ""), 404);
    world_done(&w);
}

static void test_agents_speak_for_their_own_tasks_only(void **state)
{
    struct world w;
    struct fake *agents[3];
    world_init(&w);
    world_train(&w, agents);
    obj_id others = agents[1]->running.items[0];
    uint64_t acked = agents[0]->acked;
    fake_report(agents[0], REPORT_EXITED, others, 9);
    fake_report(agents[0], REPORT_STARTED, others, 0);
    fake_report(agents[0], REPORT_JOINED, others, 0);
    struct task_step step = {.task = others, .step = 5, .total = 10};
    struct from_agent steps = {.kind = FROM_AGENT_STEPS, .heartbeat = {.steps = &step, .step_count = 1}};
    wire_send_agent(agents[0]->conn, &steps);
    fake_report(agents[0], REPORT_JOINED, 987654321, 0);
    RUN_UNTIL(&w, agents[0]->acked == acked + 4);
    assert_int_equal(world_tasks(&w, TASK_RUNNING), 3);
    assert_int_equal(w.controller->driver->job_steps.len, 0);
    /* The agent is told to stop the task that it says it runs and should not. */
    RUN_UNTIL(&w, fake_count(agents[0], FROM_CONTROLLER_STOP) == 1);
    world_done(&w);
}

static void test_hostile_reports_are_bounded(void **state)
{
    struct world w;
    world_init(&w);
    struct fake *agent = fake_new(&w, "m-1");
    fake_join(agent);
    /* A message of 4,096 reports with long texts: more bytes than a record may have. */
    enum { COUNT = 4096, TEXT = 6000 };
    struct task_report *reports = mem_alloc(COUNT * sizeof(*reports));
    char *text = mem_alloc(TEXT + 1);
    for (int i = 0; i + 1 < TEXT; i += 2)
        memcpy(text + i, "\xc3\xa9", 2); /* cut between characters */
    for (int i = 0; i < COUNT; i++)
        reports[i] =
            (struct task_report){.kind = REPORT_START_FAILED, .task = (obj_id)i + 1, .message = {text, TEXT}};
    fake_report_all(agent, reports, COUNT);
    RUN_UNTIL(&w, agent->acked == 1);
    assert_int_equal(fake_count(agent, FROM_CONTROLLER_FORGET), COUNT);
    /* One more is no message any more: the connection ends, the controller does not. */
    mem_free(reports);
    reports = mem_alloc((COUNT + 1) * sizeof(*reports));
    for (int i = 0; i <= COUNT; i++)
        reports[i] = (struct task_report){.kind = REPORT_STARTED, .task = (obj_id)i + 1};
    fake_report_all(agent, reports, COUNT + 1);
    RUN_UNTIL(&w, !agent->conn);
    mem_free(reports);
    mem_free(text);
    world_done(&w);
}

static void test_floods_of_heartbeats_and_reports(void **state)
{
    struct world w;
    world_init(&w);
    struct fake *agent = fake_new(&w, "m-1");
    agent->beats = false;
    fake_join(agent);
    for (int i = 0; i < 20000; i++)
        fake_beat(agent, i);
    for (int i = 0; i < 5000; i++)
        fake_report(agent, REPORT_STARTED, 77, 0);
    RUN_UNTIL(&w, agent->acked == 5000);
    assert_int_equal(agent->acks, 20000);
    assert_int_equal(w.controller->driver->queue_bytes, 0);
    world_done(&w);
}

/* --- leases ----------------------------------------------------------------------------------- */

static void test_silence_is_noticed_after_lease_and_margin(void **state)
{
    struct world w;
    world_init_hasty(&w);
    struct fake *agent = fake_new(&w, "m-1"), *other = fake_new(&w, "m-2");
    fake_join(agent);
    fake_join(other);
    world_wait(&w, 3 * LEASE_MS); /* beats keep it */
    assert_int_equal(world_state(&w, "m-1"), MACHINE_READY);
    agent->beats = false;
    int64_t renewed_ns = fake_sessions(agent)->evidence.renewed_ns;
    RUN_UNTIL(&w, fake_sessions(agent)->evidence.renewed_ns != renewed_ns ||
                      world_state(&w, "m-1") != MACHINE_READY ||
                      controller_mono_ns() - renewed_ns > 50 * NS_PER_MS); /* one may be under way */
    renewed_ns = fake_sessions(agent)->evidence.renewed_ns;
    int64_t stalled_ns = w.stalled_ns;
    RUN_UNTIL(&w, world_state(&w, "m-1") != MACHINE_READY);
    assert_int_equal(world_state(&w, "m-1"), MACHINE_LOST);
    assert_true(controller_mono_ns() - renewed_ns >= LEASE_MS * NS_PER_MS * 11 / 10);
    assert_true(world_took_ns(&w, renewed_ns, stalled_ns) < LEASE_MS * NS_PER_MS * 11 / 10 + NS_PER_SECOND);
    RUN_UNTIL(&w, !agent->conn); /* it shall say hello again */
    assert_int_equal(world_state(&w, "m-2"), MACHINE_READY);
    world_done(&w);
}

/* The controller itself was stopped for longer than a lease, as if it had been started anew: the machine is
 * away until its agent has said what became of its tasks, and not lost. */
static void test_stopped_controller_blames_nobody(void **state)
{
    struct world w;
    world_init_hasty(&w);
    struct fake *agent = fake_new(&w, "m-1");
    fake_join(agent);
    fake_beat(agent, 1);
    wire_flush(w.wire);          /* lies in the controller's socket */
    poll(NULL, 0, 2 * LEASE_MS); /* the loop stands still */
    uint64_t seq = core_seq(w.controller->core);
    RUN_UNTIL(&w, !agent->conn); /* it shall say hello again */
    assert_int_equal(world_state(&w, "m-1"), MACHINE_AWAY);
    assert_true(core_seq(w.controller->core) == seq + 1); /* the boot, which puts machines away by itself */
    fake_join(agent);
    assert_int_equal(world_state(&w, "m-1"), MACHINE_READY);
    world_done(&w);
}

/* --- evidence --------------------------------------------------------------------------------- */

/* The connection that ends first, the way it ends, and what the controller concludes at once. */
static void check_matrix(bool conn_first, bool reset_conn, bool reset_tether)
{
    struct world w;
    struct fake *agents[3];
    world_init(&w);
    world_join_three(&w, agents);
    assert_int_equal(world_create(&w, "train", 2), 201);
    RUN_UNTIL(&w, world_tasks(&w, TASK_RUNNING) == 2);
    struct fake *victim = agents[0]->running.len ? agents[0] : agents[1];
    if (conn_first) {
        fake_cut(victim, &victim->conn, reset_conn);
        RUN_UNTIL(&w, world_state(&w, victim->name) == MACHINE_AWAY);
        assert_int_equal(world_tasks(&w, TASK_RUNNING), 2); /* its tasks live */
        fake_cut(victim, &victim->tether, reset_tether);
    } else {
        fake_cut(victim, &victim->tether, reset_tether);
        RUN_UNTIL(&w, fake_sessions(victim)->evidence.tethers == 0);
        assert_int_equal(world_state(&w, victim->name), MACHINE_READY);
        fake_cut(victim, &victim->conn, reset_conn);
    }
    int64_t began_ns = controller_mono_ns();
    RUN_UNTIL(&w, world_state(&w, victim->name) == MACHINE_LOST);
    assert_true(controller_mono_ns() - began_ns < PATIENT_LEASE_MS * NS_PER_MS); /* evidence, not the lease */
    RUN_UNTIL(&w, world_tasks(&w, TASK_RUNNING) == 2);                           /* on the third machine */
    assert_int_equal(agents[2]->running.len, 1);
    world_done(&w);
}

static void test_both_closed_is_death(void **state)
{
    check_matrix(true, false, false);
    check_matrix(true, true, true);
    check_matrix(true, false, true);
    check_matrix(false, false, false);
    check_matrix(false, true, false);
}

static void test_agent_alone_comes_back_in_its_lease(void **state)
{
    struct world w;
    struct fake *agents[3];
    world_init(&w);
    world_train(&w, agents);
    fake_cut(agents[0], &agents[0]->conn, false);
    RUN_UNTIL(&w, world_state(&w, "m-1") == MACHINE_AWAY);
    agents[0]->incarnation++;
    fake_hello(agents[0]);
    RUN_UNTIL(&w, agents[0]->welcomes == 2);
    for (int i = 0; i < 3; i++)
        world_pass(&w);
    assert_int_equal(world_state(&w, "m-1"), MACHINE_READY);
    assert_int_equal(world_tasks(&w, TASK_RUNNING), 3);
    assert_int_equal(fake_count(agents[0], FROM_CONTROLLER_START), 1);
    assert_int_equal(fake_count(agents[0], FROM_CONTROLLER_STOP), 0);
    world_done(&w);
}

/* A tether that opened after the task was started cannot be held by it. */
static void test_young_tether_proves_nothing_about_old_tasks(void **state)
{
    struct world w;
    struct fake *agents[3];
    world_init(&w);
    world_train(&w, agents);
    fake_cut(agents[0], &agents[0]->tether, false);
    RUN_UNTIL(&w, fake_sessions(agents[0])->evidence.tethers == 0);
    fake_tether(agents[0]);
    agents[0]->beats = false;
    fake_cut(agents[0], &agents[0]->conn, false);
    fake_cut(agents[0], &agents[0]->tether, false);
    RUN_UNTIL(&w, world_state(&w, "m-1") == MACHINE_AWAY && fake_sessions(agents[0])->evidence.tethers == 0);
    world_pass(&w);
    world_wait(&w, 20);
    assert_int_equal(world_state(&w, "m-1"), MACHINE_AWAY);
    world_pass(&w);
    RUN_UNTIL(&w, world_state(&w, "m-1") == MACHINE_LOST);
    world_done(&w);
}

/* A machine that was given up comes back with its old task: stopped; its chips serve only after hello. */
static void test_lost_machine_comes_back(void **state)
{
    struct world w;
    struct fake *agents[3];
    world_init_hasty(&w);
    world_train(&w, agents);
    obj_id old = agents[0]->running.items[0];
    agents[0]->beats = agents[0]->obeys = false;
    RUN_UNTIL(&w, !agents[0]->conn); /* by the lease */
    RUN_UNTIL(&w, agents[1]->running.len == 0 && agents[2]->running.len == 0);
    world_wait(&w, 50);
    assert_int_equal(world_tasks(&w, TASK_RUNNING), 0); /* three machines are needed, two are there */
    agents[0]->beats = agents[0]->obeys = true;
    fake_hello(agents[0]);
    RUN_UNTIL(&w, fake_count(agents[0], FROM_CONTROLLER_STOP) == 1);
    assert_true(fake_last(agents[0], FROM_CONTROLLER_STOP)->task == old);
    RUN_UNTIL(&w, world_tasks(&w, TASK_RUNNING) == 3);
    RUN_UNTIL(&w, agents[0]->running.len == 1 && agents[0]->running.items[0] != old);
    world_done(&w);
}

/* Tethers that come and go without an agent say nothing new: the log does not grow. */
static void test_flapping_tethers_fill_no_log(void **state)
{
    struct world w;
    world_init(&w);
    struct fake *agent = fake_new(&w, "m-1");
    fake_join(agent);
    agent->beats = false;
    fake_cut(agent, &agent->conn, false);
    RUN_UNTIL(&w, world_state(&w, "m-1") == MACHINE_AWAY);
    fake_cut(agent, &agent->tether, false);
    RUN_UNTIL(&w, world_state(&w, "m-1") == MACHINE_LOST);
    uint64_t seq = core_seq(w.controller->core);
    for (int i = 0; i < 20; i++) {
        fake_tether(agent);
        fake_cut(agent, &agent->tether, i % 2);
        RUN_UNTIL(&w, fake_sessions(agent)->evidence.tethers == 0);
    }
    world_wait(&w, 20);
    assert_true(core_seq(w.controller->core) == seq);
    world_done(&w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agent_is_welcomed_and_beats),
        cmocka_unit_test(test_strangers_are_refused),
        cmocka_unit_test(test_agent_of_the_next_release_is_welcome),
        cmocka_unit_test(test_second_hello_ends_the_connection),
        cmocka_unit_test(test_tether_says_nothing_else),
        cmocka_unit_test(test_newest_connection_wins),
        cmocka_unit_test(test_silent_strangers_are_closed),
        cmocka_unit_test(test_start_stop_forget),
        cmocka_unit_test(test_agents_speak_for_their_own_tasks_only),
        cmocka_unit_test(test_hostile_reports_are_bounded),
        cmocka_unit_test(test_floods_of_heartbeats_and_reports),
        cmocka_unit_test(test_silence_is_noticed_after_lease_and_margin),
        cmocka_unit_test(test_stopped_controller_blames_nobody),
        cmocka_unit_test(test_both_closed_is_death),
        cmocka_unit_test(test_agent_alone_comes_back_in_its_lease),
        cmocka_unit_test(test_young_tether_proves_nothing_about_old_tasks),
        cmocka_unit_test(test_lost_machine_comes_back),
        cmocka_unit_test(test_flapping_tethers_fill_no_log),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
