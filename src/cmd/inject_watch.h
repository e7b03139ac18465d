/* inject_watch.h - observes the job of a scenario's run: restarts with their times, processes that survived
 * them, and at the end whether each expectation held. One thread; the caller owns everything. */
#ifndef PHX_CMD_INJECT_WATCH_H
#define PHX_CMD_INJECT_WATCH_H

#include "cmd/inject.h"

/* A restart record of the job, as last read. Times are nanoseconds since 1970; 0: not yet. */
struct seen_restart {
    int64_t attempt, fault_ns, started_ns, stepped_ns, step_at_fault, resumed_from;
    char cause[64], machine[TARGET_NAME_MAX], rung[32];
};
struct seen_process {
    pid_t pid;
    int64_t rank;
    uint64_t started; /* start time in /proc/PID/stat, since pids are reused */
};
typedef VEC(struct seen_process) process_list;

/* An injection that the run has made. */
struct done_fault {
    struct str step; /* name or number of the step */
    enum inject_action action;
    struct buf objects; /* "machine/m-2, controller" */
    size_t count;
    int64_t at_ns;          /* since 1970 */
    process_list survivors; /* processes of the job that were not hit */
    bool checked;           /* the survivors were counted after the recovery */
    size_t restarted;       /* survivors that no longer existed then */
};
struct job_watch {
    const struct scenario *scenario;
    char job[TARGET_NAME_MAX];            /* "namespace/name"; empty: none */
    int64_t began_ns;                     /* since 1970 */
    int64_t attempt, first_attempt, step; /* newest; -1: not known */
    char state[32];                       /* "Completed", "Failed"; empty: the job runs */
    int64_t finished_ns;                  /* since 1970: when the state was seen */
    bool seen;
    struct arena arena;
    VEC(struct seen_restart) restarts;
    VEC(struct done_fault) faults;
};

void job_watch_begin(struct job_watch *watch, const struct scenario *scenario, const char *job);
void job_watch_done(struct job_watch *watch);
/* Reads the job once; prints nothing if no controller answers. */
void job_watch_look(struct job_watch *watch, struct ground *ground);
/* Returns true if a condition of the job, or its terminal state, has this name. */
bool job_watch_condition(struct job_watch *watch, struct ground *ground, struct str job, struct str name);
/* Returns the newest step of a job; -1 if it is not known. */
int64_t job_watch_step(struct job_watch *watch, struct ground *ground, struct str job);
/* Adds the present processes of the job's ranks, except those of `targets`. */
void job_watch_processes(const struct job_watch *watch, struct ground *ground, const target_list *targets,
                         process_list *ret_processes);
/* Returns true if the job has made a step after every restart seen, or has ended. */
bool job_watch_recovered(const struct job_watch *watch);
/* Prints each expectation with its result, and a line for each fault; with `json` as JSON. Returns false if
 * an expectation did not hold. */
bool job_watch_report(struct job_watch *watch, struct ground *ground, uint64_t seed, bool timed_out,
                      bool json);

#endif
