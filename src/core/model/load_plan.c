#include "core/model/load.h"

enum { CUBE_MACHINE_CHIPS = 4 };
_Static_assert((int)CUBE_MACHINES *CUBE_MACHINE_CHIPS == CUBE_CHIPS, "a cube");
_Static_assert((int)CUBE_MACHINE_CHIPS <= (int)CHIPS_PER_MACHINE_MAX, "its machines' chips fit the mask");
_Static_assert(MACHINES_MAX <= 1 << 20, "the product of three counts fits 64 bits");

/* Returns the pattern of an entry's names (a plain name is one, too), and the number of things to name. */
static struct pattern *read_names(struct loader *loader, const struct field *entry, enum pattern_level level,
                                  const char *fallback, int64_t *ret_count)
{
    struct field name = field_get(entry, "name"), pattern = field_get(entry, "namePattern");
    struct field count = field_get(entry, "count");
    const char *why = "";
    struct str text;
    *ret_count = 1;
    load_int(loader, &count, 1, MACHINES_MAX, ret_count);
    struct pattern *names = load_pattern_text(loader, str_from(fallback), level, &why);
    CHECK(names && names->level == level && *ret_count >= 1);
    if (!load_text(loader, &name, &text))
        return load_pattern(loader, &pattern, level, names);
    if (load_present(&pattern))
        load_fail(loader, &pattern, "FieldValueForbidden", "Forbidden: name is given already");
    if (*ret_count > 1)
        load_fail(loader, &count, "FieldValueForbidden",
                  "Forbidden: %lld things cannot share one name: use namePattern", (long long)*ret_count);
    if (!name_is_dns1123_label(text)) {
        load_fail(loader, &name, "FieldValueInvalid",
                  "Invalid value: \"" STR_FORMAT "\": must be a DNS-1123 label", STR_ARG(load_excerpt(text)));
        return names;
    }
    return load_pattern(loader, &name, level, names);
}

static void read_spares(struct loader *loader, const struct field *entry, struct block_plan *plan)
{
    struct field spares = field_get(entry, "spares");
    if (!load_present(&spares))
        return;
    if (spares.doc->kind != DOC_ARRAY) {
        load_int(loader, &spares, 0, plan->machines, &plan->spares);
        return;
    }
    plan->spare_names = spares.doc;
    for (size_t i = 0; i < doc_len(spares.doc); i++) {
        struct field item = field_at(&spares, i);
        struct str name;
        if (!load_present(&item))
            load_required(loader, &item, "a machine's name");
        load_text(loader, &item, &name);
    }
}

static void read_rack(struct loader *loader, const struct field *entry, struct block_plan *plan)
{
    struct field machines = field_get(entry, "machines"), chips = field_get(entry, "chips");
    plan->machines = 1;
    if (!load_present(&machines))
        load_required(loader, &machines, "the number of machines in the rack");
    load_int(loader, &machines, 1, MACHINES_MAX, &plan->machines);
    if (!load_present(&chips))
        load_required(loader, &chips, "the number of chips of each machine");
    load_int(loader, &chips, 0, CHIPS_PER_MACHINE_MAX, &plan->chips);
}

static void read_block(struct loader *loader, const struct field *entry, enum block_kind kind,
                       const struct level *above)
{
    static const char *const cube_fields[] = {"name",         "namePattern", "count", "spares", "labels",
                                              "machineNames", "addresses",   "cpu",   "memory", NULL};
    static const char *const rack_fields[] = {"name",      "namePattern", "count",  "machines",
                                              "chips",     "spares",      "labels", "machineNames",
                                              "addresses", "cpu",         "memory", NULL};
    struct block_plan plan = {
        .kind = kind, .machines = CUBE_MACHINES, .chips = CUBE_MACHINE_CHIPS, .level = *above};
    if (!load_present(entry))
        load_required(loader, entry, kind == BLOCK_CUBE ? "a cube" : "a rack");
    if (!load_object(loader, entry, kind == BLOCK_CUBE ? cube_fields : rack_fields))
        return;
    plan.doc = entry->doc;
    plan.path = load_path(loader, entry);
    plan.names = read_names(loader, entry, PATTERN_BLOCK, kind == BLOCK_CUBE ? "cube-{cube}" : "rack-{rack}",
                            &plan.count);
    if (kind == BLOCK_RACK)
        read_rack(loader, entry, &plan);
    read_spares(loader, entry, &plan);
    load_level(loader, entry, above, &plan.level);
    CHECK(plan.names && plan.count >= 1 && plan.machines >= 1);
    vec_push(&loader->blocks, plan);
}

/* `cubes: 64` is short for `cubes: [{count: 64}]`. */
static void read_cube_count(struct loader *loader, const struct field *cubes, const struct level *above)
{
    struct block_plan plan = {.kind = BLOCK_CUBE,
                              .machines = CUBE_MACHINES,
                              .chips = CUBE_MACHINE_CHIPS,
                              .level = *above,
                              .doc = cubes->doc,
                              .path = load_path(loader, cubes)};
    const char *why = "";
    plan.names = load_pattern_text(loader, STR("cube-{cube}"), PATTERN_BLOCK, &why);
    CHECK(plan.names);
    if (load_int(loader, cubes, 1, MACHINES_MAX, &plan.count))
        vec_push(&loader->blocks, plan);
}

static void read_blocks(struct loader *loader, const struct field *pod, const struct level *level)
{
    struct field cubes = field_get(pod, "cubes"), racks = field_get(pod, "racks");
    if (!load_present(&cubes) && !load_present(&racks))
        load_required(loader, pod, "a pod has cubes or racks");
    if (load_present(&cubes) && cubes.doc->kind == DOC_INT)
        read_cube_count(loader, &cubes, level);
    else if (load_list(loader, &cubes))
        for (size_t i = 0; i < doc_len(cubes.doc); i++) {
            struct field entry = field_at(&cubes, i);
            read_block(loader, &entry, BLOCK_CUBE, level);
        }
    if (load_list(loader, &racks))
        for (size_t i = 0; i < doc_len(racks.doc); i++) {
            struct field entry = field_at(&racks, i);
            read_block(loader, &entry, BLOCK_RACK, level);
        }
}

static void read_pod(struct loader *loader, const struct field *entry, const struct level *above)
{
    static const char *const known[] = {"name",         "namePattern", "count", "cubes",  "racks",  "labels",
                                        "machineNames", "addresses",   "cpu",   "memory", "fabric", NULL};
    if (!load_present(entry))
        load_required(loader, entry, "a pod");
    if (!load_object(loader, entry, known))
        return;
    struct pod_plan plan = {
        .doc = entry->doc, .path = load_path(loader, entry), .first_block = loader->blocks.len};
    struct level level;
    size_t failures = loader->failures;
    plan.names = read_names(loader, entry, PATTERN_POD, "pod-{pod}", &plan.count);
    load_level(loader, entry, above, &level);
    struct field fabric = field_get(entry, "fabric");
    load_fabric(loader, &fabric, &plan);
    read_blocks(loader, entry, &level);
    plan.block_count = loader->blocks.len - plan.first_block;
    CHECK(plan.names && plan.count >= 1);
    if (!plan.block_count && loader->failures == failures)
        load_required(loader, entry, "a pod has at least one cube or rack");
    vec_push(&loader->pods, plan);
}

/* Returns the number of machines that the plan makes, at most MACHINES_MAX + 1. The products cannot overflow:
 * each factor is at most 2^17, and the sums are clamped. */
static int64_t planned_machines(const struct loader *loader)
{
    const int64_t too_many = MACHINES_MAX + 1;
    int64_t sum = 0;
    for (size_t p = 0; p < loader->pods.len; p++) {
        const struct pod_plan *pod = &loader->pods.items[p];
        int64_t in_pod = 0;
        for (size_t b = pod->first_block; b < pod->first_block + pod->block_count; b++) {
            in_pod += loader->blocks.items[b].count * loader->blocks.items[b].machines;
            in_pod = in_pod < too_many ? in_pod : too_many;
        }
        sum += in_pod * pod->count;
        sum = sum < too_many ? sum : too_many;
    }
    CHECK(sum >= 0 && sum <= too_many);
    return sum;
}

void load_pods(struct loader *loader, const struct field *pods, const struct level *above)
{
    if (!load_present(pods) || (pods->doc->kind == DOC_ARRAY && !doc_len(pods->doc)))
        load_required(loader, pods, "a cluster has at least one pod");
    if (!load_list(loader, pods))
        return;
    for (size_t i = 0; i < doc_len(pods->doc); i++) {
        struct field entry = field_at(pods, i);
        read_pod(loader, &entry, above);
    }
    if (planned_machines(loader) > MACHINES_MAX)
        load_fail(loader, pods, "FieldValueInvalid",
                  "Too many machines: at most %d (MACHINES_MAX) in one cluster", MACHINES_MAX);
}
