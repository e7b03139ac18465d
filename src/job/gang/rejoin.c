/* Takes the process from one attempt to the next. A lost peer or a planned change ends the attempt. The agent
 * names the number of the next attempt, this process's rank in it, and the rendezvous, where the process
 * meets the other ranks as it did when it joined.
 *
 * The caller waits, and the context's thread makes the change, in this order:
 *   1. the threads of keep.c end, because they use the old rank and attempt,
 *   2. the agent's order arrives, which ends the attempt if nothing else has,
 *   3. every thread that waits for an event of the old attempt returns with the failure,
 *   4. between two polls the connections between ranks end, the settings change, the connections are set up,
 *      and JOIN is sent.
 * Therefore no thread ever sees a mixture of two attempts. The rank then lists its checkpoints in storage and
 * in memory, and the negotiation follows. After a further loss in the meantime the agent sends one more
 * order. */
#include "job/context.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "job/link/error.h"

void job_rejoin_told(struct phx_context *ctx, const struct jobwire_rejoin *rejoin)
{
    struct job_rejoin *state = &ctx->rejoin;
    bool newer = ctx->settings.spare ? rejoin->attempt >= ctx->attempt : rejoin->attempt > ctx->attempt;
    if (!newer || !(ctx->settings.rejoins || ctx->settings.spare) || rejoin->world > JOB_WORLD_MAX)
        return;
    if (state->told && rejoin->attempt <= state->to.attempt)
        return;
    state->told = true;
    state->to = *rejoin;
    if (!ctx->settings.spare)
        job_end_attempt(ctx);
    job_changed(ctx);
}

/* ---- asked for by the program ---- */

void job_rejoin_ask(struct phx_context *ctx)
{
    if (ctx->rejoin.asked)
        job_link_send(ctx, &(struct jobwire_message){.type = JOBWIRE_RETRY, .retry = ctx->rejoin.why});
}

/* Copies the reason, with '?' for characters that are not printable ASCII. */
static void take_reason(const char *reason, char ret[JOBWIRE_REASON_MAX])
{
    size_t len = reason == NULL ? 0 : strnlen(reason, JOBWIRE_REASON_MAX - 1);
    for (size_t i = 0; i < len; i++)
        ret[i] = reason[i] >= ' ' && reason[i] <= '~' ? reason[i] : '?';
    ret[len] = '\0';
}

/* Refuses calls without an agent, and of a process that did not set phx_options.rejoins. */
static int check(const phx_context *ctx, struct phx_error *error)
{
    if (ctx != NULL && !ctx->settings.standalone && ctx->settings.rejoins)
        return 0;
    return job_fail(error, PHX_ERROR_INVALID, "%s",
                    ctx == NULL                ? "the context is NULL"
                    : ctx->settings.standalone ? "a stand-alone program cannot rejoin: no agent runs it"
                                               : "phx_options.rejoins was not set in phx_join");
}

int phx_retry(phx_context *ctx, const char *reason, struct phx_error *error)
{
    int status = check(ctx, error);
    if (status != 0)
        return status;
    pthread_mutex_lock(&ctx->mutex);
    if (ctx->failure == PHX_ERROR_FENCED) {
        status = job_failure(ctx, error);
    } else if (ctx->failure == 0) {
        ctx->rejoin.asked = true;
        take_reason(reason, ctx->rejoin.why.reason);
        job_rejoin_ask(ctx);
        job_end_attempt(ctx);
    }
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}

/* ---- the change ---- */

static void leave_members(struct phx_context *ctx)
{
    job_member_give_up(ctx);
    job_member_stop(ctx);
    job_coordinator_free(ctx);
    job_negotiate_reset(ctx);
}

/* Resets all state that belongs to one attempt. */
static void reset(struct phx_context *ctx)
{
    uint64_t ignored;
    (void)!eventfd_read(ctx->failure_fd, &ignored);
    ctx->failure = 0;
    ctx->welcomed = ctx->met = ctx->any_left = false;
    ctx->join_code = 0;
    ctx->barrier_arrived = ctx->barrier_released = ctx->barrier_left = 0;
    ctx->from_known = ctx->step_known = ctx->step_dirty = ctx->step_timer = false;
    ctx->step_sent_ns = 0; /* the first step is sent at once */
    ctx->pace.step_ns = 0; /* no step includes the time of the change */
    ctx->saved_count = 0;
    /* The attempt may go on from an older commit, and commit steps below the newest one known so far. */
    ctx->restore = ctx->last = ctx->committed = (struct job_checkpoint_ref){0};
    job_keep_renew(ctx);
    ctx->save_agreement = (struct job_save_agreement){0};
    ctx->drain = false; /* the agent repeats a notice that still holds */
}

static int set_up(struct phx_context *ctx, struct rendezvous_name *names, uint8_t *members,
                  struct phx_error *error)
{
    free(ctx->rejoin.names);
    ctx->rejoin.names = ctx->names;
    ctx->names = names;
    free(ctx->members);
    ctx->members = members;
    job_flight_show(&ctx->flight, &ctx->settings, ctx->attempt);
    int status = ctx->settings.rank == 0 ? job_coordinator_new(ctx, error) : 0;
    job_member_start(ctx);
    if (status == 0)
        job_link_join(ctx);
    return status;
}

static int change(struct phx_context *ctx, struct phx_error *error)
{
    const struct jobwire_rejoin *to = &ctx->rejoin.to;
    struct rendezvous_name *names = calloc(to->world, sizeof *names);
    uint8_t *members = calloc(to->world, sizeof *members);
    struct job_settings next = ctx->settings;
    int status = names == NULL || members == NULL ? job_fail(error, PHX_ERROR_MEMORY, "out of memory")
                                                  : job_settings_move(&next, to, error);
    if (status != 0) {
        free(names);
        free(members);
        return status;
    }
    leave_members(ctx);
    ctx->settings = next;
    ctx->attempt = to->attempt;
    ctx->keyed = true;
    memcpy(ctx->key, to->key, sizeof ctx->key);
    ctx->rejoin.told = ctx->rejoin.asked = false;
    ctx->dumping = (to->flags & JOBWIRE_REJOIN_DUMP) != 0;
    reset(ctx);
    return set_up(ctx, names, members, error);
}

void job_rejoin_change(struct phx_context *ctx)
{
    struct phx_error error;
    if (!ctx->rejoin.due)
        return;
    int status = change(ctx, &error);
    ctx->rejoin.due = false;
    if (status != 0)
        job_join_failed(ctx, status, error.message);
    job_changed(ctx);
}

/* ---- the caller ---- */

static int wait_for_word(struct phx_context *ctx, int64_t deadline_ns, struct phx_error *error)
{
    while (!ctx->rejoin.told) {
        if (ctx->failure == PHX_ERROR_FENCED)
            return job_failure(ctx, error);
        if (!job_wait_apart(ctx, deadline_ns))
            return job_fail(error, PHX_ERROR_TIMEOUT, "the agent has not named the next attempt in time");
    }
    while (ctx->rejoin.waiters > 0)
        job_wait_apart(ctx, JOB_NEVER);
    return 0;
}

/* Joins one attempt: waits for the agent's order and until the gang is whole. Returns 0 or the failure. Mutex
 * held. */
static int go_where_told(struct phx_context *ctx, int64_t deadline_ns, int64_t join_ms,
                         struct phx_error *error)
{
    int status = wait_for_word(ctx, deadline_ns, error);
    if (status != 0)
        return status;
    ctx->join_code = 0;
    ctx->rejoin.due = true;
    job_wake(ctx);
    while (ctx->rejoin.due && !ctx->stop)
        job_wait_apart(ctx, JOB_NEVER);
    if (ctx->join_code != 0)
        return job_fail(error, ctx->join_code, "%s", ctx->join_text);
    pthread_mutex_unlock(&ctx->mutex);
    status = job_take_stock(ctx, error);
    if (status == 0)
        status = job_wait_for_gang(ctx, join_ms < 0 ? deadline_ns : job_deadline_ns(join_ms), error);
    pthread_mutex_lock(&ctx->mutex);
    return status == 0 && ctx->dumping ? job_dump_end(ctx, error) : status;
}

/* Returns true if another order of the agent follows: a rank was lost again, or the other ranks are already
 * joining a newer attempt. */
static bool goes_on(const struct phx_context *ctx, int status)
{
    return status == PHX_ERROR_PEER || status == PHX_ERROR_REJOIN ||
           (status == PHX_ERROR_FENCED && ctx->failure != PHX_ERROR_FENCED);
}

int job_rejoin(struct phx_context *ctx, int64_t deadline_ns, int64_t join_ms, struct phx_error *error)
{
    int status;
    do {
        job_keep_rest(ctx);
        pthread_mutex_lock(&ctx->mutex);
        status = go_where_told(ctx, deadline_ns, join_ms, error);
        bool again = goes_on(ctx, status);
        pthread_mutex_unlock(&ctx->mutex);
        if (!again)
            break;
    } while (true);
    if (status == 0)
        job_settings_export(&ctx->settings, ctx->attempt);
    return status;
}

int phx_rejoin(phx_context *ctx, int64_t timeout_ms, struct phx_error *error)
{
    int status = check(ctx, error);
    return status == 0 ? job_rejoin(ctx, job_deadline_ns(timeout_ms), -1, error) : status;
}
