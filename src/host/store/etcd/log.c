/* log.c - opening, the control keys, and reading records. */
#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "host/store/etcd/internal.h"

enum {
    SNAPSHOTS_KEEP = 3,
    LEASE_SECONDS = 1,
    WINDOW_FIRST = 16, /* keys per range request: few at first, as they may be large parts */
    WINDOW_MOST = 2048,
};
#define WINDOW_BYTES      ((size_t)2 << 20) /* approximate size of values that one range request reads */
#define PATIENCE_NS       (10 * NS_PER_SECOND)
#define DATA_BYTES_MAX    (UINT64_C(1) << 30)
#define PREFIX_OF_PHALANX "/phalanx/"

/* --- begin and end ------------------------------------------------------------------------------------ */

static int check_prefix(const char *prefix, struct error *error)
{
    size_t len = strlen(prefix);
    if (len == 0 || len > ETCD_PREFIX_MAX || prefix[len - 1] != '/')
        return error_set(error, ERROR_INVALID, "a prefix of keys in etcd ends in '/' and has up to %d bytes",
                         (int)ETCD_PREFIX_MAX);
    return 0;
}

void etcd_options_fill(struct etcd_options *options)
{
    options->prefix = options->prefix ? options->prefix : PREFIX_OF_PHALANX;
    options->snapshots_keep = options->snapshots_keep ? options->snapshots_keep : SNAPSHOTS_KEEP;
    options->bytes_max = options->bytes_max ? options->bytes_max : DATA_BYTES_MAX;
    options->lease_s = options->lease_s ? options->lease_s : LEASE_SECONDS;
    options->patience_ns = options->patience_ns ? options->patience_ns : PATIENCE_NS;
}

int etcd_log_open(const struct etcd_options *options, struct etcd_log **ret_log, struct error *error)
{
    struct etcd_seen seen;
    struct etcd_log *log = mem_alloc(sizeof *log);
    log->options = *options;
    etcd_options_fill(&log->options);
    etcd_log_patience(log, 0);
    int rc = check_prefix(log->options.prefix, error);
    if (rc == 0)
        rc = etcd_client_new(&log->options, &log->client, error);
    if (rc == 0)
        rc = etcd_log_refresh(log, &seen, error);
    if (rc < 0) {
        etcd_log_close(log);
        return rc;
    }
    *ret_log = log;
    return 0;
}

void etcd_log_close(struct etcd_log *log)
{
    if (!log)
        return;
    CHECK(log->cursors == 0 && !log->writer);
    etcd_client_free(log->client);
    mem_free(log);
}

int64_t etcd_deadline(const struct etcd_log *log)
{
    return etcd_mono_ns() + log->patience_ns;
}

void etcd_log_patience(struct etcd_log *log, int64_t patience_ns)
{
    log->patience_ns = patience_ns ? patience_ns : log->options.patience_ns;
}

int etcd_log_watch(const struct etcd_options *options, struct etcd_watch **ret_watch, struct error *error)
{
    const char *prefix = options->prefix ? options->prefix : PREFIX_OF_PHALANX;
    return etcd_watch_new(options, etcd_key_of(prefix, ETCD_CONTROL, 0, 0),
                          etcd_key_end(prefix, ETCD_CONTROL), ret_watch, error);
}

/* --- the control keys --------------------------------------------------------------------------------- */

int etcd_prove(const struct etcd_log *log, uint64_t seq, uint32_t crc, struct error *error)
{
    if (seq != log->known_seq || crc == log->known_crc)
        return 0;
    return error_set(error, ERROR_CORRUPT,
                     "record %" PRIu64 " in etcd has the checksum %08" PRIx32 ", but here it had %08" PRIx32
                     ": etcd holds another history, as after a restore",
                     seq, crc, log->known_crc);
}

void etcd_know(struct etcd_log *log, uint64_t seq, uint32_t crc)
{
    if (seq < log->known_seq)
        return;
    log->known_seq = seq;
    log->known_crc = crc;
}

int etcd_take_head(struct etcd_log *log, const struct doc *range, struct arena *arena, struct error *error)
{
    struct etcd_pair pair;
    int rc = etcd_pair_at(range, 0, arena, &pair, error);
    if (rc < 0)
        return rc;
    if (rc == 0) {
        if (log->head.last_seq > 0)
            return error_set(error, ERROR_CORRUPT, "the log's head has vanished from etcd");
        return 0;
    }
    struct etcd_head head;
    if (!etcd_head_read(pair.value, &head))
        return error_set(error, ERROR_CORRUPT, "the log's head in etcd is damaged, or of another version");
    if (head.last_seq < log->head.last_seq)
        return error_set(error, ERROR_CORRUPT,
                         "the log in etcd has gone back from record %" PRIu64 " to %" PRIu64,
                         log->head.last_seq, head.last_seq);
    rc = etcd_prove(log, head.last_seq, head.last_crc, error);
    if (rc < 0)
        return rc;
    log->head = head;
    log->head_mod = pair.mod_revision;
    return 0;
}

static int take_leader(const struct doc *leader, const struct doc *step_down, struct arena *arena,
                       struct etcd_seen *seen, struct error *error)
{
    struct etcd_pair pair;
    int rc = etcd_pair_at(leader, 0, arena, &pair, error);
    if (rc > 0) {
        seen->leader_term = pair.mod_revision;
        seen->leader_lease = pair.lease;
        snprintf(seen->who, sizeof seen->who, STR_FORMAT, STR_ARG(pair.value));
        rc = etcd_pair_at(step_down, 0, arena, &pair, error);
        if (rc > 0)
            (void)str_to_i64(pair.value, 1, INT64_MAX, &seen->step_down_term);
    }
    return rc < 0 ? rc : 0;
}

int etcd_log_refresh(struct etcd_log *log, struct etcd_seen *ret_seen, struct error *error)
{
    static const enum etcd_key_kind kinds[] = {ETCD_HEAD, ETCD_LEADER, ETCD_STEP_DOWN};
    struct arena arena ARENA_CLEANUP = {0};
    struct etcd_txn txn ETCD_TXN_CLEANUP = {0};
    struct etcd_seen seen = {0};
    struct doc *reply;
    etcd_txn_begin(&txn);
    etcd_txn_then(&txn);
    for (int i = 0; i < 3; i++) {
        struct etcd_key key = etcd_key_of(log->options.prefix, kinds[i], 0, 0);
        etcd_txn_get(&txn, etcd_key_str(&key));
    }
    int rc = etcd_txn_run(&txn, log->client, etcd_deadline(log), &arena, &reply, NULL, error);
    if (rc == 0)
        rc = etcd_take_head(log, etcd_txn_range(reply, 0), &arena, error);
    if (rc == 0)
        rc = take_leader(etcd_txn_range(reply, 1), etcd_txn_range(reply, 2), &arena, &seen, error);
    if (rc < 0)
        return error_wrap(error, "looking at the log in etcd");
    seen.first_seq = log->head.base_seq + 1;
    seen.last_seq = log->head.last_seq;
    *ret_seen = seen;
    return 0;
}

/* --- reading ------------------------------------------------------------------------------------------ */

struct etcd_cursor {
    struct etcd_log *log;
    uint64_t from_seq, end_seq;
    uint32_t end_crc; /* checksum of record end_seq, from the head */
    uint64_t seq;     /* the record that was read last, also before from_seq */
    uint32_t previous_crc;
    /* The fetched keys, and the key after them. */
    struct arena arena;
    struct doc *range;
    size_t index, limit;
    struct etcd_key next;
    /* The current group. */
    struct buf bytes, plain;
    struct etcd_group group;
    uint32_t left; /* records of the group that were not read yet */
    int failed;    /* the error code that every later call returns */
    struct error error;
};

static int etcd_missing(struct etcd_cursor *cursor)
{
    struct etcd_seen seen;
    struct error *error = &cursor->error;
    int rc = etcd_log_refresh(cursor->log, &seen, error);
    if (rc < 0)
        return rc;
    if (cursor->seq + 1 < seen.first_seq)
        return error_set(error, ERROR_NOT_FOUND,
                         "record %" PRIu64 " is not in the log any more, which begins with %" PRIu64,
                         cursor->seq + 1, seen.first_seq);
    return error_set(error, ERROR_CORRUPT, "the log in etcd: record %" PRIu64 " is missing", cursor->seq + 1);
}

static int etcd_damaged(struct etcd_cursor *cursor, const char *what)
{
    return error_set(&cursor->error, ERROR_CORRUPT, "the log in etcd: record %" PRIu64 ": %s",
                     cursor->seq + 1, what);
}

/* Reads the next pairs into the cursor's window: fewer at once if they exceed the limit of an answer. */
static int read_window(struct etcd_cursor *cursor)
{
    struct etcd_log *log = cursor->log;
    struct etcd_key end = etcd_key_end(log->options.prefix, ETCD_GROUP);
    for (;;) {
        arena_done(&cursor->arena);
        int rc = etcd_range(log->client, etcd_key_str(&cursor->next), etcd_key_str(&end), cursor->limit,
                            false, false, etcd_deadline(log), &cursor->arena, &cursor->range, &cursor->error);
        if (rc != ERROR_LIMIT || cursor->limit <= 1)
            return rc;
        cursor->limit = cursor->limit > 4 ? cursor->limit / 4 : 1; /* large values follow small ones */
    }
}

/* Gets the next key of the log. Returns 0 if there is none. */
static int next_pair(struct etcd_cursor *cursor, struct etcd_pair *ret_pair)
{
    struct error *error = &cursor->error;
    int rc = cursor->range ? etcd_pair_at(cursor->range, cursor->index, &cursor->arena, ret_pair, error) : 0;
    if (rc == 0) {
        size_t used = cursor->arena.used_bytes;
        if (cursor->range && used < WINDOW_BYTES && cursor->limit < WINDOW_MOST)
            cursor->limit *= 2;
        else if (used > 8 * WINDOW_BYTES && cursor->limit > WINDOW_FIRST)
            cursor->limit /= 2;
        cursor->index = 0;
        rc = read_window(cursor);
        if (rc == 0)
            rc = etcd_pair_at(cursor->range, 0, &cursor->arena, ret_pair, error);
    }
    if (rc > 0) {
        cursor->index++;
        if (ret_pair->key.len + 1 >= ETCD_KEY_MAX)
            return etcd_damaged(cursor, "its key is too long");
        memcpy(cursor->next.text, ret_pair->key.data, ret_pair->key.len);
        cursor->next.text[ret_pair->key.len] = 0; /* the first key after it */
        cursor->next.len = ret_pair->key.len + 1;
    }
    return rc;
}

/* Reads all parts of the group that begins with record `first`. */
static int next_group(struct etcd_cursor *cursor, uint64_t first)
{
    struct etcd_group group = {.bytes = 1};
    buf_clear(&cursor->bytes);
    for (uint32_t part = 0; cursor->bytes.len < group.bytes; part++) {
        struct etcd_pair pair;
        uint64_t seq;
        uint32_t number;
        int rc = next_pair(cursor, &pair);
        if (rc < 0)
            return rc;
        if (rc == 0 || !etcd_key_read(pair.key, cursor->log->options.prefix, ETCD_GROUP, &seq, &number) ||
            seq != first || number != part)
            return etcd_missing(cursor);
        buf_add_str(&cursor->bytes, pair.value);
        if (pair.value.len == 0 || !etcd_group_open(buf_str(&cursor->bytes), &group))
            return etcd_damaged(cursor, "its group's header is damaged");
    }
    if (group.first_seq != first)
        return etcd_damaged(cursor, "its group is another one");
    cursor->group = group;
    cursor->left = group.count;
    return 0;
}

/* Moves the cursor past record `seq`, after checking it against the known record and the head. */
static int pass(struct etcd_cursor *cursor, uint64_t seq, uint32_t crc)
{
    struct error *error = &cursor->error;
    int rc = etcd_prove(cursor->log, seq, crc, error);
    if (rc < 0)
        return rc;
    if (seq == cursor->end_seq && crc != cursor->end_crc)
        return error_set(error, ERROR_CORRUPT,
                         "the log in etcd: record %" PRIu64 " has the checksum %08" PRIx32
                         ", but its head says %08" PRIx32,
                         seq, crc, cursor->end_crc);
    etcd_know(cursor->log, seq, crc);
    cursor->seq = seq;
    cursor->previous_crc = crc;
    return 0;
}

static int next_record(struct etcd_cursor *cursor, struct store_record *ret_record)
{
    struct str bytes;
    int64_t stamp_ns;
    uint32_t stored;
    if (cursor->left == 0) {
        int rc = next_group(cursor, cursor->seq + 1);
        if (rc < 0)
            return rc;
        if (cursor->group.previous_crc != cursor->previous_crc)
            return etcd_damaged(cursor, "its group does not follow the record before");
    }
    if (!etcd_group_next(&cursor->group, &stamp_ns, &bytes, &stored))
        return etcd_damaged(cursor, "its group is cut short");
    uint64_t seq = cursor->seq + 1;
    uint32_t crc = store_record_crc(cursor->previous_crc, seq, stamp_ns, bytes);
    if (crc != stored)
        return etcd_damaged(cursor, "its checksum, or that of the record before it, differs");
    struct store_seal_place place = {STORE_SEAL_RECORD, seq, (uint64_t)stamp_ns};
    struct str plain;
    int rc = store_unseal(cursor->log->options.keys, &place, bytes, &cursor->plain, &plain, &cursor->error);
    if (rc < 0)
        return rc;
    cursor->left--;
    if (cursor->left == 0 && cursor->group.rest.len > 0)
        return etcd_damaged(cursor, "there are bytes behind its group's end");
    rc = pass(cursor, seq, crc);
    if (rc < 0)
        return rc;
    *ret_record = (struct store_record){seq, stamp_ns, plain};
    return 1;
}

int etcd_next(struct etcd_cursor *cursor, struct store_record *ret_record, struct error *error)
{
    struct store_record record;
    int rc = 1;
    while (!cursor->failed) {
        if (cursor->seq >= cursor->end_seq)
            return 0;
        rc = next_record(cursor, &record);
        if (rc < 0)
            cursor->failed = rc;
        else if (record.seq >= cursor->from_seq) {
            *ret_record = record;
            return 1;
        }
    }
    return error_set(error, (enum error_code)cursor->failed, "%s", cursor->error.text);
}

/* Finds the group that holds record from_seq, and opens it. */
static int cursor_seek(struct etcd_cursor *cursor, struct error *error)
{
    struct etcd_log *log = cursor->log;
    struct arena arena ARENA_CLEANUP = {0};
    struct etcd_key from = etcd_key_of(log->options.prefix, ETCD_GROUP, 0, 0);
    struct etcd_key to = etcd_key_behind(log->options.prefix, ETCD_GROUP, cursor->from_seq);
    struct doc *range;
    struct etcd_pair pair;
    uint64_t first;
    uint32_t part;
    int rc = etcd_range(log->client, etcd_key_str(&from), etcd_key_str(&to), 1, true, true,
                        etcd_deadline(log), &arena, &range, error);
    if (rc == 0)
        rc = etcd_pair_at(range, 0, &arena, &pair, error);
    if (rc < 0)
        return rc;
    cursor->seq = cursor->from_seq - 1;
    if (rc == 0 || !etcd_key_read(pair.key, log->options.prefix, ETCD_GROUP, &first, &part) || first == 0) {
        rc = etcd_missing(cursor);
        return error_set(error, (enum error_code)rc, "%s", cursor->error.text);
    }
    cursor->next = etcd_key_of(log->options.prefix, ETCD_GROUP, first, 0);
    cursor->seq = first - 1;
    rc = next_group(cursor, first);
    if (rc == 0 && first + cursor->group.count <= cursor->from_seq)
        rc = error_set(&cursor->error, ERROR_CORRUPT, "the log in etcd: record %" PRIu64 " is missing",
                       cursor->from_seq);
    if (rc == 0 && first == log->head.base_seq + 1 && cursor->group.previous_crc != log->head.base_crc)
        rc = etcd_damaged(cursor, "it does not follow the log's base");
    if (rc == 0)
        rc = pass(cursor, first - 1, cursor->group.previous_crc);
    return rc == 0 ? 0 : error_set(error, (enum error_code)rc, "%s", cursor->error.text);
}

int etcd_read(struct etcd_log *log, uint64_t from_seq, struct etcd_cursor **ret_cursor, struct error *error)
{
    if (from_seq < log->head.base_seq + 1 || from_seq > log->head.last_seq + 1)
        return error_set(error, ERROR_NOT_FOUND,
                         "record %" PRIu64 " is not in the log, which holds %" PRIu64 " to %" PRIu64,
                         from_seq, log->head.base_seq + 1, log->head.last_seq);
    struct etcd_cursor *cursor = mem_alloc(sizeof *cursor);
    cursor->log = log;
    log->cursors++;
    cursor->from_seq = from_seq;
    cursor->end_seq = log->head.last_seq;
    cursor->end_crc = log->head.last_crc;
    cursor->limit = WINDOW_FIRST;
    int rc = 0;
    if (from_seq > log->head.last_seq) {
        rc = pass(cursor, log->head.last_seq, log->head.last_crc);
        CHECK(rc == 0); /* the head was checked when it was read */
    } else {
        rc = cursor_seek(cursor, error);
    }
    if (rc < 0) {
        etcd_cursor_free(cursor);
        return rc;
    }
    *ret_cursor = cursor;
    return 0;
}

void etcd_cursor_free(struct etcd_cursor *cursor)
{
    if (!cursor)
        return;
    CHECK(cursor->log->cursors > 0);
    cursor->log->cursors--;
    arena_done(&cursor->arena);
    buf_done(&cursor->bytes);
    buf_done(&cursor->plain);
    mem_free(cursor);
}

uint32_t etcd_cursor_crc(const struct etcd_cursor *cursor)
{
    return cursor->previous_crc;
}

bool etcd_cursor_ends_group(const struct etcd_cursor *cursor)
{
    return cursor->left == 0;
}

int etcd_record_crc(struct etcd_log *log, uint64_t seq, uint32_t *ret_crc, struct error *error)
{
    struct etcd_cursor *cursor;
    struct store_record record;
    if (seq == log->head.base_seq || seq == log->head.last_seq) {
        *ret_crc = seq == log->head.base_seq ? log->head.base_crc : log->head.last_crc;
        return 0;
    }
    int rc = etcd_read(log, seq, &cursor, error);
    if (rc < 0)
        return rc;
    rc = etcd_next(cursor, &record, error);
    if (rc > 0)
        *ret_crc = etcd_cursor_crc(cursor);
    etcd_cursor_free(cursor);
    return rc > 0 ? 0 : rc < 0 ? rc : error_set(error, ERROR_CORRUPT, "the log in etcd ends too early");
}
