/* report.h - reports of daemons about the machine's health: JSON, one signal or a list of them.
 *
 *     {"code": "fan/slow", "place": "fan/2", "evidence": "620 rpm", "assertion": "occur",
 *      "severity": "major", "chip": 3}
 *
 * Only `code` is required. assertion: occur (default), recover, once. severity, for codes that the fault
 * table does not know: notice, minor, major (default), critical. Unknown members are refused, so a mistyped
 * name is noticed. signal.h explains the terms.
 */
#ifndef PHX_HOST_AGENT_REPORT_H
#define PHX_HOST_AGENT_REPORT_H

#include "base/arena.h"
#include "base/error.h"
#include "core/words/signal.h"

enum { REPORT_SIGNALS_MAX = 256 };

/* Parses the signals of `text`, stamped `now_ns` (wall clock), into `arena`. `chips` is the machine's number
 * of chips. ERROR_INVALID names the signal and the member that is wrong; ERROR_LIMIT: too many signals or
 * bytes. */
int report_parse(struct arena *arena, struct str text, uint32_t chips, int64_t now_ns,
                 struct signal **ret_signals, size_t *ret_count, struct error *error);

#endif
