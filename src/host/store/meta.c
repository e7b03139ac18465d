#include "host/store/private.h"

#include <inttypes.h>
#include <stdio.h>
#include "base/check.h"
#include "base/crc32c.h"

/* Each row has a checksum over (length of the key, key, value). The state row has one over all (key,
 * checksum) in the order of keys, so that a missing row is detected. */

static uint32_t row_crc(struct str key, struct str value)
{
    uint8_t head[4];
    store_put_u32(head, (uint32_t)key.len);
    uint32_t crc = crc32c(crc32c(0, head, sizeof head), key.data, key.len);
    return crc32c(crc, value.data, value.len);
}

static struct str column_str(sqlite3_stmt *statement, int column)
{
    const char *data = sqlite3_column_blob(statement, column);
    return (struct str){data, (size_t)sqlite3_column_bytes(statement, column)};
}

struct meta_walk {
    uint32_t crc; /* over all rows visited so far */
    uint32_t keys;
    struct str looked_for;
    bool found;
};

/* Visits all rows. If `verify`, checks each against its checksum. */
static int walk(struct store *store, bool verify, struct meta_walk *walk, store_report *report, void *context,
                struct error *error)
{
    sqlite3_stmt *statement = store_db_get(store, STMT_META_ALL);
    int rc, result = 0;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        struct str key = column_str(statement, 0);
        int64_t crc = sqlite3_column_int64(statement, 1);
        if (verify && crc != row_crc(key, column_str(statement, 2))) {
            char text[160];
            (void)snprintf(text, sizeof text, "table meta: key %.64s: checksum differs",
                           str_is_utf8(key) ? (const char *)sqlite3_column_text(statement, 0) : "(damaged)");
            if (report)
                report(context, &(struct store_problem){"meta", 0, text});
            result = result < 0 ? result : error_set(error, ERROR_CORRUPT, "%s", text);
        }
        uint8_t bytes[4];
        store_put_u32(bytes, (uint32_t)crc);
        walk->crc = crc32c(crc32c(walk->crc, key.data, key.len), bytes, sizeof bytes);
        walk->keys++;
        walk->found = walk->found || str_equal(key, walk->looked_for);
    }
    if (rc != SQLITE_DONE && result == 0) {
        result = store_db_error(store, rc, "table meta", error);
        if (report)
            report(context, &(struct store_problem){"meta", 0, "table meta cannot be read"});
    }
    (void)sqlite3_reset(statement);
    return result;
}

int store_meta_verify(struct store *store, store_report *report, void *context, struct error *error)
{
    struct meta_walk all = {0};
    int rc = walk(store, true, &all, report, context, error);
    if (rc < 0)
        return rc;
    if (all.crc == store->state.meta_crc)
        return 0;
    if (report)
        report(context, &(struct store_problem){"meta", 0, "table meta: a key is missing or out of place"});
    return error_set(error, ERROR_CORRUPT, "table meta: a key is missing or out of place");
}

int store_meta_get(struct store *store, struct str key, struct buf *ret_value, struct error *error)
{
    sqlite3_stmt *statement = store_db_get(store, STMT_META_GET);
    (void)sqlite3_bind_text64(statement, 1, key.len ? key.data : "", key.len, SQLITE_STATIC, SQLITE_UTF8);
    int rc = sqlite3_step(statement), result = 0;
    if (rc == SQLITE_DONE) {
        result = error_set(error, ERROR_NOT_FOUND, "no key " STR_FORMAT, STR_ARG(key));
    } else if (rc != SQLITE_ROW) {
        result = store_db_error(store, rc, "table meta", error);
    } else {
        struct str value = column_str(statement, 1);
        if (sqlite3_column_int64(statement, 0) != row_crc(key, value)) {
            result = error_set(error, ERROR_CORRUPT, "table meta: key " STR_FORMAT ": checksum differs",
                               STR_ARG(key));
        } else {
            buf_clear(ret_value);
            buf_add_str(ret_value, value);
        }
    }
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return result;
}

static int set_in_transaction(struct store *store, struct str key, struct str value,
                              struct store_state *state)
{
    sqlite3_stmt *statement = store_db_get(store, STMT_META_SET);
    (void)sqlite3_bind_text64(statement, 1, key.data, key.len, SQLITE_STATIC, SQLITE_UTF8);
    (void)sqlite3_bind_int64(statement, 2, row_crc(key, value));
    (void)sqlite3_bind_blob64(statement, 3, value.len ? value.data : "", value.len, SQLITE_STATIC);
    int rc = store_db_run(statement);
    (void)sqlite3_clear_bindings(statement);
    if (rc != SQLITE_DONE)
        return rc;
    struct meta_walk all = {0};
    if (walk(store, false, &all, NULL, NULL, NULL) < 0)
        return sqlite3_extended_errcode(store->db);
    state->meta_crc = all.crc;
    return store_state_save(store, state);
}

int store_meta_set(struct store *store, struct str key, struct str value, struct error *error)
{
    if (key.len == 0 || key.len > STORE_META_KEY_MAX || !str_is_utf8(key))
        return error_set(error, ERROR_LIMIT, "a key has 1 to %d bytes of UTF-8", (int)STORE_META_KEY_MAX);
    if (value.len > STORE_META_VALUE_MAX)
        return error_set(error, ERROR_LIMIT, "key " STR_FORMAT ": the value has more than %d bytes",
                         STR_ARG(key), (int)STORE_META_VALUE_MAX);
    struct meta_walk all = {.looked_for = key};
    int rc = walk(store, false, &all, NULL, NULL, error);
    if (rc < 0)
        return rc;
    if (!all.found && all.keys >= STORE_META_KEYS_MAX)
        return error_set(error, ERROR_LIMIT, "the store has %d keys already", (int)STORE_META_KEYS_MAX);
    rc = store_db_begin(store, true, error);
    if (rc < 0)
        return rc;
    struct store_state state = store->state;
    rc = set_in_transaction(store, key, value, &state);
    if (rc != SQLITE_DONE)
        return store_db_abort(store, rc, "setting a key", error);
    rc = store_db_commit(store, "setting a key", error);
    if (rc == 0)
        store->state = state;
    return rc;
}
