/* ask.h - questions to the ladder about losses (docs/recovery.md, ladder/ladder.h). decide.c, inplace.c,
 * inplace_begin.c, shrink.c and attempt.c ask.
 *
 *     struct recovery recovery =
 *         recovery_ask(step, jobset, (struct trouble){TROUBLE_LOSSES, .incident = &incident});
 *     if (recovery.rung != RUNG_REQUEUE)
 *         inplace_begin(step, jobset, task, &recovery);     // which calls recovery_begin()
 *
 * Asking is pure: it reads state and changes nothing, so it may be repeated. recovery_begin() counts the
 * decision and writes it into the newest restart record.
 */
#ifndef PHX_CORE_RECOVER_ASK_H
#define PHX_CORE_RECOVER_ASK_H

#include "core/job/job.h"
#include "core/ladder/incident.h"
#include "core/ladder/ladder.h"

struct recovery {
    enum rung rung;   /* RUNG_REQUEUE: the failure policy answers, also where the ladder does not apply */
    bool holds;       /* the ladder applies and was asked */
    bool counted;     /* the loss counts towards maxRestarts or backoffLimit: the process ended unasked */
    bool no_progress; /* the job is to be given up; `rung` is RUNG_REQUEUE */
    struct ladder_incident incident;
    struct ladder_decision decision;
};

/* The failure that the ladder decides about. */
struct trouble {
    enum trouble_kind {
        TROUBLE_LOSSES,     /* tasks have ended: all losses of a step, judged */
        TROUBLE_FAILED_JOB, /* a Job has failed, and its failure policy has yet to answer */
        TROUBLE_CUT_OFF,    /* no task has ended: ranks lost their connections, or one asks for a retry */
        TROUBLE_NOT_JOINED, /* no task has ended: some did not join the attempt in time */
        TROUBLE_PLACES,     /* places are missing at the end of the present rung's time */
        TROUBLE_NO_ROOM,    /* replicas find no machines: they may leave (RUNG_SHRINK) */
    } kind;
    const struct incident *incident; /* of TROUBLE_LOSSES */
    const struct job *failed;        /* of TROUBLE_FAILED_JOB */
};

/* Sets the cause, place, `again` and `runs_long` of the loss. `task` has ended, or is dead. */
void recovery_judge(const struct step *step, const struct task *task, struct loss *loss);
/* Returns the answer to the trouble. Linear in the JobSet's tasks. */
struct recovery recovery_ask(const struct step *step, const struct jobset *jobset, struct trouble trouble);
/* Begins the rung, once the restart record has begun. `same`: the loss belongs to the incident that is under
 * way, and is not counted again. Does nothing if the ladder was not asked, or gives the job up. */
void recovery_begin(struct step *step, struct jobset *jobset, const struct recovery *recovery, bool same);
/* Returns the text " (retry: a process was lost; ...)", or an empty one; in `arena`. */
struct str recovery_passed(const struct recovery *recovery, struct arena *arena);
/* Returns why the job is given up, for people; in `arena`. */
struct str recovery_give_up_text(const struct jobset *jobset, const struct recovery *recovery,
                                 struct arena *arena);

/* Returns whether every rank has joined, lives and can rejoin, so that all may repeat their step as another
 * attempt, though none is lost. */
bool recovery_may_retry(const struct jobset *jobset);
/* Returns whether that will be true once the kept ranks that are rejoining have joined. */
bool recovery_may_retry_soon(const struct jobset *jobset);

#endif
