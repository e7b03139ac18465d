/* Objects and their cells: values by handle, present or expected. */
#include "flow/island/worker.h"

enum { CELLS_SPARE_MAX = 4096 };

struct cell *cell_new(struct worker *worker)
{
    struct cell *cell;
    if (worker->spare_cells.len > 0) {
        cell = vec_pop(&worker->spare_cells);
        *cell = (struct cell){0};
    } else {
        cell = mem_alloc(sizeof *cell);
    }
    cell->references = 1;
    worker->cells++;
    return cell;
}

struct cell *cell_ref(struct cell *cell)
{
    CHECK(cell->references > 0);
    cell->references++;
    return cell;
}

void cell_unref(struct worker *worker, struct cell *cell)
{
    if (!cell || --cell->references > 0)
        return;
    worker->cells--;
    worker->put_bytes -= cell->put_bytes;
    CHECK(cell->home == CELL_IN_MEMORY || cell->home == CELL_SAVED);
    if (cell->home == CELL_SAVED)
        vec_push(&worker->scraps, cell->saved);
    tensor_unref(cell->tensor);
    mem_free(cell->fault);
    vec_done(&cell->waiters);
    if (worker->spare_cells.len < CELLS_SPARE_MAX)
        vec_push(&worker->spare_cells, cell);
    else
        mem_free(cell);
}

void cell_wait(struct cell *cell, struct instance *instance, uint32_t step)
{
    if (!cell->first) {
        cell->first = instance;
        cell->first_step = step;
    } else {
        vec_push(&cell->waiters, ((struct cell_waiter){.instance = instance, .step = step}));
    }
}

bool cell_settled(const struct cell *cell)
{
    return cell->tensor || cell->fault;
}

void worker_send_shard(struct worker *worker, const struct cell *cell, const struct flow_entry *fetch,
                       struct flow_effects *effects)
{
    struct flow_entry entry = {.kind = ENTRY_SHARD, .handle = fetch->handle, .node = fetch->node};
    entry.epoch = fetch->epoch;
    entry.flags = fetch->flags & ENTRY_IS_QUIET;
    struct flow_effect *effect = flow_send(effects, peer_client(handle_client(fetch->handle)), &entry);
    if (cell->fault) {
        effect->entry.flags |= ENTRY_IS_FAILED;
        fault_encode(cell->fault, &effect->tail);
    } else if (!(entry.flags & ENTRY_IS_QUIET)) {
        effect->payload = tensor_ref(cell->tensor);
        struct trace_record record = {.kind = TRACE_FETCHED, .client = handle_client(fetch->handle)};
        record.handle = fetch->handle;
        record.node = fetch->node;
        record.bytes = (uint64_t)ir_type_bytes(&cell->tensor->type);
        worker_note_move(worker, LOAD_FETCHED, record, effects);
    }
}

void cell_settle(struct worker *worker, struct cell *cell, struct tensor *tensor, const struct fault *fault,
                 struct flow_effects *effects)
{
    CHECK((tensor != NULL) != (fault != NULL));
    if (cell_settled(cell)) {
        tensor_unref(tensor);
        return;
    }
    cell->tensor = tensor;
    if (fault) {
        cell->fault = mem_alloc(sizeof *fault);
        *cell->fault = *fault;
    }
    cell_ref(cell);
    if (cell->first)
        instance_cell_settled(worker, cell->first, cell->first_step);
    cell->first = NULL;
    for (size_t i = 0; i < cell->waiters.len; i++) {
        struct cell_waiter waiter = cell->waiters.items[i];
        if (waiter.instance)
            instance_cell_settled(worker, waiter.instance, waiter.step);
        else
            worker_send_shard(worker, cell, &waiter.fetch, effects);
    }
    vec_done(&cell->waiters);
    cell_unref(worker, cell);
}

struct worker_object *worker_object(struct worker_client *client, uint64_t handle, bool make)
{
    struct worker_object *object = u64_map_get(&client->objects, handle);
    if (object || !make)
        return object;
    object = mem_alloc(sizeof *object);
    object->handle = handle;
    object->index = client->object_list.len;
    vec_push(&client->object_list, object);
    u64_map_put(&client->objects, handle, object);
    return object;
}

struct cell *worker_object_cell(struct worker *worker, struct worker_object *object, uint32_t shard)
{
    for (size_t i = 0; i < object->shards.len; i++)
        if (object->shards.items[i].shard == shard)
            return object->shards.items[i].cell;
    struct cell *cell = cell_new(worker);
    vec_push(&object->shards, ((struct worker_shard){shard, cell}));
    return cell;
}

/* Makes `cell` the cell of a shard. Fetches that wait for the former, empty cell are passed on or
 * answered. */
void worker_object_set(struct worker *worker, struct worker_object *object, uint32_t shard, struct cell *cell,
                       struct flow_effects *effects)
{
    for (size_t i = 0; i < object->shards.len; i++) {
        struct worker_shard *held = &object->shards.items[i];
        if (held->shard != shard)
            continue;
        for (size_t k = 0; k < held->cell->waiters.len; k++)
            if (cell_settled(cell))
                worker_send_shard(worker, cell, &held->cell->waiters.items[k].fetch, effects);
            else
                vec_push(&cell->waiters, held->cell->waiters.items[k]);
        vec_clear(&held->cell->waiters);
        cell_unref(worker, held->cell);
        held->cell = cell_ref(cell);
        return;
    }
    vec_push(&object->shards, ((struct worker_shard){shard, cell_ref(cell)}));
}

void worker_object_end(struct worker *worker, struct worker_client *client, struct worker_object *object)
{
    u64_map_remove(&client->objects, object->handle);
    client->object_list.items[object->index] = vec_last(&client->object_list);
    client->object_list.items[object->index]->index = object->index;
    client->object_list.len--;
    for (size_t i = 0; i < object->shards.len; i++)
        cell_unref(worker, object->shards.items[i].cell);
    vec_done(&object->shards);
    mem_free(object);
}

/* Returns the tensor of a shard that is put. The head accounts for values, but a client may put shards that
 * the head does not know of. A host therefore accepts at most twice the memory of its devices, plus its
 * memory for spilled shards. */
static struct tensor *worker_put_tensor(struct worker *worker, struct cell *cell, const struct ir_type *type,
                                        const struct unpack *in, struct fault *ret_fault)
{
    uint64_t most = worker->device_bytes < UINT64_MAX / (2 * PLAN_DEVICES_MAX)
                        ? 2 * worker->device_count * worker->device_bytes
                        : UINT64_MAX;
    most = worker->host_bytes < UINT64_MAX - most ? most + worker->host_bytes : UINT64_MAX;
    struct tensor *tensor = in->left <= most - worker->put_bytes ? tensor_new(type) : NULL;
    if (!tensor) {
        *ret_fault = fault_make(FAULT_OUT_OF_MEMORY, 0, 0, "the host has no memory for a shard of %zu bytes",
                                in->left);
        return NULL;
    }
    mem_copy(tensor->data, in->data, in->left);
    cell->put_bytes = in->left;
    worker->put_bytes += in->left;
    return tensor;
}

/* Whether the client may name this value: it exists, or the client may have one more. */
static bool worker_client_has_room(const struct worker_client *client, uint64_t handle)
{
    return client->object_list.len < WORKER_CLIENT_OBJECTS_MAX || u64_map_get(&client->objects, handle);
}

/* PUT: a shard from the client. Its type is compared with the plan's when it is used. */
void worker_put(struct worker *worker, struct worker_client *client, const struct flow_event *event,
                struct flow_effects *effects)
{
    const struct flow_entry *entry = event->entry;
    struct unpack in = {event->tail.data, event->tail.len, false};
    struct ir_type type = unpack_type(&in);
    if (in.bad || ir_type_bytes(&type) != (int64_t)in.left || !(entry->handle & HANDLE_PUT) ||
        handle_client(entry->handle) != client->id || !worker_client_has_room(client, entry->handle)) {
        flow_add(effects, FLOW_CLOSE)->peer = event->peer;
        return;
    }
    struct worker_object *object = worker_object(client, entry->handle, true);
    struct cell *cell = worker_object_cell(worker, object, entry->node);
    if (!cell_settled(cell)) {
        struct fault fault;
        struct tensor *tensor = worker_put_tensor(worker, cell, &type, &in, &fault);
        cell_settle(worker, cell, tensor, tensor ? NULL : &fault, effects);
        struct flow_entry done = {.kind = ENTRY_PUT_DONE, .handle = entry->handle, .node = entry->node};
        flow_send(effects, PEER_HEAD, &done);
        struct trace_record record = {.kind = TRACE_PUT, .client = client->id, .node = entry->node};
        record.handle = entry->handle;
        record.bytes = in.left;
        worker_note_move(worker, LOAD_PUT, record, effects);
    }
    if (object->released)
        worker_object_end(worker, client, object);
}

void worker_fetch(struct worker *worker, struct worker_client *client, const struct flow_entry *entry,
                  struct flow_effects *effects)
{
    if (handle_client(entry->handle) != client->id)
        return;
    if (!worker_client_has_room(client, entry->handle)) {
        flow_add(effects, FLOW_CLOSE)->peer = peer_client(client->id);
        return;
    }
    struct worker_object *object = worker_object(client, entry->handle, true);
    struct cell *cell = worker_object_cell(worker, object, entry->node);
    if (cell_settled(cell))
        worker_send_shard(worker, cell, entry, effects);
    else
        vec_push(&cell->waiters, ((struct cell_waiter){.fetch = *entry}));
}

void worker_release(struct worker *worker, struct worker_client *client, struct str tail, bool kept)
{
    for (size_t i = 0; i + 8 <= tail.len; i += 8) {
        uint64_t handle;
        memcpy(&handle, tail.data + i, sizeof handle);
        /* A value that its client is still putting ends when it has arrived. */
        struct worker_object *object = worker_object(client, handle, !kept && (handle & HANDLE_PUT) != 0);
        if (!object)
            continue;
        bool empty = object->shards.len == 0;
        for (size_t k = 0; k < object->shards.len && !empty; k++) {
            const struct cell *cell = object->shards.items[k].cell;
            empty = !cell_settled(cell) && cell->home == CELL_IN_MEMORY;
        }
        if (empty && !kept && (handle & HANDLE_PUT))
            object->released = true;
        else
            worker_object_end(worker, client, object);
    }
}

void worker_spill(struct worker *worker, struct str tail, bool leaves, struct flow_effects *effects)
{
    for (size_t i = 0; i + 8 <= tail.len; i += 8) {
        uint64_t handle;
        memcpy(&handle, tail.data + i, sizeof handle);
        struct worker_client *client = worker_client(worker, handle_client(handle));
        struct worker_object *object = client && !client->gone ? worker_object(client, handle, leaves) : NULL;
        if (!object)
            continue;
        object->spilled = leaves;
        for (size_t k = 0; k < object->shards.len && leaves; k++)
            if (object->shards.items[k].cell->tensor)
                flow_add(effects, FLOW_EVICT)->payload = tensor_ref(object->shards.items[k].cell->tensor);
    }
}
