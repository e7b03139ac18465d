#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/parts.h"

/* Interface files: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/{memory,pids}.rst,
 * scheduler/sched-bwc.rst of the Linux kernel. */

static const char *member(struct text *path, const struct cgroups *cgroups, enum shim_cgroup which,
                          const char *name)
{
    path->len = 0;
    text_add(path, cgroups->directory[which]);
    text_add(path, "/");
    text_add(path, name);
    return path->data;
}

static int set_value(struct shim *shim, enum shim_cgroup which, const char *name, const char *value)
{
    struct text path;
    int result = file_write(member(&path, &shim->cgroups, which, name), value, strlen(value));
    if (result < 0 && shim->start.cgroup_error == 0) {
        shim->start.cgroup_stage = SHIM_STAGE_CGROUP_LIMIT;
        shim->start.cgroup_error = -result;
    }
    return result;
}

static int set_number(struct shim *shim, enum shim_cgroup which, const char *name, uint64_t number)
{
    struct text value = {.len = 0};
    text_add_number(&value, number);
    return set_value(shim, which, name, value.data);
}

enum { CPU_PERIOD_US = 100000, CPU_QUOTA_MIN_US = 1000 };

static uint64_t cpu_quota_us(uint64_t milli)
{
    uint64_t quota = milli * (CPU_PERIOD_US / 1000);
    return quota < CPU_QUOTA_MIN_US ? CPU_QUOTA_MIN_US : quota;
}

/* Sets a value in a file that not every kernel has; its absence is no failure of the limit. */
static void set_if_present(struct shim *shim, enum shim_cgroup which, const char *name, const char *value)
{
    struct text path;
    file_write(member(&path, &shim->cgroups, which, name), value, strlen(value));
}

static void limit_v2(struct shim *shim)
{
    const struct shim_header *header = shim->header;
    if (header->memory_limit_bytes > 0) {
        set_number(shim, 0, "memory.max", header->memory_limit_bytes);
        set_if_present(shim, 0, "memory.swap.max", "0");
        set_if_present(shim, 0, "memory.oom.group", "1"); /* half a task is of no use to its gang */
    }
    if (header->pids_limit > 0)
        set_number(shim, 0, "pids.max", header->pids_limit);
    if (header->cpu_limit_milli > 0) {
        struct text value = {.len = 0};
        text_add_number(&value, cpu_quota_us(header->cpu_limit_milli));
        text_add(&value, " 100000");
        set_value(shim, 0, "cpu.max", value.data);
    }
}

static void limit_v1(struct shim *shim)
{
    const struct shim_header *header = shim->header;
    const struct cgroups *cgroups = &shim->cgroups;
    if (header->memory_limit_bytes > 0 && cgroups->made[SHIM_CGROUP_MEMORY]) {
        struct text value = {.len = 0};
        text_add_number(&value, header->memory_limit_bytes);
        set_value(shim, SHIM_CGROUP_MEMORY, "memory.limit_in_bytes", value.data);
        set_if_present(shim, SHIM_CGROUP_MEMORY, "memory.memsw.limit_in_bytes", value.data);
    }
    if (header->pids_limit > 0 && cgroups->made[SHIM_CGROUP_PIDS])
        set_number(shim, SHIM_CGROUP_PIDS, "pids.max", header->pids_limit);
    if (header->cpu_limit_milli > 0 && cgroups->made[SHIM_CGROUP_CPU]) {
        set_number(shim, SHIM_CGROUP_CPU, "cpu.cfs_period_us", CPU_PERIOD_US);
        set_number(shim, SHIM_CGROUP_CPU, "cpu.cfs_quota_us", cpu_quota_us(header->cpu_limit_milli));
    }
}

int cgroup_make(struct shim *shim)
{
    struct cgroups *cgroups = &shim->cgroups;
    for (int i = 0; i < SHIM_CGROUPS_MAX; i++) {
        cgroups->procs[i] = -1;
        if (!cgroups->directory[i][0])
            continue;
        struct text path;
        cgroups->made[i] = mkdir(cgroups->directory[i], 0755) == 0 || errno == EEXIST;
        if (cgroups->made[i])
            cgroups->procs[i] =
                open(member(&path, cgroups, (enum shim_cgroup)i, "cgroup.procs"), O_WRONLY | O_CLOEXEC);
        if (cgroups->procs[i] < 0 && shim->start.cgroup_error == 0) {
            shim->start.cgroup_stage = SHIM_STAGE_CGROUP_MAKE;
            shim->start.cgroup_error = errno;
        }
    }
    if (shim->header->cgroup_version == 2 && cgroups->made[0])
        limit_v2(shim);
    else if (shim->header->cgroup_version == 1)
        limit_v1(shim);
    return -shim->start.cgroup_error;
}

/* Reads the number after "oom_kill " in memory.events (v2) or memory.oom_control (v1, since Linux 4.13). */
bool cgroup_oom_killed(const struct shim *shim)
{
    if (!shim->cgroups.made[SHIM_CGROUP_MEMORY] || shim->header->memory_limit_bytes == 0)
        return false;
    struct text path;
    char content[1024];
    const char *name = shim->header->cgroup_version == 2 ? "memory.events" : "memory.oom_control";
    if (file_read(member(&path, &shim->cgroups, SHIM_CGROUP_MEMORY, name), content, sizeof content) <= 0)
        return false;
    const char *at = strstr(content, "oom_kill ");
    return at && at[9] >= '1' && at[9] <= '9';
}

void cgroup_kill(const struct shim *shim)
{
    struct text path;
    if (shim->header->cgroup_version == 2 && shim->cgroups.made[0])
        file_write(member(&path, &shim->cgroups, 0, "cgroup.kill"), "1", 1); /* Linux 5.14 */
    if (shim->header->cgroup_version == 1 && shim->cgroups.made[SHIM_CGROUP_PIDS])
        file_write(member(&path, &shim->cgroups, SHIM_CGROUP_PIDS, "pids.max"), "0",
                   1); /* it cannot outrun us */
}

void cgroup_remove(struct shim *shim)
{
    for (int i = 0; i < SHIM_CGROUPS_MAX; i++) {
        if (shim->cgroups.procs[i] >= 0)
            close(shim->cgroups.procs[i]);
        if (shim->cgroups.made[i])
            rmdir(shim->cgroups.directory[i]);
    }
}
