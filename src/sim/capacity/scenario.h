/* scenario.h - what a simulation is about: a cluster, how its machines fail and are repaired, and its work
 * (docs/sim.md has the file for users).
 *
 *     struct sim_scenario scenario;
 *     if (sim_scenario_read(&scenario, document, path, &error) < 0)
 *         ... error.text is "FILE:LINE:COLUMN: path: what was expected, got what"
 *     sim_scenario_done(&scenario);
 *
 * Pure: reads no file. All times are seconds in `double`, or nanoseconds where the name says so. Part of
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
    SCENARIO_MATCHES_MAX = 1000,    /* names of one queue's `match` */
    SCENARIO_PRIORITIES_MAX = 1000, /* different ones of all jobs */
    SCENARIO_FILE_MAX = 1000,
};

/* The failures of a machine. */
enum failure_kind {
    FAILURE_CRASH,   /* the machine and all its processes die; the controller finds out after the detection */
    FAILURE_FAULT,   /* processes on the machine die, and its probes report `signal` after the detection */
    FAILURE_FALSE,   /* the probes report `signal` although nothing is broken */
    FAILURE_PROCESS, /* one process dies by itself; the machine is well */
    FAILURE_CORRUPTION, /* its results are wrong without any error, until a test or a job notices */
    FAILURE_KINDS
};
extern const char *const failure_kind_names[FAILURE_KINDS];

/* How a silent corruption is found out; the first of them counts. */
struct corruption_tests {
    double interval_s, coverage; /* all machines are tested so often, and a test finds it with this chance;
                                  * interval 0: none are */
    bool validates;              /* jobs validate their results: ... */
    struct draw validation;      /* ... they notice after so much training with wrong ones */
    bool detects;                /* something else finds it, after failure_model.detection */
};

struct failure_model {
    char name[SCENARIO_NAME_MAX + 1];
    enum failure_kind kind;
    struct draw life;     /* of one machine or rack, from its return to the failure */
    bool planned;         /* strikes only when sim_scenario.planned says so: `life` is unused */
    bool of_racks;        /* strikes all machines of a rack at once */
    double lemon_share;   /* of the machines are lemons ... */
    double lemon_factor;  /* ... that fail so many times as often */
    double infant_s;      /* for so long after the start or a repair ... */
    double infant_factor; /* ... failures are so many times as frequent */
    struct draw detection, repair;
    struct corruption_tests tests;      /* of FAILURE_CORRUPTION */
    char signal[SCENARIO_NAME_MAX + 1]; /* code of core/words/signal.h; "" of kinds without one */
};

/* A failure at a time that the scenario gives. */
struct planned_failure {
    uint32_t model, machine; /* machine: from 0 */
    double at_s, repair_s;   /* repair_s below 0: drawn */
    const char *signal;      /* in the scenario's arena; NULL: the model's */
};

/* Jobs of one size, by the paper's way: shares of all jobs and of all chip-time. */
struct job_size {
    uint32_t chips;
    double job_share, time_share;
};

struct workload_model {
    double jobs_per_day;  /* 0: no stream of jobs */
    double chip_hours;    /* of a job, mean */
    double runtime_sigma; /* of the logarithm of run times of one size */
    double runtime_max_s;
    struct job_size sizes[SCENARIO_SIZES_MAX];
    uint32_t size_count;
    double failed, cancelled; /* shares of jobs that end by their own fault, or by their user */
    /* How a job keeps its state. */
    double interval_s, write_s; /* between checkpoints; a write stops the job for so long */
    uint32_t checkpoint_chips;  /* smaller jobs write none */
    double launch_s, load_s;    /* from its start order to running processes; from there to the first step */
    double stop_s;              /* from a stop order to the end of a process */
    bool rejoins;               /* a process outlives the loss of its peers, and goes on when it is told */
    struct str annotations;     /* of each JobSet, a JSON object; in the scenario's arena */
    struct str command;         /* of each rank on real machines, a JSON array; likewise */
    uint32_t queue;             /* of the stream: 1 + its place; 0: none */
    int32_t priority;           /* likewise */
};

/* A job that a trace or a user's list names. */
struct listed_job {
    double submit_s, runtime_s; /* from the start of the simulation; work without failures */
    uint32_t chips;
    bool fails, cancelled; /* after its run time */
    uint32_t queue;        /* 1 + its place in the scenario's queues; 0: it goes through none */
    int32_t priority;      /* of its PriorityClass; 0: it has none */
    const struct history_job *known; /* of a cluster's history: its ranks, times and crashes; NULL: none */
};

/* Racks of the same kind, one after the other. */
struct scenario_racks {
    uint32_t count, machines, chips; /* of each rack; of each machine */
};

/* A ClusterQueue, and the LocalQueue of its name. Everything is in the scenario's arena. */
struct scenario_queue {
    struct str name, cohort; /* cohort empty: none */
    const struct str *match; /* the names that a trace has for it; "*": all that no queue matches */
    size_t match_count;
    int64_t quota, borrow, lend; /* chips; borrow, lend below 0: no limit */
    int32_t priority;            /* of jobs without one of their own */
    const struct doc *spec;      /* further fields of the ClusterQueue's spec; NULL: none */
    const char *at;              /* "FILE:LINE:COLUMN: queues[0]" */
};

/* The priority of a trace's QoS. */
struct scenario_class {
    struct str name; /* in the scenario's arena */
    int32_t priority;
};

/* A file of jobs that the scenario names; its reader is the caller's (sim_scenario_take_trace). */
struct trace_source {
    char file[SCENARIO_FILE_MAX + 1]; /* "": none; relative to the scenario's own folder */
    enum trace_format format;
    struct trace_terms terms;
    enum trace_tag queue;               /* which tag names the queue of a job */
    VEC(struct scenario_class) classes; /* priorities by QoS */
};

struct sim_scenario {
    char name[SCENARIO_NAME_MAX + 1];
    int64_t duration_ns;
    uint64_t seed;
    bool has_duration, has_racks; /* given by the file, and not by a trace */
    uint32_t machines, chips, machines_per_rack, spares_per_rack;
    VEC(struct scenario_racks) racks; /* of a trace; empty: by machines_per_rack, of `chips` */
    bool *spares;                     /* [machines] of a trace; in `arena`; NULL: by spares_per_rack */
    struct failure_model failures[SCENARIO_FAILURES_MAX];
    uint32_t failure_count;
    VEC(struct planned_failure) planned; /* in the order of the file */
    struct workload_model workload;
    VEC(struct listed_job) jobs; /* by submit_s */
    struct trace_source trace;
    VEC(struct scenario_queue) queues;
    VEC(int32_t) priorities;     /* that jobs have, ascending, without 0 */
    const struct doc *spec;      /* further fields of the cluster's spec; in `arena`; NULL: none */
    struct arena arena;
};

/* Reads a scenario; `file` is named in messages. On failure *ret_scenario is untouched. */
int sim_scenario_read(struct sim_scenario *ret_scenario, const struct doc *document, const char *file,
                      struct error *error);
void sim_scenario_done(struct sim_scenario *scenario);

/* Adds the trace's jobs that begin within the duration, in their queues. Jobs that can never fit the cluster
 * are left out; *ret_left_out is how many those are. `file` is the trace's, for messages; those about queues
 * name the scenario's. ERROR_INVALID: the scenario has queues, and none for
 * one of the trace. ERROR_LIMIT: too many priorities. */
int sim_scenario_take_trace(struct sim_scenario *scenario, const struct trace *trace, const char *file,
                            size_t *ret_left_out, struct error *error);

/* Adds a cluster's history (TRACE_PHALANX), which must outlive the scenario: its machines, where the file
 * has none of its own; its outages, those of one machine that overlap as one; its jobs; its policy, where the
 * file says nothing; its length. Jobs that never worked, have no chips or can never fit are left out;
 * *ret_left_out is how many those are. ERROR_INVALID: neither it nor the file has machines, there are too
 * many failures, or the file has queues and none for one of the history. */
int sim_scenario_take_history(struct sim_scenario *scenario, const struct history *history, const char *file,
                              size_t *ret_left_out, struct error *error);
/* Orders two struct listed_job by their submission, for qsort; equal ones by what they are. */
int scenario_by_submit(const void *a, const void *b);
/* Whether the scenario waits for its machines, which a history brings. */
bool sim_scenario_is_open(const struct sim_scenario *scenario);

/* The cluster document of the scenario, as JSON; appended. Not `simulated`: for `phalanx up`, with the
 * scenario's own lease, heartbeat and watch for hangs in place of the simulated world's. */
void sim_scenario_cluster(const struct sim_scenario *scenario, bool simulated, struct buf *out);

enum sim_object { SIM_FLAVOR, SIM_CLUSTER_QUEUE, SIM_LOCAL_QUEUE, SIM_PRIORITY_CLASS };

/* How jobs are divided into ranks: as few machines as hold them. */
struct job_shape {
    uint32_t ranks, chips; /* chips of each rank */
};
struct job_shape sim_scenario_shape(const struct sim_scenario *scenario, const struct listed_job *job);
/* The JobSet of the job with this number, counted from 0, as JSON; appended. */
void sim_scenario_jobset(const struct sim_scenario *scenario, const struct listed_job *job, uint64_t number,
                         struct buf *out);
/* The objects that exist before the first job: a ResourceFlavor, the queues, and a PriorityClass for each
 * priority. */
size_t sim_scenario_object_count(const struct sim_scenario *scenario);
/* Appends the object as JSON. *ret_at: the place of the queue that it is of; NULL: it is of none. */
void sim_scenario_object(const struct sim_scenario *scenario, size_t number, struct buf *out,
                         enum sim_object *ret_kind, const char **ret_at);
/* The name of the PriorityClass of that value. */
void sim_scenario_class_name(int32_t priority, char ret_name[32]);
/* Whether all that happens has a time of its own, and can be made to happen on real machines: no job or
 * failure is drawn, and no result is silently wrong. */
bool sim_scenario_is_planned(const struct sim_scenario *scenario);

/* The job mix of RSC-1 (arXiv 2410.21680, Fig. 6 and Table 1): 7,200 jobs a day of 44.3 chip-hours. */
void sim_scenario_paper_mix(struct workload_model *workload);

#endif
