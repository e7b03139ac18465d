/* client.h - one connection to an etcd cluster: its HTTP JSON gateway, through libcurl.
 *
 * A call is one POST of a JSON object. The client keeps the connection to the member that answered last, and
 * tries the next member of the list when one does not answer in time. A request may therefore be carried out
 * more than once: send only requests for which that is safe (reads, and transactions that compare what they
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
 * Errors of calls:
 *     ERROR_UNAVAILABLE  no member answered in time: the request may have been carried out, or not
 *     ERROR_NO_SPACE     etcd's alarm NOSPACE is raised: nothing was written
 *     ERROR_DENIED       etcd refuses the user, the password or the certificate
 *     ERROR_LIMIT        the request is larger than etcd takes, or the answer is too large
 *     ERROR_NOT_FOUND    there is no such lease
 *     ERROR_EXISTS       that lease exists already
 *     ERROR_CORRUPT      the answer does not follow the protocol
 *     ERROR_INVALID      etcd refuses the request for any other reason
 *
 * Threading: one thread at a time per client.
 */
#ifndef PHX_HOST_STORE_ETCD_CLIENT_H
#define PHX_HOST_STORE_ETCD_CLIENT_H

#include "doc/json.h"
#include "host/store/etcd/etcd.h"
#include "host/store/etcd/format.h"

struct etcd_client;

/* Makes a client, which connects at its first call. `options` must outlive the client. ERROR_INVALID: no
 * endpoint is given, or one lacks http:// or https://. */
int etcd_client_new(const struct etcd_options *options, struct etcd_client **ret_client, struct error *error);
void etcd_client_free(struct etcd_client *client); /* NULL is fine */

/* Posts `body` to `path` until a member answers or the CLOCK_MONOTONIC time `deadline_ns` has come. The reply
 * lives in `arena`. Sets *ret_unsure (may be NULL) to whether another attempt was not answered, and so may be
 * carried out late. */
int etcd_call(struct etcd_client *client, const char *path, struct str body, int64_t deadline_ns,
              struct arena *arena, struct doc **ret_reply, bool *ret_unsure, struct error *error);

int64_t etcd_mono_ns(void); /* CLOCK_MONOTONIC */

/* --- replies ------------------------------------------------------------------------------------------ */

int64_t etcd_number(const struct doc *node);    /* a 64-bit number as a string; 0 if absent or malformed */
int64_t etcd_revision(const struct doc *reply); /* of etcd's store at the time of the answer */

struct etcd_pair {
    struct str key, value; /* in the arena */
    int64_t mod_revision, lease;
};
/* Reads the `index`th pair of a range's answer into `arena`. Returns 1, or 0 if the answer has fewer pairs.
 * ERROR_CORRUPT: the pair is malformed. */
int etcd_pair_at(const struct doc *range, size_t index, struct arena *arena, struct etcd_pair *ret_pair,
                 struct error *error);
bool etcd_succeeded(const struct doc *reply); /* whether a transaction's comparisons held */
/* Returns the answer of a transaction's `index`th operation, a range, or NULL if there is none. */
const struct doc *etcd_txn_range(const struct doc *reply, size_t index);

/* --- requests ----------------------------------------------------------------------------------------- */

/* Appends a range request to `out`: the keys from `from` up to, not including, `to` (empty: the key `from`
 * alone), at most `limit` of them (0: all), in the order of keys or backwards. */
void etcd_range_body(struct buf *out, struct str from, struct str to, size_t limit, bool backwards,
                     bool keys_only);
/* Sends a range request. Read the pairs of *ret_range with etcd_pair_at(). */
int etcd_range(struct etcd_client *client, struct str from, struct str to, size_t limit, bool backwards,
               bool keys_only, int64_t deadline_ns, struct arena *arena, struct doc **ret_range,
               struct error *error);

struct etcd_txn {
    struct buf body;
    bool some; /* the current list has an entry */
};
void etcd_txn_begin(struct etcd_txn *txn);                                    /* comparisons follow */
void etcd_txn_if_mod(struct etcd_txn *txn, struct str key, int64_t revision); /* 0: the key is absent */
void etcd_txn_then(struct etcd_txn *txn);                                     /* operations follow */
void etcd_txn_else(struct etcd_txn *txn);                                     /* operations follow */
void etcd_txn_put(struct etcd_txn *txn, struct str key, struct str value, int64_t lease); /* 0: no lease */
void etcd_txn_delete(struct etcd_txn *txn, struct str from, struct str to); /* range as etcd_range_body() */
void etcd_txn_get(struct etcd_txn *txn, struct str key);
/* Ends the request and sends it, as etcd_call(). The txn may be begun again. */
int etcd_txn_run(struct etcd_txn *txn, struct etcd_client *client, int64_t deadline_ns, struct arena *arena,
                 struct doc **ret_reply, bool *ret_unsure, struct error *error);
void etcd_txn_done(struct etcd_txn *txn);
#define ETCD_TXN_CLEANUP __attribute__((cleanup(etcd_txn_done)))

/* --- watching ----------------------------------------------------------------------------------------- */

struct etcd_watch;
/* Makes a watch of the keys from `from` up to, not including, `to`. `options` must outlive the watch. */
int etcd_watch_new(const struct etcd_options *options, struct etcd_key from, struct etcd_key to,
                   struct etcd_watch **ret_watch, struct error *error);
/* Waits for a change. Returns 1 if a key has changed, or may have: a stream was just opened. Returns 0 at the
 * CLOCK_MONOTONIC time `until_ns`, or after etcd_watch_wake(). When a member ends the stream, the watch moves
 * to the next member. */
int etcd_watch_wait(struct etcd_watch *watch, int64_t until_ns);
void etcd_watch_wake(struct etcd_watch *watch); /* from any thread */
void etcd_watch_free(struct etcd_watch *watch); /* NULL is fine */

#endif
