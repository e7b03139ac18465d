/* root.c - a container's own root file system: only the container sees its changes to the system's files.
 *
 * The shim makes it, an overlay of "/" (shim/root.c). It covers what a distribution installs and keeps:
 * /bin, /boot, /etc, /lib*, /opt, /sbin, /usr, /var and files in "/" itself. Everything else stays the
 * machine's: other file systems, all other folders in "/" (/home, /root, /run, /srv, a site's /data ...),
 * and folders in /opt and /var that the container's command, arguments, environment or working directory
 * name. So homes, caches and checkpoint folders outlive a container, as programs that were written for the
 * machine expect; what programs expect of an image is private.
 *
 * Only tasks of root have one: other users cannot change the system's files anyway. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/agent/internal.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/namespace.h"

enum { SHARED_MAX = 64 };
#define MOUNTS "/proc/self/mountinfo"

/* Folders in "/" that are the container's own. The shim mounts /proc itself. */
static const char *const covered[] = {"bin", "boot", "etc",  "lib", "lib32", "lib64",     "libx32",
                                      "opt", "proc", "sbin", "usr", "var",   "lost+found"};
enum { COVERED = sizeof covered / sizeof *covered };

/* Returns the place where an overlay is made. Any folder will do, as the mount is in the shim's mount
 * namespace only. */
static const char *overlay_place(const struct live *live, struct arena *arena)
{
    return arena_printf(arena, "%s/volumes", live->directory).data;
}

void local_root_init(struct live *live)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct error error;
    const char *place = overlay_place(live, &arena);
    if (live->isolation_off || live->mounts_refused || geteuid() != 0 ||
        os_folder_path(place, 0700, 0700, &error) < 0)
        return;
    int refused = os_root_refused(place);
    live->own_roots = refused == 0;
    if (refused)
        local_note(live->machine,
                   arena_printf(&arena,
                                "tasks share the machine's files, but for /tmp and /var/tmp: no "
                                "overlay of the root file system can be mounted (%s)",
                                strerror(refused)));
}

/* --- what stays the machine's ----------------------------------------------------------------------- */

struct shared {
    const struct live *live;
    struct arena *arena;
    const struct launch_spec *spec;
    struct launch_mount *mounts; /* [SHARED_MAX] */
    size_t count;
};

static bool is_known(const struct shared *shared, const char *path)
{
    for (size_t i = 0; i < shared->spec->mount_count; i++)
        if (os_path_is_below(path, shared->spec->mounts[i].target))
            return true;
    for (size_t i = 0; i < shared->count; i++)
        if (os_path_is_below(path, shared->mounts[i].target))
            return true;
    return false;
}

/* Returns whether a path is in a folder that is hidden from tasks; confine.c mounts again what they need of
 * it. */
static bool is_hidden(const struct live *live, const char *path)
{
    for (size_t i = 0; i < live->hidden.len; i++)
        if (os_path_is_below(path, live->hidden.items[i]))
            return true;
    return false;
}

/* Shares the file or folder at `path`, but no link; `folder`: only a folder. */
static void share(struct shared *shared, const char *path, bool folder)
{
    struct stat info;
    if (shared->count == SHARED_MAX || is_known(shared, path) || is_hidden(shared->live, path) ||
        lstat(path, &info) < 0 || S_ISLNK(info.st_mode) || (folder && !S_ISDIR(info.st_mode)))
        return;
    const char *own = arena_strdup(shared->arena, str_from(path));
    shared->mounts[shared->count++] = (struct launch_mount){
        .source = own, .target = own, .is_file = !S_ISDIR(info.st_mode), .optional = true};
}

static bool is_covered(const char *name)
{
    for (int i = 0; i < COVERED; i++)
        if (strcmp(covered[i], name) == 0)
            return true;
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void share_folders(struct shared *shared)
{
    char path[PATH_MAX];
    DIR *root = opendir("/");
    const struct dirent *entry;
    while (root && (entry = readdir(root))) {
        snprintf(path, sizeof path, "/%s", entry->d_name);
        if (!is_covered(entry->d_name))
            share(shared, path, true);
    }
    if (root)
        closedir(root);
}

/* Shares other file systems, by the lines of proc(5): "id parent major:minor root target ...". Mounts within
 * one of them come with it. */
static void share_mounts(struct shared *shared)
{
    char target[PATH_MAX], line[2 * PATH_MAX];
    FILE *file = fopen(MOUNTS, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "%*d %*d %*s %*s %4095s", target) == 1) {
            str_undo_octal(target);
            if (strcmp(target, "/") != 0 && strcmp(target, "/proc") != 0)
                share(shared, target, false);
        }
    if (file)
        fclose(file);
}

static bool is_path_byte(char c)
{
    return c == '/' || local_is_name_byte(c);
}

/* Shares folders in /opt and /var whose whole path a text contains. */
static void share_named(void *context, const char *text)
{
    static const char *const places[] = {"/opt/", "/var/"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        for (const char *at = text; (at = strstr(at, places[i])); at++) {
            size_t len = 0;
            while (is_path_byte(at[len]))
                len++;
            if ((at > text && is_path_byte(at[-1])) || len >= sizeof path || len <= strlen(places[i]))
                continue;
            snprintf(path, sizeof path, "%.*s", (int)(len - (at[len - 1] == '/')), at);
            if (strcmp(path, "/var/tmp") != 0)
                share(context, path, true);
        }
    }
}

/* Shares the folder of checkpoints, and makes it if it is absent: a folder that the container made would be
 * private. */
static void share_checkpoints(struct shared *shared, const struct task_launch *launch)
{
    const char *path = arena_strdup(shared->arena, launch->checkpoint_dir);
    struct error error;
    if (path[0] == '/' && !is_known(shared, path) && os_folder_path(path, 0755, 0755, &error) == 0)
        share(shared, path, false);
}

static void share_all(struct shared *shared, const struct task_launch *launch)
{
    share_folders(shared);
    share_mounts(shared);
    share_checkpoints(shared, launch);
    if (shared->live->memory_dir)
        share(shared, shared->live->memory_dir, false);
    local_texts_visit(shared->spec, share_named, shared);
}

void local_root_mounts(const struct live *live, const struct task_launch *launch, struct arena *arena,
                       struct launch_spec *spec)
{
    if (!live->own_roots)
        return;
    struct shared shared = {.live = live, .arena = arena, .spec = spec};
    shared.mounts = ARENA_ARRAY(arena, struct launch_mount, SHARED_MAX);
    share_all(&shared, launch);
    struct launch_mount *mounts =
        ARENA_ARRAY(arena, struct launch_mount, spec->mount_count + shared.count + 1);
    mounts[0] = (struct launch_mount){.source = overlay_place(live, arena),
                                      .target = "/",
                                      .root = true,
                                      .optional = !live->isolation_required};
    mem_copy(mounts + 1, shared.mounts, shared.count * sizeof *mounts);
    mem_copy(mounts + 1 + shared.count, spec->mounts, spec->mount_count * sizeof *mounts);
    spec->mounts = mounts;
    spec->mount_count += shared.count + 1;
}
