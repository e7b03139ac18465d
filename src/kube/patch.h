/* patch.h - changes documents: JSON merge patch (RFC 7396), JSON patch (RFC 6902) and Kubernetes' strategic
 * merge patch. Pure. Server-side apply is in apply.h.
 *
 * All functions change `target` in place and allocate from `arena`; after a failure `target` is half changed
 * and must be discarded. Limits of a JSON patch: PATCH_OPERATIONS_MAX operations, PATCH_COPIES_MAX nodes and
 * PATCH_COPIED_BYTES_MAX bytes of text copied or added, PATCH_DEPTH_MAX levels, and PATCH_VISITS_MAX visited
 * members. Large objects get an index, in which each member counts as VISITS_OF_INDEXED visits. A strategic
 * merge patch has the same budget of visits: each object and list that it merges counts with all its members,
 * as often as the patch names it. A merge patch needs no budget: it names each member once.
 */
#ifndef PHX_KUBE_PATCH_H
#define PHX_KUBE_PATCH_H

#include "doc/doc.h"
#include "base/error.h"
#include "core/spec/schema.h"

enum {
    PATCH_OPERATIONS_MAX = 10000,
    PATCH_COPIES_MAX = 250000,
    PATCH_COPIED_BYTES_MAX = 16 * 1024 * 1024,
    PATCH_DEPTH_MAX = 128,
    PATCH_VISITS_MAX = 2000000, /* some tens of milliseconds */
};

/* Applies a JSON merge patch. Returns `target` itself, a new object if `target` (may be NULL) is none, or a
 * clone of `patch` if that is not an object. */
struct doc *patch_merge(struct arena *arena, struct doc *target, const struct doc *patch);

/* Applies a JSON patch. ERROR_INVALID: an operation cannot be carried out; ERROR_CONFLICT: a `test` failed;
 * ERROR_LIMIT. The message names the operation. */
int patch_apply(struct arena *arena, struct doc **target, const struct doc *operations, struct error *error);

/* Applies a strategic merge patch. `schema` tells which lists are keyed (NULL: none). A list item may carry
 * "$patch": "delete" or "replace", an object also "$retainKeys", "$setElementOrder/LIST" and
 * "$deleteFromPrimitiveList/LIST". ERROR_INVALID; ERROR_LIMIT. */
int patch_strategic(struct arena *arena, const struct schema *schema, struct doc **target,
                    const struct doc *patch, struct error *error);

#endif
