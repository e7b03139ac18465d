/* import.c - makes our Faults from MindCluster's messages. */
#include "host/mindcluster/internal.h"

#include "doc/json.h"
#include "base/units.h"

enum {
    ID_MIN = 8,
    ID_MAX = 128,
    CODE_DIGITS = 9,
    TEXT_MAX = 512,
    PLACE_MAX = 127, /* of a Fault */
    RANKS_NAMED_MAX = 16,
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

/* Formats milliseconds since 1970 as RFC 3339; empty if there is no time. */
static struct str time_of(struct arena *arena, int64_t ms)
{
    char text[32];
    if (ms <= 0 || ms > INT64_MAX / NS_PER_MS)
        return (struct str){0};
    time_format(ms * NS_PER_MS, text);
    return arena_str(arena, str_from(text));
}

static struct str time_of_seconds(struct arena *arena, const struct doc *member)
{
    int64_t seconds = doc_int(member, 0);
    return time_of(arena, seconds < 0 || seconds > INT64_MAX / 1000 ? 0 : seconds * 1000);
}

static bool is_one_of(struct str text, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(text, names[i]))
            return true;
    return false;
}

/* Returns the severity for codes that the fault table does not have. */
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

/* Adds a Fault for each device of one node, or one for the node. */
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
    int64_t number;
    if (id.len < ID_MIN || id.len > ID_MAX - 16 || !is_printable(id))
        return wrong(import, index, "faultId", "8 to 112 printable characters are needed");
    if (code.len != CODE_DIGITS || !str_to_i64(code, 0, INT64_MAX, &number))
        return wrong(import, index, "faultCode", "nine digits are needed");
    if (!is_one_of(type, types, sizeof types / sizeof *types))
        return wrong(import, index, "faultType", "NPU, Node, Network or Storage is needed");
    if (!is_one_of(assertion, assertions, sizeof assertions / sizeof *assertions))
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
                         "resource: expected the sender, in printable ASCII");
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

/* Returns the number at the end of a name ("Ascend910-3": 3), or -1 if there is none. */
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
        said.time = time_of_seconds(import->arena, doc_get(own, "fault_time"));
        if (!said.code.len)
            return error_set(import->error, ERROR_INVALID, "\"%.*s\" is not a fault code",
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

static int import_devices(struct import *import, const struct doc *map, const struct doc *data)
{
    const struct doc *cfg = data_inner(import->arena, data, "DeviceInfoCfg", import->error);
    struct str machine = name_behind(map, "mindx-dl-deviceinfo-");
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
    const struct doc *info = data_inner(import->arena, data, "NodeInfo", import->error);
    struct str machine = name_behind(map, "mindx-dl-nodeinfo-");
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

/* --- reset.json ----------------------------------------------------------------------------------------- */

struct reset {
    struct import import;
    const struct mindcluster_view *view;
    struct str job;
    seat_list seats;   /* by rank */
    bool *listed;      /* by rank */
    struct str time;   /* when it was written */
    struct buf absent; /* ranks that do not exist, for the message */
    size_t absent_count;
};

static int wrong_rank(struct reset *reset, size_t index, const char *member, const char *why)
{
    return error_set(reset->import.error, ERROR_INVALID, "RankList[%zu].%s: %s", index, member, why);
}

/* Returns whether the member is of the wanted kind, or absent if it may be. */
static bool is_kind(const struct doc *object, const char *key, enum doc_kind kind, bool needed)
{
    const struct doc *member = doc_get(object, key);
    return member ? member->kind == kind : !needed;
}

static int check_entry(struct reset *reset, size_t index, const struct doc *entry)
{
    static const char *const states[] = {"unrecovered", "recovered", "failed"};
    const struct doc *codes = doc_get(entry, "ErrorCode");
    int64_t rank = doc_int(doc_get(entry, "RankId"), -1);
    if (!entry || entry->kind != DOC_OBJECT)
        return error_set(reset->import.error, ERROR_INVALID, "RankList[%zu]: an object is needed", index);
    if (!is_kind(entry, "RankId", DOC_INT, true) || rank < 0 || rank > INT32_MAX)
        return wrong_rank(reset, index, "RankId", "a number that is not negative is needed");
    if (!is_kind(entry, "LogicId", DOC_INT, false))
        return wrong_rank(reset, index, "LogicId", "a number is needed");
    if (!is_one_of(text_of(entry, "Status"), states, sizeof states / sizeof *states))
        return wrong_rank(reset, index, "Status", "unrecovered, recovered or failed is needed");
    if (level_of_policy(text_of(entry, "Policy")) < 0)
        return wrong_rank(reset, index, "Policy",
                          "empty, ignore, restart_request, restart, free_reset, reset or isolate is needed");
    if (doc_get(entry, "InitialPolicy") && level_of_policy(text_of(entry, "InitialPolicy")) < 0)
        return wrong_rank(reset, index, "InitialPolicy", "a policy is needed");
    if (!is_kind(entry, "ErrorCodeHex", DOC_STRING, false))
        return wrong_rank(reset, index, "ErrorCodeHex", "a text is needed");
    if (!is_kind(entry, "ErrorCode", DOC_ARRAY, false))
        return wrong_rank(reset, index, "ErrorCode", "a list is needed");
    for (size_t i = 0; i < doc_len(codes); i++)
        if (doc_at(codes, i)->kind != DOC_INT)
            return wrong_rank(reset, index, "ErrorCode", "a list of numbers is needed");
    return 0;
}

/* Returns the open Fault that an earlier import made for this rank and code, wherever the rank was then. */
static const struct doc *made_before(const struct reset *reset, struct str place, struct str code)
{
    for (size_t i = 0; i < doc_len(reset->view->faults); i++) {
        const struct doc *fault = doc_at(reset->view->faults, i);
        if (fault_is_open(fault) && str_equal(text_at(fault, "spec", "place"), place) &&
            str_equal(text_at(fault, "spec", "code"), code))
            return fault;
    }
    return NULL;
}

/* Returns whether an export would now state this policy for the rank. */
static bool has_policy(const struct reset *reset, const struct seat *seat, struct str policy)
{
    fault_list faults = {0};
    int worst = 0;
    faults_of_machine(reset->view, seat->machine, &faults);
    for (size_t i = 0; i < faults.len; i++) {
        int level = fault_level(faults.items[i]);
        if (fault_strikes(faults.items[i], seat->chip < 0 ? 0 : seat->chip) && level > worst)
            worst = level;
    }
    vec_done(&faults);
    return worst > 0 && str_is(policy, level_names[worst].policy);
}

/* Returns the code of a policy, of the family "reset", with the separator that codes use. */
static struct str code_of_policy(struct arena *arena, struct str policy)
{
    char *name = arena_strdup(arena, policy);
    for (size_t i = 0; i < policy.len; i++)
        name[i] = name[i] == '_' ? '-' : name[i];
    return arena_printf(arena, "reset/%s", name);
}

/* Ends the Fault that an earlier import made for a recovered rank. */
static int end_of(struct reset *reset, const struct doc *made)
{
    struct said said = {.machine = text_at(made, "spec", "machine"),
                        .code = text_at(made, "spec", "code"),
                        .place = text_at(made, "spec", "place"),
                        .assertion = STR("recover"),
                        .time = reset->time,
                        .chip = fault_chip(made)};
    return add(&reset->import, &said);
}

static int end_rank(struct reset *reset, struct str place)
{
    for (int level = 2; level < LEVEL_NAMES - 1; level++) {
        struct str policy = str_from(level_names[level].policy);
        const struct doc *made = level_of_policy(policy) == level /* each policy once */
                                     ? made_before(reset, place, code_of_policy(reset->import.arena, policy))
                                     : NULL;
        int rc = made ? end_of(reset, made) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int add_entry(struct reset *reset, size_t index, const struct doc *entry)
{
    struct arena *arena = reset->import.arena;
    int64_t rank = doc_int(doc_get(entry, "RankId"), -1);
    struct str policy = text_of(entry, "Policy"), hex = text_of(entry, "ErrorCodeHex");
    int level = level_of_policy(policy);
    if (rank >= (int64_t)reset->seats.len) {
        if (reset->absent_count++ < RANKS_NAMED_MAX)
            buf_printf(&reset->absent, "%s%lld", reset->absent.len ? ", " : "", (long long)rank);
        return 0;
    }
    if (reset->listed[rank])
        return wrong_rank(reset, index, "RankId", "the rank is listed twice");
    reset->listed[rank] = true;
    const struct seat *seat = &reset->seats.items[rank];
    struct str space = text_at(seat->pod, "metadata", "namespace");
    struct str place =
        arena_printf(arena, "rank/" STR_FORMAT "/" STR_FORMAT "/%lld",
                     STR_ARG(space.len ? space : STR("default")), STR_ARG(reset->job), (long long)rank);
    if (str_is(text_of(entry, "Status"), "recovered"))
        return end_rank(reset, place);
    struct str code = code_of_policy(arena, policy);
    if (level < 2 || made_before(reset, place, code) || has_policy(reset, seat, policy))
        return 0; /* requires no action, or the rank has the policy */
    if (place.len > PLACE_MAX)
        return error_set(reset->import.error, ERROR_LIMIT, "namespace and job: longer than a place may be");
    if (!seat->machine.len)
        return wrong_rank(reset, index, "RankId", "the Pod of this rank has no machine now");
    struct said said = {.machine = seat->machine,
                        .code = code,
                        .place = place,
                        .assertion = STR("occur"),
                        .severity = severity_of(level),
                        .evidence = hex.len ? arena_printf(arena, "reset.json: " STR_FORMAT,
                                                           STR_ARG(str_head_utf8(hex, TEXT_MAX - 16)))
                                            : STR("reset.json"),
                        .time = reset->time,
                        .chip = seat->chip};
    return add(&reset->import, &said);
}

static int add_ranks(struct reset *reset, const struct doc *object)
{
    static const char *const numbers[] = {"GracefulExit", "UpdateTime", "RetryTime"};
    static const char *const flags[] = {"FaultFlushing", "RestartFaultProcess"};
    const struct doc *list = doc_get(object, "RankList");
    struct error *error = reset->import.error;
    if (!list || list->kind != DOC_ARRAY || doc_len(list) > FAULTS_OUT_MAX)
        return error_set(error, ERROR_INVALID, "RankList: a list of at most %d ranks is needed",
                         FAULTS_OUT_MAX);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!is_kind(object, numbers[i], DOC_INT, false))
            return error_set(error, ERROR_INVALID, "%s: a number is needed", numbers[i]);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (!is_kind(object, flags[i], DOC_BOOL, false))
            return error_set(error, ERROR_INVALID, "%s: true or false is needed", flags[i]);
    reset->time = time_of_seconds(reset->import.arena, doc_get(object, "UpdateTime"));
    for (size_t i = 0; i < doc_len(list); i++) {
        int rc = check_entry(reset, i, doc_at(list, i));
        rc = rc < 0 ? rc : add_entry(reset, i, doc_at(list, i));
        if (rc < 0)
            return rc;
    }
    if (reset->absent_count)
        return error_set(error, ERROR_NOT_FOUND, "RankList: %s has %zu ranks now, and none that is %s%s",
                         reset->job.data, reset->seats.len, reset->absent.data,
                         reset->absent_count > RANKS_NAMED_MAX ? ", ..." : "");
    return 0;
}

int mindcluster_import_reset(struct arena *arena, const struct mindcluster_view *view, struct str job,
                             const struct doc *object, struct doc **ret_faults, struct error *error)
{
    struct reset reset = {.import = {.arena = arena,
                                     .faults = doc_new(arena, DOC_ARRAY),
                                     .sender = STR("clusterd"),
                                     .error = error},
                          .view = view,
                          .job = arena_str(arena, job)};
    size_t limit_bytes = arena->limit_bytes;
    arena->limit_bytes = arena->used_bytes + MEMORY_MAX;
    if (!doc_get(object, "RankList"))
        object = data_inner(arena, doc_get(object, "data"), "reset.json", error);
    seats_of(view, &reset.seats);
    reset.listed = arena_alloc(arena, reset.seats.len + 1);
    int rc = object ? add_ranks(&reset, object) : ERROR_INVALID;
    vec_done(&reset.seats);
    buf_done(&reset.absent);
    arena->limit_bytes = limit_bytes;
    if (rc == 0)
        *ret_faults = reset.import.faults;
    return rc;
}

/* --- all ------------------------------------------------------------------------------------------------ */

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
        const struct doc *message = data_inner(arena, data, "PublicFault", error);
        rc = message ? import_public(&import, message) : ERROR_INVALID;
    } else if (doc_get(data, "DeviceInfoCfg")) {
        rc = import_devices(&import, object, data);
    } else if (doc_get(data, "NodeInfo")) {
        rc = import_node(&import, object, data);
    } else {
        rc = error_set(
            error, ERROR_UNSUPPORTED,
            "expected a public-fault message, or a ConfigMap with PublicFault, DeviceInfoCfg or NodeInfo");
    }
    arena->limit_bytes = limit_bytes;
    if (rc == 0)
        *ret_faults = import.faults;
    return rc;
}
