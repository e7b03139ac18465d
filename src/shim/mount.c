#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/parts.h"

/* Makes a user namespace that maps our own ids, which gives users other than root the right to a mount
 * namespace (user_namespaces(7); the kernel requires "deny" before the group map). */
static int own_users(void)
{
    struct text users = {.len = 0}, groups = {.len = 0};
    text_add_number(&users, geteuid());
    text_add(&users, " ");
    text_add_number(&users, geteuid());
    text_add(&users, " 1");
    text_add_number(&groups, getegid());
    text_add(&groups, " ");
    text_add_number(&groups, getegid());
    text_add(&groups, " 1");
    if (unshare(CLONE_NEWUSER) < 0)
        return -errno;
    int result = file_write("/proc/self/setgroups", "deny", 4);
    if (result == 0)
        result = file_write("/proc/self/uid_map", users.data, users.len);
    return result == 0 ? file_write("/proc/self/gid_map", groups.data, groups.len) : result;
}

/* Makes the mounts slaves rather than private: a file system that the machine unmounts later must not stay
 * busy because of us. Either way our own mounts stay inside. */
int own_mounts(const struct shim *shim)
{
    static int result = 1; /* not tried yet */
    if (result <= 0)
        return result;
    result = shim->header->flags & SHIM_USER_NAMESPACE ? own_users() : 0;
    if (result == 0 && (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0))
        result = -errno;
    return result;
}

/* --- targets -------------------------------------------------------------------------------------------- */

/* How far a target has been followed. */
struct target_walk {
    int folder;   /* the file or folder that the path so far names (O_PATH) */
    bool made;    /* root made it for this task, or it covers a folder of the machine */
    bool follows; /* a link of a user other than root led here: root makes nothing below */
};

static int target_create(int folder, const char *name, bool file)
{
    if (!file)
        return mkdirat(folder, name, 0755) < 0 ? -errno : 0;
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

/* Returns whether root may make `name` for any task: a folder in one where only root may write, or any entry
 * in a folder that root made for this task. A file elsewhere may mean something to programs, as "nologin"
 * does (pam_nologin(8)). */
static bool target_is_harmless(const struct target_walk *walk, const char *name, bool file)
{
    struct stat info;
    if (geteuid() != 0 || walk->follows || fstat(walk->folder, &info) < 0)
        return false;
    bool closed = info.st_uid == 0 && !(info.st_mode & (S_IWGRP | S_IWOTH));
    return walk->made || (closed && !file && strcmp(name, "nologin") != 0);
}

static int target_create_as_task(const struct shim *shim, int folder, const char *name, bool file)
{
    const struct shim_header *header = shim->header;
    if (!(header->flags & SHIM_SET_USER))
        return target_create(folder, name, file);
    setfsgid(header->group_id);
    setfsuid(header->user_id);
    int result = target_create(folder, name, file);
    setfsuid(geteuid());
    setfsgid(getegid());
    return result;
}

/* Makes an absent part of the target with the task's rights, or else as root if that is harmless. The task
 * has no rights in a folder that root has just made. */
static int target_make(const struct shim *shim, struct target_walk *walk, const char *name, bool file)
{
    bool harmless = target_is_harmless(walk, name, file);
    int result = walk->made && harmless ? -EACCES : target_create_as_task(shim, walk->folder, name, file);
    if ((result != -EACCES && result != -EPERM) || !harmless)
        return result;
    result = target_create(walk->folder, name, file);
    walk->made = walk->made || result == 0;
    return result;
}

/* Returns whether the path so far is a folder that an earlier mount has covered with an empty one. */
static bool target_is_covered(const struct shim *shim, const char *path, size_t len)
{
    for (uint32_t i = 0; i < shim->mount_count; i++) {
        const struct mount_spec *spec = &shim->mounts[i];
        if (spec->letters[0] == SHIM_MOUNT_HIDDEN && strlen(spec->target) == len &&
            memcmp(spec->target, path, len) == 0)
            return true;
    }
    return false;
}

static int target_step(const struct shim *shim, struct target_walk *walk, const char *name, bool file)
{
    struct stat info;
    int fd = openat(walk->folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        int result = target_make(shim, walk, name, file);
        if (result < 0 && result != -EEXIST)
            return result;
        fd = openat(walk->folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    } else {
        walk->made = false;
    }
    if (fd < 0 || fstat(fd, &info) < 0)
        return -errno;
    if (S_ISLNK(info.st_mode)) {
        walk->follows = walk->follows || (info.st_uid != 0 && info.st_uid != geteuid());
        walk->made = false;
        close(fd);
        fd = openat(walk->folder, name, O_PATH | O_CLOEXEC);
        if (fd < 0)
            return -errno;
    }
    close(walk->folder);
    walk->folder = fd;
    return 0;
}

/* Opens the target of a mount, and makes its absent parts. Returns a descriptor or a negative errno. */
static int open_target(const struct shim *shim, const struct mount_spec *spec)
{
    static char path[4096];
    const char *name = path;
    size_t len = strlen(spec->target);
    if (len == 0 || len >= sizeof path)
        return -ENAMETOOLONG;
    memcpy(path, spec->target, len + 1);
    int whole = open(path, O_PATH | O_CLOEXEC);
    if (whole >= 0)
        return whole; /* nothing is absent */
    struct target_walk walk = {.folder = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)};
    int result = walk.folder < 0 ? -errno : 0;
    for (size_t i = 0; i <= len && result == 0; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        bool last = strspn(path + i, "/") == len - i;
        path[i] = 0;
        if (*name)
            result = target_step(shim, &walk, name, last && spec->letters[0] == SHIM_MOUNT_FILE);
        walk.made = walk.made || target_is_covered(shim, spec->target, i);
        name = path + i + 1;
    }
    if (result == 0)
        return walk.folder;
    if (walk.folder >= 0)
        close(walk.folder);
    return result;
}

/* Returns whether the target of another mount lies below that of `spec`. */
static bool has_mounts_below(const struct shim *shim, const struct mount_spec *spec)
{
    size_t len = strlen(spec->target);
    for (uint32_t i = 0; i < shim->mount_count; i++)
        if (strncmp(shim->mounts[i].target, spec->target, len) == 0 && shim->mounts[i].target[len] == '/')
            return true;
    return false;
}

/* Covers the target with the empty folder `source`. If there is none, or later mounts make their targets in
 * the cover, the cover is a small file system of its own, which takes several times as long to make and to
 * free. */
static int hide(const struct shim *shim, const struct mount_spec *spec, int source, int target)
{
    const char *options = "mode=755,size=1m,nr_inodes=1k";
    struct text path = {.len = 0};
    if (source >= 0 && !has_mounts_below(shim, spec) && bind_mount(source, target, spec->target, true) == 0)
        return 0;
    text_add_descriptor(&path, target);
    return mount("tmpfs", path.data, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) < 0 ? -errno : 0;
}

static int mount_one(const struct shim *shim, const struct mount_spec *spec, int source)
{
    bool hidden = spec->letters[0] == SHIM_MOUNT_HIDDEN, read_only = spec->letters[1] == SHIM_MOUNT_READ_ONLY;
    int target = source < 0 && !hidden ? source : open_target(shim, spec);
    if (target < 0)
        return target;
    int result =
        hidden ? hide(shim, spec, source, target) : bind_mount(source, target, spec->target, read_only);
    close(target);
    return result;
}

/* Notes the error of a mount. Returns 0 if the mount is optional, < 0 otherwise. */
static int judge(struct shim *shim, uint32_t i, int result)
{
    if (result == 0)
        return 0;
    const char *letters = shim->mounts[i].letters;
    if (letters[0] && letters[1] && letters[2] == SHIM_MOUNT_OPTIONAL) {
        if (!shim->start.mounts_error)
            shim->start.mounts_error = -result;
        return 0;
    }
    shim->exit.stage = SHIM_STAGE_MOUNT | i << SHIM_STAGE_SHIFT;
    shim->exit.error = -result;
    return result;
}

/* Opens the file or directory that the mount shows; returns a negative errno on failure. The kernel follows
 * no link out of the source, so a task that changes the volume at that moment cannot lead the mount
 * elsewhere. */
static int open_source(const struct mount_spec *spec)
{
    int fd = open(spec->source, O_PATH | O_CLOEXEC);
    if (fd >= 0 && spec->inside) {
        struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                               .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
        int root = fd;
        fd = (int)syscall(SYS_openat2, root, spec->inside, &how, sizeof how);
        int reason = errno;
        close(root);
        errno = reason;
    }
    return fd >= 0 ? fd : -errno;
}

/* Makes the first mount if that is a root. Returns the number of mounts that are done, or < 0. */
static int mount_root(struct shim *shim, const int *sources)
{
    if (shim->mount_count == 0 || shim->mounts[0].letters[0] != SHIM_MOUNT_ROOT)
        return 0;
    int entered = sources[0] < 0 ? sources[0] : root_enter(shim->mounts[0].source);
    shim->has_root = entered == 0;
    int result = judge(shim, 0, entered);
    return result < 0 ? result : 1;
}

/* All sources are opened before the first mount, because a mount may hide the sources of others, and in the
 * new namespace, because the kernel binds nothing from another one. The hosts file is mounted in order: after
 * mounts at /etc, before a mount at its own place. */
int mount_all(struct shim *shim)
{
    static int sources[SHIM_MOUNTS_MAX];
    int own = own_mounts(shim);
    for (uint32_t i = 0; i < shim->mount_count; i++)
        sources[i] = own == 0 ? open_source(&shim->mounts[i]) : own;
    int done = mount_root(shim, sources), result = done < 0 ? done : 0;
    bool hosts = false;
    for (uint32_t i = (uint32_t)done; i < shim->mount_count && result == 0; i++) {
        if (!hosts && strcmp(shim->mounts[i].target, "/etc/hosts") >= 0) {
            hosts_mount(shim);
            hosts = true;
        }
        result = judge(shim, i, own < 0 ? own : mount_one(shim, &shim->mounts[i], sources[i]));
    }
    if (!hosts && result == 0)
        hosts_mount(shim);
    if (result == 0 && shim->has_root && (result = root_leave()) < 0) {
        shim->exit.stage = SHIM_STAGE_MOUNT;
        shim->exit.error = -result;
    }
    for (uint32_t i = 0; i < shim->mount_count; i++)
        if (sources[i] >= 0)
            close(sources[i]);
    return result;
}
