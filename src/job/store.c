/* An object store is the agent's: it has the credentials, the retries and the memory of what was sent. The
 * library has files: a shard goes into one of the rank's slots, and the agent moves the slot. That a shard is
 * stored is reported as if the library had saved it, and committed likewise. */
#include "job/context.h"

#include "job/error.h"

static const uint16_t request_of[JOB_MOVE_KINDS] = {JOBWIRE_STORE, JOBWIRE_FETCH};

static void ask(struct phx_context *ctx, enum job_move_kind kind)
{
    job_link_send(ctx, &(struct jobwire_message){.type = request_of[kind], .slot = ctx->moves[kind].slot});
}

void job_store_again(struct phx_context *ctx)
{
    for (int kind = 0; kind < JOB_MOVE_KINDS; kind++)
        if (ctx->moves[kind].asked && !ctx->moves[kind].answered)
            ask(ctx, (enum job_move_kind)kind);
}

void job_store_moved(struct phx_context *ctx, enum job_move_kind kind, const struct jobwire_moved *moved)
{
    struct job_move *move = &ctx->moves[kind];
    if (!move->asked || move->slot.step != moved->step || move->slot.attempt != moved->attempt ||
        move->slot.slot != moved->slot)
        return; /* of what nobody waits for any more */
    move->answered = true;
    move->answer = *moved;
    job_changed(ctx);
}

/* Mutex held. The answer stays valid until the next of its kind is asked. */
static int have_moved(struct phx_context *ctx, enum job_move_kind kind, struct jobwire_slot slot,
                      struct phx_error *error)
{
    struct job_move *move = &ctx->moves[kind];
    *move = (struct job_move){.asked = true, .slot = slot};
    ask(ctx, kind);
    int status = job_failure(ctx, error);
    while (status == 0 && !move->answered && !ctx->keep.stop) {
        job_wait(ctx, JOB_NEVER);
        status = job_failure(ctx, error);
    }
    if (status == 0 && !move->answered)
        status = job_fail(error, PHX_ERROR_IO, "the program has left before step %llu was stored",
                          (unsigned long long)slot.step);
    move->asked = false;
    if (status != 0 || move->answer.status == JOBWIRE_MOVED)
        return status;
    bool damage = move->answer.status == JOBWIRE_MOVE_MISSING || move->answer.status == JOBWIRE_MOVE_DAMAGED;
    return job_fail(error, damage ? PHX_ERROR_CORRUPT : PHX_ERROR_IO, "step %llu, object store: %.150s",
                    (unsigned long long)slot.step, move->answer.reason);
}

int job_store_put(struct phx_context *ctx, int slot, uint64_t step, struct phx_error *error)
{
    pthread_mutex_lock(&ctx->mutex);
    struct jobwire_slot request = {step, ctx->attempt, (uint32_t)slot};
    int status = have_moved(ctx, JOB_MOVE_STORE, request, error);
    if (status == 0)
        job_saved(ctx, step, ctx->moves[JOB_MOVE_STORE].answer.bytes);
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}

/* The gang goes back to `ref` or further: what is newer is of no use, and after it what is oldest. */
static int slot_to_lose(const struct held *held, const struct job_checkpoint_ref *ref)
{
    int oldest = 0;
    for (int i = 0; i < HELD_SLOTS; i++) {
        const struct held_slot *slot = &held->slots[i];
        struct job_checkpoint_ref in = {true, slot->step, slot->attempt}, in_oldest = in;
        if (!slot->sealed || !job_ref_older(&in, ref))
            return i;
        in_oldest.step = held->slots[oldest].step;
        in_oldest.attempt = held->slots[oldest].attempt;
        if (job_ref_older(&in, &in_oldest))
            oldest = i;
    }
    return oldest;
}

int job_store_fetch(struct phx_context *ctx, const struct job_checkpoint_ref *ref, struct phx_error *error)
{
    pthread_mutex_lock(&ctx->mutex);
    int status = job_keep_open(ctx, true, error);
    int slot = status == 0 ? slot_to_lose(&ctx->keep.held, ref) : 0;
    struct jobwire_slot request = {ref->step, ref->attempt, (uint32_t)slot};
    if (status == 0)
        status = have_moved(ctx, JOB_MOVE_FETCH, request, error);
    if (status == 0)
        status = held_reload(&ctx->keep.held, slot, error);
    if (status == 0 && job_keep_find(ctx, ref) != slot)
        status = job_fail(error, PHX_ERROR_CORRUPT, "step %llu came from the object store as something else",
                          (unsigned long long)ref->step);
    if (status == 0 && !held_verify(&ctx->keep.held, slot))
        status = job_fail(error, PHX_ERROR_CORRUPT, "step %llu came damaged from the object store",
                          (unsigned long long)ref->step);
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}
