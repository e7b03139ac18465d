/* etcd.h - the controllers' log on etcd: replicated, with one writer at a time.
 *
 * The log is the same as in SQLite (host/store/store.h): records 1, 2, 3 ... with a chain of checksums, and
 * snapshots behind which it is trimmed. Here it lives under one prefix of an etcd cluster, and any number of
 * controllers read it. One of them leads, and only its appends succeed:
 *
 *     leader key     is put by who takes the lead, bound to its lease, and gone when that ends. Its mod
 *                    revision names this leadership, and is different for each.
 *     append         one transaction: IF the leader key and the head still have the revisions that the writer
 *                    knows THEN put the group and the head. A deposed leader's append changes nothing, even
 *                    if it arrives late, and an append that is sent again changes nothing either.
 *     take-over      the lease of the leader that is to be replaced is revoked, and its key goes with it;
 *                    then one transaction: IF there is no leader key and the head is the one that we know
 *                    THEN put our own, and remove what was appended behind the head without a new one.
 *     hand-over      one transaction of the leader: IF it leads THEN put the leader key in the name of a
 *                    controller that is alive, and under that one's lease.
 * So a wrong guess about who is alive costs a change of the leader and no more: it is always safe to take
 * over.
 *
 * A follower:
 *     struct etcd_log *log;
 *     rc = etcd_log_open(&options, &log, error);
 *     ... load the snapshot, read the records (log_store.h), then for ever:
 *     while (etcd_watch_wait(watch, until_ns) >= 0) {
 *         etcd_log_refresh(log, &seen, error);
 *         read the records behind the last one that was applied
 *         if (!seen.leader_term && etcd_log_lead(log, lease, who, NULL, error) == 1) lead
 *     }
 *
 * Promises, each held by a test (tests/host/store/):
 *   - An append that returned 0 is held by a majority of etcd's members, on disk.
 *   - What is read is a prefix of one history: no record is lost, changed, or there twice; the reader proves
 *     it by numbers and checksums, from record to record, and from the newest one that this log has read or
 *     appended before. ERROR_CORRUPT: the log holds another history now, as after etcd was restored.
 *   - After etcd_log_lead() returned 1, nobody else's append succeeds.
 *   - etcd's alarm NOSPACE costs nothing that was acknowledged; the same append succeeds when it is over.
 *
 * Each controller announces itself under its lease, with the level of records that it reads
 * (core/log/record.h). A lease without an announcement is a controller of a release that had none.
 *
 * Errors, besides those of store.h: ERROR_FENCED  another controller leads, or may: what was being appended
 * is in the log or not, and this process must not act on it; open the log anew, and follow.
 * ERROR_UNAVAILABLE  no majority of etcd's members answers. ERROR_DENIED  user, password or certificate.
 *
 * Files: client.c the gateway, watch.c, reply.c, txn.c; format.c what is written; log.c reading; append.c;
 * lead.c leases and leadership; replicas.c; snapshot.c; trim.c; port.c the port of log_store.h.
 * Keys and values are specified in docs/formats/etcd.md.
 *
 * Threading: one thread at a time per log, and per lease; etcd_lease_until_ns() may be called from any.
 */
#ifndef PHX_HOST_STORE_ETCD_ETCD_H
#define PHX_HOST_STORE_ETCD_ETCD_H

#include "host/store/log_store.h"

enum { ETCD_WHO_MAX = 200, ETCD_PREFIX_MAX = 128, ETCD_VERSION_MAX = 64, ETCD_REPLICAS_MAX = 16 };

/* A zeroed member means: the default. Strings must outlive what is opened with them. */
struct etcd_options {
    const char *endpoints;         /* http://HOST:PORT or https://, several with commas between */
    const char *prefix;            /* of all keys, ends in '/'; "/phalanx/" */
    const char *ca, *cert, *key;   /* PEM files: who signed the members' certificates; our own */
    const char *user, *password;   /* NULL: etcd asks for none */
    const struct store_keys *keys; /* records and snapshots are encrypted with; NULL: not */
    uint32_t snapshots_keep;       /* 1 ... 16; 3 */
    uint64_t bytes_max;  /* of etcd's data in use, above which trimming gives up the age limit; 1 GiB */
    uint32_t lease_s;    /* of the leadership; 1. etcd takes no less than 1.5 times its election timeout */
    bool restores;       /* what is appended comes from a copy: the next leader learns of it (store_stats) */
    int64_t patience_ns; /* how long a read waits for a member that answers; 10 s */
};

struct etcd_log;
/* Reads the head, and changes nothing. ERROR_CORRUPT: what is under the prefix is no log. */
int etcd_log_open(const struct etcd_options *options, struct etcd_log **ret_log, struct error *error);
void etcd_log_close(struct etcd_log *log); /* keeps the leadership, if it has it; NULL is fine */
/* How long each read and each announcement waits for a member that answers, from now on; 0: as the log was
 * opened. Appends wait until the lease ends. */
void etcd_log_patience(struct etcd_log *log, int64_t patience_ns);

/* The control keys as they were at one moment. */
struct etcd_seen {
    uint64_t first_seq, last_seq;
    int64_t leader_term;    /* names the leadership; 0: nobody leads */
    int64_t leader_lease;   /* that it is bound to */
    char who[ETCD_WHO_MAX]; /* what the leader said of itself */
    int64_t step_down_term; /* the leadership that is asked to end; 0: none is */
};
/* Looks at the log's ends and at who leads, by a read that a majority stands behind. */
int etcd_log_refresh(struct etcd_log *log, struct etcd_seen *ret_seen, struct error *error);
/* The keys that a follower's watch is for (client.h). */
struct etcd_watch;
int etcd_log_watch(const struct etcd_options *options, struct etcd_watch **ret_watch, struct error *error);
int etcd_watch_wait(struct etcd_watch *watch, int64_t until_ns); /* see client.h */
void etcd_watch_wake(struct etcd_watch *watch);
void etcd_watch_free(struct etcd_watch *watch);

/* --- leadership --------------------------------------------------------------------------------------- */

struct etcd_lease;
/* Asks for a lease. It must be renewed every third of its time, by a thread of its own. */
int etcd_lease_new(const struct etcd_options *options, struct etcd_lease **ret_lease, struct error *error);
/* ERROR_FENCED: it has ended; take a new one. */
int etcd_lease_renew(struct etcd_lease *lease, struct error *error);
/* The monotonic time until which it certainly lasts, counted from before the last renewal was sent and with a
 * tenth taken off for clocks of another pace; 0: it has ended. From any thread. */
int64_t etcd_lease_until_ns(const struct etcd_lease *lease);
int64_t etcd_lease_length_ns(const struct etcd_lease *lease); /* as etcd has granted it */
int64_t etcd_lease_id(const struct etcd_lease *lease);        /* as in struct etcd_seen */
/* Ends it at once, and the leadership with it, then frees it; NULL is fine. */
void etcd_lease_end(struct etcd_lease *lease);

/* Takes the lead if nobody has it (`instead_of` NULL), or from the leader that was seen by the last look;
 * its lease is revoked first, so that it learns of that. A leader key that was seen under `lease` itself is
 * ours: the leader before has handed over to us, or an earlier call, whose answer was lost, has put it.
 * `lease` must outlive our leadership. 1: we lead: the log's end is known, and the keys of appends that were
 * never finished are gone. 0: another one leads. `who`: up to ETCD_WHO_MAX - 1 bytes for the others. */
int etcd_log_lead(struct etcd_log *log, struct etcd_lease *lease, struct str who,
                  const struct etcd_seen *instead_of, struct error *error);
int64_t etcd_log_term(const struct etcd_log *log); /* of our leadership; 0: we do not lead */
struct etcd_replica;
/* Gives the lead up, after the last append: to `successor` if its lease still runs, as etcd_log_replicas()
 * has shown it; else, and with NULL, to whoever takes it. ERROR_FENCED: we did not have it any more. */
int etcd_log_resign(struct etcd_log *log, const struct etcd_replica *successor, struct error *error);
/* Asks whoever leads now to hand over. ERROR_NOT_FOUND: nobody leads. */
int etcd_log_ask_step_down(struct etcd_log *log, struct etcd_seen *ret_seen, struct error *error);

/* --- replicas ----------------------------------------------------------------------------------------- */

/* The announcement of a controller that is alive. */
struct etcd_replica {
    uint32_t reads; /* the highest level of records that it reads */
    uint32_t level; /* of the log, as far as it has applied that */
    char version[ETCD_VERSION_MAX];
    char who[ETCD_WHO_MAX]; /* as of the leader key */
    int64_t lease;          /* that the announcement ends with */
};
struct etcd_replicas {
    struct etcd_replica items[ETCD_REPLICAS_MAX];
    size_t count;
    size_t silent; /* leases without an announcement, and announcements that cannot be read or are too many */
};
/* Puts or replaces our announcement, which ends with the lease. */
int etcd_log_announce(struct etcd_log *log, struct etcd_lease *lease, const struct etcd_replica *replica,
                      struct error *error);
/* Looks at who is alive. Leases are asked for first: one that is granted meanwhile counts next time. */
int etcd_log_replicas(struct etcd_log *log, struct etcd_replicas *ret_replicas, struct error *error);

/* --- the log ------------------------------------------------------------------------------------------ */

/* The port of host/store/log_store.h. Appending, saving and trimming need the leadership (ERROR_FENCED).
 * Closing it closes the log. */
struct log_store etcd_log_store(struct etcd_log *log);

#endif
