#include "sim/fabric/ocs_session.h"

#include "base/check.h"

void ocs_session_init(struct ocs_session *session, enum ocs_protocol protocol)
{
    *session = (struct ocs_session){.protocol = protocol};
}

void ocs_session_done(struct ocs_session *session)
{
    buf_done(&session->in);
    buf_done(&session->held);
}

void ocs_session_take(struct ocs_session *session, struct str bytes)
{
    if (session->in.len + bytes.len > OCS_COMMAND_MAX)
        session->ended = true;
    else
        buf_add(&session->in, bytes.data, bytes.len);
}

/* Appends the held answer once it is due. Returns false if it is not due yet. */
static bool release(struct ocs_session *session, int64_t now_ns, struct buf *out)
{
    if (!session->held.len)
        return true;
    if (now_ns < session->held_until_ns)
        return false;
    buf_add_str(out, buf_str(&session->held));
    buf_clear(&session->held);
    return true;
}

int64_t ocs_session_next(struct ocs_session *session, struct ocs *ocs, int64_t now_ns, struct buf *out)
{
    char end = session->protocol == OCS_SCPI ? '\n' : ';';
    while (!session->ended) {
        struct str line, rest;
        if (ocs->dead) {
            session->ended = true;
            break;
        }
        if (!release(session, now_ns, out))
            return session->held_until_ns;
        if (!str_cut(buf_str(&session->in), end, &line, &rest))
            return OCS_NEVER;
        size_t length = line.len + 1;
        if (!session->silent) {
            if (session->protocol == OCS_TL1)
                ocs_tl1_command(session, ocs, str_trim(line), now_ns, out);
            else if (!ocs_scpi_command(session, ocs, str_trim(line), now_ns, out))
                return ocs->settled_ns;
        }
        buf_drop_front(&session->in, length);
    }
    return OCS_NEVER;
}
