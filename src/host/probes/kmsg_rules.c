/* kmsg_rules.c - what lines of the kernel log mean. */
#include "host/probes/internal.h"

#include <ctype.h>
#include <stdio.h>

enum form { ONCE, BEGIN, END };

/* The first rule that matches a line is the one that counts. */
static const struct rule {
    const char *pattern; /* match() */
    const char *code;
    const char *place; /* before the captured word number `word`; NULL: the machine */
    uint8_t word;
    enum signal_severity severity;
    enum form form;
    bool anyone; /* counts whoever wrote it */
} rules[] = {
    {"NVRM: GPU @*GPU has fallen off the bus", "xid/79", "gpu/", 0, SEVERITY_CRITICAL, ONCE, false},
    {"NVRM: GPU @*RmInitAdapter failed", "gpu/init", "gpu/", 0, SEVERITY_MAJOR, ONCE, false},
    {"nvidia-peermem*ERROR detected invalid context", "gpu/peermem", NULL, 0, SEVERITY_NOTICE, ONCE, false},

    {"oom-kill:constraint=*,task=@,pid=%", "mem/oom", "process/", 0, SEVERITY_MINOR, ONCE, false},
    {"ut of memory: Kill process % (@)", "mem/oom", "process/", 1, SEVERITY_MINOR, ONCE, false},
    {"ut of memory: Killed process % (@)", "mem/oom", "process/", 1, SEVERITY_MINOR, ONCE, false},
    {"Memory failure: *ecovery action for *: ", "edac/ue", NULL, 0, SEVERITY_MAJOR, ONCE, false},

    {"INFO: task @ blocked for more than % seconds", "cpu/hung-task", "process/", 0, SEVERITY_MINOR, ONCE,
     false},
    {"soft lockup - CPU#% stuck for", "cpu/lockup", "cpu/", 0, SEVERITY_MAJOR, ONCE, false},
    {"hard LOCKUP on cpu %", "cpu/lockup", "cpu/", 0, SEVERITY_CRITICAL, ONCE, false},
    {"rcu: INFO: rcu_*self-detected stall on CPU", "cpu/lockup", NULL, 0, SEVERITY_MINOR, ONCE, false},
    {"rcu: INFO: rcu_*detected stalls on CPUs", "cpu/lockup", NULL, 0, SEVERITY_MINOR, ONCE, false},
    {"Kernel panic - not syncing", "os/panic", NULL, 0, SEVERITY_CRITICAL, ONCE, false},
    {"Oops: %", "os/oops", NULL, 0, SEVERITY_MAJOR, ONCE, false},
    {"kernel BUG at ", "os/oops", NULL, 0, SEVERITY_MAJOR, ONCE, false},
    {"critical temperature reached", "cpu/thermal", NULL, 0, SEVERITY_CRITICAL, ONCE, false},
    {"CPU%: *temperature above threshold, cpu clock throttled", "cpu/throttle", "cpu/", 0, SEVERITY_NOTICE,
     ONCE, false},
    {"Marking clocksource '@' as unstable", "clock/source", NULL, 0, SEVERITY_MINOR, ONCE, false},

    {"nvme @: I/O *timeout, reset controller", "disk/timeout", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"nvme @: I/O *timeout, ", "disk/timeout", "disk/", 0, SEVERITY_MINOR, ONCE, false},
    {"nvme @: controller is down; will reset", "disk/timeout", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"nvme @: Disabling device after reset failure", "disk/failed", "disk/", 0, SEVERITY_CRITICAL, ONCE,
     false},
    {"nvme @: Removing after probe failure", "disk/failed", "disk/", 0, SEVERITY_CRITICAL, ONCE, false},
    {"Buffer I/O error on dev @", "disk/io", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"Buffer I/O error on device @", "disk/io", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"I/O error, dev @, sector %", "disk/io", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"critical medium error, dev @", "disk/io", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"attempt to access beyond end of device", "disk/io", NULL, 0, SEVERITY_MINOR, ONCE, false},
    {"md/raid*Disk failure on @", "disk/raid", "disk/", 0, SEVERITY_MAJOR, ONCE, false},

    {"EXT4-fs error (device @)", "fs/error", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"EXT4-fs (@): Remounting filesystem read-only", "mount/read-only", "disk/", 0, SEVERITY_MAJOR, ONCE,
     false},
    {"XFS (@): *orruption", "fs/error", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"XFS (@): *I/O error", "fs/error", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"XFS (@): *hut down", "fs/error", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"BTRFS error (device @)", "fs/error", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"BTRFS critical (device @)", "fs/error", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"emounting filesystem read-only", "mount/read-only", NULL, 0, SEVERITY_MAJOR, ONCE, false},
    {"nfs: server @ not responding", "nfs/server", "server/", 0, SEVERITY_MAJOR, BEGIN, false},
    {"nfs: server @ OK", "nfs/server", "server/", 0, SEVERITY_MAJOR, END, false},

    {"mlx5_core @*Port module event[error]*High Temperature", "mlx5/temperature", "pci/", 0, SEVERITY_MAJOR,
     ONCE, false},
    {"mlx5_core @*Port module event[error]", "mlx5/module", "pci/", 0, SEVERITY_MINOR, ONCE, false},
    {"mlx5_core @*Detected insufficient power on the PCIe slot", "mlx5/power", "pci/", 0, SEVERITY_MINOR,
     ONCE, false},
    {"mlx5_core @*health compromised", "mlx5/health", "pci/", 0, SEVERITY_MAJOR, ONCE, false},
    {"@: DPC: containment event", "pcie/fatal", "pci/", 0, SEVERITY_CRITICAL, ONCE, false},
    {"@: Lost carrier", "eth/carrier", "net/", 0, SEVERITY_NOTICE, ONCE, true},
};

/* "PCI:0000:9b:00", "0000:9B:00.0": as sysfs writes it, "0000:9b:00.0". */
static struct place pci_place(const char *kind, struct str address)
{
    char text[32] = {0};
    if (str_starts(address, STR("PCI:")))
        address = (struct str){address.data + 4, address.len - 4};
    size_t len = address.len < sizeof text - 1 ? address.len : sizeof text - 1;
    bool function = false;
    for (size_t i = 0; i < len; i++) {
        text[i] = (char)tolower((unsigned char)address.data[i]);
        function = function || text[i] == '.';
    }
    return place_of("%s/%s%s", kind, text, function ? "" : ".0");
}

/* What stands between `open` and the next ')' or blank, then "): NUMBER". */
static bool take_number(struct str line, const char *open, struct str *ret_address, uint64_t *ret_number,
                        struct str *ret_text)
{
    const char *found = memmem(line.data, line.len, open, strlen(open));
    struct str address, rest;
    if (!found)
        return false;
    const char *start = found + strlen(open);
    rest = (struct str){start, line.len - (size_t)(start - line.data)};
    if (!str_cut(rest, ')', &address, &rest) || !str_starts(rest, STR(": ")))
        return false;
    str_cut(address, ' ', &address, &(struct str){0}); /* "PCI:0000:05:00 GPU-I:05": a part of it */
    rest = (struct str){rest.data + 2, rest.len - 2};
    size_t digits = 0;
    while (digits < rest.len && digits < 7 && isdigit((unsigned char)rest.data[digits]))
        digits++;
    if (address.len == 0 || digits > 6 || !str_to_u64((struct str){rest.data, digits}, ret_number))
        return false;
    *ret_address = address;
    *ret_text = (struct str){rest.data + digits, rest.len - digits};
    return true;
}

static bool has(struct str text, const char *part)
{
    return text.len > 0 && memmem(text.data, text.len, part, strlen(part)) != NULL;
}

static bool hex_after(struct str text, const char *before, uint64_t *ret_value)
{
    const char *found = text.len ? memmem(text.data, text.len, before, strlen(before)) : NULL;
    uint64_t value = 0;
    size_t digits = 0;
    if (!found)
        return false;
    for (const char *at = found + strlen(before); at < text.data + text.len && digits < 16; at++, digits++) {
        char c = (char)tolower((unsigned char)*at);
        if (!isxdigit((unsigned char)c))
            break;
        value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *ret_value = value;
    return digits > 0;
}

/* By the immediate answers of NVIDIA's catalogue: IGNORE, RESTART_APP, the gravest, all others. */
enum signal_severity xid_severity(uint64_t number)
{
    static const struct {
        uint8_t first, last;
        enum signal_severity severity;
    } ranges[] = {
        /* clang-format off */
        {14, 14, SEVERITY_NOTICE}, {37, 38, SEVERITY_NOTICE}, {43, 45, SEVERITY_NOTICE},
        {63, 63, SEVERITY_NOTICE}, {66, 67, SEVERITY_NOTICE}, {78, 78, SEVERITY_NOTICE},
        {92, 93, SEVERITY_NOTICE}, {106, 108, SEVERITY_NOTICE}, {121, 121, SEVERITY_NOTICE},
        {137, 137, SEVERITY_NOTICE}, {141, 141, SEVERITY_NOTICE}, {152, 153, SEVERITY_NOTICE},
        {157, 157, SEVERITY_NOTICE}, {159, 172, SEVERITY_NOTICE},
        {8, 8, SEVERITY_MINOR}, {11, 11, SEVERITY_MINOR}, {13, 13, SEVERITY_MINOR},
        {25, 25, SEVERITY_MINOR}, {31, 32, SEVERITY_MINOR}, {39, 41, SEVERITY_MINOR},
        {60, 60, SEVERITY_MINOR}, {68, 72, SEVERITY_MINOR}, {75, 77, SEVERITY_MINOR},
        {80, 80, SEVERITY_MINOR}, {82, 86, SEVERITY_MINOR}, {88, 89, SEVERITY_MINOR},
        {94, 94, SEVERITY_MINOR}, {96, 105, SEVERITY_MINOR}, {126, 135, SEVERITY_MINOR},
        {139, 139, SEVERITY_MINOR},
        {48, 48, SEVERITY_CRITICAL}, {54, 54, SEVERITY_CRITICAL}, {64, 64, SEVERITY_CRITICAL},
        {79, 79, SEVERITY_CRITICAL}, {95, 95, SEVERITY_CRITICAL},
        /* clang-format on */
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (number >= ranges[i].first && number <= ranges[i].last)
            return ranges[i].severity;
    return SEVERITY_MAJOR;
}

/* 154 says what it wants: the number behind "to". */
static void recovery_action(struct str text, char *code, size_t size, enum signal_severity *severity)
{
    static const struct {
        const char *name;
        enum signal_severity severity;
    } actions[] = {{"none", SEVERITY_NOTICE},
                   {"reset", SEVERITY_MAJOR},
                   {"reboot", SEVERITY_CRITICAL},
                   {"drain", SEVERITY_MAJOR},
                   {"drain-reset", SEVERITY_MAJOR}};
    uint64_t action;
    if (hex_after(text, " to 0x", &action) && action < sizeof actions / sizeof *actions) {
        snprintf(code, size, "xid/154-%s", actions[action].name);
        *severity = actions[action].severity;
    }
}

/* --- NVLink 5: XIDs 144 to 150 -------------------------------------------------------------------- */

/* "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 ...)": the unit, the driver's own word, the
 * interrupt's word, whose bits 20 to 25 are the sub-code, and the error status. */
enum nvlink { NVLINK_UNSAID, NVLINK_NONFATAL, NVLINK_FATAL };
enum { LINK_TRAINING_BY_USER = 38, LINK_HOST_DOWN = 40 };

static unsigned nvlink_sub_code(uint64_t intr)
{
    return (unsigned)(intr >> 20 & 0x3f);
}

/* The catalogue answers these status bits of a unit with RESET_GPU; all others it ignores, or leaves to the
 * XID 154 that follows. */
static bool nvlink_status_is_fatal(struct str text, uint64_t status)
{
    static const struct {
        const char *unit;
        uint32_t fatal;
    } units[] = {
        {"SAW_MVB", 0x12},          {"RLW_REMAP", 0xc0}, {"RLW_RSPCOL", 0x2}, {"RLW_SRC_TRACK", 0x31},
        {"RLW_TAGSTATE", 0x120002}, {"TLW_CTRL", 0x4},   {"TLW_RX", 0x4},     {"TLW_TX", 0x4}};
    bool always = has(text, "NETIR_INT") || has(text, "NETIR_LINK") || has(text, "MSE_WATCHDOG") ||
                  (has(text, "NETIR_MFDE") && status != 3);
    for (size_t i = 0; !always && i < sizeof units / sizeof *units; i++)
        if (has(text, units[i].unit) && (status & units[i].fatal))
            return true;
    return always;
}

static enum nvlink nvlink_judge(struct str text)
{
    uint64_t intr, status;
    bool words = hex_after(text, "(0x", &intr) && hex_after(text, " 0x", &status);
    bool link = words && (has(text, "NETIR_LINK_EVT") || has(text, "NETIR_LINK_DOWN"));
    unsigned sub_code = link ? nvlink_sub_code(intr) : 0;
    /* Fatal to the link, but ignored by the catalogue: what a user or the host did to it. */
    if (sub_code == LINK_TRAINING_BY_USER || sub_code == LINK_HOST_DOWN)
        return NVLINK_NONFATAL;
    if (has(text, "Nonfatal") || has(text, "Non-fatal"))
        return NVLINK_NONFATAL;
    if (has(text, "Fatal"))
        return NVLINK_FATAL;
    if (!words)
        return NVLINK_UNSAID;
    return nvlink_status_is_fatal(text, status) ? NVLINK_FATAL : NVLINK_NONFATAL;
}

static bool judge_xid(struct probe *probe, struct str line, int64_t at_ns)
{
    struct str address, text;
    uint64_t number, intr;
    char code[SIGNAL_CODE_MAX + 1], with[SIGNAL_EVIDENCE_MAX + 1];
    if (!take_number(line, "NVRM: Xid (", &address, &number, &text))
        return false;
    enum signal_severity severity = xid_severity(number);
    snprintf(code, sizeof code, "xid/%llu", (unsigned long long)number);
    if (number == 154)
        recovery_action(text, code, sizeof code, &severity);
    enum nvlink nvlink = number >= 144 && number <= 150 ? nvlink_judge(text) : NVLINK_UNSAID;
    if (nvlink != NVLINK_UNSAID) {
        bool fatal = nvlink == NVLINK_FATAL;
        snprintf(code, sizeof code, "xid/%llu-%s", (unsigned long long)number, fatal ? "fatal" : "nonfatal");
        severity = fatal ? SEVERITY_CRITICAL : SEVERITY_MINOR;
        if (hex_after(text, "(0x", &intr)) {
            snprintf(with, sizeof with, "sub-code %u: " STR_FORMAT, nvlink_sub_code(intr), STR_ARG(line));
            line = str_from(with);
        }
    }
    struct place place = pci_place("gpu", address);
    probe_once(probe, code, place.text, severity, at_ns, 1, line);
    return true;
}

static bool judge_sxid(struct probe *probe, struct str line, int64_t at_ns)
{
    struct str address, text;
    uint64_t number;
    char code[SIGNAL_CODE_MAX + 1];
    if (!take_number(line, "SXid (", &address, &number, &text))
        return false;
    /* "24007, Severity 1 Engine instance 54 ..." and "24007, Data {0x00000001, ...}" go on about the same. */
    if (str_starts(text, STR(", Severity ")) || str_starts(text, STR(", Data {")))
        return true;
    bool fatal = str_starts(text, STR(", Fatal")) || str_starts(text, STR(", fatal"));
    snprintf(code, sizeof code, "sxid/%llu%s", (unsigned long long)number, fatal ? "-fatal" : "");
    struct place place = pci_place("switch", address);
    probe_once(probe, code, place.text, fatal ? SEVERITY_CRITICAL : SEVERITY_MINOR, at_ns, 1, line);
    return true;
}

/* "mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 5: be00000000800400": bit 61 of the bank's status says
 * that it was not corrected. Firmware's reports say it in words. Other lines only go on about the same. */
static bool judge_mce(struct probe *probe, struct str line, int64_t at_ns)
{
    struct str captures[CAPTURES_MAX] = {{0}};
    uint64_t status;
    if (!has(line, "[Hardware Error]"))
        return false;
    bool uncorrected = has(line, "event severity: fatal") || has(line, "event severity: recoverable");
    bool corrected = has(line, "event severity: corrected") || has(line, "Machine check events logged");
    struct place place = place_of("%s", "");
    if (match("CPU %: Machine Check*Bank %: ", line, captures)) {
        const char *end = captures[1].data + captures[1].len;
        struct str rest = {end, line.len - (size_t)(end - line.data)};
        if (hex_after(rest, ": ", &status)) {
            uncorrected = status >> 61 & 1;
            corrected = !uncorrected;
            place = place_of("cpu/" STR_FORMAT, STR_ARG(captures[0]));
        }
    }
    if (uncorrected || corrected)
        probe_once(probe, uncorrected ? "mce/uncorrected" : "mce/corrected", place.text,
                   uncorrected ? SEVERITY_CRITICAL : SEVERITY_NOTICE, at_ns, 1, line);
    return true;
}

static struct place rule_place(const struct rule *rule, const struct str *captures)
{
    struct str word = captures[rule->word];
    if (!rule->place)
        return place_of("%s", "");
    if (strcmp(rule->place, "gpu/") == 0)
        return pci_place("gpu", word);
    if (strcmp(rule->code, "cpu/hung-task") == 0) { /* name and pid: the name */
        const char *colon = memrchr(word.data, ':', word.len);
        word.len = colon && colon > word.data ? (size_t)(colon - word.data) : word.len;
    }
    return place_of("%s" STR_FORMAT, rule->place, STR_ARG(word));
}

static void judge_rules(struct probe *probe, struct str line, int64_t at_ns, bool kernel)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *rule = &rules[i];
        struct str captures[CAPTURES_MAX] = {{0}};
        if ((!kernel && !rule->anyone) || !match(rule->pattern, line, captures))
            continue;
        struct place place = rule_place(rule, captures);
        if (rule->form == ONCE)
            probe_once(probe, rule->code, place.text, rule->severity, at_ns, 1, line);
        else
            probe_condition(probe, rule->code, place.text, rule->form == BEGIN, rule->severity, STR_FORMAT,
                            STR_ARG(line));
        return;
    }
}

void kmsg_judge(struct probe *probe, struct str line, int64_t at_ns, bool kernel)
{
    if (line.len == 0)
        return;
    if (kernel &&
        (judge_xid(probe, line, at_ns) || judge_sxid(probe, line, at_ns) || judge_mce(probe, line, at_ns)))
        return;
    judge_rules(probe, line, at_ns, kernel);
}
