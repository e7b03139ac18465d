#include "core/spec/pod_security.h"

#include <string.h>

#include "core/spec/path.h"

#define LABEL_PREFIX "pod-security.kubernetes.io/"

static const char *const level_names[] = {"privileged", "baseline", "restricted"};
_Static_assert(sizeof level_names / sizeof *level_names == POD_SECURITY_RESTRICTED + 1,
               "a name for each level");

const char *pod_security_name(enum pod_security_level level)
{
    CHECK(level <= POD_SECURITY_RESTRICTED);
    return level_names[level];
}

bool pod_security_read(struct str name, enum pod_security_level *ret_level)
{
    for (int i = POD_SECURITY_PRIVILEGED; i <= POD_SECURITY_RESTRICTED; i++)
        if (str_is(name, level_names[i])) {
            *ret_level = (enum pod_security_level)i;
            return true;
        }
    return false;
}

/* --- what a namespace requires -------------------------------------------------------------------------- */

/* The labels of a Namespace for a mode. */
static const struct mode_keys {
    struct str level, version;
} mode_keys[] = {
    {STR(LABEL_PREFIX "enforce"), STR(LABEL_PREFIX "enforce-version")},
    {STR(LABEL_PREFIX "warn"), STR(LABEL_PREFIX "warn-version")},
    {STR(LABEL_PREFIX "audit"), STR(LABEL_PREFIX "audit-version")},
};
_Static_assert(sizeof mode_keys / sizeof *mode_keys == POD_SECURITY_MODES, "labels for each mode");

void pod_security_of(const struct doc *namespace_, enum pod_security_level fallback,
                     struct pod_security_policy *ret_policy)
{
    CHECK(fallback <= POD_SECURITY_RESTRICTED);
    const struct doc *labels = doc_path(namespace_, "metadata", "labels", NULL);
    for (int mode = 0; mode < POD_SECURITY_MODES; mode++) {
        const struct doc *label = doc_get_str(labels, mode_keys[mode].level);
        enum pod_security_level level = mode == POD_SECURITY_ENFORCE ? fallback : POD_SECURITY_PRIVILEGED;
        if (label && !pod_security_read(doc_str(label, STR("")), &level))
            level = POD_SECURITY_RESTRICTED;
        CHECK(level <= POD_SECURITY_RESTRICTED);
        ret_policy->modes[mode].level = level;
        ret_policy->modes[mode].version =
            doc_str(doc_get_str(labels, mode_keys[mode].version), STR("latest"));
    }
}

static bool is_version(struct str text)
{
    struct str major, minor;
    int64_t number;
    return str_is(text, "latest") || (str_cut(text, '.', &major, &minor) && str_is(major, "v1") &&
                                      str_to_i64(minor, 0, INT32_MAX, &number));
}

static void report(const struct doc *label, struct str key, const char *why, struct field_errors *errors)
{
    CHECK(label && key.len > 0);
    path_invalid(errors, AT_KEY(AT(AT(NULL, "metadata"), "labels"), key), label, doc_str(label, STR("")),
                 why);
}

void pod_security_check_labels(const struct doc *namespace_, struct field_errors *errors)
{
    enum pod_security_level level;
    const struct doc *labels = doc_path(namespace_, "metadata", "labels", NULL);
    for (int mode = 0; mode < POD_SECURITY_MODES; mode++) {
        const struct mode_keys *keys = &mode_keys[mode];
        const struct doc *label = doc_get_str(labels, keys->level),
                         *version = doc_get_str(labels, keys->version);
        if (label && !pod_security_read(doc_str(label, STR("")), &level))
            report(label, keys->level, "must be one of privileged, baseline, restricted", errors);
        if (version && !is_version(doc_str(version, STR(""))))
            report(version, keys->version, "must be \"latest\" or \"v1.x\"", errors);
    }
}

/* --- names that a rule finds ---------------------------------------------------------------------------- */

struct names {
    struct buf text; /* `"a", "b"` */
    size_t count;
};

static void add_name(struct names *names, struct str name)
{
    struct buf quoted BUF_CLEANUP = {0};
    buf_printf(&quoted, "\"" STR_FORMAT "\"", STR_ARG(name));
    if (names->count > 0 && strstr(names->text.data, quoted.data))
        return;
    buf_printf(&names->text, "%s%s", names->count++ ? ", " : "", quoted.data);
}

/* Adds `container "a"` or `containers "a", "b"`. */
static void put_names(struct buf *out, const char *noun, const struct names *names)
{
    CHECK(names->count > 0);
    buf_printf(out, "%s%s %s", noun, names->count == 1 ? "" : "s", names->text.data);
}

/* A walk over the containers of a Pod in Kubernetes' order: init, main and ephemeral containers. */
struct walk {
    const struct doc *spec;
    size_t list, index;
};

static const struct doc *next_container(struct walk *walk)
{
    static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};
    for (; walk->list < sizeof lists / sizeof *lists; walk->list++, walk->index = 0) {
        const struct doc *list = doc_get(walk->spec, lists[walk->list]);
        if (walk->index < doc_len(list))
            return doc_at(list, walk->index++);
    }
    return NULL;
}

static struct str name_of(const struct doc *item)
{
    return doc_str(doc_get(item, "name"), STR(""));
}

static bool is_set(const struct doc *field)
{
    return field && field->kind != DOC_NULL;
}

/* --- rules ---------------------------------------------------------------------------------------------- */

enum verdict { UNSET, GOOD, BAD };
struct rule {
    enum pod_security_level level;
    bool replaced;      /* restricted has a stricter rule about the same fields */
    const char *reason; /* the message before the brackets */
    /* Appends the message within the brackets, or nothing if the Pod keeps the rule. */
    void (*look)(const struct rule *rule, const struct doc *spec, struct buf *out);
    /* The following fields are for look_own and look_inherited. */
    const char *field; /* of securityContext */
    enum verdict (*judge)(const struct doc *field);
    const char *must_not, *must; /* NULL: an unset field is fine */
};

/* Checks a field that only containers have. */
static void look_own(const struct rule *rule, const struct doc *spec, struct buf *out)
{
    CHECK(rule->field && rule->judge && rule->must_not);
    struct names bad = {0};
    struct walk walk = {.spec = spec};
    for (const struct doc *container; (container = next_container(&walk));)
        if (rule->judge(doc_path(container, "securityContext", rule->field, NULL)) == BAD)
            add_name(&bad, name_of(container));
    if (bad.count > 0) {
        put_names(out, "container", &bad);
        buf_printf(out, " must %s", rule->must_not);
    }
    buf_done(&bad.text);
}

/* Checks a field that containers inherit from their Pod. */
static void look_inherited(const struct rule *rule, const struct doc *spec, struct buf *out)
{
    CHECK(rule->field && rule->judge && rule->must_not);
    struct names bad = {0}, unset = {0};
    struct walk walk = {.spec = spec};
    enum verdict pod = rule->judge(doc_path(spec, "securityContext", rule->field, NULL));
    for (const struct doc *container; (container = next_container(&walk));) {
        enum verdict own = rule->judge(doc_path(container, "securityContext", rule->field, NULL));
        if (own == BAD)
            add_name(&bad, name_of(container));
        else if (own == UNSET && pod != GOOD)
            add_name(&unset, name_of(container));
    }
    if (pod == BAD)
        buf_printf(out, "pod%s", bad.count ? " and " : "");
    if (bad.count > 0)
        put_names(out, "container", &bad);
    if (pod == BAD || bad.count > 0) {
        buf_printf(out, " must not %s", rule->must_not);
    } else if (unset.count > 0 && rule->must) {
        buf_printf(out, "pod or ");
        put_names(out, "container", &unset);
        buf_printf(out, " must %s", rule->must);
    }
    buf_done(&bad.text);
    buf_done(&unset.text);
}

static enum verdict judge_false(const struct doc *field)
{
    return doc_bool(field, false) ? BAD : GOOD;
}

static enum verdict judge_said_false(const struct doc *field)
{
    return doc_bool(field, true) ? BAD : GOOD;
}

static enum verdict judge_true(const struct doc *field)
{
    return !is_set(field) ? UNSET : doc_bool(field, false) ? GOOD : BAD;
}

static enum verdict judge_user(const struct doc *field)
{
    return !is_set(field) ? UNSET : doc_int(field, 1) == 0 ? BAD : GOOD;
}

static enum verdict judge_profile(const struct doc *field)
{
    struct str type = doc_str(doc_get(field, "type"), STR(""));
    return type.len == 0 ? UNSET : str_is(type, "Unconfined") ? BAD : GOOD;
}

static enum verdict judge_proc(const struct doc *field)
{
    return path_one_of(doc_str(field, STR("Default")), "Default") ? GOOD : BAD;
}

static void look_namespaces(const struct rule *rule, const struct doc *spec, struct buf *out)
{
    static const char *const fields[] = {"hostNetwork", "hostPID", "hostIPC"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (doc_bool(doc_get(spec, fields[i]), false))
            buf_printf(out, "%s%s=true", out->len ? ", " : "", fields[i]);
}

static void look_host_paths(const struct rule *rule, const struct doc *spec, struct buf *out)
{
    const struct doc *volumes = doc_get(spec, "volumes");
    struct names found = {0};
    for (size_t i = 0; i < doc_len(volumes); i++)
        if (is_set(doc_get(doc_at(volumes, i), "hostPath")))
            add_name(&found, name_of(doc_at(volumes, i)));
    if (found.count > 0)
        put_names(out, "volume", &found);
    buf_done(&found.text);
}

/* Returns the type of a volume if the restricted level forbids it, otherwise no data. NULL is allowed. */
static struct str restricted_type(const struct doc *volume)
{
    static const char allowed[] =
        "name,configMap,csi,downwardAPI,emptyDir,ephemeral,image,persistentVolumeClaim,projected,secret";
    for (size_t i = 0; volume && volume->kind == DOC_OBJECT && i < doc_len(volume); i++) {
        const struct doc_member *member = &volume->object.members[i];
        if (is_set(member->value) && !path_one_of(member->key, allowed))
            return member->key;
    }
    return (struct str){0};
}

static void look_volumes(const struct rule *rule, const struct doc *spec, struct buf *out)
{
    const struct doc *volumes = doc_get(spec, "volumes");
    struct names found = {0}, types = {0};
    for (size_t i = 0; i < doc_len(volumes); i++) {
        struct str type = restricted_type(doc_at(volumes, i));
        if (type.len == 0)
            continue;
        add_name(&found, name_of(doc_at(volumes, i)));
        add_name(&types, type);
    }
    if (found.count > 0) {
        put_names(out, "volume", &found);
        buf_printf(out, " use%s ", found.count == 1 ? "s" : "");
        put_names(out, "restricted volume type", &types);
    }
    buf_done(&found.text);
    buf_done(&types.text);
}

static void look_ports(const struct rule *rule, const struct doc *spec, struct buf *out)
{
    struct names found = {0};
    struct buf numbers BUF_CLEANUP = {0};
    struct walk walk = {.spec = spec};
    size_t count = 0;
    for (const struct doc *container; (container = next_container(&walk));) {
        const struct doc *ports = doc_get(container, "ports");
        for (size_t i = 0; i < doc_len(ports); i++) {
            int64_t port = doc_int(doc_get(doc_at(ports, i), "hostPort"), 0);
            if (port == 0)
                continue;
            add_name(&found, name_of(container));
            buf_printf(&numbers, "%s%lld", count++ ? ", " : "", (long long)port);
        }
    }
    if (found.count > 0) {
        put_names(out, "container", &found);
        buf_printf(out, " use%s hostPort%s %s", found.count == 1 ? "s" : "", count == 1 ? "" : "s",
                   numbers.data);
    }
    buf_done(&found.text);
}

/* Adds the hosts that the container's probes and hooks name, except its own addresses. */
static void add_foreign_hosts(const struct doc *container, struct names *hosts)
{
    static const char *const handlers[][2] = {{"livenessProbe", NULL},
                                              {"readinessProbe", NULL},
                                              {"startupProbe", NULL},
                                              {"lifecycle", "postStart"},
                                              {"lifecycle", "preStop"}};
    static const char *const actions[] = {"httpGet", "tcpSocket"};
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
        for (size_t j = 0; j < 2; j++) {
            const struct doc *handler = doc_path(container, handlers[i][0], handlers[i][1], NULL);
            struct str host = doc_str(doc_path(handler, actions[j], "host", NULL), STR(""));
            if (host.len > 0 && !path_one_of(host, "127.0.0.1,::1"))
                add_name(hosts, host);
        }
}

static void look_hosts(const struct rule *rule, const struct doc *spec, struct buf *out)
{
    struct names found = {0}, hosts = {0};
    struct walk walk = {.spec = spec};
    for (const struct doc *container; (container = next_container(&walk));) {
        struct names own = {0};
        add_foreign_hosts(container, &own);
        add_foreign_hosts(container, &hosts);
        if (own.count > 0)
            add_name(&found, name_of(container));
        buf_done(&own.text);
    }
    if (found.count > 0) {
        put_names(out, "container", &found);
        buf_printf(out, " use%s probe or lifecycle ", found.count == 1 ? "s" : "");
        put_names(out, "host", &hosts);
    }
    buf_done(&found.text);
    buf_done(&hosts.text);
}

static const char baseline_capabilities[] =
    "AUDIT_WRITE,CHOWN,DAC_OVERRIDE,FOWNER,FSETID,KILL,MKNOD,NET_BIND_SERVICE,SETFCAP,SETGID,SETPCAP,SETUID,"
    "SYS_CHROOT";

/* Finds containers that add capabilities beyond those allowed. */
static void find_added(const struct doc *spec, const char *allowed, struct names *containers,
                       struct names *added)
{
    struct walk walk = {.spec = spec};
    for (const struct doc *container; (container = next_container(&walk));) {
        const struct doc *list = doc_path(container, "securityContext", "capabilities", "add", NULL);
        for (size_t i = 0; i < doc_len(list); i++) {
            struct str name = doc_str(doc_at(list, i), STR(""));
            if (path_one_of(name, allowed))
                continue;
            add_name(containers, name_of(container));
            add_name(added, name);
        }
    }
}

static void put_added(const struct doc *spec, const char *allowed, struct buf *out)
{
    struct names containers = {0}, added = {0};
    find_added(spec, allowed, &containers, &added);
    if (containers.count > 0) {
        buf_printf(out, "%s", out->len ? "; " : "");
        put_names(out, "container", &containers);
        buf_printf(out, " must not include %s in securityContext.capabilities.add", added.text.data);
    }
    buf_done(&containers.text);
    buf_done(&added.text);
}

static void look_added(const struct rule *rule, const struct doc *spec, struct buf *out)
{
    put_added(spec, baseline_capabilities, out);
}

static void look_dropped(const struct rule *rule, const struct doc *spec, struct buf *out)
{
    struct names keep = {0};
    struct walk walk = {.spec = spec};
    for (const struct doc *container; (container = next_container(&walk));) {
        const struct doc *list = doc_path(container, "securityContext", "capabilities", "drop", NULL);
        bool all = false;
        for (size_t i = 0; i < doc_len(list); i++)
            all |= str_is(doc_str(doc_at(list, i), STR("")), "ALL");
        if (!all)
            add_name(&keep, name_of(container));
    }
    if (keep.count > 0) {
        put_names(out, "container", &keep);
        buf_printf(out, " must set securityContext.capabilities.drop=[\"ALL\"]");
    }
    buf_done(&keep.text);
    put_added(spec, "NET_BIND_SERVICE", out);
}

/* The rules in Kubernetes' order: those of baseline by the names of its checks, then those of restricted. */
static const struct rule rules[] = {
    {POD_SECURITY_BASELINE, false, "forbidden AppArmor profile", look_inherited, "appArmorProfile",
     judge_profile, "set AppArmor profile type to \"Unconfined\"", NULL},
    {POD_SECURITY_BASELINE, true, "non-default capabilities", look_added, NULL, NULL, NULL, NULL},
    {POD_SECURITY_BASELINE, false, "host namespaces", look_namespaces, NULL, NULL, NULL, NULL},
    {POD_SECURITY_BASELINE, true, "hostPath volumes", look_host_paths, NULL, NULL, NULL, NULL},
    {POD_SECURITY_BASELINE, false, "hostPort", look_ports, NULL, NULL, NULL, NULL},
    {POD_SECURITY_BASELINE, false, "probe or lifecycle host", look_hosts, NULL, NULL, NULL, NULL},
    {POD_SECURITY_BASELINE, false, "privileged", look_own, "privileged", judge_false,
     "not set securityContext.privileged=true", NULL},
    {POD_SECURITY_BASELINE, false, "procMount", look_own, "procMount", judge_proc,
     "not set securityContext.procMount to \"Unmasked\"", NULL},
    {POD_SECURITY_BASELINE, true, "seccompProfile", look_inherited, "seccompProfile", judge_profile,
     "set securityContext.seccompProfile.type to \"Unconfined\"", NULL},
    {POD_SECURITY_RESTRICTED, false, "allowPrivilegeEscalation != false", look_own,
     "allowPrivilegeEscalation", judge_said_false, "set securityContext.allowPrivilegeEscalation=false",
     NULL},
    {POD_SECURITY_RESTRICTED, false, "unrestricted capabilities", look_dropped, NULL, NULL, NULL, NULL},
    {POD_SECURITY_RESTRICTED, false, "restricted volume types", look_volumes, NULL, NULL, NULL, NULL},
    {POD_SECURITY_RESTRICTED, false, "runAsNonRoot != true", look_inherited, "runAsNonRoot", judge_true,
     "set securityContext.runAsNonRoot=false", "set securityContext.runAsNonRoot=true"},
    {POD_SECURITY_RESTRICTED, false, "runAsUser=0", look_inherited, "runAsUser", judge_user,
     "set runAsUser=0", NULL},
    {POD_SECURITY_RESTRICTED, false, "seccompProfile", look_inherited, "seccompProfile", judge_profile,
     "set securityContext.seccompProfile.type to \"Unconfined\"",
     "set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\""},
};

bool pod_security_violated(const struct doc *pod_spec, enum pod_security_level level, struct buf *out)
{
    bool violated = false;
    CHECK(level <= POD_SECURITY_RESTRICTED);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        struct buf detail BUF_CLEANUP = {0};
        if (rules[i].level > level || (rules[i].replaced && level == POD_SECURITY_RESTRICTED))
            continue;
        rules[i].look(&rules[i], pod_spec, &detail);
        if (detail.len == 0)
            continue;
        buf_printf(out, "%s%s (%s)", violated ? ", " : "", rules[i].reason, detail.data);
        violated = true;
    }
    return violated;
}

bool pod_security_asks_root(const struct doc *pod_spec)
{
    struct buf detail BUF_CLEANUP = {0};
    static const struct rule rule = {
        POD_SECURITY_RESTRICTED, false, "runAsUser=0", look_inherited, "runAsUser", judge_user, "", NULL};
    look_inherited(&rule, pod_spec, &detail);
    return detail.len > 0;
}
