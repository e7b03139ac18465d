/* export.c - converts documents of our API to MindCluster's objects. Members are in the order of their names
 * if MindCluster writes them from a map, so that a CheckCode over the text is the same. */
#include "host/mindcluster/internal.h"

#include "base/hash.h"
#include "doc/json.h"
#include "base/units.h"
#include "base/vec.h"

static void set_text(struct arena *arena, struct doc *object, const char *key, struct str text)
{
    doc_set(arena, object, str_from(key), doc_new_str(arena, text));
}

static void set_int(struct arena *arena, struct doc *object, const char *key, int64_t value)
{
    doc_set(arena, object, str_from(key), doc_new_int(arena, value));
}

static void set_bool(struct arena *arena, struct doc *object, const char *key, bool value)
{
    doc_set(arena, object, str_from(key), doc_new_bool(arena, value));
}

static struct str json_of(struct arena *arena, const struct doc *document)
{
    struct buf text BUF_CLEANUP = {0};
    json_write(&text, document);
    return arena_str(arena, buf_str(&text));
}

static struct str check_code(struct arena *arena, const struct doc *document)
{
    struct str text = json_of(arena, document);
    uint8_t digest[32];
    char hex[65];
    sha256(text.data, text.len, digest);
    hex_encode(digest, sizeof digest, hex);
    return arena_str(arena, str_from(hex));
}

static struct doc *config_map(struct arena *arena, const char *prefix, struct str name, struct doc **ret_data)
{
    struct doc *map = doc_new(arena, DOC_OBJECT), *metadata = doc_new(arena, DOC_OBJECT);
    set_text(arena, map, "apiVersion", STR("v1"));
    set_text(arena, map, "kind", STR("ConfigMap"));
    doc_set(arena, map, STR("metadata"), metadata);
    set_text(arena, metadata, "name", arena_printf(arena, "%s" STR_FORMAT, prefix, STR_ARG(name)));
    set_text(arena, metadata, "namespace", STR("kube-system"));
    *ret_data = doc_need_object(arena, map, "data");
    return map;
}

/* --- faults --------------------------------------------------------------------------------------------- */

static bool is_public(const struct doc *fault)
{
    return str_is(code_family(text_at(fault, "spec", "code")), "public");
}

/* Returns whether the fault is that of a link to other machines. */
static bool is_network(const struct doc *fault)
{
    static const char *const families[] = {"ib", "eth", "mlx5", "net"};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (str_is(code_family(text_at(fault, "spec", "code")), families[i]))
            return true;
    return false;
}

static int64_t seconds_of(const struct doc *fault, const char *key)
{
    int64_t ns = 0;
    struct str text = text_at(fault, "status", key);
    return text.len && time_parse(text, &ns) ? ns / NS_PER_SECOND : 0;
}

/* --- device-info ---------------------------------------------------------------------------------------- */

static const char *type_of(const struct doc *fault)
{
    if (is_public(fault))
        return "PublicFault";
    return is_network(fault) ? "CardNetworkUnhealthy" : "CardUnhealthy";
}

/* Makes the entry for the faults of one device and one type. */
static struct doc *device_fault(struct arena *arena, const struct mindcluster_view *view,
                                const fault_list *faults, int64_t chip, const char *type)
{
    struct doc *entry = doc_new(arena, DOC_OBJECT), *times = doc_new(arena, DOC_OBJECT);
    struct buf codes BUF_CLEANUP = {0};
    int worst = -1;
    for (size_t i = 0; i < faults->len; i++) {
        const struct doc *fault = faults->items[i];
        if (fault_chip(fault) != chip || strcmp(type_of(fault), type) != 0)
            continue;
        struct str code = code_out(arena, text_at(fault, "spec", "code"));
        struct doc *own = doc_new(arena, DOC_OBJECT);
        int level = fault_level(fault);
        if (doc_get_str(times, code))
            continue; /* the same at another place of the device */
        worst = level > worst ? level : worst;
        buf_printf(&codes, "%s" STR_FORMAT, codes.len ? "," : "", STR_ARG(code));
        set_text(arena, own, "fault_level", str_from(level_names[level].chip));
        set_int(arena, own, "fault_time", seconds_of(fault, "firstSeen"));
        doc_set(arena, times, code, own);
    }
    if (worst < 0)
        return NULL;
    struct str level = str_from(level_names[worst].chip);
    set_text(arena, entry, "fault_code", buf_str(&codes));
    set_text(arena, entry, "fault_handling", level);
    set_text(arena, entry, "fault_level", level);
    doc_set(arena, entry, STR("fault_time_and_level_map"), times);
    set_text(arena, entry, "fault_type", str_from(type));
    set_text(arena, entry, "large_model_fault_level", level);
    set_text(arena, entry, "npu_name", arena_printf(arena, "%s-%lld", view->resource, (long long)chip));
    return entry;
}

static void name_device(struct buf *list, const char *resource, int64_t chip)
{
    buf_printf(list, "%s%s-%lld", list->len ? "," : "", resource, (long long)chip);
}

struct devices {
    struct buf healthy, unhealthy, network, manual;
    struct doc *faults;
};

static void look_at_device(struct arena *arena, const struct mindcluster_view *view, const fault_list *faults,
                           int64_t chip, struct devices *devices)
{
    static const char *const types[] = {"CardUnhealthy", "CardNetworkUnhealthy", "PublicFault"};
    bool card = false, network = false, manual = false;
    for (size_t i = 0; i < faults->len; i++) {
        int level = fault_chip(faults->items[i]) == chip ? fault_level(faults->items[i]) : 0;
        bool counts = level >= 4; /* PreSeparate */
        card = card || (counts && !is_network(faults->items[i]));
        network = network || (counts && is_network(faults->items[i]));
        manual = manual || level == LEVEL_NAMES - 1;
    }
    if (!card && !network)
        name_device(&devices->healthy, view->resource, chip);
    if (card)
        name_device(&devices->unhealthy, view->resource, chip);
    if (network)
        name_device(&devices->network, view->resource, chip);
    if (manual)
        name_device(&devices->manual, view->resource, chip);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        struct doc *entry = device_fault(arena, view, faults, chip, types[t]);
        if (entry)
            doc_push(arena, devices->faults, entry);
    }
}

static struct doc *device_list(struct arena *arena, const struct mindcluster_view *view,
                               const struct devices *devices)
{
    struct doc *list = doc_new(arena, DOC_OBJECT);
    const struct {
        const char *suffix;
        struct str text;
    } members[] = {{"", buf_str(&devices->healthy)},
                   {"-Fault", json_of(arena, devices->faults)},
                   {"-NetworkUnhealthy", buf_str(&devices->network)},
                   {"-Recovering", STR("")},
                   {"-Unhealthy", buf_str(&devices->unhealthy)}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        char *key =
            arena_strdup(arena, arena_printf(arena, "huawei.com/%s%s", view->resource, members[i].suffix));
        set_text(arena, list, key, members[i].text);
    }
    return list;
}

struct doc *mindcluster_device_info(struct arena *arena, const struct mindcluster_view *view,
                                    const struct doc *node)
{
    struct str name = text_at(node, "metadata", "name");
    struct doc *data, *map = config_map(arena, "mindx-dl-deviceinfo-", name, &data);
    struct doc *whole = doc_new(arena, DOC_OBJECT), *info = doc_new(arena, DOC_OBJECT);
    struct devices devices = {.faults = doc_new(arena, DOC_ARRAY)};
    fault_list faults = {0};
    int64_t chips = doc_int(doc_path(node, "status", "phalanx", "chips", NULL), 0);
    faults_of_machine(view, name, &faults);
    for (int64_t chip = 0; chip < chips; chip++)
        look_at_device(arena, view, &faults, chip, &devices);
    doc_set(arena, info, STR("DeviceList"), device_list(arena, view, &devices));
    set_int(arena, info, "UpdateTime", view->now_s);
    set_text(arena, whole, "CheckCode", check_code(arena, info));
    doc_set(arena, whole, STR("DeviceInfo"), info);
    set_text(arena, data, "DeviceInfoCfg", json_of(arena, whole));
    set_text(arena, data, "ManuallySeparateNPU", buf_str(&devices.manual));
    buf_done(&devices.healthy);
    buf_done(&devices.unhealthy);
    buf_done(&devices.network);
    buf_done(&devices.manual);
    vec_done(&faults);
    return map;
}

/* --- node-info ------------------------------------------------------------------------------------------ */

static const char *device_type(struct str family)
{
    static const char *const types[][2] = {
        {"cpu", "CPU"},  {"mce", "CPU"},    {"mem", "Memory"}, {"edac", "Memory"}, {"disk", "Disk"},
        {"fs", "Disk"},  {"mount", "Disk"}, {"nfs", "Disk"},   {"ib", "NIC"},      {"eth", "NIC"},
        {"mlx5", "NIC"}, {"pcie", "PCIe"},  {"fan", "Fan"},    {"psu", "PSU"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (str_is(family, types[i][0]))
            return types[i][1];
    return "Node";
}

struct doc *mindcluster_node_info(struct arena *arena, const struct mindcluster_view *view,
                                  const struct doc *node)
{
    struct str name = text_at(node, "metadata", "name");
    struct str isolation = doc_str(doc_path(node, "status", "phalanx", "isolation", NULL), STR(""));
    struct doc *data, *map = config_map(arena, "mindx-dl-nodeinfo-", name, &data);
    struct doc *whole = doc_new(arena, DOC_OBJECT), *info = doc_new(arena, DOC_OBJECT);
    struct doc *devices = doc_new(arena, DOC_ARRAY);
    fault_list faults = {0};
    faults_of_machine(view, name, &faults);
    for (size_t i = 0; i < faults.len; i++) {
        struct str code = text_at(faults.items[i], "spec", "code");
        struct doc *device = doc_new(arena, DOC_OBJECT), *codes = doc_new(arena, DOC_ARRAY);
        if (fault_chip(faults.items[i]) >= 0)
            continue; /* of a device: device-info has it */
        set_int(arena, device, "DeviceId", 0);
        set_text(arena, device, "DeviceType", str_from(device_type(code_family(code))));
        doc_push(arena, codes, doc_new_str(arena, code_out(arena, code)));
        doc_set(arena, device, STR("FaultCode"), codes);
        set_text(arena, device, "FaultLevel", str_from(level_names[fault_level(faults.items[i])].node));
        doc_push(arena, devices, device);
    }
    vec_done(&faults);
    doc_set(arena, info, STR("FaultDevList"), devices);
    set_text(arena, info, "NodeStatus",
             str_is(isolation, "Quarantined") ? STR("UnHealthy")
             : str_is(isolation, "Draining")  ? STR("PreSeparate")
                                              : STR("Healthy"));
    set_text(arena, whole, "CheckCode", check_code(arena, info));
    doc_set(arena, whole, STR("NodeInfo"), info);
    set_text(arena, data, "NodeInfo", json_of(arena, whole));
    return map;
}

/* --- public faults -------------------------------------------------------------------------------------- */

static struct doc *public_fault(struct arena *arena, const struct doc *fault)
{
    struct doc *entry = doc_new(arena, DOC_OBJECT), *place = doc_new(arena, DOC_OBJECT);
    struct doc *influence = doc_new(arena, DOC_ARRAY), *devices = doc_new(arena, DOC_ARRAY);
    struct str id = text_at(fault, "metadata", "uid");
    set_text(arena, entry, "faultId", id);
    set_text(arena, entry, "faultType", fault_chip(fault) >= 0 ? STR("NPU") : STR("Node"));
    set_text(arena, entry, "faultCode", code_out(arena, text_at(fault, "spec", "code")));
    set_int(arena, entry, "faultTime", seconds_of(fault, "firstSeen") * 1000);
    set_text(arena, entry, "assertion", STR("occur"));
    doc_set(arena, entry, STR("faultLocation"), doc_new(arena, DOC_OBJECT));
    set_text(arena, place, "nodeName", text_at(fault, "spec", "machine"));
    if (fault_chip(fault) >= 0)
        doc_push(arena, devices, doc_new_int(arena, fault_chip(fault)));
    doc_set(arena, place, STR("deviceIds"), devices);
    doc_push(arena, influence, place);
    doc_set(arena, entry, STR("influence"), influence);
    set_text(arena, entry, "description", text_at(fault, "status", "evidence"));
    return entry;
}

struct doc *mindcluster_public_faults(struct arena *arena, const struct mindcluster_view *view)
{
    struct doc *message = doc_new(arena, DOC_OBJECT), *faults = doc_new(arena, DOC_ARRAY);
    for (size_t i = 0; i < doc_len(view->faults) && doc_len(faults) < MINDCLUSTER_FAULTS_MAX; i++) {
        const struct doc *fault = doc_at(view->faults, i);
        if (fault_is_open(fault) && is_public(fault))
            doc_push(arena, faults, public_fault(arena, fault));
    }
    set_text(arena, message, "id", arena_printf(arena, "phalanx-%lld", (long long)view->now_s));
    set_int(arena, message, "timestamp", view->now_s * 1000);
    set_text(arena, message, "version", STR("1.0"));
    set_text(arena, message, "resource", STR("phalanx"));
    doc_set(arena, message, STR("faults"), faults);
    return message;
}

/* --- ranks ---------------------------------------------------------------------------------------------- */

struct doc *mindcluster_hccl(struct arena *arena, const struct mindcluster_view *view)
{
    struct doc *table = doc_new(arena, DOC_OBJECT), *servers = doc_new(arena, DOC_ARRAY);
    pod_list pods = {0};
    int64_t rank = 0;
    pods_by_rank(view->pods, &pods);
    bool whole = pods.len > 0;
    for (size_t i = 0; i < pods.len; i++) {
        const struct doc *pod = pods.items[i], *chips = doc_path(pod, "status", "phalanx", "chips", NULL);
        struct doc *server = doc_new(arena, DOC_OBJECT), *devices = doc_new(arena, DOC_ARRAY);
        struct str address = text_at(pod, "status", "hostIP");
        whole = whole && str_is(text_at(pod, "status", "phase"), "Running");
        for (size_t k = 0; k < ranks_of_pod(chips); k++) {
            struct doc *device = doc_new(arena, DOC_OBJECT);
            set_text(arena, device, "device_id",
                     arena_printf(arena, "%lld", (long long)doc_int(doc_at(chips, k), 0)));
            set_text(arena, device, "device_ip", address);
            set_text(arena, device, "rank_id", arena_printf(arena, "%lld", (long long)rank++));
            doc_push(arena, devices, device);
        }
        doc_set(arena, server, STR("device"), devices);
        set_text(arena, server, "server_id", text_at(pod, "spec", "nodeName"));
        set_text(arena, server, "host_ip", address);
        set_text(arena, server, "container_ip", text_at(pod, "status", "podIP"));
        set_text(arena, server, "hardware_type", str_from(view->resource));
        doc_push(arena, servers, server);
    }
    set_text(arena, table, "status", whole ? STR("completed") : STR("initializing"));
    doc_set(arena, table, STR("server_list"), servers);
    set_text(arena, table, "server_count", arena_printf(arena, "%zu", pods.len));
    set_text(arena, table, "version", STR("1.0"));
    vec_done(&pods);
    return table;
}

/* Returns the number in "family/NUMBER", hexadecimal for Ascend chips; 0 if there is none. */
static int64_t code_number(struct str code)
{
    struct str family, name;
    int64_t number = 0;
    if (!str_cut(code, '/', &family, &name) || name.len > 15)
        return 0;
    if (!str_is(family, "ascend"))
        return str_to_i64(name, 0, INT64_MAX, &number) ? number : 0;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return 0;
        number = number * 16 + digit;
    }
    return number;
}

static struct doc *rank_entry(struct arena *arena, const fault_list *faults, int64_t rank, int64_t chip)
{
    struct doc *entry = doc_new(arena, DOC_OBJECT), *codes = doc_new(arena, DOC_ARRAY);
    struct buf hex BUF_CLEANUP = {0};
    int worst = 0;
    for (size_t i = 0; i < faults->len; i++) {
        int level = fault_level(faults->items[i]);
        if (!fault_strikes(faults->items[i], chip))
            continue;
        int64_t number = code_number(text_at(faults->items[i], "spec", "code"));
        worst = level > worst ? level : worst;
        doc_push(arena, codes, doc_new_int(arena, number));
        buf_printf(&hex, "%s%llX", hex.len ? "," : "", (unsigned long long)number);
    }
    if (worst == 0)
        return NULL;
    set_int(arena, entry, "RankId", rank);
    set_int(arena, entry, "LogicId", chip);
    set_text(arena, entry, "Status", STR("unrecovered"));
    set_text(arena, entry, "Policy", str_from(level_names[worst].policy));
    set_text(arena, entry, "InitialPolicy", str_from(level_names[worst].policy));
    doc_set(arena, entry, STR("ErrorCode"), codes);
    set_text(arena, entry, "ErrorCodeHex", buf_str(&hex));
    return entry;
}

struct doc *mindcluster_reset_config(struct arena *arena, const struct mindcluster_view *view, struct str job)
{
    struct doc *data, *map = config_map(arena, "reset-config-", job, &data);
    struct doc *reset = doc_new(arena, DOC_OBJECT), *ranks = doc_new(arena, DOC_ARRAY);
    pod_list pods = {0};
    int64_t rank = 0;
    pods_by_rank(view->pods, &pods);
    for (size_t i = 0; i < pods.len; i++) {
        const struct doc *chips = doc_path(pods.items[i], "status", "phalanx", "chips", NULL);
        fault_list faults = {0};
        faults_of_machine(view, text_at(pods.items[i], "spec", "nodeName"), &faults);
        for (size_t k = 0; k < ranks_of_pod(chips); k++, rank++) {
            struct doc *entry = rank_entry(arena, &faults, rank, doc_int(doc_at(chips, k), 0));
            if (entry)
                doc_push(arena, ranks, entry);
        }
        vec_done(&faults);
    }
    vec_done(&pods);
    doc_set(arena, reset, STR("RankList"), ranks);
    set_int(arena, reset, "GracefulExit", 0);
    set_int(arena, reset, "UpdateTime", view->now_s);
    set_int(arena, reset, "RetryTime", 0);
    set_bool(arena, reset, "FaultFlushing", false);
    set_bool(arena, reset, "RestartFaultProcess", false);
    set_text(arena, data, "reset.json", json_of(arena, reset));
    set_text(arena, data, "restartType", STR("podReschedule"));
    set_text(arena, data, "checkCode", check_code(arena, reset));
    return map;
}
