/* table_stored.c - columns and cells of stored kinds: Kubernetes' printers, and the printer columns of
 * Kueue's
 * CRDs. */
#include <stdio.h>

#include "kube/stored.h"

#define NAME TABLE_NAME_COLUMN
#define AGE  TABLE_AGE_COLUMN
#define TEXT(n, d)                                                                                           \
    {                                                                                                        \
        n, "string", "", d, 0                                                                                \
    }
#define NUMBER(n, d)                                                                                         \
    {                                                                                                        \
        n, "integer", "", d, 0                                                                               \
    }
#define WIDE(n, d)                                                                                           \
    {                                                                                                        \
        n, "string", "", d, 1                                                                                \
    }
#define COLUMNS(...)                                                                                         \
    (const struct table_column[])                                                                            \
    {                                                                                                        \
        __VA_ARGS__,                                                                                         \
        {                                                                                                    \
            .name = NULL                                                                                     \
        }                                                                                                    \
    }

/* clang-format off */
static const struct table_column *const tables[OBJECT_KINDS] = {
    [OBJECT_NAMESPACE] = COLUMNS(NAME, TEXT("Status", "Active, or Terminating."), AGE),
    [OBJECT_CONFIG_MAP] = COLUMNS(NAME, NUMBER("Data", "Keys of data and binaryData."), AGE),
    [OBJECT_SECRET] = COLUMNS(NAME, TEXT("Type", "What it is for."), NUMBER("Data", "Keys of data."), AGE),
    [OBJECT_SERVICE] = COLUMNS(NAME, TEXT("Type", "Type of the service."),
                       TEXT("Cluster-IP", "None: headless."),
                       TEXT("External-IP", "Not used."), TEXT("Port(s)", "Ports and their protocols."), AGE,
                       WIDE("Selector", "Labels of its pods.")),
    [OBJECT_SERVICE_ACCOUNT] = COLUMNS(NAME, NUMBER("Secrets", "Secrets that it names."), AGE),
    [OBJECT_CLAIM] = COLUMNS(NAME, TEXT("Status", "Bound."), TEXT("Volume", "Its volume."),
                       TEXT("Capacity", "What was asked for."), TEXT("Access Modes", "How it is mounted."),
                       TEXT("StorageClass", "As written."), TEXT("VolumeAttributesClass", "As written."), AGE,
                       WIDE("VolumeMode", "Filesystem or Block.")),
    [OBJECT_RESOURCE_QUOTA] = COLUMNS(NAME, TEXT("Request", "What is used, of what may be used."),
                       TEXT("Limit", "The same for limits."), AGE),
    [OBJECT_PRIORITY_CLASS] = COLUMNS(NAME, NUMBER("Value", "The priority."),
                       TEXT("Global-Default", "Of pods without a class."), AGE,
                       TEXT("PreemptionPolicy", "Whether it may preempt.")),
    [OBJECT_CLUSTER_QUEUE] = COLUMNS(NAME, TEXT("Cohort", "The cohort it shares quota with."),
                       WIDE("Strategy", "Queueing strategy."),
                       NUMBER("Pending Workloads", "Workloads that wait."),
                       {"Admitted Workloads", "integer", "", "Workloads that were admitted.", 1}),
    [OBJECT_LOCAL_QUEUE] = COLUMNS(NAME, TEXT("ClusterQueue", "The ClusterQueue behind it."),
                       NUMBER("Pending Workloads", "Workloads that wait."),
                       NUMBER("Admitted Workloads", "Workloads that were admitted.")),
    [OBJECT_WORKLOAD_PRIORITY_CLASS] = COLUMNS(NAME, NUMBER("Value", "The priority.")),
    [OBJECT_ROLE] = COLUMNS(NAME, TEXT("Created At", "When it was created.")),
    [OBJECT_CLUSTER_ROLE] = COLUMNS(NAME, TEXT("Created At", "When it was created.")),
    [OBJECT_ROLE_BINDING] = COLUMNS(NAME, TEXT("Role", "The role it gives."), AGE,
                       WIDE("Users", "Users it names."),
                       WIDE("Groups", "Groups it names."),
                       WIDE("ServiceAccounts", "Service accounts it names.")),
    [OBJECT_CLUSTER_ROLE_BINDING] = COLUMNS(NAME, TEXT("Role", "The role it gives."), AGE,
                       WIDE("Users", "Users it names."),
                       WIDE("Groups", "Groups it names."),
                       WIDE("ServiceAccounts", "Service accounts it names.")),
    [OBJECT_RESOURCE_FLAVOR] = COLUMNS(NAME, AGE),
    [OBJECT_COHORT] = COLUMNS(NAME, AGE),
    [OBJECT_TOPOLOGY] = COLUMNS(NAME, AGE),
    [OBJECT_ADMISSION_CHECK] = COLUMNS(NAME, AGE),
    [OBJECT_PROVISIONING_CONFIG] = COLUMNS(NAME, AGE),
    [OBJECT_MULTIKUEUE_CONFIG] = COLUMNS(NAME, AGE),
    [OBJECT_MULTIKUEUE_CLUSTER] = COLUMNS(NAME, AGE),
    [OBJECT_FAULT_TABLE] = COLUMNS(NAME, AGE),
    [OBJECT_REPAIR] = COLUMNS(NAME, TEXT("Machine", "The machine, switch or link that is repaired."),
                       TEXT("State", "Waiting, Resetting, Returning, Paused, Qualifying, Ticketed, Closed."),
                       TEXT("Action", "The hook that is tried."), TEXT("Faults", "Codes that it is for."),
                       NUMBER("Attempts", "Hooks and tests that were run."), AGE,
                       WIDE("Message", "Why it is in this state.")),
    [OBJECT_MAINTENANCE] = COLUMNS(NAME, TEXT("Phase", "Pending, Draining, Active, Done."),
                       NUMBER("Machines", "Machines that it is about."), TEXT("Start", "Of the window."),
                       TEXT("End", "Of the window."), TEXT("Action", "What is done in it."), AGE),
    [OBJECT_DISRUPTION_BUDGET] = COLUMNS(NAME, TEXT("Min Available", "Pods that must stay healthy."),
                       TEXT("Max Unavailable", "Pods that may be missing."),
                       NUMBER("Allowed Disruptions", "Pods that may be evicted now."), AGE),
};
/* clang-format on */

const struct table_column *stored_columns(const struct resource *resource)
{
    CHECK(!resource_is_stored(resource) || tables[resource->object]);
    return tables[resource->object];
}

/* --- cells --------------------------------------------------------------------------------------- */

static void put_text_or(struct render *render, const struct doc *node, const char *absent)
{
    struct str text = doc_str(node, STR(""));
    if (text.len)
        json_put_str(&render->out, text);
    else if (node && (node->kind == DOC_INT || node->kind == DOC_FLOAT))
        json_put_doc(&render->out, node);
    else
        json_put_text(&render->out, absent);
}

static void put_ports(struct render *render, const struct doc *ports)
{
    struct buf text BUF_CLEANUP = {0};
    for (size_t i = 0; i < doc_len(ports); i++) {
        struct str protocol = doc_str(doc_get(doc_at(ports, i), "protocol"), STR("TCP"));
        buf_printf(&text, "%s%lld/" STR_FORMAT, i ? "," : "",
                   (long long)doc_int(doc_get(doc_at(ports, i), "port"), 0), STR_ARG(protocol));
    }
    json_put_str(&render->out, text.len ? buf_str(&text) : STR("<none>"));
}

static void put_map(struct render *render, const struct doc *map)
{
    struct buf text BUF_CLEANUP = {0};
    for (size_t i = 0; i < doc_len(map); i++)
        buf_printf(&text, "%s" STR_FORMAT "=" STR_FORMAT, i ? "," : "", STR_ARG(map->object.members[i].key),
                   STR_ARG(doc_str(map->object.members[i].value, STR(""))));
    json_put_str(&render->out, text.len ? buf_str(&text) : STR("<none>"));
}

static void service_cells(struct render *render, const struct doc *spec)
{
    put_text_or(render, doc_get(spec, "type"), "ClusterIP");
    put_text_or(render, doc_get(spec, "clusterIP"), "<none>");
    json_put_text(&render->out, "<none>");
    put_ports(render, doc_get(spec, "ports"));
}

static void put_modes(struct render *render, const struct doc *modes)
{
    static const struct {
        const char *mode, *word;
    } words[] = {{"ReadWriteOnce", "RWO"},
                 {"ReadOnlyMany", "ROX"},
                 {"ReadWriteMany", "RWX"},
                 {"ReadWriteOncePod", "RWOP"}};
    struct buf text BUF_CLEANUP = {0};
    for (size_t i = 0; i < doc_len(modes); i++)
        for (size_t w = 0; w < sizeof words / sizeof *words; w++)
            if (str_is(doc_str(doc_at(modes, i), STR("")), words[w].mode))
                buf_printf(&text, "%s%s", text.len ? "," : "", words[w].word);
    json_put_str(&render->out, buf_str(&text));
}

static void claim_cells(struct render *render, const struct object *object)
{
    const struct doc *spec = doc_get(object->document, "spec");
    json_put_text(&render->out, "Bound");
    put_text_or(render, doc_get(spec, "volumeName"), "");
    put_text_or(render, doc_path(spec, "resources", "requests", "storage", NULL), "");
    put_modes(render, doc_get(spec, "accessModes"));
    put_text_or(render, doc_get(spec, "storageClassName"), "");
    put_text_or(render, doc_get(spec, "volumeAttributesClassName"), "<unset>");
}

/* Writes "requests.cpu: 3/10, pods: 1/5", either of the keys that begin with "limits." or of the others. */
static void put_usage(struct render *render, const struct object *object, bool limits)
{
    const struct doc *hard = doc_path(object->document, "spec", "hard", NULL);
    struct buf text BUF_CLEANUP = {0};
    for (size_t i = 0; i < doc_len(hard); i++) {
        const struct doc_member *member = &hard->object.members[i];
        int64_t used = 0;
        if (str_starts(member->key, STR("limits.")) != limits)
            continue;
        core_quota_used(render->core, object->namespace_, member->key, &used);
        buf_printf(&text, "%s" STR_FORMAT ": %lld%s/", text.len ? ", " : "", STR_ARG(member->key),
                   (long long)(used % 1000 ? used : used / 1000), used % 1000 ? "m" : "");
        if (member->value->kind == DOC_INT)
            buf_printf(&text, "%lld", (long long)member->value->integer);
        else
            buf_add_str(&text, member->value->text);
    }
    json_put_str(&render->out, buf_str(&text));
}

static void put_subjects(struct render *render, const struct doc *subjects, const char *kind)
{
    struct buf text BUF_CLEANUP = {0};
    for (size_t i = 0; i < doc_len(subjects); i++) {
        const struct doc *subject = doc_at(subjects, i);
        if (!str_is(doc_str(doc_get(subject, "kind"), STR("")), kind))
            continue;
        struct str ns = doc_str(doc_get(subject, "namespace"), STR(""));
        if (text.len)
            buf_printf(&text, ", ");
        if (ns.len)
            buf_printf(&text, STR_FORMAT "/", STR_ARG(ns));
        buf_add_str(&text, doc_str(doc_get(subject, "name"), STR("")));
    }
    json_put_str(&render->out, buf_str(&text));
}

static void binding_cells(struct render *render, const struct object *object)
{
    const struct doc *ref = doc_get(object->document, "roleRef"),
                     *subjects = doc_get(object->document, "subjects");
    struct str kind = doc_str(doc_get(ref, "kind"), STR("")), name = doc_str(doc_get(ref, "name"), STR(""));
    json_put_str(&render->out,
                 arena_printf(render->scratch, STR_FORMAT "/" STR_FORMAT, STR_ARG(kind), STR_ARG(name)));
    table_put_age(render, object->created_ns);
    put_subjects(render, subjects, "User");
    put_subjects(render, subjects, "Group");
    put_subjects(render, subjects, "ServiceAccount");
}

static void queue_cells(struct render *render, const struct object *object)
{
    const struct doc *spec = doc_get(object->document, "spec");
    int64_t pending = 0, admitted = 0;
    render_queue_counts(render, object, &pending, &admitted);
    if (object->kind == OBJECT_CLUSTER_QUEUE) {
        put_text_or(render, doc_get(spec, "cohortName"), "");
        put_text_or(render, doc_get(spec, "queueingStrategy"), "");
    } else {
        put_text_or(render, doc_get(spec, "clusterQueue"), "");
    }
    json_put_int(&render->out, pending);
    json_put_int(&render->out, admitted);
}

static void put_share(struct render *render, const struct doc *node)
{
    const struct doc *shown =
        node && node->kind == DOC_INT
            ? doc_new_str(render->scratch, arena_printf(render->scratch, "%lld", (long long)node->integer))
            : node;
    put_text_or(render, shown, "N/A");
}

static void budget_cells(struct render *render, const struct doc *document)
{
    put_share(render, doc_path(document, "spec", "minAvailable", NULL));
    put_share(render, doc_path(document, "spec", "maxUnavailable", NULL));
    json_put_int(&render->out, doc_int(doc_path(document, "status", "disruptionsAllowed", NULL), 0));
}

static void repair_cells(struct render *render, const struct object *object)
{
    const struct doc *document = object->document, *status = doc_get(document, "status");
    const struct doc *faults = doc_get(status, "faults");
    struct buf codes BUF_CLEANUP = {0};
    const struct doc *machine = doc_path(document, "spec", "machine", NULL);
    put_text_or(render, machine ? machine : doc_path(document, "spec", "place", NULL), "");
    put_text_or(render, doc_get(status, "state"), "Waiting");
    put_text_or(render, doc_get(status, "action"), "<none>");
    for (size_t i = 0; i < doc_len(faults); i++)
        buf_printf(&codes, "%s" STR_FORMAT, i ? "," : "", STR_ARG(doc_str(doc_at(faults, i), STR(""))));
    json_put_str(&render->out, codes.len ? buf_str(&codes) : STR("<none>"));
    json_put_int(&render->out, (int64_t)doc_len(doc_get(status, "attempts")));
    table_put_age(render, object->created_ns);
    put_text_or(render, doc_get(status, "message"), "");
}

static void maintenance_cells(struct render *render, const struct object *object)
{
    const struct doc *document = object->document;
    const struct doc *status = doc_get(document, "status"), *spec = doc_get(document, "spec");
    put_text_or(render, doc_get(status, "phase"), "Pending");
    if (doc_get(spec, "controller")) {
        char start[32];
        time_format(object->created_ns, start);
        json_put_int(&render->out, (int64_t)core_cluster(render->core)->machine_count);
        json_put_text(&render->out, start);
        put_text_or(render, doc_get(status, "until"), "");
        json_put_text(&render->out, "hold-leases");
        return;
    }
    json_put_int(&render->out, doc_int(doc_get(status, "machines"), 0));
    put_text_or(render, doc_get(spec, "start"), "");
    put_text_or(render, doc_get(spec, "end"), "");
    put_text_or(render, doc_get(spec, "action"), "drain");
}

void stored_cells(struct render *render, const struct object *object)
{
    struct json_writer *out = &render->out;
    const struct doc *document = object->document, *spec = doc_get(document, "spec");
    char time[32];
    json_put_str(out, object->name);
    switch (object->kind) {
    case OBJECT_NAMESPACE:
        json_put_text(out, stored_namespace_phase(object));
        break;
    case OBJECT_CONFIG_MAP:
        json_put_int(
            out, (int64_t)(doc_len(doc_get(document, "data")) + doc_len(doc_get(document, "binaryData"))));
        break;
    case OBJECT_SECRET:
        put_text_or(render, doc_get(document, "type"), "Opaque");
        json_put_int(out, (int64_t)doc_len(doc_get(document, "data")));
        break;
    case OBJECT_SERVICE:
        service_cells(render, spec);
        table_put_age(render, object->created_ns);
        put_map(render, doc_get(spec, "selector"));
        return;
    case OBJECT_SERVICE_ACCOUNT:
        json_put_int(out, (int64_t)doc_len(doc_get(document, "secrets")));
        break;
    case OBJECT_CLAIM:
        claim_cells(render, object);
        table_put_age(render, object->created_ns);
        put_text_or(render, doc_get(spec, "volumeMode"), "Filesystem");
        return;
    case OBJECT_RESOURCE_QUOTA:
        put_usage(render, object, false);
        put_usage(render, object, true);
        break;
    case OBJECT_PRIORITY_CLASS:
        json_put_int(out, doc_int(doc_get(document, "value"), 0));
        json_put_text(out, doc_bool(doc_get(document, "globalDefault"), false) ? "true" : "false");
        table_put_age(render, object->created_ns);
        put_text_or(render, doc_get(document, "preemptionPolicy"), "PreemptLowerPriority");
        return;
    case OBJECT_CLUSTER_QUEUE:
    case OBJECT_LOCAL_QUEUE:
        queue_cells(render, object);
        return;
    case OBJECT_DISRUPTION_BUDGET:
        budget_cells(render, document);
        break;
    case OBJECT_REPAIR:
        repair_cells(render, object);
        return;
    case OBJECT_MAINTENANCE:
        maintenance_cells(render, object);
        break;
    case OBJECT_WORKLOAD_PRIORITY_CLASS:
        json_put_int(out, doc_int(doc_get(document, "value"), 0));
        return;
    case OBJECT_ROLE:
    case OBJECT_CLUSTER_ROLE:
        time_format(object->created_ns, time);
        json_put_text(out, time);
        return;
    case OBJECT_ROLE_BINDING:
    case OBJECT_CLUSTER_ROLE_BINDING:
        binding_cells(render, object);
        return;
    default:
        break;
    }
    table_put_age(render, object->created_ns);
}
