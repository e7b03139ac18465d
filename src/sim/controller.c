/* controller.c - the controller's host: what src/host/controller does with sockets and SQLite, in the
 * simulated world.
 *
 * A turn looks at timers, then appends everything that is queued in one commit and is blocked until it is
 * durable; then each event is applied and its effects leave, in order. */
#include "sim/world.h"

#include "base/hash.h"
#include "base/units.h"

#define FULL_RETRY_NS  (200 * NS_PER_MS)
#define TURN_DELAY_NS  (200 * NS_PER_US)
#define RESTART_MIN_NS (5 * NS_PER_MS)
#define RESTART_MAX_NS (4 * NS_PER_SECOND)

int64_t controller_stamp(const struct world *world)
{
    int64_t wall_ns = clock_at(&world->controller.wall, world->now_ns);
    int64_t last_ns = core_now(world->controller.core);
    return wall_ns > last_ns ? wall_ns : last_ns;
}

int64_t controller_mono(const struct world *world)
{
    return clock_at(&world->controller.mono, world->now_ns);
}

bool controller_reads(const struct world *world)
{
    const struct sim_controller *controller = &world->controller;
    return controller->core && controller->listening && !controller->paused && !controller->syncing;
}

/* --- the queue -------------------------------------------------------------------------------- */

struct pending *controller_queue(struct world *world, enum event_kind kind)
{
    struct pending *pending = mem_alloc(sizeof(*pending));
    pending->event.kind = kind;
    world->controller.tick_queued |= kind == EVENT_TICK;
    vec_push(&world->controller.queue, pending);
    controller_turn_soon(world);
    return pending;
}

static void pending_free(struct pending *pending)
{
    arena_done(&pending->arena);
    mem_free(pending);
}

static void arm_turn(struct world *world, int64_t true_ns)
{
    struct sim_controller *controller = &world->controller;
    if (controller->turn_ns <= true_ns)
        return;
    controller->turn_ns = true_ns;
    world_at(world, true_ns, SIM_CONTROLLER_TURN, 0, controller->life, ++controller->turn_number);
}

void controller_turn_soon(struct world *world)
{
    arm_turn(world, world->now_ns + world_draw(world, 0, TURN_DELAY_NS));
}

/* --- effects ---------------------------------------------------------------------------------- */

static void send_start(struct world *world, const struct task *task)
{
    oracle_told_start(world, task);
    struct conn *conn = link_conn(world, task->machine);
    if (!conn)
        return;
    struct arena arena ARENA_CLEANUP = {0};
    struct from_controller message = {.kind = FROM_CONTROLLER_START};
    task_launch_build(task, core_cluster(world->controller.core), &arena, &message.start);
    net_send_controller(world, conn, &message);
}

static void send_to(struct world *world, machine_id machine, const struct from_controller *message)
{
    struct conn *conn = link_conn(world, machine);
    if (conn)
        net_send_controller(world, conn, message);
}

static void send_rejoin(struct world *world, const struct task *task)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct from_controller message = {.kind = FROM_CONTROLLER_REJOIN};
    task_rejoin_build(task, core_cluster(world->controller.core), &arena, &message.rejoin);
    send_to(world, task->machine, &message);
}

static void carry_out(struct world *world, const struct pending *pending, const struct effect *effect)
{
    struct from_controller message = {0};
    switch (effect->kind) {
    case EFFECT_REPLY:
        client_reply(world, pending, effect);
        break;
    case EFFECT_CHANGED:
    case EFFECT_WARNING:
        break;
    case EFFECT_TASK_START:
        send_start(world, effect->start);
        break;
    case EFFECT_TASK_STOP:
        message.kind = FROM_CONTROLLER_STOP;
        message.stop = effect->stop.stop;
        send_to(world, effect->stop.machine, &message);
        break;
    case EFFECT_TASK_NOTICE:
        message.kind = FROM_CONTROLLER_NOTICE;
        message.notice = effect->notice.notice;
        send_to(world, effect->notice.machine, &message);
        break;
    case EFFECT_TASK_REJOIN:
        send_rejoin(world, effect->rejoin);
        break;
    case EFFECT_TASK_FORGET:
        message.kind = FROM_CONTROLLER_FORGET;
        message.task = effect->forget.task;
        send_to(world, effect->forget.machine, &message);
        break;
    case EFFECT_ERRAND_START:
        message.kind = FROM_CONTROLLER_ERRAND_START;
        message.errand_start = effect->errand_start.start;
        send_to(world, effect->errand_start.machine, &message);
        break;
    case EFFECT_SAY_AGAIN:
        message.kind = FROM_CONTROLLER_SAY_AGAIN;
        send_to(world, effect->say_again.machine, &message);
        break;
    case EFFECT_ERRAND_STOP:
        message.kind = FROM_CONTROLLER_ERRAND_STOP;
        message.number = effect->errand_stop.errand;
        send_to(world, effect->errand_stop.machine, &message);
        break;
    }
}

static void carry_out_all(struct world *world, const struct pending *pending)
{
    struct effects *effects = &world->controller.effects;
    if (pending->event.kind == EVENT_MACHINE_HELLO)
        link_hello_applied(world, pending);
    for (size_t i = 0; i < effects->list.len; i++)
        carry_out(world, pending, &effects->list.items[i]);
    struct conn *conn = pending->event.kind == EVENT_REPORTS ? net_find(world, pending->conn) : NULL;
    if (conn && conn->controller_open) {
        struct from_controller ack = {.kind = FROM_CONTROLLER_REPORTS_ACK,
                                      .number = pending->event.reports.reports.number};
        net_send_controller(world, conn, &ack);
    }
}

/* --- the commit ------------------------------------------------------------------------------- */

/* PLANT_FORGET_RELEASE: the chips of the first task that is reported ended stay taken. */
static void plant_keep_chips(struct world *world, const struct event *event, const struct task **ret_task,
                             uint64_t *ret_chips)
{
    *ret_task = NULL;
    if (world->options.plant != PLANT_FORGET_RELEASE || event->kind != EVENT_REPORTS)
        return;
    for (size_t i = 0; i < event->reports.reports.count; i++) {
        const struct task_report *report = &event->reports.reports.items[i];
        const struct task *task = jobs_find_task(core_jobs(world->controller.core), report->task);
        if (report->kind != REPORT_EXITED || !task || !task->holds || !task->chips)
            continue;
        *ret_task = task;
        *ret_chips = task->chips;
        struct machine *machine = &core_cluster(world->controller.core)->machines[task->machine];
        world_trace(world, "planted: m-%u keeps chips %llx", machine->id + 1,
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

/* PLANT_QUOTA_TWICE, PLANT_SKIP_FINALIZER: as if the step had done so. */
static void plant_after(struct world *world)
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

/* PLANT_IGNORE_RESERVATION: during a step rooms of preemptors are kept for nobody. */
struct hidden_room {
    obj_id jobset;
    struct room *rooms;
    size_t count;
};
typedef VEC(struct hidden_room) hidden_rooms;

static void plant_hide(struct world *world, hidden_rooms *hidden)
{
    struct job_store *store = (struct job_store *)core_jobs(world->controller.core);
    for (size_t i = 0; world->options.plant == PLANT_IGNORE_RESERVATION && i < store->jobsets.len; i++) {
        struct jobset *jobset = store->jobsets.items[i];
        const struct workload *workload = workload_of(core_admit(world->controller.core), jobset->uid);
        if (!jobset->reserved_count || !workload || workload->state != WORKLOAD_HOLDING)
            continue;
        struct hidden_room room = {jobset->uid, jobset->reserved, jobset->reserved_count};
        vec_push(hidden, room);
        jobset->reserved = NULL;
        jobset->reserved_count = 0;
        store->reserving--;
    }
}

static void plant_show(struct world *world, hidden_rooms *hidden)
{
    struct job_store *store = (struct job_store *)core_jobs(world->controller.core);
    for (size_t i = 0; i < hidden->len; i++) {
        struct hidden_room *room = &hidden->items[i];
        struct jobset *jobset = jobs_find_uid(store, room->jobset);
        const struct workload *workload = workload_of(core_admit(world->controller.core), room->jobset);
        if (!jobset || jobset->reserved_count || !workload || workload->state != WORKLOAD_HOLDING) {
            mem_free(room->rooms);
            continue;
        }
        jobset->reserved = room->rooms;
        jobset->reserved_count = room->count;
        store->reserving++;
    }
    vec_done(hidden);
}

static void apply_one(struct world *world, const struct pending *pending)
{
    struct core *core = world->controller.core;
    const struct task *kept;
    uint64_t chips;
    machine_id machine = 0;
    plant_keep_chips(world, &pending->event, &kept, &chips);
    if (kept)
        machine = kept->machine;
    oracle_before(world, &pending->event);
    hidden_rooms hidden = {0};
    plant_hide(world, &hidden);
    core_step(core, &pending->event, &world->controller.effects);
    plant_show(world, &hidden);
    if (kept)
        core_cluster(core)->machines[machine].free_mask &= ~chips;
    plant_after(world);
    oracle_applied(world, &pending->event);
    carry_out_all(world, pending);
}

static void apply(struct world *world, size_t count)
{
    struct sim_controller *controller = &world->controller;
    for (size_t i = 0; i < count && !world_failed(world); i++)
        apply_one(world, controller->queue.items[i]);
}

static void drop_queued(struct world *world, size_t count)
{
    struct sim_controller *controller = &world->controller;
    for (size_t i = 0; i < count; i++) {
        if (controller->queue.items[i]->event.kind == EVENT_TICK)
            controller->tick_queued = false;
        pending_free(controller->queue.items[i]);
    }
    memmove(controller->queue.items, controller->queue.items + count,
            (controller->queue.len - count) * sizeof(*controller->queue.items));
    controller->queue.len -= count;
}

/* On a full disk writes are refused at once; what agents said waits, because they will not say it again. */
static void refuse_writes(struct world *world)
{
    struct sim_controller *controller = &world->controller;
    size_t kept = 0;
    for (size_t i = 0; i < controller->queue.len; i++) {
        struct pending *pending = controller->queue.items[i];
        if (pending->event.kind == EVENT_WRITE)
            pending_free(pending);
        else
            controller->queue.items[kept++] = pending;
    }
    controller->queue.len = kept;
}

static void commit(struct world *world)
{
    struct sim_controller *controller = &world->controller;
    if (controller->queue.len == 0)
        return;
    if (world->disk.full) {
        refuse_writes(world);
        arm_turn(world, world->now_ns + FULL_RETRY_NS);
        return;
    }
    int64_t stamp_ns = controller_stamp(world);
    size_t count = controller->queue.len;
    for (size_t i = 0; i < count; i++) {
        struct event *event = &controller->queue.items[i]->event;
        event->seq = world->disk.log.len + 1;
        event->stamp_ns = stamp_ns;
        disk_append(&world->disk, event);
    }
    controller->syncing = count;
    world_after(world, world_draw(world, world->swarm.sync_min_ns, world->swarm.sync_max_ns),
                SIM_CONTROLLER_SYNCED, 0, controller->life, 0);
    if (world->options.plant == PLANT_APPLY_BEFORE_LOG)
        apply(world, count);
}

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void arm_timers(struct world *world)
{
    const struct sim_controller *controller = &world->controller;
    int64_t mono_ns = earliest(link_deadline(world), steps_deadline(world));
    mono_ns = earliest(mono_ns, controller->hold_over_ns);
    if (mono_ns != INT64_MAX)
        arm_turn(world, clock_when(&controller->mono, mono_ns));
    int64_t wall_ns = core_deadline(controller->core);
    if (wall_ns != INT64_MAX && !controller->tick_queued) {
        int64_t due_ns = clock_when(&controller->wall, wall_ns);
        arm_turn(world, due_ns > world->now_ns ? due_ns : world->now_ns + NS_PER_MS);
    }
}

void controller_turn(struct world *world, const struct sim_event *event)
{
    struct sim_controller *controller = &world->controller;
    if (!controller->core || event->id != controller->life || event->number != controller->turn_number)
        return;
    controller->turn_ns = INT64_MAX;
    if (controller->paused || controller->syncing)
        return; /* looks again when it runs */
    if (controller->listening) {
        link_follow_hold(world);
        link_check_leases(world);
        steps_flush(world, false);
        if (!controller->tick_queued &&
            core_deadline(controller->core) <= clock_at(&controller->wall, world->now_ns))
            controller_queue(world, EVENT_TICK);
    }
    commit(world);
    if (!controller->syncing && controller->listening)
        arm_timers(world);
}

void controller_resume(struct world *world, const struct sim_event *event)
{
    if (event->id != world->controller.life)
        return;
    world->controller.paused = false;
    controller_turn_soon(world);
    net_unblock(world);
}

void controller_synced(struct world *world, const struct sim_event *event)
{
    struct sim_controller *controller = &world->controller;
    if (!controller->core || event->id != controller->life)
        return;
    disk_synced(&world->disk);
    size_t count = controller->syncing;
    if (world->options.plant != PLANT_APPLY_BEFORE_LOG)
        apply(world, count);
    controller->syncing = 0;
    drop_queued(world, count);
    if (!controller->listening) {
        controller->listening = true;
        controller->snapshot_seq = core_seq(controller->core);
        link_boot(world);
    }
    if (core_seq(controller->core) - controller->snapshot_seq >= world->swarm.snapshot_every) {
        controller->snapshot_seq = core_seq(controller->core);
        disk_snapshot(world);
    }
    controller_turn_soon(world);
    net_unblock(world);
    client_unblock(world);
}

void controller_request(struct world *world, struct request *request)
{
    struct pending *pending = controller_queue(world, EVENT_WRITE);
    pending->event.write = request->write;
    pending->arena = request->arena; /* taken over */
    request->arena = (struct arena){0};
    pending->request = request->id;
}

/* --- start and crash -------------------------------------------------------------------------- */

static void queue_cluster(struct world *world)
{
    struct pending *pending = controller_queue(world, EVENT_CLUSTER);
    pending->event.cluster.document = arena_str(&pending->arena, buf_str(&world->cluster_json));
}

void controller_start(struct world *world)
{
    struct sim_controller *controller = &world->controller;
    controller->start_due = false;
    if (controller->core)
        return;
    if (world->disk.full && !world->healing) { /* it cannot even write that it is there */
        controller->start_due = true;
        world_after(world, NS_PER_SECOND, SIM_CONTROLLER_START, 0, 0, 0);
        return;
    }
    controller->life++;
    controller->core = core_new();
    controller->turn_ns = INT64_MAX;
    controller->listening = controller->paused = false;
    controller->hold_number = 0;
    controller->hold_over_ns = INT64_MAX;
    controller->syncing = 0;
    world->outcome->boots++;
    bool from_snapshot = world_chance(world, 700000);
    if (!disk_replay(world, from_snapshot, controller->core))
        return;
    world_trace(world, "controller starts: record %llu%s", (unsigned long long)core_seq(controller->core),
                from_snapshot ? ", from a snapshot" : "");
    oracle_restarted(world);
    struct pending *pending = controller_queue(world, EVENT_BOOT);
    pending->event.boot.epoch = core_epoch(controller->core) + 1;
    pending->event.boot.version = STR("torture");
    pending->event.boot.identity = hash_mix(world->options.seed);
    if (core_cluster(controller->core)->machine_count == 0 || world_chance(world, 100000))
        queue_cluster(world);
}

static void free_state(struct world *world)
{
    struct sim_controller *controller = &world->controller;
    drop_queued(world, controller->queue.len);
    core_free(controller->core);
    controller->core = NULL;
    vec_done(&controller->links);
    steps_done(world);
}

void controller_crash(struct world *world)
{
    controller_leave(world, world_draw(world, RESTART_MIN_NS, RESTART_MAX_NS));
}

void controller_leave(struct world *world, int64_t away_ns)
{
    struct sim_controller *controller = &world->controller;
    if (!controller->core)
        return;
    world_trace(world, "controller crashes at record %llu", (unsigned long long)core_seq(controller->core));
    free_state(world);
    disk_crash(world);
    for (size_t i = world->conns.len; i-- > 0;)
        if (world->conns.items[i]->controller_open)
            net_close_controller(world, world->conns.items[i]);
    controller->start_due = true;
    world_after(world, away_ns, SIM_CONTROLLER_START, 0, 0, 0);
}

void controller_done(struct world *world)
{
    struct sim_controller *controller = &world->controller;
    if (controller->core)
        free_state(world);
    vec_done(&controller->queue);
    vec_done(&controller->steps);
    vec_done(&controller->effects.list);
}
