/* history.h - the external inputs of a cluster as one text: `phalanx-trace 1` (docs/formats/trace.md).
 *
 *     struct history history;
 *     if (history_read(&history, text, "june.trace", &error) < 0)
 *         ... error.text is "FILE:LINE:COLUMN: field: what was expected, got what"
 *     history_write(&history, &out);
 *     history_done(&history);
 *
 * A history has the machines of a cluster, their outages, and the jobs with their shapes, run times and
 * crashes. It contains no decision of the controller: src/sim/replay extracts it from a log, and
 * src/sim/capacity plays it under any policy. The fate of a job in the log (struct history_seen) is kept for
 * comparison only and is never played.
 *
 * Times are whole microseconds since the beginning, which has a date. Text and numbers round-trip: reading
 * the output of history_write() gives the same history. No function reads files. Not thread-safe.
 */
#ifndef PHX_SIM_TRACE_HISTORY_H
#define PHX_SIM_TRACE_HISTORY_H

#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"

enum {
    HISTORY_VERSION = 1,
    HISTORY_MACHINES_MAX = 131072,
    HISTORY_LINES_MAX = 20000000,
    HISTORY_NAME_MAX = 511, /* bytes of a name or value */
    HISTORY_CRASHES_MAX = 10000,
    HISTORY_CHIPS_MAX = 64,       /* of a machine */
    HISTORY_RANKS_MAX = 16777216, /* of a job */
};
#define HISTORY_TIME_MAX_US (INT64_C(366) * 86400 * 1000000 * 100) /* a hundred years */
#define HISTORY_HEAD        "phalanx-trace 1"

struct history_machine {
    struct str name, rack; /* consecutive machines with the same rack are neighbours */
    uint32_t chips;
    bool spare;
};

/* A time in which a machine could not be used. */
struct history_outage {
    int64_t at_us, until_us; /* until_us below 0: it had not ended */
    uint32_t machine;        /* index in `machines` */
    struct str code; /* code of the fault that its probes reported; empty: the machine was dead or absent */
    bool kills;      /* a fault that killed processes on the machine */
};

/* A time in which no controller ran, or its clock jumped: nothing was observed. */
struct history_gap {
    int64_t at_us, until_us;
};

enum history_end { HISTORY_COMPLETED, HISTORY_FAILED, HISTORY_CANCELLED, HISTORY_RUNNING, HISTORY_ENDS };
extern const char *const history_end_names[HISTORY_ENDS];

/* The fate of a job in the log: a reaction of the controller, which is compared and never played. */
struct history_seen {
    int64_t wait_us; /* from submission until all ranks ran; below 0: never */
    int64_t held_us; /* from then to the job's end, or the end of the log */
    int64_t restarts;
    int64_t redone_us; /* work that was repeated */
};

/* A job. Durations below 0 are unknown; the simulator's own values replace them. */
struct history_job {
    int64_t submit_us;
    struct str name;       /* "namespace/name"; not unique, because names can be reused */
    uint32_t ranks, chips; /* chips of each rank */
    int64_t run_us;        /* work: running time of all steps that were kept, or were to be kept */
    enum history_end end;  /* RUNNING: the job had not finished when the log ended */
    int64_t launch_us;     /* from a start order to running processes */
    int64_t load_us;       /* from then to the first step */
    int64_t stop_us;       /* from a stop order to the end of the processes */
    int64_t save_us;       /* work between two checkpoints; below 0: it wrote none */
    int64_t write_us;      /* how long a checkpoint stops the job */
    bool keeps;            /* its progress is unknown: restarts are assumed to lose nothing */
    int64_t *crashes_us;   /* work times at which a process died by itself; ascending; in `arena` */
    uint32_t crash_count;
    struct str queue;    /* empty: none */
    /* rungs of its recovery ladder, such as "replace-machine,requeue"; empty: the default */
    struct str recovery;
    int64_t priority;
    bool is_seen;
    struct history_seen seen;
};

/* A constant of the cluster's policy (core/model/policy.h), as in the cluster document. */
struct history_policy {
    struct str path, value;
};

struct history {
    struct arena arena; /* owns all strings and lists of crashes */
    int64_t begin_ns;   /* date of time 0 */
    int64_t end_us;
    VEC(struct history_policy) policy;
    VEC(struct history_machine) machines;
    VEC(struct history_outage) outages; /* sorted by at_us; equal times in the order of the file */
    VEC(struct history_gap) gaps;       /* sorted in the same way */
    VEC(struct history_job) jobs;       /* sorted by submit_us in the same way */
};

/* Returns whether the text begins like a history, so that history_read() should read it. */
bool history_is(struct str text);
/* Reads a history. Messages name `file`. Returns ERROR_INVALID or ERROR_LIMIT, and leaves *ret_history
 * untouched then. Free the history with history_done(). */
int history_read(struct history *ret_history, struct str text, const char *file, struct error *error);
/* Appends the history as text. */
void history_write(const struct history *history, struct buf *out);
/* Sorts outages, gaps and jobs by time. Entries of equal times keep their order. */
void history_order(struct history *history);
void history_done(struct history *history);

/* Replaces every name by a pseudonym, always the same for the same name: machines "m-1", racks "rack-1", jobs
 * "job-1", queues "queue-1", numbered by first appearance. The date becomes 1970-01-01. Times, shapes, codes
 * and the policy stay. */
void history_anonymise(struct history *history);

/* Sums of struct history_seen over all jobs that have one. Fields named chip_s are chip-seconds. */
struct history_seen_sum {
    uint64_t jobs, started, completed;
    int64_t restarts;
    double wait_s; /* of the jobs that started */
    double held_chip_s, work_chip_s, redone_chip_s, lived_chip_s;
};

/* Summary of a history, for people. */
struct history_facts {
    uint64_t chips; /* chips of all machines */
    uint64_t ends[HISTORY_ENDS], crashes;
    uint64_t never_ran; /* jobs that never ran */
    /* outages of dead or absent machines; faults; both kinds that had not ended */
    uint64_t outages, faults, open;
    uint64_t absent;            /* outages from time 0: machines that were added later */
    uint64_t overlaps;          /* outages that begin during another outage of the same machine */
    double out_s;               /* machine-seconds out; overlaps count once */
    double work_chip_s;         /* work of all jobs */
    int64_t gap_us, silence_us; /* sum of the gaps; longest time without an entry */
    int64_t silence_at_us;      /* beginning of that time */
    struct history_seen_sum seen;
};
void history_sum(const struct history *history, struct history_facts *ret_facts);

#endif
