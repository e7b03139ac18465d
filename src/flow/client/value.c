/* Values: putting, fetching, releasing. */
#include "flow/client/client.h"

struct client_value *client_value_new(phx_flow *flow, uint64_t handle, const struct program_value *value,
                                      struct client_places *places)
{
    struct client_value *made = mem_alloc(sizeof *made);
    made->handle = made->name = handle;
    made->value = *value;
    made->places = client_places_ref(places);
    made->index = flow->value_list.len;
    vec_push(&flow->value_list, made);
    CHECK(u64_map_put(&flow->values, handle, made) == NULL);
    return made;
}

void client_value_free(phx_flow *flow, struct client_value *value)
{
    client_lineage_drop(flow, value);
    u64_map_remove(&flow->values, value->handle);
    if (value->name != value->handle)
        u64_map_remove(&flow->names, value->name);
    if (value->kept)
        flow->kept_bytes -= (uint64_t)ir_type_bytes(&value->value.type);
    mem_free(value->kept);
    flow->value_list.items[value->index] = vec_last(&flow->value_list);
    flow->value_list.items[value->index]->index = value->index;
    flow->value_list.len--;
    client_places_unref(value->places);
    mem_free(value->data);
    mem_free(value);
}

/* Releases a value, which the caller has released, once no call waits for it and no shard is being fetched.
 * Frees it once no remembered launch takes it. */
void client_value_rest(phx_flow *flow, struct client_value *value)
{
    if (!value->released || value->waiters || value->missing || value->missing_quiet)
        return;
    if (!value->ghost)
        buf_add(&flow->releases, &value->handle, sizeof value->handle);
    value->ghost = true;
    if (value->holds == 0)
        client_value_free(flow, value);
    if (flow->releases.len >= CLIENT_RELEASES_MAX * sizeof(uint64_t))
        client_flush_releases(flow);
}

void client_value_fail(phx_flow *flow, struct client_value *value, const struct fault *fault)
{
    if (value->state == CLIENT_FAILED)
        return;
    value->state = CLIENT_FAILED;
    value->fault = *fault;
    value->missing = value->missing_quiet = 0;
    client_value_rest(flow, value);
}

static struct fault client_lost(const struct client_host *host, uint32_t device)
{
    struct fault fault = fault_make(FAULT_DEVICE_LOST, 0, 0, "device %u of host %u is lost", device,
                                    host ? host->id : UINT32_MAX);
    if (host) {
        fault.island = host->island;
        fault.device = host->first_device + device;
        fault.incarnation = host->incarnation;
    }
    return fault;
}

/* Whether to fetch the shard of device `d`: it is the first with its part of the value. */
static bool client_is_first(const struct client_value *value, uint32_t d, struct flow_box *ret_box)
{
    uint32_t tile, other;
    const struct flow_mesh *shape = &value->places->shape;
    *ret_box = flow_shard_box(&value->value.type, &value->value.sharding, shape, d, &tile);
    for (uint32_t e = 0; e < d; e++) {
        flow_shard_box(&value->value.type, &value->value.sharding, shape, e, &other);
        if (other == tile)
            return false;
    }
    return true;
}

/* Returns the connection to the worker of the place, or NULL if that worker is lost, even if its number is in
 * use again. */
static struct client_connection *client_connection_at(phx_flow *flow, struct client_place place)
{
    const struct client_host *host = client_host(flow, place.host);
    return host && host->birth == place.birth ? client_connection_of(flow, place.host) : NULL;
}

/* Sends FETCH for the value to its workers: for its bytes, or (quiet) for a confirmation that it exists. */
static void client_ask_shards(phx_flow *flow, struct client_value *value, bool quiet)
{
    bool *asked = quiet ? &value->asked_quiet : &value->asked;
    uint32_t *missing = quiet ? &value->missing_quiet : &value->missing;
    if (*asked || value->state == CLIENT_FAILED)
        return;
    *asked = true;
    mem_free(quiet ? NULL : value->data);
    if (!quiet)
        value->data = mem_alloc((size_t)ir_type_bytes(&value->value.type) + 1);
    client_flush(flow);
    for (uint32_t d = 0; d < value->places->count && value->state != CLIENT_FAILED; d++) {
        struct flow_box box;
        if (!client_is_first(value, d, &box))
            continue;
        struct client_place place = value->places->items[d];
        struct client_connection *connection = client_connection_at(flow, place);
        if (!connection) {
            struct fault fault = client_lost(client_host(flow, place.host), place.device);
            client_value_fail(flow, value, &fault);
        }
        if (value->state == CLIENT_FAILED) /* client_connection_at may also have failed it */
            return;
        struct flow_entry entry = {.kind = ENTRY_FETCH, .handle = value->handle, .node = d};
        entry.epoch = value->asks;
        entry.flags = quiet ? ENTRY_IS_QUIET : 0;
        ++*missing;
        client_send_entry(flow, connection, &entry, (struct str){0}, true);
    }
}

void client_shard(phx_flow *flow, uint32_t host, const struct flow_entry *entry, struct str tail)
{
    struct client_value *value = u64_map_get(&flow->values, entry->handle);
    bool quiet = (entry->flags & ENTRY_IS_QUIET) != 0;
    if (!value || value->state == CLIENT_FAILED || entry->node >= value->places->count ||
        entry->epoch != value->asks)
        return;
    uint32_t *missing = quiet ? &value->missing_quiet : &value->missing;
    if (*missing == 0)
        return;
    struct flow_box box, whole = {0};
    client_is_first(value, entry->node, &box);
    if (entry->flags & ENTRY_IS_FAILED) {
        struct fault fault;
        fault_decode(tail, &fault);
        client_value_fail(flow, value, &fault);
        return;
    }
    if (!quiet && (int64_t)tail.len != flow_box_bytes(&value->value.type, &box)) {
        struct fault fault = fault_make(FAULT_CANCELLED, 0, 0, "host %u sent %zu bytes of a shard of %lld",
                                        host, tail.len, (long long)flow_box_bytes(&value->value.type, &box));
        client_value_fail(flow, value, &fault);
        return;
    }
    memcpy(whole.size, value->value.type.dims, sizeof whole.size);
    if (!quiet)
        flow_box_copy(&value->value.type, &box, tail.data, &box, value->data, &whole);
    if (--*missing == 0)
        value->seen = true;
    client_value_rest(flow, value);
}

void client_values_moved(phx_flow *flow, const struct client_places *from, struct client_places *to)
{
    for (size_t i = flow->value_list.len; i-- > 0; i = client_walk_on(flow, i)) {
        struct client_value *value = flow->value_list.items[i];
        if (value->places != from)
            continue;
        client_places_unref(value->places);
        value->places = client_places_ref(to);
        if (value->missing == 0 && value->missing_quiet == 0)
            continue;
        value->asks++;
        value->asked = value->asked && value->missing == 0;
        value->asked_quiet = value->asked_quiet && value->missing_quiet == 0;
        value->missing = value->missing_quiet = 0;
        client_value_rest(flow, value);
    }
}

void client_host_lost(phx_flow *flow, const struct client_host *host, enum fault_reason reason)
{
    for (size_t i = flow->value_list.len; i-- > 0; i = client_walk_on(flow, i)) {
        struct client_value *value = flow->value_list.items[i];
        uint32_t awaited = value->missing + value->missing_quiet, count = value->places->count;
        for (uint32_t d = 0; awaited > 0 && d < count; d++)
            if (value->places->items[d].host == host->id) {
                struct fault fault = client_lost(host, value->places->items[d].device);
                fault.reason = reason;
                client_value_fail(flow, value, &fault);
                break;
            }
    }
}

static void client_put_shards(phx_flow *flow, struct client_value *value, const void *data)
{
    struct flow_box whole = {0};
    const struct flow_mesh *shape = &value->places->shape;
    const struct ir_type *type = &value->value.type;
    memcpy(whole.size, type->dims, sizeof whole.size);
    struct ir_type shard = flow_shard_type(type, &value->value.sharding, shape);
    size_t bytes = (size_t)ir_type_bytes(&shard);
    for (uint32_t d = 0; d < value->places->count; d++) {
        struct client_place place = value->places->items[d];
        struct client_connection *connection = client_connection_at(flow, place);
        if (!connection) { /* the head has the value already, and learns here that this shard does not come */
            client_report_down(flow, place.host);
            struct fault fault = client_lost(client_host(flow, place.host), place.device);
            client_value_fail(flow, value, &fault);
            return;
        }
        struct flow_box box = flow_shard_box(type, &value->value.sharding, shape, d, NULL);
        struct buf tail = {0};
        pack_type(&tail, &shard);
        buf_reserve(&tail, bytes + 1);
        flow_box_copy(type, &box, data, &whole, tail.data + tail.len, &box);
        tail.len += bytes;
        struct flow_entry entry = {.kind = ENTRY_PUT, .handle = value->handle, .node = d};
        client_send_entry(flow, connection, &entry, buf_str(&tail), true);
        buf_done(&tail);
    }
}

void client_value_send(phx_flow *flow, struct client_value *value, const void *data)
{
    struct flow_entry entry = {.kind = ENTRY_VALUE, .handle = value->handle};
    entry.node = value->value.sharding.mesh;
    entry.epoch = flow->epoch;
    struct buf tail = {0};
    pack_type(&tail, &value->value.type);
    buf_add(&tail, value->value.sharding.axes, sizeof value->value.sharding.axes);
    client_send_entry(flow, &flow->head, &entry, buf_str(&tail), true);
    buf_done(&tail);
    client_put_shards(flow, value, data);
}

uint64_t phx_flow_put(phx_flow *flow, const struct phx_flow_type *type,
                      const struct phx_flow_sharding *sharding, const void *data, size_t len,
                      struct phx_error *error)
{
    struct program_value value = {.sharding = flow_sharding_of_public(sharding)};
    struct error why;
    if (!ir_type_of_public(type, &value.type)) {
        client_error(error, PHX_ERROR_INVALID, "no such type");
        return 0;
    }
    if ((int64_t)len != ir_type_bytes(&value.type) || len > ENTRY_TAIL_MAX / 2) {
        client_error(error, PHX_ERROR_INVALID, "the value has %lld bytes, not %zu",
                     (long long)ir_type_bytes(&value.type), len);
        return 0;
    }
    pthread_mutex_lock(&flow->mutex);
    client_wait_to_run(flow);
    const struct client_mesh *mesh = client_mesh(flow, sharding->mesh);
    uint64_t handle = 0;
    if (!mesh)
        client_error(error, PHX_ERROR_INVALID, "no mesh %u", sharding->mesh);
    else if (flow_sharding_verify(&value.type, &value.sharding, &mesh->places->shape, &why) < 0)
        client_error_of(error, &why);
    else if (flow->broken)
        client_error(error, PHX_ERROR_IO, "the connection to the head is lost");
    else {
        handle = (uint64_t)flow->id << HANDLE_CLIENT_SHIFT | HANDLE_PUT | ++flow->next_put;
        struct client_value *made = client_value_new(flow, handle, &value, mesh->places);
        if (flow->rerun_launches)
            client_value_keep(flow, made, data, len);
        client_value_send(flow, made, data);
    }
    pthread_mutex_unlock(&flow->mutex);
    return handle;
}

void client_catch_up(phx_flow *flow)
{
    struct flow_entry entry = {.kind = ENTRY_ISLANDS};
    struct client_request request = {0};
    client_ask(flow, &entry, (struct str){0}, &request, NULL);
    buf_done(&request.tail);
}

static void client_failure(const struct fault *fault, struct phx_flow_failure *failure)
{
    if (!failure)
        return;
    *failure = (struct phx_flow_failure){.reason = (enum phx_flow_reason)fault->reason};
    failure->island = fault->island;
    failure->device = fault->device;
    failure->incarnation = fault->incarnation;
    failure->launch = fault->launch;
    failure->node = fault->node;
    memcpy(failure->message, fault->text, sizeof failure->message);
}

_Static_assert((int)PHX_FLOW_OUT_OF_MEMORY == (int)FAULT_OUT_OF_MEMORY &&
                   (int)PHX_FLOW_DEVICE_LOST == (int)FAULT_DEVICE_LOST,
               "reasons have the same numbers");

/* Waits for the shards of a value. Recomputes the value if it was lost. */
static void client_await_shards(phx_flow *flow, struct client_value *value, bool quiet, int64_t deadline_ns)
{
    const bool *asked = quiet ? &value->asked_quiet : &value->asked;
    const uint32_t *missing = quiet ? &value->missing_quiet : &value->missing;
    bool waits = true;
    while (waits) {
        client_ask_shards(flow, value, quiet);
        while (value->state != CLIENT_FAILED && *missing > 0 && waits)
            waits = client_wait(flow, deadline_ns);
        if (value->state == CLIENT_FAILED)
            waits = client_rerun(flow, value, deadline_ns);
        else if (*asked) /* otherwise another thread has recomputed it meanwhile */
            break;
    }
}

/* Waits for the value, and copies it if `data` is not NULL. */
static int client_await(phx_flow *flow, uint64_t handle, void *data, size_t len, int64_t timeout_ms,
                        struct phx_flow_failure *failure, struct phx_error *error)
{
    int64_t deadline_ns = client_deadline_ns(timeout_ms);
    if (failure)
        *failure = (struct phx_flow_failure){.reason = PHX_FLOW_FAILED_NOT};
    pthread_mutex_lock(&flow->mutex);
    struct client_value *value = client_value_of(flow, handle);
    int rc = 0;
    if (!value || value->released)
        rc = client_error(error, PHX_ERROR_INVALID, "the handle names no value of this connection");
    else if (data && (int64_t)len != ir_type_bytes(&value->value.type))
        rc = client_error(error, PHX_ERROR_INVALID, "the value has %lld bytes, not %zu",
                          (long long)ir_type_bytes(&value->value.type), len);
    if (rc == 0) {
        value->waiters++;
        const uint32_t *missing = data ? &value->missing : &value->missing_quiet;
        client_await_shards(flow, value, data == NULL, deadline_ns);
        if (value->state == CLIENT_FAILED) {
            if (value->fault.reason == FAULT_DEVICE_LOST)
                client_catch_up(flow);
            client_failure(&value->fault, failure);
            rc = client_error(error, PHX_ERROR_PEER, "%.240s", value->fault.text);
        } else if (*missing > 0) {
            rc = flow->broken ? client_error(error, PHX_ERROR_IO, "the connection to the head is lost")
                              : client_error(error, PHX_ERROR_TIMEOUT, "the value is not there yet");
        } else if (data) {
            value->tries = 0;
            mem_copy(data, value->data, len);
        }
        value->waiters--;
        client_value_rest(flow, value);
    }
    pthread_mutex_unlock(&flow->mutex);
    return rc;
}

int phx_flow_get(phx_flow *flow, uint64_t value, void *data, size_t len, int64_t timeout_ms,
                 struct phx_flow_failure *failure, struct phx_error *error)
{
    char none;
    return client_await(flow, value, len ? data : &none, len, timeout_ms, failure, error);
}

int phx_flow_wait(phx_flow *flow, uint64_t value, int64_t timeout_ms, struct phx_flow_failure *failure,
                  struct phx_error *error)
{
    return client_await(flow, value, NULL, 0, timeout_ms, failure, error);
}

int phx_flow_fetch(phx_flow *flow, uint64_t handle, struct phx_error *error)
{
    pthread_mutex_lock(&flow->mutex);
    struct client_value *value = client_value_of(flow, handle);
    int rc = 0;
    if (value && !value->released)
        client_ask_shards(flow, value, false);
    else
        rc = client_error(error, PHX_ERROR_INVALID, "the handle names no value of this connection");
    pthread_mutex_unlock(&flow->mutex);
    return rc;
}

void phx_flow_release(phx_flow *flow, uint64_t handle)
{
    pthread_mutex_lock(&flow->mutex);
    struct client_value *value = client_value_of(flow, handle);
    if (value && !value->released) {
        value->released = true;
        client_value_rest(flow, value);
    }
    pthread_mutex_unlock(&flow->mutex);
}
