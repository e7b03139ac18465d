/* Values that clients own: their places and memory accounting. */
#include "flow/island/head.h"

struct head_object *head_object_new(struct head_client *client, uint64_t handle,
                                    const struct program_value *value)
{
    struct head_object *object = mem_alloc(sizeof *object);
    object->handle = handle;
    object->value = *value;
    list_init(&object->recent);
    object->index = client->object_list.len;
    vec_push(&client->object_list, object);
    CHECK(u64_map_put(&client->objects, handle, object) == NULL);
    return object;
}

/* Adds `bytes` for each shard to the memory that holds it: its device's, or, if spilled, its host's. */
static void head_object_weigh(const struct head *head, const struct head_object *object, int64_t bytes)
{
    for (uint32_t i = 0; object->places && i < object->places->count; i++) {
        struct lower_place place = object->places->places[i];
        if (place.host >= head->hosts.len || !head->hosts.items[place.host].alive)
            continue;
        struct head_host *host = &head->hosts.items[place.host];
        *(object->spilled ? &host->spilled_bytes : &host->devices[place.device].used_bytes) += bytes;
    }
}

void head_object_count_idle(const struct head *head, const struct head_object *object, int sign)
{
    if (!object->charged || object->spilled || object->running > 0)
        return;
    for (uint32_t i = 0; i < object->places->count; i++) {
        struct lower_place place = object->places->places[i];
        if (head_place_alive(head, place))
            head->hosts.items[place.host].devices[place.device].idle_bytes += sign * object->shard_bytes;
    }
}

void head_object_charge(struct head *head, struct head_object *object)
{
    CHECK(!object->charged);
    object->charged = true;
    head_object_weigh(head, object, object->shard_bytes);
    head_object_count_idle(head, object, 1);
    if (object->spilled)
        head->spilled++;
    else
        list_append(&head->recent, &object->recent);
}

void head_object_uncharge(struct head *head, struct head_object *object)
{
    if (!object->charged)
        return;
    head_object_count_idle(head, object, -1);
    object->charged = false;
    head_object_weigh(head, object, -object->shard_bytes);
    list_remove(&object->recent);
    head->spilled -= object->spilled;
    head->room_epoch++;
}

void head_object_moves(struct head_object *object)
{
    CHECK(object->missing == 0 && !object->from && !object->births);
    mem_free(object->there);
    object->there = mem_alloc(object->places->count * sizeof *object->there + 1);
    object->missing = object->places->count;
    object->from = head_places_ref(object->places);
    object->broke_ns = 0;
}

void head_object_fail(const struct head_client *client, struct head_object *object, const struct fault *fault,
                      struct flow_effects *effects)
{
    object->missing = 0;
    object->parked = false;
    head_places_unref(object->from);
    object->from = NULL;
    mem_free(object->births);
    object->births = NULL;
    if (object->fault)
        return;
    object->fault = mem_alloc(sizeof *fault);
    *object->fault = *fault;
    if (object->fault->launch == 0)
        object->fault->launch = object->launch;
    head_value_fail(client, object->handle, object->fault, effects);
}

void head_object_end(struct head *head, struct head_client *client, struct head_object *object)
{
    head_object_uncharge(head, object);
    u64_map_remove(&client->objects, object->handle);
    CHECK(client->object_list.items[object->index] == object);
    client->object_list.items[object->index] = vec_last(&client->object_list);
    client->object_list.items[object->index]->index = object->index;
    client->object_list.len--;
    head_places_unref(object->places);
    head_places_unref(object->from);
    vec_done(&object->early);
    mem_free(object->there);
    mem_free(object->births);
    mem_free(object->fault);
    mem_free(object);
}

static void head_release_shard(const struct head *head, uint32_t host, uint64_t handle,
                               struct flow_effects *effects)
{
    struct flow_entry entry = {.kind = ENTRY_RELEASE, .client = handle_client(handle)};
    pack_u64(&flow_send(effects, head->hosts.items[host].peer, &entry)->tail, handle);
}

/* Records a shard that a host reports. Only the shard that the value has on that host counts. Otherwise a
 * client that puts wrong shards could start a launch on devices that would wait for the missing ones. */
static void head_object_came(struct head *head, struct head_object *object, uint32_t host, uint32_t shard,
                             bool spilled)
{
    if (object->missing == 0 || shard >= object->places->count || object->there[shard] ||
        object->places->places[shard].host != host ||
        (object->births && object->births[shard] != head->hosts.items[host].birth) ||
        object->places->places[shard].device >= head->hosts.items[host].device_count)
        return;
    object->there[shard] = true;
    if (spilled && !object->charged) /* from before this head: its other shards are spilled too */
        object->spilled = true;
    head->room_epoch++;
    if (--object->missing > 0)
        return;
    head_places_unref(object->from);
    object->from = NULL;
}

static bool head_object_is_on(const struct head_object *object, uint32_t host)
{
    for (uint32_t i = 0; i < object->places->count; i++)
        if (object->places->places[i].host == host)
            return true;
    return false;
}

/* Forwards the release to the hosts that hold a shard, with one entry for each host. */
void head_object_release(struct head *head, struct head_client *client, struct head_object *object,
                         struct flow_effects *effects)
{
    struct head_places *places = object->places;
    for (uint32_t i = 0; places && i < places->count && !object->rides; i++) {
        uint32_t host = places->places[i].host;
        bool first = host < head->hosts.len && head->hosts.items[host].alive;
        for (uint32_t k = 0; k < i && first; k++)
            first = places->places[k].host != host;
        if (!first)
            continue;
        struct flow_entry entry = {.kind = ENTRY_RELEASE, .client = client->id};
        entry.flags = object->kept ? ENTRY_IS_KEPT : 0;
        struct flow_effect *effect = flow_send(effects, head->hosts.items[host].peer, &entry);
        pack_u64(&effect->tail, object->handle);
    }
    head_object_end(head, client, object);
}

void head_value_fail(const struct head_client *client, uint64_t handle, const struct fault *fault,
                     struct flow_effects *effects)
{
    struct flow_entry failed = {.kind = ENTRY_FAILED, .handle = handle, .count = 1};
    fault_encode(fault, &flow_send(effects, client->peer, &failed)->tail);
}

/* Accounts for the shards that arrived before the head knew of their value. Releases them if the value has no
 * places. */
void head_value_take_early(struct head *head, struct head_object *object, struct flow_effects *effects)
{
    for (size_t i = 0; i < object->early.len; i++) {
        struct head_early early = object->early.items[i];
        if (object->places)
            head_object_came(head, object, early.host, early.shard, early.spilled);
        else if (head->hosts.items[early.host].alive)
            head_release_shard(head, early.host, object->handle, effects);
    }
    vec_clear(&object->early);
}

/* VALUE: the client is about to put the value of this handle. */
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
        (object && object->early.len == 0))
        return;
    uint64_t number = entry->handle & HANDLE_NUMBER;
    client->last_put = number > client->last_put ? number : client->last_put;
    struct fault fault = {0};
    if (!object && client->object_list.len >= HEAD_CLIENT_OBJECTS_MAX) {
        fault = fault_make(FAULT_OUT_OF_MEMORY, 0, 0, "a client may have %d values", HEAD_CLIENT_OBJECTS_MAX);
        head_value_fail(client, entry->handle, &fault, effects);
        return;
    }
    if (!object)
        object = head_object_new(client, entry->handle, &value);
    object->value = value;
    if (client->state == CLIENT_SAVES || (mesh && head_mesh_parked(mesh))) {
        fault = fault_make(FAULT_CANCELLED, 0, 0, "the value was put while its client was suspended");
        fault.lost = true; /* the client may put it again */
    } else if (!mesh || flow_sharding_verify(&value.type, &value.sharding, &mesh->shape, NULL) < 0) {
        fault = fault_make(FAULT_CANCELLED, 0, 0, "the value's mesh is not there, or does not divide it");
    } else if (entry->epoch < mesh->epoch || (!mesh->whole && !head_mesh_waits(mesh))) {
        fault = mesh->lost;
    }
    if (fault.reason == FAULT_NONE) {
        struct ir_type shard = flow_shard_type(&value.type, &value.sharding, &mesh->shape);
        object->shard_bytes = ir_type_bytes(&shard);
        object->places = head_places_ref(mesh->places);
        object->missing = mesh->places->count;
        object->there = mem_alloc(object->missing * sizeof *object->there + 1);
        if (head_mesh_waits(mesh)) {
            object->births = head_mesh_births(mesh, &object->until_ns);
            head_value_take_early(head, object, effects);
            return;
        }
        if (head_object_admit(head, object, &fault)) {
            if (object->spilled)
                head_object_tell_spilled(head, object, effects);
            head_value_take_early(head, object, effects);
            return;
        }
    }
    object->fault = mem_alloc(sizeof fault);
    *object->fault = fault;
    head_value_fail(client, entry->handle, &fault, effects);
    head_value_take_early(head, object, effects);
}

void head_put_done(struct head *head, uint32_t host, const struct flow_entry *entry,
                   struct flow_effects *effects)
{
    struct head_client *client = head_client_of(head, handle_client(entry->handle));
    if (!client)
        return;
    struct head_object *object = u64_map_get(&client->objects, entry->handle);
    bool known = object && (object->places || object->fault);
    bool over = !client->tells && !client->away && /* a result that its client has not reported is released */
                ((entry->handle & HANDLE_NUMBER) <= client->last_put || !(entry->handle & HANDLE_PUT));
    if (known && object->places) {
        bool waits = object->missing > 0;
        head_object_came(head, object, host, entry->node, entry->count != 0);
        if (!head_object_is_on(object, host)) /* moved there by order of an earlier head */
            head_release_shard(head, host, entry->handle, effects);
        else if (waits && object->missing == 0 && !object->births)
            head_object_try_release(head, client, object, effects);
    } else if (known || over) {
        head_release_shard(head, host, entry->handle, effects); /* the value has failed, or is released */
    } else if (object || client->object_list.len < HEAD_CLIENT_OBJECTS_MAX) {
        if (!object)
            object = head_object_new(client, entry->handle, &(struct program_value){0});
        if (object->early.len < PROGRAM_DEVICES_MAX)
            vec_push(&object->early, ((struct head_early){host, entry->node, entry->count != 0}));
    }
}

void head_object_try_release(struct head *head, struct head_client *client, struct head_object *object,
                             struct flow_effects *effects)
{
    bool whole = object->parked || (object->missing == 0 && !object->births);
    if (object->released && object->pending == 0 && whole && (object->places || object->fault))
        head_object_release(head, client, object, effects);
}

/* Fails the values that were being put, or moved, to a host that is lost, or moved from it. */
void head_objects_lost(struct head *head, uint32_t host, const struct fault *fault,
                       struct flow_effects *effects)
{
    for (size_t c = 0; c < head->clients.len; c++) {
        struct head_client *client = head->clients.items[c];
        for (size_t i = client->object_list.len; i-- > 0;) {
            struct head_object *object = client->object_list.items[i];
            bool hurt = false;
            for (uint32_t k = 0; object->missing > 0 && k < object->places->count && !hurt; k++)
                hurt = object->places->places[k].host == host ||
                       (object->from && !object->there[k] && object->from->places[k].host == host);
            if (!hurt)
                continue;
            /* The client may be waiting for shards on other hosts that were never made, or were lost on the
             * way (head_break.c). */
            head_object_fail(client, object, fault, effects);
            head_object_try_release(head, client, object, effects);
        }
    }
}
