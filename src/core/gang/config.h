/* config.h - the values of ConfigMaps and Secrets, decoded, as pods refer to them (config.c). */
#ifndef PHX_CORE_GANG_CONFIG_H
#define PHX_CORE_GANG_CONFIG_H

#include "core/job/job.h"

struct config_value {
    struct str key, value;
};
/* Returns all of an object's values, decoded, in `arena`; NULL with *ret_count 0: the object does not
 * exist. */
struct config_value *config_values(const struct object_store *objects, bool secret, struct str namespace_,
                                   struct str name, struct arena *arena, size_t *ret_count);
const struct config_value *config_find(const struct config_value *values, size_t count, struct str key);

#endif
