#include "os/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DEPTH_MAX = 512 };

/* --- making --------------------------------------------------------------------------------------- */

/* The mode of a folder that root has made for another user and not given away yet. A mark on the folder
 * itself also works on NFS and Lustre, which cannot rename without replacing, and outlives an agent that is
 * killed. */
enum { UNFINISHED_MODE = S_ISVTX | S_IRWXU };

bool os_folder_is_unfinished(const struct stat *info)
{
    return S_ISDIR(info->st_mode) && info->st_uid == geteuid() && (info->st_mode & 07777) == UNFINISHED_MODE;
}

/* Gives the folder to its user and sets its mode. The mode comes last: until then the folder is unfinished,
 * or already belongs to its user. */
static int settle(int fd, const char *name, mode_t mode, uid_t user, gid_t group, struct error *error)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return error_set_errno(error, errno, "looking at %s", name);
    bool give = user != geteuid() && os_folder_is_unfinished(&info);
    if (info.st_uid != user && !give)
        return error_set(error, ERROR_DENIED,
                         "%s belongs to user %u, expected user %u: remove it, or choose another place", name,
                         (unsigned)info.st_uid, (unsigned)user);
    if (give && fchown(fd, user, group) < 0)
        return error_set_errno(error, errno, "giving %s to user %u", name, (unsigned)user);
    if (fchmod(fd, mode) < 0)
        return error_set_errno(error, errno, "setting the mode of %s", name);
    return 0;
}

int os_folder_make(int at, const char *name, mode_t mode, uid_t user, gid_t group, int *ret_fd,
                   struct error *error)
{
    if (mkdirat(at, name, user == geteuid() ? S_IRWXU : UNFINISHED_MODE) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "making %s", name);
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
        return error_set(error, ERROR_DENIED,
                         "%s is a link or a file, expected a folder of user %u: remove it, or choose another "
                         "place",
                         name, (unsigned)user);
    if (fd < 0)
        return error_set_errno(error, errno, "opening %s", name);
    int rc = settle(fd, name, mode, user, group, error);
    if (rc < 0)
        close(fd);
    else
        *ret_fd = fd;
    return rc;
}

int os_folder_path(const char *path, mode_t above, mode_t mode, struct error *error)
{
    char part[PATH_MAX];
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof part)
        return error_set(error, ERROR_INVALID, "folder \"%.200s\": its path is empty or too long", path);
    for (size_t i = 1; i <= len; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        bool made = mkdir(part, path[i] ? above : mode) == 0;
        if (!made && errno != EEXIST)
            return error_set_errno(error, errno, "making %s for the folder %s", part, path);
        if (made && !path[i] && chmod(part, mode) < 0)
            return error_set_errno(error, errno, "setting the mode of %s", part);
    }
    return 0;
}

static int open_inside(int root, const char *inner)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, root, inner, &how, sizeof how);
}

/* Makes the folder that the first `len` bytes of `inner` name. Returns 0, or -1 with errno. */
static int make_inside(int root, char *inner, size_t len, mode_t mode)
{
    char *slash = memrchr(inner, '/', len), last = inner[len];
    const char *name = slash ? slash + 1 : inner;
    int parent = root;
    inner[len] = 0;
    if (slash) {
        *slash = 0;
        parent = open_inside(root, inner);
        *slash = '/';
    }
    int fd = -1, rc = parent < 0 ? -1 : mkdirat(parent, name, mode);
    if (rc == 0 && (fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) >= 0)
        rc = fchmod(fd, mode);
    int reason = errno;
    if (fd >= 0)
        close(fd);
    if (slash && parent >= 0)
        close(parent);
    inner[len] = last;
    errno = reason;
    return rc == 0 || reason == EEXIST ? 0 : -1;
}

int os_folder_inside(int root, const char *inner, mode_t mode, int *ret_fd, struct error *error)
{
    char path[PATH_MAX];
    size_t len = strlen(inner);
    if (len == 0 || len >= sizeof path)
        return error_set(error, ERROR_INVALID, "folder \"%.200s\": its path is empty or too long", inner);
    memcpy(path, inner, len + 1);
    int fd = open_inside(root, path);
    bool absent = fd < 0 && errno == ENOENT;
    for (size_t i = 1; absent && i <= len; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        if (path[i - 1] != '/' && make_inside(root, path, i, mode) < 0)
            break;
        if (i == len)
            fd = open_inside(root, path);
    }
    if (fd < 0 && (errno == EXDEV || errno == ELOOP))
        return error_set(error, ERROR_DENIED, "\"%.200s\" leads out of its folder", inner);
    if (fd < 0)
        return error_set_errno(error, errno, "making \"%.200s\"", inner);
    *ret_fd = fd;
    return 0;
}

mode_t os_folder_way(void)
{
    return geteuid() == 0 ? 0711 : 0700;
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

/* Opens a folder to empty it, also one of the caller's that its mode closes. */
static int open_to_remove(int parent_fd, const char *name)
{
    const int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(parent_fd, name, O_RDONLY | flags);
    if (fd >= 0 || errno != EACCES)
        return fd;
    char path[64];
    int closed = openat(parent_fd, name, O_PATH | flags);
    if (closed < 0)
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", closed);
    if (chmod(path, 0700) == 0)
        fd = openat(parent_fd, name, O_RDONLY | flags);
    close(closed);
    return fd;
}

static void remove_below(int parent_fd, const char *name, dev_t device, int depth)
{
    struct stat info;
    int fd = open_to_remove(parent_fd, name);
    bool known = fd >= 0 && fstat(fd, &info) == 0;
    if (known && info.st_uid == geteuid() && (info.st_mode & S_IRWXU) != S_IRWXU)
        (void)fchmod(fd, S_IRWXU); /* nothing can be removed from a folder that its owner may not write to */
    if (known && depth < DEPTH_MAX && info.st_dev == device)
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
