/* Shards in an object store. The store belongs to the agent, which has the credentials, the retries, and the
 * record of uploaded parts. The library handles files only: it writes a shard into one of the rank's slots,
 * and the agent copies the slot. A stored shard is reported and committed as if the library had saved it. */
#include "job/context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "job/link/error.h"

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
    bool old_agent = moved->copy_of == 0 && move->slot.copy_of > 0;
    if (!move->asked || move->slot.step != moved->step || move->slot.attempt != moved->attempt ||
        move->slot.slot != moved->slot || (move->slot.copy_of != moved->copy_of && !old_agent))
        return; /* no call waits for this answer any longer */
    move->answered = true;
    move->answer = *moved;
    if (old_agent)
        move->answer = (struct jobwire_moved){
            .status = JOBWIRE_MOVE_FAILED,
            .reason = "this machine's agent is too old to fetch a checkpoint of another number of ranks"};
    job_changed(ctx);
}

/* Has the agent make a transfer, and waits for its answer, which is valid until the next request of this
 * kind. Mutex held. */
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
    struct jobwire_slot request = {step, ctx->attempt, (uint32_t)slot, 0};
    int status = have_moved(ctx, JOB_MOVE_STORE, request, error);
    if (status == 0)
        job_saved(ctx, step, ctx->moves[JOB_MOVE_STORE].answer.bytes);
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}

/* Chooses the slot to overwrite when the gang restores `ref` or an older checkpoint: one that is unsealed or
 * not older than `ref`, which is then useless, or else the oldest. */
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
    struct jobwire_slot request = {ref->step, ref->attempt, (uint32_t)slot, 0};
    if (status == 0)
        status = have_moved(ctx, JOB_MOVE_FETCH, request, error);
    if (status == 0)
        status = held_reload(&ctx->keep.held, slot, error);
    if (status == 0 && job_keep_find(ctx, ref) != slot)
        status =
            job_fail(error, PHX_ERROR_CORRUPT, "the object store returned a different shard for step %llu",
                     (unsigned long long)ref->step);
    if (status == 0 && !held_verify(&ctx->keep.held, slot))
        status = job_fail(error, PHX_ERROR_CORRUPT, "the shard of step %llu from the object store is damaged",
                          (unsigned long long)ref->step);
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}

/* ---- of another world ---- */

static bool is_of(const struct offer *offer, const struct job_checkpoint_ref *ref)
{
    return offer->step == ref->step && offer->attempt == ref->attempt;
}

/* Finds a present copy of an old rank's shard, or else the place for one, the older of the two slots. Returns
 * true if the copy is present. */
static bool find_copy(const char *dir, uint32_t rank, const struct job_checkpoint_ref *ref,
                      struct offer *ret_copy)
{
    struct offer copies[PEER_SLOTS];
    uint8_t oldest = 0;
    for (uint8_t slot = 0; slot < PEER_SLOTS; slot++) {
        if (!offer_look(dir, OFFER_COPY, rank, slot, &copies[slot]))
            copies[slot] = (struct offer){.rank = rank, .place = OFFER_COPY, .slot = slot};
        *ret_copy = copies[slot];
        if (copies[slot].len > 0 && is_of(&copies[slot], ref))
            return true;
        if (plan_compare(copies[slot].step, copies[slot].attempt, copies[oldest].step,
                         copies[oldest].attempt) < 0)
            oldest = slot;
    }
    *ret_copy = copies[oldest];
    return false;
}

static int make_file(const char *dir, const struct offer *copy, struct phx_error *error)
{
    char path[4096];
    offer_path(dir, copy, path, sizeof path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return job_fail_errno(error, errno, "open %.120s", path);
    close(fd);
    return 0;
}

/* Fetches an old rank's shard as a copy into this machine's folder; its data is not verified. */
static int fetch_copy(struct phx_context *ctx, uint32_t rank, const struct job_checkpoint_ref *ref,
                      struct offer *ret_copy, struct phx_error *error)
{
    const char *dir = ctx->settings.memory_dir;
    if (find_copy(dir, rank, ref, ret_copy))
        return 0;
    int status = make_file(dir, ret_copy, error);
    if (status != 0)
        return status;
    struct jobwire_slot request = {ref->step, ref->attempt, ret_copy->slot, 1 + rank};
    pthread_mutex_lock(&ctx->mutex);
    status = have_moved(ctx, JOB_MOVE_FETCH, request, error);
    pthread_mutex_unlock(&ctx->mutex);
    bool there =
        status == 0 && offer_look(dir, OFFER_COPY, rank, ret_copy->slot, ret_copy) && is_of(ret_copy, ref);
    return status == 0 && !there ? job_fail(error, PHX_ERROR_CORRUPT,
                                            "the object store returned a different shard for step %llu",
                                            (unsigned long long)ref->step)
                                 : status;
}

/* Finds a shard of another world, which tells the size of that world: the shard of this rank's number if a
 * slot already has it, otherwise a copy of rank 0's, which is fetched. */
static int find_other_world(struct phx_context *ctx, const struct job_checkpoint_ref *ref,
                            struct offer *ret_found, struct phx_error *error)
{
    const struct job_settings *settings = &ctx->settings;
    int status = PHX_ERROR_CORRUPT;
    for (uint8_t slot = 0; slot < HELD_SLOTS && status != 0; slot++)
        if (offer_look(settings->memory_dir, OFFER_SLOT, settings->rank, slot, ret_found) &&
            is_of(ret_found, ref))
            status = 0;
    if (status != 0)
        status = fetch_copy(ctx, 0, ref, ret_found, error);
    if (status == 0 && (ret_found->world == settings->world || ret_found->world > JOB_WORLD_MAX))
        status = job_fail(error, PHX_ERROR_CORRUPT, "the shard of step %llu is not in the object store",
                          (unsigned long long)ref->step);
    return status;
}

int job_store_share(struct phx_context *ctx, const struct job_checkpoint_ref *ref, struct offer **ret_offers,
                    size_t *ret_count, struct phx_error *error)
{
    const struct job_settings *settings = &ctx->settings;
    struct offer found;
    int status = find_other_world(ctx, ref, &found, error);
    if (status != 0)
        return status;
    struct offer *offers = calloc(2 + found.world / settings->world, sizeof *offers);
    size_t count = 0;
    if (offers == NULL)
        return job_fail(error, PHX_ERROR_MEMORY, "out of memory");
    offers[count++] = found;
    for (uint64_t rank = settings->rank; status == 0 && rank < found.world; rank += settings->world) {
        if (rank == found.rank)
            continue;
        status = fetch_copy(ctx, (uint32_t)rank, ref, &offers[count], error);
        count += status == 0;
    }
    if (status != 0) {
        free(offers);
        return status;
    }
    *ret_offers = offers;
    *ret_count = count;
    return job_fail(error, 0,
                    "step %llu was saved by %u ranks, this world has %u: only named regions can be resharded "
                    "(phx_checkpoint_load)",
                    (unsigned long long)ref->step, found.world, settings->world);
}
