/* validate_pace.c - the annotations that set how a job's steps are observed, its policy for an unhealthy
 * machine (docs/pace.md), and which checkpoints it makes and keeps (docs/checkpoints.md). */
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

/* Checks the pattern's groups, which extract values from a line (host/agent/steplines.h). */
static void validate_groups(const struct doc *annotations, struct str key, const struct field_path *path,
                            struct field_errors *errors)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct capturer *capturer;
    struct error error;
    const struct doc *node = doc_get_str(annotations, key);
    struct str text = doc_str(node, STR(""));
    if (text.len == 0 || capturer_new(&arena, text, LINE_PROGRAM_MAX, &capturer, &error) < 0)
        return; /* said by validate_pattern */
    size_t groups = capturer_groups(capturer);
    if (groups > PATTERN_GROUPS_MAX)
        path_invalid(errors, AT_KEY(path, key), node, text,
                     "must have at most 8 groups: write (?:...) for those that take no value");
}

/* Returns whether the text is "last=3", "every=1000" or both with a comma, as the library reads it
 * (job/checkpoint/retention.h). */
static bool is_retention(struct str text)
{
    enum { LAST_MAX = 64 };
    bool last_seen = false, every_seen = false;
    while (text.len > 0) {
        struct str rule = text, rest = {0}, name, value;
        int64_t number;
        if (str_cut(text, ',', &rule, &rest) && rest.len == 0)
            return false;
        text = rest;
        if (!str_cut(rule, '=', &name, &value))
            return false;
        bool *seen = str_is(name, "last") ? &last_seen : str_is(name, "every") ? &every_seen : NULL;
        if (!seen || *seen || !str_to_i64(value, 1, seen == &last_seen ? LAST_MAX : INT64_MAX / 16, &number))
            return false;
        *seen = true;
    }
    return last_seen || every_seen;
}

static void validate_keep(const struct doc *annotations, const struct field_path *path,
                          struct field_errors *errors)
{
    const struct doc *node = doc_get_str(annotations, STR(CHECKPOINT_KEEP_KEY));
    struct str text = doc_str(node, STR(""));
    if (node && !is_retention(text))
        path_invalid(errors, AT_KEY(path, STR(CHECKPOINT_KEEP_KEY)), node, text,
                     "must be last=N (1 to 64), every=N, or both with a comma between");
}

/* Checks the checkpoint interval as the library reads it (job/link/settings.h). */
static void validate_interval(const struct doc *annotations, const struct field_path *path,
                              struct field_errors *errors)
{
    const struct doc *node = doc_get_str(annotations, STR(CHECKPOINT_INTERVAL_KEY));
    struct str text = doc_str(node, STR(""));
    int64_t steps;
    if (node && !str_is(text, "auto") && !str_to_i64(text, 1, INT64_MAX / 16, &steps))
        path_invalid(errors, AT_KEY(path, STR(CHECKPOINT_INTERVAL_KEY)), node, text,
                     "must be auto or a number of steps, at least 1");
}

enum { FOLDER_NAME_MAX = 128 };

static bool is_folder_name(struct str text)
{
    if (text.len == 0 || text.len > FOLDER_NAME_MAX || text.data[0] == '.')
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
              c == '_' || c == '.'))
            return false;
    }
    return true;
}

static void validate_folder(const struct doc *annotations, const struct field_path *path,
                            struct field_errors *errors)
{
    const struct doc *node = doc_get_str(annotations, STR(CHECKPOINT_FOLDER_KEY));
    struct str text = doc_str(node, STR(""));
    if (node && !is_folder_name(text))
        path_invalid(errors, AT_KEY(path, STR(CHECKPOINT_FOLDER_KEY)), node, text,
                     "must be the name of one folder: letters, digits, '-', '_' and '.', not a '.' first");
}

void validate_pace(const struct doc *meta, const struct field_path *path, struct field_errors *errors)
{
    CHECK(errors && errors->arena);
    static const char policies[] = "ignore,graceExit,forceExit,hotSwitch";
    const struct doc *annotations = doc_get(meta, "annotations");
    const struct field_path *here = AT(path, "annotations");
    const struct doc *policy = doc_get_str(annotations, STR(SUB_HEALTH_KEY));
    if (policy && !path_one_of(doc_str(policy, STR("")), policies))
        path_unsupported(errors, AT_KEY(here, STR(SUB_HEALTH_KEY)), policy, doc_str(policy, STR("")),
                         policies);
    validate_folder(annotations, here, errors);
    validate_pattern(annotations, STR(STEP_PATTERN_KEY), here, errors);
    validate_groups(annotations, STR(STEP_PATTERN_KEY), here, errors);
    validate_pattern(annotations, STR(WORK_PATTERN_KEY), here, errors);
    validate_keep(annotations, here, errors);
    validate_interval(annotations, here, errors);
}
