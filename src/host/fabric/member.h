/* member.h - one optical switch at work: its session, retries, and the outcome of each change.
 *
 * Functions block, and only one thread at a time may use a member. A session stays open between calls, and is
 * closed when it breaks. After each call, `good` reports success; if it is false, work->why has the reason.
 */
#ifndef PHX_HOST_FABRIC_MEMBER_H
#define PHX_HOST_FABRIC_MEMBER_H

#include <stdatomic.h>

#include "host/fabric/optics.h"
#include "host/fabric/switches.h"
#include "phalanx/driver.h"

enum { MEMBER_REFUSED_MS = 60000 };

struct member {
    const struct switch_entry *entry; /* NULL: not listed */
    const struct phx_switch_driver *driver;
    struct phx_switch *session; /* NULL: none is open */
    const struct crew_terms *terms;
    /* monotonic; no retry begins after it, and sessions opened before it wait for no answer beyond it; 0:
     * none */
    int64_t deadline_ns;
    const atomic_bool *stop; /* no retry begins once it is set; NULL: never set */
    struct switch_work *work;
    struct switch_optics *optics; /* where member_look() writes */
    uint32_t frequency_ghz;       /* for member_look(): the frequency of the factory data */
    void (*task)(struct member *member);
    bool good;
    struct {
        struct phx_switch_error error; /* status 0: no login was refused */
        uint64_t login;                /* hash of address, user and password */
        int64_t at_ns;                 /* monotonic */
    } refused;                         /* the last login that the switch refused */
};

int64_t member_clock_ns(void); /* monotonic */
/* Opens a session if none is open, with the password that the entry's secret_file has at this time. Returns
 * PHX_SWITCH_DENIED without a login if the file cannot be read, or if the switch refused the same login
 * within the last MEMBER_REFUSED_MS. In the latter case *error is that of the refusal. */
int member_enter(struct member *member, struct phx_switch_error *error);
/* Closes the session, if one is open. */
void member_leave(struct member *member);
/* Opens a session and calls `ask`, until `ask` succeeds, is refused, or was tried as often as the terms
 * allow. `ask` returns an enum phx_switch_status. */
void member_ask(struct member *member, int (*ask)(struct member *member, struct phx_switch_error *error));
/* Lists the cross-connects of the switch into work->peer. */
void member_read(struct member *member);
/* optics.c: reads identity, ports, alarms and losses of the switch into member->optics. */
void member_look(struct member *member);
/* Carries out work->changes, whose ends must be CHANGE_WAITS, and sets the ends. */
void member_carry_out(struct member *member);

#endif
