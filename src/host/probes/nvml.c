/* nvml.c - NVIDIA GPUs by NVML: judges the facts of the resident child (nvml_look.c).
 *
 * Loading the library and opening the driver takes long, so one child keeps both and sends a block of facts
 * each period, and each XID at once. Without a library, no child is started again for a while. */
#include "host/probes/internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define HOUR_NS  (3600 * NS_PER_SECOND)
#define AGAIN_NS (600 * NS_PER_SECOND)

/* Reasons, other than lack of work, for which clocks are reduced (NVML's bits). */
#define REASONS_HARDWARE UINT64_C(0xe8) /* slow-down, software and hardware heat, power brake */

struct nvml {
    const char *library;
    bool works;
    int64_t again_ns, nvlink_errors;
};

static int start(struct probe *probe, struct error *error)
{
    struct nvml *nvml = probe->state = mem_alloc(sizeof *nvml);
    struct str library = doc_str(doc_get(probe->settings, "library"), STR(""));
    if (library.len > 0)
        nvml->library = arena_strdup(&probe->all->arena, library);
    else if (!probe->all->root[0])
        nvml->library = "libnvidia-ml.so.1";
    else
        probe->enabled = false;
    return probe_setting(probe, "nvlinkErrorsPerHour", 1, 1000000000, 100, &nvml->nvlink_errors, error);
}

static void run(struct probe *probe)
{
    struct nvml *nvml = probe->state;
    int64_t patience_ns = probe->period_ns + probe->timeout_ns;
    if (probe->all->now_ns >= nvml->again_ns && !child_lives(probe, "") &&
        child_look(probe, "", patience_ns, true))
        nvml->again_ns = probe->all->now_ns + probe->period_ns;
}

static void look(const struct probe *probe, const char *key, struct buf *facts)
{
    (void)key;
    const struct nvml *nvml = probe->state;
    nvml_live(probe, nvml->library, probe->period_ns, facts);
}

/* Converts "00000000:9B:00.0" to sysfs' form. */
static struct probe_place gpu_place(struct str address)
{
    char text[40] = {0};
    if (address.len == 16)
        address = (struct str){address.data + 4, 12};
    size_t len = address.len < sizeof text - 1 ? address.len : sizeof text - 1;
    for (size_t i = 0; i < len; i++)
        text[i] = (char)tolower((unsigned char)address.data[i]);
    return place_of("gpu/%s", text);
}

static bool numbers_of(struct str value, uint64_t *ret, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct str word = value, rest = {0};
        str_cut(value, ' ', &word, &rest);
        if (!str_to_u64(word, &ret[i]))
            return false;
        value = rest;
    }
    return true;
}

static void judge_link(struct probe *probe, const char *place, struct str name, struct str value)
{
    struct nvml *nvml = probe->state;
    uint64_t errors;
    char text[40];
    if (str_starts(name, STR("link state "))) {
        snprintf(text, sizeof text, "was up " STR_FORMAT, STR_ARG(name));
        struct probe_place link = place_of("%s/" STR_FORMAT, place, (int)name.len - 11, name.data + 11);
        bool up = str_is(value, "1");
        if (up)
            probe_see(probe, place, text);
        probe_condition(probe, "gpu/nvlink", link.text, !up && probe_seen(probe, place, text), SEVERITY_MAJOR,
                        "link " STR_FORMAT " is inactive", (int)name.len - 11, name.data + 11);
    } else if (str_to_u64(value, &errors)) {
        snprintf(text, sizeof text, STR_FORMAT, STR_ARG(name));
        uint64_t delta = probe_delta(probe, place, text, errors);
        delta = probe_window(probe, place, text, delta, (uint64_t)nvml->nvlink_errors, HOUR_NS);
        if (delta > 0)
            probe_oncef(probe, "gpu/nvlink-errors", place, SEVERITY_MINOR, delta, "%s: %llu within an hour",
                        text, (unsigned long long)delta);
    }
}

static void judge_clocks(struct probe *probe, const char *place, uint64_t reasons)
{
    bool held = reasons & REASONS_HARDWARE;
    bool before = probe_seen(probe, place, "clocks held");
    bool on = held && (before || probe_is_on(probe, "gpu/clocks", place)); /* twice in a row: not a moment */
    if (held)
        probe_see(probe, place, "clocks held");
    else
        probe_unsee(probe, place, "clocks held");
    probe_condition(probe, "gpu/clocks", place, on, SEVERITY_MINOR, "clocks held down, reasons 0x%llx",
                    (unsigned long long)reasons);
}

static void judge_fact(struct probe *probe, const struct fact *fact)
{
    struct probe_place place = gpu_place(fact->place);
    uint64_t n[4];
    if (str_is(fact->name, "xid") && numbers_of(fact->value, n, 1)) {
        char code[40];
        snprintf(code, sizeof code, "xid/%llu", (unsigned long long)n[0]);
        probe_oncef(probe, code, place.text, xid_severity(n[0]), 1, "XID %llu, told by NVML",
                    (unsigned long long)n[0]);
    } else if (str_is(fact->name, "ecc") && numbers_of(fact->value, n, 1)) {
        uint64_t delta = probe_delta(probe, place.text, "ecc", n[0]);
        if (delta > 0)
            probe_oncef(probe, "gpu/ecc-uncorrected", place.text, SEVERITY_CRITICAL, delta,
                        "%llu uncorrected errors", (unsigned long long)delta);
    } else if (str_is(fact->name, "remap") &&
               numbers_of(fact->value, n, 4)) { /* corr, uncorr, pending, failed */
        probe_condition(probe, "gpu/row-remap-failed", place.text, n[3] > 0, SEVERITY_CRITICAL,
                        "a row could not be remapped");
        probe_condition(probe, "gpu/row-remap-pending", place.text, n[2] > 0, SEVERITY_MINOR,
                        "a row waits for a reset to be remapped");
    } else if (str_is(fact->name, "temperature") && numbers_of(fact->value, n, 2)) {
        bool on = n[1] > 0 &&
                  (n[0] >= n[1] || (probe_is_on(probe, "gpu/temperature", place.text) && n[0] + 3 >= n[1]));
        probe_condition(probe, "gpu/temperature", place.text, on, SEVERITY_MAJOR,
                        "%llu degrees, slows down at %llu", (unsigned long long)n[0],
                        (unsigned long long)n[1]);
    } else if (str_is(fact->name, "clocks") && numbers_of(fact->value, n, 1)) {
        judge_clocks(probe, place.text, n[0]);
    } else if (str_is(fact->name, "lost")) {
        probe_condition(probe, "gpu/missing", place.text, true, SEVERITY_CRITICAL, "NVML: " STR_FORMAT,
                        STR_ARG(fact->value));
    } else if (str_starts(fact->name, STR("link "))) {
        judge_link(probe, place.text, fact->name, fact->value);
    }
}

static void judge_count(struct probe *probe, uint64_t count)
{
    const struct doc *wanted = probe_manifest(probe, "gpus");
    uint64_t all = wanted && wanted->kind == DOC_INT ? (uint64_t)wanted->integer : doc_len(wanted);
    if (all > 0)
        probe_condition(probe, "gpu/missing", "", count < all, SEVERITY_CRITICAL, "%llu of %llu GPUs",
                        (unsigned long long)count, (unsigned long long)all);
}

static void judge(struct probe *probe, const char *key, struct str facts)
{
    (void)key;
    struct nvml *nvml = probe->state;
    for (struct fact fact; fact_next(&facts, &fact);) {
        uint64_t count;
        if (str_is(fact.name, "error")) {
            snprintf(probe->note, sizeof probe->note, STR_FORMAT, STR_ARG(fact.value));
            nvml->again_ns = probe->all->now_ns + AGAIN_NS;
            probe_condition(probe, "gpu/driver", "", nvml->works || probe_manifest(probe, "gpus"),
                            SEVERITY_CRITICAL, "NVML: " STR_FORMAT, STR_ARG(fact.value));
            if (nvml->works)
                nvml->again_ns = probe->all->now_ns + probe->period_ns;
        } else if (str_is(fact.name, "count") && str_to_u64(fact.value, &count)) {
            nvml->works = true;
            probe->note[0] = 0;
            probe_condition(probe, "gpu/driver", "", false, SEVERITY_CRITICAL, "NVML answers");
            judge_count(probe, count);
        } else {
            judge_fact(probe, &fact);
        }
    }
}

static void failed(struct probe *probe, const char *key, bool hung, struct str facts)
{
    (void)key;
    (void)facts;
    struct nvml *nvml = probe->state;
    probe_condition(probe, "gpu/driver", "", true, SEVERITY_CRITICAL,
                    hung ? "NVML does not answer" : "NVML crashed");
    nvml->again_ns = probe->all->now_ns + probe->period_ns;
}

const struct probe_kind probe_nvml = {.name = "nvml",
                                      .period_ns = 30 * NS_PER_SECOND,
                                      .cost_ns = 100 * NS_PER_MS,
                                      .timeout_ns = 120 * NS_PER_SECOND,
                                      .keys = " library nvlinkErrorsPerHour ",
                                      .start = start,
                                      .run = run,
                                      .look = look,
                                      .judge = judge,
                                      .failed = failed};
