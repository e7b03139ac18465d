#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/vec.h"
#include "host/launch/state.h"

#define LOST_NAME "_lost"

static DIR *open_directory_at(int parent_fd, const char *name)
{
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (!directory && fd >= 0)
        close(fd);
    return directory;
}

void directory_remove(int parent_fd, const char *name)
{
    DIR *directory = open_directory_at(parent_fd, name);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory)))
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        closedir(directory);
    unlinkat(parent_fd, name, AT_REMOVEDIR);
}

static struct kept *kept_new(struct launcher *launcher, const char *name, uint64_t seq, uint64_t uid,
                             uint32_t attempt)
{
    struct kept *kept = mem_alloc(sizeof *kept);
    size_t len = strlen(name);
    kept->name = mem_alloc(len + 1);
    memcpy(kept->name, name, len);
    kept->seq = seq;
    kept->uid = uid;
    kept->attempt = attempt;
    list_append(&launcher->kept, &kept->node);
    launcher->kept_len++;
    return kept;
}

static void kept_free(struct launcher *launcher, struct kept *kept)
{
    list_remove(&kept->node);
    launcher->kept_len--;
    mem_free(kept->name);
    mem_free(kept);
}

static void kept_path(const struct launcher *launcher, const struct kept *kept,
                      char ret_path[LAUNCH_PATH_MAX])
{
    snprintf(ret_path, LAUNCH_PATH_MAX, "%s/kept/%s/" UID_FORMAT "-" UID_FORMAT "-%u", launcher->logs,
             kept->name, UID_ARG(kept->seq), UID_ARG(kept->uid), kept->attempt);
}

static void drop(struct launcher *launcher, struct kept *kept)
{
    char path[LAUNCH_PATH_MAX];
    kept_path(launcher, kept, path);
    directory_remove(AT_FDCWD, path);
    *strrchr(path, '/') = 0;
    rmdir(path); /* fails while another attempt's log is in it */
    kept_free(launcher, kept);
}

/* Returns the part of a Pod's name that its successors share: all but "-" and the five characters after
 * it. */
static struct str stem_of(const char *name)
{
    enum { SUFFIX = 6 };
    struct str text = str_from(name);
    bool made = text.len > SUFFIX && text.data[text.len - SUFFIX] == '-';
    return made ? (struct str){text.data, text.len - SUFFIX} : text;
}

/* Drops the oldest logs until only the newest `kept_attempts` of `name`, LAUNCH_KEPT_ALIKE of its stem and
 * `kept_tasks_max` in all are left. */
static void trim(struct launcher *launcher, const char *name)
{
    int count = 0, alike = 0;
    struct str stem = stem_of(name);
    for (struct list_node *node = launcher->kept.prev, *before; node != &launcher->kept; node = before) {
        before = node->prev;
        struct kept *kept = container_of(node, struct kept, node);
        bool over = strcmp(kept->name, name) == 0 && ++count > launcher->kept_attempts;
        over |= str_equal(stem_of(kept->name), stem) && ++alike > LAUNCH_KEPT_ALIKE;
        if (over && strcmp(name, LOST_NAME) != 0)
            drop(launcher, kept);
    }
    while (launcher->kept_len > (uint64_t)launcher->kept_tasks_max)
        drop(launcher, container_of(launcher->kept.next, struct kept, node));
}

/* Moves the log directory of an ended task to the kept ones. */
static void keep_log(struct launcher *launcher, const char *name, uint64_t uid, uint32_t attempt)
{
    char uid_text[24], path[LAUNCH_PATH_MAX];
    snprintf(uid_text, sizeof uid_text, UID_FORMAT, UID_ARG(uid));
    snprintf(path, sizeof path, "%s/log", uid_text);
    struct stat info;
    if (fstatat(launcher->log_tasks_fd, path, &info, 0) < 0 || launcher->kept_attempts < 0) {
        directory_remove(launcher->log_tasks_fd, uid_text);
        return;
    }
    snprintf(path, sizeof path, "%s/kept/%s", launcher->logs, name);
    mkdir(path, 0755);
    struct kept *kept = kept_new(launcher, name, ++launcher->kept_seq, uid, attempt);
    kept_path(launcher, kept, path);
    if (renameat(launcher->log_tasks_fd, uid_text, AT_FDCWD, path) < 0) {
        directory_remove(launcher->log_tasks_fd, uid_text);
        kept_free(launcher, kept);
        return;
    }
    static const char *const records[] = {"task", "hosts",
                                          "rank_table"}; /* there when the directories are one */
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; fd >= 0 && i < sizeof records / sizeof records[0]; i++)
        unlinkat(fd, records[i], 0);
    if (fd >= 0)
        close(fd);
    trim(launcher, name);
}

void keep_task(struct launcher *launcher, const struct task *task)
{
    char uid_text[24];
    snprintf(uid_text, sizeof uid_text, UID_FORMAT, UID_ARG(task->uid));
    keep_log(launcher, task->name, task->uid, task->attempt);
    if (launcher->logs_apart)
        directory_remove(launcher->tasks_fd, uid_text);
}

void keep_lost(struct launcher *launcher)
{
    VEC(uint64_t) lost = {0};
    DIR *directory = launcher->logs_apart ? open_directory_at(launcher->log_tasks_fd, ".") : NULL;
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        unsigned long long uid;
        if (sscanf(entry->d_name, "%20llu", &uid) == 1 && !u64_map_get(&launcher->by_uid, uid))
            vec_push(&lost, uid);
    }
    if (directory)
        closedir(directory);
    for (size_t i = 0; i < lost.len; i++)
        keep_log(launcher, LOST_NAME, lost.items[i], 0);
    vec_done(&lost);
}

bool keep_find(struct launcher *launcher, uint64_t uid, int skip, char ret_path[LAUNCH_PATH_MAX])
{
    for (struct list_node *node = launcher->kept.prev; node != &launcher->kept; node = node->prev) {
        struct kept *kept = container_of(node, struct kept, node);
        if (kept->uid != uid || skip-- > 0)
            continue;
        kept_path(launcher, kept, ret_path);
        size_t len = strlen(ret_path);
        snprintf(ret_path + len, LAUNCH_PATH_MAX - len, "/log");
        return true;
    }
    return false;
}

uint64_t launch_kept_find(const struct launcher *launcher, struct str stem, uint32_t attempt, uint64_t after)
{
    for (const struct list_node *node = launcher->kept.prev; node != &launcher->kept; node = node->prev) {
        const struct kept *kept = container_of(node, const struct kept, node);
        if (kept->attempt == attempt && kept->uid > after && str_equal(stem_of(kept->name), stem))
            return kept->uid;
    }
    return 0;
}

const char *launch_kept_name(const struct launcher *launcher, uint64_t uid)
{
    for (const struct list_node *node = launcher->kept.prev; node != &launcher->kept; node = node->prev) {
        const struct kept *kept = container_of(node, const struct kept, node);
        if (kept->uid == uid)
            return kept->name;
    }
    return NULL;
}

static int by_age(const void *a, const void *b)
{
    const struct kept *x = *(struct kept *const *)a, *y = *(struct kept *const *)b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static void load_name(struct launcher *launcher, int parent_fd, const char *name)
{
    DIR *directory = open_directory_at(parent_fd, name);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        unsigned long long seq, uid;
        unsigned attempt;
        if (sscanf(entry->d_name, "%20llu-%20llu-%10u", &seq, &uid, &attempt) == 3)
            kept_new(launcher, name, seq, uid, attempt);
    }
    if (directory)
        closedir(directory);
}

int keep_load(struct launcher *launcher, struct error *error)
{
    char path[LAUNCH_PATH_MAX];
    snprintf(path, sizeof path, "%s/kept", launcher->logs);
    DIR *directory = open_directory_at(AT_FDCWD, path);
    if (!directory)
        return error_set_errno(error, errno, "reading %s", path);
    const struct dirent *entry;
    while ((entry = readdir(directory)))
        if (entry->d_name[0] != '.')
            load_name(launcher, dirfd(directory), entry->d_name);
    closedir(directory);
    VEC(struct kept *) sorted = {0};
    list_for_each(node, &launcher->kept) vec_push(&sorted, container_of(node, struct kept, node));
    if (sorted.len > 0)
        qsort(sorted.items, sorted.len, sizeof sorted.items[0], by_age);
    list_init(&launcher->kept);
    for (size_t i = 0; i < sorted.len; i++) {
        list_append(&launcher->kept, &sorted.items[i]->node);
        launcher->kept_seq = sorted.items[i]->seq;
    }
    vec_done(&sorted);
    return 0;
}

void keep_done(struct launcher *launcher)
{
    while (!list_empty(&launcher->kept))
        kept_free(launcher, container_of(launcher->kept.next, struct kept, node));
}
