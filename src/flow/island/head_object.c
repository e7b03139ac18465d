/* Values that clients own: where they are and what they weigh. */
#include "flow/island/head.h"

struct head_object *head_object_new(struct head_client *client, uint64_t handle,
                                    const struct program_value *value)
{
    struct head_object *object = mem_alloc(sizeof *object);
    object->handle = handle;
    object->value = *value;
    object->index = client->object_list.len;
    vec_push(&client->object_list, object);
    CHECK(u64_map_put(&client->objects, handle, object) == NULL);
    return object;
}

static void head_object_weigh(struct head *head, const struct head_object *object, int64_t bytes)
{
    for (uint32_t i = 0; object->places && i < object->places->count; i++) {
        struct lower_place place = object->places->places[i];
        if (place.host < head->hosts.len && head->hosts.items[place.host].alive)
            head->hosts.items[place.host].devices[place.device].used_bytes += bytes;
    }
}

void head_object_charge(struct head *head, struct head_object *object)
{
    CHECK(!object->charged);
    object->charged = true;
    head_object_weigh(head, object, object->shard_bytes);
}

void head_object_end(struct head *head, struct head_client *client, struct head_object *object)
{
    if (object->charged)
        head_object_weigh(head, object, -object->shard_bytes);
    u64_map_remove(&client->objects, object->handle);
    CHECK(client->object_list.items[object->index] == object);
    client->object_list.items[object->index] = vec_last(&client->object_list);
    client->object_list.items[object->index]->index = object->index;
    client->object_list.len--;
    head_places_unref(object->places);
    mem_free(object->fault);
    mem_free(object);
}

/* Hands the release on to the hosts that hold a shard; several of the same host get one entry. */
void head_object_release(struct head *head, struct head_client *client, struct head_object *object,
                         struct flow_effects *effects)
{
    struct head_places *places = object->places;
    for (uint32_t i = 0; places && i < places->count; i++) {
        uint32_t host = places->places[i].host;
        bool first = host < head->hosts.len && head->hosts.items[host].alive;
        for (uint32_t k = 0; k < i && first; k++)
            first = places->places[k].host != host;
        if (!first)
            continue;
        struct flow_entry entry = {.kind = ENTRY_RELEASE, .client = client->id};
        struct flow_effect *effect = flow_send(effects, head->hosts.items[host].peer, &entry);
        pack_u64(&effect->tail, object->handle);
    }
    head_object_end(head, client, object);
}

/* Whether each device has room for its shard; otherwise *ret says which has not. */
static bool head_object_fits(const struct head *head, const struct head_object *object, struct fault *ret)
{
    for (uint32_t i = 0; i < object->places->count; i++) {
        struct lower_place place = object->places->places[i];
        const struct head_host *host = &head->hosts.items[place.host];
        int64_t used = host->devices[place.device].used_bytes;
        if (object->shard_bytes <= host->device_bytes - used)
            continue;
        *ret = fault_make(FAULT_OUT_OF_MEMORY, 0, 0,
                          "a shard has %lld bytes, %lld of %lld of device %u are in use",
                          (long long)object->shard_bytes, (long long)used, (long long)host->device_bytes,
                          host->first_device + place.device);
        ret->island = host->island;
        ret->device = host->first_device + place.device;
        ret->incarnation = host->incarnation;
        return false;
    }
    return true;
}

/* VALUE: a handle that the client is about to put. */
void head_value(struct head *head, struct head_client *client, const struct flow_entry *entry,
                struct str tail, struct flow_effects *effects)
{
    struct unpack in = {tail.data, tail.len, false};
    struct program_value value = {.type = unpack_type(&in), .sharding.mesh = entry->node};
    const void *axes = unpack_bytes(&in, IR_RANK_MAX);
    if (axes)
        memcpy(value.sharding.axes, axes, IR_RANK_MAX);
    struct head_mesh *mesh = head_mesh_of(head, client->id, entry->node);
    struct head_object *object = u64_map_get(&client->objects, entry->handle);
    if (in.bad || !(entry->handle & HANDLE_PUT) || handle_client(entry->handle) != client->id ||
        (object && object->early == 0))
        return;
    if (!object)
        object = head_object_new(client, entry->handle, &value);
    object->value = value;
    uint32_t early = object->early;
    object->early = 0;
    struct fault fault = {0};
    if (!mesh || flow_sharding_verify(&value.type, &value.sharding, &mesh->shape, NULL) < 0)
        fault = fault_make(FAULT_CANCELLED, 0, 0, "the value's mesh is not there, or does not divide it");
    else if (entry->epoch < mesh->epoch || !mesh->whole)
        fault = mesh->lost;
    if (fault.reason == FAULT_NONE) {
        struct ir_type shard = flow_shard_type(&value.type, &value.sharding, &mesh->shape);
        object->shard_bytes = ir_type_bytes(&shard);
        object->places = head_places_ref(mesh->places);
        object->missing = mesh->places->count > early ? mesh->places->count - early : 0;
        if (head_object_fits(head, object, &fault)) {
            head_object_charge(head, object);
            return;
        }
    }
    object->fault = mem_alloc(sizeof fault);
    *object->fault = fault;
    struct flow_entry failed = {.kind = ENTRY_FAILED, .handle = entry->handle, .count = 1};
    fault_encode(&fault, &flow_send(effects, client->peer, &failed)->tail);
}

void head_put_done(struct head *head, const struct flow_entry *entry, struct flow_effects *effects)
{
    for (size_t c = 0; c < head->clients.len; c++) {
        struct head_client *client = head->clients.items[c];
        if (client->id != handle_client(entry->handle))
            continue;
        struct head_object *object = u64_map_get(&client->objects, entry->handle);
        if (!object && !(entry->handle & HANDLE_PUT))
            return;
        if (!object)
            object = head_object_new(client, entry->handle, &(struct program_value){0});
        if (!object->places && !object->fault)
            object->early++;
        else if (object->missing > 0 && --object->missing == 0)
            head_object_try_release(head, client, object, effects);
    }
}

void head_object_try_release(struct head *head, struct head_client *client, struct head_object *object,
                             struct flow_effects *effects)
{
    if (object->released && object->pending == 0 && object->missing == 0 && (object->places || object->fault))
        head_object_release(head, client, object, effects);
}

/* Values that were being put to a host that is lost will not be whole. */
void head_objects_lost(struct head *head, uint32_t host, const struct fault *fault,
                       struct flow_effects *effects)
{
    for (size_t c = 0; c < head->clients.len; c++) {
        struct head_client *client = head->clients.items[c];
        for (size_t i = client->object_list.len; i-- > 0;) {
            struct head_object *object = client->object_list.items[i];
            bool hurt = false;
            for (uint32_t k = 0; object->missing > 0 && k < object->places->count && !hurt; k++)
                hurt = object->places->places[k].host == host;
            if (!hurt)
                continue;
            object->missing = 0;
            if (!object->fault) {
                object->fault = mem_alloc(sizeof *fault);
                *object->fault = *fault;
            }
            head_object_try_release(head, client, object, effects);
        }
    }
}
