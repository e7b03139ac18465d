#include "kube/fieldset.h"

#include <stdlib.h>

#include "doc/json.h"
#include "kube/members.h"

/* --- the tree ---------------------------------------------------------------------------------- */

const struct fieldset *fieldset_find(const struct fieldset *set, struct str element)
{
    size_t low = 0, high = set ? set->len : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = str_compare(set->items[middle].element, element);
        if (order == 0)
            return &set->items[middle].set;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static void push(struct arena *arena, struct fieldset *set, struct str element, struct fieldset child)
{
    if (fieldset_empty(&child))
        return;
    if (set->len == set->cap) {
        size_t cap = set->cap ? set->cap * 2 : 4;
        struct fieldset_item *items = ARENA_ARRAY(arena, struct fieldset_item, cap);
        mem_copy(items, set->items, set->len * sizeof *items);
        set->items = items;
        set->cap = cap;
    }
    set->items[set->len++] = (struct fieldset_item){element, child};
}

static int compare_items(const void *a, const void *b)
{
    return str_compare(((const struct fieldset_item *)a)->element,
                       ((const struct fieldset_item *)b)->element);
}

/* Restores the order after pushes in any order; equal elements become one. */
static void settle(struct arena *arena, struct fieldset *set)
{
    size_t kept = 0;
    if (set->len > 1)
        qsort(set->items, set->len, sizeof *set->items, compare_items);
    for (size_t i = 0; i < set->len; i++) {
        if (kept && str_equal(set->items[kept - 1].element, set->items[i].element))
            set->items[kept - 1].set = fieldset_union(arena, &set->items[kept - 1].set, &set->items[i].set);
        else
            set->items[kept++] = set->items[i];
    }
    set->len = kept;
}

enum { IN_A = 1, IN_B = 2, IN_BOTH = 4 };

/* Merges two sets: `keep` tells whether the result has the members only in a, only in b and in both. */
static struct fieldset combine(struct arena *arena, const struct fieldset *a, const struct fieldset *b,
                               unsigned keep)
{
    struct fieldset result = {0};
    bool in_a = a && a->member, in_b = b && b->member;
    result.member = in_a && in_b ? keep & IN_BOTH : (in_a && keep & IN_A) || (in_b && keep & IN_B);
    size_t i = 0, k = 0, a_len = a ? a->len : 0, b_len = b ? b->len : 0;
    while (i < a_len || k < b_len) {
        int order = i == a_len ? 1 : k == b_len ? -1 : str_compare(a->items[i].element, b->items[k].element);
        if (order < 0) {
            if (keep & IN_A)
                push(arena, &result, a->items[i].element, a->items[i].set);
            i++;
        } else if (order > 0) {
            if (keep & IN_B)
                push(arena, &result, b->items[k].element, b->items[k].set);
            k++;
        } else {
            push(arena, &result, a->items[i].element,
                 combine(arena, &a->items[i].set, &b->items[k].set, keep));
            i++;
            k++;
        }
    }
    return result;
}

struct fieldset fieldset_union(struct arena *arena, const struct fieldset *a, const struct fieldset *b)
{
    return combine(arena, a, b, IN_A | IN_B | IN_BOTH);
}

struct fieldset fieldset_minus(struct arena *arena, const struct fieldset *a, const struct fieldset *b)
{
    return combine(arena, a, b, IN_A);
}

struct fieldset fieldset_common(struct arena *arena, const struct fieldset *a, const struct fieldset *b)
{
    return combine(arena, a, b, IN_BOTH);
}

bool fieldset_equal(const struct fieldset *a, const struct fieldset *b)
{
    if (a->member != b->member || a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++)
        if (!str_equal(a->items[i].element, b->items[i].element) ||
            !fieldset_equal(&a->items[i].set, &b->items[i].set))
            return false;
    return true;
}

/* --- FieldsV1 ---------------------------------------------------------------------------------- */

int fieldset_parse(struct arena *arena, const struct doc *fields, struct fieldset *ret_set,
                   struct error *error)
{
    struct fieldset set = {0};
    if (!fields || fields->kind != DOC_OBJECT)
        return error_set(error, ERROR_INVALID, "fieldsV1 must be an object");
    for (size_t i = 0; i < fields->object.len; i++) {
        const struct doc_member *member = &fields->object.members[i];
        struct fieldset child = {0};
        if (str_is(member->key, ".")) {
            set.member = true;
            continue;
        }
        bool known = member->key.len >= 2 && member->key.data[1] == ':' &&
                     memchr("fkvi", member->key.data[0], 4) != NULL;
        if (!known)
            return error_set(error, ERROR_INVALID, "unknown path element \"" STR_FORMAT "\" in fieldsV1",
                             STR_ARG(member->key));
        int rc = fieldset_parse(arena, member->value, &child, error);
        if (rc < 0)
            return rc;
        if (child.len == 0)
            child.member = true;
        push(arena, &set, arena_str(arena, member->key), child);
    }
    settle(arena, &set);
    *ret_set = set;
    return 0;
}

struct doc *fieldset_doc(struct arena *arena, const struct fieldset *set)
{
    struct doc *fields = doc_new(arena, DOC_OBJECT);
    if (set->member && set->len)
        CHECK(doc_try_add(arena, fields,
                          (struct doc_member){.key = STR("."), .value = doc_new(arena, DOC_OBJECT)}));
    for (size_t i = 0; i < set->len; i++)
        CHECK(doc_try_add(arena, fields,
                          (struct doc_member){.key = set->items[i].element,
                                              .value = fieldset_doc(arena, &set->items[i].set)}));
    return fields;
}

/* --- walking documents ------------------------------------------------------------------------- */

/* How a node is split. Without a field in the tables, objects are split by member; other nodes are leaves. */
enum shape { SHAPE_LEAF, SHAPE_OBJECT, SHAPE_ITEMS };

static enum shape shape_of(const struct schema *schema, const struct schema_field *field,
                           const struct doc *node)
{
    if (field && field->list == SCHEMA_ATOMIC)
        return SHAPE_LEAF;
    if (field && field->list != SCHEMA_SINGLE)
        return node->kind == DOC_ARRAY ? SHAPE_ITEMS : SHAPE_LEAF;
    bool object = schema || !field || field->kind == SCHEMA_ANY || field->kind == SCHEMA_STRING_MAP ||
                  field->kind == SCHEMA_QUANTITY_MAP;
    return object && node->kind == DOC_OBJECT ? SHAPE_OBJECT : SHAPE_LEAF;
}

static const struct schema *schema_below(const struct schema_field *field)
{
    return field && field->list == SCHEMA_SINGLE && field->kind == SCHEMA_OBJECT ? field->object : NULL;
}

static struct str member_element(struct arena *arena, struct str name)
{
    return arena_printf(arena, "f:" STR_FORMAT, STR_ARG(name));
}

static struct str value_text(struct arena *arena, const struct doc *value)
{
    struct buf text BUF_CLEANUP = {0};
    json_write(&text, value);
    return arena_str(arena, buf_str(&text));
}

/* Writes the keys of a keyed item, {"a":1,"b":"x"}; an absent key has its default. */
static bool keys_text(struct arena *arena, const struct schema_field *field, const struct doc *item,
                      struct str *ret_text)
{
    struct doc *keys = doc_new(arena, DOC_OBJECT);
    struct str rest = str_from(field->keys), name;
    int64_t number;
    while (rest.len) {
        if (!str_cut(rest, ',', &name, &rest)) {
            name = rest;
            rest = (struct str){0};
        }
        struct doc *value = doc_get_str(item, name);
        const struct schema_field *key = schema_field_of(field->object, name);
        if ((!value || value->kind == DOC_NULL) && key && key->fallback) {
            struct str text = str_from(key->fallback);
            bool is_number = key->kind == SCHEMA_INT32 && str_to_i64(text, INT32_MIN, INT32_MAX, &number);
            value = is_number ? doc_new_int(arena, number) : doc_new_str(arena, text);
        }
        if (!value || value->kind == DOC_NULL || value->kind == DOC_ARRAY || value->kind == DOC_OBJECT)
            return false;
        doc_set(arena, keys, name, value);
    }
    *ret_text = value_text(arena, keys);
    return true;
}

bool fieldset_item_element(struct arena *arena, const struct schema_field *field, const struct doc *item,
                           size_t index, struct str *ret_element)
{
    struct str text;
    if (field->list == SCHEMA_SET && item->kind != DOC_OBJECT && item->kind != DOC_ARRAY) {
        text = value_text(arena, item);
        *ret_element = arena_printf(arena, "v:" STR_FORMAT, STR_ARG(text));
        return true;
    }
    if (field->list == SCHEMA_KEYED && keys_text(arena, field, item, &text)) {
        *ret_element = arena_printf(arena, "k:" STR_FORMAT, STR_ARG(text));
        return true;
    }
    *ret_element = arena_printf(arena, "i:%zu", index);
    return false;
}

/* Returns the set of a node's fields. `schema` is that of an object's members, if the tables have it; `field`
 * is that of a map, list or scalar. `whole`: the node itself is a member although it has children (an item of
 * a list, or a node that a writer made). */
static struct fieldset walk(struct arena *arena, const struct schema *schema,
                            const struct schema_field *field, const struct doc *node, bool whole, bool made)
{
    struct fieldset set = {0};
    enum shape shape = shape_of(schema, field, node);
    set.member = shape == SHAPE_LEAF || whole || made || doc_len(node) == 0;
    if (shape == SHAPE_OBJECT) {
        for (size_t i = 0; i < node->object.len; i++) {
            const struct doc_member *member = &node->object.members[i];
            const struct schema_field *below = schema ? schema_field_of(schema, member->key) : NULL;
            push(arena, &set, member_element(arena, member->key),
                 walk(arena, schema_below(below), below, member->value, false, made));
        }
    } else if (shape == SHAPE_ITEMS) {
        for (size_t i = 0; i < node->array.len; i++) {
            struct str element;
            const struct doc *item = node->array.items[i];
            fieldset_item_element(arena, field, item, i, &element);
            if (field->list == SCHEMA_KEYED && item->kind == DOC_OBJECT)
                push(arena, &set, element, walk(arena, field->object, NULL, item, true, made));
            else
                push(arena, &set, element, (struct fieldset){.member = true});
        }
    }
    settle(arena, &set);
    return set;
}

struct fieldset fieldset_of(struct arena *arena, const struct schema *schema, const struct doc *object)
{
    struct fieldset set = walk(arena, schema, NULL, object, false, false);
    set.member = false;
    return set;
}

/* --- comparing --------------------------------------------------------------------------------- */

static struct fieldset_change compare(struct arena *arena, const struct schema *schema,
                                      const struct schema_field *field, const struct doc *before,
                                      const struct doc *after);

static void add_change(struct arena *arena, struct fieldset_change *all, struct str element,
                       const struct schema *schema, const struct schema_field *field,
                       const struct doc *before, const struct doc *after)
{
    struct fieldset_change one = {0};
    bool no_before = !before || before->kind == DOC_NULL, no_after = !after || after->kind == DOC_NULL;
    if (no_before && no_after)
        return;
    if (no_before)
        one.set = walk(arena, schema, field, after, true, true);
    else if (no_after)
        one.removed = walk(arena, schema, field, before, true, true);
    else
        one = compare(arena, schema, field, before, after);
    push(arena, &all->set, element, one.set);
    push(arena, &all->removed, element, one.removed);
}

static const struct schema_field *member_field(const struct schema *schema, const struct schema_field *field,
                                               struct str name)
{
    static const struct schema_field quantity = {.kind = SCHEMA_QUANTITY};
    if (schema)
        return schema_field_of(schema, name);
    return field && field->kind == SCHEMA_QUANTITY_MAP ? &quantity : NULL;
}

static void compare_members(struct arena *arena, const struct schema *schema,
                            const struct schema_field *field, const struct doc *before,
                            const struct doc *after, struct fieldset_change *all)
{
    struct members old MEMBERS_CLEANUP = members_of((struct doc *)before);
    struct members new MEMBERS_CLEANUP = members_of((struct doc *)after);
    for (size_t i = 0; i < after->object.len; i++) {
        const struct doc_member *member = &after->object.members[i];
        const struct schema_field *below = member_field(schema, field, member->key);
        add_change(arena, all, member_element(arena, member->key), schema_below(below), below,
                   members_get(&old, member->key), member->value);
    }
    for (size_t i = 0; i < before->object.len; i++) {
        const struct doc_member *member = &before->object.members[i];
        const struct schema_field *below = member_field(schema, field, member->key);
        if (!members_get(&new, member->key))
            add_change(arena, all, member_element(arena, member->key), schema_below(below), below,
                       member->value, NULL);
    }
}

struct keyed {
    struct str element;
    const struct doc *item;
};

static int compare_keyed(const void *a, const void *b)
{
    return str_compare(((const struct keyed *)a)->element, ((const struct keyed *)b)->element);
}

static struct keyed *sorted_items(struct arena *arena, const struct schema_field *field,
                                  const struct doc *list)
{
    struct keyed *items = ARENA_ARRAY(arena, struct keyed, list->array.len);
    for (size_t i = 0; i < list->array.len; i++) {
        items[i].item = list->array.items[i];
        fieldset_item_element(arena, field, items[i].item, i, &items[i].element);
    }
    if (list->array.len > 1)
        qsort(items, list->array.len, sizeof *items, compare_keyed);
    return items;
}

static void compare_items_of(struct arena *arena, const struct schema_field *field, const struct doc *before,
                             const struct doc *after, struct fieldset_change *all)
{
    const struct schema *schema = field->list == SCHEMA_KEYED ? field->object : NULL;
    static const struct schema_field scalar = {.kind = SCHEMA_STRING};
    const struct schema_field *item_field = field->list == SCHEMA_KEYED ? NULL : &scalar;
    struct keyed *a = sorted_items(arena, field, before), *b = sorted_items(arena, field, after);
    size_t i = 0, k = 0, a_len = before->array.len, b_len = after->array.len;
    while (i < a_len || k < b_len) {
        int order = i == a_len ? 1 : k == b_len ? -1 : str_compare(a[i].element, b[k].element);
        const struct doc *left = order <= 0 ? a[i].item : NULL, *right = order >= 0 ? b[k].item : NULL;
        add_change(arena, all, order <= 0 ? a[i].element : b[k].element, schema, item_field, left, right);
        i += order <= 0;
        k += order >= 0;
    }
}

static bool leaves_equal(const struct schema_field *field, const struct doc *before, const struct doc *after)
{
    int64_t left, right;
    if (field && field->kind == SCHEMA_QUANTITY && schema_quantity(before, &left) &&
        schema_quantity(after, &right))
        return left == right;
    return doc_equal(before, after);
}

static struct fieldset_change compare(struct arena *arena, const struct schema *schema,
                                      const struct schema_field *field, const struct doc *before,
                                      const struct doc *after)
{
    struct fieldset_change all = {0};
    enum shape shape = shape_of(schema, field, after);
    if (shape_of(schema, field, before) != shape || shape == SHAPE_LEAF) {
        if (leaves_equal(field, before, after))
            return all;
        all.set = walk(arena, schema, field, after, true, true);
        if (shape_of(schema, field, before) != SHAPE_LEAF)
            all.removed = walk(arena, schema, field, before, false, true);
        return all;
    }
    if (shape == SHAPE_OBJECT)
        compare_members(arena, schema, field, before, after, &all);
    else
        compare_items_of(arena, field, before, after, &all);
    settle(arena, &all.set);
    settle(arena, &all.removed);
    return all;
}

struct fieldset_change fieldset_compare(struct arena *arena, const struct schema *schema,
                                        const struct doc *before, const struct doc *after)
{
    struct doc nothing = {.kind = DOC_OBJECT};
    struct fieldset_change change = compare(arena, schema, NULL, before ? before : &nothing, after);
    change.set.member = change.removed.member = false;
    return change;
}

/* --- for people -------------------------------------------------------------------------------- */

static void put_element(struct buf *path, struct str element)
{
    struct str rest = {element.data + 2, element.len - 2};
    if (element.data[0] == 'f') {
        buf_printf(path, "." STR_FORMAT, STR_ARG(rest));
        return;
    }
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *keys;
    if (element.data[0] == 'k' && json_parse(&arena, rest, &keys, NULL) == 0 && keys->kind == DOC_OBJECT) {
        buf_add_char(path, '[');
        for (size_t i = 0; i < keys->object.len; i++) {
            buf_printf(path, "%s" STR_FORMAT "=", i ? "," : "", STR_ARG(keys->object.members[i].key));
            json_write(path, keys->object.members[i].value);
        }
        buf_add_char(path, ']');
    } else {
        buf_printf(path, element.data[0] == 'v' ? "[=" STR_FORMAT "]" : "[" STR_FORMAT "]", STR_ARG(rest));
    }
}

static void visit_below(struct arena *arena, const struct fieldset *set, struct buf *path,
                        void (*visit)(void *context, struct str path), void *context)
{
    if (set->member && path->len)
        visit(context, arena_str(arena, buf_str(path)));
    for (size_t i = 0; i < set->len; i++) {
        size_t len = path->len;
        put_element(path, set->items[i].element);
        visit_below(arena, &set->items[i].set, path, visit, context);
        path->len = len;
    }
}

void fieldset_visit(struct arena *arena, const struct fieldset *set,
                    void (*visit)(void *context, struct str path), void *context)
{
    struct buf path BUF_CLEANUP = {0};
    visit_below(arena, set, &path, visit, context);
}
