/* hang.h - hang detection: when a job that makes no steps is suspected, how its ranks' records are collected,
 * and which ranks they blame.
 *
 * Watching. A JobSet is watched from the moment that one of its ranks joins (libphalanx), or that its log
 * shows a step, until it ends, one attempt at a time. It is suspected when it has made no step for
 *     phalanx.dev/hang-timeout                         if that annotation gives a duration ("off": never)
 *     factor x the longest time between two steps      of this attempt, at least `minimum`; else
 *     checkpoint, at least                             while a checkpoint is being saved
 *     first_step                                       before the second step: start, restore and compilation
 * With hang-timeout, the limit before the first step is the larger of it and first_step. (MindCluster and
 * ByteRobust also take multiples of the step time. The settings are spec.settings.hangs of the cluster file.)
 * While one of its tasks does not run, or the controller is away, the JobSet's clock stands still. A
 * suspicion that no record explains doubles the time until the next one.
 *
 * Collecting. The machine of every living task gets an errand (errand/errand.h, ERRAND_DIAGNOSE), whose
 * output flight_add_answer reads. A rank without an answer within the answer time is silent. A person may
 * also request a diagnosis at any time (hang_ask); such a diagnosis has no consequences.
 *
 * Verdict. The records of each world (the gangs of one group of replicated jobs) are judged
 * (diagnose/diagnose.h). hangs_next_order gives core.c its orders. If ranks are to blame, the machine of each
 * culprit gets a fault, and the culprit's task ends. If the program is to blame, the Job fails by its own
 * fault. If the network is to blame, the group's machines get faults that make them suspect, and the Job
 * fails. If the JobSet makes a step before the verdict, there was no hang, and the collection ends, unless a
 * person requested it.
 *
 * The last diagnosis of a JobSet is kept with its records. When all kept records together would exceed
 * HANG_RECORDS_BYTES_MAX bytes, the oldest ones are dropped. Bounded by JobSets; state of the core, in
 * snapshots.
 */
#ifndef PHX_CORE_HANG_HANG_H
#define PHX_CORE_HANG_HANG_H

#include "base/heap.h"
#include "base/map.h"
#include "core/errand/errand.h"
#include "core/job/job.h"

#define HANG_TIMEOUT_KEY "phalanx.dev/hang-timeout"
/* How long after the answer time the wait for a silent agent ends. */
#define HANG_ANSWER_MARGIN_NS (3 * NS_PER_SECOND)

enum {
    HANG_RECORD_BYTES_MAX = ERRAND_OUTPUT_MAX,
    HANG_RECORD_BYTES_MIN = 1024, /* bytes of one task in the largest gangs */
    HANG_RECORDS_BYTES_MAX = 64 * 1024 * 1024,
    HANG_DOUBLINGS_MAX = 6, /* of the time limit, for unexplained suspicions */
    /* Tasks whose machines one verdict blames or suspects; further ones are only named in its text. */
    HANG_BLAMED_MAX = 64,
};

enum hang_phase { HANG_WATCHING = 1, HANG_COLLECTING = 2 };

enum hang_verdict {
    HANG_NO_VERDICT, /* none yet */
    HANG_GOES_ON,    /* the JobSet made a step, or the attempt ended, before the verdict */
    HANG_NOT_FOUND,  /* no open operation and no process explains a hang */
    HANG_MACHINES,   /* ranks are to blame, and their machines with them */
    HANG_PROGRAM,    /* ranks call different operations, or in different orders */
    HANG_NETWORK,    /* all ranks have joined an operation and none makes progress, or it is not known which
                      * rank is missing */
    HANG_VERDICTS
};
extern const char *const hang_verdict_names[HANG_VERDICTS]; /* "", "GoesOn", "NotFound", "Machines", ... */

/* The record of one task. */
struct hang_part {
    obj_id task, errand;  /* errand 0: the errand has ended */
    struct str pod;       /* name */
    struct str machine;   /* name */
    uint32_t world, rank; /* world: counted from 0 in the JobSet */
    uint32_t size;        /* tasks of that world */
    bool answered;
    struct str record; /* JSON, or why there is none; empty: dropped, or not answered */
};

/* The watch over one JobSet, and its last diagnosis. */
struct hang_watch {
    obj_id jobset;
    int32_t attempt;
    uint8_t phase;        /* enum hang_phase */
    int64_t since_ns;     /* stamp of the newest sign of progress */
    int64_t stepped_ns;   /* stamp of its last step; 0: none in this attempt */
    int64_t longest_ns;   /* longest time between two of its steps without a checkpoint between them; 0:
                         * none */
    bool saving;          /* a rank has saved a checkpoint since the last step */
    uint32_t unexplained; /* suspicions of this attempt that no record explained */

    /* The last diagnosis. */
    uint64_t number;             /* log position at which the diagnosis began; 0: there was none */
    bool asked;                  /* a person requested it */
    int64_t begun_ns, judged_ns; /* judged_ns 0: still collecting */
    struct hang_part *parts;     /* by world and rank */
    size_t part_count, open;     /* open: number of errands under way */
    size_t bytes;                /* bytes of all records */
    enum hang_verdict verdict;
    struct str text;      /* a sentence or two for people */
    struct arena arena;   /* owns parts and text */
    struct arena records; /* owns the records */
    bool forgotten;       /* its records were dropped for those of others */

    int64_t due_ns;       /* stamp at which it is checked again; INT64_MAX: never */
    struct heap_node due; /* private: node of the store's heap */
};

struct hangs;

struct hangs *hangs_new(void);
void hangs_free(struct hangs *hangs); /* NULL is allowed */
void hangs_bury(struct hangs *hangs); /* called first in a step: frees what the last orders point into */

/* --- for readers ---------------------------------------------------------------------------------------- */

const struct hang_watch *hang_find(const struct hangs *hangs, obj_id jobset); /* NULL: it is not watched */
/* Return the number of watches, and each of them in order of the JobSets' uids. */
size_t hangs_count(const struct hangs *hangs);
const struct hang_watch *hang_at(const struct hangs *hangs, size_t index);
/* Judges all records of one world of a diagnosis, for people. The caller frees the result with flight_free
 * and *ret_diagnosis with diagnosis_done. *ret_bad is the number of unreadable records, *ret_per_task the
 * number of ranks of a task, at least 1. */
struct flight;
struct diagnosis;
struct flight *hang_judge_world(const struct hang_part *parts, size_t count, struct diagnosis *ret_diagnosis,
                                size_t *ret_bad, uint32_t *ret_per_task);
/* Returns the index after the last part that belongs to the same world as parts[first]. */
size_t hang_world_end(const struct hang_part *parts, size_t count, size_t first);

/* --- for core.c ----------------------------------------------------------------------------------------- */

/* Whether a person may request a diagnosis: a task of the JobSet has a process that can answer. */
bool hang_may_ask(const struct jobset *jobset);
/* Begins a diagnosis that a person requested, unless one is under way. hang_may_ask holds. */
void hang_ask(struct step *step, const struct jobset *jobset);
void hangs_boot(struct step *step); /* called when a controller boots: restarts the clocks */
void hangs_reported(struct step *step, const struct machine *machine, const struct reports *reports);
void hangs_progressed(struct step *step, const struct progress_event *progress);
void hangs_tick(struct step *step);
void hang_errand_ended(struct step *step, const struct errand *errand, const struct errand_end *end);
int64_t hangs_deadline(const struct hangs *hangs);                 /* stamp; INT64_MAX: none */
void hangs_forget(struct step *step, const struct jobset *jobset); /* called when it is deleted */

/* A task whose machine a verdict blames. The evidence is valid until the next step. */
struct hang_blame {
    struct task *task; /* alive */
    const char *code;  /* fault code: "hang/absent" */
    struct str evidence;
};
struct hang_order {
    struct jobset *jobset;
    enum hang_verdict verdict; /* NOT_FOUND, MACHINES, PROGRAM, NETWORK */
    struct str text;
    struct hang_blame *blamed; /* MACHINES: culprits; NETWORK: participants; at most HANG_BLAMED_MAX */
    size_t blamed_count;
    struct task *first; /* PROGRAM, NETWORK: a living task among the affected ranks; NULL: none lives */
    bool restart;       /* NOT_FOUND: the JobSet's own hang-timeout has passed, so it restarts nevertheless */
};
/* Judges the collected records and gets the next order; false: none is left. Called until false, before the
 * step ends. */
bool hangs_next_order(struct step *step, struct hang_order *ret_order);

/* --- for snapshots and audits --------------------------------------------------------------------------- */

/* Restores a copy of a watch from a snapshot, without its private fields. Returns false if it does not fit:
 * uids must ascend, and counts agree. */
bool hangs_restore(struct hangs *hangs, const struct hang_watch *saved);
void hangs_check(const struct hangs *hangs, const struct errands *errands); /* aborts through CHECK */

#endif
