/* internal.h - functions and state shared by the files of the admission module, which admit.h lists. */
#ifndef PHX_CORE_ADMIT_INTERNAL_H
#define PHX_CORE_ADMIT_INTERNAL_H

#include "core/admit/admit.h"
#include "core/recover/recover.h"
#include "core/gang/trial.h"
#include "core/sched/quota.h"
#include "core/step.h"

#define POD_FINALIZER  "kueue.x-k8s.io/managed" /* on Pods of a group */
#define REASON_DELETED "WorkloadDeleted"        /* reason of an eviction */
#define POD_GATE       "kueue.x-k8s.io/admission"
enum { PODSETS_MAX = 18 }; /* limit of one Workload, from its CRD */

/* --- the tree ------------------------------------------------------------------------------------------- */

struct flavor {
    struct str name;
    struct labels labels;
    struct taint *taints;
    size_t taint_count;
    struct toleration *tolerations;
    size_t toleration_count;
    struct str topology; /* name; empty: none */
    bool topology_found;
    struct str *levels;
    size_t level_count;
};
struct group_flavor {
    struct str name;
    const struct flavor *flavor; /* NULL: the object does not exist */
    uint32_t *cells;             /* [group->resource_count] */
};
struct resource_group {
    struct str *resources;
    size_t resource_count;
    struct group_flavor *flavors;
    size_t flavor_count;
};
enum preempt_policy { PREEMPT_NEVER, PREEMPT_LOWER, PREEMPT_LOWER_OR_NEWER, PREEMPT_ANY };
enum stop_policy { STOP_NONE, STOP_HOLD, STOP_DRAIN };

/* An AdmissionCheck of a queue. */
struct queue_check {
    struct str name, *flavors; /* it applies to Workloads that use one of these flavours; none: to all */
    size_t flavor_count;
    bool found, active; /* the object exists, and its controller is active */
};

struct cluster_queue {
    const struct object *object;
    struct str name, cohort;
    uint32_t node;
    struct resource_group *groups;
    size_t group_count;
    struct queue_check *checks;
    size_t check_count;
    bool strict; /* StrictFIFO */
    bool try_next_to_borrow, try_next_to_preempt, preempt_before_borrow;
    enum preempt_policy within, reclaim, borrow;
    bool has_threshold;
    int32_t threshold; /* borrowWithinCohort.maxPriorityThreshold */
    enum stop_policy stop;
    const struct doc *selector; /* namespaceSelector; NULL: matches no namespace */
    bool active;
    const char *reason;
    struct str message;

    struct heap pending;             /* workload.place */
    struct list_node parked, booked; /* workload.link */
    struct queue_counts counts;
    uint32_t told;  /* number of workloads whose condition this step copied from one of equal shape */
    bool head_left; /* StrictFIFO: a waiting workload left, so its kept quota is free: wake the cohort */
};
struct local_queue {
    const struct object *object;
    struct str queue_name;
    struct cluster_queue *queue; /* NULL: the ClusterQueue does not exist */
    enum stop_policy stop;
    bool active;
    const char *reason;
    struct str message;
    struct queue_counts counts;
};
struct tree {
    struct arena arena;
    struct flavor *flavors;
    size_t flavor_count;
    struct cluster_queue *queues;
    size_t queue_count;
    struct local_queue *locals;
    size_t local_count;
    struct str_map flavor_names, queue_names, cohort_names, cell_names;
    struct str *cell_flavors, *cell_resources; /* [quota.cell_count] */
    struct quota_tree quota;                   /* nodes: cohorts, then ClusterQueues */
    size_t cohort_count;
    int64_t *weights_milli; /* [node_count] fair sharing */
    size_t ending_count;    /* deleted objects that may still be in use */
    uint64_t versions;      /* tree_versions when the tree was read; 0: it was never read */
};
/* Frees and zeroes the tree. All workloads are unbound. */
void tree_done(struct tree *tree);
/* Reads the queue objects into a zeroed tree. Its lists are empty, and no quota is booked. */
void tree_read(struct tree *tree, const struct object_store *objects);
/* Returns the sum of the versions of all kinds that the tree is read from, plus 1. */
uint64_t tree_versions(const struct object_store *objects);
struct cluster_queue *tree_queue(const struct tree *tree, struct str name); /* NULL: none */
struct local_queue *tree_local(const struct tree *tree, struct str namespace_, struct str name); /* or NULL */
/* Finds the flavour in the queue's resource group that covers the resource; *ret_resource is the index of the
 * resource in that group. Returns NULL if there is none. */
const struct group_flavor *group_flavor(const struct cluster_queue *queue, struct str resource,
                                        struct str flavor, size_t *ret_resource);

/* The Pods of one kueue.x-k8s.io/pod-group-name. */
enum { QUEUE_COUNTS = 4 }; /* enum queue_count, life.c */
struct pod_group {
    struct buf key; /* "namespace/name" */
    VEC(struct workload *) members;
    obj_id uid; /* uid of the Workload that the API shows */
    int64_t created_ns;
    uint64_t told_seq; /* step in which watchers were last notified of a change */
    /* Set while group_form binds the members one by one. `reason` and `why` then say why members without a
     * gang wait: it is the same for all. */
    bool forming;
    const char *reason;
    struct buf why;
    /* Queues count the group once in each kind, however many of its Pods are of that kind. */
    struct {
        uint32_t members;
        struct cluster_queue *queue;
        struct local_queue *local;
    } counted[QUEUE_COUNTS];
};

/* --- the module's state --------------------------------------------------------------------------------- */

struct admit {
    VEC(struct workload *) workloads; /* in order of creation */
    VEC(struct workload *) dead;      /* freed when the next step begins */
    struct str_map by_name;
    struct u64_map by_uid, by_jobset; /* keys: the Workload's uid; the uid of its JobSet, and of `own` */
    struct str_map groups;            /* -> struct pod_group */
    struct heap timers;
    VEC(struct workload *) holding; /* HOLDING workloads in order of arrival */
    struct tree tree;
    bool restored;                 /* just restored from a snapshot: the next rebuild wakes no workloads */
    VEC(struct queue_shown) shown; /* by uid */
    uint64_t shape;                /* job_store's `shape` when workloads were last woken */
    bool fair;                     /* fair sharing is enabled */
    /* State of the present step. */
    uint64_t seq;
    struct u64_map failed; /* shape whose trial failed -> the workload that was tried */
    uint32_t trials;       /* trials left in this step */
    bool acted;            /* a JobSet was changed */
    bool untold;           /* the queues' status must be compared once more, even if no Workload is left */
};

static inline const struct queue_settings *settings(const struct step *step)
{
    return &step->cluster->policy.queues;
}

/* --- workload.c ----------------------------------------------------------------------------------------- */
/* Whether the queues manage the JobSet, so that it has a Workload. */
bool jobset_managed(const struct jobset *jobset);
struct workload *workload_new(struct step *step, struct jobset *jobset);
void workload_free(struct workload *workload);
void admit_add(struct admit *admit, struct workload *workload); /* adds it to the indexes and names it */
/* Removes a Workload that is not HOLDING from all lists and indexes. It is freed when the next step
 * begins. */
void workload_remove(struct step *step, struct workload *workload);
/* Removes a Workload and has a new one made for its JobSet. A user-made Workload instead lets go of its
 * job. */
void workload_remake(struct step *step, struct workload *workload);
/* Reads podsets, queue and priority from the present document; keeps the assigned flavours and counts. */
void workload_refresh(struct step *step, struct workload *workload);
/* Whether an Indexed Job has kueue.x-k8s.io/job-completions-equal-parallelism. */
bool completions_follow(const struct jobset *jobset);
/* Makes the podsets of a JobSet, which the caller frees with mem_free. `own` is the Workload that its user
 * wrote, or NULL. `full` is the parallelism before admission lowered it; 0: not lowered. */
struct podset *podsets_make(const struct jobset *jobset, const struct jobset *own, int32_t full);
/* Returns the uid of the JobSet, Job or Pod as its user sees it. */
obj_id jobset_shown_uid(const struct jobset *jobset);
/* Sets a condition; `reason` is one of workload_reason's. Returns true if its status changed or it is new. */
bool workload_condition_set(struct step *step, struct workload *workload, enum workload_condition_kind kind,
                            bool status, const char *reason, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/* Whether the condition is true. */
static inline bool workload_holds(const struct workload *workload, enum workload_condition_kind kind)
{
    CHECK((unsigned)kind < WORKLOAD_CONDITIONS);
    return workload->conditions[kind].present && workload->conditions[kind].status;
}
static inline struct object_ref ref_workload(const struct workload *workload)
{
    return (struct object_ref){OBJECT_WORKLOAD, {.workload = workload}};
}

/* --- group_view.c --------------------------------------------------------------------------------------- */
/* Marks the Workload and the other members of its group as changed at this log position, and notifies
 * watchers. Modifications of a group are notified once a step, because the API shows one Workload for it. */
void workload_changed(struct step *step, enum change_type type, struct workload *workload);
/* Returns the number of Pods that the group is to have; 0 if it is missing or malformed, or if the Pods
 * disagree on it or on their queue. */
int64_t group_total(const struct pod_group *group);
/* Whether a Pod of the group has this value of the annotation. */
bool group_says(const struct pod_group *group, struct str note, const char *value);
bool group_retries(const struct pod_group *group); /* a failed Pod may be replaced */

/* --- prebuilt.c ----------------------------------------------------------------------------------------- */
/* Lets a job take over the Workload that it names, and suspends the job. Returns NULL if the job may not take
 * it: then the job waits. A Workload that asks for something else than the job is finished as OutOfSync. */
struct workload *prebuilt_take(struct step *step, struct jobset *jobset, struct str name);
/* Reacts to a change of a user-made Workload's document, and to the deletion of its job. */
void prebuilt_look(struct step *step, struct workload *workload);
/* Separates a PENDING or FINISHED Workload from its job, and drops the finalizer that kept it: a deleted
 * Workload is then removed. */
void prebuilt_release(struct step *step, struct workload *workload);

/* --- life.c --------------------------------------------------------------------------------------------- */
struct assignment;
/* Moves the workload to the lists and counts of its queue that fit its state. Sets QuotaReserved=False with
 * the obstacle if its queue cannot take it. */
void workload_bind(struct step *step, struct workload *workload);
void workload_unbind(struct workload *workload);
/* Whether the workload waits for something that its queue cannot give, so that it does not count as
 * pending. */
bool workload_is_stopped(const struct workload *workload);
void workload_book(struct admit *admit, struct workload *workload); /* books quota by its podsets' flavours */
void workload_unbook(struct admit *admit, struct workload *workload);
/* Returns the amount of a cell that the workload's assignment uses in the queue in which it is booked. */
int64_t workload_uses(const struct workload *workload, uint32_t cell);
/* Admits a PENDING workload with an assignment, or a HOLDING one (`assignment` NULL), and starts its job. */
void workload_admit(struct step *step, struct workload *workload, const struct assignment *assignment);
/* Resumes the job of an ADMITTED workload. `reserved_before`: its machines were reserved in an earlier
 * step. */
void workload_start(struct step *step, struct workload *workload, bool reserved_before);
/* Moves a PENDING workload and its gang to HOLDING and books their quota. */
void workload_hold(struct step *step, struct workload *workload, const struct assignment *assignment);
/* Reports the quota in the conditions of a workload that is ADMITTED, or HOLDING and waiting only for
 * checks. */
void workload_show_quota(struct step *step, struct workload *workload);
/* Returns a HOLDING workload and its gang to their old places in the queue. */
void workload_drop_hold(struct step *step, struct workload *workload);
/* Evicts an ADMITTED or HOLDING workload, and all members of its group. A workload without running tasks is
 * queued again at once; others are LEAVING first. */
void workload_evict(struct step *step, struct workload *workload, const char *reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Ends the notice of a LEAVING workload: suspends its job, or deletes its Pod. */
void workload_suspend(struct step *step, struct workload *workload);
/* Queues a LEAVING workload again, once its last task has ended. */
void workload_left(struct step *step, struct workload *workload);
/* Finishes the Workload of a JobSet that has finished. */
void workload_finish(struct step *step, struct workload *workload);
/* Finishes, as failed, the Workload of a deleted Pod of a group whose processes have ended. */
void workload_pod_deleted(struct step *step, struct workload *workload);
/* Finishes a Workload that will never have a job, and frees its quota and machines. */
void workload_abandon(struct step *step, struct workload *workload, const char *reason, struct str why);
/* Frees the quota and machines of a Workload whose job is gone, and makes it PENDING. */
void workload_lose_job(struct step *step, struct workload *workload);
/* Finishes a HOLDING workload and its gang, which can never start. Their jobs stay suspended. */
void workload_cannot_start(struct step *step, struct workload *workload, struct str why);
void workload_release(struct step *step, struct workload *workload); /* frees quota, wakes its cohort */
void workload_set_timer(struct step *step, struct workload *workload); /* sets it to workload_due */

/* --- check.c -------------------------------------------------------------------------------------------- */
/* Updates the workload's checks to those that its queue and its flavours require; new ones are Pending. */
void checks_sync(struct step *step, struct workload *workload);
bool checks_wait(const struct workload *workload); /* whether a check is not Ready */
/* Evicts the workload and returns true if an answer is Retry or Rejected. */
bool checks_refuse(struct step *step, struct workload *workload);
/* Returns the longest delay that Retry answers ask for; 0: none. */
int64_t checks_backoff_ns(const struct workload *workload);
void checks_reset(struct step *step, struct workload *workload); /* to Pending */
void checks_done(struct workload *workload);

/* --- updates.c ------------------------------------------------------------------------------------------ */
/* Checks the form of one answer's podSetUpdates (NULL: none); `path` is the path of the answer. */
void updates_validate(const struct workload *workload, const struct doc *updates, struct str path,
                      struct field_errors *errors);
/* Adds the answers' podSetUpdates to the terms of a PodSet. Their strings point into the answers. */
void updates_add_terms(const struct workload *workload, size_t podset, struct rjob_terms *terms,
                       struct arena *arena);
/* Whether an answer contradicts a flavour, the Pods' template or another answer; appends the conflict to
 * `why`. */
bool updates_conflict(const struct admit *admit, const struct workload *workload, struct buf *why);

/* --- group.c -------------------------------------------------------------------------------------------- */
void group_join(struct admit *admit, struct workload *workload); /* the group of its Pod's label, if any */
/* Removes the workload from its group. Returns the group if members remain; otherwise frees it and returns
 * NULL. */
struct pod_group *group_leave(struct admit *admit, struct workload *workload);
/* Chooses the gang: the members that wait together. */
void group_choose(struct pod_group *group);
/* Whether the saved gang of `leader` may have the workload as a member: both are HOLDING in one group, and
 * the leader is the older one. */
bool group_may_lead(const struct workload *leader, const struct workload *member);
/* Adds the workload to the saved gang of `leader`, which is a member itself. */
void group_restore_gang(struct workload *leader, struct workload *member);
/* Chooses the gang, puts it into its queue, and deletes Pods beyond the group's count. Does nothing if
 * `group` is NULL. */
void group_form(struct step *step, struct pod_group *group);
void group_disband(struct workload *workload);      /* dissolves its gang */
void group_wake(struct workload *workload);         /* has its gang's leader tried again */
bool group_may_join(const struct workload *member); /* whether the member waits to be admitted */
/* Names the member's PodSet after a hash of its requests: Pods of equal shape have one role. */
void group_name_role(struct workload *member);
/* Returns the reason why a Pod of a group waits for other members, and appends the details to `why`. Returns
 * NULL if it does not. */
const char *group_obstacle(const struct workload *workload, struct buf *why);
bool pod_is_over(const struct workload *workload); /* whether its processes have ended */
/* Removes the finalizers of the group's Pods that need not be held any more. Does nothing if `group` is
 * NULL. */
void group_release(struct step *step, struct pod_group *group);
/* Removes the finalizer of one Pod, whatever the state of its group. */
void group_let_go(struct step *step, const struct workload *workload);
/* Lists, in `arena`, the members of the workload's group for which `is_one` holds; the workload itself if it
 * is in no group. Returns their number. */
size_t group_fellows(const struct workload *workload, bool (*is_one)(const struct workload *),
                     struct arena *arena, struct workload ***ret_list);
/* Adds the Pods of its gang to the trial, so that they are tried together. */
void gang_trial(const struct workload *workload, struct trial *trial, struct arena *arena);
/* Starts a gang that is HOLDING. Returns false, and changes nothing, if its machines are no longer free. */
bool gang_start(struct step *step, struct workload *leader);

/* Returns the number of PodSets that are assigned together: the workload's own, or one of each member of its
 * gang. The functions below find the n-th of them, and the workload that it belongs to. */
static inline size_t podset_count(const struct workload *workload)
{
    return workload->gang.len ? workload->gang.len : workload->jobset->spec.rjob_count;
}
static inline struct workload *podset_owner(const struct workload *workload, size_t podset)
{
    CHECK(podset == 0 || podset < podset_count(workload)); /* 0: the workload, even without PodSets */
    return workload->gang.len ? workload->gang.items[podset] : (struct workload *)workload;
}
static inline struct podset *podset_at(const struct workload *workload, size_t podset)
{
    CHECK(podset < podset_count(workload));
    return workload->gang.len ? &workload->gang.items[podset]->podsets[0] : &workload->podsets[podset];
}
static inline const struct rjob_spec *podset_rjob(const struct workload *workload, size_t podset)
{
    CHECK(podset < podset_count(workload));
    const struct jobset *jobset = podset_owner(workload, podset)->jobset;
    return &jobset->spec.rjobs[workload->gang.len ? 0 : podset];
}
/* Whether the workload is in a gang that another workload leads. */
static inline bool is_follower(const struct workload *workload)
{
    CHECK(!workload->leader || workload->leader->gang.len > 0);
    return workload->leader && workload->leader != workload;
}

/* --- look.c, waking in life.c --------------------------------------------------------------------------- */
/* Reacts to a change of the Workload's JobSet, and to time-outs. May remove the Workload. */
void workload_look(struct step *step, struct workload *workload);
/* Has workload_look called for the JobSet's Workload before the step ends. A managed JobSet without a
 * Workload gets one then. */
void workload_look_again(struct step *step, struct jobset *jobset);
/* Returns the stamp of the workload's next time-out; INT64_MAX: none. */
int64_t workload_due(const struct step *step, const struct workload *workload);
/* Moves a queued workload to its queue's parked list. The wake_ functions return parked workloads to the
 * queue: those of one queue, of all queues that share quota with it, of all queues. */
void workload_park(struct step *step, struct workload *workload);
void wake_queue(struct admit *admit, struct cluster_queue *queue);
void wake_cohort(struct admit *admit, const struct cluster_queue *queue);
void wake_all(struct admit *admit);

/* --- flavor.c ------------------------------------------------------------------------------------------- */
/* How well a request fits, from worst to best. FIT_NO_VICTIMS: preemption could make it fit, but no victim is
 * eligible now. */
enum fit { FIT_NONE, FIT_NO_VICTIMS, FIT_PREEMPT, FIT_RECLAIM, FIT_NOW };
struct assignment {
    struct arena arena;
    enum fit fit;
    uint32_t borrow;                          /* height of the cohort that it borrows from; 0: none */
    int32_t *counts;                          /* [podset_count] tasks */
    int32_t (*flavors)[PODSET_RESOURCES_MAX]; /* [podset_count] index in its group; -1: not covered */
    VEC(struct booking) usage;                /* by cell, each once */
    int32_t last_flavor;                      /* highest chosen index */
    int32_t most_flavors;                     /* number of flavours in the largest group that it uses */
    const char *reason;                       /* not FIT_NOW: the reason of QuotaReserved=False */
    struct buf why;
};
/* Chooses a flavour for each resource, trying those from index `from` on. `counts` has the number of tasks
 * where a workload with one PodSet is tried with fewer; NULL: all tasks. *ret is always filled in; the caller
 * frees it with assignment_done. */
void assignment_make(const struct admit *admit, const struct cluster *cluster, int64_t now_ns,
                     const struct workload *workload, const int32_t *counts, int32_t from,
                     struct assignment *ret);
void assignment_done(struct assignment *assignment);
bool may_be_taken(const struct workload *victim); /* victims.c: whether it runs, or waits only for checks */
bool tolerated(const struct toleration *tolerations, size_t count, const struct taint *taint);

/* --- terms.c -------------------------------------------------------------------------------------------- */
/* Returns the flavour that is assigned to a resource of a PodSet; NULL: none. */
const struct group_flavor *assigned_flavor(const struct workload *workload,
                                           const struct assignment *assignment, size_t podset,
                                           size_t resource);
/* The following return terms for each PodSet ([podset_count]) in `arena`: those of an assignment's flavours,
 * of the flavours that the workload has quota of, and the latter with spares, Pod labels and the additions of
 * AdmissionChecks. The last two return NULL if the workload has no quota. */
struct rjob_terms *assignment_terms(const struct workload *workload, const struct assignment *assignment,
                                    struct arena *arena);
struct rjob_terms *flavor_terms(const struct admit *admit, const struct workload *workload,
                                struct arena *arena);
struct rjob_terms *workload_terms(const struct admit *admit, const struct workload *workload,
                                  struct arena *arena);

/* --- cycle.c -------------------------------------------------------------------------------------------- */
/* Runs admission cycles until no workload can be tried, or the step's trials are spent. */
void cycle_run(struct step *step);
enum { TRIALS_PER_STEP = 64 };
_Static_assert(TRIALS_PER_STEP > 0, "a cycle makes progress");
/* Whether this step ran out of trials before all heads were tried. */
bool cycle_unfinished(const struct admit *admit);
/* flavor.c: whether the workload's queue asks for AdmissionChecks under this assignment. */
bool assignment_is_checked(const struct workload *workload, const struct assignment *assignment);
/* Searches machines for the whole workload under these terms. If some are found, returns true and adds the
 * share that the workload takes of each to `rooms` ([machine_count]; NULL: not wanted). Otherwise appends the
 * reason to `why`. */
bool cycle_trial(struct step *step, const struct workload *workload, const struct trial *trial,
                 struct room *rooms, struct buf *why);

/* --- victims.c, preempt.c, fair.c ----------------------------------------------------------------------- */
/* The relation of a candidate to the preemptor. */
enum victim_tie {
    /* The contested quota is nearer to the preemptor: its queue's own, or of a cohort above it that covers
     * the whole request. */
    VICTIM_BELOW_OURS,
    VICTIM_WHILE_BORROWING,     /* may be preempted even if the preemptor's queue then borrows */
    VICTIM_NOT_WHILE_BORROWING, /* may be preempted only if the preemptor's queue does not borrow */
    VICTIM_OWN_QUEUE,
};
struct victim {
    struct workload *workload;
    const char *reason; /* "InClusterQueue", ...; static */
    enum victim_tie tie;
    uint32_t common; /* lowest cohort above both queues; QUOTA_NONE: both have the same queue */
};
typedef VEC(struct victim) victims;
/* A search for victims for one workload. It simulates the end of candidates: they are taken out of the tree's
 * usage and off the machines, and put back when the search ends. */
struct search {
    const struct admit *admit;
    const struct cluster *cluster;
    int64_t now_ns;
    struct step *step;        /* for the machines; NULL: only quota is searched */
    struct quota_tree *quota; /* the tree that candidates are taken out of */
    const struct workload *workload;
    const struct assignment *assignment;
    struct rjob_terms *terms;
    bool *wanted;               /* [cell_count] cells that lack quota; all used ones if only machines lack */
    int64_t protected_until_ns; /* earliest end of a protection that excluded a candidate; 0: none */
    uint64_t *may_free;         /* [machine_count] chips of the candidates taken out */
    int64_t *may_free_cpu_milli, *may_free_memory_bytes;
    struct arena arena;
};
/* Finds all candidates, the best victim first. */
void victims_find(struct search *search, victims *ret_victims);
int victims_compare(const void *a, const void *b); /* compares two struct victim, the better one first */
/* Whether the node uses more than its own quota of a wanted cell. */
bool node_borrows_wanted(const struct search *search, uint32_t node);
/* Whether the candidate's queue, and every cohort between it and the common cohort, still exceeds its
 * quota of a wanted cell. */
bool victim_still_borrows(const struct search *search, const struct victim *victim);
/* Take the victim, with its group, out of the simulated state, and put it back. */
void search_take(struct search *search, const struct workload *victim);
void search_give(struct search *search, const struct workload *victim);
/* Whether the workload fits in the simulated state: in its quota, in the number of free chips, on machines.
 * The last searches machines, which is expensive, and fills in `rooms` as cycle_trial does. Without a step,
 * only quota counts. */
bool search_fits_quota(const struct search *search, bool may_borrow);
bool search_has_chips(const struct search *search);
bool search_fits_machines(struct search *search, struct room *rooms);
/* Removes the victims that are not needed from `row`, which suffices, and puts them back. */
void search_give_back(struct search *search, victims *row, bool may_borrow);
/* Evicts victims for a PENDING workload and holds their quota and machines for it. Returns false if no
 * victims help, or if the workload would exceed its limit of victims. */
bool preempt(struct step *step, struct workload *workload, const struct assignment *assignment);
/* The effect of preemption for one cell alone, regardless of machines. */
struct preemption_outlook {
    bool possible;
    bool own;        /* a victim would be of the workload's own queue */
    uint32_t borrow; /* height of the cohort that the workload would then borrow from */
};
struct preemption_outlook preemption_outlook(const struct admit *admit, const struct cluster *cluster,
                                             int64_t now_ns, const struct workload *workload,
                                             struct booking wanted);
/* Chooses victims by fair sharing and leaves them taken out. Returns false, with all put back, if none
 * help. */
bool fair_victims(struct search *search, const victims *candidates, victims *ret_chosen);

#define FAIR_SHARE_UNIT INT64_C(1000000000) /* of a thousandth */
/* The dominant resource share of a node at the present state of `quota`. */
struct fair_share {
    bool borrows;    /* uses more than its own quota of some cell */
    bool endless;    /* borrows with weight 0 */
    __int128 amount; /* weighted; if endless, unweighted */
};
struct fair_share fair_share(const struct tree *tree, const struct quota_tree *quota, uint32_t node);
int fair_share_compare(struct fair_share a, struct fair_share b); /* < 0: a is smaller */

/* --- why.c ---------------------------------------------------------------------------------------------- */
/* Appends how much of a cell the request needs, and how much is free and may be borrowed. */
void why_quota(const struct admit *admit, const struct cluster_queue *queue, uint32_t cell, int64_t needs,
               struct buf *out);

/* --- reclaim.c ------------------------------------------------------------------------------------------ */
/* Gives back the quota of the succeeded Jobs of an ADMITTED workload. */
void workload_reclaim(struct step *step, struct workload *workload);

/* --- gate.c --------------------------------------------------------------------------------------------- */
struct str admission_gates(const struct jobset *jobset); /* the annotation's value; empty: none */
/* Checks a change of the annotation from `was` to `is`; `is_new`: the object is being created. */
void gates_validate(struct str was, struct str is, bool is_new, struct field_errors *errors);

/* --- labels.c ------------------------------------------------------------------------------------------- */
/* Checks the labels of a new job. */
void labels_validate_new(const struct jobset_spec *spec, struct field_errors *errors);
/* Checks a change of the job's labels to `labels`. `runs`: its workload is admitted, or it is not
 * suspended. */
void labels_validate_update(const struct jobset *jobset, const struct doc *labels, bool runs,
                            struct field_errors *errors);

/* --- inuse.c -------------------------------------------------------------------------------------------- */
size_t tree_count_ending(const struct object_store *objects); /* deleted objects that may still be in use */
/* Removes deleted objects that are no longer in use. Returns true if it removed some. */
bool inuse_release(struct step *step);

/* --- status.c ------------------------------------------------------------------------------------------- */
/* Notifies watchers of queue objects whose status has changed since the last call. */
void status_publish(struct step *step);
/* Takes the present status, with the restored times, as published. */
void status_restore(struct admit *admit);

#endif
