/* steplines.h - finds steps in the lines of a log by two patterns (core/spec/spec.h). A line that matches the
 * first is a step. The number behind a match of the second is the rank's own time for a step, in milliseconds
 * ("12", "12.5", also behind blanks, ':' and '='); without a second pattern the time between steps counts as
 * that. Pure, except for memory.
 *
 * Groups of the first pattern take numbers out of the line. By name: `step`, `total`, and any other name for
 * a metric (`loss`). If none has a name, by order: step, total, loss. A line whose step group holds no
 * whole number is counted, and so are all lines of a pattern without one.
 *
 * Numbers that start again, such as those within epochs, are no places in the training. After a line that
 * shows less than half of the highest number (from STEPS_APART), or LOWER_LINES lines in a row that show
 * less, lines are counted instead. Fewer lower lines change nothing, because several ranks may write one log.
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
    struct str names[PATTERN_GROUPS_MAX]; /* "step", "total", a metric's name; empty: of no use */
    struct buf line;             /* the begin of one */
    bool skipping;               /* until the line's end */
    int64_t first_ns, step_ns;   /* of the first step; of the last look that saw one */
    struct pace_sums sums;       /* what came before the first step is no step's */
    int64_t work_us;             /* of all lines so far */
    int64_t matched;             /* lines that were a step */
    bool midst;                  /* set by its owner: reading does not begin at the log's start */
    int64_t lower;               /* in a row, with a number below the highest */
    struct task_step newest;     /* with `matched`; its names live in `arena` */
};

void step_lines_init(struct step_lines *lines, struct str step_pattern, struct str work_pattern);
/* The next bytes of the log, read at `now_ns` (from 1, never falling). Sums are as of then. */
void step_lines_take(struct step_lines *lines, struct str bytes, int64_t now_ns);
void step_lines_done(struct step_lines *lines);

#endif
