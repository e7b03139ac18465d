/* Jobs and Pods of their own: what is filled in, what is refused and in which words, what may change. */
#include "spec_test.h"

static struct doc *parse_own(struct arena *arena, const char *yaml)
{
    struct doc_list docs = {0};
    struct error error = {0};
    if (yaml_parse_all(arena, str_from(yaml), &docs, &error) < 0)
        fail_msg("%s", error.text);
    struct doc *object = docs.items[0];
    workload_default(arena, object);
    return object;
}

static void assert_errors(const char *yaml, const char *wanted)
{
    struct arena arena = {0};
    struct field_errors errors = {.arena = &arena};
    struct jobset_spec spec;
    struct doc *object = parse_own(&arena, yaml);
    if (workload_read(&arena, object, &spec, &errors))
        workload_validate(object, &spec, &errors);
    struct buf text = {0};
    for (size_t i = 0; i < errors.list.len; i++)
        buf_printf(&text, STR_FORMAT ": " STR_FORMAT "\n", STR_ARG(errors.list.items[i].path),
                   STR_ARG(errors.list.items[i].message));
    assert_string_equal(text.data ? text.data : "", wanted);
    buf_done(&text);
    field_errors_done(&errors);
    arena_done(&arena);
}

static void assert_change(const char *old, const char *changed, bool started, const char *wanted)
{
    struct arena arena = {0};
    struct field_errors errors = {.arena = &arena};
    workload_validate_update(parse_own(&arena, old), parse_own(&arena, changed), started, &errors);
    struct buf text = {0};
    for (size_t i = 0; i < errors.list.len; i++)
        buf_printf(&text, STR_FORMAT " ", STR_ARG(errors.list.items[i].path));
    assert_string_equal(text.data ? text.data : "", wanted);
    buf_done(&text);
    field_errors_done(&errors);
    arena_done(&arena);
}

#define JOB(fields, pod)                                                                                     \
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {" fields "template: {metadata: {labels: "  \
    "{app: x}}, spec: {" pod "containers: [{name: c, image: i, command: [x]}]}}}\n"
#define NEVER "restartPolicy: Never, "

static void jobs_are_refused_in_kubernetes_words(void **state)
{
    assert_errors(JOB("", NEVER), "");
    assert_errors(
        JOB("", ""),
        "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"\n");
    assert_errors(JOB("parallelism: -1, ", NEVER),
                  "spec.parallelism: Invalid value: -1: must be greater than or equal to 0\n");
    assert_errors(JOB("completionMode: Indexed, parallelism: 2, ", NEVER),
                  "spec.completions: Required value: when completion mode is Indexed\n");
    assert_errors(JOB("completions: 70000, ", NEVER),
                  "spec.completions: Invalid value: 70000: must be at most 65536\n");
    assert_errors(JOB("manualSelector: true, ", NEVER),
                  "spec.manualSelector: Forbidden: a Job's selector is generated\n");
    assert_errors(JOB("successPolicy: {rules: [{succeededCount: 1}]}, ", NEVER),
                  "spec.successPolicy: Invalid value: \"object\": requires indexed completion mode\n");
    assert_errors(JOB("completionMode: Indexed, completions: 3, successPolicy: {rules: [{}]}, ", NEVER),
                  "spec.successPolicy.rules[0]: Required value: at least one of succeededCount or "
                  "succeededIndexes must be specified\n");
    assert_errors(
        JOB("completionMode: Indexed, completions: 3, successPolicy: {rules: [{succeededIndexes: '2-1'}]}, ",
            NEVER),
        "spec.successPolicy.rules[0].succeededIndexes: Invalid value: \"2-1\": must be ascending numbers and "
        "intervals such as \"1,3-5,7\"\n");
    assert_errors(
        JOB("completionMode: Indexed, completions: 3, successPolicy: {rules: [{succeededIndexes: '0-3'}]}, ",
            NEVER),
        "spec.successPolicy.rules[0].succeededIndexes: Invalid value: \"0-3\": too large index: must be less "
        "than completions\n");
    assert_errors(JOB("managedBy: me, ", NEVER),
                  "spec.managedBy: Invalid value: \"me\": must be a domain-prefixed "
                  "path (such as \"acme.io/foo\")\n");
}

static void defaults_of_a_job(void **state)
{
    struct arena arena = {0};
    struct doc *job = parse_own(&arena, JOB("", NEVER)), *spec = doc_get(job, "spec");
    assert_int_equal(doc_int(doc_get(spec, "parallelism"), -1), 1);
    assert_int_equal(doc_int(doc_get(spec, "completions"), -1), 1);
    assert_int_equal(doc_int(doc_get(spec, "backoffLimit"), -1), 6);
    assert_true(str_is(doc_str(doc_get(spec, "completionMode"), STR("")), "NonIndexed"));
    assert_true(str_is(doc_str(doc_path(job, "metadata", "labels", "app", NULL), STR("")), "x"));
    const struct doc *queue = doc_get(parse_own(&arena, JOB("parallelism: 3, ", NEVER)), "spec");
    assert_null(doc_get(queue, "completions"));
    assert_true(str_is(doc_str(doc_get(spec, "podReplacementPolicy"), STR("")), "TerminatingOrFailed"));
    const struct doc *grace = doc_path(spec, "template", "spec", "terminationGracePeriodSeconds", NULL);
    assert_int_equal(doc_int(grace, -1), 30);
    struct doc *ruled = parse_own(
        &arena, JOB("completionMode: Indexed, completions: 2, backoffLimitPerIndex: 1, podFailurePolicy: "
                    "{rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}, ",
                    NEVER));
    assert_int_equal(doc_int(doc_path(ruled, "spec", "backoffLimit", NULL), -1), 2147483647);
    assert_true(str_is(doc_str(doc_path(ruled, "spec", "podReplacementPolicy", NULL), STR("")), "Failed"));
    struct doc *again = doc_clone(&arena, job);
    workload_default(&arena, again);
    assert_true(doc_equal(job, again));
    arena_done(&arena);
}

#define POD(meta, spec) "apiVersion: v1\nkind: Pod\nmetadata: {" meta "}\nspec: {" spec "}\n"
#define ONE             "containers: [{name: c, image: i, command: [x]}]"

static void pods_are_refused_in_kubernetes_words(void **state)
{
    assert_errors(POD("name: p", ONE), "");
    assert_errors(POD("labels: {a: b}", ONE),
                  "metadata.name: Required value: name or generateName is required\n");
    assert_errors(POD("name: p", "containers: [{name: c, command: [x]}]"),
                  "spec.containers[0].image: Required value\n");
    assert_errors(POD("name: p", "containers: []"), "spec.containers: Required value\n");
    assert_errors(POD("name: p", ONE ", restartPolicy: Sometimes"),
                  "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", "
                  "\"OnFailure\", \"Never\"\n");
    assert_errors(
        POD("name: p", "containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}]}]"),
        "spec.containers[0].volumeMounts[0].name: Not found: \"v\"\n");
}

static void what_may_change(void **state)
{
    assert_change(JOB("", NEVER), JOB("parallelism: 4, suspend: true, ", NEVER), true, "spec.completions ");
    assert_change(JOB("completions: 4, ", NEVER),
                  JOB("completions: 4, parallelism: 4, suspend: true, ", NEVER), true, "");
    assert_change(JOB("", NEVER), JOB("completionMode: Indexed, ", NEVER), true, "spec.completionMode ");
    assert_change(JOB("", NEVER), JOB("", NEVER "hostname: h, "), true, "spec.template ");
    assert_change(JOB("suspend: true, ", NEVER), JOB("suspend: true, ", NEVER "nodeSelector: {a: b}, "),
                  false, "");
    assert_change(JOB("suspend: true, ", NEVER), JOB("suspend: true, ", NEVER "nodeSelector: {a: b}, "), true,
                  "spec.template ");
    assert_change(POD("name: p", ONE), POD("name: p, labels: {a: b}", ONE), false, "");
    assert_change(POD("name: p", ONE), POD("name: p", "containers: [{name: c, image: j, command: [x]}]"),
                  false, "");
    assert_change(POD("name: p", ONE), POD("name: p", "containers: [{name: c, image: i, command: [y]}]"),
                  false, "spec ");
    assert_change(POD("name: p", ONE), POD("name: p", ONE ", activeDeadlineSeconds: 5"), false, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_are_refused_in_kubernetes_words),
        cmocka_unit_test(defaults_of_a_job),
        cmocka_unit_test(pods_are_refused_in_kubernetes_words),
        cmocka_unit_test(what_may_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
