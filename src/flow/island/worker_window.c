/* Limits the bytes of moving shards that are in memory at a time.
 *
 * A saved shard counts from the start of its load until it is in memory here for good, or its new host has
 * confirmed its arrival. Loads wait in the order of their requests until they fit the window; a shard that is
 * larger than the window moves alone. Bytes sent to a host that is lost, or whose connection broke, no longer
 * count, because no confirmation will arrive. Nor does a shard count without a confirmation for
 * WORKER_SENT_NS, so that an unreachable host does not delay others. */
#include "flow/island/worker.h"

void window_await_load(struct worker *worker, uint32_t client, struct cell *cell)
{
    CHECK(cell->home == CELL_SAVED);
    cell->home = CELL_QUEUED;
    vec_push(&worker->window.loads, ((struct worker_transfer){client, cell_ref(cell)}));
}

void window_loaded(struct worker *worker, uint64_t bytes)
{
    CHECK(worker->window.bytes >= bytes);
    worker->window.bytes -= bytes;
    worker->window.loading--;
}

/* Returns a shard of the same load that is in flight; NULL if there is none. */
static struct worker_sent *window_find(struct worker *worker, uint64_t load)
{
    for (size_t i = 0; i < worker->window.sent.len; i++)
        if (worker->window.sent.items[i].load == load)
            return &worker->window.sent.items[i];
    return NULL;
}

void window_sent(struct worker *worker, const struct worker_move *move, uint64_t load, uint64_t bytes)
{
    struct worker_sent sent = {move->to, move->shard, move->handle, load, bytes, worker->now_ns};
    if (window_find(worker, load))
        sent.bytes = 0;
    vec_push(&worker->window.sent, sent);
    worker->window.bytes += sent.bytes;
}

static void window_forget(struct worker *worker, size_t i)
{
    struct worker_sent gone = worker->window.sent.items[i];
    vec_remove(&worker->window.sent, i);
    struct worker_sent *other = window_find(worker, gone.load);
    if (other)
        other->bytes += gone.bytes;
    else
        worker->window.bytes -= gone.bytes;
}

void window_arrived(struct worker *worker, uint32_t host, const struct flow_entry *entry)
{
    for (size_t i = 0; i < worker->window.sent.len; i++) {
        const struct worker_sent *sent = &worker->window.sent.items[i];
        if (sent->to != host || sent->handle != entry->handle || sent->shard != entry->node)
            continue;
        window_forget(worker, i);
        return;
    }
}

void window_host_lost(struct worker *worker, uint32_t host)
{
    for (size_t i = worker->window.sent.len; i-- > 0;)
        if (worker->window.sent.items[i].to == host)
            window_forget(worker, i);
}

void window_head_lost(struct worker *worker)
{
    while (worker->window.sent.len > 0)
        window_forget(worker, worker->window.sent.len - 1);
}

void window_tick(struct worker *worker)
{
    for (size_t i = worker->window.sent.len; i-- > 0;)
        if (worker->now_ns - worker->window.sent.items[i].since_ns >= WORKER_SENT_NS)
            window_forget(worker, i);
}

/* Removes a load from the queue, and drops the moves that wait for its cell. */
static void window_drop_load(struct worker *worker, size_t i)
{
    struct worker_transfer load = worker->window.loads.items[i];
    vec_remove(&worker->window.loads, i);
    load.cell->home = CELL_SAVED;
    cell_drop_moves(worker, load.cell);
    cell_unref(worker, load.cell);
}

void window_drop_loads(struct worker *worker, const struct worker_client *client)
{
    for (size_t i = worker->window.loads.len; i-- > 0;)
        if (!client || worker->window.loads.items[i].client == client->id)
            window_drop_load(worker, i);
}

static bool window_has_room(const struct worker_window *window, uint64_t bytes)
{
    size_t moving = window->loading + window->sent.len;
    return moving == 0 || (moving < WORKER_WINDOW_SHARDS && window->bytes < window->most &&
                           bytes <= window->most - window->bytes);
}

void window_go(struct worker *worker, struct flow_effects *effects)
{
    struct worker_window *window = &worker->window;
    size_t begun = 0;
    while (begun < window->loads.len) {
        struct worker_transfer load = window->loads.items[begun];
        uint64_t bytes = load.cell->saved_bytes;
        if (!window_has_room(window, bytes))
            break;
        begun++;
        window->loading++;
        window->bytes += bytes;
        worker_load(worker, load.client, load.cell, effects);
        cell_unref(worker, load.cell);
    }
    if (begun == 0)
        return;
    window->loads.len -= begun;
    memmove(window->loads.items, window->loads.items + begun,
            window->loads.len * sizeof *window->loads.items);
}
