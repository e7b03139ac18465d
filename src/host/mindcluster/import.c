/* import.c - their messages become our Faults. */
#include "host/mindcluster/internal.h"

#include "base/json.h"
#include "base/units.h"

enum {
    ID_MIN = 8,
    ID_MAX = 128,
    CODE_DIGITS = 9,
    TEXT_MAX = 512,
    FAULTS_OUT_MAX = 100000,
    MEMORY_MAX = 64 << 20
};

struct import {
    struct arena *arena;
    struct doc *faults; /* result */
    struct str sender;
    struct error *error;
};

static struct str text_of(const struct doc *object, const char *key)
{
    return doc_str(doc_get(object, key), STR(""));
}

static void set_text(struct arena *arena, struct doc *object, const char *key, struct str text)
{
    if (text.len)
        doc_set(arena, object, str_from(key), doc_new_str(arena, text));
}

struct said {
    struct str machine, code, place, assertion, severity, evidence, time;
    int64_t chip; /* -1: none */
};

static int add(struct import *import, const struct said *said)
{
    struct arena *arena = import->arena;
    struct doc *fault = doc_new(arena, DOC_OBJECT), *spec = doc_new(arena, DOC_OBJECT);
    if (doc_len(import->faults) == FAULTS_OUT_MAX)
        return error_set(import->error, ERROR_LIMIT, "more than %d faults", FAULTS_OUT_MAX);
    set_text(arena, fault, "apiVersion", STR("phalanx.dev/v1"));
    set_text(arena, fault, "kind", STR("Fault"));
    doc_set(arena, fault, STR("metadata"), doc_new(arena, DOC_OBJECT));
    doc_set(arena, fault, STR("spec"), spec);
    set_text(arena, spec, "machine", said->machine);
    set_text(arena, spec, "code", said->code);
    set_text(arena, spec, "place", said->place);
    if (said->chip >= 0)
        doc_set(arena, spec, STR("chip"), doc_new_int(arena, said->chip));
    set_text(arena, spec, "assertion", said->assertion);
    set_text(arena, spec, "severity", said->severity);
    set_text(arena, spec, "evidence", said->evidence);
    set_text(arena, spec, "time", said->time);
    set_text(arena, spec, "sender", import->sender);
    doc_push(arena, import->faults, fault);
    return 0;
}

/* RFC 3339 of milliseconds since 1970; empty: none was said. */
static struct str time_of(struct arena *arena, int64_t ms)
{
    char text[32];
    if (ms <= 0 || ms > INT64_MAX / NS_PER_MS)
        return (struct str){0};
    time_format(ms * NS_PER_MS, text);
    return arena_str(arena, str_from(text));
}

/* For codes that the fault table does not know. */
static struct str severity_of(int level)
{
    return level < 0    ? (struct str){0}
           : level == 0 ? STR("notice")
           : level <= 3 ? STR("minor")
                        : STR("major");
}

/* --- public faults -------------------------------------------------------------------------------------- */

static bool is_printable(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] < ' ' || text.data[i] > '~')
            return false;
    return true;
}

static int wrong(const struct import *import, size_t index, const char *member, const char *why)
{
    return error_set(import->error, ERROR_INVALID, "faults[%zu].%s: %s", index, member, why);
}

/* One Fault for each device of one node, or one for the node. */
static int add_influence(struct import *import, size_t index, const struct doc *place, struct said said)
{
    const struct doc *devices = doc_get(place, "deviceIds");
    struct str id = said.place;
    said.machine = text_of(place, "nodeName");
    if (!said.machine.len)
        return wrong(import, index, "influence",
                     doc_get(place, "nodeSN") ? "serial numbers are not known here: nodeName is needed"
                                              : "nodeName is needed");
    if (doc_len(devices) > MINDCLUSTER_DEVICES_MAX)
        return wrong(import, index, "influence", "at most 32 deviceIds");
    if (doc_len(devices) == 0)
        return add(import, &said);
    for (size_t i = 0; i < doc_len(devices); i++) {
        said.chip = doc_int(doc_at(devices, i), -1);
        if (said.chip < 0 || said.chip > INT32_MAX)
            return wrong(import, index, "influence", "a deviceId is a number that is not negative");
        said.place = arena_printf(import->arena, STR_FORMAT "/%lld", STR_ARG(id), (long long)said.chip);
        int rc = add(import, &said);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int add_public(struct import *import, size_t index, const struct doc *fault, int64_t message_ms)
{
    static const char *const types[] = {"NPU", "Node", "Network", "Storage"};
    static const char *const assertions[] = {"occur", "recover", "once"};
    struct str id = text_of(fault, "faultId"), code = text_of(fault, "faultCode");
    struct str type = text_of(fault, "faultType"), assertion = text_of(fault, "assertion");
    const struct doc *influence = doc_get(fault, "influence");
    bool known = false, asserted = false;
    int64_t number;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        known = known || str_is(type, types[i]);
    for (size_t i = 0; i < sizeof assertions / sizeof *assertions; i++)
        asserted = asserted || str_is(assertion, assertions[i]);
    if (id.len < ID_MIN || id.len > ID_MAX - 16 || !is_printable(id))
        return wrong(import, index, "faultId", "8 to 112 printable characters are needed");
    if (code.len != CODE_DIGITS || !str_to_i64(code, 0, INT64_MAX, &number))
        return wrong(import, index, "faultCode", "nine digits are needed");
    if (!known)
        return wrong(import, index, "faultType", "NPU, Node, Network or Storage is needed");
    if (!asserted)
        return wrong(import, index, "assertion", "occur, recover or once is needed");
    if (text_of(fault, "description").len > TEXT_MAX)
        return wrong(import, index, "description", "at most 512 bytes");
    if (doc_len(influence) == 0 || doc_len(influence) > MINDCLUSTER_INFLUENCE_MAX)
        return wrong(import, index, "influence", "1 to 1000 places are needed");
    struct said said = {.code = arena_printf(import->arena, "public/" STR_FORMAT, STR_ARG(code)),
                        .place = id,
                        .assertion = assertion,
                        .evidence = text_of(fault, "description"),
                        .time = time_of(import->arena, doc_int(doc_get(fault, "faultTime"), message_ms)),
                        .chip = -1};
    for (size_t i = 0; i < doc_len(influence); i++) {
        int rc = add_influence(import, index, doc_at(influence, i), said);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int import_public(struct import *import, const struct doc *message)
{
    const struct doc *faults = doc_get(message, "faults");
    struct str id = text_of(message, "id");
    import->sender = text_of(message, "resource");
    if (id.len < ID_MIN || id.len > ID_MAX)
        return error_set(import->error, ERROR_INVALID, "id: 8 to 128 characters are needed");
    if (!str_is(text_of(message, "version"), "1.0"))
        return error_set(import->error, ERROR_INVALID, "version: \"1.0\" is known");
    if (!import->sender.len || !is_printable(import->sender))
        return error_set(import->error, ERROR_INVALID,
                         "resource: who sends it is needed, in printable ASCII");
    if (doc_len(faults) == 0 || doc_len(faults) > MINDCLUSTER_FAULTS_MAX)
        return error_set(import->error, ERROR_INVALID, "faults: 1 to %d are needed", MINDCLUSTER_FAULTS_MAX);
    for (size_t i = 0; i < doc_len(faults); i++) {
        int rc = add_public(import, i, doc_at(faults, i), doc_int(doc_get(message, "timestamp"), 0));
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* --- device-info and node-info -------------------------------------------------------------------------- */

/* The JSON in a member of a ConfigMap's data; NULL (and said so): it is none. */
static const struct doc *inner(struct import *import, const struct doc *data, const char *key)
{
    struct doc *document;
    struct error why = {0};
    if (json_parse(import->arena, text_of(data, key), &document, &why) == 0)
        return document;
    error_set(import->error, ERROR_INVALID, "data.%s: %s", key, why.text);
    return NULL;
}

/* "Ascend910-3" -> 3; -1: it ends in no number. */
static int64_t number_behind(struct str name)
{
    size_t at = name.len;
    int64_t number;
    while (at > 0 && name.data[at - 1] >= '0' && name.data[at - 1] <= '9')
        at--;
    return str_to_i64((struct str){name.data + at, name.len - at}, 0, INT32_MAX, &number) ? number : -1;
}

static int add_codes(struct import *import, struct str codes, struct said said, const struct doc *levels,
                     int level)
{
    while (codes.len) {
        struct str code = codes, rest = {0};
        str_cut(codes, ',', &code, &rest);
        codes = rest;
        code = str_trim(code);
        if (!code.len)
            continue;
        const struct doc *own = doc_get_str(levels, code);
        int named = own ? level_of_chip(text_of(own, "fault_level")) : level;
        said.code = code_in(import->arena, code);
        said.severity = severity_of(named < 0 ? level : named);
        said.time = time_of(import->arena, doc_int(doc_get(own, "fault_time"), 0) * 1000);
        if (!said.code.len)
            return error_set(import->error, ERROR_INVALID, "\"%.*s\" is no code of a fault",
                             (int)(code.len < 60 ? code.len : 60), code.data);
        int rc = add(import, &said);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int add_device_faults(struct import *import, struct str machine, struct str list)
{
    struct doc *faults;
    struct error why = {0};
    if (json_parse(import->arena, list, &faults, &why) < 0)
        return error_set(import->error, ERROR_INVALID, "data.DeviceInfoCfg: the list of faults: %s",
                         why.text);
    for (size_t i = 0; i < doc_len(faults); i++) {
        const struct doc *fault = doc_at(faults, i);
        struct str npu = text_of(fault, "npu_name");
        struct said said = {.machine = machine,
                            .place =
                                npu.len ? arena_printf(import->arena, "npu/" STR_FORMAT, STR_ARG(npu)) : npu,
                            .assertion = STR("occur"),
                            .evidence = text_of(fault, "fault_handling"),
                            .chip = npu.len ? number_behind(npu) : -1};
        int rc =
            add_codes(import, text_of(fault, "fault_code"), said, doc_get(fault, "fault_time_and_level_map"),
                      level_of_chip(text_of(fault, "fault_level")));
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The name behind "mindx-dl-deviceinfo-". */
static struct str machine_of(const struct doc *map, const char *prefix)
{
    struct str name = doc_str(doc_path(map, "metadata", "name", NULL), STR("")), begin = str_from(prefix);
    return str_starts(name, begin) ? (struct str){name.data + begin.len, name.len - begin.len}
                                   : (struct str){0};
}

static int import_devices(struct import *import, const struct doc *map, const struct doc *data)
{
    const struct doc *cfg = inner(import, data, "DeviceInfoCfg");
    struct str machine = machine_of(map, "mindx-dl-deviceinfo-");
    const struct doc *list = doc_path(cfg, "DeviceInfo", "DeviceList", NULL);
    if (!cfg)
        return ERROR_INVALID;
    if (!machine.len || !list || list->kind != DOC_OBJECT)
        return error_set(import->error, ERROR_INVALID,
                         "a name like mindx-dl-deviceinfo-NODE and DeviceInfo.DeviceList are needed");
    import->sender = STR("device-plugin");
    for (size_t i = 0; i < list->object.len; i++) {
        const struct doc_member *member = &list->object.members[i];
        int rc = str_ends(member->key, STR("-Fault"))
                     ? add_device_faults(import, machine, doc_str(member->value, STR("")))
                     : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int import_node(struct import *import, const struct doc *map, const struct doc *data)
{
    const struct doc *info = inner(import, data, "NodeInfo");
    struct str machine = machine_of(map, "mindx-dl-nodeinfo-");
    if (!info)
        return ERROR_INVALID;
    if (doc_get(info, "NodeInfo"))
        info = doc_get(info, "NodeInfo");
    if (!machine.len)
        return error_set(import->error, ERROR_INVALID, "a name like mindx-dl-nodeinfo-NODE is needed");
    import->sender = STR("noded");
    const struct doc *devices = doc_get(info, "FaultDevList");
    for (size_t i = 0; i < doc_len(devices); i++) {
        const struct doc *device = doc_at(devices, i), *codes = doc_get(device, "FaultCode");
        struct said said = {.machine = machine,
                            .place = arena_printf(import->arena, STR_FORMAT "/%lld",
                                                  STR_ARG(text_of(device, "DeviceType")),
                                                  (long long)doc_int(doc_get(device, "DeviceId"), 0)),
                            .assertion = STR("occur"),
                            .chip = -1};
        for (size_t k = 0; k < doc_len(codes); k++) {
            int rc = add_codes(import, doc_str(doc_at(codes, k), STR("")), said, NULL,
                               level_of_node(text_of(device, "FaultLevel")));
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

int mindcluster_import(struct arena *arena, const struct doc *object, struct doc **ret_faults,
                       struct error *error)
{
    struct import import = {.arena = arena, .faults = doc_new(arena, DOC_ARRAY), .error = error};
    const struct doc *data = doc_get(object, "data");
    size_t limit_bytes = arena->limit_bytes;
    int rc;
    arena->limit_bytes = arena->used_bytes + MEMORY_MAX; /* of the JSON in texts */
    if (doc_get(object, "faults")) {
        rc = import_public(&import, object);
    } else if (doc_get(data, "PublicFault")) {
        const struct doc *message = inner(&import, data, "PublicFault");
        rc = message ? import_public(&import, message) : ERROR_INVALID;
    } else if (doc_get(data, "DeviceInfoCfg")) {
        rc = import_devices(&import, object, data);
    } else if (doc_get(data, "NodeInfo")) {
        rc = import_node(&import, object, data);
    } else {
        rc = error_set(
            error, ERROR_UNSUPPORTED,
            "a public-fault message, or a ConfigMap with PublicFault, DeviceInfoCfg or NodeInfo, is "
            "wanted");
    }
    arena->limit_bytes = limit_bytes;
    if (rc == 0)
        *ret_faults = import.faults;
    return rc;
}
