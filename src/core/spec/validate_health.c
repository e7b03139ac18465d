/* validate_health.c - rules of a FaultTable. The schema checks levels and domains. */
#include "base/units.h"
#include "core/spec/stored.h"
#include "core/spec/validate.h"

enum { TIMES_MAX = 100, CODE_BYTES_MAX = 63, SENDER_BYTES_MAX = 128, PUBLIC_MAX = 1000000 };
#define LONGEST_NS (INT64_C(366) * 24 * 3600 * NS_PER_SECOND)

/* Returns whether the text is "family/name". The name may be a star, or a star and "-end". */
static bool is_code(struct str text)
{
    struct str family, name;
    if (text.len > CODE_BYTES_MAX || !str_cut(text, '/', &family, &name) || !family.len || !name.len)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
        bool star =
            c == '*' && i == family.len + 1 && (name.len == 1 || (name.len > 2 && name.data[1] == '-'));
        if (!plain && i != family.len && !star)
            return false;
    }
    return true;
}

static void check_code(const struct doc *node, const struct field_path *path, struct field_errors *errors)
{
    CHECK(typed_as(node, DOC_STRING));
    struct str text = doc_str(node, STR(""));
    if (!is_code(text))
        path_invalid(errors, path, node, text,
                     "must be a family and a name of lower case letters, digits and '-' with one '/' between "
                     "them, or a family with '/*' or '/*-END'");
}

static void check_codes(const struct doc *item, const struct field_path *path, struct field_errors *errors)
{
    const struct doc *codes = doc_get(item, "codes");
    for (size_t i = 0; i < doc_len(codes); i++)
        check_code(doc_at(codes, i), AT_INDEX(AT(path, "codes"), i), errors);
}

static void check_time(const struct doc *item, const char *key, const struct field_path *path,
                       struct field_errors *errors)
{
    CHECK(typed_as(doc_get(item, key), DOC_STRING));
    const struct doc *node = doc_get(item, key);
    struct str text = doc_str(node, STR(""));
    int64_t ns;
    if (node && (!duration_parse(text, &ns) || ns > LONGEST_NS))
        path_invalid(errors, AT(path, key), node, text,
                     "must be a duration like 30s, 5m or 48h, at most a year");
}

static void check_rules(const struct doc *spec, const struct field_path *path, struct field_errors *errors)
{
    const struct doc *frequency = doc_get(spec, "frequency"), *duration = doc_get(spec, "duration");
    for (size_t i = 0; i < doc_len(frequency); i++) {
        const struct doc *item = doc_at(frequency, i), *times = doc_get(item, "times");
        const struct field_path *here = AT_INDEX(AT(path, "frequency"), i);
        check_codes(item, here, errors);
        check_time(item, "window", here, errors);
        check_time(item, "release", here, errors);
        if (doc_int(times, 0) < 1 || doc_int(times, 0) > TIMES_MAX)
            path_invalid_int(errors, AT(here, "times"), times, doc_int(times, 0),
                             "must be between 1 and 100");
    }
    for (size_t i = 0; i < doc_len(duration); i++) {
        const struct doc *item = doc_at(duration, i);
        const struct field_path *here = AT_INDEX(AT(path, "duration"), i);
        check_codes(item, here, errors);
        check_time(item, "after", here, errors);
        check_time(item, "recover", here, errors);
    }
}

static void check_percent(const struct doc *breaker, const char *key, const struct field_path *path,
                          struct field_errors *errors)
{
    CHECK(typed_as(doc_get(breaker, key), DOC_INT));
    const struct doc *node = doc_get(breaker, key);
    if (doc_int(node, 0) < 0 || doc_int(node, 0) > 100)
        path_invalid_int(errors, AT(path, key), node, doc_int(node, 0), "must be between 0 and 100");
}

static void check_public(const struct doc *public, const struct field_path *path, struct field_errors *errors)
{
    CHECK(typed_as(public, DOC_OBJECT));
    static const char *const limits[] = {"perSecond", "burst", "perSender", "total"};
    const struct doc *senders = doc_get(public, "senders");
    for (size_t i = 0; i < doc_len(senders); i++) {
        const struct doc *item = doc_at(senders, i), *name = doc_get(item, "name");
        const struct field_path *here = AT_INDEX(AT(path, "senders"), i);
        struct str text = doc_str(name, STR(""));
        if (text.len == 0 || text.len > SENDER_BYTES_MAX)
            path_invalid(errors, AT(here, "name"), name, text, "must have 1 to 128 bytes");
        check_codes(item, here, errors);
    }
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const struct doc *node = doc_get(public, limits[i]);
        if (node && (doc_int(node, 0) < 1 || doc_int(node, 0) > PUBLIC_MAX))
            path_invalid_int(errors, AT(path, limits[i]), node, doc_int(node, 0),
                             "must be between 1 and 1000000");
    }
}

void validate_fault_table(const struct doc *object, struct field_errors *errors)
{
    CHECK(object && object->kind == DOC_OBJECT && errors->arena);
    const struct field_path *path = AT(NULL, "spec");
    const struct doc *spec = doc_get(object, "spec"), *name = doc_path(object, "metadata", "name", NULL);
    const struct doc *codes = doc_get(spec, "codes"), *relations = doc_get(spec, "relations");
    if (!str_is(doc_str(name, STR("")), "default"))
        path_invalid(errors, AT(AT(NULL, "metadata"), "name"), name, doc_str(name, STR("")),
                     "there is one FaultTable, \"default\"");
    for (size_t i = 0; i < doc_len(codes); i++)
        check_code(doc_get(doc_at(codes, i), "code"), AT(AT_INDEX(AT(path, "codes"), i), "code"), errors);
    check_rules(spec, path, errors);
    for (size_t i = 0; i < doc_len(relations); i++) {
        const struct doc *item = doc_at(relations, i);
        const struct field_path *here = AT_INDEX(AT(path, "relations"), i);
        check_code(doc_get(item, "first"), AT(here, "first"), errors);
        check_code(doc_get(item, "then"), AT(here, "then"), errors);
        check_time(item, "within", here, errors);
    }
    check_public(doc_get(spec, "public"), AT(path, "public"), errors);
    check_percent(doc_get(spec, "breaker"), "perHour", AT(path, "breaker"), errors);
    check_percent(doc_get(spec, "breaker"), "total", AT(path, "breaker"), errors);
}
