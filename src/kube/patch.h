/* patch.h - changing documents: JSON merge patch (RFC 7396), JSON patch (RFC 6902) and Kubernetes' strategic
 * merge patch. Private to api; pure. Server-side apply is in apply.h.
 *
 * All work on `target` in place and allocate from `arena`; on failure `target` is left half changed and must
 * be thrown away. Bounds of a JSON patch: PATCH_OPERATIONS_MAX operations, PATCH_COPIES_MAX nodes and
 * PATCH_COPIED_BYTES_MAX bytes of text copied or added, PATCH_DEPTH_MAX levels, PATCH_VISITS_MAX members
 * looked at: large objects get an index, in which each member counts as VISITS_OF_INDEXED. A strategic merge
 * patch has the same budget of visits: each object and list that it merges counts with all its members, as
 * often as the patch names it. A merge patch needs none: it names each member once.
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

/* Returns the patched document: `target` itself, or a clone of `patch` where that is no object. */
struct doc *patch_merge(struct arena *arena, struct doc *target, const struct doc *patch);

/* ERROR_INVALID names the operation that cannot be carried out; ERROR_CONFLICT: a `test` failed;
 * ERROR_LIMIT. */
int patch_apply(struct arena *arena, struct doc **target, const struct doc *operations, struct error *error);

/* `schema` says which lists are keyed (NULL: none is). A list item may carry "$patch": "delete" or "replace",
 * an object also "$retainKeys", "$setElementOrder/LIST" and "$deleteFromPrimitiveList/LIST". ERROR_INVALID;
 * ERROR_LIMIT. */
int patch_strategic(struct arena *arena, const struct schema *schema, struct doc **target,
                    const struct doc *patch, struct error *error);

#endif
