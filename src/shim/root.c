/* root.c - the task's own root file system: the machine's files, with the task's changes on top.
 *
 * An overlay (Documentation/filesystems/overlayfs.rst of Linux) of the machine's root file system, with a
 * tmpfs for the changes: the mount takes a fraction of a millisecond (several with changes on a disk), and
 * nothing remains at the task's end. Other file systems that are mounted on the machine are not part of it:
 * the task's further mounts bring those that it sees. The machine's root stays mounted in a folder of the new
 * one until those mounts are made, because the kernel binds nothing from outside of the mount namespace. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/parts.h"

#define MACHINE       "/.phalanx-machine" /* where the machine's root is until root_leave() */
#define CHANGES_LIMIT "mode=755,size=1g"  /* docs/pods.md tells it */

static const char *below(struct text *path, int folder, const char *name)
{
    path->len = 0;
    text_add_descriptor(path, folder);
    text_add(path, name);
    return path->data;
}

static int mount_overlay(int folder, const char *root)
{
    struct text options = {.len = 0}, path;
    text_add(&options, "lowerdir=/,upperdir=");
    text_add(&options, below(&path, folder, "/changes"));
    text_add(&options, ",workdir=");
    text_add(&options, below(&path, folder, "/work"));
    return mount("overlay", root, "overlay", 0, options.data) < 0 ? -errno : 0;
}

/* Makes the overlay in the tmpfs `folder`, and makes it this process's root. */
static int enter(int folder)
{
    struct text root, path;
    below(&root, folder, "/root");
    if (mkdirat(folder, "changes", 0755) < 0 || mkdirat(folder, "work", 0755) < 0 ||
        mkdirat(folder, "root", 0755) < 0)
        return -errno;
    int result = mount_overlay(folder, root.data);
    /* Descriptors have names only in /proc, so /proc is mounted first. */
    if (result == 0 &&
        (mount("/proc", below(&path, folder, "/root/proc"), NULL, MS_BIND | MS_REC, NULL) < 0 ||
         mkdir(below(&path, folder, "/root" MACHINE), 0700) < 0 ||
         syscall(SYS_pivot_root, root.data, path.data) < 0))
        result = -errno;
    return result;
}

int root_enter(const char *place)
{
    if (mount("changes", place, "tmpfs", MS_NOSUID | MS_NODEV, CHANGES_LIMIT) < 0)
        return -errno;
    int folder = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int result = folder < 0 ? -errno : enter(folder);
    if (folder >= 0)
        close(folder);
    if (result < 0)
        umount2(place, MNT_DETACH);
    return result;
}

int root_leave(void)
{
    if (umount2(MACHINE, MNT_DETACH) < 0)
        return -errno;
    rmdir(MACHINE);
    return 0;
}
