/* life.h - how stored objects change: functions for core's own files (write/object.c, collect.c, core.c,
 * snapshot_object.c). All others use object.h.
 */
#ifndef PHX_CORE_OBJECT_LIFE_H
#define PHX_CORE_OBJECT_LIFE_H

#include "core/step.h"

/* metadata.finalizers that the control plane itself sets and removes. */
#define FINALIZER_FOREGROUND "foregroundDeletion"
#define FINALIZER_ORPHAN     "orphan"

struct object_store *object_store_new(void);
void object_store_free(struct object_store *store);
/* Called before anything else in a step: frees objects that the last step removed or replaced. */
void objects_bury(struct object_store *store);

/* Returns a copy of the document in the form in which it is kept (keep.c). */
struct doc *object_kept_form(struct arena *arena, enum object_kind kind, const struct doc *document);
/* Adds a new object to the store. `document` is converted, defaulted and valid and lives in `*arena`,
 * which is taken over (emptied). */
struct object *object_create(struct step *step, enum object_kind kind, struct arena *arena,
                             struct doc *document);
/* Replaces the document; the arena is taken over as well. Does nothing if both mean the same. A deleted
 * object without finalizers is removed. */
void object_replace(struct step *step, struct object *object, struct arena *arena, struct doc *document);
/* Removes the object from the store, whatever its finalizers. */
void object_remove(struct step *step, struct object *object);

/* --- ownership, over all kinds -------------------------------------------------------------------------- */

/* uids of the objects that name this one as an owner, ascending. Valid until the next change. */
struct dependents {
    const obj_id *uids;
    size_t count;
};
struct dependents owners_dependents(const struct object_store *store, obj_id owner);

/* Whether an object was removed, or waits, since the last call. */
bool objects_awake(struct object_store *store);
/* Returns the uids of removed objects, and of objects that were written with owners that may not exist:
 * oldest first; false: no more. */
bool objects_take_gone(struct object_store *store, obj_id *ret_uid);
bool objects_take_doubtful(struct object_store *store, obj_id *ret_uid);
/* Called when the object's document was written: the owners that it names may not exist. */
void objects_doubt(struct object_store *store, obj_id uid, const struct doc *document);
/* Returns the objects that were removed in this step, in order; NULL: there are no more. */
const struct object *objects_removed(const struct object_store *store, size_t index);
/* Called when an object of job/ is gone. */
void objects_owner_gone(struct object_store *store, obj_id uid);
/* Adds an object, of any kind, that was deleted and waits for the end of others; objects_waits_no_more
 * drops it. The uids are kept ascending. */
void objects_wait(struct object_store *store, obj_id uid);
void objects_waits_no_more(struct object_store *store, obj_id uid);
const obj_id *objects_waiting(const struct object_store *store, size_t *ret_count);

/* --- snapshots ------------------------------------------------------------------------------------------ */

/* Visits every object: by kind, then namespace and name. */
void objects_visit_all(const struct object_store *store,
                       void (*visit)(void *context, const struct object *object), void *context);
/* Restores an object from a snapshot; NULL: it does not fit (unknown kind, a name or uid twice). */
struct object *object_restore(struct object_store *store, enum object_kind kind, obj_id uid,
                              struct arena *arena, struct doc *document);
/* Aborts if the indexes disagree. */
void objects_check(const struct object_store *store);

#endif
