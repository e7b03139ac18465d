/* ladder.h - the recovery ladder's policy: which rung answers a loss, for how long, how often, and when a
 * job is given up (docs/recovery.md).
 *
 *   settings.c  the users' settings: the annotations phalanx.dev/recovery, -limits, -budgets and
 *               no-progress-attempts, and MindCluster's words for the same
 *   ladder.c    the choice of a rung; used budgets; attempts without progress and their back-off
 *   prefer.c    which of two places suits a rank that moves better
 *
 * The caller keeps a `struct ladder` for each job and reports what happens to it:
 *
 *     ladder_loss(&ladder, &incident);                       // an attempt ended: was there progress?
 *     ladder_decide(&ladder, &settings, &means, &incident, &decision);
 *     ladder_begin(&ladder, &incident, &decision);           // the rung is under way
 *     ...                                                    // either every rank makes its next step:
 *     ladder_stepped(&ladder, step);
 *     ...                                                    // or ladder.due_ns comes:
 *     incident.below = ladder.rung;                          // the next rung, of the same incident
 *
 * Pure: stamps are the caller's; only ladder_begin allocates (freed by ladder_done). The ladder knows no
 * jobs, machines or agents: the caller says in `struct ladder_means` whether a rung can be carried out.
 * One owner thread. Rungs and causes are part of snapshots: new ones get new numbers.
 */
#ifndef PHX_CORE_LADDER_LADDER_H
#define PHX_CORE_LADDER_LADDER_H

#include "base/error.h"
#include "base/units.h"
#include "base/vec.h"

/* From the cheapest to the one that always works. */
enum rung {
    RUNG_NONE,
    RUNG_RETRY,           /* the ranks repeat the step in their processes */
    RUNG_RESTART_PROCESS, /* on its machine; peers wait inside their processes */
    RUNG_REPLACE_MACHINE, /* its ranks move; peers wait inside their processes */
    RUNG_SHRINK,          /* whole replicas leave */
    RUNG_DUMP,            /* survivors save their state, then all tasks run again */
    RUNG_REQUEUE,         /* the failure policy */
    RUNGS
};
const char *rung_name(enum rung rung); /* "restart-process"; RUNG_NONE: "none" */

/* Why an attempt ended. */
enum loss_cause {
    LOSS_NONE,
    LOSS_EXIT, /* a process ended by itself */
    LOSS_OUT_OF_MEMORY,
    LOSS_START_FAILED,
    LOSS_MACHINE, /* lost, with all its tasks */
    LOSS_FAULT,   /* a known fault of its machine */
    LOSS_EVICTED, /* its machine is drained, or its room is needed by others */
    LOSS_HANG,
    LOSS_SLOW, /* its machine is slow or otherwise unhealthy */
    LOSS_USER, /* a user deleted its Pod */
    LOSS_CAUSES
};
const char *loss_name(enum loss_cause cause); /* returns the cause's name in budgets: "machine-lost" */
/* Whether the job did not cause the loss, which then never counts towards maxRestarts. */
bool loss_is_infrastructure(enum loss_cause cause);

/* --- settings ------------------------------------------------------------------------------------------- */

enum {
    LADDER_BUDGET_MAX = 100,         /* the largest count of a budget */
    LADDER_USES_MAX = 128,           /* newest decisions that are remembered and counted */
    LADDER_ATTEMPTS_MAX = 1000000,   /* of no-progress-attempts */
    LADDER_NO_PROGRESS_ATTEMPTS = 5, /* the default */
    LADDER_WHY_MAX = 400,            /* bytes of `passed` and of one reason, with the NUL */
};
#define LADDER_LIMIT_MAX_NS  (INT64_C(24) * 3600 * NS_PER_SECOND)
#define LADDER_WINDOW_MAX_NS (INT64_C(30) * 24 * 3600 * NS_PER_SECOND)
/* Consecutive attempts without a new step: the second waits this long before it begins, each later one
 * twice as long, up to the limit. */
#define LADDER_BACKOFF_FIRST_NS (10 * NS_PER_SECOND)
#define LADDER_BACKOFF_MAX_NS   (300 * NS_PER_SECOND)
/* Consecutive crashes without a new step, under the failure policy: the second crash is followed by the
 * first wait, each later one by a wait of twice the length, up to the limit. */
#define CRASH_BACKOFF_FIRST_NS (1 * NS_PER_SECOND)
#define CRASH_BACKOFF_MAX_NS   (300 * NS_PER_SECOND)
/* A job whose ranks report no steps has made progress in an attempt that ran this long. */
#define LADDER_RUN_NS (600 * NS_PER_SECOND)

/* The largest number of uses within a time. */
struct ladder_budget {
    bool given; /* false: unlimited */
    uint32_t count;
    int64_t window_ns;
};
struct ladder_settings {
    bool given, off;         /* phalanx.dev/recovery is set; its value is "off" */
    bool allowed[RUNGS];     /* RUNG_REQUEUE is always allowed: it is the failure policy */
    int64_t limit_ns[RUNGS]; /* 0: none (RUNG_REQUEUE) */
    struct ladder_budget rungs[RUNGS], causes[LOSS_CAUSES];
    bool attempts_given;          /* no-progress-attempts is there */
    int64_t no_progress_attempts; /* 0: never */
    /* Waits of a workload that crashes repeatedly under its failure policy (recover/backoff.c); 0: none. */
    int64_t backoff_first_ns, backoff_max_ns;
};
void ladder_defaults(struct ladder_settings *ret);

/* The annotations of users: ours in this order, then MindCluster's. */
enum ladder_word {
    WORD_RECOVERY,                /* "retry,restart-process" or "off" */
    WORD_LIMITS,                  /* "RUNG=DURATION,..." */
    WORD_BUDGETS,                 /* "RUNG=COUNT/DURATION,...", or a cause's name in place of a rung's */
    WORD_ATTEMPTS,                /* a number */
    WORD_BACKOFF,                 /* "off", or "FIRST/MAX", two durations */
    LADDER_WORDS,                 /* ours: an invalid value is refused */
    WORD_STRATEGY = LADDER_WORDS, /* recover-strategy: which of MindCluster's strategies */
    WORD_PROCESS_RECOVER,         /* process-recover-enable: on, pause, off */
    WORD_POD_RESCHEDULING,        /* pod-rescheduling: on, off */
    WORD_RETRY_TIMES,             /* fault-retry-times: how many business faults are answered */
    LADDER_WORDS_ALL
};
extern const char *const ladder_keys[LADDER_WORDS_ALL]; /* of annotations; MindCluster's also of labels */
/* Applies one of our annotations to settings that hold the defaults (ladder_defaults). False: `error` is
 * set, and the settings are unchanged. */
bool ladder_take(struct ladder_settings *settings, enum ladder_word word, struct str text,
                 struct error *error);
/* Applies MindCluster's annotations, all at once; data is NULL if one is absent. Called before ours, which
 * take precedence. Unknown or inapplicable values are ignored, and are no error. */
void ladder_take_theirs(struct ladder_settings *settings, const struct str texts[LADDER_WORDS_ALL]);

/* --- deciding ------------------------------------------------------------------------------------------- */

struct ladder_use {
    int64_t at_ns;
    uint8_t rung, cause; /* enum rung, enum loss_cause */
    bool fell;           /* fell from the rung before, which did not help in time */
};
/* The ladder's memory of one job; zero, with best_step -1: nothing has happened yet. */
struct ladder {
    uint8_t rung, cause; /* under way: enum rung, enum loss_cause; RUNG_NONE: none */
    int64_t decided_ns;
    int64_t due_ns;              /* when the next rung follows; 0: never */
    int64_t wait_ns;             /* the attempt begins no earlier than this stamp; 0: at once */
    int64_t best_step;           /* highest step that all its ranks have ever made; -1: none */
    bool progressed;             /* a step beyond it was made since the newest loss */
    int32_t stalled;             /* consecutive attempts that ended without progress */
    VEC(struct ladder_use) uses; /* the newest LADDER_USES_MAX uses, oldest first */
};
/* Whether the rungs can be carried out now: for each, why not, as the end of a sentence ("no spare is
 * ready"); NULL: it can. Texts are static or live as long as the call. RUNG_REQUEUE's is ignored. */
struct ladder_means {
    const char *lacks[RUNGS];
};
/* Sets all rungs but the last to "cannot". */
void ladder_means_none(struct ladder_means *ret);

struct ladder_incident {
    enum loss_cause cause;
    enum rung below;     /* this rung and those above it did not help; RUNG_NONE: a new incident */
    bool again;          /* one more loss of the present incident, which is not counted again */
    bool place_is_bad;   /* the machine must not, or should not, be used again for this job */
    bool processes_live; /* no process was lost, so RUNG_RETRY may do */
    bool runs_long;      /* its ranks report no steps, and the ended attempt ran for LADDER_RUN_NS */
    int64_t now_ns;
};
struct ladder_decision {
    enum rung rung;
    bool no_progress; /* the job has to be given up; `rung` is RUNG_NONE */
    int64_t limit_ns; /* 0: none */
    int64_t wait_ns;  /* how long the next attempt is held back */
    /* Why finer rungs were passed over: "retry: a process was lost; restart-process: ..." */
    char passed[LADDER_WHY_MAX];
};

/* Called when a loss of a new incident ended an attempt: counts whether the attempt made progress.
 * Evictions, moves and deletions do not count. */
void ladder_loss(struct ladder *ladder, const struct ladder_incident *incident);
/* Pure: chooses the finest rung below `incident->below` that is allowed, suits the cause, is within its
 * budgets and can be carried out. There always is one, at last RUNG_REQUEUE; or no_progress is set. */
void ladder_decide(const struct ladder *ladder, const struct ladder_settings *settings,
                   const struct ladder_means *means, const struct ladder_incident *incident,
                   struct ladder_decision *ret);
/* Begins the decided rung: counts it and starts its time limit. Not with no_progress. */
void ladder_begin(struct ladder *ladder, const struct ladder_incident *incident,
                  const struct ladder_decision *decision);
/* Called when every rank has made this step (-1: they report none, and all run): the present rung has
 * helped. Returns whether there was one. */
bool ladder_stepped(struct ladder *ladder, int64_t step);
/* Called when the job is suspended, finished or deleted: no rung is under way any more. */
void ladder_stop(struct ladder *ladder);
void ladder_done(struct ladder *ladder);
/* Counts the uses of the rung, or of the cause, in the window that ends now. */
uint32_t ladder_used(const struct ladder *ladder, enum rung rung, int64_t window_ns, int64_t now_ns);
uint32_t ladder_caused(const struct ladder *ladder, enum loss_cause cause, int64_t window_ns, int64_t now_ns);
/* Returns how long the attempt after `stalled` attempts without progress waits. */
int64_t ladder_backoff_ns(int32_t stalled);

/* --- places --------------------------------------------------------------------------------------------- */

/* The properties of a place that matter to a rank that moves. */
struct ladder_place {
    bool caused;              /* its machine has caused a restart of this job */
    bool suspect;             /* its machine is unhealthy, or failed several jobs */
    bool same_rack, same_pod; /* compared with the old place */
    uint32_t machine;         /* decides among equals: the lower */
};
/* < 0: `a` is better; 0 only for the same machine. A total order. */
int ladder_place_compare(const struct ladder_place *a, const struct ladder_place *b);

#endif
