/* records.h - what agents collect from a rank of a gang whose ranks meet at barriers, as hang.h's errands
 * bring it. */
#ifndef PHX_TESTS_CORE_HANG_RECORDS_H
#define PHX_TESTS_CORE_HANG_RECORDS_H

#include "base/str.h"

/* Rank `rank` of `world` has finished `done` barriers and waits in the next one, as `op`, when `waits`; its
 * process is in `state`. */
static inline void record_write(struct buf *out, uint32_t rank, uint32_t world, int done, bool waits,
                                const char *op, char state, int step)
{
    buf_clear(out);
    buf_printf(
        out,
        "{\"ranks\":[{\"rank\":%u,\"state\":\"%c\",\"step\":%d,\"flight\":{\"pg_config\":{\"0\":{\"name\":"
        "\"0\","
        "\"desc\":\"gang\",\"ranks\":\"[0-%u]\"}},\"pg_status\":{\"0\":{\"last_enqueued_collective\":%d,"
        "\"last_completed_collective\":%d}},\"entries\":[",
        rank, state, step, world - 1, done + waits, done);
    for (int i = done > 2 ? done - 1 : 1; i <= done + waits; i++)
        buf_printf(
            out,
            "%s{\"record_id\":%d,\"pg_id\":0,\"process_group\":[\"0\",\"gang\"],\"collective_seq_id\":%d,"
            "\"profiling_name\":\"phalanx:%s\",\"is_p2p\":false,\"input_sizes\":[[4]],\"state\":\"%s\"}",
            i == (done > 2 ? done - 1 : 1) ? "" : ",", i, i, i > done ? op : "barrier",
            i > done ? "started" : "completed");
    buf_printf(out, "]}}]}");
}

#endif
