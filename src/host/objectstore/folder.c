/* folder.c - a directory as a store: an object is a file with its key as name; an upload is a file in
 * ".uploads" that is renamed when it is finished. Named files are durable. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "host/objectstore/driver.h"

#define UPLOADS ".uploads"

enum { FOLDER_PATH_MAX = 4096 };

static int path_of(const struct object_store *store, const char *key, char path[FOLDER_PATH_MAX],
                   struct error *error)
{
    bool outside = key[0] == '/' || strcmp(key, "..") == 0 || strncmp(key, "../", 3) == 0 ||
                   strstr(key, "/../") || (strlen(key) >= 3 && strcmp(key + strlen(key) - 3, "/..") == 0);
    int len = snprintf(path, FOLDER_PATH_MAX, "%s/%s", store->place->bucket, key);
    if (outside || len >= FOLDER_PATH_MAX)
        return error_set(error, ERROR_INVALID, "store %s: a key cannot be %.100s", store->place->bucket, key);
    return 0;
}

/* Makes the folders on the way to `path`. */
static int make_parents(char *path, struct error *error)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        int rc =
            mkdir(path, 0777) < 0 && errno != EEXIST ? error_set_errno(error, errno, "making %s", path) : 0;
        *slash = '/';
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int sync_parent(const char *path, struct error *error)
{
    char parent[FOLDER_PATH_MAX];
    snprintf(parent, sizeof parent, "%s", path);
    *strrchr(parent, '/') = 0;
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 || fsync(fd) < 0 ? error_set_errno(error, errno, "syncing %s", parent) : 0;
    if (fd >= 0)
        close(fd);
    return rc;
}

static int write_at(const char *path, int flags, uint64_t offset, struct str bytes, struct error *error)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | flags, 0666);
    int rc = fd < 0 ? -1 : 0;
    while (rc == 0 && bytes.len > 0) {
        ssize_t written = pwrite(fd, bytes.data, bytes.len, (off_t)offset);
        if (written < 0 && errno != EINTR)
            rc = -1;
        if (written > 0) {
            bytes = (struct str){bytes.data + written, bytes.len - (size_t)written};
            offset += (uint64_t)written;
        }
    }
    if (rc == 0 && fsync(fd) < 0)
        rc = -1;
    if (rc < 0)
        rc = error_set_errno(error, errno, "writing %s", path);
    if (fd >= 0)
        close(fd);
    return rc;
}

static int publish(const char *temporary, char *path, struct error *error)
{
    int rc = make_parents(path, error);
    if (rc == 0 && rename(temporary, path) < 0)
        rc = error_set_errno(error, errno, "naming %s", path);
    return rc == 0 ? sync_parent(path, error) : rc;
}

static int get(struct object_store *store, const char *key, uint64_t offset, uint8_t *buf, size_t len,
               size_t *ret_len, uint64_t *ret_total, struct error *error)
{
    char path[FOLDER_PATH_MAX];
    struct stat info;
    size_t done = 0;
    int rc = path_of(store, key, path, error);
    if (rc < 0)
        return rc;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return error_set(error, ERROR_NOT_FOUND, "%s: there is no such object", path);
    ssize_t got = fd < 0 || fstat(fd, &info) < 0 ? -1 : 1;
    while (got > 0 && done < len) {
        got = pread(fd, buf + done, len - done, (off_t)(offset + done));
        got = got < 0 && errno == EINTR ? 1 : got;
        done += got > 0 ? (size_t)got : 0;
    }
    if (got < 0)
        rc = error_set_errno(error, errno, "reading %s", path);
    if (fd >= 0)
        close(fd);
    if (rc == 0)
        *ret_len = done;
    if (rc == 0 && ret_total)
        *ret_total = (uint64_t)info.st_size;
    return rc;
}

static int delete_key(struct object_store *store, const char *key, struct error *error)
{
    char path[FOLDER_PATH_MAX];
    int rc = path_of(store, key, path, error);
    if (rc == 0 && unlink(path) < 0 && errno != ENOENT)
        rc = error_set_errno(error, errno, "deleting %s", path);
    for (char *slash;
         rc == 0 && (slash = strrchr(path, '/')) && slash > path + strlen(store->place->bucket);) {
        *slash = 0;
        if (rmdir(path) < 0) /* folders are no objects: remove one with its last file */
            break;
    }
    return rc;
}

/* --- lists ---------------------------------------------------------------------------------------- */

struct search {
    const struct object_store *store;
    struct str start;
    struct arena *arena;
    struct object_list *list;
};

static int search_folder(const struct search *search, const char *below, int depth)
{
    char path[FOLDER_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", search->store->place->bucket, below);
    DIR *directory = depth < 32 ? opendir(path) : NULL;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            (depth == 0 && strcmp(entry->d_name, UPLOADS) == 0) ||
            fstatat(dirfd(directory), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        struct str key = arena_printf(search->arena, "%s%s", below, entry->d_name);
        if (S_ISDIR(info.st_mode)) {
            struct str folder = arena_printf(search->arena, STR_FORMAT "/", STR_ARG(key));
            if (str_starts(folder, search->start) || str_starts(search->start, folder))
                search_folder(search, folder.data, depth + 1);
        } else if (S_ISREG(info.st_mode) && str_starts(key, search->start)) {
            vec_push(&search->list->entries,
                     ((struct object_entry){.key = key, .bytes = (uint64_t)info.st_size}));
        }
    }
    if (directory)
        closedir(directory);
    return 0;
}

static int by_key(const void *a, const void *b)
{
    return str_compare(((const struct object_entry *)a)->key, ((const struct object_entry *)b)->key);
}

static int list(struct object_store *store, const char *start, struct arena *arena, struct object_list *ret,
                struct error *error)
{
    struct search search = {store, str_from(start), arena, ret};
    int rc = search_folder(&search, "", 0);
    if (ret->entries.len > 1)
        qsort(ret->entries.items, ret->entries.len, sizeof *ret->entries.items, by_key);
    return rc;
}

/* --- uploads: the number is the name of a file, chosen at random --------------------------------------- */

static int upload_path(const struct object_store *store, const char *id, char path[FOLDER_PATH_MAX],
                       struct error *error)
{
    char key[STORE_ID_MAX + 16];
    snprintf(key, sizeof key, UPLOADS "/%.64s", id);
    return strchr(id, '/') ? error_set(error, ERROR_INVALID, "an upload's number has no \"/\"")
                           : path_of(store, key, path, error);
}

static int begin(struct object_store *store, const char *key, char ret_id[STORE_ID_MAX], struct error *error)
{
    char path[FOLDER_PATH_MAX];
    int rc = path_of(store, UPLOADS "/upload-XXXXXX", path, error);
    if (rc == 0)
        rc = make_parents(path, error);
    int fd = rc == 0 ? mkostemp(path, O_CLOEXEC) : -1;
    if (rc == 0 && fd < 0)
        rc = error_set_errno(error, errno, "making %s", path);
    if (fd >= 0) {
        close(fd);
        snprintf(ret_id, STORE_ID_MAX, "%s", strrchr(path, '/') + 1);
    }
    return rc;
}

static int part(struct object_store *store, const char *key, const char *id, uint32_t number,
                struct str bytes, char ret_tag[STORE_TAG_MAX], struct error *error)
{
    char path[FOLDER_PATH_MAX];
    int rc = upload_path(store, id, path, error);
    if (rc == 0 && access(path, F_OK) < 0)
        return error_set(error, ERROR_NOT_FOUND, "%s: there is no such upload", path);
    if (rc == 0)
        rc = write_at(path, 0, (number - 1) * store->place->part_bytes, bytes, error);
    if (rc == 0)
        snprintf(ret_tag, STORE_TAG_MAX, "part-%u", number);
    return rc;
}

static int finish(struct object_store *store, const char *key, const char *id,
                  const char (*tags)[STORE_TAG_MAX], uint32_t count, struct error *error)
{
    char temporary[FOLDER_PATH_MAX], path[FOLDER_PATH_MAX];
    int rc = upload_path(store, id, temporary, error);
    if (rc == 0)
        rc = path_of(store, key, path, error);
    if (rc == 0 && access(temporary, F_OK) < 0)
        return error_set(error, ERROR_NOT_FOUND, "%s: there is no such upload", temporary);
    return rc == 0 ? publish(temporary, path, error) : rc;
}

static int abort_upload(struct object_store *store, const char *key, const char *id, struct error *error)
{
    char path[FOLDER_PATH_MAX];
    int rc = upload_path(store, id, path, error);
    if (rc == 0 && unlink(path) < 0 && errno != ENOENT)
        rc = error_set_errno(error, errno, "deleting %s", path);
    return rc;
}

/* Lists uploads. Their files do not have the key, so each entry has the prefix as its key. */
static int uploads(struct object_store *store, struct arena *arena, struct object_list *ret,
                   struct error *error)
{
    char path[FOLDER_PATH_MAX];
    int rc = path_of(store, UPLOADS, path, error);
    DIR *directory = rc == 0 ? opendir(path) : NULL;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        struct stat info;
        if (entry->d_name[0] == '.' ||
            fstatat(dirfd(directory), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        vec_push(&ret->entries,
                 ((struct object_entry){.key = arena_str(arena, str_from(store->place->prefix)),
                                        .bytes = (uint64_t)info.st_size,
                                        .upload = arena_str(arena, str_from(entry->d_name)),
                                        .begun_ns = info.st_mtim.tv_sec * NS_PER_SECOND}));
    }
    if (directory)
        closedir(directory);
    return rc;
}

static int put(struct object_store *store, const char *key, struct str bytes, struct error *error)
{
    char id[STORE_ID_MAX], temporary[FOLDER_PATH_MAX], path[FOLDER_PATH_MAX];
    int rc = begin(store, key, id, error);
    if (rc == 0)
        rc = upload_path(store, id, temporary, error);
    if (rc == 0)
        rc = write_at(temporary, 0, 0, bytes, error);
    if (rc == 0)
        rc = path_of(store, key, path, error);
    return rc == 0 ? publish(temporary, path, error) : rc;
}

static void close_folder(struct object_store *store)
{
    mem_free(store);
}

static const struct store_driver folder_driver = {close_folder, put,  get,    delete_key,   list,
                                                  begin,        part, finish, abort_upload, uploads};

int folder_open(const struct store_place *place, struct object_store **ret, struct error *error)
{
    struct object_store *store = mem_alloc(sizeof *store);
    store->driver = &folder_driver;
    *ret = store;
    return 0;
}
