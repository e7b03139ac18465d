/* evidence.h - the failure detector: what a machine's connections and silence prove about it. Pure: the hosts
 * hold the sockets and clocks.
 *
 * Verdicts, from strong to weak:
 *   GONE     at once. The machine's kernel closed the connection and every tether, and a tether was open when
 *            each of the machine's tasks was told to start: every process on the machine is dead
 *   AWAY     the connection broke, and death is not proved: the agent may have died alone. Its lease runs on
 *   SILENT   no sign of life for the lease and a margin; the agent has fenced its tasks before (limits.h).
 *            While the lease is held (lease_hold.h), the latest end of the agent's grants counts instead
 * A connection that was not closed by the peer's kernel, but timed out for example, proves nothing.
 *
 * An agent opens a tether with every connection, under the same number. The two are separate connections, so
 * one of them may arrive late, or break before the controller has received anything on it. Tasks hold the
 * tether of the newest connection; closed tethers prove death only if the controller has received that one. A
 * Hello may also arrive after that of a later connection: it is refused.
 *
 * A machine has one struct; zeroed: nothing known. Stamps are the log's (core.h), so a wall clock that jumps
 * back can never make a tether look older than a task that it does not cover. mono_ns is the host's monotonic
 * clock.
 */
#ifndef PHX_CORE_HEALTH_EVIDENCE_H
#define PHX_CORE_HEALTH_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/agent/message.h"

enum verdict { VERDICT_NONE, VERDICT_AWAY, VERDICT_GONE };

struct evidence {
    bool connected;                                 /* a connection that said Hello is open */
    uint64_t incarnation, connection;               /* of the newest Hello */
    uint64_t tether_incarnation, tether_connection; /* of the newest tether */
    uint32_t tethers;                               /* number of open tethers */
    bool tether_blind;       /* tethers prove nothing: one broke without proof, or was never received */
    int64_t tether_since_ns; /* stamp since which tethers have been open without a gap; 0: none ever was */
    int64_t renewed_ns;      /* mono: receipt of the last sign of life */
    uint64_t grant;          /* number of the newest grant that was sent to the machine; 0: none */
    uint64_t counted;        /* number of the grant that the agent's fence includes; 0: none */
    /* Mono, with the margin: latest end of the grants with the number `grant`, and of earlier grants. */
    int64_t granted_ns, granted_before_ns;
};

/* Returns the silence after which a machine is lost: a tenth longer than the lease (limits.h). */
int64_t evidence_span_ns(int64_t lease_ns);
/* Returns when (mono) the machine becomes silent if no more messages arrive. */
int64_t evidence_silent_at(const struct evidence *evidence, int64_t lease_ns);
/* Whether the machine was silent for the whole span. */
bool evidence_is_silent(const struct evidence *evidence, int64_t lease_ns, int64_t mono_ns);

/* Whether the Hello was sent before one that has already arrived. After a silence every Hello is accepted, so
 * that an agent whose clock was set back can connect. */
bool evidence_is_older(const struct evidence *evidence, const struct hello *hello, int64_t lease_ns,
                       int64_t mono_ns);
/* Records a new connection whose Hello was accepted; it replaces the one before. */
void evidence_hello(struct evidence *evidence, const struct hello *hello, int64_t mono_ns);
/* Records a message of the agent: a sign of life. */
void evidence_renew(struct evidence *evidence, int64_t mono_ns);
/* Records the grant that the host sends with its answer to the last message. */
void evidence_granted(struct evidence *evidence, const struct lease_grant *grant, int64_t lease_ns);
/* Records that another controller may have granted up to `owed_ns` until now. */
void evidence_owed(struct evidence *evidence, int64_t owed_ns, int64_t lease_ns, int64_t mono_ns);
/* Records the number of the grant that a heartbeat names. If it is the newest, earlier grants no longer
 * count. */
void evidence_counted(struct evidence *evidence, uint64_t number);
/* Records that the host itself closed the connection. */
void evidence_dropped(struct evidence *evidence);
/* Records a tether. If no other is open, a new span of evidence begins at `stamp_ns`. */
void evidence_tether_opened(struct evidence *evidence, const struct hello *hello, int64_t stamp_ns);

/* Judge a closed connection, and a closed tether. `proves`: the peer's kernel closed it. `oldest_start_ns` is
 * the stamp at which the first of the machine's living tasks was told to start; INT64_MAX: none was
 * (jobs_oldest_start). VERDICT_NONE: the agent is connected. */
enum verdict evidence_closed(struct evidence *evidence, bool proves, int64_t oldest_start_ns);
enum verdict evidence_tether_closed(struct evidence *evidence, bool proves, int64_t oldest_start_ns);

#endif
