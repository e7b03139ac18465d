/* Patches: the cases of RFC 7396 appendix A and RFC 6902 appendix A, and their bounds; selectors. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "base/json.h"
#include "kube/patch.h"
#include "kube/select.h"

static struct doc *parse(struct arena *arena, const char *text)
{
    struct doc *doc;
    struct error error = {0};
    if (json_parse(arena, str_from(text), &doc, &error) < 0)
        fail_msg("%s: %s", text, error.text);
    return doc;
}

static void expect(struct arena *arena, const struct doc *found, const char *wanted)
{
    struct buf text BUF_CLEANUP = {0};
    json_write(&text, found);
    if (!doc_equal(found, parse(arena, wanted)))
        fail_msg("%s, wanted %s", text.data, wanted);
}

static void test_merge(void **state)
{
    static const char *const cases[][3] = {
        {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
        {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
        {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
        {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
        {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
        {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
        {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
        {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
        {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        expect(&arena, patch_merge(&arena, parse(&arena, cases[i][0]), parse(&arena, cases[i][1])),
               cases[i][2]);
    }
}

static void test_json_patch(void **state)
{
    /* Document, operations, result; a NULL result: it must fail. */
    static const char *const cases[][3] = {
        {"{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\"}]",
         "{\"baz\":\"qux\",\"foo\":\"bar\"}"},
        {"{\"foo\":[\"bar\",\"baz\"]}", "[{\"op\":\"add\",\"path\":\"/foo/1\",\"value\":\"qux\"}]",
         "{\"foo\":[\"bar\",\"qux\",\"baz\"]}"},
        {"{\"baz\":1,\"foo\":2}", "[{\"op\":\"remove\",\"path\":\"/baz\"}]", "{\"foo\":2}"},
        {"{\"foo\":[1,2,3]}", "[{\"op\":\"remove\",\"path\":\"/foo/1\"}]", "{\"foo\":[1,3]}"},
        {"{\"foo\":[1,2,3]}", "[{\"op\":\"replace\",\"path\":\"/foo/0\",\"value\":9}]", "{\"foo\":[9,2,3]}"},
        {"{\"foo\":{\"bar\":\"baz\",\"waldo\":\"fred\"},\"qux\":{\"corge\":\"grault\"}}",
         "[{\"op\":\"move\",\"from\":\"/foo/waldo\",\"path\":\"/qux/thud\"}]",
         "{\"foo\":{\"bar\":\"baz\"},\"qux\":{\"corge\":\"grault\",\"thud\":\"fred\"}}"},
        {"{\"foo\":[\"all\",\"grass\",\"cows\",\"eat\"]}",
         "[{\"op\":\"move\",\"from\":\"/foo/1\",\"path\":\"/foo/3\"}]",
         "{\"foo\":[\"all\",\"cows\",\"eat\",\"grass\"]}"},
        {"{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/child\",\"value\":{\"grandchild\":{}}}]",
         "{\"foo\":\"bar\",\"child\":{\"grandchild\":{}}}"},
        {"{\"foo\":[\"bar\"]}", "[{\"op\":\"add\",\"path\":\"/foo/-\",\"value\":[\"abc\"]}]",
         "{\"foo\":[\"bar\",[\"abc\"]]}"},
        {"{\"/\":9,\"~1\":10}", "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":10}]", "{\"/\":9,\"~1\":10}"},
        {"{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"}]", "{\"a\":1,\"b\":1}"},
        {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":[7]}]", "[7]"},
        {"{\"baz\":\"qux\"}", "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":\"bar\"}]", NULL},
        {"{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz/bat\",\"value\":\"qux\"}]", NULL},
        {"{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/2\",\"value\":1}]", NULL},
        {"{\"a\":[1]}", "[{\"op\":\"remove\",\"path\":\"/a/01\"}]", NULL},
        {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/b\"}]", NULL},
        {"{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b/c\"}]", NULL},
        {"{\"a\":1}", "[{\"op\":\"jump\",\"path\":\"/a\"}]", NULL},
        {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\"}]", NULL},
        {"{\"a\":1}", "{\"op\":\"add\"}", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct error error = {0};
        struct doc *doc = parse(&arena, cases[i][0]);
        int rc = patch_apply(&arena, &doc, parse(&arena, cases[i][1]), &error);
        if (cases[i][2] && rc < 0)
            fail_msg("%s: %s", cases[i][1], error.text);
        if (cases[i][2])
            expect(&arena, doc, cases[i][2]);
        else
            assert_true(rc < 0);
    }
}

/* Doubling a value again and again, and nesting it in itself, ends in an error, not in memory. */
static void test_bombs(void **state)
{
    static const char *const operations[] = {
        "{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/-\"}",
        "{\"op\":\"copy\",\"from\":\"\",\"path\":\"/b\"}",
    };
    for (size_t i = 0; i < 2; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct buf text BUF_CLEANUP = {0};
        struct error error = {0};
        buf_add_char(&text, '[');
        for (int k = 0; k < 200; k++)
            buf_printf(&text, "%s%s", k ? "," : "", operations[i]);
        buf_add_char(&text, ']');
        struct doc *doc = parse(&arena, "{\"a\":[1,2]}");
        assert_int_equal(patch_apply(&arena, &doc, parse(&arena, text.data), &error), ERROR_LIMIT);
        assert_true(arena.used_bytes < 1 << 30);
    }
}

static void test_selectors(void **state)
{
    static const struct {
        const char *labels, *fields;
        bool good, match;
    } cases[] = {
        {"", "", true, true},
        {"a=1", "", true, true},
        {"a==1,b!=3", "", true, true},
        {"a in (0, 1)", "", true, true},
        {"a notin (0,1)", "", true, false},
        {"missing notin (x)", "", true, true},
        {"a,!missing", "", true, true},
        {"!a", "", true, false},
        {"missing!=x", "", true, true},
        {"empty=", "", true, true},
        {"a=", "", true, false},
        {"x.io/y=z", "", true, true},
        {"", "status.phase=Running", true, true},
        {"", "status.phase!=Running", true, false},
        {"", "metadata.name=p,spec.nodeName=m-1", true, true},
        {"a in 1", "", false, false},
        {"a in (1", "", false, false},
        {"a=1,", "", false, false},
        {"=1", "", false, false},
        {"a ~ b", "", false, false},
        {"", "spec.bogus=1", false, false},
        {"", "status.phase", false, false},
    };
    static const char metadata[] =
        "{\"name\":\"p\",\"labels\":{\"a\":\"1\",\"b\":\"2\",\"empty\":\"\",\"x.io/y\":\"z\"}}";
    char object[512];
    snprintf(object, sizeof object,
             "{\"metadata\":%s,\"spec\":{\"nodeName\":\"m-1\"},\"status\":{\"phase\":\"Running\"}}",
             metadata);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct selector selector;
        struct error error = {0};
        int rc = select_parse(&arena, &resource_table[RESOURCE_PODS], str_from(cases[i].labels),
                              str_from(cases[i].fields), &selector, &error);
        if ((rc == 0) != cases[i].good)
            fail_msg("%s %s: %s", cases[i].labels, cases[i].fields, error.text);
        if (rc == 0 && select_json(&selector, str_from(object), str_from(metadata)) != cases[i].match)
            fail_msg("%s %s matches wrongly", cases[i].labels, cases[i].fields);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_json_patch),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_selectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
