/* A rank's side of resharding a checkpoint of another world. The old ranks have left its shards in the memory
 * of machines, as copies on other machines, and in storage. Rank 0 chooses a source of each shard
 * (plan_reshard) and tells every rank which rank provides it. The providing rank verifies the shard before
 * the gang agrees. A rank reads the parts that it needs after its regions are registered (load.c). The shards
 * stay until every rank holds a newer step (keep.c, copies.h). */
#include "job/context.h"

#include <stdlib.h>
#include <string.h>

#include "job/link/error.h"
#include "job/checkpoint/shard.h"
#include "job/checkpoint/transfer.h"

size_t job_old_world_put(const struct job_part *part, uint8_t ret_bytes[PART_SIZE])
{
    struct jobwire_writer writer = {.data = ret_bytes, .cap = PART_SIZE};
    jobwire_put(&writer, part->holder, 4);
    offer_put(&part->offer, ret_bytes + 4);
    return PART_SIZE;
}

static bool get_part(const uint8_t *bytes, uint32_t world, struct job_part *ret_part)
{
    struct jobwire_reader reader = {.data = bytes, .len = PART_SIZE};
    ret_part->holder = (uint32_t)jobwire_get(&reader, 4);
    return offer_get(bytes + 4, &ret_part->offer) && ret_part->holder < world &&
           ret_part->offer.place != OFFER_STORED;
}

void job_old_world_drop(struct job_old_world *old_world)
{
    free(old_world->parts);
    *old_world = (struct job_old_world){0};
}

void job_old_world_told(struct phx_context *ctx, const struct rendezvous_message *message)
{
    struct job_negotiation *negotiation = &ctx->negotiation;
    struct job_old_world old_world = {.world = message->status};
    bool valid = old_world.world > 0 && old_world.world <= JOB_WORLD_MAX &&
                 message->value_len == (uint64_t)old_world.world * PART_SIZE &&
                 (old_world.parts = calloc(old_world.world, sizeof *old_world.parts)) != NULL;
    for (uint32_t rank = 0; valid && rank < old_world.world; rank++)
        valid =
            get_part(message->value + (size_t)rank * PART_SIZE, ctx->settings.world, &old_world.parts[rank]);
    if (!valid) {
        job_old_world_drop(&old_world);
        job_join_failed(ctx, PHX_ERROR_IO, "rank 0 sent an invalid list of shards to reshard");
        return;
    }
    job_old_world_drop(&negotiation->old_world);
    negotiation->old_world = old_world;
    negotiation->source = (struct offer){.step = message->number, .attempt = message->rank};
    negotiation->round = message->world;
    negotiation->asked = NEGOTIATE_RESHARD;
    job_changed(ctx);
}

static struct shard_id stored_part(const struct phx_context *ctx, uint32_t rank)
{
    const struct job_negotiation *negotiation = &ctx->negotiation;
    return (struct shard_id){.dir = ctx->settings.checkpoint_dir,
                             .step = negotiation->source.step,
                             .attempt = negotiation->source.attempt,
                             .rank = rank,
                             .world = negotiation->old_world.world};
}

/* ---- before all agree ---- */

static int verify(const struct phx_context *ctx, const struct job_old_world *old_world, uint32_t rank,
                  struct phx_error *error)
{
    const struct offer *offer = &old_world->parts[rank].offer;
    struct shard_id id = stored_part(ctx, rank);
    id.world = old_world->world;
    return offer_in_memory(offer) ? offer_verify(ctx->settings.memory_dir, offer, error)
                                  : shard_verify(&id, error);
}

void job_old_world_answer(struct phx_context *ctx)
{
    struct job_negotiation *negotiation = &ctx->negotiation;
    struct job_old_world old_world = negotiation->old_world;
    struct phx_error error;
    uint32_t round = negotiation->round;
    uint8_t *damaged = malloc((size_t)old_world.world * 4);
    struct jobwire_writer list = {.data = damaged, .cap = damaged != NULL ? (size_t)old_world.world * 4 : 0};
    negotiation->old_world = (struct job_old_world){0}; /* no other thread changes it in the meantime */
    free(negotiation->data);
    negotiation->data = NULL;
    negotiation->taken = false;
    pthread_mutex_unlock(&ctx->mutex);
    for (uint32_t rank = 0; damaged != NULL && rank < old_world.world; rank++)
        if (old_world.parts[rank].holder == ctx->settings.rank && verify(ctx, &old_world, rank, &error) != 0)
            jobwire_put(&list, rank, 4);
    pthread_mutex_lock(&ctx->mutex);
    job_old_world_drop(&negotiation->old_world);
    negotiation->old_world = old_world;
    if (damaged == NULL)
        job_join_failed(ctx, PHX_ERROR_MEMORY, "out of memory");
    struct rendezvous_message answer = {.type = RENDEZVOUS_ANSWER,
                                        .world = round,
                                        .status = list.len == 0,
                                        .value = damaged,
                                        .value_len = (uint32_t)list.len};
    if (damaged != NULL)
        job_member_send(ctx, &answer);
    free(damaged);
}

/* ---- reading ---- */

bool job_old_world_far(const struct phx_context *ctx, uint32_t rank)
{
    const struct job_part *part = &ctx->negotiation.old_world.parts[rank];
    return !offer_in_memory(&part->offer) ||
           ctx->names[part->holder].machine != ctx->names[ctx->settings.rank].machine;
}

static int front_from_memory(struct phx_context *ctx, const struct job_part *part, uint8_t *buf, size_t cap,
                             size_t *ret_got, struct phx_error *error)
{
    const struct rendezvous_name *from = &ctx->names[part->holder];
    if (from->machine == ctx->names[ctx->settings.rank].machine)
        return offer_front(ctx->settings.memory_dir, &part->offer, buf, cap, ret_got, error);
    struct transfer_peer peer = {
        .address = from->address, .port = from->port, .prove = ctx->settings.peer_prove};
    struct transfer_request request = {
        .type = TRANSFER_FRONT, .self = job_transfer_self(ctx), .offer = part->offer, .front = cap};
    return transfer_front(&peer, &request, buf, ret_got, error);
}

int job_old_world_front(struct phx_context *ctx, uint32_t rank, uint8_t *buf, size_t cap, size_t *ret_got,
                        uint64_t *ret_len, struct phx_error *error)
{
    const struct job_part *part = &ctx->negotiation.old_world.parts[rank];
    struct shard_id id = stored_part(ctx, rank);
    struct shard_header header = {.len = part->offer.len};
    int status = offer_in_memory(&part->offer) ? front_from_memory(ctx, part, buf, cap, ret_got, error)
                                               : shard_front(&id, buf, cap, &header, ret_got, error);
    *ret_len = header.len;
    return status;
}

int job_old_world_length(struct phx_context *ctx, uint32_t rank, size_t *ret_len, struct phx_error *error)
{
    const struct offer *offer = &ctx->negotiation.old_world.parts[rank].offer;
    struct shard_id id = stored_part(ctx, rank);
    if (!offer_in_memory(offer))
        return shard_length(&id, ret_len, error);
    *ret_len = (size_t)offer->len;
    return 0;
}

int job_old_world_read(struct phx_context *ctx, uint32_t rank, uint8_t *buf, size_t len,
                       struct phx_error *error)
{
    const struct job_part *part = &ctx->negotiation.old_world.parts[rank];
    struct shard_id id = stored_part(ctx, rank);
    return offer_in_memory(&part->offer) ? job_negotiate_fetch(ctx, &part->offer, part->holder, buf, error)
                                         : shard_read(&id, buf, len, &len, error);
}
