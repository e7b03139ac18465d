/* clue_rules.h - what single lines of a log mean (private to clue_*.c): a table of phrases, and how much a
 * line that holds one says about the end of its process. */
#ifndef PHX_CORE_HEALTH_CLUE_RULES_H
#define PHX_CORE_HEALTH_CLUE_RULES_H

#include "core/health/clue.h"

enum clue_force {
    FORCE_ECHO, /* that a process died, not why: a signal's name, a launcher's status of a child */
    FORCE_SAID, /* a mention: the program may have survived it */
    FORCE_ENDS, /* printed at a death only */
};

struct clue_rule {
    const char *text, *also; /* the line holds both; `also` NULL: any line */
    enum clue_kind kind;     /* CLUE_NONE: the line adds nothing to other lines */
    enum clue_force force;
};

/* The first rule of the table that the line matches; NULL: none. */
const struct clue_rule *clue_rule_of(struct str line);
bool clue_line_has(struct str line, const char *phrase);
/* Does the line itself say that its program goes on: by a retry or fallback; or also by its level, as a
 * warning does? */
bool clue_line_retries(struct str line);
bool clue_line_is_survived(struct str line);
/* Does glog call it fatal: a failed check, after which it aborts? */
bool clue_line_is_fatal(struct str line);
/* Does the line say that a loss is no number or infinite, or a finite one? */
enum clue_loss { LOSS_NONE, LOSS_FINITE, LOSS_NOT_FINITE };
enum clue_loss clue_line_loss(struct str line);
/* Does it report steps, as training loops do? */
bool clue_line_is_progress(struct str line);
/* "ValueError: text", "package.Error", "KeyError": the name of a class of exceptions, alone or before ':'. */
bool clue_line_is_exception(struct str text);
/* The same for lines that stand alone, without a traceback before them: names that end as exceptions do. */
bool clue_line_is_bare_exception(struct str text);
/* Cuts what launchers put before each line of a rank ("[rank3]: ", "[default0]:", "3: ", "(Worker pid=7)");
 * returns what was cut, empty: nothing. */
struct str clue_cut_writer(struct str *line);
/* The text behind a time and a log level ("2026-01-01 12:00:00,000 - ERROR - ", "ERROR:root:"). */
struct str clue_skip_head(struct str line);

#endif
