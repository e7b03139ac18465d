/* lemons_import.h - finds lemon nodes in an imported history of failures, by the rules that the controller
 * applies to its own (core/lemon/lemon.h).
 *
 * The file is CSV, a failure a line, in any order:
 *
 *      machine,start,end,cause,domain
 *      n-17,2026-03-01T04:00:00Z,2026-03-01T09:30:00Z,xid/79,
 *      n-17,2026-03-09 22:10,,power supply,hardware
 *
 * A first line that begins with `machine,` is a heading. Times are RFC 3339, "YYYY-MM-DD[ HH:MM[:SS]]" in
 * UTC, or seconds since 1970; `end` may be empty. If `domain` is left out, it follows from the cause:
 *
 *      a code with a '/'                                                   the domain in the fault table
 *      the name of a domain, or of a kind that is not the machine's
 *      (network, environment, human error, undetermined)                   that domain or kind
 *      anything else                                                       the name of a part: hardware
 *
 * Only failures of hardware count: each as one period out of service and one failed gang on several machines.
 * Failures that begin while the machine is already out of service do not count.
 */
#ifndef PHX_CMD_LEMONS_IMPORT_H
#define PHX_CMD_LEMONS_IMPORT_H

#include <stdbool.h>

/* Judges the history in the file `path` by the thresholds of the cluster file; NULL: the default thresholds.
 * Prints to standard output; returns the exit status. */
int lemons_import(const char *path, const char *cluster_path, bool all, bool json);

#endif
