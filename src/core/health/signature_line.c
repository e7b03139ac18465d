/* signature_line.c - the form of a log line: its writer, its level, and whether the program continues after
 * it. */
#include "base/check.h"
#include "core/health/signature_rules.h"

bool signature_line_has(struct str line, const char *phrase)
{
    size_t len = strlen(phrase);
    return line.len >= len && memmem(line.data, line.len, phrase, len) != NULL;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (lower(c) >= 'a' && lower(c) <= 'z') || c == '_';
}

bool signature_line_has_any_case(struct str line, const char *phrase)
{
    size_t len = strlen(phrase);
    for (size_t at = 0; at + len <= line.len; at++) {
        size_t same = 0;
        while (same < len && lower(line.data[at + same]) == phrase[same])
            same++;
        if (same == len)
            return true;
    }
    return false;
}

/* Whether the line contains `word` as a whole word. */
static bool has_word(struct str line, const char *word)
{
    size_t len = strlen(word);
    for (size_t at = 0; at + len <= line.len; at++)
        if (memcmp(line.data + at, word, len) == 0 && (at == 0 || !is_letter(line.data[at - 1])) &&
            (at + len == line.len || !is_letter(line.data[at + len])))
            return true;
    return false;
}

bool signature_line_has_any_case_word(struct str line, const char *phrase)
{
    size_t len = strlen(phrase);
    for (size_t at = 0; at + len <= line.len; at++)
        if (signature_line_has_any_case((struct str){line.data + at, len}, phrase) &&
            (at == 0 || !is_letter(line.data[at - 1])) &&
            (at + len == line.len || !is_letter(line.data[at + len])))
            return true;
    return false;
}

/* Returns the length of "2026-11-24 12:00:00.000000: ", which TensorFlow and XLA put before glog's level; 0:
 * none. */
static size_t date_len(struct str line)
{
    static const char form[] = "0000-00-00 00:00:00";
    if (line.len < sizeof form)
        return 0;
    for (size_t i = 0; i + 1 < sizeof form; i++)
        if (form[i] == '0' ? !is_digit(line.data[i]) : line.data[i] != form[i])
            return 0;
    size_t at = sizeof form - 1;
    while (at < line.len && (line.data[at] == '.' || is_digit(line.data[at])))
        at++;
    return at + 1 < line.len && line.data[at] == ':' && line.data[at + 1] == ' ' ? at + 2 : 0;
}

/* Returns the level in "W1124 12:00:00.000000 77 file.cc:12] text", also after '[', as glog and PyTorch's C++
 * print it; 0: none. */
static char glog_level(struct str line)
{
    size_t date_at = date_len(line);
    if (date_at > 0)
        return line.len > date_at + 1 && strchr("DIWEF", line.data[date_at]) && line.data[date_at + 1] == ' '
                   ? line.data[date_at]
                   : 0;
    size_t at = line.len > 0 && line.data[0] == '[';
    if (line.len < at + 6 || !strchr("DIWEF", line.data[at]))
        return 0;
    bool date = is_digit(line.data[at + 1]) && is_digit(line.data[at + 2]) && is_digit(line.data[at + 3]);
    bool torch_old = at == 1 && line.data[at + 1] == ' ';
    return date || torch_old ? line.data[at] : 0;
}

bool signature_line_is_fatal(struct str line)
{
    return glog_level(line) == 'F';
}

static size_t number_at(struct str line, size_t at, uint32_t *ret_number)
{
    uint32_t number = 0;
    size_t from = at;
    while (at < line.len && is_digit(line.data[at]) && at < from + 6)
        number = number * 10 + (uint32_t)(line.data[at++] - '0');
    *ret_number = number;
    CHECK(from <= at && at <= line.len);
    return at - from;
}

/* Reads "attempt 2/5" or "Attempt 2 of 5". Returns false if the line has neither. */
static bool read_attempt(struct str line, uint32_t *ret_number, uint32_t *ret_of)
{
    static const char word[] = "ttempt ";
    const char *found = line.len ? memmem(line.data, line.len, word, sizeof word - 1) : NULL;
    if (!found)
        return false;
    size_t at = (size_t)(found - line.data) + sizeof word - 1, len = number_at(line, at, ret_number);
    at += len;
    size_t between = str_starts((struct str){line.data + at, line.len - at}, STR(" of ")) ? 4 : 1;
    if (!len || at + between >= line.len || (between == 1 && line.data[at] != '/'))
        return false;
    return number_at(line, at + between, ret_of) > 0;
}

bool signature_line_retries(struct str line)
{
    uint32_t number, of;
    static const char *const gave_up[] = {"giving up", "gave up",      "exceeded",
                                          "exhausted", "failed after", "no more retries"};
    static const char *const words[] = {
        "retrying",       "will retry",         "retry in",          "retry after", "retry attempt",
        "retry #",        "falling back",       "fallback",          "skipping",    "ignoring",
        "ignored",        "recovered",          "recovering",        "continuing",  "reconnecting",
        "non-fatal",      "try again in",       "halving",           "be retried",  "reduced batch",
        "reducing batch", "reducing the batch", "continue training", "going on",    "restarting worker",
    };
    if (read_attempt(line, &number, &of))
        return number < of;
    for (size_t i = 0; i < sizeof gave_up / sizeof *gave_up; i++)
        if (signature_line_has_any_case(line, gave_up[i]))
            return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (signature_line_has_any_case(line, words[i]))
            return true;
    bool tries =
        signature_line_has_any_case(line, "trying ") && !signature_line_has_any_case(line, "trying to");
    bool replaces = signature_line_has(line, "using ") && signature_line_has(line, "instead");
    return tries || replaces || signature_line_has(line, " caught ") || has_word(line, "handled");
}

/* Whether a structured log gives the line a level below error: [warning], level=info, "level": "warn". */
static bool has_level_field(struct str line)
{
    static const char *const levels[] = {"warning", "warn", "info", "debug", "notice", "w", "i", "d"};
    for (size_t at = 1; at < line.len; at++) {
        char open = line.data[at - 1];
        struct str rest = {line.data + at, line.len - at};
        bool bracket = open == '[';
        if (!bracket && !str_ends((struct str){line.data, at}, STR("level=")) &&
            !str_ends((struct str){line.data, at}, STR("level\":\"")) &&
            !str_ends((struct str){line.data, at}, STR("level\": \"")))
            continue;
        for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
            size_t len = strlen(levels[i]);
            bool ends = rest.len > len && strchr("] \",", rest.data[len]);
            if (ends && signature_line_has_any_case((struct str){rest.data, len}, levels[i]))
                return true;
        }
    }
    return false;
}

/* Whether the line, though a warning, says that the program ends. */
static bool says_end(struct str line)
{
    static const char *const words[] = {"stopping training", "ending training", "terminating training",
                                        "aborting training", "stop training"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (signature_line_has_any_case(line, words[i]))
            return true;
    return false;
}

bool signature_line_is_survived(struct str line)
{
    static const char *const levels[] = {"INFO", "DEBUG", "WARNING", "WARN", "NOTICE"};
    char level = glog_level(line);
    if (says_end(line))
        return false;
    if (level == 'D' || level == 'I' || level == 'W' || signature_line_retries(line))
        return true;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (has_word(line, levels[i]) && !signature_line_has(line, "NCCL WARN")) /* NCCL's word for errors */
            return true;
    return has_level_field(line) || signature_line_has(line, "Warning:") ||
           signature_line_has(line, "warning:") || signature_line_has(line, "warnings.warn");
}

bool signature_line_is_progress(struct str line)
{
    bool number = false;
    for (size_t i = 0; i < line.len && !number; i++)
        number = is_digit(line.data[i]);
    return number &&
           (signature_line_has_any_case(line, "step") || signature_line_has_any_case(line, "iter") ||
            signature_line_has_any_case(line, "epoch") || signature_line_has_any_case(line, "loss"));
}

/* --- losses --------------------------------------------------------------------------------------------- */

/* Returns the length of the word of letters at the beginning of the text. */
static size_t word_len(struct str text)
{
    size_t len = 0;
    while (len < text.len && (is_letter(text.data[len]) || (len > 0 && is_digit(text.data[len]))))
        len++;
    return len;
}

static bool is_one_of(struct str word, const char *const *words)
{
    for (; *words; words++)
        if (word.len == strlen(*words) && signature_line_has_any_case(word, *words))
            return true;
    return false;
}

/* Reads the value after the name of a loss: ": nan", "=inf", " is NaN", "': 2.3". */
static enum signature_loss value_behind(struct str text)
{
    static const char *const between[] = {"is",     "was",   "became",   "value",  "in",  "of",
                                          "tensor", "array", "returned", "become", "has", NULL};
    static const char *const bad[] = {"nan", "nans", "inf", "infinity", "infinite", NULL};
    static const char *const finite[] = {"finite", NULL};
    static const char *const no[] = {"not", "non", NULL};
    bool negated = false;
    while (text.len > 0) {
        size_t len = word_len(text);
        if (len == 0 && is_digit(text.data[0]))
            return str_starts(text, STR("1.#")) ? LOSS_NOT_FINITE : LOSS_FINITE; /* 1.#QNAN of Windows */
        if (len > 0 && negated)
            return is_one_of((struct str){text.data, len}, finite) ? LOSS_NOT_FINITE : LOSS_NONE;
        negated = negated || (len > 0 && is_one_of((struct str){text.data, len}, no));
        if (len > 0 && is_one_of((struct str){text.data, len}, bad))
            return LOSS_NOT_FINITE;
        if (len > 0 && !negated && !is_one_of((struct str){text.data, len}, between))
            return LOSS_NONE;
        if (len == 0 && strchr(",;|", text.data[0]))
            return LOSS_NONE;
        len = len ? len : 1;
        CHECK(len <= text.len);
        text = (struct str){text.data + len, text.len - len};
    }
    return LOSS_NONE;
}

enum signature_loss signature_line_loss(struct str line)
{
    enum signature_loss found = LOSS_NONE;
    for (size_t at = 0; at + 4 <= line.len; at++) {
        struct str rest = {line.data + at, line.len - at};
        if (lower(line.data[at]) != 'l' ||
            !signature_line_has_any_case((struct str){line.data + at, 4}, "loss"))
            continue;
        enum signature_loss one = value_behind((struct str){rest.data + 4, rest.len - 4});
        found = one > found ? one : found;
    }
    return found;
}

/* Whether the text is an error about a name: the word is then one of the program's source, and is no
 * number. */
static bool is_of_names(struct str text)
{
    static const char *const classes[] = {"NameError",      "ImportError", "ModuleNotFoundError", "KeyError",
                                          "AttributeError", "TypeError",   "SyntaxError"};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (str_starts(text, str_from(classes[i])))
            return true;
    return false;
}

/* Whether the text contains the word in any case, neither quoted nor as a part of a path or dotted name. */
static bool has_plain_word(struct str text, const char *word)
{
    size_t len = strlen(word);
    for (size_t at = 0; at + len <= text.len; at++) {
        struct str one = {text.data + at, len};
        char before = at > 0 ? text.data[at - 1] : ' ', behind = at + len < text.len ? one.data[len] : ' ';
        bool apart =
            !is_letter(before) && !is_letter(behind) && !strchr("'\"`./", before) && !strchr("'\"`", behind);
        if (apart && signature_line_has_any_case(one, word))
            return true;
    }
    return false;
}

bool signature_line_is_not_finite(struct str text)
{
    static const char *const words[] = {"nan", "nans", "inf", "infinity", "infs"};
    if (signature_line_loss(text) == LOSS_NOT_FINITE)
        return true;
    if (is_of_names(text))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has_plain_word(text, words[i]))
            return true;
    return signature_line_has_any_case(text, "non-finite") ||
           signature_line_has_any_case(text, "nonfinite") || signature_line_has_any_case(text, "not finite");
}

/* --- names of exceptions -------------------------------------------------------------------------------- */

/* Returns the dotted name at the beginning of the text, which ends with the text or before ':'; empty: there
 * is none. *ret_last is its last part. */
static struct str dotted_name(struct str text, struct str *ret_last)
{
    size_t len = 0, last = 0;
    while (len < text.len && text.data[len] != ':') {
        char c = text.data[len];
        bool inside = len > last && (is_digit(c) || c == '.');
        if (!is_letter(c) && !inside)
            return (struct str){0};
        len++;
        if (c == '.')
            last = len;
    }
    CHECK(last <= len && len <= text.len);
    *ret_last = (struct str){text.data + last, len - last};
    return (struct str){text.data, last < len ? len : 0};
}

/* As dotted_name, for a name that ends before "('" or '("'. */
static struct str called_name(struct str text, struct str *ret_last)
{
    const char *open = text.len ? memchr(text.data, '(', text.len) : NULL;
    if (!open || open + 1 >= text.data + text.len || !strchr("'\"", open[1]))
        return (struct str){0};
    return dotted_name((struct str){text.data, (size_t)(open - text.data)}, ret_last);
}

/* Names of classes begin with a capital, except for some in modules ("socket.timeout"). */
bool signature_line_is_exception(struct str text)
{
    struct str last, name = dotted_name(text, &last);
    if (name.len == 0)
        return false;
    return (last.data[0] >= 'A' && last.data[0] <= 'Z') || last.len < name.len;
}

bool signature_line_is_bare_exception(struct str text)
{
    struct str last, name = dotted_name(text, &last);
    if (name.len == 0)
        name = called_name(text, &last); /* as repr() writes it: "TypeError('text')" */
    if (name.len == 0 || !(last.data[0] >= 'A' && last.data[0] <= 'Z'))
        return false;
    if (last.len < name.len &&
        (signature_line_has(name, "exceptions.") || signature_line_has(name, "errors.")))
        return true; /* of a module of exceptions, whatever its name */
    size_t text_at = name.len + 2;
    if (str_is(name, "Error") && !(text_at < text.len && is_letter(text.data[text_at])))
        return false; /* a number, as tables of results have */
    return str_ends(last, STR("Error")) || str_ends(last, STR("Exception")) ||
           str_ends(last, STR("Interrupt")) || str_ends(last, STR("TimeoutExpired")) ||
           (last.len < name.len && str_ends(last, STR("Timeout")));
}

/* --- heads ---------------------------------------------------------------------------------------------- */

/* Returns the length of a label "NAME<digits>" in brackets with its separator, as in "[rank3]:"; 0: none. */
static size_t label_len(struct str line, const char *name)
{
    size_t at = strlen(name);
    if (line.len <= at || memcmp(line.data, name, at) != 0)
        return 0;
    size_t digits = at;
    while (at < line.len && (is_digit(line.data[at]) || line.data[at] == ','))
        at++;
    return at > digits ? at : 0;
}

static size_t writer_len(struct str line)
{
    static const char *const labels[] = {"[rank", "[default", "[trainer", "[Rank", "["};
    size_t worker = label_len(line, "worker-"); /* of DeepSpeed's pdsh */
    if (worker && str_starts((struct str){line.data + worker, line.len - worker}, STR(": ")))
        return worker + 1;
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        size_t at = label_len(line, labels[i]);
        if (!at || at >= line.len || line.data[at] != ']')
            continue;
        at++;
        if (at < line.len && line.data[at] == '<') /* "[1,3]<stderr>:" */
            while (at < line.len && line.data[at] != ':')
                at++;
        if (at < line.len && line.data[at] == ':')
            return at + 1;
    }
    size_t at = label_len(line, "");
    if (at && at + 1 < line.len && line.data[at] == ':' && line.data[at + 1] == ' ') /* srun --label */
        return at + 1;
    const char *end = line.len && line.data[0] == '(' ? memchr(line.data, ')', line.len) : NULL;
    if (end && signature_line_has((struct str){line.data, (size_t)(end - line.data)}, " pid="))
        return (size_t)(end - line.data) + 1;
    return 0;
}

struct str signature_cut_writer(struct str *line)
{
    size_t len = writer_len(*line);
    CHECK(len <= line->len);
    struct str writer = {line->data, len};
    if (len < line->len && len > 0 && line->data[len] == ' ')
        len++;
    *line = (struct str){line->data + len, line->len - len};
    return writer;
}

/* Whether the line says, by its level or in words, that something failed. */
static bool says_error(struct str line)
{
    static const char *const words[] = {"error",     "critical", "fatal",     "uncaught",
                                        "unhandled", "crashed",  "exception", "failed with"};
    bool error = glog_level(line) == 'E';
    for (size_t i = 0; i < sizeof words / sizeof *words && !error; i++)
        error = signature_line_has_any_case_word(line, words[i]);
    return error;
}

struct str signature_skip_head(struct str line)
{
    const char *colon = line.len ? memchr(line.data, ':', line.len) : NULL;
    const char *blank = line.len ? memchr(line.data, ' ', line.len) : NULL;
    bool host = colon && blank == colon + 1; /* "node7: ", as pdsh and clush write */
    bool error = says_error(line);
    for (size_t at = 1; (error || host) && at < line.len; at++) {
        struct str rest = {line.data + at, line.len - at};
        bool begins = strchr(" :]\"=", line.data[at - 1]) != NULL;
        if (begins && (error || rest.data == blank + 1) && signature_line_is_bare_exception(rest) &&
            (memchr(rest.data, ':', rest.len) || memchr(rest.data, '(', rest.len)))
            return rest;
    }
    return line;
}
