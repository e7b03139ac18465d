/* Repairs in a whole core: what hooks, tests and people make of machines; maintenance; random lives whose
 * invariants, replays and twins hold. */
#include "core/job/story.h"

#include "base/rng.h"
#include "core/repair/repair.h"

#define MINUTE (60 * NS_PER_SECOND)
#define SHORT                                                                                                \
    "\"repair\":{\"hooks\":[{\"action\":\"reset-gpu\",\"retries\":1,\"backoff\":\"10s\",\"timeout\":"        \
    "\"60s\"},"                                                                                              \
    "{\"action\":\"reboot\",\"retries\":0,\"timeout\":\"300s\"},"                                            \
    "{\"action\":\"power-cycle\",\"retries\":0,\"machine\":\"m-2\",\"timeout\":\"300s\"}],"                  \
    "\"watch\":\"1h\",\"history\":20},\"qualification\":{\"tests\":[\"cpu\"],\"timeout\":\"60s\"},"

static void say(struct harness *h, const char *machine, const char *code, const char *place,
                enum signal_assertion assertion)
{
    struct signal signal = {.code = str_from(code),
                            .place = str_from(place),
                            .evidence = STR("raw line"),
                            .assertion = assertion,
                            .severity = SEVERITY_MAJOR,
                            .chip = -1,
                            .first_ns = 1,
                            .last_ns = 1,
                            .count = 1};
    struct event event = {.kind = EVENT_REPORTS};
    event.reports.machine = str_from(machine);
    event.reports.reports.signals = &signal;
    event.reports.reports.signal_count = 1;
    harness_step(h, &event);
    core_check_invariants(h->core);
}

static const struct machine *machine_of(struct harness *h, const char *name)
{
    return cluster_find(core_cluster(h->core), str_from(name));
}

static void assert_isolation(struct harness *h, const char *machine, enum isolation isolation)
{
    core_check_invariants(h->core);
    assert_string_equal(isolation_lifecycle.names[machine_of(h, machine)->isolation],
                        isolation_lifecycle.names[isolation]);
}

static const struct repair *open_of(struct harness *h, const char *machine)
{
    return repair_of_machine(core_repairs(h->core), str_from(machine));
}

static const struct repair *newest(struct harness *h)
{
    const struct repairs *repairs = core_repairs(h->core);
    assert_true(repairs_count(repairs) > 0);
    return repairs_at(repairs, repairs_count(repairs) - 1);
}

static const struct object *object_of(struct harness *h, const struct repair *repair)
{
    const struct object *object = object_find_uid(core_objects(h->core), repair->uid);
    assert_non_null(object);
    return object;
}

static void assert_status(struct harness *h, const struct repair *repair, const char *key, const char *text)
{
    struct str is = doc_str(doc_path(object_of(h, repair)->document, "status", key, NULL), STR(""));
    assert_int_equal(is.len, strlen(text));
    assert_memory_equal(is.data, text, is.len);
}

/* The hook or test that the machine runs now ends. */
static void ends(struct harness *h, const char *machine, enum errand_kind kind, enum errand_outcome outcome)
{
    struct told_errand *errand = harness_errand(h, kind, machine_of(h, machine)->id);
    if (!errand)
        fail_msg("%s runs none of kind %d", machine, (int)kind);
    harness_errand_end(h, errand, outcome, "it said so");
    core_check_invariants(h->core);
}

static bool runs_hook(struct harness *h, const char *machine, const char *hook)
{
    const struct told_errand *errand = harness_errand(h, ERRAND_HOOK, machine_of(h, machine)->id);
    char text[64];
    snprintf(text, sizeof(text), "\"hook\":\"%s\"", hook);
    return errand && strstr(errand->body.data, text);
}

static bool said_again(const struct harness *h)
{
    for (size_t i = 0; i < h->effects.list.len; i++)
        if (h->effects.list.items[i].kind == EFFECT_SAY_AGAIN)
            return true;
    return false;
}

static int write_it(struct harness *h, enum object_kind kind, enum write_verb verb, const char *name,
                    const char *yaml)
{
    return harness_write_checked(h, kind, verb, name, yaml);
}

/* Machines of four chips, and a breaker that holds nothing back. */
static void begin_with(struct harness *h, int machines, const char *policy)
{
    harness_init_with(h, machines, 4, 0, policy);
    assert_int_equal(write_it(h, OBJECT_FAULT_TABLE, WRITE_CREATE, "default",
                              "apiVersion: phalanx.dev/v1\nkind: FaultTable\nmetadata: {name: default}\n"
                              "spec: {breaker: {perHour: 100, total: 100}}\n"),
                     201);
}

static void begin(struct harness *h, int machines)
{
    begin_with(h, machines, SHORT);
}

/* --- hooks ---------------------------------------------------------------------------------------------- */

static void a_hook_and_a_test_bring_it_back(void **state)
{
    struct harness h;
    begin(&h, 4);
    say(&h, "m-1", "xid/95", "gpu/0000:9b:00.0", SIGNAL_ONCE);
    assert_isolation(&h, "m-1", ISOLATION_RESETTING);
    assert_true(runs_hook(&h, "m-1", "reset-gpu"));
    const struct repair *repair = open_of(&h, "m-1");
    assert_status(&h, repair, "state", "Resetting");
    ends(&h, "m-1", ERRAND_HOOK, ERRAND_OK);
    assert_true(said_again(&h)); /* before the test, so that its answer is there first */
    assert_isolation(&h, "m-1", ISOLATION_QUALIFYING);
    assert_null(fault_of_machine(core_health(h.core), STR("m-1")));
    const struct told_errand *test = harness_errand(&h, ERRAND_QUALIFY, machine_of(&h, "m-1")->id);
    assert_non_null(test);
    assert_non_null(strstr(test->body.data, "{\"tests\":[\"cpu\"]"));
    ends(&h, "m-1", ERRAND_QUALIFY, ERRAND_OK);
    assert_isolation(&h, "m-1", ISOLATION_RETURNED);
    assert_null(open_of(&h, "m-1"));
    assert_true(machine_schedulable(machine_of(&h, "m-1")));
    assert_status(&h, newest(&h), "state", "Closed");
    assert_int_equal(doc_len(doc_path(object_of(&h, newest(&h))->document, "status", "attempts", NULL)), 2);
    assert_int_equal(notes(&h, "MachineReturned"), 3); /* of the machine's state; of Node and Repair */
    harness_wait(&h, 60 * MINUTE);
    assert_isolation(&h, "m-1", ISOLATION_HEALTHY);
    harness_done(&h);
}

static void a_busy_machine_is_repaired_when_it_is_idle(void **state)
{
    struct harness h;
    begin(&h, 2);
    harness_create(&h, JOBSET("a", "", RJOB("w", 1, "", 1, "")));
    harness_run_all(&h);
    say(&h, "m-1", "gpu/row-remap-pending", "gpu/0000:9b:00.0", SIGNAL_OCCUR);
    assert_isolation(&h, "m-1", ISOLATION_DRAINING);
    assert_null(open_of(&h, "m-1"));
    exits(&h, "a-w-0-0", 0);
    assert_isolation(&h, "m-1", ISOLATION_RESETTING);
    assert_true(runs_hook(&h, "m-1", "reset-gpu"));
    harness_done(&h);
}

static void a_failed_hook_is_tried_again_then_the_next_harder_one(void **state)
{
    struct harness h;
    begin(&h, 4);
    say(&h, "m-1", "xid/95", "gpu/0000:9b:00.0", SIGNAL_ONCE);
    ends(&h, "m-1", ERRAND_HOOK, ERRAND_FAILED);
    assert_int_equal(open_of(&h, "m-1")->state, REPAIR_PAUSED);
    assert_null(harness_errand(&h, ERRAND_HOOK, 0));
    harness_wait(&h, 10 * NS_PER_SECOND);
    assert_true(runs_hook(&h, "m-1", "reset-gpu"));
    ends(&h, "m-1", ERRAND_HOOK, ERRAND_TIMED_OUT);
    assert_true(runs_hook(&h, "m-1", "reboot"));
    /* A reboot's success is that the machine comes back. */
    harness_lose(&h, "m-1");
    core_check_invariants(h.core);
    assert_int_equal(open_of(&h, "m-1")->state, REPAIR_RETURNING);
    harness_hello(&h, "m-1", NULL, 0);
    assert_null(harness_errand(&h, ERRAND_HOOK, 0)); /* it is not rebooted again for its Hello */
    assert_isolation(&h, "m-1", ISOLATION_QUALIFYING);
    ends(&h, "m-1", ERRAND_QUALIFY, ERRAND_FAILED);
    /* The next one runs elsewhere: a machine that is down cannot do it itself. */
    assert_true(runs_hook(&h, "m-2", "power-cycle"));
    assert_isolation(&h, "m-2", ISOLATION_HEALTHY);
    ends(&h, "m-2", ERRAND_HOOK, ERRAND_FAILED);
    assert_isolation(&h, "m-1", ISOLATION_TICKETED);
    assert_int_equal(repairs_totals(core_repairs(h.core))->tickets, 1);
    assert_int_equal(notes(&h, "RepairTicket"), 2); /* of Node and Repair */
    harness_done(&h);
}

static void what_stands_after_the_test_is_a_fault_again(void **state)
{
    struct harness h;
    begin(&h, 4);
    say(&h, "m-1", "xid/95", "gpu/0000:9b:00.0", SIGNAL_OCCUR);
    ends(&h, "m-1", ERRAND_HOOK, ERRAND_OK);
    say(&h, "m-1", "xid/95", "gpu/0000:9b:00.0", SIGNAL_OCCUR);
    assert_isolation(&h, "m-1", ISOLATION_QUALIFYING);
    ends(&h, "m-1", ERRAND_QUALIFY, ERRAND_OK);
    assert_true(runs_hook(&h, "m-1", "reboot"));
    harness_done(&h);
}

static void a_third_reboot_for_one_code_is_an_inspection(void **state)
{
    struct harness h;
    begin(&h, 4);
    for (int i = 0; i < 2; i++) {
        say(&h, "m-1", "xid/79", "gpu/0000:9b:00.0", SIGNAL_ONCE);
        assert_true(runs_hook(&h, "m-1", "reboot"));
        ends(&h, "m-1", ERRAND_HOOK, ERRAND_OK);
        assert_isolation(&h, "m-1", ISOLATION_RESETTING); /* until it is back */
        harness_lose(&h, "m-1");
        harness_hello(&h, "m-1", NULL, 0);
        ends(&h, "m-1", ERRAND_QUALIFY, ERRAND_OK);
        assert_isolation(&h, "m-1", ISOLATION_RETURNED);
        harness_wait(&h, 30 * MINUTE);
    }
    say(&h, "m-1", "xid/79", "gpu/0000:9b:00.0", SIGNAL_ONCE);
    assert_isolation(&h, "m-1", ISOLATION_TICKETED);
    assert_null(harness_errand(&h, ERRAND_HOOK, 0));
    say(&h, "m-2", "xid/79", "gpu/0000:9b:00.0", SIGNAL_ONCE); /* another machine's history is its own */
    assert_true(runs_hook(&h, "m-2", "reboot"));
    harness_done(&h);
}

static void a_machine_that_does_not_come_back_has_a_ticket(void **state)
{
    struct harness h;
    begin(&h, 3);
    say(&h, "m-1", "xid/79", "gpu/0000:9b:00.0", SIGNAL_ONCE);
    harness_lose(&h, "m-1");
    assert_int_equal(open_of(&h, "m-1")->state, REPAIR_RETURNING);
    harness_wait(&h, 6 * MINUTE);
    assert_isolation(&h, "m-1", ISOLATION_RESETTING);
    ends(&h, "m-2", ERRAND_HOOK, ERRAND_OK); /* its power is cycled from elsewhere */
    harness_wait(&h, 6 * MINUTE);
    assert_isolation(&h, "m-1", ISOLATION_TICKETED);
    harness_done(&h);
}

/* --- tickets -------------------------------------------------------------------------------------------- */

static void nothing_strands_a_machine_silently(void **state)
{
    static const char *const codes[] = {"gpu/row-remap-failed", "disk/raid", "edac/ue"};
    struct harness h;
    begin(&h, 40);
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
        char machine[8];
        snprintf(machine, sizeof(machine), "m-%zu", i + 1);
        say(&h, machine, codes[i], "", SIGNAL_OCCUR);
        assert_isolation(&h, machine, ISOLATION_TICKETED);
        assert_int_equal(repairs_totals(core_repairs(h.core))->tickets, i + 1);
        assert_status(&h, open_of(&h, machine), "state", "Ticketed");
        say(&h, machine, codes[i], "", SIGNAL_RECOVER); /* nobody has touched it: no test is needed */
        assert_isolation(&h, machine, ISOLATION_HEALTHY);
        assert_null(open_of(&h, machine));
    }
    harness_done(&h);
}

/* A code that no table knows drains a machine; a person is asked before anything more happens to it. */
static void an_unknown_code_is_a_question(void **state)
{
    struct harness h;
    begin(&h, 4);
    say(&h, "m-1", "xid/142", "gpu/0000:9b:00.0", SIGNAL_ONCE);
    assert_isolation(&h, "m-1", ISOLATION_DRAINING);
    const struct repair *repair = open_of(&h, "m-1");
    assert_status(&h, repair, "state", "Ticketed");
    assert_non_null(strstr(repair->history[repair->history_count - 1].why.data, "no row for xid/142"));
    assert_int_equal(notes(&h, "RepairTicket"), 2); /* of Node and Repair */
    /* The code was harmless. */
    assert_int_equal(delete_object(&h, OBJECT_FAULT, fault_of_machine(core_health(h.core), STR("m-1"))->name),
                     200);
    assert_isolation(&h, "m-1", ISOLATION_HEALTHY);
    /* The code was not harmless: the asked action clears it. */
    say(&h, "m-1", "xid/142", "gpu/0000:9b:00.0", SIGNAL_ONCE);
    char name[NAME_MAX_BYTES + 1], ask[512];
    snprintf(name, sizeof(name), STR_FORMAT, STR_ARG(object_of(&h, open_of(&h, "m-1"))->name));
    snprintf(ask, sizeof(ask),
             "apiVersion: phalanx.dev/v1\nkind: Repair\nmetadata: {name: %s}\n"
             "spec: {machine: m-1, action: reset-gpu}\n",
             name);
    assert_int_equal(write_it(&h, OBJECT_REPAIR, WRITE_REPLACE, name, ask), 200);
    assert_isolation(&h, "m-1", ISOLATION_RESETTING);
    ends(&h, "m-1", ERRAND_HOOK, ERRAND_OK);
    ends(&h, "m-1", ERRAND_QUALIFY, ERRAND_OK);
    assert_isolation(&h, "m-1", ISOLATION_RETURNED);
    /* A fault that is known overtakes the question. */
    say(&h, "m-2", "xid/142", "gpu/0000:9b:00.0", SIGNAL_ONCE);
    assert_isolation(&h, "m-2", ISOLATION_DRAINING);
    say(&h, "m-2", "xid/95", "gpu/0000:9b:00.0", SIGNAL_ONCE);
    assert_isolation(&h, "m-2", ISOLATION_TICKETED);
    harness_done(&h);
}

static void a_hook_that_is_not_there_is_a_ticket_at_once(void **state)
{
    struct harness h;
    begin(&h, 4);
    say(&h, "m-1", "xid/95", "gpu/0000:9b:00.0", SIGNAL_ONCE);
    struct told_errand *errand = harness_errand(&h, ERRAND_HOOK, 0);
    struct errand_end end = {errand->errand, ERRAND_FAILED, -1, STR("no such hook")};
    struct event event = {.kind = EVENT_REPORTS};
    errand->over = true;
    event.reports.machine = STR("m-1");
    event.reports.reports = (struct reports){.number = 1, .errands = &end, .errand_count = 1};
    harness_step(&h, &event);
    assert_isolation(&h, "m-1", ISOLATION_TICKETED);
    assert_int_equal(open_of(&h, "m-1")->attempts[0].outcome, REPAIR_MISSING);
    assert_int_equal(delete_object(&h, OBJECT_FAULT, fault_of_machine(core_health(h.core), STR("m-1"))->name),
                     200);
    assert_isolation(&h, "m-1", ISOLATION_HEALTHY);
    harness_done(&h);
}

static void a_person_closes_a_ticket(void **state)
{
    struct harness h;
    begin(&h, 4);
    say(&h, "m-1", "gpu/row-remap-failed", "gpu/0000:9b:00.0", SIGNAL_OCCUR);
    char name[NAME_MAX_BYTES + 1];
    snprintf(name, sizeof(name), STR_FORMAT, STR_ARG(object_of(&h, open_of(&h, "m-1"))->name));
    char done[512];
    snprintf(done, sizeof(done),
             "apiVersion: phalanx.dev/v1\nkind: Repair\nmetadata: {name: %s}\n"
             "spec: {machine: m-1, done: true}\n",
             name);
    assert_int_equal(write_it(&h, OBJECT_REPAIR, WRITE_REPLACE, name, done), 200);
    assert_isolation(&h, "m-1", ISOLATION_QUALIFYING);
    ends(&h, "m-1", ERRAND_QUALIFY, ERRAND_FAILED);
    assert_isolation(&h, "m-1", ISOLATION_TICKETED); /* and is not tested for ever */
    assert_int_equal(delete_object(&h, OBJECT_REPAIR, str_from(name)), 200);
    assert_isolation(&h, "m-1", ISOLATION_QUALIFYING);
    assert_int_equal(open_of(&h, "m-1")->origin, REPAIR_BY_PERSON);
    ends(&h, "m-1", ERRAND_QUALIFY, ERRAND_OK);
    assert_isolation(&h, "m-1", ISOLATION_RETURNED);
    harness_done(&h);
}

/* The policy keeps no ended repair, and still the machine is watched for as long as the policy says. */
static void a_machine_on_probation_keeps_its_repair(void **state)
{
    struct harness h;
    begin_with(&h, 4, "\"repair\":{\"watch\":\"1h\",\"history\":0},\"qualification\":{\"tests\":[\"cpu\"]},");
    assert_int_equal(write_it(&h, OBJECT_REPAIR, WRITE_CREATE, "r",
                              "apiVersion: phalanx.dev/v1\nkind: Repair\nmetadata: {name: r}\n"
                              "spec: {machine: m-1}\n"),
                     201);
    ends(&h, "m-1", ERRAND_QUALIFY, ERRAND_OK);
    assert_isolation(&h, "m-1", ISOLATION_RETURNED);
    assert_int_equal(repairs_count(core_repairs(h.core)), 1);
    harness_wait(&h, 59 * MINUTE);
    assert_isolation(&h, "m-1", ISOLATION_RETURNED);
    harness_wait(&h, 2 * MINUTE);
    assert_isolation(&h, "m-1", ISOLATION_HEALTHY);
    assert_int_equal(repairs_count(core_repairs(h.core)), 0);
    harness_done(&h);
}

#define REPAIR_OF(name, spec)                                                                                \
    "apiVersion: phalanx.dev/v1\nkind: Repair\nmetadata: {name: " name "}\nspec: {" spec "}\n"

static void a_person_asks_for_a_repair(void **state)
{
    struct harness h;
    begin(&h, 4);
    harness_create(&h, JOBSET("a", "", RJOB("w", 1, "", 1, "")));
    harness_run_all(&h);
    const char *yaml = REPAIR_OF("r", "machine: m-1, action: reset-gpu, reason: it smells");
    assert_int_equal(write_it(&h, OBJECT_REPAIR, WRITE_CREATE, "r", yaml), 201);
    assert_isolation(&h, "m-1", ISOLATION_DRAINING);
    exits(&h, "a-w-0-0", 0);
    assert_true(runs_hook(&h, "m-1", "reset-gpu"));
    ends(&h, "m-1", ERRAND_HOOK, ERRAND_OK);
    ends(&h, "m-1", ERRAND_QUALIFY, ERRAND_OK);
    assert_isolation(&h, "m-1", ISOLATION_RETURNED);
    const char *test = REPAIR_OF("t", "machine: m-2");
    assert_int_equal(write_it(&h, OBJECT_REPAIR, WRITE_CREATE, "t", test), 201);
    assert_isolation(&h, "m-2", ISOLATION_QUALIFYING);
    assert_int_equal(write_it(&h, OBJECT_REPAIR, WRITE_CREATE, "u", REPAIR_OF("u", "machine: m-2")), 201);
    assert_status(&h, newest(&h), "message", "another repair of the machine is open");
    assert_int_equal(write_it(&h, OBJECT_REPAIR, WRITE_CREATE, "v", REPAIR_OF("v", "machine: m-99")), 201);
    assert_status(&h, newest(&h), "message", "the cluster has no such machine");
    assert_int_equal(write_it(&h, OBJECT_REPAIR, WRITE_CREATE, "w", REPAIR_OF("w", "action: reboot")), 422);
    assert_int_equal(write_it(&h, OBJECT_REPAIR, WRITE_REPLACE, "t", REPAIR_OF("t", "machine: m-3")), 422);
    harness_done(&h);
}

static void ended_repairs_are_bounded(void **state)
{
    struct harness h;
    begin(&h, 4);
    for (int i = 0; i < 30; i++) {
        say(&h, "m-1", "odd/thing", "", SIGNAL_OCCUR);
        say(&h, "m-1", "odd/thing", "", SIGNAL_RECOVER);
    }
    assert_int_equal(repairs_count(core_repairs(h.core)), 20);
    assert_int_equal(object_count(core_objects(h.core), OBJECT_REPAIR), 20);
    assert_int_equal(repairs_totals(core_repairs(h.core))->opened, 30);
    harness_done(&h);
}

/* --- maintenance ---------------------------------------------------------------------------------------- */

static void put_window(struct harness *h, const char *name, int start_min, int end_min, const char *more)
{
    char start[32], end[32], yaml[512];
    time_format(h->now_ns + start_min * MINUTE, start);
    time_format(h->now_ns + end_min * MINUTE, end);
    snprintf(yaml, sizeof(yaml),
             "apiVersion: phalanx.dev/v1\nkind: Maintenance\nmetadata: {name: %s}\n"
             "spec: {start: \"%s\", end: \"%s\", %s}\n",
             name, start, end, more);
    assert_int_equal(write_it(h, OBJECT_MAINTENANCE, WRITE_CREATE, name, yaml), 201);
}

static void machines_are_empty_within_the_window(void **state)
{
    struct harness h;
    begin(&h, 2);
    harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 2}, ", RJOB("w", 1, "", 1, "")));
    harness_run_all(&h);
    put_window(&h, "night", 60, 120, "notice: 30m, qualify: true, machines: [m-1]");
    put_window(&h, "longer", 90, 150, "selector: {matchLabels: {kubernetes.io/hostname: m-1}}");
    assert_isolation(&h, "m-1", ISOLATION_HEALTHY);
    harness_wait(&h, 30 * MINUTE);
    assert_isolation(&h, "m-1", ISOLATION_DRAINING);
    assert_non_null(harness_task(&h, "a-w-0-0"));
    harness_wait(&h, 30 * MINUTE);
    assert_isolation(&h, "m-1", ISOLATION_QUARANTINED);
    harness_wait(&h, MINUTE);
    harness_run_all(&h);
    assert_int_equal(harness_task(&h, "a-w-0-0")->machine, machine_of(&h, "m-2")->id);
    assert_isolation(&h, "m-1", ISOLATION_QUARANTINED);
    harness_wait(&h, 60 * MINUTE);
    ends(&h, "m-1", ERRAND_QUALIFY, ERRAND_OK); /* the first window's; the second still stands */
    assert_isolation(&h, "m-1", ISOLATION_QUARANTINED);
    say(&h, "m-1", "xid/79", "", SIGNAL_ONCE); /* people are at work: it waits */
    assert_null(open_of(&h, "m-1"));
    harness_wait(&h, 30 * MINUTE);
    assert_true(runs_hook(&h, "m-1", "reboot"));
    harness_done(&h);
}

static void a_window_may_run_a_hook(void **state)
{
    struct harness h;
    begin(&h, 4);
    put_window(&h, "reset", 10, 20, "action: reset-gpu, machines: [m-1, m-2, m-77]");
    harness_wait(&h, 10 * MINUTE);
    assert_true(runs_hook(&h, "m-1", "reset-gpu") && runs_hook(&h, "m-2", "reset-gpu"));
    ends(&h, "m-1", ERRAND_HOOK, ERRAND_OK);
    assert_isolation(&h, "m-1", ISOLATION_QUARANTINED); /* until the window ends */
    ends(&h, "m-2", ERRAND_HOOK, ERRAND_FAILED);
    harness_wait(&h, MINUTE);
    ends(&h, "m-2", ERRAND_HOOK, ERRAND_FAILED);
    assert_isolation(&h, "m-2", ISOLATION_TICKETED);
    harness_wait(&h, 10 * MINUTE);
    assert_isolation(&h, "m-1", ISOLATION_RETURNED);
    assert_isolation(&h, "m-2", ISOLATION_TICKETED);
    assert_int_equal(delete_object(&h, OBJECT_MAINTENANCE, STR("reset")), 200);
    harness_done(&h);
}

static void what_leaves_the_cluster_is_not_repaired(void **state)
{
    struct harness h;
    begin(&h, 4);
    say(&h, "m-4", "xid/79", "", SIGNAL_ONCE);
    say(&h, "m-1", "edac/ue", "", SIGNAL_OCCUR);
    harness_cluster(&h, 3, 4, 0, SHORT);
    core_check_invariants(h.core);
    assert_null(open_of(&h, "m-4"));
    assert_status(&h, newest(&h), "state", "Ticketed");
    assert_isolation(&h, "m-1", ISOLATION_TICKETED);
    harness_cluster(&h, 4, 4, 0, SHORT); /* it is back, and its fault was never cleared */
    assert_isolation(&h, "m-4", ISOLATION_QUARANTINED);
    harness_hello(&h, "m-4", NULL, 0);
    assert_true(runs_hook(&h, "m-4", "reboot"));
    harness_done(&h);
}

static void bad_windows_are_refused(void **state)
{
    struct harness h;
    begin(&h, 2);
    static const char *const bad[] = {
        "machines: [m-1], start: \"2026-01-01T00:00:00Z\", end: \"2025-01-01T00:00:00Z\"",
        "machines: [m-1], start: soon, end: \"2025-01-01T00:00:00Z\"",
        "start: \"2024-01-01T00:00:00Z\", end: \"2025-01-01T00:00:00Z\"",
        "machines: [m-1], start: \"2024-01-01T00:00:00Z\", end: \"2025-01-01T00:00:00Z\", notice: long",
        "machines: [m-1], start: \"2024-01-01T00:00:00Z\", end: \"2025-01-01T00:00:00Z\", action: \"a b\"",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char yaml[512];
        snprintf(yaml, sizeof(yaml),
                 "apiVersion: phalanx.dev/v1\nkind: Maintenance\nmetadata: {name: x}\nspec: {%s}\n", bad[i]);
        assert_int_equal(write_it(&h, OBJECT_MAINTENANCE, WRITE_CREATE, "x", yaml), 422);
    }
    harness_done(&h);
}

/* --- random lives --------------------------------------------------------------------------------------- */

static void end_any(struct harness *h, struct rng *rng)
{
    static const enum errand_outcome outcomes[] = {ERRAND_OK, ERRAND_OK, ERRAND_FAILED, ERRAND_TIMED_OUT};
    size_t machines = core_cluster(h->core)->machine_count; /* others have left the cluster */
    for (size_t i = 0; i < h->errands.len; i++)
        if (!h->errands.items[i].over && h->errands.items[i].machine < machines && rng_chance(rng, 500000)) {
            harness_errand_end(h, &h->errands.items[i], outcomes[rng_below(rng, 4)], "whatever");
            return;
        }
}

static void write_any(struct harness *h, struct rng *rng, const char *machine)
{
    const struct repair *repair = open_of(h, machine);
    char yaml[512], name[NAME_MAX_BYTES + 1];
    if (repair && rng_chance(rng, 500000)) {
        delete_object(h, OBJECT_REPAIR, object_of(h, repair)->name);
        return;
    }
    if (repair)
        snprintf(name, sizeof(name), STR_FORMAT, STR_ARG(object_of(h, repair)->name));
    else
        snprintf(name, sizeof(name), "mine-%u", (unsigned)rng_below(rng, 3));
    snprintf(yaml, sizeof(yaml),
             "apiVersion: phalanx.dev/v1\nkind: Repair\nmetadata: {name: %s}\n"
             "spec: {machine: %s, done: %s, qualify: %s, now: true%s}\n",
             name, machine, rng_chance(rng, 500000) ? "true" : "false",
             rng_chance(rng, 800000) ? "true" : "false", rng_chance(rng, 300000) ? ", action: reboot" : "");
    write_it(h, OBJECT_REPAIR, repair ? WRITE_REPLACE : WRITE_CREATE, name, yaml);
}

static void live(struct harness *h, struct rng *rng)
{
    static const char *const codes[] = {"xid/79", "xid/95", "gpu/row-remap-failed", "ib/port-down", "odd/x"};
    char machine[8], window[16];
    snprintf(machine, sizeof(machine), "m-%u", 1 + (unsigned)rng_below(rng, 4));
    if (!machine_of(h, machine))
        return harness_cluster(h, 4, 4, 0, SHORT);
    switch (rng_below(rng, 10)) {
    case 0:
    case 1:
        say(h, machine, codes[rng_below(rng, 5)], "",
            (enum signal_assertion)rng_range(rng, SIGNAL_OCCUR, SIGNAL_ONCE));
        break;
    case 2:
    case 3:
        end_any(h, rng);
        break;
    case 4:
        if (machine_of(h, machine)->state == MACHINE_READY)
            harness_lose(h, machine);
        else
            harness_hello(h, machine, NULL, 0);
        break;
    case 5:
        write_any(h, rng, machine);
        break;
    case 6:
        snprintf(window, sizeof(window), "w-%u", (unsigned)rng_below(rng, 2));
        if (object_find(core_objects(h->core), OBJECT_MAINTENANCE, STR(""), str_from(window)))
            delete_object(h, OBJECT_MAINTENANCE, str_from(window));
        else
            put_window(h, window, (int)rng_range(rng, -2, 4), (int)rng_range(rng, 5, 20),
                       rng_chance(rng, 500000) ? "machines: [m-1, m-2], qualify: true, notice: 1m"
                                               : "selector: {}, action: reboot");
        break;
    case 7:
        harness_run_all(h);
        break;
    case 8: /* machines and hooks come and go */
        harness_cluster(h, (int)rng_range(rng, 3, 4), 4, 0, rng_chance(rng, 800000) ? SHORT : "");
        break;
    default:
        harness_wait(h, rng_range(rng, 0, 3) * rng_range(rng, 0, 100) * NS_PER_SECOND);
    }
    core_check_invariants(h->core);
}

static void random_lives_hold(void **state)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct harness h;
        struct rng rng = {0};
        rng_seed(&rng, seed);
        begin(&h, 4);
        h.twins.seed = seed;
        harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 100}, ", RJOB("w", 1, "", 2, "")));
        for (int i = 0; i < 150; i++)
            live(&h, &rng);
        harness_done(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hook_and_a_test_bring_it_back),
        cmocka_unit_test(a_busy_machine_is_repaired_when_it_is_idle),
        cmocka_unit_test(a_failed_hook_is_tried_again_then_the_next_harder_one),
        cmocka_unit_test(what_stands_after_the_test_is_a_fault_again),
        cmocka_unit_test(a_third_reboot_for_one_code_is_an_inspection),
        cmocka_unit_test(a_machine_that_does_not_come_back_has_a_ticket),
        cmocka_unit_test(nothing_strands_a_machine_silently),
        cmocka_unit_test(an_unknown_code_is_a_question),
        cmocka_unit_test(a_hook_that_is_not_there_is_a_ticket_at_once),
        cmocka_unit_test(a_person_closes_a_ticket),
        cmocka_unit_test(a_person_asks_for_a_repair),
        cmocka_unit_test(ended_repairs_are_bounded),
        cmocka_unit_test(machines_are_empty_within_the_window),
        cmocka_unit_test(a_window_may_run_a_hook),
        cmocka_unit_test(what_leaves_the_cluster_is_not_repaired),
        cmocka_unit_test(bad_windows_are_refused),
        cmocka_unit_test(a_machine_on_probation_keeps_its_repair),
        cmocka_unit_test(random_lives_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
