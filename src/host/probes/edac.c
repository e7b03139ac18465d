/* edac.c - memory controllers: /sys/devices/system/edac/mc/mc0/{ce,ue}_count, .../dimm3/dimm_{ce,ue}_count.
 *
 * Errors of a controller are also counted at its DIMM if that is known: the controller reports only errors
 * that its DIMMs did not. Corrected errors count by the hour. */
#include "host/probes/internal.h"

#include <stdio.h>

#define HOUR_NS (3600 * NS_PER_SECOND)

struct edac {
    int64_t corrected; /* an hour */
};

static int start(struct probe *probe, struct error *error)
{
    struct edac *edac = probe->state = mem_alloc(sizeof *edac);
    return probe_setting(probe, "correctedPerHour", 1, 1000000000, 10, &edac->corrected, error);
}

static void look_file(const struct probes *all, struct buf *facts, const char *place, const char *name,
                      const char *folder, const char *file)
{
    uint64_t value;
    if (file_u64(all, &value, "/sys/devices/system/edac/mc/%s/%s", folder, file))
        fact_put(facts, place, name, "%llu", (unsigned long long)value);
}

static void look_dimms(const struct probes *all, struct buf *facts, const char *controller,
                       const char *prefix)
{
    struct names dimms NAMES_CLEANUP = {0};
    file_list(all, &dimms, prefix, "/sys/devices/system/edac/mc/%s", controller);
    for (size_t i = 0; i < dimms.list.len; i++) {
        char folder[256], place[300];
        struct text label;
        snprintf(folder, sizeof folder, "%s/%s", controller, dimms.list.items[i]);
        snprintf(place, sizeof place, "dimm/%s", folder);
        if (file_read(all, &label, "/sys/devices/system/edac/mc/%s/dimm_label", folder) && label.len > 0)
            fact_put(facts, place, "label", "%s", label.data);
        look_file(all, facts, place, "dimm ue", folder, "dimm_ue_count");
        look_file(all, facts, place, "dimm ce", folder, "dimm_ce_count");
    }
}

static void look(const struct probe *probe, const char *key, struct buf *facts)
{
    (void)key;
    struct names controllers NAMES_CLEANUP = {0};
    file_list(probe->all, &controllers, "mc", "/sys/devices/system/edac/mc");
    for (size_t i = 0; i < controllers.list.len; i++) {
        const char *name = controllers.list.items[i];
        char place[256];
        look_dimms(probe->all, facts, name, "dimm");
        look_dimms(probe->all, facts, name, "rank");
        snprintf(place, sizeof place, "dimm/%s", name);
        look_file(probe->all, facts, place, "ue", name, "ue_count");
        look_file(probe->all, facts, place, "ue no place", name, "ue_noinfo_count");
        look_file(probe->all, facts, place, "ce", name, "ce_count");
        look_file(probe->all, facts, place, "ce no place", name, "ce_noinfo_count");
    }
}

static void uncorrected(struct probe *probe, const char *place, uint64_t count, const char *label)
{
    if (count > 0)
        probe_oncef(probe, "edac/ue", place, SEVERITY_CRITICAL, count, "%llu uncorrected errors%s%s",
                    (unsigned long long)count, label[0] ? ", DIMM " : "", label);
}

static void corrected(struct probe *probe, const char *place, uint64_t count, const char *label)
{
    struct edac *edac = probe->state;
    uint64_t sum = probe_window(probe, place, "ce", count, (uint64_t)edac->corrected, HOUR_NS);
    if (sum > 0)
        probe_oncef(probe, "edac/ce", place, SEVERITY_NOTICE, sum, "%llu corrected errors within an hour%s%s",
                    (unsigned long long)sum, label[0] ? ", DIMM " : "", label);
}

static void judge(struct probe *probe, const char *key, struct str facts)
{
    (void)key;
    struct fact fact;
    uint64_t value, dimm_ue = 0, dimm_ce = 0, sum_ue = 0;
    char label[64] = "", label_of[SIGNAL_PLACE_MAX + 1] = "";
    while (fact_next(&facts, &fact)) {
        struct probe_place place = place_of(STR_FORMAT, STR_ARG(fact.place));
        bool same = strcmp(label_of, place.text) == 0;
        if (str_is(fact.name, "label")) {
            snprintf(label, sizeof label, STR_FORMAT, STR_ARG(fact.value));
            memcpy(label_of, place.text, sizeof label_of);
            continue;
        }
        if (!str_to_u64(fact.value, &value))
            continue;
        char name[32];
        snprintf(name, sizeof name, STR_FORMAT, STR_ARG(fact.name));
        uint64_t delta = probe_delta(probe, place.text, name, value);
        if (strcmp(name, "dimm ue") == 0) {
            dimm_ue += delta;
            uncorrected(probe, place.text, delta, same ? label : "");
        } else if (strcmp(name, "dimm ce") == 0) {
            dimm_ce += delta;
            corrected(probe, place.text, delta, same ? label : "");
        } else if (strcmp(name, "ue") == 0) { /* the controller's facts follow those of its DIMMs */
            sum_ue = delta > dimm_ue ? delta - dimm_ue : 0;
            uncorrected(probe, place.text, sum_ue, "");
            dimm_ue = 0;
        } else if (strcmp(name, "ue no place") == 0) { /* part of "ue" in some kernels */
            uncorrected(probe, place.text, delta > sum_ue ? delta - sum_ue : 0, "");
            sum_ue = 0;
        } else if (strcmp(name, "ce") == 0) {
            corrected(probe, place.text, delta > dimm_ce ? delta - dimm_ce : 0, "");
            dimm_ce = 0;
        }
    }
}

const struct probe_kind probe_edac = {.name = "edac",
                                      .period_ns = 30 * NS_PER_SECOND,
                                      .cost_ns = 100 * NS_PER_MS,
                                      .timeout_ns = 10 * NS_PER_SECOND,
                                      .keys = " correctedPerHour ",
                                      .start = start,
                                      .look = look,
                                      .judge = judge};
