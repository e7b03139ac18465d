/* oracle.c - invariants seen from outside: from the processes that really live and the records that really
 * were applied, whatever the core and the agents believe. */
#include "sim/world.h"

#include "base/hash.h"

enum { DIGEST_EVERY = 61, SETTLED_EVERY = 97 };

/* --- processes -------------------------------------------------------------------------------- */

void oracle_spawned(struct world *world, const struct sim_machine *machine, const struct process *process)
{
    for (uint32_t m = 0; m < world->swarm.machines; m++) {
        const struct sim_machine *other_machine = &world->machines[m];
        for (size_t i = 0; i < other_machine->processes.len; i++) {
            const struct process *other = other_machine->processes.items[i];
            if (process_lives(other) && other->task == process->task && other_machine != machine)
                world_fail(world, TORTURE_SAFETY,
                           "a container of " STR_FORMAT " begins on %s while another lives on %s",
                           STR_ARG(process->launch.name), machine->name, other_machine->name);
            if (!process_lives(other) || other->task == process->task)
                continue;
            if (other_machine == machine && (other->chips & process->chips))
                world_fail(world, TORTURE_SAFETY,
                           "chips %llx of %s are held by " STR_FORMAT " and " STR_FORMAT,
                           (unsigned long long)(other->chips & process->chips), machine->name,
                           STR_ARG(other->launch.name), STR_ARG(process->launch.name));
            if (other->name_hash == process->name_hash)
                world_fail(world, TORTURE_SAFETY,
                           STR_FORMAT " begins on %s while " STR_FORMAT ", of the same name, lives on %s",
                           STR_ARG(process->launch.name), machine->name, STR_ARG(other->launch.name),
                           other_machine->name);
        }
    }
}

void oracle_fence(struct world *world, const struct sim_machine *machine)
{
    int64_t fence_ns = clock_when(&machine->boot, (int64_t)machine->fence_boot_ns);
    if (machine->held && machine->fence_boot_ns && fence_ns < world->hold.until_ns &&
        world->now_ns < world->hold.until_ns)
        world_fail(world, TORTURE_SAFETY,
                   "tasks on %s end by their fence at %.3f s, before the hold that it has confirmed is over",
                   machine->name, (double)fence_ns / 1e9);
}

static uint64_t task_name_hash(const struct task *task)
{
    return hash64(task->job->jobset->uid, task->hostname.data, task->hostname.len);
}

void oracle_takes_rank(struct world *world, const struct sim_machine *machine, const struct process *spare)
{
    if (!spare->told_name)
        return; /* replicas are away, or were at its start: oracle_rejoined() checks */
    for (uint32_t m = 0; m < world->swarm.machines; m++)
        for (size_t i = 0; i < world->machines[m].processes.len; i++) {
            const struct process *other = world->machines[m].processes.items[i];
            if (other != spare && process_lives(other) && !other->spare &&
                other->name_hash == spare->told_name)
                world_fail(world, TORTURE_SAFETY,
                           STR_FORMAT " on %s is given rank %u while " STR_FORMAT " lives on %s",
                           STR_ARG(spare->launch.name), machine->name, spare->told_rank,
                           STR_ARG(other->launch.name), world->machines[m].name);
        }
}

void oracle_rejoined(struct world *world, const struct process *process)
{
    for (uint32_t m = 0; m < world->swarm.machines; m++)
        for (size_t i = 0; i < world->machines[m].processes.len; i++) {
            const struct process *other = world->machines[m].processes.items[i];
            if (other != process && process_lives(other) && other->joined && !other->spare &&
                other->jobset == process->jobset && other->attempt == process->attempt &&
                other->rank == process->rank)
                world_fail(world, TORTURE_SAFETY,
                           STR_FORMAT " and " STR_FORMAT " are both rank %u of attempt %d",
                           STR_ARG(process->launch.name), STR_ARG(other->launch.name), process->rank,
                           process->attempt);
        }
}

void oracle_told_start(struct world *world, const struct task *task)
{
    uint64_t name_hash = task_name_hash(task);
    struct str here = core_cluster(world->controller.core)->machines[task->machine].name;
    for (uint32_t m = 0; m < world->swarm.machines; m++) {
        const struct sim_machine *machine = &world->machines[m];
        if (str_is(here, machine->name))
            continue; /* its agent keeps the order of start and end */
        for (size_t i = 0; i < machine->processes.len; i++) {
            const struct process *process = machine->processes.items[i];
            if (process_lives(process) && process->name_hash == name_hash)
                world_fail(world, TORTURE_SAFETY,
                           "the controller starts " STR_FORMAT " on " STR_FORMAT " while " STR_FORMAT
                           " lives on %s",
                           STR_ARG(task->name), STR_ARG(here), STR_ARG(process->launch.name), machine->name);
        }
    }
}

static struct sim_machine *machine_of(struct world *world, struct str name)
{
    for (uint32_t m = 0; m < world->swarm.machines; m++)
        if (str_is(name, world->machines[m].name))
            return &world->machines[m];
    return NULL;
}

/* Checks that the core takes a machine for lost only if nothing that it was told to start lives there. */
void oracle_before(struct world *world, const struct event *event)
{
    oracle_before_objects(world);
    if (event->kind != EVENT_MACHINE_GONE && event->kind != EVENT_MACHINE_SILENT)
        return;
    const struct sim_machine *machine = machine_of(world, event->machine.machine);
    const struct machine *known = cluster_find(core_cluster(world->controller.core), event->machine.machine);
    if (!machine || !known || (known->state != MACHINE_READY && known->state != MACHINE_AWAY))
        return;
    for (size_t i = 0; i < machine->processes.len; i++) {
        const struct process *process = machine->processes.items[i];
        const struct task *task = jobs_find_task(core_jobs(world->controller.core), process->task);
        if (process_lives(process) && task && !task_ended(task->state))
            world_fail(world, TORTURE_SAFETY, "%s is taken for lost (%s) while " STR_FORMAT " lives there",
                       machine->name, event->kind == EVENT_MACHINE_GONE ? "gone" : "silent",
                       STR_ARG(process->launch.name));
    }
}

/* --- checkpoints ------------------------------------------------------------------------------ */

/* Returns the key of a shard. `who` is the hash of the process's host name, or the uid of its task. */
static uint64_t shard_key(obj_id jobset, int32_t attempt, uint64_t who, int64_t step)
{
    uint64_t key = hash_mix(jobset ^ hash_mix((uint64_t)attempt));
    return hash_mix(key ^ who ^ hash_mix((uint64_t)step + 77));
}

void oracle_saved(struct world *world, const struct process *process)
{
    static int present;
    uint64_t whose[] = {process->name_hash, process->task};
    for (int i = 0; i < 2; i++)
        u64_map_put(&world->shards,
                    shard_key(process->jobset, process->writes_as, whose[i], process->saved_step), &present);
}

/* Returns whether the task saved a shard of this step. The process of a spare that took a rank of a shrunk
 * world does not know its host name, so its task's uid counts too. */
static bool has_saved(const struct world *world, const struct task *task, int32_t attempt, int64_t step)
{
    obj_id jobset = task->job->jobset->uid;
    return u64_map_get(&world->shards, shard_key(jobset, attempt, task_name_hash(task), step)) ||
           (task->was_spare && u64_map_get(&world->shards, shard_key(jobset, attempt, task->uid, step)));
}

static struct committed *committed_of(struct world *world, obj_id jobset)
{
    struct committed *committed = u64_map_get(&world->committed, jobset);
    if (committed)
        return committed;
    committed = mem_alloc(sizeof(*committed));
    committed->step = -1;
    u64_map_put(&world->committed, jobset, committed);
    vec_push(&world->commits, committed);
    return committed;
}

/* Checks that every member rank has a shard of exactly this step, saved by a process of exactly this
 * attempt. */
static void check_commit(struct world *world, const struct jobset *jobset, int32_t attempt_before)
{
    const struct checkpoint_state *checkpoint = &jobset->checkpoint;
    if (checkpoint->committed_attempt < attempt_before)
        world_fail(world, TORTURE_SAFETY,
                   STR_FORMAT ": attempt %d committed a checkpoint while attempt %d is current",
                   STR_ARG(jobset->key), checkpoint->committed_attempt, attempt_before);
    if (checkpoint->committed_attempt != jobset->attempt)
        return; /* the same event ended that attempt, and its ranks no longer exist */
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            const struct task *task = job->tasks.items[t];
            if (!task->joined || task->state == TASK_FAILED || task->attempt != jobset->attempt)
                continue; /* only survivors are members of a dying checkpoint */
            if (!has_saved(world, task, checkpoint->committed_attempt, checkpoint->committed_step))
                world_fail(world, TORTURE_SAFETY,
                           STR_FORMAT ": step %lld is committed, but " STR_FORMAT " has not saved it",
                           STR_ARG(jobset->key), (long long)checkpoint->committed_step, STR_ARG(task->name));
        }
    }
}

static void check_checkpoints(struct world *world)
{
    const struct job_store *store = core_jobs(world->controller.core);
    for (size_t i = 0; i < store->jobsets.len; i++) {
        const struct jobset *jobset = store->jobsets.items[i];
        struct committed *committed = committed_of(world, jobset->uid);
        const struct checkpoint_state *now = &jobset->checkpoint;
        if (now->committed_step < committed->step)
            world_fail(world, TORTURE_SAFETY, STR_FORMAT ": the committed step fell from %lld to %lld",
                       STR_ARG(jobset->key), (long long)committed->step, (long long)now->committed_step);
        if (now->committed_step != committed->step || now->committed_attempt != committed->attempt)
            check_commit(world, jobset, committed->current);
        committed->current = jobset->attempt;
        committed->step = now->committed_step;
        committed->attempt = now->committed_attempt;
        reach_look(world, jobset, &committed->reach);
        if (jobset_finished(jobset) && !committed->finished) {
            committed->finished = true;
            world->outcome->finished++;
            world->outcome->restarts += (uint64_t)jobset->restarts;
        }
    }
}

/* --- the log ---------------------------------------------------------------------------------- */

/* Returns whether a replay must give the same state. PLANT_IGNORE_RESERVATION changes steps, and must be
 * caught by their effects instead. */
static bool replays_alike(const struct world *world)
{
    return world->options.plant != PLANT_IGNORE_RESERVATION;
}

/* Checks that nothing which this event has made possible waits for a later event. */
static void check_settled(struct world *world, const struct event *event)
{
    const struct core *core = world->controller.core;
    if (event->seq % SETTLED_EVERY != 0 || world->options.plant != PLANT_NONE || core_is_settled(core))
        return;
    struct buf text BUF_CLEANUP = {0};
    record_describe(&text, event);
    world_fail(world, TORTURE_LIVENESS, "after record %llu (%.200s) a JobSet has something left to do",
               (unsigned long long)event->seq, text.data);
}

void oracle_applied(struct world *world, const struct event *event, const struct drive_record *record)
{
    struct core *core = world->controller.core;
    CHECK(event->seq == world->applied.len + 1);
    if (world->options.trace) {
        struct buf text BUF_CLEANUP = {0};
        record_describe(&text, event);
        world_trace(world, "core %llu: %.300s", (unsigned long long)event->seq, text.data);
    }
    core_check_invariants(core);
    if (event->kind == EVENT_REPORTS || event->kind == EVENT_MACHINE_HELLO)
        world->outcome->reached[REACH_STRANGER] += core_stranger_count(core) > world->strangers;
    world->strangers = core_stranger_count(core);
    oracle_objects(world, event);
    check_checkpoints(world);
    check_settled(world, event);
    routes_judge(world);
    vec_push(&world->applied, disk_hash(record));
    bool compared = event->seq % DIGEST_EVERY == 0 && replays_alike(world);
    vec_push(&world->digests, compared ? core_digest(core) : 0);
}

/* Checks that every applied record is still in the log, byte for byte, because a client may know of it.
 * Records that were durable but not applied count as applied now. */
static void check_log(struct world *world)
{
    const struct sim_disk *disk = &world->disk;
    for (size_t i = 0; i < world->applied.len; i++) {
        if (i >= disk->log.len || disk->log.items[i].hash != world->applied.items[i]) {
            world_fail(world, TORTURE_SAFETY,
                       "record %zu was applied and its effects left, but the log has lost it", i + 1);
            return;
        }
    }
    for (size_t i = world->applied.len; i < disk->log.len; i++) {
        vec_push(&world->applied, disk->log.items[i].hash);
        vec_push(&world->digests, 0);
    }
}

void oracle_lost(struct world *world)
{
    size_t left = world->disk.log.len;
    world->applied.len = left < world->applied.len ? left : world->applied.len;
    world->digests.len = left < world->digests.len ? left : world->digests.len;
}

void oracle_restored(struct world *world)
{
    const struct job_store *store = core_jobs(world->controller.core);
    for (size_t i = 0; i < world->known.len; i++) {
        struct known_jobset *known = &world->known.items[i];
        const struct jobset *jobset = jobs_find(store, str_from(known->namespace_), str_from(known->name));
        known->deletes = known->deletes || !jobset || jobset->uid != known->uid;
    }
    for (size_t i = 0; i < store->jobsets.len; i++) {
        const struct jobset *jobset = store->jobsets.items[i];
        struct committed *committed = committed_of(world, jobset->uid);
        *committed = (struct committed){.step = jobset->checkpoint.committed_step,
                                        .attempt = jobset->checkpoint.committed_attempt,
                                        .current = jobset->attempt,
                                        .finished = jobset_finished(jobset),
                                        .reach = {.restarts = jobset->history.record_count}};
    }
}

static void check_known(struct world *world)
{
    for (size_t i = 0; i < world->known.len; i++) {
        const struct known_jobset *known = &world->known.items[i];
        if (!known->uid || known->deletes)
            continue;
        const struct jobset *jobset =
            jobs_find(core_jobs(world->controller.core), str_from(known->namespace_), str_from(known->name));
        if (!jobset || jobset->uid != known->uid)
            world_fail(world, TORTURE_SAFETY, "JobSet %s was acknowledged and is lost", known->name);
    }
}

static void check_same(struct world *world, const struct core *again, const char *how)
{
    const struct core *core = world->controller.core;
    if (core_seq(again) != core_seq(core))
        return;
    if (core_digest(again) != core_digest(core) || core_deadline(again) != core_deadline(core)) {
        disk_tell_apart(world);
        world_fail(world, TORTURE_REPLAY, "replay of %llu records %s gives another state",
                   (unsigned long long)core_seq(again), how);
    }
}

static void check_replay(struct world *world, bool from_snapshot)
{
    if (!replays_alike(world))
        return;
    if (!from_snapshot) {
        const struct core *whole = disk_read_whole(world);
        if (whole)
            check_same(world, whole, "from scratch");
        return;
    }
    struct core *again = core_new();
    if (disk_replay(world, true, again))
        check_same(world, again, "from a snapshot");
    core_free(again);
}

void oracle_restarted(struct world *world)
{
    check_log(world);
    if (world_failed(world))
        return;
    core_check_invariants(world->controller.core);
    check_known(world);
    if (world_chance(world, 250000))
        check_replay(world, world_chance(world, 500000));
}

void oracle_final(struct world *world)
{
    check_known(world);
    if (!driver_is_appending(world->controller.driver) &&
        world->disk.log.len == core_seq(world->controller.core)) {
        check_replay(world, false);
        check_replay(world, true);
    }
    world->outcome->digest = core_digest(world->controller.core);
}

void oracle_done(struct world *world)
{
    for (size_t i = 0; i < world->commits.len; i++)
        mem_free(world->commits.items[i]);
    vec_done(&world->commits);
    vec_done(&world->applied);
    vec_done(&world->digests);
    u64_map_done(&world->shards);
    u64_map_done(&world->committed);
    vec_done(&world->held);
    vec_done(&world->kept);
}
