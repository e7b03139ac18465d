/* internal.h - declarations shared by the files of this folder: processes.c finds the ranks, records.c reads
 * their records. Private. */
#ifndef PHX_HOST_COLLECT_INTERNAL_H
#define PHX_HOST_COLLECT_INTERNAL_H

#include "base/arena.h"
#include "base/vec.h"
#include "host/collect/collect.h"
#include "job/link/wire.h"

struct rank_process {
    int pid;
    uint32_t rank;
    bool worker;           /* started by torchrun */
    char state;            /* as in /proc/PID/stat; 0: the process has ended */
    uint64_t ticks;        /* CPU time, user and system, in clock ticks */
    int64_t begun_ns;      /* wall clock */
    struct str waits_in;   /* kernel function that the process waits in (/proc/PID/wchan); empty: unknown */
    struct str dump, pipe; /* PyTorch's prefixes; empty: none */
    bool recorded;         /* `record` holds libphalanx's record */
    struct jobwire_flight record;
};
typedef VEC(struct rank_process) rank_list;

/* Finds the task's processes, one for each rank, in the order of ranks. Texts are in `arena`. In
 * processes.c. */
int ranks_find(uint64_t task, struct arena *arena, rank_list *ret_ranks, struct error *error);

/* records.c */
/* Appends libphalanx's record, in the form of a dump. */
void record_put(struct buf *out, const struct jobwire_flight *record);
/* Requests PyTorch's dump. Returns whether the request was sent. */
bool dump_ask(const struct rank_process *process);
/* Appends a summary of PyTorch's dump, at most `bytes_max` bytes. Returns false if there is no dump from
 * `since_ns` (wall clock) or later, or if it is incomplete. */
bool dump_put(struct buf *out, const struct rank_process *process, int64_t since_ns, size_t bytes_max);

#endif
