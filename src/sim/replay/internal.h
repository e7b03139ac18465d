/* internal.h - what the files of the extraction share. Private to src/sim/replay; extract.h has the story. */
#ifndef PHX_SIM_REPLAY_INTERNAL_H
#define PHX_SIM_REPLAY_INTERNAL_H

#include "base/map.h"
#include "core/health/fault.h"
#include "sim/replay/extract.h"

/* A job that has not ended, beside its line in the history. */
struct extract_job {
    obj_id uid;
    size_t line;        /* place in history.jobs */
    int64_t chips;      /* of all its ranks */
    int64_t first_ns;   /* when all its ranks ran for the first time; 0: not yet */
    int64_t stepped_ns; /* its first step; 0: none was reported */
    int32_t crash_attempt,
        hit_attempt;  /* the newest with a crash of its own, with a lost machine; -1: none */
    uint64_t saves;   /* checkpoints so far ... */
    int64_t saved_us; /* ... and time of steps up to the newest */
    int64_t stop_ns;  /* sum over its tasks that were stopped */
    uint32_t stops;
    VEC(int64_t) crashes_us; /* time of steps before each */
};

/* A process that runs or is about to. */
struct extract_task {
    obj_id uid;
    struct extract_job *job;
    uint32_t machine; /* place in history.machines */
    int32_t attempt;
    int64_t stop_ns; /* when it was told to stop; 0: it was not */
};

/* A crash whose cause may still turn out to be a fault of the machine. */
struct extract_crash {
    obj_id job;
    uint32_t machine;
    int32_t attempt;
    int64_t at_ns;
};

struct extract {
    struct history history;
    bool whole, begun; /* the log has its first record; an event was seen */
    int64_t now_ns;
    struct str_map machines; /* name -> 1 + place */
    VEC(size_t) down;        /* by machine: 1 + its open outage without a code; 0: none */
    struct u64_map faults;   /* uid of an open fault -> 1 + its outage */
    struct u64_map jobs;     /* uid of a JobSet -> struct extract_job; EXTRACT_OVER: it has ended */
    VEC(struct extract_job *) live;
    struct u64_map tasks; /* uid -> 1 + place in `running` */
    VEC(struct extract_task) running;
    VEC(struct extract_crash) crashes; /* the newest last */
};

/* Microseconds from the beginning; before it: 0. */
int64_t extract_time(const struct extract *extract, int64_t stamp_ns);
/* A copy in the history's arena, of what a line can hold. */
struct str extract_text(struct extract *extract, struct str text);
/* The machine's place in the history; MACHINE_NONE: it has none. */
uint32_t extract_machine_of(struct extract *extract, struct str name);
/* Whether a fault that keeps the machine from work was opened a short time ago; it then has killed. */
bool extract_is_faulty(struct extract *extract, const struct core *core, uint32_t place);

/* extract_jobs.c */
/* Looks at a JobSet that has changed; `gone`: it was deleted. */
void extract_jobset(struct extract *extract, const struct jobset *jobset, bool gone);
/* The task was told to start, or was so before the beginning. */
void extract_jobs_start(struct extract *extract, const struct core *core, const struct task *task);
void extract_jobs_stop(struct extract *extract, obj_id task);
void extract_jobs_reports(struct extract *extract, const struct core *core, const struct reports *reports);
/* All processes on the machine are dead. */
void extract_jobs_lose(struct extract *extract, uint32_t machine);
/* Whether processes on the machine died less than `within_ns` ago: their deaths are the fault's. */
bool extract_jobs_killed(struct extract *extract, uint32_t machine, int64_t within_ns);
void extract_jobs_end(struct extract *extract, const struct core *core); /* closes jobs that run on */
void extract_jobs_done(struct extract *extract);

#endif
