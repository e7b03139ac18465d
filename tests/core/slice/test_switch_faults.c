/* Faults of switches and optical links: dead, silent and lying switches, ports without light, alarms; levels
 * from the table of faults; closed when they were verified. */
#include "core/slice/rig.h"

#include "core/health/fault.h"

static const struct fault *fault_at(struct rig *rig, const char *subject, const char *code)
{
    return fault_find_open(core_health(rig->h.core), str_from(subject), str_from(code));
}

static void a_dead_switch_has_a_fault_until_it_was_read(void **state)
{
    struct rig *rig = *state;
    struct str name;
    begin(rig, 1);
    look(rig, 5, SWITCH_DOWN, NULL, 0, NULL); /* no slice needs it */
    const struct fault *fault = fault_at(rig, "switch/pod-1-x5", "fabric/switch-down");
    assert_non_null(fault);
    assert_int_equal(fault->level, LEVEL_SEPARATE);
    assert_int_equal(fault->domain, DOMAIN_NETWORK);
    assert_true(str_is(buf_str(&fault->evidence), "its power failed"));
    assert_int_equal(fault_place(fault, &name), PLACE_SWITCH);
    assert_true(str_is(name, "pod-1-x5") && str_starts(fault->name, STR("pod-1-x5.fabric-switch-down.")));
    uint64_t count = fault->count;
    look(rig, 5, SWITCH_DOWN, NULL, 0, NULL);
    assert_int_equal(fault->count, count); /* it stands */
    look(rig, 5, SWITCH_UP, NULL, 0, NULL);
    assert_true(fault->open && rig->waits[5]); /* it says that it is well: it is read first */
    answer(rig, 5);
    assert_false(fault->open);
    look(rig, 5, SWITCH_DOWN, NULL, 0, NULL);
    assert_true(fault->open && fault->count == count + 1);
    end(rig);
}

static void a_silent_switch_has_a_fault_and_is_asked_again(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    rig->silent[3] = true;
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    for (int tries = 0; tries <= SWITCH_TRIES_MAX; tries++) {
        answer_all(rig);
        harness_wait(&rig->h, 4000 * MS);
    }
    const struct fault *fault = fault_at(rig, "switch/pod-1-x3", "fabric/switch-down");
    assert_non_null(fault);
    harness_write(&rig->h, WRITE_DELETE, "a", NULL);
    end_stopped(rig);
    rig->silent[3] = false;
    for (int tries = 0; tries < 3 && fault->open; tries++) {
        harness_wait(&rig->h, 2 * SWITCH_BACKOFF_MAX_NS);
        answer_all(rig);
    }
    assert_false(fault->open); /* though no slice needs it */
    end(rig);
}

static void a_lying_switch_is_named(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    struct circuit present[] = {{1, 66}, {2, 66}}; /* one minus end twice */
    struct event event = {.kind = EVENT_SWITCH_REPORT};
    event.switch_report = (struct switch_report){.name = STR("pod-1-x0"),
                                                 .operation = rig->waits[0],
                                                 .read = true,
                                                 .present = present,
                                                 .present_count = 2};
    rig->waits[0] = 0;
    harness_step(&rig->h, &event);
    const struct fault *fault = fault_at(rig, "switch/pod-1-x0", "fabric/switch-lies");
    assert_non_null(fault);
    assert_int_equal(core_slices(rig->h.core)->pods[0]->switches[0].shown.ready, SHOWN_FALSE);
    answer_all(rig);
    harness_wait(&rig->h, NS_PER_SECOND);
    answer_all(rig);
    assert_false(fault->open);
    end(rig);
}

static void a_link_is_well_when_both_of_its_ends_are(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", "4x4x8", 32));
    answer_all(rig); /* along Z, cube-1's plus end meets cube-2's minus end: ports 1 and 66 of z0 */
    uint32_t z0 = 2 * FACE_LINKS;
    assert_int_equal(rig->to[z0][1], 66);
    look(rig, z0, SWITCH_DEGRADED, (const uint16_t[]){1}, 1, NULL);
    const struct fault *plus = fault_at(rig, "link/pod-1.cube-1.z0-plus", "fabric/link-bad");
    assert_non_null(plus);
    assert_int_equal(plus->level, LEVEL_PRE_SEPARATE);
    assert_null(fault_at(rig, "link/pod-1.cube-1.z0-minus", "fabric/link-bad"));
    assert_int_equal(core_slices(rig->h.core)->pods[0]->all_cubes[0].shown.ready, SHOWN_FALSE);
    look(rig, z0, SWITCH_DEGRADED, (const uint16_t[]){66}, 1, NULL); /* now the other end */
    const struct fault *minus = fault_at(rig, "link/pod-1.cube-2.z0-minus", "fabric/link-bad");
    assert_non_null(minus);
    assert_true(plus->open); /* not verified from both ends */
    look(rig, z0, SWITCH_UP, NULL, 0, NULL);
    assert_false(plus->open || minus->open);
    end(rig);
}

static void alarms_are_shown_as_they_come(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    look(rig, 7, SWITCH_DEGRADED, NULL, 0, "PORT 17 MJ POWER");
    const struct fault *fault = fault_at(rig, "switch/pod-1-x7", "fabric/switch-alarm");
    assert_non_null(fault);
    assert_int_equal(fault->level, LEVEL_SUB_HEALTH);
    assert_true(str_is(buf_str(&fault->evidence), "PORT 17 MJ POWER"));
    look(rig, 7, SWITCH_UP, NULL, 0, NULL);
    assert_false(fault->open);
    end(rig);
}

/* The words are the switch's: they may be cut within a character, or be in another code. */
static void alarms_of_any_bytes(void **state)
{
    struct rig *rig = *state;
    char text[SIGNAL_EVIDENCE_MAX + 3];
    begin(rig, 1);
    memset(text, 'x', sizeof text);
    memcpy(text + SIGNAL_EVIDENCE_MAX - 1, "\xc3\xa4", 3); /* its first byte is the last one with room */
    look(rig, 7, SWITCH_DEGRADED, NULL, 0, text);
    look(rig, 8, SWITCH_DEGRADED, NULL, 0, "Verst\xe4rker");
    const struct fault *cut = fault_at(rig, "switch/pod-1-x7", "fabric/switch-alarm");
    const struct fault *other = fault_at(rig, "switch/pod-1-x8", "fabric/switch-alarm");
    assert_true(cut && buf_str(&cut->evidence).len == SIGNAL_EVIDENCE_MAX - 1);
    assert_true(other && str_is_utf8(buf_str(&other->evidence)));
    end(rig);
}

static void wrong_readings_change_nothing(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    size_t faults = fault_count(core_health(rig->h.core));
    look(rig, 7, SWITCH_DEGRADED, (const uint16_t[]){60, 64, 129, 1024}, 4, NULL); /* no cube is there */
    struct event event = {.kind = EVENT_SWITCH_HEALTH};
    event.switch_health = (struct switch_health){.name = STR("pod-9-x5"), .state = SWITCH_DOWN};
    harness_step(&rig->h, &event); /* of no switch of the cluster */
    assert_int_equal(fault_count(core_health(rig->h.core)), faults);
    end(rig);
}

static void a_drained_switch_may_be_off(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    assert_int_equal(harness_write_checked(&rig->h, OBJECT_SWITCH, WRITE_REPLACE, "pod-1-x5",
                                           "{\"spec\": {\"unschedulable\": true}}"),
                     200);
    look(rig, 5, SWITCH_DOWN, NULL, 0, NULL);
    assert_null(fault_at(rig, "switch/pod-1-x5", "fabric/switch-down"));
    end(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY_OF(a_dead_switch_has_a_fault_until_it_was_read),
        STORY_OF(a_silent_switch_has_a_fault_and_is_asked_again),
        STORY_OF(a_lying_switch_is_named),
        STORY_OF(a_link_is_well_when_both_of_its_ends_are),
        STORY_OF(alarms_are_shown_as_they_come),
        STORY_OF(alarms_of_any_bytes),
        STORY_OF(wrong_readings_change_nothing),
        STORY_OF(a_drained_switch_may_be_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
