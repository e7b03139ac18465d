#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "doc/random_doc.h"

static void absent_is_harmless(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct doc *object = doc_new(&arena, DOC_OBJECT), *list = doc_new(&arena, DOC_ARRAY);
    doc_set(&arena, object, STR("list"), list);
    doc_push(&arena, list, doc_new_int(&arena, 7));
    assert_null(doc_get(NULL, "a"));
    assert_null(doc_get(list, "a"));
    assert_null(doc_at(object, 0));
    assert_null(doc_at(list, 1));
    assert_null(doc_path(object, "a", "b", NULL));
    assert_ptr_equal(doc_path(object, NULL), object);
    assert_ptr_equal(doc_path(object, "list", NULL), list);
    assert_int_equal(doc_len(NULL) + doc_len(doc_at(list, 0)), 0);
    assert_int_equal(doc_int(doc_at(list, 0), 1), 7);
    assert_int_equal(doc_int(list, 1), 1);
    assert_true(doc_bool(NULL, true));
    assert_true(str_is(doc_str(list, STR("x")), "x"));
    assert_null(doc_need_object(&arena, object, "list"));
    struct doc *made = doc_need_object(&arena, object, "made");
    assert_ptr_equal(doc_get(object, "made"), made);
    assert_ptr_equal(doc_need_object(&arena, object, "made"), made);
    struct doc *null = doc_new(&arena, DOC_NULL);
    doc_set(&arena, made, STR("null"), null);
    assert_ptr_equal(doc_need_object(&arena, made, "null"), null);
    assert_int_equal(null->kind, DOC_OBJECT);
    assert_string_equal(doc_kind_name(DOC_INT), "integer");
}

/* An object against an array indexed by the key, which also keeps the order of appearance. */
static void objects_are_ordered_maps(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct rng rng;
    rng_seed(&rng, 11);
    struct doc *object = doc_new(&arena, DOC_OBJECT), *model[30] = {0};
    int order[30], len = 0;
    for (int round = 0; round < 5000; round++) {
        int key = (int)rng_below(&rng, 30);
        char name[8];
        snprintf(name, sizeof name, "k%d", key);
        int at = 0;
        while (at < len && order[at] != key)
            at++;
        if (rng_chance(&rng, 500000)) {
            model[key] = doc_new_int(&arena, round);
            doc_set(&arena, object, str_from(name), model[key]);
            if (at == len)
                order[len++] = key;
        } else {
            assert_int_equal(doc_unset(object, name), at < len);
            if (at < len)
                memmove(order + at, order + at + 1, (size_t)(--len - at) * sizeof *order);
            model[key] = NULL;
        }
        assert_int_equal(doc_len(object), len);
        assert_ptr_equal(doc_get(object, name), model[key]);
        for (int i = 0; i < len; i++)
            assert_ptr_equal(object->object.members[i].value, model[order[i]]);
    }
}

static struct doc *shuffled(struct arena *arena, struct rng *rng, const struct doc *node)
{
    struct doc *copy = doc_clone(arena, node);
    if (copy->kind == DOC_OBJECT) {
        for (size_t i = copy->object.len; i > 1; i--) {
            size_t other = rng_below(rng, i);
            struct doc_member member = copy->object.members[i - 1];
            copy->object.members[i - 1] = copy->object.members[other];
            copy->object.members[other] = member;
        }
    }
    return copy;
}

/* Changes one leaf somewhere; false where there is none. */
static bool change(struct arena *arena, struct rng *rng, struct doc *node)
{
    if (doc_len(node)) {
        size_t at = rng_below(rng, doc_len(node));
        return change(arena, rng,
                      node->kind == DOC_ARRAY ? node->array.items[at] : node->object.members[at].value);
    }
    *node = *doc_new_str(arena, STR("changed!"));
    return true;
}

static void equality_is_content(void **state)
{
    struct rng rng;
    rng_seed(&rng, 12);
    for (int round = 0; round < 2000; round++) {
        struct arena arena = {0};
        struct doc *doc = random_doc(&arena, &rng, 4), *other = shuffled(&arena, &rng, doc);
        assert_true(doc_equal(doc, other) && doc_equal(other, doc));
        change(&arena, &rng, other);
        assert_false(doc_equal(doc, other) || doc_equal(other, doc));
        assert_false(doc_equal(doc, NULL));
        arena_done(&arena);
    }
    assert_true(doc_equal(NULL, NULL));
}

/* Duplicates are found whatever the size, and it is the first second one that is named. */
static void duplicates(void **state)
{
    struct rng rng;
    rng_seed(&rng, 13);
    for (int round = 0; round < 3000; round++) {
        struct arena arena = {0};
        struct doc *object = doc_new(&arena, DOC_OBJECT), *value = doc_new(&arena, DOC_NULL);
        size_t len = rng_below(&rng, 40), keys = len * len / 2 + 1, expect_second = 0, expect_first = 0;
        for (size_t i = 0; i < len; i++) {
            struct doc_member member = {.key = arena_printf(&arena, "%d", (int)rng_below(&rng, keys)),
                                        .value = value};
            for (size_t k = 0; k < i && !expect_second; k++) {
                if (str_equal(object->object.members[k].key, member.key)) {
                    expect_second = i;
                    expect_first = k;
                }
            }
            assert_true(doc_try_add(&arena, object, member));
        }
        const struct doc_member *second = NULL, *first = NULL;
        assert_int_equal(doc_duplicate(object, &second, &first), expect_second != 0);
        if (expect_second) {
            assert_int_equal(second - object->object.members, expect_second);
            assert_int_equal(first - object->object.members, expect_first);
        }
        arena_done(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_is_harmless),
        cmocka_unit_test(objects_are_ordered_maps),
        cmocka_unit_test(equality_is_content),
        cmocka_unit_test(duplicates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
