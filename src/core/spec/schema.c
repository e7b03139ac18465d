/* schema.c - the one walker over the schema tables. Its recursion is as deep as the tables: no table contains
 * itself. */
#include "core/spec/schema.h"

#include <stdio.h>

#include "doc/json.h"
#include "base/map.h"
#include "base/nearest.h"
#include "base/units.h"

enum { QUANTITIES_MAX = 64 }; /* in one map of requests or limits */

const struct schema_field *schema_field_of(const struct schema *schema, struct str name)
{
    CHECK(schema->fields);
    for (const struct schema_field *field = schema->fields; field->name; field++) {
        if (name.len == field->name_len && memcmp(name.data, field->name, name.len) == 0)
            return field;
    }
    return NULL;
}

static struct str name_of(const struct schema_field *field)
{
    return (struct str){field->name, field->name_len};
}

static struct doc *value_of(const struct doc *object, const struct schema_field *field)
{
    return doc_get_str(object, name_of(field));
}

static bool is_absent(const struct doc *node)
{
    return !node || node->kind == DOC_NULL;
}

/* --- unknown fields ------------------------------------------------------------------------------------- */

static void unknown_in_object(const struct schema *schema, const struct doc *object,
                              const struct field_path *path, struct field_errors *errors);

static void unknown_in_field(const struct schema_field *field, const struct doc *node,
                             const struct field_path *path, struct field_errors *errors)
{
    if (field->kind != SCHEMA_OBJECT || is_absent(node))
        return;
    CHECK(field->object);
    if (field->list == SCHEMA_SINGLE) {
        unknown_in_object(field->object, node, path, errors);
    } else {
        for (size_t i = 0; node->kind == DOC_ARRAY && i < node->array.len; i++)
            unknown_in_object(field->object, node->array.items[i], AT_INDEX(path, i), errors);
    }
}

static void unknown_in_object(const struct schema *schema, const struct doc *object,
                              const struct field_path *path, struct field_errors *errors)
{
    if (object->kind != DOC_OBJECT)
        return;
    for (size_t i = 0; i < object->object.len; i++) {
        const struct doc_member *member = &object->object.members[i];
        const struct field_path *here = AT_STR(path, member->key);
        const struct schema_field *field = schema_field_of(schema, member->key);
        if (field) {
            unknown_in_field(field, member->value, here, errors);
            continue;
        }
        struct doc key = {.kind = DOC_NULL, .line = member->line, .column = member->column};
        struct str text = path_text(errors->arena, here);
        struct str quoted = path_quote(errors->arena, text);
        struct nearest nearest = nearest_to(member->key);
        for (const struct schema_field *known = schema->fields; known->name; known++)
            nearest_offer(&nearest, str_from(known->name));
        field_error_add(errors, STR(""), "FieldValueInvalid", &key,
                        "unknown field " STR_FORMAT "%s" STR_FORMAT "%s", STR_ARG(quoted),
                        nearest.best.len ? "; did you mean \"" : "", STR_ARG(nearest.best),
                        nearest.best.len ? "\"?" : "");
    }
}

void schema_check_unknown(const struct schema *schema, const struct doc *object, struct field_errors *errors)
{
    unknown_in_object(schema, object, NULL, errors);
}

/* --- types ---------------------------------------------------------------------------------------------- */

static void wrong_type(struct field_errors *errors, const struct field_path *path, const struct doc *node,
                       const char *wanted)
{
    CHECK(node && wanted);
    struct str text = path_text(errors->arena, path);
    const char *got = doc_kind_name(node->kind);
    path_error(errors, path, "FieldValueTypeInvalid", node,
               "Invalid value: \"%s\": " STR_FORMAT " in body must be of type %s: \"%s\"", got, STR_ARG(text),
               wanted, got);
}

static void check_int(const struct doc *node, int64_t min, int64_t max, const struct field_path *path,
                      struct field_errors *errors)
{
    CHECK(min < max);
    if (node->kind != DOC_INT) {
        wrong_type(errors, path, node, "integer");
    } else if (node->integer < min || node->integer > max) {
        char why[96];
        snprintf(why, sizeof why, "must be between %lld and %lld, inclusive", (long long)min, (long long)max);
        path_invalid_int(errors, path, node, node->integer, why);
    }
}

bool schema_quantity(const struct doc *node, int64_t *ret_milli)
{
    switch (node->kind) {
    case DOC_INT:
        if (node->integer < 0 || node->integer > INT64_MAX / 1000)
            return false;
        *ret_milli = node->integer * 1000;
        return true;
    case DOC_FLOAT:
    case DOC_STRING:
        return quantity_parse_milli(node->text, ret_milli);
    default:
        return false;
    }
}

static void check_quantity(const struct doc *node, const struct field_path *path, struct field_errors *errors)
{
    int64_t milli = 0;
    if (node->kind != DOC_INT && node->kind != DOC_FLOAT && node->kind != DOC_STRING) {
        wrong_type(errors, path, node, "integer or string");
    } else if (!schema_quantity(node, &milli)) {
        struct str text = node->kind == DOC_INT
                              ? arena_printf(errors->arena, "%lld", (long long)node->integer)
                              : node->text;
        if (text.len > 0 && text.data[0] == '-')
            path_invalid(errors, path, node, text, "must be greater than or equal to 0");
        else
            path_invalid(errors, path, node, text,
                         "quantities must match the regular expression "
                         "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$' and fit 64 bits");
    }
}

static void check_map(const struct schema_field *field, const struct doc *node, const struct field_path *path,
                      struct field_errors *errors)
{
    if (node->kind != DOC_OBJECT) {
        wrong_type(errors, path, node, "object");
        return;
    }
    if (field->kind == SCHEMA_QUANTITY_MAP && node->object.len > QUANTITIES_MAX) {
        path_too_many(errors, path, node, node->object.len, QUANTITIES_MAX);
        return;
    }
    CHECK(field->kind == SCHEMA_STRING_MAP || field->kind == SCHEMA_QUANTITY_MAP);
    for (size_t i = 0; i < node->object.len; i++) {
        const struct doc_member *member = &node->object.members[i];
        const struct field_path *here = AT_KEY(path, member->key);
        if (field->kind == SCHEMA_QUANTITY_MAP)
            check_quantity(member->value, here, errors);
        else if (member->value->kind != DOC_STRING)
            wrong_type(errors, here, member->value, "string");
    }
}

struct checking {
    struct field_errors *errors;
    struct field_errors *doubles; /* duplicates of fields that may have them; NULL: they are errors */
};

static void types_in_object(const struct schema *schema, const struct doc *object,
                            const struct field_path *path, const struct checking *checking);

static void check_single(const struct schema_field *field, const struct doc *node,
                         const struct field_path *path, const struct checking *checking)
{
    struct field_errors *errors = checking->errors;
    switch (field->kind) {
    case SCHEMA_STRING:
        if (node->kind != DOC_STRING)
            wrong_type(errors, path, node, "string");
        else if (field->values && node->text.len > 0 && !path_one_of(node->text, field->values))
            path_unsupported(errors, path, node, node->text, field->values);
        break;
    case SCHEMA_BOOL:
        if (node->kind != DOC_BOOL)
            wrong_type(errors, path, node, "boolean");
        break;
    case SCHEMA_INT32:
        check_int(node, INT32_MIN, INT32_MAX, path, errors);
        break;
    case SCHEMA_INT64:
        check_int(node, INT64_MIN, INT64_MAX, path, errors);
        break;
    case SCHEMA_QUANTITY:
        check_quantity(node, path, errors);
        break;
    case SCHEMA_INT_OR_STRING:
        if (node->kind != DOC_INT && node->kind != DOC_STRING)
            wrong_type(errors, path, node, "integer or string");
        break;
    case SCHEMA_STRING_MAP:
    case SCHEMA_QUANTITY_MAP:
        check_map(field, node, path, errors);
        break;
    case SCHEMA_OBJECT:
        CHECK(field->object);
        types_in_object(field->object, node, path, checking);
        break;
    case SCHEMA_ANY:
        break;
    }
}

/* Returns the key of an item in a keyed list or a set, as text. Empty if the item has no key. */
static struct str item_key(struct arena *arena, const struct schema_field *field, const struct doc *item)
{
    BUF_CLEANUP struct buf text = {0};
    if (field->list == SCHEMA_SET) {
        if (item->kind != DOC_INT)
            return item->kind == DOC_STRING ? path_quote(arena, item->text) : STR("");
        buf_printf(&text, "%lld", (long long)item->integer);
        return arena_str(arena, buf_str(&text));
    }
    CHECK(field->list == SCHEMA_KEYED && field->keys);
    bool single = !strchr(field->keys, ',');
    struct str rest = str_from(field->keys), name = rest;
    for (bool more = true; more;) {
        more = str_cut(rest, ',', &name, &rest);
        name = more ? name : rest;
        const struct doc *key = doc_get_str(item, name);
        if (!key || (key->kind != DOC_STRING && key->kind != DOC_INT))
            return STR("");
        if (!single)
            buf_printf(&text, "%s\"" STR_FORMAT "\":", text.len > 0 ? "," : "{", STR_ARG(name));
        if (key->kind == DOC_INT)
            buf_printf(&text, "%lld", (long long)key->integer);
        else
            json_write_str(&text, key->text);
    }
    if (!single)
        buf_add_char(&text, '}');
    return arena_str(arena, buf_str(&text));
}

static void check_unique(const struct schema_field *field, const struct doc *list,
                         const struct field_path *path, const struct checking *checking)
{
    CHECK(list->kind == DOC_ARRAY && (field->list == SCHEMA_SET || field->keys));
    bool doubles = field->doubles && checking->doubles;
    struct field_errors *errors = doubles ? checking->doubles : checking->errors;
    struct str_map seen = {0};
    if (list->array.len < 2)
        return;
    for (size_t i = 0; i < list->array.len; i++) {
        struct doc *item = list->array.items[i];
        struct str key = item_key(errors->arena, field, item);
        if (key.len == 0 || !str_map_put(&seen, key, item))
            continue;
        bool by_field = field->list == SCHEMA_KEYED && !strchr(field->keys, ',');
        const struct field_path *here = AT_INDEX(path, i);
        if (doubles)
            path_error(errors, here, "FieldValueDuplicate", item,
                       "hides previous definition of " STR_FORMAT ", which may be dropped when using apply",
                       STR_ARG(key));
        else
            path_error(errors, by_field ? AT(here, field->keys) : here, "FieldValueDuplicate",
                       by_field ? doc_get(item, field->keys) : item, "Duplicate value: " STR_FORMAT,
                       STR_ARG(key));
    }
    str_map_done(&seen);
}

static void check_field(const struct schema_field *field, const struct doc *node,
                        const struct field_path *path, const struct checking *checking)
{
    struct field_errors *errors = checking->errors;
    CHECK(!is_absent(node) && (field->items_max == 0 || field->list != SCHEMA_SINGLE));
    CHECK((field->list == SCHEMA_KEYED) == (field->keys != NULL));
    CHECK((field->kind == SCHEMA_OBJECT) == (field->object != NULL));
    CHECK(!field->values || field->kind == SCHEMA_STRING);
    CHECK(!field->doubles || field->list == SCHEMA_KEYED);
    if (field->list == SCHEMA_SINGLE) {
        check_single(field, node, path, checking);
    } else if (node->kind != DOC_ARRAY) {
        wrong_type(errors, path, node, "array");
    } else if (field->items_max > 0 && node->array.len > field->items_max) {
        path_too_many(errors, path, node, node->array.len, field->items_max);
    } else {
        for (size_t i = 0; i < node->array.len; i++)
            check_single(field, node->array.items[i], AT_INDEX(path, i), checking);
        if (field->list != SCHEMA_ATOMIC)
            check_unique(field, node, path, checking);
    }
}

static void types_in_object(const struct schema *schema, const struct doc *object,
                            const struct field_path *path, const struct checking *checking)
{
    struct field_errors *errors = checking->errors;
    if (object->kind != DOC_OBJECT) {
        wrong_type(errors, path, object, "object");
        return;
    }
    for (const struct schema_field *field = schema->fields; field->name; field++) {
        const struct doc *node = value_of(object, field);
        if (!field->required && is_absent(node))
            continue;
        const struct field_path *here = AT_STR(path, name_of(field));
        if (!is_absent(node))
            check_field(field, node, here, checking);
        /* An empty string in place of an enum's value counts as absent. */
        if (field->required &&
            (is_absent(node) || (field->values && node->kind == DOC_STRING && node->text.len == 0)))
            path_required(errors, here, node ? node : object, NULL);
    }
}

void schema_check_types(const struct schema *schema, const struct doc *object, struct field_errors *errors)
{
    types_in_object(schema, object, NULL, &(struct checking){.errors = errors});
}

void schema_check_builtin(const struct schema *schema, const struct doc *object, struct field_errors *errors,
                          struct field_errors *doubles)
{
    struct field_errors unsaid = {.arena = errors->arena};
    types_in_object(schema, object, NULL, &(struct checking){errors, doubles ? doubles : &unsaid});
    field_errors_done(&unsaid);
}

/* --- defaults ------------------------------------------------------------------------------------------- */

static void default_value(const struct schema_field *field, struct arena *arena, struct doc *object)
{
    CHECK(field->fallback && field->list == SCHEMA_SINGLE);
    int64_t number = 0;
    if (field->kind == SCHEMA_OBJECT) {
        struct doc *made = doc_new(arena, DOC_OBJECT);
        doc_set(arena, object, name_of(field), made);
        schema_default(field->object, arena, made);
    } else if (field->kind == SCHEMA_STRING || field->kind == SCHEMA_QUANTITY) {
        doc_set(arena, object, name_of(field), doc_new_str(arena, str_from(field->fallback)));
    } else {
        CHECK(field->kind == SCHEMA_INT32 && str_to_i64(str_from(field->fallback), 0, INT32_MAX, &number));
        doc_set(arena, object, name_of(field), doc_new_int(arena, number));
    }
}

static void canonical(struct arena *arena, struct doc *node)
{
    char text[QUANTITY_TEXT_MAX], digits[DECIMAL_TEXT_MAX];
    struct str given = node->text;
    if (node->kind == DOC_INT) {
        given = str_decimal(node->integer, digits);
    } else if (node->kind != DOC_FLOAT && node->kind != DOC_STRING) {
        return;
    }
    if (node->kind == DOC_INT && node->integer > 0 && node->integer < 1000) {
        node->kind = DOC_STRING; /* no suffix makes it shorter */
        node->text = arena_str(arena, given);
        return;
    }
    if (!quantity_canonical(given, text) || (node->kind == DOC_STRING && str_is(given, text)))
        return;
    node->kind = DOC_STRING;
    node->text = arena_str(arena, str_from(text));
}

static void canonical_quantities(const struct schema_field *field, struct arena *arena, struct doc *node)
{
    if (field->kind == SCHEMA_QUANTITY)
        canonical(arena, node);
    for (size_t i = 0; field->kind == SCHEMA_QUANTITY_MAP && node->kind == DOC_OBJECT && i < node->object.len;
         i++)
        canonical(arena, node->object.members[i].value);
}

void schema_default(const struct schema *schema, struct arena *arena, struct doc *object)
{
    if (object->kind != DOC_OBJECT)
        return;
    for (const struct schema_field *field = schema->fields; field->name; field++) {
        struct doc *node = value_of(object, field);
        if (is_absent(node)) {
            if (field->fallback)
                default_value(field, arena, object);
        } else if (field->list == SCHEMA_SINGLE && field->kind != SCHEMA_OBJECT) {
            canonical_quantities(field, arena, node);
        } else if (field->kind == SCHEMA_OBJECT && field->list == SCHEMA_SINGLE) {
            schema_default(field->object, arena, node);
        } else if (field->kind == SCHEMA_OBJECT && node->kind == DOC_ARRAY) {
            for (size_t i = 0; i < node->array.len; i++)
                schema_default(field->object, arena, node->array.items[i]);
        }
    }
}

/* --- equality ------------------------------------------------------------------------------------------- */

/* Returns whether the node equals an absent one, as empty lists and maps do in Kubernetes' equality. */
static bool is_void(const struct schema_field *field, const struct doc *node)
{
    if (is_absent(node))
        return true;
    if (field->list != SCHEMA_SINGLE)
        return node->kind == DOC_ARRAY && node->array.len == 0;
    if (field->kind == SCHEMA_STRING_MAP || field->kind == SCHEMA_QUANTITY_MAP)
        return node->kind == DOC_OBJECT && node->object.len == 0;
    return false;
}

static bool quantities_equal(const struct doc *a, const struct doc *b)
{
    int64_t left = 0, right = 0;
    if (schema_quantity(a, &left) && schema_quantity(b, &right))
        return left == right;
    return doc_equal(a, b);
}

static bool quantity_maps_equal(const struct doc *a, const struct doc *b)
{
    if (a->kind != DOC_OBJECT || b->kind != DOC_OBJECT || a->object.len > QUANTITIES_MAX)
        return doc_equal(a, b);
    CHECK(a->object.len <= QUANTITIES_MAX); /* bounds the quadratic walk below */
    if (a->object.len != b->object.len)
        return false;
    for (size_t i = 0; i < a->object.len; i++) {
        const struct doc *other = doc_get_str(b, a->object.members[i].key);
        if (!other || !quantities_equal(a->object.members[i].value, other))
            return false;
    }
    return true;
}

static bool single_equal(const struct schema_field *field, const struct doc *a, const struct doc *b)
{
    switch (field->kind) {
    case SCHEMA_OBJECT:
        return schema_object_equal(field->object, a, b);
    case SCHEMA_QUANTITY:
        return quantities_equal(a, b);
    case SCHEMA_QUANTITY_MAP:
        return quantity_maps_equal(a, b);
    default:
        return doc_equal(a, b);
    }
}

bool schema_equal(const struct schema_field *field, const struct doc *a, const struct doc *b)
{
    if (is_void(field, a) || is_void(field, b))
        return is_void(field, a) && is_void(field, b);
    CHECK(a && b);
    if (a->kind == DOC_PACKED || b->kind == DOC_PACKED)
        return doc_equal(a, b);
    if (field->list == SCHEMA_SINGLE)
        return single_equal(field, a, b);
    if (a->kind != DOC_ARRAY || b->kind != DOC_ARRAY || a->array.len != b->array.len)
        return a->kind != DOC_ARRAY && b->kind != DOC_ARRAY && doc_equal(a, b);
    for (size_t i = 0; i < a->array.len; i++) {
        if (!single_equal(field, a->array.items[i], b->array.items[i]))
            return false;
    }
    return true;
}

/* Compares the members without a row with doc_equal. */
static bool unknown_equal(const struct schema *schema, const struct doc *a, const struct doc *b)
{
    for (size_t i = 0; i < a->object.len; i++) {
        const struct doc_member *member = &a->object.members[i];
        if (!schema_field_of(schema, member->key) && !doc_equal(member->value, doc_get_str(b, member->key)))
            return false;
    }
    return true;
}

bool schema_object_equal(const struct schema *schema, const struct doc *a, const struct doc *b)
{
    if (a->kind != DOC_OBJECT || b->kind != DOC_OBJECT)
        return doc_equal(a, b);
    for (const struct schema_field *field = schema->fields; field->name; field++) {
        if (!schema_equal(field, value_of(a, field), value_of(b, field)))
            return false;
    }
    return unknown_equal(schema, a, b) && unknown_equal(schema, b, a);
}
