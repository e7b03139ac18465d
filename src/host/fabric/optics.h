/* optics.h - what optical switches tell of themselves beyond their cross-connects: who made them, the light
 * at their ports, alarms, and what the factory measured of their paths.
 *
 * Reads only. Each switch is asked in a thread of its own (switches.h). Parts that a switch or its driver
 * does not tell are empty. The reason why a switch does not answer, or what is garbled, is in its work.
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
    struct phx_switch_loss losses[PHX_SWITCH_PORTS_MAX / 2]; /* of cross-connects, by their A ports */
    uint32_t loss_count;                                     /* 0: there are no factory data */
};

const char *alarm_severity_name(enum phx_alarm_severity severity); /* "unrated": none of driver.h */
/* Describes an alarm in a line, such as "major alarm LOS of port 3". */
void alarm_describe(const struct phx_switch_alarm *alarm, char *ret_text, size_t size);

/* Looks at every listed switch: work[POD_SWITCHES] and optics[POD_SWITCHES], by switch number; both are zero
 * before. `frequency_ghz`: that of the factory data. Returns how many switches do not answer; work->answers
 * and work->why say which, and why. */
uint32_t crew_look(struct crew *crew, uint32_t frequency_ghz, struct switch_work *work,
                   struct switch_optics *optics);

#endif
