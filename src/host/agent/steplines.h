/* steplines.h - finds steps in the lines of a log by two patterns (core/spec/spec.h). A line that matches the
 * first is a step. The number after a match of the second is the rank's own time for a step, in milliseconds
 * ("12", "12.5", also after blanks, ':' and '='). Without a second pattern the time between steps counts
 * instead. Pure, except for memory.
 *
 * Groups of the first pattern take numbers out of the line. By name: `step`, `total`, and any other name for
 * a metric (`loss`). If none has a name, by order: step, total, loss. A line whose step group holds no
 * whole number is counted, and so are all lines of a pattern without one.
 *
 * Numbers that start again, such as those within epochs, are no positions in the training. Lines are counted
 * instead after a line with less than half of the highest number (if that is at least STEPS_APART), or after
 * LOWER_LINES lines in a row with a lower number. Fewer lower lines change nothing, because several ranks may
 * write one log.
 *
 * Only STEP_LINE_BYTES of a line are read. A pattern that does not compile, or has more than LINE_PROGRAM_MAX
 * instructions, matches nothing: the controller has refused it.
 */
#ifndef PHX_HOST_AGENT_STEPLINES_H
#define PHX_HOST_AGENT_STEPLINES_H

#include "core/agent/message.h"
#include "core/spec/spec.h"

enum { STEP_LINE_BYTES = 1024, LOWER_LINES = 64, STEPS_APART = 8 };

struct step_lines {
    struct arena arena;          /* of the patterns */
    struct matcher *step, *work; /* NULL: none */
    struct capturer *groups;     /* of the step pattern; NULL: it has none */
    size_t group_count;
    struct str names[PATTERN_GROUPS_MAX]; /* "step", "total" or a metric's name; empty: unused */
    struct buf line;                      /* the beginning of an incomplete line */
    bool skipping;                        /* ignores bytes up to the line's end */
    int64_t first_ns, step_ns;            /* when the first step was read; when the last one was */
    struct pace_sums sums;                /* time before the first step is not counted */
    int64_t work_us;             /* of all lines so far */
    int64_t matched;             /* lines that were a step */
    bool midst;                  /* set by the owner if reading begins inside the log */
    int64_t lower;               /* lines in a row with a number below the highest */
    struct task_step newest;     /* the newest step; its names live in `arena` */
};

/* Compiles the patterns, which are not needed afterwards. Free with step_lines_done(). */
void step_lines_init(struct step_lines *lines, struct str step_pattern, struct str work_pattern);
/* Takes the next bytes of the log, read at `now_ns` (at least 1, never falling), and updates sums and
 * `newest`. */
void step_lines_take(struct step_lines *lines, struct str bytes, int64_t now_ns);
void step_lines_done(struct step_lines *lines);

#endif
