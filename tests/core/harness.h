/* harness.h - a core with a tiny world around it, for tests that tell a story:
 *
 *     struct harness h; harness_init(&h, 6, 4, 1);            // 6 machines of 4 chips, the last 1 is a spare
 *     harness_create(&h, "..yaml..");                          // a JobSet
 *     harness_run_all(&h);                                     // every told task starts
 *     harness_exit(&h, harness_task(&h, "train-w-0-0"), 0);
 *
 * Effects are kept by the harness the way agents would: told tasks, stops. After every event cores that were
 * restored from snapshots must stand where this one does (twins.h). Header-only because each test program is
 * one file.
 */
#ifndef PHX_TESTS_CORE_HARNESS_H
#define PHX_TESTS_CORE_HARNESS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "doc/json.h"
#include "doc/yaml.h"
#include "core/core.h"
#include "core/log/record.h"
#include "twins.h"

struct told {
    obj_id task;
    machine_id machine;
    bool started, stopped, ended;
};

struct told_errand {
    obj_id errand;
    machine_id machine;
    enum errand_kind kind;
    int64_t timeout_ns;
    struct buf body;
    bool over; /* stopped, ended, or its machine died */
};

struct harness {
    struct core *core;
    struct effects effects;
    int64_t now_ns;
    VEC(struct told) told;
    VEC(struct told_errand) errands;
    struct buf log; /* u32 length, i64 stamp, record */
    struct twins twins;
    int64_t found_cpu_milli, found_memory_bytes; /* that agents say with Hello */
    int last_code;
    char last_message[512];
    /* Called after every step, while its effects are valid; NULL: nobody. */
    void (*after)(struct harness *h, const struct event *event);
    void *context;
};

static inline struct told *harness_told(struct harness *h, obj_id task)
{
    for (size_t i = 0; i < h->told.len; i++)
        if (h->told.items[i].task == task)
            return &h->told.items[i];
    return NULL;
}

/* The newest that its machine was told of and has; NULL: none. */
static inline struct told_errand *harness_errand(struct harness *h, enum errand_kind kind, machine_id machine)
{
    for (size_t i = h->errands.len; i-- > 0;) {
        struct told_errand *errand = &h->errands.items[i];
        if (errand->kind == kind && errand->machine == machine && !errand->over)
            return errand;
    }
    return NULL;
}

static inline void harness_watch_errand(struct harness *h, const struct effect *effect)
{
    obj_id uid =
        effect->kind == EFFECT_ERRAND_START ? effect->errand_start.start.errand : effect->errand_stop.errand;
    struct told_errand *known = NULL;
    for (size_t i = 0; i < h->errands.len && !known; i++)
        known = h->errands.items[i].errand == uid ? &h->errands.items[i] : NULL;
    if (effect->kind == EFFECT_ERRAND_STOP && known)
        known->over = true;
    if (effect->kind == EFFECT_ERRAND_STOP || (known && !known->over))
        return;
    const struct errand_start *start = &effect->errand_start.start;
    struct told_errand told = {uid, effect->errand_start.machine, start->kind, start->timeout_ns, {0}, false};
    buf_add_str(&told.body, start->body);
    vec_push(&h->errands, told);
}

static inline void harness_watch(struct harness *h)
{
    for (size_t i = 0; i < h->effects.list.len; i++) {
        const struct effect *effect = &h->effects.list.items[i];
        struct buf line BUF_CLEANUP = {0};
        effect_describe(&line, effect); /* `phalanx log replay --effects` prints whatever there is */
        if (effect->kind == EFFECT_REPLY) {
            h->last_code = effect->reply.code;
            snprintf(h->last_message, sizeof(h->last_message), STR_FORMAT, STR_ARG(effect->reply.message));
        } else if (effect->kind == EFFECT_TASK_START && !harness_told(h, effect->start->uid)) {
            struct told told = {effect->start->uid, effect->start->machine, false, false, false};
            vec_push(&h->told, told);
        } else if (effect->kind == EFFECT_ERRAND_START || effect->kind == EFFECT_ERRAND_STOP) {
            harness_watch_errand(h, effect);
        } else if (effect->kind == EFFECT_TASK_STOP) {
            struct told *told = harness_told(h, effect->stop.stop.task);
            if (told && told->machine == effect->stop.machine)
                told->stopped = true;
        }
    }
}

static inline void harness_step(struct harness *h, struct event *event)
{
    event->seq = core_seq(h->core) + 1;
    event->stamp_ns = h->now_ns;
    if (event->kind == EVENT_WRITE && event->write.draw == 0)
        event->write.draw = event->seq;
    struct buf bytes = {0};
    record_encode(&bytes, event);
    uint32_t length = (uint32_t)bytes.len;
    buf_add(&h->log, &length, sizeof(length));
    buf_add(&h->log, &event->stamp_ns, sizeof(event->stamp_ns));
    buf_add(&h->log, bytes.data, bytes.len);
    buf_done(&bytes);
    core_step(h->core, event, &h->effects);
    harness_watch(h);
    twins_step(&h->twins, h->core, event, &h->effects);
    if (h->after)
        h->after(h, event);
}

/* Time passes; due timers fire. */
static inline void harness_wait(struct harness *h, int64_t duration_ns)
{
    h->now_ns += duration_ns;
    while (core_deadline(h->core) <= h->now_ns) {
        struct event event = {.kind = EVENT_TICK};
        harness_step(h, &event);
    }
}

static inline void harness_hello(struct harness *h, const char *machine, const struct task_report *reports,
                                 size_t count)
{
    const struct machine *known = cluster_find(core_cluster(h->core), str_from(machine));
    struct event event = {.kind = EVENT_MACHINE_HELLO};
    obj_id has[ERRANDS_PER_MACHINE_MAX];
    size_t errands = 0;
    for (size_t i = 0; i < h->errands.len; i++)
        if (h->errands.items[i].machine == known->id && !h->errands.items[i].over)
            has[errands++] = h->errands.items[i].errand;
    event.machine_hello.hello = (struct hello){.version = WIRE_VERSION,
                                               .machine = str_from(machine),
                                               .incarnation = (uint64_t)h->now_ns,
                                               .chips = known->chip_count,
                                               .cpu_milli = h->found_cpu_milli,
                                               .memory_bytes = h->found_memory_bytes,
                                               .reports = (struct task_report *)reports,
                                               .report_count = count,
                                               .errands = true,
                                               .errand_ids = has,
                                               .errand_count = errands};
    harness_step(h, &event);
}

static inline void harness_news(struct harness *h, enum event_kind kind, const char *machine)
{
    struct event event = {.kind = kind};
    event.machine.machine = str_from(machine);
    event.machine.evidence = STR("test");
    harness_step(h, &event);
}

static inline void harness_lose(struct harness *h, const char *machine)
{
    machine_id id = cluster_find(core_cluster(h->core), str_from(machine))->id;
    for (size_t i = 0; i < h->told.len; i++)
        if (h->told.items[i].machine == id)
            h->told.items[i].ended = true;
    for (size_t i = 0; i < h->errands.len; i++)
        h->errands.items[i].over = h->errands.items[i].over || h->errands.items[i].machine == id;
    harness_news(h, EVENT_MACHINE_GONE, machine);
}

/* The cluster file, as it is or becomes. `more`: further members of its spec, each with its comma. */
static inline void harness_cluster(struct harness *h, int machines, int chips, int spares, const char *more)
{
    char json[2048];
    snprintf(json, sizeof(json),
             "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"test\"},"
             "\"spec\":{%s\"settings\":{\"checkpointDir\":\"/ckpt\",\"priorityClasses\":{\"high\":1000}},"
             "\"machineNames\":\"m-{n}\",\"addresses\":\"127.0.1.1\","
             "\"pods\":[{\"racks\":[{\"machines\":%d,\"chips\":%d,\"spares\":%d}]}]}}",
             more, machines, chips, spares);
    struct event cluster = {.kind = EVENT_CLUSTER};
    cluster.cluster.document = str_from(json);
    harness_step(h, &cluster);
}

static inline void harness_init_with(struct harness *h, int machines, int chips, int spares, const char *more)
{
    *h = (struct harness){.core = core_new(), .now_ns = INT64_C(1700000000) * NS_PER_SECOND};
    struct event boot = {.kind = EVENT_BOOT};
    boot.boot.epoch = 1;
    boot.boot.version = STR("test");
    harness_step(h, &boot);
    harness_cluster(h, machines, chips, spares, more);
    assert_int_equal((int)core_cluster(h->core)->machine_count, machines);
    for (int i = 0; i < machines; i++)
        harness_hello(h, core_cluster(h->core)->machines[i].name.data, NULL, 0);
}

static inline void harness_init(struct harness *h, int machines, int chips, int spares)
{
    harness_init_with(h, machines, chips, spares, "");
}

/* Replays the log from scratch, and from a snapshot taken now; both must give this very state. */
static inline void harness_check_replay(struct harness *h)
{
    struct core *again = core_new();
    struct effects effects = {0};
    size_t at = 0;
    while (at < h->log.len) {
        uint32_t length;
        struct event event;
        struct arena arena = {0};
        memcpy(&length, h->log.data + at, sizeof(length));
        struct error error = {0};
        if (record_decode(&arena, (struct str){h->log.data + at + 12, length}, &event, &error) < 0)
            fail_msg("record %llu: %s", (unsigned long long)core_seq(again) + 1, error.text);
        memcpy(&event.stamp_ns, h->log.data + at + 4, sizeof(event.stamp_ns));
        event.seq = core_seq(again) + 1;
        core_step(again, &event, &effects);
        arena_done(&arena);
        at += 12 + length;
    }
    assert_true(core_digest(again) == core_digest(h->core));
    core_free(again);
    vec_done(&effects.list);
    struct buf bytes = {0};
    core_snapshot_write(h->core, &bytes);
    struct core *copy = core_new();
    struct error error = {0};
    if (core_snapshot_read(copy, buf_str(&bytes), &error) < 0)
        fail_msg("%s", error.text);
    assert_true(core_digest(copy) == core_digest(h->core));
    core_free(copy);
    buf_done(&bytes);
}

static inline void harness_done(struct harness *h)
{
    harness_check_replay(h);
    core_free(h->core);
    twins_done(&h->twins);
    vec_done(&h->effects.list);
    vec_done(&h->told);
    for (size_t i = 0; i < h->errands.len; i++)
        buf_done(&h->errands.items[i].body);
    vec_done(&h->errands);
    buf_done(&h->log);
}

/* A write of what `yaml` says (NULL: nothing), in the namespace default; `json` holds its body. */
static inline struct write_event harness_write_event(enum object_kind kind, enum write_verb verb,
                                                     const char *name, const char *yaml, struct buf *json)
{
    struct arena arena = {0};
    struct doc_list docs = {0};
    struct error error = {0};
    if (yaml) {
        if (yaml_parse_all(&arena, str_from(yaml), &docs, &error) < 0)
            fail_msg("%s", error.text);
        json_write(json, docs.items[0]);
    }
    arena_done(&arena);
    return (struct write_event){.verb = verb,
                                .object = kind,
                                .namespace_ = STR("default"),
                                .name = str_from(name),
                                .body = buf_str(json),
                                .grace_s = -1};
}

/* Without a check before it: what is refused is refused by the step. The HTTP status; the message is in
 * h->last_message. `yaml` may be NULL. */
static inline int harness_write(struct harness *h, enum write_verb verb, const char *name, const char *yaml)
{
    struct buf json = {0};
    struct event event = {.kind = EVENT_WRITE,
                          .write = harness_write_event(OBJECT_JOBSET, verb, name, yaml, &json)};
    h->last_code = 0;
    harness_step(h, &event);
    buf_done(&json);
    return h->last_code;
}

/* Deletes a JobSet or Job with propagationPolicy Orphan. The HTTP status. */
static inline int harness_delete_orphaning(struct harness *h, enum object_kind kind, const char *name)
{
    struct event event = {.kind = EVENT_WRITE,
                          .write = harness_write_event(kind, WRITE_DELETE, name, NULL, &(struct buf){0})};
    event.write.propagation = PROPAGATION_ORPHAN;
    h->last_code = 0;
    harness_step(h, &event);
    return h->last_code;
}

/* As a host does it: what the check refuses never becomes an event. */
static inline int harness_write_checked(struct harness *h, enum object_kind kind, enum write_verb verb,
                                        const char *name, const char *yaml)
{
    struct buf json = {0};
    struct event event = {.kind = EVENT_WRITE, .write = harness_write_event(kind, verb, name, yaml, &json)};
    struct effects checked = {0};
    event.write.prepared = core_prepare_write(&event.write);
    if (!core_check_write(h->core, &event.write, h->now_ns, &checked,
                          event.write.prepared ? NULL : &event.write.prepared)) {
        h->last_code = checked.list.items[0].reply.code;
        snprintf(h->last_message, sizeof(h->last_message), STR_FORMAT,
                 STR_ARG(checked.list.items[0].reply.message));
    } else {
        harness_step(h, &event);
    }
    prepared_write_free(event.write.prepared);
    vec_done(&checked.list);
    buf_done(&json);
    core_check_invariants(h->core);
    return h->last_code;
}

static inline struct jobset *harness_create(struct harness *h, const char *yaml)
{
    int code = harness_write(h, WRITE_CREATE, "", yaml);
    if (code != 201)
        fail_msg("create: %d %s", code, h->last_message);
    return vec_last(&core_jobs(h->core)->jobsets);
}

static inline struct jobset *harness_jobset(struct harness *h, const char *name)
{
    return jobs_find(core_jobs(h->core), STR("default"), str_from(name));
}

/* The living task with this host name; NULL: none. */
static inline struct task *harness_task(struct harness *h, const char *hostname)
{
    const struct job_store *store = core_jobs(h->core);
    for (size_t i = 0; i < store->jobsets.len; i++) {
        const struct jobset *jobset = store->jobsets.items[i];
        for (uint32_t j = 0; j < jobset->job_count; j++) {
            const struct job *job = jobset->jobs[j];
            for (size_t t = 0; job && t < job->tasks.len; t++)
                if (str_is(job->tasks.items[t]->hostname, hostname) &&
                    !task_ended(job->tasks.items[t]->state))
                    return job->tasks.items[t];
        }
    }
    return NULL;
}

static inline void harness_report(struct harness *h, const struct task_report *report, machine_id machine)
{
    struct event event = {.kind = EVENT_REPORTS};
    event.reports.machine = core_cluster(h->core)->machines[machine].name;
    event.reports.reports = (struct reports){.number = 1, .items = (struct task_report *)report, .count = 1};
    harness_step(h, &event);
}

/* Until the first of those begins again that are held back because they crash. */
static inline bool harness_wait_backoff(struct harness *h)
{
    int64_t due_ns = INT64_MAX;
    const struct job_store *jobs = core_jobs(h->core);
    for (size_t i = 0; i < jobs->jobsets.len; i++) {
        const struct jobset *jobset = jobs->jobsets.items[i];
        if (jobset->recovery.crashes.due_ns > h->now_ns && jobset->recovery.crashes.due_ns < due_ns &&
            !jobset->finished_ns && !jobset->spec.suspend && !jobset->deleted_ns)
            due_ns = jobset->recovery.crashes.due_ns;
    }
    if (due_ns == INT64_MAX)
        return false;
    harness_wait(h, due_ns - h->now_ns);
    return true;
}

/* Told tasks that were not started yet start; those told to stop end. Until nothing changes. */
static inline void harness_run_all(struct harness *h)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t i = 0; i < h->told.len; i++) {
            struct told told = h->told.items[i];
            if (told.ended || (told.started && !told.stopped))
                continue;
            h->told.items[i].started = true;
            struct task_report report = {.kind = told.stopped ? REPORT_EXITED : REPORT_STARTED,
                                         .task = told.task};
            if (told.stopped) {
                report.signal = 15;
                report.exit_code = -1;
                h->told.items[i].ended = true;
            }
            harness_report(h, &report, told.machine);
            changed = true;
        }
        changed = changed || harness_wait_backoff(h);
    }
}

/* The agent says that the errand has ended. */
static inline void harness_errand_end(struct harness *h, struct told_errand *errand,
                                      enum errand_outcome outcome, const char *output)
{
    assert_non_null(errand);
    assert_false(errand->over);
    errand->over = true;
    struct errand_end end = {errand->errand, outcome, outcome == ERRAND_FAILED ? 1 : 0, str_from(output)};
    struct event event = {.kind = EVENT_REPORTS};
    event.reports.machine = core_cluster(h->core)->machines[errand->machine].name;
    event.reports.reports = (struct reports){.number = 1, .errands = &end, .errand_count = 1};
    harness_step(h, &event);
}

static inline void harness_exit(struct harness *h, struct task *task, int code)
{
    assert_non_null(task);
    struct told *told = harness_told(h, task->uid);
    assert_non_null(told);
    told->ended = true;
    struct task_report report = {.kind = REPORT_EXITED, .task = task->uid, .exit_code = code};
    harness_report(h, &report, told->machine);
}

#endif
