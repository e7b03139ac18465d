/* load_policy.c - reads the fields of the policy's table (policy.h) from a cluster document. */
#include "core/model/load.h"

/* Fields of the same objects that are no policy constants; other files read them. */
static const struct {
    const char *object, *keys[8];
} others[] = {
    {"settings", {"chipResource", "checkpointDir", "priorityClasses", "numberFrom"}},
    {"queues.fairSharing", {"preemptionStrategies"}},
    {"repair", {"hooks"}},
};
enum { KEYS_MAX = 64, OBJECTS_MAX = 8 };

/* The known keys of one object of the document, and those keys whose values are objects. */
struct keys {
    const char *all[KEYS_MAX + 1];
    size_t count;
    const char *objects[OBJECTS_MAX];
    size_t object_count;
};

static void add_key(struct keys *keys, const char *key)
{
    CHECK(keys->count < KEYS_MAX);
    keys->all[keys->count++] = key;
}

/* Returns the part of the field's path below `object`, such as "factor" or "thresholds.tickets", or NULL if
 * the field is not below it. */
static const char *path_below(const struct policy_field *field, const char *object)
{
    size_t len = strlen(object);
    bool below = strncmp(field->path, object, len) == 0 && field->path[len] == '.';
    return below ? field->path + len + 1 : NULL;
}

static void find_keys(struct loader *loader, const char *object, struct keys *keys)
{
    for (size_t i = 0; i < policy_field_count; i++) {
        const char *below = path_below(&policy_fields[i], object);
        size_t len = below ? strcspn(below, ".") : 0;
        if (!below)
            continue;
        const char *last = keys->object_count ? keys->objects[keys->object_count - 1] : "";
        if (!below[len]) {
            add_key(keys, below);
        } else if (strlen(last) != len || strncmp(last, below, len) != 0) { /* a new one: see policy_fields */
            CHECK(keys->object_count < OBJECTS_MAX);
            const char *key = arena_strdup(&loader->scratch, (struct str){below, len});
            keys->objects[keys->object_count++] = key;
            add_key(keys, key);
        }
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        for (size_t k = 0; strcmp(others[i].object, object) == 0 && others[i].keys[k]; k++)
            add_key(keys, others[i].keys[k]);
}

static bool read_choice(struct loader *loader, const struct field *field, const struct policy_field *row,
                        int64_t *ret_value)
{
    struct buf range BUF_CLEANUP = {0};
    struct str text;
    if (!load_text(loader, field, &text))
        return false;
    for (int64_t i = 0; i <= row->max; i++) {
        if (str_is(text, row->names[i])) {
            *ret_value = i;
            return true;
        }
        buf_printf(&range, "%s\"%s\"", i ? ", " : "", row->names[i]);
    }
    load_fail(loader, field, "FieldValueNotSupported",
              "Unsupported value: \"" STR_FORMAT "\": supported values: " STR_FORMAT,
              STR_ARG(load_excerpt(text)), STR_ARG(buf_str(&range)));
    return false;
}

static bool read_bytes(struct loader *loader, const struct field *field, const struct policy_field *row,
                       int64_t *ret_bytes)
{
    struct buf range BUF_CLEANUP = {0};
    int64_t milli;
    if (!load_quantity(loader, field, &milli))
        return false;
    *ret_bytes = milli / 1000;
    if (*ret_bytes >= row->min && *ret_bytes <= row->max)
        return true;
    policy_print_range(row, &range);
    load_fail(loader, field, "FieldValueInvalid", "Invalid value: must be a quantity, " STR_FORMAT,
              STR_ARG(buf_str(&range)));
    return false;
}

static bool read_value(struct loader *loader, const struct field *field, const struct policy_field *row,
                       int64_t *ret_value)
{
    bool on;
    switch (row->type) {
    case POLICY_COUNT:
        return load_int(loader, field, row->min, row->max, ret_value);
    case POLICY_DURATION:
        return load_duration(loader, field, row->min, row->max, ret_value);
    case POLICY_SECONDS:
        if (!load_int(loader, field, row->min / NS_PER_SECOND, row->max / NS_PER_SECOND, ret_value))
            return false;
        *ret_value *= NS_PER_SECOND;
        return true;
    case POLICY_BYTES:
        return read_bytes(loader, field, row, ret_value);
    case POLICY_SWITCH:
        if (!load_bool(loader, field, &on))
            return false;
        *ret_value = on;
        return true;
    case POLICY_CHOICE:
        return read_choice(loader, field, row, ret_value);
    }
    CHECK_UNREACHABLE();
}

static void read_object(struct loader *loader, const struct field *field, const char *object)
{
    struct keys keys = {0};
    find_keys(loader, object, &keys);
    load_object(loader, field, keys.all);
    for (size_t i = 0; i < policy_field_count; i++) {
        const struct policy_field *row = &policy_fields[i];
        const char *key = path_below(row, object);
        int64_t value;
        if (!key || strchr(key, '.'))
            continue;
        struct field at = field_get(field, key);
        if (read_value(loader, &at, row, &value))
            policy_set(&loader->cluster->policy, row, value);
    }
    for (size_t i = 0; i < keys.object_count; i++) {
        struct field below = field_get(field, keys.objects[i]);
        read_object(loader, &below, arena_printf(&loader->scratch, "%s.%s", object, keys.objects[i]).data);
    }
}

/* Checks the bounds between two fields, and sets the default heartbeat, which depends on the lease. */
static void check_pairs(struct loader *loader, const struct field *settings, const struct field *queues)
{
    struct policy *policy = &loader->cluster->policy;
    struct field heartbeat = field_get(settings, "heartbeat");
    struct field wait = field_get(queues, "waitForPodsReady"), again = field_get(&wait, "requeuingStrategy");
    struct field most = field_get(&again, "backoffMaxSeconds");
    if (!policy->heartbeat_ns)
        policy->heartbeat_ns =
            policy->lease_ns / 3 < HEARTBEAT_DEFAULT_NS ? policy->lease_ns / 3 : HEARTBEAT_DEFAULT_NS;
    if (policy->heartbeat_ns > policy->lease_ns / 2)
        load_fail(
            loader, &heartbeat, "FieldValueInvalid",
            "Invalid value: must be at most half of the lease, so that one lost heartbeat loses no machine");
    if (policy->queues.backoff_max_ns < policy->queues.backoff_base_ns)
        load_fail(loader, &most, "FieldValueInvalid",
                  "Invalid value: must not be less than backoffBaseSeconds");
}

void load_policy(struct loader *loader, const struct field *spec)
{
    struct field settings = field_get(spec, "settings"), queues = field_get(spec, "queues");
    struct field repair = field_get(spec, "repair");
    loader->cluster->policy = policy_default();
    read_object(loader, &settings, "settings");
    read_object(loader, &queues, "queues");
    read_object(loader, &repair, "repair");
    check_pairs(loader, &settings, &queues);
}
