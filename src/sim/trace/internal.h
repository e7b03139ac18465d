/* internal.h - lines and fields of a trace, for the readers of its formats. Private to src/sim/trace. */
#ifndef PHX_SIM_TRACE_INTERNAL_H
#define PHX_SIM_TRACE_INTERNAL_H

#include "sim/trace/trace.h"

struct trace_reader {
    struct trace *trace;
    const struct trace_terms *terms;
    const char *file;
    struct error *error;
    struct str text; /* the rest */
    struct str line; /* the present one, without its end */
    uint32_t number; /* of it, from 1 */
};

/* The next line; false: there is none. */
bool trace_next_line(struct trace_reader *reader);
/* "FILE:LINE:COLUMN: what: expected WANTED, got VALUE"; `value` is a part of the line. ERROR_INVALID. */
int trace_wrong(const struct trace_reader *reader, struct str value, const char *what, const char *wanted);
/* A decimal number, with a fraction at most; false: it is none. */
bool trace_number(struct str text, double *ret);
/* Gives the job the tag; `text` is a part of the line, and empty where there is none. ERROR_INVALID: it is
 * longer than TRACE_NAME_MAX. */
int trace_tag(const struct trace_reader *reader, struct trace_job *job, enum trace_tag tag, struct str text);
/* ERROR_LIMIT: too many jobs. */
int trace_add(const struct trace_reader *reader, const struct trace_job *job);

/* "2025-03-01T12:00:00", with a space for the T, and an offset such as +08:00 behind it; without one of the
 * cluster's own zone. */
bool trace_date(struct str text, double *ret_s);
/* How a job ended, in Slurm's words; what the cluster ended counts as complete, and so does an empty one. */
enum trace_end trace_end_of(struct str state);

int swf_read(struct trace_reader *reader);
int sacct_read(struct trace_reader *reader);
int csv_read(struct trace_reader *reader, enum trace_format format); /* HELIOS, ACME or ALIBABA */
int philly_read(struct trace_reader *reader);

#endif
