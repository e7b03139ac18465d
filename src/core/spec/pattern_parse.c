/* pattern_parse.c - from the text of a pattern to its program, through a tree, because {m,n} unfolds
 * subtrees.
 *
 *     alternation = sequence *( "|" sequence ) ;  sequence = *( atom [ repetition [ "?" ] ] )
 * Recursion is bounded by PATTERN_DEPTH_MAX, the tree by the text, the program by PATTERN_PROGRAM_MAX.
 */
#include "core/spec/pattern.h"

#include "base/check.h"

struct parser {
    struct arena *arena;
    struct error *error;
    struct str text;
    size_t at;
    int depth;
    int32_t groups;                           /* so far */
    bool fold, dot_all, multi_line, ungreedy; /* (?i), (?s), (?m), (?U) */
    bool quoted;                              /* between \Q and \E */
};

static int fail(struct parser *parser, const char *why)
{
    CHECK(parser->at <= parser->text.len);
    return error_set(parser->error, ERROR_INVALID, "pattern, at byte %zu: %s", parser->at, why);
}

static bool more(const struct parser *parser)
{
    return parser->at < parser->text.len;
}

static char peek(const struct parser *parser)
{
    return more(parser) ? parser->text.data[parser->at] : 0;
}

static bool accept(struct parser *parser, const char *token)
{
    CHECK(parser->at <= parser->text.len);
    struct str rest = {parser->text.data + parser->at, parser->text.len - parser->at};
    if (!str_starts(rest, str_from(token)))
        return false;
    parser->at += strlen(token);
    return true;
}

static struct node *node_new(struct parser *parser, enum node_kind kind)
{
    struct node *node = ARENA_NEW(parser->arena, struct node);
    node->kind = kind;
    return node;
}

static void node_append(struct node *parent, struct node *child)
{
    CHECK(child != parent && !child->sibling);
    CHECK(!parent->first == !parent->last);
    if (parent->last)
        parent->last->sibling = child;
    else
        parent->first = child;
    parent->last = child;
}

/* --- leaves --------------------------------------------------------------------------------------------- */
static const struct rune_set *set_from(struct parser *parser, struct runes *ranges, bool negated)
{
    struct rune_set *set = ARENA_NEW(parser->arena, struct rune_set);
    runes_normalise(ranges, negated);
    set->len = ranges->list.len;
    set->ranges = ARENA_ARRAY(parser->arena, struct rune_range, set->len);
    for (size_t i = 0; i < set->len; i++) {
        set->ranges[i] = ranges->list.items[i];
        CHECK(set->ranges[i].low <= set->ranges[i].high && set->ranges[i].high <= RUNE_MAX);
        CHECK(i == 0 || set->ranges[i - 1].high < set->ranges[i].low); /* rune_set_has searches */
    }
    return set;
}

static struct node *set_node(struct parser *parser, struct runes *ranges, bool negated)
{
    struct node *node = node_new(parser, NODE_SET);
    node->set = set_from(parser, ranges, negated);
    vec_done(&ranges->list);
    return node;
}

static struct node *rune_node(struct parser *parser, uint32_t rune)
{
    CHECK(rune <= RUNE_MAX);
    struct runes ranges = {0};
    runes_add(&ranges, rune, rune);
    if (parser->fold)
        runes_fold(&ranges);
    return set_node(parser, &ranges, false);
}

static struct node *assert_node(struct parser *parser, enum pattern_assert assert)
{
    struct node *node = node_new(parser, NODE_ASSERT);
    node->assert = assert;
    return node;
}

/* --- escapes and classes -------------------------------------------------------------------------------- */
/* Parses [:alpha:] at the position. Returns 1 if there was one, 0 if not, or a negative error. */
static int add_posix_class(struct parser *parser, struct runes *ranges)
{
    size_t start = parser->at;
    if (!accept(parser, "[:"))
        return 0;
    bool negated = accept(parser, "^");
    struct str rest = {parser->text.data + parser->at, parser->text.len - parser->at}, name, tail;
    if (!str_cut(rest, ':', &name, &tail) || tail.len == 0 || tail.data[0] != ']') {
        parser->at = start;
        return 0;
    }
    if (!runes_add_posix(ranges, name, negated))
        return fail(parser, "unknown character class name");
    parser->at += name.len + 2;
    CHECK(parser->at <= parser->text.len);
    return 1;
}

static int digit_value(char c, int base)
{
    int value = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : 99;
    return value < base ? value : -1;
}

/* Parses up to `digits_max` digits. Returns -1 if there is none, or the value exceeds RUNE_MAX. */
static int64_t parse_digits(struct parser *parser, int base, int digits_max)
{
    CHECK(base >= 2 && base <= 16 && digits_max <= 8);
    int64_t value = -1;
    for (int i = 0; i < digits_max && digit_value(peek(parser), base) >= 0; i++) {
        value = (value < 0 ? 0 : value) * base + digit_value(peek(parser), base);
        parser->at++;
        if (value > RUNE_MAX)
            return -1;
    }
    return value;
}

/* Parses \x41 or \x{1F600}, after the "\x". */
static int parse_hex(struct parser *parser, uint32_t *ret_rune)
{
    bool braces = accept(parser, "{");
    size_t start = parser->at;
    int64_t value = parse_digits(parser, 16, braces ? 8 : 2);
    if (value < 0 || (braces ? !accept(parser, "}") : parser->at != start + 2))
        return fail(parser, "invalid escape sequence");
    CHECK(value <= RUNE_MAX);
    *ret_rune = (uint32_t)value;
    return 0;
}

/* Parses an escape of a single rune, after the backslash. */
static int parse_escaped_rune(struct parser *parser, uint32_t *ret_rune)
{
    static const char letters[] = "aftnrv", runes[] = "\a\f\t\n\r\v";
    _Static_assert(sizeof letters == sizeof runes, "a rune for each letter");
    if (!more(parser))
        return fail(parser, "trailing backslash at end of expression");
    char c = peek(parser);
    if (c >= '0' && c <= '7') {
        size_t start = parser->at;
        int64_t value = parse_digits(parser, 8, 3);
        if (c != '0' && parser->at == start + 1)
            return fail(parser, "back-references are not supported");
        CHECK(value >= 0 && value <= 0777);
        *ret_rune = (uint32_t)value;
        return 0;
    }
    if (accept(parser, "x"))
        return parse_hex(parser, ret_rune);
    const char *letter = c ? strchr(letters, c) : NULL;
    if (letter) {
        *ret_rune = (unsigned char)runes[letter - letters];
        parser->at++;
        return 0;
    }
    bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if ((unsigned char)c >= 0x80 || word || c == 0)
        return fail(parser, "invalid escape sequence");
    *ret_rune = (unsigned char)c;
    parser->at++;
    return 0;
}

static int parse_class_rune(struct parser *parser, uint32_t *ret_rune)
{
    if (!more(parser))
        return fail(parser, "missing closing ]");
    if (accept(parser, "\\"))
        return parse_escaped_rune(parser, ret_rune);
    *ret_rune = rune_next(parser->text, &parser->at);
    return 0;
}

/* Parses an item of a class: a named class, a rune or a range. */
static int parse_class_item(struct parser *parser, struct runes *ranges)
{
    int taken = add_posix_class(parser, ranges);
    if (taken != 0)
        return taken < 0 ? taken : 0;
    if (peek(parser) == '\\' && parser->at + 1 < parser->text.len &&
        runes_add_perl(ranges, parser->text.data[parser->at + 1])) {
        parser->at += 2;
        return 0;
    }
    uint32_t low = 0, high = 0;
    int rc = parse_class_rune(parser, &low);
    if (rc < 0)
        return rc;
    high = low;
    bool range =
        peek(parser) == '-' && parser->at + 1 < parser->text.len && parser->text.data[parser->at + 1] != ']';
    if (range) {
        parser->at++;
        rc = parse_class_rune(parser, &high);
        if (rc < 0)
            return rc;
        if (high < low)
            return fail(parser, "invalid character class range");
    }
    CHECK(low <= high && high <= RUNE_MAX);
    runes_add(ranges, low, high);
    return 0;
}

/* Parses a class, after the "[". */
static int parse_class(struct parser *parser, struct node **ret_node)
{
    struct runes ranges = {0};
    bool negated = accept(parser, "^");
    for (bool first = true; first || peek(parser) != ']'; first = false) {
        int rc = more(parser) ? parse_class_item(parser, &ranges) : fail(parser, "missing closing ]");
        if (rc < 0) {
            vec_done(&ranges.list);
            return rc;
        }
    }
    CHECK(more(parser));
    parser->at++;
    if (parser->fold)
        runes_fold(&ranges);
    *ret_node = set_node(parser, &ranges, negated);
    return 0;
}

/* --- atoms ---------------------------------------------------------------------------------------------- */
static int parse_choice(struct parser *parser, struct node **ret_node);

static int parse_escape(struct parser *parser, struct node **ret_node)
{
    static const char letters[] = "AzbB";
    static const enum pattern_assert asserts[] = {ASSERT_TEXT_BEGIN, ASSERT_TEXT_END, ASSERT_WORD_EDGE,
                                                  ASSERT_NO_WORD_EDGE};
    _Static_assert(sizeof letters - 1 == sizeof asserts / sizeof *asserts, "one for each letter");
    char c = peek(parser);
    const char *letter = c ? strchr(letters, c) : NULL;
    if (letter) {
        parser->at++;
        *ret_node = assert_node(parser, asserts[letter - letters]);
        return 0;
    }
    struct runes ranges = {0};
    if (runes_add_perl(&ranges, c)) {
        parser->at++;
        *ret_node = set_node(parser, &ranges, false);
        return 0;
    }
    if (c == 'p' || c == 'P')
        return fail(parser, "Unicode classes are not supported");
    uint32_t rune = 0;
    int rc = parse_escaped_rune(parser, &rune);
    if (rc < 0)
        return rc;
    *ret_node = rune_node(parser, rune);
    return 0;
}

/* Parses the letters of "(?ims-U:" or "(?i)". *ret_group: a colon ends them, so a group follows. */
static int parse_flags(struct parser *parser, bool *ret_group)
{
    bool value = true, any = false;
    for (;;) {
        char c = peek(parser);
        if (c == 0)
            return fail(parser, "missing closing )");
        parser->at++;
        if (c == ':' || c == ')') {
            if (!value && !any)
                return fail(parser, "invalid or unsupported Perl syntax");
            *ret_group = c == ':';
            return 0;
        }
        if (c == '-' && value) {
            value = any = false;
            continue;
        }
        any = true;
        if (c == 'i')
            parser->fold = value;
        else if (c == 's')
            parser->dot_all = value;
        else if (c == 'm')
            parser->multi_line = value;
        else if (c == 'U')
            parser->ungreedy = value;
        else
            return fail(parser, "invalid or unsupported Perl syntax");
    }
}

/* Parses "name>", after "(?P<" or "(?<". */
static int parse_group_name(struct parser *parser, struct str *ret_name)
{
    size_t start = parser->at;
    while (digit_value(peek(parser), 10) >= 0 || peek(parser) == '_' ||
           (peek(parser) >= 'a' && peek(parser) <= 'z') || (peek(parser) >= 'A' && peek(parser) <= 'Z'))
        parser->at++;
    CHECK(start <= parser->at && parser->at <= parser->text.len);
    *ret_name = (struct str){parser->text.data + start, parser->at - start};
    return parser->at > start && accept(parser, ">") ? 0 : fail(parser, "invalid named capture");
}

/* Parses a group, after the "(". A group of flags alone changes the flags up to the end of the enclosing
 * group; *ret_node is NULL then. */
static int parse_group(struct parser *parser, struct node **ret_node)
{
    struct parser outside = *parser;
    struct node *capture = NULL;
    struct str name = {0};
    bool group = true;
    int rc = 0;
    if (accept(parser, "?<=") || accept(parser, "?<!"))
        return fail(parser, "invalid or unsupported Perl syntax");
    if (accept(parser, "?P<") || accept(parser, "?<"))
        rc = parse_group_name(parser, &name);
    else if (accept(parser, "?"))
        rc = parse_flags(parser, &group);
    else
        name = STR("");
    if (rc < 0)
        return rc;
    if (name.data) {
        capture = node_new(parser, NODE_GROUP);
        capture->group = ++parser->groups;
        capture->name = arena_str(parser->arena, name);
    }
    if (!group) {
        *ret_node = NULL;
        return 0;
    }
    if (++parser->depth > PATTERN_DEPTH_MAX)
        return error_set(parser->error, ERROR_LIMIT, "pattern nests deeper than %d groups",
                         (int)PATTERN_DEPTH_MAX);
    struct node *node = NULL;
    rc = parse_choice(parser, &node);
    if (rc < 0)
        return rc;
    if (!accept(parser, ")"))
        return fail(parser, "missing closing )");
    CHECK(parser->depth > 0);
    parser->depth--;
    CHECK(parser->depth == outside.depth && parser->groups >= outside.groups);
    parser->fold = outside.fold;
    parser->dot_all = outside.dot_all;
    parser->multi_line = outside.multi_line;
    parser->ungreedy = outside.ungreedy;
    if (capture)
        node_append(capture, node);
    *ret_node = capture ? capture : node;
    return 0;
}

static struct node *dot_node(struct parser *parser)
{
    struct runes ranges = {0};
    if (!parser->dot_all)
        runes_add(&ranges, '\n', '\n');
    return set_node(parser, &ranges, true);
}

/* Parses a decimal number. Returns PATTERN_REPEAT_MAX + 1 for all larger ones, -1 if there is no digit. */
static int32_t parse_count(struct parser *parser)
{
    _Static_assert(PATTERN_REPEAT_MAX < INT32_MAX / 10 - 10, "one more digit fits");
    int32_t value = -1;
    for (; digit_value(peek(parser), 10) >= 0; parser->at++) {
        value = (value < 0 ? 0 : value) * 10 + digit_value(peek(parser), 10);
        value = value <= PATTERN_REPEAT_MAX ? value : PATTERN_REPEAT_MAX + 1;
    }
    CHECK(value >= -1 && value <= PATTERN_REPEAT_MAX + 1);
    return value;
}

/* Parses "{m}", "{m,}", "{m,n}". Returns 1, 0 if there is none ("{" is literal), or a negative error. */
static int parse_counts(struct parser *parser, int32_t *ret_min, int32_t *ret_max)
{
    CHECK(peek(parser) == '{');
    size_t start = parser->at++;
    int32_t min = parse_count(parser), max = min;
    if (min >= 0 && accept(parser, ","))
        max = parse_count(parser);
    if (min < 0 || !accept(parser, "}")) {
        parser->at = start;
        return 0;
    }
    if (min > PATTERN_REPEAT_MAX || max > PATTERN_REPEAT_MAX || (max >= 0 && max < min))
        return fail(parser, "invalid repeat count");
    *ret_min = min;
    *ret_max = max;
    return 1;
}

/* Parses *, +, ? or {m,n}, and a "?" after it. Returns 1 if there was one, 0 if not, or a negative error. */
static int parse_repetition(struct parser *parser, int32_t *ret_min, int32_t *ret_max, bool *ret_lazy)
{
    int taken = 1;
    *ret_min = 0;
    *ret_max = -1;
    if (accept(parser, "+"))
        *ret_min = 1;
    else if (accept(parser, "?"))
        *ret_max = 1;
    else if (peek(parser) == '{')
        taken = parse_counts(parser, ret_min, ret_max);
    else if (!accept(parser, "*"))
        taken = 0;
    *ret_lazy = taken == 1 && accept(parser, "?") != parser->ungreedy;
    return taken;
}

/* Parses an operand of a repetition. *ret_node is NULL if the operand consists of flags alone. */
static int parse_atom(struct parser *parser, struct node **ret_node)
{
    int32_t min = 0, max = 0;
    bool lazy;
    int taken = parse_repetition(parser, &min, &max, &lazy);
    if (taken != 0)
        return taken < 0 ? taken : fail(parser, "missing argument to repetition operator");
    if (accept(parser, "("))
        return parse_group(parser, ret_node);
    if (accept(parser, "["))
        return parse_class(parser, ret_node);
    if (accept(parser, "\\"))
        return parse_escape(parser, ret_node);
    if (accept(parser, "."))
        *ret_node = dot_node(parser);
    else if (accept(parser, "^"))
        *ret_node = assert_node(parser, parser->multi_line ? ASSERT_LINE_BEGIN : ASSERT_TEXT_BEGIN);
    else if (accept(parser, "$"))
        *ret_node = assert_node(parser, parser->multi_line ? ASSERT_LINE_END : ASSERT_TEXT_END);
    else
        *ret_node = rune_node(parser, rune_next(parser->text, &parser->at));
    return 0;
}

/* Parses a rune within \Q...\E, which is literal. *ret_last: it is the last one, which can be repeated. */
static int parse_quoted(struct parser *parser, struct node **ret_node, bool *ret_last)
{
    *ret_node = rune_node(parser, rune_next(parser->text, &parser->at));
    *ret_last = accept(parser, "\\E");
    if (*ret_last)
        parser->quoted = false;
    return 0;
}

static int parse_repeated(struct parser *parser, struct node **atom)
{
    int32_t min = 0, max = 0, again_min = 0, again_max = 0;
    bool lazy, again_lazy;
    int taken = parse_repetition(parser, &min, &max, &lazy);
    if (taken <= 0)
        return taken;
    CHECK(min >= 0 && (max < 0 || max >= min) && max <= PATTERN_REPEAT_MAX);
    struct node *repeat = node_new(parser, NODE_REPEAT);
    repeat->min = min;
    repeat->max = max;
    repeat->lazy = lazy;
    node_append(repeat, *atom);
    *atom = repeat;
    taken = parse_repetition(parser, &again_min, &again_max, &again_lazy);
    return taken == 0 ? 0 : fail(parser, "invalid nested repetition operator");
}

static int parse_sequence(struct parser *parser, struct node **ret_node)
{
    struct node *sequence = node_new(parser, NODE_SEQUENCE);
    while (more(parser) && (parser->quoted || (peek(parser) != '|' && peek(parser) != ')'))) {
        struct node *atom = NULL;
        bool repeatable = true;
        if (!parser->quoted && accept(parser, "\\Q")) {
            parser->quoted = true;
            continue;
        }
        if (parser->quoted && accept(parser, "\\E")) {
            parser->quoted = false;
            continue;
        }
        int rc = parser->quoted ? parse_quoted(parser, &atom, &repeatable) : parse_atom(parser, &atom);
        if (rc == 0 && atom && repeatable)
            rc = parse_repeated(parser, &atom);
        if (rc < 0)
            return rc;
        if (atom)
            node_append(sequence, atom);
    }
    *ret_node = sequence;
    return 0;
}

static int parse_choice(struct parser *parser, struct node **ret_node)
{
    struct node *choice = node_new(parser, NODE_CHOICE);
    do {
        struct node *sequence = NULL;
        int rc = parse_sequence(parser, &sequence);
        if (rc < 0)
            return rc;
        node_append(choice, sequence);
    } while (accept(parser, "|"));
    CHECK(choice->first);
    *ret_node = choice;
    return 0;
}

int pattern_compile(struct arena *arena, struct str text, struct node **ret_tree, struct error *error)
{
    struct parser parser = {.arena = arena, .error = error, .text = text};
    struct node *tree = NULL;
    if (text.len > PATTERN_BYTES_MAX)
        return error_set(error, ERROR_LIMIT, "pattern is longer than %d bytes", (int)PATTERN_BYTES_MAX);
    if (!str_is_utf8(text))
        return error_set(error, ERROR_INVALID, "pattern is not UTF-8");
    int rc = parse_choice(&parser, &tree);
    if (rc < 0)
        return rc;
    if (more(&parser))
        return fail(&parser, "unexpected )");
    CHECK(parser.groups >= 0 && (size_t)parser.groups <= text.len);
    CHECK(parser.depth == 0 && parser.at == text.len && tree->kind == NODE_CHOICE);
    *ret_tree = tree;
    return 0;
}
