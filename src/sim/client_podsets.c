/* client_podsets.c - clients that create Workloads themselves: for a job that names one and waits for it,
 * with or without its shape, and for no job at all. Clients change, deactivate and delete these objects. They
 * compete with Jobs that fill machines, Workloads that preempt, and Pods without a queue. */
#include "sim/world.h"

#include "doc/json.h"
#include "core/gang/trial.h"

enum { NAMES = 4 };

struct choice {
    struct world *world;
    const struct workload *workload;
    uint64_t seen;
};

static void choose_own(void *context, const struct workload *workload)
{
    struct choice *choice = context;
    if (workload->own && rng_below(&choice->world->rng, ++choice->seen) == 0)
        choice->workload = workload;
}

static const struct workload *any_own(struct world *world)
{
    struct choice choice = {.world = world};
    workload_visit(core_admit(world->controller.core), choose_own, &choice);
    return choice.workload;
}

/* Returns a job that waits for a Workload that does not exist, or NULL. */
static const struct jobset *any_waiting(struct world *world)
{
    const struct job_store *store = core_jobs(world->controller.core);
    const struct jobset *found = NULL;
    uint64_t seen = 0;
    for (size_t i = 0; i < store->jobsets.len; i++) {
        const struct jobset *jobset = store->jobsets.items[i];
        bool waits = prebuilt_name(jobset).len && !jobset->deleted_ns && !jobset_finished(jobset) &&
                     !workload_of(core_admit(world->controller.core), jobset->uid);
        if (waits && rng_below(&world->rng, ++seen) == 0)
            found = jobset;
    }
    return found;
}

/* --- bodies ----------------------------------------------------------------------------------- */

static void begin_body(struct world *world, struct json_writer *json, struct str ns, struct str name,
                       struct str queue)
{
    json_begin_object(json);
    json_pair_text(json, "apiVersion", "kueue.x-k8s.io/v1beta2");
    json_pair_text(json, "kind", "Workload");
    json_key(json, "metadata");
    json_begin_object(json);
    json_pair_str(json, "name", name);
    json_pair_str(json, "namespace", ns);
    if (client_has(world, FEATURE_OBJECTS) && world_chance(world, 150000)) {
        json_key(json, "finalizers");
        json_begin_array(json);
        json_put_text(json, CLIENT_HOLD);
        json_end_array(json);
    }
    json_end_object(json);
    json_key(json, "spec");
    json_begin_object(json);
    json_pair_str(json, "queueName", queue);
    if (world_chance(world, 500000))
        json_pair_int(json, "priority", world_draw(world, -100, 2000));
    if (world_chance(world, 100000))
        json_pair_bool(json, "active", false);
    json_key(json, "podSets");
    json_begin_array(json);
}

static struct str any_queue(struct world *world)
{
    static const char *const queues[] = {"lq-0", "lq-0", "lq-1", "lq-2", "nowhere"};
    return str_from(queues[world_draw(world, 0, 4)]);
}

static void send(struct world *world, struct json_writer *json, struct str ns, struct str name)
{
    json_end_array(json);
    json_end_object(json);
    json_end_object(json);
    client_send(world, WRITE_CREATE, OBJECT_WORKLOAD, ns, name, buf_str(json->out));
    world_trace(world, "client: create workload " STR_FORMAT ": %s", STR_ARG(name), json->out->data);
}

/* Creates the Workload as the job requires; a few have one task more. */
static void make_for(struct world *world, const struct jobset *jobset)
{
    struct buf body BUF_CLEANUP = {0};
    struct json_writer json = {.out = &body};
    struct str name = prebuilt_name(jobset);
    bool spoiled = world_chance(world, 150000);
    begin_body(world, &json, jobset->namespace_, name, any_queue(world));
    for (size_t r = 0; r < jobset->spec.rjob_count; r++) {
        const struct doc *template = workload_pod_template(jobset->document, r);
        json_begin_object(&json);
        json_pair_text(&json, "name", (const char *[]){"a", "b", "c", "d", "e", "f", "g", "h"}[r % 8]);
        json_pair_int(&json, "count", rjob_task_count(&jobset->spec.rjobs[r]) + spoiled);
        json_key(&json, "template");
        json_begin_object(&json);
        json_key(&json, "spec");
        json_put_doc(&json, doc_get(template, "spec"));
        json_end_object(&json);
        json_end_object(&json);
    }
    send(world, &json, jobset->namespace_, name);
}

static void make_bare(struct world *world)
{
    struct buf body BUF_CLEANUP = {0};
    struct json_writer json = {.out = &body};
    struct str ns = str_from(client_any_namespace(world));
    char name[16];
    int64_t podsets = world_draw(world, 1, 2);
    snprintf(name, sizeof(name), "wl-%llu", (unsigned long long)rng_below(&world->rng, NAMES));
    begin_body(world, &json, ns, str_from(name), any_queue(world));
    for (int64_t i = 0; i < podsets; i++) {
        int64_t count = world_draw(world, 0, 3);
        buf_printf(&body, "%s{\"name\":\"p-%lld\",\"count\":%lld,", i ? "," : "", (long long)i,
                   (long long)count);
        if (count > 1 && podsets == 1 && world_chance(world, 300000))
            buf_printf(&body, "\"minCount\":1,");
        buf_printf(&body,
                   "\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":"
                   "{\"limits\":{\"google.com/tpu\":%lld}}}]}}}",
                   (long long)world_draw(world, 1, world->swarm.chips));
    }
    send(world, &json, ns, str_from(name));
}

/* Creates a Workload before all others in the victim's queue that requests as much as the victim, or more. */
void client_rush(struct world *world, const struct workload *victim)
{
    struct buf body BUF_CLEANUP = {0};
    const struct podset *podset = &victim->podsets[0];
    struct str ns = victim->jobset->namespace_;
    int64_t chips = victim->jobset->spec.rjobs[0].job.pod.chips;
    char name[24];
    snprintf(name, sizeof(name), "rush-%u", ++world->created);
    buf_printf(&body,
               "{\"apiVersion\":\"kueue.x-k8s.io/v1beta2\",\"kind\":\"Workload\",\"metadata\":{\"name\":"
               "\"%s\",\"namespace\":\"" STR_FORMAT "\"},\"spec\":{\"queueName\":\"" STR_FORMAT
               "\",\"priority\":%u,\"podSets\":[{\"name\":\"main\",\"count\":%lld,\"template\":{\"spec\":"
               "{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"limits\":"
               "{\"google.com/tpu\":%lld}}}]}}}]}}",
               name, STR_ARG(ns), STR_ARG(victim->queue_name), 3000 + world->created,
               (long long)(podset->count + world_draw(world, 0, world->swarm.machines / 2)),
               (long long)(chips ? chips : 1));
    client_send(world, WRITE_CREATE, OBJECT_WORKLOAD, ns, str_from(name), buf_str(&body));
    world_trace(world, "client: create workload %s: %s", name, body.data);
}

/* Writes the Pod template of a Workload or Job with one container. */
static void put_template(struct buf *out, int64_t chips)
{
    buf_printf(
        out,
        "\"template\":{\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"c\",\"image\":"
        "\"i\",\"command\":[\"run\"],\"resources\":{\"limits\":{\"google.com/tpu\":%lld}}}]}}",
        (long long)chips);
}

static void send_job(struct world *world, const char *name, const char *labels, int64_t tasks, int64_t chips)
{
    struct buf body BUF_CLEANUP = {0};
    buf_printf(&body,
               "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"%s\",\"namespace\":"
               "\"default\",\"labels\":{%s}},\"spec\":{\"parallelism\":%lld,\"completions\":%lld,",
               name, labels, (long long)tasks, (long long)tasks);
    put_template(&body, chips);
    buf_printf(&body, "}}");
    client_send(world, WRITE_CREATE, OBJECT_JOB, STR("default"), str_from(name), buf_str(&body));
    world_trace(world, "client: create %s: %s", name, body.data);
}

/* Creates a Job that fills machines until a more urgent one preempts it. */
void client_fill(struct world *world)
{
    char name[24], labels[64];
    snprintf(name, sizeof(name), "fill-%u", ++world->created);
    snprintf(labels, sizeof(labels), "\"kueue.x-k8s.io/queue-name\":\"lq-%lld\"",
             (long long)world_draw(world, 0, 2));
    send_job(world, name, labels, world_draw(world, 1, world->swarm.machines),
             world_draw(world, 1, world->swarm.chips));
}

/* Creates a job for a Workload without one; a few need one task more. */
static void follow(struct world *world, const struct workload *workload)
{
    const struct job_spec *job = &workload->own->spec.rjobs[0].job;
    char name[24], labels[160];
    snprintf(name, sizeof(name), "job-%u", ++world->created);
    snprintf(labels, sizeof(labels),
             "\"kueue.x-k8s.io/queue-name\":\"lq-0\",\"kueue.x-k8s.io/prebuilt-workload-name\":\"" STR_FORMAT
             "\"",
             STR_ARG(workload->name));
    send_job(world, name, labels, job->parallelism + world_chance(world, 100000), job->pod.chips);
}

/* Returns whether a client's Job may take over the Workload, which needs one PodSet and the Jobs'
 * namespace. */
static bool may_follow(struct world *world, const struct workload *workload)
{
    return workload && workload_is_bare(workload) && !workload->own->deleted_ns &&
           workload->own->spec.rjob_count == 1 && str_is(workload->own->namespace_, "default") &&
           core_jobs(world->controller.core)->jobsets.len < world->swarm.jobsets_max;
}

/* Creates a Pod without a queue that fits into chips reserved for others. */
void client_squeeze_in(struct world *world)
{
    struct buf body BUF_CLEANUP = {0};
    char name[24];
    snprintf(name, sizeof(name), "small-%u", ++world->created);
    buf_printf(
        &body,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\"},"
        "\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"command\":"
        "[\"run\"],\"resources\":{\"limits\":{\"google.com/tpu\":1}}}]}}",
        name);
    client_send(world, WRITE_CREATE, OBJECT_POD, STR("default"), str_from(name), buf_str(&body));
    world_trace(world, "client: create %s", name);
}

/* --- changes ---------------------------------------------------------------------------------- */

void client_set_active(struct world *world, const struct workload *workload, bool active)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct buf body BUF_CLEANUP = {0};
    struct doc *document =
        workload->own ? doc_clone(&arena, workload->own->document) : doc_new(&arena, DOC_OBJECT);
    doc_set(&arena, doc_need_object(&arena, document, "spec"), STR("active"), doc_new_bool(&arena, active));
    json_write(&body, document);
    client_send(world, WRITE_REPLACE, OBJECT_WORKLOAD, workload->jobset->namespace_, workload->name,
                buf_str(&body));
    world_trace(world, "client: %s workload " STR_FORMAT, active ? "activate" : "deactivate",
                STR_ARG(workload->name));
}

/* Changes some fields of the Workload. The controller refuses some changes while the Workload has quota. */
static void change(struct world *world, const struct workload *workload)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct buf body BUF_CLEANUP = {0};
    struct doc *document = doc_clone(&arena, workload->own->document), *spec = doc_get(document, "spec");
    struct doc *podsets = doc_get(spec, "podSets");
    if (world_chance(world, 500000))
        doc_set(&arena, spec, STR("priority"), doc_new_int(&arena, world_draw(world, -100, 2000)));
    if (world_chance(world, 300000))
        doc_set(&arena, doc_at(podsets, 0), STR("count"), doc_new_int(&arena, world_draw(world, 0, 3)));
    if (world_chance(world, 200000) && doc_len(podsets) > 1)
        podsets->array.len--;
    if (world_chance(world, 200000))
        doc_set(&arena, spec, STR("queueName"), doc_new_str(&arena, STR("lq-1")));
    json_write(&body, document);
    client_send(world, WRITE_REPLACE, OBJECT_WORKLOAD, workload->own->namespace_, workload->name,
                buf_str(&body));
    world_trace(world, "client: change workload " STR_FORMAT ": %s", STR_ARG(workload->name), body.data);
}

static void drop(struct world *world, const struct workload *workload)
{
    client_send(world, WRITE_DELETE, OBJECT_WORKLOAD, workload->own->namespace_, workload->name, STR(""));
    world_trace(world, "client: delete workload " STR_FORMAT, STR_ARG(workload->name));
}

void client_podsets_act(struct world *world)
{
    const struct jobset *waiting = any_waiting(world);
    const struct workload *own = any_own(world);
    if (waiting && world_chance(world, 500000))
        make_for(world, waiting);
    else if (may_follow(world, own) && world_chance(world, 500000))
        follow(world, own);
    else if (!own || world_chance(world, 500000))
        make_bare(world);
    else if (world_chance(world, 600000))
        drop(world, own);
    else
        change(world, own);
}

/* --- the second phase ------------------------------------------------------------------------- */

static void drop_bare(void *context, const struct workload *workload)
{
    if (workload->own && workload_is_bare(workload) && !workload->own->deleted_ns)
        drop(context, workload);
}

void client_podsets_tidy(struct world *world)
{
    workload_visit(core_admit(world->controller.core), drop_bare, world);
}
