/* Shards of suspended clients: saved outside memory, loaded again, moved to other hosts.
 *
 * A cell is saved or loaded at most once at a time, even if several objects share it. A move waits while its
 * cell is being saved or loaded, or waits for the window (worker_window.c). Once the cell is in memory, this
 * host reports the shard to the head. A shard with a new host is sent there instead, and that host reports
 * it. */
#include "flow/island/worker.h"

/* Begins a transfer, and returns its number. */
static uint64_t transfer_begin(struct worker *worker, uint32_t client, struct cell *cell)
{
    if (worker->spare_transfers.len == 0) {
        vec_push(&worker->spare_transfers, (uint32_t)worker->transfers.len);
        vec_push(&worker->transfers, ((struct worker_transfer){0}));
    }
    uint32_t number = vec_pop(&worker->spare_transfers);
    worker->transfers.items[number] = (struct worker_transfer){client, cell_ref(cell)};
    return number;
}

/* Removes a transfer from the list; its reference to the cell passes to the caller. */
static struct worker_transfer transfer_end(struct worker *worker, uint64_t number)
{
    CHECK(number < worker->transfers.len && worker->transfers.items[number].cell);
    struct worker_transfer transfer = worker->transfers.items[number];
    worker->transfers.items[number].cell = NULL;
    vec_push(&worker->spare_transfers, (uint32_t)number);
    return transfer;
}

static void worker_tell_saved(struct worker_client *client, struct flow_effects *effects)
{
    struct flow_entry entry = {.kind = ENTRY_SAVE, .client = client->id, .epoch = client->suspension};
    entry.args[0] = client->saved_bytes;
    struct flow_effect *effect = flow_send(effects, PEER_HEAD, &entry);
    client->suspension = 0;
    if (client->save_fault.reason == FAULT_NONE)
        return;
    effect->entry.flags = ENTRY_IS_FAILED;
    fault_encode(&client->save_fault, &effect->tail);
}

/* SAVE: the head has ensured that the client's launches are over and its values whole. */
void worker_save(struct worker *worker, const struct flow_entry *entry, struct flow_effects *effects)
{
    struct worker_client *client = worker_client(worker, entry->client);
    if (!client || client->gone) {
        flow_send(effects, PEER_HEAD, entry);
        return;
    }
    client->suspension = entry->epoch;
    client->saved_bytes = 0;
    client->save_fault = (struct fault){0};
    for (size_t i = 0; i < client->object_list.len; i++) {
        const struct worker_object *object = client->object_list.items[i];
        for (size_t k = 0; k < object->shards.len; k++) {
            struct cell *cell = object->shards.items[k].cell;
            if (!cell->tensor || cell->home != CELL_IN_MEMORY)
                continue;
            struct flow_effect *save = flow_add(effects, FLOW_SAVE);
            save->handle = transfer_begin(worker, client->id, cell);
            save->payload = tensor_ref(cell->tensor);
            cell->home = CELL_SAVING;
            client->saves++;
        }
    }
    if (client->saves == 0)
        worker_tell_saved(client, effects);
}

void worker_load(struct worker *worker, uint32_t client, struct cell *cell, struct flow_effects *effects)
{
    struct flow_effect *load = flow_add(effects, FLOW_LOAD);
    load->handle = transfer_begin(worker, client, cell);
    load->executable = cell->saved;
    cell->home = CELL_LOADING;
}

/* Removes a shard from its object. The object ends with its last shard, unless SPILL has announced further
 * ones. */
static void worker_shard_leave(struct worker *worker, uint32_t client_id, uint64_t handle, uint32_t shard)
{
    struct worker_client *client = worker_client(worker, client_id);
    struct worker_object *object = worker_object(client, handle, false);
    for (size_t k = 0; object && k < object->shards.len; k++)
        if (object->shards.items[k].shard == shard) {
            cell_unref(worker, object->shards.items[k].cell);
            vec_remove(&object->shards, k);
            break;
        }
    if (object && object->shards.len == 0 && !object->spilled)
        worker_object_end(worker, client, object);
}

static void worker_send_moved(struct worker *worker, const struct worker_move *move, const struct cell *cell,
                              uint64_t load, struct flow_effects *effects)
{
    struct flow_entry entry = {.kind = ENTRY_MOVED, .handle = move->handle, .node = move->shard};
    entry.ticket = worker->secret;
    struct flow_effect *effect = flow_send(effects, peer_host(move->to), &entry);
    if (cell->fault) {
        effect->entry.flags = ENTRY_IS_FAILED;
        fault_encode(cell->fault, &effect->tail);
    } else {
        pack_type(&effect->tail, &cell->tensor->type);
        effect->payload = tensor_ref(cell->tensor);
        window_sent(worker, move, load, (uint64_t)ir_type_bytes(&cell->tensor->type));
    }
    worker_shard_leave(worker, move->client, move->handle, move->shard);
}

static void worker_tell_there(uint64_t handle, uint32_t shard, struct flow_effects *effects)
{
    struct flow_entry done = {.kind = ENTRY_PUT_DONE, .handle = handle, .node = shard};
    flow_send(effects, PEER_HEAD, &done);
}

static void move_add(struct cell *cell, const struct worker_move *move)
{
    struct worker_move *added = mem_alloc(sizeof *added);
    *added = *move;
    added->next = cell->moves;
    cell->moves = added;
    cell_ref(cell);
}

/* Removes the first move from the list at `at`. The caller frees it, and takes over its reference to the
 * cell. */
static struct worker_move *move_take(struct worker_move **at)
{
    struct worker_move *move = *at;
    *at = move->next;
    return move;
}

/* Continues the moves that wait for a cell. The caller holds a reference to the cell. */
static void worker_moves_pump(struct worker *worker, uint32_t client, struct cell *cell,
                              struct flow_effects *effects)
{
    if (cell->moves && cell->home == CELL_SAVED)
        window_await_load(worker, client, cell);
    uint64_t load = worker->window.next_load++;
    while (cell->moves && cell->home == CELL_IN_MEMORY) {
        struct worker_move *move = move_take(&cell->moves);
        if (move->to != worker->host)
            worker_send_moved(worker, move, cell, load, effects);
        else if (!move->quiet)
            worker_tell_there(move->handle, move->shard, effects);
        mem_free(move);
        cell_unref(worker, cell);
    }
}

void worker_saved(struct worker *worker, const struct flow_event *event, struct flow_effects *effects)
{
    struct worker_transfer transfer = transfer_end(worker, event->handle);
    struct worker_client *client = worker_client(worker, transfer.client);
    struct cell *cell = transfer.cell;
    CHECK(cell->home == CELL_SAVING && (event->executable != NULL) != (event->fault != NULL));
    uint64_t bytes = (uint64_t)ir_type_bytes(&cell->tensor->type);
    if (event->fault) {
        cell->home = CELL_IN_MEMORY;
    } else {
        cell->home = CELL_SAVED;
        cell->saved = event->executable;
        cell->saved_bytes = bytes;
        tensor_unref(cell->tensor);
        cell->tensor = NULL;
        worker->put_bytes -= cell->put_bytes;
        cell->put_bytes = 0;
    }
    worker_moves_pump(worker, transfer.client, cell, effects);
    cell_unref(worker, cell);
    if (!client || client->gone || client->saves == 0) /* a save of an earlier client with this number */
        return;
    client->saves--;
    client->saved_bytes += event->fault ? 0 : bytes;
    if (event->fault)
        client->save_fault = *event->fault;
    if (client->saves == 0 && client->suspension != 0)
        worker_tell_saved(client, effects);
}

void worker_loaded(struct worker *worker, const struct flow_event *event, struct flow_effects *effects)
{
    struct worker_transfer transfer = transfer_end(worker, event->handle);
    struct cell *cell = transfer.cell;
    CHECK(cell->home == CELL_LOADING);
    window_loaded(worker, cell->saved_bytes);
    vec_push(&worker->scraps, cell->saved);
    cell->saved = NULL;
    cell->home = CELL_IN_MEMORY;
    cell_settle(worker, cell, event->fault ? NULL : event->results[0], event->fault, effects);
    worker_moves_pump(worker, transfer.client, cell, effects);
    cell_unref(worker, cell);
}

/* Keeps a shard here in memory, without a report to the head. */
static void worker_shard_stay(struct worker *worker, const struct worker_client *client, uint64_t handle,
                              struct worker_shard shard, struct flow_effects *effects)
{
    struct cell *cell = cell_ref(shard.cell);
    for (struct worker_move *move = cell->moves; move; move = move->next) {
        move->to = worker->host;
        move->quiet = true;
    }
    if (cell->home == CELL_SAVED || cell->home == CELL_SAVING) {
        struct worker_move stay = {.client = client->id, .handle = handle, .shard = shard.shard};
        stay.to = worker->host;
        stay.quiet = true;
        move_add(cell, &stay);
        worker_moves_pump(worker, client->id, cell, effects);
    }
    cell_unref(worker, cell);
}

static void worker_client_stay(struct worker *worker, const struct worker_client *client,
                               struct flow_effects *effects)
{
    for (size_t i = 0; i < client->object_list.len; i++) {
        const struct worker_object *object = client->object_list.items[i];
        for (size_t k = 0; k < object->shards.len; k++)
            worker_shard_stay(worker, client, object->handle, object->shards.items[k], effects);
    }
}

void worker_move(struct worker *worker, const struct flow_event *event, struct flow_effects *effects)
{
    struct worker_client *client = worker_client(worker, event->entry->client);
    struct unpack in = {event->tail.data, event->tail.len, false};
    if (client && !client->gone && in.left == 0)
        worker_client_stay(worker, client, effects);
    while (client && !client->gone && in.left > 0) {
        struct worker_move move = {.client = client->id, .handle = unpack_u64(&in, UINT64_MAX)};
        move.shard = unpack_u32(&in, UINT32_MAX);
        move.to = unpack_u32(&in, UINT32_MAX);
        if (in.bad)
            return;
        struct worker_object *object = worker_object(client, move.handle, true);
        object->spilled = false; /* the head sends SPILL again where it applies */
        struct cell *cell = cell_ref(worker_object_cell(worker, object, move.shard));
        if (cell->home == CELL_IN_MEMORY && !cell_settled(cell)) {
            struct fault fault = fault_make(FAULT_CANCELLED, 0, 0, "the shard is not on its host");
            fault.lost = true;
            cell_settle(worker, cell, NULL, &fault, effects);
        }
        move_add(cell, &move);
        worker_moves_pump(worker, client->id, cell, effects);
        cell_unref(worker, cell);
    }
}

/* Reads the tensor of MOVED. Returns NULL with the reason in *ret_fault. */
static struct tensor *worker_moved_tensor(const struct flow_event *event, struct fault *ret_fault)
{
    struct unpack in = {event->tail.data, event->tail.len, false};
    if (event->entry->flags & ENTRY_IS_FAILED) {
        fault_decode(event->tail, ret_fault);
        return NULL;
    }
    struct ir_type type = unpack_type(&in);
    bool fits = !in.bad && ir_type_bytes(&type) == (int64_t)in.left;
    struct tensor *tensor = fits ? tensor_new(&type) : NULL;
    if (tensor)
        mem_copy(tensor->data, in.data, in.left);
    else
        *ret_fault = fault_make(fits ? FAULT_OUT_OF_MEMORY : FAULT_CANCELLED, 0, 0,
                                "a shard of %zu bytes could not be moved here", in.left);
    ret_fault->lost = !tensor;
    return tensor;
}

static void worker_take_moved(struct worker *worker, const struct flow_event *event,
                              struct flow_effects *effects)
{
    const struct flow_entry *entry = event->entry;
    uint32_t id = handle_client(entry->handle);
    struct worker_client *client = worker_client(worker, id);
    bool other_head = worker->secret != 0 && entry->ticket != worker->secret;
    if (other_head || (client ? client->gone : !worker_client_may_come(worker, id)))
        return;
    if (!client) /* the head's CLIENT is still to come */
        client = worker_client_new(worker, id);
    struct worker_object *object = worker_object(client, entry->handle, true);
    struct cell *cell = worker_object_cell(worker, object, entry->node);
    object->head = entry->ticket;
    if (cell->home == CELL_IN_MEMORY && !cell_settled(cell)) {
        struct fault fault = {0};
        struct tensor *tensor = worker_moved_tensor(event, &fault);
        cell_settle(worker, cell, tensor, tensor ? NULL : &fault, effects);
    }
    worker_tell_there(entry->handle, entry->node, effects);
}

void worker_moved(struct worker *worker, const struct flow_event *event, struct flow_effects *effects)
{
    const struct flow_entry *entry = event->entry;
    if (entry->flags & ENTRY_IS_QUIET) {
        window_arrived(worker, (uint32_t)event->peer, entry);
        return;
    }
    struct flow_entry come = {.kind = ENTRY_MOVED, .flags = ENTRY_IS_QUIET, .handle = entry->handle};
    come.ticket = entry->ticket;
    come.node = entry->node;
    flow_send(effects, event->peer, &come); /* also for a shard that is no longer wanted here */
    worker_take_moved(worker, event, effects);
}

void worker_suspensions_lost(struct worker *worker, struct flow_effects *effects)
{
    window_head_lost(worker);
    for (size_t c = 0; c < worker->clients.len; c++) {
        struct worker_client *client = worker->clients.items[c];
        client->suspension = 0;
        worker_client_stay(worker, client, effects);
    }
}

void cell_drop_moves(struct worker *worker, struct cell *cell)
{
    while (cell->moves) {
        mem_free(move_take(&cell->moves));
        cell_unref(worker, cell);
    }
}

void worker_moves_drop(struct worker *worker, const struct worker_client *client)
{
    window_drop_loads(worker, client);
    for (size_t i = 0; i < worker->transfers.len; i++)
        if (worker->transfers.items[i].cell && worker->transfers.items[i].client == client->id)
            cell_drop_moves(worker, worker->transfers.items[i].cell);
}

void worker_transfers_drop(struct worker *worker)
{
    window_drop_loads(worker, NULL);
    for (size_t i = 0; i < worker->transfers.len; i++) {
        struct worker_transfer *transfer = &worker->transfers.items[i];
        if (!transfer->cell)
            continue;
        cell_drop_moves(worker, transfer->cell);
        transfer->cell->home = transfer->cell->home == CELL_LOADING ? CELL_SAVED : CELL_IN_MEMORY;
        cell_unref(worker, transfer->cell);
    }
    vec_clear(&worker->transfers);
}

void worker_scrap(struct worker *worker, struct flow_effects *effects)
{
    for (size_t i = 0; i < worker->scraps.len; i++)
        flow_add(effects, FLOW_SCRAP)->executable = worker->scraps.items[i];
    vec_clear(&worker->scraps);
}
