/* evidence.h - what a machine's connections and silence prove about it. Pure: the hosts hold the sockets
 * and clocks.
 *
 * From strong to weak:
 *   connection and every tether closed by the kernel, and a tether was open when each of the machine's tasks
 *   was told to start: every process on the machine is dead -> GONE, at once;
 *   connection broken, a tether still open: the agent died alone -> AWAY, its lease runs on;
 *   no sign of life for the lease and a margin: SILENT. Its agent has fenced its tasks before (limits.h).
 *   While the lease is held (lease_hold.h), this takes until the latest end of what the agent was granted.
 * A connection that ended in another way than by the peer's kernel (a timed-out retransmission, say) proves
 * nothing.
 *
 * An agent opens a tether with every connection, under the same number. They are different connections, so
 * one of them may be late, or break before it was heard: closed tethers prove death only if the tether was
 * heard that the tasks of the newest connection hold. A Hello may be late as well, and come behind that of
 * a later connection: it is refused.
 *
 * One struct a machine, zeroed: nothing known. Stamps are the log's (core.h), so that a wall clock that
 * jumps back can never make a tether look older than a task that it does not cover; mono_ns is the host's
 * monotonic clock. */
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
    bool tether_blind; /* there was a tether that says nothing: it broke without proof, or was never heard */
    int64_t tether_since_ns; /* stamp; tethers have been open without a gap since; 0: none was ever */
    int64_t renewed_ns;      /* mono: receipt of the last sign of life */
    uint64_t grant;          /* number of the newest grant that left for the machine; 0: none */
    uint64_t counted;        /* number of the grant by which its agent said that it counts; 0: none */
    /* Mono, with the margin: until then it may count on grants of that number, and of those before. */
    int64_t granted_ns, granted_before_ns;
};

/* The controller waits a tenth longer than the agent; see limits.h. */
int64_t evidence_span_ns(int64_t lease_ns);
/* When the machine is silent if nothing more is heard. */
int64_t evidence_silent_at(const struct evidence *evidence, int64_t lease_ns);
bool evidence_is_silent(const struct evidence *evidence, int64_t lease_ns, int64_t mono_ns);

/* Was this said before something that has been heard? Not once there was silence: an agent whose clock was
 * set back comes in then. */
bool evidence_is_older(const struct evidence *evidence, const struct hello *hello, int64_t lease_ns,
                       int64_t mono_ns);
void evidence_hello(struct evidence *evidence, const struct hello *hello, int64_t mono_ns);
void evidence_renew(struct evidence *evidence, int64_t mono_ns);
/* The host answers what it heard last, and grants that on top of the lease. */
void evidence_granted(struct evidence *evidence, const struct lease_grant *grant, int64_t lease_ns);
/* Another controller may have granted so much until now. */
void evidence_owed(struct evidence *evidence, int64_t owed_ns, int64_t lease_ns, int64_t mono_ns);
/* A heartbeat says by which grant the agent counts: those before have ended. */
void evidence_counted(struct evidence *evidence, uint64_t number);
/* The host closes the connection itself. */
void evidence_dropped(struct evidence *evidence);
/* A tether that opens while none is open begins a new span of evidence. */
void evidence_tether_opened(struct evidence *evidence, const struct hello *hello, int64_t stamp_ns);

/* `proves`: the peer's kernel closed it. `oldest_start_ns`: stamp at which the first of the machine's
 * living tasks was told to start, INT64_MAX: none was (jobs_oldest_start). */
enum verdict evidence_closed(struct evidence *evidence, bool proves, int64_t oldest_start_ns);
enum verdict evidence_tether_closed(struct evidence *evidence, bool proves, int64_t oldest_start_ns);

#endif
