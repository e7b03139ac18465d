/* container.h - typed view of the containers and volumes of a pod template. Included by spec.h.
 *
 * The view names the source of a value (a ConfigMap's key, a field of the Pod); core/launch reads the value
 * when a task starts.
 */
#ifndef PHX_CORE_SPEC_CONTAINER_H
#define PHX_CORE_SPEC_CONTAINER_H

#include "core/words/container.h"

enum env_source { ENV_VALUE, ENV_FIELD, ENV_RESOURCE, ENV_CONFIG_MAP, ENV_SECRET };
struct env_spec {
    struct str name;
    enum env_source source;
    /* VALUE: the text with $(VAR) not yet expanded; FIELD: fieldPath; RESOURCE: resource; CONFIG_MAP, SECRET:
     * key */
    struct str value;
    struct str object;     /* CONFIG_MAP, SECRET: its name; RESOURCE: the container, empty: this one */
    int64_t divisor_milli; /* RESOURCE: 1000 when unset */
    bool optional;
};
struct env_from_spec {
    struct str prefix, object;
    bool secret, optional;
};

struct container_spec {
    /* In the form of the agent's message, with empty argv and env, and without unsupported probes. */
    struct container_launch launch;
    bool own_restart;           /* the container has a restartPolicy of its own */
    struct str *command, *args; /* $(VAR) not yet expanded */
    size_t command_count, arg_count;
    struct env_spec *env;
    size_t env_count;
    struct env_from_spec *env_from;
    size_t env_from_count;
    int64_t cpu_request_milli, memory_request_bytes;
};

/* A source of a volume that consists of files. */
enum file_origin { FILES_CONFIG_MAP, FILES_SECRET, FILES_FIELDS };
struct file_item {
    struct str path;
    struct str key;       /* of the ConfigMap or Secret */
    struct env_spec from; /* FIELDS */
    uint32_t mode;
};
struct file_source {
    enum file_origin origin;
    struct str object;
    bool optional;
    struct file_item *items; /* none: every key, under its own name */
    size_t item_count;
    uint32_t mode; /* mode of files without one of their own */
};
struct volume_spec {
    struct volume_launch launch; /* without files */
    bool unsupported;            /* no machine can mount a volume of this kind */
    bool read_only;
    struct file_source *sources;
    size_t source_count;
};

#endif
