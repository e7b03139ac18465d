#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "doc/random_doc.h"

static struct doc *must_parse(struct arena *arena, struct str text)
{
    struct doc *doc = NULL;
    struct error error = {0};
    if (json_parse(arena, text, &doc, &error) < 0)
        fail_msg("%s in %.*s", error.text, (int)text.len, text.data);
    return doc;
}

/* Written and read again a document is the same, in both forms and through the streaming writer; and writing
 * is a fixed point, floats included. */
static void round_trip(void **state)
{
    struct rng rng;
    rng_seed(&rng, 14);
    for (int round = 0; round < 3000; round++) {
        struct arena arena = {0};
        struct buf compact = {0}, pretty = {0}, streamed = {0}, again = {0};
        struct doc *doc = random_doc(&arena, &rng, 5);
        json_write(&compact, doc);
        json_write_pretty(&pretty, doc);
        struct json_writer writer = {.out = &streamed};
        json_put_doc(&writer, doc);
        assert_true(str_equal(buf_str(&compact), buf_str(&streamed)));
        struct doc *back = must_parse(&arena, buf_str(&compact));
        assert_true(doc_equal(doc, back));
        assert_true(doc_equal(doc, must_parse(&arena, buf_str(&pretty))));
        json_write(&again, back);
        assert_true(str_equal(buf_str(&compact), buf_str(&again)));
        assert_null(memchr(compact.data, '\n', compact.len));
        buf_done(&compact);
        buf_done(&pretty);
        buf_done(&streamed);
        buf_done(&again);
        arena_done(&arena);
    }
}

/* No proper prefix of an object or array is a value, and no byte changed or lost makes the reader crash. */
static void damage(void **state)
{
    struct rng rng;
    rng_seed(&rng, 15);
    for (int round = 0; round < 300; round++) {
        struct arena arena = {0};
        struct buf text = {0};
        struct doc *doc = random_doc(&arena, &rng, 3), *untouched = NULL;
        json_write(&text, doc);
        if (doc->kind == DOC_OBJECT || doc->kind == DOC_ARRAY) {
            for (size_t len = 0; len < text.len && len < 300; len++)
                assert_int_equal(json_parse(&arena, (struct str){text.data, len}, &untouched, NULL),
                                 ERROR_INVALID);
            assert_null(untouched);
        }
        for (int k = 0; k < 50 && text.len; k++) {
            text.data[rng_below(&rng, text.len)] = (char)rng_next(&rng);
            json_parse(&arena, buf_str(&text), &untouched, NULL);
        }
        buf_done(&text);
        arena_done(&arena);
    }
}

static void refusals_name_the_place(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "1:1: the text ends where a value is expected"},
        {"\n\n  tru", "3:3: a JSON value is expected here"},
        {"{\"a\":1,\n \"b\":2,\n \"a\":3}", "3:2: the key \"a\" is already at 1:2"},
        {"[\"\xc3\xa9\xc3\xa9\", x]", "1:8: a JSON value is expected here"}, /* columns are characters */
        {"[1,]", "1:4: a JSON value is expected here"},
        {"[1 2]", "1:4: ',' or ']' is expected here"},
        {"{\"a\" 1}", "1:6: ':' is expected here"},
        {"{a:1}", "1:2: a key in double quotes is expected here"},
        {"{\"a\":1,}", "1:8: a key in double quotes is expected here"},
        {"1 2", "1:3: nothing may follow the value"},
        {"\"abc", "1:1: the string that starts here is not closed"},
        {"\"a\nb\"", "1:3: control characters in a string must be escaped"},
        {"\"\\x\"", "1:2: no such escape in a string"},
        {"\"\\u12g4\"", "1:2: \\u needs four hexadecimal digits"},
        {"\"\\ud800\"", "1:2: a high surrogate without its low one"},
        {"\"\\ud800\\u0041\"", "1:2: a high surrogate without its low one"},
        {"\"\\udc00\"", "1:2: a low surrogate without its high one"},
        {"\"\\u0000\"", "1:2: a string may not contain NUL"},
        {"\"\xff\"", "1:2: the text is not UTF-8"},
        {"\"\xed\xa0\x80\"", "1:2: the text is not UTF-8"},
        {"01", "1:1: a number may not start with 0"},
        {"-", "1:2: a number needs a digit here"},
        {"1.", "1:3: a number needs a digit here"},
        {"1e+", "1:4: a number needs a digit here"},
        {"+1", "1:1: a JSON value is expected here"},
        {".5", "1:1: a JSON value is expected here"},
        {"[1e999]", "1:2: the number is too large"},
        {"NaN", "1:1: a JSON value is expected here"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena ARENA_CLEANUP arena = {0};
        struct error error = {0};
        struct doc *untouched = NULL;
        int code = json_parse(&arena, str_from(cases[i].text), &untouched, &error);
        assert_string_equal(error.text, cases[i].error);
        assert_true(code < 0 && code == (int)error.code && !untouched);
    }
}

/* Floats that are not finite, as Python's json module writes them. */
static void written_by_python(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct buf text BUF_CLEANUP = {0};
    struct error error = {0};
    struct doc *doc = NULL;
    assert_int_equal(json_parse_python(&arena,
                                       STR("{\"a\": NaN, \"b\": [Infinity, -Infinity, -1], \"c\": \"NaN\"}"),
                                       &doc, &error),
                     0);
    json_write(&text, doc);
    assert_true(str_is(buf_str(&text), "{\"a\":null,\"b\":[null,null,-1],\"c\":\"NaN\"}"));
    assert_true(json_parse_python(&arena, STR("[nan]"), &doc, &error) < 0);
    assert_true(json_parse_python(&arena, STR("[NaN1]"), &doc, &error) < 0);
    assert_true(json_parse(&arena, STR("[-Infinity]"), &doc, &error) < 0);
}

static void numbers(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    assert_int_equal(must_parse(&arena, STR("-9223372036854775808"))->integer, INT64_MIN);
    assert_int_equal(must_parse(&arena, STR("9223372036854775807"))->kind, DOC_INT);
    struct doc *large = must_parse(&arena, STR("9223372036854775808"));
    assert_true(large->kind == DOC_FLOAT && str_is(large->text, "9223372036854775808"));
    struct doc *precise = must_parse(&arena, STR("0.1000000000000000000001"));
    assert_true(precise->kind == DOC_FLOAT && str_is(precise->text, "0.1000000000000000000001"));
    assert_int_equal(must_parse(&arena, STR("1.0"))->kind, DOC_FLOAT);
    struct buf BUF_CLEANUP out = {0};
    json_write_float(&out, 0.1);
    json_write_float(&out, -3);
    json_write_float(&out, 1e300);
    assert_string_equal(out.data, "0.1-3.01e+300");
}

static void nested(struct buf *text, size_t depth)
{
    buf_clear(text);
    for (size_t i = 0; i < depth; i++)
        buf_add_str(text, i % 2 ? STR("{\"a\":") : STR("["));
    buf_add_char(text, '1');
    while (depth--)
        buf_add_char(text, depth % 2 ? '}' : ']');
}

static void limits(void **state)
{
    struct buf BUF_CLEANUP text = {0};
    struct arena ARENA_CLEANUP arena = {0};
    struct doc *doc;
    struct error error;
    nested(&text, JSON_DEPTH_MAX);
    must_parse(&arena, buf_str(&text));
    nested(&text, JSON_DEPTH_MAX + 1);
    assert_int_equal(json_parse(&arena, buf_str(&text), &doc, &error), ERROR_LIMIT);
    nested(&text, 1000000);
    assert_int_equal(json_parse(&arena, buf_str(&text), &doc, &error), ERROR_LIMIT);
    buf_clear(&text);
    buf_add_char(&text, '[');
    for (int i = 0; i < 100000; i++)
        buf_add(&text, "[],", 3);
    buf_add(&text, "{}]", 3);
    must_parse(&arena, buf_str(&text));
    struct arena small = {.limit_bytes = 1 << 20};
    assert_int_equal(json_parse(&small, buf_str(&text), &doc, &error), ERROR_LIMIT);
    assert_true(small.used_bytes <= 1 << 20);
    arena_done(&small);
}

/* A large object with all keys different, and with its last key like its first. */
static void large_objects(void **state)
{
    struct buf BUF_CLEANUP text = {0};
    struct arena ARENA_CLEANUP arena = {0};
    struct doc *doc;
    struct error error;
    buf_add_char(&text, '{');
    for (int i = 0; i < 100000; i++)
        buf_printf(&text, "\"key%d\":%d,", i, i);
    size_t len = text.len;
    text.data[len - 1] = '}';
    doc = must_parse(&arena, buf_str(&text));
    assert_int_equal(doc_int(doc_get(doc, "key99999"), 0), 99999);
    text.data[len - 1] = ',';
    buf_add_str(&text, STR("\n\"key0\":1}"));
    assert_int_equal(json_parse(&arena, buf_str(&text), &doc, &error), ERROR_INVALID);
    assert_string_equal(error.text, "2:1: the key \"key0\" is already at 1:2");
}

static void places(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct doc *doc = must_parse(&arena, STR("\r\n {\"\xc3\xa9\": [1,\n\n   {} ]}"));
    assert_true(doc->line == 2 && doc->column == 2);
    assert_true(doc->object.members[0].line == 2 && doc->object.members[0].column == 3);
    struct doc *list = doc->object.members[0].value;
    assert_true(list->line == 2 && list->column == 8);
    assert_true(doc_at(list, 1)->line == 4 && doc_at(list, 1)->column == 4);
}

static void streaming(void **state)
{
    struct buf BUF_CLEANUP out = {0};
    struct json_writer writer = {.out = &out};
    json_begin_object(&writer);
    json_pair_text(&writer, "a", "<&>\"\\\x01\b\f\n\x7f\xe2\x80\xa8\xff");
    json_key(&writer, "b");
    json_begin_array(&writer);
    json_put_fixed(&writer, -5, 2);
    json_put_fixed(&writer, 12345, 2);
    json_put_fixed(&writer, INT64_MIN, 18);
    json_put_fixed(&writer, 7, 0);
    json_put_int(&writer, INT64_MIN);
    json_put_null(&writer);
    json_begin_object(&writer);
    json_end_object(&writer);
    json_put_raw(&writer, STR("[1]"));
    json_end_array(&writer);
    json_pair_bool(&writer, "c", true);
    json_pair_int(&writer, "d", 0);
    json_pair_str(&writer, "e", (struct str){0});
    json_end_object(&writer);
    assert_string_equal(
        out.data, "{\"a\":\"<&>\\\"\\\\\\u0001\\b\\f\\n\x7f\\u2028\xef\xbf\xbd\",\"b\":[-0.05,123.45,"
                  "-9.223372036854775808,7,-9223372036854775808,null,{},[1]],\"c\":true,\"d\":0,\"e\":\"\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(damage),
        cmocka_unit_test(refusals_name_the_place),
        cmocka_unit_test(numbers),
        cmocka_unit_test(written_by_python),
        cmocka_unit_test(limits),
        cmocka_unit_test(large_objects),
        cmocka_unit_test(places),
        cmocka_unit_test(streaming),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
