/* ladder.h - the recovery ladder's policy: which rung answers a loss, for how long, how often, and when a
 * job is given up (docs/recovery.md).
 *
 *   settings.c  the users' settings: the annotations phalanx.dev/recovery, -limits, -budgets,
 *               no-progress-attempts and restart-backoff, and MindCluster's equivalents
 *   ladder.c    the choice of a rung; used budgets; attempts without progress and their back-off
 *   prefer.c    the comparison of two places for a rank that moves
 *
 * The caller keeps a `struct ladder` for each job and reports the job's events to it:
 *
 *     ladder_loss(&ladder, &incident);                       // an attempt ended: was there progress?
 *     ladder_decide(&ladder, &settings, &means, &incident, &decision);
 *     ladder_begin(&ladder, &incident, &decision);           // the rung is under way
 *     ...                                                    // either every rank makes its next step:
 *     ladder_stepped(&ladder, step);
 *     ...                                                    // or ladder.due_ns comes:
 *     incident.below = ladder.rung;                          // the next rung, of the same incident
 *
 * Pure: the caller passes stamps; only ladder_begin allocates (freed by ladder_done). The ladder knows no
 * jobs, machines or agents: the caller states in `struct ladder_means` whether a rung can be carried out.
 * One owner thread. Rungs and causes are part of snapshots: new ones get new numbers.
 */
#ifndef PHX_CORE_LADDER_LADDER_H
#define PHX_CORE_LADDER_LADDER_H

#include "base/error.h"
#include "base/units.h"
#include "base/vec.h"

/* The rungs, from the cheapest to the one that always works. */
enum rung {
    RUNG_NONE,
    RUNG_RETRY,           /* the ranks repeat the step in their processes */
    RUNG_RESTART_PROCESS, /* the process starts again on its machine; its peers wait in their processes */
    RUNG_REPLACE_MACHINE, /* the machine's ranks move; their peers wait in their processes */
    RUNG_SHRINK,          /* whole replicas leave */
    RUNG_DUMP,            /* survivors save their state, then all tasks run again */
    RUNG_REQUEUE,         /* the failure policy answers */
    RUNGS
};
const char *rung_name(enum rung rung); /* "restart-process"; RUNG_NONE: "none" */

/* Why an attempt ended. */
enum loss_cause {
    LOSS_NONE,
    LOSS_EXIT, /* a process ended unasked */
    LOSS_OUT_OF_MEMORY,
    LOSS_START_FAILED,
    LOSS_MACHINE, /* the machine was lost, with all its tasks */
    LOSS_FAULT,   /* a known fault of the task's machine */
    LOSS_EVICTED, /* the task's machine is drained, or others need its resources */
    LOSS_HANG,
    LOSS_SLOW, /* the task's machine is slow or otherwise unhealthy */
    LOSS_USER, /* a user deleted the task's Pod */
    LOSS_CAUSES
};
const char *loss_name(enum loss_cause cause); /* the cause's name in budgets: "machine-lost" */
/* Returns whether infrastructure, and not the job, caused the loss, which then never counts towards
 * maxRestarts. */
bool loss_is_infrastructure(enum loss_cause cause);

/* --- settings ------------------------------------------------------------------------------------------- */

enum {
    LADDER_BUDGET_MAX = 100,         /* the largest count of a budget */
    LADDER_USES_MAX = 128,           /* number of newest decisions that are kept and counted */
    LADDER_ATTEMPTS_MAX = 1000000,   /* the largest value of no-progress-attempts */
    LADDER_NO_PROGRESS_ATTEMPTS = 5, /* the default of no-progress-attempts */
    LADDER_WHY_MAX = 400,            /* bytes of `passed` and of one reason, with the NUL */
};
#define LADDER_LIMIT_MAX_NS  (INT64_C(24) * 3600 * NS_PER_SECOND)
#define LADDER_WINDOW_MAX_NS (INT64_C(30) * 24 * 3600 * NS_PER_SECOND)
/* The wait after consecutive attempts without a new step: the attempt after the second of them waits this
 * long before it begins, each later one twice as long, up to the limit. */
#define LADDER_BACKOFF_FIRST_NS (10 * NS_PER_SECOND)
#define LADDER_BACKOFF_MAX_NS   (300 * NS_PER_SECOND)
/* The wait after consecutive crashes without a new step, under the failure policy: the second crash is
 * followed by the first wait, each later one by a wait of twice the length, up to the limit. */
#define CRASH_BACKOFF_FIRST_NS (1 * NS_PER_SECOND)
#define CRASH_BACKOFF_MAX_NS   (300 * NS_PER_SECOND)
/* If a job's ranks report no steps, an attempt that ran this long counts as progress. */
#define LADDER_RUN_NS (600 * NS_PER_SECOND)

/* A limit on the number of uses within a time. */
struct ladder_budget {
    bool given; /* false: unlimited */
    uint32_t count;
    int64_t window_ns;
};
struct ladder_settings {
    bool given, off;         /* phalanx.dev/recovery is set; its value is "off" */
    bool allowed[RUNGS];     /* RUNG_REQUEUE is always allowed: it is the failure policy */
    int64_t limit_ns[RUNGS]; /* time limit of each rung; 0: none (RUNG_REQUEUE) */
    struct ladder_budget rungs[RUNGS], causes[LOSS_CAUSES];
    bool attempts_given;          /* no-progress-attempts is set */
    int64_t no_progress_attempts; /* attempts without progress after which a job is given up; 0: never */
    /* Waits of a workload that crashes repeatedly under its failure policy (recover/backoff.c); 0: none. */
    int64_t backoff_first_ns, backoff_max_ns;
};
void ladder_defaults(struct ladder_settings *ret);

/* The annotations of users: Phalanx's own in the order in which they apply, then MindCluster's. */
enum ladder_word {
    WORD_RECOVERY,                /* "retry,restart-process" or "off" */
    WORD_LIMITS,                  /* "RUNG=DURATION,..." */
    WORD_BUDGETS,                 /* "RUNG=COUNT/DURATION,...", or a cause's name in place of a rung's */
    WORD_ATTEMPTS,                /* a number */
    WORD_BACKOFF,                 /* "off", or "FIRST/MAX", two durations */
    LADDER_WORDS,                 /* number of our own, whose invalid values are refused */
    WORD_STRATEGY = LADDER_WORDS, /* recover-strategy: one or several of MindCluster's strategies */
    WORD_PROCESS_RECOVER,         /* process-recover-enable: on, pause, off */
    WORD_POD_RESCHEDULING,        /* pod-rescheduling: on, off */
    WORD_RETRY_TIMES,             /* fault-retry-times: number of business faults that are answered */
    LADDER_WORDS_ALL
};
extern const char *const ladder_keys[LADDER_WORDS_ALL]; /* of annotations; MindCluster's also of labels */
/* Applies one of our annotations to settings that hold the defaults (ladder_defaults). Returns false, sets
 * `error` and leaves the settings unchanged if the value is invalid. */
bool ladder_take(struct ladder_settings *settings, enum ladder_word word, struct str text,
                 struct error *error);
/* Applies MindCluster's annotations, all at once; an absent one has data NULL. Called before ours, which take
 * precedence. Ignores unknown or inapplicable values. */
void ladder_take_theirs(struct ladder_settings *settings, const struct str texts[LADDER_WORDS_ALL]);

/* --- deciding ------------------------------------------------------------------------------------------- */

/* A decision for a rung. */
struct ladder_use {
    int64_t at_ns;
    uint8_t rung, cause; /* enum rung, enum loss_cause */
    bool fell;           /* followed a rung of the same incident, so the cause is not counted again */
};
/* The ladder's memory of one job. It begins zeroed, with best_step -1. */
struct ladder {
    uint8_t rung, cause; /* under way: enum rung, enum loss_cause; RUNG_NONE: none */
    int64_t decided_ns;
    int64_t due_ns;              /* stamp at which the next rung follows; 0: never */
    int64_t wait_ns;             /* the attempt begins no earlier than this stamp; 0: at once */
    int64_t best_step;           /* highest step that all ranks have ever made; -1: none */
    bool progressed;             /* best_step has risen since the newest loss */
    int32_t stalled;             /* consecutive attempts that ended without progress */
    VEC(struct ladder_use) uses; /* the newest LADDER_USES_MAX uses, oldest first */
};
/* Why each rung cannot be carried out now, as the end of a sentence ("no spare is ready"); NULL: it can be.
 * Texts must live as long as the call. RUNG_REQUEUE's is ignored. */
struct ladder_means {
    const char *lacks[RUNGS];
};
/* Rules out all rungs but the last. */
void ladder_means_none(struct ladder_means *ret);

struct ladder_incident {
    enum loss_cause cause;
    enum rung below;     /* this rung and those above it did not help; RUNG_NONE: a new incident */
    bool again;          /* one more loss of the present incident, which is not counted again */
    bool place_is_bad;   /* the machine must not, or should not, be used again for this job */
    bool processes_live; /* no process was lost, so RUNG_RETRY may be enough */
    bool runs_long;      /* the ranks report no steps, and the ended attempt ran for LADDER_RUN_NS */
    int64_t now_ns;
};
struct ladder_decision {
    enum rung rung;
    bool no_progress; /* the job has to be given up; `rung` is RUNG_NONE */
    int64_t limit_ns; /* 0: none */
    int64_t wait_ns;  /* time for which the next attempt is held back; 0: none */
    /* Why finer rungs were passed over: "retry: a process was lost; restart-process: ..." */
    char passed[LADDER_WHY_MAX];
};

/* Called when a loss of a new incident ended an attempt: counts attempts without progress. Evictions, moves
 * and deletions do not count as such. */
void ladder_loss(struct ladder *ladder, const struct ladder_incident *incident);
/* Chooses the finest rung coarser than `incident->below` that is allowed, suits the cause, is within its
 * budgets and can be carried out. RUNG_REQUEUE is always possible. Sets no_progress instead if the job has to
 * be given up. Changes nothing but *ret. */
void ladder_decide(const struct ladder *ladder, const struct ladder_settings *settings,
                   const struct ladder_means *means, const struct ladder_incident *incident,
                   struct ladder_decision *ret);
/* Begins the decided rung: counts it and starts its time limit. The decision must not be no_progress. */
void ladder_begin(struct ladder *ladder, const struct ladder_incident *incident,
                  const struct ladder_decision *decision);
/* Called when every rank has made this step (-1: they report none, and all run). Ends the present rung, which
 * has helped, and returns whether there was one. */
bool ladder_stepped(struct ladder *ladder, int64_t step);
/* Ends the present rung, if any: called when the job is suspended, finished or deleted. */
void ladder_stop(struct ladder *ladder);
void ladder_done(struct ladder *ladder); /* frees its memory */
/* Return the number of uses of the rung, or of the cause, in the window that ends now. */
uint32_t ladder_used(const struct ladder *ladder, enum rung rung, int64_t window_ns, int64_t now_ns);
uint32_t ladder_caused(const struct ladder *ladder, enum loss_cause cause, int64_t window_ns, int64_t now_ns);
/* Returns the wait before the attempt that follows `stalled` attempts without progress. */
int64_t ladder_backoff_ns(int32_t stalled);

/* --- places --------------------------------------------------------------------------------------------- */

/* The properties of a place that matter to a rank that moves. */
struct ladder_place {
    bool caused;              /* the machine has caused a restart of this job */
    bool suspect;             /* the machine is unhealthy, or failed several jobs */
    bool same_rack, same_pod; /* as the old place */
    uint32_t machine;         /* decides among equals: the lower one is better */
};
/* Returns a number below 0 if `a` is better, above 0 if `b` is, and 0 only for the same machine. A total
 * order. */
int ladder_place_compare(const struct ladder_place *a, const struct ladder_place *b);

#endif
