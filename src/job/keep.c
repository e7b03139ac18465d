/* keep.c - checkpoints in memory: the public calls, the thread that seals what was copied, and who has
 * what.
 *
 * A hold is: copy into the slot that is not the newest (the caller waits for that alone), seal (the
 * thread), tell the hub. When the hub has heard of a step from every rank it tells all: from then on a
 * whole gang could restore it, and the slot before it may be overwritten. So of the two slots one always
 * belongs to a step that every rank holds; a rank that is a whole hold ahead of another one waits for it.
 *
 * That a step is held by all is nobody's to remember: at the next join the ranks ask each other (agree.c). */
#include "job/context.h"

#include <signal.h>
#include <string.h>

#include "job/error.h"

int job_keep_open(struct phx_context *ctx, bool make, struct phx_error *error)
{
    struct job_keep *keep = &ctx->keep;
    const struct job_settings *settings = &ctx->settings;
    if (settings->memory_dir[0] == '\0')
        return job_fail(error, PHX_ERROR_INVALID,
                        "there is no folder for checkpoints in memory (PHX_MEMORY_DIR)");
    if (settings->worlds != 1)
        return job_fail(error, PHX_ERROR_INVALID, "a job set of %u gangs can't restore from memory",
                        settings->worlds);
    if (keep->open)
        return 0;
    int status = held_open(&keep->held, settings->memory_dir, make, settings->rank, settings->world,
                           ctx->attempt, error);
    keep->open = status == 0;
    keep->newest = -1;
    return status;
}

bool job_keep_newest(const struct phx_context *ctx, struct job_checkpoint_ref *ret_ref)
{
    struct job_checkpoint_ref ref = {true, UINT64_MAX, UINT32_MAX};
    if (!ctx->keep.open || !held_find_older(&ctx->keep.held, &ref.step, &ref.attempt))
        return false;
    *ret_ref = ref;
    return true;
}

int job_keep_find(const struct phx_context *ctx, const struct job_checkpoint_ref *ref)
{
    return ctx->keep.open && ref->valid ? held_find(&ctx->keep.held, ref->step, ref->attempt) : -1;
}

void job_keep_stop(struct phx_context *ctx, bool discard)
{
    struct job_keep *keep = &ctx->keep;
    if (keep->thread_started) {
        pthread_mutex_lock(&ctx->mutex);
        keep->stop = true;
        job_changed(ctx);
        pthread_mutex_unlock(&ctx->mutex);
        pthread_join(keep->thread, NULL);
        keep->thread_started = false;
    }
    if (keep->open && discard)
        held_discard(&keep->held);
    else if (keep->open)
        held_close(&keep->held);
    keep->open = false;
}

/* ---- the thread ---- */

static void seal(struct phx_context *ctx)
{
    struct job_keep *keep = &ctx->keep;
    struct phx_error error;
    pthread_mutex_unlock(&ctx->mutex);
    int status = held_seal(&keep->held, keep->busy, keep->step, keep->len, &error);
    pthread_mutex_lock(&ctx->mutex);
    if (status == 0) {
        keep->newest = keep->busy;
        job_spoke_send(ctx, &(struct star_message){.type = STAR_HELD, .number = keep->step});
    } else {
        keep->failure = error; /* the next hold tells */
    }
    keep->state = KEEP_IDLE;
    job_changed(ctx);
}

static void *serve(void *argument)
{
    struct phx_context *ctx = argument;
    pthread_mutex_lock(&ctx->mutex);
    while (!ctx->keep.stop) {
        if (ctx->keep.state == KEEP_COPIED)
            seal(ctx);
        else
            job_wait(ctx, JOB_NEVER);
    }
    pthread_mutex_unlock(&ctx->mutex);
    return NULL;
}

static int start_thread(struct phx_context *ctx, struct phx_error *error)
{
    struct job_keep *keep = &ctx->keep;
    sigset_t all, before;
    if (keep->thread_started)
        return 0;
    sigfillset(&all); /* the program's signals are for the program's threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = pthread_create(&keep->thread, NULL, serve, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status != 0)
        return job_fail_errno(error, status, "start a thread for checkpoints in memory");
    keep->thread_started = true;
    return 0;
}

/* ---- calls ---- */

static bool by_all(const struct job_keep *keep, uint64_t step)
{
    return keep->any_by_all && keep->by_all >= step;
}

/* A slot may be taken when the one before is sealed here and everywhere. */
static int wait_for_slot(struct phx_context *ctx, uint64_t step, struct phx_error *error)
{
    struct job_keep *keep = &ctx->keep;
    const uint64_t *floor = keep->any ? &keep->step : ctx->restore.valid ? &ctx->restore.step : NULL;
    if (floor != NULL && step <= *floor)
        return job_fail(error, PHX_ERROR_INVALID, "step %llu doesn't rise above %llu, which is held already",
                        (unsigned long long)step, (unsigned long long)*floor);
    int status = job_failure(ctx, error);
    while (status == 0 && (keep->state != KEEP_IDLE ||
                           (keep->any && keep->failure.code == 0 && !by_all(keep, keep->step)))) {
        if (ctx->any_left)
            return job_fail_peer(error, ctx->left_rank, "has left; no further step is held by all");
        job_wait(ctx, JOB_NEVER);
        status = job_failure(ctx, error);
    }
    if (status == 0 && keep->failure.code != 0) {
        status = keep->failure.code;
        if (error != NULL)
            *error = keep->failure;
        keep->failure = (struct phx_error){0};
    }
    return status;
}

/* The one that holds nothing that is still wanted: not the newest of this attempt, nor what it began with. */
static int free_slot(const struct phx_context *ctx)
{
    int taken = ctx->keep.newest >= 0 ? ctx->keep.newest : job_keep_find(ctx, &ctx->restore);
    return taken == 0 ? 1 : 0;
}

int phx_checkpoint_hold(phx_context *ctx, uint64_t step, const void *data, size_t len,
                        struct phx_error *error)
{
    if (data == NULL && len > 0)
        return job_fail(error, PHX_ERROR_INVALID, "data is NULL");
    struct job_keep *keep = &ctx->keep;
    pthread_mutex_lock(&ctx->mutex);
    enum phx_phase phase = job_pace_phase(&ctx->pace, PHX_PHASE_SAVE, job_now_ns());
    int status = job_keep_open(ctx, true, error);
    if (status == 0)
        status = start_thread(ctx, error);
    if (status == 0)
        status = wait_for_slot(ctx, step, error);
    if (status == 0) {
        keep->state = KEEP_COPYING;
        keep->busy = free_slot(ctx);
        pthread_mutex_unlock(&ctx->mutex);
        status = held_copy(&keep->held, keep->busy, data, len, error);
        pthread_mutex_lock(&ctx->mutex);
        keep->state = status == 0 ? KEEP_COPIED : KEEP_IDLE;
    }
    if (status == 0) {
        keep->any = true;
        keep->step = step;
        keep->len = len;
    }
    job_pace_phase(&ctx->pace, phase, job_now_ns());
    job_changed(ctx);
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}

int phx_checkpoint_held(phx_context *ctx, uint64_t step, int64_t timeout_ms, struct phx_error *error)
{
    int64_t deadline_ns = job_deadline_ns(timeout_ms);
    int status = 0;
    pthread_mutex_lock(&ctx->mutex);
    enum phx_phase phase = job_pace_phase(&ctx->pace, PHX_PHASE_SAVE, job_now_ns());
    while (status == 0 && !by_all(&ctx->keep, step)) {
        status = job_failure(ctx, error);
        if (status == 0 && !job_wait(ctx, deadline_ns))
            status = job_fail(error, PHX_ERROR_TIMEOUT, "step %llu is not held by every rank",
                              (unsigned long long)step);
    }
    job_pace_phase(&ctx->pace, phase, job_now_ns());
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}

void job_keep_told(struct phx_context *ctx, uint64_t step)
{
    ctx->keep.any_by_all = true;
    ctx->keep.by_all = step;
    job_changed(ctx);
}
