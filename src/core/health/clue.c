/* clue.c - a task's last log lines as clues. Each line is searched for the phrases below, in their order; the
 * first that it holds says what it is. */
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
    [CLUE_CHIP_MEMORY] = {"chip-memory", CLUE_IS_ROOT, DOMAIN_USER, 60},
    [CLUE_MEMORY] = {"memory", CLUE_IS_ROOT, DOMAIN_USER, 65},
    [CLUE_DISK_FULL] = {"disk-full", CLUE_IS_ROOT, DOMAIN_SOFTWARE, 70},
    [CLUE_STORAGE] = {"storage", CLUE_IS_ROOT, DOMAIN_SOFTWARE, 75},
    [CLUE_OOM] = {"out-of-memory", CLUE_IS_ROOT, DOMAIN_USER, 80},
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

static bool has(struct str line, const char *phrase)
{
    size_t len = strlen(phrase);
    return line.len >= len && memmem(line.data, line.len, phrase, len) != NULL;
}

/* --- phrases -------------------------------------------------------------------------------------------- */

/* `also`: a second one that the line must hold; NULL: none. Summaries of launchers come first: they say
 * nothing that a worker has not said. */
static const struct phrase {
    const char *text, *also;
    enum clue_kind kind;
} phrases[] = {
    {"ChildFailedError", NULL, CLUE_NONE},
    {"torch.distributed.elastic.multiprocessing.api:failed", NULL, CLUE_NONE},

    {"KeyboardInterrupt", NULL, CLUE_TEARDOWN},
    {"SignalException", NULL, CLUE_TEARDOWN},
    {"Received Signals.SIGTERM", NULL, CLUE_TEARDOWN},
    {"FencedError", NULL, CLUE_TEARDOWN},
    {"a newer attempt of this task exists", NULL, CLUE_TEARDOWN},

    {"uncorrectable ECC error", NULL, CLUE_CHIP_BROKEN},
    {"GPU has fallen off the bus", NULL, CLUE_CHIP_BROKEN},
    {"GPU is lost", NULL, CLUE_CHIP_BROKEN},
    {"CUDA error: hardware stack error", NULL, CLUE_CHIP_BROKEN},
    {"CUDA error", "NVLink", CLUE_CHIP_BROKEN},
    {"no CUDA-capable device is detected", NULL, CLUE_CHIP_BROKEN},
    {"CUDA out of memory", NULL, CLUE_CHIP_MEMORY},
    {"CUDA error: out of memory", NULL, CLUE_CHIP_MEMORY},
    {"CUDA_ERROR_OUT_OF_MEMORY", NULL, CLUE_CHIP_MEMORY},
    {"RESOURCE_EXHAUSTED", "allocat", CLUE_CHIP_MEMORY},
    {"CUDA error:", NULL, CLUE_CHIP},
    {"CUDA_ERROR_", NULL, CLUE_CHIP},
    {"CUBLAS_STATUS_", NULL, CLUE_CHIP},
    {"CUDNN_STATUS_", NULL, CLUE_CHIP},

    {"No space left on device", NULL, CLUE_DISK_FULL},
    {"Disk quota exceeded", NULL, CLUE_DISK_FULL},
    {"Stale file handle", NULL, CLUE_STORAGE},
    {"Read-only file system", NULL, CLUE_STORAGE},
    {"Transport endpoint is not connected", "Errno 107", CLUE_STORAGE},
    {"Input/output error", NULL, CLUE_STORAGE},
    {"Too many open files", NULL, CLUE_DESCRIPTORS},
    {"Cannot allocate memory", NULL, CLUE_MEMORY},
    {"MemoryError", NULL, CLUE_MEMORY},
    {"std::bad_alloc", NULL, CLUE_MEMORY},

    {"Watchdog caught collective operation timeout", NULL, CLUE_WATCHDOG},
    {"failure detected by watchdog", NULL, CLUE_WATCHDOG},
    {"last enqueued work:", "last completed work:", CLUE_WATCHDOG},
    {"ProcessGroupNCCL", "timeout", CLUE_WATCHDOG},
    {"Some NCCL operations have failed or timed out", NULL, CLUE_WATCHDOG},
    {"terminate called after throwing an instance of 'c10::DistBackendError'", NULL, CLUE_WATCHDOG},
    {"gloo", "Timed out waiting", CLUE_WATCHDOG},
    {"gloo", "Application timeout", CLUE_WATCHDOG},
    {"heartbeat monitor timed out", NULL, CLUE_WATCHDOG},
    {"NCCL WARN", "error 12", CLUE_NETWORK},
    {"IBV_WC_", NULL, CLUE_NETWORK},
    {"ibv_", "failed", CLUE_NETWORK},
    {"No route to host", NULL, CLUE_NETWORK},
    {"Network is unreachable", NULL, CLUE_NETWORK},
    {"Connection timed out", NULL, CLUE_NETWORK},
    {"onnection reset by peer", NULL, CLUE_PEER},
    {"onnection closed by peer", NULL, CLUE_PEER},
    {"onnection closed by remote peer", NULL, CLUE_PEER},
    {"onnection closed by local", NULL, CLUE_PEER},
    {"onnection refused", NULL, CLUE_PEER},
    {"roken pipe", NULL, CLUE_PEER},
    {"BrokenPipeError", NULL, CLUE_PEER},
    {"ConnectionResetError", NULL, CLUE_PEER},
    {"ConnectionAbortedError", NULL, CLUE_PEER},
    {"ConnectionRefusedError", NULL, CLUE_PEER},
    {"remote process exited", NULL, CLUE_PEER},
    {"PeerLostError", NULL, CLUE_PEER},
    {"DistNetworkError", NULL, CLUE_PEER},
    {"DistStoreError", NULL, CLUE_PEER},
    {"DistBackendError", NULL, CLUE_PEER},
    {"NCCL communicator was aborted", NULL, CLUE_PEER},
    {"ncclRemoteError", NULL, CLUE_PEER},

    {"Assertion `", "failed", CLUE_ABORT},
    {"terminate called", NULL, CLUE_ABORT},
    {"double free or corruption", NULL, CLUE_ABORT},
    {"malloc(): ", NULL, CLUE_ABORT},
    {"corrupted size vs. prev_size", NULL, CLUE_ABORT},
    {"Segmentation fault", NULL, CLUE_ABORT},
    {"Fatal Python error", NULL, CLUE_ABORT},
    {"panic: ", NULL, CLUE_ABORT},
};

static const struct phrase *phrase_of(struct str line)
{
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
        if (has(line, phrases[i].text) && (!phrases[i].also || has(line, phrases[i].also)))
            return &phrases[i];
    return NULL;
}

/* --- reading -------------------------------------------------------------------------------------------- */

struct reading {
    struct clue *clues;
    size_t count;
    /* The traceback that is being read: what stands before each of its lines, and what its chain said. */
    bool inside, chained;
    struct str prefix;
    enum clue_kind chain;
};

/* Of equal kinds the later line stays: it is nearer to the end. */
static void keep(struct reading *reading, enum clue_kind kind, struct str line)
{
    CHECK(kind < CLUE_KINDS && reading->count <= CLUES_MAX);
    size_t place = 0;
    while (place < reading->count && reading->clues[place].kind != kind)
        place++;
    if (place == reading->count) {
        place = 0;
        while (place < reading->count && clue_weight(reading->clues[place].kind) >= clue_weight(kind))
            place++;
        if (place == CLUES_MAX)
            return;
        reading->count += reading->count < CLUES_MAX;
        for (size_t i = reading->count; i-- > place + 1;)
            reading->clues[i] = reading->clues[i - 1];
    }
    reading->clues[place] = (struct clue){kind, line};
}

/* The exception at a traceback's end. One that only says what a peer's end did to it is a symptom, also when
 * another was raised because of it. */
static void end_traceback(struct reading *reading, struct str line)
{
    const struct phrase *phrase = phrase_of(line);
    enum clue_kind kind = phrase ? phrase->kind : CLUE_TRACEBACK;
    reading->inside = false;
    if (phrase && phrase->kind == CLUE_NONE)
        return;
    if (kind == CLUE_TRACEBACK && reading->chained && reading->chain != CLUE_NONE &&
        clue_class_of(reading->chain) != CLUE_IS_ROOT)
        kind = reading->chain;
    reading->chain = kind;
    keep(reading, kind, line);
}

/* "ValueError: text", "package.Error" or "KeyError", and no line of somebody else in between. */
static bool is_exception(struct str text)
{
    size_t len = 0;
    while (len < text.len && text.data[len] != ':') {
        char c = text.data[len++];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (len == 1 || !((c >= '0' && c <= '9') || c == '.')))
            return false;
    }
    return len > 0;
}

static bool begins_traceback(struct reading *reading, struct str line)
{
    static const char mark[] = "Traceback (most recent call last):";
    const char *at = line.len ? memmem(line.data, line.len, mark, sizeof mark - 1) : NULL;
    if (!at)
        return false;
    reading->prefix = (struct str){line.data, (size_t)(at - line.data)};
    reading->inside = true;
    return true;
}

static bool is_chain(struct str line)
{
    return has(line, "During handling of the above exception") ||
           has(line, "The above exception was the direct cause");
}

static void read_line(struct reading *reading, struct str line)
{
    if (line.len && line.data[line.len - 1] == '\r')
        line.len--;
    if (begins_traceback(reading, line)) {
        reading->chain = reading->chained ? reading->chain : CLUE_NONE;
        return;
    }
    if (reading->inside && str_starts(line, reading->prefix)) {
        struct str text = {line.data + reading->prefix.len, line.len - reading->prefix.len};
        if (text.len == 0 || text.data[0] == ' ' || text.data[0] == '\t')
            return; /* a frame */
        if (is_exception(text)) {
            end_traceback(reading, text);
            reading->chained = false;
            return;
        }
    }
    if (is_chain(line)) {
        reading->chained = true;
        return;
    }
    const struct phrase *phrase = phrase_of(line);
    struct str trimmed = str_trim(line);
    if (phrase && phrase->kind != CLUE_NONE)
        keep(reading, phrase->kind, trimmed);
    else if (str_is(trimmed, "Killed") || (str_ends(trimmed, STR("Killed")) && has(trimmed, "line ")) ||
             has(trimmed, " Killed  "))
        keep(reading, CLUE_KILLED, trimmed);
}

size_t clues_read(struct arena *arena, struct str tail, struct clue ret_clues[CLUES_MAX])
{
    struct reading reading = {.clues = ret_clues};
    struct str line;
    while (str_cut(tail, '\n', &line, &tail))
        read_line(&reading, line);
    read_line(&reading, tail);
    for (size_t i = 0; i < reading.count; i++)
        ret_clues[i].line = clue_line(arena, ret_clues[i].line);
    return reading.count;
}

/* --- exits ---------------------------------------------------------------------------------------------- */

enum clue_kind clue_of_exit(int32_t exit_code, int32_t signal, bool oom, bool stopped)
{
    enum { SIGNAL_KILL = 9, SIGNAL_TERM = 15, EXIT_PEER_LOST = 75, EXIT_BY_SIGNAL = 128 };
    int32_t number = signal ? signal : exit_code > EXIT_BY_SIGNAL ? exit_code - EXIT_BY_SIGNAL : 0;
    if (oom)
        return CLUE_OOM;
    if (exit_code == 0 && signal == 0)
        return CLUE_NONE;
    if (stopped && (number == SIGNAL_TERM || number == SIGNAL_KILL || !number))
        return CLUE_TEARDOWN;
    if (number)
        return CLUE_SIGNAL;
    return exit_code == EXIT_PEER_LOST ? CLUE_PEER : CLUE_EXIT;
}
