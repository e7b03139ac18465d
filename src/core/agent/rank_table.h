/* rank_table.h - the files and variables by which a task finds its gang, made from the gang's rank table.
 *
 * Hosts: lines of hosts(5). For each rank the address with its names, the full one first:
 *     127.0.0.11  work-0.train.default.svc.cluster.local work-0.train work-0
 * (<hostname>.<subdomain>.<namespace>.svc.cluster.local as Kubernetes' DNS names Pods of a headless
 * service, https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/), before them
 * "127.0.0.1 localhost".
 *
 * Rank table: hccl.json of version 1.0, all numbers as strings: servers (machines) in the order of their
 * lowest rank, each with its devices. A device's rank_id counts the chips of the gang in the order of
 * ranks, so it equals the rank where every task has one chip. A gang without chips gives servers without
 * devices.
 *
 * Host names: "<hostname>.<subdomain>" of each entry, commas between (TPU_WORKER_HOSTNAMES).
 *
 * A START that refers to a RANK_TABLE is the same without the rank table and without the values of variables
 * that are its host names: rank_table_take_out removes them from a START, rank_table_put_back restores them.
 * Both change the variables where they are.
 *
 * Entries whose names or addresses hold white space or control characters are left out of both files.
 * Pure.
 */
#ifndef PHX_CORE_AGENT_RANK_TABLE_H
#define PHX_CORE_AGENT_RANK_TABLE_H

#include "core/agent/message.h"

void rank_table_write_hosts(struct buf *out, const struct gang_rank_table *rank_table);
void rank_table_write_json(struct buf *out, const struct gang_rank_table *rank_table);
void rank_table_write_host_names(struct buf *out, const struct gang_rank_table *rank_table);

void rank_table_take_out(struct task_launch *launch, uint64_t number);
void rank_table_put_back(struct task_launch *launch, const struct gang_rank_table *rank_table,
                         struct str host_names);

#endif
