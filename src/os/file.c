#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/folder.h"

int os_file_read(const char *path, size_t most, struct buf *ret_text, struct error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "reading %s", path);
    struct buf text = {0};
    for (;;) {
        char block[4096];
        ssize_t len = read(fd, block, sizeof block);
        if (len < 0 && errno == EINTR)
            continue;
        int reason = errno;
        if (len > 0)
            buf_add(&text, block, (size_t)len);
        if (len > 0 && text.len <= most)
            continue;
        close(fd);
        if (len == 0) {
            buf_done(ret_text);
            *ret_text = text;
            return 0;
        }
        buf_done(&text);
        return len < 0 ? error_set_errno(error, reason, "reading %s", path)
                       : error_set(error, ERROR_LIMIT, "%s is larger than %zu bytes", path, most);
    }
}

static bool write_durably(int fd, struct str text)
{
    while (text.len > 0) {
        ssize_t len = write(fd, text.data, text.len);
        if (len < 0 && errno != EINTR)
            return false;
        if (len > 0)
            text = (struct str){text.data + len, text.len - (size_t)len};
    }
    return fsync(fd) == 0;
}

/* Makes the name of a file durable by syncing its folder. */
static bool sync_folder_of(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;
    int reason = errno;
    if (fd >= 0)
        close(fd);
    errno = reason;
    return good;
}

int os_file_write(const char *path, struct str text, mode_t mode, bool replace, struct error *error)
{
    struct buf fresh BUF_CLEANUP = {0};
    buf_printf(&fresh, "%s.XXXXXX", path);
    int fd = mkostemp(fresh.data, O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "making %s", path);
    bool good = fchmod(fd, mode) == 0 && write_durably(fd, text);
    /* link() fails if the file exists; rename() would replace it. */
    good = good && (replace ? rename(fresh.data, path) : link(fresh.data, path)) == 0;
    int reason = errno;
    close(fd);
    if (!good || !replace)
        unlink(fresh.data);
    return good ? 0 : error_set_errno(error, reason, "writing %s", path);
}

int os_file_replace(const char *path, struct str text, mode_t mode, struct error *error)
{
    int rc = os_file_write(path, text, mode, true, error);
    if (rc == 0 && !sync_folder_of(path))
        rc = error_set_errno(error, errno, "writing %s", path);
    return rc;
}

int os_file_seed(const char *path, uint64_t *ret_seed, struct error *error)
{
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(error, errno, "opening %s", path);
    bool known = pread(fd, ret_seed, sizeof *ret_seed, 0) == sizeof *ret_seed;
    bool made = !known && getrandom(ret_seed, sizeof *ret_seed, 0) == sizeof *ret_seed &&
                pwrite(fd, ret_seed, sizeof *ret_seed, 0) == sizeof *ret_seed;
    int rc = known || made ? 0 : error_set_errno(error, errno, "writing %s", path);
    close(fd);
    return rc;
}

bool os_path_is_below(const char *path, const char *folder)
{
    size_t len = strlen(folder);
    return strncmp(path, folder, len) == 0 && (path[len] == 0 || path[len] == '/');
}

static bool may_pass(const struct stat *info, uid_t user, gid_t group)
{
    if (info->st_uid == user)
        return info->st_mode & S_IXUSR;
    if (info->st_gid == group)
        return info->st_mode & S_IXGRP;
    return info->st_mode & S_IXOTH;
}

bool os_path_barrier(const char *path, uid_t user, gid_t group, char ret[PATH_MAX])
{
    struct stat info;
    for (size_t i = 1; path[0] && path[i] && i < PATH_MAX; i++) {
        if (path[i] != '/')
            continue;
        memcpy(ret, path, i);
        ret[i] = 0;
        if (stat(ret, &info) < 0)
            return false;
        if (!may_pass(&info, user, group))
            return true;
    }
    return false;
}

static int refuse_owner(const char *path, uid_t owner, struct error *error)
{
    return error_set(error, ERROR_CONFLICT,
                     "%s belongs to user %u, and this process is user %u: name a folder of its own", path,
                     (unsigned)owner, (unsigned)geteuid());
}

static bool is_empty(int folder)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    bool empty = list != NULL;
    if (!list && fd >= 0)
        close(fd);
    while (empty && (entry = readdir(list)))
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    if (list)
        closedir(list);
    return empty;
}

/* Returns whether the folder is an unused tmpfs, whose root has mode 1777 unless mount(8) was given
 * another. */
static bool is_fresh_mount(int folder, const struct stat *info)
{
    struct stat above;
    return info->st_mode & S_ISVTX && fstatat(folder, "..", &above, 0) == 0 && above.st_dev != info->st_dev &&
           is_empty(folder);
}

int os_folder_own(const char *path, mode_t mode, struct error *error)
{
    struct stat link, folder;
    const mode_t way = os_folder_way();
    mode &= way;
    int rc = os_folder_path(path, 0755, mode, error);
    if (rc < 0)
        return rc;
    if (lstat(path, &link) < 0)
        return error_set_errno(error, errno, "finding the folder %s", path);
    if (S_ISLNK(link.st_mode) && link.st_uid != geteuid() && link.st_uid != 0)
        return refuse_owner(path, link.st_uid, error);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &folder) < 0)
        rc = error_set_errno(error, errno, "opening the folder %s", path);
    else if (folder.st_uid != geteuid())
        rc = refuse_owner(path, folder.st_uid, error);
    else if (folder.st_mode & 022 && is_fresh_mount(fd, &folder) && fchmod(fd, mode) == 0 && is_empty(fd))
        rc = 0;
    else if (folder.st_mode & 022)
        rc = error_set(error, ERROR_CONFLICT,
                       "others may write into %s: chmod go-w it, or name another folder", path);
    else if (folder.st_mode & 077 & ~way && fchmod(fd, folder.st_mode & way) < 0)
        rc = error_set_errno(error, errno, "closing the folder %s to others", path);
    if (fd >= 0)
        close(fd);
    return rc;
}

void os_umask_own(void)
{
    umask(geteuid() == 0 ? 066 : 077);
}
