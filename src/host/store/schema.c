#include "host/store/private.h"

#include <inttypes.h>
#include <stdio.h>
#include "base/check.h"
#include "base/crc32c.h"

/* The tables, in the order of names. SQLite stores the text as written here, and every open compares it. */
static const struct {
    const char *name, *sql;
} tables[] = {
    {"log", "CREATE TABLE log(seq INTEGER PRIMARY KEY, stamp_ns INTEGER NOT NULL, crc INTEGER NOT NULL,"
            " bytes BLOB NOT NULL)"},
    {"meta",
     "CREATE TABLE meta(key TEXT PRIMARY KEY, crc INTEGER NOT NULL, value BLOB NOT NULL) WITHOUT ROWID"},
    {"snapshot", "CREATE TABLE snapshot(seq INTEGER PRIMARY KEY, stamp_ns INTEGER NOT NULL,"
                 " log_crc INTEGER NOT NULL, raw_bytes INTEGER NOT NULL, packed_bytes INTEGER NOT NULL,"
                 " first_chunk INTEGER NOT NULL, chunks INTEGER NOT NULL, packed_crc INTEGER NOT NULL,"
                 " crc INTEGER NOT NULL)"},
    {"snapshot_chunk", "CREATE TABLE snapshot_chunk(id INTEGER PRIMARY KEY, crc INTEGER NOT NULL,"
                       " bytes BLOB NOT NULL)"},
    {"state",
     "CREATE TABLE state(id INTEGER PRIMARY KEY, version INTEGER NOT NULL, base_seq INTEGER NOT NULL,"
     " base_crc INTEGER NOT NULL, meta_crc INTEGER NOT NULL, crc INTEGER NOT NULL)"},
};
enum { TABLE_COUNT = sizeof tables / sizeof tables[0] };

void store_put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

void store_put_u64(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

uint32_t store_record_crc(uint32_t previous, uint64_t seq, int64_t stamp_ns, struct str bytes)
{
    uint8_t head[20];
    store_put_u32(head, previous);
    store_put_u64(head + 4, seq);
    store_put_u64(head + 12, (uint64_t)stamp_ns);
    return crc32c(crc32c(0, head, sizeof head), bytes.data, bytes.len);
}

static uint32_t state_crc(int64_t version, const struct store_state *state)
{
    uint8_t bytes[24];
    store_put_u64(bytes, (uint64_t)version);
    store_put_u64(bytes + 8, state->base_seq);
    store_put_u32(bytes + 16, state->base_crc);
    store_put_u32(bytes + 20, state->meta_crc);
    return crc32c(0, bytes, sizeof bytes);
}

int store_state_save(struct store *store, const struct store_state *state)
{
    sqlite3_stmt *statement = store_db_get(store, STMT_STATE_SET);
    (void)sqlite3_bind_int64(statement, 1, STORE_VERSION);
    (void)sqlite3_bind_int64(statement, 2, (int64_t)state->base_seq);
    (void)sqlite3_bind_int64(statement, 3, state->base_crc);
    (void)sqlite3_bind_int64(statement, 4, state->meta_crc);
    (void)sqlite3_bind_int64(statement, 5, state_crc(STORE_VERSION, state));
    return store_db_run(statement);
}

int store_state_load(struct store *store, struct store_state *ret_state, struct error *error)
{
    sqlite3_stmt *statement = store_db_get(store, STMT_STATE_GET);
    int rc = sqlite3_step(statement);
    int result = 0;
    if (rc == SQLITE_ROW) {
        int64_t base_seq = sqlite3_column_int64(statement, 1);
        struct store_state state = {
            .base_seq = (uint64_t)base_seq,
            .base_crc = (uint32_t)sqlite3_column_int64(statement, 2),
            .meta_crc = (uint32_t)sqlite3_column_int64(statement, 3),
        };
        int64_t version = sqlite3_column_int64(statement, 0);
        if (sqlite3_column_int64(statement, 4) != state_crc(version, &state) || base_seq < 0)
            result = error_set(error, ERROR_CORRUPT, "table state: checksum differs");
        else if (version != STORE_VERSION)
            result =
                error_set(error, ERROR_UNSUPPORTED, "the store has format %" PRId64 ", this build knows %d",
                          version, STORE_VERSION);
        else
            *ret_state = state;
    } else if (rc == SQLITE_DONE) {
        result = error_set(error, ERROR_CORRUPT, "table state: its row is missing");
    } else {
        result = store_db_error(store, rc, "table state", error);
    }
    (void)sqlite3_reset(statement);
    return result;
}

int store_schema_create(struct store *store, struct error *error)
{
    int rc = store_db_exec(store, "BEGIN IMMEDIATE", error);
    if (rc < 0)
        return rc;
    for (int i = 0; i < TABLE_COUNT && rc == 0; i++)
        rc = store_db_exec(store, tables[i].sql, error);
    char sql[256];
    (void)snprintf(
        sql, sizeof sql,
        "PRAGMA application_id=%d; PRAGMA user_version=%d; INSERT INTO state VALUES(1, %d, 0, 0, 0, %" PRIu32
        ")",
        STORE_APPLICATION_ID, STORE_VERSION, STORE_VERSION,
        state_crc(STORE_VERSION, &(struct store_state){0}));
    if (rc == 0)
        rc = store_db_exec(store, sql, error);
    if (rc == 0)
        rc = store_db_exec(store, "COMMIT", error);
    if (rc < 0 && !sqlite3_get_autocommit(store->db))
        (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

static bool column_is(sqlite3_stmt *statement, int column, const char *text)
{
    const char *have = (const char *)sqlite3_column_text(statement, column);
    return have && strcmp(have, text) == 0;
}

static int verify_tables(struct store *store, struct error *error)
{
    sqlite3_stmt *statement;
    int rc = sqlite3_prepare_v2(store->db, "SELECT name, sql, type FROM sqlite_schema ORDER BY name", -1,
                                &statement, NULL);
    if (rc != SQLITE_OK)
        return store_db_error(store, rc, "reading the schema", error);
    int result = 0, found = 0;
    while (result == 0 && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        if (found < TABLE_COUNT && column_is(statement, 0, tables[found].name) &&
            column_is(statement, 1, tables[found].sql) && column_is(statement, 2, "table"))
            found++;
        else
            result = error_set(error, ERROR_CORRUPT, "the schema has %s where %s was expected",
                               name ? name : "?", found < TABLE_COUNT ? tables[found].name : "no more");
    }
    if (result == 0 && rc != SQLITE_DONE)
        result = store_db_error(store, rc, "reading the schema", error);
    else if (result == 0 && found != TABLE_COUNT)
        result = error_set(error, ERROR_CORRUPT, "table %s is missing", tables[found].name);
    (void)sqlite3_finalize(statement);
    return result;
}

/* A newer build may have changed the tables. Our own checksummed state row distinguishes a newer version
 * from a damaged header: if the row has our version, the header is damaged. */
static int verify_version(struct store *store, struct error *error)
{
    int64_t version, application, vacuum;
    int rc = store_db_number(store, "PRAGMA user_version", &version, error);
    if (rc == 0)
        rc = store_db_number(store, "PRAGMA application_id", &application, error);
    if (rc == 0)
        rc = store_db_number(store, "PRAGMA auto_vacuum", &vacuum, error);
    if (rc < 0)
        return rc;
    int64_t inner = 0;
    bool ours = store_db_number(store, "SELECT version FROM state WHERE id = 1", &inner, NULL) == 0;
    if (version > STORE_VERSION && application == STORE_APPLICATION_ID && (!ours || inner != STORE_VERSION))
        return error_set(error, ERROR_UNSUPPORTED, "the store has format %" PRId64 ", this build knows %d",
                         version, STORE_VERSION);
    if (application != STORE_APPLICATION_ID && !ours)
        return error_set(error, ERROR_INVALID, "this is another program's database");
    if (version != STORE_VERSION || application != STORE_APPLICATION_ID || vacuum != 2)
        return error_set(error, ERROR_CORRUPT, "the file's header is damaged");
    return 0;
}

int store_schema_verify(struct store *store, struct error *error)
{
    int rc = verify_version(store, error);
    return rc < 0 ? rc : verify_tables(store, error);
}
