/* sched.h - which gang comes next, and on which machines and chips: all of its tasks or none.
 *
 * place.c   placement of one gang on a cluster as it stands (pure function)
 * queue.c   the order of waiting gangs: priority, then first come first served, with backfill that can't
 *           starve the head: once the head has waited for cluster->backfill_window_ns without fitting,
 *           nothing behind it that would take a machine the head could use is started until the head has
 *           been.
 * Topology rules (spec.h): required finds the smallest domain with room, and finds one whenever there is one;
 * preferred climbs the levels; slices stay whole. Source: Kueue's "Topology Aware Scheduling".
 * Placement prefers one block (rack or cube), then one pod, then the whole cluster; inside, the fullest
 * machines that fit (best fit), so that large holes stay whole. Linear in machines: <= 5 ms for 1,024
 * tasks on 16,384 machines; a gang whose tasks are alike and free to go anywhere is placed by sums that are
 * kept (capacity.h), linear in blocks. A task that was placed before stays where it was if it can; its
 * replacement comes near. Tasks of an exclusive job that run somewhere bind its other tasks to that domain.
 */
#ifndef PHX_CORE_SCHED_SCHED_H
#define PHX_CORE_SCHED_SCHED_H

#include "base/heap.h"
#include "core/model/model.h"

/* A task that is placed already. */
struct placed_task {
    uint32_t ordinal;
    machine_id machine;
};
/* Tasks of one job that look alike. */
struct place_job {
    uint32_t count;             /* tasks */
    uint32_t chips;             /* per task; 0: none */
    int64_t cpu_milli, memory_bytes; /* requests per task */
    const struct labels *node_selector;
    struct str node_name;       /* the machine that it is bound to, cordoned or not; empty: any */
    const struct toleration *tolerations;
    size_t toleration_count;
    const struct node_term *node_terms; /* one must be met; none: any machine will do */
    size_t node_term_count;
    const struct labels *more_labels; /* wanted besides node_selector (a flavour's); NULL: none */
    const struct toleration *more_tolerations;
    size_t more_toleration_count;
    struct str exclusive_topology; /* label key: the job gets a domain (equal value) that no other job uses */
    /* Where its tasks may stand together: all jobs with the same `podset` are one unit; NULL: no rule. */
    const struct topology_rule *topology;
    uint64_t podset;
    const struct str *levels;   /* node label keys, widest first; none: the cluster file's own */
    size_t level_count;
    /* [count] place of each task in its replicated job, for slices; NULL: 0, 1, ... */
    const uint32_t *ordinals;
    /* Tasks of the same replicated job that are no part of the request and keep their machines. */
    const struct placed_task *others;
    size_t other_count;
    obj_id job;                 /* who it is, for exclusiveness */
    const machine_id *prefer;   /* [count] the machine each task had before, or MACHINE_NONE; NULL: none */
};
struct capacity; /* capacity.h */
struct place_request {
    const struct place_job *jobs;
    size_t job_count;
    bool use_spares;            /* a gang that replaces machines may take spares (after everything else) */
    const machine_id *avoid;    /* machines that caused this gang's restarts: only if nothing else fits */
    size_t avoid_count;
    /* Chips of each machine that this gang's own ending tasks hold and that it may take over:
     * [machine_count] masks or NULL. */
    const uint64_t *own_chips;
    /* What else those tasks hold: [machine_count] or NULL. Only matters where machines have known
     * capacities. */
    const int64_t *own_cpu_milli, *own_memory_bytes;
    /* Chips that are kept for others, free or not: [machine_count] masks or NULL. */
    const uint64_t *reserved;
    /* What else is kept for others of what is free: [machine_count] or NULL. */
    const int64_t *reserved_cpu_milli, *reserved_memory_bytes;
    const uint8_t *closed; /* flags of machines that are not to be used: [machine_count] or NULL */
    /* Which job holds the machine's topology domain exclusively: [machine_count] uids (0: nobody) or NULL.
     * Such a machine is open to that job alone. */
    const obj_id *domain_owner;
    /* Who holds chips of a machine (0: nobody), and its name ("default/llm"), for `why`; NULL: holders are
     * not named. Another one holds them only after a change of the machine. The context is sched_place's. */
    obj_id (*holder)(const void *context, machine_id machine);
    void (*holder_name)(const void *context, machine_id machine, struct buf *out);
    /* Likewise the worst open fault of a machine ("xid/79"); NULL, or nothing added: none is named. */
    void (*fault_name)(const void *context, machine_id machine, struct buf *out);
    struct capacity *capacity; /* kept for this cluster; NULL: every machine is looked at */
};
struct placement {
    machine_id machine;
    uint64_t chips;
};
/* Which job occupies a topology domain: the scheduler's view of exclusiveness. Returns the uid of a job
 * other than `job` (0: any job) that has a task on the machine, or 0. The asking gang's own ending tasks
 * do not count. May be NULL: no machine is occupied. */
typedef obj_id (*sched_occupant_fn)(const void *context, machine_id machine, obj_id job);

/* Finds a place for every task of every job, in order (job 0's tasks 0.. first). `ret_places` has room for
 * the sum of counts. Takes nothing: the caller does (machine_take). False when it does not fit; then `why`
 * gets one sentence in numbers, such as
 *   "needs 16 machines with 4 free google.com/tpu chips; 14 of 24 have them: 6 taken by default/llm,
 *    2 cordoned (m-31, m-40), 2 lost (m-7, m-9)". */
bool sched_place(const struct cluster *cluster, const struct place_request *request,
                 sched_occupant_fn occupant, const void *context, struct placement *ret_places,
                 struct buf *why);

/* Could the gang ever fit: on the cluster with every machine empty and ready? False: `why` says which
 * limit. */
bool sched_feasible(const struct cluster *cluster, const struct place_request *request, const void *context,
                    struct buf *why);

/* Do the machines as they stand decide alone about the request? Its answer changes then only when one of them
 * does (cluster_next_change). All its tasks are alike, with chips and without a topology, and nobody else's
 * room is to be minded. */
bool sched_is_plain(const struct place_request *request);

/* Has the machine what the job's node selector and affinity ask for? Does a taint of it keep the job away? */
bool sched_matches(const struct place_job *job, const struct machine *machine);
bool sched_repels(const struct place_job *job, const struct machine *machine);

/* Is there a machine that a task of each could use, were it empty and ready (a sched_pass' `competes`)?
 * Linear in machines, and mostly ends at the first one. */
bool sched_competes(const struct cluster *cluster, const struct place_request *a,
                    const struct place_request *b);

/* A waiting gang. Owned by the caller; linked into at most one queue. */
struct queued_gang {
    struct heap_node node;      /* private to the queue */
    int32_t priority;
    int64_t submitted_ns;       /* a restarting gang keeps its first submission time */
    obj_id id;                  /* tie-breaker and name */
    int64_t head_since_ns;      /* when it first was the head and did not fit; 0: never */
};
struct sched_queue {
    VEC(struct queued_gang *) gangs; /* ordered: the next first */
};
void sched_queue_add(struct sched_queue *queue, struct queued_gang *gang);
void sched_queue_remove(struct sched_queue *queue, struct queued_gang *gang);
void sched_queue_done(struct sched_queue *queue);

/* One pass over the queue. `try_place` attempts to place and commit a gang (returns true when it was
 * started: it must not touch the queue; the pass removes it). `competes(gang, head)` tells
 * whether starting `gang` could delay `head` (any machine both could use). Bounded: after `attempts_max`
 * failed tries the pass ends. */
struct sched_pass {
    bool (*try_place)(void *context, struct queued_gang *gang);
    bool (*competes)(void *context, const struct queued_gang *gang, const struct queued_gang *head);
    /* Could the gang ever be placed? One that cannot (too large for the cluster, say) is never the head,
     * delays nobody and counts as no try. NULL: all could. */
    bool (*feasible)(void *context, struct queued_gang *gang);
    void *context;
    int64_t now_ns, backfill_window_ns;
    size_t attempts_max;
};
size_t sched_queue_pass(struct sched_queue *queue, const struct sched_pass *pass); /* gangs started */

#endif
