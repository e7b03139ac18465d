/* Events from outside are taken out of a log, and each decision is told with its reason. */
#include <string.h>

#include "core/job/story.h"
#include "sim/replay/decisions.h"
#include "sim/replay/extract.h"

/* Applies the story's records from the beginning; the extraction sees those behind the first `skipped`. */
static void extract_story(const struct harness *h, size_t skipped, struct history *ret_history)
{
    struct core *core = core_new();
    struct effects effects = {0};
    struct extract *extract = skipped ? NULL : extract_new(core);
    for (size_t at = 0, seq = 1; at < h->log.len; seq++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct event event;
        uint32_t length;
        memcpy(&length, h->log.data + at, sizeof length);
        assert_int_equal(record_decode(&arena, (struct str){h->log.data + at + 12, length}, &event, NULL), 0);
        memcpy(&event.stamp_ns, h->log.data + at + 4, sizeof event.stamp_ns);
        event.seq = seq;
        core_step(core, &event, &effects);
        if (extract)
            extract_event(extract, core, &event, &effects);
        else if (seq == skipped)
            extract = extract_new(core);
        at += 12 + length;
    }
    extract_end(extract, core, ret_history);
    vec_done(&effects.list);
    core_free(core);
}

static void expect_lines(const struct history *history, const char *const *lines)
{
    struct buf text BUF_CLEANUP = {0};
    history_write(history, &text);
    for (size_t i = 0; lines[i]; i++)
        if (!strstr(text.data, lines[i]))
            fail_msg("\"%s\" is not in:\n%s", lines[i], text.data);
}

static void write_job(struct harness *h, const char *name)
{
    char yaml[2048];
    snprintf(yaml, sizeof yaml,
             "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s, annotations: "
             "{phalanx.dev/recovery: requeue}}\nspec: {failurePolicy: {maxRestarts: 5}, replicatedJobs: "
             "[{name: w, "
             "template: {spec: {parallelism: 2, completions: 2, backoffLimit: 0, " POD_OF(
                 "priorityClassName: high, ", "4") "}}}]}\n",
             name);
    harness_create(h, yaml);
}

/* Two ranks run for 100 s, one dies by itself, the next attempt runs for 50 s. */
static void a_crash_of_its_own(void **state)
{
    struct harness h;
    struct history history;
    harness_init(&h, 3, 4, 1);
    harness_wait(&h, 10 * NS_PER_SECOND);
    write_job(&h, "a");
    harness_run_all(&h);
    harness_wait(&h, 100 * NS_PER_SECOND);
    exits(&h, "a-w-0-1", 1);
    harness_run_all(&h);
    harness_wait_backoff(&h);
    harness_run_all(&h);
    harness_wait(&h, 50 * NS_PER_SECOND);
    exits(&h, "a-w-0-0", 0);
    exits(&h, "a-w-0-1", 0);
    extract_story(&h, 0, &history);
    assert_int_equal(history.jobs.len, 1);
    assert_int_equal(history.machines.len, 3);
    const struct history_job *job = &history.jobs.items[0];
    assert_true(job->submit_us == 10000000 && job->ranks == 2 && job->chips == 4);
    assert_true(job->end == HISTORY_COMPLETED && job->keeps && job->save_us < 0);
    assert_int_equal(job->crash_count, 1);
    assert_int_equal(job->crashes_us[0], 100000000);
    assert_true(job->is_seen && job->seen.restarts == 1 && job->run_us >= 150000000);
    expect_lines(&history, (const char *const[]){"machine m-3 chips=4 rack=", " spare=1\n",
                                                 " priority=1000 recovery=requeue ",
                                                 "job 10 default/a ranks=2 chips=4 run=", NULL});
    history_done(&history);
    /* From the middle of the log on, the job is one that was there at the beginning. */
    extract_story(&h, 8, &history);
    assert_int_equal(history.jobs.len, 1);
    assert_true(history.jobs.items[0].submit_us == 0 && history.jobs.items[0].end == HISTORY_COMPLETED);
    assert_int_equal(history.jobs.items[0].crash_count, 1);
    history_done(&history);
    harness_done(&h);
}

/* A machine's loss is an outage until its Hello, and no crash, though a peer dies of it before or after. */
static void a_lost_machine(void **state)
{
    struct harness h;
    struct history history;
    harness_init(&h, 3, 4, 1);
    write_job(&h, "a");
    harness_run_all(&h);
    harness_wait(&h, 20 * NS_PER_SECOND);
    exits(&h, "a-w-0-1", 1); /* of the connection that broke */
    harness_wait(&h, 2 * NS_PER_SECOND);
    harness_lose(&h, "m-1");
    harness_wait(&h, 30 * NS_PER_SECOND);
    harness_hello(&h, "m-1", NULL, 0);
    harness_wait(&h, 5 * NS_PER_SECOND);
    extract_story(&h, 0, &history);
    assert_int_equal(history.jobs.items[0].crash_count, 0);
    assert_int_equal(history.jobs.items[0].end, HISTORY_RUNNING);
    expect_lines(&history, (const char *const[]){"\ndown 22 m-1 until=52\n", "end 52\n", NULL});
    history_done(&history);
    harness_done(&h);
}

static void report_signal(struct harness *h, const char *machine, enum signal_assertion assertion)
{
    struct signal signal = {.code = STR("xid/79"),
                            .evidence = STR("test"),
                            .assertion = assertion,
                            .severity = SEVERITY_CRITICAL,
                            .chip = -1,
                            .first_ns = h->now_ns,
                            .last_ns = h->now_ns,
                            .count = 1};
    struct event event = {.kind = EVENT_REPORTS};
    event.reports.machine = str_from(machine);
    event.reports.reports = (struct reports){.signals = &signal, .signal_count = 1};
    harness_step(h, &event);
}

/* The process died of the fault, which is reported seconds later. */
static void a_fault_that_kills(void **state)
{
    struct harness h;
    struct history history;
    harness_init(&h, 3, 4, 1);
    write_job(&h, "a");
    harness_run_all(&h);
    harness_wait(&h, 20 * NS_PER_SECOND);
    struct task *struck = harness_task(&h, "a-w-0-0");
    struct str machine = core_cluster(h.core)->machines[struck->machine].name;
    exits(&h, "a-w-0-0", 1);
    harness_wait(&h, 3 * NS_PER_SECOND);
    report_signal(&h, machine.data, SIGNAL_OCCUR);
    report_signal(&h, "m-3", SIGNAL_OCCUR);
    harness_wait(&h, 7 * NS_PER_SECOND);
    extract_story(&h, 0, &history);
    assert_int_equal(history.jobs.items[0].crash_count, 0);
    expect_lines(&history, (const char *const[]){"\nfault 23 m-1 until=- code=xid/79 kills=1\n",
                                                 "\nfault 23 m-3 until=- code=xid/79\n", NULL});
    history_done(&history);
    harness_done(&h);
}

/* The controller was away; a job fails for good, and one is deleted. */
static void gaps_and_ends(void **state)
{
    struct harness h;
    struct history history;
    harness_init(&h, 5, 4, 1);
    harness_create(&h, JOBSET("wrong", "", RJOB("w", 1, "", 1, "")));
    harness_run_all(&h);
    harness_wait(&h, 5 * NS_PER_SECOND);
    exits(&h, "wrong-w-0-0", 3);
    h.now_ns += 60 * NS_PER_SECOND;
    struct event boot = {.kind = EVENT_BOOT};
    boot.boot.epoch = 2;
    boot.boot.version = STR("test");
    harness_step(&h, &boot);
    for (size_t i = 0; i < core_cluster(h.core)->machine_count; i++)
        harness_hello(&h, core_cluster(h.core)->machines[i].name.data, NULL, 0);
    write_job(&h, "unwanted");
    harness_run_all(&h);
    harness_wait(&h, 4 * NS_PER_SECOND);
    harness_write(&h, WRITE_DELETE, "unwanted", NULL);
    extract_story(&h, 0, &history);
    assert_int_equal(history.jobs.len, 2);
    assert_true(history.jobs.items[0].end == HISTORY_FAILED && history.jobs.items[0].crash_count == 0);
    assert_true(history.jobs.items[0].run_us == 5000000);
    assert_true(history.jobs.items[1].end == HISTORY_CANCELLED && history.jobs.items[1].run_us == 4000000);
    expect_lines(&history, (const char *const[]){"\ngap 5 until=65\n", NULL});
    history_done(&history);
    harness_done(&h);
}

struct told_decisions {
    struct decisions decisions;
    struct buf text;
};

static void tell_decisions(struct harness *h, const struct event *event)
{
    struct told_decisions *told = h->context;
    decisions_of(&told->decisions, h->core, &h->effects);
    for (size_t i = 0; i < told->decisions.list.len; i++) {
        const struct decision *decision = &told->decisions.list.items[i];
        buf_printf(&told->text, "%s|" STR_FORMAT "|" STR_FORMAT "|%u|" STR_FORMAT "\n",
                   decision_kind_names[decision->kind], STR_ARG(decision->what), STR_ARG(decision->subject),
                   decision->count, STR_ARG(decision->reason));
    }
}

static void decisions_with_reasons(void **state)
{
    static const char *const wanted[] = {
        "start|start|JobSet default/a|2|attempt 0, a-w-0-0",
        "note|MachineLost|Node m-1|1|test\n",
        "stop|stop|JobSet default/a|1|attempt 0, a-w-0-1",
        "note|RestartCause|JobSet default/a|1|restart 1: rank 0",
        "note|Scheduled|Pod default/a-w-0-0",
    };
    struct harness h;
    struct told_decisions told = {0};
    harness_init(&h, 3, 4, 1);
    h.after = tell_decisions;
    h.context = &told;
    write_job(&h, "a");
    harness_run_all(&h);
    harness_wait(&h, 20 * NS_PER_SECOND);
    harness_lose(&h, "m-1");
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!strstr(told.text.data, wanted[i]))
            fail_msg("\"%s\" is not in:\n%s", wanted[i], told.text.data);
    decisions_done(&told.decisions);
    buf_done(&told.text);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crash_of_its_own),     cmocka_unit_test(a_lost_machine),
        cmocka_unit_test(a_fault_that_kills),     cmocka_unit_test(gaps_and_ends),
        cmocka_unit_test(decisions_with_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
