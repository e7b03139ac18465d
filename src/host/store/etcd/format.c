#include "host/store/etcd/format.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "host/store/seal.h"

/* --- keys --------------------------------------------------------------------------------------------- */

/* The path of each kind of key, and the numbers that follow it. */
static const struct {
    const char *text;
    bool seq, part;
} key_forms[] = {
    [ETCD_HEAD] = {"control/head", false, false},
    [ETCD_LEADER] = {"control/leader", false, false},
    [ETCD_REPLICA] = {"control/replica/", true, false},
    [ETCD_STEP_DOWN] = {"control/step-down", false, false},
    [ETCD_CONTROL] = {"control/", false, false},
    [ETCD_GROUP] = {"log/", true, true},
    [ETCD_ROW] = {"snapshot/", true, false},
    [ETCD_CHUNK] = {"snapshot-chunk/", true, true},
};

struct etcd_key etcd_key_of(const char *prefix, enum etcd_key_kind kind, uint64_t seq, uint32_t part)
{
    struct etcd_key key;
    int len = snprintf(key.text, sizeof key.text, "%s%s", prefix, key_forms[kind].text);
    CHECK(len > 0 && (size_t)len + 32 < sizeof key.text);
    if (key_forms[kind].seq)
        len += snprintf(key.text + len, sizeof key.text - (size_t)len, "%016" PRIx64, seq);
    if (key_forms[kind].part)
        len += snprintf(key.text + len, sizeof key.text - (size_t)len, "-%08" PRIx32, part);
    key.len = (size_t)len;
    return key;
}

/* Returns the first key after all keys with this prefix. The prefix ends in a character below 0xff. */
static struct etcd_key key_after(struct etcd_key key)
{
    key.text[key.len - 1]++;
    return key;
}

struct etcd_key etcd_key_end(const char *prefix, enum etcd_key_kind kind)
{
    struct etcd_key key;
    int len = snprintf(key.text, sizeof key.text, "%s%s", prefix, key_forms[kind].text);
    CHECK(len > 0 && (size_t)len < sizeof key.text);
    key.len = (size_t)len;
    return key_after(key);
}

struct etcd_key etcd_key_behind(const char *prefix, enum etcd_key_kind kind, uint64_t seq)
{
    CHECK(key_forms[kind].seq && seq < UINT64_MAX);
    return etcd_key_of(prefix, kind, seq + 1, 0);
}

/* Takes `digits` lower-case hexadecimal digits off the front. */
static bool take_hex(struct str *text, size_t digits, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (text->len < digits)
        return false;
    for (size_t i = 0; i < digits; i++) {
        char c = text->data[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return false;
        value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *text = (struct str){text->data + digits, text->len - digits};
    *ret_value = value;
    return true;
}

bool etcd_key_read(struct str key, const char *prefix, enum etcd_key_kind kind, uint64_t *ret_seq,
                   uint32_t *ret_part)
{
    struct str folder[] = {str_from(prefix), str_from(key_forms[kind].text)};
    uint64_t seq, part = 0;
    for (int i = 0; i < 2; i++) {
        if (!str_starts(key, folder[i]))
            return false;
        key = (struct str){key.data + folder[i].len, key.len - folder[i].len};
    }
    if (!take_hex(&key, 16, &seq))
        return false;
    if (key_forms[kind].part) {
        if (key.len == 0 || key.data[0] != '-')
            return false;
        key = (struct str){key.data + 1, key.len - 1};
        if (!take_hex(&key, 8, &part))
            return false;
    }
    if (key.len > 0)
        return false;
    *ret_seq = seq;
    *ret_part = (uint32_t)part;
    return true;
}

/* --- lines of numbers --------------------------------------------------------------------------------- */

/* Writes "NAME N N ... CHECK": decimal numbers, and the checksum of everything before it. The line is
 * readable with etcdctl. */
static void line_write(struct buf *out, const char *name, const int64_t *numbers, size_t count)
{
    size_t start = out->len;
    buf_printf(out, "%s", name);
    for (size_t i = 0; i < count; i++)
        buf_printf(out, " %" PRId64, numbers[i]);
    uint32_t crc = crc32c(0, out->data + start, out->len - start);
    buf_printf(out, " %" PRIu32, crc);
}

/* Reads a number, only in the form in which line_write() writes it. */
static bool line_number(struct str text, int64_t *ret)
{
    char again[DECIMAL_TEXT_MAX];
    bool negative = text.len > 0 && text.data[0] == '-';
    struct str digits = negative ? (struct str){text.data + 1, text.len - 1} : text;
    uint64_t value = 0;
    if (digits.len == 0 || digits.len > 19)
        return false;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(digits.data[i] - '0');
    }
    if (value > (uint64_t)INT64_MAX + negative)
        return false;
    *ret = negative ? (int64_t)(0 - value) : (int64_t)value;
    return str_equal(str_decimal(*ret, again), text);
}

static bool line_read(struct str text, const char *name, int64_t *numbers, size_t count)
{
    struct str whole = text, word = text, rest = {0};
    if (text.len == 0 || text.len > ETCD_ROW_MAX)
        return false;
    if (!str_cut(text, ' ', &word, &rest) || !str_is(word, name))
        return false;
    for (size_t i = 0; i < count; i++) {
        text = rest;
        if (!str_cut(text, ' ', &word, &rest) || !line_number(word, &numbers[i]))
            return false;
    }
    int64_t crc;
    size_t covered = whole.len - rest.len - 1;
    return line_number(rest, &crc) && crc == (int64_t)crc32c(0, whole.data, covered);
}

static bool is_u32(int64_t value)
{
    return value >= 0 && value <= UINT32_MAX;
}

/* --- the head ----------------------------------------------------------------------------------------- */

void etcd_head_write(const struct etcd_head *head, struct buf *out)
{
    int64_t numbers[] = {(int64_t)head->last_seq, head->last_crc, (int64_t)head->base_seq, head->base_crc,
                         head->restored};
    line_write(out, "phalanx-log-1", numbers, 5);
}

bool etcd_head_read(struct str text, struct etcd_head *ret_head)
{
    int64_t numbers[5];
    if (!line_read(text, "phalanx-log-1", numbers, 5))
        return false;
    if (numbers[2] < 0 || numbers[0] < numbers[2] || !is_u32(numbers[1]) || !is_u32(numbers[3]) ||
        (numbers[4] != 0 && numbers[4] != 1))
        return false;
    *ret_head = (struct etcd_head){(uint64_t)numbers[0], (uint64_t)numbers[2], (uint32_t)numbers[1],
                                   (uint32_t)numbers[3], numbers[4] == 1};
    return true;
}

/* --- replicas ----------------------------------------------------------------------------------------- */

void etcd_replica_write(const struct etcd_replica *replica, struct buf *out)
{
    int64_t numbers[] = {replica->reads, replica->level};
    CHECK(!strchr(replica->version, ' ') && !strchr(replica->who, ' '));
    line_write(out, "phalanx-replica-1", numbers, 2);
    buf_printf(out, " %s %s", replica->version, replica->who);
}

/* Moves the last word of a text into a field of `size` bytes. */
static bool take_last_word(struct str *text, char *field, size_t size)
{
    size_t at = text->len;
    while (at > 0 && text->data[at - 1] != ' ')
        at--;
    size_t len = text->len - at;
    if (at == 0 || len == 0 || len >= size || memchr(text->data + at, 0, len))
        return false;
    memcpy(field, text->data + at, len);
    field[len] = 0;
    text->len = at - 1;
    return true;
}

bool etcd_replica_read(struct str text, struct etcd_replica *ret_replica)
{
    struct etcd_replica replica = {0};
    int64_t numbers[2];
    if (!take_last_word(&text, replica.who, sizeof replica.who) ||
        !take_last_word(&text, replica.version, sizeof replica.version) ||
        !line_read(text, "phalanx-replica-1", numbers, 2) || !is_u32(numbers[0]) || !is_u32(numbers[1]))
        return false;
    replica.reads = (uint32_t)numbers[0];
    replica.level = (uint32_t)numbers[1];
    *ret_replica = replica;
    return true;
}

/* --- groups ------------------------------------------------------------------------------------------- */

static const char group_magic[8] = "PhxGrp1";

static uint64_t get_number(const char *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | (uint8_t)at[i];
    return value;
}

void etcd_group_begin(struct buf *out, uint64_t first_seq, uint32_t count, uint32_t previous_crc)
{
    uint8_t head[ETCD_GROUP_HEAD_BYTES];
    CHECK(out->len == 0 && count > 0);
    memcpy(head, group_magic, sizeof group_magic);
    store_put_u64(head + 8, first_seq);
    store_put_u64(head + 16, 0);
    store_put_u32(head + 24, count);
    store_put_u32(head + 28, previous_crc);
    buf_add(out, head, sizeof head);
}

void etcd_group_add(struct buf *out, int64_t stamp_ns, struct str bytes, uint32_t crc)
{
    uint8_t head[ETCD_RECORD_HEAD_BYTES];
    CHECK(bytes.len <= UINT32_MAX);
    store_put_u64(head, (uint64_t)stamp_ns);
    store_put_u32(head + 8, (uint32_t)bytes.len);
    store_put_u32(head + 12, crc);
    buf_add(out, head, sizeof head);
    buf_add_str(out, bytes);
}

void etcd_group_end(struct buf *out)
{
    CHECK(out->len >= ETCD_GROUP_HEAD_BYTES);
    store_put_u64((uint8_t *)out->data + 16, out->len);
}

bool etcd_group_open(struct str bytes, struct etcd_group *ret_group)
{
    if (bytes.len < ETCD_GROUP_HEAD_BYTES || memcmp(bytes.data, group_magic, sizeof group_magic) != 0)
        return false;
    struct etcd_group group = {
        .first_seq = get_number(bytes.data + 8, 8),
        .bytes = get_number(bytes.data + 16, 8),
        .count = (uint32_t)get_number(bytes.data + 24, 4),
        .previous_crc = (uint32_t)get_number(bytes.data + 28, 4),
        .rest = {bytes.data + ETCD_GROUP_HEAD_BYTES, bytes.len - ETCD_GROUP_HEAD_BYTES},
    };
    if (group.count == 0 || group.first_seq == 0 || group.first_seq > (uint64_t)INT64_MAX - group.count ||
        group.bytes < ETCD_GROUP_HEAD_BYTES || bytes.len > group.bytes ||
        (group.bytes - ETCD_GROUP_HEAD_BYTES) / ETCD_RECORD_HEAD_BYTES < group.count ||
        group.bytes > (uint64_t)ETCD_PARTS_MAX * (uint64_t)ETCD_PART_BYTES)
        return false;
    *ret_group = group;
    return true;
}

bool etcd_group_next(struct etcd_group *group, int64_t *ret_stamp_ns, struct str *ret_bytes,
                     uint32_t *ret_crc)
{
    struct str rest = group->rest;
    if (rest.len < ETCD_RECORD_HEAD_BYTES)
        return false;
    size_t len = (size_t)get_number(rest.data + 8, 4);
    if (rest.len - ETCD_RECORD_HEAD_BYTES < len || len > STORE_RECORD_BYTES_MAX + STORE_SEAL_BYTES)
        return false;
    *ret_stamp_ns = (int64_t)get_number(rest.data, 8);
    *ret_crc = (uint32_t)get_number(rest.data + 12, 4);
    *ret_bytes = (struct str){rest.data + ETCD_RECORD_HEAD_BYTES, len};
    size_t taken = ETCD_RECORD_HEAD_BYTES + len;
    group->rest = (struct str){rest.data + taken, rest.len - taken};
    return true;
}

/* --- rows of snapshots -------------------------------------------------------------------------------- */

void etcd_row_write(const struct etcd_row *row, struct buf *out)
{
    int64_t numbers[] = {(int64_t)row->seq,          row->stamp_ns, row->log_crc,   (int64_t)row->raw_bytes,
                         (int64_t)row->packed_bytes, row->chunks,   row->packed_crc};
    line_write(out, "phalanx-snapshot-1", numbers, 7);
}

bool etcd_row_read(struct str text, struct etcd_row *ret_row)
{
    int64_t n[7];
    if (!line_read(text, "phalanx-snapshot-1", n, 7))
        return false;
    if (n[0] < 0 || !is_u32(n[2]) || n[3] < 0 || n[3] > STORE_SNAPSHOT_BYTES_MAX || n[4] < 0 ||
        !is_u32(n[5]) || !is_u32(n[6]))
        return false;
    *ret_row = (struct etcd_row){(uint64_t)n[0], n[1],           (uint32_t)n[2], (uint64_t)n[3],
                                 (uint64_t)n[4], (uint32_t)n[5], (uint32_t)n[6]};
    return true;
}
