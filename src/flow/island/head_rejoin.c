/* A head that replaces a lost one: it starts without state, and workers and clients report theirs.
 *
 * Workers report their devices, the clients they know, and their shards. A client reports its meshes,
 * functions, programs and values. Launches that need a host which has not rejoined wait up to rejoin_ns. A
 * client is identified by its token. A worker that has another token for the same client number ends the
 * state of the earlier client, so a number alone gives no access to values. */
#include "flow/island/head.h"

struct head_client *head_client_claim(struct head *head, const struct flow_entry *hello)
{
    uint64_t token = hello->args[0];
    if (!(hello->flags & ENTRY_IS_KEPT) || token == 0 || hello->client == 0 ||
        hello->client > ENTRY_CLIENTS_MAX)
        return NULL;
    struct head_client *client = head_client_of(head, hello->client);
    /* Workers have been told that an ended client is gone, and may still end its launches under its
     * number. */
    if (!client)
        return u64_map_get(&head->ended, hello->client) ? NULL : head_client_new(head, hello->client, token);
    if (!client->away || client->token != token)
        return NULL;
    client->away = false;
    return client;
}

/* CLIENT from a worker: a client that the worker knew before, or (client 0) the end of its report. */
void head_client_known(struct head *head, uint32_t host, const struct flow_entry *entry,
                       struct flow_effects *effects)
{
    if (entry->client == 0) {
        head->hosts.items[host].told_all = true;
        head_rejoin(head, effects);
        return;
    }
    if (head->hosts.items[host].told_all || entry->client > ENTRY_CLIENTS_MAX || entry->args[0] == 0 ||
        head_client_of(head, entry->client))
        return;
    struct head_client *client = head_client_new(head, entry->client, entry->args[0]);
    client->away = true;
    client->until_ns = head->now_ns + head->options.rejoin_ns;
    for (size_t h = 0; h < head->hosts.len; h++) {
        struct flow_entry told = {.kind = ENTRY_CLIENT, .client = client->id, .args = {client->token}};
        if (head->hosts.items[h].alive && h != host)
            flow_send(effects, head->hosts.items[h].peer, &told);
    }
}

/* Reads places with births. Returns NULL if the bytes are malformed. */
static struct head_places *head_places_read(struct unpack *in, uint32_t count, uint64_t **ret_births)
{
    if (in->bad || in->left / 16 < count)
        return NULL;
    struct head_places *places = head_places_new(count);
    *ret_births = mem_alloc(count * sizeof **ret_births + 1);
    for (uint32_t i = 0; i < count; i++) {
        places->places[i].host = unpack_u32(in, UINT32_MAX);
        places->places[i].device = unpack_u32(in, UINT32_MAX);
        (*ret_births)[i] = unpack_u64(in, UINT64_MAX);
    }
    return places;
}

static struct fault head_lost_before(void)
{
    return fault_make(FAULT_DEVICE_LOST, 0, 0, "a device was lost while there was no head");
}

void head_mesh_kept(struct head *head, struct head_client *client, const struct flow_entry *entry,
                    struct str tail)
{
    struct unpack in = {tail.data, tail.len, false};
    struct flow_mesh shape = {.rank = entry->count};
    uint32_t start[PROGRAM_MESH_RANK_MAX] = {0};
    struct head_mesh *parent = head_mesh_of(head, client->id, (uint32_t)entry->handle);
    uint64_t devices = 1;
    if (!client->tells || entry->node == 0 || shape.rank < 1 || shape.rank > PROGRAM_MESH_RANK_MAX ||
        u64_map_get(&head->mesh_index, (uint64_t)client->id << 32 | entry->node) ||
        !head_mesh_may_add(head, client) || (parent && parent->shape.rank != shape.rank))
        return;
    for (int32_t a = 0; a < shape.rank; a++) {
        shape.dims[a] = unpack_u32(&in, PROGRAM_DEVICES_MAX);
        devices *= shape.dims[a];
        if (in.bad || devices < 1 || devices > PROGRAM_DEVICES_MAX)
            return;
    }
    for (int32_t a = 0; a < shape.rank && parent; a++) {
        start[a] = unpack_u32(&in, parent->shape.dims[a] - 1);
        if (in.bad || shape.dims[a] > parent->shape.dims[a] - start[a])
            return;
    }
    struct head_mesh *mesh;
    if (parent) {
        mesh = head_mesh_part(head, parent, start, &shape);
    } else {
        uint64_t *births;
        struct head_places *places = head_places_read(&in, (uint32_t)devices, &births);
        if (!places)
            return;
        struct str island = {in.data, in.left < 63 ? in.left : 63};
        mesh = mem_alloc(sizeof *mesh);
        mesh->island = head_island_named(head, island);
        mesh->shape = shape;
        mesh->places = places;
        mesh->births = births;
        mesh->until_ns = head->now_ns + head->options.rejoin_ns;
        mesh->lost = head_lost_before();
    }
    mesh->id = entry->node;
    client->next_mesh = mesh->id > client->next_mesh ? mesh->id : client->next_mesh;
    head_mesh_add(head, client, mesh);
}

bool head_mesh_waits(const struct head_mesh *mesh)
{
    while (mesh->parent)
        mesh = mesh->parent;
    return mesh->births != NULL;
}

uint64_t *head_mesh_births(const struct head_mesh *mesh, int64_t *ret_until_ns)
{
    uint64_t *births = mem_alloc(mesh->places->count * sizeof *births + 1);
    for (uint32_t i = 0; i < mesh->places->count; i++) {
        const struct head_mesh *root = mesh;
        uint32_t at = i;
        for (; root->parent; root = root->parent)
            at = root->of_parent[at];
        births[i] = root->births[at];
        *ret_until_ns = root->until_ns;
    }
    return births;
}

enum head_place_state { PLACE_THERE, PLACE_TO_COME, PLACE_LOST };

static enum head_place_state head_place_judge(const struct head *head, struct lower_place place,
                                              uint64_t birth, int64_t until_ns)
{
    const struct head_host *host = place.host < head->hosts.len ? &head->hosts.items[place.host] : NULL;
    if (place.host >= PLAN_HOSTS_MAX) /* the virtual device had no place */
        return PLACE_LOST;
    if (!host || host->vacant)
        return head->now_ns < until_ns ? PLACE_TO_COME : PLACE_LOST;
    return host->alive && host->birth == birth && place.device < host->device_count ? PLACE_THERE
                                                                                    : PLACE_LOST;
}

/* Settles a kept mesh once no host of it is awaited. Returns whether devices of it are lost. */
static bool head_mesh_settle(struct head *head, struct head_mesh *mesh)
{
    bool lost = false, waits = false;
    for (uint32_t i = 0; i < mesh->places->count; i++) {
        enum head_place_state state =
            head_place_judge(head, mesh->places->places[i], mesh->births[i], mesh->until_ns);
        if (state == PLACE_THERE && head->hosts.items[mesh->places->places[i].host].island != mesh->island)
            state = PLACE_LOST;
        lost = lost || state == PLACE_LOST;
        waits = waits || state == PLACE_TO_COME;
    }
    if (waits)
        return false;
    struct head_places *places = mesh->places;
    if (lost) { /* values share the old record */
        mesh->places = head_places_new(places->count);
        memcpy(mesh->places->places, places->places, places->count * sizeof *places->places);
    }
    for (uint32_t i = 0; i < mesh->places->count; i++) {
        struct lower_place *place = &mesh->places->places[i];
        if (head_place_judge(head, *place, mesh->births[i], mesh->until_ns) == PLACE_THERE &&
            head->hosts.items[place->host].island == mesh->island)
            head->hosts.items[place->host].devices[place->device].load++;
        else
            *place = (struct lower_place){UINT32_MAX, 0};
    }
    if (lost)
        head_places_unref(places);
    for (size_t m = 0; m < head->meshes.len && lost; m++) { /* head_mesh_remap places slices again */
        struct head_mesh *slice = head->meshes.items[m];
        const struct head_mesh *root = slice;
        while (root->parent)
            root = root->parent;
        if (root != mesh || slice == mesh)
            continue;
        uint32_t count = slice->places->count;
        head_places_unref(slice->places);
        slice->places = head_places_new(count);
    }
    mesh->whole = !lost;
    mem_free(mesh->births);
    mesh->births = NULL;
    return lost;
}

static void head_kept_judge(struct head *head, struct head_client *client, struct head_object *object,
                            struct flow_effects *effects)
{
    struct fault fault = {0};
    bool waits = false;
    for (uint32_t i = 0; i < object->places->count && object->missing > 0; i++) {
        if (object->there[i] && object->kept)
            continue;
        struct lower_place place = object->places->places[i];
        enum head_place_state state = head_place_judge(head, place, object->births[i], object->until_ns);
        if (state == PLACE_LOST)
            fault = head_lost_before();
        else if (state == PLACE_TO_COME || (object->kept && !head->hosts.items[place.host].told_all))
            waits = true;
        else if (object->kept && fault.reason == FAULT_NONE)
            fault = fault_make(FAULT_CANCELLED, 0, 0,
                               "the head was lost before this value was there: launch again");
    }
    fault.lost = fault.reason != FAULT_NONE;
    if (waits && fault.reason == FAULT_NONE)
        return;
    mem_free(object->births);
    object->births = NULL;
    if (fault.reason == FAULT_NONE) {
        head_object_admit_kept(head, object, effects);
    } else {
        fault.launch = object->launch;
        object->missing = 0;
        object->fault = mem_alloc(sizeof fault);
        *object->fault = fault;
        head_value_fail(client, object->handle, &fault, effects);
    }
    head_object_try_release(head, client, object, effects);
}

void head_value_kept(struct head *head, struct head_client *client, const struct flow_entry *entry,
                     struct str tail, struct flow_effects *effects)
{
    struct unpack in = {tail.data, tail.len, false};
    struct program_value value = {.type = unpack_type(&in), .sharding.mesh = entry->node};
    const void *axes = unpack_bytes(&in, IR_RANK_MAX);
    if (axes)
        memcpy(value.sharding.axes, axes, IR_RANK_MAX);
    const struct head_mesh *mesh = head_mesh_of(head, client->id, entry->node);
    struct head_object *object = u64_map_get(&client->objects, entry->handle);
    if (in.bad || !client->tells || handle_client(entry->handle) != client->id ||
        (object && (object->places || object->fault)) || client->object_list.len >= HEAD_CLIENT_OBJECTS_MAX)
        return;
    if (!object)
        object = head_object_new(client, entry->handle, &value);
    object->value = value;
    object->kept = true;
    object->launch = entry->launch;
    uint64_t *births;
    bool fits = mesh && flow_sharding_verify(&value.type, &value.sharding, &mesh->shape, NULL) == 0;
    struct head_places *places = fits ? head_places_read(&in, mesh->places->count, &births) : NULL;
    if (!places) {
        struct fault fault = head_lost_before();
        object->fault = mem_alloc(sizeof fault);
        *object->fault = fault;
        head_value_fail(client, entry->handle, &fault, effects);
        head_value_take_early(head, object, effects);
        return;
    }
    if (memcmp(places->places, mesh->places->places, places->count * sizeof *places->places) == 0) {
        head_places_unref(places); /* a launch accepts values that share the record of their mesh */
        places = head_places_ref(mesh->places);
    }
    struct ir_type shard = flow_shard_type(&value.type, &value.sharding, &mesh->shape);
    object->shard_bytes = ir_type_bytes(&shard);
    object->places = places;
    object->births = births;
    object->until_ns = head->now_ns + head->options.rejoin_ns;
    object->missing = places->count;
    object->there = mem_alloc(places->count * sizeof *object->there + 1);
    head_value_take_early(head, object, effects);
    head_kept_judge(head, client, object, effects);
}

void head_client_told_all(struct head *head, struct head_client *client, const struct flow_entry *entry,
                          struct flow_effects *effects)
{
    if (!client->tells)
        return;
    client->tells = false;
    client->last_launch = client->finished = client->told = client->kept_launch = entry->launch;
    for (size_t h = 0; h < head->hosts.len; h++)
        if (head->hosts.items[h].alive)
            head_tell_client(client, head->hosts.items[h].peer, effects);
    client->last_put = entry->handle & HANDLE_NUMBER;
    for (size_t i = client->object_list.len; i-- > 0;) {
        struct head_object *object = client->object_list.items[i];
        bool is_new = object->handle & HANDLE_PUT && (object->handle & HANDLE_NUMBER) > client->last_put;
        if (object->places || object->fault || is_new) /* new: its shards were reported before its VALUE */
            continue; /* values that only workers report were released while there was no head */
        head_value_take_early(head, object, effects);
        head_object_end(head, client, object);
    }
    head_rejoin(head, effects);
}

void head_rejoin(struct head *head, struct flow_effects *effects)
{
    bool lost = false;
    for (size_t m = 0; m < head->meshes.len; m++) {
        struct head_mesh *mesh = head->meshes.items[m];
        if (mesh->births)
            lost = head_mesh_settle(head, mesh) || lost;
        else if (mesh->parent && !mesh->whole && mesh->parent->whole)
            mesh->whole = true; /* its places are its parent's, whose hosts have rejoined */
    }
    if (lost) {
        struct fault fault = head_lost_before();
        head_mesh_remap(head, &fault, effects);
    }
    for (size_t c = head->clients.len; c-- > 0;) {
        struct head_client *client = head->clients.items[c];
        for (size_t i = client->object_list.len; i-- > 0;)
            if (client->object_list.items[i]->births)
                head_kept_judge(head, client, client->object_list.items[i], effects);
        if (client->away && head->now_ns >= client->until_ns)
            head_client_gone(head, client, effects);
    }
}
