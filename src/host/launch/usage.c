#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/units.h"
#include "base/vec.h"
#include "host/launch/state.h"

/* Sources: proc(5); Documentation/admin-guide/cgroup-v2.rst (cpu.stat, memory.current, memory.stat) and
 * cgroup-v1/{cpuacct,memory}.rst. */

static bool read_text(const char *path, char *ret_text, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t len = 0;
    ssize_t got = 0;
    while (len < cap - 1 && (got = read(fd, ret_text + len, cap - 1 - len)) > 0)
        len += (size_t)got;
    close(fd);
    ret_text[len] = 0;
    return got >= 0 && len > 0;
}

/* Returns the number after `key`, a whole word at the beginning of a line; -1 if there is none. */
static int64_t number_of(const char *text, const char *key)
{
    size_t len = strlen(key);
    for (const char *at = text; (at = strstr(at, key)); at += len)
        if ((at == text || at[-1] == '\n') && strchr(" :\t", at[len]) && at[len])
            return strtoll(at + len + 1, NULL, 10);
    return -1;
}

/* --- cgroups -------------------------------------------------------------------------------------------- */

static bool cgroup_text(const struct launcher *launcher, enum shim_cgroup which, uint64_t uid,
                        const char *file, char *ret_text, size_t cap)
{
    char path[LAUNCH_PATH_MAX + 96];
    if (!launcher->cgroup.directory[which])
        return false;
    snprintf(path, sizeof path, "%s/%016llx-" UID_FORMAT "/%s", launcher->cgroup.directory[which],
             (unsigned long long)shim_checksum(launcher->directory, strlen(launcher->directory)),
             UID_ARG(uid), file);
    return read_text(path, ret_text, cap);
}

/* Fills in the figures that the cgroups have, and leaves the others. */
static void ask_cgroups(const struct launcher *launcher, struct launch_usage *usage, bool *ret_cpu,
                        bool *ret_memory)
{
    const struct cgroup_host *host = &launcher->cgroup;
    bool v2 = host->version == 2;
    char text[8192];
    if (host->version == 0)
        return;
    if (v2 && cgroup_text(launcher, 0, usage->uid, "cpu.stat", text, sizeof text) &&
        number_of(text, "usage_usec") >= 0) {
        usage->cpu_ns = number_of(text, "usage_usec") * 1000;
        *ret_cpu = true;
    }
    if (!v2 && cgroup_text(launcher, SHIM_CGROUP_CPU, usage->uid, "cpuacct.usage", text, sizeof text)) {
        usage->cpu_ns = strtoll(text, NULL, 10);
        *ret_cpu = true;
    }
    if (!cgroup_text(launcher, SHIM_CGROUP_MEMORY, usage->uid,
                     v2 ? "memory.current" : "memory.usage_in_bytes", text, sizeof text))
        return;
    usage->memory_bytes = strtoll(text, NULL, 10);
    *ret_memory = true;
    int64_t idle = 0;
    if (cgroup_text(launcher, SHIM_CGROUP_MEMORY, usage->uid, "memory.stat", text, sizeof text))
        idle = number_of(text, v2 ? "inactive_file" : "total_inactive_file");
    if (idle > 0 && idle <= usage->memory_bytes)
        usage->memory_bytes -= idle;
}

/* --- processes ------------------------------------------------------------------------------------------ */

enum { PROCESS_DEPTH_MAX = 64 }; /* of ancestors that are examined */

struct process {
    pid_t pid, parent;
    int64_t ticks, pages;
};
struct processes {
    VEC(struct process) list;
};

static bool read_process(const char *pid, struct process *ret)
{
    enum { FIELD_PARENT = 4, FIELD_UTIME = 14, FIELD_CSTIME = 17, FIELD_RSS = 24 };
    char path[300], text[2048];
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    if (!read_text(path, text, sizeof text))
        return false;
    const char *at = strrchr(text, ')'); /* the name before it may hold anything */
    *ret = (struct process){.pid = (pid_t)strtol(pid, NULL, 10)};
    for (int field = 3; at && field <= FIELD_RSS; field++) {
        at = strchr(at, ' ');
        if (!at++)
            return false;
        long long value = strtoll(at, NULL, 10);
        if (field == FIELD_PARENT)
            ret->parent = (pid_t)value;
        else if (field >= FIELD_UTIME && field <= FIELD_CSTIME)
            ret->ticks += value;
        else if (field == FIELD_RSS)
            ret->pages = value;
    }
    return at != NULL;
}

static int compare_processes(const void *a, const void *b)
{
    pid_t left = ((const struct process *)a)->pid, right = ((const struct process *)b)->pid;
    return (left > right) - (left < right);
}

static void list_processes(struct processes *processes)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    struct process process;
    while (proc && (entry = readdir(proc)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && read_process(entry->d_name, &process))
            vec_push(&processes->list, process);
    if (proc)
        closedir(proc);
    if (processes->list.len > 0)
        qsort(processes->list.items, processes->list.len, sizeof *processes->list.items, compare_processes);
}

/* Returns the shim from which a process descends, or which it is; 0 if none of ours. */
static pid_t find_shim(const struct processes *processes, const struct u64_map *shims,
                       const struct process *process)
{
    for (int depth = 0; process && depth < PROCESS_DEPTH_MAX; depth++) {
        if (u64_map_get(shims, (uint64_t)process->pid))
            return process->pid;
        struct process key = {.pid = process->parent};
        process = key.pid > 1 ? bsearch(&key, processes->list.items, processes->list.len, sizeof key,
                                        compare_processes)
                              : NULL;
    }
    return 0;
}

static uint64_t uid_of_shim(const struct launcher *launcher, pid_t pid)
{
    list_for_each(node, &launcher->tasks)
    {
        const struct task *task = container_of(node, struct task, node);
        if (task->shim_pid == pid && task->state != TASK_EXITED && !task->forgotten)
            return task->uid;
    }
    return 0;
}

uint64_t launch_find_process(const struct launcher *launcher, int pid)
{
    char name[24];
    struct process process = {.parent = pid};
    uint64_t uid = 0;
    for (int depth = 0; uid == 0 && depth < PROCESS_DEPTH_MAX && process.parent > 1; depth++) {
        uid = uid_of_shim(launcher, process.parent);
        snprintf(name, sizeof name, "%d", (int)process.parent);
        if (uid == 0 && !read_process(name, &process))
            return 0;
    }
    return uid;
}

struct asked {
    struct launch_usage *usage;
    bool cpu, memory; /* taken from the cgroup */
};

/* Sums the times of processes. A process's times include those of children that it waited for; the shim waits
 * for all others. So the sum over living processes never falls. */
static void ask_processes(const struct u64_map *shims)
{
    struct processes processes = {0};
    int64_t tick_ns = NS_PER_SECOND / sysconf(_SC_CLK_TCK), page_bytes = sysconf(_SC_PAGESIZE);
    list_processes(&processes);
    for (size_t i = 0; i < processes.list.len; i++) {
        const struct process *process = &processes.list.items[i];
        pid_t shim = find_shim(&processes, shims, process);
        struct asked *asked = shim ? u64_map_get(shims, (uint64_t)shim) : NULL;
        if (asked && !asked->cpu)
            asked->usage->cpu_ns += process->ticks * tick_ns;
        if (asked && !asked->memory)
            asked->usage->memory_bytes += process->pages * page_bytes;
    }
    vec_done(&processes.list);
}

size_t launch_measure(struct launcher *launcher, struct launch_usage *ret_usages, size_t max)
{
    struct u64_map shims = {0};
    size_t count = 0, unknown = 0;
    struct asked *asked = mem_alloc((max + 1) * sizeof *asked);
    list_for_each(node, &launcher->tasks)
    {
        const struct task *task = container_of(node, struct task, node);
        if (task->state != TASK_RUNNING || task->forgotten || count == max)
            continue;
        asked[count].usage = &ret_usages[count];
        ret_usages[count] = (struct launch_usage){.uid = task->uid};
        ask_cgroups(launcher, &ret_usages[count], &asked[count].cpu, &asked[count].memory);
        if (!asked[count].cpu || !asked[count].memory) {
            unknown++;
            u64_map_put(&shims, (uint64_t)task->shim_pid, &asked[count]);
        }
        count++;
    }
    if (unknown > 0)
        ask_processes(&shims);
    u64_map_done(&shims);
    mem_free(asked);
    return count;
}

bool launch_measure_machine(int64_t *ret_cpu_ns, int64_t *ret_memory_bytes)
{
    enum { COLUMN_IDLE = 3, COLUMN_WAIT = 4, COLUMNS = 7 }; /* up to softirq; stolen time is not ours */
    char text[4096];
    int64_t ticks = 0;
    if (!read_text("/proc/stat", text, sizeof text))
        return false;
    char *at = text + strcspn(text, " ");
    for (int column = 0; column < COLUMNS; column++) {
        int64_t value = strtoll(at, &at, 10);
        if (column != COLUMN_IDLE && column != COLUMN_WAIT)
            ticks += value;
    }
    if (!read_text("/proc/meminfo", text, sizeof text))
        return false;
    int64_t total = number_of(text, "MemTotal"), available = number_of(text, "MemAvailable");
    if (total < 0 || available < 0 || available > total)
        return false;
    *ret_cpu_ns = ticks * (NS_PER_SECOND / sysconf(_SC_CLK_TCK));
    *ret_memory_bytes = (total - available) * 1024;
    return true;
}
