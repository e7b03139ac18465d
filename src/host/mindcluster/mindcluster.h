/* mindcluster.h - the JSON objects by which the parts of Huawei's MindCluster (Ascend/mind-cluster) tell
 * each other of devices, faults and ranks, out of ours and back: for tools that were built to read and
 * write them.
 *
 *   export.c   Nodes, Faults and Pods  ->  device-info, node-info, public faults, reset.json, hccl.json
 *   import.c   public faults, device-info, node-info  ->  Faults for our API
 *   import.c   reset.json  ->  Faults where its ranks run
 *   hccl.c     hccl.json  against Pods: where a rank table and the cluster differ
 *   rank.c     which rank of theirs is which chip of which Pod
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
#include "doc/doc.h"
#include "base/error.h"

/* The objects that an export reads. */
struct mindcluster_view {
    const struct doc *faults; /* items of the list of Faults; NULL: none */
    const struct doc *pods;   /* items of a JobSet's Pods: reset.json, hccl.json */
    const char *resource;     /* the name of devices: "Ascend910" */
    int64_t now_s;            /* since 1970 */
};

/* ConfigMap mindx-dl-deviceinfo-NODE of `node` (a Node). */
struct doc *mindcluster_device_info(struct arena *arena, const struct mindcluster_view *view,
                                    const struct doc *node);
/* ConfigMap mindx-dl-nodeinfo-NODE. */
struct doc *mindcluster_node_info(struct arena *arena, const struct mindcluster_view *view,
                                  const struct doc *node);
/* Makes a public-fault message with every open Fault whose code is of the family "public". */
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

/* Tells the kind of an object by its members; nothing is checked. */
enum mindcluster_kind { MINDCLUSTER_OF_FAULTS, MINDCLUSTER_RESET, MINDCLUSTER_HCCL };
enum mindcluster_kind mindcluster_kind(const struct doc *object);
/* The job in the name of a ConfigMap with reset.json (reset-config-JOB) or hccl.json (rings-config-JOB,
 * job-summary-JOB); empty: it is none. Lives as long as the object. */
struct str mindcluster_job(const struct doc *object);

/* Faults out of a reset.json, bare or in its ConfigMap: reset/POLICY at the machine and chip of each rank of
 * `job` (its Pods and all Faults are in `view`) with a policy that asks for something; the end of those made
 * before for ranks that are recovered. Nothing for a rank whose Fault of that policy is open, or that has the
 * policy by other Faults: a second import makes nothing. ERROR_INVALID with the path of the member,
 * ERROR_NOT_FOUND with the ranks that do not exist, ERROR_LIMIT. */
int mindcluster_import_reset(struct arena *arena, const struct mindcluster_view *view, struct str job,
                             const struct doc *object, struct doc **ret_faults, struct error *error);

enum { MINDCLUSTER_RANKS_MAX = 100000 };
struct mindcluster_rank {
    struct str server_id, host_ip, container_ip; /* the last two may be empty */
    int64_t device_id;
};
/* A rank table 1.0 as it was read. */
struct mindcluster_table {
    struct mindcluster_rank *ranks; /* by rank */
    size_t count;
    bool completed;
};
/* Reads one, bare or as data["hccl.json"]. Strict: types, counts, each rank from 0 on once and none left
 * out. ERROR_INVALID with the path of the member, ERROR_LIMIT, ERROR_UNSUPPORTED: another
 * version. */
int mindcluster_read_table(struct arena *arena, const struct doc *object, struct mindcluster_table *ret_table,
                           struct error *error);
/* The JobSet that most of the table's ranks run for, among `pods` of any: same address, same chip. Empty:
 * none, or two of them equally. */
struct str mindcluster_find_job(const struct mindcluster_table *table, const struct doc *pods);
/* Adds a line for each rank that is elsewhere in the cluster (view->pods) than in the table, or only in one
 * of them; a server is the same by its name or the host's address. How many differ. */
size_t mindcluster_compare(const struct mindcluster_view *view, const struct mindcluster_table *table,
                           struct buf *lines);

#endif
