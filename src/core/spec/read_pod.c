/* read_pod.c - reads a pod template into its typed view: where the pod may run, and its requests.
 * read_container.c reads the containers.
 *
 * Chips are counted like a pod's requests in Kubernetes: the sum over containers and sidecars (init
 * containers with restartPolicy Always), or the largest plain init container if that is more.
 */
#include <stdlib.h>

#include "base/check.h"
#include "core/spec/read.h"
#include "core/spec/schema.h"

bool resource_is_chip(struct str name)
{
    struct str domain, rest;
    if (!str_cut(name, '/', &domain, &rest) || domain.len == 0 || rest.len == 0)
        return false;
    return !str_is(domain, "kubernetes.io") && !str_ends(domain, STR(".kubernetes.io"));
}

int64_t read_seconds(const struct doc *node, int64_t fallback)
{
    int64_t seconds = doc_int(node, fallback);
    return seconds < INT32_MAX ? seconds : INT32_MAX;
}

struct labels read_labels(struct arena *arena, const struct doc *map)
{
    CHECK(doc_len(map) == 0 || map->kind == DOC_OBJECT);
    struct labels labels = {.items = ARENA_ARRAY(arena, struct label, doc_len(map)), .len = doc_len(map)};
    for (size_t i = 0; i < labels.len; i++) {
        const struct doc_member *member = &map->object.members[i];
        labels.items[i] = (struct label){member->key, doc_str(member->value, STR(""))};
    }
    return labels;
}

struct str *read_strings(struct arena *arena, const struct doc *list, size_t *ret_count)
{
    size_t count = doc_len(list);
    struct str *strings = ARENA_ARRAY(arena, struct str, count);
    for (size_t i = 0; i < count; i++)
        strings[i] = doc_str(doc_at(list, i), STR(""));
    *ret_count = count;
    return strings;
}

static int compare_labels(const void *a, const void *b)
{
    return str_compare(((const struct label *)a)->key, ((const struct label *)b)->key);
}

static struct toleration *read_tolerations(struct arena *arena, const struct doc *list, size_t *ret_count)
{
    size_t count = doc_len(list);
    struct toleration *tolerations = ARENA_ARRAY(arena, struct toleration, count);
    for (size_t i = 0; i < count; i++) {
        const struct doc *item = doc_at(list, i);
        struct str op = doc_str(doc_get(item, "operator"), STR(""));
        tolerations[i] = (struct toleration){
            .key = doc_str(doc_get(item, "key"), STR("")),
            .op = op.len > 0 ? op : STR("Equal"),
            .value = doc_str(doc_get(item, "value"), STR("")),
            .effect = doc_str(doc_get(item, "effect"), STR("")),
        };
    }
    *ret_count = count;
    return tolerations;
}

static int64_t whole_up(int64_t milli)
{
    CHECK(milli >= 0); /* schema_quantity refuses others */
    return milli / 1000 + (milli % 1000 > 0);
}

/* Returns requests[name] or, without a request, limits[name], in thousandths; 0 if neither is set. */
static int64_t request_milli(const struct doc *container, struct str name)
{
    const struct doc *resources = doc_get(container, "resources");
    const struct doc *node = doc_get_str(doc_get(resources, "requests"), name);
    int64_t milli = 0;
    if (!node)
        node = doc_get_str(doc_get(resources, "limits"), name);
    return node && schema_quantity(node, &milli) ? milli : 0;
}

static int64_t limit_milli(const struct doc *container, const char *name)
{
    const struct doc *node = doc_get(doc_path(container, "resources", "limits", NULL), name);
    int64_t milli = 0;
    return node && schema_quantity(node, &milli) ? milli : 0;
}

static struct str chip_of_container(const struct doc *container)
{
    static const char *const parts[] = {"limits", "requests"};
    for (size_t p = 0; p < 2; p++) {
        const struct doc *map = doc_path(container, "resources", parts[p], NULL);
        CHECK(doc_len(map) == 0 || map->kind == DOC_OBJECT);
        for (size_t i = 0; i < doc_len(map); i++) {
            if (resource_is_chip(map->object.members[i].key))
                return map->object.members[i].key;
        }
    }
    return STR("");
}

static void read_chips(const struct doc *spec, struct pod_spec *pod)
{
    static const char *const lists[] = {"containers", "initContainers"};
    int64_t sum = 0, initial_max = 0;
    for (size_t l = 0; l < 2; l++) {
        const struct doc *list = doc_get(spec, lists[l]);
        for (size_t i = 0; i < doc_len(list); i++) {
            const struct doc *container = doc_at(list, i);
            if (pod->chip_resource.len == 0)
                pod->chip_resource = chip_of_container(container);
            if (pod->chip_resource.len == 0)
                continue;
            int64_t count = whole_up(request_milli(container, pod->chip_resource));
            count = count < UINT32_MAX ? count : UINT32_MAX;
            if (l == 0 || str_is(doc_str(doc_get(container, "restartPolicy"), STR("")), "Always"))
                sum = sum + count < UINT32_MAX ? sum + count : UINT32_MAX;
            else
                initial_max = count > initial_max ? count : initial_max;
        }
    }
    CHECK(sum >= 0 && sum <= UINT32_MAX && initial_max >= 0 && initial_max <= UINT32_MAX);
    pod->chips = (uint32_t)(sum > initial_max ? sum : initial_max);
}

int64_t read_security_id(const struct doc *spec, const struct doc *container, const char *field)
{
    int64_t of_pod = doc_int(doc_path(spec, "securityContext", field, NULL), -1);
    return doc_int(doc_path(container, "securityContext", field, NULL), of_pod);
}

static enum restart_policy read_restart_policy(const struct doc *spec)
{
    struct str policy = doc_str(doc_get(spec, "restartPolicy"), STR(""));
    if (str_is(policy, "Never"))
        return RESTART_NEVER;
    return str_is(policy, "Always") ? RESTART_ALWAYS : RESTART_ON_FAILURE;
}

static void read_main_container(struct arena *arena, const struct doc *container, struct pod_spec *pod)
{
    pod->image = doc_str(doc_get(container, "image"), STR(""));
    pod->container = doc_str(doc_get(container, "name"), STR(""));
    pod->command = read_strings(arena, doc_get(container, "command"), &pod->command_count);
    pod->args = read_strings(arena, doc_get(container, "args"), &pod->arg_count);
    pod->working_dir = doc_str(doc_get(container, "workingDir"), STR(""));
    pod->env = read_env(arena, doc_get(container, "env"), &pod->env_count);
    pod->cpu_milli = limit_milli(container, "cpu");
    pod->memory_bytes = whole_up(limit_milli(container, "memory"));
}

void read_container_resources(const struct doc *container, struct container_spec *ret)
{
    ret->launch.cpu_milli = limit_milli(container, "cpu");
    ret->launch.memory_bytes = whole_up(limit_milli(container, "memory"));
    ret->cpu_request_milli = request_milli(container, STR("cpu"));
    ret->memory_request_bytes = whole_up(request_milli(container, STR("memory")));
}

static int64_t sum_up(int64_t a, int64_t b)
{
    CHECK(a >= 0 && b >= 0);
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns the Pod's request of a resource. One in spec.resources replaces the sum of the containers'
 * requests; a limit there counts if no container requests the resource. */
static int64_t whole_request_milli(const struct doc *spec, const char *resource, int64_t together_milli)
{
    CHECK(together_milli >= 0);
    static const char *const lists[] = {"requests", "limits"};
    for (size_t l = 0; l < 2; l++) {
        const struct doc *node = doc_get(doc_path(spec, "resources", lists[l], NULL), resource);
        int64_t milli;
        if (node && (l == 0 || together_milli == 0) && schema_quantity(node, &milli))
            return milli;
    }
    return together_milli;
}

/* Sums requests as Kubernetes does: containers and sidecars together, or the largest plain init container. */
static void sum_requests(const struct doc *spec, struct pod_spec *pod)
{
    int64_t cpu_init = 0, memory_init = 0;
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct container_spec *container = &pod->containers[i];
        if (container->launch.role == CONTAINER_INIT) {
            cpu_init = larger(cpu_init, container->cpu_request_milli);
            memory_init = larger(memory_init, container->memory_request_bytes);
        } else {
            pod->cpu_request_milli = sum_up(pod->cpu_request_milli, container->cpu_request_milli);
            pod->memory_request_bytes = sum_up(pod->memory_request_bytes, container->memory_request_bytes);
        }
    }
    CHECK(cpu_init >= 0 && memory_init >= 0);
    pod->cpu_request_milli = larger(pod->cpu_request_milli, cpu_init);
    pod->memory_request_bytes = larger(pod->memory_request_bytes, memory_init);
    pod->cpu_request_milli = whole_request_milli(spec, "cpu", pod->cpu_request_milli);
    if (pod->memory_request_bytes <= INT64_MAX / 1000)
        pod->memory_request_bytes =
            whole_up(whole_request_milli(spec, "memory", pod->memory_request_bytes * 1000));
}

void read_pod(struct arena *arena, const struct doc *pod_template, struct pod_spec *ret_pod)
{
    const struct doc *spec = doc_get(pod_template, "spec");
    const struct doc *container = doc_at(doc_get(spec, "containers"), 0);
    struct pod_spec *pod = ret_pod;
    *pod = (struct pod_spec){
        .priority_class = doc_str(doc_get(spec, "priorityClassName"), STR("")),
        .priority = (int32_t)doc_int(doc_get(spec, "priority"), 0),
        .restart_policy = read_restart_policy(spec),
        .grace_s = read_seconds(doc_get(spec, "terminationGracePeriodSeconds"), GRACE_DEFAULT_S),
        .active_deadline_s = read_seconds(doc_get(spec, "activeDeadlineSeconds"), -1),
        .run_as_user = read_security_id(spec, container, "runAsUser"),
        .run_as_group = read_security_id(spec, container, "runAsGroup"),
        .fs_group = doc_int(doc_path(spec, "securityContext", "fsGroup", NULL), -1),
        .node_name = doc_str(doc_get(spec, "nodeName"), STR("")),
        .host_network = doc_bool(doc_get(spec, "hostNetwork"), false),
        .labels = read_labels(arena, doc_path(pod_template, "metadata", "labels", NULL)),
        .annotations = read_labels(arena, doc_path(pod_template, "metadata", "annotations", NULL)),
        .node_selector = read_labels(arena, doc_get(spec, "nodeSelector")),
    };
    if (pod->node_selector.len > 1) /* keys are unique, so the order is total */
        qsort(pod->node_selector.items, pod->node_selector.len, sizeof(struct label), compare_labels);
    pod->tolerations = read_tolerations(arena, doc_get(spec, "tolerations"), &pod->toleration_count);
    read_main_container(arena, container, pod);
    read_containers(arena, spec, pod);
    sum_requests(spec, pod);
    read_chips(spec, pod);
    read_affinity(arena, doc_get(spec, "affinity"), pod);
    read_topology(arena, &pod->annotations, &pod->topology, NULL, NULL);
    CHECK(pod->cpu_request_milli >= 0 && pod->memory_request_bytes >= 0);
}
