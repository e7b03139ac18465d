#include "kube/stored.h"

#include "core/health/fault.h"
#include "core/words/release.h"
#include "kube/usage.h"

#include <stdio.h>

enum { COLUMNS_MAX = 12 };

#define NAME_COLUMN TABLE_NAME_COLUMN
#define AGE_COLUMN  TABLE_AGE_COLUMN

static const struct table_column tables[RESOURCES][COLUMNS_MAX] = {
    [RESOURCE_JOBSETS] = {NAME_COLUMN,
                          {"TerminalState", "string", "", "Completed or Failed once it has finished.", 0},
                          {"Restarts", "string", "", "How often it was restarted.", 0},
                          {"Completed", "string", "", "Status of the condition Completed.", 0},
                          {"Suspended", "string", "", "spec.suspend.", 0},
                          AGE_COLUMN,
                          {"State", "string", "", "What it is doing.", 0},
                          {"Step", "string", "", "The step that every rank has reached, of all.", 0}},
    [RESOURCE_JOBS] = {NAME_COLUMN,
                       {"Status", "string", "", "Status of the job.", 0},
                       {"Completions", "string", "", "Pods that succeeded, of the wanted number.", 0},
                       {"Duration", "string", "", "Time from start to end, or to now.", 0},
                       AGE_COLUMN,
                       {"Containers", "string", "", "Name of the main container.", 1},
                       {"Images", "string", "", "Its image: recorded, not run.", 1},
                       {"Selector", "string", "", "Label selector of its pods.", 1}},
    [RESOURCE_PODS] = {NAME_COLUMN,
                       {"Ready", "string", "", "Containers that are ready, of all.", 0},
                       {"Status", "string", "", "State of the pod.", 0},
                       {"Restarts", "string", "", "Restarts of its containers in place.", 0},
                       AGE_COLUMN,
                       {"IP", "string", "", "Address of its machine.", 1},
                       {"Node", "string", "", "Machine it is placed on.", 1},
                       {"Nominated Node", "string", "", "Not used.", 1},
                       {"Readiness Gates", "string", "", "Not used.", 1},
                       {"Rank", "string", "", "Its rank among the pods that talk to each other.", 1},
                       {"Chips", "string", "", "Chips it holds.", 1}},
    [RESOURCE_NODES] = {NAME_COLUMN,
                        {"Status", "string", "", "Ready, NotReady or Unknown.", 0},
                        {"Roles", "string", "", "spare, or none.", 0},
                        AGE_COLUMN,
                        {"Version", "string", "", "Version of the agent.", 0},
                        {"Chips", "string", "", "Chips that pods hold, of all.", 0},
                        {"Internal-IP", "string", "", "Address its tasks are reached at.", 1},
                        {"Block", "string", "", "Cube or rack of the machine.", 1}},
    [RESOURCE_WORKLOADS] = {NAME_COLUMN,
                            {"Queue", "string", "", "LocalQueue it waits in.", 0},
                            {"Reserved in", "string", "", "ClusterQueue whose quota it has.", 0},
                            {"Admitted", "string", "", "Whether it may run.", 0},
                            {"Finished", "string", "", "Whether it has ended.", 0},
                            AGE_COLUMN},
    [RESOURCE_FAULTS] = {NAME_COLUMN,
                         {"Machine", "string", "", "Where it was seen.", 0},
                         {"Code", "string", "", "What was seen.", 0},
                         {"Place", "string", "", "The part of the machine.", 0},
                         {"Level", "string", "", "How bad it is.", 0},
                         {"State", "string", "", "Open or Closed.", 0},
                         {"Action", "string", "", "What was done about it.", 0},
                         {"Count", "integer", "", "How often it was seen.", 0},
                         AGE_COLUMN},
    [RESOURCE_CUBES] = {NAME_COLUMN,
                        {"Status", "string", "", "Ready, NotReady, Draining or Drained.", 0},
                        {"Machines", "string", "", "Machines that are ready, of all.", 0},
                        {"Chips", "string", "", "Chips that pods hold, of all.", 0},
                        {"Slice", "string", "", "JobSets whose slices have it.", 0},
                        AGE_COLUMN,
                        {"Pod", "string", "", "Pod whose switches join it.", 1},
                        {"Bad-Links", "string", "", "Switches at which its light is bad.", 1}},
    [RESOURCE_SWITCHES] = {NAME_COLUMN,
                           {"Status", "string", "", "Ready, NotReady, Unknown, Draining or Drained.", 0},
                           {"Health", "string", "", "What the switch says of itself.", 0},
                           {"Circuits", "integer", "", "Cubes' ends that it joins.", 0},
                           {"Bad-Ports", "integer", "", "Ports without light, or that will not join.", 0},
                           AGE_COLUMN,
                           {"Address", "string", "", "Where it is reached.", 1},
                           {"Reason", "string", "", "Why it is not ready.", 1}},
    [RESOURCE_SLICES] = {NAME_COLUMN,
                         {"Shape", "string", "", "Chips along X, Y and Z.", 0},
                         {"Status", "string", "", "Connecting, Connected, Lost, Moving or Failed.", 0},
                         {"Switches", "string", "", "Switches whose circuits were read back, of all.", 0},
                         {"Without", "string", "", "Switches that it does without.", 0},
                         {"Cubes", "integer", "", "Number of its cubes.", 0},
                         AGE_COLUMN,
                         {"Pod", "string", "", "Pod of its cubes.", 1},
                         {"Names", "string", "", "Its cubes, by place.", 1}},
    [RESOURCE_FABRIC_SESSIONS] = {NAME_COLUMN,
                                  {"Tables", "string", "", "Routing tables that its ranks were given.", 0},
                                  {"Changes", "integer", "", "How often the tables were replaced.", 0},
                                  {"Ready", "string", "", "Whether the tables fit the switches.", 0},
                                  AGE_COLUMN},
    [RESOURCE_LEMONS] = {NAME_COLUMN,
                         {"Lemon", "string", "", "Whether a signal has passed its threshold.", 0},
                         {"Score", "integer", "", "Signals in per cent of their thresholds, summed.", 0},
                         {"Evidence", "string", "", "What was counted.", 0}},
    [RESOURCE_NODE_METRICS] = {NAME_COLUMN,
                               {"CPU", "string", "", "Used in the window, in CPUs.", 0},
                               {"Memory", "string", "", "In use at its end.", 0},
                               {"Window", "string", "", "Time over which was measured.", 0}},
    [RESOURCE_POD_METRICS] = {NAME_COLUMN,
                              {"CPU", "string", "", "Used in the window, in CPUs.", 0},
                              {"Memory", "string", "", "In use at its end.", 0},
                              {"Window", "string", "", "Time over which was measured.", 0}},
    [RESOURCE_EVENTS] = {{"Last Seen", "string", "", "Time since it was seen last.", 0},
                         {"Type", "string", "", "Normal or Warning.", 0},
                         {"Reason", "string", "", "Why, in one word.", 0},
                         {"Object", "string", "", "The object that it is about.", 0},
                         {"Subobject", "string", "", "Not used.", 1},
                         {"Source", "string", "", "The reporter.", 1},
                         {"Message", "string", "", "What happened.", 0},
                         {"First Seen", "string", "", "Time since it was seen first.", 1},
                         {"Count", "string", "", "How often it was seen.", 1},
                         {"Name", "string", "name", "Name of the event.", 1}},
};

static const struct table_column *columns_of(const struct resource *resource)
{
    if (resource_is_stored(resource))
        return stored_columns(resource);
    if (resource->id == RESOURCE_OLD_WORKLOADS)
        return tables[RESOURCE_WORKLOADS];
    return tables[resource->id == RESOURCE_NEW_EVENTS ? RESOURCE_EVENTS : resource->id];
}

void table_begin_metadata(struct json_writer *out, const char *version)
{
    char text[48];
    snprintf(text, sizeof text, "meta.k8s.io/%s", version);
    json_begin_object(out);
    json_pair_text(out, "kind", "Table");
    json_pair_text(out, "apiVersion", text);
    json_key(out, "metadata");
    json_begin_object(out);
}

void table_end_metadata(struct json_writer *out, const struct resource *resource, bool columns)
{
    json_end_object(out);
    json_key(out, "columnDefinitions");
    if (columns) {
        json_begin_array(out);
        const struct table_column *column = columns_of(resource);
        for (int i = 0; i < COLUMNS_MAX && column[i].name; i++) {
            json_begin_object(out);
            json_pair_text(out, "name", column[i].name);
            json_pair_text(out, "type", column[i].type);
            json_pair_text(out, "format", column[i].format);
            json_pair_text(out, "description", column[i].description);
            json_pair_int(out, "priority", column[i].priority);
            json_end_object(out);
        }
        json_end_array(out);
    } else {
        json_put_null(out);
    }
    json_key(out, "rows");
    json_begin_array(out);
}

void table_begin(struct json_writer *out, const struct resource *resource, const char *version,
                 uint64_t list_version, bool columns)
{
    char text[24];
    table_begin_metadata(out, version);
    snprintf(text, sizeof text, "%llu", (unsigned long long)list_version);
    json_pair_text(out, "resourceVersion", text);
    table_end_metadata(out, resource, columns);
}

void table_end(struct json_writer *out)
{
    json_end_array(out);
    json_end_object(out);
}

void table_row(struct json_writer *out, enum table_include include, const char *version, struct str cells,
               struct str object, struct str metadata)
{
    json_begin_object(out);
    json_key(out, "cells");
    json_put_raw(out, cells);
    if (include == INCLUDE_OBJECT) {
        json_key(out, "object");
        json_put_raw(out, object);
    } else if (include == INCLUDE_METADATA) {
        char text[48];
        snprintf(text, sizeof text, "meta.k8s.io/%s", version);
        json_key(out, "object");
        json_begin_object(out);
        json_pair_text(out, "kind", "PartialObjectMetadata");
        json_pair_text(out, "apiVersion", text);
        json_key(out, "metadata");
        json_put_raw(out, metadata);
        json_end_object(out);
    }
    json_end_object(out);
}

/* --- cells ------------------------------------------------------------------------------------- */

void table_put_age(struct render *render, int64_t since_ns)
{
    char text[24];
    if (since_ns == 0) {
        json_put_text(&render->out, "<unknown>");
        return;
    }
    age_format(render->now_ns > since_ns ? render->now_ns - since_ns : 0, text);
    json_put_text(&render->out, text);
}

static void put_count(struct render *render, int64_t part, int64_t whole)
{
    char text[48];
    snprintf(text, sizeof text, "%lld/%lld", (long long)part, (long long)whole);
    json_put_text(&render->out, text);
}

static void put_number(struct render *render, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    json_put_text(&render->out, text);
}

static void jobset_cells(struct render *render, const struct jobset *jobset)
{
    struct json_writer *out = &render->out;
    const struct condition *completed = &jobset->conditions[CONDITION_COMPLETED];
    const struct doc *suspend = doc_path(jobset->document, "spec", "suspend", NULL);
    json_put_str(out, jobset->name);
    json_put_text(out, terminal_state_name(jobset->terminal_state));
    put_number(render, jobset->history.record_count);
    json_put_text(out, !completed->present ? "" : completed->status ? "True" : "False");
    json_put_text(out, !suspend ? "" : doc_bool(suspend, false) ? "true" : "false");
    table_put_age(render, jobset->created_ns);
    json_put_text(out, render_jobset_state(jobset));
    if (jobset->progress.step < 0 || (jobset->progress.step == 0 && jobset->progress.total == 0))
        json_put_text(out, "");
    else if (jobset->progress.total > 0)
        put_count(render, jobset->progress.step, jobset->progress.total);
    else
        put_number(render, jobset->progress.step);
}

static void job_cells(struct render *render, const struct job *job)
{
    struct json_writer *out = &render->out;
    const struct job_spec *spec = &job->rjob->job;
    char text[64];
    json_put_str(out, job->name);
    json_put_text(out, render_job_word(job));
    if (spec->completions >= 0)
        put_count(render, job->succeeded, spec->completions);
    else
        put_count(render, job->succeeded, 1);
    int64_t end_ns = job->finished_ns ? job->finished_ns : render->now_ns;
    if (job->start_ns && end_ns >= job->start_ns)
        age_format(end_ns - job->start_ns, text);
    else
        text[0] = 0;
    json_put_text(out, text);
    table_put_age(render, job->created_ns);
    json_put_str(out, spec->pod.container);
    json_put_str(out, spec->pod.image);
    snprintf(text, sizeof text, "batch.kubernetes.io/controller-uid=");
    char uid[UID_TEXT_MAX];
    uid_text(job->uid, uid);
    json_put_str(out, arena_printf(render->scratch, "%s%s", text, uid));
}

static void pod_cells(struct render *render, const struct task *task)
{
    struct json_writer *out = &render->out;
    const struct cluster *cluster = core_cluster(render->core);
    bool placed = cluster && task->machine < cluster->machine_count;
    json_put_str(out, task->name);
    struct pod_counts counts = render_pod_counts(task);
    json_put_str(out, arena_printf(render->scratch, "%u/%u", counts.ready, counts.containers));
    json_put_str(out, render_pod_status(task, render->scratch));
    put_number(render, counts.restarts);
    table_put_age(render, task->created_ns);
    json_put_str(out, placed ? cluster->machines[task->machine].address : STR("<none>"));
    json_put_str(out, placed ? cluster->machines[task->machine].name : STR("<none>"));
    json_put_text(out, "<none>");
    json_put_text(out, "<none>");
    if (task_is_spare(task))
        json_put_text(out, "spare");
    else
        put_number(render, task->rank);
    put_number(render, __builtin_popcountll(task->chips_were));
}

static void node_cells(struct render *render, const struct machine *machine)
{
    struct json_writer *out = &render->out;
    const struct cluster *cluster = core_cluster(render->core);
    json_put_str(out, machine->name);
    bool healthy = machine->isolation == ISOLATION_HEALTHY;
    json_put_str(out, arena_printf(render->scratch, "%s%s%s%s", render_node_word(machine),
                                   machine->cordoned ? ",SchedulingDisabled" : "", healthy ? "" : ",",
                                   healthy ? "" : isolation_lifecycle.names[machine->isolation]));
    json_put_text(out, machine->spare ? "spare" : "<none>");
    table_put_age(render, machine->created_ns);
    json_put_text(out, this_release.package);
    put_count(render, machine->chip_count - __builtin_popcountll(machine->free_mask), machine->chip_count);
    json_put_str(out, machine->address);
    json_put_str(out, machine->block < cluster->block_count ? cluster->blocks[machine->block].name : STR(""));
}

static void event_cells(struct render *render, const struct note *note)
{
    struct json_writer *out = &render->out;
    const struct resource *about = resource_of_kind(note->regarding);
    char name[NOTE_NAME_MAX];
    render_note_name(note, name);
    table_put_age(render, note->last_ns);
    json_put_text(out, note->warning ? "Warning" : "Normal");
    json_put_str(out, note->reason);
    json_put_str(out, arena_printf(render->scratch, "%s/" STR_FORMAT, about ? about->singular : "object",
                                   STR_ARG(note->name)));
    json_put_text(out, "");
    json_put_text(out, "phalanx-controller");
    json_put_str(out, note->message);
    table_put_age(render, note->first_ns);
    put_number(render, note->count);
    json_put_text(out, name);
}

static int64_t time_at(const struct doc *object, const char *key, int64_t otherwise_ns)
{
    int64_t time_ns;
    struct str text = doc_str(doc_get(object, key), STR(""));
    return text.len && time_parse(text, &time_ns) ? time_ns : otherwise_ns;
}

/* Returns the reporter of the event: "component, host". */
static struct str event_source(struct render *render, const struct doc *document)
{
    const struct doc *source = doc_get(document, "source");
    struct str component = doc_str(doc_get(source, "component"), STR(""));
    struct str host = doc_str(doc_get(source, "host"), STR(""));
    if (component.len == 0) {
        component = doc_str(doc_get(document, "reportingComponent"), STR(""));
        host = doc_str(doc_get(document, "reportingInstance"), STR(""));
    }
    return arena_printf(render->scratch, STR_FORMAT "%s" STR_FORMAT, STR_ARG(component), host.len ? ", " : "",
                        STR_ARG(host));
}

/* Chooses the time and count of an Event as Kubernetes' printer does. */
static void user_event_cells(struct render *render, const struct object *object)
{
    struct json_writer *out = &render->out;
    const struct doc *document = object->document, *series = doc_get(document, "series");
    const struct doc *about = doc_get(document, "involvedObject");
    struct str name = doc_str(doc_get(about, "name"), STR(""));
    struct str kind = doc_str(doc_get(about, "kind"), STR(""));
    int64_t first_ns =
        time_at(document, "firstTimestamp", time_at(document, "eventTime", object->created_ns));
    int64_t last_ns = time_at(series, "lastObservedTime", time_at(document, "lastTimestamp", first_ns));
    int64_t count = doc_int(doc_get(series, "count"), doc_int(doc_get(document, "count"), 0));
    struct buf lower BUF_CLEANUP = {0};
    for (size_t i = 0; i < kind.len; i++)
        buf_add_char(&lower,
                     kind.data[i] >= 'A' && kind.data[i] <= 'Z' ? (char)(kind.data[i] + 32) : kind.data[i]);
    table_put_age(render, last_ns);
    json_put_str(out, doc_str(doc_get(document, "type"), STR("")));
    json_put_str(out, doc_str(doc_get(document, "reason"), STR("")));
    json_put_str(out, arena_printf(render->scratch, STR_FORMAT "%s" STR_FORMAT, STR_ARG(buf_str(&lower)),
                                   name.len ? "/" : "", STR_ARG(name)));
    json_put_str(out, doc_str(doc_get(about, "fieldPath"), STR("")));
    json_put_str(out, event_source(render, document));
    json_put_str(out, str_trim(doc_str(doc_get(document, "message"), STR(""))));
    table_put_age(render, first_ns);
    put_number(render, count > 0 ? count : 1);
    json_put_str(out, object->name);
}

void table_cells(struct render *render, const struct resource *resource, struct object_ref object,
                 struct str name)
{
    json_begin_array(&render->out);
    if (resource_is_metrics(resource)) {
        metrics_cells(render, object, name);
        json_end_array(&render->out);
        return;
    }
    if (resource->id == RESOURCE_LEMONS) {
        lemon_cells(render, object.machine);
        json_end_array(&render->out);
        return;
    }
    switch (resource->object) {
    case OBJECT_JOBSET:
        jobset_cells(render, object.jobset);
        break;
    case OBJECT_JOB:
        job_cells(render, object.job);
        break;
    case OBJECT_POD:
        pod_cells(render, object.task);
        break;
    case OBJECT_NODE:
        node_cells(render, object.machine);
        break;
    case OBJECT_EVENT:
        if (object.kind == OBJECT_USER_EVENT)
            user_event_cells(render, object.object);
        else
            event_cells(render, object.note);
        break;
    case OBJECT_WORKLOAD:
        workload_cells(render, object.workload);
        table_put_age(render, workload_shown_created(object.workload));
        break;
    case OBJECT_FAULT:
        fault_cells(render, object.fault);
        table_put_age(render, object.fault->created_ns);
        break;
    case OBJECT_CUBE:
    case OBJECT_SWITCH:
    case OBJECT_SLICE:
    case OBJECT_FABRIC_SESSION:
        fabric_cells(render, object);
        break;
    default:
        CHECK(resource_is_stored(resource));
        stored_cells(render, object.object);
    }
    json_end_array(&render->out);
}
