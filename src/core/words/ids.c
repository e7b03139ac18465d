#include "core/words/ids.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"

uint64_t uids_ahead(uint64_t ahead, uint64_t seq, uint64_t ms)
{
    uint64_t limit = (UINT64_C(1) << UID_POSITION_BITS) / 16 * 15; /* the rest is left for new records */
    uint64_t due = ms / UID_POSITION_MS;
    if (due > limit)
        return ahead;
    return due > seq && due - seq > ahead ? due - seq : ahead;
}

static void put_hex(char *to, int digits, uint64_t value)
{
    CHECK(digits > 0 && digits <= 16);
    for (int i = digits; i-- > 0; value >>= 4)
        to[i] = "0123456789abcdef"[value & 0xf];
}

/* Does not use printf, because it runs for every owner reference and every line of a watch. */
void uid_text(obj_id id, char ret_text[UID_TEXT_MAX])
{
    /* The text has all 64 bits of `high`, a bijection of the id, so texts never collide. `low` only fills the
     * other digits. */
    uint64_t high = hash_mix(id), low = hash_mix(id ^ UINT64_C(0x5048414c414e58));
    memcpy(ret_text, "........-....-4...-8...-............", UID_TEXT_MAX);
    put_hex(ret_text, 8, high >> 32);
    put_hex(ret_text + 9, 4, high >> 16);
    put_hex(ret_text + 15, 3, high);
    put_hex(ret_text + 20, 1, high >> 12);
    put_hex(ret_text + 21, 2, low);
    put_hex(ret_text + 24, 4, low >> 12);
    put_hex(ret_text + 28, 8, low >> 28);
}

/* Inverts x ^= x >> shift, a step of hash_mix. */
static uint64_t unshift(uint64_t value, int shift)
{
    for (int known = shift; known < 64; known *= 2)
        value ^= value >> known;
    return value;
}

static uint64_t unmix(uint64_t value)
{
    value = unshift(value, 31) * UINT64_C(0x319642b2d24d8ec3); /* inverses modulo 2^64 */
    value = unshift(value, 27) * UINT64_C(0x96de1b173f119089);
    return unshift(value, 30);
}

bool uid_parse(struct str text, obj_id *ret_id)
{
    uint64_t high = 0;
    /* The positions of the digits of `high`, highest first; see uid_text. */
    static const uint8_t places[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 20, 15, 16, 17};
    if (text.len != UID_TEXT_MAX - 1)
        return false;
    for (size_t i = 0; i < sizeof places; i++) {
        char c = text.data[places[i]];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return false;
        high = high << 4 | (unsigned)digit;
    }
    obj_id id = unmix(high);
    char again[UID_TEXT_MAX];
    uid_text(id, again);
    if (id == 0 || !str_is(text, again))
        return false;
    *ret_id = id;
    return true;
}

void uid_suffix(obj_id id, char ret_text[SUFFIX_TEXT_MAX])
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    _Static_assert(sizeof alphabet - 1 == 27, "27^5 < 2^24: the suffix uses a part of the hash");
    uint64_t bits = hash_mix(id + 1);
    for (int i = 0; i < SUFFIX_TEXT_MAX - 1; i++) {
        ret_text[i] = alphabet[bits % (sizeof(alphabet) - 1)];
        bits /= sizeof(alphabet) - 1;
    }
    ret_text[SUFFIX_TEXT_MAX - 1] = 0;
}

struct str generated_name(struct arena *arena, struct str prefix, uint64_t draw)
{
    CHECK(prefix.data || prefix.len == 0);
    char suffix[SUFFIX_TEXT_MAX];
    uid_suffix(draw, suffix);
    if (prefix.len > NAME_PREFIX_MAX)
        prefix.len = NAME_PREFIX_MAX;
    return arena_printf(arena, STR_FORMAT "%s", STR_ARG(prefix), suffix);
}
