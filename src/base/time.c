/* time.c - calendar times (units.h): the Gregorian calendar, extended to years before it, in UTC without leap
 * seconds.
 */
#include "base/units.h"

#include <stdio.h>

enum { SECONDS_PER_DAY = 24 * 3600 };

/* Returns the days since 1970-01-01, counted in eras of 400 years (146,097 days) whose years begin in March,
 * so that the leap day is the last of its year. */
static int64_t days_from_date(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static void date_from_days(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097, day_of_era = days - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int day_of_year = (int)(day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100));
    int from_march = (5 * day_of_year + 2) / 153;
    *ret_day = day_of_year - (153 * from_march + 2) / 5 + 1;
    *ret_month = from_march < 10 ? from_march + 3 : from_march - 9;
    *ret_year = era * 400 + year_of_era + (*ret_month <= 2);
}

static void put_two_digits(char *text, int value)
{
    text[0] = (char)('0' + value / 10);
    text[1] = (char)('0' + value % 10);
}

/* Writes up to the seconds and returns the nanoseconds within the second. Years are 1677 to 2262, the range
 * of nanoseconds. Not by printf, which took a tenth of the time of a list. */
static int64_t format_seconds(int64_t time_ns, char text[static 32])
{
    int64_t seconds = time_ns / NS_PER_SECOND, fraction = time_ns % NS_PER_SECOND;
    if (fraction < 0) {
        seconds--;
        fraction += NS_PER_SECOND;
    }
    int64_t days = seconds / SECONDS_PER_DAY, rest = seconds % SECONDS_PER_DAY, year;
    if (rest < 0) {
        days--;
        rest += SECONDS_PER_DAY;
    }
    int month, day;
    date_from_days(days, &year, &month, &day);
    int hour = (int)(rest / 3600), minute = (int)(rest / 60 % 60), second = (int)(rest % 60);
    memcpy(text, "yyyy-mm-ddThh:mm:ss", sizeof "yyyy-mm-ddThh:mm:ss");
    put_two_digits(text, (int)(year / 100));
    put_two_digits(text + 2, (int)(year % 100));
    put_two_digits(text + 5, month);
    put_two_digits(text + 8, day);
    put_two_digits(text + 11, hour);
    put_two_digits(text + 14, minute);
    put_two_digits(text + 17, second);
    return fraction;
}

void time_format(int64_t time_ns, char ret_text[32])
{
    format_seconds(time_ns, ret_text);
    memcpy(ret_text + strlen(ret_text), "Z", sizeof "Z");
}

void time_format_micro(int64_t time_ns, char ret_text[40])
{
    int64_t fraction = format_seconds(time_ns, ret_text);
    size_t len = strlen(ret_text);
    snprintf(ret_text + len, 40 - len, ".%06dZ", (int)(fraction / NS_PER_US));
}

/* Cuts exactly `count` digits from the front of *text. */
static bool cut_digits(struct str *text, size_t count, int *ret_value)
{
    int value = 0;
    if (text->len < count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (text->data[i] < '0' || text->data[i] > '9')
            return false;
        value = value * 10 + (text->data[i] - '0');
    }
    *text = (struct str){text->data + count, text->len - count};
    *ret_value = value;
    return true;
}

static bool cut_char(struct str *text, char c)
{
    if (text->len == 0 || text->data[0] != c)
        return false;
    *text = (struct str){text->data + 1, text->len - 1};
    return true;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

static bool cut_date(struct str *text, int64_t *ret_days)
{
    int year, month, day;
    if (!cut_digits(text, 4, &year) || !cut_char(text, '-') || !cut_digits(text, 2, &month) ||
        !cut_char(text, '-') || !cut_digits(text, 2, &day))
        return false;
    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return false;
    *ret_days = days_from_date(year, month, day);
    return true;
}

/* Cuts hh:mm:ss[.fraction]; digits beyond nanoseconds are dropped. */
static bool cut_clock(struct str *text, int *ret_seconds, int64_t *ret_fraction_ns)
{
    int hour, minute, second;
    if (!cut_digits(text, 2, &hour) || !cut_char(text, ':') || !cut_digits(text, 2, &minute) ||
        !cut_char(text, ':') || !cut_digits(text, 2, &second))
        return false;
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    int64_t fraction = 0;
    if (cut_char(text, '.')) {
        int digit;
        int64_t unit = NS_PER_SECOND / 10;
        if (!cut_digits(text, 1, &digit))
            return false;
        do {
            fraction += digit * unit;
            unit /= 10;
        } while (cut_digits(text, 1, &digit));
    }
    *ret_seconds = hour * 3600 + minute * 60 + second;
    *ret_fraction_ns = fraction;
    return true;
}

/* Reads Z, or +hh:mm / -hh:mm, to the end of the text. */
static bool read_offset(struct str text, int *ret_seconds)
{
    int hour, minute, sign = 1;
    if (cut_char(&text, 'Z') || cut_char(&text, 'z')) {
        *ret_seconds = 0;
        return text.len == 0;
    }
    if (cut_char(&text, '-'))
        sign = -1;
    else if (!cut_char(&text, '+'))
        return false;
    if (!cut_digits(&text, 2, &hour) || !cut_char(&text, ':') || !cut_digits(&text, 2, &minute) || text.len)
        return false;
    if (hour > 23 || minute > 59)
        return false;
    *ret_seconds = sign * (hour * 3600 + minute * 60);
    return true;
}

bool time_parse(struct str text, int64_t *ret_time_ns)
{
    int64_t days, fraction;
    int clock, offset;
    if (!cut_date(&text, &days) || (!cut_char(&text, 'T') && !cut_char(&text, 't')) ||
        !cut_clock(&text, &clock, &fraction) || !read_offset(text, &offset))
        return false;
    /* In a time before 1970 the nanoseconds are counted from the second that follows, so that no product
     * overflows at the lower end of the range. */
    int64_t seconds = days * SECONDS_PER_DAY + clock - offset, time_ns;
    if (seconds < 0 && fraction) {
        seconds++;
        fraction -= NS_PER_SECOND;
    }
    if (__builtin_mul_overflow(seconds, NS_PER_SECOND, &time_ns) ||
        __builtin_add_overflow(time_ns, fraction, &time_ns))
        return false;
    *ret_time_ns = time_ns;
    return true;
}
