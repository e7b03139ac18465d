/* Why an attempt ended: roots before symptoms whoever reports first, faults before roots where they explain
 * them, windows, and honest silence. */
#include "core/job/story.h"

#include "core/health/attribute.h"

#define SET JOBSET("a", "failurePolicy: {maxRestarts: 5}, ", RJOB("x", 1, "", 3, ""))

static void fails(struct harness *h, struct task *task, enum signature_kind kind, const char *line)
{
    struct signature signature = {kind, str_from(line)};
    struct task_report report = {.kind = REPORT_EXITED,
                                 .task = task->uid,
                                 .exit_code = 1,
                                 .signatures = &signature,
                                 .signature_count = kind != SIGNATURE_NONE};
    harness_told(h, task->uid)->ended = true;
    harness_report(h, &report, harness_told(h, task->uid)->machine);
}

/* As `fails`, by a signal. */
static void dies(struct harness *h, struct task *task, int signal, enum signature_kind kind, const char *line)
{
    struct signature signature = {kind, str_from(line)};
    struct task_report report = {.kind = REPORT_EXITED,
                                 .task = task->uid,
                                 .exit_code = -1,
                                 .signal = signal,
                                 .signatures = &signature,
                                 .signature_count = kind != SIGNATURE_NONE};
    harness_told(h, task->uid)->ended = true;
    harness_report(h, &report, harness_told(h, task->uid)->machine);
}

static struct attribution why_of(const struct restart_record *record)
{
    struct attribution found;
    attribute(&record->faults, &record->signatures, str_from(record->machine), record->fault_ns, &found);
    return found;
}

static struct attribution why(const struct jobset *jobset)
{
    return why_of(&jobset->history.records[jobset->history.record_count - 1]);
}

static void assert_cause(const struct jobset *jobset, const char *cause)
{
    struct attribution found = why(jobset);
    struct buf text BUF_CLEANUP = {0};
    attribution_cause(&found, &text);
    assert_string_equal(text.data, cause);
}

/* A victim is heard of first; the root, told to stop since, a moment later. */
static void a_cascade_is_never_the_cause(void **state)
{
    struct harness h;
    harness_init(&h, 3, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    struct task *victim = harness_task(&h, "a-x-0-0"), *root = harness_task(&h, "a-x-0-2");
    fails(&h, victim, SIGNATURE_WATCHDOG, "Watchdog caught collective operation timeout");
    assert_int_equal(jobset->history.record_count, 1);
    assert_cause(jobset, "unattributed");
    assert_int_equal(notes(&h, "RestartCause"), 0);
    fails(&h, root, SIGNATURE_TRACEBACK, "ValueError: x");
    assert_cause(jobset, "task/traceback");
    struct attribution found = why(jobset);
    assert_int_equal(found.signature->rank, 2);
    assert_int_equal(found.domain, DOMAIN_USER);
    assert_int_equal(found.signature_count, 1);
    assert_int_equal(found.signatures[0]->kind, SIGNATURE_WATCHDOG);
    assert_note(&h, true, "RestartCause", "restart 1: rank 2 on m-3: traceback: ValueError: x");
    harness_run_all(&h); /* what is told to end says nothing */
    assert_int_equal(why(jobset).signature_count, 1);
    harness_done(&h);
}

/* A rank that a watchdog aborts is a victim: its signal is no root beside its symptom, and its machine is not
 * blamed. A signal without words, or one that came from elsewhere, is. */
static void aborted_by_a_watchdog(void **state)
{
    (void)state;
    static const struct {
        int signal;
        enum signature_kind kind;
        const char *cause;
    } cases[] = {{6, SIGNATURE_WATCHDOG, "unattributed"},
                 {11, SIGNATURE_PEER, "unattributed"},
                 {6, SIGNATURE_NONE, "task/signal"},
                 {9, SIGNATURE_PEER, "task/signal"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct harness h;
        harness_init(&h, 3, 1, 0);
        struct jobset *jobset = harness_create(&h, SET);
        harness_run_all(&h);
        dies(&h, harness_task(&h, "a-x-0-1"), cases[i].signal, cases[i].kind, "said");
        assert_cause(jobset, cases[i].cause);
        assert_int_equal(jobset->history.suspect_count, 0);
        fails(&h, harness_task(&h, "a-x-0-2"), SIGNATURE_TRACEBACK, "ValueError: x");
        if (i < 2)
            assert_int_equal(why(jobset).signature->rank, 2);
        harness_done(&h);
    }
}

/* The rank whose loss was the first that was not finite is named, in whatever order ranks report; a program
 * that ends by itself after that has said why, too. */
static void numeric(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 3, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    fails(&h, harness_task(&h, "a-x-0-0"), SIGNATURE_NUMERIC, "step 8: loss is not finite");
    fails(&h, harness_task(&h, "a-x-0-2"), SIGNATURE_NUMERIC, "step 7: loss is not finite");
    assert_cause(jobset, "numeric/nan");
    assert_int_equal(why(jobset).signature->rank, 2);
    assert_int_equal(why(jobset).domain, DOMAIN_USER);
    harness_done(&h);
}

static void heavier_roots_explain_lighter_ones(void **state)
{
    struct harness h;
    harness_init(&h, 3, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    struct task *first = harness_task(&h, "a-x-0-0"), *second = harness_task(&h, "a-x-0-1");
    struct task *third = harness_task(&h, "a-x-0-2");
    fails(&h, first, SIGNATURE_TRACEBACK, "RuntimeError: x");
    fails(&h, second, SIGNATURE_TRACEBACK, "RuntimeError: y");
    assert_cause(jobset, "task/traceback");
    assert_int_equal(why(jobset).signature->tasks, 2); /* one exception, whatever its words */
    fails(&h, third, SIGNATURE_CHIP_BROKEN, "CUDA error: uncorrectable ECC error encountered");
    assert_cause(jobset, "task/traceback"); /* it had been told to stop: others ended by themselves */
    harness_done(&h);
}

/* Exit codes and signals speak when nothing else does; status 75 is that of a victim. */
static void bare_exits(void **state)
{
    struct harness h;
    harness_init(&h, 3, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    static const struct {
        int code, signal;
        bool oom;
        const char *cause;
    } cases[] = {{75, 0, false, "unattributed"},
                 {3, 0, false, "task/exit"},
                 {-1, 11, false, "task/signal"},
                 {-1, 9, true, "task/out-of-memory"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        harness_run_all(&h);
        struct task *task = harness_task(&h, "a-x-0-1");
        struct task_report report = {.kind = REPORT_EXITED,
                                     .task = task->uid,
                                     .exit_code = cases[i].code,
                                     .signal = cases[i].signal,
                                     .oom = cases[i].oom};
        harness_told(&h, task->uid)->ended = true;
        harness_report(&h, &report, task->machine);
        assert_cause(jobset, cases[i].cause);
    }
    harness_run_all(&h);
    const struct task *task = harness_task(&h, "a-x-0-1");
    harness_lose(&h, core_cluster(h.core)->machines[task->machine].name.data);
    assert_cause(jobset, "task/machine-lost");
    harness_done(&h);
}

/* `began_ns` is what the machine says of when it was. */
static void see(struct harness *h, const char *machine, const char *code, int64_t began_ns,
                const char *evidence)
{
    struct signal signal = {.code = str_from(code),
                            .evidence = str_from(evidence),
                            .assertion = SIGNAL_ONCE,
                            .severity = SEVERITY_MAJOR,
                            .chip = -1,
                            .first_ns = began_ns,
                            .last_ns = began_ns,
                            .count = 1};
    struct event event = {.kind = EVENT_REPORTS};
    event.reports.machine = str_from(machine);
    event.reports.reports = (struct reports){.number = 1, .signals = &signal, .signal_count = 1};
    harness_step(h, &event);
}

/* On the root's machine more than sub-health, elsewhere only what takes a machine out of service. */
static void faults_and_roots(void **state)
{
    static const struct {
        const char *machine, *code, *cause;
    } cases[] = {{"m-2", "cpu/thermal", "task/traceback"}, /* slow is no reason to end */
                 {"m-2", "xid/13", "xid/13"},
                 {"m-1", "xid/13", "task/traceback"},
                 {"m-1", "xid/79", "xid/79"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct harness h;
        harness_init(&h, 40, 1, 0);
        struct jobset *jobset = harness_create(&h, SET);
        harness_run_all(&h);
        assert_int_equal(harness_task(&h, "a-x-0-1")->machine, 1);
        int64_t began_ns = h.now_ns;
        harness_wait(&h, NS_PER_MS);
        fails(&h, harness_task(&h, "a-x-0-1"), SIGNATURE_TRACEBACK, "RuntimeError: CUDA error");
        see(&h, cases[i].machine, cases[i].code, began_ns, "raw line"); /* heard of late */
        struct attribution found = why(jobset);
        struct buf text BUF_CLEANUP = {0};
        attribution_cause(&found, &text);
        assert_string_equal(text.data, cases[i].cause);
        assert_int_equal(found.signature_count + found.supporting_count, 1); /* the other one supports it */
        harness_done(&h);
    }
}

/* The same faults, begun a moment after the end: the cause stays what it was, and what was seen where it
 * began is told beside it. */
static void what_came_later_is_no_cause(void **state)
{
    static const struct {
        const char *machine, *code;
        size_t later;
    } cases[] = {{"m-2", "xid/13", 1}, {"m-2", "xid/79", 1}, {"m-1", "xid/79", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct harness h;
        harness_init(&h, 40, 1, 0);
        struct jobset *jobset = harness_create(&h, SET);
        harness_run_all(&h);
        fails(&h, harness_task(&h, "a-x-0-1"), SIGNATURE_NONE, "");
        assert_cause(jobset, "task/exit");
        harness_wait(&h, NS_PER_MS);
        see(&h, cases[i].machine, cases[i].code, h.now_ns, "raw line");
        struct attribution found = why_of(&jobset->history.records[0]);
        assert_int_equal(found.later_count, cases[i].later);
        assert_null(found.primary);
        assert_int_equal(found.supporting_count, 0);
        assert_int_equal(found.domain, DOMAIN_USER);
        harness_done(&h);
    }
}

/* Restarts keep their evidence as it was: the same fault again, on the same machine and on others, is another
 * restart's. Two that were done on purpose are the user's, both. */
static void evidence_is_frozen(void **state)
{
    struct harness h;
    harness_init(&h, 40, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    see(&h, "m-2", "injected/kill", h.now_ns, "kill pod/default/a by eve");
    fails(&h, harness_task(&h, "a-x-0-1"), SIGNATURE_NONE, "");
    assert_cause(jobset, "injected/kill");
    harness_run_all(&h);
    harness_wait(&h, 6 * NS_PER_SECOND);
    const char *machine = core_cluster(h.core)->machines[harness_task(&h, "a-x-0-0")->machine].name.data;
    see(&h, machine, "injected/kill", h.now_ns, "kill machine/other");
    see(&h, "m-2", "injected/kill", h.now_ns, "kill machine/m-2");
    fails(&h, harness_task(&h, "a-x-0-0"), SIGNATURE_NONE, "");
    assert_int_equal(jobset->history.record_count, 2);
    struct attribution second = why(jobset);
    assert_string_equal(second.primary->evidence, "kill machine/other");
    assert_int_equal(second.domain, DOMAIN_USER);
    struct attribution first = why_of(&jobset->history.records[0]);
    assert_string_equal(first.primary->evidence, "kill pod/default/a by eve");
    assert_int_equal(first.domain, DOMAIN_USER);
    assert_int_equal(first.supporting_count + first.later_count, 0);
    harness_done(&h);
}

static uint64_t ends_by(const struct harness *h, enum ledger_cause cause)
{
    uint64_t count = 0;
    for (int size = 0; size < LEDGER_SIZES; size++)
        count += core_ledger(h->core)->sizes[size].ends[cause];
    return count;
}

/* The end of a JobSet keeps its evidence, too: when the fault occurs once more on the machine that the JobSet
 * had, the record is as it was. Another fault is told beside it. */
static void evidence_of_an_end_is_frozen(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 40, 1, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "", RJOB("x", 1, "", 3, "")));
    const struct end_faults *faults = &jobset->history.faults;
    harness_run_all(&h);
    see(&h, "m-2", "injected/kill", h.now_ns, "kill pod/default/a by eve");
    fails(&h, harness_task(&h, "a-x-0-1"), SIGNATURE_NONE, "");
    harness_run_all(&h); /* the others stop */
    assert_true(jobset->conditions[CONDITION_FAILED].status);
    assert_int_equal(jobset->history.record_count, 0);
    assert_int_equal(faults->count, 1);
    const struct end_fault before = faults->items[0];
    const uint64_t by_user = ends_by(&h, CAUSE_PROGRAM), by_machine = ends_by(&h, CAUSE_INFRASTRUCTURE);
    assert_string_equal(before.evidence, "kill pod/default/a by eve");
    harness_wait(&h, 6 * NS_PER_SECOND);
    see(&h, "m-2", "injected/kill", h.now_ns, "kill machine/m-2");
    assert_int_equal(faults->count, 1);
    assert_string_equal(faults->items[0].evidence, before.evidence);
    assert_true(faults->items[0].at_ns == before.at_ns && faults->items[0].last_ns == before.last_ns);
    see(&h, "m-2", "xid/79", h.now_ns, "raw line");
    assert_int_equal(faults->count, 2); /* reports about this machine do reach the JobSet */
    struct attribution end;
    attribute(faults, &jobset->history.signatures, STR(""), jobset->finished_ns, &end);
    assert_string_equal(end.primary->evidence, before.evidence);
    assert_int_equal(end.domain, DOMAIN_USER);
    assert_true(end.supporting_count == 0 && end.later_count == 1);
    assert_string_equal(end.later[0]->code, "xid/79");
    assert_true(ends_by(&h, CAUSE_PROGRAM) == by_user && ends_by(&h, CAUSE_INFRASTRUCTURE) == by_machine);
    harness_done(&h);
}

/* Ends are heard of for five minutes, and what is older than ten explains nothing. */
static void windows(void **state)
{
    struct harness h;
    harness_init(&h, 3, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    struct task *early = harness_task(&h, "a-x-0-1"), *late = harness_task(&h, "a-x-0-2");
    fails(&h, harness_task(&h, "a-x-0-0"), SIGNATURE_PEER, "Connection reset by peer");
    harness_wait(&h, 299 * NS_PER_SECOND);
    fails(&h, early, SIGNATURE_TRACEBACK, "ValueError: x");
    assert_cause(jobset, "task/traceback");
    harness_wait(&h, 2 * NS_PER_SECOND);
    fails(&h, late, SIGNATURE_CHIP_BROKEN, "GPU is lost");
    assert_int_equal(jobset->history.records[0].signatures.count, 2);
    harness_done(&h);
}

/* The ledger's count of an end follows its cause for five minutes, and not longer. */
static void the_ledger_counts_again(void **state)
{
    static const struct {
        int64_t after_s;
        uint64_t infrastructure;
    } cases[] = {{1, 1}, {299, 1}, {301, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct harness h;
        harness_init(&h, 3, 1, 0);
        harness_create(&h, SET);
        harness_run_all(&h);
        struct task *late = harness_task(&h, "a-x-0-1");
        fails(&h, harness_task(&h, "a-x-0-0"), SIGNATURE_PEER, "Connection reset by peer");
        assert_int_equal((int)ends_by(&h, CAUSE_PROGRAM), 1);
        harness_wait(&h, cases[i].after_s * NS_PER_SECOND);
        fails(&h, late, SIGNATURE_CHIP_BROKEN, "GPU is lost");
        assert_int_equal((int)ends_by(&h, CAUSE_INFRASTRUCTURE), (int)cases[i].infrastructure);
        assert_int_equal((int)ends_by(&h, CAUSE_PROGRAM), 1 - (int)cases[i].infrastructure);
        harness_check_replay(&h);
        harness_done(&h);
    }
}

/* A machine whose ranks are victims again and again is not avoided; the one where it begins is. */
static void victims_are_not_avoided(void **state)
{
    struct harness h;
    harness_init(&h, 3, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    for (int i = 0; i < 3; i++) {
        harness_run_all(&h);
        struct task *root = harness_task(&h, "a-x-0-2");
        machine_id machine = root->machine;
        fails(&h, harness_task(&h, "a-x-0-0"), SIGNATURE_PEER, "Connection reset by peer");
        assert_int_equal(jobset->history.suspect_count, 0);
        fails(&h, root, SIGNATURE_TRACEBACK, "ValueError: x");
        if (i < 2)
            continue;
        harness_run_all(&h);
        fails(&h, harness_task(&h, "a-x-0-2"), SIGNATURE_TRACEBACK, "ValueError: x");
        assert_int_equal(jobset->history.suspect_count, 1);
        assert_int_equal(jobset->history.suspects[0], machine);
    }
    harness_done(&h);
}

static struct end_signature signature_of(enum signature_kind kind, const char *machine, uint32_t rank,
                                         int64_t at_ns)
{
    struct end_signature signature = {.kind = kind, .rank = rank, .tasks = 1, .at_ns = at_ns};
    snprintf(signature.machine, sizeof signature.machine, "%s", machine);
    return signature;
}

/* The same on several machines at once is no chip's fault; the list is bounded, and keeps what is heavy. */
static void merging(void **state)
{
    struct end_signatures signatures = {0};
    struct end_signature one = signature_of(SIGNATURE_CHIP_BROKEN, "m-1", 0, 0);
    struct end_signature two = signature_of(SIGNATURE_CHIP_BROKEN, "m-2", 1, SOFTWARE_WINDOW_NS);
    end_signatures_add(&signatures, &one);
    end_signatures_add(&signatures, &two);
    assert_true(signatures.count == 1 && signatures.items[0].many && signatures.items[0].tasks == 2);
    two.at_ns++;
    signatures.items[0].many = false;
    end_signatures_add(&signatures, &two);
    assert_false(signatures.items[0].many);
    for (uint32_t i = 0; i < 100; i++) {
        struct end_signature signature = signature_of(SIGNATURE_TRACEBACK, "m-1", i, i);
        snprintf(signature.line, sizeof signature.line, "Error%u: x", i);
        end_signatures_add(&signatures, &signature);
    }
    assert_int_equal(signatures.count, END_SIGNATURES_MAX);
    assert_int_equal(end_signatures_root(&signatures)->kind, SIGNATURE_CHIP_BROKEN);
    end_signatures_forget(&signatures, INT64_MAX);
    assert_null(end_signatures_root(&signatures));
    end_signatures_done(&signatures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cascade_is_never_the_cause),
        cmocka_unit_test(aborted_by_a_watchdog),
        cmocka_unit_test(numeric),
        cmocka_unit_test(heavier_roots_explain_lighter_ones),
        cmocka_unit_test(bare_exits),
        cmocka_unit_test(faults_and_roots),
        cmocka_unit_test(what_came_later_is_no_cause),
        cmocka_unit_test(evidence_is_frozen),
        cmocka_unit_test(evidence_of_an_end_is_frozen),
        cmocka_unit_test(windows),
        cmocka_unit_test(the_ledger_counts_again),
        cmocka_unit_test(victims_are_not_avoided),
        cmocka_unit_test(merging),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
