/* Gangs that ask for a slice: whole cubes, cross-connects before the start, switches that fail, lie, and
 * answer late, twice or for another request. The switches here hold their circuits as real ones do. */
#include "core/job/story.h"

#include "core/slice/slice.h"

enum { SWITCH_PORTS = 128, CUBES = 4 };
#define MS NS_PER_MS

struct rig {
    struct harness h;
    uint16_t to[2 * POD_SWITCHES][SWITCH_PORTS + 1]; /* by plus port; 0: free */
    bool silent[2 * POD_SWITCHES], stuck[2 * POD_SWITCHES];
    VEC(struct circuit) changes[2 * POD_SWITCHES]; /* of the request that waits: breaks, then makes */
    size_t breaks[2 * POD_SWITCHES];
    uint64_t waits[2 * POD_SWITCHES]; /* its operation; 0: none */
    int requests, makes, broken;
};

static void after(struct harness *h, const struct event *event)
{
    struct rig *rig = h->context;
    for (size_t i = 0; i < h->effects.list.len; i++) {
        const struct effect *effect = &h->effects.list.items[i];
        if (effect->kind != EFFECT_SWITCH_APPLY)
            continue;
        const struct switch_apply *apply = &effect->switch_apply;
        uint32_t s = apply->place.id;
        assert_true(apply->place.kind == PLACE_SWITCH && s < core_cluster(h->core)->switch_count);
        assert_true(str_equal(apply->name, core_cluster(h->core)->switches[s].name));
        assert_true(apply->operation > 0);
        rig->requests++;
        rig->waits[s] = apply->operation;
        vec_clear(&rig->changes[s]);
        for (size_t c = 0; c < apply->break_count; c++)
            vec_push(&rig->changes[s], apply->breaks[c]);
        for (size_t c = 0; c < apply->make_count; c++)
            vec_push(&rig->changes[s], apply->makes[c]);
        rig->breaks[s] = apply->break_count;
    }
}

static void report(struct rig *rig, uint32_t s, uint64_t operation)
{
    struct circuit present[SWITCH_PORTS];
    struct event event = {.kind = EVENT_SWITCH_REPORT};
    event.switch_report = (struct switch_report){.name = core_cluster(rig->h.core)->switches[s].name,
                                                 .operation = operation,
                                                 .read = !rig->silent[s],
                                                 .outcome = rig->silent[s] ? SWITCH_UNREACHABLE : SWITCH_DONE,
                                                 .present = present};
    for (uint16_t plus = 1; plus <= SWITCH_PORTS; plus++)
        if (rig->to[s][plus])
            present[event.switch_report.present_count++] = (struct circuit){plus, rig->to[s][plus]};
    harness_step(&rig->h, &event);
    core_check_invariants(rig->h.core);
}

/* The switch carries its request out, if it can, and answers. */
static void answer(struct rig *rig, uint32_t s)
{
    uint64_t operation = rig->waits[s];
    assert_true(operation > 0);
    rig->waits[s] = 0;
    for (size_t c = 0; c < rig->changes[s].len && !rig->silent[s] && !rig->stuck[s]; c++) {
        struct circuit circuit = rig->changes[s].items[c];
        bool make = c >= rig->breaks[s];
        assert_true(make ? rig->to[s][circuit.plus] == 0 : rig->to[s][circuit.plus] == circuit.minus);
        for (uint16_t plus = 1; make && plus <= SWITCH_PORTS; plus++)
            assert_true(rig->to[s][plus] != circuit.minus);
        rig->to[s][circuit.plus] = make ? circuit.minus : 0;
        rig->makes += make;
        rig->broken += !make;
    }
    report(rig, s, operation);
}

static void answer_all(struct rig *rig)
{
    bool some = true;
    while (some) {
        some = false;
        for (uint32_t s = 0; s < core_cluster(rig->h.core)->switch_count; s++)
            if (rig->waits[s]) {
                some = true;
                answer(rig, s);
            }
    }
}

static void begin(struct rig *rig, int pods)
{
    static char json[1024];
    *rig = (struct rig){0};
    struct harness *h = &rig->h;
    *h = (struct harness){.core = core_new(), .now_ns = INT64_C(1700000000) * NS_PER_SECOND};
    h->after = after;
    h->context = rig;
    struct event boot = {.kind = EVENT_BOOT, .boot = {.epoch = 1, .version = STR("test")}};
    harness_step(h, &boot);
    snprintf(json, sizeof json,
             "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"test\"},"
             "\"spec\":{\"settings\":{\"checkpointDir\":\"/ckpt\"},\"machineNames\":\"m-{n}\","
             "\"addresses\":\"127.0.1.1\",\"pods\":[{\"namePattern\":\"pod-{pod}\",\"count\":%d,"
             "\"cubes\":%d,\"fabric\":{\"switches\":\"127.0.0.1:5100\"}}]}}",
             pods, CUBES);
    struct event cluster = {.kind = EVENT_CLUSTER, .cluster.document = str_from(json)};
    harness_step(h, &cluster);
    assert_int_equal(core_cluster(h->core)->switch_count, pods * POD_SWITCHES);
    for (size_t i = 0; i < core_cluster(h->core)->machine_count; i++)
        harness_hello(h, core_cluster(h->core)->machines[i].name.data, NULL, 0);
}

static void end(struct rig *rig)
{
    for (uint32_t s = 0; s < 2 * POD_SWITCHES; s++)
        vec_done(&rig->changes[s]);
    harness_done(&rig->h);
}

static const char *slice_yaml(const char *name, const char *shape, int tasks)
{
    static char yaml[1024];
    snprintf(
        yaml, sizeof yaml,
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"
        "metadata: {name: %s, annotations: {phalanx.dev/slice: %s}}\n"
        "spec: {failurePolicy: {maxRestarts: 3}, replicatedJobs: [{name: w, replicas: 1, template: {spec: "
        "{parallelism: %d, completions: %d, completionMode: Indexed, backoffLimit: 0, " POD_OF("",
                                                                                               "4") "}}}]}\n",
        name, shape, tasks, tasks);
    return yaml;
}

static const struct slice *slice_of(struct rig *rig, const char *name)
{
    return slice_find(core_slices(rig->h.core), harness_jobset(&rig->h, name)->uid);
}

static int count_started(const struct rig *rig)
{
    int count = 0;
    for (size_t i = 0; i < rig->h.told.len; i++)
        count += !rig->h.told.items[i].stopped && !rig->h.told.items[i].ended;
    return count;
}

static void assert_why_has(struct rig *rig, const char *name, const char *words)
{
    char text[512];
    snprintf(text, sizeof text, STR_FORMAT, STR_ARG(harness_jobset(&rig->h, name)->gangs.items[0]->why));
    if (!strstr(text, words))
        fail_msg("\"%s\" has no \"%s\"", text, words);
}

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
    end(rig);
}

static void run_all_tasks(struct rig *rig)
{
    harness_run_all(&rig->h);
    core_check_invariants(rig->h.core);
}

/* Every task that was told to stop ends. */
static void end_stopped(struct rig *rig)
{
    for (size_t i = 0; i < rig->h.told.len; i++) {
        struct told *told = &rig->h.told.items[i];
        struct task_report report = {.kind = REPORT_EXITED, .task = told->task, .exit_code = 143};
        if (!told->stopped || told->ended)
            continue;
        told->ended = true;
        harness_report(&rig->h, &report, told->machine);
    }
    core_check_invariants(rig->h.core);
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

static void health(struct rig *rig, uint32_t s, enum switch_state to)
{
    struct event event = {.kind = EVENT_SWITCH_HEALTH};
    event.switch_health = (struct switch_health){
        .name = core_cluster(rig->h.core)->switches[s].name, .state = to, .reason = STR("its power failed")};
    harness_step(&rig->h, &event);
    core_check_invariants(rig->h.core);
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

static int make_rig(void **state)
{
    *state = malloc(sizeof(struct rig));
    return 0;
}

static int free_rig(void **state)
{
    free(*state);
    return 0;
}

#define STORY_OF(name) cmocka_unit_test_setup_teardown(name, make_rig, free_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY_OF(a_gang_starts_when_every_switch_is_read_back),
        STORY_OF(ranks_follow_the_coordinates),
        STORY_OF(shapes_that_do_not_fit_are_refused_at_once),
        STORY_OF(it_waits_with_a_reason),
        STORY_OF(parts_of_a_cube_share_it),
        STORY_OF(circuits_are_left_and_used_again),
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
