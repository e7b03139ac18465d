/* life.h - how stored objects change: what core's own files (write_object.c, collect.c, core.c,
 * snapshot_object.c) call. Everybody else uses object.h.
 */
#ifndef PHX_CORE_OBJECT_LIFE_H
#define PHX_CORE_OBJECT_LIFE_H

#include "core/step.h"

/* metadata.finalizers that the control plane itself sets and takes away. */
#define FINALIZER_FOREGROUND "foregroundDeletion"
#define FINALIZER_ORPHAN     "orphan"

struct object_store *object_store_new(void);
void object_store_free(struct object_store *store);
/* Before anything else in a step: frees what the step before removed or replaced. */
void objects_bury(struct object_store *store);

/* Puts a new object into the store. `document` is converted, defaulted and valid and lives in `*arena`,
 * which is
 * taken over (emptied). */
struct object *object_create(struct step *step, enum object_kind kind, struct arena *arena,
                             struct doc *document);
/* The same takeover. Equal in meaning: no change at all. A deleted object without finalizers goes. */
void object_replace(struct step *step, struct object *object, struct arena *arena, struct doc *document);
/* Takes it out of the store, whatever its finalizers say. */
void object_remove(struct step *step, struct object *object);

/* --- ownership, over all kinds -------------------------------------------------------------------------- */

/* uids of the objects that name this one as an owner, ascending. Valid until the next change. */
struct dependents {
    const obj_id *uids;
    size_t count;
};
struct dependents owners_dependents(const struct object_store *store, obj_id owner);

/* Something went or waits since the last call. */
bool objects_awake(struct object_store *store);
/* uids of what went, and of what was written with owners that may not exist: oldest first; false: no more. */
bool objects_take_gone(struct object_store *store, obj_id *ret_uid);
bool objects_take_doubtful(struct object_store *store, obj_id *ret_uid);
/* The document of this object was written: if it names owners, they may not exist. */
void objects_doubt(struct object_store *store, obj_id uid, const struct doc *document);
/* The objects that were removed in this step, in order; NULL: there are no more. */
const struct object *objects_removed(const struct object_store *store, size_t index);
/* An object of jobs/ is gone. */
void objects_owner_gone(struct object_store *store, obj_id uid);
/* uids of objects, of any kind, that were deleted and wait for the end of others, ascending; each is
 * dropped by
 * objects_waits_no_more. */
void objects_wait(struct object_store *store, obj_id uid);
void objects_waits_no_more(struct object_store *store, obj_id uid);
const obj_id *objects_waiting(const struct object_store *store, size_t *ret_count);

/* --- snapshots ------------------------------------------------------------------------------------------ */

/* Every object: by kind, then namespace and name. */
void objects_visit_all(const struct object_store *store,
                       void (*visit)(void *context, const struct object *object), void *context);
/* Puts back what was written; NULL: it does not fit (no such kind, a name or uid twice). */
struct object *object_restore(struct object_store *store, enum object_kind kind, obj_id uid,
                              struct arena *arena, struct doc *document);
/* Aborts when the indexes do not agree. */
void objects_check(const struct object_store *store);

#endif
