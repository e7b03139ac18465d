/* thermal.c - temperatures against the sensor's own critical value, or the setting; how often processors were
 * throttled for heat. */
#include "host/probes/internal.h"

#include <stdio.h>
#include <stdlib.h>

#define HOUR_NS (3600 * NS_PER_SECOND)

struct thermal {
    int64_t celsius, throttles;
};

static int start(struct probe *probe, struct error *error)
{
    struct thermal *thermal = probe->state = mem_alloc(sizeof *thermal);
    int rc = probe_setting(probe, "maxCelsius", 0, 200, 0, &thermal->celsius, error);
    return rc < 0 ? rc : probe_setting(probe, "throttlesPerHour", 1, 1000000, 10, &thermal->throttles, error);
}

/* Reads thousandths of a degree; ignores values that are no temperature. */
static bool read_milli(const struct probes *all, int64_t *ret_milli, const char *path)
{
    struct text text;
    return file_read(all, &text, "%s", path) &&
           str_to_i64((struct str){text.data, text.len}, -100000, 250000, ret_milli);
}

static void look_zones(const struct probes *all, struct buf *facts)
{
    struct names zones NAMES_CLEANUP = {0};
    file_list(all, &zones, "thermal_zone", "/sys/class/thermal");
    for (size_t i = 0; i < zones.list.len; i++) {
        char path[512], place[256];
        int64_t now, limit = 0, trip;
        struct text type;
        snprintf(path, sizeof path, "/sys/class/thermal/%s/temp", zones.list.items[i]);
        if (!read_milli(all, &now, path))
            continue;
        for (int k = 0; k < 12; k++) {
            if (!file_read(all, &type, "/sys/class/thermal/%s/trip_point_%d_type", zones.list.items[i], k))
                break;
            snprintf(path, sizeof path, "/sys/class/thermal/%s/trip_point_%d_temp", zones.list.items[i], k);
            if (strcmp(type.data, "critical") == 0 && read_milli(all, &trip, path))
                limit = trip;
        }
        snprintf(place, sizeof place, "sensor/%s", zones.list.items[i]);
        fact_put(facts, place, "temperature", "%lld %lld", (long long)now, (long long)limit);
    }
}

static void look_sensors(const struct probes *all, struct buf *facts)
{
    struct names chips NAMES_CLEANUP = {0};
    file_list(all, &chips, "hwmon", "/sys/class/hwmon");
    for (size_t i = 0; i < chips.list.len; i++) {
        struct names files NAMES_CLEANUP = {0};
        file_list(all, &files, "temp", "/sys/class/hwmon/%s", chips.list.items[i]);
        for (size_t k = 0; k < files.list.len; k++) {
            char path[768], place[256];
            int64_t now, limit = 0;
            char *end = strstr(files.list.items[k], "_input");
            snprintf(path, sizeof path, "/sys/class/hwmon/%s/%s", chips.list.items[i], files.list.items[k]);
            if (!end || end[6] != 0 || !read_milli(all, &now, path))
                continue;
            *end = 0;
            snprintf(path, sizeof path, "/sys/class/hwmon/%s/%s_crit", chips.list.items[i],
                     files.list.items[k]);
            read_milli(all, &limit, path);
            snprintf(place, sizeof place, "sensor/%s/%s", chips.list.items[i], files.list.items[k]);
            fact_put(facts, place, "temperature", "%lld %lld", (long long)now, (long long)limit);
        }
    }
}

static void look(const struct probe *probe, const char *key, struct buf *facts)
{
    (void)key;
    static const char *const counters[] = {"core_throttle_count", "package_throttle_count"};
    struct names cpus NAMES_CLEANUP = {0};
    uint64_t value;
    look_zones(probe->all, facts);
    look_sensors(probe->all, facts);
    file_list(probe->all, &cpus, "cpu", "/sys/devices/system/cpu");
    for (size_t i = 0; i < cpus.list.len; i++)
        for (int k = 0; k < 2; k++)
            if (file_u64(probe->all, &value, "/sys/devices/system/cpu/%s/thermal_throttle/%s",
                         cpus.list.items[i], counters[k])) {
                char place[256];
                snprintf(place, sizeof place, "cpu/%s", cpus.list.items[i] + 3);
                fact_put(facts, place, counters[k], "%llu", (unsigned long long)value);
            }
}

static void judge_temperature(struct probe *probe, const char *place, struct str value)
{
    struct thermal *thermal = probe->state;
    struct str word, rest;
    int64_t now, limit;
    if (!str_cut(value, ' ', &word, &rest) || !str_to_i64(word, -100000, 250000, &now) ||
        !str_to_i64(rest, -100000, 250000, &limit))
        return;
    if (thermal->celsius > 0)
        limit = thermal->celsius * 1000;
    if (limit < 40000) /* "0" and the like: no limit is known */
        return;
    bool on = now >= limit || (probe_is_on(probe, "cpu/thermal", place) && now >= limit - 5000);
    probe_condition(probe, "cpu/thermal", place, on, SEVERITY_MAJOR, "%lld.%lld degrees, limit %lld",
                    (long long)(now / 1000), (long long)(llabs(now) % 1000 / 100), (long long)(limit / 1000));
}

static void judge(struct probe *probe, const char *key, struct str facts)
{
    (void)key;
    struct thermal *thermal = probe->state;
    uint64_t value, package = 0;
    for (struct fact fact; fact_next(&facts, &fact);) {
        struct probe_place place = place_of(STR_FORMAT, STR_ARG(fact.place));
        if (str_is(fact.name, "temperature")) {
            judge_temperature(probe, place.text, fact.value);
        } else if (str_to_u64(fact.value, &value)) {
            char name[40];
            snprintf(name, sizeof name, STR_FORMAT, STR_ARG(fact.name));
            uint64_t delta = probe_delta(probe, place.text, name, value);
            bool of_package = str_is(fact.name, "package_throttle_count");
            if (of_package && delta <= package) /* each core of a package counts the same */
                continue;
            package = of_package ? delta : package;
            uint64_t sum =
                probe_window(probe, place.text, name, delta, (uint64_t)thermal->throttles, HOUR_NS);
            if (sum > 0)
                probe_oncef(probe, "cpu/throttle", place.text, SEVERITY_NOTICE, sum,
                            "throttled %llu times within an hour", (unsigned long long)sum);
        }
    }
}

const struct probe_kind probe_thermal = {.name = "thermal",
                                         .period_ns = 30 * NS_PER_SECOND,
                                         .cost_ns = 200 * NS_PER_MS,
                                         .timeout_ns = 20 * NS_PER_SECOND,
                                         .keys = " maxCelsius throttlesPerHour ",
                                         .start = start,
                                         .look = look,
                                         .judge = judge};
