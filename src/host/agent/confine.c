/* confine.c - what a task may do and see, beyond the limits of its user.
 *
 * Privileges: the capability bounding set is what container runtimes give by default, with what the container
 * adds and drops; no program gains new privileges, unless allowPrivilegeEscalation or privileged is set.
 *
 * Calls: system calls that container runtimes block by default are blocked (shim/seccomp.c), except with
 * --seccomp off, privileged or a seccompProfile of type Unconfined.
 *
 * Sight: in the task's mount namespace an empty folder covers the agent's state, the folder of claims, and
 * the paths of --hide; the task's own folders are mounted in it again. A folder above them that the task's
 * user may not pass through (/root) is covered too, so that mounts below it can be reached.
 *
 * If the machine allows no mount namespace, tasks run without one, which the agent notes once, unless
 * --isolation=require was given. A task that then cannot reach its own folder does not start.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/agent/internal.h"
#include "os/file.h"
#include "os/namespace.h"

enum { COVERS_MAX = 24, CAP_SYS_ADMIN_BIT = 21 };

/* CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, NET_RAW, SYS_CHROOT,
 * MKNOD, AUDIT_WRITE, SETFCAP */
#define CAPABILITIES_DEFAULT UINT64_C(0xa80425fb)

/* --- what stays hidden ------------------------------------------------------------------------------ */

static void hide(struct live *live, const char *path)
{
    char *real = path && path[0] ? realpath(path, NULL) : NULL;
    if (path && path[0] && !real) /* it may be made later */
        real = strdup(path);
    if (real)
        vec_push(&live->hidden, real);
}

void local_confine_init(struct live *live, const struct agent_host_options *options)
{
    live->seccomp = !options->seccomp_off && prctl(PR_GET_SECCOMP) >= 0;
    live->isolation_off = options->isolation_off;
    live->isolation_required = options->isolation_required;
    live->mounts_refused = options->isolation_off || geteuid() != 0 ? 0 : os_mounts_refused();
    for (size_t i = 0; i < options->hidden_count; i++)
        hide(live, options->hidden[i]);
    hide(live, options->tls_key);
    hide(live, live->volumes_dir);
    hide(live, live->directory);
}

void local_confine_done(struct live *live)
{
    for (size_t i = 0; i < live->hidden.len; i++)
        free(live->hidden.items[i]);
    vec_done(&live->hidden);
}

/* --- mounts ----------------------------------------------------------------------------------------- */

struct cover {
    struct arena *arena;
    struct launch_spec *spec;
    struct launch_mount *mounts; /* with space for COVERS_MAX more */
    size_t count;
    const char *empty; /* a folder without files */
    bool optional;
};

static bool has_target(const struct cover *cover, const char *target, bool hidden)
{
    for (size_t i = 0; i < cover->count; i++)
        if (cover->mounts[i].hidden == hidden && strcmp(cover->mounts[i].target, target) == 0)
            return true;
    return false;
}

static void add(struct cover *cover, const struct launch_mount *mount)
{
    if (cover->count < cover->spec->mount_count + COVERS_MAX &&
        !has_target(cover, mount->target, mount->hidden))
        cover->mounts[cover->count++] = *mount;
}

/* Returns whether the path is closed to the task's user by its mode, or covered with a folder above it. */
static bool is_closed(const struct cover *cover, const char *path, const struct stat *info)
{
    bool other = cover->spec->set_user && info->st_uid != cover->spec->user_id;
    for (size_t i = 0; i < cover->count; i++)
        if (cover->mounts[i].hidden && os_path_is_below(path, cover->mounts[i].target))
            return true;
    return other && !(info->st_mode & (S_IROTH | S_IXOTH)) &&
           (info->st_gid != cover->spec->group_id || !(info->st_mode & S_IRWXG));
}

/* Covers a file with the null device, or a folder with an empty one. */
static void cover_path(struct cover *cover, const char *path)
{
    struct stat info;
    if (stat(path, &info) < 0 || is_closed(cover, path, &info))
        return;
    bool folder = S_ISDIR(info.st_mode);
    add(cover, &(struct launch_mount){.source = folder ? cover->empty : "/dev/null",
                                      .target = path,
                                      .hidden = folder,
                                      .is_file = !folder,
                                      .optional = cover->optional});
}

/* Returns the uppermost folder above `path` that the task's user cannot pass through, or NULL if there is
 * none. */
static const char *find_barrier(struct arena *arena, const struct launch_spec *spec, const char *path)
{
    char barrier[PATH_MAX];
    bool found = os_path_barrier(path, spec->user_id, spec->group_id, barrier);
    return found ? arena_strdup(arena, str_from(barrier)) : NULL;
}

/* Keeps a folder that the task needs visible and reachable. */
static void keep_needed(struct cover *cover, const struct live *live, const char *path)
{
    const struct launch_spec *spec = cover->spec;
    const char *barrier = path && spec->set_user ? find_barrier(cover->arena, spec, path) : NULL;
    bool covered = false;
    if (!path || path[0] != '/')
        return;
    if (barrier)
        add(cover, &(struct launch_mount){.source = cover->empty, .target = barrier, .hidden = true});
    for (size_t i = 0; i < live->hidden.len && !covered; i++)
        covered = os_path_is_below(path, live->hidden.items[i]);
    if (barrier || covered)
        add(cover,
            &(struct launch_mount){.source = path, .target = path, .optional = !barrier && cover->optional});
}

static const char *folder_of(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash > path ? arena_printf(arena, "%.*s", (int)(slash - path), path).data : path;
}

static const char *value_of(const struct launch_spec *spec, const char *name)
{
    size_t len = strlen(name);
    for (const char *const *env = spec->env; env && *env; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    return NULL;
}

static void add_needed(struct cover *cover, struct live *live, const struct task_launch *launch)
{
    struct arena *arena = cover->arena;
    struct launch_spec *spec = cover->spec;
    char self[PATH_BYTES];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    unsigned long long uid = spec->uid;
    keep_needed(cover, live, arena_printf(arena, "%s/tasks/%llu", live->directory, uid).data);
    if (os_path_is_below(spec->directory, live->directory))
        keep_needed(cover, live, spec->directory);
    const char *socket = value_of(spec, "PHX_AGENT_SOCKET"), *memory = value_of(spec, "PHX_MEMORY_DIR");
    if (socket && os_path_is_below(socket, live->directory))
        keep_needed(cover, live, folder_of(arena, socket));
    if (live->memory_dir && memory && os_path_is_below(memory, live->memory_dir))
        keep_needed(cover, live, live->memory_dir);
    const char *checkpoints = arena_strdup(arena, launch->checkpoint_dir);
    if (access(checkpoints, F_OK) == 0) /* root's tasks make the folder at their first checkpoint */
        keep_needed(cover, live, checkpoints);
    if (len > 0 && spec->set_user) { /* programs beside the agent's, such as the examples' */
        self[len] = 0;
        if (find_barrier(arena, spec, self))
            keep_needed(cover, live, folder_of(arena, arena_strdup(arena, str_from(self))));
    }
}

static void cover_all(struct live *live, const struct task_launch *launch, struct arena *arena,
                      struct launch_spec *spec)
{
    struct cover cover = {.arena = arena, .spec = spec, .optional = !live->isolation_required};
    cover.empty = arena_printf(arena, "%s/empty", live->directory).data;
    cover.mounts = ARENA_ARRAY(arena, struct launch_mount, spec->mount_count + COVERS_MAX);
    cover.count = spec->mount_count;
    mem_copy(cover.mounts, spec->mounts, cover.count * sizeof *cover.mounts);
    for (size_t i = 0; i < live->hidden.len; i++)
        cover_path(&cover, live->hidden.items[i]);
    add_needed(&cover, live, launch);
    spec->mounts = cover.mounts;
    spec->mount_count = cover.count;
}

/* Without mounts, checks that the task's user can pass through the folders above its own. */
static int check_reach(const struct live *live, struct arena *arena, const struct launch_spec *spec,
                       struct error *error)
{
    const char *barrier = spec->set_user ? find_barrier(arena, spec, spec->directory) : NULL;
    if (!barrier)
        return 0;
    return error_set(
        error, ERROR_DENIED,
        "user %u may not pass through \"%s\" to the task's folder \"%s\", and %s (%s): keep the "
        "agent's --state elsewhere%s",
        spec->user_id, barrier, spec->directory,
        live->isolation_off ? "tasks see the machine as it is" : "this machine allows no mount namespace",
        live->isolation_off ? "--isolation=off" : strerror(live->mounts_refused),
        live->users.as_agent ? ", or leave runAsUser out" : ", or start the agent with --allow-root-tasks");
}

static void keep_writable(struct cover *cover, const char *path)
{
    if (path && path[0] == '/' && access(path, F_OK) == 0)
        add(cover, &(struct launch_mount){.source = path, .target = path});
}

/* With a read-only root file system: mounts folders that the task must write to over themselves. */
static void add_writable(const struct live *live, const struct task_launch *launch, struct arena *arena,
                         struct launch_spec *spec)
{
    struct cover cover = {.arena = arena, .spec = spec};
    unsigned long long uid = spec->uid;
    cover.mounts = ARENA_ARRAY(arena, struct launch_mount, spec->mount_count + COVERS_MAX);
    cover.count = spec->mount_count;
    mem_copy(cover.mounts, spec->mounts, cover.count * sizeof *cover.mounts);
    keep_writable(&cover, arena_printf(arena, "%s/tasks/%llu", live->directory, uid).data);
    if (spec->directory && os_path_is_below(spec->directory, live->directory))
        keep_writable(&cover, spec->directory);
    keep_writable(&cover, value_of(spec, "PHX_MEMORY_DIR"));
    if (launch->checkpoint_dir.len > 0)
        keep_writable(&cover, arena_strdup(arena, launch->checkpoint_dir));
    spec->mounts = cover.mounts;
    spec->mount_count = cover.count;
}

/* --- privileges ------------------------------------------------------------------------------------- */

static int check_user(const struct live *live, const struct container_launch *container,
                      const struct launch_spec *spec, struct error *error)
{
    const struct container_security *security = &container->security;
    if (security->non_root && spec->user_id == 0)
        return error_set(error, ERROR_DENIED, "container has runAsNonRoot and %s",
                         container->run_as_user == 0 ? "runs as root" : "image will run as root");
    if (security->privileged && !(live->users.choose && live->users.allow_root))
        return error_set(
            error, ERROR_DENIED,
            "securityContext.privileged: this machine runs no privileged containers (phalanx agent "
            "--allow-root-tasks)");
    return 0;
}

int local_confine(struct live *live, const struct task_launch *launch,
                  const struct container_launch *container, struct arena *arena, struct launch_spec *spec,
                  struct error *error)
{
    const struct container_security *security = &container->security;
    int rc = check_user(live, container, spec, error);
    if (rc < 0)
        return rc;
    int64_t shared = local_users_group(live, launch);
    uint32_t *groups = ARENA_ARRAY(arena, uint32_t, security->group_count + 1);
    mem_copy(groups, security->groups, security->group_count * sizeof *groups);
    spec->groups = groups;
    spec->group_count = security->group_count;
    spec->set_user |= spec->group_count > 0;
    if (shared >= 0)
        groups[spec->group_count++] = (uint32_t)shared;
    spec->bound = !security->privileged;
    spec->capabilities = security->dropped == UINT64_MAX
                             ? security->added
                             : (CAPABILITIES_DEFAULT | security->added) & ~security->dropped;
    spec->no_new_privileges = !security->privileged && !security->escalation;
    /* The kernel lets a user other than root filter itself only if it cannot gain privileges. */
    spec->filtered = live->seccomp && !security->privileged && !security->unconfined &&
                     (spec->no_new_privileges || geteuid() == 0);
    spec->read_only_root = security->read_only_root;
    if (live->isolation_off || (live->mounts_refused && !live->isolation_required))
        rc = check_reach(live, arena, spec, error);
    else
        cover_all(live, launch, arena, spec);
    if (rc == 0 && spec->read_only_root)
        add_writable(live, launch, arena, spec);
    return rc;
}
