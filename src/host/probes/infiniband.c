/* infiniband.c - ports of RDMA devices:
 * /sys/class/infiniband/mlx5_0/ports/1/{state,phys_state,rate,counters/}.
 *
 * A port is down if it is not ACTIVE and LinkUp, but was before or is in the manifest. Counters that cannot
 * be read (EINVAL on a restricted function) are skipped. Counters that grow under load (port_xmit_wait,
 * out_of_sequence ...) count no errors and are not read. The limits are those of the usual tools
 * (ibcheckerrors), per hour.
 */
#include "host/probes/internal.h"

#include <stdio.h>
#include <stdlib.h>

#define HOUR_NS (3600 * NS_PER_SECOND)

static const struct counter_rule {
    const char *folder, *name;
    uint64_t per_hour;
} counter_rules[] = {
    {"counters", "link_downed", 1},
    {"counters", "link_error_recovery", 10},
    {"counters", "symbol_error", 10},
    {"counters", "local_link_integrity_errors", 10},
    {"counters", "excessive_buffer_overrun_errors", 10},
    {"counters", "port_rcv_errors", 10},
    {"counters", "port_rcv_remote_physical_errors", 100},
    {"counters", "port_rcv_switch_relay_errors", 100},
    {"counters", "port_xmit_discards", 100},
    {"counters", "port_xmit_constraint_errors", 100},
    {"counters", "port_rcv_constraint_errors", 100},
    {"counters", "VL15_dropped", 100},
    {"hw_counters", "local_ack_timeout_err", 100},
    {"hw_counters", "rnr_nak_retry_err", 1000},
    {"hw_counters", "resp_local_length_error", 100},
    {"hw_counters", "req_remote_access_errors", 100},
    {"hw_counters", "resp_remote_access_errors", 100},
    {"hw_counters", "rx_icrc_encapsulated", 10},
};
enum { COUNTER_RULES = sizeof counter_rules / sizeof *counter_rules };

struct infiniband {
    int64_t flaps; /* an hour */
    uint64_t limits[COUNTER_RULES];
};

static int start(struct probe *probe, struct error *error)
{
    struct infiniband *state = probe->state = mem_alloc(sizeof *state);
    const struct doc *counters = doc_get(probe->settings, "countersPerHour");
    for (size_t i = 0; i < COUNTER_RULES; i++)
        state->limits[i] = counter_rules[i].per_hour;
    for (size_t i = 0; i < doc_len(counters); i++) {
        const struct doc_member *member = &counters->object.members[i];
        size_t k = 0;
        while (k < COUNTER_RULES && !str_is(member->key, counter_rules[k].name))
            k++;
        if (k == COUNTER_RULES || doc_int(member->value, -1) < 0)
            return error_set(error, ERROR_INVALID,
                             "countersPerHour." STR_FORMAT ": not a counter and a number",
                             STR_ARG(member->key));
        state->limits[k] = (uint64_t)doc_int(member->value, 0); /* 0: never */
    }
    return probe_setting(probe, "flapsPerHour", 1, 1000, 3, &state->flaps, error);
}

static void look_port(const struct probe *probe, struct buf *facts, const char *device, const char *port)
{
    static const char *const words[] = {"link_layer", "rate", "phys_state", "state"};
    char place[256];
    struct text text;
    uint64_t value;
    snprintf(place, sizeof place, "port/%s/%s", device, port);
    for (size_t i = 0; i < COUNTER_RULES; i++)
        if (file_u64(probe->all, &value, "/sys/class/infiniband/%s/ports/%s/%s/%s", device, port,
                     counter_rules[i].folder, counter_rules[i].name))
            fact_put(facts, place, counter_rules[i].name, "%llu", (unsigned long long)value);
    for (size_t i = 0; i < 4; i++) /* the state is last: it is judged together with the values before it */
        if (file_read(probe->all, &text, "/sys/class/infiniband/%s/ports/%s/%s", device, port, words[i]))
            fact_put(facts, place, words[i], "%s", text.data);
}

static void look(const struct probe *probe, const char *key, struct buf *facts)
{
    (void)key;
    struct names devices NAMES_CLEANUP = {0};
    file_list(probe->all, &devices, "", "/sys/class/infiniband");
    for (size_t i = 0; i < devices.list.len; i++) {
        struct names ports NAMES_CLEANUP = {0};
        if (probe_listed(probe, "exclude", str_from(devices.list.items[i])))
            continue;
        file_list(probe->all, &ports, "", "/sys/class/infiniband/%s/ports", devices.list.items[i]);
        for (size_t k = 0; k < ports.list.len; k++)
            look_port(probe, facts, devices.list.items[i], ports.list.items[k]);
    }
}

static struct probe_place manifest_place(const struct doc *item)
{
    return place_of("port/" STR_FORMAT "/%lld", STR_ARG(doc_str(doc_get(item, "device"), STR("?"))),
                    (long long)doc_int(doc_get(item, "port"), 1));
}

static const struct doc *expected(const struct probe *probe, const char *place)
{
    const struct doc *list = probe_manifest(probe, "infiniband");
    for (size_t i = 0; i < doc_len(list); i++)
        if (strcmp(manifest_place(doc_at(list, i)).text, place) == 0)
            return doc_at(list, i);
    return NULL;
}

/* Counts that the port went down `times` more times. */
static void flapped(struct probe *probe, const char *place, uint64_t times)
{
    struct infiniband *state = probe->state;
    uint64_t sum = probe_window(probe, place, "flaps", times, (uint64_t)state->flaps, HOUR_NS);
    if (sum > 0)
        probe_oncef(probe, "ib/port-flap", place, SEVERITY_MAJOR, sum, "down %llu times within an hour",
                    (unsigned long long)sum);
}

static void judge_counter(struct probe *probe, const char *place, size_t index, uint64_t value)
{
    struct infiniband *state = probe->state;
    const char *name = counter_rules[index].name;
    uint64_t delta = probe_delta(probe, place, name, value);
    if (delta == 0)
        return;
    if (index == 0)
        flapped(probe, place, delta);
    if (state->limits[index] == 0)
        return;
    uint64_t sum = probe_window(probe, place, name, delta, state->limits[index], HOUR_NS);
    if (sum > 0)
        probe_oncef(probe, "ib/errors", place, SEVERITY_MINOR, sum, "%s +%llu", name,
                    (unsigned long long)sum);
}

static void judge_state(struct probe *probe, const char *place, struct str state, struct str phys)
{
    bool up = str_starts(state, STR("4:")) && (phys.len == 0 || str_starts(phys, STR("5:")));
    if (up)
        probe_see(probe, place, "was up");
    bool wanted = probe_seen(probe, place, "was up") || expected(probe, place);
    probe_condition(probe, "ib/port-down", place, !up && wanted, SEVERITY_MAJOR,
                    "state " STR_FORMAT ", physical state " STR_FORMAT, STR_ARG(state), STR_ARG(phys));
}

static uint64_t rate_of(struct str rate)
{
    struct str number = rate, rest;
    uint64_t value = 0;
    str_cut(rate, ' ', &number, &rest);
    str_cut(number, '.', &number, &rest);
    return str_to_u64(number, &value) ? value : 0;
}

/* Judges a port's rate against the manifest, else against the best rate seen while the port was up. */
static void judge_rate(struct probe *probe, const char *place, struct str rate, bool up)
{
    const struct doc *wanted = doc_get(expected(probe, place), "rate");
    uint64_t now = rate_of(rate), best = (uint64_t)doc_int(wanted, 0);
    char name[32];
    if (!up || now == 0)
        return;
    static const uint64_t rates[] = {10, 20, 25, 40, 50, 56, 100, 200, 400, 800, 1600};
    for (size_t i = 0; !wanted && i < sizeof rates / sizeof *rates; i++) {
        snprintf(name, sizeof name, "had %llu", (unsigned long long)rates[i]);
        if (now >= rates[i])
            probe_see(probe, place, name);
        if (probe_seen(probe, place, name))
            best = rates[i];
    }
    probe_condition(probe, "ib/rate", place, now < best, SEVERITY_MAJOR, STR_FORMAT " instead of %llu Gb/sec",
                    STR_ARG(rate), (unsigned long long)best);
}

static void judge_missing(struct probe *probe, struct str facts)
{
    const struct doc *list = probe_manifest(probe, "infiniband");
    for (size_t i = 0; i < doc_len(list); i++) {
        struct probe_place place = manifest_place(doc_at(list, i));
        struct str rest = facts;
        bool found = false;
        for (struct fact fact; !found && fact_next(&rest, &fact);)
            found = str_is(fact.place, place.text);
        probe_condition(probe, "ib/missing", place.text, !found, SEVERITY_CRITICAL, "no such port");
    }
}

static void judge(struct probe *probe, const char *key, struct str facts)
{
    (void)key;
    struct str rest = facts, rate = {0}, phys = {0};
    for (struct fact fact; fact_next(&rest, &fact);) {
        struct probe_place place = place_of(STR_FORMAT, STR_ARG(fact.place));
        uint64_t value;
        for (size_t i = 0; i < COUNTER_RULES; i++)
            if (str_is(fact.name, counter_rules[i].name) && str_to_u64(fact.value, &value))
                judge_counter(probe, place.text, i, value);
        if (str_is(fact.name, "link_layer"))
            rate = phys = (struct str){0};
        else if (str_is(fact.name, "rate"))
            rate = fact.value;
        else if (str_is(fact.name, "phys_state"))
            phys = fact.value;
        else if (str_is(fact.name, "state")) {
            judge_state(probe, place.text, fact.value, phys);
            judge_rate(probe, place.text, rate, str_starts(fact.value, STR("4:")));
            rate = phys = (struct str){0};
        }
    }
    judge_missing(probe, facts);
}

const struct probe_kind probe_infiniband = {.name = "infiniband",
                                            .period_ns = 10 * NS_PER_SECOND,
                                            .cost_ns = 200 * NS_PER_MS,
                                            .timeout_ns = 20 * NS_PER_SECOND,
                                            .keys = " exclude flapsPerHour countersPerHour ",
                                            .start = start,
                                            .look = look,
                                            .judge = judge};
