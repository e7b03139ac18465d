/* apply.h - owners of fields, and server-side apply. Pure.
 *
 * A manager is a client under its name. One that applies owns exactly the fields of its last applied
 * document; one that writes otherwise ("Update") owns the fields that its writes changed.
 * metadata.managedFields keeps both.
 *     apply_update()   a create, replace or patch: the writer becomes the only owner of changed fields
 *     apply_merge()    server-side apply: the document is merged into the object by the schema (keyed lists
 *                      by item, sets by value, atomic lists and scalars whole); fields that the manager
 *                      applied before and omits now are removed unless another manager owns them; a change to
 *                      another manager's field is a conflict, unless forced
 *
 * Source: Kubernetes documentation "Server-Side Apply", sigs.k8s.io/structured-merge-diff,
 * k8s.io/apimachinery managedfields.
 *
 * Objects are as the API shows them. Fields that the server keeps (status, uid, versions, times) have no
 * owner. Results live in the arena given and share nodes with the inputs, which are not changed.
 */
#ifndef PHX_KUBE_APPLY_H
#define PHX_KUBE_APPLY_H

#include "base/vec.h"
#include "kube/fieldset.h"

/* The annotation in which kubectl's client-side apply keeps the last applied document. */
#define APPLY_LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

enum { APPLY_UPDATERS_MAX = 10, APPLY_MANAGERS_MAX = 256, APPLY_MANAGER_BYTES_MAX = 128 };
enum { APPLY_KEYS_MAX = 1000 }; /* of a map whose owner is written key by key */

struct apply_manager {
    struct str name, api_version, time, subresource;
    bool applies; /* operation Apply, else Update */
    struct fieldset set;
};
struct apply_managers {
    VEC(struct apply_manager) list; /* memory: apply_managers_done() */
};
void apply_managers_done(struct apply_managers *managers);

/* From metadata.managedFields (NULL: none). ERROR_INVALID. */
int apply_managers_read(struct arena *arena, const struct doc *fields, struct apply_managers *ret_managers,
                        struct error *error);
/* NULL: there are none. */
struct doc *apply_managers_doc(struct arena *arena, struct apply_managers *managers);

/* A manager that owns every key of an object's `data` or `binaryData`, if these are more than APPLY_KEYS_MAX,
 * is written with the one element "f:" instead, the key without a name: tens of thousands of keys would be
 * kept once more. Text that was read back, for an object of the same keys, is expanded before anything
 * else. */
void apply_managers_collapse(struct arena *arena, struct apply_managers *managers, const struct doc *object);
void apply_managers_expand(struct arena *arena, struct apply_managers *managers, const struct doc *object);

/* Finds the manager of the same name, operation and subresource; NULL: there is none. */
struct apply_manager *apply_managers_find(struct apply_managers *managers, const struct apply_manager *who);
void apply_managers_drop_empty(struct apply_managers *managers);
/* Merges the oldest updaters into one, so that a thousand clients, each under its own name, do not fill the
 * object. */
void apply_managers_cap(struct arena *arena, struct apply_managers *managers);

/* `before` NULL: a create. `who.time` is now. */
void apply_update(struct arena *arena, const struct schema *schema, const struct doc *before,
                  const struct doc *after, const struct apply_manager *who, struct apply_managers *managers);

struct apply_conflict {
    struct str manager; /* as messages name it: `"x" using batch/v1` */
    struct str path;
};
struct apply_conflicts {
    VEC(struct apply_conflict) list;
};
struct apply_request {
    const struct schema *schema; /* NULL: the kind has none; lists are atomic then */
    const struct doc *live;      /* NULL: the object is to be made */
    const struct doc *config;    /* the applied document */
    struct apply_manager who;
    bool force;
};
/* Returns 0: *ret_object is the object to write and `managers` its owners. ERROR_CONFLICT: *ret_conflicts
 * names the other managers (the caller calls vec_done). ERROR_INVALID: two items of a list have the same
 * keys, or lack them. `managers`: those of the live object. */
int apply_merge(struct arena *arena, const struct apply_request *request, struct apply_managers *managers,
                struct doc **ret_object, struct apply_conflicts *ret_conflicts, struct error *error);

#endif
