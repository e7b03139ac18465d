#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/parts.h"

/* Makes a user namespace that maps our own ids: it gives the right to a mount namespace to users other than
 * root (user_namespaces(7); the kernel wants "deny" before the groups). */
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

/* Makes the mounts slaves, not private: a file system that the machine unmounts later must not stay busy
 * because of us, and our mounts stay inside either way. */
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

/* Whatever part of the path is absent. What goes wrong shows when it is mounted on. */
static void make_target(const struct mount_spec *spec)
{
    static char path[4096];
    size_t len = strlen(spec->target);
    if (len == 0 || len >= sizeof path)
        return;
    memcpy(path, spec->target, len + 1);
    for (size_t i = 1; i < len; i++) {
        if (path[i] != '/')
            continue;
        path[i] = 0;
        mkdir(path, 0755);
        path[i] = '/';
    }
    if (spec->letters[0] != SHIM_MOUNT_FILE) {
        mkdir(path, 0755);
        return;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0)
        close(fd);
}

/* In a user namespace flags that the machine has set stay set: they have to be named. */
static int make_read_only(const char *target)
{
    static const unsigned long more[] = {0, MS_NOSUID | MS_NODEV, MS_NOSUID | MS_NODEV | MS_NOEXEC};
    const unsigned long flags = MS_BIND | MS_REMOUNT | MS_RDONLY;
    for (int i = 0; i < 3; i++)
        if (mount(NULL, target, NULL, flags | more[i], NULL) == 0)
            return 0;
    return -errno;
}

/* Lays a small empty folder over the target. It stays writable: later mounts make their targets in it. */
static int hide(const struct mount_spec *spec)
{
    make_target(spec);
    const char *options = "mode=755,size=1m,nr_inodes=1k";
    return mount("tmpfs", spec->target, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) < 0 ? -errno : 0;
}

static int mount_one(const struct mount_spec *spec, int source)
{
    struct text path = {.len = 0};
    if (spec->letters[0] == SHIM_MOUNT_HIDDEN)
        return source < 0 ? source : hide(spec);
    if (source < 0)
        return source;
    text_add(&path, "/proc/self/fd/");
    text_add_number(&path, (uint64_t)source);
    make_target(spec);
    if (mount(path.data, spec->target, NULL, MS_BIND | MS_REC, NULL) < 0)
        return -errno;
    return spec->letters[1] == SHIM_MOUNT_READ_ONLY ? make_read_only(spec->target) : 0;
}

/* Notes the error of a mount; the task runs on if the mount is optional, < 0 otherwise. */
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

/* Opens what the mount shows; a negative errno otherwise. The kernel follows no link out of the source, so
 * that a task that changes the volume meanwhile cannot lead the mount elsewhere. */
static int open_source(const struct mount_spec *spec)
{
    if (spec->letters[0] == SHIM_MOUNT_HIDDEN)
        return open("/", O_PATH | O_CLOEXEC);
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

/* All sources are opened before the first mount, which may hide those of others. They are opened in the new
 * namespace: the kernel binds nothing from another one. */
int mount_all(struct shim *shim)
{
    static int sources[SHIM_MOUNTS_MAX];
    int result = 0, own = own_mounts(shim);
    for (uint32_t i = 0; i < shim->mount_count; i++)
        sources[i] = own == 0 ? open_source(&shim->mounts[i]) : own;
    for (uint32_t i = 0; i < shim->mount_count && result == 0; i++)
        result = judge(shim, i, mount_one(&shim->mounts[i], sources[i]));
    for (uint32_t i = 0; i < shim->mount_count; i++)
        if (sources[i] >= 0)
            close(sources[i]);
    return result;
}
