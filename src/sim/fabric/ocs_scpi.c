/* The SCPI side of an emulated switch. Errors are numbers in a queue, as in IEEE 488.2: -113 undefined
 * header, -200 execution, -221 settings conflict, -222 out of range, -350 queue overflow. */
#include <strings.h>

#include "sim/fabric/ocs_session.h"

static void scpi_raise(struct ocs_session *session, int number)
{
    if (session->error_count < OCS_ERRORS_MAX)
        session->errors[session->error_count++] = number;
    else
        session->errors[OCS_ERRORS_MAX - 1] = -350;
}

static const char *scpi_error_text(int number)
{
    switch (number) {
    case 0:
        return "No error";
    case -113:
        return "Undefined header";
    case -109:
        return "Missing parameter";
    case -221:
        return "Settings conflict";
    case -222:
        return "Data out of range";
    case -350:
        return "Queue overflow";
    default:
        return "Execution error";
    }
}

/* Returns whether `path` matches `pattern`, ignoring case: each word in full, or only its capitals. */
static bool path_is(struct str path, const char *pattern)
{
    for (struct str rest = str_from(pattern), full, word; rest.len; path = str_trim(path)) {
        bool more = str_cut(rest, ':', &full, &rest);
        if (!more) {
            full = rest;
            rest = STR("");
        }
        if (str_cut(path, ':', &word, &path) != more)
            return false;
        word = more ? word : path;
        size_t brief = 0;
        while (brief < full.len && !(full.data[brief] >= 'a' && full.data[brief] <= 'z'))
            brief++;
        if ((word.len != full.len && word.len != brief) || strncasecmp(word.data, full.data, word.len) != 0)
            return false;
    }
    return true;
}

/* Reads a list such as "(@1,2)". Returns false if the text is not a list, or names a port that the switch
 * does not have. */
static bool scpi_take_list(const struct ocs *ocs, struct str *text, uint32_t *ports, uint32_t *ret_count)
{
    struct str list, tail;
    uint32_t count = 0;
    *text = str_trim(*text);
    if (!str_starts(*text, STR("(@")) || !str_cut(*text, ')', &list, &tail))
        return false;
    list = (struct str){list.data + 2, list.len - 2};
    for (bool more = list.len > 0; more;) {
        struct str part;
        int64_t port;
        more = str_cut(list, ',', &part, &list);
        if (!more)
            part = list;
        if (count == OCS_PORTS_MAX || !str_to_i64(str_trim(part), 1, ocs_ports(ocs), &port))
            return false;
        ports[count++] = (uint32_t)port;
    }
    *text = str_trim(tail);
    *ret_count = count;
    return true;
}

static void change_pairs(struct ocs_session *session, struct ocs *ocs, bool add, struct str text,
                         int64_t now_ns)
{
    uint32_t a[OCS_PORTS_MAX], b[OCS_PORTS_MAX], a_count, b_count;
    bool read = scpi_take_list(ocs, &text, a, &a_count) && str_starts(text, STR(","));
    text = read ? (struct str){text.data + 1, text.len - 1} : text;
    if (!read || !scpi_take_list(ocs, &text, b, &b_count) || a_count != b_count) {
        scpi_raise(session, -222);
        return;
    }
    for (uint32_t i = 0; i < a_count; i++) {
        enum ocs_result result = ocs_may_join(ocs, a[i], b[i]);
        if (!add)
            result = ocs_peer(ocs, a[i]) == b[i] ? OCS_DONE : OCS_NOT_JOINED;
        if (result != OCS_DONE) {
            scpi_raise(session, result == OCS_WRONG_SIDE ? -222 : -221);
            return;
        }
    }
    for (uint32_t i = 0; i < a_count; i++) {
        enum ocs_result result = add ? ocs_join(ocs, a[i], b[i], now_ns) : ocs_part(ocs, a[i], b[i], now_ns);
        if (result == OCS_DIED)
            return;
        if (result != OCS_DONE) { /* a port is in the list twice */
            scpi_raise(session, -221);
            return;
        }
    }
}

static void put_side(const struct ocs *ocs, bool b_side, struct buf *out)
{
    buf_add_str(out, STR("(@"));
    for (uint32_t port = 1, count = 0; port <= ocs->settings.a_ports; port++)
        if (ocs_peer(ocs, port))
            buf_printf(out, count++ ? ",%u" : "%u", b_side ? ocs_peer(ocs, port) : port);
    buf_add_char(out, ')');
}

/* --- commands: each gets the text behind the blank ------------------------------------------------- */

struct scpi_call {
    struct ocs_session *session;
    struct ocs *ocs;
    struct str value;
    int64_t now_ns;
    struct buf *out;
};

static void do_state(struct scpi_call *call)
{
    put_side(call->ocs, false, call->out);
    buf_add_char(call->out, ',');
    put_side(call->ocs, true, call->out);
    buf_add_char(call->out, '\n');
}

static void do_add(struct scpi_call *call)
{
    change_pairs(call->session, call->ocs, true, call->value, call->now_ns);
}

static void do_sub(struct scpi_call *call)
{
    change_pairs(call->session, call->ocs, false, call->value, call->now_ns);
}

static void do_part_all(struct scpi_call *call)
{
    for (uint32_t port = 1; port <= call->ocs->settings.a_ports; port++)
        ocs_part(call->ocs, port, 0, call->now_ns);
}

static void do_port(struct scpi_call *call)
{
    int64_t port;
    if (!str_to_i64(call->value, 1, ocs_ports(call->ocs), &port))
        scpi_raise(call->session, -222);
    else if (ocs_peer(call->ocs, (uint32_t)port))
        buf_printf(call->out, "\"%u\"\n", ocs_peer(call->ocs, (uint32_t)port));
    else
        buf_add_str(call->out, STR("\"\"\n"));
}

static void do_size(struct scpi_call *call)
{
    buf_printf(call->out, "%u,%u\n", call->ocs->settings.a_ports, call->ocs->settings.b_ports);
}

static void do_error(struct scpi_call *call)
{
    struct ocs_session *session = call->session;
    int number = session->error_count ? session->errors[0] : 0;
    if (session->error_count) {
        session->error_count--;
        memmove(session->errors, session->errors + 1, (size_t)session->error_count * sizeof(int));
    }
    buf_printf(call->out, "%d,\"%s\"\n", number, scpi_error_text(number));
}

static void do_identity(struct scpi_call *call)
{
    const struct ocs_settings *settings = &call->ocs->settings;
    buf_printf(call->out, "Polatis,SIM-%ux%u,%016llx,6.11.1.0\n", settings->a_ports, settings->b_ports,
               (unsigned long long)settings->seed);
}

static void do_clear(struct scpi_call *call)
{
    call->session->error_count = 0;
}

static void do_complete(struct scpi_call *call)
{
    buf_add_str(call->out, STR("1\n"));
}

static const struct {
    const char *path;
    bool query;
    void (*run)(struct scpi_call *call);
} commands[] = {
    {"OXC:SWITch:CONNect:STATe", true, do_state},
    {"OXC:SWITch:CONNect:ADD", false, do_add},
    {"OXC:SWITch:CONNect:SUB", false, do_sub},
    {"OXC:SWITch:CONNect:PORT", true, do_port},
    {"OXC:SWITch:DISConnect:ALL", false, do_part_all},
    {"OXC:SWITch:SIZE", true, do_size},
    {"SYSTem:ERRor", true, do_error},
    {"*IDN", true, do_identity},
    {"*CLS", false, do_clear},
    {"*OPC", true, do_complete},
};

bool ocs_scpi_command(struct ocs_session *session, struct ocs *ocs, struct str line, int64_t now_ns,
                      struct buf *out)
{
    struct str path = line, value = STR("");
    str_cut(line, ' ', &path, &value);
    struct scpi_call call = {session, ocs, str_trim(value), now_ns, out};
    bool query = str_ends(path, STR("?"));
    path.len -= query;
    if (str_starts(path, STR(":")))
        path = (struct str){path.data + 1, path.len - 1};
    if (!path.len)
        return true;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (commands[i].query != query || !path_is(path, commands[i].path))
            continue;
        if (commands[i].run == do_complete && now_ns < ocs->settled_ns)
            return false;
        commands[i].run(&call);
        return true;
    }
    scpi_raise(session, -113);
    return true;
}
