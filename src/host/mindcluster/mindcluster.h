/* mindcluster.h - converts our API objects to and from the JSON objects in which the components of Huawei's
 * MindCluster (Ascend/mind-cluster) exchange devices, faults and ranks, for tools that read and write those.
 *
 *   export.c   Nodes, Faults and Pods  ->  device-info, node-info, public faults, reset.json, hccl.json
 *   import.c   public faults, device-info, node-info  ->  Faults for our API
 *   import.c   reset.json  ->  Faults on the machines of its ranks
 *   hccl.c     hccl.json  against Pods: where a rank table and the cluster differ
 *   rank.c     maps MindCluster's ranks to chips of Pods
 *   levels.c   the names of levels and codes on both sides
 *
 * Inputs are objects as the API returns them (docs/api.md), as documents; results are documents. No function
 * reads a clock or does I/O. Shapes and limits are in docs/mindcluster.md. A "CheckCode" is the SHA-256 of
 * the text of the member beside it.
 *
 * Results live in `arena` and may share nodes with the inputs.
 */
#ifndef PHX_HOST_MINDCLUSTER_MINDCLUSTER_H
#define PHX_HOST_MINDCLUSTER_MINDCLUSTER_H

#include "base/arena.h"
#include "doc/doc.h"
#include "base/error.h"

/* The objects that an export reads. */
struct mindcluster_view {
    const struct doc *faults; /* items of the list of Faults; NULL: none */
    const struct doc *pods;   /* items of a JobSet's Pods: reset.json, hccl.json */
    const char *resource;     /* the name of devices: "Ascend910" */
    int64_t now_s;            /* since 1970 */
};

/* Makes the ConfigMap mindx-dl-deviceinfo-NODE of `node` (a Node). */
struct doc *mindcluster_device_info(struct arena *arena, const struct mindcluster_view *view,
                                    const struct doc *node);
/* Makes the ConfigMap mindx-dl-nodeinfo-NODE. */
struct doc *mindcluster_node_info(struct arena *arena, const struct mindcluster_view *view,
                                  const struct doc *node);
/* Makes a public-fault message with every open Fault whose code is of the family "public". */
struct doc *mindcluster_public_faults(struct arena *arena, const struct mindcluster_view *view);
/* Makes the ConfigMap reset-config-JOB: the ranks of the JobSet's Pods that faults affect. */
struct doc *mindcluster_reset_config(struct arena *arena, const struct mindcluster_view *view,
                                     struct str job);
/* Makes the rank table of the JobSet's Pods, version 1.0. */
struct doc *mindcluster_hccl(struct arena *arena, const struct mindcluster_view *view);

enum { MINDCLUSTER_FAULTS_MAX = 100, MINDCLUSTER_INFLUENCE_MAX = 1000, MINDCLUSTER_DEVICES_MAX = 32 };
/* Makes Faults (an array of objects to be created over the API) from one of MindCluster's objects: a
 * public-fault message, or a ConfigMap with PublicFault, DeviceInfoCfg or NodeInfo in its data. ERROR_INVALID
 * names the path of the wrong member; ERROR_UNSUPPORTED: the object is none of these; ERROR_LIMIT. */
int mindcluster_import(struct arena *arena, const struct doc *object, struct doc **ret_faults,
                       struct error *error);

/* Returns the kind of an object by its members, without checking it. */
enum mindcluster_kind { MINDCLUSTER_OF_FAULTS, MINDCLUSTER_RESET, MINDCLUSTER_HCCL };
enum mindcluster_kind mindcluster_kind(const struct doc *object);
/* Returns the job in the name of a ConfigMap with reset.json (reset-config-JOB) or hccl.json
 * (rings-config-JOB, job-summary-JOB); empty: the name has another form. The text lives as long as the
 * object. */
struct str mindcluster_job(const struct doc *object);

/* Makes Faults from a reset.json, bare or in its ConfigMap. Each rank of `job` whose policy requires an
 * action gets a Fault reset/POLICY at its machine and chip; for recovered ranks, the earlier Fault ends.
 * `view` has the job's Pods and all Faults. A rank that has the policy already, by an open Fault of this or
 * another origin, gets none, so a second import makes nothing. ERROR_INVALID names the path of the member,
 * ERROR_NOT_FOUND the ranks that do not exist; ERROR_LIMIT. */
int mindcluster_import_reset(struct arena *arena, const struct mindcluster_view *view, struct str job,
                             const struct doc *object, struct doc **ret_faults, struct error *error);

enum { MINDCLUSTER_RANKS_MAX = 100000 };
struct mindcluster_rank {
    struct str server_id, host_ip, container_ip; /* the last two may be empty */
    int64_t device_id;
};
/* The contents of a rank table 1.0. */
struct mindcluster_table {
    struct mindcluster_rank *ranks; /* by rank */
    size_t count;
    bool completed;
};
/* Reads a rank table, bare or as data["hccl.json"]. Strict: types and counts must be right, and each rank
 * from 0 on must occur exactly once. ERROR_INVALID names the path of the member; ERROR_UNSUPPORTED: another
 * version; ERROR_LIMIT. */
int mindcluster_read_table(struct arena *arena, const struct doc *object, struct mindcluster_table *ret_table,
                           struct error *error);
/* Returns the JobSet whose Pods, among `pods`, have the address and chip of most of the table's ranks. Empty:
 * no JobSet has any, or two have equally many. */
struct str mindcluster_find_job(const struct mindcluster_table *table, const struct doc *pods);
/* Adds a line for each rank whose place in the cluster (view->pods) and in the table differ, or that only one
 * of them has. A server matches by its name, its host's address or its container's address. Returns how many
 * ranks differ. */
size_t mindcluster_compare(const struct mindcluster_view *view, const struct mindcluster_table *table,
                           struct buf *lines);

#endif
