/* phalanx fabric optics: shows light, losses, ports and alarms of a pod's optical switches. */
#include <stdio.h>

#include "doc/json.h"
#include "cmd/client.h"
#include "cmd/fabric_asked.h"
#include "cmd/fabric_switches.h"
#include "host/fabric/optics.h"

struct view {
    const struct fabric_asked *asked;
    struct switches switches;
    struct switch_work work[POD_SWITCHES];
    struct switch_optics optics[POD_SWITCHES];
};

static const char *name_at(uint32_t number)
{
    return pod_switch_name(pod_switch_at(number));
}

static const char *state_name(enum phx_port_state state)
{
    static const char *const names[] = {[PHX_PORT_UNKNOWN] = "unknown",
                                        [PHX_PORT_BLOCKED] = "blocked",
                                        [PHX_PORT_TUNING] = "tuning",
                                        [PHX_PORT_TUNED] = "tuned",
                                        [PHX_PORT_FAILED] = "failed"};
    return (size_t)state < sizeof names / sizeof *names ? names[state] : names[PHX_PORT_UNKNOWN];
}

/* Returns the port at the other end of the A port with this index; NULL if there is none. */
static const struct phx_switch_port *peer_of(const struct switch_optics *optics, uint32_t index)
{
    uint32_t peer = optics->ports[index].peer;
    return peer > index + 1 && peer <= optics->port_count ? &optics->ports[peer - 1] : NULL;
}

static const struct phx_switch_loss *loss_of(const struct switch_optics *optics, uint32_t a)
{
    for (uint32_t i = 0; i < optics->loss_count; i++)
        if (optics->losses[i].a == a)
            return &optics->losses[i];
    return NULL;
}

static uint32_t count_failed(const struct switch_optics *optics)
{
    uint32_t failed = 0;
    for (uint32_t i = 0; i < optics->port_count; i++)
        failed += optics->ports[i].state == PHX_PORT_FAILED;
    return failed;
}

static uint32_t count_paths(const struct switch_optics *optics)
{
    uint32_t paths = 0;
    for (uint32_t i = 0; i < optics->port_count; i++)
        paths += peer_of(optics, i) != NULL;
    return paths;
}

/* Returns the port in a cross-connect with the least light; NULL if no light is measured. */
static const struct phx_switch_port *find_weakest(const struct switch_optics *optics)
{
    const struct phx_switch_port *weakest = NULL;
    for (uint32_t i = 0; i < optics->port_count; i++) {
        const struct phx_switch_port *port = &optics->ports[i];
        if (port->peer && port->power_mdbm != PHX_POWER_UNKNOWN &&
            (!weakest || port->power_mdbm < weakest->power_mdbm))
            weakest = port;
    }
    return weakest;
}

/* --- as text -------------------------------------------------------------------------------------------- */

static void put_thousandths(struct buf *out, bool known, int32_t value)
{
    char text[16];
    snprintf(text, sizeof text, known ? "%.2f" : "-", value / 1000.);
    buf_printf(out, "  %7s", text);
}

static void put_path(struct buf *out, uint32_t number, const struct switch_optics *optics, uint32_t index)
{
    const struct phx_switch_port *a = &optics->ports[index], *b = peer_of(optics, index);
    const struct phx_switch_loss *loss = loss_of(optics, index + 1);
    char path[24];
    snprintf(path, sizeof path, "%u-%u", index + 1, a->peer);
    buf_printf(out, "%-6s  %-9s  %-8s", name_at(number), path,
               state_name(a->state == PHX_PORT_TUNED ? b->state : a->state));
    put_thousandths(out, a->power_mdbm != PHX_POWER_UNKNOWN, a->power_mdbm);
    put_thousandths(out, b->power_mdbm != PHX_POWER_UNKNOWN, b->power_mdbm);
    put_thousandths(out, loss != NULL, loss ? loss->loss_mdb : 0);
    buf_printf(out, "%s\n", a->shutter_closed || b->shutter_closed ? "  shutter closed" : "");
}

static void put_paths(struct buf *out, const struct view *view)
{
    buf_printf(out, "\nSWITCH  PATH       STATE       A DBM    B DBM  LOSS DB\n");
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        for (uint32_t i = 0; i < view->optics[number].port_count; i++)
            if (peer_of(&view->optics[number], i))
                put_path(out, number, &view->optics[number], i);
}

static void put_line(struct buf *out, const struct view *view, uint32_t number)
{
    const struct switch_optics *optics = &view->optics[number];
    const struct phx_switch_port *weakest = find_weakest(optics);
    if (!view->work[number].answers) {
        buf_printf(out, "%-6s  does not answer: %s\n", name_at(number), view->work[number].why);
        return;
    }
    char model[40], light[40] = "-";
    snprintf(model, sizeof model, "%.19s %.19s", optics->identity.vendor, optics->identity.model);
    if (weakest)
        snprintf(light, sizeof light, "%.2f dBm at %u", weakest->power_mdbm / 1000.,
                 (uint32_t)(weakest - optics->ports) + 1);
    buf_printf(out, "%-6s  %-24.24s  %-12.12s  %5u  %5u  %6u  %6u  %s\n", name_at(number), model,
               optics->identity.serial[0] ? optics->identity.serial : "-", optics->port_count,
               count_paths(optics), count_failed(optics), optics->alarm_count, light);
    for (uint32_t i = 0; i < optics->alarm_count; i++) {
        char text[SWITCH_TEXT_MAX];
        alarm_describe(&optics->alarms[i], text, sizeof text);
        buf_printf(out, "          %s\n", text);
    }
}

static void put_text(struct buf *out, const struct view *view)
{
    buf_printf(out,
               "SWITCH  MODEL                     SERIAL        PORTS  PATHS  FAILED  ALARMS  LEAST LIGHT\n");
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        if (view->switches.entry[number].listed)
            put_line(out, view, number);
    if (view->asked->paths)
        put_paths(out, view);
}

/* --- as JSON -------------------------------------------------------------------------------------------- */

static void put_port_json(struct json_writer *writer, const char *key, uint32_t number,
                          const struct phx_switch_port *port)
{
    json_key(writer, key);
    json_begin_object(writer);
    json_pair_int(writer, "port", number);
    json_pair_text(writer, "state", state_name(port->state));
    if (port->power_mdbm != PHX_POWER_UNKNOWN)
        json_pair_int(writer, "powerMilliDbm", port->power_mdbm);
    json_pair_bool(writer, "shutterClosed", port->shutter_closed);
    json_end_object(writer);
}

static void put_paths_json(struct json_writer *writer, const struct switch_optics *optics)
{
    json_key(writer, "paths");
    json_begin_array(writer);
    for (uint32_t i = 0; i < optics->port_count; i++) {
        const struct phx_switch_loss *loss = loss_of(optics, i + 1);
        if (!peer_of(optics, i))
            continue;
        json_begin_object(writer);
        put_port_json(writer, "a", i + 1, &optics->ports[i]);
        put_port_json(writer, "b", optics->ports[i].peer, peer_of(optics, i));
        if (loss) {
            json_pair_int(writer, "lossMilliDb", loss->loss_mdb);
            json_pair_int(writer, "lossAccuracyMilliDb", loss->accuracy_mdb);
            json_pair_int(writer, "lossFrequencyGhz", loss->frequency_ghz);
            json_pair_int(writer, "lossMilliCelsius", loss->temperature_mc);
        }
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void put_alarms_json(struct json_writer *writer, const struct switch_optics *optics)
{
    json_key(writer, "alarms");
    json_begin_array(writer);
    for (uint32_t i = 0; i < optics->alarm_count; i++) {
        const struct phx_switch_alarm *alarm = &optics->alarms[i];
        json_begin_object(writer);
        json_pair_text(writer, "severity", alarm_severity_name(alarm->severity));
        json_pair_text(writer, "condition", alarm->condition);
        if (alarm->port)
            json_pair_int(writer, "port", alarm->port);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void put_switch_json(struct json_writer *writer, const struct view *view, uint32_t number)
{
    const struct switch_optics *optics = &view->optics[number];
    json_begin_object(writer);
    json_pair_text(writer, "name", name_at(number));
    json_pair_bool(writer, "answers", view->work[number].answers);
    if (view->work[number].answers) {
        json_pair_text(writer, "vendor", optics->identity.vendor);
        json_pair_text(writer, "model", optics->identity.model);
        json_pair_text(writer, "serial", optics->identity.serial);
        json_pair_text(writer, "firmware", optics->identity.firmware);
        json_pair_int(writer, "ports", optics->port_count);
        json_pair_int(writer, "failedPorts", count_failed(optics));
        put_alarms_json(writer, optics);
        put_paths_json(writer, optics);
    } else {
        json_pair_text(writer, "reason", view->work[number].why);
    }
    json_end_object(writer);
}

static void put_json(struct buf *out, const struct view *view)
{
    struct json_writer writer = {.out = out};
    json_begin_object(&writer);
    json_key(&writer, "switches");
    json_begin_array(&writer);
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        if (view->switches.entry[number].listed)
            put_switch_json(&writer, view, number);
    json_end_array(&writer);
    json_end_object(&writer);
    buf_add_char(out, '\n');
}

/* --- the command ---------------------------------------------------------------------------------------- */

static bool all_is_well(const struct view *view)
{
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        if (view->switches.entry[number].listed &&
            (!view->work[number].answers || count_failed(&view->optics[number]) > 0 ||
             view->optics[number].alarm_count > 0))
            return false;
    return true;
}

static int look(struct view *view)
{
    const struct fabric_asked *asked = view->asked;
    struct buf out BUF_CLEANUP = {0};
    struct error error = {0};
    struct crew *crew;
    struct crew_terms terms = CREW_TERMS_DEFAULT;
    if (asked->timeout_ns)
        terms.timeout_ms = (uint32_t)(asked->timeout_ns / 1000000);
    terms.attempts = (uint32_t)asked->attempts;
    if (!fabric_switches_find(asked->switch_list, asked->cluster, asked->in, &view->switches, &terms.cubes))
        return EXIT_FAILED;
    if (switches_open(&view->switches, &terms, &crew, &error) < 0)
        return fabric_refuse(&error);
    crew_look(crew, asked->frequency_ghz ? (uint32_t)asked->frequency_ghz : OPTICS_FREQUENCY_GHZ, view->work,
              view->optics);
    crew_close(crew);
    (asked->json ? put_json : put_text)(&out, view);
    output_write(&out);
    return all_is_well(view) ? EXIT_OK : EXIT_FAILED;
}

int fabric_run_optics(const struct fabric_asked *asked)
{
    struct view *view = mem_alloc(sizeof *view);
    view->asked = asked;
    int rc = look(view);
    mem_free(view);
    return rc;
}
