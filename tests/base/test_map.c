#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/rng.h"

enum { KEYS = 400, ROUNDS = 200000 };

/* Both maps against arrays indexed by the key; small key sets, so that every slot is taken and freed often.
 */
static void maps_are_arrays(void **state)
{
    static char names[KEYS][8];
    static int values[2];
    void *model[KEYS] = {0};
    struct str_map strings = {0};
    struct u64_map numbers = {0};
    struct rng rng;
    rng_seed(&rng, 7);
    size_t len = 0;
    for (int i = 0; i < KEYS; i++)
        snprintf(names[i], sizeof names[i], "k%d", i);
    for (int round = 0; round < ROUNDS; round++) {
        /* Long stretches of mostly growing and mostly shrinking. */
        bool put = rng_chance(&rng, round / 5000 % 2 ? 300000 : 700000);
        size_t key = rng_below(&rng, KEYS);
        uint64_t number = key * 0x100000000; /* low bits equal: the mixer must do its part */
        struct str name = str_from(names[key]);
        void *value = &values[rng_below(&rng, 2)];
        assert_ptr_equal(str_map_get(&strings, name), model[key]);
        assert_ptr_equal(u64_map_get(&numbers, number), model[key]);
        if (put) {
            assert_ptr_equal(str_map_put(&strings, name, value), model[key]);
            assert_ptr_equal(u64_map_put(&numbers, number, value), model[key]);
            len += !model[key];
            model[key] = value;
        } else {
            assert_ptr_equal(str_map_remove(&strings, name), model[key]);
            assert_ptr_equal(u64_map_remove(&numbers, number), model[key]);
            len -= !!model[key];
            model[key] = NULL;
        }
        assert_int_equal(strings.len, len);
        assert_int_equal(numbers.len, len);
    }
    for (int i = 0; i < KEYS; i++)
        assert_ptr_equal(str_map_get(&strings, str_from(names[i])), model[i]);
    str_map_done(&strings);
    u64_map_done(&numbers);
    assert_null(str_map_get(&strings, STR("k1")));
    assert_null(u64_map_remove(&numbers, 1));
}

struct item {
    struct heap_node node;
    struct list_node link;
};

static void heap_is_sorted(void **state)
{
    static struct item items[300];
    struct heap heap = {0};
    struct rng rng;
    rng_seed(&rng, 8);
    size_t len = 0;
    for (int round = 0; round < 30000; round++) {
        struct item *item = &items[rng_below(&rng, 300)];
        if (heap_has(&item->node)) {
            heap_remove(&heap, &item->node);
            len--;
        } else {
            item->node.key = rng_range(&rng, -20, 20);
            item->node.tie = (uint64_t)(item - items);
            heap_insert(&heap, &item->node);
            len++;
        }
        assert_int_equal(heap.len, len);
        struct heap_node *min = heap_min(&heap);
        assert_int_equal(min == NULL, len == 0);
        if (round % 100)
            continue;
        for (size_t i = 0; i < 300; i++) {
            const struct heap_node *node = &items[i].node;
            if (heap_has(node))
                assert_true(min->key < node->key || (min->key == node->key && min->tie <= node->tie));
        }
    }
    struct heap_node *node, *before = NULL;
    for (; (node = heap_min(&heap)); before = node) {
        heap_remove(&heap, node);
        assert_false(heap_has(node));
        if (before)
            assert_true(before->key < node->key || (before->key == node->key && before->tie < node->tie));
    }
    heap_insert(&heap, &items[0].node);
    heap_done(&heap);
    assert_false(heap_has(&items[0].node));
}

static void lists_keep_order(void **state)
{
    struct item items[5];
    struct list_node head;
    list_init(&head);
    assert_true(list_empty(&head));
    for (int i = 0; i < 5; i++)
        list_append(&head, &items[i].link);
    list_remove(&items[2].link);
    list_remove(&items[2].link);
    int expect[] = {0, 1, 3, 4}, at = 0;
    list_for_each(node, &head) assert_ptr_equal(container_of(node, struct item, link), &items[expect[at++]]);
    assert_int_equal(at, 4);
    list_for_each_safe(node, after, &head) list_remove(node);
    assert_true(list_empty(&head));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_are_arrays),
        cmocka_unit_test(heap_is_sorted),
        cmocka_unit_test(lists_keep_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
