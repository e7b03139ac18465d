/* ocs_session.h - one client's session with an emulated switch: bytes in, bytes out.
 *
 *     ocs_session_init(&session, OCS_SCPI);
 *     ... bytes arrive:     ocs_session_take(&session, bytes);
 *     ... and at any time:  wake_ns = ocs_session_next(&session, &ocs, now_ns, &out);
 *     ocs_session_done(&session);
 *
 * Commands are carried out in order. A command that waits for mirrors (*OPC?, and every TL1 command that
 * moves some) is answered when they have settled; ocs_session_next() returns when to call again. A batch is
 * carried out whole or not at all, unless the switch dies in the middle of it (ocs.joins_left).
 *
 * The commands are those of host/fabric/scpi.h and tl1.h. They are implemented a second time here, from the
 * grammars alone, so that a mistake in a reader there does not meet the same mistake here. Input is
 * untrusted: a command longer than OCS_COMMAND_MAX ends the session.
 */
#ifndef PHX_SIM_FABRIC_OCS_SESSION_H
#define PHX_SIM_FABRIC_OCS_SESSION_H

#include "base/str.h"
#include "sim/fabric/ocs.h"

enum { OCS_COMMAND_MAX = 64 * 1024, OCS_ERRORS_MAX = 8 };
#define OCS_NEVER INT64_MAX

enum ocs_protocol { OCS_SCPI, OCS_TL1 };

struct ocs_session {
    enum ocs_protocol protocol;
    struct buf in;
    bool ended;  /* the caller sends `out` and closes the connection */
    bool silent; /* reads commands and answers none: a switch that hangs */
    /* SCPI */
    int errors[OCS_ERRORS_MAX]; /* numbers of the error queue, oldest first */
    int error_count;
    /* TL1 */
    bool logged_in;
    struct buf held; /* answer that waits for mirrors */
    int64_t held_until_ns;
};

void ocs_session_init(struct ocs_session *session, enum ocs_protocol protocol);
void ocs_session_done(struct ocs_session *session);
void ocs_session_take(struct ocs_session *session, struct str bytes);
/* Carries out commands and appends answers to `out`. Returns when to call again, or OCS_NEVER if more bytes
 * are needed. */
int64_t ocs_session_next(struct ocs_session *session, struct ocs *ocs, int64_t now_ns, struct buf *out);

/* Private: carries out one command, given without its terminator. Returns false if it must wait for mirrors
 * and was not carried out. */
bool ocs_scpi_command(struct ocs_session *session, struct ocs *ocs, struct str line, int64_t now_ns,
                      struct buf *out);
/* Private: the same for TL1. The answer goes to session->held if the command moves mirrors. */
void ocs_tl1_command(struct ocs_session *session, struct ocs *ocs, struct str line, int64_t now_ns,
                     struct buf *out);

#endif
