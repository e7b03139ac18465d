/* internal.h - lines and fields of a trace, for the readers of its formats. Private to src/sim/trace. */
#ifndef PHX_SIM_TRACE_INTERNAL_H
#define PHX_SIM_TRACE_INTERNAL_H

#include "sim/trace/trace.h"

struct trace_reader {
    struct trace *trace;
    const struct trace_terms *terms;
    const char *file;
    struct error *error;
    struct str text; /* the unread rest */
    struct str line; /* the current line, without its end */
    uint32_t number; /* its number, from 1 */
};

/* Reads the next line into reader->line. Returns false at the end. */
bool trace_next_line(struct trace_reader *reader);
/* Sets the error "FILE:LINE:COLUMN: what: expected WANTED, got VALUE" and returns ERROR_INVALID. `value` must
 * be a part of the current line. */
int trace_wrong(const struct trace_reader *reader, struct str value, const char *what, const char *wanted);
/* Reads a decimal number, with an optional fraction. Returns false if the text is not one. */
bool trace_number(struct str text, double *ret);
/* Sets a tag of the job. `text` must be a part of the line, or empty for no tag. Returns ERROR_INVALID if it
 * is longer than TRACE_NAME_MAX. */
int trace_tag(const struct trace_reader *reader, struct trace_job *job, enum trace_tag tag, struct str text);
/* Adds a job to the trace. Returns ERROR_LIMIT if there are too many. */
int trace_add(const struct trace_reader *reader, const struct trace_job *job);

/* Reads a date such as "2025-03-01T12:00:00" or "2025-03-01 12:00:00", with an optional offset such as
 * +08:00. Without an offset the date is in the cluster's own zone. Returns false if the text is not a
 * date. */
bool trace_date(struct str text, double *ret_s);
/* Converts a Slurm job state. Jobs ended by the cluster count as complete, and so does an empty state. */
enum trace_end trace_end_of(struct str state);

int swf_read(struct trace_reader *reader);
int sacct_read(struct trace_reader *reader);
int csv_read(struct trace_reader *reader, enum trace_format format); /* HELIOS, ACME or ALIBABA */
int philly_read(struct trace_reader *reader);

#endif
