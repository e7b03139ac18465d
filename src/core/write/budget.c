/* budget.c - limits of the bytes of documents that a namespace and the cluster may store.
 *
 * If a setting lowers a limit below the bytes that are stored, nothing is removed, but no document may grow.
 */
#include "doc/pack.h"
#include "core/object/object.h"
#include "core/write/write.h"

static bool refuse(const struct writing *writing, const char *budget, uint64_t more, uint64_t used,
                   int64_t limit)
{
    CHECK(more > 0 && limit > 0);
    return write_refuse(writing, 403, "Forbidden", NULL,
                        "%s \"" STR_FORMAT "\" is forbidden: exceeded quota: stored-bytes-of-%s, "
                        "requested: bytes=%llu, used: bytes=%llu, limited: bytes=%lld: delete objects, or "
                        "raise spec.settings.storedBytes.%s of the cluster",
                        object_kind_title(writing->write->object), STR_ARG(writing->write->name), budget,
                        (unsigned long long)more, (unsigned long long)used, (long long)limit, budget);
}

bool write_budget_allows(const struct writing *writing, struct str namespace_, uint64_t was,
                         const struct doc *document)
{
    const struct object_store *store = writing->core->objects;
    const struct stored_bytes_settings *most = &writing->core->cluster.policy.stored_bytes;
    const struct resource *info = object_kind_info(writing->write->object);
    uint64_t bytes =
        info && info->rules == RULES_STORED ? object_kept_bytes(info->named, document) : doc_bytes(document);
    if (bytes <= was)
        return true;
    uint64_t more = bytes - was, used = objects_bytes_in(store, namespace_), all = objects_bytes(store);
    CHECK(used <= all);
    if (namespace_.len && most->namespace_max && used + more > (uint64_t)most->namespace_max)
        return refuse(writing, "namespace", more, used, most->namespace_max);
    if (most->cluster_max && all + more > (uint64_t)most->cluster_max)
        return refuse(writing, "cluster", more, all, most->cluster_max);
    return true;
}
