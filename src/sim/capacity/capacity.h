/* capacity.h - START HERE: a cluster's months in seconds. The controller's core and driver that ship
 * (src/drive), between ports on a virtual clock, with machines that fail and jobs that arrive as a scenario
 * says.
 *
 *     struct sim_scenario scenario;                        // scenario.h
 *     struct simulation_outcome outcome;
 *     simulation_run(&(struct simulation_options){.scenario = &scenario, .seed = 1}, &outcome);
 *
 * The story of a job. arrivals.c draws it and writes its JobSet, as a client would. The driver logs, applies
 * and answers it; when the core places its gang, the driver sends a START to each machine (fleet.c). A run
 * (runs.c) is one attempt of the job's processes: all ranks are launched, load their state, train, write
 * checkpoints, and end. A failure source (sources.c) strikes a machine: its processes die, the run stands
 * still, and after the detection the machine's connections close or its probes report a signal. What the core
 * makes of that (restart, move, quarantine, requeue) is the core's own doing. After the repair the machine
 * says Hello, or its signal ends. tally.c counts what happened; the core's ledger counts the same time by its
 * own rules.
 *
 * Cheaper than life, so that a month takes seconds:
 *   - a message arrives in the instant in which it is sent; launches, stops, detections and repairs take the
 *     time that the scenario gives;
 *   - ranks of a run act together, and tell their step at the first one, at checkpoints, and at its end;
 *   - leases are an hour long and machines are heard of twice in that time: a death is found out when the
 *     scenario's detection says so, as closed connections;
 *   - the log keeps a running hash of its records, and nothing else, unless the caller keeps the records.
 *
 * Files.
 *     scenario.c, scenario_cluster.c, field.c, draw.c   the scenario and its random durations
 *     world.c      virtual time, the driver's ports, the loop
 *     arrivals.c   jobs: drawn or listed, and written
 *     fleet.c      machines: connections, orders, failures, repairs
 *     sources.c    when failures strike
 *     runs.c       the processes of one attempt of a job
 *     corruption.c wrong results that nobody sees yet
 *     tally.c      what is counted
 *     study.c      many runs in processes of their own: seeds and sweeps
 *     availability.c, packing.c, torus3d.c    closed forms of pods, and packing of slices, without time
 *
 * Pure but for study.c: a run is a function of its scenario and seed, so equal ones give equal digests on
 * every compiler. One thread.
 */
#ifndef PHX_SIM_CAPACITY_CAPACITY_H
#define PHX_SIM_CAPACITY_CAPACITY_H

#include "sim/capacity/scenario.h"

enum {
    SIMULATION_SAMPLES = 240,  /* points of the time series */
    SIMULATION_BUCKETS = 24,   /* sizes of jobs: bucket b has 2^(b-1) < chips <= 2^b */
    SIMULATION_OWNERS_MAX = 32 /* of the ledger */
};

/* How a job ended, or stands. */
enum job_fate {
    FATE_COMPLETED,
    FATE_FAILED,
    FATE_CANCELLED,
    FATE_GAVE_UP,
    FATE_RUNNING,
    FATE_WAITING,
    JOB_FATES
};
extern const char *const job_fate_names[JOB_FATES];

/* Jobs of about one size. Times of chips are in chip-seconds, others in seconds. */
struct simulation_bucket {
    uint64_t jobs, fates[JOB_FATES];
    uint64_t starts;                                     /* attempts whose processes all ran */
    uint64_t started;                                    /* jobs with at least one */
    uint64_t interruptions;                              /* of runs, by failures of machines or processes */
    uint64_t preemptions;                                /* of runs, by the controller for other reasons */
    double wait_s, held_s;                               /* to the first start; from there to the end */
    double productive_s;                                 /* work that is kept, or may still be */
    double lost_s, chip_lost_s;                          /* work that was done again */
    double written_s;                                    /* checkpoints */
    double chip_held_s, chip_productive_s, chip_lived_s; /* lived: from the submission to the end */
    double run_s, chip_run_s; /* processes of all ranks ran: the exposure to failures */
};

/* Jobs of one queue, or of none. */
struct simulation_queue {
    struct simulation_bucket all;
    uint64_t preempted; /* workloads that lost their quota to another one, each time */
    double wait_most_s; /* the longest wait for a first start, so far for those that wait */
};

struct simulation_sample {
    double at_s;
    uint32_t busy_chips, queued_chips, down_machines, running_jobs;
};

struct simulation_failure {
    uint64_t struck; /* machines that were well */
    uint64_t missed; /* strikes on machines that were out already */
    double out_s;    /* sum of the times from the failure to the return */
    /* Corruptions that were found, the time until then, and the work that jobs lost by them. */
    uint64_t found, found_by_jobs, rollbacks; /* rollbacks: of jobs, to a checkpoint before it */
    double hidden_s, lost_s, chip_lost_s;
    /* Jobs that ended with wrong results, and their work since then. */
    uint64_t wrong_jobs;
    double wrong_chip_s;
};

struct simulation_outcome {
    uint64_t seed, digest; /* of all records and the final state */
    double duration_s;
    uint64_t records, turns, messages, heartbeats, events; /* events: of the world */
    uint64_t jobs, refused;                                /* written; refused by the controller */
    uint64_t tasks_started;
    uint64_t preempted; /* workloads whose quota another one took */
    struct simulation_bucket buckets[SIMULATION_BUCKETS];
    struct simulation_queue queues[SCENARIO_QUEUES_MAX + 1]; /* [0]: of none; then the scenario's */
    struct simulation_failure failures[SCENARIO_FAILURES_MAX];
    double busy_chip_s, down_chip_s, all_chip_s; /* integrals over the time */
    struct simulation_sample samples[SIMULATION_SAMPLES];
    uint32_t sample_count;
    uint32_t owner_count;
    double owner_chip_s[SIMULATION_OWNERS_MAX]; /* the ledger's book of the cluster */
    char owner_names[SIMULATION_OWNERS_MAX][24];
};

struct drive_record;
struct simulation_options {
    const struct sim_scenario *scenario;
    uint64_t seed;
    void (*progress)(void *context, double share); /* about a hundred times; NULL: nobody looks */
    void *context;
    /* Takes the records of the controller's log (drive/ports.h); NULL: they are only hashed. */
    void (*keep)(void *keep_context, const struct drive_record *records, size_t count);
    void *keep_context;
};

/* Runs the scenario to its end. The scenario's cluster must be one that the core accepts: simulation_check
 * has said so. */
void simulation_run(const struct simulation_options *options, struct simulation_outcome *ret_outcome);
/* Whether the core takes the scenario's cluster document, queues and priorities: 0, or ERROR_INVALID with the
 * first of its mistakes; `file` is the scenario's, for messages. */
int simulation_check(const struct sim_scenario *scenario, const char *file, struct error *error);

/* Sums of all buckets, and of those from `chips` on. */
struct simulation_bucket simulation_sum(const struct simulation_outcome *outcome, uint32_t chips);
/* Share of the time of its chips, from the first start on, in which a job made progress that was kept: its
 * ETTR without the wait in the queue; NAN: nothing ran. */
double simulation_ettr(const struct simulation_bucket *bucket);
uint32_t simulation_bucket_of(uint32_t chips);

#endif
