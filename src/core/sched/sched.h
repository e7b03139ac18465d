/* sched.h - which gang comes next, and on which machines and chips: all of its tasks or none.
 *
 *   place.c   placement of one gang on the cluster's present state (pure function)
 *   queue.c   the order of waiting gangs: priority, then first come first served, with backfill that cannot
 *             starve the head: once the head has waited for the policy's backfillWindow without fitting, no
 *             later gang that could use one of the head's machines starts before the head
 *
 * Topology rules (spec.h): a required rule uses the smallest domain with enough capacity, and finds one
 * whenever one exists; a preferred rule falls back to wider levels; slices stay whole. Source: Kueue's
 * "Topology Aware Scheduling".
 *
 * Placement prefers one block (rack or cube), then one pod, then the whole cluster. Within them it prefers
 * the fullest machines that fit (best fit), to keep large free areas whole. A search is linear in machines:
 * <= 5 ms for 1,024 tasks on 16,384 machines. A gang of like tasks without constraints is placed in time
 * linear in blocks, by sums that are kept between searches (capacity.h). A task that was placed before stays
 * on its machine if it can; otherwise it is placed near the gang. Running tasks of an exclusive job bind its
 * other tasks to their domain.
 */
#ifndef PHX_CORE_SCHED_SCHED_H
#define PHX_CORE_SCHED_SCHED_H

#include "base/heap.h"
#include "core/model/model.h"

/* A placed task outside of the request. */
struct placed_task {
    uint32_t ordinal;
    machine_id machine;
};
/* Tasks of one job that look alike. */
struct place_job {
    uint32_t count;             /* tasks */
    uint32_t chips;             /* of each task; 0: none */
    int64_t cpu_milli, memory_bytes; /* requests per task */
    const struct labels *node_selector;
    struct str node_name; /* spec.nodeName, a machine, cordoned or not; empty: any */
    const struct toleration *tolerations;
    size_t toleration_count;
    const struct node_term *node_terms; /* one of them must match; none: any machine suits */
    size_t node_term_count;
    const struct labels *more_labels; /* required besides node_selector (a flavour's); NULL: none */
    const struct toleration *more_tolerations;
    size_t more_toleration_count;
    struct str exclusive_topology; /* label key: the job gets a domain (equal value) that no other job
                                    * uses */
    /* The topology rule; NULL: none. All jobs with the same `podset` are placed as one unit. */
    const struct topology_rule *topology;
    uint64_t podset;
    const struct str *levels;   /* node label keys, widest first; none: the cluster file's own levels */
    size_t level_count;
    /* [count] index of each task in its replicated job, for slices; NULL: 0, 1, ... */
    const uint32_t *ordinals;
    /* Tasks of the same replicated job that are not in the request and keep their machines. */
    const struct placed_task *others;
    size_t other_count;
    obj_id job;                 /* its uid, for exclusive domains */
    const machine_id *prefer;   /* [count] last machine of each task, or MACHINE_NONE; NULL: none */
};
struct capacity; /* capacity.h */
struct place_request {
    const struct place_job *jobs;
    size_t job_count;
    bool use_spares;         /* the gang replaces machines, so it may take spares (after other machines) */
    const machine_id *avoid; /* machines that caused this gang's restarts: used only if no others fit */
    size_t avoid_count;
    /* Chips of each machine that this gang's own ending tasks hold and that it may take over:
     * [machine_count] masks or NULL. */
    const uint64_t *own_chips;
    /* Other resources of those tasks: [machine_count] or NULL. Used only if machines have known
     * capacities. */
    const int64_t *own_cpu_milli, *own_memory_bytes;
    /* Chips that are reserved for others, free or not: [machine_count] masks or NULL. */
    const uint64_t *reserved;
    /* Other free resources that are reserved for others: [machine_count] or NULL. */
    const int64_t *reserved_cpu_milli, *reserved_memory_bytes;
    const uint8_t *closed; /* machines that must not be used: [machine_count] flags or NULL */
    /* The job that holds the machine's topology domain exclusively: [machine_count] uids (0: none) or
     * NULL. Such a machine is open to that job alone. */
    const obj_id *domain_owner;
    /* For `why`: return the holder of a machine's chips (0: none), and append the holder's name
     * ("default/llm"). NULL: holders are not named. A holder may change only when the machine does
     * (machine_changed), because the result is kept. `context` is that of sched_place. */
    obj_id (*holder)(const void *context, machine_id machine);
    void (*holder_name)(const void *context, machine_id machine, struct buf *out);
    /* Appends a machine's worst open fault ("xid/79"); NULL, or nothing appended: no fault is named. */
    void (*fault_name)(const void *context, machine_id machine, struct buf *out);
    struct capacity *capacity; /* of this cluster; NULL: every search inspects every machine */
};
struct placement {
    machine_id machine;
    uint64_t chips;
};
/* Returns the uid of a job other than `job` (0: any job) that has a task on the machine, or 0 if there is
 * none: decides which exclusive domains are free. Ending tasks of the gang that is placed do not count. A
 * NULL function means that no machine is occupied. */
typedef obj_id (*sched_occupant_fn)(const void *context, machine_id machine, obj_id job);

/* Finds a place for every task of every job, in order: job 0's tasks first. `ret_places` has an item for each
 * task. The machines are unchanged: the caller takes the places (machine_take). Returns false if the gang
 * does not fit, and appends to `why` (may be NULL) one sentence in numbers, such as
 *   "needs 16 machines with 4 free google.com/tpu chips; 14 of 24 have them: 6 taken by default/llm,
 *    2 cordoned (m-31, m-40), 2 lost (m-7, m-9)".
 */
bool sched_place(const struct cluster *cluster, const struct place_request *request,
                 sched_occupant_fn occupant, const void *context, struct placement *ret_places,
                 struct buf *why);

/* Returns whether the gang would fit if every machine were empty and ready. If not, appends the limit to
 * `why` (may be NULL). */
bool sched_feasible(const struct cluster *cluster, const struct place_request *request, const void *context,
                    struct buf *why);

/* Returns whether the answer to the request depends on the machines alone, and so changes only when one of
 * them does (cluster_next_change): all tasks are alike, have chips and no constraints beyond labels and
 * tolerations, and the request reserves, closes and prefers nothing. */
bool sched_is_plain(const struct place_request *request);

/* Returns whether the machine satisfies the job's node selector and affinity. */
bool sched_matches(const struct place_job *job, const struct machine *machine);
/* Returns whether the machine has a taint, other than PreferNoSchedule, that the job does not tolerate. */
bool sched_repels(const struct place_job *job, const struct machine *machine);

/* Returns whether some machine, if empty and ready, could take a task of `a` as well as one of `b`: for
 * sched_pass.competes. Linear in machines, but usually decided by the first one. */
bool sched_competes(const struct cluster *cluster, const struct place_request *a,
                    const struct place_request *b);

/* A waiting gang. Owned by the caller; linked into at most one queue. */
struct queued_gang {
    struct heap_node node;      /* private to the queue */
    int32_t priority;
    int64_t submitted_ns;       /* a restarting gang keeps the time of its first submission */
    obj_id id;                  /* tie-breaker and name */
    int64_t head_since_ns;      /* when it was first the head and did not fit; 0: never */
};
struct sched_queue {
    VEC(struct queued_gang *) gangs; /* in order: the next first */
};
/* Add and remove a gang. While a gang is queued, its priority, submitted_ns and id must not change. */
void sched_queue_add(struct sched_queue *queue, struct queued_gang *gang);
void sched_queue_remove(struct sched_queue *queue, struct queued_gang *gang);
void sched_queue_done(struct sched_queue *queue);

/* A pass over the queue, which starts the gangs that fit. It ends after `attempts_max` failed tries. */
struct sched_pass {
    /* Tries to place and start the gang. Returns true if it did; the pass then removes the gang from the
     * queue, which try_place must not change. */
    bool (*try_place)(void *context, struct queued_gang *gang);
    /* Returns whether starting `gang` could delay `head`, because both could use some machine. */
    bool (*competes)(void *context, const struct queued_gang *gang, const struct queued_gang *head);
    /* Returns whether the gang could ever be placed; it cannot if it is too large for the cluster. Such a
     * gang is never the head, delays no other gang, and does not count as a failed try. NULL: all can. */
    bool (*feasible)(void *context, struct queued_gang *gang);
    void *context;
    int64_t now_ns, backfill_window_ns;
    size_t attempts_max;
};
/* Returns the number of gangs started. */
size_t sched_queue_pass(struct sched_queue *queue, const struct sched_pass *pass);

#endif
