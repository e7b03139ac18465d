/* The peer tier: a held checkpoint is copied to the rank's buddy, a rank on another machine, whose process
 * keeps it in its own machine's folder (transfer.h, copies.h). The loss of a machine therefore loses no
 * shard.
 *
 * A thread of the lowest priority sends a sealed slot, which is not overwritten until the copy has arrived.
 * As with holds, a step counts as copied when every rank's copy has arrived: the ranks report their copies to
 * the coordinator, which tells all. The buddy keeps the copy of that step while it receives the next one. */
#include "job/context.h"

#include <limits.h>
#include <stdio.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "job/link/error.h"
#include "job/checkpoint/transfer.h"

/* ---- serving ---- */

static void *serve(void *argument)
{
    struct phx_context *ctx = argument;
    transfer_serve(ctx->server);
    return NULL;
}

/* Finds the address of this machine on the route to the rendezvous. A connected datagram socket has that
 * address, and sends nothing. */
static void address_towards(const struct job_settings *settings, char ret_address[64])
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICSERV}, *at = NULL;
    struct sockaddr_storage own;
    socklen_t size = sizeof own;
    if (settings->host[0] == '\0' || getaddrinfo(settings->host, settings->port, &hints, &at) != 0)
        return;
    int fd = socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0 &&
        getsockname(fd, (struct sockaddr *)&own, &size) == 0 &&
        getnameinfo((struct sockaddr *)&own, size, ret_address, 64, NULL, 0, NI_NUMERICHOST) != 0)
        ret_address[0] = '\0';
    if (fd >= 0)
        close(fd);
    freeaddrinfo(at);
}

/* Finds the address to listen at: the program's choice, the one that the agent names, or the one on the route
 * to the rendezvous. Empty: none is known. */
static void find_address(const struct job_settings *settings, char ret_address[64])
{
    const char *named = settings->address[0] != '\0' ? settings->address : settings->machine_address;
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *at = NULL;
    ret_address[0] = '\0';
    if (named[0] != '\0' && getaddrinfo(named, NULL, &hints, &at) == 0)
        memcpy(ret_address, named, strlen(named) + 1);
    else
        address_towards(settings, ret_address);
    if (at != NULL)
        freeaddrinfo(at);
}

int job_serve_start(struct phx_context *ctx, struct phx_error *error)
{
    const struct job_settings *settings = &ctx->settings;
    bool alone = settings->standalone && settings->world == 1;
    if (alone || settings->memory_dir[0] == '\0' || settings->worlds != 1)
        return 0;
    char address[sizeof settings->address];
    find_address(settings, address);
    int status = address[0] == '\0' ? PHX_ERROR_IO
                                    : transfer_serve_new(settings->memory_dir, address, &ctx->server, error);
    if (status == 0)
        memcpy(ctx->settings.address, address, sizeof address);
    else if (status == PHX_ERROR_IO) /* the address is translated, or not known yet: listen at all */
        status = transfer_serve_new(settings->memory_dir, NULL, &ctx->server, error);
    if (status != 0)
        return status;
    transfer_serve_library(ctx->server, settings->zstd_library);
    transfer_serve_quota(ctx->server, settings->peer_quota);
    return job_thread_start(ctx, serve, &ctx->server_thread, &ctx->server_started, error);
}

void job_serve_stop(struct phx_context *ctx)
{
    if (ctx->server_started) {
        transfer_serve_stop(ctx->server);
        pthread_join(ctx->server_thread, NULL);
    }
    ctx->server_started = false;
    transfer_serve_free(ctx->server);
    ctx->server = NULL;
}

struct transfer_self job_transfer_self(const struct phx_context *ctx)
{
    struct transfer_self self = {.gang = transfer_gang(ctx->settings.jobset),
                                 .attempt = ctx->attempt,
                                 .rank = ctx->settings.rank,
                                 .world = ctx->settings.world};
    memcpy(self.key, ctx->key, sizeof self.key);
    return self;
}

void job_own_place(const struct phx_context *ctx, struct rendezvous_name *name)
{
    name->machine = ctx->machine.id;
    name->rack = ctx->machine.rack;
    name->port = ctx->server != NULL ? transfer_serve_port(ctx->server) : 0;
}

/* ---- the buddy ---- */

static uint32_t find_buddy(const struct phx_context *ctx)
{
    uint32_t world = ctx->settings.world, buddy = MACHINE_NONE;
    struct machine *machines = malloc(world * sizeof *machines);
    for (uint32_t rank = 0; machines != NULL && rank < world; rank++)
        machines[rank] = (struct machine){ctx->names[rank].machine, ctx->names[rank].rack};
    if (machines != NULL)
        buddy = machine_buddy(machines, world, ctx->settings.rank, ctx->settings.spread_racks);
    free(machines);
    return buddy;
}

bool job_peer_exists(struct phx_context *ctx)
{
    struct job_peer *peer = &ctx->keep.peer;
    if (!peer->looked)
        peer->buddy = find_buddy(ctx);
    peer->looked = true;
    return peer->buddy != MACHINE_NONE && ctx->names[peer->buddy].port != 0;
}

/* ---- sending ---- */

/* Names the checkpoint that the buddy may not overwrite. */
static void copy_to_keep(const struct phx_context *ctx, struct transfer_request *request)
{
    request->keep_attempt = UINT32_MAX;
    if (!held_last_copied(&ctx->keep.held, &request->keep_step, &request->keep_attempt) &&
        ctx->restore.valid) {
        request->keep_step = ctx->restore.step;
        request->keep_attempt = ctx->restore.attempt;
    }
}

/* Sends copies uncompressed from now on, and keeps the reason for the next caller. Mutex held. */
static void give_up_packing(struct job_peer *peer, const char *reason)
{
    peer->unpacked = true;
    snprintf(peer->notice, sizeof peer->notice, "copies to other machines are not compressed: %.150s",
             reason);
}

static int send_slot(const struct transfer_peer *to, const struct transfer_request *request,
                     const uint8_t *data, struct delta_history *history, struct phx_error *error)
{
    uint64_t sent;
    return request->type == TRANSFER_DELTA ? transfer_put_delta(to, request, data, history, &sent, error)
                                           : transfer_put(to, request, data, error);
}

static void push(struct phx_context *ctx)
{
    struct job_peer *peer = &ctx->keep.peer;
    const struct held_slot *slot = &ctx->keep.held.slots[peer->sending];
    const struct rendezvous_name *buddy = &ctx->names[peer->buddy];
    struct transfer_peer to = {.address = buddy->address,
                               .port = buddy->port,
                               .rate = ctx->settings.peer_rate,
                               .stop = &peer->stop,
                               .prove = ctx->settings.peer_prove,
                               .pack = peer->unpacked ? NULL : peer->pack};
    struct transfer_request request = {.type = ctx->settings.peer_delta ? TRANSFER_DELTA : TRANSFER_PUT,
                                       .self = job_transfer_self(ctx),
                                       .offer = {.step = slot->step,
                                                 .attempt = slot->attempt,
                                                 .rank = ctx->settings.rank,
                                                 .world = ctx->settings.world,
                                                 .key = slot->key,
                                                 .len = slot->len,
                                                 .crc = slot->data_crc,
                                                 .place = OFFER_COPY}};
    const uint8_t *data = held_data(&ctx->keep.held, peer->sending);
    copy_to_keep(ctx, &request);
    pthread_mutex_unlock(&ctx->mutex);
    struct phx_error error;
    int status = send_slot(&to, &request, data, &peer->history, &error);
    bool refused = status == PHX_ERROR_INVALID && to.pack != NULL; /* the peer has no zstd */
    to.pack = NULL;
    if (refused)
        status = send_slot(&to, &request, data, &peer->history, NULL);
    pthread_mutex_lock(&ctx->mutex);
    if (refused)
        give_up_packing(peer, "the other machine has no zstd");
    job_peer_done(ctx, request.offer.step, status == 0);
}

void job_peer_done(struct phx_context *ctx, uint64_t step, bool there)
{
    ctx->keep.peer.sending = -1;
    job_member_send(
        ctx, &(struct rendezvous_message){.type = RENDEZVOUS_COPIED, .number = step, .status = !there});
    job_changed(ctx);
}

static void *serve_pushes(void *argument)
{
    struct phx_context *ctx = argument;
    struct job_keep *keep = &ctx->keep;
    const struct job_settings *settings = &ctx->settings;
    struct phx_error error;
    int status = 0;
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19); /* of this thread alone */
    if (settings->peer_zstd > 0)
        status = pack_open(settings->zstd_library, (int)settings->peer_zstd, &keep->peer.pack, &error);
    pthread_mutex_lock(&ctx->mutex);
    if (status != 0)
        give_up_packing(&keep->peer, error.message);
    while (!keep->stop) {
        if (keep->state == KEEP_IDLE && keep->peer.sending >= 0 &&
            keep->held.slots[keep->peer.sending].sealed)
            push(ctx);
        else
            job_wait_apart(ctx, JOB_NEVER);
    }
    pthread_mutex_unlock(&ctx->mutex);
    return NULL;
}

int job_peer_start(struct phx_context *ctx, struct phx_error *error)
{
    struct job_peer *peer = &ctx->keep.peer;
    return job_thread_start(ctx, serve_pushes, &peer->thread, &peer->thread_started, error);
}

void job_peer_stop(struct phx_context *ctx)
{
    struct job_peer *peer = &ctx->keep.peer;
    atomic_store(&peer->stop, true);
    if (peer->thread_started)
        pthread_join(peer->thread, NULL);
    peer->thread_started = false;
    delta_forget(&peer->history);
    pack_close(peer->pack);
    peer->pack = NULL;
}

void job_peer_told(struct phx_context *ctx, uint64_t step, bool all)
{
    struct job_peer *peer = &ctx->keep.peer;
    peer->any_told = true;
    peer->told = step;
    if (all) {
        peer->any_by_all = true;
        peer->by_all = step;
        if (ctx->keep.open)
            held_copied(&ctx->keep.held, step, ctx->attempt);
    }
    job_changed(ctx);
}

/* Reports the notice once, without a failure. */
static void tell_notice(struct job_peer *peer, struct phx_error *error)
{
    if (peer->notice[0] == '\0' || error == NULL)
        return;
    job_fail(error, 0, "%s", peer->notice);
    peer->notice[0] = '\0';
}

int phx_checkpoint_copied(phx_context *ctx, uint64_t step, int64_t timeout_ms, struct phx_error *error)
{
    int64_t deadline_ns = job_deadline_ns(timeout_ms);
    int status = 0;
    pthread_mutex_lock(&ctx->mutex);
    enum phx_phase phase = job_pace_phase(&ctx->pace, PHX_PHASE_SAVE, job_now_ns());
    const struct job_peer *peer = &ctx->keep.peer;
    if (!job_peer_exists(ctx))
        status = job_fail(error, PHX_ERROR_INVALID, "no other machine of the job can keep a copy");
    while (status == 0 && !(peer->any_by_all && peer->by_all >= step)) {
        status = job_failure(ctx, error);
        if (status == 0 && !job_wait(ctx, deadline_ns))
            status = job_fail(error, PHX_ERROR_TIMEOUT,
                              "not every rank's copy of step %llu has arrived at its peer",
                              (unsigned long long)step);
    }
    if (status == 0)
        tell_notice(&ctx->keep.peer, error);
    job_pace_phase(&ctx->pace, phase, job_now_ns());
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}
