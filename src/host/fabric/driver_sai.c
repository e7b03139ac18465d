/* The driver of switches behind a SAI library (sai_abi.h). SAI has neither power meters nor alarms for
 * optical circuit switches, so power is unknown, and the function `alarms` is absent. A shutter is a port
 * that is forced to be blocked. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "host/fabric/internal.h"
#include "host/fabric/line.h"
#include "host/fabric/sai_session.h"

int sai_begin(struct phx_switch *sw, struct phx_switch_error *error)
{
    int rc = sai_enter(sw->device, sw->timeout_ms, error);
    sw->inside = rc == PHX_SWITCH_OK;
    return rc;
}

void sai_end(struct phx_switch *sw)
{
    if (sw->inside)
        sai_leave(sw->device);
    sw->inside = false;
}

static void driver_close(struct phx_switch *sw)
{
    mem_free(sw->factory);
    mem_free(sw);
}

static int driver_open(const struct phx_switch_config *config, struct phx_switch **ret_switch,
                       struct phx_switch_error *error)
{
    struct phx_switch *sw = mem_alloc(sizeof *sw);
    sw->timeout_ms = config->timeout_ms;
    int rc = sai_attach(config->address, config->timeout_ms, &sw->device, error);
    if (rc == PHX_SWITCH_OK)
        rc = sai_begin(sw, error);
    if (rc == PHX_SWITCH_OK)
        rc = sai_find_ports(sw, config, error);
    sai_end(sw);
    if (rc < 0)
        driver_close(sw);
    else
        *ret_switch = sw;
    return rc;
}

/* --- identity --------------------------------------------------------------------------------------- */

static bool read_number(struct phx_switch *sw, uint32_t number, uint32_t *ret_value)
{
    struct sai_attribute attribute = {.number = number};
    if (!sw->device->table->get || sw->device->table->get(sw->device->id, 1, &attribute) != SAI_OK)
        return false;
    *ret_value = attribute.u32;
    return true;
}

/* SAI reports no vendor, model or serial number. The library's file and the text that names the switch to it
 * replace them. */
static int driver_identify(struct phx_switch *sw, struct phx_switch_identity *ret_identity,
                           struct phx_switch_error *error)
{
    struct phx_switch_identity identity = {.a_ports = sw->size.a_ports, .b_ports = sw->size.b_ports};
    uint32_t major, minor;
    int rc = sai_begin(sw, error);
    if (rc < 0)
        return rc;
    snprintf(identity.vendor, sizeof identity.vendor, "%s", sai_file(sw->device));
    snprintf(identity.model, sizeof identity.model, "SAI OCS");
    snprintf(identity.serial, sizeof identity.serial, "%.63s", sai_hardware(sw->device));
    if (read_number(sw, SAI_SWITCH_FIRMWARE_MAJOR, &major) &&
        read_number(sw, SAI_SWITCH_FIRMWARE_MINOR, &minor))
        snprintf(identity.firmware, sizeof identity.firmware, "%u.%u", major, minor);
    sai_end(sw);
    *ret_identity = identity;
    return PHX_SWITCH_OK;
}

/* --- what is joined --------------------------------------------------------------------------------- */

static uint32_t port_of(const struct phx_switch *sw, sai_id id)
{
    for (uint32_t port = 1; id && port <= sw->size.a_ports + sw->size.b_ports; port++)
        if (sw->ports[port] == id)
            return port;
    return 0;
}

/* Adds the cross-connect `id` to *joined. One that was removed since it was listed is skipped. */
static int enter_joined(struct phx_switch *sw, struct sai_joined *joined, sai_id id,
                        struct phx_switch_error *error)
{
    static const char call[] = "get_ocs_cross_connect_attribute";
    struct sai_attribute attributes[2] = {{.number = SAI_CROSS_CONNECT_A}, {.number = SAI_CROSS_CONNECT_B}};
    sai_status status = sw->device->ocs->get_cross_connect(id, 2, attributes);
    if (status == SAI_INVALID_OBJECT || status == SAI_NOT_FOUND)
        return PHX_SWITCH_OK;
    if (status != SAI_OK)
        return sai_fail(error, sw->device, call, "", status);
    uint32_t one = port_of(sw, attributes[0].id), other = port_of(sw, attributes[1].id);
    struct phx_crossconnect pair =
        one < other ? (struct phx_crossconnect){one, other} : (struct phx_crossconnect){other, one};
    if (!batch_pair_is_possible(sw->size, pair))
        return sai_garbled(error, sw->device, call,
                           "the switch joins ports %u and %u: expected one of each side", one, other);
    if (joined->peers.of[pair.a] || joined->peers.of[pair.b])
        return sai_garbled(error, sw->device, call, "port %u or %u is in two cross-connects", pair.a, pair.b);
    joined->peers.of[pair.a] = (uint16_t)pair.b;
    joined->peers.of[pair.b] = (uint16_t)pair.a;
    joined->cross_connects[pair.a] = id;
    return PHX_SWITCH_OK;
}

int sai_read_joined(struct phx_switch *sw, struct sai_joined *ret_joined, struct phx_switch_error *error)
{
    sai_id *ids;
    uint32_t count;
    int rc = sai_list_objects(sw, SAI_OBJECT_CROSS_CONNECT, PHX_SWITCH_PORTS_MAX, &ids, &count, error);
    if (rc < 0)
        return rc;
    memset(ret_joined, 0, sizeof *ret_joined);
    for (uint32_t i = 0; rc == PHX_SWITCH_OK && i < count; i++)
        rc = enter_joined(sw, ret_joined, ids[i], error);
    mem_free(ids);
    return rc;
}

static int driver_list(struct phx_switch *sw, struct phx_crossconnect *ret_pairs, uint32_t capacity,
                       uint32_t *ret_count, struct phx_switch_error *error)
{
    struct sai_joined joined;
    uint32_t total = 0, count = 0;
    int rc = sai_begin(sw, error);
    if (rc == PHX_SWITCH_OK)
        rc = sai_read_joined(sw, &joined, error);
    sai_end(sw);
    if (rc < 0)
        return rc;
    for (uint32_t a = 1; a <= sw->size.a_ports; a++)
        total += joined.peers.of[a] != 0;
    if (total > capacity)
        return switch_fail(error, PHX_SWITCH_INVALID, "the switch has %u cross-connects: expected at most %u",
                           total, capacity);
    for (uint32_t a = 1; a <= sw->size.a_ports; a++)
        if (joined.peers.of[a])
            ret_pairs[count++] = (struct phx_crossconnect){a, joined.peers.of[a]};
    *ret_count = count;
    return PHX_SWITCH_OK;
}

/* --- ports ------------------------------------------------------------------------------------------ */

int sai_read_port(struct phx_switch *sw, uint32_t port, struct sai_port_view *ret_view,
                  struct phx_switch_error *error)
{
    static const char call[] = "get_ocs_port_attribute";
    struct sai_attribute state = {.number = SAI_PORT_STATUS}, override = {.number = SAI_PORT_OVERRIDE};
    char word[SAI_WORD_MAX];
    sai_port_word(sw, port, word);
    sai_status status = sw->device->ocs->get_port(sw->ports[port], 1, &state);
    if (status != SAI_OK)
        return sai_fail(error, sw->device, call, word, status);
    status = sw->device->ocs->get_port(sw->ports[port], 1, &override);
    if (status != SAI_OK && sai_meaning(status) != PHX_SWITCH_UNSUPPORTED)
        return sai_fail(error, sw->device, call, word, status);
    *ret_view = (struct sai_port_view){state.s32, status == SAI_OK && override.s32 == SAI_OVERRIDE_BLOCKED};
    return PHX_SWITCH_OK;
}

static enum phx_port_state port_state(struct sai_port_view view)
{
    static const enum phx_port_state states[] = {PHX_PORT_BLOCKED, PHX_PORT_TUNING, PHX_PORT_TUNED,
                                                 PHX_PORT_FAILED};
    if (view.status < 0 || view.status > SAI_PORT_FAILED)
        return PHX_PORT_UNKNOWN;
    return view.closed && view.status != SAI_PORT_FAILED ? PHX_PORT_BLOCKED : states[view.status];
}

static int check_range(const struct phx_switch *sw, uint32_t first, uint32_t count,
                       struct phx_switch_error *error)
{
    uint32_t ports = sw->size.a_ports + sw->size.b_ports;
    if (first >= 1 && count <= ports && first <= ports + 1 - count)
        return PHX_SWITCH_OK;
    return switch_fail(error, PHX_SWITCH_INVALID, "%u ports from %u on: the switch has %u", count, first,
                       ports);
}

static int driver_ports(struct phx_switch *sw, uint32_t first, uint32_t count,
                        struct phx_switch_port *ret_ports, struct phx_switch_error *error)
{
    struct sai_port_view views[PHX_SWITCH_PORTS_MAX];
    struct sai_joined joined;
    int rc = check_range(sw, first, count, error);
    if (rc == PHX_SWITCH_OK)
        rc = sai_begin(sw, error);
    if (rc == PHX_SWITCH_OK)
        rc = sai_read_joined(sw, &joined, error);
    for (uint32_t i = 0; rc == PHX_SWITCH_OK && i < count; i++)
        rc = sai_read_port(sw, first + i, &views[i], error);
    sai_end(sw);
    for (uint32_t i = 0; rc == PHX_SWITCH_OK && i < count; i++)
        ret_ports[i] = (struct phx_switch_port){
            .port = first + i,
            .state = port_state(views[i]),
            .peer = joined.peers.of[first + i],
            .shutter_closed = views[i].closed,
            .power_mdbm = PHX_POWER_UNKNOWN,
        };
    return rc;
}

static int driver_shutter(struct phx_switch *sw, const uint32_t *ports, uint32_t count, uint8_t closed,
                          struct phx_switch_error *error)
{
    struct sai_attribute attribute = {.number = SAI_PORT_OVERRIDE};
    char word[SAI_WORD_MAX];
    int rc = PHX_SWITCH_OK;
    attribute.s32 = closed ? SAI_OVERRIDE_BLOCKED : SAI_OVERRIDE_NORMAL;
    if (!sw->device->ocs->set_port)
        return switch_fail(error, PHX_SWITCH_UNSUPPORTED, "%.60s: the library cannot set ports",
                           sai_file(sw->device));
    for (uint32_t i = 0; rc == PHX_SWITCH_OK && i < count; i++)
        rc = check_range(sw, ports[i], 1, error);
    if (rc == PHX_SWITCH_OK)
        rc = sai_begin(sw, error);
    for (uint32_t i = 0; rc == PHX_SWITCH_OK && i < count; i++) {
        sai_status status = sw->device->ocs->set_port(sw->ports[ports[i]], &attribute);
        sai_port_word(sw, ports[i], word);
        if (status != SAI_OK)
            rc = sai_fail(error, sw->device, "set_ocs_port_attribute", word, status);
    }
    sai_end(sw);
    return rc;
}

const struct phx_switch_driver driver_sai = {
    .abi = PHX_SWITCH_DRIVER_ABI,
    .name = "sai",
    .open = driver_open,
    .close = driver_close,
    .identify = driver_identify,
    .list = driver_list,
    .add = sai_add,
    .remove = sai_remove,
    .ports = driver_ports,
    .shutter = driver_shutter,
    .loss = sai_loss,
};
