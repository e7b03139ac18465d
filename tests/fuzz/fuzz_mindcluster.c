/* Objects of MindCluster, as anybody may write them: an error value, or Faults of a sender. The other way any
 * lists of ours give objects that can be read again. */
#include "base/check.h"
#include "doc/json.h"
#include "host/mindcluster/mindcluster.h"

static void fuzz_import(struct arena *arena, const struct doc *object)
{
    struct doc *faults;
    struct error error;
    if (mindcluster_import(arena, object, &faults, &error) < 0)
        return;
    for (size_t i = 0; i < doc_len(faults); i++) {
        const struct doc *spec = doc_get(doc_at(faults, i), "spec");
        CHECK(doc_str(doc_get(spec, "code"), STR("")).len > 2);
        CHECK(doc_str(doc_get(spec, "sender"), STR("")).len > 0);
    }
}

static void fuzz_export(struct arena *arena, const struct doc *any)
{
    struct mindcluster_view view = {
        .faults = doc_get(any, "faults"), .pods = doc_get(any, "pods"), .resource = "Ascend910", .now_s = 1};
    const struct doc *node = doc_get(any, "node");
    if (doc_int(doc_path(node, "status", "phalanx", "chips", NULL), 0) > 64)
        return;
    CHECK(mindcluster_device_info(arena, &view, node) && mindcluster_node_info(arena, &view, node));
    CHECK(mindcluster_hccl(arena, &view) && mindcluster_reset_config(arena, &view, STR("job")));
    CHECK(mindcluster_public_faults(arena, &view));
}

/* reset.json and hccl.json, against Pods and Faults that are anybody's too. */
static void fuzz_ranks(struct arena *arena, const struct doc *any)
{
    struct mindcluster_view view = {.faults = doc_get(any, "faults"), .pods = doc_get(any, "pods")};
    struct buf lines BUF_CLEANUP = {0};
    struct mindcluster_table table;
    struct doc *faults;
    struct error error;
    if (mindcluster_import_reset(arena, &view, STR("job"), any, &faults, &error) == 0)
        for (size_t i = 0; i < doc_len(faults); i++)
            CHECK(doc_str(doc_path(doc_at(faults, i), "spec", "place", NULL), STR("")).len > 0);
    if (mindcluster_read_table(arena, any, &table, &error) < 0)
        return;
    for (size_t i = 0; i < table.count; i++)
        CHECK(table.ranks[i].server_id.len > 0); /* none is left out */
    size_t count = mindcluster_compare(&view, &table, &lines);
    CHECK((count > 0) == (lines.len > 0));
    mindcluster_find_job(&table, view.pods);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 8 << 20};
    struct doc *document;
    if (json_parse(&arena, (struct str){(const char *)data, size}, &document, NULL) < 0)
        return 0;
    arena.limit_bytes = 0;
    fuzz_import(&arena, document);
    fuzz_export(&arena, document);
    fuzz_ranks(&arena, document);
    return 0;
}
