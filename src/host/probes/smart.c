/* smart.c - the health of NVMe disks: the log page "SMART / Health Information" (02h) of the NVM Express Base
 * Specification, by an admin command; below a root a file in place of the device is the page itself.
 *
 * The first byte is the disk's own verdict; its temperature is not reported here. The disk counts errors of
 * the media, which are judged by their growth. The request may block on the disk, so a child makes it. */
#include "host/probes/internal.h"

#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PAGE_BYTES = 512,
    GET_LOG_PAGE = 0x02,
    HEALTH_PAGE = 0x02,
    AT_WARNING = 0, /* offsets in the page */
    AT_SPARE = 3,
    AT_SPARE_LIMIT = 4,
    AT_USED = 5,
    AT_MEDIA_ERRORS = 160, /* 16 bytes */
};

static const struct warning {
    unsigned bit;
    const char *text;
} warnings[] = {
    {0x01, "spare blocks below the limit"}, {0x04, "reliability degraded"},     {0x08, "read-only"},
    {0x10, "backup of its cache failed"},   {0x20, "persistent memory failed"},
};

static bool read_page(const struct probes *all, const char *name, unsigned char page[PAGE_BYTES])
{
    char path[1024];
    struct stat about;
    if (!file_path(all, path, sizeof path, "/dev/%s", name))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool done = false;
    if (fd >= 0 && fstat(fd, &about) == 0 && S_ISCHR(about.st_mode)) {
        struct nvme_admin_cmd command = {.opcode = GET_LOG_PAGE,
                                         .nsid = UINT32_MAX, /* the controller's, not a name space's */
                                         .addr = (uint64_t)(uintptr_t)page,
                                         .data_len = PAGE_BYTES,
                                         .cdw10 = HEALTH_PAGE | (PAGE_BYTES / 4 - 1) << 16};
        done = ioctl(fd, NVME_IOCTL_ADMIN_CMD, &command) == 0;
    } else if (fd >= 0 && all->root[0]) {
        done = read(fd, page, PAGE_BYTES) == PAGE_BYTES;
    }
    if (fd >= 0)
        close(fd);
    return done;
}

/* Reads a number of sixteen bytes, little-endian; at most UINT64_MAX. */
static uint64_t number_at(const unsigned char *bytes)
{
    uint64_t low = 0, high = 0;
    for (int i = 7; i >= 0; i--) {
        low = low << 8 | bytes[i];
        high |= bytes[8 + i];
    }
    return high ? UINT64_MAX : low;
}

static void look(const struct probe *probe, const char *key, struct buf *facts)
{
    (void)key;
    struct names names NAMES_CLEANUP = {0};
    file_list(probe->all, &names, "nvme", "/sys/class/nvme");
    for (size_t i = 0; i < names.list.len; i++) {
        unsigned char page[PAGE_BYTES] = {0};
        char place[256];
        if (!read_page(probe->all, names.list.items[i], page))
            continue;
        snprintf(place, sizeof place, "disk/%s", names.list.items[i]);
        fact_put(facts, place, "media errors", "%llu", (unsigned long long)number_at(page + AT_MEDIA_ERRORS));
        fact_put(facts, place, "warning", "%u %u %% spare (limit %u %%), %u %% used", page[AT_WARNING],
                 page[AT_SPARE], page[AT_SPARE_LIMIT], page[AT_USED]);
    }
}

static void judge_warning(struct probe *probe, const char *place, struct str value)
{
    struct str number, rest;
    uint64_t bits;
    char text[256];
    size_t len = 0;
    unsigned known = 0;
    if (!str_cut(value, ' ', &number, &rest) || !str_to_u64(number, &bits))
        return;
    text[0] = 0;
    for (size_t i = 0; i < sizeof warnings / sizeof *warnings; i++) {
        known |= warnings[i].bit;
        if (bits & warnings[i].bit)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s, ", warnings[i].text);
    }
    probe_condition(probe, "disk/smart", place, (bits & known) != 0, SEVERITY_MAJOR, "%s" STR_FORMAT, text,
                    STR_ARG(rest));
}

static void judge(struct probe *probe, const char *key, struct str facts)
{
    (void)key;
    for (struct fact fact; fact_next(&facts, &fact);) {
        struct probe_place place = place_of(STR_FORMAT, STR_ARG(fact.place));
        uint64_t count;
        if (str_is(fact.name, "warning"))
            judge_warning(probe, place.text, fact.value);
        else if (str_is(fact.name, "media errors") && str_to_u64(fact.value, &count)) {
            uint64_t delta = probe_delta(probe, place.text, "media errors", count);
            if (delta > 0)
                probe_oncef(probe, "disk/media", place.text, SEVERITY_MAJOR, delta,
                            "%llu more errors of the media", (unsigned long long)delta);
        }
    }
}

const struct probe_kind probe_smart = {.name = "smart",
                                       .period_ns = 600 * NS_PER_SECOND,
                                       .cost_ns = 100 * NS_PER_MS,
                                       .timeout_ns = 30 * NS_PER_SECOND,
                                       .look = look,
                                       .judge = judge};
