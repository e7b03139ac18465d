#include "kube/usage.h"

#include <stdio.h>

#include "base/units.h"

struct measured {
    int64_t at_ns;      /* 0: never */
    struct usage usage; /* items are own */
};
struct usage_table {
    struct measured *machines; /* [machine_count] */
    size_t machine_count;
};

struct usage_table *usage_table_new(void)
{
    return mem_alloc(sizeof(struct usage_table));
}

void usage_table_free(struct usage_table *table)
{
    for (size_t i = 0; i < table->machine_count; i++)
        mem_free(table->machines[i].usage.items);
    mem_free(table->machines);
    mem_free(table);
}

void usage_put(struct usage_table *table, machine_id machine, const struct usage *usage, int64_t now_ns)
{
    CHECK(usage->item_count <= USAGE_ITEMS_MAX);
    if (machine >= table->machine_count) {
        size_t count = (size_t)machine + 1 + table->machine_count;
        struct measured *machines = mem_alloc(count * sizeof *machines);
        mem_copy(machines, table->machines, table->machine_count * sizeof *machines);
        mem_free(table->machines);
        table->machines = machines;
        table->machine_count = count;
    }
    struct measured *measured = &table->machines[machine];
    mem_free(measured->usage.items);
    measured->at_ns = now_ns;
    measured->usage = *usage;
    measured->usage.items = mem_alloc((usage->item_count + 1) * sizeof *usage->items);
    mem_copy(measured->usage.items, usage->items, usage->item_count * sizeof *usage->items);
}

/* Returns the newest measurement of the machine, or NULL if there is none. */
static const struct measured *newest(const struct usage_table *table, machine_id machine)
{
    const struct measured *measured = machine < table->machine_count ? &table->machines[machine] : NULL;
    return measured && measured->at_ns ? measured : NULL;
}

/* Returns the newest measurement if it is recent. */
static const struct measured *recent(const struct usage_table *table, machine_id machine, int64_t now_ns)
{
    const struct measured *measured = newest(table, machine);
    return measured && now_ns - measured->at_ns < USAGE_KEPT_S * NS_PER_SECOND ? measured : NULL;
}

static bool is_about(const struct container_usage *item, const struct task *task)
{
    return item->task == task->uid;
}

static bool has_items(const struct measured *measured, const struct task *task)
{
    for (size_t i = 0; measured && i < measured->usage.item_count; i++)
        if (is_about(&measured->usage.items[i], task))
            return true;
    return false;
}

/* Decides what is shown. Whoever prints it reads the clock once more, when the measurement may have become
 * old. */
bool usage_shows(const struct usage_table *table, const struct resource *resource, struct object_ref object,
                 int64_t now_ns)
{
    if (resource->id == RESOURCE_NODE_METRICS)
        return recent(table, object.machine->id, now_ns) != NULL;
    if (resource->id == RESOURCE_POD_METRICS)
        return !task_ended(object.task->state) &&
               has_items(recent(table, object.task->machine, now_ns), object.task);
    return true;
}

/* --- as Kubernetes shows it ----------------------------------------------------------------------------- */

static void put_usage(struct render *render, int64_t cpu_nano, int64_t memory_bytes)
{
    struct json_writer *out = &render->out;
    char text[32];
    json_key(out, "usage");
    json_begin_object(out);
    snprintf(text, sizeof text, cpu_nano ? "%lldn" : "%lld", (long long)cpu_nano);
    json_pair_text(out, "cpu", text);
    snprintf(text, sizeof text, "%lldKi", (long long)((memory_bytes + 1023) / 1024));
    json_pair_text(out, "memory", text);
    json_end_object(out);
}

static struct str window_text(struct render *render, const struct measured *measured)
{
    return arena_printf(render->scratch, "%lld.%03llds",
                        (long long)(measured->usage.window_ns / NS_PER_SECOND),
                        (long long)(measured->usage.window_ns % NS_PER_SECOND / NS_PER_MS));
}

static void begin_metrics(struct render *render, const char *kind, struct str name, struct str namespace_)
{
    struct json_writer *out = &render->out;
    json_begin_object(out);
    render_type(render, "metrics.k8s.io/v1beta1", kind);
    json_key(out, "metadata");
    render->metadata_start = out->out->len;
    json_begin_object(out);
    json_pair_str(out, "name", name);
    if (namespace_.len)
        json_pair_str(out, "namespace", namespace_);
    render_time(render, "creationTimestamp", render->now_ns);
}

static void put_when(struct render *render, const struct measured *measured)
{
    render_metadata_end(render);
    render_time(render, "timestamp", measured->at_ns);
    json_pair_str(&render->out, "window", window_text(render, measured));
}

void render_node_metrics(struct render *render, const struct machine *machine)
{
    const struct measured *measured = newest(render->usages, machine->id);
    CHECK(measured);
    begin_metrics(render, "NodeMetrics", machine->name, (struct str){0});
    render_node_labels(render, machine);
    put_when(render, measured);
    put_usage(render, measured->usage.cpu_nano, measured->usage.memory_bytes);
    json_end_object(&render->out);
}

void render_pod_metrics(struct render *render, const struct task *task)
{
    struct json_writer *out = &render->out;
    const struct measured *measured = newest(render->usages, task->machine);
    struct labels labels = job_labels(task->job, task, render->scratch);
    CHECK(measured);
    begin_metrics(render, "PodMetrics", task->name, task->job->jobset->namespace_);
    render_labels(render, "labels", &labels,
                  doc_path(render_pod_template(task->job), "metadata", "labels", NULL));
    put_when(render, measured);
    json_key(out, "containers");
    json_begin_array(out);
    for (size_t i = 0; i < measured->usage.item_count; i++) {
        const struct container_usage *item = &measured->usage.items[i];
        if (!is_about(item, task))
            continue;
        bool known = item->container < task->container_count;
        json_begin_object(out);
        json_pair_str(out, "name",
                      known ? task->containers[item->container].name : task->job->rjob->job.pod.container);
        put_usage(render, item->cpu_nano, item->memory_bytes);
        json_end_object(out);
    }
    json_end_array(out);
    json_end_object(out);
}

void metrics_cells(struct render *render, struct object_ref object, struct str name)
{
    bool node = object.kind == OBJECT_NODE;
    machine_id machine = node ? object.machine->id : object.task->machine;
    const struct measured *measured = newest(render->usages, machine);
    CHECK(measured);
    int64_t cpu_nano = node ? measured->usage.cpu_nano : 0, bytes = node ? measured->usage.memory_bytes : 0;
    for (size_t i = 0; !node && i < measured->usage.item_count; i++)
        if (is_about(&measured->usage.items[i], object.task)) {
            cpu_nano += measured->usage.items[i].cpu_nano;
            bytes += measured->usage.items[i].memory_bytes;
        }
    json_put_str(&render->out, name);
    json_put_str(&render->out, arena_printf(render->scratch, "%lldm", (long long)(cpu_nano / NS_PER_MS)));
    json_put_str(&render->out, arena_printf(render->scratch, "%lldKi", (long long)(bytes / 1024)));
    json_put_str(&render->out, window_text(render, measured));
}
