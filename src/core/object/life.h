/* life.h - changes of stored objects: for write/, react/, log/ and the files of core/ itself. Other folders
 * use object.h. */
#ifndef PHX_CORE_OBJECT_LIFE_H
#define PHX_CORE_OBJECT_LIFE_H

#include "core/step.h"

/* metadata.finalizers that the control plane itself sets and removes. */
#define FINALIZER_FOREGROUND "foregroundDeletion"
#define FINALIZER_ORPHAN     "orphan"

struct object_store *object_store_new(void);
void object_store_free(struct object_store *store);
/* Frees the objects that the last step removed and the documents that it replaced. Called first in a step. */
void objects_bury(struct object_store *store);

/* Returns a copy of the document in the form in which it is kept (keep.c). */
struct doc *object_kept_form(struct arena *arena, enum object_kind kind, const struct doc *document);
/* Adds a new object with a copy of `document`, which must be converted, defaulted and valid, with an unused
 * name. `*arena`, in which it lives, moves to the store, which frees it at the next step. */
struct object *object_create(struct step *step, enum object_kind kind, struct arena *arena,
                             struct doc *document);
/* Replaces the document by a copy of `document`, with the status of the old one; `*arena` moves to the store
 * as in object_create. Does nothing if both mean the same. Removes a deleted object that has no finalizers
 * any more. */
void object_replace(struct step *step, struct object *object, struct arena *arena, struct doc *document);
/* Removes the object from the store, whatever its finalizers. */
void object_remove(struct step *step, struct object *object);

/* --- ownership, over all kinds -------------------------------------------------------------------------- */

struct dependents {
    const obj_id *uids;
    size_t count;
};
/* Returns the uids of the objects that name `owner` as an owner, ascending. Valid until the next change. */
struct dependents owners_dependents(const struct object_store *store, obj_id owner);

/* Returns whether react/collect.c has work: since the last call, an object was removed, doubted or made to
 * wait by one of the functions below. */
bool objects_awake(struct object_store *store);
/* Take the uid of a removed owner, and of an object whose owners may not exist; the oldest first. Return
 * false if there are no more. */
bool objects_take_gone(struct object_store *store, obj_id *ret_uid);
bool objects_take_doubtful(struct object_store *store, obj_id *ret_uid);
/* Queues the object for objects_take_doubtful if its document names owners. Called after each write. */
void objects_doubt(struct object_store *store, obj_id uid, const struct doc *document);
/* Returns the index-th object that was removed in this step, or NULL if there are fewer. */
const struct object *objects_removed(const struct object_store *store, size_t index);
/* Queues a removed object of any kind for objects_take_gone. */
void objects_owner_gone(struct object_store *store, obj_id uid);
/* Add an object of any kind to the deleted ones that wait for the removal of others, and remove it. Do
 * nothing if that is done already. */
void objects_wait(struct object_store *store, obj_id uid);
void objects_waits_no_more(struct object_store *store, obj_id uid);
/* Returns the uids of the waiting objects, ascending. Valid until the next change. */
const obj_id *objects_waiting(const struct object_store *store, size_t *ret_count);

/* --- snapshots ------------------------------------------------------------------------------------------ */

/* Visits every object in order of kind, namespace and name. */
void objects_visit_all(const struct object_store *store,
                       void (*visit)(void *context, const struct object *object), void *context);
/* Adds an object of a snapshot with a copy of `document`, and frees `*arena`. Returns NULL, and leaves the
 * arena, if the object is invalid: an unknown kind, an invalid name, or a name or uid that is taken. */
struct object *object_restore(struct object_store *store, enum object_kind kind, obj_id uid,
                              struct arena *arena, struct doc *document);
/* CHECKs the indexes and the sums of bytes. */
void objects_check(const struct object_store *store);

#endif
