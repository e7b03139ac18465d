/* Any bytes as the packed pieces that another machine sends: the checksum of what is taken is that of what
 * lies at its place, and nothing is written beside it. What is packed comes out again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "job/checkpoint/pack.h"

enum { GUARD = 64, PLACE_MAX = 70000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pack *the_pack(void)
{
    static struct pack *pack; /* for all inputs: making it takes longer than an input */
    if (pack == NULL && pack_open(PACK_LIBRARY, 1, &pack, NULL) != 0)
        abort();
    return pack;
}

/* Pieces of one length, until one is none; `step` bytes come at once. */
static void receive(const uint8_t *data, size_t size, size_t place_len, size_t step)
{
    static uint8_t place[PLACE_MAX + GUARD];
    struct pack_inbox inbox = {0};
    uint32_t crc = 0;
    int whole = 0;
    memset(place + place_len, 0xee, GUARD);
    if (!pack_room(&inbox))
        return;
    while (size > 0 && whole >= 0) {
        size_t room;
        uint8_t *into = pack_next(&inbox, &room);
        room = room < step ? room : step;
        room = room < size ? room : size;
        memcpy(into, data, room);
        data += room;
        size -= room;
        whole = pack_came(&inbox, room, place_len);
        if (whole > 0 && !pack_take(the_pack(), &inbox, place, place_len, &crc))
            whole = -1;
        else if (whole > 0 && crc != crc32c(0, place, place_len))
            abort();
        crc = 0;
        for (size_t i = 0; i < GUARD; i++)
            if (place[place_len + i] != 0xee)
                abort();
    }
    pack_room_done(&inbox);
}

static void send(const uint8_t *data, size_t size)
{
    static uint8_t back[PLACE_MAX];
    struct pack_inbox inbox = {0};
    const uint8_t *head, *body;
    size_t room;
    uint32_t crc = 0;
    if (size == 0 || size > sizeof back || !pack_room(&inbox))
        return;
    size_t len = pack_piece(the_pack(), data, size, &head, &body);
    memcpy(pack_next(&inbox, &room), head, PACK_HEAD);
    if (pack_came(&inbox, PACK_HEAD, size) != 0)
        abort();
    memcpy(pack_next(&inbox, &room), body, len);
    if (room != len || pack_came(&inbox, len, size) != 1 ||
        !pack_take(the_pack(), &inbox, back, size, &crc) || memcmp(back, data, size) != 0 ||
        crc != crc32c(0, data, size))
        abort();
    pack_room_done(&inbox);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    size_t place_len = 1 + (size_t)(data[0] | data[1] << 8), step = 1 + (size_t)data[2] * 31;
    receive(data + 3, size - 3, place_len, step);
    send(data + 3, size - 3);
    return 0;
}
