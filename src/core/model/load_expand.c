#include "core/model/load.h"

enum { LABEL_VALUE_MAX = 63 };

/* The common settings of all machines of one block. */
struct template
{
    struct labels labels; /* complete except for the value of the host name */
    size_t hostname;      /* index of the host name's label */
};

static void fail_plan(struct loader *loader, const struct doc *doc, struct str path, const char *reason,
                      struct str message)
{
    field_error_add(loader->errors, path, reason, doc, STR_FORMAT, STR_ARG(message));
    loader->failures++;
}

static void count_things(const struct loader *loader, size_t *ret_pods, size_t *ret_blocks,
                         size_t *ret_machines)
{
    *ret_pods = *ret_blocks = *ret_machines = 0;
    for (size_t p = 0; p < loader->pods.len; p++) {
        const struct pod_plan *pod = &loader->pods.items[p];
        *ret_pods += (size_t)pod->count;
        for (size_t b = pod->first_block; b < pod->first_block + pod->block_count; b++) {
            const struct block_plan *block = &loader->blocks.items[b];
            *ret_blocks += (size_t)(pod->count * block->count);
            *ret_machines += (size_t)(pod->count * block->count * block->machines);
        }
    }
    CHECK(*ret_machines <= MACHINES_MAX && *ret_blocks <= *ret_machines && *ret_pods <= *ret_blocks);
}

static struct template make_template(struct loader *loader, const struct block_plan *plan,
                                     const struct pod *pod, const struct block *block)
{
    CHECK(plan->level.labels.len + 3 <= LABELS_MAX);
    struct arena *arena = &loader->cluster->arena;
    struct str place =
        arena_printf(arena, STR_FORMAT "." STR_FORMAT, STR_ARG(pod->name), STR_ARG(block->name));
    struct label own[3] = {{.key = LABEL_HOSTNAME}};
    /* Sorted: kubernetes.io/hostname < phalanx.dev/cube < phalanx.dev/pod < phalanx.dev/rack. */
    bool cube = block->kind == BLOCK_CUBE;
    own[cube ? 1 : 2] = (struct label){cube ? LABEL_CUBE : LABEL_RACK, place};
    own[cube ? 2 : 1] = (struct label){LABEL_POD, pod->name};
    struct template template = {
        .labels = load_merge_labels(arena, plan->level.labels, (struct labels){.items = own, .len = 3})};
    while (!str_equal(template.labels.items[template.hostname].key, LABEL_HOSTNAME)) {
        template.hostname++;
        CHECK(template.hostname < template.labels.len);
    }
    return template;
}

/* The kinds of errors that were reported for a block: each kind is reported once for each block. */
struct problems {
    bool name, address, duplicate;
};

static void name_machine(struct loader *loader, const struct block_plan *plan, struct machine *machine,
                         const struct pattern_place *place, struct problems *told)
{
    CHECK(plan->level.names->level == PATTERN_MACHINE);
    struct arena *arena = &loader->cluster->arena;
    machine->name = pattern_next(arena, plan->level.names, place);
    if (machine->name.len > LABEL_VALUE_MAX || !name_is_dns1123_subdomain(machine->name)) {
        if (!told->name)
            fail_plan(loader, plan->doc, plan->path, "FieldValueInvalid",
                      arena_printf(&loader->scratch,
                                   "Invalid value: \"" STR_FORMAT
                                   "\": a machine's name must be a DNS-1123 subdomain "
                                   "of at most %d characters",
                                   STR_ARG(load_excerpt(machine->name)), LABEL_VALUE_MAX));
        told->name = true;
        return;
    }
    struct machine *other = str_map_put(&loader->cluster->by_name, machine->name, machine);
    if (!other)
        return;
    str_map_put(&loader->cluster->by_name, machine->name, other);
    if (!told->duplicate)
        fail_plan(loader, plan->doc, plan->path, "FieldValueDuplicate",
                  arena_printf(&loader->scratch,
                               "Duplicate value: \"" STR_FORMAT
                               "\": two machines get this name; put {n}, {rack} or "
                               "{pod} into machineNames",
                               STR_ARG(machine->name)));
    told->duplicate = true;
}

static void address_machine(struct loader *loader, const struct block_plan *plan, struct machine *machine,
                            struct problems *told)
{
    struct address_source *source = plan->level.addresses;
    uint32_t address;
    if (source && address_next(source, &address)) {
        machine->address = address_text(&loader->cluster->arena, address);
        return;
    }
    /* spec.machines may still set the address: load_amend reports machines without one. */
    machine->address = (struct str){0};
    if (source && !told->address)
        fail_plan(loader, source->doc, source->path, "FieldValueInvalid",
                  arena_printf(&loader->scratch, "Too few: %zu addresses do not reach machine " STR_FORMAT,
                               source->used, STR_ARG(machine->name)));
    told->address = true;
}

static void expand_machines(struct loader *loader, const struct block_plan *plan, struct block *block,
                            struct pattern_place *place)
{
    struct cluster *cluster = loader->cluster;
    CHECK(plan->machines > 0 && plan->spares >= 0 && plan->spares <= plan->machines);
    CHECK(plan->chips >= 0 && plan->chips <= CHIPS_PER_MACHINE_MAX);
    struct template template = make_template(loader, plan, &cluster->pods[block->pod], block);
    struct problems told = {0};
    block->first = (machine_id)cluster->machine_count;
    block->count = (uint32_t)plan->machines;
    for (int64_t i = 0; i < plan->machines; i++) {
        struct machine *machine = &cluster->machines[cluster->machine_count];
        *machine = (struct machine){.id = (machine_id)cluster->machine_count,
                                    .pod = block->pod,
                                    .block = (uint32_t)(block - cluster->blocks),
                                    .chip_count = (uint32_t)plan->chips,
                                    .cpu_milli = plan->level.cpu_milli,
                                    .memory_bytes = plan->level.memory_bytes,
                                    .spare = i >= plan->machines - plan->spares};
        cluster->machine_count++;
        name_machine(loader, plan, machine, place, &told);
        address_machine(loader, plan, machine, &told);
        machine->labels.len = template.labels.len;
        machine->labels.items = ARENA_ARRAY(&cluster->arena, struct label, template.labels.len);
        memcpy(machine->labels.items, template.labels.items, template.labels.len * sizeof(struct label));
        machine->labels.items[template.hostname].value = machine->name;
    }
    CHECK(block->first + block->count == cluster->machine_count);
}

/* Marks the spares that this entry names in this pod. The entry's machines are those from `first` on. */
static void expand_spare_names(struct loader *loader, struct block_plan *plan, machine_id first)
{
    CHECK(plan->spares_found && first <= loader->cluster->machine_count);
    for (size_t i = 0; i < doc_len(plan->spare_names); i++) {
        struct machine *machine = cluster_find(loader->cluster, doc_at(plan->spare_names, i)->text);
        if (!machine || machine->id < first)
            continue;
        machine->spare = true;
        plan->spares_found[i] = true;
    }
}

static void check_block_name(struct loader *loader, const struct block_plan *plan, const struct pod *pod,
                             const struct block *block, struct str_map *seen, struct problems *told)
{
    if ((!name_is_dns1123_label(block->name) || pod->name.len + 1 + block->name.len > LABEL_VALUE_MAX) &&
        !told->name) {
        fail_plan(loader, plan->doc, plan->path, "FieldValueInvalid",
                  arena_printf(&loader->scratch,
                               "Invalid value: \"" STR_FORMAT
                               "\": a block's name must be a DNS-1123 label, and "
                               "\"<pod>.<block>\" at most %d characters",
                               STR_ARG(load_excerpt(block->name)), LABEL_VALUE_MAX));
        told->name = true;
    }
    if (str_map_put(seen, block->name, loader) && !told->duplicate) {
        fail_plan(loader, plan->doc, plan->path, "FieldValueDuplicate",
                  arena_printf(&loader->scratch,
                               "Duplicate value: \"" STR_FORMAT "\": two cubes or racks of pod " STR_FORMAT
                               " get this name",
                               STR_ARG(load_excerpt(block->name)), STR_ARG(load_excerpt(pod->name))));
        told->duplicate = true;
    }
}

static void expand_blocks(struct loader *loader, const struct pod_plan *pod_plan, struct pod *pod,
                          struct pattern_place *place)
{
    struct cluster *cluster = loader->cluster;
    struct str_map seen = {0};
    CHECK(pod_plan->first_block + pod_plan->block_count <= loader->blocks.len);
    place->block = place->number_from;
    for (size_t p = pod_plan->first_block; p < pod_plan->first_block + pod_plan->block_count; p++) {
        struct block_plan *plan = &loader->blocks.items[p];
        CHECK(plan->names->level == PATTERN_BLOCK && plan->count > 0);
        struct problems told = {0};
        machine_id first = (machine_id)cluster->machine_count;
        for (int64_t i = 0; i < plan->count; i++, place->block++) {
            struct block *block = &cluster->blocks[cluster->block_count];
            *block = (struct block){.kind = plan->kind, .pod = (uint32_t)(pod - cluster->pods)};
            place->block_index = cluster->block_count;
            block->name = place->block_name = pattern_next(&cluster->arena, plan->names, place);
            cluster->block_count++;
            pod->cube_count += block->kind == BLOCK_CUBE;
            check_block_name(loader, plan, pod, block, &seen, &told);
            expand_machines(loader, plan, block, place);
        }
        if (plan->spare_names)
            expand_spare_names(loader, plan, first);
    }
    str_map_done(&seen);
}

static void check_pod_name(struct loader *loader, const struct pod_plan *plan, const struct pod *pod,
                           struct str_map *seen)
{
    if (!name_is_dns1123_label(pod->name))
        fail_plan(loader, plan->doc, plan->path, "FieldValueInvalid",
                  arena_printf(&loader->scratch,
                               "Invalid value: \"" STR_FORMAT "\": must be a DNS-1123 label",
                               STR_ARG(load_excerpt(pod->name))));
    if (str_map_put(seen, pod->name, loader))
        fail_plan(loader, plan->doc, plan->path, "FieldValueDuplicate",
                  arena_printf(&loader->scratch,
                               "Duplicate value: \"" STR_FORMAT "\": two pods get this name",
                               STR_ARG(load_excerpt(pod->name))));
}

static void expand_pods(struct loader *loader)
{
    struct cluster *cluster = loader->cluster;
    struct str_map seen = {0};
    struct pattern_place place = {.number_from = loader->number_from, .pod = loader->number_from};
    for (size_t p = 0; p < loader->pods.len; p++) {
        struct pod_plan *plan = &loader->pods.items[p];
        CHECK(plan->names->level == PATTERN_POD && plan->count > 0);
        for (int64_t i = 0; i < plan->count; i++, place.pod++) {
            struct pod *pod = &cluster->pods[cluster->pod_count];
            *pod = (struct pod){.first_block = (uint32_t)cluster->block_count,
                                .first = (machine_id)cluster->machine_count};
            place.pod_index = cluster->pod_count;
            place.block_name = (struct str){0};
            pod->name = place.pod_name = pattern_next(&cluster->arena, plan->names, &place);
            cluster->pod_count++;
            check_pod_name(loader, plan, pod, &seen);
            expand_blocks(loader, plan, pod, &place);
            pod->block_count = (uint32_t)cluster->block_count - pod->first_block;
            pod->count = (uint32_t)cluster->machine_count - pod->first;
            CHECK(pod->block_count > 0 && pod->count >= pod->block_count);
        }
    }
    str_map_done(&seen);
}

/* Reports listed spares and addresses that no machine used. */
static void report_leftovers(struct loader *loader)
{
    for (size_t b = 0; b < loader->blocks.len; b++) {
        struct block_plan *plan = &loader->blocks.items[b];
        for (size_t i = 0; i < doc_len(plan->spare_names); i++)
            if (!plan->spares_found[i])
                fail_plan(loader, doc_at(plan->spare_names, i),
                          arena_printf(&loader->scratch, STR_FORMAT ".spares[%zu]", STR_ARG(plan->path), i),
                          "FieldValueNotFound",
                          arena_printf(&loader->scratch,
                                       "Not found: \"" STR_FORMAT "\": no such machine here",
                                       STR_ARG(load_excerpt(doc_at(plan->spare_names, i)->text))));
        struct address_source *source = plan->level.addresses;
        if (source && source->list && source->used < source->list_len) {
            fail_plan(loader, source->doc, source->path, "FieldValueInvalid",
                      arena_printf(&loader->scratch, "Too many: %zu addresses for %zu machines",
                                   source->list_len, source->used));
            source->used = source->list_len; /* reported once */
        }
    }
}

void load_expand(struct loader *loader)
{
    struct cluster *cluster = loader->cluster;
    size_t pods, blocks, machines;
    CHECK(loader->failures == 0 && !cluster->machines); /* called once, for a plan without errors */
    count_things(loader, &pods, &blocks, &machines);
    cluster->pods = ARENA_ARRAY(&cluster->arena, struct pod, pods);
    cluster->blocks = ARENA_ARRAY(&cluster->arena, struct block, blocks);
    cluster->machines = ARENA_ARRAY(&cluster->arena, struct machine, machines);
    for (size_t b = 0; b < loader->blocks.len; b++)
        loader->blocks.items[b].spares_found =
            ARENA_ARRAY(&loader->scratch, bool, doc_len(loader->blocks.items[b].spare_names));
    expand_pods(loader);
    CHECK(cluster->pod_count == pods && cluster->block_count == blocks && cluster->machine_count == machines);
    load_switches(loader);
    report_leftovers(loader);
}
