/* More signals than an agent keeps: what is lost is the least important, and it is counted. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "core/agent/desk.h"

enum { KEPT = AGENT_SIGNALS_MAX - 2 }; /* two are kept free for what tells of the lost */

static void meet_again(struct desk *desk)
{
    desk_step(desk, (struct agent_event){.kind = AGENT_CONNECTED});
    desk_welcome(desk);
}

static void meet(struct desk *desk)
{
    desk_step(desk, (struct agent_event){.kind = AGENT_BOOT});
    meet_again(desk);
}

/* The reports of the last step; NULL: none. */
static const struct reports *reports_of(const struct desk *desk)
{
    const struct from_agent *sent = desk_sent(desk, FROM_AGENT_REPORTS);
    return sent ? &sent->reports : NULL;
}

/* Number `n` in a place of its own. */
static void see(struct desk *desk, size_t n, enum signal_assertion assertion, enum signal_severity severity)
{
    char place[32];
    snprintf(place, sizeof place, "disk/%zu", n);
    struct signal signal = {.code = STR("disk/io"),
                            .place = str_from(place),
                            .assertion = assertion,
                            .severity = severity,
                            .chip = -1,
                            .first_ns = 1,
                            .last_ns = 1,
                            .count = 1};
    desk_step(desk, (struct agent_event){.kind = AGENT_SAW, .saw = &signal});
}

static bool tells_lost(const struct signal *signal)
{
    return str_is(signal->code, "os/signals-lost");
}

/* How many were lost by these reports; 0: they tell of none. */
static uint32_t lost_of(const struct reports *reports)
{
    uint32_t lost = 0;
    for (size_t i = 0; i < reports->signal_count; i++)
        lost += tells_lost(&reports->signals[i]) ? reports->signals[i].count : 0;
    return lost;
}

struct seen {
    size_t n;
    int importance;
};

static int by_importance_then_newest(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    if (x->importance != y->importance)
        return y->importance - x->importance;
    return x->n < y->n ? 1 : -1;
}

/* Whatever comes in whatever order: the most important ones are there, of equal ones the newest. */
static void test_the_most_important_are_kept(void **state)
{
    enum { SIGNALS = 1500 };
    static struct seen seen[SIGNALS];
    struct rng rng;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct desk desk;
        desk_init(&desk);
        rng_seed(&rng, seed);
        for (size_t n = 0; n < SIGNALS; n++) {
            enum signal_severity severity =
                (enum signal_severity)rng_range(&rng, SEVERITY_NOTICE, SEVERITY_CRITICAL);
            enum signal_assertion assertion =
                (enum signal_assertion)rng_range(&rng, SIGNAL_OCCUR, SIGNAL_ONCE);
            see(&desk, n, assertion, severity);
            seen[n] = (struct seen){n, 2 * (int)severity + (assertion != SIGNAL_ONCE)};
        }
        meet(&desk);
        const struct reports *reports = reports_of(&desk);
        assert_non_null(reports);
        assert_int_equal(reports->signal_count, KEPT + 1);
        assert_int_equal(lost_of(reports), SIGNALS - KEPT);
        qsort(seen, SIGNALS, sizeof *seen, by_importance_then_newest);
        bool wanted[SIGNALS] = {0};
        for (size_t i = 0; i < KEPT; i++)
            wanted[seen[i].n] = true;
        for (size_t i = 0; i < reports->signal_count; i++) {
            if (tells_lost(&reports->signals[i]))
                continue;
            size_t n = strtoul(reports->signals[i].place.data + 5, NULL, 10);
            assert_true(wanted[n]);
            wanted[n] = false;
        }
        desk_done(&desk);
    }
}

/* While a message is under way no other is, and it is lost only with that: the grave one among thousands of
 * the least is in the next. */
static void test_a_storm_does_not_displace_the_grave_one(void **state)
{
    struct desk desk;
    desk_init(&desk);
    meet(&desk);
    for (size_t n = 0; n < 10; n++)
        see(&desk, n, SIGNAL_ONCE, SEVERITY_NOTICE);
    uint64_t number = 1;
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_REPORTS_ACK, .number = number++});
    assert_int_equal(reports_of(&desk)->signal_count, 9); /* are under way from now on */
    see(&desk, 10, SIGNAL_OCCUR, SEVERITY_CRITICAL);
    for (size_t n = 11; n < 20000; n++) {
        see(&desk, n, SIGNAL_ONCE, n % 3 ? SEVERITY_NOTICE : SEVERITY_MAJOR);
        assert_null(reports_of(&desk)); /* one message at a time */
    }
    bool breaks = *state != NULL;
    if (breaks) {
        desk_step(&desk, (struct agent_event){.kind = AGENT_DISCONNECTED});
        desk.now_ns = agent_deadline(desk.agent);
        desk_step(&desk, (struct agent_event){.kind = AGENT_TICK});
        meet_again(&desk);
    } else {
        desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_REPORTS_ACK, .number = number});
    }
    const struct reports *reports = reports_of(&desk);
    assert_non_null(reports);
    assert_int_equal(reports->signal_count, KEPT + 1);
    assert_int_equal(lost_of(reports), 20000 - 1 - KEPT - (breaks ? 0 : 9)); /* each was told or counted */
    bool found = false;
    for (size_t i = 0; i < reports->signal_count; i++)
        found = found || reports->signals[i].severity == SEVERITY_CRITICAL;
    assert_true(found);
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_REPORTS_ACK, .number = reports->number});
    assert_null(reports_of(&desk));
    desk_done(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_most_important_are_kept),
        cmocka_unit_test(test_a_storm_does_not_displace_the_grave_one),
        cmocka_unit_test_prestate(test_a_storm_does_not_displace_the_grave_one,
                                  (void *)"the connection breaks"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
