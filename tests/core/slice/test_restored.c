/* A log that was restored from a backup: its lost part has given routing tables under numbers that agents and
 * ranks still know, and no number stands for two tables. */
#include "core/slice/rig.h"

enum { EPOCH = 100 }; /* of the controller on the backup */
#define X5 (UINT64_C(1) << 5)
#define Y0 (UINT64_C(1) << FACE_LINKS)

static const struct switch_now *switch_at(struct rig *rig, uint32_t number)
{
    return &core_slices(rig->h.core)->pods[0]->switches[number];
}

static void drain(struct rig *rig, const char *name)
{
    assert_int_equal(harness_write_checked(&rig->h, OBJECT_SWITCH, WRITE_REPLACE, name,
                                           "{\"spec\": {\"unschedulable\": true}}"),
                     200);
}

/* A running slice of 32 ranks, two of which have a session with its first tables. */
static void begin_with_sessions(struct rig *rig)
{
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    answer_all(rig);
    run_all_tasks(rig);
    for (uint32_t rank = 0; rank < 2; rank++) {
        say_routes_of(rig, rank, (struct rank_routes){.session = 70 + rank, .open = true});
        say_routes_of(rig, rank, (struct rank_routes){70 + rank, true, number_of_tables(1), 0, 0});
    }
}

static void boot(struct rig *rig, bool restored)
{
    struct event event = {.kind = EVENT_BOOT,
                          .boot = {.epoch = EPOCH, .version = STR("test"), .restored = restored}};
    harness_step(&rig->h, &event);
    core_check_invariants(rig->h.core);
}

static const struct task *task_of(struct rig *rig, uint32_t rank)
{
    return harness_jobset(&rig->h, "a")->jobs[0]->indexes[rank].task;
}

/* The rank's agent is back, and says what the rank has said last. */
static void rank_returns(struct rig *rig, uint32_t rank, struct rank_routes routes)
{
    const struct task *task = task_of(rig, rank);
    struct task_report report = {
        .kind = REPORT_STARTED, .task = task->uid, .attempt_plus_1 = 1, .routes = routes};
    harness_hello(&rig->h, core_cluster(rig->h.core)->machines[task->machine].name.data, &report, 1);
    core_check_invariants(rig->h.core);
}

/* The last step's newest word to a rank; NULL: none. */
static const struct task_notice *told(const struct rig *rig, obj_id task)
{
    for (size_t i = rig->h.effects.list.len; i-- > 0;) {
        const struct effect *effect = &rig->h.effects.list.items[i];
        if (effect->kind == EFFECT_TASK_NOTICE && effect->notice.notice.kind == NOTICE_TABLES &&
            effect->notice.notice.task == task)
            return &effect->notice.notice;
    }
    return NULL;
}

static void assert_told(struct rig *rig, uint32_t rank, uint64_t number, const char *name)
{
    const struct task_notice *notice = told(rig, task_of(rig, rank)->uid);
    assert_non_null(notice);
    assert_int_equal(notice->step, number);
    assert_true(str_is(notice->tables, name));
}

static struct core *read_backup(struct str bytes)
{
    struct core *core = core_new();
    struct error error = {0};
    if (core_snapshot_read(core, bytes, &error) < 0)
        fail_msg("%s", error.text);
    return core;
}

/* Two lives of one backup: what the lost one has given, the other one never gives. */
static void no_number_is_given_twice(void **state)
{
    struct rig *rig = *state;
    struct buf backup = {0};
    struct effects effects = {0};
    begin_with_sessions(rig);
    core_snapshot_write(rig->h.core, &backup);
    struct core *core = read_backup(buf_str(&backup));
    for (int i = 0; i < 3; i++) { /* the lost part: x5 fails, and is well again, and fails */
        health(rig, 5, i % 2 ? SWITCH_UP : SWITCH_DOWN);
        answer_all(rig);
    }
    uint64_t lost = slice_of(rig, "a")->tables_number;
    assert_int_equal(slice_of(rig, "a")->tables, 4);
    assert_int_equal(lost, number_of_tables(4));
    struct event events[] = {
        {.kind = EVENT_BOOT, .boot = {.epoch = EPOCH, .version = STR("test"), .restored = true}},
        {.kind = EVENT_SWITCH_HEALTH, .switch_health = {.name = STR("pod-1-y0"), .state = SWITCH_DOWN}}};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        events[i].seq = core_seq(core) + 1;
        events[i].stamp_ns = rig->h.now_ns + 1;
        core_step(core, &events[i], &effects);
        core_check_invariants(core);
        const struct slice *slice = core_slices(core)->list.items[0];
        assert_int_equal(slice->tables, 1 + i);
        assert_true(slice->tables_number > lost);
        lost = slice->tables_number;
    }
    assert_true(str_is(buf_str(&core_slices(core)->list.items[0]->tables_name), "4x4x8 without y0"));
    core_free(core);
    vec_done(&effects.list);
    buf_done(&backup);
    end(rig);
}

/* The backup is older than the undrain of x5: it says that x5 is Drained, while ranks use it again. */
static void ranks_load_the_tables_of_the_backup(void **state)
{
    struct rig *rig = *state;
    uint64_t again = (uint64_t)EPOCH << SLICE_TABLES_EPOCH_BITS;
    begin_with_sessions(rig);
    drain(rig, "pod-1-x5");
    for (uint32_t rank = 0; rank < 2; rank++)
        say_routes_of(rig, rank, (struct rank_routes){70 + rank, true, number_of_tables(2), X5, 0});
    assert_int_equal(switch_at(rig, 5)->shown.drained, SHOWN_TRUE);
    boot(rig, true);
    assert_int_equal(slice_of(rig, "a")->tables, 2); /* the same ones */
    rank_returns(rig, 0, (struct rank_routes){70, true, number_of_tables(3), 0, 0});
    assert_told(rig, 0, again, "4x4x8 without x5");
    assert_int_equal(switch_at(rig, 5)->shown.drained, SHOWN_FALSE);
    assert_int_equal(switch_at(rig, 5)->users, 1);
    say_routes_of(rig, 0, (struct rank_routes){70, true, again, X5, 0});
    assert_int_equal(switch_at(rig, 5)->shown.drained, SHOWN_TRUE);
    rank_returns(rig, 1, (struct rank_routes){.session = 71}); /* it has closed its session */
    say_routes_of(rig, 1, (struct rank_routes){.session = 171, .open = true});
    assert_told(rig, 1, again, "4x4x8 without x5"); /* above all that it knows: it loads these */
    assert_int_equal(told(rig, task_of(rig, 1)->uid)->session, 171);
    assert_int_equal(notes(&rig->h, "LogRestored"), 0);
    assert_int_equal(slice_of(rig, "a")->tables_number, again);
    end(rig);
}

/* The controller does not know that its log is from a backup, until a rank names tables of the lost part. */
static void a_rank_with_lost_tables_is_noticed(void **state)
{
    struct rig *rig = *state;
    uint64_t again = (uint64_t)EPOCH << SLICE_TABLES_EPOCH_BITS;
    begin_with_sessions(rig);
    boot(rig, false);
    assert_int_equal(slice_of(rig, "a")->tables_number, number_of_tables(1));
    rank_returns(rig, 0, (struct rank_routes){70, true, number_of_tables(2), X5, 0});
    assert_told(rig, 0, again, "4x4x8");
    assert_told(rig, 31, again, "4x4x8");
    assert_int_equal(notes(&rig->h, "LogRestored"), 1);
    say_routes_of(rig, 1, (struct rank_routes){71, true, number_of_tables(2), X5, 0}); /* before it heard */
    assert_null(told(rig, task_of(rig, 1)->uid));
    drain(rig, "pod-1-x5");
    assert_told(rig, 1, again + 1, "4x4x8 without x5");
    assert_int_equal(switch_at(rig, 5)->shown.drained, SHOWN_TRUE); /* they do without it already */
    drain(rig, "pod-1-y0");
    assert_false(switch_at(rig, FACE_LINKS)->leaving);
    end(rig);
}

/* No controller gives such a number, ever: nothing follows from it. */
static void a_number_that_nobody_gave_is_no_evidence(void **state)
{
    const uint64_t numbers[] = {number_of_tables(2), UINT64_MAX};
    struct rig *rig = *state;
    begin_with_sessions(rig);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        say_routes_of(rig, 0, (struct rank_routes){70, true, numbers[i], 0, 0});
        assert_null(told(rig, task_of(rig, 0)->uid));
        assert_int_equal(slice_of(rig, "a")->tables_number, number_of_tables(1));
    }
    drain(rig, "pod-1-y0");
    assert_told(rig, 0, number_of_tables(2), "4x4x8 without y0");
    assert_int_equal(switch_at(rig, FACE_LINKS)->users, 2);
    say_routes_of(rig, 1, (struct rank_routes){71, true, number_of_tables(2), Y0, 0});
    assert_int_equal(switch_at(rig, FACE_LINKS)->users, 1);
    end(rig);
}

/* Slices have no number in common, one after another and beside each other. */
static void slices_share_no_number(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x4", 16));
    answer_all(rig);
    harness_create(&rig->h, slice_yaml("b", "4x4x4", 16));
    answer_all(rig);
    assert_int_equal(slice_of(rig, "a")->tables_number, number_of_tables(1));
    assert_int_equal(slice_of(rig, "b")->tables_number, number_of_tables(2));
    harness_write(&rig->h, WRITE_DELETE, "b", NULL);
    end_stopped(rig);
    harness_create(&rig->h, slice_yaml("c", "4x4x4", 16));
    answer_all(rig);
    assert_int_equal(slice_of(rig, "c")->tables_number, number_of_tables(3));
    assert_int_equal(slice_of(rig, "c")->tables, 1);
    end(rig);
}

/* Every machine's agent is back, and has no tasks. */
static void all_return(struct rig *rig)
{
    for (size_t i = 0; i < core_cluster(rig->h.core)->machine_count; i++)
        harness_hello(&rig->h, core_cluster(rig->h.core)->machines[i].name.data, NULL, 0);
    core_check_invariants(rig->h.core);
}

static size_t starts_told(const struct rig *rig)
{
    size_t starts = 0;
    for (size_t i = 0; i < rig->h.effects.list.len; i++)
        starts += rig->h.effects.list.items[i].kind == EFFECT_TASK_START;
    return starts;
}

/* A switch is watched from the first request on, so a new controller asks those that it knows: what they have
 * lost meanwhile, and what is well again, would be unknown for ever. */
static void a_new_controller_looks_at_its_switches(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    boot(rig, false);
    assert_int_equal(rig->requests, 0); /* none was seen yet */
    all_return(rig);
    harness_create(&rig->h, slice_yaml("a", "4x4x4", 16));
    answer_all(rig);
    run_all_tasks(rig);
    uint16_t cube = slice_of(rig, "a")->place.cubes.cube[0];
    look(rig, 7, SWITCH_DEGRADED, (uint16_t[]){2 + cube}, 1, NULL); /* another cube's */
    drain(rig, "pod-1-z3");
    int before = rig->requests;
    boot(rig, false);
    assert_int_equal(rig->requests - before, POD_SWITCHES - 1); /* nobody asks a drained one */
    rig->to[9][1 + cube] = 0;
    answer_all(rig);
    assert_int_equal(rig->to[9][1 + cube], 65 + cube);
    harness_check_replay(&rig->h);
    end(rig);
}

/* The lost part has joined the cubes of a slice with others: its ranks start when all of its switches have
 * been read anew, and join its cubes again. */
static void switches_are_read_before_ranks_start(void **state)
{
    for (int changed = 0; changed < 2; changed++) {
        struct rig *rig = *state;
        begin(rig, 1);
        harness_create(&rig->h, slice_yaml("a", "4x4x4", 16));
        answer_all(rig); /* its tasks are told to start; no agent has heard it */
        uint16_t cube = slice_of(rig, "a")->place.cubes.cube[0];
        for (uint32_t s = 0; changed && s < POD_SWITCHES; s++) {
            uint16_t plus = 1 + cube, minus = rig->to[s][plus];
            assert_int_equal(minus, 65 + cube);
            rig->to[s][plus] = minus + (cube ? -1 : 1);
        }
        boot(rig, true);
        all_return(rig);
        assert_false(core_is_hearing(rig->h.core));
        assert_int_equal(starts_told(rig), 0);
        for (uint32_t s = 0; s + 1 < POD_SWITCHES && !changed; s++) {
            answer(rig, s);
            assert_int_equal(starts_told(rig), 0);
        }
        answer_all(rig);
        run_all_tasks(rig);
        answer_all(rig);
        run_all_tasks(rig);
        cube = slice_of(rig, "a")->place.cubes.cube[0];
        for (uint32_t s = 0; s < POD_SWITCHES; s++)
            assert_int_equal(rig->to[s][1 + cube], 65 + cube);
        assert_int_equal((int)harness_jobset(&rig->h, "a")->jobs[0]->ready, 16);
        harness_check_replay(&rig->h);
        end(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY_OF(no_number_is_given_twice),
        STORY_OF(a_new_controller_looks_at_its_switches),
        STORY_OF(switches_are_read_before_ranks_start),
        STORY_OF(ranks_load_the_tables_of_the_backup),
        STORY_OF(a_rank_with_lost_tables_is_noticed),
        STORY_OF(a_number_that_nobody_gave_is_no_evidence),
        STORY_OF(slices_share_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
