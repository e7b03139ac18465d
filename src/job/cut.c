/* A checkpoint that another world has kept, a rank's side. Its shards lie where the old ranks have left them:
 * in the memory of this machine and of others, as copies there, in storage. Rank 0 finds one of each
 * (plan_cut) and tells all who gives it; who gives one reads it through before all agree. What a rank needs
 * of them it gets when its regions are registered (load.c): they stay until every rank holds something newer
 * (keep.c, copies.h). */
#include "job/context.h"

#include <stdlib.h>
#include <string.h>

#include "job/error.h"
#include "job/shard.h"
#include "job/transfer.h"

size_t job_cut_put(const struct job_part *part, uint8_t ret_bytes[PART_SIZE])
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

void job_cut_drop(struct job_cut *cut)
{
    free(cut->parts);
    *cut = (struct job_cut){0};
}

void job_cut_told(struct phx_context *ctx, const struct rendezvous_message *message)
{
    struct job_negotiation *negotiation = &ctx->negotiation;
    struct job_cut cut = {.world = message->status};
    bool valid = cut.world > 0 && cut.world <= JOB_WORLD_MAX &&
                 message->value_len == (uint64_t)cut.world * PART_SIZE &&
                 (cut.parts = calloc(cut.world, sizeof *cut.parts)) != NULL;
    for (uint32_t rank = 0; valid && rank < cut.world; rank++)
        valid = get_part(message->value + (size_t)rank * PART_SIZE, ctx->settings.world, &cut.parts[rank]);
    if (!valid) {
        job_cut_drop(&cut);
        job_join_failed(ctx, PHX_ERROR_IO, "rank 0 sent an invalid list of shards to reshard");
        return;
    }
    job_cut_drop(&negotiation->cut);
    negotiation->cut = cut;
    negotiation->source = (struct offer){.step = message->number, .attempt = message->rank};
    negotiation->round = message->world;
    negotiation->asked = NEGOTIATE_CUT;
    job_changed(ctx);
}

static struct shard_id stored_part(const struct phx_context *ctx, uint32_t rank)
{
    const struct job_negotiation *negotiation = &ctx->negotiation;
    return (struct shard_id){.dir = ctx->settings.checkpoint_dir,
                             .step = negotiation->source.step,
                             .attempt = negotiation->source.attempt,
                             .rank = rank,
                             .world = negotiation->cut.world};
}

/* ---- before all agree ---- */

static int verify(const struct phx_context *ctx, const struct job_cut *cut, uint32_t rank,
                  struct phx_error *error)
{
    const struct offer *offer = &cut->parts[rank].offer;
    struct shard_id id = stored_part(ctx, rank);
    id.world = cut->world;
    return offer_in_memory(offer) ? offer_verify(ctx->settings.memory_dir, offer, error)
                                  : shard_verify(&id, error);
}

void job_cut_answer(struct phx_context *ctx)
{
    struct job_negotiation *negotiation = &ctx->negotiation;
    struct job_cut cut = negotiation->cut;
    struct phx_error error;
    uint32_t round = negotiation->round;
    uint8_t *damaged = malloc((size_t)cut.world * 4);
    struct jobwire_writer list = {.data = damaged, .cap = damaged != NULL ? (size_t)cut.world * 4 : 0};
    negotiation->cut = (struct job_cut){0}; /* nobody else changes it meanwhile */
    free(negotiation->data);
    negotiation->data = NULL;
    negotiation->taken = false;
    pthread_mutex_unlock(&ctx->mutex);
    for (uint32_t rank = 0; damaged != NULL && rank < cut.world; rank++)
        if (cut.parts[rank].holder == ctx->settings.rank && verify(ctx, &cut, rank, &error) != 0)
            jobwire_put(&list, rank, 4);
    pthread_mutex_lock(&ctx->mutex);
    job_cut_drop(&negotiation->cut);
    negotiation->cut = cut;
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

bool job_cut_far(const struct phx_context *ctx, uint32_t rank)
{
    const struct job_part *part = &ctx->negotiation.cut.parts[rank];
    return !offer_in_memory(&part->offer) ||
           ctx->names[part->holder].machine != ctx->names[ctx->settings.rank].machine;
}

static int front_from_memory(struct phx_context *ctx, const struct job_part *part, uint8_t *buf, size_t cap,
                             size_t *ret_got, struct phx_error *error)
{
    const struct rendezvous_name *from = &ctx->names[part->holder];
    if (from->machine == ctx->names[ctx->settings.rank].machine)
        return offer_front(ctx->settings.memory_dir, &part->offer, buf, cap, ret_got, error);
    struct transfer_peer peer = {.address = from->address, .port = from->port};
    struct transfer_request request = {.type = TRANSFER_FRONT,
                                       .attempt = ctx->attempt,
                                       .gang = transfer_gang(ctx->settings.jobset),
                                       .offer = part->offer,
                                       .front = cap};
    return transfer_front(&peer, &request, buf, ret_got, error);
}

int job_cut_front(struct phx_context *ctx, uint32_t rank, uint8_t *buf, size_t cap, size_t *ret_got,
                  uint64_t *ret_len, struct phx_error *error)
{
    const struct job_part *part = &ctx->negotiation.cut.parts[rank];
    struct shard_id id = stored_part(ctx, rank);
    struct shard_header header = {.len = part->offer.len};
    int status = offer_in_memory(&part->offer) ? front_from_memory(ctx, part, buf, cap, ret_got, error)
                                               : shard_front(&id, buf, cap, &header, ret_got, error);
    *ret_len = header.len;
    return status;
}

int job_cut_length(struct phx_context *ctx, uint32_t rank, size_t *ret_len, struct phx_error *error)
{
    const struct offer *offer = &ctx->negotiation.cut.parts[rank].offer;
    struct shard_id id = stored_part(ctx, rank);
    if (!offer_in_memory(offer))
        return shard_length(&id, ret_len, error);
    *ret_len = (size_t)offer->len;
    return 0;
}

int job_cut_read(struct phx_context *ctx, uint32_t rank, uint8_t *buf, size_t len, struct phx_error *error)
{
    const struct job_part *part = &ctx->negotiation.cut.parts[rank];
    struct shard_id id = stored_part(ctx, rank);
    return offer_in_memory(&part->offer) ? job_negotiate_fetch(ctx, &part->offer, part->holder, buf, error)
                                         : shard_read(&id, buf, len, &len, error);
}
