/* Any bytes to the readers of times, durations, quantities and integers: no crash, results in range, and what
 * is formatted from a result is read as the same again. */
#include <stdint.h>
#include <stdio.h>

#include "base/check.h"
#include "base/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_time(struct str text)
{
    int64_t time_ns, back;
    char written[40];
    if (!time_parse(text, &time_ns))
        return;
    time_format_micro(time_ns, written);
    if (time_parse(str_from(written), &back))
        CHECK(back <= time_ns && time_ns - back < NS_PER_US);
    else
        CHECK(time_ns < INT64_MIN + NS_PER_US); /* its microsecond begins before the range */
    time_format(time_ns, written);
    CHECK(strlen(written) == 20);
}

static void check_duration(struct str text)
{
    int64_t ns, back;
    char written[40];
    if (!duration_parse(text, &ns))
        return;
    CHECK(ns >= 0);
    snprintf(written, sizeof written, "%lldns", (long long)ns);
    CHECK(duration_parse(str_from(written), &back) && back == ns);
    duration_format(ns, written);
    duration_format(-ns, written);
    age_format(ns, written);
    age_format(-ns, written);
    bytes_format((uint64_t)ns, written);
}

static void check_quantity(struct str text)
{
    int64_t milli, back;
    char written[40];
    if (!quantity_parse_milli(text, &milli))
        return;
    CHECK(milli >= 0);
    snprintf(written, sizeof written, "%lldm", (long long)milli);
    CHECK(quantity_parse_milli(str_from(written), &back) && back == milli);
}

static void check_integer(struct str text)
{
    int64_t value, back;
    char written[40];
    if (!str_to_i64(text, INT64_MIN, INT64_MAX, &value))
        return;
    snprintf(written, sizeof written, "%lld", (long long)value);
    CHECK(str_to_i64(str_from(written), value, value, &back) && back == value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    check_time(text);
    check_duration(text);
    check_quantity(text);
    check_integer(text);
    return 0;
}
