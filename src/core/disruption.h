/* disruption.h - PodDisruptionBudgets: how many pods may be evicted, and whether this one may.
 *
 * A budget's status is counted at the end of each step that changed the budget, or a pod that it selects,
 * and kept in its document: so it is the same after replay, and watchers hear of it. Healthy is a pod that
 * runs, is ready and was not told to stop. Expected are the pods that there are, and those that their Jobs
 * still want. Evictions (write_event.evict) are decided in the step in which they are applied, one after
 * the other, so two of them cannot both use what is left for one.
 *
 * Source: Kubernetes, pkg/controller/disruption/disruption.go and pkg/registry/core/pod/storage/eviction.go.
 */
#ifndef PHX_CORE_DISRUPTION_H
#define PHX_CORE_DISRUPTION_H

#include "core/write.h"

/* After everything else of a step. */
void disruptions_count(struct step *step);
/* May the pod be evicted now? False after a refusal (429). */
bool disruption_allows(const struct writing *writing, const struct task *task);
/* Aborts when a budget's status is not what would be counted now. */
void disruptions_check(const struct core *core);

#endif
