/* The TL1 driver of Polatis switches (tl1.h). TL1 does not report the size of a switch, so the driver takes
 * the size from the configuration, or 64 and 64 ports. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "host/fabric/internal.h"
#include "host/fabric/session.h"
#include "host/fabric/tl1.h"

enum { TL1_SIDE_DEFAULT = 64, TL1_MESSAGES_MAX = 10000 };

/* Sends a command and collects the quoted lines of its answer from all of its messages. */
static int tl1_ask(struct phx_switch *sw, struct str command, struct buf *lines,
                   struct phx_switch_error *error)
{
    int rc = line_send(&sw->line, command, error);
    for (int i = 0; rc == PHX_SWITCH_OK && i < TL1_MESSAGES_MAX; i++) {
        struct str message;
        struct tl1_answer answer;
        struct error why;
        rc = line_receive(&sw->line, tl1_message_length, &message, error);
        if (rc < 0)
            return rc;
        if (tl1_read_answer(message, &answer, &why) < 0)
            return switch_fail(error, PHX_SWITCH_GARBLED, "%.250s", why.text);
        if (answer.autonomous || answer.ctag != sw->ctag || answer.verdict == TL1_DELAYED)
            continue;
        if (answer.verdict != TL1_COMPLETED) {
            memcpy(sw->refusal, answer.code, sizeof sw->refusal);
            return switch_fail(
                error, answer.code[0] == 'P' ? PHX_SWITCH_DENIED : PHX_SWITCH_FAILED,
                "the switch refuses: %s, " STR_FORMAT, answer.code,
                STR_ARG(str_is_utf8(answer.comment) ? str_head_utf8(answer.comment, 60) : STR("?")));
        }
        if (lines)
            buf_add_str(lines, answer.lines);
        if (!answer.continued)
            return PHX_SWITCH_OK;
    }
    return rc < 0 ? rc : switch_fail(error, PHX_SWITCH_GARBLED, "the switch answers other commands only");
}

static int tl1_bad_line(struct phx_switch_error *error, struct str line)
{
    return switch_fail(error, PHX_SWITCH_GARBLED, "the switch answered a line of another form: " STR_FORMAT,
                       STR_ARG(str_is_utf8(line) ? str_head_utf8(line, 60) : STR("no UTF-8")));
}

static int tl1_list(struct phx_switch *sw, struct phx_crossconnect *ret_pairs, uint32_t *ret_count,
                    struct phx_switch_error *error)
{
    struct buf command BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
    struct error why;
    struct str line;
    uint32_t count = 0;
    buf_printf(&command, "RTRV-PATCH:::%u:;\n", ++sw->ctag);
    int rc = tl1_ask(sw, buf_str(&command), &text, error);
    if (rc < 0)
        return rc;
    for (struct str lines = buf_str(&text); tl1_next_line(&lines, &line);)
        if (count == PHX_SWITCH_PORTS_MAX || !tl1_read_pair(line, &ret_pairs[count++]))
            return tl1_bad_line(error, line);
    if (fabric_pairs_check(ret_pairs, count, sw->a_ports, sw->b_ports, &why) < 0)
        return switch_fail(error, PHX_SWITCH_GARBLED, "%.250s", why.text);
    *ret_count = count;
    return PHX_SWITCH_OK;
}

static int tl1_change(struct phx_switch *sw, bool add, const struct phx_crossconnect *pairs, uint32_t count,
                      struct phx_switch_error *error)
{
    struct buf command BUF_CLEANUP = {0};
    tl1_put_pairs(&command, add ? "ENT-PATCH" : "DLT-PATCH", pairs, count, add, ++sw->ctag);
    return tl1_ask(sw, buf_str(&command), NULL, error);
}

static const struct dialect tl1_dialect = {tl1_list, tl1_change};

static int tl1_ports(struct phx_switch *sw, uint32_t first, uint32_t count, struct phx_switch_port *ret_ports,
                     struct phx_switch_error *error)
{
    struct buf command BUF_CLEANUP = {0}, power BUF_CLEANUP = {0}, shutters BUF_CLEANUP = {0};
    struct str line;
    uint32_t port;
    int32_t mdbm;
    bool closed;
    int rc = session_ports(sw, first, count, ret_ports, error);
    if (rc < 0)
        return rc;
    buf_printf(&command, "RTRV-PORT-POWER::%u&&%u:%u:;\n", first, first + count - 1, ++sw->ctag);
    rc = tl1_ask(sw, buf_str(&command), &power, error);
    if (rc < 0)
        return rc;
    buf_clear(&command);
    buf_printf(&command, "RTRV-PORT-SHUTTER::%u&&%u:%u:;\n", first, first + count - 1, ++sw->ctag);
    rc = tl1_ask(sw, buf_str(&command), &shutters, error);
    if (rc < 0)
        return rc;
    for (struct str lines = buf_str(&power); tl1_next_line(&lines, &line);) {
        if (!tl1_read_power(line, &port, &mdbm) || port < first || port >= first + count)
            return tl1_bad_line(error, line);
        ret_ports[port - first].power_mdbm = mdbm;
    }
    for (struct str lines = buf_str(&shutters); tl1_next_line(&lines, &line);) {
        if (!tl1_read_shutter(line, &port, &closed) || port < first || port >= first + count)
            return tl1_bad_line(error, line);
        ret_ports[port - first].shutter_closed = closed;
        if (closed)
            ret_ports[port - first].state = PHX_PORT_BLOCKED;
    }
    return PHX_SWITCH_OK;
}

static int tl1_shutter(struct phx_switch *sw, const uint32_t *ports, uint32_t count, uint8_t closed,
                       struct phx_switch_error *error)
{
    struct buf command BUF_CLEANUP = {0};
    uint32_t all = sw->a_ports + sw->b_ports;
    if (!count)
        return PHX_SWITCH_OK;
    for (uint32_t i = 0; i < count; i++)
        if (ports[i] < 1 || ports[i] > all)
            return switch_fail(error, PHX_SWITCH_INVALID, "port %u: the switch has %u", ports[i], all);
    buf_add_str(&command, closed ? STR("OPR-PORT-SHUTTER::") : STR("RLS-PORT-SHUTTER::"));
    for (uint32_t i = 0; i < count; i++)
        buf_printf(&command, i ? "&%u" : "%u", ports[i]);
    buf_printf(&command, ":%u:;\n", ++sw->ctag);
    return tl1_ask(sw, buf_str(&command), NULL, error);
}

static int compare_alarms(const void *a, const void *b)
{
    const struct phx_switch_alarm *one = a, *other = b;
    if (one->severity != other->severity)
        return (int)other->severity - (int)one->severity;
    return one->port < other->port ? -1 : one->port > other->port;
}

static int tl1_alarms(struct phx_switch *sw, struct phx_switch_alarm *ret_alarms, uint32_t capacity,
                      uint32_t *ret_count, struct phx_switch_error *error)
{
    struct buf command BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
    VEC(struct phx_switch_alarm) found = {0};
    struct phx_switch_alarm alarm;
    struct str line;
    bool clear;
    buf_printf(&command, "RTRV-ALM-ALL:::%u:;\n", ++sw->ctag);
    int rc = tl1_ask(sw, buf_str(&command), &text, error);
    if (rc < 0)
        return rc;
    for (struct str lines = buf_str(&text); rc == PHX_SWITCH_OK && tl1_next_line(&lines, &line);) {
        if (!tl1_read_alarm(line, &alarm, &clear))
            rc = tl1_bad_line(error, line);
        else if (!clear)
            vec_push(&found, alarm);
    }
    if (rc == PHX_SWITCH_OK) { /* the most severe alarms, if there is not enough space for all */
        uint32_t count = found.len < capacity ? (uint32_t)found.len : capacity;
        if (found.len)
            qsort(found.items, found.len, sizeof *found.items, compare_alarms);
        if (count)
            memcpy(ret_alarms, found.items, count * sizeof *ret_alarms);
        *ret_count = count;
    }
    vec_done(&found);
    return rc;
}

static bool tl1_word_is_plain(const char *word)
{
    return word[0] && !word[strcspn(word, ":;,&\"\r\n")];
}

/* Logs in. A switch may repeat the command in its answer, password included, so errors contain no text of the
 * answer. */
static int tl1_login(struct phx_switch *sw, const char *user, const char *secret,
                     struct phx_switch_error *error)
{
    struct buf command BUF_CLEANUP = {0};
    if (!tl1_word_is_plain(user) || (secret[0] && !tl1_word_is_plain(secret)))
        return switch_fail(error, PHX_SWITCH_INVALID,
                           "user and password: TL1 has no way to write : ; , & and quotes in them");
    buf_printf(&command, "ACT-USER::%s:%u::%s;\n", user, ++sw->ctag, secret);
    int rc = tl1_ask(sw, buf_str(&command), NULL, error);
    if (rc == PHX_SWITCH_DENIED || rc == PHX_SWITCH_FAILED)
        return switch_fail(error, PHX_SWITCH_DENIED, "the switch refuses the login of %s: %s", user,
                           sw->refusal[0] ? sw->refusal : "it gives no code");
    if (rc == PHX_SWITCH_GARBLED)
        return switch_fail(error, PHX_SWITCH_GARBLED, "the switch answers the login of %s in another form",
                           user);
    return rc;
}

static int tl1_begin(struct phx_switch *sw, const struct phx_switch_config *config,
                     struct phx_switch_error *error)
{
    struct buf command BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
    struct str line;
    int rc = line_open(&sw->line, config->address, config->timeout_ms, error);
    if (rc == PHX_SWITCH_OK && config->user)
        rc = tl1_login(sw, config->user, config->secret ? config->secret : "", error);
    if (rc < 0)
        return rc;
    buf_printf(&command, "RTRV-NETYPE:::%u:;\n", ++sw->ctag);
    rc = tl1_ask(sw, buf_str(&command), &text, error);
    if (rc < 0)
        return rc;
    struct str lines = buf_str(&text);
    if (tl1_next_line(&lines, &line))
        (void)scpi_read_identity(line, &sw->identity, NULL); /* other forms leave it empty */
    return PHX_SWITCH_OK;
}

static int tl1_open(const struct phx_switch_config *config, struct phx_switch **ret_switch,
                    struct phx_switch_error *error)
{
    struct phx_switch *sw = mem_alloc(sizeof *sw);
    sw->dialect = &tl1_dialect;
    sw->a_ports = config->a_ports ? config->a_ports : TL1_SIDE_DEFAULT;
    sw->b_ports = config->b_ports ? config->b_ports : TL1_SIDE_DEFAULT;
    int rc = tl1_begin(sw, config, error);
    if (rc < 0)
        session_close(sw);
    else
        *ret_switch = sw;
    return rc;
}

const struct phx_switch_driver driver_tl1 = {
    .abi = PHX_SWITCH_DRIVER_ABI,
    .name = "tl1",
    .open = tl1_open,
    .close = session_close,
    .identify = session_identify,
    .list = session_list,
    .add = session_add,
    .remove = session_remove,
    .ports = tl1_ports,
    .shutter = tl1_shutter,
    .alarms = tl1_alarms,
};
