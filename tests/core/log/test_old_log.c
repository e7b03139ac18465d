/* A log that an older version wrote replays under this one, to the end of the story that it tells: a training
 * JobSet that saves checkpoints, loses a machine, goes on with the spare and completes, and a second one that
 * is deleted.
 *
 *     core_test_old_log --regenerate FILE     writes the story as this version's log; for a new version only:
 *                                             the old files stay and must replay for ever
 */
#include "core/harness.h"

static const char *const golden = "tests/core/golden/log-0.1.0.bin";

static const char train[] =
    "apiVersion: jobset.x-k8s.io/v1alpha2\n"
    "kind: JobSet\n"
    "metadata: {name: train}\n"
    "spec:\n"
    "  failurePolicy: {maxRestarts: 3}\n"
    "  replicatedJobs:\n"
    "  - name: w\n"
    "    template: {spec: {parallelism: 2, completions: 2, backoffLimit: 0, template: {spec: {\n"
    "      restartPolicy: Never, containers: [{name: c, image: i, command: [train],\n"
    "      resources: {limits: {google.com/tpu: 4}}}]}}}}\n";
static const char other[] =
    "apiVersion: jobset.x-k8s.io/v1alpha2\n"
    "kind: JobSet\n"
    "metadata: {name: other}\n"
    "spec: {suspend: true, replicatedJobs: [{name: w, template: {spec: {parallelism: 1,\n"
    "  completions: 1, template: {spec: {containers: [{name: c, image: i, command: [x]}]}}}}}]}\n";

static void save_shards(struct harness *h, int64_t step)
{
    for (int rank = 0; rank < 2; rank++) {
        const struct task *task = harness_task(h, rank ? "train-w-0-1" : "train-w-0-0");
        struct task_report joined = {.kind = REPORT_JOINED, .task = task->uid};
        struct task_report saved = {.kind = REPORT_SHARD_SAVED, .task = task->uid, .step = step};
        harness_report(h, &joined, task->machine);
        harness_report(h, &saved, task->machine);
    }
}

static void tell_story(struct harness *h)
{
    harness_init(h, 3, 4, 1);
    struct jobset *jobset = harness_create(h, train);
    harness_create(h, other);
    harness_run_all(h);
    struct event progress = {.kind = EVENT_PROGRESS};
    progress.progress =
        (struct progress_event){.jobset = jobset->uid, .step = 12, .total = 40, .metric_count = 1};
    progress.progress.metrics[0] = (struct step_metric){STR("loss"), 1250000};
    harness_step(h, &progress);
    harness_wait(h, NS_PER_SECOND);
    save_shards(h, 10);
    const struct task *lost = harness_task(h, "train-w-0-1");
    harness_lose(h, core_cluster(h->core)->machines[lost->machine].name.data);
    harness_run_all(h);
    harness_wait(h, NS_PER_SECOND);
    harness_exit(h, harness_task(h, "train-w-0-0"), 0);
    harness_exit(h, harness_task(h, "train-w-0-1"), 0);
    harness_write(h, WRITE_DELETE, "other", NULL);
    harness_run_all(h);
}

static void check_end(const struct core *core)
{
    const struct jobset *jobset = jobs_find(core_jobs(core), STR("default"), STR("train"));
    assert_non_null(jobset);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    assert_int_equal(jobset->restarts, 1);
    assert_string_equal(jobset->history.records[0].cause, "MachineLost");
    assert_int_equal((int)jobset->checkpoint.committed_step, 10);
    assert_null(jobs_find(core_jobs(core), STR("default"), STR("other")));
    core_check_invariants(core);
}

static void the_story_as_it_is_told_now(void **state)
{
    struct harness h;
    tell_story(&h);
    check_end(h.core);
    harness_done(&h);
}

static void an_old_log_replays(void **state)
{
    FILE *file = fopen(golden, "re");
    if (!file)
        fail_msg("%s is missing", golden);
    struct core *core = core_new();
    struct effects effects = {0};
    struct {
        uint32_t length;
        char stamp[8];
    } head;
    size_t records = 0;
    while (fread(&head, sizeof(head), 1, file) == 1) {
        struct arena arena = {0};
        struct error error = {0};
        struct event event;
        char *bytes = arena_alloc(&arena, head.length);
        assert_int_equal(fread(bytes, 1, head.length, file), head.length);
        if (record_decode(&arena, (struct str){bytes, head.length}, &event, &error) < 0)
            fail_msg("record %zu: %s", records + 1, error.text);
        memcpy(&event.stamp_ns, head.stamp, sizeof(event.stamp_ns));
        event.seq = ++records;
        core_step(core, &event, &effects);
        arena_done(&arena);
    }
    fclose(file);
    assert_true(records > 15);
    check_end(core);
    vec_done(&effects.list);
    core_free(core);
}

static int regenerate(const char *path)
{
    struct harness h;
    tell_story(&h);
    FILE *file = fopen(path, "we");
    bool written = file && fwrite(h.log.data, 1, h.log.len, file) == h.log.len;
    if (file)
        written &= fclose(file) == 0;
    harness_done(&h);
    return written ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--regenerate") == 0)
        return regenerate(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_story_as_it_is_told_now),
        cmocka_unit_test(an_old_log_replays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
