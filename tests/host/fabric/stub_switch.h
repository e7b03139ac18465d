/* stub_switch.h - what a test tells the driver library of stub_switch.c about a switch's ports and alarms.
 *
 *     struct stub_health health = {.ports = {{.port = 65, .power_mdbm = -40000}}, .port_count = 1};
 *     set_health("a", &health)         set_health: dlsym() of STUB_SET_HEALTH
 *
 * The address is that of a switch that was opened before. Ports that are not listed have 0 dBm and no fault.
 */
#ifndef PHX_TESTS_HOST_FABRIC_STUB_SWITCH_H
#define PHX_TESTS_HOST_FABRIC_STUB_SWITCH_H

#include "phalanx/driver.h"

#define STUB_SET_HEALTH "stub_set_health"
#define STUB_LOGINS     "stub_logins"
enum { STUB_HEALTH_MAX = 8 };

/* The next such request finds the session broken, or is late; the one after it, in another session, is
 * answered. A switch that restarts has no circuits then; one that hangs is late for good. */
enum stub_break {
    STUB_BREAKS_NOT,
    STUB_BREAKS_AT_PORTS,
    STUB_BREAKS_AT_ALARMS,
    STUB_IS_LATE,
    STUB_RESTARTS,
    STUB_HANGS,
};

struct stub_health {
    struct phx_switch_port ports[STUB_HEALTH_MAX]; /* their peers do not count */
    uint32_t port_count;
    struct phx_switch_alarm alarms[STUB_HEALTH_MAX];
    uint32_t alarm_count;
    enum stub_break breaks;
};

typedef void stub_set_health_fn(const char *address, const struct stub_health *health);
stub_set_health_fn stub_set_health;

/* The wrong logins that the switches have refused so far. */
typedef int stub_logins_fn(void);
stub_logins_fn stub_logins;

#endif
