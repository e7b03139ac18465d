/* Solved patterns as bytes: they give the same tables again, and damaged or foreign bytes are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/crc32c.h"
#include "base/rng.h"
#include "core/fabric/pattern.h"

static struct torus torus_from(const char *text)
{
    struct slice_shape shape;
    struct torus torus;
    assert_int_equal(slice_shape_parse(str_from(text), &shape, NULL), 0);
    torus_init(&torus, &shape);
    return torus;
}

static struct buf packed(const struct torus *torus, struct route *ret_route)
{
    struct buf bytes = {0};
    assert_int_equal(route_build(torus, ret_route, NULL), 0);
    pattern_pack(torus, ret_route, &bytes);
    return bytes;
}

static void check_again(struct torus *torus)
{
    struct route route, again;
    struct proof proof;
    struct error error = {0};
    struct buf bytes = packed(torus, &route);
    if (pattern_routes(buf_str(&bytes), torus, &again, &proof, NULL, &error) < 0)
        fail_msg("%s", error.text);
    size_t size = (size_t)route.chips * route.chips;
    assert_memory_equal(again.transit, route.transit, size);
    assert_int_equal(again.inject != NULL, route.inject != NULL);
    if (route.inject)
        assert_memory_equal(again.inject, route.inject, size);
    route_done(&route);
    route_done(&again);
    buf_done(&bytes);
    torus_done(torus);
}

static void test_the_same_tables_come_back(void **state)
{
    static const char *const shapes[] = {"2x2x4", "4x4x4", "4x4x8", "4x8x8-twisted", "8x8x8"};
    struct rng rng;
    rng_seed(&rng, 7);
    for (uint32_t run = 0; run < 30; run++) {
        struct torus torus = torus_from(shapes[run % 5]);
        for (uint32_t dead = run / 5; dead > 0 && run % 2; dead--)
            torus_kill_switch(&torus, pod_switch_at((uint32_t)rng_below(&rng, POD_SWITCHES)));
        for (uint32_t dead = run; dead > 0 && run % 2 == 0 && run % 5; dead--)
            torus_kill_link(&torus, (uint16_t)rng_below(&rng, torus.chips),
                            (uint32_t)rng_below(&rng, CHIP_PORTS));
        check_again(&torus);
    }
}

static void test_keys_name_the_pattern(void **state)
{
    char whole[PATTERN_KEY_MAX], cut[PATTERN_KEY_MAX], other[PATTERN_KEY_MAX];
    struct torus torus = torus_from("4x4x8-twisted");
    pattern_key(&torus, whole);
    torus_kill_switch(&torus, (struct pod_switch){0, 5});
    pattern_key(&torus, cut);
    torus_kill_link(&torus, 3, PORT_Y_PLUS);
    pattern_key(&torus, other);
    assert_int_equal(strlen(whole), strlen("4x4x8-twisted-") + 16);
    assert_memory_equal(whole, "4x4x8-twisted-", 14);
    assert_string_not_equal(whole, cut);
    assert_string_not_equal(cut, other);
    torus_done(&torus);
}

/* The switches of an axis share one pattern: what was solved for one serves all. */
static void test_an_axis_shares_its_pattern(void **state)
{
    struct torus torus = torus_from("4x8x8-twisted"), other = torus_from("4x8x8-twisted");
    struct route route, again, built;
    struct proof proof;
    char key[PATTERN_KEY_MAX], other_key[PATTERN_KEY_MAX];
    torus_kill_switch(&torus, (struct pod_switch){2, 5});
    torus_kill_switch(&other, (struct pod_switch){2, 14});
    pattern_key(&torus, key);
    pattern_key(&other, other_key);
    assert_string_equal(key, other_key);
    struct buf bytes = packed(&torus, &route);
    assert_int_equal(pattern_routes(buf_str(&bytes), &other, &again, &proof, NULL, NULL), 0);
    assert_int_equal(route_build(&other, &built, NULL), 0);
    assert_memory_equal(again.inject, built.inject, (size_t)other.chips * other.chips);
    assert_memory_equal(again.transit, built.transit, (size_t)other.chips * other.chips);
    buf_done(&bytes);
    route_done(&route);
    route_done(&again);
    route_done(&built);
    torus_done(&torus);
    torus_done(&other);
}

static void sum(struct buf *bytes)
{
    uint32_t crc = crc32c(0, bytes->data + 16, bytes->len - 16);
    for (int i = 0; i < 4; i++)
        bytes->data[12 + i] = (char)(crc >> 8 * i);
}

static void check_refused(struct str bytes, const struct torus *torus, int code, const char *message)
{
    struct route route = {.chips = 9};
    struct proof proof;
    struct error error = {0};
    assert_int_equal(pattern_routes(bytes, torus, &route, &proof, NULL, &error), code);
    if (!strstr(error.text, message))
        fail_msg("%s", error.text);
    assert_int_equal(route.chips, 9); /* untouched */
}

static void test_other_patterns_are_refused(void **state)
{
    struct torus torus = torus_from("4x4x8"), other = torus_from("4x4x8"), longer = torus_from("4x8x4");
    struct route route;
    torus_kill_switch(&torus, (struct pod_switch){2, 5});
    torus_kill_switch(&other, (struct pod_switch){1, 5});
    struct buf bytes = packed(&torus, &route);
    check_refused(buf_str(&bytes), &other, ERROR_NOT_FOUND, "of another shape or other dead links");
    check_refused(buf_str(&bytes), &longer, ERROR_NOT_FOUND, "of another shape or other dead links");
    torus_kill_link(&torus, 9, PORT_X_PLUS); /* the pattern does not repeat any more */
    check_refused(buf_str(&bytes), &torus, ERROR_NOT_FOUND, "of another shape or other dead links");
    buf_done(&bytes);
    route_done(&route);
    torus_done(&torus);
    torus_done(&other);
    torus_done(&longer);
}

static void test_damage_is_noticed(void **state)
{
    struct torus torus = torus_from("4x4x8");
    struct route route;
    torus_kill_switch(&torus, (struct pod_switch){2, 5});
    struct buf bytes = packed(&torus, &route);
    for (size_t len = 0; len < bytes.len; len += 1 + len / 8)
        check_refused((struct str){bytes.data, len}, &torus, ERROR_CORRUPT, "route pattern");
    for (size_t at = 0; at < bytes.len; at += 1 + at / 16) {
        bytes.data[at] ^= 0x10;
        check_refused(buf_str(&bytes), &torus, ERROR_CORRUPT, "route pattern");
        bytes.data[at] ^= 0x10;
    }
    /* Damage with a right checksum: no port, a dead link, nothing at all, a byte too many. */
    char *hop = &bytes.data[24 + 64 + 1], kept = *hop;
    *hop = 9;
    sum(&bytes);
    check_refused(buf_str(&bytes), &torus, ERROR_CORRUPT, "is 9: expected a port, 254 or 255");
    *hop = (char)ROUTE_SELF;
    sum(&bytes);
    check_refused(buf_str(&bytes), &torus, ERROR_CORRUPT, "no entry");
    *hop = kept;
    uint32_t beside_dead = 0;
    struct torus canonical;
    route_canonical(&torus, &canonical);
    while (torus_link_live(&canonical, beside_dead, PORT_Z_PLUS))
        beside_dead++;
    torus_done(&canonical);
    bytes.data[24 + 64 + beside_dead] = PORT_Z_PLUS;
    sum(&bytes);
    check_refused(buf_str(&bytes), &torus, ERROR_CORRUPT, "a port without a live link");
    buf_add_char(&bytes, 0);
    sum(&bytes);
    check_refused(buf_str(&bytes), &torus, ERROR_CORRUPT, "bytes, expected");
    buf_done(&bytes);
    route_done(&route);
    torus_done(&torus);
}

/* Any hops at all with a right checksum: tables with a proof, or a refusal. */
static void test_random_hops_are_proved_or_refused(void **state)
{
    struct torus torus = torus_from("4x4x4");
    struct route route;
    struct rng rng;
    rng_seed(&rng, 3);
    torus_kill_switch(&torus, (struct pod_switch){1, 5});
    struct buf bytes = packed(&torus, &route);
    route_done(&route);
    for (int run = 0; run < 300; run++) {
        struct proof proof;
        for (uint64_t changes = 1 + rng_below(&rng, 5); changes > 0; changes--)
            bytes.data[24 + 64 + rng_below(&rng, 64 * 64)] = (char)rng_below(&rng, CHIP_PORTS);
        sum(&bytes);
        int status = pattern_routes(buf_str(&bytes), &torus, &route, &proof, NULL, NULL);
        assert_true(status == ERROR_CORRUPT || (status == 0 && proof.pairs == 64 * 63));
        if (status == 0)
            route_done(&route);
    }
    buf_done(&bytes);
    torus_done(&torus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_tables_come_back),
        cmocka_unit_test(test_keys_name_the_pattern),
        cmocka_unit_test(test_an_axis_shares_its_pattern),
        cmocka_unit_test(test_other_patterns_are_refused),
        cmocka_unit_test(test_damage_is_noticed),
        cmocka_unit_test(test_random_hops_are_proved_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
