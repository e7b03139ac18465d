/* signature_rules.h - the meaning of single log lines (private to signature_*.c): a table of phrases, and how
 * much a line with such a phrase proves about the end of its process. */
#ifndef PHX_CORE_HEALTH_SIGNATURE_RULES_H
#define PHX_CORE_HEALTH_SIGNATURE_RULES_H

#include "core/health/signature.h"

enum signature_force {
    FORCE_ECHO, /* that a process died, but not why: a signal's name, a launcher's status of a child */
    FORCE_SAID, /* a mention: the program may have survived it */
    FORCE_ENDS, /* the end: the line is printed only when a process dies */
};

struct signature_rule {
    const char *text, *also;  /* phrases: the line contains both; `also` NULL: only `text` is required */
    enum signature_kind kind; /* SIGNATURE_NONE: the line adds nothing to other lines */
    enum signature_force force;
    bool any_case; /* the phrases, which are in lower case, match in any case */
};

/* Returns the table's first rule that matches the line; NULL: none. */
const struct signature_rule *signature_rule_of(struct str line);
/* Whether the line contains the phrase; in any case; in any case and as a whole word. For the latter two,
 * `phrase` is in lower case. */
bool signature_line_has(struct str line, const char *phrase);
bool signature_line_has_any_case(struct str line, const char *phrase);
bool signature_line_has_any_case_word(struct str line, const char *phrase);
/* Whether the line itself says that its program continues: by a retry or a fallback. The second function also
 * accepts its level, such as a warning. */
bool signature_line_retries(struct str line);
bool signature_line_is_survived(struct str line);
/* Whether the line is a fatal line of glog: a failed check, after which the process aborts. */
bool signature_line_is_fatal(struct str line);
/* Whether the line reports a loss, and whether that loss is finite. */
enum signature_loss { LOSS_NONE, LOSS_FINITE, LOSS_NOT_FINITE };
enum signature_loss signature_line_loss(struct str line);
/* Whether the text of an exception says that numbers were not finite: a loss, gradients, logits. */
bool signature_line_is_not_finite(struct str text);
/* Whether the line reports a step, as training loops print it. */
bool signature_line_is_progress(struct str line);
/* Whether the text begins with the name of an exception class, alone or before ':': "ValueError: text",
 * "package.Error", "KeyError". */
bool signature_line_is_exception(struct str text);
/* As signature_line_is_exception, but for lines without a traceback before them: accepts only names that end
 * as those of exceptions do. */
bool signature_line_is_bare_exception(struct str text);
/* Removes the prefix that launchers put before each line of a rank ("[rank3]: ", "[default0]:", "3: ",
 * "(Worker pid=7)"). Returns the prefix; empty if there is none. */
struct str signature_cut_writer(struct str *line);
/* Returns the exception after a time and a level ("2026-01-01 12:00:00,000 - ERROR - ", "ERROR:root:") or
 * after a host's name ("node7: "), or the whole line if there is none. */
struct str signature_skip_head(struct str line);

#endif
