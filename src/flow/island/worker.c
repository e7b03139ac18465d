/* A worker: its peers, functions and programs. */
#include "flow/island/worker.h"

struct worker *worker_new(const char *island, const char *address, uint32_t devices, uint64_t device_bytes)
{
    CHECK(devices >= 1 && devices <= PLAN_DEVICES_MAX);
    struct worker *worker = mem_alloc(sizeof *worker);
    worker->island = mem_alloc(strlen(island) + 1);
    memcpy(worker->island, island, strlen(island));
    worker->address = mem_alloc(strlen(address) + 1);
    memcpy(worker->address, address, strlen(address));
    worker->host = UINT32_MAX;
    worker->device_count = devices;
    worker->device_bytes = device_bytes;
    worker->devices = mem_alloc(devices * sizeof *worker->devices);
    worker->window.most = WORKER_WINDOW;
    list_init(&worker->instances);
    return worker;
}

void worker_set_clock(struct worker *worker, int64_t day_ns)
{
    worker->day_ns = day_ns;
}

void worker_set_host_memory(struct worker *worker, uint64_t bytes)
{
    worker->host_bytes = bytes;
}

void worker_set_window(struct worker *worker, uint64_t bytes)
{
    worker->window.most = bytes;
}

void worker_set_place(struct worker *worker, uint64_t place)
{
    worker->place = place;
}

struct worker_client *worker_client(struct worker *worker, uint32_t id)
{
    return u64_map_get(&worker->client_index, id);
}

struct worker_client *worker_client_new(struct worker *worker, uint32_t id)
{
    struct worker_client *client = mem_alloc(sizeof *client);
    client->id = id;
    vec_push(&worker->clients, client);
    u64_map_put(&worker->client_index, id, client);
    return client;
}

bool worker_client_may_come(const struct worker *worker, uint32_t id)
{
    return id != 0 && !u64_map_get(&worker->gone, id);
}

static void worker_function_drop(struct worker *worker, struct worker_function *function,
                                 struct flow_effects *effects)
{
    if (function->executable)
        flow_add(effects, FLOW_DROP)->executable = function->executable;
    worker->function_count--;
    mem_free(function);
}

void worker_function_rest(struct worker *worker, struct worker_function *function,
                          struct flow_effects *effects)
{
    if (function->freed && function->running == 0)
        worker_function_drop(worker, function, effects);
}

/* Ends all that a client owns. Its running instances end by themselves. */
static void worker_client_strip(struct worker *worker, struct worker_client *client,
                                struct flow_effects *effects)
{
    client->gone = true;
    worker_moves_drop(worker, client);
    while (client->object_list.len > 0)
        worker_object_end(worker, client, vec_last(&client->object_list));
    for (size_t i = 0; i < client->function_list.len; i++) {
        struct worker_function *function = client->function_list.items[i];
        u64_map_remove(&client->functions, function->id);
        function->freed = true;
        if (function->state != FUNCTION_COMPILING)
            worker_function_rest(worker, function, effects);
    }
    vec_clear(&client->function_list);
    for (size_t i = 0; i < client->program_list.len; i++)
        worker_program_unref(worker, client->program_list.items[i]);
    vec_clear(&client->program_list);
    struct list_node *end = &worker->instances;
    list_for_each_safe(node, after, end)
    {
        struct instance *instance = container_of(node, struct instance, node);
        if (instance->client != client->id || instance->program)
            continue;
        client->instances++; /* keeps the client until the end of the loop */
        instance_free(worker, instance);
        client->instances--;
    }
}

void worker_client_rest(struct worker *worker, struct worker_client *client)
{
    if (!client->gone || client->instances > 0)
        return;
    CHECK(client->object_list.len == 0 && client->function_list.len == 0 && client->program_list.len == 0);
    u64_map_remove(&worker->client_index, client->id);
    for (size_t i = 0; i < worker->clients.len; i++)
        if (worker->clients.items[i] == client) {
            vec_remove(&worker->clients, i);
            break;
        }
    u64_map_done(&client->objects);
    u64_map_done(&client->functions);
    u64_map_done(&client->programs);
    u64_map_done(&client->instances_by_launch);
    vec_done(&client->object_list);
    vec_done(&client->function_list);
    vec_done(&client->program_list);
    mem_free(client);
}

void worker_free(struct worker *worker, struct flow_effects *effects)
{
    if (!worker)
        return;
    for (uint32_t d = 0; d < worker->device_count; d++)
        if (worker->devices[d].busy) {
            worker->devices[d].function->running--;
            worker_function_rest(worker, worker->devices[d].function, effects);
        }
    while (worker->clients.len > 0) {
        struct worker_client *client = vec_last(&worker->clients);
        worker_client_strip(worker, client, effects);
        client->instances++;
        struct list_node *end = &worker->instances;
        list_for_each_safe(node, after, end)
        {
            struct instance *instance = container_of(node, struct instance, node);
            if (instance->client == client->id)
                instance_free(worker, instance);
        }
        client->instances--;
        worker_client_rest(worker, client);
    }
    worker_transfers_drop(worker);
    worker_scrap(worker, effects);
    CHECK(worker->cells == 0);
    vec_done(&worker->transfers);
    vec_done(&worker->spare_transfers);
    vec_done(&worker->scraps);
    vec_done(&worker->window.loads);
    vec_done(&worker->window.sent);
    for (size_t i = 0; i < worker->spare_cells.len; i++)
        mem_free(worker->spare_cells.items[i]);
    vec_done(&worker->spare_cells);
    for (uint32_t d = 0; d < worker->device_count; d++)
        vec_done(&worker->devices[d].queue);
    for (size_t i = 0; i < worker->compiling.len; i++)
        mem_free(worker->compiling.items[i]);
    vec_done(&worker->compiling);
    vec_done(&worker->clients);
    vec_done(&worker->ready);
    vec_done(&worker->guests);
    u64_map_done(&worker->client_index);
    u64_map_done(&worker->gone);
    vec_done(&worker->gone_list);
    vec_done(&worker->traced.records);
    mem_free(worker->devices);
    mem_free(worker->island);
    mem_free(worker->address);
    mem_free(worker);
}

/* Binds or disconnects a guest. Returns false if that must wait for more from the head. */
static bool worker_admit(struct worker *worker, const struct worker_guest *guest,
                         struct flow_effects *effects)
{
    const struct flow_entry *hello = &guest->hello;
    if (worker->secret == 0)
        return false;
    const struct worker_client *client = worker_client(worker, hello->client);
    if (client && client->token == 0) /* known only from another host; the head's CLIENT is still to come */
        return false;
    if (hello->client == 0 && hello->args[0] == worker->secret) {
        struct flow_effect *bind = flow_add(effects, FLOW_BIND);
        bind->peer = guest->peer;
        bind->as = peer_host(hello->node);
    } else if (hello->client != 0 && client && !client->gone && client->token == hello->args[0]) {
        struct flow_effect *bind = flow_add(effects, FLOW_BIND);
        bind->peer = guest->peer;
        bind->as = peer_client(hello->client);
    } else if (!client && worker_client_may_come(worker, hello->client)) {
        return false;
    } else {
        flow_add(effects, FLOW_CLOSE)->peer = guest->peer;
    }
    return true;
}

static void worker_admit_all(struct worker *worker, struct flow_effects *effects)
{
    for (size_t i = 0; i < worker->guests.len;)
        if (worker_admit(worker, &worker->guests.items[i], effects))
            vec_remove(&worker->guests, i);
        else
            i++;
}

static void worker_client_end(struct worker *worker, struct worker_client *client,
                              struct flow_effects *effects)
{
    flow_add(effects, FLOW_CLOSE)->peer = peer_client(client->id);
    client->instances++;
    worker_launches_end(worker, client, effects);
    worker_client_strip(worker, client, effects);
    client->instances--;
    worker_client_rest(worker, client);
}

static void worker_client_remember_gone(struct worker *worker, uint32_t id)
{
    if (u64_map_put(&worker->gone, id, (void *)(uintptr_t)id))
        return;
    if (worker->gone_list.len < WORKER_GONE_MAX) {
        vec_push(&worker->gone_list, id);
        return;
    }
    uint32_t *oldest = &worker->gone_list.items[worker->gone_next++ % WORKER_GONE_MAX];
    u64_map_remove(&worker->gone, *oldest);
    *oldest = id;
}

static void worker_client_entry(struct worker *worker, const struct flow_entry *entry,
                                struct flow_effects *effects)
{
    struct worker_client *client = worker_client(worker, entry->client);
    if (entry->flags & ENTRY_IS_DOWN) {
        worker_client_remember_gone(worker, entry->client);
        if (client && !client->gone)
            worker_client_end(worker, client, effects);
        return;
    }
    /* The number now belongs to another client than under the earlier head, which must not get at its
     * values. */
    if (client && !client->gone && client->token != 0 && client->token != entry->args[0])
        worker_client_end(worker, client, effects);
    client = worker_client(worker, entry->client);
    if (!client)
        client = worker_client_new(worker, entry->client);
    if (client->gone)
        return;
    client->token = entry->args[0];
    u64_map_remove(&worker->gone, entry->client);
    worker_launches_over(worker, client, entry->launch);
}

static void worker_function(struct worker *worker, struct worker_client *client,
                            const struct flow_event *event, struct flow_effects *effects)
{
    if (u64_map_get(&client->functions, event->entry->handle))
        return;
    struct worker_function *function = mem_alloc(sizeof *function);
    function->id = event->entry->handle;
    function->order = ++worker->orders;
    worker->function_count++;
    vec_push(&worker->compiling, function);
    vec_push(&client->function_list, function);
    u64_map_put(&client->functions, function->id, function);
    struct flow_effect *effect = flow_add(effects, FLOW_COMPILE);
    effect->client = client->id;
    effect->handle = function->id;
    effect->as = function->order;
    buf_add_str(&effect->tail, event->tail);
}

static void worker_plan(struct worker *worker, struct worker_client *client, const struct flow_event *event)
{
    struct plan *plan;
    if (plan_decode(event->tail, &plan, NULL) < 0)
        return;
    if (plan->devices > worker->device_count) {
        plan_free(plan);
        return;
    }
    struct worker_program *program = mem_alloc(sizeof *program);
    program->id = event->entry->program;
    program->plan = plan;
    program->references = 1;
    worker->program_count++;
    for (uint32_t i = 0; i < plan->steps.len; i++)
        if (plan->steps.items[i].op == PLAN_RECV)
            vec_push(&program->recvs, i);
    struct worker_program *old = u64_map_put(&client->programs, program->id, program);
    for (size_t i = 0; i < client->program_list.len && old; i++)
        if (client->program_list.items[i] == old) {
            vec_remove(&client->program_list, i);
            worker_program_unref(worker, old);
            break;
        }
    vec_push(&client->program_list, program);
}

static void worker_program_free(struct worker *worker, struct worker_client *client, uint32_t id)
{
    struct worker_program *program = u64_map_remove(&client->programs, id);
    for (size_t i = 0; i < client->program_list.len && program; i++)
        if (client->program_list.items[i] == program) {
            vec_remove(&client->program_list, i);
            worker_program_unref(worker, program);
            break;
        }
}

static void worker_meet(struct worker *worker, const struct flow_event *event, struct flow_effects *effects)
{
    const struct flow_entry *entry = event->entry;
    if (entry->flags & ENTRY_IS_DOWN) {
        window_host_lost(worker, entry->node);
        flow_add(effects, FLOW_CLOSE)->peer = peer_host(entry->node);
        return;
    }
    if (entry->node == worker->host)
        return;
    struct flow_effect *meet = flow_add(effects, FLOW_MEET);
    meet->as = peer_host(entry->node);
    meet->handle = entry->handle;
    meet->entry = (struct flow_entry){.kind = ENTRY_HELLO_PEER, .node = worker->host};
    meet->entry.args[0] = worker->secret;
    buf_add_str(&meet->tail, event->tail);
}

/* Drops, once the head has sent its secret, the early data and moved objects of other heads, and the clients
 * that only another head knew. */
static void worker_forget_other_heads(struct worker *worker, struct flow_effects *effects)
{
    worker_launches_forget(worker);
    for (size_t c = worker->clients.len; c-- > 0;) {
        struct worker_client *client = worker->clients.items[c];
        if (client->token != 0)
            continue;
        for (size_t i = client->object_list.len; i-- > 0;)
            if (client->object_list.items[i]->head != worker->secret)
                worker_object_end(worker, client, client->object_list.items[i]);
        if (client->instances == 0 && client->object_list.len == 0)
            worker_client_end(worker, client, effects);
    }
}

static void worker_head_entry(struct worker *worker, const struct flow_event *event,
                              struct flow_effects *effects)
{
    const struct flow_entry *entry = event->entry;
    struct worker_client *client = worker_client(worker, entry->client);
    switch (entry->kind) {
    case ENTRY_WELCOME:
        worker->host = entry->node;
        worker->incarnation = entry->epoch;
        worker->secret = entry->args[0];
        worker->birth = entry->args[1];
        worker_forget_other_heads(worker, effects);
        break;
    case ENTRY_HOST:
        worker_meet(worker, event, effects);
        break;
    case ENTRY_CLIENT:
        worker_client_entry(worker, entry, effects);
        break;
    case ENTRY_FUNCTION:
        if (client && !client->gone)
            worker_function(worker, client, event, effects);
        break;
    case ENTRY_PLAN:
        if (client && !client->gone)
            worker_plan(worker, client, event);
        break;
    case ENTRY_PROGRAM_FREE:
        if (client)
            worker_program_free(worker, client, entry->program);
        break;
    case ENTRY_LAUNCH:
        worker_launch(worker, event, effects);
        break;
    case ENTRY_LOST:
        worker_lost(worker, event, effects);
        break;
    case ENTRY_TRACE:
        worker_trace(worker, entry, effects);
        break;
    case ENTRY_SAVE:
        worker_save(worker, entry, effects);
        break;
    case ENTRY_MOVE:
        worker_move(worker, event, effects);
        break;
    case ENTRY_SPILL:
    case ENTRY_FILL:
        worker_spill(worker, event->tail, entry->kind == ENTRY_SPILL, effects);
        break;
    case ENTRY_RELEASE:
        if (client && !client->gone)
            worker_release(worker, client, event->tail, (event->entry->flags & ENTRY_IS_KEPT) != 0);
        break;
    }
    worker_admit_all(worker, effects);
}

static void worker_entry(struct worker *worker, const struct flow_event *event, struct flow_effects *effects)
{
    const struct flow_entry *entry = event->entry;
    uint32_t number = (uint32_t)event->peer;
    bool wrong = !entry_valid(entry) || (size_t)entry->tail_bytes != event->tail.len;
    if (!wrong && event->peer == PEER_HEAD) {
        worker_head_entry(worker, event, effects);
    } else if (!wrong && event->peer == peer_host(number) && entry->kind == ENTRY_DATA) {
        worker_data(worker, event, effects);
    } else if (!wrong && event->peer == peer_host(number) && entry->kind == ENTRY_SKIP) {
        worker_skip(worker, event, effects);
    } else if (!wrong && event->peer == peer_host(number) && entry->kind == ENTRY_MOVED) {
        worker_moved(worker, event, effects);
    } else if (!wrong && event->peer == peer_client(number) &&
               (entry->kind == ENTRY_PUT || entry->kind == ENTRY_FETCH)) {
        struct worker_client *client = worker_client(worker, number);
        if (client && !client->gone && entry->kind == ENTRY_PUT)
            worker_put(worker, client, event, effects);
        else if (client && !client->gone)
            worker_fetch(worker, client, entry, effects);
    } else if (!wrong && event->peer == peer_guest(number) && entry->kind == ENTRY_HELLO_PEER) {
        struct worker_guest guest = {event->peer, *entry};
        if (!worker_admit(worker, &guest, effects))
            vec_push(&worker->guests, guest);
    } else {
        flow_add(effects, FLOW_CLOSE)->peer = event->peer;
    }
}

/* Removes and returns the function that waits for the order, or NULL. */
static struct worker_function *worker_take_ordered(struct worker *worker, uint64_t order)
{
    for (size_t i = 0; i < worker->compiling.len; i++)
        if (worker->compiling.items[i]->order == order) {
            struct worker_function *function = worker->compiling.items[i];
            vec_remove(&worker->compiling, i);
            return function;
        }
    return NULL;
}

/* The number of the order identifies the function. The client may have ended in the meantime, and another
 * client may have its number and a function with the same id. */
static void worker_compiled(struct worker *worker, const struct flow_event *event,
                            struct flow_effects *effects)
{
    struct worker_function *function = worker_take_ordered(worker, event->handle);
    if (event->executable)
        worker->load[event->reused ? LOAD_REUSED : LOAD_COMPILED]++;
    if (!function) {
        if (event->executable)
            flow_add(effects, FLOW_DROP)->executable = event->executable;
        return;
    }
    function->executable = event->executable;
    function->state = event->fault ? FUNCTION_FAILED : FUNCTION_READY;
    if (event->fault)
        function->fault = *event->fault;
    worker_function_rest(worker, function, effects);
}

static void worker_hello(const struct worker *worker, struct flow_effects *effects)
{
    struct flow_entry hello = {.kind = ENTRY_HELLO_WORKER, .args = {worker->device_bytes, worker->birth}};
    hello.count = (uint16_t)worker->device_count;
    hello.epoch = worker->incarnation;
    hello.node = worker->host;
    hello.handle = worker->place;
    hello.launch = worker->host_bytes;
    hello.flags = worker->host == UINT32_MAX ? 0 : ENTRY_IS_KEPT;
    struct flow_effect *effect = flow_send(effects, PEER_HEAD, &hello);
    buf_add(&effect->tail, worker->island, strlen(worker->island) + 1);
    buf_add_str(&effect->tail, str_from(worker->address));
}

/* Reports this worker's state to a head that replaces a lost one. */
static void worker_tell_kept(const struct worker *worker, struct flow_effects *effects)
{
    for (size_t c = 0; c < worker->clients.len; c++) {
        const struct worker_client *client = worker->clients.items[c];
        if (client->gone || client->token == 0)
            continue;
        struct flow_entry entry = {.kind = ENTRY_CLIENT, .flags = ENTRY_IS_KEPT, .client = client->id};
        entry.args[0] = client->token;
        flow_send(effects, PEER_HEAD, &entry);
        for (size_t i = 0; i < client->object_list.len; i++) {
            const struct worker_object *object = client->object_list.items[i];
            struct flow_entry there = {.kind = ENTRY_PUT_DONE, .handle = object->handle};
            there.count = object->spilled;
            for (size_t k = 0; k < object->shards.len; k++) {
                there.node = object->shards.items[k].shard;
                const struct cell *cell = object->shards.items[k].cell;
                if (cell->tensor || cell->home != CELL_IN_MEMORY || (cell->fault && !cell->fault->lost))
                    flow_send(effects, PEER_HEAD, &there);
            }
        }
    }
    flow_send(effects, PEER_HEAD, &(struct flow_entry){.kind = ENTRY_CLIENT, .flags = ENTRY_IS_KEPT});
}

/* Sends HELLO to a head. A head that replaces a lost one is greeted once all launches of the lost one are
 * over. */
static void worker_greet(struct worker *worker, struct flow_effects *effects)
{
    bool runs = false;
    const struct list_node *end = &worker->instances;
    for (const struct list_node *node = end->next; node != end && !runs; node = node->next)
        runs = container_of(node, struct instance, node)->program != NULL;
    for (size_t i = effects->list.len; i-- > 0 && worker->rejoins;) {
        struct flow_effect *effect = &effects->list.items[i];
        if (effect->kind != FLOW_SEND || effect->peer != PEER_HEAD)
            continue;
        buf_done(&effect->tail);
        vec_remove(&effects->list, i);
    }
    if (!worker->greets || runs)
        return;
    worker_hello(worker, effects);
    if (worker->rejoins && worker->host != UINT32_MAX)
        worker_tell_kept(worker, effects);
    worker->greets = worker->rejoins = false;
}

void worker_step(struct worker *worker, const struct flow_event *event, struct flow_effects *effects)
{
    if (event->now_ns > worker->now_ns)
        worker->now_ns = event->now_ns;
    switch (event->kind) {
    case FLOW_OPENED:
        if (event->peer == PEER_HEAD)
            worker->greets = true;
        break;
    case FLOW_ENTRY:
        worker_entry(worker, event, effects);
        break;
    case FLOW_CLOSED:
        if (event->peer == PEER_HEAD) {
            worker->greets = false;
            worker->rejoins = true;
            worker->traces = false;
            vec_clear(&worker->traced.records);
            worker->secret = 0; /* peers are admitted again once the next head has sent its own */
            worker_launches_lost(worker, effects);
            worker_suspensions_lost(worker, effects);
        }
        if (event->peer == peer_host((uint32_t)event->peer)) { /* its last messages may be lost */
            window_host_lost(worker, (uint32_t)event->peer);
            struct flow_entry down = {.kind = ENTRY_HOST, .flags = ENTRY_IS_DOWN};
            down.node = (uint32_t)event->peer;
            flow_send(effects, PEER_HEAD, &down);
        }
        for (size_t i = 0; i < worker->guests.len; i++)
            if (worker->guests.items[i].peer == event->peer) {
                vec_remove(&worker->guests, i);
                break;
            }
        break;
    case FLOW_COMPILED:
        worker_compiled(worker, event, effects);
        break;
    case FLOW_RAN:
        worker_ran(worker, event, effects);
        break;
    case FLOW_SAVED:
        worker_saved(worker, event, effects);
        break;
    case FLOW_LOADED:
        worker_loaded(worker, event, effects);
        break;
    case FLOW_TICK:
        window_tick(worker);
        worker_watch_tick(worker, effects);
        break;
    }
    worker_pump(worker, effects);
    window_go(worker, effects);
    worker_scrap(worker, effects);
    if (worker->greets || worker->rejoins)
        worker_greet(worker, effects);
}

struct worker_counts worker_count(const struct worker *worker)
{
    struct worker_counts counts = {.instances = worker->instance_count,
                                   .functions = worker->function_count,
                                   .programs = worker->program_count,
                                   .cells = worker->cells,
                                   .clients = worker->clients.len,
                                   .moving_bytes = worker->window.bytes};
    for (size_t c = 0; c < worker->clients.len; c++)
        counts.objects += worker->clients.items[c]->object_list.len;
    return counts;
}

bool worker_has_spilled(const struct worker *worker, uint64_t handle)
{
    const struct worker_client *client = u64_map_get(&worker->client_index, handle_client(handle));
    const struct worker_object *object = client ? u64_map_get(&client->objects, handle) : NULL;
    return object && object->spilled;
}
