/* visibility.h - visibility.kueue.x-k8s.io: the workloads that wait in a queue, with their places. Private to
 * api.
 *
 *     /apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/NAME/pendingworkloads
 *     /apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/NS/localqueues/NAME/pendingworkloads
 *
 * ?offset=N (default 0) and ?limit=N (default PENDING_DEFAULT) select a part of the list. Source:
 * kubernetes-sigs/kueue, apis/visibility.
 */
#ifndef PHX_HOST_API_VISIBILITY_H
#define PHX_HOST_API_VISIBILITY_H

#include "host/api/request.h"

enum { PENDING_DEFAULT = 1000 };

/* Answers with a PendingWorkloadsSummary; with 404 if there is no such queue, 400 if offset or limit is not a
 * number, 405 if the method is not GET. */
void handle_pending(struct api_request *request);

#endif
