/* Patches: the cases of RFC 7396 appendix A and RFC 6902 appendix A, and their bounds; selectors. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <time.h>

#include "doc/json.h"
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

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* No patch of any shape may take long: 10,000 operations on an object of 40,000 keys go by its index, or are
 * refused. */
static void test_large_object(void **state)
{
    static const struct {
        const char *operation;
        bool refused;
    } cases[] = {
        {"{\"op\":\"test\",\"path\":\"/a/k39999\",\"value\":\"v\"}", false},
        {"{\"op\":\"replace\",\"path\":\"/a/k39999\",\"value\":\"w\"}", false},
        {"{\"op\":\"move\",\"from\":\"/a/k%d\",\"path\":\"/a/m%d\"}", false},
        {"{\"op\":\"remove\",\"path\":\"/a/k%d\"}", false},
        {"{\"op\":\"copy\",\"from\":\"/a/k%d\",\"path\":\"/b/k%d\"}", false},
        {"{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/c\"}", true},
        {"{\"op\":\"copy\",\"from\":\"/long\",\"path\":\"/c\"}", true},
        {"{\"op\":\"test\",\"path\":\"/a\",\"value\":{\"x%d%d\":1}}", false},
        {"{\"op\":\"remove\",\"path\":\"/list/0\"}", true},
    };
    struct buf text BUF_CLEANUP = {0};
    buf_printf(&text, "{\"b\":{},\"long\":\"");
    for (int i = 0; i < 500000; i++)
        buf_add_char(&text, 'x');
    buf_printf(&text, "\",\"list\":[0");
    for (int i = 0; i < 40000; i++)
        buf_printf(&text, ",%d", i);
    buf_printf(&text, "],\"a\":{\"k\":\"v\"");
    for (int i = 0; i < 40000; i++)
        buf_printf(&text, ",\"k%d\":\"v\"", i);
    buf_printf(&text, "}}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct buf patch BUF_CLEANUP = {0};
        struct error error = {0};
        for (int k = 0; k < PATCH_OPERATIONS_MAX; k++) {
            buf_add_char(&patch, k ? ',' : '[');
            buf_printf(&patch, cases[i].operation, k, k);
        }
        buf_add_char(&patch, ']');
        struct doc *doc = parse(&arena, text.data), *operations = parse(&arena, patch.data);
        size_t before = arena.used_bytes;
        double began_s = cpu_s();
        int rc = patch_apply(&arena, &doc, operations, &error);
        double took_s = cpu_s() - began_s;
        if (took_s > 0.2)
            fail_msg("%s: %.3f s", cases[i].operation, took_s);
        assert_true(arena.used_bytes - before < 64 << 20);
        if (cases[i].refused)
            assert_int_equal(rc, ERROR_LIMIT);
    }
}

/* Members that were removed or moved away by an index are not seen by any later operation. */
static void test_removed_members(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct buf text BUF_CLEANUP = {0};
    struct error error = {0};
    for (int i = 0; i < 100; i++)
        buf_printf(&text, "%s\"k%d\":%d", i ? "," : "{\"a\":{", i, i);
    buf_printf(&text, "}}");
    static const char *const bad[] = {
        "[{\"op\":\"remove\",\"path\":\"/a/k7\"},{\"op\":\"test\",\"path\":\"/a/k7\",\"value\":null}]",
        "[{\"op\":\"remove\",\"path\":\"/a/k7\"},{\"op\":\"remove\",\"path\":\"/a/k7\"}]",
        "[{\"op\":\"move\",\"from\":\"/a/k7\",\"path\":\"/b\"},"
        "{\"op\":\"copy\",\"from\":\"/a/k7\",\"path\":\"/c\"}]",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct doc *doc = parse(&arena, text.data);
        assert_int_equal(patch_apply(&arena, &doc, parse(&arena, bad[i]), &error), ERROR_INVALID);
    }
    struct doc *doc = parse(&arena, text.data);
    struct doc *operations = parse(
        &arena, "[{\"op\":\"remove\",\"path\":\"/a/k7\"},{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"},"
                "{\"op\":\"add\",\"path\":\"/a/k7\",\"value\":8},{\"op\":\"remove\",\"path\":\"/a/k8\"}]");
    assert_int_equal(patch_apply(&arena, &doc, operations, &error), 0);
    assert_int_equal(doc_len(doc_get(doc, "a")), 99);
    assert_int_equal(doc_len(doc_get(doc, "b")), 99);
    assert_int_equal(doc_int(doc_get(doc_get(doc, "a"), "k7"), 0), 8);
    assert_null(doc_get(doc_get(doc, "b"), "k7"));
    assert_null(doc_get(doc_get(doc, "a"), "k8"));
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
        cmocka_unit_test(test_merge),           cmocka_unit_test(test_json_patch),
        cmocka_unit_test(test_bombs),           cmocka_unit_test(test_large_object),
        cmocka_unit_test(test_removed_members), cmocka_unit_test(test_selectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
