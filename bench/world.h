/* world.h - a controller's core and the agents of its machines in virtual time, for benches in which days
 * pass in seconds: one task fills a machine, and what agents are told is done at once, and said.
 *
 *     struct world world = {.core = core_new(), .now_ns = ...};
 *     world_cluster(&world, "{...}");
 *     world_hello(&world, machine);                 // each machine, chips of 8
 *     world_create(&world, "apiVersion: ...");      // what users and operators write
 *     world.now_ns += ...;
 *     world_settle(&world);                         // what is due by then happens
 *     world_done(&world);
 */
#ifndef PHX_BENCH_WORLD_H
#define PHX_BENCH_WORLD_H

#include "doc/json.h"
#include "doc/yaml.h"
#include "core/core.h"

enum { WORLD_MACHINES_MAX = 2000, WORLD_CHIPS = 8 };

struct world {
    struct core *core;
    struct effects effects;
    int64_t now_ns;
    obj_id running[WORLD_MACHINES_MAX]; /* the machine's task; 0: none */
    VEC(struct task_report) reports;    /* that agents have to say */
    VEC(machine_id) machines;           /* of those reports */
    void (*stepped)(struct world *);    /* after each event; NULL: nobody looks */
};

static inline void world_done(struct world *world)
{
    core_free(world->core);
    vec_done(&world->effects.list);
    vec_done(&world->reports);
    vec_done(&world->machines);
}

/* Answers for the agents: reports what they would say to the effects of the step. */
static inline void world_watch(struct world *world)
{
    for (size_t i = 0; i < world->effects.list.len; i++) {
        const struct effect *effect = &world->effects.list.items[i];
        struct task_report report = {0};
        machine_id machine = MACHINE_NONE;
        if (effect->kind == EFFECT_TASK_START) {
            machine = effect->start->machine;
            report = (struct task_report){.kind = REPORT_STARTED, .task = effect->start->uid};
            world->running[machine] = effect->start->uid;
        } else if (effect->kind == EFFECT_TASK_STOP &&
                   world->running[effect->stop.machine] == effect->stop.stop.task) {
            machine = effect->stop.machine;
            report = (struct task_report){
                .kind = REPORT_EXITED, .task = effect->stop.stop.task, .signal = 15, .exit_code = -1};
            world->running[machine] = 0;
        } else if (effect->kind == EFFECT_REPLY) {
            CHECK(effect->reply.code < 300);
        }
        if (machine == MACHINE_NONE)
            continue;
        vec_push(&world->reports, report);
        vec_push(&world->machines, machine);
    }
}

static inline void world_step(struct world *world, struct event *event)
{
    event->seq = core_seq(world->core) + 1;
    event->stamp_ns = world->now_ns;
    core_step(world->core, event, &world->effects);
    world_watch(world);
    if (world->stepped)
        world->stepped(world);
}

static inline void world_report(struct world *world, machine_id machine, struct task_report *item)
{
    struct event event = {.kind = EVENT_REPORTS};
    event.reports.machine = core_cluster(world->core)->machines[machine].name;
    event.reports.reports = (struct reports){.number = 1, .items = item, .count = 1};
    world_step(world, &event);
}

/* Until nothing is due and nobody has anything left to say. */
static inline void world_settle(struct world *world)
{
    for (;;) {
        for (size_t i = 0; i < world->reports.len; i++) { /* grows meanwhile */
            struct task_report item = world->reports.items[i];
            world_report(world, world->machines.items[i], &item);
        }
        vec_clear(&world->reports);
        vec_clear(&world->machines);
        if (core_deadline(world->core) > world->now_ns)
            return;
        struct event tick = {.kind = EVENT_TICK};
        world_step(world, &tick);
    }
}

/* Sets the cluster document, as JSON. */
static inline void world_cluster(struct world *world, const char *json)
{
    struct event event = {.kind = EVENT_CLUSTER};
    event.cluster.document = str_from(json);
    world_step(world, &event);
    CHECK(core_cluster(world->core)->machine_count <= WORLD_MACHINES_MAX);
}

static inline void world_hello(struct world *world, machine_id machine)
{
    struct event event = {.kind = EVENT_MACHINE_HELLO};
    event.machine_hello.hello = (struct hello){.version = WIRE_VERSION,
                                               .machine = core_cluster(world->core)->machines[machine].name,
                                               .incarnation = (uint64_t)world->now_ns,
                                               .chips = WORLD_CHIPS};
    world_step(world, &event);
}

/* With all that ran there. */
static inline void world_lose(struct world *world, machine_id machine)
{
    struct event event = {.kind = EVENT_MACHINE_GONE};
    world->running[machine] = 0;
    event.machine.machine = core_cluster(world->core)->machines[machine].name;
    event.machine.evidence = STR("bench");
    world_step(world, &event);
}

/* Lets the machine's process end by itself, with exit code 0. */
static inline void world_end(struct world *world, machine_id machine)
{
    struct task_report ended = {.kind = REPORT_EXITED, .task = world->running[machine]};
    world->running[machine] = 0;
    world_report(world, machine, &ended);
}

/* The write that creates the object; `json` gets its body and has to live as long as the event. */
static inline struct event world_create_event(const char *yaml, struct buf *json)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc_list docs = {0};
    CHECK(yaml_parse_all(&arena, str_from(yaml), &docs, NULL) == 0);
    json_write(json, docs.items[0]);
    struct event event = {.kind = EVENT_WRITE};
    event.write =
        (struct write_event){.verb = WRITE_CREATE,
                             .object = object_kind_of(doc_str(doc_get(docs.items[0], "apiVersion"), STR("")),
                                                      doc_str(doc_get(docs.items[0], "kind"), STR(""))),
                             .namespace_ = STR("default"),
                             .body = buf_str(json),
                             .grace_s = -1};
    return event;
}

static inline void world_create(struct world *world, const char *yaml)
{
    struct buf json BUF_CLEANUP = {0};
    struct event event = world_create_event(yaml, &json);
    world_step(world, &event);
    world_settle(world);
}

#endif
