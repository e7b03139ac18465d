#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "host/launch/state.h"

/* A task has three sources of news, in falling speed and rising certainty: its message in the FIFO, the end
 * of its shim (pidfd), and its file. The first two only tell when to read the file; reports are made from the
 * record. */

/* ---- reports ---- */

static void emit(struct task *task, struct launch_event event)
{
    event.uid = task->uid;
    event.attempt = task->attempt;
    event.run = task->run;
    event.name = task->name;
    task->launcher->on_event(task->launcher->context, &event);
}

static void emit_note(struct task *task, enum note reason, const char *text)
{
    if (task->launcher->noted & reason)
        return;
    task->launcher->noted |= reason;
    emit(task, (struct launch_event){.kind = LAUNCH_NOTE, .note = text});
}

static void emit_notes(struct task *task)
{
    char text[400];
    if (task->start.hosts_error) {
        bool absent = task->start.hosts_error == ENOENT;
        snprintf(text, sizeof text,
                 "names of a job's other tasks do not resolve inside its tasks (the file $PHX_HOSTS_FILE has "
                 "them): %s (%s); %s",
                 absent ? "there is no /etc/hosts to mount on" : "no private mount namespace is allowed",
                 strerror(task->start.hosts_error),
                 absent      ? "make an empty /etc/hosts"
                 : geteuid() ? "run the agent as root, or allow user namespaces (user.max_user_namespaces, "
                               "kernel.unprivileged_userns_clone)"
                             : "give the agent CAP_SYS_ADMIN");
        emit_note(task, NOTE_HOSTS, text);
    }
    if (task->start.mounts_error) {
        snprintf(text, sizeof text,
                 "tasks share the machine's /tmp and /var/tmp, and may see files of the agent and of other "
                 "tasks: no private mount namespace here (%s)",
                 strerror(task->start.mounts_error));
        emit_note(task, NOTE_TMP, text);
    }
    if (task->start.cgroup_error) {
        snprintf(text, sizeof text, "resource limits are not all enforced: %s: %s",
                 stage_text(task->start.cgroup_stage), strerror(task->start.cgroup_error));
        emit_note(task, NOTE_CGROUP, text);
    }
    if (task->limits_unenforced)
        emit_note(task, NOTE_NO_CGROUPS,
                  "memory, CPU and process limits are not enforced: no writable cgroups here");
}

void task_started(struct task *task, const struct shim_start *start, enum launch_event_kind kind)
{
    CHECK(task->state == TASK_STARTING);
    task->state = TASK_RUNNING;
    task->start = *start;
    emit(task, (struct launch_event){.kind = kind, .pid = start->task_pid, .started_ns = start->started_ns});
    emit_notes(task);
}

void task_exited(struct task *task, const struct shim_exit *record, int file_fd)
{
    CHECK(task->state != TASK_EXITED && !task->forgotten);
    struct task_strings strings = {.name = STR("")};
    struct task_file file;
    char *block = NULL;
    if (file_fd >= 0 && (record->flags & SHIM_EXIT_START_FAILED) && task_file_read(file_fd, &file) == 0)
        task_file_strings(file_fd, &file, &strings, &block);
    BUF_CLEANUP struct buf message = {0};
    exit_message(record, &strings, &message);
    mem_free(block);
    task->state = TASK_EXITED;
    bool signaled = record->flags & SHIM_EXIT_SIGNALED;
    emit(task, (struct launch_event){
                   .kind = LAUNCH_EXITED,
                   .pid = task->start.task_pid,
                   .started_ns = record->started_ns,
                   .exit =
                       {
                           .signaled = signaled,
                           .exit_code = signaled ? 0 : record->status,
                           .signal = signaled ? record->status : 0,
                           .start_failed = record->flags & SHIM_EXIT_START_FAILED,
                           .oom = record->flags & SHIM_EXIT_OOM,
                           .fenced = record->flags & SHIM_EXIT_FENCED,
                           .stopped = record->flags & SHIM_EXIT_STOPPED,
                           .lost = record->flags & SHIM_EXIT_LOST,
                           .started_ns = record->started_ns,
                           .finished_ns = record->finished_ns,
                           .user_us = record->user_us,
                           .system_us = record->system_us,
                           .max_rss_bytes = record->max_rss_bytes,
                           .log_dropped_bytes = record->log_dropped_bytes,
                           .message = message.data,
                       },
               });
}

void task_examine(struct task *task, bool shim_gone)
{
    if (task->state == TASK_EXITED || task->state == TASK_SWEEPING)
        return;
    struct task_file file = {0};
    int fd = task_file_open(task->launcher, task->uid);
    bool valid = fd >= 0 && task_file_read(fd, &file) == 0;
    if (valid && file.start.magic && task->state == TASK_STARTING)
        task_started(task, &file.start, LAUNCH_STARTED);
    if (valid && file.exit.magic)
        task_exited(task, &file.exit, fd);
    if (fd >= 0)
        close(fd);
    if (shim_gone && task->state != TASK_EXITED)
        sweep_begin(task);
}

/* ---- the shim's end ---- */

static void on_poll_closed(uv_handle_t *handle)
{
    struct task *task = handle->data;
    struct launcher *launcher = task->launcher;
    close(task->pidfd);
    task->pidfd = -1;
    task->watched = false;
    if (task->forgotten)
        timer_arm(launcher);
    handle_closed(launcher);
}

static void on_shim_gone(uv_poll_t *poll, int status, int events)
{
    struct task *task = poll->data;
    if (task->child)
        waitpid(task->shim_pid, NULL, WNOHANG);
    uv_close((uv_handle_t *)poll, on_poll_closed);
    if (!task->forgotten)
        task_examine(task, true);
}

int watch_task(struct task *task, int pidfd, struct error *error)
{
    struct launcher *launcher = task->launcher;
    int code = uv_poll_init(launcher->loop, &task->poll, pidfd);
    if (code < 0)
        return error_set(error, ERROR_IO, "watching task %s: %s", task->name, uv_strerror(code));
    task->poll.data = task;
    task->pidfd = pidfd;
    task->watched = true;
    launcher->handles++;
    code = uv_poll_start(&task->poll, UV_READABLE, on_shim_gone);
    CHECK(code == 0); /* fails only for a handle that is closing */
    return 0;
}

/* ---- the FIFO and the timer ---- */

static void examine_all(struct launcher *launcher)
{
    list_for_each_safe(node, after, &launcher->tasks)
    {
        struct task *task = container_of(node, struct task, node);
        if (!task->forgotten)
            task_examine(task, false);
    }
}

static void on_event(struct launcher *launcher, const struct shim_event *event)
{
    struct task *task = u64_map_get(&launcher->by_uid, event->uid);
    if (!task || !task->watched)
        return; /* of an earlier run; or found by launch_adopt before its exec, which the timer handles */
    if (task->child && event->start.shim_pid != 0 && event->start.shim_pid != task->shim_pid)
        return; /* of the run before this one */
    if (event->kind == SHIM_EVENT_STARTED && task->state == TASK_STARTING)
        task_started(task, &event->start, LAUNCH_STARTED);
    if (event->kind == SHIM_EVENT_EXITED)
        task_examine(task, false);
}

static void on_events(uv_poll_t *poll, int status, int events)
{
    struct launcher *launcher = poll->data;
    struct shim_event block[64];
    ssize_t got;
    while (!launcher->closing && (got = read(launcher->events_fd, block, sizeof block)) > 0) {
        size_t count = (size_t)got / sizeof block[0];
        for (size_t i = 0; i < count && !launcher->closing; i++) {
            if (block[i].magic != SHIM_EVENT_MAGIC) { /* shims of another version among them */
                examine_all(launcher);
                break;
            }
            on_event(launcher, &block[i]);
        }
        if ((size_t)got < sizeof block)
            break;
    }
}

enum { TIMER_MS = 5 };

static void on_timer(uv_timer_t *timer)
{
    struct launcher *launcher = timer->data;
    bool again = false;
    list_for_each_safe(node, after, &launcher->tasks)
    {
        struct task *task = container_of(node, struct task, node);
        if (task->forgotten && !task->watched)
            task_free(task);
        else if (task->state == TASK_SWEEPING)
            again |= !sweep_step(task);
        else if (task->state != TASK_EXITED && !task->watched)
            again |= !adopt_again(task);
        if (launcher->closing)
            return;
    }
    if (again)
        timer_arm(launcher);
}

/* Starts the timer unless it runs: if frequent callers postponed it, it would never fire. */
void timer_arm(struct launcher *launcher)
{
    if (!launcher->closing && !uv_is_active((uv_handle_t *)&launcher->timer))
        uv_timer_start(&launcher->timer, on_timer, TIMER_MS, 0);
}

int watch_start(struct launcher *launcher, struct error *error)
{
    int code = uv_poll_init(launcher->loop, &launcher->events_poll, launcher->events_fd);
    if (code < 0)
        return error_set(error, ERROR_IO, "watching %s/events: %s", launcher->directory, uv_strerror(code));
    uv_timer_init(launcher->loop, &launcher->timer);
    launcher->events_poll.data = launcher;
    launcher->timer.data = launcher;
    launcher->handles = 2;
    code = uv_poll_start(&launcher->events_poll, UV_READABLE, on_events);
    CHECK(code == 0);
    return 0;
}

static void on_own_closed(uv_handle_t *handle)
{
    handle_closed(handle->data);
}

void watch_stop(struct launcher *launcher)
{
    uv_close((uv_handle_t *)&launcher->events_poll, on_own_closed);
    uv_close((uv_handle_t *)&launcher->timer, on_own_closed);
    list_for_each(node, &launcher->tasks)
    {
        struct task *task = container_of(node, struct task, node);
        if (task->watched && !uv_is_closing((uv_handle_t *)&task->poll))
            uv_close((uv_handle_t *)&task->poll, on_poll_closed);
    }
}
