/* scenario.h - the subject of a simulation: a cluster, how its machines fail and are repaired, and its jobs
 * (docs/sim.md describes the file for users).
 *
 *     struct sim_scenario scenario;
 *     if (sim_scenario_read(&scenario, document, path, &error) < 0)
 *         ... error.text is "FILE:LINE:COLUMN: path: what was expected, got what"
 *     sim_scenario_done(&scenario);
 *
 * No function reads files. All times are seconds in `double`, or nanoseconds if the name says so. Part of
 * src/sim/capacity.
 */
#ifndef PHX_SIM_CAPACITY_SCENARIO_H
#define PHX_SIM_CAPACITY_SCENARIO_H

#include "base/error.h"
#include "base/vec.h"
#include "doc/doc.h"
#include "sim/capacity/draw.h"
#include "sim/trace/history.h"
#include "sim/trace/trace.h"

enum {
    SCENARIO_MACHINES_MAX = 131072,
    SCENARIO_FAILURES_MAX = 16,
    SCENARIO_SIZES_MAX = 64,
    SCENARIO_JOBS_MAX = 20000000,
    SCENARIO_NAME_MAX = 63,
    SCENARIO_QUEUES_MAX = 64,
    SCENARIO_QUEUE_NAME_MAX = 50,
    SCENARIO_MATCHES_MAX = 1000,    /* names in one queue's `match` */
    SCENARIO_PRIORITIES_MAX = 1000, /* different priorities of all jobs */
    SCENARIO_FILE_MAX = 1000,
};

/* The kinds of failures of a machine. */
enum failure_kind {
    FAILURE_CRASH, /* machine and processes die; the controller learns of it after the detection time */
    FAILURE_FAULT, /* processes on the machine die, and its probes report `signal` after the detection time */
    FAILURE_FALSE, /* the probes report `signal` although nothing is broken */
    FAILURE_PROCESS,    /* one process dies by itself; the machine is well */
    FAILURE_CORRUPTION, /* results are wrong without any error, until a test or a job notices */
    FAILURE_KINDS
};
extern const char *const failure_kind_names[FAILURE_KINDS];

/* How a silent corruption is detected; whichever succeeds first counts. */
struct corruption_tests {
    /* time between two tests of a machine, and the chance that a test finds the corruption; interval 0: no
     * tests */
    double interval_s, coverage;
    bool validates;         /* jobs validate their results */
    struct draw validation; /* training time with wrong results until a job notices */
    bool detects;           /* another mechanism finds it, after failure_model.detection */
};

struct failure_model {
    char name[SCENARIO_NAME_MAX + 1];
    enum failure_kind kind;
    struct draw life;     /* of one machine or rack, from its return to its next failure */
    bool planned;         /* strikes only as listed in sim_scenario.planned; `life` is unused */
    bool of_racks;        /* strikes all machines of a rack at once */
    double lemon_share;   /* share of machines that are lemons */
    double lemon_factor;  /* lemons fail this many times as often */
    double infant_s;      /* length of the infant period after the start or a repair */
    double infant_factor; /* failures in the infant period are this many times as frequent */
    struct draw detection, repair;
    struct corruption_tests tests;      /* for FAILURE_CORRUPTION */
    char signal[SCENARIO_NAME_MAX + 1]; /* code as in core/words/signal.h; for kinds that report one */
};

/* A failure at a time that the scenario gives. */
struct planned_failure {
    uint32_t model, machine; /* machine: counted from 0 */
    double at_s, repair_s;   /* repair_s below 0: drawn */
    const char *signal;      /* in the scenario's arena; NULL: the model's */
};

/* Jobs of one size, described as in the paper: their shares of all jobs and of all chip-time. */
struct job_size {
    uint32_t chips;
    double job_share, time_share;
};

struct workload_model {
    double jobs_per_day;  /* 0: no stream of jobs */
    double chip_hours;    /* mean of a job */
    double runtime_sigma; /* standard deviation of the logarithm of run times of one size */
    double runtime_max_s;
    struct job_size sizes[SCENARIO_SIZES_MAX];
    uint32_t size_count;
    double failed, cancelled; /* shares of jobs that fail by themselves, or are cancelled by their user */
    /* How a job keeps its state. */
    double interval_s, write_s; /* time between checkpoints; time for which a write stops the job */
    uint32_t checkpoint_chips;  /* smaller jobs write none */
    double launch_s, load_s;    /* from the start order to running processes; from then to the first step */
    double stop_s;              /* from a stop order to the end of a process */
    bool rejoins;               /* a process survives the loss of its peers, and continues when told */
    struct str annotations;     /* annotations of each JobSet, a JSON object; in the scenario's arena */
    struct str command;         /* command of each rank on real machines, a JSON array; in the arena */
    uint32_t queue;             /* queue of the stream's jobs: 1 + its index; 0: none */
    int32_t priority;           /* of the stream's jobs; 0: none */
};

/* A job of a trace or of a user's list. */
struct listed_job {
    double submit_s, runtime_s; /* submission, from the start of the simulation; work without failures */
    uint32_t chips;
    bool fails, cancelled; /* after its run time */
    uint32_t queue;        /* 1 + its index in the scenario's queues; 0: none */
    int32_t priority;      /* value of its PriorityClass; 0: none */
    const struct history_job *known; /* its ranks, times and crashes in a cluster's history; NULL: none */
};

/* Racks of the same kind, one after the other. */
struct scenario_racks {
    uint32_t count, machines, chips; /* of each rack; of each machine */
};

/* A ClusterQueue, and the LocalQueue with the same name. All memory is in the scenario's arena. */
struct scenario_queue {
    struct str name, cohort; /* cohort empty: none */
    const struct str *match; /* names of the queue in a trace; "*": all names that no queue matches */
    size_t match_count;
    int64_t quota, borrow, lend; /* chips; borrow, lend below 0: no limit */
    int32_t priority;            /* of jobs without a priority */
    const struct doc *spec;      /* further fields of the ClusterQueue's spec; NULL: none */
    const char *at;              /* its place, such as "FILE:LINE:COLUMN: queues[0]" */
};

/* The priority of a trace's QoS. */
struct scenario_class {
    struct str name; /* in the scenario's arena */
    int32_t priority;
};

/* A file of jobs that the scenario names. The caller reads it, see sim_scenario_take_trace(). */
struct trace_source {
    char file[SCENARIO_FILE_MAX + 1]; /* relative to the scenario's folder; "": none */
    enum trace_format format;
    struct trace_terms terms;
    enum trace_tag queue;               /* the tag that names the queue of a job */
    VEC(struct scenario_class) classes; /* priorities by QoS */
};

struct sim_scenario {
    char name[SCENARIO_NAME_MAX + 1];
    int64_t duration_ns;
    uint64_t seed;
    bool has_duration, has_racks; /* given by the file, not by a trace */
    uint32_t machines, chips, machines_per_rack, spares_per_rack;
    /* from a trace; empty: racks of machines_per_rack machines with `chips` each */
    VEC(struct scenario_racks) racks;
    bool *spares; /* [machines], from a trace; in `arena`; NULL: spares_per_rack decides */
    struct failure_model failures[SCENARIO_FAILURES_MAX];
    uint32_t failure_count;
    VEC(struct planned_failure) planned; /* in the order of the file */
    struct workload_model workload;
    VEC(struct listed_job) jobs; /* sorted by submit_s */
    struct trace_source trace;
    VEC(struct scenario_queue) queues;
    VEC(int32_t) priorities;     /* priorities of all jobs, ascending, without 0 */
    const struct doc *spec;      /* further fields of the cluster's spec; in `arena`; NULL: none */
    struct arena arena;
};

/* Reads a scenario. Messages name `file`. Returns ERROR_INVALID or ERROR_LIMIT, and leaves *ret_scenario
 * untouched then. Free the scenario with sim_scenario_done(). */
int sim_scenario_read(struct sim_scenario *ret_scenario, const struct doc *document, const char *file,
                      struct error *error);
void sim_scenario_done(struct sim_scenario *scenario);

/* Adds the trace's jobs that are submitted within the duration, in their queues. Jobs that can never fit the
 * cluster are left out and counted in *ret_left_out. Messages name `file`, which is the trace's; messages
 * about queues name the scenario's file. Returns ERROR_INVALID if the scenario has queues, but none for a job
 * of the trace, and ERROR_LIMIT for too many priorities. */
int sim_scenario_take_trace(struct sim_scenario *scenario, const struct trace *trace, const char *file,
                            size_t *ret_left_out, struct error *error);

/* Adds a cluster's history (TRACE_PHALANX), which must outlive the scenario: its outages, with overlapping
 * ones of a machine merged, and its jobs; also its machines, policy and length, as far as the file does not
 * give them. Jobs that never worked, have no chips or can never fit are left out and counted in
 * *ret_left_out. Returns ERROR_INVALID if neither the history nor the file has machines, if there are too
 * many failures, or if the file has queues but none for a job of the history. */
int sim_scenario_take_history(struct sim_scenario *scenario, const struct history *history, const char *file,
                              size_t *ret_left_out, struct error *error);
/* Compares two struct listed_job for qsort(): by submission, then by their other fields. */
int scenario_by_submit(const void *a, const void *b);
/* Returns whether the scenario has no machines yet, because a history gives them. */
bool sim_scenario_is_open(const struct sim_scenario *scenario);

/* Appends the scenario's cluster document as JSON. If not `simulated`, the document is for `phalanx up`, with
 * the scenario's own lease, heartbeat and hang detection instead of those of the simulated world. */
void sim_scenario_cluster(const struct sim_scenario *scenario, bool simulated, struct buf *out);

enum sim_object { SIM_FLAVOR, SIM_CLUSTER_QUEUE, SIM_LOCAL_QUEUE, SIM_PRIORITY_CLASS };

/* How a job is divided into ranks, on as few machines as possible. */
struct job_shape {
    uint32_t ranks, chips; /* chips of each rank */
};
struct job_shape sim_scenario_shape(const struct sim_scenario *scenario, const struct listed_job *job);
/* Appends the JobSet of a job as JSON. `number` is the job's number, from 0. */
void sim_scenario_jobset(const struct sim_scenario *scenario, const struct listed_job *job, uint64_t number,
                         struct buf *out);
/* Returns the number of objects that exist before the first job: a ResourceFlavor, the queues, and a
 * PriorityClass for each priority. */
size_t sim_scenario_object_count(const struct sim_scenario *scenario);
/* Appends the object with this number as JSON. *ret_at is the place of its queue in the file, or NULL if it
 * belongs to none. */
void sim_scenario_object(const struct sim_scenario *scenario, size_t number, struct buf *out,
                         enum sim_object *ret_kind, const char **ret_at);
/* Writes the name of the PriorityClass with this value. */
void sim_scenario_class_name(int32_t priority, char ret_name[32]);
/* Returns whether all jobs and failures are listed with their times, so that the scenario can be carried out
 * on real machines. Random ones, and silent corruptions, are not allowed. */
bool sim_scenario_is_planned(const struct sim_scenario *scenario);

/* Sets the job mix of RSC-1 (arXiv 2410.21680, Fig. 6 and Table 1): 7,200 jobs a day of 44.3 chip-hours. */
void sim_scenario_paper_mix(struct workload_model *workload);

#endif
