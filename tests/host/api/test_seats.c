/* Seats: few at once, few of one user, taken in turn. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>

#include "host/api/seats.h"

enum { ANN = 11, BOB = 22, COY = 33, DAN = 44 };

static void a_user_has_some_of_the_seats(void **state)
{
    (void)state;
    struct seats seats;
    struct seat_ticket ann[3] = {0}, bob[2] = {0};
    seats_init(&seats);
    assert_int_equal(seats_ask(&seats, ANN, SEATS_OF_A_USER, &ann[0]), SEAT_TAKEN);
    assert_int_equal(seats_ask(&seats, ANN, SEATS_OF_A_USER, &ann[1]), SEAT_TAKEN);
    assert_int_equal(seats_ask(&seats, ANN, SEATS_OF_A_USER, &ann[2]), SEAT_WAITS);
    assert_int_equal(seats_ask(&seats, BOB, SEATS_WITHOUT_ROLE, &bob[0]), SEAT_TAKEN);
    assert_int_equal(seats_ask(&seats, BOB, SEATS_WITHOUT_ROLE, &bob[1]), SEAT_WAITS);
    assert_int_equal(seats.taken, SEATS);
    assert_ptr_equal(seats_leave(&seats, &ann[0]), &ann[2]);
    assert_ptr_equal(seats_leave(&seats, &bob[0]), &bob[1]);
    assert_null(seats_leave(&seats, &bob[1]));
    assert_null(seats_leave(&seats, &ann[1]));
    assert_null(seats_leave(&seats, &ann[2]));
    assert_true(list_empty(&seats.users) && seats.taken == 0 && seats.waiting == 0);
}

/* One who waits sixteen times delays others by one piece of work. */
static void seats_go_round(void **state)
{
    (void)state;
    struct seats seats;
    struct seat_ticket ann[2 + SEATS_WAITING_MAX] = {0}, coy = {0}, bob = {0}, dan = {0};
    seats_init(&seats);
    for (size_t i = 0; i < sizeof ann / sizeof *ann; i++)
        assert_int_equal(seats_ask(&seats, ANN, SEATS_OF_A_USER, &ann[i]), i < 2 ? SEAT_TAKEN : SEAT_WAITS);
    assert_int_equal(seats_ask(&seats, BOB, SEATS_OF_A_USER, &bob), SEAT_TAKEN);
    assert_int_equal(seats_ask(&seats, COY, SEATS_OF_A_USER, &coy), SEAT_WAITS);
    assert_int_equal(seats_ask(&seats, DAN, SEATS_OF_A_USER, &dan), SEAT_WAITS);
    assert_ptr_equal(seats_leave(&seats, &ann[0]), &ann[2]);
    assert_ptr_equal(seats_leave(&seats, &ann[1]), &coy);
    assert_ptr_equal(seats_leave(&seats, &bob), &dan);
    assert_ptr_equal(seats_leave(&seats, &coy), &ann[3]);
    assert_null(seats_leave(&seats, &dan)); /* only ANN waits, who has two */
    struct seat_ticket *next = &ann[2];
    for (int left = 2 + SEATS_WAITING_MAX - 4; left > 0; left--) {
        struct seat_ticket *other = seats_leave(&seats, next);
        assert_non_null(other);
        next = other;
    }
    assert_int_equal(seats.waiting, 0);
    assert_null(seats_leave(&seats, next));
    assert_int_equal(seats.taken, 1);
}

static void queues_are_bounded(void **state)
{
    (void)state;
    static struct seat_ticket tickets[SEATS_ALL_WAITING_MAX + 2 * SEATS_WAITING_MAX];
    struct seats seats;
    struct seat_ticket extra = {0};
    uint32_t user = 0, count = 0;
    seats_init(&seats);
    for (bool full = false; !full; user++)
        for (int i = 0; i < SEATS_OF_A_USER + SEATS_WAITING_MAX && !full; i++) {
            enum seat seat = seats_ask(&seats, user, SEATS_OF_A_USER, &tickets[count]);
            full = seat == SEAT_REFUSED && seats.waiting == SEATS_ALL_WAITING_MAX;
            if (seat == SEAT_REFUSED && !full)
                assert_true(i >= SEATS_WAITING_MAX); /* this user's own queue is full */
            count += seat != SEAT_REFUSED;
        }
    assert_int_equal(count, SEATS + SEATS_ALL_WAITING_MAX);
    assert_int_equal(seats_ask(&seats, UINT64_MAX, 1, &extra), SEAT_REFUSED);
    assert_null(extra.user);
    for (uint32_t i = 0; i < count; i++)
        if (tickets[i].node.next != &tickets[i].node) /* it waits */
            seats_drop(&seats, &tickets[i]);
    assert_int_equal(seats.waiting, 0);
    for (uint32_t i = 0; i < count; i++)
        if (tickets[i].user)
            assert_null(seats_leave(&seats, &tickets[i]));
    assert_true(list_empty(&seats.users) && seats.taken == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_has_some_of_the_seats),
        cmocka_unit_test(seats_go_round),
        cmocka_unit_test(queues_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
