#include <stdio.h>

#include "base/nearest.h"
#include "cmd/client.h"

#define KUEUE      "kueue.x-k8s.io/"
#define KUEUE_PATH "/apis/" KUEUE
#define RBAC       "rbac.authorization.k8s.io/v1"
#define RBAC_PATH  "/apis/" RBAC

/* Where a kind is served in two versions, the first row counts for names. */
static const struct kind kinds[] = {
    {"jobsets", "jobset", "js", "JobSet", "/apis/jobset.x-k8s.io/v1alpha2", "jobset.x-k8s.io/v1alpha2", true},
    {"jobs", "job", "", "Job", "/apis/batch/v1", "batch/v1", true},
    {"pods", "pod", "po task tasks", "Pod", "/api/v1", "v1", true},
    {"nodes", "node", "no machine machines", "Node", "/api/v1", "v1", false},
    {"events", "event", "ev", "Event", "/api/v1", "v1", true},
    {"namespaces", "namespace", "ns", "Namespace", "/api/v1", "v1", false},
    {"configmaps", "configmap", "cm", "ConfigMap", "/api/v1", "v1", true},
    {"secrets", "secret", "", "Secret", "/api/v1", "v1", true},
    {"services", "service", "svc", "Service", "/api/v1", "v1", true},
    {"serviceaccounts", "serviceaccount", "sa", "ServiceAccount", "/api/v1", "v1", true},
    {"persistentvolumeclaims", "persistentvolumeclaim", "pvc", "PersistentVolumeClaim", "/api/v1", "v1",
     true},
    {"resourcequotas", "resourcequota", "quota", "ResourceQuota", "/api/v1", "v1", true},
    {"priorityclasses", "priorityclass", "pc", "PriorityClass", "/apis/scheduling.k8s.io/v1",
     "scheduling.k8s.io/v1", false},
    {"clusterqueues", "clusterqueue", "cq", "ClusterQueue", KUEUE_PATH "v1beta2", KUEUE "v1beta2", false},
    {"localqueues", "localqueue", "queue queues lq", "LocalQueue", KUEUE_PATH "v1beta2", KUEUE "v1beta2",
     true},
    {"resourceflavors", "resourceflavor", "flavor flavors rf", "ResourceFlavor", KUEUE_PATH "v1beta2",
     KUEUE "v1beta2", false},
    {"cohorts", "cohort", "", "Cohort", KUEUE_PATH "v1beta2", KUEUE "v1beta2", false},
    {"workloadpriorityclasses", "workloadpriorityclass", "", "WorkloadPriorityClass", KUEUE_PATH "v1beta2",
     KUEUE "v1beta2", false},
    {"topologies", "topology", "", "Topology", KUEUE_PATH "v1beta2", KUEUE "v1beta2", false},
    {"admissionchecks", "admissioncheck", "", "AdmissionCheck", KUEUE_PATH "v1beta2", KUEUE "v1beta2", false},
    {"workloads", "workload", "wl", "Workload", KUEUE_PATH "v1beta2", KUEUE "v1beta2", true},
    {"clusterqueues", "clusterqueue", "cq", "ClusterQueue", KUEUE_PATH "v1beta1", KUEUE "v1beta1", false},
    {"localqueues", "localqueue", "queue queues lq", "LocalQueue", KUEUE_PATH "v1beta1", KUEUE "v1beta1",
     true},
    {"resourceflavors", "resourceflavor", "flavor flavors rf", "ResourceFlavor", KUEUE_PATH "v1beta1",
     KUEUE "v1beta1", false},
    {"cohorts", "cohort", "", "Cohort", KUEUE_PATH "v1beta1", KUEUE "v1beta1", false},
    {"workloadpriorityclasses", "workloadpriorityclass", "", "WorkloadPriorityClass", KUEUE_PATH "v1beta1",
     KUEUE "v1beta1", false},
    {"topologies", "topology", "", "Topology", KUEUE_PATH "v1beta1", KUEUE "v1beta1", false},
    {"admissionchecks", "admissioncheck", "", "AdmissionCheck", KUEUE_PATH "v1beta1", KUEUE "v1beta1", false},
    {"workloads", "workload", "wl", "Workload", KUEUE_PATH "v1beta1", KUEUE "v1beta1", true},
    {"faults", "fault", "flt", "Fault", "/apis/phalanx.dev/v1", "phalanx.dev/v1", false},
    {"lemons", "lemon", "", "Lemon", "/apis/phalanx.dev/v1", "phalanx.dev/v1", false},
    {"faulttables", "faulttable", "", "FaultTable", "/apis/phalanx.dev/v1", "phalanx.dev/v1", false},
    {"repairs", "repair", "rep", "Repair", "/apis/phalanx.dev/v1", "phalanx.dev/v1", false},
    {"maintenances", "maintenance", "maint", "Maintenance", "/apis/phalanx.dev/v1", "phalanx.dev/v1", false},
    {"roles", "role", "", "Role", RBAC_PATH, RBAC, true},
    {"rolebindings", "rolebinding", "", "RoleBinding", RBAC_PATH, RBAC, true},
    {"clusterroles", "clusterrole", "", "ClusterRole", RBAC_PATH, RBAC, false},
    {"clusterrolebindings", "clusterrolebinding", "", "ClusterRoleBinding", RBAC_PATH, RBAC, false},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static bool among(struct str names, struct str name)
{
    struct str head, rest;
    while (str_cut(names, ' ', &head, &rest)) {
        if (str_equal(head, name))
            return true;
        names = rest;
    }
    return names.len && str_equal(names, name);
}

const struct kind *kind_find(struct str name)
{
    struct str plain = name, group;
    if (!str_cut(name, '.', &plain, &group))
        plain = name;
    for (int i = 0; i < KINDS; i++)
        if (str_is(plain, kinds[i].plural) || str_is(plain, kinds[i].singular) ||
            str_is(plain, kinds[i].kind) || among(str_from(kinds[i].names), plain))
            return &kinds[i];
    return NULL;
}

const struct kind *kind_of(struct str api_version, struct str kind)
{
    for (int i = 0; i < KINDS; i++)
        if (str_is(api_version, kinds[i].api_version) && str_is(kind, kinds[i].kind))
            return &kinds[i];
    return NULL;
}

const struct kind *kind_nearest(struct str api_version, struct str kind)
{
    struct nearest nearest = nearest_to(kind);
    const struct kind *best = NULL;
    for (int i = 0; i < KINDS; i++) {
        unsigned before = nearest.best.len ? nearest.distance : NEAREST_WORD_MAX;
        nearest_offer(&nearest, str_from(kinds[i].kind));
        bool nearer = nearest.best.len && (!best || nearest.distance < before);
        if (nearer || (best && str_is(str_from(best->kind), kinds[i].kind) &&
                       str_is(api_version, kinds[i].api_version)))
            best = &kinds[i];
    }
    return best;
}

void kind_say_unknown(struct str name)
{
    struct nearest nearest = nearest_to(name);
    for (int i = 0; i < KINDS; i++) {
        nearest_offer(&nearest, str_from(kinds[i].plural));
        nearest_offer(&nearest, str_from(kinds[i].singular));
    }
    if (nearest.best.len)
        say("unknown kind \"" STR_FORMAT "\"; did you mean \"" STR_FORMAT "\"?", STR_ARG(name),
            STR_ARG(nearest.best));
    else
        say("unknown kind \"" STR_FORMAT "\", expected jobsets, jobs, pods, nodes, events or another of "
            "docs/api.md",
            STR_ARG(name));
}

bool kind_split(const char *text, const struct kind **ret_kind, struct str *ret_name)
{
    struct str kind, name;
    if (!str_cut(str_from(text), '/', &kind, &name) || name.len == 0) {
        say("\"%s\" is not KIND/NAME", text);
        return false;
    }
    const struct kind *found = kind_find(kind);
    if (!found) {
        kind_say_unknown(kind);
        return false;
    }
    *ret_kind = found;
    *ret_name = name;
    return true;
}

bool kind_leading(char ***args, int *count, const struct kind **ret_kind)
{
    const char *first = (*args)[0];
    if (strchr(first, '/'))
        return true;
    const struct kind *kind = kind_find(str_from(first));
    if (!kind || *count < 2) {
        if (kind)
            say("which %s? the name is missing after \"%s\"", kind->singular, first);
        else
            kind_say_unknown(str_from(first));
        return false;
    }
    ++*args;
    --*count;
    *ret_kind = kind;
    return true;
}

void url_add(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~", c);
        if (plain && c)
            buf_add_char(out, (char)c);
        else
            buf_printf(out, "%%%02X", c);
    }
}

void kind_path(struct buf *out, const struct kind *kind, const char *namespace_, struct str name)
{
    buf_add_str(out, str_from(kind->group_path));
    if (kind->namespaced && namespace_) {
        buf_add_str(out, STR("/namespaces/"));
        url_add(out, str_from(namespace_));
    }
    buf_printf(out, "/%s", kind->plural);
    if (name.len) {
        buf_add_char(out, '/');
        url_add(out, name);
    }
}
