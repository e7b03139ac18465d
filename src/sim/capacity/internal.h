/* internal.h - the simulated world of one scenario. Private to src/sim/capacity; see capacity.h. */
#ifndef PHX_SIM_CAPACITY_INTERNAL_H
#define PHX_SIM_CAPACITY_INTERNAL_H

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/units.h"
#include "core/core.h"
#include "drive/drive.h"
#include "sim/capacity/capacity.h"

/* --- what falls due ------------------------------------------------------------------------------- */

enum due_kind {
    DUE_ARRIVAL,    /* the next job */
    DUE_RUN,        /* the next phase of a run */
    DUE_STOP,       /* processes of a run that were told to stop end */
    DUE_STRIKE,     /* a failure source */
    DUE_MACHINE,    /* a machine's failure is detected, or the machine returns */
    DUE_ERRAND,     /* a machine's errand ends */
    DUE_HEARTBEATS, /* all machines send heartbeats */
    DUE_SAMPLE,     /* the next point of the time series */
    DUE_KINDS
};
/* A timer, embedded in its subject. Not in the heap while nothing is due. */
struct due {
    struct heap_node node; /* key: virtual ns; tie: order of setting */
    enum due_kind kind;
};

/* --- jobs and runs -------------------------------------------------------------------------------- */

struct sim_job {
    uint64_t number;
    obj_id uid;                          /* uid of its JobSet; 0: no reply yet */
    const struct history_job *known;     /* its entry in a history; NULL: none */
    int64_t launch_ns, load_ns, stop_ns; /* as in struct workload_model */
    int64_t interval_ns, write_ns; /* time between checkpoints, and for a write; interval 0: it writes none */
    int64_t trained_ns;            /* time of steps so far, without the current stretch of training */
    uint32_t next_crash;           /* index in known->crashes_us */
    uint32_t chips, width, chips_of_rank, bucket;
    uint32_t queue;              /* 1 + its index in the scenario's queues; 0: none */
    enum job_fate plan;          /* how it ends if nothing interrupts it */
    bool ended;                  /* its work has ended: it waits for the JobSet's removal */
    int64_t submit_ns, first_ns; /* first_ns: when all its processes first ran; 0: never */
    int64_t work_ns;             /* work of the whole job */
    int64_t saved_ns;            /* work in the newest checkpoint that all ranks have written */
    int64_t best_ns;             /* most work ever done, kept or not */
    int64_t lost_ns, written_ns; /* so far */
    int64_t run_ns;              /* time of ended runs */
    uint32_t starts, interruptions, preemptions;
    struct run *run; /* of the newest attempt; NULL: none */
    /* Wrong results (corruption.c). */
    uint32_t wrong_by;     /* 1 + the machine that caused them; 0: results are right */
    uint32_t wrong_model;  /* failure model of that machine */
    int64_t wrong_from_ns; /* work from which on results are wrong */
    int64_t right_ns;      /* work in the newest checkpoint without wrong results */
    int64_t notice_ns;     /* trained_ns at which the job notices; INT64_MAX: never */
};

enum rank_state {
    RANK_WAITS,    /* waits for chips of an ending process */
    RANK_LAUNCHED, /* told to start */
    RANK_RUNS,
    RANK_STOPS,   /* told to stop */
    RANK_CRASHED, /* dead, and not reported by its agent yet */
};
/* A process on a machine. */
struct rank {
    obj_id task;
    struct run *run;
    uint32_t machine, place; /* place: index in run->ranks */
    enum rank_state state;
    bool rejoins; /* RANK_LAUNCHED: it survived from the previous attempt */
    uint64_t chips;
    struct list_node on_machine;
};

enum run_phase {
    RUN_LAUNCHING, /* not all ranks' processes run */
    RUN_LOADING,
    RUN_TRAINING,
    RUN_WRITING, /* a checkpoint */
    RUN_STANDS,  /* stands still: a rank is lost, or was told to stop */
    RUN_ENDED,   /* its processes have ended by themselves */
};
/* One attempt of a job's processes. Freed with its last rank. */
struct run {
    struct due due, stop;
    struct sim_job *job;
    int32_t attempt;
    uint32_t world;
    enum run_phase phase;
    bool drains;         /* was asked to save as soon as possible */
    int64_t whole_ns;    /* when all ranks began to run; 0: not yet */
    int64_t since_ns;    /* RUN_TRAINING: when this stretch began */
    int64_t work_ns;     /* work done when this stretch began */
    int64_t restored_ns; /* work restored at its start */
    VEC(struct rank *) ranks;
};

/* --- machines ------------------------------------------------------------------------------------- */

enum machine_condition {
    MACHINE_WELL,
    MACHINE_HIDDEN, /* it has failed, and the controller does not know it yet */
    MACHINE_OUT,    /* the controller knows; it is under repair */
};
struct sim_node {
    struct due due, errand;
    enum machine_condition condition;
    bool connected, dead; /* dead: no process runs on it */
    uint32_t model;       /* of the failure */
    uint64_t reports;     /* number of the newest REPORTS message */
    uint64_t connection;
    int64_t failed_ns;
    double repair_s;    /* of the current failure; below 0: drawn */
    const char *signal; /* signal of the current failure; NULL: its model's */
    uint64_t busy;      /* bits: chips that processes hold */
    obj_id errand_uid; /* 0: none */
    struct list_node ranks;
};

struct source {
    struct due due;
    uint32_t model, first, count;          /* first, count: the machines that it strikes */
    double factor;                         /* failure rate relative to a good machine */
    const struct planned_failure *planned; /* its only strike; NULL: random strikes */
};

/* --- the world ------------------------------------------------------------------------------------ */

struct simulation_world {
    const struct sim_scenario *scenario;
    const struct simulation_options *options;
    struct simulation_outcome *outcome;
    int64_t now_ns, began_ns, end_ns;
    struct heap due;
    uint64_t next_tie;
    struct rng arrivals, lives, times; /* separate streams, so that draws of one do not shift another */
    /* the controller */
    struct core *core;
    struct driver *driver;
    struct effects checked; /* of core_check_write */
    uint64_t record_hash;
    /* machines */
    struct sim_node *nodes;
    struct source *sources;
    size_t source_count;
    struct due heartbeats;
    /* jobs */
    struct due arrival;
    uint64_t jobs_made;
    size_t next_listed;
    int64_t next_arrival_ns;
    struct u64_map jobs_by_uid;
    struct u64_map jobs_by_number; /* jobs whose JobSet exists */
    VEC(struct sim_job *) live;    /* in no order */
    struct u64_map live_places;    /* number -> 1 + index in `live` */
    struct u64_map ranks;          /* task -> rank */
    /* statistics */
    struct due sample;
    int64_t counted_ns; /* time up to which integrals are computed */
    uint32_t busy_chips, down_machines, down_chips, whole_runs;
};

/* world.c */
void due_set(struct simulation_world *world, struct due *due, enum due_kind kind, int64_t at_ns);
void due_drop(struct simulation_world *world, struct due *due);
void world_say(struct simulation_world *world, uint32_t machine, const struct from_agent *message);

/* arrivals.c */
void arrivals_begin(struct simulation_world *world);
/* Writes the objects that jobs need: queues and PriorityClasses. arrivals_check() must have accepted them. */
void arrivals_prepare(struct simulation_world *world);
/* Checks that the core accepts these objects. Returns ERROR_INVALID with the place of the queue. */
int arrivals_check(struct simulation_world *world, struct error *error);
void arrivals_due(struct simulation_world *world);
void arrivals_reply(struct simulation_world *world, uint64_t number, const struct effect *effect);
void arrivals_cancel(struct simulation_world *world, struct sim_job *job); /* its user deletes the JobSet */
void arrivals_gone(struct simulation_world *world, obj_id jobset);         /* the JobSet was removed */
void arrivals_done(struct simulation_world *world);

/* fleet.c */
void fleet_begin(struct simulation_world *world);
void fleet_hello(struct simulation_world *world, uint32_t machine);
void fleet_heartbeats(struct simulation_world *world);
void fleet_told(struct simulation_world *world, uint32_t machine, const struct from_controller *message);
void fleet_closed(struct simulation_world *world, uint32_t machine); /* by the driver */
/* Strikes a machine. If `planned` is NULL the strike is random, and the repair time is drawn. */
void fleet_strike(struct simulation_world *world, uint32_t machine, uint32_t model,
                  const struct planned_failure *planned);
void fleet_due(struct simulation_world *world, uint32_t machine);
void fleet_errand_due(struct simulation_world *world, uint32_t machine);
void fleet_report(struct simulation_world *world, uint32_t machine, struct task_report *items, size_t count);
void fleet_done(struct simulation_world *world);

/* sources.c */
void sources_begin(struct simulation_world *world);
void sources_due(struct simulation_world *world, struct source *source);
void sources_renew(struct simulation_world *world, uint32_t machine); /* it returns from a repair */
void sources_done(struct simulation_world *world);

/* runs.c */
void runs_start(struct simulation_world *world, uint32_t machine, const struct task_launch *launch);
void runs_stop(struct simulation_world *world, uint32_t machine, const struct task_stop *stop);
/* Continues a process in another attempt. */
void runs_rejoin(struct simulation_world *world, const struct task_rejoin *order);
void runs_notice(struct simulation_world *world, const struct task_notice *notice);
void runs_due(struct simulation_world *world, struct run *run);
void runs_stop_due(struct simulation_world *world, struct run *run);
/* Ends a rank's process by a failure. The run stands still, after its ranks have reported their steps. */
void runs_crash(struct simulation_world *world, struct rank *rank);
/* Frees a rank whose machine is dead, or whose end was reported. */
void runs_forget(struct simulation_world *world, struct rank *rank);
void runs_done(struct simulation_world *world);

/* corruption.c */
/* Returns whether the machine's results are wrong and not detected yet. */
bool corruption_hides(const struct simulation_world *world, uint32_t machine);
/* Draws the time from the beginning of a corruption until a test or another mechanism finds it; INT64_MAX if
 * none does. */
int64_t corruption_found_ns(struct simulation_world *world, const struct failure_model *failure);
/* Called when the machine's results become wrong. */
void corruption_begins(struct simulation_world *world, uint32_t machine);
/* Called when a run begins to train at run->restored_ns. */
void corruption_run_trains(struct simulation_world *world, struct run *run);
/* Called when a checkpoint of the run's work_ns was written. */
void corruption_run_saved(struct run *run);
/* Called when the corruption of the machine is found: jobs with wrong results stop, and go back to a
 * checkpoint from before it. */
void corruption_found(struct simulation_world *world, uint32_t machine);
/* Called when a job's work has ended; counts it if its results are wrong. */
void corruption_job_ended(struct simulation_world *world, const struct sim_job *job);
/* runs.c: sets the timer of a run that trains, after the job's notice_ns has changed. */
void runs_look_again(struct simulation_world *world, struct run *run);
/* runs.c: returns the work that the job has done so far and might still keep. */
int64_t runs_work(const struct simulation_world *world, const struct sim_job *job);
/* runs.c: makes a process of the run fail: the one on that machine, or else the first. */
void runs_fail(struct simulation_world *world, struct run *run, uint32_t machine);
/* fleet.c: detects the machine's hidden failure now. */
void fleet_notice(struct simulation_world *world, uint32_t machine);

/* tally.c */
/* updates the integrals; call before their inputs change */
void tally_advance(struct simulation_world *world);
void tally_sample(struct simulation_world *world);
void tally_job(struct simulation_world *world, struct sim_job *job, enum job_fate fate);
void tally_end(struct simulation_world *world);

#endif
