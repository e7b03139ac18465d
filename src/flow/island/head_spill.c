/* Values that move from the memory of devices to that of their hosts, and return.
 *
 * A plan is made for one launch, and carried out when the launch is stamped, in one step of the head: each
 * host receives SPILL, then FILL, then LAUNCH, so a ticket never waits for memory. Values are spilled in the
 * order of their last use. Values that running launches or the launch itself use are not spilled, nor are
 * incomplete values. The host memory of values that return is available to those that are spilled. */
#include "flow/island/head.h"

/* A plan: the memory wanted on devices, and the values that move for it. */
struct head_plan {
    VEC(struct lower_place) devices; /* on which memory is wanted */
    VEC(struct head_object *) leave, come;
    uint32_t short_count; /* devices that are still short of memory */
};

static int64_t sum_bytes(int64_t a, int64_t b)
{
    return b > INT64_MAX - a ? INT64_MAX : a + b;
}

static struct head_host *plan_host(const struct head *head, struct lower_place place)
{
    return head_place_alive(head, place) ? &head->hosts.items[place.host] : NULL;
}

static void plan_want(const struct head *head, struct head_plan *plan, struct lower_place place,
                      int64_t bytes)
{
    struct head_host *host = plan_host(head, place);
    if (!host || bytes == 0)
        return;
    struct head_device *device = &host->devices[place.device];
    if (device->wanted_bytes == 0)
        vec_push(&plan->devices, place);
    device->wanted_bytes = sum_bytes(device->wanted_bytes, bytes);
}

static void plan_want_value(const struct head *head, struct head_plan *plan, const struct head_object *object)
{
    for (uint32_t i = 0; i < object->places->count; i++)
        plan_want(head, plan, object->places->places[i], object->shard_bytes);
}

/* Computes how many bytes each device lacks. */
static void plan_measure(const struct head *head, struct head_plan *plan)
{
    for (size_t i = 0; i < plan->devices.len; i++) {
        const struct head_host *host = &head->hosts.items[plan->devices.items[i].host];
        struct head_device *device = &host->devices[plan->devices.items[i].device];
        int64_t free_bytes = host->device_bytes - device->used_bytes;
        device->short_bytes =
            free_bytes < 0 ? sum_bytes(device->wanted_bytes, -free_bytes) : device->wanted_bytes - free_bytes;
        plan->short_count += device->short_bytes > 0;
    }
}

/* Adds `bytes` for each shard to the memory that its host will need. Returns false if a host then lacks
 * space. */
static bool plan_arrive(const struct head *head, const struct head_object *object, int64_t bytes)
{
    bool fits = true;
    for (uint32_t i = 0; i < object->places->count; i++) {
        struct head_host *host = plan_host(head, object->places->places[i]);
        if (!host)
            continue;
        host->arriving_bytes += bytes;
        fits = fits && host->arriving_bytes <= host->host_bytes - host->spilled_bytes;
    }
    return fits;
}

static void plan_begin(const struct head *head, struct head_plan *plan, const struct head_launch *launch)
{
    const struct head_program *program = launch->program;
    for (uint32_t k = 0; k < program->need_count; k++)
        plan_want(head, plan, (struct lower_place){program->needs[k].host, program->needs[k].device},
                  program->needs[k].bytes);
    for (uint32_t i = 0; i < launch->entry.count; i++) {
        struct head_object *object = u64_map_get(&launch->client->objects, launch->args[i]);
        if (!object || object->planned)
            continue;
        object->planned = true;
        if (!object->charged || !object->spilled)
            continue;
        vec_push(&plan->come, object);
        plan_want_value(head, plan, object);
        plan_arrive(head, object, -object->shard_bytes);
    }
    plan_measure(head, plan);
}

static void plan_end(const struct head *head, struct head_plan *plan, const struct head_launch *launch)
{
    for (size_t i = 0; i < plan->devices.len; i++) {
        struct lower_place place = plan->devices.items[i];
        struct head_device *device = &head->hosts.items[place.host].devices[place.device];
        device->wanted_bytes = device->short_bytes = 0;
    }
    for (size_t i = 0; i < plan->come.len; i++)
        plan_arrive(head, plan->come.items[i], plan->come.items[i]->shard_bytes);
    for (size_t i = 0; i < plan->leave.len; i++) {
        plan_arrive(head, plan->leave.items[i], -plan->leave.items[i]->shard_bytes);
        plan->leave.items[i]->planned = false;
    }
    for (uint32_t i = 0; launch && i < launch->entry.count; i++) {
        struct head_object *object = u64_map_get(&launch->client->objects, launch->args[i]);
        if (object)
            object->planned = false;
    }
    vec_done(&plan->devices);
    vec_done(&plan->leave);
    vec_done(&plan->come);
}

/* Whether a value on devices may be spilled, and would free memory on a device that lacks it. */
static bool plan_may_leave(const struct head *head, const struct head_object *object)
{
    if (object->running > 0 || object->planned || object->parked || object->fault || object->births ||
        object->missing > 0)
        return false;
    for (uint32_t i = 0; i < object->places->count; i++) {
        const struct head_host *host = plan_host(head, object->places->places[i]);
        if (host && host->devices[object->places->places[i].device].short_bytes > 0)
            return true;
    }
    return false;
}

static void plan_leave(const struct head *head, struct head_plan *plan, struct head_object *object)
{
    if (!plan_arrive(head, object, object->shard_bytes)) {
        plan_arrive(head, object, -object->shard_bytes);
        return;
    }
    object->planned = true;
    vec_push(&plan->leave, object);
    for (uint32_t i = 0; i < object->places->count; i++) {
        const struct head_host *host = plan_host(head, object->places->places[i]);
        if (!host)
            continue;
        struct head_device *device = &host->devices[object->places->places[i].device];
        bool was_short = device->short_bytes > 0;
        device->short_bytes -= object->shard_bytes;
        plan->short_count -= was_short && device->short_bytes <= 0;
    }
}

/* Whether a device lacks more than spilling can free, for example because running launches use all of it.
 * Then no value need be examined. */
static bool plan_is_vain(const struct head *head, const struct head_plan *plan)
{
    for (size_t i = 0; i < plan->devices.len; i++) {
        struct lower_place place = plan->devices.items[i];
        const struct head_device *device = &head->hosts.items[place.host].devices[place.device];
        if (device->short_bytes > device->idle_bytes)
            return true;
    }
    return false;
}

/* Chooses the values to spill. Returns false if they do not free enough. */
static bool plan_choose(const struct head *head, struct head_plan *plan)
{
    if (plan->short_count > 0 && plan_is_vain(head, plan))
        return false;
    list_for_each(node, &head->recent)
    {
        if (plan->short_count == 0)
            break;
        struct head_object *object = container_of(node, struct head_object, recent);
        if (plan_may_leave(head, object))
            plan_leave(head, plan, object);
    }
    return plan->short_count == 0;
}

/* --- carrying out --------------------------------------------------------------------------------------- */

/* Sends SPILL or FILL with the handles of `objects`, one entry to each host of their places. */
static void head_say(const struct head *head, enum entry_kind kind, struct head_object *const *objects,
                     size_t count, struct flow_effects *effects)
{
    struct buf *of_host = mem_alloc(head->hosts.len * sizeof *of_host + 1);
    for (size_t k = 0; k < count; k++) {
        const struct head_places *places = objects[k]->places;
        for (uint32_t i = 0; i < places->count; i++) {
            bool first = plan_host(head, places->places[i]) != NULL;
            for (uint32_t before = 0; before < i && first; before++)
                first = places->places[before].host != places->places[i].host;
            if (first)
                pack_u64(&of_host[places->places[i].host], objects[k]->handle);
        }
    }
    for (size_t h = 0; h < head->hosts.len; h++) {
        if (of_host[h].len > 0)
            buf_add_str(
                &flow_send(effects, head->hosts.items[h].peer, &(struct flow_entry){.kind = kind})->tail,
                buf_str(&of_host[h]));
        buf_done(&of_host[h]);
    }
    mem_free(of_host);
}

void head_object_tell_spilled(const struct head *head, const struct head_object *object,
                              struct flow_effects *effects)
{
    head_say(head, ENTRY_SPILL, (struct head_object *const[]){(struct head_object *)object}, 1, effects);
}

bool head_has_spilled(const struct head *head, uint64_t handle)
{
    const struct head_client *client = head_client_of(head, handle_client(handle));
    const struct head_object *object = client ? u64_map_get(&client->objects, handle) : NULL;
    return object && object->charged && object->spilled;
}

static void head_object_move(struct head *head, struct head_object *object, bool spilled)
{
    head_object_uncharge(head, object);
    object->spilled = spilled;
    head_object_charge(head, object);
    *(spilled ? &head->tally.spills : &head->tally.fills) += 1;
    for (uint32_t i = 0; i < object->places->count; i++) {
        struct head_host *host = plan_host(head, object->places->places[i]);
        if (host)
            *(spilled ? &host->spilled_in_all : &host->filled_in_all) += (uint64_t)object->shard_bytes;
    }
}

bool head_launch_make_room(struct head *head, struct head_launch *launch, struct flow_effects *effects)
{
    struct head_plan plan = {0};
    plan_begin(head, &plan, launch);
    bool fits = plan_choose(head, &plan);
    if (fits) {
        for (size_t i = 0; i < plan.leave.len; i++)
            head_object_move(head, plan.leave.items[i], true);
        for (size_t i = 0; i < plan.come.len; i++)
            head_object_move(head, plan.come.items[i], false);
        head_say(head, ENTRY_SPILL, plan.leave.items, plan.leave.len, effects);
        head_say(head, ENTRY_FILL, plan.come.items, plan.come.len, effects);
    }
    plan_end(head, &plan, launch);
    return fits;
}

/* --- checks --------------------------------------------------------------------------------------------- */

/* Whether the launch fits into the memory as it is, with all its arguments on devices. */
static bool head_launch_fits_now(const struct head *head, const struct head_launch *launch)
{
    const struct head_program *program = launch->program;
    for (uint32_t k = 0; k < program->need_count; k++) {
        const struct head_host *host = &head->hosts.items[program->needs[k].host];
        int64_t used = host->devices[program->needs[k].device].used_bytes;
        if (program->needs[k].bytes > host->device_bytes - used)
            return false;
    }
    for (uint32_t i = 0; i < launch->entry.count && head->spilled > 0; i++) {
        const struct head_object *object = u64_map_get(&launch->client->objects, launch->args[i]);
        if (object && object->spilled)
            return false;
    }
    return true;
}

bool head_launch_finds_room(struct head *head, struct head_launch *launch)
{
    launch->makes_room = false;
    if (head_launch_fits_now(head, launch))
        return true;
    if (launch->no_room == head->room_epoch)
        return false;
    struct head_plan plan = {0};
    plan_begin(head, &plan, launch);
    launch->makes_room = plan_choose(head, &plan);
    plan_end(head, &plan, launch);
    launch->no_room = launch->makes_room ? 0 : head->room_epoch;
    return launch->makes_room;
}

/* Returns a device that lacks memory in a plan: preferably one that could never hold what is wanted,
 * otherwise the first. NULL if no device lacks any. */
static const struct lower_place *plan_lacks(const struct head *head, const struct head_plan *plan,
                                            bool *ret_never)
{
    const struct lower_place *found = NULL;
    *ret_never = false;
    for (size_t i = 0; i < plan->devices.len && !*ret_never; i++) {
        const struct lower_place *place = &plan->devices.items[i];
        const struct head_host *host = &head->hosts.items[place->host];
        if (host->devices[place->device].short_bytes <= 0)
            continue;
        *ret_never = host->devices[place->device].wanted_bytes > host->device_bytes;
        if (!found || *ret_never)
            found = place;
    }
    return found;
}

static struct fault plan_fault(const struct head *head, const struct lower_place *place, const char *who)
{
    const struct head_host *host = &head->hosts.items[place->host];
    const struct head_device *device = &host->devices[place->device];
    struct fault fault = fault_make(
        FAULT_OUT_OF_MEMORY, 0, 0,
        "%s needs %lld bytes on device %u: %lld of %lld are in use, and %lld of %lld of its host's memory",
        who, (long long)device->wanted_bytes, host->first_device + place->device,
        (long long)device->used_bytes, (long long)host->device_bytes, (long long)host->spilled_bytes,
        (long long)host->host_bytes);
    fault.island = host->island;
    fault.device = host->first_device + place->device;
    fault.incarnation = host->incarnation;
    return fault;
}

bool head_launch_lacks(const struct head *head, const struct head_launch *launch, bool *ret_never,
                       struct fault *ret_fault)
{
    struct head_plan plan = {0};
    plan_begin(head, &plan, launch);
    const struct lower_place *place = plan_lacks(head, &plan, ret_never);
    if (place)
        *ret_fault = plan_fault(head, place, "the program");
    plan_end(head, &plan, launch);
    return place != NULL;
}

/* --- new values ----------------------------------------------------------------------------------------- */

/* Whether the hosts of the value's places have the memory for it. No shard of it is larger than a device. */
static bool hosts_have_room(const struct head *head, const struct head_object *object)
{
    bool fits = plan_arrive(head, object, object->shard_bytes);
    plan_arrive(head, object, -object->shard_bytes);
    return fits;
}

bool head_object_admit(struct head *head, struct head_object *object, struct fault *ret_fault)
{
    struct head_plan plan = {0};
    bool never;
    plan_want_value(head, &plan, object);
    plan_measure(head, &plan);
    const struct lower_place *place = plan_lacks(head, &plan, &never);
    object->spilled = place && !never && hosts_have_room(head, object);
    bool fits = !place || object->spilled;
    if (fits)
        head_object_charge(head, object);
    else
        *ret_fault = plan_fault(head, place, "a value");
    plan_end(head, &plan, NULL);
    return fits;
}

void head_object_admit_kept(struct head *head, struct head_object *object, struct flow_effects *effects)
{
    struct fault fault;
    if (object->spilled ||
        !head_object_admit(head, object, &fault)) /* existing values are charged in any case */
        head_object_charge(head, object);
    if (object->spilled)
        head_object_tell_spilled(head, object, effects);
}

/* --- use ------------------------------------------------------------------------------------------------ */

void head_launch_use_args(struct head *head, struct head_launch *launch)
{
    for (uint32_t i = 0; i < launch->entry.count; i++) {
        struct head_object *object = u64_map_get(&launch->client->objects, launch->args[i]);
        if (!object)
            continue;
        CHECK(!object->spilled);
        head_object_count_idle(head, object, -1);
        object->running++;
        if (!object->charged)
            continue;
        list_remove(&object->recent);
        list_append(&head->recent, &object->recent);
    }
}

void head_launch_end_use(struct head *head, const struct head_launch *launch)
{
    for (uint32_t i = 0; i < launch->entry.count && !launch->client->gone; i++) {
        struct head_object *object = u64_map_get(&launch->client->objects, launch->args[i]);
        if (!object || object->running == 0) /* released in the meantime, or a new value of that handle */
            continue;
        object->running--;
        head_object_count_idle(head, object, 1);
    }
    head->room_epoch++;
}
