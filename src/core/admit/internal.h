/* internal.h - functions and state shared by the files of the admission module. admit.h lists the files. */
#ifndef PHX_CORE_ADMIT_INTERNAL_H
#define PHX_CORE_ADMIT_INTERNAL_H

#include "core/admit/admit.h"
#include "core/recover/recover.h"
#include "core/gang/trial.h"
#include "core/sched/quota.h"
#include "core/step.h"

#define POD_FINALIZER  "kueue.x-k8s.io/managed" /* of Pods of a group */
#define REASON_DELETED "WorkloadDeleted" /* of an eviction */
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
    struct str name, *flavors; /* for Workloads that use one of these flavours; none: for all */
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
    const struct doc *selector; /* namespaceSelector; NULL: nobody */
    bool active;
    const char *reason;
    struct str message;

    struct heap pending;             /* workload.place */
    struct list_node parked, booked; /* workload.link */
    struct queue_counts counts;
    uint32_t told;  /* number told in this step that they fail as another workload did */
    bool head_left; /* StrictFIFO: a waiting workload left and its kept quota is free: wake the cohort */
};
struct local_queue {
    const struct object *object;
    struct str queue_name;
    struct cluster_queue *queue; /* NULL: there is none */
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
    uint64_t versions;      /* sum of the kinds' versions when it was read, plus 1; 0: never */
};
void tree_done(struct tree *tree);
/* Reads the objects anew. Lists are empty and nothing is booked. */
void tree_read(struct tree *tree, const struct object_store *objects);
uint64_t tree_versions(const struct object_store *objects);
struct cluster_queue *tree_queue(const struct tree *tree, struct str name); /* NULL: none */
struct local_queue *tree_local(const struct tree *tree, struct str namespace_, struct str name);
const struct group_flavor *group_flavor(const struct cluster_queue *queue, struct str resource,
                                        struct str flavor, size_t *ret_resource);

/* The Pods of one kueue.x-k8s.io/pod-group-name. */
enum { QUEUE_COUNTS = 4 }; /* enum queue_count, life.c */
struct pod_group {
    struct buf key; /* "namespace/name" */
    VEC(struct workload *) members;
    obj_id uid; /* uid of the Workload that the API shows */
    int64_t created_ns;
    uint64_t told_seq; /* step in which watchers were last told of a change */
    /* Set while the members are bound one after the other: the reason why those without a gang wait is the
     * same for all. */
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
    struct u64_map by_uid, by_jobset; /* Workload's uid; JobSet's uid */
    struct str_map groups;            /* -> struct pod_group */
    struct heap timers;
    VEC(struct workload *) holding; /* HOLDING workloads in order of arrival */
    struct tree tree;
    bool restored;                 /* restored from a snapshot: the tree is bound without waking workloads */
    VEC(struct queue_shown) shown; /* by uid */
    uint64_t shape;                /* shape of job_store when workloads were woken last */
    bool fair;                     /* fair sharing is enabled */
    /* State of the present step. */
    uint64_t seq;
    struct u64_map failed; /* shapes whose trial failed -> the workload that was tried */
    uint32_t trials;       /* trials left in this step */
    bool acted;            /* a JobSet was changed */
    bool untold;           /* the queues' status has to be compared once more, even if no Workload is left */
};

static inline const struct queue_settings *settings(const struct step *step)
{
    return &step->cluster->policy.queues;
}

/* --- workload.c ----------------------------------------------------------------------------------------- */
bool jobset_managed(const struct jobset *jobset);
struct workload *workload_new(struct step *step, struct jobset *jobset);
void workload_free(struct workload *workload);
void admit_add(struct admit *admit, struct workload *workload); /* adds it to the indexes and names it */
void workload_remove(struct step *step, struct workload *workload);
void workload_remake(struct step *step,
                     struct workload *workload); /* the same, and a new Workload is made for its JobSet */
/* Takes its podsets, queue and priority from the present JobSet. */
void workload_refresh(struct step *step, struct workload *workload);
/* Whether a Job has kueue.x-k8s.io/job-completions-equal-parallelism. */
bool completions_follow(const struct jobset *jobset);
/* `own`: the Workload that its user wrote, or NULL. `full`: the parallelism where admission lowered it; 0: as
 * it stands. */
struct podset *podsets_make(const struct jobset *jobset, const struct jobset *own, int32_t full);
/* The uid of the JobSet, Job or Pod as its user sees it. */
obj_id jobset_shown_uid(const struct jobset *jobset);
bool workload_condition_set(struct step *step, struct workload *workload, enum workload_condition_kind kind,
                            bool status, const char *reason, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
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
/* Marks the Workload as changed at this log position, together with the other members of its group, which
 * the API shows as one, and tells watchers: of the modifications of a group once in a step. */
void workload_changed(struct step *step, enum change_type type, struct workload *workload);
int64_t group_total(const struct pod_group *group); /* number of Pods; 0: missing or malformed */
/* Whether a Pod of the group has this value of the annotation. */
bool group_says(const struct pod_group *group, struct str note, const char *value);
bool group_retries(const struct pod_group *group); /* a failed Pod may be replaced */

/* --- prebuilt.c ----------------------------------------------------------------------------------------- */
/* A job that names a Workload takes it over, if it may; NULL: it waits, and is suspended. */
struct workload *prebuilt_take(struct step *step, struct jobset *jobset, struct str name);
/* Reacts to a change of a user-made Workload's document, and to the end of its job. */
void prebuilt_look(struct step *step, struct workload *workload);
/* Called when its job lets go of it; removes a deleted one. */
void prebuilt_release(struct step *step, struct workload *workload);

/* --- life.c --------------------------------------------------------------------------------------------- */
struct assignment;
void workload_bind(struct step *step, struct workload *workload); /* puts it into the tree's lists */
void workload_unbind(struct workload *workload);
bool workload_is_stopped(const struct workload *workload);          /* is not counted as pending */
void workload_book(struct admit *admit, struct workload *workload); /* books quota by its podsets' flavours */
void workload_unbook(struct admit *admit, struct workload *workload);
/* Returns its assignment's amount in a cell of the queue that it is booked in. */
int64_t workload_uses(const struct workload *workload, uint32_t cell);
void workload_admit(struct step *step, struct workload *workload, const struct assignment *assignment);
/* ADMITTED: its job runs. `reserved_before`: its machines were reserved in an earlier step. */
void workload_start(struct step *step, struct workload *workload, bool reserved_before);
void workload_hold(struct step *step, struct workload *workload, const struct assignment *assignment);
/* HOLDING and waiting only for its checks: its quota is shown. */
void workload_show_quota(struct step *step, struct workload *workload);
void workload_drop_hold(struct step *step, struct workload *workload);
void workload_evict(struct step *step, struct workload *workload, const char *reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void workload_suspend(struct step *step, struct workload *workload); /* LEAVING: the notice is over */
void workload_left(struct step *step, struct workload *workload);    /* LEAVING: the last task has ended */
void workload_finish(struct step *step, struct workload *workload);
/* A user deleted a Pod of a group that has ended and is held. */
void workload_pod_deleted(struct step *step, struct workload *workload);
/* Finishes a Workload that will never have a job, and frees its quota and machines. */
void workload_abandon(struct step *step, struct workload *workload, const char *reason, struct str why);
/* Called when its job is gone: frees its quota and machines, and makes it PENDING. */
void workload_lose_job(struct step *step, struct workload *workload);
/* A HOLDING workload that can never start: it and its gang are finished, and stay suspended. */
void workload_cannot_start(struct step *step, struct workload *workload, struct str why);
void workload_release(struct step *step, struct workload *workload); /* frees quota, wakes its cohort */
void workload_set_timer(struct step *step, struct workload *workload);

/* --- check.c -------------------------------------------------------------------------------------------- */
/* Makes the list of checks that its queue and its flavours require; new ones are Pending. */
void checks_sync(struct step *step, struct workload *workload);
bool checks_wait(const struct workload *workload); /* one is not Ready */
/* If a check says Retry or Rejected, evicts the workload and returns true. */
bool checks_refuse(struct step *step, struct workload *workload);
/* Longest delay that Retry answers ask for. */
int64_t checks_backoff_ns(const struct workload *workload);
void checks_reset(struct step *step, struct workload *workload); /* to Pending */
void checks_done(struct workload *workload);

/* --- updates.c ------------------------------------------------------------------------------------------ */
/* Checks the form of one check's podSetUpdates (NULL: none); `path` is the check's. */
void updates_validate(const struct workload *workload, const struct doc *updates, struct str path,
                      struct field_errors *errors);
/* Adds the answers' podSetUpdates to the terms of a PodSet; strings are borrowed from the answers. */
void updates_add_terms(const struct workload *workload, size_t podset, struct rjob_terms *terms,
                       struct arena *arena);
/* Whether an answer contradicts a flavour, the Pods' template or another answer. */
bool updates_conflict(const struct admit *admit, const struct workload *workload, struct buf *why);

/* --- group.c -------------------------------------------------------------------------------------------- */
void group_join(struct admit *admit, struct workload *workload); /* by its Pod's label, if any */
/* Returns the group if its last member has left, NULL otherwise. */
struct pod_group *group_leave(struct admit *admit, struct workload *workload);
/* Chooses the members that wait together; `group_form` then puts them into the queues (NULL:
 * nothing). */
void group_choose(struct pod_group *group);
/* Whether the saved gang of `leader` may have the workload as a member: both hold in one group, and none
 * leads an older one. */
bool group_may_lead(const struct workload *leader, const struct workload *member);
/* Adds the workload to the saved gang of `leader`, which is a member itself. */
void group_restore_gang(struct workload *leader, struct workload *member);
void group_form(struct step *step, struct pod_group *group);
void group_disband(struct workload *workload);      /* dissolves its gang */
bool group_may_join(const struct workload *member); /* the member waits to be admitted */
/* Names its PodSet after its requests: Pods of equal shape are one role. */
void group_name_role(struct workload *member);
/* Returns why a Pod of a group waits for other members; NULL: it does not. */
const char *group_obstacle(const struct workload *workload, struct buf *why);
bool pod_is_over(const struct workload *workload); /* its processes have ended */
/* Removes the finalizers of the group's Pods that need not be held any more. NULL: none. */
void group_release(struct step *step, struct pod_group *group);
/* Removes the finalizer of one Pod, whatever the state of its group. */
void group_let_go(struct step *step, const struct workload *workload);
/* Lists the members of its group for which `is_one` holds, or the workload itself. */
size_t group_fellows(const struct workload *workload, bool (*is_one)(const struct workload *),
                     struct arena *arena, struct workload ***ret_list);
/* Adds the Pods of its gang to the trial, so that they are tried together. */
void gang_trial(const struct workload *workload, struct trial *trial, struct arena *arena);
/* Starts a gang that holds; false: its machines are no longer free. */
bool gang_start(struct step *step, struct workload *leader);

/* Number of PodSets that are assigned together: its own, or one of each member of its gang. */
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
static inline bool is_follower(const struct workload *workload)
{
    CHECK(!workload->leader || workload->leader->gang.len > 0);
    return workload->leader && workload->leader != workload;
}

/* --- look.c --------------------------------------------------------------------------------------------- */
/* After a change of its JobSet, or a time-out. */
void workload_look(struct step *step, struct workload *workload);
/* Has the JobSet's Workload looked at before the step ends, or made if it has none and is to have one. */
void workload_look_again(struct step *step, struct jobset *jobset);
int64_t workload_due(const struct step *step, const struct workload *workload);
void workload_park(struct step *step, struct workload *workload);
void wake_queue(struct admit *admit, struct cluster_queue *queue);
/* All that share quota with the queue. */
void wake_cohort(struct admit *admit, const struct cluster_queue *queue);
void wake_all(struct admit *admit);

/* --- flavor.c ------------------------------------------------------------------------------------------- */
/* How a request fits; FIT_NO_VICTIMS: preemption could make it fit, but there is no eligible victim now. */
enum fit { FIT_NONE, FIT_NO_VICTIMS, FIT_PREEMPT, FIT_RECLAIM, FIT_NOW };
struct assignment {
    struct arena arena;
    enum fit fit;
    uint32_t borrow;                          /* height of the cohort that it borrows from; 0: none */
    int32_t *counts;                          /* [rjob_count] */
    int32_t (*flavors)[PODSET_RESOURCES_MAX]; /* [rjob_count] index in its group; -1: not covered */
    VEC(struct booking) usage;                /* by cell, each once */
    int32_t last_flavor;                      /* highest chosen index */
    int32_t most_flavors;                     /* number of flavours in the largest group that it uses */
    const char *reason;                       /* not FIT_NOW: the reason of QuotaReserved=False */
    struct buf why;
};
/* Chooses flavours from index `from` on. */
void assignment_make(const struct admit *admit, const struct cluster *cluster, int64_t now_ns,
                     const struct workload *workload, const int32_t *counts, int32_t from,
                     struct assignment *ret);
void assignment_done(struct assignment *assignment);
bool may_be_taken(const struct workload *victim); /* victims.c: it runs, or waits only for checks */
bool tolerated(const struct toleration *tolerations, size_t count, const struct taint *taint);

/* --- terms.c -------------------------------------------------------------------------------------------- */
/* Returns the flavour that is assigned to a resource of a PodSet; NULL: none. */
const struct group_flavor *assigned_flavor(const struct workload *workload,
                                           const struct assignment *assignment, size_t podset,
                                           size_t resource);
struct rjob_terms *assignment_terms(const struct workload *workload, const struct assignment *assignment,
                                    struct arena *arena);
/* Returns the terms of its assigned flavours, and with what its AdmissionChecks add. */
struct rjob_terms *flavor_terms(const struct admit *admit, const struct workload *workload,
                                struct arena *arena);
struct rjob_terms *workload_terms(const struct admit *admit, const struct workload *workload,
                                  struct arena *arena);

/* --- cycle.c -------------------------------------------------------------------------------------------- */
void cycle_run(struct step *step);
enum { TRIALS_PER_STEP = 64 };
_Static_assert(TRIALS_PER_STEP > 0, "a cycle makes progress");
/* Whether this step ran out of trials before all heads were tried. */
bool cycle_unfinished(const struct admit *admit);
/* Whether its queue asks for AdmissionChecks under this assignment. */
bool assignment_is_checked(const struct workload *workload, const struct assignment *assignment);
/* Searches machines for the whole workload under these terms; adds what it takes of them to `rooms`
 * ([machine_count], NULL: not wanted). */
bool cycle_trial(struct step *step, const struct workload *workload, const struct trial *trial,
                 struct room *rooms, struct buf *why);

/* --- victims.c, preempt.c, fair.c ----------------------------------------------------------------------- */
/* The relation of a candidate to the preemptor. */
enum victim_tie {
    /* The contested quota is nearer to the preemptor: its queue's own, or of a cohort above it that covers
     * the whole request. */
    VICTIM_BELOW_OURS,
    VICTIM_WHILE_BORROWING,     /* may go even if the preemptor's queue then borrows */
    VICTIM_NOT_WHILE_BORROWING, /* only if the preemptor's queue does not borrow */
    VICTIM_OWN_QUEUE,
};
struct victim {
    struct workload *workload;
    const char *reason; /* InClusterQueue, ... */
    enum victim_tie tie;
    uint32_t common; /* lowest cohort above both queues; QUOTA_NONE: it is the preemptor's own queue */
};
typedef VEC(struct victim) victims;
/* A search for victims for one workload. Candidates are taken out of the tree's usage and off the
 * machines, and put back when the search ends. */
struct search {
    const struct admit *admit;
    const struct cluster *cluster;
    int64_t now_ns;
    struct step *step;        /* for the machines; NULL: only quota is searched */
    struct quota_tree *quota; /* the tree that candidates are taken out of */
    const struct workload *workload;
    const struct assignment *assignment;
    struct rjob_terms *terms;
    bool *wanted;               /* [cell_count] cells that lack quota; if machines lack, all that it uses */
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
void search_take(struct search *search, const struct workload *victim);
void search_give(struct search *search, const struct workload *victim);
bool search_fits_quota(const struct search *search, bool may_borrow);
bool search_has_chips(const struct search *search);
bool search_fits_machines(struct search *search, struct room *rooms);
/* Gives back the victims that turn out not to be needed, of a row that suffices. */
void search_give_back(struct search *search, victims *row, bool may_borrow);
/* Takes victims and holds their quota and machines; false: no victims help. */
bool preempt(struct step *step, struct workload *workload, const struct assignment *assignment);
/* The effect of preemption for one cell alone, regardless of machines. */
struct preemption_outlook {
    bool possible;
    bool own;        /* a victim would be of its own queue */
    uint32_t borrow; /* height that it borrows from afterwards */
};
struct preemption_outlook preemption_outlook(const struct admit *admit, const struct cluster *cluster,
                                             int64_t now_ns, const struct workload *workload,
                                             struct booking wanted);
/* Fair sharing's choice of victims, which stay taken out; false: none helps, and all are back. */
bool fair_victims(struct search *search, const victims *candidates, victims *ret_chosen);

#define FAIR_SHARE_UNIT INT64_C(1000000000) /* of a thousandth */
/* The dominant resource share of a node at the present state of `quota`. */
struct fair_share {
    bool borrows;    /* uses more than its own quota of some cell */
    bool endless;    /* it borrows with weight 0 */
    __int128 amount; /* weighted; unweighted if it is endless */
};
struct fair_share fair_share(const struct tree *tree, const struct quota_tree *quota, uint32_t node);
int fair_share_compare(struct fair_share a, struct fair_share b); /* < 0: a is smaller */

/* --- why.c ---------------------------------------------------------------------------------------------- */
void why_quota(const struct admit *admit, const struct cluster_queue *queue, uint32_t cell, int64_t needs,
               struct buf *out);

/* --- reclaim.c ------------------------------------------------------------------------------------------ */
/* ADMITTED: gives back quota of ended Jobs. */
void workload_reclaim(struct step *step, struct workload *workload);

/* --- gate.c --------------------------------------------------------------------------------------------- */
struct str admission_gates(const struct jobset *jobset); /* empty: none */
/* Checks a change of the annotation from `was` to `is`. */
void gates_validate(struct str was, struct str is, bool is_new, struct field_errors *errors);

/* --- labels.c ------------------------------------------------------------------------------------------- */
/* Checks the labels of a new job. */
void labels_validate_new(const struct jobset_spec *spec, struct field_errors *errors);
/* Checks a change of the job's labels to `labels`. `runs`: its workload is admitted, or it is not
 * suspended. */
void labels_validate_update(const struct jobset *jobset, const struct doc *labels, bool runs,
                            struct field_errors *errors);

/* --- inuse.c -------------------------------------------------------------------------------------------- */
size_t tree_count_ending(const struct object_store *objects);
/* Removes deleted objects that are no longer in use; true: some were removed. */
bool inuse_release(struct step *step);

/* --- status.c ------------------------------------------------------------------------------------------- */
void status_publish(struct step *step);
void status_restore(struct admit *admit);

#endif
