/* launch.h - the message that starts a placed task: its environment, its gang's rank table, the files of its
 * volumes.
 *
 * These functions read the core between two events and change nothing. Not thread-safe.
 */
#ifndef PHX_CORE_LAUNCH_LAUNCH_H
#define PHX_CORE_LAUNCH_LAUNCH_H

#include "core/agent/rank_table.h"
#include "core/job/job.h"

/* Builds the message with which the agent starts the task, which must be told to start. The message lives in
 * `arena` or in the core. */
void task_launch_build(const struct task *task, const struct cluster *cluster, struct arena *arena,
                       struct task_launch *ret_launch);
/* The common parts of a gang's messages. task_launch_build_next makes them with the first task, so that many
 * tasks can be built between two events. The caller sets the first three fields and zeroes the rest. Messages
 * point into `arena` too. Invalid after the next event, which may move tasks. */
struct launch_common {
    struct arena *arena;
    int64_t machine_mttf_s;             /* from machine_mttf_s(); 0: messages have no MTTF */
    const struct object_store *objects; /* for ConfigMaps and Secrets; NULL: none */
    const struct jobset *jobset;
    struct str group;
    uint32_t world; /* number of ranks for which the table was made */
    struct gang_rank_table rank_table;
    struct launch_place *places; /* [rank_table.count] */
    uint32_t nodes;              /* number of machines in the rank table */
    struct str hostnames; /* "a.sub,b.sub,..." */
    /* name of the JobSet's checkpoint folder; path of the group's checkpoints */
    struct str folder, checkpoints;
    int64_t mttf_s;       /* of the JobSet; 0: not known */
};
void task_launch_build_next(struct launch_common *common, const struct task *task,
                            const struct cluster *cluster, struct arena *arena,
                            struct task_launch *ret_launch);
/* Builds the message with which the task's living process joins the task's attempt. The message lives in
 * `arena` or in the core. */
void task_rejoin_build(const struct task *task, const struct cluster *cluster, struct arena *arena,
                       struct task_rejoin *ret_rejoin);

/* --- mttf.c --- */

struct lemon_store;
/* Returns the expected seconds to the next failure of one machine of the cluster, which is `age_s` seconds
 * old. mttf.c has the formula. */
int64_t machine_mttf_s(const struct cluster *cluster, const struct lemon_store *lemons, int64_t age_s);
/* Returns the expected seconds to the next failure of any of the machines on which the JobSet's ranks are, if
 * each fails once in `machine_s` on average: at least 1, or 0 if it has no machine. */
int64_t jobset_mttf_s(const struct jobset *jobset, int64_t machine_s);

#endif
