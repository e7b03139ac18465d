/* The dying checkpoint: who is told of what, when it is committed, refused or over its time, and that the
 * restart behind it is the same one. */
#include "core/job/story.h"
#include "core/launch/launch.h"

#define TRAIN(notes, tasks, spec)                                                                            \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, annotations: {" notes "}}\n"    \
    "spec: {" spec "replicatedJobs: [{name: w, replicas: 1, template: {spec: {parallelism: " #tasks          \
    ", completions: " #tasks ", backoffLimit: 0, " POD_OF("", "4") "}}}]}\n"
#define DUMP   "phalanx.dev/recovery: 'dump'"
#define MAX(n) "failurePolicy: {maxRestarts: " #n "}, "

struct told_rejoins {
    size_t count;
    struct task_rejoin by_rank[8];
    char rendezvous[RENDEZVOUS_MAX + 1];
};

static void note_rejoins(struct harness *h, const struct event *event)
{
    struct told_rejoins *seen = h->context;
    for (size_t i = 0; i < h->effects.list.len; i++) {
        const struct effect *effect = &h->effects.list.items[i];
        if (effect->kind != EFFECT_TASK_REJOIN)
            continue;
        struct arena arena = {0};
        struct task_rejoin rejoin;
        task_rejoin_build(effect->rejoin, core_cluster(h->core), &arena, &rejoin);
        assert_true(rejoin.rank < 8);
        snprintf(seen->rendezvous, sizeof seen->rendezvous, STR_FORMAT, STR_ARG(rejoin.rendezvous));
        rejoin.rendezvous = STR("");
        seen->by_rank[rejoin.rank] = rejoin;
        seen->count++;
        arena_done(&arena);
    }
}

static void saves(struct harness *h, struct task *task, int64_t step)
{
    struct task_report report = {.kind = REPORT_SHARD_SAVED,
                                 .task = task->uid,
                                 .step = step,
                                 .attempt_plus_1 = (uint32_t)task->attempt + 1};
    harness_report(h, &report, task->machine);
    core_check_invariants(h->core);
}

static void all_join(struct harness *h, const struct jobset *jobset)
{
    harness_run_all(h);
    for (uint32_t i = 0; i < jobset->job_count; i++)
        for (size_t t = 0; jobset->jobs[i] && t < jobset->jobs[i]->tasks.len; t++)
            if (!task_ended(jobset->jobs[i]->tasks.items[t]->state))
                task_joins(h, jobset->jobs[i]->tasks.items[t]);
}

static struct jobset *begin(struct harness *h, struct told_rejoins *seen, int machines, const char *yaml)
{
    harness_init(h, machines, 4, 0);
    *seen = (struct told_rejoins){0};
    h->context = seen;
    h->after = note_rejoins;
    struct jobset *jobset = harness_create(h, yaml);
    all_join(h, jobset);
    progress_to(h, jobset, 40);
    return jobset;
}

static void lose(struct harness *h, const char *hostname)
{
    harness_lose(h, core_cluster(h->core)->machines[harness_task(h, hostname)->machine].name.data);
    core_check_invariants(h->core);
}

static const struct restart_record *newest(const struct jobset *jobset)
{
    return &jobset->history.records[(jobset->history.record_count - 1) % RESTART_RECORDS_MAX];
}

static const struct task_launch *launch_of(struct harness *h, const struct task *task, struct arena *arena)
{
    struct task_launch *launch = NULL;
    for (size_t i = 0; i < h->effects.list.len; i++) {
        const struct effect *effect = &h->effects.list.items[i];
        if (effect->kind != EFFECT_TASK_START || effect->start != task)
            continue;
        launch = ARENA_ARRAY(arena, struct task_launch, 1);
        task_launch_build(effect->start, core_cluster(h->core), arena, launch);
    }
    return launch;
}

/* An agent comes back without two ranks of its machine: the order to start one was lost, the other one was
 * running. The loss of the latter begins the dying checkpoint, in which a survivor is rank 0 of the next
 * attempt: the order to start the old rank 0 is not repeated under that attempt's number. */
static void a_lost_start_is_not_repeated_under_the_next_attempt(void **state)
{
    struct harness h;
    struct told_rejoins seen;
    harness_init(&h, 2, 8, 0);
    h.context = &seen;
    h.after = note_rejoins;
    seen = (struct told_rejoins){0};
    struct jobset *jobset = harness_create(&h, TRAIN(DUMP, 3, MAX(3)));
    struct task *zero = harness_task(&h, "a-w-0-0"), *one = harness_task(&h, "a-w-0-1");
    struct task *two = harness_task(&h, "a-w-0-2");
    assert_true(zero->machine == one->machine && zero->machine != two->machine);
    struct task *here[2] = {one, two};
    for (size_t i = 0; i < 2; i++) {
        struct task_report started = {.kind = REPORT_STARTED, .task = here[i]->uid};
        harness_report(&h, &started, here[i]->machine);
        task_joins(&h, here[i]);
    }
    harness_hello(&h, core_cluster(h.core)->machines[zero->machine].name.data, NULL, 0);
    struct arena arena = {0};
    const struct task_launch *again = launch_of(&h, zero, &arena);
    assert_true(!again || again->attempt == 0);
    assert_true(!again || jobset->attempt == 0);
    arena_done(&arena);
    core_check_invariants(h.core);
    harness_check_replay(&h);
    harness_done(&h);
}

static void survivors_save_and_all_begin_anew(void **state)
{
    struct harness h;
    struct told_rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 5, TRAIN(DUMP, 4, MAX(0)));
    struct task *one = harness_task(&h, "a-w-0-1"), *two = harness_task(&h, "a-w-0-2");
    struct task *three = harness_task(&h, "a-w-0-3");
    lose(&h, "a-w-0-0"); /* where rank 0 listened */
    assert_int_equal(jobset->recovery.state, RECOVERY_DUMPING);
    assert_int_equal(jobset->attempt, 1);
    assert_int_equal((int)seen.count, 3);
    const obj_id expected[3] = {one->uid, two->uid, three->uid};
    for (uint32_t rank = 0; rank < 3; rank++) {
        const struct task_rejoin *rejoin = &seen.by_rank[rank];
        assert_true(rejoin->task == expected[rank] && rejoin->flags == REJOIN_DUMP && rejoin->attempt == 1);
        assert_true(rejoin->world == 3 && rejoin->full_world == 4);
    }
    char rendezvous[64];
    snprintf(rendezvous, sizeof rendezvous, STR_FORMAT ":%u",
             STR_ARG(core_cluster(h.core)->machines[one->machine].address), one->port + 1u);
    assert_string_equal(seen.rendezvous, rendezvous);
    assert_int_equal((int)jobset->jobs[0]->active, 3); /* nobody is made anew */
    assert_int_equal(newest(jobset)->rung, RUNG_DUMP);
    assert_non_null(strstr(newest(jobset)->passed, "replace-machine: not allowed"));
    assert_non_null(strstr(last_note(&h, "RecoveryDecided")->message.data, "dump as attempt 1: "));
    harness_check_replay(&h);
    task_joins(&h, one);
    task_joins(&h, two);
    task_joins(&h, three);
    saves(&h, one, 39);
    saves(&h, two, 39);
    assert_int_equal((int)jobset->checkpoint.committed_step, -1);
    assert_int_equal(jobset->recovery.state, RECOVERY_DUMPING);
    saves(&h, three, 39);
    assert_int_equal((int)jobset->checkpoint.committed_step, 39);
    assert_int_equal(jobset->checkpoint.committed_attempt, 1);
    assert_note(&h, false, "DyingCheckpoint",
                "step 39 is committed as attempt 1: the survivors wrote the state of all ranks");
    /* A machine was lost: nothing counts, though none is allowed. */
    assert_int_equal(jobset->attempt, 2);
    assert_int_equal(jobset->restarts, 1);
    assert_int_equal(jobset->restarts_counted + jobset->recovery.in_place_counted, 0);
    assert_true(jobset->recovery.state != RECOVERY_DUMPING && !jobset_parks(jobset) && !jobset_keeps(jobset));
    assert_int_equal((int)jobset->history.record_count, 1);
    assert_int_equal(newest(jobset)->rung, RUNG_DUMP);
    assert_int_equal(newest(jobset)->attempt, 2);
    assert_string_equal(newest(jobset)->cause, "MachineLost");
    assert_int_equal(notes(&h, "RecoveryDecided"), 1);
    harness_check_replay(&h);
    all_join(&h, jobset);
    progress_to(&h, jobset, 40);
    assert_int_equal((int)newest(jobset)->step_resumed_from, 39);
    assert_int_equal(harness_task(&h, "a-w-0-0")->world, 4);
    core_check_invariants(h.core);
    harness_done(&h);
}

/* Ranks of a dump are those of its own world: what survivors say of one is of no rank that is gone. */
static void a_survivor_that_others_miss_is_lost_at_once(void **state)
{
    struct harness h;
    struct told_rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 5, TRAIN(DUMP, 4, MAX(0)));
    struct task *one = harness_task(&h, "a-w-0-1"), *two = harness_task(&h, "a-w-0-2");
    struct task *three = harness_task(&h, "a-w-0-3");
    lose(&h, "a-w-0-0");
    task_joins(&h, one);
    task_joins(&h, two);
    task_joins(&h, three);
    struct task_report misses = {
        .kind = REPORT_PEER_GONE, .task = two->uid, .attempt_plus_1 = 2, .peer_rank = one->rank};
    assert_int_equal(one->rank, 0); /* as the rank that was lost */
    harness_report(&h, &misses, two->machine);
    harness_news(&h, EVENT_MACHINE_AWAY, core_cluster(h.core)->machines[one->machine].name.data);
    core_check_invariants(h.core);
    assert_int_equal(jobset->recovery.state, RECOVERY_DUMPING);
    assert_int_equal(jobset->attempt, 2); /* the other two meet without it */
    harness_check_replay(&h);
    harness_done(&h);
}

/* The next loss, in the midst of the start behind it, is a restart of its own. */
static void the_next_restart_is_another(void **state)
{
    struct harness h;
    struct told_rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 4, TRAIN(DUMP, 2, MAX(9)));
    exits(&h, "a-w-0-0", 1);
    task_joins(&h, harness_task(&h, "a-w-0-1"));
    saves(&h, harness_task(&h, "a-w-0-1"), 40);
    assert_int_equal(jobset->attempt, 2);
    assert_int_equal(jobset->restarts_counted, 1); /* it ended by itself */
    harness_run_all(&h);
    exits(&h, "a-w-0-0", 1);
    assert_int_equal((int)jobset->history.record_count, 2);
    assert_int_equal(newest(jobset)->attempt, 3);
    assert_int_equal(newest(jobset)->rung, RUNG_REQUEUE); /* nobody has joined */
    assert_non_null(strstr(newest(jobset)->passed, "dump: no survivor can save"));
    assert_int_equal((int)jobset->checkpoint.committed_step, 40);
    harness_done(&h);
}

/* The shards are not whole: who has joined ends. */
static void refused(void **state)
{
    struct harness h;
    struct told_rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 5, TRAIN(DUMP, 3, MAX(9)));
    lose(&h, "a-w-0-2");
    task_joins(&h, harness_task(&h, "a-w-0-0"));
    task_joins(&h, harness_task(&h, "a-w-0-1"));
    exits(&h, "a-w-0-1", 75);
    assert_int_equal((int)jobset->checkpoint.committed_step, -1);
    const struct note *note = last_note(&h, "DyingCheckpoint");
    assert_true(note->warning);
    assert_non_null(strstr(note->message.data, "refused as attempt 1, the previous commit stays: a-w-0-1-"));
    assert_non_null(strstr(note->message.data, "ended, exit code 75"));
    assert_int_equal(jobset->attempt, 2);
    assert_int_equal(jobset->restarts_counted, 0);
    assert_int_equal((int)jobset->history.record_count, 1);
    assert_int_equal(newest(jobset)->rung, RUNG_REQUEUE);
    assert_non_null(strstr(newest(jobset)->passed, "dump: it did not help in its time"));
    all_join(&h, jobset);
    core_check_invariants(h.core);
    harness_done(&h);
}

/* One more is lost: those that are left meet again, as another attempt; the time is that of the first. */
static void survivors_are_lost_too(void **state)
{
    struct harness h;
    struct told_rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 6, TRAIN(DUMP, 4, MAX(9)));
    lose(&h, "a-w-0-0");
    task_joins(&h, harness_task(&h, "a-w-0-1"));
    harness_wait(&h, 40 * NS_PER_SECOND);
    lose(&h, "a-w-0-1");
    assert_int_equal(jobset->recovery.state, RECOVERY_DUMPING);
    assert_int_equal(jobset->attempt, 2);
    assert_int_equal((int)seen.count, 5);
    assert_true(seen.by_rank[0].task == harness_task(&h, "a-w-0-2")->uid && seen.by_rank[0].world == 2);
    assert_true(seen.by_rank[0].attempt == 2 && seen.by_rank[1].full_world == 4);
    harness_check_replay(&h);
    task_joins(&h, harness_task(&h, "a-w-0-2"));
    task_joins(&h, harness_task(&h, "a-w-0-3"));
    saves(&h, harness_task(&h, "a-w-0-2"), 40);
    harness_wait(&h, 19 * NS_PER_SECOND);
    assert_int_equal(jobset->recovery.state, RECOVERY_DUMPING);
    harness_wait(&h, 2 * NS_PER_SECOND); /* the other one takes too long */
    assert_int_equal((int)jobset->checkpoint.committed_step, -1);
    assert_non_null(strstr(last_note(&h, "DyingCheckpoint")->message.data, "not all have saved in time"));
    assert_int_equal(jobset->restarts, 1);
    assert_int_equal(jobset->attempt, 3);
    harness_check_replay(&h);
    harness_done(&h);
}

static void all_are_lost(void **state)
{
    struct harness h;
    struct told_rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 5, TRAIN(DUMP, 2, MAX(9)));
    lose(&h, "a-w-0-0");
    lose(&h, "a-w-0-1");
    assert_non_null(strstr(last_note(&h, "DyingCheckpoint")->message.data, "no survivor is left"));
    assert_int_equal(jobset->restarts, 1);
    all_join(&h, jobset);
    core_check_invariants(h.core);
    harness_done(&h);
}

/* Places are missing for too long: before all of it waits for them, the state is saved. */
static void behind_a_rung_over_its_time(void **state)
{
    struct harness h;
    struct told_rejoins seen;
    struct jobset *jobset =
        begin(&h, &seen, 3, TRAIN("phalanx.dev/recovery: 'replace-machine,dump'", 3, MAX(9)));
    struct task *zero = harness_task(&h, "a-w-0-0"), *one = harness_task(&h, "a-w-0-1");
    lose(&h, "a-w-0-2");
    assert_true(jobset_parks(jobset) && jobset->recovery.state != RECOVERY_DUMPING && seen.count == 0);
    harness_wait(&h, 151 * NS_PER_SECOND); /* and the grace of what was stopped */
    assert_int_equal(jobset->recovery.state, RECOVERY_DUMPING);
    assert_int_equal(jobset->attempt, 1); /* nobody was told of it yet */
    assert_int_equal((int)seen.count, 2);
    assert_true(zero->keep == KEEP_TOLD && zero->world == 2 && one->rank == 1);
    assert_non_null(strstr(newest(jobset)->passed, "replace-machine: it did not help in its time"));
    task_joins(&h, zero);
    task_joins(&h, one);
    saves(&h, zero, 40);
    saves(&h, one, 40);
    assert_true(jobset->checkpoint.committed_step == 40 && jobset->checkpoint.committed_attempt == 1);
    assert_true(jobset->restarts == 1 && jobset->attempt == 2 && jobset->history.record_count == 1);
    core_check_invariants(h.core);
    harness_done(&h);
}

static void where_it_cannot_be(void **state)
{
    struct harness h;
    struct told_rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 3, TRAIN("phalanx.dev/recovery: 'requeue'", 2, MAX(9)));
    lose(&h, "a-w-0-0");
    assert_non_null(strstr(newest(jobset)->passed, "dump: not allowed"));
    assert_int_equal((int)seen.count, 0);
    harness_done(&h);
    harness_init(&h, 3, 4, 0);
    jobset = harness_create(&h, TRAIN(DUMP, 2, MAX(9)));
    harness_run_all(&h);
    lose(&h, "a-w-0-0"); /* they speak no libphalanx */
    assert_non_null(strstr(newest(jobset)->passed, "dump: no survivor can save"));
    assert_int_equal(jobset->restarts, 1);
    harness_done(&h);
}

/* Suspended, deleted: nobody waits for it. */
static void it_is_called_off(void **state)
{
    struct harness h;
    struct told_rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 4, TRAIN(DUMP, 3, MAX(9)));
    lose(&h, "a-w-0-0");
    assert_int_equal(jobset->recovery.state, RECOVERY_DUMPING);
    delete_object(&h, OBJECT_JOBSET, STR("a"));
    core_check_invariants(h.core);
    assert_int_not_equal(jobset->recovery.state, RECOVERY_DUMPING);
    harness_done(&h);
}

/* Suspended and resumed: a survivor that ends within its grace may hear late that it is rank 0 of the
 * attempt, so the tasks that are made anew are of another one. Torture seed 120004304. */
static void it_is_called_off_and_resumed(void **state)
{
    struct harness h;
    struct told_rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 4, TRAIN(DUMP, 3, MAX(9)));
    lose(&h, "a-w-0-0");
    assert_true(jobset->recovery.state == RECOVERY_DUMPING && jobset->attempt == 1 && seen.count == 2);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", TRAIN(DUMP, 3, "suspend: true, " MAX(9))), 200);
    assert_true(jobset->recovery.state != RECOVERY_DUMPING && jobset->conditions[CONDITION_SUSPENDED].status);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", TRAIN(DUMP, 3, "suspend: false, " MAX(9))), 200);
    core_check_invariants(h.core);
    all_join(&h, jobset);
    for (int i = 0; i < 3; i++)
        assert_int_equal(jobset->jobs[0]->indexes[i].task->attempt, 2);
    assert_int_equal(jobset->restarts, 0);
    harness_check_replay(&h);
    harness_done(&h);
}

/* The Job is deleted and made anew: survivors may hear late which ranks they were to be. */
static void its_job_is_deleted(void **state)
{
    struct harness h;
    struct told_rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 4, TRAIN(DUMP, 3, MAX(9)));
    lose(&h, "a-w-0-0");
    assert_true(jobset->recovery.state == RECOVERY_DUMPING && jobset->attempt == 1);
    delete_object(&h, OBJECT_JOB, STR("a-w-0"));
    core_check_invariants(h.core);
    assert_true(jobset->recovery.state != RECOVERY_DUMPING && jobset->attempt == 2 && jobset->restarts == 0);
    all_join(&h, jobset);
    assert_int_equal(harness_task(&h, "a-w-0-1")->attempt, 2);
    harness_check_replay(&h);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survivors_save_and_all_begin_anew),
        cmocka_unit_test(a_lost_start_is_not_repeated_under_the_next_attempt),
        cmocka_unit_test(a_survivor_that_others_miss_is_lost_at_once),
        cmocka_unit_test(the_next_restart_is_another),
        cmocka_unit_test(refused),
        cmocka_unit_test(survivors_are_lost_too),
        cmocka_unit_test(all_are_lost),
        cmocka_unit_test(behind_a_rung_over_its_time),
        cmocka_unit_test(where_it_cannot_be),
        cmocka_unit_test(it_is_called_off),
        cmocka_unit_test(it_is_called_off_and_resumed),
        cmocka_unit_test(its_job_is_deleted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
