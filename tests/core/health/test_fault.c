/* Faults in a whole core: what signals make of machines and jobs, escalation, the breaker, a storm, and
 * random lives whose invariants, replays and twins hold. */
#include "core/job/story.h"

#include "base/rng.h"
#include "core/health/attribute.h"

/* Without hooks: an idle machine that is out has a ticket at once, which ends with the fault. How machines
 * are repaired is test_repair.c's. */
static void begin(struct harness *h, int machines, int chips, int spares)
{
    harness_init_with(h, machines, chips, spares, "\"repair\":{\"hooks\":[]},");
}

static struct signal make_signal(const char *code, const char *place, enum signal_assertion assertion)
{
    return (struct signal){.code = str_from(code),
                           .place = str_from(place),
                           .evidence = STR("raw line"),
                           .assertion = assertion,
                           .severity = SEVERITY_MAJOR,
                           .chip = -1,
                           .first_ns = 1,
                           .last_ns = 1,
                           .count = 1};
}

static void see(struct harness *h, const char *machine, const struct signal *signal)
{
    struct event event = {.kind = EVENT_REPORTS};
    event.reports.machine = str_from(machine);
    event.reports.reports.signals = (struct signal *)signal;
    event.reports.reports.signal_count = 1;
    harness_step(h, &event);
    core_check_invariants(h->core);
}

static void say(struct harness *h, const char *machine, const char *code, const char *place,
                enum signal_assertion assertion)
{
    struct signal signal = make_signal(code, place, assertion);
    see(h, machine, &signal);
}

static const struct machine *machine_of(struct harness *h, const char *name)
{
    return cluster_find(core_cluster(h->core), str_from(name));
}

static enum isolation isolation_of(struct harness *h, const char *name)
{
    enum isolation isolation = (enum isolation)machine_of(h, name)->isolation;
    return isolation == ISOLATION_TICKETED ? ISOLATION_QUARANTINED : isolation;
}

static const struct fault *worst(struct harness *h, const char *machine)
{
    const struct fault *fault = fault_of_machine(core_health(h->core), str_from(machine));
    assert_non_null(fault);
    return fault;
}

static const char *where(struct harness *h, const char *hostname)
{
    const struct task *task = harness_task(h, hostname);
    assert_non_null(task);
    return core_cluster(h->core)->machines[task->machine].name.data;
}

static int clear(struct harness *h, const struct fault *fault)
{
    return delete_object(h, OBJECT_FAULT, fault->name);
}

/* --- stories -------------------------------------------------------------------------------------------- */

static void a_fatal_fault_moves_the_gang(void **state)
{
    struct harness h;
    begin(&h, 3, 4, 1);
    harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 1}, ", RJOB("w", 1, "", 8, "")));
    harness_run_all(&h);
    say(&h, "m-1", "xid/79", "gpu/0000:9b:00.0", SIGNAL_ONCE);
    assert_int_equal(isolation_of(&h, "m-1"), ISOLATION_QUARANTINED);
    const struct fault *fault = worst(&h, "m-1");
    assert_int_equal(fault->level, LEVEL_SEPARATE);
    assert_int_equal(fault->action, FAULT_EVICTED);
    assert_int_equal(fault->domain, DOMAIN_HARDWARE);
    assert_int_equal(fault->job_count, 1);
    assert_true(str_is(fault->jobs[0], "default/a"));
    assert_true(str_is(fault->remedy, "reboot"));
    assert_int_equal(notes(&h, "MachineQuarantined"), 1);
    harness_run_all(&h);
    for (int i = 0; i < 8; i++) {
        char host[16];
        snprintf(host, sizeof(host), "a-w-0-%d", i);
        assert_string_not_equal(where(&h, host), "m-1");
    }
    /* The machine does not come back by itself; a person clears the fault. */
    harness_wait(&h, INT64_C(1000) * 3600 * NS_PER_SECOND);
    assert_int_equal(isolation_of(&h, "m-1"), ISOLATION_QUARANTINED);
    assert_int_equal(clear(&h, worst(&h, "m-1")), 200);
    assert_int_equal(isolation_of(&h, "m-1"), ISOLATION_HEALTHY);
    assert_int_equal(fault_count(core_health(h.core)), 0);
    harness_done(&h);
}

static void a_low_fault_waits_for_the_end_of_the_job(void **state)
{
    struct harness h;
    begin(&h, 1, 4, 0);
    harness_create(&h, JOBSET("a", "", RJOB("w", 1, "", 1, "")));
    harness_run_all(&h);
    say(&h, "m-1", "disk/timeout", "disk/nvme0n1", SIGNAL_OCCUR);
    assert_int_equal(isolation_of(&h, "m-1"), ISOLATION_DRAINING);
    assert_int_equal(worst(&h, "m-1")->action, FAULT_HELD);
    assert_non_null(harness_task(&h, "a-w-0-0"));
    harness_create(&h, JOBSET("b", "", RJOB("w", 1, "", 1, "")));
    assert_int_equal(harness_task(&h, "b-w-0-0")->state, TASK_PENDING);
    exits(&h, "a-w-0-0", 0);
    assert_int_equal(harness_task(&h, "b-w-0-0")->state, TASK_PENDING);
    say(&h, "m-1", "disk/timeout", "disk/nvme0n1", SIGNAL_RECOVER);
    assert_int_equal(isolation_of(&h, "m-1"), ISOLATION_HEALTHY);
    harness_run_all(&h);
    assert_int_equal(harness_task(&h, "b-w-0-0")->state, TASK_RUNNING);
    harness_done(&h);
}

static void those_who_can_save_are_given_time(void **state)
{
    struct harness h;
    begin(&h, 2, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 1}, ", RJOB("w", 1, "", 1, "")));
    harness_run_all(&h);
    report_task(&h, "a-w-0-0", (struct task_report){.kind = REPORT_JOINED});
    obj_id first = harness_task(&h, "a-w-0-0")->uid;
    const char *machine = where(&h, "a-w-0-0");
    say(&h, machine, "edac/ue", "dimm/mc0/dimm3", SIGNAL_OCCUR);
    assert_int_equal(isolation_of(&h, machine), ISOLATION_QUARANTINED);
    assert_true(harness_task(&h, "a-w-0-0")->uid == first); /* told, not stopped */
    h.now_ns += NS_PER_SECOND;
    report_task(&h, "a-w-0-0", (struct task_report){.kind = REPORT_SHARD_SAVED, .step = 7});
    harness_run_all(&h);
    assert_int_equal((int)jobset->checkpoint.committed_step, 7);
    assert_int_equal((int)jobset->attempt, 1);
    assert_string_not_equal(where(&h, "a-w-0-0"), machine);
    harness_done(&h);
}

static void those_who_do_not_save_are_stopped_in_the_end(void **state)
{
    struct harness h;
    begin(&h, 2, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 1}, ", RJOB("w", 1, "", 1, "")));
    harness_run_all(&h);
    report_task(&h, "a-w-0-0", (struct task_report){.kind = REPORT_JOINED});
    say(&h, where(&h, "a-w-0-0"), "edac/ue", "dimm/mc0/dimm3", SIGNAL_OCCUR);
    harness_wait(&h, 29 * NS_PER_SECOND);
    assert_int_equal((int)jobset->attempt, 0);
    harness_wait(&h, NS_PER_SECOND);
    harness_run_all(&h);
    assert_int_equal((int)jobset->attempt, 1);
    harness_done(&h);
}

/* --- escalation ----------------------------------------------------------------------------------------- */

static void the_third_reset_in_a_day_separates(void **state)
{
    struct harness h;
    begin(&h, 40, 4, 0); /* the breaker lets four out in an hour */
    ;
    for (int i = 0; i < 3; i++) {
        say(&h, "m-2", "xid/95", "gpu/0", SIGNAL_OCCUR);
        assert_int_equal(worst(&h, "m-2")->level, i < 2 ? LEVEL_RESET : LEVEL_MANUALLY_SEPARATE);
        harness_wait(&h, 60 * NS_PER_SECOND);
        say(&h, "m-2", "xid/95", "gpu/0", SIGNAL_RECOVER);
        assert_int_equal(isolation_of(&h, "m-2"), i < 2 ? ISOLATION_HEALTHY : ISOLATION_QUARANTINED);
        harness_wait(&h, 60 * NS_PER_SECOND);
    }
    assert_int_equal(worst(&h, "m-2")->reason, RAISED_FREQUENCY);
    harness_wait(&h, INT64_C(47) * 3600 * NS_PER_SECOND);
    assert_int_equal(isolation_of(&h, "m-2"), ISOLATION_QUARANTINED);
    harness_wait(&h, INT64_C(1) * 3600 * NS_PER_SECOND); /* two days without another one */
    assert_int_equal(isolation_of(&h, "m-2"), ISOLATION_HEALTHY);
    harness_done(&h);
}

static void a_link_that_stays_down_is_worse_than_one_that_blinks(void **state)
{
    struct harness h;
    begin(&h, 4, 4, 0);
    say(&h, "m-1", "ib/port-down", "port/mlx5_0/1", SIGNAL_OCCUR);
    assert_int_equal(isolation_of(&h, "m-1"), ISOLATION_SUSPECT);
    harness_wait(&h, 19 * NS_PER_SECOND);
    assert_int_equal(isolation_of(&h, "m-1"), ISOLATION_SUSPECT);
    harness_wait(&h, 1 * NS_PER_SECOND);
    assert_int_equal(isolation_of(&h, "m-1"), ISOLATION_QUARANTINED);
    assert_int_equal(worst(&h, "m-1")->reason, RAISED_DURATION);
    say(&h, "m-1", "ib/port-down", "port/mlx5_0/1", SIGNAL_RECOVER);
    harness_wait(&h, 59 * NS_PER_SECOND);
    assert_int_equal(isolation_of(&h, "m-1"), ISOLATION_QUARANTINED); /* it has to hold */
    harness_wait(&h, 1 * NS_PER_SECOND);
    assert_int_equal(isolation_of(&h, "m-1"), ISOLATION_HEALTHY);
    say(&h, "m-2", "ib/port-down", "port/mlx5_0/1", SIGNAL_OCCUR);
    harness_wait(&h, 10 * NS_PER_SECOND);
    say(&h, "m-2", "ib/port-down", "port/mlx5_0/1", SIGNAL_RECOVER);
    harness_wait(&h, 60 * NS_PER_SECOND);
    assert_int_equal(isolation_of(&h, "m-2"), ISOLATION_HEALTHY);
    assert_null(fault_of_machine(core_health(h.core), STR("m-2")));
    harness_done(&h);
}

static void one_code_on_many_chips_of_a_job_is_its_software(void **state)
{
    struct harness h;
    begin(&h, 4, 4, 0);
    harness_create(&h, JOBSET("a", "", RJOB("w", 1, "", 8, "")));
    harness_run_all(&h);
    for (int round = 0; round < 4; round++) {
        for (int chip = 0; chip < 2; chip++) {
            struct signal signal = make_signal("xid/94", chip ? "gpu/1" : "gpu/0", SIGNAL_ONCE);
            signal.chip = chip;
            see(&h, "m-1", &signal);
        }
        harness_wait(&h, 40 * NS_PER_SECOND);
    }
    assert_int_equal(isolation_of(&h, "m-1"), ISOLATION_HEALTHY); /* eight of them in a day: not counted */
    struct signal alone = make_signal("xid/94", "gpu/3", SIGNAL_ONCE);
    alone.chip = 3;
    for (int i = 0; i < 3; i++) {
        see(&h, "m-2", &alone);
        harness_wait(&h, 40 * NS_PER_SECOND);
    }
    assert_int_equal(isolation_of(&h, "m-2"), ISOLATION_QUARANTINED);
    harness_done(&h);
}

static void what_follows_a_dead_link_is_told_apart(void **state)
{
    struct harness h;
    begin(&h, 4, 4, 0);
    say(&h, "m-1", "ib/port-down", "port/mlx5_0/1", SIGNAL_OCCUR);
    say(&h, "m-1", "ib/missing", "port/mlx5_0", SIGNAL_OCCUR);
    assert_int_equal(isolation_of(&h, "m-1"), ISOLATION_QUARANTINED);
    harness_done(&h);
}

static void unknown_codes_are_judged_by_severity(void **state)
{
    struct harness h;
    begin(&h, 4, 4, 0);
    struct signal signal = make_signal("vendor/odd", "", SIGNAL_OCCUR);
    signal.severity = SEVERITY_MINOR;
    see(&h, "m-1", &signal);
    assert_int_equal(isolation_of(&h, "m-1"), ISOLATION_HEALTHY);
    signal.severity = SEVERITY_CRITICAL;
    see(&h, "m-2", &signal);
    assert_int_equal(isolation_of(&h, "m-2"), ISOLATION_QUARANTINED);
    harness_done(&h);
}

static void an_unknown_code_drains_an_idle_machine(void **state)
{
    struct harness h;
    begin(&h, 4, 4, 0);
    say(&h, "m-1", "xid/142", "gpu/0000:9b:00.0", SIGNAL_ONCE);
    assert_int_equal(isolation_of(&h, "m-1"), ISOLATION_DRAINING);
    assert_int_equal(worst(&h, "m-1")->level, LEVEL_PRE_SEPARATE);
    harness_done(&h);
}

/* --- the breaker, storms -------------------------------------------------------------------------------- */

static void the_breaker_leaves_most_machines_at_work(void **state)
{
    struct harness h;
    begin(&h, 20, 4, 0);
    char name[16];
    for (int i = 1; i <= 20; i++) {
        snprintf(name, sizeof(name), "m-%d", i);
        say(&h, name, "xid/79", "gpu/0", SIGNAL_ONCE);
    }
    int out = 0;
    for (int i = 1; i <= 20; i++) {
        snprintf(name, sizeof(name), "m-%d", i);
        out += isolation_of(&h, name) == ISOLATION_QUARANTINED;
    }
    assert_int_equal(out, 2); /* a tenth in an hour */
    assert_int_equal(notes(&h, "QuarantineHeldBack"), 18);
    assert_int_equal(worst(&h, "m-3")->action, FAULT_HELD_BACK);
    for (int hour = 0; hour < 12; hour++)
        harness_wait(&h, INT64_C(3600) * NS_PER_SECOND);
    core_check_invariants(h.core);
    out = 0;
    for (int i = 1; i <= 20; i++) {
        snprintf(name, sizeof(name), "m-%d", i);
        out += isolation_of(&h, name) == ISOLATION_QUARANTINED;
    }
    assert_int_equal(out, 10); /* half in all */
    assert_int_equal(clear(&h, worst(&h, "m-1")), 200);
    harness_wait(&h, INT64_C(3600) * NS_PER_SECOND);
    assert_int_equal(isolation_of(&h, "m-1"), ISOLATION_HEALTHY);
    harness_done(&h);
}

static void a_storm_is_one_fault_told_once_a_second(void **state)
{
    struct harness h;
    begin(&h, 4, 4, 0);
    size_t told = 0;
    for (int i = 0; i < 1000; i++) {
        say(&h, "m-1", "xid/13", "gpu/0", SIGNAL_ONCE);
        for (size_t e = 0; e < h.effects.list.len; e++)
            told += h.effects.list.items[e].kind == EFFECT_CHANGED &&
                    h.effects.list.items[e].changed.object.kind == OBJECT_FAULT;
        h.now_ns += NS_PER_MS;
    }
    assert_int_equal(fault_count(core_health(h.core)), 1);
    assert_true(told < 5000);
    harness_done(&h);
}

static void the_oldest_closed_fault_makes_room(void **state)
{
    struct harness h;
    begin(&h, 4, 4, 0);
    char place[24];
    for (int i = 0; i < FAULTS_PER_MACHINE_MAX + 10; i++) {
        snprintf(place, sizeof(place), "gpu/%d", i);
        say(&h, "m-1", "xid/13", place, SIGNAL_ONCE);
        h.now_ns += NS_PER_MS;
    }
    assert_int_equal(fault_count(core_health(h.core)), FAULTS_PER_MACHINE_MAX);
    for (int i = 0; i < FAULTS_PER_MACHINE_MAX + 10; i++) {
        snprintf(place, sizeof(place), "gpu/%d", i);
        say(&h, "m-1", "nfs/server", place, SIGNAL_OCCUR);
    }
    assert_int_equal(fault_count(core_health(h.core)), FAULTS_PER_MACHINE_MAX);
    assert_int_equal((int)fault_dropped(core_health(h.core)), 10);
    harness_done(&h);
}

/* --- attribution ---------------------------------------------------------------------------------------- */

/* Is an end blamed on the fault that began `offset_ns` from it, and was heard of `late_ns` after that? */
static bool blamed(int64_t offset_ns, int64_t late_ns)
{
    struct harness h;
    struct attribution found;
    char machine[16];
    begin(&h, 40, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "", RJOB("w", 1, "", 1, "")));
    harness_run_all(&h);
    harness_wait(&h, NS_PER_SECOND);
    snprintf(machine, sizeof(machine), "%s", where(&h, "a-w-0-0"));
    struct signal signal = make_signal("xid/13", "gpu/0", SIGNAL_ONCE);
    int64_t heard_ns = offset_ns + late_ns;
    signal.first_ns = signal.last_ns = h.now_ns - late_ns;
    if (heard_ns < 0) {
        see(&h, machine, &signal);
        harness_wait(&h, -heard_ns);
    }
    exits(&h, "a-w-0-0", 1); /* and with it the JobSet */
    int64_t end_ns = jobset->finished_ns;
    assert_true(end_ns > 0);
    if (heard_ns >= 0) {
        harness_wait(&h, heard_ns);
        signal.first_ns = signal.last_ns = end_ns + offset_ns;
        see(&h, machine, &signal);
    }
    attribute(&jobset->history.faults, NULL, STR(""), end_ns, &found);
    bool any = found.primary != NULL;
    harness_done(&h);
    return any;
}

static void a_job_s_end_is_blamed_on_what_was_before_it(void **state)
{
    int64_t minute = 60 * NS_PER_SECOND;
    assert_true(blamed(-(10 * minute - NS_PER_SECOND), 0));
    assert_false(blamed(-(10 * minute + NS_PER_SECOND), 0));
    assert_false(blamed(22 * NS_PER_SECOND, 0));
    assert_false(blamed(NS_PER_MS, 0));
    assert_true(blamed(-NS_PER_MS, 5 * minute - NS_PER_SECOND)); /* reports may be late */
    assert_false(blamed(-NS_PER_MS, 5 * minute + NS_PER_SECOND));
}

static void what_was_broken_on_purpose_is_the_cause(void **state)
{
    struct harness h;
    struct attribution found;
    char machine[16];
    begin(&h, 40, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 5}, ", RJOB("w", 1, "", 4, "")));
    harness_run_all(&h);
    snprintf(machine, sizeof(machine), "%s", where(&h, "a-w-0-1"));
    say(&h, machine, "injected/kill", "", SIGNAL_ONCE);
    say(&h, machine, "pcie/correctable", "gpu/0", SIGNAL_ONCE);
    attribute(&jobset->history.faults, NULL, str_from(machine), h.now_ns, &found);
    assert_string_equal(found.primary->code, "injected/kill");
    assert_int_equal(found.domain, DOMAIN_USER);
    harness_wait(&h, ATTRIBUTE_ORDERED_NS + NS_PER_SECOND); /* what ends later has another cause */
    attribute(&jobset->history.faults, NULL, STR(""), h.now_ns, &found);
    assert_string_equal(found.primary->code, "pcie/correctable");
    harness_done(&h);
}

/* One code on two machines of a job says that its program has the fault, but not of what a person did. */
static void two_injections_are_no_fault_of_the_software(void **state)
{
    struct harness h;
    struct attribution found;
    char machines[2][16];
    begin(&h, 40, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 5}, ", RJOB("w", 1, "", 8, "")));
    harness_run_all(&h);
    snprintf(machines[0], sizeof(machines[0]), "%s", where(&h, "a-w-0-0"));
    snprintf(machines[1], sizeof(machines[1]), "%s", where(&h, "a-w-0-7"));
    assert_string_not_equal(machines[0], machines[1]);
    for (int i = 0; i < 2; i++) {
        say(&h, machines[i], "injected/kill", "", SIGNAL_ONCE);
        attribute(&jobset->history.faults, NULL, str_from(machines[i]), h.now_ns, &found);
        assert_string_equal(found.primary->code, "injected/kill");
        assert_int_equal(found.domain, DOMAIN_USER);
        harness_wait(&h, 6 * NS_PER_SECOND);
    }
    harness_done(&h);
}

static void the_worst_one_is_the_cause_and_the_others_support_it(void **state)
{
    struct harness h;
    struct attribution found;
    begin(&h, 40, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 5}, ", RJOB("w", 1, "", 4, "")));
    harness_run_all(&h);
    char machine[16];
    snprintf(machine, sizeof(machine), "%s", where(&h, "a-w-0-0"));
    attribute(&jobset->history.faults, NULL, STR(""), h.now_ns, &found);
    assert_null(found.primary);
    say(&h, machine, "cpu/thermal", "", SIGNAL_ONCE);
    say(&h, machine, "pcie/correctable", "gpu/0", SIGNAL_ONCE);
    say(&h, machine, "xid/79", "gpu/0", SIGNAL_ONCE);
    say(&h, strcmp(machine, "m-9") ? "m-9" : "m-8", "xid/79", "gpu/0", SIGNAL_ONCE); /* not its machine */
    harness_run_all(&h);
    assert_int_equal(jobset->history.record_count, 1);
    const struct restart_record *record = &jobset->history.records[0];
    attribute(&record->faults, NULL, STR(""), record->fault_ns, &found);
    assert_string_equal(found.primary->code, "xid/79");
    assert_string_equal(found.primary->machine, machine);
    assert_int_equal(found.domain, DOMAIN_HARDWARE);
    assert_int_equal(found.supporting_count, 2);
    harness_done(&h);
}

static void the_machine_where_it_began_goes_before(void **state)
{
    struct attribution found;
    struct end_fault items[] = {
        {.fault = 1, .level = LEVEL_SEPARATE, .at_ns = 1, .last_ns = 1, .code = "xid/79", .machine = "m-1"},
        {.fault = 2,
         .level = LEVEL_RESET,
         .at_ns = 2,
         .last_ns = 2,
         .code = "disk/timeout",
         .machine = "m-2"}};
    struct end_faults faults = {items, 2};
    attribute(&faults, NULL, STR(""), 3, &found);
    assert_string_equal(found.primary->machine, "m-1");
    attribute(&faults, NULL, STR("m-2"), 3, &found);
    assert_string_equal(found.primary->machine, "m-2");
    assert_int_equal(found.supporting_count, 1);
}

/* --- writes --------------------------------------------------------------------------------------------- */

static int write_fault_json(struct harness *h, const char *json)
{
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){
        .verb = WRITE_CREATE, .object = OBJECT_FAULT, .body = str_from(json), .user = STR("nodehub")};
    h->last_code = 0;
    harness_step(h, &event);
    core_check_invariants(h->core);
    return h->last_code;
}

#define FAULT_JSON(name, spec)                                                                               \
    "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Fault\",\"metadata\":{" name "},\"spec\":{" spec "}}"

static void other_systems_report_faults(void **state)
{
    struct harness h;
    begin(&h, 4, 4, 0);
    assert_int_equal(write_fault_json(&h, FAULT_JSON("\"name\":\"pump-7\"",
                                                     "\"machine\":\"m-1\",\"code\":\"public/220001001\","
                                                     "\"severity\":\"critical\",\"evidence\":\"leak\"")),
                     201);
    const struct fault *fault = fault_find(core_health(h.core), STR("pump-7"));
    assert_non_null(fault);
    assert_true(str_is(fault->user, "nodehub"));
    assert_int_equal(isolation_of(&h, "m-1"), ISOLATION_QUARANTINED);
    assert_int_equal(
        write_fault_json(&h, FAULT_JSON("\"name\":\"pump-7\"", "\"machine\":\"m-2\",\"code\":\"public/1\"")),
        409);
    assert_int_equal(write_fault_json(&h, FAULT_JSON("", "\"machine\":\"m-1\",\"code\":\"public/220001001\","
                                                         "\"assertion\":\"recover\"")),
                     201);
    assert_int_equal(isolation_of(&h, "m-1"), ISOLATION_HEALTHY);
    harness_done(&h);
}

static void bad_reports_are_refused_by_field(void **state)
{
    static const struct {
        const char *json, *path;
    } bad[] = {
        {FAULT_JSON("", "\"machine\":\"m-9\",\"code\":\"a/b\""), "spec.machine"},
        {FAULT_JSON("", "\"machine\":\"m-1\",\"code\":\"a\""), "spec.code"},
        {FAULT_JSON("", "\"machine\":\"m-1\",\"code\":\"A/b\""), "spec.code"},
        {FAULT_JSON("", "\"machine\":\"m-1\",\"code\":\"a/b\",\"chip\":4"), "spec.chip"},
        {FAULT_JSON("", "\"machine\":\"m-1\",\"code\":\"a/b\",\"severity\":\"bad\""), "spec.severity"},
        {FAULT_JSON("", "\"machine\":\"m-1\",\"code\":\"a/b\",\"assertion\":\"x\""), "spec.assertion"},
        {FAULT_JSON("", "\"machine\":\"m-1\",\"code\":\"a/b\",\"time\":\"now\""), "spec.time"},
        {FAULT_JSON("", "\"machine\":\"m-1\",\"code\":\"a/b\",\"place\":\"\\u00e9\""), "spec.place"},
    };
    struct harness h;
    begin(&h, 4, 4, 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(write_fault_json(&h, bad[i].json), 422);
        if (!strstr(h.last_message, bad[i].path))
            fail_msg("%s: %s", bad[i].path, h.last_message);
    }
    assert_int_equal(fault_count(core_health(h.core)), 0);
    harness_done(&h);
}

/* --- random lives --------------------------------------------------------------------------------------- */

static void random_signal(struct harness *h, struct rng *rng)
{
    static const char *const codes[] = {"xid/79",  "xid/94",       "xid/95",     "ib/port-down", "pcie/fatal",
                                        "fs/full", "disk/timeout", "cpu/lockup", "a/b",          "mem/oom"};
    static const char *const places[] = {"", "gpu/0", "gpu/1"};
    char machine[16];
    snprintf(machine, sizeof(machine), "m-%d", 1 + (int)rng_below(rng, 6));
    struct signal signal = make_signal(codes[rng_below(rng, 10)], places[rng_below(rng, 3)],
                                       (enum signal_assertion)(SIGNAL_OCCUR + rng_below(rng, 3)));
    signal.severity = (enum signal_severity)(SEVERITY_NOTICE + rng_below(rng, 4));
    signal.chip = (int32_t)rng_below(rng, 5) - 1;
    signal.count = 1 + (uint32_t)rng_below(rng, 3);
    see(h, machine, &signal);
}

static void clear_some(struct harness *h, struct rng *rng)
{
    char machine[16];
    snprintf(machine, sizeof(machine), "m-%d", 1 + (int)rng_below(rng, 6));
    const struct fault *fault = fault_of_machine(core_health(h->core), str_from(machine));
    if (fault)
        assert_int_equal(clear(h, fault), 200);
}

static void random_lives_hold(void **state)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct harness h;
        struct rng rng;
        rng_seed(&rng, seed);
        begin(&h, 6, 4, 1);
        harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 50}, ", RJOB("w", 1, "", 6, "")));
        harness_create(&h, JOBSET("b", "failurePolicy: {maxRestarts: 50}, ", RJOB("w", 2, "", 3, "")));
        for (int i = 0; i < 150; i++) {
            switch (rng_below(&rng, 6)) {
            case 0:
                harness_wait(&h, (int64_t)rng_below(&rng, 100) * NS_PER_SECOND);
                break;
            case 1:
                clear_some(&h, &rng);
                break;
            case 2:
                harness_run_all(&h);
                break;
            case 3:
                harness_wait(&h, (int64_t)rng_below(&rng, 30) * 3600 * NS_PER_SECOND);
                break;
            default:
                random_signal(&h, &rng);
            }
            core_check_invariants(h.core);
        }
        harness_done(&h);
    }
}

/* A gang that waits for machines hears which of them are out, and by which fault. */
static void gangs_wait_with_the_fault_named(void **state)
{
    struct harness h;
    harness_init(&h, 20, 4, 0); /* of which the breaker gives up two */
    harness_create(&h, JOBSET("a", "", RJOB("w", 1, "", 1, "")));
    harness_run_all(&h);
    assert_string_equal(where(&h, "a-w-0-0"), "m-1");
    say(&h, "m-1", "disk/timeout", "disk/nvme0n1", SIGNAL_OCCUR);
    say(&h, "m-2", "xid/79", "gpu/0000:9b:00.0", SIGNAL_ONCE);
    const char *cordon = "apiVersion: v1\nkind: Node\nmetadata: {name: m-3}\nspec: {unschedulable: true}\n";
    assert_int_equal(harness_write_checked(&h, OBJECT_NODE, WRITE_REPLACE, "m-3", cordon), 200);
    const struct jobset *jobset = harness_create(&h, JOBSET("b", "", RJOB("w", 1, "", 80, "")));
    const char *why = jobset->gangs.items[0]->why.data;
    assert_non_null(strstr(why, "1 drained (m-3)"));
    assert_non_null(strstr(why, "1 quarantined (m-2: xid/79)"));
    assert_non_null(strstr(why, "1 draining (m-1: disk/timeout)"));
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fatal_fault_moves_the_gang),
        cmocka_unit_test(a_low_fault_waits_for_the_end_of_the_job),
        cmocka_unit_test(gangs_wait_with_the_fault_named),
        cmocka_unit_test(those_who_can_save_are_given_time),
        cmocka_unit_test(those_who_do_not_save_are_stopped_in_the_end),
        cmocka_unit_test(the_third_reset_in_a_day_separates),
        cmocka_unit_test(a_link_that_stays_down_is_worse_than_one_that_blinks),
        cmocka_unit_test(one_code_on_many_chips_of_a_job_is_its_software),
        cmocka_unit_test(what_follows_a_dead_link_is_told_apart),
        cmocka_unit_test(unknown_codes_are_judged_by_severity),
        cmocka_unit_test(an_unknown_code_drains_an_idle_machine),
        cmocka_unit_test(the_breaker_leaves_most_machines_at_work),
        cmocka_unit_test(a_storm_is_one_fault_told_once_a_second),
        cmocka_unit_test(the_oldest_closed_fault_makes_room),
        cmocka_unit_test(a_job_s_end_is_blamed_on_what_was_before_it),
        cmocka_unit_test(what_was_broken_on_purpose_is_the_cause),
        cmocka_unit_test(two_injections_are_no_fault_of_the_software),
        cmocka_unit_test(the_worst_one_is_the_cause_and_the_others_support_it),
        cmocka_unit_test(the_machine_where_it_began_goes_before),
        cmocka_unit_test(other_systems_report_faults),
        cmocka_unit_test(bad_reports_are_refused_by_field),
        cmocka_unit_test(random_lives_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
