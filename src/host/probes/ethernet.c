/* ethernet.c - network interfaces: /sys/class/net/eth0/{flags,carrier,carrier_down_count,speed}.
 *
 * Only interfaces of a device and those in the manifest count, as veth pairs and bridges come and go with
 * containers. An interface that was switched off by hand (no IFF_UP) is not down.
 */
#include "host/probes/internal.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HOUR_NS (3600 * NS_PER_SECOND)

struct ethernet {
    int64_t flaps; /* an hour */
};

static int start(struct probe *probe, struct error *error)
{
    struct ethernet *state = probe->state = mem_alloc(sizeof *state);
    return probe_setting(probe, "flapsPerHour", 1, 1000, 3, &state->flaps, error);
}

static const struct doc *expected(const struct probe *probe, struct str name)
{
    const struct doc *list = probe_manifest(probe, "ethernet");
    for (size_t i = 0; i < doc_len(list); i++)
        if (str_equal(doc_str(doc_get(doc_at(list, i), "name"), STR("")), name))
            return doc_at(list, i);
    return NULL;
}

static bool has_device(const struct probes *all, const char *name)
{
    char path[1024];
    return file_path(all, path, sizeof path, "/sys/class/net/%s/device", name) && access(path, F_OK) == 0;
}

static void look(const struct probe *probe, const char *key, struct buf *facts)
{
    (void)key;
    static const char *const files[] = {"carrier_down_count", "carrier_changes", "speed", "flags", "carrier"};
    struct names list NAMES_CLEANUP = {0};
    file_list(probe->all, &list, "", "/sys/class/net");
    for (size_t i = 0; i < list.list.len; i++) {
        const char *name = list.list.items[i];
        struct text text;
        if (!expected(probe, str_from(name)) &&
            (!has_device(probe->all, name) || probe_listed(probe, "exclude", str_from(name))))
            continue;
        fact_put(facts, name, "here", "1");
        for (size_t k = 0; k < sizeof files / sizeof *files; k++) /* carrier last: judged with the others */
            if (file_read(probe->all, &text, "/sys/class/net/%s/%s", name, files[k]))
                fact_put(facts, name, files[k], "%s", text.data);
    }
}

static void judge_flaps(struct probe *probe, const char *place, uint64_t delta)
{
    struct ethernet *state = probe->state;
    uint64_t sum = probe_window(probe, place, "flaps", delta, (uint64_t)state->flaps, HOUR_NS);
    if (sum > 0)
        probe_oncef(probe, "eth/flap", place, SEVERITY_MINOR, sum, "carrier lost %llu times within an hour",
                    (unsigned long long)sum);
}

static void judge_carrier(struct probe *probe, struct str name, const char *place, bool up, bool on,
                          uint64_t speed)
{
    const struct doc *wanted = expected(probe, name);
    uint64_t mbps = (uint64_t)doc_int(doc_get(wanted, "mbps"), 0);
    if (on)
        probe_see(probe, place, "was up");
    bool down = wanted ? !on : up && !on && probe_seen(probe, place, "was up");
    probe_condition(probe, "eth/down", place, down, SEVERITY_MAJOR, up ? "no carrier" : "switched off");
    if (on && mbps > 0 && speed > 0)
        probe_condition(probe, "eth/speed", place, speed < mbps, SEVERITY_MAJOR, "%llu Mb/s instead of %llu",
                        (unsigned long long)speed, (unsigned long long)mbps);
}

static void judge_missing(struct probe *probe, struct str facts)
{
    const struct doc *list = probe_manifest(probe, "ethernet");
    for (size_t i = 0; i < doc_len(list); i++) {
        struct str name = doc_str(doc_get(doc_at(list, i), "name"), STR("?"));
        struct probe_place place = place_of("net/" STR_FORMAT, STR_ARG(name));
        struct str rest = facts;
        bool found = false;
        for (struct fact fact; !found && fact_next(&rest, &fact);)
            found = str_equal(fact.place, name);
        if (!found)
            probe_condition(probe, "eth/down", place.text, true, SEVERITY_MAJOR, "no such interface");
    }
}

static void judge(struct probe *probe, const char *key, struct str facts)
{
    (void)key;
    struct str rest = facts;
    uint64_t speed = 0, value;
    bool up = true, counted = false, pending = false;
    struct str pending_name = {0};
    struct fact fact;
    for (bool more = true; more;) {
        more = fact_next(&rest, &fact);
        bool here = more && str_is(fact.name, "here");
        if (pending && (!more || here)) { /* no carrier file could be read: it is switched off */
            struct probe_place place = place_of("net/" STR_FORMAT, STR_ARG(pending_name));
            judge_carrier(probe, pending_name, place.text, up, false, 0);
        }
        if (!more)
            break;
        struct probe_place place = place_of("net/" STR_FORMAT, STR_ARG(fact.place));
        bool number = str_to_u64(fact.value, &value);
        if (here) {
            pending = true;
            pending_name = fact.place;
            speed = 0;
            up = true;
            counted = false;
        } else if (str_is(fact.name, "carrier_down_count") && number) {
            counted = true;
            judge_flaps(probe, place.text, probe_delta(probe, place.text, "downs", value));
        } else if (str_is(fact.name, "carrier_changes") && number && !counted) {
            judge_flaps(probe, place.text, (probe_delta(probe, place.text, "changes", value) + 1) / 2);
        } else if (str_is(fact.name, "speed") && number) {
            speed = value;
        } else if (str_is(fact.name, "flags")) {
            char text[24];
            snprintf(text, sizeof text, STR_FORMAT, STR_ARG(fact.value));
            up = strtoul(text, NULL, 0) & IFF_UP;
        } else if (str_is(fact.name, "carrier") && number) {
            pending = false;
            judge_carrier(probe, fact.place, place.text, up, value == 1, speed);
        }
    }
    judge_missing(probe, facts);
}

const struct probe_kind probe_ethernet = {.name = "ethernet",
                                          .period_ns = 10 * NS_PER_SECOND,
                                          .cost_ns = 100 * NS_PER_MS,
                                          .timeout_ns = 10 * NS_PER_SECOND,
                                          .keys = " exclude flapsPerHour ",
                                          .start = start,
                                          .look = look,
                                          .judge = judge};
