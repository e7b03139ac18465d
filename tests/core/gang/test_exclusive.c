/* Exclusive topology: each Job has a domain of its own. */
#include "core/job/story.h"

static void racks(struct harness *h, int racks, int machines)
{
    *h = (struct harness){.core = core_new(), .now_ns = NS_PER_SECOND};
    struct buf json = {0};
    buf_printf(
        &json,
        "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"t\"},\"spec\":{"
        "\"machineNames\":\"m-{n}\",\"addresses\":\"127.0.1.1\",\"pods\":[{\"racks\":[");
    for (int i = 0; i < racks; i++)
        buf_printf(&json, "%s{\"machines\":%d,\"chips\":4}", i ? "," : "", machines);
    buf_printf(&json, "]}]}}");
    struct event cluster = {.kind = EVENT_CLUSTER};
    cluster.cluster.document = buf_str(&json);
    harness_step(h, &cluster);
    buf_done(&json);
    assert_int_equal((int)core_cluster(h->core)->machine_count, racks * machines);
    for (int i = 0; i < racks * machines; i++)
        harness_hello(h, core_cluster(h->core)->machines[i].name.data, NULL, 0);
}

#define SET(name, replicas)                                                                                  \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: " name ", annotations: "           \
    "{alpha.jobset.sigs.k8s.io/exclusive-topology: phalanx.dev/rack}}\nspec: {failurePolicy: {maxRestarts: " \
    "3}, "                                                                                                   \
    "replicatedJobs: [{name: x, replicas: " #replicas ", template: {spec: {parallelism: 2, completions: 2, " \
    "backoffLimit: 0, " POD_OF("", "2") "}}}]}\n"

static uint32_t rack_of(struct harness *h, const char *hostname)
{
    const struct task *task = harness_task(h, hostname);
    assert_non_null(task);
    return task->machine == MACHINE_NONE ? UINT32_MAX : core_cluster(h->core)->machines[task->machine].block;
}

static void one_rack_each(void **state)
{
    struct harness h;
    racks(&h, 3, 2);
    harness_create(&h, SET("a", 2));
    harness_run_all(&h);
    assert_int_equal((int)rack_of(&h, "a-x-0-0"), (int)rack_of(&h, "a-x-0-1"));
    assert_int_equal((int)rack_of(&h, "a-x-1-0"), (int)rack_of(&h, "a-x-1-1"));
    assert_true(rack_of(&h, "a-x-0-0") != rack_of(&h, "a-x-1-0"));
    harness_create(&h, JOBSET("plain", "", RJOB("x", 1, "", 1, ""))); /* it stays out of their racks */
    assert_true(rack_of(&h, "plain-x-0-0") != rack_of(&h, "a-x-0-0"));
    assert_true(rack_of(&h, "plain-x-0-0") != rack_of(&h, "a-x-1-0"));
    struct jobset *b =
        harness_create(&h, SET("b", 1)); /* and its rack is not free for another exclusive one */
    assert_int_equal((int)rack_of(&h, "b-x-0-0"), (int)UINT32_MAX);
    assert_true(b->gangs.items[0]->why.len > 0);
    harness_run_all(&h);
    exits(&h, "a-x-0-0", 0);
    exits(&h, "a-x-0-1", 0);
    assert_true(rack_of(&h, "b-x-0-0") != UINT32_MAX);
    harness_done(&h);
}

/* A restart stays in its rack, although its old tasks are still ending there. */
static void restart_in_place(void **state)
{
    struct harness h;
    racks(&h, 2, 2);
    harness_create(&h, SET("a", 2));
    harness_run_all(&h);
    exits(&h, "a-x-1-1", 1);
    assert_true(rack_of(&h, "a-x-0-0") != UINT32_MAX);
    assert_true(rack_of(&h, "a-x-0-0") != rack_of(&h, "a-x-1-0"));
    harness_run_all(&h);
    for (int job = 0; job < 2; job++)
        for (int i = 0; i < 2; i++) {
            char name[16];
            snprintf(name, sizeof(name), "a-x-%d-%d", job, i);
            exits(&h, name, 0);
        }
    assert_int_equal(harness_jobset(&h, "a")->terminal_state, TERMINAL_COMPLETED);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rack_each),
        cmocka_unit_test(restart_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
