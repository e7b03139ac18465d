/* errand.h - work that the controller has an agent do on its machine beside tasks: run an operator's hook,
 * qualify the machine, test a pair of machines, collect a task's flight records, break something on purpose.
 *
 *     obj_id errand = errand_begin(step, &order);   // EFFECT_ERRAND_START
 *     ...                                           // the agent runs it, reports its end
 *     X_errand_ended(step, &errand, &end)           // core/errands.c hands the end to the owner
 *
 * Every errand that is begun and not cancelled has exactly one end, heard in a step after errand_begin
 * returned (it may be the same step of the core), by its owner only: also when the machine is lost, the agent
 * is too old, or nothing is heard until ERRAND_MARGIN_NS past the time-out.
 *
 * An agent is told of an errand at least once: now, and after each Hello that does not list it. So an agent
 * that died while it ran one runs it again within what is left of the time-out; what an errand does must be
 * safe twice.
 *
 * The store holds errands by uid, which is their order too. It makes no difference between owners.
 */
#ifndef PHX_CORE_ERRAND_ERRAND_H
#define PHX_CORE_ERRAND_ERRAND_H

#include "base/arena.h"
#include "base/heap.h"
#include "core/errand/order.h"
#include "core/limits.h"

struct cluster;
struct hello;
struct machine;
struct reports;
struct step;

/* That a report may come later than the time-out: the agent's connection may break just then. */
#define ERRAND_MARGIN_NS (10 * NS_PER_SECOND)

struct errand {
    obj_id uid;
    struct str machine; /* name */
    enum errand_kind kind;
    enum errand_owner owner;
    obj_id about;
    uint32_t tag;
    struct str body;
    int64_t timeout_ns;
    int64_t begun_ns;     /* stamp */
    struct heap_node due; /* in the store's: when it counts as lost */
    struct arena arena;   /* owns the texts */
};

struct errands;

struct errands *errands_new(void);
void errands_free(struct errands *errands); /* NULL is allowed */
void errands_bury(struct errands *errands); /* what the last step's effects and ends pointed into */

/* --- for owners ----------------------------------------------------------------------------------------- */

/* Its uid. The order is copied. */
obj_id errand_begin(struct step *step, const struct errand_order *order);
/* No end is told, if it has not been told yet. An unknown one is ignored. */
void errand_cancel(struct step *step, obj_id errand);
/* NULL: it has ended, or never was. Valid until the next step. */
const struct errand *errand_find(const struct errands *errands, obj_id errand);

/* --- for core.c ----------------------------------------------------------------------------------------- */

void errands_hello(struct step *step, const struct machine *machine, const struct hello *hello);
void errands_reported(struct step *step, const struct machine *machine, const struct reports *reports);
void errands_machine_lost(struct step *step, const struct machine *machine, struct str evidence);
void errands_cluster(struct step *step); /* machines may have gone from the cluster file */
void errands_tick(struct step *step);
int64_t errands_deadline(const struct errands *errands); /* stamp; INT64_MAX: none */
/* The next end that nobody has heard; false: none. Both stay valid until the next step of the core. To be
 * asked until it says false, before the step ends. */
bool errands_next_end(struct errands *errands, const struct errand **ret_errand, struct errand_end *ret_end);

/* --- for snapshots and audits --------------------------------------------------------------------------- */

size_t errands_count(const struct errands *errands);
const struct errand *errands_at(const struct errands *errands, size_t index); /* by uid */
/* Copies. False: it does not fit (its uid does not follow the last one's). */
bool errands_restore(struct errands *errands, const struct errand *saved);
void errands_check(const struct errands *errands, const struct cluster *cluster); /* aborts through CHECK */

#endif
