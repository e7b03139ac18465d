/* launch.h - from a task that was placed to the message that starts it: its environment, its gang's rank
 * table, the files of its volumes.
 *
 * Everything is read from the core between two events and nothing is changed. Not thread-safe.
 */
#ifndef PHX_CORE_LAUNCH_LAUNCH_H
#define PHX_CORE_LAUNCH_LAUNCH_H

#include "core/agent/rank_table.h"
#include "core/job/job.h"

/* Builds what the agent needs to start the task; everything lives in `arena` or in the core. `machines`
 * resolves names. */
void task_launch_build(const struct task *task, const struct cluster *cluster, struct arena *arena,
                       struct task_launch *ret_launch);
/* The same for many tasks between two events: the common parts of a gang's starts are made with the first
 * of them. The caller provides an arena and zeroes the rest; launches point into that arena too. Invalid
 * after the next event, which may move tasks. */
struct launch_common {
    struct arena *arena;
    int64_t machine_mttf_s;             /* see machine_mttf_s(); 0: tasks are not told */
    const struct object_store *objects; /* for ConfigMaps and Secrets; NULL: none */
    const struct jobset *jobset;
    struct str group;
    uint32_t world; /* number of ranks that the table was made for */
    struct gang_rank_table rank_table;
    struct launch_place *places; /* entries of the rank table */
    uint32_t nodes;
    struct str hostnames; /* "a.sub,b.sub,..." */
    struct str folder, checkpoints; /* of its checkpoints, in checkpointDir; its path */
    int64_t mttf_s;       /* of the JobSet; 0: not known */
};
void task_launch_build_next(struct launch_common *common, const struct task *task,
                            const struct cluster *cluster, struct arena *arena,
                            struct task_launch *ret_launch);
/* Builds what its living process needs to go on in the task's attempt; everything lives in `arena` or in
 * the core. */
void task_rejoin_build(const struct task *task, const struct cluster *cluster, struct arena *arena,
                       struct task_rejoin *ret_rejoin);

/* --- mttf.c --- */

struct lemon_store;
/* Returns the expected seconds to the next failure of one machine of the cluster, which is `age_s` old
 * (mttf.c). */
int64_t machine_mttf_s(const struct cluster *cluster, const struct lemon_store *lemons, int64_t age_s);
/* Returns the same for a JobSet on the machines that its ranks hold now, each of which fails once in
 * `machine_s` on average: at least 1; 0: it holds none. */
int64_t jobset_mttf_s(const struct jobset *jobset, int64_t machine_s);

#endif
