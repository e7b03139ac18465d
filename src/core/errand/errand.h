/* errand.h - errands: work that an agent does on its machine besides tasks. It runs an operator's hook,
 * qualifies the machine, tests a pair of machines, collects a task's flight records, or injects a fault.
 *
 *     obj_id errand = errand_begin(step, &order);   // EFFECT_ERRAND_START
 *     ...                                           // the agent runs it and reports its end
 *     X_errand_ended(step, &errand, &end)           // core/react/errands.c passes the end to the owner
 *
 * Every errand that is begun and not cancelled has exactly one end, which its owner receives after
 * errand_begin has returned, possibly in the same step of the core. The owner receives an end even if the
 * machine is lost, the agent is too old, or no report arrives within the time-out and ERRAND_MARGIN_NS.
 *
 * The controller sends an errand to its agent at least once: when it begins, and after each Hello that does
 * not list it. An agent that died while it ran an errand therefore runs it again within the rest of the
 * time-out, so an errand must be safe to run twice.
 *
 * The store holds errands in order of uid. It treats all owners alike.
 */
#ifndef PHX_CORE_ERRAND_ERRAND_H
#define PHX_CORE_ERRAND_ERRAND_H

#include "base/arena.h"
#include "base/heap.h"
#include "core/words/order.h"
#include "core/words/limits.h"

struct cluster;
struct hello;
struct machine;
struct reports;
struct step;

/* How much later than the time-out a report may arrive, in case the agent's connection breaks just then. */
#define ERRAND_MARGIN_NS (10 * NS_PER_SECOND)

struct errand {
    obj_id uid;
    struct str machine; /* name */
    enum errand_kind kind;
    enum errand_owner owner;
    obj_id about; /* the object that the owner begins it for */
    uint32_t tag; /* the owner's own number */
    struct str body;
    int64_t timeout_ns;
    int64_t begun_ns;     /* stamp */
    struct heap_node due; /* in the store's heap: stamp at which it counts as lost */
    struct arena arena;   /* owns the texts */
};

struct errands;

struct errands *errands_new(void);
void errands_free(struct errands *errands); /* NULL is allowed */
void errands_bury(struct errands *errands); /* frees what the last step's effects and ends pointed into */

/* --- for owners ----------------------------------------------------------------------------------------- */

/* Begins an errand and returns its uid. The order is copied. An errand that cannot run ends as
 * ERRAND_LOST. */
obj_id errand_begin(struct step *step, const struct errand_order *order);
/* Cancels an errand; its owner then receives no end. Does nothing if the errand is unknown. */
void errand_cancel(struct step *step, obj_id errand);
/* Finds an errand that has not ended; NULL: none. Valid until the next step. */
const struct errand *errand_find(const struct errands *errands, obj_id errand);

/* --- for core.c ----------------------------------------------------------------------------------------- */

void errands_hello(struct step *step, const struct machine *machine, const struct hello *hello);
void errands_reported(struct step *step, const struct machine *machine, const struct reports *reports);
void errands_machine_lost(struct step *step, const struct machine *machine, struct str evidence);
void errands_cluster(struct step *step); /* called when machines may have left the cluster file */
void errands_tick(struct step *step);
int64_t errands_deadline(const struct errands *errands); /* stamp; INT64_MAX: none */
/* Gets the next end that was not taken yet; false: none is left. Both results are valid until the core's next
 * step. Called until false, before the step ends. */
bool errands_next_end(struct errands *errands, const struct errand **ret_errand, struct errand_end *ret_end);

/* --- for snapshots and audits --------------------------------------------------------------------------- */

size_t errands_count(const struct errands *errands);
const struct errand *errands_at(const struct errands *errands, size_t index); /* by uid */
/* Restores a copy of an errand from a snapshot. Returns false if its uid is not above that of the last
 * one. */
bool errands_restore(struct errands *errands, const struct errand *saved);
void errands_check(const struct errands *errands, const struct cluster *cluster); /* aborts through CHECK */

#endif
