#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "doc/random_doc.h"
#include "doc/yaml.h"

static struct doc_list must_parse(struct arena *arena, struct str text)
{
    struct doc_list docs = {0};
    struct error error = {0};
    if (yaml_parse_all(arena, text, &docs, &error) < 0)
        fail_msg("%s in:\n%.*s", error.text, (int)text.len, text.data);
    return docs;
}

/* One document, as compact JSON. */
static void assert_reads(const char *yaml, const char *json)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct buf BUF_CLEANUP out = {0};
    struct doc_list docs = must_parse(&arena, str_from(yaml));
    assert_int_equal(docs.len, 1);
    json_write(&out, docs.items[0]);
    assert_string_equal(out.data, json);
}

static void assert_fails(const char *yaml, int code, const char *message)
{
    struct arena ARENA_CLEANUP arena = {.limit_bytes = 64 << 20};
    struct doc_list untouched = {.len = 7};
    struct error error = {0};
    assert_int_equal(yaml_parse_all(&arena, str_from(yaml), &untouched, &error), code);
    assert_string_equal(error.text, message);
    assert_int_equal(untouched.len, 7);
}

/* Written and read again a document is the same; scalars at the top level are put into an array, as a
 * document that begins with '[' or '{' is JSON and one that is null is left out. */
static void round_trip(void **state)
{
    struct rng rng;
    rng_seed(&rng, 16);
    for (int round = 0; round < 20000; round++) {
        struct arena arena = {0};
        struct buf text = {0}, json = {0};
        struct doc *doc = random_doc(&arena, &rng, 4);
        if (doc_len(doc) == 0) {
            struct doc *array = doc_new(&arena, DOC_ARRAY);
            doc_push(&arena, array, doc);
            doc = array;
        }
        yaml_write(&text, doc);
        json_write(&json, doc);
        struct doc_list docs = {0};
        struct error error = {0};
        if (yaml_parse_all(&arena, buf_str(&text), &docs, &error) < 0)
            fail_msg("round %d: %s\n%s\n%s", round, error.text, json.data, text.data);
        if (docs.len != 1 || !doc_equal(docs.items[0], doc))
            fail_msg("round %d: %s\n%s", round, json.data, text.data);
        buf_done(&text);
        buf_done(&json);
        arena_done(&arena);
    }
}

/* Words that YAML 1.1 readers take for something else, alone and as keys. */
static void ambiguous_strings_are_quoted(void **state)
{
    static const char *const words[] = {"",
                                        "~",
                                        "null",
                                        "Null",
                                        "NULL",
                                        "y",
                                        "Y",
                                        "yes",
                                        "n",
                                        "no",
                                        "NO",
                                        "on",
                                        "Off",
                                        "true",
                                        "FALSE",
                                        "1",
                                        "-1",
                                        "+1",
                                        "0x1F",
                                        "0b11",
                                        "0o17",
                                        "017",
                                        "08",
                                        "1_000",
                                        "1.5",
                                        "1.",
                                        ".5",
                                        "1e3",
                                        "-1E-3",
                                        ".inf",
                                        "-.Inf",
                                        ".nan",
                                        "12:30",
                                        "1:2:3.5",
                                        "2024-01-02",
                                        "2024-1-2 3:4:5.6",
                                        "2024-01-02T03:04:05Z",
                                        "2024-01-02T03:04:05.5+02:00",
                                        "9223372036854775808",
                                        "0xffffffffffffffff"};
    struct arena ARENA_CLEANUP arena = {0};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct buf BUF_CLEANUP out = {0}, expect = {0};
        struct doc *object = doc_new(&arena, DOC_OBJECT);
        doc_set(&arena, object, str_from(words[i]), doc_new_str(&arena, str_from(words[i])));
        yaml_write(&out, object);
        buf_printf(&expect, "\"%s\": \"%s\"\n", words[i], words[i]);
        assert_string_equal(out.data, expect.data);
    }
}

/* The form, as `kubectl create configmap --dry-run=client -o yaml` has it. */
static void looks_like_kubectl(void **state)
{
    static const char text[] =
        "a:\n"
        "  list:\n"
        "  - name: x\n"
        "    value: \"1\"\n"
        "  - - 1\n"
        "    - 2.50\n"
        "  - {}\n"
        "  - []\n"
        "  none: null\n"
        "block: |\n"
        "  line one\n"
        "\n"
        "    indented: yes\n"
        "chomped: |-\n"
        "  a\n"
        "  b\n"
        "colon: 'a: b'\n"
        "hash: '#x'\n"
        "led: |2-\n"
        "    lead\n"
        "  x\n"
        "quote: it's\n"
        "spaces: \"tr \\n\"\n"
        "tab: \"tab\\there\"\n"
        "unicode: \"é \\U0001F600\"\n"
        "wide: word word word word word word word word word word word word word word word word\n"
        "  word word\n"
        "kept: |+\n"
        "  a\n"
        "\n";
    struct arena ARENA_CLEANUP arena = {0};
    struct buf BUF_CLEANUP out = {0};
    yaml_write(&out, must_parse(&arena, str_from(text)).items[0]);
    assert_string_equal(out.data, text);
}

static void scalars_resolve_as_in_go_yaml(void **state)
{
    assert_reads("- ~\n- null\n- Null\n-\n- 'null'\n- nULL\n", "[null,null,null,null,\"null\",\"nULL\"]");
    assert_reads("- y\n- Yes\n- on\n- TRUE\n- n\n- NO\n- Off\n- false\n- tRUE\n- \"no\"\n",
                 "[true,true,true,true,false,false,false,false,\"tRUE\",\"no\"]");
    assert_reads("- 12\n- -12\n- +12\n- 0x1F\n- 0o17\n- 0b101\n- -0b101\n- 017\n- 1_000\n- 0\n- -0\n- 0x_f\n",
                 "[12,-12,12,31,15,5,-5,15,1000,0,0,15]");
    assert_reads(
        "- 9223372036854775807\n- -9223372036854775808\n- 9223372036854775808\n- 0xffffffffffffffff\n",
        "[9223372036854775807,-9223372036854775808,9223372036854775808,1.8446744073709552e+19]");
    assert_reads("- 1.50\n- .5\n- 1.\n- +1.5\n- 1e3\n- -1E-3\n- 1_0.5\n- 08\n- 1e999\n",
                 "[1.50,0.5,1.0,1.5,1e3,-1E-3,10.5,8.0,\"1e999\"]");
    assert_reads("- 1.2.3\n- 0x\n- 0b2\n- 12:30\n- 2024-01-02\n- -\n- +\n- .\n- 1e\n- _1\n- --1\n- 0xg\n",
                 "[\"1.2.3\",\"0x\",\"0b2\",\"12:30\",\"2024-01-02\",[null],\"+\",\".\",\"1e\",\"_1\",\"--"
                 "1\",\"0xg\"]");
    assert_reads("- !!str 5\n- !!int '5'\n- !!float 5\n- !!bool yes\n- !!null ''\n- !!binary YQ==\n- ! 5\n- "
                 "!!map {}\n",
                 "[\"5\",5,5.0,true,null,\"YQ==\",\"5\",{}]");
    assert_reads("on: 1\n0x10: 2\n1.50: 3\n'~': 4\n", "{\"true\":1,\"16\":2,\"1.50\":3,\"~\":4}");
}

static void anchors_and_merges(void **state)
{
    assert_reads("a: &x {b: 1, c: [2]}\nd: *x\n", "{\"a\":{\"b\":1,\"c\":[2]},\"d\":{\"b\":1,\"c\":[2]}}");
    assert_reads("a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":1,\"b\":2,\"c\":2}");
    assert_reads("a: &k key\n*k : v\n", "{\"a\":\"key\",\"key\":\"v\"}");
    assert_reads("- &x {b: 1, c: 2}\n- {<<: *x, b: 3}\n- {b: 3, <<: *x}\n",
                 "[{\"b\":1,\"c\":2},{\"b\":3,\"c\":2},{\"b\":3,\"c\":2}]");
    assert_reads("- &x {b: 1}\n- &y {b: 2, c: 2}\n- {<<: [*x, *y], d: 4}\n",
                 "[{\"b\":1},{\"b\":2,\"c\":2},{\"d\":4,\"b\":1,\"c\":2}]");
    assert_reads("'<<': 1\na: <<\n", "{\"<<\":1,\"a\":\"<<\"}");
    /* A copy is a copy: changing the one leaves the other. */
    struct arena ARENA_CLEANUP arena = {0};
    struct doc *doc = must_parse(&arena, STR("a: &x {b: 1}\nc: *x\n")).items[0];
    doc_set(&arena, doc_get(doc, "c"), STR("b"), doc_new_int(&arena, 2));
    assert_int_equal(doc_int(doc_path(doc, "a", "b", NULL), 0), 1);
}

static void documents(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct doc_list docs =
        must_parse(&arena, STR("# c\n---\na: 1\n---\n---\n# nothing\n---\n- 2\n...\n---\n~\n"));
    assert_int_equal(docs.len, 2);
    assert_true(docs.items[0]->kind == DOC_OBJECT && docs.items[0]->line == 3);
    assert_true(docs.items[1]->kind == DOC_ARRAY && docs.items[1]->line == 8);
    assert_int_equal(must_parse(&arena, STR("")).len, 0);
    assert_int_equal(must_parse(&arena, (struct str){0}).len, 0);
    assert_int_equal(must_parse(&arena, STR(" \n {\"a\": 1}\n")).len, 1);
    assert_fails("a: &x 1\n---\nb: *x\n", ERROR_INVALID, "3:4: anchor &x is not defined before this alias");
    assert_int_equal(must_parse(&arena, STR("{\"a\": 1}\n{\"a\": 2}[3]\n")).len, 3);
    assert_int_equal(must_parse(&arena, STR("{\"a\": 1}\n---\n{\"a\": 2}\n")).len, 2);
    struct buf BUF_CLEANUP many = {0};
    for (int i = 0; i < YAML_DOCUMENTS_MAX; i++)
        buf_add_str(&many, STR("--- 1\n"));
    assert_int_equal(must_parse(&arena, buf_str(&many)).len, YAML_DOCUMENTS_MAX);
    buf_add_str(&many, STR("--- 1\n"));
    assert_fails(many.data, ERROR_LIMIT, "1025:1: more than 1024 documents");
}

static void refusals_name_the_place(void **state)
{
    assert_fails("a: 1\nb:\n  c: 1\na: 3\n", ERROR_INVALID, "4:1: the key \"a\" is already at 1:1");
    assert_fails("on: 1\n'true': 2\n", ERROR_INVALID, "2:1: the key \"true\" is already at 1:1");
    assert_fails("a: &x [*x]\n", ERROR_INVALID, "1:8: an alias inside of its own anchor");
    assert_fails("a: .inf\n", ERROR_INVALID,
                 "1:4: infinity and not-a-number are not values (quote a string)");
    assert_fails("? [a]\n: 1\n", ERROR_INVALID, "1:3: a key must be a string, not array");
    assert_fails("~: 1\n", ERROR_INVALID, "1:1: a key must be a string, not null");
    assert_fails("a: \"\\0\"\n", ERROR_INVALID, "1:4: a string may not contain NUL");
    assert_fails("a: !foo x\n", ERROR_INVALID, "1:4: unknown tag !foo");
    assert_fails("a: !!set {b}\n", ERROR_INVALID, "1:4: unknown tag tag:yaml.org,2002:set");
    assert_fails("a: !!int x\n", ERROR_INVALID, "1:4: the value is not what its tag !!int says");
    assert_fails("a:\n  <<: x\n", ERROR_INVALID, "2:7: << takes a mapping or a sequence of mappings");
    assert_fails("a: b: c\n", ERROR_INVALID, "1:5: mapping values are not allowed in this context");
    assert_fails("a: \xc3\xa9\nb: \xff\n", ERROR_INVALID, "2:4: invalid leading UTF-8 octet");
    assert_fails("{\"a\": 1,\n b: 2}", ERROR_INVALID, "2:2: a key in double quotes is expected here");
    assert_fails(
        "a:\n\tb: 1\n", ERROR_INVALID,
        "2:1: a tab cannot indent, only spaces can, while scanning for the next token that begins at 2:1");
}

static void limits(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct buf BUF_CLEANUP text = {0};
    for (int depth = 0; depth < YAML_DEPTH_MAX; depth++)
        buf_add_str(&text, STR("- "));
    must_parse(&arena, buf_str(&text));
    buf_add_str(&text, STR("- "));
    assert_fails(text.data, ERROR_LIMIT, "1:129: nested deeper than 64 levels");
    /* Aliases make depth and size of nothing. */
    buf_clear(&text);
    buf_add_str(&text, STR("- &a0 []\n"));
    for (int i = 1; i < 70; i++)
        buf_printf(&text, "- &a%d [*a%d]\n", i, i - 1);
    assert_fails(text.data, ERROR_LIMIT, "64:9: nested deeper than 64 levels");
    buf_clear(&text);
    buf_add_str(&text, STR("- &a0 [x,x,x,x,x,x,x,x,x,x]\n"));
    for (int i = 1; i < 20; i++)
        buf_printf(&text, "- &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i - 1, i - 1, i - 1, i - 1,
                   i - 1, i - 1, i - 1);
    struct doc_list docs;
    struct error error;
    struct arena small = {.limit_bytes = 4 << 20}, large = {.limit_bytes = (size_t)1 << 30};
    assert_int_equal(yaml_parse_all(&small, buf_str(&text), &docs, &error), ERROR_LIMIT);
    assert_true(small.used_bytes <= 4 << 20);
    assert_int_equal(yaml_parse_all(&large, buf_str(&text), &docs, &error), ERROR_LIMIT);
    assert_non_null(strstr(error.text, "more than 2000000 values"));
    arena_done(&small);
    arena_done(&large);
}

static void places(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct doc *doc = must_parse(&arena, STR("# c\nspec:\n  \xc3\xa9\xc3\xa9: x\n  b:\n  - 1\n")).items[0];
    struct doc *spec = doc_get(doc, "spec");
    assert_true(doc->object.members[0].line == 2 && doc->object.members[0].column == 1);
    assert_true(spec->line == 3 && spec->column == 3);
    assert_true(doc_get(spec, "\xc3\xa9\xc3\xa9")->column == 7);
    assert_true(doc_at(doc_get(spec, "b"), 0)->line == 5 && doc_at(doc_get(spec, "b"), 0)->column == 5);
}

/* Documents made by our own code with bytes that are not text are still written. */
static void bad_bytes_are_repaired(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct buf BUF_CLEANUP out = {0};
    yaml_write(&out, doc_new_str(&arena, STR("a\xff"
                                             "b")));
    assert_string_equal(out.data, "a\xef\xbf\xbd"
                                  "b\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(ambiguous_strings_are_quoted),
        cmocka_unit_test(looks_like_kubectl),
        cmocka_unit_test(scalars_resolve_as_in_go_yaml),
        cmocka_unit_test(anchors_and_merges),
        cmocka_unit_test(documents),
        cmocka_unit_test(refusals_name_the_place),
        cmocka_unit_test(limits),
        cmocka_unit_test(places),
        cmocka_unit_test(bad_bytes_are_repaired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
