/* story.h - words for stories of JobSets: small files, and what people see afterwards.
 *
 *     harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 1}, ", RJOB("w", 1, "", 2, "")));
 *     exits(&h, "a-w-0-1", 1);
 *     assert_condition(jobset, CONDITION_RESTARTING, true, "DefaultFailurePolicy", "applying ...");
 *     assert_note(&h, "RestartJobSetFailurePolicyAction", 1);
 */
#ifndef PHX_TESTS_CORE_JOB_STORY_H
#define PHX_TESTS_CORE_JOB_STORY_H

#include "core/harness.h"

#define POD_OF(extra, chips)                                                                                 \
    "template: {spec: {restartPolicy: Never, " extra                                                         \
    "containers: [{name: main, image: none, command: [run], "                                                \
    "resources: {limits: {google.com/tpu: " chips "}}}]}}"
/* One replicated job of `parallel` tasks with one chip each; `extra` and `job` are further fields, each with
 * ", ". */
#define RJOB(name, replicas, extra, parallel, job)                                                           \
    "{name: " name ", replicas: " #replicas ", " extra "template: {spec: {parallelism: " #parallel           \
    ", completions: " #parallel ", backoffLimit: 0, " job POD_OF("", "1") "}}}"
#define JOBSET(name, fields, rjobs)                                                                          \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: " name "}\nspec: {" fields         \
    "replicatedJobs: [" rjobs "]}\n"

/* The first effect of the last step that is of this kind; NULL: none is. */
static inline const struct effect *find_effect(const struct harness *h, enum effect_kind kind)
{
    for (size_t i = 0; i < h->effects.list.len; i++)
        if (h->effects.list.items[i].kind == kind)
            return &h->effects.list.items[i];
    return NULL;
}

static inline void exits(struct harness *h, const char *hostname, int code)
{
    struct task *task = harness_task(h, hostname);
    if (!task)
        fail_msg("no living task %s", hostname);
    harness_exit(h, task, code);
}

/* How often the note was left, over all objects. */
static inline int notes(const struct harness *h, const char *reason)
{
    const struct note_ring *ring = core_notes(h->core);
    int count = 0;
    for (uint64_t slot = ring->first; slot < ring->next; slot++)
        if (str_is(note_at(ring, slot)->reason, reason))
            count += (int)note_at(ring, slot)->count;
    return count;
}

static inline const struct note *last_note(const struct harness *h, const char *reason)
{
    const struct note_ring *ring = core_notes(h->core);
    for (uint64_t slot = ring->next; slot > ring->first; slot--)
        if (str_is(note_at(ring, slot - 1)->reason, reason))
            return note_at(ring, slot - 1);
    fail_msg("no note %s", reason);
    return NULL;
}

/* The newest note with this reason: its type, its words, and that it was left once. */
static inline void assert_note(const struct harness *h, bool warning, const char *reason, const char *message)
{
    const struct note *note = last_note(h, reason);
    assert_int_equal(note->warning, warning);
    char text[256];
    snprintf(text, sizeof(text), STR_FORMAT, STR_ARG(note->message));
    assert_string_equal(text, message);
    assert_int_equal((int)note->count, 1);
}

static inline void assert_condition(const struct jobset *jobset, enum condition_kind kind, bool status,
                                    const char *reason, const char *message)
{
    const struct condition *condition = &jobset->conditions[kind];
    assert_true(condition->present);
    assert_int_equal(condition->status, status);
    assert_string_equal(condition->reason, reason);
    assert_string_equal(condition->message.data, message);
}

static inline void assert_no_condition(const struct jobset *jobset, enum condition_kind kind)
{
    assert_false(jobset->conditions[kind].present);
}

static inline struct job *job_of(struct harness *h, const char *name)
{
    return jobs_find_job(core_jobs(h->core), STR("default"), str_from(name));
}

static inline void assert_job_failed(struct harness *h, const char *name, const char *reason,
                                     const char *message)
{
    const struct job *job = job_of(h, name);
    assert_non_null(job);
    assert_int_equal(job->state, JOB_FAILED);
    assert_string_equal(job->reason, reason);
    char text[256];
    snprintf(text, sizeof(text), STR_FORMAT, STR_ARG(job->message));
    assert_string_equal(text, message);
}

/* Free chips of machines that take work, spares included. */
static inline int64_t idle_chips(const struct harness *h)
{
    const int64_t *chips = core_ledger(h->core)->chips;
    return chips[OWNER_IDLE] + chips[OWNER_FRAGMENTED] + chips[OWNER_STANDBY];
}

/* As many tasks of the job are alive. */
static inline int living(const struct job *job)
{
    return job ? (int)job->active : 0;
}

static inline int delete_object(struct harness *h, enum object_kind kind, struct str name)
{
    char copy[300];
    snprintf(copy, sizeof(copy), STR_FORMAT, STR_ARG(name));
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){.verb = WRITE_DELETE,
                                       .object = kind,
                                       .namespace_ = STR("default"),
                                       .name = str_from(copy),
                                       .grace_s = -1};
    harness_step(h, &event);
    return h->last_code;
}

static inline void report_task(struct harness *h, const char *hostname, struct task_report report)
{
    struct task *task = harness_task(h, hostname);
    assert_non_null(task);
    report.task = task->uid;
    harness_report(h, &report, task->machine);
}

static inline void progress_to(struct harness *h, const struct jobset *jobset, int64_t step)
{
    struct event event = {.kind = EVENT_PROGRESS};
    event.progress = (struct progress_event){
        .jobset = jobset->uid, .attempt = jobset->attempt, .step = step, .total = 1000};
    harness_step(h, &event);
}

/* The task speaks libphalanx, has joined its attempt, and can go on under another one. */
static inline void task_joins(struct harness *h, const struct task *task)
{
    struct task_report report = {.kind = REPORT_JOINED,
                                 .task = task->uid,
                                 .attempt_plus_1 = (uint32_t)task->attempt + 1,
                                 .can_rejoin = true,
                                 .spare = task_is_spare(task)};
    harness_report(h, &report, task->machine);
    core_check_invariants(h->core);
}

/* Ranks, and then their spares, start and join. */
static inline void all_join_with_spares(struct harness *h, const struct jobset *jobset)
{
    for (int round = 0; round < 2; round++) {
        harness_run_all(h);
        for (uint32_t i = 0; i < jobset->job_count; i++) {
            const struct job *job = jobset->jobs[i];
            for (size_t t = 0; job && t < job->tasks.len; t++)
                if (job->tasks.items[t]->state == TASK_RUNNING && !job->tasks.items[t]->joined)
                    task_joins(h, job->tasks.items[t]);
            for (size_t s = 0; job && s < job->spares.len; s++)
                if (job->spares.items[s]->state == TASK_RUNNING && !job->spares.items[s]->joined)
                    task_joins(h, job->spares.items[s]);
        }
    }
}

#endif
