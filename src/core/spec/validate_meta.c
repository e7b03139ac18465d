/* validate_meta.c - metadata, labels, annotations. */
#include "core/words/limits.h"
#include "core/spec/validate.h"

#include <stdio.h>

enum { ANNOTATION_BYTES_MAX = 256 * 1024 };

void validate_min(const struct doc *node, int64_t min, const struct field_path *path,
                  struct field_errors *errors)
{
    if (!node || node->kind != DOC_INT || node->integer >= min)
        return;
    char why[64];
    snprintf(why, sizeof why, "must be greater than or equal to %lld", (long long)min);
    path_invalid_int(errors, path, node, node->integer, why);
}

void validate_labels(const struct doc *map, const struct field_path *path, struct field_errors *errors)
{
    CHECK(typed_as(map, DOC_OBJECT));
    if (doc_len(map) > LABELS_MAX)
        path_too_many(errors, path, map, doc_len(map), LABELS_MAX);
    for (size_t i = 0; i < doc_len(map) && i < LABELS_MAX; i++) {
        CHECK(map->kind == DOC_OBJECT); /* types have been checked */
        const struct doc_member *member = &map->object.members[i];
        struct str value = doc_str(member->value, STR(""));
        if (!name_is_label_key(member->key))
            path_invalid(errors, path, member->value, member->key, WHY_LABEL_KEY);
        if (!name_is_label_value(value))
            path_invalid(errors, path, member->value, value, value.len > 63 ? WHY_63_BYTES : WHY_LABEL_VALUE);
    }
}

static void validate_annotations(const struct doc *map, const struct field_path *path,
                                 struct field_errors *errors)
{
    size_t bytes = 0;
    for (size_t i = 0; i < doc_len(map); i++) {
        CHECK(map->kind == DOC_OBJECT); /* types have been checked */
        const struct doc_member *member = &map->object.members[i];
        bytes += member->key.len + doc_str(member->value, STR("")).len;
        if (!name_is_label_key(member->key))
            path_invalid(errors, path, member->value, member->key, WHY_LABEL_KEY);
    }
    if (bytes > ANNOTATION_BYTES_MAX)
        path_error(errors, path, "FieldValueTooLong", map, "Too long: may not be more than %d bytes",
                   (int)ANNOTATION_BYTES_MAX);
}

void validate_meta(const struct doc *meta, const struct field_path *path, struct field_errors *errors)
{
    validate_labels(doc_get(meta, "labels"), AT(path, "labels"), errors);
    validate_annotations(doc_get(meta, "annotations"), AT(path, "annotations"), errors);
}

void validate_selector(const struct doc *selector, const struct field_path *path, struct field_errors *errors)
{
    static const char operators[] = "In,NotIn,Exists,DoesNotExist";
    const struct doc *list = doc_get(selector, "matchExpressions");
    validate_labels(doc_get(selector, "matchLabels"), AT(path, "matchLabels"), errors);
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *item = doc_at(list, i), *op = doc_get(item, "operator");
        const struct field_path *here = AT_INDEX(AT(path, "matchExpressions"), i);
        struct str text = doc_str(op, STR("")), key = doc_str(doc_get(item, "key"), STR(""));
        bool values = str_is(text, "In") || str_is(text, "NotIn");
        if (!path_one_of(text, operators))
            path_invalid(errors, AT(here, "operator"), op ? op : item, text, "not a valid selector operator");
        else if (values && doc_len(doc_get(item, "values")) == 0)
            path_required(errors, AT(here, "values"), item,
                          "must be specified when `operator` is 'In' or 'NotIn'");
        else if (!values && doc_len(doc_get(item, "values")) > 0)
            path_forbidden(errors, AT(here, "values"), item,
                           "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        if (!name_is_label_key(key))
            path_invalid(errors, AT(here, "key"), item, key, WHY_LABEL_KEY);
    }
}
