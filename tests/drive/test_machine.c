/* The machine's side: order of connections, tethers that outlive their session, messages, failures that come
 * back as events. Stories of what the ports are asked for. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "base/units.h"
#include "drive/agent.h"

struct bed {
    struct machine_shared *shared;
    struct agent *agent;
    struct machine_driver driver;
    int64_t boot_ns;
    struct buf story;
    bool cannot_connect, has_more;
};

#define STORY(bed, text)                                                                                     \
    do {                                                                                                     \
        assert_string_equal((bed)->story.data ? (bed)->story.data : "", text);                               \
        buf_clear(&(bed)->story);                                                                            \
    } while (0)

static int64_t fake_boot_ns(void *context)
{
    return ((struct bed *)context)->boot_ns;
}

static bool fake_connect(void *context)
{
    struct bed *bed = context;
    buf_printf(&bed->story, "connect; ");
    return !bed->cannot_connect;
}

static void fake_close(void *context)
{
    buf_printf(&((struct bed *)context)->story, "close; ");
}

static void fake_send(void *context, const struct from_agent *message)
{
    const char *name = message->kind == FROM_AGENT_HELLO       ? "hello"
                       : message->kind == FROM_AGENT_HEARTBEAT ? "heartbeat"
                                                               : "other";
    buf_printf(&((struct bed *)context)->story, "send %s; ", name);
}

static void fake_tether(void *context, const struct from_agent *message)
{
    struct bed *bed = context;
    assert_int_equal(message->kind, FROM_AGENT_TETHER);
    assert_true(str_is(message->hello.machine, "m-1"));
    assert_true(message->hello.connection == agent_connection(bed->agent));
    buf_printf(&bed->story, "tether; ");
}

static void fake_tether_welcome(void *context)
{
    buf_printf(&((struct bed *)context)->story, "tether welcome; ");
}

static void fake_welcome(void *context)
{
    buf_printf(&((struct bed *)context)->story, "welcome; ");
}

static void fake_note(void *context, const char *text)
{
    buf_printf(&((struct bed *)context)->story, "note; ");
}

static void fake_message(void *context, const struct from_controller *message)
{
    buf_printf(&((struct bed *)context)->story, "message %d; ", (int)message->kind);
}

static void fake_carry_out(void *context, const struct agent_effect *effect)
{
    struct bed *bed = context;
    if (effect->kind == AGENT_LAUNCH)
        buf_printf(&bed->story, "launch; ");
    if (effect->kind == AGENT_FENCE)
        buf_printf(&bed->story, "fence; ");
}

static bool fake_next(void *context, struct agent_event *ret_event)
{
    struct bed *bed = context;
    if (!bed->has_more)
        return false;
    bed->has_more = false;
    buf_printf(&bed->story, "more; ");
    *ret_event = (struct agent_event){.kind = AGENT_TICK};
    return true;
}

static void fake_fed(void *context)
{
    agent_check_invariants(((struct bed *)context)->agent);
}

static void bed_init(struct bed *bed, bool tethers)
{
    *bed = (struct bed){.boot_ns = 1000 * NS_PER_SECOND};
    struct agent_config config = {.machine = STR("m-1"),
                                  .software = STR("test"),
                                  .incarnation = 5,
                                  .chips = 4,
                                  .cpu_milli = 1000,
                                  .memory_bytes = 1 << 30,
                                  .seed = 7};
    struct agent_ports ports = {.context = bed,
                                .boot_ns = fake_boot_ns,
                                .wall_ns = fake_boot_ns,
                                .connect = fake_connect,
                                .close = fake_close,
                                .send = fake_send,
                                .tether = fake_tether,
                                .tether_welcome = fake_tether_welcome,
                                .welcome = fake_welcome,
                                .note = fake_note,
                                .message = fake_message,
                                .carry_out = fake_carry_out,
                                .next = fake_next,
                                .fed = fake_fed};
    bed->shared = machine_shared_new();
    bed->agent = agent_new(&config);
    machine_driver_init(&bed->driver, bed->agent, &ports, bed->shared, tethers);
    machine_feed(&bed->driver, &(struct agent_event){.kind = AGENT_BOOT});
}

static void bed_done(struct bed *bed)
{
    machine_driver_done(&bed->driver);
    agent_free(bed->agent);
    machine_shared_free(bed->shared);
    buf_done(&bed->story);
}

/* Time passes until the agent wants to try again. */
static void bed_wait(struct bed *bed)
{
    bed->boot_ns = agent_deadline(bed->agent);
    machine_feed(&bed->driver, &(struct agent_event){.kind = AGENT_TICK});
}

static void bed_welcome(struct bed *bed)
{
    struct from_controller welcome = {.kind = FROM_CONTROLLER_WELCOME,
                                      .welcome = {.epoch = 1,
                                                  .lease_ns = 3 * NS_PER_SECOND,
                                                  .heartbeat_ns = NS_PER_SECOND,
                                                  .cluster = 1,
                                                  .version = WIRE_VERSION}};
    machine_message(&bed->driver, false, &welcome);
}

static void test_tether_before_hello(void **state)
{
    struct bed bed;
    bed_init(&bed, true);
    STORY(&bed, "connect; ");
    machine_opened(&bed.driver, false);
    STORY(&bed, ""); /* a task that is started later has to hold the tether */
    machine_opened(&bed.driver, true);
    STORY(&bed, "tether; send hello; ");
    bed_welcome(&bed);
    STORY(&bed, "fence; tether welcome; welcome; ");
    bed_done(&bed);
    bed_init(&bed, false); /* tasks are only played */
    machine_opened(&bed.driver, false);
    STORY(&bed, "connect; send hello; ");
    bed_done(&bed);
}

/* The tether of the last welcome session is kept until another one is welcome. */
static void test_kept_tether(void **state)
{
    struct bed bed;
    bed_init(&bed, true);
    machine_opened(&bed.driver, true);
    machine_opened(&bed.driver, false);
    bed_welcome(&bed);
    buf_clear(&bed.story);
    for (int i = 0; i < 2; i++) {
        machine_closed(&bed.driver);
        bed_wait(&bed);
        machine_opened(&bed.driver, true);
        machine_opened(&bed.driver, false);
        STORY(&bed, "close; connect; tether; send hello; ");
    }
    bed_welcome(&bed);
    assert_non_null(strstr(bed.story.data, "tether welcome; "));
    bed_done(&bed);
}

static void test_connecting_fails(void **state)
{
    struct bed bed;
    bed_init(&bed, true);
    machine_closed(&bed.driver);
    buf_clear(&bed.story);
    bed.cannot_connect = true;
    bed_wait(&bed);
    STORY(&bed, "connect; close; ");
    bed.cannot_connect = false;
    bed_wait(&bed); /* it has been told, and tries again */
    STORY(&bed, "connect; ");
    bed_done(&bed);
}

static void test_messages(void **state)
{
    struct bed bed;
    bed_init(&bed, true);
    machine_opened(&bed.driver, true);
    machine_opened(&bed.driver, false);
    buf_clear(&bed.story);
    struct from_controller exec = {.kind = FROM_CONTROLLER_EXEC_CLOSE, .number = 1};
    machine_message(&bed.driver, false, &exec);
    STORY(&bed, ""); /* nobody has said that this is its controller */
    bed_welcome(&bed);
    buf_clear(&bed.story);
    machine_message(&bed.driver, false, &exec);
    STORY(&bed, "message 14; ");
    machine_message(&bed.driver, true, &exec); /* a tether hears of a refusal, and of nothing else */
    STORY(&bed, "");
    /* A START that refers to a rank table that never came: the session starts anew. */
    struct from_controller start = {.kind = FROM_CONTROLLER_START,
                                    .start = {.task = 9, .rank_table_number = 77}};
    machine_message(&bed.driver, false, &start);
    STORY(&bed, "note; close; ");
    bed_done(&bed);
}

static void test_what_an_effect_could_not_do(void **state)
{
    struct bed bed;
    bed_init(&bed, true);
    buf_clear(&bed.story);
    bed.has_more = true;
    machine_feed(&bed.driver, &(struct agent_event){.kind = AGENT_TICK});
    STORY(&bed, "more; ");
    bed_done(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tether_before_hello),
        cmocka_unit_test(test_kept_tether),
        cmocka_unit_test(test_connecting_fails),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_what_an_effect_could_not_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
