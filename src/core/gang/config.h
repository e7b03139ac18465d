/* config.h - the values of ConfigMaps and Secrets, decoded, as pods refer to them (config.c). */
#ifndef PHX_CORE_GANG_CONFIG_H
#define PHX_CORE_GANG_CONFIG_H

#include "core/job/job.h"

struct config_value {
    struct str key, value;
};
/* Returns all values of a Secret or ConfigMap, decoded. The array lives in `arena`; its strings live there or
 * in the object. Returns NULL and sets *ret_count to 0 if the object does not exist. */
struct config_value *config_values(const struct object_store *objects, bool secret, struct str namespace_,
                                   struct str name, struct arena *arena, size_t *ret_count);
/* Returns the value with the key, or NULL if there is none. */
const struct config_value *config_find(const struct config_value *values, size_t count, struct str key);

#endif
