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
    size_t next; /* index of the next entry to take */
};

struct object_store {
    struct object_list kinds[OBJECT_KINDS];
    struct u64_map by_uid; /* -> struct object */
    struct u64_map owners; /* -> struct owner_entry */
    struct list_node owner_entries;
    struct uid_queue gone, doubtful;
    VEC(obj_id) waiting;
    bool awake;                /* core/react/collect.c has work */
    VEC(struct object *) dead; /* freed when the next step begins */
    VEC(struct arena) dead_arenas;
    struct str_map kept_by_namespace; /* -> struct kept_bytes (keep.c) */
    struct list_node kept;
    uint64_t kept_bytes;    /* of all namespaces */
    struct u64_map charges; /* for documents of job/ and admit/: uid -> struct charge */
    struct list_node charge_list;
};

/* Returns the index of (namespace, name) in the sorted list, or the index at which to insert it. */
size_t object_place(const struct object_list *list, struct str namespace_, struct str name, bool *ret_found);
/* Add an object to all indexes and sums, and remove it from them. The caller frees a removed object. */
void object_insert(struct object_store *store, struct object *object);
void object_take_out(struct object_store *store, struct object *object);
/* Returns a new object with a copy of the document. The object is not in the store yet. */
struct object *object_make(struct object_store *store, enum object_kind kind, obj_id uid,
                           const struct doc *document);
/* Returns a new object with the document itself, which must be in the form in which it is kept. `*arena`, in
 * which it lives, moves to the object. */
struct object *object_adopt(enum object_kind kind, obj_id uid, struct arena *arena, struct doc *document);
void object_free(struct object *object);

/* Returns whether the document has no member that must be packed, so it may be kept without a copy. */
bool object_is_kept_form(enum object_kind kind, const struct doc *document);
/* Charge bytes to a namespace, and release them. */
void kept_add(struct object_store *store, struct str namespace_, uint64_t bytes);
void kept_drop(struct object_store *store, struct str namespace_, uint64_t bytes);
/* Charges a document that job/ or admit/ keeps, in place of the earlier charge for `uid`. NULL: none. */
void kept_charge(struct object_store *store, obj_id uid, const struct doc *document);
void kept_done(struct object_store *store);
void kept_check(const struct object_store *store); /* CHECKs the sums */
/* Gives the object a copy of the document in the form in which it is kept. If the object is in the store,
 * updates the sums of bytes, and keeps the old document until the next step. */
void object_set_document(struct object_store *store, struct object *object, const struct doc *document);

#endif
