/* place.h - private to sched/: one search for a gang's places.
 *
 *   place.c           the course of a search: shapes, attempts, tasks that stay on their machines, chips
 *   place_fit.c       how many tasks of a shape a machine can take; if none, why
 *   place_fill.c      choice of machines for tasks: one block, one pod, the cluster; best fit
 *   place_domain.c    jobs that get an exclusive topology domain
 *   place_tree.c      a topology as a tree of domains, and the choice of domains for tasks
 *   place_topology.c  replicated jobs with a topology rule: one domain, slices, hot swap
 *   capacity.c        sums kept between searches, for gangs that depend on free machines alone
 *   refusals.c        counts of refusals kept between searches, for the sentence of place_why.c
 *   place_why.c       the sentence for people when the gang does not fit
 *   why_topology.c    the same for gangs with a topology rule
 *
 * Like tasks of all jobs form a shape. The tasks of a shape are interchangeable, so filling machines greedily
 * places a shape whenever that is possible. Several shapes compete for machines: they are placed one after
 * the other, and a failed attempt is repeated in other orders.
 */
#ifndef PHX_CORE_SCHED_PLACE_H
#define PHX_CORE_SCHED_PLACE_H

#include "core/sched/refusals.h"
#include "core/sched/sched.h"

/* Machines are used class by class, the lowest first. */
enum { CLASS_PREFER_NO = 1, CLASS_SPARE = 2, CLASS_AVOID = 4, CLASSES = 8 };
_Static_assert(CLASSES == CLASS_PREFER_NO + CLASS_SPARE + CLASS_AVOID + 1, "a class for each combination");

struct shape {
    const struct place_job *like; /* first job of the shape */
    struct place_tree *tree;      /* with a topology rule: its domains; NULL: not built yet */
    uint32_t *jobs;               /* indexes of its jobs, ascending */
    size_t job_count;
    uint64_t tasks;    /* of all jobs */
    uint64_t eligible; /* places for its tasks on the cluster before the search */
    uint32_t failures; /* failed attempts to place the shape: it comes earlier in the next attempt */
};

/* Places for tasks of one shape on machines of one class. */
struct capacity_sums {
    uint64_t room; /* tasks in all */
    uint64_t *block_fits, *pod_fits, *block_chips, *pod_chips; /* NULL: there was never a place */
    uint32_t *order;                                           /* blocks with places: the fewest places */
    size_t order_len;                                          /* first, then by index */
};
/* A shape in the cache (capacity.h). */
struct shape_capacity {
    struct arena arena;
    struct place_job like; /* its own copy */
    uint32_t most;         /* limit of the tasks counted for one machine */
    bool use_spares;
    size_t machines, blocks, pods;
    uint64_t read;               /* number of the next change in the cluster's journal */
    uint64_t asked;              /* time of the last use; larger is later */
    uint64_t number;             /* number of the shape, from 1; never reused */
    uint64_t *free;              /* [machine_count] chips */
    uint32_t *fits, *ideal_fits; /* [machine_count] tasks: now; if the machine were empty and ready */
    uint32_t *take;              /* [machine_count] zero between choices */
    uint8_t *class, *refusal;    /* [machine_count] */
    uint64_t *caught_up;         /* [machine_count] value of `read` after the machine's last update */
    obj_id *holder;              /* [machine_count] holder of the chips of a REFUSED_TAKEN machine */
    uint64_t checked;            /* `read` when capacity_check last ran; 0: the shape has changed since */
    struct capacity_sums sums[CLASSES];
    struct refusals refusals;
    uint64_t ideal_room; /* sum of ideal_fits */
    int64_t *nothing;    /* zeros: no task of the gang is placed yet */
    uint32_t *none;
    struct buf why; /* the sentence for `why_tasks` tasks when `read` was `why_read`; 0: none */
    uint64_t why_tasks, why_read;
};

struct placer {
    const struct cluster *cluster;
    const struct place_request *request;
    sched_occupant_fn occupant;
    const void *context;
    bool ideal; /* every machine counts as empty and ready: sched_feasible */
    struct arena arena;

    struct shape *shapes;
    size_t shape_count;
    size_t *offsets;          /* [job_count] index of the job's first task in `places` */
    struct placement *places; /* [task_count] machine == MACHINE_NONE: not placed yet */
    size_t task_count;
    uint8_t *avoid; /* [machine_count] flags */

    /* Resources left or used in the present attempt. */
    uint64_t *free;                    /* [machine_count] chips */
    int64_t *cpu_milli, *memory_bytes; /* [machine_count] taken by the gang */
    uint32_t *load;                    /* [machine_count] tasks placed by the gang */
    uint32_t *claimed;                 /* [machine_count] 1 + the job whose domain it is in; 0: none */
    uint32_t *block_load, *pod_load;
    uint64_t chips_left; /* chips that the unplaced tasks need */

    /* State of the present shape. */
    uint32_t *fits;   /* [machine_count] tasks that it could take now */
    uint8_t *class;   /* [machine_count] */
    uint32_t *take;   /* [machine_count] chosen tasks; zero between choices */
    machine_id *pool; /* machines with fits > 0, ascending */
    size_t pool_len;
    uint64_t *block_fits, *pod_fits, *block_chips, *pod_chips;

    /* Topology: the domain that came nearest, for `why`. Level PLACE_NO_LEVEL: whole slices on all machines.
     * Room UINT64_MAX: unused. */
    struct {
        uint32_t level, domain;
        uint64_t room;
    } nearest;
    struct shape_capacity *kept; /* the shape's sums; the pool receives the chosen machines. NULL: none */
    const struct shape *failed; /* the shape that could not be placed */
    uint64_t failed_tasks;      /* number of its tasks without a place; exclusive: number of one job's
                                 * tasks */
    struct {                    /* exclusive: the state of its domains */
        uint32_t all, occupied, small;
        uint64_t largest; /* the most tasks that an unoccupied domain can take */
    } domains;
};

/* place_fit.c: returns how many of `most` tasks the machine can take now; for 0, *ret_refusal has the reason.
 * `stays`: the task was on this machine before, which may be a spare. */
uint32_t place_fit(const struct placer *placer, const struct place_job *job, machine_id machine,
                   uint64_t most, bool stays, enum refusal *ret_refusal);
uint8_t place_class(const struct placer *placer, const struct place_job *job, machine_id machine);
/* Returns whether the machine, if empty and ready, could take one task of the job. */
bool place_usable(const struct cluster *cluster, const struct place_job *job, machine_id machine,
                  bool use_spares);

/* place_fill.c: chooses machines of the pool for `tasks` tasks, and sets placer->take. The pool must have
 * enough places. */
void place_fill(struct placer *placer, const struct place_job *job, uint64_t tasks);
/* Returns a mask of `count` of the free chips: an aligned run of neighbours if possible, chosen to leave
 * large runs whole. CHECKs that enough are free. */
uint64_t place_chips(uint64_t free, uint32_t count);

/* place.c: Assigns the task to the machine and updates the remaining resources. */
void place_assign(struct placer *placer, const struct place_job *job, size_t task, machine_id machine,
                  bool stays);
/* Computes how many of `tasks` tasks each machine can take now; sets fits, class, pool. Returns the sum. */
uint64_t place_pool(struct placer *placer, const struct place_job *job, uint64_t tasks);
/* Places the tasks of the job that can stay on their machines; with `domain_of`, only those whose machine is
 * in `domain`. Returns how many stayed. */
uint64_t place_keep(struct placer *placer, uint32_t job, const uint32_t *domain_of, uint32_t domain);
/* Assigns the machines in placer->take, in ascending order, to the unplaced tasks of the jobs, and clears
 * placer->take. */
void place_hand_out(struct placer *placer, const uint32_t *jobs, size_t job_count);
bool place_same_shape(const struct place_job *a, const struct place_job *b);
/* Undoes place_assign. */
void place_unassign(struct placer *placer, const struct place_job *job, size_t task);

/* capacity.c: returns the updated cache entry of the request's shape, and the number of tasks. NULL: the
 * request is not plain (sched_is_plain), or there is no cache. */
struct shape_capacity *capacity_of(const struct cluster *cluster, const struct place_request *request,
                                   const void *context, uint64_t *ret_tasks);
/* Appends why `tasks` tasks of the shape do not fit. */
void capacity_why(struct shape_capacity *kept, const struct cluster *cluster,
                  const struct place_request *request, const void *context, uint64_t tasks, struct buf *why);
uint64_t capacity_room(const struct shape_capacity *kept); /* in tasks, on all machines */
/* Finds the block with the fewest places that suffice for `tasks` > 0; the first of equals. Returns false if
 * no block has enough. */
bool capacity_least_block(const struct capacity_sums *sums, uint64_t tasks, uint32_t *ret_block);
/* Places all tasks of the request. Returns false if they do not fit. */
bool capacity_place(struct shape_capacity *kept, const struct cluster *cluster,
                    const struct place_request *request, uint64_t tasks, struct placement *ret_places);

/* place_domain.c: places all jobs of a shape with exclusive_topology, each in a domain of its own. `keep`:
 * tasks stay on their machines where they can. Returns false, with placer->failed set, if a job does not
 * fit. */
bool place_domains(struct placer *placer, const struct shape *shape, bool keep);

/* place_tree.c */
#define PLACE_NO_LEVEL UINT32_MAX
#define PLACE_NO_DOMAIN UINT32_MAX
enum { PLACE_LEVELS_MAX = 20 }; /* a Topology has at most 16 */

struct place_level {
    struct str key; /* node label */
    bool by_block;  /* the level has no label: cubes and racks of the cluster file */
    uint32_t count; /* domains, in the order of their first machines */
    uint32_t *domain_of; /* [machine_count] or PLACE_NO_DOMAIN */
    uint32_t *parent;    /* [count] domain on the next wider level; 0 on the first */
    machine_id *first;   /* [count] */
    uint64_t *room;      /* [count] places for tasks, counted in whole slices */
    uint64_t *loose;     /* [count] places for tasks, including incomplete slices */
    uint64_t whole;      /* number of tasks in a slice */
    /* [count + 1] first index into `children`, which are domains of the next level, or machines on the
     * last */
    uint32_t *first_child, *children;
};
struct place_tree {
    struct place_level *levels; /* widest first */
    uint32_t level_count;
    uint32_t key_level;      /* level of the rule's key; PLACE_NO_LEVEL: any */
    uint32_t slice_level[TOPOLOGY_SLICES_MAX];
    struct str unknown;      /* a key of the rule that is no level of the topology; empty: none */
    uint32_t *top;           /* domains of the first level */
    uint64_t room;           /* places on all machines, counted in whole slices */
    uint32_t *fits;          /* [machine_count] tasks that each can take, in the requested classes */
    uint8_t worst_class;     /* highest class among machines that can take a task */
};
/* Builds the domains of the job's topology, in the arena. */
void place_tree_build(const struct cluster *cluster, const struct place_job *job, struct arena *arena,
                      struct place_tree *tree);
/* Returns the slice size at this level, at most `tasks`: a domain takes whole slices. 1: no slices. */
uint64_t place_tree_whole(const struct place_tree *tree, const struct place_job *job, uint32_t level,
                          uint64_t tasks);
/* Sets the tree's counts of places, on machines of classes up to `most_class`. Leaves the placer's pool
 * empty. */
void place_tree_room(struct placer *placer, struct place_tree *tree, const struct place_job *job,
                     uint64_t tasks, uint8_t most_class);
/* Distributes tasks over as few domains as possible on each level, below a domain with enough places
 * (PLACE_NO_LEVEL: the whole cluster). Calls `leaf` for domains of the last level, in the order of the
 * tree. */
typedef void place_leaf_fn(void *context, uint32_t domain, uint64_t tasks);
void place_tree_descend(struct placer *placer, const struct place_tree *tree, uint32_t level, uint32_t domain,
                        uint64_t tasks, place_leaf_fn *leaf, void *context);

/* place_topology.c: places the shape's podset: its own jobs and those of other shapes in the podset. Returns
 * false, with placer->failed set, if they do not fit. */
bool place_topology(struct placer *placer, const struct shape *shape);

/* place_why.c: appends the sentence for placer->failed. */
void place_why(const struct placer *placer, struct buf *why);
void place_why_cause(enum refusal refusal, struct buf *why); /* "cordoned", ... */
/* Appends the holder or the fault that causes the refusal, " by default/llm" or " (xid/79)", if known. */
void place_why_behind(const struct placer *placer, enum refusal refusal, machine_id id, struct buf *why);
/* why_topology.c: appends the whole sentence for a shape with a topology rule. Returns false, and appends
 * nothing, if the topology is not the cause. */
bool place_why_topology(const struct placer *placer, struct buf *why);
/* Appends the beginning of the sentence for a shape that lacks whole slices; the causes follow. Returns
 * false, and appends nothing, if slices are not the cause. */
bool place_why_slices(const struct placer *placer, struct buf *why);

#endif
