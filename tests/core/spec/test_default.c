#include "doc/random_doc.h"
#include "core/spec/spec_test.h"

static void assert_json(const struct doc *doc, const char *expected)
{
    BUF_CLEANUP struct buf text = {0};
    json_write(&text, doc);
    assert_text(&text, expected);
}

static void fills_in_what_upstream_does(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct doc *doc = small(&arena);
    edit(&arena, doc, "spec.replicatedJobs.1", "null");
    edit(&arena, doc, "spec.failurePolicy", "{\"rules\":[{\"action\":\"FailJobSet\",\"name\":\"\"}]}");
    edit(&arena, doc, "spec.coordinator", "{\"replicatedJob\":\"a\"}");
    jobset_default(&arena, doc);
    assert_json(
        doc_get(doc, "spec"),
        "{\"replicatedJobs\":[{\"name\":\"a\",\"template\":{\"spec\":{\"template\":{\"spec\":{\"containers\":"
        "[{"
        "\"name\":\"c\",\"image\":\"i\"}],\"restartPolicy\":\"OnFailure\"}},\"completionMode\":\"Indexed\"}},"
        "\"groupName\":"
        "\"default\",\"replicas\":1},null],\"failurePolicy\":{\"rules\":[{\"action\":\"FailJobSet\",\"name\":"
        "\"failurePolicyRule0\"}],\"maxRestarts\":0,\"restartStrategy\":\"Recreate\"},\"coordinator\":{"
        "\"replicatedJob\":\"a\",\"jobIndex\":0,\"podIndex\":0},\"network\":{\"enableDNSHostnames\":true,"
        "\"publishNotReadyAddresses\":true},\"successPolicy\":{\"operator\":\"All\"},\"startupPolicy\":{"
        "\"startupPolicyOrder\":\"AnyOrder\"}}");
}

static void fills_in_below_pods(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct doc *doc = small(&arena);
    edit(&arena, doc, "C0",
         "{\"name\":\"c\",\"ports\":[{\"containerPort\":1}],\"readinessProbe\":{\"grpc\":{\"port\":1}},"
         "\"env\":[{\"name\":\"A\",\"valueFrom\":{\"secretKeyRef\":{\"key\":\"k\"}}}]}");
    jobset_default(&arena, doc);
    const struct doc *container =
        doc_at(doc_get(doc_path(doc_at(doc_path(doc, "spec", "replicatedJobs", NULL), 0), "template", "spec",
                                "template", "spec", NULL),
                       "containers"),
               0);
    assert_json(container,
                "{\"name\":\"c\",\"ports\":[{\"containerPort\":1,\"protocol\":\"TCP\"}],\"readinessProbe\":{"
                "\"grpc\":{\"port\":1,\"service\":\"\"}},\"env\":[{\"name\":\"A\",\"valueFrom\":{"
                "\"secretKeyRef\":{\"key\":\"k\",\"name\":\"\"}}}]}");
}

static void claims_go_with_their_jobset(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct doc *doc = small(&arena);
    edit(
        &arena, doc, "spec.volumeClaimPolicies",
        "[{\"templates\":[]},{\"templates\":[],\"retentionPolicy\":{}},{\"retentionPolicy\":{\"whenDeleted\":"
        "\"Retain\"}}]");
    jobset_default(&arena, doc);
    assert_json(doc_path(doc, "spec", "volumeClaimPolicies", NULL),
                "[{\"templates\":[],\"retentionPolicy\":{\"whenDeleted\":\"Delete\"}},{\"templates\":[],"
                "\"retentionPolicy\":{\"whenDeleted\":\"Delete\"}},{\"retentionPolicy\":{\"whenDeleted\":"
                "\"Retain\"}}]");
}

static void keeps_what_is_set(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    for (size_t i = 0; i < MANIFEST_COUNT; i++) {
        struct doc *doc = load(&arena, manifests[i]), *before = doc_clone(&arena, doc);
        jobset_default(&arena, doc);
        /* Everything written is still there: the file over the result changes nothing. */
        const struct doc *spec = doc_get(before, "spec");
        for (size_t k = 0; k < doc_len(spec); k++) {
            const struct doc_member *member = &spec->object.members[k];
            const struct doc *after = doc_get_str(doc_get(doc, "spec"), member->key);
            assert_true(member->value->kind >= DOC_ARRAY || doc_equal(member->value, after));
        }
    }
}

/* Replaces, removes or adds something at a random place. */
static void mutate(struct arena *arena, struct rng *rng, struct doc *node)
{
    size_t len = doc_len(node);
    if (len == 0)
        return;
    size_t i = rng_below(rng, len);
    struct doc **slot = node->kind == DOC_ARRAY ? &node->array.items[i] : &node->object.members[i].value;
    if (doc_len(*slot) > 0 && !rng_chance(rng, 120000)) {
        mutate(arena, rng, *slot);
    } else if (rng_chance(rng, 300000) && node->kind == DOC_OBJECT) {
        doc_unset(node, arena_strdup(arena, node->object.members[i].key));
    } else if (rng_chance(rng, 300000) && node->kind == DOC_ARRAY) {
        doc_push(arena, node, doc_clone(arena, *slot));
    } else {
        *slot = random_doc(arena, rng, 2);
    }
}

static void any_document_is_survived(void **state)
{
    struct rng rng;
    rng_seed(&rng, 7);
    int read = 0, valid = 0;
    for (int round = 0; round < 3000; round++) {
        ARENA_CLEANUP struct arena arena = {0};
        BUF_CLEANUP struct buf errors = {0};
        struct doc *doc = rng_chance(&rng, 30000) ? random_doc(&arena, &rng, 4)
                                                  : load(&arena, manifests[rng_below(&rng, MANIFEST_COUNT)]);
        for (uint64_t count = rng_below(&rng, 6); count > 0; count--)
            mutate(&arena, &rng, doc);
        struct doc *once = doc_clone(&arena, doc);
        jobset_default(&arena, once);
        struct doc *twice = doc_clone(&arena, once);
        jobset_default(&arena, twice);
        assert_true(doc_equal(once, twice));
        assert_true(spec_equal(once, twice));
        struct jobset_spec spec;
        if (check_write(&arena, doc, &spec, &errors)) {
            read++;
            valid += errors.len == 0;
        }
        struct field_errors none = {.arena = &arena};
        jobset_validate_update(once, twice, &none);
        if (none.list.len > 0)
            fail_msg("round %d: " STR_FORMAT, round, STR_ARG(none.list.items[0].path));
        field_errors_done(&none);
    }
    assert_true(read > 600 && valid > 200); /* the mutations reach both sides */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_in_what_upstream_does), cmocka_unit_test(fills_in_below_pods),
        cmocka_unit_test(claims_go_with_their_jobset), cmocka_unit_test(keeps_what_is_set),
        cmocka_unit_test(any_document_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
