/* trace.h - what hosts and the head have done, and when: the tail of TRACE (entry.h).
 *
 * A machine records only while the head has told it to, and sends its records as soon as it has
 * TRACE_BATCH of them, at each tick, and at every word of the head about tracing; so what it holds is
 * bounded. Times are those of the machine's own clock, begin <= end. The tail is whole records of 64 bytes.
 */
#ifndef PHX_FLOW_ISLAND_TRACE_H
#define PHX_FLOW_ISLAND_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"

enum { TRACE_BATCH = 1024 };

enum trace_kind {
    TRACE_NONE,
    TRACE_RUN,      /* device, program, node, handle: function; failed: it failed */
    TRACE_SENT,     /* to host `peer`: bytes of the launch's message `node` */
    TRACE_RECEIVED, /* from a host: the same */
    TRACE_PUT,      /* a client has put shard `node` of value `handle`: bytes */
    TRACE_FETCHED,  /* a client was sent it */
    TRACE_WAIT,     /* head: from a launch's arrival until its ticket; failed: it got none */
    /* Head: from the ticket, `handle`, until all hosts were through; bytes: device time in ns. */
    TRACE_LAUNCH,
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

/* The number of records in a tail; a rest that is no whole record does not count. */
static inline size_t trace_count(struct str tail)
{
    return tail.len / sizeof(struct trace_record);
}

/* Reads record `i` < trace_count(tail). False: its kind is unknown, or it ends before it begins. */
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
