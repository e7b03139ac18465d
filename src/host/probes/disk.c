/* disk.c - disks by sysfs: /sys/class/nvme/nvme0/state, /sys/block/sda/device/state, /proc/mdstat,
 * /sys/fs/ext4/sda1/errors_count. kmsg.c reads the kernel log's lines about disks; the error counts of ext4
 * are reported only if the log cannot be read. */
#include "host/probes/internal.h"

#include <stdio.h>

static void look_md(const struct probes *all, struct buf *facts)
{
    struct buf text BUF_CLEANUP = {0};
    struct str line, rest, name = {0}, captures[CAPTURES_MAX];
    if (!file_read_all(all, &text, 1 << 20, "/proc/mdstat"))
        return;
    for (struct str left = buf_str(&text); str_cut(left, '\n', &line, &rest); left = rest) {
        if (str_starts(line, STR("md")))
            name = match("@ : ", line, captures) ? captures[0] : (struct str){0};
        if (name.len == 0 || !match("[%/%] [", line, captures)) /* "[2/1] [U_]": wanted/there */
            continue;
        char place[128];
        snprintf(place, sizeof place, "disk/" STR_FORMAT, STR_ARG(name));
        fact_put(facts, place, "raid", STR_FORMAT "/" STR_FORMAT, STR_ARG(captures[0]), STR_ARG(captures[1]));
        name = (struct str){0};
    }
}

static void look_state(const struct probes *all, struct buf *facts, const char *name, const char *kind,
                       const char *format)
{
    struct text text;
    char path[512], place[256];
    snprintf(path, sizeof path, format, name);
    snprintf(place, sizeof place, "disk/%s", name);
    if (file_read(all, &text, "%s", path))
        fact_put(facts, place, kind, "%s", text.data);
}

static void look(const struct probe *probe, const char *key, struct buf *facts)
{
    (void)key;
    struct names nvme NAMES_CLEANUP = {0}, block NAMES_CLEANUP = {0}, ext4 NAMES_CLEANUP = {0};
    file_list(probe->all, &nvme, "nvme", "/sys/class/nvme");
    for (size_t i = 0; i < nvme.list.len; i++)
        look_state(probe->all, facts, nvme.list.items[i], "nvme", "/sys/class/nvme/%s/state");
    file_list(probe->all, &block, "sd", "/sys/block");
    for (size_t i = 0; i < block.list.len; i++)
        look_state(probe->all, facts, block.list.items[i], "scsi", "/sys/block/%s/device/state");
    file_list(probe->all, &ext4, "", "/sys/fs/ext4");
    for (size_t i = 0; i < ext4.list.len; i++)
        look_state(probe->all, facts, ext4.list.items[i], "ext4", "/sys/fs/ext4/%s/errors_count");
    look_md(probe->all, facts);
}

static void judge(struct probe *probe, const char *key, struct str facts)
{
    (void)key;
    for (struct fact fact; fact_next(&facts, &fact);) {
        struct probe_place place = place_of(STR_FORMAT, STR_ARG(fact.place));
        struct str value = fact.value, wanted, there;
        uint64_t count;
        if (str_is(fact.name, "nvme")) {
            bool dead = str_is(value, "dead") || str_starts(value, STR("deleting"));
            bool resetting = str_is(value, "resetting") || str_is(value, "connecting");
            probe_condition(probe, "disk/failed", place.text, dead, SEVERITY_CRITICAL, "state " STR_FORMAT,
                            STR_ARG(value));
            probe_condition(probe, "disk/timeout", place.text, resetting, SEVERITY_MAJOR, "state " STR_FORMAT,
                            STR_ARG(value));
        } else if (str_is(fact.name, "scsi")) {
            bool off = str_is(value, "offline") || str_is(value, "transport-offline");
            probe_condition(probe, "disk/failed", place.text, off, SEVERITY_CRITICAL, "state " STR_FORMAT,
                            STR_ARG(value));
        } else if (str_is(fact.name, "raid") && str_cut(value, '/', &wanted, &there)) {
            probe_condition(probe, "disk/raid", place.text, !str_equal(wanted, there), SEVERITY_MAJOR,
                            STR_FORMAT " of " STR_FORMAT " disks", STR_ARG(there), STR_ARG(wanted));
        } else if (str_is(fact.name, "ext4") && str_to_u64(value, &count)) {
            uint64_t delta = probe_delta(probe, place.text, "errors", count);
            if (delta > 0 && !probe->all->log_works)
                probe_oncef(probe, "fs/error", place.text, SEVERITY_MAJOR, delta, "%llu ext4 errors",
                            (unsigned long long)delta);
        }
    }
}

const struct probe_kind probe_disk = {.name = "disk",
                                      .period_ns = 30 * NS_PER_SECOND,
                                      .cost_ns = 100 * NS_PER_MS,
                                      .timeout_ns = 10 * NS_PER_SECOND,
                                      .look = look,
                                      .judge = judge};
