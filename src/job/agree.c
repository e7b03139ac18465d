/* Which checkpoint a gang restores: the newest that every rank can read.
 *
 * The table of ranks proposes the newest committed one, or a newer one that rank 0 holds in memory. Each
 * rank reads its own part of the proposal through, from memory or storage, and answers whether it is whole,
 * and which older one of its own comes next. When all can read it, it is agreed. Otherwise rank 0 proposes
 * the oldest of the next ones named: a checkpoint that all ranks can read is not newer than what any of
 * them named, so none is passed over. Proposals only get older, so this ends.
 *
 * An older checkpoint needs no word of the controller. It commits (N, A) when every rank of attempt A has a
 * durable shard of step N, and that every rank finds a whole shard of (N, A) says the same. The two newest
 * commits are never deleted, so one damaged shard costs the steps between them.
 *
 * A job set of several gangs must restore one step in all of them, and a gang sees only itself: there
 * nothing older is proposed.
 */
#include "job/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/error.h"
#include "job/shard.h"

#define ANSWER_WHOLE 1 /* bits of the status */
#define ANSWER_OLDER 2

/* Nothing was ever committed, and not all ranks have what is in memory: that is a beginning, no damage. */
enum agreed { AGREED_BROKEN = 0, AGREED_FOUND = 1, AGREED_NONE = 2 };

bool job_ref_older(const struct job_checkpoint_ref *ref, const struct job_checkpoint_ref *than)
{
    return ref->step < than->step || (ref->step == than->step && ref->attempt < than->attempt);
}

/* What is in memory is not committed: older files must stay until something newer is. */
static void settle(struct phx_context *ctx, struct job_checkpoint_ref restore)
{
    struct job_checkpoint_ref stored = job_keep_find(ctx, &restore) >= 0 ? ctx->restore : restore;
    ctx->restore = restore;
    ctx->agreement.asked = false;
    ctx->agreement.settled = true;
    if (stored.valid && !ctx->agreement.broken)
        job_committed(ctx, stored.step, stored.attempt);
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

/* What storage has before `before`: the newest committed one, and behind that whatever has a name. */
static struct job_checkpoint_ref stored_before(const struct phx_context *ctx,
                                               const struct job_checkpoint_ref *before)
{
    struct shard_id id = {ctx->settings.checkpoint_dir, before->step, before->attempt, ctx->settings.rank,
                          ctx->settings.world};
    if (ctx->restore.valid && job_ref_older(&ctx->restore, before))
        return ctx->restore;
    bool found = id.dir[0] != '\0' && ctx->settings.worlds == 1 && shard_find_older(&id);
    return (struct job_checkpoint_ref){found, id.step, id.attempt};
}

/* The newer of what memory and storage have before `before`. */
static bool find_older(struct phx_context *ctx, const struct job_checkpoint_ref *before,
                       struct job_checkpoint_ref *ret_ref)
{
    struct job_checkpoint_ref held = *before, stored = stored_before(ctx, before);
    held.valid = ctx->keep.open && held_find_older(&ctx->keep.held, &held.step, &held.attempt);
    *ret_ref = !held.valid || (stored.valid && job_ref_older(&held, &stored)) ? stored : held;
    return ret_ref->valid;
}

/* Only damage speaks against a shard; another world size is the caller's to hear of, and so is a committed
 * checkpoint without a folder to read it from. */
static bool can_restore(struct phx_context *ctx, const struct job_checkpoint_ref *ref,
                        struct phx_error *error)
{
    struct shard_id id = {ctx->settings.checkpoint_dir, ref->step, ref->attempt, ctx->settings.rank,
                          ctx->settings.world};
    int slot = job_keep_find(ctx, ref);
    if (slot >= 0 && held_verify(&ctx->keep.held, slot))
        return true;
    if (id.dir[0] == '\0')
        return ctx->restore.valid && !job_ref_older(&ctx->restore, ref);
    int status = shard_verify(&id, error);
    return status != PHX_ERROR_CORRUPT && status != PHX_ERROR_IO;
}

/* Without the mutex. */
static struct star_message examine(struct phx_context *ctx, struct job_checkpoint_ref proposal,
                                   struct phx_error *error)
{
    struct star_message answer = {.type = STAR_ANSWER};
    struct job_checkpoint_ref next;
    (void)job_keep_open(ctx, false, NULL); /* nothing is held then */
    if (can_restore(ctx, &proposal, error))
        answer.status = ANSWER_WHOLE;
    if (find_older(ctx, &proposal, &next)) {
        answer.status |= ANSWER_OLDER;
        answer.number = next.step;
        answer.rank = next.attempt;
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
    struct star_message message = {.type = STAR_AGREED, .status = AGREED_FOUND};
    message.number = agreement->proposal.step;
    message.rank = agreement->proposal.attempt;
    if (agreement->refused && !agreement->exhausted) {
        message.type = STAR_PROPOSE;
        message.number = agreement->next.step;
        message.rank = agreement->next.attempt;
    } else if (agreement->refused) {
        message.status = ctx->restore.valid ? AGREED_BROKEN : AGREED_NONE;
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
    struct job_checkpoint_ref next = {true, message->number, message->rank};
    if ((message->status & ANSWER_OLDER) == 0 || !job_ref_older(&next, &agreement->proposal))
        agreement->exhausted = true;
    else if (!agreement->next.valid || job_ref_older(&next, &agreement->next))
        agreement->next = next;
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
    ref.valid = message->status != AGREED_NONE;
    agreement->broken = message->status == AGREED_BROKEN;
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
