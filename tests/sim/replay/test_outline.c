/* A log reduced to its decisions: what came from outside, and below it what was decided, without what differs
 * from run to run. */
#include <string.h>

#include "core/job/story.h"
#include "doc/json.h"
#include "sim/replay/outline.h"

/* Applies the story's records to a fresh core; the outline begins behind the first `skipped`. */
static void outline_story(const struct harness *h, size_t skipped, bool as_json, const char *about,
                          struct buf *out)
{
    struct core *core = core_new();
    struct effects effects = {0};
    struct outline *outline = NULL;
    for (size_t at = 0, seq = 1; at < h->log.len; seq++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct event event;
        uint32_t length;
        memcpy(&length, h->log.data + at, sizeof length);
        assert_int_equal(record_decode(&arena, (struct str){h->log.data + at + 12, length}, &event, NULL), 0);
        memcpy(&event.stamp_ns, h->log.data + at + 4, sizeof event.stamp_ns);
        event.seq = seq;
        if (seq > skipped && !outline)
            outline = outline_new(core);
        core_step(core, &event, &effects);
        if (outline)
            outline_event(outline, core, &event, &effects);
        at += 12 + length;
    }
    (as_json ? outline_json : outline_text)(outline, str_from(about), out);
    outline_free(outline);
    vec_done(&effects.list);
    core_free(core);
}

static void expect_outline(const struct harness *h, const char *wanted)
{
    struct buf text BUF_CLEANUP = {0};
    outline_story(h, 0, false, "", &text);
    assert_string_equal(text.data, wanted);
}

static void write_job(struct harness *h, const char *name, const char *recovery)
{
    char yaml[2048];
    snprintf(yaml, sizeof yaml,
             "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s, annotations: "
             "{phalanx.dev/recovery: \"%s\"}}\nspec: {failurePolicy: {maxRestarts: 5}, replicatedJobs: "
             "[{name: w, "
             "template: {spec: {parallelism: 2, completions: 2, backoffLimit: 0, " POD_OF(
                 "priorityClassName: high, ", "4") "}}}]}\n",
             name, recovery);
    harness_create(h, yaml);
}

/* Whichever rank ends first, and in however many messages, it is the same story. */
static void ends_in_any_order(void **state)
{
    for (int turned = 0; turned < 2; turned++) {
        struct harness h;
        harness_init(&h, 3, 4, 1);
        write_job(&h, "a", "requeue");
        harness_run_all(&h);
        harness_wait(&h, 100 * NS_PER_SECOND);
        exits(&h, turned ? "a-w-0-1" : "a-w-0-0", 0);
        harness_wait(&h, NS_PER_SECOND);
        exits(&h, turned ? "a-w-0-0" : "a-w-0-1", 0);
        expect_outline(&h,
                       "create JobSet\n"
                       "  created            JobSet default/a\n"
                       "  start              JobSet default/a: attempt 0: a-w-0-0 on m-1, a-w-0-1 on m-2\n"
                       "JobSet default/a attempt 0: a process ended\n"
                       "  AllJobsCompleted   JobSet default/a\n");
        harness_done(&h);
    }
}

/* The machine is lost, the spare takes over, and the one that waits has the room of the job that ends. */
static void a_lost_machine(void **state)
{
    struct harness h;
    struct buf text BUF_CLEANUP = {0};
    harness_init(&h, 3, 4, 1);
    write_job(&h, "a", "replace-machine,requeue");
    harness_run_all(&h);
    write_job(&h, "b", "replace-machine,requeue");
    harness_wait(&h, 20 * NS_PER_SECOND);
    harness_lose(&h, "m-2");
    harness_run_all(&h);
    harness_wait(&h, 30 * NS_PER_SECOND);
    harness_hello(&h, "m-2", NULL, 0);
    expect_outline(
        &h, "create JobSet\n"
            "  created            JobSet default/a\n"
            "  start              JobSet default/a: attempt 0: a-w-0-0 on m-1, a-w-0-1 on m-2\n"
            "create JobSet\n"
            "  created            JobSet default/b\n"
            "  FailedScheduling   JobSet default/b\n"
            "lost m-2\n"
            "  RestartCause       JobSet default/a: rank 1 on m-2: machine-lost\n"
            "  RecoveryDecided    JobSet default/a: replace-machine as attempt 1, cause MachineLost on "
            "m-2\n"
            "  stop               JobSet default/a: attempt 0: a-w-0-0 on m-1\n"
            "  start              JobSet default/a: attempt 1: a-w-0-0 on m-1, a-w-0-1 on m-3\n"
            "  MachineLost        Node m-2\n");
    outline_story(&h, 0, false, "default/b", &text);
    assert_string_equal(text.data, "create JobSet\n"
                                   "  created            JobSet default/b\n"
                                   "  FailedScheduling   JobSet default/b\n");
    harness_done(&h);
}

/* From the middle of a log on, the end of a process that ran before is the same cause. */
static void from_the_middle(void **state)
{
    struct harness h;
    struct buf text BUF_CLEANUP = {0};
    harness_init(&h, 3, 4, 1);
    write_job(&h, "a", "requeue");
    harness_run_all(&h);
    size_t begin = core_seq(h.core);
    exits(&h, "a-w-0-1", 0);
    exits(&h, "a-w-0-0", 0);
    outline_story(&h, begin, true, "", &text);
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *line;
    assert_int_equal(json_parse(&arena, buf_str(&text), &line, NULL), 0);
    assert_true(
        str_is(doc_str(doc_get(line, "cause"), STR("")), "JobSet default/a attempt 0: a process ended"));
    assert_true(str_is(doc_str(doc_get(line, "what"), STR("")), "AllJobsCompleted"));
    assert_true(str_is(doc_str(doc_get(line, "object"), STR("")), "JobSet default/a"));
    assert_int_equal(doc_int(doc_get(line, "seq"), 0), (int64_t)core_seq(h.core));
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_in_any_order),
        cmocka_unit_test(a_lost_machine),
        cmocka_unit_test(from_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
