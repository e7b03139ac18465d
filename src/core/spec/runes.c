/* runes.c - sets of runes as sorted ranges, and the named classes. */
#include <stdlib.h>

#include "base/check.h"
#include "core/spec/pattern.h"

_Static_assert(RUNE_MAX < UINT32_MAX, "the rune behind the last one has a number");

static int compare_ranges(const void *a, const void *b)
{
    const struct rune_range *left = a, *right = b;
    if (left->low != right->low)
        return left->low < right->low ? -1 : 1;
    return left->high < right->high ? -1 : left->high > right->high;
}

void runes_add(struct runes *ranges, uint32_t low, uint32_t high)
{
    CHECK(low <= high && high <= RUNE_MAX);
    struct rune_range range = {low, high};
    vec_push(&ranges->list, range);
}

/* Adds the same letters in the other case. */
void runes_fold(struct runes *ranges)
{
    for (size_t i = 0, len = ranges->list.len; i < len; i++) {
        struct rune_range range = ranges->list.items[i];
        uint32_t low = range.low > 'a' ? range.low : 'a', high = range.high < 'z' ? range.high : 'z';
        if (low <= high)
            runes_add(ranges, low - 'a' + 'A', high - 'a' + 'A');
        low = range.low > 'A' ? range.low : 'A', high = range.high < 'Z' ? range.high : 'Z';
        if (low <= high)
            runes_add(ranges, low - 'A' + 'a', high - 'A' + 'a');
    }
}

/* Sorts and joins the ranges; complements them if `negated`. */
void runes_normalise(struct runes *ranges, bool negated)
{
    if (ranges->list.len > 1)
        qsort(ranges->list.items, ranges->list.len, sizeof ranges->list.items[0], compare_ranges);
    size_t len = 0;
    for (size_t i = 0; i < ranges->list.len; i++) {
        struct rune_range range = ranges->list.items[i];
        CHECK(range.low <= range.high && range.high <= RUNE_MAX);
        if (len > 0 && range.low <= ranges->list.items[len - 1].high + 1) {
            if (range.high > ranges->list.items[len - 1].high)
                ranges->list.items[len - 1].high = range.high;
        } else {
            ranges->list.items[len++] = range;
        }
    }
    CHECK(len <= ranges->list.len);
    ranges->list.len = len;
    if (!negated)
        return;
    struct runes gaps = {0};
    uint32_t low = 0;
    for (size_t i = 0; i < ranges->list.len; i++) {
        CHECK(ranges->list.items[i].low >= low); /* sorted, disjoint */
        if (ranges->list.items[i].low > low)
            runes_add(&gaps, low, ranges->list.items[i].low - 1);
        low = ranges->list.items[i].high + 1;
    }
    if (low <= RUNE_MAX)
        runes_add(&gaps, low, RUNE_MAX);
    vec_done(&ranges->list);
    *ranges = gaps;
}

static void add_pairs(struct runes *ranges, const char *pairs, bool negated)
{
    struct runes own = {0};
    for (size_t i = 0; pairs[i] != 0; i += 2) {
        CHECK(pairs[i + 1] != 0);
        runes_add(&own, (unsigned char)pairs[i], (unsigned char)pairs[i + 1]);
    }
    runes_normalise(&own, negated);
    for (size_t i = 0; i < own.list.len; i++)
        vec_push(&ranges->list, own.list.items[i]);
    vec_done(&own.list);
}

/* Adds \d \s \w or one of their opposites. Returns false for another letter. */
bool runes_add_perl(struct runes *ranges, char letter)
{
    switch (letter) {
    case 'd':
    case 'D':
        add_pairs(ranges, "09", letter == 'D');
        return true;
    case 's':
    case 'S':
        add_pairs(ranges, "\t\n\f\r  ", letter == 'S');
        return true;
    case 'w':
    case 'W':
        add_pairs(ranges, "09AZ__az", letter == 'W');
        return true;
    default:
        return false;
    }
}

bool runes_add_posix(struct runes *ranges, struct str name, bool negated)
{
    static const struct {
        const char *name, *pairs; /* low, high, low, high... */
    } classes[] = {
        {"alnum", "09AZaz"},   {"alpha", "AZaz"},     {"blank", "\t\t  "}, {"cntrl", "\x01\x1f\x7f\x7f"},
        {"digit", "09"},       {"graph", "!~"},       {"lower", "az"},     {"print", " ~"},
        {"punct", "!/:@[`{~"}, {"space", "\t\r  "},   {"upper", "AZ"},     {"word", "09AZ__az"},
        {"xdigit", "09AFaf"},  {"ascii", "\x01\x7f"},
    };
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (!str_is(name, classes[i].name))
            continue;
        add_pairs(ranges, classes[i].pairs, negated);
        return true;
    }
    return false;
}
