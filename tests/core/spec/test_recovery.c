/* Where the annotations of the recovery ladder may stand, which of several counts, and how a wrong one is
 * refused. */
#include "spec_test.h"

static struct ladder_settings read_settings(struct arena *arena, struct doc *object)
{
    struct field_errors errors = {.arena = arena};
    struct jobset_spec spec;
    workload_default(arena, object);
    assert_true(workload_read(arena, object, &spec, &errors));
    workload_validate(object, &spec, &errors);
    assert_int_equal(errors.list.len, 0);
    field_errors_done(&errors);
    return spec.recovery;
}

static void assert_refused(struct arena *arena, struct doc *object, const char *path, const char *why)
{
    struct field_errors errors = {.arena = arena};
    struct jobset_spec spec;
    workload_default(arena, object);
    assert_true(workload_read(arena, object, &spec, &errors));
    workload_validate(object, &spec, &errors);
    assert_int_equal(errors.list.len, 1);
    assert_true(str_is(errors.list.items[0].path, path));
    if (!strstr(errors.list.items[0].message.data, why))
        fail_msg("\"%s\" is not in \"%s\"", why, errors.list.items[0].message.data);
    field_errors_done(&errors);
}

static void the_workload_comes_before_its_templates(void **state)
{
    struct arena arena = {0};
    struct doc *object = small(&arena);
    assert_false(read_settings(&arena, object).given);
    edit(&arena, object, "R1.template.spec.template.metadata",
         "{\"annotations\":{\"phalanx.dev/recovery\":\"retry\",\"phalanx.dev/no-progress-attempts\":\"9\"}}");
    struct ladder_settings settings = read_settings(&arena, object);
    assert_true(settings.given && settings.allowed[RUNG_RETRY] && !settings.allowed[RUNG_DUMP]);
    assert_int_equal(settings.no_progress_attempts, 9);
    edit(&arena, object, "metadata.annotations",
         "{\"phalanx.dev/recovery\":\"dump\",\"phalanx.dev/recovery-limits\":\"dump=5s\"}");
    settings = read_settings(&arena, object);
    assert_true(!settings.allowed[RUNG_RETRY] && settings.allowed[RUNG_DUMP]);
    assert_int_equal(settings.limit_ns[RUNG_DUMP], 5 * NS_PER_SECOND);
    assert_int_equal(settings.no_progress_attempts, 9); /* each word for itself */
    arena_done(&arena);
}

static void mindclusters_are_labels_and_annotations(void **state)
{
    struct arena arena = {0};
    struct doc *object = small(&arena);
    edit(&arena, object, "metadata.labels",
         "{\"fault-retry-times\":\"3\",\"process-recover-enable\":\"on\",\"pod-rescheduling\":\"maybe\"}");
    edit(&arena, object, "metadata.annotations", "{\"recover-strategy\":\"recover,dump,exit\"}");
    struct ladder_settings settings = read_settings(&arena, object);
    assert_true(settings.given && settings.allowed[RUNG_REPLACE_MACHINE] && settings.allowed[RUNG_DUMP]);
    assert_false(settings.allowed[RUNG_RESTART_PROCESS]);
    assert_int_equal(settings.causes[LOSS_EXIT].count, 3);
    edit(&arena, object, "metadata.annotations",
         "{\"recover-strategy\":\"dump\",\"phalanx.dev/recovery\":\"retry\"}"); /* ours wins */
    settings = read_settings(&arena, object);
    assert_true(settings.allowed[RUNG_RETRY] && !settings.allowed[RUNG_DUMP]);
    arena_done(&arena);
}

static void wrong_ones_are_refused_where_they_stand(void **state)
{
    struct arena arena = {0};
    struct doc *object = small(&arena);
    edit(&arena, object, "metadata.annotations", "{\"phalanx.dev/recovery\":\"reboot\"}");
    assert_refused(&arena, object, "metadata.annotations[phalanx.dev/recovery]",
                   "Invalid value: \"reboot\": \"reboot\" is not a rung");
    object = small(&arena);
    edit(&arena, object, "R0.template.spec.template.metadata",
         "{\"annotations\":{\"phalanx.dev/recovery-budgets\":\"dump=x\"}}");
    assert_refused(&arena, object,
                   "spec.replicatedJobs[0].template.spec.template.metadata."
                   "annotations[phalanx.dev/recovery-budgets]",
                   "must be COUNT/DURATION");
    arena_done(&arena);
}

static void jobs_and_pods_of_their_own_have_them_too(void **state)
{
    struct arena arena = {0};
    static const char job[] =
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, annotations: {%s}}\nspec: {"
        "template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}\n";
    static const char pod[] = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {%s}}\n"
                              "spec: {containers: [{name: c, image: i}]}\n";
    static const char *const right = "phalanx.dev/recovery: 'off'",
                             *const wrong = "phalanx.dev/no-progress-attempts: 'x'";
    const char *const forms[] = {job, pod};
    for (int i = 0; i < 2; i++) {
        char text[512];
        snprintf(text, sizeof text, forms[i], right);
        assert_true(read_settings(&arena, parse(&arena, str_from(text))).off);
        snprintf(text, sizeof text, forms[i], wrong);
        assert_refused(&arena, parse(&arena, str_from(text)),
                       "metadata.annotations[phalanx.dev/no-progress-attempts]", "a number of attempts");
    }
    arena_done(&arena);
}

static void read_spares(struct arena *arena, struct doc *object, uint32_t counts[2], bool cold[2])
{
    struct field_errors errors = {.arena = arena};
    struct jobset_spec spec;
    workload_default(arena, object);
    assert_true(workload_read(arena, object, &spec, &errors));
    for (size_t r = 0; r < spec.rjob_count && r < 2; r++) {
        counts[r] = spec.rjobs[r].spares;
        cold[r] = spec.rjobs[r].cold_spares;
    }
    field_errors_done(&errors);
}

/* `b` of the small JobSet is Indexed; so is `a`, whose one index JobSet's defaults give it. */
static void spares_of_a_workload_or_of_one_of_its_jobs(void **state)
{
    struct arena arena = {0};
    struct doc *object = small(&arena);
    uint32_t counts[2];
    bool cold[2];
    edit(&arena, object, "R1.template.metadata", "{\"annotations\":{\"phalanx.dev/spares\":\"3\"}}");
    edit(&arena, object, "R1.template.spec.template.metadata",
         "{\"annotations\":{\"phalanx.dev/spares\":\"2\",\"phalanx.dev/spare-kind\":\"cold\"}}");
    read_spares(&arena, object, counts, cold);
    assert_true(counts[0] == 0 && counts[1] == 3 && !cold[0] && cold[1]);
    edit(&arena, object, "metadata.annotations", "{\"phalanx.dev/spares\":\"1\"}");
    edit(&arena, object, "R0.template.spec.completionMode", "\"NonIndexed\"");
    read_spares(&arena, object, counts, cold);
    assert_true(counts[0] == 0 && counts[1] == 1 && cold[1]); /* without ranks there are none */
    object = small(&arena);
    edit(&arena, object, "R1.template.metadata", "{\"annotations\":{\"phalanx.dev/spares\":\"1.5\"}}");
    assert_refused(&arena, object, "spec.replicatedJobs[1].template.metadata.annotations[phalanx.dev/spares]",
                   "a number from 0 to 64");
    object = small(&arena);
    edit(&arena, object, "R1.template.spec.template.metadata",
         "{\"annotations\":{\"phalanx.dev/spare-kind\":\"\"}}");
    assert_refused(
        &arena, object,
        "spec.replicatedJobs[1].template.spec.template.metadata.annotations[phalanx.dev/spare-kind]",
        "warm or cold");
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_workload_comes_before_its_templates),
        cmocka_unit_test(spares_of_a_workload_or_of_one_of_its_jobs),
        cmocka_unit_test(mindclusters_are_labels_and_annotations),
        cmocka_unit_test(wrong_ones_are_refused_where_they_stand),
        cmocka_unit_test(jobs_and_pods_of_their_own_have_them_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
