/* rig.h - a core with a pod or two, whose switches hold their circuits as real ones do.
 *
 *     begin(rig, 1);
 *     harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
 *     answer_all(rig);                      // every switch carries its requests out and is read back
 *     end(rig);
 *
 * The core's invariants are checked after each answer.
 */
#ifndef PHX_TESTS_CORE_SLICE_RIG_H
#define PHX_TESTS_CORE_SLICE_RIG_H

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

static inline void after(struct harness *h, const struct event *event)
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

static inline void report(struct rig *rig, uint32_t s, uint64_t operation)
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
static inline void answer(struct rig *rig, uint32_t s)
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

static inline void answer_all(struct rig *rig)
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

static inline void begin(struct rig *rig, int pods)
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

static inline void end(struct rig *rig)
{
    for (uint32_t s = 0; s < 2 * POD_SWITCHES; s++)
        vec_done(&rig->changes[s]);
    harness_done(&rig->h);
}

static inline const char *slice_yaml(const char *name, const char *shape, int tasks)
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

static inline const struct slice *slice_of(struct rig *rig, const char *name)
{
    return slice_find(core_slices(rig->h.core), harness_jobset(&rig->h, name)->uid);
}

/* The number of the nth tables that the controller of epoch 1 gave, all slices counted; 0: 0. */
static inline uint64_t number_of_tables(uint64_t nth)
{
    return nth ? (UINT64_C(1) << SLICE_TABLES_EPOCH_BITS) + nth - 1 : 0;
}

/* A rank of JobSet "a" says which tables its chips have. */
static inline void say_routes_of(struct rig *rig, uint32_t rank, struct rank_routes routes)
{
    const struct task *task = harness_jobset(&rig->h, "a")->jobs[0]->indexes[rank].task;
    struct task_report report = {
        .kind = REPORT_ROUTES, .task = task->uid, .attempt_plus_1 = 1, .routes = routes};
    harness_report(&rig->h, &report, task->machine);
    core_check_invariants(rig->h.core);
}

static inline int count_started(const struct rig *rig)
{
    int count = 0;
    for (size_t i = 0; i < rig->h.told.len; i++)
        count += !rig->h.told.items[i].stopped && !rig->h.told.items[i].ended;
    return count;
}

static inline void assert_why_has(struct rig *rig, const char *name, const char *words)
{
    char text[512];
    snprintf(text, sizeof text, STR_FORMAT, STR_ARG(harness_jobset(&rig->h, name)->gangs.items[0]->why));
    if (!strstr(text, words))
        fail_msg("\"%s\" has no \"%s\"", text, words);
}

static inline void run_all_tasks(struct rig *rig)
{
    harness_run_all(&rig->h);
    core_check_invariants(rig->h.core);
}

/* Every task that was told to stop ends. */
static inline void end_stopped(struct rig *rig)
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

static inline void health(struct rig *rig, uint32_t s, enum switch_state to)
{
    struct event event = {.kind = EVENT_SWITCH_HEALTH};
    event.switch_health = (struct switch_health){
        .name = core_cluster(rig->h.core)->switches[s].name, .state = to, .reason = STR("its power failed")};
    harness_step(&rig->h, &event);
    core_check_invariants(rig->h.core);
}

static inline int make_rig(void **state)
{
    *state = malloc(sizeof(struct rig));
    return 0;
}

static inline int free_rig(void **state)
{
    free(*state);
    return 0;
}

#define STORY_OF(name) cmocka_unit_test_setup_teardown(name, make_rig, free_rig)

/* A poll of the switch's health. `ports`: those without light. */
static inline void look(struct rig *rig, uint32_t s, enum switch_state state, const uint16_t *ports,
                        size_t count, const char *alarm)
{
    struct str alarms[] = {str_from(alarm ? alarm : "")};
    uint16_t bad[4];
    struct event event = {.kind = EVENT_SWITCH_HEALTH};
    mem_copy(bad, ports, count * sizeof *bad);
    event.switch_health = (struct switch_health){.name = core_cluster(rig->h.core)->switches[s].name,
                                                 .state = state,
                                                 .alarms = alarms,
                                                 .alarm_count = alarm ? 1 : 0,
                                                 .bad_ports = bad,
                                                 .bad_port_count = count,
                                                 .reason = STR("its power failed")};
    harness_step(&rig->h, &event);
    core_check_invariants(rig->h.core);
}

#endif
