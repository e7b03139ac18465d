/* Restarts in place that living processes go through: who stays, who is told of what, and when. */
#include "core/job/story.h"
#include "core/launch/launch.h"

#define TRAIN(fields, spec)                                                                                  \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a" fields "}\nspec: {" spec        \
    "replicatedJobs: [{name: w, replicas: 1, template: {spec: {parallelism: 3, completions: 3, "             \
    "backoffLimit: 0, " POD_OF("", "4") "}}}]}\n"
#define PLAIN  TRAIN("", "failurePolicy: {maxRestarts: 1}, ")
#define LADDER ", annotations: {phalanx.dev/recovery: 'restart-process,replace-machine'}"

static void joins(struct harness *h, struct task *task, bool can_rejoin)
{
    struct task_report report = {.kind = REPORT_JOINED,
                                 .task = task->uid,
                                 .attempt_plus_1 = (uint32_t)task->attempt + 1,
                                 .can_rejoin = can_rejoin};
    harness_report(h, &report, task->machine);
    core_check_invariants(h->core);
}

static void all_join(struct harness *h, struct jobset *jobset, bool can_rejoin)
{
    harness_run_all(h);
    for (uint32_t i = 0; i < jobset->job_count; i++)
        for (size_t t = 0; jobset->jobs[i] && t < jobset->jobs[i]->tasks.len; t++) {
            struct task *task = jobset->jobs[i]->tasks.items[t];
            if (!task_ended(task->state) && !task->joined)
                joins(h, task, can_rejoin);
        }
}

struct rejoins {
    size_t count;
    struct task_rejoin last;
    char rendezvous[RENDEZVOUS_MAX + 1];
};

static void count_rejoins(struct harness *h, const struct event *event)
{
    struct rejoins *seen = h->context;
    for (size_t i = 0; i < h->effects.list.len; i++) {
        const struct effect *effect = &h->effects.list.items[i];
        if (effect->kind != EFFECT_TASK_REJOIN)
            continue;
        struct arena arena = {0};
        task_rejoin_build(effect->rejoin, core_cluster(h->core), &arena, &seen->last);
        snprintf(seen->rendezvous, sizeof seen->rendezvous, STR_FORMAT, STR_ARG(seen->last.rendezvous));
        arena_done(&arena);
        seen->count++;
    }
}

static struct jobset *begin(struct harness *h, struct rejoins *seen, int machines, const char *yaml)
{
    harness_init(h, machines, 4, machines > 3);
    *seen = (struct rejoins){0};
    h->context = seen;
    h->after = count_rejoins;
    struct jobset *jobset = harness_create(h, yaml);
    all_join(h, jobset, true);
    return jobset;
}

static void a_process_ends_its_peers_live(void **state)
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 4, PLAIN);
    struct task *zero = harness_task(&h, "a-w-0-0"), *one = harness_task(&h, "a-w-0-1");
    obj_id uid = zero->uid, dead = one->uid, job = jobset->jobs[0]->uid;
    machine_id place = one->machine;
    int64_t started_ns = zero->started_ns;
    exits(&h, "a-w-0-1", 1);
    /* Nothing was in its way: the attempt has begun with the loss. */
    assert_true(!jobset_parks(jobset) && jobset->attempt == 1 && jobset->recovery.in_place_restarts == 1);
    assert_int_equal((int)seen.count, 2);
    assert_int_equal(seen.last.attempt, 1);
    assert_int_equal((int)seen.last.world, 3);
    char expected[64];
    snprintf(expected, sizeof expected, STR_FORMAT ":%u",
             STR_ARG(core_cluster(h.core)->machines[zero->machine].address), zero->port + 1u);
    assert_string_equal(seen.rendezvous, expected);
    assert_true(zero->state == TASK_RUNNING && zero->uid == uid && !zero->joined && zero->attempt == 1);
    assert_true(one->uid != dead && one->machine == place && one->state == TASK_STARTING);
    assert_true(one->port == zero->port);
    assert_int_equal(jobset->recovery.in_place_counted, 1); /* it ended by itself */
    assert_int_equal(jobset->restarts, 0);
    char note[128];
    snprintf(note, sizeof note,
             "restart-process as attempt 1: " STR_FORMAT ": exit code 1 (retry: a process was lost)",
             STR_ARG(one->name));
    assert_note(&h, true, "RecoveryDecided", note);
    assert_int_equal(jobset->gangs.items[0]->account.owner, OWNER_RESTARTING);
    harness_check_replay(&h);
    all_join(&h, jobset, true);
    assert_true(zero->joined && one->joined && zero->keep == KEEP_NO && zero->started_ns == started_ns);
    assert_int_equal(one->runs_before, 1);
    assert_int_equal(zero->runs_before, 0);
    assert_int_equal(jobset->gangs.items[0]->account.owner, OWNER_RESTARTING); /* until the next step */
    progress_to(&h, jobset, 8);
    assert_int_equal(jobset->gangs.items[0]->account.owner, OWNER_UNKEPT);
    assert_true(jobset->jobs[0]->uid == job && jobset->history.records[0].stepped_ns > 0 &&
                !jobset_keeps(jobset));
    exits(&h, "a-w-0-1", 1); /* maxRestarts is 1: the policy again */
    harness_run_all(&h);
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    harness_done(&h);
}

static void a_lost_machine_is_replaced(void **state)
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 5, PLAIN);
    struct task *zero = harness_task(&h, "a-w-0-0"), *two = harness_task(&h, "a-w-0-2");
    obj_id uid = two->uid;
    machine_id lost = zero->machine;
    uint16_t port = zero->port;
    for (int i = 0; i < 2; i++) { /* rank 0's, and not counted */
        harness_lose(&h, core_cluster(h.core)->machines[harness_task(&h, "a-w-0-0")->machine].name.data);
        assert_int_equal(two->state, TASK_RUNNING);
        all_join(&h, jobset, true);
        progress_to(&h, jobset, 10 * (i + 1));
        assert_int_equal(jobset->attempt, i + 1);
    }
    zero = harness_task(&h, "a-w-0-0");
    assert_true(zero->machine != lost && zero->port != port && zero->port == two->port && two->uid == uid);
    assert_int_equal(jobset->recovery.in_place_counted + jobset->restarts_counted, 0);
    assert_int_equal(jobset->jobs[0]->failed_indexes, 0);
    assert_int_equal((int)seen.count, 4);
    assert_string_equal(jobset->history.records[1].cause, "MachineLost");
    harness_done(&h);
}

/* The record says from where ranks went on: from memory, when that is newer than what was committed. */
static void steps_from_memory_are_not_lost(void **state)
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 4, PLAIN);
    progress_to(&h, jobset, 1);
    harness_wait(&h, 40 * NS_PER_SECOND);
    progress_to(&h, jobset, 40);
    exits(&h, "a-w-0-1", 1);
    struct ledger_account account = jobset_account(jobset, h.now_ns);
    assert_true(account.chip_us[OWNER_FAILED] == INT64_C(40000000) * 12 && !account.chip_us[OWNER_UNKEPT]);
    exits(&h, "a-w-0-2", 1); /* and one that was to go on */
    all_join(&h, jobset, true);
    progress_to(&h, jobset, 31);
    assert_int_equal((int)jobset->history.records[1].step_at_fault, 40);
    assert_int_equal((int)jobset->history.records[1].step_resumed_from, 30);
    account = jobset_account(jobset, h.now_ns);
    assert_true(account.chip_us[OWNER_FAILED] == INT64_C(10000000) * 12);
    assert_true(account.chip_us[OWNER_UNKEPT] == INT64_C(30000000) * 12);
    core_check_invariants(h.core);
    harness_done(&h);
}

/* While one place is missing the keepers wait; what they say as the old attempt makes no checkpoint. */
static void keepers_wait_for_a_place(void **state)
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 3, PLAIN);
    struct task *zero = harness_task(&h, "a-w-0-0");
    harness_lose(&h, core_cluster(h.core)->machines[harness_task(&h, "a-w-0-2")->machine].name.data);
    harness_run_all(&h);
    assert_true(jobset_parks(jobset) && jobset_keeps(jobset) && zero->state == TASK_RUNNING);
    assert_int_equal(zero->keep, KEEP_WAITS);
    assert_int_equal(zero->attempt, 0);
    assert_int_equal((int)seen.count, 0);
    struct task_report old = {.kind = REPORT_SHARD_SAVED, .task = zero->uid, .step = 5, .attempt_plus_1 = 1};
    harness_report(&h, &old, zero->machine);
    assert_int_equal((int)jobset->checkpoint.committed_step, -1);
    harness_check_replay(&h);
    harness_wait(&h, 151 * NS_PER_SECOND); /* nobody waits for ever: they are to save what they hold */
    assert_int_equal(jobset->recovery.state, RECOVERY_DUMPING);
    harness_wait(&h, 61 * NS_PER_SECOND); /* nor for that: the policy */
    assert_true(!jobset_parks(jobset) && jobset->restarts == 1);
    harness_run_all(&h);
    harness_done(&h);
}

static void words_of_the_attempt_before(void **state)
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 4, PLAIN);
    struct task *tasks[3] = {harness_task(&h, "a-w-0-0"), harness_task(&h, "a-w-0-1"),
                             harness_task(&h, "a-w-0-2")};
    harness_exit(&h, tasks[1], 1);
    harness_run_all(&h);
    joins(&h, tasks[1], true);
    for (int old = 1; old >= 0; old--) {
        for (int i = 0; i < 3; i++) {
            struct task_report saved = {.kind = REPORT_SHARD_SAVED,
                                        .task = tasks[i]->uid,
                                        .step = 5,
                                        .attempt_plus_1 = old && i != 1 ? 1 : 2};
            if (!old && i != 1)
                joins(&h, tasks[i], true);
            harness_report(&h, &saved, tasks[i]->machine);
        }
        assert_int_equal((int)jobset->checkpoint.committed_step, old ? -1 : 5);
    }
    struct task_step step = {.task = tasks[0]->uid, .attempt_plus_1 = 1};
    assert_false(task_step_counts(tasks[0], &step));
    step.attempt_plus_1 = 2;
    assert_true(task_step_counts(tasks[0], &step));
    harness_done(&h);
}

/* A machine that comes back with the record of an older attempt is told again. */
static void hello_with_an_older_attempt(void **state)
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 3, PLAIN);
    struct task *zero = harness_task(&h, "a-w-0-0");
    exits(&h, "a-w-0-1", 1);
    all_join(&h, jobset, true);
    size_t before = seen.count;
    for (uint32_t attempt = 2; attempt > 0; attempt--) {
        struct task_report runs = {.kind = REPORT_STARTED, .task = zero->uid, .attempt_plus_1 = attempt};
        harness_hello(&h, core_cluster(h.core)->machines[zero->machine].name.data, &runs, 1);
        assert_int_equal((int)(seen.count - before), attempt == 2 ? 0 : 1);
    }
    assert_int_equal(seen.last.attempt, 1);
    /* While the next one is prepared there is nothing to be told. */
    harness_lose(&h, core_cluster(h.core)->machines[harness_task(&h, "a-w-0-2")->machine].name.data);
    assert_true(jobset_parks(jobset));
    before = seen.count;
    struct task_report runs = {.kind = REPORT_STARTED, .task = zero->uid, .attempt_plus_1 = 1};
    harness_hello(&h, core_cluster(h.core)->machines[zero->machine].name.data, &runs, 1);
    assert_int_equal((int)seen.count, (int)before);
    harness_done(&h);
}

/* A rank that does not join in time is started again; the others stay, once more. */
static void late_ones_are_started_again(void **state)
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 4, PLAIN);
    struct task *zero = harness_task(&h, "a-w-0-0"), *one = harness_task(&h, "a-w-0-1");
    struct task *two = harness_task(&h, "a-w-0-2");
    harness_exit(&h, one, 1);
    harness_run_all(&h);
    joins(&h, one, true);
    joins(&h, two, true);
    obj_id late = zero->uid, kept = two->uid;
    harness_wait(&h, 29 * NS_PER_SECOND);
    assert_int_equal(zero->state, TASK_RUNNING);
    harness_check_replay(&h);
    harness_wait(&h, 2 * NS_PER_SECOND);
    assert_int_equal(zero->state, TASK_STOPPING);
    all_join(&h, jobset, true);
    assert_true(jobset->attempt == 2 && zero->uid != late && two->uid == kept && two->joined);
    assert_int_equal(jobset->recovery.in_place_counted, 1); /* the first alone */
    assert_string_equal(jobset->history.records[1].cause, "RejoinTimeout");
    harness_wait(&h, 60 * NS_PER_SECOND);
    assert_int_equal(jobset->attempt, 2);
    harness_done(&h);
}

/* A keeper that ends before it has joined is one more loss of the same incident. */
static void a_keeper_ends_meanwhile(void **state)
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 4, PLAIN);
    struct task *two = harness_task(&h, "a-w-0-2");
    obj_id kept = two->uid;
    exits(&h, "a-w-0-1", 1);
    exits(&h, "a-w-0-0", 1);
    assert_int_equal(jobset->attempt, 2);
    all_join(&h, jobset, true);
    assert_true(two->uid == kept && two->joined && two->attempt == 2);
    assert_int_equal(jobset->recovery.in_place_counted, 1);
    progress_to(&h, jobset, 3);
    assert_int_equal(jobset->terminal_state, TERMINAL_NONE);
    harness_done(&h);
}

/* Such losses are no attempt without progress: with one allowed, the next loss of a process that has joined
 * is. `second` is the further loss of the incident. */
static void one_attempt_without_progress(void (*second)(struct harness *h, struct jobset *jobset))
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset =
        begin(&h, &seen, 6,
              TRAIN(", annotations: {phalanx.dev/recovery: 'restart-process,replace-machine', "
                    "phalanx.dev/no-progress-attempts: '1'}",
                    "failurePolicy: {maxRestarts: 9}, "));
    progress_to(&h, jobset, 3);
    second(&h, jobset);
    assert_int_equal(jobset->terminal_state, TERMINAL_NONE);
    all_join(&h, jobset, true);
    assert_int_equal(jobset->recovery.ladder.stalled, 0);
    assert_true(jobset->attempt >= 1 && harness_task(&h, "a-w-0-2")->joined);
    exits(&h, "a-w-0-2", 1);
    harness_run_all(&h);
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    assert_string_equal(jobset->conditions[CONDITION_FAILED].reason, "NoProgress");
    harness_check_replay(&h);
    harness_done(&h);
}

static void a_keeper_ends_before_it_joins(struct harness *h, struct jobset *jobset)
{
    exits(h, "a-w-0-1", 1);
    assert_int_equal(harness_task(h, "a-w-0-0")->keep, KEEP_TOLD);
    exits(h, "a-w-0-0", 1);
    assert_int_equal(jobset->attempt, 2);
}

/* Rank 1 has joined the attempt, which has not begun: rank 0 has no process yet. */
static void a_machine_is_lost_before_the_attempt_begins(struct harness *h, struct jobset *jobset)
{
    struct task *zero = harness_task(h, "a-w-0-0"), *one = harness_task(h, "a-w-0-1");
    machine_id second = one->machine;
    harness_lose(h, core_cluster(h->core)->machines[zero->machine].name.data);
    assert_int_equal(jobset->attempt, 1);
    joins(h, one, true);
    harness_lose(h, core_cluster(h->core)->machines[second].name.data);
}

static void a_further_loss_is_no_further_attempt(void **state)
{
    one_attempt_without_progress(a_keeper_ends_before_it_joins);
    one_attempt_without_progress(a_machine_is_lost_before_the_attempt_begins);
}

static void loses(struct harness *h, const struct task *reporter, const struct task *peer)
{
    struct task_report report = {.kind = REPORT_PEER_GONE,
                                 .task = reporter->uid,
                                 .peer_rank = peer->rank,
                                 .attempt_plus_1 = (uint32_t)reporter->attempt + 1};
    harness_report(h, &report, reporter->machine);
    core_check_invariants(h->core);
}

/* A connection between two ranks broke and both live: nobody else can end the attempt that they cannot go on
 * with. */
static void ranks_that_lost_each_other_meet_anew(void **state)
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 4, PLAIN);
    struct task *zero = harness_task(&h, "a-w-0-0"), *one = harness_task(&h, "a-w-0-1");
    obj_id uid = one->uid;
    loses(&h, zero, one);
    harness_wait(&h, 3 * NS_PER_SECOND);
    progress_to(&h, jobset, 3); /* it was nothing: they make steps */
    harness_wait(&h, 20 * NS_PER_SECOND);
    assert_int_equal(jobset->attempt, 0);

    loses(&h, zero, one);
    harness_check_replay(&h);
    harness_wait(&h, NS_PER_SECOND);
    progress_to(&h, jobset, 4); /* of before: steps are heard of late */
    harness_wait(&h, 3 * NS_PER_SECOND);
    assert_int_equal(jobset->attempt, 0);
    harness_wait(&h, 1 * NS_PER_SECOND);
    assert_true(jobset->attempt == 1 && !jobset_parks(jobset) && one->uid == uid);
    assert_int_equal((int)seen.count, 3); /* all of them */
    assert_int_equal(jobset->recovery.in_place_counted, 0);
    assert_string_equal(jobset->history.records[0].cause, "PeersApart");
    loses(&h, zero, one); /* a late word of the attempt before */
    all_join(&h, jobset, true);
    progress_to(&h, jobset, 5);
    harness_wait(&h, 60 * NS_PER_SECOND);
    assert_int_equal(jobset->attempt, 1);
    harness_done(&h);
}

static void asks(struct harness *h, struct task *task, uint32_t attempt)
{
    struct task_report report = {.kind = REPORT_RETRY,
                                 .task = task->uid,
                                 .message = STR("a page is gone"),
                                 .attempt_plus_1 = attempt + 1};
    harness_report(h, &report, task->machine);
    core_check_invariants(h->core);
}

/* A program's own word: nobody is lost, nobody is counted, all go back in their processes. */
static void a_rank_asks_to_go_back(void **state)
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 4, PLAIN);
    struct task *zero = harness_task(&h, "a-w-0-0"), *one = harness_task(&h, "a-w-0-1");
    obj_id uid = one->uid;
    char note[160];
    progress_to(&h, jobset, 3);
    asks(&h, one, 0);
    assert_true(jobset->attempt == 1 && !jobset_parks(jobset) && one->uid == uid &&
                one->state == TASK_RUNNING);
    assert_int_equal((int)seen.count, 3);
    assert_int_equal(jobset->recovery.in_place_counted, 0);
    assert_string_equal(jobset->history.records[0].cause, "RetryAsked");
    assert_int_equal(jobset->history.records[0].rung, RUNG_RETRY);
    snprintf(note, sizeof note,
             "retry as attempt 1: " STR_FORMAT " cannot go on from its state: a page is gone",
             STR_ARG(one->name));
    assert_note(&h, true, "RecoveryDecided", note);
    asks(&h, one, 0); /* of the attempt before */
    assert_int_equal(jobset->attempt, 1);
    harness_check_replay(&h);
    all_join(&h, jobset, true);
    progress_to(&h, jobset, 4);
    assert_true(jobset->history.records[0].stepped_ns > 0 && jobset->recovery.ladder.rung == RUNG_NONE);

    /* Before all are heard of as joined it is not decided; then it is, with no more word. */
    asks(&h, zero, 1);
    joins(&h, zero, true);
    asks(&h, zero, 2);
    assert_int_equal(jobset->attempt, 2);
    all_join(&h, jobset, true);
    harness_wait(&h, 6 * NS_PER_SECOND);
    assert_true(jobset->attempt == 3 && jobset->history.record_count == 3);
    all_join(&h, jobset, true);
    progress_to(&h, jobset, 5);
    assert_int_equal(jobset->terminal_state, TERMINAL_NONE);
    harness_done(&h);
}

/* Without that rung its process is the one that is no good; the others wait for it. */
static void who_may_not_go_back_is_started_again(void **state)
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 4, TRAIN(LADDER, "failurePolicy: {maxRestarts: 1}, "));
    struct task *zero = harness_task(&h, "a-w-0-0"), *one = harness_task(&h, "a-w-0-1");
    progress_to(&h, jobset, 3);
    asks(&h, one, 0);
    assert_true(jobset->attempt == 1 && jobset_parks(jobset) && one->state == TASK_STOPPING);
    assert_true(zero->state == TASK_RUNNING && zero->keep == KEEP_WAITS);
    exits(&h, "a-w-0-1", 0);
    assert_true(!jobset_parks(jobset) && jobset->attempt == 1);
    assert_int_equal((int)seen.count, 2);
    assert_int_equal(jobset->history.records[0].rung, RUNG_RESTART_PROCESS);
    assert_int_equal(jobset->recovery.in_place_counted, 0);
    all_join(&h, jobset, true);
    progress_to(&h, jobset, 4);
    harness_done(&h);

    jobset =
        begin(&h, &seen, 4,
              TRAIN(", annotations: {phalanx.dev/recovery: 'off'}", "failurePolicy: {maxRestarts: 1}, "));
    progress_to(&h, jobset, 3);
    asks(&h, harness_task(&h, "a-w-0-1"), 0); /* no rung at all: its end is a failure as any */
    assert_true(jobset->attempt == 0 && harness_task(&h, "a-w-0-1")->state == TASK_STOPPING);
    exits(&h, "a-w-0-1", 143);
    harness_run_all(&h);
    assert_true(jobset->restarts == 1 && jobset->attempt == 1);
    harness_done(&h);
}

/* A rank that asks again and again is held back, and then given up. */
static void asking_for_ever_is_no_progress(void **state)
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 4, PLAIN);
    progress_to(&h, jobset, 3);
    for (int i = 0; i < 8 && !jobset_finished(jobset); i++) {
        asks(&h, harness_task(&h, "a-w-0-1"), (uint32_t)jobset->attempt);
        harness_wait(&h, 400 * NS_PER_SECOND);
        if (!jobset_finished(jobset))
            all_join(&h, jobset, true);
    }
    harness_run_all(&h);
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    assert_true(jobset->history.record_count >= 5 && jobset->history.record_count <= 7);
    harness_done(&h);
}

/* The rank's machine is away: whether it is lost is another decision. */
static void a_machine_that_is_away_is_waited_for(void **state)
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 5, PLAIN);
    struct task *zero = harness_task(&h, "a-w-0-0"), *one = harness_task(&h, "a-w-0-1");
    const char *machine = core_cluster(h.core)->machines[one->machine].name.data;
    struct task_report runs = {.kind = REPORT_STARTED, .task = one->uid, .attempt_plus_1 = 1};
    for (int lost = 0; lost < 2; lost++) {
        harness_news(&h, EVENT_MACHINE_AWAY, machine);
        struct task *two = harness_task(&h, "a-w-0-2");
        loses(&h, zero, two); /* about another one: of this machine it would be evidence */
        harness_wait(&h, 20 * NS_PER_SECOND);
        assert_int_equal(jobset->attempt, lost);
        if (lost) {
            harness_lose(&h, machine);
            assert_string_equal(jobset->history.records[1].cause, "MachineLost");
        } else {
            harness_hello(&h, machine, &runs, 1);
            harness_wait(&h, 5 * NS_PER_SECOND);
            assert_string_equal(jobset->history.records[0].cause, "PeersApart");
            all_join(&h, jobset, true);
            progress_to(&h, jobset, 4);
        }
    }
    assert_int_equal(jobset->attempt, 2);
    assert_int_equal((int)jobset->recovery.apart_ns, 0);
    harness_done(&h);
}

/* A task that cannot rejoin is stopped and started again on its chips, where an annotation asks for that. */
static void with_an_annotation_all_take_part(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 1);
    struct jobset *jobset = harness_create(&h, TRAIN(LADDER, "failurePolicy: {maxRestarts: 1}, "));
    harness_run_all(&h);
    struct task *zero = harness_task(&h, "a-w-0-0");
    obj_id uid = zero->uid, pod = zero->pod_uid;
    harness_lose(&h, core_cluster(h.core)->machines[harness_task(&h, "a-w-0-2")->machine].name.data);
    assert_int_equal(zero->state, TASK_STOPPING);
    harness_run_all(&h);
    assert_true(zero->state == TASK_RUNNING && zero->uid != uid && zero->pod_uid == pod);
    assert_true(jobset->attempt == 1 && jobset->restarts == 0 && jobset->recovery.in_place_counted == 0);
    harness_done(&h);
}

/* A task that has never begun is no loss: its Job makes another Pod, and nobody waits. */
static void before_all_has_begun(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, TRAIN(LADDER, "failurePolicy: {maxRestarts: 1}, "));
    struct task *zero = harness_task(&h, "a-w-0-0");
    assert_int_equal(zero->state, TASK_PENDING);
    assert_int_equal(delete_object(&h, OBJECT_POD, zero->name), 200);
    core_check_invariants(h.core);
    assert_true(!jobset_parks(jobset) && jobset->recovery.in_place_restarts == 0);
    harness_done(&h);
}

/* An evicted Pod: drained, quarantined or deleted by a user. Its process ends, its peers' do not. */
static void an_evicted_pod_is_made_anew(void **state)
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 5, PLAIN);
    struct task *zero = harness_task(&h, "a-w-0-0"), *two = harness_task(&h, "a-w-0-2");
    obj_id kept = zero->uid, gone = two->uid;
    for (int i = 0; i < 2; i++) {
        two = harness_task(&h, "a-w-0-2");
        assert_int_equal(delete_object(&h, OBJECT_POD, two->name), 200);
        assert_true(two->state == TASK_STOPPING && !jobset_parks(jobset)); /* it has its grace */
        harness_run_all(&h);
        assert_int_equal(jobset->attempt, i + 1);
        all_join(&h, jobset, true);
        progress_to(&h, jobset, 5 + i);
    }
    assert_true(zero->uid == kept && harness_task(&h, "a-w-0-2")->uid != gone);
    assert_int_equal(jobset->recovery.in_place_counted, 0);
    assert_string_equal(jobset->history.records[0].cause, "Evicted");
    harness_done(&h);
}

/* Under restartStrategy InPlaceRestart too, and keepers' Pods show the attempt. */
static void asked_by_the_strategy(void **state)
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset =
        begin(&h, &seen, 4,
              JOBSET("a", "failurePolicy: {maxRestarts: 2, restartStrategy: InPlaceRestart}, ",
                     "{name: w, replicas: 1, template: {spec: {parallelism: 3, completions: 3, "
                     "backoffLimit: 2147483647, podReplacementPolicy: Failed, " POD_OF("", "4") "}}}"));
    struct task *zero = harness_task(&h, "a-w-0-0");
    obj_id kept = zero->uid;
    exits(&h, "a-w-0-1", 1);
    assert_true(zero->uid == kept && zero->state == TASK_RUNNING && zero->changed_seq == core_seq(h.core));
    all_join(&h, jobset, true);
    assert_true(jobset->attempt == 1 && jobset->recovery.in_place_counted == 1 && zero->joined);
    harness_done(&h);
}

/* Under restartPolicy OnFailure a process that ended counts towards its Job, after the kubelet's back-off. */
static void containers_back_off(void **state)
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset = begin(
        &h, &seen, 4,
        JOBSET("a", "failurePolicy: {maxRestarts: 0}, ",
               "{name: w, replicas: 1, template: {spec: {parallelism: 3, completions: 3, backoffLimit: 3, "
               "template: {spec: {restartPolicy: OnFailure, containers: [{name: main, image: none, "
               "command: [run], resources: {limits: {google.com/tpu: 4}}}]}}}}}"));
    struct task *zero = harness_task(&h, "a-w-0-0"), *one = harness_task(&h, "a-w-0-1");
    obj_id kept = zero->uid;
    for (int i = 0; i < 2; i++) {
        harness_exit(&h, one, 1);
        assert_true(jobset_parks(jobset) == (i == 1) &&
                    (jobset->recovery.state == RECOVERY_BACKING_OFF) == (i == 1));
        harness_wait(&h, 10 * NS_PER_SECOND);
        all_join(&h, jobset, true);
        progress_to(&h, jobset, 5 + i);
    }
    assert_true(zero->uid == kept && one->failed_runs == 2 && jobset->recovery.in_place_counted == 0);
    harness_exit(&h, one, 1); /* the third of three */
    harness_run_all(&h);
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    harness_done(&h);
}

/* A rank that is through ends what others wait for. */
static void a_keeper_that_is_through(void **state)
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 3, PLAIN);
    harness_lose(&h, core_cluster(h.core)->machines[harness_task(&h, "a-w-0-2")->machine].name.data);
    assert_true(jobset_parks(jobset));
    exits(&h, "a-w-0-0", 0);
    harness_run_all(&h);
    assert_true(!jobset_parks(jobset) && jobset->restarts == 1);
    core_check_invariants(h.core);
    harness_done(&h);
}

static void suspending_and_deleting_end_it(void **state)
{
    for (int how = 0; how < 2; how++) {
        struct harness h;
        struct rejoins seen;
        begin(&h, &seen, 3, PLAIN);
        harness_lose(&h, core_cluster(h.core)->machines[harness_task(&h, "a-w-0-2")->machine].name.data);
        if (how)
            assert_int_equal(harness_write(&h, WRITE_DELETE, "a", NULL), 200);
        else
            assert_int_equal(harness_write(&h, WRITE_REPLACE, "a",
                                           TRAIN("", "suspend: true, failurePolicy: {maxRestarts: 1}, ")),
                             200);
        core_check_invariants(h.core);
        harness_run_all(&h);
        for (size_t m = 0; m < 3; m++)
            assert_int_equal(core_cluster(h.core)->machines[m].task_count, 0);
        harness_done(&h);
    }
}

/* The log was restored from a backup: a task of its lost part may be one of the ranks (hearing.c). */
static void nobody_rejoins_before_every_machine_was_heard(void **state)
{
    struct harness h;
    struct rejoins seen;
    struct jobset *jobset = begin(&h, &seen, 4, PLAIN);
    harness_step(&h, &(struct event){.kind = EVENT_BOOT, .boot = {.epoch = 100, .restored = true}});
    obj_id dead = harness_task(&h, "a-w-0-1")->uid;
    for (machine_id m = 0; m < 4; m++) {
        struct task_report report = {.kind = REPORT_STARTED, .attempt_plus_1 = 1, .can_rejoin = true};
        for (size_t i = 0; i < h.told.len; i++)
            if (h.told.items[i].machine == m && h.told.items[i].task != dead)
                report.task = h.told.items[i].task;
        assert_int_equal((int)seen.count, 0);
        harness_hello(&h, (const char *[]){"m-1", "m-2", "m-3", "m-4"}[m], &report, report.task ? 1 : 0);
        core_check_invariants(h.core);
        assert_true(m == 3 || core_is_hearing(h.core));
    }
    assert_int_equal((int)seen.count, 2);
    assert_int_equal(jobset->attempt, 1);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_ends_its_peers_live),
        cmocka_unit_test(nobody_rejoins_before_every_machine_was_heard),
        cmocka_unit_test(a_lost_machine_is_replaced),
        cmocka_unit_test(steps_from_memory_are_not_lost),
        cmocka_unit_test(keepers_wait_for_a_place),
        cmocka_unit_test(words_of_the_attempt_before),
        cmocka_unit_test(hello_with_an_older_attempt),
        cmocka_unit_test(late_ones_are_started_again),
        cmocka_unit_test(a_keeper_ends_meanwhile),
        cmocka_unit_test(a_further_loss_is_no_further_attempt),
        cmocka_unit_test(with_an_annotation_all_take_part),
        cmocka_unit_test(before_all_has_begun),
        cmocka_unit_test(ranks_that_lost_each_other_meet_anew),
        cmocka_unit_test(a_rank_asks_to_go_back),
        cmocka_unit_test(who_may_not_go_back_is_started_again),
        cmocka_unit_test(asking_for_ever_is_no_progress),
        cmocka_unit_test(a_machine_that_is_away_is_waited_for),
        cmocka_unit_test(an_evicted_pod_is_made_anew),
        cmocka_unit_test(asked_by_the_strategy),
        cmocka_unit_test(containers_back_off),
        cmocka_unit_test(a_keeper_that_is_through),
        cmocka_unit_test(suspending_and_deleting_end_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
