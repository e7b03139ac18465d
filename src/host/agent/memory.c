/* memory.c - where tasks hold checkpoints in memory: a folder for each JobSet, on a file system in memory, so
 * that checkpoints outlive the process that holds them, and the agent.
 *
 *     <memory-dir>/phalanx-<machine>-<8 random digits>/<JobSet's uid>
 *
 * The agent makes both folders. The upper one is its own (0711 for root, else 0700); the lower one belongs to
 * the user of the JobSet's tasks alone (0700). libphalanx puts files into it at a task's first hold
 * (job/checkpoint/held.h) and removes them at a successful end. Others are removed KEEP_S after the JobSet's
 * last task here was forgotten: a restart takes less.
 *
 * Every user may write to /dev/shm. The digits, from <state>/memory.seed, keep others from taking the name
 * first. An existing link or folder of another user is refused (os/folder.h), and tasks then hold nothing in
 * memory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "host/agent/internal.h"
#include "os/file.h"
#include "os/folder.h"

#define MEMORY_DIR_DEFAULT "/dev/shm"

enum { KEEP_S = 600, SWEEP_MS = 60 * 1000 };

static void on_timer(uv_timer_t *timer)
{
    local_memory_sweep(timer->data);
}

/* Checks that only this user and root can replace a folder in `path`. */
static int check_parent(const char *path, struct error *error)
{
    struct stat info;
    if (stat(path, &info) < 0)
        return error_set_errno(error, errno, "looking at %s", path);
    if (info.st_uid != 0 && info.st_uid != geteuid())
        return error_set(error, ERROR_DENIED, "%s belongs to user %u: choose another with --memory-dir", path,
                         (unsigned)info.st_uid);
    if ((info.st_mode & 022) && !(info.st_mode & S_ISVTX))
        return error_set(error, ERROR_DENIED,
                         "others may write into %s: set its sticky bit, or choose another with --memory-dir",
                         path);
    return 0;
}

void local_memory_init(struct live *live, const char *memory_dir)
{
    struct local_machine *machine = live->machine;
    struct error error;
    char path[PATH_BYTES + 64];
    const char *parent = memory_dir ? memory_dir : MEMORY_DIR_DEFAULT;
    if (!parent[0])
        return;
    uint64_t seed = 0;
    snprintf(path, sizeof path, "%s/memory.seed", live->directory);
    int rc = os_file_seed(path, &seed, &error);
    snprintf(path, sizeof path, "%s/phalanx-%s-%08x", parent, machine->name, (unsigned)seed);
    if (rc < 0 || check_parent(parent, &error) < 0 || os_folder_private(path, os_folder_way(), &error) < 0) {
        error_wrap(&error, "tasks can hold no checkpoints in memory");
        local_warn(machine, str_from(error.text));
        return;
    }
    live->memory_dir = strdup(path);
    CHECK(live->memory_dir);
    uv_timer_init(machine->host->loop, &live->memory_timer);
    live->memory_timer.data = live;
    machine->host->open_parts++;
    uv_timer_start(&live->memory_timer, on_timer, SWEEP_MS, SWEEP_MS);
}

/* Makes the folder of a JobSet, for the user of the task's first main container. */
static int make_lower(const struct live *live, const struct task_launch *launch, const char *path,
                      struct error *error)
{
    struct container_launch first;
    int fd;
    local_container_launch(launch, 0, &first);
    /* A cleaner of old files may have removed it. */
    int rc = os_folder_private(live->memory_dir, os_folder_way(), error);
    if (rc == 0)
        rc = os_folder_make(AT_FDCWD, path, 0700, local_user_of(&first), local_group_of(&first), &fd, error);
    if (rc == 0)
        close(fd);
    return rc;
}

const char *local_memory_env(const struct live *live, const struct task_launch *launch, struct arena *arena)
{
    struct error error;
    if (!live->memory_dir)
        return NULL;
    struct str path =
        arena_printf(arena, "%s/%llu", live->memory_dir, (unsigned long long)launch->jobset);
    if (make_lower(live, launch, path.data, &error) == 0)
        return arena_printf(arena, "PHX_MEMORY_DIR=%s", path.data).data;
    error_wrap(&error, "task %llu can hold no checkpoints in memory", (unsigned long long)launch->task);
    local_warn(live->machine, str_from(error.text));
    return NULL;
}

/* Removes an old folder of a JobSet. The folder's time is when the JobSet was last seen here. */
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

/* Removes empty folders, so that nothing remains of an agent whose tasks held nothing. */
static void remove_empty(const struct live *live)
{
    DIR *directory = opendir(live->memory_dir);
    const struct dirent *entry;
    while (directory && live->running.len == 0 && (entry = readdir(directory)))
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(directory), entry->d_name, AT_REMOVEDIR); /* not if it holds something */
    if (directory)
        closedir(directory);
    rmdir(live->memory_dir);
}

void local_memory_close(struct live *live)
{
    if (!live->memory_dir)
        return;
    remove_empty(live);
    free(live->memory_dir);
    live->memory_dir = NULL;
    uv_close((uv_handle_t *)&live->memory_timer, on_timer_closed);
}
