/* gather.h - an all-gather of one word per rank, before each session of the slice's chips.
 *
 *     ranks of a group  --word-->  its first rank, the leader  --group-->  rank 0  --all-->  all ranks
 *
 * The words travel as values of the key-value store of libphalanx, which rank 0 serves. A rank makes one put
 * and one get, a leader up to 15 more gets, and rank 0 one more for each group: about N gets for N ranks,
 * instead of N * N. Values of earlier generations are emptied, so the store has those of two generations
 * only.
 */
#ifndef PHX_JOB_FABRIC_GATHER_H
#define PHX_JOB_FABRIC_GATHER_H

#include "phalanx/chips.h"
#include "phalanx/fabric.h"

/* A rank's cache of solved tables (tables.c). */
enum fabric_word_cache {
    FABRIC_CACHES = 1,    /* the rank has a cache */
    FABRIC_DISTRUSTS = 2, /* the ranks' tables differed: all ranks must build theirs */
};

/* A rank's contribution to the all-gather of a generation. */
struct fabric_word {
    uint64_t done;   /* sums that the rank has finished */
    uint64_t tables; /* number of the newest tables that the rank knows, and the switches that they avoid */
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

/* Sends `word` to all ranks and waits for their words, in ret_words[world]. Collective. Returns 0, or an
 * error after which the words are undefined. */
int fabric_gather(const struct fabric_ranks *ranks, const struct fabric_word *word,
                  struct fabric_word *ret_words, struct phx_error *error);

/* Writes the name of a key: "fabric/<opened>/<name>/<generation>[/<rank>]"; rank -1: without a rank. */
enum { FABRIC_KEY_MAX = 64 };
void fabric_gather_key(uint32_t opened, const char *name, uint32_t generation, int64_t rank,
                       char key[FABRIC_KEY_MAX]);

#endif
