/* Replicas that leave for want of machines, and come back: who stays, who stands by, which ranks there are.
 */
#include "core/job/story.h"
#include "core/launch/launch.h"

#include "base/rng.h"

#define TRAIN(more, count) SUSPENDED("false", more, count)
#define SUSPENDED(suspend, more, count)                                                                      \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, annotations: {" more            \
    "}}\nspec: {suspend: " suspend ", failurePolicy: {maxRestarts: 0}, "                                     \
    "replicatedJobs: [{name: w, replicas: 1, template: {spec: {parallelism: " #count                         \
    ", completions: " #count ", backoffLimit: 0, " POD_OF("", "2") "}}}]}\n"
#define REPLICAS(size) "phalanx.dev/replica-size: '" #size "'"

static void all_join(struct harness *h, struct jobset *jobset)
{
    harness_run_all(h);
    for (uint32_t i = 0; i < jobset->job_count; i++)
        for (size_t t = 0; jobset->jobs[i] && t < jobset->jobs[i]->tasks.len; t++) {
            struct task *task = jobset->jobs[i]->tasks.items[t];
            if (task->state == TASK_RUNNING && !task->joined && task->keep != KEEP_WAITS)
                task_joins(h, task);
        }
}

static struct jobset *begin(struct harness *h, int machines, const char *yaml)
{
    harness_init(h, machines, 4, 0);
    struct jobset *jobset = harness_create(h, yaml);
    all_join(h, jobset);
    progress_to(h, jobset, 1);
    return jobset;
}

static const char *machine_of(struct harness *h, const char *hostname)
{
    return core_cluster(h->core)->machines[harness_task(h, hostname)->machine].name.data;
}

static struct task *task_at(const struct jobset *jobset, uint32_t index)
{
    return jobset->jobs[0]->indexes[index].task;
}

/* The tasks that take part have the ranks from 0 on, in the order of their indexes; replicas are whole. */
static uint32_t check_ranks(const struct jobset *jobset, uint32_t size)
{
    uint32_t next = 0, world = 0, count = jobset->jobs[0]->index_count;
    for (uint32_t i = 0; i < count; i++)
        world += !task_is_away(task_at(jobset, i));
    for (uint32_t i = 0; i < count; i++) {
        const struct task *task = task_at(jobset, i);
        assert_int_equal(task_is_away(task), task_is_away(task_at(jobset, i / size * size)));
        if (task_is_away(task)) {
            assert_true(task->rank >= world && task->world == count);
            continue;
        }
        assert_int_equal((int)task->rank, (int)next++);
        assert_int_equal((int)task->world, (int)world);
    }
    return world;
}

static void a_replica_leaves_and_comes_back(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 3, TRAIN(REPLICAS(2), 6)); /* two ranks a machine: one replica each */
    struct task *zero = harness_task(&h, "a-w-0-0"), *four = harness_task(&h, "a-w-0-4");
    obj_id first = zero->uid, last = four->uid;
    char lost[64];
    snprintf(lost, sizeof lost, "%s", machine_of(&h, "a-w-0-2"));
    harness_lose(&h, lost);
    assert_true(!jobset_parks(jobset) && jobset->attempt == 1); /* no room: at once */
    assert_int_equal((int)jobset->recovery.absence.replicas.len, 1);
    assert_int_equal((int)jobset_replicas(jobset), 3);
    assert_int_equal((int)check_ranks(jobset, 2), 4);
    assert_note(&h, true, "Shrunk", "goes on with 2 of 3 replicas as attempt 1: the others have no place");
    assert_true(zero->uid == first && four->uid == last && four->rank == 2 && zero->keep == KEEP_TOLD);
    struct task_rejoin told;
    struct arena arena = {0};
    task_rejoin_build(four, core_cluster(h.core), &arena, &told);
    assert_true(told.rank == 2 && told.world == 4 && told.full_world == 6 && told.attempt == 1);
    arena_done(&arena);
    harness_check_replay(&h);
    all_join(&h, jobset);
    progress_to(&h, jobset, 5);
    assert_false(jobset_keeps(jobset));
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_UNKEPT], 8);
    harness_hello(&h, lost, NULL, 0);
    assert_int_equal(task_at(jobset, 2)->state, TASK_PLACED); /* it waits for its time */
    assert_true(!jobset_parks(jobset) && jobset->attempt == 1);
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_DEGRADED], 4);
    progress_to(&h, jobset, 6);
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_UNKEPT], 8); /* it makes no steps */
    harness_wait(&h, 11 * NS_PER_SECOND);
    assert_int_equal(jobset->attempt, 2);
    assert_true(jobset->recovery.absence.replicas.len == 0 && jobset->recovery.path == PATH_PLANNED);
    assert_int_equal((int)check_ranks(jobset, 2), 6);
    assert_note(&h, false, "Grown", "goes on with 3 of 3 replicas as attempt 2");
    harness_wait(&h, 100 * NS_PER_SECOND); /* a long step: nobody is hurried */
    assert_true(jobset->attempt == 2 && zero->uid == first && four->uid == last);
    all_join(&h, jobset);
    progress_to(&h, jobset, 7);
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_UNKEPT], 12);
    assert_string_equal(jobset->history.records[1].cause, "Grown");
    assert_int_equal((int)jobset->history.records[1].step_resumed_from, 6);
    assert_int_equal(jobset->restarts_counted + jobset->recovery.in_place_counted, 0);
    harness_done(&h);
}

/* Ranks outlive the JobSet: those that are away come back in their time, and no timer stays due. */
static void orphans_come_back(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 3, TRAIN(REPLICAS(2), 6));
    char lost[64];
    snprintf(lost, sizeof lost, "%s", machine_of(&h, "a-w-0-2"));
    harness_lose(&h, lost);
    assert_int_equal((int)jobset->recovery.absence.replicas.len, 1);
    all_join(&h, jobset);
    progress_to(&h, jobset, 5);
    assert_true(harness_delete_orphaning(&h, OBJECT_JOBSET, "a") == 200 && jobset->hidden);
    harness_hello(&h, lost, NULL, 0);
    assert_int_equal(task_at(jobset, 2)->state, TASK_PLACED);
    progress_to(&h, jobset, 6);
    h.now_ns += 11 * NS_PER_SECOND;
    harness_step(&h, &(struct event){.kind = EVENT_TICK});
    assert_true(core_deadline(h.core) > h.now_ns);
    assert_int_equal((int)jobset->recovery.absence.replicas.len, 0);
    assert_int_equal((int)check_ranks(jobset, 2), 6);
    all_join(&h, jobset);
    progress_to(&h, jobset, 7);
    assert_int_equal(task_at(jobset, 2)->state, TASK_RUNNING);
    harness_check_replay(&h);
    harness_done(&h);
}

#define OWN_JOB                                                                                              \
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, annotations: {" REPLICAS(                          \
        2) "}}\n"                                                                                            \
           "spec: {parallelism: 6, completions: 6, backoffLimit: 1, completionMode: Indexed, " POD_OF(       \
               "", "2") "}\n"

/* The Pods of a Job that left them behind: nobody makes a rank anew, so once one has ended, no attempt brings
 * the absent replica back. */
static void orphans_do_not_wait_for_ever(void **state)
{
    for (int course = 0; course < 4; course++) {
        bool back = course % 2, succeed = course / 2;
        struct harness h;
        harness_init(&h, 3, 4, 0);
        assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", OWN_JOB), 201);
        struct jobset *jobset = vec_last(&core_jobs(h.core)->jobsets);
        all_join(&h, jobset);
        progress_to(&h, jobset, 1);
        harness_lose(&h, core_cluster(h.core)->machines[task_at(jobset, 2)->machine].name.data);
        all_join(&h, jobset);
        progress_to(&h, jobset, 5);
        assert_int_equal((int)jobset->recovery.absence.replicas.len, 1);
        assert_true(harness_delete_orphaning(&h, OBJECT_JOB, "a") == 200 && jobset->hidden);
        if (back)
            for (machine_id m = 0; m < 3; m++)
                if (core_cluster(h.core)->machines[m].state != MACHINE_READY)
                    harness_hello(&h, core_cluster(h.core)->machines[m].name.data, NULL, 0);
        assert_int_equal(task_at(jobset, 2)->state, back ? TASK_PLACED : TASK_PENDING);
        for (uint32_t i = 0; i < 6; i += i == 1 ? 3 : 1)
            harness_exit(&h, task_at(jobset, i), succeed ? 0 : 1);
        core_check_invariants(h.core);
        assert_int_equal(jobset->jobs[0]->active, 0);
        harness_check_replay(&h);
        harness_done(&h);
    }
}

/* No process is started when ranks leave, so the steps of the others tell that the shrinking is over. */
static void two_losses_with_steps_between_are_two(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 3, TRAIN(REPLICAS(2), 6));
    for (int lost = 1; lost <= 2; lost++) {
        char machine[64];
        snprintf(machine, sizeof machine, "%s", machine_of(&h, lost == 1 ? "a-w-0-2" : "a-w-0-4"));
        harness_lose(&h, machine);
        all_join(&h, jobset);
        progress_to(&h, jobset, 5 * lost);
        assert_int_equal((int)check_ranks(jobset, 2), 6 - 2 * lost);
        assert_int_equal((int)jobset->history.record_count, lost);
        assert_string_equal(jobset->history.records[lost - 1].machine, machine);
    }
    harness_done(&h);
}

/* After a suspension all of it comes back, or waits. */
static void a_suspension_ends_it(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 3, TRAIN(REPLICAS(2), 6));
    char lost[64];
    snprintf(lost, sizeof lost, "%s", machine_of(&h, "a-w-0-2"));
    harness_lose(&h, lost);
    assert_int_equal((int)jobset->recovery.absence.replicas.len, 1);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", SUSPENDED("true", REPLICAS(2), 6)), 200);
    assert_int_equal((int)jobset->recovery.absence.replicas.len, 0);
    assert_int_equal(jobset->attempt, 2); /* of the first, ranks are known that are not those of all */
    harness_run_all(&h);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", TRAIN(REPLICAS(2), 6)), 200);
    harness_run_all(&h);
    assert_int_equal(task_at(jobset, 0)->state, TASK_PENDING); /* there is no room for a part of it */
    harness_hello(&h, lost, NULL, 0);
    all_join(&h, jobset);
    assert_int_equal((int)check_ranks(jobset, 2), 6);
    progress_to(&h, jobset, 5);
    harness_check_replay(&h);
    harness_done(&h);
}

/* The Job is made anew while a replica is away: the others are placed, and booked, without the replica. */
static void a_job_that_is_made_anew_is_divided(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 3, TRAIN(REPLICAS(2), 6));
    char lost[64];
    snprintf(lost, sizeof lost, "%s", machine_of(&h, "a-w-0-2"));
    harness_lose(&h, lost);
    all_join(&h, jobset);
    progress_to(&h, jobset, 3);
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){.verb = WRITE_DELETE,
                                       .object = OBJECT_JOB,
                                       .namespace_ = STR("default"),
                                       .name = STR("a-w-0"),
                                       .grace_s = -1};
    harness_step(&h, &event);
    assert_true(task_at(jobset, 0)->gang == task_at(jobset, 4)->gang);
    assert_true(task_at(jobset, 2)->gang != task_at(jobset, 0)->gang); /* at once */
    all_join(&h, jobset);
    assert_true(jobset->attempt == 2 &&
                jobset->recovery.absence.replicas.len == 1); /* the old ones may still run */
    assert_int_equal((int)check_ranks(jobset, 2), 4);
    progress_to(&h, jobset, 4);
    core_check_invariants(h.core);
    harness_check_replay(&h);
    harness_done(&h);
}

/* The Job is made anew while a replica is away, which is whole again before the others are back: the replica
 * returns with the event that makes the last of them ready for it, not with a later one. */
static void a_replica_returns_at_once(void **state)
{
    for (int steps = 0; steps < 2; steps++) {
        struct harness h;
        struct jobset *jobset = begin(&h, 3, TRAIN(REPLICAS(2), 6));
        char lost[64];
        snprintf(lost, sizeof lost, "%s", machine_of(&h, "a-w-0-2"));
        harness_lose(&h, lost);
        if (!steps) {
            all_join(&h, jobset);
            progress_to(&h, jobset, 3);
        }
        assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_DELETE, "a-w-0", NULL), 200);
        harness_run_all(&h);
        harness_hello(&h, lost, NULL, 0);
        harness_run_all(&h);
        harness_wait(&h, 11 * NS_PER_SECOND);
        assert_int_equal(task_at(jobset, 2)->state, TASK_PLACED);
        assert_true(jobset->attempt == 2 && jobset->recovery.absence.replicas.len == 1);
        all_join(&h, jobset);
        if (steps)
            progress_to(&h, jobset, 4);
        assert_true(jobset->attempt == 3 && jobset->recovery.absence.replicas.len == 0);
        assert_int_equal((int)check_ranks(jobset, 2), 6);
        harness_done(&h);
    }
}

#define FAILING_INDEXES                                                                                      \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, annotations: {" REPLICAS(       \
        2) "}}\n"                                                                                            \
           "spec: {failurePolicy: {maxRestarts: 0}, replicatedJobs: [{name: w, replicas: 1, template: "      \
           "{spec: {parallelism: 6, completions: 6, completionMode: Indexed, backoffLimitPerIndex: 1, "      \
           "podFailurePolicy: {rules: [{action: FailIndex, onExitCodes: {operator: In, values: "             \
           "[3]}}]}, " POD_OF("", "2") "}}}]}\n"

/* A rank whose index has failed for good makes no step, and is not waited for. */
static void a_replica_returns_past_a_failed_index(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 3, FAILING_INDEXES);
    char lost[64];
    snprintf(lost, sizeof lost, "%s", machine_of(&h, "a-w-0-2"));
    harness_lose(&h, lost);
    assert_int_equal((int)jobset->recovery.absence.replicas.len, 1);
    all_join(&h, jobset);
    progress_to(&h, jobset, 5);
    exits(&h, "a-w-0-0", 3);
    assert_true(jobset->jobs[0]->indexes[0].failed && jobset->attempt == 1);
    progress_to(&h, jobset, 6);
    harness_hello(&h, lost, NULL, 0);
    harness_wait(&h, 11 * NS_PER_SECOND);
    assert_true(jobset->attempt == 2 && jobset->recovery.absence.replicas.len == 0);
    harness_check_replay(&h);
    harness_done(&h);
}

/* A replica of two machines: what is left of it waits in its processes. */
static void the_rest_stands_by(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 4, TRAIN(REPLICAS(4), 8));
    struct task *rest = harness_task(&h, "a-w-0-6");
    obj_id uid = rest->uid;
    char lost[64];
    snprintf(lost, sizeof lost, "%s", machine_of(&h, "a-w-0-4"));
    harness_lose(&h, lost);
    assert_int_equal((int)check_ranks(jobset, 4), 4);
    assert_true(rest->state == TASK_RUNNING && rest->keep == KEEP_WAITS && rest->holds);
    all_join(&h, jobset);
    progress_to(&h, jobset, 3);
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_UNKEPT], 8);
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_DEGRADED], 4);
    exits(&h, "a-w-0-7", 1); /* one that stands by ends: nobody's loss */
    assert_true(jobset->attempt == 1 && !jobset_parks(jobset) && task_at(jobset, 7)->state == TASK_PLACED);
    assert_int_equal(jobset->jobs[0]->failed, 0);
    harness_check_replay(&h);
    harness_wait(&h, 61 * NS_PER_SECOND);
    assert_int_equal(jobset->attempt, 1); /* half of it is no replica */
    harness_hello(&h, lost, NULL, 0);
    assert_int_equal(jobset->attempt, 2);
    assert_true(rest->uid == uid && rest->keep == KEEP_TOLD);
    assert_int_equal((int)check_ranks(jobset, 4), 8);
    all_join(&h, jobset);
    progress_to(&h, jobset, 4);
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_UNKEPT], 16);
    harness_done(&h);
}

static void never_fewer_than_the_least(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 2, TRAIN(REPLICAS(2) ", phalanx.dev/min-replicas: '2'", 4));
    harness_lose(&h, machine_of(&h, "a-w-0-0"));
    assert_true(jobset_parks(jobset) && jobset_keeps(jobset) && jobset->recovery.absence.replicas.len == 0);
    harness_wait(&h, 151 * NS_PER_SECOND);
    assert_int_equal(jobset->recovery.state, RECOVERY_DUMPING); /* the rung after; nobody saves */
    harness_wait(&h, 61 * NS_PER_SECOND);
    /* The last one: the policy's restart, which infrastructure is forgiven. */
    assert_true(jobset->restarts == 1 && !jobset_parks(jobset) && !jobset_finished(jobset));
    harness_done(&h);
}

/* The rung is not allowed, or the world is not divided: as before. */
static void only_where_it_is_asked(void **state)
{
    static const char *const yamls[] = {
        TRAIN(REPLICAS(2) ", phalanx.dev/recovery: replace-machine", 4),
        TRAIN("phalanx.dev/min-replicas: '1'", 4),
    };
    for (int i = 0; i < 2; i++) {
        struct harness h;
        struct jobset *jobset = begin(&h, 2, yamls[i]);
        harness_lose(&h, machine_of(&h, "a-w-0-0"));
        assert_true(jobset_parks(jobset) && jobset->recovery.absence.replicas.len == 0);
        harness_done(&h);
    }
}

static void ranks_that_are_through_end_it(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 2, TRAIN(REPLICAS(2), 4));
    harness_lose(&h, machine_of(&h, "a-w-0-0"));
    all_join(&h, jobset);
    progress_to(&h, jobset, 9);
    exits(&h, "a-w-0-2", 0);
    assert_int_equal(jobset->terminal_state, TERMINAL_NONE);
    exits(&h, "a-w-0-3", 0);
    harness_run_all(&h);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    harness_done(&h);
}

/* Indexes that have failed for good fail the Job: absent replicas, which will not come back, are not waited
 * for. */
static void failed_indexes_end_it_without_those_away(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 3, FAILING_INDEXES);
    char lost[64];
    snprintf(lost, sizeof lost, "%s", machine_of(&h, "a-w-0-2"));
    harness_lose(&h, lost);
    all_join(&h, jobset);
    progress_to(&h, jobset, 5);
    exits(&h, "a-w-0-0", 3);
    exits(&h, "a-w-0-1", 0);
    exits(&h, "a-w-0-4", 0);
    assert_int_equal(jobset->terminal_state, TERMINAL_NONE);
    exits(&h, "a-w-0-5", 0);
    harness_hello(&h, lost, NULL, 0);
    harness_run_all(&h);
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    harness_check_replay(&h);
    harness_done(&h);
}

#define TWO_JOBS(suspend)                                                                                    \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, annotations: {" REPLICAS(       \
        2) ", phalanx.dev/recovery: 'restart-process, shrink'}}\n"                                           \
           "spec: {suspend: " suspend ", replicatedJobs: [{name: w, replicas: 2, template: {spec: "          \
           "{parallelism: 2, completions: 2, completionMode: Indexed, backoffLimit: 3, " POD_OF(             \
               "", "2") "}}}]}\n"

/* A rank of an absent replica that its Job is yet to make, after a back-off, is not waited for either. */
static void ranks_yet_to_be_made_are_not_waited_for(void **state)
{
    struct harness h;
    harness_init(&h, 4, 2, 0);
    struct jobset *jobset = harness_create(&h, TWO_JOBS("false"));
    harness_run_all(&h);
    exits(&h, "a-w-1-1", 1);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", TWO_JOBS("true")), 200);
    for (size_t i = 0; i < h.told.len; i++)
        if (h.told.items[i].stopped && !h.told.items[i].ended)
            harness_exit(&h, jobs_find_task(core_jobs(h.core), h.told.items[i].task), 0);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", TWO_JOBS("false")), 200);
    assert_null(jobset->jobs[1]->indexes[0].task);
    all_join(&h, jobset);
    harness_lose(&h, machine_of(&h, "a-w-0-1"));
    all_join(&h, jobset);
    assert_int_equal((int)jobset->recovery.absence.replicas.len, 1);
    exits(&h, "a-w-0-0", 0);
    exits(&h, "a-w-0-1", 0);
    harness_wait(&h, 61 * NS_PER_SECOND);
    harness_run_all(&h);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    harness_check_replay(&h);
    harness_done(&h);
}

static void wrong_words_are_refused(void **state)
{
    struct harness h;
    harness_init(&h, 1, 4, 0);
    assert_int_equal(harness_write(&h, WRITE_CREATE, "", TRAIN(REPLICAS(3), 4)), 422);
    assert_int_equal(harness_write(&h, WRITE_CREATE, "", TRAIN(REPLICAS(x), 4)), 422);
    assert_int_equal(
        harness_write(&h, WRITE_CREATE, "", TRAIN(REPLICAS(2) ", phalanx.dev/min-replicas: '3'", 4)), 422);
    assert_int_equal(harness_write(&h, WRITE_CREATE, "", TRAIN(REPLICAS(2), 4)), 201);
    harness_done(&h);
}

/* Machines go and come: ranks are contiguous in whole replicas, never fewer than the least; with all machines
 * back the world is full again. */
static void random_losses(void **state)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct harness h;
        struct rng rng;
        rng_seed(&rng, seed);
        uint32_t size = seed % 3 == 0 ? 4 : 2;
        struct jobset *jobset = begin(&h, 5, size == 4 ? TRAIN(REPLICAS(4), 8) : TRAIN(REPLICAS(2), 8));
        const struct cluster *cluster = core_cluster(h.core);
        int64_t step = 1;
        for (int i = 0; i < 30 && !jobset_finished(jobset); i++) {
            machine_id machine = (machine_id)rng_below(&rng, 5);
            char name[64];
            snprintf(name, sizeof name, "%s", cluster->machines[machine].name.data);
            if (cluster->machines[machine].state == MACHINE_LOST)
                harness_hello(&h, name, NULL, 0);
            else if (rng_below(&rng, 2))
                harness_lose(&h, name);
            core_check_invariants(h.core);
            if (rng_below(&rng, 3))
                all_join(&h, jobset);
            if (rng_below(&rng, 2) && !jobset_parks(jobset))
                progress_to(&h, jobset, ++step);
            if (!jobset_parks(jobset) && jobset->jobs[0] && jobset->jobs[0]->state == JOB_ACTIVE)
                assert_true(check_ranks(jobset, size) >= size);
            harness_wait(&h, (int64_t)rng_below(&rng, 40) * NS_PER_SECOND);
        }
        for (machine_id m = 0; m < 5; m++)
            if (cluster->machines[m].state == MACHINE_LOST)
                harness_hello(&h, cluster->machines[m].name.data, NULL, 0);
        for (int i = 0; i < 8 && !jobset_finished(jobset); i++) {
            all_join(&h, jobset);
            if (!jobset_parks(jobset))
                progress_to(&h, jobset, ++step);
            harness_wait(&h, 61 * NS_PER_SECOND);
        }
        if (!jobset_finished(jobset))
            assert_int_equal((int)check_ranks(jobset, size), 8);
        harness_done(&h);
    }
}

static void tells_nobody(struct harness *h, const struct event *event)
{
    assert_null(find_effect(h, EFFECT_TASK_REJOIN));
    assert_null(find_effect(h, EFFECT_TASK_START));
}

/* A loss ends the wait for a last save: who is left is stopped, and is not told to make another world with a
 * replica that has a place again. */
#define ONLY_SHRINKS REPLICAS(1) ", phalanx.dev/recovery: shrink"
static void a_loss_while_it_is_suspended(void **state)
{
    struct harness h;
    harness_init(&h, 3, 2, 0);
    struct jobset *jobset = harness_create(&h, TRAIN(ONLY_SHRINKS, 3));
    all_join(&h, jobset);
    progress_to(&h, jobset, 1);
    harness_lose(&h, machine_of(&h, "a-w-0-2"));
    all_join(&h, jobset);
    assert_int_equal((int)jobset->recovery.absence.replicas.len, 1);
    progress_to(&h, jobset, 3);
    harness_hello(&h, "m-3", NULL, 0);
    assert_int_equal(task_at(jobset, 2)->state, TASK_PLACED);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", SUSPENDED("true", ONLY_SHRINKS, 3)), 200);
    assert_no_condition(jobset, CONDITION_SUSPENDED); /* its ranks may save */
    h.after = tells_nobody;
    harness_lose(&h, machine_of(&h, "a-w-0-0"));
    assert_condition(jobset, CONDITION_SUSPENDED, true, "SuspendedJobs", "jobset is suspended");
    harness_check_replay(&h);
    harness_done(&h);
}

/* In order, a Job waits for those before it to be ready, but not for absent replicas of them, which do not
 * come back before it is there. Where one of them has taken its room, that one goes on instead. */
static void a_job_made_anew_waits_for_nobody_absent(void **state)
{
    struct harness h;
    harness_init(&h, 3, 2, 0);
    struct jobset *jobset = harness_create(
        &h,
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, annotations: {" ONLY_SHRINKS
        "}}\nspec: {failurePolicy: {maxRestarts: 0}, startupPolicy: {startupPolicyOrder: InOrder}, "
        "replicatedJobs: [{name: w, replicas: 1, template: {spec: {parallelism: 2, completions: 2, "
        "completionMode: Indexed, backoffLimit: 0, " POD_OF(
            "",
            "2") "}}}, {name: z, replicas: 1, template: "
                 "{spec: {parallelism: 1, completions: 1, completionMode: Indexed, backoffLimit: 0, " POD_OF(
                     "", "2") "}}}]}\n");
    for (int round = 0; round < 2; round++) /* one Job after the other */
        all_join(&h, jobset);
    progress_to(&h, jobset, 1);
    harness_lose(&h, machine_of(&h, "a-w-0-1"));
    all_join(&h, jobset);
    harness_lose(&h, machine_of(&h, "a-w-0-0"));
    all_join(&h, jobset);
    assert_int_equal((int)jobset->recovery.absence.replicas.len, 2);
    obj_id before = harness_task(&h, "a-z-0-0")->uid;
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_DELETE, "a-z-0", NULL), 200);
    harness_run_all(&h);
    const struct task *task = harness_task(&h, "a-z-0-0");
    assert_true(task->uid != before && task->state == TASK_PENDING); /* an absent rank has its place */
    harness_wait(&h, 11 * NS_PER_SECOND);
    harness_run_all(&h);
    assert_int_equal(jobset->attempt, 3);
    assert_int_equal(
        (task_at(jobset, 0)->state == TASK_RUNNING) + (task_at(jobset, 1)->state == TASK_RUNNING), 1);
    assert_true(task_is_away(harness_task(&h, "a-z-0-0")));
    harness_check_replay(&h);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loss_while_it_is_suspended),
        cmocka_unit_test(failed_indexes_end_it_without_those_away),
        cmocka_unit_test(ranks_yet_to_be_made_are_not_waited_for),
        cmocka_unit_test(a_job_made_anew_waits_for_nobody_absent),
        cmocka_unit_test(orphans_come_back),
        cmocka_unit_test(orphans_do_not_wait_for_ever),
        cmocka_unit_test(a_replica_leaves_and_comes_back),
        cmocka_unit_test(two_losses_with_steps_between_are_two),
        cmocka_unit_test(a_suspension_ends_it),
        cmocka_unit_test(a_job_that_is_made_anew_is_divided),
        cmocka_unit_test(a_replica_returns_at_once),
        cmocka_unit_test(a_replica_returns_past_a_failed_index),
        cmocka_unit_test(the_rest_stands_by),
        cmocka_unit_test(never_fewer_than_the_least),
        cmocka_unit_test(only_where_it_is_asked),
        cmocka_unit_test(ranks_that_are_through_end_it),
        cmocka_unit_test(wrong_words_are_refused),
        cmocka_unit_test(random_losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
