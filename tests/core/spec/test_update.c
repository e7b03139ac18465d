#include "core/spec/spec_test.h"

/* `edits` on top of `base` edits of the small JobSet; the errors as text. */
static void assert_update(const char *base, const char *edits, const char *expected)
{
    ARENA_CLEANUP struct arena arena = {0};
    BUF_CLEANUP struct buf text = {0};
    struct field_errors errors = {.arena = &arena};
    struct doc *old = small(&arena), *changed;
    edit_all(&arena, old, base);
    changed = doc_clone(&arena, old);
    edit_all(&arena, changed, edits);
    jobset_default(&arena, old);
    jobset_default(&arena, changed);
    jobset_validate_update(old, changed, &errors);
    for (size_t i = 0; i < errors.list.len; i++)
        errors.list.items[i].line = 0;
    field_errors_print(&errors, &text);
    field_errors_done(&errors);
    if (strcmp(text.data ? text.data : "", expected) != 0)
        fail_msg("%s:\n%snot\n%s", edits, text.data ? text.data : "", expected);
}

#define R0 "spec.replicatedJobs[0]"
#define J0 R0 ".template.spec"
#define P0 J0 ".template.spec"

static void what_may_change(void **state)
{
    static const char *const free_edits[] = {
        "metadata.labels={\"a\":\"b\"} ; metadata.annotations={\"c\":\"d\"}",
        "spec.suspend=true",
        "spec.ttlSecondsAfterFinished=5",
        "spec.coordinator={\"replicatedJob\":\"b\"}",
        "spec.network={} ; spec.successPolicy={\"operator\":\"All\"} ; R0.replicas=1",
        "R0.groupName=\"default\" ; J0.completionMode=\"Indexed\" ; R0.dependsOn=[]",
        "C0.resources=null",
    };
    for (size_t i = 0; i < sizeof free_edits / sizeof free_edits[0]; i++)
        assert_update("", free_edits[i], "");
}

static void what_may_not(void **state)
{
    static const struct {
        const char *edits, *errors;
    } rows[] = {
        {"R0.replicas=2", R0 ".replicas: Invalid value: 2: field is immutable\n"},
        {"R0.name=\"x\"", R0 ".name: Invalid value: \"x\": field is immutable\n"},
        {"C0.image=\"new\"", P0 ".containers[0].image: Invalid value: \"new\": field is immutable\n"},
        {"C0.resources={\"limits\":{\"cpu\":1}}",
         P0 ".containers[0].resources: Invalid value: \"object\": field is immutable\n"},
        {"spec.replicatedJobs=[]", "spec.replicatedJobs: Invalid value: \"array\": field is immutable\n"},
        {"spec.managedBy=\"a.b/c\"", "spec.managedBy: Invalid value: \"a.b/c\": field is immutable\n"},
        {"spec.network={\"subdomain\":\"s\"}",
         "spec.network.subdomain: Invalid value: \"s\": field is immutable\n"},
        {"spec.network={\"enableDNSHostnames\":false}",
         "spec.network.enableDNSHostnames: Invalid value: false: field is immutable\n"},
        {"spec.failurePolicy={}", "spec.failurePolicy: Invalid value: \"object\": field is immutable\n"},
        {"spec.successPolicy={\"operator\":\"Any\"}",
         "spec.successPolicy.operator: Invalid value: \"Any\": field is immutable\n"},
        {"P0.nodeSelector={\"a\":\"b\"}",
         P0 ".nodeSelector: Invalid value: \"object\": field is immutable\n"},
        {"R0.template.metadata={\"labels\":{\"a\":\"b\"}}",
         R0 ".template.metadata.labels: Invalid value: \"object\": field is immutable\n"},
        {"J0.template.metadata={\"labels\":{\"a\":\"b\"}}",
         R0 ".template.spec.template.metadata.labels: Invalid value: \"object\": field is immutable\n"},
        {"R1.dependsOn=[{\"name\":\"a\",\"status\":\"Ready\"}]",
         "spec.replicatedJobs[1].dependsOn: Invalid value: \"array\": field is immutable\n"},
        {"R0.groupName=\"g\"", R0 ".groupName: Invalid value: \"g\": field is immutable\n"},
        {"spec.startupPolicy={\"startupPolicyOrder\":\"InOrder\"}",
         "spec.startupPolicy.startupPolicyOrder: Invalid value: \"InOrder\": field is immutable\n"},
        {"spec.volumeClaimPolicies=[{\"templates\":[{\"metadata\":{\"name\":\"v\"}}]}]",
         "spec.volumeClaimPolicies: Invalid value: \"array\": field is immutable\n"},
        {"J0.parallelism=2 ; J0.completions=2",
         J0 ".parallelism: Invalid value: 2: field is immutable\n" J0
            ".completions: Invalid value: 2: field is immutable\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_update("", rows[i].edits, rows[i].errors);
}

static void what_suspension_unlocks(void **state)
{
    static const char masked[] =
        "P0.nodeSelector={\"a\":\"b\"} ; P0.tolerations=[{\"operator\":\"Exists\"}] ; "
        "P0.schedulingGates=[{\"name\":\"x\"}] ; "
        "J0.template.metadata={\"labels\":{\"a\":\"b\"},\"annotations\":{}} ; "
        "C0.resources={\"limits\":{\"cpu\":1},\"requests\":{\"memory\":1}}";
    char resumed[sizeof masked + 64], suspended[sizeof masked + 64];
    snprintf(resumed, sizeof resumed, "%s ; spec.suspend=false", masked);
    snprintf(suspended, sizeof suspended, "%s ; spec.suspend=true", masked);
    assert_update("spec.suspend=true", masked, "");
    assert_update("spec.suspend=true", resumed, "");
    assert_update("spec.suspend=false", suspended, "");
    assert_update("spec.suspend=true", "C0.image=\"x\" ; P0.nodeSelector={\"a\":\"b\"}",
                  P0 ".containers[0].image: Invalid value: \"x\": field is immutable\n");
    assert_update("spec.suspend=true", "C0.resources={\"claims\":[{\"name\":\"c\"}]}",
                  P0 ".containers[0].resources.claims: Invalid value: \"array\": field is immutable\n");
    assert_update("spec.suspend=true", "R0.template.metadata={\"labels\":{\"a\":\"b\"}}",
                  R0 ".template.metadata.labels: Invalid value: \"object\": field is immutable\n");
    assert_update("spec.suspend=true", "R0.replicas=3",
                  R0 ".replicas: Invalid value: 3: field is immutable\n");
}

/* kubectl apply of an unchanged file sends its lists whole, without the defaults that the object has. */
static void applying_again_is_nothing(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    for (size_t i = 0; i < MANIFEST_COUNT; i++) {
        struct field_errors errors = {.arena = &arena};
        struct doc *stored = load(&arena, manifests[i]);
        jobset_default(&arena, stored);
        struct doc *merged = doc_clone(&arena, stored), *file = load(&arena, manifests[i]);
        struct doc *spec = doc_get(merged, "spec"), *sent = doc_get(file, "spec");
        for (size_t k = 0; k < doc_len(sent); k++) {
            struct doc_member *member = &sent->object.members[k];
            if (member->value->kind != DOC_OBJECT)
                doc_set(&arena, spec, member->key, member->value);
        }
        assert_false(doc_equal(stored, merged)); /* the trap */
        jobset_default(&arena, merged);
        jobset_validate_update(stored, merged, &errors);
        assert_int_equal(errors.list.len, 0);
        assert_true(spec_equal(stored, merged) && spec_equal(merged, stored));
        field_errors_done(&errors);
    }
}

static void sameness(void **state)
{
    static const struct {
        const char *a, *b;
        bool equal;
    } rows[] = {
        {"C0.resources={\"limits\":{\"cpu\":1}}", "C0.resources={\"limits\":{\"cpu\":\"1000m\"}}", true},
        {"C0.resources={\"limits\":{\"cpu\":1}}", "C0.resources={\"limits\":{\"cpu\":\"1001m\"}}", false},
        {"C0.resources={\"limits\":{\"memory\":\"1Gi\"}}",
         "C0.resources={\"limits\":{\"memory\":\"1024Mi\"}}", true},
        {"C0.args=[]", "C0.args=null", true},
        {"C0.args=[\"a\",\"b\"]", "C0.args=[\"b\",\"a\"]", false},
        {"metadata.labels={}", "spec.suspend=null", true},
        {"P0.volumes=[{\"name\":\"v\",\"emptyDir\":{}}]", "P0.volumes=[{\"name\":\"v\"}]", false},
        {"spec.suspend=false", "spec.suspend=null", false},
        {"spec.x=1", "spec.x=2", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ARENA_CLEANUP struct arena arena = {0};
        struct doc *a = small(&arena), *b = small(&arena);
        edit_all(&arena, a, rows[i].a);
        edit_all(&arena, b, rows[i].b);
        if (spec_equal(a, b) != rows[i].equal || spec_equal(b, a) != rows[i].equal)
            fail_msg("%s and %s", rows[i].a, rows[i].b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_change),
        cmocka_unit_test(what_may_not),
        cmocka_unit_test(what_suspension_unlocks),
        cmocka_unit_test(applying_again_is_nothing),
        cmocka_unit_test(sameness),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
