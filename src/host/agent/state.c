/* state.c - checks the agent's own files every second. If a cleaner of old files or a person deletes them,
 * processes would start and wait for ever for an agent that they cannot reach.
 *
 * A socket that was deleted or replaced is made again; existing connections are not affected. The state
 * directory is made again once no task is left on the machine. Until then the ends of tasks cannot be
 * recorded, and the machine has the fault STATE_FAULT, which takes it out of service. */
#include "core/health/fault.h"
#include "host/agent/internal.h"

#include <stdio.h>
#include <sys/stat.h>

enum { LOOK_MS = 1000 };

static struct file_mark mark_of(const char *path)
{
    struct stat about;
    if (lstat(path, &about) < 0)
        return (struct file_mark){0};
    return (struct file_mark){.device = about.st_dev, .inode = about.st_ino};
}

bool local_state_is_there(const char *path, struct file_mark mark)
{
    struct file_mark now = mark_of(path);
    return now.inode != 0 && now.inode == mark.inode && now.device == mark.device;
}

void local_state_mark(const char *path, struct file_mark *ret_mark)
{
    *ret_mark = mark_of(path);
}

void local_state_renewed(struct live *live, const struct error *error)
{
    struct buf text BUF_CLEANUP = {0};
    bool was = live->state_fault;
    if (error && was)
        return; /* reported before */
    buf_printf(&text, "files of the agent in %s were deleted%s%s", live->directory,
               error ? ", and cannot be made again: " : ", and have been made again",
               error ? error->text : "");
    struct str evidence = str_head_utf8(buf_str(&text), SIGNAL_EVIDENCE_MAX);
    struct signal signal = signal_now(STR(STATE_FAULT), error ? SIGNAL_OCCUR : SIGNAL_RECOVER, SEVERITY_MAJOR,
                                      evidence, local_wall_ns());
    live->state_fault = error != NULL;
    local_note(live->machine, buf_str(&text));
    if (live->state_fault != was)
        local_saw(live, &signal);
}

static bool has_fault_socket(const struct live *live)
{
    char path[AGENT_SOCKET_PATH_MAX + 1];
    agent_socket_path(live->directory, "faults.sock", path);
    return local_state_is_there(path, live->faults_mark);
}

static int renew_sockets(struct live *live, struct error *error)
{
    int rc = local_sockets_renew(live, error);
    if (rc < 0 || has_fault_socket(live))
        return rc;
    local_faults_close(live);
    return local_faults_listen(live, error);
}

static void on_timer(uv_timer_t *timer)
{
    struct live *live = timer->data;
    struct error error = {0};
    bool whole = launch_is_whole(live->launcher);
    bool sockets = local_sockets_whole(live) && has_fault_socket(live);
    int rc = whole ? 0 : launch_renew(live->launcher, &error);
    if (rc == 0)
        rc = local_tasks_make_folders(live, &error);
    if (rc == 0 && !sockets)
        rc = renew_sockets(live, &error);
    if (rc == 0 && !whole)
        local_cluster_keep(live->machine);
    if (rc < 0)
        local_state_renewed(live, &error);
    else if (!whole || !sockets || live->state_fault)
        local_state_renewed(live, NULL);
}

void local_state_watch(struct live *live)
{
    struct agent_host *host = live->machine->host;
    uv_timer_init(host->loop, &live->state_timer);
    live->state_timer.data = live;
    host->open_parts++;
    live->state_watched = true;
    uv_timer_start(&live->state_timer, on_timer, LOOK_MS, LOOK_MS);
}

static void on_timer_closed(uv_handle_t *handle)
{
    local_part_closed(handle->data);
}

void local_state_close(struct live *live)
{
    if (!live->state_watched)
        return;
    live->state_timer.data = live->machine->host;
    uv_close((uv_handle_t *)&live->state_timer, on_timer_closed);
}
