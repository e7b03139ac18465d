/* internal.h - the simulated world of one scenario. Private to src/sim/capacity; capacity.h has the story. */
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
    DUE_RUN,        /* the next step of a run's life */
    DUE_STOP,       /* a run's processes that were told to stop end */
    DUE_STRIKE,     /* a failure source */
    DUE_MACHINE,    /* a machine's failure is found out, or it returns */
    DUE_ERRAND,     /* a machine's errand ends */
    DUE_HEARTBEATS, /* all machines are heard of */
    DUE_SAMPLE,     /* the next point of the time series */
    DUE_KINDS
};
/* A part of what it is about. Not in the heap: nothing is due. */
struct due {
    struct heap_node node; /* key: virtual ns; tie: order of setting */
    enum due_kind kind;
};

/* --- jobs and runs -------------------------------------------------------------------------------- */

struct sim_job {
    uint64_t number;
    obj_id uid; /* of its JobSet; 0: not answered yet */
    const struct history_job *known;     /* its line of a history; NULL: none */
    int64_t launch_ns, load_ns, stop_ns; /* as struct workload_model has them */
    int64_t interval_ns, write_ns;       /* of its checkpoints; interval 0: it writes none */
    int64_t trained_ns;                  /* time of steps so far, without the present stretch */
    uint32_t next_crash;                 /* of known->crashes_us */
    uint32_t chips, width, chips_of_rank, bucket;
    uint32_t queue;              /* 1 + its place in the scenario's queues; 0: none */
    enum job_fate plan;          /* how it ends if nothing happens to it */
    bool ended;                  /* its own part is over: it waits for the JobSet's removal */
    int64_t submit_ns, first_ns; /* first_ns 0: its processes never all ran */
    int64_t work_ns;             /* that it has to do */
    int64_t saved_ns;            /* work in the newest checkpoint that all ranks have written */
    int64_t best_ns;             /* work that was done, whether it was kept or not */
    int64_t lost_ns, written_ns; /* so far */
    int64_t run_ns;              /* so far, of runs that are over */
    uint32_t starts, interruptions, preemptions;
    struct run *run; /* the newest attempt's; NULL: none */
    /* Wrong results (corruption.c). */
    uint32_t wrong_by;     /* 1 + the machine that made them; 0: they are right */
    uint32_t wrong_model;  /* of that machine's failure */
    int64_t wrong_from_ns; /* work from which on they are wrong */
    int64_t right_ns;      /* work in the newest checkpoint from before */
    int64_t notice_ns;     /* the job notices when trained_ns is this; INT64_MAX: it does not */
};

enum rank_state {
    RANK_WAITS,    /* for chips that an ending process has */
    RANK_LAUNCHED, /* told to start */
    RANK_RUNS,
    RANK_STOPS,   /* told to stop */
    RANK_CRASHED, /* dead, and its agent has not said so */
};
/* A process on a machine. */
struct rank {
    obj_id task;
    struct run *run;
    uint32_t machine, place; /* place: in run->ranks */
    enum rank_state state;
    bool rejoins; /* LAUNCHED: it has lived on from the attempt before */
    uint64_t chips;
    struct list_node on_machine;
};

enum run_phase {
    RUN_LAUNCHING, /* not all ranks' processes run */
    RUN_LOADING,
    RUN_TRAINING,
    RUN_WRITING, /* a checkpoint */
    RUN_STANDS,  /* a rank is lost, or told to stop */
    RUN_ENDED,   /* its processes have ended by themselves */
};
/* One attempt of a job's processes. Freed with its last rank. */
struct run {
    struct due due, stop;
    struct sim_job *job;
    int32_t attempt;
    uint32_t world;
    enum run_phase phase;
    bool drains;         /* asked to save as soon as it can */
    int64_t whole_ns;    /* since when all ranks run; 0: not yet */
    int64_t since_ns;    /* TRAINING: since when ... */
    int64_t work_ns;     /* ... with this work done then */
    int64_t restored_ns; /* work with which it began */
    VEC(struct rank *) ranks;
};

/* --- machines ------------------------------------------------------------------------------------- */

enum machine_condition {
    MACHINE_WELL,
    MACHINE_HIDDEN, /* it has failed, and the controller does not know */
    MACHINE_OUT,    /* the controller knows; it is under repair */
};
struct sim_node {
    struct due due, errand;
    enum machine_condition condition;
    bool connected, dead; /* dead: nothing runs on it */
    uint32_t model;       /* of the failure */
    uint64_t reports;     /* number of the newest reports message */
    uint64_t connection;
    int64_t failed_ns;
    double repair_s;   /* of the present failure; below 0: drawn */
    const char *signal; /* of the present failure; NULL: its model's */
    uint64_t busy;     /* chips of processes */
    obj_id errand_uid; /* 0: none */
    struct list_node ranks;
};

struct source {
    struct due due;
    uint32_t model, first, count; /* machines that it strikes */
    double factor;                /* of a lemon */
    const struct planned_failure *planned; /* the one strike of it; NULL: by chance */
};

/* --- the world ------------------------------------------------------------------------------------ */

struct simulation_world {
    const struct sim_scenario *scenario;
    const struct simulation_options *options;
    struct simulation_outcome *outcome;
    int64_t now_ns, began_ns, end_ns;
    struct heap due;
    uint64_t next_tie;
    struct rng arrivals, lives, times; /* streams of their own, so that one does not shift another */
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
    struct u64_map jobs_by_number; /* whose JobSet exists */
    VEC(struct sim_job *) live;    /* in no order */
    struct u64_map live_places;    /* number -> 1 + place in `live` */
    struct u64_map ranks;          /* task -> rank */
    /* statistics */
    struct due sample;
    int64_t counted_ns; /* integrals up to here */
    uint32_t busy_chips, down_machines, down_chips, whole_runs;
};

/* world.c */
void due_set(struct simulation_world *world, struct due *due, enum due_kind kind, int64_t at_ns);
void due_drop(struct simulation_world *world, struct due *due);
void world_say(struct simulation_world *world, uint32_t machine, const struct from_agent *message);

/* arrivals.c */
void arrivals_begin(struct simulation_world *world);
/* Writes the objects that jobs need: queues, and classes of priorities. They have been checked. */
void arrivals_prepare(struct simulation_world *world);
/* Whether the core would take these objects. ERROR_INVALID, with the place of the queue. */
int arrivals_check(struct simulation_world *world, struct error *error);
void arrivals_due(struct simulation_world *world);
void arrivals_reply(struct simulation_world *world, uint64_t number, const struct effect *effect);
void arrivals_cancel(struct simulation_world *world, struct sim_job *job); /* its user deletes it */
void arrivals_gone(struct simulation_world *world, obj_id jobset);         /* the JobSet was removed */
void arrivals_done(struct simulation_world *world);

/* fleet.c */
void fleet_begin(struct simulation_world *world);
void fleet_hello(struct simulation_world *world, uint32_t machine);
void fleet_heartbeats(struct simulation_world *world);
void fleet_told(struct simulation_world *world, uint32_t machine, const struct from_controller *message);
void fleet_closed(struct simulation_world *world, uint32_t machine); /* by the driver */
/* `planned` NULL: by chance, and the repair is drawn. */
void fleet_strike(struct simulation_world *world, uint32_t machine, uint32_t model,
                  const struct planned_failure *planned);
void fleet_due(struct simulation_world *world, uint32_t machine);
void fleet_errand_due(struct simulation_world *world, uint32_t machine);
void fleet_report(struct simulation_world *world, uint32_t machine, struct task_report *items, size_t count);
void fleet_done(struct simulation_world *world);

/* sources.c */
void sources_begin(struct simulation_world *world);
void sources_due(struct simulation_world *world, struct source *source);
void sources_renew(struct simulation_world *world, uint32_t machine); /* it is back from a repair */
void sources_done(struct simulation_world *world);

/* runs.c */
void runs_start(struct simulation_world *world, uint32_t machine, const struct task_launch *launch);
void runs_stop(struct simulation_world *world, uint32_t machine, const struct task_stop *stop);
/* The process goes on in another attempt. */
void runs_rejoin(struct simulation_world *world, const struct task_rejoin *order);
void runs_notice(struct simulation_world *world, const struct task_notice *notice);
void runs_due(struct simulation_world *world, struct run *run);
void runs_stop_due(struct simulation_world *world, struct run *run);
/* The rank's process dies. The run stands still, and its ranks' steps are told. */
void runs_crash(struct simulation_world *world, struct rank *rank);
/* The rank is no more: its machine is dead, or its end was reported. */
void runs_forget(struct simulation_world *world, struct rank *rank);
void runs_done(struct simulation_world *world);

/* corruption.c */
/* Whether the machine's results are wrong, and nobody knows. */
bool corruption_hides(const struct simulation_world *world, uint32_t machine);
/* Time from the beginning of a corruption until a test or detection finds it; INT64_MAX: neither does. */
int64_t corruption_found_ns(struct simulation_world *world, const struct failure_model *failure);
/* The machine's results are wrong from now on. */
void corruption_begins(struct simulation_world *world, uint32_t machine);
/* The run begins to train at run->restored_ns. */
void corruption_run_trains(struct simulation_world *world, struct run *run);
/* A checkpoint of the run's work_ns is written. */
void corruption_run_saved(struct run *run);
/* The corruption of the machine is found: jobs with wrong results stop, and begin again from before it. */
void corruption_found(struct simulation_world *world, uint32_t machine);
/* The job has ended, unless it had to begin again from before. */
void corruption_job_ended(struct simulation_world *world, const struct sim_job *job);
/* runs.c: the due time of a run that trains, after the job's notice_ns has changed. */
void runs_look_again(struct simulation_world *world, struct run *run);
/* runs.c: work that the job has done by now and might still keep. */
int64_t runs_work(const struct simulation_world *world, const struct sim_job *job);
/* runs.c: a process of the run ends by itself with an error: the one on that machine, or any. */
void runs_fail(struct simulation_world *world, struct run *run, uint32_t machine);
/* fleet.c: the machine's hidden failure is found now. */
void fleet_notice(struct simulation_world *world, uint32_t machine);

/* tally.c */
void tally_advance(struct simulation_world *world); /* integrals up to now; before what they are of changes */
void tally_sample(struct simulation_world *world);
void tally_job(struct simulation_world *world, struct sim_job *job, enum job_fate fate);
void tally_end(struct simulation_world *world);

#endif
