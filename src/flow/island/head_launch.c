/* Programs, and the scheduler, which decides which launch gets the next ticket of its island. */
#include "flow/island/head.h"

static void head_program_forget_plans(struct head_program *program)
{
    lower_free(program->plans, program->plan_count);
    mem_free(program->needs);
    program->plans = NULL;
    program->needs = NULL;
    program->plan_count = program->need_count = 0;
    vec_clear(&program->islands);
    program->lowered = false;
}

static void head_program_end(struct head_program *program)
{
    head_program_forget_plans(program);
    vec_done(&program->islands);
    program_free(program->program);
    mem_free(program->wrong);
    mem_free(program);
}

static void head_program_drop(struct head_client *client, struct head_program *program)
{
    for (size_t i = 0; i < client->program_list.len; i++)
        if (client->program_list.items[i] == program) {
            vec_remove(&client->program_list, i);
            break;
        }
    client->text_bytes -= program->bytes;
    head_program_end(program);
}

void head_program_rest(struct head *head, struct head_client *client, struct head_program *program,
                       struct flow_effects *effects)
{
    if (u64_map_get(&client->programs, program->id) == program)
        u64_map_remove(&client->programs, program->id);
    if (program->references > 0) /* workers need its plan for the launches that are queued here */
        return;
    struct flow_entry entry = {.kind = ENTRY_PROGRAM_FREE, .client = client->id, .program = program->id};
    for (size_t h = 0; h < head->hosts.len && !client->gone; h++)
        if (head->hosts.items[h].alive)
            flow_send(effects, head->hosts.items[h].peer, &entry);
    head_program_drop(client, program);
}

bool head_client_pays(struct head_client *client, size_t bytes)
{
    if (bytes > HEAD_CLIENT_TEXT_BYTES_MAX - client->text_bytes)
        return false;
    client->text_bytes += bytes;
    return true;
}

/* PROGRAM: an error in it is reported to the launches of the program. */
void head_program(struct head *head, struct head_client *client, const struct flow_entry *entry,
                  struct str tail)
{
    if (u64_map_get(&client->programs, entry->program) || entry->program == 0 ||
        client->program_list.len >= HEAD_CLIENT_TEXTS_MAX || !head_client_pays(client, tail.len))
        return;
    struct head_program *program = mem_alloc(sizeof *program);
    program->id = entry->program;
    program->bytes = tail.len;
    program->estimate_ns = NS_OF_UNKNOWN_PROGRAM;
    struct error error = {0};
    if (program_decode(tail, &program->program, &error) < 0) {
        program->wrong = mem_alloc(ERROR_TEXT_MAX);
        memcpy(program->wrong, error.text, ERROR_TEXT_MAX);
    }
    vec_push(&client->program_list, program);
    u64_map_put(&client->programs, program->id, program);
}

static void head_launch_free(struct head_launch *launch)
{
    if (launch->program)
        launch->program->references--;
    vec_done(&launch->hosts);
    vec_done(&launch->islands);
    mem_free(launch->needs);
    mem_free(launch->args);
    mem_free(launch);
}

static void head_launch_end(struct head *head, struct head_launch *launch, struct flow_effects *effects)
{
    struct head_client *client = launch->client;
    struct head_program *program = launch->program;
    head_launch_free(launch);
    if (program && program->freed)
        head_program_rest(head, client, program, effects);
}

static void head_launch_drop_args(struct head *head, struct head_launch *launch, struct flow_effects *effects)
{
    for (uint32_t i = 0; i < launch->entry.count; i++) {
        struct head_object *object = u64_map_get(&launch->client->objects, launch->args[i]);
        if (!object)
            continue;
        CHECK(object->pending > 0);
        object->pending--;
        head_object_try_release(head, launch->client, object, effects);
    }
}

/* Sends PROGRESS if at least `least` launches have ended since the last one. The library's window is many
 * times as wide, so the rest may wait for a tick: a PROGRESS for each launch would wake the client
 * needlessly. */
static void head_client_tell(struct head_client *client, uint64_t least, struct flow_effects *effects)
{
    if (client->gone || client->finished - client->told < least)
        return;
    client->told = client->finished;
    flow_send(effects, client->peer,
              &(struct flow_entry){.kind = ENTRY_PROGRESS, .launch = client->finished});
}

/* Releases the results that the client had released while their launch was queued. */
static void head_launch_release(struct head *head, struct head_launch *launch, struct flow_effects *effects)
{
    for (uint32_t i = 0; i < launch->entry.node; i++) {
        struct head_object *object = u64_map_get(&launch->client->objects, launch->entry.handle + i);
        if (object)
            head_object_try_release(head, launch->client, object, effects);
    }
}

static struct head_launch *head_queue_pop(struct head_client *client)
{
    struct head_launch *launch = client->queue.items[client->queue_first++];
    client->queued_args -= launch->entry.count;
    size_t left = client->queue.len - client->queue_first;
    if (left == 0 || (client->queue_first > 1024 && left < client->queue_first)) {
        memmove(client->queue.items, client->queue.items + client->queue_first,
                left * sizeof *client->queue.items);
        client->queue.len = left;
        client->queue_first = 0;
    }
    return launch;
}

/* Ends a launch that has not been stamped. */
static void head_launch_fail(struct head *head, struct head_launch *launch, const struct fault *fault,
                             struct flow_effects *effects)
{
    struct head_client *client = launch->client;
    struct flow_entry failed = {.kind = ENTRY_FAILED, .launch = launch->entry.launch};
    failed.handle = launch->entry.handle;
    failed.count = (uint16_t)launch->entry.node;
    fault_encode(fault, &flow_send(effects, client->peer, &failed)->tail);
    for (uint32_t i = 0; i < launch->entry.node; i++) {
        struct head_object *object = u64_map_get(&client->objects, launch->entry.handle + i);
        if (!object)
            continue;
        object->fault = mem_alloc(sizeof *fault);
        *object->fault = *fault;
    }
    head_launch_release(head, launch, effects);
    head_launch_drop_args(head, launch, effects);
    client->finished++;
    head_account_launch(head, launch, true, effects);
    head_launch_end(head, launch, effects);
}

/* Whether the entry obeys the protocol. A client that violates it is disconnected. */
static bool head_launch_allowed(const struct head_client *client, const struct flow_entry *entry)
{
    uint64_t number = entry->handle & HANDLE_NUMBER;
    if (entry->launch <= client->last_launch) /* workers know a launch by its number */
        return false;
    if (client->queue.len - client->queue_first >= HEAD_CLIENT_LAUNCHES_MAX || entry->node > ENTRY_ARGS_MAX)
        return false;
    if (entry->node == 0)
        return true;
    if (handle_client(entry->handle) != client->id || (entry->handle & HANDLE_PUT) ||
        number > HANDLE_NUMBER - entry->node)
        return false;
    for (uint32_t i = 0; i < entry->node; i++)
        if (u64_map_get(&client->objects, entry->handle + i))
            return false;
    return true;
}

/* Fails a launch beyond the bounds of its client; no state of it remains. */
static void head_launch_refuse(struct head *head, struct head_client *client, const struct flow_entry *entry,
                               struct flow_effects *effects)
{
    struct fault fault = fault_make(FAULT_OUT_OF_MEMORY, entry->launch, 0,
                                    "a client may have %d values, and %d arguments of waiting launches",
                                    HEAD_CLIENT_OBJECTS_MAX, HEAD_CLIENT_ARGS_MAX);
    struct flow_entry failed = {.kind = ENTRY_FAILED, .launch = entry->launch, .handle = entry->handle};
    failed.count = (uint16_t)entry->node;
    fault_encode(&fault, &flow_send(effects, client->peer, &failed)->tail);
    client->finished++;
    struct head_launch launch = {.client = client, .entry = *entry, .arrived_ns = head->now_ns};
    head_account_launch(head, &launch, true, effects);
    head_client_tell(client, HEAD_PROGRESS_EVERY, effects);
}

void head_client_comes_back(const struct head *head, struct head_client *client)
{
    for (size_t i = 0; i < head->islands.len; i++)
        if (head->islands.items[i].pass > client->pass)
            client->pass = head->islands.items[i].pass;
}

void head_launch(struct head *head, struct head_client *client, const struct flow_entry *entry,
                 struct str tail, struct flow_effects *effects)
{
    if (!head_launch_allowed(client, entry)) {
        flow_add(effects, FLOW_CLOSE)->peer = client->peer;
        return;
    }
    client->last_launch = entry->launch;
    if (client->queued_args + entry->count > HEAD_CLIENT_ARGS_MAX ||
        client->object_list.len + entry->node > HEAD_CLIENT_OBJECTS_MAX) {
        head_launch_refuse(head, client, entry, effects);
        return;
    }
    client->queued_args += entry->count;
    struct head_launch *launch = mem_alloc(sizeof *launch);
    launch->client = client;
    launch->entry = *entry;
    launch->queued_ns = INT64_MAX;
    launch->arrived_ns = head->now_ns;
    launch->args = mem_alloc(entry->count * sizeof *launch->args + 1);
    launch->program = u64_map_get(&client->programs, entry->program);
    if (launch->program)
        launch->program->references++;
    for (uint32_t i = 0; i < entry->count; i++) {
        launch->args[i] = entry_arg(entry, tail, i);
        struct head_object *object = u64_map_get(&client->objects, launch->args[i]);
        if (object && !object->released)
            object->pending++;
        else
            launch->args[i] = 0;
    }
    for (uint32_t i = 0; i < entry->node; i++)
        head_object_new(client, entry->handle + i, &(struct program_value){0});
    if (client->queue_first == client->queue.len && client->running == 0)
        head_client_comes_back(head, client);
    vec_push(&client->queue, launch);
}

/* Adds `bytes`, the size of a shard, to what the program's results keep on each device of the map. */
static void head_program_add_kept(struct head_program *program, const struct lower_map *map, int64_t bytes)
{
    for (uint32_t i = 0; i < map->count; i++)
        for (uint32_t k = 0; k < program->need_count; k++)
            if (program->needs[k].host == map->places[i].host &&
                program->needs[k].device == map->places[i].device)
                program->needs[k].bytes += bytes;
}

/* Computes the bytes that a launch reserves on each device: the larger of its peak and the size of its
 * results. */
static void head_program_weigh(struct head_program *program, const struct lower_map *maps, size_t map_count)
{
    uint32_t count = 0;
    for (uint32_t h = 0; h < program->plan_count; h++)
        count += program->plans[h] ? program->plans[h]->devices : 0;
    program->needs = mem_alloc((count + 1) * sizeof *program->needs);
    for (uint32_t h = 0; h < program->plan_count; h++)
        for (uint32_t d = 0; program->plans[h] && d < program->plans[h]->devices; d++)
            program->needs[program->need_count++] = (struct head_need){h, d, 0};
    for (size_t n = 0; n < program->program->nodes.len; n++) {
        const struct program_node *node = &program->program->nodes.items[n];
        if (node->kind != PROGRAM_RESULT)
            continue;
        const struct program_value *value = &program->program->values.items[node->operands[0]];
        const struct flow_mesh *mesh = program_mesh(program->program, value->sharding.mesh);
        struct ir_type shard = flow_shard_type(&value->type, &value->sharding, mesh);
        for (size_t m = 0; m < map_count; m++)
            if (maps[m].mesh == mesh->id)
                head_program_add_kept(program, &maps[m], ir_type_bytes(&shard));
    }
    for (uint32_t k = 0; k < program->need_count; k++) {
        int64_t peak = program->plans[program->needs[k].host]->peak_bytes[program->needs[k].device];
        if (peak > program->needs[k].bytes)
            program->needs[k].bytes = peak;
    }
}

/* Finds the islands whose hosts have a part in the program. */
static void head_program_find_islands(const struct head *head, struct head_program *program)
{
    for (uint32_t h = 0; h < program->plan_count; h++) {
        uint32_t island = head->hosts.items[h].island;
        size_t at = sorted_place(program->islands.len, k, program->islands.items[k], island);
        if (!program->plans[h] || (at < program->islands.len && program->islands.items[at] == island))
            continue;
        vec_push(&program->islands, island);
        for (size_t k = program->islands.len - 1; k > at; k--)
            program->islands.items[k] = program->islands.items[k - 1];
        program->islands.items[at] = island;
    }
}

/* Lowers the program to the current places of its meshes, and sends the plans. Returns false, with the reason
 * in *fault, if that is impossible. */
static bool head_program_lower(struct head *head, struct head_client *client, struct head_program *program,
                               struct fault *fault, struct flow_effects *effects)
{
    head_program_forget_plans(program);
    size_t count = program->program->meshes.len;
    struct lower_map *maps = mem_alloc((count + 1) * sizeof *maps);
    for (size_t i = 0; i < count; i++) {
        const struct head_mesh *mesh = head_mesh_of(head, client->id, program->program->meshes.items[i].id);
        maps[i] = (struct lower_map){mesh->id, mesh->places->count, mesh->places->places};
    }
    struct error error = {0};
    uint32_t hosts = (uint32_t)head->hosts.len;
    if (lower_program(program->program, maps, count, hosts, &program->plans, &error) < 0) {
        *fault = fault_make(FAULT_CANCELLED, 0, 0, "%.200s", error.text);
        mem_free(maps);
        return false;
    }
    program->plan_count = hosts;
    program->lowered = true;
    head->room_epoch++;
    head->tally.lowerings++;
    program->epoch = client->epoch;
    head_program_find_islands(head, program);
    head_program_weigh(program, maps, count);
    program->covers = true;
    for (size_t m = 0; m < count; m++)
        for (uint32_t i = 0; i < maps[m].count && program->covers; i++)
            program->covers = program->plans[maps[m].places[i].host] != NULL;
    mem_free(maps);
    for (uint32_t h = 0; h < hosts; h++) {
        if (!program->plans[h])
            continue;
        struct flow_entry entry = {.kind = ENTRY_PLAN, .client = client->id, .program = program->id};
        entry.epoch = program->epoch;
        plan_encode(program->plans[h], &flow_send(effects, head->hosts.items[h].peer, &entry)->tail);
    }
    return true;
}

enum head_verdict { HEAD_WAIT, HEAD_GO, HEAD_FAIL };

static enum head_verdict head_judge_meshes(struct head *head, struct head_launch *launch, struct fault *fault,
                                           struct flow_effects *effects)
{
    struct head_program *program = launch->program;
    bool stale = !program->lowered;
    for (size_t i = 0; i < program->program->meshes.len; i++) {
        const struct flow_mesh *named = &program->program->meshes.items[i];
        const struct head_mesh *mesh = head_mesh_of(head, launch->client->id, named->id);
        if (!mesh || mesh->shape.rank != named->rank ||
            memcmp(mesh->shape.dims, named->dims, sizeof named->dims) != 0) {
            *fault =
                fault_make(FAULT_CANCELLED, 0, 0, "mesh %u is not there, or of another shape", named->id);
            return HEAD_FAIL;
        }
        if (head_mesh_waits(mesh))
            return HEAD_WAIT;
        if (!mesh->whole || mesh->epoch > launch->entry.epoch) {
            *fault = mesh->lost;
            return HEAD_FAIL;
        }
        stale = stale || mesh->epoch > program->epoch || mesh->moved > program->epoch;
    }
    if (stale && !head_program_lower(head, launch->client, program, fault, effects))
        return HEAD_FAIL;
    return HEAD_GO;
}

/* Judges whether an argument is the value that the program expects, on the current devices of its mesh. */
static enum head_verdict head_judge_arg(struct head *head, const struct head_launch *launch, uint32_t index,
                                        const struct program_value *want, struct fault *fault)
{
    const struct head_object *object = u64_map_get(&launch->client->objects, launch->args[index]);
    if (!object || (!object->places && !object->fault)) {
        *fault = fault_make(FAULT_ARGUMENT_FAILED, 0, 0, "argument %u names no value of this client", index);
        return HEAD_FAIL;
    }
    if (object->fault) {
        *fault = *object->fault;
        fault->reason = FAULT_ARGUMENT_FAILED;
        return HEAD_FAIL;
    }
    if (!ir_type_equal(&object->value.type, &want->type) ||
        memcmp(&object->value.sharding, &want->sharding, sizeof want->sharding) != 0) {
        *fault = fault_make(FAULT_ARGUMENT_FAILED, 0, 0, "argument %u has another type or sharding", index);
        return HEAD_FAIL;
    }
    const struct head_mesh *mesh = head_mesh_of(head, launch->client->id, want->sharding.mesh);
    if (object->births)
        return HEAD_WAIT;
    if (object->places != mesh->places) {
        *fault = mesh->lost;
        fault->reason = FAULT_ARGUMENT_FAILED;
        return HEAD_FAIL;
    }
    return object->missing > 0 ? HEAD_WAIT : HEAD_GO;
}

static enum head_verdict head_judge_args(struct head *head, const struct head_launch *launch,
                                         struct fault *fault)
{
    const struct program *program = launch->program->program;
    uint32_t index = 0;
    enum head_verdict worst = HEAD_GO;
    for (size_t n = 0; n < program->nodes.len; n++) {
        if (program->nodes.items[n].kind != PROGRAM_ARG)
            continue;
        const struct program_value *want = &program->values.items[program->nodes.items[n].first_result];
        enum head_verdict verdict = head_judge_arg(head, launch, index++, want, fault);
        if (verdict == HEAD_FAIL)
            return HEAD_FAIL;
        if (verdict == HEAD_WAIT)
            worst = HEAD_WAIT;
    }
    return worst;
}

/* Whether the island is full. An island that has reached its window stays full until half of the window has
 * ended, so that launches leave in frames rather than one by one. */
static bool head_island_is_full(const struct head *head, struct head_island *island)
{
    if (island->running >= head->options.window)
        island->full = true;
    else if (island->running <= head->options.window / 2)
        island->full = false;
    return island->full;
}

/* Whether an island of the program is full. The islands are not known before the program is lowered. */
static bool head_program_is_crowded(struct head *head, const struct head_program *program)
{
    for (size_t i = 0; i < program->islands.len; i++)
        if (head_island_is_full(head, &head->islands.items[program->islands.items[i]]))
            return true;
    return false;
}

static enum head_verdict head_judge_room(struct head *head, struct head_launch *launch, struct fault *fault)
{
    if (head_program_is_crowded(head, launch->program))
        return HEAD_WAIT;
    if (head_launch_finds_room(head, launch))
        return HEAD_GO;
    bool first = launch->queued_ns == INT64_MAX, never;
    if (first)
        launch->queued_ns = head->now_ns;
    bool late = head->now_ns - launch->queued_ns >= head->options.memory_wait_ns;
    if ((!first && !late) || !head_launch_lacks(head, launch, &never, fault))
        return HEAD_WAIT;
    return late || never ? HEAD_FAIL : HEAD_WAIT;
}

/* Decides whether the first launch of a client's queue can start. */
static enum head_verdict head_judge(struct head *head, struct head_launch *launch, struct fault *fault,
                                    struct flow_effects *effects)
{
    const struct head_program *program = launch->program;
    if (!program || program->wrong) {
        *fault = fault_make(FAULT_CANCELLED, 0, 0, "%.200s", program ? program->wrong : "no such program");
        return HEAD_FAIL;
    }
    if (launch->entry.count != program->program->arg_count ||
        launch->entry.node != program->program->result_count) {
        *fault = fault_make(FAULT_CANCELLED, 0, 0, "the program takes %u arguments and gives %u results",
                            program->program->arg_count, program->program->result_count);
        return HEAD_FAIL;
    }
    /* Checked before the costly conditions: the usual reason to wait. */
    if (head_program_is_crowded(head, program))
        return HEAD_WAIT;
    enum head_verdict verdict = head_judge_meshes(head, launch, fault, effects);
    if (verdict == HEAD_GO)
        verdict = head_judge_args(head, launch, fault);
    if (verdict == HEAD_GO)
        verdict = head_judge_room(head, launch, fault);
    return verdict;
}

/* Describes the results, now that their places are known. */
static void head_launch_describe(struct head *head, struct head_launch *launch)
{
    const struct program *program = launch->program->program;
    uint32_t index = 0;
    for (size_t n = 0; n < program->nodes.len; n++) {
        if (program->nodes.items[n].kind != PROGRAM_RESULT)
            continue;
        uint64_t handle = launch->entry.handle + index++;
        struct head_object *object = u64_map_get(&launch->client->objects, handle);
        if (!object)
            continue;
        object->value = program->values.items[program->nodes.items[n].operands[0]];
        const struct head_mesh *mesh = head_mesh_of(head, launch->client->id, object->value.sharding.mesh);
        struct ir_type shard = flow_shard_type(&object->value.type, &object->value.sharding, &mesh->shape);
        object->shard_bytes = ir_type_bytes(&shard);
        object->places = head_places_ref(mesh->places);
    }
}

/* Marks arguments that no later launch names: the launch entry carries their release to the same hosts. */
static void head_launch_mark_ends(struct head_launch *launch)
{
    launch->entry.flags &= (uint8_t) ~(ENTRY_ENDS_0 | ENTRY_ENDS_1); /* a client must not set them */
    if (launch->entry.count > ENTRY_ARGS_INLINE || !launch->program->covers)
        return;
    for (uint32_t i = 0; i < launch->entry.count; i++) {
        struct head_object *object = u64_map_get(&launch->client->objects, launch->args[i]);
        object->rides = object->released && object->pending == 1;
        launch->entry.flags |= object->rides ? ENTRY_ENDS_0 << i : 0;
    }
}

static void head_stamp(struct head *head, struct head_launch *launch, struct flow_effects *effects)
{
    struct head_client *client = launch->client;
    const struct head_program *program = launch->program;
    launch->stamped_ns = head->now_ns;
    client->pass += STRIDE_UNIT / client->weight * (program->estimate_ns / 1000 + 1);
    for (size_t i = 0; i < program->islands.len; i++) {
        struct head_island *island = &head->islands.items[program->islands.items[i]];
        island->next_ticket++;
        island->running++;
        island->pass = client->pass;
        vec_push(&launch->islands, program->islands.items[i]);
    }
    launch->needs = mem_alloc((program->need_count + 1) * sizeof *launch->needs);
    launch->need_count = program->need_count;
    mem_copy(launch->needs, program->needs, program->need_count * sizeof *launch->needs);
    for (uint32_t k = 0; k < launch->need_count; k++)
        head->hosts.items[launch->needs[k].host].devices[launch->needs[k].device].used_bytes +=
            launch->needs[k].bytes;
    head_launch_describe(head, launch);
    launch->entry.client = client->id;
    launch->entry.epoch = program->epoch;
    head_launch_mark_ends(launch);
    for (uint32_t h = 0; h < program->plan_count; h++) {
        if (!program->plans[h])
            continue;
        const struct head_host *host = &head->hosts.items[h];
        launch->entry.ticket = head->islands.items[host->island].next_ticket - 1;
        struct flow_effect *effect = flow_send(effects, host->peer, &launch->entry);
        if (launch->entry.tail_bytes)
            buf_add(&effect->tail, launch->args, launch->entry.count * sizeof *launch->args);
        vec_push(&launch->hosts, h);
    }
    client->running++;
    vec_push(&head->running, launch);
    head_launch_use_args(head, launch);
    head_launch_release(head, launch, effects);
    head_launch_drop_args(head, launch, effects);
}

/* Returns the client to stamp for next: the highest priority first, then the least pass. Fails launches that
 * cannot run. */
static struct head_client *head_pick(struct head *head, struct flow_effects *effects)
{
    struct head_client *best = NULL;
    for (size_t c = 0; c < head->clients.len; c++) {
        struct head_client *client = head->clients.items[c];
        while (!client->gone && client->state == CLIENT_RUNS && client->queue_first < client->queue.len) {
            struct head_launch *launch = client->queue.items[client->queue_first];
            struct fault fault;
            enum head_verdict verdict = head_judge(head, launch, &fault, effects);
            if (verdict == HEAD_FAIL) {
                head_queue_pop(client);
                if (fault.launch == 0)
                    fault.launch = launch->entry.launch;
                head_launch_fail(head, launch, &fault, effects);
                head_client_tell(client, HEAD_PROGRESS_EVERY, effects);
                continue;
            }
            bool better = !best || client->priority > best->priority ||
                          (client->priority == best->priority && client->pass < best->pass);
            if (verdict == HEAD_GO && better)
                best = client;
            break;
        }
    }
    return best;
}

void head_tell_progress(struct head *head, struct flow_effects *effects)
{
    for (size_t c = 0; c < head->clients.len; c++)
        head_client_tell(head->clients.items[c], 1, effects);
}

void head_schedule(struct head *head, struct flow_effects *effects)
{
    struct head_client *client;
    while ((client = head_pick(head, effects))) {
        struct head_launch *launch = client->queue.items[client->queue_first];
        if (launch->makes_room && !head_launch_make_room(head, launch, effects))
            return; /* a launch failed in the meantime and changed the order in which values are spilled */
        head_stamp(head, head_queue_pop(client), effects);
    }
}

/* Ends a launch when the last host of its gang has sent DONE or is lost. */
static void head_launch_finish(struct head *head, struct head_launch *launch, struct flow_effects *effects)
{
    for (uint32_t k = 0; k < launch->need_count; k++) {
        struct head_host *host = &head->hosts.items[launch->needs[k].host];
        if (host->alive)
            host->devices[launch->needs[k].device].used_bytes -= launch->needs[k].bytes;
    }
    struct head_client *client = launch->client;
    head_launch_end_use(head, launch);
    for (uint32_t i = 0; i < launch->entry.node && !client->gone; i++) {
        struct head_object *object = u64_map_get(&client->objects, launch->entry.handle + i);
        if (object && object->places && !object->charged)
            head_object_charge(head, object);
    }
    for (size_t i = 0; i < launch->islands.len; i++)
        head->islands.items[launch->islands.items[i]].running--;
    if (launch->device_ns > HEAD_DEVICE_NS_MAX) /* a worker's claim is not trusted */
        launch->device_ns = HEAD_DEVICE_NS_MAX;
    if (launch->device_ns)
        launch->program->estimate_ns = (3 * launch->program->estimate_ns + launch->device_ns) / 4;
    client->running--;
    client->finished++;
    head_account_launch(head, launch, launch->lost, effects);
    for (size_t i = 0; i < head->running.len; i++)
        if (head->running.items[i] == launch) {
            vec_remove(&head->running, i);
            break;
        }
    head_launch_end(head, launch, effects);
    head_client_tell(client, HEAD_PROGRESS_EVERY, effects);
    if (client->gone && client->running == 0)
        head_client_free(client);
}

static bool head_launch_leave(struct head_launch *launch, uint32_t host)
{
    for (size_t i = 0; i < launch->hosts.len; i++)
        if (launch->hosts.items[i] == host) {
            vec_remove(&launch->hosts, i);
            return true;
        }
    return false;
}

void head_done(struct head *head, uint32_t host, const struct flow_entry *entry, struct flow_effects *effects)
{
    uint64_t count = entry->count ? entry->count : 1, left = count;
    for (size_t i = 0; i < head->running.len && left > 0;) {
        struct head_launch *launch = head->running.items[i];
        uint64_t before = entry->launch - launch->entry.launch; /* wraps to a huge number after the range */
        if (before >= count || launch->client->id != entry->client || !head_launch_leave(launch, host)) {
            i++;
            continue;
        }
        left--;
        launch->device_ns += entry->args[0] / count;
        if (launch->hosts.len == 0)
            head_launch_finish(head, launch, effects); /* removes it from the list */
        else
            i++;
    }
}

void head_launch_tell_lost(const struct head *head, const struct head_launch *launch,
                           const struct fault *fault, struct flow_effects *effects)
{
    struct flow_entry lost = {.kind = ENTRY_LOST, .client = launch->client->id};
    lost.launch = launch->entry.launch;
    struct fault typed = *fault;
    typed.launch = lost.launch;
    for (size_t h = 0; h < launch->hosts.len; h++)
        fault_encode(&typed,
                     &flow_send(effects, head->hosts.items[launch->hosts.items[h]].peer, &lost)->tail);
}

void head_host_lost(struct head *head, uint32_t host, const struct fault *fault, struct flow_effects *effects)
{
    for (size_t i = 0; i < head->running.len; i++) {
        struct head_launch *launch = head->running.items[i];
        bool member = false; /* also after its DONE: messages it has sent may not have arrived */
        for (uint32_t k = 0; k < launch->need_count && !member; k++)
            member = launch->needs[k].host == host;
        head_launch_leave(launch, host);
        if (!member)
            continue;
        launch->lost = true;
        head_launch_tell_lost(head, launch, fault, effects);
        if (launch->hosts.len == 0) {
            head_launch_finish(head, launch, effects);
            i--;
        }
    }
}

/* Frees unstamped launches of a client that has ended, without a message: they have no tickets yet. */
void head_client_drop_queue(struct head *head, struct head_client *client)
{
    for (; client->queue_first < client->queue.len; client->queue_first++)
        head_launch_free(client->queue.items[client->queue_first]);
    vec_clear(&client->queue);
    client->queue_first = 0;
}

void head_client_free(struct head_client *client)
{
    while (client->program_list.len > 0)
        head_program_drop(client, vec_last(&client->program_list));
    u64_map_done(&client->objects);
    u64_map_done(&client->programs);
    vec_done(&client->object_list);
    vec_done(&client->program_list);
    vec_done(&client->queue);
    vec_done(&client->savers);
    for (size_t i = 0; i < client->functions.len; i++)
        buf_done(&client->functions.items[i].text);
    vec_done(&client->functions);
    mem_free(client);
}
