/* Frames of RFC 6455: its examples, its rules, and that the cuts between reads change nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "net/websocket.h"

/* The messages of a stream, as text: pieces of a message joined, events marked. */
static void tell(struct buf *out, const struct websocket_event *event)
{
    switch (event->kind) {
    case WEBSOCKET_DATA:
        buf_printf(out, "%s", event->first ? event->text ? "<text " : "<binary " : "");
        buf_add_str(out, event->bytes);
        buf_printf(out, "%s", event->last ? ">" : "");
        break;
    case WEBSOCKET_PING:
    case WEBSOCKET_PONG:
        buf_printf(out, "<%s " STR_FORMAT ">", event->kind == WEBSOCKET_PING ? "ping" : "pong",
                   STR_ARG(event->bytes));
        break;
    case WEBSOCKET_CLOSED:
    case WEBSOCKET_BROKEN:
        buf_printf(out, "<%s %u>", event->kind == WEBSOCKET_CLOSED ? "closed" : "broken", event->code);
        break;
    case WEBSOCKET_MORE:
        break;
    }
}

static void feed(struct websocket *socket, struct str bytes, struct buf *out)
{
    struct websocket_event event;
    struct buf copy BUF_CLEANUP = {0};
    buf_add_str(&copy, bytes);
    size_t at = 0, used;
    do {
        websocket_next(socket, copy.data + at, copy.len - at, &used, &event);
        at += used;
        tell(out, &event);
    } while (event.kind != WEBSOCKET_MORE);
    assert_int_equal(at, copy.len);
}

static void expect(enum websocket_role role, struct str bytes, const char *wanted)
{
    struct buf out BUF_CLEANUP = {0};
    struct websocket socket;
    websocket_init(&socket, role, 1000);
    feed(&socket, bytes, &out);
    buf_add_char(&out, 0);
    assert_string_equal(out.data, wanted);
}

#define BYTES(literal) STR(literal)

static void test_examples(void **state)
{
    (void)state; /* RFC 6455 section 5.7 */
    expect(WEBSOCKET_CLIENT, BYTES("\x81\x05Hello"), "<text Hello>");
    expect(WEBSOCKET_SERVER, BYTES("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "<text Hello>");
    expect(WEBSOCKET_CLIENT, BYTES("\x01\x03Hel\x80\x02lo"), "<text Hello>");
    expect(WEBSOCKET_CLIENT, BYTES("\x89\x05Hello"), "<ping Hello>");
    expect(WEBSOCKET_SERVER, BYTES("\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "<pong Hello>");
    /* A ping inside a fragmented message. */
    expect(WEBSOCKET_CLIENT, BYTES("\x02\x03Hel\x89\x00\x80\x02lo"), "<binary Hel<ping >lo>");
    char accept[WEBSOCKET_ACCEPT_BYTES + 1]; /* section 1.3 */
    assert_true(websocket_key_valid(STR("dGhlIHNhbXBsZSBub25jZQ==")));
    websocket_accept(STR("dGhlIHNhbXBsZSBub25jZQ=="), accept);
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    char key[WEBSOCKET_KEY_BYTES + 1];
    websocket_key((const uint8_t *)"the sample nonce", key);
    assert_string_equal(key, "dGhlIHNhbXBsZSBub25jZQ==");
    assert_false(websocket_key_valid(STR("dGhlIHNhbXBsZSBub25jZQ=")));
    assert_false(websocket_key_valid(STR("dGhlIHNhbXBsZSBub25j-Q==")));
}

static void test_broken_frames(void **state)
{
    (void)state;
    expect(WEBSOCKET_SERVER, BYTES("\x82\x01x"), "<broken 1002>");                   /* not masked */
    expect(WEBSOCKET_CLIENT, BYTES("\x82\x81\x00\x00\x00\x00x"), "<broken 1002>");   /* masked */
    expect(WEBSOCKET_CLIENT, BYTES("\xc2\x01x"), "<broken 1002>");                   /* reserved bit */
    expect(WEBSOCKET_CLIENT, BYTES("\x83\x01x"), "<broken 1002>");                   /* opcode 3 */
    expect(WEBSOCKET_CLIENT, BYTES("\x8b\x01x"), "<broken 1002>");                   /* opcode 11 */
    expect(WEBSOCKET_CLIENT, BYTES("\x80\x01x"), "<broken 1002>");                   /* continues nothing */
    expect(WEBSOCKET_CLIENT, BYTES("\x02\x01x\x82\x01y"), "<binary x<broken 1002>"); /* inside another */
    expect(WEBSOCKET_CLIENT, BYTES("\x09\x00"), "<broken 1002>");                    /* fragmented ping */
    expect(WEBSOCKET_CLIENT, BYTES("\x89\x7e\x00\x7e"), "<broken 1002>");            /* ping of 126 */
    expect(WEBSOCKET_CLIENT, BYTES("\x82\x7e\x00\x05Hello"), "<broken 1002>");       /* 5 in 16 bits */
    expect(WEBSOCKET_CLIENT, BYTES("\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00"), "<broken 1002>");
    expect(WEBSOCKET_CLIENT, BYTES("\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00"), "<broken 1009>");
    expect(WEBSOCKET_CLIENT, BYTES("\x82\x7e\x03\xe9"), "<broken 1009>"); /* one more than 1000 */
    expect(WEBSOCKET_CLIENT, BYTES("\x88\x01x"), "<broken 1002>");        /* half a close code */
    expect(WEBSOCKET_CLIENT, BYTES("\x88\x02\x03\xed"), "<broken 1002>"); /* 1005 */
    expect(WEBSOCKET_CLIENT, BYTES("\x88\x03\x03\xe8\xff"), "<broken 1007>");
    expect(WEBSOCKET_CLIENT, BYTES("\x88\x04\x03\xe8ok\x89\x00"), "<closed 1000>"); /* nothing behind it */
    expect(WEBSOCKET_CLIENT, BYTES("\x88\x00"), "<closed 1005>");
}

static void random_bytes(struct rng *rng, struct buf *out, size_t len)
{
    for (size_t i = 0; i < len; i++)
        buf_add_char(out, (char)rng_next(rng));
}

/* Whatever messages: written, cut anywhere and read, they are the same. */
static void test_any_cut(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 20260101);
    for (int round = 0; round < 300; round++) {
        struct buf wire BUF_CLEANUP = {0}, wanted BUF_CLEANUP = {0}, got BUF_CLEANUP = {0};
        static const size_t lens[] = {0, 1, 125, 126, 127, 1000, 65535, 65536, 70000};
        enum websocket_role role = round & 1 ? WEBSOCKET_CLIENT : WEBSOCKET_SERVER;
        for (int i = 0; i < 4; i++) {
            struct buf payload BUF_CLEANUP = {0};
            uint8_t mask[4] = {(uint8_t)rng_next(&rng), (uint8_t)rng_next(&rng), (uint8_t)rng_next(&rng), 7};
            const uint8_t *used = role == WEBSOCKET_SERVER ? mask : NULL;
            bool ping = rng_below(&rng, 3) == 0;
            random_bytes(&rng, &payload, lens[rng_below(&rng, ping ? 3 : 9)]);
            size_t head = payload.len ? rng_below(&rng, 2) : 0;
            websocket_put(&wire, ping ? WEBSOCKET_OP_PING : WEBSOCKET_BINARY, used,
                          (struct str){payload.data, head},
                          (struct str){payload.data + (payload.data ? head : 0), payload.len - head});
            struct websocket_event event = {
                ping ? WEBSOCKET_PING : WEBSOCKET_DATA, buf_str(&payload), true, true, false, 0};
            tell(&wanted, &event);
        }
        struct websocket socket;
        websocket_init(&socket, role, 1 << 20);
        for (size_t at = 0; at < wire.len;) {
            size_t len = 1 + rng_below(&rng, round % 3 ? 5000 : 9);
            len = len < wire.len - at ? len : wire.len - at;
            feed(&socket, (struct str){wire.data + at, len}, &got);
            at += len;
        }
        assert_int_equal(got.len, wanted.len);
        assert_memory_equal(got.data, wanted.data, got.len);
    }
}

static void test_close(void **state)
{
    (void)state;
    struct buf out BUF_CLEANUP = {0}, reason BUF_CLEANUP = {0};
    for (int i = 0; i < 100; i++)
        buf_add_str(&reason, STR("\xc3\xa4"));
    websocket_put_close(&out, NULL, WEBSOCKET_GOING_AWAY, buf_str(&reason));
    assert_true(out.len <= 2 + WEBSOCKET_CONTROL_MAX);
    expect(WEBSOCKET_CLIENT, buf_str(&out),
           "<closed 1001>"); /* cut at a character's end, or it were broken */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_broken_frames),
        cmocka_unit_test(test_any_cut),
        cmocka_unit_test(test_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
