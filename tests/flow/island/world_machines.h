/* world_machines.h - head and workers of the world: channels, effects, the scheduler. */
#ifndef PHX_TESTS_FLOW_ISLAND_WORLD_MACHINES_H
#define PHX_TESTS_FLOW_ISLAND_WORLD_MACHINES_H

#include "flow/island/world.h"

void world_post(struct world *world, uint32_t from, uint32_t to, const struct flow_entry *entry,
                struct str tail)
{
    struct world_channel *channel = &world->channels[from][to];
    if (channel->first < channel->queue.len && rng_below(&world->rng, 2) == 0 &&
        entry_join(&vec_last(&channel->queue).entry, entry)) /* as hosts do */
        return;
    struct world_message message = {.entry = *entry};
    message.entry.tail_bytes = (uint32_t)tail.len;
    buf_add_str(&message.tail, tail);
    if (to == 0 && !world->connected[from]) /* to a head that is dead */
        buf_done(&message.tail);
    else
        vec_push(&channel->queue, message);
}

/* A connection to the head that lives. */
static void world_open(struct world *world, uint32_t end);

static void world_head_feed(struct world *world, struct flow_event *event)
{
    event->now_ns = world->now_ns;
    head_step(world->head, event, &world->effects);
    uint64_t launch[4] = {0};
    for (size_t i = 0; i < world->effects.list.len; i++) {
        const struct flow_effect *effect = &world->effects.list.items[i];
        uint32_t to = (uint32_t)effect->peer;
        if (effect->kind == FLOW_CLOSE) { /* a worker whose number another one has by now */
            CHECK(to <= WORLD_WORKERS_MAX && world->head_deaths > 0);
            world->refused++;
            continue;
        }
        CHECK(effect->kind == FLOW_SEND);
        if (effect->entry.kind == ENTRY_LAUNCH) { /* tickets follow one another without a gap */
            uint32_t island = (to - 1) % 2;
            bool same =
                effect->entry.ticket == world->tickets[island] && launch[island] == effect->entry.launch;
            CHECK(same || effect->entry.ticket == world->tickets[island] + 1);
            world->tickets[island] = effect->entry.ticket;
            launch[island] = effect->entry.launch;
        }
        if (effect->entry.kind == ENTRY_WELCOME && to <= WORLD_WORKERS_MAX && !effect->entry.flags) {
            struct world_worker *worker = &world->workers[to - 1];
            worker->host = effect->entry.node;
            worker->birth = effect->entry.args[1];
            world->host_end[worker->host] = to;
        }
        world_post(world, 0, to, &effect->entry, buf_str(&effect->tail));
    }
    flow_effects_clear(&world->effects);
}

static uint32_t world_end_of_host(const struct world *world, uint32_t host)
{
    CHECK(host < WORLD_WORKERS_MAX * 2 && world->host_end[host] != 0);
    return world->host_end[host];
}

/* The end of the worker of that birth; 0: it is dead. */
static uint32_t world_end_of_birth(const struct world *world, uint64_t birth)
{
    for (uint32_t w = 0; w < world->worker_count && birth; w++)
        if (world->workers[w].alive && world->workers[w].birth == birth)
            return world_worker_end(w);
    return 0;
}

static uint32_t world_end_of_peer(const struct world *world, uint64_t peer)
{
    uint32_t number = (uint32_t)peer;
    if (peer == PEER_HEAD)
        return 0;
    if (peer == peer_host(number))
        return world_end_of_host(world, number);
    if (peer == peer_guest(number))
        return number;
    for (uint32_t c = 0; c < world->client_count; c++)
        if (world->clients[c].id == number)
            return world_client_end(c);
    CHECK_UNREACHABLE();
}

static bool world_same_run(const struct run_id *a, const struct run_id *b)
{
    return a->client == b->client && a->launch == b->launch && a->node == b->node;
}

static void world_start_run(struct world *world, struct world_worker *worker, struct flow_effect *effect)
{
    struct world_run *run = &worker->runs[effect->device];
    CHECK(!run->busy && effect->arg_count == 1);
    *run = (struct world_run){.busy = true, .id = effect->run, .gang_count = effect->gang_count};
    run->function = (uint64_t)(uintptr_t)effect->executable;
    run->arg = tensor_ref(effect->args[0]);
    for (size_t i = 0; i < worker->aborts.len && run->function == WORLD_MEETS; i++)
        if (world_same_run(&worker->aborts.items[i].id, &run->id) ||
            (worker->aborts.items[i].id.node == UINT32_MAX &&
             worker->aborts.items[i].id.launch == run->id.launch &&
             worker->aborts.items[i].id.client == run->id.client)) {
            run->aborted = true;
            run->fault = worker->aborts.items[i].fault;
        }
    if (run->function != WORLD_MEETS)
        return;
    for (size_t i = 0; i < world->gangs.len; i++)
        if (world_same_run(&world->gangs.items[i].id, &run->id)) {
            world->gangs.items[i].come++;
            return;
        }
    vec_push(&world->gangs, ((struct world_gang){run->id, 1}));
}

static void world_abort(struct world_worker *worker, const struct flow_effect *effect)
{
    vec_push(&worker->aborts, ((struct world_abort){effect->run, effect->fault}));
    for (uint32_t d = 0; d < worker->devices; d++) {
        struct world_run *run = &worker->runs[d];
        bool all = effect->run.node == UINT32_MAX && run->id.launch == effect->run.launch &&
                   run->id.client == effect->run.client;
        if (run->busy && run->function == WORLD_MEETS && (all || world_same_run(&run->id, &effect->run))) {
            run->aborted = true;
            run->fault = effect->fault;
        }
    }
}

static void world_forget(struct world_worker *worker, const struct run_id *run)
{
    for (size_t i = 0; i < worker->aborts.len;)
        if (worker->aborts.items[i].id.client == run->client &&
            worker->aborts.items[i].id.launch == run->launch)
            vec_remove(&worker->aborts, i);
        else
            i++;
}

static void world_worker_send(struct world *world, uint32_t w, const struct flow_effect *effect)
{
    uint32_t to = world_end_of_peer(world, effect->peer);
    struct buf whole = {0};
    buf_add_str(&whole, buf_str(&effect->tail));
    if (effect->payload)
        buf_add(&whole, effect->payload->data, (size_t)ir_type_bytes(&effect->payload->type));
    bool dead = to > 0 && to <= WORLD_WORKERS_MAX ? !world->workers[to - 1].alive
                                                  : to && !world->clients[to - 1 - WORLD_WORKERS_MAX].alive;
    if (!dead)
        world_post(world, world_worker_end(w), to, &effect->entry, buf_str(&whole));
    buf_done(&whole);
}

/* A launch comes to a worker: none of its arguments is spilled there. */
static void world_use_begins(struct world_worker *worker, const struct flow_entry *entry)
{
    struct world_use use = {.client = entry->client, .launch = entry->launch, .count = entry->count};
    CHECK(entry->count <= 2);
    for (uint32_t i = 0; i < entry->count; i++) {
        use.args[i] = entry->args[i];
        CHECK(!worker_has_spilled(worker->worker, use.args[i]));
    }
    vec_push(&worker->uses, use);
}

static void world_use_ends(struct world_worker *worker, const struct flow_entry *done)
{
    for (size_t i = 0; i < worker->uses.len; i++)
        if (worker->uses.items[i].client == done->client && worker->uses.items[i].launch == done->launch) {
            vec_remove(&worker->uses, i);
            return;
        }
}

/* SPILL comes to a worker: no launch that has come before uses the values. */
static void world_check_spill(struct world *world, const struct world_worker *worker, struct str tail)
{
    for (size_t i = 0; i + 8 <= tail.len; i += 8) {
        uint64_t handle;
        memcpy(&handle, tail.data + i, sizeof handle);
        for (size_t u = 0; u < worker->uses.len; u++)
            for (uint32_t k = 0; k < worker->uses.items[u].count; k++)
                CHECK(worker->uses.items[u].args[k] != handle);
        world->spills++;
    }
}

/* Checks that what is being loaded or is on its way to other hosts stays within the window. */
static void world_check_window(const struct world_worker *worker)
{
    int64_t loads = 0;
    for (size_t i = 0; i < worker->transfers.len; i++)
        if (worker->transfers.items[i].saved)
            loads += ir_type_bytes(&worker->transfers.items[i].saved->type);
    CHECK(loads <= WORLD_WINDOW && worker_count(worker->worker).moving_bytes <= WORLD_WINDOW);
}

static void world_worker_feed(struct world *world, uint32_t w, struct flow_event *event)
{
    struct world_worker *worker = &world->workers[w];
    struct flow_effects effects = {0};
    worker_step(worker->worker, event, &effects);
    for (size_t i = 0; i < effects.list.len; i++) {
        struct flow_effect *effect = &effects.list.items[i];
        switch (effect->kind) {
        case FLOW_SEND:
            if (effect->entry.kind == ENTRY_DONE)
                world_use_ends(worker, &effect->entry);
            world_worker_send(world, w, effect);
            break;
        case FLOW_BIND:
            worker->bound[world_end_of_peer(world, effect->peer)] = effect->as;
            worker->held[world_end_of_peer(world, effect->peer)] = false;
            break;
        case FLOW_CLOSE:
        case FLOW_MEET:
        case FLOW_DROP:
            break;
        case FLOW_COMPILE:
            vec_push(&worker->compiles, ((struct world_compile){effect->handle, effect->as}));
            break;
        case FLOW_RUN:
            world_start_run(world, worker, effect);
            break;
        case FLOW_ABORT:
            world_abort(worker, effect);
            break;
        case FLOW_FORGET:
            world_forget(worker, &effect->run);
            break;
        case FLOW_SAVE:
            vec_push(&worker->transfers,
                     ((struct world_transfer){effect->handle, tensor_ref(effect->payload), NULL}));
            break;
        case FLOW_LOAD:
            vec_push(&worker->transfers, ((struct world_transfer){effect->handle, NULL, effect->executable}));
            break;
        case FLOW_EVICT:
            CHECK(effect->payload);
            break;
        case FLOW_SCRAP:
            CHECK(worker->saved > 0);
            worker->saved--;
            tensor_unref(effect->executable);
            break;
        }
    }
    flow_effects_done(&effects);
    world_check_window(worker);
}

static bool world_run_can_end(const struct world *world, const struct world_run *run)
{
    if (!run->busy || run->function != WORLD_MEETS || run->aborted)
        return run->busy;
    for (size_t i = 0; i < world->gangs.len; i++)
        if (world_same_run(&world->gangs.items[i].id, &run->id))
            return world->gangs.items[i].come == run->gang_count;
    return false;
}

static void world_end_run(struct world *world, uint32_t w, uint32_t d)
{
    struct world_run run = world->workers[w].runs[d];
    world->workers[w].runs[d].busy = false;
    struct flow_event event = {.kind = FLOW_RAN, .device = d, .run = run.id, .device_ns = 1000};
    struct fault fault = run.fault;
    struct tensor *result = NULL;
    if (!run.aborted && run.function == WORLD_FAILS && rng_chance(&world->rng, 200000))
        fault = fault_make(FAULT_FUNCTION_FAILED, run.id.launch, run.id.node, "by chance");
    if (fault.reason == FAULT_NONE) {
        result = tensor_new(&run.arg->type);
        for (int64_t i = 0; i < ir_type_elements(&run.arg->type); i++)
            ((int32_t *)result->data)[i] = ((const int32_t *)run.arg->data)[i] + 1;
        event.results = &result;
        event.result_count = 1;
    } else {
        event.fault = &fault;
    }
    tensor_unref(run.arg);
    world_worker_feed(world, w, &event);
}

static struct tensor *world_copy(const struct tensor *tensor)
{
    struct tensor *copy = tensor_new(&tensor->type);
    memcpy(copy->data, tensor->data, (size_t)ir_type_bytes(&tensor->type));
    return copy;
}

/* A save or load is over; now and then it fails. */
static void world_end_transfer(struct world *world, uint32_t w)
{
    struct world_worker *worker = &world->workers[w];
    size_t i = rng_below(&world->rng, worker->transfers.len);
    struct world_transfer transfer = worker->transfers.items[i];
    vec_remove(&worker->transfers, i);
    struct flow_event event = {.kind = transfer.saved ? FLOW_LOADED : FLOW_SAVED, .handle = transfer.number};
    struct fault fault = fault_make(FAULT_CANCELLED, 0, 0, "the disk, by chance");
    struct tensor *loaded = NULL;
    bool fails = rng_chance(&world->rng, 3000) && !(world->calm && transfer.saved);
    if (fails) {
        fault.lost = true;
        event.fault = &fault;
    } else if (transfer.saved) {
        loaded = world_copy(transfer.saved);
        event.results = &loaded;
        event.result_count = 1;
    } else {
        event.executable = world_copy(transfer.tensor);
        worker->saved++;
    }
    tensor_unref(transfer.tensor);
    world_worker_feed(world, w, &event);
}

static void world_open(struct world *world, uint32_t end)
{
    world->connected[end] = true;
    world_head_feed(
        world, &(struct flow_event){.kind = FLOW_OPENED, .peer = end, .token = rng_next(&world->rng) | 1});
}

static void world_add_worker(struct world *world)
{
    uint32_t w = world->worker_count++;
    char address[32];
    snprintf(address, sizeof address, "host-%u", w % 6);
    struct world_worker *worker = &world->workers[w];
    *worker = (struct world_worker){.alive = true, .host = UINT32_MAX};
    worker->devices = (uint32_t)rng_range(&world->rng, 1, 4);
    worker->worker = worker_new(w % 2 ? "odd" : "even", address, worker->devices, world->device_bytes);
    worker_set_host_memory(worker->worker, world->host_bytes);
    worker_set_window(worker->worker, WORLD_WINDOW);
    world_open(world, world_worker_end(w));
    world_worker_feed(world, w, &(struct flow_event){.kind = FLOW_OPENED, .peer = PEER_HEAD});
}

/* A tenant of its own for each client. */
static struct str world_client_name(uint32_t c, char text[16])
{
    return (struct str){text, (size_t)snprintf(text, 16, "client-%u", c)};
}

static void world_add_client(struct world *world)
{
    uint32_t c = world->client_count++;
    struct world_client *client = &world->clients[c];
    *client = (struct world_client){.alive = true, .epoch = 1};
    world_open(world, world_client_end(c));
    struct flow_entry hello = {.kind = ENTRY_HELLO_CLIENT, .node = 0x80000000u};
    hello.count = (uint16_t)rng_range(&world->rng, 1, 4);
    world_post(world, world_client_end(c), 0, &hello, world_client_name(c, (char[16]){0}));
}

/* The watcher comes, or comes back to another head. */
static void world_add_watcher(struct world *world)
{
    world->asked = false;
    world_open(world, WORLD_WATCHER);
    world_post(world, WORLD_WATCHER, 0, &(struct flow_entry){.kind = ENTRY_HELLO_WATCH}, (struct str){0});
}

void world_suspend(struct world *world, uint32_t c, bool resume)
{
    struct flow_entry entry = {.kind = resume ? ENTRY_RESUME : ENTRY_SUSPEND};
    entry.args[0] = UINT64_C(1000000000) * (resume ? 0 : rng_range(&world->rng, 1, 20));
    world->asked = true;
    world_post(world, WORLD_WATCHER, 0, &entry, world_client_name(c, (char[16]){0}));
}

static void world_watcher_took(struct world *world, const struct flow_entry *entry)
{
    bool failed = (entry->flags & ENTRY_IS_FAILED) != 0;
    world->asked = world->asked && entry->kind == ENTRY_WELCOME;
    if (entry->kind == ENTRY_SUSPEND)
        *(failed ? &world->not_suspended : &world->suspended) += 1;
    else if (entry->kind == ENTRY_RESUME)
        *(failed ? &world->not_resumed : &world->resumed) += 1;
}

/* Bytes on their way from `end` may still arrive, or their tail is lost; to `end` nothing arrives. */
static void world_cut(struct world *world, uint32_t end)
{
    for (uint32_t other = 0; other < WORLD_ENDS; other++) {
        struct world_channel *out = &world->channels[end][other], *in = &world->channels[other][end];
        size_t keep = out->queue.len > out->first
                          ? out->first + rng_below(&world->rng, out->queue.len - out->first + 1)
                          : out->queue.len;
        while (out->queue.len > keep)
            buf_done(&vec_last(&out->queue).tail), out->queue.len--;
        for (; in->first < in->queue.len; in->first++)
            buf_done(&in->queue.items[in->first].tail);
        if (other == 0 && world->connected[end])
            vec_push(&out->queue, ((struct world_message){.closed = true}));
    }
}

/* Drops what is in a channel from message `keep` on. */
static void world_drop(struct world_channel *channel, size_t keep)
{
    while (channel->queue.len > keep)
        buf_done(&vec_last(&channel->queue).tail), channel->queue.len--;
}

static void world_new_head(struct world *world)
{
    struct head_options options = {.window = (uint32_t)rng_range(&world->rng, 1, 20)};
    options.secret = rng_next(&world->rng) | 1;
    options.first_client = (uint32_t)rng_below(&world->rng, ENTRY_CLIENTS_MAX / 2);
    world->head = head_new(&options);
    memset(world->tickets, 0, sizeof world->tickets);
}

/* kill -9 of the head, and another one in its place. Nothing more comes to the old one; of what is on its way
 * from it the tail is lost. */
static void world_kill_head(struct world *world)
{
    world->head_deaths++;
    head_free(world->head);
    for (uint32_t end = 1; end < WORLD_ENDS; end++) {
        struct world_channel *in = &world->channels[end][0], *out = &world->channels[0][end];
        world_drop(in, in->first);
        if (!world->connected[end])
            continue;
        world_drop(out, out->queue.len > out->first
                            ? out->first + rng_below(&world->rng, out->queue.len - out->first + 1)
                            : out->queue.len);
        vec_push(&out->queue, ((struct world_message){.closed = true}));
        world->connected[end] = false;
    }
    world_new_head(world);
}

static void world_disk_done(struct world *world, struct world_worker *worker)
{
    for (size_t i = 0; i < worker->transfers.len; i++)
        tensor_unref(worker->transfers.items[i].tensor);
    vec_done(&worker->transfers);
    CHECK(worker->saved == 0);
}

static void world_kill_worker(struct world *world, uint32_t w)
{
    struct world_worker *worker = &world->workers[w];
    worker->alive = false;
    world->kills++;
    for (uint32_t d = 0; d < worker->devices; d++)
        if (worker->runs[d].busy)
            tensor_unref(worker->runs[d].arg);
    struct flow_effects effects = {0};
    worker_free(worker->worker, &effects);
    for (size_t i = 0; i < effects.list.len; i++)
        if (effects.list.items[i].kind == FLOW_SCRAP) {
            tensor_unref(effects.list.items[i].executable);
            worker->saved--;
        }
    flow_effects_done(&effects);
    world_disk_done(world, worker);
    vec_done(&worker->compiles);
    vec_done(&worker->aborts);
    vec_done(&worker->uses);
    world_cut(world, world_worker_end(w));
}

static void world_client_done(struct world_client *client)
{
    client->alive = false;
    for (size_t i = 0; i < client->programs.len; i++)
        buf_done(&client->programs.items[i].text);
    vec_done(&client->meshes);
    vec_done(&client->values);
    vec_done(&client->programs);
}

void world_kill_client(struct world *world, uint32_t c)
{
    world->client_deaths++;
    world_client_done(&world->clients[c]);
    world_cut(world, world_client_end(c));
}

/* A worker or client sees the end of its head, and goes to the next one. */
static void world_lose_head(struct world *world, uint32_t end)
{
    struct flow_event event = {.kind = FLOW_CLOSED, .peer = PEER_HEAD};
    if (end == WORLD_WATCHER) {
        world_add_watcher(world);
    } else if (end <= WORLD_WORKERS_MAX) {
        world->workers[end - 1].ticket = 0;
        vec_clear(&world->workers[end - 1].uses); /* over before it greets another head */
        world_worker_feed(world, end - 1, &event);
        world_open(world, end);
        event.kind = FLOW_OPENED;
        world_worker_feed(world, end - 1, &event);
    } else {
        world_open(world, end);
        world_client_lost_head(world, end - 1 - WORLD_WORKERS_MAX);
    }
}

/* A connection between two that live breaks; what is on its way may still arrive, or its tail is lost. */
static void world_break(struct world *world, uint32_t from, uint32_t to)
{
    struct world_channel *out = &world->channels[from][to];
    size_t len = out->queue.len;
    world_drop(out, len > out->first ? out->first + rng_below(&world->rng, len - out->first + 1) : len);
    vec_push(&out->queue, ((struct world_message){.closed = true}));
    world->breaks++;
    if (from > WORLD_WORKERS_MAX) {
        world_drop(&world->channels[to][from], world->channels[to][from].first);
        world_client_lost_worker(world, from - 1 - WORLD_WORKERS_MAX, to - 1);
        return;
    }
    struct flow_event event = {.kind = FLOW_CLOSED, .peer = peer_host(world->workers[to - 1].host)};
    world_worker_feed(world, from - 1, &event);
}

static void world_see_break(struct world *world, uint32_t from, uint32_t to)
{
    struct world_worker *worker = &world->workers[to - 1];
    struct flow_event event = {.kind = FLOW_CLOSED, .peer = peer_guest(from)};
    if (from <= WORLD_WORKERS_MAX)
        event.peer = peer_host(world->workers[from - 1].host);
    else if (worker->bound[from])
        event.peer = worker->bound[from];
    worker->bound[from] = 0;
    worker->held[from] = false;
    world_worker_feed(world, to - 1, &event);
}

static void world_hurt_connection(struct world *world, uint32_t w, uint32_t c)
{
    uint32_t v = (uint32_t)rng_below(&world->rng, world->worker_count);
    const struct world_client *client = &world->clients[c];
    if (!world->workers[w].alive || world->workers[w].host == UINT32_MAX)
        return;
    if (rng_below(&world->rng, 2)) {
        if (client->alive && client->knows[w])
            world_break(world, world_client_end(c), world_worker_end(w));
    } else if (v != w && world->workers[v].alive && world->workers[v].host != UINT32_MAX) {
        world_break(world, world_worker_end(v), world_worker_end(w));
    }
}

static void world_deliver(struct world *world, uint32_t from, uint32_t to)
{
    struct world_channel *channel = &world->channels[from][to];
    struct world_message message = channel->queue.items[channel->first++];
    if (channel->first == channel->queue.len) {
        vec_clear(&channel->queue);
        channel->first = 0;
    }
    struct str tail = buf_str(&message.tail);
    if (to == 0) {
        struct flow_event event = {.kind = message.closed ? FLOW_CLOSED : FLOW_ENTRY, .peer = from};
        event.entry = &message.entry;
        event.tail = tail;
        world_head_feed(world, &event);
    } else if (message.closed && from == 0) {
        world_lose_head(world, to);
    } else if (message.closed) {
        world_see_break(world, from, to);
    } else if (from == 0 && message.entry.kind == ENTRY_WELCOME && message.entry.flags) {
        world_kill_worker(world, to - 1); /* as its process ends */
    } else if (to <= WORLD_WORKERS_MAX) {
        struct world_worker *worker = &world->workers[to - 1];
        struct flow_event event = {.kind = FLOW_ENTRY, .entry = &message.entry, .tail = tail};
        event.peer = from == 0                   ? PEER_HEAD
                     : from <= WORLD_WORKERS_MAX ? peer_host(world->workers[from - 1].host)
                     : worker->bound[from]       ? worker->bound[from]
                                                 : peer_guest(from);
        if (event.peer == peer_guest(from))
            worker->held[from] = true;
        if (from == 0 && message.entry.kind == ENTRY_LAUNCH) {
            CHECK(message.entry.ticket > worker->ticket);
            worker->ticket = message.entry.ticket;
            world_use_begins(worker, &message.entry);
        }
        if (from == 0 && message.entry.kind == ENTRY_SPILL)
            world_check_spill(world, worker, tail);
        world->fills += from == 0 && message.entry.kind == ENTRY_FILL;
        world_worker_feed(world, to - 1, &event);
    } else if (to == WORLD_WATCHER) {
        world_watcher_took(world, &message.entry);
    } else {
        world_client_took(world, to - 1 - WORLD_WORKERS_MAX, &message.entry, tail);
    }
    buf_done(&message.tail);
}

/* Whether something waits on the way, and may be delivered now. */
static bool world_may_deliver(const struct world *world, uint32_t from, uint32_t to)
{
    const struct world_channel *channel = &world->channels[from][to];
    if (channel->first == channel->queue.len)
        return false;
    if (to == 0 || to == WORLD_WATCHER)
        return true;
    if (to <= WORLD_WORKERS_MAX)
        return world->workers[to - 1].alive &&
               (!world->workers[to - 1].held[from] || channel->queue.items[channel->first].closed);
    return world->clients[to - 1 - WORLD_WORKERS_MAX].alive;
}

struct world_choice {
    enum { DELIVER, RUN_ENDS, COMPILED, TRANSFER_ENDS } what;
    uint32_t a, b;
};

static void world_choices(const struct world *world, struct world_choice *list, size_t *count)
{
    for (uint32_t from = 0; from < WORLD_ENDS; from++)
        for (uint32_t to = 0; to < WORLD_ENDS; to++)
            if (world_may_deliver(world, from, to))
                list[(*count)++] = (struct world_choice){DELIVER, from, to};
    for (uint32_t w = 0; w < world->worker_count; w++) {
        const struct world_worker *worker = &world->workers[w];
        for (uint32_t d = 0; worker->alive && d < worker->devices; d++)
            if (world_run_can_end(world, &worker->runs[d]))
                list[(*count)++] = (struct world_choice){RUN_ENDS, w, d};
        if (worker->alive && worker->compiles.len)
            list[(*count)++] = (struct world_choice){COMPILED, w, 0};
        if (worker->alive && worker->transfers.len)
            list[(*count)++] = (struct world_choice){TRANSFER_ENDS, w, 0};
    }
}

static void world_compiled(struct world *world, uint32_t w)
{
    struct world_worker *worker = &world->workers[w];
    struct world_compile compile = worker->compiles.items[0];
    vec_remove(&worker->compiles, 0);
    struct fault fault = fault_make(FAULT_FUNCTION_FAILED, 0, 0, "cannot be compiled");
    struct flow_event event = {.kind = FLOW_COMPILED, .handle = compile.order};
    event.executable = compile.function == WORLD_WRONG ? NULL : (void *)(uintptr_t)compile.function;
    event.fault = compile.function == WORLD_WRONG ? &fault : NULL;
    world_worker_feed(world, w, &event);
}

/* Suspends a client that runs, or resumes one that does not; now and then what makes no sense. */
static void world_suspend_any(struct world *world)
{
    uint32_t c = (uint32_t)rng_below(&world->rng, world->client_count);
    for (uint32_t tries = 0; tries < world->client_count && !world->clients[c].alive; tries++)
        c = (c + 1) % world->client_count;
    world_suspend(world, c, world->clients[c].suspended == (rng_below(&world->rng, 10) != 0));
}

static void world_hurt(struct world *world)
{
    uint32_t living = 0;
    for (uint32_t w = 0; w < world->worker_count; w++)
        living += world->workers[w].alive;
    uint64_t draw = rng_below(&world->rng, 1000);
    uint32_t w = (uint32_t)rng_below(&world->rng, world->worker_count);
    uint32_t c = (uint32_t)rng_below(&world->rng, world->client_count);
    if (draw < 23 && world->calm)
        return;
    if (draw < 4 && living > 2 && world->workers[w].alive && world->workers[w].host != UINT32_MAX)
        world_kill_worker(world, w);
    else if (draw < 10 && world->worker_count < WORLD_WORKERS_MAX && living < 6)
        world_add_worker(world);
    else if (draw < 12 && world->clients[c].alive)
        world_kill_client(world, c);
    else if (draw < 17 && world->client_count < WORLD_CLIENTS_MAX)
        world_add_client(world);
    else if (draw < 19 && world->kills_heads)
        world_kill_head(world);
    else if (draw < 23)
        world_hurt_connection(world, w, c);
    else if (world->clients[c].alive && draw < 400)
        world_client_act(world, c);
    else if (draw >= 970 && world->suspends && !world->asked)
        world_suspend_any(world);
}

bool world_step(struct world *world, bool hurt)
{
    static struct world_choice list[WORLD_ENDS * WORLD_ENDS + WORLD_WORKERS_MAX * 6];
    size_t count = 0;
    if (hurt)
        world_hurt(world);
    world_choices(world, list, &count);
    bool idle = count == 0;
    if (idle || rng_chance(&world->rng, 2000)) {
        world->now_ns += INT64_C(1000000000);
        world_head_feed(world, &(struct flow_event){.kind = FLOW_TICK});
    }
    if (idle) { /* launches may wait for memory, for 10 s at most */
        world_choices(world, list, &count);
        struct head_counts counts = head_count(world->head);
        world->idle = count > 0 ? 0 : world->idle + 1; /* and clients of a lost head for as long */
        return count > 0 || world->idle < (world->suspends ? 30 : 15) ||
               (counts.queued > 0 && world->now_ns < INT64_C(1000000) * 1000000000);
    }
    world->idle = 0;
    struct world_choice choice = list[rng_below(&world->rng, count)];
    if (choice.what == DELIVER)
        world_deliver(world, choice.a, choice.b);
    else if (choice.what == RUN_ENDS)
        world_end_run(world, choice.a, choice.b);
    else if (choice.what == TRANSFER_ENDS)
        world_end_transfer(world, choice.a);
    else
        world_compiled(world, choice.a);
    return true;
}

void world_begin(struct world *world, uint64_t seed, struct world_memory memory, int habits)
{
    memset(world, 0, sizeof *world);
    rng_seed(&world->rng, seed);
    world->device_bytes = memory.device;
    world->host_bytes = memory.host;
    world->kills_heads = habits & WORLD_KILLS_HEADS;
    world->suspends = habits & WORLD_SUSPENDS;
    world->calm = habits & WORLD_IS_CALM;
    world_new_head(world);
    for (int i = 0; i < 4; i++)
        world_add_worker(world);
    for (int i = 0; i < 3; i++)
        world_add_client(world);
    if (world->suspends)
        world_add_watcher(world);
}

void world_end(struct world *world)
{
    for (uint32_t w = 0; w < world->worker_count; w++)
        if (world->workers[w].alive)
            world_kill_worker(world, w);
    for (uint32_t a = 0; a < WORLD_ENDS; a++)
        for (uint32_t b = 0; b < WORLD_ENDS; b++) {
            struct world_channel *channel = &world->channels[a][b];
            for (; channel->first < channel->queue.len; channel->first++)
                buf_done(&channel->queue.items[channel->first].tail);
            vec_done(&channel->queue);
        }
    vec_done(&world->gangs);
    head_free(world->head);
    flow_effects_done(&world->effects);
}

#endif
