/* client.h - one connection to an etcd cluster: its HTTP JSON gateway, through libcurl.
 *
 * A call is one POST of a JSON object. The client keeps the connection to the member that answered last, and
 * goes to the next one of the list when a member does not answer in time. So a request may be carried out
 * more than once: callers send only what is safe then (reads, and transactions that compare what they
 * replace).
 *
 *     struct etcd_txn txn = {0};
 *     etcd_txn_begin(&txn);
 *     etcd_txn_if_mod(&txn, key, revision);
 *     etcd_txn_then(&txn);
 *     etcd_txn_put(&txn, key, value, 0);
 *     etcd_txn_else(&txn);
 *     etcd_txn_get(&txn, key);
 *     rc = etcd_txn_run(&txn, client, deadline_ns, &arena, &reply, error);
 *
 * Protocol: https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/. 64-bit numbers are strings in JSON, keys
 * and values base64, and members with a zero value are left out.
 *
 * Errors of calls: ERROR_UNAVAILABLE  no member answered in time: whether the request was carried out is
 * unknown; ERROR_NO_SPACE  etcd's alarm NOSPACE is raised, nothing was written; ERROR_DENIED  user, password
 * or certificate; ERROR_LIMIT  the request is larger than etcd takes; ERROR_NOT_FOUND  no such lease;
 * ERROR_EXISTS  that lease is there already; ERROR_CORRUPT  the answer is not what the protocol says;
 * ERROR_INVALID  anything else that etcd refuses.
 *
 * Threading: one thread at a time per client.
 */
#ifndef PHX_HOST_STORE_ETCD_CLIENT_H
#define PHX_HOST_STORE_ETCD_CLIENT_H

#include "doc/json.h"
#include "host/store/etcd/etcd.h"
#include "host/store/etcd/format.h"

struct etcd_client;

/* Takes the endpoints apart; connects at the first call. `options` must outlive the client. ERROR_INVALID:
 * no endpoint, or one without http:// or https://. */
int etcd_client_new(const struct etcd_options *options, struct etcd_client **ret_client, struct error *error);
void etcd_client_free(struct etcd_client *client); /* NULL is fine */

/* Posts `body` to `path` until a member answers or the monotonic time `deadline_ns` has come. *ret_unsure
 * (may be NULL): before that answer, an attempt had gone unanswered, and may be carried out late. The reply
 * lives in `arena`. */
int etcd_call(struct etcd_client *client, const char *path, struct str body, int64_t deadline_ns,
              struct arena *arena, struct doc **ret_reply, bool *ret_unsure, struct error *error);

int64_t etcd_mono_ns(void); /* CLOCK_MONOTONIC */

/* --- what is in a reply ------------------------------------------------------------------------------- */

int64_t etcd_number(const struct doc *node);    /* 64-bit numbers are strings; absent or no number: 0 */
int64_t etcd_revision(const struct doc *reply); /* of the store when it answered */

struct etcd_pair {
    struct str key, value; /* in the arena */
    int64_t mod_revision, lease;
};
/* Reads the `index`th pair of a range's answer. 1: there; 0: there are fewer; ERROR_CORRUPT. */
int etcd_pair_at(const struct doc *range, size_t index, struct arena *arena, struct etcd_pair *ret_pair,
                 struct error *error);
bool etcd_succeeded(const struct doc *reply); /* a transaction's comparisons held */
/* The answer of a transaction's `index`th operation, a range; NULL: there is none. */
const struct doc *etcd_txn_range(const struct doc *reply, size_t index);

/* --- requests ----------------------------------------------------------------------------------------- */

/* A range request: from `from` to before `to` (empty: that key alone), in order of keys or from the last one
 * back. `limit` 0: all. */
void etcd_range_body(struct buf *out, struct str from, struct str to, size_t limit, bool backwards,
                     bool keys_only);
/* A range in one call; the pairs are read with etcd_pair_at(). */
int etcd_range(struct etcd_client *client, struct str from, struct str to, size_t limit, bool backwards,
               bool keys_only, int64_t deadline_ns, struct arena *arena, struct doc **ret_range,
               struct error *error);

struct etcd_txn {
    struct buf body;
    bool some; /* the list at hand has an entry */
};
void etcd_txn_begin(struct etcd_txn *txn);                                    /* comparisons follow */
void etcd_txn_if_mod(struct etcd_txn *txn, struct str key, int64_t revision); /* 0: there is no such key */
void etcd_txn_then(struct etcd_txn *txn);                                     /* operations follow */
void etcd_txn_else(struct etcd_txn *txn);
void etcd_txn_put(struct etcd_txn *txn, struct str key, struct str value, int64_t lease);
void etcd_txn_delete(struct etcd_txn *txn, struct str from, struct str to); /* as of etcd_range_body() */
void etcd_txn_get(struct etcd_txn *txn, struct str key);
/* Ends the request and sends it; the txn may be begun again. */
int etcd_txn_run(struct etcd_txn *txn, struct etcd_client *client, int64_t deadline_ns, struct arena *arena,
                 struct doc **ret_reply, bool *ret_unsure, struct error *error);
void etcd_txn_done(struct etcd_txn *txn);
#define ETCD_TXN_CLEANUP __attribute__((cleanup(etcd_txn_done)))

/* --- watching ----------------------------------------------------------------------------------------- */

struct etcd_watch;
/* A watch of the keys from `from` to before `to`, which must outlive it. */
int etcd_watch_new(const struct etcd_options *options, struct etcd_key from, struct etcd_key to,
                   struct etcd_watch **ret_watch, struct error *error);
/* 1: something has changed, or may have: the watch has just been set up. 0: nothing until the monotonic time
 * `until_ns`, or etcd_watch_wake() was called. Members that end the watch are left for the next one. */
int etcd_watch_wait(struct etcd_watch *watch, int64_t until_ns);
void etcd_watch_wake(struct etcd_watch *watch); /* from any thread */
void etcd_watch_free(struct etcd_watch *watch); /* NULL is fine */

#endif
