/* launch.c - the messages with which an agent starts a task, or moves its living process to another attempt:
 * the gang's rank table, the task's place among the ranks, and the message itself. */
#include "core/launch/internal.h"

/* --- the rank table -------------------------------------------------------------------------- */

static void build_rank_table(const struct task *task, const struct cluster *cluster, struct arena *arena,
                             struct gang_rank_table *rank_table)
{
    const struct jobset *jobset = task->job->jobset;
    rank_table->subdomain = jobset->spec.subdomain.len ? jobset->spec.subdomain : jobset->name;
    rank_table->namespace_ = jobset->namespace_;
    rank_table->entries = ARENA_ARRAY(arena, struct rank_table_entry, task->world);
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        if (!job || !str_equal(job->rjob->group, task->job->rjob->group))
            continue;
        for (uint32_t s = 0; s < job->index_count; s++) {
            const struct task *member = job->indexes[s].task;
            if (!member || member->machine == MACHINE_NONE || task_is_away(member) ||
                rank_table->count == task->world)
                continue;
            const struct machine *machine = &cluster->machines[member->machine];
            rank_table->entries[rank_table->count++] = (struct rank_table_entry){
                .hostname = member->hostname,
                .address = machine->address,
                .machine = machine->name,
                .chips = member->chips_were,
                .rank = task_present_rank(member),
            };
        }
    }
    CHECK(rank_table->count <= task->world);
}

static void find_places(struct launch_common *common)
{
    const struct gang_rank_table *rank_table = &common->rank_table;
    struct str_map nodes = {0}; /* machine -> its first place */
    common->places = ARENA_ARRAY(common->arena, struct launch_place, rank_table->count);
    for (size_t i = 0; i < rank_table->count; i++) {
        struct launch_place *first = str_map_get(&nodes, rank_table->entries[i].machine);
        if (!first) {
            first = &common->places[i];
            first->node_rank = common->nodes++;
            str_map_put(&nodes, rank_table->entries[i].machine, first);
        }
        common->places[i].node_rank = first->node_rank;
        common->places[i].local_rank = first->local_world++;
    }
    for (size_t i = 0; i < rank_table->count; i++) {
        const struct launch_place *first = str_map_get(&nodes, rank_table->entries[i].machine);
        common->places[i].local_world = first->local_world;
    }
    CHECK(common->nodes <= rank_table->count && (common->nodes > 0 || rank_table->count == 0));
    str_map_done(&nodes);
}

static void join_hostnames(struct launch_common *common)
{
    struct buf names BUF_CLEANUP = {0};
    rank_table_write_host_names(&names, &common->rank_table);
    if (names.len < ENV_VALUE_MAX)
        common->hostnames = arena_str(common->arena, buf_str(&names));
}

static void common_for(struct launch_common *common, const struct task *task, const struct cluster *cluster)
{
    /* A rank that was placed before replicas left or returned belongs to a world of another size. */
    if (common->jobset == task->job->jobset && common->world == task->world &&
        str_equal(common->group, task->job->rjob->group))
        return;
    CHECK(common->arena);
    *common = (struct launch_common){.arena = common->arena,
                                     .objects = common->objects,
                                     .machine_mttf_s = common->machine_mttf_s,
                                     .jobset = task->job->jobset,
                                     .world = task->world,
                                     .group = task->job->rjob->group};
    build_rank_table(task, cluster, common->arena, &common->rank_table);
    find_places(common);
    join_hostnames(common);
    common->folder = jobset_folder(common->arena, common->jobset);
    common->checkpoints =
        ARENA_CONCAT(common->arena, cluster->checkpoint_dir, STR("/"), common->jobset->namespace_, STR("/"),
                     common->folder, STR("/"), common->group);
    if (common->machine_mttf_s > 0)
        common->mttf_s = jobset_mttf_s(common->jobset, common->machine_mttf_s);
}

/* --- the message ----------------------------------------------------------------------------- */

/* Sets the range of user ids that the namespace's annotation gives to its tasks. */
static void launch_range(const struct launch_common *common, struct str namespace_,
                         struct task_launch *launch)
{
    const struct object *object =
        common->objects ? object_find(common->objects, OBJECT_NAMESPACE, STR(""), namespace_) : NULL;
    const struct doc *text =
        object ? doc_path(object->document, "metadata", "annotations", UID_RANGE_KEY, NULL) : NULL;
    struct uid_range ids;
    if (text && uid_range_read(doc_str(text, STR("")), &ids)) {
        CHECK(ids.count > 0); /* uid_range_read() refuses an empty range */
        launch->uid_from = ids.from;
        launch->uid_count = ids.count;
    }
}

/* Builds the command and environment of a single process without containers: the fast path, which nearly
 * every rank takes. */
static void launch_plain(const struct launch_common *common, const struct task *task,
                         const struct cluster *cluster, struct arena *arena, struct task_launch *launch)
{
    const struct pod_spec *pod = &task->job->rjob->job.pod;
    CHECK(pod->container_count == 1);
    env_list env = {0};
    vec_reserve(&env, ENV_USUAL);
    env_ours(&env, arena, task, cluster, common);
    env_user(&env, common, task, &cluster->machines[task->machine], &pod->containers[0], arena);
    launch->argv = ARENA_ARRAY(arena, struct str, pod->command_count + pod->arg_count);
    for (size_t i = 0; i < pod->command_count; i++)
        launch->argv[launch->argc++] = env_expand(pod->command[i], &env, arena);
    for (size_t i = 0; i < pod->arg_count; i++)
        launch->argv[launch->argc++] = env_expand(pod->args[i], &env, arena);
    CHECK(launch->argc == pod->command_count + pod->arg_count);
    launch->env = ARENA_ARRAY(arena, struct env_var, env.len);
    mem_copy(launch->env, env.items, env.len * sizeof(*env.items));
    launch->env_count = env.len;
    vec_done(&env);
}

void task_launch_build_next(struct launch_common *common, const struct task *task,
                            const struct cluster *cluster, struct arena *arena,
                            struct task_launch *ret_launch)
{
    const struct job *job = task->job;
    const struct jobset *jobset = job->jobset;
    const struct pod_spec *pod = &job->rjob->job.pod;
    CHECK(task->machine < cluster->machine_count && task->state >= TASK_STARTING);
    struct task_launch launch = {
        .task = task->uid,
        .jobset = jobset->uid,
        .attempt = task->attempt, /* the JobSet may have begun another in the same step */
        .name = task->name,
        .namespace_ = jobset->namespace_,
        .working_dir = pod->working_dir,
        .checkpoint_dir = cluster->checkpoint_dir,
        .run_as_user = pod->run_as_user,
        .run_as_group = pod->run_as_group,
        .fs_group = pod->fs_group > 0 ? (uint32_t)pod->fs_group : 0,
        .chips = task->chips,
        .cpu_milli = pod->cpu_milli,
        .memory_bytes = pod->memory_bytes,
        .grace_ns = pod->grace_s * NS_PER_SECOND,
        .rank = task->rank,
        .world = task->world,
        .restore_step = jobset->checkpoint.committed_step,
        .restore_attempt = jobset->checkpoint.committed_attempt,
        .step_pattern = labels_get(&jobset->spec.annotations, STR(STEP_PATTERN_KEY), STR("")),
        .work_pattern = labels_get(&jobset->spec.annotations, STR(WORK_PATTERN_KEY), STR("")),
    };
    common_for(common, task, cluster);
    launch.checkpoint_folder = common->folder;
    launch.rank_table = common->rank_table;
    launch_range(common, jobset->namespace_, &launch);
    if (task_is_plain(task))
        launch_plain(common, task, cluster, arena, &launch);
    else
        launch_containers(common, task, cluster, arena, &launch);
    *ret_launch = launch;
}

void task_launch_build(const struct task *task, const struct cluster *cluster, struct arena *arena,
                       struct task_launch *ret_launch)
{
    struct launch_common common = {.arena = arena};
    task_launch_build_next(&common, task, cluster, arena, ret_launch);
}

static const struct task *rank_zero_of(const struct task *task)
{
    const struct jobset *jobset = task->job->jobset;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        const struct task *first = job && job->index_count ? job->indexes[0].task : NULL;
        if (first && first->rank == 0 && str_equal(job->rjob->group, task->job->rjob->group))
            return first; /* the first Job of the group, found without a search */
    }
    return NULL;
}

void task_rejoin_build(const struct task *task, const struct cluster *cluster, struct arena *arena,
                       struct task_rejoin *ret_rejoin)
{
    const struct jobset *jobset = task->job->jobset;
    bool dump = jobset->recovery.state == RECOVERY_DUMPING;
    const struct task *first = dump ? dump_rank_zero(jobset) : rank_zero_of(task);
    uint32_t full_world;
    (void)task_full_rank(task, &full_world);
    CHECK(task->rank < task->world);
    *ret_rejoin = (struct task_rejoin){
        .task = task->uid,
        .attempt = task->attempt,
        .rank = task->rank,
        .world = task->world,
        .full_world = full_world,
        .flags = dump ? REJOIN_DUMP : 0,
        .restore_step = jobset->checkpoint.committed_step,
        .restore_attempt = jobset->checkpoint.committed_attempt,
    };
    if (first && first->machine != MACHINE_NONE)
        ret_rejoin->rendezvous = arena_printf(
            arena, STR_FORMAT ":%u", STR_ARG(cluster->machines[first->machine].address), task->port + 1u);
}
