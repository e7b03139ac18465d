/* The frames between task and agent, and between ranks: what is written is read back, whatever the cut;
 * nothing that comes in reads outside its bytes (the sanitizers watch). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job/link/wire.h"

static uint64_t state = 1;

static uint64_t draw(void) /* splitmix64 */
{
    uint64_t value = state += 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

static const uint16_t types[] = {
    JOBWIRE_JOIN,   JOBWIRE_STEP,    JOBWIRE_SHARD_SAVED, JOBWIRE_PEER_GONE,
    JOBWIRE_LEAVE,  JOBWIRE_WELCOME, JOBWIRE_FENCED,      JOBWIRE_CHECKPOINT_COMMITTED,
    JOBWIRE_DRAIN,  JOBWIRE_REJOIN,  JOBWIRE_STORE,       JOBWIRE_FETCH,
    JOBWIRE_STORED, JOBWIRE_FETCHED, JOBWIRE_RETRY,       JOBWIRE_TABLES,
    JOBWIRE_ROUTES};

static void random_text(char text[JOBWIRE_REASON_MAX])
{
    for (size_t c = 0, len = draw() % JOBWIRE_REASON_MAX; c < len; c++)
        text[c] = (char)(' ' + draw() % ('~' - ' ' + 1));
}

static char random_letter(void)
{
    return (char)('!' + draw() % ('~' - '!' + 1));
}

static void random_rejoin(struct jobwire_rejoin *rejoin)
{
    rejoin->attempt = (uint32_t)draw();
    rejoin->world = 1 + (uint32_t)(draw() % UINT32_MAX);
    rejoin->rank = (uint32_t)(draw() % rejoin->world);
    rejoin->full_world = rejoin->world + (uint32_t)(draw() % (UINT32_MAX - rejoin->world + UINT64_C(1)));
    rejoin->flags = (uint32_t)draw();
    rejoin->has_restore = draw() % 2 == 1;
    rejoin->restore_step = draw();
    rejoin->restore_attempt = (uint32_t)draw();
    size_t len = draw() % JOBWIRE_RENDEZVOUS_MAX;
    for (size_t c = 0; c < len; c++)
        rejoin->rendezvous[c] = random_letter();
}

static struct jobwire_message random_message(void)
{
    struct jobwire_message message;
    memset(&message, 0, sizeof message);
    message.type = types[draw() % (sizeof types / sizeof *types)];
    switch (message.type) {
    case JOBWIRE_JOIN:
        message.join = (struct jobwire_join){draw(), (uint32_t)draw(), (uint32_t)draw(),
                                             7,      (uint32_t)draw(), (uint32_t)draw()};
        break;
    case JOBWIRE_STEP:
        message.step.step = draw();
        message.step.total = draw();
        message.step.first = draw();
        message.step.metric_count = (uint16_t)(draw() % (JOBWIRE_METRICS_MAX + 1));
        message.step.pace = (struct jobwire_pace){draw(), draw(), draw()};
        for (size_t i = 0; i < message.step.metric_count; i++) {
            size_t len = 1 + draw() % (JOBWIRE_NAME_MAX - 1);
            for (size_t c = 0; c < len; c++)
                message.step.metrics[i].name[c] = random_letter();
            message.step.metrics[i].value = (double)draw() / 3;
        }
        break;
    case JOBWIRE_WELCOME:
        message.welcome.attempt = (uint32_t)draw();
        message.welcome.has_restore = draw() % 2 == 1;
        message.welcome.restore_step = draw();
        message.welcome.restore_attempt = (uint32_t)draw();
        break;
    case JOBWIRE_DRAIN:
        message.drain = (struct jobwire_drain){.deadline_ms = draw(), .reason = 3};
        break;
    case JOBWIRE_REJOIN:
        random_rejoin(&message.rejoin);
        break;
    case JOBWIRE_STORE:
    case JOBWIRE_FETCH:
        message.slot = (struct jobwire_slot){draw(), (uint32_t)draw(), (uint32_t)draw(), (uint32_t)draw()};
        break;
    case JOBWIRE_STORED:
    case JOBWIRE_FETCHED: {
        struct jobwire_moved *moved = &message.moved;
        *moved = (struct jobwire_moved){draw(), (uint32_t)draw(), (uint32_t)draw(), draw() % 4,
                                        draw(), "",               (uint32_t)draw()};
        random_text(moved->reason);
        break;
    }
    case JOBWIRE_RETRY:
        random_text(message.retry.reason);
        break;
    case JOBWIRE_TABLES:
        message.tables.number = draw();
        random_text(message.tables.name);
        message.tables.session = draw();
        break;
    case JOBWIRE_ROUTES:
        message.routes.session = draw() | 1;
        message.routes.open = draw() & 1;
        message.routes.tables = draw();
        message.routes.without = draw();
        message.routes.wrong = draw();
        break;
    case JOBWIRE_LEAVE:
        break;
    default: /* the others are a step and a number, or a number */
        message.committed = (struct jobwire_checkpoint_committed){.step = draw() >> 32};
    }
    return message;
}

static void test_round_trip(void **unused)
{
    for (int round = 0; round < 3000; round++) {
        struct jobwire_message message = random_message(), back;
        uint8_t frame[JOBWIRE_FRAME_MAX], again[JOBWIRE_FRAME_MAX];
        size_t used = 0, len = jobwire_encode(&message, frame, sizeof frame);
        assert_in_range(len, JOBWIRE_HEADER_SIZE, JOBWIRE_FRAME_MAX);
        for (size_t cut = 0; cut < len; cut += 1 + cut / 16) {
            uint8_t *exact = malloc(cut + 1); /* a read behind the cut is seen */
            memcpy(exact, frame, cut);
            assert_int_equal(jobwire_decode(exact, cut, &back, &used), 0);
            assert_int_equal(jobwire_encode(&message, exact, cut), 0);
            free(exact);
        }
        assert_int_equal(jobwire_decode(frame, len, &back, &used), 1);
        assert_int_equal(used, len);
        assert_int_equal(back.type, message.type);
        assert_int_equal(jobwire_encode(&back, again, sizeof again), len);
        assert_memory_equal(frame, again, len);
    }
}

static void test_later_versions_append(void **unused)
{
    struct jobwire_message message = {.type = JOBWIRE_PEER_GONE, .peer_gone = {5}}, back;
    uint8_t frame[64] = {0};
    size_t used, len = jobwire_encode(&message, frame, sizeof frame);
    frame[0] += 3; /* three bytes more */
    frame[6] = 9;  /* version */
    assert_int_equal(jobwire_decode(frame, len + 3, &back, &used), 1);
    assert_int_equal(used, len + 3);
    assert_int_equal(back.peer_gone.rank, 5);
    frame[4] = 200; /* an unknown type */
    assert_int_equal(jobwire_decode(frame, len + 3, &back, &used), 1);
    assert_int_equal(back.type, 200);
}

static void test_invalid(void **unused)
{
    struct jobwire_message message = {.type = JOBWIRE_STEP, .step = {.metric_count = 1}}, back = {.type = 77};
    uint8_t frame[JOBWIRE_FRAME_MAX];
    size_t used;
    assert_int_equal(jobwire_encode(&message, frame, sizeof frame), 0); /* no name */
    memcpy(message.step.metrics[0].name, "a b", 4);
    assert_int_equal(jobwire_encode(&message, frame, sizeof frame), 0);
    memset(message.step.metrics[0].name, 'x', JOBWIRE_NAME_MAX);
    assert_int_equal(jobwire_encode(&message, frame, sizeof frame), 0);
    message.step.metric_count = JOBWIRE_METRICS_MAX + 1;
    assert_int_equal(jobwire_encode(&message, frame, sizeof frame), 0);
    message.type = 200;
    assert_int_equal(jobwire_encode(&message, frame, sizeof frame), 0);

    memset(frame, 0xff, sizeof frame); /* a huge length */
    assert_int_equal(jobwire_decode(frame, sizeof frame, &back, &used), -1);
    message = (struct jobwire_message){.type = JOBWIRE_JOIN};
    size_t len = jobwire_encode(&message, frame, sizeof frame);
    frame[0]--; /* too short for its type */
    assert_int_equal(jobwire_decode(frame, len, &back, &used), -1);
    message = (struct jobwire_message){.type = JOBWIRE_WELCOME};
    len = jobwire_encode(&message, frame, sizeof frame);
    frame[JOBWIRE_HEADER_SIZE + 4] = 2; /* neither true nor false */
    assert_int_equal(jobwire_decode(frame, len, &back, &used), -1);
    assert_int_equal(back.type, 77); /* untouched */
}

static void test_noise(void **unused)
{
    for (int round = 0; round < 20000; round++) {
        struct jobwire_message message = random_message(), back;
        uint8_t frame[JOBWIRE_FRAME_MAX];
        size_t used, len = jobwire_encode(&message, frame, sizeof frame);
        frame[draw() % len] ^= (uint8_t)(1u << draw() % 8);
        uint8_t *exact = malloc(len);
        memcpy(exact, frame, len);
        if (jobwire_decode(exact, len, &back, &used) == 1)
            assert_true(used <= len);
        free(exact);
    }
}

static void test_values(void **unused)
{
    struct jobwire_message message = {.type = JOBWIRE_STEP,
                                      .step = {.step = 3, .total = 4, .metric_count = 2, .pace = {5, 6, 7}}},
                           back;
    memcpy(message.step.metrics[0].name, "loss", 5);
    message.step.metrics[0].value = NAN;
    memcpy(message.step.metrics[1].name, "rate", 5);
    message.step.metrics[1].value = -0.0;
    uint8_t frame[JOBWIRE_FRAME_MAX];
    size_t used, len = jobwire_encode(&message, frame, sizeof frame);
    static const uint8_t start[] = {26 + 13 + 13 + 24, 0, 0, 0, 2, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4};
    assert_memory_equal(frame, start, sizeof start);
    assert_int_equal(jobwire_decode(frame, len, &back, &used), 1);
    assert_true(isnan(back.step.metrics[0].value) && signbit(back.step.metrics[1].value));
    assert_string_equal(back.step.metrics[1].name, "rate");
    assert_int_equal(back.step.pace.own_us, 7);
    frame[0] -= 24; /* as the first version said it */
    assert_int_equal(jobwire_decode(frame, len - 24, &back, &used), 1);
    assert_true(back.step.pace.steps == 0 && back.step.metric_count == 2);
    frame[0] += 8; /* cut within */
    assert_int_equal(jobwire_decode(frame, len - 16, &back, &used), -1);
}

/* A JOIN of the first version has no flags; a REJOIN says a place in a world. */
static void test_rejoin(void **unused)
{
    struct jobwire_message message = {.type = JOBWIRE_JOIN, .join = {1, 2, 3, 4, 5, JOBWIRE_JOIN_CAN_REJOIN}},
                           back;
    uint8_t frame[JOBWIRE_FRAME_MAX];
    size_t used, len = jobwire_encode(&message, frame, sizeof frame);
    assert_int_equal(jobwire_decode(frame, len, &back, &used), 1);
    assert_int_equal(back.join.flags, JOBWIRE_JOIN_CAN_REJOIN);
    frame[0] -= 4;
    assert_int_equal(jobwire_decode(frame, len - 4, &back, &used), 1);
    assert_true(back.join.flags == 0 && back.join.pid == 5);

    message = (struct jobwire_message){.type = JOBWIRE_REJOIN,
                                       .rejoin = {.attempt = 3, .rank = 1, .world = 2, .full_world = 2}};
    memcpy(message.rejoin.rendezvous, "host:1", 7);
    memset(message.rejoin.key, 'k', JOBWIRE_KEY_SIZE);
    len = jobwire_encode(&message, frame, sizeof frame);
    assert_int_equal(len, JOBWIRE_HEADER_SIZE + 5 * 4 + 1 + 8 + 4 + 2 + 6 + JOBWIRE_KEY_SIZE);
    assert_int_equal(jobwire_decode(frame, len, &back, &used), 1);
    assert_string_equal(back.rejoin.rendezvous, "host:1");
    assert_memory_equal(back.rejoin.key, message.rejoin.key, JOBWIRE_KEY_SIZE);
    frame[0]--; /* half a key */
    assert_int_equal(jobwire_decode(frame, len - 1, &back, &used), -1);
    frame[0] -= JOBWIRE_KEY_SIZE - 1; /* an agent of the first version */
    assert_int_equal(jobwire_decode(frame, len - JOBWIRE_KEY_SIZE, &back, &used), 1);
    assert_int_equal(back.rejoin.key[0], 0);
    frame[len - JOBWIRE_KEY_SIZE - 1] = ' ';
    assert_int_equal(jobwire_decode(frame, len, &back, &used), -1);
    message.rejoin.rank = 2;
    len = jobwire_encode(&message, frame, sizeof frame);
    assert_int_equal(jobwire_decode(frame, len, &back, &used), -1);
    message.rejoin.rank = 0;
    message.rejoin.full_world = 1;
    len = jobwire_encode(&message, frame, sizeof frame);
    assert_int_equal(jobwire_decode(frame, len, &back, &used), -1);
    memset(message.rejoin.rendezvous, 'x', sizeof message.rejoin.rendezvous);
    assert_int_equal(jobwire_encode(&message, frame, sizeof frame), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_later_versions_append),
        cmocka_unit_test(test_invalid),    cmocka_unit_test(test_noise),
        cmocka_unit_test(test_values),     cmocka_unit_test(test_rejoin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
