/* map.c - open addressing with linear probing. Removal shifts later entries back, so there are no tombstones,
 * and probes in an old map are as short as in a new one. At most 3/4 of the slots are used. */
#include "base/map.h"

#include "base/arena.h"
#include "base/check.h"
#include "base/hash.h"

enum { CAP_FIRST = 16 };

struct str_map_slot {
    struct str key;
    uint64_t hash;
    void *value; /* NULL: free */
};

static uint64_t str_hash(struct str key)
{
    return hash_words(0, key.data, key.len);
}

/* Returns the key's slot, or the free one where it would go. The map must have a free slot. */
static struct str_map_slot *str_find(const struct str_map *map, struct str key, uint64_t hash)
{
    size_t mask = map->cap - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        struct str_map_slot *slot = &map->slots[at];
        if (!slot->value || (slot->hash == hash && str_equal(slot->key, key)))
            return slot;
    }
}

static size_t grown_cap(size_t cap)
{
    CHECK(cap <= SIZE_MAX / 128);
    return cap ? cap * 2 : CAP_FIRST;
}

static void str_grow(struct str_map *map)
{
    struct str_map old = *map;
    map->cap = grown_cap(old.cap);
    map->slots = mem_alloc(map->cap * sizeof *map->slots);
    for (size_t i = 0; i < old.cap; i++) {
        if (old.slots[i].value)
            *str_find(map, old.slots[i].key, old.slots[i].hash) = old.slots[i];
    }
    mem_free(old.slots);
}

void *str_map_get(const struct str_map *map, struct str key)
{
    return map->len ? str_find(map, key, str_hash(key))->value : NULL;
}

void *str_map_put(struct str_map *map, struct str key, void *value)
{
    CHECK(value);
    if ((map->len + 1) * 4 > map->cap * 3)
        str_grow(map);
    uint64_t hash = str_hash(key);
    struct str_map_slot *slot = str_find(map, key, hash);
    void *old = slot->value;
    /* The key is replaced too: the old one may be part of the old value. */
    *slot = (struct str_map_slot){key, hash, value};
    map->len += !old;
    return old;
}

void *str_map_remove(struct str_map *map, struct str key)
{
    if (!map->len)
        return NULL;
    struct str_map_slot *slot = str_find(map, key, str_hash(key));
    void *old = slot->value;
    if (!old)
        return NULL;
    size_t mask = map->cap - 1, hole = (size_t)(slot - map->slots);
    for (size_t at = (hole + 1) & mask; map->slots[at].value; at = (at + 1) & mask) {
        /* An entry may move back into the hole unless its home is after the hole. */
        size_t home = map->slots[at].hash & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            map->slots[hole] = map->slots[at];
            hole = at;
        }
    }
    map->slots[hole] = (struct str_map_slot){0};
    map->len--;
    return old;
}

void str_map_done(struct str_map *map)
{
    mem_free(map->slots);
    *map = (struct str_map){0};
}

struct u64_map_slot {
    uint64_t key;
    void *value; /* NULL: free */
};

static struct u64_map_slot *u64_find(const struct u64_map *map, uint64_t key)
{
    size_t mask = map->cap - 1;
    for (size_t at = hash_mix(key) & mask;; at = (at + 1) & mask) {
        struct u64_map_slot *slot = &map->slots[at];
        if (!slot->value || slot->key == key)
            return slot;
    }
}

static void u64_grow(struct u64_map *map)
{
    struct u64_map old = *map;
    map->cap = grown_cap(old.cap);
    map->slots = mem_alloc(map->cap * sizeof *map->slots);
    for (size_t i = 0; i < old.cap; i++) {
        if (old.slots[i].value)
            *u64_find(map, old.slots[i].key) = old.slots[i];
    }
    mem_free(old.slots);
}

void *u64_map_get(const struct u64_map *map, uint64_t key)
{
    return map->len ? u64_find(map, key)->value : NULL;
}

void *u64_map_put(struct u64_map *map, uint64_t key, void *value)
{
    CHECK(value);
    if ((map->len + 1) * 4 > map->cap * 3)
        u64_grow(map);
    struct u64_map_slot *slot = u64_find(map, key);
    void *old = slot->value;
    *slot = (struct u64_map_slot){key, value};
    map->len += !old;
    return old;
}

void *u64_map_remove(struct u64_map *map, uint64_t key)
{
    if (!map->len)
        return NULL;
    struct u64_map_slot *slot = u64_find(map, key);
    void *old = slot->value;
    if (!old)
        return NULL;
    size_t mask = map->cap - 1, hole = (size_t)(slot - map->slots);
    for (size_t at = (hole + 1) & mask; map->slots[at].value; at = (at + 1) & mask) {
        size_t home = hash_mix(map->slots[at].key) & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            map->slots[hole] = map->slots[at];
            hole = at;
        }
    }
    map->slots[hole] = (struct u64_map_slot){0};
    map->len--;
    return old;
}

void u64_map_done(struct u64_map *map)
{
    mem_free(map->slots);
    *map = (struct u64_map){0};
}
