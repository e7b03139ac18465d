#include "core/health/fault.h"
#include "core/repair/repair.h"
#include "core/words/release.h"
#include "kube/render.h"

#include <stdio.h>

const char *render_node_word(const struct machine *machine)
{
    switch (machine->state) {
    case MACHINE_READY:
        return "Ready";
    case MACHINE_AWAY:
        return "Unknown";
    default:
        return "NotReady";
    }
}

void render_node_labels(struct render *render, const struct machine *machine)
{
    struct json_writer *out = &render->out;
    const struct labels *base = &machine->labels, *user = &machine->user_labels;
    json_key(out, "labels");
    json_begin_object(out);
    for (size_t i = 0; i < base->len; i++) {
        struct str value = labels_get(user, base->items[i].key, base->items[i].value);
        json_key_str(out, base->items[i].key);
        json_put_str(out, value);
    }
    for (size_t i = 0; i < user->len; i++) {
        if (labels_get(base, user->items[i].key, (struct str){0}).data)
            continue;
        json_key_str(out, user->items[i].key);
        json_put_str(out, user->items[i].value);
    }
    json_end_object(out);
}

static void put_taint(struct render *render, struct str key, struct str value, struct str effect)
{
    struct json_writer *out = &render->out;
    json_begin_object(out);
    json_pair_str(out, "key", key);
    if (value.len)
        json_pair_str(out, "value", value);
    json_pair_str(out, "effect", effect);
    json_end_object(out);
}

static void put_spec(struct render *render, const struct machine *machine)
{
    struct json_writer *out = &render->out;
    json_key(out, "spec");
    json_begin_object(out);
    json_pair_str(out, "providerID", ARENA_CONCAT(render->scratch, STR("phalanx://"), machine->name));
    if (machine->cordoned)
        json_pair_bool(out, "unschedulable", true);
    bool isolated = isolation_is_out(machine->isolation);
    if (machine->cordoned || isolated || machine->taint_count) {
        json_key(out, "taints");
        json_begin_array(out);
        for (size_t i = 0; i < machine->taint_count; i++)
            put_taint(render, machine->taints[i].key, machine->taints[i].value, machine->taints[i].effect);
        if (machine->cordoned)
            put_taint(render, STR("node.kubernetes.io/unschedulable"), (struct str){0}, STR("NoSchedule"));
        if (isolated)
            put_taint(render, STR(FAULT_TAINT), str_from(isolation_lifecycle.names[machine->isolation]),
                      STR("NoSchedule"));
        json_end_array(out);
    }
    json_end_object(out);
}

/* Writes a quantity, not by printf, which took a tenth of the time of a Node. */
static void put_amount(struct json_writer *out, struct str key, int64_t amount, struct str suffix)
{
    char digits[DECIMAL_TEXT_MAX], text[DECIMAL_TEXT_MAX + 2];
    struct str number = str_decimal(amount, digits);
    CHECK(number.len + suffix.len <= sizeof text);
    mem_copy(text, number.data, number.len);
    mem_copy(text + number.len, suffix.data, suffix.len);
    json_key_str(out, key);
    json_put_str(out, (struct str){text, number.len + suffix.len});
}

static void put_resources(struct render *render, const char *key, const struct machine *machine)
{
    struct json_writer *out = &render->out;
    const struct cluster *cluster = core_cluster(render->core);
    bool whole = machine->cpu_milli % 1000 == 0;
    json_key(out, key);
    json_begin_object(out);
    if (machine->cpu_milli)
        put_amount(out, STR("cpu"), whole ? machine->cpu_milli / 1000 : machine->cpu_milli,
                   whole ? STR("") : STR("m"));
    if (machine->memory_bytes)
        put_amount(out, STR("memory"), machine->memory_bytes / 1024, STR("Ki"));
    put_amount(out, cluster->chip_resource, machine->chip_count, STR(""));
    json_pair_text(out, "pods", "110");
    json_end_object(out);
}

static void put_address(struct render *render, const char *type, struct str address)
{
    json_begin_object(&render->out);
    json_pair_text(&render->out, "type", type);
    json_pair_str(&render->out, "address", address);
    json_end_object(&render->out);
}

static void put_ready(struct render *render, const struct machine *machine)
{
    static const struct {
        const char *status, *reason;
        struct str message;
    } words[MACHINE_STATES] = {
        [MACHINE_UNSEEN] = {"False", "AgentNeverSeen", {"its agent has never registered", 30}},
        [MACHINE_READY] = {"True", "AgentReady", {"its agent is connected", 22}},
        [MACHINE_AWAY] = {"Unknown", "AgentAway", {"its agent's connection broke; its lease runs", 44}},
        [MACHINE_LOST] = {"False", "MachineLost", {"its tasks are dead or have fenced themselves", 44}},
    };
    CHECK(machine->state < MACHINE_STATES);
    render_condition(render, "Ready", words[machine->state].status, machine->state_since_ns,
                     words[machine->state].reason, words[machine->state].message);
}

/* Writes the Healthy condition that follows from the machine's open faults. */
static void put_healthy(struct render *render, const struct machine *machine)
{
    const struct fault *fault = fault_of_machine(core_health(render->core), machine->name);
    struct buf why BUF_CLEANUP = {0};
    if (fault) {
        fault_describe(fault, &why);
        buf_printf(&why, ": " STR_FORMAT, STR_ARG(buf_str(&fault->evidence)));
    } else {
        buf_add_str(&why, STR("no fault is open"));
    }
    if (machine->kept != ISOLATION_HEALTHY) {
        buf_printf(&why, "; ");
        repair_describe(core_repairs(render->core), machine, &why);
    }
    bool healthy = machine->isolation == ISOLATION_HEALTHY || machine->isolation == ISOLATION_RETURNED;
    render_condition(render, "Healthy", healthy ? "True" : "False",
                     machine->isolated_ns ? machine->isolated_ns : machine->created_ns,
                     isolation_lifecycle.names[machine->isolation], buf_str(&why));
}

static void put_info(struct render *render)
{
    struct json_writer *out = &render->out;
    char runtime[64];
    snprintf(runtime, sizeof runtime, "phalanx-shim://%s", this_release.version);
    json_key(out, "nodeInfo");
    json_begin_object(out);
    json_pair_text(out, "kubeletVersion", this_release.package);
    json_pair_text(out, "kubeProxyVersion", "");
    json_pair_text(out, "containerRuntimeVersion", runtime);
    json_pair_text(out, "operatingSystem", "linux");
    json_pair_text(out, "osImage", "Linux");
    json_pair_text(out, "kernelVersion", "");
    json_pair_text(out, "architecture", "amd64");
    json_pair_text(out, "machineID", "");
    json_pair_text(out, "systemUUID", "");
    json_pair_text(out, "bootID", "");
    json_end_object(out);
}

static void put_phalanx(struct render *render, const struct machine *machine)
{
    struct json_writer *out = &render->out;
    const struct cluster *cluster = core_cluster(render->core);
    json_key(out, "phalanx");
    json_begin_object(out);
    json_pair_text(out, "state", machine_lifecycle.names[machine->state]);
    json_pair_text(out, "isolation", isolation_lifecycle.names[machine->isolation]);
    if (machine->pod < cluster->pod_count)
        json_pair_str(out, "pod", cluster->pods[machine->pod].name);
    if (machine->block < cluster->block_count)
        json_pair_str(out, "block", cluster->blocks[machine->block].name);
    json_pair_bool(out, "spare", machine->spare);
    json_pair_int(out, "chips", machine->chip_count);
    json_pair_int(out, "freeChips", __builtin_popcountll(machine->free_mask));
    json_pair_int(out, "tasks", machine->task_count);
    if (machine->injection)
        json_pair_text(out, "injection", "allowed");
    json_end_object(out);
}

void render_node(struct render *render, const struct machine *machine)
{
    struct json_writer *out = &render->out;
    json_begin_object(out);
    render_type(render, "v1", "Node");
    render_metadata_begin(render, &(struct render_metadata){.name = machine->name,
                                                            .uid = machine->uid,
                                                            .version = machine->changed_seq,
                                                            .created_ns = machine->created_ns});
    render_node_labels(render, machine);
    if (machine->annotations.len > 0)
        render_labels(render, "annotations", &machine->annotations, NULL);
    if (machine->managed_fields.len > 0) {
        json_key(out, "managedFields");
        json_put_raw(out, machine->managed_fields);
    }
    render_metadata_end(render);
    put_spec(render, machine);
    json_key(out, "status");
    json_begin_object(out);
    put_resources(render, "capacity", machine);
    put_resources(render, "allocatable", machine);
    json_key(out, "conditions");
    json_begin_array(out);
    put_ready(render, machine);
    put_healthy(render, machine);
    render_lemon_condition(render, machine);
    json_end_array(out);
    json_key(out, "addresses");
    json_begin_array(out);
    put_address(render, "InternalIP", machine->address);
    put_address(render, "Hostname", machine->name);
    json_end_array(out);
    put_info(render);
    put_phalanx(render, machine);
    json_end_object(out);
    json_end_object(out);
}
