#include "core/model/load.h"

/* This file reads the settings that every level may have: labels, machine names, addresses and capacities.
 * The levels below inherit them. */

struct pattern *load_pattern_text(struct loader *loader, struct str text, enum pattern_level level,
                                  const char **ret_why)
{
    /* The key contains the level, because {n} has a different meaning on each level. */
    struct str key = arena_printf(&loader->scratch, "%d " STR_FORMAT, (int)level, STR_ARG(text));
    struct pattern *pattern = str_map_get(&loader->patterns, key);
    CHECK(!pattern || pattern->level == level);
    if (pattern)
        return pattern;
    struct pattern parsed;
    if (text.len > NAME_MAX_BYTES) {
        *ret_why = "too long";
        return NULL;
    }
    if (!pattern_parse(text, level, &parsed, ret_why))
        return NULL;
    pattern = ARENA_NEW(&loader->scratch, struct pattern);
    *pattern = parsed;
    str_map_put(&loader->patterns, key, pattern);
    return pattern;
}

struct pattern *load_pattern(struct loader *loader, const struct field *field, enum pattern_level level,
                             struct pattern *fallback)
{
    struct str text;
    const char *why = NULL;
    if (!load_text(loader, field, &text))
        return fallback;
    struct pattern *pattern = load_pattern_text(loader, text, level, &why);
    CHECK(pattern || why);
    if (!pattern)
        load_fail(loader, field, "FieldValueInvalid", "Invalid value: \"" STR_FORMAT "\": %s",
                  STR_ARG(load_excerpt(text)), why);
    return pattern ? pattern : fallback;
}

static void bad_address(struct loader *loader, const struct field *field, struct str text)
{
    load_fail(loader, field, "FieldValueInvalid",
              "Invalid value: \"" STR_FORMAT "\": must be an IPv4 address from 1.0.0.0 to 223.255.255.255",
              STR_ARG(load_excerpt(text)));
}

static bool read_list(struct loader *loader, const struct field *field, struct address_source *ret_source)
{
    size_t count = doc_len(field->doc), failures = loader->failures;
    uint32_t *list = ARENA_ARRAY(&loader->scratch, uint32_t, count);
    for (size_t i = 0; i < count; i++) {
        struct field item = field_at(field, i);
        struct str text;
        if (!load_present(&item))
            load_required(loader, &item, "an address");
        else if (load_text(loader, &item, &text) && !address_parse(text, &list[i]))
            bad_address(loader, &item, text);
    }
    *ret_source = (struct address_source){.list = list, .list_len = count};
    return loader->failures == failures;
}

static bool read_range(struct loader *loader, const struct field *field, struct address_source *ret_source)
{
    struct str text;
    if (!load_text(loader, field, &text))
        return false;
    if (address_source_parse(text, ret_source))
        return true;
    load_fail(loader, field, "FieldValueInvalid",
              "Invalid value: \"" STR_FORMAT
              "\": must be the first IPv4 address to give out, such as 10.0.0.1, or "
              "10.0.0.1/24 to leave out the first and last address of each such subnet",
              STR_ARG(load_excerpt(text)));
    return false;
}

static struct address_source *read_addresses(struct loader *loader, const struct field *field)
{
    static const char *const known[] = {"from", "step", NULL};
    struct address_source source;
    int64_t step = 1;
    if (!load_present(field))
        return NULL;
    if (field->doc->kind == DOC_ARRAY) {
        if (!read_list(loader, field, &source))
            return NULL;
    } else if (field->doc->kind == DOC_OBJECT) {
        struct field from = field_get(field, "from"), by = field_get(field, "step");
        load_object(loader, field, known);
        load_int(loader, &by, 1, 65536, &step);
        if (!load_present(&from))
            load_required(loader, &from, "the first address to give out");
        if (!read_range(loader, &from, &source))
            return NULL;
        source.step = (uint64_t)step;
    } else if (!read_range(loader, field, &source)) {
        return NULL;
    }
    CHECK(source.list || source.step > 0);
    source.doc = field->doc;
    source.path = load_path(loader, field);
    struct address_source *kept = ARENA_NEW(&loader->scratch, struct address_source);
    *kept = source;
    return kept;
}

void load_level(struct loader *loader, const struct field *field, const struct level *above,
                struct level *ret_level)
{
    struct level level = *above;
    struct field labels = field_get(field, "labels"), names = field_get(field, "machineNames");
    struct field addresses = field_get(field, "addresses");
    struct field cpu = field_get(field, "cpu"), memory = field_get(field, "memory");
    int64_t milli = 0;
    load_labels(loader, &labels, above->labels, &level.labels);
    level.names = load_pattern(loader, &names, PATTERN_MACHINE, above->names);
    struct address_source *source = read_addresses(loader, &addresses);
    if (source)
        level.addresses = source;
    load_quantity(loader, &cpu, &level.cpu_milli);
    if (load_quantity(loader, &memory, &milli))
        level.memory_bytes = milli / 1000 + (milli % 1000 != 0);
    CHECK(level.names && level.names->level == PATTERN_MACHINE);
    CHECK(level.cpu_milli >= 0 && level.memory_bytes >= 0);
    *ret_level = level;
}
