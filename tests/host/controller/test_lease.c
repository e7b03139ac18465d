/* The loop is at work elsewhere, and agents' heartbeats are answered all the same. */
#include "host/controller/world.h"

#include <poll.h>
#include <sys/ioctl.h>

/* Waits in the kernel until the agent's connection has something to read; the loop does not run meanwhile. */
static void await_answer(const struct fake *agent)
{
    struct pollfd end = {.fd = wire_conn_fd(agent->conn), .events = POLLIN};
    assert_int_equal(poll(&end, 1, 60000), 1);
}

static void beat_now(struct world *w, struct fake *agent, int64_t sent_ns)
{
    fake_beat(agent, sent_ns);
    wire_flush(w->wire);
}

static void test_heartbeats_are_answered_meanwhile(void **state)
{
    struct world w;
    world_init(&w);
    struct fake *agent = fake_new(&w, "m-1");
    agent->beats = false;
    fake_join(agent);
    uint64_t pauses = driver_stats(w.controller->driver)->pauses;
    lease_lend(w.controller); /* as the API does before it serves a request */
    beat_now(&w, agent, 4711);
    await_answer(agent);
    assert_int_equal(agent->acks, 0); /* and not by this thread */
    fake_report(agent, REPORT_EXITED, 99, 0);
    beat_now(&w, agent, 4712);
    assert_true(lease_take(w.controller));
    wire_gather(w.controller->wire);
    /* The driver heard all of it as well, in order: it answers the heartbeats again, and the report. */
    RUN_UNTIL(&w, agent->acked == 1 && agent->ack_sent_ns == 4712);
    assert_true(agent->acks >= 3);
    assert_true(driver_stats(w.controller->driver)->pauses == pauses);
    assert_int_equal(world_state(&w, "m-1"), MACHINE_READY);
    world_done(&w);
}

/* Waits in the kernel until there is more to read than now; what is there stays for the loop. */
static void await_more(const struct fake *agent)
{
    int fd = wire_conn_fd(agent->conn), there, least;
    assert_int_equal(ioctl(fd, FIONREAD, &there), 0);
    least = there + 1;
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least), 0);
    await_answer(agent);
    least = 1;
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least), 0);
}

/* The loop is at work for three leases. The machine that beats stays ready, the other one does not. */
static void test_leases_outlive_a_long_turn(void **state)
{
    struct world w;
    world_init_hasty(&w);
    struct fake *agent = fake_new(&w, "m-1"), *mute = fake_new(&w, "m-2");
    (void)state;
    fake_join(agent);
    fake_join(mute);
    int closes = agent->closes, beats = 0;
    agent->beats = mute->beats = false;
    lease_lend(w.controller);
    int64_t until_ns = controller_mono_ns() + 3 * LEASE_MS * NS_PER_MS;
    while (controller_mono_ns() < until_ns) {
        beat_now(&w, agent, ++beats);
        await_more(agent);
    }
    assert_true(beats > 3); /* nobody can answer several leases at once */
    assert_true(lease_take(w.controller));
    wire_gather(w.controller->wire);
    agent->beats = true;
    RUN_UNTIL(&w, world_state(&w, "m-2") != MACHINE_READY);
    assert_int_equal(world_state(&w, "m-1"), MACHINE_READY);
    assert_int_equal(agent->closes, closes);
    assert_true(agent->acks >= beats);
    world_done(&w);
}

/* Bytes that the stand-in has read, and the end of the connection behind them. */
static void test_end_behind_what_was_kept(void **state)
{
    struct world w;
    world_init(&w);
    struct fake *agent = fake_new(&w, "m-1");
    agent->beats = false;
    fake_join(agent);
    lease_lend(w.controller);
    beat_now(&w, agent, 1);
    await_answer(agent);
    fake_cut(agent, &agent->conn, true);
    (void)lease_take(w.controller);
    RUN_UNTIL(&w, world_state(&w, "m-1") == MACHINE_AWAY);
    fake_join(agent);
    assert_int_equal(world_state(&w, "m-1"), MACHINE_READY);
    world_done(&w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heartbeats_are_answered_meanwhile),
        cmocka_unit_test(test_leases_outlive_a_long_turn),
        cmocka_unit_test(test_end_behind_what_was_kept),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
