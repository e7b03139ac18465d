/* internal.h - shared by the files of this folder: processes.c finds the ranks, records.c reads their
 * records. Private. */
#ifndef PHX_HOST_COLLECT_INTERNAL_H
#define PHX_HOST_COLLECT_INTERNAL_H

#include "base/arena.h"
#include "base/vec.h"
#include "host/collect/collect.h"
#include "job/link/wire.h"

struct rank_process {
    int pid;
    uint32_t rank;
    bool worker; /* torchrun's */
    char state;  /* as /proc has it; 0: it has gone */
    uint64_t ticks;
    int64_t begun_ns; /* wall clock */
    struct str waits_in;
    struct str dump, pipe; /* PyTorch's prefixes; empty: none */
    bool recorded;         /* `record` is libphalanx's */
    struct jobwire_flight record;
};
typedef VEC(struct rank_process) rank_list;

/* processes.c: one of each rank, by rank; texts in `arena`. */
int ranks_find(uint64_t task, struct arena *arena, rank_list *ret_ranks, struct error *error);

/* records.c */
/* Appends the record of libphalanx as a dump. */
void record_put(struct buf *out, const struct jobwire_flight *record);
/* Asks PyTorch for its dump. True: it was asked. */
bool dump_ask(const struct rank_process *process);
/* Appends PyTorch's dump, at most `bytes_max` bytes of it. False: there is none, or none newer than
 * `since_ns` (wall clock), or it is not whole. */
bool dump_put(struct buf *out, const struct rank_process *process, int64_t since_ns, size_t bytes_max);

#endif
