/* codec_container.c - containers, volumes and their states to and from protobuf. */
#include "base/check.h"
#include "base/units.h"
#include "core/agent/codec_pb.h"
#include "core/words/limits.h"

enum { RULE_CODES_MAX = 256, PROBE_COUNT_MAX = 1000000 };
#define PROBE_TIME_MAX_NS (INT32_MAX * NS_PER_SECOND)

/* --- writing -------------------------------------------------------------------------------------- */

static char **write_texts(struct arena *arena, const struct str *texts, size_t count)
{
    CHECK(texts || count == 0);
    char **ret = ARENA_ARRAY(arena, char *, count);
    for (size_t i = 0; i < count; i++)
        ret[i] = codec_text(arena, texts[i]);
    return ret;
}

Wire__EnvVar **codec_write_env(struct arena *arena, const struct env_var *env, size_t count)
{
    CHECK(env || count == 0);
    Wire__EnvVar **ret = ARENA_ARRAY(arena, Wire__EnvVar *, count);
    for (size_t i = 0; i < count; i++) {
        ret[i] = ARENA_NEW(arena, Wire__EnvVar);
        wire__env_var__init(ret[i]);
        ret[i]->name = codec_text(arena, env[i].name);
        ret[i]->value = codec_text(arena, env[i].value);
        ret[i]->host_names = env[i].host_names;
    }
    return ret;
}

/* Returns NULL if there is no action, which then takes no bytes. */
static Wire__Action *write_action(struct arena *arena, const struct container_action *action)
{
    CHECK(action->kind < ACTION_KINDS);
    if (action->kind == ACTION_NONE)
        return NULL;
    Wire__Action *ret = ARENA_NEW(arena, Wire__Action);
    wire__action__init(ret);
    ret->kind = (uint32_t)action->kind;
    ret->n_argv = action->argc;
    ret->argv = write_texts(arena, action->argv, action->argc);
    ret->tls = action->tls;
    ret->host = codec_text(arena, action->host);
    ret->port = action->port;
    ret->path = codec_text(arena, action->path);
    ret->n_headers = action->header_count;
    ret->headers = codec_write_env(arena, action->headers, action->header_count);
    ret->sleep_ns = action->sleep_ns;
    return ret;
}

static Wire__Probe *write_probe(struct arena *arena, const struct container_probe *probe)
{
    if (probe->action.kind == ACTION_NONE)
        return NULL;
    Wire__Probe *ret = ARENA_NEW(arena, Wire__Probe);
    wire__probe__init(ret);
    ret->action = write_action(arena, &probe->action);
    ret->initial_delay_ns = probe->initial_delay_ns;
    ret->period_ns = probe->period_ns;
    ret->timeout_ns = probe->timeout_ns;
    ret->success_threshold = probe->success_threshold;
    ret->failure_threshold = probe->failure_threshold;
    ret->grace_ns = probe->grace_ns;
    return ret;
}

static Wire__RestartRule **write_rules(struct arena *arena, const struct container_launch *container)
{
    Wire__RestartRule **ret = ARENA_ARRAY(arena, Wire__RestartRule *, container->rule_count);
    for (size_t i = 0; i < container->rule_count; i++) {
        ret[i] = ARENA_NEW(arena, Wire__RestartRule);
        wire__restart_rule__init(ret[i]);
        ret[i]->not_in = container->rules[i].not_in;
        ret[i]->n_codes = container->rules[i].code_count;
        ret[i]->codes = container->rules[i].codes;
    }
    return ret;
}

static Wire__Mount **write_mounts(struct arena *arena, const struct container_launch *container)
{
    Wire__Mount **ret = ARENA_ARRAY(arena, Wire__Mount *, container->mount_count);
    for (size_t i = 0; i < container->mount_count; i++) {
        const struct container_mount *mount = &container->mounts[i];
        ret[i] = ARENA_NEW(arena, Wire__Mount);
        wire__mount__init(ret[i]);
        ret[i]->volume = codec_text(arena, mount->volume);
        ret[i]->path = codec_text(arena, mount->path);
        ret[i]->sub_path = codec_text(arena, mount->sub_path);
        ret[i]->read_only = mount->read_only;
    }
    return ret;
}

/* Returns NULL if every value is the default. */
static Wire__Security *write_security(struct arena *arena, const struct container_security *from)
{
    if (from->group_count == 0 && !from->added && !from->dropped && !from->non_root && !from->privileged &&
        !from->escalation && !from->read_only_root && !from->unconfined)
        return NULL;
    Wire__Security *ret = ARENA_NEW(arena, Wire__Security);
    wire__security__init(ret);
    ret->groups = from->groups;
    ret->n_groups = from->group_count;
    ret->added = from->added;
    ret->dropped = from->dropped;
    ret->non_root = from->non_root;
    ret->privileged = from->privileged;
    ret->escalation = from->escalation;
    ret->read_only_root = from->read_only_root;
    ret->unconfined = from->unconfined;
    return ret;
}

static Wire__Container *write_container(struct arena *arena, const struct container_launch *container)
{
    Wire__Container *ret = ARENA_NEW(arena, Wire__Container);
    wire__container__init(ret);
    ret->name = codec_text(arena, container->name);
    ret->role = (uint32_t)container->role;
    ret->restart = (uint32_t)container->restart;
    ret->ends_joined = container->ends_joined;
    ret->n_rules = container->rule_count;
    ret->rules = write_rules(arena, container);
    ret->n_argv = container->argc;
    ret->argv = write_texts(arena, container->argv, container->argc);
    ret->n_env = container->env_count;
    ret->env = codec_write_env(arena, container->env, container->env_count);
    ret->working_dir = codec_text(arena, container->working_dir);
    ret->run_as_user = container->run_as_user;
    ret->run_as_group = container->run_as_group;
    ret->cpu_milli = container->cpu_milli;
    ret->memory_bytes = container->memory_bytes;
    ret->startup = write_probe(arena, &container->probes[PROBE_STARTUP]);
    ret->readiness = write_probe(arena, &container->probes[PROBE_READINESS]);
    ret->liveness = write_probe(arena, &container->probes[PROBE_LIVENESS]);
    ret->post_start = write_action(arena, &container->post_start);
    ret->pre_stop = write_action(arena, &container->pre_stop);
    ret->n_mounts = container->mount_count;
    ret->mounts = write_mounts(arena, container);
    ret->security = write_security(arena, &container->security);
    return ret;
}

static Wire__Volume *write_volume(struct arena *arena, const struct volume_launch *volume)
{
    Wire__Volume *ret = ARENA_NEW(arena, Wire__Volume);
    wire__volume__init(ret);
    ret->name = codec_text(arena, volume->name);
    ret->kind = (uint32_t)volume->kind;
    ret->source = codec_text(arena, volume->source);
    ret->type = codec_text(arena, volume->type);
    ret->size_bytes = volume->size_bytes;
    ret->n_files = volume->file_count;
    ret->files = ARENA_ARRAY(arena, Wire__VolumeFile *, volume->file_count);
    for (size_t i = 0; i < volume->file_count; i++) {
        const struct volume_file *file = &volume->files[i];
        ret->files[i] = ARENA_NEW(arena, Wire__VolumeFile);
        wire__volume_file__init(ret->files[i]);
        ret->files[i]->path = codec_text(arena, file->path);
        ret->files[i]->data.data = (uint8_t *)(uintptr_t)file->data.data; /* packing only reads */
        ret->files[i]->data.len = file->data.len;
        ret->files[i]->mode = file->mode;
    }
    return ret;
}

void codec_write_containers(struct arena *arena, const struct task_launch *launch, Wire__TaskLaunch *ret)
{
    CHECK(launch->containers || launch->container_count == 0);
    ret->n_containers = launch->container_count;
    ret->n_volumes = launch->volume_count;
    if (launch->container_count == 0)
        return;
    ret->containers = ARENA_ARRAY(arena, Wire__Container *, launch->container_count);
    for (size_t i = 0; i < launch->container_count; i++)
        ret->containers[i] = write_container(arena, &launch->containers[i]);
    ret->volumes = ARENA_ARRAY(arena, Wire__Volume *, launch->volume_count);
    for (size_t i = 0; i < launch->volume_count; i++)
        ret->volumes[i] = write_volume(arena, &launch->volumes[i]);
}

static Wire__ContainerEnd *write_end(struct arena *arena, const struct container_end *end)
{
    Wire__ContainerEnd *ret = ARENA_NEW(arena, Wire__ContainerEnd);
    wire__container_end__init(ret);
    ret->exit_code = end->exit_code;
    ret->signal = (uint32_t)end->signal;
    ret->oom = end->oom;
    ret->start_failed = end->start_failed;
    ret->started_ns = end->started_ns;
    ret->finished_ns = end->finished_ns;
    ret->message = codec_text(arena, end->message);
    return ret;
}

Wire__ContainerStatus **codec_write_statuses(struct arena *arena, const struct container_status *statuses,
                                             size_t count)
{
    CHECK(statuses || count == 0);
    Wire__ContainerStatus **ret = ARENA_ARRAY(arena, Wire__ContainerStatus *, count);
    for (size_t i = 0; i < count; i++) {
        const struct container_status *status = &statuses[i];
        ret[i] = ARENA_NEW(arena, Wire__ContainerStatus);
        wire__container_status__init(ret[i]);
        ret[i]->name = codec_text(arena, status->name);
        ret[i]->role = (uint32_t)status->role;
        ret[i]->phase = (uint32_t)status->phase;
        ret[i]->ready = status->ready;
        ret[i]->started = status->started;
        ret[i]->restarts = status->restarts;
        ret[i]->reason = codec_text(arena, status->reason);
        ret[i]->message = codec_text(arena, status->message);
        ret[i]->started_ns = status->started_ns;
        if (status->phase == CONTAINER_TERMINATED || status->restarts > 0)
            ret[i]->end = write_end(arena, &status->end);
    }
    return ret;
}

/* --- reading -------------------------------------------------------------------------------------- */

static struct str *read_texts(struct arena *arena, char *const *texts, size_t count, struct error *error)
{
    struct str *ret = codec_try_array(arena, count, sizeof *ret, error);
    for (size_t i = 0; ret && i < count; i++)
        ret[i] = str_from(texts[i]);
    return ret;
}

int codec_read_env(struct arena *arena, Wire__EnvVar *const *pb, size_t count, struct env_var **ret,
                   struct error *error)
{
    struct env_var *env = codec_try_array(arena, count, sizeof *env, error);
    if (!env)
        return ERROR_LIMIT;
    for (size_t i = 0; i < count; i++) {
        env[i] = (struct env_var){str_from(pb[i]->name), str_from(pb[i]->value), pb[i]->host_names};
        if (env[i].name.len == 0 || memchr(env[i].name.data, '=', env[i].name.len))
            return error_set(error, ERROR_INVALID, "environment variable named \"%.64s\"", pb[i]->name);
    }
    *ret = env;
    return 0;
}

static int read_action(struct arena *arena, const Wire__Action *pb, struct container_action *ret,
                       struct error *error)
{
    *ret = (struct container_action){.kind = ACTION_NONE};
    if (!pb)
        return 0;
    if (pb->kind >= ACTION_KINDS || pb->port > UINT16_MAX || pb->sleep_ns < 0 ||
        pb->sleep_ns > PROBE_TIME_MAX_NS || (pb->kind == ACTION_EXEC && pb->n_argv == 0))
        return error_set(error, ERROR_INVALID, "probe or hook of kind %u with port %u", pb->kind, pb->port);
    *ret = (struct container_action){.kind = (enum action_kind)pb->kind,
                                     .argc = pb->n_argv,
                                     .tls = pb->tls,
                                     .host = str_from(pb->host),
                                     .path = str_from(pb->path),
                                     .port = (uint16_t)pb->port,
                                     .header_count = pb->n_headers,
                                     .sleep_ns = pb->sleep_ns};
    ret->argv = read_texts(arena, pb->argv, pb->n_argv, error);
    return ret->argv ? codec_read_env(arena, pb->headers, pb->n_headers, &ret->headers, error) : ERROR_LIMIT;
}

static int read_probe(struct arena *arena, const Wire__Probe *pb, struct container_probe *ret,
                      struct error *error)
{
    *ret = (struct container_probe){.grace_ns = -1};
    if (!pb)
        return 0;
    *ret = (struct container_probe){.initial_delay_ns = pb->initial_delay_ns,
                                    .period_ns = pb->period_ns,
                                    .timeout_ns = pb->timeout_ns,
                                    .success_threshold = pb->success_threshold,
                                    .failure_threshold = pb->failure_threshold,
                                    .grace_ns = pb->grace_ns};
    if (ret->initial_delay_ns < 0 || ret->initial_delay_ns > PROBE_TIME_MAX_NS ||
        ret->period_ns < NS_PER_MS || ret->period_ns > PROBE_TIME_MAX_NS || ret->timeout_ns < NS_PER_MS ||
        ret->timeout_ns > PROBE_TIME_MAX_NS || ret->success_threshold < 1 ||
        ret->success_threshold > PROBE_COUNT_MAX || ret->failure_threshold < 1 ||
        ret->failure_threshold > PROBE_COUNT_MAX || ret->grace_ns < -1 || ret->grace_ns > PROBE_TIME_MAX_NS)
        return error_set(error, ERROR_INVALID, "probe with a time or a threshold out of range");
    return read_action(arena, pb->action, &ret->action, error);
}

static int read_rules(struct arena *arena, const Wire__Container *pb, struct container_launch *ret,
                      struct error *error)
{
    ret->rule_count = pb->n_rules;
    ret->rules = codec_try_array(arena, pb->n_rules, sizeof *ret->rules, error);
    if (!ret->rules)
        return ERROR_LIMIT;
    for (size_t i = 0; i < pb->n_rules; i++) {
        if (pb->rules[i]->n_codes > RULE_CODES_MAX)
            return error_set(error, ERROR_INVALID, "restart rule with %zu exit codes", pb->rules[i]->n_codes);
        ret->rules[i] =
            (struct container_rule){pb->rules[i]->not_in, pb->rules[i]->codes, pb->rules[i]->n_codes};
    }
    return 0;
}

static int read_mounts(struct arena *arena, const Wire__Container *pb, struct container_launch *ret,
                       struct error *error)
{
    ret->mount_count = pb->n_mounts;
    ret->mounts = codec_try_array(arena, pb->n_mounts, sizeof *ret->mounts, error);
    if (!ret->mounts)
        return ERROR_LIMIT;
    for (size_t i = 0; i < pb->n_mounts; i++) {
        const Wire__Mount *mount = pb->mounts[i];
        ret->mounts[i] = (struct container_mount){str_from(mount->volume), str_from(mount->path),
                                                  str_from(mount->sub_path), mount->read_only};
    }
    return 0;
}

static int read_security(struct arena *arena, const Wire__Container *pb, struct container_security *ret,
                         struct error *error)
{
    const Wire__Security *from = pb->security;
    *ret = (struct container_security){0};
    if (!from)
        return 0;
    if (from->n_groups > CONTAINER_GROUPS_MAX)
        return error_set(error, ERROR_LIMIT, "container %s: more than %d groups", pb->name,
                         CONTAINER_GROUPS_MAX);
    *ret = (struct container_security){.groups = ARENA_ARRAY(arena, uint32_t, from->n_groups),
                                       .group_count = from->n_groups,
                                       .added = from->added,
                                       .dropped = from->dropped,
                                       .non_root = from->non_root,
                                       .privileged = from->privileged,
                                       .escalation = from->escalation,
                                       .read_only_root = from->read_only_root,
                                       .unconfined = from->unconfined};
    for (size_t i = 0; i < from->n_groups; i++)
        ret->groups[i] = from->groups[i];
    return 0;
}

static int check_container(const Wire__Container *pb, struct error *error)
{
    if (pb->name[0] == 0 || pb->name[0] == '.' || strlen(pb->name) > NAME_MAX_BYTES || strchr(pb->name, '/'))
        return error_set(error, ERROR_INVALID, "container named \"%.64s\"", pb->name);
    if (pb->role >= CONTAINER_ROLES || pb->restart > RERUN_ALWAYS)
        return error_set(error, ERROR_INVALID, "container %s: role %u, restart policy %u", pb->name, pb->role,
                         pb->restart);
    if (pb->run_as_user < -1 || pb->run_as_user > UINT32_MAX - 1 || pb->run_as_group < -1 ||
        pb->run_as_group > UINT32_MAX - 1 || pb->cpu_milli < 0 || pb->memory_bytes < 0)
        return error_set(error, ERROR_INVALID, "container %s: user, group or limit out of range", pb->name);
    return 0;
}

static int read_container(struct arena *arena, const Wire__Container *pb, struct container_launch *ret,
                          struct error *error)
{
    int rc = check_container(pb, error);
    if (rc < 0)
        return rc;
    *ret = (struct container_launch){.name = str_from(pb->name),
                                     .role = (enum container_role)pb->role,
                                     .restart = (enum container_restart)pb->restart,
                                     .ends_joined = pb->ends_joined,
                                     .argc = pb->n_argv,
                                     .env_count = pb->n_env,
                                     .working_dir = str_from(pb->working_dir),
                                     .run_as_user = pb->run_as_user,
                                     .run_as_group = pb->run_as_group,
                                     .cpu_milli = pb->cpu_milli,
                                     .memory_bytes = pb->memory_bytes};
    ret->argv = read_texts(arena, pb->argv, pb->n_argv, error);
    rc = ret->argv ? codec_read_env(arena, pb->env, pb->n_env, &ret->env, error) : ERROR_LIMIT;
    const Wire__Probe *const probes[PROBE_KINDS] = {pb->startup, pb->readiness, pb->liveness};
    for (int i = 0; rc == 0 && i < PROBE_KINDS; i++)
        rc = read_probe(arena, probes[i], &ret->probes[i], error);
    if (rc == 0)
        rc = read_action(arena, pb->post_start, &ret->post_start, error);
    if (rc == 0)
        rc = read_action(arena, pb->pre_stop, &ret->pre_stop, error);
    if (rc == 0)
        rc = read_rules(arena, pb, ret, error);
    if (rc == 0)
        rc = read_security(arena, pb, &ret->security, error);
    return rc == 0 ? read_mounts(arena, pb, ret, error) : rc;
}

static int read_volume(struct arena *arena, const Wire__Volume *pb, struct volume_launch *ret, size_t *bytes,
                       struct error *error)
{
    if (pb->kind >= VOLUME_KINDS || pb->name[0] == 0 || pb->name[0] == '.' || strchr(pb->name, '/') ||
        strlen(pb->name) > NAME_MAX_BYTES || pb->size_bytes < 0)
        return error_set(error, ERROR_INVALID, "volume \"%.64s\" of kind %u", pb->name, pb->kind);
    *ret = (struct volume_launch){.name = str_from(pb->name),
                                  .kind = (enum volume_kind)pb->kind,
                                  .source = str_from(pb->source),
                                  .type = str_from(pb->type),
                                  .size_bytes = pb->size_bytes,
                                  .file_count = pb->n_files};
    ret->files = codec_try_array(arena, pb->n_files, sizeof *ret->files, error);
    if (!ret->files)
        return ERROR_LIMIT;
    for (size_t i = 0; i < pb->n_files; i++) {
        const Wire__VolumeFile *file = pb->files[i];
        ret->files[i] = (struct volume_file){
            str_from(file->path), {(const char *)file->data.data, file->data.len}, file->mode & 0777};
        *bytes += file->data.len;
        if (*bytes > TASK_FILES_BYTES_MAX)
            return error_set(error, ERROR_LIMIT, "volume %s: its files exceed %d bytes", pb->name,
                             TASK_FILES_BYTES_MAX);
    }
    return 0;
}

int codec_read_containers(struct arena *arena, const Wire__TaskLaunch *pb, struct task_launch *ret,
                          struct error *error)
{
    if (pb->n_containers > TASK_CONTAINERS_MAX || pb->n_volumes > TASK_VOLUMES_MAX)
        return error_set(error, ERROR_LIMIT, "start of task %llu: %zu containers, %zu volumes",
                         (unsigned long long)pb->task, pb->n_containers, pb->n_volumes);
    if (pb->n_containers == 0)
        return 0;
    ret->containers = codec_try_array(arena, pb->n_containers, sizeof *ret->containers, error);
    ret->volumes = codec_try_array(arena, pb->n_volumes, sizeof *ret->volumes, error);
    if (!ret->containers || !ret->volumes)
        return ERROR_LIMIT;
    bool init_seen = false;
    for (size_t i = 0; i < pb->n_containers; i++) {
        int rc = read_container(arena, pb->containers[i], &ret->containers[i], error);
        if (rc < 0)
            return rc;
        bool is_main = ret->containers[i].role == CONTAINER_MAIN;
        if (is_main ? init_seen : i == 0)
            return error_set(error, ERROR_INVALID, "main containers come first, container %s does not",
                             pb->containers[i]->name);
        init_seen = init_seen || !is_main;
    }
    ret->container_count = pb->n_containers;
    size_t bytes = 0;
    for (size_t i = 0; i < pb->n_volumes; i++) {
        int rc = read_volume(arena, pb->volumes[i], &ret->volumes[i], &bytes, error);
        if (rc < 0)
            return rc;
    }
    ret->volume_count = pb->n_volumes;
    return 0;
}

static int read_status(const Wire__ContainerStatus *pb, struct container_status *ret, struct error *error)
{
    if (pb->role >= CONTAINER_ROLES || pb->phase >= CONTAINER_PHASES)
        return error_set(error, ERROR_INVALID, "state of container \"%.64s\": role %u, phase %u", pb->name,
                         pb->role, pb->phase);
    *ret = (struct container_status){.name = str_from(pb->name),
                                     .role = (enum container_role)pb->role,
                                     .phase = (enum container_phase)pb->phase,
                                     .ready = pb->ready,
                                     .started = pb->started,
                                     .restarts = pb->restarts,
                                     .reason = str_from(pb->reason),
                                     .message = str_from(pb->message),
                                     .started_ns = pb->started_ns};
    const Wire__ContainerEnd *end = pb->end;
    if (end && (ret->phase == CONTAINER_TERMINATED || ret->restarts > 0))
        ret->end = (struct container_end){.exit_code = end->exit_code,
                                          .signal = (int32_t)end->signal,
                                          .oom = end->oom,
                                          .start_failed = end->start_failed,
                                          .started_ns = end->started_ns,
                                          .finished_ns = end->finished_ns,
                                          .message = str_from(end->message)};
    return 0;
}

int codec_read_statuses(struct arena *arena, Wire__ContainerStatus *const *pb, size_t count,
                        struct container_status **ret, struct error *error)
{
    if (count > TASK_CONTAINERS_MAX)
        return error_set(error, ERROR_LIMIT, "report of %zu containers", count);
    struct container_status *statuses = codec_try_array(arena, count, sizeof *statuses, error);
    if (!statuses)
        return ERROR_LIMIT;
    for (size_t i = 0; i < count; i++) {
        int rc = read_status(pb[i], &statuses[i], error);
        if (rc < 0)
            return rc;
    }
    *ret = statuses;
    return 0;
}
