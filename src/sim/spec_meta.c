/* spec_meta.c - random metadata: queue labels, topology annotations, finalizers, and owners that exist, were
 * deleted or never existed. */
#include "sim/world.h"

#include "doc/json.h"

static void put_labels(struct world *world, struct json_writer *json)
{
    json_key(json, "labels");
    json_begin_object(json);
    json_pair_text(json, "app", "torture");
    if (client_has(world, FEATURE_QUEUES)) {
        static const char *const queues[] = {"lq-0", "lq-0", "lq-1", "lq-1", "lq-2", "nowhere"};
        static const char *const classes[] = {"urgent", "idle", "missing"};
        json_pair_text(json, "kueue.x-k8s.io/queue-name",
                       queues[world_draw(world, 0, world_chance(world, 950000) ? 4 : 5)]);
        if (world_chance(world, 600000))
            json_pair_text(json, "kueue.x-k8s.io/priority-class", classes[world_draw(world, 0, 2)]);
        if (world_chance(world, 120000))
            json_pair_text(json, "kueue.x-k8s.io/prebuilt-workload-name",
                           (const char *[]){"wl-0", "wl-1", "wl-2", "wl-3"}[world_draw(world, 0, 3)]);
        if (world_chance(world, 50000))
            json_pair_text(json, "kueue.x-k8s.io/max-exec-time-seconds", "5");
    }
    json_end_object(json);
}

/* Writes a random recovery ladder; invalid ones are refused. */
static void put_recovery(struct world *world, struct json_writer *json)
{
    static const char *const rungs[] = {
        "restart-process,replace-machine", "requeue", "replace-machine", "restart-process, shrink,dump",
        "retry,restart-process,requeue",   "off",     "reboot"};
    static const char *const limits[] = {"restart-process=2s", "replace-machine=500ms, restart-process=1s",
                                         "shrink=1m,dump=5s", "requeue=1s"};
    static const char *const budgets[] = {"restart-process=1/10s", "process-exit=2/1h,machine-lost=1/5s",
                                          "restart-process=0/1h", "replace-machine=3/1m", "nothing=1/1s"};
    static const char *const attempts[] = {"0", "2", "3", "1000", "x"};
    int64_t usual = world_chance(world, 900000) ? 5 : 6;
    if (world_chance(world, 850000))
        json_pair_text(json, "phalanx.dev/recovery", rungs[world_draw(world, 0, usual)]);
    if (world_chance(world, 300000))
        json_pair_text(json, "phalanx.dev/recovery-limits", limits[world_draw(world, 0, usual > 5 ? 3 : 2)]);
    if (world_chance(world, 300000))
        json_pair_text(json, "phalanx.dev/recovery-budgets",
                       budgets[world_draw(world, 0, usual > 5 ? 4 : 3)]);
    if (world_chance(world, 400000))
        json_pair_text(json, "phalanx.dev/no-progress-attempts",
                       attempts[world_draw(world, 0, usual > 5 ? 4 : 3)]);
}

static void put_annotations(struct world *world, struct json_writer *json, enum object_kind kind)
{
    json_key(json, "annotations");
    json_begin_object(json);
    if (kind == OBJECT_JOBSET && world_chance(world, 120000))
        json_pair_text(json, "alpha.jobset.sigs.k8s.io/exclusive-topology",
                       world_chance(world, 500000) ? "phalanx.dev/rack" : "kubernetes.io/hostname");
    if (world_chance(world, 300000))
        json_pair_text(json, "phalanx.dev/sub-health",
                       sub_health_names[world_draw(world, 0, SUB_HEALTHS - 1)]);
    if (world_chance(world, 100000))
        json_pair_text(json, "phalanx.dev/act-on-failure-target",
                       world_chance(world, 500000) ? "true" : "false");
    if (world_chance(world, 150000))
        json_pair_text(json, "phalanx.dev/preflight", world_chance(world, 500000) ? "pairs" : "true");
    if (kind != OBJECT_POD && world_chance(world, 200000))
        put_recovery(world, json);
    if (kind != OBJECT_POD && world_chance(world, world->swarm.spare_tasks_ppm)) {
        json_pair_text(json, "phalanx.dev/spares", world_chance(world, 700000) ? "1" : "2");
        if (world_chance(world, 300000))
            json_pair_text(json, "phalanx.dev/spare-kind", "cold");
    }
    if (kind != OBJECT_POD && world_chance(world, 400000)) /* values that do not fit are refused */
        json_pair_text(json, "phalanx.dev/replica-size", world_chance(world, 700000) ? "1" : "2");
    if (kind == OBJECT_JOB && world_chance(world, 200000))
        json_pair_text(json, "kueue.x-k8s.io/job-min-parallelism", "1");
    json_end_object(json);
}

struct pick {
    struct world *world;
    uint64_t seen;
    const struct object *object;
};

static void pick_object(void *context, const struct object *object)
{
    struct pick *pick = context;
    if (rng_below(&pick->world->rng, ++pick->seen) == 0)
        pick->object = object;
}

static void put_owner(struct world *world, struct json_writer *json, const char *ns)
{
    static const enum object_kind kinds[] = {OBJECT_CONFIG_MAP, OBJECT_SECRET, OBJECT_PRIORITY_CLASS};
    const struct job_store *jobs = core_jobs(world->controller.core);
    struct pick pick = {.world = world};
    const struct jobset *jobset = NULL;
    if (world_chance(world, 500000) && jobs->jobsets.len)
        jobset = jobs->jobsets.items[rng_below(&world->rng, jobs->jobsets.len)];
    else
        object_visit(core_objects(world->controller.core), kinds[world_draw(world, 0, 2)], STR(""),
                     pick_object, &pick);
    const struct resource *info = pick.object ? object_kind_info(pick.object->kind) : NULL;
    char uid[UID_TEXT_MAX];
    uid_text(jobset ? jobset->uid : pick.object ? pick.object->uid : 12345, uid);
    json_begin_object(json);
    json_pair_text(json, "apiVersion",
                   jobset                   ? "jobset.x-k8s.io/v1alpha2"
                   : info && info->group[0] ? "scheduling.k8s.io/v1"
                                            : "v1");
    json_pair_text(json, "kind", jobset ? "JobSet" : info ? info->kind : "ConfigMap");
    json_pair_str(json, "name", jobset ? jobset->name : pick.object ? pick.object->name : str_from(ns));
    json_pair_text(json, "uid", uid);
    json_pair_bool(json, "blockOwnerDeletion", world_chance(world, 500000));
    json_end_object(json);
}

bool spec_metadata(struct world *world, struct json_writer *json, const char *ns, const char *name,
                   enum object_kind kind)
{
    bool work = kind == OBJECT_JOBSET || kind == OBJECT_JOB || kind == OBJECT_POD;
    json_key(json, "metadata");
    json_begin_object(json);
    json_pair_text(json, "name", name);
    if (ns[0])
        json_pair_text(json, "namespace", ns);
    if (work) {
        put_labels(world, json);
        put_annotations(world, json, kind);
    }
    if (client_has(world, FEATURE_OBJECTS) && world_chance(world, 250000)) {
        json_key(json, "finalizers");
        json_begin_array(json);
        json_put_text(json, "example.com/hold");
        json_end_array(json);
    }
    bool owned = client_has(world, FEATURE_OBJECTS) && world_chance(world, 300000);
    if (owned) {
        json_key(json, "ownerReferences");
        json_begin_array(json);
        put_owner(world, json, ns);
        if (world_chance(world, 300000))
            put_owner(world, json, ns);
        json_end_array(json);
    }
    json_end_object(json);
    return owned;
}
