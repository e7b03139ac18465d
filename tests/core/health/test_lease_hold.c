/* A hold of the leases in a whole core: what agents are granted, what a controller owes after a restart, and
 * what counts as no evidence meanwhile. Snapshots are restored after each event (twins.h). */
#include "../harness.h"

#include "core/health/lease_hold.h"

#define MINUTE (60 * NS_PER_SECOND)

static const char *const set =
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: p}\n"
    "spec:\n  failurePolicy: {maxRestarts: 3}\n  replicatedJobs:\n  - name: w\n"
    "    template: {spec: {parallelism: 2, completions: 2, backoffLimit: 0,\n"
    "      template: {spec: {restartPolicy: Never, containers: [{name: c, image: i,\n"
    "      command: [x], resources: {limits: {google.com/tpu: 4}}}]}}}}\n";

static void begin(struct harness *h)
{
    harness_init(h, 3, 4, 0);
    for (int m = 1; m <= 3; m++) {
        char name[8];
        snprintf(name, sizeof(name), "m-%d", m);
        harness_hello(h, name, NULL, 0);
    }
}

static int place_hold(struct harness *h, const char *name, const char *spec)
{
    char yaml[512];
    snprintf(yaml, sizeof(yaml),
             "apiVersion: phalanx.dev/v1\nkind: Maintenance\nmetadata: {name: %s}\nspec: {%s}\n", name, spec);
    int code = harness_write_checked(h, OBJECT_MAINTENANCE, WRITE_CREATE, name, yaml);
    core_check_invariants(h->core);
    return code;
}

static void end_hold(struct harness *h, const char *name)
{
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){
        .verb = WRITE_DELETE, .object = OBJECT_MAINTENANCE, .name = str_from(name), .grace_s = -1};
    harness_step(h, &event);
    core_check_invariants(h->core);
}

static void boot(struct harness *h)
{
    struct event event = {.kind = EVENT_BOOT};
    event.boot.epoch = core_epoch(h->core) + 1;
    event.boot.identity = 7;
    harness_step(h, &event);
    core_check_invariants(h->core);
}

static void counted_out(struct harness *h, uint64_t number)
{
    struct event event = {.kind = EVENT_HOLD_OVER, .hold_over = number};
    harness_step(h, &event);
    core_check_invariants(h->core);
}

static struct lease_grant grant(const struct harness *h)
{
    return lease_hold_grant(core_lease_hold(h->core), h->now_ns);
}

static void a_hold_is_granted_until_it_ends(void **state)
{
    struct harness h;
    begin(&h);
    assert_int_equal(grant(&h).number, 0);
    assert_int_equal(grant(&h).left_ns, 0);
    assert_int_equal(place_hold(&h, "planned", "controller: 5m"), 201);
    struct lease_grant first = grant(&h);
    assert_true(first.number > 0);
    assert_int_equal(first.left_ns, 5 * MINUTE);
    harness_wait(&h, 2 * MINUTE);
    assert_int_equal(grant(&h).number, first.number);
    assert_int_equal(grant(&h).left_ns, 3 * MINUTE);
    assert_int_equal(place_hold(&h, "longer", "controller: 10m"), 201); /* the last to end counts */
    assert_true(grant(&h).number > first.number);
    assert_int_equal(grant(&h).left_ns, 10 * MINUTE);
    end_hold(&h, "longer");
    assert_int_equal(grant(&h).left_ns, 3 * MINUTE);
    harness_wait(&h, 3 * MINUTE);
    assert_int_equal(grant(&h).left_ns, 0);
    assert_int_equal(core_lease_hold(h.core)->until_ns, 0);
    assert_int_equal(core_lease_hold(h.core)->owed_ns, 10 * MINUTE); /* until it has been counted out */
    harness_done(&h);
}

/* The promise outlives the hold and the controller; only a clock that counts ends it. */
static void what_was_granted_is_owed_by_the_next_controller(void **state)
{
    struct harness h;
    begin(&h);
    boot(&h);
    assert_int_equal(core_lease_hold(h.core)->number, 0); /* nothing was ever granted */
    assert_int_equal(place_hold(&h, "planned", "controller: 5m"), 201);
    uint64_t placed = core_lease_hold(h.core)->number;
    harness_wait(&h, MINUTE);
    boot(&h);
    uint64_t booted = core_lease_hold(h.core)->number;
    assert_true(booted > placed);
    assert_int_equal(grant(&h).left_ns, 4 * MINUTE);
    assert_int_equal(core_lease_hold(h.core)->owed_ns, 5 * MINUTE);
    counted_out(&h, booted); /* while it is in force nothing is over */
    assert_int_equal(core_lease_hold(h.core)->owed_ns, 5 * MINUTE);
    end_hold(&h, "planned");
    uint64_t ended = core_lease_hold(h.core)->number;
    assert_true(ended > booted);
    assert_int_equal(core_lease_hold(h.core)->owed_ns, 5 * MINUTE);
    h.now_ns += 24 * 60 * MINUTE; /* a wall clock proves nothing */
    boot(&h);
    assert_int_equal(core_lease_hold(h.core)->owed_ns, 5 * MINUTE);
    counted_out(&h, ended); /* of a controller before */
    assert_int_equal(core_lease_hold(h.core)->owed_ns, 5 * MINUTE);
    counted_out(&h, core_lease_hold(h.core)->number);
    assert_int_equal(core_lease_hold(h.core)->owed_ns, 0);
    boot(&h);
    assert_int_equal(core_lease_hold(h.core)->owed_ns, 0);
    harness_done(&h);
}

static void peers_prove_nothing_while_tasks_are_held(void **state)
{
    struct harness h;
    begin(&h);
    struct jobset *jobset = harness_create(&h, set);
    harness_run_all(&h);
    assert_int_equal(place_hold(&h, "planned", "controller: 5m"), 201);
    const struct task *task = harness_task(&h, "p-w-0-0"), *gone = harness_task(&h, "p-w-0-1");
    const char *machine = core_cluster(h.core)->machines[gone->machine].name.data;
    struct task_report report = {.kind = REPORT_PEER_GONE, .task = task->uid, .peer_rank = 1};
    harness_news(&h, EVENT_MACHINE_AWAY, machine);
    harness_report(&h, &report, task->machine);
    assert_int_equal(jobset->restarts, 0);
    harness_wait(&h, 5 * MINUTE); /* the hold is over, but what was granted may still run */
    harness_report(&h, &report, task->machine);
    assert_int_equal(jobset->restarts, 0);
    harness_lose(&h, machine); /* closed tethers prove it as ever */
    assert_int_equal(jobset->restarts, 1);
    harness_done(&h);
}

/* A restart of the controller under a hold: agents come back later than the lease, and their tasks run. */
static void a_planned_restart_costs_no_restart(void **state)
{
    struct harness h;
    begin(&h);
    struct jobset *jobset = harness_create(&h, set);
    harness_run_all(&h);
    assert_int_equal(place_hold(&h, "planned", "controller: 5m"), 201);
    harness_wait(&h, 2 * MINUTE);
    boot(&h);
    for (int rank = 0; rank < 2; rank++) {
        char host[16];
        snprintf(host, sizeof(host), "p-w-0-%d", rank);
        const struct task *task = harness_task(&h, host);
        struct task_report report = {.kind = REPORT_STARTED, .task = task->uid};
        harness_hello(&h, core_cluster(h.core)->machines[task->machine].name.data, &report, 1);
    }
    harness_wait(&h, 10 * MINUTE);
    assert_int_equal(jobset->restarts, 0);
    assert_int_equal(harness_task(&h, "p-w-0-1")->state, TASK_RUNNING);
    harness_done(&h);
}

static void bad_holds_are_refused(void **state)
{
    static const char *const bad[] = {
        "controller: 31m",
        "controller: 0s",
        "controller: soon",
        "controller: 5m, machines: [m-1]",
        "controller: 5m, selector: {matchLabels: {a: b}}",
        "controller: 5m, start: \"2026-01-01T00:00:00Z\"",
        "controller: 5m, action: reboot",
        "controller: 5m, qualify: true",
    };
    struct harness h;
    begin(&h);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(place_hold(&h, "x", bad[i]), 422);
    assert_int_equal(place_hold(&h, "x", "controller: 31m"), 422);
    assert_non_null(strstr(h.last_message, "at most 30m"));
    assert_int_equal(place_hold(&h, "x", "machines: [m-1]"), 422); /* a window of machines has its times */
    assert_int_equal(place_hold(&h, "x", "controller: 30m"), 201);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hold_is_granted_until_it_ends),
        cmocka_unit_test(what_was_granted_is_owed_by_the_next_controller),
        cmocka_unit_test(peers_prove_nothing_while_tasks_are_held),
        cmocka_unit_test(a_planned_restart_costs_no_restart),
        cmocka_unit_test(bad_holds_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
