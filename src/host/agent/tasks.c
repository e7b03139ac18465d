#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/agent/codec.h"
#include "core/agent/rank_table.h"
#include "host/agent/internal.h"

/* --- start records -------------------------------------------------------------------------------- */

static void record_path(const struct live *live, uint64_t task, char ret_path[PATH_BYTES + 64])
{
    snprintf(ret_path, PATH_BYTES + 64, "%s/starts/%llu", live->directory, (unsigned long long)task);
}

static int write_all(int fd, struct str bytes)
{
    while (bytes.len > 0) {
        ssize_t written = write(fd, bytes.data, bytes.len);
        if (written < 0 && errno != EINTR)
            return -errno;
        if (written > 0)
            bytes = (struct str){bytes.data + written, bytes.len - (size_t)written};
    }
    return 0;
}

/* Writes the record of a task, without sync: a machine that loses power loses its tasks too. */
static int record_write(struct live *live, const struct task_launch *launch, struct error *error)
{
    char path[PATH_BYTES + 64];
    record_path(live, launch->task, path);
    BUF_CLEANUP struct buf frame = {0};
    struct from_controller message = {.kind = FROM_CONTROLLER_START, .start = *launch};
    int rc = codec_put_controller(&frame, &message, error);
    if (rc < 0)
        return rc;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    rc = fd < 0 ? -errno : write_all(fd, buf_str(&frame));
    if (fd >= 0)
        close(fd);
    return rc < 0 ? error_set_errno(error, -rc, "writing %s", path) : 0;
}

static void record_remove(struct live *live, uint64_t task)
{
    char path[PATH_BYTES + 64];
    record_path(live, task, path);
    unlink(path);
}

static bool record_exists(const struct live *live, uint64_t task)
{
    char path[PATH_BYTES + 64];
    record_path(live, task, path);
    return access(path, F_OK) == 0;
}

static bool read_all(const char *path, struct buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t count;
    do {
        buf_reserve(out, 65536);
        count = read(fd, out->data + out->len, 65536);
        if (count > 0)
            out->len += (size_t)count;
    } while ((count > 0 && out->len <= FRAME_BYTES_MAX) || (count < 0 && errno == EINTR));
    close(fd);
    return count == 0;
}

/* Returns the record of a task, or NULL if it is absent or damaged: the task's chips are then not known. */
static const struct task_launch *record_read(struct live *live, uint64_t task, struct arena *arena)
{
    char path[PATH_BYTES + 64];
    record_path(live, task, path);
    BUF_CLEANUP struct buf frame = {0};
    struct str bytes;
    size_t used;
    struct error error;
    struct from_controller *message = ARENA_NEW(arena, struct from_controller);
    if (!read_all(path, &frame) || codec_frame(frame.data, frame.len, &bytes, &used, &error) != 1 ||
        codec_get_controller(arena, bytes, message, &error) < 0 || message->kind != FROM_CONTROLLER_START ||
        message->start.task != task)
        return NULL;
    return &message->start;
}

const struct task_launch *local_tasks_launch_of(struct live *live, obj_id task, struct arena *arena)
{
    return record_read(live, task, arena);
}

bool local_tasks_has_jobset(struct live *live, obj_id jobset)
{
    char path[PATH_BYTES + 64];
    bool found = false;
    snprintf(path, sizeof path, "%s/starts", live->directory);
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && !found && (entry = readdir(directory));) {
        ARENA_CLEANUP struct arena arena = {0};
        int64_t task;
        const struct task_launch *launch = str_to_i64(str_from(entry->d_name), 1, INT64_MAX, &task)
                                               ? record_read(live, (uint64_t)task, &arena)
                                               : NULL;
        found = launch && launch->jobset == jobset;
    }
    if (directory)
        closedir(directory);
    return found;
}

/* --- what the launcher says ----------------------------------------------------------------------- */

static bool running_has(const struct live *live, uint64_t task)
{
    for (size_t i = 0; i < live->running.len; i++)
        if (live->running.items[i] == task)
            return true;
    return false;
}

static void running_add(struct live *live, uint64_t task)
{
    if (!running_has(live, task))
        vec_push(&live->running, task);
}

static void running_remove(struct live *live, uint64_t task)
{
    for (size_t i = live->running.len; i-- > 0;)
        if (live->running.items[i] == task)
            vec_remove(&live->running, i);
}

/* --- containers ----------------------------------------------------------------------------------- */

/* In the launcher, container `index` of a task has the task's uid with the index in its upper bits; the first
 * main container, which is often the only one, has the uid itself. */
enum { CONTAINER_SHIFT = 57 };
_Static_assert(AGENT_CONTAINER_TASKS_MAX <= UINT64_C(1) << CONTAINER_SHIFT &&
                   (uint64_t)TASK_CONTAINERS_MAX <= UINT64_C(1) << (64 - CONTAINER_SHIFT),
               "the two parts fit");

uint64_t local_container_uid(obj_id task, uint32_t index)
{
    return task | (uint64_t)index << CONTAINER_SHIFT;
}

void local_container_of(uint64_t uid, obj_id *ret_task, uint32_t *ret_index)
{
    *ret_task = uid & ((UINT64_C(1) << CONTAINER_SHIFT) - 1);
    *ret_index = (uint32_t)(uid >> CONTAINER_SHIFT);
}

static obj_id task_of(uint64_t uid)
{
    return uid & ((UINT64_C(1) << CONTAINER_SHIFT) - 1);
}

static uint32_t index_of(uint64_t uid)
{
    return (uint32_t)(uid >> CONTAINER_SHIFT);
}

void local_container_launch(const struct task_launch *launch, uint32_t index, struct container_launch *ret)
{
    if (launch->container_count > 0) {
        CHECK(index < launch->container_count);
        *ret = launch->containers[index];
        return;
    }
    *ret = (struct container_launch){.argv = launch->argv,
                                     .argc = launch->argc,
                                     .env = launch->env,
                                     .env_count = launch->env_count,
                                     .working_dir = launch->working_dir,
                                     .run_as_user = launch->run_as_user,
                                     .run_as_group = launch->run_as_group,
                                     .cpu_milli = launch->cpu_milli,
                                     .memory_bytes = launch->memory_bytes};
}

static void step_started(struct live *live, const struct launch_event *event)
{
    running_add(live, event->uid);
    local_step(live->machine,
               (struct agent_event){.kind = AGENT_TASK_STARTED,
                                    .container = index_of(event->uid),
                                    .run = event->run,
                                    .started = {task_of(event->uid), event->pid, event->started_ns}});
}

/* Opens the sockets at which libphalanx finds this agent again. A task without a record gets none. */
static void open_sockets(struct live *live, const struct task_launch *launch)
{
    struct error error;
    for (uint32_t i = 0; i == 0 || i < launch->container_count; i++)
        if (local_socket_open(live, launch, i, &error) < 0)
            local_note(live->machine, str_from(error.text));
}

/* Adopts a task of an earlier agent: reports the task before its containers. Returns false if it has no
 * record. */
static bool adopt_containers(struct live *live, obj_id task)
{
    ARENA_CLEANUP struct arena arena = {0};
    const struct task_launch *launch = record_read(live, task, &arena);
    if (!launch || launch->container_count == 0)
        return false;
    open_sockets(live, launch);
    struct agent_event event = {.kind = AGENT_ADOPTED};
    event.adopted.task = task;
    event.adopted.attempt = launch->attempt;
    event.adopted.name = launch->name;
    event.adopted.launch = launch;
    local_step(live->machine, event);
    local_pace_watch(live, launch, true);
    return true;
}

static void adopt(struct live *live, const struct launch_event *from)
{
    ARENA_CLEANUP struct arena arena = {0};
    if (adopt_containers(live, from->uid)) {
        step_started(live, from);
        return;
    }
    struct agent_event event = {.kind = AGENT_ADOPTED};
    event.adopted.task = from->uid;
    event.adopted.attempt = (int32_t)from->attempt;
    event.adopted.launch = record_read(live, from->uid, &arena);
    if (event.adopted.launch)
        open_sockets(live, event.adopted.launch);
    event.adopted.name = event.adopted.launch ? event.adopted.launch->name : str_from(from->name);
    event.adopted.pid = from->pid;
    event.adopted.started_ns = from->started_ns;
    running_add(live, from->uid);
    if (event.adopted.launch)
        local_pace_watch(live, event.adopted.launch, true);
    local_step(live->machine, event);
}

static void on_started(struct live *live, const struct launch_event *event)
{
    obj_id task = task_of(event->uid);
    if (agent_task_live(live->machine->agent, task)) {
        step_started(live, event);
    } else if (index_of(event->uid) == 0) {
        adopt(live, event);
    } else if (!agent_task_known(live->machine->agent, task) && adopt_containers(live, task)) {
        step_started(live, event);
    } else { /* a container of nothing we know */
        running_add(live, event->uid);
        (void)launch_stop(live->launcher, event->uid, 0, NULL);
    }
}

static void on_exited(struct live *live, const struct launch_event *event)
{
    const struct launch_exit *exit = &event->exit;
    obj_id task = task_of(event->uid);
    struct agent_event step = {
        .kind = AGENT_TASK_EXITED, .container = index_of(event->uid), .run = event->run};
    step.exited = (struct agent_exit){.task = task,
                                      .start_failed = exit->start_failed,
                                      .oom = exit->oom,
                                      .fenced = exit->fenced,
                                      .stopped = exit->stopped,
                                      .exit_code = exit->signaled ? -1 : exit->exit_code,
                                      .signal = exit->signaled ? exit->signal : 0,
                                      .started_ns = exit->started_ns,
                                      .finished_ns = exit->finished_ns,
                                      .pid = event->pid,
                                      .message = str_from(exit->message)};
    struct arena arena ARENA_CLEANUP = {0};
    struct signature signatures[SIGNATURES_MAX];
    size_t count = local_tail_signatures(live, event->uid, &arena, signatures);
    bool failed = exit->signaled || exit->exit_code != 0;
    for (size_t i = 0; i < count; i++) /* an end without another failure may still be a numeric one */
        if (failed || signatures[i].kind == SIGNATURE_NUMERIC)
            signatures[step.exited.signature_count++] = signatures[i];
    step.exited.signatures = signatures;
    running_remove(live, event->uid);
    if (index_of(event->uid) == 0) {
        local_pace_last(live, task);
        local_pace_forget(live, task);
    }
    bool known = agent_task_known(live->machine->agent, task) || adopt_containers(live, task);
    if (known || index_of(event->uid) == 0)
        local_step(live->machine, step);
    else
        (void)launch_forget(live->launcher, event->uid, NULL);
    if (live->running.len == 0 && !live->adopting)
        local_tasks_ended(live->machine->host);
}

static void on_launch_event(void *context, const struct launch_event *event)
{
    struct live *live = context;
    if (live->machine->host->closing)
        return;
    switch (event->kind) {
    case LAUNCH_STARTED:
    case LAUNCH_ADOPTED:
        on_started(live, event);
        break;
    case LAUNCH_EXITED:
        on_exited(live, event);
        break;
    case LAUNCH_NOTE:
        local_note(live->machine, str_from(event->note));
        break;
    }
}

/* --- effects -------------------------------------------------------------------------------------- */

static const char *text(struct arena *arena, struct str s)
{
    return arena_strdup(arena, s);
}

static const char *const *make_argv(struct arena *arena, const struct container_launch *launch)
{
    const char **argv = ARENA_ARRAY(arena, const char *, launch->argc + 1);
    for (size_t i = 0; i < launch->argc; i++)
        argv[i] = text(arena, launch->argv[i]);
    return argv;
}

static bool has_env(const struct container_launch *launch, const char *name)
{
    for (size_t i = 0; i < launch->env_count; i++)
        if (str_is(launch->env[i].name, name))
            return true;
    return false;
}

/* The environment that a command needs to run on this machine at all. The agent provides it unless the job
 * sets it, since there is no image to provide it. */
static const char *const machine_env[] = {"PATH",      "HOME", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH",
                                          "PYTHONPATH"};
enum { MACHINE_ENV = sizeof machine_env / sizeof *machine_env };

/* Returns the working directory of a container: its own folder if it names none. */
static const char *work_path(const struct live *live, struct arena *arena, uint64_t container,
                             struct str working_dir)
{
    if (working_dir.len > 0)
        return text(arena, working_dir);
    return arena_printf(arena, "%s/work/%llu", live->directory, (unsigned long long)container).data;
}

/* Returns a variable's value on this machine. HOME of tasks of other users is their own folder, as the
 * agent's is closed to them. */
static const char *machine_value(const char *name, const struct container_launch *launch,
                                 const char *directory)
{
    bool other = launch->run_as_user >= 0 && launch->run_as_user != (int64_t)geteuid();
    return other && strcmp(name, "HOME") == 0 ? directory : getenv(name);
}

static const char *const *make_env(struct live *live, struct arena *arena, const struct task_launch *task,
                                   uint32_t index, const struct container_launch *launch)
{
    const char *directory =
        work_path(live, arena, local_container_uid(task->task, index), launch->working_dir);
    const char **env = ARENA_ARRAY(arena, const char *, launch->env_count + MACHINE_ENV + 4);
    size_t count = 0;
    for (size_t i = 0; i < MACHINE_ENV; i++) {
        const char *value = machine_value(machine_env[i], launch, directory);
        if (value && !has_env(launch, machine_env[i]))
            env[count++] = arena_printf(arena, "%s=%s", machine_env[i], value).data;
    }
    for (size_t i = 0; i < launch->env_count; i++)
        if (!str_is(launch->env[i].name, "PHX_AGENT_SOCKET"))
            env[count++] = arena_printf(arena, STR_FORMAT "=" STR_FORMAT, STR_ARG(launch->env[i].name),
                                        STR_ARG(launch->env[i].value))
                               .data;
    env[count++] = arena_printf(arena, "PHX_AGENT_SOCKET=%s",
                                local_socket_path(live, local_container_uid(task->task, index), arena))
                       .data;
    if (local_store_env(live) && !has_env(launch, "PHX_MEMORY_DIR") &&
        !has_env(launch, "PHX_CHECKPOINT_STORE"))
        env[count++] = local_store_env(live);
    env[count] = has_env(launch, "PHX_MEMORY_DIR") ? NULL : local_memory_env(live, task, arena);
    return env;
}

/* Makes the working directory. `container` is the launcher's uid. */
static int make_directory(struct live *live, struct arena *arena, uint64_t container, struct str working_dir,
                          struct launch_spec *spec, struct error *error)
{
    spec->directory = work_path(live, arena, container, working_dir);
    if (working_dir.len > 0)
        return 0;
    if (mkdir(spec->directory, 0700) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "making %s", spec->directory);
    if (spec->set_user && chown(spec->directory, spec->user_id, spec->group_id) < 0)
        return error_set_errno(error, errno, "giving %s to user %u", spec->directory, spec->user_id);
    return 0;
}

/* Returns the launcher's name, "<namespace>.<pod>", followed by ".<container>" for all but the first main
 * container. The newest logs are kept for each name, so no container's logs displace another's. */
static const char *launch_name(struct arena *arena, const struct task_launch *launch,
                               const struct container_launch *container, uint32_t index)
{
    struct str name =
        arena_printf(arena, STR_FORMAT "%s" STR_FORMAT "%s" STR_FORMAT, STR_ARG(launch->namespace_),
                     launch->namespace_.len > 0 ? "." : "", STR_ARG(launch->name), index > 0 ? "." : "",
                     STR_ARG(index > 0 ? container->name : STR("")));
    name.len = name.len < LAUNCH_NAME_MAX ? name.len : LAUNCH_NAME_MAX;
    return text(arena, name);
}

static int spawn(struct live *live, const struct task_launch *launch, uint32_t index, uint32_t run,
                 struct error *error)
{
    ARENA_CLEANUP struct arena arena = {0};
    BUF_CLEANUP struct buf hosts = {0}, rank_table = {0};
    struct container_launch container;
    local_container_launch(launch, index, &container);
    struct launch_spec spec = {.uid = local_container_uid(launch->task, index),
                               .attempt = (uint32_t)launch->attempt,
                               .run = run,
                               .name = launch_name(&arena, launch, &container, index),
                               .argv = make_argv(&arena, &container),
                               .env = make_env(live, &arena, launch, index, &container),
                               .set_user = container.run_as_user >= 0 || container.run_as_group >= 0,
                               .user_id = local_user_of(&container),
                               .group_id = local_group_of(&container),
                               .memory_limit_bytes = (uint64_t)container.memory_bytes,
                               .cpu_limit_milli = (uint64_t)container.cpu_milli,
                               .grace_ns = launch->grace_ns,
                               .log_limit_bytes = live->log_bytes,
                               .log_files = live->log_files};
    if (spec.set_user && spec.user_id == geteuid() && spec.group_id == getegid())
        spec.set_user = false; /* it is ours already, which needs no privilege */
    local_checkpoints_make(live, launch);
    if (launch->rank_table.count > 0) {
        if (access("/etc/hosts", F_OK) < 0) /* else the task's begins with the machine's */
            buf_add_str(&hosts, STR("127.0.0.1 localhost\n::1 localhost\n"));
        rank_table_write_hosts(&hosts, &launch->rank_table);
        rank_table_write_json(&rank_table, &launch->rank_table);
        spec.hosts = buf_str(&hosts);
        spec.rank_table = buf_str(&rank_table);
    }
    int rc = make_directory(live, &arena, spec.uid, container.working_dir, &spec, error);
    if (rc == 0)
        rc = local_socket_open(live, launch, index, error);
    if (rc == 0 && (launch->container_count == 0 || !record_exists(live, launch->task))) {
        rc = local_volumes_make(live, launch, error);
        if (rc == 0)
            rc = record_write(live, launch, error);
    }
    if (rc == 0)
        rc = local_volumes_mounts(live, launch, &container, &arena, &spec, error);
    if (rc == 0)
        rc = local_tmp_mounts(live, launch->task, index, &arena, &spec, error);
    if (rc == 0 && spec.user_id == 0 && !container.security.read_only_root)
        local_root_mounts(live, launch, &arena, &spec);
    if (rc == 0)
        rc = local_confine(live, launch, &container, &arena, &spec, error);
    if (rc == 0)
        local_mounts_sort(&spec);
    if (rc == 0)
        rc = launch_spawn(live->launcher, &spec, error);
    return rc == ERROR_EXISTS ? 0 : rc;
}

void local_tasks_launch(struct live *live, const struct agent_effect *effect)
{
    struct error error;
    ARENA_CLEANUP struct arena arena = {0};
    struct task_launch own = *effect->launch;
    const struct task_launch *launch = &own;
    /* A task started in place of a stopped one would keep this agent alive for ever. Only the agent's end is
     * reported: on a failure the controller would try again, here. */
    if (live->machine->host->waiting_for_tasks)
        return;
    if (local_users_apply(live, &arena, &own, &error) == 0 &&
        spawn(live, launch, effect->container, effect->run, &error) == 0) {
        running_add(live, local_container_uid(launch->task, effect->container));
        if (effect->container == 0)
            local_pace_watch(live, launch, false);
        return;
    }
    if (launch->container_count == 0)
        record_remove(live, launch->task);
    struct failed_launch failed = {.task = launch->task, .container = effect->container, .run = effect->run};
    snprintf(failed.text, sizeof failed.text, "%s", error.text);
    vec_push(&live->failed, failed);
}

void local_tasks_stop(struct live *live, const struct task_stop *stop, uint32_t container)
{
    struct error error;
    int rc = launch_stop(live->launcher, local_container_uid(stop->task, container), stop->grace_ns, &error);
    if (rc < 0 && rc != ERROR_NOT_FOUND) /* it could not be started: its end is being reported */
        local_note(live->machine, str_from(error.text));
}

void local_tasks_forget(struct live *live, obj_id task, uint32_t containers)
{
    char path[PATH_BYTES + 64];
    for (uint32_t i = 0; i < containers; i++) {
        uint64_t container = local_container_uid(task, i);
        (void)launch_forget(live->launcher, container,
                            NULL); /* unknown: it could not be started, or is forgotten already */
        snprintf(path, sizeof path, "%s/work/%llu", live->directory, (unsigned long long)container);
        rmdir(path); /* what a task left there stays */
        local_socket_remove(live, container);
    }
    record_remove(live, task);
    local_volumes_remove(live, task);
}

void local_tasks_stop_all(struct live *live)
{
    for (size_t i = 0; i < live->running.len; i++)
        (void)launch_stop(live->launcher, live->running.items[i], -1,
                          NULL); /* one that has just ended is fine */
}

/* Finds the container of a forgotten task by the name of its logs (launch_name); the first container has no
 * name there. */
static uint64_t kept_container(const struct live *live, obj_id task, struct str container)
{
    for (uint32_t i = 1; i < TASK_CONTAINERS_MAX; i++) {
        const char *name = launch_kept_name(live->launcher, local_container_uid(task, i));
        struct str kept = name ? str_from(name) : STR("");
        if (str_ends(kept, container) && kept.len > container.len &&
            kept.data[kept.len - container.len - 1] == '.')
            return local_container_uid(task, i);
    }
    return task;
}

int local_container_find(struct live *live, obj_id task, struct str container, uint64_t *ret_uid,
                         struct error *error)
{
    ARENA_CLEANUP struct arena arena = {0};
    *ret_uid = task;
    const struct task_launch *launch = container.len > 0 ? record_read(live, task, &arena) : NULL;
    if (container.len > 0 && !launch)
        *ret_uid = kept_container(live, task, container);
    if (!launch || launch->container_count == 0)
        return 0; /* the name of its only container is known only to the controller */
    for (uint32_t i = 0; i < launch->container_count; i++) {
        if (!str_equal(launch->containers[i].name, container))
            continue;
        *ret_uid = local_container_uid(task, i);
        return 0;
    }
    return error_set(error, ERROR_NOT_FOUND, "the task has no container " STR_FORMAT, STR_ARG(container));
}

/* --- commands beside tasks (exec.c) --------------------------------------------------------------- */

int local_container_process(struct live *live, obj_id task, struct str container, uint64_t *ret_uid,
                            struct error *error)
{
    if (!agent_task_live(live->machine->agent, task))
        return error_set(error, ERROR_UNAVAILABLE, "the task does not run on this machine");
    return local_container_find(live, task, container, ret_uid, error);
}

void local_terminal_owner(struct live *live, obj_id task, int fd)
{
    ARENA_CLEANUP struct arena arena = {0};
    const struct task_launch *launch = record_read(live, task, &arena);
    if (launch && launch->run_as_user >= 0 && fchown(fd, (uid_t)launch->run_as_user, (gid_t)-1) < 0)
        local_note(live->machine, STR("a terminal could not be given to its task's user"));
}

/* --- start and end -------------------------------------------------------------------------------- */

static int make_subdirectory(const struct live *live, const char *name, struct error *error)
{
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", live->directory, name);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "making %s", path);
    return 0;
}

int local_tasks_make_folders(const struct live *live, struct error *error)
{
    static const char *const names[] = {"starts", "work", "uploads", "empty"};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof names / sizeof *names; i++)
        rc = make_subdirectory(live, names[i], error);
    return rc;
}

static void on_launcher_closed(void *context)
{
    local_part_closed(context);
}

int local_tasks_new(struct local_machine *machine, const struct agent_host_options *options,
                    struct error *error)
{
    struct agent_host *host = machine->host;
    struct live *live = mem_alloc(sizeof *live);
    live->machine = machine;
    list_init(&live->sockets);
    list_init(&live->clients);
    list_init(&live->streams);
    list_init(&live->execs);
    list_init(&live->probes);
    list_init(&live->errands);
    live->hooks_dir = options->hooks_dir ? strdup(options->hooks_dir) : NULL;
    live->injection = options->injection;
    live->log_bytes = options->log_bytes;
    live->log_files = options->log_files;
    machine->live = live; /* on failure live_close frees the parts that exist */
    struct launcher_options launcher = {
        .directory = options->state, .shim = options->shim, .on_event = on_launch_event, .context = live};
    int rc = launcher_new(host->loop, &launcher, &live->launcher, error);
    if (rc < 0)
        return rc;
    host->open_parts++;
    char *real = realpath(options->state, NULL); /* tasks get paths in it and run elsewhere */
    if (!real || strlen(real) >= sizeof live->directory)
        rc = error_set(error, ERROR_INVALID, "state directory %s: its path is too long", options->state);
    else
        snprintf(live->directory, sizeof live->directory, "%s", real);
    free(real);
    if (rc == 0)
        rc = local_tasks_make_folders(live, error);
    if (rc == 0)
        rc = local_users_init(live, options, error);
    if (rc == 0)
        rc = local_volumes_init(live, options->volumes_dir, error);
    if (rc == 0)
        local_confine_init(live, options);
    if (rc == 0)
        local_memory_init(live, options->memory_dir);
    if (rc == 0)
        rc = local_store_init(live, options->checkpoint_store, error);
    if (rc == 0) {
        local_root_init(live);
        local_logs_init(live);
        local_paces_init(live);
    }
    if (rc == 0)
        rc = local_metrics_new(live, options, error);
    if (rc == 0)
        rc = local_health_new(live, options, error);
    live->chips = options->chips;
    if (rc == 0)
        rc = local_faults_listen(live, error);
    if (rc == 0)
        local_state_watch(live);
    return rc;
}

/* Adopts a task during whose start the last agent died: the launcher has not reported it yet. A record of a
 * task that the launcher does not know is left from an agent that died before it started the task, or during
 * local_tasks_forget: no end of such a task would ever be reported. */
static void adopt_unreported(struct live *live)
{
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/starts", live->directory);
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        int64_t task;
        if (!str_to_i64(str_from(entry->d_name), 1, INT64_MAX, &task) ||
            agent_task_known(live->machine->agent, (obj_id)task))
            continue;
        bool known = false;
        for (uint32_t i = 0; i < TASK_CONTAINERS_MAX && !known; i++)
            known = launch_has(live->launcher, local_container_uid((obj_id)task, i));
        if (known && !adopt_containers(live, (obj_id)task))
            adopt(live, &(struct launch_event){.uid = (uint64_t)task, .name = ""});
        else if (!known)
            record_remove(live, (uint64_t)task);
    }
    if (directory)
        closedir(directory);
}

int local_tasks_adopt(struct live *live, struct error *error)
{
    live->adopting = true;
    int alive = launch_adopt(live->launcher, error);
    if (alive >= 0)
        adopt_unreported(live);
    if (alive >= 0)
        local_volumes_sweep(live);
    local_memory_sweep(live);
    live->adopting = false;
    if (alive < 0)
        return alive;
    local_injections_init(live);
    if (alive > 0) {
        struct error note;
        error_set(&note, ERROR_INVALID, "%d running tasks of an earlier agent taken over", alive);
        local_note(live->machine, str_from(note.text));
    }
    return 0;
}

void local_tasks_close(struct live *live)
{
    local_logs_shutdown(live);
    local_store_close(live);
    local_memory_close(live);
    local_injections_close(live);
    local_paces_close(live);
    local_health_close(live);
    local_state_close(live);
    local_faults_close(live);
    local_metrics_close(live);
    local_exec_close_all(live);
    local_probe_close_all(live);
    local_errand_close_all(live);
    local_sockets_close(live);
    local_clients_close(live);
    if (live->launcher)
        launch_shutdown(live->launcher, on_launcher_closed, live->machine->host);
}

void local_tasks_free(struct live *live)
{
    if (!live)
        return;
    vec_done(&live->failed);
    local_confine_done(live);
    local_usage_free(live);
    local_metrics_free(live);
    free(live->volumes_dir);
    free(live->hooks_dir);
    vec_done(&live->running);
    mem_free(live);
}
