/* Tests before a gang starts: nothing of the user's runs before every machine is valid, a machine that fails
 * is replaced, valid machines cost nothing, and whatever happens meanwhile leaves no test behind. */
#include "core/job/story.h"

#include "base/rng.h"
#include "core/errand/errand.h"
#include "core/health/fault.h"

#define PREFLIGHT(name, mode, fields, rjobs)                                                                 \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"                                                   \
    "metadata: {name: " name ", annotations: {phalanx.dev/preflight: \"" mode "\"}}\n"                       \
    "spec: {" fields "replicatedJobs: [" rjobs "]}\n"

static const char failed[] = "{\"ok\":false,\"tests\":[{\"test\":\"memory\",\"result\":\"passed\"},"
                             "{\"test\":\"cpu\",\"result\":\"failed\",\"why\":\"cpu/gflops is 3\"}]}";

static size_t errands_of(const struct harness *h, enum errand_kind kind)
{
    const struct errands *errands = core_errands_store(h->core);
    size_t count = 0;
    for (size_t i = 0; i < errands_count(errands); i++)
        count += errands_at(errands, i)->kind == kind;
    return count;
}

static struct told_errand *told_on(struct harness *h, enum errand_kind kind, const char *machine)
{
    return harness_errand(h, kind, cluster_find(core_cluster(h->core), str_from(machine))->id);
}

static void end_alone(struct harness *h, const char *machine, enum errand_outcome outcome, const char *output)
{
    harness_errand_end(h, told_on(h, ERRAND_QUALIFY, machine), outcome, output);
    core_check_invariants(h->core);
}

/* All machines with a test of their own pass it. */
static void pass_alone(struct harness *h)
{
    for (machine_id i = 0; i < core_cluster(h->core)->machine_count; i++)
        if (harness_errand(h, ERRAND_QUALIFY, i))
            end_alone(h, core_cluster(h->core)->machines[i].name.data, ERRAND_OK, "");
}

static int count_on(struct harness *h, const char *machine)
{
    const struct machine *of = cluster_find(core_cluster(h->core), str_from(machine));
    int count = 0;
    list_for_each(node, &core_jobs(h->core)->machine_tasks[of->id]) count++;
    return count;
}

static void assert_why(struct harness *h, const char *jobset, const char *why)
{
    const struct jobset *of = harness_jobset(h, jobset);
    assert_true(of->gangs.len == 1);
    char text[256];
    snprintf(text, sizeof text, STR_FORMAT, STR_ARG(of->gangs.items[0]->why));
    assert_string_equal(text, why);
}

static void valid_machines_cost_nothing(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 0);
    harness_create(&h, PREFLIGHT("a", "true", "", RJOB("w", 1, "", 8, "")));
    assert_int_equal(h.told.len, 0); /* nothing has been told to start */
    assert_int_equal(errands_of(&h, ERRAND_QUALIFY), 2);
    assert_why(&h, "a", "preflight: 2 of 2 machines are being tested");
    struct told_errand *errand = told_on(&h, ERRAND_QUALIFY, "m-1");
    assert_true(str_is(buf_str(&errand->body), "{\"seconds\":5,\"golden\":{}}"));
    assert_true(errand->timeout_ns == 120 * NS_PER_SECOND);
    end_alone(&h, "m-1", ERRAND_OK, "");
    assert_int_equal(h.told.len, 0);
    assert_why(&h, "a", "preflight: 1 of 2 machines are being tested");
    h.now_ns += 3 * NS_PER_SECOND;
    end_alone(&h, "m-2", ERRAND_OK, "");
    assert_int_equal(h.told.len, 8);
    assert_note(&h, false, "PreflightPassed", "2 machines, after 3.00 s");
    harness_run_all(&h);
    for (int i = 0; i < 8; i++) {
        char host[16];
        snprintf(host, sizeof host, "a-w-0-%d", i);
        exits(&h, host, 0);
    }
    harness_create(&h, PREFLIGHT("b", "true", "", RJOB("w", 1, "", 8, "")));
    assert_int_equal(h.told.len, 16); /* at once */
    assert_int_equal(errands_of(&h, ERRAND_QUALIFY), 0);
    harness_done(&h);
}

/* A replica that has lost its machine returns with the event that ends the test of its next one. */
static void an_absent_replica_returns_after_its_test(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 0);
    struct jobset *jobset = harness_create(
        &h, "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, annotations: "
            "{phalanx.dev/preflight: \"true\", phalanx.dev/replica-size: \"1\"}}\n"
            "spec: {replicatedJobs: [{name: w, template: {spec: {parallelism: 3, completions: 3, "
            "backoffLimit: 0, " POD_OF("", "4") "}}}]}\n");
    for (int attempt = 0; attempt < 2; attempt++) {
        pass_alone(&h);
        harness_run_all(&h);
        for (size_t t = 0; t < jobset->jobs[0]->tasks.len; t++) {
            const struct task *task = jobset->jobs[0]->tasks.items[t];
            struct task_report joined = {.kind = REPORT_JOINED,
                                         .task = task->uid,
                                         .attempt_plus_1 = (uint32_t)task->attempt + 1,
                                         .can_rejoin = true};
            if (task->state == TASK_RUNNING)
                harness_report(&h, &joined, task->machine);
        }
        progress_to(&h, jobset, attempt + 1);
        if (attempt == 0)
            harness_lose(&h, "m-2");
    }
    assert_int_equal(jobset->recovery.absence.replicas.len, 1);
    harness_hello(&h, "m-2", NULL, 0);
    harness_wait(&h, 11 * NS_PER_SECOND);
    assert_int_equal(jobset->attempt, 1);
    end_alone(&h, "m-2", ERRAND_OK, "");
    assert_int_equal(jobset->attempt, 2);
    assert_int_equal(jobset->recovery.absence.replicas.len, 0);
    harness_done(&h);
}

static void validity_ends(void **state)
{
    struct harness h;
    harness_init(&h, 1, 4, 0);
    harness_create(&h, PREFLIGHT("a", "true", "", RJOB("w", 1, "", 1, "")));
    pass_alone(&h);
    harness_run_all(&h);
    exits(&h, "a-w-0-0", 0);
    harness_wait(&h, 25 * 3600 * NS_PER_SECOND);
    harness_create(&h, PREFLIGHT("b", "true", "", RJOB("w", 1, "", 1, "")));
    assert_int_equal(errands_of(&h, ERRAND_QUALIFY), 1);
    pass_alone(&h);
    harness_run_all(&h);
    exits(&h, "b-w-0-0", 0);
    harness_lose(&h, "m-1");
    harness_hello(&h, "m-1", NULL, 0);
    harness_create(&h, PREFLIGHT("c", "true", "", RJOB("w", 1, "", 1, "")));
    assert_int_equal(errands_of(&h, ERRAND_QUALIFY), 1); /* what came back may be another machine */
    harness_done(&h);
}

static void a_machine_that_fails_is_replaced(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 1);
    harness_create(&h, PREFLIGHT("a", "true", "failurePolicy: {maxRestarts: 0}, ", RJOB("w", 1, "", 8, "")));
    end_alone(&h, "m-1", ERRAND_OK, "");
    end_alone(&h, "m-2", ERRAND_FAILED, failed);
    const struct fault *fault = fault_of_machine(core_health(h.core), STR("m-2"));
    assert_non_null(fault);
    assert_true(str_is(fault->code, "qualify/cpu") && str_is(buf_str(&fault->evidence), "cpu/gflops is 3"));
    assert_false(machine_schedulable(cluster_find(core_cluster(h.core), STR("m-2"))));
    assert_note(&h, true, "PreflightFailed",
                "machine m-2 is replaced before the gang starts: "
                "qualify/cpu (Separate)");
    assert_int_equal(h.told.len, 0);
    assert_int_equal(count_on(&h, "m-2"), 0);
    assert_int_equal(errands_of(&h, ERRAND_QUALIFY), 1); /* the spare's; m-1 has passed */
    assert_non_null(told_on(&h, ERRAND_QUALIFY, "m-3"));
    end_alone(&h, "m-3", ERRAND_OK, "");
    harness_run_all(&h);
    const struct jobset *jobset = harness_jobset(&h, "a");
    assert_true(jobset->attempt == 0 && jobset->restarts == 0); /* the user's program never saw it */
    assert_true(count_on(&h, "m-1") == 4 && count_on(&h, "m-3") == 4);
    assert_int_equal(jobset->gangs.items[0]->state, GANG_RUNNING);
    harness_done(&h);
}

/* Nothing that is said of the machine: a body that the agent's program does not understand, an agent that is
 * too old. */
static void what_cannot_be_tested_is_let_through(void **state)
{
    struct harness h;
    harness_init(&h, 1, 4, 0);
    harness_create(&h, PREFLIGHT("a", "true", "", RJOB("w", 1, "", 1, "")));
    struct told_errand *errand = told_on(&h, ERRAND_QUALIFY, "m-1");
    errand->over = true;
    struct errand_end end = {errand->errand, ERRAND_FAILED, 2, STR("unknown field")};
    struct event event = {.kind = EVENT_REPORTS};
    event.reports.machine = STR("m-1");
    event.reports.reports = (struct reports){.number = 1, .errands = &end, .errand_count = 1};
    harness_step(&h, &event);
    assert_note(&h, true, "PreflightUnable", "the machine is let through untested: unknown field");
    assert_null(fault_of_machine(core_health(h.core), STR("m-1")));
    assert_int_equal(h.told.len, 1);
    harness_done(&h);
}

static void silence_and_lateness_are_failures(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, PREFLIGHT("a", "true", "", RJOB("w", 1, "", 4, "")));
    harness_wait(&h, 131 * NS_PER_SECOND);
    const struct fault *fault = fault_of_machine(core_health(h.core), STR("m-1"));
    assert_true(fault && str_is(fault->code, "qualify/unanswered"));
    assert_non_null(told_on(&h, ERRAND_QUALIFY, "m-2"));
    end_alone(&h, "m-2", ERRAND_TIMED_OUT, "cpu: passed"); /* the breaker leaves it at work */
    assert_int_equal(notes(&h, "QuarantineHeldBack"), 1);
    assert_int_equal(h.told.len, 4);
    harness_done(&h);
}

static void who_passes_later_is_well_again(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, PREFLIGHT("a", "true", "", RJOB("w", 1, "", 1, "")));
    end_alone(&h, "m-1", ERRAND_FAILED, failed);
    struct told_errand *errand = told_on(&h, ERRAND_QUALIFY, "m-2");
    assert_non_null(errand);
    harness_errand_end(&h, errand, ERRAND_FAILED, failed); /* held back: it stays, with its fault */
    assert_non_null(fault_of_machine(core_health(h.core), STR("m-2")));
    harness_run_all(&h);
    exits(&h, "a-w-0-0", 0);
    harness_wait(&h, 25 * 3600 * NS_PER_SECOND);
    harness_create(&h, PREFLIGHT("b", "true", "", RJOB("w", 1, "", 1, "")));
    pass_alone(&h);
    const struct fault *fault = fault_of_machine(core_health(h.core), STR("m-2"));
    assert_true(!fault || !fault->open || fault->recovered_ns > 0);
    harness_done(&h);
}

static void deletion_and_suspension_cancel(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, PREFLIGHT("a", "true", "", RJOB("w", 1, "", 8, "")));
    struct told_errand *errand = told_on(&h, ERRAND_QUALIFY, "m-1");
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a",
                                   PREFLIGHT("a", "true", "suspend: true, ", RJOB("w", 1, "", 8, ""))),
                     200);
    assert_true(errand->over);
    assert_int_equal(errands_of(&h, ERRAND_QUALIFY), 0);
    core_check_invariants(h.core);
    assert_int_equal(
        harness_write(&h, WRITE_REPLACE, "a", PREFLIGHT("a", "true", "", RJOB("w", 1, "", 8, ""))), 200);
    assert_int_equal(errands_of(&h, ERRAND_QUALIFY), 2);
    assert_int_equal(harness_write(&h, WRITE_DELETE, "a", NULL), 200);
    assert_int_equal(errands_of(&h, ERRAND_QUALIFY), 0);
    assert_int_equal(h.told.len, 0);
    core_check_invariants(h.core);
    harness_done(&h);
}

static void two_gangs_share_a_test(void **state)
{
    struct harness h;
    harness_init(&h, 1, 4, 0);
    harness_create(&h, PREFLIGHT("a", "true", "", RJOB("w", 1, "", 2, "")));
    harness_create(&h, PREFLIGHT("b", "true", "", RJOB("w", 1, "", 2, "")));
    assert_int_equal(errands_of(&h, ERRAND_QUALIFY), 1);
    assert_int_equal(harness_write(&h, WRITE_DELETE, "a", NULL), 200); /* who began it */
    assert_int_equal(errands_of(&h, ERRAND_QUALIFY), 1);
    pass_alone(&h);
    assert_int_equal(h.told.len, 2);
    harness_done(&h);
}

static void a_machine_at_work_is_not_tested(void **state)
{
    struct harness h;
    harness_init(&h, 1, 4, 0);
    harness_create(&h, JOBSET("a", "", RJOB("w", 1, "", 2, "")));
    harness_run_all(&h);
    harness_create(&h, PREFLIGHT("b", "true", "", RJOB("w", 1, "", 2, "")));
    assert_int_equal(errands_of(&h, ERRAND_QUALIFY), 0);
    assert_int_equal(h.told.len, 4);
    harness_done(&h);
}

static void a_lost_machine_is_replaced(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 0);
    harness_create(&h, PREFLIGHT("a", "true", "failurePolicy: {maxRestarts: 0}, ", RJOB("w", 1, "", 8, "")));
    harness_lose(&h, "m-1");
    core_check_invariants(h.core);
    pass_alone(&h);
    harness_run_all(&h);
    assert_int_equal(harness_jobset(&h, "a")->gangs.items[0]->state, GANG_RUNNING);
    assert_true(count_on(&h, "m-2") == 4 && count_on(&h, "m-3") == 4);
    assert_int_equal(harness_jobset(&h, "a")->restarts, 0);
    harness_done(&h);
}

/* After a loss the ladder replaces the machine, and then begins anew. */
#define REPLACED(name, fields, rjobs)                                                                        \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"                                                   \
    "metadata: {name: " name ", annotations: {phalanx.dev/preflight: 'true', "                               \
    "phalanx.dev/recovery: 'replace-machine,requeue', "                                                      \
    "phalanx.dev/recovery-limits: 'replace-machine=1s'}}\n"                                                  \
    "spec: {" fields "replicatedJobs: [" rjobs "]}\n"

static void all_join(struct harness *h, const struct jobset *jobset)
{
    harness_run_all(h);
    for (size_t t = 0; t < jobset->jobs[0]->tasks.len; t++) {
        const struct task *task = jobset->jobs[0]->tasks.items[t];
        if (task->state == TASK_RUNNING)
            report_task(h, task->hostname.data,
                        (struct task_report){.kind = REPORT_JOINED,
                                             .attempt_plus_1 = (uint32_t)task->attempt + 1,
                                             .can_rejoin = true});
    }
    core_check_invariants(h->core);
}

/* When the time of the rung is over while the places of the lost ranks are being tested, the ranks that wait
 * for them do not wait for ever: those that stand by, and those that have ended and keep their places. */
static void nobody_waits_for_a_long_test_for_ever(void **state)
{
    for (int ends = 0; ends <= 1; ends++) {
        struct harness h;
        harness_init(&h, 3, 4, 0);
        struct jobset *jobset =
            harness_create(&h, REPLACED("a", "failurePolicy: {maxRestarts: 1}, ", RJOB("w", 1, "", 8, "")));
        pass_alone(&h);
        all_join(&h, jobset);
        progress_to(&h, jobset, 1);
        machine_id lost = harness_task(&h, "a-w-0-0")->machine;
        harness_lose(&h, core_cluster(h.core)->machines[lost].name.data);
        assert_true(jobset_parks(jobset) && jobset_keeps(jobset) && jobset->gangs.len == 2);
        assert_int_equal(errands_of(&h, ERRAND_QUALIFY), 1);
        for (int i = 0; i < 8 && ends; i++) {
            char host[16];
            snprintf(host, sizeof host, "a-w-0-%d", i);
            if (harness_task(&h, host)->state == TASK_RUNNING)
                exits(&h, host, 1);
        }
        assert_true(jobset_parks(jobset) && jobset->restarts == 0);
        harness_wait(&h, 32 * NS_PER_SECOND); /* the rung's time and the ranks' grace */
        assert_true(!jobset_parks(jobset) && jobset->restarts == 1);
        harness_check_replay(&h);
        harness_run_all(&h);
        pass_alone(&h);
        harness_run_all(&h);
        assert_int_equal(jobset->jobs[0]->ready, 8);
        harness_done(&h);
    }
}

/* If no rank waits for the tested places, a long test costs no restart. */
static void a_long_test_that_nobody_waits_for_goes_on(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset =
        harness_create(&h, REPLACED("a", "failurePolicy: {maxRestarts: 0}, ", RJOB("w", 1, "", 4, "")));
    pass_alone(&h);
    all_join(&h, jobset);
    progress_to(&h, jobset, 1);
    machine_id lost = harness_task(&h, "a-w-0-0")->machine;
    harness_lose(&h, core_cluster(h.core)->machines[lost].name.data);
    assert_true(jobset_parks(jobset) && jobset_keeps(jobset));
    harness_wait(&h, 32 * NS_PER_SECOND);
    assert_true(!jobset_parks(jobset) && errands_of(&h, ERRAND_QUALIFY) == 1);
    pass_alone(&h);
    harness_run_all(&h);
    assert_true(jobset->jobs[0]->ready == 4 && jobset->restarts == 0);
    harness_done(&h);
}

/* --- pairs ---------------------------------------------------------------------------------------------- */

/* The network of a gang; a time of 0: nothing gets through. */
struct network {
    int64_t times_ns[8];
};

static machine_id partner_of(struct harness *h, machine_id machine)
{
    const struct errands *errands = core_errands_store(h->core);
    struct told_errand *own = harness_errand(h, ERRAND_PAIR, machine);
    assert_non_null(own);
    struct arena arena = {0};
    struct doc *doc;
    struct error error;
    assert_int_equal(json_parse(&arena, buf_str(&own->body), &doc, &error), 0);
    struct str where = doc_str(doc_get(doc, "listen"), doc_str(doc_get(doc, "connect"), STR("")));
    machine_id found = MACHINE_NONE;
    for (size_t i = 0; i < errands_count(errands); i++) {
        const struct errand *other = errands_at(errands, i);
        struct doc *body;
        assert_int_equal(json_parse(&arena, other->body, &body, &error), 0);
        assert_true(doc_int(doc_get(body, "epoch"), 0) == doc_int(doc_get(doc, "epoch"), -1));
        machine_id id = cluster_find(core_cluster(h->core), other->machine)->id;
        struct str there = doc_str(doc_get(body, "listen"), doc_str(doc_get(body, "connect"), STR("")));
        if (id != machine && str_equal(where, there))
            found = id;
    }
    arena_done(&arena);
    assert_true(found != MACHINE_NONE);
    return found;
}

/* All pairs of the round under way, as the network has it. */
static void run_round(struct harness *h, const struct network *network)
{
    machine_id machines[16], partners[16];
    size_t count = 0;
    for (machine_id i = 0; i < core_cluster(h->core)->machine_count; i++)
        if (harness_errand(h, ERRAND_PAIR, i)) {
            machines[count] = i;
            partners[count++] = partner_of(h, i);
        }
    for (size_t i = 0; i < count; i++) {
        int64_t a = network->times_ns[machines[i]], b = network->times_ns[partners[i]];
        char output[128];
        snprintf(output, sizeof output, "{\"tests\":[{\"test\":\"pair\",\"workNanoseconds\":%lld}]}",
                 (long long)(a > b ? a : b));
        harness_errand_end(h, harness_errand(h, ERRAND_PAIR, machines[i]), a && b ? ERRAND_OK : ERRAND_FAILED,
                           output);
        core_check_invariants(h->core);
    }
}

static void start_in_pairs(struct harness *h, int machines, int spares, const char *yaml)
{
    harness_init(h, machines, 1, spares);
    harness_create(h, yaml);
    pass_alone(h);
    assert_int_equal(h->told.len, 0);
}

static void pairs_meet_twice(void **state)
{
    static const struct network good = {{100, 100, 100, 100, 100}};
    struct harness h;
    start_in_pairs(&h, 5, 0, PREFLIGHT("a", "pairs", "", RJOB("w", 1, "", 5, "")));
    assert_int_equal(errands_of(&h, ERRAND_PAIR), 4); /* one is left over */
    assert_int_equal(partner_of(&h, 0), 1);
    assert_int_equal(partner_of(&h, 2), 3);
    assert_null(harness_errand(&h, ERRAND_PAIR, 4));
    assert_why(&h, "a", "preflight: 4 of 5 machines are being tested in pairs, round 1 of 2");
    run_round(&h, &good);
    assert_non_null(harness_errand(&h, ERRAND_PAIR, 4)); /* now it has its turn */
    assert_int_equal(h.told.len, 0);
    run_round(&h, &good);
    assert_int_equal(h.told.len, 5);
    assert_int_equal(errands_of(&h, ERRAND_PAIR), 0);
    harness_done(&h);
}

static void who_fails_with_each_partner_is_bad(void **state)
{
    static const struct network bad_third = {{100, 100, 0, 100, 100, 100}};
    struct harness h;
    start_in_pairs(&h, 5, 1,
                   PREFLIGHT("a", "pairs", "failurePolicy: {maxRestarts: 0}, ", RJOB("w", 1, "", 4, "")));
    run_round(&h, &bad_third);
    run_round(&h, &bad_third);
    const struct fault *fault = fault_of_machine(core_health(h.core), STR("m-3"));
    assert_true(fault && str_is(fault->code, "qualify/pair"));
    assert_null(fault_of_machine(core_health(h.core), STR("m-4"))); /* its neighbour met a good one */
    assert_int_equal(count_on(&h, "m-3"), 0);
    pass_alone(&h); /* the spare's */
    run_round(&h, &bad_third);
    run_round(&h, &bad_third);
    harness_run_all(&h);
    assert_int_equal(harness_jobset(&h, "a")->gangs.items[0]->state, GANG_RUNNING);
    assert_int_equal(harness_jobset(&h, "a")->restarts, 0);
    harness_done(&h);
}

static void who_is_twice_as_slow_is_a_straggler(void **state)
{
    static const struct network slow_first = {{1000, 100, 110, 90, 100}};
    struct harness h;
    start_in_pairs(&h, 5, 1, PREFLIGHT("a", "pairs", "", RJOB("w", 1, "", 4, "")));
    run_round(&h, &slow_first);
    run_round(&h, &slow_first);
    const struct fault *fault = fault_of_machine(core_health(h.core), STR("m-1"));
    assert_true(fault && str_is(fault->code, "qualify/straggler"));
    assert_null(fault_of_machine(core_health(h.core), STR("m-2"))); /* slow only beside the slow one */
    harness_done(&h);
}

static void the_settings_say_how_slow_a_straggler_is(void **state)
{
    static const struct network slow_first = {{1000, 100, 110, 90, 100}};
    struct harness h;
    harness_init_with(&h, 5, 1, 1, "\"qualification\":{\"stragglerPercent\":1200},");
    harness_create(&h, PREFLIGHT("a", "pairs", "", RJOB("w", 1, "", 4, "")));
    pass_alone(&h);
    run_round(&h, &slow_first);
    run_round(&h, &slow_first);
    assert_null(fault_of_machine(core_health(h.core), STR("m-1")));
    assert_int_equal(count_on(&h, "m-1"), 1);
    harness_done(&h);
}

/* A cut cable tells nothing of which end is bad, but nobody else is blamed. */
static void a_round_that_nobody_answers_ends(void **state)
{
    struct harness h;
    start_in_pairs(&h, 4, 0, PREFLIGHT("a", "pairs", "", RJOB("w", 1, "", 4, "")));
    harness_wait(&h, 50 * NS_PER_SECOND);
    core_check_invariants(h.core);
    harness_wait(&h, 50 * NS_PER_SECOND);
    core_check_invariants(h.core);
    assert_int_equal(notes(&h, "MachineQuarantined") + notes(&h, "QuarantineHeldBack"), 4);
    harness_done(&h);
}

/* --- at random ------------------------------------------------------------------------------------------ */

enum { ROUNDS = 1500, NAMES = 4 };

static void end_any(struct harness *h, struct rng *rng)
{
    struct told_errand *living[64];
    size_t count = 0;
    for (size_t i = 0; i < h->errands.len && count < 64; i++)
        if (!h->errands.items[i].over)
            living[count++] = &h->errands.items[i];
    if (count == 0)
        return;
    bool good = rng_chance(rng, 850000);
    harness_errand_end(h, living[rng_below(rng, count)],
                       good                      ? ERRAND_OK
                       : rng_chance(rng, 500000) ? ERRAND_FAILED
                                                 : ERRAND_TIMED_OUT,
                       good ? "{\"tests\":[{\"workNanoseconds\":100}]}" : failed);
}

static void write_any(struct harness *h, struct rng *rng)
{
    static const char *const modes[] = {"true", "pairs", "false"};
    char name[4], yaml[1024];
    snprintf(name, sizeof name, "j%d", (int)rng_below(rng, NAMES));
    if (rng_chance(rng, 300000)) {
        harness_write(h, WRITE_DELETE, name, NULL);
        return;
    }
    snprintf(yaml, sizeof yaml, PREFLIGHT("%s", "%s", "%s", RJOB("w", 1, "", 5, "")), name,
             modes[rng_below(rng, 3)], rng_chance(rng, 300000) ? "suspend: true, " : "");
    harness_write(h, harness_jobset(h, name) ? WRITE_REPLACE : WRITE_CREATE, name, yaml);
}

static void any_machine(struct harness *h, struct rng *rng)
{
    const struct machine *machine = &core_cluster(h->core)->machines[rng_below(rng, 6)];
    const char *name = machine->name.data;
    const struct fault *fault = fault_of_machine(core_health(h->core), machine->name);
    if (fault && rng_chance(rng, 500000))
        delete_object(h, OBJECT_FAULT, fault->name);
    else if (machine->state != MACHINE_READY)
        harness_hello(h, name, NULL, 0);
    else if (rng_chance(rng, 300000))
        harness_news(h, EVENT_MACHINE_AWAY, name);
    else if (rng_chance(rng, 300000))
        harness_lose(h, name);
}

/* Invariants after every event (nothing runs before its preflight is over; every test is somebody's), twins
 * restored from snapshots, and a replay. */
static void random_lives(void **state)
{
    struct harness h;
    struct rng rng;
    rng_seed(&rng, 5);
    harness_init(&h, 6, 2, 1);
    for (int i = 0; i < ROUNDS; i++) {
        switch (rng_below(&rng, 7)) {
        case 0:
            write_any(&h, &rng);
            break;
        case 1:
            any_machine(&h, &rng);
            break;
        case 2:
            harness_wait(&h, rng_range(&rng, 0, 40 * NS_PER_SECOND));
            break;
        case 3:
            harness_run_all(&h);
            break;
        default:
            end_any(&h, &rng);
        }
        core_check_invariants(h.core);
        if (rng_chance(&rng, 50000))
            harness_wait(&h, 25 * 3600 * NS_PER_SECOND);
    }
    assert_true(notes(&h, "PreflightPassed") > 5 && notes(&h, "PreflightFailed") > 5);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_machines_cost_nothing),
        cmocka_unit_test(an_absent_replica_returns_after_its_test),
        cmocka_unit_test(validity_ends),
        cmocka_unit_test(a_machine_that_fails_is_replaced),
        cmocka_unit_test(what_cannot_be_tested_is_let_through),
        cmocka_unit_test(silence_and_lateness_are_failures),
        cmocka_unit_test(who_passes_later_is_well_again),
        cmocka_unit_test(deletion_and_suspension_cancel),
        cmocka_unit_test(two_gangs_share_a_test),
        cmocka_unit_test(a_machine_at_work_is_not_tested),
        cmocka_unit_test(a_lost_machine_is_replaced),
        cmocka_unit_test(nobody_waits_for_a_long_test_for_ever),
        cmocka_unit_test(a_long_test_that_nobody_waits_for_goes_on),
        cmocka_unit_test(pairs_meet_twice),
        cmocka_unit_test(who_fails_with_each_partner_is_bad),
        cmocka_unit_test(who_is_twice_as_slow_is_a_straggler),
        cmocka_unit_test(the_settings_say_how_slow_a_straggler_is),
        cmocka_unit_test(a_round_that_nobody_answers_ends),
        cmocka_unit_test(random_lives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
