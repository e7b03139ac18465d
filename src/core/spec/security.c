/* security.c - securityContext of pods and containers: the fields that machines act on, and those that they
 * cannot satisfy.
 *
 * A field that no machine can satisfy is refused: profiles that are local to a machine (Localhost, SELinux,
 * AppArmor), user namespaces, an unmasked /proc, a change of every file in a volume. Where a field chooses
 * between behaviours, the values that match the machines' behaviour are accepted:
 *
 *     supplementalGroupsPolicy   Merge, Strict: no image has an /etc/group that names more groups
 *     seLinuxChangePolicy        MountOption, Recursive: there are no labels to change
 *     fsGroupChangePolicy        OnRootMismatch: the group is given once, when the volume is made
 */
#include "core/spec/read.h"
#include "core/spec/schema.h"
#include "core/spec/validate.h"

/* The capabilities of capabilities(7), by number. */
static const char *const capability_names[] = {"CHOWN",
                                               "DAC_OVERRIDE",
                                               "DAC_READ_SEARCH",
                                               "FOWNER",
                                               "FSETID",
                                               "KILL",
                                               "SETGID",
                                               "SETUID",
                                               "SETPCAP",
                                               "LINUX_IMMUTABLE",
                                               "NET_BIND_SERVICE",
                                               "NET_BROADCAST",
                                               "NET_ADMIN",
                                               "NET_RAW",
                                               "IPC_LOCK",
                                               "IPC_OWNER",
                                               "SYS_MODULE",
                                               "SYS_RAWIO",
                                               "SYS_CHROOT",
                                               "SYS_PTRACE",
                                               "SYS_PACCT",
                                               "SYS_ADMIN",
                                               "SYS_BOOT",
                                               "SYS_NICE",
                                               "SYS_RESOURCE",
                                               "SYS_TIME",
                                               "SYS_TTY_CONFIG",
                                               "MKNOD",
                                               "LEASE",
                                               "AUDIT_WRITE",
                                               "AUDIT_CONTROL",
                                               "SETFCAP",
                                               "MAC_OVERRIDE",
                                               "MAC_ADMIN",
                                               "SYSLOG",
                                               "WAKE_ALARM",
                                               "BLOCK_SUSPEND",
                                               "AUDIT_READ",
                                               "PERFMON",
                                               "BPF",
                                               "CHECKPOINT_RESTORE"};
enum { CAPABILITIES = sizeof capability_names / sizeof *capability_names };
_Static_assert(CAPABILITIES == 41 && CAPABILITIES < 64, "a bit of 64 for each capability of Linux");

/* Returns the bit of a capability's name, with or without "CAP_"; all bits for "ALL"; 0 if unknown. */
static uint64_t capability_bits(struct str name)
{
    if (str_is(name, "ALL"))
        return UINT64_MAX;
    if (str_starts(name, STR("CAP_")))
        name = (struct str){name.data + 4, name.len - 4};
    for (int i = 0; i < CAPABILITIES; i++)
        if (str_is(name, capability_names[i]))
            return UINT64_C(1) << i;
    return 0;
}

static uint64_t read_capabilities(const struct doc *list)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < doc_len(list); i++)
        bits |= capability_bits(doc_str(doc_at(list, i), STR("")));
    return bits;
}

/* Returns a field of the container's securityContext, else of the pod's, else NULL. */
static const struct doc *security_field(const struct doc *spec, const struct doc *container,
                                        const char *field)
{
    const struct doc *own = doc_path(container, "securityContext", field, NULL);
    return own ? own : doc_path(spec, "securityContext", field, NULL);
}

static void add_group(struct container_security *security, const struct doc *id)
{
    CHECK(security->group_count <= CONTAINER_GROUPS_MAX);
    int64_t group = doc_int(id, -1);
    bool known = group < 0 || group >= UINT32_MAX || security->group_count == CONTAINER_GROUPS_MAX;
    for (size_t i = 0; i < security->group_count && !known; i++)
        known = security->groups[i] == (uint32_t)group;
    if (!known)
        security->groups[security->group_count++] = (uint32_t)group;
}

void read_security(struct arena *arena, const struct doc *spec, const struct doc *container,
                   struct container_security *ret)
{
    const struct doc *own = doc_get(container, "securityContext"),
                     *groups = doc_path(spec, "securityContext", "supplementalGroups", NULL);
    const struct doc *profile = security_field(spec, container, "seccompProfile");
    *ret = (struct container_security){
        .groups = ARENA_ARRAY(arena, uint32_t, CONTAINER_GROUPS_MAX),
        .added = read_capabilities(doc_path(own, "capabilities", "add", NULL)),
        .dropped = read_capabilities(doc_path(own, "capabilities", "drop", NULL)),
        .non_root = doc_bool(security_field(spec, container, "runAsNonRoot"), false),
        .privileged = doc_bool(doc_get(own, "privileged"), false),
        .escalation = doc_bool(doc_get(own, "allowPrivilegeEscalation"), false),
        .read_only_root = doc_bool(doc_get(own, "readOnlyRootFilesystem"), false),
        .unconfined = str_is(doc_str(doc_get(profile, "type"), STR("")), "Unconfined"),
    };
    for (size_t i = 0; i < doc_len(groups); i++)
        add_group(ret, doc_at(groups, i));
    add_group(ret, doc_path(spec, "securityContext", "fsGroup", NULL));
}

bool security_is_default(const struct container_security *security)
{
    return security->group_count == 0 && security->added == 0 && security->dropped == 0 &&
           !security->non_root && !security->privileged && !security->escalation &&
           !security->read_only_root && !security->unconfined;
}

/* --- validation --------------------------------------------------------------------------------------- */

/* Refuses the field unless it is absent or empty. */
static void refuse_object(const struct doc *security, const char *field, const char *why,
                          const struct field_path *path, struct field_errors *errors)
{
    const struct doc *node = doc_get(security, field);
    if (doc_len(node) > 0)
        path_forbidden(errors, AT(path, field), node, why);
}

static void check_id(const struct doc *security, const char *field, const struct field_path *path,
                     struct field_errors *errors)
{
    const struct doc *node = doc_get(security, field);
    int64_t id = doc_int(node, 0);
    if (id < 0 || id > INT32_MAX)
        path_invalid_int(errors, AT(path, field), node, id, "must be between 0 and 2147483647, inclusive");
}

static void check_shared(const struct doc *security, const struct field_path *path,
                         struct field_errors *errors)
{
    const struct doc *seccomp = doc_get(security, "seccompProfile"), *type = doc_get(seccomp, "type");
    const struct doc *armor = doc_get(security, "appArmorProfile"), *mode = doc_get(armor, "type");
    check_id(security, "runAsUser", path, errors);
    check_id(security, "runAsGroup", path, errors);
    if (str_is(doc_str(type, STR("")), "Localhost"))
        path_unsupported(errors, AT(AT(path, "seccompProfile"), "type"), type, type->text,
                         "RuntimeDefault,Unconfined");
    if (doc_str(mode, STR("")).len > 0 && !str_is(mode->text, "Unconfined"))
        path_unsupported(errors, AT(AT(path, "appArmorProfile"), "type"), mode, mode->text, "Unconfined");
    refuse_object(security, "seLinuxOptions", "machines do not set SELinux labels", path, errors);
    refuse_object(security, "windowsOptions", "machines run Linux", path, errors);
}

static void check_capabilities(const struct doc *capabilities, const char *field,
                               const struct field_path *path, struct field_errors *errors)
{
    const struct doc *list = doc_get(capabilities, field);
    for (size_t i = 0; i < doc_len(list); i++) {
        struct str name = doc_str(doc_at(list, i), STR(""));
        if (capability_bits(name) == 0)
            path_invalid(errors, AT_INDEX(AT(path, field), i), doc_at(list, i), name,
                         "must be ALL or the name of a capability, such as NET_BIND_SERVICE");
    }
}

void validate_container_security(const struct doc *container, const struct field_path *path,
                                 struct field_errors *errors)
{
    const struct doc *security = doc_get(container, "securityContext");
    const struct doc *escalation = doc_get(security, "allowPrivilegeEscalation"),
                     *proc = doc_get(security, "procMount"),
                     *added = doc_path(security, "capabilities", "add", NULL);
    const struct field_path *here = AT(path, "securityContext");
    check_shared(security, here, errors);
    check_capabilities(doc_get(security, "capabilities"), "add", AT(here, "capabilities"), errors);
    check_capabilities(doc_get(security, "capabilities"), "drop", AT(here, "capabilities"), errors);
    if (doc_str(proc, STR("")).len > 0 && !str_is(proc->text, "Default"))
        path_unsupported(errors, AT(here, "procMount"), proc, proc->text, "Default");
    if (!escalation || doc_bool(escalation, true))
        return;
    if (doc_bool(doc_get(security, "privileged"), false))
        path_invalid(errors, here, security, STR("privileged"),
                     "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    for (size_t i = 0; i < doc_len(added); i++)
        if (str_is(doc_str(doc_at(added, i), STR("")), "CAP_SYS_ADMIN"))
            path_invalid(
                errors, here, security, STR("CAP_SYS_ADMIN"),
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
}

void validate_pod_security(const struct doc *spec, const struct field_path *path, struct field_errors *errors)
{
    const struct doc *security = doc_get(spec, "securityContext"),
                     *groups = doc_get(security, "supplementalGroups"), *users = doc_get(spec, "hostUsers");
    const struct field_path *here = AT(path, "securityContext");
    check_shared(security, here, errors);
    check_id(security, "fsGroup", here, errors);
    for (size_t i = 0; i < doc_len(groups); i++) {
        int64_t id = doc_int(doc_at(groups, i), -1);
        if (id < 0 || id > INT32_MAX)
            path_invalid_int(errors, AT_INDEX(AT(here, "supplementalGroups"), i), doc_at(groups, i), id,
                             "must be between 0 and 2147483647, inclusive");
    }
    if (doc_len(groups) >= CONTAINER_GROUPS_MAX)
        path_too_many(errors, AT(here, "supplementalGroups"), groups, doc_len(groups),
                      CONTAINER_GROUPS_MAX - 1);
    if (doc_len(doc_get(security, "sysctls")) > 0)
        path_forbidden(errors, AT(here, "sysctls"), doc_get(security, "sysctls"),
                       "tasks share the machine's kernel settings");
    if (users && !doc_bool(users, true))
        path_forbidden(errors, AT(path, "hostUsers"), users, "tasks get no user namespace of their own");
}

/* --- a namespace's user ids --------------------------------------------------------------------------- */

bool uid_range_read(struct str text, struct uid_range *ret)
{
    struct str from, to;
    int64_t low, high;
    if (!str_cut(text, '-', &from, &to) || !str_to_i64(from, 1, UINT32_MAX - 1, &low) ||
        !str_to_i64(to, low, UINT32_MAX - 1, &high))
        return false;
    CHECK(low > 0 && low <= high && high < UINT32_MAX);
    *ret = (struct uid_range){(uint32_t)low, (uint32_t)(high - low + 1)};
    return true;
}

void validate_uid_range(const struct doc *namespace_, struct field_errors *errors)
{
    const struct doc *text = doc_path(namespace_, "metadata", "annotations", UID_RANGE_KEY, NULL);
    struct uid_range range;
    if (text && !uid_range_read(doc_str(text, STR("")), &range))
        path_invalid(errors, AT_KEY(AT(AT(NULL, "metadata"), "annotations"), STR(UID_RANGE_KEY)), text,
                     doc_str(text, STR("")), "must be FROM-TO, two user ids above 0 in order");
}
