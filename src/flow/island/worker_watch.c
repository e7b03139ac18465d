/* The counters of a worker, and its records while the head wants a trace. */
#include "flow/island/worker.h"

static void worker_trace_flush(struct worker *worker, struct flow_effects *effects)
{
    if (worker->traced.records.len == 0)
        return;
    struct flow_entry entry = {.kind = ENTRY_TRACE, .node = worker->host, .epoch = worker->trace_epoch};
    entry.args[0] = (uint64_t)worker->day_ns;
    buf_add(&flow_send(effects, PEER_HEAD, &entry)->tail, worker->traced.records.items,
            worker->traced.records.len * sizeof *worker->traced.records.items);
    vec_clear(&worker->traced.records);
}

static void worker_record(struct worker *worker, const struct trace_record *record,
                          struct flow_effects *effects)
{
    vec_push(&worker->traced.records, *record);
    if (worker->traced.records.len == TRACE_BATCH)
        worker_trace_flush(worker, effects);
}

void worker_note_run(struct worker *worker, const struct instance *instance, const struct plan_step *step,
                     const struct flow_event *event, struct flow_effects *effects)
{
    worker->load[LOAD_RUNS]++;
    worker->load[LOAD_FAILED] += event->fault != NULL;
    worker->devices[event->device].busy_ns += event->device_ns > 0 ? (uint64_t)event->device_ns : 0;
    if (!worker->traces)
        return;
    struct trace_record record = {.kind = TRACE_RUN, .failed = event->fault != NULL, .device = event->device};
    record.client = instance->client;
    record.program = instance->program->id;
    record.launch = instance->launch;
    record.node = step->node;
    record.handle = step->function;
    record.end_ns = worker->now_ns;
    record.begin_ns = worker->now_ns - event->device_ns;
    worker_record(worker, &record, effects);
}

void worker_note_move(struct worker *worker, enum worker_load load, struct trace_record record,
                      struct flow_effects *effects)
{
    worker->load[load] += record.bytes;
    record.begin_ns = record.end_ns = worker->now_ns;
    if (worker->traces)
        worker_record(worker, &record, effects);
}

void worker_trace(struct worker *worker, const struct flow_entry *entry, struct flow_effects *effects)
{
    worker_trace_flush(worker, effects);
    worker->traces = entry->count != 0;
    worker->trace_epoch = entry->epoch;
    struct flow_entry heard = {.kind = ENTRY_TRACE, .node = worker->host, .epoch = worker->trace_epoch};
    heard.args[0] = (uint64_t)worker->day_ns;
    flow_send(effects, PEER_HEAD, &heard);
}

static void worker_tell_load(struct worker *worker, struct flow_effects *effects)
{
    struct flow_entry entry = {.kind = ENTRY_LOAD, .count = (uint16_t)worker->device_count};
    struct buf *tail = &flow_send(effects, PEER_HEAD, &entry)->tail;
    uint64_t values = 0;
    for (size_t c = 0; c < worker->clients.len; c++)
        values += worker->clients.items[c]->object_list.len;
    for (int i = 0; i < LOAD_NUMBERS; i++)
        pack_u64(tail, i == LOAD_VALUES ? values : i == LOAD_CELLS ? worker->cells : worker->load[i]);
    for (uint32_t d = 0; d < worker->device_count; d++) {
        struct worker_device *device = &worker->devices[d];
        uint64_t busy_ns = device->busy_ns;
        if (device->busy && worker->now_ns > device->started_ns)
            busy_ns += (uint64_t)(worker->now_ns - device->started_ns);
        /* The current run was counted from its start order, slightly too long. */
        if (busy_ns > device->told_ns)
            device->told_ns = busy_ns;
        pack_u64(tail, device->told_ns);
        pack_u64(tail, device->queue.len - device->first + device->busy);
    }
}

void worker_watch_tick(struct worker *worker, struct flow_effects *effects)
{
    worker_trace_flush(worker, effects);
    if (worker->host != UINT32_MAX && !worker->rejoins)
        worker_tell_load(worker, effects);
}
