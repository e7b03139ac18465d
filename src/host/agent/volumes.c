/* volumes.c - a task's volumes: made before its first container starts, removed when it is forgotten.
 *
 *     <state>/volumes/<task>/<volume>   emptyDir (in memory: a tmpfs there, for root), ConfigMaps ...
 *     <volumes-dir>/<namespace>/<claim> claims; the operator decides whether machines share them
 *
 * <state>/volumes is for the agent's user alone (0700): a container sees its volumes because its shim binds
 * them to their mount paths. A removal can take long (an emptyDir may hold anything), so another thread does
 * it, after a rename.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <limits.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/agent/internal.h"
#include "os/folder.h"
#include "os/rights.h"

enum { PATH_MAX_BYTES = 4096 };

/* --- making --------------------------------------------------------------------------------------- */

/* Sets the mode. With fsGroup the file belongs to that group, which may read it whatever the mode. */
static int give_to_group(int fd, const struct task_launch *launch, mode_t mode)
{
    bool give = launch->fs_group > 0 && geteuid() == 0;
    if (give && fchown(fd, (uid_t)-1, (gid_t)launch->fs_group) < 0)
        return -1;
    return fchmod(fd, give ? mode | S_IRUSR | S_IRGRP : mode);
}

static int write_file(const char *directory, const struct task_launch *launch, const struct volume_file *file,
                      struct error *error)
{
    char path[PATH_MAX_BYTES];
    if (!volume_path_is_inner(file->path) || file->path.len == 0)
        return error_set(error, ERROR_INVALID, "file \"" STR_FORMAT "\": must be relative and without \"..\"",
                         STR_ARG(file->path));
    int len = snprintf(path, sizeof path, "%s/" STR_FORMAT, directory, STR_ARG(file->path));
    if (len < 0 || (size_t)len >= sizeof path)
        return error_set(error, ERROR_INVALID, "file \"%.200s\": its path is too long", path);
    char *slash = strrchr(path, '/');
    *slash = 0;
    int rc = os_folder_path(path, 0755, 0755, error);
    *slash = '/';
    if (rc < 0)
        return rc;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct str left = file->data;
    while (fd >= 0 && left.len > 0) {
        ssize_t count = write(fd, left.data, left.len);
        if (count < 0 && errno != EINTR)
            break;
        if (count > 0)
            left = (struct str){left.data + count, left.len - (size_t)count};
    }
    bool give = launch->run_as_user >= 0 && geteuid() == 0;
    if (fd < 0 || left.len > 0 || (give && fchown(fd, (uid_t)launch->run_as_user, (gid_t)-1) < 0) ||
        give_to_group(fd, launch, file->mode) < 0)
        rc = error_set_errno(error, errno, "writing %s", path);
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Makes all files of a volume or none: an agent that dies in between leaves no incomplete volume. */
static int make_files(const char *path, const struct task_launch *launch, const struct volume_launch *volume,
                      struct error *error)
{
    char fresh[PATH_MAX_BYTES];
    int len = snprintf(fresh, sizeof fresh, "%s.new", path);
    if (len < 0 || (size_t)len >= sizeof fresh)
        return error_set(error, ERROR_INVALID, "path %.200s: too long", path);
    int rc = os_folder_path(fresh, 0755, 0755, error);
    for (size_t i = 0; i < volume->file_count && rc == 0; i++)
        rc = write_file(fresh, launch, &volume->files[i], error);
    if (rc == 0 && rename(fresh, path) < 0 && errno != EEXIST && errno != ENOTEMPTY)
        rc = error_set_errno(error, errno, "making %s", path);
    return rc;
}

static int make_memory(const char *path, const struct volume_launch *volume, struct error *error)
{
    char options[64];
    int rc = os_folder_path(path, 0755, 0777, error);
    if (rc < 0 || geteuid() != 0)
        return rc;             /* without the right to mount, the volume is on disk */
    umount2(path, MNT_DETACH); /* of an agent that died here */
    if (volume->size_bytes > 0)
        snprintf(options, sizeof options, "mode=777,size=%lld", (long long)volume->size_bytes);
    else
        snprintf(options, sizeof options, "mode=777");
    if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return error_set_errno(error, errno, "mounting a tmpfs at %s", path);
    return 0;
}

/* Makes the file or folder of a hostPath, if its type allows it to be absent. */
static int make_host_path(const struct task_launch *launch, const char *path, struct str type,
                          struct error *error)
{
    struct os_rights rights;
    int rc = 0, fd = -1;
    gid_t group = (gid_t)(launch->run_as_group >= 0 ? launch->run_as_group : launch->run_as_user);
    /* Root could make a folder where the task could not. */
    os_rights_take(launch->run_as_user > 0 ? (uid_t)launch->run_as_user : 0, group, &rights);
    if (str_is(type, "DirectoryOrCreate"))
        rc = os_folder_path(path, 0755, 0755, error);
    else if ((fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644)) < 0)
        rc = error_set_errno(error, errno, "hostPath.path %s", path);
    os_rights_return(&rights);
    if (fd >= 0)
        close(fd);
    return rc;
}

static int check_host_path(const struct task_launch *launch, const char *path, struct str type,
                           struct error *error)
{
    struct stat info;
    if (str_is(type, "unsupported"))
        return error_set(error, ERROR_UNSUPPORTED, "no machine here can mount a volume of its kind");
    if (path[0] != '/')
        return error_set(error, ERROR_INVALID, "hostPath.path \"%.200s\" is not absolute", path);
    bool makes = str_is(type, "DirectoryOrCreate") || str_is(type, "FileOrCreate");
    if (makes && stat(path, &info) < 0) {
        int rc = make_host_path(launch, path, type, error);
        if (rc < 0)
            return rc;
    }
    if (stat(path, &info) < 0)
        return error_set_errno(error, errno, "hostPath.path %s", path);
    static const struct {
        const char *name;
        mode_t mode;
    } kinds[] = {{"Directory", S_IFDIR},    {"DirectoryOrCreate", S_IFDIR}, {"File", S_IFREG},
                 {"FileOrCreate", S_IFREG}, {"Socket", S_IFSOCK},           {"CharDevice", S_IFCHR},
                 {"BlockDevice", S_IFBLK}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (str_is(type, kinds[i].name) && (info.st_mode & S_IFMT) != kinds[i].mode)
            return error_set(error, ERROR_INVALID, "hostPath.path %s is not a %s", path, kinds[i].name);
    return 0;
}

/* Returns the path of the volume on this machine. */
static int volume_path(const struct live *live, const struct task_launch *launch,
                       const struct volume_launch *volume, char ret_path[PATH_MAX_BYTES], struct error *error)
{
    int len;
    if (volume->kind == VOLUME_CLAIM && !live->volumes_dir)
        return error_set(error, ERROR_UNSUPPORTED,
                         "persistentVolumeClaim: this machine's agent runs without --volumes-dir");
    if (volume->kind == VOLUME_CLAIM &&
        (memchr(volume->source.data, '/', volume->source.len) || str_starts(volume->source, STR("."))))
        return error_set(error, ERROR_INVALID, "persistentVolumeClaim.claimName \"" STR_FORMAT "\"",
                         STR_ARG(volume->source));
    if (volume->kind == VOLUME_HOST)
        len = snprintf(ret_path, PATH_MAX_BYTES, STR_FORMAT, STR_ARG(volume->source));
    else if (volume->kind == VOLUME_CLAIM)
        len = snprintf(ret_path, PATH_MAX_BYTES, "%s/" STR_FORMAT "/" STR_FORMAT, live->volumes_dir,
                       STR_ARG(launch->namespace_), STR_ARG(volume->source));
    else
        len = snprintf(ret_path, PATH_MAX_BYTES, "%s/volumes/%llu/" STR_FORMAT, live->directory,
                       (unsigned long long)launch->task, STR_ARG(volume->name));
    return len < 0 || len >= PATH_MAX_BYTES ? error_set(error, ERROR_INVALID, "its path is too long") : 0;
}

/* Makes the folder of a namespace's claims, or closes an existing one of the agent. */
static int make_namespace(const char *path, mode_t mode, struct error *error)
{
    struct stat info;
    int rc = os_folder_path(path, 0755, mode, error);
    if (rc == 0 && stat(path, &info) == 0 && info.st_uid == geteuid() && info.st_mode & 077 & ~mode &&
        chmod(path, mode) < 0)
        rc = error_set_errno(error, errno, "closing %s to others", path);
    return rc;
}

/* Makes a claim. It belongs to the user of the first task, and to the group that the tasks of its namespace
 * have or request. Without such a group it is private to that user. */
static int make_claim(const struct live *live, const struct task_launch *launch, const char *path,
                      struct error *error)
{
    ARENA_CLEANUP struct arena arena = {0};
    bool root = geteuid() == 0;
    int64_t own = local_users_group(live, launch),
            shared = root && launch->fs_group > 0 ? launch->fs_group : own;
    uid_t user = root && launch->run_as_user > 0 ? (uid_t)launch->run_as_user : geteuid();
    const char *slash = strrchr(path, '/');
    int fd, rc = make_namespace(arena_printf(&arena, "%.*s", (int)(slash - path), path).data,
                                own < 0 ? 0700 : 0711, error);
    struct stat info;
    if (rc < 0 || (stat(path, &info) == 0 && !os_folder_is_unfinished(&info)))
        return rc;
    gid_t group = shared < 0 ? (gid_t)-1 : (gid_t)shared;
    rc = os_folder_make(AT_FDCWD, path, shared < 0 ? 0700 : 02770, user, group, &fd, error);
    if (rc < 0)
        return rc;
    if (user == geteuid() && fchown(fd, (uid_t)-1, group) < 0)
        rc = error_set_errno(error, errno, "giving %s to group %u", path, (unsigned)group);
    close(fd);
    return rc;
}

static int make_volume(const struct live *live, const struct task_launch *launch,
                       const struct volume_launch *volume, struct error *error)
{
    char path[PATH_MAX_BYTES];
    int rc = volume_path(live, launch, volume, path, error);
    if (rc < 0)
        return rc;
    switch (volume->kind) {
    case VOLUME_EMPTY:
        return os_folder_path(path, 0755, 0777, error);
    case VOLUME_MEMORY:
        return make_memory(path, volume, error);
    case VOLUME_HOST:
        return check_host_path(launch, path, volume->type, error);
    case VOLUME_CLAIM:
        return make_claim(live, launch, path, error);
    case VOLUME_FILES:
        return make_files(path, launch, volume, error);
    case VOLUME_KINDS:
        break;
    }
    return error_set(error, ERROR_UNSUPPORTED, "a kind of volume that this agent does not know");
}

static int about_volume(const struct volume_launch *volume, int rc, struct error *error)
{
    struct error why = *error;
    return error_set(error, rc, "volume " STR_FORMAT ": %s", STR_ARG(volume->name), why.text);
}

int local_volumes_init(struct live *live, const char *volumes_dir, struct error *error)
{
    int rc = volumes_dir ? os_folder_path(volumes_dir, 0755, os_folder_way(), error) : 0;
    if (rc == 0 && volumes_dir && !(live->volumes_dir = realpath(volumes_dir, NULL)))
        rc = error_set_errno(error, errno, "the directory of volumes %s", volumes_dir);
    return rc;
}

int local_volumes_make(struct live *live, const struct task_launch *launch, struct error *error)
{
    char path[PATH_MAX_BYTES];
    if (launch->volume_count == 0)
        return 0;
    snprintf(path, sizeof path, "%s/volumes", live->directory);
    int rc = os_folder_path(path, 0755, 0700, error);
    snprintf(path, sizeof path, "%s/volumes/%llu", live->directory, (unsigned long long)launch->task);
    if (rc == 0)
        rc = os_folder_path(path, 0755, 0700, error);
    for (size_t i = 0; i < launch->volume_count && rc == 0; i++) {
        rc = make_volume(live, launch, &launch->volumes[i], error);
        if (rc < 0)
            about_volume(&launch->volumes[i], rc, error);
    }
    return rc;
}

/* Makes the folder of checkpoints, and keeps the contents of an earlier attempt. */
static int make_checkpoints(const struct task_launch *launch, struct arena *arena, struct error *error)
{
    const char *parent = arena_printf(arena, STR_FORMAT "/" STR_FORMAT, STR_ARG(launch->checkpoint_dir),
                                      STR_ARG(launch->namespace_))
                             .data;
    const char *path = arena_printf(arena, "%s/" STR_FORMAT, parent, STR_ARG(launch->checkpoint_folder)).data;
    uid_t user = (uid_t)launch->run_as_user;
    int fd, rc = os_folder_path(parent, 0755, 0711, error);
    if (rc == 0 &&
        (rc = os_folder_make(AT_FDCWD, path, 0700, user, (gid_t)launch->run_as_group, &fd, error)) == 0)
        close(fd);
    return rc;
}

void local_checkpoints_make(struct live *live, const struct task_launch *launch)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct error why, error;
    if (local_users_group(live, launch) < 0 || launch->checkpoint_folder.len == 0 ||
        !str_starts(launch->checkpoint_dir, STR("/")) || make_checkpoints(launch, &arena, &why) == 0)
        return;
    error_set(&error, ERROR_IO, "checkpoints of " STR_FORMAT ": %s", STR_ARG(launch->name), why.text);
    local_note(live->machine, str_from(error.text));
}

/* --- mounts of a container ------------------------------------------------------------------------ */

/* Makes an absent path inside the volume, and stores whether it is a file. No link in the volume leads out of
 * it, neither here nor when the shim opens the path again. */
static int sub_path(const char *volume, struct str inner, struct arena *arena, struct stat *ret_info,
                    struct error *error)
{
    if (!volume_path_is_inner(inner))
        return error_set(error, ERROR_INVALID,
                         "subPath \"" STR_FORMAT "\": must be relative and without \"..\"", STR_ARG(inner));
    int fd = -1, root = open(volume, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int rc = root < 0 ? error_set_errno(error, errno, "opening %s", volume)
                      : os_folder_inside(root, arena_strdup(arena, inner), 0777, &fd, error);
    if (rc == ERROR_DENIED)
        rc = error_set(error, ERROR_INVALID, "subPath \"" STR_FORMAT "\" leads out of the volume",
                       STR_ARG(inner));
    if (rc == 0 && fstat(fd, ret_info) < 0)
        rc = error_set_errno(error, errno, "subPath \"" STR_FORMAT "\"", STR_ARG(inner));
    if (fd >= 0)
        close(fd);
    if (root >= 0)
        close(root);
    return rc;
}

static int mount_of(const struct live *live, const struct task_launch *launch,
                    const struct container_mount *from, struct arena *arena, struct launch_mount *ret,
                    struct error *error)
{
    const struct volume_launch *volume = NULL;
    char path[PATH_MAX_BYTES];
    struct stat info;
    for (size_t i = 0; i < launch->volume_count; i++)
        if (str_equal(launch->volumes[i].name, from->volume))
            volume = &launch->volumes[i];
    if (!volume)
        return error_set(error, ERROR_INVALID, "mountPath " STR_FORMAT ": there is no volume " STR_FORMAT,
                         STR_ARG(from->path), STR_ARG(from->volume));
    int rc = volume_path(live, launch, volume, path, error);
    if (rc == 0 && from->sub_path.len > 0)
        rc = sub_path(path, from->sub_path, arena, &info, error);
    if (rc < 0)
        return about_volume(volume, rc, error);
    if (from->sub_path.len == 0 && stat(path, &info) < 0)
        return error_set_errno(error, errno, "volume " STR_FORMAT ": %s", STR_ARG(volume->name), path);
    /* Kubernetes takes a relative mountPath as relative to the root. */
    bool absolute = str_starts(from->path, STR("/"));
    *ret = (struct launch_mount){
        .source = arena_strdup(arena, str_from(path)),
        .inside = from->sub_path.len > 0 ? arena_strdup(arena, from->sub_path) : NULL,
        .target = arena_printf(arena, "%s" STR_FORMAT, absolute ? "" : "/", STR_ARG(from->path)).data,
        .read_only = from->read_only || volume->kind == VOLUME_FILES,
        .is_file = !S_ISDIR(info.st_mode)};
    return 0;
}

/* Orders mounts by target. At the same target the empty folder comes last: mounts inside it have longer
 * paths. */
static int by_target(const void *a, const void *b)
{
    const struct launch_mount *first = a, *second = b;
    int order = strcmp(first->target, second->target);
    return order ? order : (int)first->hidden - (int)second->hidden;
}

int local_volumes_mounts(const struct live *live, const struct task_launch *launch,
                         const struct container_launch *container, struct arena *arena,
                         struct launch_spec *spec, struct error *error)
{
    struct launch_mount *mounts = ARENA_ARRAY(arena, struct launch_mount, container->mount_count);
    for (size_t i = 0; i < container->mount_count; i++) {
        int rc = mount_of(live, launch, &container->mounts[i], arena, &mounts[i], error);
        if (rc < 0)
            return rc;
    }
    spec->mounts = mounts;
    spec->mount_count = container->mount_count;
    return 0;
}

void local_mounts_sort(struct launch_spec *spec)
{
    if (spec->mount_count > 1)
        qsort((void *)spec->mounts, spec->mount_count, sizeof *spec->mounts, by_target);
}

/* --- removing ------------------------------------------------------------------------------------- */

struct removal {
    struct live *live;
    uv_work_t work;
    char path[PATH_MAX_BYTES];
};

static void remove_work(uv_work_t *work)
{
    const struct removal *removal = work->data;
    os_folder_remove(AT_FDCWD, removal->path);
}

static void remove_done(uv_work_t *work, int status)
{
    (void)status;
    struct removal *removal = work->data;
    struct agent_host *host = removal->live->machine->host;
    mem_free(removal);
    local_part_closed(host);
}

void local_remove_later(struct live *live, const char *path)
{
    struct removal *removal = mem_alloc(sizeof *removal);
    *removal = (struct removal){.live = live, .work = {.data = removal}};
    snprintf(removal->path, sizeof removal->path, "%s", path);
    live->machine->host->open_parts++;
    uv_queue_work(live->machine->host->loop, &removal->work, remove_work, remove_done);
}

static void unmount_all(const char *path)
{
    char inner[PATH_MAX_BYTES];
    DIR *directory = geteuid() == 0 ? opendir(path) : NULL;
    const struct dirent *entry;
    while (directory && (entry = readdir(directory)))
        if (entry->d_name[0] != '.' &&
            snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) < (int)sizeof inner)
            umount2(inner, MNT_DETACH | UMOUNT_NOFOLLOW);
    if (directory)
        closedir(directory);
}

void local_volumes_remove(struct live *live, obj_id task)
{
    char path[PATH_MAX_BYTES], gone[PATH_MAX_BYTES];
    snprintf(path, sizeof path, "%s/volumes/%llu", live->directory, (unsigned long long)task);
    if (access(path, F_OK) < 0)
        return;
    unmount_all(path);
    snprintf(gone, sizeof gone, "%s/volumes/.gone-%llu", live->directory, (unsigned long long)task);
    if (rename(path, gone) == 0)
        local_remove_later(live, gone);
}

void local_volumes_sweep(struct live *live)
{
    char path[PATH_MAX_BYTES];
    snprintf(path, sizeof path, "%s/volumes", live->directory);
    DIR *directory = opendir(path);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        int64_t task;
        if (str_starts(str_from(entry->d_name), STR(".gone-"))) {
            snprintf(path, sizeof path, "%s/volumes/%s", live->directory, entry->d_name);
            local_remove_later(live, path);
        } else if (str_to_i64(str_from(entry->d_name), 1, INT64_MAX, &task) &&
                   !agent_task_known(live->machine->agent, (obj_id)task)) {
            local_volumes_remove(live, (obj_id)task);
        }
    }
    if (directory)
        closedir(directory);
}
