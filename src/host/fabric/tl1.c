#include "host/fabric/tl1.h"

#include "base/check.h"

static void put_joined(struct buf *out, const struct phx_crossconnect *pairs, uint32_t count, bool b_side)
{
    for (uint32_t i = 0; i < count; i++)
        buf_printf(out, i ? "&%u" : "%u", b_side ? pairs[i].b : pairs[i].a);
}

void tl1_put_pairs(struct buf *out, const char *verb, const struct phx_crossconnect *pairs, uint32_t count,
                   bool both, uint32_t ctag)
{
    CHECK(count > 0);
    buf_printf(out, "%s::", verb);
    put_joined(out, pairs, count, false);
    if (both) {
        buf_add_char(out, ',');
        put_joined(out, pairs, count, true);
    }
    buf_printf(out, ":%u:;\n", ctag);
}

/* A ';' within a quoted line or a comment does not end a message. */
size_t tl1_message_length(struct str bytes)
{
    bool quoted = false, comment = false;
    for (size_t i = 0; i < bytes.len; i++) {
        char c = bytes.data[i];
        bool pair = i + 1 < bytes.len;
        if (comment)
            comment = !(c == '/' && bytes.data[i - 1] == '*');
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && pair && c == '/' && bytes.data[i + 1] == '*')
            comment = true;
        else if (!quoted && (c == ';' || c == '>'))
            return i + 1;
    }
    return 0;
}

static int not_tl1(struct error *error, const char *what, struct str message)
{
    return error_set(error, ERROR_CORRUPT, "the switch answered \"" STR_FORMAT "\": expected %s",
                     STR_ARG(str_head_utf8(str_trim(message), 60)), what);
}

/* Takes the next line that is not blank, without its end. */
static bool next_text(struct str *rest, struct str *ret_line)
{
    while (rest->len) {
        struct str line;
        if (!str_cut(*rest, '\n', &line, rest)) {
            line = *rest;
            *rest = STR("");
        }
        *ret_line = str_trim(line);
        if (ret_line->len)
            return true;
    }
    return false;
}

static struct str take_word(struct str *rest)
{
    struct str word;
    *rest = str_trim(*rest);
    if (!str_cut(*rest, ' ', &word, rest)) {
        word = *rest;
        *rest = STR("");
    }
    return word;
}

static bool verdict_of(struct str word, enum tl1_verdict *ret_verdict)
{
    static const char *const words[] = {"COMPLD", "DENY", "PRTL", "DELAY"};
    for (int i = 0; i < 4; i++)
        if (str_is(word, words[i])) {
            *ret_verdict = (enum tl1_verdict)i;
            return true;
        }
    return false;
}

static void read_refusal(struct tl1_answer *answer, struct str rest)
{
    struct str line, before, text;
    while (next_text(&rest, &line)) {
        if (line.len == 4 && !answer->code[0])
            memcpy(answer->code, line.data, 4);
        else if (str_starts(line, STR("/*")) && str_ends(line, STR("*/")) && line.len >= 4)
            answer->comment = str_trim((struct str){line.data + 2, line.len - 4});
        else if (str_cut(line, '/', &before, &text))
            answer->comment = text;
    }
    if (!str_is_utf8(str_from(answer->code)))
        memset(answer->code, 0, sizeof answer->code);
}

int tl1_read_answer(struct str message, struct tl1_answer *ret_answer, struct error *error)
{
    struct tl1_answer answer = {0};
    struct str rest = message, header, line;
    int64_t ctag;
    if (!message.len || (message.data[message.len - 1] != ';' && message.data[message.len - 1] != '>'))
        return not_tl1(error, "an answer that ends with ';'", message);
    answer.continued = message.data[message.len - 1] == '>';
    rest.len--;
    /* A prompt of the session may precede the header. */
    if (!next_text(&rest, &header) || !next_text(&rest, &line))
        return not_tl1(error, "a header line and an answer line", message);
    struct str mark = take_word(&line);
    if (str_is(mark, "A") || str_is(mark, "*") || str_is(mark, "**") || str_is(mark, "*C") ||
        str_is(mark, "*^")) {
        answer.autonomous = true;
    } else if (!str_is(mark, "M") || !str_to_i64(take_word(&line), 0, UINT32_MAX, &ctag) ||
               !verdict_of(take_word(&line), &answer.verdict)) {
        return not_tl1(error, "a line such as M  7 COMPLD", message);
    } else {
        answer.ctag = (uint32_t)ctag;
    }
    answer.lines = rest;
    if (!answer.autonomous && answer.verdict == TL1_DENIED)
        read_refusal(&answer, rest);
    *ret_answer = answer;
    return 0;
}

bool tl1_next_line(struct str *lines, struct str *ret_line)
{
    struct str text;
    while (next_text(lines, &text))
        if (text.len >= 2 && text.data[0] == '"' && text.data[text.len - 1] == '"') {
            *ret_line = (struct str){text.data + 1, text.len - 2};
            return true;
        }
    return false;
}

/* --- lines ---------------------------------------------------------------------------------------- */

static bool port_of(struct str text, uint32_t *ret_port)
{
    int64_t port;
    if (!str_to_i64(str_trim(text), 1, PHX_SWITCH_PORTS_MAX, &port))
        return false;
    *ret_port = (uint32_t)port;
    return true;
}

bool tl1_read_pair(struct str line, struct phx_crossconnect *ret_pair)
{
    struct str a, b;
    struct phx_crossconnect pair;
    if (!str_cut(line, ',', &a, &b) || !port_of(a, &pair.a) || !port_of(b, &pair.b))
        return false;
    *ret_pair = pair;
    return true;
}

/* Reads "-3.42" as -3420: up to three decimals, from -200 to 200. */
static bool thousandths_of(struct str text, int32_t *ret_value)
{
    struct str whole, decimals = STR("");
    int64_t units, parts = 0;
    bool minus = text.len && text.data[0] == '-';
    if (minus)
        text = (struct str){text.data + 1, text.len - 1};
    if (!str_cut(text, '.', &whole, &decimals))
        whole = text;
    if (decimals.len > 3 || !str_to_i64(whole, 0, 200, &units) ||
        (decimals.len && !str_to_i64(decimals, 0, 999, &parts)))
        return false;
    for (size_t i = decimals.len; i < 3; i++)
        parts *= 10;
    int32_t value = (int32_t)(units * 1000 + parts);
    *ret_value = minus ? -value : value;
    return true;
}

bool tl1_read_power(struct str line, uint32_t *ret_port, int32_t *ret_mdbm)
{
    struct str port_text, power;
    uint32_t port;
    int32_t mdbm;
    if (!str_cut(line, ':', &port_text, &power) || !port_of(port_text, &port) ||
        !thousandths_of(str_trim(power), &mdbm))
        return false;
    *ret_port = port;
    *ret_mdbm = mdbm;
    return true;
}

bool tl1_read_shutter(struct str line, uint32_t *ret_port, bool *ret_closed)
{
    struct str port_text, word;
    uint32_t port;
    if (!str_cut(line, ':', &port_text, &word) || !port_of(port_text, &port) ||
        (!str_is(word, "OPEN") && !str_is(word, "CLOSED")))
        return false;
    *ret_port = port;
    *ret_closed = str_is(word, "CLOSED");
    return true;
}

bool tl1_read_alarm(struct str line, struct phx_switch_alarm *ret_alarm, bool *ret_clear)
{
    static const char *const words[] = {"CL", "MN", "MJ", "CR"}; /* by enum phx_alarm_severity */
    struct str place, severity, condition, rest;
    struct phx_switch_alarm alarm = {0};
    int level = 0;
    if (!str_cut(line, ':', &place, &rest) || !str_cut(rest, ',', &severity, &rest))
        return false;
    if (!str_cut(rest, ',', &condition, &rest))
        condition = rest;
    while (level < 4 && !str_is(severity, words[level]))
        level++;
    if (level == 4 || !str_is_utf8(condition))
        return false;
    if (!port_of(place, &alarm.port))
        alarm.port = 0; /* an alarm of a shelf or card counts as one of the switch */
    alarm.severity = (enum phx_alarm_severity)level;
    condition = str_head_utf8(condition, PHX_SWITCH_TEXT_MAX - 1);
    memcpy(alarm.condition, condition.data, condition.len);
    *ret_alarm = alarm;
    *ret_clear = level == 0;
    return true;
}
