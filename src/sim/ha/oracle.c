/* oracle.c - invariants, whatever any controller believes. */
#include "sim/ha/world.h"

#include "base/hash.h"

enum { DIGEST_EVERY = 8, INVARIANTS_EVERY = 4 };

/* --- etcd's side ------------------------------------------------------------------------------ */

struct head_put {
    struct ha_world *world;
    uint64_t chain;
};

static void add_to_history(void *context, const struct drive_record *record)
{
    struct head_put *put = context;
    struct ha_record entry = {.hash = ha_record_hash(record)};
    put->chain = entry.chain = hash_mix(put->chain ^ entry.hash);
    if (record->seq != put->world->history.len + 1)
        ha_fail(put->world, TORTURE_SAFETY, "record %llu is appended behind record %zu",
                (unsigned long long)record->seq, put->world->history.len);
    vec_push(&put->world->history, entry);
}

/* Checks that only the holder of the leader key appends, whatever the transaction compared. */
static void check_writer(struct ha_world *world, const struct ha_message *message)
{
    const struct sim_pair *key = sim_pair_find(&world->etcd.pairs, SIM_LEADER, 0);
    struct sim_leader leader = {0};
    if (key)
        memcpy(&leader, key->value.data, sizeof(leader));
    if (!key || leader.controller != message->controller || leader.life != message->life)
        ha_fail(world, TORTURE_SAFETY, "c-%u appends, but it does not lead", message->controller + 1);
}

void ha_oracle_head(struct ha_world *world, const struct ha_message *message, const struct sim_op *put)
{
    struct sim_head head;
    struct head_put visit = {.world = world};
    memcpy(&head, put->value.data, sizeof(head));
    check_writer(world, message);
    if (head.last < world->history.len || head.base > head.last)
        ha_fail(world, TORTURE_SAFETY, "c-%u makes the log end with record %llu, where it has %zu",
                message->controller + 1, (unsigned long long)head.last, world->history.len);
    if (world->history.len > 0)
        visit.chain = world->history.items[world->history.len - 1].chain;
    if (head.last == world->history.len || ha_failed(world))
        return;
    /* The group is the one that this transaction has completed: its last part was put before the head. */
    uint64_t first = world->history.len + 1;
    sim_pairs group = {0};
    size_t next = 0;
    for (size_t i = 0; i < world->etcd.pairs.len; i++)
        if (world->etcd.pairs.items[i].kind == SIM_GROUP &&
            world->etcd.pairs.items[i].number >= ha_group_key(first, 0))
            vec_push(&group, world->etcd.pairs.items[i]);
    if (!ha_group_visit(&group, first, &next, add_to_history, &visit))
        ha_fail(world, TORTURE_SAFETY, "record %llu: its group is not whole", (unsigned long long)first);
    else if (world->history.len != head.last || visit.chain != head.chain)
        ha_fail(world, TORTURE_SAFETY, "the head names record %llu, and the log has %zu",
                (unsigned long long)head.last, world->history.len);
    vec_done(&group);
}

/* --- controllers' side ------------------------------------------------------------------------ */

static void check_digest(struct ha_controller *controller, struct ha_record *entry)
{
    uint64_t digest = core_digest(controller->core), seq = core_seq(controller->core);
    if (entry->digest && entry->digest != digest)
        ha_fail(controller->world, TORTURE_REPLAY, "c-%u has another state than others at record %llu",
                controller->index + 1, (unsigned long long)seq);
    entry->digest = digest;
}

/* Checks that epochs grow from boot to boot, with the first controller that applies a boot record. */
static void check_epoch(struct ha_controller *controller, const struct event *event)
{
    struct ha_world *world = controller->world;
    if (event->kind != EVENT_BOOT || event->seq <= world->epoch_seq)
        return;
    if (event->boot.epoch <= world->epoch)
        ha_fail(world, TORTURE_SAFETY, "c-%u boots with epoch %llu after one with %llu",
                controller->index + 1, (unsigned long long)event->boot.epoch,
                (unsigned long long)world->epoch);
    world->epoch = event->boot.epoch;
    world->epoch_seq = event->seq;
}

void ha_oracle_applied(struct ha_controller *controller, const struct drive_record *record,
                       const struct event *event)
{
    struct ha_world *world = controller->world;
    if (record->seq > world->history.len) {
        ha_fail(world, TORTURE_SAFETY, "c-%u has applied record %llu, and the log ends with %zu",
                controller->index + 1, (unsigned long long)record->seq, world->history.len);
        return;
    }
    struct ha_record *entry = &world->history.items[record->seq - 1];
    if (entry->hash != ha_record_hash(record)) {
        ha_fail(world, TORTURE_SAFETY, "c-%u has applied another record %llu than the log holds",
                controller->index + 1, (unsigned long long)record->seq);
        return;
    }
    if (event) {
        check_epoch(controller, event);
        if (event->kind == EVENT_LEVEL)
            ha_reach(world, HA_LEVEL);
        if (world->options.trace) {
            struct buf text BUF_CLEANUP = {0};
            record_describe(&text, event);
            ha_trace(world, "c-%u: record %llu: %.200s", controller->index + 1,
                     (unsigned long long)event->seq, text.data);
        }
    }
    if (event ? record->seq % INVARIANTS_EVERY == 0 : record->seq % DIGEST_EVERY == 0)
        core_check_invariants(controller->core);
    if (record->seq % DIGEST_EVERY == 0)
        check_digest(controller, entry);
}

/* --- machines --------------------------------------------------------------------------------- */

/* Checks that a machine is taken for lost only if no task that the controller believes to run lives there. */
void ha_oracle_before(struct ha_controller *controller, const struct event *event)
{
    struct ha_world *world = controller->world;
    if (event->kind != EVENT_MACHINE_GONE && event->kind != EVENT_MACHINE_SILENT)
        return;
    const struct machine *known = cluster_find(core_cluster(controller->core), event->machine.machine);
    if (!known || (known->state != MACHINE_READY && known->state != MACHINE_AWAY))
        return;
    for (uint32_t m = 0; m < HA_MACHINES; m++) {
        const struct ha_machine *machine = &world->machines[m];
        for (size_t i = 0; i < machine->processes.len && str_is(event->machine.machine, machine->name); i++) {
            const struct ha_process *process = machine->processes.items[i];
            const struct task *task = jobs_find_task(core_jobs(controller->core), process->task);
            if (process->lives && task && !task_ended(task->state))
                ha_fail(world, TORTURE_SAFETY, "c-%u takes %s for lost (%s) while " STR_FORMAT " lives there",
                        controller->index + 1, machine->name,
                        event->kind == EVENT_MACHINE_GONE ? "gone" : "silent", STR_ARG(process->launch.name));
        }
    }
}

void ha_oracle_spawned(struct ha_world *world, const struct ha_machine *machine,
                       const struct ha_process *process)
{
    for (uint32_t m = 0; m < HA_MACHINES; m++)
        for (size_t i = 0; i < world->machines[m].processes.len; i++) {
            const struct ha_process *other = world->machines[m].processes.items[i];
            if (!other->lives || other == process)
                continue;
            if (m == machine->index && (other->launch.chips & process->launch.chips))
                ha_fail(world, TORTURE_SAFETY, "chips %llx of %s are held by " STR_FORMAT " and " STR_FORMAT,
                        (unsigned long long)(other->launch.chips & process->launch.chips), machine->name,
                        STR_ARG(other->launch.name), STR_ARG(process->launch.name));
            if (other->launch.jobset == process->launch.jobset && other->launch.rank == process->launch.rank)
                ha_fail(world, TORTURE_SAFETY,
                        STR_FORMAT " begins on %s while " STR_FORMAT ", of the same rank, lives on %s",
                        STR_ARG(process->launch.name), machine->name, STR_ARG(other->launch.name),
                        world->machines[m].name);
        }
}

/* Checks that acknowledged writes of clients exist. */
static void check_promises(const struct ha_controller *controller)
{
    struct ha_world *world = controller->world;
    for (uint32_t i = 0; i < world->swarm.clients; i++)
        for (uint32_t s = 0; s < HA_SLOTS; s++) {
            const struct ha_slot *slot = &world->clients[i].slots[s];
            uint64_t version = 0;
            const struct jobset *jobset =
                jobs_find(core_jobs(controller->core), STR("default"), str_from(slot->name));
            const struct object *object = object_find(core_objects(controller->core), OBJECT_CONFIG_MAP,
                                                      STR("default"), str_from(slot->name));
            if (slot->kind == OBJECT_JOBSET && jobset)
                version = jobset->changed_seq;
            else if (slot->kind == OBJECT_CONFIG_MAP && object)
                version = object->changed_seq;
            if (slot->promised && (version == 0 || version < slot->version))
                ha_fail(world, TORTURE_SAFETY, "%s was acknowledged as of record %llu and is lost in c-%u",
                        slot->name, (unsigned long long)slot->version, controller->index + 1);
        }
}

void ha_oracle_opened(struct ha_controller *controller)
{
    if (controller->opened || !driver_is_open(controller->driver) || ha_failed(controller->world))
        return;
    controller->opened = true;
    core_check_invariants(controller->core);
    check_digest(controller, &controller->world->history.items[core_seq(controller->core) - 1]);
    if (core_seq(controller->core) == controller->world->history.len)
        check_promises(controller);
}

/* --- the end ---------------------------------------------------------------------------------- */

static bool machines_ready(const struct ha_controller *leader, char *ret_why, size_t size)
{
    const struct cluster *cluster = core_cluster(leader->core);
    for (size_t i = 0; i < cluster->machine_count; i++)
        if (cluster->machines[i].state != MACHINE_READY) {
            snprintf(ret_why, size, STR_FORMAT " is not ready in c-%u", STR_ARG(cluster->machines[i].name),
                     leader->index + 1);
            return false;
        }
    return true;
}

bool ha_oracle_alive(struct ha_world *world, char *ret_why, size_t size)
{
    uint32_t leaders = 0;
    for (uint32_t i = 0; i < world->swarm.controllers; i++) {
        const struct ha_controller *controller = &world->controllers[i];
        leaders += controller->state == HA_LEADS && driver_is_open(controller->driver);
        if (controller->state < HA_FOLLOWS || core_seq(controller->core) != world->history.len) {
            snprintf(ret_why, size, "c-%u is at record %llu of %zu", i + 1,
                     controller->core ? (unsigned long long)core_seq(controller->core) : 0,
                     world->history.len);
            return false;
        }
    }
    if (leaders != 1) {
        const struct sim_pair *key = sim_pair_find(&world->etcd.pairs, SIM_LEADER, 0);
        struct sim_leader leader = {0};
        if (key)
            memcpy(&leader, key->value.data, sizeof(leader));
        snprintf(ret_why, size, "%u controllers lead, and %s%u has the leader key", leaders,
                 key ? "c-" : "nobody, c-", key ? leader.controller + 1 : 0);
        return false;
    }
    for (uint32_t i = 0; i < world->swarm.controllers; i++)
        if (world->controllers[i].state == HA_LEADS && !machines_ready(&world->controllers[i], ret_why, size))
            return false;
    snprintf(ret_why, size, "no write is acknowledged");
    return world->written >= 2;
}

void ha_oracle_final(struct ha_world *world)
{
    for (uint32_t i = 0; i < world->swarm.controllers; i++) {
        struct ha_controller *controller = &world->controllers[i];
        core_check_invariants(controller->core);
        check_digest(controller, &world->history.items[core_seq(controller->core) - 1]);
        check_promises(controller);
    }
    world->outcome->digest = core_digest(world->controllers[0].core);
}
