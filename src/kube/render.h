/* render.h - objects of the core as Kubernetes JSON.
 *
 * All text is written directly into the caller's buffer: no tree is built, so a list of thousands of Nodes
 * costs its text alone. Each kind has a file (render_jobset.c ...); render.c has the shared parts.
 */
#ifndef PHX_KUBE_RENDER_H
#define PHX_KUBE_RENDER_H

#include "doc/json.h"
#include "core/admit/admit.h"
#include "kube/resource.h"

/* The taint of Nodes whose faults keep them out of service; its value is their isolation. */
#define FAULT_TAINT "phalanx.dev/fault"

enum { NOTE_NAME_MAX = NAME_MAX_BYTES + 24 };

struct render {
    struct json_writer out;
    const struct core *core;
    int64_t now_ns;                      /* for ages */
    bool fresh;                          /* for a single object: the reason why it waits is computed now */
    bool old_form;                       /* of a Workload: the form of v1beta1 */
    bool live;                           /* for a read, not a watch: accounts are computed now */
    struct arena *scratch;               /* emptied by the caller */
    const struct usage_table *usages;    /* of NodeMetrics and PodMetrics; NULL: not needed */
    /* For a read: returns whether the machine's agent has confirmed the hold of the leases. NULL: not
     * shown. */
    bool (*hold_counts)(void *host, machine_id machine);
    void *host;
    size_t metadata_start, metadata_len; /* place of the last object's metadata value in out.out */
};

/* Writes one whole object of any kind. */
void render_object(struct render *render, const struct resource *resource, struct object_ref object,
                   struct str name);

/* Each writes one whole object of its kind. */
void render_jobset(struct render *render, const struct jobset *jobset);
void render_job(struct render *render, const struct job *job);
void render_pod(struct render *render, const struct task *task);
void render_node(struct render *render, const struct machine *machine);
void render_workload(struct render *render, const struct resource *resource, const struct workload *workload);
/* Returns whether the machine is shown as a Lemon: only if failures of it are counted. */
bool lemon_is_shown(const struct core *core, const struct machine *machine);
void render_lemon(struct render *render, const struct machine *machine);
void lemon_cells(struct render *render, const struct machine *machine);
/* Writes the Node's condition if the machine is a lemon; otherwise nothing. */
void render_lemon_condition(struct render *render, const struct machine *machine);
/* Writes the topologyAssignment of one PodSet: of a Workload, or of the Pods of a role of a group. */
void render_topology(struct render *render, const struct workload *const *all, size_t count, size_t rjob);
/* Writes "metadata" with the members that identify a Workload. */
void render_workload_head(struct render *render, const struct workload *workload);
void workload_cells(struct render *render, const struct workload *workload); /* but for its age */
void render_fault(struct render *render, const struct fault *fault);
void fault_cells(struct render *render, const struct fault *fault); /* but for its age */
/* A Cube, Switch, Slice or FabricSession. */
void render_fabric(struct render *render, struct object_ref object);
void fabric_cells(struct render *render, struct object_ref object); /* with its age */
void render_node_labels(struct render *render, const struct machine *machine);
void render_event(struct render *render, const struct note *note);
void render_new_event(struct render *render, const struct note *note);

/* Writes the Report of the whole cluster (render_report.c): how chips were used, and what failures cost. */
void render_report(struct render *render);

/* Writes "apiVersion" and "kind". */
void render_type(struct render *render, const char *api_version, const char *kind);
/* render_metadata_begin() opens the metadata object and writes its common fields; more may follow until
 * render_metadata_end(). */
struct render_metadata {
    struct str name, namespace_; /* namespace empty: left out */
    obj_id uid;
    uint64_t version;
    int64_t generation; /* 0: left out */
    int64_t created_ns, deleted_ns;
};
void render_metadata_begin(struct render *render, const struct render_metadata *metadata);
void render_metadata_end(struct render *render);
void render_owner(struct render *render, const char *api_version, const char *kind, struct str name,
                  obj_id uid);

/* Write `key` with an RFC 3339 time in seconds or microseconds; nothing if time_ns is 0. */
void render_time(struct render *render, const char *key, int64_t time_ns);
void render_micro_time(struct render *render, const char *key, int64_t time_ns);
/* Writes a condition of built-in kinds (Pod, Job, Node); reason and message may be empty. */
void render_condition(struct render *render, const char *type, const char *status, int64_t changed_ns,
                      const char *reason, struct str message);
/* Writes the members of the object `doc` (NULL: none) whose keys are not in the NULL-terminated `skip`. */
void render_members(struct render *render, const struct doc *doc, const char *const *skip);
/* Writes the members of an object's metadata as its user wrote it, without those that the server sets. */
void render_user_metadata(struct render *render, const struct doc *metadata);
/* Writes a map of labels, those of `labels` and of `doc` (NULL: none); `labels` takes precedence. Writes
 * nothing if there are none. */
void render_labels(struct render *render, const char *key, const struct labels *labels,
                   const struct doc *doc);

/* Parts that Pods, Jobs and tables share. */
const struct doc *render_job_template(const struct job *job); /* returns metadata and spec, in the document */
const struct doc *render_pod_template(const struct job *job); /* returns metadata and spec of its Pods */
/* Writes metadata that users wrote, besides labels and annotations: finalizers, ownerReferences,
 * generateName. */
void render_own_metadata(struct render *render, const struct jobset *jobset);
const char *render_pod_phase(const struct task *task); /* "Pending", ... */
const char *
render_pod_word(const struct task *task);           /* STATUS column: "Running", "Terminating", "OOMKilled" */
/* Returns the full STATUS column, with the state of the containers: "Init:0/2", "CrashLoopBackOff". The text
 * is in `scratch` or static. */
struct str render_pod_status(const struct task *task, struct arena *scratch);
const char *render_end_reason(const struct task *task); /* "Completed", "Error", "OOMKilled", ... */
/* The numbers in the row of a Pod. */
struct pod_counts {
    uint32_t containers, ready; /* sidecars among them */
    uint32_t inits, inits_done;
    uint32_t restarts;
    struct str reason; /* why the first waiting container waits; empty: none waits */
};
struct pod_counts render_pod_counts(const struct task *task);
/* Finds the status of the container with this name. Returns false if the task has no such container. */
bool render_container_status(const struct task *task, struct str name, struct container_status *ret_status);
/* Writes status.containerStatuses and .initContainerStatuses. */
void render_containers(struct render *render, const struct task *task);
const char *render_job_word(const struct job *job); /* STATUS column: "Running", "Complete", ... */
const char *render_node_word(const struct machine *machine); /* "Ready", "NotReady", "Unknown" */
const char *
render_jobset_state(const struct jobset *jobset); /* "Queued", "Running", "Restarting", "Completed"... */
struct str
render_jobset_why(const struct jobset *jobset); /* why its oldest waiting gang waits; empty: none does */
bool render_condition_holds(const struct jobset *jobset, enum condition_kind kind);
void render_note_name(const struct note *note, char ret_name[NOTE_NAME_MAX]);
struct str render_note_namespace(const struct note *note); /* Nodes have none: "default" */

#endif
