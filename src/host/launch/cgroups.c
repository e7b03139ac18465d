#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "host/launch/state.h"

#define CGROUP2_SUPER_MAGIC_NUMBER 0x63677270 /* linux/magic.h */

static const char *const controller_names[SHIM_CGROUPS_MAX] = {"memory", "pids", "cpu"};

static size_t read_file(const char *path, char *ret_text, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = 0;
    size_t len = 0;
    while (fd >= 0 && len < cap - 1 && (got = read(fd, ret_text + len, cap - 1 - len)) > 0)
        len += (size_t)got;
    if (fd >= 0)
        close(fd);
    ret_text[len] = 0;
    return len;
}

static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += len)
        if ((at == list || strchr(" ,", at[-1])) && strchr(" ,\n", at[len])) /* strchr finds the NUL too */
            return true;
    return false;
}

/* Makes every part of `parent` below `mount`, and enables controllers in each (v2). Returns NULL if that is
 * refused. */
static char *make_parent(const char *mount, const char *parent, const char *enable)
{
    char path[LAUNCH_PATH_MAX], control[LAUNCH_PATH_MAX + 32];
    size_t mount_len = strlen(mount), parent_len = strlen(parent);
    if (mount_len + parent_len + 64 > sizeof path)
        return NULL;
    snprintf(path, sizeof path, "%s/%s", mount, parent);
    for (size_t i = mount_len; i <= mount_len + 1 + parent_len; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        char rest = path[i];
        path[i] = 0;
        bool made = i == mount_len || mkdir(path, 0755) == 0 || errno == EEXIST;
        snprintf(control, sizeof control, "%s/cgroup.subtree_control", path);
        int fd = made && enable ? open(control, O_WRONLY | O_CLOEXEC) : -1;
        if (fd >= 0) {
            made = write(fd, enable, strlen(enable)) > 0;
            close(fd);
        } else if (enable) {
            made = false;
        }
        if (!made)
            return NULL;
        path[i] = rest;
    }
    if (access(path, W_OK) < 0)
        return NULL;
    size_t len = strlen(path);
    char *copy = mem_alloc(len + 1);
    memcpy(copy, path, len);
    return copy;
}

static bool probe_v2(struct launcher *launcher)
{
    struct statfs info;
    if (statfs("/sys/fs/cgroup", &info) < 0 || info.f_type != CGROUP2_SUPER_MAGIC_NUMBER)
        return false;
    char controllers[512];
    read_file("/sys/fs/cgroup/cgroup.controllers", controllers, sizeof controllers);
    for (int i = 0; i < SHIM_CGROUPS_MAX; i++)
        if (!has_word(controllers, controller_names[i]))
            return false;
    struct cgroup_host *host = &launcher->cgroup;
    host->directory[0] = make_parent("/sys/fs/cgroup", launcher->cgroup_parent, "+memory +pids +cpu");
    host->version = host->directory[0] ? 2 : 0;
    return host->version == 2;
}

/* Reads a hierarchy from a line of /proc/self/mounts: "cgroup /sys/fs/cgroup/memory cgroup rw,...,memory 0
 * 0". */
static void probe_v1_mount(struct launcher *launcher, const char *line)
{
    char mount[LAUNCH_PATH_MAX], type[32], options[512];
    if (sscanf(line, "%*s %511s %31s %511s", mount, type, options) != 3 || strcmp(type, "cgroup") != 0)
        return;
    for (int i = 0; i < SHIM_CGROUPS_MAX; i++)
        if (!launcher->cgroup.directory[i] && has_word(options, controller_names[i]))
            launcher->cgroup.directory[i] = make_parent(mount, launcher->cgroup_parent, NULL);
}

static void probe_v1(struct launcher *launcher)
{
    static char mounts[65536];
    read_file("/proc/self/mounts", mounts, sizeof mounts);
    for (char *line = mounts; *line;) {
        size_t len = strcspn(line, "\n");
        char *next = line + len + (line[len] == '\n');
        line[len] = 0;
        probe_v1_mount(launcher, line);
        line = next;
    }
    for (int i = 0; i < SHIM_CGROUPS_MAX; i++)
        if (launcher->cgroup.directory[i])
            launcher->cgroup.version = 1;
}

void cgroups_probe(struct launcher *launcher)
{
    struct cgroup_host *host = &launcher->cgroup;
    if (host->probed)
        return;
    host->probed = true;
    if (!probe_v2(launcher))
        probe_v1(launcher);
    if (host->version == 0)
        snprintf(host->text, sizeof host->text, "no cgroups");
    else if (host->version == 2)
        snprintf(host->text, sizeof host->text, "cgroup v2");
    else
        snprintf(host->text, sizeof host->text, "cgroup v1 (%s%s%s)", host->directory[0] ? "memory " : "",
                 host->directory[1] ? "pids " : "", host->directory[2] ? "cpu" : "");
}

void cgroups_done(struct launcher *launcher)
{
    for (int i = 0; i < SHIM_CGROUPS_MAX; i++)
        mem_free(launcher->cgroup.directory[i]);
}

int cgroups_for(struct launcher *launcher, const struct launch_spec *spec,
                struct buf ret_directory[SHIM_CGROUPS_MAX], bool *ret_unenforced)
{
    const uint64_t limits[SHIM_CGROUPS_MAX] = {spec->memory_limit_bytes, spec->pids_limit,
                                               spec->cpu_limit_milli};
    bool limited = limits[0] || limits[1] || limits[2];
    bool always = launcher->cgroups == LAUNCH_CGROUPS_ALWAYS;
    *ret_unenforced = limited;
    if (launcher->cgroups == LAUNCH_CGROUPS_NEVER || !(limited || always))
        return 0;
    *ret_unenforced = false;
    cgroups_probe(launcher);
    struct cgroup_host *host = &launcher->cgroup;
    int version = 0;
    for (int i = 0; i < (host->version == 2 ? 1 : SHIM_CGROUPS_MAX); i++) {
        *ret_unenforced |= !host->directory[i] && limits[i];
        if (!host->directory[i] || (host->version == 1 && !limits[i] && !always))
            continue;
        /* Several machines on one computer differ in their directories. */
        buf_printf(&ret_directory[i], "%s/%016llx-" UID_FORMAT, host->directory[i],
                   (unsigned long long)shim_checksum(launcher->directory, strlen(launcher->directory)),
                   UID_ARG(spec->uid));
        version = host->version;
    }
    return version;
}
