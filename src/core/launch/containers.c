/* containers.c - the user's part of a pod, resolved: its containers' environments and commands, the files
 * of its volumes. */
#include "core/launch/internal.h"

/* --- environment ---------------------------------------------------------------------------------------- */

static const struct container_spec *container_named(const struct pod_spec *pod, struct str name,
                                                    const struct container_spec *fallback)
{
    for (size_t i = 0; i < pod->container_count && name.len > 0; i++)
        if (str_equal(pod->containers[i].launch.name, name))
            return &pod->containers[i];
    return fallback;
}

static int64_t whole_up(int64_t value, int64_t divisor)
{
    CHECK(value >= 0 && divisor > 0);
    return value / divisor + (value % divisor > 0);
}

/* Returns the value of a resourceFieldRef. If a limit is not set, the value is the machine's capacity
 * ("Downward API"). */
static struct str resource_value(const struct pod_spec *pod, const struct machine *machine,
                                 const struct container_spec *own, const struct env_spec *env,
                                 struct arena *arena)
{
    const struct container_spec *container = container_named(pod, env->object, own);
    bool request = str_starts(env->value, STR("requests."));
    int64_t value = 0;
    if (str_ends(env->value, STR(".cpu"))) {
        value = request ? container->cpu_request_milli : container->launch.cpu_milli;
        value = value > 0 || request ? value : machine->cpu_milli;
    } else if (str_ends(env->value, STR(".memory"))) {
        value = request ? container->memory_request_bytes : container->launch.memory_bytes;
        value = value > 0 || request ? value : machine->memory_bytes;
        value = value < INT64_MAX / 1000 ? value * 1000 : INT64_MAX;
    }
    return arena_printf(arena, "%lld", (long long)whole_up(value, env->divisor_milli));
}

static void env_from(env_list *env, const struct launch_common *common, const struct task *task,
                     const struct container_spec *container, struct arena *arena)
{
    for (size_t i = 0; i < container->env_from_count; i++) {
        const struct env_from_spec *from = &container->env_from[i];
        size_t count;
        const struct config_value *values = config_values(
            common->objects, from->secret, task->job->jobset->namespace_, from->object, arena, &count);
        for (size_t k = 0; k < count; k++) {
            struct str name =
                arena_printf(arena, STR_FORMAT STR_FORMAT, STR_ARG(from->prefix), STR_ARG(values[k].key));
            if (name.len > 0 && !memchr(name.data, '=', name.len))
                env_set(env, name, values[k].value);
        }
    }
}

static bool env_config(const struct launch_common *common, const struct task *task,
                       const struct env_spec *spec, struct arena *arena, struct str *ret_value)
{
    size_t count;
    const struct config_value *values =
        config_values(common->objects, spec->source == ENV_SECRET, task->job->jobset->namespace_,
                      spec->object, arena, &count);
    const struct config_value *found = config_find(values, count, spec->value);
    if (found)
        *ret_value = found->value;
    return found != NULL;
}

void env_user(env_list *env, const struct launch_common *common, const struct task *task,
              const struct machine *machine, const struct container_spec *container, struct arena *arena)
{
    const struct pod_spec *pod = &task->job->rjob->job.pod;
    env_from(env, common, task, container, arena);
    for (size_t i = 0; i < container->env_count; i++) {
        const struct env_spec *spec = &container->env[i];
        struct str value = STR("");
        switch (spec->source) {
        case ENV_VALUE:
            value = env_expand(spec->value, env, arena);
            break;
        case ENV_FIELD:
            value = launch_field(task, machine, spec->value, arena);
            break;
        case ENV_RESOURCE:
            value = resource_value(pod, machine, container, spec, arena);
            break;
        case ENV_CONFIG_MAP:
        case ENV_SECRET:
            if (!env_config(common, task, spec, arena, &value))
                continue; /* optional, or deleted since the start was decided */
            break;
        }
        env_set(env, spec->name, value);
    }
}

/* --- containers ----------------------------------------------------------------------------------------- */

static struct str *expand_words(const struct container_spec *spec, const env_list *env, struct arena *arena,
                                size_t *ret_count)
{
    struct str *argv = ARENA_ARRAY(arena, struct str, spec->command_count + spec->arg_count);
    size_t count = 0;
    for (size_t i = 0; i < spec->command_count; i++)
        argv[count++] = env_expand(spec->command[i], env, arena);
    for (size_t i = 0; i < spec->arg_count; i++)
        argv[count++] = env_expand(spec->args[i], env, arena);
    CHECK(count == spec->command_count + spec->arg_count);
    *ret_count = count;
    return argv;
}

static void launch_container(const struct launch_common *common, const struct task *task,
                             const struct cluster *cluster, const struct container_spec *spec,
                             struct arena *arena, struct container_launch *ret)
{
    env_list env = {0};
    env_ours(&env, arena, task, cluster, common);
    env_user(&env, common, task, &cluster->machines[task->machine], spec, arena);
    *ret = spec->launch;
    ret->restart = task_container_restart(task, spec);
    ret->ends_joined = ret->restart == RERUN_ON_FAILURE && !spec->own_restart &&
                       ret->role != CONTAINER_SIDECAR && task->job->jobset->form == FORM_JOBSET;
    ret->argv = expand_words(spec, &env, arena, &ret->argc);
    ret->env = ARENA_ARRAY(arena, struct env_var, env.len);
    mem_copy(ret->env, env.items, env.len * sizeof *env.items);
    ret->env_count = env.len;
    ret->mounts = ARENA_ARRAY(arena, struct container_mount, ret->mount_count);
    for (size_t i = 0; i < ret->mount_count; i++) {
        ret->mounts[i] = spec->launch.mounts[i];
        ret->mounts[i].sub_path = env_expand(ret->mounts[i].sub_path, &env, arena);
    }
    vec_done(&env);
}

/* --- volumes -------------------------------------------------------------------------------------------- */

typedef VEC(struct volume_file) file_list;

static void add_file(file_list *files, struct str path, struct str data, uint32_t mode)
{
    struct volume_file file = {path, data, mode};
    CHECK(mode <= 0777);
    if (path.len > 0)
        vec_push(files, file);
}

static void files_of_fields(const struct task *task, const struct machine *machine,
                            const struct file_source *source, struct arena *arena, file_list *files)
{
    const struct pod_spec *pod = &task->job->rjob->job.pod;
    for (size_t i = 0; i < source->item_count; i++) {
        const struct file_item *item = &source->items[i];
        struct str value = item->from.source == ENV_RESOURCE
                               ? resource_value(pod, machine, &pod->containers[0], &item->from, arena)
                               : launch_field(task, machine, item->from.value, arena);
        add_file(files, item->path, value, item->mode);
    }
}

static void files_of_object(const struct launch_common *common, const struct task *task,
                            const struct file_source *source, struct arena *arena, file_list *files)
{
    size_t count;
    const struct config_value *values =
        config_values(common->objects, source->origin == FILES_SECRET, task->job->jobset->namespace_,
                      source->object, arena, &count);
    for (size_t i = 0; i < count && source->item_count == 0; i++)
        add_file(files, values[i].key, values[i].value, source->mode);
    for (size_t i = 0; i < source->item_count; i++) {
        const struct config_value *found = config_find(values, count, source->items[i].key);
        if (found)
            add_file(files, source->items[i].path, found->value, source->items[i].mode);
    }
}

static void launch_volume(const struct launch_common *common, const struct task *task,
                          const struct machine *machine, const struct volume_spec *spec, struct arena *arena,
                          struct volume_launch *ret)
{
    file_list files = {0};
    for (size_t i = 0; i < spec->source_count; i++) {
        if (spec->sources[i].origin == FILES_FIELDS)
            files_of_fields(task, machine, &spec->sources[i], arena, &files);
        else
            files_of_object(common, task, &spec->sources[i], arena, &files);
    }
    *ret = spec->launch;
    CHECK(ret->file_count == 0); /* files are of the sources */
    if (spec->unsupported) {
        ret->kind = VOLUME_HOST;
        ret->type = STR("unsupported");
    }
    ret->files = ARENA_ARRAY(arena, struct volume_file, files.len);
    mem_copy(ret->files, files.items, files.len * sizeof *files.items);
    ret->file_count = files.len;
    vec_done(&files);
}

static const struct volume_launch *volume_named(const struct task_launch *launch, struct str name)
{
    for (size_t i = 0; i < launch->volume_count; i++)
        if (str_equal(launch->volumes[i].name, name))
            return &launch->volumes[i];
    return NULL;
}

/* Adds mounts without a volume: claims that the JobSet makes for all its Jobs (volumeClaimPolicies). */
static void add_claims(const struct task *task, struct arena *arena, struct task_launch *launch)
{
    const struct jobset *jobset = task->job->jobset;
    CHECK(launch->volume_count <= TASK_VOLUMES_MAX);
    for (size_t i = 0; i < launch->container_count; i++)
        for (size_t m = 0; m < launch->containers[i].mount_count; m++) {
            struct str name = launch->containers[i].mounts[m].volume;
            if (volume_named(launch, name) || launch->volume_count >= TASK_VOLUMES_MAX)
                continue;
            launch->volumes[launch->volume_count++] =
                (struct volume_launch){.name = name,
                                       .kind = VOLUME_CLAIM,
                                       .source = arena_printf(arena, STR_FORMAT "-" STR_FORMAT, STR_ARG(name),
                                                              STR_ARG(jobset->name))};
        }
}

static void mark_read_only(const struct pod_spec *pod, struct task_launch *launch)
{
    for (size_t v = 0; v < pod->volume_count; v++)
        for (size_t i = 0; i < launch->container_count && pod->volumes[v].read_only; i++)
            for (size_t m = 0; m < launch->containers[i].mount_count; m++)
                if (str_equal(launch->containers[i].mounts[m].volume, pod->volumes[v].launch.name))
                    launch->containers[i].mounts[m].read_only = true;
}

void launch_containers(const struct launch_common *common, const struct task *task,
                       const struct cluster *cluster, struct arena *arena, struct task_launch *launch)
{
    const struct pod_spec *pod = &task->job->rjob->job.pod;
    const struct machine *machine = &cluster->machines[task->machine];
    CHECK(pod->container_count <= TASK_CONTAINERS_MAX && pod->volume_count <= TASK_VOLUMES_MAX);
    launch->container_count = pod->container_count;
    launch->containers = ARENA_ARRAY(arena, struct container_launch, pod->container_count);
    for (size_t i = 0; i < pod->container_count; i++)
        launch_container(common, task, cluster, &pod->containers[i], arena, &launch->containers[i]);
    launch->volumes = ARENA_ARRAY(arena, struct volume_launch, TASK_VOLUMES_MAX);
    for (size_t i = 0; i < pod->volume_count; i++)
        launch_volume(common, task, machine, &pod->volumes[i], arena,
                      &launch->volumes[launch->volume_count++]);
    CHECK(launch->volume_count == pod->volume_count);
    add_claims(task, arena, launch);
    mark_read_only(pod, launch);
}
