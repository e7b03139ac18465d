/* apply.h - field ownership and server-side apply. Pure.
 *
 * A manager is a client under its name. A manager that applies owns exactly the fields of its last applied
 * document; one that writes otherwise ("Update") owns the fields that its writes changed.
 * metadata.managedFields records both.
 *     apply_update()   a create, replace or patch: the writer becomes the only owner of changed fields
 *     apply_merge()    server-side apply: the document is merged into the object by the schema (keyed lists
 *                      by item, sets by value, atomic lists and scalars whole); fields that the manager
 *                      applied before and omits now are removed unless another manager owns them; a change to
 *                      another manager's field is a conflict, unless forced
 *
 * Source: Kubernetes documentation "Server-Side Apply", sigs.k8s.io/structured-merge-diff,
 * k8s.io/apimachinery managedfields.
 *
 * Objects are as the API shows them. Fields that the server sets (status, uid, versions, times) have no
 * owner. Results live in the given arena and share nodes with the inputs, which are not changed.
 */
#ifndef PHX_KUBE_APPLY_H
#define PHX_KUBE_APPLY_H

#include "base/vec.h"
#include "kube/fieldset.h"

/* The annotation in which kubectl's client-side apply keeps the last applied document. */
#define APPLY_LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

enum { APPLY_UPDATERS_MAX = 10, APPLY_MANAGERS_MAX = 256, APPLY_MANAGER_BYTES_MAX = 128 };
enum { APPLY_KEYS_MAX = 1000 }; /* in a map whose owner is still written key by key */

struct apply_manager {
    struct str name, api_version, time, subresource;
    bool applies; /* operation Apply, else Update */
    struct fieldset set;
};
struct apply_managers {
    VEC(struct apply_manager) list; /* freed by apply_managers_done() */
};
void apply_managers_done(struct apply_managers *managers);

/* Reads metadata.managedFields (NULL: none) into *ret_managers, which is zeroed before. ERROR_INVALID:
 * malformed, or too many managers. */
int apply_managers_read(struct arena *arena, const struct doc *fields, struct apply_managers *ret_managers,
                        struct error *error);
/* Returns metadata.managedFields in Kubernetes' order, or NULL if there are no managers. Sorts `managers`. */
struct doc *apply_managers_doc(struct arena *arena, struct apply_managers *managers);

/* Collapsing saves the memory of tens of thousands of keys. If an object has more than APPLY_KEYS_MAX keys in
 * `data` or `binaryData`, a manager that owns them all gets the single element "f:", the key without a name,
 * in their place. Expand managers that were read back before any other use, with an object of the same
 * keys. */
void apply_managers_collapse(struct arena *arena, struct apply_managers *managers, const struct doc *object);
void apply_managers_expand(struct arena *arena, struct apply_managers *managers, const struct doc *object);

/* Finds the manager with the name, operation and subresource of `who`; NULL if there is none. */
struct apply_manager *apply_managers_find(struct apply_managers *managers, const struct apply_manager *who);
void apply_managers_drop_empty(struct apply_managers *managers);
/* Merges the oldest updaters into one if there are more than APPLY_UPDATERS_MAX, so that a thousand clients,
 * each under its own name, do not fill the object. */
void apply_managers_cap(struct arena *arena, struct apply_managers *managers);

/* Updates `managers` for a write by `who`, whose time is now. `before` NULL: a create. */
void apply_update(struct arena *arena, const struct schema *schema, const struct doc *before,
                  const struct doc *after, const struct apply_manager *who, struct apply_managers *managers);

struct apply_conflict {
    struct str manager; /* as in messages: `"x" using batch/v1` */
    struct str path;
};
struct apply_conflicts {
    VEC(struct apply_conflict) list;
};
struct apply_request {
    const struct schema *schema; /* NULL: the kind has none, and lists are atomic */
    const struct doc *live;      /* NULL: the object is created */
    const struct doc *config;    /* the applied document */
    struct apply_manager who;
    bool force;
};
/* Applies a document. `managers` are those of the live object, and become those of the result. Returns 0 with
 * the object to write in *ret_object. ERROR_CONFLICT: *ret_conflicts names the other managers (the caller
 * calls vec_done). ERROR_INVALID: two items of a list have the same keys, or an item lacks them. */
int apply_merge(struct arena *arena, const struct apply_request *request, struct apply_managers *managers,
                struct doc **ret_object, struct apply_conflicts *ret_conflicts, struct error *error);

#endif
