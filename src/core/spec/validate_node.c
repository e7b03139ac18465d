/* validate_node.c - the parts of a Node that users may write: labels, annotations, taints (Kubernetes,
 * pkg/apis/core/validation, ValidateNode). */
#include "core/words/limits.h"
#include "core/spec/validate.h"

static void check_taint(const struct doc *taints, size_t at, struct field_errors *errors)
{
    const struct doc *taint = doc_at(taints, at), *effect = doc_get(taint, "effect");
    const struct doc *value = doc_get(taint, "value");
    const struct field_path *path = AT_INDEX(AT(AT(NULL, "spec"), "taints"), at);
    struct str key = doc_str(doc_get(taint, "key"), STR("")), word = doc_str(effect, STR(""));
    if (!name_is_label_key(key))
        path_invalid(errors, AT(path, "key"), taint, key, WHY_LABEL_KEY);
    if (!name_is_label_value(doc_str(value, STR(""))))
        path_invalid(errors, AT(path, "value"), value, doc_str(value, STR("")), WHY_LABEL_VALUE);
    if (effect && !path_one_of(word, "NoSchedule,PreferNoSchedule,NoExecute"))
        path_unsupported(errors, AT(path, "effect"), effect, word, "NoSchedule,PreferNoSchedule,NoExecute");
    for (size_t i = 0; i < at; i++)
        if (str_equal(doc_str(doc_get(doc_at(taints, i), "key"), STR("")), key) &&
            str_equal(doc_str(doc_get(doc_at(taints, i), "effect"), STR("")), word)) {
            path_duplicate(errors, path, taint, key);
            return;
        }
}

void metadata_check(const struct doc *object, struct field_errors *errors)
{
    const struct doc *metadata = doc_get(object, "metadata"), *labels = doc_get(metadata, "labels");
    validate_meta(metadata, AT(NULL, "metadata"), errors);
    if (doc_len(labels) > LABELS_MAX)
        path_too_many(errors, AT(AT(NULL, "metadata"), "labels"), labels, doc_len(labels), LABELS_MAX);
}

void node_check(const struct doc *object, struct field_errors *errors)
{
    const struct doc *taints = doc_path(object, "spec", "taints", NULL);
    metadata_check(object, errors);
    if (doc_len(taints) > LABELS_MAX)
        path_too_many(errors, AT(AT(NULL, "spec"), "taints"), taints, doc_len(taints), LABELS_MAX);
    for (size_t i = 0; i < doc_len(taints) && i < LABELS_MAX; i++)
        check_taint(taints, i, errors);
}
