/* recovery.h - how a loss is answered: what inplace.c, batch.c and attempt.c ask of the ladder
 * (docs/recovery.md, recovery/ladder.h).
 *
 *     struct recovery recovery = recovery_decide(step, task, end);
 *     if (recovery.rung != RUNG_REQUEUE)
 *         inplace_begin(step, jobset, task, &recovery);     // which says recovery_begin()
 *
 * Deciding is pure: state is read and nothing is changed, so it may be asked as often as one likes.
 * recovery_begin() counts what was decided and writes it into the newest restart record.
 */
#ifndef PHX_CORE_JOB_RECOVERY_H
#define PHX_CORE_JOB_RECOVERY_H

#include "core/job/job.h"
#include "core/recovery/ladder.h"

struct recovery {
    enum rung rung;   /* RUNG_REQUEUE: the failure policy, also where the ladder does not hold */
    bool holds;       /* the ladder was asked */
    bool counted;     /* it counts towards maxRestarts or backoffLimit: the process ended by itself */
    bool no_progress; /* the job is to be given up; `rung` is RUNG_REQUEUE */
    struct ladder_incident incident;
    struct ladder_decision decision;
};

/* `culprit` ends by `end`, or has ended so; its exit fields are set. Looks at every task of its JobSet: once
 * for each loss. */
struct recovery recovery_decide(const struct step *step, const struct task *culprit, enum task_end end);
/* Its Job has failed, and its failure policy is about to answer that. */
struct recovery recovery_of_failure(const struct step *step, const struct job *failed);
/* No task has ended. `all_live`: they lost each other; else some did not join the attempt in time. */
struct recovery recovery_without_loss(const struct step *step, const struct jobset *jobset, bool all_live);
/* Places are missing at the end of the rung's time: the next rung. */
struct recovery recovery_of_missing(const struct step *step, const struct jobset *jobset);
/* There is no room for some replicas: may they leave (RUNG_SHRINK)? */
struct recovery recovery_of_no_room(const struct step *step, const struct jobset *jobset);
/* It is done: the restart record of it has begun. `same`: of the incident that is under way. */
void recovery_begin(struct step *step, struct jobset *jobset, const struct recovery *recovery, bool same);
/* " (retry: a process was lost; ...)", or nothing. */
struct str recovery_passed(const struct recovery *recovery, struct arena *arena);
/* How long the rung under way may take. */
int64_t recovery_limit_ns(const struct jobset *jobset);
/* Why the job is given up, for people. */
struct str recovery_give_up_text(const struct jobset *jobset, const struct recovery *recovery,
                                 struct arena *arena);

/* Every rank has joined, lives and can rejoin: may they make their step again as another attempt, though
 * none is lost? */
bool recovery_may_retry(const struct jobset *jobset);
/* The same when those join that have not yet. */
bool recovery_may_retry_soon(const struct jobset *jobset);

/* Its process lives and goes on under the next attempt: it runs, has joined (or is about to join again), and
 * said that it can rejoin. */
bool recovery_keeps(const struct task *task);

#endif
