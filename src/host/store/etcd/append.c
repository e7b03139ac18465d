/* append.c - the leader's writes: transactions that hold only while it leads. */
#include <inttypes.h>

#include "base/units.h"
#include "host/store/etcd/internal.h"

int etcd_fenced(struct etcd_log *log, struct error *error, const char *why)
{
    log->fenced = log->term ? log->term : log->fenced;
    log->term = 0;
    return error_set(error, ERROR_FENCED, "this controller leads no more: %s", why);
}

void etcd_txn_lead(struct etcd_txn *txn, const struct etcd_log *log)
{
    struct etcd_key leader = etcd_key_of(log->options.prefix, ETCD_LEADER, 0, 0);
    CHECK(log->term != 0);
    etcd_txn_begin(txn);
    etcd_txn_if_mod(txn, etcd_key_str(&leader), log->term);
}

/* Sends the transaction until it is answered or our lease has ended; the comparisons ensure that it takes
 * effect once. Another thread renews the lease meanwhile. */
int etcd_txn_lead_run(struct etcd_txn *txn, struct etcd_log *log, struct arena *arena, struct doc **ret_reply,
                      bool *ret_held, struct error *error)
{
    struct error why = {0};
    struct doc *reply;
    bool unsure = false;
    int rc = ERROR_UNAVAILABLE;
    buf_add_str(&txn->body, STR("]}"));
    while (rc == ERROR_UNAVAILABLE) {
        int64_t until_ns = etcd_lease_until_ns(log->lease);
        bool once_unsure = false;
        if (etcd_mono_ns() >= until_ns)
            return etcd_fenced(log, error, why.text[0] ? why.text : "its lease has ended");
        rc = etcd_call(log->client, "/v3/kv/txn", buf_str(&txn->body), until_ns, arena, &reply, &once_unsure,
                       &why);
        unsure |= once_unsure;
        log->unsure |= once_unsure;
    }
    /* An earlier attempt may have carried out the transaction that was now refused. */
    if (rc < 0 && unsure)
        return etcd_fenced(log, error, why.text);
    log->full_errors += rc == ERROR_NO_SPACE;
    if (rc == ERROR_NO_SPACE)
        return error_set(error, ERROR_NO_SPACE,
                         "etcd's alarm NOSPACE is raised: its quota is used up (etcdctl alarm list)");
    if (rc < 0)
        return error_set(error, (enum error_code)rc, "%s", why.text);
    *ret_held = etcd_succeeded(reply);
    *ret_reply = reply;
    if (*ret_held)
        log->revision = etcd_revision(reply);
    return 0;
}

/* --- groups ------------------------------------------------------------------------------------------- */

static int encode_group(struct etcd_log *log, const struct store_record *records, size_t count,
                        struct buf *out, uint32_t *ret_crc, struct error *error)
{
    struct buf sealed BUF_CLEANUP = {0};
    uint32_t crc = log->head.last_crc;
    etcd_group_begin(out, records[0].seq, (uint32_t)count, crc);
    for (size_t i = 0; i < count; i++) {
        const struct store_record *record = &records[i];
        struct store_seal_place place = {STORE_SEAL_RECORD, record->seq, (uint64_t)record->stamp_ns};
        struct str bytes = store_seal(log->options.keys, &place, record->bytes, &sealed);
        crc = store_record_crc(crc, record->seq, record->stamp_ns, bytes);
        etcd_group_add(out, record->stamp_ns, bytes, crc);
    }
    etcd_group_end(out);
    if (out->len > (size_t)ETCD_PARTS_MAX * ETCD_PART_BYTES)
        return error_set(error, ERROR_LIMIT, "a group of %zu bytes", out->len);
    *ret_crc = crc;
    return 0;
}

static struct str part_of(const struct buf *group, uint32_t part)
{
    size_t at = (size_t)part * ETCD_PART_BYTES, left = group->len - at;
    return (struct str){group->data + at, left < ETCD_PART_BYTES ? left : ETCD_PART_BYTES};
}

/* Puts a part of a group that needs several transactions. Readers ignore the part until the head covers it.
 * The head is compared, so that an attempt that arrives late cannot change a group that was appended
 * since. */
static int put_part(struct etcd_log *log, uint64_t first, uint32_t part, struct str bytes,
                    struct error *error)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct etcd_txn txn ETCD_TXN_CLEANUP = {0};
    struct etcd_key key = etcd_key_of(log->options.prefix, ETCD_GROUP, first, part);
    struct doc *reply;
    bool held;
    etcd_txn_head(&txn, log);
    etcd_txn_put(&txn, etcd_key_str(&key), bytes, 0);
    int rc = etcd_txn_lead_run(&txn, log, &arena, &reply, &held, error);
    if (rc == 0 && held && log->left_parts < part + 1)
        log->left_parts = part + 1;
    return rc < 0 || held ? rc : etcd_fenced(log, error, "another one has taken over");
}

/* Puts the last part of a group and the new head. Deletes parts that a larger, refused group may have
 * left. */
static int put_last_part(struct etcd_log *log, uint64_t first, uint32_t part, struct str bytes,
                         const struct etcd_head *head, struct error *error)
{
    struct etcd_txn txn ETCD_TXN_CLEANUP = {0};
    struct etcd_key key = etcd_key_of(log->options.prefix, ETCD_GROUP, first, part);
    struct etcd_key next = etcd_key_of(log->options.prefix, ETCD_GROUP, first, part + 1);
    struct etcd_key end = etcd_key_behind(log->options.prefix, ETCD_GROUP, first);
    etcd_txn_head(&txn, log);
    etcd_txn_put(&txn, etcd_key_str(&key), bytes, 0);
    if (log->left_parts > part + 1)
        etcd_txn_delete(&txn, etcd_key_str(&next), etcd_key_str(&end));
    return etcd_put_head(log, &txn, head, error);
}

/* Handles failed comparisons: either an earlier attempt of the same transaction was carried out, or another
 * controller leads. */
static int judge_head(struct etcd_log *log, const struct etcd_head *wanted, const struct doc *reply,
                      struct arena *arena, int64_t *ret_mod, struct error *error)
{
    struct etcd_pair pair;
    struct etcd_head head = {0};
    int rc = etcd_pair_at(etcd_txn_range(reply, 0), 0, arena, &pair, error);
    if (rc < 0)
        return rc;
    bool ours = rc > 0 && etcd_head_read(pair.value, &head) && head.last_seq == wanted->last_seq &&
                head.last_crc == wanted->last_crc && head.base_seq == wanted->base_seq;
    if (!ours)
        return etcd_fenced(log, error, "another one has taken over");
    *ret_mod = pair.mod_revision;
    return 0;
}

int etcd_put_head(struct etcd_log *log, struct etcd_txn *txn, const struct etcd_head *head,
                  struct error *error)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct buf text BUF_CLEANUP = {0};
    struct etcd_key key = etcd_key_of(log->options.prefix, ETCD_HEAD, 0, 0);
    struct doc *reply;
    bool held;
    etcd_head_write(head, &text);
    etcd_txn_put(txn, etcd_key_str(&key), buf_str(&text), 0);
    etcd_txn_else(txn);
    etcd_txn_get(txn, etcd_key_str(&key));
    int rc = etcd_txn_lead_run(txn, log, &arena, &reply, &held, error);
    if (rc < 0)
        return rc;
    int64_t mod = etcd_revision(reply);
    if (!held)
        rc = judge_head(log, head, reply, &arena, &mod, error);
    if (rc < 0)
        return rc;
    log->head = *head;
    log->head_mod = mod;
    return 0;
}

void etcd_txn_head(struct etcd_txn *txn, const struct etcd_log *log)
{
    struct etcd_key key = etcd_key_of(log->options.prefix, ETCD_HEAD, 0, 0);
    etcd_txn_lead(txn, log);
    etcd_txn_if_mod(txn, etcd_key_str(&key), log->head_mod);
    etcd_txn_then(txn);
}

int etcd_log_append(struct etcd_log *log, const struct store_record *records, size_t count,
                    struct error *error)
{
    struct buf group BUF_CLEANUP = {0};
    struct etcd_head head = log->head;
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        CHECK(records[i].seq == log->head.last_seq + 1 + i && records[i].seq < INT64_MAX);
        if (records[i].bytes.len > STORE_RECORD_BYTES_MAX)
            return error_set(error, ERROR_LIMIT, "record %" PRIu64 " has %zu bytes, the limit is %d",
                             records[i].seq, records[i].bytes.len, (int)STORE_RECORD_BYTES_MAX);
        bytes += records[i].bytes.len;
    }
    if (count == 0)
        return 0;
    if (!log->term)
        return etcd_fenced(log, error, "it has not taken the lead");
    int rc = encode_group(log, records, count, &group, &head.last_crc, error);
    if (rc < 0)
        return rc;
    head.last_seq += count;
    head.restored = log->options.restores;
    uint32_t part = 0;
    log->unsure = false;
    for (; rc == 0 && (size_t)(part + 1) * ETCD_PART_BYTES < group.len; part++)
        rc = put_part(log, records[0].seq, part, part_of(&group, part), error);
    if (rc == 0)
        rc = put_last_part(log, records[0].seq, part, part_of(&group, part), &head, error);
    /* a part of this try could arrive late, into the group of the next try */
    if (rc == ERROR_NO_SPACE && log->unsure)
        return etcd_fenced(log, error, "a part of what etcd refused may still be under way");
    if (rc < 0)
        return rc;
    etcd_know(log, head.last_seq, head.last_crc);
    log->left_parts = 0;
    log->appended_records += count;
    log->appended_bytes += bytes;
    log->commits++;
    return 0;
}
