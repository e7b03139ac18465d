/* quarantine.c - signals become faults, and faults have consequences for machines and jobs. health/ judges;
 * this file adds the facts about jobs, and carries out the verdicts. */
#include "core/gang/gang.h"
#include "core/health/attribute.h"
#include "core/react/react.h"

/* Returns whether the task has the chip or machine that the signal is about. */
static bool is_struck(const struct task *task, const struct signal *signal)
{
    if (signal->chip < 0)
        return true;
    return signal->chip < CHIPS_PER_MACHINE_MAX && (task->chips >> signal->chip & 1);
}

/* Returns the uid of the JobSet that the signal concerns: of the task that holds the chip, or of all tasks on
 * the machine. Returns 0 if there is no such JobSet, or more than one. */
static obj_id struck_job(const struct core *core, const struct machine *machine, const struct signal *signal)
{
    CHECK(machine->id < core->cluster.machine_count);
    obj_id found = 0;
    list_for_each(node, &core->jobs.machine_tasks[machine->id])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        if (!is_struck(task, signal))
            continue;
        obj_id uid = task->job->jobset->uid;
        if (found && found != uid)
            return 0;
        found = uid;
    }
    return found;
}

/* Records the fault at the JobSet and the JobSet at the fault. `found` is a copy of the fault. */
static void strike(struct step *step, struct fault *fault, const struct end_fault *found,
                   struct jobset *jobset)
{
    struct buf name BUF_CLEANUP = {0};
    buf_printf(&name, STR_FORMAT "/" STR_FORMAT, STR_ARG(jobset->namespace_), STR_ARG(jobset->name));
    fault_strike(step, fault, buf_str(&name));
    ends_strike(step, jobset, found);
}

/* Returns the stamp at which the signal began, by its machine's clock if that is plausible, because reports
 * may be late. */
static int64_t began_ns(const struct signal *signal, int64_t now_ns)
{
    bool sane = signal && signal->first_ns <= now_ns && now_ns - signal->first_ns <= ATTRIBUTE_AFTER_NS;
    return sane ? signal->first_ns : now_ns;
}

/* Strikes the JobSets with tasks where the fault occurred, or else the one that had tasks there until
 * recently. `signal` is NULL if the fault takes the whole machine out of service now. */
static void strike_jobs(struct core *core, struct step *step, const struct machine *machine,
                        struct fault *fault, const struct signal *signal)
{
    CHECK(machine->id < core->cluster.machine_count);
    bool any = false;
    struct end_fault found;
    const struct jobset *before = NULL;
    end_fault_of(fault, began_ns(signal, step->now_ns), step->now_ns, &found);
    list_for_each(node, &core->jobs.machine_tasks[machine->id])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        struct jobset *jobset = task->job->jobset;
        if (signal && !is_struck(task, signal))
            continue;
        any = true;
        if (jobset != before)
            strike(step, fault, &found, jobset);
        before = jobset; /* the tasks of a machine are mostly of one JobSet */
    }
    bool lately = machine->last_job && step->now_ns - machine->last_job_ns <= ATTRIBUTE_AFTER_NS;
    struct jobset *last = any || !lately ? NULL : jobs_find_uid(&core->jobs, machine->last_job);
    if (last)
        strike(step, fault, &found, last);
}

struct fault *core_sighted(struct core *core, struct step *step, struct sighting *sighting)
{
    struct machine *machine = cluster_find(&core->cluster, sighting->machine);
    CHECK(machine);
    sighting->job = struck_job(core, machine, sighting->signal);
    struct fault *fault = health_signal(step, sighting);
    if (fault && fault->last_ns == step->now_ns && sighting->signal->assertion != SIGNAL_RECOVER)
        strike_jobs(core, step, machine, fault, sighting->signal);
    return fault;
}

void core_read_fault_table(struct core *core)
{
    const struct object *table =
        object_find(core->objects, OBJECT_FAULT_TABLE, STR(""), STR(FAULT_TABLE_NAME));
    core->fault_table_version = object_kind_version(core->objects, OBJECT_FAULT_TABLE);
    health_set_table(core->health, table ? table->document : NULL);
}

/* Returns whether the fault is a chip error that the hardware caused. Errors that applications cause are no
 * evidence about their machine. */
static bool is_chip_error(const struct fault *fault)
{
    return (str_starts(fault->code, STR("xid/")) || str_starts(fault->code, STR("sxid/"))) &&
           fault->domain == DOMAIN_HARDWARE && !fault->software;
}

void core_signals(struct core *core, struct step *step, const struct machine *machine,
                  const struct reports *reports)
{
    CHECK(reports->signal_count <= SIGNALS_PER_EVENT_MAX);
    for (size_t i = 0; i < reports->signal_count; i++) {
        struct sighting sighting = {.machine = machine->name, .signal = &reports->signals[i]};
        const struct fault *fault = core_sighted(core, step, &sighting);
        bool fresh = fault && (fault->opened_ns == step->now_ns || !fault->open);
        if (fresh && sighting.signal->assertion != SIGNAL_RECOVER && is_chip_error(fault))
            lemon_count(step, machine, LEMON_XID);
    }
}

/* --- orders --------------------------------------------------------------------------------------------- */

static void describe(struct step *step, const struct health_order *order, struct buf *why)
{
    if (order->isolation == order->machine->kept && repair_describe(step->repairs, order->machine, why))
        return;
    if (order->fault)
        fault_describe(order->fault, why);
    else
        buf_printf(why, "no fault is open");
}

static void tell(struct step *step, const struct health_order *order)
{
    CHECK(order->isolation < ISOLATIONS);
    static const char *const reasons[ISOLATIONS] = {
        "MachineHealthy",   "MachineSuspect",    "MachineDraining", "MachineQuarantined",
        "MachineResetting", "MachineQualifying", "MachineTicketed", "MachineReturned"};
    struct buf why BUF_CLEANUP = {0};
    bool good = order->isolation == ISOLATION_HEALTHY || order->isolation == ISOLATION_RETURNED;
    describe(step, order, &why);
    step_note(step, !good, reasons[order->isolation], ref_machine(order->machine), STR_FORMAT,
              STR_ARG(buf_str(&why)));
    if (order->held_back)
        step_note(step, true, "QuarantineHeldBack", ref_machine(order->machine),
                  "too many machines are out of service already: " STR_FORMAT " is left at work",
                  STR_ARG(buf_str(&why)));
}

/* Returns whether the lemon detector raised the fault, which then does not count as a new failure. */
static bool is_lemons(const struct fault *fault)
{
    return fault && str_is(fault->code, LEMON_FAULT);
}

static void isolate(struct step *step, const struct health_order *order)
{
    CHECK(order->isolation != order->machine->isolation);
    struct machine *machine = order->machine;
    bool was = machine_schedulable(machine);
    bool leaves = isolation_is_out(order->isolation) && !isolation_is_out(machine->isolation);
    if (leaves && order->fault && !is_lemons(order->fault))
        lemon_count(step, machine, LEMON_OUT);
    lifecycle_move(&isolation_lifecycle, &machine->isolation, (uint8_t)order->isolation);
    machine->isolated_ns = step->now_ns;
    machine_changed(machine);
    if (order->isolation == ISOLATION_QUARANTINED)
        machine->qualified_ns = machine->paired_ns = 0; /* the next gang there tests it again */
    machine_book(step, machine, was);
    step->schedule = true;
    step->jobs->shape++;
    step_changed(step, CHANGE_MODIFIED, ref_machine(machine));
}

/* --- leaving -------------------------------------------------------------------------------------------- */

/* The longest time in which tasks may save after a notice before they are stopped. */
#define NOTICE_MAX_NS (30 * NS_PER_SECOND)

void core_leaving_restored(struct core *core)
{
    vec_clear(&core->leaving);
    for (size_t i = 0; i < core->cluster.machine_count; i++)
        if (core->cluster.machines[i].leave_ns)
            vec_push(&core->leaving, core->cluster.machines[i].id);
}

int64_t core_leaving_deadline(const struct core *core)
{
    int64_t due_ns = INT64_MAX;
    for (size_t i = 0; i < core->leaving.len; i++) {
        CHECK(core->leaving.items[i] < core->cluster.machine_count);
        int64_t leave_ns = core->cluster.machines[core->leaving.items[i]].leave_ns;
        due_ns = leave_ns < due_ns ? leave_ns : due_ns;
    }
    return due_ns;
}

/* Begins the wait for saves on the machine. The list of leaving machines stays in the order of machines. */
static void begin_leaving(struct core *core, struct machine *machine, int64_t leave_ns, int64_t now_ns)
{
    CHECK(leave_ns > now_ns);
    machine->noticed_ns = now_ns;
    machine->leave_ns = leave_ns;
    core_leaving_restored(core);
}

/* Records at the machine's JobSets that people, and not a fault, take the machine out of service. */
static void note_maintenance(struct core *core, struct step *step, const struct machine *machine,
                             struct str why)
{
    struct end_fault order;
    end_fault_ordered(ORDER_MAINTENANCE, machine->name, STR(""), why, step->now_ns, &order);
    list_for_each(node, &core->jobs.machine_tasks[machine->id])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        if (task->state != TASK_STOPPING && !task->doomed)
            ends_strike(step, task->job->jobset, &order);
    }
}

static void stop_tasks(struct core *core, struct step *step, struct machine *machine, struct fault *fault)
{
    struct buf why BUF_CLEANUP = {0};
    if (fault)
        fault_describe(fault, &why);
    else if (!repair_describe(step->repairs, machine, &why))
        buf_printf(&why, "quarantined");
    if (!fault)
        note_maintenance(core, step, machine, buf_str(&why));
    jobs_vacate(step, machine, buf_str(&why));
}

static void vacate(struct core *core, struct step *step, const struct health_order *order)
{
    CHECK(order->machine && order->machine->id < core->cluster.machine_count);
    if (order->fault)
        strike_jobs(core, step, order->machine, order->fault, NULL);
    if (order->fault && order->fault->domain == DOMAIN_HARDWARE && !order->fault->software &&
        !is_lemons(order->fault))
        core_failed_on(core, step, order->machine);
    int64_t grace_ns = order->restart ? 0 : jobs_notice_drain(step, order->machine, DRAIN_FAULT);
    grace_ns = grace_ns < NOTICE_MAX_NS ? grace_ns : NOTICE_MAX_NS;
    if (grace_ns > 0)
        begin_leaving(core, order->machine, step->now_ns + grace_ns, step->now_ns);
    else
        stop_tasks(core, step, order->machine, order->fault);
}

/* Stops the tasks of leaving machines whose tasks have saved or whose time has expired. Ends the wait of
 * machines that are no longer quarantined. Returns whether a wait ended. */
static bool end_leaving(struct core *core, struct step *step)
{
    bool any = false;
    for (size_t i = 0; i < core->leaving.len; i++) {
        struct machine *machine = &core->cluster.machines[core->leaving.items[i]];
        bool stays = machine->isolation != ISOLATION_QUARANTINED;
        if (!stays && step->now_ns < machine->leave_ns &&
            !jobs_have_saved(&core->jobs, machine, machine->noticed_ns))
            continue;
        machine->noticed_ns = machine->leave_ns = 0;
        any = true;
        if (!stays)
            stop_tasks(core, step, machine, (struct fault *)fault_of_machine(step->health, machine->name));
    }
    if (any)
        core_leaving_restored(core);
    return any;
}

/* Returns whether tasks may run on a machine in this state. */
static bool may_work(enum isolation isolation)
{
    return !isolation_is_out(isolation) || isolation == ISOLATION_DRAINING;
}

bool core_isolate(struct core *core, struct step *step)
{
    struct health_order order;
    bool any = false;
    if (core->fault_table_version != object_kind_version(core->objects, OBJECT_FAULT_TABLE))
        core_read_fault_table(core);
    while (health_next_order(step, &order)) {
        any = true;
        if (order.place.len) {
            repairs_watch_place(step, order.place);
            continue;
        }
        if (order.restart) {
            vacate(core, step, &order);
            continue;
        }
        bool works = may_work(order.machine->isolation);
        bool worse = order.isolation != order.machine->isolation &&
                     isolation_join(order.isolation, order.machine->isolation) == order.isolation;
        if (order.isolation != order.machine->isolation)
            isolate(step, &order);
        tell(step, &order);
        if (worse && order.isolation == ISOLATION_SUSPECT && order.fault && !order.held_back)
            core_sub_health(core, step, order.machine, order.fault);
        if (order.isolation == ISOLATION_QUARANTINED && works)
            vacate(core, step, &order);
        else if (order.isolation == ISOLATION_DRAINING && works && !order.fault) {
            jobs_replace(step, order.machine, STR("it is to be free for maintenance"));
            /* the maintenance waits for its notice */
            jobs_notice_drain(step, order.machine, DRAIN_MAINTENANCE);
        }
        repairs_watch(step, order.machine);
    }
    return end_leaving(core, step) || any;
}
