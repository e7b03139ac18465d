/* inject_watch.h - observes the job of a scenario's run: restarts with their times, processes that lived
 * through them, and at the end whether each expectation held. One thread; the caller owns everything. */
#ifndef PHX_CMD_INJECT_WATCH_H
#define PHX_CMD_INJECT_WATCH_H

#include "cmd/inject.h"

/* A restart record of the job, as it was last seen. Times are nanoseconds since 1970, 0: not yet. */
struct seen_restart {
    int64_t attempt, fault_ns, started_ns, stepped_ns, step_at_fault, resumed_from;
    char cause[64], machine[TARGET_NAME_MAX], rung[32];
};
struct seen_process {
    pid_t pid;
    int64_t rank;
    uint64_t started; /* of /proc/PID/stat: a number is used again */
};
typedef VEC(struct seen_process) process_list;

/* An injection that the run has made. */
struct done_fault {
    struct str step; /* name or number of the step */
    enum inject_action action;
    struct buf objects; /* "machine/m-2, controller" */
    size_t count;
    int64_t at_ns;          /* since 1970 */
    process_list survivors; /* of the job, that were not hit */
    bool checked;           /* the survivors were looked for after the recovery */
    size_t restarted;       /* survivors that were gone then */
};
struct job_watch {
    const struct scenario *scenario;
    char job[TARGET_NAME_MAX];            /* "namespace/name"; empty: none */
    int64_t began_ns;                     /* since 1970 */
    int64_t attempt, first_attempt, step; /* newest; -1: not known */
    char state[32];                       /* "Completed", "Failed"; empty: it runs */
    int64_t finished_ns;                  /* since 1970: when the state was seen */
    bool seen;
    struct arena arena;
    VEC(struct seen_restart) restarts;
    VEC(struct done_fault) faults;
};

void job_watch_begin(struct job_watch *watch, const struct scenario *scenario, const char *job);
void job_watch_done(struct job_watch *watch);
/* Asks for the job once; prints nothing when no controller answers. */
void job_watch_look(struct job_watch *watch, struct ground *ground);
/* A condition of the job, or its terminal state, has this name. */
bool job_watch_condition(struct job_watch *watch, struct ground *ground, struct str job, struct str name);
/* The newest step of a job; -1: not known. */
int64_t job_watch_step(struct job_watch *watch, struct ground *ground, struct str job);
/* The processes of the job's ranks now, without those of `targets`. */
void job_watch_processes(const struct job_watch *watch, struct ground *ground, const target_list *targets,
                         process_list *ret_processes);
/* Every restart that was seen has come to its next step, or the job has ended. */
bool job_watch_recovered(const struct job_watch *watch);
/* Prints each expectation with its result, and a line for each fault; as JSON if wanted. False: an
 * expectation did not hold. */
bool job_watch_report(struct job_watch *watch, struct ground *ground, uint64_t seed, bool timed_out,
                      bool json);

#endif
