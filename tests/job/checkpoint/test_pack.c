/* Pieces of what goes to another machine: what comes out is what went in, smaller on the way where it can be;
 * whatever else comes is refused, and nothing is written beside its place. */
#include "job/gang.h"

#include "base/crc32c.h"
#include "job/checkpoint/pack.h"

#define SMALL ((size_t)100 * 1000)

static struct pack *pack_new(void)
{
    struct pack *pack;
    struct phx_error error;
    assert_int_equal(pack_open(PACK_LIBRARY, 1, &pack, &error), 0);
    return pack;
}

static void fill(uint8_t *bytes, size_t len, bool random)
{
    uint32_t word = 1;
    for (size_t i = 0; i < len; i++) {
        word = word * 1664525 + 1013904223;
        bytes[i] = random ? (uint8_t)(word >> 24) : (uint8_t)(i / 100);
    }
}

/* As the side that receives does it, `step` bytes at a time; the size on the wire, 0: refused. */
static size_t unpack(struct pack *pack, const uint8_t *wire, size_t wire_len, uint8_t *to, size_t len,
                     size_t step)
{
    struct pack_inbox inbox = {0};
    size_t at = 0, room;
    uint32_t crc = 0;
    int whole = 0;
    assert_true(pack_room(&inbox));
    while (whole == 0 && at < wire_len) {
        uint8_t *into = pack_next(&inbox, &room);
        assert_true(room > 0);
        room = room < step ? room : step;
        room = room < wire_len - at ? room : wire_len - at;
        memcpy(into, wire + at, room);
        at += room;
        whole = pack_came(&inbox, room, len);
    }
    bool taken = whole > 0 && pack_take(pack, &inbox, to, len, &crc);
    pack_room_done(&inbox);
    assert_true(!taken || crc == crc32c(0, to, len));
    return taken ? at : 0;
}

/* Head and body, one after the other. */
static size_t put_on_wire(struct pack *pack, const uint8_t *piece, size_t len, uint8_t *wire)
{
    const uint8_t *head, *body;
    size_t size = pack_piece(pack, piece, len, &head, &body);
    memcpy(wire, head, PACK_HEAD);
    memcpy(wire + PACK_HEAD, body, size);
    return PACK_HEAD + size;
}

static void test_round_trip(void **unused)
{
    static const size_t lengths[] = {1, 2, 100, 65536, SMALL, PACK_PIECE};
    struct pack *pack = pack_new();
    uint8_t *piece = malloc(PACK_PIECE), *back = malloc(PACK_PIECE), *wire = malloc(PACK_HEAD + PACK_PIECE);
    for (int random = 0; random < 2; random++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            size_t len = lengths[i];
            fill(piece, len, random);
            size_t size = put_on_wire(pack, piece, len, wire);
            assert_true(random || len < 100 ? size == PACK_HEAD + len : size < PACK_HEAD + len / 2);
            memset(back, 0, len);
            assert_int_equal(unpack(pack, wire, size, back, len, i % 2 ? 7 : SIZE_MAX), size);
            assert_memory_equal(back, piece, len);
        }
    free(piece);
    free(back);
    free(wire);
    pack_close(pack);
}

/* A piece of another length than its place, one that is cut short, and every byte of it another one. */
static void test_hostile(void **unused)
{
    struct pack *pack = pack_new();
    static uint8_t piece[SMALL], wire[PACK_HEAD + SMALL], back[SMALL + 64];
    fill(piece, SMALL, false);
    size_t size = put_on_wire(pack, piece, SMALL, wire);
    memset(back, 0xee, sizeof back);
    assert_int_equal(unpack(pack, wire, size, back, SMALL - 1, SIZE_MAX), 0);
    assert_int_equal(back[SMALL - 1], 0xee);
    assert_int_equal(unpack(pack, wire, size, back, SMALL + 1, SIZE_MAX), 0);
    for (size_t len = 0; len < size; len += 1 + len / 50)
        assert_int_equal(unpack(pack, wire, len, back, SMALL, SIZE_MAX), 0);
    for (size_t at = 0; at < size; at++) {
        wire[at] ^= 0xff;
        size_t used = unpack(pack, wire, size, back, SMALL, SIZE_MAX);
        assert_true(used == 0 ||
                    used <= size); /* what the frame itself does not notice, the shard's sum does */
        wire[at] ^= 0xff;
    }
    memset(wire, 0, PACK_HEAD); /* nothing at all, and more than there may be */
    assert_int_equal(unpack(pack, wire, size, back, SMALL, SIZE_MAX), 0);
    memset(wire, 0xff, PACK_HEAD);
    assert_int_equal(unpack(pack, wire, size, back, SMALL, SIZE_MAX), 0);
    for (size_t i = SMALL + 1; i < sizeof back; i++)
        assert_int_equal(back[i], 0xee);
    pack_close(pack);
}

static void test_absent(void **unused)
{
    struct pack *pack = NULL;
    struct phx_error error;
    assert_int_equal(pack_open("libnowhere.so.1", 1, &pack, &error), PHX_ERROR_NONE);
    assert_non_null(strstr(error.message, "libnowhere.so.1"));
    assert_int_equal(pack_open("libm.so.6", 1, &pack, &error), PHX_ERROR_NONE); /* it is not zstd's */
    assert_non_null(strstr(error.message, "ZSTD_"));
    assert_null(pack);
    pack_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
