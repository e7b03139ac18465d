/* units.c - durations and sizes; calendar times are in time.c. */
#include "base/units.h"

#include <stdio.h>

#include "base/check.h"

enum { MINUTE = 60, HOUR = 3600, DAY = 24 * 3600, DAYS_PER_YEAR = 365 };

/* Writes "5m" or "5m3s": the smaller part only if it is not zero. Both parts fit, because 64 bits of
 * nanoseconds are at most 292 years. */
static void two_parts(char ret_text[24], int64_t large, char large_unit, int64_t small, char small_unit)
{
    if (small)
        snprintf(ret_text, 24, "%u%c%u%c", (unsigned)large, large_unit, (unsigned)small, small_unit);
    else
        snprintf(ret_text, 24, "%u%c", (unsigned)large, large_unit);
}

void age_format(int64_t duration_ns, char ret_text[24])
{
    int64_t seconds = duration_ns / NS_PER_SECOND, minutes = seconds / MINUTE, hours = seconds / HOUR;
    int64_t days = seconds / DAY;
    if (seconds < -1)
        snprintf(ret_text, 24, "<invalid>"); /* clocks may differ by a second, not by more */
    else if (seconds < 0)
        snprintf(ret_text, 24, "0s");
    else if (seconds < 2 * MINUTE)
        two_parts(ret_text, seconds, 's', 0, 0);
    else if (minutes < 10)
        two_parts(ret_text, minutes, 'm', seconds % MINUTE, 's');
    else if (hours < 3)
        two_parts(ret_text, minutes, 'm', 0, 0);
    else if (hours < 8)
        two_parts(ret_text, hours, 'h', minutes % 60, 'm');
    else if (hours < 48)
        two_parts(ret_text, hours, 'h', 0, 0);
    else if (days < 8)
        two_parts(ret_text, days, 'd', hours % 24, 'h');
    else if (days < 2 * DAYS_PER_YEAR)
        two_parts(ret_text, days, 'd', 0, 0);
    else if (days < 8 * DAYS_PER_YEAR)
        two_parts(ret_text, days / DAYS_PER_YEAR, 'y', days % DAYS_PER_YEAR, 'd');
    else
        two_parts(ret_text, days / DAYS_PER_YEAR, 'y', 0, 0);
}

/* Writes `value` in `unit`s with `decimals`, rounded half up. Returns false if that reaches `limit` units. */
static bool format_scaled(char *text, size_t size, uint64_t value, uint64_t unit, int decimals,
                          uint64_t limit, const char *name)
{
    unsigned scale = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
    unsigned __int128 scaled = ((unsigned __int128)value * scale + unit / 2) / unit;
    if (scaled >= (unsigned __int128)limit * scale)
        return false;
    uint64_t all = (uint64_t)scaled;
    if (decimals) /* below the limit, which is far below 32 bits if decimals are shown */
        snprintf(text, size, "%u.%0*u %s", (unsigned)(all / scale), decimals, (unsigned)(all % scale), name);
    else
        snprintf(text, size, "%llu %s", (unsigned long long)all, name);
    return true;
}

/* Writes three digits: "4.56 s", "12.3 ms", "340 us". */
static bool format_three(char *text, size_t size, uint64_t value, uint64_t unit, uint64_t limit,
                         const char *name)
{
    return format_scaled(text, size, value, unit, 2, 10, name) ||
           format_scaled(text, size, value, unit, 1, limit < 100 ? limit : 100, name) ||
           format_scaled(text, size, value, unit, 0, limit, name);
}

void duration_format(int64_t duration_ns, char ret_text[24])
{
    char *text = ret_text;
    size_t size = 24;
    uint64_t ns = duration_ns < 0 ? -(uint64_t)duration_ns : (uint64_t)duration_ns;
    if (duration_ns < 0) {
        *text++ = '-';
        size--;
    }
    if (ns < 1000) {
        snprintf(text, size, "%llu ns", (unsigned long long)ns);
        return;
    }
    if (format_three(text, size, ns, NS_PER_US, 1000, "us") ||
        format_three(text, size, ns, NS_PER_MS, 1000, "ms") ||
        format_three(text, size, ns, NS_PER_SECOND, 60, "s"))
        return;
    uint64_t seconds = ns / NS_PER_SECOND + (ns % NS_PER_SECOND >= NS_PER_SECOND / 2),
             minutes = seconds / MINUTE;
    if (seconds < HOUR)
        snprintf(text, size, "%llum%02llus", (unsigned long long)minutes,
                 (unsigned long long)(seconds % MINUTE));
    else if (seconds < 2 * DAY)
        snprintf(text, size, "%lluh%02llum", (unsigned long long)(minutes / 60),
                 (unsigned long long)(minutes % 60));
    else
        snprintf(text, size, "%llud%02lluh", (unsigned long long)(seconds / DAY),
                 (unsigned long long)(seconds % DAY / HOUR));
}

void bytes_format(uint64_t bytes, char ret_text[24])
{
    static const char *const names[] = {"KB", "MB", "GB", "TB", "PB"};
    if (bytes < 1000) {
        snprintf(ret_text, 24, "%llu B", (unsigned long long)bytes);
        return;
    }
    uint64_t unit = 1000;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++, unit *= 1000) {
        if (format_scaled(ret_text, 24, bytes, unit, 1, 1000, names[i]))
            return;
    }
    format_scaled(ret_text, 24, bytes, unit, 1, UINT64_MAX, "EB");
}

/* A decimal number as written: the digits before and after the point. */
struct decimal {
    struct str whole, fraction;
};

/* Cuts digits [. digits] or . digits from the front of *text. */
static bool cut_decimal(struct str *text, struct decimal *ret_decimal)
{
    struct decimal decimal = {{text->data, 0}, {NULL, 0}};
    size_t at = 0;
    while (at < text->len && text->data[at] >= '0' && text->data[at] <= '9')
        at++;
    decimal.whole.len = at;
    if (at < text->len && text->data[at] == '.') {
        size_t start = ++at;
        while (at < text->len && text->data[at] >= '0' && text->data[at] <= '9')
            at++;
        decimal.fraction = (struct str){text->data + start, at - start};
    }
    if (decimal.whole.len + decimal.fraction.len == 0)
        return false;
    *text = (struct str){text->data + at, text->len - at};
    *ret_decimal = decimal;
    return true;
}

/* Returns the digit at a place before (>= 0) or after (< 0) the point: place 0 is the ones, -1 the tenths. */
static unsigned digit_at(const struct decimal *decimal, int64_t place)
{
    if (place >= 0)
        return (uint64_t)place < decimal->whole.len
                   ? (unsigned)(decimal->whole.data[decimal->whole.len - 1 - (size_t)place] - '0')
                   : 0;
    uint64_t index = (uint64_t)(-place - 1);
    return index < decimal->fraction.len ? (unsigned)(decimal->fraction.data[index] - '0') : 0;
}

/* Computes decimal * 10^shift * factor exactly, as an integer rounded down or up. Returns false beyond
 * int64_t. |shift| <= 2^32, factor <= 2^60. Works on the digits, as no machine type holds all of
 * "0.000…1E". */
static bool scale_decimal(const struct decimal *decimal, int64_t shift, uint64_t factor, bool up,
                          int64_t *ret_value)
{
    uint64_t whole = 0;
    int64_t top = (int64_t)decimal->whole.len - 1, bottom = -(int64_t)decimal->fraction.len;
    /* Leading zeros must cost nothing, and zero times anything is zero. */
    while (top >= bottom && digit_at(decimal, top) == 0)
        top--;
    if (top < bottom) {
        *ret_value = 0;
        return true;
    }
    if (top + shift > 20)
        return false;
    for (int64_t place = top; place + shift >= 0; place--) {
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, digit_at(decimal, place), &whole))
            return false;
    }
    /* The rest in Horner's form from its last digit; of the remainders it only matters whether one is not
     * zero. */
    bool more = false;
    uint64_t rest = 0;
    int64_t first = -shift - 1; /* the place that becomes the tenths */
    if (first >= bottom) {
        int64_t last = bottom, high = first < top ? first : top;
        for (int64_t place = last; place <= high; place++) {
            unsigned __int128 sum = (unsigned __int128)factor * digit_at(decimal, place) + rest;
            more |= sum % 10 != 0;
            rest = (uint64_t)(sum / 10);
        }
        for (int64_t place = high; place < first && (rest || more);
             place++) { /* zeros before the first digit */
            more |= rest % 10 != 0;
            if (rest == 0)
                break;
            rest /= 10;
        }
    }
    unsigned __int128 total = (unsigned __int128)whole * factor + rest + (up && more);
    if (total > INT64_MAX)
        return false;
    *ret_value = (int64_t)total;
    return true;
}

static bool cut_prefix(struct str *text, const char *prefix)
{
    struct str wanted = str_from(prefix);
    if (!str_starts(*text, wanted))
        return false;
    *text = (struct str){text->data + wanted.len, text->len - wanted.len};
    return true;
}

bool duration_parse(struct str text, int64_t *ret_duration_ns)
{
    /* "ms" before "m": the longer name is tried first. */
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {{"ns", 1},
                 {"us", NS_PER_US},
                 {"\xc2\xb5s", NS_PER_US}, /* both micro signs of Unicode */
                 {"\xce\xbcs", NS_PER_US},
                 {"ms", NS_PER_MS},
                 {"s", NS_PER_SECOND},
                 {"m", MINUTE * NS_PER_SECOND},
                 {"h", HOUR * NS_PER_SECOND},
                 {"d", DAY * NS_PER_SECOND}};
    int64_t total = 0;
    bool first = true;
    do {
        struct decimal decimal;
        if (!cut_decimal(&text, &decimal))
            return false;
        int64_t ns = 0, part;
        if (first && text.len == 0)
            ns = NS_PER_SECOND;
        for (size_t i = 0; i < sizeof units / sizeof *units && !ns; i++) {
            if (cut_prefix(&text, units[i].name))
                ns = units[i].ns;
        }
        if (!ns || !scale_decimal(&decimal, 0, (uint64_t)ns, false, &part) ||
            __builtin_add_overflow(total, part, &total))
            return false;
        first = false;
    } while (text.len);
    *ret_duration_ns = total;
    return true;
}

/* Reads a suffix as a power of ten and a power of two. Returns false if there is no such suffix. */
static bool read_suffix(struct str suffix, int64_t *ret_tens, int *ret_twos)
{
    static const char decimal[] = "num kMGTPE", binary[] = "KMGTPE";
    *ret_tens = 0;
    *ret_twos = 0;
    if (suffix.len == 0)
        return true;
    if (suffix.len == 1) {
        const char *at =
            suffix.data[0] == ' ' || suffix.data[0] == 0 ? NULL : strchr(decimal, suffix.data[0]);
        if (at)
            *ret_tens = 3 * (at - decimal) - 9;
        return at;
    }
    if (suffix.len == 2 && suffix.data[1] == 'i') {
        const char *at = suffix.data[0] == 0 ? NULL : strchr(binary, suffix.data[0]);
        if (at)
            *ret_twos = 10 * (int)(at - binary + 1);
        return at;
    }
    if (suffix.data[0] != 'e' && suffix.data[0] != 'E')
        return false;
    struct str exponent = {suffix.data + 1, suffix.len - 1};
    if (exponent.data[0] == '+')
        exponent = (struct str){exponent.data + 1, exponent.len - 1};
    if (exponent.len && exponent.data[0] == '-' && suffix.data[1] == '+')
        return false;
    return str_to_i64(exponent, -100000, 100000, ret_tens);
}

static bool parse_quantity(struct str text, int64_t digits, int64_t *ret_number)
{
    if (text.len && text.data[0] == '+')
        text = (struct str){text.data + 1, text.len - 1};
    struct decimal decimal;
    int64_t tens;
    int twos;
    if (!cut_decimal(&text, &decimal) || !read_suffix(text, &tens, &twos))
        return false;
    return scale_decimal(&decimal, tens + digits, UINT64_C(1) << twos, true, ret_number);
}

bool quantity_parse_milli(struct str text, int64_t *ret_milli)
{
    return parse_quantity(text, 3, ret_milli);
}

bool quantity_parse_nano(struct str text, int64_t *ret_nano)
{
    return parse_quantity(text, 9, ret_nano);
}

/* Formats a quantity, moving whole thousands from the number into the suffix. */
static void format_quantity(char ret_text[QUANTITY_TEXT_MAX], int64_t amount, int scale, bool exponent)
{
    static const char suffixes[] = "num kMGTPE"; /* of 10^-9, 10^-6 ... 10^18 */
    while (amount % 1000 == 0 && (exponent || scale < 18)) {
        amount /= 1000;
        scale += 3;
    }
    CHECK(scale >= -9 && scale % 3 == 0);
    if (exponent && scale != 0)
        snprintf(ret_text, QUANTITY_TEXT_MAX, "%llde%d", (long long)amount, scale);
    else if (scale == 0)
        snprintf(ret_text, QUANTITY_TEXT_MAX, "%lld", (long long)amount);
    else
        snprintf(ret_text, QUANTITY_TEXT_MAX, "%lld%c", (long long)amount, suffixes[scale / 3 + 3]);
}

static void format_binary(char ret_text[QUANTITY_TEXT_MAX], int64_t units)
{
    static const char suffixes[] = "KMGTPE";
    int power = 0;
    for (; units % 1024 == 0 && power < 6; power++)
        units /= 1024;
    if (power == 0)
        snprintf(ret_text, QUANTITY_TEXT_MAX, "%lld", (long long)units);
    else
        snprintf(ret_text, QUANTITY_TEXT_MAX, "%lld%ci", (long long)units, suffixes[power - 1]);
}

bool quantity_canonical(struct str text, char ret_text[QUANTITY_TEXT_MAX])
{
    if (text.len && text.data[0] == '+')
        text = (struct str){text.data + 1, text.len - 1};
    struct decimal decimal;
    int64_t tens, amount, units;
    int twos, scale = -9;
    if (!cut_decimal(&text, &decimal) || !read_suffix(text, &tens, &twos))
        return false;
    /* The finest scale at which the number fits; nothing is finer than 10^-9. */
    while (!scale_decimal(&decimal, tens - scale, UINT64_C(1) << twos, true, &amount))
        if ((scale += 3) > 0)
            return false;
    bool is_whole = scale_decimal(&decimal, tens, UINT64_C(1) << twos, false, &units);
    for (int i = scale; i < 0 && is_whole; i++)
        is_whole = !__builtin_mul_overflow(units, 10, &units);
    is_whole = is_whole && units == amount;
    if (amount == 0)
        snprintf(ret_text, QUANTITY_TEXT_MAX, "0");
    else if (twos && is_whole && scale_decimal(&decimal, tens, UINT64_C(1) << twos, false, &units) &&
             units >= 1024)
        format_binary(ret_text, units);
    else
        format_quantity(ret_text, amount, scale, text.len > 1 && !twos);
    return true;
}
