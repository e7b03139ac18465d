/* Holds of the leases: who is taken for silent when, and what a restarted driver owes. */
#include "core/health/lease_hold.h"
#include "drive/world.h"

enum { HELD_MS = 60000, HELD_SPAN_MS = (HELD_MS + LEASE_MS) / 10 * 11, SPAN_MS = LEASE_MS / 10 * 11 };

static void write_hold(struct world *w, enum write_verb verb)
{
    struct write_event write = {
        .verb = verb,
        .object = OBJECT_MAINTENANCE,
        .name = STR("planned"),
        .body = verb == WRITE_CREATE ? STR("{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Maintenance\","
                                           "\"metadata\":{\"name\":\"planned\"},"
                                           "\"spec\":{\"controller\":\"60s\"}}")
                                     : STR(""),
        .grace_s = -1};
    driver_write(w->driver, &write, 77);
    driver_turn(w->driver);
    world_listen(w);
}

/* A heartbeat of an agent that counts by that grant. */
static void beat_by(struct world *w, drive_session session, uint64_t grant)
{
    struct from_agent message = {.kind = FROM_AGENT_HEARTBEAT,
                                 .heartbeat = {.sent_ns = w->mono_ns, .grant = grant}};
    driver_message(w->driver, session, &message);
}

static uint64_t number(const struct world *w)
{
    return core_lease_hold(w->core)->number;
}

/* m-1 has been granted the hold. */
static void begin(struct world *w)
{
    world_init(w, NULL);
    world_join(w, 1, "m-1");
    write_hold(w, WRITE_CREATE);
    assert_true(number(w) > 0);
    assert_false(driver_hold_counts(w->driver, 0));
    beat_by(w, 1, 0);
    assert_false(driver_hold_counts(w->driver, 0)); /* told is not confirmed */
}

static void test_silence_counts_from_the_end_of_the_grant(void **state)
{
    struct world w;
    begin(&w);
    beat_by(&w, 1, number(&w));
    assert_true(driver_hold_counts(w.driver, 0));
    world_pass(&w, HELD_SPAN_MS - 100);
    assert_int_equal(world_state(&w, 0), MACHINE_READY);
    world_pass(&w, 200);
    assert_int_equal(world_state(&w, 0), MACHINE_LOST);
    world_done(&w);
}

static void test_an_early_end_counts_when_it_is_confirmed(void **state)
{
    struct world w;
    begin(&w);
    world_join(&w, 2, "m-2"); /* a Welcome grants it as well */
    uint64_t held = number(&w);
    beat_by(&w, 1, held);
    beat_by(&w, 2, held);
    write_hold(&w, WRITE_DELETE);
    assert_false(driver_hold_counts(w.driver, 0));
    for (drive_session session = 1; session <= 2; session++)
        beat_by(&w, session, held); /* they are told of the end ... */
    beat_by(&w, 2, number(&w));     /* ... and m-2 has heard it */
    assert_true(!driver_hold_counts(w.driver, 0) && driver_hold_counts(w.driver, 1));
    world_pass(&w, SPAN_MS - 100);
    assert_int_equal(world_state(&w, 1), MACHINE_READY);
    world_pass(&w, 200);
    assert_int_equal(world_state(&w, 0), MACHINE_READY);
    assert_int_equal(world_state(&w, 1), MACHINE_LOST);
    world_pass(&w, HELD_SPAN_MS - SPAN_MS);
    assert_int_equal(world_state(&w, 0), MACHINE_LOST);
    world_done(&w);
}

/* Another process takes over the log and the core. */
static void restart(struct world *w)
{
    struct driver_options options = {.version = STR("test")};
    struct driver_ports ports = world_ports(w);
    driver_free(w->driver);
    w->driver = driver_new(&options, &ports, w->core);
    driver_start(w->driver, 4711, world_secret, STR(""));
    driver_turn(w->driver);
    world_listen(w);
}

static void test_a_restart_owes_what_was_granted(void **state)
{
    struct world w;
    begin(&w);
    world_join(&w, 2, "m-2");
    world_pass(&w, 2000);
    w.wall_ns += INT64_C(24) * 3600 * NS_PER_SECOND; /* its clock is set */
    restart(&w);
    world_join(&w, 3, "m-2");
    beat_by(&w, 3, number(&w));
    world_pass(&w, SPAN_MS + 200);
    assert_int_equal(world_state(&w, 0), MACHINE_AWAY); /* its tasks may live */
    assert_int_equal(world_state(&w, 1), MACHINE_LOST); /* the hold was over when it said so */
    world_pass(&w, HELD_SPAN_MS - SPAN_MS - 400);
    assert_int_equal(world_state(&w, 0), MACHINE_AWAY);
    assert_int_equal(core_lease_hold(w.core)->owed_ns, HELD_MS * NS_PER_MS);
    world_pass(&w, 1000);
    assert_int_equal(world_state(&w, 0), MACHINE_LOST);
    assert_int_equal(core_lease_hold(w.core)->owed_ns, 0); /* it has been counted to its end */
    restart(&w);
    world_join(&w, 4, "m-2");
    restart(&w);
    world_pass(&w, SPAN_MS + 200);
    assert_int_equal(world_state(&w, 1), MACHINE_LOST);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silence_counts_from_the_end_of_the_grant),
        cmocka_unit_test(test_an_early_end_counts_when_it_is_confirmed),
        cmocka_unit_test(test_a_restart_owes_what_was_granted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
