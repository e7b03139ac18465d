/* queues.h - what the tests of admission share: manifests of several kinds, and looking at Workloads.
 *
 *     apply(&h, "kind: ResourceFlavor...\n---\n...");       // creates or replaces
 *     assert_admitted(&h, "a");
 */
#ifndef PHX_TESTS_CORE_ADMIT_QUEUES_H
#define PHX_TESTS_CORE_ADMIT_QUEUES_H

#include "../harness.h"
#include "core/admit/admit.h"

static inline int post(struct harness *h, enum write_verb verb, enum object_kind kind, const char *ns,
                       const char *name, struct str body)
{
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){.verb = verb,
                                       .object = kind,
                                       .namespace_ = str_from(ns),
                                       .name = str_from(name),
                                       .body = body,
                                       .grace_s = -1};
    h->last_code = 0;
    harness_step(h, &event);
    core_check_invariants(h->core);
    return h->last_code;
}

static inline enum object_kind kind_in(const struct doc *doc)
{
    enum object_kind kind =
        object_kind_of(doc_str(doc_get(doc, "apiVersion"), STR("")), doc_str(doc_get(doc, "kind"), STR("")));
    if (!kind)
        fail_msg("unknown kind");
    return kind;
}

static inline bool exists(struct harness *h, enum object_kind kind, struct str ns, struct str name)
{
    if (kind == OBJECT_JOBSET)
        return jobs_find(core_jobs(h->core), ns, name) != NULL;
    if (kind == OBJECT_JOB)
        return jobs_find_job(core_jobs(h->core), ns, name) != NULL;
    if (kind == OBJECT_NODE)
        return true;
    if (kind == OBJECT_POD)
        return jobs_find_pod(core_jobs(h->core), ns, name) != NULL;
    return object_find(core_objects(h->core), kind, ns, name) != NULL;
}

/* Returns the status of the last document. */
static inline int apply(struct harness *h, const char *yaml)
{
    struct arena arena = {0};
    struct doc_list docs = {0};
    struct error error = {0};
    if (yaml_parse_all(&arena, str_from(yaml), &docs, &error) < 0)
        fail_msg("%s", error.text);
    for (size_t i = 0; i < docs.len; i++) {
        struct buf json = {0};
        enum object_kind kind = kind_in(docs.items[i]);
        const struct doc *metadata = doc_get(docs.items[i], "metadata");
        struct str name = doc_str(doc_get(metadata, "name"), STR(""));
        struct str ns = doc_str(doc_get(metadata, "namespace"), STR("default"));
        char name_text[256], ns_text[256];
        snprintf(name_text, sizeof(name_text), STR_FORMAT, STR_ARG(name));
        snprintf(ns_text, sizeof(ns_text), STR_FORMAT, STR_ARG(ns));
        json_write(&json, docs.items[i]);
        bool there = exists(h, kind, ns, name);
        int code = post(h, there ? WRITE_REPLACE : WRITE_CREATE, kind, ns_text, there ? name_text : "",
                        buf_str(&json));
        buf_done(&json);
        if (code >= 300 && i + 1 < docs.len)
            fail_msg("%s: %d %s", name_text, code, h->last_message);
    }
    arena_done(&arena);
    return h->last_code;
}

/* As its controller would say of an AdmissionCheck. */
static inline int set_check_active(struct harness *h, const char *name, bool active)
{
    char body[128];
    snprintf(body, sizeof(body), "{\"status\":{\"conditions\":[{\"type\":\"Active\",\"status\":\"%s\"}]}}",
             active ? "True" : "False");
    return post(h, WRITE_STATUS, OBJECT_ADMISSION_CHECK, "", name, str_from(body));
}

static inline void must_apply(struct harness *h, const char *yaml)
{
    int code = apply(h, yaml);
    if (code >= 300)
        fail_msg("%d %s", code, h->last_message);
}

static inline const struct workload *workload_named(struct harness *h, const char *jobset)
{
    struct jobset *found = harness_jobset(h, jobset);
    if (!found)
        return NULL;
    return workload_of(core_admit(h->core), found->uid);
}

static inline const char *state_of(struct harness *h, const char *jobset)
{
    static const char *const names[] = {"pending", "holding", "admitted", "leaving", "finished"};
    const struct workload *workload = workload_named(h, jobset);
    return workload ? names[workload->state] : "none";
}

static inline const char *message_of(struct harness *h, const char *jobset, enum workload_condition_kind kind)
{
    const struct workload *workload = workload_named(h, jobset);
    return workload && workload->conditions[kind].message.data ? workload->conditions[kind].message.data : "";
}

static inline const char *reason_of(struct harness *h, const char *jobset, enum workload_condition_kind kind)
{
    const struct workload *workload = workload_named(h, jobset);
    return workload && workload->conditions[kind].reason ? workload->conditions[kind].reason : "";
}

static inline bool holds(struct harness *h, const char *jobset, enum workload_condition_kind kind)
{
    const struct workload *workload = workload_named(h, jobset);
    return workload && workload->conditions[kind].present && workload->conditions[kind].status;
}

#define assert_state(h, jobset, state)                                                                       \
    do {                                                                                                     \
        if (strcmp(state_of(h, jobset), (state)) != 0)                                                       \
            fail_msg("%s is %s, not %s: %s", (jobset), state_of(h, jobset), (state),                         \
                     message_of(h, jobset, WORKLOAD_QUOTA_RESERVED));                                        \
    } while (0)

/* A JobSet of one replicated job "w": `tasks` tasks of `chips` chips. */
static inline void submit(struct harness *h, const char *name, const char *queue, int tasks, int chips,
                          const char *labels)
{
    char yaml[2048];
    snprintf(
        yaml, sizeof(yaml),
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata:\n  name: %s\n  labels:\n"
        "    kueue.x-k8s.io/queue-name: %s\n%sspec:\n  failurePolicy: {maxRestarts: 3}\n  replicatedJobs:\n"
        "  - name: w\n    replicas: 1\n"
        "    template: {spec: {parallelism: %d, completions: %d, backoffLimit: 0, template: {spec: {"
        "restartPolicy: Never, containers: [{name: c, image: i, command: [run], resources: {limits: "
        "{google.com/tpu: %d}}}]}}}}\n",
        name, queue, labels, tasks, tasks, chips);
    harness_create(h, yaml);
    core_check_invariants(h->core);
}

static inline void finish_all(struct harness *h, const char *jobset, int tasks)
{
    for (int t = 0; t < tasks; t++) {
        char host[300];
        snprintf(host, sizeof(host), "%s-w-0-%d", jobset, t);
        harness_exit(h, harness_task(h, host), 0);
    }
    core_check_invariants(h->core);
}

#define FLAVOR(name)                                                                                         \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: " name "}\n---\n"
#define LOCAL_QUEUE(name, queue)                                                                             \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: " name                           \
    ", namespace: default}\nspec: {clusterQueue: " queue "}\n---\n"
/* `more`: further fields of the spec, each line with two blanks. */
#define CLUSTER_QUEUE(name, quota, more)                                                                     \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: " name "}\nspec:\n"            \
    "  namespaceSelector: {}\n" more "  resourceGroups:\n  - coveredResources: [google.com/tpu]\n"           \
    "    flavors:\n    - name: v5e\n      resources: [{name: google.com/tpu, nominalQuota: " quota           \
    "}]\n---\n"

/* The cluster file of the harness with spec.queues. */
static inline void set_queues(struct harness *h, int machines, int chips, const char *queues)
{
    char json[2048];
    snprintf(
        json, sizeof(json),
        "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"test\"},\"spec\":{"
        "\"settings\":{\"checkpointDir\":\"/ckpt\",\"priorityClasses\":{\"high\":1000}},\"queues\":%s,"
        "\"machineNames\":\"m-{n}\",\"addresses\":\"127.0.1.1\","
        "\"pods\":[{\"racks\":[{\"machines\":%d,\"chips\":%d}]}]}}",
        queues, machines, chips);
    struct event event = {.kind = EVENT_CLUSTER};
    event.cluster.document = str_from(json);
    harness_step(h, &event);
    core_check_invariants(h->core);
}

#endif
