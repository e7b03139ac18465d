/* load_switches.c - spec.pods[].fabric: the optical switches of a pod (docs/cluster-file.md). */
#include <stdlib.h>
#include <string.h>

#include "core/model/load.h"
#include "core/words/switch.h"

enum { ADDRESS_MAX = 255, PROTOCOL_MAX = 200, USER_MAX = 63, SECRET_FILE_MAX = 200 };
#define TIMEOUT_DEFAULT_NS (10 * NS_PER_SECOND)
#define TIMEOUT_MIN_NS     (100 * NS_PER_MS)
#define TIMEOUT_MAX_NS     (600 * NS_PER_SECOND)

/* Splits "HOST:PORT". Returns false if the text is malformed. */
static bool split_address(struct str text, struct str *ret_host, uint32_t *ret_port)
{
    size_t colon = text.len;
    uint32_t port = 0;
    while (colon > 0 && text.data[colon - 1] != ':')
        colon--;
    if (colon < 2 || colon == text.len || text.len - colon > 5 || text.len > ADDRESS_MAX)
        return false;
    for (size_t i = colon; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        port = 10 * port + (uint32_t)(text.data[i] - '0');
    }
    *ret_host = (struct str){text.data, colon - 1};
    *ret_port = port;
    return port >= 1 && port <= 65535;
}

static bool read_address(struct loader *loader, const struct field *field, struct str *ret_host,
                         uint32_t *ret_port)
{
    struct str text;
    if (!load_text(loader, field, &text))
        return false;
    if (split_address(text, ret_host, ret_port))
        return true;
    load_fail(loader, field, "FieldValueInvalid",
              "Invalid value: \"" STR_FORMAT "\": must be HOST:PORT, as in 10.0.0.1:5025",
              STR_ARG(load_excerpt(text)));
    return false;
}

/* Returns whether the driver defines the form of its addresses, as SAI and shared libraries do. */
static bool has_own_addresses(const struct fabric_plan *plan)
{
    return str_is(plan->protocol, "sai") || str_starts(plan->protocol, STR("/"));
}

static void read_own_address(struct loader *loader, const struct field *field)
{
    struct str text;
    if (load_text(loader, field, &text) && (text.len == 0 || text.len > ADDRESS_MAX))
        load_fail(loader, field, "FieldValueInvalid", "Invalid value: must be an address of 1 to %d bytes",
                  ADDRESS_MAX);
}

static void read_list(struct loader *loader, const struct field *switches, struct fabric_plan *plan)
{
    size_t count = doc_len(switches->doc);
    if (count != POD_SWITCHES)
        load_fail(loader, switches, "FieldValueInvalid",
                  "Invalid value: %zu addresses: a pod has %d switches, x0 to x15, y0 to y15, z0 to z15",
                  count, POD_SWITCHES);
    plan->list = switches->doc;
    for (size_t i = 0; i < count && i < POD_SWITCHES; i++) {
        struct field item = field_at(switches, i);
        if (!load_present(&item))
            load_required(loader, &item, "the address of a switch");
        if (has_own_addresses(plan))
            read_own_address(loader, &item);
        else
            (void)read_address(loader, &item, &plan->host, &plan->port);
    }
}

static void read_first(struct loader *loader, const struct field *switches, int64_t pods,
                       struct fabric_plan *plan)
{
    if (!read_address(loader, switches, &plan->host, &plan->port))
        return;
    if (plan->port + POD_SWITCHES * pods - 1 > 65535)
        load_fail(loader, switches, "FieldValueInvalid",
                  "Invalid value: %u: the %d switches of each pod have consecutive ports, and the last port "
                  "is 65535",
                  plan->port, POD_SWITCHES);
}

/* Reads DRIVER:ADDRESS with the placeholders {cube} and {machine}, each once, in this order. */
static void read_chips(struct loader *loader, const struct field *chips, struct fabric_plan *plan)
{
    struct str text, driver, rest, before, behind;
    if (!load_present(chips) || !load_text(loader, chips, &text))
        return;
    bool good = text.len <= ADDRESS_MAX && str_cut(text, ':', &driver, &rest) && driver.len > 0 &&
                str_cut(rest, '{', &before, &behind) && str_starts(behind, STR("cube}")) &&
                str_cut(behind, '{', &before, &behind) && str_starts(behind, STR("machine}")) &&
                !str_cut(behind, '{', &before, &behind);
    if (good)
        plan->chips = text;
    else
        load_fail(loader, chips, "FieldValueInvalid",
                  "Invalid value: \"" STR_FORMAT
                  "\": must be DRIVER:ADDRESS with {cube} and then {machine} in "
                  "it, as in emulated:/run/chips/{cube}-{machine}",
                  STR_ARG(load_excerpt(text)));
}

/* Returns whether the text has no control character and none of `others`. */
static bool is_plain(struct str text, const char *others)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < ' ' || text.data[i] == 0x7f || strchr(others, text.data[i]))
            return false;
    return true;
}

static void read_user(struct loader *loader, const struct field *user, struct fabric_plan *plan)
{
    struct str text;
    if (!load_text(loader, user, &text))
        return;
    if (str_is(plan->protocol, "scpi") || str_is(plan->protocol, "sai"))
        load_fail(loader, user, "FieldValueForbidden",
                  "Forbidden: the protocol " STR_FORMAT
                  " has no login; tl1 has one, and a shared library may",
                  STR_ARG(plan->protocol));
    else if (text.len > USER_MAX || !is_plain(text, str_is(plan->protocol, "tl1") ? ":;,&\"" : ""))
        load_fail(loader, user, "FieldValueInvalid",
                  "Invalid value: \"" STR_FORMAT "\": must be a name of 1 to %d bytes without control "
                  "characters, and for tl1 without : ; , & and quotes",
                  STR_ARG(load_excerpt(text)), USER_MAX);
    else
        plan->user = text;
}

/* Reads the user and the path of the secret file. The host reads the file itself; the core never does. */
static void read_login(struct loader *loader, const struct field *fabric, struct fabric_plan *plan)
{
    struct field user = field_get(fabric, "user"), file = field_get(fabric, "secretFile");
    struct str path;
    if (load_present(&user))
        read_user(loader, &user, plan);
    if (!load_present(&file) || !load_text(loader, &file, &path))
        return;
    if (!load_present(&user))
        load_fail(loader, &file, "FieldValueForbidden",
                  "Forbidden: the file has the password of a user: name the user as well");
    else if (path.data[0] != '/' || path.len > SECRET_FILE_MAX || !is_plain(path, ""))
        load_fail(loader, &file, "FieldValueInvalid",
                  "Invalid value: must be the absolute path of a file, of at most %d bytes", SECRET_FILE_MAX);
    else
        plan->secret_file = path;
}

void load_fabric(struct loader *loader, const struct field *fabric, struct pod_plan *pod)
{
    static const char *const known[] = {"protocol", "switches",   "timeout", "chips",
                                        "user",     "secretFile", NULL};
    if (!load_present(fabric))
        return;
    struct fabric_plan *plan = ARENA_NEW(&loader->scratch, struct fabric_plan);
    struct field protocol = field_get(fabric, "protocol"), switches = field_get(fabric, "switches");
    struct field timeout = field_get(fabric, "timeout"), chips = field_get(fabric, "chips");
    *plan = (struct fabric_plan){.protocol = STR("scpi"), .timeout_ns = TIMEOUT_DEFAULT_NS};
    if (!load_object(loader, fabric, known))
        return;
    load_text(loader, &protocol, &plan->protocol);
    bool known_protocol = str_is(plan->protocol, "scpi") || str_is(plan->protocol, "tl1");
    if (!known_protocol && (!has_own_addresses(plan) || plan->protocol.len > PROTOCOL_MAX))
        load_fail(loader, &protocol, "FieldValueNotSupported",
                  "Unsupported value: \"" STR_FORMAT
                  "\": supported values: \"scpi\", \"tl1\", \"sai\", or the "
                  "path of a shared library that begins with '/'",
                  STR_ARG(load_excerpt(plan->protocol)));
    load_duration(loader, &timeout, TIMEOUT_MIN_NS, TIMEOUT_MAX_NS, &plan->timeout_ns);
    read_chips(loader, &chips, plan);
    read_login(loader, fabric, plan);
    if (!load_present(&switches))
        load_required(loader, &switches, "HOST:PORT of switch x0, or a list of 48");
    else if (switches.doc->kind != DOC_ARRAY && has_own_addresses(plan))
        load_fail(loader, &switches, "FieldValueInvalid",
                  "Invalid value: must be a list of %d addresses for this protocol", POD_SWITCHES);
    else if (switches.doc->kind != DOC_ARRAY)
        read_first(loader, &switches, pod->count, plan);
    else if (pod->count > 1)
        load_fail(
            loader, &switches, "FieldValueForbidden",
            "Forbidden: a list gives the switches of one pod, and this entry makes %lld: give HOST:PORT "
            "of the first switch, or an entry for each pod",
            (long long)pod->count);
    else
        read_list(loader, &switches, plan);
    pod->fabric = plan;
}

/* Returns a switch of the pod. Its name, which is that of an API object, is unique in the cluster: it is the
 * pod's name, a hyphen, and the switch's name within the pod. */
static struct optical_switch make_switch(struct loader *loader, const struct fabric_plan *plan,
                                         const struct switch_login *login, uint32_t pod, uint32_t number,
                                         uint32_t port)
{
    struct arena *arena = &loader->cluster->arena;
    CHECK(number < POD_SWITCHES && (login != NULL) == (plan->user.len > 0));
    const char *in_pod = pod_switch_name(pod_switch_at(number));
    struct str address;
    if (plan->list)
        address = arena_str(arena, doc_at(plan->list, number)->text);
    else
        address = arena_printf(arena, STR_FORMAT ":%u", STR_ARG(plan->host), port + number);
    struct str name = loader->cluster->pods[pod].name;
    return (struct optical_switch){.name = arena_printf(arena, STR_FORMAT "-%s", STR_ARG(name), in_pod),
                                   .pod = pod,
                                   .number = number,
                                   .protocol = arena_str(arena, plan->protocol),
                                   .address = address,
                                   .login = login,
                                   .timeout_ns = plan->timeout_ns};
}

/* Returns the login of an entry's switches, which the cluster owns, or NULL if they have none. */
static const struct switch_login *make_login(struct loader *loader, const struct fabric_plan *plan)
{
    struct arena *arena = &loader->cluster->arena;
    if (!plan || !plan->user.len)
        return NULL;
    CHECK(plan->user.len <= USER_MAX && plan->secret_file.len <= SECRET_FILE_MAX);
    CHECK(!str_is(plan->protocol, "scpi") && !str_is(plan->protocol, "sai"));
    struct switch_login *login = ARENA_NEW(arena, struct switch_login);
    login->user = arena_str(arena, plan->user);
    login->secret_file = arena_str(arena, plan->secret_file);
    return login;
}

void load_switches(struct loader *loader)
{
    struct cluster *cluster = loader->cluster;
    uint32_t pod = 0;
    size_t pods = 0;
    for (size_t p = 0; p < loader->pods.len; p++)
        pods += loader->pods.items[p].fabric ? (size_t)loader->pods.items[p].count : 0;
    cluster->switches = ARENA_ARRAY(&cluster->arena, struct optical_switch, pods * POD_SWITCHES);
    for (size_t p = 0; p < loader->pods.len; p++) {
        const struct fabric_plan *plan = loader->pods.items[p].fabric;
        const struct switch_login *login = make_login(loader, plan);
        uint32_t port = plan ? plan->port : 0;
        for (int64_t i = 0; i < loader->pods.items[p].count; i++, pod++, port += POD_SWITCHES) {
            cluster->pods[pod].first_switch = plan ? (uint32_t)cluster->switch_count : SWITCH_NONE;
            cluster->pods[pod].chips = plan ? arena_str(&cluster->arena, plan->chips) : (struct str){0};
            for (uint32_t number = 0; plan && number < POD_SWITCHES; number++)
                cluster->switches[cluster->switch_count++] =
                    make_switch(loader, plan, login, pod, number, port);
        }
    }
    CHECK(pod == cluster->pod_count && cluster->switch_count == pods * POD_SWITCHES);
    for (uint32_t i = 0; i < cluster->pod_count; i++)
        if (cluster->pods[i].first_switch != SWITCH_NONE && cluster->pods[i].cube_count > POD_CUBES_MAX) {
            struct field spec = {0};
            load_fail(loader, &spec, "FieldValueInvalid",
                      "Invalid value: pod " STR_FORMAT " has %u cubes: its switches join at most %d",
                      STR_ARG(cluster->pods[i].name), cluster->pods[i].cube_count, POD_CUBES_MAX);
        }
}
