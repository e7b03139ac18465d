/* The step at which all ranks save after a notice that one of them got.
 *
 * The rank tells rank 0, rank 0 names a step that is ahead of all that it knows of, and each rank's own
 * thread answers whether it is still ahead of it too. When all say so it is agreed; otherwise rank 0 names a
 * later one, with more room. A rank that comes to the named step before all have answered waits there; the
 * answers come from threads that nothing blocks, so that wait is as short as a message's way. So nobody
 * passes a step at which the others save, and no collective is needed.
 *
 * One step at a time: another one is named when every rank has come to this one, or a slow rank would hear of
 * the next before it has saved, and the others would wait for what it holds. A rank that gets its notice
 * while a step is named has its answer, so one notice to many ranks is one save; a later notice, with
 * another reason or deadline, is one more. */
#include "job/context.h"

#define MARGIN_FIRST 2 /* steps ahead */

void job_pact_notice(struct phx_context *ctx)
{
    if (!ctx->drain || !ctx->pact.running || ctx->pact.asked || ctx->failure != 0)
        return;
    ctx->pact.asked = true;
    if (!ctx->pact.open)
        job_member_send(ctx, &(struct rendezvous_message){.type = RENDEZVOUS_NOTICE});
}

/* ---- rank 0 ---- */

static void name_step(struct phx_context *ctx)
{
    struct job_pact *pact = &ctx->pact;
    struct rendezvous_message message = {.type = RENDEZVOUS_SAVE_AT, .number = pact->most + pact->margin};
    pact->under_way = pact->asking = true;
    pact->late = false;
    pact->answers = pact->saved = 0;
    job_coordinator_broadcast(ctx, &message);
}

static void begin(struct phx_context *ctx)
{
    struct job_pact *pact = &ctx->pact;
    pact->again = false;
    pact->most = pact->made;
    pact->margin = MARGIN_FIRST;
    name_step(ctx);
}

/* A rank that asks while the step is being agreed will save at that step. A rank that asks later has already
 * saved at it, and needs another. */
void job_pact_asked(struct phx_context *ctx)
{
    struct job_pact *pact = &ctx->pact;
    if (!ctx->met)
        return;
    if (pact->under_way)
        pact->again = pact->again || !pact->asking;
    else
        begin(ctx);
}

static void on_saved(struct phx_context *ctx)
{
    struct job_pact *pact = &ctx->pact;
    if (++pact->saved < ctx->settings.world)
        return;
    pact->under_way = false;
    if (pact->again)
        begin(ctx);
}

void job_pact_answered(struct phx_context *ctx, const struct rendezvous_message *message)
{
    struct job_pact *pact = &ctx->pact;
    if (message->status == 2 && pact->under_way)
        on_saved(ctx);
    if (message->status == 2 || !pact->asking)
        return;
    if (message->number > pact->most)
        pact->most = message->number;
    pact->late = pact->late || message->status == 0;
    if (++pact->answers < ctx->settings.world)
        return;
    pact->asking = false;
    if (pact->late) {
        pact->margin *= 2;
        name_step(ctx);
    } else {
        job_coordinator_broadcast(
            ctx, &(struct rendezvous_message){.type = RENDEZVOUS_SAVE_AT, .number = pact->at, .status = 1});
    }
}

/* ---- every rank ---- */

/* A rank that does not make steps yet begins at a step that is not ahead of the others'. */
void job_pact_told(struct phx_context *ctx, const struct rendezvous_message *message)
{
    struct job_pact *pact = &ctx->pact;
    if (message->status == 1) {
        pact->agreed = pact->open && pact->at == message->number;
        job_changed(ctx);
        return;
    }
    bool can = !pact->running || pact->made < message->number;
    pact->open = can;
    pact->agreed = false;
    pact->at = message->number;
    job_changed(ctx);
    struct rendezvous_message answer = {.type = RENDEZVOUS_SAVE_AT, .number = pact->made, .status = can};
    job_member_send(ctx, &answer);
}

int job_pact_step(struct phx_context *ctx, uint64_t made, bool *ret_save, struct phx_error *error)
{
    struct job_pact *pact = &ctx->pact;
    pact->running = true;
    pact->made = made;
    *ret_save = false;
    int status = job_failure(ctx, error);
    while (status == 0 && pact->open && pact->at == made && !pact->agreed) {
        job_wait(ctx, JOB_NEVER);
        status = job_failure(ctx, error);
    }
    if (status == 0 && pact->open && pact->at <= made) {
        *ret_save = pact->at == made;
        pact->open = false;
        job_member_send(
            ctx, &(struct rendezvous_message){.type = RENDEZVOUS_SAVE_AT, .number = made, .status = 2});
    }
    job_pact_notice(ctx);
    return status;
}
