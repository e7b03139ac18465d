/* user.c - the user that a task runs as, on an agent that runs as root.
 *
 * A namespace owns a range of user ids: the one that its Namespace's annotation names, which the controller
 * sends with the launch, or else a slice of the agent's own range that follows from the namespace's name
 * alone, so that every machine chooses the same. A task runs as the first id of the range; runAsUser and
 * runAsGroup may name another one in it. The first id is also a group of every task of the namespace: claims
 * belong to that group.
 *
 * Two names share a slice with a probability of SLICE_IDS / (ids in the agent's range).
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "host/agent/internal.h"

enum { SLICE_IDS = 100, RANGE_FROM = 200000 };
#define RANGE_TO INT64_C(2147483647) /* some programs take a larger id for a negative number */
#define ID_MAX   (INT64_C(4294967295) - 1)

/* --- the option ------------------------------------------------------------------------------------- */

static int from_name(const char *name, struct task_users *ret, struct error *error)
{
    errno = 0;
    const struct passwd *user = getpwnam(name);
    if (!user)
        return error_set(
            error, ERROR_INVALID,
            "--task-user \"%s\": there is no such user here; expected a name, a number, or a range "
            "such as 200000-299999",
            name);
    ret->from = ret->to = user->pw_uid;
    ret->group = user->pw_gid;
    ret->fixed = true;
    return 0;
}

static int parse(const char *text, struct task_users *ret, struct error *error)
{
    struct str from, to;
    bool range = str_cut(str_from(text), '-', &from, &to);
    if (!str_to_i64(range ? from : str_from(text), 0, ID_MAX, &ret->from))
        return from_name(text, ret, error);
    ret->to = ret->from;
    if (range && (!str_to_i64(to, 0, ID_MAX, &ret->to) || ret->to < ret->from))
        return error_set(error, ERROR_INVALID, "--task-user \"%s\": expected FROM-TO, two numbers in order",
                         text);
    ret->group = ret->from;
    ret->fixed = !range;
    return 0;
}

int local_users_init(struct live *live, const struct agent_host_options *options, struct error *error)
{
    struct task_users *users = &live->users;
    *users = (struct task_users){.from = RANGE_FROM, .to = RANGE_TO, .allow_root = options->allow_root_tasks};
    if (geteuid() != 0 && options->task_user)
        return error_set(
            error, ERROR_INVALID,
            "--task-user: this agent is not root, so its tasks run as its own user %u: leave the "
            "option out, or start the agent as root",
            (unsigned)geteuid());
    if (geteuid() != 0)
        return 0;
    users->choose = true;
    users->as_agent = options->allow_root_tasks && !options->task_user;
    int rc = options->task_user ? parse(options->task_user, users, error) : 0;
    if (rc == 0 && users->from == 0 && !users->allow_root)
        rc = error_set(error, ERROR_INVALID,
                       "--task-user \"%s\" has tasks run as root: choose another user, or add "
                       "--allow-root-tasks",
                       options->task_user);
    return rc;
}

/* --- one task's ------------------------------------------------------------------------------------- */

struct id_range {
    int64_t from, to, group;
};

static struct id_range range_of(const struct task_users *users, const struct task_launch *launch)
{
    if (launch->uid_count > 0)
        return (struct id_range){launch->uid_from, (int64_t)launch->uid_from + launch->uid_count - 1,
                                 launch->uid_from};
    int64_t slices = (users->to - users->from + 1) / SLICE_IDS;
    if (users->fixed || slices <= 1)
        return (struct id_range){users->from, users->to, users->fixed ? users->group : users->from};
    uint64_t slice = hash64(0, launch->namespace_.data, launch->namespace_.len) % (uint64_t)slices;
    int64_t from = users->from + (int64_t)slice * SLICE_IDS;
    return (struct id_range){from, from + SLICE_IDS - 1, from};
}

static int refuse(const struct task_launch *launch, const char *field, int64_t id, struct id_range range,
                  struct error *error)
{
    return error_set(error, ERROR_DENIED,
                     "%s: %lld is not among the ids %lld-%lld of namespace " STR_FORMAT
                     " on this machine: leave it out, or have the Namespace annotated with "
                     "phalanx.dev/uid-range",
                     field, (long long)id, (long long)range.from, (long long)range.to,
                     STR_ARG(launch->namespace_));
}

static int choose(const struct task_users *users, const struct task_launch *launch, struct id_range range,
                  int64_t *user, int64_t *group, struct error *error)
{
    if (users->as_agent) {
        *user = *user >= 0 ? *user : 0;
        *group = *group >= 0 ? *group : (int64_t)getegid();
        return 0;
    }
    bool own_group = *group < 0;
    if (*user >= 0 && (*user < range.from || *user > range.to) && !users->allow_root)
        return refuse(launch, "runAsUser", *user, range, error);
    if (!own_group && (*group < range.from || *group > range.to) && *group != range.group &&
        !users->allow_root)
        return refuse(launch, "runAsGroup", *group, range, error);
    *user = *user >= 0 ? *user : range.from;
    *group = own_group ? range.group : *group;
    if (*user == 0 && !users->allow_root)
        return error_set(error, ERROR_DENIED,
                         "runAsUser: this machine runs no tasks as root (phalanx agent --allow-root-tasks)");
    return 0;
}

/* Checks that no group is outside the namespace's, which could open another tenant's files, or the
 * machine's. */
static int check_groups(const struct task_users *users, const struct task_launch *launch,
                        const struct container_launch *container, struct id_range range, struct error *error)
{
    for (size_t i = 0; i < container->security.group_count && !users->allow_root; i++) {
        int64_t group = container->security.groups[i];
        if ((group < range.from || group > range.to) && group != range.group)
            return refuse(launch, "supplementalGroups or fsGroup", group, range, error);
    }
    return 0;
}

int local_users_apply(const struct live *live, struct arena *arena, struct task_launch *launch,
                      struct error *error)
{
    const struct task_users *users = &live->users;
    if (!users->choose)
        return 0;
    struct id_range range = range_of(users, launch);
    int rc = choose(users, launch, range, &launch->run_as_user, &launch->run_as_group, error);
    struct container_launch *containers =
        ARENA_ARRAY(arena, struct container_launch, launch->container_count);
    for (size_t i = 0; i < launch->container_count && rc == 0; i++) {
        containers[i] = launch->containers[i];
        rc = choose(users, launch, range, &containers[i].run_as_user, &containers[i].run_as_group, error);
        if (rc == 0)
            rc = check_groups(users, launch, &containers[i], range, error);
    }
    launch->containers = containers;
    return rc;
}

uint32_t local_user_of(const struct container_launch *container)
{
    return container->run_as_user >= 0 ? (uint32_t)container->run_as_user : geteuid();
}

uint32_t local_group_of(const struct container_launch *container)
{
    return container->run_as_group >= 0 ? (uint32_t)container->run_as_group : getegid();
}

int64_t local_users_group(const struct live *live, const struct task_launch *launch)
{
    return live->users.choose && !live->users.as_agent ? range_of(&live->users, launch).group : -1;
}
