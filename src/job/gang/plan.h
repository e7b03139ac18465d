/* plan.h - plans where each rank of a gang takes its part of a checkpoint from: offers in, a plan out. No
 * I/O.
 *
 * An offer states that its holder can provide the shard that rank `rank` of `world` kept at (step, attempt).
 * The same step of two attempts is two checkpoints; a plan covers one checkpoint. A shard serves
 *     - the rank that kept it, in a world of the same size;
 *     - if it has a key, every rank whose own regions have that key: its replicas.
 * A rank's key is that of its own shard of the checkpoint, even a damaged one; without such a shard it is the
 * key that the gang knows (plan_input.keys).
 *
 * Of the newest checkpoint that has a source for every rank, each rank gets: a shard that it holds itself;
 * otherwise one on its machine; otherwise one in another machine's memory, in turn, so that the loads of the
 * holders differ by at most one; otherwise one in storage, preferably its own. If an offer turns out damaged,
 * the caller strikes it off and makes a new plan: each try has fewer offers, so this ends.
 *
 * A checkpoint of a world of another size serves no rank directly, unless keys allow it, but the gang can
 * reshard it (load.c) if there is a source for every rank of that world: plan_reshard.
 *
 * Memory: O(offers + world), freed before the return. Any thread.
 */
#ifndef PHX_JOB_GANG_PLAN_H
#define PHX_JOB_GANG_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_NONE UINT32_MAX

enum offer_place {
    OFFER_SLOT,   /* memory: kept there by the rank's own process */
    OFFER_COPY,   /* memory: a copy that a peer has sent */
    OFFER_STORED, /* storage, where every rank can read it */
    /* Storage has a checkpoint of `len` ranks, and this rank can read its share: the shards of the old ranks
     * that are equal to it modulo the gang's size. `rank` and `world` are those of the new gang. */
    OFFER_SHARE,
    OFFER_PLACES
};

struct offer {
    uint64_t step;
    uint32_t attempt;
    uint32_t rank, world; /* the rank, and the world, of the shard */
    uint64_t key;         /* of its regions (regions.h); 0: bytes, of that rank alone */
    uint64_t len;         /* bytes of the data */
    uint32_t crc;         /* CRC-32C of the data */
    uint8_t place; /* enum offer_place */
    uint8_t slot;  /* number of the slot or copy in memory */
};

static inline bool offer_in_memory(const struct offer *offer)
{
    return offer->place == OFFER_SLOT || offer->place == OFFER_COPY;
}

struct plan_offer {
    struct offer offer;
    uint32_t holder; /* a rank of the new gang */
    bool struck;     /* damaged: not to be used */
};

struct plan_input {
    uint32_t world;           /* of the new gang */
    const uint64_t *machines; /* [world] equal: the same machine */
    const uint64_t *keys;     /* [world] keys of the shards that the ranks need; 0: not known */
    const struct plan_offer *offers;
    size_t count;
};

enum plan_result {
    PLAN_OUT_OF_MEMORY = -1,
    PLAN_FOUND = 0,
    PLAN_INCOMPLETE, /* no checkpoint has a source for every rank */
};

struct plan_choice {
    uint64_t step;
    uint32_t attempt;
    bool stored; /* every source is in storage */
    uint32_t missing; /* PLAN_INCOMPLETE: ranks without a source for the newest one; 0: nothing is offered */
    uint32_t missing_first; /* the first of these ranks */
    /* plan_make: the next older checkpoint that has a source for every rank. All ranks would return to it if
     * this one turned out damaged, so no rank may overwrite it while shards of this one are being sent. */
    bool any_older;
    uint64_t older_step;
    uint32_t older_attempt;
};

/* Plans the newest checkpoint that has a source for every rank. ret_sources [world] receives for each rank
 * the index of its offer; it is untouched unless the result is PLAN_FOUND. PLAN_INCOMPLETE sets *ret_choice
 * too, with the step and attempt of the newest checkpoint. */
enum plan_result plan_make(const struct plan_input *input, uint32_t *ret_sources,
                           struct plan_choice *ret_choice);

/* Plans a dying checkpoint: which survivor writes the shard of each rank of the whole world. `input->world`
 * and `keys` are of that world; `machines` is not used; holders are the survivors' ranks. Only memory counts,
 * and only checkpoints newer than `stored` (NULL: all). Tries the newest step that any survivor has, then the
 * next older one, until every shard has a source. The shards are spread evenly over their holders: no shard
 * is moved. */
enum plan_result plan_dump(const struct plan_input *input, const struct offer *stored, uint32_t *ret_sources,
                           struct plan_choice *ret_choice);

/* Plans the resharding of a checkpoint of another world: `input->world` ranks, whose keys are those of the
 * input. `machines` is not used; holders are ranks of the new gang, `members` in number. Chooses a source for
 * every old rank, of the newest checkpoint for which there are all: memory before storage, and in memory
 * spread evenly over the holders. Only shards with keys count: plain bytes cannot be resharded. */
enum plan_result plan_reshard(const struct plan_input *input, uint32_t members, uint32_t *ret_sources,
                              struct plan_choice *ret_choice);

/* Returns the smallest other world size above `after` (0: any) of which a shard with a key is offered in
 * memory; 0 if there is none. */
uint32_t plan_other_world(const struct plan_input *input, uint32_t after);

/* Compares two checkpoints by step, then attempt: -1 if a is older, 0 if they are the same, 1 if a is
 * newer. */
int plan_compare(uint64_t step_a, uint32_t attempt_a, uint64_t step_b, uint32_t attempt_b);

/* Derives the keys that the ranks of a world need from those of another world. Keys that repeat with a period
 * (replicas that follow each other) continue with that period. ret_keys [world]; 0: not known. May work in
 * place if both worlds are of one size. */
void plan_extend_keys(const uint64_t *known, uint32_t known_world, uint64_t *ret_keys, uint32_t world);

#endif
