/* launch_env.h - the environment of a container, shared by launch.c (our variables), launch_pod.c (the
 * user's) and config.c (those of ConfigMaps and Secrets). */
#ifndef PHX_CORE_JOB_LAUNCH_ENV_H
#define PHX_CORE_JOB_LAUNCH_ENV_H

#include "core/job/internal.h"

typedef VEC(struct env_var) env_list;

/* launch.c */
void env_set(env_list *env, struct str name, struct str value);
struct str env_expand(struct str text, const env_list *env, struct arena *arena); /* $(VAR) */
/* Returns the value of a fieldRef: "metadata.labels['a']", "status.podIP"; also "metadata.labels", for
 * files. */
struct str launch_field(const struct task *task, const struct machine *machine, struct str path,
                        struct arena *arena);
void env_ours(env_list *env, struct arena *arena, const struct task *task, const struct cluster *cluster,
              const struct launch_common *common);

/* launch_pod.c */
void env_user(env_list *env, const struct launch_common *common, const struct task *task,
              const struct machine *machine, const struct container_spec *container, struct arena *arena);
/* Builds the containers and volumes of a pod that is more than one plain process. */
void launch_containers(const struct launch_common *common, const struct task *task,
                       const struct cluster *cluster, struct arena *arena, struct task_launch *launch);
/* Whether its process may be started as one that is never run again in its pod. */
bool launch_is_plain(const struct task *task);

/* config.c */
struct config_value {
    struct str key, value;
};
/* Returns all of an object's values, decoded, in `arena`; NULL with *ret_count 0: the object does not
 * exist. */
struct config_value *config_values(const struct object_store *objects, bool secret, struct str namespace_,
                                   struct str name, struct arena *arena, size_t *ret_count);
const struct config_value *config_find(const struct config_value *values, size_t count, struct str key);
/* Whether all ConfigMaps and Secrets that the task's pod needs exist; otherwise `why` names the missing
 * one. */
bool config_ready(const struct object_store *objects, const struct task *task, struct buf *why);

#endif
