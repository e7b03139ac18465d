/* mindcluster.h - the JSON objects by which the parts of Huawei's MindCluster (Ascend/mind-cluster) tell
 * each other of devices, faults and ranks, out of ours and back: for tools that were built to read and
 * write them.
 *
 *   export.c   Nodes, Faults and Pods  ->  device-info, node-info, public faults, reset.json, hccl.json
 *   import.c   public faults, device-info, node-info  ->  Faults for our API
 *   levels.c   the names of levels and codes on both sides
 *
 * What goes in is what the API gives (docs/api.md), as documents; what comes out are documents. Nothing
 * here reads a clock or talks to anybody. Shapes and limits are in docs/mindcluster.md; where theirs has
 * a "CheckCode" it is the SHA-256 of the text of the member beside it.
 *
 * Results live in `arena` and may share parts of what went in.
 */
#ifndef PHX_HOST_MINDCLUSTER_MINDCLUSTER_H
#define PHX_HOST_MINDCLUSTER_MINDCLUSTER_H

#include "base/arena.h"
#include "base/doc.h"
#include "base/error.h"

/* What an export looks at. */
struct mindcluster_view {
    const struct doc *faults; /* items of the list of Faults; NULL: none */
    const struct doc *pods;   /* items of a JobSet's Pods: reset.json, hccl.json */
    const char *resource;     /* what devices are called: "Ascend910" */
    int64_t now_s;            /* since 1970 */
};

/* ConfigMap mindx-dl-deviceinfo-NODE of `node` (a Node). */
struct doc *mindcluster_device_info(struct arena *arena, const struct mindcluster_view *view,
                                    const struct doc *node);
/* ConfigMap mindx-dl-nodeinfo-NODE. */
struct doc *mindcluster_node_info(struct arena *arena, const struct mindcluster_view *view,
                                  const struct doc *node);
/* One public-fault message with every open Fault whose code is of the family "public". */
struct doc *mindcluster_public_faults(struct arena *arena, const struct mindcluster_view *view);
/* ConfigMap reset-config-JOB: the ranks of the JobSet's Pods that faults are at. */
struct doc *mindcluster_reset_config(struct arena *arena, const struct mindcluster_view *view,
                                     struct str job);
/* The rank table of the JobSet's Pods, version 1.0. */
struct doc *mindcluster_hccl(struct arena *arena, const struct mindcluster_view *view);

enum { MINDCLUSTER_FAULTS_MAX = 100, MINDCLUSTER_INFLUENCE_MAX = 1000, MINDCLUSTER_DEVICES_MAX = 32 };
/* Faults (an array of objects to be created over the API) out of one of their objects: a public-fault
 * message, or a ConfigMap with PublicFault, DeviceInfoCfg or NodeInfo in its data. ERROR_INVALID with the
 * path of the member that is wrong, ERROR_LIMIT, ERROR_UNSUPPORTED: it is none of them. */
int mindcluster_import(struct arena *arena, const struct doc *object, struct doc **ret_faults,
                       struct error *error);

#endif
