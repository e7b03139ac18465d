/* disruption.h - PodDisruptionBudgets: how many pods may be evicted, and whether this one may.
 *
 * A budget's status is counted at the end of each step that changed the budget, or a pod that it selects,
 * and stored in its document: so it is the same after replay, and watchers see it. A pod is healthy if it
 * runs, is ready and was not told to stop. The expected pods are the existing ones, and those that their
 * Jobs still want. Evictions (write_event.evict) are decided in the step in which they are applied, one
 * after the other, so two of them cannot both use the room for one.
 *
 * Source: Kubernetes, pkg/controller/disruption/disruption.go and
 * pkg/registry/core/pod/storage/eviction.go.
 */
#ifndef PHX_CORE_REACT_DISRUPTION_H
#define PHX_CORE_REACT_DISRUPTION_H

#include "core/write/write.h"

/* Called last in a step. */
void disruptions_count(struct step *step);
/* Whether the pod may be evicted now. False: a refusal (429) was replied. */
bool disruption_allows(const struct writing *writing, const struct task *task);
/* Aborts if a budget's status differs from the status of now. */
void disruptions_check(const struct core *core);

#endif
