/* steplines.h - steps in the lines of a log, by two patterns (core/spec/spec.h): a line that matches the
 * first is a step; the number behind a match of the second is what one took of the rank's own time, in
 * milliseconds ("12", "12.5", also behind blanks, ':' and '='). Without a second one the time between steps
 * counts as that. Pure, but for memory.
 *
 * STEP_LINE_BYTES of a line are looked at. A pattern that does not compile, or has more than LINE_PROGRAM_MAX
 * instructions, matches nothing: the controller has refused it.
 */
#ifndef PHX_HOST_AGENT_STEPLINES_H
#define PHX_HOST_AGENT_STEPLINES_H

#include "core/agent/message.h"
#include "core/spec/spec.h"

enum { STEP_LINE_BYTES = 1024 };

struct step_lines {
    struct arena arena;          /* of the patterns */
    struct matcher *step, *work; /* NULL: none */
    struct buf line;             /* the begin of one */
    bool skipping;               /* until the line's end */
    int64_t first_ns, step_ns;   /* of the first step; of the last look that saw one */
    struct pace_sums sums;       /* what came before the first step is no step's */
    int64_t work_us;             /* of all lines so far */
};

void step_lines_init(struct step_lines *lines, struct str step_pattern, struct str work_pattern);
/* The next bytes of the log, read at `now_ns` (from 1, never falling). Sums are as of then. */
void step_lines_take(struct step_lines *lines, struct str bytes, int64_t now_ns);
void step_lines_done(struct step_lines *lines);

#endif
