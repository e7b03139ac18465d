/* errand.h - work of an agent on its machine besides tasks: run an operator's hook, qualify the machine,
 * test a pair of machines, collect a task's flight records, inject a fault.
 *
 *     obj_id errand = errand_begin(step, &order);   // EFFECT_ERRAND_START
 *     ...                                           // the agent runs it, reports its end
 *     X_errand_ended(step, &errand, &end)           // core/react/errands.c hands the end to the owner
 *
 * Every errand that is begun and not cancelled has exactly one end, which its owner gets after
 * errand_begin returned (possibly in the same step of the core): also if the machine is lost, the agent is
 * too old, or no report comes until ERRAND_MARGIN_NS past the time-out.
 *
 * An agent is told of an errand at least once: at its begin, and after each Hello that does not list it.
 * An agent that died while it ran one therefore runs it again within the rest of the time-out; an errand
 * must be safe to run twice.
 *
 * The store holds errands by uid, which is their order too. It treats all owners alike.
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

/* A report may come this much later than the time-out, if the agent's connection breaks just then. */
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
    struct heap_node due; /* in the store's heap: when it counts as lost */
    struct arena arena;   /* owns the texts */
};

struct errands;

struct errands *errands_new(void);
void errands_free(struct errands *errands); /* NULL is allowed */
void errands_bury(struct errands *errands); /* frees what the last step's effects and ends pointed into */

/* --- for owners ----------------------------------------------------------------------------------------- */

/* Begins an errand and returns its uid. The order is copied. */
obj_id errand_begin(struct step *step, const struct errand_order *order);
/* Cancels an errand, whose end is then not reported. An unknown one is ignored. */
void errand_cancel(struct step *step, obj_id errand);
/* NULL: it has ended, or never was. Valid until the next step. */
const struct errand *errand_find(const struct errands *errands, obj_id errand);

/* --- for core.c ----------------------------------------------------------------------------------------- */

void errands_hello(struct step *step, const struct machine *machine, const struct hello *hello);
void errands_reported(struct step *step, const struct machine *machine, const struct reports *reports);
void errands_machine_lost(struct step *step, const struct machine *machine, struct str evidence);
void errands_cluster(struct step *step); /* called after machines may have left the cluster file */
void errands_tick(struct step *step);
int64_t errands_deadline(const struct errands *errands); /* stamp; INT64_MAX: none */
/* Returns the next end that was not taken yet; false: none. Both results stay valid until the next step of
 * the core. Called until false, before the step ends. */
bool errands_next_end(struct errands *errands, const struct errand **ret_errand, struct errand_end *ret_end);

/* --- for snapshots and audits --------------------------------------------------------------------------- */

size_t errands_count(const struct errands *errands);
const struct errand *errands_at(const struct errands *errands, size_t index); /* by uid */
/* Restores from a snapshot; copies. False: it does not fit (its uid does not follow the last one's). */
bool errands_restore(struct errands *errands, const struct errand *saved);
void errands_check(const struct errands *errands, const struct cluster *cluster); /* aborts through CHECK */

#endif
