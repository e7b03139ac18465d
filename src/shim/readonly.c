/* readonly.c - readOnlyRootFilesystem: the task's own view of the machine's file systems becomes read-only.
 *
 * The child of the shim does it, in a further mount namespace, because the shim itself still writes logs and
 * cgroups. The task's writable mounts (volumes, /tmp, its folder), /proc and /dev stay writable. A mount that
 * is read-only on the machine stays so. File systems that the machine has mounted below a volume become
 * read-only.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/parts.h"

static const char *const devices[] = {"/proc",    "/dev",        "/dev/shm",
                                      "/dev/pts", "/dev/mqueue", "/dev/hugepages"};
enum { DEVICES = sizeof devices / sizeof *devices };

static bool is_writable(const char *path)
{
    struct statvfs info;
    return statvfs(path, &info) == 0 && !(info.f_flag & ST_RDONLY);
}

static int change(const char *path, struct mount_attr change, unsigned flags)
{
    return syscall(SYS_mount_setattr, AT_FDCWD, path, flags, &change, sizeof change) < 0 ? -errno : 0;
}

static const char *writable_mount(const struct shim *shim, uint32_t i)
{
    const struct mount_spec *mount = &shim->mounts[i];
    bool said = mount->letters[0] != SHIM_MOUNT_HIDDEN && mount->letters[1] == SHIM_MOUNT_WRITABLE;
    return said && is_writable(mount->target) ? mount->target : NULL;
}

int make_root_read_only(const struct shim *shim)
{
    static const char *kept[SHIM_MOUNTS_MAX];
    const char *kept_devices[DEVICES];
    const struct mount_attr set = {.attr_set = MOUNT_ATTR_RDONLY}, clear = {.attr_clr = MOUNT_ATTR_RDONLY};
    int result = own_mounts(shim);
    if (result < 0 || unshare(CLONE_NEWNS) < 0)
        return result < 0 ? result : -errno;
    for (uint32_t i = 0; i < shim->mount_count; i++)
        kept[i] = writable_mount(shim, i);
    for (int i = 0; i < DEVICES; i++)
        kept_devices[i] = is_writable(devices[i]) ? devices[i] : NULL;
    result = change("/", set, RECURSIVE);
    for (uint32_t i = 0; i < shim->mount_count && result == 0; i++)
        result = kept[i] ? change(kept[i], clear, 0) : 0;
    for (int i = 0; i < DEVICES && result == 0; i++) {
        result = kept_devices[i] ? change(kept_devices[i], clear, 0) : 0;
        if (result == -EINVAL) /* a folder, not a mount */
            result = 0;
    }
    return result;
}
