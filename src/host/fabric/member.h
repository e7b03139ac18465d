/* member.h - one optical switch at work: its session, the tries, and how each change ended.
 *
 * Functions block; one thread at a time has a member. A session stays open between them, and is left when it
 * breaks. `good` says whether the last function reached what it was for; work->why has the reason if not.
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
    int64_t deadline_ns;     /* monotonic: no try begins after it, and sessions opened before it wait for no
                          * answer beyond it; 0: none */
    const atomic_bool *stop; /* no try begins once it is set; NULL: nobody sets it */
    struct switch_work *work;
    struct switch_optics *optics; /* of member_look() */
    uint32_t frequency_ghz;       /* likewise: of the factory's data */
    void (*task)(struct member *member);
    bool good;
    struct {
        struct phx_switch_error error; /* status 0: none was */
        uint64_t login;                /* hash of its address, user and password */
        int64_t at_ns;                 /* monotonic */
    } refused;                         /* the login that the switch refused last */
};

int64_t member_clock_ns(void); /* monotonic */
/* Opens a session if there is none, with the password that the entry's secret_file has at this time. A file
 * that cannot be read is PHX_SWITCH_DENIED, and no session is tried; so is a login that the switch has
 * refused within the last MEMBER_REFUSED_MS, with the error of that time. */
int member_enter(struct member *member, struct phx_switch_error *error);
void member_leave(struct member *member);
/* Enters, and calls `ask`, which returns a status of the session, until it is answered, refused, or tried as
 * often as the terms say. */
void member_ask(struct member *member, int (*ask)(struct member *member, struct phx_switch_error *error));
/* Lists the switch into work->peer. */
void member_read(struct member *member);
/* optics.c: looks at the switch into member->optics. */
void member_look(struct member *member);
/* Carries work->changes out: their ends must be CHANGE_WAITS. */
void member_carry_out(struct member *member);

#endif
