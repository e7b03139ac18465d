/* disruption.h - PodDisruptionBudgets: the number of pods that may be evicted, and decisions on evictions.
 *
 * A budget's status is counted at the end of each step that changed the budget, or a pod that it selects, and
 * stored in its document. Replay therefore gives the same status, and watchers see it. A pod is healthy if it
 * runs, is ready and was not told to stop. The expected pods are the existing ones and those that their Jobs
 * still want. Evictions (write_event.evict) are decided one after the other, in the step in which they are
 * applied, so two of them cannot both use the last allowed disruption.
 *
 * Source: Kubernetes, pkg/controller/disruption/disruption.go and
 * pkg/registry/core/pod/storage/eviction.go.
 */
#ifndef PHX_CORE_REACT_DISRUPTION_H
#define PHX_CORE_REACT_DISRUPTION_H

#include "core/write/write.h"

/* Updates the statuses of budgets that this step concerns. Called last in a step. */
void disruptions_count(struct step *step);
/* Returns whether the pod may be evicted now; otherwise leaves a REPLY: 429, or 500 if several budgets select
 * the pod. */
bool disruption_allows(const struct writing *writing, const struct task *task);
/* Checks that the status of every budget is current; aborts through CHECK. */
void disruptions_check(const struct core *core);

#endif
