/* admit.h - admission: Kueue's queues over the cluster's real machines.
 *
 * A JobSet, Job or Pod that carries the label kueue.x-k8s.io/queue-name is *managed*: it is created suspended
 * (a Pod with a scheduling gate) and has a Workload; it is resumed when its ClusterQueue has quota for all of
 * it AND its tasks find machines, decided in one transaction (gang/trial.h), and suspended again (a Pod:
 * deleted) when it is evicted. All other objects are placed without quota.
 *
 * A user may make the Workload first: it waits, is given quota and machines, and a job that names it by the
 * label kueue.x-k8s.io/prebuilt-workload-name starts with both.
 *
 *   admit.c       the module's state and its turn in a step
 *   read.c        the queue objects (object/object.h) as a typed tree, rebuilt when one of them changes
 *   workload.c    the Workload of each managed JobSet: its requests, its conditions
 *   prebuilt.c    Workloads that users make, and the jobs that take them over
 *   life.c        its states: queued, holding, admitted, leaving, queued again, finished
 *   look.c        reaction to a change of its JobSet, or to a time-out
 *   flavor.c      the choice of a flavour for each resource of each PodSet
 *   terms.c       what admission adds to the spec of the tasks
 *   cycle.c       one admission cycle: heads, order, admission
 *   preempt.c     victims: simulate, greedy, give back
 *   victims.c     the candidates for victims, and their order
 *   fair.c        dominant resource shares
 *   check.c       AdmissionChecks: answers of other controllers that a Workload waits for
 *   updates.c     the podSetUpdates that such an answer adds to its Pods
 *   group.c       Pods that are admitted together
 *   group_view.c  the one Workload that the API shows for the Pods of a group
 *   why.c         missing quota, in numbers
 *   explain.c     why a workload waits, for readers of the API
 *   status.c      the numbers in the status of queue objects
 *   pending.c     the waiting workloads of a queue in their order
 *   reclaim.c     quota that is given back early
 *   gate.c        controllers that hold back a workload's admission
 *   inuse.c       deletion of queue objects that are still in use
 * The quota arithmetic itself is sched/quota.h, pure and without any object.
 *
 * The states of a Workload:
 *     PENDING    waits in its queue; *parked* while nothing that it lacks has changed since the last try
 *     HOLDING    has quota and machines: waits for its victims' end, or for its AdmissionChecks
 *     ADMITTED   runs; its quota is booked
 *     LEAVING    evicted: its tasks save what they can and end; its quota is booked until then, unless a
 *                preemptor has it already
 *     FINISHED   its JobSet is over
 *
 * Called by core.c after jobs have settled; acts on JobSets only through life/life.h and gang/trial.h. Source
 * of the rules: kueue.x-k8s.io/v1beta2 (kubernetes-sigs/kueue), "concepts" and "preemption".
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
    struct str name;   /* "cpu", "google.com/tpu": in the JobSet's document, or static */
    int64_t per_task;  /* milli for cpu, bytes, chips, 1 for pods */
    struct str flavor; /* empty: none (yet, or the queue does not cover it) */
};
struct podset {
    struct str name;  /* of the replicated job; "main" of a Job or Pod; in a pod group its role */
    int32_t count;    /* number of tasks in the spec */
    int32_t least;    /* partial admission: the least acceptable number of tasks */
    int32_t admitted; /* number of admitted tasks; 0: none */
    int32_t done;     /* of them, the tasks of succeeded Jobs: their quota is free (reclaimablePods) */
    size_t resource_count;
    struct podset_resource resources[PODSET_RESOURCES_MAX];
};

struct cluster_queue;
struct local_queue;
struct pod_group;

/* The number of evictions for one reason. */
struct workload_eviction {
    const char *reason; /* of workload_reason's */
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
    int64_t changed_ns; /* of the state */
    int64_t requeue_after_s;
    int32_t retries;
    const struct doc *updates; /* podSetUpdates, in `arena`; NULL: none */
    struct arena arena;
};

/* A Workload as the API shows it; labels come from its JobSet. */
struct workload {
    obj_id uid;
    struct jobset *jobset; /* of a Workload that no job has taken over: `own` */
    /* The Workload as its user wrote it (FORM_WORKLOAD); NULL: it was made for `jobset` (prebuilt.c). */
    struct jobset *own;
    struct str name; /* "jobset-<name>-<5 characters>", or as its user named it */
    uint8_t state;   /* enum workload_state */
    bool active;     /* spec.active */
    bool parked;     /* PENDING: tried, and nothing that it lacks has changed since */
    bool given;      /* LEAVING: a preemptor holds its quota already */
    struct workload_condition conditions[WORKLOAD_CONDITIONS];
    struct podset *podsets; /* [jobset->spec.rjob_count] */
    struct str queue_name;  /* LocalQueue by its label; in the JobSet's document */
    struct str reserved_in; /* ClusterQueue that its quota is booked in; empty: none */
    int32_t priority;
    struct str priority_class; /* WorkloadPriorityClass, or empty */
    int64_t generation;        /* of the fields that the user may write: spec.active, priority */
    uint64_t changed_seq;      /* log position of the last change, of the whole group's if it is in one */
    int64_t created_ns, queued_ns;              /* queued: creation or last eviction */
    uint64_t ticket;                            /* place in the queue among equals: smaller is earlier */
    int64_t reserved_ns, admitted_ns, ready_ns; /* stamps of this admission; 0: not (yet) */
    int64_t unready_ns; /* since when not all of its tasks are ready again; 0: all are */
    int64_t ran_ns;     /* running time in earlier admissions, for its maximum execution time */
    int64_t leave_ns;   /* LEAVING: end of its notice; 0: it is suspended */
    int64_t noticed_ns; /* LEAVING: start of its notice */
    int64_t requeue_ns; /* PENDING: backs off until then; 0: no back-off */
    int64_t retry_ns;   /* PENDING: when the protection of a possible victim ends; 0: none */
    int32_t full;       /* partial admission: the parallelism that its Job asked for; 0: not reduced */
    int32_t requeues;   /* consecutive evictions for not becoming ready */
    int32_t preempted;  /* number of victims since it was queued */
    VEC(struct workload_eviction) evictions; /* in the order of the first eviction of each */
    VEC(struct workload_check) checks;       /* the checks of its queue, in the queue's order */
    obj_id preemptor;                        /* LEAVING: the Workload that preempted it; 0: none */

    /* private */
    struct cluster_queue *queue; /* by its LocalQueue, at present; NULL: none */
    struct local_queue *local;
    struct pod_group *group; /* of a Pod with a pod-group-name; NULL: none */
    obj_id group_uid;        /* uid of the group's Workload in the API; 0: not in a group */
    int64_t group_created_ns;
    char role[9];            /* of a Pod of a group: the name of its PodSet there */
    struct workload *leader; /* first of leader->gang, if it is in a gang; NULL: none */
    VEC(struct workload *) gang;
    obj_id led_by;          /* private: uid of the saved leader, between workload_restore_hold and
                              * admit_restore_gangs */
    struct list_node link;  /* in its queue's parked or booked list */
    struct heap_node place; /* in its queue's heap */
    struct heap_node timer;
    VEC(struct booking) booked; /* its quota in the tree */
    struct cluster_queue *booked_in;
    const struct doc *seen, *seen_own; /* the documents of `jobset` and `own` that podsets were made from */
    uint32_t waits_for;                /* HOLDING: number of victims that have not ended */
    uint8_t counted;                   /* enum queue_count: its kind in the counts of its queues */
    struct arena assigned;             /* owns reserved_in and the flavours' names */
    char *text;                        /* owns name, priority_class */
    uint64_t shape;                    /* hash of its requests: workloads of equal shape fail alike */
    bool gone;
};
struct booking {
    uint32_t cell;
    int64_t amount;
};

/* --- for readers ---------------------------------------------------------------------------------------- */

/* Finds a Workload by Kueue's name, "jobset-<name>-<5 characters>". NULL: none. */
const struct workload *workload_find(const struct admit *admit, struct str namespace_, struct str name);
const struct workload *workload_of(const struct admit *admit, obj_id jobset);
/* A user made it, and no job has taken it over. */
static inline bool workload_is_bare(const struct workload *workload)
{
    return workload->jobset == workload->own;
}
/* The Workload that a job names by the label; empty: none, it is to be given one. */
struct str prebuilt_name(const struct jobset *jobset);
bool workload_lives(const struct admit *admit, obj_id uid); /* as the API shows it */
/* The API shows one Workload for all Pods of a group. Returns the member whose state and conditions stand
 * for the group's; `workload` itself if it is in no group. Name and namespace are the same for all
 * members. */
const struct workload *workload_representative(const struct workload *workload);
/* The uid of the Workload in the API, when it was created, and the log position of its last change: of a
 * user-made Workload that of its record, too. Members of a group have them in common. */
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
/* Lists the members of its group in order of arrival; `workload` alone if it is in no group. */
size_t workload_members(const struct workload *workload, const struct workload *const **ret_list);
/* Whether the member counts among those that its group needs. A failed member does not if it may be
 * replaced. */
bool workload_counts(const struct workload *member);
/* The end of a group: all its Pods have succeeded, or none runs and none may be replaced. */
struct group_end {
    bool finished, well;
    int64_t succeeded, total;
};
struct group_end workload_group_end(const struct workload *workload);
/* The uid of the JobSet, Job or Pod as its user sees it. */
obj_id workload_owner_uid(const struct workload *workload);
/* Visits the Workloads in order of creation, each Pod of a group by itself. */
void workload_visit(const struct admit *admit, void (*visit)(void *context, const struct workload *workload),
                    void *context);
/* A condition of a queue, in force since `changed_ns`; for the status of ClusterQueues and LocalQueues. */
struct queue_condition {
    bool active;
    const char *reason; /* "Ready", "Stopped", "FlavorNotFound", ... */
    struct str message;
    int64_t changed_ns;
};
struct queue_counts {
    uint32_t pending, reserving, admitted;
};
/* Returns the status of a stored ClusterQueue or LocalQueue; false: the object is of another kind. */
bool queue_status(const struct admit *admit, const struct object *queue,
                  struct queue_condition *ret_condition, struct queue_counts *ret_counts);
/* Calls `visit` for each flavour and resource of a ClusterQueue or LocalQueue in its order; amounts in the
 * units of struct podset_resource. `total` is the usage of its own workloads, `borrowed` the part of it
 * beyond its own quota. */
struct queue_usage {
    struct str flavor, resource;
    int64_t reserved, admitted, borrowed;
};
void queue_usage_visit(const struct admit *admit, const struct object *queue,
                       void (*visit)(void *context, const struct queue_usage *usage), void *context);
/* Lists the waiting workloads of a stored ClusterQueue or LocalQueue in their order, with their positions
 * among all waiting workloads of the ClusterQueue and of their own LocalQueue, from 0. The list is in
 * `arena`; returns its length. */
struct pending_workload {
    const struct workload *workload;
    uint32_t in_cluster_queue, in_local_queue;
};
size_t queue_pending(const struct admit *admit, const struct object *queue, struct arena *arena,
                     struct pending_workload **ret_list);
/* Whether a controller can answer this AdmissionCheck. Controllers that are part of Kueue itself are
 * absent here. */
bool admission_check_served(const struct object *check);
/* Whether the check's controller has set its condition Active. */
bool admission_check_active(const struct object *check);
/* Returns the weighted dominant resource share of a ClusterQueue or Cohort, in thousandths; INT64_MAX: it
 * borrows with weight 0. */
int64_t queue_weighted_share(const struct admit *admit, const struct object *queue);
/* Appends an amount in the units of struct podset_resource as a Kubernetes quantity: "1500m", "64", "2Gi". */
void amount_format(struct buf *out, struct str resource, int64_t amount);

/* Explains why a pending workload waits, as of now, in numbers: returns a reason of QuotaReserved=False
 * and appends its message; NULL: its condition still holds. Costs a search for machines, so it is for
 * single objects. */
struct core;
const char *workload_explain(const struct core *core, const struct workload *workload, struct buf *out);

/* --- for core.c and write.c ----------------------------------------------------------------------------- */

struct admit *admit_new(void);
void admit_free(struct admit *admit);
void admit_bury(struct admit *admit); /* called before anything else in a step */
/* Applies the queue's rules to a managed document before it is stored: the queues decide its spec.suspend.
 * `jobset` NULL: the object is new, and if it names no queue it gets the LocalQueue "default" of its
 * namespace, if there is one. */
void admit_default(const struct admit *admit, const struct jobset *jobset, struct arena *arena,
                   struct doc *document);
/* Whether the namespace has one. */
bool admit_has_default_queue(const struct admit *admit, struct str namespace_);
/* Checks a new Job's annotations for partial admission, and a new Pod's for its group. */
void admit_validate_new(const struct doc *document, const struct jobset_spec *spec,
                        struct field_errors *errors);
/* Checks that an update changes no field that is fixed while the workload runs. */
void admit_validate_update(const struct admit *admit, const struct jobset *jobset, const struct doc *document,
                           struct field_errors *errors);
/* prebuilt.c: a Workload that a user creates; the document is as a JobSet's (life/life.h, jobset_create), and
 * `active` its spec.active. */
struct workload *workload_create(struct step *step, struct arena *arena, struct doc *document,
                                 const struct jobset_spec *spec, bool active);
/* The document of such a Workload takes the place of the one that it has. */
void workload_rewrite(struct step *step, struct workload *workload, struct arena *arena, struct doc *document,
                      const struct jobset_spec *spec);
/* A user's write to a Workload: spec.active. */
void workload_replace(struct step *step, struct workload *workload, const struct doc *document);
/* The answers of other controllers to its AdmissionChecks, a write of status: checks_validate checks its
 * form, the other function applies it. */
void checks_validate(const struct workload *workload, const struct doc *document,
                     struct field_errors *errors);
void workload_answer(struct step *step, struct workload *workload, const struct doc *document);
/* status.reclaimablePods of such a write: quota that a workload no longer needs. */
bool reclaim_is_said(const struct workload *workload, const struct doc *document);
void reclaim_validate(const struct workload *workload, const struct doc *document,
                      struct field_errors *errors);
void reclaim_say(struct step *step, struct workload *workload, const struct doc *document);
/* Returns a controller's status of its AdmissionCheck as it is stored, in `arena`; NULL after an error. */
struct doc *admission_check_status(struct arena *arena, const struct doc *document,
                                   struct field_errors *errors);
/* Deletes a Workload for a user: it leaves the machines, and a new Workload replaces it while its JobSet
 * lives. */
void workload_delete(struct step *step, struct workload *workload);
/* Whether objects of this kind carry a finalizer, and stay while other objects use them. */
bool admit_keeps(enum object_kind kind);
/* Takes in changes and runs admission cycles; true: JobSets were changed and have to settle again. */
bool admit_act(struct step *step);
int64_t admit_deadline(const struct admit *admit, int64_t now_ns); /* INT64_MAX: none */
void admit_restored(struct step *step);                            /* called after a snapshot was read */
void admit_check(const struct admit *admit);                       /* its invariants; linear */

/* --- for snapshots (core/log/snapshot_admit.c) ---------------------------------------------------------- */

/* A check of this name, at the end of the list, for the caller to fill in. */
struct workload_check *check_add(struct workload *workload, struct str name);
/* Returns 1 + its place among the holding workloads; 0: it does not hold. */
uint32_t workload_hold_place(const struct admit *admit, const struct workload *workload);
/* Adds a Workload of a snapshot with its podsets to the indexes; the caller fills in the saved fields.
 * NULL: its uid is taken, or its JobSet has a Workload already. */
struct workload *workload_restore(struct admit *admit, struct jobset *jobset, struct jobset *own, obj_id uid,
                                  int32_t full, obj_id group_uid, int64_t group_created_ns);
/* `place` is its workload_hold_place, `leader` the uid of the Workload that leads its gang (0: none), which
 * may be restored later. False: the place is taken, or too high. */
bool workload_restore_hold(struct admit *admit, struct workload *workload, uint32_t place, obj_id leader);
/* Makes the gangs that hold, when all Workloads are restored. False: a leader is not one of a gang. */
bool admit_restore_gangs(struct admit *admit);
const char *workload_reason(struct str reason); /* returns the static text; "Pending" for unknown reasons */
/* The last shown status of a queue object, by uid, so that watchers are told of a change once. */
struct queue_shown {
    obj_id uid;
    bool active;
    const char *reason;
    int64_t changed_ns;
    uint64_t hash;
};
const struct queue_shown *queue_shown_all(const struct admit *admit, size_t *ret_count);
bool queue_shown_restore(struct admit *admit, obj_id uid, bool active, int64_t changed_ns);
void admit_restored(struct step *step); /* all was read: derives lists and bookings */

#endif
