/* fault_trace.h - a history of machine faults: a reader, statistics, and the replay of a job.
 *
 * The format is that of InfiniteHBD-Trace (fault_trace.json): an array of events in the order of time,
 *
 *     {"node_id": "...", "event_time": 3.8955, "event_type": "fault_start" or "fault_end",
 *      "fault_type": {"Level": "Hardware Failure", "Class": "GPU", "Desc": "..."}}
 *
 * with times in days. Valid if and only if all events have these members, times are finite, not negative and
 * never decrease, and every fault_end follows a fault_start of the same machine and fault type that has not
 * ended yet (the oldest one ends). Faults of one machine may overlap; the machine is down while any of them
 * lasts. A fault without an end lasts until the last event. Machines that never fail have no events, so the
 * caller gives the total number of machines.
 *
 * The replay runs one job on `needed` of the machines, whenever so many are up. The job fails with each of
 * its machines: work since the last checkpoint is lost, random machines that are up replace the failed ones,
 * and the restart takes its time.
 */
#ifndef PHX_SIM_MODEL_FAULT_TRACE_H
#define PHX_SIM_MODEL_FAULT_TRACE_H

#include "base/arena.h"
#include "base/error.h"
#include "doc/doc.h"

enum { FAULT_TRACE_EVENTS_MAX = 2000000, FAULT_TRACE_OPEN_MAX = 64 };

struct trace_fault {
    uint32_t machine; /* 0 to machines - 1, in the order of their first faults */
    uint32_t cause;   /* index in `causes` */
    bool hardware;
    double start_days, end_days;
};
struct trace_cause {
    struct str name;
    uint32_t faults;
};
struct fault_trace {
    struct trace_fault *faults; /* sorted by start */
    uint32_t count;
    uint32_t machines;          /* machines that had a fault */
    struct trace_cause *causes; /* one for each class, in the order of their first faults */
    uint32_t cause_count;
    double first_days, last_days; /* times of the first and last event */
};

/* Reads a document. All memory comes from the arena, within its limit; strings may point into `events`.
 * Returns ERROR_INVALID or ERROR_LIMIT with "LINE:COLUMN: why". */
int fault_trace_read(struct arena *arena, const struct doc *events, struct fault_trace *ret_trace,
                     struct error *error);

struct fault_trace_facts {
    double rate, rate_low, rate_high; /* faults per 1,000 machine-days, and its 95 % confidence bounds */
    double hardware_rate;
    uint32_t hardware;            /* faults */
    uint32_t most;                /* largest number of faults of one machine */
    uint32_t with_five;           /* machines with five or more */
    double top_5, top_20, top_40; /* share of the faults on the machines with most faults */
    double variance_to_mean;      /* of the faults per machine; 1 if all machines fail at the same rate */
    double none;                  /* share of machines without a fault */
    double gap_days, gap_cv;      /* mean time between two faults of the cluster; deviation / mean */
    uint32_t together;            /* faults that begin at the same time as the previous one */
    double repair_days, repair_median_days, repair_p90_days, repair_max_days;
    double down; /* mean number of machines down from the first event to the last */
    uint32_t down_p50, down_p95, down_p99, down_max;
};
/* Computes the statistics. `machines` is the total number, at least trace->machines. Rates are over `days`
 * from time 0: the whole days that the published trace covers, such as 348. */
void fault_trace_facts(const struct fault_trace *trace, uint32_t machines, double days,
                       struct fault_trace_facts *ret_facts);

struct fault_replay_terms {
    uint32_t machines, needed; /* needed <= machines */
    double interval_days, restart_days;
    uint64_t seed;
};
struct fault_replay {
    double ettr;    /* kept work / time from the first event to the last */
    double waiting; /* share of time without enough machines */
    uint32_t interruptions;
};
void fault_trace_replay(const struct fault_trace *trace, const struct fault_replay_terms *terms,
                        struct fault_replay *ret_replay);

#endif
