/* world_clients.h - clients of the world: they draw meshes, programs, launches, and check values. */
#ifndef PHX_TESTS_FLOW_ISLAND_WORLD_CLIENTS_H
#define PHX_TESTS_FLOW_ISLAND_WORLD_CLIENTS_H

#include "flow/island/world.h"

static const struct ir_type world_type = {IR_I32, 1, {WORLD_VALUE}};

static bool world_same_places(const struct world_mesh *a, const struct world_mesh *b)
{
    return a->id == b->id && memcmp(a->births, b->births, sizeof a->births) == 0 &&
           memcmp(a->devices, b->devices, sizeof a->devices) == 0;
}

/* Requests to the old places are not made again: nobody waits for it. */
static void world_values_moved(struct world *world, struct world_client *client,
                               const struct world_mesh *from, const struct world_mesh *to)
{
    for (size_t v = 0; v < client->values.len; v++) {
        struct world_value *value = &client->values.items[v];
        if (!world_same_places(&value->mesh, from))
            continue;
        world->moved += !world_same_places(&value->mesh, to);
        value->mesh = *to;
        value->asks++;
        memset(value->asked, 0, sizeof value->asked);
    }
}

static void world_client_mesh(struct world *world, struct world_client *client,
                              const struct flow_entry *entry, struct str tail)
{
    struct unpack in = {tail.data, tail.len, false};
    struct world_mesh mesh = {.id = entry->node, .shape = {.id = entry->node, .rank = entry->count}};
    if (entry->flags & ENTRY_IS_FAILED)
        return;
    for (int a = 0; a < mesh.shape.rank; a++)
        mesh.shape.dims[a] = unpack_u32(&in, 16);
    for (uint32_t i = 0; i < flow_mesh_devices(&mesh.shape); i++) {
        mesh.hosts[i] = unpack_u32(&in, UINT32_MAX);
        mesh.devices[i] = unpack_u32(&in, UINT32_MAX);
        mesh.births[i] = mesh.hosts[i] < WORLD_WORKERS_MAX * 2 ? client->births[mesh.hosts[i]] : 0;
    }
    snprintf(mesh.island, sizeof mesh.island, STR_FORMAT, (int)in.left, in.data);
    client->epoch = entry->epoch;
    for (size_t i = 0; i < client->meshes.len; i++)
        if (client->meshes.items[i].id == mesh.id) {
            if (entry->flags & ENTRY_IS_KEPT)
                world_values_moved(world, client, &client->meshes.items[i], &mesh);
            client->meshes.items[i] = mesh;
            return;
        }
    vec_push(&client->meshes, mesh);
}

static struct world_value *world_find_value(struct world_client *client, uint64_t handle)
{
    for (size_t i = 0; i < client->values.len; i++)
        if (client->values.items[i].handle == handle)
            return &client->values.items[i];
    return NULL;
}

static void world_count_failure(struct world *world, const struct fault *fault)
{
    world->failures++;
    world->lost_failures += fault->reason == FAULT_DEVICE_LOST;
    world->spoiled += fault->lost || fault->reason == FAULT_CANCELLED;
}

static void world_client_shard(struct world *world, struct world_client *client,
                               const struct flow_entry *entry, struct str tail)
{
    struct world_value *value = world_find_value(client, entry->handle);
    if (!value || entry->epoch != value->asks)
        return;
    CHECK(entry->node < 16 && (value->asked[entry->node] > 0 || world->breaks > 0));
    value->asked[entry->node] -= value->asked[entry->node] > 0;
    if (entry->flags & ENTRY_IS_FAILED) {
        struct fault fault;
        CHECK(fault_decode(tail, &fault));
        world_count_failure(world, &fault);
        return;
    }
    struct flow_box box =
        flow_shard_box(&world_type, &value->sharding, &value->mesh.shape, entry->node, NULL);
    CHECK((int64_t)tail.len == box.size[0] * 4);
    for (int64_t i = 0; i < box.size[0]; i++) {
        int32_t element;
        memcpy(&element, tail.data + 4 * i, 4);
        CHECK(element == value->base + box.start[0] + i);
    }
    world->shards++;
}

static void world_tell_functions(struct world *world, uint32_t c)
{
    for (uint64_t f = 1; f <= 4; f++)
        world_post(world, world_client_end(c), 0, &(struct flow_entry){.kind = ENTRY_FUNCTION, .handle = f},
                   STR("f"));
}

void world_client_lost_head(struct world *world, uint32_t c)
{
    struct world_client *client = &world->clients[c];
    struct flow_entry hello = {.kind = ENTRY_HELLO_CLIENT, .node = 0x80000000u, .count = 1};
    client->welcome = client->suspended = false;
    if (client->id) {
        hello.flags = ENTRY_IS_KEPT;
        hello.client = client->id;
        hello.epoch = client->epoch;
        hello.args[0] = client->token;
    }
    world_post(world, world_client_end(c), 0, &hello, world_client_name(c, (char[16]){0}));
}

/* The connection to a worker broke: what was asked there is given up, and the head is told. */
void world_client_lost_worker(struct world *world, uint32_t c, uint32_t w)
{
    struct world_client *client = &world->clients[c];
    struct flow_entry down = {.kind = ENTRY_HOST, .flags = ENTRY_IS_DOWN, .node = world->workers[w].host};
    client->knows[w] = false;
    for (size_t v = 0; v < client->values.len; v++)
        for (uint32_t d = 0; d < 16; d++)
            if (client->values.items[v].mesh.births[d] == world->workers[w].birth)
                client->values.items[v].asked[d] = 0;
    if (client->welcome)
        world_post(world, world_client_end(c), 0, &down, (struct str){0});
}

/* Under another number nothing that was there is this client's. */
static void world_forget_values(struct world *world, uint32_t c)
{
    struct world_client *client = &world->clients[c];
    uint32_t end = world_client_end(c);
    client->values.len = 0;
    memset(client->knows, 0, sizeof client->knows);
    for (uint32_t w = 0; w < WORLD_WORKERS_MAX; w++) {
        world->workers[w].bound[end] = 0;
        world->workers[w].held[end] = false;
        world_drop(&world->channels[end][1 + w], world->channels[end][1 + w].first);
        world_drop(&world->channels[1 + w][end], world->channels[1 + w][end].first);
    }
}

static void world_pack_places(const struct world_mesh *mesh, struct buf *tail)
{
    for (uint32_t i = 0; i < flow_mesh_devices(&mesh->shape); i++) {
        pack_u32(tail, mesh->hosts[i]);
        pack_u32(tail, mesh->devices[i]);
        pack_u64(tail, mesh->births[i]);
    }
}

/* Tells a head that has taken the place of a lost one what this client has. */
static void world_client_rejoin(struct world *world, uint32_t c)
{
    struct world_client *client = &world->clients[c];
    uint32_t end = world_client_end(c);
    struct buf tail = {0};
    world_tell_functions(world, c);
    for (size_t i = 0; i < client->meshes.len; i++) {
        const struct world_mesh *mesh = &client->meshes.items[i];
        struct flow_entry entry = {.kind = ENTRY_MESH, .flags = ENTRY_IS_KEPT, .node = mesh->id};
        entry.count = (uint16_t)mesh->shape.rank;
        buf_clear(&tail);
        for (int a = 0; a < mesh->shape.rank; a++)
            pack_u32(&tail, mesh->shape.dims[a]);
        world_pack_places(mesh, &tail);
        buf_add_str(&tail, str_from(mesh->island));
        world_post(world, end, 0, &entry, buf_str(&tail));
    }
    for (size_t i = 0; i < client->programs.len; i++)
        world_post(world, end, 0,
                   &(struct flow_entry){.kind = ENTRY_PROGRAM, .program = client->programs.items[i].id},
                   buf_str(&client->programs.items[i].text));
    for (size_t i = 0; i < client->values.len; i++) {
        const struct world_value *value = &client->values.items[i];
        struct flow_entry entry = {.kind = ENTRY_VALUE, .flags = ENTRY_IS_KEPT, .handle = value->handle};
        entry.node = value->sharding.mesh;
        entry.launch = value->launch;
        buf_clear(&tail);
        pack_type(&tail, &world_type);
        buf_add(&tail, value->sharding.axes, sizeof value->sharding.axes);
        world_pack_places(&value->mesh, &tail);
        if (!value->failed)
            world_post(world, end, 0, &entry, buf_str(&tail));
        world->kept += !value->failed;
    }
    buf_done(&tail);
    struct flow_entry all = {.kind = ENTRY_PROGRESS, .launch = client->launched, .handle = client->puts_made};
    world_post(world, end, 0, &all, (struct str){0});
    client->finished = client->launched;
}

void world_client_took(struct world *world, uint32_t c, const struct flow_entry *entry, struct str tail)
{
    struct world_client *client = &world->clients[c];
    switch (entry->kind) {
    case ENTRY_WELCOME: {
        bool first = client->id == 0;
        if (!first && client->id != entry->client)
            world_forget_values(world, c);
        client->welcome = true;
        client->id = entry->client;
        client->token = entry->args[0];
        CHECK(client->token != 0); /* or any guest could be this client */
        if (first)
            world_tell_functions(world, c);
        else
            world_client_rejoin(world, c);
        break;
    }
    case ENTRY_HOST:
        client->births[entry->node] = entry->args[1];
        break;
    case ENTRY_MESH:
        world_client_mesh(world, client, entry, tail);
        break;
    case ENTRY_PROGRESS:
        client->finished = entry->launch;
        break;
    case ENTRY_FAILED: {
        struct fault fault;
        CHECK(fault_decode(tail, &fault));
        world_count_failure(world, &fault);
        world->memory_failures += fault.reason == FAULT_OUT_OF_MEMORY;
        for (uint32_t i = 0; i < entry->count; i++)
            if (world_find_value(client, entry->handle + i))
                world_find_value(client, entry->handle + i)->failed = true;
        break;
    }
    case ENTRY_SHARD:
        world_client_shard(world, client, entry, tail);
        break;
    case ENTRY_SUSPEND:
        client->suspended = true;
        if (rng_below(&world->rng, 8)) /* else it hangs */
            world_post(world, world_client_end(c), 0, entry, (struct str){0});
        break;
    case ENTRY_RESUME:
        client->suspended = false;
        break;
    }
}

static const struct world_mesh *world_known_mesh(const struct world_client *client, uint32_t id)
{
    for (size_t i = 0; i < client->meshes.len; i++)
        if (client->meshes.items[i].id == id)
            return &client->meshes.items[i];
    CHECK_UNREACHABLE();
}

static struct flow_sharding world_draw_sharding(struct world *world, const struct world_client *client)
{
    const struct world_mesh *mesh = &client->meshes.items[rng_below(&world->rng, client->meshes.len)];
    struct flow_sharding sharding = {.mesh = mesh->id};
    for (int a = 0; a < mesh->shape.rank; a++)
        if (rng_below(&world->rng, 3))
            sharding.axes[0] |= (uint8_t)(1u << a);
    return sharding;
}

static void world_draw_program(struct world *world, uint32_t c)
{
    struct world_client *client = &world->clients[c];
    struct program *program = program_new();
    struct world_program drawn = {.id = (uint32_t)client->programs.len + 1};
    for (size_t i = 0; i < client->meshes.len; i++)
        program_add_mesh(program, &client->meshes.items[i].shape);
    drawn.args = drawn.results = (uint32_t)rng_range(&world->rng, 1, 2);
    for (uint32_t k = 0; k < drawn.args; k++) {
        struct flow_sharding sharding = drawn.arg[k] = world_draw_sharding(world, client);
        uint32_t value = program_arg(program, &world_type, &sharding);
        for (uint64_t i = rng_below(&world->rng, 5); i > 0; i--)
            if (rng_below(&world->rng, 3)) {
                uint64_t draw = rng_below(&world->rng, 20);
                uint64_t function = draw < 8    ? WORLD_PLAIN
                                    : draw < 17 ? WORLD_MEETS
                                    : draw < 19 ? WORLD_FAILS
                                                : WORLD_WRONG;
                struct program_value result = {world_type, sharding};
                value = program_call(program, function, sharding.mesh, &value, 1, &result, 1);
                drawn.adds[k]++;
            } else {
                sharding = world_draw_sharding(world, client);
                value = program_reshard(program, value, &sharding);
            }
        program_result(program, value);
        drawn.result[k] = sharding;
    }
    struct buf bytes = {0};
    program_encode(program, &bytes);
    world_post(world, world_client_end(c), 0,
               &(struct flow_entry){.kind = ENTRY_PROGRAM, .program = drawn.id}, buf_str(&bytes));
    drawn.text = bytes;
    program_free(program);
    vec_push(&client->programs, drawn);
}

/* Sends to the worker of a host, with a hello before the first entry. */
static void world_client_to_host(struct world *world, uint32_t c, uint64_t birth,
                                 const struct flow_entry *entry, struct str tail)
{
    struct world_client *client = &world->clients[c];
    uint32_t end = world_end_of_birth(world, birth);
    if (end == 0)
        return;
    if (!client->knows[end - 1]) {
        struct flow_entry hello = {.kind = ENTRY_HELLO_PEER, .client = client->id, .args = {client->token}};
        world_post(world, world_client_end(c), end, &hello, (struct str){0});
        client->knows[end - 1] = true;
    }
    world_post(world, world_client_end(c), end, entry, tail);
}

static uint64_t world_put(struct world *world, uint32_t c, const struct flow_sharding *sharding)
{
    struct world_client *client = &world->clients[c];
    struct world_value value = {.sharding = *sharding, .base = (int32_t)rng_below(&world->rng, 1000)};
    value.mesh = *world_known_mesh(client, sharding->mesh);
    value.handle = (uint64_t)client->id << HANDLE_CLIENT_SHIFT | HANDLE_PUT | ++client->puts_made;
    struct flow_entry told = {.kind = ENTRY_VALUE, .handle = value.handle, .node = sharding->mesh};
    told.epoch = client->epoch;
    struct buf tail = {0};
    pack_type(&tail, &world_type);
    buf_add(&tail, sharding->axes, sizeof sharding->axes);
    world_post(world, world_client_end(c), 0, &told, buf_str(&tail));
    struct ir_type shard = flow_shard_type(&world_type, sharding, &value.mesh.shape);
    for (uint32_t d = 0; d < flow_mesh_devices(&value.mesh.shape); d++) {
        struct flow_box box = flow_shard_box(&world_type, sharding, &value.mesh.shape, d, NULL);
        buf_clear(&tail);
        pack_type(&tail, &shard);
        for (int64_t i = 0; i < box.size[0]; i++)
            pack_u32(&tail, (uint32_t)(value.base + box.start[0] + i));
        struct flow_entry put = {.kind = ENTRY_PUT, .handle = value.handle, .node = d};
        world_client_to_host(world, c, value.mesh.births[d], &put, buf_str(&tail));
    }
    buf_done(&tail);
    vec_push(&client->values, value);
    return value.handle;
}

static bool world_same_sharding(const struct flow_sharding *a, const struct flow_sharding *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static void world_launch(struct world *world, uint32_t c)
{
    struct world_client *client = &world->clients[c];
    const struct world_program program = client->programs.items[rng_below(&world->rng, client->programs.len)];
    struct flow_entry entry = {.kind = ENTRY_LAUNCH, .program = program.id, .count = (uint16_t)program.args};
    struct world_value results[2] = {{0}};
    for (uint32_t k = 0; k < program.args; k++) {
        entry.args[k] = 0;
        for (size_t v = client->values.len; v-- > 0 && rng_below(&world->rng, 8);)
            if (world_same_sharding(&client->values.items[v].sharding, &program.arg[k]) &&
                !client->values.items[v].released) {
                entry.args[k] = client->values.items[v].handle;
                break;
            }
        if (!entry.args[k] && client->suspended)
            return; /* as the library: a put waits, and the launch behind it */
        if (!entry.args[k])
            entry.args[k] = world_put(world, c, &program.arg[k]);
        results[k].base = world_find_value(client, entry.args[k])->base + program.adds[k];
        results[k].sharding = program.result[k];
        results[k].mesh = *world_known_mesh(client, program.result[k].mesh);
    }
    entry.epoch = client->epoch;
    entry.launch = ++client->launched;
    entry.node = program.results;
    entry.handle = (uint64_t)client->id << HANDLE_CLIENT_SHIFT | (client->values_made + 1);
    for (uint32_t k = 0; k < program.results; k++) {
        results[k].handle = entry.handle + k;
        results[k].launch = entry.launch;
        vec_push(&client->values, results[k]);
    }
    client->values_made += program.results;
    world->launches++;
    world_post(world, world_client_end(c), 0, &entry, (struct str){0});
}

static void world_fetch(struct world *world, uint32_t c)
{
    struct world_client *client = &world->clients[c];
    struct world_value *value = &client->values.items[rng_below(&world->rng, client->values.len)];
    uint32_t d = (uint32_t)rng_below(&world->rng, flow_mesh_devices(&value->mesh.shape));
    if (value->released || value->failed || !world_end_of_birth(world, value->mesh.births[d]))
        return;
    value->asked[d]++;
    struct flow_entry entry = {.kind = ENTRY_FETCH, .handle = value->handle, .node = d};
    entry.epoch = value->asks;
    world_client_to_host(world, c, value->mesh.births[d], &entry, (struct str){0});
}

/* As the library: not before what was asked for has come. */
static void world_release(struct world *world, uint32_t c)
{
    struct world_client *client = &world->clients[c];
    size_t v = rng_below(&world->rng, client->values.len);
    struct world_value *value = &client->values.items[v];
    for (uint32_t d = 0; d < 16; d++)
        if (value->asked[d])
            return;
    struct buf tail = {0};
    pack_u64(&tail, value->handle);
    world_post(world, world_client_end(c), 0, &(struct flow_entry){.kind = ENTRY_RELEASE}, buf_str(&tail));
    buf_done(&tail);
    vec_remove(&client->values, v);
}

void world_client_act(struct world *world, uint32_t c)
{
    static const struct flow_mesh shapes[] = {{0, 1, {1}}, {0, 1, {2}},    {0, 1, {3}},
                                              {0, 1, {4}}, {0, 2, {2, 2}}, {0, 2, {2, 3}}};
    struct world_client *client = &world->clients[c];
    uint64_t draw = rng_below(&world->rng, 100);
    if (!client->welcome)
        return;
    if (client->meshes.len == 0 || (draw < 2 && client->meshes.len < 4)) {
        const struct flow_mesh *shape = &shapes[rng_below(&world->rng, sizeof shapes / sizeof *shapes)];
        struct flow_entry entry = {.kind = ENTRY_MESH_NEW, .launch = 1, .count = (uint16_t)shape->rank};
        world_post(world, world_client_end(c), 0, &entry,
                   (struct str){(const char *)shape->dims, (size_t)shape->rank * 4});
    } else if (client->programs.len == 0 || draw < 6) {
        world_draw_program(world, c);
    } else if (draw < 50) {
        world_launch(world, c);
    } else if (client->values.len > 0 && draw < 80) {
        world_fetch(world, c);
    } else if (client->values.len > 0) {
        world_release(world, c);
    }
}

#endif
