/* Placement of virtual devices on physical ones. */
#include "flow/island/head.h"

#include <stdio.h>

struct head_places *head_places_ref(struct head_places *places)
{
    places->references++;
    return places;
}

void head_places_unref(struct head_places *places)
{
    if (places && --places->references == 0)
        mem_free(places);
}

struct head_places *head_places_new(uint32_t count)
{
    struct head_places *places = mem_alloc(sizeof *places + count * sizeof(struct lower_place));
    places->references = 1;
    places->count = count;
    for (uint32_t i = 0; i < count; i++)
        places->places[i] = (struct lower_place){UINT32_MAX, 0};
    return places;
}

bool head_place_alive(const struct head *head, struct lower_place place)
{
    return place.host < head->hosts.len && head->hosts.items[place.host].alive;
}

/* Mesh ids are unique within a client, which keeps them when it connects to another head. */
static uint64_t head_mesh_key(uint32_t client, uint32_t id)
{
    return (uint64_t)client << 32 | id;
}

struct head_mesh *head_mesh_of(struct head *head, uint32_t client, uint32_t id)
{
    struct head_mesh *mesh = u64_map_get(&head->mesh_index, head_mesh_key(client, id));
    return mesh && !mesh->freed ? mesh : NULL;
}

static void head_mesh_fail(struct head_client *client, const struct flow_entry *entry, const char *why,
                           struct flow_effects *effects)
{
    struct flow_entry answer = {.kind = ENTRY_MESH, .flags = ENTRY_IS_FAILED, .launch = entry->launch};
    struct flow_effect *effect = flow_send(effects, client->peer, &answer);
    struct fault fault = fault_make(FAULT_CANCELLED, 0, 0, "%s", why);
    fault_encode(&fault, &effect->tail);
}

struct flow_effect *head_mesh_tell(const struct head *head, const struct head_client *client,
                                   const struct head_mesh *mesh, uint64_t request,
                                   struct flow_effects *effects)
{
    struct flow_entry entry = {.kind = ENTRY_MESH, .launch = request, .node = mesh->id};
    entry.count = (uint16_t)mesh->shape.rank;
    entry.epoch = client->epoch;
    entry.program = mesh->island;
    struct flow_effect *effect = flow_send(effects, client->peer, &entry);
    for (int32_t a = 0; a < mesh->shape.rank; a++)
        pack_u32(&effect->tail, mesh->shape.dims[a]);
    for (uint32_t i = 0; i < mesh->places->count; i++) {
        pack_u32(&effect->tail, mesh->places->places[i].host);
        pack_u32(&effect->tail, mesh->places->places[i].device);
    }
    const char *name = head->islands.items[mesh->island].name;
    buf_add_str(&effect->tail, str_from(name));
    return effect;
}

/* Finds the live device of the island with the least load that the mesh being placed does not have yet. */
static bool head_find_device(const struct head *head, uint32_t island, struct lower_place *ret)
{
    bool found = false;
    uint32_t best = 0;
    for (uint32_t h = 0; h < head->hosts.len; h++) {
        const struct head_host *host = &head->hosts.items[h];
        for (uint32_t d = 0; host->alive && host->island == island && d < host->device_count; d++) {
            const struct head_device *device = &host->devices[d];
            if (device->mark == head->mark || (found && device->load >= best))
                continue;
            found = true;
            best = device->load;
            *ret = (struct lower_place){h, d};
        }
    }
    return found;
}

bool head_mesh_parked(const struct head_mesh *mesh)
{
    while (mesh->parent)
        mesh = mesh->parent;
    return mesh->parked;
}

static struct head_device *head_device_at(struct head *head, struct lower_place place)
{
    return &head->hosts.items[place.host].devices[place.device];
}

static void head_mesh_unload(struct head *head, const struct head_mesh *mesh)
{
    for (uint32_t i = 0; i < mesh->places->count; i++)
        if (head_place_alive(head, mesh->places->places[i]))
            head_device_at(head, mesh->places->places[i])->load--;
}

void head_mesh_park(struct head *head, struct head_mesh *mesh)
{
    CHECK(!mesh->parent && !mesh->births && !mesh->parked);
    head_mesh_unload(head, mesh);
    mesh->parked = true;
}

bool head_mesh_unpark(struct head *head, struct head_mesh *mesh)
{
    CHECK(mesh->parked);
    struct head_places *places = head_places_new(mesh->places->count);
    bool whole = true;
    head->mark++;
    for (uint32_t i = 0; i < places->count; i++) {
        struct lower_place old = mesh->places->places[i], *place = &places->places[i];
        if (!head_find_device(head, mesh->island, place)) {
            whole = false;
            continue;
        }
        struct head_device *device = head_device_at(head, *place);
        if (head_place_alive(head, old) && head_device_at(head, old)->mark != head->mark &&
            head_device_at(head, old)->load <= device->load) {
            *place = old;
            device = head_device_at(head, old);
        }
        device->load++;
        device->mark = head->mark;
    }
    head_places_unref(mesh->places);
    mesh->places = places;
    mesh->parked = false;
    return whole;
}

/* Finds devices for the places that are lost or empty. */
static void head_mesh_place(struct head *head, struct head_mesh *mesh)
{
    mesh->whole = true;
    head->mark++;
    for (uint32_t i = 0; i < mesh->places->count; i++) {
        struct lower_place place = mesh->places->places[i];
        if (head_place_alive(head, place))
            head->hosts.items[place.host].devices[place.device].mark = head->mark;
    }
    for (uint32_t i = 0; i < mesh->places->count; i++) {
        struct lower_place *place = &mesh->places->places[i];
        if (head_place_alive(head, *place))
            continue;
        place->host = UINT32_MAX;
        if (!head_find_device(head, mesh->island, place)) {
            mesh->whole = false;
            continue;
        }
        struct head_device *device = &head->hosts.items[place->host].devices[place->device];
        device->load++;
        device->mark = head->mark;
    }
}

bool head_mesh_may_add(const struct head *head, const struct head_client *client)
{
    uint32_t count = 0;
    for (size_t m = 0; m < head->meshes.len; m++)
        count += head->meshes.items[m]->client == client->id;
    return count < HEAD_CLIENT_MESHES_MAX;
}

void head_mesh_add(struct head *head, struct head_client *client, struct head_mesh *mesh)
{
    if (mesh->id == 0)
        mesh->id = ++client->next_mesh;
    mesh->shape.id = mesh->id;
    mesh->client = client->id;
    mesh->epoch = client->epoch;
    vec_push(&head->meshes, mesh);
    u64_map_put(&head->mesh_index, head_mesh_key(mesh->client, mesh->id), mesh);
}

/* Returns the island of that name, or, without a name, the one whose devices have the least load; UINT32_MAX
 * if none has enough devices. */
static uint32_t head_pick_island(const struct head *head, struct str name, uint32_t devices)
{
    uint32_t best = UINT32_MAX;
    uint64_t best_load = 0;
    for (uint32_t i = 0; i < head->islands.len; i++) {
        uint64_t count = 0, load = 0;
        for (size_t h = 0; h < head->hosts.len; h++) {
            const struct head_host *host = &head->hosts.items[h];
            for (uint32_t d = 0; host->alive && host->island == i && d < host->device_count; d++) {
                count++;
                load += host->devices[d].load;
            }
        }
        if (count < devices || (name.len && !str_is(name, head->islands.items[i].name)))
            continue;
        load = load * 1024 / count;
        if (best == UINT32_MAX || load < best_load) {
            best = i;
            best_load = load;
        }
    }
    return best;
}

void head_mesh_new(struct head *head, struct head_client *client, const struct flow_entry *entry,
                   struct str tail, struct flow_effects *effects)
{
    struct unpack in = {tail.data, tail.len, false};
    struct flow_mesh shape = {.rank = entry->count};
    uint64_t devices = 1;
    if (shape.rank < 1 || shape.rank > PROGRAM_MESH_RANK_MAX)
        in.bad = true;
    for (int32_t a = 0; a < shape.rank && !in.bad; a++) {
        shape.dims[a] = unpack_u32(&in, PROGRAM_DEVICES_MAX);
        devices *= shape.dims[a];
        in.bad = in.bad || devices < 1 || devices > PROGRAM_DEVICES_MAX;
    }
    if (in.bad) {
        head_mesh_fail(client, entry, "a mesh has 1 to 3 axes of at least 1 device", effects);
        return;
    }
    uint32_t island = head_pick_island(head, (struct str){in.data, in.left}, (uint32_t)devices);
    if (island == UINT32_MAX) {
        char why[FAULT_TEXT_MAX];
        snprintf(why, sizeof why, "no such island has %u devices: ask for fewer, or add hosts",
                 (uint32_t)devices);
        head_mesh_fail(client, entry, why, effects);
        return;
    }
    if (!head_mesh_may_add(head, client)) {
        head_mesh_fail(client, entry, "a client may have 4096 meshes and slices", effects);
        return;
    }
    struct head_mesh *mesh = mem_alloc(sizeof *mesh);
    mesh->island = island;
    mesh->shape = shape;
    mesh->places = head_places_new((uint32_t)devices);
    head_mesh_add(head, client, mesh);
    head_mesh_place(head, mesh);
    CHECK(mesh->whole);
    head_mesh_tell(head, client, mesh, entry->launch, effects);
}

/* Copies the parent's places. A slice is whole if its own devices live, even if the parent has lost
 * others. */
void head_slice_place(const struct head *head, struct head_mesh *slice)
{
    slice->whole = true;
    for (uint32_t i = 0; i < slice->places->count; i++) {
        slice->places->places[i] = slice->parent->places->places[slice->of_parent[i]];
        slice->whole = slice->whole && head_place_alive(head, slice->places->places[i]);
    }
}

struct head_mesh *head_mesh_part(const struct head *head, struct head_mesh *parent, const uint32_t *start,
                                 const struct flow_mesh *shape)
{
    struct head_mesh *slice = mem_alloc(sizeof *slice);
    slice->island = parent->island;
    slice->shape = *shape;
    slice->parent = parent;
    uint32_t count = flow_mesh_devices(shape);
    slice->places = head_places_new(count);
    slice->of_parent = mem_alloc(count * sizeof *slice->of_parent);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rest = i, at = 0, scale = 1;
        for (int32_t a = shape->rank - 1; a >= 0; a--) {
            at += (start[a] + rest % shape->dims[a]) * scale;
            rest /= shape->dims[a];
            scale *= parent->shape.dims[a];
        }
        slice->of_parent[i] = at;
    }
    head_slice_place(head, slice);
    slice->lost = parent->lost;
    parent->slices++;
    return slice;
}

void head_mesh_slice(struct head *head, struct head_client *client, const struct flow_entry *entry,
                     struct str tail, struct flow_effects *effects)
{
    struct head_mesh *parent = head_mesh_of(head, client->id, entry->node);
    struct unpack in = {tail.data, tail.len, false};
    uint32_t start[PROGRAM_MESH_RANK_MAX] = {0};
    struct flow_mesh shape = {.rank = parent ? parent->shape.rank : 0};
    for (int32_t a = 0; a < shape.rank; a++)
        start[a] = unpack_u32(&in, shape.rank ? parent->shape.dims[a] - 1 : 0);
    for (int32_t a = 0; a < shape.rank; a++) {
        shape.dims[a] = unpack_u32(&in, parent->shape.dims[a] - start[a]);
        in.bad = in.bad || shape.dims[a] == 0;
    }
    if (!parent || in.bad) {
        head_mesh_fail(client, entry, parent ? "the slice is not inside its mesh" : "no such mesh", effects);
        return;
    }
    if (!head_mesh_may_add(head, client)) {
        head_mesh_fail(client, entry, "a client may have 4096 meshes and slices", effects);
        return;
    }
    struct head_mesh *slice = head_mesh_part(head, parent, start, &shape);
    head_mesh_add(head, client, slice);
    head_mesh_tell(head, client, slice, entry->launch, effects);
}

void head_mesh_end(struct head *head, struct head_mesh *mesh)
{
    if (!mesh->parent && !mesh->births && !mesh->parked)
        head_mesh_unload(head, mesh);
    u64_map_remove(&head->mesh_index, head_mesh_key(mesh->client, mesh->id));
    for (size_t i = 0; i < head->meshes.len; i++)
        if (head->meshes.items[i] == mesh) {
            vec_remove(&head->meshes, i);
            break;
        }
    head_places_unref(mesh->places);
    mem_free(mesh->of_parent);
    mem_free(mesh->births);
    mem_free(mesh);
}

void head_mesh_free(struct head *head, struct head_mesh *mesh)
{
    mesh->freed = true;
    while (mesh && mesh->freed && mesh->slices == 0) {
        struct head_mesh *parent = mesh->parent;
        if (parent)
            parent->slices--;
        head_mesh_end(head, mesh);
        mesh = parent;
    }
}

static bool head_mesh_is_hurt(const struct head *head, const struct head_mesh *mesh)
{
    for (uint32_t i = 0; i < mesh->places->count; i++)
        if (!head_place_alive(head, mesh->places->places[i]))
            return true;
    return false;
}

void head_mesh_remap(struct head *head, const struct fault *why, struct flow_effects *effects)
{
    /* Parents come before their slices in the list. */
    for (size_t m = 0; m < head->meshes.len; m++) {
        struct head_mesh *mesh = head->meshes.items[m];
        if (head_mesh_waits(mesh) || head_mesh_parked(mesh) || !head_mesh_is_hurt(head, mesh))
            continue;
        struct head_places *old = mesh->places;
        head->tally.remaps++;
        mesh->places = head_places_new(old->count);
        memcpy(mesh->places->places, old->places, old->count * sizeof *old->places);
        head_places_unref(old);
        if (mesh->parent)
            head_slice_place(head, mesh);
        else
            head_mesh_place(head, mesh);
        if (why)
            mesh->lost = *why;
        for (size_t c = 0; c < head->clients.len; c++) {
            struct head_client *client = head->clients.items[c];
            if (client->id != mesh->client || client->gone)
                continue;
            mesh->epoch = ++client->epoch;
            head_mesh_tell(head, client, mesh, 0, effects);
        }
    }
}
