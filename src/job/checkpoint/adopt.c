/* Gives a slot to a shard that was fetched from another rank or from storage. If a slot has memory for the
 * shard and holds no checkpoint to which the gang could go back, the shard is received into it directly; a
 * killed process leaves such slots to its replacement.
 *
 * Otherwise the shard is received into memory of this process, because allocating the pages of a new slot
 * takes longer than the transfer, and the gang is waiting. When all ranks have their shards, a thread of idle
 * priority copies the shard into a slot, which outlives this process. Until then the shard also stays at its
 * source. */
#include "job/context.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "job/link/error.h"

#define LARGE_PAGE ((size_t)2 << 20)

static struct shard_header header_of(const struct offer *offer)
{
    return (struct shard_header){.step = offer->step,
                                 .attempt = offer->attempt,
                                 .data_crc = offer->crc,
                                 .len = offer->len,
                                 .key = offer->key};
}

/* ---- receiving ---- */

/* Allocates negotiation.data and returns it, or NULL if there is no memory. */
static uint8_t *make_room(struct phx_context *ctx, size_t len)
{
    uint8_t **data = &ctx->negotiation.data;
    free(*data);
    if (len > SIZE_MAX - LARGE_PAGE)
        *data = NULL;
    else if (len < LARGE_PAGE)
        *data = malloc(len + 1);
    else if ((*data = aligned_alloc(LARGE_PAGE, (len + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE)) != NULL)
        madvise(*data, len, MADV_HUGEPAGE);
    return *data;
}

static int fetch_into_slot(struct phx_context *ctx, const struct offer *offer, uint32_t holder, int slot,
                           struct phx_error *error)
{
    struct held *held = &ctx->keep.held;
    struct shard_header header = header_of(offer);
    int status = held_reserve(held, slot, (size_t)offer->len, error);
    if (status == 0)
        status = job_negotiate_fetch(ctx, offer, holder, held_data(held, slot), error);
    return status == 0 ? held_adopt(held, slot, &header, error) : status;
}

int job_adopt_fetch(struct phx_context *ctx, const struct offer *offer, uint32_t holder,
                    const struct job_checkpoint_ref *older, struct phx_error *error)
{
    int slot = ctx->keep.open ? held_ready(&ctx->keep.held, (size_t)offer->len, older->step,
                                           older->valid ? older->attempt : UINT32_MAX)
                              : -1;
    if (slot >= 0)
        return fetch_into_slot(ctx, offer, holder, slot, error);
    uint8_t *to = make_room(ctx, (size_t)offer->len);
    return to != NULL ? job_negotiate_fetch(ctx, offer, holder, to, error)
                      : job_fail(error, PHX_ERROR_MEMORY, "there is no memory for %llu bytes of step %llu",
                                 (unsigned long long)offer->len, (unsigned long long)offer->step);
}

/* ---- the copy into a slot, in the background ---- */

/* Frees negotiation.data if a slot has the shard and no caller reads the data. */
static void drop_data(struct phx_context *ctx)
{
    struct job_negotiation *negotiation = &ctx->negotiation;
    if (negotiation->readers > 0 || job_keep_find(ctx, &ctx->restore) < 0)
        return;
    free(negotiation->data);
    negotiation->data = NULL;
}

void job_adopt_read(struct phx_context *ctx, int change)
{
    ctx->negotiation.readers += change;
    drop_data(ctx);
}

/* Copies negotiation.data into a slot. On failure the data just stays in negotiation.data. */
static void copy(struct phx_context *ctx)
{
    struct held *held = &ctx->keep.held;
    const struct offer *offer = &ctx->negotiation.source;
    struct shard_header header = header_of(offer);
    int slot = held_spare(held, offer->step, offer->attempt);
    if (slot < 0)
        return;
    ctx->keep.busy = slot;
    pthread_mutex_unlock(&ctx->mutex);
    int status = held_reserve(held, slot, offer->len, NULL);
    if (status == 0)
        memcpy(held_data(held, slot), ctx->negotiation.data, offer->len);
    pthread_mutex_lock(&ctx->mutex);
    if (status == 0)
        (void)held_adopt(held, slot, &header, NULL);
}

static void *adopt(void *argument)
{
    struct phx_context *ctx = argument;
    struct job_keep *keep = &ctx->keep;
    struct sched_param none = {0};
    pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
    pthread_mutex_lock(&ctx->mutex);
    if (job_keep_open(ctx, true, NULL) == 0)
        copy(ctx);
    keep->state = KEEP_IDLE;
    drop_data(ctx);
    job_changed(ctx);
    pthread_mutex_unlock(&ctx->mutex);
    return NULL;
}

void job_adopt_start(struct phx_context *ctx)
{
    struct job_keep *keep = &ctx->keep;
    if (ctx->negotiation.data == NULL || ctx->settings.memory_dir[0] == '\0' || keep->state != KEEP_IDLE ||
        keep->stop) /* the attempt has ended, and nobody would join the thread */
        return;
    keep->state = KEEP_ADOPTING;
    if (job_thread_start(ctx, adopt, &keep->adopt_thread, &keep->adopt_thread_started, NULL) != 0)
        keep->state = KEEP_IDLE;
}
