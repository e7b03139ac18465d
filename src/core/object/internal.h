/* internal.h - the store itself, for the files of this folder only. */
#ifndef PHX_CORE_OBJECT_INTERNAL_H
#define PHX_CORE_OBJECT_INTERNAL_H

#include "base/list.h"
#include "core/object/life.h"

struct object_list {
    VEC(struct object *) sorted; /* by namespace, then name */
    uint64_t version;
};

struct owner_entry {
    obj_id owner;
    VEC(obj_id) uids;      /* dependents, ascending */
    struct list_node node; /* in object_store.owner_entries */
};

struct uid_queue {
    VEC(obj_id) uids;
    size_t next; /* entries before it are taken */
};

struct object_store {
    struct object_list kinds[OBJECT_KINDS];
    struct u64_map by_uid; /* -> struct object */
    struct u64_map owners; /* -> struct owner_entry */
    struct list_node owner_entries;
    struct uid_queue gone, doubtful;
    VEC(obj_id) waiting;
    bool awake;                /* core/collect.c has work */
    VEC(struct object *) dead; /* freed when the next step begins */
    VEC(struct arena) dead_arenas;
};

/* Finds the index of (namespace, name) in the sorted list, or where it would be inserted. */
size_t object_place(const struct object_list *list, struct str namespace_, struct str name, bool *ret_found);
void object_insert(struct object_store *store, struct object *object);
void object_take_out(struct object_store *store, struct object *object);
struct object *object_make(enum object_kind kind, obj_id uid, struct arena *arena, struct doc *document);
void object_free(struct object *object);

#endif
