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
    seats_init(&seats, &seats_of_pool);
    assert_int_equal(seats_ask(&seats, ANN, SEAT_OF_ROLE, 1, &ann[0]), SEAT_TAKEN);
    assert_int_equal(seats_ask(&seats, ANN, SEAT_OF_ROLE, 1, &ann[1]), SEAT_TAKEN);
    assert_int_equal(seats_ask(&seats, ANN, SEAT_OF_ROLE, 1, &ann[2]), SEAT_WAITS);
    assert_int_equal(seats_ask(&seats, BOB, SEAT_OF_ANYBODY, 1, &bob[0]), SEAT_TAKEN);
    assert_int_equal(seats_ask(&seats, BOB, SEAT_OF_ANYBODY, 1, &bob[1]), SEAT_WAITS);
    assert_int_equal(seats.taken, SEATS);
    assert_ptr_equal(seats_leave(&seats, &ann[0]), &ann[2]);
    assert_ptr_equal(seats_leave(&seats, &bob[0]), &bob[1]);
    assert_null(seats_leave(&seats, &bob[1]));
    assert_null(seats_leave(&seats, &ann[1]));
    assert_null(seats_leave(&seats, &ann[2]));
    assert_true(list_empty(&seats.users) && seats.taken == 0 && seats.waiting == 0);
}

/* A user who waits sixteen times delays others by one piece of work. */
static void seats_go_round(void **state)
{
    (void)state;
    struct seats seats;
    struct seat_ticket ann[2 + SEATS_WAITING_MAX] = {0}, coy = {0}, bob = {0}, dan = {0};
    seats_init(&seats, &seats_of_pool);
    for (size_t i = 0; i < sizeof ann / sizeof *ann; i++)
        assert_int_equal(seats_ask(&seats, ANN, SEAT_OF_ROLE, 1, &ann[i]), i < 2 ? SEAT_TAKEN : SEAT_WAITS);
    assert_int_equal(seats_ask(&seats, BOB, SEAT_OF_ROLE, 1, &bob), SEAT_TAKEN);
    assert_int_equal(seats_ask(&seats, COY, SEAT_OF_ROLE, 1, &coy), SEAT_WAITS);
    assert_int_equal(seats_ask(&seats, DAN, SEAT_OF_ROLE, 1, &dan), SEAT_WAITS);
    assert_ptr_equal(seats_leave(&seats, &ann[0]), &coy); /* ANN has been served before */
    assert_ptr_equal(seats_leave(&seats, &ann[1]), &dan);
    assert_ptr_equal(seats_leave(&seats, &bob), &ann[2]);
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
    assert_null(seats_leave(&seats, &ann[3])); /* the last one */
    assert_true(list_empty(&seats.users) && seats.taken == 0);
}

static void queues_are_bounded(void **state)
{
    (void)state;
    static struct seat_ticket tickets[SEATS_ALL_WAITING_MAX + 2 * SEATS_WAITING_MAX];
    struct seats seats;
    struct seat_ticket extra = {0};
    uint32_t user = 0, count = 0;
    seats_init(&seats, &seats_of_pool);
    for (bool full = false; !full; user++)
        for (int i = 0; i < SEATS_OF_A_USER + SEATS_WAITING_MAX && !full; i++) {
            enum seat seat = seats_ask(&seats, user, SEAT_OF_ROLE, 1, &tickets[count]);
            full = seat == SEAT_REFUSED && seats.waiting == SEATS_ALL_WAITING_MAX;
            if (seat == SEAT_REFUSED && !full)
                assert_true(i >= SEATS_WAITING_MAX); /* this user's own queue is full */
            count += seat != SEAT_REFUSED;
        }
    assert_int_equal(count, SEATS + SEATS_ALL_WAITING_MAX);
    assert_int_equal(seats_ask(&seats, UINT64_MAX, SEAT_OF_ROLE, 1, &extra), SEAT_REFUSED);
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

/* Many users without a role are like one: the others keep the other seats, and most of the queue. */
static void those_without_a_role_share_a_seat(void **state)
{
    (void)state;
    static struct seat_ticket strangers[1 + SEATS_WITHOUT_ROLE_WAITING_MAX], more;
    struct seats seats;
    struct seat_ticket ann[3] = {0}, own = {0};
    seats_init(&seats, &seats_of_pool);
    for (uint32_t i = 0; i < 1 + SEATS_WITHOUT_ROLE_WAITING_MAX; i++)
        assert_int_equal(seats_ask(&seats, 1000 + i, SEAT_OF_ANYBODY, 1, &strangers[i]),
                         i < SEATS_WITHOUT_ROLE ? SEAT_TAKEN : SEAT_WAITS);
    assert_int_equal(seats_ask(&seats, 999, SEAT_OF_ANYBODY, 1, &more), SEAT_REFUSED);
    assert_int_equal(seats.taken, SEATS_WITHOUT_ROLE);
    assert_int_equal(seats_ask(&seats, ANN, SEAT_OF_ROLE, 1, &ann[0]), SEAT_TAKEN);
    assert_int_equal(seats_ask(&seats, ANN, SEAT_OF_ROLE, 1, &ann[1]), SEAT_TAKEN);
    assert_int_equal(seats_ask(&seats, ANN, SEAT_OF_ROLE, 1, &ann[2]), SEAT_WAITS);
    assert_ptr_equal(seats_leave(&seats, &strangers[0]), &strangers[1]);
    assert_ptr_equal(seats_leave(&seats, &ann[0]), &ann[2]);
    assert_int_equal(seats_ask(&seats, ANN, SEAT_OF_ANYBODY, 1, &own), SEAT_WAITS); /* a review of ANN's */
    assert_null(seats_leave(&seats, &ann[2]));
    assert_int_equal(seats_ask(&seats, ANN, SEAT_OF_ROLE, 1, &ann[0]),
                     SEAT_TAKEN); /* does not wait behind it */
    seats_drop(&seats, &own);
    assert_null(seats_leave(&seats, &ann[0]));
    assert_null(seats_leave(&seats, &ann[1]));
    for (uint32_t i = 1; i < SEATS_WITHOUT_ROLE_WAITING_MAX; i++)
        assert_ptr_equal(seats_leave(&seats, &strangers[i]), &strangers[i + 1]);
    assert_null(seats_leave(&seats, &strangers[SEATS_WITHOUT_ROLE_WAITING_MAX]));
    assert_true(list_empty(&seats.users) && seats.taken == 0 && seats.waiting == 0);
}

/* The loop has one seat; work that waits for it is counted in bytes. */
static void the_loop_is_one_seat(void **state)
{
    (void)state;
    struct seats seats;
    struct seat_ticket ann[3] = {0}, bob[2] = {0}, coy = {0}, dan = {0};
    const uint32_t half = SEATS_LOOP_WAITING_MAX / 2;
    seats_init(&seats, &seats_of_loop);
    assert_int_equal(seats_ask(&seats, ANN, SEAT_OF_ROLE, UINT32_MAX, &ann[0]), SEAT_TAKEN);
    assert_int_equal(seats_ask(&seats, ANN, SEAT_OF_ROLE, half, &ann[1]), SEAT_WAITS);
    assert_int_equal(seats_ask(&seats, ANN, SEAT_OF_ROLE, half + 1, &ann[2]), SEAT_REFUSED);
    assert_int_equal(seats_ask(&seats, ANN, SEAT_OF_ROLE, half, &ann[2]), SEAT_WAITS);
    assert_int_equal(seats_ask(&seats, BOB, SEAT_OF_ROLE, half, &bob[0]), SEAT_WAITS);
    assert_int_equal(seats_ask(&seats, BOB, SEAT_OF_ROLE, half, &bob[1]), SEAT_WAITS);
    assert_int_equal(seats_ask(&seats, COY, SEAT_OF_ROLE, 1, &coy), SEAT_REFUSED); /* all have too much */
    assert_ptr_equal(seats_leave(&seats, &ann[0]), &bob[0]);
    assert_int_equal(seats_ask(&seats, COY, SEAT_OF_ROLE, 1, &coy), SEAT_WAITS);
    assert_ptr_equal(seats_leave(&seats, &bob[0]), &ann[1]);
    assert_ptr_equal(seats_leave(&seats, &ann[1]), &coy);
    assert_int_equal(seats_ask(&seats, DAN, SEAT_OF_ROLE, 1, &dan), SEAT_WAITS);
    assert_ptr_equal(seats_leave(&seats, &coy), &bob[1]);
    assert_ptr_equal(seats_leave(&seats, &bob[1]), &ann[2]);
    assert_ptr_equal(seats_leave(&seats, &ann[2]), &dan);
    assert_null(seats_leave(&seats, &dan));
    assert_true(list_empty(&seats.users) && seats.taken == 0 && seats.waiting == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_has_some_of_the_seats), cmocka_unit_test(seats_go_round),
        cmocka_unit_test(queues_are_bounded),           cmocka_unit_test(those_without_a_role_share_a_seat),
        cmocka_unit_test(the_loop_is_one_seat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
