/* keep.c - checkpoints in memory: the public calls, the thread that seals copied data, and the record of
 * which rank holds which step.
 *
 * A hold copies into a slot that is not the newest (the caller waits for the copy only), has the thread seal
 * the slot, and tells the coordinator. When every rank has reported a step, the coordinator tells all ranks:
 * from then on the whole gang can restore the step, and the slot before it may be overwritten. Therefore one
 * slot always belongs to a step that every rank holds, and a rank that is a whole hold ahead of another waits
 * for it. A slot that is being written to storage stays until then, and a third slot is used meanwhile.
 * Between two holds the thread allocates the memory of the next slot if it has none, so no hold has to wait
 * for that.
 *
 * No rank records that every rank holds a step: at the next join the ranks ask each other (negotiate.c). */
#include "job/context.h"

#include <stdlib.h>
#include <string.h>

#include "job/link/error.h"
#include "job/gang/offer.h"

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
    keep->newest = keep->before = keep->storing = keep->peer.sending = -1;
    return status;
}

int job_keep_find(const struct phx_context *ctx, const struct job_checkpoint_ref *ref)
{
    return ctx->keep.open && ref->valid ? held_find(&ctx->keep.held, ref->step, ref->attempt) : -1;
}

/* Deletes this rank's slots, and this rank's share of the slots that other ranks have left on the machine. */
static void discard_all(struct phx_context *ctx)
{
    const struct job_settings *settings = &ctx->settings;
    uint64_t *machines = job_list_machines(ctx);
    if (machines != NULL) {
        struct offer_share share = offer_share_of(settings->rank, settings->world, machines);
        offer_discard(settings->memory_dir, &share);
    }
    free(machines);
    held_discard(&ctx->keep.held);
}

void job_keep_rest(struct phx_context *ctx)
{
    struct job_keep *keep = &ctx->keep;
    pthread_mutex_lock(&ctx->mutex);
    keep->stop = true;
    job_changed(ctx);
    pthread_mutex_unlock(&ctx->mutex);
    job_peer_stop(ctx);
    if (keep->thread_started)
        pthread_join(keep->thread, NULL);
    if (keep->store_thread_started)
        pthread_join(keep->store_thread, NULL);
    if (keep->adopt_thread_started)
        pthread_join(keep->adopt_thread, NULL);
    if (keep->delete_thread_started)
        pthread_join(keep->delete_thread, NULL);
    keep->thread_started = keep->store_thread_started = keep->adopt_thread_started = false;
    keep->delete_thread_started = false;
}

void job_keep_renew(struct phx_context *ctx)
{
    struct job_keep *keep = &ctx->keep;
    const struct job_settings *settings = &ctx->settings;
    struct held *held = &keep->held;
    struct job_keep renewed = {.newest = -1, .before = -1, .storing = -1};
    renewed.peer = (struct job_peer){.used = keep->peer.used, .sending = -1};
    bool same = keep->open && held->rank == settings->rank && held->world == settings->world &&
                settings->worlds == 1 && strcmp(held->dir, settings->memory_dir) == 0;
    if (same && held_renew(held, ctx->attempt, NULL) == 0) {
        renewed.open = true;
        renewed.held = *held;
    } else if (keep->open && !same) {
        held_close(held);
    }
    *keep = renewed; /* after a failure, the next opening of the folder reports it */
}

void job_keep_stop(struct phx_context *ctx, bool discard)
{
    struct job_keep *keep = &ctx->keep;
    job_keep_rest(ctx);
    if (keep->open && discard)
        discard_all(ctx);
    else if (keep->open)
        held_close(&keep->held);
    keep->open = false;
}

/* ---- the slots ---- */

/* Returns the slot that the gang would restore if this attempt ended now: the newest step that every rank is
 * known to hold, otherwise the checkpoint with which the attempt began. Returns -1 if no slot of this rank
 * holds it. */
static int sure_slot(const struct phx_context *ctx)
{
    const struct job_keep *keep = &ctx->keep;
    int held = keep->any_by_all ? held_find(&keep->held, keep->by_all, ctx->attempt) : -1;
    return held >= 0 ? held : job_keep_find(ctx, &ctx->restore);
}

/* Returns the slot of the newest checkpoint of which every peer has a copy; -1 if there is none. This slot
 * must stay: if a machine is lost, its ranks' shards survive as copies of that checkpoint only, so the other
 * ranks need their own shards of it. An earlier process may have sent the copies; if no record of that
 * exists, the slot is the one with which the attempt began. */
static int copied_slot(const struct phx_context *ctx)
{
    const struct job_keep *keep = &ctx->keep;
    uint64_t step;
    uint32_t attempt;
    if (held_last_copied(&keep->held, &step, &attempt))
        return held_find(&keep->held, step, attempt);
    return keep->peer.used ? job_keep_find(ctx, &ctx->restore) : -1;
}

/* Returns true if the slot holds a shard of another world that ranks may still need for resharding. */
static bool is_cut(const struct phx_context *ctx, int slot)
{
    const struct job_keep *keep = &ctx->keep;
    bool over = keep->peer.used ? keep->peer.any_by_all : keep->any_by_all;
    return !over && ctx->restore.valid &&
           held_left(&keep->held, slot, ctx->restore.step, ctx->restore.attempt);
}

/* Returns a slot that is no longer needed: not the newest of this attempt, not the sure one, not one that is
 * being sent on or has been copied. Prefers a slot that has its memory. Returns -1 if there is none. */
static int free_slot(const struct phx_context *ctx)
{
    const struct job_keep *keep = &ctx->keep;
    int sure = sure_slot(ctx), copied = copied_slot(ctx), best = -1;
    for (int i = 0; i < HELD_SLOTS; i++) {
        if (i == keep->newest || i == sure || i == copied || i == keep->storing || i == keep->peer.sending ||
            is_cut(ctx, i))
            continue;
        if (best < 0 || keep->held.slots[i].mapped > keep->held.slots[best].mapped)
            best = i;
    }
    return best;
}

/* ---- the threads ---- */

/* Ends a hold and reports it to the coordinator, even a failed one: the other ranks wait for the report. */
static void end_hold(struct phx_context *ctx, uint64_t step, bool held)
{
    struct job_keep *keep = &ctx->keep;
    if (!held && keep->storing == keep->busy)
        keep->storing = -1;
    if (!held && keep->peer.sending == keep->busy)
        job_peer_done(ctx, step, false);
    keep->state = KEEP_IDLE;
    keep->prepared = false;
    job_member_send(ctx,
                    &(struct rendezvous_message){.type = RENDEZVOUS_HELD, .number = step, .status = !held});
    job_changed(ctx);
}

/* Saves the keys of all ranks, once for each machine: its first rank does it. */
static void save_keys(struct phx_context *ctx)
{
    const struct rendezvous_name *names = ctx->names;
    uint32_t first = 0;
    if (ctx->keys_saved || ctx->keys.list == NULL || !ctx->met)
        return;
    while (names[first].machine != names[ctx->settings.rank].machine)
        first++;
    ctx->keys_saved = true;
    if (first == ctx->settings.rank)
        /* on failure, later processes do not know the replicas */
        (void)keys_save(ctx->settings.memory_dir, &ctx->keys, NULL);
}

/* Deletes the checkpoints that other ranks have left on this machine. Called when all ranks hold two newer
 * steps, so that no rank will restore them. Without the mutex. */
static void sweep(const struct phx_context *ctx)
{
    const struct job_settings *settings = &ctx->settings;
    uint64_t *machines = job_list_machines(ctx);
    if (machines == NULL)
        return;
    struct offer_share share = offer_share_of(settings->rank, settings->world, machines);
    offer_sweep(settings->memory_dir, &share, ctx->attempt);
    free(machines);
}

static void seal(struct phx_context *ctx)
{
    struct job_keep *keep = &ctx->keep;
    struct phx_error error;
    save_keys(ctx);
    bool due = keep->by_all_count >= 2 && !keep->swept;
    keep->swept = keep->swept || due;
    pthread_mutex_unlock(&ctx->mutex);
    if (due)
        sweep(ctx);
    int status = held_seal(&keep->held, keep->busy, keep->step, keep->len, keep->key, &error);
    pthread_mutex_lock(&ctx->mutex);
    if (status == 0) {
        keep->before = keep->newest;
        keep->newest = keep->busy;
    } else {
        keep->failure = error; /* the next hold returns it */
    }
    end_hold(ctx, keep->step, status == 0);
}

/* Returns true if no data is being written into a slot. */
static bool is_sealed(const struct job_keep *keep)
{
    return keep->state == KEEP_IDLE || keep->state == KEEP_PREPARING;
}

/* Returns true if the next slot is known: every rank has reported whether it holds the newest step, and no
 * slot is being sent on. */
static bool can_prepare(const struct job_keep *keep)
{
    return !keep->prepared && keep->state == KEEP_IDLE && keep->any_told && keep->told >= keep->step &&
           keep->storing < 0 && keep->peer.sending < 0;
}

static void prepare(struct phx_context *ctx)
{
    struct job_keep *keep = &ctx->keep;
    int slot = free_slot(ctx);
    bool more = slot >= 0;
    keep->state = KEEP_PREPARING;
    while (more && !keep->stop) {
        pthread_mutex_unlock(&ctx->mutex);
        more = held_prepare(&keep->held, slot, keep->len);
        pthread_mutex_lock(&ctx->mutex);
    }
    keep->state = KEEP_IDLE;
    keep->prepared = true;
    job_changed(ctx);
}

static void *serve_seals(void *argument)
{
    struct phx_context *ctx = argument;
    struct job_keep *keep = &ctx->keep;
    pthread_mutex_lock(&ctx->mutex);
    /* seals copied data before it stops, since that checkpoint may be restored */
    while (!keep->stop || keep->state == KEEP_COPIED) {
        if (keep->state == KEEP_COPIED)
            seal(ctx);
        else if (can_prepare(keep))
            prepare(ctx);
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
    const struct held_slot *slot = &keep->held.slots[keep->storing];
    pthread_mutex_unlock(&ctx->mutex);
    int status = ctx->settings.store ? job_store_put(ctx, keep->storing, keep->store_step, &error)
                                     : job_save_slot(ctx, keep->store_step, slot, &error);
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
        if (ctx->keep.state == KEEP_IDLE && ctx->keep.storing >= 0 &&
            /* otherwise the other thread must seal it first */
            ctx->keep.held.slots[ctx->keep.storing].sealed)
            store(ctx);
        else
            job_wait(ctx, JOB_NEVER);
    }
    pthread_mutex_unlock(&ctx->mutex);
    return NULL;
}

static int start_threads(struct phx_context *ctx, unsigned where, struct phx_error *error)
{
    struct job_keep *keep = &ctx->keep;
    int status = job_thread_start(ctx, serve_seals, &keep->thread, &keep->thread_started, error);
    if (status == 0 && (where & PHX_IN_STORAGE) != 0)
        status = job_thread_start(ctx, serve_stores, &keep->store_thread, &keep->store_thread_started, error);
    if (status == 0 && (where & PHX_IN_PEER) != 0)
        status = job_peer_start(ctx, error);
    return status;
}

void job_keep_finish(struct phx_context *ctx)
{
    const struct job_keep *keep = &ctx->keep;
    while (keep->open && ctx->failure == 0 &&
           (!is_sealed(keep) || keep->storing >= 0 || keep->peer.sending >= 0))
        job_wait(ctx, JOB_NEVER);
}

/* ---- calls ---- */

static bool by_all(const struct job_keep *keep, uint64_t step)
{
    return keep->any_by_all && keep->by_all >= step;
}

/* Returns true while no slot may be taken: the previous hold must be sealed on every rank, and only one slot
 * at a time may be on its way to storage, and to a peer. */
static bool must_wait(const struct phx_context *ctx, unsigned where)
{
    const struct job_keep *keep = &ctx->keep;
    const struct job_peer *peer = &keep->peer;
    if (keep->failure.code != 0)
        return false;
    return keep->state != KEEP_IDLE || (keep->any && !(keep->any_told && keep->told >= keep->step)) ||
           free_slot(ctx) < 0 || ((where & PHX_IN_STORAGE) != 0 && keep->storing >= 0) ||
           ((where & PHX_IN_PEER) != 0 &&
            (peer->sending >= 0 || (peer->any && !(peer->any_told && peer->told >= peer->step))));
}

/* Returns the failure of a thread, and forgets it. */
static int take_failure(struct job_keep *keep, struct phx_error *error)
{
    int status = keep->failure.code;
    if (status != 0 && error != NULL)
        *error = keep->failure;
    keep->failure = (struct phx_error){0};
    return status;
}

static int wait_for_slot(struct phx_context *ctx, uint64_t step, unsigned where, struct phx_error *error)
{
    struct job_keep *keep = &ctx->keep;
    const uint64_t *floor = keep->any ? &keep->step : ctx->restore.valid ? &ctx->restore.step : NULL;
    if (floor != NULL && step <= *floor)
        return job_fail(error, PHX_ERROR_INVALID, "step %llu is not above step %llu, which is already held",
                        (unsigned long long)step, (unsigned long long)*floor);
    int status = job_failure(ctx, error);
    while (status == 0 && must_wait(ctx, where)) {
        if (ctx->any_left)
            return job_fail_peer(error, ctx->left_rank, "has left; no later step can be held by all ranks");
        job_wait(ctx, JOB_NEVER);
        status = job_failure(ctx, error);
    }
    return status;
}

/* Reports a hold without a copy as failed to the coordinator, in memory and at the peer. */
static void report_missed(struct phx_context *ctx, uint64_t step, unsigned where)
{
    job_member_send(ctx, &(struct rendezvous_message){.type = RENDEZVOUS_HELD, .number = step, .status = 1});
    if ((where & PHX_IN_PEER) != 0)
        job_peer_done(ctx, step, false);
}

/* Ends a hold that has not begun to copy as one that failed: other ranks wait for the outcome of every hold.
 * Waits until the hold before is sealed. */
static void miss_hold(struct phx_context *ctx, uint64_t step, unsigned where)
{
    while (ctx->keep.state != KEEP_IDLE && ctx->failure == 0)
        job_wait(ctx, JOB_NEVER);
    if (ctx->failure != 0)
        return; /* the attempt has ended */
    ctx->keep.any = true;
    ctx->keep.step = step;
    report_missed(ctx, step, where);
}

/* Copies the parts into a slot, while the program waits. Mutex held; released during the copy. */
static int copy(struct phx_context *ctx, uint64_t step, const struct iovec *parts, size_t count, uint64_t key,
                struct phx_error *error)
{
    struct job_keep *keep = &ctx->keep;
    keep->any = true;
    keep->step = step;
    keep->key = key;
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

/* Sends a copied slot on to storage and to the peer once it is sealed. */
static void send_on(struct phx_context *ctx, uint64_t step, unsigned where)
{
    struct job_keep *keep = &ctx->keep;
    if ((where & PHX_IN_STORAGE) != 0) {
        keep->storing = keep->busy;
        keep->store_step = step;
    }
    if ((where & PHX_IN_PEER) != 0) {
        keep->peer.sending = keep->busy;
        keep->peer.any = true;
        keep->peer.step = step;
    }
}

/* As copy(); also tells the coordinator if there will be no copy at a peer. */
static int copy_and_send_on(struct phx_context *ctx, uint64_t step, const struct iovec *parts, size_t count,
                            uint64_t key, unsigned where, struct phx_error *error)
{
    int status = copy(ctx, step, parts, count, key, error);
    if (status == 0)
        send_on(ctx, step, where);
    else if ((where & PHX_IN_PEER) != 0)
        job_peer_done(ctx, step, false);
    return status;
}

/* Returns the tiers of this hold. Every rank decides alike. */
static unsigned decide_where(struct phx_context *ctx, unsigned where)
{
    struct job_peer *peer = &ctx->keep.peer;
    uint64_t every = ctx->settings.peer_every;
    if (every > 0 && ++peer->holds % every == 0)
        where |= PHX_IN_PEER;
    bool wanted = every > 0 || (where & PHX_IN_PEER) != 0, exists = wanted && job_peer_exists(ctx);
    peer->used = peer->used || exists;
    return exists ? where : where & ~(unsigned)PHX_IN_PEER;
}

int job_keep_hold(struct phx_context *ctx, uint64_t step, const struct iovec *parts, size_t count,
                  uint64_t key, unsigned where, struct phx_error *error)
{
    pthread_mutex_lock(&ctx->mutex);
    enum phx_phase phase = job_pace_phase(&ctx->pace, PHX_PHASE_SAVE, job_now_ns());
    int status = job_keep_open(ctx, true, error);
    where = decide_where(ctx, where);
    if (status != 0)
        report_missed(ctx, step, where);
    if (status == 0 && (where & PHX_IN_STORAGE) != 0)
        status = job_save_check(ctx, step, error);
    if (status == 0)
        status = wait_for_slot(ctx, step, where, error);
    if (status == 0) {
        status = take_failure(&ctx->keep, error);
        status = status == 0 ? start_threads(ctx, where, error) : status;
        if (status != 0)
            miss_hold(ctx, step, where);
    }
    if (status == 0)
        status = copy_and_send_on(ctx, step, parts, count, key, where, error);
    job_pace_phase(&ctx->pace, phase, job_now_ns());
    job_changed(ctx);
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}

int job_keep_rescue(struct phx_context *ctx, uint64_t step, const struct iovec *parts, size_t count,
                    uint64_t key, struct phx_error *error)
{
    struct job_keep *keep = &ctx->keep;
    size_t len = 0;
    job_keep_rest(ctx); /* copied data is sealed now, and no other thread uses the slots */
    pthread_mutex_lock(&ctx->mutex);
    int status = job_keep_open(ctx, true, error), slot = -1;
    bool is_held = status == 0 && keep->newest >= 0 && keep->held.slots[keep->newest].step >= step;
    keep->peer.sending = keep->storing = -1; /* the attempt has ended: these copies are abandoned */
    if (status == 0 && !is_held && (slot = free_slot(ctx)) < 0)
        status = job_fail(error, PHX_ERROR_SPACE, "every slot holds a checkpoint that is still needed");
    pthread_mutex_unlock(&ctx->mutex);
    if (status != 0 || is_held)
        return status;
    for (size_t i = 0; i < count; i++)
        len += parts[i].iov_len;
    status = held_copy(&keep->held, slot, parts, count, error);
    return status == 0 ? held_seal(&keep->held, slot, step, len, key, error) : status;
}

int job_keep_stored(struct phx_context *ctx, struct phx_error *error)
{
    struct job_keep *keep = &ctx->keep;
    pthread_mutex_lock(&ctx->mutex);
    int status = job_failure(ctx, error);
    while (status == 0 && keep->failure.code == 0 && (!is_sealed(keep) || keep->storing >= 0)) {
        job_wait(ctx, JOB_NEVER);
        status = job_failure(ctx, error);
    }
    if (status == 0)
        status = take_failure(keep, error);
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
            status = job_fail(error, PHX_ERROR_TIMEOUT, "not every rank holds step %llu",
                              (unsigned long long)step);
    }
    job_pace_phase(&ctx->pace, phase, job_now_ns());
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}

/* Records the result for a step. A step that not all ranks hold is useless, so its slot is taken next. */
void job_keep_told(struct phx_context *ctx, uint64_t step, bool all)
{
    struct job_keep *keep = &ctx->keep;
    keep->any_told = true;
    keep->told = step;
    if (all) {
        keep->any_by_all = true;
        keep->by_all = step;
        keep->by_all_count++;
    } else if (keep->newest >= 0 && keep->held.slots[keep->newest].step == step) {
        keep->newest = keep->before;
    }
    job_changed(ctx);
}
