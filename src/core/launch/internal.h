/* internal.h - private to launch/: the environment of a container, made of our variables (env.c) and the
 * user's (containers.c). */
#ifndef PHX_CORE_LAUNCH_INTERNAL_H
#define PHX_CORE_LAUNCH_INTERNAL_H

#include "core/gang/config.h"
#include "core/job/facts.h"
#include "core/job/folder.h"
#include "core/launch/launch.h"
#include "core/object/object.h"

enum { ENV_VALUE_MAX = 120 * 1024 }; /* below the kernel's MAX_ARG_STRLEN of 128 KiB */
_Static_assert(ENV_VALUE_MAX + NAME_MAX_BYTES < 128 * 1024, "a variable with its name is below it too");

/* The index of a task among those of its machine, and of its machine among the machines, both in order of
 * rank. */
struct launch_place {
    uint32_t local_rank, local_world, node_rank;
};

typedef VEC(struct env_var) env_list;
enum { ENV_USUAL = 40 }; /* usual number of a task's variables, for which a list is reserved */

/* env.c */
/* Sets the variable, replacing one of the same name. The strings are not copied. */
void env_set(env_list *env, struct str name, struct str value);
/* Returns the text with Kubernetes' $(VAR) references replaced, in `arena`. */
struct str env_expand(struct str text, const env_list *env, struct arena *arena);
/* Returns the value of a fieldRef: "metadata.labels['a']", "status.podIP"; for files "metadata.labels". */
struct str launch_field(const struct task *task, const struct machine *machine, struct str path,
                        struct arena *arena);
/* Adds the variables that every task gets from us; the list must be empty. */
void env_ours(env_list *env, struct arena *arena, const struct task *task, const struct cluster *cluster,
              const struct launch_common *common);

/* containers.c */
/* Adds the container's own variables, which replace ours of the same name. */
void env_user(env_list *env, const struct launch_common *common, const struct task *task,
              const struct machine *machine, const struct container_spec *container, struct arena *arena);
/* Adds the containers and volumes of a pod that is more than one plain process to `launch`. */
void launch_containers(const struct launch_common *common, const struct task *task,
                       const struct cluster *cluster, struct arena *arena, struct task_launch *launch);

#endif
