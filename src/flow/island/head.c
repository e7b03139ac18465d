/* The head: hosts, clients, and the dispatch of their messages. */
#include "flow/island/head.h"

#include <stdio.h>

_Static_assert(sizeof(uintptr_t) >= sizeof(uint64_t), "a token fits a pointer");

struct head *head_new(const struct head_options *options)
{
    struct head *head = mem_alloc(sizeof *head);
    CHECK(options->secret != 0);
    head->options = *options;
    if (head->options.window == 0)
        head->options.window = HEAD_WINDOW;
    if (head->options.memory_wait_ns == 0)
        head->options.memory_wait_ns = HEAD_MEMORY_WAIT_NS;
    if (head->options.rejoin_ns == 0)
        head->options.rejoin_ns = HEAD_REJOIN_NS;
    head->next_client = options->first_client;
    head->room_epoch = 1;
    list_init(&head->recent);
    return head;
}

void head_free(struct head *head)
{
    if (!head)
        return;
    for (size_t c = 0; c < head->clients.len; c++) {
        struct head_client *client = head->clients.items[c];
        head_client_drop_queue(head, client);
        while (client->object_list.len > 0)
            head_object_end(head, client, vec_last(&client->object_list));
    }
    struct flow_effects effects = {0};
    for (size_t h = 0; h < head->hosts.len; h++)
        head->hosts.items[h].alive = false;
    for (size_t h = 0; h < head->hosts.len; h++)
        head_host_lost(head, (uint32_t)h, &(struct fault){.reason = FAULT_CANCELLED}, &effects);
    CHECK(head->running.len == 0);
    flow_effects_done(&effects);
    while (head->meshes.len > 0)
        head_mesh_end(head, vec_last(&head->meshes));
    for (size_t c = 0; c < head->clients.len; c++)
        head_client_free(head->clients.items[c]);
    for (size_t h = 0; h < head->hosts.len; h++) {
        mem_free(head->hosts.items[h].address);
        mem_free(head->hosts.items[h].devices);
    }
    vec_done(&head->hosts);
    vec_done(&head->islands);
    vec_done(&head->meshes);
    vec_done(&head->clients);
    vec_done(&head->running);
    head_watch_free(head);
    u64_map_done(&head->mesh_index);
    u64_map_done(&head->peer_index);
    u64_map_done(&head->tokens);
    u64_map_done(&head->ended);
    mem_free(head);
}

void head_tell_host(const struct head *head, uint32_t h, uint64_t peer, struct flow_effects *effects)
{
    const struct head_host *host = &head->hosts.items[h];
    struct flow_entry entry = {.kind = ENTRY_HOST, .node = h, .epoch = host->incarnation};
    entry.flags = host->alive ? 0 : ENTRY_IS_DOWN;
    entry.program = host->island;
    entry.count = (uint16_t)host->device_count;
    entry.args[0] = host->first_device;
    entry.handle = host->place;
    entry.args[1] = host->birth;
    buf_add_str(&flow_send(effects, peer, &entry)->tail, str_from(host->address));
}

static void head_tell_all(const struct head *head, uint32_t h, struct flow_effects *effects)
{
    for (size_t i = 0; i < head->hosts.len; i++)
        if (head->hosts.items[i].alive && i != h)
            head_tell_host(head, h, head->hosts.items[i].peer, effects);
    for (size_t c = 0; c < head->clients.len; c++)
        if (!head->clients.items[c]->gone && !head->clients.items[c]->away)
            head_tell_host(head, h, head->clients.items[c]->peer, effects);
}

uint32_t head_island_named(struct head *head, struct str name)
{
    for (uint32_t i = 0; i < head->islands.len; i++)
        if (str_is(name, head->islands.items[i].name))
            return i;
    struct head_island island = {.next_ticket = 1};
    mem_copy(island.name, name.data, name.len);
    vec_push(&head->islands, island);
    return (uint32_t)head->islands.len - 1;
}

void head_tell_client(const struct head_client *client, uint64_t peer, struct flow_effects *effects)
{
    struct flow_entry entry = {.kind = ENTRY_CLIENT, .client = client->id, .args = {client->token}};
    entry.flags = client->gone ? ENTRY_IS_DOWN : 0;
    entry.launch = client->kept_launch;
    flow_send(effects, peer, &entry);
}

/* Sends a client, and the functions that it has registered so far, to a host that has joined. */
static void head_tell_newcomer(const struct head_client *client, uint64_t peer, struct flow_effects *effects)
{
    head_tell_client(client, peer, effects);
    for (size_t i = 0; i < client->functions.len; i++) {
        struct flow_entry entry = {.kind = ENTRY_FUNCTION, .client = client->id};
        entry.handle = client->functions.items[i].id;
        buf_add_str(&flow_send(effects, peer, &entry)->tail, buf_str(&client->functions.items[i].text));
    }
}

/* Whether the HELLO of a worker is acceptable. A worker of an earlier head keeps its number, unless that
 * number is invalid or in use. */
static bool head_host_may_come(const struct head *head, const struct flow_entry *hello)
{
    if (!(hello->flags & ENTRY_IS_KEPT))
        return true;
    return hello->node < PLAN_HOSTS_MAX && hello->args[1] != 0 &&
           (hello->node >= head->hosts.len || head->hosts.items[hello->node].vacant);
}

static void head_hello_worker(struct head *head, const struct flow_event *event, struct flow_effects *effects)
{
    const struct flow_entry *entry = event->entry;
    struct str island, address;
    if (!str_cut(event->tail, 0, &island, &address) || island.len == 0 || island.len > 63 ||
        address.len > HEAD_ADDRESS_MAX || entry->count < 1 || entry->count > PLAN_DEVICES_MAX ||
        entry->args[0] > INT64_MAX || entry->launch > INT64_MAX || head->hosts.len >= PLAN_HOSTS_MAX ||
        !head_host_may_come(head, entry)) {
        struct flow_entry refused = {.kind = ENTRY_WELCOME, .flags = ENTRY_IS_FAILED | ENTRY_IS_DOWN};
        flow_send(effects, event->peer, &refused);
        flow_add(effects, FLOW_CLOSE)->peer = event->peer;
        return;
    }
    bool kept = (entry->flags & ENTRY_IS_KEPT) != 0;
    struct head_host host = {.peer = event->peer, .alive = true, .incarnation = 1, .told_all = !kept};
    host.birth = (uintptr_t)u64_map_remove(&head->tokens, event->peer);
    host.island = head_island_named(head, island);
    host.device_count = entry->count;
    host.first_device = head->device_count;
    host.device_bytes = (int64_t)entry->args[0];
    host.host_bytes = (int64_t)entry->launch;
    host.place = entry->handle;
    host.address = mem_alloc(address.len + 1);
    mem_copy(host.address, address.data, address.len);
    host.devices = mem_alloc(host.device_count * sizeof *host.devices);
    for (size_t h = 0; h < head->hosts.len; h++)
        if (!head->hosts.items[h].vacant && str_is(address, head->hosts.items[h].address))
            host.incarnation = head->hosts.items[h].incarnation + 1;
    if (kept) {
        host.incarnation = entry->epoch;
        host.birth = entry->args[1];
    }
    head->device_count += host.device_count;
    uint32_t number = kept ? entry->node : (uint32_t)head->hosts.len;
    while (head->hosts.len <= number)
        vec_push(&head->hosts, ((struct head_host){.vacant = true}));
    head->hosts.items[number] = host;
    struct flow_entry welcome = {.kind = ENTRY_WELCOME, .node = number, .epoch = host.incarnation};
    welcome.args[0] = head->options.secret;
    welcome.args[1] = host.birth;
    flow_send(effects, event->peer, &welcome);
    for (uint32_t h = 0; h < head->hosts.len; h++)
        if (head->hosts.items[h].alive && h != number)
            head_tell_host(head, h, event->peer, effects);
    for (size_t c = 0; c < head->clients.len; c++)
        head_tell_newcomer(head->clients.items[c], event->peer, effects);
    head_tell_all(head, number, effects);
    *(kept ? &head->tally.hosts_back : &head->tally.hosts_came) += 1;
    head_watch_host(head, number, effects);
    head->room_epoch++;
    head_rejoin(head, effects);
    head_mesh_remap(head, NULL, effects);
}

struct head_client *head_client_of(const struct head *head, uint32_t id)
{
    for (size_t c = 0; c < head->clients.len; c++)
        if (head->clients.items[c]->id == id)
            return head->clients.items[c];
    return NULL;
}

struct head_client *head_client_new(struct head *head, uint32_t id, uint64_t token)
{
    CHECK(id != 0 && token != 0);
    struct head_client *client = mem_alloc(sizeof *client);
    client->id = id;
    client->weight = 1;
    client->epoch = 1;
    client->token = token;
    vec_push(&head->clients, client);
    return client;
}

static void head_hello_client(struct head *head, const struct flow_event *event, struct flow_effects *effects)
{
    uint64_t token = (uintptr_t)u64_map_remove(&head->tokens, event->peer);
    struct head_client *client = head_client_claim(head, event->entry);
    while (!client && head->next_client < ENTRY_CLIENTS_MAX)
        if (!head_client_of(head, ++head->next_client))
            client = head_client_new(head, head->next_client, token);
    if (!client) {
        flow_add(effects, FLOW_CLOSE)->peer = event->peer;
        return;
    }
    client->peer = event->peer;
    client->weight = event->entry->count ? event->entry->count : 1;
    client->priority = (int32_t)(event->entry->node - 0x80000000u);
    if (event->entry->flags & ENTRY_IS_KEPT && event->entry->epoch > client->epoch)
        client->epoch = event->entry->epoch;
    client->tells = (event->entry->flags & ENTRY_IS_KEPT) != 0;
    *(client->tells ? &head->tally.clients_back : &head->tally.clients_came) += 1;
    head_account_open(head, client, event->tail, effects);
    u64_map_put(&head->peer_index, event->peer, client);
    for (size_t h = 0; h < head->hosts.len; h++)
        if (head->hosts.items[h].alive)
            head_tell_client(client, head->hosts.items[h].peer, effects);
    struct flow_entry welcome = {.kind = ENTRY_WELCOME, .client = client->id, .args = {client->token}};
    flow_send(effects, event->peer, &welcome);
    for (uint32_t h = 0; h < head->hosts.len; h++)
        if (head->hosts.items[h].alive)
            head_tell_host(head, h, event->peer, effects);
}

static void head_islands(const struct head *head, const struct head_client *client,
                         const struct flow_entry *entry, struct flow_effects *effects)
{
    struct flow_entry answer = {.kind = ENTRY_ISLANDS, .launch = entry->launch};
    struct flow_effect *effect = flow_send(effects, client->peer, &answer);
    for (uint32_t i = 0; i < head->islands.len; i++) {
        struct flow_island_row row = {.id = i};
        memcpy(row.name, head->islands.items[i].name, sizeof row.name);
        for (size_t h = 0; h < head->hosts.len; h++) {
            const struct head_host *host = &head->hosts.items[h];
            if (!host->alive || host->island != i)
                continue;
            row.hosts++;
            row.devices += host->device_count;
            for (uint32_t d = 0; d < host->device_count; d++)
                row.free_devices += host->devices[d].load == 0;
        }
        buf_add(&effect->tail, &row, sizeof row);
    }
}

/* Forwards a client's message to every live host. */
static void head_forward(const struct head *head, const struct head_client *client,
                         const struct flow_event *event, struct flow_effects *effects)
{
    for (size_t h = 0; h < head->hosts.len; h++) {
        if (!head->hosts.items[h].alive)
            continue;
        struct flow_effect *effect = flow_send(effects, head->hosts.items[h].peer, event->entry);
        effect->entry.client = client->id;
        buf_add_str(&effect->tail, event->tail);
    }
}

/* FUNCTION: registers it, and forwards it to the hosts. A function beyond the client's bounds is ignored;
 * calls of it then fail. */
static void head_function(struct head *head, struct head_client *client, const struct flow_event *event,
                          struct flow_effects *effects)
{
    if (client->functions.len >= HEAD_CLIENT_TEXTS_MAX || !head_client_pays(client, event->tail.len))
        return;
    vec_push(&client->functions, ((struct head_function){.id = event->entry->handle}));
    buf_add_str(&vec_last(&client->functions).text, event->tail);
    head_watch_function(head, client, &vec_last(&client->functions), effects);
    head_forward(head, client, event, effects);
}

static void head_release(struct head *head, struct head_client *client, struct str tail,
                         struct flow_effects *effects)
{
    for (size_t i = 0; i + 8 <= tail.len; i += 8) {
        uint64_t handle;
        memcpy(&handle, tail.data + i, sizeof handle);
        struct head_object *object = u64_map_get(&client->objects, handle);
        if (!object || object->released)
            continue;
        object->released = true;
        head_object_try_release(head, client, object, effects);
    }
}

static void head_client_entry(struct head *head, struct head_client *client, const struct flow_event *event,
                              struct flow_effects *effects)
{
    const struct flow_entry *entry = event->entry;
    struct head_mesh *mesh;
    struct head_program *program;
    switch (entry->kind) {
    case ENTRY_ISLANDS:
        head_islands(head, client, entry, effects);
        break;
    case ENTRY_MESH_NEW:
        head_mesh_new(head, client, entry, event->tail, effects);
        break;
    case ENTRY_MESH_SLICE:
        head_mesh_slice(head, client, entry, event->tail, effects);
        break;
    case ENTRY_MESH_FREE:
        if ((mesh = head_mesh_of(head, client->id, entry->node)))
            head_mesh_free(head, mesh);
        break;
    case ENTRY_FUNCTION:
        head_function(head, client, event, effects);
        break;
    case ENTRY_PROGRAM:
        head_program(head, client, entry, event->tail);
        break;
    case ENTRY_PROGRAM_FREE:
        if ((program = u64_map_get(&client->programs, entry->program))) {
            program->freed = true;
            head_program_rest(head, client, program, effects);
        }
        break;
    case ENTRY_LAUNCH:
        head_launch(head, client, entry, event->tail, effects);
        break;
    case ENTRY_VALUE:
        if (entry->flags & ENTRY_IS_KEPT)
            head_value_kept(head, client, entry, event->tail, effects);
        else
            head_value(head, client, entry, event->tail, effects);
        break;
    case ENTRY_MESH:
        head_mesh_kept(head, client, entry, event->tail);
        break;
    case ENTRY_PROGRESS:
        head_client_told_all(head, client, entry, effects);
        break;
    case ENTRY_HOST:
        head_client_broke(head, client, entry->node);
        break;
    case ENTRY_SUSPEND:
        head_client_stopped(client, entry);
        break;
    case ENTRY_RELEASE:
        head_release(head, client, event->tail, effects);
        break;
    default: /* no client sends it */
        flow_add(effects, FLOW_CLOSE)->peer = event->peer;
    }
}

static struct head_host *head_host_of(struct head *head, uint64_t peer, uint32_t *ret_number)
{
    for (size_t h = head->hosts.len; h-- > 0;)
        if (head->hosts.items[h].peer == peer && head->hosts.items[h].alive) {
            *ret_number = (uint32_t)h;
            return &head->hosts.items[h];
        }
    return NULL;
}

static void head_entry(struct head *head, const struct flow_event *event, struct flow_effects *effects)
{
    struct head_client *client = u64_map_get(&head->peer_index, event->peer);
    uint32_t number;
    if (client)
        head_client_entry(head, client, event, effects);
    else if (head_host_of(head, event->peer, &number)) {
        if (event->entry->kind == ENTRY_DONE)
            head_done(head, number, event->entry, effects);
        else if (event->entry->kind == ENTRY_PUT_DONE)
            head_put_done(head, number, event->entry, effects);
        else if (event->entry->kind == ENTRY_CLIENT)
            head_client_known(head, number, event->entry, effects);
        else if (event->entry->kind == ENTRY_HOST)
            head_hosts_broke(head, number, event->entry->node);
        else if (event->entry->kind == ENTRY_LOAD)
            head_load(head, number, event->entry, event->tail);
        else if (event->entry->kind == ENTRY_TRACE)
            head_trace(head, number, event, effects);
        else if (event->entry->kind == ENTRY_SAVE)
            head_saved(head, number, event, effects);
    } else if (head_watch_entry(head, event, effects)) {
        return;
    } else if (event->entry->kind == ENTRY_HELLO_WORKER)
        head_hello_worker(head, event, effects);
    else if (event->entry->kind == ENTRY_HELLO_CLIENT)
        head_hello_client(head, event, effects);
    else if (event->entry->kind == ENTRY_HELLO_WATCH)
        head_watch_hello(head, event->peer, effects);
    else
        flow_add(effects, FLOW_CLOSE)->peer = event->peer;
}

void head_client_gone(struct head *head, struct head_client *client, struct flow_effects *effects)
{
    if (!client->away)
        u64_map_remove(&head->peer_index, client->peer);
    client->gone = true;
    u64_map_put(&head->ended, client->id, (void *)(uintptr_t)client->id);
    head_suspend_end(head, client);
    head->tally.clients_gone++;
    head_account_close(client);
    head_client_drop_queue(head, client);
    while (client->object_list.len > 0)
        head_object_end(head, client, vec_last(&client->object_list));
    for (size_t m = head->meshes.len; m-- > 0;) /* slices come after their parents */
        if (head->meshes.items[m]->client == client->id)
            head_mesh_end(head, head->meshes.items[m]);
    for (size_t h = 0; h < head->hosts.len; h++)
        if (head->hosts.items[h].alive)
            head_tell_client(client, head->hosts.items[h].peer, effects);
    for (size_t c = 0; c < head->clients.len; c++)
        if (head->clients.items[c] == client)
            vec_remove(&head->clients, c);
    if (client->running == 0)
        head_client_free(client);
}

static void head_closed(struct head *head, uint64_t peer, struct flow_effects *effects)
{
    struct head_client *client = u64_map_get(&head->peer_index, peer);
    uint32_t number;
    struct head_host *host = head_host_of(head, peer, &number);
    u64_map_remove(&head->tokens, peer);
    head_watch_closed(head, peer, effects);
    if (client)
        head_client_gone(head, client, effects);
    if (!host)
        return;
    host->alive = false;
    struct fault fault = fault_make(FAULT_DEVICE_LOST, 0, 0, "host %u of island %s is lost", number,
                                    head->islands.items[host->island].name);
    fault.island = host->island;
    fault.device = host->first_device;
    fault.incarnation = host->incarnation;
    head->tally.hosts_lost++;
    head_tell_all(head, number, effects);
    head_watch_host(head, number, effects);
    head_host_lost(head, number, &fault, effects);
    head_objects_lost(head, number, &fault, effects);
    head_suspend_host_lost(head, number);
    head_mesh_remap(head, &fault, effects);
}

void head_step(struct head *head, const struct flow_event *event, struct flow_effects *effects)
{
    if (event->now_ns > head->now_ns)
        head->now_ns = event->now_ns;
    if (head->began_ns == 0)
        head->began_ns = head->now_ns;
    switch (event->kind) {
    case FLOW_OPENED:
        CHECK(event->token != 0);
        u64_map_put(&head->tokens, event->peer, (void *)(uintptr_t)event->token);
        break;
    case FLOW_ENTRY:
        if (entry_valid(event->entry) && event->entry->tail_bytes == event->tail.len)
            head_entry(head, event, effects);
        else
            flow_add(effects, FLOW_CLOSE)->peer = event->peer;
        break;
    case FLOW_CLOSED:
        head_closed(head, event->peer, effects);
        break;
    case FLOW_TICK:
        head->room_epoch++; /* bounds the delay to a second if some change of memory did not raise it */
        head_rejoin(head, effects);
        head_tell_progress(head, effects);
        head_judge_broken(head, effects);
        head_watch_tick(head, effects);
        break;
    case FLOW_COMPILED:
    case FLOW_RAN:
    case FLOW_SAVED:
    case FLOW_LOADED:
        CHECK_UNREACHABLE();
    }
    head_suspend_go(head, effects);
    head_schedule(head, effects);
}

struct head_counts head_count(const struct head *head)
{
    struct head_counts counts = {.meshes = head->meshes.len, .running = head->running.len};
    counts.spills = head->tally.spills;
    counts.fills = head->tally.fills;
    for (size_t h = 0; h < head->hosts.len; h++) {
        const struct head_host *host = &head->hosts.items[h];
        counts.hosts += host->alive;
        counts.spilled_bytes += host->alive ? host->spilled_bytes : 0;
        for (uint32_t d = 0; host->alive && d < host->device_count; d++) {
            counts.used_bytes += host->devices[d].used_bytes;
            counts.idle_bytes += host->devices[d].idle_bytes;
            counts.loads += host->devices[d].load;
        }
    }
    for (size_t i = 0; i < head->islands.len; i++)
        counts.tickets += head->islands.items[i].next_ticket - 1;
    for (size_t c = 0; c < head->clients.len; c++) {
        const struct head_client *client = head->clients.items[c];
        counts.clients++;
        counts.programs += client->program_list.len;
        counts.objects += client->object_list.len;
        counts.suspended += client->state == CLIENT_SUSPENDED;
        counts.queued += client->state == CLIENT_RUNS ? client->queue.len - client->queue_first : 0;
    }
    return counts;
}
