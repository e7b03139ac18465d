/* paces.c - steps of programs without libphalanx, read from their logs by the job's patterns.
 *
 * Each PERIOD_MS new bytes of a watched log are cut into lines. A line that matches the step pattern is a
 * step; the number behind a match of the work pattern is what one took of the rank's own time, in
 * milliseconds; without a work pattern the time between steps counts as that. Bounded: LINE_BYTES of a
 * line, TURN_BYTES of a log in one turn (what is beyond is passed over), LINE_PROGRAM_MAX instructions a
 * pattern, so a turn costs at most TURN_BYTES x 2 x LINE_PROGRAM_MAX simple steps, whatever a log says.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/spec/spec.h"
#include "host/agent/internal.h"

enum { PERIOD_MS = 200, LINE_BYTES = 1024, TURN_BYTES = 128 * 1024 };

struct pace_watch {
    struct live *live;
    struct list_node node;
    obj_id task;
    struct arena arena;          /* of the patterns */
    struct matcher *step, *work; /* NULL: none */
    int fd;                      /* -1: not there yet */
    bool from_end;
    struct buf line;           /* the begin of one */
    bool skipping;             /* until the line's end */
    int64_t first_ns, step_ns; /* boottime of the first step; of the last look that saw one */
    struct pace_sums sums;
};

/* --- lines ---------------------------------------------------------------------------------------- */

/* "12.5" in microseconds; false: no number stands there. */
static bool read_milliseconds(struct str text, int64_t *ret_us)
{
    int64_t us = 0, unit = 1000;
    size_t at = 0, digits = 0;
    bool fraction = false;
    while (at < text.len &&
           (text.data[at] == ' ' || text.data[at] == '\t' || text.data[at] == ':' || text.data[at] == '='))
        at++;
    for (; at < text.len && digits < 12; at++) {
        if (text.data[at] == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (text.data[at] < '0' || text.data[at] > '9')
            break;
        digits++;
        if (!fraction)
            us = us * 10 + (text.data[at] - '0') * 1000;
        else
            us += (unit /= 10) * (text.data[at] - '0');
    }
    *ret_us = us;
    return digits > 0;
}

static void take_line(struct pace_watch *watch, struct str line, int64_t now_ns)
{
    size_t end;
    int64_t us;
    if (watch->work && matcher_find(watch->work, line, &end) &&
        read_milliseconds((struct str){line.data + end, line.len - end}, &us))
        watch->sums.own_us += us;
    if (!watch->step || !matcher_find(watch->step, line, &end))
        return;
    if (watch->first_ns) /* what came before the first is no step's time */
        watch->sums.steps++;
    else
        watch->first_ns = now_ns;
    watch->step_ns = now_ns;
}

static void take_bytes(struct pace_watch *watch, struct str bytes, int64_t now_ns)
{
    struct str head, rest;
    while (str_cut(bytes, '\n', &head, &rest)) {
        buf_add_str(&watch->line, head);
        if (!watch->skipping)
            take_line(watch, buf_str(&watch->line), now_ns);
        watch->skipping = false;
        buf_clear(&watch->line);
        bytes = rest;
    }
    buf_add_str(&watch->line, bytes);
    if (watch->line.len > LINE_BYTES && !watch->skipping) {
        take_line(watch, (struct str){watch->line.data, LINE_BYTES}, now_ns);
        watch->skipping = true;
    }
    if (watch->skipping)
        buf_clear(&watch->line);
}

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

/* The log was rotated: the next file goes on where this one ended. */
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
        watch->skipping = true;
    }
    ssize_t count = read(watch->fd, room, sizeof room);
    if (count > 0)
        take_bytes(watch, (struct str){room, (size_t)count}, now_ns);
    else if (count == 0)
        reopen(watch);
}

static void look(struct pace_watch *watch)
{
    int64_t steps = watch->sums.steps;
    read_log(watch);
    if (watch->sums.steps == steps)
        return;
    watch->sums.elapsed_us = (watch->step_ns - watch->first_ns) / NS_PER_US;
    if (!watch->work)
        watch->sums.own_us = watch->sums.elapsed_us;
    struct agent_event event = {.kind = AGENT_TASK_PACED};
    event.paced.task = watch->task;
    event.paced.pace = watch->sums;
    local_step(watch->live->machine, event);
}

static void watch_free(struct pace_watch *watch)
{
    list_remove(&watch->node);
    if (watch->fd >= 0)
        close(watch->fd);
    buf_done(&watch->line);
    arena_done(&watch->arena);
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

/* NULL: none, or (of a controller that allows more) one that is too large. */
static struct matcher *compile(struct arena *arena, struct str pattern)
{
    struct matcher *matcher;
    struct error error;
    return pattern.len && matcher_new(arena, pattern, LINE_PROGRAM_MAX, &matcher, &error) == 0 ? matcher
                                                                                               : NULL;
}

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
    watch->step = compile(&watch->arena, launch->step_pattern);
    watch->work = compile(&watch->arena, launch->work_pattern);
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
