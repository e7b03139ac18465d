/* trace.h - timed records of the work of hosts and head: the tail of TRACE (entry.h).
 *
 * A machine records only while the head has told it to. It sends its records when TRACE_BATCH of them have
 * accumulated, at each tick, and at every TRACE entry from the head, so the records it holds are bounded.
 * Times are those of the machine's own clock, begin <= end. The tail is a sequence of whole records of 64
 * bytes.
 */
#ifndef PHX_FLOW_ISLAND_TRACE_H
#define PHX_FLOW_ISLAND_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"

enum { TRACE_BATCH = 1024 };

/* The fields that each kind sets besides client, the times, and launch (0 for PUT and FETCHED). */
enum trace_kind {
    TRACE_NONE,
    TRACE_RUN,      /* a function ran: device, program, node, handle: function; failed: the run failed */
    TRACE_SENT,     /* message `node` of a launch to host `peer`: program, bytes */
    TRACE_RECEIVED, /* message `node` of a launch from host `peer`: program, bytes */
    TRACE_PUT,      /* a client put shard `node` of value `handle`: bytes */
    TRACE_FETCHED,  /* a client fetched shard `node` of value `handle`: bytes */
    TRACE_WAIT,     /* head: from a launch's arrival to its ticket: program; failed: it got no ticket */
    TRACE_LAUNCH,   /* head: from ticket `handle` to the last DONE: program, bytes: device time in ns */
    TRACE_KINDS,
};

struct trace_record {
    uint8_t kind, failed; /* kind: enum trace_kind */
    uint16_t unused;
    uint32_t device; /* of its host */
    uint32_t client, program, node, peer;
    uint64_t launch, handle;
    int64_t begin_ns, end_ns;
    uint64_t bytes;
};
_Static_assert(sizeof(struct trace_record) == 64, "a record of a trace has 64 bytes");

struct trace_list {
    VEC(struct trace_record) records;
};

/* Returns the number of records in a tail. An incomplete record at the end does not count. */
static inline size_t trace_count(struct str tail)
{
    return tail.len / sizeof(struct trace_record);
}

/* Reads record `i` < trace_count(tail). Returns false if its kind is unknown or it ends before it begins. */
static inline bool trace_at(struct str tail, size_t i, struct trace_record *ret_record)
{
    struct trace_record record;
    memcpy(&record, tail.data + i * sizeof record, sizeof record);
    if (record.kind == TRACE_NONE || record.kind >= TRACE_KINDS || record.end_ns < record.begin_ns)
        return false;
    *ret_record = record;
    return true;
}

#endif
