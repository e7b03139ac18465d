/* bind.c - shows a file or folder at another place.
 *
 * Both ends are named by descriptors, so that a task that changes a path meanwhile cannot lead the mount
 * elsewhere. open_tree and move_mount (Linux 5.2) take descriptors as they are. mount(2) takes only paths,
 * and the names of descriptors in /proc cost more than the mount itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/parts.h"

/* Returns 0, or -errno: -ENOSYS before Linux 5.2, or 5.12 if read-only. EPERM may come from the filter of a
 * container around the machine daemon, which does not know these calls. */
static int bind_by_descriptors(int source, int target, bool read_only)
{
    const struct mount_attr set = {.attr_set = MOUNT_ATTR_RDONLY};
    const unsigned clone = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | RECURSIVE;
    const unsigned ends = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
    int tree = (int)syscall(SYS_open_tree, source, "", clone);
    int result = tree < 0 ? -errno : 0;
    if (result == 0 && read_only && syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &set, sizeof set) < 0)
        result = -errno;
    if (result == 0 && syscall(SYS_move_mount, tree, "", target, "", ends) < 0)
        result = -errno;
    if (tree >= 0)
        close(tree);
    return result;
}

/* Before Linux 5.12 a mount becomes read-only by its path alone: a task that changes the path meanwhile keeps
 * its mount writable. In a user namespace, flags that the machine has set stay set, and must be named. */
static int make_read_only(const char *path)
{
    static const unsigned long more[] = {0, MS_NOSUID | MS_NODEV, MS_NOSUID | MS_NODEV | MS_NOEXEC};
    const unsigned long flags = MS_BIND | MS_REMOUNT | MS_RDONLY;
    for (int i = 0; i < 3; i++)
        if (mount(NULL, path, NULL, flags | more[i], NULL) == 0)
            return 0;
    return -errno;
}

int bind_mount(int source, int target, const char *path, bool read_only)
{
    int result = bind_by_descriptors(source, target, read_only);
    /* A path is trusted with "read-only" only where the kernel has nothing better. A writable mount is as
     * safe either way, and mount(2) has the plainer errors. */
    if (result == 0 || (read_only && result != -ENOSYS && result != -EPERM))
        return result;
    struct text from = {.len = 0}, to = {.len = 0};
    text_add_descriptor(&from, source);
    text_add_descriptor(&to, target);
    if (mount(from.data, to.data, NULL, MS_BIND | MS_REC, NULL) < 0)
        return -errno;
    return read_only ? make_read_only(path) : 0;
}
