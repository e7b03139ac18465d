/* A driver of switches in a shared library, for tests of the loader: 64 + 64 ports in memory, one switch for
 * each address. An address says what goes wrong: "breaks=N": the session breaks once, after N pairs;
 * "dies=N": the switch is lost for good after N pairs; "locked...": admin has to log in, with the password
 * "right". Ports and alarms are as stub_switch.h sets them. */
#include "stub_switch.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STUB_SWITCHES = 64, STUB_SIDE = 64 };

struct phx_switch {
    char address[64];
    uint32_t peer[2 * STUB_SIDE + 1];
    long left; /* pairs until it breaks; -1: never */
    int dead;
    struct stub_health health; /* under lock */
};
static struct phx_switch stubs[STUB_SWITCHES];
static int wrong_logins; /* under lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int stub_fail(struct phx_switch_error *error, enum phx_switch_status status, const char *message)
{
    error->status = status;
    snprintf(error->message, sizeof error->message, "stub: %s", message);
    return status;
}

static struct phx_switch *stub_at(const char *address)
{
    for (int i = 0; i < STUB_SWITCHES; i++)
        if (strcmp(stubs[i].address, address) == 0)
            return &stubs[i];
    return NULL;
}

void stub_set_health(const char *address, const struct stub_health *health)
{
    pthread_mutex_lock(&lock);
    struct phx_switch *sw = stub_at(address);
    if (!sw)
        abort();
    sw->health = *health;
    pthread_mutex_unlock(&lock);
}

int stub_logins(void)
{
    pthread_mutex_lock(&lock);
    int count = wrong_logins;
    pthread_mutex_unlock(&lock);
    return count;
}

static int stub_open(const struct phx_switch_config *config, struct phx_switch **ret_switch,
                     struct phx_switch_error *error)
{
    bool right = config->user && config->secret && strcmp(config->user, "admin") == 0 &&
                 strcmp(config->secret, "right") == 0;
    pthread_mutex_lock(&lock);
    if (strncmp(config->address, "locked", 6) == 0 && !right) {
        wrong_logins++;
        pthread_mutex_unlock(&lock);
        return stub_fail(error, PHX_SWITCH_DENIED, "wrong login");
    }
    struct phx_switch *found = stub_at(config->address);
    if (!found && (found = stub_at(""))) {
        snprintf(found->address, sizeof found->address, "%s", config->address);
        const char *number = strchr(config->address, '=');
        found->left = number ? strtol(number + 1, NULL, 10) : -1;
    }
    pthread_mutex_unlock(&lock);
    if (!found || found->dead)
        return stub_fail(error, PHX_SWITCH_LOST, "no answer");
    *ret_switch = found;
    return PHX_SWITCH_OK;
}

static void stub_close(struct phx_switch *sw)
{
    (void)sw;
}

static int stub_identify(struct phx_switch *sw, struct phx_switch_identity *ret_identity,
                         struct phx_switch_error *error)
{
    (void)sw, (void)error;
    *ret_identity =
        (struct phx_switch_identity){.vendor = "stub", .a_ports = STUB_SIDE, .b_ports = STUB_SIDE};
    return PHX_SWITCH_OK;
}

static int stub_list(struct phx_switch *sw, struct phx_crossconnect *ret_pairs, uint32_t capacity,
                     uint32_t *ret_count, struct phx_switch_error *error)
{
    uint32_t count = 0;
    if (sw->dead)
        return stub_fail(error, PHX_SWITCH_LOST, "no answer");
    for (uint32_t a = 1; a <= STUB_SIDE; a++)
        if (sw->peer[a] && count < capacity)
            ret_pairs[count++] = (struct phx_crossconnect){a, sw->peer[a]};
    *ret_count = count;
    return PHX_SWITCH_OK;
}

static int stub_change(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count, int add,
                       int *ret_statuses, struct phx_switch_error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        if (sw->left == 0) {
            sw->dead = strncmp(sw->address, "dies", 4) == 0;
            sw->left = -1;
            for (; i < count; i++)
                ret_statuses[i] = PHX_SWITCH_LOST;
            return stub_fail(error, PHX_SWITCH_LOST, "the session broke");
        }
        sw->left -= sw->left > 0;
        uint32_t a = pairs[i].a, b = pairs[i].b;
        int busy = add && (sw->peer[a] || sw->peer[b]) && sw->peer[a] != b;
        ret_statuses[i] = busy                       ? PHX_SWITCH_BUSY
                          : !add && sw->peer[a] != b ? PHX_SWITCH_ABSENT
                                                     : PHX_SWITCH_OK;
        if (ret_statuses[i] == PHX_SWITCH_OK) {
            sw->peer[a] = add ? b : 0;
            sw->peer[b] = add ? a : 0;
        }
    }
    return PHX_SWITCH_OK;
}

static int stub_add(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count,
                    enum phx_batch_mode mode, int *ret_statuses, struct phx_switch_error *error)
{
    (void)mode;
    return stub_change(sw, pairs, count, 1, ret_statuses, error);
}

static int stub_remove(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count,
                       int *ret_statuses, struct phx_switch_error *error)
{
    return stub_change(sw, pairs, count, 0, ret_statuses, error);
}

/* Breaks the session if this is the request that should. */
static int stub_breaks(struct phx_switch *sw, enum stub_break which, struct phx_switch_error *error)
{
    if (sw->health.breaks != which)
        return PHX_SWITCH_OK;
    sw->health.breaks = STUB_BREAKS_NOT;
    return stub_fail(error, PHX_SWITCH_LOST, "the session broke");
}

static int stub_ports(struct phx_switch *sw, uint32_t first, uint32_t count,
                      struct phx_switch_port *ret_ports, struct phx_switch_error *error)
{
    pthread_mutex_lock(&lock);
    if (sw->health.breaks == STUB_RESTARTS) {
        memset(sw->peer, 0, sizeof sw->peer);
        sw->health.breaks = STUB_BREAKS_AT_PORTS;
    }
    int rc = stub_breaks(sw, STUB_BREAKS_AT_PORTS, error);
    if (sw->health.breaks == STUB_IS_LATE || sw->health.breaks == STUB_HANGS)
        rc = stub_fail(error, PHX_SWITCH_TIMEOUT, "no answer in time");
    if (sw->health.breaks == STUB_IS_LATE)
        sw->health.breaks = STUB_BREAKS_NOT;
    for (uint32_t i = 0; rc == PHX_SWITCH_OK && i < count; i++)
        ret_ports[i] = (struct phx_switch_port){.port = first + i, .peer = sw->peer[first + i]};
    for (uint32_t i = 0; rc == PHX_SWITCH_OK && i < sw->health.port_count; i++) {
        const struct phx_switch_port *set = &sw->health.ports[i];
        if (set->port < first || set->port - first >= count)
            continue;
        struct phx_switch_port *port = &ret_ports[set->port - first];
        port->state = set->state;
        port->shutter_closed = set->shutter_closed;
        port->power_mdbm = set->power_mdbm;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

static int stub_alarms(struct phx_switch *sw, struct phx_switch_alarm *ret_alarms, uint32_t capacity,
                       uint32_t *ret_count, struct phx_switch_error *error)
{
    pthread_mutex_lock(&lock);
    int rc = stub_breaks(sw, STUB_BREAKS_AT_ALARMS, error);
    if (rc == PHX_SWITCH_OK) {
        *ret_count = sw->health.alarm_count < capacity ? sw->health.alarm_count : capacity;
        memcpy(ret_alarms, sw->health.alarms, *ret_count * sizeof *ret_alarms);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

phx_switch_driver_fn phx_switch_driver;
const struct phx_switch_driver *phx_switch_driver(void)
{
    static const struct phx_switch_driver driver = {
        .abi = PHX_SWITCH_DRIVER_ABI,
        .name = "stub",
        .open = stub_open,
        .close = stub_close,
        .identify = stub_identify,
        .list = stub_list,
        .add = stub_add,
        .remove = stub_remove,
        .ports = stub_ports,
        .alarms = stub_alarms,
    };
    return &driver;
}
