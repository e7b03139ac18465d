/* A SAI library with a small optical circuit switch for each hardware text, for tests of the driver `sai`.
 *
 * Settings of an address say how it behaves: PORTS=N: the switch comes with N and N ports, else ports must be
 * created; FAULT=WORD: what goes wrong; GATE=PATH: the next bulk creation writes a byte to PATH.in and waits
 * for one from PATH.out. Port 3A does not settle but fails, 4A refuses cross-connects, and mirrors move
 * during the first two looks at a port. The factory measured all pairs of the first two ports of each side.
 * Port 5A has failed for good once two calls ran at the same time. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/fabric/sai_abi.h"

enum { STUB_SWITCHES = 48, STUB_PORTS = 128, STUB_JOINS = 64, STUB_LOOKS = 2 };
enum { KIND_SWITCH = 1, KIND_PORT, KIND_CROSS, KIND_FACTORY };

struct stub_port {
    char name[8];
    int32_t override;
    int looks; /* that still see the mirrors move */
};
struct stub_cross {
    uint64_t a, b; /* 0: free */
};
struct stub_switch {
    char hardware[64], fault[32], gate[128];
    int in_use;
    uint32_t port_count;
    struct stub_port ports[STUB_PORTS];
    struct stub_cross crosses[STUB_JOINS];
};

static struct stub_switch stubs[STUB_SWITCHES];
static const struct sai_services *host;
static int initialised;
static atomic_int running, overlaps;

static uint64_t stub_id(uint64_t kind, uint64_t which, uint64_t index)
{
    return kind << 32 | which << 16 | (index + 1);
}

static struct stub_switch *switch_of(uint64_t id)
{
    return &stubs[id >> 16 & 0xffff];
}

static uint32_t index_of(uint64_t id)
{
    return (uint32_t)(id & 0xffff) - 1;
}

static int has_fault(const struct stub_switch *stub, const char *word)
{
    return strcmp(stub->fault, word) == 0;
}

static void begin_call(void)
{
    if (atomic_fetch_add(&running, 1))
        atomic_fetch_add(&overlaps, 1);
}

static sai_status end_call(sai_status status)
{
    atomic_fetch_sub(&running, 1);
    return status;
}

/* --- ports ------------------------------------------------------------------------------------------ */

static struct stub_cross *cross_with(struct stub_switch *stub, uint64_t port)
{
    for (int i = 0; i < STUB_JOINS; i++)
        if (stub->crosses[i].a && (stub->crosses[i].a == port || stub->crosses[i].b == port))
            return &stub->crosses[i];
    return NULL;
}

static sai_status fill_text(struct sai_attribute *attribute, const char *text)
{
    uint32_t room = attribute->list.count, length = (uint32_t)strlen(text);
    attribute->list.count = length;
    if (room < length)
        return SAI_BUFFER_OVERFLOW;
    memcpy(attribute->list.at, text, length);
    return SAI_OK;
}

static int32_t port_status(struct stub_switch *stub, uint64_t id)
{
    struct stub_port *port = &stub->ports[index_of(id)];
    if (strcmp(port->name, "5A") == 0 && atomic_load(&overlaps))
        return SAI_PORT_FAILED;
    if (has_fault(stub, "odd-status"))
        return 77;
    if (!cross_with(stub, id) || port->override == SAI_OVERRIDE_BLOCKED)
        return SAI_PORT_BLOCKED;
    if (port->looks > 0 || has_fault(stub, "slow"))
        return port->looks--, SAI_PORT_TUNING;
    return strcmp(port->name, "3A") == 0 ? SAI_PORT_FAILED : SAI_PORT_TUNED;
}

static sai_status get_port(sai_id id, uint32_t count, struct sai_attribute *attributes)
{
    struct stub_switch *stub = switch_of(id);
    begin_call();
    sai_status status = SAI_OK;
    for (uint32_t i = 0; i < count && status == SAI_OK; i++)
        switch (attributes[i].number) {
        case SAI_PORT_NAME:
            status = fill_text(&attributes[i],
                               has_fault(stub, "odd-name") ? "1Z" : stub->ports[index_of(id)].name);
            if (has_fault(stub, "long-name"))
                attributes[i].list.count = 4000000000u;
            break;
        case SAI_PORT_STATUS:
            attributes[i].s32 = port_status(stub, id);
            break;
        case SAI_PORT_OVERRIDE:
            status = has_fault(stub, "no-override") ? -(SAI_BASE_NOT_IMPLEMENTED + (int)i) : SAI_OK;
            attributes[i].s32 = stub->ports[index_of(id)].override;
            break;
        default:
            status = -(SAI_BASE_UNKNOWN_ATTRIBUTE + (int)i);
        }
    return end_call(status);
}

static sai_status set_port(sai_id id, const struct sai_attribute *attribute)
{
    begin_call();
    if (has_fault(switch_of(id), "no-override"))
        return end_call(-SAI_BASE_NOT_IMPLEMENTED);
    switch_of(id)->ports[index_of(id)].override = attribute->s32;
    return end_call(SAI_OK);
}

static void add_port(struct stub_switch *stub, const char *name, uint32_t length)
{
    memcpy(stub->ports[stub->port_count++].name, name, length < 7 ? length : 7);
}

static sai_status create_port(sai_id *ret_id, sai_id device, uint32_t count,
                              const struct sai_attribute *attributes)
{
    struct stub_switch *stub = switch_of(device);
    begin_call();
    if (stub->port_count == STUB_PORTS || count < 1 || attributes[0].number != SAI_PORT_NAME)
        return end_call(-4);
    add_port(stub, attributes[0].list.at, attributes[0].list.count);
    *ret_id = stub_id(KIND_PORT, (uint64_t)(stub - stubs), stub->port_count - 1);
    return end_call(SAI_OK);
}

/* --- cross-connects --------------------------------------------------------------------------------- */

static sai_status join(struct stub_switch *stub, const struct sai_attribute *attributes, sai_id *ret_id)
{
    uint64_t a = attributes[0].id, b = attributes[1].id;
    if (attributes[0].number != SAI_CROSS_CONNECT_A || attributes[1].number != SAI_CROSS_CONNECT_B)
        return -14;
    if (strcmp(stub->ports[index_of(a)].name, "4A") == 0)
        return -4;
    if (cross_with(stub, a) || cross_with(stub, b))
        return SAI_IN_USE;
    for (int i = 0; i < STUB_JOINS; i++) {
        if (stub->crosses[i].a)
            continue;
        stub->crosses[i] = (struct stub_cross){a, b};
        stub->ports[index_of(a)].looks = stub->ports[index_of(b)].looks = STUB_LOOKS;
        *ret_id = has_fault(stub, "no-id") ? 0 : stub_id(KIND_CROSS, (uint64_t)(stub - stubs), (uint64_t)i);
        return SAI_OK;
    }
    return -13;
}

static sai_status part(sai_id id)
{
    struct stub_cross *cross = &switch_of(id)->crosses[index_of(id)];
    if (id >> 32 != KIND_CROSS || !cross->a)
        return SAI_INVALID_OBJECT;
    *cross = (struct stub_cross){0};
    return SAI_OK;
}

static sai_status create_cross(sai_id *ret_id, sai_id device, uint32_t count,
                               const struct sai_attribute *attributes)
{
    begin_call();
    return end_call(count == 2 ? join(switch_of(device), attributes, ret_id) : -14);
}

static sai_status remove_cross(sai_id id)
{
    begin_call();
    return end_call(part(id));
}

/* True if a bulk call stops at the first failure, whatever its mode says. */
static int stops(const struct stub_switch *stub, enum sai_bulk_mode mode)
{
    return mode == SAI_BULK_STOP || has_fault(stub, "stops");
}

/* Meets the test at two pipes. */
static void pass_gate(struct stub_switch *stub)
{
    char path[160], byte = 'x';
    if (!stub->gate[0])
        return;
    snprintf(path, sizeof path, "%s.in", stub->gate);
    int in = open(path, O_WRONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s.out", stub->gate);
    int out = open(path, O_RDONLY | O_CLOEXEC);
    if (write(in, &byte, 1) != 1 || read(out, &byte, 1) != 1)
        abort();
    close(in);
    close(out);
    stub->gate[0] = 0;
}

static sai_status create_crosses(sai_id device, uint32_t members, const uint32_t *counts,
                                 const struct sai_attribute **attributes, enum sai_bulk_mode mode,
                                 sai_id *ret_ids, sai_status *ret_statuses)
{
    struct stub_switch *stub = switch_of(device);
    sai_status whole = SAI_OK;
    begin_call();
    pass_gate(stub);
    if (has_fault(stub, "silent"))
        return end_call(SAI_OK);
    if (has_fault(stub, "no-bulk"))
        return end_call(SAI_NOT_IMPLEMENTED);
    for (uint32_t i = 0; i < members; i++) {
        ret_statuses[i] = whole < 0 && stops(stub, mode) ? SAI_NOT_EXECUTED
                          : counts[i] == 2               ? join(stub, attributes[i], &ret_ids[i])
                                                         : -14;
        whole = ret_statuses[i] < 0 ? SAI_FAILURE : whole;
    }
    return end_call(whole);
}

static sai_status remove_crosses(uint32_t members, const sai_id *ids, enum sai_bulk_mode mode,
                                 sai_status *ret_statuses)
{
    sai_status whole = SAI_OK;
    begin_call();
    for (uint32_t i = 0; i < members; i++) {
        ret_statuses[i] = whole < 0 && stops(switch_of(ids[i]), mode) ? SAI_NOT_EXECUTED : part(ids[i]);
        whole = ret_statuses[i] < 0 ? SAI_FAILURE : whole;
    }
    return end_call(whole);
}

static sai_status get_cross(sai_id id, uint32_t count, struct sai_attribute *attributes)
{
    struct stub_switch *stub = switch_of(id);
    struct stub_cross *cross = &stub->crosses[index_of(id)];
    begin_call();
    if (!cross->a)
        return end_call(SAI_INVALID_OBJECT);
    for (uint32_t i = 0; i < count; i++)
        attributes[i].id = has_fault(stub, "odd-pair")                                  ? 12345
                           : (attributes[i].number == 1) != has_fault(stub, "reversed") ? cross->b
                                                                                        : cross->a;
    return end_call(SAI_OK);
}

/* --- factory data ----------------------------------------------------------------------------------- */

static sai_status get_factory(sai_id id, uint32_t count, struct sai_attribute *attributes)
{
    static const int32_t lists[4][2] = {{193500, 229100}, {2500, 2550}, {123, 145}, {5, 7}};
    uint32_t pair = index_of(id);
    char name[16];
    begin_call();
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = attributes[i].number;
        if (number <= SAI_FACTORY_B) {
            snprintf(name, sizeof name, "%u%c", 1 + (number == SAI_FACTORY_A ? pair / 2 : pair % 2),
                     number == SAI_FACTORY_A ? 'A' : 'B');
            sai_status status = fill_text(&attributes[i], name);
            if (status < 0)
                return end_call(status);
        } else if (number <= SAI_FACTORY_ACCURACY && attributes[i].list.count >= 2) {
            memcpy(attributes[i].list.at, lists[number - SAI_FACTORY_GHZ], sizeof lists[0]);
            attributes[i].list.count = has_fault(switch_of(id), "odd-lists") ? number : 2;
        }
    }
    return end_call(SAI_OK);
}

/* --- switches and tables ---------------------------------------------------------------------------- */

static const char *setting(uint32_t profile, const char *name)
{
    const char *value = host->value(profile, name);
    return value ? value : "";
}

static sai_status create_switch(sai_id *ret_device, uint32_t count, const struct sai_attribute *attributes)
{
    const char *hardware = "";
    uint32_t profile = 0;
    int init = -1;
    begin_call();
    for (uint32_t i = 0; i < count; i++) {
        if (attributes[i].number == SAI_SWITCH_HARDWARE)
            hardware = attributes[i].list.at;
        if (attributes[i].number == SAI_SWITCH_PROFILE)
            profile = attributes[i].u32;
        if (attributes[i].number == SAI_SWITCH_INIT)
            init = attributes[i].truth;
    }
    uint64_t which = 0;
    while (which < STUB_SWITCHES && stubs[which].in_use)
        which++;
    if (!initialised || init < 0 || which == STUB_SWITCHES || strcmp(hardware, "absent") == 0)
        return end_call(-4);
    struct stub_switch *stub = &stubs[which];
    stub->in_use = 1;
    snprintf(stub->hardware, sizeof stub->hardware, "%s", hardware);
    snprintf(stub->fault, sizeof stub->fault, "%s", setting(profile, "FAULT"));
    snprintf(stub->gate, sizeof stub->gate, "%s", setting(profile, "GATE"));
    long ports = strtol(setting(profile, "PORTS"), NULL, 10);
    for (long i = 1; i <= ports && i <= STUB_PORTS / 2; i++)
        for (int side = 1; side >= 0; side--) {
            char name[8];
            int length = snprintf(name, sizeof name, "%ld%c", i, "AB"[side]);
            add_port(stub, name, (uint32_t)length);
        }
    *ret_device = stub_id(KIND_SWITCH, which, 0);
    return end_call(SAI_OK);
}

static sai_status get_switch(sai_id device, uint32_t count, struct sai_attribute *attributes)
{
    (void)device;
    begin_call();
    for (uint32_t i = 0; i < count; i++)
        attributes[i].u32 = attributes[i].number == SAI_SWITCH_FIRMWARE_MAJOR ? 2 : 7;
    return end_call(SAI_OK);
}

sai_initialize_fn sai_api_initialize;
sai_status sai_api_initialize(uint64_t flags, const struct sai_services *services)
{
    if (flags || initialised) /* once for a process */
        return SAI_FAILURE;
    const char *fault = services->value(0, "FAULT"), *name = NULL, *value;
    int settings = 0;
    while (services->next(0, &name, &value) == 0 && strcmp(services->value(0, name), value) == 0)
        settings++;
    if ((fault && strcmp(fault, "init") == 0) || (fault && settings < 1))
        return SAI_FAILURE;
    host = services;
    initialised = 1;
    return SAI_OK;
}

sai_query_fn sai_api_query;
sai_status sai_api_query(int32_t table, void **ret_table)
{
    static const struct sai_switch_table switches = {.create = create_switch, .get = get_switch};
    static const struct sai_ocs_table ocs = {
        .create_port = create_port,
        .set_port = set_port,
        .get_port = get_port,
        .create_cross_connect = create_cross,
        .remove_cross_connect = remove_cross,
        .get_cross_connect = get_cross,
        .create_cross_connects = create_crosses,
        .remove_cross_connects = remove_crosses,
        .get_factory_data = get_factory,
    };
    static const struct sai_ocs_table poor = {.get_port = get_port};
    const char *fault = host->value(0, "FAULT");
    if (table == SAI_TABLE_OCS && fault && strcmp(fault, "no-ocs") == 0)
        return SAI_NOT_IMPLEMENTED;
    if (table == SAI_TABLE_OCS && fault && strcmp(fault, "null-ocs") == 0)
        return SAI_OK;
    *ret_table = (void *)(table == SAI_TABLE_SWITCH                 ? (const void *)&switches
                          : fault && strcmp(fault, "poor-ocs") == 0 ? (const void *)&poor
                                                                    : (const void *)&ocs);
    return table == SAI_TABLE_SWITCH || table == SAI_TABLE_OCS ? SAI_OK : SAI_INVALID_PARAMETER;
}

sai_keys_fn sai_get_object_key;
sai_status sai_get_object_key(sai_id device, int32_t kind, uint32_t *count, union sai_key *keys)
{
    struct stub_switch *stub = switch_of(device);
    uint64_t which = (uint64_t)(stub - stubs);
    uint32_t found = 0, room = *count;
    begin_call();
    if (has_fault(stub, "many") && kind == SAI_OBJECT_CROSS_CONNECT) {
        *count = 4000000000u;
        return end_call(SAI_OK);
    }
    for (uint32_t i = 0; i < STUB_PORTS; i++) {
        uint64_t id = kind == SAI_OBJECT_PORT && i < stub->port_count ? stub_id(KIND_PORT, which, i)
                      : kind == SAI_OBJECT_CROSS_CONNECT && i < STUB_JOINS && stub->crosses[i].a
                          ? stub_id(KIND_CROSS, which, i)
                      : kind == SAI_OBJECT_FACTORY_DATA && i < 4 ? stub_id(KIND_FACTORY, which, i)
                                                                 : 0;
        if (id && found++ < room)
            keys[found - 1].id = id;
    }
    *count = found;
    return end_call(found > room ? SAI_BUFFER_OVERFLOW : SAI_OK);
}
