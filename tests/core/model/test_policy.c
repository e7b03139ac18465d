/* The table of the policy's fields: each is read, bounded and documented, and none is forgotten. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "doc/json.h"
#include "core/model/model.h"

/* Makes {"spec": {"settings": {"hangs": {"factor": VALUE}}}} of a path, around what a cluster must have. */
static void write_document(struct buf *out, const char *path, struct str value)
{
    int depth = 1;
    buf_printf(out, "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"c\"},"
                    "\"spec\":{\"addresses\":\"127.0.1.1\",\"pods\":[{\"cubes\":1}],\"");
    for (const char *at = path; *at; at++)
        if (*at == '.' && ++depth)
            buf_printf(out, "\":{\"");
        else
            buf_add_char(out, *at);
    buf_printf(out, "\":" STR_FORMAT, STR_ARG(value));
    for (; depth > 1; depth--)
        buf_add_char(out, '}');
    buf_printf(out, "}}");
}

/* False: refused; *ret_path is the field of the first error. */
static bool load(const char *path, struct str value, struct policy *ret_policy, char ret_path[128])
{
    struct buf text BUF_CLEANUP = {0};
    struct arena arena ARENA_CLEANUP = {0};
    struct field_errors errors = {.arena = &arena};
    struct cluster cluster;
    struct doc *document;
    write_document(&text, path, value);
    assert_int_equal(json_parse(&arena, buf_str(&text), &document, NULL), 0);
    bool good = cluster_load(document, &cluster, &errors);
    if (good) {
        *ret_policy = cluster.policy;
        cluster_done(&cluster);
    } else {
        snprintf(ret_path, 128, STR_FORMAT, STR_ARG(errors.list.items[0].path));
    }
    field_errors_done(&errors);
    return good;
}

static void as_json(const struct policy_field *field, int64_t value, struct buf *out)
{
    bool quoted =
        field->type == POLICY_DURATION || field->type == POLICY_CHOICE || field->type == POLICY_BYTES;
    buf_clear(out);
    buf_printf(out, "%s", quoted ? "\"" : "");
    policy_print_value(field, value, out);
    buf_printf(out, "%s", quoted ? "\"" : "");
}

/* Fields that another one bounds as well: what is tried is allowed for both. */
static int64_t allowed(const struct policy_field *field, int64_t value)
{
    if (strcmp(field->path, "settings.lease") == 0)
        return field->max;
    if (strcmp(field->path, "settings.heartbeat") == 0)
        return field->min;
    if (strstr(field->path, "backoffBaseSeconds"))
        return field->min;
    return strstr(field->path, "backoffMaxSeconds") ? field->max : value;
}

static void test_each_field_is_read(void **state)
{
    (void)state;
    struct buf text BUF_CLEANUP = {0};
    for (size_t i = 0; i < policy_field_count; i++) {
        const struct policy_field *field = &policy_fields[i];
        struct policy policy, usual = policy_default();
        char wrong[128] = "";
        for (int end = 0; end < 2; end++) {
            int64_t value = allowed(field, end ? field->max : field->min);
            as_json(field, value, &text);
            if (!load(field->path, buf_str(&text), &policy, wrong))
                fail_msg("%s: %s: refused: %s", field->path, text.data, wrong);
            assert_int_equal(policy_get(&policy, field), value);
            for (size_t k = 0; k < policy_field_count; k++) /* no two rows are of one member */
                if (k != i && strcmp(policy_fields[k].path, "settings.heartbeat") != 0)
                    assert_int_equal(policy_get(&policy, &policy_fields[k]),
                                     policy_get(&usual, &policy_fields[k]));
        }
    }
}

static void test_bounds_name_the_field(void **state)
{
    (void)state;
    for (size_t i = 0; i < policy_field_count; i++) {
        const struct policy_field *field = &policy_fields[i];
        struct policy policy;
        char wrong[128] = "", expected[128];
        snprintf(expected, sizeof expected, "spec.%s", field->path);
        assert_false(load(field->path, STR("[]"), &policy, wrong));
        assert_string_equal(wrong, expected);
        struct str beyond = field->type == POLICY_CHOICE ? STR("\"Perhaps\"") : STR("1e30");
        assert_false(load(field->path, beyond, &policy, wrong));
        assert_string_equal(wrong, expected);
        snprintf(expected, sizeof expected, "%ss", field->path); /* a slip of the pen */
        assert_false(load(expected, STR("1"), &policy, wrong));
    }
}

static void test_rows_are_sound(void **state)
{
    (void)state;
    struct policy usual = policy_default();
    for (size_t i = 0; i < policy_field_count; i++) {
        const struct policy_field *field = &policy_fields[i];
        assert_true(field->min < field->max && field->text && field->text[0]);
        assert_true(field->fallback_text || (field->fallback >= field->min && field->fallback <= field->max));
        assert_true((field->type == POLICY_CHOICE) == (field->names != NULL));
        assert_int_equal(policy_get(&usual, field), field->fallback);
        for (size_t k = 0; k < i; k++)
            assert_true(strcmp(policy_fields[k].path, field->path) != 0 &&
                        policy_fields[k].offset != field->offset);
    }
}

static void test_documented(void **state)
{
    (void)state;
    struct buf wanted BUF_CLEANUP = {0}, found BUF_CLEANUP = {0};
    char bytes[4096];
    size_t got;
    FILE *file = fopen("docs/policy.md", "r");
    if (!file) /* not run from the source tree */
        skip();
    while ((got = fread(bytes, 1, sizeof bytes, file)) > 0)
        buf_add(&found, bytes, got);
    fclose(file);
    policy_document(&wanted);
    if (!str_equal(buf_str(&wanted), buf_str(&found)))
        fail_msg(
            "docs/policy.md is not what the table says: phalanx cluster policy --markdown >docs/policy.md");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_field_is_read),
        cmocka_unit_test(test_bounds_name_the_field),
        cmocka_unit_test(test_rows_are_sound),
        cmocka_unit_test(test_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
