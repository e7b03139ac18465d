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
    keep->newest = keep->before = keep->storing = -1;
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
    pthread_mutex_lock(&ctx->mutex);
    keep->stop = true;
    job_changed(ctx);
    pthread_mutex_unlock(&ctx->mutex);
    if (keep->thread_started)
        pthread_join(keep->thread, NULL);
    if (keep->store_thread_started)
        pthread_join(keep->store_thread, NULL);
    keep->thread_started = keep->store_thread_started = false;
    if (keep->open && discard)
        held_discard(&keep->held);
    else if (keep->open)
        held_close(&keep->held);
    keep->open = false;
}

/* ---- the threads ---- */

/* The others wait for a word in either case. */
static void end_hold(struct phx_context *ctx, uint64_t step, bool held)
{
    struct job_keep *keep = &ctx->keep;
    if (!held && keep->storing == keep->busy)
        keep->storing = -1;
    keep->state = KEEP_IDLE;
    job_spoke_send(ctx, &(struct star_message){.type = STAR_HELD, .number = step, .status = !held});
    job_changed(ctx);
}

static void seal(struct phx_context *ctx)
{
    struct job_keep *keep = &ctx->keep;
    struct phx_error error;
    pthread_mutex_unlock(&ctx->mutex);
    int status = held_seal(&keep->held, keep->busy, keep->step, keep->len, &error);
    pthread_mutex_lock(&ctx->mutex);
    if (status == 0) {
        keep->before = keep->newest;
        keep->newest = keep->busy;
    } else {
        keep->failure = error; /* the next hold tells */
    }
    end_hold(ctx, keep->step, status == 0);
}

static void *serve_seals(void *argument)
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

static void store(struct phx_context *ctx)
{
    struct job_keep *keep = &ctx->keep;
    struct phx_error error;
    struct iovec data = {(void *)(uintptr_t)held_data(&keep->held, keep->storing), keep->store_len};
    pthread_mutex_unlock(&ctx->mutex);
    int status = job_save(ctx, keep->store_step, &data, 1, &error);
    pthread_mutex_lock(&ctx->mutex);
    if (status != 0)
        keep->failure = error;
    keep->storing = -1;
    job_changed(ctx);
}

static void *serve_stores(void *argument)
{
    struct phx_context *ctx = argument;
    pthread_mutex_lock(&ctx->mutex);
    while (!ctx->keep.stop) {
        if (ctx->keep.storing >= 0 && ctx->keep.held.slots[ctx->keep.storing].sealed &&
            ctx->keep.state == KEEP_IDLE)
            store(ctx);
        else
            job_wait(ctx, JOB_NEVER);
    }
    pthread_mutex_unlock(&ctx->mutex);
    return NULL;
}

static int start_threads(struct phx_context *ctx, bool and_store, struct phx_error *error)
{
    struct job_keep *keep = &ctx->keep;
    int status = job_thread_start(ctx, serve_seals, &keep->thread, &keep->thread_started, error);
    if (status == 0 && and_store)
        status =
            job_thread_start(ctx, serve_stores, &keep->store_thread, &keep->store_thread_started, error);
    return status;
}

void job_keep_finish(struct phx_context *ctx)
{
    while (ctx->keep.open && ctx->failure == 0 && (ctx->keep.state != KEEP_IDLE || ctx->keep.storing >= 0))
        job_wait(ctx, JOB_NEVER);
}

/* ---- calls ---- */

static bool by_all(const struct job_keep *keep, uint64_t step)
{
    return keep->any_by_all && keep->by_all >= step;
}

/* The one that holds nothing that is still wanted: not the newest of this attempt, nor what it began with. */
static int free_slot(const struct phx_context *ctx)
{
    int taken = ctx->keep.newest >= 0 ? ctx->keep.newest : job_keep_find(ctx, &ctx->restore);
    return taken == 0 ? 1 : 0;
}

/* A slot may be taken when the one before is sealed here and everywhere, and its own contents are not on
 * their way to storage; two can't be on that way at once. */
static bool must_wait(const struct phx_context *ctx, bool to_store)
{
    const struct job_keep *keep = &ctx->keep;
    if (keep->failure.code != 0)
        return false;
    return keep->state != KEEP_IDLE || (keep->any && !(keep->any_told && keep->told >= keep->step)) ||
           keep->storing == free_slot(ctx) || (to_store && keep->storing >= 0);
}

static int wait_for_slot(struct phx_context *ctx, uint64_t step, bool to_store, struct phx_error *error)
{
    struct job_keep *keep = &ctx->keep;
    const uint64_t *floor = keep->any ? &keep->step : ctx->restore.valid ? &ctx->restore.step : NULL;
    if (floor != NULL && step <= *floor)
        return job_fail(error, PHX_ERROR_INVALID, "step %llu doesn't rise above %llu, which is held already",
                        (unsigned long long)step, (unsigned long long)*floor);
    int status = job_failure(ctx, error);
    while (status == 0 && must_wait(ctx, to_store)) {
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

/* The part that the program waits for. Mutex held, but for the copy. */
static int copy(struct phx_context *ctx, uint64_t step, const struct iovec *parts, size_t count,
                struct phx_error *error)
{
    struct job_keep *keep = &ctx->keep;
    keep->any = true;
    keep->step = step;
    keep->len = 0;
    for (size_t i = 0; i < count; i++)
        keep->len += parts[i].iov_len;
    keep->state = KEEP_COPYING;
    keep->busy = free_slot(ctx);
    pthread_mutex_unlock(&ctx->mutex);
    int status = held_copy(&keep->held, keep->busy, parts, count, error);
    pthread_mutex_lock(&ctx->mutex);
    if (status == 0)
        keep->state = KEEP_COPIED;
    else
        end_hold(ctx, step, false);
    return status;
}

int job_keep_hold(struct phx_context *ctx, uint64_t step, const struct iovec *parts, size_t count,
                  bool to_store, struct phx_error *error)
{
    struct job_keep *keep = &ctx->keep;
    pthread_mutex_lock(&ctx->mutex);
    enum phx_phase phase = job_pace_phase(&ctx->pace, PHX_PHASE_SAVE, job_now_ns());
    int status = job_keep_open(ctx, true, error);
    if (status != 0)
        job_spoke_send(ctx, &(struct star_message){.type = STAR_HELD, .number = step, .status = 1});
    if (status == 0 && to_store)
        status = job_save_check(ctx, step, error);
    if (status == 0)
        status = start_threads(ctx, to_store, error);
    if (status == 0)
        status = wait_for_slot(ctx, step, to_store, error);
    if (status == 0)
        status = copy(ctx, step, parts, count, error);
    if (status == 0 && to_store) {
        keep->storing = keep->busy;
        keep->store_step = step;
        keep->store_len = keep->len;
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

/* A step that not all hold is of no use: its slot is the next one to be taken. */
void job_keep_told(struct phx_context *ctx, uint64_t step, bool all)
{
    struct job_keep *keep = &ctx->keep;
    keep->any_told = true;
    keep->told = step;
    if (all) {
        keep->any_by_all = true;
        keep->by_all = step;
    } else if (keep->newest >= 0 && keep->held.slots[keep->newest].step == step) {
        keep->newest = keep->before;
    }
    job_changed(ctx);
}
