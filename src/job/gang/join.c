/* Beginning and end of a context. */
#include "job/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "job/link/error.h"
#include "job/checkpoint/shard.h"

/* Frees everything; the thread has ended or never started. */
static void destroy(struct phx_context *ctx)
{
    job_keep_stop(ctx, false);
    job_serve_stop(ctx);
    job_link_stop(ctx);
    job_member_stop(ctx);
    job_coordinator_free(ctx);
    job_negotiate_reset(ctx);
    keys_done(&ctx->keys);
    job_flight_close(&ctx->flight);
    job_regions_done(&ctx->regions);
    if (ctx->wake_fd >= 0)
        close(ctx->wake_fd);
    if (ctx->failure_fd >= 0)
        close(ctx->failure_fd);
    pthread_cond_destroy(&ctx->changed);
    pthread_mutex_destroy(&ctx->mutex);
    free(ctx->names);
    free(ctx->rejoin.names);
    free(ctx->members);
    free(ctx);
}

static struct phx_context *create(const struct job_settings *settings)
{
    struct phx_context *ctx = calloc(1, sizeof *ctx);
    if (ctx == NULL)
        return NULL;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&ctx->mutex, NULL);
    pthread_cond_init(&ctx->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    ctx->settings = *settings;
    ctx->retention = settings->keep;
    ctx->attempt = settings->attempt;
    ctx->machine = machine_of(settings->memory_dir, settings->name);
    ctx->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ctx->failure_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    size_t world = settings->world > 0 ? settings->world : 1; /* a spare's world is not known yet */
    ctx->names = calloc(world, sizeof *ctx->names);
    ctx->members = calloc(world, sizeof *ctx->members);
    job_link_start(ctx);
    job_member_start(ctx);
    bool recorded = job_flight_open(&ctx->flight);
    if (ctx->wake_fd < 0 || ctx->failure_fd < 0 || ctx->names == NULL || ctx->members == NULL || !recorded) {
        destroy(ctx);
        return NULL;
    }
    return ctx;
}

/* Stand-alone, rank 0 takes the attempt and the newest commit from the checkpoint directory. */
static int survey(struct phx_context *ctx, struct phx_error *error)
{
    struct shard_survey found;
    if (!ctx->settings.standalone || ctx->settings.rank != 0 || ctx->settings.checkpoint_dir[0] == '\0')
        return 0;
    int status = shard_survey(ctx->settings.checkpoint_dir, &found, error);
    if (status != 0)
        return status;
    if (found.next_attempt > ctx->attempt)
        ctx->attempt = found.next_attempt;
    ctx->restore = (struct job_checkpoint_ref){found.committed, found.step, found.attempt};
    return 0;
}

/* Opens the folder in memory. An unusable folder counts as empty; a later hold reports why. Stand-alone, only
 * rank 0 knows the attempt so early. */
static int look_in_memory(struct phx_context *ctx, struct phx_error *error)
{
    const struct job_settings *settings = &ctx->settings;
    bool known = !settings->standalone || settings->rank == 0;
    if (!known || settings->memory_dir[0] == '\0' || settings->worlds != 1)
        return 0;
    int status = job_keep_open(ctx, false, error);
    return status == PHX_ERROR_FENCED ? status : 0;
}

int job_take_stock(struct phx_context *ctx, struct phx_error *error)
{
    int status = survey(ctx, error);
    return status == 0 ? look_in_memory(ctx, error) : status;
}

static int join_timed_out(struct phx_context *ctx, struct phx_error *error)
{
    const struct job_settings *settings = &ctx->settings;
    char missing[120] = "";
    if (!ctx->welcomed)
        return job_fail(error, PHX_ERROR_TIMEOUT, "the agent at %.107s doesn't answer",
                        settings->agent_socket);
    if (ctx->coordinator != NULL && job_coordinator_missing(ctx, missing, sizeof missing))
        return job_fail(error, PHX_ERROR_TIMEOUT, "ranks that have not joined, of %u: %s", settings->world,
                        missing);
    return job_fail(error, PHX_ERROR_TIMEOUT, "rank 0 at %.100s port %s %s", settings->host, settings->port,
                    ctx->member.state == MEMBER_LINK_JOINING ? "is still waiting for other ranks"
                                                             : "can't be reached");
}

int job_wait_for_gang(struct phx_context *ctx, int64_t deadline_ns, struct phx_error *error)
{
    int status = 0;
    pthread_mutex_lock(&ctx->mutex);
    while (status == 0 && !(ctx->welcomed && ctx->negotiation.settled)) {
        /* the rest takes as long as reading a shard, so it has no deadline */
        bool present = ctx->welcomed && ctx->met;
        status = job_failure(ctx, error);
        if (status == 0 && ctx->join_code != 0)
            status = job_fail(error, ctx->join_code, "%s", ctx->join_text);
        else if (status == 0 && ctx->negotiation.asked != NEGOTIATE_NOTHING)
            job_negotiate_answer(ctx);
        else if (status == 0 && !job_wait(ctx, present ? JOB_NEVER : deadline_ns))
            status = join_timed_out(ctx, error);
    }
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}

/* Waits for the gang. A spare first waits for its rank. If a rank is lost while joining, a process that can
 * rejoin joins the next attempt. */
static int meet(struct phx_context *ctx, struct phx_error *error)
{
    const struct job_settings *settings = &ctx->settings;
    if (settings->spare)
        return job_rejoin(ctx, JOB_NEVER, settings->join_timeout_ms, error);
    int64_t deadline_ns = job_deadline_ns(settings->join_timeout_ms);
    int status = job_wait_for_gang(ctx, deadline_ns, error);
    if (settings->rejoins && !settings->standalone &&
        (status == PHX_ERROR_PEER || status == PHX_ERROR_REJOIN))
        status = job_rejoin(ctx, deadline_ns, -1, error);
    return status;
}

int phx_join(const struct phx_options *options, phx_context **ret_ctx, struct phx_error *error)
{
    struct job_settings settings;
    if (ret_ctx == NULL)
        return job_fail(error, PHX_ERROR_INVALID, "ret_ctx is NULL");
    int status = job_settings_load(options, &settings, error);
    if (status != 0)
        return status;
    struct phx_context *ctx = create(&settings);
    if (ctx == NULL)
        return job_fail(error, PHX_ERROR_MEMORY, "out of memory or descriptors");
    status = job_serve_start(ctx, error);
    if (status == 0 && !settings.spare)
        status = job_take_stock(ctx, error);
    job_flight_show(&ctx->flight, &settings, ctx->attempt);
    if (status == 0 && settings.rank == 0 && !settings.spare)
        status = job_coordinator_new(ctx, error);
    if (status == 0)
        status = job_thread_start(ctx, job_service, &ctx->thread, &ctx->thread_started, error);
    if (status == 0)
        status = meet(ctx, error);
    if (status != 0) {
        phx_close(ctx);
        return status;
    }
    *ret_ctx = ctx;
    return 0;
}

void phx_close(phx_context *ctx)
{
    if (ctx == NULL)
        return;
    if (ctx->thread_started) {
        pthread_mutex_lock(&ctx->mutex);
        ctx->stop = true;
        job_wake(ctx);
        pthread_mutex_unlock(&ctx->mutex);
        pthread_join(ctx->thread, NULL);
    }
    destroy(ctx);
}

static bool peers_done(const struct phx_context *ctx)
{
    return ctx->coordinator != NULL ? job_coordinator_alone(ctx) : ctx->member.state == MEMBER_LINK_OFF;
}

int phx_leave(phx_context *ctx, struct phx_error *error)
{
    if (ctx == NULL)
        return job_fail(error, PHX_ERROR_INVALID, "the context is NULL");
    int64_t deadline_ns = job_deadline_ns(ctx->settings.leave_timeout_ms);
    pthread_mutex_lock(&ctx->mutex);
    job_keep_finish(ctx);
    int status = job_failure(ctx, error);
    if (status == 0) {
        ctx->leaving = true;
        job_member_send(ctx, &(struct rendezvous_message){.type = RENDEZVOUS_LEAVE});
    }
    while (status == 0 && !peers_done(ctx) && job_wait(ctx, deadline_ns))
        status = job_failure(ctx, error);
    if (status == 0)
        job_link_leave(ctx);
    while (status == 0 && !job_link_drained(ctx)) {
        status = job_failure(ctx, error);
        if (status == 0 && !job_wait(ctx, deadline_ns))
            status = job_fail(error, PHX_ERROR_TIMEOUT, "the agent didn't take the last reports");
    }
    pthread_mutex_unlock(&ctx->mutex);
    if (status == 0)
        job_keep_stop(ctx, true); /* a job that has succeeded is not restored */
    phx_close(ctx);
    return status;
}
