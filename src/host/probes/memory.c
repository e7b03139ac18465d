/* memory.c - memory of the machine: /proc/meminfo, /proc/pressure/memory, and processes killed for it
 * (/proc/vmstat oom_kill) where the kernel log, which names them, cannot be read. */
#include "host/probes/internal.h"

#include <stdio.h>

struct memory {
    int64_t percent, stalled;
};

static int start(struct probe *probe, struct error *error)
{
    struct memory *memory = probe->state = mem_alloc(sizeof *memory);
    int rc = probe_setting(probe, "availablePercent", 0, 99, 2, &memory->percent, error);
    return rc < 0 ? rc : probe_setting(probe, "stalledPercent", 1, 100, 20, &memory->stalled, error);
}

/* Reads the number after "NAME" at the beginning of a line. */
static bool number_of(struct str text, const char *name, uint64_t *ret_value)
{
    size_t len = strlen(name);
    for (struct str line, rest; text.len > 0; text = rest) {
        line = text;
        rest = (struct str){0};
        str_cut(text, '\n', &line, &rest);
        if (line.len <= len || memcmp(line.data, name, len) != 0)
            continue;
        struct str word = str_trim((struct str){line.data + len, line.len - len}), unit;
        str_cut(word, ' ', &word, &unit);
        return str_to_u64(word, ret_value);
    }
    return false;
}

/* Returns avg60 of "full avg10=0.00 avg60=12.34 ..." in percent; 0 if there is none. */
static uint64_t stalled(const struct probes *all)
{
    struct text text;
    struct str captures[CAPTURES_MAX];
    uint64_t percent = 0;
    if (!file_read(all, &text, "/proc/pressure/memory") ||
        !match("full *avg60=%.", (struct str){text.data, text.len}, captures))
        return 0;
    str_to_u64(captures[0], &percent);
    return percent;
}

static void run(struct probe *probe)
{
    struct memory *memory = probe->state;
    struct text text;
    struct buf vmstat BUF_CLEANUP = {0};
    uint64_t total, available, kills;
    if (file_read(probe->all, &text, "/proc/meminfo") &&
        number_of((struct str){text.data, text.len}, "MemTotal:", &total) &&
        number_of((struct str){text.data, text.len}, "MemAvailable:", &available) && total > 0) {
        uint64_t full = stalled(probe->all);
        bool was = probe_is_on(probe, "mem/pressure", "");
        double left = 100.0 * (double)available / (double)total;
        bool on = left < (double)memory->percent || full >= (uint64_t)memory->stalled ||
                  (was && (left < (double)memory->percent + 2 || full * 2 >= (uint64_t)memory->stalled));
        probe_condition(probe, "mem/pressure", "", on, SEVERITY_MINOR,
                        "%llu of %llu KiB available, all tasks stalled %llu %% of a minute",
                        (unsigned long long)available, (unsigned long long)total, (unsigned long long)full);
    }
    if (!probe->all->log_works && file_read_all(probe->all, &vmstat, 1 << 20, "/proc/vmstat") &&
        number_of(buf_str(&vmstat), "oom_kill ", &kills)) {
        uint64_t delta = probe_delta(probe, "", "oom_kill", kills);
        if (delta > 0)
            probe_oncef(probe, "mem/oom", "", SEVERITY_MINOR, delta, "%llu processes killed for memory",
                        (unsigned long long)delta);
    }
}

const struct probe_kind probe_memory = {.name = "memory",
                                        .period_ns = 5 * NS_PER_SECOND,
                                        .cost_ns = 20 * NS_PER_MS,
                                        .keys = " availablePercent stalledPercent ",
                                        .start = start,
                                        .run = run};
