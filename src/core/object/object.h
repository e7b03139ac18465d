/* object.h - the store of API objects that are kept as they were written: Namespaces, ConfigMaps, Secrets,
 * Services, ServiceAccounts, PersistentVolumeClaims, PriorityClasses, ResourceQuotas, Kueue's queue objects,
 * RBAC's roles and bindings, Events that clients wrote, and the other kinds with a `bytes_max` in kinds.h.
 *
 * The store knows metadata (names, versions, finalizers, owners), the schema of each kind (spec/schema.h),
 * its limits (kinds/kinds.h) and the rules of deletion. Other modules interpret the content of a kind: job/
 * (ConfigMaps, Secrets, claims), admit/ (queues), host/access (roles).
 *
 *   object.c    the store: find, visit, indexes
 *   change.c    create, replace, delete
 *   keep.c      the form in which documents are kept, and their bytes
 *   owners.c    owners and dependents, over all kinds
 * core/write/object.c has the rules of API writes, and core/react/collect.c the consequences of a deletion
 * over all kinds (dependents, finalizers, namespaces that end).
 *
 * Deletion (Kubernetes' "Garbage Collection" and "Finalizers"): deleting an object that has finalizers sets
 * its deletionTimestamp; the object is removed with its last finalizer. A foreground deletion adds a
 * finalizer that stays until the dependents are removed. Dependents are deleted when all their owners are
 * removed. Owners and dependents may be of any kind, including JobSets, Jobs and Pods: react/collect.c
 * reports those that were removed (objects_owner_gone), and asks job/ to delete dependents that job/ keeps.
 *
 * The core's thread owns the objects (core.h). A document, and the strings in it, lives until the step after
 * its next change. A removed object lives until the next step, so effects can name it.
 */
#ifndef PHX_CORE_OBJECT_OBJECT_H
#define PHX_CORE_OBJECT_OBJECT_H

#include "base/arena.h"
#include "doc/doc.h"
#include "base/map.h"
#include "base/vec.h"
#include "core/effect.h"
#include "core/kinds/kinds.h"
#include "core/spec/spec.h"

struct step;

struct object {
    obj_id uid;
    enum object_kind kind;
    struct str key;              /* "namespace/name", or "name" for cluster-wide kinds; owned */
    struct str namespace_, name; /* cut from the key */
    /* apiVersion, kind, metadata (labels, annotations, finalizers, ownerReferences, managedFields) and the
     * other fields, defaulted. Without the fields that the server computes on reading, and without a status
     * unless the control plane set one (object_set_status). Packed (doc/pack.h) are metadata.managedFields,
     * and `data` and `binaryData` of ConfigMaps and Secrets. */
    struct doc *document;
    struct arena arena;             /* owns the document */
    uint64_t bytes;                 /* charged for the document (keep.c) */
    int64_t generation;             /* 0: the kind does not count generations */
    int64_t created_ns, deleted_ns; /* deleted_ns: deletionTimestamp; 0: not deleted */
    uint64_t changed_seq;           /* log position of the last change: resourceVersion */
    bool removed; /* private: freed when the next step begins */
};

struct object_store; /* one for each core; `objects` of struct step */

/* --- for readers ---------------------------------------------------------------------------------------- */

/* Return the object, or NULL if there is none. `namespace_` is ignored for cluster-wide kinds. */
const struct object *object_find(const struct object_store *store, enum object_kind kind,
                                 struct str namespace_, struct str name);
const struct object *object_find_uid(const struct object_store *store, obj_id uid);
/* Visits the objects of a kind in order of namespace and name (bytes). An empty namespace: all namespaces.
 * `visit` must not change the store. */
void object_visit(const struct object_store *store, enum object_kind kind, struct str namespace_,
                  void (*visit)(void *context, const struct object *object), void *context);
size_t object_count(const struct object_store *store, enum object_kind kind);
size_t objects_total(const struct object_store *store); /* of all kinds */
size_t object_count_in(const struct object_store *store, enum object_kind kind, struct str namespace_);
/* Return the bytes charged for stored documents: of the cluster; of one namespace ("": cluster-wide kinds);
 * of each namespace, in no particular order of names. */
uint64_t objects_bytes(const struct object_store *store);
uint64_t objects_bytes_in(const struct object_store *store, struct str namespace_);
void objects_visit_bytes(const struct object_store *store,
                         void (*visit)(void *context, struct str namespace_, uint64_t bytes), void *context);
/* Returns the bytes charged for a document that job/ or admit/ keeps; 0: none. */
uint64_t objects_charge(const struct object_store *store, obj_id uid);
/* Returns the bytes that would be charged for this document. Costs a copy of the document. */
uint64_t object_kept_bytes(enum object_kind kind, const struct doc *document);
/* Returns a number that grows with each change of an object of this kind, so readers know when to refresh
 * state that they derive from the objects. */
uint64_t object_kind_version(const struct object_store *store, enum object_kind kind);
#define FINALIZER_IN_USE "kueue.x-k8s.io/resource-in-use" /* admit/inuse.c */
bool object_has_finalizer(const struct doc *document, const char *name); /* of metadata.finalizers */

/* Adds or removes one of metadata.finalizers of a document, in place. */
void finalizer_add(struct arena *arena, struct doc *document, const char *name);
void finalizer_drop(struct doc *document, const char *name);
/* Updates the index of owners when the document of object `uid` changes from `was` to `is` (NULL: none): the
 * owners are those in metadata.ownerReferences. If job/ or admit/ keeps the document, also updates the bytes
 * charged for it. */
void owners_change(struct object_store *store, obj_id uid, const struct doc *was, const struct doc *is);

/* --- for the control plane's own objects ---------------------------------------------------------------- */

/* Creates or replaces an object that the control plane owns (a JobSet's Service, a claim), by the name in the
 * document. `document` is copied, converted and defaulted. Does nothing if the content is equal. Returns
 * ERROR_INVALID or ERROR_LIMIT as for a user's write, and changes nothing then. *ret_object (may be NULL) is
 * the stored object. */
int object_put(struct step *step, enum object_kind kind, const struct doc *document,
               const struct object **ret_object, struct error *error);
/* Adds a new object without a copy. `document` must have the form that object_put would store: converted,
 * defaulted, valid, with an unused name and without parts that are packed. It lives in `*arena`, which moves
 * to the object. Returns NULL, and does nothing, if the kind's limit is reached. */
const struct object *object_put_checked(struct step *step, enum object_kind kind, struct arena *arena,
                                        struct doc *document);
/* Deletes the object as a user would: finalizers delay its removal. Does nothing if it was removed earlier in
 * this step. */
void object_delete(struct step *step, const struct object *object, enum propagation propagation);
/* Removes a finalizer. A deleted object is removed with its last finalizer. */
void object_release(struct step *step, const struct object *object, const char *finalizer);
/* Stores a copy of `status` in the document, for kinds whose status the control plane writes. Gives the
 * object a new version and notifies watchers. Later writes by clients keep this status. */
void object_set_status(struct step *step, const struct object *object, const struct doc *status);
/* Gives the object a new version and notifies watchers. Called when a shown part that is kept elsewhere (a
 * status) has changed. */
void object_touch(struct step *step, const struct object *object);
/* Converts the document in place to the version in which the kind is stored: apiVersion, renamed fields and
 * values. */
void object_convert(struct arena *arena, enum object_kind kind, struct doc *document);
/* Returns the document for a client that requested `api_version` ("kueue.x-k8s.io/v1beta1"): the object's
 * own, or a converted copy in `arena`. */
const struct doc *object_shown(struct arena *arena, const struct object *object, struct str api_version);
#define OBJECT_NEW_EVENTS "events.k8s.io/v1"

#endif
