/* plant.c - bugs planted around the driver, to verify that they are caught: in calls between the driver and
 * its ports, and in the core between two steps. */
#include "core/gang/trial.h"
#include "sim/world.h"

/* --- around a step ---------------------------------------------------------------------------- */

/* PLANT_FORGET_RELEASE: the chips of the first task that is reported as ended stay taken. */
static void keep_chips(struct world *world, const struct event *event)
{
    struct planted *planted = &world->controller.planted;
    planted->chips = 0;
    if (world->options.plant != PLANT_FORGET_RELEASE || event->kind != EVENT_REPORTS)
        return;
    for (size_t i = 0; i < event->reports.reports.count; i++) {
        const struct task_report *report = &event->reports.reports.items[i];
        const struct task *task = jobs_find_task(core_jobs(world->controller.core), report->task);
        if (report->kind != REPORT_EXITED || !task || !task->holds || !task->chips)
            continue;
        planted->machine = task->machine;
        planted->chips = task->chips;
        world_trace(world, "planted: m-%u keeps chips %llx", task->machine + 1,
                    (unsigned long long)task->chips);
        return;
    }
}

static void find_booked(void *context, const struct workload *workload)
{
    const struct workload **booked = context;
    if (workload->state == WORKLOAD_ADMITTED && workload->booked.len && workload->booked.items[0].amount)
        *booked = workload;
}

static void find_deleted(void *context, const struct object *object)
{
    if (object->deleted_ns)
        *(const struct object **)context = object;
}

/* PLANT_QUOTA_TWICE, PLANT_SKIP_FINALIZER: change the state as if the step had done so. */
static void undo_some(struct world *world)
{
    struct core *core = world->controller.core;
    const struct workload *booked = NULL;
    const struct object *deleted = NULL;
    if (world->options.plant == PLANT_QUOTA_TWICE)
        workload_visit(core_admit(core), find_booked, &booked);
    if (booked)
        booked->booked.items[0].amount--;
    if (world->options.plant == PLANT_SKIP_FINALIZER)
        object_visit(core_objects(core), OBJECT_CONFIG_MAP, STR(""), find_deleted, &deleted);
    if (deleted)
        doc_unset(doc_get(deleted->document, "metadata"), "finalizers");
}

/* PLANT_IGNORE_RESERVATION: hides the reservations of preemptors during a step. */
static void hide_rooms(struct world *world)
{
    struct job_store *store = (struct job_store *)core_jobs(world->controller.core);
    for (size_t i = 0; world->options.plant == PLANT_IGNORE_RESERVATION && i < store->jobsets.len; i++) {
        struct jobset *jobset = store->jobsets.items[i];
        const struct workload *workload = workload_of(core_admit(world->controller.core), jobset->uid);
        if (!jobset->grant.reserved_count || !workload || workload->state != WORKLOAD_HOLDING)
            continue;
        struct hidden_room room = {jobset->uid, NULL, jobset->grant.reserved_count};
        room.rooms = mem_alloc(room.count * sizeof *room.rooms);
        mem_copy(room.rooms, jobset->grant.reserved, room.count * sizeof *room.rooms);
        vec_push(&world->controller.planted.hidden, room);
        jobset_keep_reserved(store, jobset, NULL, 0);
    }
}

static void show_rooms(struct world *world)
{
    hidden_rooms *hidden = &world->controller.planted.hidden;
    struct job_store *store = (struct job_store *)core_jobs(world->controller.core);
    for (size_t i = 0; i < hidden->len; i++) {
        struct hidden_room *room = &hidden->items[i];
        struct jobset *jobset = jobs_find_uid(store, room->jobset);
        const struct workload *workload = workload_of(core_admit(world->controller.core), room->jobset);
        if (jobset && !jobset->grant.reserved_count && workload && workload->state == WORKLOAD_HOLDING)
            jobset_keep_reserved(store, jobset, room->rooms, room->count);
        mem_free(room->rooms);
    }
    vec_clear(hidden);
}

void plant_before_step(struct world *world, const struct event *event)
{
    keep_chips(world, event);
    hide_rooms(world);
}

void plant_after_step(struct world *world)
{
    const struct planted *planted = &world->controller.planted;
    show_rooms(world);
    if (planted->chips)
        core_cluster(world->controller.core)->machines[planted->machine].free_mask &= ~planted->chips;
    undo_some(world);
}

/* --- around a start --------------------------------------------------------------------------- */

static struct lease_hold *hold_of(struct world *world)
{
    return (struct lease_hold *)core_lease_hold(world->controller.core);
}

/* PLANT_FORGET_HOLD: hides the hold that the previous controller granted when the driver opens and leases
 * begin. The first reading of the clock after that is by the sessions. */
void plant_hide_hold(struct world *world)
{
    struct planted *planted = &world->controller.planted;
    if (world->options.plant != PLANT_FORGET_HOLD || planted->opened || !controller_is_open(world))
        return;
    planted->opened = true;
    planted->owed_ns = hold_of(world)->owed_ns;
    hold_of(world)->owed_ns = 0;
}

void plant_show_hold(struct world *world)
{
    struct planted *planted = &world->controller.planted;
    if (planted->owed_ns)
        hold_of(world)->owed_ns = planted->owed_ns;
    planted->owed_ns = 0;
}

/* --- around a message ------------------------------------------------------------------------- */

/* PLANT_LOSE_READINESS: everything else in the reports arrives. */
static void lose_readiness(struct world *world, struct reports *reports)
{
    for (size_t i = 0; world->options.plant == PLANT_LOSE_READINESS && i < reports->count; i++)
        if (reports->items[i].kind == REPORT_STARTED && world_chance(world, 200000))
            reports->items[i].not_ready = true;
}

bool plant_message(struct world *world, struct conn *conn, struct from_agent *message)
{
    if (message->kind != FROM_AGENT_REPORTS)
        return false;
    if (world->options.plant == PLANT_LOSE_REPORT && world_chance(world, 50000)) {
        struct from_controller ack = {.kind = FROM_CONTROLLER_REPORTS_ACK, .number = message->reports.number};
        world_trace(world, "planted: reports %llu of m-%u are lost",
                    (unsigned long long)message->reports.number, conn->machine + 1);
        net_send_controller(world, conn, &ack);
        return true;
    }
    lose_readiness(world, &message->reports);
    return false;
}

/* PLANT_START_BEFORE_DEAD: the tethers of an agent that ended count as closed with its connection. */
void plant_closed(struct world *world, uint32_t machine)
{
    if (world->options.plant != PLANT_START_BEFORE_DEAD)
        return;
    for (size_t i = world->conns.len; i-- > 0;) {
        struct conn *conn = world->conns.items[i];
        if (conn->machine != machine || !conn->tether || !conn->controller_open)
            continue;
        driver_closed(world->controller.driver, conn->id, true, "planted");
        net_close_controller(world, conn);
    }
}
