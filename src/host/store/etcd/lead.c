/* lead.c - leases and leadership. */
#include <inttypes.h>
#include <stdatomic.h>
#include <sys/random.h>

#include "base/units.h"
#include "host/store/etcd/internal.h"

/* A renewal waits no longer than this for an answer, so that the renewing thread can be stopped in time. */
#define RENEW_NS NS_PER_SECOND

struct etcd_lease {
    struct etcd_options options;
    struct etcd_client *client;
    int64_t id, length_ns;
    _Atomic int64_t until_ns;
};

/* --- leases ------------------------------------------------------------------------------------------- */

/* Sets until when the lease lasts. `asked_ns`: time before the request was sent. A tenth is subtracted for
 * clocks that run at different rates. */
static void lease_lasts(struct etcd_lease *lease, int64_t seconds, int64_t asked_ns)
{
    lease->length_ns = seconds * NS_PER_SECOND;
    atomic_store(&lease->until_ns, asked_ns + lease->length_ns - lease->length_ns / 10);
}

static int lease_grant(struct etcd_lease *lease, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 1 << 20};
    struct buf body BUF_CLEANUP = {0};
    struct doc *reply = NULL;
    int64_t asked_ns = etcd_mono_ns(), seconds = lease->options.lease_s;
    buf_printf(&body, "{\"TTL\":\"%" PRId64 "\",\"ID\":\"%" PRId64 "\"}", seconds, lease->id);
    int rc = etcd_call(lease->client, "/v3/lease/grant", buf_str(&body),
                       asked_ns + lease->options.patience_ns, &arena, &reply, NULL, error);
    if (rc == ERROR_EXISTS) /* an earlier attempt went through: a renewal tells how long the lease lasts */
        return etcd_lease_renew(lease, error);
    if (rc < 0)
        return rc;
    int64_t granted = etcd_number(doc_get(reply, "TTL"));
    if (granted <= 0)
        return error_set(error, ERROR_CORRUPT, "etcd granted a lease of no length");
    lease_lasts(lease, granted, asked_ns);
    return 0;
}

/* Requests leases until one is granted in time. A lease whose answer was lost or late may have ended before
 * we learned of it. */
static int lease_take(struct etcd_lease *lease, struct error *error)
{
    int64_t deadline_ns = etcd_mono_ns() + lease->options.patience_ns;
    int rc;
    do {
        uint64_t bits = 0;
        CHECK(getrandom(&bits, sizeof bits, 0) == sizeof bits);
        lease->id = (int64_t)(bits >> 1 | 1);
        rc = lease_grant(lease, error);
    } while (rc == ERROR_FENCED && etcd_mono_ns() < deadline_ns);
    return rc == ERROR_FENCED ? error_set(error, ERROR_UNAVAILABLE, "etcd answers too late for its lease")
                              : rc;
}

int etcd_lease_new(const struct etcd_options *options, struct etcd_lease **ret_lease, struct error *error)
{
    struct etcd_lease *lease = mem_alloc(sizeof *lease);
    lease->options = *options;
    etcd_options_fill(&lease->options);
    int rc = etcd_client_new(&lease->options, &lease->client, error);
    if (rc == 0)
        rc = lease_take(lease, error);
    if (rc < 0) {
        etcd_client_free(lease->client);
        mem_free(lease);
        return error_wrap(error, "asking etcd for a lease");
    }
    *ret_lease = lease;
    return 0;
}

int etcd_lease_renew(struct etcd_lease *lease, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 1 << 20};
    struct buf body BUF_CLEANUP = {0};
    struct doc *reply = NULL;
    int64_t asked_ns = etcd_mono_ns(), until_ns = atomic_load(&lease->until_ns);
    buf_printf(&body, "{\"ID\":\"%" PRId64 "\"}", lease->id);
    if (until_ns <= asked_ns || until_ns > asked_ns + RENEW_NS)
        until_ns = asked_ns + RENEW_NS;
    int rc = etcd_call(lease->client, "/v3/lease/keepalive", buf_str(&body), until_ns, &arena, &reply, NULL,
                       error);
    if (rc < 0 && rc != ERROR_NOT_FOUND)
        return rc;
    int64_t seconds = rc == 0 ? etcd_number(doc_path(reply, "result", "TTL", NULL)) : 0;
    if (seconds <= 0) {
        atomic_store(&lease->until_ns, 0);
        return error_set(error, ERROR_FENCED, "the lease in etcd has ended");
    }
    lease_lasts(lease, seconds, asked_ns);
    return 0;
}

int64_t etcd_lease_until_ns(const struct etcd_lease *lease)
{
    return atomic_load(&lease->until_ns);
}

int64_t etcd_lease_id(const struct etcd_lease *lease)
{
    return lease->id;
}

int64_t etcd_lease_length_ns(const struct etcd_lease *lease)
{
    return lease->length_ns;
}

/* Revokes any lease. A lease that has ended already counts as success. */
static int lease_revoke(struct etcd_client *client, int64_t id, int64_t deadline_ns, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 1 << 20};
    struct buf body BUF_CLEANUP = {0};
    struct doc *reply;
    buf_printf(&body, "{\"ID\":\"%" PRId64 "\"}", id);
    int rc = etcd_call(client, "/v3/lease/revoke", buf_str(&body), deadline_ns, &arena, &reply, NULL, error);
    return rc == ERROR_NOT_FOUND ? 0 : rc;
}

void etcd_lease_end(struct etcd_lease *lease)
{
    if (!lease)
        return;
    atomic_store(&lease->until_ns, 0);
    (void)lease_revoke(lease->client, lease->id, etcd_mono_ns() + NS_PER_SECOND, NULL);
    etcd_client_free(lease->client);
    mem_free(lease);
}

/* --- leadership --------------------------------------------------------------------------------------- */

/* Removes groups that an earlier leader began to append but that have no head. Requires a transaction that
 * compares the head we know: otherwise a late attempt would remove later appends. */
static void txn_drop_left_overs(struct etcd_txn *txn, const struct etcd_log *log)
{
    struct etcd_key from = etcd_key_behind(log->options.prefix, ETCD_GROUP, log->head.last_seq);
    struct etcd_key to = etcd_key_end(log->options.prefix, ETCD_GROUP);
    etcd_txn_delete(txn, etcd_key_str(&from), etcd_key_str(&to));
}

/* Gives the lead to a lease, if the transaction's comparisons hold. */
static void txn_put_leader(struct etcd_txn *txn, const struct etcd_log *log, struct str who, int64_t lease)
{
    struct etcd_key leader = etcd_key_of(log->options.prefix, ETCD_LEADER, 0, 0);
    struct etcd_key step_down = etcd_key_of(log->options.prefix, ETCD_STEP_DOWN, 0, 0);
    etcd_txn_put(txn, etcd_key_str(&leader), who, lease);
    etcd_txn_delete(txn, etcd_key_str(&step_down), (struct str){0});
    txn_drop_left_overs(txn, log);
}

/* Runs the transaction that takes the lead, if the log ends where we believe. Otherwise the reply has the
 * head and the leader of that moment. */
static int try_lead(struct etcd_log *log, struct etcd_lease *lease, struct str who, int64_t instead_of,
                    struct arena *arena, struct doc **ret_reply, struct error *error)
{
    struct etcd_txn txn ETCD_TXN_CLEANUP = {0};
    struct etcd_key leader = etcd_key_of(log->options.prefix, ETCD_LEADER, 0, 0);
    struct etcd_key head = etcd_key_of(log->options.prefix, ETCD_HEAD, 0, 0);
    etcd_txn_begin(&txn);
    etcd_txn_if_mod(&txn, etcd_key_str(&leader), instead_of);
    etcd_txn_if_mod(&txn, etcd_key_str(&head), log->head_mod);
    etcd_txn_then(&txn);
    txn_put_leader(&txn, log, who, lease->id);
    etcd_txn_else(&txn);
    etcd_txn_get(&txn, etcd_key_str(&head));
    etcd_txn_get(&txn, etcd_key_str(&leader));
    return etcd_txn_run(&txn, log->client, etcd_lease_until_ns(lease), arena, ret_reply, NULL, error);
}

/* Records that we lead. The head that we know stays valid, as only we change it. */
static void leads_from(struct etcd_log *log, struct etcd_lease *lease, int64_t term)
{
    log->term = term;
    log->lease = lease;
    log->revision = term;
    log->left_overs = true;
    log->left_parts = 0;
}

/* Tries until the log has not grown in between, or another controller leads. Returns as etcd_log_lead(). */
static int take_lead(struct etcd_log *log, struct etcd_lease *lease, struct str who, int64_t instead_of,
                     struct error *error)
{
    while (true) {
        struct arena arena ARENA_CLEANUP = {0};
        struct etcd_pair pair = {0};
        struct doc *reply;
        int rc = try_lead(log, lease, who, instead_of, &arena, &reply, error);
        if (rc < 0)
            return rc;
        if (etcd_succeeded(reply)) {
            leads_from(log, lease, etcd_revision(reply));
            return 1;
        }
        rc = etcd_take_head(log, etcd_txn_range(reply, 0), &arena, error);
        if (rc == 0)
            rc = etcd_pair_at(etcd_txn_range(reply, 1), 0, &arena, &pair, error);
        if (rc < 0)
            return rc;
        if (rc > 0 && pair.lease == lease->id && pair.mod_revision != instead_of) {
            /* an earlier attempt of ours has put the key */
            leads_from(log, lease, pair.mod_revision);
            return 1;
        }
        if (pair.mod_revision != instead_of)
            return 0;
    }
}

int etcd_log_lead(struct etcd_log *log, struct etcd_lease *lease, struct str who,
                  const struct etcd_seen *instead_of, struct error *error)
{
    CHECK(who.len < ETCD_WHO_MAX);
    log->term = 0;
    bool ours = instead_of && instead_of->leader_lease == lease->id;
    if (ours && instead_of->leader_term != log->fenced) {
        leads_from(log, lease, instead_of->leader_term);
        return 1;
    }
    /* Records that we appended under a lost leadership may still arrive; under the next leadership they
     * cannot. */
    bool over = instead_of && instead_of->leader_lease && !ours;
    int rc = 0;
    if (over) /* first, so that a live leader notices even if we die at this point */
        rc = lease_revoke(log->client, instead_of->leader_lease, etcd_lease_until_ns(lease), error);
    if (rc == 0)
        rc = take_lead(log, lease, who, instead_of && !over ? instead_of->leader_term : 0, error);
    return rc < 0 ? error_wrap(error, "taking the lead") : rc;
}

int64_t etcd_log_term(const struct etcd_log *log)
{
    return log->term;
}

/* Puts the successor into the leader key; NULL: deletes the key. ERROR_NOT_FOUND: the successor's lease has
 * ended, and we still lead. */
static int try_resign(struct etcd_log *log, const struct etcd_replica *successor, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct etcd_txn txn ETCD_TXN_CLEANUP = {0};
    struct etcd_key leader = etcd_key_of(log->options.prefix, ETCD_LEADER, 0, 0);
    struct etcd_pair pair;
    struct doc *reply;
    bool held;
    if (successor) {
        etcd_txn_head(&txn, log);
        txn_put_leader(&txn, log, str_from(successor->who), successor->lease);
    } else {
        etcd_txn_lead(&txn, log);
        etcd_txn_then(&txn);
        etcd_txn_delete(&txn, etcd_key_str(&leader), (struct str){0});
    }
    etcd_txn_else(&txn);
    etcd_txn_get(&txn, etcd_key_str(&leader));
    int rc = etcd_txn_lead_run(&txn, log, &arena, &reply, &held, error);
    if (rc < 0 || held)
        return rc;
    /* If the key is absent, or the successor's, an earlier attempt of ours went through. */
    rc = etcd_pair_at(etcd_txn_range(reply, 0), 0, &arena, &pair, error);
    if (rc > 0 && !(successor && pair.lease == successor->lease))
        return etcd_fenced(log, error, "another one has taken over");
    return rc < 0 ? rc : 0;
}

int etcd_log_resign(struct etcd_log *log, const struct etcd_replica *successor, struct error *error)
{
    if (!log->term)
        return etcd_fenced(log, error, "it has not taken the lead");
    int rc = try_resign(log, successor, error);
    if (rc == ERROR_NOT_FOUND && successor && log->term)
        rc = try_resign(log, NULL, error);
    log->term = 0;
    return rc;
}

int etcd_log_ask_step_down(struct etcd_log *log, struct etcd_seen *ret_seen, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct etcd_txn txn ETCD_TXN_CLEANUP = {0};
    struct etcd_key leader = etcd_key_of(log->options.prefix, ETCD_LEADER, 0, 0);
    struct etcd_key key = etcd_key_of(log->options.prefix, ETCD_STEP_DOWN, 0, 0);
    char text[DECIMAL_TEXT_MAX];
    struct doc *reply;
    int rc = etcd_log_refresh(log, ret_seen, error);
    if (rc < 0)
        return rc;
    if (!ret_seen->leader_term)
        return error_set(error, ERROR_NOT_FOUND, "no controller leads");
    etcd_txn_begin(&txn);
    etcd_txn_if_mod(&txn, etcd_key_str(&leader), ret_seen->leader_term);
    etcd_txn_then(&txn);
    etcd_txn_put(&txn, etcd_key_str(&key), str_decimal(ret_seen->leader_term, text), 0);
    return etcd_txn_run(&txn, log->client, etcd_deadline(log), &arena, &reply, NULL, error);
}
