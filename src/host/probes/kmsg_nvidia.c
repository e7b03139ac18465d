/* kmsg_nvidia.c - XIDs and SXids of NVIDIA's drivers, by their catalogue. */
#include "host/probes/internal.h"

#include <ctype.h>
#include <stdio.h>

/* Reads the text between `open` and the next ')' or blank, then "): NUMBER". */
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

/* Follows the immediate actions of NVIDIA's catalogue: IGNORE, RESTART_APP, the gravest ones, all others. */
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

/* Reads the recovery action that XID 154 names: the number after "to". */
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
    if (kmsg_hex(text, " to 0x", &action) && action < sizeof actions / sizeof *actions) {
        snprintf(code, size, "xid/154-%s", actions[action].name);
        *severity = actions[action].severity;
    }
}

/* --- NVLink 5: XIDs 144 to 150 -------------------------------------------------------------------- */

/* "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 ...)": the unit, the driver's severity, the
 * interrupt's word, whose bits 20 to 25 are the sub-code, and the error status. */
enum nvlink { NVLINK_UNSAID, NVLINK_NONFATAL, NVLINK_FATAL };
enum { LINK_TRAINING_BY_USER = 38, LINK_HOST_DOWN = 40 };

static unsigned nvlink_sub_code(uint64_t intr)
{
    return (unsigned)(intr >> 20 & 0x3f);
}

/* Returns whether the catalogue requires RESET_GPU for these status bits of a unit; it ignores all others, or
 * leaves them to the XID 154 that follows. */
static bool nvlink_status_is_fatal(struct str text, uint64_t status)
{
    static const struct {
        const char *unit;
        uint32_t fatal;
    } units[] = {
        {"SAW_MVB", 0x12},          {"RLW_REMAP", 0xc0}, {"RLW_RSPCOL", 0x2}, {"RLW_SRC_TRACK", 0x31},
        {"RLW_TAGSTATE", 0x120002}, {"TLW_CTRL", 0x4},   {"TLW_RX", 0x4},     {"TLW_TX", 0x4}};
    bool always = kmsg_has(text, "NETIR_INT") || kmsg_has(text, "NETIR_LINK") ||
                  kmsg_has(text, "MSE_WATCHDOG") || (kmsg_has(text, "NETIR_MFDE") && status != 3);
    for (size_t i = 0; !always && i < sizeof units / sizeof *units; i++)
        if (kmsg_has(text, units[i].unit) && (status & units[i].fatal))
            return true;
    return always;
}

static enum nvlink nvlink_judge(struct str text)
{
    uint64_t intr, status;
    bool words = kmsg_hex(text, "(0x", &intr) && kmsg_hex(text, " 0x", &status);
    bool link = words && (kmsg_has(text, "NETIR_LINK_EVT") || kmsg_has(text, "NETIR_LINK_DOWN"));
    unsigned sub_code = link ? nvlink_sub_code(intr) : 0;
    /* Fatal to the link, but ignored by the catalogue: caused by a user or the host. */
    if (sub_code == LINK_TRAINING_BY_USER || sub_code == LINK_HOST_DOWN)
        return NVLINK_NONFATAL;
    if (kmsg_has(text, "Nonfatal") || kmsg_has(text, "Non-fatal"))
        return NVLINK_NONFATAL;
    if (kmsg_has(text, "Fatal"))
        return NVLINK_FATAL;
    if (!words)
        return NVLINK_UNSAID;
    return nvlink_status_is_fatal(text, status) ? NVLINK_FATAL : NVLINK_NONFATAL;
}

bool kmsg_xid(struct probe *probe, struct str line, int64_t at_ns)
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
        if (kmsg_hex(text, "(0x", &intr)) {
            snprintf(with, sizeof with, "sub-code %u: " STR_FORMAT, nvlink_sub_code(intr), STR_ARG(line));
            line = str_from(with);
        }
    }
    struct probe_place place = kmsg_pci_place("gpu", address);
    probe_once(probe, code, place.text, severity, at_ns, 1, line);
    return true;
}

bool kmsg_sxid(struct probe *probe, struct str line, int64_t at_ns)
{
    struct str address, text;
    uint64_t number;
    char code[SIGNAL_CODE_MAX + 1];
    if (!take_number(line, "SXid (", &address, &number, &text))
        return false;
    /* "24007, Severity 1 Engine instance 54 ..." and "24007, Data {0x00000001, ...}" only add details. */
    if (str_starts(text, STR(", Severity ")) || str_starts(text, STR(", Data {")))
        return true;
    bool fatal = str_starts(text, STR(", Fatal")) || str_starts(text, STR(", fatal"));
    snprintf(code, sizeof code, "sxid/%llu%s", (unsigned long long)number, fatal ? "-fatal" : "");
    struct probe_place place = kmsg_pci_place("switch", address);
    probe_once(probe, code, place.text, fatal ? SEVERITY_CRITICAL : SEVERITY_MINOR, at_ns, 1, line);
    return true;
}
