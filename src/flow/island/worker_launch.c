/* Instances of plans: the execution of one launch on this host.
 *
 * A step executes as soon as the cells that it reads are settled: COPY, SEND and RECV at once, RUN when its
 * device's turn has come. A fault propagates in place of the value that is missing. So every step of every
 * instance completes eventually, and devices never stall. */
#include "flow/island/worker.h"

static struct instance *instance_find(const struct worker_client *client, uint64_t launch)
{
    return u64_map_get(&client->instances_by_launch, launch);
}

static struct instance *instance_new(struct worker *worker, struct worker_client *client, uint64_t launch)
{
    struct instance *instance = mem_alloc(sizeof *instance);
    instance->client = client->id;
    instance->launch = launch;
    list_append(&worker->instances, &instance->node);
    u64_map_put(&client->instances_by_launch, launch, instance);
    client->instances++;
    worker->instance_count++;
    return instance;
}

void worker_program_unref(struct worker *worker, struct worker_program *program)
{
    if (--program->references > 0)
        return;
    plan_free(program->plan);
    vec_done(&program->recvs);
    mem_free(program);
    worker->program_count--;
}

void instance_free(struct worker *worker, struct instance *instance)
{
    struct worker_client *client = worker_client(worker, instance->client);
    size_t slots = instance->program ? instance->program->plan->slots.len : 0;
    for (size_t s = 0; s < slots; s++) {
        cell_unref(worker, instance->cells[s]);
        tensor_unref(instance->made[s]);
    }
    for (size_t i = 0; i < instance->early.len; i++)
        buf_done(&instance->early.items[i].tail);
    vec_done(&instance->early);
    mem_free(instance->cells);
    mem_free(instance->lost);
    if (instance->program)
        worker_program_unref(worker, instance->program);
    list_remove(&instance->node);
    u64_map_remove(&client->instances_by_launch, instance->launch);
    client->instances--;
    worker->instance_count--;
    mem_free(instance);
    worker_client_rest(worker, client);
}

static const struct plan_step *instance_step(const struct instance *instance, uint32_t step)
{
    return &instance->program->plan->steps.items[step];
}

static struct run_id instance_run(const struct instance *instance, uint32_t step)
{
    const struct plan_step *plan = instance_step(instance, step);
    struct run_id run = {.client = instance->client, .launch = instance->launch, .head = instance->head};
    run.step = step;
    run.node = plan->node;
    run.partition = plan->partition;
    return run;
}

/* Drops the instance's reference to the cell of a slot that has no more readers and is settled. */
static void instance_let_go(struct worker *worker, struct instance *instance, uint32_t slot)
{
    struct cell *cell = instance->cells[slot];
    if (instance->uses[slot] > 0 || !cell || !cell_settled(cell))
        return;
    instance->cells[slot] = NULL;
    cell_unref(worker, cell);
}

static void instance_settle(struct worker *worker, struct instance *instance, uint32_t slot,
                            struct tensor *tensor, const struct fault *fault, struct flow_effects *effects)
{
    struct cell *cell = instance->cells[slot];
    if (!cell) { /* a fault had settled it before this write */
        tensor_unref(tensor);
        return;
    }
    cell_settle(worker, cell, tensor, fault, effects);
    instance_let_go(worker, instance, slot);
}

static void instance_finish(struct worker *worker, struct instance *instance, struct flow_effects *effects)
{
    struct flow_entry done = {.kind = ENTRY_DONE, .client = instance->client, .launch = instance->launch};
    done.args[0] = (uint64_t)instance->device_ns;
    flow_send(effects, PEER_HEAD, &done);
    flow_add(effects, FLOW_FORGET)->run =
        (struct run_id){.client = instance->client, .launch = done.launch, .head = instance->head};
    instance_free(worker, instance);
}

/* Marks a step done. The instance may have been freed afterwards. */
static void instance_step_done(struct worker *worker, struct instance *instance, uint32_t step,
                               struct flow_effects *effects)
{
    CHECK(!instance->done[step] && instance->left > 0);
    instance->done[step] = true;
    const struct plan_step *plan = instance_step(instance, step);
    for (uint32_t i = 0; i < plan->in_count; i++) {
        CHECK(instance->uses[plan->in[i]] > 0);
        instance->uses[plan->in[i]]--;
        instance_let_go(worker, instance, plan->in[i]);
    }
    if (--instance->left == 0)
        instance_finish(worker, instance, effects);
}

/* Returns the fault of a slot that is read, or NULL. An argument of another type than the plan's counts as a
 * fault. */
static const struct fault *instance_fault(const struct instance *instance, uint32_t slot,
                                          struct fault *ret_wrong)
{
    const struct cell *cell = instance->cells[slot];
    CHECK(cell && cell_settled(cell));
    if (cell->fault) {
        *ret_wrong = *cell->fault;
        if (ret_wrong->launch != instance->launch)
            ret_wrong->reason = FAULT_ARGUMENT_FAILED;
        return ret_wrong;
    }
    if (ir_type_equal(&cell->tensor->type, &instance->program->plan->slots.items[slot].type))
        return NULL;
    *ret_wrong = fault_make(FAULT_ARGUMENT_FAILED, instance->launch, 0,
                            "a shard that was put has another type than its value");
    return ret_wrong;
}

/* Writes `box` of `from` (dense at from_box) to the out slots of a step. */
static void instance_write(struct worker *worker, struct instance *instance, const struct plan_step *step,
                           const void *from, const struct flow_box *from_box, struct flow_effects *effects)
{
    for (uint32_t i = 0; i < step->out_count; i++) {
        uint32_t slot = step->out[i];
        const struct ir_type *type = &instance->program->plan->slots.items[slot].type;
        CHECK(instance->writers[slot] > 0);
        if (!instance->made[slot])
            instance->made[slot] = tensor_new(type);
        if (instance->made[slot])
            flow_box_copy(type, &step->box, from, from_box, instance->made[slot]->data, &step->to);
        if (--instance->writers[slot] > 0)
            continue;
        struct tensor *made = instance->made[slot];
        instance->made[slot] = NULL;
        struct fault fault =
            fault_make(FAULT_OUT_OF_MEMORY, instance->launch, step->node,
                       "the host has no memory for a shard of %lld bytes", (long long)ir_type_bytes(type));
        instance_settle(worker, instance, slot, made, made ? NULL : &fault, effects);
    }
}

static void instance_poison(struct worker *worker, struct instance *instance, const struct plan_step *step,
                            const struct fault *fault, struct flow_effects *effects)
{
    for (uint32_t i = 0; i < step->out_count; i++) {
        if (instance->writers[step->out[i]] > 0)
            instance->writers[step->out[i]]--;
        instance_settle(worker, instance, step->out[i], NULL, fault, effects);
    }
}

static void instance_copy(struct worker *worker, struct instance *instance, const struct plan_step *step,
                          struct flow_effects *effects)
{
    struct fault wrong;
    const struct fault *fault = instance_fault(instance, step->in[0], &wrong);
    if (fault) {
        instance_poison(worker, instance, step, fault, effects);
        return;
    }
    struct tensor *tensor = instance->cells[step->in[0]]->tensor;
    if (!step->whole) {
        instance_write(worker, instance, step, tensor->data, &step->from, effects);
        return;
    }
    for (uint32_t i = 0; i < step->out_count; i++) {
        instance->writers[step->out[i]]--;
        instance_settle(worker, instance, step->out[i], tensor_ref(tensor), NULL, effects);
    }
}

/* Counts and records bytes of a launch that are sent to another host, or received from one. */
static void instance_note_move(struct worker *worker, const struct instance *instance,
                               const struct plan_step *step, int64_t bytes, struct flow_effects *effects)
{
    bool sent = step->op == PLAN_SEND;
    struct trace_record record = {.kind = sent ? TRACE_SENT : TRACE_RECEIVED, .client = instance->client};
    record.program = instance->program->id;
    record.launch = instance->launch;
    record.node = step->tag;
    record.peer = step->peer;
    record.bytes = (uint64_t)bytes;
    worker_note_move(worker, sent ? LOAD_SENT : LOAD_RECEIVED, record, effects);
}

static void instance_send(struct worker *worker, const struct instance *instance,
                          const struct plan_step *step, struct flow_effects *effects)
{
    struct flow_entry entry = {.kind = ENTRY_DATA, .client = instance->client, .launch = instance->launch};
    entry.ticket = instance->head;
    entry.node = step->tag;
    struct flow_effect *effect = flow_send(effects, peer_host(step->peer), &entry);
    struct fault wrong;
    const struct fault *fault = instance_fault(instance, step->in[0], &wrong);
    if (fault) {
        effect->entry.flags = ENTRY_IS_FAILED;
        fault_encode(fault, &effect->tail);
        return;
    }
    struct tensor *tensor = instance->cells[step->in[0]]->tensor;
    int64_t bytes = flow_box_bytes(&tensor->type, &step->box);
    if (bytes == ir_type_bytes(&tensor->type)) {
        effect->payload = tensor_ref(tensor);
    } else {
        buf_reserve(&effect->tail, (size_t)bytes + 1);
        flow_box_copy(&tensor->type, &step->box, tensor->data, &step->from, effect->tail.data, &step->box);
        effect->tail.len = (size_t)bytes;
    }
    instance_note_move(worker, instance, step, bytes, effects); /* may add an effect, which voids `effect` */
}

/* DATA for a RECV step of a launch that has arrived. */
static void instance_receive(struct worker *worker, struct instance *instance, const struct flow_entry *entry,
                             struct str tail, struct flow_effects *effects)
{
    const struct worker_program *program = instance->program;
    const struct plan *plan = program->plan;
    size_t at =
        sorted_place(program->recvs.len, k, plan->steps.items[program->recvs.items[k]].tag, entry->node);
    if (at == program->recvs.len)
        return;
    uint32_t number = program->recvs.items[at];
    const struct plan_step *step = &plan->steps.items[number];
    if (step->tag != entry->node || instance->done[number])
        return;
    struct fault fault;
    if (entry->flags & ENTRY_IS_FAILED) {
        fault_decode(tail, &fault);
        instance_poison(worker, instance, step, &fault, effects);
    } else if ((int64_t)tail.len != flow_box_bytes(&plan->slots.items[step->out[0]].type, &step->box)) {
        fault = fault_make(FAULT_CANCELLED, instance->launch, step->node, "a peer sent %zu bytes of a shard",
                           tail.len);
        instance_poison(worker, instance, step, &fault, effects);
    } else {
        instance_note_move(worker, instance, step, (int64_t)tail.len, effects);
        instance_write(worker, instance, step, tail.data, &step->box, effects);
    }
    instance_step_done(worker, instance, number, effects);
}

void instance_cell_settled(struct worker *worker, struct instance *instance, uint32_t step)
{
    CHECK(instance->pending[step] > 0);
    if (--instance->pending[step] == 0 && instance_step(instance, step)->op != PLAN_RUN)
        vec_push(&worker->ready, ((struct device_turn){instance, step}));
}

static void instance_bind_slots(struct worker *worker, struct worker_client *client,
                                struct instance *instance, const struct flow_event *event,
                                struct flow_effects *effects)
{
    const struct plan *plan = instance->program->plan;
    for (size_t i = 0; i < plan->args.len; i++) {
        struct plan_port port = plan->args.items[i];
        uint64_t handle =
            port.index < event->entry->count ? entry_arg(event->entry, event->tail, port.index) : 0;
        struct worker_object *object = worker_object(client, handle, true);
        if (!instance->cells[port.slot])
            instance->cells[port.slot] = cell_ref(worker_object_cell(worker, object, port.shard));
    }
    for (uint32_t s = 0; s < plan->slots.len; s++) {
        instance->uses[s] = plan->slots.items[s].uses;
        instance->writers[s] = plan->slots.items[s].writers;
        if (instance->cells[s])
            continue;
        instance->cells[s] = cell_new(worker);
        if (instance->writers[s] == 0) /* a shard without elements */
            cell_settle(worker, instance->cells[s], tensor_new(&plan->slots.items[s].type), NULL, effects);
    }
    for (uint32_t i = 0; i < ENTRY_ARGS_INLINE && i < event->entry->count; i++)
        if (event->entry->flags & ENTRY_ENDS_0 << i) {
            uint64_t handle = entry_arg(event->entry, event->tail, i);
            worker_release(worker, client, (struct str){(const char *)&handle, sizeof handle}, false);
        }
    for (size_t i = 0; i < plan->results.len; i++) {
        struct plan_port port = plan->results.items[i];
        struct worker_object *object = worker_object(client, event->entry->handle + port.index, true);
        worker_object_set(worker, object, port.shard, instance->cells[port.slot], effects);
        instance->uses[port.slot]--;
    }
}

static void instance_bind_steps(struct worker *worker, struct instance *instance)
{
    const struct plan *plan = instance->program->plan;
    for (uint32_t i = 0; i < plan->steps.len; i++) {
        const struct plan_step *step = &plan->steps.items[i];
        for (uint32_t k = 0; k < step->in_count; k++) {
            struct cell *cell = instance->cells[step->in[k]];
            if (cell_settled(cell))
                continue;
            instance->pending[i]++;
            cell_wait(cell, instance, i);
        }
        if (step->op == PLAN_RUN)
            vec_push(&worker->devices[step->device].queue, ((struct device_turn){instance, i}));
        else if (step->op != PLAN_RECV && instance->pending[i] == 0)
            vec_push(&worker->ready, ((struct device_turn){instance, i}));
    }
}

/* Allocates the arrays of an instance as one zeroed block. */
static void instance_make_room(struct instance *instance, size_t slots, size_t steps)
{
    size_t of_slot =
        sizeof *instance->cells + sizeof *instance->made + sizeof *instance->uses + sizeof *instance->writers;
    size_t of_step = sizeof *instance->pending + sizeof *instance->done;
    instance->cells = mem_alloc(slots * of_slot + steps * of_step + 1);
    instance->made = (struct tensor **)(instance->cells + slots);
    instance->uses = (uint32_t *)(instance->made + slots);
    instance->writers = instance->uses + slots;
    instance->pending = instance->writers + slots;
    instance->done = (bool *)(instance->pending + steps);
    instance->left = (uint32_t)steps;
}

void worker_launch(struct worker *worker, const struct flow_event *event, struct flow_effects *effects)
{
    const struct flow_entry *entry = event->entry;
    struct worker_client *client = worker_client(worker, entry->client);
    struct worker_program *program = client ? u64_map_get(&client->programs, entry->program) : NULL;
    if (!program || client->gone) { /* the client has ended in the meantime */
        struct flow_entry done = {.kind = ENTRY_DONE, .client = entry->client, .launch = entry->launch};
        flow_send(effects, PEER_HEAD, &done);
        return;
    }
    struct instance *instance = instance_find(client, entry->launch);
    if (!instance)
        instance = instance_new(worker, client, entry->launch);
    instance->head = worker->secret;
    client->last_launch = entry->launch;
    const struct plan *plan = program->plan;
    instance->program = program;
    program->references++;
    instance_make_room(instance, plan->slots.len, plan->steps.len);
    instance_bind_slots(worker, client, instance, event, effects);
    instance_bind_steps(worker, instance);
    if (instance->left == 0) {
        instance_finish(worker, instance, effects);
        return;
    }
    struct early_data *early = instance->early.items;
    size_t count = instance->early.len;
    memset(&instance->early, 0, sizeof instance->early);
    for (size_t i = 0; i < count; i++) {
        struct instance *still = instance_find(client, entry->launch);
        if (still)
            instance_receive(worker, still, &early[i].entry, buf_str(&early[i].tail), effects);
        buf_done(&early[i].tail);
    }
    mem_free(early);
}

void worker_data(struct worker *worker, const struct flow_event *event, struct flow_effects *effects)
{
    const struct flow_entry *entry = event->entry;
    if (!worker_expects(worker, entry->client, entry->launch, entry->ticket))
        return;
    struct worker_client *client = worker_client(worker, entry->client);
    if (!client) /* the head's CLIENT is still to come */
        client = worker_client_new(worker, entry->client);
    struct instance *instance = instance_find(client, entry->launch);
    if (instance && instance->program) { /* even if the client has ended: a stamped launch completes */
        instance_receive(worker, instance, entry, event->tail, effects);
        return;
    }
    if (!instance)
        instance = instance_new(worker, client, entry->launch);
    struct early_data early = {.entry = *entry};
    buf_add_str(&early.tail, event->tail);
    vec_push(&instance->early, early);
}

/* Completes all RECV steps with a fault, because other hosts can send no more. The instance may have been
 * freed afterwards. */
static void instance_cut_off(struct worker *worker, struct instance *instance, const struct fault *why,
                             struct flow_effects *effects)
{
    struct fault fault = *why;
    instance->lost = mem_alloc(sizeof fault);
    *instance->lost = fault;
    struct flow_effect *abort = flow_add(effects, FLOW_ABORT);
    abort->run = (struct run_id){.client = instance->client, .launch = instance->launch, .node = UINT32_MAX};
    abort->run.head = instance->head;
    abort->fault = fault;
    for (size_t i = 0; i < instance->program->recvs.len; i++) {
        uint32_t step = instance->program->recvs.items[i];
        if (instance->done[step])
            continue;
        instance_poison(worker, instance, instance_step(instance, step), &fault, effects);
        bool last = instance->left == 1;
        instance_step_done(worker, instance, step, effects);
        if (last)
            return;
    }
}

/* LOST: the gang has lost a member. */
void worker_lost(struct worker *worker, const struct flow_event *event, struct flow_effects *effects)
{
    const struct flow_entry *entry = event->entry;
    struct worker_client *client = worker_client(worker, entry->client);
    struct instance *instance = client ? instance_find(client, entry->launch) : NULL;
    if (!instance || !instance->program || instance->lost)
        return;
    struct fault fault;
    fault_decode(event->tail, &fault);
    instance_cut_off(worker, instance, &fault, effects);
}

void worker_launches_lost(struct worker *worker, struct flow_effects *effects)
{
    struct list_node *end = &worker->instances;
    list_for_each_safe(node, after, end)
    {
        struct instance *instance = container_of(node, struct instance, node);
        if (!instance->program) {
            instance_free(worker, instance);
            continue;
        }
        struct fault fault = fault_make(FAULT_CANCELLED, instance->launch, 0,
                                        "the head was lost while launch %llu was under way",
                                        (unsigned long long)instance->launch);
        fault.lost = true;
        if (!instance->lost)
            instance_cut_off(worker, instance, &fault, effects);
    }
}

void worker_launches_end(struct worker *worker, const struct worker_client *client,
                         struct flow_effects *effects)
{
    struct fault fault = fault_make(FAULT_CANCELLED, 0, 0, "client %u has ended", client->id);
    CHECK(client->instances > 0); /* the caller's own keeps the client */
    struct list_node *end = &worker->instances;
    list_for_each_safe(node, after, end)
    {
        struct instance *instance = container_of(node, struct instance, node);
        if (instance->client == client->id && instance->program && !instance->lost)
            instance_cut_off(worker, instance, &fault, effects);
    }
}

void worker_launches_forget(struct worker *worker)
{
    struct list_node *end = &worker->instances;
    list_for_each_safe(node, after, end)
    {
        struct instance *instance = container_of(node, struct instance, node);
        for (size_t i = instance->early.len; i-- > 0;)
            if (instance->early.items[i].entry.ticket != worker->secret) {
                buf_done(&instance->early.items[i].tail);
                vec_remove(&instance->early, i);
            }
        if (!instance->program && instance->early.len == 0)
            instance_free(worker, instance);
    }
}

void worker_launches_over(struct worker *worker, struct worker_client *client, uint64_t last)
{
    if (last <= client->last_launch)
        return;
    client->last_launch = last;
    struct list_node *end = &worker->instances;
    list_for_each_safe(node, after, end)
    {
        struct instance *instance = container_of(node, struct instance, node);
        if (instance->client == client->id && !instance->program && instance->launch <= last)
            instance_free(worker, instance);
    }
}

/* Informs the other members that a run will not take part, or has failed, so that they do not wait for it. */
static void instance_tell_gang(struct worker *worker, struct instance *instance, uint32_t step,
                               const struct fault *fault, struct flow_effects *effects)
{
    const struct plan_step *plan = instance_step(instance, step);
    const struct plan_gang *gang = &instance->program->plan->gangs.items[plan->gang];
    if (gang->count < 2)
        return;
    struct flow_effect *abort = flow_add(effects, FLOW_ABORT);
    abort->run = instance_run(instance, step);
    abort->fault = *fault;
    for (uint32_t i = 0; i < gang->count; i++) {
        bool first = gang->hosts[i] != worker->host;
        for (uint32_t k = 0; k < i && first; k++)
            first = gang->hosts[k] != gang->hosts[i];
        if (!first)
            continue;
        struct flow_entry entry = {.kind = ENTRY_SKIP, .client = instance->client, .node = plan->node};
        entry.launch = instance->launch;
        entry.ticket = instance->head;
        fault_encode(fault, &flow_send(effects, peer_host(gang->hosts[i]), &entry)->tail);
    }
}

bool worker_expects(struct worker *worker, uint32_t id, uint64_t launch, uint64_t head)
{
    const struct worker_client *client = worker_client(worker, id);
    const struct instance *instance = client ? instance_find(client, launch) : NULL;
    if (instance && instance->program)
        return instance->head == head;
    if (worker->secret != 0 && worker->secret != head) /* 0: the next head has not sent its secret yet */
        return false;
    if (!client)
        return worker_client_may_come(worker, id);
    return !client->gone && launch > client->last_launch;
}

/* SKIP: a member on another host will not take part. */
void worker_skip(struct worker *worker, const struct flow_event *event, struct flow_effects *effects)
{
    const struct flow_entry *entry = event->entry;
    if (!worker_expects(worker, entry->client, entry->launch, entry->ticket))
        return;
    struct flow_effect *abort = flow_add(effects, FLOW_ABORT);
    abort->run = (struct run_id){.client = entry->client, .launch = entry->launch, .node = entry->node};
    abort->run.head = entry->ticket;
    fault_decode(event->tail, &abort->fault);
}

static void instance_skip(struct worker *worker, struct instance *instance, uint32_t step,
                          const struct fault *fault, struct flow_effects *effects)
{
    instance_tell_gang(worker, instance, step, fault, effects);
    instance_poison(worker, instance, instance_step(instance, step), fault, effects);
    instance_step_done(worker, instance, step, effects);
}

static bool instance_must_skip(struct worker *worker, const struct instance *instance, uint32_t step,
                               const struct worker_function *function, struct fault *ret)
{
    const struct plan_step *plan = instance_step(instance, step);
    if (instance->lost) {
        *ret = *instance->lost;
        return true;
    }
    for (uint32_t i = 0; i < plan->in_count; i++)
        if (instance_fault(instance, plan->in[i], ret))
            return true;
    if (worker_client(worker, instance->client)->gone)
        *ret = fault_make(FAULT_CANCELLED, instance->launch, plan->node, "the client has gone");
    else if (!function)
        *ret = fault_make(FAULT_FUNCTION_FAILED, instance->launch, plan->node, "no such function");
    else if (function->state == FUNCTION_FAILED)
        *ret = function->fault;
    else
        return false;
    ret->launch = instance->launch;
    ret->node = plan->node;
    return true;
}

/* Starts the next run of a device. Returns false if none can start now. */
static bool device_start(struct worker *worker, uint32_t d, struct flow_effects *effects)
{
    struct worker_device *device = &worker->devices[d];
    if (device->busy || device->first == device->queue.len)
        return false;
    struct device_turn turn = device->queue.items[device->first];
    struct instance *instance = turn.instance;
    const struct plan_step *step = instance_step(instance, turn.step);
    if (instance->pending[turn.step] > 0)
        return false;
    const struct worker_client *client = worker_client(worker, instance->client);
    struct worker_function *function = u64_map_get(&client->functions, step->function);
    struct fault fault;
    bool skip = instance_must_skip(worker, instance, turn.step, function, &fault);
    if (!skip && function->state == FUNCTION_COMPILING)
        return false;
    if (++device->first == device->queue.len) {
        vec_clear(&device->queue);
        device->first = 0;
    } else if (device->first > 4096 && device->first > device->queue.len / 2) {
        device->queue.len -= device->first;
        memmove(device->queue.items, device->queue.items + device->first,
                device->queue.len * sizeof *device->queue.items);
        device->first = 0;
    }
    if (skip) {
        instance_skip(worker, instance, turn.step, &fault, effects);
        return true;
    }
    device->busy = true;
    device->running = instance;
    device->function = function;
    device->started_ns = worker->now_ns;
    function->running++;
    struct flow_effect *effect = flow_add(effects, FLOW_RUN);
    effect->device = d;
    effect->executable = function->executable;
    effect->run = instance_run(instance, turn.step);
    effect->arg_count = step->in_count;
    effect->args = mem_alloc((step->in_count + 1) * sizeof *effect->args);
    for (uint32_t i = 0; i < step->in_count; i++)
        effect->args[i] = tensor_ref(instance->cells[step->in[i]]->tensor);
    const struct plan_gang *gang = &instance->program->plan->gangs.items[step->gang];
    effect->gang_count = gang->count;
    effect->gang_hosts = mem_alloc(gang->count * sizeof *gang->hosts);
    mem_copy(effect->gang_hosts, gang->hosts, gang->count * sizeof *gang->hosts);
    return true;
}

/* Whether the results have the number and types that the plan expects; otherwise *ret reports the
 * difference. */
static bool instance_results_fit(const struct instance *instance, uint32_t step,
                                 const struct flow_event *event, struct fault *ret)
{
    const struct plan_step *plan = instance_step(instance, step);
    if (event->result_count != plan->out_count) {
        *ret = fault_make(FAULT_FUNCTION_FAILED, instance->launch, plan->node,
                          "the function gives %u results, the program expects %u", event->result_count,
                          plan->out_count);
        return false;
    }
    for (uint32_t i = 0; i < plan->out_count; i++) {
        const struct ir_type *want = &instance->program->plan->slots.items[plan->out[i]].type;
        char a[IR_TYPE_TEXT_MAX], b[IR_TYPE_TEXT_MAX];
        if (ir_type_equal(&event->results[i]->type, want))
            continue;
        *ret = fault_make(FAULT_FUNCTION_FAILED, instance->launch, plan->node,
                          "result %u is %.80s, the program expects %.80s", i,
                          ir_type_text(&event->results[i]->type, a), ir_type_text(want, b));
        return false;
    }
    return true;
}

void worker_ran(struct worker *worker, const struct flow_event *event, struct flow_effects *effects)
{
    CHECK(event->device < worker->device_count);
    struct worker_device *device = &worker->devices[event->device];
    struct instance *instance = device->running;
    CHECK(device->busy && instance->launch == event->run.launch && instance->client == event->run.client);
    device->busy = false;
    device->running = NULL;
    device->function->running--;
    worker_function_rest(worker, device->function, effects);
    instance->device_ns += event->device_ns;
    uint32_t step = event->run.step;
    const struct plan_step *plan = instance_step(instance, step);
    worker_note_run(worker, instance, plan, event, effects);
    struct fault fault;
    if (event->fault || !instance_results_fit(instance, step, event, &fault)) {
        if (event->fault)
            fault = *event->fault;
        for (uint32_t i = 0; i < event->result_count; i++)
            tensor_unref(event->results[i]);
        instance_skip(worker, instance, step, &fault, effects);
        return;
    }
    for (uint32_t i = 0; i < plan->out_count; i++) {
        instance->writers[plan->out[i]]--;
        instance_settle(worker, instance, plan->out[i], event->results[i], NULL, effects);
    }
    instance_step_done(worker, instance, step, effects);
}

void worker_pump(struct worker *worker, struct flow_effects *effects)
{
    bool moved = true;
    while (moved) {
        moved = false;
        for (size_t i = 0; i < worker->ready.len; i++) {
            struct device_turn turn = worker->ready.items[i];
            const struct plan_step *step = instance_step(turn.instance, turn.step);
            if (step->op == PLAN_COPY)
                instance_copy(worker, turn.instance, step, effects);
            else
                instance_send(worker, turn.instance, step, effects);
            instance_step_done(worker, turn.instance, turn.step, effects);
            moved = true;
        }
        vec_clear(&worker->ready);
        for (uint32_t d = 0; d < worker->device_count; d++)
            while (device_start(worker, d, effects))
                moved = true;
    }
}
