/* logtime.h - when the lines of a log arrived: the shim's file "times" beside "log" (host/launch/launch.h).
 *
 * A time says when the bytes from its offset on were read by the shim, up to a millisecond early. Logs of
 * shims that wrote none, and offsets before the first, have the time 0.
 */
#ifndef PHX_HOST_AGENT_LOGTIME_H
#define PHX_HOST_AGENT_LOGTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/launch/launch.h"

struct log_times {
    int fd; /* -1: there are none */
    bool known;
    uint64_t index;             /* of `now`, when known */
    struct launch_log_time now; /* the newest at or before the last offset that was asked for */
};

/* Opens the times of the log, or the part of a log, at `log_path`. */
void log_times_open(struct log_times *times, const char *log_path);
void log_times_close(struct log_times *times);
/* Wall clock at which the byte at `offset` arrived. Cheap for offsets that grow. */
int64_t log_times_at(struct log_times *times, off_t offset);
/* The first offset that arrived at `since_ns` or later; -1: none did. False: there are no times. */
bool log_times_since(struct log_times *times, int64_t since_ns, off_t *ret_offset);

#endif
