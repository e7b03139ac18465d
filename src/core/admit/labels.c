/* labels.c - checks Kueue's labels on jobs, as its webhooks do: the names of a queue and of a prebuilt
 * Workload, the maximum execution time, the priority class. */
#include "core/admit/internal.h"

#define QUEUE    "kueue.x-k8s.io/queue-name"
#define PREBUILT "kueue.x-k8s.io/prebuilt-workload-name"
#define LONGEST  "kueue.x-k8s.io/max-exec-time-seconds"
#define CLASS    "kueue.x-k8s.io/priority-class"

static void refuse(struct field_errors *errors, const char *key, struct str value, const char *why)
{
    field_error_add(errors, arena_printf(errors->arena, "metadata.labels[%s]", key), "FieldValueInvalid",
                    NULL, "Invalid value: \"" STR_FORMAT "\": %s", STR_ARG(value), why);
}

static void check_longest(struct str text, bool present, struct field_errors *errors)
{
    int64_t seconds;
    if (present && !str_to_i64(text, 1, INT32_MAX, &seconds))
        refuse(errors, LONGEST, text, "must be a number of seconds greater than 0");
}

static void check_name(const struct labels *labels, const char *key, struct field_errors *errors)
{
    struct str name = labels_get(labels, str_from(key), STR(""));
    if (name.len && !name_is_dns1123_subdomain(name))
        refuse(errors, key, name,
               "must be the name of an object: lower case letters, digits, '-' and '.', and a letter or "
               "digit at "
               "both ends");
}

void labels_validate_new(const struct jobset_spec *spec, struct field_errors *errors)
{
    struct str longest = labels_get(&spec->labels, STR(LONGEST), (struct str){0});
    check_name(&spec->labels, QUEUE, errors);
    check_name(&spec->labels, PREBUILT, errors);
    check_longest(longest, longest.data != NULL, errors);
}

/* Checks a change of the WorkloadPriorityClass. A workload with a class may change to another one, but not to
 * none. A running workload without a class may not get one. */
static void check_class(struct str was, struct str is, bool runs, struct field_errors *errors)
{
    const char *why = was.len && !is.len ? "WorkloadPriorityClass cannot be removed from a workload"
                      : !was.len && is.len && runs
                          ? "WorkloadPriorityClass cannot be added to a non-suspended workload"
                          : NULL;
    if (why)
        refuse(errors, CLASS, is, why);
}

void labels_validate_update(const struct jobset *jobset, const struct doc *labels, bool runs,
                            struct field_errors *errors)
{
    const struct labels *before = &jobset->spec.labels;
    const struct doc *longest = doc_get(labels, LONGEST);
    struct str is = doc_str(longest, STR("")), was = labels_get(before, STR(LONGEST), STR(""));
    if (labels_get(before, STR(QUEUE), STR("")).len == 0)
        return;
    check_class(labels_get(before, STR(CLASS), STR("")), doc_str(doc_get(labels, CLASS), STR("")), runs,
                errors);
    if (str_equal(is, was))
        return;
    if (runs)
        refuse(errors, LONGEST, is, "field is immutable");
    else
        check_longest(is, longest != NULL, errors);
}
