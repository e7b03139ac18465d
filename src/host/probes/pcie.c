/* pcie.c - PCI Express: error counters (AER), links that are narrower or slower than they were or should be,
 * missing devices.
 *
 * Counters are "NAME count" lines with a TOTAL_ERR_* line at the end; kernels spell the names differently, so
 * only the sum is compared and the names are evidence. A root port also counts the errors of the devices
 * below it: it is reported only if no device reported. A link's width is compared with the widest seen, its
 * speed only with the manifest, because idle chips slow their links down. */
#include "host/probes/internal.h"

#include <stdio.h>
#include <stdlib.h>

#define HOUR_NS (3600 * NS_PER_SECOND)
enum { CLASSES = 3 };

static const struct class {
    const char *name, *file, *root_file, *total, *code;
    enum signal_severity severity;
} classes[CLASSES] = {
    {"cor", "aer_dev_correctable", "aer_rootport_total_err_cor", "TOTAL_ERR_COR", "pcie/correctable",
     SEVERITY_NOTICE},
    {"nonfatal", "aer_dev_nonfatal", "aer_rootport_total_err_nonfatal", "TOTAL_ERR_NONFATAL", "pcie/nonfatal",
     SEVERITY_MINOR},
    {"fatal", "aer_dev_fatal", "aer_rootport_total_err_fatal", "TOTAL_ERR_FATAL", "pcie/fatal",
     SEVERITY_CRITICAL},
};

struct pcie {
    int64_t correctable; /* an hour */
};

static int start(struct probe *probe, struct error *error)
{
    struct pcie *pcie = probe->state = mem_alloc(sizeof *pcie);
    const struct doc *list = probe_manifest(probe, "pci");
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *item = doc_at(list, i);
        if (!doc_get(item, "address") && !doc_get(item, "vendor"))
            return error_set(error, ERROR_INVALID, "manifest.pci[%zu]: expected address or vendor", i);
    }
    return probe_setting(probe, "correctablePerHour", 1, 1000000000, 100, &pcie->correctable, error);
}

/* --- look ----------------------------------------------------------------------------------------- */

/* Writes the sum of the counters, and the names of those that are not zero. */
static void look_counters(const struct probes *all, struct buf *facts, const char *address,
                          const struct class *class)
{
    struct text text;
    struct str rest, line, tail, name, number;
    uint64_t sum = 0, total = 0, value;
    bool has_total = false;
    struct buf which BUF_CLEANUP = {0};
    if (!file_read(all, &text, "/sys/bus/pci/devices/%s/%s", address, class->file))
        return;
    for (rest = (struct str){text.data, text.len}; rest.len > 0; rest = tail) {
        if (!str_cut(rest, '\n', &line, &tail)) {
            line = rest;
            tail = (struct str){0};
        }
        const char *blank = line.len ? memrchr(line.data, ' ', line.len) : NULL; /* names may have blanks */
        if (!blank)
            continue;
        name = (struct str){line.data, (size_t)(blank - line.data)};
        number = (struct str){blank + 1, line.len - name.len - 1};
        if (!str_to_u64(number, &value))
            continue;
        if (str_is(name, class->total)) {
            has_total = true;
            total = value;
        } else if (!__builtin_add_overflow(sum, value, &sum) && value > 0) {
            buf_printf(&which, "%s" STR_FORMAT "=%llu", which.len ? " " : "", STR_ARG(name),
                       (unsigned long long)value);
        }
    }
    fact_put(facts, address, class->name, "%llu %s", (unsigned long long)(has_total ? total : sum),
             which.len ? which.data : "");
}

static void look_device(const struct probes *all, struct buf *facts, const char *address)
{
    struct text text;
    uint64_t value;
    fact_put(facts, address, "here", "1");
    if (file_read(all, &text, "/sys/bus/pci/devices/%s/vendor", address))
        fact_put(facts, address, "vendor", "%s", text.data);
    if (file_read(all, &text, "/sys/bus/pci/devices/%s/class", address))
        fact_put(facts, address, "class", "%s", text.data);
    if (file_read(all, &text, "/sys/bus/pci/devices/%s/current_link_speed", address))
        fact_put(facts, address, "speed", "%s", text.data);
    if (file_u64(all, &value, "/sys/bus/pci/devices/%s/current_link_width", address))
        fact_put(facts, address, "width", "%llu", (unsigned long long)value);
    for (int i = 0; i < CLASSES; i++)
        look_counters(all, facts, address, &classes[i]);
}

static void look(const struct probe *probe, const char *key, struct buf *facts)
{
    (void)key;
    struct names devices NAMES_CLEANUP = {0};
    uint64_t value;
    file_list(probe->all, &devices, "", "/sys/bus/pci/devices");
    for (size_t i = 0; i < devices.list.len; i++)
        look_device(probe->all, facts, devices.list.items[i]);
    for (size_t i = 0; i < devices.list.len; i++)
        for (int k = 0; k < CLASSES; k++)
            if (file_u64(probe->all, &value, "/sys/bus/pci/devices/%s/%s", devices.list.items[i],
                         classes[k].root_file)) {
                char name[32];
                snprintf(name, sizeof name, "root %s", classes[k].name);
                fact_put(facts, devices.list.items[i], name, "%llu", (unsigned long long)value);
            }
}

/* --- judge ---------------------------------------------------------------------------------------- */

/* Returns "16.0 GT/s PCIe" in tenths; 0 if there is none. */
static uint64_t speed_of(struct str text)
{
    uint64_t tenths = 0;
    size_t i = 0;
    for (; i < text.len && i < 6 && text.data[i] >= '0' && text.data[i] <= '9'; i++)
        tenths = tenths * 10 + (uint64_t)(text.data[i] - '0');
    tenths *= 10;
    if (i + 1 < text.len && text.data[i] == '.' && text.data[i + 1] >= '0' && text.data[i + 1] <= '9')
        tenths += (uint64_t)(text.data[i + 1] - '0');
    return tenths;
}

/* Returns the manifest's entry for an address. */
static const struct doc *expected(const struct probe *probe, const char *address)
{
    const struct doc *list = probe_manifest(probe, "pci");
    for (size_t i = 0; i < doc_len(list); i++)
        if (str_is(doc_str(doc_get(doc_at(list, i), "address"), STR("")), address))
            return doc_at(list, i);
    return NULL;
}

static void judge_width(struct probe *probe, const char *address, const char *place, uint64_t width)
{
    const struct doc *wanted = doc_get(expected(probe, address), "width");
    uint64_t best = 1;
    char name[32];
    if (width == 0 || width > 32) /* asleep, or removed: not a width */
        return;
    while (best < 32 && (snprintf(name, sizeof name, "wider than %llu", (unsigned long long)best),
                         probe_seen(probe, place, name)))
        best *= 2;
    for (uint64_t below = 1; below < width; below *= 2) {
        snprintf(name, sizeof name, "wider than %llu", (unsigned long long)below);
        probe_see(probe, place, name);
    }
    if (wanted)
        best = (uint64_t)doc_int(wanted, 1);
    probe_condition(probe, "pcie/link-width", place, width < best, SEVERITY_MAJOR, "x%llu instead of x%llu",
                    (unsigned long long)width, (unsigned long long)best);
}

static void judge_speed(struct probe *probe, const char *address, const char *place, struct str speed)
{
    struct str wanted = doc_str(doc_get(expected(probe, address), "speed"), STR(""));
    uint64_t tenths = speed_of(speed);
    if (tenths > 0 && wanted.len > 0)
        probe_condition(probe, "pcie/link-speed", place, tenths < speed_of(wanted), SEVERITY_MAJOR,
                        STR_FORMAT " instead of " STR_FORMAT, STR_ARG(speed), STR_ARG(wanted));
}

static void judge_counter(struct probe *probe, const char *place, const struct class *class, bool root,
                          struct str value, bool spoke[CLASSES])
{
    struct pcie *pcie = probe->state;
    struct str number = value, which = {0};
    uint64_t count, delta;
    char name[32];
    str_cut(value, ' ', &number, &which);
    snprintf(name, sizeof name, "%s%s", root ? "root " : "", class->name);
    if (!str_to_u64(number, &count) || (delta = probe_delta(probe, place, name, count)) == 0)
        return;
    size_t index = (size_t)(class - classes);
    if (root && spoke[index])
        return;
    spoke[index] = true;
    if (index == 0) {
        delta = probe_window(probe, place, name, delta, (uint64_t)pcie->correctable, HOUR_NS);
        if (delta == 0)
            return;
    }
    probe_oncef(probe, class->code, place, class->severity, delta, "%llu more%s%s: " STR_FORMAT,
                (unsigned long long)delta, index == 0 ? " within an hour" : "",
                root ? " at the root port" : "", STR_ARG(which));
}

static void judge_manifest(struct probe *probe, struct str facts)
{
    const struct doc *list = probe_manifest(probe, "pci");
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *item = doc_at(list, i);
        struct str address = doc_str(doc_get(item, "address"), STR(""));
        struct str vendor = doc_str(doc_get(item, "vendor"), STR(""));
        struct str class = doc_str(doc_get(item, "class"), STR(""));
        int64_t wanted = address.len ? 1 : doc_int(doc_get(item, "count"), 1), found = 0;
        bool is_vendor = false;
        struct str rest = facts;
        for (struct fact fact; fact_next(&rest, &fact);) {
            if (address.len)
                found += str_is(fact.name, "here") && str_equal(fact.place, address);
            else if (str_is(fact.name, "vendor"))
                is_vendor = str_equal(fact.value, vendor);
            else if (str_is(fact.name, "class"))
                found += is_vendor && str_starts(fact.value, class);
        }
        struct probe_place place =
            address.len ? place_of("pci/" STR_FORMAT, STR_ARG(address))
                        : place_of("pci/" STR_FORMAT ":" STR_FORMAT, STR_ARG(vendor), STR_ARG(class));
        probe_condition(probe, "pcie/missing", place.text, found < wanted, SEVERITY_CRITICAL,
                        "%lld of %lld devices", (long long)found, (long long)wanted);
    }
}

static void judge(struct probe *probe, const char *key, struct str facts)
{
    (void)key;
    bool spoke[CLASSES] = {false};
    struct str rest = facts;
    for (struct fact fact; fact_next(&rest, &fact);) {
        char address[64], place[80];
        uint64_t value;
        snprintf(address, sizeof address, STR_FORMAT, STR_ARG(fact.place));
        snprintf(place, sizeof place, "pci/%s", address);
        bool root = str_starts(fact.name, STR("root "));
        struct str name = root ? (struct str){fact.name.data + 5, fact.name.len - 5} : fact.name;
        if (str_is(name, "width") && str_to_u64(fact.value, &value))
            judge_width(probe, address, place, value);
        else if (str_is(name, "speed"))
            judge_speed(probe, address, place, fact.value);
        for (int i = 0; i < CLASSES; i++)
            if (str_is(name, classes[i].name))
                judge_counter(probe, place, &classes[i], root, fact.value, spoke);
    }
    judge_manifest(probe, facts);
}

const struct probe_kind probe_pcie = {.name = "pcie",
                                      .period_ns = 30 * NS_PER_SECOND,
                                      .cost_ns = 200 * NS_PER_MS,
                                      .timeout_ns = 20 * NS_PER_SECOND,
                                      .keys = " correctablePerHour ",
                                      .start = start,
                                      .look = look,
                                      .judge = judge};
