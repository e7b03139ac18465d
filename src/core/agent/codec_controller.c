#include "core/agent/codec_pb.h"

#include "base/check.h"
#include "core/words/limits.h"

static void write_command(struct arena *arena, const struct task_launch *launch, Wire__TaskLaunch *ret)
{
    CHECK(launch->argv || launch->argc == 0);
    CHECK(launch->env || launch->env_count == 0);
    ret->n_argv = launch->argc;
    ret->argv = ARENA_ARRAY(arena, char *, launch->argc);
    for (size_t i = 0; i < launch->argc; i++)
        ret->argv[i] = codec_text(arena, launch->argv[i]);
    ret->n_env = launch->env_count;
    ret->env = codec_write_env(arena, launch->env, launch->env_count);
}

static ProtobufCBinaryData write_key(struct arena *arena, const uint8_t key[GANG_KEY_BYTES])
{
    ProtobufCBinaryData bytes = {.len = GANG_KEY_BYTES, .data = ARENA_ARRAY(arena, uint8_t, GANG_KEY_BYTES)};
    memcpy(bytes.data, key, GANG_KEY_BYTES);
    return bytes;
}

void codec_write_launch(struct arena *arena, const struct task_launch *launch, Wire__TaskLaunch *ret)
{
    CHECK(launch->task != 0 && launch->attempt >= 0); /* checked by check_launch */
    CHECK(launch->grace_ns >= 0 && launch->restore_step >= -1);
    wire__task_launch__init(ret);
    ret->task = launch->task;
    ret->jobset = launch->jobset;
    ret->attempt = launch->attempt;
    ret->name = codec_text(arena, launch->name);
    ret->namespace_ = codec_text(arena, launch->namespace_);
    ret->checkpoint_folder = codec_text(arena, launch->checkpoint_folder);
    write_command(arena, launch, ret);
    ret->working_dir = codec_text(arena, launch->working_dir);
    ret->run_as_user = launch->run_as_user;
    ret->run_as_group = launch->run_as_group;
    ret->uid_from = launch->uid_from;
    ret->uid_count = launch->uid_count;
    ret->fs_group = launch->fs_group;
    ret->checkpoint_dir = codec_text(arena, launch->checkpoint_dir);
    ret->chips = launch->chips;
    ret->cpu_milli = launch->cpu_milli;
    ret->memory_bytes = launch->memory_bytes;
    ret->grace_ns = launch->grace_ns;
    ret->rank = launch->rank;
    ret->world = launch->world;
    ret->restore_step = launch->restore_step;
    ret->restore_attempt = launch->restore_attempt;
    ret->rank_table_number = launch->rank_table_number;
    ret->rank_table =
        launch->rank_table_number == 0 ? codec_write_rank_table(arena, &launch->rank_table) : NULL;
    ret->step_pattern = codec_text(arena, launch->step_pattern);
    ret->work_pattern = codec_text(arena, launch->work_pattern);
    ret->gang_key = write_key(arena, launch->gang_key);
    codec_write_containers(arena, launch, ret);
}

void codec_write_rejoin(struct arena *arena, const struct task_rejoin *rejoin, Wire__TaskRejoin *ret)
{
    CHECK(rejoin->task != 0 && rejoin->attempt >= 0 && rejoin->restore_step >= -1);
    CHECK(rejoin->rendezvous.len <= RENDEZVOUS_MAX && rejoin->rank < rejoin->world);
    wire__task_rejoin__init(ret);
    ret->task = rejoin->task;
    ret->attempt = rejoin->attempt;
    ret->rank = rejoin->rank;
    ret->world = rejoin->world;
    ret->full_world = rejoin->full_world;
    ret->flags = rejoin->flags;
    ret->rendezvous = codec_text(arena, rejoin->rendezvous);
    ret->restore_step = rejoin->restore_step;
    ret->restore_attempt = rejoin->restore_attempt;
    ret->gang_key = write_key(arena, rejoin->gang_key);
}

/* --- reading -------------------------------------------------------------------------------------- */

static int read_command(struct arena *arena, const Wire__TaskLaunch *pb, struct task_launch *ret,
                        struct error *error)
{
    ret->argv = codec_try_array(arena, pb->n_argv, sizeof *ret->argv, error);
    if (!ret->argv)
        return ERROR_LIMIT;
    ret->argc = pb->n_argv;
    for (size_t i = 0; i < pb->n_argv; i++)
        ret->argv[i] = str_from(pb->argv[i]);
    ret->env_count = pb->n_env;
    return codec_read_env(arena, pb->env, pb->n_env, &ret->env, error);
}

static int check_launch(const Wire__TaskLaunch *pb, struct error *error)
{
    unsigned long long task = pb->task;
    if (pb->task == 0)
        return error_set(error, ERROR_INVALID, "start without a task");
    if (pb->attempt < 0)
        return error_set(error, ERROR_INVALID, "start of task %llu: attempt %d", task, pb->attempt);
    if (pb->name[0] == 0 || strlen(pb->name) > NAME_MAX_BYTES || strchr(pb->name, '/') || pb->name[0] == '.')
        return error_set(error, ERROR_INVALID, "start of task %llu: name \"%.64s\"", task, pb->name);
    if (pb->run_as_user < -1 || pb->run_as_user > UINT32_MAX - 1 || pb->run_as_group < -1 ||
        pb->run_as_group > UINT32_MAX - 1)
        return error_set(error, ERROR_INVALID, "start of task %llu: user %lld, group %lld", task,
                         (long long)pb->run_as_user, (long long)pb->run_as_group);
    if (pb->uid_count > UINT32_MAX - pb->uid_from)
        return error_set(error, ERROR_INVALID, "start of task %llu: %u user ids from %u on", task,
                         pb->uid_count, pb->uid_from);
    if (pb->cpu_milli < 0 || pb->memory_bytes < 0 || pb->grace_ns < 0)
        return error_set(error, ERROR_INVALID, "start of task %llu: negative limit or grace", task);
    if (pb->restore_step < -1)
        return error_set(error, ERROR_INVALID, "start of task %llu: restore step %lld", task,
                         (long long)pb->restore_step);
    return 0;
}

/* Reads a gang key; a controller of an earlier version sends none. */
static int read_key(unsigned long long task, const ProtobufCBinaryData *from, uint8_t ret_key[GANG_KEY_BYTES],
                    struct error *error)
{
    if (from->len != 0 && from->len != GANG_KEY_BYTES)
        return error_set(error, ERROR_INVALID, "task %llu: a gang's key of %zu bytes (32 are expected)", task,
                         from->len);
    if (from->len > 0)
        memcpy(ret_key, from->data, GANG_KEY_BYTES);
    return 0;
}

int codec_read_launch(struct arena *arena, const Wire__TaskLaunch *pb, struct task_launch *ret,
                      struct error *error)
{
    int rc = check_launch(pb, error);
    if (rc < 0)
        return rc;
    struct task_launch launch = {.task = pb->task,
                                 .jobset = pb->jobset,
                                 .attempt = pb->attempt,
                                 .name = str_from(pb->name),
                                 .namespace_ = str_from(pb->namespace_),
                                 .checkpoint_folder = str_from(pb->checkpoint_folder),
                                 .working_dir = str_from(pb->working_dir),
                                 .run_as_user = pb->run_as_user,
                                 .run_as_group = pb->run_as_group,
                                 .uid_from = pb->uid_from,
                                 .uid_count = pb->uid_count,
                                 .fs_group = pb->fs_group,
                                 .checkpoint_dir = str_from(pb->checkpoint_dir),
                                 .chips = pb->chips,
                                 .cpu_milli = pb->cpu_milli,
                                 .memory_bytes = pb->memory_bytes,
                                 .grace_ns = pb->grace_ns,
                                 .rank = pb->rank,
                                 .world = pb->world,
                                 .restore_step = pb->restore_step,
                                 .restore_attempt = pb->restore_attempt,
                                 .rank_table_number = pb->rank_table_number,
                                 .step_pattern = str_from(pb->step_pattern),
                                 .work_pattern = str_from(pb->work_pattern)};
    rc = read_command(arena, pb, &launch, error);
    if (rc == 0)
        rc = read_key(pb->task, &pb->gang_key, launch.gang_key, error);
    if (rc == 0 && pb->rank_table)
        rc = codec_read_rank_table(arena, pb->rank_table, &launch.rank_table, error);
    if (rc == 0)
        rc = codec_read_containers(arena, pb, &launch, error);
    if (rc < 0)
        return rc;
    *ret = launch;
    return 0;
}

int codec_read_rejoin(const Wire__TaskRejoin *pb, struct task_rejoin *ret, struct error *error)
{
    struct task_rejoin rejoin = {.task = pb->task,
                                 .attempt = pb->attempt,
                                 .rank = pb->rank,
                                 .world = pb->world,
                                 .full_world = pb->full_world,
                                 .flags = pb->flags,
                                 .rendezvous = str_from(pb->rendezvous),
                                 .restore_step = pb->restore_step,
                                 .restore_attempt = pb->restore_attempt};
    unsigned long long task = pb->task;
    if (rejoin.task == 0)
        return error_set(error, ERROR_INVALID, "rejoin without a task");
    if (rejoin.attempt < 0 || rejoin.restore_step < -1 || rejoin.restore_attempt < 0)
        return error_set(error, ERROR_INVALID, "rejoin of task %llu: attempt %d, restore step %lld of %d",
                         task, rejoin.attempt, (long long)rejoin.restore_step, rejoin.restore_attempt);
    if (rejoin.rank >= rejoin.world || rejoin.world > rejoin.full_world)
        return error_set(error, ERROR_INVALID, "rejoin of task %llu: rank %u of %u, %u in full", task,
                         rejoin.rank, rejoin.world, rejoin.full_world);
    if (rejoin.rendezvous.len > RENDEZVOUS_MAX)
        return error_set(error, ERROR_LIMIT,
                         "rejoin of task %llu: a rendezvous of %zu bytes (RENDEZVOUS_MAX is %d)", task,
                         rejoin.rendezvous.len, RENDEZVOUS_MAX);
    for (size_t i = 0; i < rejoin.rendezvous.len; i++)
        if (rejoin.rendezvous.data[i] <= ' ' || rejoin.rendezvous.data[i] > '~')
            return error_set(error, ERROR_INVALID, "rejoin of task %llu: no host and port at byte %zu", task,
                             i);
    int rc = read_key(task, &pb->gang_key, rejoin.gang_key, error);
    if (rc == 0)
        *ret = rejoin;
    return rc;
}
