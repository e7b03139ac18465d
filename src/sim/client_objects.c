/* client_objects.c - clients of stored objects: ConfigMaps and Secrets, PriorityClasses that pods name and
 * that are created late or deleted, Namespaces with all their objects, finalizers that hold deleted
 * objects. */
#include "sim/world.h"

#include "doc/json.h"

struct own_kind {
    enum object_kind kind;
    const char *prefix, *head;
    uint32_t count, weight;
};
static const struct own_kind kinds[] = {
    {OBJECT_CONFIG_MAP, "cm", "\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"data\":{\"key\":\"%lld\"}", 3,
     5},
    {OBJECT_SECRET, "secret", "\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"stringData\":{\"key\":\"%lld\"}",
     3, 4},
    {OBJECT_PRIORITY_CLASS, "pc",
     "\"apiVersion\":\"scheduling.k8s.io/v1\",\"kind\":\"PriorityClass\",\"value\":%lld", 2, 2},
    {OBJECT_SERVICE_ACCOUNT, "sa", "\"apiVersion\":\"v1\",\"kind\":\"ServiceAccount\"", 1, 1},
    {OBJECT_RESOURCE_QUOTA, "rq",
     "\"apiVersion\":\"v1\",\"kind\":\"ResourceQuota\",\"spec\":{\"hard\":{\"pods\":\"%lld\"}}", 1, 1},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct object_store *objects_of(const struct world *world)
{
    return core_objects(world->controller.core);
}

static void send_body(struct world *world, enum write_verb verb, const struct own_kind *kind, const char *ns,
                      const char *name)
{
    struct buf body BUF_CLEANUP = {0};
    struct json_writer json = {.out = &body};
    char head[160];
    int64_t value = kind->kind == OBJECT_RESOURCE_QUOTA ? world_draw(world, 1, 40) : world_draw(world, 0, 99);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(head, sizeof head, kind->head, (long long)value);
#pragma GCC diagnostic pop
    json_begin_object(&json);
    spec_metadata(world, &json, object_kind_info(kind->kind)->namespaced ? ns : "", name, kind->kind);
    buf_printf(&body, ",%s", head);
    json_end_object(&json);
    client_send(world, verb, kind->kind, str_from(ns), str_from(name), buf_str(&body));
    world_trace(world, "client: %s %s/%s: %s", verb == WRITE_CREATE ? "create" : "replace", ns, name,
                body.data);
}

/* Deletes an object. Objects that it owns may be deleted with it. */
static void send_delete(struct world *world, const struct object *object)
{
    static const enum propagation ways[] = {PROPAGATION_DEFAULT, PROPAGATION_BACKGROUND,
                                            PROPAGATION_FOREGROUND, PROPAGATION_ORPHAN};
    if (object->kind == OBJECT_NAMESPACE)
        client_may_vanish(world, object->name);
    struct request *request =
        client_send(world, WRITE_DELETE, object->kind, object->namespace_, object->name, STR(""));
    request->write.propagation = ways[world_draw(world, 0, 3)];
    world_trace(world, "client: delete %s " STR_FORMAT " (%d)", object_kind_name(object->kind),
                STR_ARG(object->key), (int)request->write.propagation);
}

/* Removes the object's finalizers. */
static void drop_hold(struct world *world, enum object_kind kind, struct str ns, struct str name,
                      const struct doc *document)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *copy = doc_clone(&arena, document);
    struct doc *list = doc_path(copy, "metadata", "finalizers", NULL);
    size_t kept = 0;
    for (size_t i = 0; list && i < list->array.len; i++)
        if (!str_is(doc_str(list->array.items[i], STR("")), CLIENT_HOLD))
            list->array.items[kept++] = list->array.items[i];
    if (list)
        list->array.len = kept;
    struct buf body BUF_CLEANUP = {0};
    json_write(&body, copy);
    client_send(world, WRITE_REPLACE, kind, ns, name, buf_str(&body));
    world_trace(world, "client: drop the finalizer of %s " STR_FORMAT, object_kind_name(kind), STR_ARG(name));
}

/* --- finalizers ------------------------------------------------------------------------------- */

struct releasing {
    struct world *world;
    uint32_t ppm; /* share of held objects that are released */
};

static void release_object(void *context, const struct object *object)
{
    const struct releasing *releasing = context;
    if (object->deleted_ns && object_has_finalizer(object->document, CLIENT_HOLD) &&
        world_chance(releasing->world, releasing->ppm))
        drop_hold(releasing->world, object->kind, object->namespace_, object->name, object->document);
}

static void release_held(struct world *world, uint32_t ppm)
{
    const struct job_store *jobs = core_jobs(world->controller.core);
    struct releasing releasing = {world, ppm};
    for (int kind = OBJECT_JOBSET; kind < OBJECT_KINDS; kind++)
        object_visit(objects_of(world), (enum object_kind)kind, STR(""), release_object, &releasing);
    for (size_t i = 0; i < jobs->jobsets.len; i++) {
        const struct jobset *jobset = jobs->jobsets.items[i];
        enum object_kind kind = client_kind_of(jobset);
        if (jobset->deleted_ns && object_has_finalizer(jobset->document, CLIENT_HOLD) &&
            world_chance(world, ppm))
            drop_hold(world, kind, jobset->namespace_, jobset->name, jobset->document);
    }
}

/* --- what they want --------------------------------------------------------------------------- */

static const struct own_kind *any_kind(struct world *world)
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

static void act_on_namespace(struct world *world)
{
    const char *name = client_any_namespace(world);
    const struct object *object = object_find(objects_of(world), OBJECT_NAMESPACE, STR(""), str_from(name));
    if (object && world_chance(world, 500000)) {
        send_delete(world, object);
        return;
    }
    struct buf body BUF_CLEANUP = {0};
    buf_printf(&body,
               "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"%s\","
               "\"labels\":{\"team\":\"%s\"}}}",
               name, name);
    client_send(world, object ? WRITE_REPLACE : WRITE_CREATE, OBJECT_NAMESPACE, STR(""), str_from(name),
                buf_str(&body));
    world_trace(world, "client: write Namespace %s", name);
}

void client_objects_act(struct world *world)
{
    if (client_has(world, FEATURE_NAMESPACES) && world_chance(world, 250000)) {
        act_on_namespace(world);
        return;
    }
    if (world_chance(world, 150000)) {
        release_held(world, 500000);
        return;
    }
    const struct own_kind *kind = any_kind(world);
    const char *ns = client_any_namespace(world);
    char name[32];
    snprintf(name, sizeof name, "%s-%llu", kind->prefix,
             (unsigned long long)rng_below(&world->rng, kind->count));
    const struct object *object = object_find(objects_of(world), kind->kind, str_from(ns), str_from(name));
    if (!object)
        send_body(world, WRITE_CREATE, kind, ns, name);
    else if (world_chance(world, 450000))
        send_body(world, WRITE_REPLACE, kind, ns, name);
    else
        send_delete(world, object);
}

/* --- the second phase ------------------------------------------------------------------------- */

static void delete_quota(void *context, const struct object *object)
{
    struct world *world = context;
    if (!object->deleted_ns)
        send_delete(world, object);
}

static void fill_namespace(void *context, const struct object *namespace_)
{
    struct world *world = context;
    if (namespace_->deleted_ns)
        return;
    char ns[64];
    snprintf(ns, sizeof ns, STR_FORMAT, STR_ARG(namespace_->name));
    for (size_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < 2; i++) {
            char name[32];
            snprintf(name, sizeof name, "%s-%u", kinds[k].prefix, i);
            if (!object_find(objects_of(world), kinds[k].kind, namespace_->name, str_from(name)))
                send_body(world, WRITE_CREATE, &kinds[k], ns, name);
        }
}

/* Releases deleted objects, deletes quotas, and creates the objects that Pods wait for in every namespace. */
void client_objects_tidy(struct world *world)
{
    release_held(world, 1000000);
    object_visit(objects_of(world), OBJECT_RESOURCE_QUOTA, STR(""), delete_quota, world);
    if (world->swarm.features[FEATURE_OBJECTS])
        object_visit(objects_of(world), OBJECT_NAMESPACE, STR(""), fill_namespace, world);
}
