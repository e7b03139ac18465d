/* The step at which all ranks save after one of them has received a notice.
 *
 * The rank tells rank 0. Rank 0 names a step ahead of every step that it knows of, and the library's thread
 * of each rank answers whether that step is still ahead of its rank. If it is for all ranks, the step is
 * agreed; otherwise rank 0 names a later step, with a larger margin. A rank that reaches the named step
 * before all have answered waits there. Nothing blocks the threads that answer, so the wait is as short as a
 * message. Therefore no rank passes a step at which the others save, and no collective is needed.
 *
 * Only one step is named at a time: rank 0 names the next when every rank has saved at this one. Otherwise a
 * slow rank would receive the next step before it has saved, and the others would wait for it. A rank that
 * gets its notice while a step is named saves at that step, so one notice to many ranks leads to one save. A
 * later notice, with another reason or deadline, leads to one more. */
#include "job/context.h"

#define MARGIN_FIRST 2 /* steps ahead */

void job_save_agreement_notice(struct phx_context *ctx)
{
    if (!ctx->drain || !ctx->save_agreement.running || ctx->save_agreement.asked || ctx->failure != 0)
        return;
    ctx->save_agreement.asked = true;
    if (!ctx->save_agreement.open)
        job_member_send(ctx, &(struct rendezvous_message){.type = RENDEZVOUS_NOTICE});
}

/* ---- rank 0 ---- */

static void name_step(struct phx_context *ctx)
{
    struct job_save_agreement *save_agreement = &ctx->save_agreement;
    struct rendezvous_message message = {.type = RENDEZVOUS_SAVE_AT,
                                         .number = save_agreement->most + save_agreement->margin};
    save_agreement->under_way = save_agreement->asking = true;
    save_agreement->late = false;
    save_agreement->answers = save_agreement->saved = 0;
    job_coordinator_broadcast(ctx, &message);
}

static void begin(struct phx_context *ctx)
{
    struct job_save_agreement *save_agreement = &ctx->save_agreement;
    save_agreement->again = false;
    save_agreement->most = save_agreement->made;
    save_agreement->margin = MARGIN_FIRST;
    name_step(ctx);
}

/* A rank that asks while the step is being agreed will save at that step. A rank that asks later has already
 * saved at it, and needs another. */
void job_save_agreement_asked(struct phx_context *ctx)
{
    struct job_save_agreement *save_agreement = &ctx->save_agreement;
    if (!ctx->met)
        return;
    if (save_agreement->under_way)
        save_agreement->again = save_agreement->again || !save_agreement->asking;
    else
        begin(ctx);
}

static void on_saved(struct phx_context *ctx)
{
    struct job_save_agreement *save_agreement = &ctx->save_agreement;
    if (++save_agreement->saved < ctx->settings.world)
        return;
    save_agreement->under_way = false;
    if (save_agreement->again)
        begin(ctx);
}

void job_save_agreement_answered(struct phx_context *ctx, const struct rendezvous_message *message)
{
    struct job_save_agreement *save_agreement = &ctx->save_agreement;
    if (message->status == 2 && save_agreement->under_way)
        on_saved(ctx);
    if (message->status == 2 || !save_agreement->asking)
        return;
    if (message->number > save_agreement->most)
        save_agreement->most = message->number;
    save_agreement->late = save_agreement->late || message->status == 0;
    if (++save_agreement->answers < ctx->settings.world)
        return;
    save_agreement->asking = false;
    if (save_agreement->late) {
        save_agreement->margin *= 2;
        name_step(ctx);
    } else {
        job_coordinator_broadcast(ctx, &(struct rendezvous_message){.type = RENDEZVOUS_SAVE_AT,
                                                                    .number = save_agreement->at,
                                                                    .status = 1});
    }
}

/* ---- every rank ---- */

/* Answers the named step, or takes its confirmation. A rank that does not make steps yet can always save at
 * it, because it will begin at a step that is not ahead of the others'. */
void job_save_agreement_told(struct phx_context *ctx, const struct rendezvous_message *message)
{
    struct job_save_agreement *save_agreement = &ctx->save_agreement;
    if (message->status == 1) {
        save_agreement->agreed = save_agreement->open && save_agreement->at == message->number;
        job_changed(ctx);
        return;
    }
    bool can = !save_agreement->running || save_agreement->made < message->number;
    save_agreement->open = can;
    save_agreement->agreed = false;
    save_agreement->at = message->number;
    job_changed(ctx);
    struct rendezvous_message answer = {
        .type = RENDEZVOUS_SAVE_AT, .number = save_agreement->made, .status = can};
    job_member_send(ctx, &answer);
}

int job_save_agreement_step(struct phx_context *ctx, uint64_t made, bool *ret_save, struct phx_error *error)
{
    struct job_save_agreement *save_agreement = &ctx->save_agreement;
    save_agreement->running = true;
    save_agreement->made = made;
    *ret_save = false;
    int status = job_failure(ctx, error);
    while (status == 0 && save_agreement->open && save_agreement->at == made && !save_agreement->agreed) {
        job_wait(ctx, JOB_NEVER);
        status = job_failure(ctx, error);
    }
    if (status == 0 && save_agreement->open && save_agreement->at <= made) {
        *ret_save = save_agreement->at == made;
        save_agreement->open = false;
        job_member_send(
            ctx, &(struct rendezvous_message){.type = RENDEZVOUS_SAVE_AT, .number = made, .status = 2});
    }
    job_save_agreement_notice(ctx);
    return status;
}
