/* Jobs that stop making steps: when that is suspected, what is asked of whom, and what follows from the
 * answers. */
#include "core/job/story.h"

#include "base/rng.h"
#include "core/hang/hang.h"
#include "core/hang/records.h"
#include "core/health/fault.h"

enum { RANKS = 4, STEP_S = 20 };

#define GANG_OF(annotations)                                                                                 \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, annotations: {" annotations     \
    "}}\nspec: {failurePolicy: {maxRestarts: 3}, replicatedJobs: ["                                          \
    "{name: w, replicas: 1, template: {spec: {parallelism: 4, completions: 4, backoffLimit: 0, " POD_OF(     \
        "", "4") "}}}]}\n"

static const char *rank_name(int rank)
{
    static const char *const names[] = {"a-w-0-0", "a-w-0-1", "a-w-0-2", "a-w-0-3"};
    return names[rank];
}

static const struct hang_watch *watch_of(const struct harness *h, const struct jobset *jobset)
{
    return hang_find(core_hang_watches(h->core), jobset->uid);
}

static void join_all(struct harness *h)
{
    harness_run_all(h);
    for (int i = 0; i < RANKS; i++)
        report_task(h, rank_name(i), (struct task_report){.kind = REPORT_JOINED});
}

/* A gang of four, a machine each, that has made steps of 20 s. */
static struct jobset *begin(struct harness *h, const char *file)
{
    harness_init(h, 6, 4, 0);
    struct jobset *jobset = harness_create(h, file);
    join_all(h);
    for (int step = 1; step <= 4; step++) {
        harness_wait(h, STEP_S * NS_PER_SECOND);
        progress_to(h, jobset, step);
    }
    return jobset;
}

static machine_id machine_of(struct harness *h, int rank)
{
    return harness_task(h, rank_name(rank))->machine;
}

static size_t asked(const struct harness *h)
{
    size_t open = 0;
    for (size_t i = 0; i < h->errands.len; i++)
        open += h->errands.items[i].kind == ERRAND_DIAGNOSE && !h->errands.items[i].over;
    return open;
}

static void answer(struct harness *h, int rank, int done, bool waits, const char *op, char state, int step)
{
    struct buf record BUF_CLEANUP = {0};
    record_write(&record, (uint32_t)rank, RANKS, done, waits, op, state, step);
    harness_errand_end(h, harness_errand(h, ERRAND_DIAGNOSE, machine_of(h, rank)), ERRAND_OK, record.data);
}

static const struct fault *fault_at(const struct harness *h, machine_id machine)
{
    return fault_of_machine(core_health(h->core), core_cluster(h->core)->machines[machine].name);
}

static void assert_nobody_blamed(const struct harness *h)
{
    for (size_t i = 0; i < core_cluster(h->core)->machine_count; i++)
        assert_null(fault_at(h, (machine_id)i));
}

static void until_suspected(struct harness *h)
{
    harness_wait(h, 5 * STEP_S * NS_PER_SECOND);
    assert_int_equal(asked(h), RANKS);
    assert_int_equal(notes(h, "HangSuspected"), 1);
}

static void the_rank_that_stays_away(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, GANG_OF(""));
    until_suspected(&h);
    machine_id culprit = machine_of(&h, 2), peer = machine_of(&h, 1);
    for (int rank = 0; rank < RANKS; rank++)
        answer(&h, rank, 7, rank != 2, "barrier", 'S', 4);
    assert_string_equal(fault_at(&h, culprit)->code.data, "hang/absent");
    assert_null(fault_at(&h, peer));
    assert_int_equal(watch_of(&h, jobset)->verdict, HANG_MACHINES);
    assert_int_equal(notes(&h, "HangCulprit"), 2); /* on the JobSet and on the Pod */
    assert_int_equal(jobset->restarts, 0);
    harness_run_all(&h); /* it ends; its Job has failed; the gang begins again */
    assert_int_equal(jobset->restarts, 1);
    harness_run_all(&h);
    for (int rank = 0; rank < RANKS; rank++)
        assert_true(machine_of(&h, rank) != culprit);
    harness_done(&h);
}

static void the_rank_that_cannot_answer(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, GANG_OF(""));
    until_suspected(&h);
    machine_id culprit = machine_of(&h, 3);
    for (int rank = 0; rank < RANKS - 1; rank++)
        answer(&h, rank, 7, true, "barrier", 'S', 4);
    assert_null(fault_at(&h, culprit));
    harness_wait(&h, core_cluster(h.core)->policy.hangs.answer_ns + HANG_ANSWER_MARGIN_NS);
    assert_string_equal(fault_at(&h, culprit)->code.data, "hang/silent");
    assert_int_equal(core_cluster(h.core)->machines[culprit].isolation, ISOLATION_QUARANTINED);
    assert_int_equal(watch_of(&h, jobset)->open, 0);
    assert_int_equal(asked(&h), 0); /* what is late is called back */
    harness_done(&h);
}

static void the_process_that_is_stopped(void **state)
{
    struct harness h;
    begin(&h, GANG_OF(""));
    until_suspected(&h);
    machine_id culprit = machine_of(&h, 1);
    for (int rank = 0; rank < RANKS; rank++) /* all are between two barriers: no record explains it */
        answer(&h, rank, 7, false, "barrier", rank == 1 ? 'T' : 'S', 4);
    assert_string_equal(fault_at(&h, culprit)->code.data, "hang/stopped");
    harness_done(&h);
}

static void a_program_that_is_wrong(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, GANG_OF(""));
    until_suspected(&h);
    for (int rank = 0; rank < RANKS; rank++)
        answer(&h, rank, 7, true, rank == 1 ? "broadcast" : "all_reduce", 'S', 4);
    assert_nobody_blamed(&h);
    assert_int_equal(watch_of(&h, jobset)->verdict, HANG_PROGRAM);
    assert_true(notes(&h, "CollectiveMismatch") >= 1);
    assert_true(strstr(last_note(&h, "CollectiveMismatch")->message.data, "broadcast") != NULL);
    harness_run_all(&h);
    assert_int_equal(jobset->restarts, 1);
    assert_string_equal(jobset->history.records[0].cause, "CollectiveMismatch");
    harness_done(&h);
}

static void a_network_that_is_wrong(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, GANG_OF(""));
    until_suspected(&h);
    machine_id machines[RANKS];
    for (int rank = 0; rank < RANKS; rank++)
        machines[rank] = machine_of(&h, rank);
    for (int rank = 0; rank < RANKS; rank++)
        answer(&h, rank, 7, true, "all_reduce", 'S', 4);
    assert_int_equal(watch_of(&h, jobset)->verdict, HANG_NETWORK);
    for (int rank = 0; rank < RANKS; rank++) {
        const struct machine *machine = &core_cluster(h.core)->machines[machines[rank]];
        assert_true(machine->isolation <= ISOLATION_SUSPECT);
    }
    size_t faults = fault_count(core_health(h.core));
    assert_int_equal(faults, RANKS);
    harness_run_all(&h);
    assert_int_equal(jobset->restarts, 1);
    harness_done(&h);
}

static void steps_go_on(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, GANG_OF(""));
    until_suspected(&h);
    answer(&h, 0, 7, true, "barrier", 'S', 4);
    progress_to(&h, jobset, 5);
    assert_int_equal(asked(&h), 0);
    assert_int_equal(watch_of(&h, jobset)->verdict, HANG_GOES_ON);
    assert_nobody_blamed(&h);
    /* The longest step is known now: the next suspicion takes five times as long. */
    harness_wait(&h, 4 * 5 * STEP_S * NS_PER_SECOND);
    assert_int_equal(notes(&h, "HangSuspected"), 1);
    harness_wait(&h, 5 * STEP_S * NS_PER_SECOND);
    assert_int_equal(asked(&h), RANKS);
    harness_done(&h);
}

static void what_is_not_explained(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, GANG_OF(""));
    until_suspected(&h);
    for (int round = 1; round <= 2; round++) {
        for (int rank = 0; rank < RANKS; rank++)
            answer(&h, rank, 7, false, "barrier", 'S', 4);
        assert_int_equal(watch_of(&h, jobset)->verdict, HANG_NOT_FOUND);
        assert_int_equal(watch_of(&h, jobset)->unexplained, round);
        harness_wait(&h, 5 * STEP_S * NS_PER_SECOND); /* the time doubles */
        assert_int_equal(asked(&h), 0);
        harness_wait(&h, ((5 * STEP_S << round) - 5 * STEP_S) * NS_PER_SECOND);
        assert_int_equal(asked(&h), RANKS);
    }
    assert_nobody_blamed(&h);
    assert_int_equal(jobset->restarts, 0);
    harness_done(&h);
}

/* A limit of one's own is a word: when it has passed, the job begins again even if nobody is to blame. */
static void a_limit_of_its_own(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, GANG_OF("phalanx.dev/hang-timeout: 3s"));
    harness_wait(&h, 3 * NS_PER_SECOND);
    assert_int_equal(asked(&h), RANKS);
    for (int rank = 0; rank < RANKS; rank++)
        answer(&h, rank, 7, false, "barrier", 'S', 4);
    assert_nobody_blamed(&h);
    harness_run_all(&h);
    assert_int_equal(jobset->restarts, 1);
    harness_done(&h);
}

static void who_is_not_watched(void **state)
{
    struct harness h;
    static const char *const never[] = {GANG_OF("phalanx.dev/hang-timeout: \"off\""),
                                        GANG_OF("phalanx.dev/hang-timeout: 100000d")};
    for (int i = 0; i < 2; i++) {
        begin(&h, never[i]);
        harness_wait(&h, 1000 * STEP_S * NS_PER_SECOND);
        assert_int_equal(notes(&h, "HangSuspected"), 0);
        harness_done(&h);
    }
    harness_init(&h, 6, 4, 0); /* no rank of it speaks libphalanx */
    struct jobset *jobset = harness_create(&h, GANG_OF(""));
    harness_run_all(&h);
    harness_wait(&h, 1000 * STEP_S * NS_PER_SECOND);
    assert_null(watch_of(&h, jobset));
    harness_done(&h);
}

static void long_beginnings_and_checkpoints(void **state)
{
    struct harness h;
    harness_init(&h, 6, 4, 0);
    struct jobset *jobset = harness_create(&h, GANG_OF(""));
    const struct hang_settings *settings = &core_cluster(h.core)->policy.hangs;
    join_all(&h);
    harness_wait(&h, settings->first_step_ns - NS_PER_SECOND);
    assert_int_equal(asked(&h), 0);
    for (int step = 1; step <= 3; step++) {
        progress_to(&h, jobset, step);
        harness_wait(&h, NS_PER_SECOND);
    }
    report_task(&h, "a-w-0-0", (struct task_report){.kind = REPORT_SHARD_SAVED, .step = 3});
    harness_wait(&h, settings->checkpoint_ns - NS_PER_SECOND);
    assert_int_equal(asked(&h), 0);
    progress_to(&h, jobset, 4);
    assert_int_equal(watch_of(&h, jobset)->longest_ns / NS_PER_SECOND, 1); /* a checkpoint is no step */
    harness_wait(&h, settings->minimum_ns - NS_PER_SECOND);
    assert_int_equal(asked(&h), 0);
    harness_wait(&h, NS_PER_SECOND);
    assert_int_equal(asked(&h), RANKS);
    harness_done(&h);
}

static void a_machine_speaks_for_its_own_tasks(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, GANG_OF(""));
    const struct task *task = harness_task(&h, rank_name(0));
    struct task_report saved = {.kind = REPORT_SHARD_SAVED,
                                .task = task->uid,
                                .step = 4,
                                .attempt_plus_1 = (uint32_t)task->attempt + 1};
    harness_report(&h, &saved, machine_of(&h, 1));
    assert_false(watch_of(&h, jobset)->saving);
    harness_report(&h, &saved, machine_of(&h, 0));
    assert_true(watch_of(&h, jobset)->saving);
    harness_done(&h);
}

/* A rank that has joined is watched from then on: on the word of its own machine, not of another one. */
static void a_machine_joins_its_own_tasks(void **state)
{
    struct harness h;
    harness_init(&h, 6, 4, 0);
    struct jobset *jobset = harness_create(&h, GANG_OF(""));
    harness_run_all(&h);
    const struct task *task = harness_task(&h, rank_name(0));
    struct task_report joined = {
        .kind = REPORT_JOINED, .task = task->uid, .attempt_plus_1 = (uint32_t)task->attempt + 1};
    harness_report(&h, &joined, machine_of(&h, 1));
    assert_null(watch_of(&h, jobset));
    harness_report(&h, &joined, machine_of(&h, 0));
    assert_non_null(watch_of(&h, jobset));
    int64_t since_ns = watch_of(&h, jobset)->since_ns;
    harness_wait(&h, NS_PER_SECOND);
    harness_report(&h, &joined, machine_of(&h, 1)); /* again: no sign of life */
    assert_true(watch_of(&h, jobset)->since_ns == since_ns);
    harness_report(&h, &joined, machine_of(&h, 0));
    assert_true(watch_of(&h, jobset)->since_ns > since_ns);
    harness_done(&h);
}

static void while_a_task_is_missing(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, GANG_OF(""));
    struct event away = {.kind = EVENT_BOOT, .boot = {.epoch = 2, .version = STR("test")}};
    harness_wait(&h, 4 * STEP_S * NS_PER_SECOND);
    harness_step(&h, &away); /* the controller was away: what it has not heard is no sign */
    harness_wait(&h, 4 * STEP_S * NS_PER_SECOND);
    assert_int_equal(notes(&h, "HangSuspected"), 0);
    harness_wait(&h, STEP_S * NS_PER_SECOND);
    assert_int_equal(notes(&h, "HangSuspected"), 1);
    assert_int_equal(watch_of(&h, jobset)->phase, HANG_COLLECTING);
    harness_done(&h);
}

/* The check of the write refuses: nothing of it reaches the log. */
static void a_person_asks_before_the_start(void **state)
{
    struct harness h;
    harness_init(&h, 6, 4, 0);
    harness_create(&h, GANG_OF(""));
    assert_int_equal(harness_task(&h, rank_name(0))->state, TASK_STARTING);
    uint64_t seq = core_seq(h.core);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOBSET, WRITE_DIAGNOSE, "a", NULL), 409);
    assert_true(core_seq(h.core) == seq);
    harness_run_all(&h);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOBSET, WRITE_DIAGNOSE, "a", NULL), 200);
    assert_int_equal(asked(&h), RANKS);
    harness_done(&h);
}

static void a_person_asks(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, GANG_OF(""));
    assert_int_equal(harness_write_checked(&h, OBJECT_JOBSET, WRITE_DIAGNOSE, "none", NULL), 404);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_DIAGNOSE, "a-w-0", NULL), 405);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOBSET, WRITE_DIAGNOSE, "a", NULL), 200);
    assert_int_equal(asked(&h), RANKS);
    uint64_t number = watch_of(&h, jobset)->number;
    assert_int_equal(harness_write_checked(&h, OBJECT_JOBSET, WRITE_DIAGNOSE, "a", NULL), 200);
    assert_true(watch_of(&h, jobset)->number == number); /* one is under way */
    progress_to(&h, jobset, 5);
    assert_int_equal(asked(&h), RANKS); /* the answer comes all the same */
    for (int rank = 0; rank < RANKS; rank++)
        answer(&h, rank, 7, rank != 2, "barrier", 'S', 4);
    assert_int_equal(watch_of(&h, jobset)->verdict, HANG_MACHINES);
    assert_true(watch_of(&h, jobset)->parts[2].record.len > 0);
    assert_nobody_blamed(&h); /* and nothing follows from it */
    harness_run_all(&h);
    assert_int_equal(jobset->restarts, 0);
    delete_object(&h, OBJECT_JOBSET, jobset->name);
    harness_run_all(&h);
    assert_int_equal(hangs_count(core_hang_watches(h.core)), 0);
    harness_done(&h);
}

/* Whatever the times between steps: nobody is asked before the limit, all are at it. */
static void the_limit_is_kept(void **state)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct rng rng;
        struct harness h;
        int64_t longest_ns = 0;
        rng_seed(&rng, seed);
        harness_init(&h, 6, 4, 0);
        struct jobset *jobset = harness_create(&h, GANG_OF(""));
        const struct hang_settings *settings = &core_cluster(h.core)->policy.hangs;
        join_all(&h);
        progress_to(&h, jobset, 1);
        size_t steps = 2 + rng_below(&rng, 8);
        for (size_t step = 0; step < steps; step++) {
            int64_t gap_ns = 1 + (int64_t)rng_below(&rng, (uint64_t)settings->minimum_ns);
            harness_wait(&h, gap_ns);
            progress_to(&h, jobset, (int64_t)step + 2);
            longest_ns = gap_ns > longest_ns ? gap_ns : longest_ns;
        }
        int64_t limit_ns = settings->factor * longest_ns;
        limit_ns = limit_ns > settings->minimum_ns ? limit_ns : settings->minimum_ns;
        harness_wait(&h, limit_ns - 1);
        assert_int_equal(asked(&h), 0);
        harness_wait(&h, 1);
        assert_int_equal(asked(&h), RANKS);
        harness_done(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rank_that_stays_away),
        cmocka_unit_test(the_rank_that_cannot_answer),
        cmocka_unit_test(the_process_that_is_stopped),
        cmocka_unit_test(a_program_that_is_wrong),
        cmocka_unit_test(a_network_that_is_wrong),
        cmocka_unit_test(steps_go_on),
        cmocka_unit_test(what_is_not_explained),
        cmocka_unit_test(a_limit_of_its_own),
        cmocka_unit_test(who_is_not_watched),
        cmocka_unit_test(long_beginnings_and_checkpoints),
        cmocka_unit_test(a_machine_speaks_for_its_own_tasks),
        cmocka_unit_test(a_machine_joins_its_own_tasks),
        cmocka_unit_test(while_a_task_is_missing),
        cmocka_unit_test(a_person_asks),
        cmocka_unit_test(a_person_asks_before_the_start),
        cmocka_unit_test(the_limit_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
