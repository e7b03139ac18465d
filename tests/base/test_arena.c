#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/rng.h"
#include "base/vec.h"

/* Every piece is aligned, zeroed, and overlaps no other. */
static void pieces_are_apart(void **state)
{
    struct rng rng;
    rng_seed(&rng, 5);
    struct arena ARENA_CLEANUP arena = {0};
    for (int life = 0; life < 2; life++) {
        struct {
            unsigned char *data;
            size_t len;
        } pieces[2000];
        for (size_t i = 0; i < 2000; i++) {
            size_t len = rng_chance(&rng, 20000) ? rng_below(&rng, 300000) : rng_below(&rng, 200);
            unsigned char *data = arena_alloc(&arena, len);
            assert_non_null(data);
            assert_int_equal((uintptr_t)data % 16, 0);
            for (size_t k = 0; k < len; k++)
                assert_int_equal(data[k], 0);
            memset(data, (int)(i % 251) + 1, len);
            pieces[i].data = data;
            pieces[i].len = len;
        }
        for (size_t i = 0; i < 2000; i++) {
            for (size_t k = 0; k < pieces[i].len; k++)
                assert_int_equal(pieces[i].data[k], i % 251 + 1);
        }
        arena_done(&arena);
        assert_int_equal(arena.used_bytes, 0);
    }
}

static void limit_holds(void **state)
{
    struct arena ARENA_CLEANUP arena = {.limit_bytes = 10000};
    size_t count = 0;
    while (arena_try_alloc(&arena, 100))
        count++;
    assert_true(arena.used_bytes <= 10000 && arena.used_bytes > 10000 - 112);
    assert_true(count > 80);
    assert_null(arena_try_alloc(&arena, SIZE_MAX / 4));
    assert_non_null(arena_alloc(&arena, 100)); /* what our own code needs is not refused */
    assert_null(arena_try_alloc(&arena, 0));
}

static void strings(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct str copy = arena_str(&arena, STR("abc"));
    assert_true(str_is(copy, "abc") && copy.data[3] == 0);
    assert_string_equal(arena_strdup(&arena, (struct str){0}), "");
    assert_true(str_is(arena_printf(&arena, "%d-%s", 5, "x"), "5-x"));
    struct str joined = ARENA_CONCAT(&arena, STR("a"), STR("-"), (struct str){0}, STR("bc"));
    assert_string_equal(joined.data, "a-bc");
    assert_int_equal(joined.len, 4);
    struct str wide = arena_printf(&arena, "%0700d", 1);
    assert_int_equal(wide.len, 700);
    assert_int_equal(strlen(wide.data), 700);
}

/* Memory of a cleared arena is zero-filled, whatever it held before. */
static void cleared_arena_is_as_fresh(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    arena_clear(&arena);
    for (int round = 0; round < 50; round++) {
        for (size_t size = 1; size < (size_t)20 << round % 12; size = size * 3 / 2 + 1) {
            unsigned char *piece = arena_alloc(&arena, size);
            for (size_t i = 0; i < size; i++)
                assert_int_equal(piece[i], 0);
            memset(piece, 0xab, size);
        }
        arena_clear(&arena);
        assert_int_equal(arena.used_bytes, 0);
    }
}

static void vectors_keep_order(void **state)
{
    struct rng rng;
    rng_seed(&rng, 6);
    VEC(int) vec = {0};
    for (int i = 0; i < 1000; i++)
        vec_push(&vec, i);
    while (vec.len > 10) {
        size_t at = rng_below(&rng, vec.len), len = vec.len;
        int gone = vec.items[at];
        vec_remove(&vec, at);
        assert_int_equal(vec.len, len - 1);
        for (size_t i = 0; i < vec.len; i++) {
            assert_int_not_equal(vec.items[i], gone);
            assert_true(i == 0 || vec.items[i] > vec.items[i - 1]);
        }
        if (vec.len > 300)
            vec.len -= 100;
    }
    int last = vec_last(&vec);
    assert_int_equal(vec_pop(&vec), last);
    vec_clear(&vec);
    assert_int_equal(vec.len, 0);
    vec_done(&vec);
    assert_null(vec.items);
}

/* A reserved arena calls the heap once for all of it, and grows beyond it with zeroed memory. */
static void reserved(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    arena_reserve(&arena, 1000);
    unsigned char *first = arena_alloc(&arena, 496), *second = arena_alloc(&arena, 496);
    assert_true(second == first + 496);
    memset(first, 1, 992);
    unsigned char *third = arena_alloc(&arena, 4096);
    for (size_t i = 0; i < 4096; i++)
        assert_int_equal(third[i], 0);
    assert_int_equal(arena.used_bytes, 2 * 496 + 4096);
    arena_done(&arena);
    arena_reserve(&arena, 1);
    assert_non_null(arena_alloc(&arena, 16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_apart),
        cmocka_unit_test(reserved),
        cmocka_unit_test(limit_holds),
        cmocka_unit_test(strings),
        cmocka_unit_test(cleared_arena_is_as_fresh),
        cmocka_unit_test(vectors_keep_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
