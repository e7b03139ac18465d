#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <time.h>

#include "base/rng.h"
#include "base/units.h"

/* Against the C library's calendar, for random times of the whole range. */
static void times_round_trip(void **state)
{
    struct rng rng;
    rng_seed(&rng, 17);
    for (int round = 0; round < 50000; round++) {
        int64_t time_ns = (int64_t)rng_next(&rng) >> rng_below(&rng, 20), back;
        int64_t floor_seconds = time_ns / NS_PER_SECOND - (time_ns % NS_PER_SECOND < 0);
        char text[32], micro[40], expect[40];
        time_t seconds = (time_t)floor_seconds;
        struct tm parts;
        assert_non_null(gmtime_r(&seconds, &parts));
        strftime(expect, sizeof expect, "%Y-%m-%dT%H:%M:%SZ", &parts);
        time_format(time_ns, text);
        assert_string_equal(text, expect);
        /* The earliest second of the range begins before it. */
        bool whole = floor_seconds >= INT64_MIN / NS_PER_SECOND;
        assert_int_equal(time_parse(str_from(text), &back), whole);
        if (whole)
            assert_int_equal(back, floor_seconds * NS_PER_SECOND);
        time_format_micro(time_ns, micro);
        if (time_parse(str_from(micro), &back))
            assert_in_range(time_ns - back, 0, NS_PER_US - 1);
    }
}

static void times_are_strict(void **state)
{
    static const char *const good[] = {"2026-08-21T07:05:09Z", "2024-02-29T23:59:59.123456789123Z",
                                       "2000-01-01t00:00:00z", "2262-04-11T23:47:16.854775807Z",
                                       "1677-09-21T00:12:43.145224192Z"};
    static const char *const bad[] = {"",
                                      "2026-08-21",
                                      "2026-08-21 07:05:09Z",
                                      "2026-08-21T07:05:09",
                                      "2026-08-21T07:05:09.Z",
                                      "2026-08-21T07:05:09Z ",
                                      "2026-08-21T24:00:00Z",
                                      "2026-08-21T07:60:09Z",
                                      "2026-08-21T07:05:60Z",
                                      "2026-13-01T07:05:09Z",
                                      "2026-00-01T07:05:09Z",
                                      "2026-04-31T07:05:09Z",
                                      "2023-02-29T07:05:09Z",
                                      "1900-02-29T07:05:09Z",
                                      "2026-08-21T07:05:09+0200",
                                      "2026-08-21T07:05:09+24:00",
                                      "26-08-21T07:05:09Z",
                                      "2262-04-11T23:47:16.854775808Z",
                                      "1677-09-21T00:12:43.145224191Z",
                                      "9999-01-01T00:00:00Z"};
    int64_t time_ns = 42, other;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(time_parse(str_from(bad[i]), &time_ns));
    assert_int_equal(time_ns, 42);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(time_parse(str_from(good[i]), &time_ns));
    assert_true(time_parse(STR("2026-08-21T07:05:09.5+02:30"), &time_ns));
    assert_true(time_parse(STR("2026-08-21T04:35:09.5Z"), &other));
    assert_int_equal(time_ns, other);
}

static void ages(void **state)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {
        {-2, "<invalid>"},
        {-1, "0s"},
        {0, "0s"},
        {119, "119s"},
        {120, "2m"},
        {123, "2m3s"},
        {599, "9m59s"},
        {600, "10m"},
        {10799, "179m"},
        {10800, "3h"},
        {11040, "3h4m"},
        {28799, "7h59m"},
        {28800, "8h"},
        {172799, "47h"},
        {172800, "2d"},
        {190800, "2d5h"},
        {691199, "7d23h"},
        {691200, "8d"},
        {8121600, "94d"},
        {63071999, "729d"},
        {63072000, "2y"},
        {63158400, "2y1d"},
        {252287999, "7y364d"},
        {252288000, "8y"},
        {315360000, "10y"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[24];
        age_format(cases[i].seconds * NS_PER_SECOND, text);
        assert_string_equal(text, cases[i].text);
    }
    char text[24];
    age_format(INT64_MAX, text);
    assert_string_equal(text, "292y");
}

static void durations_for_people(void **state)
{
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        {0, "0 ns"},
        {999, "999 ns"},
        {340000, "340 us"},
        {9994, "9.99 us"},
        {9995, "10.0 us"},
        {999499, "999 us"},
        {999500, "1.00 ms"},
        {12340000, "12.3 ms"},
        {4560000000, "4.56 s"},
        {59940000000, "59.9 s"},
        {59960000000, "1m00s"},
        {123 * NS_PER_SECOND, "2m03s"},
        {3600 * NS_PER_SECOND, "1h00m"},
        {90000 * NS_PER_SECOND, "25h00m"},
        {-340000, "-340 us"},
        {INT64_MIN, "-106751d23h"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[24];
        duration_format(cases[i].ns, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void durations_parse(void **state)
{
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"250ms", 250000000},
        {"3s", 3000000000},
        {"1.5h", 5400000000000},
        {"2m30s", 150000000000},
        {"7d", 604800000000000},
        {"5", 5000000000},
        {"0.25", 250000000},
        {"1us", 1000},
        {"1\xc2\xb5s", 1000},
        {"7ns", 7},
        {"0", 0},
        {".5s", 500000000},
        {"0.0000000019s", 1},
        {"9223372036854775807ns", INT64_MAX},
    };
    static const char *const bad[] = {"",
                                      "s",
                                      "-1s",
                                      "+1s",
                                      "1 s",
                                      "1x",
                                      "1s2",
                                      "1.s.",
                                      ".",
                                      "1ss",
                                      "1e3s",
                                      "300y",
                                      "9223372036854775808ns",
                                      "106752d",
                                      "9223372037",
                                      "9223372036854775807ns1ns"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ns = -1;
        assert_true(duration_parse(str_from(cases[i].text), &ns));
        assert_int_equal(ns, cases[i].ns);
    }
    int64_t untouched = 42;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (duration_parse(str_from(bad[i]), &untouched))
            fail_msg("'%s' was accepted", bad[i]);
    }
    assert_int_equal(untouched, 42);
}

static void quantities(void **state)
{
    static const struct {
        const char *text;
        int64_t milli;
    } cases[] = {
        {"4", 4000},
        {"500m", 500},
        {"2Gi", 2147483648000},
        {"1e3", 1000000},
        {"1E3", 1000000},
        {"1e+3", 1000000},
        {"1e-3", 1},
        {"1.5M", 1500000000},
        {"+5", 5000},
        {"5.", 5000},
        {".5", 500},
        {"1n", 1},
        {"1u", 1},
        {"0n", 0},
        {"1000000n", 1},
        {"1000001n", 2},
        {"0.1Ki", 102400},
        {"1Ki", 1024000},
        {"1k", 1000000},
        {"1T", 1000000000000000},
        {"9P", 9000000000000000000},
        {"8191Ti", 9006099743113216000},
        {"1e-99999", 1},
        {"0e99999", 0},
        {"9223372036854775.807", INT64_MAX},
        {"0.00000000000000000000000000000000000001Ei", 1},
        {"0000000000000000000000000000000000001", 1000},
    };
    static const char *const bad[] = {"",
                                      "m",
                                      "-1",
                                      "1 ",
                                      " 1",
                                      "1ki",
                                      "1KI",
                                      "1mi",
                                      "1ei",
                                      "1e",
                                      "1e+-3",
                                      "1e3m",
                                      "1.2.3",
                                      ".",
                                      "1E",
                                      "8Ei",
                                      "1e99999",
                                      "9223372036854775.8071",
                                      "1e999999999999999999999",
                                      "0x10",
                                      "1 k"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t milli = -1;
        if (!quantity_parse_milli(str_from(cases[i].text), &milli))
            fail_msg("'%s' was refused", cases[i].text);
        assert_int_equal(milli, cases[i].milli);
    }
    int64_t untouched = 42;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (quantity_parse_milli(str_from(bad[i]), &untouched))
            fail_msg("'%s' was accepted", bad[i]);
    }
    assert_int_equal(untouched, 42);
    assert_false(quantity_parse_milli((struct str){"1\0", 2}, &untouched));
}

/* Random quantities against arithmetic in 128 bits: whole.fraction with 6 digits, any suffix up to T. */
static void quantities_are_exact(void **state)
{
    static const struct {
        const char *suffix;
        int tens, twos;
    } suffixes[] = {{"n", -9, 0},  {"u", -6, 0},  {"m", -3, 0}, {"", 0, 0},    {"k", 3, 0},
                    {"M", 6, 0},   {"G", 9, 0},   {"T", 12, 0}, {"Ki", 0, 10}, {"Mi", 0, 20},
                    {"Gi", 0, 30}, {"Ti", 0, 40}, {"e2", 2, 0}, {"E-2", -2, 0}};
    struct rng rng;
    rng_seed(&rng, 18);
    for (int round = 0; round < 50000; round++) {
        size_t which = rng_below(&rng, sizeof suffixes / sizeof *suffixes);
        uint64_t whole = rng_next(&rng) >> (rng_below(&rng, 40) + 24), fraction = rng_below(&rng, 1000000);
        char text[64];
        snprintf(text, sizeof text, "%llu.%06llu%s", (unsigned long long)whole, (unsigned long long)fraction,
                 suffixes[which].suffix);
        /* In units of 10^-12, then to thousandths. */
        unsigned __int128 value = (unsigned __int128)whole * 1000000 + fraction, divisor = 1000;
        value <<= suffixes[which].twos;
        for (int i = 0; i < suffixes[which].tens; i++)
            value *= 10;
        for (int i = 0; i > suffixes[which].tens; i--)
            divisor *= 10;
        unsigned __int128 expect = (value + divisor - 1) / divisor;
        int64_t milli = -1;
        assert_int_equal(quantity_parse_milli(str_from(text), &milli), expect <= INT64_MAX);
        if (expect <= INT64_MAX)
            assert_int_equal(milli, (int64_t)expect);
    }
}

static void quantities_in_canonical_form(void **state)
{
    static const struct {
        const char *text, *canonical;
    } cases[] = {{"1", "1"},           {"0", "0"},
                 {"0.0Gi", "0"},       {"+4", "4"},
                 {"1000m", "1"},       {"1500m", "1500m"},
                 {"0.5", "500m"},      {".25", "250m"},
                 {"1.5", "1500m"},     {"1000", "1k"},
                 {"1024", "1024"},     {"2000000", "2M"},
                 {"1024Mi", "1Gi"},    {"1000Mi", "1000Mi"},
                 {"0.5Gi", "512Mi"},   {"1.5Gi", "1536Mi"},
                 {"1024Ki", "1Mi"},    {"0.5Ki", "512"},
                 {"0.1Ki", "102400m"}, {"1Ki", "1Ki"},
                 {"2048Gi", "2Ti"},    {"1e3", "1e3"},
                 {"1000e3", "1e6"},    {"12e4", "120e3"},
                 {"1E3", "1e3"},       {"1E", "1E"},
                 {"1e0", "1"},         {"5e-1", "500e-3"},
                 {"1k", "1k"},         {"1000k", "1M"},
                 {"0.001", "1m"},      {"0.0001", "100u"},
                 {"1n", "1n"},         {"0.1n", "1n"},
                 {"100000G", "100T"},  {"007", "7"},
                 {"8000P", "8E"},      {"7Ei", "7Ei"},
                 {"1025Mi", "1025Mi"}, {"1.000001G", "1000001k"},
                 {"32768m", "32768m"}, {"0.3Mi", "314572800m"}};
    char text[QUANTITY_TEXT_MAX], again[QUANTITY_TEXT_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t before, after;
        assert_true(quantity_canonical(str_from(cases[i].text), text));
        if (strcmp(text, cases[i].canonical) != 0)
            fail_msg("%s: %s, not %s", cases[i].text, text, cases[i].canonical);
        assert_true(quantity_canonical(str_from(text), again));
        assert_string_equal(text, again);
        if (quantity_parse_milli(str_from(cases[i].text), &before))
            assert_true(quantity_parse_milli(str_from(text), &after) && before == after);
    }
    static const char *const bad[] = {"", "-1", "1x", "1 Gi", "10E", "1e", "9223372036854775808"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(quantity_canonical(str_from(bad[i]), text));
}

static void sizes(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {{0, "0 B"},         {17, "17 B"},           {999, "999 B"},
                 {1000, "1.0 KB"},   {1449, "1.4 KB"},       {999949, "999.9 KB"},
                 {999950, "1.0 MB"}, {3200000000, "3.2 GB"}, {UINT64_MAX, "18.4 EB"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[24];
        bytes_format(cases[i].bytes, text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_round_trip),
        cmocka_unit_test(times_are_strict),
        cmocka_unit_test(ages),
        cmocka_unit_test(durations_for_people),
        cmocka_unit_test(durations_parse),
        cmocka_unit_test(quantities),
        cmocka_unit_test(quantities_are_exact),
        cmocka_unit_test(quantities_in_canonical_form),
        cmocka_unit_test(sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
