#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <time.h>

#include "doc/json.h"
#include "doc/pickle.h"
#include "base/rng.h"

#define BYTES(literal) ((struct str){literal, sizeof(literal) - 1})

static int parse(struct arena *arena, struct str bytes, struct doc **ret_doc, struct error *error)
{
    *ret_doc = NULL;
    *error = (struct error){0};
    int code = pickle_parse(arena, bytes, ret_doc, error);
    assert_true((code == 0) == (*ret_doc != NULL));
    return code;
}

/* The value as JSON. */
static void reads(struct str bytes, const char *json)
{
    struct arena ARENA_CLEANUP arena = {.limit_bytes = 1 << 20};
    struct buf BUF_CLEANUP out = {0};
    struct error error;
    struct doc *doc;
    if (parse(&arena, bytes, &doc, &error) < 0)
        fail_msg("%s, but %s was expected", error.text, json);
    json_write(&out, doc);
    assert_string_equal(out.data, json);
}

static void refuses(struct str bytes, int code, const char *text)
{
    struct arena ARENA_CLEANUP arena = {.limit_bytes = 1 << 20};
    struct error error;
    struct doc *doc;
    assert_int_equal(parse(&arena, bytes, &doc, &error), code);
    assert_int_equal(error.code, code);
    assert_string_equal(error.text, text);
}

static void scalars(void **state)
{
    reads(BYTES("\x80\x02N."), "null");
    reads(BYTES("\x80\x02\x88."), "true");
    reads(BYTES("\x80\x02\x89."), "false");
    reads(BYTES("\x80\x02K\xff."), "255");
    reads(BYTES("\x80\x02M\x01\x80."), "32769");
    reads(BYTES("\x80\x02J\xff\xff\xff\xff."), "-1");
    reads(BYTES("\x80\x02J\xff\xff\xff\x7f."), "2147483647");
    reads(BYTES("\x80\x02\x8a\x00."), "0");
    reads(BYTES("\x80\x02\x8a\x01\x80."), "-128");
    reads(BYTES("\x80\x02\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."), "9223372036854775807");
    reads(BYTES("\x80\x02\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."), "-9223372036854775808");
    reads(BYTES("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\xff."), "-9223372036854775808");
    /* Values that a document cannot hold. */
    reads(BYTES("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00."), "null");
    reads(BYTES("\x80\x02G\x7f\xf0\x00\x00\x00\x00\x00\x00."), "null");
    reads(BYTES("\x80\x02]G\x7f\xf8\x00\x00\x00\x00\x00\x00"
                "a."),
          "[null]");
    reads(BYTES("\x80\x02G?\xf8\x00\x00\x00\x00\x00\x00."), "1.5");
    reads(BYTES("\x80\x02X\x00\x00\x00\x00."), "\"\"");
    reads(BYTES("\x80\x02X\x0c\x00\x00\x00"
                "abcdefgh\xc3\xa9ij."),
          "\"abcdefgh\xc3\xa9ij\"");
}

static void containers(void **state)
{
    reads(BYTES("\x80\x02}."), "{}");
    reads(BYTES("\x80\x02]."), "[]");
    reads(BYTES("\x80\x02)."), "[]");
    reads(BYTES("\x80\x02K\x01\x85."), "[1]");
    reads(BYTES("\x80\x02K\x01K\x02\x86."), "[1,2]");
    reads(BYTES("\x80\x02K\x01K\x02K\x03\x87."), "[1,2,3]");
    reads(BYTES("\x80\x02(K\x01K\x02K\x03K\x04t."), "[1,2,3,4]");
    reads(BYTES("\x80\x02]K\x01"
                "aK\x02"
                "a."),
          "[1,2]");
    reads(BYTES("\x80\x02](K\x01](K\x02"
                "ee."),
          "[1,[2]]");
    reads(BYTES("\x80\x02}X\x01\x00\x00\x00kNs."), "{\"k\":null}");
    reads(BYTES("\x80\x02}(K\x07K\x01\x8a\x01\xffK\x02u."), "{\"7\":1,\"-1\":2}"); /* keys that are ids */
}

/* The bytes that pickle.dumps({'a': s, 'b': s, 'c': (s, 'x', 'x')}, 2) writes for s = [1, 2]: the list is
 * named by the memo. */
static void shares(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct error error;
    struct doc *doc;
    struct str bytes = BYTES("\x80\x02}q\x00(X\x01\x00\x00\x00"
                             "aq\x01]q\x02(K\x01K\x02"
                             "eX\x01\x00\x00\x00"
                             "bq\x03h\x02X\x01\x00\x00\x00"
                             "cq\x04h\x02X\x01\x00\x00\x00xq\x05h\x05\x87q\x06u.");
    reads(bytes, "{\"a\":[1,2],\"b\":[1,2],\"c\":[[1,2],\"x\",\"x\"]}");
    assert_int_equal(parse(&arena, bytes, &doc, &error), 0);
    assert_ptr_equal(doc_get(doc, "a"), doc_get(doc, "b"));
    reads(BYTES("\x80\x02Nr\xff\xff\x0f\x00j\xff\xff\x0f\x00\x86."), "[null,null]");
}

static void refusals(void **state)
{
    refuses(BYTES(""), ERROR_UNSUPPORTED, "byte 0: not a pickle of protocol 2");
    refuses(BYTES("\x80\x04N."), ERROR_UNSUPPORTED, "byte 0: not a pickle of protocol 2");
    refuses(BYTES("\x80\x02"
                  "cos\nsystem\n."),
            ERROR_UNSUPPORTED, "byte 2: opcode 'c' holds no plain data");
    refuses(BYTES("\x80\x02N)R."), ERROR_UNSUPPORTED, "byte 4: opcode 'R' holds no plain data");
    refuses(BYTES("\x80\x02\x81."), ERROR_UNSUPPORTED, "byte 2: opcode 0x81 holds no plain data");
    refuses(BYTES("\x80\x02N"), ERROR_INVALID, "byte 3: the pickle ends without STOP");
    refuses(BYTES("\x80\x02."), ERROR_INVALID, "byte 2: STOP must leave one value");
    refuses(BYTES("\x80\x02NN."), ERROR_INVALID, "byte 4: STOP must leave one value");
    refuses(BYTES("\x80\x02N(."), ERROR_INVALID, "byte 4: STOP must leave one value");
    refuses(BYTES("\x80\x02N.N"), ERROR_INVALID, "byte 4: nothing may follow STOP");
    refuses(BYTES("\x80\x02M\x01"), ERROR_INVALID, "byte 2: the pickle ends within this opcode");
    refuses(BYTES("\x80\x02X\xff\xff\xff\xff"
                  "abc."),
            ERROR_INVALID, "byte 2: the pickle ends within this opcode");
    refuses(BYTES("\x80\x02X\x01\x00\x00\x00\xff."), ERROR_INVALID,
            "byte 2: a string that is not UTF-8 without NUL");
    refuses(BYTES("\x80\x02X\x0a\x00\x00\x00"
                  "abcdefg\x00ij."),
            ERROR_INVALID, "byte 2: a string that is not UTF-8 without NUL");
    refuses(BYTES("\x80\x02h\x00."), ERROR_INVALID, "byte 2: the memo has no such value");
    refuses(BYTES("\x80\x02q\x00."), ERROR_INVALID, "byte 2: nothing to remember");
    refuses(BYTES("\x80\x02Nr\x00\x00\x10\x00."), ERROR_LIMIT, "byte 3: a memo of too many values");
    refuses(BYTES("\x80\x02}(K\x01u."), ERROR_INVALID, "byte 6: a key without a value");
    refuses(BYTES("\x80\x02}N]s."), ERROR_INVALID, "byte 5: a key must be a string or an integer, not null");
    refuses(BYTES("\x80\x02}(K\x01NK\x01Nu."), ERROR_INVALID, "byte 11: the key \"1\" is twice in a dict");
    refuses(BYTES("\x80\x02K\x01(Ne."), ERROR_INVALID, "byte 6: items without a list before them");
    refuses(BYTES("\x80\x02"
                  "a."),
            ERROR_INVALID, "byte 2: nothing to append");
    refuses(BYTES("\x80\x02](N"
                  "a."),
            ERROR_INVALID, "byte 5: items without a list before them");
    refuses(BYTES("\x80\x02\x86."), ERROR_INVALID, "byte 2: a tuple without its values");
    refuses(BYTES("\x80\x02u."), ERROR_INVALID, "byte 2: no MARK belongs to this opcode");
    /* A list that holds itself, and one that grows when it is a part already. */
    refuses(BYTES("\x80\x02]q\x00h\x00"
                  "a."),
            ERROR_INVALID, "byte 7: a container changes that is already part of another value");
    refuses(BYTES("\x80\x02]q\x00\x85h\x00Na."), ERROR_INVALID,
            "byte 9: a container changes that is already part of another value");
}

static void bounds(void **state)
{
    struct arena ARENA_CLEANUP arena = {.limit_bytes = 64 << 20};
    struct buf BUF_CLEANUP bytes = {0};
    struct error error;
    struct doc *doc;
    buf_add(&bytes, "\x80\x02]", 3); /* each list holds the one before twice: 2^40 nodes to walk */
    for (int i = 0; i < 40; i++) {
        char op[] = {'q', (char)i, 'h', (char)i, (char)0x86};
        buf_add(&bytes, op, sizeof op);
    }
    buf_add_char(&bytes, '.');
    assert_int_equal(parse(&arena, buf_str(&bytes), &doc, &error), ERROR_LIMIT);
    assert_non_null(strstr(error.text, "shared values each time"));

    for (int depth = PICKLE_DEPTH_MAX - 1; depth <= PICKLE_DEPTH_MAX; depth++) {
        buf_clear(&bytes);
        buf_add(&bytes, "\x80\x02]", 3);
        for (int i = 0; i < depth; i++)
            buf_add_char(&bytes, (char)0x85);
        buf_add_char(&bytes, '.');
        assert_int_equal(parse(&arena, buf_str(&bytes), &doc, &error),
                         depth < PICKLE_DEPTH_MAX ? 0 : ERROR_LIMIT);
    }

    buf_clear(&bytes);
    buf_add(&bytes, "\x80\x02](", 4);
    for (int i = 0; i < 100000; i++)
        buf_add_char(&bytes, 'N');
    buf_add(&bytes, "e.", 2);
    struct arena ARENA_CLEANUP small = {.limit_bytes = 1 << 20};
    assert_int_equal(parse(&small, buf_str(&bytes), &doc, &error), ERROR_LIMIT);
    assert_true(small.used_bytes <= small.limit_bytes);
    buf_clear(&bytes);
    buf_add(&bytes, "\x80\x02", 2);
    for (int i = 0; i <= PICKLE_STACK_MAX; i++)
        buf_add_char(&bytes, '(');
    assert_int_equal(parse(&arena, buf_str(&bytes), &doc, &error), ERROR_LIMIT);
}

/* A dict that grows one key at a time is read in time that grows with it, not with its square. */
static void growing_dict(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct buf BUF_CLEANUP bytes = {0};
    struct error error;
    struct doc *doc;
    enum { KEYS = 50000 };
    buf_add(&bytes, "\x80\x02}", 3);
    for (int i = 0; i < KEYS; i++) {
        char op[] = {'J', (char)(i & 0xff), (char)(i >> 8 & 0xff), (char)(i >> 16), 0, 'N', 's'};
        buf_add(&bytes, op, sizeof op);
    }
    buf_add_char(&bytes, '.');
    clock_t start = clock();
    assert_int_equal(parse(&arena, buf_str(&bytes), &doc, &error), 0);
    assert_int_equal(doc_len(doc), KEYS);
    assert_true((clock() - start) / CLOCKS_PER_SEC < 5); /* the square: minutes */
}

/* No damage makes it crash, read beyond the end, or accept half a value. */
static void damage(void **state)
{
    static const char good[] = "\x80\x02}q\x00(X\x04\x00\x00\x00pathq\x01]q\x02(K\x01\x8a\x02\xff\x7f"
                               "G?\xf0\x00\x00\x00\x00\x00\x00"
                               "eX\x01\x00\x00\x00tq\x03h\x02h\x01N\x87q\x04u.";
    struct rng rng;
    rng_seed(&rng, 21);
    for (size_t len = 0; len < sizeof good - 1; len++) {
        struct arena ARENA_CLEANUP arena = {.limit_bytes = 1 << 20};
        struct error error;
        struct doc *doc;
        char *copy = mem_alloc(len + 1);
        memcpy(copy, good, len);
        assert_true(parse(&arena, (struct str){copy, len}, &doc, &error) < 0);
        mem_free(copy);
    }
    for (int round = 0; round < 50000; round++) {
        struct arena ARENA_CLEANUP arena = {.limit_bytes = 1 << 20};
        struct buf BUF_CLEANUP out = {0};
        struct error error;
        struct doc *doc;
        char copy[sizeof good];
        memcpy(copy, good, sizeof good);
        for (uint64_t i = rng_below(&rng, 3) + 1; i > 0; i--)
            copy[2 + rng_below(&rng, sizeof good - 3)] = (char)rng_next(&rng);
        if (parse(&arena, (struct str){copy, sizeof good - 1}, &doc, &error) == 0)
            json_write(&out, doc);
        else
            assert_int_equal(strncmp(error.text, "byte ", 5), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars),  cmocka_unit_test(containers), cmocka_unit_test(shares),
        cmocka_unit_test(refusals), cmocka_unit_test(bounds),     cmocka_unit_test(growing_dict),
        cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
