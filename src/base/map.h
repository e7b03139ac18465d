/* map.h - hash indexes from a string or a 64-bit number to a pointer.
 *
 * A map is an index only: it has no iteration, so no hash order can reach a digest. A caller that needs an
 * order keeps the items in a vec or list too. Keys of string maps are not copied: they must live as long as
 * the entry (usually they are part of the value). A zeroed struct is ready for use. Not thread-safe.
 */
#ifndef PHX_BASE_MAP_H
#define PHX_BASE_MAP_H

#include "base/str.h"

struct str_map {
    struct str_map_slot *slots;
    size_t len, cap;
};
void *str_map_get(const struct str_map *map, struct str key); /* NULL: absent */
/* Puts a value, which is not NULL. Returns the value that it replaces, or NULL; the new key then replaces the
 * old. */
void *str_map_put(struct str_map *map, struct str key, void *value);
void *str_map_remove(struct str_map *map, struct str key); /* the removed value or NULL */
void str_map_done(struct str_map *map);

struct u64_map {
    struct u64_map_slot *slots;
    size_t len, cap;
};
void *u64_map_get(const struct u64_map *map, uint64_t key);
void *u64_map_put(struct u64_map *map, uint64_t key, void *value);
void *u64_map_remove(struct u64_map *map, uint64_t key);
void u64_map_done(struct u64_map *map);

#endif
