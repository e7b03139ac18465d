#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "doc/json.h"
#include "doc/pack.h"

static const char text[] = "{\"a\":{\"x\":1,\"y\":[true,null,\"\\u00e9\"]},\"b\":[],\"c\":2.50}";

static struct doc *parse(struct arena *arena, const char *json)
{
    struct doc *doc;
    assert_int_equal(json_parse(arena, str_from(json), &doc, NULL), 0);
    return doc;
}

/* The document with its member `a` packed. */
static struct doc *with_packed(struct arena *arena, const char *json)
{
    struct doc *doc = parse(arena, json);
    doc_set(arena, doc, STR("a"), doc_packed(arena, doc_get(doc, "a")));
    return doc;
}

static void packed_parts_are_written_as_trees_are(void **state)
{
    (void)state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *tree = parse(&arena, text), *packed = with_packed(&arena, text);
    struct doc *copies[] = {packed, doc_clone(&arena, packed)};
    struct buf plain BUF_CLEANUP = {0}, pretty BUF_CLEANUP = {0};
    json_write(&plain, tree);
    json_write_pretty(&pretty, tree);
    for (int i = 0; i < 2; i++) {
        struct buf got BUF_CLEANUP = {0}, got_pretty BUF_CLEANUP = {0};
        assert_int_equal(doc_get(copies[i], "a")->kind, DOC_PACKED);
        json_write(&got, copies[i]);
        json_write_pretty(&got_pretty, copies[i]);
        assert_true(str_equal(buf_str(&got), buf_str(&plain)));
        assert_true(str_equal(buf_str(&got_pretty), buf_str(&pretty)));
    }
}

static void content_decides_about_equality(void **state)
{
    (void)state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *tree = parse(&arena, text), *packed = with_packed(&arena, text);
    struct doc *turned =
        with_packed(&arena, "{\"a\":{\"y\":[true,null,\"\\u00e9\"],\"x\":1},\"b\":[],\"c\":2.50}");
    struct doc *other =
        with_packed(&arena, "{\"a\":{\"x\":2,\"y\":[true,null,\"\\u00e9\"]},\"b\":[],\"c\":2.50}");
    struct doc *longer = with_packed(&arena, "{\"a\":{\"x\":1,\"y\":[],\"z\":0},\"b\":[],\"c\":2.50}");
    assert_true(doc_equal(packed, packed) && doc_equal(packed, tree) && doc_equal(tree, packed));
    assert_true(doc_equal(packed, turned) && doc_equal(turned, tree));
    assert_false(doc_equal(packed, other) || doc_equal(tree, other) || doc_equal(longer, packed));
    assert_false(doc_equal(doc_get(packed, "a"), NULL) || doc_equal(NULL, doc_get(packed, "a")));
}

/* The first difference of two texts decides where it can: a value's string, but not a key's. */
static void a_value_that_differs_decides(void **state)
{
    static const struct {
        const char *a, *b;
        bool equal;
    } cases[] = {{"{\"k\":\"v\"}", "{\"k\":\"w\"}", false},
                 {"{\"k\":\"\"}", "{\"k\":\"w\"}", false},
                 {"{\"k\":\"a\\n\"}", "{\"k\":\"a\\t\"}", false},
                 {"{\"k\":\"\\\\\",\"l\":\"x\"}", "{\"k\":\"\\\\\",\"l\":\"y\"}", false},
                 {"{\"k\":\"v\",\"l\":\"v\"}", "{\"l\":\"v\",\"k\":\"v\"}", true},
                 {"{\"k\":\"v\",\"l\":\"v\"}", "{\"l\":\"v\",\"m\":\"v\"}", false},
                 {"{\"k:\":\"v\",\"k;\":\"w\"}", "{\"k;\":\"w\",\"k:\":\"v\"}", true},
                 {"{\"k\":1.0,\"l\":\"a\"}", "{\"l\":\"a\",\"k\":1.0}", true},
                 {"{\"k\":{\"a\":\"b\"}}", "{\"k\":{\"a\":\"c\"}}", false},
                 {"[\"a\",\"b\"]", "[\"a\",\"c\"]", false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct doc *a = parse(&arena, cases[i].a), *b = parse(&arena, cases[i].b);
        assert_int_equal(doc_equal(a, b), cases[i].equal);
        assert_int_equal(doc_equal(doc_packed(&arena, a), doc_packed(&arena, b)), cases[i].equal);
    }
}

static void unpacking_gives_the_tree(void **state)
{
    (void)state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *packed = with_packed(&arena, text);
    const struct doc *a = doc_get(packed, "a"), *tree = doc_unpacked(&arena, a);
    assert_int_equal(doc_len(a), 2);
    assert_int_equal(doc_int(doc_get(tree, "x"), 0), 1);
    assert_ptr_equal(doc_unpacked(&arena, tree), tree);
    assert_null(doc_unpacked(&arena, NULL));
    assert_int_equal(doc_packed(&arena, doc_get(packed, "c"))->kind, DOC_FLOAT); /* no array, no object */
    assert_int_equal(doc_len(doc_packed(&arena, doc_get(packed, "b"))), 0);
}

static void bytes_count_nodes_and_texts(void **state)
{
    (void)state;
    struct arena arena ARENA_CLEANUP = {0};
    assert_int_equal(doc_bytes(parse(&arena, "7")), DOC_NODE_BYTES);
    assert_int_equal(doc_bytes(parse(&arena, "{\"ab\":\"cde\"}")), 2 * DOC_NODE_BYTES + 5);
    assert_int_equal(doc_bytes(parse(&arena, "[\"a\",\"b\"]")), 3 * DOC_NODE_BYTES + 2);
    assert_int_equal(doc_bytes(doc_packed(&arena, parse(&arena, "[1, 2]"))), DOC_NODE_BYTES + 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_parts_are_written_as_trees_are),
        cmocka_unit_test(content_decides_about_equality),
        cmocka_unit_test(a_value_that_differs_decides),
        cmocka_unit_test(unpacking_gives_the_tree),
        cmocka_unit_test(bytes_count_nodes_and_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
