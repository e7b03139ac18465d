/* hang.h - jobs that have stopped making steps: when one is suspected, how its ranks' records are
 * collected, and which ranks these blame.
 *
 * Watching. A JobSet is watched from the moment that a rank of it joins (libphalanx) until it ends, one
 * attempt at a time. It is suspected when it has made no step for
 *     phalanx.dev/hang-timeout                         if that annotation gives a duration ("off": never)
 *     factor x the longest time between two steps      of this attempt, at least `minimum`; else
 *     checkpoint, at least                             while a checkpoint is being saved
 *     first_step                                       before the second step: start, restore and compilation
 * (MindCluster and ByteRobust take multiples of the step time likewise; settings: cluster file,
 * spec.settings.hangs.) While a task of it does not run, or the controller is away, its clock stands
 * still. A suspicion that no record explains doubles the time until the next.
 *
 * Collecting. Every living task's machine gets an errand (errand/errand.h, ERRAND_DIAGNOSE), whose output
 * is read by flight_add_answer; a rank without an answer within the answer time is silent. A person may
 * request a diagnosis at any time (hang_ask), which has no consequences but the answer.
 *
 * Verdict. The records of each world (the gangs of one group of replicated jobs) are judged
 * (diagnose/diagnose.h). hangs_next_order gives core.c its orders: a fault for each culprit's machine and
 * the end of its task; an end of the Job by its own fault if its program is to blame; suspicion of a
 * group's machines if the network is. If steps go on meanwhile there was no hang, and the collecting ends.
 *
 * The last diagnosis of a JobSet is kept with its records, as long as all kept records have at most
 * HANG_RECORDS_BYTES_MAX bytes; then the oldest records are dropped. Bounded by JobSets; state of the
 * core, in snapshots.
 */
#ifndef PHX_CORE_HANG_HANG_H
#define PHX_CORE_HANG_HANG_H

#include "base/heap.h"
#include "base/map.h"
#include "core/errand/errand.h"
#include "core/job/job.h"

#define HANG_TIMEOUT_KEY "phalanx.dev/hang-timeout"
/* The wait for a silent agent ends this much after the answer time. */
#define HANG_ANSWER_MARGIN_NS (3 * NS_PER_SECOND)

enum {
    HANG_RECORD_BYTES_MAX = ERRAND_OUTPUT_MAX,
    HANG_RECORD_BYTES_MIN = 1024, /* of one task in the largest gangs */
    HANG_RECORDS_BYTES_MAX = 64 * 1024 * 1024,
    HANG_DOUBLINGS_MAX = 6,
    HANG_BLAMED_MAX =
        64, /* machines that one verdict blames or suspects; further ones are only named in its text */
};

enum hang_phase { HANG_WATCHING = 1, HANG_COLLECTING = 2 };

enum hang_verdict {
    HANG_NO_VERDICT, /* none yet */
    HANG_GOES_ON,    /* steps went on, or the attempt was over, before the verdict */
    HANG_NOT_FOUND,  /* no operation is open, and all processes run */
    HANG_MACHINES,   /* ranks are to blame, and their machines with them */
    HANG_PROGRAM,    /* ranks call different operations, or in different orders */
    HANG_NETWORK,    /* all have joined an operation, and none makes progress; or the missing rank is not
                      * known */
    HANG_VERDICTS
};
extern const char *const hang_verdict_names[HANG_VERDICTS]; /* "", "GoesOn", "NotFound", "Machines", ... */

/* The record of one task. */
struct hang_part {
    obj_id task, errand;  /* errand 0: it has ended */
    struct str pod;       /* name */
    struct str machine;   /* name */
    uint32_t world, rank; /* world: counted from 0 in the JobSet */
    uint32_t size;        /* tasks of that world */
    bool answered;
    struct str record; /* JSON, or why there is none; empty: dropped, or not answered */
};

struct hang_watch {
    obj_id jobset;
    int32_t attempt;
    uint8_t phase;        /* enum hang_phase */
    int64_t since_ns;     /* newest sign of progress */
    int64_t stepped_ns;   /* stamp of its last step; 0: none in this attempt */
    int64_t longest_ns;   /* longest time between two of its steps without a checkpoint between them; 0:
                         * none */
    bool saving;          /* a rank has saved since the last step */
    uint32_t unexplained; /* suspicions of this attempt that no record explained */

    /* The last diagnosis. */
    uint64_t number;             /* log record that began the diagnosis; 0: there was none */
    bool asked;                  /* requested by a person, and not suspected */
    int64_t begun_ns, judged_ns; /* judged 0: still collecting */
    struct hang_part *parts;     /* by world and rank */
    size_t part_count, open;     /* open: number of errands under way */
    size_t bytes;                /* of all records */
    enum hang_verdict verdict;
    struct str text;    /* a sentence or two for people */
    struct arena arena; /* owns parts and text; the records are in ... */
    struct arena records;
    bool forgotten; /* its records were dropped to make room */

    int64_t due_ns;       /* when it is checked again; INT64_MAX: never */
    struct heap_node due; /* private: node of the store's heap */
};

struct hangs;

struct hangs *hangs_new(void);
void hangs_free(struct hangs *hangs); /* NULL is allowed */
void hangs_bury(struct hangs *hangs); /* called before anything else in a step: frees the last orders */

/* --- for readers ---------------------------------------------------------------------------------------- */

const struct hang_watch *hang_find(const struct hangs *hangs, obj_id jobset); /* NULL: it is not watched */
/* In order of the JobSets' uids. */
size_t hangs_count(const struct hangs *hangs);
const struct hang_watch *hang_at(const struct hangs *hangs, size_t index);
/* Judges all records of one world of a diagnosis, for people. The caller frees both results. *ret_bad:
 * number of unreadable records; *ret_per_task: ranks of a task, at least 1. */
struct flight;
struct diagnosis;
struct flight *hang_judge_world(const struct hang_part *parts, size_t count, struct diagnosis *ret_diagnosis,
                                size_t *ret_bad, uint32_t *ret_per_task);
/* Returns the end of the parts, from `first` on, that belong to one world. */
size_t hang_world_end(const struct hang_part *parts, size_t count, size_t first);

/* --- for core.c ----------------------------------------------------------------------------------------- */

/* Whether a person may ask for a diagnosis: a task of the JobSet has a process that can answer. */
bool hang_may_ask(const struct jobset *jobset);
/* Begins a diagnosis for a person, who may ask for it, or joins the one under way. */
void hang_ask(struct step *step, const struct jobset *jobset);
void hangs_boot(struct step *step); /* the controller was away */
void hangs_reported(struct step *step, const struct machine *machine, const struct reports *reports);
void hangs_progressed(struct step *step, const struct progress_event *progress);
void hangs_tick(struct step *step);
void hang_errand_ended(struct step *step, const struct errand *errand, const struct errand_end *end);
int64_t hangs_deadline(const struct hangs *hangs);                 /* stamp; INT64_MAX: none */
void hangs_forget(struct step *step, const struct jobset *jobset); /* it is deleted */

/* A machine that a verdict blames; all texts are valid until the next step. */
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
    bool restart;       /* NOT_FOUND: its own time limit has passed, so it restarts nevertheless */
};
/* Judges the collected records; called until false, before the step ends. */
bool hangs_next_order(struct step *step, struct hang_order *ret_order);

/* --- for snapshots and audits --------------------------------------------------------------------------- */

/* Restores from a snapshot; copies all but the private fields. False: it does not fit (uids ascend, counts
 * agree). */
bool hangs_restore(struct hangs *hangs, const struct hang_watch *saved);
void hangs_check(const struct hangs *hangs, const struct errands *errands); /* aborts through CHECK */

#endif
