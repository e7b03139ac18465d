/* advise.c - warnings about a workload that is valid, but will probably not do what its author wants: it
 * names objects that do not exist, or requests more than any machine has. These are no refusals, because the
 * missing object may be created next, from the same file. */
#include "base/nearest.h"
#include "core/admit/admit.h"
#include "core/write/write.h"

static void warn(const struct writing *writing, const struct buf *text)
{
    CHECK(writing->dry && text->len > 0);
    struct effects *effects = writing->step->effects;
    for (size_t i = 0; i < effects->list.len; i++)
        if (effects->list.items[i].kind == EFFECT_WARNING &&
            str_equal(effects->list.items[i].warning, buf_str(text)))
            return; /* named by several replicated jobs */
    effect_add(effects, EFFECT_WARNING)->warning = arena_str(writing->reply, buf_str(text));
}

static void offer_object(void *context, const struct object *object)
{
    nearest_offer(context, object->name);
}

static void add_nearest(struct buf *text, const struct nearest *nearest)
{
    if (nearest->best.len)
        buf_printf(text, "; did you mean \"" STR_FORMAT "\"?", STR_ARG(nearest->best));
}

static void advise_priority(const struct writing *writing, const struct pod_spec *pod)
{
    const struct core *core = writing->core;
    const struct labels *classes = &core->cluster.priority_classes;
    struct str name = pod->priority_class;
    if (name.len == 0 || str_starts(name, STR("system-")) || /* Kubernetes' own */
        object_find(core->objects, OBJECT_PRIORITY_CLASS, STR(""), name) ||
        labels_get(classes, name, (struct str){0}).data)
        return;
    struct nearest nearest = nearest_to(name);
    for (size_t i = 0; i < classes->len; i++)
        nearest_offer(&nearest, classes->items[i].key);
    object_visit(core->objects, OBJECT_PRIORITY_CLASS, STR(""), offer_object, &nearest);
    struct buf text BUF_CLEANUP = {0};
    buf_printf(&text, "priorityClassName: no PriorityClass \"" STR_FORMAT "\" exists, so the priority is %d",
               STR_ARG(name), (int)pod->priority);
    add_nearest(&text, &nearest);
    warn(writing, &text);
}

static void advise_claims(const struct writing *writing, struct str namespace_, const struct pod_spec *pod)
{
    const struct object_store *objects = writing->core->objects;
    for (size_t i = 0; i < pod->volume_count; i++) {
        const struct volume_launch *volume = &pod->volumes[i].launch;
        if (volume->kind != VOLUME_CLAIM || object_find(objects, OBJECT_CLAIM, namespace_, volume->source))
            continue;
        struct nearest nearest = nearest_to(volume->source);
        object_visit(objects, OBJECT_CLAIM, namespace_, offer_object, &nearest);
        struct buf text BUF_CLEANUP = {0};
        buf_printf(&text,
                   "volume \"" STR_FORMAT "\": no PersistentVolumeClaim \"" STR_FORMAT
                   "\" exists in namespace \"" STR_FORMAT "\", so its Pods wait until it does",
                   STR_ARG(volume->name), STR_ARG(volume->source), STR_ARG(namespace_));
        add_nearest(&text, &nearest);
        warn(writing, &text);
    }
}

static void advise_chips(const struct writing *writing, const struct pod_spec *pod)
{
    struct str here = writing->core->cluster.chip_resource;
    if (pod->chip_resource.len == 0 || here.len == 0 || str_equal(pod->chip_resource, here))
        return;
    struct buf text BUF_CLEANUP = {0};
    buf_printf(&text,
               "this cluster's machines have " STR_FORMAT ": each " STR_FORMAT
               " that is asked for counts as one of them",
               STR_ARG(here), STR_ARG(pod->chip_resource));
    warn(writing, &text);
}

/* Appends a size, rounded down to a tenth: "3.5Mi", "22.9Gi". */
static void add_size(struct buf *text, int64_t bytes)
{
    CHECK(bytes >= 0);
    static const char *const units[] = {"Mi", "Gi", "Ti", "Pi", "Ei"};
    size_t unit = 0;
    int64_t tenths = bytes / 1024 * 10 / 1024;
    for (; tenths >= 10 * 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        tenths /= 1024;
    buf_printf(text, "%lld.%lld%s", (long long)(tenths / 10), (long long)(tenths % 10), units[unit]);
}

/* Warns about requests that exceed every machine. If the cluster file gives capacities, the gang's pending
 * reason says so too (gang_feasible). If not, amounts do not constrain placement, and the capacities are
 * those that agents found. */
static void advise_amounts(const struct writing *writing, const struct pod_spec *pod)
{
    const struct cluster *cluster = &writing->core->cluster;
    struct buf text BUF_CLEANUP = {0};
    if (cluster->cpu_milli_max > 0 && pod->cpu_request_milli > cluster->cpu_milli_max) {
        buf_printf(&text, "cpu: each Pod asks for ");
        amount_format(&text, STR("cpu"), pod->cpu_request_milli);
        buf_printf(&text, ", and the largest machine has ");
        amount_format(&text, STR("cpu"), cluster->cpu_milli_max);
        warn(writing, &text);
    }
    if (cluster->memory_bytes_max > 0 && pod->memory_request_bytes > cluster->memory_bytes_max) {
        buf_clear(&text);
        buf_printf(&text, "memory: each Pod asks for ");
        add_size(&text, pod->memory_request_bytes);
        buf_printf(&text, ", and the largest machine has ");
        add_size(&text, cluster->memory_bytes_max);
        warn(writing, &text);
    }
}

/* The annotations of workloads that this system reads, all below "phalanx.dev/". */
static const char *const annotations_known[] = {
    "act-on-failure-target",
    "checkpoint-folder",
    "checkpoint-interval",
    "checkpoint-keep",
    "elastic",
    "hang-timeout",
    "min-replicas",
    "no-progress-attempts",
    "preflight",
    "recovery",
    "recovery-budgets",
    "recovery-limits",
    "replica-size",
    "restart-backoff",
    "slice",
    "spare-kind",
    "spares",
    "step-pattern",
    "sub-health",
    "work-pattern",
};

static void advise_annotation(const struct writing *writing, struct str key)
{
    struct str prefix = STR("phalanx.dev/");
    if (!str_starts(key, prefix))
        return;
    struct str name = {key.data + prefix.len, key.len - prefix.len};
    size_t known = sizeof annotations_known / sizeof *annotations_known;
    for (size_t i = 0; i < known; i++)
        if (str_is(name, annotations_known[i]))
            return;
    struct nearest nearest = nearest_to(name);
    for (size_t i = 0; i < known; i++)
        nearest_offer(&nearest, str_from(annotations_known[i]));
    struct buf text BUF_CLEANUP = {0};
    buf_printf(&text, "annotation " STR_FORMAT " is not known, so it has no effect", STR_ARG(key));
    if (nearest.best.len)
        buf_printf(&text, "; did you mean " STR_FORMAT STR_FORMAT "?", STR_ARG(prefix),
                   STR_ARG(nearest.best));
    warn(writing, &text);
}

static void advise_annotations(const struct writing *writing, const struct doc *document)
{
    const struct doc *annotations = doc_path(document, "metadata", "annotations", NULL);
    for (size_t i = 0; annotations && annotations->kind == DOC_OBJECT && i < doc_len(annotations); i++)
        advise_annotation(writing, annotations->object.members[i].key);
}

void write_advise(const struct writing *writing, const struct doc *document, const struct jobset_spec *spec)
{
    CHECK(writing->dry);
    struct str namespace_ = doc_str(doc_path(document, "metadata", "namespace", NULL), STR("default"));
    advise_annotations(writing, document);
    for (size_t r = 0; r < spec->rjob_count; r++) {
        const struct pod_spec *pod = &spec->rjobs[r].job.pod;
        advise_priority(writing, pod);
        advise_claims(writing, namespace_, pod);
        advise_chips(writing, pod);
        advise_amounts(writing, pod);
    }
}
