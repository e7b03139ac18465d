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
    bool awake;                /* core/react/collect.c has work */
    VEC(struct object *) dead; /* freed when the next step begins */
    VEC(struct arena) dead_arenas;
    struct str_map kept_by_namespace; /* -> struct kept_bytes (keep.c) */
    struct list_node kept;
    uint64_t kept_bytes;    /* of all namespaces */
    struct u64_map charges; /* of documents outside of this store: uid -> struct charge */
    struct list_node charge_list;
};

/* Finds the index of (namespace, name) in the sorted list, or where it would be inserted. */
size_t object_place(const struct object_list *list, struct str namespace_, struct str name, bool *ret_found);
void object_insert(struct object_store *store, struct object *object);
void object_take_out(struct object_store *store, struct object *object);
/* Makes an object that is not in the store yet; the document is copied. */
struct object *object_make(struct object_store *store, enum object_kind kind, obj_id uid,
                           const struct doc *document);
/* As object_make, with a document in the form in which it is kept: `*arena`, where it lives, is taken. */
struct object *object_adopt(enum object_kind kind, obj_id uid, struct arena *arena, struct doc *document);
void object_free(struct object *object);

/* Whether the document, which nobody else changes, may be kept as it is. */
bool object_is_kept_form(enum object_kind kind, const struct doc *document);
/* Charges bytes to a namespace, or gives them back. */
void kept_add(struct object_store *store, struct str namespace_, uint64_t bytes);
void kept_drop(struct object_store *store, struct str namespace_, uint64_t bytes);
/* Charges a document that is kept outside of this store, in place of what `uid` was charged with before;
 * NULL: it is gone. */
void kept_charge(struct object_store *store, obj_id uid, const struct doc *document);
void kept_done(struct object_store *store);
void kept_check(const struct object_store *store); /* aborts if the sums are wrong */
/* Gives the object a document, copied in the form in which it is kept. The old document lives until the next
 * step; the sums of bytes follow if the object is in the store. */
void object_set_document(struct object_store *store, struct object *object, const struct doc *document);

#endif
