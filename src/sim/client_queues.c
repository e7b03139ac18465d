/* client_queues.c - clients of the queues. Flavors, ClusterQueues, Cohorts, LocalQueues, priorities and
 * topologies are created, changed while jobs run, and deleted. Workloads are deactivated and activated, and
 * running ones are preempted. client_podsets.c has Workloads that clients create themselves. */
#include "sim/world.h"

#include "doc/json.h"

static const struct object_store *objects_of(const struct world *world)
{
    return core_objects(world->controller.core);
}

static const char *one_of(struct world *world, const char *const *words, size_t count)
{
    return words[rng_below(&world->rng, count)];
}
#define ONE_OF(world, ...)                                                                                   \
    one_of((world), (const char *const[]){__VA_ARGS__},                                                      \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* --- bodies ----------------------------------------------------------------------------------- */

enum mood {
    MOOD_ANY,
    MOOD_EAGER,  /* every chip may be used, and urgent Workloads preempt others */
    MOOD_HEALED, /* nothing waits for quota */
};

static void put_quota(struct world *world, struct buf *out, const char *resource, int64_t most, bool cohort,
                      enum mood mood)
{
    bool healed = mood == MOOD_HEALED;
    int64_t nominal = healed ? 1000000 : mood == MOOD_EAGER ? most : world_draw(world, 0, most);
    buf_printf(out, "{\"name\":\"%s\",\"nominalQuota\":%lld", resource, (long long)nominal);
    if (cohort && !healed && world_chance(world, 300000))
        buf_printf(out, ",\"borrowingLimit\":%lld", (long long)world_draw(world, 0, most));
    if (cohort && !healed && world_chance(world, 300000))
        buf_printf(out, ",\"lendingLimit\":%lld", (long long)world_draw(world, 0, nominal));
    buf_printf(out, "}");
}

static void put_groups(struct world *world, struct buf *out, bool cohort, enum mood mood)
{
    int64_t chips = (int64_t)world->swarm.machines * world->swarm.chips;
    bool more = mood == MOOD_HEALED || (mood == MOOD_ANY && world_chance(world, 200000));
    buf_printf(out, "\"resourceGroups\":[{\"coveredResources\":[\"google.com/tpu\"%s],\"flavors\":[",
               more ? ",\"cpu\",\"pods\",\"memory\"" : "");
    int64_t flavors = mood == MOOD_ANY ? world_draw(world, 1, 2) : 1;
    for (int64_t f = 0; f < flavors; f++) {
        buf_printf(out, "%s{\"name\":\"f-%lld\",\"resources\":[", f ? "," : "", (long long)f);
        put_quota(world, out, "google.com/tpu", chips, cohort, mood);
        for (int i = 0; more && i < 3; i++) {
            buf_printf(out, ",");
            put_quota(world, out, (const char *[]){"cpu", "pods", "memory"}[i], 64, cohort, mood);
        }
        buf_printf(out, "]}");
    }
    buf_printf(out, "]}]");
}

static void put_cluster_queue(struct world *world, struct buf *out, const struct object *was, enum mood mood)
{
    (void)was;
    bool any = mood == MOOD_ANY, cohort = any && world_chance(world, 700000);
    bool healed = mood == MOOD_HEALED, eager = mood == MOOD_EAGER;
    const char *reclaim = ONE_OF(world, "Never", "LowerPriority", "Any", "Any");
    bool borrow = cohort && strcmp(reclaim, "Never") != 0 && world_chance(world, 300000);
    buf_printf(out, "\"spec\":{\"namespaceSelector\":{},\"queueingStrategy\":\"%s\",",
               healed ? "BestEffortFIFO" : ONE_OF(world, "StrictFIFO", "BestEffortFIFO"));
    if (cohort)
        buf_printf(out, "\"cohortName\":\"%s\",", ONE_OF(world, "co-0", "co-0", "co-1"));
    if (any && world_chance(world, 150000))
        buf_printf(out, "\"stopPolicy\":\"%s\",", ONE_OF(world, "Hold", "HoldAndDrain"));
    buf_printf(out, "\"flavorFungibility\":{\"whenCanBorrow\":\"%s\",\"whenCanPreempt\":\"%s\"},",
               ONE_OF(world, "MayStopSearch", "TryNextFlavor"),
               ONE_OF(world, "MayStopSearch", "TryNextFlavor"));
    buf_printf(out, "\"preemption\":{\"reclaimWithinCohort\":\"%s\",\"withinClusterQueue\":\"%s\"", reclaim,
               eager ? "LowerPriority"
                     : ONE_OF(world, "Never", "LowerPriority", "LowerOrNewerEqualPriority"));
    if (borrow)
        buf_printf(out, ",\"borrowWithinCohort\":{\"policy\":\"LowerPriority\"}");
    buf_printf(out, "},");
    put_groups(world, out, cohort, mood);
    buf_printf(out, "}");
}

static void put_local_queue(struct world *world, struct buf *out, const struct object *was, enum mood mood)
{
    struct str queue =
        was ? doc_str(doc_path(was->document, "spec", "clusterQueue", NULL), STR("")) : STR("");
    if (!queue.len) /* the name cannot change */
        queue = str_from(ONE_OF(world, "cq-0", "cq-1", "cq-2"));
    buf_printf(out, "\"spec\":{\"clusterQueue\":\"" STR_FORMAT "\"", STR_ARG(queue));
    if (mood == MOOD_ANY && world_chance(world, 100000))
        buf_printf(out, ",\"stopPolicy\":\"%s\"", ONE_OF(world, "Hold", "HoldAndDrain"));
    buf_printf(out, "}");
}

/* Returns whether the flavor has a topologyName, which cannot change. */
static bool has_topology(const struct object *flavor)
{
    return flavor && doc_path(flavor->document, "spec", "topologyName", NULL);
}

static void put_flavor(struct world *world, struct buf *out, const struct object *was, enum mood mood)
{
    buf_printf(out, "\"spec\":{");
    bool topology = has_topology(was) || (mood == MOOD_ANY && world_chance(world, 200000));
    if (topology || (mood == MOOD_ANY && world_chance(world, 300000)))
        buf_printf(out, "\"nodeLabels\":{\"phalanx.dev/rack\":\"rack-1\"}");
    if (topology)
        buf_printf(out, ",\"topologyName\":\"to-0\"");
    buf_printf(out, "}");
}

static void put_cohort(struct world *world, struct buf *out, const struct object *was, enum mood mood)
{
    (void)was;
    buf_printf(out, "\"spec\":{");
    if (mood == MOOD_ANY && world_chance(world, 500000))
        buf_printf(out, "\"parentName\":\"%s\",", ONE_OF(world, "co-1", "co-2"));
    put_groups(world, out, true, mood);
    buf_printf(out, "}");
}

static void put_urgent(struct world *world, struct buf *out, const struct object *was, enum mood mood)
{
    (void)was;
    buf_printf(out, "\"value\":%lld", (long long)world_draw(world, mood == MOOD_ANY ? -100 : 1000, 2000));
}

static void put_idle(struct world *world, struct buf *out, const struct object *was, enum mood mood)
{
    (void)was;
    buf_printf(out, "\"value\":%lld", (long long)world_draw(world, -100, mood == MOOD_ANY ? 2000 : -1));
}

static void put_topology(struct world *world, struct buf *out, const struct object *was, enum mood mood)
{
    (void)world, (void)was, (void)mood;
    buf_printf(out, "\"spec\":{\"levels\":[{\"nodeLabel\":\"phalanx.dev/rack\"},"
                    "{\"nodeLabel\":\"kubernetes.io/hostname\"}]}");
}

static const struct queue_kind {
    enum object_kind kind;
    const char *names[4];
    uint32_t weight;
    /* `was` is the replaced object, or NULL for a new one. */
    void (*put)(struct world *world, struct buf *out, const struct object *was, enum mood mood);
    bool heals; /* must exist and be generous in the second phase */
} kinds[] = {
    {OBJECT_CLUSTER_QUEUE, {"cq-0", "cq-1", "cq-2"}, 8, put_cluster_queue, true},
    {OBJECT_LOCAL_QUEUE, {"lq-0", "lq-1", "lq-2", "nowhere"}, 5, put_local_queue, true},
    {OBJECT_RESOURCE_FLAVOR, {"f-0", "f-1"}, 3, put_flavor, true},
    {OBJECT_COHORT, {"co-0", "co-1", "co-2"}, 2, put_cohort, true},
    {OBJECT_WORKLOAD_PRIORITY_CLASS, {"urgent"}, 1, put_urgent, false},
    {OBJECT_WORKLOAD_PRIORITY_CLASS, {"idle"}, 1, put_idle, false},
    {OBJECT_TOPOLOGY, {"to-0"}, 1, put_topology, true},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void send_body(struct world *world, const struct object *was, const struct queue_kind *kind,
                      struct str ns, const char *name, enum mood mood)
{
    enum write_verb verb = was ? WRITE_REPLACE : WRITE_CREATE;
    const struct resource *info = object_kind_info(kind->kind);
    struct buf body BUF_CLEANUP = {0};
    buf_printf(&body,
               "{\"apiVersion\":\"kueue.x-k8s.io/v1beta2\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\"%s},",
               info->kind, name, mood == MOOD_HEALED ? ",\"labels\":{\"healed\":\"yes\"}" : "");
    kind->put(world, &body, was, mood);
    buf_printf(&body, "}");
    client_send(world, verb, kind->kind, info->namespaced ? ns : STR(""), str_from(name), buf_str(&body));
    world_trace(world, "client: %s %s: %s", verb == WRITE_CREATE ? "create" : "replace", name, body.data);
}

/* --- Workloads -------------------------------------------------------------------------------- */

struct choice {
    struct world *world;
    const struct workload *workload;
    uint64_t seen;
};

static void choose(void *context, const struct workload *workload)
{
    struct choice *choice = context;
    if (rng_below(&choice->world->rng, ++choice->seen) == 0)
        choice->workload = workload;
}

static void choose_running(void *context, const struct workload *workload)
{
    struct choice *choice = context;
    bool runs = workload->state == WORKLOAD_ADMITTED && !workload_is_bare(workload);
    if (runs && rng_below(&choice->world->rng, ++choice->seen) == 0)
        choice->workload = workload;
}

/* Makes a running workload yield: allows its queue to preempt, and creates a Workload that needs its chips.
 * If none runs, may start a job instead. Returns false if it did neither. */
static bool press(struct world *world)
{
    struct choice choice = {.world = world};
    workload_visit(core_admit(world->controller.core), choose_running, &choice);
    const struct workload *victim = choice.workload;
    const struct object *queue =
        victim ? object_find(objects_of(world), OBJECT_CLUSTER_QUEUE, STR(""), victim->reserved_in) : NULL;
    size_t jobs = core_jobs(world->controller.core)->jobsets.len;
    if (!queue && jobs < world->swarm.jobsets_max && world_chance(world, 500000)) {
        client_fill(world);
        return true;
    }
    if (!queue)
        return false;
    struct str policy =
        doc_str(doc_path(queue->document, "spec", "preemption", "withinClusterQueue", NULL), STR("Never"));
    char name[32];
    snprintf(name, sizeof(name), STR_FORMAT, STR_ARG(queue->name));
    if (str_is(policy, "Never"))
        send_body(world, queue, &kinds[0], STR(""), name, MOOD_EAGER);
    client_rush(world, victim);
    for (int64_t i = world_draw(world, 1, 3); i > 0; i--)
        client_squeeze_in(world);
    return true;
}

/* --- what they want --------------------------------------------------------------------------- */

static const struct queue_kind *any_kind(struct world *world)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < KINDS; i++)
        sum += kinds[i].weight;
    uint64_t at = rng_below(&world->rng, sum);
    for (size_t i = 0; i < KINDS; at -= kinds[i].weight, i++)
        if (at < kinds[i].weight)
            return &kinds[i];
    CHECK_UNREACHABLE();
}

/* Creates all queues, as an administrator does first. */
static void set_up(struct world *world)
{
    enum mood mood = world_chance(world, 700000) ? MOOD_EAGER : MOOD_ANY;
    for (size_t k = 0; k < KINDS; k++)
        for (size_t i = 0; i < 3 && kinds[k].names[i]; i++)
            if (!object_find(objects_of(world), kinds[k].kind, STR("default"), str_from(kinds[k].names[i])))
                send_body(world, NULL, &kinds[k], STR("default"), kinds[k].names[i], mood);
}

void client_queues_act(struct world *world)
{
    if (object_count(objects_of(world), OBJECT_CLUSTER_QUEUE) == 0 && world_chance(world, 900000)) {
        set_up(world);
        return;
    }
    if (world_chance(world, 150000)) {
        client_podsets_act(world);
        return;
    }
    if (world_chance(world, 750000) && press(world))
        return;
    if (world_chance(world, 120000)) {
        struct choice choice = {.world = world};
        workload_visit(core_admit(world->controller.core), choose, &choice);
        if (choice.workload)
            client_set_active(world, choice.workload, world_chance(world, 500000));
        return;
    }
    const struct queue_kind *kind = any_kind(world);
    size_t names = 0;
    while (names < 3 && kind->names[names]) /* "nowhere" is created in the second phase */
        names++;
    const char *name = kind->names[rng_below(&world->rng, names)];
    struct str ns = str_from(client_any_namespace(world));
    const struct object *object = object_find(objects_of(world), kind->kind, ns, str_from(name));
    if (object && world_chance(world, 100000)) {
        client_send(world, WRITE_DELETE, kind->kind, object->namespace_, object->name, STR(""));
        world_trace(world, "client: delete %s", name);
        return;
    }
    send_body(world, object, kind, ns, name, world_chance(world, 500000) ? MOOD_EAGER : MOOD_ANY);
}

/* --- the second phase ------------------------------------------------------------------------- */

static void heal(struct world *world, const struct queue_kind *kind, struct str ns)
{
    for (size_t i = 0; i < 4 && kind->names[i]; i++) {
        const struct object *object =
            object_find(objects_of(world), kind->kind, ns, str_from(kind->names[i]));
        /* a topology is permanent: delete the flavor and create it again */
        bool narrow = has_topology(object);
        if (narrow && !object->deleted_ns)
            client_send(world, WRITE_DELETE, kind->kind, STR(""), object->name, STR(""));
        else if (!object || object->deleted_ns || narrow ||
                 !doc_path(object->document, "metadata", "labels", "healed", NULL))
            send_body(world, object, kind, ns, kind->names[i],
                      MOOD_HEALED); /* without the finalizers of the deleted one */
    }
}

static void heal_locals(void *context, const struct object *namespace_)
{
    if (!namespace_->deleted_ns)
        heal(context, &kinds[1], namespace_->name);
}

static void activate(void *context, const struct workload *workload)
{
    if (!workload->active && workload->state != WORKLOAD_FINISHED)
        client_set_active(context, workload, true);
}

void client_queues_tidy(struct world *world)
{
    if (!world->swarm.features[FEATURE_QUEUES])
        return;
    for (size_t k = 0; k < KINDS; k++)
        if (kinds[k].heals && kinds[k].kind != OBJECT_LOCAL_QUEUE)
            heal(world, &kinds[k], STR(""));
    object_visit(objects_of(world), OBJECT_NAMESPACE, STR(""), heal_locals, world);
    workload_visit(core_admit(world->controller.core), activate, world);
    client_podsets_tidy(world);
}
