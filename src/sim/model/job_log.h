/* job_log.h - reads CSV logs of jobs and of health checks, for failure rates (rate.h).
 *
 *     job,machines,start,end,state              job,time
 *     4711,64,2026-03-01T04:00:00Z,...,FAILED   4711,2026-03-02T09:29:00Z
 *
 * The first line names the columns, in any order; columns with other names are ignored. Fields may be in
 * double quotes, and "" is a quote within them. A text is valid if and only if every line has as many fields
 * as the first, `machines` is a number from 1, times are RFC 3339 or seconds (with a fraction), no job ends
 * before it starts, states are Slurm's (COMPLETED, FAILED, NODE_FAIL, CANCELLED by 1000, ...), and each check
 * names a job of the log. Empty lines are skipped.
 *
 * A job may have several lines, one for each time it was requeued. A check belongs to the line whose end is
 * nearest to it.
 */
#ifndef PHX_SIM_MODEL_JOB_LOG_H
#define PHX_SIM_MODEL_JOB_LOG_H

#include "base/arena.h"
#include "base/error.h"
#include "sim/model/rate.h"

enum { JOB_LOG_LINES_MAX = 20000000, JOB_LOG_MACHINES_MAX = 10000000 };

struct job_log {
    struct rate_job *jobs;
    struct str *names; /* name of each job */
    size_t job_count;
    struct rate_check *checks;
    size_t check_count;
    uint32_t *by_name; /* indexes of jobs, by name, then by end */
};

/* Reads the jobs. Names point into `text` or the arena. Returns ERROR_INVALID or ERROR_LIMIT with
 * "LINE:COLUMN: why"; columns count bytes. */
int job_log_read_jobs(struct arena *arena, struct str text, struct job_log *ret_log, struct error *error);
/* Reads the checks of these jobs into log->checks. Errors are as for job_log_read_jobs(). */
int job_log_read_checks(struct arena *arena, struct str text, struct job_log *log, struct error *error);

#endif
