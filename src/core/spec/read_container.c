/* read_container.c - containers and volumes of a pod template. */
#include "base/check.h"
#include "base/units.h"
#include "core/spec/read.h"
#include "core/spec/schema.h"

enum { MODE_DEFAULT = 0644 };

static struct str text_at(const struct doc *object, const char *key)
{
    return doc_str(doc_get(object, key), STR(""));
}

/* --- environment -------------------------------------------------------------------------------------- */

static void read_resource(const struct doc *from, struct env_spec *ret)
{
    ret->source = ENV_RESOURCE;
    ret->value = text_at(from, "resource");
    ret->object = text_at(from, "containerName");
    ret->divisor_milli = 1000;
    int64_t milli;
    const struct doc *divisor = doc_get(from, "divisor");
    if (divisor && schema_quantity(divisor, &milli) && milli > 0)
        ret->divisor_milli = milli;
    CHECK(ret->divisor_milli > 0);
}

/* Returns false for a source that is a file of a volume: the document keeps it, but nothing acts on it
 * (docs/jobset.md). */
static bool read_env_source(const struct doc *from, struct env_spec *ret)
{
    const struct doc *part;
    if (doc_len(part = doc_get(from, "fieldRef")) > 0) {
        ret->source = ENV_FIELD;
        ret->value = text_at(part, "fieldPath");
    } else if (doc_len(part = doc_get(from, "resourceFieldRef")) > 0) {
        read_resource(part, ret);
    } else if (doc_len(part = doc_get(from, "configMapKeyRef")) > 0 ||
               doc_len(part = doc_get(from, "secretKeyRef")) > 0) {
        ret->source = part == doc_get(from, "configMapKeyRef") ? ENV_CONFIG_MAP : ENV_SECRET;
        ret->value = text_at(part, "key");
        ret->object = text_at(part, "name");
        ret->optional = doc_bool(doc_get(part, "optional"), false);
    } else {
        return false;
    }
    return true;
}

struct env_spec *read_env(struct arena *arena, const struct doc *list, size_t *ret_count)
{
    struct env_spec *env = ARENA_ARRAY(arena, struct env_spec, doc_len(list));
    size_t count = 0;
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *item = doc_at(list, i), *from = doc_get(item, "valueFrom");
        struct env_spec var = {.name = text_at(item, "name"), .value = text_at(item, "value")};
        if (doc_len(from) == 0 || read_env_source(from, &var))
            env[count++] = var;
    }
    CHECK(count <= doc_len(list));
    *ret_count = count;
    return env;
}

static void read_env_from(struct arena *arena, const struct doc *list, struct container_spec *ret)
{
    ret->env_from = ARENA_ARRAY(arena, struct env_from_spec, doc_len(list));
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *item = doc_at(list, i), *map = doc_get(item, "configMapRef");
        const struct doc *from = doc_len(map) > 0 ? map : doc_get(item, "secretRef");
        if (doc_len(from) == 0)
            continue;
        ret->env_from[ret->env_from_count++] = (struct env_from_spec){
            .prefix = text_at(item, "prefix"),
            .object = text_at(from, "name"),
            .secret = from != map,
            .optional = doc_bool(doc_get(from, "optional"), false),
        };
    }
    CHECK(ret->env_from_count <= doc_len(list));
}

/* --- probes and hooks --------------------------------------------------------------------------------- */

/* Reads a port number, or the name of one of the container's ports. Returns 0 if no port has that name. */
static uint16_t read_port(const struct doc *container, const struct doc *node)
{
    int64_t port = doc_int(node, 0);
    struct str name = doc_str(node, STR(""));
    const struct doc *ports = doc_get(container, "ports");
    if (name.len > 0 && !str_to_i64(name, 1, UINT16_MAX, &port))
        for (size_t i = 0; i < doc_len(ports) && port == 0; i++)
            if (str_equal(text_at(doc_at(ports, i), "name"), name))
                port = doc_int(doc_get(doc_at(ports, i), "containerPort"), 0);
    return port > 0 && port <= UINT16_MAX ? (uint16_t)port : 0;
}

static struct env_var *read_headers(struct arena *arena, const struct doc *list)
{
    struct env_var *headers = ARENA_ARRAY(arena, struct env_var, doc_len(list));
    for (size_t i = 0; i < doc_len(list); i++)
        headers[i] = (struct env_var){.name = text_at(doc_at(list, i), "name"),
                                      .value = text_at(doc_at(list, i), "value")};
    return headers;
}

static struct container_action read_action(struct arena *arena, const struct doc *container,
                                           const struct doc *node)
{
    struct container_action action = {.kind = ACTION_NONE};
    const struct doc *part;
    if ((part = doc_get(node, "exec")) && doc_len(doc_get(part, "command")) > 0) {
        action.kind = ACTION_EXEC;
        action.argv = read_strings(arena, doc_get(part, "command"), &action.argc);
    } else if (doc_len(part = doc_get(node, "httpGet")) > 0) {
        action.kind = ACTION_HTTP;
        action.tls = str_is(text_at(part, "scheme"), "HTTPS");
        action.path = text_at(part, "path");
        action.headers = read_headers(arena, doc_get(part, "httpHeaders"));
        action.header_count = doc_len(doc_get(part, "httpHeaders"));
    } else if (doc_len(part = doc_get(node, "tcpSocket")) > 0) {
        action.kind = ACTION_TCP;
    } else if (doc_len(part = doc_get(node, "sleep")) > 0) {
        int64_t seconds = read_seconds(doc_get(part, "seconds"), 0);
        action.kind = ACTION_SLEEP;
        action.sleep_ns = (seconds > 0 ? seconds : 0) * NS_PER_SECOND;
    }
    CHECK(action.sleep_ns >= 0 && (action.sleep_ns == 0 || action.kind == ACTION_SLEEP));
    if (action.kind == ACTION_HTTP || action.kind == ACTION_TCP) {
        action.host = text_at(part, "host");
        action.port = read_port(container, doc_get(part, "port"));
    }
    return action;
}

static int64_t seconds_ns(const struct doc *probe, const char *field, int64_t fallback_s, int64_t least_s)
{
    int64_t seconds = read_seconds(doc_get(probe, field), fallback_s);
    CHECK(least_s >= 0 && fallback_s >= least_s && seconds <= INT64_MAX / NS_PER_SECOND);
    return (seconds < least_s ? least_s : seconds) * NS_PER_SECOND;
}

static int32_t threshold(const struct doc *probe, const char *field, int64_t fallback)
{
    CHECK(fallback >= 1);
    int64_t count = doc_int(doc_get(probe, field), fallback);
    return count < 1 ? (int32_t)fallback : count > 1000000 ? 1000000 : (int32_t)count;
}

static struct container_probe read_probe(struct arena *arena, const struct doc *container, const char *field)
{
    const struct doc *node = doc_get(container, field);
    struct container_probe probe = {.action = read_action(arena, container, node), .grace_ns = -1};
    if (probe.action.kind == ACTION_SLEEP) /* hooks only */
        probe.action.kind = ACTION_NONE;
    probe.initial_delay_ns = seconds_ns(node, "initialDelaySeconds", 0, 0);
    probe.period_ns = seconds_ns(node, "periodSeconds", 10, 1);
    probe.timeout_ns = seconds_ns(node, "timeoutSeconds", 1, 1);
    probe.success_threshold = threshold(node, "successThreshold", 1);
    probe.failure_threshold = threshold(node, "failureThreshold", 3);
    if (doc_get(node, "terminationGracePeriodSeconds"))
        probe.grace_ns = seconds_ns(node, "terminationGracePeriodSeconds", 0, 0);
    return probe;
}

/* --- containers --------------------------------------------------------------------------------------- */

static void read_rules(struct arena *arena, const struct doc *list, struct container_launch *ret)
{
    ret->rules = ARENA_ARRAY(arena, struct container_rule, doc_len(list));
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *codes = doc_get(doc_at(list, i), "exitCodes"), *values = doc_get(codes, "values");
        if (!str_is(text_at(doc_at(list, i), "action"), "Restart") || doc_len(codes) == 0)
            continue;
        size_t count = doc_len(values) < 255 ? doc_len(values) : 255;
        struct container_rule rule = {str_is(text_at(codes, "operator"), "NotIn"),
                                      ARENA_ARRAY(arena, int32_t, count), count};
        for (size_t k = 0; k < count; k++)
            rule.codes[k] = (int32_t)doc_int(doc_at(values, k), 0);
        ret->rules[ret->rule_count++] = rule;
    }
    CHECK(ret->rule_count <= doc_len(list));
}

static void read_mounts(struct arena *arena, const struct doc *list, struct container_launch *ret)
{
    ret->mounts = ARENA_ARRAY(arena, struct container_mount, doc_len(list));
    ret->mount_count = doc_len(list);
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *item = doc_at(list, i);
        struct str sub_path = text_at(item, "subPath"), expression = text_at(item, "subPathExpr");
        ret->mounts[i] = (struct container_mount){text_at(item, "name"), text_at(item, "mountPath"),
                                                  sub_path.len > 0 ? sub_path : expression,
                                                  doc_bool(doc_get(item, "readOnly"), false)};
    }
}

static enum container_restart restart_of(struct str policy, enum restart_policy pod)
{
    if (str_is(policy, "Always") || (policy.len == 0 && pod == RESTART_ALWAYS))
        return RERUN_ALWAYS;
    if (str_is(policy, "OnFailure") || (policy.len == 0 && pod == RESTART_ON_FAILURE))
        return RERUN_ON_FAILURE;
    return RERUN_NEVER;
}

static void read_container(struct arena *arena, const struct doc *spec, const struct doc *node, bool init,
                           const struct pod_spec *pod, struct container_spec *ret)
{
    struct str restart = text_at(node, "restartPolicy");
    struct container_launch *launch = &ret->launch;
    *ret = (struct container_spec){.own_restart = restart.len > 0};
    *launch = (struct container_launch){
        .name = text_at(node, "name"),
        .role = !init                       ? CONTAINER_MAIN
                : str_is(restart, "Always") ? CONTAINER_SIDECAR
                                            : CONTAINER_INIT,
        .restart = restart_of(restart, pod->restart_policy),
        .working_dir = text_at(node, "workingDir"),
        .run_as_user = read_security_id(spec, node, "runAsUser"),
        .run_as_group = read_security_id(spec, node, "runAsGroup"),
    };
    read_security(arena, spec, node, &launch->security);
    read_container_resources(node, ret);
    ret->command = read_strings(arena, doc_get(node, "command"), &ret->command_count);
    ret->args = read_strings(arena, doc_get(node, "args"), &ret->arg_count);
    ret->env = read_env(arena, doc_get(node, "env"), &ret->env_count);
    read_env_from(arena, doc_get(node, "envFrom"), ret);
    read_rules(arena, doc_get(node, "restartPolicyRules"), launch);
    read_mounts(arena, doc_get(node, "volumeMounts"), launch);
    launch->probes[PROBE_STARTUP] = read_probe(arena, node, "startupProbe");
    launch->probes[PROBE_READINESS] = read_probe(arena, node, "readinessProbe");
    launch->probes[PROBE_LIVENESS] = read_probe(arena, node, "livenessProbe");
    const struct doc *lifecycle = doc_get(node, "lifecycle");
    launch->post_start = read_action(arena, node, doc_get(lifecycle, "postStart"));
    launch->pre_stop = read_action(arena, node, doc_get(lifecycle, "preStop"));
}

/* --- volumes ------------------------------------------------------------------------------------------ */

static uint32_t read_mode(const struct doc *node, uint32_t fallback)
{
    return (uint32_t)doc_int(node, fallback) & 0777;
}

static void read_items(struct arena *arena, const struct doc *list, struct file_source *ret)
{
    ret->items = ARENA_ARRAY(arena, struct file_item, doc_len(list));
    ret->item_count = doc_len(list);
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *item = doc_at(list, i);
        struct file_item *file = &ret->items[i];
        *file = (struct file_item){.path = text_at(item, "path"),
                                   .key = text_at(item, "key"),
                                   .mode = read_mode(doc_get(item, "mode"), ret->mode)};
        if (ret->origin == FILES_FIELDS && !read_env_source(item, &file->from))
            file->from = (struct env_spec){.source = ENV_VALUE};
    }
}

static void add_source(struct arena *arena, struct volume_spec *volume, enum file_origin origin,
                       const struct doc *node, uint32_t mode)
{
    struct str name = text_at(node, "name");
    struct file_source *source = &volume->sources[volume->source_count++];
    *source = (struct file_source){.origin = origin,
                                   .object = name.len > 0 ? name : text_at(node, "secretName"),
                                   .optional = doc_bool(doc_get(node, "optional"), false),
                                   .mode = mode};
    read_items(arena, doc_get(node, "items"), source);
}

static const char *const origin_fields[] = {"configMap", "secret", "downwardAPI"};
_Static_assert(FILES_CONFIG_MAP == 0 && FILES_SECRET == 1 && FILES_FIELDS == 2, "the order of the fields");

static void read_files(struct arena *arena, const struct doc *node, struct volume_spec *volume)
{
    const struct doc *projected = doc_get(node, "projected"), *list = doc_get(projected, "sources");
    volume->launch.kind = VOLUME_FILES;
    volume->sources = ARENA_ARRAY(arena, struct file_source, doc_len(list) * 3 + 1);
    for (int origin = 0; origin < 3; origin++) {
        const struct doc *part = doc_get(node, origin_fields[origin]);
        if (part) {
            add_source(arena, volume, (enum file_origin)origin, part,
                       read_mode(doc_get(part, "defaultMode"), MODE_DEFAULT));
            return;
        }
    }
    uint32_t mode = read_mode(doc_get(projected, "defaultMode"), MODE_DEFAULT);
    for (size_t i = 0; i < doc_len(list); i++)
        for (int origin = 0; origin < 3; origin++) {
            const struct doc *part = doc_get(doc_at(list, i), origin_fields[origin]);
            if (part)
                add_source(arena, volume, (enum file_origin)origin, part, mode);
        }
    CHECK(volume->source_count <= doc_len(list) * 3);
}

static void read_volume(struct arena *arena, const struct doc *node, struct volume_spec *ret)
{
    *ret = (struct volume_spec){.launch = {.name = text_at(node, "name"), .kind = VOLUME_EMPTY}};
    const struct doc *part;
    int64_t milli = 0;
    if ((part = doc_get(node, "emptyDir"))) {
        ret->launch.kind = str_is(text_at(part, "medium"), "Memory") ? VOLUME_MEMORY : VOLUME_EMPTY;
        if (doc_get(part, "sizeLimit") && schema_quantity(doc_get(part, "sizeLimit"), &milli))
            ret->launch.size_bytes = milli / 1000;
    } else if ((part = doc_get(node, "hostPath"))) {
        ret->launch.kind = VOLUME_HOST;
        ret->launch.source = text_at(part, "path");
        ret->launch.type = text_at(part, "type");
    } else if ((part = doc_get(node, "persistentVolumeClaim"))) {
        ret->launch.kind = VOLUME_CLAIM;
        ret->launch.source = text_at(part, "claimName");
        ret->read_only = doc_bool(doc_get(part, "readOnly"), false);
    } else if (doc_get(node, "configMap") || doc_get(node, "secret") || doc_get(node, "downwardAPI") ||
               doc_get(node, "projected")) {
        read_files(arena, node, ret);
    } else {
        ret->unsupported = doc_len(node) > 1; /* a name alone is an emptyDir */
    }
}

/* --- the pod ------------------------------------------------------------------------------------------ */

static bool needs_more(const struct container_spec *container)
{
    const struct container_launch *launch = &container->launch;
    bool probed = false;
    for (int i = 0; i < PROBE_KINDS; i++)
        probed = probed || launch->probes[i].action.kind != ACTION_NONE;
    return probed || container->own_restart || !security_is_default(&launch->security) ||
           launch->rule_count > 0 || launch->mount_count > 0 || launch->post_start.kind != ACTION_NONE ||
           launch->pre_stop.kind != ACTION_NONE;
}

static bool uses_config(const struct pod_spec *pod)
{
    bool uses = false;
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct container_spec *container = &pod->containers[i];
        uses = uses || container->env_from_count > 0;
        for (size_t k = 0; k < container->env_count && !uses; k++)
            uses = container->env[k].source == ENV_CONFIG_MAP || container->env[k].source == ENV_SECRET;
    }
    for (size_t i = 0; i < pod->volume_count; i++)
        uses = uses || pod->volumes[i].source_count > 0 || pod->volumes[i].launch.kind == VOLUME_CLAIM;
    return uses;
}

void read_containers(struct arena *arena, const struct doc *spec, struct pod_spec *pod)
{
    const struct doc *mains = doc_get(spec, "containers"), *inits = doc_get(spec, "initContainers");
    const struct doc *volumes = doc_get(spec, "volumes");
    CHECK(pod->container_count == 0 && pod->volume_count == 0);
    pod->containers = ARENA_ARRAY(arena, struct container_spec, doc_len(mains) + doc_len(inits));
    for (size_t i = 0; i < doc_len(mains); i++)
        read_container(arena, spec, doc_at(mains, i), false, pod, &pod->containers[pod->container_count++]);
    for (size_t i = 0; i < doc_len(inits); i++)
        read_container(arena, spec, doc_at(inits, i), true, pod, &pod->containers[pod->container_count++]);
    pod->volumes = ARENA_ARRAY(arena, struct volume_spec, doc_len(volumes));
    for (size_t i = 0; i < doc_len(volumes); i++)
        read_volume(arena, doc_at(volumes, i), &pod->volumes[pod->volume_count++]);
    CHECK(pod->container_count == doc_len(mains) + doc_len(inits) && pod->volume_count == doc_len(volumes));
    pod->uses_config = uses_config(pod);
    pod->plain = pod->container_count == 1 && !needs_more(&pod->containers[0]);
}
