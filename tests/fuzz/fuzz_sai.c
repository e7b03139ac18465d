/* Answers of a vendor's SAI library to the driver `sai`: a model library behind its own tables of functions,
 * whose answers are replaced by lies that the input has. The dynamic loader is stood in for; the driver and
 * what it knows of libraries are the real ones.
 *
 *     ADDRESS '\n'        of the switch: LIBRARY?HARDWARE&NAME=VALUE...; settings are those of stub_sai.c
 *     u8 terms            bits 0 to 2 and 3 to 5: expected A and B ports (side_sizes); 6: mirrors get time
 *     u8 missing          bits: functions that the library's tables lack
 *     u8 honest           answers before the first that may be a lie; 255: all until the switch is open
 *     u8 count, deeds     calls of the driver, with their arguments
 *     lies                a byte for each answer: below 128 or no more bytes: the truth
 *
 * Properties: no crash; the library is left after each call; a failed call has a message and leaves its
 * results alone; each member of a batch has an end, which is a success only if the library says so; lists are
 * partial permutations of the switch's ports, and while the library tells the truth they are what the
 * statuses of batches say. */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "host/fabric/internal.h"
#include "host/fabric/sai_session.h"

static void *open_model(const char *path);
static void *find_in_model(const char *name);
#define dlopen(path, flags)   open_model(path)
#define dlsym(handle, symbol) find_in_model(symbol)
#define dlclose(handle)       ((void)(handle))
#define dlerror()             "no such library"
#include "host/fabric/sai_library.c"
#include "host/fabric/stub_sai.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    size_t left;
};

static uint64_t take(struct input *input, uint32_t count)
{
    uint64_t value = 0;
    for (; count > 0 && input->left > 0; count--, input->left--)
        value = value << 8 | *input->data++;
    return value;
}

enum { SIDE_SIZES = 8, MEMBERS_MAX = 8, CLAIMS_MAX = 256, HONEST_UNTIL_OPEN = 255 };
static const uint32_t side_sizes[SIDE_SIZES] = {6, 0, 2, 8, 4, 64, 640, 641};

static struct {
    struct input deeds, lies;
    uint32_t honest;                      /* answers that are no lies yet */
    bool lied;                            /* an answer was no truth */
    struct stub_cross claims[CLAIMS_MAX]; /* pairs that the library said are joined, in this batch */
    uint32_t claim_count;
    struct sai_switch_table switches;
    struct sai_ocs_table ocs;
} bed;

/* --- lies ------------------------------------------------------------------------------------------- */

/* The next lie's kind; 0: the truth. */
static uint32_t take_lie(void)
{
    if (bed.honest > 0)
        return bed.honest--, 0;
    uint32_t kind = (uint32_t)take(&bed.lies, 1);
    bed.lied |= kind >= 128;
    return kind >= 128 ? kind : 0;
}

static sai_status say_status(sai_status truth)
{
    static const sai_status usual[] = {SAI_OK,
                                       SAI_FAILURE,
                                       SAI_NOT_SUPPORTED,
                                       SAI_INVALID_PARAMETER,
                                       SAI_ALREADY_EXISTS,
                                       SAI_NOT_FOUND,
                                       SAI_BUFFER_OVERFLOW,
                                       SAI_UNINITIALIZED,
                                       SAI_NOT_IMPLEMENTED,
                                       SAI_INVALID_OBJECT,
                                       SAI_NOT_EXECUTED,
                                       -SAI_BASE_NOT_IMPLEMENTED,
                                       1};
    uint32_t kind = take_lie();
    if (kind == 0)
        return truth;
    return kind < 224 ? usual[kind % (sizeof usual / sizeof *usual)] : (sai_status)take(&bed.lies, 4);
}

/* The id of some object of the switch that may be there, or any number. */
static sai_id say_id(sai_id truth)
{
    uint32_t kind = take_lie();
    if (kind == 0)
        return truth;
    return kind < 240 ? stub_id(KIND_SWITCH + kind % 4, 0, take(&bed.lies, 1)) : take(&bed.lies, 8);
}

/* A list gets at most as many elements as there is room for; its count says anything. */
static void say_list(struct sai_attribute *attribute, uint32_t room, uint32_t element_bytes)
{
    uint32_t kind = take_lie();
    if (kind == 0)
        return;
    uint32_t count = (uint32_t)take(&bed.lies, 1) % (room + 1);
    for (uint32_t i = 0; i < count * element_bytes; i++)
        ((uint8_t *)attribute->list.at)[i] = (uint8_t)take(&bed.lies, 1);
    attribute->list.count = kind < 224 ? count : (uint32_t)take(&bed.lies, 4);
    if (kind >= 250)
        attribute->list.at = NULL;
}

static void say_number(struct sai_attribute *attribute)
{
    uint32_t kind = take_lie();
    if (kind != 0)
        attribute->id = kind < 224 ? take(&bed.lies, 1) : take(&bed.lies, 8);
}

/* --- a library that lies ---------------------------------------------------------------------------- */

static void claim(sai_id a, sai_id b)
{
    if (bed.claim_count < CLAIMS_MAX)
        bed.claims[bed.claim_count++] = (struct stub_cross){a, b};
}

static bool is_claimed(sai_id a, sai_id b)
{
    for (uint32_t i = 0; i < bed.claim_count; i++)
        if ((bed.claims[i].a == a && bed.claims[i].b == b) || (bed.claims[i].a == b && bed.claims[i].b == a))
            return true;
    return bed.claim_count == CLAIMS_MAX;
}

static bool is_known(sai_id id, uint64_t kind)
{
    uint64_t which = id >> 16 & 0xffff, index = index_of(id);
    if (id >> 32 != kind || which >= STUB_SWITCHES || !stubs[which].in_use)
        return false;
    return index < (kind == KIND_SWITCH ? 1u
                    : kind == KIND_PORT ? stubs[which].port_count
                                        : (kind == KIND_CROSS ? (uint32_t)STUB_JOINS : 4u));
}

static sai_status tell_port(sai_id id, uint32_t count, struct sai_attribute *attributes)
{
    CHECK(called && count == 1);
    uint32_t room = attributes[0].list.count;
    sai_status status = is_known(id, KIND_PORT) ? get_port(id, count, attributes) : SAI_INVALID_OBJECT;
    if (attributes[0].number == SAI_PORT_NAME)
        say_list(&attributes[0], room, 1);
    else
        say_number(&attributes[0]);
    return say_status(status);
}

static sai_status tell_factory(sai_id id, uint32_t count, struct sai_attribute *attributes)
{
    CHECK(called && count == 1);
    uint32_t room = attributes[0].list.count;
    sai_status status = is_known(id, KIND_FACTORY) ? get_factory(id, count, attributes) : SAI_INVALID_OBJECT;
    say_list(&attributes[0], room, attributes[0].number <= SAI_FACTORY_B ? 1 : 4);
    return say_status(status);
}

static sai_status tell_cross(sai_id id, uint32_t count, struct sai_attribute *attributes)
{
    CHECK(called && count == 2);
    sai_status status = is_known(id, KIND_CROSS) ? get_cross(id, count, attributes) : SAI_INVALID_OBJECT;
    for (uint32_t i = 0; i < count; i++)
        attributes[i].id = say_id(attributes[i].id);
    status = say_status(status);
    if (status == SAI_OK)
        claim(attributes[0].id, attributes[1].id);
    return status;
}

static sai_status tell_switch(sai_id id, uint32_t count, struct sai_attribute *attributes)
{
    CHECK(called && count == 1);
    sai_status status = get_switch(id, count, attributes);
    say_number(&attributes[0]);
    return say_status(status);
}

static sai_status take_port(sai_id id, const struct sai_attribute *attribute)
{
    CHECK(called);
    return say_status(is_known(id, KIND_PORT) ? set_port(id, attribute) : SAI_INVALID_OBJECT);
}

static sai_status make_port(sai_id *ret_id, sai_id device, uint32_t count,
                            const struct sai_attribute *attributes)
{
    CHECK(called && count == 2);
    sai_status status =
        is_known(device, KIND_SWITCH) ? create_port(ret_id, device, count, attributes) : SAI_INVALID_OBJECT;
    *ret_id = say_id(*ret_id);
    return say_status(status);
}

static sai_status make_cross(sai_id *ret_id, sai_id device, uint32_t count,
                             const struct sai_attribute *attributes)
{
    CHECK(called && count == 2);
    sai_id ports[2] = {attributes[0].id, attributes[1].id};
    bool known = is_known(device, KIND_SWITCH) && is_known(ports[0], KIND_PORT) &&
                 is_known(ports[1], KIND_PORT) && switch_of(ports[0]) == switch_of(ports[1]);
    sai_status status = known ? create_cross(ret_id, device, count, attributes) : SAI_INVALID_PARAMETER;
    for (uint32_t i = 0; known && i < 2; i++) /* mirrors of the model move at once */
        switch_of(ports[i])->ports[index_of(ports[i])].looks = 0;
    *ret_id = say_id(*ret_id);
    status = say_status(status);
    if (status == SAI_OK && *ret_id)
        claim(ports[0], ports[1]);
    return status;
}

static sai_status drop_cross(sai_id id)
{
    CHECK(called);
    return say_status(is_known(id, KIND_CROSS) ? remove_cross(id) : SAI_INVALID_OBJECT);
}

/* The number of members that a bulk call treats: the others' statuses stay as they are. */
static uint32_t treated(uint32_t members)
{
    return take_lie() == 0 ? members : (uint32_t)take(&bed.lies, 1) % (members + 1);
}

static sai_status make_crosses(sai_id device, uint32_t members, const uint32_t *counts,
                               const struct sai_attribute **attributes, enum sai_bulk_mode mode,
                               sai_id *ret_ids, sai_status *ret_statuses)
{
    sai_status whole = SAI_OK;
    CHECK(called && members > 0 && mode == SAI_BULK_GO_ON);
    uint32_t count = treated(members);
    for (uint32_t i = 0; i < count; i++) {
        ret_statuses[i] = make_cross(&ret_ids[i], device, counts[i], attributes[i]);
        whole = ret_statuses[i] == SAI_OK ? whole : SAI_FAILURE;
    }
    return say_status(whole);
}

static sai_status drop_crosses(uint32_t members, const sai_id *ids, enum sai_bulk_mode mode,
                               sai_status *ret_statuses)
{
    sai_status whole = SAI_OK;
    CHECK(called && members > 0 && mode == SAI_BULK_GO_ON);
    uint32_t count = treated(members);
    for (uint32_t i = 0; i < count; i++) {
        ret_statuses[i] = drop_cross(ids[i]);
        whole = ret_statuses[i] == SAI_OK ? whole : SAI_FAILURE;
    }
    return say_status(whole);
}

static sai_status make_switch(sai_id *ret_device, uint32_t count, const struct sai_attribute *attributes)
{
    CHECK(called && count >= 1 && count <= 3);
    sai_status status = create_switch(ret_device, count, attributes);
    *ret_device = say_id(*ret_device);
    return say_status(status);
}

/* --- the library's symbols -------------------------------------------------------------------------- */

/* Asks for all settings, one after the other, as libraries do. */
static sai_status begin_library(uint64_t flags, const struct sai_services *services)
{
    const char *name = NULL, *value = NULL;
    uint32_t count = 0;
    CHECK(called);
    while (services->next(0, &name, &value) == 0) {
        CHECK(name[0] && value && services->value(0, name));
        CHECK(++count < SAI_ADDRESS_MAX); /* an endless list keeps the library */
    }
    CHECK(services->next(1 + take_lie(), &name, &value) == -1);
    CHECK(services->next(0, NULL, &value) == -1 && !services->value(0, NULL) && !services->value(0, ""));
    return say_status(sai_api_initialize(flags, services));
}

static sai_status find_table(int32_t number, void **ret_table)
{
    CHECK(called);
    sai_status status = host ? sai_api_query(number, ret_table) : SAI_UNINITIALIZED;
    if (status == SAI_OK && *ret_table)
        *ret_table = number == SAI_TABLE_SWITCH ? (void *)&bed.switches : (void *)&bed.ocs;
    if (take_lie() != 0)
        *ret_table = NULL;
    return say_status(status);
}

static sai_status list_keys(sai_id device, int32_t kind, uint32_t *count, union sai_key *keys)
{
    CHECK(called);
    uint32_t room = *count;
    sai_status status =
        is_known(device, KIND_SWITCH) ? sai_get_object_key(device, kind, count, keys) : SAI_INVALID_OBJECT;
    uint32_t lie = take_lie();
    if (lie != 0) {
        uint32_t filled = (uint32_t)take(&bed.lies, 1) % 16;
        filled = filled < room ? filled : room;
        for (uint32_t i = 0; i < filled; i++)
            keys[i].id = say_id(keys[i].id);
        *count = lie < 232 ? filled : (uint32_t)take(&bed.lies, 4);
    }
    return say_status(status);
}

static void *open_model(const char *path)
{
    return path[0] == '!' ? NULL : &bed;
}

static void *find_in_model(const char *name)
{
    return strcmp(name, "sai_api_initialize") == 0 ? (void *)begin_library
           : strcmp(name, "sai_api_query") == 0    ? (void *)find_table
                                                   : (void *)list_keys;
}

static void fill_tables(uint32_t missing)
{
    bed.switches =
        (struct sai_switch_table){.create = make_switch, .get = missing & 128 ? NULL : tell_switch};
    bed.ocs = (struct sai_ocs_table){
        .create_port = missing & 1 ? NULL : make_port,
        .set_port = missing & 2 ? NULL : take_port,
        .get_port = tell_port,
        .create_cross_connect = missing & 4 ? NULL : make_cross,
        .remove_cross_connect = missing & 8 ? NULL : drop_cross,
        .get_cross_connect = tell_cross,
        .create_cross_connects = missing & 16 ? NULL : make_crosses,
        .remove_cross_connects = missing & 32 ? NULL : drop_crosses,
        .get_factory_data = missing & 64 ? NULL : tell_factory,
    };
}

/* --- deeds ------------------------------------------------------------------------------------------ */

static void check_end(int rc, const struct phx_switch_error *error)
{
    CHECK(!called && rc <= PHX_SWITCH_OK && rc >= PHX_SWITCH_GARBLED && rc != PHX_SWITCH_NOT_TRIED);
    if (rc == PHX_SWITCH_OK)
        return;
    size_t length = strnlen(error->message, sizeof error->message);
    CHECK(error->status == rc && length > 0 && length < sizeof error->message);
    CHECK(!memchr(error->message, '\n', length));
}

/* Results of a failed call are as they were. */
static bool is_untouched(const void *result, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (((const uint8_t *)result)[i] != 0x5a)
            return false;
    return true;
}

static void list_pairs(struct phx_switch *sw, uint32_t capacity)
{
    struct phx_crossconnect pairs[MEMBERS_MAX];
    bool taken[PHX_SWITCH_PORTS_MAX + 1] = {false};
    struct phx_switch_error error;
    uint32_t count = 7777;
    memset(pairs, 0x5a, sizeof pairs);
    int rc = driver_sai.list(sw, pairs, capacity, &count, &error);
    check_end(rc, &error);
    if (rc < 0) {
        CHECK(is_untouched(pairs, sizeof pairs) && count == 7777);
        return;
    }
    CHECK(count <= capacity);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(batch_pair_is_possible(sw->size, pairs[i]) && !taken[pairs[i].b]);
        CHECK(i == 0 || pairs[i - 1].a < pairs[i].a);
        taken[pairs[i].b] = true;
    }
}

static void identify(struct phx_switch *sw)
{
    struct phx_switch_identity identity;
    struct phx_switch_error error;
    int rc = driver_sai.identify(sw, &identity, &error);
    check_end(rc, &error);
    CHECK(rc < 0 || (strnlen(identity.firmware, sizeof identity.firmware) < sizeof identity.firmware &&
                     identity.a_ports >= 1 && identity.b_ports >= 1 &&
                     identity.a_ports + identity.b_ports <= PHX_SWITCH_PORTS_MAX));
}

static void look_at_ports(struct phx_switch *sw, uint32_t first, uint32_t count)
{
    struct phx_switch_port ports[MEMBERS_MAX];
    struct phx_switch_error error;
    memset(ports, 0x5a, sizeof ports);
    int rc = driver_sai.ports(sw, first, count, ports, &error);
    check_end(rc, &error);
    CHECK(rc == PHX_SWITCH_OK || is_untouched(ports, sizeof ports));
    CHECK((first >= 1 && first + count <= sw->size.a_ports + sw->size.b_ports + 1) ||
          rc == PHX_SWITCH_INVALID);
    for (uint32_t i = 0; rc == PHX_SWITCH_OK && i < count; i++) {
        bool is_a = ports[i].port <= sw->size.a_ports;
        struct phx_crossconnect pair = {is_a ? ports[i].port : ports[i].peer,
                                        is_a ? ports[i].peer : ports[i].port};
        CHECK(ports[i].port == first + i && ports[i].state <= PHX_PORT_FAILED);
        CHECK(!ports[i].peer || batch_pair_is_possible(sw->size, pair));
    }
}

static void read_losses(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count)
{
    struct phx_switch_loss losses[MEMBERS_MAX];
    struct phx_switch_error error;
    memset(losses, 0x5a, sizeof losses);
    int rc = driver_sai.loss(sw, pairs, count, (uint32_t)take(&bed.deeds, 3), losses, &error);
    check_end(rc, &error);
    CHECK(rc == PHX_SWITCH_OK || is_untouched(losses, sizeof losses));
    for (uint32_t i = 0; rc == PHX_SWITCH_OK && i < count; i++)
        CHECK(losses[i].a == pairs[i].a && losses[i].b == pairs[i].b);
}

/* Cross-connects of the model, by A port. */
static void read_model(const struct phx_switch *sw, uint32_t peers[PHX_SWITCH_PORTS_MAX + 1])
{
    memset(peers, 0, (PHX_SWITCH_PORTS_MAX + 1) * sizeof *peers);
    for (uint32_t a = 1; a <= sw->size.a_ports; a++)
        for (uint32_t b = sw->size.a_ports + 1; b <= sw->size.a_ports + sw->size.b_ports; b++) {
            struct stub_cross *cross = cross_with(&stubs[0], sw->ports[a]);
            if (cross && (cross->a == sw->ports[b] || cross->b == sw->ports[b]))
                peers[a] = b;
        }
}

/* Whether the pair is a member of the batch that ended well. */
static bool is_done(const struct phx_crossconnect *pairs, const int *statuses, uint32_t count,
                    struct phx_crossconnect pair)
{
    for (uint32_t i = 0; i < count; i++)
        if (pairs[i].a == pair.a && pairs[i].b == pair.b && statuses[i] == PHX_SWITCH_OK)
            return true;
    return false;
}

enum batch { BATCH_SAFE, BATCH_STEAL, BATCH_REMOVE };

/* The cross-connects of an honest library, before and after a batch, are those that the statuses tell. */
static void check_truth(const struct phx_switch *sw, enum batch batch, const struct phx_crossconnect *pairs,
                        const int *statuses, uint32_t count, const uint32_t *before)
{
    uint32_t after[PHX_SWITCH_PORTS_MAX + 1];
    read_model(sw, after);
    for (uint32_t i = 0; i < count; i++)
        CHECK(statuses[i] < 0 || (after[pairs[i].a] == pairs[i].b) == (batch != BATCH_REMOVE));
    for (uint32_t a = 1; a <= sw->size.a_ports; a++) {
        struct phx_crossconnect old = {a, before[a]}, fresh = {a, after[a]};
        if (before[a] == after[a])
            continue;
        CHECK(!after[a] || (batch != BATCH_REMOVE && is_done(pairs, statuses, count, fresh)));
        CHECK(!before[a] || batch == BATCH_STEAL ||
              (batch == BATCH_REMOVE && is_done(pairs, statuses, count, old)));
    }
}

static void change_pairs(struct phx_switch *sw, enum batch batch, const struct phx_crossconnect *pairs,
                         uint32_t count)
{
    uint32_t before[PHX_SWITCH_PORTS_MAX + 1];
    struct phx_switch_error error;
    int statuses[MEMBERS_MAX];
    bool faulty = bed.lied || stubs[0].fault[0];
    bed.claim_count = 0;
    if (!faulty)
        read_model(sw, before);
    int rc = batch == BATCH_REMOVE ? driver_sai.remove(sw, pairs, count, statuses, &error)
                                   : driver_sai.add(sw, pairs, count, (int)batch, statuses, &error);
    check_end(rc, &error);
    for (uint32_t i = 0; i < count; i++)
        CHECK(statuses[i] <= PHX_SWITCH_OK && statuses[i] >= PHX_SWITCH_GARBLED &&
              statuses[i] != PHX_SWITCH_NOT_TRIED);
    for (uint32_t i = 0; i < count && batch != BATCH_REMOVE; i++)
        CHECK(statuses[i] < 0 || is_claimed(sw->ports[pairs[i].a], sw->ports[pairs[i].b]));
    if (faulty || bed.lied)
        return;
    CHECK(rc == PHX_SWITCH_OK);
    check_truth(sw, batch, pairs, statuses, count, before);
}

static void close_shutters(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count,
                           uint8_t closed)
{
    uint32_t ports[MEMBERS_MAX];
    struct phx_switch_error error;
    for (uint32_t i = 0; i < count; i++)
        ports[i] = i % 2 ? pairs[i].a : pairs[i].b;
    check_end(driver_sai.shutter(sw, ports, count, closed, &error), &error);
}

/* A deed with the pairs that it concerns: a byte each, both ports counted from 1 on their sides, so that some
 * are none. */
static void do_deed(struct phx_switch *sw, uint32_t deed)
{
    struct phx_crossconnect pairs[MEMBERS_MAX];
    uint32_t count = deed / 8 % (MEMBERS_MAX + 1), first = (uint32_t)take(&bed.deeds, 1);
    for (uint32_t i = 0; i < count && deed % 8 >= 3; i++) {
        uint32_t ends = (uint32_t)take(&bed.deeds, 1);
        pairs[i] = (struct phx_crossconnect){ends >> 4, sw->size.a_ports + (ends & 15)};
    }
    switch (deed % 8) {
    case 0:
        list_pairs(sw, count);
        break;
    case 1:
        identify(sw);
        break;
    case 2:
        look_at_ports(sw, first, count);
        break;
    case 3:
        read_losses(sw, pairs, count);
        break;
    case 4:
        close_shutters(sw, pairs, count, first & 1);
        break;
    default:
        change_pairs(sw, deed % 8 - 5, pairs, count);
    }
}

/* --- an input --------------------------------------------------------------------------------------- */

static void forget_libraries(void)
{
    for (struct sai_library *library = registry, *next; library; library = next) {
        for (struct sai_device *device = library->devices, *other; device; device = other) {
            other = device->next;
            mem_free(device);
        }
        next = library->next;
        pthread_mutex_destroy(&library->busy);
        mem_free(library);
    }
    registry = NULL;
    memset(stubs, 0, sizeof stubs);
    host = NULL;
    initialised = 0;
}

static void use_switch(const struct phx_switch_config *config, uint32_t honest)
{
    bed.honest = honest == HONEST_UNTIL_OPEN ? UINT32_MAX : honest;
    struct phx_switch *sw = NULL;
    struct phx_switch_error error;
    for (uint32_t opens = 0; opens < 2; opens++) { /* the second session finds what the first has left */
        int rc = driver_sai.open(config, &sw, &error);
        check_end(rc, &error);
        if (rc < 0)
            continue;
        CHECK(sw->size.a_ports + sw->size.b_ports <= PHX_SWITCH_PORTS_MAX);
        bed.honest = honest == HONEST_UNTIL_OPEN ? 0 : bed.honest;
        for (uint32_t deeds = 0; bed.deeds.left > 0 && deeds < 16; deeds++)
            do_deed(sw, (uint32_t)take(&bed.deeds, 1));
        driver_sai.close(sw);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char address[SAI_ADDRESS_MAX + 8];
    const uint8_t *end = memchr(data, '\n', size);
    if (!end || (size_t)(end - data) >= sizeof address)
        return 0;
    size_t length = (size_t)(end - data);
    memcpy(address, data, length);
    address[length] = 0;
    struct input rest = {end + 1, size - length - 1};
    uint32_t terms = (uint32_t)take(&rest, 1), missing = (uint32_t)take(&rest, 1);
    uint32_t honest = (uint32_t)take(&rest, 1);
    size_t deeds = take(&rest, 1);
    deeds = deeds < rest.left ? deeds : rest.left;
    bed.deeds = (struct input){rest.data, deeds};
    bed.lies = (struct input){rest.data + deeds, rest.left - deeds};
    bed.lied = false;
    fill_tables(missing);
    struct phx_switch_config config = {.address = address,
                                       .timeout_ms = terms >> 6 & 1,
                                       .a_ports = side_sizes[terms & 7],
                                       .b_ports = side_sizes[terms >> 3 & 7]};
    use_switch(&config, honest);
    forget_libraries();
    return 0;
}
