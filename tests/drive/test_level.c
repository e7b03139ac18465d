/* The driver raises the log's level once, and writes a boot's place only where the level is open. */
#include "drive/world.h"

#include "core/log/record.h"

static void last_boot(const struct world *w, struct arena *arena, struct event *ret_event)
{
    for (size_t i = w->log.len; i-- > 0;) {
        assert_int_equal(record_decode(arena, buf_str(&w->log.items[i]), ret_event, NULL), 0);
        if (ret_event->kind == EVENT_BOOT)
            return;
    }
    fail_msg("there is no boot");
}

static void a_level_is_raised_once(void **state)
{
    struct world w;
    struct arena arena = {0};
    struct event event;
    struct driver_options options = {.place = STR("10.0.0.1:7070")};
    world_init(&w, &options);
    last_boot(&w, &arena, &event);
    assert_int_equal(event.boot.place.len, 0); /* a replica of the release before might read it */
    driver_raise_level(w.driver, LEVEL_PLACE);
    driver_raise_level(w.driver, LEVEL_PLACE);
    driver_turn(w.driver);
    STORY(&w, "append 1; step ?; ");
    assert_int_equal(core_level(w.core), LEVEL_PLACE);
    driver_raise_level(w.driver, LEVEL_PLACE);
    driver_turn(w.driver);
    STORY(&w, "");
    (void)driver_wait(w.driver, w.mono_ns);
    w.mono_ns += 10 * LEASE_MS * NS_PER_MS; /* the host stood still: it boots again */
    driver_turn(w.driver);
    last_boot(&w, &arena, &event);
    assert_true(str_is(event.boot.place, "10.0.0.1:7070"));
    arena_done(&arena);
    world_done(&w);
}

static void write_with_id(struct world *w, const char *name)
{
    struct write_event write = {.verb = WRITE_CREATE,
                                .object = OBJECT_CONFIG_MAP,
                                .namespace_ = STR("default"),
                                .name = str_from(name),
                                .body = STR("{}"),
                                .grace_s = -1,
                                .request = STR("sixteen bytes: a"),
                                .content = 7};
    driver_write(w->driver, &write, 1);
    driver_turn(w->driver);
}

/* Whether the last record, the write of that name, has its id. */
static bool id_is_logged(const struct world *w, const char *name)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct event event;
    assert_int_equal(record_decode(&arena, buf_str(&w->log.items[w->log.len - 1]), &event, NULL), 0);
    assert_true(event.kind == EVENT_WRITE && str_is(event.write.name, name));
    return event.write.request.len > 0;
}

static void an_id_is_written_at_its_level(void **state)
{
    struct world w;
    struct driver_options options = {0};
    world_init(&w, &options);
    driver_raise_level(w.driver, LEVEL_PLACE);
    driver_turn(w.driver);
    write_with_id(&w, "below");
    assert_false(id_is_logged(&w, "below"));
    driver_raise_level(w.driver, LEVEL_RECEIPTS);
    driver_turn(w.driver);
    write_with_id(&w, "above");
    assert_true(id_is_logged(&w, "above"));
    world_done(&w);
}

/* A standby reads the record in the log, and counts on the ids that it passes on, before the leader has heard
 * that the append is over. */
static void an_id_that_comes_while_its_level_is_appended(void **state)
{
    struct world w;
    struct driver_options options = {0};
    world_init(&w, &options);
    w.log_says = APPEND_LATER;
    driver_raise_level(w.driver, LEVEL_RECEIPTS);
    driver_turn(w.driver);
    write_with_id(&w, "meanwhile");
    w.log_says = APPEND_DONE;
    world_appended(&w, APPEND_DONE);
    driver_turn(w.driver);
    assert_true(id_is_logged(&w, "meanwhile"));
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_level_is_raised_once),
                                       cmocka_unit_test(an_id_is_written_at_its_level),
                                       cmocka_unit_test(an_id_that_comes_while_its_level_is_appended)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
