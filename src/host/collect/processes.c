/* processes.c - finds the processes of a task in /proc. */
#include "host/collect/internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "core/diagnose/diagnose.h"

enum { ENVIRONMENT_MAX = 4 << 20, SMALL_MAX = 4096, RANKS_MAX = 4096 };

/* Reads the whole file, up to `most` bytes. */
static bool read_proc(int pid, const char *name, size_t most, struct buf *ret_text)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    buf_clear(ret_text);
    if (fd < 0)
        return false;
    ssize_t count = 1;
    while (count > 0 && ret_text->len < most) {
        buf_reserve(ret_text, SMALL_MAX);
        count = read(fd, ret_text->data + ret_text->len, SMALL_MAX);
        ret_text->len += count > 0 ? (size_t)count : 0;
    }
    close(fd);
    return count >= 0;
}

/* Returns the variable's value, empty if it is not set. */
static struct str variable(struct str environment, const char *name)
{
    size_t length = strlen(name);
    while (environment.len > 0) {
        size_t end = strnlen(environment.data, environment.len);
        if (end > length && environment.data[length] == '=' && memcmp(environment.data, name, length) == 0)
            return (struct str){environment.data + length + 1, end - length - 1};
        end = end < environment.len ? end + 1 : end;
        environment = (struct str){environment.data + end, environment.len - end};
    }
    return STR("");
}

/* Parses "pid (any name) S ppid ...": the fields after the last ')'. */
static void read_stat(struct rank_process *process, struct buf *scratch)
{
    if (!read_proc(process->pid, "stat", SMALL_MAX, scratch))
        return;
    const char *close = memrchr(scratch->data, ')', scratch->len);
    unsigned long long user = 0, system = 0, begun = 0;
    struct timespec now, up;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &up);
    buf_add_char(scratch, '\0');
    if (!close || sscanf(close + 1,
                         " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu",
                         &process->state, &user, &system, &begun) != 4)
        return;
    int64_t age_ns = (int64_t)(up.tv_sec - begun / (unsigned long long)sysconf(_SC_CLK_TCK)) * NS_PER_SECOND;
    process->begun_ns = now.tv_sec * NS_PER_SECOND - age_ns;
    process->ticks = user + system;
}

static struct str read_wait(int pid, struct arena *arena, struct buf *scratch)
{
    if (!read_proc(pid, "wchan", 64, scratch))
        return STR("");
    struct str name = str_trim(buf_str(scratch));
    for (size_t i = 0; i < name.len; i++)
        if (!isalnum((unsigned char)name.data[i]) && name.data[i] != '_' && name.data[i] != '.')
            return STR("");
    return str_is(name, "0") ? STR("") : arena_str(arena, name);
}

static bool read_segment(int pid, const char *fd_name, struct jobwire_flight *ret_record)
{
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%.16s", pid, fd_name);
    ssize_t length = readlink(path, target, sizeof target - 1);
    struct str name = {target, length > 0 ? (size_t)length : 0};
    if (!str_starts(name, STR("/memfd:" JOBWIRE_FLIGHT_NAME)))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t count = pread(fd, ret_record, sizeof *ret_record, 0);
    close(fd);
    return count == (ssize_t)sizeof *ret_record && ret_record->magic == JOBWIRE_FLIGHT_MAGIC &&
           ret_record->world > 0 && ret_record->rank < ret_record->world &&
           ret_record->ended <= ret_record->begun && ret_record->begun <= ret_record->ended + 1;
}

/* Reads the record of a process. A forked child inherits its parent's record, which counts for the parent
 * only. */
static void read_record(struct rank_process *process)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/fd", process->pid);
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (struct dirent *entry; !process->recorded && (entry = readdir(dir));)
        process->recorded = read_segment(process->pid, entry->d_name, &process->record);
    closedir(dir);
    bool inherited = process->recorded && process->record.pid != (uint32_t)process->pid;
    struct buf status BUF_CLEANUP = {0};
    if (!inherited || !read_proc(process->pid, "status", SMALL_MAX, &status))
        return;
    /* Inside its own pid namespace the process knows another pid, which is the last number of NSpid. */
    char line[48];
    int length = snprintf(line, sizeof line, "\t%u\n", process->record.pid);
    const char *numbers = memmem(status.data, status.len, "NSpid:", 6);
    const char *end = numbers ? memchr(numbers, '\n', (size_t)(status.data + status.len - numbers)) : NULL;
    process->recorded =
        end && end + 1 - numbers > length && memcmp(end + 1 - length, line, (size_t)length) == 0;
}

static struct str first_set(struct str environment, const char *name, const char *other)
{
    struct str value = variable(environment, name);
    return value.len ? value : variable(environment, other);
}

static void look(uint64_t task, int pid, struct arena *arena, struct buf *scratch, rank_list *ranks)
{
    struct rank_process process = {.pid = pid};
    struct buf environment BUF_CLEANUP = {0};
    int64_t uid, rank;
    if (!read_proc(pid, "environ", ENVIRONMENT_MAX, &environment))
        return;
    struct str env = buf_str(&environment);
    if (!str_to_i64(variable(env, "PHX_TASK_UID"), 1, INT64_MAX, &uid) || (uint64_t)uid != task ||
        !str_to_i64(first_set(env, "RANK", "PHX_RANK"), 0, FLIGHT_RANKS_MAX - 1, &rank))
        return;
    process.rank = (uint32_t)rank;
    process.worker = variable(env, "TORCHELASTIC_RUN_ID").len > 0;
    process.dump =
        arena_str(arena, first_set(env, "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"));
    process.pipe = arena_str(arena, variable(env, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"));
    read_stat(&process, scratch);
    process.waits_in = read_wait(pid, arena, scratch);
    read_record(&process);
    if (process.recorded)
        process.rank = process.record.rank;
    if (process.state != 0 && ranks->len < RANKS_MAX)
        vec_push(ranks, process);
}

/* Sorts by rank. Of several processes of a rank, the one that represents it comes first. */
static int compare(const void *a, const void *b)
{
    const struct rank_process *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->recorded != y->recorded)
        return x->recorded ? -1 : 1;
    if (x->ticks != y->ticks)
        return x->ticks > y->ticks ? -1 : 1;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static void keep_one_each(rank_list *ranks)
{
    bool workers = false;
    size_t kept = 0;
    for (size_t i = 0; i < ranks->len; i++)
        workers = workers || ranks->items[i].worker;
    for (size_t i = 0; i < ranks->len; i++) {
        const struct rank_process *process = &ranks->items[i];
        if (process->worker == workers && (kept == 0 || ranks->items[kept - 1].rank != process->rank))
            ranks->items[kept++] = *process;
    }
    ranks->len = kept;
}

int ranks_find(uint64_t task, struct arena *arena, rank_list *ret_ranks, struct error *error)
{
    struct buf scratch BUF_CLEANUP = {0};
    DIR *dir = opendir("/proc");
    if (!dir)
        return error_set_errno(error, errno, "/proc");
    for (struct dirent *entry; (entry = readdir(dir));) {
        int64_t pid;
        if (str_to_i64(str_from(entry->d_name), 1, INT32_MAX, &pid) && pid != getpid())
            look(task, (int)pid, arena, &scratch, ret_ranks);
    }
    closedir(dir);
    if (ret_ranks->len > 1)
        qsort(ret_ranks->items, ret_ranks->len, sizeof *ret_ranks->items, compare);
    keep_one_each(ret_ranks);
    return 0;
}
