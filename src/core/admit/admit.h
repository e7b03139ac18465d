/* admit.h - who may run now: Kueue's queues over the cluster's real machines.
 *
 * A JobSet, Job or Pod that carries the label kueue.x-k8s.io/queue-name is *managed*: it is created suspended
 * (a Pod with a scheduling gate) and has a Workload; it is resumed when its ClusterQueue has quota for all of
 * it AND its tasks find machines, decided in one transaction (job/trial.h), and suspended again (a Pod:
 * deleted) when it is evicted. Everything else is placed without quota, as ever.
 *
 * A user may make the Workload first: it waits, is given quota and machines, and a job that names it by the
 * label kueue.x-k8s.io/prebuilt-workload-name starts with both.
 *
 *   read.c       the queue objects (object/object.h) as a typed tree, rebuilt when one of them changes
 *   workload.c   the Workload of each managed JobSet: what it asks for, its conditions
 *   prebuilt.c   Workloads that users make, and the jobs that take them over
 *   life.c       its way: queued, holding, admitted, evicted, queued again, finished
 *   look.c       what follows when its JobSet or the time has changed
 *   flavor.c     which flavour each resource of each PodSet gets
 *   cycle.c      one admission cycle: heads, order, admission
 *   preempt.c    victims: simulate, greedy, give back
 *   victims.c    who may be a victim, and in which order
 *   fair.c       dominant resource shares
 *   check.c      AdmissionChecks: what others must say first
 *   updates.c    and what they add to its Pods
 *   group.c      Pods that are admitted together
 *   face.c       and the one Workload that the API shows for them
 *   why.c        quota that lacks, in numbers
 *   explain.c    why a workload waits, for who reads it
 *   status.c     the numbers that queue objects show
 *   pending.c    who waits in a queue, in which order
 *   reclaim.c    quota that is given back early
 *   gate.c       who else must let go of a workload
 *   inuse.c      queue objects that are deleted while they are used
 * The quota arithmetic itself is sched/quota.h, pure and without any object.
 *
 * The lives of a Workload:
 *     PENDING    waits in its queue, *parked* when nothing that it lacks has changed since it was tried
 *     HOLDING    has quota and machines: waits for its victims' end, or for its AdmissionChecks
 *     ADMITTED   runs; its quota is booked
 *     LEAVING    evicted: its tasks save what they can and end; its quota is booked until then, unless a
 *                preemptor has it already
 *     FINISHED   its JobSet is over
 *
 * Called by core.c after jobs have settled; acts on JobSets only through job/life.h and job/trial.h. Source
 * of the rules: kueue.x-k8s.io/v1beta2 (kubernetes-sigs/kueue), "concepts" and "preemption".
 */
#ifndef PHX_CORE_ADMIT_ADMIT_H
#define PHX_CORE_ADMIT_ADMIT_H

#include "base/list.h"
#include "core/job/job.h"
#include "core/object/object.h"

struct step;
struct admit; /* one a core; in struct step as `admit` */

enum workload_state {
    WORKLOAD_PENDING,
    WORKLOAD_HOLDING,
    WORKLOAD_ADMITTED,
    WORKLOAD_LEAVING,
    WORKLOAD_FINISHED,
    WORKLOAD_STATES
};
enum workload_condition_kind { /* in the order they are listed */
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
    const char *reason; /* of a fixed set: static */
    struct buf message;
    int64_t changed_ns; /* last transition */
};

/* What one task of a PodSet asks for, and what it was given. */
enum { PODSET_RESOURCES_MAX = 4 }; /* cpu, memory, chips, pods */
struct podset_resource {
    struct str name;   /* "cpu", "google.com/tpu": in the JobSet's document, or static */
    int64_t per_task;  /* milli for cpu, bytes, chips, 1 for pods */
    struct str flavor; /* empty: none (yet, or the queue does not cover it) */
};
struct podset {
    struct str name;  /* of the replicated job; "main" of a Job or Pod; of a pod group its role */
    int32_t count;    /* tasks that the spec asks for */
    int32_t least;    /* partial admission: as few as this will do */
    int32_t admitted; /* tasks that were admitted; 0: none are */
    int32_t done;     /* of them, those whose Jobs have succeeded: their quota is free (reclaimablePods) */
    size_t resource_count;
    struct podset_resource resources[PODSET_RESOURCES_MAX];
};

struct cluster_queue;
struct local_queue;
struct pod_group;

/* How often it was evicted for one reason. */
struct workload_eviction {
    const char *reason; /* of workload_reason's */
    int32_t count;
};

/* An AdmissionCheck's answer (Workload.status.admissionChecks). */
enum workload_check_state { CHECK_PENDING, CHECK_READY, CHECK_RETRY, CHECK_REJECTED, CHECK_STATES };
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
    bool parked;     /* PENDING: nothing has changed for it */
    bool given;      /* LEAVING: a preemptor holds its quota */
    struct workload_condition conditions[WORKLOAD_CONDITIONS];
    struct podset *podsets; /* [jobset->spec.rjob_count] */
    struct str queue_name;  /* LocalQueue, by its label; in the JobSet's document */
    struct str reserved_in; /* ClusterQueue that its quota is of; empty: none */
    int32_t priority;
    struct str priority_class; /* WorkloadPriorityClass, or empty */
    int64_t generation;        /* of what the user may write: spec.active, priority */
    uint64_t changed_seq;
    int64_t created_ns, queued_ns;              /* queued: creation or last eviction */
    uint64_t ticket;                            /* place in the queue among equals: smaller is earlier */
    int64_t reserved_ns, admitted_ns, ready_ns; /* of this admission; 0: not (yet) */
    int64_t unready_ns; /* since when its tasks have not all been ready again; 0: they are */
    int64_t ran_ns;     /* in earlier admissions: for its maximum execution time */
    int64_t leave_ns;   /* LEAVING: its notice runs out; 0: it is suspended */
    int64_t noticed_ns; /* LEAVING: when it was told */
    int64_t requeue_ns; /* PENDING: backs off until then; 0: does not */
    int64_t retry_ns;   /* PENDING: a victim that is protected now may be taken then; 0: none */
    int32_t full;       /* partial admission: the parallelism that its Job asked for; 0: it has it */
    int32_t requeues;   /* evictions for not becoming ready, in a row */
    int32_t preempted;  /* victims it has taken since it was queued */
    VEC(struct workload_eviction) evictions; /* in the order of the first of each */
    VEC(struct workload_check) checks;       /* that its queue asks for, in its order */
    obj_id preemptor;                        /* LEAVING: the Workload it makes room for; 0: none */

    /* private */
    struct cluster_queue *queue; /* by its LocalQueue, now; NULL: there is none */
    struct local_queue *local;
    struct pod_group *group; /* of a Pod with a pod-group-name; NULL: none */
    obj_id group_uid;        /* of the group's Workload, as the API shows it; 0: it stands for itself */
    int64_t group_created_ns;
    char role[9];            /* of a Pod of a group: its PodSet's name there */
    struct workload *leader; /* of the gang that it is in: first of leader->gang; NULL: none */
    VEC(struct workload *) gang;
    struct list_node link;  /* in its queue's parked or booked list */
    struct heap_node place; /* in its queue's heap */
    struct heap_node timer;
    VEC(struct booking) booked; /* quota it uses in the tree */
    struct cluster_queue *booked_in;
    const struct doc *seen, *seen_own; /* the documents of `jobset` and `own` that podsets were made from */
    uint32_t waits_for;                /* HOLDING: victims that have not ended */
    uint8_t counted;                   /* enum queue_count: as what, in its queues' counts */
    struct arena assigned;             /* owns reserved_in and flavour names */
    char *text;                        /* owns name, priority_class */
    uint64_t shape;                    /* workloads of equal shape fail alike */
    bool gone;
};
struct booking {
    uint32_t cell;
    int64_t amount;
};

/* --- for readers ---------------------------------------------------------------------------------------- */

/* Kueue's name: "jobset-<name>-<5 characters>". NULL: none. */
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
/* The API shows one Workload for all Pods of a group. The one of them whose state and conditions stand for
 * the group's; itself, when it is in none. Name and namespace are the same for all. */
const struct workload *workload_face(const struct workload *workload);
/* Of a group watchers are told once in a step, for all of its Pods; true: they were in this one. */
bool workload_was_told(const struct workload *workload, uint64_t seq);
obj_id workload_shown_uid(const struct workload *workload);
int64_t workload_shown_created(const struct workload *workload);
uint64_t workload_version(const struct workload *workload); /* the newest change of all of them */
/* Those of its group, as they came; itself alone, when it is in none. */
size_t workload_members(const struct workload *workload, const struct workload *const **ret_list);
/* Is it one of those that its group is to have? One that has failed is not, when it may be replaced. */
bool workload_counts(const struct workload *member);
/* How a group has ended: all its Pods have succeeded, or none runs and none may be replaced. */
struct group_end {
    bool finished, well;
    int64_t succeeded, total;
};
struct group_end workload_group_end(const struct workload *workload);
/* Of the JobSet, Job or Pod as its user sees it. */
obj_id workload_owner_uid(const struct workload *workload);
/* As they were created; each Pod of a group by itself. */
void workload_visit(const struct admit *admit, void (*visit)(void *context, const struct workload *workload),
                    void *context);
/* In force since `changed_ns`; for the status of ClusterQueues and LocalQueues. */
struct queue_condition {
    bool active;
    const char *reason; /* "Ready", "Stopped", "FlavorNotFound", ... */
    struct str message;
    int64_t changed_ns;
};
struct queue_counts {
    uint32_t pending, reserving, admitted;
};
/* Of a stored ClusterQueue, LocalQueue; false: the object is of another kind. */
bool queue_status(const struct admit *admit, const struct object *queue,
                  struct queue_condition *ret_condition, struct queue_counts *ret_counts);
/* Calls `visit` for each flavour and resource of a ClusterQueue or LocalQueue in its order; amounts in the
 * units of struct podset_resource. `total` is of its own workloads, `borrowed` of it what is not its own. */
struct queue_usage {
    struct str flavor, resource;
    int64_t reserved, admitted, borrowed;
};
void queue_usage_visit(const struct admit *admit, const struct object *queue,
                       void (*visit)(void *context, const struct queue_usage *usage), void *context);
/* Those that wait in a stored ClusterQueue or LocalQueue, as their turn comes, with their places among all
 * that wait in the ClusterQueue and in their own LocalQueue; from 0. The list is in `arena`; returns its
 * length. */
struct pending_workload {
    const struct workload *workload;
    uint32_t in_cluster_queue, in_local_queue;
};
size_t queue_pending(const struct admit *admit, const struct object *queue, struct arena *arena,
                     struct pending_workload **ret_list);
/* May somebody answer for this AdmissionCheck? Controllers that are part of Kueue itself are nobody here. */
bool admission_check_served(const struct object *check);
/* Its controller has said so, by the condition Active. */
bool admission_check_active(const struct object *check);
/* Dominant resource share in thousandths of a ClusterQueue or Cohort, weighted; INT64_MAX: borrows with
 * weight 0. */
int64_t queue_weighted_share(const struct admit *admit, const struct object *queue);
/* An amount in those units as a Kubernetes quantity: "1500m", "64", "2Gi". */
void amount_format(struct buf *out, struct str resource, int64_t amount);

/* Why a pending workload waits, as of now, in numbers: a reason of QuotaReserved=False and its message; NULL:
 * what its condition says still holds. Costs a search for machines: for single objects. */
struct core;
const char *workload_explain(const struct core *core, const struct workload *workload, struct buf *out);

/* --- for core.c and write.c ----------------------------------------------------------------------------- */

struct admit *admit_new(void);
void admit_free(struct admit *admit);
void admit_bury(struct admit *admit); /* before anything else in a step */
/* Before a managed document is stored: its spec.suspend is the queues' to decide. `jobset` NULL: it is new,
 * and where it names no queue it is given the LocalQueue "default" of its namespace, if there is one. */
void admit_default(const struct admit *admit, const struct jobset *jobset, struct arena *arena,
                   struct doc *document);
/* A new Job's annotations for partial admission, a new Pod's for its group. */
void admit_validate_new(const struct doc *document, const struct jobset_spec *spec,
                        struct field_errors *errors);
/* What may not change while it runs. */
void admit_validate_update(const struct admit *admit, const struct jobset *jobset, const struct doc *document,
                           struct field_errors *errors);
/* prebuilt.c: a Workload that a user creates; the document is as a JobSet's (job/life.h, jobset_create), and
 * `active` its spec.active. */
struct workload *workload_create(struct step *step, struct arena *arena, struct doc *document,
                                 const struct jobset_spec *spec, bool active);
/* The document of such a Workload takes the place of the one that it has. */
void workload_rewrite(struct step *step, struct workload *workload, struct arena *arena, struct doc *document,
                      const struct jobset_spec *spec);
/* A user's write to a Workload: spec.active. */
void workload_replace(struct step *step, struct workload *workload, const struct doc *document);
/* What others say of its AdmissionChecks: a write of status. Its form (checks_validate), and what follows. */
void checks_validate(const struct workload *workload, const struct doc *document,
                     struct field_errors *errors);
void workload_answer(struct step *step, struct workload *workload, const struct doc *document);
/* status.reclaimablePods of such a write: quota that a workload does not need any more. */
bool reclaim_is_said(const struct workload *workload, const struct doc *document);
void reclaim_validate(const struct workload *workload, const struct doc *document,
                      struct field_errors *errors);
void reclaim_say(struct step *step, struct workload *workload, const struct doc *document);
/* What a controller says of its AdmissionCheck: the status to keep, in `arena`; NULL after an error. */
struct doc *admission_check_status(struct arena *arena, const struct doc *document,
                                   struct field_errors *errors);
/* A user's deletion: it leaves the machines, and a new Workload takes its place while its JobSet lives. */
void workload_delete(struct step *step, struct workload *workload);
/* Objects of this kind carry a finalizer while they live, and stay while others use them. */
bool admit_keeps(enum object_kind kind);
/* Takes in what has changed and runs cycles; true: JobSets were changed, which are to settle again. */
bool admit_act(struct step *step);
int64_t admit_deadline(const struct admit *admit, int64_t now_ns); /* INT64_MAX: none */
void admit_restored(struct step *step);      /* after a snapshot was read: derives lists and bookings */
void admit_check(const struct admit *admit); /* its invariants; linear */

/* --- for snapshots (core/snapshot_admit.c) -------------------------------------------------------------- */

/* A check of this name, at the end of the list, for the caller to fill in. */
struct workload_check *check_add(struct workload *workload, struct str name);
/* 1 + its place among those that hold; 0: it does not. */
uint32_t workload_hold_place(const struct admit *admit, const struct workload *workload);
/* Into the indexes, with its podsets; the caller fills in what was written. NULL: its uid or its JobSet has
 * one already. */
struct workload *workload_restore(struct admit *admit, struct jobset *jobset, struct jobset *own, obj_id uid,
                                  int32_t full, obj_id group_uid, int64_t group_created_ns);
bool workload_restore_hold(struct admit *admit, struct workload *workload, uint32_t place);
const char *workload_reason(struct str reason); /* the static text; "Pending" for unknown ones */
/* What a queue object showed last, so that its watchers are told once; by uid. */
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
