/* evidence.h - the failure detector: what a machine's connections and silence prove about it. Pure: the hosts
 * hold the sockets and clocks.
 *
 * From strong to weak:
 *   GONE     at once: the machine's kernel closed the connection and every tether, and a tether was open when
 *            each of the machine's tasks was told to start. Every process on the machine is dead;
 *   AWAY     the connection broke and a tether is still open: the agent died alone, its lease runs on;
 *   SILENT   no sign of life for the lease and a margin. The agent has fenced its tasks before (limits.h).
 *            While the lease is held (lease_hold.h), that is after the latest end of the agent's grants.
 * A connection that ended in another way than by the peer's kernel (a timed-out retransmission, say) proves
 * nothing.
 *
 * An agent opens a tether with every connection, under the same number. They are different connections, so
 * one of them may be late, or break before it was heard: closed tethers prove death only if the tether of the
 * newest connection was heard, which is the one that the tasks hold. A Hello may be late as well, and arrive
 * after that of a later connection: it is refused.
 *
 * One struct a machine, zeroed: nothing known. Stamps are the log's (core.h), so that a wall clock that
 * jumps back can never make a tether look older than a task that it does not cover; mono_ns is the host's
 * monotonic clock.
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
    uint32_t tethers;                               /* open ones */
    bool tether_blind;       /* a tether proves nothing: it broke without proof, or was never heard */
    int64_t tether_since_ns; /* stamp since which tethers were open without a gap; 0: none was ever */
    int64_t renewed_ns;      /* mono: receipt of the last sign of life */
    uint64_t grant;          /* number of the newest grant that left for the machine; 0: none */
    uint64_t counted;        /* number of the grant by which its agent counts; 0: none */
    /* Mono, with the margin: ends of the grants of that number, and of earlier ones. */
    int64_t granted_ns, granted_before_ns;
};

/* Returns the silence after which a machine is lost: a tenth longer than the agent waits; see limits.h. */
int64_t evidence_span_ns(int64_t lease_ns);
/* Returns when the machine becomes silent if no more messages arrive. */
int64_t evidence_silent_at(const struct evidence *evidence, int64_t lease_ns);
/* Whether the machine was silent for the whole span. */
bool evidence_is_silent(const struct evidence *evidence, int64_t lease_ns, int64_t mono_ns);

/* Whether the Hello was sent before one that was heard already. After a silence every Hello is accepted,
 * so that an agent whose clock was set back can connect. */
bool evidence_is_older(const struct evidence *evidence, const struct hello *hello, int64_t lease_ns,
                       int64_t mono_ns);
void evidence_hello(struct evidence *evidence, const struct hello *hello, int64_t mono_ns);
void evidence_renew(struct evidence *evidence, int64_t mono_ns);
/* Called when the host acknowledges the last message and grants time on top of the lease. */
void evidence_granted(struct evidence *evidence, const struct lease_grant *grant, int64_t lease_ns);
/* Another controller may have granted this much until now. */
void evidence_owed(struct evidence *evidence, int64_t owed_ns, int64_t lease_ns, int64_t mono_ns);
/* Takes the grant that a heartbeat names, by which the agent counts: earlier grants have ended. */
void evidence_counted(struct evidence *evidence, uint64_t number);
/* Takes note that the host itself closed the connection. */
void evidence_dropped(struct evidence *evidence);
/* A tether that opens while none is open begins a new span of evidence. */
void evidence_tether_opened(struct evidence *evidence, const struct hello *hello, int64_t stamp_ns);

/* Judges a closed connection. `proves`: the peer's kernel closed it. `oldest_start_ns`: stamp at which the
 * first of the machine's living tasks was told to start, INT64_MAX: none was (jobs_oldest_start). */
enum verdict evidence_closed(struct evidence *evidence, bool proves, int64_t oldest_start_ns);
enum verdict evidence_tether_closed(struct evidence *evidence, bool proves, int64_t oldest_start_ns);

#endif
