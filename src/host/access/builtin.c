/* builtin.c - the roles that always exist. Names and rights follow Kubernetes' default roles and, for
 * queues, Kueue's, so that bindings can be moved over unchanged; "operator" is ours. A role of the same name
 * in the API or in the roles file replaces the one here; bindings are only added. */
#include "base/check.h"
#include "doc/yaml.h"
#include "host/access/rbac.h"

#define READ       "verbs: [get, list, watch]"
#define WRITE      "verbs: [create, update, patch, delete, deletecollection]"
#define KUEUE      "apiGroups: [kueue.x-k8s.io]"
#define VISIBILITY "apiGroups: [visibility.kueue.x-k8s.io]"

static const char roles[] =
    "kind: ClusterRole\nmetadata: {name: cluster-admin}\nrules:\n"
    "- {apiGroups: ['*'], resources: ['*'], verbs: ['*']}\n"
    "- {nonResourceURLs: ['*'], verbs: ['*']}\n"
    "---\n"
    "kind: ClusterRole\nmetadata: {name: 'system:discovery'}\nrules:\n"
    "- {nonResourceURLs: [/api, /api/*, /apis, /apis/*, /healthz, /livez, /readyz, /openapi, /openapi/*,\n"
    "   /swagger*, /version], verbs: [get]}\n"
    "---\n"
    "kind: ClusterRole\nmetadata: {name: 'system:public-info-viewer'}\nrules:\n"
    "- {nonResourceURLs: [/healthz, /livez, /readyz, /version], verbs: [get]}\n"
    "---\n"
    "kind: ClusterRole\nmetadata: {name: 'system:basic-user'}\nrules:\n"
    "- {apiGroups: [authorization.k8s.io], resources: [selfsubjectaccessreviews, selfsubjectrulesreviews],\n"
    "   verbs: [create]}\n"
    "- {apiGroups: [authentication.k8s.io], resources: [selfsubjectreviews], verbs: [create]}\n"
    "---\n"
    "kind: ClusterRole\nmetadata: {name: view}\n"
    "aggregationRule: {clusterRoleSelectors: [{matchLabels: "
    "{rbac.authorization.k8s.io/aggregate-to-view: 'true'}}]}\nrules:\n"
    "- {apiGroups: [''], resources: [pods, pods/log, pods/status, configmaps, services, serviceaccounts,\n"
    "   persistentvolumeclaims, resourcequotas, events, namespaces, nodes], " READ "}\n"
    "- {apiGroups: [batch], resources: [jobs, jobs/status], " READ "}\n"
    "- {apiGroups: [jobset.x-k8s.io], resources: [jobsets, jobsets/status], " READ "}\n"
    "- {apiGroups: [policy], resources: [poddisruptionbudgets, poddisruptionbudgets/status], " READ "}\n"
    "- {apiGroups: [events.k8s.io], resources: [events], " READ "}\n"
    "- {apiGroups: [metrics.k8s.io], resources: [pods, nodes], " READ "}\n"
    "- {apiGroups: [phalanx.dev], resources: [faults, lemons, repairs, maintenances, cubes, switches, "
    "slices,\n"
    "   fabricsessions], " READ "}\n"
    "- {" KUEUE ", resources: [localqueues, localqueues/status, workloads, workloads/status], " READ "}\n"
    "- {" VISIBILITY ", resources: [localqueues/pendingworkloads], verbs: [get]}\n"
    "---\n"
    "kind: ClusterRole\nmetadata: {name: edit, labels: "
    "{rbac.authorization.k8s.io/aggregate-to-admin: 'true'}}\n"
    "aggregationRule: {clusterRoleSelectors: [{matchLabels: "
    "{rbac.authorization.k8s.io/aggregate-to-edit: 'true'}}]}\nrules:\n"
    "- {apiGroups: [''], resources: [pods, pods/log, pods/status, configmaps, services, serviceaccounts,\n"
    "   persistentvolumeclaims, resourcequotas, events, namespaces, nodes, secrets, pods/attach, pods/exec,\n"
    "   pods/portforward], " READ "}\n"
    "- {apiGroups: [''], resources: [pods, pods/attach, pods/exec, pods/portforward, pods/eviction,\n"
    "   configmaps, services, serviceaccounts, persistentvolumeclaims, secrets, events], " WRITE "}\n"
    "- {apiGroups: [''], resources: [serviceaccounts/token], verbs: [create]}\n"
    "- {apiGroups: [batch], resources: [jobs, jobs/status], " READ "}\n"
    "- {apiGroups: [batch], resources: [jobs], " WRITE "}\n"
    "- {apiGroups: [jobset.x-k8s.io], resources: [jobsets, jobsets/status, jobsets/scale], " READ "}\n"
    "- {apiGroups: [jobset.x-k8s.io], resources: [jobsets, jobsets/scale], " WRITE "}\n"
    "- {apiGroups: [policy], resources: [poddisruptionbudgets, poddisruptionbudgets/status], " READ "}\n"
    "- {apiGroups: [policy], resources: [poddisruptionbudgets], " WRITE "}\n"
    "- {apiGroups: [events.k8s.io], resources: [events], " READ "}\n"
    "- {apiGroups: [events.k8s.io], resources: [events], " WRITE "}\n"
    "- {apiGroups: [metrics.k8s.io], resources: [pods, nodes], " READ "}\n"
    "- {apiGroups: [phalanx.dev], resources: [faults, lemons, repairs, maintenances, cubes, switches, "
    "slices,\n"
    "   fabricsessions], " READ "}\n"
    "- {" KUEUE ", resources: [localqueues, localqueues/status, workloads, workloads/status], " READ "}\n"
    "- {" VISIBILITY ", resources: [localqueues/pendingworkloads], verbs: [get]}\n"
    "---\n"
    "kind: ClusterRole\nmetadata: {name: admin}\n"
    "aggregationRule: {clusterRoleSelectors: [{matchLabels: "
    "{rbac.authorization.k8s.io/aggregate-to-admin: 'true'}}]}\nrules:\n"
    "- {apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings],\n"
    "   verbs: [get, list, watch, create, update, patch, delete, deletecollection]}\n"
    "- {apiGroups: [authorization.k8s.io], resources: [localsubjectaccessreviews], verbs: [create]}\n"
    "- {" KUEUE ", resources: [workloads], " WRITE "}\n"
    "---\n"
    "kind: ClusterRole\nmetadata: {name: operator}\nrules:\n"
    "- {apiGroups: [''], resources: [nodes, nodes/status], verbs: [get, list, watch, update, patch]}\n"
    "- {apiGroups: [''], resources: [pods, pods/log, pods/status, events, namespaces, resourcequotas], " READ
    "}\n"
    "- {apiGroups: [''], resources: [pods], verbs: [delete]}\n"
    "- {apiGroups: [''], resources: [pods/eviction], verbs: [create]}\n"
    "- {apiGroups: [batch, jobset.x-k8s.io], resources: [jobs, jobs/status, jobsets, jobsets/status], " READ
    "}\n"
    "- {apiGroups: [events.k8s.io], resources: [events], " READ "}\n"
    "- {apiGroups: [metrics.k8s.io], resources: [pods, nodes], " READ "}\n"
    "- {" KUEUE ", resources: ['*'], verbs: ['*']}\n"
    "- {" VISIBILITY ", resources: ['*'], verbs: ['*']}\n"
    "- {apiGroups: [phalanx.dev], resources: ['*'], verbs: ['*']}\n"
    "- {apiGroups: [scheduling.k8s.io], resources: [priorityclasses], verbs: ['*']}\n"
    "- {apiGroups: [policy], resources: [poddisruptionbudgets, poddisruptionbudgets/status], verbs: ['*']}\n"
    "---\n"
    "kind: ClusterRole\nmetadata: {name: injector}\nrules:\n"
    "- {apiGroups: [''], resources: [nodes/injections], verbs: [create]}\n"
    "- {apiGroups: [''], resources: [nodes, pods, events], " READ "}\n"
    "- {apiGroups: [batch, jobset.x-k8s.io], resources: [jobs, jobs/status, jobsets, jobsets/status], " READ
    "}\n"
    "- {apiGroups: [phalanx.dev], resources: [faults], " READ "}\n"
    "---\n"
    "kind: ClusterRole\nmetadata: {name: kueue-batch-admin-role}\nrules:\n"
    "- {" KUEUE ", resources: ['*'], verbs: ['*']}\n"
    "- {" VISIBILITY ", resources: [clusterqueues/pendingworkloads, localqueues/pendingworkloads], verbs: "
    "[get]}\n"
    "---\n"
    "kind: ClusterRole\nmetadata: {name: kueue-batch-user-role}\nrules:\n"
    "- {" KUEUE ", resources: [localqueues, localqueues/status, workloads, workloads/status], " READ "}\n"
    "- {" VISIBILITY ", resources: [localqueues/pendingworkloads], verbs: [get]}\n"
    "- {apiGroups: [batch, jobset.x-k8s.io], resources: [jobs, jobs/status, jobsets, jobsets/status], " READ
    "}\n"
    "- {apiGroups: [batch, jobset.x-k8s.io], resources: [jobs, jobsets], " WRITE "}\n"
    "---\n"
    /* Limited to the node's own object by access.c. */
    "kind: ClusterRole\nmetadata: {name: 'system:node'}\nrules:\n"
    "- {apiGroups: [''], resources: [nodes], verbs: [get, list, watch, update, patch]}\n"
    "- {apiGroups: [''], resources: [pods], verbs: [get, list, watch]}\n";

static const struct {
    const char *name, *role, *group; /* consecutive entries with one name: the subjects of one binding */
} bindings[] = {
    {"cluster-admin", "cluster-admin", ACCESS_MASTERS},
    {"system:basic-user", "system:basic-user", ACCESS_AUTHENTICATED},
    {"system:discovery", "system:discovery", ACCESS_AUTHENTICATED},
    {"system:node", "system:node", ACCESS_NODES},
    {"system:public-info-viewer", "system:public-info-viewer", ACCESS_AUTHENTICATED},
    {"system:public-info-viewer", "system:public-info-viewer", ACCESS_UNAUTHENTICATED},
};
enum { BINDINGS = sizeof bindings / sizeof *bindings };

static void parse_roles(struct arena *arena, struct doc_list *ret_documents)
{
    struct error error;
    CHECK(yaml_parse_all(arena, str_from(roles), ret_documents, &error) == 0);
}

void rbac_add_builtin(struct rbac *policy)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 4 << 20};
    struct doc_list documents;
    struct error error;
    parse_roles(&arena, &documents);
    for (size_t i = 0; i < documents.len; i++)
        CHECK(rbac_add(policy, documents.items[i], &error) == 0);
    for (size_t i = 0; i < BINDINGS; i++)
        rbac_bind(policy, str_from(bindings[i].role), (struct str){0}, true, str_from(bindings[i].group));
}

/* --- as objects --------------------------------------------------------------------------------------- */

#define RBAC_GROUP "rbac.authorization.k8s.io"

struct access_builtins {
    bool made; /* done at the first query */
    struct arena arena;
    VEC(struct object) list[2]; /* roles, bindings */
    int64_t created_ns;
};

static void set_text(struct arena *arena, struct doc *object, const char *key, const char *value)
{
    doc_set(arena, object, str_from(key), doc_new_str(arena, str_from(value)));
}

static void add_object(struct access_builtins *builtins, enum object_kind kind, struct doc *document)
{
    struct arena *arena = &builtins->arena;
    bool role = kind == OBJECT_CLUSTER_ROLE;
    struct doc *metadata = doc_need_object(arena, document, "metadata");
    set_text(arena, document, "apiVersion", RBAC_GROUP "/v1");
    set_text(arena, document, "kind", role ? "ClusterRole" : "ClusterRoleBinding");
    set_text(arena, doc_need_object(arena, metadata, "labels"), "kubernetes.io/bootstrapping",
             "rbac-defaults");
    struct str name = doc_str(doc_get(metadata, "name"), STR(""));
    size_t number = builtins->list[0].len + builtins->list[1].len + 1;
    struct object object = {.uid = ~(obj_id)0 - number, /* counts down, while other uids count up */
                            .kind = kind,
                            .key = name,
                            .name = name,
                            .document = document,
                            .created_ns = builtins->created_ns};
    vec_push(&builtins->list[!role], object);
}

static struct doc *new_binding(struct arena *arena, const char *name, const char *role)
{
    struct doc *document = doc_new(arena, DOC_OBJECT);
    set_text(arena, doc_need_object(arena, document, "metadata"), "name", name);
    struct doc *reference = doc_need_object(arena, document, "roleRef");
    set_text(arena, reference, "apiGroup", RBAC_GROUP);
    set_text(arena, reference, "kind", "ClusterRole");
    set_text(arena, reference, "name", role);
    doc_set(arena, document, STR("subjects"), doc_new(arena, DOC_ARRAY));
    return document;
}

static void add_subject(struct arena *arena, struct doc *binding, const char *group)
{
    struct doc *subject = doc_new(arena, DOC_OBJECT);
    set_text(arena, subject, "apiGroup", RBAC_GROUP);
    set_text(arena, subject, "kind", "Group");
    set_text(arena, subject, "name", group);
    doc_push(arena, doc_get(binding, "subjects"), subject);
}

struct access_builtins *access_builtins_new(void)
{
    return mem_alloc(sizeof(struct access_builtins));
}

void access_builtins_date(struct access_builtins *builtins, int64_t created_ns)
{
    if (builtins->created_ns == created_ns)
        return;
    builtins->created_ns = created_ns;
    for (int kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < builtins->list[kind].len; i++)
            builtins->list[kind].items[i].created_ns = created_ns;
}

static void make(struct access_builtins *builtins)
{
    struct arena *arena = &builtins->arena;
    struct doc_list documents;
    struct doc *binding = NULL;
    parse_roles(arena, &documents);
    for (size_t i = 0; i < documents.len; i++)
        add_object(builtins, OBJECT_CLUSTER_ROLE, documents.items[i]);
    for (size_t i = 0; i < BINDINGS; i++) {
        bool first = i == 0 || strcmp(bindings[i].name, bindings[i - 1].name) != 0;
        if (first) {
            binding = new_binding(arena, bindings[i].name, bindings[i].role);
            add_object(builtins, OBJECT_CLUSTER_ROLE_BINDING, binding);
        }
        add_subject(arena, binding, bindings[i].group);
    }
    builtins->made = true;
}

void access_builtins_free(struct access_builtins *builtins)
{
    vec_done(&builtins->list[0]);
    vec_done(&builtins->list[1]);
    arena_done(&builtins->arena);
    mem_free(builtins);
}

const struct object *access_builtin_at(struct access_builtins *builtins, enum object_kind kind, size_t index)
{
    bool role = kind == OBJECT_CLUSTER_ROLE;
    if (!role && kind != OBJECT_CLUSTER_ROLE_BINDING)
        return NULL;
    if (!builtins->made)
        make(builtins);
    return index < builtins->list[!role].len ? &builtins->list[!role].items[index] : NULL;
}
