/* selector.c - matches a metav1.LabelSelector with a map of labels. */
#include "core/spec/spec.h"

static bool among(struct str value, const struct doc *values)
{
    for (size_t i = 0; i < doc_len(values); i++)
        if (str_equal(doc_str(doc_at(values, i), STR("")), value))
            return true;
    return false;
}

static bool expression_matches(const struct doc *expression, const struct doc *labels)
{
    struct str op = doc_str(doc_get(expression, "operator"), STR(""));
    const struct doc *label = doc_get_str(labels, doc_str(doc_get(expression, "key"), STR("")));
    struct str value = doc_str(label, STR(""));
    const struct doc *values = doc_get(expression, "values");
    if (str_is(op, "In"))
        return label && among(value, values);
    if (str_is(op, "NotIn"))
        return !label || !among(value, values);
    return str_is(op, "Exists") ? label != NULL : str_is(op, "DoesNotExist") && !label;
}

bool selector_matches(const struct doc *selector, const struct doc *labels)
{
    if (!selector || selector->kind != DOC_OBJECT)
        return false;
    const struct doc *wanted = doc_get(selector, "matchLabels");
    for (size_t i = 0; i < doc_len(wanted); i++) {
        const struct doc_member *member = &wanted->object.members[i];
        const struct doc *label = doc_get_str(labels, member->key);
        if (!label || !str_equal(doc_str(label, STR("")), doc_str(member->value, STR(""))))
            return false;
    }
    const struct doc *expressions = doc_get(selector, "matchExpressions");
    for (size_t i = 0; i < doc_len(expressions); i++)
        if (!expression_matches(doc_at(expressions, i), labels))
            return false;
    return true;
}
