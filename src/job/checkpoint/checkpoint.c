/* The public checkpoint calls. shard.c handles files; saved shards are reported to the agent or, stand-alone,
 * to rank 0. */
#include "job/context.h"

#include <string.h>

#include "job/link/error.h"
#include "job/checkpoint/old_share.h"

static struct shard_id own_shard(const struct phx_context *ctx, uint64_t step, uint32_t attempt)
{
    return (struct shard_id){.dir = ctx->settings.checkpoint_dir,
                             .step = step,
                             .attempt = attempt,
                             .rank = ctx->settings.rank,
                             .world = ctx->settings.world};
}

int job_save_check(struct phx_context *ctx, uint64_t step, struct phx_error *error)
{
    if (ctx->settings.checkpoint_dir[0] == '\0' && !ctx->settings.store)
        return job_fail(error, PHX_ERROR_INVALID, "there is no checkpoint directory (PHX_CHECKPOINT_DIR)");
    int status = ctx->failure == PHX_ERROR_FENCED ? job_failure(ctx, error) : 0;
    uint64_t floor = ctx->last.valid ? ctx->last.step : ctx->restore.valid ? ctx->restore.step : 0;
    bool any = ctx->last.valid || ctx->restore.valid;
    if (status == 0 && any && step <= floor)
        status =
            job_fail(error, PHX_ERROR_INVALID, "step %llu is not above step %llu, which is already saved",
                     (unsigned long long)step, (unsigned long long)floor);
    return status;
}

void job_saved(struct phx_context *ctx, uint64_t step, uint64_t bytes)
{
    struct jobwire_shard_saved saved = {step, bytes};
    ctx->last = (struct job_checkpoint_ref){true, step, ctx->attempt};
    if (ctx->saved_count == JOB_SAVED_MAX) {
        /* no step is being committed: drop the oldest, the least useful */
        memmove(ctx->saved, ctx->saved + 1, (JOB_SAVED_MAX - 1) * sizeof *ctx->saved);
        ctx->saved_count--;
    }
    ctx->saved[ctx->saved_count++] = saved;
    if (ctx->settings.standalone)
        job_member_send(ctx, &(struct rendezvous_message){.type = RENDEZVOUS_SAVED, .number = step});
    else
        job_link_send(ctx, &(struct jobwire_message){.type = JOBWIRE_SHARD_SAVED, .shard_saved = saved});
}

static int report(struct phx_context *ctx, uint64_t step, uint64_t bytes, struct phx_error *error)
{
    pthread_mutex_lock(&ctx->mutex);
    int status = ctx->failure == PHX_ERROR_FENCED ? job_failure(ctx, error) : 0;
    if (status == 0)
        job_saved(ctx, step, bytes);
    job_retain(ctx);
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}

static int write_parts(struct phx_context *ctx, uint64_t step, const struct iovec *parts, size_t count,
                       uint64_t key, struct phx_error *error)
{
    uint64_t bytes;
    struct shard_id id = own_shard(ctx, step, ctx->attempt);
    id.key = key;
    int status = ctx->settings.verify_writes ? shard_write_verified(&id, parts, count, &bytes, error)
                                             : shard_write(&id, parts, count, &bytes, error);
    return status == 0 ? report(ctx, step, bytes, error) : status;
}

int job_save_slot(struct phx_context *ctx, uint64_t step, const struct held_slot *slot,
                  struct phx_error *error)
{
    struct shard_id id = own_shard(ctx, step, ctx->attempt);
    size_t size = SHARD_HEADER_SIZE + slot->len;
    int status = shard_write_sealed(&id, ctx->settings.verify_writes, slot->map, size, error);
    return status == 0 ? report(ctx, step, size, error) : status;
}

/* Sets the phase of the program's own thread and returns the previous one. */
static enum phx_phase change_phase(struct phx_context *ctx, enum phx_phase phase)
{
    pthread_mutex_lock(&ctx->mutex);
    phase = job_pace_phase(&ctx->pace, phase, job_now_ns());
    pthread_mutex_unlock(&ctx->mutex);
    return phase;
}

/* Saves to the object store: holds the parts in memory, from where the agent uploads them. */
static int save_to_store(struct phx_context *ctx, uint64_t step, const struct iovec *parts, size_t count,
                         uint64_t key, struct phx_error *error)
{
    int status = job_keep_hold(ctx, step, parts, count, key, PHX_IN_STORAGE, error);
    return status == 0 ? job_keep_stored(ctx, error) : status;
}

static int save(struct phx_context *ctx, uint64_t step, const struct iovec *parts, size_t count, uint64_t key,
                struct phx_error *error)
{
    pthread_mutex_lock(&ctx->mutex);
    int status = job_save_check(ctx, step, error);
    pthread_mutex_unlock(&ctx->mutex);
    if (status != 0)
        return status;
    enum phx_phase phase = change_phase(ctx, PHX_PHASE_SAVE);
    status = ctx->settings.store ? save_to_store(ctx, step, parts, count, key, error)
                                 : write_parts(ctx, step, parts, count, key, error);
    change_phase(ctx, phase);
    return status;
}

static int hold(struct phx_context *ctx, uint64_t step, const struct iovec *parts, size_t count, uint64_t key,
                unsigned where, struct phx_error *error)
{
    enum phx_phase phase = change_phase(ctx, PHX_PHASE_SAVE);
    int status = job_keep_hold(ctx, step, parts, count, key, where, error);
    change_phase(ctx, phase);
    return status;
}

int phx_checkpoint_save(phx_context *ctx, uint64_t step, const void *data, size_t len,
                        struct phx_error *error)
{
    if (data == NULL && len > 0)
        return job_fail(error, PHX_ERROR_INVALID, "data is NULL");
    return save(ctx, step, &(struct iovec){(void *)(uintptr_t)data, len}, 1, 0, error);
}

int phx_checkpoint_hold(phx_context *ctx, uint64_t step, const void *data, size_t len,
                        struct phx_error *error)
{
    if (data == NULL && len > 0)
        return job_fail(error, PHX_ERROR_INVALID, "data is NULL");
    return hold(ctx, step, &(struct iovec){(void *)(uintptr_t)data, len}, 1, 0, PHX_IN_MEMORY, error);
}

int phx_checkpoint_wait(phx_context *ctx, uint64_t step, int64_t timeout_ms, struct phx_error *error)
{
    int64_t deadline_ns = job_deadline_ns(timeout_ms);
    int status = 0;
    pthread_mutex_lock(&ctx->mutex);
    enum phx_phase phase = job_pace_phase(&ctx->pace, PHX_PHASE_SAVE, job_now_ns());
    while (status == 0 && !(ctx->committed.valid && ctx->committed.step >= step)) {
        status = job_failure(ctx, error);
        if (status == 0 && !job_wait(ctx, deadline_ns))
            status =
                job_fail(error, PHX_ERROR_TIMEOUT, "step %llu is not committed", (unsigned long long)step);
    }
    job_pace_phase(&ctx->pace, phase, job_now_ns());
    if (status == 0)
        job_retain(ctx);
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}

/* The shard that is restored: data in memory, or a file in storage. */
struct source {
    const uint8_t *data; /* NULL: in storage */
    size_t len;
    struct shard_id id;
};

/* Returns this rank's own shard or, if that was damaged, a replica's. */
static struct shard_id stored_source(const struct phx_context *ctx)
{
    const struct offer *offer = &ctx->negotiation.source;
    struct shard_id id = own_shard(ctx, ctx->restore.step, ctx->restore.attempt);
    if (!offer_in_memory(offer))
        id.rank = offer->rank;
    return id;
}

/* Pins the memory of the source until the restore ends. */
static void begin_reading(phx_context *ctx)
{
    pthread_mutex_lock(&ctx->mutex);
    job_adopt_read(ctx, 1);
    pthread_mutex_unlock(&ctx->mutex);
}

static void end_reading(phx_context *ctx)
{
    pthread_mutex_lock(&ctx->mutex);
    job_adopt_read(ctx, -1);
    pthread_mutex_unlock(&ctx->mutex);
}

/* Finds the shard to restore. ctx->restore is constant after join. *ret_source has the shard's id even after
 * PHX_ERROR_CORRUPT. */
static int restore_source(phx_context *ctx, struct source *ret_source, struct phx_error *error)
{
    struct source source = {0};
    if (!ctx->restore.valid)
        return job_fail(error, PHX_ERROR_NONE, "there is no committed checkpoint");
    int status = phx_check(ctx, error);
    pthread_mutex_lock(&ctx->mutex);
    int slot = job_keep_find(ctx, &ctx->restore);
    pthread_mutex_unlock(&ctx->mutex);
    if (status == 0 && ctx->negotiation.broken)
        status = job_fail(error, PHX_ERROR_CORRUPT, "%s", ctx->negotiation.text);
    if (slot >= 0 && status == 0 && !held_verify(&ctx->keep.held, slot))
        status = job_fail(error, PHX_ERROR_CORRUPT, "this rank's copy of step %llu in memory is damaged",
                          (unsigned long long)ctx->restore.step);
    if (slot >= 0) {
        source.data = held_data(&ctx->keep.held, slot);
        source.len = ctx->keep.held.slots[slot].len;
    } else if (ctx->negotiation.data != NULL) {
        source.data = ctx->negotiation.data;
        source.len = ctx->negotiation.source.len;
    } else if (status == 0 && ctx->settings.checkpoint_dir[0] == '\0' && !ctx->settings.store &&
               ctx->negotiation.old_world.world == 0) {
        status = job_fail(error, PHX_ERROR_INVALID, "there is no checkpoint directory (PHX_CHECKPOINT_DIR)");
    }
    source.id = stored_source(ctx);
    *ret_source = source;
    return status;
}

static int fail_world(const struct shard_id *id, uint32_t world, struct phx_error *error)
{
    return job_fail(error, PHX_ERROR_INVALID,
                    "step %llu was saved by %u ranks, this world has %u: only named regions can be resharded "
                    "(phx_checkpoint_load)",
                    (unsigned long long)id->step, world, id->world);
}

/* Returns PHX_ERROR_INVALID instead of `status` if another number of ranks saved the checkpoint: then a
 * missing shard is not damage. */
static int blame_world(const struct shard_id *id, int status, struct phx_error *error)
{
    uint32_t world;
    bool other = old_share_world(id, &world, NULL) == 0 && world != id->world;
    return other ? fail_world(id, world, error) : status;
}

/* As restore_source, for a caller that wants the bytes as they were kept. */
static int restore_bytes(phx_context *ctx, struct source *ret_source, struct phx_error *error)
{
    int status = restore_source(ctx, ret_source, error);
    uint32_t world = ctx->negotiation.old_world.world;
    return status == 0 && world > 0 ? fail_world(&ret_source->id, world, error) : status;
}

int phx_checkpoint_find(phx_context *ctx, size_t *ret_len, uint64_t *ret_step, struct phx_error *error)
{
    struct source source;
    if (ret_len == NULL || ret_step == NULL)
        return job_fail(error, PHX_ERROR_INVALID, "ret_len or ret_step is NULL");
    begin_reading(ctx);
    int status = restore_bytes(ctx, &source, error);
    end_reading(ctx);
    if (status == 0 && source.data == NULL)
        status = shard_length(&source.id, &source.len, error);
    if (status == PHX_ERROR_CORRUPT)
        status = blame_world(&source.id, status, error);
    if (status == 0) {
        *ret_len = source.len;
        *ret_step = source.id.step;
    }
    return status;
}

static int read_source(const struct source *source, void *buf, size_t cap, size_t *ret_len,
                       struct phx_error *error)
{
    if (source->data == NULL)
        return shard_read(&source->id, buf, cap, ret_len, error);
    *ret_len = source->len;
    if (source->len > cap)
        return job_fail(error, PHX_ERROR_SPACE, "%zu bytes are held in memory, the buffer has %zu",
                        source->len, cap);
    if (source->len > 0)
        memcpy(buf, source->data, source->len);
    return 0;
}

int phx_checkpoint_restore(phx_context *ctx, void *buf, size_t cap, size_t *ret_len, uint64_t *ret_step,
                           struct phx_error *error)
{
    struct source source;
    if (ret_len == NULL || ret_step == NULL || (buf == NULL && cap > 0))
        return job_fail(error, PHX_ERROR_INVALID, "buf, ret_len or ret_step is NULL");
    begin_reading(ctx);
    int status = restore_bytes(ctx, &source, error);
    if (status == 0)
        status = read_source(&source, buf, cap, ret_len, error);
    end_reading(ctx);
    if (status == PHX_ERROR_CORRUPT)
        status = blame_world(&source.id, status, error);
    if (status == 0) {
        *ret_step = source.id.step;
        job_step_from(ctx, source.id.step);
    }
    return status;
}

/* ---- regions ---- */

int phx_checkpoint_register(phx_context *ctx, const struct phx_region *regions, size_t count,
                            struct phx_error *error)
{
    struct job_regions described;
    int status = job_regions_describe(regions, count, &described, error);
    if (status != 0)
        return status;
    pthread_mutex_lock(&ctx->mutex);
    job_regions_done(&ctx->regions);
    ctx->regions = described;
    job_keys_told_own(ctx);
    pthread_mutex_unlock(&ctx->mutex);
    return 0;
}

static int check_registered(const struct phx_context *ctx, struct phx_error *error)
{
    return ctx->regions.count > 0 ? 0 : job_fail(error, PHX_ERROR_INVALID, "no regions are registered");
}

int phx_checkpoint_take(phx_context *ctx, uint64_t step, unsigned where, struct phx_error *error)
{
    const struct job_regions *regions = &ctx->regions;
    bool store = (where & PHX_IN_STORAGE) != 0, held = (where & (PHX_IN_MEMORY | PHX_IN_PEER)) != 0;
    int status = check_registered(ctx, error);
    if (status == 0 && (where == 0 || (where & ~(PHX_IN_MEMORY | PHX_IN_STORAGE | PHX_IN_PEER)) != 0))
        status = job_fail(error, PHX_ERROR_INVALID,
                          "`where` names none of PHX_IN_MEMORY, PHX_IN_PEER and PHX_IN_STORAGE");
    if (status != 0)
        return status;
    if (held && !(store && ctx->settings.memory_dir[0] == '\0'))
        return hold(ctx, step, regions->parts, regions->count + 1, regions->key, where, error);
    return save(ctx, step, regions->parts, regions->count + 1, regions->key, error);
}

int phx_checkpoint_rescue(phx_context *ctx, uint64_t step, struct phx_error *error)
{
    int status = check_registered(ctx, error);
    if (status != 0)
        return status;
    const struct job_regions *regions = &ctx->regions;
    pthread_mutex_lock(&ctx->mutex);
    if (ctx->failure == PHX_ERROR_FENCED)
        status = job_failure(ctx, error);
    else if (ctx->failure == 0)
        status = job_fail(error, PHX_ERROR_INVALID,
                          "the attempt has not ended: use phx_checkpoint_take, which all ranks call");
    pthread_mutex_unlock(&ctx->mutex);
    return status == 0 ? job_keep_rescue(ctx, step, regions->parts, regions->count + 1, regions->key, error)
                       : status;
}

int phx_checkpoint_load(phx_context *ctx, uint64_t *ret_step, struct phx_error *error)
{
    struct source source;
    int status = ret_step == NULL ? job_fail(error, PHX_ERROR_INVALID, "ret_step is NULL")
                                  : check_registered(ctx, error);
    if (status != 0)
        return status;
    begin_reading(ctx);
    status = restore_source(ctx, &source, error);
    if (status == 0)
        status = job_load(ctx, &ctx->regions, source.data, source.len, &source.id, error);
    end_reading(ctx);
    if (status == 0) {
        *ret_step = source.id.step;
        job_step_from(ctx, source.id.step);
    }
    return status;
}
