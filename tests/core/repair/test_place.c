/* Tickets of switches and links: opened with the fault, closed when the place was seen to work or by a
 * person, opened again while it does not work. */
#include "core/slice/rig.h"

#include "core/health/fault.h"
#include "core/repair/repair.h"

static const struct repair *open_at(struct rig *rig, const char *subject)
{
    return repair_of_machine(core_repairs(rig->h.core), str_from(subject));
}

static struct str said(struct rig *rig, const struct repair *repair, const char *part, const char *key)
{
    const struct object *object = object_find_uid(core_objects(rig->h.core), repair->uid);
    assert_non_null(object);
    return doc_str(doc_path(object->document, part, key, NULL), STR(""));
}

/* `spec`: its fields. */
static int write_repair(struct rig *rig, enum write_verb verb, const char *name, const char *spec)
{
    char yaml[512];
    snprintf(yaml, sizeof yaml,
             "apiVersion: phalanx.dev/v1\nkind: Repair\nmetadata: {name: %s}\nspec: {%s}\n", name, spec);
    int status =
        harness_write_checked(&rig->h, OBJECT_REPAIR, verb, name, verb == WRITE_DELETE ? NULL : yaml);
    core_check_invariants(rig->h.core);
    return status;
}

static struct str state_of(struct rig *rig, const char *name)
{
    const struct object *object =
        object_find(core_objects(rig->h.core), OBJECT_REPAIR, STR(""), str_from(name));
    assert_non_null(object);
    return doc_str(doc_path(object->document, "status", "state", NULL), STR(""));
}

static void a_dead_switch_has_a_ticket_until_it_was_read(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    look(rig, 5, SWITCH_DOWN, NULL, 0, NULL);
    const struct repair *repair = open_at(rig, "switch/pod-1-x5");
    assert_non_null(repair);
    assert_int_equal(repair->state, REPAIR_TICKETED);
    assert_int_equal(repair->origin, REPAIR_BY_FAULT);
    assert_true(repair->code_count == 1 && str_is(repair->codes[0], "fabric/switch-down"));
    assert_true(str_is(said(rig, repair, "spec", "place"), "switch/pod-1-x5"));
    assert_true(str_is(said(rig, repair, "status", "place"), "switch/pod-1-x5"));
    assert_true(str_starts(said(rig, repair, "status", "message"), STR("repair-switch: ")));
    assert_int_equal(notes(&rig->h, "RepairTicket"), 1);
    look(rig, 5, SWITCH_DOWN, NULL, 0, NULL);
    assert_ptr_equal(open_at(rig, "switch/pod-1-x5"), repair); /* told once */
    assert_int_equal(notes(&rig->h, "RepairTicket"), 1);
    look(rig, 5, SWITCH_UP, NULL, 0, NULL);
    assert_int_equal(repair->state, REPAIR_TICKETED); /* it is read first */
    answer(rig, 5);
    assert_int_equal(repair->state, REPAIR_CLOSED);
    assert_null(open_at(rig, "switch/pod-1-x5"));
    end(rig);
}

static void a_drain_for_the_work_keeps_the_ticket(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    look(rig, 5, SWITCH_DOWN, NULL, 0, NULL);
    const struct repair *repair = open_at(rig, "switch/pod-1-x5");
    assert_int_equal(harness_write_checked(&rig->h, OBJECT_SWITCH, WRITE_REPLACE, "pod-1-x5",
                                           "{\"spec\": {\"unschedulable\": true}}"),
                     200);
    look(rig, 5, SWITCH_DOWN, NULL, 0, NULL);
    assert_int_equal(repair->state, REPAIR_TICKETED);
    assert_int_equal(
        harness_write_checked(&rig->h, OBJECT_SWITCH, WRITE_REPLACE, "pod-1-x5", "{\"spec\": {}}"), 200);
    look(rig, 5, SWITCH_UP, NULL, 0, NULL);
    answer(rig, 5);
    assert_int_equal(repair->state, REPAIR_CLOSED);
    end(rig);
}

static void done_is_believed_until_it_is_seen_otherwise(void **state)
{
    struct rig *rig = *state;
    char name[128];
    begin(rig, 1);
    look(rig, 5, SWITCH_DOWN, NULL, 0, NULL);
    const struct repair *first = open_at(rig, "switch/pod-1-x5");
    const struct object *object = object_find_uid(core_objects(rig->h.core), first->uid);
    snprintf(name, sizeof name, STR_FORMAT, STR_ARG(object->name));
    assert_int_equal(write_repair(rig, WRITE_REPLACE, name, "place: switch/pod-1-x5, done: true"), 200);
    assert_int_equal(first->state, REPAIR_CLOSED);
    const struct repair *second = open_at(rig, "switch/pod-1-x5"); /* it is still down */
    assert_true(second && second->uid != first->uid && second->state == REPAIR_TICKETED);
    object = object_find_uid(core_objects(rig->h.core), second->uid);
    snprintf(name, sizeof name, STR_FORMAT, STR_ARG(object->name));
    assert_int_equal(write_repair(rig, WRITE_DELETE, name, ""), 200);
    assert_non_null(open_at(rig, "switch/pod-1-x5"));
    end(rig);
}

static void a_dark_link_has_a_ticket_until_both_ends_have_light(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    look(rig, 5, SWITCH_DEGRADED, (const uint16_t[]){1}, 1, NULL);
    const struct repair *repair = open_at(rig, "link/pod-1.cube-1.x5-plus");
    assert_non_null(repair);
    assert_true(str_is(said(rig, repair, "spec", "place"), "link/pod-1.cube-1.x5-plus"));
    assert_null(open_at(rig, "switch/pod-1-x5")); /* the switch works */
    look(rig, 5, SWITCH_UP, NULL, 0, NULL);
    assert_int_equal(repair->state, REPAIR_CLOSED);
    end(rig);
}

static void an_alarm_alone_has_no_ticket(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    look(rig, 5, SWITCH_DEGRADED, NULL, 0, "fan 2 is slow");
    assert_null(open_at(rig, "switch/pod-1-x5"));
    end(rig);
}

static void a_person_asks_for_a_ticket(void **state)
{
    struct rig *rig = *state;
    begin(rig, 1);
    assert_int_equal(write_repair(rig, WRITE_CREATE, "swap", "place: switch/pod-1-x5"), 201);
    assert_true(str_is(state_of(rig, "swap"), "Ticketed"));
    assert_int_equal(write_repair(rig, WRITE_CREATE, "twice", "place: switch/pod-1-x5"), 201);
    assert_true(str_is(state_of(rig, "twice"), "Closed"));
    assert_int_equal(write_repair(rig, WRITE_CREATE, "wrong", "place: switch/pod-7-x5"), 201);
    assert_true(str_is(state_of(rig, "wrong"), "Closed"));
    harness_wait(&rig->h, 60 * NS_PER_SECOND);
    assert_true(str_is(state_of(rig, "swap"), "Ticketed")); /* no fault ends it: the person does */
    assert_int_equal(write_repair(rig, WRITE_REPLACE, "swap", "place: switch/pod-1-x5, done: true"), 200);
    assert_true(str_is(state_of(rig, "swap"), "Closed"));
    end(rig);
}

static void a_place_is_named_in_full(void **state)
{
    static const char *const bad[] = {
        "",
        "place: pod-1-x5",
        "place: rack/pod-1",
        "place: switch/",
        "place: switch/pod-1-x5, machine: m-1",
        "place: switch/pod-1-x5, action: reboot",
        "place: switch/pod-1-x5, now: true",
    };
    struct rig *rig = *state;
    begin(rig, 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(write_repair(rig, WRITE_CREATE, "bad", bad[i]), 422);
    assert_int_equal(write_repair(rig, WRITE_CREATE, "one", "place: switch/pod-1-x5"), 201);
    assert_int_equal(write_repair(rig, WRITE_REPLACE, "one", "place: switch/pod-1-x6"), 422);
    end(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY_OF(a_dead_switch_has_a_ticket_until_it_was_read),
        STORY_OF(a_drain_for_the_work_keeps_the_ticket),
        STORY_OF(done_is_believed_until_it_is_seen_otherwise),
        STORY_OF(a_dark_link_has_a_ticket_until_both_ends_have_light),
        STORY_OF(an_alarm_alone_has_no_ticket),
        STORY_OF(a_person_asks_for_a_ticket),
        STORY_OF(a_place_is_named_in_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
