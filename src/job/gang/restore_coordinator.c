/* Rank 0's side of the negotiation of the checkpoint to restore. Gathers all offers, asks one rank for the
 * keys of all ranks if it does not know them, makes the plan, names each rank's source (or, to all ranks, the
 * sources of another world's shards), strikes off damaged shards, and announces the result. Each rank sends
 * one message of each kind in a round. */
#include "job/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/gang/offer.h"
#include "job/link/settings.h"

struct job_restore_coordinator {
    struct plan_offer *offers;
    size_t count, cap;
    uint32_t *rounds;        /* [world] the last round that each rank has answered; offers are round 0 */
    bool *offered;           /* [world] */
    uint64_t *own;           /* [world] keys of regions that are registered already; 0: none */
    uint32_t *sources;       /* [world] the offers that ranks take whole */
    uint32_t old_world_size; /* of the checkpoint to be resharded; 0: it is of this world */
    uint32_t *old_sources;   /* [old_world_size] */
    uint64_t *machines, *wanted;
    uint32_t waiting; /* ranks that have not answered yet */
    uint32_t round;
    bool struck, planned;
    bool failed; /* a dying checkpoint cannot be written, for the reason below */
    char failure[200];
    uint32_t *dump_sources; /* [full world] */
    struct plan_choice choice;
    /* The rank that knows the newest keys of all ranks. */
    bool keys_known, keys_asked;
    uint32_t keys_rank, keys_attempt;
    /* keys as ranks register them */
    uint64_t *registered;  /* [world] */
    bool *has_registered;  /* [world] since the keys were last announced */
    uint32_t unregistered; /* ranks that have not registered any */
};

bool job_restore_coordinator_start(struct phx_context *ctx)
{
    uint32_t world = ctx->settings.world;
    struct job_restore_coordinator *coordinator = calloc(1, sizeof *coordinator);
    ctx->restore_coordinator = coordinator;
    if (coordinator == NULL)
        return false;
    coordinator->rounds = calloc(world, sizeof *coordinator->rounds);
    coordinator->offered = calloc(world, sizeof *coordinator->offered);
    coordinator->own = calloc(world, sizeof *coordinator->own);
    coordinator->sources = calloc(world, sizeof *coordinator->sources);
    coordinator->machines = calloc(world, sizeof *coordinator->machines);
    coordinator->wanted = calloc(world, sizeof *coordinator->wanted);
    coordinator->registered = calloc(world, sizeof *coordinator->registered);
    coordinator->has_registered = calloc(world, sizeof *coordinator->has_registered);
    coordinator->waiting = coordinator->unregistered = world;
    for (uint32_t rank = 0; coordinator->machines != NULL && rank < world; rank++)
        coordinator->machines[rank] = ctx->names[rank].machine;
    return coordinator->rounds != NULL && coordinator->offered != NULL && coordinator->own != NULL &&
           coordinator->sources != NULL && coordinator->machines != NULL && coordinator->wanted != NULL &&
           coordinator->registered != NULL && coordinator->has_registered != NULL;
}

void job_restore_coordinator_stop(struct phx_context *ctx)
{
    struct job_restore_coordinator *coordinator = ctx->restore_coordinator;
    if (coordinator == NULL)
        return;
    free(coordinator->offers);
    free(coordinator->rounds);
    free(coordinator->offered);
    free(coordinator->own);
    free(coordinator->sources);
    free(coordinator->machines);
    free(coordinator->wanted);
    free(coordinator->registered);
    free(coordinator->dump_sources);
    free(coordinator->old_sources);
    free(coordinator->has_registered);
    free(coordinator);
    ctx->restore_coordinator = NULL;
}

/* ---- the plan ---- */

/* Returns the first rank without a whole shard of the newest commit. */
static uint32_t find_culprit(const struct phx_context *ctx)
{
    const struct job_restore_coordinator *coordinator = ctx->restore_coordinator;
    const struct job_checkpoint_ref *committed = &ctx->negotiation.committed;
    for (uint32_t rank = 0; rank < ctx->settings.world; rank++)
        coordinator->offered[rank] = false;
    for (size_t i = 0; i < coordinator->count; i++) {
        const struct plan_offer *at = &coordinator->offers[i];
        if (!at->struck && at->offer.step == committed->step && at->offer.attempt == committed->attempt)
            coordinator->offered[at->holder] = true;
    }
    uint32_t rank = 0;
    while (rank + 1 < ctx->settings.world && coordinator->offered[rank])
        rank++;
    return rank;
}

static void conclude(struct phx_context *ctx, bool found)
{
    const struct job_restore_coordinator *coordinator = ctx->restore_coordinator;
    const struct job_checkpoint_ref *committed = &ctx->negotiation.committed;
    const struct plan_choice *choice = &coordinator->choice;
    struct rendezvous_message message = {.type = RENDEZVOUS_AGREED, .status = AGREED_NONE};
    if (found) {
        bool stored = choice->stored || (committed->valid && committed->step == choice->step &&
                                         committed->attempt == choice->attempt);
        message.status = stored ? AGREED_STORED : AGREED_FOUND;
        message.number = choice->step;
        message.rank = choice->attempt;
    } else if (committed->valid) {
        message.status = AGREED_BROKEN;
        message.world = find_culprit(ctx);
    }
    job_coordinator_broadcast(ctx, &message);
}

static void tell_sources(struct phx_context *ctx)
{
    struct job_restore_coordinator *coordinator = ctx->restore_coordinator;
    coordinator->round++;
    coordinator->waiting = ctx->settings.world;
    coordinator->struck = false;
    for (uint32_t rank = 0; rank < ctx->settings.world; rank++) {
        const struct plan_offer *source = &coordinator->offers[coordinator->sources[rank]];
        uint8_t bytes[SOURCE_SIZE_MAX];
        size_t len = job_negotiate_put_source(&source->offer, &coordinator->choice, bytes);
        struct rendezvous_message message = {.type = RENDEZVOUS_SOURCE,
                                             .number = coordinator->choice.step,
                                             .rank = coordinator->choice.attempt,
                                             .world = coordinator->round,
                                             .status = source->holder,
                                             .value = bytes,
                                             .value_len = (uint32_t)len};
        job_coordinator_send(ctx, rank, &message);
    }
}

/* Tells every rank which rank provides each shard of the other world. */
static bool tell_old_world(struct phx_context *ctx)
{
    struct job_restore_coordinator *coordinator = ctx->restore_coordinator;
    uint8_t *bytes = malloc((size_t)coordinator->old_world_size * PART_SIZE);
    size_t len = 0;
    if (bytes == NULL)
        return false;
    coordinator->round++;
    coordinator->waiting = ctx->settings.world;
    coordinator->struck = false;
    for (uint32_t rank = 0; rank < coordinator->old_world_size; rank++) {
        const struct plan_offer *source = &coordinator->offers[coordinator->old_sources[rank]];
        len += job_old_world_put(&(struct job_part){source->holder, source->offer}, bytes + len);
    }
    struct rendezvous_message message = {.type = RENDEZVOUS_RESHARD,
                                         .number = coordinator->choice.step,
                                         .rank = coordinator->choice.attempt,
                                         .world = coordinator->round,
                                         .status = coordinator->old_world_size,
                                         .value = bytes,
                                         .value_len = (uint32_t)len};
    job_coordinator_broadcast(ctx, &message);
    free(bytes);
    return true;
}

/* Derives the keys that the ranks of a world of this size need, if they are known. */
static void want(const struct phx_context *ctx, uint64_t *wanted, uint32_t world)
{
    memset(wanted, 0, world * sizeof *wanted);
    if (ctx->keys.list != NULL)
        plan_extend_keys(ctx->keys.list, ctx->keys.world, wanted, world);
}

/* Returns true if a rank takes its part from shards in storage that another world has saved. */
static bool uses_shares(const struct phx_context *ctx)
{
    const struct job_restore_coordinator *coordinator = ctx->restore_coordinator;
    bool any = false;
    for (uint32_t rank = 0; rank < ctx->settings.world; rank++)
        any = any || coordinator->offers[coordinator->sources[rank]].offer.place == OFFER_SHARE;
    return any;
}

/* Returns true if the choice is better than the best so far. A newer step is better. Between equal steps,
 * memory is better than storage that would have to be resharded as well. */
static bool is_better(const struct phx_context *ctx, const struct plan_choice *choice, bool found)
{
    const struct plan_choice *best = &ctx->restore_coordinator->choice;
    int order = found ? plan_compare(choice->step, choice->attempt, best->step, best->attempt) : 1;
    return !choice->stored &&
           (order > 0 || (order == 0 && ctx->restore_coordinator->old_world_size == 0 && uses_shares(ctx)));
}

/* Plans the resharding of a checkpoint kept by a world of this size, and takes it if it is better. Returns
 * true if it does; false also if there is no memory. */
static bool look_at_world(struct phx_context *ctx, uint32_t world, bool found)
{
    struct job_restore_coordinator *coordinator = ctx->restore_coordinator;
    uint64_t *keys = calloc(world, sizeof *keys);
    uint32_t *sources = calloc(world, sizeof *sources);
    struct plan_input input = {
        .world = world, .keys = keys, .offers = coordinator->offers, .count = coordinator->count};
    struct plan_choice choice;
    bool better = keys != NULL && sources != NULL;
    if (better && ctx->keys.world == world)
        want(ctx, keys, world);
    better = better && plan_reshard(&input, ctx->settings.world, sources, &choice) == PLAN_FOUND &&
             is_better(ctx, &choice, found);
    free(keys);
    if (!better) {
        free(sources);
        return false;
    }
    free(coordinator->old_sources);
    coordinator->old_sources = sources;
    coordinator->old_world_size = world;
    coordinator->choice = choice;
    return true;
}

/* Compares with the checkpoints of all other worlds that have kept one. Returns true if there is a checkpoint
 * to restore. */
static bool look_at_other_worlds(struct phx_context *ctx, const struct plan_input *input, bool found)
{
    uint32_t world = 0;
    while ((world = plan_other_world(input, world)) != 0 && world <= JOB_WORLD_MAX)
        found = look_at_world(ctx, world, found) || found;
    return found;
}

static void plan_restore(struct phx_context *ctx)
{
    struct job_restore_coordinator *coordinator = ctx->restore_coordinator;
    uint32_t world = ctx->settings.world;
    bool fresh = ctx->keys.list == NULL || ctx->keys.world == world;
    want(ctx, coordinator->wanted, world);
    /* otherwise they are those of the previous world */
    for (uint32_t rank = 0; rank < world && fresh; rank++)
        if (coordinator->own[rank] != 0)
            coordinator->wanted[rank] = coordinator->own[rank];
    struct plan_input input = {.world = world,
                               .machines = coordinator->machines,
                               .keys = coordinator->wanted,
                               .offers = coordinator->offers,
                               .count = coordinator->count};
    enum plan_result result = plan_make(&input, coordinator->sources, &coordinator->choice);
    coordinator->old_world_size = 0;
    bool found = look_at_other_worlds(ctx, &input, result == PLAN_FOUND);
    if (result == PLAN_OUT_OF_MEMORY || (coordinator->old_world_size > 0 && !tell_old_world(ctx)))
        job_join_failed(ctx, PHX_ERROR_MEMORY, "out of memory");
    else if (found && coordinator->old_world_size == 0)
        tell_sources(ctx);
    else if (!found)
        conclude(ctx, false);
}

/* ---- a dying checkpoint ---- */

static void refuse(struct phx_context *ctx, const char *text)
{
    struct rendezvous_message message = {.type = RENDEZVOUS_AGREED,
                                         .status = AGREED_REFUSED,
                                         .value = (const uint8_t *)text,
                                         .value_len = (uint32_t)strlen(text)};
    job_coordinator_broadcast(ctx, &message);
}

static void refuse_incomplete(struct phx_context *ctx)
{
    const struct plan_choice *choice = &ctx->restore_coordinator->choice;
    char text[200];
    if (choice->missing == 0)
        snprintf(text, sizeof text, "no rank holds a step newer than the newest commit");
    else
        snprintf(text, sizeof text,
                 "no dying checkpoint: no survivor holds the shard of step %llu of rank %u%s (%u missing)",
                 (unsigned long long)choice->step, choice->missing_first,
                 choice->missing > 1 ? " and others" : "", choice->missing);
    refuse(ctx, text);
}

/* Sends each survivor the list of shards that it must write, even an empty one. */
static bool tell_dump(struct phx_context *ctx)
{
    struct job_restore_coordinator *coordinator = ctx->restore_coordinator;
    uint32_t full = ctx->settings.full_world;
    uint8_t *bytes = malloc((size_t)full * DUMP_ITEM_SIZE);
    coordinator->round++;
    coordinator->waiting = ctx->settings.world;
    coordinator->struck = false;
    for (uint32_t rank = 0; bytes != NULL && rank < ctx->settings.world; rank++) {
        size_t len = 0;
        for (uint32_t target = 0; target < full; target++) {
            const struct plan_offer *source = &coordinator->offers[coordinator->dump_sources[target]];
            if (source->holder != rank)
                continue;
            job_dump_put(&(struct job_dump_item){target, source->offer}, bytes + len);
            len += DUMP_ITEM_SIZE;
        }
        struct rendezvous_message message = {.type = RENDEZVOUS_DUMP,
                                             .number = coordinator->choice.step,
                                             .world = coordinator->round,
                                             .value = bytes,
                                             .value_len = (uint32_t)len};
        job_coordinator_send(ctx, rank, &message);
    }
    free(bytes);
    return bytes != NULL;
}

/* Plans a dying checkpoint. No shard moves: the rank that holds a shard writes it. */
static void plan_dying(struct phx_context *ctx)
{
    struct job_restore_coordinator *coordinator = ctx->restore_coordinator;
    const struct job_checkpoint_ref *committed = &ctx->negotiation.committed;
    uint32_t full = ctx->settings.full_world;
    struct offer stored = {.step = committed->step, .attempt = committed->attempt};
    if (coordinator->dump_sources == NULL)
        coordinator->dump_sources = calloc(full, sizeof *coordinator->dump_sources);
    uint64_t *wanted = calloc(full, sizeof *wanted);
    enum plan_result result = PLAN_OUT_OF_MEMORY;
    if (wanted != NULL && coordinator->dump_sources != NULL) {
        want(ctx, wanted, full);
        struct plan_input input = {
            .world = full, .keys = wanted, .offers = coordinator->offers, .count = coordinator->count};
        result = plan_dump(&input, committed->valid ? &stored : NULL, coordinator->dump_sources,
                           &coordinator->choice);
    }
    free(wanted);
    if (ctx->settings.checkpoint_dir[0] == '\0')
        refuse(ctx, "no dying checkpoint: there is no checkpoint directory (PHX_CHECKPOINT_DIR)");
    else if (result == PLAN_INCOMPLETE)
        refuse_incomplete(ctx);
    else if (result == PLAN_OUT_OF_MEMORY || !tell_dump(ctx))
        job_join_failed(ctx, PHX_ERROR_MEMORY, "out of memory");
}

static void answer_dump(struct phx_context *ctx, const struct rendezvous_message *message)
{
    struct job_restore_coordinator *coordinator = ctx->restore_coordinator;
    if (message->status == 0 && message->rank < ctx->settings.full_world) {
        coordinator->offers[coordinator->dump_sources[message->rank]].struck = true;
        coordinator->struck = true;
    } else if (message->status != 1) {
        coordinator->failed = true;
        snprintf(coordinator->failure, sizeof coordinator->failure, "no dying checkpoint: %.*s",
                 (int)message->value_len, (const char *)message->value);
    }
    if (--coordinator->waiting > 0)
        return;
    if (coordinator->failed)
        refuse(ctx, coordinator->failure);
    else if (coordinator->struck)
        plan_dying(ctx);
    else
        job_coordinator_broadcast(ctx, &(struct rendezvous_message){.type = RENDEZVOUS_AGREED,
                                                                    .status = AGREED_FOUND,
                                                                    .number = coordinator->choice.step,
                                                                    .rank = ctx->attempt});
}

static void plan(struct phx_context *ctx)
{
    ctx->restore_coordinator->planned = true;
    if (ctx->dumping)
        plan_dying(ctx);
    else
        plan_restore(ctx);
}

/* ---- offers ---- */

static bool add_offers(struct job_restore_coordinator *coordinator, uint32_t holder,
                       const struct rendezvous_message *message)
{
    size_t count = message->value_len / OFFER_SIZE;
    if (coordinator->count + count > coordinator->cap) {
        size_t cap = coordinator->cap * 2 + count + OFFER_MAX;
        struct plan_offer *larger = realloc(coordinator->offers, cap * sizeof *larger);
        if (larger == NULL)
            return false;
        coordinator->offers = larger;
        coordinator->cap = cap;
    }
    for (size_t i = 0; i < count; i++) {
        struct plan_offer *at = &coordinator->offers[coordinator->count];
        *at = (struct plan_offer){.holder = holder};
        coordinator->count += offer_get(message->value + i * OFFER_SIZE, &at->offer);
    }
    return true;
}

/* Returns true if the key of some rank is not known here, and another rank knows all keys, of a newer
 * attempt. */
static bool should_ask(const struct phx_context *ctx)
{
    const struct job_restore_coordinator *coordinator = ctx->restore_coordinator;
    bool unknown = false;
    for (uint32_t rank = 0; rank < ctx->settings.world; rank++)
        unknown = unknown || coordinator->own[rank] == 0;
    return unknown && coordinator->count > 0 && coordinator->keys_known &&
           (ctx->keys.list == NULL || ctx->keys.attempt < coordinator->keys_attempt);
}

static void all_offered(struct phx_context *ctx)
{
    struct job_restore_coordinator *coordinator = ctx->restore_coordinator;
    if (!should_ask(ctx)) {
        plan(ctx);
        return;
    }
    coordinator->keys_asked = true;
    job_coordinator_send(ctx, coordinator->keys_rank,
                         &(struct rendezvous_message){.type = RENDEZVOUS_ASK_KEYS});
}

void job_restore_coordinator_offers(struct phx_context *ctx, uint32_t rank,
                                    const struct rendezvous_message *message)
{
    struct job_restore_coordinator *coordinator = ctx->restore_coordinator;
    if (coordinator == NULL || coordinator->planned || coordinator->offered[rank])
        return;
    coordinator->offered[rank] = true;
    coordinator->own[rank] = message->number;
    if (message->status != 0 && (!coordinator->keys_known || message->attempt > coordinator->keys_attempt)) {
        coordinator->keys_known = true;
        coordinator->keys_rank = rank;
        coordinator->keys_attempt = message->attempt;
    }
    if (!add_offers(coordinator, rank, message))
        job_join_failed(ctx, PHX_ERROR_MEMORY, "out of memory");
    else if (--coordinator->waiting == 0)
        all_offered(ctx);
}

void job_restore_coordinator_keys(struct phx_context *ctx, uint32_t rank,
                                  const struct rendezvous_message *message)
{
    struct job_restore_coordinator *coordinator = ctx->restore_coordinator;
    if (coordinator == NULL || coordinator->planned || !coordinator->keys_asked ||
        rank != coordinator->keys_rank)
        return;
    job_keys_told(ctx, message);
    plan(ctx);
}

/* Strikes off the damaged shards that the answer names, and takes the alternatives that it offers. Returns
 * false if the answer is not valid. */
static bool strike(struct job_restore_coordinator *coordinator, uint32_t rank,
                   const struct rendezvous_message *message)
{
    struct jobwire_reader reader = {.data = message->value, .len = message->value_len};
    bool any = coordinator->old_world_size == 0;
    if (any)
        coordinator->offers[coordinator->sources[rank]].struck = true;
    if (any && !add_offers(coordinator, rank, message))
        return false;
    while (coordinator->old_world_size > 0 && reader.pos < reader.len) {
        uint32_t old = (uint32_t)jobwire_get(&reader, 4);
        if (reader.broken || old >= coordinator->old_world_size)
            return false;
        coordinator->offers[coordinator->old_sources[old]].struck = any = true;
    }
    coordinator->struck = true;
    return any;
}

void job_restore_coordinator_answer(struct phx_context *ctx, uint32_t rank,
                                    const struct rendezvous_message *message)
{
    struct job_restore_coordinator *coordinator = ctx->restore_coordinator;
    if (coordinator == NULL || ctx->negotiation.settled || message->world != coordinator->round ||
        coordinator->rounds[rank] == coordinator->round)
        return;
    coordinator->rounds[rank] = coordinator->round;
    if (ctx->dumping) {
        answer_dump(ctx, message);
        return;
    }
    if (message->status != 1 && !strike(coordinator, rank, message)) {
        job_join_failed(ctx, PHX_ERROR_IO, "a rank gave an invalid answer");
        return;
    }
    if (--coordinator->waiting > 0)
        return;
    if (coordinator->struck)
        plan_restore(ctx);
    else
        conclude(ctx, true);
}

/* ---- keys that are registered ---- */

void job_restore_coordinator_key(struct phx_context *ctx, uint32_t rank, uint64_t key)
{
    struct job_restore_coordinator *coordinator = ctx->restore_coordinator;
    uint32_t world = ctx->settings.world;
    if (coordinator == NULL)
        return;
    coordinator->registered[rank] = key;
    coordinator->unregistered -= !coordinator->has_registered[rank];
    coordinator->has_registered[rank] = true;
    if (coordinator->unregistered > 0)
        return;
    memset(coordinator->has_registered, 0, world * sizeof *coordinator->has_registered);
    coordinator->unregistered = world;
    struct keys keys = {coordinator->registered, world, ctx->attempt};
    size_t len;
    uint8_t *bytes = keys_encode(&keys, &len);
    if (bytes == NULL)
        return; /* without memory, replicas stay unknown */
    struct rendezvous_message message = {
        .type = RENDEZVOUS_KEYS, .attempt = ctx->attempt, .value = bytes, .value_len = (uint32_t)len};
    job_coordinator_broadcast(ctx, &message);
    free(bytes);
}
