/* signature.c - the kinds of signatures, their lines, and the signature in an exit status. */
#include "core/health/signature.h"

#include "base/check.h"

static const struct {
    const char *name;
    enum signature_class class;
    enum fault_domain domain;
    int weight;
} kinds[SIGNATURE_KINDS] = {
    [SIGNATURE_NONE] = {NULL, SIGNATURE_IS_TEARDOWN, DOMAIN_UNKNOWN, 0},
    [SIGNATURE_EXIT] = {"exit", SIGNATURE_IS_ROOT, DOMAIN_USER, 10},
    [SIGNATURE_SIGNAL] = {"signal", SIGNATURE_IS_ROOT, DOMAIN_UNKNOWN, 20},
    [SIGNATURE_KILLED] = {"killed", SIGNATURE_IS_ROOT, DOMAIN_UNKNOWN, 25},
    [SIGNATURE_TRACEBACK] = {"traceback", SIGNATURE_IS_ROOT, DOMAIN_USER, 30},
    [SIGNATURE_ABORT] = {"abort", SIGNATURE_IS_ROOT, DOMAIN_USER, 40},
    [SIGNATURE_START_FAILED] = {"start-failed", SIGNATURE_IS_ROOT, DOMAIN_UNKNOWN, 45},
    [SIGNATURE_DESCRIPTORS] = {"descriptors", SIGNATURE_IS_ROOT, DOMAIN_USER, 50},
    [SIGNATURE_CHIP] = {"chip-error", SIGNATURE_IS_ROOT, DOMAIN_USER, 55},
    [SIGNATURE_NUMERIC] = {"nan", SIGNATURE_IS_ROOT, DOMAIN_USER, 58},
    [SIGNATURE_CHIP_MEMORY] = {"chip-memory", SIGNATURE_IS_ROOT, DOMAIN_USER, 60},
    [SIGNATURE_MEMORY] = {"memory", SIGNATURE_IS_ROOT, DOMAIN_USER, 65},
    [SIGNATURE_DISK_FULL] = {"disk-full", SIGNATURE_IS_ROOT, DOMAIN_SOFTWARE, 70},
    [SIGNATURE_STORAGE] = {"storage", SIGNATURE_IS_ROOT, DOMAIN_SOFTWARE, 75},
    [SIGNATURE_OOM] = {"out-of-memory", SIGNATURE_IS_ROOT, DOMAIN_USER, 80},
    [SIGNATURE_ADDRESS] = {"address-in-use", SIGNATURE_IS_ROOT, DOMAIN_UNKNOWN, 48},
    [SIGNATURE_SERVICE] = {"remote-service", SIGNATURE_IS_ROOT, DOMAIN_NETWORK, 51},
    [SIGNATURE_NAME] = {"name-resolution", SIGNATURE_IS_ROOT, DOMAIN_NETWORK, 52},
    [SIGNATURE_SHARED_MEMORY] = {"shared-memory", SIGNATURE_IS_ROOT, DOMAIN_USER, 66},
    [SIGNATURE_CHIP_MISSING] = {"chip-missing", SIGNATURE_IS_ROOT, DOMAIN_HARDWARE, 85},
    [SIGNATURE_DRIVER] = {"driver", SIGNATURE_IS_ROOT, DOMAIN_SOFTWARE, 86},
    [SIGNATURE_CHIP_BROKEN] = {"chip-broken", SIGNATURE_IS_ROOT, DOMAIN_HARDWARE, 90},
    [SIGNATURE_MACHINE_LOST] = {"machine-lost", SIGNATURE_IS_ROOT, DOMAIN_UNKNOWN, 95},
    [SIGNATURE_NETWORK] = {"network", SIGNATURE_IS_SYMPTOM, DOMAIN_UNKNOWN, 3},
    [SIGNATURE_WATCHDOG] = {"watchdog", SIGNATURE_IS_SYMPTOM, DOMAIN_UNKNOWN, 2},
    [SIGNATURE_PEER] = {"peer", SIGNATURE_IS_SYMPTOM, DOMAIN_UNKNOWN, 1},
    [SIGNATURE_TEARDOWN] = {"teardown", SIGNATURE_IS_TEARDOWN, DOMAIN_UNKNOWN, 0},
};

const char *signature_name(uint32_t kind)
{
    return kind < SIGNATURE_KINDS ? kinds[kind].name : NULL;
}

void signature_cause(enum signature_kind kind, struct buf *out)
{
    CHECK(kind > SIGNATURE_NONE && kind < SIGNATURE_KINDS);
    buf_printf(out, kind == SIGNATURE_NUMERIC ? "numeric/%s" : "task/%s", signature_name(kind));
}

/* Returns the number after "step" or "iter", if no other word is between them. */
int64_t signature_numeric_step(struct str line)
{
    static const char *const words[] = {"step", "Step", "iter", "Iter"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = line.len ? memmem(line.data, line.len, words[i], strlen(words[i])) : NULL;
        if (!at)
            continue;
        size_t from = (size_t)(at - line.data) + strlen(words[i]);
        if (from + 5 <= line.len && memcmp(line.data + from, "ation", 5) == 0)
            from += 5;
        while (from < line.len && strchr(" :=[#\"'", line.data[from]))
            from++;
        size_t end = from;
        while (end < line.len && line.data[end] >= '0' && line.data[end] <= '9')
            end++;
        CHECK(from <= end && end <= line.len);
        int64_t step;
        if (end > from && str_to_i64((struct str){line.data + from, end - from}, 0, INT64_MAX - 1, &step))
            return step;
    }
    return INT64_MAX;
}

enum signature_class signature_class_of(enum signature_kind kind)
{
    CHECK(kind < SIGNATURE_KINDS);
    CHECK(kind == SIGNATURE_NONE || kinds[kind].name); /* each kind has a row */
    return kinds[kind].class;
}

enum fault_domain signature_domain(enum signature_kind kind)
{
    CHECK(kind < SIGNATURE_KINDS);
    return kinds[kind].domain;
}

int signature_weight(enum signature_kind kind)
{
    CHECK(kind < SIGNATURE_KINDS);
    return kinds[kind].weight;
}

/* --- lines ---------------------------------------------------------------------------------------------- */

static bool is_clean(struct str line)
{
    for (size_t i = 0; i < line.len; i++)
        if ((unsigned char)line.data[i] < 0x20 || line.data[i] == 0x7f)
            return false;
    return str_is_utf8(line);
}

struct str signature_line(struct arena *arena, struct str line)
{
    line = str_trim(line);
    char *copy = arena_alloc(arena, SIGNATURE_LINE_MAX + 1);
    size_t len = 0;
    for (size_t at = 0; at < line.len;) {
        size_t bytes = str_utf8_len(line.data + at, line.len - at);
        bool plain = bytes > 1 || (bytes == 1 && line.data[at] >= 0x20 && line.data[at] != 0x7f);
        size_t take = plain ? bytes : 1;
        CHECK(take <= line.len - at);
        if (len + take > SIGNATURE_LINE_MAX)
            break;
        if (plain)
            memcpy(copy + len, line.data + at, take);
        else
            copy[len] = '?';
        len += take;
        at += bytes > 1 ? bytes : 1;
    }
    copy[len] = 0;
    CHECK(len <= SIGNATURE_LINE_MAX);
    return (struct str){copy, len};
}

bool signature_is_valid(const struct signature *signature)
{
    return signature->kind > SIGNATURE_NONE && signature->kind < SIGNATURE_KINDS &&
           signature->line.len <= SIGNATURE_LINE_MAX && is_clean(signature->line);
}

/* --- exits ---------------------------------------------------------------------------------------------- */

enum signature_kind signature_of_exit(const struct signature_exit *how)
{
    enum { SIGNAL_KILL = 9, SIGNAL_PIPE = 13, SIGNAL_TERM = 15, SIGNALS = 64 };
    enum { EXIT_PEER_LOST = 75, EXIT_BY_SIGNAL = 128 };
    bool by_shell = how->exit_code > EXIT_BY_SIGNAL && how->exit_code <= EXIT_BY_SIGNAL + SIGNALS;
    int32_t number = how->signal ? how->signal : by_shell ? how->exit_code - EXIT_BY_SIGNAL : 0;
    if (how->oom)
        return SIGNATURE_OOM;
    if (how->exit_code == 0 && how->signal == 0)
        return SIGNATURE_NONE;
    if (how->stopped && (number == SIGNAL_TERM || number == SIGNAL_KILL || !number))
        return SIGNATURE_TEARDOWN;
    if (how->explained && number != SIGNAL_KILL)
        return SIGNATURE_NONE;
    if (number == SIGNAL_PIPE)
        return SIGNATURE_PEER;
    if (number)
        return SIGNATURE_SIGNAL;
    return how->exit_code == EXIT_PEER_LOST ? SIGNATURE_PEER : SIGNATURE_EXIT;
}
