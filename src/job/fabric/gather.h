/* gather.h - what all ranks of a slice tell each other before a session of their chips.
 *
 *     ranks of a group  --word-->  its first rank, the leader  --group-->  rank 0  --all-->  all ranks
 *
 * The words go by the keys of libphalanx, which rank 0 has: each get asks it. A rank makes one put and one
 * get, a leader 15 gets more, and rank 0 one for each group: about N gets for N ranks, where each asking for
 * all others would make N * N. Values of earlier generations are emptied, so that the store has those of two
 * generations alone.
 */
#ifndef PHX_JOB_FABRIC_GATHER_H
#define PHX_JOB_FABRIC_GATHER_H

#include "phalanx/chips.h"
#include "phalanx/fabric.h"

/* A rank's cache of solved tables (tables.c). */
enum fabric_word_cache {
    FABRIC_CACHES = 1,    /* it has one */
    FABRIC_DISTRUSTS = 2, /* the ranks' tables differed: all are to build theirs */
};

/* The word of a rank in each generation. */
struct fabric_word {
    uint64_t done;   /* sums that it has finished */
    uint64_t tables; /* number of the newest tables that it was told, and the switches that they avoid */
    uint64_t without;
    uint8_t cache; /* bits: enum fabric_word_cache */
    struct phx_chip_about chips[PHX_SLICE_CHIPS];
};

/* The ranks that take part in a generation, and which of them this one is. */
struct fabric_ranks {
    phx_context *ctx; /* borrowed */
    uint32_t rank, world;
    uint32_t opened;     /* fabrics that the attempt has had before this one; part of the keys' names */
    uint32_t generation; /* from 1; all ranks take part in each */
};

/* Tells all ranks `word` and waits for theirs, in ret_words[world]. Returns 0, or an error: then the words
 * are undefined. */
int fabric_gather(const struct fabric_ranks *ranks, const struct fabric_word *word,
                  struct fabric_word *ret_words, struct phx_error *error);

/* The name of a key: "fabric/<opened>/<name>/<generation>[/<rank>]"; rank -1: none. */
enum { FABRIC_KEY_MAX = 64 };
void fabric_gather_key(uint32_t opened, const char *name, uint32_t generation, int64_t rank,
                       char key[FABRIC_KEY_MAX]);

#endif
