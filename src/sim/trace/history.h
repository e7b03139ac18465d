/* history.h - what came to a cluster from outside, as one text: `phalanx-trace 1` (docs/formats/trace.md).
 *
 *     struct history history;
 *     if (history_read(&history, text, "june.trace", &error) < 0)
 *         ... error.text is "FILE:LINE:COLUMN: field: what was expected, got what"
 *     history_write(&history, &out);
 *     history_done(&history);
 *
 * A history has the machines of a cluster, their outages, and the jobs with their shapes, run times and own
 * crashes. It has no decision of the controller: src/sim/replay takes it out of a log, and src/sim/capacity
 * plays it under any policy. The fate of a job in the log (struct history_seen) is kept beside, for
 * comparison, and is never played.
 *
 * Times are whole microseconds from the beginning, which has a date. Text and numbers round-trip: reading
 * what history_write wrote gives the same history. Pure; reads no file. Not thread-safe.
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
    struct str name, rack; /* rack: machines that follow each other and have the same one are neighbours */
    uint32_t chips;
    bool spare;
};

/* A time in which a machine was no good to anyone. */
struct history_outage {
    int64_t at_us, until_us; /* until_us below 0: it had not ended */
    uint32_t machine;        /* place in `machines` */
    struct str code; /* of the fault that its probes reported; empty: the machine was dead or absent */
    bool kills;      /* of a fault: processes on the machine died of it */
};

/* Time in which no controller ran, or its clock jumped: nothing was seen. */
struct history_gap {
    int64_t at_us, until_us;
};

enum history_end { HISTORY_COMPLETED, HISTORY_FAILED, HISTORY_CANCELLED, HISTORY_RUNNING, HISTORY_ENDS };
extern const char *const history_end_names[HISTORY_ENDS];

/* The fate of a job as the log saw it: a reaction of the controller, compared and never played. */
struct history_seen {
    int64_t wait_us; /* from the submission until all ranks ran; below 0: they never did */
    int64_t held_us; /* from there to its end, or the end of the log */
    int64_t restarts;
    int64_t redone_us; /* work that was done again */
};

/* Durations below 0 are not known: the simulator's own count. */
struct history_job {
    int64_t submit_us;
    struct str name;       /* "namespace/name"; not unique: a name may be used again */
    uint32_t ranks, chips; /* chips of each rank */
    int64_t run_us;        /* work: time in which steps ran that were kept, or were to be */
    enum history_end end;  /* RUNNING: its work was not over when the log ended */
    int64_t launch_us;     /* from a start order to running processes */
    int64_t load_us;       /* from there to the first step */
    int64_t stop_us;       /* from a stop order to the end of the processes */
    int64_t save_us;       /* work between two checkpoints; below 0: it wrote none */
    int64_t write_us;      /* so long a checkpoint stops it */
    bool keeps;            /* its position is not known: a restart is taken to lose nothing */
    int64_t *crashes_us;   /* a process died by itself, after so much time of steps; ascending; in `arena` */
    uint32_t crash_count;
    struct str queue;    /* empty: none */
    struct str recovery; /* rungs of its recovery ladder, "replace-machine,requeue"; empty: the default */
    int64_t priority;
    bool is_seen;
    struct history_seen seen;
};

/* A constant of the cluster's policy (core/model/policy.h) as the cluster document has it. */
struct history_policy {
    struct str path, value;
};

struct history {
    struct arena arena; /* owns all strings and lists of crashes */
    int64_t begin_ns;   /* date of the beginning */
    int64_t end_us;
    VEC(struct history_policy) policy;
    VEC(struct history_machine) machines;
    VEC(struct history_outage) outages; /* by at_us; equal ones in the order of the file */
    VEC(struct history_gap) gaps;       /* likewise */
    VEC(struct history_job) jobs;       /* likewise, by submit_us */
};

/* Whether the text begins as a history does, so that its reader should have it. */
bool history_is(struct str text);
/* `file` is named in messages. ERROR_INVALID, ERROR_LIMIT. On failure *ret_history is untouched. */
int history_read(struct history *ret_history, struct str text, const char *file, struct error *error);
/* Appends the history as text. */
void history_write(const struct history *history, struct buf *out);
/* Brings outages, gaps and jobs into their order; of equal times the order stays. */
void history_order(struct history *history);
void history_done(struct history *history);

/* Replaces every name by another, the same for the same name: machines "m-1", racks "rack-1", jobs "job-1",
 * queues "queue-1", in the order of their first appearance. The date becomes 1970-01-01. Times, shapes, codes
 * and the policy stay. */
void history_anonymise(struct history *history);

/* The fates that the log saw, of all jobs with one. Chip-seconds where the name says so. */
struct history_seen_sum {
    uint64_t jobs, started, completed;
    int64_t restarts;
    double wait_s; /* of those that started */
    double held_chip_s, work_chip_s, redone_chip_s, lived_chip_s;
};

/* Sums for people. */
struct history_facts {
    uint64_t chips; /* of all machines */
    uint64_t ends[HISTORY_ENDS], crashes;
    uint64_t never_ran;             /* jobs without work */
    uint64_t outages, faults, open; /* dead or absent machines; faults; outages that had not ended */
    uint64_t absent;                /* outages from the very beginning: machines that came later */
    uint64_t overlaps;              /* outages that begin while the same machine is out already */
    double out_s;                   /* machine-seconds, overlaps counted once */
    double work_chip_s;             /* of all jobs */
    int64_t gap_us, silence_us;     /* sum of the gaps; the longest time without an entry ... */
    int64_t silence_at_us;          /* ... and its beginning */
    struct history_seen_sum seen;
};
void history_sum(const struct history *history, struct history_facts *ret_facts);

#endif
