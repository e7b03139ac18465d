/* memory.c - where tasks hold checkpoints in memory: a folder for each JobSet, on a file system in memory,
 * so that what is held outlives the process that held it, and the agent.
 *
 *     <memory-dir>/phalanx-<machine>-<hash of the state directory>/<JobSet's uid>
 *
 * The upper one is the agent's and open to all like /tmp; libphalanx makes the lower one (job/held.h) at a
 * task's first hold, so that tasks that hold nothing cost nothing, and lets go of what it holds at a good
 * end. What is left is removed KEEP_S after the JobSet's last task here was forgotten: a restart comes
 * sooner. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "host/agent/internal.h"

#define MEMORY_DIR_DEFAULT "/dev/shm"

enum { KEEP_S = 600, SWEEP_MS = 60 * 1000 };

static void on_timer(uv_timer_t *timer)
{
    local_memory_sweep(timer->data);
}

static bool make_folder(const char *path)
{
    return (mkdir(path, 01777) == 0 || errno == EEXIST) && chmod(path, 01777) == 0;
}

void local_memory_init(struct live *live, const char *memory_dir)
{
    struct local_machine *machine = live->machine;
    struct error error;
    char path[PATH_BYTES + 64];
    if (memory_dir && !memory_dir[0])
        return;
    snprintf(path, sizeof path, "%s/phalanx-%s-%08x", memory_dir ? memory_dir : MEMORY_DIR_DEFAULT,
             machine->name, (unsigned)hash64(0, live->directory, strlen(live->directory)));
    if (!make_folder(path)) {
        error_set_errno(&error, errno, "tasks can hold no checkpoints in memory: making %s", path);
        local_note(machine, str_from(error.text));
        return;
    }
    live->memory_dir = strdup(path);
    CHECK(live->memory_dir);
    uv_timer_init(machine->host->loop, &live->memory_timer);
    live->memory_timer.data = live;
    machine->host->open_parts++;
    uv_timer_start(&live->memory_timer, on_timer, SWEEP_MS, SWEEP_MS);
}

const char *local_memory_env(const struct live *live, const struct task_launch *launch, struct arena *arena)
{
    if (!live->memory_dir)
        return NULL;
    (void)make_folder(live->memory_dir); /* somebody may have cleaned up: no task could hold anything */
    return arena_printf(arena, "PHX_MEMORY_DIR=%s/%llu", live->memory_dir, (unsigned long long)launch->jobset)
        .data;
}

/* The time of the folder is when the JobSet was seen here last. */
static void look_at(struct live *live, const char *name, int64_t now_s)
{
    char path[PATH_BYTES + 64];
    struct stat info;
    int64_t jobset;
    snprintf(path, sizeof path, "%s/%s", live->memory_dir, name);
    if (!str_to_i64(str_from(name), 1, INT64_MAX, &jobset) || lstat(path, &info) < 0 ||
        !S_ISDIR(info.st_mode))
        return;
    if (local_tasks_has_jobset(live, (obj_id)jobset))
        utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
    else if (now_s - info.st_mtim.tv_sec > KEEP_S)
        local_remove_later(live, path);
}

void local_memory_sweep(struct live *live)
{
    DIR *directory = live->memory_dir ? opendir(live->memory_dir) : NULL;
    int64_t now_s = local_wall_ns() / NS_PER_SECOND;
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        look_at(live, entry->d_name, now_s);
    if (directory)
        closedir(directory);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct live *live = handle->data;
    local_part_closed(live->machine->host);
}

void local_memory_close(struct live *live)
{
    if (!live->memory_dir)
        return;
    rmdir(live->memory_dir); /* of an agent whose tasks held nothing */
    free(live->memory_dir);
    live->memory_dir = NULL;
    uv_close((uv_handle_t *)&live->memory_timer, on_timer_closed);
}
