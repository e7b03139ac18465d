/* signature_rules.h - the meaning of single log lines (private to signature_*.c): a table of phrases, and how
 * much a line that holds one says about the end of its process. */
#ifndef PHX_CORE_HEALTH_SIGNATURE_RULES_H
#define PHX_CORE_HEALTH_SIGNATURE_RULES_H

#include "core/health/signature.h"

enum signature_force {
    FORCE_ECHO, /* a process died, but not why: a signal's name, a launcher's status of a child */
    FORCE_SAID, /* a mention: the program may have survived it */
    FORCE_ENDS, /* printed at a death only */
};

struct signature_rule {
    const char *text, *also;  /* the line holds both; `also` NULL: any line */
    enum signature_kind kind; /* SIGNATURE_NONE: the line adds nothing to other lines */
    enum signature_force force;
    bool any_case; /* the line may hold the phrases, which are in lower case, in any case */
};

/* Returns the table's first rule that matches the line; NULL: none. */
const struct signature_rule *signature_rule_of(struct str line);
bool signature_line_has(struct str line, const char *phrase);
/* The same in any case, anywhere or as a word of its own; `phrase` is in lower case. */
bool signature_line_has_any_case(struct str line, const char *phrase);
bool signature_line_has_any_case_word(struct str line, const char *phrase);
/* Whether the line itself says that its program goes on: by a retry or a fallback, or also by its level,
 * such as a warning. */
bool signature_line_retries(struct str line);
bool signature_line_is_survived(struct str line);
/* Whether the line is a fatal one of glog: a failed check, after which the process aborts. */
bool signature_line_is_fatal(struct str line);
/* Whether the line reports a loss, and whether that loss is finite. */
enum signature_loss { LOSS_NONE, LOSS_FINITE, LOSS_NOT_FINITE };
enum signature_loss signature_line_loss(struct str line);
/* Whether the text of an exception says that numbers were not finite: a loss, gradients, logits. */
bool signature_line_is_not_finite(struct str text);
/* Whether the line reports a step, as training loops do. */
bool signature_line_is_progress(struct str line);
/* Whether the text begins with the name of an exception class, alone or before ':': "ValueError: text",
 * "package.Error", "KeyError". */
bool signature_line_is_exception(struct str text);
/* The same for lines without a traceback before them: only names that end as exceptions do. */
bool signature_line_is_bare_exception(struct str text);
/* Removes the prefix that launchers put before each line of a rank ("[rank3]: ", "[default0]:", "3: ",
 * "(Worker pid=7)"); returns the prefix, empty if there is none. */
struct str signature_cut_writer(struct str *line);
/* Returns the text behind a time and a log level ("2026-01-01 12:00:00,000 - ERROR - ", "ERROR:root:"). */
struct str signature_skip_head(struct str line);

#endif
