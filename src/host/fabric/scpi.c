#include "host/fabric/scpi.h"

#include <stdlib.h>

#include "base/check.h"

static void put_list(struct buf *out, const struct phx_crossconnect *pairs, uint32_t count, bool b_side)
{
    buf_add_str(out, STR("(@"));
    for (uint32_t i = 0; i < count; i++)
        buf_printf(out, i ? ",%u" : "%u", b_side ? pairs[i].b : pairs[i].a);
    buf_add_char(out, ')');
}

void scpi_put_pairs(struct buf *out, const char *verb, const struct phx_crossconnect *pairs, uint32_t count)
{
    CHECK(count > 0);
    buf_printf(out, ":oxc:swit:conn:%s ", verb);
    put_list(out, pairs, count, false);
    buf_add_char(out, ',');
    put_list(out, pairs, count, true);
    buf_add_char(out, '\n');
}

static int not_scpi(struct error *error, const char *what, struct str line)
{
    return error_set(error, ERROR_CORRUPT, "the switch answered \"" STR_FORMAT "\": expected %s",
                     STR_ARG(str_head_utf8(line, 80)), what);
}

int scpi_read_size(struct str line, uint32_t *ret_a_ports, uint32_t *ret_b_ports, struct error *error)
{
    struct str first, second;
    int64_t a, b;
    if (!str_cut(str_trim(line), ',', &first, &second) ||
        !str_to_i64(str_trim(first), 1, PHX_SWITCH_PORTS_MAX, &a) ||
        !str_to_i64(str_trim(second), 0, PHX_SWITCH_PORTS_MAX, &b) || a + b > PHX_SWITCH_PORTS_MAX)
        return not_scpi(error, "its size, such as 64,64", line);
    *ret_a_ports = (uint32_t)a;
    *ret_b_ports = (uint32_t)b;
    return 0;
}

static void copy_text(char *to, struct str from)
{
    struct str part = str_head_utf8(str_trim(from), PHX_SWITCH_TEXT_MAX - 1);
    if (!str_is_utf8(part))
        part = STR("?");
    memcpy(to, part.data ? part.data : "", part.len);
    to[part.len] = 0;
}

int scpi_read_identity(struct str line, struct phx_switch_identity *ret_identity, struct error *error)
{
    struct str part[4], rest = str_trim(line);
    for (int i = 0; i < 3; i++)
        if (!str_cut(rest, ',', &part[i], &rest))
            return not_scpi(error, "VENDOR,MODEL,SERIAL,FIRMWARE", line);
    part[3] = rest;
    copy_text(ret_identity->vendor, part[0]);
    copy_text(ret_identity->model, part[1]);
    copy_text(ret_identity->serial, part[2]);
    copy_text(ret_identity->firmware, part[3]);
    return 0;
}

int scpi_read_verdict(struct str line, int64_t *ret_code, struct str *ret_text, struct error *error)
{
    struct str number, text;
    int64_t code;
    if (!str_cut(str_trim(line), ',', &number, &text) ||
        !str_to_i64(str_trim(number), INT16_MIN, INT16_MAX, &code))
        return not_scpi(error, "an error number and a text, such as 0,\"No error\"", line);
    text = str_trim(text);
    if (text.len >= 2 && text.data[0] == '"' && text.data[text.len - 1] == '"')
        text = (struct str){text.data + 1, text.len - 2};
    *ret_code = code;
    *ret_text = text;
    return 0;
}

/* --- lists of cross-connects --------------------------------------------------------------------- */

static int compare_pairs(const void *a, const void *b)
{
    const struct phx_crossconnect *one = a, *two = b;
    return one->a < two->a ? -1 : one->a > two->a;
}

int fabric_pairs_check(struct phx_crossconnect *pairs, uint32_t count, uint32_t a_ports, uint32_t b_ports,
                       struct error *error)
{
    bool taken[PHX_SWITCH_PORTS_MAX + 1] = {false};
    CHECK(a_ports + b_ports <= PHX_SWITCH_PORTS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t a = pairs[i].a, b = pairs[i].b;
        if (a < 1 || a > a_ports || b <= a_ports || b > a_ports + b_ports)
            return error_set(error, ERROR_CORRUPT,
                             "the switch names cross-connect %u-%u: its A side has ports 1 to %u, its B side "
                             "%u to %u",
                             a, b, a_ports, a_ports + 1, a_ports + b_ports);
        if (taken[a] || taken[b])
            return error_set(error, ERROR_CORRUPT, "the switch names port %u in two cross-connects",
                             taken[a] ? a : b);
        taken[a] = taken[b] = true;
    }
    qsort(pairs, count, sizeof *pairs, compare_pairs);
    return 0;
}

/* Takes a list such as "(@1,2)" with up to `capacity` numbers off *rest. Returns false if *rest does not
 * begin with one. */
static bool take_ports(struct str *rest, uint32_t *ports, uint32_t capacity, uint32_t *ret_count)
{
    struct str head, numbers, tail;
    uint32_t count = 0;
    if (!str_starts(*rest, STR("(@")) || !str_cut(*rest, ')', &head, &tail))
        return false;
    numbers = str_trim((struct str){head.data + 2, head.len - 2});
    for (bool more = numbers.len > 0; more;) {
        struct str part;
        int64_t port;
        more = str_cut(numbers, ',', &part, &numbers);
        if (!more)
            part = numbers;
        if (count == capacity || !str_to_i64(str_trim(part), 1, PHX_SWITCH_PORTS_MAX, &port))
            return false;
        ports[count++] = (uint32_t)port;
    }
    *rest = str_trim(tail);
    *ret_count = count;
    return true;
}

static bool take_separator(struct str *rest, char separator)
{
    if (!rest->len || rest->data[0] != separator)
        return false;
    *rest = str_trim((struct str){rest->data + 1, rest->len - 1});
    return true;
}

int scpi_read_pairs(struct str line, uint32_t a_ports, uint32_t b_ports, struct phx_crossconnect *ret_pairs,
                    uint32_t capacity, uint32_t *ret_count, struct error *error)
{
    uint32_t a[PHX_SWITCH_PORTS_MAX], b[PHX_SWITCH_PORTS_MAX], count = 0;
    struct phx_crossconnect pairs[PHX_SWITCH_PORTS_MAX];
    struct str rest = str_trim(line);
    while (rest.len) {
        uint32_t a_count, b_count;
        if (!take_ports(&rest, a, PHX_SWITCH_PORTS_MAX - count, &a_count) || !take_separator(&rest, ',') ||
            !take_ports(&rest, b, PHX_SWITCH_PORTS_MAX - count, &b_count) || a_count != b_count)
            return not_scpi(error, "two port lists of one length, such as (@1,2),(@65,66)", line);
        for (uint32_t i = 0; i < a_count; i++)
            pairs[count++] = (struct phx_crossconnect){a[i], b[i]};
        if (rest.len && !take_separator(&rest, ';'))
            return not_scpi(error, "port lists apart by ';'", line);
    }
    if (fabric_pairs_check(pairs, count, a_ports, b_ports, error) < 0)
        return ERROR_CORRUPT;
    if (count > capacity)
        return error_set(error, ERROR_CORRUPT, "the switch names %u cross-connects: expected at most %u",
                         count, capacity);
    memcpy(ret_pairs, pairs, count * sizeof *pairs);
    *ret_count = count;
    return 0;
}
