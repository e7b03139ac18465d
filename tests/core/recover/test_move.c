/* A machine is wanted for something else: its ranks go to processes that were started elsewhere first. */
#include "core/job/story.h"

#define MINUTE (60 * NS_PER_SECOND)
#define TRAIN(annotations, indexed)                                                                          \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, annotations: {" annotations     \
    "}}\nspec: {failurePolicy: {maxRestarts: 1}, replicatedJobs: [{name: w, replicas: 1, template: {spec: {" \
    "parallelism: 3, completions: 3, " indexed "backoffLimit: 0, " POD_OF("", "2") "}}}]}\n"
#define INDEXED "completionMode: Indexed, "

static void save_all(struct harness *h, const struct jobset *jobset, int64_t step)
{
    for (size_t t = 0; t < jobset->jobs[0]->tasks.len; t++) {
        const struct task *task = jobset->jobs[0]->tasks.items[t];
        struct task_report report = {.kind = REPORT_SHARD_SAVED,
                                     .task = task->uid,
                                     .step = step,
                                     .attempt_plus_1 = (uint32_t)task->attempt + 1};
        harness_report(h, &report, task->machine);
    }
}

struct seen {
    size_t moves, rejoins;
};

static void count_effects(struct harness *h, const struct event *event)
{
    struct seen *seen = h->context;
    for (size_t i = 0; i < h->effects.list.len; i++) {
        const struct effect *effect = &h->effects.list.items[i];
        seen->moves += effect->kind == EFFECT_TASK_NOTICE && effect->notice.notice.reason == DRAIN_MOVE;
        seen->rejoins += effect->kind == EFFECT_TASK_REJOIN;
    }
}

static struct jobset *begin(struct harness *h, struct seen *seen, int machines, const char *yaml)
{
    harness_init(h, machines, 2, 0);
    h->context = seen;
    h->after = count_effects;
    struct jobset *jobset = harness_create(h, yaml);
    all_join_with_spares(h, jobset);
    progress_to(h, jobset, 5);
    *seen = (struct seen){0};
    return jobset;
}

static machine_id machine_of_rank(struct harness *h, int rank)
{
    char host[16];
    snprintf(host, sizeof host, "a-w-0-%d", rank);
    return harness_task(h, host)->machine;
}

/* From now on the machine is being emptied; in an hour it has to be empty. */
static void wants(struct harness *h, machine_id machine)
{
    char start[32], end[32], yaml[512];
    time_format(h->now_ns + 60 * MINUTE, start);
    time_format(h->now_ns + 120 * MINUTE, end);
    snprintf(yaml, sizeof(yaml),
             "apiVersion: phalanx.dev/v1\nkind: Maintenance\nmetadata: {name: m}\n"
             "spec: {start: \"%s\", end: \"%s\", notice: 1h, machines: [%s]}\n",
             start, end, core_cluster(h->core)->machines[machine].name.data);
    assert_int_equal(harness_write_checked(h, OBJECT_MAINTENANCE, WRITE_CREATE, "m", yaml), 201);
}

static void its_ranks_go_where_others_wait_for_them(void **state)
{
    for (int own = 0; own < 2; own++) { /* one waits anyway */
        struct harness h;
        struct seen seen;
        struct jobset *jobset =
            begin(&h, &seen, 5, own ? TRAIN("phalanx.dev/spares: '1'", INDEXED) : TRAIN("", INDEXED));
        struct job *job = jobset->jobs[0];
        machine_id left = machine_of_rank(&h, 1);
        obj_id stays = harness_task(&h, "a-w-0-0")->uid;
        assert_int_equal((int)job->spares.len, own);
        wants(&h, left);
        assert_int_equal(notes(&h, "HotSwitch"), 1);
        assert_true(jobset->recovery.move.state != MOVE_NONE && jobset->attempt == 0);
        assert_int_equal((int)job->spares.len, 1 + own);
        harness_check_replay(&h);
        all_join_with_spares(&h, jobset);
        assert_int_equal((int)seen.moves, 3); /* who is to save, and wait */
        assert_int_equal(jobset->attempt, 0);
        harness_wait(&h, NS_PER_SECOND);
        save_all(&h, jobset, 7);
        assert_int_equal(notes(&h, "LeftMachine"), 1);
        harness_check_replay(&h);
        harness_run_all(&h); /* what was killed has ended */
        assert_int_equal(jobset->attempt, 1);
        assert_int_equal(jobset->recovery.move.state, MOVE_NONE);
        all_join_with_spares(&h, jobset);
        assert_int_not_equal(machine_of_rank(&h, 1), left);
        assert_true(harness_task(&h, "a-w-0-0")->uid == stays);
        assert_int_equal((int)seen.rejoins, 3);
        assert_int_equal(notes(&h, "SpareActivated"), 1);
        assert_int_equal(jobset->recovery.in_place_counted + jobset->restarts_counted, 0);
        assert_int_equal((int)jobset->history.records[0].step_resumed_from, 7);
        progress_to(&h, jobset, 9);
        assert_int_equal((int)job->spares.len, own);
        harness_check_replay(&h);
        harness_done(&h);
    }
}

static void without_room_they_stay(void **state)
{
    struct harness h;
    struct seen seen;
    struct jobset *jobset = begin(&h, &seen, 3, TRAIN("", INDEXED));
    machine_id left = machine_of_rank(&h, 1);
    wants(&h, left);
    assert_int_not_equal(jobset->recovery.move.state, MOVE_NONE);
    harness_wait(&h, 119 * NS_PER_SECOND);
    assert_int_equal((int)jobset->jobs[0]->spares.len, 1);
    harness_wait(&h, 2 * NS_PER_SECOND);
    assert_int_equal(notes(&h, "HotSwitchImpossible"), 1);
    assert_int_equal((int)jobset->jobs[0]->spares.len, 0);
    assert_true(jobset->recovery.move.state == MOVE_NONE && jobset->attempt == 0 &&
                machine_of_rank(&h, 1) == left);
    harness_check_replay(&h);
    harness_done(&h);
}

/* A real loss amid the preparations ends them, and takes what was prepared. */
static void a_loss_comes_first(void **state)
{
    struct harness h;
    struct seen seen;
    struct jobset *jobset = begin(&h, &seen, 5, TRAIN("", INDEXED));
    machine_id left = machine_of_rank(&h, 1);
    wants(&h, left);
    all_join_with_spares(&h, jobset);
    harness_lose(&h, core_cluster(h.core)->machines[machine_of_rank(&h, 2)].name.data);
    assert_int_equal(jobset->attempt, 1);
    assert_int_equal(jobset->recovery.move.state, MOVE_NONE);
    all_join_with_spares(&h, jobset);
    progress_to(&h, jobset, 9);
    assert_int_equal(notes(&h, "SpareActivated"), 1);
    harness_check_replay(&h);
    harness_done(&h);
}

static void who_cannot_is_only_told(void **state)
{
    struct harness h;
    struct seen seen;
    struct jobset *jobset = begin(&h, &seen, 5, TRAIN("phalanx.dev/recovery: 'off'", INDEXED));
    wants(&h, machine_of_rank(&h, 1));
    assert_true(jobset->recovery.move.state == MOVE_NONE && seen.moves == 0);
    harness_done(&h);
    jobset = begin(&h, &seen, 5, TRAIN("", "completionMode: NonIndexed, "));
    wants(&h, machine_of_rank(&h, 1));
    assert_true(jobset->recovery.move.state == MOVE_NONE && seen.moves == 0);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_ranks_go_where_others_wait_for_them),
        cmocka_unit_test(without_room_they_stay),
        cmocka_unit_test(a_loss_comes_first),
        cmocka_unit_test(who_cannot_is_only_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
