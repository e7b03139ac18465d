/* validate_meta.c - metadata, labels, annotations. */
#include "core/limits.h"
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
