/* ladder.h - the recovery ladder's policy: which rung answers a loss, for how long, how often, and when a job
 * is given up (docs/recovery.md).
 *
 *   settings.c  what users say: the annotations phalanx.dev/recovery, -limits, -budgets and
 *               no-progress-attempts, and the words of MindCluster that mean the same
 *   ladder.c    which rung; what has been used up; attempts without progress and their back-off
 *   prefer.c    which of two places suits a rank that moves better
 *
 * The caller keeps a `struct ladder` a job and says what happened to it:
 *
 *     ladder_loss(&ladder, &incident);                       // an attempt ended: did it get anywhere?
 *     ladder_decide(&ladder, &settings, &means, &incident, &decision);
 *     ladder_begin(&ladder, &settings, &incident, &decision);  // what was decided is under way
 *     ...                                                    // either every rank makes its next step:
 *     ladder_stepped(&ladder, step);
 *     ...                                                    // or ladder.due_ns comes:
 *     incident.below = ladder.rung;                          // the next rung, of the same incident
 *
 * Pure: stamps are the caller's, nothing is allocated but by ladder_begin (freed by ladder_done). Knows no
 * jobs, machines or agents: whether a rung can be carried out is `struct ladder_means`, made by the caller.
 * One owner thread. Rungs and causes are part of snapshots: their numbers only grow.
 */
#ifndef PHX_CORE_RECOVERY_LADDER_H
#define PHX_CORE_RECOVERY_LADDER_H

#include "base/error.h"
#include "base/units.h"
#include "base/vec.h"

/* From what costs least to what always works. */
enum rung {
    RUNG_NONE,
    RUNG_RETRY,           /* the ranks make the step again, in their processes */
    RUNG_RESTART_PROCESS, /* on its machine, peers wait inside their processes */
    RUNG_REPLACE_MACHINE, /* its ranks move, peers wait inside their processes */
    RUNG_SHRINK,          /* whole replicas leave */
    RUNG_DUMP,            /* survivors save what they have, then all of it runs again */
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
    LOSS_MACHINE, /* lost, with all that ran there */
    LOSS_FAULT,   /* something on its machine is broken, and named */
    LOSS_EVICTED, /* its machine is drained, or somebody else needs the room */
    LOSS_HANG,
    LOSS_SLOW, /* its machine is slow or otherwise not well */
    LOSS_USER, /* somebody deleted its Pod */
    LOSS_CAUSES
};
const char *loss_name(enum loss_cause cause); /* "machine-lost"; as budgets name it */
/* Nothing that the job did: never counted towards maxRestarts. */
bool loss_is_infrastructure(enum loss_cause cause);

/* --- settings ------------------------------------------------------------------------------------------- */

enum {
    LADDER_BUDGET_MAX = 100,         /* the largest count of a budget */
    LADDER_USES_MAX = 128,           /* newest decisions that are remembered, and so counted */
    LADDER_ATTEMPTS_MAX = 1000000,   /* of no-progress-attempts */
    LADDER_NO_PROGRESS_ATTEMPTS = 5, /* what stands there if nothing is said */
    LADDER_WHY_MAX = 400,            /* bytes of `passed` and of one reason, with the NUL */
};
#define LADDER_LIMIT_MAX_NS  (INT64_C(24) * 3600 * NS_PER_SECOND)
#define LADDER_WINDOW_MAX_NS (INT64_C(30) * 24 * 3600 * NS_PER_SECOND)
/* Attempts in a row without a new step: the second waits so long before it begins, each later one twice as
 * long, up to the limit. */
#define LADDER_BACKOFF_FIRST_NS (10 * NS_PER_SECOND)
#define LADDER_BACKOFF_MAX_NS   (300 * NS_PER_SECOND)
/* A workload under its failure policy that crashes again without a new step: the second crash in a row is
 * followed by the first wait, each later one by twice as long, up to the limit. */
#define CRASH_BACKOFF_FIRST_NS (1 * NS_PER_SECOND)
#define CRASH_BACKOFF_MAX_NS   (300 * NS_PER_SECOND)
/* A job whose ranks report no steps has got on in an attempt that ran so long. */
#define LADDER_RUN_NS (600 * NS_PER_SECOND)

/* So often in that time. */
struct ladder_budget {
    bool given; /* false: as often as is needed */
    uint32_t count;
    int64_t window_ns;
};
struct ladder_settings {
    bool given, off;         /* phalanx.dev/recovery is there; it says "off" */
    bool allowed[RUNGS];     /* RUNG_REQUEUE always: it is the failure policy */
    int64_t limit_ns[RUNGS]; /* 0: none (RUNG_REQUEUE) */
    struct ladder_budget rungs[RUNGS], causes[LOSS_CAUSES];
    bool attempts_given;          /* no-progress-attempts is there */
    int64_t no_progress_attempts; /* 0: never */
    /* Of a workload that crashes again and again under its failure policy (job/backoff.c); 0: at once. */
    int64_t backoff_first_ns, backoff_max_ns;
};
void ladder_defaults(struct ladder_settings *ret);

/* What users write, ours in this order, then MindCluster's. */
enum ladder_word {
    WORD_RECOVERY,                /* "retry,restart-process" or "off" */
    WORD_LIMITS,                  /* "RUNG=DURATION,..." */
    WORD_BUDGETS,                 /* "RUNG=COUNT/DURATION,...", a cause's name in the place of a rung's too */
    WORD_ATTEMPTS,                /* a number */
    WORD_BACKOFF,                 /* "off", or "FIRST/MAX", two durations */
    LADDER_WORDS,                 /* ours: a wrong one is refused */
    WORD_STRATEGY = LADDER_WORDS, /* recover-strategy: which of their strategies */
    WORD_PROCESS_RECOVER,         /* process-recover-enable: on, pause, off */
    WORD_POD_RESCHEDULING,        /* pod-rescheduling: on, off */
    WORD_RETRY_TIMES,             /* fault-retry-times: business faults that are answered */
    LADDER_WORDS_ALL
};
extern const char *const ladder_keys[LADDER_WORDS_ALL]; /* of annotations; of MindCluster's also of labels */
/* Takes one of ours into settings that are set already (ladder_defaults). False: `error`, and the settings
 * are as they were. */
bool ladder_take(struct ladder_settings *settings, enum ladder_word word, struct str text,
                 struct error *error);
/* MindCluster's, all at once, data NULL where one is absent; before ours are taken, which win. What is not
 * theirs to say, or says nothing here, is passed over: none of it is an error. */
void ladder_take_theirs(struct ladder_settings *settings, const struct str texts[LADDER_WORDS_ALL]);

/* --- deciding ------------------------------------------------------------------------------------------- */

struct ladder_use {
    int64_t at_ns;
    uint8_t rung, cause; /* enum rung, enum loss_cause */
    bool fell;           /* the rung before it did not help in its time */
};
/* One a job; zero: nothing has happened yet, but for best_step (-1). */
struct ladder {
    uint8_t rung, cause; /* under way: enum rung, enum loss_cause; RUNG_NONE: nothing is */
    int64_t decided_ns;
    int64_t due_ns;              /* the next rung follows then; 0: never */
    int64_t wait_ns;             /* the attempt does not begin before this stamp; 0: at once */
    int64_t best_step;           /* the highest that all its ranks have made, ever; -1: none */
    bool progressed;             /* beyond it since the newest loss */
    int32_t stalled;             /* attempts in a row that ended without */
    VEC(struct ladder_use) uses; /* the newest LADDER_USES_MAX, oldest first */
};
/* Can it be carried out now? For each rung why not, as the end of a sentence ("no spare is ready"); NULL: it
 * can. Texts are static or live as long as the call. RUNG_REQUEUE's is not asked. */
struct ladder_means {
    const char *lacks[RUNGS];
};
/* No rung can, but the last. */
void ladder_means_none(struct ladder_means *ret);

struct ladder_incident {
    enum loss_cause cause;
    enum rung below;     /* this rung and those above it did not help; RUNG_NONE: it is new */
    bool again;          /* one more loss of the incident under way: not counted anew */
    bool place_is_bad;   /* the machine must not, or should not, be used again for this job */
    bool processes_live; /* no process was lost: RUNG_RETRY may do */
    bool runs_long;      /* its ranks report no steps, and the attempt that ended ran LADDER_RUN_NS */
    int64_t now_ns;
};
struct ladder_decision {
    enum rung rung;
    bool no_progress; /* give the job up instead: `rung` is RUNG_NONE */
    int64_t limit_ns; /* 0: none */
    int64_t wait_ns;  /* how long the attempt is held back */
    /* Why the finer rungs were passed over: "retry: a process was lost; restart-process: ..." */
    char passed[LADDER_WHY_MAX];
};

/* An attempt ended by a loss that is new, no part of the incident before: counts whether it got anywhere.
 * Evictions, moves and deletions say nothing about that. */
void ladder_loss(struct ladder *ladder, const struct ladder_incident *incident);
/* Pure: the finest rung below `incident->below` that is allowed, suits the cause, is within its budgets and
 * can be carried out. Always one, at last RUNG_REQUEUE; or no_progress. */
void ladder_decide(const struct ladder *ladder, const struct ladder_settings *settings,
                   const struct ladder_means *means, const struct ladder_incident *incident,
                   struct ladder_decision *ret);
/* It is done: counted, its time runs. Not with no_progress. */
void ladder_begin(struct ladder *ladder, const struct ladder_incident *incident,
                  const struct ladder_decision *decision);
/* Every rank has made this step (-1: they report none and all run): what was under way has helped. Returns
 * whether something was. */
bool ladder_stepped(struct ladder *ladder, int64_t step);
/* Nothing is under way any more: suspended, finished, deleted. */
void ladder_stop(struct ladder *ladder);
void ladder_done(struct ladder *ladder);
/* Uses of the rung, of the cause, in the window that ends now. */
uint32_t ladder_used(const struct ladder *ladder, enum rung rung, int64_t window_ns, int64_t now_ns);
uint32_t ladder_caused(const struct ladder *ladder, enum loss_cause cause, int64_t window_ns, int64_t now_ns);
/* How long the attempt behind `stalled` ones waits. */
int64_t ladder_backoff_ns(int32_t stalled);

/* --- places --------------------------------------------------------------------------------------------- */

/* What counts of a place to which a rank may move. */
struct ladder_place {
    bool caused;              /* its machine caused a restart of this job */
    bool suspect;             /* it is not well, or failed several jobs */
    bool same_rack, same_pod; /* as the place that is left */
    uint32_t machine;         /* the last word: the lower */
};
/* < 0: `a` is the better one; 0 only for the same machine. A total order. */
int ladder_place_compare(const struct ladder_place *a, const struct ladder_place *b);

#endif
