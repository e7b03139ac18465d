/* validate_pace.c - the annotations by which a job says how its pace is seen, and what it does about a
 * machine that is not well (docs/pace.md). */
#include "core/spec/validate.h"

static void validate_pattern(const struct doc *annotations, struct str key, const struct field_path *path,
                             struct field_errors *errors)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct matcher *matcher;
    struct error error;
    const struct doc *node = doc_get_str(annotations, key);
    struct str text = doc_str(node, STR(""));
    if (text.len > 0 && matcher_new(&arena, text, LINE_PROGRAM_MAX, &matcher, &error) < 0)
        path_invalid(errors, AT_KEY(path, key), node, text, error.text);
}

void validate_pace(const struct doc *meta, const struct field_path *path, struct field_errors *errors)
{
    static const char policies[] = "ignore,graceExit,forceExit,hotSwitch";
    const struct doc *annotations = doc_get(meta, "annotations");
    const struct field_path *here = AT(path, "annotations");
    const struct doc *policy = doc_get_str(annotations, STR(SUB_HEALTH_KEY));
    if (policy && !path_one_of(doc_str(policy, STR("")), policies))
        path_unsupported(errors, AT_KEY(here, STR(SUB_HEALTH_KEY)), policy, doc_str(policy, STR("")),
                         policies);
    validate_pattern(annotations, STR(STEP_PATTERN_KEY), here, errors);
    validate_pattern(annotations, STR(WORK_PATTERN_KEY), here, errors);
}
