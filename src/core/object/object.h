/* object.h - API objects that are stored as they were written: Namespaces, ConfigMaps, Secrets, Services,
 * ServiceAccounts, PersistentVolumeClaims, PriorityClasses, ResourceQuotas, Kueue's queue objects, RBAC's
 * roles and bindings, Events that clients wrote.
 *
 * The store knows metadata (names, versions, finalizers, owners), the schema of each kind (spec/schema.h),
 * its limits (kinds/kinds.h) and the rules of deletion; other modules read the *meaning* of a kind: job/
 * (ConfigMaps, Secrets, claims), admit/ (queues), host/access (roles).
 *
 *   object.c    the store: find, visit, indexes
 *   change.c    create, replace, delete
 *   keep.c      the form in which documents are kept, and their bytes
 *   owners.c    owners and dependents, over all kinds
 * core/write/object.c has the rules of API writes; core/react/collect.c the consequences of a deletion
 * over all kinds (dependents, finalizers, namespaces that end).
 *
 * Deletion (Kubernetes' "Garbage Collection" and "Finalizers"): an object with finalizers, or one deleted
 * in the foreground whose dependents still live, only gets its deletionTimestamp; it is removed with the
 * last of them. Dependents are removed when all their owners are gone. Owners and dependents may be of any
 * kind, JobSets, Jobs and Pods among them: core.c tells this module which were removed
 * (objects_owner_gone) and asks job/ to delete its own.
 *
 * One owner thread (core.h). Strings of an object live until its next change; an object that was removed
 * lives until the next step, so that effects can name it.
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
     * rest, defaulted; without fields that the server computes on reading; a status only of
     * PodDisruptionBudgets. Packed (doc/pack.h) are metadata.managedFields, and `data` and `binaryData` of
     * ConfigMaps and Secrets */
    struct doc *document;
    struct arena arena;             /* of the document */
    uint64_t bytes;                 /* charged for it (keep.c) */
    int64_t generation;             /* 0 for kinds without a spec */
    int64_t created_ns, deleted_ns; /* deletionTimestamp; 0: lives */
    uint64_t changed_seq;
    bool removed; /* private: freed when the next step begins */
};

struct object_store; /* one for each core; `objects` of struct step */

/* --- for readers ---------------------------------------------------------------------------------------- */

/* NULL: none. `namespace_` is ignored for cluster-wide kinds. */
const struct object *object_find(const struct object_store *store, enum object_kind kind,
                                 struct str namespace_, struct str name);
const struct object *object_find_uid(const struct object_store *store, obj_id uid);
/* In order of namespace and name (bytes); an empty namespace: all. `visit` must not change the store. */
void object_visit(const struct object_store *store, enum object_kind kind, struct str namespace_,
                  void (*visit)(void *context, const struct object *object), void *context);
size_t object_count(const struct object_store *store, enum object_kind kind);
size_t objects_total(const struct object_store *store); /* of all kinds */
size_t object_count_in(const struct object_store *store, enum object_kind kind, struct str namespace_);
/* Bytes charged for what is kept: of all objects; of one namespace ("": cluster-wide kinds); of each. */
uint64_t objects_bytes(const struct object_store *store);
uint64_t objects_bytes_in(const struct object_store *store, struct str namespace_);
void objects_visit_bytes(const struct object_store *store,
                         void (*visit)(void *context, struct str namespace_, uint64_t bytes), void *context);
/* Bytes charged for a document that job/ or admit/ keep; 0: none. */
uint64_t objects_charge(const struct object_store *store, obj_id uid);
/* Bytes that an object with this document would be charged with. */
uint64_t object_kept_bytes(enum object_kind kind, const struct doc *document);
/* Grows with every change of an object of this kind: readers compare it to refresh derived state. */
uint64_t object_kind_version(const struct object_store *store, enum object_kind kind);
#define FINALIZER_IN_USE "kueue.x-k8s.io/resource-in-use" /* admit/inuse.c */
bool object_has_finalizer(const struct doc *document, const char *name); /* of metadata.finalizers */

/* Adds or removes one of metadata.finalizers of a document, in place. */
void finalizer_add(struct arena *arena, struct doc *document, const char *name);
void finalizer_drop(struct doc *document, const char *name);
/* Updates the index of owners: object `uid` names its owners in `is` (metadata.ownerReferences), and named
 * those in `was`; NULL: none. Both are only read. A document of job/ or admit/ is charged with its bytes. */
void owners_change(struct object_store *store, obj_id uid, const struct doc *was, const struct doc *is);

/* --- for the control plane's own objects ---------------------------------------------------------------- */

/* Makes or replaces an object that the control plane owns (a JobSet's Service, a claim). `document` is
 * copied: apiVersion, kind, metadata.name, .namespace, .labels, .ownerReferences and the rest. Does
 * nothing if the content is equal. ERROR_INVALID, ERROR_LIMIT as for a user's write. */
int object_put(struct step *step, enum object_kind kind, const struct doc *document,
               const struct object **ret_object, struct error *error);
/* Adds a new object with a document in the form that object_put would store: converted, defaulted, valid,
 * with a free name and without parts that are packed. The document lives in `*arena`, which is taken over
 * (emptied) and kept. NULL: the limit is reached, and nothing was done. */
const struct object *object_put_checked(struct step *step, enum object_kind kind, struct arena *arena,
                                        struct doc *document);
/* Deletes the object as a user would, respecting finalizers. */
void object_delete(struct step *step, const struct object *object, enum propagation propagation);
/* Removes one of its finalizers: a deleted object is removed with the last of them. */
void object_release(struct step *step, const struct object *object, const char *finalizer);
/* Stores `status` (copied) in the document, for kinds whose status the control plane writes: new version,
 * watchers are told. A client's write leaves it unchanged (object_replace). */
void object_set_status(struct step *step, const struct object *object, const struct doc *status);
/* Called when a shown part of the object that is kept elsewhere (its status) changed: new version,
 * watchers are told. */
void object_touch(struct step *step, const struct object *object);
/* Converts the document to the stored version of the kind: group, renamed fields and values of older
 * served versions, in place. */
void object_convert(struct arena *arena, enum object_kind kind, struct doc *document);
/* The reverse, for a client that asked for `api_version` ("kueue.x-k8s.io/v1beta1"): the same object, or a
 * copy in `arena`. */
const struct doc *object_shown(struct arena *arena, const struct object *object, struct str api_version);
#define OBJECT_NEW_EVENTS "events.k8s.io/v1"

#endif
