/* A rank's side of the negotiation of which checkpoint the gang restores. Rank 0's other side is
 * restore_coordinator.c; plan.c makes the choice.
 *
 * The newest commit arrives with the table of ranks. Each rank offers the shards that it can provide: those
 * in its machine's folder in memory, its shard of that commit, and older shards. Rank 0 names a source for
 * each rank. The rank fetches the shard and reports whether it is whole. If not, rank 0 strikes that source
 * off and names others. The gang has agreed when every rank has a whole shard of one checkpoint.
 *
 * A checkpoint in storage that is older than the newest commit needs no confirmation by the controller. The
 * controller commits (N, A) when every rank of attempt A has a durable shard of step N; if every rank finds a
 * whole shard of (N, A), that is proved as well. By default the two newest commits are kept, so one damaged
 * shard costs the steps between them. Shards in storage that are newer than the newest commit are not
 * offered.
 *
 * A job set of several gangs must restore the same step in all of them, and a gang sees only itself: such a
 * gang offers the newest commit only.
 *
 * The negotiation belongs to an attempt: job_negotiate_reset begins a new one. */
#include "job/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/link/error.h"
#include "job/gang/offer.h"
#include "job/checkpoint/old_share.h"
#include "job/checkpoint/transfer.h"

bool job_ref_older(const struct job_checkpoint_ref *ref, const struct job_checkpoint_ref *than)
{
    return plan_compare(ref->step, ref->attempt, than->step, than->attempt) < 0;
}

/* Forgets the copied checkpoint if the gang restores an older one: not every rank can restore it any
 * longer. */
static void check_copied(struct job_keep *keep, const struct job_checkpoint_ref *restore)
{
    struct job_checkpoint_ref copied;
    if (keep->open && held_last_copied(&keep->held, &copied.step, &copied.attempt) &&
        (!restore->valid || job_ref_older(restore, &copied)))
        held_forget_copied(&keep->held);
}

/* Ends the negotiation. A checkpoint in memory is not committed, so older files must stay until a newer
 * checkpoint is committed. */
static void settle(struct phx_context *ctx, struct job_checkpoint_ref restore, bool stored)
{
    struct job_negotiation *negotiation = &ctx->negotiation;
    struct job_checkpoint_ref committed = stored ? restore : negotiation->committed;
    if (!restore.valid || negotiation->broken)
        job_old_world_drop(&negotiation->old_world);
    ctx->restore = restore;
    check_copied(&ctx->keep, &restore);
    negotiation->asked = NEGOTIATE_NOTHING;
    negotiation->settled = true;
    if (committed.valid && !negotiation->broken)
        job_committed(ctx, committed.step, committed.attempt);
    if (restore.valid && !stored)
        job_adopt_start(ctx);
    job_keys_told_own(ctx);
    job_changed(ctx);
}

void job_negotiate_start(struct phx_context *ctx, struct job_checkpoint_ref committed)
{
    struct job_negotiation *negotiation = &ctx->negotiation;
    negotiation->committed = committed;
    struct transfer_self self = job_transfer_self(ctx);
    if (ctx->server != NULL)
        transfer_serve_as(ctx->server, &self);
    negotiation->asked = NEGOTIATE_OFFER;
    if (ctx->coordinator != NULL && !job_restore_coordinator_start(ctx))
        job_join_failed(ctx, PHX_ERROR_MEMORY, "out of memory");
    job_changed(ctx);
}

void job_negotiate_reset(struct phx_context *ctx)
{
    free(ctx->negotiation.data);
    free(ctx->negotiation.dump);
    job_old_world_drop(&ctx->negotiation.old_world);
    ctx->negotiation = (struct job_negotiation){0};
    job_restore_coordinator_stop(ctx);
}

/* ---- offers ---- */

static struct shard_id stored_shard(const struct phx_context *ctx, const struct offer *offer)
{
    return (struct shard_id){.dir = ctx->settings.checkpoint_dir,
                             .step = offer->step,
                             .attempt = offer->attempt,
                             .rank = offer->rank};
}

/* Finds the rank's own shard of a checkpoint or, if another number of ranks has saved it, its share of
 * that. */
static int inspect(const struct phx_context *ctx, const struct shard_id *id, struct offer *ret_offer,
                   struct phx_error *error)
{
    struct shard_header header;
    uint32_t world = ctx->settings.world;
    size_t none;
    int status = shard_front(id, NULL, 0, &header, &none, error);
    bool own = status == 0 && header.world == world;
    if (status == 0)
        world = header.world;
    else if (old_share_world(id, &world, NULL) == 0 && world != ctx->settings.world)
        status = 0;
    if (status == 0)
        *ret_offer = own ? offer_of(&header, OFFER_STORED, 0)
                         : (struct offer){.step = id->step,
                                          .attempt = id->attempt,
                                          .rank = id->rank,
                                          .world = ctx->settings.world,
                                          .len = world,
                                          .place = OFFER_SHARE};
    return status;
}

/* Offers this rank's shards in storage: of the newest commit, and older ones. If the newest commit cannot be
 * offered, *error has the reason; otherwise its code is 0. */
static void offer_stored(const struct phx_context *ctx, struct offer_list *list, struct phx_error *error)
{
    const struct job_settings *settings = &ctx->settings;
    const struct job_checkpoint_ref *committed = &ctx->negotiation.committed;
    struct offer offer = {.step = committed->step,
                          .attempt = committed->attempt,
                          .rank = settings->rank,
                          .world = settings->world,
                          .place = OFFER_STORED};
    struct phx_error ignored;
    *error = (struct phx_error){0};
    if (!committed->valid)
        return;
    if (settings->checkpoint_dir[0] == '\0') { /* the agent's store is used; there is no error to report */
        list->items[list->count++] = offer;
        return;
    }
    struct shard_id id = stored_shard(ctx, &offer);
    for (size_t count = 0; count < OFFER_STORED_MAX; count++) {
        if (inspect(ctx, &id, &offer, count == 0 ? error : &ignored) == 0) {
            list->items[list->count++] = offer;
            if (count == 0)
                error->code = 0;
        }
        if (settings->worlds != 1 || !shard_find_older(&id))
            break;
    }
}

uint64_t *job_list_machines(const struct phx_context *ctx)
{
    uint64_t *machines = malloc(ctx->settings.world * sizeof *machines);
    for (uint32_t rank = 0; machines != NULL && rank < ctx->settings.world; rank++)
        machines[rank] = ctx->names[rank].machine;
    return machines;
}

/* Lists all offers of this rank. Without the mutex. */
static void make_offers(struct phx_context *ctx, struct offer_list *list, struct phx_error *error)
{
    const struct job_settings *settings = &ctx->settings;
    uint64_t *machines = job_list_machines(ctx);
    (void)job_keep_open(ctx, settings->store, NULL); /* on failure nothing is held */
    if (machines != NULL && settings->memory_dir[0] != '\0' && settings->worlds == 1) {
        struct offer_share share = offer_share_of(settings->rank, settings->world, machines);
        offer_scan(settings->memory_dir, &share, list);
    }
    free(machines);
    offer_stored(ctx, list, error);
}

static void send_offers(struct phx_context *ctx)
{
    struct job_negotiation *negotiation = &ctx->negotiation;
    struct offer_list list = {0};
    struct phx_error error = {0};
    struct keys keys = {0};
    uint8_t bytes[OFFER_MAX * OFFER_SIZE];
    bool read = ctx->keys.list == NULL && ctx->settings.memory_dir[0] != '\0';
    pthread_mutex_unlock(&ctx->mutex);
    make_offers(ctx, &list, &error);
    read = read && keys_load(ctx->settings.memory_dir, &keys);
    pthread_mutex_lock(&ctx->mutex);
    if (read && ctx->keys.list == NULL)
        ctx->keys = keys;
    else if (read)
        keys_done(&keys);
    if (error.code != 0)
        snprintf(negotiation->text, sizeof negotiation->text, "%.170s", error.message);
    for (size_t i = 0; i < list.count; i++)
        offer_put(&list.items[i], bytes + i * OFFER_SIZE);
    struct rendezvous_message message = {.type = RENDEZVOUS_OFFERS,
                                         .status = ctx->keys.list != NULL,
                                         .attempt = ctx->keys.attempt,
                                         .number = ctx->regions.key,
                                         .value = bytes,
                                         .value_len = (uint32_t)(list.count * OFFER_SIZE)};
    job_member_send(ctx, &message);
}

/* ---- the source ---- */

int job_negotiate_fetch(struct phx_context *ctx, const struct offer *offer, uint32_t holder, uint8_t *to,
                        struct phx_error *error)
{
    const struct rendezvous_name *from = &ctx->names[holder];
    if (from->machine == ctx->names[ctx->settings.rank].machine)
        return offer_read(ctx->settings.memory_dir, offer, to, error);
    struct transfer_peer peer = {.address = from->address,
                                 .port = from->port,
                                 .rate = ctx->settings.fetch_rate,
                                 .prove = ctx->settings.peer_prove};
    struct transfer_request request = {.type = TRANSFER_GET, .self = job_transfer_self(ctx), .offer = *offer};
    return transfer_get(&peer, &request, to, error);
}

static int take_from_memory(struct phx_context *ctx, const struct offer *offer, uint32_t holder,
                            const struct job_checkpoint_ref *older, struct phx_error *error)
{
    int slot = job_keep_find(ctx, &(struct job_checkpoint_ref){true, offer->step, offer->attempt});
    bool own = holder == ctx->settings.rank && offer->place == OFFER_SLOT && offer->rank == holder;
    if (own && slot >= 0)
        /* A slot that this process has sealed or verified is not read again while all ranks wait: restoring
         * verifies it. */
        return held_known(&ctx->keep.held, slot) || held_verify(&ctx->keep.held, slot)
                   ? 0
                   : job_fail(error, PHX_ERROR_CORRUPT, "this rank's copy of step %llu in memory is damaged",
                              (unsigned long long)offer->step);
    return job_adopt_fetch(ctx, offer, holder, older, error);
}

/* Takes the shard from storage. Damage makes the source unusable; any other error is the caller's. */
static int take_from_storage(struct phx_context *ctx, const struct offer *offer, struct phx_error *error)
{
    struct job_checkpoint_ref ref = {true, offer->step, offer->attempt};
    struct shard_id id = stored_shard(ctx, offer);
    id.world = ctx->settings.world;
    if (ctx->settings.store)
        return job_store_fetch(ctx, &ref, error);
    if (id.dir[0] == '\0')
        return 0;
    int status = old_share_verify(&id, error);
    return status == PHX_ERROR_CORRUPT || status == PHX_ERROR_IO ? status : 0;
}

/* Fetches this rank's share of a checkpoint of another world from the object store, since its own shard is
 * not of this world. Returns the encoded offers of that share for the answer to rank 0; NULL: none. Without
 * the mutex. */
static uint8_t *offer_share(struct phx_context *ctx, const struct offer *source, size_t *ret_len,
                            struct phx_error *error)
{
    struct job_checkpoint_ref ref = {true, source->step, source->attempt};
    struct offer *offers = NULL;
    size_t count = 0;
    if (job_store_share(ctx, &ref, &offers, &count, error) != 0)
        return NULL;
    uint8_t *bytes = malloc(count * OFFER_SIZE);
    for (size_t i = 0; bytes != NULL && i < count; i++)
        offer_put(&offers[i], bytes + i * OFFER_SIZE);
    free(offers);
    *ret_len = bytes != NULL ? count * OFFER_SIZE : 0;
    return bytes;
}

static void answer_source(struct phx_context *ctx)
{
    struct job_negotiation *negotiation = &ctx->negotiation;
    struct offer offer = negotiation->source;
    struct job_checkpoint_ref older = negotiation->older;
    struct phx_error error = {0};
    uint32_t round = negotiation->round, holder = negotiation->holder;
    bool taken = negotiation->taken;
    uint8_t *share = NULL;
    size_t share_len = 0;
    if (!taken) {
        free(negotiation->data);
        negotiation->data = NULL;
    }
    pthread_mutex_unlock(&ctx->mutex);
    int status = taken                     ? 0
                 : offer_in_memory(&offer) ? take_from_memory(ctx, &offer, holder, &older, &error)
                                           : take_from_storage(ctx, &offer, &error);
    if (status == PHX_ERROR_CORRUPT && !offer_in_memory(&offer) && ctx->settings.store)
        share = offer_share(ctx, &offer, &share_len, &error);
    pthread_mutex_lock(&ctx->mutex);
    negotiation->taken = status == 0;
    if (status != 0 && negotiation->text[0] == '\0')
        snprintf(negotiation->text, sizeof negotiation->text, "%.170s", error.message);
    struct rendezvous_message answer = {.type = RENDEZVOUS_ANSWER,
                                        .world = round,
                                        .status = status == 0,
                                        .value = share,
                                        .value_len = (uint32_t)share_len};
    job_member_send(ctx, &answer);
    free(share);
}

void job_negotiate_answer(struct phx_context *ctx)
{
    enum job_asked asked = ctx->negotiation.asked;
    ctx->negotiation.asked = NEGOTIATE_NOTHING;
    if (asked == NEGOTIATE_OFFER)
        send_offers(ctx);
    else if (asked == NEGOTIATE_SOURCE)
        answer_source(ctx);
    else if (asked == NEGOTIATE_RESHARD)
        job_old_world_answer(ctx);
    else if (asked == NEGOTIATE_DUMP)
        job_dump_answer(ctx);
}

/* ---- messages of rank 0 ---- */

size_t job_negotiate_put_source(const struct offer *offer, const struct plan_choice *choice,
                                uint8_t ret_bytes[SOURCE_SIZE_MAX])
{
    struct jobwire_writer writer = {.data = ret_bytes, .len = OFFER_SIZE, .cap = SOURCE_SIZE_MAX};
    offer_put(offer, ret_bytes);
    if (choice->any_older) {
        jobwire_put(&writer, choice->older_step, 8);
        jobwire_put(&writer, choice->older_attempt, 4);
    }
    return writer.len;
}

static bool get_source(const struct rendezvous_message *message, struct offer *ret_offer,
                       struct job_checkpoint_ref *ret_older)
{
    struct jobwire_reader reader = {.data = message->value, .len = message->value_len, .pos = OFFER_SIZE};
    *ret_older = (struct job_checkpoint_ref){.valid = message->value_len > OFFER_SIZE};
    if (message->value_len != OFFER_SIZE && message->value_len != SOURCE_SIZE_MAX)
        return false;
    if (ret_older->valid) {
        ret_older->step = jobwire_get(&reader, 8);
        ret_older->attempt = (uint32_t)jobwire_get(&reader, 4);
    }
    return offer_get(message->value, ret_offer);
}

static void on_source(struct phx_context *ctx, const struct rendezvous_message *message)
{
    struct job_negotiation *negotiation = &ctx->negotiation;
    struct job_checkpoint_ref older;
    struct offer offer;
    if (!get_source(message, &offer, &older) || message->status >= ctx->settings.world) {
        job_join_failed(ctx, PHX_ERROR_IO, "rank 0 named an invalid source");
        return;
    }
    uint8_t before[OFFER_SIZE];
    offer_put(&negotiation->source, before);
    negotiation->taken = negotiation->taken && negotiation->holder == message->status &&
                         memcmp(before, message->value, sizeof before) == 0;
    negotiation->older = older;
    job_old_world_drop(&negotiation->old_world);
    negotiation->source = offer;
    negotiation->holder = message->status;
    negotiation->round = message->world;
    negotiation->asked = NEGOTIATE_SOURCE;
    job_changed(ctx);
}

/* Sets the reason for a broken checkpoint: the error of this rank if it has one, otherwise the culprit's
 * rank. */
static void explain(struct job_negotiation *negotiation, uint32_t culprit)
{
    size_t len = strlen(negotiation->text);
    if (len == 0)
        snprintf(negotiation->text, sizeof negotiation->text,
                 "rank %u can't read its shard of the newest checkpoint, and there is no older one that "
                 "all ranks can",
                 culprit);
    else
        snprintf(negotiation->text + len, sizeof negotiation->text - len,
                 "; there is no older one that all ranks can read");
}

void job_negotiate_told(struct phx_context *ctx, const struct rendezvous_message *message)
{
    struct job_negotiation *negotiation = &ctx->negotiation;
    struct job_checkpoint_ref ref = {true, message->number, message->rank};
    if (!ctx->met || negotiation->settled)
        return;
    if (message->type == RENDEZVOUS_SOURCE) {
        on_source(ctx, message);
        return;
    }
    if (message->type == RENDEZVOUS_RESHARD) {
        job_old_world_told(ctx, message);
        return;
    }
    if (message->type == RENDEZVOUS_DUMP) {
        job_dump_told(ctx, message);
        return;
    }
    if (message->status == AGREED_REFUSED)
        snprintf(negotiation->text, sizeof negotiation->text, "%.*s", (int)message->value_len,
                 (const char *)message->value);
    negotiation->broken = message->status == AGREED_BROKEN;
    if (message->status == AGREED_NONE || message->status == AGREED_REFUSED)
        ref.valid = false;
    else if (negotiation->broken)
        ref = negotiation->committed;
    if (negotiation->broken)
        explain(negotiation, message->world);
    settle(ctx, ref, message->status == AGREED_STORED);
}

/* ---- keys ---- */

void job_keys_told_own(struct phx_context *ctx)
{
    if (ctx->negotiation.settled && ctx->regions.key != 0)
        job_member_send(ctx,
                        &(struct rendezvous_message){.type = RENDEZVOUS_KEY, .number = ctx->regions.key});
}

void job_keys_asked(struct phx_context *ctx)
{
    struct rendezvous_message message = {.type = RENDEZVOUS_KEYS, .attempt = ctx->keys.attempt};
    size_t len = 0;
    uint8_t *bytes = ctx->keys.list != NULL ? keys_encode(&ctx->keys, &len) : NULL;
    message.value = bytes;
    message.value_len = bytes != NULL ? (uint32_t)len : 0;
    job_member_send(ctx, &message);
    free(bytes);
}

void job_keys_told(struct phx_context *ctx, const struct rendezvous_message *message)
{
    struct keys keys;
    if (!keys_decode(message->value, message->value_len, message->attempt, &keys))
        return;
    keys_done(&ctx->keys);
    ctx->keys = keys;
    ctx->keys_saved = false;
    job_changed(ctx);
}
