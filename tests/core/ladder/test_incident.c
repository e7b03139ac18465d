/* The losses of one step are one question, whose root does not depend on the order of their reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/ladder/incident.h"

enum { VICTIM = 1, ROOT = 2, WANTED = 3 };

static struct loss *note(struct incident *incident, obj_id task, enum loss_cause cause)
{
    incident_note(incident, task, 1);
    struct loss *loss = &incident->losses.items[incident->losses.len - 1];
    loss->cause = (uint8_t)cause;
    loss->asks = true;
    return loss;
}

static void a_proven_loss_is_the_root_in_any_order(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        struct incident incident = {0};
        note(&incident, order ? ROOT : VICTIM, LOSS_EXIT);
        note(&incident, order ? VICTIM : ROOT, LOSS_EXIT);
        assert_int_equal(incident_root(&incident)->task, order ? ROOT : VICTIM); /* nothing is proven */
        struct loss *proven = &incident.losses.items[order ? 0 : 1];
        proven->proven = true;
        proven->cause = LOSS_OUT_OF_MEMORY;
        assert_int_equal(incident_root(&incident)->task, ROOT);
        struct ladder_incident question;
        incident_question(&incident, 7, &question);
        assert_true(question.cause == LOSS_OUT_OF_MEMORY && question.now_ns == 7);
        incident_done(&incident);
    }
}

static void a_policy_goes_before_a_proof(void **state)
{
    (void)state;
    struct incident incident = {0};
    note(&incident, ROOT, LOSS_EXIT)->proven = true;
    note(&incident, VICTIM, LOSS_EXIT)->barred = true;
    assert_int_equal(incident_root(&incident)->task, VICTIM);
    incident_done(&incident);
}

/* One bad place asks for another machine, although the root's is good; only bad places are given up then. */
static void each_place_counts(void **state)
{
    (void)state;
    struct incident incident = {0};
    struct ladder_incident question;
    note(&incident, ROOT, LOSS_EXIT)->proven = true;
    note(&incident, VICTIM, LOSS_EXIT);
    incident_question(&incident, 0, &question);
    assert_false(question.place_is_bad);
    assert_true(incident_gives_up_place(&incident, &incident.losses.items[0]));
    assert_false(incident_gives_up_place(&incident, &incident.losses.items[1]));
    incident.losses.items[1].place_is_bad = true;
    incident_question(&incident, 0, &question);
    assert_true(question.place_is_bad);
    assert_false(incident_gives_up_place(&incident, &incident.losses.items[0]));
    assert_true(incident_gives_up_place(&incident, &incident.losses.items[1]));
    incident_done(&incident);
}

/* An incident is a new one unless every loss belongs to the one before. */
static void one_new_loss_makes_it_new(void **state)
{
    (void)state;
    struct incident incident = {0};
    struct ladder_incident question;
    note(&incident, ROOT, LOSS_EXIT)->again = true;
    note(&incident, WANTED, LOSS_EXIT)->asks = false;
    incident_question(&incident, 0, &question);
    assert_true(question.again);
    note(&incident, VICTIM, LOSS_EXIT);
    incident_question(&incident, 0, &question);
    assert_false(question.again);
    incident_done(&incident);
}

static void wanted_ends_ask_nothing(void **state)
{
    (void)state;
    struct incident incident = {0};
    assert_false(incident_is_open(&incident));
    note(&incident, WANTED, LOSS_EXIT)->asks = false;
    assert_true(incident_is_open(&incident));
    assert_null(incident_root(&incident));
    incident_note_request(&incident, REQUEST_START, ROOT, STR(""));
    incident_done(&incident);
    assert_false(incident_is_open(&incident));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_proven_loss_is_the_root_in_any_order),
        cmocka_unit_test(a_policy_goes_before_a_proof),
        cmocka_unit_test(each_place_counts),
        cmocka_unit_test(one_new_loss_makes_it_new),
        cmocka_unit_test(wanted_ends_ask_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
