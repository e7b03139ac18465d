/* The group commit: the log first, then the core, then effects, whether the log says at once or later. A log
 * that takes nothing, limits of a turn, snapshots. */
#include "drive/world.h"

static void test_start(void **state)
{
    struct world w;
    world_prepare(&w, NULL);
    driver_start(w.driver, 4711, world_secret, STR(CLUSTER));
    assert_false(driver_is_open(w.driver));
    driver_turn(w.driver);
    STORY(&w, "append 2; step boot; step cluster; ");
    assert_true(driver_is_open(w.driver));
    assert_int_equal((int64_t)core_epoch(w.core), w.wall_ns / NS_PER_MS);
    world_done(&w);
}

static void test_effects_follow_their_record(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_join(&w, 1, "m-1");
    world_create(&w, 77, "train", 1);
    world_create(&w, 78, "train", 1); /* the same name: refused by the step, after the first's effects */
    STORY(&w, "");
    driver_turn(w.driver);
    STORY(&w, "append 2; step write; reply 77 201; send 1 start; step write; reply 78 409; ");
    world_done(&w);
}

static void test_append_that_ends_later(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_join(&w, 1, "m-1");
    w.log_says = APPEND_LATER;
    world_create(&w, 77, "train", 1);
    driver_turn(w.driver);
    assert_true(driver_is_appending(w.driver) && !driver_has_work(w.driver));
    /* Events of the meantime wait behind the append; heartbeats are answered. */
    world_create(&w, 78, "other", 1);
    world_report(&w, 1, 1, REPORT_STARTED, 99);
    world_beat(&w, 1);
    driver_turn(w.driver);
    STORY(&w, "append 1; send 1 beat; ");
    world_appended(&w, APPEND_DONE);
    STORY(&w, "step write; reply 77 201; send 1 start; ");
    driver_turn(w.driver);
    world_appended(&w, APPEND_DONE);
    STORY(&w, "append 2; step write; reply 78 201; step reports; send 1 stop; send 1 acked; ");
    world_done(&w);
}

static void test_append_that_fails_later(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_join(&w, 1, "m-1");
    w.log_says = APPEND_LATER;
    world_report(&w, 1, 1, REPORT_STARTED, 99);
    world_create(&w, 77, "train", 1);
    driver_turn(w.driver);
    w.wall_ns -= 3600 * NS_PER_SECOND; /* set back: stamps do not follow */
    world_appended(&w, ERROR_UNAVAILABLE);
    STORY(&w, "append 2; log refuses; refuse 77 503 ServiceUnavailable; ");
    driver_turn(w.driver); /* not yet */
    STORY(&w, "");
    assert_true(driver_wait(w.driver, INT64_MAX) <= w.mono_ns + DRIVE_RETRY_NS);
    w.mono_ns += DRIVE_RETRY_NS;
    w.log_says = APPEND_DONE;
    driver_turn(w.driver);
    STORY(&w, "append 1; log takes; step reports; send 1 stop; send 1 acked; ");
    world_done(&w);
}

static void test_full_disk(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_join(&w, 1, "m-1");
    w.log_says = ERROR_NO_SPACE;
    world_create(&w, 77, "train", 1);
    world_report(&w, 1, 1, REPORT_STARTED, 99);
    driver_turn(w.driver);
    STORY(&w, "append 2; log refuses; refuse 77 507 InsufficientStorage; ");
    world_create(&w, 78, "train", 1); /* refused without another try */
    world_beat(&w, 1);
    driver_turn(w.driver);
    STORY(&w, "send 1 beat; refuse 78 507 InsufficientStorage; ");
    assert_int_equal(driver_refusal(w.driver)->code, ERROR_NO_SPACE);
    w.mono_ns += DRIVE_RETRY_NS;
    driver_turn(w.driver);
    STORY(&w, "append 1; log refuses; ");
    w.log_says = APPEND_DONE;
    w.mono_ns += DRIVE_RETRY_NS;
    driver_turn(w.driver);
    STORY(&w, "append 1; log takes; step reports; send 1 stop; send 1 acked; ");
    assert_null(driver_refusal(w.driver));
    world_done(&w);
}

/* Nothing is applied that may not be durable, and nothing is done any more. */
static void test_unknown_outcome_ends_the_driver(void **state)
{
    struct world w;
    world_init(&w, NULL);
    w.log_says = ERROR_IO;
    world_create(&w, 77, "train", 1);
    driver_turn(w.driver);
    STORY(&w, "append 1; log lost; ");
    w.log_says = APPEND_DONE;
    w.mono_ns += NS_PER_SECOND;
    driver_timers(w.driver);
    driver_turn(w.driver);
    assert_false(driver_has_work(w.driver));
    STORY(&w, "");
    world_done(&w);
}

static void test_turns_are_bounded(void **state)
{
    struct world w;
    world_init(&w, &(struct driver_options){.turn_records_max = 3});
    for (unsigned i = 0; i < 7; i++)
        world_create(&w, 70 + i, "train", 1);
    driver_turn(w.driver); /* one call makes as many appends as it takes */
    STORY(&w, "append 3; step write; reply 70 201; step write; reply 71 409; step write; reply 72 409; "
              "append 3; step write; reply 73 409; step write; reply 74 409; step write; reply 75 409; "
              "append 1; step write; reply 76 409; ");
    world_done(&w);
    world_init(&w, &(struct driver_options){.turn_bytes_max = 1});
    world_create(&w, 1, "train", 1);
    world_create(&w, 2, "train", 1);
    driver_turn(w.driver);
    STORY(&w, "append 1; step write; reply 1 201; append 1; step write; reply 2 409; ");
    world_done(&w);
}

/* The start may take several turns, too. */
static void test_start_in_small_turns(void **state)
{
    struct world w;
    world_prepare(&w, &(struct driver_options){.turn_records_max = 1});
    w.log_says = APPEND_LATER;
    driver_start(w.driver, 4711, world_secret, STR(CLUSTER));
    driver_turn(w.driver);
    world_appended(&w, APPEND_DONE);
    assert_false(driver_is_open(w.driver));
    driver_turn(w.driver);
    world_appended(&w, APPEND_DONE);
    assert_true(driver_is_open(w.driver));
    world_done(&w);
}

static void test_slow_log_refuses_writes(void **state)
{
    struct world w;
    world_init(&w, &(struct driver_options){.queue_bytes_max = 1500});
    w.log_says = APPEND_LATER;
    world_create(&w, 1, "train", 1);
    driver_turn(w.driver);
    world_create(&w, 2, "a", 1);
    world_create(&w, 3, "b", 1);
    driver_turn(w.driver);
    STORY(&w, "append 1; refuse 2 503 ServiceUnavailable; refuse 3 503 ServiceUnavailable; ");
    world_appended(&w, APPEND_DONE);
    STORY(&w, "step write; reply 1 201; ");
    world_done(&w);
}

static void test_snapshots(void **state)
{
    struct world w;
    world_init(&w, &(struct driver_options){.snapshot_every = 3});
    driver_maintain(w.driver);
    STORY(&w, "");
    world_create(&w, 1, "a", 1);
    driver_turn(w.driver);
    buf_clear(&w.story);
    driver_maintain(w.driver);
    STORY(&w, "snapshot 3; ");
    for (unsigned i = 0; i < 4; i++)
        world_create(&w, 2 + i, "a", 1);
    driver_turn(w.driver);
    buf_clear(&w.story);
    driver_maintain(w.driver); /* one at a time */
    STORY(&w, "");
    driver_snapshot_ended(w.driver);
    driver_maintain(w.driver);
    STORY(&w, "snapshot 7; ");
    world_done(&w);
}

/* Few large records are as good a reason as many small ones, once they outweigh the state. */
static void test_snapshots_by_bytes(void **state)
{
    struct world w;
    world_init(&w, &(struct driver_options){.snapshot_every = 1000, .snapshot_bytes = 1});
    driver_maintain(w.driver);
    STORY(&w, "snapshot 2; ");
    driver_snapshot_ended(w.driver);
    struct buf snapshot = {0};
    core_snapshot_write(w.core, &snapshot);
    size_t heavy = 2 * snapshot.len, appended = 0;
    buf_done(&snapshot);
    for (unsigned i = 1; appended < heavy; i++) {
        driver_maintain(w.driver);
        STORY(&w, "");
        world_create(&w, i, "a", 1); /* again and again: refused, but recorded */
        driver_turn(w.driver);
        appended += vec_last(&w.log).len;
        buf_clear(&w.story);
    }
    driver_maintain(w.driver);
    assert_true(w.story.len > 0);
    world_done(&w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_effects_follow_their_record),
        cmocka_unit_test(test_append_that_ends_later),
        cmocka_unit_test(test_append_that_fails_later),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_unknown_outcome_ends_the_driver),
        cmocka_unit_test(test_turns_are_bounded),
        cmocka_unit_test(test_start_in_small_turns),
        cmocka_unit_test(test_slow_log_refuses_writes),
        cmocka_unit_test(test_snapshots),
        cmocka_unit_test(test_snapshots_by_bytes),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
