/* ask.h - the answer to losses: the questions of decide.c, inplace.c and attempt.c to the ladder
 * (docs/recovery.md, ladder/ladder.h).
 *
 *     struct recovery recovery = recovery_decide(step, jobset, &incident);
 *     if (recovery.rung != RUNG_REQUEUE)
 *         inplace_begin(step, jobset, task, &recovery);     // which calls recovery_begin()
 *
 * Deciding is pure: it reads state and changes nothing, so it may be repeated. recovery_begin() counts the
 * decision and writes it into the newest restart record.
 */
#ifndef PHX_CORE_RECOVER_ASK_H
#define PHX_CORE_RECOVER_ASK_H

#include "core/job/job.h"
#include "core/ladder/incident.h"
#include "core/ladder/ladder.h"

struct recovery {
    enum rung rung;   /* RUNG_REQUEUE: the failure policy answers, also where the ladder does not apply */
    bool holds;       /* the ladder was asked */
    bool counted;     /* the loss counts towards maxRestarts or backoffLimit: the process ended by itself */
    bool no_progress; /* the job is to be given up; `rung` is RUNG_REQUEUE */
    struct ladder_incident incident;
    struct ladder_decision decision;
};

/* Fills in what the ladder wants to know of the loss: cause, place, count. `task` has ended, or is dead. */
void recovery_judge(const struct step *step, const struct task *task, struct loss *loss);
/* Decides for all losses of a step, which are judged. Visits every task of the JobSet, once. */
struct recovery recovery_decide(const struct step *step, const struct jobset *jobset,
                                const struct incident *incident);
/* Decides for a Job that has failed, before its failure policy answers. */
struct recovery recovery_of_failure(const struct step *step, const struct job *failed);
/* Decides if no task has ended. `all_live`: the ranks lost their connections; else some did not join the
 * attempt in time. */
struct recovery recovery_without_loss(const struct step *step, const struct jobset *jobset, bool all_live);
/* Returns the next rung, if places are missing at the end of the present rung's time. */
struct recovery recovery_of_missing(const struct step *step, const struct jobset *jobset);
/* Decides whether replicas without room may leave (RUNG_SHRINK). */
struct recovery recovery_of_no_room(const struct step *step, const struct jobset *jobset);
/* Takes the rung, once the restart record has begun. `same`: of the incident that is under way. */
void recovery_begin(struct step *step, struct jobset *jobset, const struct recovery *recovery, bool same);
/* Returns " (retry: a process was lost; ...)", or nothing. */
struct str recovery_passed(const struct recovery *recovery, struct arena *arena);
/* Returns why the job is given up, for people. */
struct str recovery_give_up_text(const struct jobset *jobset, const struct recovery *recovery,
                                 struct arena *arena);

/* Whether every rank has joined, lives and can rejoin, so that all may repeat their step as another
 * attempt, though none is lost. */
bool recovery_may_retry(const struct jobset *jobset);
/* The same, once the ranks join that have not yet. */
bool recovery_may_retry_soon(const struct jobset *jobset);

#endif
