#include "core/model/address.h"

#include "base/check.h"

enum { PREFIX_MIN = 8, PREFIX_MAX = 30 };
#define HOST_FIRST                                                                                           \
    UINT32_C(0x01000000) /* 0.0.0.0/8 is "this network", 224.0.0.0 upward multicast and reserved */
#define HOST_LAST UINT32_C(0xdfffffff)

_Static_assert(PREFIX_MIN > 0 && PREFIX_MAX < 31, "a subnet has hosts between its first and last address");
_Static_assert(HOST_FIRST < HOST_LAST, "a range");

bool address_parse(struct str text, uint32_t *ret_address)
{
    uint32_t address = 0;
    for (int i = 0; i < 4; i++) {
        struct str number = text, rest;
        bool dot = str_cut(text, '.', &number, &rest);
        int64_t value;
        if (dot != (i < 3) || (number.len > 1 && number.data[0] == '0') || !number.len ||
            number.data[0] < '0' || number.data[0] > '9' || !str_to_i64(number, 0, 255, &value))
            return false;
        address = address << 8 | (uint32_t)value;
        if (dot)
            text = rest;
    }
    if (address < HOST_FIRST || address > HOST_LAST)
        return false;
    *ret_address = address;
    return true;
}

struct str address_text(struct arena *arena, uint32_t address)
{
    CHECK(address >= HOST_FIRST && address <= HOST_LAST);
    return arena_printf(arena, "%u.%u.%u.%u", address >> 24, address >> 16 & 255, address >> 8 & 255,
                        address & 255);
}

bool address_source_parse(struct str text, struct address_source *ret_source)
{
    struct address_source source = {.step = 1};
    struct str host = text, prefix;
    int64_t bits = 0;
    if (str_cut(text, '/', &host, &prefix) && !str_to_i64(prefix, PREFIX_MIN, PREFIX_MAX, &bits))
        return false;
    uint32_t address;
    if (!address_parse(host, &address))
        return false;
    source.next = address;
    source.prefix = (int)bits;
    CHECK(source.prefix == 0 || (source.prefix >= PREFIX_MIN && source.prefix <= PREFIX_MAX));
    *ret_source = source;
    return true;
}

bool address_next(struct address_source *source, uint32_t *ret_address)
{
    CHECK(source->list ? source->used <= source->list_len : source->step > 0);
    if (source->list) {
        if (source->used >= source->list_len)
            return false;
        *ret_address = source->list[source->used++];
        return true;
    }
    uint32_t hosts = source->prefix ? UINT32_MAX >> source->prefix : 0;
    while (hosts && ((source->next & hosts) == 0 || (source->next & hosts) == hosts) &&
           source->next <= HOST_LAST)
        source->next += source->step;
    if (source->next > HOST_LAST)
        return false;
    CHECK(source->next >= HOST_FIRST && (!hosts || (source->next & hosts) != hosts));
    *ret_address = (uint32_t)source->next;
    source->next += source->step;
    source->used++;
    return true;
}
