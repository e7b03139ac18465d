/* Which checkpoint a gang restores: the newest that every rank can read.
 *
 * The table of ranks proposes the newest committed one. Each rank reads its own shard of the proposal through
 * and answers whether it is whole, and which older shard of its own comes next. When all can read it, it is
 * agreed. Otherwise rank 0 proposes the oldest of the next ones named: a checkpoint that all ranks can read
 * is not newer than what any of them named, so none is passed over. Proposals only get older, so this ends.
 *
 * An older checkpoint needs no word of the controller. It commits (N, A) when every rank of attempt A has a
 * durable shard of step N, and that every rank finds a whole shard of (N, A) says the same. The two newest
 * commits are never deleted, so one damaged shard costs the steps between them.
 *
 * A job set of several gangs must restore one step in all of them, and a gang sees only itself: there nothing
 * older is proposed.
 */
#include "job/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/error.h"
#include "job/shard.h"

#define ANSWER_WHOLE 1 /* bits of the status */
#define ANSWER_OLDER 2

static bool older(uint64_t step, uint32_t attempt, const struct job_checkpoint_ref *than)
{
    return step < than->step || (step == than->step && attempt < than->attempt);
}

static void settle(struct phx_context *ctx, struct job_checkpoint_ref restore)
{
    ctx->restore = restore;
    ctx->agreement.asked = false;
    ctx->agreement.settled = true;
    if (restore.valid && !ctx->agreement.broken)
        job_committed(ctx, restore.step, restore.attempt);
    job_changed(ctx);
}

static void consider(struct phx_context *ctx, struct job_checkpoint_ref proposal)
{
    struct job_agreement *agreement = &ctx->agreement;
    agreement->proposal = proposal;
    agreement->round++;
    agreement->asked = true;
    agreement->answers = 0;
    agreement->refused = agreement->exhausted = false;
    agreement->next.valid = false;
    job_changed(ctx);
}

void job_agree_start(struct phx_context *ctx, struct job_checkpoint_ref proposal)
{
    if (ctx->hub != NULL && ctx->agreement.answered == NULL)
        ctx->agreement.answered = calloc(ctx->settings.world, sizeof *ctx->agreement.answered);
    if (ctx->hub != NULL && ctx->agreement.answered == NULL)
        job_join_failed(ctx, PHX_ERROR_MEMORY, "out of memory");
    else if (proposal.valid)
        consider(ctx, proposal);
    else
        settle(ctx, proposal);
}

void job_agree_stop(struct phx_context *ctx)
{
    free(ctx->agreement.answered);
    ctx->agreement.answered = NULL;
}

/* ---- a rank's answer ---- */

/* Without the mutex. Only damage speaks against a shard; another world size is the caller's to hear of. */
static struct star_message examine(struct phx_context *ctx, struct job_checkpoint_ref proposal,
                                   struct phx_error *error)
{
    struct shard_id id = {ctx->settings.checkpoint_dir, proposal.step, proposal.attempt, ctx->settings.rank,
                          ctx->settings.world};
    struct star_message answer = {.type = STAR_ANSWER};
    int status = id.dir[0] == '\0' ? 0 : shard_verify(&id, error);
    if (status != PHX_ERROR_CORRUPT && status != PHX_ERROR_IO)
        answer.status = ANSWER_WHOLE;
    if (id.dir[0] != '\0' && ctx->settings.worlds == 1 && shard_find_older(&id)) {
        answer.status |= ANSWER_OLDER;
        answer.number = id.step;
        answer.rank = id.attempt;
    }
    return answer;
}

void job_agree_answer(struct phx_context *ctx)
{
    struct job_agreement *agreement = &ctx->agreement;
    uint32_t round = agreement->round;
    struct phx_error error = {0};
    agreement->asked = false;
    pthread_mutex_unlock(&ctx->mutex);
    struct star_message answer = examine(ctx, agreement->proposal, &error);
    pthread_mutex_lock(&ctx->mutex);
    if ((answer.status & ANSWER_WHOLE) == 0 && agreement->text[0] == '\0')
        snprintf(agreement->text, sizeof agreement->text, "%.170s", error.message);
    answer.world = round;
    job_spoke_send(ctx, &answer);
}

/* ---- rank 0 ---- */

static void conclude(struct phx_context *ctx)
{
    struct job_agreement *agreement = &ctx->agreement;
    struct star_message message = {.type = STAR_AGREED, .status = 1};
    message.number = agreement->proposal.step;
    message.rank = agreement->proposal.attempt;
    if (agreement->refused && !agreement->exhausted) {
        message.type = STAR_PROPOSE;
        message.number = agreement->next.step;
        message.rank = agreement->next.attempt;
    } else if (agreement->refused) {
        message.status = 0;
        message.world = agreement->culprit;
    }
    job_hub_broadcast(ctx, &message);
}

void job_agree_receive(struct phx_context *ctx, uint32_t rank, const struct star_message *message)
{
    struct job_agreement *agreement = &ctx->agreement;
    if (!ctx->met || agreement->settled || message->world != agreement->round ||
        agreement->answered[rank] == agreement->round)
        return;
    agreement->answered[rank] = agreement->round;
    agreement->answers++;
    if ((message->status & ANSWER_WHOLE) == 0) {
        if (agreement->round == 1 && !agreement->refused)
            agreement->culprit = rank;
        agreement->refused = true;
    }
    if ((message->status & ANSWER_OLDER) == 0 || !older(message->number, message->rank, &agreement->proposal))
        agreement->exhausted = true;
    else if (!agreement->next.valid || older(message->number, message->rank, &agreement->next))
        agreement->next = (struct job_checkpoint_ref){true, message->number, message->rank};
    if (agreement->answers == ctx->settings.world)
        conclude(ctx);
}

/* ---- what rank 0 says ---- */

void job_agree_told(struct phx_context *ctx, const struct star_message *message)
{
    struct job_agreement *agreement = &ctx->agreement;
    struct job_checkpoint_ref ref = {true, message->number, message->rank};
    if (!ctx->met || agreement->settled)
        return;
    if (message->type == STAR_PROPOSE) {
        consider(ctx, ref);
        return;
    }
    agreement->broken = message->status != 1;
    if (agreement->broken) {
        size_t len = strlen(agreement->text);
        if (len == 0)
            snprintf(agreement->text, sizeof agreement->text,
                     "rank %u can't read its shard of the newest checkpoint, and there is no older one that "
                     "all ranks can",
                     message->world);
        else
            snprintf(agreement->text + len, sizeof agreement->text - len,
                     "; there is no older one that all ranks can read");
    }
    settle(ctx, ref);
}
