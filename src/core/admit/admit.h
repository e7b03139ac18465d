/* admit.h - admission: Kueue's queues over the cluster's real machines.
 *
 * A JobSet, Job or Pod that carries the label kueue.x-k8s.io/queue-name is *managed*. A managed object is
 * created suspended (a Pod: with a scheduling gate) and has a Workload. Admission resumes the object when its
 * ClusterQueue has quota for the whole request AND its tasks find machines; one transaction decides both
 * (gang/trial.h). An eviction suspends the object again (a Pod: deletes it). Objects that are not managed are
 * placed without quota.
 *
 * A user may also create the Workload before its job. Such a Workload is queued and admitted like any other,
 * and the job that names it with the label kueue.x-k8s.io/prebuilt-workload-name starts with its quota and
 * machines.
 *
 *   admit.c       the module's state and its turn in a step
 *   read.c        the queue objects (object/object.h) as a typed tree, rebuilt when one of them changes
 *   workload.c    the Workload of each managed JobSet: its requests, its conditions
 *   prebuilt.c    Workloads that users make, and the jobs that take them over
 *   life.c        the states of a Workload: queued, holding, admitted, leaving, queued again, finished
 *   look.c        reactions to changes of a Workload's JobSet, and to time-outs
 *   flavor.c      the choice of a flavour for each resource of each PodSet
 *   terms.c       the terms that admission adds to the spec of the tasks
 *   cycle.c       one admission cycle: heads, order, admission
 *   preempt.c     the search for victims: takes candidates greedily, in a simulation, and gives back the rest
 *   victims.c     the candidates for victims, and their order
 *   fair.c        dominant resource shares
 *   check.c       AdmissionChecks: answers of other controllers that a Workload waits for
 *   updates.c     the podSetUpdates that such an answer adds to the Workload's Pods
 *   group.c       Pods that are admitted together
 *   group_view.c  the one Workload that the API shows for the Pods of a group
 *   why.c         missing quota, in numbers
 *   explain.c     why a workload waits, for readers of the API
 *   status.c      the numbers in the status of queue objects
 *   pending.c     the waiting workloads of a queue, in order
 *   reclaim.c     quota that is given back early
 *   gate.c        controllers that hold back a workload's admission
 *   inuse.c       deletion of queue objects that are still in use
 * The quota arithmetic itself is pure and knows no objects (sched/quota.h).
 *
 * The states of a Workload:
 *     PENDING    waits in its queue; *parked* while nothing that it lacks has changed since the last try
 *     HOLDING    has quota and machines, and waits for its victims to end or for its AdmissionChecks
 *     ADMITTED   runs; its quota is booked
 *     LEAVING    evicted: its tasks save their state and end. Its quota stays booked until then, unless a
 *                preemptor has already received it
 *     FINISHED   its JobSet has ended
 *
 * core.c calls this module after jobs have settled. The module changes JobSets only through life/life.h and
 * gang/trial.h. Source of the rules: kueue.x-k8s.io/v1beta2 (kubernetes-sigs/kueue), "concepts" and
 * "preemption".
 */
#ifndef PHX_CORE_ADMIT_ADMIT_H
#define PHX_CORE_ADMIT_ADMIT_H

#include "base/list.h"
#include "core/job/job.h"
#include "core/object/object.h"

struct step;
struct admit; /* one for each core; `admit` of struct step */

enum workload_state {
    WORKLOAD_PENDING,
    WORKLOAD_HOLDING,
    WORKLOAD_ADMITTED,
    WORKLOAD_LEAVING,
    WORKLOAD_FINISHED,
    WORKLOAD_STATES
};
_Static_assert(WORKLOAD_STATES <= UINT8_MAX, "`state` of struct workload has eight bits");
enum workload_condition_kind { /* in the order of the status */
                               WORKLOAD_QUOTA_RESERVED,
                               WORKLOAD_IS_ADMITTED,
                               WORKLOAD_PODS_READY,
                               WORKLOAD_EVICTED,
                               WORKLOAD_PREEMPTED,
                               WORKLOAD_REQUEUED,
                               WORKLOAD_DEACTIVATION_TARGET,
                               WORKLOAD_WAITS_FOR_PODS,
                               WORKLOAD_IS_FINISHED,
                               WORKLOAD_CONDITIONS
};
const char *workload_condition_name(enum workload_condition_kind kind); /* "QuotaReserved", ... */
struct workload_condition {
    bool present, status;
    const char *reason; /* a static string */
    struct buf message;
    int64_t changed_ns; /* last transition */
};

/* The requests of one task of a PodSet, and the flavours assigned to them. */
enum { PODSET_RESOURCES_MAX = 4 }; /* cpu, memory, chips, pods */
struct podset_resource {
    struct str name;   /* "cpu", "google.com/tpu": points into the JobSet's document, or static */
    int64_t per_task;  /* thousandths for cpu, bytes, chips, 1 for pods */
    struct str flavor; /* empty: none yet, or the queue does not cover the resource */
};
struct podset {
    struct str name;  /* name of the replicated job; "main" for a Job or Pod; the role in a pod group */
    int32_t count;    /* number of tasks in the spec */
    int32_t least;    /* partial admission: the least acceptable number of tasks */
    int32_t admitted; /* number of admitted tasks; 0: none */
    int32_t done;     /* admitted tasks whose Jobs have succeeded: their quota is free (reclaimablePods) */
    size_t resource_count;
    struct podset_resource resources[PODSET_RESOURCES_MAX];
};

struct cluster_queue;
struct local_queue;
struct pod_group;

/* The number of evictions for one reason. */
struct workload_eviction {
    const char *reason; /* a static string of workload_reason */
    int32_t count;
};

/* An AdmissionCheck's answer (Workload.status.admissionChecks). */
enum workload_check_state { CHECK_PENDING, CHECK_READY, CHECK_RETRY, CHECK_REJECTED, CHECK_STATES };
_Static_assert(CHECK_STATES <= UINT8_MAX, "`state` of struct workload_check has eight bits");
enum { CHECK_MESSAGE_MAX = 32768 };
const char *check_state_name(uint8_t state); /* "Pending", ... */
struct workload_check {
    struct str name; /* owned */
    uint8_t state;   /* enum workload_check_state */
    struct buf message;
    int64_t changed_ns; /* last change of the state */
    int64_t requeue_after_s;
    int32_t retries;
    const struct doc *updates; /* podSetUpdates, in `arena`; NULL: none */
    struct arena arena;
};

/* A Workload as the API shows it. Its labels are those of its JobSet. */
struct workload {
    obj_id uid;
    struct jobset *jobset; /* its job; equals `own` while no job has taken the Workload over */
    /* The Workload as its user wrote it (FORM_WORKLOAD, prebuilt.c); NULL: the core made it for `jobset`. */
    struct jobset *own;
    struct str name; /* "jobset-<name>-<5 characters>", or as its user named it */
    uint8_t state;   /* enum workload_state */
    bool active;     /* spec.active */
    bool parked;     /* PENDING: tried, and nothing that it lacks has changed since */
    bool given;      /* LEAVING: a preemptor already holds its quota */
    struct workload_condition conditions[WORKLOAD_CONDITIONS];
    struct podset *podsets; /* [jobset->spec.rjob_count] */
    struct str queue_name;  /* LocalQueue that its label names; points into the JobSet's document */
    struct str reserved_in; /* ClusterQueue in which its quota is booked; empty: none */
    int32_t priority;
    struct str priority_class; /* WorkloadPriorityClass, or empty */
    int64_t generation;        /* counts changes of the fields that users may write: spec.active, priority */
    uint64_t changed_seq;      /* log position of the last change of the Workload, or of its group */
    int64_t created_ns, queued_ns;              /* queued_ns: creation or last eviction */
    uint64_t ticket;                            /* place in the queue among equals: smaller is earlier */
    int64_t reserved_ns, admitted_ns, ready_ns; /* stamps of this admission; 0: not yet reached */
    int64_t unready_ns; /* when some of its tasks, once ready, ceased to be; 0: all are ready */
    int64_t ran_ns;     /* running time in earlier admissions; counts towards its maximum execution time */
    int64_t leave_ns;   /* LEAVING: end of its notice; 0: it is suspended */
    int64_t noticed_ns; /* LEAVING: start of its notice */
    int64_t requeue_ns; /* PENDING: end of the back-off; 0: no back-off */
    int64_t retry_ns;   /* PENDING: when the protection of a possible victim ends; 0: none */
    int32_t full;       /* partial admission: the parallelism that its Job requested; 0: not reduced */
    int32_t requeues;   /* consecutive evictions for not becoming ready */
    int32_t preempted;  /* number of victims that it has taken since it was queued */
    VEC(struct workload_eviction) evictions; /* one for each reason, in order of the first eviction */
    VEC(struct workload_check) checks;       /* the checks of its queue, in the queue's order */
    obj_id preemptor;                        /* LEAVING: the Workload that preempted it; 0: none */

    /* private */
    struct cluster_queue *queue; /* the present ClusterQueue of its LocalQueue; NULL: none */
    struct local_queue *local;
    struct pod_group *group; /* group of a Pod with a pod-group-name; NULL: none */
    obj_id group_uid;        /* uid of the group's Workload in the API; 0: not in a group */
    int64_t group_created_ns;
    char role[9];            /* of a Pod in a group: the name of its PodSet in the group's Workload */
    struct workload *leader; /* first member of its gang, whose `gang` lists all members; NULL: no gang */
    VEC(struct workload *) gang;
    obj_id led_by;          /* private: uid of the saved leader, between workload_restore_hold and
                              * admit_restore_gangs */
    struct list_node link;  /* in its queue's parked or booked list */
    struct heap_node place; /* in its queue's heap */
    struct heap_node timer;
    VEC(struct booking) booked; /* its quota in the tree */
    struct cluster_queue *booked_in;
    const struct doc *seen, *seen_own; /* the documents of `jobset` and `own` from which podsets were made */
    uint32_t waits_for;                /* HOLDING: number of victims that have not ended */
    uint8_t counted;                   /* enum queue_count: its kind in the counts of its queues */
    struct arena assigned;             /* owns reserved_in and the flavours' names */
    char *text;                        /* owns name */
    uint64_t shape;                    /* hash of its requests: workloads of equal shape fail alike */
    bool gone;
};
struct booking {
    uint32_t cell;
    int64_t amount;
};

/* --- for readers ---------------------------------------------------------------------------------------- */

/* Finds a Workload by its name in the API: "jobset-<name>-<5 characters>", the name that its user chose, or
 * the name of a pod group. For a group, returns its representative. Returns NULL if there is none. */
const struct workload *workload_find(const struct admit *admit, struct str namespace_, struct str name);
/* Finds the Workload of the JobSet, Job or Pod with this uid. Returns NULL if there is none. */
const struct workload *workload_of(const struct admit *admit, obj_id jobset);
/* Whether a user made the Workload and no job has taken it over. */
static inline bool workload_is_bare(const struct workload *workload)
{
    return workload->jobset == workload->own;
}
/* Returns the name of the prebuilt Workload that the job's label names. Returns an empty string if it names
 * none, or if it is a Pod of a group or itself a Workload. */
struct str prebuilt_name(const struct jobset *jobset);
/* Whether the API shows a Workload with this uid. */
bool workload_lives(const struct admit *admit, obj_id uid);
/* Returns the member whose state and conditions represent those of the group, because the API shows one
 * Workload for all Pods of a group. Returns `workload` itself if it is in no group. All members have the same
 * name and namespace. */
const struct workload *workload_representative(const struct workload *workload);
/* Return the uid of the Workload in the API, its creation time, and the log position of its last change (or
 * of the last change of the record that its user wrote). They are the same for all members of a group. */
static inline obj_id workload_shown_uid(const struct workload *workload)
{
    return workload->group_uid ? workload->group_uid : workload->uid;
}
static inline int64_t workload_shown_created(const struct workload *workload)
{
    return workload->group_uid ? workload->group_created_ns : workload->created_ns;
}
static inline uint64_t workload_version(const struct workload *workload)
{
    uint64_t own = workload->own ? workload->own->changed_seq : 0;
    return own > workload->changed_seq ? own : workload->changed_seq;
}
/* Sets *ret_list to the members of the Workload's group in order of arrival, and returns their number. The
 * list belongs to the group and lasts until the group changes. Returns 0 and sets *ret_list to NULL if the
 * Workload is in no group. */
size_t workload_members(const struct workload *workload, const struct workload *const **ret_list);
/* Whether the member counts towards the size of its group. A failed member that may be replaced does not. */
bool workload_counts(const struct workload *member);
/* The end of a group. A group is finished when all its Pods have succeeded (`well`), or when none runs and
 * none may be replaced. */
struct group_end {
    bool finished, well;
    int64_t succeeded, total; /* numbers of Pods; total 0: missing or malformed */
};
/* Returns zeros if the Workload is in no group. */
struct group_end workload_group_end(const struct workload *workload);
/* Returns the uid of the Workload's JobSet, Job or Pod as its user sees it. */
obj_id workload_owner_uid(const struct workload *workload);
/* Visits the Workloads in order of creation; every Pod of a group is visited separately. */
void workload_visit(const struct admit *admit, void (*visit)(void *context, const struct workload *workload),
                    void *context);
/* The condition Active in the status of a ClusterQueue or LocalQueue, in force since `changed_ns`. */
struct queue_condition {
    bool active;
    const char *reason; /* "Ready", "Stopped", "FlavorNotFound", ... */
    struct str message;
    int64_t changed_ns;
};
struct queue_counts {
    uint32_t pending, reserving, admitted;
};
/* Gets the status of a stored ClusterQueue or LocalQueue. Returns false if the object is of another kind.
 * The strings of the results point into the core's state. */
bool queue_status(const struct admit *admit, const struct object *queue,
                  struct queue_condition *ret_condition, struct queue_counts *ret_counts);
/* The usage of one flavour and resource by a queue's workloads, in the units of struct podset_resource. */
struct queue_usage {
    struct str flavor, resource;
    /* Amounts of all workloads with quota, and of the admitted ones; the part of `reserved` beyond the
     * queue's own quota, 0 for a LocalQueue. */
    int64_t reserved, admitted, borrowed;
};
/* Calls `visit` for each flavour and resource of a ClusterQueue or LocalQueue, in the queue's order. */
void queue_usage_visit(const struct admit *admit, const struct object *queue,
                       void (*visit)(void *context, const struct queue_usage *usage), void *context);
/* A waiting workload, with its positions among the waiting workloads of its ClusterQueue and of its
 * LocalQueue, from 0. */
struct pending_workload {
    const struct workload *workload;
    uint32_t in_cluster_queue, in_local_queue;
};
/* Lists the waiting workloads of a stored ClusterQueue or LocalQueue, in order, in `arena`. Returns the
 * length of the list. */
size_t queue_pending(const struct admit *admit, const struct object *queue, struct arena *arena,
                     struct pending_workload **ret_list);
/* Whether a controller can answer this AdmissionCheck. Controllers that are part of Kueue itself do not
 * exist in this cluster. */
bool admission_check_served(const struct object *check);
/* Whether such a controller has set the check's condition Active. */
bool admission_check_active(const struct object *check);
/* Returns the weighted dominant resource share of a ClusterQueue or Cohort, in thousandths. Returns INT64_MAX
 * if the queue borrows with weight 0, and 0 for objects of other kinds. */
int64_t queue_weighted_share(const struct admit *admit, const struct object *queue);
/* Appends an amount in the units of struct podset_resource as a Kubernetes quantity: "1500m", "64", "2Gi". */
void amount_format(struct buf *out, struct str resource, int64_t amount);

/* Explains in numbers why a pending workload waits now: appends a message and returns the reason for
 * QuotaReserved=False, a static string. Returns NULL if the condition of the workload still holds. Costs a
 * search for machines, so use it for single objects only. */
struct core;
const char *workload_explain(const struct core *core, const struct workload *workload, struct buf *out);

/* --- for core.c and write.c ----------------------------------------------------------------------------- */

struct admit *admit_new(void);
void admit_free(struct admit *admit);
void admit_bury(struct admit *admit); /* called before anything else in a step */
/* Applies the queue's rules to a managed document before it is stored: the queues decide its spec.suspend.
 * `jobset` is the stored object, or NULL if the object is new. A new object that names no queue gets the
 * LocalQueue "default" of its namespace, if that exists. */
void admit_default(const struct admit *admit, const struct jobset *jobset, struct arena *arena,
                   struct doc *document);
/* Whether the namespace has a LocalQueue named "default". */
bool admit_has_default_queue(const struct admit *admit, struct str namespace_);
/* Checks a new object's admission gates and labels, a Job's annotations for partial admission, and a Pod's
 * for its group. */
void admit_validate_new(const struct doc *document, const struct jobset_spec *spec,
                        struct field_errors *errors);
/* Checks that an update changes no field that is fixed while the workload runs. */
void admit_validate_update(const struct admit *admit, const struct jobset *jobset, const struct doc *document,
                           struct field_errors *errors);
/* Creates a Workload that a user wrote (prebuilt.c). The document is treated as a JobSet's (life/life.h,
 * jobset_create); `active` is its spec.active. */
struct workload *workload_create(struct step *step, struct arena *arena, struct doc *document,
                                 const struct jobset_spec *spec, bool active);
/* Replaces the document of a Workload that a user wrote. */
void workload_rewrite(struct step *step, struct workload *workload, struct arena *arena, struct doc *document,
                      const struct jobset_spec *spec);
/* Applies spec.active of a user's write to the Workload and to the other members of its group. */
void workload_replace(struct step *step, struct workload *workload, const struct doc *document);
/* Checks the form of status.admissionChecks, by which other controllers answer AdmissionChecks. */
void checks_validate(const struct workload *workload, const struct doc *document,
                     struct field_errors *errors);
/* Applies the answers in a valid status.admissionChecks to the Workload and to the members of its group. */
void workload_answer(struct step *step, struct workload *workload, const struct doc *document);
/* Whether the document has status.reclaimablePods: quota that a workload no longer needs. False for Pods of
 * a group. */
bool reclaim_is_said(const struct workload *workload, const struct doc *document);
/* Checks status.reclaimablePods. */
void reclaim_validate(const struct workload *workload, const struct doc *document,
                      struct field_errors *errors);
/* Frees the quota that a valid status.reclaimablePods gives back. */
void reclaim_say(struct step *step, struct workload *workload, const struct doc *document);
/* Returns the status that a controller wrote to its AdmissionCheck in the form in which it is stored, in
 * `arena`. Returns NULL if there are errors. */
struct doc *admission_check_status(struct arena *arena, const struct doc *document,
                                   struct field_errors *errors);
/* Deletes a Workload, with its group, for a user: evicts it from its machines. While its JobSet lives, a new
 * Workload replaces it. */
void workload_delete(struct step *step, struct workload *workload);
/* Whether objects of this kind carry a finalizer, and stay while other objects use them. */
bool admit_keeps(enum object_kind kind);
/* Takes in the changes since the last call and runs admission cycles. Returns true if JobSets were changed
 * and have to settle again. */
bool admit_act(struct step *step);
/* Returns the stamp at which the module has to act next; `now_ns` if the last cycle was cut short. */
int64_t admit_deadline(const struct admit *admit, int64_t now_ns); /* INT64_MAX: none */
void admit_restored(struct step *step);                            /* called after a snapshot was read */
void admit_check(const struct admit *admit);                       /* its invariants; linear */

/* --- for snapshots (core/log/snapshot_admit.c) ---------------------------------------------------------- */

/* Appends a check of this name to the list and returns it, for the caller to fill in. The name is copied. The
 * result is valid until the next check is added. */
struct workload_check *check_add(struct workload *workload, struct str name);
/* Returns 1 + the workload's position among the HOLDING workloads, or 0 if it is in another state. */
uint32_t workload_hold_place(const struct admit *admit, const struct workload *workload);
/* Adds a Workload of a snapshot and its podsets to the indexes; the caller fills in the saved fields.
 * Returns NULL if the uid is taken, or if the JobSet already has a Workload. */
struct workload *workload_restore(struct admit *admit, struct jobset *jobset, struct jobset *own, obj_id uid,
                                  int32_t full, obj_id group_uid, int64_t group_created_ns);
/* Restores the position of a HOLDING workload. `place` is its workload_hold_place; `leader` is the uid of the
 * Workload that leads its gang (0: none), which may be restored later. Returns false if the place is taken
 * or too high. */
bool workload_restore_hold(struct admit *admit, struct workload *workload, uint32_t place, obj_id leader);
/* Forms the gangs of HOLDING workloads; called when all Workloads are restored. Returns false, and forms
 * none, if a saved leader cannot lead its gang. */
bool admit_restore_gangs(struct admit *admit);
const char *workload_reason(struct str reason); /* returns the static text; "Pending" for unknown reasons */
/* The last published status of a queue object: watchers are notified only when it changes. */
struct queue_shown {
    obj_id uid;
    bool active;
    const char *reason;
    int64_t changed_ns;
    uint64_t hash;
};
/* Returns all of them, by uid; valid until the next step. */
const struct queue_shown *queue_shown_all(const struct admit *admit, size_t *ret_count);
/* Restores one of a snapshot. Returns false if the uid is not above that of the one before. */
bool queue_shown_restore(struct admit *admit, obj_id uid, bool active, int64_t changed_ns);
/* Derives lists and bookings once the whole snapshot is read; wakes no workload and notifies no watcher. */
void admit_restored(struct step *step);

#endif
