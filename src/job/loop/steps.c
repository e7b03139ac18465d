/* phx_run_steps: the loop that survives the loss of other ranks, made of the public functions. */
#include <string.h>

#include "job/loop/auto.h"
#include "job/link/error.h"

/* The error of a broken collective may come before or after the news of the loss that broke it. */
#define DOUBT_MS 3000
/* How long the loop waits after a save for the announced stop or move; a further step would be lost. */
#define STAND_MS 30000

struct run {
    phx_context *ctx;
    const struct phx_loop *loop;
    uint64_t hold_every, save_every; /* 0: none, or `chosen` decides */
    struct job_auto chosen;
    uint64_t step; /* steps that are made */
    /* The checkpoint that the regions are equal to; not valid: their contents are undefined. */
    struct job_checkpoint_ref state;
    uint64_t place; /* identifies the regions of `state`: `arrange` may have registered others */
    bool touched;   /* a step has begun: the regions no longer have the program's initial contents */
    bool begun;
};

static int check(const phx_context *ctx, const struct phx_loop *loop, struct phx_error *error)
{
    if (ctx == NULL || loop == NULL)
        return job_fail(error, PHX_ERROR_INVALID, "ctx or loop is NULL");
    if (loop->size != sizeof *loop)
        return job_fail(error, PHX_ERROR_INVALID, "phx_loop.size is %zu, not sizeof(struct phx_loop)",
                        loop->size);
    if (loop->step == NULL)
        return job_fail(error, PHX_ERROR_INVALID, "phx_loop.step is NULL");
    return 0;
}

/* ---- the state ---- */

static void know_state(struct run *run, struct job_checkpoint_ref state)
{
    run->state = state;
    run->place = job_regions_place(&run->ctx->regions);
}

/* Loads the agreed checkpoint, or resets the regions if there is none. Does nothing if the regions are equal
 * to the checkpoint already. */
static int load(struct run *run, struct phx_error *error)
{
    phx_context *ctx = run->ctx;
    const struct job_checkpoint_ref restore = ctx->restore;
    bool is_there = run->state.valid && restore.valid && run->state.step == restore.step &&
                    run->state.attempt == restore.attempt && !ctx->negotiation.broken &&
                    run->place == job_regions_place(&ctx->regions);
    if (is_there)
        return 0;
    run->state.valid = false;
    int status = phx_checkpoint_load(ctx, &run->step, error);
    if (status == PHX_ERROR_NONE) {
        run->step = 0;
        status = run->loop->reset != NULL ? run->loop->reset(run->loop->job, ctx, error)
                 : run->touched ? job_fail(error, PHX_ERROR_NONE, "there is no checkpoint to restore")
                                : 0;
    } else if (status == 0 && run->loop->deliver != NULL) {
        status = run->loop->deliver(run->loop->job, ctx, error);
    }
    if (status == 0)
        know_state(run, (struct job_checkpoint_ref){restore.valid, restore.step, restore.attempt});
    return status;
}

/* Holds the regions, saves them, or both, if that is due after this step. */
static int keep(struct run *run, bool noticed, struct phx_error *error)
{
    const struct phx_loop *loop = run->loop;
    const struct job_settings *settings = &run->ctx->settings;
    bool can_hold = settings->memory_dir[0] != '\0' && settings->worlds == 1;
    bool saves = run->save_every > 0 || run->chosen.save;
    bool hold = can_hold && run->hold_every > 0 && run->step % run->hold_every == 0;
    bool save =
        (run->save_every > 0 && run->step % run->save_every == 0) || (saves && run->step == loop->steps);
    if (noticed && (settings->checkpoint_dir[0] != '\0' || settings->store))
        save = true;
    int status = job_auto_due(&run->chosen, run->ctx, run->step, &hold, &save, error);
    hold = hold && can_hold;
    if (status != 0 || (!hold && !save))
        return status;
    unsigned where = (save ? PHX_IN_STORAGE : 0) | (hold || (save && can_hold) ? PHX_IN_MEMORY : 0);
    int64_t began_ns = job_now_ns();
    status = loop->fetch != NULL ? loop->fetch(loop->job, run->ctx, error) : 0;
    if (status == 0)
        status = phx_checkpoint_take(run->ctx, run->step, where, error);
    if (status == 0)
        job_auto_kept(&run->chosen, run->step, (where & PHX_IN_MEMORY) != 0, save, began_ns);
    return status;
}

/* Holds the regions after the end of the attempt, if they are those of a step newer than the last hold. One
 * rank's copy is enough for all its replicas. If it cannot be kept, the gang returns to an older step. */
static void rescue(struct run *run)
{
    const struct phx_loop *loop = run->loop;
    struct phx_error error;
    bool holds = run->hold_every > 0 || run->chosen.hold;
    if (!holds || !run->state.valid || run->state.attempt != run->ctx->attempt)
        return;
    if (loop->fetch == NULL || loop->fetch(loop->job, run->ctx, &error) == 0)
        (void)phx_checkpoint_rescue(run->ctx, run->state.step, &error);
}

/* ---- one attempt ---- */

static int boundary(struct run *run, bool *ret_noticed, struct phx_error *error)
{
    phx_context *ctx = run->ctx;
    pthread_mutex_lock(&ctx->mutex);
    int status = job_save_agreement_step(ctx, run->step, ret_noticed, error);
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}

/* Waits after a step that all ranks have saved, because the announced stop follows at once and a further step
 * would be lost. */
static int stand(struct run *run, struct phx_error *error)
{
    phx_context *ctx = run->ctx;
    int64_t deadline_ns = job_deadline_ns(STAND_MS);
    pthread_mutex_lock(&ctx->mutex);
    while (ctx->failure == 0 && ctx->drain && ctx->drain_reason != JOBWIRE_DRAIN_MAINTENANCE &&
           job_now_ns() < ctx->drain_deadline_ns && job_wait(ctx, deadline_ns))
        ;
    int status = job_failure(ctx, error);
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}

static int report(struct run *run, struct phx_error *error)
{
    const struct phx_loop *loop = run->loop;
    struct phx_metric metrics[PHX_METRICS_MAX];
    if (phx_rank(run->ctx) != 0 || loop->metric_count > PHX_METRICS_MAX)
        return phx_step(run->ctx, run->step, loop->metrics, loop->metric_count, error);
    size_t count = job_auto_metrics(&run->chosen, loop->metrics, loop->metric_count, metrics);
    return phx_step(run->ctx, run->step, metrics, count, error);
}

static int make_step(struct run *run, struct phx_error *error)
{
    const struct phx_loop *loop = run->loop;
    int64_t began_ns = job_now_ns();
    bool noticed;
    run->touched = true;
    int status = loop->step(loop->job, run->ctx, run->step, error);
    if (status != 0) {
        run->state.valid = run->state.valid && loop->whole_steps != 0 && status != PHX_ERROR_RETRY;
        return status;
    }
    run->step++;
    job_auto_stepped(&run->chosen, run->ctx, began_ns);
    know_state(run, (struct job_checkpoint_ref){true, run->step, run->ctx->attempt});
    status = report(run, error);
    if (status == 0)
        status = boundary(run, &noticed, error);
    if (status == 0)
        status = keep(run, noticed, error);
    return status == 0 && noticed && run->step < loop->steps ? stand(run, error) : status;
}

static int run_attempt(struct run *run, struct phx_error *error)
{
    const struct phx_loop *loop = run->loop;
    bool ignored;
    int status = loop->arrange != NULL ? loop->arrange(loop->job, run->ctx, error) : 0;
    if (status == 0)
        status = load(run, error);
    if (status != 0)
        return status;
    job_abort_set(run->ctx, loop->abort, loop->job);
    run->begun = true;
    if (loop->begin != NULL)
        status = loop->begin(loop->job, run->ctx, run->step, error);
    job_step_from(run->ctx, run->step);
    if (status == 0)
        status = phx_step(run->ctx, run->step, NULL, 0, error);
    if (status == 0)
        status = boundary(run, &ignored, error);
    job_auto_begin(&run->chosen, run->step);
    if (status == 0)
        status = job_auto_due(&run->chosen, run->ctx, run->step, &ignored, &ignored, error);
    while (status == 0 && run->step < loop->steps)
        status = make_step(run, error);
    return status == 0 ? phx_barrier(run->ctx, -1, error) : status;
}

/* ---- between attempts ---- */

/* Returns true if the attempt has ended. Waits a while, because the program may notice a loss before the
 * library does. */
static bool is_over(struct phx_context *ctx)
{
    int64_t deadline_ns = job_deadline_ns(DOUBT_MS);
    pthread_mutex_lock(&ctx->mutex);
    while (ctx->failure == 0 && job_wait(ctx, deadline_ns))
        ;
    bool over = ctx->failure != 0 && ctx->failure != PHX_ERROR_FENCED;
    pthread_mutex_unlock(&ctx->mutex);
    return over;
}

/* Asks for a retry of the attempt. The regions are no longer trusted, even if the error is from `begin`. If
 * there is no agent to ask, the run ends with the step's error. */
static int ask_to_retry(struct run *run, const struct phx_error *said, struct phx_error *error)
{
    struct phx_error ignored;
    run->state.valid = false;
    int status = phx_retry(run->ctx, said->message, &ignored);
    return status == 0 ? job_fail(error, PHX_ERROR_REJOIN, "this rank asked for a new attempt")
                       : PHX_ERROR_RETRY;
}

/* Ends the attempt and joins the next one if that is possible. Returns 0 in the next attempt, otherwise the
 * error that ends the loop. */
static int recover(struct run *run, int status, struct phx_error *error)
{
    phx_context *ctx = run->ctx;
    const struct phx_loop *loop = run->loop;
    if (status == PHX_ERROR_RETRY)
        status = ask_to_retry(run, error, error);
    bool told = status == PHX_ERROR_PEER || status == PHX_ERROR_REJOIN;
    /* All ranks then know that no checkpoint exists: a rank that ends for that reason is not a loss. */
    bool nowhere = status == PHX_ERROR_NONE && !run->begun;
    bool goes_on = ctx->settings.rejoins && !ctx->settings.standalone && status != PHX_ERROR_FENCED &&
                   (told || (!nowhere && status != PHX_ERROR_RETRY && is_over(ctx)));
    job_auto_lost(&run->chosen);
    job_abort_set(ctx, NULL, NULL);
    if (goes_on)
        rescue(run);
    if (run->begun && loop->end != NULL)
        loop->end(loop->job, ctx);
    run->begun = false;
    return goes_on ? phx_rejoin(ctx, -1, error) : status;
}

int phx_run_steps(phx_context *ctx, const struct phx_loop *loop, struct phx_error *error)
{
    struct phx_error own;
    struct run run = {.ctx = ctx, .loop = loop};
    if (error == NULL)
        error = &own; /* callbacks always get an error struct */
    int status = check(ctx, loop, error);
    if (status != 0)
        return status;
    run.hold_every = loop->hold_every;
    run.save_every = loop->save_every;
    run.chosen = job_auto_new(&ctx->settings, &run.hold_every, &run.save_every);
    phx_set_total_steps(ctx, loop->steps);
    do {
        status = run_attempt(&run, error);
        if (status == 0)
            break;
        status = recover(&run, status, error);
    } while (status == 0);
    job_abort_set(ctx, NULL, NULL);
    pthread_mutex_lock(&ctx->mutex);
    ctx->save_agreement.running = false;
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}
