/* loglines.h - merges the lines of many logs by time, and finds the attempt that each line belongs to. */
#ifndef PHX_CMD_LOGLINES_H
#define PHX_CMD_LOGLINES_H

#include "cmd/client.h"

enum { LOG_MERGE_BYTES = 256 << 20 }; /* kept in memory; more is sorted and printed in parts */

struct log_restart {
    int64_t attempt, began_ns; /* when its processes started, or else when the fault was found */
};
struct log_restarts {
    VEC(struct log_restart) list; /* oldest first */
    int64_t attempt;              /* the present attempt */
};
struct log_line {
    int64_t time_ns;
    size_t offset, len; /* in `text` */
};
struct log_merge {
    struct buf text;
    VEC(struct log_line) list;
};

/* Reads the restarts from the JobSet's status. */
void log_restarts_read(struct log_restarts *restarts, const struct doc *jobset);
/* Returns the attempt of a line that a process printed at `time_ns`. The process started in `began_attempt`
 * and may have survived restarts. */
int64_t log_attempt_at(const struct log_restarts *restarts, int64_t time_ns, int64_t began_attempt);
/* Removes a leading "<RFC 3339 time> " from the line and returns the time, or 0 if there is none. */
int64_t log_line_time(struct str *line);

/* Adds a line; prints all lines so far if they exceed LOG_MERGE_BYTES. */
void log_merge_add(struct log_merge *merge, int64_t time_ns, struct str prefix, struct str line);
/* Prints and forgets all lines: by time, and lines of equal time in the order in which they were added. */
void log_merge_print(struct log_merge *merge);
void log_merge_done(struct log_merge *merge);

#endif
