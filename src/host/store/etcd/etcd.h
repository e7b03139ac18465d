/* etcd.h - the controllers' log on etcd: replicated, with one writer at a time.
 *
 * The log is the same as in SQLite (host/store/store.h): records 1, 2, 3 ... with a chain of checksums, and
 * snapshots up to which it is trimmed. It lives under one prefix of an etcd cluster, and any number of
 * controllers read it. One of them leads, and only its appends succeed:
 *
 *     leader key     the controller that takes the lead puts the key, bound to its own lease; etcd removes
 *                    the key when the lease ends. The key's mod revision, the "term", identifies the
 *                    leadership.
 *     append         one transaction: IF the leader key and the head still have the revisions that the writer
 *                    knows THEN put the group and the head. A deposed leader's append changes nothing, even
 *                    if it arrives late. An append that is sent twice takes effect once.
 *     take-over      revoke the old leader's lease, which removes the leader key; then one transaction: IF
 *                    there is no leader key and the head is the one that we know THEN put our leader key, and
 *                    remove groups after the head: parts of appends that were never finished.
 *     hand-over      one transaction of the leader: IF it leads THEN put the leader key in the name of a
 *                    controller that is alive, under that controller's lease.
 * A wrong guess about which controller is alive therefore costs a change of leader and nothing else: taking
 * over is always safe.
 *
 * A follower:
 *     struct etcd_log *log;
 *     rc = etcd_log_open(&options, &log, error);
 *     ... load the snapshot, read the records (log_store.h), then for ever:
 *     while (etcd_watch_wait(watch, until_ns) >= 0) {
 *         etcd_log_refresh(log, &seen, error);
 *         read the records after the last one that was applied
 *         if (!seen.leader_term && etcd_log_lead(log, lease, who, NULL, error) == 1) lead
 *     }
 *
 * Promises, each held by a test (tests/host/store/):
 *   - An append that returned 0 is held by a majority of etcd's members, on disk.
 *   - Reads return a prefix of one history: no record is lost, changed or duplicated. The reader proves this
 *     by numbers and checksums, from record to record, and from the newest record that this log has read or
 *     appended before. ERROR_CORRUPT: the log now holds another history, as after etcd was restored.
 *   - After etcd_log_lead() has returned 1, no other controller's append succeeds while the leadership lasts.
 *   - etcd's alarm NOSPACE loses nothing that was acknowledged; the same append succeeds once it is cleared.
 *
 * Each controller announces itself under its lease, with the level of records that it reads
 * (core/log/record.h). A lease without an announcement belongs to a controller of an earlier release.
 *
 * Errors, besides those of store.h:
 *     ERROR_FENCED       another controller leads, or may lead. The log may hold the records that were being
 *                        appended: this process must not act on them. Open the log again, and follow.
 *     ERROR_UNAVAILABLE  no majority of etcd's members answers
 *     ERROR_DENIED       etcd refuses the user, the password or the certificate
 *
 * Files: client.c the gateway, watch.c, reply.c, txn.c; format.c what is written; log.c reading; append.c;
 * lead.c leases and leadership; replicas.c; snapshot.c; trim.c; port.c the port of log_store.h.
 * docs/formats/etcd.md specifies keys and values.
 *
 * Threading: one thread at a time per log and per lease. Any thread may call etcd_lease_until_ns() and
 * etcd_watch_wake().
 */
#ifndef PHX_HOST_STORE_ETCD_ETCD_H
#define PHX_HOST_STORE_ETCD_ETCD_H

#include "host/store/log_store.h"

enum { ETCD_WHO_MAX = 200, ETCD_PREFIX_MAX = 128, ETCD_VERSION_MAX = 64, ETCD_REPLICAS_MAX = 16 };

/* A zeroed member gives the default, which the comment has in brackets. What the pointers refer to must
 * outlive what is opened with the options. */
struct etcd_options {
    const char *endpoints; /* http://HOST:PORT or https://HOST:PORT, separated by commas; required */
    const char *prefix;    /* prefix of all keys, ends in '/' ["/phalanx/"] */
    /* PEM files: authority of the members' certificates; our certificate, key */
    const char *ca, *cert, *key;
    const char *user, *password;   /* NULL: etcd asks for none */
    const struct store_keys *keys; /* encrypt records and snapshots; NULL: no encryption */
    uint32_t snapshots_keep;       /* newest snapshots to keep, 1 ... 16 [3] */
    uint64_t bytes_max;  /* size of etcd's data in use above which trimming ignores the age limit [1 GiB] */
    uint32_t lease_s;    /* length of a lease; etcd grants at least 1.5 times its election timeout [1] */
    bool restores;       /* appended records come from a copy: marks the log as restored (store_stats) */
    int64_t patience_ns; /* how long a read waits for a member that answers [10 s] */
};

struct etcd_log;
/* Opens a log by reading its head; changes nothing in etcd. ERROR_CORRUPT: what is under the prefix is not a
 * log. ERROR_INVALID, ERROR_LIMIT: the endpoints or the prefix are malformed. */
int etcd_log_open(const struct etcd_options *options, struct etcd_log **ret_log, struct error *error);
void etcd_log_close(struct etcd_log *log); /* does not end the leadership; NULL is fine */
/* Sets how long each later read and announcement waits for a member that answers; 0: as the log was opened.
 * Appends wait until the lease ends. */
void etcd_log_patience(struct etcd_log *log, int64_t patience_ns);

/* The control keys as they were at one moment. */
struct etcd_seen {
    uint64_t first_seq, last_seq;
    int64_t leader_term;    /* identifies the leadership; 0: nobody leads */
    int64_t leader_lease;   /* the lease that it is bound to */
    char who[ETCD_WHO_MAX]; /* the leader's name, as passed to etcd_log_lead() */
    int64_t step_down_term; /* the leadership that was asked to end; 0: none */
};
/* Reads the log's ends and the leader, by a read that a majority confirms. ERROR_CORRUPT: the head is
 * damaged, or the log has lost records that were read here. */
int etcd_log_refresh(struct etcd_log *log, struct etcd_seen *ret_seen, struct error *error);
/* A watch of the control keys, for a follower (client.h). `options` must outlive the watch. */
struct etcd_watch;
int etcd_log_watch(const struct etcd_options *options, struct etcd_watch **ret_watch, struct error *error);
int etcd_watch_wait(struct etcd_watch *watch, int64_t until_ns); /* see client.h */
void etcd_watch_wake(struct etcd_watch *watch);
void etcd_watch_free(struct etcd_watch *watch);

/* --- leadership --------------------------------------------------------------------------------------- */

struct etcd_lease;
/* Obtains a lease from etcd. A separate thread must renew the lease, at least every third of its length. */
int etcd_lease_new(const struct etcd_options *options, struct etcd_lease **ret_lease, struct error *error);
/* Renews the lease. ERROR_FENCED: the lease has ended; obtain a new one. */
int etcd_lease_renew(struct etcd_lease *lease, struct error *error);
/* Returns the CLOCK_MONOTONIC time until which the lease certainly lasts; 0: it has ended. The time counts
 * from before the last renewal was sent, less a tenth of the length for clocks that run at different rates.
 * May be called from any thread. */
int64_t etcd_lease_until_ns(const struct etcd_lease *lease);
int64_t etcd_lease_length_ns(const struct etcd_lease *lease); /* as etcd has granted it */
int64_t etcd_lease_id(const struct etcd_lease *lease);        /* as in struct etcd_seen */
/* Revokes the lease, which ends a leadership bound to it, and frees it. NULL is fine. */
void etcd_lease_end(struct etcd_lease *lease);

/* Takes the lead if nobody leads (`instead_of` NULL), or replaces the leader that the last etcd_log_refresh()
 * has shown: its lease is revoked first, so that it notices. If `instead_of` shows `lease` itself, the leader
 * key is ours: the former leader has handed over to us, or an earlier call, whose answer was lost, has put
 * it. `lease` must outlive the leadership. `who` is our name for the other controllers, shorter than
 * ETCD_WHO_MAX (CHECKed). Returns 1 if we lead: the log's end is then known, and left-overs of unfinished
 * appends are removed. Returns 0 if another controller leads. */
int etcd_log_lead(struct etcd_log *log, struct etcd_lease *lease, struct str who,
                  const struct etcd_seen *instead_of, struct error *error);
int64_t etcd_log_term(const struct etcd_log *log); /* of our leadership; 0: we do not lead */
struct etcd_replica;
/* Gives up the lead, after the last append. It passes to `successor`, which etcd_log_replicas() has shown, if
 * that controller's lease still runs; otherwise, and for NULL, any controller may take it. We do not lead
 * afterwards, whatever is returned. ERROR_FENCED: we had lost the lead before. */
int etcd_log_resign(struct etcd_log *log, const struct etcd_replica *successor, struct error *error);
/* Asks the current leader to hand over, and sets *ret_seen. ERROR_NOT_FOUND: nobody leads. */
int etcd_log_ask_step_down(struct etcd_log *log, struct etcd_seen *ret_seen, struct error *error);

/* --- replicas ----------------------------------------------------------------------------------------- */

/* The announcement of a controller that is alive. */
struct etcd_replica {
    uint32_t reads; /* the highest level of records that the controller reads */
    uint32_t level; /* the log's level, as far as the controller has applied the log */
    char version[ETCD_VERSION_MAX];
    char who[ETCD_WHO_MAX]; /* name, as in the leader key */
    int64_t lease;          /* the lease that the announcement is bound to */
};
struct etcd_replicas {
    struct etcd_replica items[ETCD_REPLICAS_MAX];
    size_t count;
    size_t silent; /* leases without an announcement, and announcements that are unreadable or too many */
};
/* Puts or replaces our announcement, which ends with the lease. ERROR_FENCED: the lease has ended. */
int etcd_log_announce(struct etcd_log *log, struct etcd_lease *lease, const struct etcd_replica *replica,
                      struct error *error);
/* Lists the controllers that are alive. Leases are read before announcements, so a lease that is granted in
 * between counts in the next call. */
int etcd_log_replicas(struct etcd_log *log, struct etcd_replicas *ret_replicas, struct error *error);

/* --- the log ------------------------------------------------------------------------------------------ */

/* Returns the port of host/store/log_store.h to this log. Appending, saving and trimming need the leadership
 * (ERROR_FENCED otherwise). The port's close() closes the log. */
struct log_store etcd_log_store(struct etcd_log *log);

#endif
