#include "core/model/pattern.h"

#include "base/check.h"

struct placeholder {
    const char *name;
    enum pattern_part_kind kind;
    enum pattern_level least; /* the first level at which it is allowed */
};
static const struct placeholder placeholders[] = {
    {"pod", PART_POD, PATTERN_POD},       {"podName", PART_POD_NAME, PATTERN_BLOCK},
    {"rack", PART_BLOCK, PATTERN_BLOCK},  {"cube", PART_BLOCK, PATTERN_BLOCK},
    {"block", PART_BLOCK, PATTERN_BLOCK}, {"blockName", PART_BLOCK_NAME, PATTERN_MACHINE},
};

_Static_assert(PATTERN_WIDTH_MAX <= 9, "a width is one digit");
_Static_assert(PATTERN_POD < PATTERN_BLOCK && PATTERN_BLOCK < PATTERN_MACHINE, "what may be named grows");

static bool part_kind(struct str name, enum pattern_level level, enum pattern_part_kind *ret_kind)
{
    if (str_is(name, "n")) {
        *ret_kind = level == PATTERN_POD ? PART_POD : level == PATTERN_BLOCK ? PART_BLOCK : PART_N;
        return true;
    }
    for (size_t i = 0; i < sizeof placeholders / sizeof *placeholders; i++)
        if (str_is(name, placeholders[i].name) && level >= placeholders[i].least) {
            *ret_kind = placeholders[i].kind;
            return true;
        }
    return false;
}

/* Parses the text between one pair of braces: "name" or "name:0WIDTH". */
static bool parse_placeholder(struct str inside, enum pattern_level level, struct pattern_part *ret_part,
                              const char **ret_why)
{
    struct str name = inside, width;
    struct pattern_part part = {0};
    bool has_width = str_cut(inside, ':', &name, &width);
    if (!part_kind(name, level, &part.kind)) {
        *ret_why = level == PATTERN_POD ? "the placeholders of a pod's name are {n} and {pod}"
                   : level == PATTERN_BLOCK
                       ? "the placeholders of a block's name are {n}, {rack}, {cube}, {block}, "
                         "{pod} and {podName}"
                       : "the placeholders of a machine's name are {n}, {rack}, {cube}, {block}, "
                         "{blockName}, {pod} and {podName}";
        return false;
    }
    if (has_width) {
        bool number = part.kind != PART_POD_NAME && part.kind != PART_BLOCK_NAME;
        if (!number || width.len != 2 || width.data[0] != '0' || width.data[1] < '1' ||
            width.data[1] > '0' + PATTERN_WIDTH_MAX) {
            *ret_why = "a width is written :0W with W from 1 to 9, after a placeholder that is a number";
            return false;
        }
        part.width = width.data[1] - '0';
    }
    CHECK(part.kind != PART_TEXT && part.width >= 0 && part.width <= PATTERN_WIDTH_MAX);
    *ret_part = part;
    return true;
}

bool pattern_parse(struct str text, enum pattern_level level, struct pattern *ret_pattern,
                   const char **ret_why)
{
    struct pattern pattern = {.text = text, .level = level};
    struct str rest = text, before, after;
    while (rest.len) {
        if (pattern.part_count + 2 > PATTERN_PARTS_MAX) {
            *ret_why = "too many placeholders";
            return false;
        }
        before = rest;
        bool opened = str_cut(rest, '{', &before, &after);
        if (memchr(before.data, '}', before.len)) {
            *ret_why = "a '}' without its '{'";
            return false;
        }
        if (before.len)
            pattern.parts[pattern.part_count++] = (struct pattern_part){.kind = PART_TEXT, .text = before};
        if (!opened)
            break;
        struct str inside;
        if (!str_cut(after, '}', &inside, &rest)) {
            *ret_why = "a '{' without its '}'";
            return false;
        }
        struct pattern_part part;
        if (!parse_placeholder(inside, level, &part, ret_why))
            return false;
        pattern.parts[pattern.part_count++] = part;
        pattern.in_block |= part.kind == PART_BLOCK || part.kind == PART_BLOCK_NAME;
        pattern.in_pod |= part.kind == PART_POD || part.kind == PART_POD_NAME;
    }
    CHECK(pattern.part_count <= PATTERN_PARTS_MAX);
    *ret_pattern = pattern;
    return true;
}

/* Advances {n}, which restarts when the place that it counts in changes. The narrowest place decides,
 * although rack numbers are unique only together with {pod}: the loader reports equal names. */
static void count_machine(struct pattern *pattern, const struct pattern_place *place)
{
    uint64_t where = pattern->in_block ? place->block_index + 1 : pattern->in_pod ? place->pod_index + 1 : 0;
    if (pattern->counted_in != where) {
        pattern->counted_in = where;
        pattern->counted = 0;
    }
    pattern->counted++;
    CHECK(pattern->counted > 0 && pattern->counted_in == where);
}

struct str pattern_next(struct arena *arena, struct pattern *pattern, const struct pattern_place *place)
{
    CHECK(pattern->part_count <= PATTERN_PARTS_MAX);
    if (pattern->level == PATTERN_MACHINE)
        count_machine(pattern, place);
    struct buf name BUF_CLEANUP = {0};
    for (size_t i = 0; i < pattern->part_count; i++) {
        const struct pattern_part *part = &pattern->parts[i];
        switch (part->kind) {
        case PART_TEXT:
            buf_add_str(&name, part->text);
            break;
        case PART_N:
            CHECK(pattern->level == PATTERN_MACHINE && pattern->counted > 0);
            buf_printf(&name, "%0*lld", part->width, (long long)(pattern->counted - 1 + place->number_from));
            break;
        case PART_POD:
            buf_printf(&name, "%0*lld", part->width, (long long)place->pod);
            break;
        case PART_BLOCK:
            buf_printf(&name, "%0*lld", part->width, (long long)place->block);
            break;
        case PART_POD_NAME:
            buf_add_str(&name, place->pod_name);
            break;
        case PART_BLOCK_NAME:
            buf_add_str(&name, place->block_name);
            break;
        }
    }
    return arena_str(arena, buf_str(&name));
}
