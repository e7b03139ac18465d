/* trace.h - START HERE: workloads that clusters recorded, as lists of jobs.
 *
 *     struct trace trace;
 *     if (trace_read(&trace, TRACE_SWF, text, "jobs.swf", &terms, &error) < 0)
 *         ... error.text is "FILE:LINE:COLUMN: field: what was expected, got what"
 *     trace_done(&trace);
 *
 * Formats (trace.c, swf.c, sacct.c, csv.c, philly.c):
 *   swf    the Standard Workload Format 2.2: 18 numbers a line, comments after ';'
 *   sacct  `sacct -P -o JobID,Submit,ElapsedRaw,State,AllocTRES`: columns separated by '|', named by the
 *          first line, in any order and mixed with others; AllocTRES may be ReqTRES, and NNodes counts
 *          if a job has no gres/gpu
 *   helios, acme, alibaba   published job tables, comma-separated (csv.c)
 *   philly     Microsoft's published jobs, JSON (philly.c)
 *   phalanx    a cluster's history, which also has machines and outages: history.h reads it
 *
 * Besides size and times a job has tags: the queue, partition, QoS, user and account in the trace.
 *
 * A trace records how long jobs ran, not how much work they had. The run time is therefore taken as the work,
 * and jobs that the cluster ended (NODE_FAIL, PREEMPTED, REQUEUED) count as complete. Times begin with the
 * first submission, and jobs are sorted by submission. Steps of jobs (sacct's "12.batch"), jobs that never
 * ran (run time 0, -1 or empty) and jobs without processors are left out, and counted. No function reads
 * files.
 */
#ifndef PHX_SIM_TRACE_TRACE_H
#define PHX_SIM_TRACE_TRACE_H

#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"

enum {
    TRACE_JOBS_MAX = 20000000,
    TRACE_CHIPS_MAX = 16777216,
    TRACE_NAME_MAX = 255,            /* bytes of a tag */
    TRACE_PRIORITY_MAX = 1000000000, /* as in a PriorityClass; the minimum is the negative of this */
};

enum trace_format {
    TRACE_SWF,
    TRACE_SACCT,
    TRACE_PHALANX,
    TRACE_HELIOS,
    TRACE_ACME,
    TRACE_ALIBABA,
    TRACE_PHILLY,
    TRACE_FORMATS
};
extern const char *const trace_format_names[TRACE_FORMATS];

/* Names that a trace gives for a job's owner and class. */
enum trace_tag { TRACE_QUEUE, TRACE_PARTITION, TRACE_QOS, TRACE_USER, TRACE_ACCOUNT, TRACE_TAGS };
extern const char *const trace_tag_names[TRACE_TAGS]; /* "queue", "partition", ... */

enum trace_end { TRACE_COMPLETED, TRACE_FAILED, TRACE_CANCELLED };
struct trace_job {
    double submit_s, runtime_s;
    uint32_t chips;
    enum trace_end end;
    uint32_t tags[TRACE_TAGS]; /* indices in trace.names; 0: none */
    int32_t priority;          /* 0 unless terms.priorities is set and the format has priorities */
};
struct trace_terms {
    uint32_t processors_per_chip; /* SWF: processors that count as one chip; at least 1 */
    uint32_t chips_per_node;      /* sacct: for jobs that give only nodes; at least 1 */
    bool priorities;              /* sacct: read the column Priority */
};
struct trace {
    VEC(struct trace_job) jobs;
    VEC(struct str) names; /* names of tags; names[0] is empty */
    uint64_t left_out;
    struct arena arena;         /* private: owns the names */
    struct str_map name_places; /* private: name -> 1 + index */
};

/* Reads a trace of any format except PHALANX. Messages name `file`. Returns ERROR_INVALID or ERROR_LIMIT, and
 * leaves *ret_trace untouched then. Free the trace with trace_done(). */
int trace_read(struct trace *ret_trace, enum trace_format format, struct str text, const char *file,
               const struct trace_terms *terms, struct error *error);
void trace_done(struct trace *trace);

#endif
