/* clue.c - the kinds of clues, their lines, and the clue in an exit status. */
#include "core/health/clue.h"

#include "base/check.h"

static const struct {
    const char *name;
    enum clue_class class;
    enum fault_domain domain;
    int weight;
} kinds[CLUE_KINDS] = {
    [CLUE_NONE] = {NULL, CLUE_IS_TEARDOWN, DOMAIN_UNKNOWN, 0},
    [CLUE_EXIT] = {"exit", CLUE_IS_ROOT, DOMAIN_USER, 10},
    [CLUE_SIGNAL] = {"signal", CLUE_IS_ROOT, DOMAIN_UNKNOWN, 20},
    [CLUE_KILLED] = {"killed", CLUE_IS_ROOT, DOMAIN_UNKNOWN, 25},
    [CLUE_TRACEBACK] = {"traceback", CLUE_IS_ROOT, DOMAIN_USER, 30},
    [CLUE_ABORT] = {"abort", CLUE_IS_ROOT, DOMAIN_USER, 40},
    [CLUE_START_FAILED] = {"start-failed", CLUE_IS_ROOT, DOMAIN_UNKNOWN, 45},
    [CLUE_DESCRIPTORS] = {"descriptors", CLUE_IS_ROOT, DOMAIN_USER, 50},
    [CLUE_CHIP] = {"chip-error", CLUE_IS_ROOT, DOMAIN_USER, 55},
    [CLUE_NUMERIC] = {"nan", CLUE_IS_ROOT, DOMAIN_USER, 58},
    [CLUE_CHIP_MEMORY] = {"chip-memory", CLUE_IS_ROOT, DOMAIN_USER, 60},
    [CLUE_MEMORY] = {"memory", CLUE_IS_ROOT, DOMAIN_USER, 65},
    [CLUE_DISK_FULL] = {"disk-full", CLUE_IS_ROOT, DOMAIN_SOFTWARE, 70},
    [CLUE_STORAGE] = {"storage", CLUE_IS_ROOT, DOMAIN_SOFTWARE, 75},
    [CLUE_OOM] = {"out-of-memory", CLUE_IS_ROOT, DOMAIN_USER, 80},
    [CLUE_ADDRESS] = {"address-in-use", CLUE_IS_ROOT, DOMAIN_UNKNOWN, 48},
    [CLUE_SERVICE] = {"remote-service", CLUE_IS_ROOT, DOMAIN_NETWORK, 51},
    [CLUE_NAME] = {"name-resolution", CLUE_IS_ROOT, DOMAIN_NETWORK, 52},
    [CLUE_SHARED_MEMORY] = {"shared-memory", CLUE_IS_ROOT, DOMAIN_USER, 66},
    [CLUE_CHIP_MISSING] = {"chip-missing", CLUE_IS_ROOT, DOMAIN_HARDWARE, 85},
    [CLUE_DRIVER] = {"driver", CLUE_IS_ROOT, DOMAIN_SOFTWARE, 86},
    [CLUE_CHIP_BROKEN] = {"chip-broken", CLUE_IS_ROOT, DOMAIN_HARDWARE, 90},
    [CLUE_MACHINE_LOST] = {"machine-lost", CLUE_IS_ROOT, DOMAIN_UNKNOWN, 95},
    [CLUE_NETWORK] = {"network", CLUE_IS_SYMPTOM, DOMAIN_UNKNOWN, 3},
    [CLUE_WATCHDOG] = {"watchdog", CLUE_IS_SYMPTOM, DOMAIN_UNKNOWN, 2},
    [CLUE_PEER] = {"peer", CLUE_IS_SYMPTOM, DOMAIN_UNKNOWN, 1},
    [CLUE_TEARDOWN] = {"teardown", CLUE_IS_TEARDOWN, DOMAIN_UNKNOWN, 0},
};

const char *clue_name(uint32_t kind)
{
    return kind < CLUE_KINDS ? kinds[kind].name : NULL;
}

void clue_cause(enum clue_kind kind, struct buf *out)
{
    CHECK(kind > CLUE_NONE && kind < CLUE_KINDS);
    buf_printf(out, kind == CLUE_NUMERIC ? "numeric/%s" : "task/%s", clue_name(kind));
}

/* Returns the number behind the first "step" or "iter" that no other word separates from it. */
int64_t clue_numeric_step(struct str line)
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
        int64_t step;
        if (end > from && str_to_i64((struct str){line.data + from, end - from}, 0, INT64_MAX - 1, &step))
            return step;
    }
    return INT64_MAX;
}

enum clue_class clue_class_of(enum clue_kind kind)
{
    CHECK(kind < CLUE_KINDS);
    return kinds[kind].class;
}

enum fault_domain clue_domain(enum clue_kind kind)
{
    CHECK(kind < CLUE_KINDS);
    return kinds[kind].domain;
}

int clue_weight(enum clue_kind kind)
{
    CHECK(kind < CLUE_KINDS);
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

struct str clue_line(struct arena *arena, struct str line)
{
    line = str_trim(line);
    char *copy = arena_alloc(arena, CLUE_LINE_MAX + 1);
    size_t len = 0;
    for (size_t at = 0; at < line.len;) {
        size_t bytes = str_utf8_len(line.data + at, line.len - at);
        bool plain = bytes > 1 || (bytes == 1 && line.data[at] >= 0x20 && line.data[at] != 0x7f);
        size_t take = plain ? bytes : 1;
        if (len + take > CLUE_LINE_MAX)
            break;
        if (plain)
            memcpy(copy + len, line.data + at, take);
        else
            copy[len] = '?';
        len += take;
        at += bytes > 1 ? bytes : 1;
    }
    copy[len] = 0;
    CHECK(len <= CLUE_LINE_MAX);
    return (struct str){copy, len};
}

bool clue_is_valid(const struct clue *clue)
{
    return clue->kind > CLUE_NONE && clue->kind < CLUE_KINDS && clue->line.len <= CLUE_LINE_MAX &&
           is_clean(clue->line);
}

/* --- exits ---------------------------------------------------------------------------------------------- */

enum clue_kind clue_of_exit(const struct clue_exit *how)
{
    enum { SIGNAL_KILL = 9, SIGNAL_PIPE = 13, SIGNAL_TERM = 15, SIGNALS = 64 };
    enum { EXIT_PEER_LOST = 75, EXIT_BY_SIGNAL = 128 };
    bool by_shell = how->exit_code > EXIT_BY_SIGNAL && how->exit_code <= EXIT_BY_SIGNAL + SIGNALS;
    int32_t number = how->signal ? how->signal : by_shell ? how->exit_code - EXIT_BY_SIGNAL : 0;
    if (how->oom)
        return CLUE_OOM;
    if (how->exit_code == 0 && how->signal == 0)
        return CLUE_NONE;
    if (how->stopped && (number == SIGNAL_TERM || number == SIGNAL_KILL || !number))
        return CLUE_TEARDOWN;
    if (how->explained && number != SIGNAL_KILL)
        return CLUE_NONE;
    if (number == SIGNAL_PIPE)
        return CLUE_PEER;
    if (number)
        return CLUE_SIGNAL;
    return how->exit_code == EXIT_PEER_LOST ? CLUE_PEER : CLUE_EXIT;
}
