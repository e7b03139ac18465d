/* core.h - a controller's core with 16,384 machines of four chips, for benches that feed it events. */
#ifndef PHX_BENCH_CORE_H
#define PHX_BENCH_CORE_H

#include <stdio.h>
#include <stdlib.h>

#include "doc/json.h"
#include "doc/yaml.h"
#include "core/core.h"

#include "timing.h"

enum { MACHINES = 16384 };

struct bench {
    struct core *core;
    struct effects effects;
    uint64_t events;
    int64_t now_ns;
};

static inline void apply(struct bench *bench, struct event *event)
{
    event->seq = core_seq(bench->core) + 1;
    event->stamp_ns = bench->now_ns += NS_PER_MS;
    core_step(bench->core, event, &bench->effects);
    bench->events++;
}

/* A write as a controller has it: checked, then applied. */
static inline void post(struct bench *bench, struct event *event)
{
    struct write_event *write = &event->write;
    if (!core_check_write(bench->core, write, bench->now_ns, &bench->effects, &write->prepared)) {
        fprintf(stderr, "bench: " STR_FORMAT "\n", STR_ARG(bench->effects.list.items[0].reply.message));
        exit(1);
    }
    apply(bench, event);
    prepared_write_free(write->prepared);
    write->prepared = NULL;
}

static inline void start_on(struct bench *bench, const char *pods, size_t machines)
{
    static const char head[] = "apiVersion: phalanx.dev/v1\nkind: Cluster\nmetadata: {name: big}\nspec:\n"
                               "  machineNames: p{pod:02}-c{cube:02}-{n:02}\n  addresses: 10.0.0.1\n";
    char text[512];
    snprintf(text, sizeof(text), "%s  pods: [%s]\n", head, pods);
    *bench = (struct bench){.core = core_new(), .now_ns = NS_PER_SECOND};
    struct arena arena ARENA_CLEANUP = {0};
    struct buf json BUF_CLEANUP = {0};
    struct doc_list docs;
    CHECK(yaml_parse_all(&arena, str_from(text), &docs, NULL) == 0);
    json_write(&json, docs.items[0]);
    struct event boot = {.kind = EVENT_BOOT, .boot = {.epoch = 1, .version = STR("bench"), .identity = 1}};
    apply(bench, &boot); /* makes the namespaces */
    struct event event = {.kind = EVENT_CLUSTER};
    event.cluster.document = buf_str(&json);
    apply(bench, &event);
    CHECK(core_cluster(bench->core)->machine_count == machines);
    bench->events = 0;
}

static inline void start(struct bench *bench)
{
    start_on(bench, "{count: 16, cubes: 64}", MACHINES);
}

static inline void stop(struct bench *bench)
{
    core_free(bench->core);
    vec_done(&bench->effects.list);
}

static inline void hello_all(struct bench *bench)
{
    const struct cluster *cluster = core_cluster(bench->core);
    for (size_t i = 0; i < cluster->machine_count; i++) {
        struct event event = {.kind = EVENT_MACHINE_HELLO};
        event.machine_hello.hello = (struct hello){
            .version = WIRE_VERSION, .machine = cluster->machines[i].name, .chips = 4, .errands = true};
        apply(bench, &event);
    }
}

static inline struct str jobset_json(struct buf *out, int number, int replicas, int tasks, int chips,
                                     const char *more)
{
    buf_clear(out);
    buf_printf(out,
               "{\"apiVersion\":\"jobset.x-k8s.io/"
               "v1alpha2\",\"kind\":\"JobSet\",\"metadata\":{\"name\":\"s%d\"},\"spec\":{"
               "%s\"failurePolicy\":{\"maxRestarts\":3},\"replicatedJobs\":[{\"name\":\"w\","
               "\"replicas\":%d,"
               "\"template\":{\"spec\":{\"parallelism\":%d,\"completions\":%d,\"backoffLimit\":0,"
               "\"template\":{\"spec\":{"
               "\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"main\",\"image\":\"none\","
               "\"command\":[\"true\"],"
               "\"resources\":{\"limits\":{\"google.com/tpu\":%d}}}]}}}}}]}}",
               number, more, replicas, tasks, tasks, chips);
    return buf_str(out);
}

static inline void create(struct bench *bench, struct str json)
{
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){.verb = WRITE_CREATE,
                                       .object = OBJECT_JOBSET,
                                       .namespace_ = STR("default"),
                                       .body = json,
                                       .grace_s = -1};
    post(bench, &event);
    CHECK(bench->effects.list.len > 0);
}

/* The same report about every living task, in order of uid as an agent's first words come. */
static inline void report_all(struct bench *bench, const obj_id *tasks, size_t count, enum report_kind kind,
                              int64_t step, int exit_code)
{
    for (size_t i = 0; i < count; i++) {
        const struct task *task = jobs_find_task(core_jobs(bench->core), tasks[i]);
        if (!task || task_ended(task->state))
            continue;
        struct task_report report = {.kind = kind, .task = task->uid, .step = step, .exit_code = exit_code};
        struct event event = {.kind = EVENT_REPORTS};
        event.reports.machine = core_cluster(bench->core)->machines[task->machine].name;
        event.reports.reports = (struct reports){.number = 1, .items = &report, .count = 1};
        apply(bench, &event);
    }
}

static inline void collect(void *context, const struct task *task)
{
    VEC(obj_id) *list = context;
    if (!task_ended(task->state))
        vec_push(list, task->uid);
}

static inline void progress(struct bench *bench, const struct jobset *jobset, int64_t step)
{
    struct event event = {.kind = EVENT_PROGRESS};
    event.progress = (struct progress_event){
        .jobset = jobset->uid, .attempt = jobset->attempt, .step = step, .total = 1 << 30};
    apply(bench, &event);
}

#endif
