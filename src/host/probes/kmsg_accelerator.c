/* kmsg_accelerator.c - kernel log lines of drivers of accelerators other than NVIDIA's: amdgpu, habanalabs
 * (Gaudi), Ascend's. The first row that matches a line counts. */
#include "host/probes/internal.h"

#include <ctype.h>

struct row {
    const char *pattern; /* match() */
    const char *code;    /* NULL: the line has no meaning, although others look like it */
    enum signal_severity severity;
    bool counted; /* the first captured word must be a number, and not 0 */
};

/* Rows are tried in order, so more specific ones come first. */
static const struct row amd_rows[] = {
    {"@ new uncorrectable hardware errors", "gpu/ecc-uncorrected", SEVERITY_CRITICAL, true},
    {"@ uncorrectable hardware errors detected", "gpu/ecc-uncorrected", SEVERITY_CRITICAL, true},
    {"@ uncorrectable errors detected in ", "gpu/ecc-uncorrected", SEVERITY_CRITICAL, true},
    {"ncorrectable hardware error(", "gpu/ecc-uncorrected", SEVERITY_CRITICAL, false},
    {"oison consumption, fall back to gpu reset flow", "gpu/ecc-uncorrected", SEVERITY_CRITICAL, false},
    {"oison consumption, unmap queue flow succeeded", "gpu/poison", SEVERITY_MINOR, false},
    {"oison is consumed by client ", "gpu/poison", SEVERITY_MINOR, false},
    {"@ new poison consumption detected", "gpu/poison", SEVERITY_MINOR, true},
    {"@ new deferred hardware errors", "gpu/ecc-deferred", SEVERITY_MINOR, true},
    {"@ deferred hardware errors detected", "gpu/ecc-deferred", SEVERITY_MINOR, true},
    {"Poison is created", "gpu/ecc-deferred", SEVERITY_MINOR, false},
    {" correctable hardware errors", NULL, SEVERITY_NOTICE, false},
    {"Accelerator Check Architecture events logged", "gpu/ras", SEVERITY_MINOR, false},
    {"RAS controller interrupt triggered by", "gpu/ras", SEVERITY_MINOR, false},

    {"bad pages % reaches threshold", "gpu/bad-pages", SEVERITY_CRITICAL, false},
    {"RAS records:% exceed", "gpu/bad-pages", SEVERITY_CRITICAL, false},
    {"xceed*bad_page_threshold", "gpu/bad-pages", SEVERITY_CRITICAL, false},
    {"ad page threshold *xceed", "gpu/bad-pages", SEVERITY_CRITICAL, false},
    {"ad page threshold *reached", "gpu/bad-pages", SEVERITY_CRITICAL, false},
    {"GPU will not be initialized", "gpu/bad-pages", SEVERITY_CRITICAL, false},
    {"RMA state", "gpu/bad-pages", SEVERITY_CRITICAL, false},
    {"@ new bad page", "gpu/page-retired", SEVERITY_NOTICE, true},
    {"@ bad page", "gpu/page-retired", SEVERITY_NOTICE, true},

    {"GPU reset(%) failed", "gpu/reset-failed", SEVERITY_CRITICAL, false},
    {"GPU reset failed", "gpu/reset-failed", SEVERITY_CRITICAL, false},
    {"GPU reset end with ret = -", "gpu/reset-failed", SEVERITY_CRITICAL, false},
    {"ASIC reset failed with error", "gpu/reset-failed", SEVERITY_CRITICAL, false},
    {"GPU Recovery Failed", "gpu/reset-failed", SEVERITY_CRITICAL, false},
    {"ode1 reset failed", "gpu/reset-failed", SEVERITY_CRITICAL, false},
    {"ode2 reset failed", "gpu/reset-failed", SEVERITY_CRITICAL, false},
    {"GPU reset begin", "gpu/reset", SEVERITY_MINOR, false},
    {"device lost from bus", "gpu/lost", SEVERITY_CRITICAL, false},
    {"GPU mode1 reset", NULL, SEVERITY_NOTICE, false},

    {"MES*failed to respon", "gpu/firmware", SEVERITY_MAJOR, false}, /* older drivers: "response msg=14" */
    {"MES might be in unrecoverable state", "gpu/firmware", SEVERITY_MAJOR, false},
    {"MES ring buffer is full", "gpu/firmware", SEVERITY_MAJOR, false},
    {"might be in an unrecoverable state", "gpu/firmware", SEVERITY_MAJOR, false},
    {"ueue preemption failed", "gpu/firmware", SEVERITY_MAJOR, false},
    {"Failed to evict process queues", "gpu/firmware", SEVERITY_MAJOR, false},
    {"qcm fence wait loop timeout", "gpu/firmware", SEVERITY_MAJOR, false},
    {"I'm not done with your previous command", "gpu/firmware", SEVERITY_MAJOR, false},
    {"ailed to send message 0x*response 0x0", "gpu/firmware", SEVERITY_MAJOR, false},
    {"ailed to remove hardware queue", "gpu/firmware", SEVERITY_MAJOR, false},
    {"ailed to add hardware queue", "gpu/firmware", SEVERITY_MAJOR, false},
    {"device inaccessible", "gpu/lost", SEVERITY_CRITICAL, false},
    {"ueue preemption time out", "gpu/firmware", SEVERITY_MAJOR, false},
    {"PCI error: detected callback, state(3)", "gpu/lost", SEVERITY_CRITICAL, false},
    {"PCI error: detected callback", "gpu/reset", SEVERITY_MINOR, false},
    {"ailed to reset legacy queue", "gpu/firmware", SEVERITY_MAJOR, false},
    {"Fatal error during GPU init", "gpu/init", SEVERITY_MAJOR, false},
    {"w_init of IP block <@> failed", "gpu/init", SEVERITY_MAJOR, false},

    {"ring @ timeout, but soft recovered", NULL, SEVERITY_NOTICE, false},
    {"ring @ timeout", "gpu/hang", SEVERITY_MINOR, false},
    {"] no-retry page fault", "gpu/page-fault", SEVERITY_MINOR, false},
    {"hub@] page fault (src_id:", "gpu/page-fault", SEVERITY_MINOR, false},
    {"hub] page fault (src_id:", "gpu/page-fault", SEVERITY_MINOR, false},
    {"over temperature range", "gpu/temperature", SEVERITY_MAJOR, false},
    {"HW Critical Temperature Fault", "gpu/temperature", SEVERITY_CRITICAL, false},
    {"GPU is throttled", "gpu/clocks", SEVERITY_MINOR, false},
    {"PCS *Err detected", "gpu/nvlink-errors", SEVERITY_MINOR, false},
};

static const struct row gaudi_rows[] = {
    {"PCI link is broken", "gpu/lost", SEVERITY_CRITICAL, false},
    {"eartbeat failed", "gpu/firmware", SEVERITY_MAJOR, false},
    {"Failed to communicate with Device CPU", "gpu/firmware", SEVERITY_MAJOR, false},
    {"CPU-CP timeout", "gpu/firmware", SEVERITY_MAJOR, false},
    {"atal error", "gpu/firmware", SEVERITY_MAJOR, false},
    {"vent queue is full", "gpu/firmware", SEVERITY_MAJOR, false},
    {"ailed to reset", "gpu/reset-failed", SEVERITY_CRITICAL, false},
    {"eset failed", "gpu/reset-failed", SEVERITY_CRITICAL, false},
    {"ritical error", "gpu/firmware", SEVERITY_MAJOR, false},
    {"ailed to initialize CPU H/W queues", "gpu/init", SEVERITY_MAJOR, false},
    {"ailed to initialize the H/W", "gpu/init", SEVERITY_MAJOR, false},
    {"evice is NOT usable", "gpu/init", SEVERITY_MAJOR, false},
    {"evice unusable", "gpu/init", SEVERITY_MAJOR, false},
    {"evice boot error", "gpu/init", SEVERITY_MAJOR, false},
    {"Going to *reset", "gpu/reset", SEVERITY_MINOR, false},
    {"ECC error detected*critical 0", "gpu/ecc-deferred", SEVERITY_MINOR, false},
    {"ECC error detected*critical %", "gpu/ecc-uncorrected", SEVERITY_CRITICAL, false},
    {"ECC error detected", "gpu/ecc-deferred", SEVERITY_MINOR, false},
    {"H/W interrupt %*DERR", "gpu/ecc-uncorrected", SEVERITY_CRITICAL, false},
    {"DERR=1", "gpu/ecc-uncorrected", SEVERITY_CRITICAL, false},
    {"System Error Interrupt - HBM", "gpu/ecc-uncorrected", SEVERITY_CRITICAL, false},
    {"CATTRIP=1", "gpu/temperature", SEVERITY_CRITICAL, false},
    {"DERR=0", NULL, SEVERITY_NOTICE, false},
    {"DERR", "gpu/ecc-uncorrected", SEVERITY_CRITICAL, false},
    {"high temp", "gpu/temperature", SEVERITY_MAJOR, false},
    {"RAZWI", "gpu/page-fault", SEVERITY_MINOR, false},
    {"page fault on va", "gpu/page-fault", SEVERITY_MINOR, false},
    {"has not finished in time", "gpu/hang", SEVERITY_MINOR, false},
};

/* In lower case, as the driver's modules write the same in many ways. */
static const struct row ascend_rows[] = {
    {"heart beat lost", "gpu/lost", SEVERITY_CRITICAL, false},
    {"heartbeat lost", "gpu/lost", SEVERITY_CRITICAL, false},
    {"heartbeat is lost", "gpu/lost", SEVERITY_CRITICAL, false},
    {"heart beat is lost", "gpu/lost", SEVERITY_CRITICAL, false},
    {"lost heartbeat", "gpu/lost", SEVERITY_CRITICAL, false},
    {"lost heart beat", "gpu/lost", SEVERITY_CRITICAL, false},
    {"heartbeat*timeout", "gpu/lost", SEVERITY_CRITICAL, false},
    {"heart beat*timeout", "gpu/lost", SEVERITY_CRITICAL, false},
    {"device is abnormal", "gpu/lost", SEVERITY_CRITICAL, false},
    {"pcie link*down", "gpu/lost", SEVERITY_CRITICAL, false},
    {"pcie linkdown", "gpu/lost", SEVERITY_CRITICAL, false},
    {"multi-bit", "gpu/ecc-uncorrected", SEVERITY_CRITICAL, false},
    {"multi bit", "gpu/ecc-uncorrected", SEVERITY_CRITICAL, false},
    {"double bit", "gpu/ecc-uncorrected", SEVERITY_CRITICAL, false},
    {"uncorrect", "gpu/ecc-uncorrected", SEVERITY_CRITICAL, false},
    {"over temperature", "gpu/temperature", SEVERITY_MAJOR, false},
    {"over-temperature", "gpu/temperature", SEVERITY_MAJOR, false},
    {"aicore*timeout", "gpu/hang", SEVERITY_MINOR, false},
    {"device hot reset", "gpu/reset", SEVERITY_MINOR, false},
};

static bool is_count(struct str word)
{
    uint64_t count;
    return str_to_u64(word, &count) && count > 0;
}

/* Reports the meaning of the first row that matches `text`; `line` is the evidence. Returns false if none
 * matches. */
static bool judge(struct probe *probe, const struct row *rows, size_t count, struct str text, struct str line,
                  const struct probe_place *place, int64_t at_ns)
{
    for (size_t i = 0; i < count; i++) {
        struct str captures[CAPTURES_MAX] = {{0}};
        if (!match(rows[i].pattern, text, captures))
            continue;
        if (rows[i].code && (!rows[i].counted || is_count(captures[0])))
            probe_once(probe, rows[i].code, place->text, rows[i].severity, at_ns, 1, line);
        return true;
    }
    return false;
}
#define JUDGE(rows, text, place) judge(probe, rows, sizeof(rows) / sizeof *(rows), text, line, place, at_ns)

/* Returns whether the word is a PCI address: "0000:c3:00.0", not "hl0". */
static bool is_pci_address(struct str word)
{
    size_t colons = 0, dots = 0;
    for (size_t i = 0; i < word.len; i++) {
        colons += word.data[i] == ':';
        dots += word.data[i] == '.';
        if (!isxdigit((unsigned char)word.data[i]) && word.data[i] != ':' && word.data[i] != '.')
            return false;
    }
    return colons == 2 && dots == 1;
}

/* Returns the device after the driver's name, else the machine. */
static struct probe_place device_of(const char *pattern, struct str line)
{
    struct str captures[CAPTURES_MAX] = {{0}};
    if (!match(pattern, line, captures))
        return place_of("%s", "");
    return is_pci_address(captures[0]) ? kmsg_pci_place("gpu", captures[0])
                                       : place_of("gpu/" STR_FORMAT, STR_ARG(captures[0]));
}

/* Judges a bank of AMD's Accelerator Check Architecture: "aca entry[00].STATUS=0x...",
 * "ACA[01/08].STATUS=0x...". */
static bool judge_aca(struct probe *probe, struct str line, const struct probe_place *place, int64_t at_ns)
{
    enum { UNCORRECTED_BIT = 61, CONTEXT_CORRUPT_BIT = 57, DEFERRED_BIT = 44 };
    uint64_t status;
    if (!kmsg_hex(line, "].STATUS=0x", &status))
        return false;
    if ((status >> UNCORRECTED_BIT | status >> CONTEXT_CORRUPT_BIT) & 1)
        probe_once(probe, "gpu/ecc-uncorrected", place->text, SEVERITY_CRITICAL, at_ns, 1, line);
    else if (status >> DEFERRED_BIT & 1)
        probe_once(probe, "gpu/ecc-deferred", place->text, SEVERITY_MINOR, at_ns, 1, line);
    return true;
}

static bool judge_amd(struct probe *probe, struct str line, int64_t at_ns)
{
    struct probe_place place = device_of("amdgpu @: ", line);
    if (strncmp(place.text, "gpu/", 4) != 0 || !strchr(place.text, ':'))
        place = place_of("%s", ""); /* "amdgpu]] *ERROR* ...": of an unnamed device */
    return judge_aca(probe, line, &place, at_ns) || JUDGE(amd_rows, line, &place);
}

static bool judge_ascend(struct probe *probe, struct str line, int64_t at_ns)
{
    static const char *const ids[] = {"dev_id=%", "udevid=%", "devid=%", "dev_id:%", "device=%"};
    char lower[SIGNAL_EVIDENCE_MAX + 1];
    size_t len = line.len < sizeof lower - 1 ? line.len : sizeof lower - 1;
    for (size_t i = 0; i < len; i++)
        lower[i] = (char)tolower((unsigned char)line.data[i]);
    struct str text = {lower, len}, captures[CAPTURES_MAX] = {{0}};
    struct probe_place place = place_of("%s", "");
    for (size_t i = 0; i < sizeof ids / sizeof *ids && !place.text[0]; i++)
        if (match(ids[i], text, captures))
            place = place_of("npu/" STR_FORMAT, STR_ARG(captures[0]));
    return JUDGE(ascend_rows, text, &place);
}

bool kmsg_accelerator(struct probe *probe, struct str line, int64_t at_ns)
{
    if (kmsg_has(line, "amdgpu"))
        return judge_amd(probe, line, at_ns);
    if (kmsg_has(line, "habanalabs ")) {
        struct probe_place place = device_of("habanalabs @", line);
        return JUDGE(gaudi_rows, line, &place);
    }
    if (kmsg_has(line, "[ascend]") || kmsg_has(line, "[devdrv") || kmsg_has(line, "[drv_pcie]") ||
        kmsg_has(line, "[devmng]"))
        return judge_ascend(probe, line, at_ns);
    return false;
}
