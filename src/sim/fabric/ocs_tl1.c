/* The TL1 side of an emulated switch: VERB:TID:AID:CTAG:BLOCK:... of GR-831, as far as host/fabric/tl1.h uses
 * it. A switch with a user (ocs_settings) denies every command before its login; others take any login. */
#include <strings.h>

#include "base/check.h"
#include "sim/fabric/ocs_session.h"

enum { TL1_FIELDS = 6 };

struct tl1_call {
    struct ocs_session *session;
    struct ocs *ocs;
    struct str field[TL1_FIELDS]; /* verb, tid, aid, ctag, block, block */
    int64_t now_ns;
    struct buf lines;    /* of the answer */
    const char *refusal; /* NULL: completed */
};

static void tl1_refuse(struct tl1_call *call, const char *refusal)
{
    if (!call->refusal)
        call->refusal = refusal;
}

/* Reads ports: "1&3&&5" is 1, 3, 4, 5; empty or ALL is all ports. */
static bool tl1_take_ports(struct tl1_call *call, struct str text, uint32_t *ports, uint32_t *ret_count)
{
    uint32_t count = 0, all = ocs_ports(call->ocs);
    if (!text.len || str_is(text, "ALL")) {
        for (uint32_t port = 1; port <= all; port++)
            ports[count++] = port;
        *ret_count = count;
        return true;
    }
    bool range = false;
    for (bool more = true; more;) {
        struct str part;
        int64_t port;
        more = str_cut(text, '&', &part, &text);
        if (!more)
            part = text;
        if (more && !part.len && count && !range) {
            range = true;
            continue;
        }
        if (!str_to_i64(part, 1, all, &port)) {
            tl1_refuse(call, "IIAC /* No such port */");
            return false;
        }
        uint32_t first = range ? ports[count - 1] + 1 : (uint32_t)port;
        for (uint32_t next = first; next <= port && count < OCS_PORTS_MAX; next++)
            ports[count++] = next;
        range = false;
    }
    *ret_count = count;
    return true;
}

static const char *refusal_of(enum ocs_result result)
{
    switch (result) {
    case OCS_NO_PORT:
        return "IIAC /* No such port */";
    case OCS_WRONG_SIDE:
        return "IIAC /* Ports of one side */";
    case OCS_IN_USE:
        return "SROF /* Port is in use */";
    default:
        return "SNVS /* Not connected */";
    }
}

static void do_enter(struct tl1_call *call)
{
    uint32_t a[OCS_PORTS_MAX], b[OCS_PORTS_MAX], a_count, b_count;
    struct str a_text, b_text;
    if (!str_cut(call->field[2], ',', &a_text, &b_text)) {
        tl1_refuse(call, "IIAC /* Expected IN,OUT */");
        return;
    }
    if (!tl1_take_ports(call, a_text, a, &a_count) || !tl1_take_ports(call, b_text, b, &b_count))
        return;
    if (a_count != b_count) {
        tl1_refuse(call, "IIAC /* Lists of two lengths */");
        return;
    }
    for (uint32_t i = 0; i < a_count; i++) {
        enum ocs_result result = ocs_may_join(call->ocs, a[i], b[i]);
        if (result != OCS_DONE) {
            tl1_refuse(call, refusal_of(result));
            return;
        }
    }
    for (uint32_t i = 0; i < a_count; i++) {
        enum ocs_result result = ocs_join(call->ocs, a[i], b[i], call->now_ns);
        if (result == OCS_DIED)
            return;
        if (result != OCS_DONE) {
            tl1_refuse(call, refusal_of(result));
            return;
        }
    }
}

static void do_delete(struct tl1_call *call)
{
    uint32_t ports[OCS_PORTS_MAX], count;
    bool all = str_is(call->field[2], "ALL");
    if (!call->field[2].len)
        tl1_refuse(call, "IIAC /* Expected ports */");
    else if (tl1_take_ports(call, call->field[2], ports, &count))
        for (uint32_t i = 0; i < count; i++)
            if (ocs_part(call->ocs, ports[i], 0, call->now_ns) != OCS_DONE && !all)
                tl1_refuse(call, "SNVS /* Not connected */");
}

static void do_patches(struct tl1_call *call)
{
    for (uint32_t port = 1; port <= call->ocs->settings.a_ports; port++)
        if (ocs_peer(call->ocs, port))
            buf_printf(&call->lines, "   \"%u,%u\"\r\n", port, ocs_peer(call->ocs, port));
}

static void do_power(struct tl1_call *call)
{
    uint32_t ports[OCS_PORTS_MAX], count;
    if (!tl1_take_ports(call, call->field[2], ports, &count))
        return;
    for (uint32_t i = 0; i < count; i++) {
        int32_t mdbm = ocs_power_mdbm(call->ocs, ports[i], call->now_ns);
        uint32_t size = (uint32_t)(mdbm < 0 ? -mdbm : mdbm);
        buf_printf(&call->lines, "   \"%u:%s%u.%02u\"\r\n", ports[i], mdbm < 0 ? "-" : "", size / 1000,
                   size % 1000 / 10);
    }
}

static void do_shutters(struct tl1_call *call)
{
    uint32_t ports[OCS_PORTS_MAX], count;
    if (!tl1_take_ports(call, call->field[2], ports, &count))
        return;
    for (uint32_t i = 0; i < count; i++)
        buf_printf(&call->lines, "   \"%u:%s\"\r\n", ports[i],
                   call->ocs->port[ports[i]].shutter_closed ? "CLOSED" : "OPEN");
}

static void move_shutters(struct tl1_call *call, bool closed)
{
    uint32_t ports[OCS_PORTS_MAX], count;
    if (tl1_take_ports(call, call->field[2], ports, &count))
        for (uint32_t i = 0; i < count; i++)
            call->ocs->port[ports[i]].shutter_closed = closed;
}

static void do_close(struct tl1_call *call)
{
    move_shutters(call, true);
}

static void do_open(struct tl1_call *call)
{
    move_shutters(call, false);
}

/* Lists the alarms: stuck mirrors that were told to move, and joined ports whose light fails. */
static void do_alarms(struct tl1_call *call)
{
    for (uint32_t port = 1; port <= ocs_ports(call->ocs); port++) {
        const struct ocs_port *at = &call->ocs->port[port];
        if (at->failed)
            buf_printf(&call->lines, "   \"%u:MJ,MIRROR,SA\"\r\n", port);
        if (at->dark && at->peer)
            buf_printf(&call->lines, "   \"%u:MN,LOS,NSA\"\r\n", port);
    }
}

static void do_login(struct tl1_call *call)
{
    const struct ocs_settings *settings = &call->ocs->settings;
    bool right = !settings->user ||
                 (str_is(call->field[2], settings->user) && str_is(call->field[5], settings->password));
    call->session->logged_in = call->field[2].len > 0 && right;
    if (!call->session->logged_in)
        tl1_refuse(call, right ? "PLNA /* Login not active */" : "PIUI /* Illegal user or password */");
}

static void do_logout(struct tl1_call *call)
{
    call->session->logged_in = false;
}

static void do_equipment(struct tl1_call *call)
{
    const struct ocs_settings *settings = &call->ocs->settings;
    buf_printf(&call->lines, "   \"Polatis,SIM-%ux%u,%016llx,6.11.1.0\"\r\n", settings->a_ports,
               settings->b_ports, (unsigned long long)settings->seed);
}

static const struct {
    const char *verb;
    bool moves; /* moves mirrors, so its answer waits for them */
    void (*run)(struct tl1_call *call);
} verbs[] = {
    {"ENT-PATCH", true, do_enter},
    {"DLT-PATCH", true, do_delete},
    {"RTRV-PATCH", false, do_patches},
    {"RTRV-PORT-POWER", false, do_power},
    {"RTRV-PORT-SHUTTER", false, do_shutters},
    {"OPR-PORT-SHUTTER", false, do_close},
    {"RLS-PORT-SHUTTER", false, do_open},
    {"RTRV-ALM-ALL", false, do_alarms},
    {"ACT-USER", false, do_login},
    {"CANC-USER", false, do_logout},
    {"RTRV-NETYPE", false, do_equipment},
};

static void put_answer(const struct tl1_call *call, int64_t now_ns, struct buf *out)
{
    int64_t s = now_ns / 1000000000;
    buf_printf(out, "\r\n\n   SIM 2026-01-01 %02d:%02d:%02d\r\nM  " STR_FORMAT " %s\r\n",
               (int)(s / 3600 % 24), (int)(s / 60 % 60), (int)(s % 60), STR_ARG(call->field[3]),
               call->refusal ? "DENY" : "COMPLD");
    if (call->refusal)
        buf_printf(out, "   %.4s\r\n   %s\r\n", call->refusal, call->refusal + 5);
    else
        buf_add_str(out, buf_str(&call->lines));
    buf_add_char(out, ';');
}

void ocs_tl1_command(struct ocs_session *session, struct ocs *ocs, struct str line, int64_t now_ns,
                     struct buf *out)
{
    struct tl1_call call = {.session = session, .ocs = ocs, .now_ns = now_ns};
    bool moves = false, known = false;
    for (int i = 0; i < TL1_FIELDS; i++)
        if (!str_cut(line, ':', &call.field[i], &line)) {
            call.field[i] = line;
            line = STR("");
        }
    int64_t ctag;
    if (!str_to_i64(call.field[3], 0, UINT32_MAX, &ctag)) {
        call.field[3] = STR("0");
        tl1_refuse(&call, "IICM /* Expected a correlation tag */");
    }
    if (ocs->settings.user && !session->logged_in && !str_is(call.field[0], "ACT-USER"))
        tl1_refuse(&call, "PLNA /* Login not active */");
    for (size_t i = 0; !call.refusal && i < sizeof verbs / sizeof *verbs; i++)
        if (str_is(call.field[0], verbs[i].verb)) {
            known = true;
            moves = verbs[i].moves;
            verbs[i].run(&call);
            break;
        }
    if (!known)
        tl1_refuse(&call, "IICM /* Unknown command */");
    if (!ocs->dead)
        put_answer(&call, now_ns, moves ? &session->held : out);
    session->held_until_ns = moves ? ocs->settled_ns : now_ns;
    buf_done(&call.lines);
}
