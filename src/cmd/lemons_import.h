/* lemons_import.h - judges an imported history of failures as the controller judges its own
 * (core/lemon/lemon.h).
 *
 * The file is CSV, a failure a line, in any order:
 *
 *      machine,start,end,cause,domain
 *      n-17,2026-03-01T04:00:00Z,2026-03-01T09:30:00Z,xid/79,
 *      n-17,2026-03-09 22:10,,power supply,hardware
 *
 * A first line that begins with `machine,` is a heading. Times are RFC 3339, "YYYY-MM-DD[ HH:MM[:SS]]" in
 * UTC, or seconds since 1970; `end` may be empty. `domain` may be left out: the fault table gives that of a
 * code with a '/', a cause that is itself the name of a domain or of a kind that is not the machine's
 * (network, environment, human error, undetermined) is that, every other cause is the name of a part:
 * hardware. Failures of hardware count, each as one time out of service and one failed gang on several
 * machines; not so those that begin while the machine is out already.
 */
#ifndef PHX_CMD_LEMONS_IMPORT_H
#define PHX_CMD_LEMONS_IMPORT_H

#include <stdbool.h>

/* `cluster_path` NULL: the default thresholds. Writes to stdout; returns the exit status. */
int lemons_import(const char *path, const char *cluster_path, bool all, bool json);

#endif
