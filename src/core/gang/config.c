/* config.c - ConfigMaps and Secrets in a pod's environment and files, and the claims that the pod mounts.
 * A pod that refers to a missing object is not started (CreateContainerConfigError). Its start is tried again
 * when such an object is written. */
#include "base/base64.h"
#include "doc/pack.h"
#include "core/gang/config.h"
#include "core/gang/internal.h"

static void take_members(const struct doc *map, bool encoded, struct arena *arena,
                         struct config_value *values, size_t *count)
{
    for (size_t i = 0; i < doc_len(map); i++) {
        const struct doc_member *member = &map->object.members[i];
        struct str value = doc_str(member->value, STR(""));
        struct buf bytes BUF_CLEANUP = {0};
        if (encoded && !base64_decode(value, &bytes))
            continue; /* cannot happen: validation refuses such a value */
        values[(*count)++] =
            (struct config_value){member->key, encoded ? arena_str(arena, buf_str(&bytes)) : value};
    }
}

struct config_value *config_values(const struct object_store *objects, bool secret, struct str namespace_,
                                   struct str name, struct arena *arena, size_t *ret_count)
{
    *ret_count = 0;
    const struct object *object =
        objects ? object_find(objects, secret ? OBJECT_SECRET : OBJECT_CONFIG_MAP, namespace_, name) : NULL;
    if (!object)
        return NULL;
    const struct doc *data = doc_unpacked(arena, doc_get(object->document, "data"));
    const struct doc *binary = doc_unpacked(arena, doc_get(object->document, "binaryData"));
    struct config_value *values =
        ARENA_ARRAY(arena, struct config_value, doc_len(data) + doc_len(binary) + 1);
    take_members(data, secret, arena, values, ret_count);
    if (!secret)
        take_members(binary, true, arena, values, ret_count);
    return values;
}

const struct config_value *config_find(const struct config_value *values, size_t count, struct str key)
{
    for (size_t i = 0; i < count; i++)
        if (str_equal(values[i].key, key))
            return &values[i];
    return NULL;
}

/* --- present and missing objects ------------------------------------------------------------------------ */

struct look {
    const struct object_store *objects;
    struct str namespace_;
    struct arena *arena;
    struct buf *why;
    size_t bytes; /* of files */
};

static bool object_there(struct look *look, bool secret, struct str name, bool optional,
                         struct config_value **ret_values, size_t *ret_count)
{
    *ret_values = config_values(look->objects, secret, look->namespace_, name, look->arena, ret_count);
    if (*ret_values || optional)
        return true;
    buf_printf(look->why, "%s \"" STR_FORMAT "\" not found", secret ? "secret" : "configmap", STR_ARG(name));
    return false;
}

static bool key_there(struct look *look, bool secret, struct str name, struct str key, bool optional)
{
    struct config_value *values;
    size_t count;
    if (!object_there(look, secret, name, optional, &values, &count))
        return false;
    if (optional || config_find(values, count, key))
        return true;
    buf_printf(look->why, "couldn't find key " STR_FORMAT " in %s " STR_FORMAT "/" STR_FORMAT, STR_ARG(key),
               secret ? "Secret" : "ConfigMap", STR_ARG(look->namespace_), STR_ARG(name));
    return false;
}

static bool container_ready(struct look *look, const struct container_spec *container)
{
    struct config_value *values;
    size_t count;
    for (size_t i = 0; i < container->env_from_count; i++) {
        const struct env_from_spec *from = &container->env_from[i];
        if (!object_there(look, from->secret, from->object, from->optional, &values, &count))
            return false;
    }
    for (size_t i = 0; i < container->env_count; i++) {
        const struct env_spec *env = &container->env[i];
        if ((env->source == ENV_CONFIG_MAP || env->source == ENV_SECRET) &&
            !key_there(look, env->source == ENV_SECRET, env->object, env->value, env->optional))
            return false;
    }
    return true;
}

static bool source_ready(struct look *look, const struct file_source *source)
{
    struct config_value *values;
    size_t count;
    bool secret = source->origin == FILES_SECRET;
    if (source->origin == FILES_FIELDS)
        return true;
    if (!object_there(look, secret, source->object, source->optional, &values, &count))
        return false;
    for (size_t i = 0; i < source->item_count; i++)
        if (!key_there(look, secret, source->object, source->items[i].key, source->optional))
            return false;
    for (size_t i = 0; i < count; i++)
        look->bytes += values[i].value.len;
    if (look->bytes <= TASK_FILES_BYTES_MAX / 2) /* a projection may show a file twice */
        return true;
    buf_printf(look->why, "the files of its volumes exceed %d bytes", TASK_FILES_BYTES_MAX / 2);
    return false;
}

static bool claim_there(struct look *look, const struct volume_spec *volume)
{
    if (volume->launch.kind != VOLUME_CLAIM || !look->objects ||
        object_find(look->objects, OBJECT_CLAIM, look->namespace_, volume->launch.source))
        return true;
    buf_printf(look->why, "persistentvolumeclaim \"" STR_FORMAT "\" not found",
               STR_ARG(volume->launch.source));
    return false;
}

static bool config_ready(const struct object_store *objects, const struct task *task, struct buf *why)
{
    const struct pod_spec *pod = &task->job->rjob->job.pod;
    if (!pod->uses_config)
        return true;
    struct arena arena ARENA_CLEANUP = {0};
    struct look look = {objects, task->job->jobset->namespace_, &arena, why, 0};
    bool ready = true;
    for (size_t i = 0; i < pod->container_count && ready; i++)
        ready = container_ready(&look, &pod->containers[i]);
    for (size_t i = 0; i < pod->volume_count && ready; i++)
        ready = claim_there(&look, &pod->volumes[i]);
    for (size_t i = 0; i < pod->volume_count && ready; i++)
        for (size_t s = 0; s < pod->volumes[i].source_count && ready; s++)
            ready = source_ready(&look, &pod->volumes[i].sources[s]);
    return ready;
}

/* --- waiting -------------------------------------------------------------------------------------------- */

bool task_config_waits(struct step *step, struct task *task)
{
    CHECK(task->state == TASK_PLACED && task->job->rjob->job.pod.uses_config);
    struct buf why BUF_CLEANUP = {0};
    if (config_ready(step->objects, task, &why)) {
        if (task->containers)
            containers_restore(task, NULL, 0);
        return false;
    }
    const struct pod_spec *pod = &task->job->rjob->job.pod;
    struct arena arena ARENA_CLEANUP = {0};
    struct container_status *statuses = ARENA_ARRAY(&arena, struct container_status, pod->container_count);
    for (size_t i = 0; i < pod->container_count; i++)
        statuses[i] = (struct container_status){.name = pod->containers[i].launch.name,
                                                .role = pod->containers[i].launch.role,
                                                .reason = STR("CreateContainerConfigError"),
                                                .message = buf_str(&why)};
    bool news = !task->containers || !str_equal(task->containers[0].message, buf_str(&why));
    if (news) {
        containers_restore(task, statuses, (uint32_t)pod->container_count);
        step_note(step, true, "Failed", ref_task(task), "Error: " STR_FORMAT, STR_ARG(buf_str(&why)));
        step_changed(step, CHANGE_MODIFIED, ref_task(task));
        /* The JobSet shows why it waits. */
        step_changed(step, CHANGE_MODIFIED, ref_jobset(task->job->jobset));
    }
    vec_push(&step->jobs->config_waiters, task->uid);
    return true;
}
