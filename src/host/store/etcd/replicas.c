/* replicas.c - the controllers that are alive, and their announcements. */
#include "host/store/etcd/internal.h"

int etcd_log_announce(struct etcd_log *log, struct etcd_lease *lease, const struct etcd_replica *replica,
                      struct error *error)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 1 << 20};
    struct etcd_txn txn ETCD_TXN_CLEANUP = {0};
    struct buf line BUF_CLEANUP = {0};
    struct etcd_key key = etcd_key_of(log->options.prefix, ETCD_REPLICA, (uint64_t)etcd_lease_id(lease), 0);
    struct doc *reply;
    etcd_replica_write(replica, &line);
    etcd_txn_begin(&txn);
    etcd_txn_then(&txn);
    etcd_txn_put(&txn, etcd_key_str(&key), buf_str(&line), etcd_lease_id(lease));
    int rc = etcd_txn_run(&txn, log->client, etcd_deadline(log), &arena, &reply, NULL, error);
    if (rc == ERROR_NOT_FOUND)
        return error_set(error, ERROR_FENCED, "the lease in etcd has ended");
    return rc < 0 ? error_wrap(error, "announcing this controller in etcd") : 0;
}

/* Returns whether an announcement in the range is bound to this lease. */
static bool lease_is_announced(const struct doc *range, int64_t id, struct arena *arena)
{
    struct etcd_pair pair;
    for (size_t i = 0; etcd_pair_at(range, i, arena, &pair, NULL) > 0; i++)
        if (pair.lease == id)
            return true;
    return false;
}

int etcd_log_replicas(struct etcd_log *log, struct etcd_replicas *ret_replicas, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 4 << 20};
    struct etcd_key from = etcd_key_of(log->options.prefix, ETCD_REPLICA, 0, 0);
    struct etcd_key to = etcd_key_end(log->options.prefix, ETCD_REPLICA);
    struct etcd_replicas replicas = {0};
    struct etcd_pair pair;
    struct doc *leases, *range;
    int rc = etcd_call(log->client, "/v3/lease/leases", STR("{}"), etcd_deadline(log), &arena, &leases, NULL,
                       error);
    if (rc == 0)
        rc = etcd_range(log->client, etcd_key_str(&from), etcd_key_str(&to), 0, false, false,
                        etcd_deadline(log), &arena, &range, error);
    if (rc < 0)
        return error_wrap(error, "looking at the controllers in etcd");
    for (size_t i = 0; (rc = etcd_pair_at(range, i, &arena, &pair, error)) > 0; i++)
        if (replicas.count < ETCD_REPLICAS_MAX &&
            etcd_replica_read(pair.value, &replicas.items[replicas.count]))
            replicas.items[replicas.count++].lease = pair.lease;
        else
            replicas.silent++;
    const struct doc *list = doc_get(leases, "leases");
    for (size_t i = 0; rc == 0 && i < doc_len(list); i++)
        replicas.silent += !lease_is_announced(range, etcd_number(doc_get(doc_at(list, i), "ID")), &arena);
    if (rc == 0)
        *ret_replicas = replicas;
    return rc;
}
