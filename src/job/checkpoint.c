/* The public checkpoint calls: files by shard.c, reports by the agent's connection (or the star,
 * stand-alone). */
#include "job/context.h"

#include <string.h>

#include "job/error.h"
#include "job/shard.h"

static struct shard_id own_shard(const struct phx_context *ctx, uint64_t step, uint32_t attempt)
{
    return (struct shard_id){ctx->settings.checkpoint_dir, step, attempt, ctx->settings.rank,
                             ctx->settings.world};
}

/* Keeps the last two committed checkpoints; with only one known, everything. */
static void delete_old(struct phx_context *ctx)
{
    pthread_mutex_lock(&ctx->mutex);
    uint64_t keep_from = ctx->before.valid ? ctx->before.step : 0;
    bool due = keep_from > ctx->deleted_before;
    if (due)
        ctx->deleted_before = keep_from;
    bool commits = ctx->settings.standalone && ctx->settings.rank == 0;
    pthread_mutex_unlock(&ctx->mutex);
    struct shard_id id = own_shard(ctx, 0, ctx->attempt);
    if (due)
        shard_delete_before(&id, keep_from, commits);
}

static int check_save(struct phx_context *ctx, uint64_t step, struct phx_error *error)
{
    if (ctx->settings.checkpoint_dir[0] == '\0')
        return job_fail(error, PHX_ERROR_INVALID, "there is no checkpoint directory (PHX_CHECKPOINT_DIR)");
    pthread_mutex_lock(&ctx->mutex);
    int status = ctx->failure == PHX_ERROR_FENCED ? job_failure(ctx, error) : 0;
    uint64_t floor = ctx->last.valid ? ctx->last.step : ctx->restore.valid ? ctx->restore.step : 0;
    bool any = ctx->last.valid || ctx->restore.valid;
    if (status == 0 && any && step <= floor)
        status =
            job_fail(error, PHX_ERROR_INVALID, "step %llu doesn't rise above %llu, which is saved already",
                     (unsigned long long)step, (unsigned long long)floor);
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}

static void report_saved(struct phx_context *ctx, uint64_t step, uint64_t bytes)
{
    struct jobwire_shard_saved saved = {step, bytes};
    ctx->last = (struct job_checkpoint_ref){true, step, ctx->attempt};
    if (ctx->saved_count == JOB_SAVED_MAX) { /* nobody commits: the oldest is of the least use */
        memmove(ctx->saved, ctx->saved + 1, (JOB_SAVED_MAX - 1) * sizeof *ctx->saved);
        ctx->saved_count--;
    }
    ctx->saved[ctx->saved_count++] = saved;
    if (ctx->settings.standalone)
        job_spoke_send(ctx, &(struct star_message){.type = STAR_SAVED, .number = step});
    else
        job_link_send(ctx, &(struct jobwire_message){.type = JOBWIRE_SHARD_SAVED, .shard_saved = saved});
}

static enum phx_phase change_phase(struct phx_context *ctx, enum phx_phase phase)
{
    pthread_mutex_lock(&ctx->mutex);
    phase = job_pace_phase(&ctx->pace, phase, job_now_ns());
    pthread_mutex_unlock(&ctx->mutex);
    return phase;
}

int phx_checkpoint_save(phx_context *ctx, uint64_t step, const void *data, size_t len,
                        struct phx_error *error)
{
    uint64_t bytes;
    if (data == NULL && len > 0)
        return job_fail(error, PHX_ERROR_INVALID, "data is NULL");
    int status = check_save(ctx, step, error);
    if (status != 0)
        return status;
    struct shard_id id = own_shard(ctx, step, ctx->attempt);
    enum phx_phase phase = change_phase(ctx, PHX_PHASE_SAVE);
    status = shard_write(&id, data, len, &bytes, error);
    change_phase(ctx, phase);
    if (status != 0)
        return status;
    pthread_mutex_lock(&ctx->mutex);
    status = ctx->failure == PHX_ERROR_FENCED ? job_failure(ctx, error) : 0;
    if (status == 0)
        report_saved(ctx, step, bytes);
    pthread_mutex_unlock(&ctx->mutex);
    delete_old(ctx);
    return status;
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
    pthread_mutex_unlock(&ctx->mutex);
    if (status == 0)
        delete_old(ctx);
    return status;
}

/* What to restore: a slot in memory (*ret_slot from 0) or a shard. ctx->restore is constant after join. */
static int restore_source(phx_context *ctx, int *ret_slot, struct shard_id *ret_id, struct phx_error *error)
{
    if (!ctx->restore.valid)
        return job_fail(error, PHX_ERROR_NONE, "there is no committed checkpoint");
    int slot = job_keep_find(ctx, &ctx->restore);
    if (slot < 0 && ctx->settings.checkpoint_dir[0] == '\0')
        return job_fail(error, PHX_ERROR_INVALID, "there is no checkpoint directory (PHX_CHECKPOINT_DIR)");
    int status = phx_check(ctx, error);
    if (status == 0 && ctx->agreement.broken)
        status = job_fail(error, PHX_ERROR_CORRUPT, "%s", ctx->agreement.text);
    if (status == 0) {
        *ret_slot = slot;
        *ret_id = own_shard(ctx, ctx->restore.step, ctx->restore.attempt);
    }
    return status;
}

int phx_checkpoint_find(phx_context *ctx, size_t *ret_len, uint64_t *ret_step, struct phx_error *error)
{
    struct shard_id id;
    if (ret_len == NULL || ret_step == NULL)
        return job_fail(error, PHX_ERROR_INVALID, "ret_len or ret_step is NULL");
    int slot, status = restore_source(ctx, &slot, &id, error);
    if (status == 0 && slot >= 0)
        *ret_len = ctx->keep.held.slots[slot].len;
    else if (status == 0)
        status = shard_length(&id, ret_len, error);
    if (status == 0)
        *ret_step = id.step;
    return status;
}

int phx_checkpoint_restore(phx_context *ctx, void *buf, size_t cap, size_t *ret_len, uint64_t *ret_step,
                           struct phx_error *error)
{
    struct shard_id id;
    if (ret_len == NULL || ret_step == NULL || (buf == NULL && cap > 0))
        return job_fail(error, PHX_ERROR_INVALID, "buf, ret_len or ret_step is NULL");
    int slot, status = restore_source(ctx, &slot, &id, error);
    if (status == 0 && slot >= 0) /* the agreement has read it through */
        status = held_read(&ctx->keep.held, slot, buf, cap, ret_len, error);
    else if (status == 0)
        status = shard_read(&id, buf, cap, ret_len, error);
    if (status == 0)
        *ret_step = id.step;
    return status;
}
