#include "os/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 512 };

/* --- making --------------------------------------------------------------------------------------- */

/* A folder that was made a moment ago is the caller's until it is given away. */
static int settle(int fd, const char *name, mode_t mode, uid_t user, gid_t group, bool made,
                  struct error *error)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return error_set_errno(error, errno, "looking at %s", name);
    bool given = made && user != geteuid();
    if (info.st_uid != (given ? geteuid() : user))
        return error_set(error, ERROR_DENIED,
                         "%s belongs to user %u, expected user %u: remove it, or choose another place", name,
                         (unsigned)info.st_uid, (unsigned)user);
    if (fchmod(fd, mode) < 0)
        return error_set_errno(error, errno, "setting the mode of %s", name);
    if (given && fchown(fd, user, group) < 0)
        return error_set_errno(error, errno, "giving %s to user %u", name, (unsigned)user);
    return 0;
}

int os_folder_make(int at, const char *name, mode_t mode, uid_t user, gid_t group, int *ret_fd,
                   struct error *error)
{
    bool made = mkdirat(at, name, 0700) == 0;
    if (!made && errno != EEXIST)
        return error_set_errno(error, errno, "making %s", name);
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
        return error_set(error, ERROR_DENIED,
                         "%s is a link or a file, expected a folder of user %u: remove it, or choose another "
                         "place",
                         name, (unsigned)user);
    if (fd < 0)
        return error_set_errno(error, errno, "opening %s", name);
    int rc = settle(fd, name, mode, user, group, made, error);
    if (rc < 0)
        close(fd);
    else
        *ret_fd = fd;
    return rc;
}

int os_folder_private(const char *path, mode_t mode, struct error *error)
{
    int fd;
    int rc = os_folder_make(AT_FDCWD, path, mode, geteuid(), getegid(), &fd, error);
    if (rc == 0)
        close(fd);
    return rc;
}

/* --- removing ------------------------------------------------------------------------------------- */

static void remove_below(int parent_fd, const char *name, dev_t device, int depth);

static void remove_entries(int fd, dev_t device, int depth)
{
    DIR *directory = fdopendir(fd);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            unlinkat(fd, entry->d_name, 0) < 0)
            remove_below(fd, entry->d_name, device, depth + 1);
    if (directory)
        closedir(directory);
    else
        close(fd);
}

static void remove_below(int parent_fd, const char *name, dev_t device, int depth)
{
    struct stat info;
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && depth < DEPTH_MAX && fstat(fd, &info) == 0 && info.st_dev == device)
        remove_entries(fd, device, depth);
    else if (fd >= 0)
        close(fd);
    unlinkat(parent_fd, name, AT_REMOVEDIR);
}

void os_folder_remove(int at, const char *name)
{
    struct stat info;
    if (unlinkat(at, name, 0) == 0 || fstatat(at, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    remove_below(at, name, info.st_dev, 0);
}
