#include "core/log/record_switch.h"

#include <inttypes.h>

#include "base/check.h"
#include "core/agent/codec_pb.h"

/* --- writing -------------------------------------------------------------------------------------------- */

Log__SwitchReport *record_write_report(struct arena *arena, const struct switch_report *report)
{
    CHECK(report->outcome < SWITCH_OUTCOMES);
    CHECK(report->result_count <= SWITCH_RESULTS_MAX && report->present_count <= SWITCH_CIRCUITS_MAX);
    Log__SwitchReport *ret = ARENA_NEW(arena, Log__SwitchReport);
    log__switch_report__init(ret);
    ret->switch_ = codec_text(arena, report->name);
    ret->operation = report->operation;
    ret->outcome = report->outcome;
    ret->reason = codec_text(arena, report->reason);
    ret->read = report->read;
    ret->n_results = report->result_count;
    ret->results = ARENA_ARRAY(arena, Log__CircuitResult *, report->result_count);
    for (size_t i = 0; i < report->result_count; i++) {
        const struct circuit_result *result = &report->results[i];
        Log__CircuitResult *pb = ret->results[i] = ARENA_NEW(arena, Log__CircuitResult);
        log__circuit_result__init(pb);
        pb->plus = result->circuit.plus;
        pb->minus = result->circuit.minus;
        pb->make = result->make;
        pb->status = result->status;
    }
    ret->n_present = report->present_count;
    ret->present = ARENA_ARRAY(arena, Log__Circuit *, report->present_count);
    for (size_t i = 0; i < report->present_count; i++) {
        Log__Circuit *pb = ret->present[i] = ARENA_NEW(arena, Log__Circuit);
        log__circuit__init(pb);
        pb->plus = report->present[i].plus;
        pb->minus = report->present[i].minus;
    }
    return ret;
}

Log__SwitchHealth *record_write_health(struct arena *arena, const struct switch_health *health)
{
    CHECK(health->state < SWITCH_STATES);
    CHECK(health->alarm_count <= SWITCH_ALARMS_MAX && health->bad_port_count <= SWITCH_PORTS_MAX);
    Log__SwitchHealth *ret = ARENA_NEW(arena, Log__SwitchHealth);
    log__switch_health__init(ret);
    ret->switch_ = codec_text(arena, health->name);
    ret->state = health->state;
    ret->reason = codec_text(arena, health->reason);
    ret->n_alarms = health->alarm_count;
    ret->alarms = ARENA_ARRAY(arena, char *, health->alarm_count);
    for (size_t i = 0; i < health->alarm_count; i++)
        ret->alarms[i] = codec_text(arena, health->alarms[i]);
    ret->n_bad_ports = health->bad_port_count;
    ret->bad_ports = ARENA_ARRAY(arena, uint32_t, health->bad_port_count);
    for (size_t i = 0; i < health->bad_port_count; i++)
        ret->bad_ports[i] = health->bad_ports[i];
    return ret;
}

/* --- reading -------------------------------------------------------------------------------------------- */

static bool is_port(uint32_t port)
{
    return port >= 1 && port <= SWITCH_PORTS_MAX;
}

static int read_circuit(struct str name, uint32_t plus, uint32_t minus, struct circuit *ret,
                        struct error *error)
{
    if (!is_port(plus) || !is_port(minus))
        return error_set(error, ERROR_INVALID,
                         "circuit %u-%u of switch " STR_FORMAT ": ports are 1 to %d (SWITCH_PORTS_MAX)", plus,
                         minus, STR_ARG(name), SWITCH_PORTS_MAX);
    *ret = (struct circuit){(uint16_t)plus, (uint16_t)minus};
    return 0;
}

static int read_results(struct arena *arena, const Log__SwitchReport *pb, struct switch_report *ret,
                        struct error *error)
{
    ret->result_count = pb->n_results;
    ret->results = codec_try_array(arena, pb->n_results, sizeof *ret->results, error);
    if (!ret->results)
        return ERROR_LIMIT;
    for (size_t i = 0; i < pb->n_results; i++) {
        const Log__CircuitResult *from = pb->results[i];
        struct circuit_result *result = &ret->results[i];
        if (from->status >= CIRCUIT_STATUSES)
            return error_set(error, ERROR_INVALID, "circuit of switch " STR_FORMAT " with unknown status %u",
                             STR_ARG(ret->name), from->status);
        *result = (struct circuit_result){.make = from->make, .status = (enum circuit_status)from->status};
        int rc = read_circuit(ret->name, from->plus, from->minus, &result->circuit, error);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_present(struct arena *arena, const Log__SwitchReport *pb, struct switch_report *ret,
                        struct error *error)
{
    ret->present_count = pb->n_present;
    ret->present = codec_try_array(arena, pb->n_present, sizeof *ret->present, error);
    if (!ret->present)
        return ERROR_LIMIT;
    for (size_t i = 0; i < pb->n_present; i++) {
        int rc =
            read_circuit(ret->name, pb->present[i]->plus, pb->present[i]->minus, &ret->present[i], error);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int record_read_report(struct arena *arena, const Log__SwitchReport *pb, struct switch_report *ret,
                       struct error *error)
{
    if (pb->outcome >= SWITCH_OUTCOMES)
        return error_set(error, ERROR_INVALID, "report of switch %s with unknown outcome %u", pb->switch_,
                         pb->outcome);
    if (pb->n_results > SWITCH_RESULTS_MAX || pb->n_present > SWITCH_CIRCUITS_MAX)
        return error_set(error, ERROR_LIMIT,
                         "report of switch %s with %zu results and %zu circuits (SWITCH_RESULTS_MAX is %d, "
                         "SWITCH_CIRCUITS_MAX is %d)",
                         pb->switch_, pb->n_results, pb->n_present, SWITCH_RESULTS_MAX, SWITCH_CIRCUITS_MAX);
    struct switch_report report = {.name = str_from(pb->switch_),
                                   .operation = pb->operation,
                                   .outcome = (enum switch_outcome)pb->outcome,
                                   .read = pb->read,
                                   .reason = str_from(pb->reason)};
    int rc = read_results(arena, pb, &report, error);
    if (rc == 0)
        rc = read_present(arena, pb, &report, error);
    if (rc == 0)
        *ret = report;
    return rc;
}

int record_read_health(struct arena *arena, const Log__SwitchHealth *pb, struct switch_health *ret,
                       struct error *error)
{
    if (pb->state >= SWITCH_STATES)
        return error_set(error, ERROR_INVALID, "switch %s in unknown state %u", pb->switch_, pb->state);
    if (pb->n_alarms > SWITCH_ALARMS_MAX || pb->n_bad_ports > SWITCH_PORTS_MAX)
        return error_set(error, ERROR_LIMIT,
                         "switch %s with %zu alarms and %zu bad ports (SWITCH_ALARMS_MAX is %d, "
                         "SWITCH_PORTS_MAX is %d)",
                         pb->switch_, pb->n_alarms, pb->n_bad_ports, SWITCH_ALARMS_MAX, SWITCH_PORTS_MAX);
    struct switch_health health = {.name = str_from(pb->switch_),
                                   .state = (enum switch_state)pb->state,
                                   .alarm_count = pb->n_alarms,
                                   .bad_port_count = pb->n_bad_ports,
                                   .reason = str_from(pb->reason)};
    health.alarms = codec_try_array(arena, pb->n_alarms, sizeof *health.alarms, error);
    if (!health.alarms)
        return ERROR_LIMIT;
    for (size_t i = 0; i < pb->n_alarms; i++)
        health.alarms[i] = str_from(pb->alarms[i]);
    health.bad_ports = codec_try_array(arena, pb->n_bad_ports, sizeof *health.bad_ports, error);
    if (!health.bad_ports)
        return ERROR_LIMIT;
    for (size_t i = 0; i < pb->n_bad_ports; i++) {
        if (!is_port(pb->bad_ports[i]))
            return error_set(error, ERROR_INVALID, "bad port %u of switch %s: ports are 1 to %d",
                             pb->bad_ports[i], pb->switch_, SWITCH_PORTS_MAX);
        health.bad_ports[i] = (uint16_t)pb->bad_ports[i];
    }
    *ret = health;
    return 0;
}

/* --- for people ----------------------------------------------------------------------------------------- */

void record_describe_report(struct buf *out, const struct switch_report *report)
{
    size_t applied = 0;
    for (size_t i = 0; i < report->result_count; i++)
        applied += report->results[i].status == CIRCUIT_APPLIED;
    buf_printf(out, "switch-report " STR_FORMAT " operation %" PRIu64 " %s: %zu of %zu circuits applied",
               STR_ARG(report->name), report->operation, switch_outcome_name(report->outcome), applied,
               report->result_count);
    if (report->read)
        buf_printf(out, ", holds %zu", report->present_count);
    if (report->reason.len > 0)
        buf_printf(out, ": " STR_FORMAT, STR_ARG(report->reason));
}

void record_describe_health(struct buf *out, const struct switch_health *health)
{
    buf_printf(out, "switch-health " STR_FORMAT " %s, %zu alarms, %zu bad ports", STR_ARG(health->name),
               switch_state_name(health->state), health->alarm_count, health->bad_port_count);
    if (health->reason.len > 0)
        buf_printf(out, ": " STR_FORMAT, STR_ARG(health->reason));
}
