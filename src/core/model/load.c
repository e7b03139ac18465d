#include "core/model/load.h"

enum { PRIORITY_MIN = -1000000000, PRIORITY_MAX = 1000000000, CLASSES_MAX = 256, PATH_MAX_BYTES = 1024 };

_Static_assert(PRIORITY_MIN >= INT32_MIN && PRIORITY_MAX <= INT32_MAX, "a gang's priority has 32 bits");

static void read_header(struct loader *loader, const struct field *root)
{
    static const char *const metadata_fields[] = {"name", NULL};
    struct field api = field_get(root, "apiVersion"), kind = field_get(root, "kind");
    struct field metadata = field_get(root, "metadata"), name = field_get(&metadata, "name");
    if (!str_is(doc_str(api.doc, STR("")), "phalanx.dev/v1"))
        load_fail(loader, &api, "FieldValueNotSupported", "Unsupported value: must be \"phalanx.dev/v1\"");
    if (!str_is(doc_str(kind.doc, STR("")), "Cluster"))
        load_fail(loader, &kind, "FieldValueNotSupported", "Unsupported value: must be \"Cluster\"");
    load_object(loader, &metadata, metadata_fields);
    struct str text;
    if (!load_present(&name))
        load_required(loader, &name, "the cluster's name");
    if (!load_text(loader, &name, &text))
        return;
    if (!name_is_dns1123_label(text))
        load_fail(loader, &name, "FieldValueInvalid",
                  "Invalid value: \"" STR_FORMAT "\": must be a DNS-1123 label", STR_ARG(load_excerpt(text)));
    loader->cluster->name = arena_str(&loader->cluster->arena, text);
}

static void read_chip_resource(struct loader *loader, const struct field *settings)
{
    struct cluster *cluster = loader->cluster;
    struct field field = field_get(settings, "chipResource");
    struct str text = STR("google.com/tpu");
    bool given = load_text(loader, &field, &text);
    if (given && (!name_is_label_key(text) || !memchr(text.data, '/', text.len)))
        load_fail(loader, &field, "FieldValueInvalid",
                  "Invalid value: \"" STR_FORMAT "\": must be an extended resource such as google.com/tpu",
                  STR_ARG(load_excerpt(text)));
    cluster->chip_resource = arena_str(&cluster->arena, text);
}

static void read_checkpoint_dir(struct loader *loader, const struct field *settings)
{
    struct field field = field_get(settings, "checkpointDir");
    struct str text;
    if (!load_text(loader, &field, &text))
        return;
    if (text.data[0] != '/' || text.len > PATH_MAX_BYTES)
        load_fail(loader, &field, "FieldValueInvalid",
                  "Invalid value: \"" STR_FORMAT "\": must be an absolute path of at most %d bytes",
                  STR_ARG(load_excerpt(text)), PATH_MAX_BYTES);
    loader->cluster->checkpoint_dir = arena_str(&loader->cluster->arena, text);
}

static void read_priority_classes(struct loader *loader, const struct field *settings)
{
    struct field classes = field_get(settings, "priorityClasses");
    struct arena *arena = &loader->cluster->arena;
    if (!load_present(&classes))
        return;
    if (classes.doc->kind != DOC_OBJECT || classes.doc->object.len > CLASSES_MAX) {
        load_fail(loader, &classes, "FieldValueTypeInvalid",
                  "Invalid value: %s: must be an object of at most %d names and values",
                  doc_kind_name(classes.doc->kind), CLASSES_MAX);
        return;
    }
    struct labels read = {0};
    for (size_t i = 0; i < classes.doc->object.len; i++) {
        const struct doc_member *member = &classes.doc->object.members[i];
        struct field value = {.parent = &classes, .key = load_excerpt(member->key), .doc = member->value};
        int64_t priority = 0;
        if (!name_is_dns1123_subdomain(member->key))
            load_fail(loader, &value, "FieldValueInvalid",
                      "Invalid value: must be named by a DNS-1123 subdomain");
        if (!load_present(&value))
            load_required(loader, &value, "the priority");
        load_int(loader, &value, PRIORITY_MIN, PRIORITY_MAX, &priority);
        struct label one = {arena_str(arena, member->key), arena_printf(arena, "%lld", (long long)priority)};
        read = load_merge_labels(arena, read, (struct labels){.items = &one, .len = 1});
    }
    CHECK(read.len <= CLASSES_MAX);
    loader->cluster->priority_classes = read;
}

static void read_settings(struct loader *loader, const struct field *settings)
{
    struct field number = field_get(settings, "numberFrom");
    load_int(loader, &number, 0, 1, &loader->number_from);
    read_chip_resource(loader, settings);
    read_checkpoint_dir(loader, settings);
    read_priority_classes(loader, settings);
}

static void read_spec(struct loader *loader, const struct field *root)
{
    static const char *const known[] = {"settings",     "queues",    "qualification", "repair", "labels",
                                        "machineNames", "addresses", "cpu",           "memory", "pods",
                                        "machines",     NULL};
    struct field spec = field_get(root, "spec"), settings = field_get(&spec, "settings");
    struct field queues = field_get(&spec, "queues"), qualification = field_get(&spec, "qualification");
    struct field repair = field_get(&spec, "repair");
    struct field pods = field_get(&spec, "pods"), machines = field_get(&spec, "machines");
    if (!load_present(&spec))
        load_required(loader, &spec, "what the cluster is made of");
    if (!load_object(loader, &spec, known))
        return;
    const char *why = "";
    struct level above = {.names = load_pattern_text(loader, STR("m-{n}"), PATTERN_MACHINE, &why)}, level;
    CHECK(above.names);
    load_policy(loader, &spec);
    read_settings(loader, &settings);
    load_queues(loader, &queues);
    load_qualification(loader, &qualification);
    load_repair(loader, &repair);
    load_level(loader, &spec, &above, &level);
    load_pods(loader, &pods, &level);
    bool expand = !loader->failures;
    if (expand)
        load_expand(loader);
    load_amend(loader, &machines, expand);
    if (expand)
        load_repair_machines(loader, &repair);
}

/* Derives the remaining fields of the cluster. */
static void finish(struct cluster *cluster)
{
    CHECK(cluster->machine_count > 0 && cluster->block_count > 0 && cluster->pod_count > 0);
    CHECK(cluster->policy.heartbeat_ns > 0 && cluster->policy.heartbeat_ns <= cluster->policy.lease_ns / 2);
    CHECK(cluster->chip_count == 0);
    cluster->changes = ARENA_NEW(&cluster->arena, struct machine_changes);
    cluster->changes->first = 1;
    for (size_t i = 0; i < cluster->machine_count; i++) {
        struct machine *machine = &cluster->machines[i];
        CHECK(machine->id == i && machine->state == MACHINE_UNSEEN);
        CHECK(machine->name.len > 0 && machine->address.len > 0);
        CHECK(machine->block < cluster->block_count && machine->pod == cluster->blocks[machine->block].pod);
        machine->free_mask = machine_all_chips(machine);
        machine->changes = cluster->changes;
        cluster->chip_count += machine->chip_count;
        if (machine->chip_count > cluster->chips_max)
            cluster->chips_max = machine->chip_count;
    }
    CHECK(cluster->chip_count <= cluster->machine_count * CHIPS_PER_MACHINE_MAX);
}

bool cluster_load(const struct doc *document, struct cluster *ret_cluster, struct field_errors *errors)
{
    CHECK(ret_cluster && errors && errors->arena);
    static const char *const known[] = {"apiVersion", "kind", "metadata", "spec", NULL};
    struct cluster cluster = {0};
    struct loader loader = {.cluster = &cluster, .errors = errors, .number_from = 1};
    struct field root = {.doc = document};
    if (!load_present(&root))
        load_required(&loader, &root, "a cluster document");
    if (load_object(&loader, &root, known)) {
        read_header(&loader, &root);
        read_spec(&loader, &root);
    }
    bool good = !loader.failures;
    vec_done(&loader.pods);
    vec_done(&loader.blocks);
    str_map_done(&loader.patterns);
    arena_done(&loader.scratch);
    if (!good) {
        cluster_done(&cluster);
        return false;
    }
    finish(&cluster);
    *ret_cluster = cluster;
    return true;
}
