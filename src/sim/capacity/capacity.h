/* capacity.h - START HERE: simulates months of a cluster in seconds. The controller's core and driver that
 * ship (src/drive) run between ports on a virtual clock, with machines that fail and jobs that arrive as a
 * scenario defines.
 *
 *     struct sim_scenario scenario;                        // scenario.h
 *     struct simulation_outcome outcome;
 *     simulation_run(&(struct simulation_options){.scenario = &scenario, .seed = 1}, &outcome);
 *
 * The story of a job. arrivals.c draws it and writes its JobSet, as a client would. The driver logs, applies
 * and answers the write. When the core places the job's gang, the driver sends a START to each machine
 * (fleet.c). A run (runs.c) is one attempt of the job's processes: all ranks are launched, load their state,
 * train, write checkpoints, and end. When a failure source (sources.c) strikes a machine, its processes die
 * and the run stands still. After the detection time, the machine's connections close or its probes report a
 * signal. The reaction (restart, move, quarantine, requeue) is the core's own. After the repair the machine
 * says Hello, or its signal ends. tally.c counts what happened; the core's ledger counts the same time by its
 * own rules.
 *
 * Simplifications, so that a month takes seconds:
 *   - a message arrives in the instant in which it is sent; launches, stops, detections and repairs take the
 *     time that the scenario gives;
 *   - ranks of a run act together, and report their step at the first one, at checkpoints, and at the end;
 *   - leases are an hour long and machines send two heartbeats in that time: a death is detected after the
 *     scenario's detection time, as closed connections;
 *   - the log keeps only a running hash of its records, unless the caller keeps the records.
 *
 * Files.
 *     scenario.c, scenario_cluster.c, scenario_jobs.c, scenario_queues.c, scenario_history.c, field.c, draw.c
 *                  the scenario and its random durations
 *     world.c      virtual time, the driver's ports, the loop
 *     arrivals.c   jobs: drawn or listed, and written
 *     fleet.c      machines: connections, orders, failures, repairs
 *     sources.c    when failures strike
 *     runs.c       the processes of one attempt of a job
 *     corruption.c wrong results that nobody has noticed yet
 *     tally.c      statistics
 *     study.c      many runs in separate processes: seeds and sweeps
 *     availability.c, packing.c, torus3d.c    closed forms of pods, and packing of slices, without time
 *
 * Pure except for study.c: a run is a function of its scenario and seed, so equal ones give equal digests on
 * every compiler. One thread.
 */
#ifndef PHX_SIM_CAPACITY_CAPACITY_H
#define PHX_SIM_CAPACITY_CAPACITY_H

#include "sim/capacity/scenario.h"

enum {
    SIMULATION_SAMPLES = 240,  /* points of the time series */
    SIMULATION_BUCKETS = 24,   /* job sizes: bucket b has 2^(b-1) < chips <= 2^b */
    SIMULATION_OWNERS_MAX = 32 /* owners in the ledger */
};

/* The outcome of a job, or its present state. */
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

/* Jobs of similar size. Fields named chip_..._s are chip-seconds, others named ..._s seconds. */
struct simulation_bucket {
    uint64_t jobs, fates[JOB_FATES];
    uint64_t starts;                                     /* attempts whose processes all ran */
    uint64_t started;                                    /* jobs with at least one such attempt */
    uint64_t interruptions;                              /* of runs, by failures of machines or processes */
    uint64_t preemptions;                                /* of runs, by the controller for other reasons */
    double wait_s, held_s;      /* wait until the first start; time from then to the end */
    double productive_s;        /* work that was kept, or may still be */
    double lost_s, chip_lost_s; /* work that was repeated */
    double written_s;                                    /* checkpoints */
    double chip_held_s, chip_productive_s, chip_lived_s; /* lived: from submission to end */
    double run_s, chip_run_s; /* time in which processes of all ranks ran: the exposure to failures */
};

/* Jobs of one queue, or of no queue. */
struct simulation_queue {
    struct simulation_bucket all;
    uint64_t preempted; /* number of times that a workload lost its quota to another */
    double wait_most_s; /* longest wait for a first start; for jobs that still wait, the wait so far */
};

struct simulation_sample {
    double at_s;
    uint32_t busy_chips, queued_chips, down_machines, running_jobs;
};

struct simulation_failure {
    uint64_t struck; /* machines that were healthy */
    uint64_t missed; /* strikes on machines that were already out */
    double out_s;    /* total time from failures to returns */
    /* Corruptions that were found, the time until then, and the work that jobs lost to them. */
    uint64_t found, found_by_jobs, rollbacks; /* rollbacks: of jobs to a checkpoint before the corruption */
    double hidden_s, lost_s, chip_lost_s;
    /* Jobs that ended with wrong results, and their work since then. */
    uint64_t wrong_jobs;
    double wrong_chip_s;
};

struct simulation_outcome {
    uint64_t seed, digest; /* digest: of all records and the final state */
    double duration_s;
    uint64_t records, turns, messages, heartbeats, events; /* events: of the simulated world */
    uint64_t jobs, refused;                                /* written; refused by the controller */
    uint64_t tasks_started;
    uint64_t preempted; /* workloads that lost their quota to another */
    struct simulation_bucket buckets[SIMULATION_BUCKETS];
    /* [0]: jobs without a queue; then the scenario's queues */
    struct simulation_queue queues[SCENARIO_QUEUES_MAX + 1];
    struct simulation_failure failures[SCENARIO_FAILURES_MAX];
    double busy_chip_s, down_chip_s, all_chip_s; /* integrals over the time */
    struct simulation_sample samples[SIMULATION_SAMPLES];
    uint32_t sample_count;
    uint32_t owner_count;
    double owner_chip_s[SIMULATION_OWNERS_MAX]; /* the ledger's account of the cluster */
    char owner_names[SIMULATION_OWNERS_MAX][24];
};

struct drive_record;
struct simulation_options {
    const struct sim_scenario *scenario;
    uint64_t seed;
    /* called SIMULATION_SAMPLES times, with the share done; NULL: not called */
    void (*progress)(void *context, double share);
    void *context;
    /* Receives the records of the controller's log (drive/ports.h). NULL: records are only hashed. */
    void (*keep)(void *keep_context, const struct drive_record *records, size_t count);
    void *keep_context;
};

/* Runs the scenario to its end. simulation_check() must have accepted the scenario. */
void simulation_run(const struct simulation_options *options, struct simulation_outcome *ret_outcome);
/* Checks that the core accepts the scenario's cluster document, queues and priorities. Returns 0, or
 * ERROR_INVALID with the first mistake. Messages name `file`, which is the scenario's. */
int simulation_check(const struct sim_scenario *scenario, const char *file, struct error *error);

/* Returns the sum of the bucket of jobs with `chips` chips and all larger buckets. */
struct simulation_bucket simulation_sum(const struct simulation_outcome *outcome, uint32_t chips);
/* Returns the ETTR without the wait in the queue: the share of chip-time since the first start with progress
 * that was kept. Returns NAN if nothing ran. */
double simulation_ettr(const struct simulation_bucket *bucket);
uint32_t simulation_bucket_of(uint32_t chips);

#endif
