#include "core/model/load.h"

/* The fields of an item in spec.machines, which may name each machine once. */
static const char *const machine_fields[] = {"name",   "address", "chips",    "labels", "cpu",
                                             "memory", "spare",   "cordoned", NULL};

static void amend_address(struct loader *loader, const struct field *entry, struct machine *machine)
{
    struct field field = field_get(entry, "address");
    struct str text;
    uint32_t address;
    if (!load_text(loader, &field, &text))
        return;
    if (address_parse(text, &address))
        machine->address = address_text(&loader->cluster->arena, address);
    else
        load_fail(loader, &field, "FieldValueInvalid",
                  "Invalid value: \"" STR_FORMAT
                  "\": must be an IPv4 address from 1.0.0.0 to 223.255.255.255",
                  STR_ARG(load_excerpt(text)));
}

static void amend_chips(struct loader *loader, const struct field *entry, struct machine *machine, bool known)
{
    struct field field = field_get(entry, "chips");
    int64_t chips = machine->chip_count;
    load_int(loader, &field, 0, CHIPS_PER_MACHINE_MAX, &chips);
    if (known && chips != machine->chip_count && loader->cluster->blocks[machine->block].kind == BLOCK_CUBE)
        load_fail(loader, &field, "FieldValueForbidden", "Forbidden: every machine of a cube has %u chips",
                  machine->chip_count);
    else
        machine->chip_count = (uint32_t)chips;
    CHECK(machine->chip_count <= CHIPS_PER_MACHINE_MAX);
}

static void amend_machine(struct loader *loader, const struct field *entry, struct machine *machine,
                          bool known)
{
    struct field labels = field_get(entry, "labels"), cpu = field_get(entry, "cpu");
    struct field memory = field_get(entry, "memory"), spare = field_get(entry, "spare");
    struct field cordoned = field_get(entry, "cordoned");
    int64_t milli;
    amend_address(loader, entry, machine);
    amend_chips(loader, entry, machine, known);
    load_labels(loader, &labels, machine->labels, &machine->labels);
    load_quantity(loader, &cpu, &machine->cpu_milli);
    if (load_quantity(loader, &memory, &milli))
        machine->memory_bytes = milli / 1000 + (milli % 1000 != 0);
    load_bool(loader, &spare, &machine->spare);
    load_bool(loader, &cordoned, &machine->cordoned);
    CHECK(machine->cpu_milli >= 0 && machine->memory_bytes >= 0);
}

static void amend_entry(struct loader *loader, const struct field *entry, bool expanded, struct str_map *seen)
{
    struct field name = field_get(entry, "name");
    struct machine nobody = {0}, *machine = NULL;
    struct str text;
    if (!load_present(entry))
        load_required(loader, entry, "a machine");
    if (!load_object(loader, entry, machine_fields))
        return;
    if (!load_present(&name))
        load_required(loader, &name, "which machine this is about");
    if (load_text(loader, &name, &text)) {
        machine = cluster_find(loader->cluster, text);
        CHECK(expanded || !machine);
        if (str_map_put(seen, text, loader))
            load_fail(loader, &name, "FieldValueDuplicate", "Duplicate value: \"" STR_FORMAT "\"",
                      STR_ARG(load_excerpt(text)));
        else if (expanded && !machine)
            load_fail(loader, &name, "FieldValueNotFound",
                      "Not found: \"" STR_FORMAT "\": no pod's pattern makes a machine of this name",
                      STR_ARG(load_excerpt(text)));
    }
    amend_machine(loader, entry, machine ? machine : &nobody, machine != NULL);
}

/* Checks that every machine has an address that no other machine has. Reports one error for each block. */
static void check_addresses(struct loader *loader)
{
    struct cluster *cluster = loader->cluster;
    struct str_map seen = {0};
    for (size_t b = 0; b < cluster->block_count; b++) {
        const struct block *block = &cluster->blocks[b];
        bool told = false;
        CHECK(block->first + block->count <= cluster->machine_count);
        for (machine_id i = block->first; i < block->first + block->count && !told; i++) {
            struct machine *machine = &cluster->machines[i];
            struct machine *other =
                machine->address.len ? str_map_put(&seen, machine->address, machine) : NULL;
            told = !machine->address.len || other;
            if (!machine->address.len)
                field_error_add(loader->errors, STR("spec.addresses"), "FieldValueRequired", NULL,
                                "Required value: machine " STR_FORMAT
                                " gets no address: give addresses in the spec, "
                                "its pod or its block",
                                STR_ARG(machine->name));
            else if (other)
                field_error_add(loader->errors, STR("spec"), "FieldValueDuplicate", NULL,
                                "Duplicate value: \"" STR_FORMAT "\": machines " STR_FORMAT " and " STR_FORMAT
                                " get the same address",
                                STR_ARG(machine->address), STR_ARG(other->name), STR_ARG(machine->name));
            loader->failures += told;
        }
    }
    str_map_done(&seen);
}

void load_amend(struct loader *loader, const struct field *machines, bool expanded)
{
    struct str_map seen = {0};
    if (load_list(loader, machines))
        for (size_t i = 0; i < doc_len(machines->doc); i++) {
            struct field entry = field_at(machines, i);
            amend_entry(loader, &entry, expanded, &seen);
        }
    str_map_done(&seen);
    if (expanded)
        check_addresses(loader);
}
