/* Planned maintenance of switches and cubes, and the API objects that show them: Cubes, Switches, Slices,
 * FabricSessions. */
#include "core/slice/rig.h"

static const char *const drained = "{\"spec\": {\"unschedulable\": true}}", *const in_service =
                                                                                "{\"spec\": {}}";

static void set_drain(struct rig *rig, enum object_kind kind, const char *name, bool drain)
{
    int code = harness_write_checked(&rig->h, kind, WRITE_REPLACE, name, drain ? drained : in_service);
    if (code != 200)
        fail_msg("%s: %d %s", name, code, rig->h.last_message);
}

static const struct switch_now *switch_at(struct rig *rig, uint32_t number)
{
    return &core_slices(rig->h.core)->pods[0]->switches[number];
}

static const struct cube_now *cube_at(struct rig *rig, uint32_t cube)
{
    return &core_slices(rig->h.core)->pods[0]->all_cubes[cube];
}

/* Number of tasks that the last step told these tables, the nth that the only controller gave. */
static int count_told(const struct rig *rig, int nth, const char *name)
{
    int64_t number = (int64_t)number_of_tables(nth);
    int count = 0;
    for (size_t i = 0; i < rig->h.effects.list.len; i++) {
        const struct effect *effect = &rig->h.effects.list.items[i];
        count += effect->kind == EFFECT_TASK_NOTICE && effect->notice.notice.kind == NOTICE_TABLES &&
                 effect->notice.notice.step == number && str_is(effect->notice.notice.tables, name);
    }
    return count;
}

static void a_switch_is_drained_when_slices_are_routed_around_it(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    answer_all(rig);
    run_all_tasks(rig);
    assert_int_equal(slice_of(rig, "a")->tables, 1);
    assert_int_equal(switch_at(rig, 5)->shown.ready, SHOWN_TRUE);
    set_drain(rig, OBJECT_SWITCH, "pod-1-x5", true);
    const struct slice *slice = slice_of(rig, "a");
    assert_int_equal(slice->left_out, UINT64_C(1) << 5);
    assert_int_equal(slice->tables_out, UINT64_C(1) << 5);
    assert_int_equal(slice->tables, 2);
    assert_int_equal(notes(&rig->h, "SliceRerouted"), 1);
    assert_int_equal(harness_jobset(&rig->h, "a")->attempt, 0);
    assert_int_equal(switch_at(rig, 5)->shown.drained, SHOWN_TRUE);
    assert_int_equal(switch_at(rig, 5)->shown.ready, SHOWN_FALSE);
    assert_true(str_is(buf_str(&slice->tables_name), "4x4x8 without x5"));
    assert_int_equal(count_told(rig, 2, "4x4x8 without x5"), 32);
    memset(rig->to[5], 0, sizeof rig->to[5]); /* its mirrors were replaced */
    int requests = rig->requests;
    answer_all(rig);
    assert_int_equal(rig->requests, requests); /* it is left alone */
    set_drain(rig, OBJECT_SWITCH, "pod-1-x5", false);
    assert_int_equal(switch_at(rig, 5)->shown.ready, SHOWN_FALSE); /* not before it was read */
    assert_int_equal(slice_of(rig, "a")->left_out, UINT64_C(1) << 5);
    answer_all(rig);
    assert_int_equal(switch_at(rig, 5)->shown.ready, SHOWN_TRUE);
    assert_true(rig->to[5][1] != 0);
    assert_int_equal(slice_of(rig, "a")->left_out, 0);
    assert_int_equal(slice_of(rig, "a")->tables, 3);
    end(rig);
}

/* --- the ranks' tables ---------------------------------------------------------------------------------- */

static void say_routes(struct rig *rig, uint32_t rank, uint64_t session, bool open, uint64_t tables,
                       uint64_t without)
{
    say_routes_of(rig, rank, (struct rank_routes){session, open, number_of_tables(tables), without, 0});
}

/* The session that the last step answered to one task; 0: none. */
static uint64_t answered_session(const struct rig *rig)
{
    for (size_t i = 0; i < rig->h.effects.list.len; i++) {
        const struct effect *effect = &rig->h.effects.list.items[i];
        if (effect->kind == EFFECT_TASK_NOTICE && effect->notice.notice.kind == NOTICE_TABLES)
            return effect->notice.notice.session;
    }
    return 0;
}

static void assert_waits(struct rig *rig, uint32_t number, const char *why)
{
    struct buf said = {0};
    assert_int_equal(switch_at(rig, number)->shown.drained, SHOWN_FALSE);
    assert_true(switch_drain_waits(core_slices(rig->h.core), switch_at(rig, number), &said));
    if (!str_is(buf_str(&said), why))
        fail_msg("expected \"%s\", got \"%.*s\"", why, (int)said.len, said.data);
    buf_done(&said);
}

/* Ranks 0, 1 and 2 of a slice have tables with all switches. */
static void begin_with_sessions(struct rig *rig)
{
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    answer_all(rig);
    run_all_tasks(rig);
    for (uint32_t rank = 0; rank < 3; rank++) {
        say_routes(rig, rank, 70 + rank, true, 0, 0);
        assert_int_equal(answered_session(rig), 70 + rank);
        say_routes(rig, rank, 70 + rank, true, 1, 0);
    }
}

static void a_switch_is_drained_when_every_rank_has_loaded_tables_without_it(void **state)
{
    struct rig *rig = *state;
    const uint64_t x5 = UINT64_C(1) << 5;
    begin_with_sessions(rig);
    set_drain(rig, OBJECT_SWITCH, "pod-1-x5", true);
    assert_int_equal(count_told(rig, 2, "4x4x8 without x5"), 32);
    assert_waits(rig, 5, "rank 0 of slice default/a and 2 more have not loaded tables without it yet");
    say_routes(rig, 0, 70, true, 2, x5);
    say_routes(rig, 0, 70, true, 1, 0); /* comes late */
    say_routes(rig, 0, 70, true, 2, x5);
    assert_waits(rig, 5, "rank 1 of slice default/a and 1 more have not loaded tables without it yet");
    say_routes(rig, 1, 71, false, 0, 0);
    say_routes(rig, 1, 71, true, 1, 0); /* comes late, too */
    assert_waits(rig, 5, "rank 2 of slice default/a has not loaded tables without it yet");
    harness_check_replay(&rig->h);
    say_routes(rig, 2, 72, true, 2, x5);
    assert_int_equal(switch_at(rig, 5)->shown.drained, SHOWN_TRUE);
    assert_int_equal(notes(&rig->h, "RerouteUnanswered"), 0);
    end(rig);
}

static void ranks_that_are_late_are_named(void **state)
{
    struct rig *rig = *state;
    begin_with_sessions(rig);
    set_drain(rig, OBJECT_SWITCH, "pod-1-x5", true);
    say_routes(rig, 0, 70, true, 2, UINT64_C(1) << 5);
    rig->h.now_ns += SLICE_ANSWER_MAX_NS + NS_PER_SECOND;
    assert_true(core_deadline(rig->h.core) <= rig->h.now_ns);
    struct event tick = {.kind = EVENT_TICK};
    harness_step(&rig->h, &tick);
    assert_waits(rig, 5,
                 "rank 1 of slice default/a and 1 more have not loaded tables without it within 30 s");
    assert_int_equal(notes(&rig->h, "RerouteUnanswered"), 1);
    harness_check_replay(&rig->h);
    say_routes(rig, 1, 71, true, 2, UINT64_C(1) << 5);
    say_routes(rig, 2, 72, true, 2, UINT64_C(1) << 5);
    assert_int_equal(notes(&rig->h, "RerouteUnanswered"), 1);
    assert_int_equal(switch_at(rig, 5)->shown.drained, SHOWN_TRUE);
    end(rig);
}

/* A rank's chips load no other tables than those that the answer names. */
static void a_rank_that_opens_a_session_does_not_undo_a_drain(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    answer_all(rig);
    run_all_tasks(rig);
    set_drain(rig, OBJECT_SWITCH, "pod-1-x5", true);
    assert_int_equal(switch_at(rig, 5)->shown.drained, SHOWN_TRUE); /* no rank has a session */
    say_routes(rig, 0, 70, true, 0, 0);
    assert_int_equal(answered_session(rig), 70);
    assert_int_equal(count_told(rig, 2, "4x4x8 without x5"), 1);
    assert_int_equal(switch_at(rig, 5)->shown.drained, SHOWN_TRUE);
    say_routes(rig, 1, 71, true, 1, 0); /* a program that loads tables before the log has its session */
    assert_waits(rig, 5, "rank 1 of slice default/a has not loaded tables without it yet");
    set_drain(rig, OBJECT_SWITCH, "pod-1-x5", false);
    assert_int_equal(switch_at(rig, 5)->users, 0);
    end(rig);
}

static void a_drain_waits_for_a_slice_that_cannot_spare_the_switch(void **state)
{
    struct rig *rig = *state;
    struct buf why = {0};
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    answer_all(rig);
    run_all_tasks(rig);
    health(rig, 20, SWITCH_DOWN);
    set_drain(rig, OBJECT_SWITCH, "pod-1-x5", true);
    assert_false(switch_at(rig, 5)->leaving);
    assert_int_equal(switch_at(rig, 5)->shown.drained, SHOWN_FALSE);
    assert_true(switch_drain_waits(core_slices(rig->h.core), switch_at(rig, 5), &why));
    assert_true(str_starts(buf_str(&why), STR("slice default/a ")));
    buf_done(&why);
    assert_int_equal(slice_of(rig, "a")->left_out, UINT64_C(1) << 20);
    health(rig, 20, SWITCH_UP);
    answer_all(rig);
    assert_int_equal(switch_at(rig, 5)->shown.drained, SHOWN_TRUE);
    set_drain(rig, OBJECT_SWITCH, "pod-1-x6", true); /* one after another */
    assert_int_equal(switch_at(rig, 6)->shown.drained, SHOWN_FALSE);
    set_drain(rig, OBJECT_SWITCH, "pod-1-x5", false);
    answer_all(rig);
    assert_int_equal(switch_at(rig, 6)->shown.drained, SHOWN_TRUE);
    assert_int_equal(slice_of(rig, "a")->left_out, UINT64_C(1) << 6);
    assert_int_equal(harness_jobset(&rig->h, "a")->attempt, 0);
    end(rig);
}

static void a_cube_is_drained_when_its_slice_has_moved(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    answer_all(rig);
    run_all_tasks(rig);
    assert_int_equal(slice_of(rig, "a")->place.cubes.cube[0], 0);
    set_drain(rig, OBJECT_CUBE, "pod-1.cube-1", true);
    assert_int_equal(notes(&rig->h, "SliceMoves"), 1);
    assert_int_equal(cube_at(rig, 0)->shown.drained, SHOWN_FALSE);
    end_stopped(rig);
    answer_all(rig);
    const struct cube_slice *cubes = &slice_of(rig, "a")->place.cubes;
    assert_int_equal(slice_of(rig, "a")->phase, SLICE_CONNECTED);
    assert_true(cubes->cube[0] != 0 && cubes->cube[1] != 0);
    assert_int_equal(cube_at(rig, 0)->shown.drained, SHOWN_TRUE);
    assert_int_equal(cube_at(rig, 0)->shown.ready, SHOWN_FALSE);
    harness_create(&rig->h, slice_yaml("b", "4x4x8", 32));
    assert_why_has(rig, "b", "cube-1 is drained");
    harness_create(&rig->h, slice_yaml("c", "2x2x1", 1));
    assert_int_not_equal(slice_of(rig, "c")->place.cubes.cube[0], 0);
    set_drain(rig, OBJECT_CUBE, "pod-1.cube-1", false);
    assert_int_equal(cube_at(rig, 0)->shown.ready, SHOWN_TRUE);
    end(rig);
}

static void join_all(struct rig *rig, const char *name, bool can_rejoin)
{
    const struct job *job = harness_jobset(&rig->h, name)->jobs[0];
    for (uint32_t i = 0; i < 32; i++) {
        struct task_report joined = {.kind = REPORT_JOINED,
                                     .task = job->indexes[i].task->uid,
                                     .attempt_plus_1 = 1,
                                     .can_rejoin = can_rejoin};
        harness_report(&rig->h, &joined, job->indexes[i].task->machine);
    }
}

/* Runs and joins 31 of the 32 tasks; the last one's order to start was lost. Returns it. */
static struct task *run_all_but_the_last(struct rig *rig, bool join)
{
    const struct job *job = harness_jobset(&rig->h, "a")->jobs[0];
    for (uint32_t i = 0; i < 31; i++) {
        struct task_report report = {.kind = REPORT_STARTED, .task = job->indexes[i].task->uid};
        harness_report(&rig->h, &report, job->indexes[i].task->machine);
        report = (struct task_report){.kind = REPORT_JOINED, .task = report.task, .attempt_plus_1 = 1};
        if (join)
            harness_report(&rig->h, &report, job->indexes[i].task->machine);
    }
    assert_int_equal(job->indexes[31].task->state, TASK_STARTING);
    return job->indexes[31].task;
}

/* The last machine says that it knows no task: the slice leaves its cubes, and no task is told to start. */
static void assert_leaves_without_a_start(struct rig *rig, const struct task *task)
{
    struct str machine = core_cluster(rig->h.core)->machines[task->machine].name;
    obj_id uid = task->uid;
    harness_hello(&rig->h, machine.data, NULL, 0);
    core_check_invariants(rig->h.core);
    for (size_t i = 0; i < rig->h.effects.list.len; i++)
        assert_int_not_equal(rig->h.effects.list.items[i].kind, EFFECT_TASK_START);
    assert_int_equal(notes(&rig->h, "Killing"), 32);
    task = jobs_find_task(core_jobs(rig->h.core), uid);
    assert_true(!task || task_ended(task->state)); /* there was no process to wait for */
    end_stopped(rig);
    answer_all(rig);
    run_all_tasks(rig);
    const struct slice *slice = slice_of(rig, "a");
    assert_int_equal(slice->phase, SLICE_CONNECTED);
    assert_true(slice->place.cubes.cube[0] != 0 && slice->place.cubes.cube[1] != 0);
    assert_int_equal(harness_jobset(&rig->h, "a")->rjob_status[0].ready, 1);
    harness_check_replay(&rig->h);
    end(rig);
}

/* The Job makes its Pods anew while the old ones end, so the next slice may begin in the step in which the
 * old one is left. */
static void a_lost_start_is_not_said_again_when_the_notice_to_move_is_over(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    answer_all(rig);
    const struct task *task = run_all_but_the_last(rig, true);
    set_drain(rig, OBJECT_CUBE, "pod-1.cube-1", true);
    assert_int_equal(notes(&rig->h, "SliceMoves"), 1);
    assert_false(slice_of(rig, "a")->lost);
    rig->h.now_ns += 31 * NS_PER_SECOND;
    assert_leaves_without_a_start(rig, task);
}

/* Cube 1 is drained and a machine of cube 4 is lost, so the slice can only move to cubes 2 and 3, once the
 * last machine of cube 2 is back. */
static void a_lost_start_is_not_said_again_when_its_machine_makes_room_to_move(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    answer_all(rig);
    const struct task *task = run_all_but_the_last(rig, false);
    const struct machine *machines = core_cluster(rig->h.core)->machines;
    harness_lose(&rig->h, machines[63].name.data);
    harness_news(&rig->h, EVENT_MACHINE_AWAY, machines[task->machine].name.data);
    set_drain(rig, OBJECT_CUBE, "pod-1.cube-1", true);
    assert_int_equal(notes(&rig->h, "SliceMoves"), 0);
    assert_leaves_without_a_start(rig, task);
}

/* The tasks start and stop in different steps, the second of which is due at once. */
static void a_slice_that_is_connected_on_a_drained_cube_starts_before_it_moves(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    set_drain(rig, OBJECT_CUBE, "pod-1.cube-1", true);
    answer_all(rig);
    assert_int_equal(slice_of(rig, "a")->phase, SLICE_CONNECTED);
    assert_int_equal(count_started(rig), 32);
    assert_int_equal(notes(&rig->h, "SliceMoves"), 1);
    assert_int_equal(notes(&rig->h, "Killing"), 0);
    assert_int_equal(core_deadline(rig->h.core), rig->h.now_ns);
    harness_wait(&rig->h, 0);
    assert_int_equal(notes(&rig->h, "Killing"), 32);
    assert_int_equal(count_started(rig), 0);
    end(rig);
}

/* Ranks are told the time that they have: they are stopped at the end of their grace. */
static void ranks_on_a_drained_cube_are_told_their_grace(void **state)
{
    struct rig *rig = *state;
    int count = 0;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    answer_all(rig);
    run_all_tasks(rig);
    join_all(rig, "a", false);
    set_drain(rig, OBJECT_CUBE, "pod-1.cube-1", true);
    for (size_t i = 0; i < rig->h.effects.list.len; i++) {
        const struct effect *effect = &rig->h.effects.list.items[i];
        if (effect->kind != EFFECT_TASK_NOTICE || effect->notice.notice.kind != NOTICE_DRAIN)
            continue;
        count++;
        assert_int_equal(effect->notice.notice.deadline_ns, 30 * NS_PER_SECOND);
    }
    assert_int_equal(count, 32);
    end(rig);
}

static void a_slice_without_another_place_stays_on_a_drained_cube(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x8x8", 64));
    answer_all(rig);
    run_all_tasks(rig);
    set_drain(rig, OBJECT_CUBE, "pod-1.cube-2", true);
    assert_int_equal(notes(&rig->h, "SliceMoves"), 0);
    assert_int_equal(cube_at(rig, 1)->shown.drained, SHOWN_FALSE);
    assert_int_equal(harness_jobset(&rig->h, "a")->attempt, 0);
    harness_write(&rig->h, WRITE_DELETE, "a", NULL);
    end_stopped(rig);
    assert_int_equal(cube_at(rig, 1)->shown.drained, SHOWN_TRUE);
    end(rig);
}

/* A JobSet of 32 tasks whose slice is lost with the first switch; `strategy` begins with ", ". */
static void create_mover(struct rig *rig, const char *strategy, int backoff_limit)
{
    char yaml[1200];
    snprintf(
        yaml, sizeof yaml,
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, annotations: "
        "{phalanx.dev/slice: 4x4x8, phalanx.dev/slice-on-switch-loss: Move}}\n"
        "spec: {failurePolicy: {maxRestarts: 3%s}, replicatedJobs: [{name: w, replicas: 1, template: {spec: "
        "{parallelism: 32, completions: 32, completionMode: Indexed, podReplacementPolicy: Failed, "
        "backoffLimit: %d, " POD_OF("", "4") "}}}]}\n",
        strategy, backoff_limit);
    harness_create(&rig->h, yaml);
    answer_all(rig);
    run_all_tasks(rig);
    assert_int_equal(slice_of(rig, "a")->place.pod, 0);
}

static void assert_runs_in_the_other_pod(struct rig *rig)
{
    end_stopped(rig);
    answer_all(rig);
    run_all_tasks(rig);
    const struct slice *slice = slice_of(rig, "a");
    assert_non_null(slice);
    assert_int_equal(slice->place.pod, 1); /* all of its switches are well */
    assert_int_equal(slice->phase, SLICE_CONNECTED);
    assert_int_equal(slice->left_out, 0);
    const struct jobset *jobset = harness_jobset(&rig->h, "a");
    assert_int_equal(jobset->rjob_status[0].ready, 1);
    const struct job *job = jobset->jobs[0];
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(job->indexes[i].task->machine,
                         slice_machine(core_cluster(rig->h.core), &slice->place, i));
    harness_check_replay(&rig->h);
}

static void a_slice_that_may_not_be_rerouted_moves(void **state)
{
    struct rig *rig = *state;
    begin(rig, 2);
    create_mover(rig, "", 0);
    health(rig, 5, SWITCH_DOWN);
    assert_int_equal(notes(&rig->h, "SliceLost"), 1);
    assert_int_equal(notes(&rig->h, "SliceRerouted"), 0);
    assert_runs_in_the_other_pod(rig);
    assert_int_equal(harness_jobset(&rig->h, "a")->attempt, 1);
    end(rig);
}

/* However a JobSet gets over its losses, no task stays in a slice that is lost. */
static void no_task_stays_in_a_lost_slice(void **state)
{
    static const struct {
        const char *strategy;
        int backoff_limit, attempt;
    } cases[] = {
        {"", 100, 0}, /* the Job makes its Pods anew, one by one */
        {", restartStrategy: InPlaceRestart", INT32_MAX, 1},
    };
    struct rig *rig = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(rig, 2);
        create_mover(rig, cases[i].strategy, cases[i].backoff_limit);
        health(rig, 5, SWITCH_DOWN);
        assert_runs_in_the_other_pod(rig);
        assert_int_equal(harness_jobset(&rig->h, "a")->attempt, cases[i].attempt);
        end(rig);
    }
}

/* Ranks that can rejoin are not kept, because they would go on in the lost slice. */
static void ranks_that_can_rejoin_leave_a_lost_slice(void **state)
{
    struct rig *rig = *state;
    begin(rig, 2);
    create_mover(rig, "", 0);
    join_all(rig, "a", true);
    health(rig, 5, SWITCH_DOWN);
    assert_runs_in_the_other_pod(rig);
    assert_int_equal(harness_jobset(&rig->h, "a")->restarts, 0);
    end(rig);
}

static void a_slice_that_may_not_be_rerouted_keeps_its_first_tables(void **state)
{
    struct rig *rig = *state;
    struct buf why = {0};
    begin(rig, 1);
    health(rig, 5, SWITCH_DOWN);
    create_mover(rig, "", 0);
    assert_true(str_is(buf_str(&slice_of(rig, "a")->tables_name), "4x4x8 without x5"));
    health(rig, 5, SWITCH_UP);
    answer_all(rig);
    assert_int_equal(slice_of(rig, "a")->left_out, 0);
    assert_int_equal(slice_of(rig, "a")->tables, 1);
    assert_int_equal(slice_of(rig, "a")->session.ready, SHOWN_TRUE);
    set_drain(rig, OBJECT_SWITCH, "pod-1-x6", true);
    assert_false(switch_at(rig, 6)->leaving);
    assert_true(switch_drain_waits(core_slices(rig->h.core), switch_at(rig, 6), &why));
    assert_true(str_starts(buf_str(&why), STR("slice default/a may not be routed")));
    buf_done(&why);
    set_drain(rig, OBJECT_SWITCH, "pod-1-x6", false);
    set_drain(rig, OBJECT_SWITCH, "pod-1-x5", true); /* its tables avoid this one */
    assert_int_equal(switch_at(rig, 5)->shown.drained, SHOWN_TRUE);
    assert_int_equal(slice_of(rig, "a")->tables, 1);
    set_drain(rig, OBJECT_SWITCH, "pod-1-x5", false);
    answer_all(rig);
    assert_int_equal(notes(&rig->h, "SliceRerouted"), 0);
    assert_int_equal(notes(&rig->h, "SliceLost"), 0);
    health(rig, 20, SWITCH_DOWN); /* one switch, as at the beginning, and another one */
    assert_int_equal(notes(&rig->h, "SliceLost"), 1);
    assert_int_equal(notes(&rig->h, "SliceRerouted"), 0);
    end(rig);
}

static void a_part_of_a_cube_has_nothing_to_reroute(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "2x2x1", 1));
    answer_all(rig);
    run_all_tasks(rig);
    health(rig, 5, SWITCH_DOWN);
    health(rig, 20, SWITCH_DOWN);
    assert_int_equal(notes(&rig->h, "SliceRerouted"), 0);
    assert_int_equal(slice_of(rig, "a")->tables, 1);
    assert_int_equal(slice_of(rig, "a")->session.ready, SHOWN_TRUE);
    assert_int_equal(harness_jobset(&rig->h, "a")->attempt, 0);
    end(rig);
}

static void a_policy_has_two_values_and_needs_a_slice(void **state)
{
    static const struct {
        const char *annotations, *words;
    } cases[] = {
        {"phalanx.dev/slice: 2x2x1, phalanx.dev/slice-on-switch-loss: Hope", "Reroute"},
        {"phalanx.dev/slice-on-switch-loss: Move", "there is no slice"},
    };
    struct rig *rig = *state;
    begin(rig, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char yaml[1100];
        const char *plain = slice_yaml("a", "2x2x1", 1), *at = strstr(plain, "phalanx.dev/slice:");
        snprintf(yaml, sizeof yaml, "%.*s%s%s", (int)(at - plain), plain, cases[i].annotations,
                 at + strlen("phalanx.dev/slice: 2x2x1"));
        assert_int_equal(harness_write(&rig->h, WRITE_CREATE, "", yaml), 422);
        if (!strstr(rig->h.last_message, cases[i].words))
            fail_msg("%s: %s", cases[i].annotations, rig->h.last_message);
    }
    end(rig);
}

static void wrong_writes_are_refused(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    assert_int_equal(harness_write_checked(&rig->h, OBJECT_SWITCH, WRITE_REPLACE, "pod-9-x5", drained), 404);
    assert_int_equal(harness_write_checked(&rig->h, OBJECT_CUBE, WRITE_REPLACE, "cube-1", drained), 404);
    assert_int_equal(harness_write_checked(&rig->h, OBJECT_SWITCH, WRITE_DELETE, "pod-1-x5", NULL), 405);
    assert_int_equal(harness_write_checked(&rig->h, OBJECT_SLICE, WRITE_REPLACE, "a", drained), 405);
    assert_int_equal(harness_write_checked(&rig->h, OBJECT_SWITCH, WRITE_REPLACE, "pod-1-x5",
                                           "{\"spec\": {\"unschedulable\": \"maybe\"}}"),
                     422);
    assert_false(switch_at(rig, 5)->drain);
    end(rig);
}

static int count_changes(const struct rig *rig, enum object_kind kind)
{
    int count = 0;
    for (size_t i = 0; i < rig->h.effects.list.len; i++) {
        const struct effect *effect = &rig->h.effects.list.items[i];
        count += effect->kind == EFFECT_CHANGED && effect->changed.object.kind == kind;
    }
    return count;
}

static void watchers_hear_of_what_changed_and_of_nothing_else(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x4", 16));
    assert_int_equal(count_changes(rig, OBJECT_SLICE), 1);
    answer(rig, 3); /* it was read: one switch has changed, and no circuit yet */
    assert_int_equal(count_changes(rig, OBJECT_SWITCH), 1);
    assert_int_equal(count_changes(rig, OBJECT_CUBE), 0);
    answer_all(rig);
    health(rig, 5, SWITCH_UP);
    assert_int_equal(count_changes(rig, OBJECT_SWITCH), 1); /* the reason is another one */
    health(rig, 5, SWITCH_UP);
    assert_int_equal(count_changes(rig, OBJECT_SWITCH), 0);
    harness_lose(&rig->h, "m-40");
    assert_int_equal(cube_at(rig, 2)->shown.ready, SHOWN_FALSE);
    assert_int_equal(cube_at(rig, 1)->shown.ready, SHOWN_TRUE);
    const struct slice *slice = slice_of(rig, "a");
    assert_true(slice->shown.uid && slice->session.uid && slice->shown.uid != slice->session.uid);
    assert_ptr_equal(slice_named(core_slices(rig->h.core), STR("default"), STR("a")), slice);
    assert_null(slice_named(core_slices(rig->h.core), STR("other"), STR("a")));
    end(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY_OF(a_switch_is_drained_when_slices_are_routed_around_it),
        STORY_OF(a_switch_is_drained_when_every_rank_has_loaded_tables_without_it),
        STORY_OF(ranks_that_are_late_are_named),
        STORY_OF(a_rank_that_opens_a_session_does_not_undo_a_drain),
        STORY_OF(a_drain_waits_for_a_slice_that_cannot_spare_the_switch),
        STORY_OF(a_cube_is_drained_when_its_slice_has_moved),
        STORY_OF(a_lost_start_is_not_said_again_when_the_notice_to_move_is_over),
        STORY_OF(a_lost_start_is_not_said_again_when_its_machine_makes_room_to_move),
        STORY_OF(a_slice_that_is_connected_on_a_drained_cube_starts_before_it_moves),
        STORY_OF(ranks_on_a_drained_cube_are_told_their_grace),
        STORY_OF(a_slice_without_another_place_stays_on_a_drained_cube),
        STORY_OF(a_slice_that_may_not_be_rerouted_moves),
        STORY_OF(a_slice_that_may_not_be_rerouted_keeps_its_first_tables),
        STORY_OF(a_part_of_a_cube_has_nothing_to_reroute),
        STORY_OF(no_task_stays_in_a_lost_slice),
        STORY_OF(ranks_that_can_rejoin_leave_a_lost_slice),
        STORY_OF(a_policy_has_two_values_and_needs_a_slice),
        STORY_OF(wrong_writes_are_refused),
        STORY_OF(watchers_hear_of_what_changed_and_of_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
