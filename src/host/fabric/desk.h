/* desk.h - a controller's requests to optical switches, carried out on threads (core/words/switch.h).
 *
 *     desk = desk_new(loop, &calls)
 *     desk_apply(desk, &apply)            from the loop's thread; the request is copied
 *     ... calls.report(...)               from the loop, once for each request
 *     desk_follow(desk, &apply)           when the cluster file has changed
 *     desk_close(desk)                    waits for what is under way
 *
 * Each switch has a thread of its own from its first request on: drivers block, and a pod's switches change
 * at the same time. Requests to one switch are carried out in their order. Between requests the thread looks
 * at the switch every DESK_PERIOD_MS: ports, light and alarms; calls.health() follows when something has
 * changed, and after the first look.
 *
 * A session logs in as the request's user. The password is the first line of the user's file, which is read
 * for every new session: a password that was changed counts from the next session on. While the file cannot
 * be read, or the switch refuses the login, requests are unanswered and the switch is down, with that reason;
 * each look tries again. Passwords are in no report.
 *
 * A port is bad if its mirror has an alarm or failed, if its shutter is closed while it is in a circuit, or
 * if it is the far side of a circuit and has less light than DESK_DARK_MDBM.
 */
#ifndef PHX_HOST_FABRIC_DESK_H
#define PHX_HOST_FABRIC_DESK_H

#include <uv.h>

#include "core/words/switch.h"

enum { DESK_PERIOD_MS = 5000, DESK_DARK_MDBM = -30000 };

struct desk;
struct desk_calls {
    void *context;
    /* Strings and arrays are valid during the call. */
    void (*report)(void *context, const struct switch_report *report);
    void (*health)(void *context, const struct switch_health *health);
    uint32_t period_ms; /* between looks; 0: DESK_PERIOD_MS */
};

struct desk *desk_new(uv_loop_t *loop, const struct desk_calls *calls);
void desk_apply(struct desk *desk, const struct switch_apply *apply);
/* Reaches the switch as `apply` says from now on: name, protocol, address, login and cubes count, the rest
 * does not. A switch that had no request yet is left alone. A switch at another place that joins other ports
 * counts as one that lost its circuits: its health is down, then up. */
void desk_follow(struct desk *desk, const struct switch_apply *apply);
/* No call follows. The loop must run once more, so that it forgets the desk's handle. */
void desk_close(struct desk *desk);

#endif
