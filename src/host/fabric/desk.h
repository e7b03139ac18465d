/* desk.h - carries out a controller's requests to optical switches on threads (core/words/switch.h).
 *
 *     desk = desk_new(loop, &calls)
 *     desk_apply(desk, &apply)            from the loop's thread; the request is copied
 *     ... calls.report(...)               from the loop, once for each request
 *     desk_follow(desk, &apply)           when the cluster file has changed
 *     desk_close(desk)                    waits for the request under way; queued ones get no report
 *
 * Each switch has its own thread from its first request on, because drivers block and the switches of a pod
 * change at the same time. Requests to one switch are carried out in order. After each request, and every
 * DESK_PERIOD_MS, the thread inspects the ports, light and alarms of its switch. It calls calls.health()
 * after the first inspection and when the result has changed.
 *
 * A session logs in as the request's user. The password is the first line of the user's file, which is read
 * for every new session, so a changed password takes effect with the next session. If the file cannot be
 * read, or the switch refuses the login, requests end as unreachable and the switch is down, with that
 * reason. Each inspection tries again. Reports contain no passwords.
 *
 * A port is bad if its mirror has an alarm or has failed, if its shutter is closed while the port is in a
 * circuit, or if the port is the B side of a circuit and receives less light than DESK_DARK_MDBM.
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
    uint32_t period_ms; /* time between inspections; 0: DESK_PERIOD_MS */
};

/* Makes a desk whose calls come from the thread of `loop`. Copies `calls`. The desk does not keep the loop
 * alive. */
struct desk *desk_new(uv_loop_t *loop, const struct desk_calls *calls);
/* Queues a request. Copies `apply`, and starts the thread of the switch with its first request. */
void desk_apply(struct desk *desk, const struct switch_apply *apply);
/* Changes how a known switch is reached: only the name, protocol, address, login and number of cubes of
 * `apply` are used. Does nothing for a switch that had no request yet. If the switch at the new address has
 * other circuits, its health is reported as down, then up, like that of a switch that lost its circuits. */
void desk_follow(struct desk *desk, const struct switch_apply *apply);
/* Stops the threads and frees the desk. No call follows. Afterwards the loop must run once more to close the
 * desk's handle. */
void desk_close(struct desk *desk);

#endif
