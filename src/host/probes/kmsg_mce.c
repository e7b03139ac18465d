/* kmsg_mce.c - machine checks, as Intel's and AMD's decoders and the firmware print them.
 *
 *   mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 5: be00000000800400
 *   [Hardware Error]: System Fatal error.
 *   [Hardware Error]: CPU:21 (19:21:0) MC5_STATUS[-|UE|MiscV|AddrV|PCC|TCC|SyndV|-|-|-]: 0xbea0000001000108
 *   {1}[Hardware Error]: event severity: fatal
 *
 * Bit 61 of a bank's status, and AMD's flags, tell that the error was not corrected. "Machine check events
 * logged" tells nothing about it, and all other such lines only add details.
 */
#include "host/probes/internal.h"

enum verdict { UNSAID, CORRECTED, DEFERRED, UNCORRECTED };

static const struct {
    const char *code;
    enum signal_severity severity;
} signals[] = {
    [CORRECTED] = {"mce/corrected", SEVERITY_NOTICE},
    [DEFERRED] = {"mce/deferred", SEVERITY_MINOR}, /* poisoned memory that was not read yet */
    [UNCORRECTED] = {"mce/uncorrected", SEVERITY_CRITICAL},
};

static bool flag(struct str flags, const char *name)
{
    struct str one;
    while (str_cut(flags, '|', &one, &flags))
        if (str_is(one, name))
            return true;
    return str_is(flags, name);
}

/* Judges the flags between the brackets, and the status after them. */
static enum verdict judge_flags(struct str text)
{
    struct str flags, rest = STR("");
    uint64_t status;
    if (!str_cut(text, ']', &flags, &rest))
        flags = text; /* the line was cut */
    if (flag(flags, "UE") || flag(flags, "UC") || flag(flags, "PCC"))
        return UNCORRECTED;
    if (kmsg_hex(rest, "0x", &status) && status >> 61 & 1)
        return UNCORRECTED;
    return flag(flags, "Deferred") ? DEFERRED : flag(flags, "CE") ? CORRECTED : UNSAID;
}

static struct str behind(struct str line, struct str word)
{
    const char *end = word.data + word.len;
    return (struct str){end, line.len - (size_t)(end - line.data)};
}

static enum verdict judge_words(struct str line)
{
    if (kmsg_has(line, "event severity: fatal") || kmsg_has(line, "event severity: recoverable") ||
        kmsg_has(line, "System Fatal error") || kmsg_has(line, "Processor context corrupt") ||
        kmsg_has(line, "Uncorrected, software "))
        return UNCORRECTED;
    return kmsg_has(line, "event severity: corrected") ? CORRECTED : UNSAID;
}

bool kmsg_machine_check(struct probe *probe, struct str line, int64_t at_ns)
{
    struct str captures[CAPTURES_MAX] = {{0}};
    enum verdict verdict;
    uint64_t status;
    if (!kmsg_has(line, "[Hardware Error]"))
        return false;
    struct probe_place place = place_of("%s", "");
    if (match("CPU %: Machine Check*Bank %: ", line, captures)) {
        bool said = kmsg_hex(behind(line, captures[1]), ": ", &status);
        verdict = !said ? UNSAID : status >> 61 & 1 ? UNCORRECTED : CORRECTED;
    } else if (match("CPU:% *MC%_STATUS[", line, captures)) {
        struct str rest = behind(line, captures[1]);
        verdict = judge_flags((struct str){rest.data + 8, rest.len - 8}); /* after "_STATUS[" */
    } else {
        verdict = judge_words(line);
        captures[0].len = 0;
    }
    if (verdict == UNSAID)
        return true;
    if (captures[0].len > 0)
        place = place_of("cpu/" STR_FORMAT, STR_ARG(captures[0]));
    probe_once(probe, signals[verdict].code, place.text, signals[verdict].severity, at_ns, 1, line);
    return true;
}
