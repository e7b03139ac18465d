/* fault_trace.h - a history of machine faults: reading it, what it says, and a job replayed in it.
 *
 * The form is that of InfiniteHBD-Trace (fault_trace.json): an array of events in the order of time,
 *
 *     {"node_id": "...", "event_time": 3.8955, "event_type": "fault_start" or "fault_end",
 *      "fault_type": {"Level": "Hardware Failure", "Class": "GPU", "Desc": "..."}}
 *
 * with times in days. Valid if and only if all events have these members, times are finite, not negative and
 * never fall, and every fault_end follows a fault_start of the same machine and fault type that has not ended
 * yet (the oldest one ends). Faults of one machine may overlap; the machine is down while one of them lasts.
 * A fault without an end lasts to the last event. Machines that never fail have no events: the caller says
 * how many there are in all.
 *
 * The replay runs one job that needs `needed` of the machines, whenever so many are up. The job is lost with
 * each machine of its own that fails: what was done since the last checkpoint is lost, machines that are up
 * take the place of the lost ones, chosen by chance, and the restart takes its time.
 */
#ifndef PHX_SIM_MODEL_FAULT_TRACE_H
#define PHX_SIM_MODEL_FAULT_TRACE_H

#include "base/arena.h"
#include "base/error.h"
#include "doc/doc.h"

enum { FAULT_TRACE_EVENTS_MAX = 2000000, FAULT_TRACE_OPEN_MAX = 64 };

struct trace_fault {
    uint32_t machine; /* 0 to machines - 1, in the order of first faults */
    uint32_t cause;   /* index */
    bool hardware;
    double start_days, end_days;
};
struct trace_cause {
    struct str name;
    uint32_t faults;
};
struct fault_trace {
    struct trace_fault *faults; /* by start */
    uint32_t count;
    uint32_t machines;          /* that had a fault */
    struct trace_cause *causes; /* by name of the class, in the order of first faults */
    uint32_t cause_count;
    double first_days, last_days; /* of the events */
};

/* Reads a document; all memory is the arena's, whose limit holds. ERROR_INVALID or ERROR_LIMIT with
 * "LINE:COLUMN: why". */
int fault_trace_read(struct arena *arena, const struct doc *events, struct fault_trace *ret_trace,
                     struct error *error);

struct fault_trace_facts {
    double rate, rate_low, rate_high; /* faults per 1,000 machine-days, bounds with confidence 0.95 */
    double hardware_rate;
    uint32_t hardware;            /* faults */
    uint32_t most;                /* faults of one machine */
    uint32_t with_five;           /* machines with five or more */
    double top_5, top_20, top_40; /* share of the faults on the machines with most faults */
    double variance_to_mean;      /* of faults of a machine: 1 where all fail alike */
    double none;                  /* share of machines without a fault */
    double gap_days, gap_cv;      /* mean time between two faults of the cluster; deviation / mean */
    uint32_t together;            /* faults that begin with the one before */
    double repair_days, repair_median_days, repair_p90_days, repair_max_days;
    double down; /* machines down, mean from the first event to the last */
    uint32_t down_p50, down_p95, down_p99, down_max;
};
/* machines: in all, at least trace->machines. Rates are over `days` from time 0, such as 348: whole days, as
 * traces are published. */
void fault_trace_facts(const struct fault_trace *trace, uint32_t machines, double days,
                       struct fault_trace_facts *ret_facts);

struct fault_replay_terms {
    uint32_t machines, needed; /* needed <= machines */
    double interval_days, restart_days;
    uint64_t seed;
};
struct fault_replay {
    double ettr;    /* kept / all time from the first event to the last */
    double waiting; /* share of time without enough machines */
    uint32_t interruptions;
};
void fault_trace_replay(const struct fault_trace *trace, const struct fault_replay_terms *terms,
                        struct fault_replay *ret_replay);

#endif
