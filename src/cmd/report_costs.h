/* report_costs.h - the use of chips and the cost of failures: `phalanx report` without a CODE.
 *
 * The controller makes the document (GET /report, docs/report.md); this module prints it as a table, CSV or
 * HTML page. */
#ifndef PHX_CMD_REPORT_COSTS_H
#define PHX_CMD_REPORT_COSTS_H

#include "base/str.h"
#include "doc/doc.h"

/* Returns true if the command line, without the command's name, asks for this report and names no fault. */
bool report_asks_costs(int argc, char **argv);
/* Fetches the report and prints it. Returns the exit status. */
int report_costs(int argc, char **argv);

/* The usage of `phalanx report CODE`, which --help also prints. */
extern const char report_fault_usage[];
/* Returns the sum of an object of chip-seconds by owner; 0 for NULL. */
double report_sum(const struct doc *owners);
/* Appends the bounds of a size's MTTF in hours, "1.20 to 30.00" or "over 1.20"; nothing if there are none. */
void report_put_bounds(struct buf *out, const struct doc *size);
/* Appends the report as one self-contained HTML page with SVG figures. */
void report_put_html(const struct doc *report, struct buf *out);

#endif
