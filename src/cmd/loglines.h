/* loglines.h - lines of many logs: which attempt each is of, and in the order of their times. */
#ifndef PHX_CMD_LOGLINES_H
#define PHX_CMD_LOGLINES_H

#include "cmd/client.h"

enum { LOG_MERGE_BYTES = 256 << 20 }; /* held at once; more is printed in parts */

struct log_restart {
    int64_t attempt, began_ns; /* its processes ran, or else the fault was found */
};
struct log_restarts {
    VEC(struct log_restart) list; /* oldest first */
    int64_t attempt;              /* now */
};
struct log_line {
    int64_t time_ns;
    size_t offset, len; /* in `text` */
};
struct log_merge {
    struct buf text;
    VEC(struct log_line) list;
};

/* From the JobSet's status. */
void log_restarts_read(struct log_restarts *restarts, const struct doc *jobset);
/* The attempt of a line that came at `time_ns` from a process that began in `began_attempt` and may have
 * lived through restarts. */
int64_t log_attempt_at(const struct log_restarts *restarts, int64_t time_ns, int64_t began_attempt);
/* Cuts "<RFC 3339 time> " off; 0 when there is none. */
int64_t log_line_time(struct str *line);

void log_merge_add(struct log_merge *merge, int64_t time_ns, struct str prefix, struct str line);
void log_merge_print(struct log_merge *merge); /* equal times in the order in which they were added */
void log_merge_done(struct log_merge *merge);

#endif
