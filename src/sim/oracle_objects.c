/* oracle_objects.c - invariants of stored objects, queues and readiness, seen from outside. Each figure that
 * the core shows is counted again from what its readers see, and the state before an event is compared with
 * the state after it. */
#include "sim/world.h"

#include <string.h>

/* --- finalizers --------------------------------------------------------------------------------- */

/* Returns whether a user's finalizer holds the object. Finalizers that the control plane removes itself do
 * not count. */
static bool is_held(const struct doc *document)
{
    const struct doc *list = doc_path(document, "metadata", "finalizers", NULL);
    for (size_t i = 0; i < doc_len(list); i++) {
        struct str name = doc_str(doc_at(list, i), STR(""));
        if (!str_is(name, "foregroundDeletion") && !str_is(name, "orphan") && !str_is(name, FINALIZER_IN_USE))
            return true;
    }
    return false;
}

static void note_held(void *context, const struct object *object)
{
    struct world *world = context;
    if (is_held(object->document))
        vec_push(&world->held, object->uid);
}

static void note_all_held(struct world *world)
{
    const struct core *core = world->controller.core;
    const struct job_store *store = core_jobs(core);
    vec_clear(&world->held);
    for (int kind = OBJECT_JOBSET; kind < OBJECT_KINDS; kind++)
        object_visit(core_objects(core), (enum object_kind)kind, STR(""), note_held, world);
    for (size_t i = 0; i < store->jobsets.len; i++)
        if (is_held(store->jobsets.items[i]->document))
            vec_push(&world->held, store->jobsets.items[i]->uid);
}

/* Checks that only a write to an object removes its finalizers. */
static void check_held(struct world *world, const struct event *event)
{
    const struct core *core = world->controller.core;
    if (event->kind == EVENT_WRITE && event->write.verb == WRITE_REPLACE)
        return;
    for (size_t i = 0; i < world->held.len; i++)
        if (!object_find_uid(core_objects(core), world->held.items[i]) &&
            !jobs_find_uid(core_jobs(core), world->held.items[i]))
            world_fail(world, TORTURE_SAFETY, "object %llx is held by a finalizer and is gone",
                       (unsigned long long)world->held.items[i]);
}

/* --- owners ------------------------------------------------------------------------------------- */

static void check_owners(struct world *world, struct str key, const struct doc *document)
{
    const struct core *core = world->controller.core;
    const struct doc *list = doc_path(document, "metadata", "ownerReferences", NULL);
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *reference = doc_at(list, i);
        enum object_kind kind = object_kind_of(doc_str(doc_get(reference, "apiVersion"), STR("")),
                                               doc_str(doc_get(reference, "kind"), STR("")));
        obj_id uid = 0;
        bool counts = kind == OBJECT_JOBSET || object_kind_info(kind);
        if (!counts || kind == OBJECT_EVENT || kind == OBJECT_WORKLOAD || kind == OBJECT_NODE)
            continue; /* Jobs and Pods are identified by name */
        uid_parse(doc_str(doc_get(reference, "uid"), STR("")), &uid);
        if (!object_find_uid(core_objects(core), uid) && !jobs_find_uid(core_jobs(core), uid))
            world_fail(world, TORTURE_SAFETY, STR_FORMAT " outlives its owner " STR_FORMAT, STR_ARG(key),
                       STR_ARG(doc_str(doc_get(reference, "name"), STR(""))));
    }
}

static void check_object(void *context, const struct object *object)
{
    if (!object->deleted_ns)
        check_owners(context, object->key, object->document);
}

static void check_all_owners(struct world *world)
{
    for (int kind = OBJECT_JOBSET; kind < OBJECT_KINDS; kind++)
        object_visit(core_objects(world->controller.core), (enum object_kind)kind, STR(""), check_object,
                     world);
}

/* --- ResourceQuotas ----------------------------------------------------------------------------- */

struct recount {
    struct world *world;
    struct str namespace_;
    int64_t count;
};

static void count_pod(void *context, const struct task *task)
{
    struct recount *recount = context;
    recount->count += str_equal(task->job->jobset->namespace_, recount->namespace_);
}

static void count_object(void *context, const struct object *object)
{
    struct recount *recount = context;
    recount->count += str_equal(object->namespace_, recount->namespace_);
}

static void expect_used(struct recount *recount, const char *key)
{
    int64_t used_milli = 0;
    struct str ns = recount->namespace_;
    if (core_quota_used(recount->world->controller.core, ns, str_from(key), &used_milli) &&
        used_milli != recount->count * 1000)
        world_fail(recount->world, TORTURE_SAFETY,
                   "the quota of " STR_FORMAT " counts %lld thousandths of %s, there are %lld", STR_ARG(ns),
                   (long long)used_milli, key, (long long)recount->count);
    recount->count = 0;
}

static void check_quota(void *context, const struct object *quota)
{
    struct recount recount = {.world = context, .namespace_ = quota->namespace_};
    const struct core *core = recount.world->controller.core;
    jobs_visit_tasks(core_jobs(core), count_pod, &recount);
    expect_used(&recount, "pods");
    object_visit(core_objects(core), OBJECT_CONFIG_MAP, STR(""), count_object, &recount);
    expect_used(&recount, "configmaps");
    object_visit(core_objects(core), OBJECT_SECRET, STR(""), count_object, &recount);
    expect_used(&recount, "count/secrets");
    for (size_t i = 0; i < core_jobs(core)->jobsets.len; i++) {
        const struct jobset *jobset = core_jobs(core)->jobsets.items[i];
        recount.count += jobset_is_seen(jobset) && str_equal(jobset->namespace_, quota->namespace_);
    }
    expect_used(&recount, "count/jobsets.jobset.x-k8s.io");
}

/* --- ClusterQueues ------------------------------------------------------------------------------ */

struct usage_recount {
    struct world *world;
    const struct object *queue;
    const struct queue_usage *shown;
    int64_t reserved, admitted;
};

static void add_workload(void *context, const struct workload *workload)
{
    struct usage_recount *usage = context;
    /* A preemptor is shown to use no quota until its victims, which still use it, have ended. */
    const struct workload_condition *quota = &workload->conditions[WORKLOAD_QUOTA_RESERVED];
    bool books = workload->state == WORKLOAD_HOLDING
                     ? quota->present && quota->status
                     : workload->state == WORKLOAD_ADMITTED || workload->state == WORKLOAD_LEAVING;
    if (!books || !str_equal(workload->reserved_in, usage->queue->name))
        return;
    for (size_t r = 0; r < workload->jobset->spec.rjob_count; r++) {
        const struct podset *podset = &workload->podsets[r];
        for (size_t i = 0; i < podset->resource_count; i++) {
            const struct podset_resource *resource = &podset->resources[i];
            if (!str_equal(resource->flavor, usage->shown->flavor) ||
                !str_equal(resource->name, usage->shown->resource))
                continue;
            int64_t amount = resource->per_task * (podset->admitted - podset->done);
            usage->reserved += amount;
            usage->admitted += workload->state == WORKLOAD_HOLDING ? 0 : amount;
        }
    }
}

static void check_usage(void *context, const struct queue_usage *shown)
{
    struct usage_recount *usage = context;
    usage->shown = shown;
    usage->reserved = usage->admitted = 0;
    workload_visit(core_admit(usage->world->controller.core), add_workload, usage);
    if (usage->reserved != shown->reserved || usage->admitted != shown->admitted)
        world_fail(usage->world, TORTURE_SAFETY,
                   STR_FORMAT " uses %lld (admitted %lld) of " STR_FORMAT " in " STR_FORMAT
                              ", its workloads have %lld (%lld)",
                   STR_ARG(usage->queue->key), (long long)shown->reserved, (long long)shown->admitted,
                   STR_ARG(shown->resource), STR_ARG(shown->flavor), (long long)usage->reserved,
                   (long long)usage->admitted);
}

static void check_queue(void *context, const struct object *queue)
{
    struct usage_recount usage = {.world = context, .queue = queue};
    queue_usage_visit(core_admit(usage.world->controller.core), queue, check_usage, &usage);
}

/* --- what is kept for a preemptor --------------------------------------------------------------- */

static int32_t evictions_of(const struct workload *workload)
{
    int32_t sum = 0;
    for (size_t i = 0; i < workload->evictions.len; i++)
        sum += workload->evictions.items[i].count;
    return sum;
}

static void note_kept(void *context, const struct workload *workload)
{
    struct world *world = context;
    const struct cluster *cluster = core_cluster(world->controller.core);
    const struct jobset *jobset = workload->jobset;
    for (size_t i = 0; workload->state == WORKLOAD_HOLDING && i < jobset->grant.reserved_count; i++) {
        const struct room *room = &jobset->grant.reserved[i];
        struct kept_room kept = {jobset->uid, room->machine,
                                 room->chips & cluster->machines[room->machine].free_mask,
                                 workload->preempted, evictions_of(workload)};
        if (kept.chips)
            vec_push(&world->kept, kept);
    }
}

/* Checks that free chips reserved for a preemptor were not given to others while the preemptor has waited
 * without a break. */
static void check_kept(struct world *world, const struct event *event)
{
    const struct core *core = world->controller.core;
    for (size_t i = 0; event->kind != EVENT_CLUSTER && i < world->kept.len; i++) {
        const struct kept_room *kept = &world->kept.items[i];
        const struct workload *workload = workload_of(core_admit(core), kept->jobset);
        const struct machine *machine = &core_cluster(core)->machines[kept->machine];
        uint64_t taken = kept->chips & ~machine->free_mask;
        bool same = workload && workload->state == WORKLOAD_HOLDING &&
                    workload->preempted == kept->preempted && evictions_of(workload) == kept->evictions;
        if (taken && same)
            world_fail(world, TORTURE_SAFETY,
                       "chips %llx of " STR_FORMAT " were kept for " STR_FORMAT " and given to another",
                       (unsigned long long)taken, STR_ARG(machine->name), STR_ARG(workload->jobset->key));
    }
}

/* --- readiness ---------------------------------------------------------------------------------- */

/* Checks that a task without containers, and thus without probes, is ready while it runs. */
static void check_ready(void *context, const struct task *task)
{
    if (task->state == TASK_RUNNING && task->container_count == 0 && !task->ready)
        world_fail(context, TORTURE_SAFETY, STR_FORMAT " runs, has no probes and is not ready",
                   STR_ARG(task->name));
}

/* --- the two calls ------------------------------------------------------------------------------ */

void oracle_before_objects(struct world *world)
{
    vec_clear(&world->kept);
    workload_visit(core_admit(world->controller.core), note_kept, world);
    note_all_held(world);
}

void oracle_objects(struct world *world, const struct event *event)
{
    const struct core *core = world->controller.core;
    check_held(world, event);
    check_kept(world, event);
    check_all_owners(world);
    object_visit(core_objects(core), OBJECT_RESOURCE_QUOTA, STR(""), check_quota, world);
    object_visit(core_objects(core), OBJECT_CLUSTER_QUEUE, STR(""), check_queue, world);
    jobs_visit_tasks(core_jobs(core), check_ready, world);
}
