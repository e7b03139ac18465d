/* A survivor's side of a dying checkpoint. The survivor writes the shards that rank 0 assigns to it, its own
 * and those of lost ranks, from its machine's memory to storage, under the new attempt and as shards of the
 * whole world. When all survivors have written theirs, each reports its part as saved, and the controller
 * commits. Then the processes wait for their end. restore_coordinator.c and plan.h plan and refuse dying
 * checkpoints. */
#include "job/context.h"

#include <stdlib.h>
#include <string.h>

#include "job/link/error.h"
#include "job/checkpoint/shard.h"
#include "job/link/wire.h"

/* ---- the list of shards to write ---- */

void job_dump_put(const struct job_dump_item *item, uint8_t ret_bytes[DUMP_ITEM_SIZE])
{
    struct jobwire_writer writer = {.data = ret_bytes, .cap = DUMP_ITEM_SIZE};
    jobwire_put(&writer, item->rank, 4);
    offer_put(&item->offer, ret_bytes + 4);
}

bool job_dump_told(struct phx_context *ctx, const struct rendezvous_message *message)
{
    struct job_negotiation *negotiation = &ctx->negotiation;
    size_t count = message->value_len / DUMP_ITEM_SIZE;
    struct job_dump_item *items = calloc(count + 1, sizeof *items);
    bool valid = items != NULL && message->value_len % DUMP_ITEM_SIZE == 0;
    for (size_t i = 0; valid && i < count; i++) {
        struct jobwire_reader reader = {.data = message->value + i * DUMP_ITEM_SIZE, .len = DUMP_ITEM_SIZE};
        items[i].rank = (uint32_t)jobwire_get(&reader, 4);
        valid = offer_get(jobwire_get_bytes(&reader, OFFER_SIZE), &items[i].offer) &&
                items[i].rank < ctx->settings.full_world && offer_in_memory(&items[i].offer);
    }
    if (!valid) {
        free(items);
        job_join_failed(ctx, PHX_ERROR_IO, "rank 0 sent an invalid list of shards to write");
        return false;
    }
    free(negotiation->dump);
    negotiation->dump = items;
    negotiation->dump_count = count;
    negotiation->round = message->world;
    negotiation->asked = NEGOTIATE_DUMP;
    job_changed(ctx);
    return true;
}

/* ---- writing ---- */

static int write_one(const struct phx_context *ctx, const struct job_dump_item *item, uint64_t *ret_bytes,
                     struct phx_error *error)
{
    const struct job_settings *settings = &ctx->settings;
    const struct offer *offer = &item->offer;
    struct shard_id id = {.dir = settings->checkpoint_dir,
                          .step = offer->step,
                          .attempt = ctx->attempt,
                          .rank = item->rank,
                          .world = settings->full_world,
                          .key = offer->key};
    uint8_t *data = offer->len < SIZE_MAX ? malloc((size_t)offer->len + 1) : NULL;
    struct iovec part = {data, (size_t)offer->len};
    uint64_t bytes = 0;
    int status = data == NULL ? job_fail(error, PHX_ERROR_MEMORY, "out of memory for %llu bytes",
                                         (unsigned long long)offer->len)
                              : offer_read(settings->memory_dir, offer, data, error);
    if (status == 0)
        status = settings->verify_writes ? shard_write_verified(&id, &part, 1, &bytes, error)
                                         : shard_write(&id, &part, 1, &bytes, error);
    free(data);
    if (status == 0)
        *ret_bytes += bytes;
    return status;
}

/* Writes the shards and answers rank 0. Status 2 means that a shard was whole but could not be written. */
void job_dump_answer(struct phx_context *ctx)
{
    struct job_negotiation *negotiation = &ctx->negotiation;
    struct job_dump_item *items = negotiation->dump;
    size_t count = negotiation->dump_count, done = 0;
    struct phx_error error = {0};
    uint64_t bytes = 0;
    uint32_t round = negotiation->round;
    int status = 0;
    negotiation->dump = NULL;
    pthread_mutex_unlock(&ctx->mutex);
    while (status == 0 && done < count)
        status = write_one(ctx, &items[done++], &bytes, &error);
    pthread_mutex_lock(&ctx->mutex);
    negotiation->dumped = bytes;
    struct rendezvous_message answer = {.type = RENDEZVOUS_ANSWER, .world = round, .status = 1};
    if (status != 0) {
        answer.status = status == PHX_ERROR_CORRUPT ? 0 : 2;
        answer.rank = items[done - 1].rank;
        answer.value = (const uint8_t *)error.message;
        answer.value_len = (uint32_t)strnlen(error.message, sizeof error.message);
    }
    job_member_send(ctx, &answer);
    free(items);
}

/* ---- the end ---- */

int job_dump_end(struct phx_context *ctx, struct phx_error *error)
{
    const struct job_negotiation *negotiation = &ctx->negotiation;
    if (!ctx->restore.valid || negotiation->broken)
        return job_fail(error, PHX_ERROR_NONE, "%s", negotiation->text);
    job_saved(ctx, ctx->restore.step, negotiation->dumped);
    return job_fail(error, PHX_ERROR_REJOIN, "step %llu was written as a dying checkpoint; the gang restarts",
                    (unsigned long long)ctx->restore.step);
}
