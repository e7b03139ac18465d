/* signature_read.c - reads signatures from the end of a log. Each line becomes a finding: its meaning, its
 * form (enum signature_force) and its writer. At the end one root is chosen.
 *
 * The last exception of a writer is the one that ended it: earlier ones were caught. A mere mention counts if
 * no line shows an end. Names of signals and a launcher's summaries count if no other line has a meaning.
 * Standard output and standard error may reach the log in another order than they were written, so the place
 * of a mention does not matter. */
#include "base/check.h"
#include "core/health/signature_rules.h"

enum { FINDINGS_MAX = 64, TRACES_MAX = 16, WHAT_LINES = 4, REASON_LINES = 5, CONTROL_MAX = 256 };

struct finding {
    enum signature_kind kind;
    enum signature_force force;
    bool exception;
    struct str writer, line;
    uint32_t at, progress; /* number of lines before it, and number of those lines that report steps */
};

/* A traceback that is being read. */
struct trace {
    struct str prefix; /* the text before each of its lines; only its length counts if it varies */
    bool inside, variable, frames;
    bool weak, ignored; /* a line before it says that the exception was caught */
    bool chained;       /* the next traceback continues it */
    enum signature_kind chain;
    struct str chain_line;
};

struct reading {
    struct finding findings[FINDINGS_MAX];
    size_t count;
    struct trace traces[TRACES_MAX];
    size_t trace_count, oldest;
    uint32_t at, progress;
    struct str before;     /* the previous line */
    size_t thrown;         /* the finding of the last "terminate called", whose reason is expected */
    uint32_t thrown_until; /* the line before which that reason is expected */
    struct finding loss;   /* the first line of a loss that has not been finite since; kind NONE: none */
    uint32_t reason_until; /* lines up to this one belong to the text of an exception */
};

static bool is_root(enum signature_kind kind)
{
    return kind != SIGNATURE_NONE && signature_class_of(kind) == SIGNATURE_IS_ROOT;
}

/* Keeps a finding. Equal findings are merged into one at the later line, which is nearer to the end. */
static struct finding *keep(struct reading *reading, struct finding finding)
{
    size_t place = 0;
    CHECK(finding.kind > SIGNATURE_NONE && finding.kind < SIGNATURE_KINDS);
    CHECK(reading->count <= FINDINGS_MAX);
    finding.at = reading->at;
    finding.progress = reading->progress;
    for (; place < reading->count; place++) {
        const struct finding *known = &reading->findings[place];
        if (known->kind == finding.kind && known->force == finding.force &&
            known->exception == finding.exception && str_equal(known->writer, finding.writer))
            break;
    }
    if (place == FINDINGS_MAX)
        return NULL;
    reading->count += place == reading->count;
    reading->findings[place] = finding;
    return &reading->findings[place];
}

/* --- tracebacks ----------------------------------------------------------------------------------------- */

static struct trace *trace_of(struct reading *reading, struct str prefix)
{
    for (size_t i = 0; i < reading->trace_count; i++)
        if (str_equal(reading->traces[i].prefix, prefix))
            return &reading->traces[i];
    CHECK(reading->trace_count <= TRACES_MAX);
    struct trace *trace =
        &reading->traces[reading->trace_count < TRACES_MAX ? reading->trace_count++
                                                           : reading->oldest++ % TRACES_MAX];
    *trace = (struct trace){.prefix = prefix};
    return trace;
}

static size_t blanks(struct str line)
{
    size_t len = 0;
    while (len < line.len && line.data[len] == ' ')
        len++;
    return len;
}

static bool begins_trace(struct reading *reading, struct str line)
{
    static const char mark[] = "Traceback (most recent call last):";
    const char *at = line.len ? memmem(line.data, line.len, mark, sizeof mark - 1) : NULL;
    if (!at)
        return false;
    struct str prefix = {line.data, (size_t)(at - line.data)};
    if (str_ends(prefix, STR("Exception Group "))) /* the parts of a group have tracebacks of their own */
        return true;
    if (str_ends(prefix, STR("Original ")))
        prefix.len -= strlen("Original ");
    if (str_ends(prefix, STR("traceback : "))) /* in torchrun's summary */
        prefix.len = blanks(line);
    struct trace *trace = trace_of(reading, prefix);
    trace->inside = true;
    trace->variable = trace->frames = false;
    trace->chain = trace->chained ? trace->chain : SIGNATURE_NONE;
    struct str before = reading->before;
    trace->ignored =
        signature_line_has(before, "Exception ignored in") || signature_line_has(before, "Logging error");
    trace->weak = signature_line_retries(before) || signature_line_is_survived(prefix) ||
                  signature_line_has(before, "exception was never retrieved") ||
                  signature_line_has(before, "Error in atexit");
    return true;
}

/* Takes the exception that ends a traceback. An exception that only reports a peer's end is a symptom, even
 * if another one was raised because of it. A root stays a root, whatever was raised while it was handled. */
static void end_trace(struct reading *reading, struct trace *trace, struct str text)
{
    CHECK(trace->inside);
    const struct signature_rule *rule = signature_rule_of(text);
    bool numeric = !rule && signature_line_is_not_finite(text);
    enum signature_kind kind = rule ? rule->kind : numeric ? SIGNATURE_NUMERIC : SIGNATURE_TRACEBACK;
    struct str writer, rest = trace->prefix;
    bool chained = trace->chained && trace->chain != SIGNATURE_NONE;
    trace->inside = trace->chained = false;
    if (kind == SIGNATURE_NONE)
        return;
    if (chained && (kind == SIGNATURE_TRACEBACK || (is_root(trace->chain) && !is_root(kind)))) {
        kind = trace->chain == SIGNATURE_TRACEBACK ? SIGNATURE_TRACEBACK : trace->chain;
        text = is_root(trace->chain) && trace->chain != SIGNATURE_TRACEBACK ? trace->chain_line : text;
    }
    trace->chain = kind;
    trace->chain_line = text;
    writer = signature_cut_writer(&rest);
    if (trace->ignored)
        return;
    if ((kind == SIGNATURE_TRACEBACK || kind == SIGNATURE_CHIP) && !trace->weak)
        reading->reason_until = reading->at + REASON_LINES;
    keep(reading, (struct finding){.kind = kind,
                                   .force = trace->weak                                     ? FORCE_SAID
                                            : rule && rule->force == FORCE_ECHO && !chained ? FORCE_ECHO
                                                                                            : FORCE_ENDS,
                                   .exception = true,
                                   .writer = writer,
                                   .line = text});
}

static bool is_chain(struct str line)
{
    return signature_line_has(line, "During handling of the above exception") ||
           signature_line_has(line, "The above exception was the direct cause");
}

/* Removes the traceback's prefix from the line. Returns false if the line has another writer. The first frame
 * shows whether the prefix precedes each line, precedes only the first, or contains a time that varies. */
static bool cut_prefix(struct trace *trace, struct str line, struct str *ret_text)
{
    size_t len = trace->prefix.len;
    bool same = str_starts(line, trace->prefix);
    if (!trace->frames && !same && str_starts(line, STR("  File \""))) {
        trace->prefix.len = len = 0;
        same = true;
    }
    if (!trace->frames && !same && line.len > len &&
        str_starts((struct str){line.data + len, line.len - len}, STR("  File \"")))
        trace->variable = true;
    if (!same && !(trace->variable && line.len > len))
        return false;
    CHECK(len <= line.len);
    *ret_text = (struct str){line.data + len, line.len - len};
    return true;
}

/* Takes a line that belongs to a traceback. Returns false if it belongs to none. */
static bool read_traces(struct reading *reading, struct str line)
{
    struct trace *best = NULL;
    struct str text;
    for (size_t i = 0; i < reading->trace_count; i++) {
        struct trace *trace = &reading->traces[i];
        if (trace->inside && cut_prefix(trace, line, &text) &&
            (!best || trace->prefix.len > best->prefix.len))
            best = trace;
    }
    if (!best || !cut_prefix(best, line, &text))
        return false;
    if (text.len == 0 || text.data[0] == ' ' || text.data[0] == '\t') {
        best->frames = true;
        return true;
    }
    if (!signature_line_is_exception(text))
        return false;
    end_trace(reading, best, text);
    return true;
}

static bool read_chain(struct reading *reading, struct str line)
{
    if (!is_chain(line))
        return false;
    for (size_t i = 0; i < reading->trace_count; i++) {
        struct trace *trace = &reading->traces[i];
        bool own = trace->prefix.len > 0 || !signature_cut_writer(&(struct str){line.data, line.len}).len;
        if (!trace->inside && str_starts(line, trace->prefix) && own)
            trace->chained = true;
    }
    return true;
}

/* --- other lines ---------------------------------------------------------------------------------------- */

static bool is_killed(struct str text)
{
    return str_is(text, "Killed") || (str_ends(text, STR("Killed")) && signature_line_has(text, "line ")) ||
           signature_line_has(text, " Killed  ");
}

/* Whether the line opens a message that is written only at a death, whatever its reason. */
static bool is_last_word(struct str text)
{
    return str_starts(text, STR("terminate called")) || str_starts(text, STR("Exception in thread \"")) ||
           str_starts(text, STR("Caused by: ")) || str_starts(text, STR("panic: ")) ||
           signature_line_has(text, "' panicked at ") || signature_line_is_fatal(text);
}

/* Takes "  what():  text" after "terminate called": the text is the reason. */
static bool read_what(struct reading *reading, struct str text)
{
    if (reading->at >= reading->thrown_until || !str_starts(text, STR("what():")))
        return false;
    const struct signature_rule *rule = signature_rule_of(text);
    CHECK(reading->thrown < reading->count);
    struct finding *thrown = &reading->findings[reading->thrown];
    thrown->line = text;
    if (rule && rule->kind != SIGNATURE_NONE)
        thrown->kind = rule->kind;
    reading->thrown_until = 0;
    return true;
}

static void read_rule(struct reading *reading, const struct signature_rule *rule, struct str writer,
                      struct str text)
{
    CHECK(rule->kind != SIGNATURE_NONE);
    struct finding finding = {.kind = rule->kind, .force = rule->force, .writer = writer, .line = text};
    bool reason = reading->at < reading->reason_until && is_root(rule->kind);
    bool bare = signature_line_is_bare_exception(text);
    if (rule->force == FORCE_SAID && signature_line_is_survived(text) && !is_last_word(text))
        return;
    if (rule->force == FORCE_SAID && (is_last_word(text) || reason || bare))
        finding.force = FORCE_ENDS;
    finding.exception = bare && finding.force == FORCE_ENDS;
    if (bare && rule->kind == SIGNATURE_CHIP)
        reading->reason_until = reading->at + REASON_LINES;
    struct finding *kept = keep(reading, finding);
    if (kept && str_starts(text, STR("terminate called"))) {
        reading->thrown = (size_t)(kept - reading->findings);
        reading->thrown_until = reading->at + WHAT_LINES;
    }
}

/* Records a loss that is not finite, and drops it when the loss is finite again. */
static void read_loss(struct reading *reading, struct str writer, struct str text)
{
    enum signature_loss loss = signature_line_loss(text);
    if (loss == LOSS_FINITE && str_equal(reading->loss.writer, writer))
        reading->loss = (struct finding){0};
    if (loss != LOSS_NOT_FINITE || reading->loss.kind != SIGNATURE_NONE)
        return;
    reading->loss = (struct finding){
        .kind = SIGNATURE_NUMERIC, .force = FORCE_ENDS, .writer = writer, .line = text, .at = reading->at};
}

static void read_text(struct reading *reading, struct str writer, struct str text)
{
    read_loss(reading, writer, text);
    if (signature_line_has(reading->before, "Exception ignored in"))
        return;
    if (signature_line_has(text, "Last error:"))
        reading->reason_until = reading->at + REASON_LINES;
    if (read_what(reading, text))
        return;
    const struct signature_rule *rule = signature_rule_of(text);
    struct str said = signature_skip_head(text);
    struct finding finding = {.writer = writer, .line = text, .force = FORCE_ENDS};
    if (rule && rule->kind == SIGNATURE_NONE)
        return;
    if (rule) {
        read_rule(reading, rule, writer, text);
    } else if (is_killed(text)) {
        finding.kind = SIGNATURE_KILLED;
        keep(reading, finding);
    } else if (signature_line_is_fatal(text)) {
        finding.kind = SIGNATURE_ABORT;
        keep(reading, finding);
    } else if (signature_line_is_bare_exception(said) && !signature_line_is_survived(text)) {
        finding.kind = signature_line_is_not_finite(said) ? SIGNATURE_NUMERIC : SIGNATURE_TRACEBACK;
        finding.force = said.len == text.len ? FORCE_ENDS : FORCE_SAID;
        finding.exception = said.len == text.len;
        finding.line = said;
        keep(reading, finding);
        if (finding.exception && finding.kind == SIGNATURE_TRACEBACK)
            reading->reason_until = reading->at + REASON_LINES;
    } else {
        reading->progress += signature_line_is_progress(text);
    }
}

/* Returns the text from "terminate called" on, which may follow a progress bar without a line break. */
static struct str from_thrown(struct str text)
{
    static const char mark[] = "terminate called";
    const char *at = text.len ? memmem(text.data, text.len, mark, sizeof mark - 1) : NULL;
    return at ? (struct str){at, text.len - (size_t)(at - text.data)} : text;
}

static void read_line(struct reading *reading, struct str line)
{
    reading->at++;
    if (!begins_trace(reading, line) && !read_traces(reading, line) && !read_chain(reading, line)) {
        struct str text = line, writer = signature_cut_writer(&text);
        read_text(reading, writer, from_thrown(str_trim(text)));
    }
    if (line.len)
        reading->before = line;
}

/* --- the choice ----------------------------------------------------------------------------------------- */

/* Whether both findings may have one writer. In logs of PyTorch's ranks, only the exception that ends a rank
 * has the rank's prefix. */
static bool same_writer(const struct finding *early, const struct finding *late)
{
    return str_equal(early->writer, late->writer) || early->writer.len == 0;
}

/* Whether `late` shows that the process still ran after `early`, which therefore did not end it. */
static bool outlives(const struct finding *late, const struct finding *early)
{
    if (late->force != FORCE_ENDS || !late->exception || late->at <= early->at || !same_writer(early, late))
        return false;
    return is_root(late->kind) || late->progress > early->progress;
}

static bool is_of_machine(enum signature_kind kind)
{
    return kind == SIGNATURE_CHIP_BROKEN || kind == SIGNATURE_CHIP_MISSING || kind == SIGNATURE_DRIVER;
}

/* Whether the mention remains valid in spite of `other`. A mention of a broken chip does, because such a chip
 * explains its driver's errors and its peers' symptoms. */
static bool leaves_mention(const struct finding *mention, const struct finding *other)
{
    if (other->force != FORCE_ENDS)
        return true;
    bool chip = other->kind == SIGNATURE_CHIP || (!is_root(other->kind) && other->kind != SIGNATURE_TEARDOWN);
    return is_of_machine(mention->kind) && chip;
}

/* Whether another finding explains the root, or shows that the process survived it. */
static bool is_refuted(const struct finding *root, const struct finding *other)
{
    switch (root->force) {
    case FORCE_ECHO:
        return other->force != FORCE_ECHO && other->kind != SIGNATURE_TEARDOWN;
    case FORCE_SAID:
        return other->kind != SIGNATURE_TEARDOWN && !leaves_mention(root, other);
    case FORCE_ENDS:
        break;
    }
    if (root->exception)
        return outlives(other, root);
    bool first = other->force == FORCE_ENDS && other->at < root->at && other->progress == root->progress &&
                 other->kind != SIGNATURE_TEARDOWN && other->kind != SIGNATURE_ABORT;
    return root->kind == SIGNATURE_ABORT && first; /* teardown after an error often aborts */
}

static bool stands(const struct reading *reading, const struct finding *finding)
{
    if (!is_root(finding->kind)) /* a mention before further steps was survived */
        return finding->force != FORCE_SAID || finding->progress == reading->progress;
    for (size_t i = 0; i < reading->count; i++) {
        const struct finding *other = &reading->findings[i];
        bool counts = other != finding && (is_root(other->kind) || stands(reading, other));
        if (counts && is_refuted(finding, other))
            return false;
    }
    return true;
}

static const struct finding *choose_root(const struct reading *reading)
{
    const struct finding *root = NULL;
    for (size_t i = 0; i < reading->count; i++) {
        const struct finding *finding = &reading->findings[i];
        if (!is_root(finding->kind) || !stands(reading, finding))
            continue;
        int heavier = root ? signature_weight(finding->kind) - signature_weight(root->kind) : 1;
        if (heavier > 0 || (heavier == 0 && finding->at < root->at))
            root = finding;
    }
    return root;
}

static void add_signature(struct signature *signatures, size_t *count, const struct finding *finding)
{
    size_t place = 0;
    while (place < *count && signatures[place].kind != finding->kind)
        place++;
    if (place == *count) {
        place = 0;
        while (place < *count && signature_weight(signatures[place].kind) >= signature_weight(finding->kind))
            place++;
        if (place == SIGNATURES_MAX)
            return;
        *count += *count < SIGNATURES_MAX;
        for (size_t i = *count; i-- > place + 1;)
            signatures[i] = signatures[i - 1];
    }
    CHECK(*count <= SIGNATURES_MAX && place < *count);
    signatures[place] = (struct signature){finding->kind, finding->line};
}

/* Reads the parts of a line that carriage returns separate, such as the states of a progress bar, as
 * lines. */
static void read_lines(struct reading *reading, struct str line)
{
    struct str part;
    if (line.len && line.data[line.len - 1] == '\r')
        line.len--;
    while (str_cut(line, '\r', &part, &line))
        if (part.len)
            read_line(reading, part);
    read_line(reading, line);
}

/* Returns the length of the terminal's control sequence at the beginning of the text: colours ("ESC [ 31 m"),
 * or titles and links ("ESC ] ... BEL"). Returns 0 if there is none that ends within CONTROL_MAX bytes and
 * its line. */
static size_t control_length(struct str text)
{
    if (text.len < 3 || text.data[0] != '\x1b' || (text.data[1] != '[' && text.data[1] != ']'))
        return 0;
    bool string = text.data[1] == ']';
    for (size_t i = 2; i < text.len && i < CONTROL_MAX && text.data[i] != '\n'; i++) {
        if (string && text.data[i] == '\a')
            return i + 1;
        if (string && text.data[i] == '\\' && text.data[i - 1] == '\x1b')
            return i + 1;
        if (!string && text.data[i] >= '@' && text.data[i] <= '~')
            return i + 1;
    }
    return 0;
}

/* Returns the text without terminal control sequences; if it has any, a copy in `arena`. */
static struct str without_controls(struct arena *arena, struct str text)
{
    if (text.len == 0 || !memchr(text.data, '\x1b', text.len))
        return text;
    char *copy = arena_alloc(arena, text.len);
    size_t len = 0;
    while (text.len) {
        size_t skipped = control_length(text);
        if (!skipped)
            copy[len++] = text.data[0];
        text.data += skipped ? skipped : 1;
        text.len -= skipped ? skipped : 1;
    }
    return (struct str){copy, len};
}

size_t signatures_read(struct arena *arena, struct str tail, struct signature ret_signatures[SIGNATURES_MAX])
{
    struct reading *reading = ARENA_NEW(arena, struct reading);
    struct str line;
    size_t count = 0;
    tail = without_controls(arena, tail);
    while (str_cut(tail, '\n', &line, &tail))
        read_lines(reading, line);
    read_lines(reading, tail);
    const struct finding *root = choose_root(reading);
    bool numeric = reading->loss.kind != SIGNATURE_NONE;
    if (numeric && (!root || signature_weight(root->kind) < signature_weight(SIGNATURE_NUMERIC)))
        root = &reading->loss;
    if (root)
        add_signature(ret_signatures, &count, root);
    for (size_t i = 0; i < reading->count; i++)
        if (!is_root(reading->findings[i].kind) && stands(reading, &reading->findings[i]))
            add_signature(ret_signatures, &count, &reading->findings[i]);
    for (size_t i = 0; i < count; i++)
        ret_signatures[i].line = signature_line(arena, ret_signatures[i].line);
    return count;
}
