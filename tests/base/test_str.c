#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>

#include "base/rng.h"
#include "base/str.h"

static struct str random_text(struct rng *rng, char *text, size_t max, const char *letters)
{
    size_t len = rng_below(rng, max + 1);
    for (size_t i = 0; i < len; i++)
        text[i] = letters[rng_below(rng, strlen(letters))];
    return (struct str){text, len};
}

static void order_is_total(void **state)
{
    struct rng rng;
    rng_seed(&rng, 1);
    for (int round = 0; round < 20000; round++) {
        char memory[3][4];
        struct str s[3];
        for (int i = 0; i < 3; i++)
            s[i] = random_text(&rng, memory[i], 4, "ab\xff");
        assert_int_equal(str_compare(s[0], s[1]) == 0, str_equal(s[0], s[1]));
        assert_int_equal(str_compare(s[0], s[1]) < 0, str_compare(s[1], s[0]) > 0);
        if (str_compare(s[0], s[1]) <= 0 && str_compare(s[1], s[2]) <= 0)
            assert_true(str_compare(s[0], s[2]) <= 0);
        if (str_starts(s[0], s[1]))
            assert_true(str_compare(s[1], s[0]) <= 0);
        assert_true(str_starts(s[0], STR("")) && str_ends(s[0], STR("")) && str_ends(s[0], s[0]));
    }
    assert_true(str_compare(STR("a"), STR("\xff")) < 0);
    assert_true(str_equal((struct str){NULL, 0}, STR("")));
}

/* Cutting and joining gives the text back; the head has no separator. */
static void cut_is_join_reversed(void **state)
{
    struct rng rng;
    rng_seed(&rng, 2);
    for (int round = 0; round < 20000; round++) {
        char memory[9];
        struct str all = random_text(&rng, memory, sizeof memory, "ab,"), head = STR("-"), tail = STR("-"),
                   none;
        if (str_cut(all, ',', &head, &tail)) {
            assert_int_equal(head.len + 1 + tail.len, all.len);
            assert_ptr_equal(tail.data, head.data + head.len + 1);
            assert_false(str_cut(head, ',', &none, &none));
        } else {
            assert_true(str_is(head, "-") && str_is(tail, "-"));
            assert_null(all.len ? memchr(all.data, ',', all.len) : NULL);
        }
    }
}

static void trim(void **state)
{
    assert_true(str_is(str_trim(STR(" \t\r\n a b \v\f")), "a b"));
    assert_true(str_is(str_trim(STR("  ")), ""));
    assert_true(str_is(str_trim((struct str){0}), ""));
}

static void integers_round_trip(void **state)
{
    struct rng rng;
    rng_seed(&rng, 3);
    for (int round = 0; round < 50000; round++) {
        int64_t value = (int64_t)rng_next(&rng) >> rng_below(&rng, 64), back = 0;
        char text[32];
        snprintf(text, sizeof text, "%" PRId64, value);
        assert_true(str_to_i64(str_from(text), INT64_MIN, INT64_MAX, &back));
        char digits[DECIMAL_TEXT_MAX];
        assert_true(str_is(str_decimal(value, digits), text));
        assert_int_equal(back, value);
        if (value > INT64_MIN)
            assert_false(str_to_i64(str_from(text), INT64_MIN, value - 1, &back));
        if (value < INT64_MAX)
            assert_false(str_to_i64(str_from(text), value + 1, INT64_MAX, &back));
    }
    int64_t untouched = 42;
    const char *bad[] = {"",
                         "-",
                         "+1",
                         " 1",
                         "1 ",
                         "0x1",
                         "1.0",
                         "9223372036854775808",
                         "-9223372036854775809",
                         "--1",
                         "99999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(str_to_i64(str_from(bad[i]), INT64_MIN, INT64_MAX, &untouched));
    assert_int_equal(untouched, 42);
}

/* Every code point's encoding is accepted exactly when it is a scalar value in its shortest form. */
static void numbers_are_taken_off(void **state)
{
    struct str text = STR("step-12/rank-9.shard");
    int64_t value = -1;
    assert_true(str_take_number(&text, "step-", 12, &value) && value == 12);
    assert_true(str_take_number(&text, "/rank-", INT64_MAX, &value) && value == 9);
    assert_true(str_is(text, ".shard"));
    static const char *const bad[] = {
        "", "ste", "step-", "step-x", "step--1", "step-13", "step-99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        text = str_from(bad[i]);
        assert_false(str_take_number(&text, "step-", 12, &value));
        assert_true(str_is(text, bad[i]) && value == 9);
    }
}

static void utf8_is_exact(void **state)
{
    for (uint32_t code = 0; code < 0x200000; code += code < 0x11000 ? 1 : 97) {
        for (size_t size = 1; size <= 4; size++) {
            static const uint32_t limits[] = {0, 0x80, 0x800, 0x10000, 0x200000};
            if (code >= limits[size])
                continue;
            char text[4];
            uint32_t rest = code;
            for (size_t i = size - 1; i > 0; i--, rest >>= 6)
                text[i] = (char)(0x80 | (rest & 0x3f));
            static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
            text[0] = (char)(lead[size] | rest);
            bool shortest = size == 1 || code >= limits[size - 1];
            bool scalar = code < 0xd800 || (code > 0xdfff && code < 0x110000);
            assert_int_equal(str_is_utf8((struct str){text, size}), shortest && scalar);
            if (size > 1) {
                assert_false(str_is_utf8((struct str){text, size - 1}));
                assert_false(str_is_utf8((struct str){text + 1, size - 1}));
            }
        }
    }
    assert_int_equal(str_utf8_len("", 0), 0);
}

/* A buffer against a plain array. */
static void head_ends_with_a_character(void **state)
{
    struct str text = STR("a\303\244\342\202\254\360\237\230\200"); /* of 1, 2, 3 and 4 bytes */
    static const size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
    for (size_t max = 0; max < sizeof ends / sizeof *ends; max++) {
        struct str head = str_head_utf8(text, max);
        assert_int_equal(head.len, ends[max]);
        assert_true(str_is_utf8(head) && head.data == text.data);
    }
}

static void buffer_is_a_string(void **state)
{
    struct rng rng;
    struct buf buf = {0};
    char model[4096];
    size_t len = 0;
    rng_seed(&rng, 4);
    for (int round = 0; round < 20000; round++) {
        char memory[40];
        struct str text = random_text(&rng, memory, sizeof memory, "abc");
        switch (rng_below(&rng, 4)) {
        case 0:
            buf_add_str(&buf, text);
            break;
        case 1:
            buf_printf(&buf, STR_FORMAT, STR_ARG(text));
            break;
        case 2:
            for (size_t i = 0; i < text.len; i++)
                buf_add_char(&buf, text.data[i]);
            break;
        default: {
            size_t drop = rng_below(&rng, len + 1);
            buf_drop_front(&buf, drop);
            memmove(model, model + drop, len -= drop);
            text.len = 0;
        }
        }
        if (text.len)
            memcpy(model + len, text.data, text.len);
        len += text.len;
        assert_true(str_equal(buf_str(&buf), (struct str){model, len}));
        if (buf.data)
            assert_int_equal(buf.data[buf.len], 0);
        if (len > 4000) {
            buf_clear(&buf);
            len = 0;
        }
    }
    buf_printf(&buf, "%0500d", 7); /* longer than the room that is there */
    assert_int_equal(buf.len, len + 500);
    buf_done(&buf);
    assert_null(buf.data);
}

static void escapes_of_proc_are_undone(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"", ""},
                                           {"/mnt/a\\040b", "/mnt/a b"},
                                           {"\\011\\012\\134", "\t\n\\"},
                                           {"\\134040", "\\040"},
                                           {"\\04", "\\04"},
                                           {"\\048", "\\048"},
                                           {"\\477", "\\477"},
                                           {"\\", "\\"},
                                           {"\\377", "\377"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        snprintf(text, sizeof text, "%s", cases[i][0]);
        str_undo_octal(text);
        assert_string_equal(text, cases[i][1]);
    }
}

/* Checks that the buffer formats like the C library, behind text that is there already. */
static void formats_like(const char *expected, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void formats_like(const char *expected, const char *format, ...)
{
    struct buf buf BUF_CLEANUP = {0};
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert_string_equal(text, expected);
    buf_add_str(&buf, STR("before "));
    va_start(args, format);
    buf_vprintf(&buf, format, args);
    va_end(args);
    assert_int_equal(buf.len, strlen("before ") + strlen(expected));
    assert_string_equal(buf.data + strlen("before "), expected);
}

static void buffer_formats_like_printf(void **state)
{
    struct str part = {"abcdef", 3};
    const char *volatile nothing = NULL;
    formats_like("", "%s", "");
    formats_like("100 %", "100 %%");
    formats_like("a-abc--5", "%s-" STR_FORMAT "-%.*s-%d", "a", STR_ARG(part), 0, nothing, 5);
    formats_like("ab", "%.*s", 5, "ab\0cd"); /* no further than its NUL */
    formats_like("-2147483648 4294967295", "%d %u", INT32_MIN, UINT32_MAX);
    formats_like("-9223372036854775808 18446744073709551615", "%" PRId64 " %" PRIu64, INT64_MIN, UINT64_MAX);
    formats_like("-1 2 3 4 5", "%lld %llu %ld %lu %zu", -1LL, 2ULL, 3L, 4UL, (size_t)5);
    formats_like("7 0a 1.50 x", "%d %02x %.2f %c", 7, 10, 1.5, 'x'); /* begins with what needs no printf */
    formats_like("  7|7  |+7", "%3d|%-3d|%+d", 7, 7, 7);
    formats_like("ab", "%.2s", "abc");
    formats_like("abc", "%.*s", -1, "abc");
    formats_like("(null)", "%s", nothing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffer_formats_like_printf),
        cmocka_unit_test(order_is_total),
        cmocka_unit_test(cut_is_join_reversed),
        cmocka_unit_test(trim),
        cmocka_unit_test(integers_round_trip),
        cmocka_unit_test(numbers_are_taken_off),
        cmocka_unit_test(utf8_is_exact),
        cmocka_unit_test(head_ends_with_a_character),
        cmocka_unit_test(escapes_of_proc_are_undone),
        cmocka_unit_test(buffer_is_a_string),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
