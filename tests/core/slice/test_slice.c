/* Gangs that ask for a slice: whole cubes, cross-connects before the start, switches that fail, lie, and
 * answer late, twice or for another request. The switches here hold their circuits as real ones do. */
#include "core/slice/rig.h"

/* --- stories -------------------------------------------------------------------------------------------- */

static void a_gang_starts_when_every_switch_is_read_back(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8-twisted", 32));
    assert_int_equal(rig->requests, POD_SWITCHES); /* each switch is read first */
    assert_int_equal(count_started(rig), 0);
    for (uint32_t s = 0; s < POD_SWITCHES; s++)
        answer(rig, s); /* empty: now each is told its circuits */
    assert_int_equal(rig->requests, 2 * POD_SWITCHES);
    for (uint32_t s = 0; s < POD_SWITCHES; s++) {
        assert_int_equal(count_started(rig), 0);
        assert_int_equal(slice_of(rig, "a")->phase, SLICE_CONNECTING);
        answer(rig, s);
    }
    assert_int_equal(slice_of(rig, "a")->phase, SLICE_CONNECTED);
    assert_int_equal(count_started(rig), 32);
    assert_int_equal(rig->makes, 2 * POD_SWITCHES);
    assert_int_equal(rig->broken, 0);
    /* Twisted: the plus end of each cube along X meets the other cube, and along Z too. */
    assert_true(rig->to[0][1] == 66 && rig->to[0][2] == 65);
    assert_true(rig->to[2 * FACE_LINKS][1] == 66 && rig->to[2 * FACE_LINKS][2] == 65);
    end(rig);
}

static void ranks_follow_the_coordinates(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x8x4", 32));
    answer_all(rig);
    const struct cluster *cluster = core_cluster(rig->h.core);
    /* Machines along X, then Y, then Z: rank 4 is at (0, 2) machines, in the second cube. */
    static const struct {
        int rank;
        uint32_t cube, machine;
    } places[] = {{0, 0, 0}, {1, 0, 1}, {2, 0, 2}, {3, 0, 3}, {4, 1, 0}, {7, 1, 3}, {8, 0, 4}, {31, 1, 15}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char host[32];
        snprintf(host, sizeof host, "a-w-0-%d", places[i].rank);
        const struct task *task = harness_task(&rig->h, host);
        assert_int_equal(task->machine, cluster->blocks[places[i].cube].first + places[i].machine);
    }
    end(rig);
}

static void shapes_that_do_not_fit_are_refused_at_once(void **state)
{
    static const struct {
        const char *shape;
        int tasks;
        const char *words;
    } cases[] = {
        {"4x4x6", 24, "phalanx.dev/slice"},
        {"4x4x8", 31, "has 128 chips on 32 machines, and the replicated jobs have 31 tasks"},
        {"4x8x12-twisted", 96, "phalanx.dev/slice"},
        {"big", 16, "phalanx.dev/slice"},
    };
    struct rig *rig = *state;
    begin(rig, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            harness_write(&rig->h, WRITE_CREATE, "", slice_yaml("a", cases[i].shape, cases[i].tasks)), 422);
        if (!strstr(rig->h.last_message, cases[i].words))
            fail_msg("%s: %s", cases[i].shape, rig->h.last_message);
    }
    end(rig);
}

static void it_waits_with_a_reason(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_lose(&rig->h, "m-17");
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    answer_all(rig);
    assert_int_equal(slice_of(rig, "a")->place.cubes.cube[0], 0); /* cube 1 has the lost machine */
    harness_create(&rig->h, slice_yaml("b", "4x4x8", 32));
    assert_null(slice_of(rig, "b"));
    assert_why_has(rig, "b", "needs 2 whole cubes of one pod for 4x4x8; pod-1 has 1 free");
    assert_why_has(rig, "b", "cube-2 has machine m-17 out of service");
    harness_create(&rig->h, slice_yaml("c", "8x8x8", 128));
    assert_why_has(rig, "c", "needs 8 whole cubes of one pod for 8x8x8; the largest pod has 4");
    harness_hello(&rig->h, "m-17", NULL, 0);
    answer_all(rig);
    assert_int_equal(slice_of(rig, "b")->phase, SLICE_CONNECTED);
    end(rig);
}

static void parts_of_a_cube_share_it(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "2x2x4", 4));
    harness_create(&rig->h, slice_yaml("b", "2x4x1", 2));
    answer_all(rig);
    assert_int_equal(count_started(rig), 6);
    assert_int_equal(slice_of(rig, "a")->place.cubes.cube[0], slice_of(rig, "b")->place.cubes.cube[0]);
    assert_int_equal(rig->makes, 0); /* no light is needed inside a cube */
    harness_create(&rig->h, slice_yaml("c", "4x4x4", 16));
    answer_all(rig);
    assert_int_not_equal(slice_of(rig, "c")->place.cubes.cube[0], slice_of(rig, "a")->place.cubes.cube[0]);
    assert_int_equal(rig->makes, POD_SWITCHES); /* each ring is the cube's own */
    harness_create(&rig->h, slice_yaml("d", "4x4x12", 48));
    assert_why_has(rig, "d", "needs 3 whole cubes of one pod for 4x4x12; pod-1 has 2 free");
    assert_why_has(rig, "d", "; phalanx fabric defrag 4x4x12 says whether small slices could make room");
    end(rig);
}

static void circuits_are_left_and_used_again(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    answer_all(rig);
    run_all_tasks(rig);
    int makes = rig->makes;
    harness_write(&rig->h, WRITE_DELETE, "a", NULL);
    end_stopped(rig);
    assert_int_equal(core_slices(rig->h.core)->list.len, 0);
    harness_create(&rig->h, slice_yaml("b", "4x4x8", 32));
    answer_all(rig);
    assert_int_equal(slice_of(rig, "b")->phase, SLICE_CONNECTED);
    assert_int_equal(rig->makes, makes); /* the smallest change is none */
    assert_int_equal(rig->broken, 0);
    harness_create(&rig->h, slice_yaml("c", "4x8x4", 32));
    answer_all(rig);
    assert_int_equal(slice_of(rig, "c")->phase, SLICE_CONNECTED);
    assert_int_equal(rig->broken, 0); /* other ports */
    end(rig);
}

/* A switch that has restarted since it was read last holds nothing, and nobody has noticed. */
static void a_switch_is_read_once_more_before_a_slice_counts_on_it(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    answer_all(rig);
    run_all_tasks(rig);
    harness_write(&rig->h, WRITE_DELETE, "a", NULL);
    end_stopped(rig);
    memset(rig->to[7], 0, sizeof rig->to[7]);
    int requests = rig->requests, makes = rig->makes, started = count_started(rig);
    harness_create(&rig->h, slice_yaml("b", "4x4x8", 32));
    assert_int_equal(slice_of(rig, "b")->phase, SLICE_CONNECTING);
    assert_int_equal(count_started(rig), started);
    assert_int_equal(rig->requests, requests + POD_SWITCHES); /* all at once */
    answer_all(rig);
    assert_int_equal(slice_of(rig, "b")->phase, SLICE_CONNECTED);
    assert_int_equal(rig->requests, requests + POD_SWITCHES + 1);
    assert_int_equal(rig->makes, makes + 2);
    assert_true(rig->to[7][1] != 0 && rig->to[7][2] != 0);
    assert_int_equal(count_started(rig), 32);
    /* A part of a cube has no circuits to lose. */
    requests = rig->requests;
    harness_create(&rig->h, slice_yaml("c", "2x2x1", 1));
    assert_int_equal(rig->requests, requests);
    assert_int_equal(slice_of(rig, "c")->phase, SLICE_CONNECTED);
    end(rig);
}

/* An answer to a request from before the slice began says nothing of the time since. */
static void an_answer_asked_for_before_a_slice_began_is_too_old(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    answer_all(rig);
    run_all_tasks(rig);
    health(rig, 3, SWITCH_DOWN);
    health(rig, 3, SWITCH_UP); /* it is read now */
    uint64_t operation = rig->waits[3];
    assert_true(operation > 0);
    harness_write(&rig->h, WRITE_DELETE, "a", NULL);
    end_stopped(rig);
    harness_create(&rig->h, slice_yaml("b", "4x4x8", 32));
    for (uint32_t s = 0; s < POD_SWITCHES; s++)
        answer(rig, s);
    assert_int_equal(slice_of(rig, "b")->phase, SLICE_CONNECTING);
    assert_true(rig->waits[3] > operation);
    answer(rig, 3);
    assert_int_equal(slice_of(rig, "b")->phase, SLICE_CONNECTED);
    end(rig);
}

static void a_job_outlives_one_switch_and_not_two(void **state)
{
    struct rig *rig = *state;
    begin(rig, 2);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    answer_all(rig);
    run_all_tasks(rig);
    health(rig, 5, SWITCH_DOWN);
    assert_int_equal(slice_of(rig, "a")->left_out, UINT64_C(1) << 5);
    assert_int_equal(harness_jobset(&rig->h, "a")->attempt, 0);
    memset(rig->to[5], 0, sizeof rig->to[5]); /* it comes back without its circuits, and gets them again */
    health(rig, 5, SWITCH_UP);
    answer_all(rig);
    assert_int_equal(slice_of(rig, "a")->left_out, 0);
    assert_true(rig->to[5][1] != 0);
    health(rig, 5, SWITCH_DOWN);
    health(rig, 20, SWITCH_DOWN);
    assert_int_equal(notes(&rig->h, "SliceLost"), 1);
    end_stopped(rig);
    answer_all(rig);
    assert_int_equal(harness_jobset(&rig->h, "a")->attempt, 1);
    assert_int_equal(slice_of(rig, "a")->place.pod, 1); /* the other pod's switches are well */
    assert_int_equal(slice_of(rig, "a")->phase, SLICE_CONNECTED);
    end(rig);
}

static void a_new_slice_does_without_one_switch(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    health(rig, 7, SWITCH_DOWN);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    answer_all(rig);
    assert_int_equal(slice_of(rig, "a")->phase, SLICE_CONNECTED);
    assert_int_equal(slice_of(rig, "a")->left_out, UINT64_C(1) << 7);
    health(rig, 8, SWITCH_DOWN);
    harness_create(&rig->h, slice_yaml("b", "4x4x8", 32));
    assert_why_has(rig, "b", "pod-1 has 2 switches out of service (x7, x8), and a slice can do without 1");
    health(rig, 8, SWITCH_UP);
    answer_all(rig);
    assert_int_equal(slice_of(rig, "b")->phase, SLICE_CONNECTED);
    end(rig);
}

static void switches_that_do_not_answer_are_tried_again_then_left_out(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    rig->silent[3] = true;
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    answer_all(rig);
    assert_int_equal(slice_of(rig, "a")->phase, SLICE_CONNECTING);
    for (int tries = 0; tries < SWITCH_TRIES_MAX && count_started(rig) == 0; tries++) {
        harness_wait(&rig->h, 4000 * MS);
        answer_all(rig);
    }
    assert_int_equal(slice_of(rig, "a")->phase, SLICE_CONNECTED);
    assert_int_equal(slice_of(rig, "a")->left_out, UINT64_C(1) << 3);
    assert_int_equal(count_started(rig), 32);
    rig->silent[3] = false; /* it is asked now and then */
    harness_wait(&rig->h, 2 * SWITCH_BACKOFF_MAX_NS);
    answer_all(rig);
    harness_wait(&rig->h, 2 * SWITCH_BACKOFF_MAX_NS);
    answer_all(rig);
    assert_int_equal(slice_of(rig, "a")->left_out, 0);
    end(rig);
}

static void a_lost_answer_is_a_failure(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    uint64_t first = rig->waits[0];
    rig->waits[0] = 0; /* nobody answers */
    answer_all(rig);
    assert_int_equal(slice_of(rig, "a")->phase, SLICE_CONNECTING);
    harness_wait(&rig->h, 60 * NS_PER_SECOND);
    harness_wait(&rig->h, 60 * NS_PER_SECOND);
    assert_true(rig->waits[0] > first);
    answer_all(rig);
    assert_int_equal(slice_of(rig, "a")->phase, SLICE_CONNECTED);
    end(rig);
}

static void a_stuck_mirror_sends_the_slice_to_other_cubes(void **state)
{
    struct rig *rig = *state;
    begin(rig, 2);
    rig->stuck[0] = rig->stuck[1] = true; /* they say yes and do nothing */
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    for (int tries = 0; tries < 3 * SWITCH_TRIES_MAX && count_started(rig) == 0; tries++) {
        answer_all(rig);
        harness_wait(&rig->h, 4000 * MS);
    }
    answer_all(rig);
    assert_true(notes(&rig->h, "CrossConnectFailed") > 0);
    assert_int_equal(slice_of(rig, "a")->phase, SLICE_CONNECTED);
    assert_int_equal(slice_of(rig, "a")->place.pod, 1);
    assert_int_equal(count_started(rig), 32);
    end(rig);
}

static void answers_for_other_requests_change_nothing(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    uint64_t operation = rig->waits[0];
    report(rig, 0, operation + 1000); /* of no request */
    report(rig, 0, 0);
    uint64_t digest = core_digest(rig->h.core);
    assert_int_equal(rig->waits[0], operation);
    answer_all(rig);
    assert_int_equal(slice_of(rig, "a")->phase, SLICE_CONNECTED);
    assert_true(core_digest(rig->h.core) != digest);
    memset(rig->to[0], 0, sizeof rig->to[0]);
    report(rig, 0, operation); /* late, and from before */
    assert_int_equal(slice_of(rig, "a")->left_out, 0);
    assert_int_equal(rig->waits[0], 0);
    end(rig);
}

static void a_boot_repeats_what_is_under_way(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    uint64_t operation = rig->waits[9];
    rig->waits[9] = 0; /* the request went down with the controller */
    struct event boot = {.kind = EVENT_BOOT, .boot = {.epoch = 2, .version = STR("test")}};
    harness_step(&rig->h, &boot);
    assert_int_equal(rig->waits[9], operation);
    for (size_t i = 0; i < core_cluster(rig->h.core)->machine_count; i++)
        harness_hello(&rig->h, core_cluster(rig->h.core)->machines[i].name.data, NULL, 0);
    answer_all(rig);
    assert_int_equal(slice_of(rig, "a")->phase, SLICE_CONNECTED);
    end(rig);
}

/* A switch that says that it holds what none can hold is not believed. */
static void impossible_circuits_are_not_believed(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    struct circuit present[] = {{1, 66}, {2, 66}};
    struct event event = {.kind = EVENT_SWITCH_REPORT};
    event.switch_report = (struct switch_report){.name = STR("pod-1-x0"),
                                                 .operation = rig->waits[0],
                                                 .read = true,
                                                 .present = present,
                                                 .present_count = 2};
    rig->waits[0] = 0;
    harness_step(&rig->h, &event);
    assert_false(core_slices(rig->h.core)->pods[0]->switches[0].known);
    answer_all(rig);
    harness_wait(&rig->h, NS_PER_SECOND);
    answer_all(rig);
    assert_int_equal(slice_of(rig, "a")->phase, SLICE_CONNECTED);
    end(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY_OF(a_gang_starts_when_every_switch_is_read_back),
        STORY_OF(ranks_follow_the_coordinates),
        STORY_OF(shapes_that_do_not_fit_are_refused_at_once),
        STORY_OF(it_waits_with_a_reason),
        STORY_OF(parts_of_a_cube_share_it),
        STORY_OF(circuits_are_left_and_used_again),
        STORY_OF(a_switch_is_read_once_more_before_a_slice_counts_on_it),
        STORY_OF(an_answer_asked_for_before_a_slice_began_is_too_old),
        STORY_OF(a_job_outlives_one_switch_and_not_two),
        STORY_OF(a_new_slice_does_without_one_switch),
        STORY_OF(switches_that_do_not_answer_are_tried_again_then_left_out),
        STORY_OF(a_lost_answer_is_a_failure),
        STORY_OF(a_stuck_mirror_sends_the_slice_to_other_cubes),
        STORY_OF(answers_for_other_requests_change_nothing),
        STORY_OF(a_boot_repeats_what_is_under_way),
        STORY_OF(impossible_circuits_are_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
