#include "host/fabric/optics.h"

#include <stdio.h>
#include <string.h>

#include "host/fabric/line.h"
#include "host/fabric/member.h"

const char *alarm_severity_name(enum phx_alarm_severity severity)
{
    static const char *const names[] = {
        [PHX_ALARM_MINOR] = "minor", [PHX_ALARM_MAJOR] = "major", [PHX_ALARM_CRITICAL] = "critical"};
    bool known = severity >= PHX_ALARM_MINOR && severity <= PHX_ALARM_CRITICAL;
    return known ? names[severity] : "unrated";
}

void alarm_describe(const struct phx_switch_alarm *alarm, char *ret_text, size_t size)
{
    snprintf(ret_text, size, alarm->port ? "%s alarm %s of port %u" : "%s alarm %s",
             alarm_severity_name(alarm->severity), alarm->condition, alarm->port);
}

/* Returns whether the status only means that the switch does not have what was requested. */
static bool is_refusal(int status)
{
    return status == PHX_SWITCH_UNSUPPORTED || status == PHX_SWITCH_DENIED || status == PHX_SWITCH_FAILED;
}

static int look_at_ports(struct member *member, struct switch_optics *optics, struct phx_switch_error *error)
{
    int rc = member->driver->identify(member->session, &optics->identity, error);
    uint32_t count = optics->identity.a_ports + optics->identity.b_ports;
    if (rc == PHX_SWITCH_OK && (count == 0 || count > PHX_SWITCH_PORTS_MAX))
        return switch_fail(error, PHX_SWITCH_GARBLED, "the switch says that it has %u ports", count);
    if (rc == PHX_SWITCH_OK)
        rc = member->driver->ports(member->session, 1, count, optics->ports, error);
    optics->port_count = rc == PHX_SWITCH_OK ? count : 0;
    return rc;
}

static int look_at_alarms(struct member *member, struct switch_optics *optics, struct phx_switch_error *error)
{
    if (!member->driver->alarms)
        return PHX_SWITCH_OK;
    int rc = member->driver->alarms(member->session, optics->alarms, OPTICS_ALARMS_MAX, &optics->alarm_count,
                                    error);
    if (rc < 0 || optics->alarm_count > OPTICS_ALARMS_MAX)
        optics->alarm_count = rc < 0 ? 0 : OPTICS_ALARMS_MAX;
    return is_refusal(rc) ? PHX_SWITCH_OK : rc;
}

/* Lists the cross-connects by their A ports, and returns their number. */
static uint32_t find_paths(const struct switch_optics *optics, struct phx_crossconnect *ret_pairs)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < optics->identity.a_ports && i < optics->port_count; i++)
        if (optics->ports[i].peer != 0 && count < PHX_SWITCH_PORTS_MAX / 2)
            ret_pairs[count++] = (struct phx_crossconnect){i + 1, optics->ports[i].peer};
    return count;
}

/* Requests all losses at once. A driver refuses a whole batch if the factory has not measured one of the
 * pairs; each pair is then requested alone. */
static int look_at_losses(struct member *member, struct switch_optics *optics, struct phx_switch_error *error)
{
    struct phx_crossconnect pairs[PHX_SWITCH_PORTS_MAX / 2];
    uint32_t count = find_paths(optics, pairs);
    if (!member->driver->loss || count == 0)
        return PHX_SWITCH_OK;
    int rc =
        member->driver->loss(member->session, pairs, count, member->frequency_ghz, optics->losses, error);
    if (rc == PHX_SWITCH_OK)
        optics->loss_count = count;
    for (uint32_t i = 0; is_refusal(rc) && i < count && count > 1; i++) {
        int one = member->driver->loss(member->session, &pairs[i], 1, member->frequency_ghz,
                                       &optics->losses[optics->loss_count], error);
        optics->loss_count += one == PHX_SWITCH_OK;
        if (one < 0 && !is_refusal(one))
            rc = one;
    }
    return is_refusal(rc) ? PHX_SWITCH_OK : rc;
}

static int look(struct member *member, struct phx_switch_error *error)
{
    struct switch_optics *optics = member->optics;
    memset(optics, 0, sizeof *optics);
    int rc = look_at_ports(member, optics, error);
    if (rc == PHX_SWITCH_OK)
        rc = look_at_alarms(member, optics, error);
    if (rc == PHX_SWITCH_OK)
        rc = look_at_losses(member, optics, error);
    member->work->answers = rc == PHX_SWITCH_OK;
    return rc;
}

void member_look(struct member *member)
{
    member_ask(member, look);
}
