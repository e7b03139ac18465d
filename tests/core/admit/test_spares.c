/* Spares that a queue gives: each Job that is admitted through it and says nothing itself has as many. */
#include "queues.h"

#define QUEUES(of_cluster_queue, of_local_queue)                                                             \
    FLAVOR("v5e")                                                                                            \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: cq, annotations: "             \
    "{" of_cluster_queue "}}\nspec:\n  namespaceSelector: {}\n  resourceGroups:\n"                           \
    "  - coveredResources: [google.com/tpu]\n    flavors:\n    - name: v5e\n"                                \
    "      resources: [{name: google.com/tpu, nominalQuota: 16}]\n---\n" LOCAL(of_local_queue)
#define LOCAL(annotations)                                                                                   \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: lq, namespace: default, "        \
    "annotations: {" annotations "}}\nspec: {clusterQueue: cq}\n"
#define OWN(text) "  annotations: {" text "}\n"

static void expect(struct harness *h, const char *name, uint32_t wanted, bool cold)
{
    struct jobset *jobset = harness_jobset(h, name);
    assert_state(h, name, "admitted");
    harness_run_all(h);
    const struct job *job = jobset->jobs[0];
    struct spare_counts counts = jobset_spares(jobset, core_cluster(h->core));
    assert_int_equal(counts.wanted, wanted);
    assert_int_equal(job->spares.len, wanted);
    for (size_t s = 0; s < job->spares.len; s++)
        assert_int_equal(job->spares.items[s]->state, cold ? TASK_PLACED : TASK_RUNNING);
}

static void whose_word_counts(void **state)
{
    static const struct {
        const char *queues, *own;
        uint32_t wanted;
        bool cold;
    } cases[] = {
        {QUEUES("", ""), "", 0, false},
        {QUEUES("", "phalanx.dev/spares: '1'"), "", 1, false},
        {QUEUES("phalanx.dev/spares: '2', phalanx.dev/spare-kind: cold", ""), "", 2, true},
        {QUEUES("phalanx.dev/spares: '2'", "phalanx.dev/spares: '1', phalanx.dev/spare-kind: cold"), "", 1,
         true},
        {QUEUES("phalanx.dev/spares: '2'", "phalanx.dev/spares: '0'"), "", 0, false},
        {QUEUES("", "phalanx.dev/spares: '1'"), OWN("phalanx.dev/spares: '0'"), 0, false},
        {QUEUES("", "phalanx.dev/spares: '1'"), OWN("phalanx.dev/spares: '3'"), 3, false},
        {QUEUES("", "phalanx.dev/spares: '2'"), OWN("phalanx.dev/spare-kind: cold"), 2, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct harness h;
        harness_init(&h, 6, 4, 0);
        must_apply(&h, cases[i].queues);
        submit(&h, "a", "lq", 2, 4, cases[i].own);
        expect(&h, "a", cases[i].wanted, cases[i].cold);
        harness_check_replay(&h);
        harness_done(&h);
    }
}

/* As the queue was when it was admitted; the next one goes by its new word. */
static void a_queue_changes_its_word(void **state)
{
    struct harness h;
    harness_init(&h, 6, 4, 0);
    must_apply(&h, QUEUES("", "phalanx.dev/spares: '1'"));
    submit(&h, "a", "lq", 1, 4, "");
    expect(&h, "a", 1, false);
    must_apply(&h, LOCAL("phalanx.dev/spares: '0'"));
    submit(&h, "b", "lq", 1, 4, "");
    expect(&h, "a", 1, false);
    expect(&h, "b", 0, false);
    harness_check_replay(&h);
    harness_done(&h);
}

static void wrong_words_are_refused(void **state)
{
    struct harness h;
    harness_init(&h, 6, 4, 0);
    assert_int_equal(apply(&h, LOCAL("phalanx.dev/spares: '65'")), 422);
    assert_non_null(strstr(h.last_message, "metadata.annotations[phalanx.dev/spares]"));
    assert_int_equal(apply(&h, LOCAL("phalanx.dev/spare-kind: hot")), 422);
    assert_non_null(strstr(h.last_message, "must be warm or cold"));
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whose_word_counts),
        cmocka_unit_test(a_queue_changes_its_word),
        cmocka_unit_test(wrong_words_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
