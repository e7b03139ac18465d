#include "host/agent/steplines.h"

#include "base/check.h"

#define WORK_MAX_US (INT64_C(1) << 50) /* of one number */

static struct matcher *compile(struct arena *arena, struct str pattern)
{
    struct matcher *matcher;
    struct error error;
    return pattern.len && matcher_new(arena, pattern, LINE_PROGRAM_MAX, &matcher, &error) == 0 ? matcher
                                                                                               : NULL;
}

void step_lines_init(struct step_lines *lines, struct str step_pattern, struct str work_pattern)
{
    *lines = (struct step_lines){0};
    lines->step = compile(&lines->arena, step_pattern);
    lines->work = compile(&lines->arena, work_pattern);
}

void step_lines_done(struct step_lines *lines)
{
    buf_done(&lines->line);
    arena_done(&lines->arena);
}

/* "12.5" in microseconds; false: no number stands there. */
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
