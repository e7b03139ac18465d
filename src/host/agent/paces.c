/* paces.c - steps of programs without libphalanx, read from their logs by the job's patterns (steplines.h).
 *
 * Each PERIOD_MS at most TURN_BYTES of new bytes are read of each watched log; earlier ones are skipped. So a
 * turn costs at most TURN_BYTES x 2 x LINE_PROGRAM_MAX simple steps, whatever the log contains.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/agent/internal.h"
#include "host/agent/steplines.h"

enum { PERIOD_MS = 200, TURN_BYTES = 128 * 1024 };

struct pace_watch {
    struct live *live;
    struct list_node node;
    obj_id task;
    struct step_lines lines;
    int fd; /* -1: not there yet */
    bool from_end;
};

/* --- logs ----------------------------------------------------------------------------------------- */

static void open_log(struct pace_watch *watch)
{
    char path[LAUNCH_PATH_MAX];
    uint64_t process = local_container_uid(watch->task, 0);
    if (launch_log_path(watch->live->launcher, process, path, NULL) < 0)
        return;
    watch->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (watch->fd >= 0 && watch->from_end)
        lseek(watch->fd, 0, SEEK_END);
}

/* Opens the current file if the log was rotated; it continues where the old one ended. */
static void reopen(struct pace_watch *watch)
{
    char path[LAUNCH_PATH_MAX];
    struct stat known, now;
    uint64_t process = local_container_uid(watch->task, 0);
    if (fstat(watch->fd, &known) < 0 || launch_log_path(watch->live->launcher, process, path, NULL) < 0 ||
        stat(path, &now) < 0 || (now.st_ino == known.st_ino && now.st_dev == known.st_dev))
        return;
    close(watch->fd);
    watch->fd = -1;
    watch->from_end = false;
    open_log(watch);
}

static void read_log(struct pace_watch *watch)
{
    static char room[TURN_BYTES];
    struct stat info;
    int64_t now_ns = local_boot_ns();
    if (watch->fd < 0)
        open_log(watch);
    if (watch->fd < 0)
        return;
    off_t at = lseek(watch->fd, 0, SEEK_CUR);
    if (fstat(watch->fd, &info) == 0 && info.st_size - at > TURN_BYTES) {
        lseek(watch->fd, info.st_size - TURN_BYTES, SEEK_SET);
        watch->lines.skipping = true;
    }
    ssize_t count = read(watch->fd, room, sizeof room);
    if (count > 0)
        step_lines_take(&watch->lines, (struct str){room, (size_t)count}, now_ns);
    else if (count == 0)
        reopen(watch);
}

static void look(struct pace_watch *watch)
{
    int64_t lines = watch->lines.matched;
    read_log(watch);
    if (watch->lines.matched == lines)
        return;
    struct agent_event event = {.kind = AGENT_TASK_PACED};
    event.paced.task = watch->task;
    event.paced.step = watch->lines.newest;
    event.paced.step.pace = watch->lines.sums;
    local_step(watch->live->machine, event);
}

void local_pace_last(struct live *live, obj_id task)
{
    list_for_each(node, &live->paces)
    {
        struct pace_watch *watch = container_of(node, struct pace_watch, node);
        if (watch->task == task)
            look(watch);
    }
}

static void watch_free(struct pace_watch *watch)
{
    list_remove(&watch->node);
    if (watch->fd >= 0)
        close(watch->fd);
    step_lines_done(&watch->lines);
    mem_free(watch);
}

static void on_pace_timer(uv_timer_t *timer)
{
    struct live *live = timer->data;
    list_for_each_safe(node, after, &live->paces) look(container_of(node, struct pace_watch, node));
    if (list_empty(&live->paces))
        uv_timer_stop(timer);
}

/* --- begin and end -------------------------------------------------------------------------------- */

void local_pace_watch(struct live *live, const struct task_launch *launch, bool adopted)
{
    if (launch->step_pattern.len == 0)
        return;
    local_pace_forget(live, launch->task); /* a container that runs again */
    struct pace_watch *watch = mem_alloc(sizeof *watch);
    watch->live = live;
    watch->task = launch->task;
    watch->fd = -1;
    watch->from_end = adopted;
    step_lines_init(&watch->lines, launch->step_pattern, launch->work_pattern);
    watch->lines.midst = adopted;
    list_append(&live->paces, &watch->node);
    if (!uv_is_active((uv_handle_t *)&live->pace_timer))
        uv_timer_start(&live->pace_timer, on_pace_timer, PERIOD_MS, PERIOD_MS);
}

void local_pace_forget(struct live *live, obj_id task)
{
    list_for_each_safe(node, after, &live->paces)
    {
        struct pace_watch *watch = container_of(node, struct pace_watch, node);
        if (watch->task == task)
            watch_free(watch);
    }
}

void local_paces_init(struct live *live)
{
    list_init(&live->paces);
    uv_timer_init(live->machine->host->loop, &live->pace_timer);
    live->pace_timer.data = live;
    live->pacing = true;
    live->machine->host->open_parts++;
}

static void on_pace_timer_closed(uv_handle_t *handle)
{
    struct live *live = handle->data;
    local_part_closed(live->machine->host);
}

void local_paces_close(struct live *live)
{
    if (!live->pacing)
        return;
    list_for_each_safe(node, after, &live->paces) watch_free(container_of(node, struct pace_watch, node));
    uv_close((uv_handle_t *)&live->pace_timer, on_pace_timer_closed);
}
