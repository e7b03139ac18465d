/* The book of receipts against a plain model: what it finds, what it forgets, and since when it is whole. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/rng.h"
#include "core/receipt/receipt.h"

static struct receipt receipt_of(char bytes[REQUEST_ID_BYTES], uint64_t number, int64_t stamp_ns)
{
    memset(bytes, 7, REQUEST_ID_BYTES);
    uint64_t tag = number + 1000; /* all first halves differ, as those of sums do */
    memcpy(bytes, &tag, sizeof tag);
    return (struct receipt){.id = {bytes, REQUEST_ID_BYTES},
                            .content = number * 3,
                            .stamp_ns = stamp_ns,
                            .code = 201,
                            .object = number + 1,
                            .name = STR("train")};
}

static const struct receipt *find(const struct receipts *receipts, uint64_t number)
{
    char bytes[REQUEST_ID_BYTES];
    return receipts_find(receipts, receipt_of(bytes, number, 0).id);
}

static void a_receipt_is_found_as_it_was(void **state)
{
    struct receipts *receipts = receipts_new();
    char bytes[REQUEST_ID_BYTES];
    assert_true(receipts_since(receipts) == INT64_MAX);
    assert_null(find(receipts, 5));
    receipts_begin(receipts, 100);
    receipts_begin(receipts, 200);
    assert_int_equal(receipts_since(receipts), 100);
    struct receipt one = receipt_of(bytes, 5, 300);
    receipts_add(receipts, &one);
    memset(bytes, 0, sizeof bytes); /* the book has its own copy */
    const struct receipt *found = find(receipts, 5);
    assert_non_null(found);
    assert_true(found->content == 15 && found->code == 201 && found->object == 6 &&
                str_is(found->name, "train"));
    assert_int_equal(found->name.data[found->name.len], 0);
    receipts_check(receipts);
    receipts_free(receipts);
}

/* A model: receipts in order; those too old or too many are forgotten, the oldest first. */
static void old_ones_make_room(void **state)
{
    struct receipts *receipts = receipts_new();
    struct rng rng;
    char bytes[REQUEST_ID_BYTES];
    static int64_t stamps[3 * RECEIPTS_MAX];
    uint64_t count = 0, first = 0;
    int64_t now_ns = 1, since_ns = 1;
    rng_seed(&rng, 1);
    receipts_begin(receipts, now_ns);
    while (count < sizeof stamps / sizeof *stamps) {
        now_ns += (int64_t)rng_below(&rng, count < 2 * RECEIPTS_MAX ? 3 : 2 * RECEIPT_AGE_NS / RECEIPTS_MAX);
        if (rng_below(&rng, 50000) == 0)
            now_ns += RECEIPT_AGE_NS / 2;
        struct receipt one = receipt_of(bytes, count, now_ns);
        stamps[count++] = now_ns;
        receipts_add(receipts, &one);
        while (count - first > RECEIPTS_MAX || now_ns - stamps[first] > RECEIPT_AGE_NS)
            since_ns = stamps[first++];
        assert_true(receipts_count(receipts) == count - first && receipts_since(receipts) == since_ns);
        uint64_t number = rng_below(&rng, count);
        assert_int_equal(find(receipts, number) != NULL, number >= first);
    }
    assert_true(first > RECEIPTS_MAX);
    receipts_check(receipts);
    receipts_free(receipts);
}

static void a_snapshot_is_read_with_care(void **state)
{
    struct receipts *receipts = receipts_new();
    char bytes[REQUEST_ID_BYTES];
    struct receipt one = receipt_of(bytes, 5, 300);
    assert_false(receipts_restore(receipts, 1000, &one)); /* not begun */
    assert_false(receipts_restore_since(receipts, 1000, -1));
    assert_false(receipts_restore_since(receipts, 1000, 1001));
    assert_true(receipts_restore_since(receipts, 1000, INT64_MAX));
    assert_true(receipts_restore_since(receipts, 1000, 200));
    assert_true(receipts_restore(receipts, 1000, &one));
    assert_false(receipts_restore(receipts, 1000, &one)); /* twice */
    assert_false(receipts_restore_since(receipts, 1000, 200));
    const struct receipt bad[] = {
        {.id = {bytes, REQUEST_ID_BYTES - 1}, .stamp_ns = 400, .code = 200},
        {.id = {bytes, REQUEST_ID_BYTES}, .stamp_ns = 400, .code = 199},
        {.id = {bytes, REQUEST_ID_BYTES}, .stamp_ns = 400, .code = 300},
        {.id = {bytes, REQUEST_ID_BYTES}, .stamp_ns = 299, .code = 200},
        {.id = {bytes, REQUEST_ID_BYTES}, .stamp_ns = 1001, .code = 200},
    };
    receipt_of(bytes, 6, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(receipts_restore(receipts, 1000, &bad[i]));
    assert_non_null(find(receipts, 5));
    assert_null(find(receipts, 6));
    assert_int_equal(receipts_count(receipts), 1);
    assert_null(receipts_next(receipts, receipts_next(receipts, NULL)));
    receipts_free(receipts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_receipt_is_found_as_it_was),
        cmocka_unit_test(old_ones_make_room),
        cmocka_unit_test(a_snapshot_is_read_with_care),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
