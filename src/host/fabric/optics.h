/* optics.h - reads what optical switches report besides their cross-connects: identity, light at their ports,
 * alarms, and the losses that the factory measured.
 *
 * Nothing is changed. Each switch is read in its own thread (switches.h). Parts that a switch or its driver
 * does not report stay empty. If a switch does not answer, or its answer is garbled, its work has the reason.
 */
#ifndef PHX_HOST_FABRIC_OPTICS_H
#define PHX_HOST_FABRIC_OPTICS_H

#include "host/fabric/switches.h"
#include "phalanx/driver.h"

enum { OPTICS_ALARMS_MAX = 64, OPTICS_FREQUENCY_GHZ = 193400 /* 1,550 nm */ };

struct switch_optics {
    struct phx_switch_identity identity;
    struct phx_switch_port ports[PHX_SWITCH_PORTS_MAX];
    uint32_t port_count;
    struct phx_switch_alarm alarms[OPTICS_ALARMS_MAX];
    uint32_t alarm_count;
    /* by the A ports of the present cross-connects */
    struct phx_switch_loss losses[PHX_SWITCH_PORTS_MAX / 2];
    uint32_t loss_count; /* 0: no factory data */
};

/* "unrated" if driver.h has no such severity */
const char *alarm_severity_name(enum phx_alarm_severity severity);
/* Describes an alarm in one line, such as "major alarm LOS of port 3". */
void alarm_describe(const struct phx_switch_alarm *alarm, char *ret_text, size_t size);

/* Reads every listed switch into work[POD_SWITCHES] and optics[POD_SWITCHES], indexed by switch number. Both
 * must be zeroed before the call. Factory data are those nearest to `frequency_ghz`. Returns the number of
 * switches that do not answer; work->answers and work->why say which, and why. */
uint32_t crew_look(struct crew *crew, uint32_t frequency_ghz, struct switch_work *work,
                   struct switch_optics *optics);

#endif
