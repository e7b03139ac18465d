#include "core/spec/spec_test.h"

/* Each text and the rules it keeps: 1 DNS-1035 label, 2 DNS-1123 label, s subdomain, k label key, v value. */
static void names_keep_their_rules(void **state)
{
    static const struct {
        const char *text, *rules;
    } rows[] = {
        {"a", "12skv"}, {"", "v"},        {"a-b", "12skv"}, {"0a", "2skv"}, {"a.b", "skv"}, {"-a", ""},
        {"a-", ""},     {"A", "kv"},      {"a_b", "kv"},    {"a..b", "kv"}, {".a", ""},     {"a.", ""},
        {"a/b", "k"},   {"a.b/c_D", "k"}, {"a/b/c", ""},    {"/a", ""},     {"a/", ""},     {"A/b", ""},
        {"a b", ""},    {"\xc3\xa9", ""}, {"a.b/-c", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct str text = str_from(rows[i].text);
        char got[8] = "";
        snprintf(got, sizeof got, "%s%s%s%s%s", name_is_dns1035_label(text) ? "1" : "",
                 name_is_dns1123_label(text) ? "2" : "", name_is_dns1123_subdomain(text) ? "s" : "",
                 name_is_label_key(text) ? "k" : "", name_is_label_value(text) ? "v" : "");
        if (strcmp(got, rows[i].rules) != 0)
            fail_msg("%s: %s, not %s", rows[i].text, got, rows[i].rules);
    }
}

static void lengths_are_bounded(void **state)
{
    char text[300];
    memset(text, 'a', sizeof text);
    for (size_t len = 1; len < sizeof text; len++) {
        struct str name = {text, len};
        assert_true(name_is_dns1035_label(name) == (len <= 63));
        assert_true(name_is_dns1123_label(name) == (len <= 63));
        assert_true(name_is_dns1123_subdomain(name) == (len <= 253));
        assert_true(name_is_label_key(name) == (len <= 63));
        assert_true(name_is_label_value(name) == (len <= 63));
    }
}

static void generated_names(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct str job = job_name(&arena, STR("js"), STR("workers"), 12);
    assert_true(str_is(job, "js-workers-12"));
    assert_true(str_is(pod_hostname(&arena, job, 3), "js-workers-12-3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_keep_their_rules),
                                       cmocka_unit_test(lengths_are_bounded),
                                       cmocka_unit_test(generated_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
