/* logtime.h - when the lines of a log arrived: the shim's file "times" beside "log" (host/launch/launch.h).
 *
 * A time is when the shim read the bytes from its offset on, up to a millisecond early. The time is 0 for
 * offsets before the first entry, and for logs whose shim wrote no times.
 */
#ifndef PHX_HOST_AGENT_LOGTIME_H
#define PHX_HOST_AGENT_LOGTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/launch/launch.h"

struct log_times {
    int fd; /* -1: the log has no times */
    bool known;
    uint64_t index;             /* of `now`, when known */
    struct launch_log_time now; /* the newest entry at or before the last offset looked up */
};

/* Opens the times of the log, or of the part of a log, at `log_path`. A missing file is no error. Close with
 * log_times_close(). */
void log_times_open(struct log_times *times, const char *log_path);
void log_times_close(struct log_times *times);
/* Returns the wall clock at which the byte at `offset` arrived, 0 if unknown. Cheap for rising offsets. */
int64_t log_times_at(struct log_times *times, off_t offset);
/* Stores the first offset that arrived at `since_ns` or later, or -1 if none did. Returns false if the log
 * has no times. */
bool log_times_since(struct log_times *times, int64_t since_ns, off_t *ret_offset);

#endif
