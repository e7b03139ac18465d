/* Pod Security levels are judged again when Pods are made: a label may have become stricter since. */
#include "core/job/story.h"

#define SPACE(label)   "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {" label "}}\n"
#define ENFORCE(level) "pod-security.kubernetes.io/enforce: " level
#define OPEN_POD       OPEN_PODS(2)
#define OPEN_PODS(count)                                                                                     \
    "{name: w, replicas: 1, template: {spec: {parallelism: " #count ", completions: " #count                 \
    ", backoffLimit: 6, "                                                                                    \
    "template: {spec: {restartPolicy: Never, hostNetwork: true, containers: [{name: main, image: none, "     \
    "command: [run], resources: {limits: {google.com/tpu: 1}}}]}}}}}"

static void label(struct harness *h, const char *space)
{
    int code = harness_write_checked(h, OBJECT_NAMESPACE, WRITE_REPLACE, "default", space);
    if (code != 200)
        fail_msg("the label: %d %s", code, h->last_message);
}

static bool is_barred(const struct task *task)
{
    static const char words[] =
        "violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)";
    struct str why = task->gang ? task->gang->why : STR("");
    return task->state == TASK_PENDING && memmem(why.data, why.len, words, sizeof words - 1);
}

static void a_stricter_label_bars_the_pods_made_later(void **state)
{
    struct harness h;
    (void)state;
    harness_init(&h, 3, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 3}, ", OPEN_POD));
    harness_run_all(&h);
    assert_true(jobset_is_running(jobset));
    label(&h, SPACE(ENFORCE("baseline")));
    harness_run_all(&h);
    assert_true(jobset_is_running(jobset)); /* what runs goes on */
    assert_int_equal(notes(&h, "FailedCreate"), 0);
    exits(&h, "a-w-0-0", 3); /* its Job tries again */
    harness_wait(&h, 60 * NS_PER_SECOND);
    harness_run_all(&h);
    struct task *again = harness_task(&h, "a-w-0-0");
    assert_true(is_barred(again));
    assert_int_equal(harness_task(&h, "a-w-0-1")->state, TASK_RUNNING);
    assert_int_equal(notes(&h, "FailedCreate"), 1);
    assert_true(str_starts(last_note(&h, "FailedCreate")->message, STR("Error creating: pods \"")));
    int64_t idle = idle_chips(&h);
    struct jobset *other =
        harness_create(&h, JOBSET("b", "", RJOB("w", 1, "", 2, ""))); /* waits for nobody */
    harness_run_all(&h);
    assert_true(jobset_is_running(other));
    assert_true(idle_chips(&h) < idle);
    harness_check_replay(&h);
    label(&h, SPACE(ENFORCE("privileged")));
    harness_run_all(&h);
    assert_int_equal(again->state, TASK_RUNNING);
    harness_check_replay(&h);
    harness_done(&h);
}

static void a_label_counts_from_the_first_pod_on(void **state)
{
    struct harness h;
    (void)state;
    harness_init(&h, 3, 4, 0);
    label(&h, SPACE(ENFORCE("baseline")));
    harness_create(&h, JOBSET("a", "", OPEN_POD)); /* as if it had been accepted before */
    harness_run_all(&h);
    assert_true(is_barred(harness_task(&h, "a-w-0-0")));
    assert_int_equal(notes(&h, "FailedCreate"), 1);
    label(&h, SPACE(""));
    harness_run_all(&h);
    assert_int_equal(harness_task(&h, "a-w-0-0")->state, TASK_RUNNING);
    harness_done(&h);
}

/* A gang whose reason was put off is barred before it was looked at again: the new reason is its reason, and
 * nothing is left to be looked at. */
static void a_bar_takes_the_place_of_a_reason_that_is_due(void **state)
{
    struct harness h;
    (void)state;
    harness_init(&h, 12, 4, 0);
    harness_create(&h, JOBSET("first", "", RJOB("w", 1, "", 1, "")));
    const struct jobset *jobset = harness_create(&h, JOBSET("a", "", OPEN_PODS(48)));
    const struct gang *gang = jobset->gangs.items[0];
    for (char name[] = "other-a"; name[6] < 'm' && !gang->why_due; name[6]++) { /* each takes a chip */
        char yaml[512];
        snprintf(yaml, sizeof yaml, JOBSET("%s", "", RJOB("w", 1, "", 1, "")), name);
        harness_create(&h, yaml);
    }
    assert_true(gang->why_due);
    h.now_ns += NS_PER_SECOND; /* the write comes before the tick */
    label(&h, SPACE(ENFORCE("baseline")));
    assert_true(is_barred(harness_task(&h, "a-w-0-0")));
    core_check_invariants(h.core);
    assert_false(gang->why_due);
    harness_check_replay(&h);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stricter_label_bars_the_pods_made_later),
        cmocka_unit_test(a_label_counts_from_the_first_pod_on),
        cmocka_unit_test(a_bar_takes_the_place_of_a_reason_that_is_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
