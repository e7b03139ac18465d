/* Lineage: recomputes values that were lost with a device, a host or a head, so that the caller sees no
 * failure.
 *
 * A launch is remembered, with its arguments, while one of its results is. An argument that the client has
 * released is kept here as a record, without bytes anywhere. Lineage ends at roots: values whose bytes the
 * client has, because it put them or requested a checkpoint. A lost value is detected when it is waited for
 * or taken as an argument. Launches are repeated under new handles; the caller's names stay valid.
 *
 * The client does not know for certain whether an argument made on workers is whole. A fault names the launch
 * that failed first, so everything that depends on that launch is recomputed. If that is not enough, the next
 * fault names another launch. */
#include "flow/client/client.h"

#include "flow/wire/clock.h"

enum { CLIENT_RERUN_TRIES = 8 }; /* recomputations of one value without a successful fetch */
/* How long to wait for a mesh that lacks devices. */
#define CLIENT_RERUN_WAIT_NS (INT64_C(30) * 1000 * 1000 * 1000)

struct client_value *client_value_of(phx_flow *flow, uint64_t name)
{
    struct client_value *value = u64_map_get(&flow->names, name);
    return value ? value : u64_map_get(&flow->values, name);
}

static void client_launch_unref(phx_flow *flow, struct client_launch *launch)
{
    if (--launch->references > 0)
        return;
    for (uint32_t i = 0; i < launch->arg_count; i++) {
        launch->args[i]->holds--;
        client_value_rest(flow, launch->args[i]);
    }
    launch->program->launches--;
    client_program_rest(launch->program);
    mem_free(launch->args);
    mem_free(launch->results);
    mem_free(launch);
}

void client_lineage_drop(phx_flow *flow, struct client_value *value)
{
    struct client_launch *maker = value->maker;
    if (!maker)
        return;
    value->maker = NULL;
    maker->results[value->of_maker] = NULL;
    client_launch_unref(flow, maker);
}

void client_lineage_add(phx_flow *flow, phx_flow_program *program, const uint64_t *args, uint32_t arg_count,
                        const struct flow_entry *entry)
{
    uint32_t depth = 1;
    for (uint32_t i = 0; i < arg_count; i++) {
        const struct client_value *arg = client_value_of(flow, args[i]);
        if (!arg || arg->released || (!arg->kept && !arg->maker))
            return;
        if (!arg->kept && arg->maker->depth >= depth)
            depth = arg->maker->depth + 1;
    }
    if (depth > flow->rerun_launches || entry->node == 0)
        return;
    struct client_launch *launch = mem_alloc(sizeof *launch);
    launch->number = entry->launch;
    launch->depth = depth;
    launch->references = launch->result_count = entry->node;
    launch->arg_count = arg_count;
    launch->program = program;
    program->launches++;
    launch->args = mem_alloc((arg_count + 1) * sizeof(struct client_value *));
    launch->results = mem_alloc(entry->node * sizeof(struct client_value *));
    for (uint32_t i = 0; i < arg_count; i++) {
        launch->args[i] = client_value_of(flow, args[i]);
        launch->args[i]->holds++;
    }
    for (uint32_t i = 0; i < entry->node; i++) {
        struct client_value *result = u64_map_get(&flow->values, entry->handle + i);
        launch->results[i] = result;
        result->maker = launch;
        result->of_maker = i;
    }
}

bool client_value_keep(phx_flow *flow, struct client_value *value, const void *data, size_t len)
{
    if (value->kept)
        return true;
    if (len > flow->rerun_bytes - flow->kept_bytes)
        return false;
    value->kept = mem_alloc(len + 1);
    mem_copy(value->kept, data, len);
    flow->kept_bytes += len;
    client_lineage_drop(flow, value);
    return true;
}

/* A search for the launches and puts to repeat after a loss. */
struct client_rerun {
    phx_flow *flow;
    uint64_t number;       /* marks the launches that this search has examined */
    uint64_t first_failed; /* the launch that failed first */
    uint32_t launches;     /* number of launches to repeat */
    bool waits;            /* a mesh lacks devices */
    VEC(struct client_value *) touched;
};

/* Whether the launch, or one that it depends on, is the one that failed first, so that its results may have
 * failed. */
static bool client_launch_is_doubted(struct client_rerun *rerun, struct client_launch *launch)
{
    if (launch->looked == rerun->number)
        return launch->doubted;
    launch->looked = rerun->number;
    launch->failed = launch->failed || launch->number == rerun->first_failed;
    launch->doubted = launch->failed;
    for (uint32_t i = 0; i < launch->arg_count; i++) {
        const struct client_value *arg = launch->args[i];
        if (arg->state == CLIENT_FAILED ||
            (arg->maker && !arg->seen && client_launch_is_doubted(rerun, arg->maker)))
            launch->doubted = true;
    }
    return launch->doubted;
}

/* Whether the value exists on the current devices of its mesh. */
static bool client_value_is_there(phx_flow *flow, const struct client_value *value)
{
    const struct client_mesh *mesh = client_mesh(flow, value->value.sharding.mesh);
    return value->state != CLIENT_FAILED && !value->ghost && mesh && mesh->places == value->places;
}

static bool client_value_is_sound(struct client_rerun *rerun, const struct client_value *value)
{
    return client_value_is_there(rerun->flow, value) &&
           (!value->maker || value->seen || !client_launch_is_doubted(rerun, value->maker));
}

static bool client_mesh_is_there(struct client_rerun *rerun, const struct client_value *value)
{
    const struct client_mesh *mesh = client_mesh(rerun->flow, value->value.sharding.mesh);
    for (uint32_t i = 0; mesh && i < mesh->places->count; i++)
        if (mesh->places->items[i].host == UINT32_MAX)
            rerun->waits = true;
    return mesh != NULL;
}

/* Counts the launches that recompute the value. Returns false if that is impossible, or exceeds the bound. */
static bool client_rerun_plan(struct client_rerun *rerun, const struct client_value *value)
{
    if (client_value_is_sound(rerun, value))
        return true;
    struct client_launch *launch = value->maker;
    if (!client_mesh_is_there(rerun, value) || (!launch && !value->kept))
        return false;
    if (value->kept || launch->planned == rerun->number)
        return true;
    launch->planned = rerun->number;
    if (++rerun->launches > rerun->flow->rerun_launches)
        return false;
    for (uint32_t i = 0; i < launch->result_count; i++)
        if (launch->results[i] && !client_mesh_is_there(rerun, launch->results[i]))
            return false;
    for (uint32_t i = 0; i < launch->arg_count; i++)
        if (!client_rerun_plan(rerun, launch->args[i]))
            return false;
    return true;
}

/* Gives the value a new handle and the state of a value just made. */
static void client_value_rename(struct client_rerun *rerun, struct client_value *value, uint64_t handle)
{
    phx_flow *flow = rerun->flow;
    if (!value->ghost)
        buf_add(&flow->releases, &value->handle, sizeof value->handle);
    u64_map_remove(&flow->values, value->handle);
    CHECK(u64_map_put(&flow->values, handle, value) == NULL);
    u64_map_put(&flow->names, value->name, value);
    value->handle = handle;
    value->state = CLIENT_PENDING;
    value->ghost = value->seen = value->asked = value->asked_quiet = false;
    value->missing = value->missing_quiet = 0;
    mem_free(value->data);
    value->data = NULL;
    const struct client_mesh *mesh = client_mesh(flow, value->value.sharding.mesh);
    struct client_places *old = value->places;
    value->places = client_places_ref(mesh ? mesh->places : old);
    client_places_unref(old);
    value->holds++;
    vec_push(&rerun->touched, value);
}

static void client_launch_again(struct client_rerun *rerun, struct client_launch *launch)
{
    phx_flow *flow = rerun->flow;
    uint64_t *handles = mem_alloc((launch->arg_count + 1) * sizeof *handles);
    for (uint32_t i = 0; i < launch->arg_count; i++)
        handles[i] = launch->args[i]->handle;
    struct flow_entry entry = {.node = launch->result_count};
    client_launch_send(flow, launch->program, handles, launch->arg_count, &entry);
    mem_free(handles);
    launch->number = entry.launch;
    for (uint32_t i = 0; i < launch->result_count; i++) {
        struct client_value *result = launch->results[i];
        uint64_t handle = entry.handle + i;
        if (result && !client_value_is_sound(rerun, result)) {
            client_value_rename(rerun, result, handle);
            result->launch = entry.launch;
        } else {
            buf_add(&flow->releases, &handle, sizeof handle);
        }
    }
    launch->looked = rerun->number;
    launch->failed = launch->doubted = false;
    flow->reruns.launches++;
}

static void client_rerun_make(struct client_rerun *rerun, struct client_value *value)
{
    phx_flow *flow = rerun->flow;
    if (client_value_is_sound(rerun, value))
        return;
    if (value->kept) {
        uint64_t handle = (uint64_t)flow->id << HANDLE_CLIENT_SHIFT | HANDLE_PUT | ++flow->next_put;
        client_value_rename(rerun, value, handle);
        value->launch = 0;
        client_value_send(flow, value, value->kept);
        flow->reruns.puts++;
        return;
    }
    for (uint32_t i = 0; i < value->maker->arg_count; i++)
        client_rerun_make(rerun, value->maker->args[i]);
    client_launch_again(rerun, value->maker);
}

/* Waits until the head has reported the fate of the hosts that have the value. Returns false if the time has
 * expired. */
static bool client_wait_for_word(phx_flow *flow, const struct client_value *value, int64_t deadline_ns)
{
    client_catch_up(flow);
    for (uint32_t i = 0; i < value->places->count;) {
        const struct client_host *host = client_host(flow, value->places->items[i].host);
        if (!host || !host->connection || host->connection->dead_ns == 0)
            i++;
        else if (!client_wait(flow, deadline_ns))
            return false;
    }
    return true;
}

bool client_rerun(phx_flow *flow, struct client_value *value, int64_t deadline_ns)
{
    bool has_failed = value->state == CLIENT_FAILED;
    if (flow->rerun_launches == 0 || (has_failed && !value->fault.lost) ||
        value->tries >= CLIENT_RERUN_TRIES || !client_wait_for_word(flow, value, deadline_ns))
        return false;
    int64_t latest_ns = flow_now_ns() + CLIENT_RERUN_WAIT_NS;
    deadline_ns = deadline_ns < latest_ns ? deadline_ns : latest_ns;
    struct client_rerun rerun = {.flow = flow, .first_failed = has_failed ? value->fault.launch : 0};
    bool good;
    do {
        client_wait_to_run(flow);
        rerun.number = ++flow->rerun_number;
        rerun.launches = 0;
        rerun.waits = false;
        good = !flow->broken && client_rerun_plan(&rerun, value);
    } while (good && rerun.waits && client_wait(flow, deadline_ns));
    if (!good || rerun.waits)
        return false;
    value->tries++;
    flow->reruns.losses++;
    client_rerun_make(&rerun, value);
    for (size_t i = 0; i < rerun.touched.len; i++) {
        rerun.touched.items[i]->holds--;
        client_value_rest(flow, rerun.touched.items[i]);
    }
    vec_done(&rerun.touched);
    client_flush(flow);
    return true;
}

uint64_t *client_args_today(phx_flow *flow, const uint64_t *args, uint32_t arg_count)
{
    uint64_t *handles = mem_alloc((arg_count + 1) * sizeof *handles);
    pthread_mutex_lock(&flow->mutex);
    for (uint32_t i = 0; i < arg_count; i++) {
        struct client_value *value = client_value_of(flow, args[i]);
        if (value && !value->released && !client_value_is_there(flow, value)) {
            value->waiters++;
            client_rerun(flow, value, INT64_MAX);
            value->waiters--;
        }
        handles[i] = value ? value->handle : args[i];
    }
    pthread_mutex_unlock(&flow->mutex);
    return handles;
}

void phx_flow_count_reruns(phx_flow *flow, struct phx_flow_reruns *ret)
{
    pthread_mutex_lock(&flow->mutex);
    *ret = flow->reruns;
    pthread_mutex_unlock(&flow->mutex);
}

int phx_flow_checkpoint(phx_flow *flow, uint64_t handle, int64_t timeout_ms, struct phx_flow_failure *failure,
                        struct phx_error *error)
{
    pthread_mutex_lock(&flow->mutex);
    const struct client_value *found = client_value_of(flow, handle);
    size_t len = found ? (size_t)ir_type_bytes(&found->value.type) : 0;
    pthread_mutex_unlock(&flow->mutex);
    char *data = mem_alloc(len + 1);
    int rc = phx_flow_get(flow, handle, data, len, timeout_ms, failure, error);
    pthread_mutex_lock(&flow->mutex);
    struct client_value *value = client_value_of(flow, handle);
    if (rc == 0 && (!value || !client_value_keep(flow, value, data, len)))
        rc =
            client_error(error, PHX_ERROR_INVALID, "a checkpoint of %zu bytes does not fit rerun_bytes", len);
    pthread_mutex_unlock(&flow->mutex);
    mem_free(data);
    return rc;
}
