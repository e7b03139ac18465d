/* Islands and meshes. */
#include "flow/client/client.h"

#include <stdio.h>

struct client_places *client_places_ref(struct client_places *places)
{
    places->references++;
    return places;
}

void client_places_unref(struct client_places *places)
{
    if (places && --places->references == 0)
        mem_free(places);
}

struct client_mesh *client_mesh(phx_flow *flow, uint32_t id)
{
    return u64_map_get(&flow->mesh_index, id);
}

/* MESH: the answer to a request, or new places of a mesh. */
void client_mesh_told(phx_flow *flow, const struct flow_entry *entry, struct str tail)
{
    struct unpack in = {tail.data, tail.len, false};
    struct flow_mesh shape = {.id = entry->node, .rank = entry->count};
    if (shape.rank < 1 || shape.rank > PROGRAM_MESH_RANK_MAX)
        return;
    for (int32_t a = 0; a < shape.rank; a++)
        shape.dims[a] = unpack_u32(&in, PROGRAM_DEVICES_MAX);
    uint32_t count = in.bad ? 0 : flow_mesh_devices(&shape);
    if (count == 0 || in.left / 8 < count)
        return;
    struct client_places *places = mem_alloc(sizeof *places + count * sizeof *places->items);
    places->references = 1;
    places->count = count;
    places->shape = shape;
    for (uint32_t i = 0; i < count; i++) {
        places->items[i].host = unpack_u32(&in, UINT32_MAX);
        places->items[i].device = unpack_u32(&in, UINT32_MAX);
        const struct client_host *host = client_host(flow, places->items[i].host);
        places->items[i].birth = host ? host->birth : 0;
    }
    struct client_mesh *mesh = client_mesh(flow, entry->node);
    if (!mesh) {
        mesh = mem_alloc(sizeof *mesh);
        mesh->id = entry->node;
        vec_push(&flow->meshes, mesh);
        u64_map_put(&flow->mesh_index, mesh->id, mesh);
    }
    struct client_places *before = mesh->places;
    mesh->places = places;
    if (before && entry->flags & ENTRY_IS_KEPT)
        client_values_moved(flow, before, places);
    client_places_unref(before);
    snprintf(mesh->island, sizeof mesh->island, STR_FORMAT, (int)in.left, in.data);
    if (entry->epoch > flow->epoch)
        flow->epoch = entry->epoch;
}

void client_suspend(phx_flow *flow, const struct flow_entry *entry)
{
    flow->suspended = true;
    client_send_entry(flow, &flow->head, entry, (struct str){0}, true);
}

int client_ask(phx_flow *flow, struct flow_entry *entry, struct str tail, struct client_request *request,
               struct phx_error *error)
{
    request->number = entry->launch = ++flow->next_request;
    request->next = flow->requests;
    flow->requests = request;
    while (!request->answered &&
           !flow->broken) { /* if the head is lost meanwhile, the next one must answer */
        client_wait_for_head(flow);
        uint64_t rejoins = flow->rejoins;
        client_send_entry(flow, &flow->head, entry, tail, true);
        while (!request->answered && !flow->away && rejoins == flow->rejoins && client_wait(flow, INT64_MAX))
            ;
    }
    struct client_request **at = &flow->requests;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    if (!request->answered)
        return client_error(error, PHX_ERROR_IO, "the connection to the head is lost");
    if (request->failed)
        return client_error(error, PHX_ERROR_INVALID, "%.240s", request->fault.text);
    return 0;
}

int phx_flow_islands(phx_flow *flow, struct phx_flow_island *islands, uint32_t max, uint32_t *ret_count,
                     struct phx_error *error)
{
    struct flow_entry entry = {.kind = ENTRY_ISLANDS};
    struct client_request request = {0};
    pthread_mutex_lock(&flow->mutex);
    int rc = client_ask(flow, &entry, (struct str){0}, &request, error);
    pthread_mutex_unlock(&flow->mutex);
    uint32_t count = (uint32_t)(request.tail.len / sizeof(struct flow_island_row));
    for (uint32_t i = 0; rc == 0 && i < count && i < max; i++) {
        struct flow_island_row row;
        memcpy(&row, request.tail.data + i * sizeof row, sizeof row);
        islands[i] = (struct phx_flow_island){row.id, row.hosts, row.devices, row.free_devices, {0}};
        memcpy(islands[i].name, row.name, sizeof row.name);
        islands[i].name[sizeof row.name - 1] = 0;
    }
    if (rc == 0)
        *ret_count = count;
    buf_done(&request.tail);
    return rc;
}

/* Requests a mesh, or, if `start` is not NULL, a slice that begins there. */
static int client_ask_mesh(phx_flow *flow, struct flow_entry *entry, struct str tail, const uint32_t *start,
                           struct phx_flow_mesh *ret_mesh, struct phx_error *error)
{
    struct client_request request = {0};
    pthread_mutex_lock(&flow->mutex);
    int rc = client_ask(flow, entry, tail, &request, error);
    struct client_mesh *mesh = rc == 0 ? client_mesh(flow, request.mesh) : NULL;
    if (rc == 0 && !mesh)
        rc = client_error(error, PHX_ERROR_CORRUPT, "the head's answer cannot be read");
    if (rc == 0) {
        if (start) {
            mesh->parent = entry->node;
            memcpy(mesh->start, start, (size_t)mesh->places->shape.rank * sizeof *start);
        }
        *ret_mesh = (struct phx_flow_mesh){.id = mesh->id, .rank = mesh->places->shape.rank};
        memcpy(ret_mesh->dims, mesh->places->shape.dims, sizeof ret_mesh->dims);
        memcpy(ret_mesh->island, mesh->island, sizeof ret_mesh->island);
    }
    pthread_mutex_unlock(&flow->mutex);
    buf_done(&request.tail);
    return rc;
}

int phx_flow_mesh_new(phx_flow *flow, const struct phx_flow_mesh_options *options,
                      struct phx_flow_mesh *ret_mesh, struct phx_error *error)
{
    if (options->rank < 1 || options->rank > PHX_FLOW_MESH_RANK_MAX)
        return client_error(error, PHX_ERROR_INVALID, "a mesh has 1 to %d axes, not %d",
                            PHX_FLOW_MESH_RANK_MAX, options->rank);
    struct flow_entry entry = {.kind = ENTRY_MESH_NEW, .count = (uint16_t)options->rank};
    struct buf tail = {0};
    for (int32_t a = 0; a < options->rank; a++)
        pack_u32(&tail, options->dims[a]);
    buf_add_str(&tail, str_from(options->island));
    int rc = client_ask_mesh(flow, &entry, buf_str(&tail), NULL, ret_mesh, error);
    buf_done(&tail);
    return rc;
}

int phx_flow_mesh_slice(phx_flow *flow, uint32_t mesh, const uint32_t *start, const uint32_t *dims,
                        struct phx_flow_mesh *ret_mesh, struct phx_error *error)
{
    pthread_mutex_lock(&flow->mutex);
    const struct client_mesh *parent = client_mesh(flow, mesh);
    int32_t rank = parent ? parent->places->shape.rank : 0;
    pthread_mutex_unlock(&flow->mutex);
    if (rank == 0)
        return client_error(error, PHX_ERROR_INVALID, "no mesh %u", mesh);
    struct flow_entry entry = {.kind = ENTRY_MESH_SLICE, .node = mesh, .count = (uint16_t)rank};
    struct buf tail = {0};
    for (int32_t a = 0; a < rank; a++)
        pack_u32(&tail, start[a]);
    for (int32_t a = 0; a < rank; a++)
        pack_u32(&tail, dims[a]);
    int rc = client_ask_mesh(flow, &entry, buf_str(&tail), start, ret_mesh, error);
    buf_done(&tail);
    return rc;
}

void phx_flow_mesh_free(phx_flow *flow, uint32_t id)
{
    pthread_mutex_lock(&flow->mutex);
    struct client_mesh *mesh = client_mesh(flow, id);
    for (size_t i = 0; mesh && i < flow->meshes.len; i++)
        if (flow->meshes.items[i] == mesh) {
            vec_remove(&flow->meshes, i);
            u64_map_remove(&flow->mesh_index, id);
            client_places_unref(mesh->places);
            mem_free(mesh);
            client_send_entry(flow, &flow->head, &(struct flow_entry){.kind = ENTRY_MESH_FREE, .node = id},
                              (struct str){0}, false);
            break;
        }
    pthread_mutex_unlock(&flow->mutex);
}
