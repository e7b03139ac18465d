/* Writes that come again with the id of one that was applied (receipt/receipt.h). */
#include "core/job/story.h"
#include "core/receipt/receipt.h"

#define ID_A "sixteen bytes: a"
#define ID_B "sixteen bytes: b"
#define MAP_OF(name, value)                                                                                  \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{" name "},\"data\":{\"a\":\"" value "\"}}"

static struct event write_of(enum write_verb verb, const char *name, const char *body, const char *id)
{
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){.verb = verb,
                                       .object = OBJECT_CONFIG_MAP,
                                       .namespace_ = STR("default"),
                                       .name = str_from(name),
                                       .body = str_from(body),
                                       .request = str_from(id),
                                       .content = strlen(body) + strlen(name),
                                       .grace_s = -1};
    return event;
}

static void opens(struct harness *h)
{
    harness_init(h, 1, 1, 0);
    struct event level = {.kind = EVENT_LEVEL, .level = LEVEL_RECEIPTS};
    harness_step(h, &level);
}

/* The receipt that the step's reply refers to; NULL: it was no repetition. */
static const struct receipt *replied_again(const struct harness *h)
{
    for (size_t i = 0; i < h->effects.list.len; i++)
        if (h->effects.list.items[i].kind == EFFECT_REPLY)
            return h->effects.list.items[i].reply.receipt;
    fail_msg("the step has no reply");
    return NULL;
}

static const struct object *map_named(const struct harness *h, struct str name)
{
    return object_find(core_objects(h->core), OBJECT_CONFIG_MAP, STR("default"), name);
}

static void a_create_is_applied_once(void **state)
{
    struct harness h;
    opens(&h);
    size_t before = object_count(core_objects(h.core), OBJECT_CONFIG_MAP);
    struct event first = write_of(WRITE_CREATE, "", MAP_OF("\"generateName\":\"m-\"", "1"), ID_A);
    harness_step(&h, &first);
    assert_int_equal(h.last_code, 201);
    assert_null(replied_again(&h));
    struct event again = write_of(WRITE_CREATE, "", MAP_OF("\"generateName\":\"m-\"", "1"), ID_A);
    harness_step(&h, &again); /* it would have another name */
    assert_int_equal(h.last_code, 201);
    const struct receipt *receipt = replied_again(&h);
    assert_non_null(receipt);
    assert_int_equal(map_named(&h, receipt->name)->uid, receipt->object);
    assert_int_equal(h.effects.list.len, 1); /* no change is told of */
    assert_int_equal(object_count(core_objects(h.core), OBJECT_CONFIG_MAP), before + 1);
    struct event other = write_of(WRITE_CREATE, "", MAP_OF("\"generateName\":\"m-\"", "1"), ID_B);
    harness_step(&h, &other);
    assert_int_equal(object_count(core_objects(h.core), OBJECT_CONFIG_MAP), before + 2);
    harness_check_replay(&h);
    harness_done(&h);
}

/* The check answers as the step would, so a repetition does not get to the log. */
static void the_check_knows_it(void **state)
{
    struct harness h;
    opens(&h);
    struct event first = write_of(WRITE_CREATE, "m", MAP_OF("\"name\":\"m\"", "1"), ID_A);
    assert_true(core_check_write(h.core, &first.write, h.now_ns, &h.effects, NULL));
    harness_step(&h, &first);
    assert_false(core_check_write(h.core, &first.write, h.now_ns, &h.effects, NULL));
    assert_int_equal(h.effects.list.items[0].reply.code, 201);
    assert_non_null(replied_again(&h));
    first.write.request = STR(ID_B);
    assert_false(core_check_write(h.core, &first.write, h.now_ns, &h.effects, NULL));
    assert_int_equal(h.effects.list.items[0].reply.code, 409); /* AlreadyExists */
    harness_done(&h);
}

static void a_deletion_is_applied_once(void **state)
{
    struct harness h;
    opens(&h);
    struct event first = write_of(WRITE_CREATE, "m", MAP_OF("\"name\":\"m\"", "1"), "");
    harness_step(&h, &first);
    struct event gone = write_of(WRITE_DELETE, "m", "", ID_A);
    harness_step(&h, &gone);
    assert_int_equal(h.last_code, 200);
    struct event next = write_of(WRITE_CREATE, "m", MAP_OF("\"name\":\"m\"", "2"), "");
    harness_step(&h, &next);
    harness_step(&h, &gone); /* comes late: another object of that name is there by now */
    assert_int_equal(h.last_code, 200);
    assert_non_null(replied_again(&h));
    assert_non_null(map_named(&h, STR("m")));
    harness_check_replay(&h);
    harness_done(&h);
}

static void a_refused_write_leaves_no_receipt(void **state)
{
    struct harness h;
    opens(&h);
    struct event replace = write_of(WRITE_REPLACE, "m", MAP_OF("\"name\":\"m\"", "1"), ID_A);
    harness_step(&h, &replace);
    assert_int_equal(h.last_code, 404);
    struct event create = write_of(WRITE_CREATE, "m", MAP_OF("\"name\":\"m\"", "1"), "");
    harness_step(&h, &create);
    harness_step(&h, &replace);
    assert_int_equal(h.last_code, 200);
    assert_null(replied_again(&h));
    harness_done(&h);
}

static void another_request_may_not_have_its_id(void **state)
{
    struct harness h;
    opens(&h);
    struct event first = write_of(WRITE_CREATE, "m", MAP_OF("\"name\":\"m\"", "1"), ID_A);
    harness_step(&h, &first);
    struct event other = write_of(WRITE_CREATE, "more", MAP_OF("\"name\":\"more\"", "1"), ID_A);
    harness_step(&h, &other);
    assert_int_equal(h.last_code, 422);
    assert_null(map_named(&h, STR("more")));
    harness_done(&h);
}

static void receipts_are_kept_for_a_while(void **state)
{
    struct harness h;
    opens(&h);
    struct event first = write_of(WRITE_CREATE, "m", MAP_OF("\"name\":\"m\"", "1"), ID_A);
    harness_step(&h, &first);
    int64_t first_ns = h.now_ns;
    harness_wait(&h, RECEIPT_AGE_NS);
    harness_step(&h, &first);
    assert_non_null(replied_again(&h));
    harness_wait(&h, 1);
    struct event other = write_of(WRITE_CREATE, "other", MAP_OF("\"name\":\"other\"", "1"), ID_B);
    harness_step(&h, &other);
    assert_int_equal(receipts_since(core_receipts(h.core)), first_ns);
    harness_step(&h, &first);
    assert_int_equal(h.last_code, 409); /* it is new, and the name is taken */
    harness_check_replay(&h);
    harness_done(&h);
}

/* A log at a level below has no receipts; the driver leaves ids out there, and others do not matter. */
static void below_its_level_an_id_means_nothing(void **state)
{
    struct harness h;
    harness_init(&h, 1, 1, 0);
    struct event first = write_of(WRITE_CREATE, "m", MAP_OF("\"name\":\"m\"", "1"), ID_A);
    assert_int_equal(level_of_event(&first), LEVEL_RECEIPTS);
    harness_step(&h, &first);
    harness_step(&h, &first);
    assert_int_equal(h.last_code, 409);
    assert_int_equal(receipts_count(core_receipts(h.core)), 0);
    harness_check_replay(&h);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_create_is_applied_once),
        cmocka_unit_test(the_check_knows_it),
        cmocka_unit_test(a_deletion_is_applied_once),
        cmocka_unit_test(a_refused_write_leaves_no_receipt),
        cmocka_unit_test(another_request_may_not_have_its_id),
        cmocka_unit_test(receipts_are_kept_for_a_while),
        cmocka_unit_test(below_its_level_an_id_means_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
