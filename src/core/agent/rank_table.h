/* rank_table.h - the files and variables by which a task finds its gang, made from the gang's rank table.
 *
 * Hosts: lines of hosts(5). After those of localhost, each rank has a line with its address and its names,
 * the full name first:
 *     127.0.0.11  work-0.train.default.svc.cluster.local work-0.train work-0
 * The full name is <hostname>.<subdomain>.<namespace>.svc.cluster.local, as Kubernetes' DNS names Pods of a
 * headless service (https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/).
 *
 * Rank table: hccl.json of version 1.0, with all numbers as strings. It lists servers (machines) in the order
 * of their lowest rank, each with its devices. A device's rank_id counts the chips of the gang in the order
 * of ranks, so it equals the rank where every task has one chip. The servers of a gang without chips have no
 * devices.
 *
 * Host names: "<hostname>.<subdomain>" of each entry, separated by commas (TPU_WORKER_HOSTNAMES).
 *
 * Both files leave out entries whose names or addresses are empty, or contain white space or control
 * characters.
 *
 * A START that refers to a RANK_TABLE lacks the rank table and the values of the variables that are its host
 * names. rank_table_take_out removes both from a START, rank_table_put_back restores them. Both functions
 * change the launch's variables in place. Pure.
 */
#ifndef PHX_CORE_AGENT_RANK_TABLE_H
#define PHX_CORE_AGENT_RANK_TABLE_H

#include "core/agent/message.h"

/* Append the hosts file, the rank table as JSON, and the list of host names. */
void rank_table_write_hosts(struct buf *out, const struct gang_rank_table *rank_table);
void rank_table_write_json(struct buf *out, const struct gang_rank_table *rank_table);
void rank_table_write_host_names(struct buf *out, const struct gang_rank_table *rank_table);

/* `number` is that of the RANK_TABLE, not 0. `host_names` is what rank_table_write_host_names wrote. The
 * launch then points into `rank_table` and `host_names`. */
void rank_table_take_out(struct task_launch *launch, uint64_t number);
void rank_table_put_back(struct task_launch *launch, const struct gang_rank_table *rank_table,
                         struct str host_names);

#endif
