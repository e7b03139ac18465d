#include <regex.h>

#include "base/rng.h"
#include "core/spec/pattern.h"
#include "core/spec/spec_test.h"

static int search(const char *pattern, const char *text)
{
    bool matched = false;
    struct error error;
    int rc = pattern_search(str_from(pattern), str_from(text), &matched, &error);
    return rc < 0 ? rc : matched;
}

static const struct {
    const char *pattern, *text;
    int matched;
} as_re2[] = {
    {"", "", 1},
    {"", "x", 1},
    {"abc", "xxabcxx", 1},
    {"abc", "ab", 0},
    {"^abc$", "abc", 1},
    {"^abc$", "abc\n", 0},
    {"(?m)^b$", "a\nb\nc", 1},
    {"^b$", "a\nb\nc", 0},
    {"\\Ab", "ab", 0},
    {"b\\z", "ab", 1},
    {"a.c", "a\nc", 0},
    {"(?s)a.c", "a\nc", 1},
    {"(?i)HeLLo", "say hEllO", 1},
    {"(?i:a)B", "AB", 1},
    {"(?i:a)B", "Ab", 0},
    {"(?i)[a-c]+x", "ABCX", 1},
    {"a(?i)b|c", "C", 1},
    {"(a(?i)b)c", "aBC", 0},
    {"(?i-s:a)", "A", 1},
    {"exit code (4[23]|13\\d)", "failed with exit code 137 matching", 1},
    {"exit code (4[23]|13\\d)\\b", "exit code 1370", 0},
    {"\\bcode\\b", "encode decode", 0},
    {"\\Bcode", "encode", 1},
    {"\\d{3}", "12", 0},
    {"^\\d{2,3}$", "1234", 0},
    {"^\\d{2,}$", "1234", 1},
    {"^a{0}$", "", 1},
    {"^a{,2}$", "a{,2}", 1},
    {"^a{$", "a{", 1},
    {"^a{1$", "a{1", 1},
    {"x*", "", 1},
    {"^(a|b)*?c", "ababc", 1},
    {"^(?:a*)*$", "aaaa", 1},
    {"^(a*)+$", "b", 0},
    {"(|a)+b", "aab", 1},
    {"[^a]", "aaa", 0},
    {"[^a]", "aab", 1},
    {"[]a]", "]", 1},
    {"[^]a]", "]", 0},
    {"[a-]", "-", 1},
    {"[\\d-z]", "-", 1},
    {"[[:alpha:]]{3}", "1abc", 1},
    {"^[[:^digit:]]+$", "a1", 0},
    {"[[:foo]", ":", 1},
    {"\\w+@\\w+\\.com", "me@example.com", 1},
    {"\\Qa.b*\\E", "a.b*", 1},
    {"\\Qa.b*", "axb*", 0},
    {"^\\Qab\\E+$", "abbb", 1},
    {"\\x41\\x{42}\\103", "ABC", 1},
    {"\\0", "a", 0},
    {"\\a\\f\\t\\n\\r\\v", "\a\f\t\n\r\v", 1},
    {"\\.\\*\\-\\_", ".*-_", 1},
    {"^.$", "\xc3\xa9", 1},
    {"^..$", "\xc3\xa9", 0},
    {"[\xce\xb1-\xcf\x89]", "\xce\xb2", 1},
    {"^.$", "\xff", 1},
    {"\\x{1F600}", "\xf0\x9f\x98\x80", 1},
    {"(?P<name>a)(?<other>b)", "ab", 1},
    {"^\\S+\\s\\S+$", "a b", 1},
    {"(?U)a+", "aa", 1},
    {"a|b|", "c", 1},
    {"^*a", "a", 1},
    {"(a|ab)(c|bcd)(d*)$", "abcd", 1},
};

static void matches_as_re2(void **state)
{
    for (size_t i = 0; i < sizeof as_re2 / sizeof as_re2[0]; i++) {
        int got = search(as_re2[i].pattern, as_re2[i].text);
        if (got != as_re2[i].matched)
            fail_msg("%s on %s: %d", as_re2[i].pattern, as_re2[i].text, got);
    }
}

static void refuses(void **state)
{
    static const char *const invalid[] = {
        "(",        ")",           "a)",     "(a",      "[a",      "[",       "[]",        "[^]",
        "*",        "a**",         "a+*",    "a{2}{3}", "a{2,1}",  "a{1001}", "a{1,1001}", "a{1,99999999999}",
        "\\",       "\\1",         "(a)\\1", "\\k",     "\\pL",    "\\C",     "\\Z",       "(?=a)",
        "(?!a)",    "(?<=a)",      "(?<!a)", "(?",      "(?i",     "(?x)a",   "(?i-)a",    "[b-a]",
        "[[:no:]]", "\\x{110000}", "\\xg",   "\\x{",    "(?P<>a)", "(?P=a)",  "(?P<a",     "a|*",
        "(*)",      "\xff",        "[a\\",   "\\8"};
    struct error error;
    bool matched = true;
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++) {
        error.text[0] = 0;
        int rc = pattern_search(str_from(invalid[i]), STR("text"), &matched, &error);
        if (rc != ERROR_INVALID || !matched || error.text[0] == 0)
            fail_msg("%s: %d", invalid[i], rc);
    }
}

static void bounded(void **state)
{
    char nested[2 * 200 + 2], text[4001];
    memset(nested, '(', 200);
    memset(nested + 200, ')', 200);
    nested[400] = 0;
    memset(text, 'a', 4000);
    text[4000] = 0;
    assert_int_equal(search("((a{1000}){1000}){1000}", "a"), ERROR_LIMIT);
    assert_int_equal(search("(((a{0}){1000}){1000}){1000}", "a"), ERROR_LIMIT);
    assert_int_equal(search("((()){1000}){1000}", "a"), ERROR_LIMIT);
    assert_int_equal(search(nested, "a"), ERROR_LIMIT);
    assert_int_equal(search("a{1000}", text), 1);
    /* Exponential for backtrackers. */
    assert_int_equal(search("^(a*)*(a*)*(a*)*b$", text), 0);
    assert_int_equal(search("(a?){200}a{200}$", text), 1);
}

/* A random expression that POSIX extended syntax reads in the same way. */
static void random_pattern(struct rng *rng, struct buf *out, int depth)
{
    static const char *const atoms[] = {"a", "b", ".", "[ab]", "[^a]", "c"};
    for (uint64_t parts = 1 + rng_below(rng, 3); parts > 0; parts--) {
        if (depth > 0 && rng_chance(rng, 400000)) {
            buf_add_char(out, '(');
            random_pattern(rng, out, depth - 1);
            if (rng_chance(rng, 500000)) {
                buf_add_char(out, '|');
                random_pattern(rng, out, depth - 1);
            }
            buf_add_char(out, ')');
        } else {
            buf_add_str(out, str_from(atoms[rng_below(rng, 6)]));
        }
        static const char *const repeats[] = {"", "", "", "*", "+", "?", "{2}", "{1,2}", "{2,}"};
        buf_add_str(out, str_from(repeats[rng_below(rng, 9)]));
    }
}

static void agrees_with_posix(void **state)
{
    struct rng rng;
    rng_seed(&rng, 1);
    for (int round = 0; round < 3000; round++) {
        struct buf pattern = {0};
        bool start = rng_chance(&rng, 500000), stop = rng_chance(&rng, 500000);
        buf_add_str(&pattern, start ? STR("^(") : STR("("));
        random_pattern(&rng, &pattern, 2);
        buf_add_str(&pattern, stop ? STR(")$") : STR(")"));
        regex_t regex;
        assert_int_equal(regcomp(&regex, pattern.data, REG_EXTENDED | REG_NOSUB), 0);
        for (int i = 0; i < 10; i++) {
            char text[12] = "";
            for (uint64_t k = 0, len = rng_below(&rng, 11); k < len; k++)
                text[k] = "aabbcd"[rng_below(&rng, 6)];
            int expected = regexec(&regex, text, 0, NULL, 0) == 0;
            if (search(pattern.data, text) != expected)
                fail_msg("%s on \"%s\": not %d", pattern.data, text, expected);
        }
        regfree(&regex);
        buf_done(&pattern);
    }
}

/* Groups as RE2 finds them: "a|b" is those of two groups, "-" one that took no part. */
static const struct {
    const char *pattern, *text, *groups;
} captured[] = {
    {"(\\d+)", "step 12 of 90", "12"},
    {"step (\\d+) of (\\d+)", "at step 12 of 90", "12|90"},
    {"iteration +(?P<step>\\d+)/ *(?<total>\\d+) .* loss: ([0-9.E+-]+)",
     "iteration       12/   100 | lm loss: 2.310000E+00 |", "12|100|2.310000E+00"},
    {"(a+)(a*)", "xaaa", "aaa|"},
    {"(a+?)(a*)", "xaaa", "a|aa"},
    {"(?U)(a+)(a*)$", "aaa", "a|aa"},
    {"(?U:(a+?))(a*)", "aaa", "aaa|"},
    {"(a|ab)(c|bcd)(d*)", "abcd", "a|bcd|"},
    {"(ab|a)(bcd|c)(d*)", "abcd", "ab|c|d"},
    {"(a)|(b)", "b", "-|b"},
    {"(?:(\\w)x)*y", "axbxy", "b"},
    {"((\\d+)-)?(\\d+)", "7-8", "7-|7|8"},
    {"(.*)(\\d+)", "ab123", "ab12|3"},
    {"(.*?)(\\d+)", "ab123", "ab|123"},
    {"^(\\s*)$", "", ""},
    {"(x{2,3}?)(x*)", "xxxx", "xx|xx"},
    {"(é)(.)", "aéü", "é|ü"},
    {"((((((((1))))))))(2)", "12", "1|1|1|1|1|1|1|1"},
};

static void groups_as_re2(void **state)
{
    for (size_t i = 0; i < sizeof captured / sizeof *captured; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct buf found BUF_CLEANUP = {0};
        struct str groups[PATTERN_GROUPS_MAX];
        struct capturer *capturer;
        struct error error;
        assert_int_equal(capturer_new(&arena, str_from(captured[i].pattern), 256, &capturer, &error), 0);
        assert_true(capturer_find(capturer, str_from(captured[i].text), groups));
        for (size_t g = 0; g < capturer_groups(capturer) && g < PATTERN_GROUPS_MAX; g++)
            buf_printf(&found, "%s" STR_FORMAT, g ? "|" : "", STR_ARG(groups[g].data ? groups[g] : STR("-")));
        buf_add_char(&found, 0);
        if (strcmp(found.data, captured[i].groups) != 0)
            fail_msg("%s in %s: %s, not %s", captured[i].pattern, captured[i].text, found.data,
                     captured[i].groups);
        assert_true(search(captured[i].pattern, captured[i].text) == 1);
    }
}

static void groups_have_names(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct str groups[PATTERN_GROUPS_MAX];
    struct capturer *capturer;
    struct error error;
    assert_int_equal(
        capturer_new(&arena, STR("(?P<step>\\d+)(?:/)(\\d+)(?<loss>x)?"), 256, &capturer, &error), 0);
    assert_int_equal(capturer_groups(capturer), 3);
    assert_true(str_is(capturer_name(capturer, 0), "step") && capturer_name(capturer, 1).len == 0);
    assert_true(str_is(capturer_name(capturer, 2), "loss"));
    assert_false(capturer_find(capturer, STR("no number"), groups));
    assert_int_equal(capturer_new(&arena, STR("(a{200}){2}"), 256, &capturer, &error), ERROR_LIMIT);
    assert_int_equal(capturer_new(&arena, STR("(a"), 256, &capturer, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(matches_as_re2), cmocka_unit_test(refuses),
                                       cmocka_unit_test(bounded),        cmocka_unit_test(agrees_with_posix),
                                       cmocka_unit_test(groups_as_re2),  cmocka_unit_test(groups_have_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
