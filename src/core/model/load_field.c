#include <stdio.h>
#include <stdlib.h>

#include "core/model/load.h"

enum { EXCERPT_MAX = 80 };

struct field field_get(const struct field *parent, const char *key)
{
    CHECK(key && key[0]); /* an empty key would mean an item of a list */
    return (struct field){.parent = parent, .key = str_from(key), .doc = doc_get(parent->doc, key)};
}

struct field field_at(const struct field *parent, size_t index)
{
    return (struct field){.parent = parent, .index = index, .doc = doc_at(parent->doc, index)};
}

static void print_path(const struct field *field, struct buf *out)
{
    if (!field->parent)
        return;
    print_path(field->parent, out);
    if (!field->key.len)
        buf_printf(out, "[%zu]", field->index);
    else
        buf_printf(out, "%s" STR_FORMAT, out->len ? "." : "", STR_ARG(field->key));
}

struct str load_path(struct loader *loader, const struct field *field)
{
    struct buf path BUF_CLEANUP = {0};
    print_path(field, &path);
    return arena_str(&loader->scratch, buf_str(&path));
}

struct str load_excerpt(struct str text)
{
    if (text.len <= EXCERPT_MAX)
        return text;
    size_t len = EXCERPT_MAX;
    while (len && ((unsigned char)text.data[len] & 0xc0) == 0x80)
        len--;
    return (struct str){text.data, len};
}

void load_fail(struct loader *loader, const struct field *field, const char *reason, const char *format, ...)
{
    CHECK(reason && format);
    struct buf path BUF_CLEANUP = {0}, message BUF_CLEANUP = {0};
    print_path(field, &path);
    va_list args;
    va_start(args, format);
    buf_vprintf(&message, format, args);
    va_end(args);
    const struct doc *place = NULL;
    for (const struct field *near = field; near && !place; near = near->parent)
        place = near->doc;
    field_error_add(loader->errors, buf_str(&path), reason, place, STR_FORMAT, STR_ARG(buf_str(&message)));
    loader->failures++;
}

bool load_present(const struct field *field)
{
    return field->doc && field->doc->kind != DOC_NULL;
}

void load_required(struct loader *loader, const struct field *field, const char *what)
{
    load_fail(loader, field, "FieldValueRequired", "Required value: %s", what);
}

static bool has_kind(struct loader *loader, const struct field *field, enum doc_kind kind)
{
    if (!load_present(field))
        return false;
    if (field->doc->kind == kind)
        return true;
    load_fail(loader, field, "FieldValueTypeInvalid", "Invalid value: %s: must be of type %s",
              doc_kind_name(field->doc->kind), doc_kind_name(kind));
    return false;
}

static void report_unknown(struct loader *loader, const struct field *field, const struct doc_member *member,
                           const char *const *known)
{
    struct buf names BUF_CLEANUP = {0};
    for (size_t i = 0; known[i]; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", known[i]);
    struct doc place = {.line = member->line, .column = member->column};
    struct field unknown = {.parent = field, .key = load_excerpt(member->key), .doc = &place};
    load_fail(loader, &unknown, "FieldValueForbidden", "unknown field (known are: " STR_FORMAT ")",
              STR_ARG(buf_str(&names)));
}

bool load_object(struct loader *loader, const struct field *field, const char *const *known)
{
    if (!has_kind(loader, field, DOC_OBJECT))
        return false;
    for (size_t i = 0; i < field->doc->object.len; i++) {
        const struct doc_member *member = &field->doc->object.members[i];
        size_t k = 0;
        while (known[k] && !str_is(member->key, known[k]))
            k++;
        if (!known[k])
            report_unknown(loader, field, member, known);
    }
    return true;
}

bool load_list(struct loader *loader, const struct field *field)
{
    return has_kind(loader, field, DOC_ARRAY);
}

bool load_int(struct loader *loader, const struct field *field, int64_t min, int64_t max, int64_t *ret_value)
{
    CHECK(min <= max);
    if (!has_kind(loader, field, DOC_INT))
        return false;
    int64_t value = field->doc->integer;
    if (value < min || value > max) {
        load_fail(loader, field, "FieldValueInvalid", "Invalid value: %lld: must be from %lld to %lld",
                  (long long)value, (long long)min, (long long)max);
        return false;
    }
    *ret_value = value;
    return true;
}

bool load_bool(struct loader *loader, const struct field *field, bool *ret_value)
{
    if (!has_kind(loader, field, DOC_BOOL))
        return false;
    *ret_value = field->doc->boolean;
    return true;
}

bool load_text(struct loader *loader, const struct field *field, struct str *ret_text)
{
    if (!has_kind(loader, field, DOC_STRING))
        return false;
    if (!field->doc->text.len) {
        load_fail(loader, field, "FieldValueInvalid", "Invalid value: \"\": must not be empty");
        return false;
    }
    *ret_text = field->doc->text;
    return true;
}

/* Returns the text of a scalar such as 3, 1.5 or "2m". Reports other types, and returns false. */
static bool scalar_text(struct loader *loader, const struct field *field, char digits[32],
                        struct str *ret_text)
{
    switch (field->doc->kind) {
    case DOC_INT:
        snprintf(digits, 32, "%lld", (long long)field->doc->integer);
        *ret_text = str_from(digits);
        return true;
    case DOC_FLOAT:
    case DOC_STRING:
        *ret_text = field->doc->text;
        return true;
    default:
        load_fail(loader, field, "FieldValueTypeInvalid", "Invalid value: %s: must be of type string",
                  doc_kind_name(field->doc->kind));
        return false;
    }
}

bool load_duration(struct loader *loader, const struct field *field, int64_t min_ns, int64_t max_ns,
                   int64_t *ret_ns)
{
    CHECK(min_ns >= 0 && min_ns <= max_ns);
    char digits[32], least[24], most[24];
    struct str text;
    int64_t value_ns;
    if (!load_present(field) || !scalar_text(loader, field, digits, &text))
        return false;
    if (duration_parse(text, &value_ns) && value_ns >= min_ns && value_ns <= max_ns) {
        *ret_ns = value_ns;
        return true;
    }
    duration_format(min_ns, least);
    duration_format(max_ns, most);
    load_fail(loader, field, "FieldValueInvalid",
              "Invalid value: \"" STR_FORMAT
              "\": must be a duration such as 250ms, 3s or 2m30s, from %s to %s",
              STR_ARG(load_excerpt(text)), least, most);
    return false;
}

bool load_quantity(struct loader *loader, const struct field *field, int64_t *ret_milli)
{
    char digits[32];
    struct str text;
    int64_t milli;
    if (!load_present(field) || !scalar_text(loader, field, digits, &text))
        return false;
    if (quantity_parse_milli(text, &milli) && milli > 0) {
        *ret_milli = milli;
        return true;
    }
    load_fail(loader, field, "FieldValueInvalid",
              "Invalid value: \"" STR_FORMAT "\": must be a quantity above zero such as 64, 500m or 512Gi",
              STR_ARG(load_excerpt(text)));
    return false;
}

static int compare_labels(const void *a, const void *b)
{
    return str_compare(((const struct label *)a)->key, ((const struct label *)b)->key);
}

struct labels load_merge_labels(struct arena *arena, struct labels base, struct labels over)
{
    struct labels merged = {.items = ARENA_ARRAY(arena, struct label, base.len + over.len)};
    size_t b = 0, o = 0;
    while (b < base.len || o < over.len) {
        int order = b == base.len   ? 1
                    : o == over.len ? -1
                                    : str_compare(base.items[b].key, over.items[o].key);
        merged.items[merged.len++] = order < 0 ? base.items[b] : over.items[o];
        CHECK(merged.len < 2 ||
              str_compare(merged.items[merged.len - 2].key, merged.items[merged.len - 1].key) < 0);
        b += order <= 0;
        o += order >= 0;
    }
    CHECK(b == base.len && o == over.len && merged.len <= b + o);
    return merged;
}

static bool label_allowed(struct loader *loader, const struct field *field, struct str key)
{
    if (!name_is_label_key(key)) {
        load_fail(loader, field, "FieldValueInvalid",
                  "Invalid value: \"" STR_FORMAT "\": must be a label key", STR_ARG(load_excerpt(key)));
        return false;
    }
    if (str_equal(key, LABEL_HOSTNAME) || str_starts(key, STR("phalanx.dev/"))) {
        load_fail(loader, field, "FieldValueForbidden", "Forbidden: the controller sets this label itself");
        return false;
    }
    if (field->doc->kind != DOC_STRING || !name_is_label_value(field->doc->text)) {
        load_fail(loader, field, "FieldValueInvalid",
                  "Invalid value: must be a string that is a label value (quote numbers, true and false)");
        return false;
    }
    return true;
}

bool load_labels(struct loader *loader, const struct field *field, struct labels base,
                 struct labels *ret_labels)
{
    if (!has_kind(loader, field, DOC_OBJECT))
        return false;
    struct arena *arena = &loader->cluster->arena;
    size_t count = field->doc->object.len, failures = loader->failures;
    struct labels own = {.items = ARENA_ARRAY(&loader->scratch, struct label, count)};
    for (size_t i = 0; i < count; i++) {
        const struct doc_member *member = &field->doc->object.members[i];
        struct field value = {.parent = field, .key = load_excerpt(member->key), .doc = member->value};
        if (label_allowed(loader, &value, member->key))
            own.items[own.len++] =
                (struct label){arena_str(arena, member->key), arena_str(arena, member->value->text)};
    }
    qsort(own.items, own.len, sizeof *own.items, compare_labels);
    struct labels merged = load_merge_labels(arena, base, own);
    /* An amended machine's labels include the controller's three; the labels of a level do not yet. */
    size_t machine_labels = merged.len + (labels_get(&base, LABEL_HOSTNAME, (struct str){0}).len ? 0 : 3);
    if (machine_labels > LABELS_MAX) {
        load_fail(loader, field, "FieldValueTooLong",
                  "Too many: %zu labels with the inherited ones: at most %d", machine_labels, LABELS_MAX);
        return false;
    }
    if (loader->failures != failures)
        return false;
    CHECK(merged.len >= base.len && merged.len <= LABELS_MAX);
    *ret_labels = merged;
    return true;
}
