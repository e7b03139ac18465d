/* clock.c - the machine's clock: synchronized, precise, from a good source; its offset against the
 * controller. */
#include "host/probes/internal.h"

#include <stdlib.h>
#include <sys/timex.h>

struct clock {
    int64_t skew_ms, error_ms;
    bool wants_sync;
};

static int start(struct probe *probe, struct error *error)
{
    struct clock *clock = probe->state = mem_alloc(sizeof *clock);
    clock->wants_sync = doc_bool(doc_get(doc_get(probe->all->manifest, "clock"), "synced"), false);
    int rc = probe_setting(probe, "maxSkewMs", 1, 1000000, 500, &clock->skew_ms, error);
    return rc < 0 ? rc : probe_setting(probe, "maxErrorMs", 1, 1000000, 500, &clock->error_ms, error);
}

static bool ask(const struct probes *all, struct probes_clock *ret)
{
    struct timex about = {0};
    if (all->options.clock)
        return all->options.clock(all->options.context, ret);
    if (all->root[0] || adjtimex(&about) < 0)
        return false;
    *ret =
        (struct probes_clock){.synced = !(about.status & STA_UNSYNC), .max_error_ns = about.maxerror * 1000};
    return true;
}

/* Returns whether a clock source is slow: each reading goes to a device. */
static bool is_slow(const char *source)
{
    return strcmp(source, "hpet") == 0 || strcmp(source, "acpi_pm") == 0 || strcmp(source, "jiffies") == 0 ||
           strcmp(source, "refined-jiffies") == 0;
}

static void run(struct probe *probe)
{
    struct clock *clock = probe->state;
    struct probes_clock now;
    struct text source;
    if (ask(probe->all, &now)) {
        bool precise = now.synced && now.max_error_ns < clock->error_ms * NS_PER_MS;
        if (precise)
            probe_see(probe, "", "was synchronized");
        bool wanted = clock->wants_sync || probe_seen(probe, "", "was synchronized");
        probe_condition(probe, "clock/unsynced", "", wanted && !precise, SEVERITY_MINOR,
                        "%s, at most %lld ms off", now.synced ? "synchronized" : "not synchronized",
                        (long long)(now.max_error_ns / NS_PER_MS));
    }
    if (file_read(probe->all, &source, "/sys/devices/system/clocksource/clocksource0/current_clocksource") &&
        source.len > 0)
        probe_condition(probe, "clock/source", "", is_slow(source.data), SEVERITY_MINOR, "%.40s",
                        source.data);
}

void clock_offset(struct probe *probe, int64_t offset_ns, int64_t error_ns)
{
    struct clock *clock = probe->state;
    int64_t limit_ns = clock->skew_ms * NS_PER_MS;
    uint64_t off_ns = offset_ns < 0 ? -(uint64_t)offset_ns : (uint64_t)offset_ns;
    uint64_t unsure_ns = error_ns < 0 ? 0 : (uint64_t)error_ns;
    bool on = off_ns > (uint64_t)limit_ns && off_ns - (uint64_t)limit_ns > unsure_ns;
    bool off = off_ns < (uint64_t)limit_ns && (uint64_t)limit_ns - off_ns > unsure_ns;
    if (on || off) /* else it is not known for certain and stays as it is */
        probe_condition(probe, "clock/skew", "", on, SEVERITY_MINOR, "%lld ms from the controller's clock",
                        (long long)(offset_ns / NS_PER_MS));
}

const struct probe_kind probe_clock = {.name = "clock",
                                       .period_ns = 60 * NS_PER_SECOND,
                                       .cost_ns = 20 * NS_PER_MS,
                                       .keys = " maxSkewMs maxErrorMs ",
                                       .start = start,
                                       .run = run};
