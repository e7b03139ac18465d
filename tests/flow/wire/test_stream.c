/* Streams over messages: every order gives the same bytes; a sender that passes the window is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "flow/wire/stream.h"

enum { BYTES = 400000, MESSAGE_MAX = 20000, MESSAGES_MAX = 400, SEEDS = 30 };

struct message {
    uint64_t at;
    size_t len;
    bool fetched; /* its bytes come after its piece */
    struct stream_piece *piece;
};

static uint8_t byte_at(uint64_t at)
{
    return (uint8_t)(at * 131 + (at >> 8));
}

static void fill(char *data, uint64_t at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        data[i] = (char)byte_at(at + i);
}

/* Cuts BYTES into messages of random lengths, small ones mostly. */
static size_t cut(struct rng *rng, struct message *messages)
{
    size_t count = 0;
    for (uint64_t at = 0; at < BYTES; count++) {
        size_t len = 1 + rng_below(rng, rng_below(rng, 3) ? 2000 : MESSAGE_MAX);
        len = len < BYTES - at ? len : BYTES - at;
        assert_true(count < MESSAGES_MAX);
        messages[count] = (struct message){.at = at, .len = len, .fetched = rng_below(rng, 4) == 0};
        at += len;
    }
    return count;
}

/* Reads what is there and compares it. */
static void read_some(struct stream *stream, struct rng *rng, uint64_t *done)
{
    char data[MESSAGE_MAX];
    bool had = stream_has(stream);
    size_t got = stream_read(stream, data, 1 + rng_below(rng, sizeof data));
    assert_int_equal(got > 0, had);
    for (size_t i = 0; i < got; i++)
        if ((uint8_t)data[i] != byte_at(*done + i))
            fail_msg("byte %llu differs", (unsigned long long)(*done + i));
    *done += got;
}

static void messages_of_any_order_give_the_bytes(void **state)
{
    static struct message messages[MESSAGES_MAX];
    for (int seed = 1; seed <= SEEDS; seed++) {
        struct stream stream = {0};
        struct rng rng;
        uint64_t done = 0;
        rng_seed(&rng, (uint64_t)seed);
        size_t count = cut(&rng, messages), first = 0, fetching = 0;
        while (done < BYTES) {
            size_t ahead = count - first < 8 ? count - first : 8;
            if (ahead > 0 && rng_below(&rng, 2)) { /* one of the next few arrives */
                size_t i = first + rng_below(&rng, ahead);
                struct message *message = &messages[i], arrived = *message;
                char data[MESSAGE_MAX];
                fill(data, arrived.at, arrived.len);
                if (arrived.fetched) {
                    arrived.piece = stream_piece(&stream, arrived.at, arrived.len);
                    assert_non_null(arrived.piece);
                } else {
                    assert_true(stream_take(&stream, arrived.at, data, arrived.len));
                }
                memmove(messages + first + 1, messages + first, (i - first) * sizeof *messages);
                messages[first++] = arrived;
            }
            while (fetching < first && (first == count || rng_below(&rng, 2))) { /* fetched bytes arrive */
                struct message *message = &messages[fetching++];
                if (!message->piece)
                    continue;
                fill(message->piece->data, message->at, message->len);
                message->piece->whole = true;
            }
            read_some(&stream, &rng, &done);
        }
        assert_false(stream_has(&stream));
        assert_int_equal(stream.pieces.len, 0);
        stream_done(&stream);
    }
}

static void bytes_out_of_place_are_refused(void **state)
{
    struct stream stream = {0};
    char data[100] = {0};
    assert_true(stream_take(&stream, 100, data, 100));
    assert_false(stream_take(&stream, 150, data, 10));
    assert_false(stream_take(&stream, 100, data, 1));
    assert_false(stream_take(&stream, 50, data, 51));
    assert_false(stream_take(&stream, 199, data, 1));
    assert_null(stream_piece(&stream, 0, 101));
    assert_false(stream_take(&stream, 0, data, 0));
    assert_true(stream_take(&stream, 0, data, 100));
    char out[300];
    assert_int_equal(stream_read(&stream, out, sizeof out), 200);
    assert_false(stream_take(&stream, 199, data, 1)); /* read already */
    assert_true(stream_take(&stream, 200, data, 1));
    stream_done(&stream);
}

static void window_bounds_the_sender(void **state)
{
    struct stream stream = {0};
    char data[1] = {0};
    assert_false(stream_take(&stream, STREAM_WINDOW, data, 1));
    assert_true(stream_take(&stream, STREAM_WINDOW - 1, data, 1));
    assert_null(stream_piece(&stream, 0, STREAM_WINDOW));
    assert_null(stream_piece(&stream, 0, SIZE_MAX));
    assert_null(stream_piece(&stream, UINT64_MAX, 2));
    assert_null(stream_piece(&stream, UINT64_MAX - 1, SIZE_MAX));
    assert_non_null(stream_piece(&stream, 0, STREAM_WINDOW - 1));
    stream_done(&stream);
}

/* A sender that leaves holes has no more than so many pieces kept for it. */
static void holes_are_bounded(void **state)
{
    struct stream stream = {0};
    char data[1] = {0};
    uint64_t at = 1;
    while (stream_take(&stream, at, data, 1))
        at += 2;
    assert_int_equal(stream.pieces.len, STREAM_PIECES_MAX);
    stream_done(&stream);
}

static void credit_opens_the_window(void **state)
{
    struct stream stream = {0};
    assert_int_equal(stream_room(&stream), STREAM_WINDOW);
    stream_sent(&stream, 1000);
    assert_int_equal(stream_room(&stream), STREAM_WINDOW - 1000);
    assert_false(stream_credit(&stream, 1001));
    assert_true(stream_credit(&stream, 400));
    assert_false(stream_credit(&stream, 399));
    assert_int_equal(stream_room(&stream), STREAM_WINDOW - 600);

    static char data[STREAM_WINDOW / 4];
    assert_true(stream_take(&stream, 0, data, sizeof data));
    assert_int_equal(stream_read(&stream, data, sizeof data - 1), sizeof data - 1);
    assert_false(stream_owes(&stream));
    assert_int_equal(stream_read(&stream, data, sizeof data), 1);
    assert_true(stream_owes(&stream));
    assert_int_equal(stream_tell(&stream), sizeof data);
    assert_false(stream_owes(&stream));
    stream_done(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_any_order_give_the_bytes),
        cmocka_unit_test(bytes_out_of_place_are_refused),
        cmocka_unit_test(window_bounds_the_sender),
        cmocka_unit_test(holes_are_bounded),
        cmocka_unit_test(credit_opens_the_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
