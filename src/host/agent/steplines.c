#include "host/agent/steplines.h"

#include <stdlib.h>

#include "base/check.h"
#include "host/agent/values.h"

#define WORK_MAX_US (INT64_C(1) << 50) /* of one number */

static struct matcher *compile(struct arena *arena, struct str pattern)
{
    struct matcher *matcher;
    struct error error;
    return pattern.len && matcher_new(arena, pattern, LINE_PROGRAM_MAX, &matcher, &error) == 0 ? matcher
                                                                                               : NULL;
}

/* Assigns the pattern's groups their meaning: by their names or, without names, by their order. */
static void name_groups(struct step_lines *lines, struct str pattern)
{
    static const char *const by_order[] = {"step", "total", "loss"};
    struct error error;
    bool named = false;
    if (capturer_new(&lines->arena, pattern, LINE_PROGRAM_MAX, &lines->groups, &error) < 0) {
        lines->groups = NULL;
        return;
    }
    size_t groups = capturer_groups(lines->groups);
    lines->group_count = groups < PATTERN_GROUPS_MAX ? groups : PATTERN_GROUPS_MAX;
    for (size_t i = 0; i < lines->group_count; i++) {
        lines->names[i] = capturer_name(lines->groups, i);
        named |= lines->names[i].len > 0;
    }
    for (size_t i = 0; !named && i < lines->group_count && i < sizeof by_order / sizeof *by_order; i++)
        lines->names[i] = str_from(by_order[i]);
    if (lines->group_count == 0)
        lines->groups = NULL;
}

void step_lines_init(struct step_lines *lines, struct str step_pattern, struct str work_pattern)
{
    *lines = (struct step_lines){.newest.source = STEP_COUNTED};
    lines->step = compile(&lines->arena, step_pattern);
    if (lines->step)
        name_groups(lines, step_pattern);
    lines->work = compile(&lines->arena, work_pattern);
}

void step_lines_done(struct step_lines *lines)
{
    buf_done(&lines->line);
    arena_done(&lines->arena);
}

/* Reads milliseconds such as "12.5" as microseconds. Returns false if there is no number. */
static bool read_milliseconds(struct str text, int64_t *ret_us)
{
    int64_t us = 0, unit = 1000;
    size_t at = 0, digits = 0;
    bool fraction = false;
    while (at < text.len && text.data[at] && strchr(" \t:=", text.data[at]))
        at++;
    for (; at < text.len && us < WORK_MAX_US; at++) {
        if (text.data[at] == '.' && !fraction && digits > 0) {
            fraction = true;
            continue;
        }
        if (text.data[at] < '0' || text.data[at] > '9')
            break;
        digits++;
        if (fraction)
            us += (unit /= 10) * (text.data[at] - '0');
        else
            us = us * 10 + (text.data[at] - '0') * 1000;
    }
    *ret_us = us < WORK_MAX_US ? us : WORK_MAX_US;
    return digits > 0;
}

/* Reads "2.31", "-1e-5", "nan" or "inf", with no other text. */
static bool read_value(struct str text, double *ret_value)
{
    char room[40], *end;
    if (text.len == 0 || text.len >= sizeof room)
        return false;
    memcpy(room, text.data, text.len);
    room[text.len] = 0;
    *ret_value = strtod(room, &end);
    return end == room + text.len;
}

/* Reads the groups of a line. Returns false if the line has no step number. */
static bool read_groups(struct step_lines *lines, struct str line, int64_t *ret_number,
                        struct str *ret_not_finite)
{
    *ret_not_finite = (struct str){0};
    struct str found[PATTERN_GROUPS_MAX];
    bool numbered = false;
    double value;
    if (!lines->groups || !capturer_find(lines->groups, line, found))
        return false;
    struct task_step values = {0};
    for (size_t i = 0; i < lines->group_count; i++) {
        struct str name = lines->names[i], text = str_trim(found[i].data ? found[i] : STR(""));
        if (str_is(name, "step"))
            numbered = str_to_i64(text, 0, INT64_MAX / 2, ret_number) || numbered;
        else if (str_is(name, "total"))
            (void)str_to_i64(text, 0, INT64_MAX / 2, &lines->newest.total);
        else if (name.len > 0 && read_value(text, &value))
            step_value(&values, name, value);
    }
    if (values.metric_count > 0) {
        mem_copy(lines->newest.metrics, values.metrics, sizeof values.metrics);
        lines->newest.metric_count = values.metric_count;
    }
    if (values.finite_loss && !values.not_finite.len)
        lines->newest.not_finite = (struct str){0};
    lines->newest.finite_loss = values.finite_loss;
    *ret_not_finite = values.not_finite;
    return numbered;
}

/* Takes a line that is a step: its number, or one more than before. */
static void take_number(struct step_lines *lines, struct str line, struct str *ret_not_finite)
{
    struct task_step *newest = &lines->newest;
    int64_t number = 0, highest = newest->step;
    bool numbered = read_groups(lines, line, &number, ret_not_finite), first = lines->matched++ == 0;
    if (numbered && (first || (newest->source == STEP_READ && number >= highest))) {
        newest->first_plus_1 = first && !lines->midst ? number + 1 : newest->first_plus_1;
        lines->lower = number > highest ? 0 : lines->lower;
        newest->source = STEP_READ;
        newest->step = number;
        return;
    }
    bool again = (number < highest / 2 && highest >= STEPS_APART) || ++lines->lower >= LOWER_LINES;
    if (numbered && newest->source == STEP_READ && !again)
        return;
    newest->source = STEP_COUNTED;
    newest->step++;
    newest->total = newest->first_plus_1 = 0;
}

/* Takes a step. The recorded step at which the loss ceased to be finite stays the first one until the loss is
 * finite again. */
static void take_step(struct step_lines *lines, struct str line)
{
    struct str not_finite;
    take_number(lines, line, &not_finite);
    if (not_finite.len == 0 || lines->newest.not_finite.len > 0)
        return;
    lines->newest.not_finite = not_finite;
    lines->newest.not_finite_step = lines->newest.step;
}

static void take_line(struct step_lines *lines, struct str line, int64_t now_ns)
{
    size_t end;
    int64_t us;
    if (lines->work && matcher_find(lines->work, line, &end) &&
        read_milliseconds((struct str){line.data + end, line.len - end}, &us) &&
        lines->work_us < INT64_MAX - WORK_MAX_US)
        lines->work_us += us;
    if (!lines->step || !matcher_find(lines->step, line, &end))
        return;
    take_step(lines, line);
    if (lines->first_ns) {
        lines->sums.steps++;
    } else {
        lines->first_ns = now_ns;
        lines->work_us = 0;
    }
    lines->step_ns = now_ns;
}

static void end_line(struct step_lines *lines, int64_t now_ns)
{
    struct str line = buf_str(&lines->line);
    line.len = line.len < STEP_LINE_BYTES ? line.len : STEP_LINE_BYTES;
    if (!lines->skipping)
        take_line(lines, line, now_ns);
    buf_clear(&lines->line);
}

void step_lines_take(struct step_lines *lines, struct str bytes, int64_t now_ns)
{
    CHECK(now_ns > 0 && now_ns >= lines->step_ns);
    struct str head, rest;
    while (str_cut(bytes, '\n', &head, &rest)) {
        buf_add_str(&lines->line, head);
        end_line(lines, now_ns);
        lines->skipping = false;
        bytes = rest;
    }
    buf_add_str(&lines->line, bytes);
    if (lines->line.len > STEP_LINE_BYTES || lines->skipping) {
        end_line(lines, now_ns);
        lines->skipping = true;
    }
    lines->sums.elapsed_us = (lines->step_ns - lines->first_ns) / NS_PER_US;
    lines->sums.own_us = lines->work ? lines->work_us : lines->sums.elapsed_us;
}
