/* Source addresses and their places: one host has one place, whatever its port and however it is written. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>

#include "net/crowd.h"

static uint32_t place_of(const struct crowd *crowd, const char *text, uint16_t port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return crowd_place(crowd, (const struct sockaddr *)&v4);
    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return crowd_place(crowd, (const struct sockaddr *)&v6);
}

static void test_one_host_has_one_place(void **state)
{
    struct crowd crowd = {.seed = 4711}, other = {.seed = 4712};
    uint32_t place = place_of(&crowd, "10.0.0.1", 1);
    assert_true(place < CROWD_PLACES);
    assert_int_equal(place_of(&crowd, "10.0.0.1", 60000), place);
    assert_int_equal(place_of(&crowd, "::ffff:10.0.0.1", 2), place);
    assert_int_not_equal(place_of(&crowd, "10.0.0.2", 1), place);
    assert_int_not_equal(place_of(&other, "10.0.0.1", 1), place);
    assert_int_equal(place_of(&crowd, "2001:db8::1", 1), place_of(&crowd, "2001:db8::2:3:4:5", 1));
    assert_int_not_equal(place_of(&crowd, "2001:db8::1", 1), place_of(&crowd, "2001:db8:0:1::1", 1));
}

static void test_a_place_has_a_limit(void **state)
{
    static struct crowd crowd;
    assert_true(crowd_enter(&crowd, 7, 3, 5));
    assert_false(crowd_enter(&crowd, 7, 3, 5));
    assert_true(crowd_enter(&crowd, 7, 2, 5));
    assert_true(crowd_enter(&crowd, 8, 1, 1));
    crowd_leave(&crowd, 7, 3);
    assert_true(crowd_enter(&crowd, 7, 3, 5));
    assert_int_equal(crowd.counts[7], 5);
    assert_false(crowd_enter(&crowd, 7, UINT16_MAX, UINT32_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_host_has_one_place),
                                       cmocka_unit_test(test_a_place_has_a_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
