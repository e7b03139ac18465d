/* Deletes checkpoints that PHX_CHECKPOINT_KEEP does not keep (retention.h). A separate thread does it,
 * because freeing the blocks of a large file takes a sixth of the time of writing it. */
#include "job/context.h"

#include "job/checkpoint/shard.h"

/* Deletes the shards that are due. Mutex held; released during the deletion. */
static void delete_old(struct phx_context *ctx)
{
    uint64_t keep_from = ctx->deleted_before, every = ctx->retention.every;
    bool commits = ctx->settings.standalone && ctx->settings.rank == 0;
    struct shard_id id = {.dir = ctx->settings.checkpoint_dir,
                          .attempt = ctx->attempt,
                          .rank = ctx->settings.rank,
                          .world = ctx->settings.world};
    ctx->keep.delete_due = false;
    pthread_mutex_unlock(&ctx->mutex);
    shard_delete_before(&id, keep_from, every, commits);
    pthread_mutex_lock(&ctx->mutex);
}

/* The deleting thread; it finishes the deletions that are due before it ends. */
static void *serve_deletes(void *argument)
{
    struct phx_context *ctx = argument;
    pthread_mutex_lock(&ctx->mutex);
    while (!ctx->keep.stop || ctx->keep.delete_due) {
        if (ctx->keep.delete_due)
            delete_old(ctx);
        else
            job_wait(ctx, JOB_NEVER);
    }
    pthread_mutex_unlock(&ctx->mutex);
    return NULL;
}

void job_retain(struct phx_context *ctx)
{
    struct job_keep *keep = &ctx->keep;
    uint64_t keep_from = retention_floor(&ctx->retention);
    if (keep_from <= ctx->deleted_before || ctx->settings.checkpoint_dir[0] == '\0')
        return; /* the agent deletes objects */
    ctx->deleted_before = keep_from;
    keep->delete_due = true;
    if (keep->stop ||
        job_thread_start(ctx, serve_deletes, &keep->delete_thread, &keep->delete_thread_started, NULL) != 0)
        delete_old(ctx);
    job_changed(ctx);
}
