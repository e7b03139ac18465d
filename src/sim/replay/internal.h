/* internal.h - shared by the files of the extraction. Private to src/sim/replay; see extract.h. */
#ifndef PHX_SIM_REPLAY_INTERNAL_H
#define PHX_SIM_REPLAY_INTERNAL_H

#include "base/map.h"
#include "core/health/fault.h"
#include "sim/replay/extract.h"

/* A job that has not ended, in addition to its entry in the history. */
struct extract_job {
    obj_id uid;
    size_t line;        /* index in history.jobs */
    int64_t chips;      /* chips of all its ranks */
    int64_t first_ns;   /* when all its ranks first ran; 0: not yet */
    int64_t stepped_ns; /* when its first step was reported; 0: none yet */
    int32_t crash_attempt,
        hit_attempt;  /* newest attempts with a crash of the job itself, and with a lost machine; -1: none */
    uint64_t saves;   /* checkpoints so far */
    int64_t saved_us; /* time of steps up to the newest checkpoint */
    int64_t stop_ns;  /* total time that its stopped tasks took to end */
    uint32_t stops;
    VEC(int64_t) crashes_us; /* time of steps before each crash */
};

/* A process that runs or is being started. */
struct extract_task {
    obj_id uid;
    struct extract_job *job;
    uint32_t machine; /* index in history.machines */
    int32_t attempt;
    int64_t stop_ns; /* when it was told to stop; 0: not told */
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
    bool whole, begun; /* `whole`: the log has its first record; `begun`: an event was seen */
    int64_t now_ns;
    struct str_map machines; /* name -> 1 + place */
    VEC(size_t) down;        /* by machine: 1 + index of its open outage without a code; 0: none */
    struct u64_map faults;   /* uid of an open fault -> 1 + index of its outage */
    struct u64_map jobs;     /* uid of a JobSet -> struct extract_job; EXTRACT_OVER: it has ended */
    VEC(struct extract_job *) live;
    struct u64_map tasks; /* uid -> 1 + index in `running` */
    VEC(struct extract_task) running;
    VEC(struct extract_crash) crashes; /* newest last */
};

/* Converts a stamp to microseconds since the beginning; 0 for earlier stamps. */
int64_t extract_time(const struct extract *extract, int64_t stamp_ns);
/* Copies a text to the history's arena, cut to HISTORY_NAME_MAX bytes. */
struct str extract_text(struct extract *extract, struct str text);
/* Returns the machine's index in the history, or MACHINE_NONE. */
uint32_t extract_machine_of(struct extract *extract, struct str name);
/* Returns whether a fault that keeps the machine from work was opened a short time ago. If so, marks its
 * outage as one that killed processes. */
bool extract_is_faulty(struct extract *extract, const struct core *core, uint32_t place);

/* extract_jobs.c */
/* Handles a changed JobSet; `gone` means that it was deleted. */
void extract_jobset(struct extract *extract, const struct jobset *jobset, bool gone);
/* Handles a task that was told to start, or exists at the beginning. */
void extract_jobs_start(struct extract *extract, const struct core *core, const struct task *task);
void extract_jobs_stop(struct extract *extract, obj_id task);
void extract_jobs_reports(struct extract *extract, const struct core *core, const struct reports *reports);
/* Handles a machine whose processes are all dead. */
void extract_jobs_lose(struct extract *extract, uint32_t machine);
/* Returns whether processes on the machine died less than `within_ns` ago. Their deaths then count as the
 * fault's. */
bool extract_jobs_killed(struct extract *extract, uint32_t machine, int64_t within_ns);
void extract_jobs_end(struct extract *extract, const struct core *core); /* closes jobs that still run */
void extract_jobs_done(struct extract *extract);

#endif
