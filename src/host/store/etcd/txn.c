/* txn.c - requests of etcd's KV service, as JSON. */
#include <inttypes.h>

#include "base/base64.h"
#include "host/store/etcd/internal.h"

static void put_bytes(struct buf *out, const char *name, struct str bytes)
{
    buf_printf(out, "\"%s\":\"", name);
    base64_encode(bytes, out);
    buf_add_char(out, '"');
}

/* --- ranges ------------------------------------------------------------------------------------------- */

void etcd_range_body(struct buf *out, struct str from, struct str to, size_t limit, bool backwards,
                     bool keys_only)
{
    buf_add_char(out, '{');
    put_bytes(out, "key", from);
    if (to.len) {
        buf_add_char(out, ',');
        put_bytes(out, "range_end", to);
    }
    if (limit)
        buf_printf(out, ",\"limit\":\"%zu\"", limit);
    if (backwards)
        buf_add_str(out, STR(",\"sort_order\":\"DESCEND\",\"sort_target\":\"KEY\""));
    if (keys_only)
        buf_add_str(out, STR(",\"keys_only\":true"));
    buf_add_char(out, '}');
}

int etcd_range(struct etcd_client *client, struct str from, struct str to, size_t limit, bool backwards,
               bool keys_only, int64_t deadline_ns, struct arena *arena, struct doc **ret_range,
               struct error *error)
{
    struct buf body BUF_CLEANUP = {0};
    etcd_range_body(&body, from, to, limit, backwards, keys_only);
    return etcd_call(client, "/v3/kv/range", buf_str(&body), deadline_ns, arena, ret_range, NULL, error);
}

/* --- transactions ------------------------------------------------------------------------------------- */

void etcd_txn_begin(struct etcd_txn *txn)
{
    buf_clear(&txn->body);
    buf_add_str(&txn->body, STR("{\"compare\":["));
    txn->some = false;
}

static void next_entry(struct etcd_txn *txn)
{
    if (txn->some)
        buf_add_char(&txn->body, ',');
    txn->some = true;
}

void etcd_txn_if_mod(struct etcd_txn *txn, struct str key, int64_t revision)
{
    next_entry(txn);
    buf_add_char(&txn->body, '{');
    put_bytes(&txn->body, "key", key);
    buf_printf(&txn->body, ",\"target\":\"MOD\",\"result\":\"EQUAL\",\"mod_revision\":\"%" PRId64 "\"}",
               revision);
}

void etcd_txn_then(struct etcd_txn *txn)
{
    buf_add_str(&txn->body, STR("],\"success\":["));
    txn->some = false;
}

void etcd_txn_else(struct etcd_txn *txn)
{
    buf_add_str(&txn->body, STR("],\"failure\":["));
    txn->some = false;
}

void etcd_txn_put(struct etcd_txn *txn, struct str key, struct str value, int64_t lease)
{
    next_entry(txn);
    buf_add_str(&txn->body, STR("{\"request_put\":{"));
    put_bytes(&txn->body, "key", key);
    buf_add_char(&txn->body, ',');
    put_bytes(&txn->body, "value", value);
    if (lease)
        buf_printf(&txn->body, ",\"lease\":\"%" PRId64 "\"", lease);
    buf_add_str(&txn->body, STR("}}"));
}

void etcd_txn_delete(struct etcd_txn *txn, struct str from, struct str to)
{
    next_entry(txn);
    buf_add_str(&txn->body, STR("{\"request_delete_range\":{"));
    put_bytes(&txn->body, "key", from);
    if (to.len) {
        buf_add_char(&txn->body, ',');
        put_bytes(&txn->body, "range_end", to);
    }
    buf_add_str(&txn->body, STR("}}"));
}

void etcd_txn_get(struct etcd_txn *txn, struct str key)
{
    next_entry(txn);
    buf_add_str(&txn->body, STR("{\"request_range\":"));
    etcd_range_body(&txn->body, key, (struct str){0}, 0, false, false);
    buf_add_char(&txn->body, '}');
}

int etcd_txn_run(struct etcd_txn *txn, struct etcd_client *client, int64_t deadline_ns, struct arena *arena,
                 struct doc **ret_reply, bool *ret_unsure, struct error *error)
{
    buf_add_str(&txn->body, STR("]}"));
    return etcd_call(client, "/v3/kv/txn", buf_str(&txn->body), deadline_ns, arena, ret_reply, ret_unsure,
                     error);
}

void etcd_txn_done(struct etcd_txn *txn)
{
    buf_done(&txn->body);
}
