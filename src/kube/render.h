/* render.h - objects of the core as Kubernetes JSON.
 *
 * All text is written straight into the caller's buffer: no tree is built, so a list of thousands of Nodes
 * costs its text alone. One file for each kind (render_jobset.c ...); render.c has the shared parts.
 */
#ifndef PHX_KUBE_RENDER_H
#define PHX_KUBE_RENDER_H

#include "doc/json.h"
#include "core/admit/admit.h"
#include "kube/resource.h"

/* The taint that Nodes show while their faults keep them from work; its value is their isolation. */
#define FAULT_TAINT "phalanx.dev/fault"

enum { NOTE_NAME_MAX = NAME_MAX_BYTES + 24 };

struct render {
    struct json_writer out;
    const struct core *core;
    int64_t now_ns;                      /* for ages */
    bool fresh;                          /* a single object: a waiting one says why as of now */
    bool old_form;                       /* of a Workload: as v1beta1 has it */
    bool live;                           /* a read, no watch: accounts as of now */
    struct arena *scratch;               /* the caller empties it */
    const struct usage_table *usages;    /* of NodeMetrics and PodMetrics; NULL: not needed */
    /* For a read: has the machine's agent confirmed the hold of the leases? NULL: it is not shown. */
    bool (*hold_counts)(void *host, machine_id machine);
    void *host;
    size_t metadata_start, metadata_len; /* place of the last object's metadata value in out.out */
};

/* The whole object. */
void render_object(struct render *render, const struct resource *resource, struct object_ref object,
                   struct str name);

/* By kind; each writes one whole object. */
void render_jobset(struct render *render, const struct jobset *jobset);
void render_job(struct render *render, const struct job *job);
void render_pod(struct render *render, const struct task *task);
void render_node(struct render *render, const struct machine *machine);
void render_workload(struct render *render, const struct resource *resource, const struct workload *workload);
/* Is the machine shown as a Lemon? Only if some failure of it is counted. */
bool lemon_is_shown(const struct core *core, const struct machine *machine);
void render_lemon(struct render *render, const struct machine *machine);
void lemon_cells(struct render *render, const struct machine *machine);
/* The Node's condition; nothing where it is none. */
void render_lemon_condition(struct render *render, const struct machine *machine);
/* topologyAssignment of one PodSet: of a Workload, or of the Pods of a role of a group. */
void render_topology(struct render *render, const struct workload *const *all, size_t count, size_t rjob);
/* "metadata" with what tells one from another. */
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

/* The Report of the whole cluster (render_report.c): what chips did, and what failures cost. */
void render_report(struct render *render);

/* "apiVersion" and "kind". */
void render_type(struct render *render, const char *api_version, const char *kind);
/* The metadata object is opened and its common fields written; more may follow until
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

/* `key`: an RFC 3339 time; nothing when time_ns is 0. */
void render_time(struct render *render, const char *key, int64_t time_ns);
void render_micro_time(struct render *render, const char *key, int64_t time_ns);
/* A condition of built-in kinds (Pod, Job, Node); reason and message may be empty. */
void render_condition(struct render *render, const char *type, const char *status, int64_t changed_ns,
                      const char *reason, struct str message);
/* Members of the object `doc` (NULL: none) whose key is not among the NULL-terminated `skip`. */
void render_members(struct render *render, const struct doc *doc, const char *const *skip);
/* Members of an object's metadata, as its user wrote it, without those that the server sets. */
void render_user_metadata(struct render *render, const struct doc *metadata);
/* A map of labels: those of `labels` and of `doc` (NULL: none), `labels` winning. */
void render_labels(struct render *render, const char *key, const struct labels *labels,
                   const struct doc *doc);

/* Parts that Pods, Jobs and tables share. */
const struct doc *render_job_template(const struct job *job); /* metadata and spec, in the document */
const struct doc *render_pod_template(const struct job *job); /* likewise */
/* Metadata that users wrote, besides labels and annotations: finalizers, ownerReferences, generateName. */
void render_own_metadata(struct render *render, const struct jobset *jobset);
const char *render_pod_phase(const struct task *task); /* "Pending", ... */
const char *
render_pod_word(const struct task *task);           /* STATUS column: "Running", "Terminating", "OOMKilled" */
/* The full STATUS column, with the state of the containers: "Init:0/2", "CrashLoopBackOff"; in `scratch` or
 * static. */
struct str render_pod_status(const struct task *task, struct arena *scratch);
const char *render_end_reason(const struct task *task); /* "Completed", "Error", "OOMKilled", ... */
/* The numbers in the row of a Pod. */
struct pod_counts {
    uint32_t containers, ready; /* sidecars among them */
    uint32_t inits, inits_done;
    uint32_t restarts;
    struct str reason;          /* why the first one that waits does; empty: none waits */
};
struct pod_counts render_pod_counts(const struct task *task);
/* Returns the status of the container with this name; false: the task has none. */
bool render_container_status(const struct task *task, struct str name, struct container_status *ret_status);
/* status.containerStatuses and .initContainerStatuses */
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
