/* Free chips that admission keeps for a JobSet are booked as reserved, and the other free chips of their
 * machines as what they are. */
#include "core/admit/queues.h"

#include "base/rng.h"
#include "core/gang/trial.h"
#include "core/step.h"

static int64_t owned(const struct harness *h, enum ledger_owner owner)
{
    return core_ledger(h->core)->chips[owner];
}

static int64_t chip_seconds(const struct harness *h, enum ledger_owner owner)
{
    return ledger_at(core_ledger(h->core), h->now_ns / NS_PER_US).chip_us[owner] / 1000000;
}

/* Two replicated jobs, one after the other, of `tasks` tasks with `chips` each. */
static void submit_in_order(struct harness *h, const char *name, int tasks, int chips)
{
    struct buf yaml = {0};
    buf_printf(&yaml,
               "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s, labels: "
               "{kueue.x-k8s.io/queue-name: lq}}\nspec:\n  startupPolicy: {startupPolicyOrder: InOrder}\n"
               "  replicatedJobs:\n",
               name);
    for (int job = 0; job < 2; job++)
        buf_printf(&yaml,
                   "  - {name: w%d, template: {spec: {parallelism: %d, completions: %d, template: {spec: "
                   "{restartPolicy: Never, containers: [{name: c, image: i, command: [run], resources: "
                   "{limits: {google.com/tpu: %d}}}]}}}}}\n",
                   job, tasks, tasks, chips);
    must_apply(h, yaml.data);
    buf_done(&yaml);
}

static void begin(struct harness *h, int machines)
{
    harness_init(h, machines, 4, 0);
    set_queues(h, machines, 4, "{\"minimumRunTime\":\"0s\"}");
    must_apply(h, FLAVOR("v5e") CLUSTER_QUEUE("cq", "100", "") LOCAL_QUEUE("lq", "cq"));
}

/* The room of the second replicated job is kept until the first one runs. */
static void kept_for_a_later_job(void **state)
{
    struct harness h;
    begin(&h, 4);
    submit_in_order(&h, "a", 1, 4);
    assert_int_equal((int)owned(&h, OWNER_RESERVED), 4);
    assert_int_equal((int)owned(&h, OWNER_IDLE), 8);
    harness_wait(&h, 5 * NS_PER_SECOND);
    assert_int_equal((int)chip_seconds(&h, OWNER_RESERVED), 20);
    harness_check_replay(&h); /* a snapshot has it */
    harness_run_all(&h);
    assert_int_equal((int)owned(&h, OWNER_RESERVED), 0);
    assert_int_equal((int)owned(&h, OWNER_IDLE), 8);
    assert_true(ledger_balanced(core_ledger(h.core)));
    harness_done(&h);
}

/* The free part of a machine is not a whole machine. */
static void part_of_a_machine(void **state)
{
    struct harness h;
    begin(&h, 1);
    submit_in_order(&h, "a", 1, 1);
    assert_int_equal((int)owned(&h, OWNER_RESERVED), 1);
    assert_int_equal((int)owned(&h, OWNER_FRAGMENTED), 2);
    harness_done(&h);
}

/* A machine that cannot be used says why, whoever it is kept for. */
static void lost_while_reserved(void **state)
{
    struct harness h;
    begin(&h, 2);
    submit_in_order(&h, "a", 1, 4);
    const struct machine *machines = core_cluster(h.core)->machines;
    const char *kept = machines[0].reserved_mask ? "m-1" : "m-2";
    harness_news(&h, EVENT_MACHINE_SILENT, kept);
    assert_int_equal((int)owned(&h, OWNER_RESERVED), 0);
    assert_int_equal((int)owned(&h, OWNER_DOWN), 4);
    harness_hello(&h, kept, NULL, 0);
    assert_int_equal((int)owned(&h, OWNER_DOWN), 0);
    core_check_invariants(h.core);
    harness_done(&h);
}

static void tick(struct harness *h)
{
    struct event event = {.kind = EVENT_TICK};
    harness_step(h, &event);
}

/* Rooms of several JobSets, in any order, on the same machines: a chip is reserved as long as one of them
 * has it (core_check_invariants compares the masks and the book with all reservations). */
static void reservations_may_overlap(void **state)
{
    struct harness h;
    begin(&h, 3);
    struct rng rng;
    struct jobset *owners[3];
    struct room kept[3][3] = {0};
    rng_seed(&rng, 5);
    for (int i = 0; i < 3; i++) {
        char yaml[400];
        snprintf(yaml, sizeof yaml,
                 "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: o%d}\nspec:\n"
                 "  suspend: true\n  replicatedJobs:\n  - {name: w, template: {spec: {template: {spec: "
                 "{restartPolicy: Never, containers: [{name: c, image: i, command: [run]}]}}}}}\n",
                 i);
        must_apply(&h, yaml);
        char name[8];
        snprintf(name, sizeof name, "o%d", i);
        owners[i] = harness_jobset(&h, name);
    }
    h.twins.off = true; /* they are not told */
    struct step step = {.cluster = (struct cluster *)core_cluster(h.core),
                        .jobs = (struct job_store *)core_jobs(h.core),
                        .now_ns = h.now_ns};
    for (int round = 0; round < 100; round++) {
        int i = (int)rng_below(&rng, 3);
        for (int m = 0; m < 3; m++)
            kept[i][m].chips = rng_below(&rng, 4) ? rng_next(&rng) & 0xf : 0;
        jobset_reserve(&step, owners[i], rng_below(&rng, 5) ? kept[i] : NULL);
        if (!owners[i]->grant.reserved_count)
            memset(kept[i], 0, sizeof kept[i]);
        tick(&h);
        core_check_invariants(h.core);
        int64_t reserved = 0;
        for (int m = 0; m < 3; m++)
            reserved += __builtin_popcountll(kept[0][m].chips | kept[1][m].chips | kept[2][m].chips);
        assert_int_equal((int)owned(&h, OWNER_RESERVED), (int)reserved);
    }
    for (int i = 0; i < 3; i++)
        jobset_reserve(&step, owners[i], NULL);
    tick(&h);
    assert_int_equal((int)owned(&h, OWNER_IDLE), 12);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_for_a_later_job),
        cmocka_unit_test(part_of_a_machine),
        cmocka_unit_test(lost_while_reserved),
        cmocka_unit_test(reservations_may_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
